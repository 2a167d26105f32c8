/* half.h - float16 and bfloat16. Graft computes in binary32, which holds every number of both, and
 * keeps tensors of these types in that form; what is written is rounded once, to the nearest number
 * of the type, ties to even. A NaN keeps what the type has of its bits. */
#pragma once

#include "graft/graft.h"

/* Whether a type is one of the two. */
bool graft_half_is(uint32_t dtype);

/* `count` numbers of 16 bits, native byte order and any alignment, as binary32. */
void graft_half_widen(uint32_t dtype, const void *from, size_t count, float *to);

/* The other way. False when a finite number becomes an infinity; all of `to` is set all the same.
 */
bool graft_half_narrow(uint32_t dtype, const float *from, size_t count, uint16_t *to);

/* Rounds numbers where they lie, likewise. */
bool graft_half_round_all(uint32_t dtype, float *numbers, size_t count);

/* Whether rounding keeps what numbers are: none becomes an infinity or moves further than the
 * rounding of the largest may, or where `each` is set, than its own may. */
bool graft_half_keeps(uint32_t dtype, const float *numbers, size_t count, bool each);

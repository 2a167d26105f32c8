/* symbounds.h - what is known of a sum because of what it sums.
 *
 * Once sums have become symbols, Z3 knows nothing of them. True of all sums over a range of n
 * places:
 *   - what is never negative sums to what is not negative, and what is positive, where there is at
 *     least one place, to what is positive;
 *   - low <= x(t) <= high everywhere: n low <= sum of x <= n high;
 *   - (sum of x)^2 <= n (sum of x^2) (Cauchy and Schwarz);
 *   - n itself is between 0 and the product of the sizes. */
#ifndef GRAFT_SYMBOUNDS_H
#define GRAFT_SYMBOUNDS_H

#include "verify/core/symmatch.h"

/* Writes facts about the sums among `folds`, in terms of them and of sums that count places;
 * returns how many. */
uint32_t graft_sym_bounds(graft_sym *s, const graft_sym_atoms *folds,
                          Z3_ast facts[GRAFT_ROOM_BOUNDS]);

#endif

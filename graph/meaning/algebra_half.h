/* algebra_half.h - operators over binary16, simulated: every operation is computed in binary64 and
 * rounded to the nearest half, ties to even. For sums, differences, products, quotients and roots
 * that is what IEEE arithmetic in binary16 gives, since 53 bits are more than 2 * 11 + 2 (Figueroa,
 * "When is double rounding innocuous?", 1995). Sums are accumulated in binary16, which is the worst
 * that a device does; many keep them in binary32. */
#pragma once

#include "algebra.h"

/* The nearest binary16, as binary32: subnormals, overflow to infinity and NaN included. */
float graft_half_round(double x);

/* Runs one operator, as graft_float_run does; elements are halves. */
void graft_half_run(uint32_t op, const graft_call *call, const float *const in[],
                    float *const out[]);

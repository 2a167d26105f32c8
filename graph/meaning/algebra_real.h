/* algebra_real.h - operators over binary64: what a rule computes but for rounding that is far below
 * that of the formats that models use. The reference of measured errors, and the witness of tests
 * that say of a rule that it is false. No part of any proof. */
#pragma once

#include "algebra.h"

/* Runs one operator, as graft_float_run does. Divisions by zero, roots of negative numbers and
 * overflow give infinities and NaN, which later maxima and minima may hide: look at every tensor.
 */
void graft_real_run(uint32_t op, const graft_call *call, const double *const in[],
                    double *const out[]);

/* algebra_half.c - see algebra_half.h. */
#include "algebra_half.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { HALF_BITS = 11, HALF_LEAST = -14, HALF_MOST = 15 };

float graft_half_round(double x)
{
    int exponent = 0;
    if (x == 0.0 || !isfinite(x)) {
        return (float)x;
    }
    (void)frexp(x, &exponent); /* |x| is in [2^(exponent - 1), 2^exponent). */
    exponent = exponent - 1 < HALF_LEAST ? HALF_LEAST : exponent - 1;
    double unit = ldexp(1.0, exponent - (HALF_BITS - 1));
    double rounded = nearbyint(x / unit) * unit; /* Exact but for the one rounding. */
    double limit = ldexp(2.0, HALF_MOST);
    return rounded >= limit ? INFINITY : rounded <= -limit ? -INFINITY : (float)rounded;
}

#define NUM      float
#define ALG(f)   f##_half
#define ROUND(x) graft_half_round(x)
#include "ieee.inc"
#include "operator_bodies.inc"

void graft_half_run(uint32_t op, const graft_call *call, const float *const in[],
                    float *const out[])
{
    assert(graft_op(op) != NULL);
    run_half[op](NULL, call, in, out);
}

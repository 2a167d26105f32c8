/* algebra_real.c - operator bodies over binary64. */
#include "algebra_real.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define NUM      double
#define ALG(f)   f##_real
#define ROUND(x) (x)
#include "ieee.inc"
#include "operator_bodies.inc"

void graft_real_run(uint32_t op, const graft_call *call, const double *const in[],
                    double *const out[])
{
    assert(graft_op(op) != NULL);
    run_real[op](NULL, call, in, out);
}

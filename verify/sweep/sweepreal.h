/* sweepreal.h - a rule evaluated at one instance in binary64.
 *
 * The exact arithmetic knows exp, sqrt and their kin by some laws only (graph/meaning/algebra_field.h): it
 * tells exp(a + b) from exp(a) exp(b). Where it does so and no difference is to be seen in
 * binary32, a rule is swept in binary64 instead. That refutes, and proves nothing. */
#pragma once

#include "verify/sweep/sweep.h"

/* Compares both sides where variable v is `inputs[v]`, rounded. UNDECIDED where the source is not
 * defined or numbers are so large that rounding hides differences. */
graft_sweep_verdict graft_sweep_real(graft_env *env, const graft_instance *instance,
                                     const graft_field *const *inputs, graft_counterexample *found);

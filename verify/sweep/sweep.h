/* sweep.h - a rule evaluated at points of its domain, in exact arithmetic modulo a prime (see
 * graph/meaning/algebra_field.h): the filter and the refuter. One difference refutes the rule; no
 * number of agreements proves it. */
#pragma once

#include "graph/meaning/algebra_field.h"
#include "verify/sweep/domain.h"

enum { GRAFT_SWEEP_POOL = 8192 };

/* Numbers to fill tensors with, made once: random ones, mixed, mostly negative, mostly positive
 * and, for when these are undecided, positive; and special ones, at which a side may be undefined:
 * every other one of them 0, 1 or -1, and small numbers that sum to 0 now and then; and wide ones,
 * up to thousands, for where an attribute is further from 0 than the others are. */
typedef struct graft_sweeper {
    graft_field pools[4][GRAFT_SWEEP_POOL];
    graft_field special[2][GRAFT_SWEEP_POOL];
    graft_field wide[GRAFT_SWEEP_POOL];
    bool rounded; /* In binary64 instead: the exact arithmetic knows exp, sqrt and their kin by some
                     laws only, and tells exp(a + b) from exp(a) exp(b). Where it does so and no
                     difference is to be seen in binary32, this refutes, and proves nothing. */
} graft_sweeper;

typedef enum graft_sweep_verdict {
    GRAFT_SWEEP_AGREES,
    GRAFT_SWEEP_DIFFERS,
    GRAFT_SWEEP_UNDECIDED /* Every sample was undefined (a division by 0) or too close to order. */
} graft_sweep_verdict;

typedef struct graft_counterexample {
    graft_point point;
    uint32_t output;  /* Which output of the rule, */
    uint64_t element; /* which element of it, in row-major order: the first that differs. */
    double source;    /* The element on both sides, rounded. */
    double target;
    uint64_t seed; /* Of the sample: graft_sweep_inputs makes the variables' tensors. */
} graft_counterexample;

typedef struct graft_sweep_result {
    uint32_t agreed; /* Points. */
    uint32_t undecided;
    bool refuted;
    graft_counterexample counterexample;
} graft_sweep_result;

void graft_sweep_open(graft_sweeper *sweeper); /* Exact. */

/* Compares both sides of an instance on `samples` samples, each with its own signs, on one of
 * special numbers more where the target divides or takes roots, and on one of wide numbers and one
 * of those that the rule names (named.h) where an attribute is larger than the usual ones. A target
 * that is undefined where the source is not differs, its value being NaN. On a difference
 * `counterexample` (may be NULL) is filled. Numbers depend on `seed` and the rule alone. */
graft_sweep_verdict graft_sweep_instance(graft_env *env, const graft_sweeper *sweeper,
                                         const graft_instance *instance, uint32_t samples,
                                         uint64_t seed, graft_counterexample *counterexample);

/* Compares both sides on given tensors, `values[v]` those of variable v: exactly, or in binary64.
 */
graft_sweep_verdict graft_sweep_given(graft_env *env, const graft_instance *instance,
                                      const graft_field *const *values, bool rounded,
                                      graft_counterexample *counterexample);

/* Sweeps all points of a domain, small ones first, until one differs. */
void graft_sweep_domain(graft_env *env, const graft_sweeper *sweeper, const graft_rule *rule,
                        const graft_domain *domain, uint32_t samples, graft_sweep_result *result);

/* The tensors of a sample; `values[v]` has room for the elements of variable v. */
void graft_sweep_inputs(const graft_sweeper *sweeper, const graft_rule *rule,
                        const graft_point *point, uint64_t seed, graft_field *const *values);

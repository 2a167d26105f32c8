/* prove.h - the solver's word on a rule at points: at each of a covering set Z3 is asked for an
 * assignment of real numbers to the variables' elements under which some element of the two sides
 * differs, or under which the target divides by 0 (or takes the root of a negative number) where
 * the source does not. A rule holds at all of them when Z3 answers `unsat` at every one, and not
 * otherwise. A proof for all sizes (symbolic.h) does not rest on it. */
#pragma once

#include "verify/core/prover.h"
#include "verify/instances/instance.h"

typedef enum graft_verdict {
    GRAFT_VERDICT_PROVED,
    GRAFT_VERDICT_REFUTED, /* Z3 found an assignment: the rule is false at this point. */
    GRAFT_VERDICT_UNKNOWN,
    /* Of trials alone (trial.h): */
    GRAFT_VERDICT_WITHIN_BOUNDS, /* Swept and proved at instances; nothing is said of others. */
    GRAFT_VERDICT_ERROR          /* The rule cannot be read, or has no instances. */
} graft_verdict;

/* Why nothing is known where a divisor of the source may be 0 and its infinity a number again
 * (guarded.h). */
#define GRAFT_PROVE_CAUGHT                                                                         \
    "a maximum, a bounded function or a quotient of the source may make a / 0 a number"

const char *graft_verdict_name(uint32_t verdict);

graft_effort graft_effort_add(graft_effort a, graft_effort b);
graft_effort graft_effort_least(graft_effort a, graft_effort b);
/* What is left of `most` when `used` is gone; not less than 0. */
graft_effort graft_effort_left(graft_effort most, graft_effort used);

/* Proves a rule at `count` points (all instances of it): the prover's task. */
void graft_prove_points(graft_env *env, graft_prover *p, const graft_rule *rule,
                        const graft_point *points, uint32_t count);

/* "z3 4.8.12.0". */
const char *graft_prove_solver(graft_arena *arena);

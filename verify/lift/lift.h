/* lift.h - from a law about concrete attributes to the most general rule that survives the sweep.
 *
 * The candidate's attributes become slots, its target's attributes expressions over them and over
 * sizes. Which expressions, which slots must be equal or constant and which precondition is needed
 * is found by trial: a choice is judged by sweeping a sample of its domain. Points that fail are
 * kept and a smallest set of constraints is learnt that excludes them and as few good points as
 * possible; in the end each constraint that turns out not to be needed is dropped again. Nothing
 * here is trusted: the rule that comes out goes through the full sweep and the solver. */
#pragma once

#include "verify/lift/draft.h"
#include "verify/sweep/sweep.h"

typedef enum graft_lift_outcome {
    GRAFT_LIFT_DONE,
    GRAFT_LIFT_FALSE, /* Differs at the very shapes it was found at. */
    GRAFT_LIFT_STUCK  /* No constraints in the vocabulary make it survive. */
} graft_lift_outcome;

/* `rule` and `origin`, the candidate's shapes and attributes as a point of the rule, are set only
 * when GRAFT_LIFT_DONE. */
typedef struct graft_lift_result {
    graft_lift_outcome outcome;
    graft_rule rule;
    graft_point origin;
} graft_lift_result;

/* Lifts a candidate. Fails as graft_draft_make does. */
GRAFT_MUST_USE graft_status graft_lift(graft_env *env, const graft_sweeper *sweeper,
                                       const graft_candidate *candidate, graft_lift_result *result);

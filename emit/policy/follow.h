/* follow.h - a policy rewrites a model whose graphs have prices: of its rewrites those are made
 * that pay. */
#pragma once

#include "emit/command/session.h"
#include "emit/report/trace.h"
#include "train/search/search.h"

typedef struct graft_follow_options {
    const char *path; /* Of the policy, for messages. */
    const graft_policy *policy;
    const char *const *names; /* Of its rules. */
    bool exact;         /* Only rules that give the same bits in the types that the model has. */
    bool all;           /* All that the policy makes of the model, whether it pays or not. */
    graft_trace *trace; /* Receives the rewrites that are made; NULL: it is not wanted. */
} graft_follow_options;

/* Guarded, simplified first, without a plan. The policy decides without a price; afterwards each of
 * its graphs has one. Rules whose rewrites were dearer, all in all, are left out and the policy
 * asked again, up to three times; of all these graphs the cheapest is made, the model itself where
 * none is cheaper by what a rewrite must bring to a search. It becomes the environment's state;
 * found has no steps. GRAFT_BAD_INPUT for a malformed rule; fails as pricing and the engine do. */
GRAFT_MUST_USE graft_status graft_follow(graft_env *env, graft_session *session,
                                         const graft_follow_options *options,
                                         graft_plan_found *found);

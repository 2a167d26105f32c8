/* refined.h - a policy for one model: the policy for many models, its table refined on the model.
 *
 *      rules/policies, or a table made on the spot ──► at most 64 graphs priced ──► the better
 *
 * It decides by the table alone (GRAFT_DECIDER_TARIFF), over the rules that have a place in the
 * model. */
#pragma once

#include "emit/command/session.h"
#include "emit/report/results.h"

enum { GRAFT_REFINED_GRAPHS = 64 };

/* What refining starts with. */
typedef struct graft_refined_start {
    const graft_tariff *tariff;
    uint64_t graphs; /* Priced for it, on this model. */
    uint64_t seed;
} graft_refined_start;

typedef struct graft_refined {
    graft_policy generalist;  /* The session's rules, by the table that it started with... */
    graft_policy refined;     /* ...by what became of it... */
    graft_policy random;      /* ...and by the first one with its costs in another order. */
    const graft_policy *best; /* Of the first two, by the price of what the engine makes. */
    uint64_t graphs;          /* Priced for the refined one. */
} graft_refined;

/* Makes them in env->life, and adds a row of results for each, the random one first. */
GRAFT_MUST_USE graft_status graft_refined_make(graft_env *env, graft_session *session,
                                               const graft_refined_start *start,
                                               graft_refined *refined, graft_results *results);

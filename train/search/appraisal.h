/* appraisal.h - what a tariff says of a graph and of each of its rewrites, on the host: the
 * engine's estimates over the matches that the host keeps (matches.h). It asks for no price. */
#pragma once

#include "train/search/environment.h"

/* A graph with all its rewrites, borrowed. */
typedef struct graft_place {
    const graft_state *state;
    const graft_matches *matches;
    const graft_apply_options *apply;
} graft_place;

typedef struct graft_appraisal {
    graft_place place;
    graft_estimator estimator;
    graft_estimated estimated; /* Of the place's graph, by the last graft_appraisal_refresh. */
    uint64_t count;            /* Rewrites looked at. */
    uint32_t call;             /* Of the place's matches, whose graph was estimated last. */
    bool *same;                /* By node: costs as it did then. */
} graft_appraisal;

/* An estimator for graphs within these limits, in `arena`; the tariff is kept. GRAFT_BAD_INPUT when
 * that is broken. */
GRAFT_MUST_USE graft_status graft_estimator_make(graft_env *env, graft_arena *arena,
                                                 const graft_tariff *tariff,
                                                 const graft_limits *limits,
                                                 graft_estimator *estimator);
/* What it says of a state's graph. GRAFT_CAPACITY when that is too large to estimate. */
GRAFT_MUST_USE graft_status graft_estimate_state(graft_env *env, graft_estimator *estimator,
                                                 const graft_state *state,
                                                 graft_estimated *estimated);

/* Its estimates as a price. */
graft_price graft_estimator_price(graft_estimator *estimator);

/* For graphs within the limits of the place's. Fails as graft_estimator_make. */
GRAFT_MUST_USE graft_status graft_appraisal_open(graft_env *env, graft_arena *arena,
                                                 const graft_tariff *tariff,
                                                 const graft_place *place,
                                                 graft_appraisal *appraisal);
/* After the graph has changed. Fails as graft_estimate_state. */
GRAFT_MUST_USE graft_status graft_appraisal_refresh(graft_env *env, graft_appraisal *appraisal);
/* After the graph has changed and its matches have been found, which know where it did; `estimated`
 * stays as it was. Fails as graft_estimate_state. */
GRAFT_MUST_USE graft_status graft_appraisal_renew(graft_env *env, graft_appraisal *appraisal);
/* What an action would make. */
GRAFT_MUST_USE graft_status graft_appraisal_plan(graft_env *env, const graft_place *place,
                                                 graft_action action, graft_made *made);
/* What an action would change. */
GRAFT_MUST_USE graft_status graft_appraisal_look(graft_env *env, graft_appraisal *appraisal,
                                                 graft_action action, graft_change *change);

static inline const graft_rule *graft_place_rule(const graft_place *place, graft_action action)
{
    return &place->matches->xfers->rules[action.xfer];
}

static inline const graft_match *graft_place_match(const graft_place *place, graft_action action)
{
    return graft_matches_get(place->matches, action.xfer, action.location);
}

/* appraisal.c - see appraisal.h. */
#include "train/search/appraisal.h"

#include <assert.h>

void graft_appraisal_open(graft_arena *arena, const graft_tariff *tariff, const graft_place *place,
                          graft_appraisal *appraisal)
{
    const graft_limits *limits = &place->state->graph.limits;
    size_t bytes = graft_estimator_bytes(limits);
    *appraisal = (graft_appraisal){.place = *place};
    graft_status status = graft_estimator_open(&appraisal->estimator, tariff, limits,
                                               graft_arena_alloc(arena, bytes), bytes);
    assert(status == GRAFT_OK); /* The size is right, and so is the tariff. */
    (void)status;
}

graft_status graft_appraisal_refresh(graft_env *env, graft_appraisal *appraisal)
{
    const graft_state *state = appraisal->place.state;
    graft_status status =
        graft_estimate(&appraisal->estimator, &state->graph, &state->order, &appraisal->estimated);
    return status == GRAFT_OK ? GRAFT_OK
                              : GRAFT_FAIL(env, status, "the graph is too large to estimate");
}

graft_status graft_appraisal_plan(graft_env *env, const graft_place *place, graft_action action,
                                  graft_made *made)
{
    const graft_state *state = place->state;
    graft_status status = graft_match_plan(&state->graph, graft_place_rule(place, action),
                                           graft_place_match(place, action), &state->order,
                                           place->apply, state->scratch, made);
    return status == GRAFT_OK ? GRAFT_OK
                              : GRAFT_FAIL(env, GRAFT_INTERNAL, "a match does not apply");
}

graft_status graft_appraisal_look(graft_env *env, graft_appraisal *appraisal, graft_action action,
                                  graft_change *change)
{
    const graft_place *place = &appraisal->place;
    graft_made made;
    GRAFT_PASS(graft_appraisal_plan(env, place, action, &made));
    graft_estimate_match(&appraisal->estimator, graft_place_rule(place, action),
                         graft_place_match(place, action), &made, change);
    appraisal->count++;
    return GRAFT_OK;
}

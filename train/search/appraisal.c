/* appraisal.c - see appraisal.h. */
#include "train/search/appraisal.h"

graft_status graft_estimator_make(graft_env *env, graft_arena *arena, const graft_tariff *tariff,
                                  const graft_limits *limits, graft_estimator *estimator)
{
    const size_t bytes = graft_estimator_bytes(limits);
    return graft_estimator_open(estimator, tariff, limits, graft_arena_alloc(arena, bytes),
                                bytes) == GRAFT_OK
               ? GRAFT_OK
               : GRAFT_FAIL(env, GRAFT_BAD_INPUT, "the tariff is broken");
}

static graft_status tell_estimated(graft_env *env, graft_status status)
{
    return status == GRAFT_OK
               ? GRAFT_OK
               : GRAFT_FAIL(env, GRAFT_CAPACITY, "the graph is too large to estimate");
}

graft_status graft_estimate_state(graft_env *env, graft_estimator *estimator,
                                  const graft_state *state, graft_estimated *estimated)
{
    return tell_estimated(env, graft_estimate(estimator, &state->graph, &state->order, estimated));
}

static graft_status estimate_price(graft_env *env, void *context, const graft_graph *graph,
                                   const graft_order *order, double *ns)
{
    graft_estimated estimated;
    GRAFT_PASS(tell_estimated(env, graft_estimate(context, graph, order, &estimated)));
    *ns = (double)estimated.cost / GRAFT_COST_UNITS;
    return GRAFT_OK;
}

graft_price graft_estimator_price(graft_estimator *estimator)
{
    return (graft_price){.cost_ns = estimate_price, .context = estimator};
}

graft_status graft_appraisal_open(graft_env *env, graft_arena *arena, const graft_tariff *tariff,
                                  const graft_place *place, graft_appraisal *appraisal)
{
    *appraisal = (graft_appraisal){
        .place = *place, .same = GRAFT_NEW(arena, bool, place->state->graph.limits.nodes)};
    return graft_estimator_make(env, arena, tariff, &place->state->graph.limits,
                                &appraisal->estimator);
}

graft_status graft_appraisal_refresh(graft_env *env, graft_appraisal *appraisal)
{
    appraisal->call = appraisal->place.matches->call;
    return graft_estimate_state(env, &appraisal->estimator, appraisal->place.state,
                                &appraisal->estimated);
}

/* A node costs as it did unless it has changed, or the weights that it reads are made otherwise. */
static void find_same(graft_appraisal *appraisal)
{
    const graft_graph *graph = &appraisal->place.state->graph;
    const graft_order *order = &appraisal->place.state->order;
    const uint32_t *moved = appraisal->place.matches->changes.moved;
    for (graft_index i = 0; i < order->count; i++) {
        const graft_index n = order->order[i];
        bool same = moved[n] <= appraisal->call;
        for (uint32_t k = 0; same && k < graph->nodes[n].input_count; k++) {
            const graft_index v = graft_node_input(graph, n, k);
            same = v == GRAFT_NONE || !graph->values[v].is_const ||
                   graph->values[v].node == GRAFT_NONE || appraisal->same[graph->values[v].node];
        }
        appraisal->same[n] = same;
    }
}

graft_status graft_appraisal_renew(graft_env *env, graft_appraisal *appraisal)
{
    const graft_state *state = appraisal->place.state;
    find_same(appraisal);
    appraisal->call = appraisal->place.matches->call;
    return tell_estimated(env, graft_estimate_again(&appraisal->estimator, &state->graph,
                                                    &state->order, appraisal->same));
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

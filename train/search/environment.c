/* environment.c - see environment.h. */
#include "train/search/environment.h"

#include <assert.h>

graft_status graft_environment_open(graft_env *env, graft_arena *arena, const graft_graph *graph,
                                    const graft_xfers *xfers,
                                    const graft_environment_options *options,
                                    graft_environment *environment)
{
    *environment = (graft_environment){.xfers = xfers, .options = *options};
    GRAFT_PASS(graft_state_make(env, arena, graph, &environment->first));
    graft_state_open(arena, &environment->first.graph.limits, &environment->state);
    graft_matches_open(arena, xfers, options->location_limit, &environment->matches);
    return graft_environment_reprice(env, environment);
}

static void find_actions(graft_environment *environment)
{
    double most = environment->options.cost_limit * environment->first_ns;
    graft_matches_find(&environment->matches, &environment->state, &environment->options.apply);
    environment->dear = most > 0 && environment->cost_ns > most;
    environment->terminal = environment->matches.count == 0 || environment->dear ||
                            environment->step_count >= environment->options.step_limit;
}

graft_status graft_environment_reset(graft_env *env, graft_environment *environment)
{
    assert(!environment->sealed);
    GRAFT_PASS(graft_state_copy(env, &environment->state, &environment->first.graph,
                                &environment->first.order));
    environment->cost_ns = environment->first_ns;
    environment->step_count = 0;
    find_actions(environment);
    return GRAFT_OK;
}

graft_status graft_environment_reprice(graft_env *env, graft_environment *environment)
{
    const graft_price *price = &environment->options.price;
    GRAFT_PASS(price->cost_ns(env, price->context, &environment->first.graph,
                              &environment->first.order, &environment->first_ns));
    return graft_environment_reset(env, environment);
}

static graft_status apply_action(graft_env *env, graft_environment *environment, uint32_t xfer,
                                 uint32_t location, double *reward)
{
    const graft_price *price = &environment->options.price;
    double cost_ns = 0;
    const graft_action action = {(uint16_t)xfer, (uint16_t)location};
    GRAFT_PASS_IN(env, graft_matches_apply(env, &environment->matches, action, &environment->state),
                  "while applying rule %s", environment->xfers->names[xfer]);
    GRAFT_PASS(price->cost_ns(env, price->context, &environment->state.graph,
                              &environment->state.order, &cost_ns));
    *reward = 100.0 * (environment->cost_ns - cost_ns) / environment->first_ns;
    environment->cost_ns = cost_ns;
    environment->step_count++;
    find_actions(environment);
    return GRAFT_OK;
}

graft_status graft_environment_step(graft_env *env, graft_environment *environment, uint32_t xfer,
                                    uint32_t location, graft_outcome *step)
{
    double reward = 0;
    bool noop = xfer == environment->xfers->count;
    assert(!environment->sealed);
    if (environment->terminal) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "step after the end of an episode");
    }
    if (!noop && (xfer > environment->xfers->count ||
                  location >= graft_matches_count(&environment->matches, xfer))) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "action (%u, %u) is not legal here", xfer,
                          location);
    }
    if (!noop) {
        GRAFT_PASS(apply_action(env, environment, xfer, location, &reward));
    }
    environment->terminal = environment->terminal || noop;
    environment->interactions++;
    *step = (graft_outcome){.reward = reward,
                            .terminal = environment->terminal,
                            .truncated = environment->terminal && !noop && !environment->dear &&
                                         environment->matches.count > 0};
    return GRAFT_OK;
}

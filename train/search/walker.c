/* walker.c - see walker.h. */
#include "train/search/walker.h"

#include <string.h>

enum { FIRST_STEPS = 256, SETTLING_MOST = 64 };

static void find(graft_walker *walker)
{
    graft_matches_find(&walker->matches, &walker->state, &walker->environment->options.apply);
}

graft_status graft_walker_open(graft_env *env, graft_arena *arena,
                               const graft_environment *environment, graft_plan_found *found,
                               graft_walker *walker)
{
    const graft_graph *first = &environment->first.graph;
    *walker = (graft_walker){.environment = environment,
                             .arena = arena,
                             .found = found,
                             .cost_ns = environment->first_ns};
    graft_state_open(arena, &first->limits, &walker->state);
    graft_state_open(arena, &first->limits, &walker->trial);
    graft_matches_open(arena, environment->xfers, environment->options.location_limit,
                       &walker->matches);
    GRAFT_PASS(graft_state_set(env, &walker->state, first));
    find(walker);
    return GRAFT_OK;
}

static void add_step(graft_walker *walker, graft_action action)
{
    GRAFT_PUSH(walker->arena, walker->steps, walker->step_count, walker->step_capacity,
               FIRST_STEPS) = action;
}

graft_status graft_walker_join(graft_env *env, graft_walker *walker, const graft_walker *other)
{
    GRAFT_PASS(graft_state_copy(env, &walker->state, &other->state.graph, &other->state.order));
    walker->cost_ns = other->cost_ns;
    walker->step_count = 0;
    for (uint32_t i = 0; i < other->step_count; i++) {
        add_step(walker, other->steps[i]);
    }
    find(walker);
    return GRAFT_OK;
}

graft_status graft_walker_follow(graft_env *env, graft_walker *walker, const graft_action *steps,
                                 uint32_t step_count)
{
    const graft_environment *environment = walker->environment;
    const graft_price *price = &environment->options.price;
    GRAFT_PASS(graft_state_set(env, &walker->state, &environment->first.graph));
    walker->step_count = 0;
    find(walker);
    for (uint32_t i = 0; i < step_count; i++) {
        GRAFT_PASS(graft_walker_take(env, walker, steps[i], 0.0));
    }
    return price->cost_ns(env, price->context, &walker->state.graph, &walker->state.order,
                          &walker->cost_ns);
}

graft_status graft_walker_price(graft_env *env, graft_walker *walker, graft_action action,
                                double *ns)
{
    const graft_price *price = &walker->environment->options.price;
    GRAFT_PASS(graft_matches_follow(env, &walker->matches, &walker->state, action, &walker->trial));
    walker->found->evaluations++;
    return price->cost_ns(env, price->context, &walker->trial.graph, &walker->trial.order, ns);
}

graft_status graft_walker_take(graft_env *env, graft_walker *walker, graft_action action, double ns)
{
    GRAFT_PASS(graft_matches_apply(env, &walker->matches, action, &walker->state));
    add_step(walker, action);
    walker->cost_ns = ns;
    find(walker);
    return GRAFT_OK;
}

graft_action *graft_walker_list(const graft_walker *walker, graft_arena *arena, uint32_t recent,
                                uint32_t *count)
{
    const graft_matches *matches = &walker->matches;
    graft_action *actions = GRAFT_NEW(arena, graft_action, matches->count);
    *count = 0;
    GRAFT_EACH_ACTION(matches, action)
    {
        if (matches->items[graft_matches_index(matches, action.xfer, action.location)].moved >=
            recent) {
            actions[(*count)++] = action;
        }
    }
    return actions;
}

graft_status graft_walker_settle(graft_env *env, graft_walker *walker, uint32_t since)
{
    GRAFT_SCOPED(env->scratch);
    bool better = true;
    for (uint32_t n = 0; n < SETTLING_MOST && better; n++) {
        uint32_t count = 0;
        const graft_action *actions = graft_walker_list(walker, env->scratch, since, &count);
        graft_action best = {0, 0};
        double least_ns = walker->cost_ns;
        better = false;
        for (uint32_t i = 0; i < count; i++) {
            double ns = 0.0;
            GRAFT_PASS(graft_walker_price(env, walker, actions[i], &ns));
            if (ns < least_ns) {
                least_ns = ns;
                best = actions[i];
                better = true;
            }
        }
        if (better) {
            GRAFT_PASS(graft_walker_take(env, walker, best, least_ns));
        }
    }
    return GRAFT_OK;
}

void graft_walker_keep(const graft_walker *walker, graft_arena *arena, graft_plan_found *found)
{
    if (walker->cost_ns < found->cost_ns) {
        found->cost_ns = walker->cost_ns;
        found->at_rest = false;
        found->step_count = walker->step_count;
        found->steps = GRAFT_COPY(arena, walker->steps, walker->step_count);
    }
}

bool graft_walker_was_tried(const graft_walker *walker, graft_tried *tried, graft_action action)
{
    const graft_matches *matches = &walker->matches;
    if (tried->count < matches->item_count) {
        uint32_t *calls = GRAFT_NEW(walker->arena, uint32_t, 2 * (size_t)matches->item_count);
        if (tried->count > 0) {
            memcpy(calls, tried->calls, tried->count * sizeof calls[0]);
        }
        *tried = (graft_tried){calls, 2 * matches->item_count};
    }
    const uint32_t item = graft_matches_index(matches, action.xfer, action.location);
    const bool was = tried->calls[item] >= matches->items[item].moved;
    tried->calls[item] = matches->call;
    return was;
}

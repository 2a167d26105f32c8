/* descent.c - see search.h: greedy search, and what comes after any other search.
 *
 * Greedy prices every successor of every graph. What a rewrite gained at the graph before is no
 * guide: a rewrite changes prices from afar too, through layouts and the distances of weights.
 * Pricing again only what is near to the last rewrite, and of the rest what promised most ("lazy"
 * evaluation; Minoux, "Accelerated greedy algorithms", 1978), was tried and ended dearer on four of
 * twelve models: on the LSTM 97.1 % of the cost where this ends at 86.8 %. Nor do rewrites lead to
 * the same graph often enough to look for that. */
#include "train/search/search.h"

#include "graph/base/log.h"

#include <string.h>

/* What a greedy search sees at one graph. */
typedef struct glance {
    graft_state trial; /* Actions are tried on it. */
    double cost_ns;    /* Of the best successor. */
    graft_action best;
    bool found;
} glance;

/* Makes g->trial the successor by an action. */
static graft_status try_action(graft_env *env, const graft_environment *environment, glance *g,
                               graft_action action)
{
    return graft_matches_follow(env, &environment->matches, &environment->state, action, &g->trial);
}

static graft_status price_trial(graft_env *env, const graft_environment *environment,
                                const glance *g, graft_plan_found *found, double *ns)
{
    const graft_price *price = &environment->options.price;
    found->evaluations++;
    return price->cost_ns(env, price->context, &g->trial.graph, &g->trial.order, ns);
}

graft_status graft_search_pays(graft_env *env, const graft_environment *environment,
                               const graft_state *before, const graft_state *after, double gain_ns,
                               bool *pays)
{
    const graft_price *price = &environment->options.price;
    double noise_ns = 0.0;
    *pays = gain_ns > 0.0 && gain_ns >= environment->options.least_gain * environment->first_ns;
    if (*pays && price->noise_ns != NULL) {
        GRAFT_PASS(price->noise_ns(env, price->context, before, after, &noise_ns));
        *pays = gain_ns > noise_ns;
    }
    return GRAFT_OK;
}

/* The cheapest successor of the environment's state that gains enough. */
static graft_status find_cheapest(graft_env *env, const graft_environment *environment, glance *g,
                                  graft_plan_found *found)
{
    g->cost_ns = environment->cost_ns;
    g->found = false;
    GRAFT_EACH_ACTION(&environment->matches, action)
    {
        double ns = 0.0;
        bool better = false;
        if (graft_search_is_over(environment, found)) {
            g->found = false; /* Nobody knows which is the cheapest. */
            return GRAFT_OK;
        }
        GRAFT_PASS(try_action(env, environment, g, action));
        GRAFT_PASS(price_trial(env, environment, g, found, &ns));
        if (ns < g->cost_ns) {
            GRAFT_PASS(graft_search_pays(env, environment, &environment->state, &g->trial,
                                         environment->cost_ns - ns, &better));
        }
        if (better) {
            g->cost_ns = ns;
            g->best = action;
            g->found = true;
        }
    }
    return GRAFT_OK;
}

/* A successor of better form that costs no more: the first one from rule `start` on, the rules
 * before it coming last. */
static graft_status find_tidier(graft_env *env, const graft_environment *environment,
                                uint32_t start, glance *g, graft_plan_found *found)
{
    const graft_matches *matches = &environment->matches;
    const graft_price *price = &environment->options.price;
    const uint32_t rules = matches->xfers->count;
    uint64_t now = 0;
    g->found = false;
    GRAFT_PASS(price->form(env, price->context, &environment->state.graph, &now));
    for (uint32_t i = 0; i < rules && !g->found; i++) {
        uint32_t x = (start + i) % rules;
        for (uint32_t l = 0; l < graft_matches_count(matches, x) && !g->found; l++) {
            uint64_t form = 0;
            double ns = 0.0;
            if (graft_search_is_over(environment, found)) {
                return GRAFT_OK;
            }
            g->best = (graft_action){.xfer = (uint16_t)x, .location = (uint16_t)l};
            GRAFT_PASS(try_action(env, environment, g, g->best));
            GRAFT_PASS(price->form(env, price->context, &g->trial.graph, &form));
            if (form < now) {
                GRAFT_PASS(price_trial(env, environment, g, found, &ns));
                g->found = ns <= environment->cost_ns;
            }
        }
    }
    return GRAFT_OK;
}

/* Goes on from the environment's state as long as there is something better: better forms first,
 * then, with `gains`, the greatest gain, and so on. `steps` has room for as many as the environment
 * allows. */
static graft_status descend(graft_env *env, graft_environment *environment, bool gains,
                            graft_plan_found *found)
{
    GRAFT_SCOPED(env->scratch);
    uint32_t start = 0;
    const uint32_t first = found->step_count;
    glance g = {.found = true};
    graft_progress progress;
    graft_progress_start(&progress, env, "greedy", "rewrites",
                         environment->options.step_limit - first);
    graft_state_open(env->scratch, &environment->state.graph.limits, &g.trial);
    while (!environment->terminal && g.found && !graft_search_is_over(environment, found)) {
        GRAFT_PASS(graft_search_go_on(env));
        g.found = false;
        if (environment->options.price.form != NULL) {
            GRAFT_PASS(find_tidier(env, environment, start, &g, found));
            start = g.found ? g.best.xfer : start;
        }
        if (!g.found && gains) {
            GRAFT_PASS(find_cheapest(env, environment, &g, found));
        }
        if (g.found) {
            graft_outcome step;
            GRAFT_PASS(
                graft_environment_step(env, environment, g.best.xfer, g.best.location, &step));
            found->steps[found->step_count++] = g.best;
            found->cost_ns = environment->cost_ns;
            graft_progress_update(&progress, found->step_count - first, NULL);
        }
    }
    graft_progress_finish(&progress);
    found->at_rest = gains && !g.found && !found->cut;
    return GRAFT_OK;
}

graft_status graft_search_greedy(graft_env *env, graft_arena *arena, graft_environment *environment,
                                 const graft_search_choice *choice, graft_plan_found *found)
{
    (void)choice;
    uint64_t start_ns = graft_clock_ns();
    *found = (graft_plan_found){.cost_ns = environment->first_ns};
    found->steps = GRAFT_NEW(arena, graft_action, environment->options.step_limit);
    GRAFT_PASS(graft_environment_reset(env, environment));
    GRAFT_PASS(descend(env, environment, true, found));
    found->seconds = (double)(graft_clock_ns() - start_ns) / 1e9;
    return GRAFT_OK;
}

/* Goes on from the graph of a plan, which becomes longer by as many steps as an episode may
 * have. */
static graft_status extend(graft_env *env, graft_arena *arena, graft_environment *environment,
                           bool gains, graft_plan_found *found)
{
    const uint32_t limit = environment->options.step_limit;
    graft_action *steps = GRAFT_NEW(arena, graft_action, (size_t)found->step_count + limit);
    if (found->step_count > 0) { /* Of none there may be no list. */
        memcpy(steps, found->steps, found->step_count * sizeof(steps[0]));
    }
    found->steps = steps;
    found->cost_ns = environment->cost_ns;
    environment->options.step_limit = found->step_count + limit;
    graft_status status = descend(env, environment, gains, found);
    environment->options.step_limit = limit;
    return status;
}

graft_status graft_search_tidy(graft_env *env, graft_arena *arena, graft_environment *environment,
                               graft_plan_found *found)
{
    GRAFT_PASS(graft_plan_replay(env, environment, found->steps, found->step_count));
    return extend(env, arena, environment, false, found);
}

graft_status graft_search_finish(graft_env *env, graft_arena *arena, graft_environment *environment,
                                 graft_plan_found *found)
{
    uint64_t start_ns = graft_clock_ns();
    bool worth = true;
    GRAFT_PASS(graft_plan_replay(env, environment, found->steps, found->step_count));
    if (found->at_rest) { /* From its graph, and from the first, the same would be found again. */
        return GRAFT_OK;
    }
    GRAFT_PASS(graft_search_pays(env, environment, &environment->first, &environment->state,
                                 environment->first_ns - environment->cost_ns, &worth));
    if (!worth) {
        found->step_count = 0;
        GRAFT_PASS(graft_environment_reset(env, environment));
    }
    GRAFT_PASS(extend(env, arena, environment, true, found));
    found->seconds += (double)(graft_clock_ns() - start_ns) / 1e9;
    return GRAFT_OK;
}

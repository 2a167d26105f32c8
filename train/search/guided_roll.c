/* guided_roll.c - estimates, prices and rollouts of guided search (see guided_internal.h). */
#include "train/search/guided_internal.h"

#include <math.h>
#include <string.h>

/* As the engine's policy: what a step has to gain. */
static const double least_gain = 1.0 / (1 << GRAFT_GAIN_SHIFT);
/* What a rewrite is believed to cost where there is no row and no fallback: not gain, but
 * little. */
static const double unknown = 1e-3;

bool graft_guided_is_over(graft_guided *g)
{
    return g->found->evaluations >= g->choice->graphs ||
           graft_search_is_over(g->environment, g->found);
}

/* ------------------------------------------------------------------- prices */

graft_status graft_guided_price(graft_env *env, graft_guided *g)
{
    const graft_price *price = &g->environment->options.price;
    g->found->evaluations++;
    graft_progress_update(&g->progress, g->found->evaluations, NULL);
    return price->cost_ns(env, price->context, &g->now.state.graph, &g->now.state.order,
                          &g->now.cost_ns);
}

graft_status graft_guided_learn(graft_env *env, graft_guided *g, const graft_state *state)
{
    return graft_ledger_note(env, &g->ledger, g->choice->cost, state);
}

graft_status graft_guided_reopen(graft_env *env, graft_guided *g, const graft_blur *blurs,
                                 uint32_t count)
{
    const graft_place place = {&g->now.state, &g->now.matches, &g->environment->options.apply};
    graft_ledger_blur(&g->ledger, blurs, count);
    g->rows_number++;
    GRAFT_PASS(graft_appraisal_open(env, env->scratch, &g->ledger.tariff, &place, &g->appraisal));
    return graft_appraisal_refresh(env, &g->appraisal);
}

/* ----------------------------------------------------------------- estimates */

/* Room for what is remembered of each match of `now`. */
static void grow_looks(graft_guided *g)
{
    const uint32_t count = g->now.matches.item_count;
    if (g->looked_count < count) {
        const size_t room = 2 * (size_t)count;
        g->changes = GRAFT_NEW(g->now.arena, double, room);
        g->looked = GRAFT_NEW(g->now.arena, uint32_t, room);
        g->looked_by = GRAFT_NEW(g->now.arena, uint32_t, room);
        g->looked_count = 2 * count;
    }
}

/* What an action is believed to change, looked at anew. */
static graft_status look(graft_env *env, graft_guided *g, graft_action action, double *believed)
{
    const uint32_t item = graft_matches_index(&g->now.matches, action.xfer, action.location);
    graft_change change;
    GRAFT_PASS(graft_appraisal_look(env, &g->appraisal, action, &change));
    const double cost = (double)graft_change_doubted(&change);
    const bool guessed = change.added.fallback_nodes + change.removed.fallback_nodes > 0;
    *believed = g->rows_only && guessed ? unknown : cost / g->first_cost;
    g->changes[item] = *believed;
    g->looked[item] = g->now.matches.call;
    g->looked_by[item] = g->rows_number;
    return GRAFT_OK;
}

graft_status graft_guided_list(graft_env *env, graft_guided *g, uint32_t since,
                               graft_guided_option **list, uint32_t *count)
{
    const graft_matches *matches = &g->now.matches;
    GRAFT_PASS(graft_appraisal_renew(env, &g->appraisal));
    const graft_action *actions = graft_walker_list(&g->now, env->scratch, since, count);
    *list = GRAFT_NEW(env->scratch, graft_guided_option, *count);
    grow_looks(g);
    for (uint32_t i = 0; i < *count; i++) {
        const uint32_t item = graft_matches_index(matches, actions[i].xfer, actions[i].location);
        (*list)[i] = (graft_guided_option){actions[i], g->changes[item]};
        if (g->looked_by[item] != g->rows_number || g->looked[item] < matches->items[item].moved) {
            GRAFT_PASS(look(env, g, actions[i], &(*list)[i].change));
        }
    }
    return GRAFT_OK;
}

graft_guided_option *graft_guided_draw(graft_guided *g, graft_guided_option *list, uint32_t count,
                                       double temperature, bool level)
{
    double lowest = 0.0;
    double sum = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        lowest = fmin(lowest, list[i].change);
    }
    for (uint32_t pass = 0; pass < 2; pass++) {
        double left = pass == 0 ? HUGE_VAL : graft_rng_uniform(&g->rng) * sum;
        for (uint32_t i = 0; i < count; i++) {
            double over = level ? fmax(list[i].change, 0.0) : list[i].change - lowest;
            double weight = exp(-over / temperature);
            sum += pass == 0 ? weight : 0.0;
            left -= weight;
            if (left < 0.0) {
                return &list[i];
            }
        }
    }
    return &list[count - 1];
}

/* ----------------------------------------------------------------- rollouts */

/* Whether a rollout takes it: it gains, or it leaves less at no cost, as the engine simplifies. */
static bool is_wanted(const graft_guided *g, const graft_guided_option *option)
{
    return option->change < -least_gain ||
           (option->change <= 0.0 && g->is_always[option->action.xfer]);
}

static uint32_t keep_wanted(const graft_guided *g, graft_guided_option *list, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (is_wanted(g, &list[i])) {
            list[kept++] = list[i];
        }
    }
    return kept;
}

graft_guided_option *graft_guided_lowest(graft_guided_option *list, uint32_t count)
{
    graft_guided_option *best = list;
    for (uint32_t i = 1; i < count; i++) {
        best = list[i].change < best->change ? &list[i] : best;
    }
    return best;
}

/* One step of a rollout; *taken: there was one. */
static graft_status roll_on(graft_env *env, graft_guided *g, uint32_t since, double temperature,
                            bool *taken)
{
    GRAFT_SCOPED(env->scratch);
    graft_guided_option *list = NULL;
    uint32_t count = 0;
    *taken = false;
    GRAFT_PASS(graft_guided_list(env, g, since, &list, &count));
    count = keep_wanted(g, list, count);
    while (count > 0 && !*taken) {
        graft_guided_option *next = temperature > 0.0
                                        ? graft_guided_draw(g, list, count, temperature, false)
                                        : graft_guided_lowest(list, count);
        GRAFT_PASS(look(env, g, next->action, &next->change));
        *taken = is_wanted(g, next);
        if (*taken) {
            GRAFT_PASS(graft_walker_take(env, &g->now, next->action, 0.0));
        } else {
            *next = list[--count];
        }
    }
    return GRAFT_OK;
}

graft_status graft_guided_roll(graft_env *env, graft_guided *g, uint32_t since, double temperature)
{
    bool taken = true;
    for (uint32_t n = 0; n < g->environment->options.step_limit && taken; n++) {
        GRAFT_PASS(roll_on(env, g, since, temperature, &taken));
        GRAFT_PASS(graft_search_go_on(env));
    }
    return GRAFT_OK;
}

/* Prices `now`, unless it is the graph that was priced last, and takes it when it is the best.
 * Rows learn from it. */
static graft_status judge_rollout(graft_env *env, graft_guided *g, bool *better)
{
    uint64_t hash = graft_state_hash(&g->now.state);
    *better = false;
    if (hash == g->last_hash) {
        return GRAFT_OK;
    }
    g->last_hash = hash;
    GRAFT_PASS(graft_guided_price(env, g));
    *better = g->now.cost_ns < g->best.cost_ns;
    if (*better && g->kept != NULL) {
        g->refined = graft_ledger_copy(g->kept, &g->ledger);
    }
    GRAFT_PASS(graft_guided_learn(env, g, &g->now.state));
    if (*better) {
        GRAFT_PASS(graft_walker_join(env, &g->best, &g->now));
    }
    return GRAFT_OK;
}

graft_status graft_guided_roll_out(graft_env *env, graft_guided *g, const graft_blur *blurs,
                                   uint32_t count, double temperature, bool *better)
{
    GRAFT_SCOPED(env->scratch);
    GRAFT_PASS(graft_guided_reopen(env, g, blurs, count));
    GRAFT_PASS(graft_guided_roll(env, g, 0, temperature));
    return judge_rollout(env, g, better);
}

int graft_guided_compare(const void *a, const void *b)
{
    const graft_guided_option *x = a;
    const graft_guided_option *y = b;
    return (x->change > y->change) - (x->change < y->change);
}

/* guided_local.c - search around the best graph (see guided_internal.h): single rewrites, and
 * iterated local search, where one price is asked for several rewrites together. */
#include "train/search/guided_internal.h"

#include <stdlib.h>

/* Rewrites of a kick; limits of steps that a way may have; rewrites by one rule. */
enum { KICKS_MOST = 4, LONG_WAYS = 2, EVERYWHERE_MOST = 64 };

graft_status graft_guided_sweep(graft_env *env, graft_guided *g, uint64_t most)
{
    const uint64_t end = g->found->evaluations + most;
    bool found = true;
    while (found && !graft_guided_is_over(g) && g->found->evaluations < end) {
        graft_mark mark = graft_arena_mark(env->scratch);
        graft_guided_option *list = NULL;
        uint32_t count = 0;
        found = false;
        GRAFT_PASS(graft_guided_reopen(env, g, NULL, 0));
        GRAFT_PASS(graft_guided_list(env, g, 0, &list, &count));
        qsort(list, count, sizeof *list, graft_guided_compare);
        for (uint32_t i = 0; i < count && !found; i++) {
            double ns = 0.0;
            if (graft_guided_is_over(g) || g->found->evaluations >= end) {
                break;
            }
            if (graft_walker_was_tried(&g->now, &g->tried, list[i].action)) {
                continue;
            }
            GRAFT_PASS(graft_walker_price(env, &g->now, list[i].action, &ns));
            if (ns < g->now.cost_ns) {
                found = true;
                GRAFT_PASS(graft_walker_take(env, &g->now, list[i].action, ns));
            }
        }
        graft_arena_release(env->scratch, mark);
        GRAFT_PASS(graft_search_go_on(env));
    }
    if (g->now.cost_ns < g->best.cost_ns) {
        GRAFT_PASS(graft_walker_join(env, &g->best, &g->now));
        GRAFT_PASS(graft_guided_learn(env, g, &g->best.state));
    }
    return GRAFT_OK;
}

/* A few rewrites in one place, drawn by their estimates. */
static graft_status kick(graft_env *env, graft_guided *g, uint32_t *since)
{
    static const double temperatures[] = {3e-4, 3e-3, 3e-2};
    const uint32_t kicks = 1 + graft_rng_below(&g->rng, KICKS_MOST);
    const double temperature = temperatures[graft_rng_below(&g->rng, 3)];
    *since = g->now.matches.call + 1;
    for (uint32_t i = 0; i < kicks; i++) {
        graft_mark mark = graft_arena_mark(env->scratch);
        graft_guided_option *list = NULL;
        uint32_t count = 0;
        GRAFT_PASS(graft_guided_list(env, g, i == 0 ? 0 : *since, &list, &count));
        if (count > 0) {
            const graft_guided_option *next = graft_guided_draw(g, list, count, temperature, true);
            GRAFT_PASS(graft_walker_take(env, &g->now, next->action, 0.0));
        }
        graft_arena_release(env->scratch, mark);
        if (count == 0) {
            break;
        }
    }
    return GRAFT_OK;
}

/* The same rule wherever it fits, beginning with one drawn by the estimates. */
static graft_status kick_everywhere(graft_env *env, graft_guided *g)
{
    uint32_t xfer = 0;
    uint32_t taken = 0;
    bool more = true;
    for (; more && taken < EVERYWHERE_MOST; taken++) {
        GRAFT_SCOPED(env->scratch);
        graft_guided_option *list = NULL;
        uint32_t count = 0;
        GRAFT_PASS(graft_guided_list(env, g, 0, &list, &count));
        if (taken > 0) {
            uint32_t kept = 0;
            for (uint32_t i = 0; i < count; i++) {
                if (list[i].action.xfer == xfer) {
                    list[kept++] = list[i];
                }
            }
            count = kept;
        }
        more = count > 0;
        if (more) {
            const graft_guided_option *next = taken > 0
                                                  ? graft_guided_lowest(list, count)
                                                  : graft_guided_draw(g, list, count, 3e-3, true);
            xfer = next->action.xfer;
            GRAFT_PASS(graft_walker_take(env, &g->now, next->action, 0.0));
        }
    }
    return GRAFT_OK;
}

/* Leaves `now` somewhere near: a few rewrites in one place, as they are or with what gains there
 * after them; or further away, a rule everywhere, or what gains by rows that are much blurred, and
 * then what gains by the rows. */
static graft_status leave(graft_env *env, graft_guided *g)
{
    enum { BARE, BLURRED, SETTLED, EVERYWHERE, FAR, WAYS };
    const uint32_t way = graft_rng_below(&g->rng, WAYS);
    const graft_blur blur = {graft_rng_next(&g->rng), way == FAR ? 0.2 : 0.05, false};
    uint32_t since = 0;
    GRAFT_PASS(graft_guided_reopen(env, g, &blur, way == BLURRED || way == FAR ? 1 : 0));
    if (way == FAR) {
        GRAFT_PASS(graft_guided_roll(env, g, 0, 0.0));
        GRAFT_PASS(graft_guided_reopen(env, g, NULL, 0));
    } else if (way == EVERYWHERE) {
        GRAFT_PASS(kick_everywhere(env, g));
    } else {
        GRAFT_PASS(kick(env, g, &since));
    }
    if (way != BARE) {
        GRAFT_PASS(graft_guided_roll(env, g, since, 0.0));
    }
    return GRAFT_OK;
}

/* One round of iterated local search from `now`, which is the best graph or as good. */
static graft_status try_kick(graft_env *env, graft_guided *g, bool *better)
{
    GRAFT_SCOPED(env->scratch);
    const uint64_t before = graft_state_hash(&g->now.state);
    const double before_ns = g->now.cost_ns;
    *better = false;
    GRAFT_PASS(leave(env, g));
    const uint64_t hash = graft_state_hash(&g->now.state);
    if (hash == before || hash == g->last_hash) {
        g->now.cost_ns = before_ns;
        if (hash != before) {
            GRAFT_PASS(graft_walker_join(env, &g->now, &g->best));
        }
        return GRAFT_OK;
    }
    g->last_hash = hash;
    GRAFT_PASS(graft_guided_price(env, g));
    *better = g->now.cost_ns < g->best.cost_ns;
    const uint32_t longest = g->best.step_count + LONG_WAYS * g->environment->options.step_limit;
    if (*better) {
        GRAFT_PASS(graft_guided_learn(env, g, &g->now.state));
        GRAFT_PASS(graft_walker_join(env, &g->best, &g->now));
    } else if (g->now.cost_ns > g->best.cost_ns || g->now.step_count > longest) {
        GRAFT_PASS(graft_walker_join(env, &g->now, &g->best));
    }
    return GRAFT_OK;
}

/* After a gain the same may pay elsewhere: rows have learnt of it. */
static graft_status spread(graft_env *env, graft_guided *g)
{
    bool better = false;
    GRAFT_PASS(graft_guided_roll_out(env, g, NULL, 0, 0.0, &better));
    return graft_walker_join(env, &g->now, &g->best);
}

graft_status graft_guided_iterate(graft_env *env, graft_guided *g)
{
    const uint64_t attempts_most = 16 * g->choice->graphs;
    GRAFT_PASS(graft_walker_join(env, &g->now, &g->best));
    for (uint64_t i = 0; i < attempts_most && g->now.matches.count > 0 && !graft_guided_is_over(g);
         i++) {
        bool better = false;
        GRAFT_PASS(try_kick(env, g, &better));
        if (better && !graft_guided_is_over(g)) {
            GRAFT_PASS(spread(env, g));
        }
        GRAFT_PASS(graft_search_go_on(env));
    }
    return GRAFT_OK;
}

/* iterated.c - iterated local search (Lourenco, Martin and Stutzle, "Iterated local search", 2003):
 * from the best graph known, which is greedy's at first, a few random rewrites in one place, each
 * beside the one before; then, there, whatever gains most, until nothing does. What comes out is
 * the best graph from now on unless it is dearer. */
#include "train/search/walker.h"

#include "graph/base/log.h"

enum { KICKS_MOST = 4 };

typedef struct {
    graft_walker best;
    graft_walker now;
    graft_rng rng;
} iteration;

/* Random rewrites, the later ones beside the earlier ones. Sets *since to the call that the first
 * of them made. */
static graft_status kick(graft_env *env, iteration *it, uint32_t *since)
{
    GRAFT_SCOPED(env->scratch);
    uint32_t kicks = 1 + graft_rng_below(&it->rng, KICKS_MOST);
    *since = it->now.matches.call + 1;
    for (uint32_t i = 0; i < kicks; i++) {
        uint32_t count = 0;
        double ns = 0.0;
        const graft_action *actions =
            graft_walker_list(&it->now, env->scratch, i == 0 ? 0 : *since, &count);
        if (count == 0) {
            break;
        }
        graft_action action = actions[graft_rng_below(&it->rng, count)];
        GRAFT_PASS(graft_walker_price(env, &it->now, action, &ns));
        GRAFT_PASS(graft_walker_take(env, &it->now, action, ns));
    }
    return GRAFT_OK;
}

static graft_status iterate(graft_env *env, iteration *it, const graft_environment *environment,
                            const graft_search_choice *choice, graft_plan_found *found)
{
    graft_progress progress;
    const uint64_t most = found->evaluations + choice->graphs;
    graft_progress_start(&progress, env, "iterated search", "graphs", most);
    while (found->evaluations < most && it->now.matches.count > 0 &&
           !graft_search_is_over(environment, found)) {
        uint32_t since = 0;
        GRAFT_PASS(graft_search_go_on(env));
        GRAFT_PASS(kick(env, it, &since));
        GRAFT_PASS(graft_walker_settle(env, &it->now, since));
        bool keep = it->now.cost_ns < it->best.cost_ns ||
                    (it->now.cost_ns == it->best.cost_ns &&
                     it->now.step_count < found->step_count + environment->options.step_limit);
        if (keep) {
            GRAFT_PASS(graft_walker_join(env, &it->best, &it->now));
        } else {
            GRAFT_PASS(graft_walker_join(env, &it->now, &it->best));
        }
        graft_progress_update(&progress, found->evaluations, NULL);
    }
    graft_progress_finish(&progress);
    return GRAFT_OK;
}

graft_status graft_search_iterated(graft_env *env, graft_arena *arena,
                                   graft_environment *environment,
                                   const graft_search_choice *choice, graft_plan_found *found)
{
    uint64_t start_ns = graft_clock_ns();
    GRAFT_ARENA(own, (size_t)1 << 20);
    iteration *it = GRAFT_NEW(own, iteration, 1);
    graft_rng_seed(&it->rng, choice->seed);
    GRAFT_PASS(graft_search_greedy(env, arena, environment, NULL, found));
    GRAFT_PASS(graft_walker_open(env, own, environment, found, &it->best));
    GRAFT_PASS(graft_walker_open(env, own, environment, found, &it->now));
    GRAFT_PASS(graft_walker_follow(env, &it->best, found->steps, found->step_count));
    GRAFT_PASS(graft_walker_join(env, &it->now, &it->best));
    GRAFT_PASS(iterate(env, it, environment, choice, found));
    graft_walker_keep(&it->best, arena, found);
    found->seconds = (double)(graft_clock_ns() - start_ns) / 1e9;
    return GRAFT_OK;
}

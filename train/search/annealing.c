/* annealing.c - simulated annealing (Kirkpatrick, Gelatt and Vecchi, "Optimization by simulated
 * annealing", 1983): a random rewrite is taken when it gains, and otherwise with probability
 * exp(-loss / temperature). The temperature falls geometrically with the graphs that were priced.
 *
 * Rewrites that change nothing of the cost are always taken, so a way can become long: when it has
 * grown far beyond the best one known, the walk goes on from there. */
#include "train/search/walker.h"

#include "graph/base/log.h"

#include <math.h>

/* The last temperature, as a part of the first; how often the environment's limit of steps a way
 * may have. */
static const double last_part = 0.01;
enum { LONG_WAYS = 4 };

typedef struct {
    graft_walker now;
    graft_walker best;
    graft_rng rng;
} annealing;

static graft_status move(graft_env *env, annealing *a, double temperature_ns)
{
    double ns = 0.0;
    const graft_action action = graft_matches_draw(&a->now.matches, &a->rng);
    GRAFT_PASS(graft_walker_price(env, &a->now, action, &ns));
    double loss_ns = ns - a->now.cost_ns;
    if (loss_ns <= 0.0 || graft_rng_uniform(&a->rng) < exp(-loss_ns / temperature_ns)) {
        GRAFT_PASS(graft_walker_take(env, &a->now, action, ns));
    }
    if (a->now.cost_ns < a->best.cost_ns) {
        GRAFT_PASS(graft_walker_join(env, &a->best, &a->now));
    }
    return GRAFT_OK;
}

graft_status graft_search_annealing(graft_env *env, graft_arena *arena,
                                    graft_environment *environment,
                                    const graft_search_choice *choice, graft_plan_found *found)
{
    uint64_t start_ns = graft_clock_ns();
    GRAFT_ARENA(own, (size_t)1 << 20);
    graft_progress progress;
    annealing *a = GRAFT_NEW(own, annealing, 1);
    const double first_ns = choice->temperature * environment->first_ns;
    const uint32_t longest = LONG_WAYS * environment->options.step_limit;
    *found = (graft_plan_found){.cost_ns = environment->first_ns};
    graft_rng_seed(&a->rng, choice->seed);
    graft_progress_start(&progress, env, "annealing", "graphs", choice->graphs);
    GRAFT_PASS(graft_walker_open(env, own, environment, found, &a->now));
    GRAFT_PASS(graft_walker_open(env, own, environment, found, &a->best));
    while (found->evaluations < choice->graphs && !graft_search_is_over(environment, found)) {
        double part = (double)found->evaluations / (double)choice->graphs;
        if (a->now.matches.count == 0 || a->now.step_count > a->best.step_count + longest) {
            if (a->best.matches.count == 0) {
                break;
            }
            GRAFT_PASS(graft_walker_join(env, &a->now, &a->best));
        }
        GRAFT_PASS(graft_search_go_on(env));
        GRAFT_PASS(move(env, a, first_ns * pow(last_part, part)));
        graft_progress_update(&progress, found->evaluations, NULL);
    }
    graft_progress_finish(&progress);
    graft_walker_keep(&a->best, arena, found);
    found->seconds = (double)(graft_clock_ns() - start_ns) / 1e9;
    return GRAFT_OK;
}

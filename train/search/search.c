/* search.c - see search.h: random search and plans. The others are in files of their own. */
#include "train/search/search.h"

#include "graph/base/log.h"

#include <string.h>

graft_status graft_search_go_on(graft_env *env)
{
    return graft_interrupted() ? GRAFT_FAIL(env, GRAFT_INTERRUPTED, "interrupted while searching")
                               : GRAFT_OK;
}

bool graft_search_is_over(const graft_environment *environment, graft_plan_found *found)
{
    uint64_t deadline_ns = environment->options.deadline_ns;
    bool over = deadline_ns > 0 && graft_clock_ns() >= deadline_ns;
    found->cut = found->cut || over;
    return over;
}

graft_status graft_search_random(graft_env *env, graft_arena *arena, graft_environment *environment,
                                 const graft_search_choice *choice, graft_plan_found *found)
{
    uint64_t start_ns = graft_clock_ns();
    graft_rng rng;
    graft_rng_seed(&rng, choice->seed);
    GRAFT_SCOPED(env->scratch);
    *found = (graft_plan_found){.cost_ns = environment->first_ns};
    found->steps = GRAFT_NEW(arena, graft_action, environment->options.step_limit);
    graft_action *walk = GRAFT_NEW(env->scratch, graft_action, environment->options.step_limit);
    for (uint64_t e = 0; e < choice->episodes && !graft_search_is_over(environment, found); e++) {
        GRAFT_PASS(graft_search_go_on(env));
        GRAFT_PASS(graft_environment_reset(env, environment));
        for (uint32_t n = 0; !environment->terminal; n++) {
            graft_outcome step;
            walk[n] = graft_matches_draw(&environment->matches, &rng);
            GRAFT_PASS(
                graft_environment_step(env, environment, walk[n].xfer, walk[n].location, &step));
            found->evaluations++;
            if (environment->cost_ns < found->cost_ns) {
                found->step_count = n + 1;
                memcpy(found->steps, walk, found->step_count * sizeof *walk);
                found->cost_ns = environment->cost_ns;
            }
        }
    }
    found->at_rest = true; /* A baseline: greedy search adds nothing to it, nor takes it away. */
    found->seconds = (double)(graft_clock_ns() - start_ns) / 1e9;
    return GRAFT_OK;
}

/* Limits are there to bound exploring: a plan may be longer, or lead over dearer graphs. */
graft_status graft_plan_replay(graft_env *env, graft_environment *environment,
                               const graft_action *steps, uint32_t step_count)
{
    graft_status status = GRAFT_OK;
    const graft_environment_options options = environment->options;
    environment->options.cost_limit = 0;
    environment->options.step_limit = UINT32_MAX;
    GRAFT_CHECK(graft_environment_reset(env, environment));
    for (uint32_t i = 0; i < step_count; i++) {
        graft_outcome outcome;
        GRAFT_TRY(
            env,
            graft_environment_step(env, environment, steps[i].xfer, steps[i].location, &outcome),
            "at step %u of a plan", i);
    }
done:
    environment->options = options;
    return status;
}

/* searches.c - see searches.h. */
#include "emit/command/searches.h"

#include <assert.h>
#include <string.h>

/* What runs, on what, with what. */
typedef struct {
    graft_arena *arena;
    graft_environment *environment;
    const graft_agent_settings *settings;
    const graft_search_choice *choice;
} search_run;

static uint64_t choose(uint64_t asked, graft_setting_integer otherwise)
{
    return asked > 0 ? asked : (uint64_t)otherwise;
}

static graft_status search_random(graft_env *env, const search_run *run, graft_plan_found *found)
{
    graft_status status = graft_search_random(
        env, run->arena, run->environment, (uint32_t)run->settings->search_random_episodes,
        choose(run->choice->seed, run->settings->environment_seed), found);
    found->at_rest = true; /* A baseline: greedy search adds nothing to it, nor takes it away. */
    return status;
}

static graft_status search_greedy(graft_env *env, const search_run *run, graft_plan_found *found)
{
    return graft_search_greedy(env, run->arena, run->environment, found);
}

static graft_status search_escape(graft_env *env, const search_run *run, graft_plan_found *found)
{
    return graft_search_escape(env, run->arena, run->environment, found);
}

static graft_status search_annealing(graft_env *env, const search_run *run, graft_plan_found *found)
{
    const graft_annealing_options options = {
        .graphs = choose(run->choice->graphs, run->settings->search_annealing_graphs),
        .temperature = run->settings->search_annealing_temperature,
        .seed = choose(run->choice->seed, run->settings->environment_seed)};
    return graft_search_annealing(env, run->arena, run->environment, &options, found);
}

static graft_status search_iterated(graft_env *env, const search_run *run, graft_plan_found *found)
{
    const graft_iterated_options options = {
        .graphs = choose(run->choice->graphs, run->settings->search_iterated_graphs),
        .seed = choose(run->choice->seed, run->settings->environment_seed)};
    return graft_search_iterated(env, run->arena, run->environment, &options, found);
}

static graft_status search_backtracking(graft_env *env, const search_run *run,
                                        graft_plan_found *found)
{
    const graft_backtracking_options options = {
        .alpha = run->settings->search_alpha,
        .dequeue_limit = (uint32_t)choose(run->choice->dequeues, run->settings->search_dequeues)};
    return graft_search_backtracking(env, run->arena, run->environment, &options, found);
}

static graft_status search_beam(graft_env *env, const search_run *run, graft_plan_found *found)
{
    const graft_beam_options options = {
        .width = (uint32_t)choose(run->choice->width, run->settings->search_beam_width),
        .patience = (uint32_t)run->settings->search_beam_patience};
    return graft_search_beam(env, run->arena, run->environment, &options, found);
}

static graft_status search_guided(graft_env *env, const search_run *run, graft_plan_found *found)
{
    const graft_search_choice *choice = run->choice;
    const graft_guided_options options = {
        .tariff = choice->tariff,
        .cost = choice->cost,
        .graphs = choose(choice->graphs, GRAFT_GUIDED_GRAPHS),
        .temperature = choice->temperature > 0.0 ? choice->temperature : 1.0,
        .seed = choose(choice->seed, run->settings->environment_seed)};
    return graft_search_guided(env, run->arena, run->environment, &options, found);
}

static const struct {
    const char *name;
    graft_status (*search)(graft_env *env, const search_run *run, graft_plan_found *found);
} searches[] = {
    {"greedy",       search_greedy      },
    {"escape",       search_escape      },
    {"annealing",    search_annealing   },
    {"iterated",     search_iterated    },
    {"backtracking", search_backtracking},
    {"beam",         search_beam        },
    {"guided",       search_guided      },
    {"random",       search_random      },
};

enum { SEARCH_COUNT = sizeof(searches) / sizeof(searches[0]) };

/* SEARCH_COUNT when there is none of that name. */
static size_t find_search(const char *name)
{
    size_t i = 0;
    while (i < SEARCH_COUNT && strcmp(name, searches[i].name) != 0) {
        i++;
    }
    return i;
}

graft_status graft_search_run(graft_env *env, graft_arena *arena, graft_environment *environment,
                              const graft_agent_settings *settings,
                              const graft_search_choice *choice, graft_plan_found *found)
{
    const search_run run = {arena, environment, settings, choice};
    const size_t number = find_search(choice->name);
    assert(number < SEARCH_COUNT);
    return searches[number].search(env, &run, found);
}

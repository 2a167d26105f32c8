/* searches.c - see searches.h. */
#include "emit/command/searches.h"

#include <assert.h>
#include <string.h>

static uint64_t choose(uint64_t asked, uint64_t otherwise) { return asked > 0 ? asked : otherwise; }

graft_status graft_search_run(graft_env *env, graft_arena *arena, graft_environment *environment,
                              const graft_agent_settings *settings,
                              const graft_search_choice *choice, graft_plan_found *found)
{
    const struct {
        const char *name;
        graft_search *search;
        graft_setting_integer graphs; /* Where nothing else is asked for. */
        double temperature;
    } searches[] = {
        {"greedy",       graft_search_greedy,       0,                                 0.0},
        {"escape",       graft_search_escape,       0,                                 0.0},
        {"annealing",    graft_search_annealing,    settings->search_annealing_graphs,
         settings->search_annealing_temperature                                           },
        {"iterated",     graft_search_iterated,     settings->search_iterated_graphs,  0.0},
        {"backtracking", graft_search_backtracking, 0,                                 0.0},
        {"beam",         graft_search_beam,         0,                                 0.0},
        {"guided",       graft_search_guided,       GRAFT_GUIDED_GRAPHS,               1.0},
        {"random",       graft_search_random,       0,                                 0.0},
        {"saturation",   graft_search_saturation,   0,                                 0.0},
    };
    graft_search_choice complete = *choice;
    size_t i = 0;
    while (strcmp(choice->name, searches[i].name) != 0) {
        i++;
        assert(i < sizeof searches / sizeof searches[0]);
    }
    complete.episodes = (uint64_t)settings->search_random_episodes;
    complete.graphs = choose(choice->graphs, (uint64_t)searches[i].graphs);
    complete.seed = choose(choice->seed, (uint64_t)settings->environment_seed);
    complete.temperature =
        choice->temperature > 0.0 ? choice->temperature : searches[i].temperature;
    complete.dequeues = choose(choice->dequeues, (uint64_t)settings->search_dequeues);
    complete.alpha = settings->search_alpha;
    complete.width = choose(choice->width, (uint64_t)settings->search_beam_width);
    complete.patience = (uint64_t)settings->search_beam_patience;
    return searches[i].search(env, arena, environment, &complete, found);
}

/* search.h - the baselines that a policy must beat: random, greedy, greedy with escape, simulated
 * annealing, iterated local search, beam search, equality saturation, and TASO's cost-based
 * backtracking (Jia et al., SOSP 2019, section 5; the dissertation's Algorithm 2).
 *
 * All of them use the environment's rules, costs, masks and limits. A plan is the list of actions
 * that leads from the first graph to the best one found; replaying it in the environment, or in the
 * engine, gives that graph again. */
#pragma once

#include "graph/base/rng.h"
#include "train/search/environment.h"

typedef struct graft_plan_found {
    double cost_ns;
    graft_action *steps;  /* In the arena given. */
    uint64_t evaluations; /* Graphs whose cost was asked for. */
    uint64_t dequeues;    /* Graphs expanded (backtracking and beam search). */
    double seconds;
    uint32_t step_count;
    bool cut; /* The environment's deadline ended the search: it depends on the machine's speed. */
    bool at_rest; /* Greedy search found nothing more at its graph, or is not to look. */
} graft_plan_found;

/* What a search is told; each reads what is of its kind. graft_search_run (emit/command/searches.h)
 * takes what is 0 from the settings. */
typedef struct graft_search_choice {
    const char *name;
    uint64_t seed;     /* Of what is random. */
    uint64_t episodes; /* Of random search. */
    uint64_t graphs;   /* Of annealing, guided search, and iterated search behind greedy: priced. */
    double temperature; /* Of annealing and guided search, see there. */
    uint64_t dequeues;  /* Of backtracking; TASO's budget is 1000. */
    double alpha;       /* Of it: graphs dearer than so many times the best are not queued; 1.05. */
    uint64_t width;     /* Of beam search: graphs kept per level; at least 1. */
    uint64_t patience;  /* Of it: levels without a cheaper graph after which it ends. */
    const struct graft_tariff *tariff; /* Of guided search: where it begins... */
    struct graft_cost *cost;           /* ...and what nodes of priced graphs cost; of saturation
                                          likewise, or NULL: the environment's price alone. */
} graft_search_choice;

/* Searches from the environment's first graph; the plan is in `arena`. `choice` may be NULL where
 * nothing is of its kind: of greedy search and escape. */
typedef GRAFT_MUST_USE graft_status graft_search(graft_env *env, graft_arena *arena,
                                                 graft_environment *environment,
                                                 const graft_search_choice *choice,
                                                 graft_plan_found *found);

/* A search that is interrupted fails: what it found is not what its budget would have found. The
 * check that all of them make: GRAFT_INTERRUPTED, or GRAFT_OK. */
GRAFT_MUST_USE graft_status graft_search_go_on(graft_env *env);
/* Whether the deadline of the environment's options has passed; noted in `found`. What a search has
 * found by then is its result. */
bool graft_search_is_over(const graft_environment *environment, graft_plan_found *found);

/* Whether a gain is what a search must bring: as much as the environment's options ask for, and
 * more than the noise of its price between the two graphs. */
GRAFT_MUST_USE graft_status graft_search_pays(graft_env *env, const graft_environment *environment,
                                              const graft_state *before, const graft_state *after,
                                              double gain_ns, bool *pays);

/* The best of `episodes` episodes of uniformly random legal rules and locations, each stopped at
 * its own cheapest graph. */
graft_search graft_search_random;
/* Takes the action with the lowest resulting cost until none lowers it by what the environment's
 * options and the noise of its price ask for; ties go to the lowest (xfer, location). Before each,
 * where the price tells forms, whatever makes the form better at no cost. */
graft_search graft_search_greedy;

/* Greedy; and where nothing gains by itself, up to three rewrites that overlap and pay together,
 * and then on: see escape.c. */
graft_search graft_search_escape;

/* The first temperature is a part of the first graph's cost; 3e-4. */
graft_search graft_search_annealing;

/* Iterated local search from greedy's result. */
graft_search graft_search_iterated;

/* Equality saturation: rewrites an e-graph that holds all graphs at once, takes a cheap one of them
 * by what nodes cost, and goes there step by step: see saturation.c. found->evaluations counts
 * nodes that were priced alone, too. */
graft_search graft_search_saturation;

/* Goes on from a plan's graph with what makes the form better at no cost, and nothing else. The
 * found graph is the environment's state afterwards. */
GRAFT_MUST_USE graft_status graft_search_tidy(graft_env *env, graft_arena *arena,
                                              graft_environment *environment,
                                              graft_plan_found *found);
/* What any other search found, held to the same: a plan that gains too little as a whole becomes
 * none; then it goes on as greedy does. The found graph is the environment's state afterwards. */
GRAFT_MUST_USE graft_status graft_search_finish(graft_env *env, graft_arena *arena,
                                                graft_environment *environment,
                                                graft_plan_found *found);

/* Best-first search over graphs, each visited once. Memory grows with the dequeues. */
graft_search graft_search_backtracking;

/* Keeps the cheapest successors of a level, each graph once, as far as the environment's limit of
 * steps. Memory grows with levels times width. */
graft_search graft_search_beam;

/* Resets the environment and takes the steps of a plan, whatever its limits on steps and costs.
 * GRAFT_BAD_INPUT when one is not legal. */
GRAFT_MUST_USE graft_status graft_plan_replay(graft_env *env, graft_environment *environment,
                                              const graft_action *steps, uint32_t step_count);

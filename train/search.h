/* search.h - the baselines that a policy must beat: random, greedy, beam search, and TASO's
 * cost-based backtracking (Jia et al., SOSP 2019, section 5; the dissertation's Algorithm 2).
 *
 * All of them use the environment's rules, costs, masks and limits. A plan is the list of actions
 * that leads from the first graph to the best one found; replaying it in the environment, or in the
 * engine, gives that graph again. */
#ifndef GRAFT_TRAIN_SEARCH_H
#define GRAFT_TRAIN_SEARCH_H

#include "graph/rng.h"
#include "train/environment.h"

typedef struct graft_plan_found {
    double cost_ns;
    uint32_t step_count;
    graft_action *steps;  /* In the arena given. */
    uint64_t evaluations; /* Graphs whose cost was asked for. */
    uint64_t dequeues;    /* Graphs expanded (backtracking and beam search). */
    double seconds;
} graft_plan_found;

/* A search that is interrupted fails: what it found is not what its budget would have found. The
 * check that all of them make: GRAFT_INTERRUPTED, or GRAFT_OK. */
GRAFT_MUST_USE graft_status graft_search_go_on(graft_env *env);

/* The best of `episodes` episodes of uniformly random legal rules and locations, each stopped at
 * its own cheapest graph. */
GRAFT_MUST_USE graft_status graft_search_random(graft_env *env, graft_arena *arena,
                                                graft_environment *environment, uint32_t episodes,
                                                uint64_t seed, graft_plan_found *found);
/* Takes the action with the lowest resulting cost until none lowers it; ties go to the lowest
 * (xfer, location). */
GRAFT_MUST_USE graft_status graft_search_greedy(graft_env *env, graft_arena *arena,
                                                graft_environment *environment,
                                                graft_plan_found *found);

typedef struct graft_backtracking_options {
    double alpha;           /* Graphs dearer than alpha times the best are not queued; 1.05. */
    uint32_t dequeue_limit; /* TASO's budget; 1000. */
    double seconds_limit;   /* 0: none. A run that it cuts short is not reproducible. */
} graft_backtracking_options;

/* Best-first search over graphs, each visited once. Memory grows with the dequeues. */
GRAFT_MUST_USE graft_status graft_search_backtracking(graft_env *env, graft_arena *arena,
                                                      graft_environment *environment,
                                                      const graft_backtracking_options *options,
                                                      graft_plan_found *found);

typedef struct graft_beam_options {
    uint32_t width;    /* Graphs kept per level; at least 1. */
    uint32_t patience; /* Levels without a cheaper graph after which it ends. */
} graft_beam_options;

/* Keeps the cheapest successors of a level, each graph once, as far as the environment's limit of
 * steps. Memory grows with levels times width. */
GRAFT_MUST_USE graft_status graft_search_beam(graft_env *env, graft_arena *arena,
                                              graft_environment *environment,
                                              const graft_beam_options *options,
                                              graft_plan_found *found);

/* Resets the environment and takes the steps of a plan, whatever its limits on steps and costs;
 * `costs_ns` (NULL: not wanted) receives the cost after each. GRAFT_BAD_INPUT when one is not
 * legal. */
GRAFT_MUST_USE graft_status graft_plan_replay(graft_env *env, graft_environment *environment,
                                              const graft_action *steps, uint32_t step_count,
                                              double *costs_ns);

#endif

/* walker.h - a graph on its way through rewrites, for searches that go to and fro.
 *
 * It uses the rules, price and options of an environment, which it leaves alone, and remembers the
 * actions that led to where it is from the environment's first graph. */
#pragma once

#include "train/search/search.h"

typedef struct graft_walker {
    const graft_environment *environment;
    graft_arena *arena;
    graft_plan_found *found; /* Counts what is priced. */
    graft_state state;
    graft_state trial; /* A successor that was priced. */
    graft_matches matches;
    double cost_ns;
    graft_action *steps;
    uint32_t step_count;
    uint32_t step_capacity;
} graft_walker;

/* Opens a walker in `arena`, at the first graph. */
GRAFT_MUST_USE graft_status graft_walker_open(graft_env *env, graft_arena *arena,
                                              const graft_environment *environment,
                                              graft_plan_found *found, graft_walker *walker);
/* Goes to where another walker of the same environment is. */
GRAFT_MUST_USE graft_status graft_walker_join(graft_env *env, graft_walker *walker,
                                              const graft_walker *other);
/* Goes to where a plan leads. */
GRAFT_MUST_USE graft_status graft_walker_follow(graft_env *env, graft_walker *walker,
                                                const graft_action *steps, uint32_t step_count);
/* What the successor by an action costs; it is walker->trial then. Fails as the price does. */
GRAFT_MUST_USE graft_status graft_walker_price(graft_env *env, graft_walker *walker,
                                               graft_action action, double *ns);
/* Takes an action whose successor costs `ns`. */
GRAFT_MUST_USE graft_status graft_walker_take(graft_env *env, graft_walker *walker,
                                              graft_action action, double ns);
/* The legal actions in `arena`, by rule and location; with `recent` only those whose match, or what
 * is beside it, has changed by this or a later call of graft_matches_find; 0: all. */
graft_action *graft_walker_list(const graft_walker *walker, graft_arena *arena, uint32_t recent,
                                uint32_t *count);
/* Takes the action that gains most, among those that `since` gives above, until none gains. */
GRAFT_MUST_USE graft_status graft_walker_settle(graft_env *env, graft_walker *walker,
                                                uint32_t since);
/* Makes the walker's way the plan that was found, when it is cheaper. The plan is in `arena`. */
void graft_walker_keep(const graft_walker *walker, graft_arena *arena, graft_plan_found *found);

/* Actions of a walker's graphs that were looked at. */
typedef struct graft_tried {
    uint32_t *calls; /* By index of the matches: at whose graph it was; 0: none. */
    uint32_t count;
} graft_tried;
/* Whether an action was looked at since anything changed beside it; notes that it is now. */
bool graft_walker_was_tried(const graft_walker *walker, graft_tried *tried, graft_action action);

/* explored.h - the graphs that a search over rewrites has expanded, and how it got there.
 *
 * A successor is a number of an expanded graph, an action and a cost: its own bytes are made only
 * when it is expanded itself, by applying the action to its parent's stored graph. Graphs are told
 * apart by the engine's hash, and each is looked at once. */
#pragma once

#include "train/search/search.h"

#define GRAFT_EXPLORED_NONE UINT32_MAX

typedef struct graft_successor {
    double cost_ns;
    uint64_t serial; /* In the order in which they were found. */
    uint32_t parent; /* Number of an expanded graph. */
    graft_action action;
} graft_successor;

/* Cheaper first, then found earlier. */
bool graft_successor_before(const graft_successor *a, const graft_successor *b);

typedef struct graft_explored graft_explored;

/* What a search does with a successor that was not seen before; it is cheaper than every graph so
 * far when its cost is found->cost_ns. */
typedef void (*graft_explored_visit)(void *search, const graft_successor *successor);

/* Begins, in `arena`, at the environment's first graph, which is to be expanded first. Resets
 * *found, and keeps its cost up to date. */
graft_explored *graft_explored_open(graft_arena *arena, const graft_environment *environment,
                                    graft_plan_found *found);

/* Stores the graph of a successor (NULL: the first graph), prices those of its successors that are
 * new, and hands them to `visit`, by rule and location. Counts as a dequeue. Fails as the price
 * does, and with GRAFT_INTERRUPTED. */
GRAFT_MUST_USE graft_status graft_explored_expand(graft_env *env, graft_explored *explored,
                                                  const graft_successor *successor,
                                                  graft_explored_visit visit, void *search);
/* Writes the actions that lead to the best graph into the plan, in `arena`. */
void graft_explored_trace(graft_arena *arena, const graft_explored *explored);

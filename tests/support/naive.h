/* naive.h - matching and applying rules once more, in the plainest way: every assignment of graph
 * nodes to pattern nodes, a target that is built with graft_graph_add_node beside the source. The
 * engine is held against it. */
#pragma once

#include "graph/base/env.h"
#include "graph/base/rng.h"

/* Calls `found` for every match of `rule` in `graph`. Takes time exponential in the pattern's
 * nodes. */
void naive_match(const graft_graph *graph, const graft_order *order, const graft_rule *rule,
                 void (*found)(void *context, const graft_match *match), void *context);

/* Whether a variable of the match depends on a node of the match: where the engine may refuse. */
bool naive_is_tangled(const graft_graph *graph, const graft_order *order, const graft_rule *rule,
                      const graft_match *match);

/* A new graph with the match replaced; NULL when the target does not fit or closes a cycle. */
graft_graph *naive_apply(graft_arena *arena, const graft_graph *before, const graft_rule *rule,
                         const graft_match *match);

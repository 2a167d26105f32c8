/* equal.h - nodes that compute the same: the common subexpressions of a graph.
 *
 * Two nodes are equal when operator, attributes and operands are, operands counting as the same
 * when their nodes are equal. Equal weights are those of one value. Opaque nodes are equal to
 * nothing: one may draw random numbers. */
#pragma once

#include "graph/base/env.h"

/* By value: the equal one that is made first, itself when there is none. In `arena`; NULL when no
 * two nodes are equal. */
const graft_index *graft_equal_find(graft_arena *arena, const graft_graph *graph,
                                    const graft_order *order);
/* Whether another node that is equal to this one stands for it; `same` is what graft_equal_find
 * gave. */
static inline bool graft_equal_is_merged(const graft_graph *graph, const graft_index *same,
                                         graft_index node)
{
    return same != NULL && graph->nodes[node].output_count > 0 &&
           same[graft_node_output(graph, node, 0)] != graft_node_output(graph, node, 0);
}
/* Sets *graph and *order to a copy, in `arena`, where each set of equal nodes is the one of them
 * that is first in the order: it keeps its ids, and takes the readers of the others. An output of
 * the graph that another one made becomes its result, so two outputs may be one value. Where no two
 * nodes are equal, neither is touched. */
void graft_equal_merge(graft_arena *arena, const graft_graph **graph, const graft_order **order);

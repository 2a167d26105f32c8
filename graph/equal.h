/* equal.h - nodes that compute the same: the common subexpressions of a graph.
 *
 * Two nodes are equal when operator, attributes and operands are, operands counting as the same
 * when their nodes are equal. Equal weights are those of one value. Opaque nodes are equal to
 * nothing: one may draw random numbers. */
#ifndef GRAFT_EQUAL_H
#define GRAFT_EQUAL_H

#include "env.h"

/* Sets *graph and *order to a copy, in `arena`, where each set of equal nodes is the one of them
 * that is first in the order: it keeps its ids, and takes the readers of the others. An output of
 * the graph that another one made becomes its result, so two outputs may be one value. Where no two
 * nodes are equal, neither is touched. */
void graft_equal_merge(graft_arena *arena, const graft_graph **graph, const graft_order **order);

#endif

/* prepare.h - a graph as it is planned, priced and run.
 *
 * Equal nodes are one (graph/equal.h), nodes come in an order that reads weights while they are
 * near (recency.h), and opaque nodes that work on elements in any order are marked (layout.h). Ids
 * stay those of the graph that is prepared. */
#pragma once

#include "graph/model.h"

/* Replaces the graph, where nodes of it read or make numbers of 8 bits, by one in `arena` in which
 * these are opaque (graft_opaque_lower). */
void graft_prepare_bytes(graft_arena *arena, const graft_graph **graph);

/* Replaces both, where there is something to do, by others in `arena`. `model`: whose graph it is,
 * or NULL: then no node is marked. */
void graft_prepare_graph(graft_arena *arena, const graft_model *model, const graft_graph **graph,
                         const graft_order **order);

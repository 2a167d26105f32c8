/* recency.h - an order that reads weights while they are near: of products that can run now, first
 * the one whose weight was read last.
 *
 * A cell that is unrolled over time reads the same weights in every step. In the same order each
 * time, a weight is met again after all others were read, when a cache that they just fill has
 * dropped it; in turning directions the last ones are still there. And what such a cell multiplies
 * its inputs by can be read once for all steps: their results are small next to it, and wait. */
#pragma once

#include "cost/database/signature.h"
#include "graph/base/env.h"

/* Sets *order to such an order of `graph`, in `arena`; left as it is where no two products read
 * the same large weight. */
void graft_recency_order(graft_arena *arena, const graft_graph *graph, const graft_order **order);

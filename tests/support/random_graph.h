/* random_graph.h - random valid graphs over all operators, for tests that rewrite them.
 *
 * A graph grows node by node through graft_graph_add_*: a random operator, or the source pattern of
 * a random rule, around values that exist already; what is missing becomes a weight or an input.
 * Every node is run (evaluate.h) before it is added and dropped when its numbers would say nothing
 * or grow beyond RANDOM_GRAPH_MAGNITUDE, so the graph can be evaluated for the same sample. */
#pragma once

#include "graph/base/env.h"
#include "graph/base/rng.h"

/* Larger numbers would cost the shadows the digits that tell which of two numbers is larger. */
#define RANDOM_GRAPH_MAGNITUDE 1e4
/* Most elements of a tensor, and most operations of a node. */
enum { RANDOM_GRAPH_ELEMENTS = 512, RANDOM_GRAPH_FLOPS = 20000 };

typedef struct random_graph_options {
    const graft_rule *const *rules; /* Whose source patterns are planted: a third of the steps. */
    uint32_t rule_count;
    uint32_t node_count; /* The graph has a few more at most; at most 48. */
    uint64_t sample;     /* See evaluate_source. */
} random_graph_options;

/* A graph in `arena` with room for some 30 more nodes. Half of the time its ids have no order; some
 * graphs have gaps between them, some have dead nodes. */
graft_graph *random_graph_draw(graft_arena *arena, graft_rng *rng,
                               const random_graph_options *options);

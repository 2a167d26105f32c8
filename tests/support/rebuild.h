/* rebuild.h - copies of a graph: with other ids, in tight memory, with parts left out. What makes
 * failures small and shows that nothing depends on ids. */
#pragma once

#include "graph/base/file.h"
#include "graph/base/rng.h"

/* Limits that hold the graph's ids as they are, with room for `more` nodes and what they need. */
graft_limits rebuild_limits(const graft_graph *graph, graft_index more);
/* A copy with the same ids. */
graft_graph *rebuild_within(graft_arena *arena, const graft_graph *graph, graft_limits limits);
/* A copy with other ids: sources and nodes come in a random order that respects the wiring. Nodes
 * that no output needs and sources that nothing reads are left out. */
graft_graph *rebuild_shuffled(graft_arena *arena, graft_rng *rng, const graft_graph *graph);
/* A copy without node `node`: what it computed become new inputs of the same shapes, what it read
 * becomes outputs. */
graft_graph *rebuild_without_node(graft_arena *arena, const graft_graph *graph, graft_index node);
/* A copy without output number `output`. */
graft_graph *rebuild_without_output(graft_arena *arena, const graft_graph *graph,
                                    graft_index output);

/* The graph as text, a line per source, node and output. */
const char *rebuild_print(graft_arena *arena, const graft_graph *graph);

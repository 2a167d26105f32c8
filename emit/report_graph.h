/* report_graph.h - a graph as the data of a page, and as text for Graphviz. */
#ifndef GRAFT_EMIT_REPORT_GRAPH_H
#define GRAFT_EMIT_REPORT_GRAPH_H

#include "graph/json.h"
#include "graph/model.h"

/* Adds to `json` the list "before" or "after" (`key`): what runs at each inference, in order, between
 * the graph's inputs and outputs, each {"kind", "op", "name", "shape", "in": places in the list,
 * "step"}. `steps` has a step for each node, by id. To `dot` a digraph is appended whose nodes are
 * "n" and their place in the list. GRAFT_BAD_INPUT when the graph has a cycle. */
GRAFT_MUST_USE graft_status graft_report_graph(graft_env *env, const graft_model *model,
                                               const graft_graph *graph, const uint32_t *steps,
                                               const char *key, graft_json *json,
                                               graft_buffer *dot);

#endif

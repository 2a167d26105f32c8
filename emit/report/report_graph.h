/* report_graph.h - a graph as the data of a page, and as text for Graphviz. */
#pragma once

#include "graph/base/json.h"
#include "graph/model.h"

typedef struct graft_report_graph {
    const graft_model *model; /* That the graph is of, rewritten or not. */
    const graft_graph *graph;
    const uint32_t *steps; /* By node: the step that removed or made it (trace.h). */
} graft_report_graph;

/* Adds to `json` the list `key`: what runs at each inference, in order, between the graph's inputs
 * and outputs, each {"kind", "op", "name", "shape", "in": places in the list, "step"}. To `dot` a
 * digraph is appended whose nodes are "n" and their place in the list. GRAFT_BAD_INPUT when the
 * graph has a cycle. */
GRAFT_MUST_USE graft_status graft_report_graph_add(graft_env *env, const graft_report_graph *report,
                                                   const char *key, graft_json *json,
                                                   graft_buffer *dot);

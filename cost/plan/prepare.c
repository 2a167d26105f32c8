/* prepare.c - see prepare.h. */
#include "cost/plan/prepare.h"

#include "cost/plan/layout.h"
#include "cost/plan/recency.h"
#include "graph/equal.h"
#include "graph/opaque.h"

void graft_prepare_bytes(graft_arena *arena, const graft_graph **graph)
{
    graft_graph *lowered = NULL;
    for (graft_index n = 0; n < (*graph)->node_end; n++) {
        if (graft_opaque_is_byte(*graph, n)) {
            lowered = lowered == NULL ? graft_model_graph_copy(arena, *graph) : lowered;
            graft_opaque_lower(lowered, n);
        }
    }
    *graph = lowered == NULL ? *graph : lowered;
}

/* In a copy. */
static void mark_pointwise(graft_arena *arena, const graft_model *model, const graft_graph **graph)
{
    graft_graph *marked = NULL;
    graft_opaque opaque;
    for (graft_index n = 0; n < (*graph)->node_end; n++) {
        const graft_node *node = &(*graph)->nodes[n];
        if (node->op == GRAFT_OP_OPAQUE && !node->is_const &&
            graft_opaque_find(model, *graph, n, &opaque) && graft_opaque_is_pointwise(&opaque)) {
            marked = marked == NULL ? graft_model_graph_copy(arena, *graph) : marked;
            marked->nodes[n].attrs[0] = GRAFT_LAYOUT_POINTWISE;
        }
    }
    *graph = marked == NULL ? *graph : marked;
}

void graft_prepare_graph(graft_arena *arena, const graft_model *model, const graft_graph **graph,
                         const graft_order **order)
{
    graft_equal_merge(arena, graph, order);
    graft_recency_order(arena, *graph, order);
    if (model != NULL) {
        mark_pointwise(arena, model, graph);
    }
}

/* byte_groups.c - see byte_groups.h. */
#include "graph/byte_groups.h"

#include "graph/onnx/onnx_attribute.h"

#include <string.h>

typedef enum { COMPUTES, MOVES, QUANTISES, DEQUANTISES } role;

typedef struct {
    const graft_model *model;
    const graft_graph *graph;
    role *roles;   /* By node. */
    bool *from;    /* Likewise: it gives what was changed from 8 bits, as it was or moved. */
    bool *into;    /* It gives what only moves before it is changed to 8 bits, or does that. */
    bool *grouped; /* Likewise. */
} byte_groups;

static role role_of(const graft_model *model, const graft_node *node)
{
    static const char moving[] =
        "Concat Expand Flatten Gather Identity Reshape Slice Split Transpose Squeeze Unsqueeze";
    if (node->op != GRAFT_OP_OPAQUE) {
        return node->op == GRAFT_OP_quantise                                   ? QUANTISES
               : node->op == GRAFT_OP_dequantise                               ? DEQUANTISES
               : (graft_op(node->op)->flags & (uint32_t)GRAFT_FLAG_MOVES) != 0 ? MOVES
                                                                               : COMPUTES;
    }
    const char *type = graft_model_node_type(model, node);
    return strcmp(type, "QuantizeLinear") == 0     ? QUANTISES
           : strcmp(type, "DequantizeLinear") == 0 ? DEQUANTISES
           : graft_onnx_lists(moving, type)        ? MOVES
                                                   : COMPUTES;
}

/* The node that makes operand `k`; GRAFT_NONE: none does, or there is no such operand. */
static graft_index producer(const graft_graph *graph, graft_index node, uint32_t k)
{
    const graft_index v = graft_node_input(graph, node, k);
    return v != GRAFT_NONE && graph->values[v].kind == GRAFT_VALUE_COMPUTED ? graph->values[v].node
                                                                            : GRAFT_NONE;
}

/* Producers come first. */
static void follow_down(byte_groups *g, graft_index node)
{
    bool reads = false;
    for (uint32_t k = 0; k < g->graph->nodes[node].input_count; k++) {
        const graft_index before = producer(g->graph, node, k);
        reads = reads || (before != GRAFT_NONE && g->from[before]);
    }
    g->from[node] = g->roles[node] == DEQUANTISES || (g->roles[node] == MOVES && reads);
    g->grouped[node] = reads || g->roles[node] >= QUANTISES;
}

/* Readers come first. */
static void follow_up(byte_groups *g, graft_index node)
{
    const uint32_t count = g->graph->nodes[node].input_count;
    g->into[node] = g->into[node] || g->roles[node] == QUANTISES;
    for (uint32_t k = 0; g->into[node] && k < (g->roles[node] == QUANTISES ? 1 : count); k++) {
        const graft_index before = producer(g->graph, node, k);
        if (before != GRAFT_NONE) {
            g->grouped[before] = true;
            g->into[before] = g->roles[before] == MOVES;
        }
    }
}

static bool find_roles(byte_groups *g, const graft_order *order)
{
    bool changes = false;
    for (graft_index i = 0; i < order->count; i++) {
        const graft_index n = order->order[i];
        g->roles[n] = role_of(g->model, &g->graph->nodes[n]);
        changes = changes || g->roles[n] >= QUANTISES;
    }
    return changes;
}

/* What a node of the file became is in a group as a whole. */
static void group_wholes(graft_arena *arena, byte_groups *g, const graft_order *order)
{
    const graft_model_record *records = g->model->records;
    uint32_t count = 0;
    for (uint32_t r = 0; r < g->model->record_count; r++) {
        count = records[r].onnx_node >= count ? records[r].onnx_node + 1 : count;
    }
    bool *wholes = GRAFT_NEW(arena, bool, count);
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (graft_index i = 0; i < order->count; i++) {
            const graft_index n = order->order[i];
            const graft_index source = g->graph->nodes[n].source;
            if (source < g->model->record_count) {
                bool *whole = &wholes[records[source].onnx_node];
                *whole = *whole || g->grouped[n];
                g->grouped[n] = *whole;
            }
        }
    }
}

const bool *graft_byte_groups_find(graft_arena *arena, const graft_model *model,
                                   const graft_graph *graph, const graft_order *order)
{
    byte_groups g = {.model = model, .graph = graph};
    g.roles = GRAFT_NEW(arena, role, graph->node_end);
    if (!find_roles(&g, order)) {
        return NULL;
    }
    g.from = GRAFT_NEW(arena, bool, graph->node_end);
    g.into = GRAFT_NEW(arena, bool, graph->node_end);
    g.grouped = GRAFT_NEW(arena, bool, graph->node_end);
    for (graft_index i = 0; i < order->count; i++) {
        follow_down(&g, order->order[i]);
    }
    for (graft_index i = order->count; i-- > 0;) {
        follow_up(&g, order->order[i]);
    }
    group_wholes(arena, &g, order);
    return g.grouped;
}

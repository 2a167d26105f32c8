/* sketch.c - see sketch.h. */
#include "train/agent/sketch.h"

#include <assert.h>
#include <string.h>

static int8_t *node_row(const graft_sketch *sketch, uint32_t row)
{
    return &sketch->nodes[(size_t)row * GRAFT_SCENE_NODE_FEATURES];
}

static void set_flags(uint32_t op, int8_t *out)
{
    const graft_op_info *info = graft_op(op);
    for (uint32_t i = 0; info != NULL && i < GRAFT_SCENE_COST - GRAFT_SCENE_FLAGS; i++) {
        out[GRAFT_SCENE_FLAGS + i] = (info->flags >> i & 1u) != 0 ? GRAFT_FEATURE_SCALE : 0;
    }
}

static void open_edges(graft_arena *arena, uint32_t most, graft_sketch *sketch)
{
    sketch->edges = GRAFT_NEW(arena, int8_t, (size_t)most * GRAFT_EDGE_FEATURE_COUNT);
    sketch->senders = GRAFT_NEW(arena, uint32_t, most);
    sketch->receivers = GRAFT_NEW(arena, uint32_t, most);
}

static int8_t *add_edge(graft_sketch *sketch, uint32_t sender, uint32_t receiver)
{
    sketch->senders[sketch->edge_count] = sender;
    sketch->receivers[sketch->edge_count] = receiver;
    return &sketch->edges[(size_t)sketch->edge_count++ * GRAFT_EDGE_FEATURE_COUNT];
}

void graft_sketch_graph(graft_arena *arena, const graft_estimator *estimator, uint64_t cost,
                        uint32_t *row_of, graft_sketch *sketch)
{
    const graft_graph *graph = estimator->graph;
    const graft_order *order = estimator->order;
    uint32_t edges = 0;
    *sketch = (graft_sketch){.node_count = 0};
    memset(row_of, 0xff, graph->node_end * sizeof *row_of);
    for (graft_index i = 0; i < order->count; i++) {
        const graft_node *node = &graph->nodes[order->order[i]];
        edges += node->input_count;
        row_of[order->order[i]] = node->is_const ? UINT32_MAX : sketch->node_count;
        sketch->node_count += node->is_const ? 0 : 1;
    }
    if (sketch->node_count == 0) {
        graft_sketch_nothing(arena, sketch);
        return;
    }
    sketch->nodes =
        GRAFT_NEW(arena, int8_t, (size_t)sketch->node_count * GRAFT_SCENE_NODE_FEATURES);
    open_edges(arena, edges, sketch);
    for (graft_index i = 0; i < order->count; i++) {
        const graft_index n = order->order[i];
        const graft_node *node = &graph->nodes[n];
        if (node->is_const) {
            continue;
        }
        int8_t *out = node_row(sketch, row_of[n]);
        graft_scene_node(estimator, cost, n, out);
        for (uint32_t k = 0; k < node->input_count; k++) {
            if (graft_edge_exists(graph, n, k)) {
                uint32_t sender = row_of[graph->values[graft_node_input(graph, n, k)].node];
                graft_edge_features(graph, n, k, add_edge(sketch, sender, row_of[n]));
            }
        }
    }
}

void graft_sketch_pattern(graft_arena *arena, const graft_pattern *pattern, graft_sketch *sketch)
{
    if (pattern->node_count == 0) { /* The rule's result is one of its variables. */
        graft_sketch_nothing(arena, sketch);
        return;
    }
    *sketch = (graft_sketch){.node_count = pattern->node_count};
    sketch->nodes =
        GRAFT_NEW(arena, int8_t, (size_t)sketch->node_count * GRAFT_SCENE_NODE_FEATURES);
    open_edges(arena, sketch->node_count * GRAFT_MAX_INPUTS, sketch);
    for (uint32_t n = 0; n < pattern->node_count; n++) {
        const graft_pattern_node *node = &pattern->nodes[n];
        int8_t *out = node_row(sketch, n);
        if (GRAFT_FEATURE_operator + node->op <= GRAFT_FEATURE_END_operator) {
            out[GRAFT_FEATURE_operator + node->op] = GRAFT_FEATURE_SCALE;
        }
        out[GRAFT_SCENE_PATTERN] = GRAFT_FEATURE_SCALE;
        set_flags(node->op, out);
        for (uint32_t k = 0; k < graft_op(node->op)->input_count; k++) {
            if (GRAFT_OPERAND_IS_NODE(node->inputs[k])) {
                int8_t *edge = add_edge(sketch, GRAFT_OPERAND_NODE_OF(node->inputs[k]), n);
                edge[GRAFT_EDGE_FEATURE_operand + (k < 3 ? k : 3)] = GRAFT_FEATURE_SCALE;
                edge[GRAFT_EDGE_FEATURE_slot] =
                    GRAFT_OPERAND_SLOT_OF(node->inputs[k]) > 0 ? GRAFT_FEATURE_SCALE : 0;
            }
        }
    }
}

void graft_sketch_nothing(graft_arena *arena, graft_sketch *sketch)
{
    *sketch = (graft_sketch){.node_count = 1};
    sketch->nodes = GRAFT_NEW(arena, int8_t, GRAFT_SCENE_NODE_FEATURES);
}

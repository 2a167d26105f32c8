/* layout.c - strides of layouts, and the convention that assigns them (see layout.h). */
#include "cost/layout.h"

#include <string.h>

const char *graft_layout_name(uint32_t layout)
{
    static const char *const names[GRAFT_LAYOUT_COUNT] = {"row", "nhwc"};
    return layout < GRAFT_LAYOUT_COUNT ? names[layout] : "unknown";
}

void graft_layout_strides(const graft_shape *shape, uint32_t layout,
                          int64_t strides[GRAFT_MAX_RANK])
{
    static const uint8_t nhwc[4] = {1, 3, 2, 0}; /* Fastest axis first. */
    int64_t step = 1;
    memset(strides, 0, GRAFT_MAX_RANK * sizeof(strides[0]));
    for (uint32_t i = 0; i < shape->rank && i < GRAFT_MAX_RANK; i++) {
        uint32_t axis = layout == GRAFT_LAYOUT_NHWC ? nhwc[i & 3u] : shape->rank - 1u - i;
        strides[axis] = step;
        step *= shape->dims[axis];
    }
}

bool graft_layout_same(const graft_shape *shape, uint32_t from, uint32_t to)
{
    return from == to || shape->rank != 4 || shape->dims[1] == 1 ||
           (shape->dims[2] == 1 && shape->dims[3] == 1);
}

typedef enum layout_rule { RULE_FOLLOW, RULE_IMAGE, RULE_ROW, RULE_TO_ROW } layout_rule;

/* IMAGE: channels last in and out. ROW: row-major in and out. TO_ROW: takes any layout, gives
 * row-major. FOLLOW: all operands as the first one that is an image. */
static layout_rule rule_of(uint32_t op)
{
    switch (op) {
    case GRAFT_OP_conv:
    case GRAFT_OP_conv_bias:
    case GRAFT_OP_conv_bias_add:
    case GRAFT_OP_max_pool:
    case GRAFT_OP_avg_pool:
    case GRAFT_OP_global_avg_pool:
        return RULE_IMAGE;
    case GRAFT_OP_matmul:
    case GRAFT_OP_matmul_bias:
    case GRAFT_OP_layer_norm:
    case GRAFT_OP_reshape:
    case GRAFT_OP_OPAQUE:
        return RULE_ROW;
    case GRAFT_OP_transpose:
        return RULE_TO_ROW;
    default:
        return RULE_FOLLOW;
    }
}

/* The layout of the first operand for which it makes a difference. */
static uint32_t find_leader(const graft_graph *graph, graft_index node, const uint8_t *layouts)
{
    uint32_t fallback = GRAFT_LAYOUT_ROW;
    bool found = false;
    for (uint32_t k = 0; k < graph->nodes[node].input_count; k++) {
        graft_index v = graft_node_input(graph, node, k);
        const graft_value *value = &graph->values[v];
        if (value->is_const || value->shape.rank != 4) {
            continue;
        }
        if (!graft_layout_same(&value->shape, GRAFT_LAYOUT_ROW, GRAFT_LAYOUT_NHWC)) {
            return layouts[v];
        }
        fallback = found ? fallback : layouts[v];
        found = true;
    }
    return fallback;
}

static uint8_t fit_layout(const graft_value *value, uint32_t layout)
{
    return (uint8_t)(value->shape.rank == 4 && !value->is_const ? layout : GRAFT_LAYOUT_ROW);
}

/* Filters that are computed at each run stay row-major, whatever the images do. */
static bool is_filter(uint32_t op, uint32_t k)
{
    bool conv = op == GRAFT_OP_conv || op == GRAFT_OP_conv_bias || op == GRAFT_OP_conv_bias_add;
    return conv && k == 1;
}

void graft_layout_choose(const graft_graph *graph, graft_index node, const uint8_t *layouts,
                         graft_layout_choice *choice)
{
    const graft_node *n = &graph->nodes[node];
    layout_rule rule = rule_of(n->op);
    uint32_t wanted = rule == RULE_IMAGE ? GRAFT_LAYOUT_NHWC : GRAFT_LAYOUT_ROW;
    if (rule == RULE_FOLLOW) {
        wanted = find_leader(graph, node, layouts);
    }
    for (uint32_t k = 0; k < n->input_count && k < GRAFT_MAX_INPUTS; k++) {
        graft_index v = graft_node_input(graph, node, k);
        choice->inputs[k] = GRAFT_LAYOUT_ROW;
        if (v != GRAFT_NONE) {
            uint32_t layout = rule == RULE_TO_ROW ? layouts[v] : wanted;
            layout = is_filter(n->op, k) ? GRAFT_LAYOUT_ROW : layout;
            choice->inputs[k] = fit_layout(&graph->values[v], layout);
        }
    }
    for (uint32_t k = 0; k < n->output_count && k < GRAFT_MAX_OUTPUTS; k++) {
        const graft_value *value = &graph->values[graft_node_output(graph, node, k)];
        choice->outputs[k] = fit_layout(value, wanted);
    }
}

void graft_layout_assign(const graft_graph *graph, const graft_order *order, uint8_t *layouts,
                         graft_layout_choice *choices)
{
    memset(layouts, GRAFT_LAYOUT_ROW, graph->value_end);
    for (graft_index i = 0; i < order->count; i++) {
        graft_index node = order->order[i];
        const graft_node *n = &graph->nodes[node];
        if (n->is_const) {
            continue;
        }
        graft_layout_choose(graph, node, layouts, &choices[node]);
        for (uint32_t k = 0; k < n->output_count && k < GRAFT_MAX_OUTPUTS; k++) {
            layouts[graft_node_output(graph, node, k)] = choices[node].outputs[k];
        }
    }
}

/* features.h - what the policy is told about nodes and edges (features.def), in integers. */
#ifndef GRAFT_ENGINE_FEATURES_H
#define GRAFT_ENGINE_FEATURES_H

/* floor(2^bits log2 n) with straight lines between powers of two, at most 127; 0 for n = 0. */
static int8_t log_feature(uint64_t n, uint32_t bits)
{
    uint32_t exponent = 0;
    uint32_t fraction = 0;
    if (n == 0) {
        return 0;
    }
    while ((n >> exponent) > 1) {
        exponent++;
    }
    for (uint32_t i = 1; i <= bits; i++) {
        uint32_t bit = i <= exponent ? (uint32_t)(n >> (exponent - i)) & 1u : 0u;
        fraction = fraction * 2u + bit;
    }
    uint32_t value = (exponent << bits) + fraction;
    return (int8_t)(value < 127u ? value : 127u);
}

/* Attributes are checked against their domains, so that none used here is negative. */
static int8_t log_attr(int32_t value, uint32_t bits)
{
    return log_feature(value > 0 ? (uint64_t)value : 0, bits);
}

static void set_axis(int8_t *out, int32_t axis)
{
    if (axis >= 0 && axis < GRAFT_MAX_RANK) {
        out[GRAFT_FEATURE_axes + axis] = GRAFT_FEATURE_SCALE;
    }
}

/* Four paddings in the order of `conv`: top, left, bottom, right. */
static void set_padding(const int32_t *pads, int8_t *out)
{
    for (uint32_t axis = 0; axis < 2; axis++) {
        out[GRAFT_FEATURE_padding + axis] = log_attr(1 + pads[axis] + pads[axis + 2], 4);
    }
}

static int32_t larger_attr(const int32_t *pair) { return pair[0] > pair[1] ? pair[0] : pair[1]; }

/* The attributes that conv, conv_bias and conv_bias_add share; kernel sizes are those of the
 * filter. */
static void set_conv_features(const graft_graph *graph, graft_index n, int8_t *out)
{
    const int32_t *attrs = graph->nodes[n].attrs;
    const graft_shape *x = &graph->values[graft_node_input(graph, n, 0)].shape;
    const graft_shape *filter = &graph->values[graft_node_input(graph, n, 1)].shape;
    int32_t groups = attrs[GRAFT_ATTR_conv_groups];
    for (uint32_t axis = 0; axis < 2; axis++) {
        out[GRAFT_FEATURE_kernel + axis] = log_attr(filter->dims[2 + axis], 4);
        out[GRAFT_FEATURE_stride + axis] = log_attr(attrs[GRAFT_ATTR_conv_stride_h + axis], 4);
    }
    set_padding(&attrs[GRAFT_ATTR_conv_pad_top], out);
    out[GRAFT_FEATURE_dilation] = log_attr(larger_attr(&attrs[GRAFT_ATTR_conv_dilation_h]), 4);
    out[GRAFT_FEATURE_groups] = log_attr(groups, 3);
    out[GRAFT_FEATURE_depthwise] = groups > 1 && groups == x->dims[1] ? GRAFT_FEATURE_SCALE : 0;
}

/* The attributes that both windowed poolings share. */
static void set_pool_features(const int32_t *attrs, int8_t *out)
{
    for (uint32_t axis = 0; axis < 2; axis++) {
        out[GRAFT_FEATURE_kernel + axis] = log_attr(attrs[GRAFT_ATTR_max_pool_kernel_h + axis], 4);
        out[GRAFT_FEATURE_stride + axis] = log_attr(attrs[GRAFT_ATTR_max_pool_stride_h + axis], 4);
    }
    set_padding(&attrs[GRAFT_ATTR_max_pool_pad_top], out);
}

static void set_axes_features(const graft_node *node, uint32_t rank, int8_t *out)
{
    const int32_t *attrs = node->attrs;
    for (int32_t axis = 0; axis < GRAFT_MAX_RANK; axis++) {
        if ((node->op == GRAFT_OP_reduce_mean &&
             ((uint32_t)attrs[GRAFT_ATTR_reduce_mean_axes] >> axis & 1u) != 0) ||
            (node->op == GRAFT_OP_transpose && (uint32_t)axis < rank && attrs[axis] != axis)) {
            set_axis(out, axis);
        }
    }
}

static void set_attr_features(const graft_graph *graph, graft_index n, int8_t *out)
{
    const graft_node *node = &graph->nodes[n];
    switch (node->op) {
    case GRAFT_OP_conv:
    case GRAFT_OP_conv_bias:
    case GRAFT_OP_conv_bias_add:
        set_conv_features(graph, n, out);
        break;
    case GRAFT_OP_max_pool:
        set_pool_features(node->attrs, out);
        out[GRAFT_FEATURE_dilation] =
            log_attr(larger_attr(&node->attrs[GRAFT_ATTR_max_pool_dilation_h]), 4);
        break;
    case GRAFT_OP_avg_pool:
        set_pool_features(node->attrs, out);
        break;
    case GRAFT_OP_concat:
    case GRAFT_OP_split:
    case GRAFT_OP_slice:
    case GRAFT_OP_pad:
    case GRAFT_OP_softmax:
        set_axis(out, node->attrs[0]); /* Their first attribute is the axis. */
        break;
    default:
        set_axes_features(node, graph->values[graft_node_output(graph, n, 0)].shape.rank, out);
        break;
    }
    for (uint32_t i = 0; i < GRAFT_MAX_ATTRS; i++) {
        const graft_attr_info *info = graft_op_attr(node->op, i);
        if (info != NULL && info->kind == GRAFT_ATTR_ACTIVATION && node->attrs[i] >= 0 &&
            node->attrs[i] < GRAFT_ACT_COUNT) {
            out[GRAFT_FEATURE_activation + node->attrs[i]] = GRAFT_FEATURE_SCALE;
        }
    }
}

static void set_operand_features(const graft_graph *graph, graft_index n, int8_t *out)
{
    uint64_t input_elements = 0;
    uint64_t weight_elements = 0;
    const graft_shape *weight = NULL;
    for (uint32_t i = 0; i < graph->nodes[n].input_count; i++) {
        graft_index v = graft_node_input(graph, n, i);
        if (v == GRAFT_NONE) {
            continue;
        }
        const graft_value *value = &graph->values[v];
        uint64_t elements = graft_shape_elements(&value->shape);
        if (value->is_const) {
            weight_elements = add_saturating(weight_elements, elements);
            weight = weight != NULL ? weight : &value->shape;
        } else {
            input_elements = add_saturating(input_elements, elements);
        }
        if (i < 4) {
            out[GRAFT_FEATURE_operand_const + i] = value->is_const ? GRAFT_FEATURE_SCALE : 0;
            out[GRAFT_FEATURE_operand_input + i] =
                value->kind == GRAFT_VALUE_INPUT ? GRAFT_FEATURE_SCALE : 0;
        }
    }
    out[GRAFT_FEATURE_input_elements] = log_feature(input_elements, 2);
    out[GRAFT_FEATURE_weight_elements] = log_feature(weight_elements, 2);
    for (uint32_t i = 0; weight != NULL && weight->rank <= GRAFT_MAX_RANK && i < 4; i++) {
        out[GRAFT_FEATURE_weight_dims + i] = log_attr(weight->dims[i], 3);
    }
}

static void set_result_features(const graft_graph *graph, const graft_order *order, graft_index n,
                                int8_t *out)
{
    uint64_t uses = 0;
    uint64_t readings = 0; /* Those by nodes alone. */
    for (uint32_t i = 0; i < graph->nodes[n].output_count; i++) {
        graft_index v = graft_node_output(graph, n, i);
        uses += order->use_count[v];
        readings += order->use_first[v + 1] - order->use_first[v];
        if (i < 2) {
            out[GRAFT_FEATURE_elements + i] =
                log_feature(graft_shape_elements(&graph->values[v].shape), 2);
        }
    }
    out[GRAFT_FEATURE_uses] = log_feature(uses, 4);
    out[GRAFT_FEATURE_is_output] = uses > readings ? GRAFT_FEATURE_SCALE : 0;
    if (graph->nodes[n].output_count == 0) {
        return;
    }
    const graft_shape *shape = &graph->values[graft_node_output(graph, n, 0)].shape;
    if (shape->rank <= GRAFT_MAX_RANK) {
        out[GRAFT_FEATURE_rank] = (int8_t)(16 * shape->rank);
        for (uint32_t i = 0; i < GRAFT_MAX_RANK; i++) {
            out[GRAFT_FEATURE_dims + i] = log_attr(shape->dims[i], 3);
        }
    }
}

static uint64_t node_flops(const graft_graph *graph, graft_index n)
{
    const graft_node *node = &graph->nodes[n];
    graft_shape in[GRAFT_MAX_INPUTS];
    graft_shape out[GRAFT_MAX_OUTPUTS];
    for (uint32_t i = 0; i < node->input_count; i++) {
        in[i] = graph->values[graft_node_input(graph, n, i)].shape;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        out[i] = graph->values[graft_node_output(graph, n, i)].shape;
    }
    return graft_op_flops(node->op, node->attrs, in, out);
}

void graft_node_features(const graft_graph *graph, const graft_order *order, graft_index node,
                         int8_t *out)
{
    for (uint32_t i = 0; i < GRAFT_FEATURE_COUNT; i++) {
        out[i] = 0;
    }
    set_operand_features(graph, node, out);
    set_result_features(graph, order, node, out);
    if (graft_op(graph->nodes[node].op) == NULL) {
        out[GRAFT_FEATURE_operator] = GRAFT_FEATURE_SCALE;
        return;
    }
    out[GRAFT_FEATURE_operator + graph->nodes[node].op] = GRAFT_FEATURE_SCALE;
    set_attr_features(graph, node, out);
    out[GRAFT_FEATURE_flops] = log_feature(node_flops(graph, node), 1);
}

void graft_edge_features(const graft_graph *graph, graft_index node, uint32_t operand, int8_t *out)
{
    const graft_value *value = &graph->values[graft_node_input(graph, node, operand)];
    for (uint32_t i = 0; i < GRAFT_EDGE_FEATURE_COUNT; i++) {
        out[i] = 0;
    }
    out[GRAFT_EDGE_FEATURE_operand + (operand < 3 ? operand : 3)] = GRAFT_FEATURE_SCALE;
    out[GRAFT_EDGE_FEATURE_slot] = value->slot > 0 ? GRAFT_FEATURE_SCALE : 0;
    out[GRAFT_EDGE_FEATURE_bytes] = log_feature(graft_shape_bytes(&value->shape), 2);
}

bool graft_edge_exists(const graft_graph *graph, graft_index node, uint32_t operand)
{
    graft_index v = graft_node_input(graph, node, operand);
    return v != GRAFT_NONE && graph->values[v].kind == GRAFT_VALUE_COMPUTED &&
           !graph->values[v].is_const;
}

#endif

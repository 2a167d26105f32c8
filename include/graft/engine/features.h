/* features.h - what the policy is told about nodes and edges (features.def), in integers. */
#ifndef GRAFT_ENGINE_FEATURES_H
#define GRAFT_ENGINE_FEATURES_H

/* The exponent of n's highest bit; the bits from there on become the uppermost of *mantissa. Both are
 * 0 for n = 0. */
static uint32_t graft_split_number(uint64_t n, uint32_t *mantissa)
{
    uint32_t exponent = 63;
    while (exponent > 0 && n >> 63 == 0) {
        n <<= 1;
        exponent--;
    }
    *mantissa = (uint32_t)(n >> 32);
    return exponent;
}

/* floor(2^bits log2 n) with straight lines between powers of two, at most 127; 0 for n = 0. */
static int8_t graft_log_feature(uint64_t n, uint32_t bits)
{
    uint32_t mantissa = 0;
    uint32_t value = graft_split_number(n, &mantissa) << bits;
    value += (mantissa & INT32_MAX) >> (31u - bits);
    return (int8_t)(value < 127u ? value : 127u);
}

/* Of sizes and attributes, `count` of them. */
static GRAFT_APART void graft_log_features(const int32_t *values, uint32_t count, uint32_t bits,
                                           int8_t *out)
{
    for (uint32_t i = 0; i < count; i++) {
        out[i] = graft_log_feature(values[i] > 0 ? (uint64_t)values[i] : 0, bits);
    }
}

/* Attributes are checked against their domains: what is used here is no axis too large. */
static void graft_set_axis(int8_t *out, int32_t axis)
{
    out[GRAFT_FEATURE_axes + axis] = GRAFT_FEATURE_SCALE;
}

/* ------------------------------------------------------------------- forms */

static GRAFT_APART void graft_add_form_bytes(graft_form *form, const graft_shape *shape)
{
    form->bytes = graft_add_saturating(form->bytes, graft_priced_bytes(shape));
}

static void graft_add_operand(graft_form *form, uint32_t i, const graft_shape *shape, bool is_const)
{
    uint64_t elements = graft_shape_elements(shape);
    uint64_t *sum = is_const ? &form->weight_elements : &form->input_elements;
    *sum = graft_add_saturating(*sum, elements);
    graft_add_form_bytes(form, shape);
    form->weight = is_const && form->weight == NULL ? shape : form->weight;
    if (i < GRAFT_MAX_INPUTS) {
        form->inputs[i] = shape;
        form->const_mask = (uint8_t)(form->const_mask | (is_const ? 1u << i : 0u));
    }
}

static void graft_add_result(graft_form *form, uint32_t i, const graft_shape *shape)
{
    graft_add_form_bytes(form, shape);
    if (i < GRAFT_MAX_OUTPUTS) {
        form->outputs[i] = shape;
    }
}

/* The form of a node without its operands and results. */
static void graft_begin_form(const graft_node *node, graft_form *form)
{
    graft_zero_bytes(form, sizeof *form);
    form->attrs = node->attrs;
    form->op = node->op;
    form->input_count = node->input_count;
    form->output_count = node->output_count;
}

void graft_form_of_node(const graft_graph *graph, graft_index node, graft_form *form)
{
    const graft_node *n = &graph->nodes[node];
    graft_begin_form(n, form);
    for (uint32_t i = 0; i < n->input_count; i++) {
        uint32_t v = graft_node_input(graph, node, i);
        if (v != GRAFT_NONE) {
            graft_add_operand(form, i, &graph->values[v].shape, graph->values[v].is_const);
        }
    }
    for (uint32_t i = 0; i < n->output_count; i++) {
        graft_add_result(form, i, &graph->values[graft_node_output(graph, node, i)].shape);
    }
}

void graft_form_of_made(const graft_graph *graph, const graft_made *made, uint32_t n,
                        graft_form *form)
{
    graft_begin_form(&made->nodes[n].node, form);
    for (uint32_t i = 0; i < form->input_count; i++) {
        const graft_index value = made->nodes[n].inputs[i];
        graft_add_operand(form, i, graft_shape_of(graph, made, value),
                          graft_is_const_value(graph, made, value));
    }
    for (uint32_t i = 0; i < form->output_count; i++) {
        graft_add_result(form, i, &made->nodes[n].shapes[i]);
    }
}

/* ---------------------------------------------------------------- features */

/* What convolutions and both windowed poolings share: behind the sizes of the window, or first,
 * attributes of strides and padding, and where there are any of dilations. */
static void graft_set_window_features(const int32_t *kernel, const int32_t *attrs, bool dilated,
                                      int8_t *out)
{
    const int32_t *pads = &attrs[GRAFT_ATTR_conv_pad_top];
    const int32_t padded[] = {1 + pads[0] + pads[2], 1 + pads[1] + pads[3]};
    graft_log_features(kernel, 2, 4, &out[GRAFT_FEATURE_kernel]);
    graft_log_features(&attrs[GRAFT_ATTR_conv_stride_h], 2, 4, &out[GRAFT_FEATURE_stride]);
    graft_log_features(padded, 2, 4, &out[GRAFT_FEATURE_padding]);
    if (dilated) {
        const int32_t *dilations = &attrs[GRAFT_ATTR_conv_dilation_h];
        graft_log_features(&dilations[dilations[0] > dilations[1] ? 0 : 1], 1, 4,
                           &out[GRAFT_FEATURE_dilation]);
    }
}

static void graft_set_group_features(const graft_form *form, int8_t *out)
{
    int32_t groups = form->attrs[GRAFT_ATTR_conv_groups];
    graft_log_features(&form->attrs[GRAFT_ATTR_conv_groups], 1, 3, &out[GRAFT_FEATURE_groups]);
    out[GRAFT_FEATURE_depthwise] =
        groups > 1 && groups == form->inputs[0]->dims[1] ? GRAFT_FEATURE_SCALE : 0;
}

static void graft_set_axes_features(const graft_form *form, int8_t *out)
{
    const int32_t *attrs = form->attrs;
    uint32_t rank = form->outputs[0]->rank;
    for (int32_t axis = 0; axis < GRAFT_MAX_RANK; axis++) {
        if ((form->op == GRAFT_OP_reduce_mean &&
             ((uint32_t)attrs[GRAFT_ATTR_reduce_mean_axes] >> axis & 1u) != 0) ||
            (form->op == GRAFT_OP_transpose && (uint32_t)axis < rank && attrs[axis] != axis)) {
            graft_set_axis(out, axis);
        }
    }
}

static void graft_set_attr_features(const graft_form *form, int8_t *out)
{
    const uint32_t op = form->op;
    if (GRAFT_IS_CONV(op)) {
        graft_set_window_features(&form->inputs[1]->dims[2], form->attrs, true, out);
        graft_set_group_features(form, out);
    } else if (GRAFT_IS(op, max_pool) || GRAFT_IS(op, avg_pool)) {
        graft_set_window_features(form->attrs, &form->attrs[GRAFT_ATTR_max_pool_stride_h],
                                  GRAFT_IS(op, max_pool), out);
    } else if (GRAFT_IS(op, concat) || GRAFT_IS(op, split) || GRAFT_IS(op, slice) ||
               GRAFT_IS(op, pad) || GRAFT_IS(op, softmax)) {
        graft_set_axis(out, form->attrs[0]); /* Their first attribute is the axis. */
    } else {
        graft_set_axes_features(form, out);
    }
    const uint32_t activation = graft_activation_of(form->op, form->attrs);
    if (activation < GRAFT_ACT_COUNT) {
        out[GRAFT_FEATURE_activation + activation] = GRAFT_FEATURE_SCALE;
    }
}

static void graft_set_operand_features(const graft_form *form, int8_t *out)
{
    for (uint32_t i = 0; i < GRAFT_MAX_INPUTS; i++) {
        out[GRAFT_FEATURE_operand_const + i] =
            (form->const_mask >> i & 1u) != 0 ? GRAFT_FEATURE_SCALE : 0;
    }
    out[GRAFT_FEATURE_input_elements] = graft_log_feature(form->input_elements, 2);
    out[GRAFT_FEATURE_weight_elements] = graft_log_feature(form->weight_elements, 2);
    if (form->weight != NULL && form->weight->rank <= GRAFT_MAX_RANK) {
        graft_log_features(form->weight->dims, 4, 3, &out[GRAFT_FEATURE_weight_dims]);
    }
}

static void graft_set_result_features(const graft_form *form, int8_t *out)
{
    for (uint32_t i = 0; i < GRAFT_MAX_OUTPUTS && form->outputs[i] != NULL; i++) {
        out[GRAFT_FEATURE_elements + i] =
            graft_log_feature(graft_shape_elements(form->outputs[i]), 2);
    }
    const graft_shape *shape = form->outputs[0];
    if (shape != NULL && shape->rank <= GRAFT_MAX_RANK) {
        out[GRAFT_FEATURE_rank] = (int8_t)(16 * shape->rank);
        graft_log_features(shape->dims, GRAFT_MAX_RANK, 3, &out[GRAFT_FEATURE_dims]);
    }
}

/* Everything but what a node's neighbours say of it. */
static void graft_form_features(const graft_form *form, int8_t *out)
{
    graft_zero_bytes(out, GRAFT_FEATURE_COUNT);
    graft_set_operand_features(form, out);
    graft_set_result_features(form, out);
    if (graft_find_op(form->op) == NULL) {
        out[GRAFT_FEATURE_operator] = GRAFT_FEATURE_SCALE;
        return;
    }
    if (GRAFT_FEATURE_operator + form->op <= GRAFT_FEATURE_END_operator) {
        out[GRAFT_FEATURE_operator + form->op] = GRAFT_FEATURE_SCALE;
    }
    graft_set_attr_features(form, out);
    out[GRAFT_FEATURE_flops] = graft_log_feature(graft_form_flops(form), 1);
}

static void graft_set_neighbour_features(const graft_graph *graph, const graft_order *order,
                                         uint32_t n, int8_t *out)
{
    uint64_t uses = 0;
    uint64_t readings = 0; /* Those by nodes alone. */
    for (uint32_t i = 0; i < graph->nodes[n].output_count; i++) {
        uint32_t v = graft_node_output(graph, n, i);
        uses += order->use_count[v];
        readings += order->use_first[v + 1] - order->use_first[v];
    }
    out[GRAFT_FEATURE_uses] = graft_log_feature(uses, 4);
    out[GRAFT_FEATURE_is_output] = uses > readings ? GRAFT_FEATURE_SCALE : 0;
    for (uint32_t i = 0; i < graph->nodes[n].input_count && i < GRAFT_MAX_INPUTS; i++) {
        uint32_t v = graft_node_input(graph, n, i);
        out[GRAFT_FEATURE_operand_input + i] =
            v != GRAFT_NONE && graph->values[v].kind == GRAFT_VALUE_INPUT ? GRAFT_FEATURE_SCALE : 0;
    }
}

void graft_node_features(const graft_graph *graph, const graft_order *order, graft_index node,
                         int8_t *out)
{
    graft_form form;
    graft_form_of_node(graph, node, &form);
    graft_form_features(&form, out);
    graft_set_neighbour_features(graph, order, node, out);
}

void graft_edge_features(const graft_graph *graph, graft_index node, uint32_t operand, int8_t *out)
{
    const graft_value *value = &graph->values[graft_node_input(graph, node, operand)];
    for (uint32_t i = 0; i < GRAFT_EDGE_FEATURE_COUNT; i++) {
        out[i] = 0;
    }
    out[GRAFT_EDGE_FEATURE_operand + (operand < 3 ? operand : 3)] = GRAFT_FEATURE_SCALE;
    out[GRAFT_EDGE_FEATURE_slot] = value->slot > 0 ? GRAFT_FEATURE_SCALE : 0;
    out[GRAFT_EDGE_FEATURE_bytes] = graft_log_feature(graft_priced_bytes(&value->shape), 2);
}

bool graft_edge_exists(const graft_graph *graph, graft_index node, uint32_t operand)
{
    uint32_t v = graft_node_input(graph, node, operand);
    return v != GRAFT_NONE && graph->values[v].kind == GRAFT_VALUE_COMPUTED &&
           !graph->values[v].is_const;
}

#endif

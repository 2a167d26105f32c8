/* integers.c - finding groups on integers, and their constants (integers.h). */
#include "cost/plan/integers.h"

#include "graph/opaque.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ finding */

typedef struct {
    const graft_graph *graph;
    const graft_order *order;
    const graft_model *model;
    graft_group *group;
} finder;

static const graft_shape *shape_of(const finder *f, graft_index value)
{
    return &f->graph->values[value].shape;
}

/* The node that makes a value; GRAFT_NONE: an input or a weight. */
static graft_index maker_of(const finder *f, graft_index value)
{
    const graft_value *v = &f->graph->values[value];
    return v->kind == GRAFT_VALUE_COMPUTED ? v->node : GRAFT_NONE;
}

/* Whether a value is made to be read by one node alone. */
static bool is_inner(const finder *f, graft_index value)
{
    return maker_of(f, value) != GRAFT_NONE && !f->graph->values[value].is_const &&
           f->order->use_count[value] == 1;
}

static const void *weight_data(const finder *f, graft_index value)
{
    const graft_value *v = value == GRAFT_NONE ? NULL : &f->graph->values[value];
    return v != NULL && v->kind == GRAFT_VALUE_WEIGHT && v->source < f->model->weight_count
               ? f->model->weights[v->source].data
               : NULL;
}

static graft_index input_of(const finder *f, graft_index node, uint32_t k)
{
    return k < f->graph->nodes[node].input_count ? graft_node_input(f->graph, node, k) : GRAFT_NONE;
}

/* Scale and zero point at inputs `k`, `k + 1` of an opaque node: known ones, one for the tensor. */
static bool read_scale(const finder *f, graft_index node, uint32_t k, graft_byte_scale *scale)
{
    const graft_index zero = input_of(f, node, k + 1);
    const float *scales = weight_data(f, input_of(f, node, k));
    const void *zeros = weight_data(f, zero);
    if (scales == NULL || graft_shape_elements(shape_of(f, input_of(f, node, k))) != 1 ||
        (zero != GRAFT_NONE && zeros == NULL)) {
        return false;
    }
    scale->scale = *scales;
    scale->zero = zeros == NULL                                ? 0
                  : shape_of(f, zero)->dtype == GRAFT_DTYPE_I8 ? *(const int8_t *)zeros
                                                               : *(const uint8_t *)zeros;
    return true;
}

/* Of a change between 8 bits and binary32, an operator or an opaque node. */
static bool read_change(const finder *f, graft_index node, const graft_opaque *opaque,
                        graft_byte_scale *scale)
{
    if (opaque->op == 0) {
        return read_scale(f, node, 1, scale);
    }
    memcpy(&scale->scale, &opaque->attrs[GRAFT_ATTR_quantise_scale], sizeof(scale->scale));
    scale->zero = opaque->attrs[GRAFT_ATTR_quantise_zero];
    return true;
}

/* Operand `k` of the group is what `value` is dequantised from. */
static bool take_operand(finder *f, uint32_t k, graft_index value)
{
    const graft_index node = maker_of(f, value);
    graft_opaque opaque;
    if (node == GRAFT_NONE || f->graph->values[value].is_const ||
        f->graph->nodes[node].op != GRAFT_OP_OPAQUE ||
        !graft_opaque_find(f->model, f->graph, node, &opaque) ||
        opaque.kind != GRAFT_OPAQUE_DEQUANTISE || !graft_shape_is_byte(&opaque.in[0])) {
        return false;
    }
    f->group->inputs[k] = graft_node_input(f->graph, node, 0);
    return read_change(f, node, &opaque, &f->group->in[k]);
}

/* Weights with their scales at inputs `k` to `k + 2` of a node, the channels along `axis`. */
static bool read_weights(finder *f, graft_index node, uint32_t k, uint32_t axis)
{
    graft_group *g = f->group;
    const graft_index weight = input_of(f, node, k);
    const graft_index scale = input_of(f, node, k + 1);
    const graft_index zero = input_of(f, node, k + 2);
    g->weights = weight_data(f, weight);
    g->scales = weight_data(f, scale);
    const int8_t *zeros = weight_data(f, zero);
    if (g->weights == NULL || g->scales == NULL || (zero != GRAFT_NONE && zeros == NULL) ||
        shape_of(f, weight)->dtype != GRAFT_DTYPE_I8) {
        return false;
    }
    const uint64_t count = graft_shape_elements(shape_of(f, scale));
    bool central = true;
    for (uint64_t i = 0; zeros != NULL && i < graft_shape_elements(shape_of(f, zero)); i++) {
        central = central && zeros[i] == 0;
    }
    g->per_channel = count > 1;
    return central && (count == 1 || count == (uint64_t)shape_of(f, weight)->dims[axis]);
}

/* Weights that are dequantised, and turned where a matrix is given so. */
static bool take_weights(finder *f, graft_index value, bool is_conv)
{
    graft_index node = maker_of(f, value);
    graft_opaque opaque;
    if (!f->graph->values[value].is_const || node == GRAFT_NONE) {
        return false;
    }
    if (!is_conv && f->graph->nodes[node].op == GRAFT_OP_transpose &&
        shape_of(f, value)->rank == 2) {
        f->group->turned = f->graph->nodes[node].attrs[0] == 1;
        node = maker_of(f, graft_node_input(f->graph, node, 0));
    }
    const uint32_t axis = is_conv || f->group->turned ? 0 : 1;
    return node != GRAFT_NONE && graft_opaque_find(f->model, f->graph, node, &opaque) &&
           opaque.kind == GRAFT_OPAQUE_DEQUANTISE && opaque.op == 0 &&
           read_weights(f, node, 0, axis) && (!f->group->per_channel || opaque.axis == axis);
}

/* What the signature says, once the operands are known. */
static bool describe(finder *f, uint32_t op, const int32_t *attrs, const graft_shape *weights,
                     int32_t activation)
{
    graft_group *g = f->group;
    graft_signature *s = &g->signature;
    const bool sums = op == GRAFT_COST_INTEGER_ADD;
    const graft_index result = graft_node_output(f->graph, g->nodes[0], 0);
    graft_shape out[GRAFT_MAX_OUTPUTS];
    memset(s, 0, sizeof(*s));
    if (op == GRAFT_COST_INTEGER_CONV) {
        memcpy(s->attrs, attrs, graft_op(GRAFT_OP_conv)->attr_count * sizeof(s->attrs[0]));
    }
    graft_signature_set_integer(s, op, activation, shape_of(f, result)->dtype);
    graft_signature_set_input(s, 0, shape_of(f, g->inputs[0]));
    graft_signature_set_input(s, 1, sums ? shape_of(f, g->inputs[1]) : weights);
    s->const_mask = sums ? 4 : 6;
    const bool image = op != GRAFT_COST_INTEGER_MATMUL && shape_of(f, result)->rank == 4;
    s->in_layouts[0] = image ? GRAFT_LAYOUT_NHWC : GRAFT_LAYOUT_ROW;
    s->in_layouts[1] = image && sums ? GRAFT_LAYOUT_NHWC : GRAFT_LAYOUT_ROW;
    s->out_layouts[0] = s->in_layouts[0];
    const graft_shape numbers = {
        .rank = 1, .dtype = GRAFT_DTYPE_F32, .dims = {(int32_t)graft_integers_numbers(s)}};
    graft_signature_set_input(s, 2, &numbers);
    return graft_signature_outputs(s, out) == GRAFT_OK &&
           memcmp(out[0].dims, shape_of(f, result)->dims, sizeof(out[0].dims)) == 0;
}

/* A product of two dequantised operands, or their sum; `outer`: what is applied to its result. */
static bool match_operator(finder *f, graft_index node, int32_t outer)
{
    const graft_node *n = &f->graph->nodes[node];
    const bool is_conv = n->op == GRAFT_OP_conv || n->op == GRAFT_OP_conv_bias;
    const bool biased = n->op == GRAFT_OP_conv_bias || n->op == GRAFT_OP_matmul_bias;
    int32_t activation = n->op == GRAFT_OP_conv_bias ? n->attrs[GRAFT_ATTR_conv_bias_activation]
                         : n->op == GRAFT_OP_matmul_bias
                             ? n->attrs[GRAFT_ATTR_matmul_bias_activation]
                             : GRAFT_ACT_NONE;
    if (outer != GRAFT_ACT_NONE && activation != GRAFT_ACT_NONE) {
        return false;
    }
    activation = outer == GRAFT_ACT_NONE ? activation : outer;
    f->group->nodes[f->group->node_count++] = node;
    if (n->op == GRAFT_OP_add) {
        return f->group->node_count > 1 &&
               take_operand(f, 0, graft_node_input(f->graph, node, 0)) &&
               take_operand(f, 1, graft_node_input(f->graph, node, 1)) &&
               describe(f, GRAFT_COST_INTEGER_ADD, NULL, NULL, activation);
    }
    if (!is_conv && n->op != GRAFT_OP_matmul && n->op != GRAFT_OP_matmul_bias) {
        return false;
    }
    const graft_index weights = graft_node_input(f->graph, node, 1);
    graft_shape shape = *shape_of(f, weights);
    shape.dtype = GRAFT_DTYPE_I8;
    if (biased) {
        f->group->inputs[2] = graft_node_input(f->graph, node, 2);
        if (!f->graph->values[f->group->inputs[2]].is_const ||
            graft_shape_elements(shape_of(f, f->group->inputs[2])) !=
                (uint64_t)shape.dims[is_conv ? 0 : 1]) {
            return false;
        }
    }
    return (is_conv || shape.rank == 2) &&
           take_operand(f, 0, graft_node_input(f->graph, node, 0)) &&
           take_weights(f, weights, is_conv) &&
           describe(f, is_conv ? GRAFT_COST_INTEGER_CONV : GRAFT_COST_INTEGER_MATMUL, n->attrs,
                    &shape, activation);
}

/* QLinearConv and QLinearMatMul. */
static bool match_quantised(finder *f, graft_index node, const graft_opaque *opaque)
{
    graft_group *g = f->group;
    const bool is_conv = opaque->kind == GRAFT_OPAQUE_QUANTISED_CONV;
    g->nodes[g->node_count++] = node;
    g->inputs[0] = graft_node_input(f->graph, node, 0);
    g->inputs[2] = input_of(f, node, 8);
    g->whole_bias = true;
    return opaque->in[3].rank == (is_conv ? 4 : 2) && read_scale(f, node, 1, &g->in[0]) &&
           read_scale(f, node, 6, &g->out) && read_weights(f, node, 3, is_conv ? 0 : 1) &&
           (g->inputs[2] == GRAFT_NONE || f->graph->values[g->inputs[2]].is_const) &&
           describe(f, is_conv ? GRAFT_COST_INTEGER_CONV : GRAFT_COST_INTEGER_MATMUL, opaque->attrs,
                    &opaque->in[3], GRAFT_ACT_NONE);
}

/* What stands before a change to 8 bits. */
static bool match_change(finder *f, graft_index last)
{
    graft_index value = graft_node_input(f->graph, last, 0);
    int32_t activation = GRAFT_ACT_NONE;
    f->group->nodes[f->group->node_count++] = last;
    if (is_inner(f, value) && f->graph->nodes[maker_of(f, value)].op == GRAFT_OP_relu) {
        activation = GRAFT_ACT_RELU;
        f->group->nodes[f->group->node_count++] = maker_of(f, value);
        value = graft_node_input(f->graph, maker_of(f, value), 0);
    }
    return is_inner(f, value) && match_operator(f, maker_of(f, value), activation);
}

/* The group that ends with a node, if it is one. */
static bool match_group(finder *f, graft_index last)
{
    graft_group *g = f->group;
    graft_opaque opaque;
    *g = (graft_group){.out = {.scale = 1.0F}};
    memset(g->inputs, 0xff, sizeof(g->inputs));
    if (f->graph->nodes[last].is_const) {
        return false;
    }
    if (f->graph->nodes[last].op != GRAFT_OP_OPAQUE) {
        return match_operator(f, last, GRAFT_ACT_NONE);
    }
    return graft_opaque_find(f->model, f->graph, last, &opaque) &&
           (opaque.kind == GRAFT_OPAQUE_QUANTISE
                ? read_change(f, last, &opaque, &g->out) && match_change(f, last)
            : opaque.kind > GRAFT_OPAQUE_DEQUANTISE ? match_quantised(f, last, &opaque)
                                                    : false);
}

/* Changes to binary32 that groups alone read need not be made: they go into one of these. */
static void take_changes(const finder *f, graft_arena *arena, const graft_groups *groups)
{
    const graft_graph *graph = f->graph;
    graft_index *reads = GRAFT_NEW(arena, graft_index, graph->value_end);
    for (uint32_t i = 0; i < groups->count; i++) {
        const graft_group *g = &groups->list[i];
        const graft_index node = g->nodes[g->node_count - 1];
        const uint32_t operands = g->signature.op == GRAFT_COST_INTEGER_ADD ? 2 : 1;
        if (!graft_signature_is_integer(&g->signature) ||
            graph->nodes[node].op == GRAFT_OP_OPAQUE) {
            continue;
        }
        for (uint32_t k = 0; k < operands; k++) {
            const graft_index v = graft_node_input(graph, node, k);
            if (++reads[v] == f->order->use_count[v]) {
                groups->of[graph->values[v].node] = i + 1;
            }
        }
    }
}

/* From the last node to the first: a product belongs to the change to 8 bits behind it. */
void graft_integers_find(graft_arena *arena, const graft_graph *graph, const graft_order *order,
                         const graft_model *model, const graft_distances *distances,
                         graft_groups *groups)
{
    graft_group found;
    finder f = {.graph = graph, .order = order, .model = model, .group = &found};
    const uint32_t before = groups->count;
    for (graft_index i = order->count; i-- > 0;) {
        if (graft_group_of(groups, order->order[i]) == NULL && match_group(&f, order->order[i])) {
            found.signature.distance = distances->nodes[found.nodes[found.node_count - 1]];
            graft_group_add(arena, graph, &found, groups);
        }
    }
    if (groups->count > before) {
        take_changes(&f, arena, groups);
    }
}

/* ---------------------------------------------------------------- constants */

uint32_t graft_integers_channels(const graft_signature *signature)
{
    return signature->op == GRAFT_COST_INTEGER_ADD
               ? 0
               : (uint32_t)signature->inputs[1].dims[signature->op == GRAFT_COST_INTEGER_MATMUL];
}

uint32_t graft_integers_numbers(const graft_signature *signature)
{
    return signature->op == GRAFT_COST_INTEGER_ADD
               ? GRAFT_SUM_NUMBERS
               : GRAFT_PRODUCT_NUMBERS + 2 * graft_integers_channels(signature);
}

/* A bias in units of the sums. One that is written as a whole number of them is one again. */
static float bias_at(const graft_group *group, const void *bias, uint32_t i, float unit)
{
    static const double part = 1.0 / (1 << 21);
    if (bias == NULL || group->inputs[2] == GRAFT_NONE) {
        return 0.0F;
    }
    if (group->whole_bias) {
        return (float)((const int32_t *)bias)[i];
    }
    const double units = (double)((const float *)bias)[i] / (double)unit;
    return (float)(fabs(units - rint(units)) <= fabs(units) * part ? rint(units) : units);
}

/* Factors are taken as onnxruntime takes them. */
static float *number_product(graft_arena *arena, const graft_group *g, const void *bias)
{
    const uint32_t channels = graft_integers_channels(&g->signature);
    float *numbers = GRAFT_NEW(arena, float, graft_integers_numbers(&g->signature));
    float *factors = numbers + GRAFT_PRODUCT_NUMBERS;
    numbers[GRAFT_PRODUCT_ZERO] = (float)g->in[0].zero;
    numbers[GRAFT_PRODUCT_RESULT_ZERO] = (float)g->out.zero;
    numbers[GRAFT_PRODUCT_MOST] = 6.0F / g->out.scale;
    for (uint32_t i = 0; i < channels; i++) {
        const float unit = g->in[0].scale * g->scales[g->per_channel ? i : 0];
        factors[i] = unit / g->out.scale;
        factors[channels + i] = bias_at(g, bias, i, unit);
    }
    return numbers;
}

static float *number_sum(graft_arena *arena, const graft_group *g)
{
    float *numbers = GRAFT_NEW(arena, float, GRAFT_SUM_NUMBERS);
    const graft_byte_scale scales[3] = {g->in[0], g->in[1], g->out};
    for (uint32_t k = 0; k < 3; k++) {
        numbers[2 * k] = scales[k].scale;
        numbers[2 * k + 1] = (float)scales[k].zero;
    }
    numbers[GRAFT_SUM_MOST] = 6.0F;
    return numbers;
}

/* As (rows, columns). */
static const int8_t *turn(graft_arena *arena, const graft_group *g)
{
    const size_t rows = (size_t)g->signature.inputs[1].dims[0];
    const size_t columns = (size_t)g->signature.inputs[1].dims[1];
    int8_t *turned = GRAFT_NEW(arena, int8_t, rows * columns);
    for (size_t i = 0; i < rows * columns; i++) {
        turned[i] = g->weights[i % columns * rows + i / columns];
    }
    return turned;
}

void graft_integers_constants(graft_arena *arena, const graft_group *group, const void *bias,
                              const float *constants[GRAFT_MAX_INPUTS])
{
    const bool sums = group->signature.op == GRAFT_COST_INTEGER_ADD;
    const void *weights = group->turned ? turn(arena, group) : group->weights;
    constants[0] = NULL;
    constants[1] = sums ? NULL : weights;
    constants[2] = sums ? number_sum(arena, group) : number_product(arena, group, bias);
}

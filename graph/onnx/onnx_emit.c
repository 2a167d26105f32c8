/* onnx_emit.c - ONNX nodes for what rules made (see onnx_write.h): one emitter for each form, in
 * the words of the model's opset. Fused operators come apart again; a runtime that has them fused
 * will find them. */
#include "graph/onnx/onnx_emit.h"

#include <float.h>

/* Whether the model's opset lacks a form, which the status says then. */
static bool lacks_opset(graft_onnx_emitter *e, const char *what, int64_t opset)
{
    const bool lacks = e->writer->opset < opset;
    if (lacks) {
        e->status =
            GRAFT_FAIL(e->writer->env, GRAFT_UNSUPPORTED,
                       "%s: %s needs opset %d, the model has %d; convert it to a later opset first",
                       e->writer->model->file, what, (int)opset, (int)e->writer->opset);
    }
    return lacks;
}

/* ---------------------------------------------------------------------------- elementwise */

static void emit_plain(graft_onnx_emitter *e)
{
    const char *inputs[GRAFT_MAX_INPUTS];
    const char *output = out_name(e, 0);
    for (uint32_t k = 0; k < e->node->input_count; k++) {
        inputs[k] = in_name(e, k);
    }
    (void)graft_onnx_push_node(e->writer, graft_op(e->node->op)->onnx, inputs, e->node->input_count,
                               &output, 1);
}

/* The opsets that brought FUNCTION rows, and others that older ones cannot say. */
static const uint8_t function_since[GRAFT_OP_COUNT] = {
    [GRAFT_OP_erf] = OPSET_ERF,
    [GRAFT_OP_cumsum] = 11,
    [GRAFT_OP_less] = 9,
    [GRAFT_OP_equal_to] = 11,
    [GRAFT_OP_select] = 9,
    [GRAFT_OP_remainder] = OPSET_MOD,
    [GRAFT_OP_repeat] = 11,
    [GRAFT_OP_pick] = OPSET_SLICE_INPUTS,
    [GRAFT_OP_reverse] = OPSET_SLICE_INPUTS,
#define OP(id, name, inputs, outputs, attributes, flags, onnx)
#define FUNCTION(id, name, attributes, flags, work, opset, onnx, body) [id] = (opset),
#include "graft/operators.def"
};

/* Those that can be said without. */
#define IS_GATED(op)  ((op) == GRAFT_OP_swish || (op) == GRAFT_OP_hard_swish)
#define HAS_STEPS(op) (IS_GATED(op) || (op) == GRAFT_OP_gelu_tanh)

static void emit_function(graft_onnx_emitter *e)
{
    const graft_op_info *info = graft_op(e->node->op);
    if (lacks_opset(e, info->onnx, function_since[e->node->op])) {
        return;
    }
    Onnx__NodeProto *node = push1(e, info->onnx, in_name(e, 0), out_name(e, 0));
    for (uint32_t i = 0; i < info->attr_count; i++) {
        graft_onnx_set_float(e->writer->arena, node, graft_op_attr(e->node->op, i)->name,
                             graft_float_of_bits(e->node->attrs[i]));
    }
    if (e->node->op == GRAFT_OP_gelu_tanh) {
        graft_onnx_set_text(e->writer->arena, node, "approximate", "tanh");
    }
}

static void emit_remainder(graft_onnx_emitter *e)
{
    if (!lacks_opset(e, "Mod", OPSET_MOD)) {
        graft_onnx_set_int(e->writer->arena,
                           push2(e, "Mod", in_name(e, 0), in_name(e, 1), out_name(e, 0)), "fmod",
                           1);
    }
}

static void emit_max_min(graft_onnx_emitter *e)
{
    if (in_shape(e, 0)->dtype == GRAFT_DTYPE_BOOL) {
        (void)push2(e, e->node->op == GRAFT_OP_min ? "And" : "Or", in_name(e, 0), in_name(e, 1),
                    out_name(e, 0));
    } else if (graft_shape_equal(in_shape(e, 0), in_shape(e, 1)) ||
               !lacks_opset(e, "Max or Min of unequal shapes", OPSET_BROADCAST_MAX)) {
        emit_plain(e);
    }
}

static void emit_leaky_relu(graft_onnx_emitter *e)
{
    Onnx__NodeProto *node = push1(e, "LeakyRelu", in_name(e, 0), out_name(e, 0));
    graft_onnx_set_float(e->writer->arena, node, "alpha",
                         graft_float_of_bits(e->node->attrs[GRAFT_ATTR_leaky_relu_slope]));
}

static void emit_quantise(graft_onnx_emitter *e)
{
    const graft_shape scalar = {.rank = 0, .dtype = GRAFT_DTYPE_F32};
    const int32_t *attrs = e->node->attrs;
    float scale = graft_float_of_bits(attrs[GRAFT_ATTR_quantise_scale]);
    uint8_t type = attrs[GRAFT_ATTR_quantise_least] == 0 ? GRAFT_DTYPE_U8 : GRAFT_DTYPE_I8;
    const char *output = out_name(e, 0);
    const char *inputs[3] = {
        in_name(e, 0), graft_onnx_push_floats(e->writer, "scale", &scale, &scalar),
        graft_onnx_push_byte(e->writer, "zero_point", type, attrs[GRAFT_ATTR_quantise_zero])};
    (void)graft_onnx_push_node(e->writer, graft_op(e->node->op)->onnx, inputs, 3, &output, 1);
}

/* A bound at the end of the number range is the default and is left out. */
static void push_clip(const graft_onnx_emitter *e, const char *in, const char *out, float low,
                      float high)
{
    graft_onnx_writer *writer = e->writer;
    bool has_low = low != -FLT_MAX;
    bool has_high = high != FLT_MAX;
    if (writer->opset < OPSET_CLIP_INPUTS) {
        Onnx__NodeProto *node = push1(e, "Clip", in, out);
        if (has_low) {
            graft_onnx_set_float(writer->arena, node, "min", low);
        }
        if (has_high) {
            graft_onnx_set_float(writer->arena, node, "max", high);
        }
        return;
    }
    const char *inputs[3] = {in, "", ""};
    if (has_low) {
        inputs[1] = push_scalar(e, "low", low);
    }
    if (has_high) {
        inputs[2] = push_scalar(e, "high", high);
    }
    (void)graft_onnx_push_node(writer, "Clip", inputs, has_high ? 3 : has_low ? 2 : 1, &out, 1);
}

static void emit_clip(graft_onnx_emitter *e)
{
    push_clip(e, in_name(e, 0), out_name(e, 0),
              graft_float_of_bits(e->node->attrs[GRAFT_ATTR_clip_low]),
              graft_float_of_bits(e->node->attrs[GRAFT_ATTR_clip_high]));
}

/* Where the last node before an activation writes to: the unit's output when there is none. */
static const char *before_activation(const graft_onnx_emitter *e, int32_t activation)
{
    return activation == GRAFT_ACT_NONE ? out_name(e, 0)
                                        : graft_onnx_fresh_name(e->writer, out_name(e, 0));
}

static void push_activation(const graft_onnx_emitter *e, int32_t activation, const char *in)
{
    static const char *const names[GRAFT_ACT_COUNT] = {
        [GRAFT_ACT_RELU] = "Relu", [GRAFT_ACT_SIGMOID] = "Sigmoid", [GRAFT_ACT_TANH] = "Tanh"};
    if (activation == GRAFT_ACT_RELU6) {
        push_clip(e, in, out_name(e, 0), 0.0F, 6.0F);
    } else if (activation != GRAFT_ACT_NONE) {
        (void)push1(e, names[activation], in, out_name(e, 0));
    }
}

/* -------------------------------------------------------------------- convolution, matmul */

/* Conv with `input_count` of the node's inputs (the weights are input 1), writing to `out`. */
static void push_conv(const graft_onnx_emitter *e, uint32_t input_count, const char *out)
{
    const char *inputs[GRAFT_MAX_INPUTS];
    for (uint32_t k = 0; k < input_count; k++) {
        inputs[k] = in_name(e, k);
    }
    const int32_t *attrs = e->node->attrs;
    Onnx__NodeProto *node = graft_onnx_push_node(e->writer, "Conv", inputs, input_count, &out, 1);
    set_ints32(e, node, "dilations", &attrs[GRAFT_ATTR_conv_dilation_h], 2);
    graft_onnx_set_int(e->writer->arena, node, "group", attrs[GRAFT_ATTR_conv_groups]);
    set_ints32(e, node, "kernel_shape", &in_shape(e, 1)->dims[2], 2);
    set_ints32(e, node, "pads", &attrs[GRAFT_ATTR_conv_pad_top], 4);
    set_ints32(e, node, "strides", &attrs[GRAFT_ATTR_conv_stride_h], 2);
}

static void emit_conv_transpose(graft_onnx_emitter *e)
{
    const int32_t *attrs = e->node->attrs;
    Onnx__NodeProto *node = push2(e, "ConvTranspose", in_name(e, 0), in_name(e, 1), out_name(e, 0));
    set_ints32(e, node, "kernel_shape", &in_shape(e, 1)->dims[2], 2);
    set_ints32(e, node, "output_padding", &attrs[GRAFT_ATTR_conv_transpose_extra_h], 2);
    set_ints32(e, node, "pads", &attrs[GRAFT_ATTR_conv_transpose_pad_top], 4);
    set_ints32(e, node, "strides", &attrs[GRAFT_ATTR_conv_transpose_stride_h], 2);
}

/* Maybe with a bias, an activation, and a tensor that is added before it. */
static void emit_conv(graft_onnx_emitter *e)
{
    _Static_assert((int)GRAFT_ATTR_conv_bias_activation == (int)GRAFT_ATTR_conv_bias_add_activation,
                   "both have the same attributes");
    const bool plain = e->node->op == GRAFT_OP_conv;
    const bool adds = e->node->op == GRAFT_OP_conv_bias_add;
    const int32_t activation =
        plain ? GRAFT_ACT_NONE : e->node->attrs[GRAFT_ATTR_conv_bias_activation];
    const char *bare = adds ? graft_onnx_fresh_name(e->writer, out_name(e, 0)) : NULL;
    const char *sum = before_activation(e, activation);
    push_conv(e, plain ? 2 : 3, adds ? bare : sum);
    if (adds) {
        (void)push2(e, "Add", bare, in_name(e, 3), sum);
    }
    push_activation(e, activation, sum);
}

/* The weight of which the second factor of two matrices is the transpose, where the file holds it
 * anyhow: Gemm reads it as it lies there, and it is not stored twice. NULL otherwise. */
static const char *name_of_transposed(const graft_onnx_emitter *e)
{
    const graft_graph *graph = e->writer->graph;
    const graft_value *value = &graph->values[graft_node_input(graph, e->n, 1)];
    if (in_shape(e, 0)->rank != 2 || value->node == GRAFT_NONE || value->shape.rank != 2 ||
        graph->nodes[value->node].op != GRAFT_OP_transpose ||
        graph->nodes[value->node].attrs[GRAFT_ATTR_transpose_axis_0] != 1) {
        return NULL;
    }
    const graft_index from = graft_node_input(graph, value->node, 0);
    return graph->values[from].kind == GRAFT_VALUE_WEIGHT &&
                   e->writer->weight_stays[graph->values[from].source]
               ? graft_onnx_value_name(e->writer, from)
               : NULL;
}

static void push_gemm(const graft_onnx_emitter *e, const char *transposed, size_t input_count,
                      const char *output)
{
    const char *inputs[3] = {in_name(e, 0), transposed != NULL ? transposed : in_name(e, 1)};
    if (input_count == 3) {
        inputs[2] = in_name(e, 2);
    }
    Onnx__NodeProto *node =
        graft_onnx_push_node(e->writer, "Gemm", inputs, input_count, &output, 1);
    if (transposed != NULL) {
        graft_onnx_set_int(e->writer->arena, node, "transB", 1);
    }
}

static void emit_matmul(graft_onnx_emitter *e)
{
    const char *transposed = e->writer->opset < OPSET_GEMM_OF_TWO ? NULL : name_of_transposed(e);
    if (transposed == NULL) {
        emit_plain(e);
    } else {
        push_gemm(e, transposed, 2, out_name(e, 0));
    }
}

static void emit_matmul_bias(graft_onnx_emitter *e)
{
    int32_t activation = e->node->attrs[GRAFT_ATTR_matmul_bias_activation];
    const char *sum = before_activation(e, activation);
    if (in_shape(e, 0)->rank == 2 && in_shape(e, 1)->rank == 2) {
        push_gemm(e, name_of_transposed(e), 3, sum);
    } else {
        const char *bare = graft_onnx_fresh_name(e->writer, out_name(e, 0));
        (void)push2(e, "MatMul", in_name(e, 0), in_name(e, 1), bare);
        (void)push2(e, "Add", bare, in_name(e, 2), sum);
    }
    push_activation(e, activation, sum);
}

/* Mean 0, variance 1 and epsilon 0 leave x scale + shift, exactly. */
static void emit_scale_shift(graft_onnx_emitter *e)
{
    graft_onnx_writer *writer = e->writer;
    const graft_shape list = {
        .rank = 1, .dtype = in_shape(e, 0)->dtype, .dims = {in_shape(e, 0)->dims[1]}};
    const int32_t channels = list.dims[0];
    float *zeros = GRAFT_NEW(writer->arena, float, (size_t)channels);
    float *ones = GRAFT_NEW(writer->arena, float, (size_t)channels);
    for (int32_t c = 0; c < channels; c++) {
        ones[c] = 1.0F;
    }
    const char *output = out_name(e, 0);
    const char *inputs[] = {in_name(e, 0), in_name(e, 1), in_name(e, 2),
                            graft_onnx_push_floats(writer, "zeros", zeros, &list),
                            graft_onnx_push_floats(writer, "ones", ones, &list)};
    Onnx__NodeProto *node = graft_onnx_push_node(writer, "BatchNormalization", inputs,
                                                 sizeof(inputs) / sizeof(inputs[0]), &output, 1);
    graft_onnx_set_float(writer->arena, node, "epsilon", 0.0F);
}

/* ------------------------------------------------------------------- pooling, reductions */

static void set_pool_window(const graft_onnx_emitter *e, Onnx__NodeProto *node)
{
    const int32_t *attrs = e->node->attrs;
    set_ints32(e, node, "kernel_shape", &attrs[GRAFT_ATTR_max_pool_kernel_h], 2);
    set_ints32(e, node, "pads", &attrs[GRAFT_ATTR_max_pool_pad_top], 4);
    set_ints32(e, node, "strides", &attrs[GRAFT_ATTR_max_pool_stride_h], 2);
}

static void emit_max_pool(graft_onnx_emitter *e)
{
    const int32_t *dilation = &e->node->attrs[GRAFT_ATTR_max_pool_dilation_h];
    bool dilated = dilation[0] != 1 || dilation[1] != 1;
    if (dilated && lacks_opset(e, "MaxPool with dilations", OPSET_DILATED_MAX_POOL)) {
        return;
    }
    Onnx__NodeProto *node = push1(e, "MaxPool", in_name(e, 0), out_name(e, 0));
    set_pool_window(e, node);
    if (dilated) {
        set_ints32(e, node, "dilations", dilation, 2);
    }
}

static void emit_avg_pool(graft_onnx_emitter *e)
{
    Onnx__NodeProto *node = push1(e, "AveragePool", in_name(e, 0), out_name(e, 0));
    set_pool_window(e, node);
    graft_onnx_set_int(e->writer->arena, node, "count_include_pad",
                       e->node->attrs[GRAFT_ATTR_avg_pool_count_pad]);
}

/* Axes are an attribute before opset `since`, and an input from there on. */
typedef struct {
    const char *name;
    int64_t since;
    const int64_t *axes;
    size_t axis_count;
    int64_t keep;
} reduction;

static void push_reduction(const graft_onnx_emitter *e, const reduction *r, const char *in,
                           const char *out)
{
    const bool attribute = e->writer->opset < r->since;
    Onnx__NodeProto *node =
        attribute ? push1(e, r->name, in, out)
                  : push2(e, r->name, in,
                          graft_onnx_push_ints(e->writer, "axes", r->axes, r->axis_count), out);
    if (attribute) {
        graft_onnx_set_ints(e->writer->arena, node, "axes", r->axes, r->axis_count);
    }
    graft_onnx_set_int(e->writer->arena, node, "keepdims", r->keep);
}

/* All reductions have the same attributes. */
static void emit_reduce(graft_onnx_emitter *e)
{
    int64_t axes[GRAFT_MAX_RANK];
    uint32_t count = 0;
    for (uint32_t i = 0; i < GRAFT_MAX_RANK; i++) {
        if ((e->node->attrs[GRAFT_ATTR_reduce_mean_axes] >> i & 1) != 0) {
            axes[count++] = i;
        }
    }
    const reduction r = {.name = graft_op(e->node->op)->onnx,
                         .since = e->node->op == GRAFT_OP_reduce_sum ? OPSET_REDUCE_SUM_INPUT
                                                                     : OPSET_REDUCE_INPUT,
                         .axes = axes,
                         .axis_count = count,
                         .keep = e->node->attrs[GRAFT_ATTR_reduce_mean_keep]};
    push_reduction(e, &r, in_name(e, 0), out_name(e, 0));
}

/* Pushes a node with one output of a new name, which is the result. */
static const char *step1(const graft_onnx_emitter *e, const char *op_type, const char *in)
{
    const char *out = graft_onnx_fresh_name(e->writer, out_name(e, 0));
    (void)push1(e, op_type, in, out);
    return out;
}

static const char *step2(const graft_onnx_emitter *e, const char *op_type, const char *a,
                         const char *b)
{
    const char *out = graft_onnx_fresh_name(e->writer, out_name(e, 0));
    (void)push2(e, op_type, a, b, out);
    return out;
}

/* In the five steps in which exporters write it for older opsets. */
static void emit_gelu(graft_onnx_emitter *e)
{
    if (e->writer->opset >= OPSET_GELU) {
        emit_plain(e);
        return;
    }
    if (lacks_opset(e, "Erf", OPSET_ERF)) {
        return;
    }
    const char *x = in_name(e, 0);
    const char *y = step2(e, "Div", x, push_scalar(e, "root", 1.41421354F));
    y = step2(e, "Add", step1(e, "Erf", y), push_scalar(e, "one", 1.0F));
    (void)push2(e, "Mul", step2(e, "Mul", x, y), push_scalar(e, "half", 0.5F), out_name(e, 0));
}

/* By tanh, in the eight steps of which onnxruntime makes one kernel: with the half anywhere else,
 * or the cube as products, it does not. */
static void emit_gelu_tanh(graft_onnx_emitter *e)
{
    const char *x = in_name(e, 0);
    if (e->writer->opset >= function_since[GRAFT_OP_gelu_tanh]) {
        emit_function(e);
        return;
    }
    const char *y = step2(e, "Pow", x, push_scalar(e, "exponent", 3.0F));
    y = step2(e, "Mul", y, push_scalar(e, "rate", 0.044715F));
    y = step2(e, "Add", x, y);
    y = step2(e, "Mul", y, push_scalar(e, "root", 0.797884583F));
    y = step2(e, "Add", step1(e, "Tanh", y), push_scalar(e, "one", 1.0F));
    x = step2(e, "Mul", x, push_scalar(e, "half", 0.5F));
    (void)push2(e, "Mul", x, y, out_name(e, 0));
}

/* x sigmoid(alpha x) and x hard_sigmoid(x / 6 + 1/2), the latter in parts before there was an operator
 * for it. Swish always is: onnxruntime 1.32 has it in opset 24, by its parts, and in none behind. */
static bool is_gated_in_parts(const graft_onnx_writer *writer, const graft_node *node)
{
    return node->op == GRAFT_OP_swish || writer->opset < function_since[node->op];
}

static void emit_gated(graft_onnx_emitter *e)
{
    const char *x = in_name(e, 0);
    const char *gate = NULL;
    if (!is_gated_in_parts(e->writer, e->node)) {
        emit_function(e);
        return;
    }
    if (e->node->op == GRAFT_OP_swish) {
        const float alpha = graft_float_of_bits(e->node->attrs[GRAFT_ATTR_swish_alpha]);
        gate = alpha == 1.0F ? x : step2(e, "Mul", x, push_scalar(e, "alpha", alpha));
        gate = step1(e, "Sigmoid", gate);
    } else {
        gate = graft_onnx_fresh_name(e->writer, out_name(e, 0));
        Onnx__NodeProto *node = push1(e, "HardSigmoid", x, gate);
        graft_onnx_set_float(e->writer->arena, node, "alpha", 1.0F / 6.0F);
        graft_onnx_set_float(e->writer->arena, node, "beta", 0.5F);
    }
    (void)push2(e, "Mul", x, gate, out_name(e, 0));
}

/* The mean over the last axis, which stays as 1. */
static const char *step_mean(const graft_onnx_emitter *e, const char *in)
{
    const int64_t axis = in_shape(e, 0)->rank - 1;
    const char *out = graft_onnx_fresh_name(e->writer, out_name(e, 0));
    push_reduction(e,
                   &(reduction){.name = "ReduceMean",
                                .since = OPSET_REDUCE_INPUT,
                                .axes = &axis,
                                .axis_count = 1,
                                .keep = 1},
                   in, out);
    return out;
}

/* As a power, as exporters write it: runtimes that make one kernel of the steps of a normalisation
 * look for that. */
static const char *step_square(const graft_onnx_emitter *e, const char *x)
{
    return step2(e, "Pow", x, push_scalar(e, "exponent", 2.0F));
}

/* In the nine steps in which exporters write it for older opsets. */
static void emit_layer_norm(graft_onnx_emitter *e)
{
    float epsilon = graft_float_of_bits(e->node->attrs[GRAFT_ATTR_layer_norm_epsilon]);
    const char *inputs[3] = {in_name(e, 0), in_name(e, 1), in_name(e, 2)};
    if (e->writer->opset >= OPSET_LAYER_NORM) {
        const char *output = out_name(e, 0);
        Onnx__NodeProto *node =
            graft_onnx_push_node(e->writer, "LayerNormalization", inputs, 3, &output, 1);
        graft_onnx_set_int(e->writer->arena, node, "axis", -1);
        graft_onnx_set_float(e->writer->arena, node, "epsilon", epsilon);
        return;
    }
    const char *d = step2(e, "Sub", inputs[0], step_mean(e, inputs[0]));
    const char *variance = step_mean(e, step_square(e, d));
    const char *deviation =
        step1(e, "Sqrt", step2(e, "Add", variance, push_scalar(e, "epsilon", epsilon)));
    const char *normal = step2(e, "Div", d, deviation);
    (void)push2(e, "Add", step2(e, "Mul", normal, inputs[1]), inputs[2], out_name(e, 0));
}

static void emit_instance_norm(graft_onnx_emitter *e)
{
    const char *inputs[3] = {in_name(e, 0), in_name(e, 1), in_name(e, 2)};
    const char *output = out_name(e, 0);
    graft_onnx_set_float(e->writer->arena,
                         graft_onnx_push_node(e->writer, graft_op(e->node->op)->onnx, inputs,
                                              e->node->input_count, &output, 1),
                         "epsilon",
                         graft_float_of_bits(e->node->attrs[GRAFT_ATTR_layer_norm_epsilon]));
}

static void emit_rms_norm(graft_onnx_emitter *e)
{
    if (e->writer->opset >= OPSET_RMS_NORM) {
        emit_instance_norm(e); /* Inputs and attributes are of the same kind. */
        return;
    }
    const char *x = in_name(e, 0);
    float epsilon = graft_float_of_bits(e->node->attrs[GRAFT_ATTR_rms_norm_epsilon]);
    const char *squares = step_mean(e, step_square(e, x));
    const char *deviation =
        step1(e, "Sqrt", step2(e, "Add", squares, push_scalar(e, "epsilon", epsilon)));
    (void)push2(e, "Mul", step2(e, "Div", x, deviation), in_name(e, 1), out_name(e, 0));
}

/* Up to opset 12 Softmax runs over all axes from its own on: where these are longer than 1, the
 * axis is moved to the end and back. */
static void emit_softmax(graft_onnx_emitter *e)
{
    const graft_shape *shape = in_shape(e, 0);
    uint32_t axis = (uint32_t)e->node->attrs[GRAFT_ATTR_softmax_axis];
    bool plain = true;
    int64_t swap[GRAFT_MAX_RANK];
    for (uint32_t i = 0; i < shape->rank; i++) {
        swap[i] = i == axis ? shape->rank - 1U : i == shape->rank - 1U ? axis : i;
        plain = plain && (i <= axis || (shape->dims[i] == 1 && !e->writer->model->is_open));
    }
    graft_arena *arena = e->writer->arena;
    const char *name = graft_op(e->node->op)->onnx; /* Or LogSoftmax. */
    if (plain || e->writer->opset >= OPSET_SOFTMAX_AXIS) {
        graft_onnx_set_int(arena, push1(e, name, in_name(e, 0), out_name(e, 0)), "axis", axis);
        return;
    }
    const char *swapped = graft_onnx_fresh_name(e->writer, out_name(e, 0));
    const char *soft = graft_onnx_fresh_name(e->writer, out_name(e, 0));
    graft_onnx_set_ints(arena, push1(e, "Transpose", in_name(e, 0), swapped), "perm", swap,
                        shape->rank);
    graft_onnx_set_int(arena, push1(e, name, swapped, soft), "axis", shape->rank - 1);
    graft_onnx_set_ints(arena, push1(e, "Transpose", soft, out_name(e, 0)), "perm", swap,
                        shape->rank);
}

/* ------------------------------------------------------------------------------ the table */

/* Others are written as they are. */
static graft_onnx_form *const emit_table[GRAFT_OP_COUNT] = {
    [GRAFT_OP_conv] = emit_conv,
    [GRAFT_OP_conv_bias] = emit_conv,
    [GRAFT_OP_conv_bias_add] = emit_conv,
    [GRAFT_OP_matmul] = emit_matmul,
    [GRAFT_OP_matmul_bias] = emit_matmul_bias,
    [GRAFT_OP_scale_shift] = emit_scale_shift,
    [GRAFT_OP_clip] = emit_clip,
    [GRAFT_OP_max] = emit_max_min,
    [GRAFT_OP_min] = emit_max_min,
    [GRAFT_OP_remainder] = emit_remainder,
    [GRAFT_OP_concat] = graft_onnx_emit_concat,
    [GRAFT_OP_split] = graft_onnx_emit_split,
    [GRAFT_OP_slice] = graft_onnx_emit_slice,
    [GRAFT_OP_pad] = graft_onnx_emit_pad,
    [GRAFT_OP_transpose] = graft_onnx_emit_transpose,
    [GRAFT_OP_reshape] = graft_onnx_emit_reshape,
    [GRAFT_OP_max_pool] = emit_max_pool,
    [GRAFT_OP_avg_pool] = emit_avg_pool,
    [GRAFT_OP_softmax] = emit_softmax,
    [GRAFT_OP_reduce_mean] = emit_reduce,
    [GRAFT_OP_leaky_relu] = emit_leaky_relu,
    [GRAFT_OP_gelu] = emit_gelu,
    [GRAFT_OP_layer_norm] = emit_layer_norm,
    [GRAFT_OP_reduce_sum] = emit_reduce,
    [GRAFT_OP_reduce_max] = emit_reduce,
    [GRAFT_OP_reduce_min] = emit_reduce,
    [GRAFT_OP_rms_norm] = emit_rms_norm,
    [GRAFT_OP_instance_norm] = emit_instance_norm,
    [GRAFT_OP_cumsum] = graft_onnx_emit_cumsum,
    [GRAFT_OP_erf] = emit_function,
    [GRAFT_OP_repeat] = graft_onnx_emit_repeat,
    [GRAFT_OP_conv_transpose] = emit_conv_transpose,
    [GRAFT_OP_pick] = graft_onnx_emit_pick,
    [GRAFT_OP_reverse] = graft_onnx_emit_reverse,
    [GRAFT_OP_log_softmax] = emit_softmax,
    [GRAFT_OP_quantise] = emit_quantise,
    [GRAFT_OP_dequantise] = emit_quantise,
#define OP(id, name, inputs, outputs, attributes, flags, onnx)
#define FUNCTION(id, name, attributes, flags, work, since, onnx, body)                             \
    [id] = IS_GATED(id) ? emit_gated : (id) == GRAFT_OP_gelu_tanh ? emit_gelu_tanh : emit_function,
#include "graft/operators.def"
};

bool graft_model_has_form(const graft_model *model, uint32_t op)
{
    bool extremum = op == GRAFT_OP_max || op == GRAFT_OP_min;
    int64_t first = op == GRAFT_OP_gelu ? OPSET_ERF : extremum ? OPSET_BROADCAST_MAX : 1;
    if (!HAS_STEPS(op) && op < GRAFT_OP_COUNT && function_since[op] > first) {
        first = function_since[op];
    }
    return model->onnx->opset >= first;
}

uint32_t graft_onnx_unit_nodes(const graft_onnx_writer *writer, const graft_onnx_unit *unit)
{
    enum { RMS_NORM_STEPS = 6, GELU_STEPS = 5, GELU_TANH_STEPS = 8, LAYER_NORM_STEPS = 9 };
    const graft_graph *graph = writer->graph;
    const graft_node *node = &graph->nodes[unit->root];
    switch (node->op) {
    case GRAFT_OP_conv_bias:
        return 1U + (node->attrs[GRAFT_ATTR_conv_bias_activation] != GRAFT_ACT_NONE);
    case GRAFT_OP_conv_bias_add:
        return 2U + (node->attrs[GRAFT_ATTR_conv_bias_add_activation] != GRAFT_ACT_NONE);
    case GRAFT_OP_matmul_bias: {
        bool gemm = graph->values[graft_node_input(graph, unit->root, 0)].shape.rank == 2 &&
                    graph->values[graft_node_input(graph, unit->root, 1)].shape.rank == 2;
        return (gemm ? 1U : 2U) +
               (node->attrs[GRAFT_ATTR_matmul_bias_activation] != GRAFT_ACT_NONE);
    }
    case GRAFT_OP_gelu:
        return writer->opset >= OPSET_GELU ? 1 : GELU_STEPS;
    case GRAFT_OP_gelu_tanh:
        return writer->opset >= function_since[node->op] ? 1 : GELU_TANH_STEPS;
    case GRAFT_OP_swish:
    case GRAFT_OP_hard_swish:
        return !is_gated_in_parts(writer, node) ? 1
               : node->op == GRAFT_OP_hard_swish ||
                       graft_float_of_bits(node->attrs[GRAFT_ATTR_swish_alpha]) == 1.0F
                   ? 2
                   : 3;
    case GRAFT_OP_rms_norm:
        return writer->opset >= OPSET_RMS_NORM ? 1 : RMS_NORM_STEPS;
    case GRAFT_OP_layer_norm:
        return writer->opset >= OPSET_LAYER_NORM ? 1 : LAYER_NORM_STEPS;
    default:
        return 1;
    }
}

graft_status graft_onnx_emit_unit(graft_onnx_writer *writer, const graft_onnx_unit *unit)
{
    graft_onnx_emitter e = {
        .writer = writer, .n = unit->root, .node = &writer->graph->nodes[unit->root]};
    const graft_op_info *op = graft_op(e.node->op);
    graft_onnx_form *emit = op == NULL ? NULL : emit_table[e.node->op];
    GRAFT_RETURN_IF(op == NULL || (emit == NULL && (op->attr_count > 0 || op->output_count != 1)),
                    GRAFT_FAIL(writer->env, GRAFT_INTERNAL, "%s: operator %u has no ONNX form",
                               writer->model->file, e.node->op)); /* As a fill, which is stored. */
    (emit == NULL ? emit_plain : emit)(&e);
    return e.status;
}

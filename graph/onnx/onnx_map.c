/* onnx_map.c - planners of the operators that compute (see onnx.h). Each says what of the ONNX form
 * it takes; the rest is refused, and the node stays opaque. */
#include "graph/onnx/onnx.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------------------- elementwise */

void graft_plan_unary(graft_onnx_plan *plan)
{
    graft_plan_output(plan, 0, graft_plan_add1(plan, plan->op, NULL, graft_plan_input(plan, 0)));
}

/* A FUNCTION row; its attributes' `least` are their numbers where the node has none. */
void graft_plan_function(graft_onnx_plan *plan)
{
    int32_t attrs[GRAFT_MAX_ATTRS];
    for (uint32_t i = 0; i < graft_op(plan->op)->attr_count; i++) {
        const graft_attr_info *info = graft_op_attr(plan->op, i);
        attrs[i] = graft_plan_attribute(plan, info->name) == NULL
                       ? info->least
                       : graft_bits_of_float(graft_plan_float(plan, info->name, 0.0F));
    }
    graft_plan_output(plan, 0, graft_plan_add1(plan, plan->op, attrs, graft_plan_input(plan, 0)));
}

/* Before opset 7: `broadcast` allows b to be smaller; `axis` says where its axes start in a. */
static graft_onnx_operand align_old_operand(graft_onnx_plan *plan, graft_onnx_operand a,
                                            graft_onnx_operand b)
{
    graft_shape big = graft_plan_shape(plan, a);
    graft_shape small = graft_plan_shape(plan, b);
    if (graft_plan_int(plan, "broadcast", 0) == 0) {
        if (!graft_shape_equal(&big, &small)) {
            graft_plan_refuse(plan, "unequal shapes without broadcast");
        }
        return b;
    }
    if (graft_plan_attribute(plan, "axis") == NULL || small.rank == 0) {
        return b;
    }
    uint32_t axis = graft_plan_axis(plan, graft_plan_int(plan, "axis", 0), big.rank);
    if (plan->refusal != NULL || axis + small.rank > big.rank) {
        graft_plan_refuse(plan, "an operand that does not fit at the axis");
        return b;
    }
    int32_t dims[GRAFT_MAX_RANK];
    uint32_t rank = big.rank - axis;
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = i < small.rank ? small.dims[i] : 1;
    }
    return rank == small.rank ? b : graft_plan_reshape(plan, b, dims, rank);
}

/* A vector is a row on the left of a product and a column on the right, and its axis is none of the
 * result's. */
static graft_onnx_operand multiply_vectors(graft_onnx_plan *plan, graft_onnx_operand a,
                                           graft_onnx_operand b)
{
    const graft_shape left = graft_plan_shape(plan, a);
    const graft_shape right = graft_plan_shape(plan, b);
    const bool row = left.rank == 1;
    const bool column = right.rank == 1;
    graft_shape kept = {.rank = 0};
    a = row ? graft_plan_reshape(plan, a, (const int32_t[]){1, left.dims[0]}, 2) : a;
    b = column ? graft_plan_reshape(plan, b, (const int32_t[]){right.dims[0], 1}, 2) : b;
    const graft_onnx_operand c = graft_plan_add2(plan, GRAFT_OP_matmul, NULL, a, b);
    const graft_shape product = graft_plan_shape(plan, c);
    for (uint32_t i = 0; i < product.rank; i++) {
        if (!(row && i + 2U == product.rank) && !(column && i + 1U == product.rank)) {
            kept.dims[kept.rank++] = product.dims[i];
        }
    }
    return graft_plan_reshape(plan, c, kept.dims, kept.rank);
}

/* Also MatMul. */
void graft_plan_binary(graft_onnx_plan *plan)
{
    graft_onnx_operand a = graft_plan_input(plan, 0);
    graft_onnx_operand b = graft_plan_input(plan, 1);
    if (plan->opset < 7 && plan->op != GRAFT_OP_matmul && plan->refusal == NULL) {
        b = align_old_operand(plan, a, b);
    } else if (plan->node->n_attribute > 0) {
        graft_plan_refuse(plan, "an attribute of an older opset");
    }
    const bool vectors =
        plan->op == GRAFT_OP_matmul && plan->refusal == NULL &&
        (graft_plan_shape(plan, a).rank == 1 || graft_plan_shape(plan, b).rank == 1);
    graft_plan_output(plan, 0,
                      vectors ? multiply_vectors(plan, a, b)
                              : graft_plan_add2(plan, plan->op, NULL, a, b));
}

/* Sum, Max, Min of any number of tensors: from the left, two at a time. */
void graft_plan_chain(graft_onnx_plan *plan)
{
    graft_onnx_operand all = graft_plan_input(plan, 0);
    if (plan->node->n_input == 1) {
        all = graft_plan_add1(plan, GRAFT_OP_identity, NULL, all);
    }
    for (uint32_t k = 1; k < plan->node->n_input; k++) {
        all = graft_plan_add2(plan, plan->op, NULL, all, graft_plan_input(plan, k));
    }
    graft_plan_output(plan, 0, all);
}

void graft_plan_leaky_relu(graft_onnx_plan *plan)
{
    int32_t slope = graft_bits_of_float(graft_plan_float(plan, "alpha", 0.01F));
    graft_plan_output(
        plan, 0, graft_plan_add1(plan, GRAFT_OP_leaky_relu, &slope, graft_plan_input(plan, 0)));
}

/* A bound: attribute up to opset 10, optional input since. */
static float clip_bound(graft_onnx_plan *plan, const char *name, uint32_t k, float absent)
{
    uint64_t count = 0;
    float bound = absent;
    if (plan->opset < 11) {
        bound = graft_plan_float(plan, name, absent);
    } else if (graft_plan_attribute(plan, name) != NULL) {
        graft_plan_refuse(plan, "an attribute of an older opset");
    } else if (graft_plan_has_input(plan, k)) {
        const float *data = graft_plan_const_floats(plan, k, &count);
        if (data == NULL || count != 1) {
            graft_plan_refuse(plan, "a bound that is not one number");
            return absent;
        }
        bound = data[0];
    }
    if (isnan(bound)) {
        graft_plan_refuse(plan, "a bound that is not a number");
    }
    return bound;
}

void graft_plan_clip(graft_onnx_plan *plan)
{
    int32_t attrs[2];
    attrs[GRAFT_ATTR_clip_low] = graft_bits_of_float(clip_bound(plan, "min", 1, -FLT_MAX));
    attrs[GRAFT_ATTR_clip_high] = graft_bits_of_float(clip_bound(plan, "max", 2, FLT_MAX));
    graft_plan_output(plan, 0,
                      graft_plan_add1(plan, GRAFT_OP_clip, attrs, graft_plan_input(plan, 0)));
}

/* Whether a dropout drops nothing: its ratio is 0, also while a model is trained. */
static bool drops_nothing(const graft_onnx_plan *plan)
{
    const graft_onnx_entry *entry = graft_onnx_input(plan->reader->onnx, plan->node, 1);
    const graft_model_weight *ratio =
        entry == NULL || entry->weight == GRAFT_NONE ? NULL : &plan->reader->weights[entry->weight];
    float value = 1.0F;
    if (ratio != NULL && graft_dtype_is_real(ratio->shape.dtype) &&
        ratio->data_bytes == sizeof(value)) {
        memcpy(&value, ratio->data, sizeof(value));
    }
    return value == 0.0F;
}

/* At inference the identity. */
void graft_plan_dropout(graft_onnx_plan *plan)
{
    if (plan->opset < 7 && graft_plan_int(plan, "is_test", 0) == 0) {
        graft_plan_refuse(plan, "training mode");
    }
    const graft_onnx_entry *mode = graft_onnx_input(plan->reader->onnx, plan->node, 2);
    if (mode != NULL && !drops_nothing(plan)) {
        const graft_model_weight *weight =
            mode->weight == GRAFT_NONE ? NULL : &plan->reader->weights[mode->weight];
        if (weight == NULL || weight->data_bytes != 1 || *(const uint8_t *)weight->data != 0) {
            graft_plan_refuse(plan, "training mode");
        }
    }
    graft_plan_output(plan, 0,
                      graft_plan_add1(plan, GRAFT_OP_identity, NULL, graft_plan_input(plan, 0)));
}

/* ---------------------------------------------------------------- windows: conv and pools */

/* Attributes of a window that slides over two axes, (height, width); over one, which is the width
 * of images of one row; or over the first of three, which is the height of images whose rows are
 * the other two. */
typedef struct {
    uint32_t first;   /* 1 over one axis. */
    graft_shape deep; /* Over the first of three: the input; otherwise of rank 0. */
    int32_t kernel[2];
    int32_t stride[2];
    int32_t dilation[2];
    int32_t before[2];
    int32_t after[2];
} window;

/* A sequence (N,C,L) as an image of one row. */
static graft_onnx_operand as_image(graft_onnx_plan *plan, graft_onnx_operand x)
{
    graft_shape s = graft_plan_shape(plan, x);
    const int32_t dims[4] = {s.dims[0], s.dims[1], 1, s.dims[2]};
    return s.rank == 3 ? graft_plan_reshape(plan, x, dims, 4) : x;
}

/* A volume (N,C,D,H,W) as an image of D rows. */
static graft_onnx_operand as_rows(graft_onnx_plan *plan, graft_onnx_operand x)
{
    graft_shape s = graft_plan_shape(plan, x);
    const int32_t dims[4] = {s.dims[0], s.dims[1], s.dims[2],
                             graft_plan_int32(plan, (int64_t)s.dims[3] * s.dims[4])};
    return graft_plan_reshape(plan, x, dims, 4);
}

static graft_onnx_operand from_image(graft_onnx_plan *plan, graft_onnx_operand y, const window *w)
{
    graft_shape s = graft_plan_shape(plan, y);
    const int32_t dims[3] = {s.dims[0], s.dims[1], s.dims[3]};
    const int32_t deep[5] = {s.dims[0], s.dims[1], s.dims[2], w->deep.dims[3], w->deep.dims[4]};
    return w->first == 1       ? graft_plan_reshape(plan, y, dims, 3)
           : w->deep.rank == 5 ? graft_plan_reshape(plan, y, deep, 5)
                               : y;
}

/* A list for three axes that says nothing of the last two. */
static bool is_of_first(const int64_t *items, uint32_t count, int64_t nothing)
{
    return count == 3 && items[1] == nothing && items[2] == nothing;
}

/* One number an axis. */
static void read_pair(graft_onnx_plan *plan, const char *name, const window *w, int32_t pair[2])
{
    uint32_t count = 0;
    const int64_t *items = graft_plan_ints(plan, name, &count);
    const bool deep = w->deep.rank == 5;
    if (items != NULL && (deep ? !is_of_first(items, count, 1) : count != 2 - w->first)) {
        graft_plan_refuse(plan, "a window that has not an axis for each of the image's");
    }
    for (uint32_t i = w->first; items != NULL && plan->refusal == NULL && i < 2; i++) {
        pair[i] = graft_plan_int32(plan, items[i - w->first]);
    }
}

static void read_pads(graft_onnx_plan *plan, window *w)
{
    uint32_t count = 0;
    const int64_t *pads = graft_plan_ints(plan, "pads", &count);
    const bool deep = w->deep.rank == 5;
    const uint32_t axes = deep ? 3 : 2 - w->first;
    if (pads != NULL && (count != 2 * axes ||
                         (deep && !(is_of_first(pads, 3, 0) && is_of_first(pads + 3, 3, 0))))) {
        graft_plan_refuse(plan, "pads that are not two numbers an axis");
    }
    for (uint32_t i = 0; pads != NULL && plan->refusal == NULL && i < 2 - w->first; i++) {
        w->before[w->first + i] = graft_plan_int32(plan, pads[i]);
        w->after[w->first + i] = graft_plan_int32(plan, pads[axes + i]);
    }
}

/* What a dilated kernel covers. */
static int64_t window_reach(const window *w, uint32_t i)
{
    return ((int64_t)w->kernel[i] - 1) * w->dilation[i] + 1;
}

/* SAME: as many outputs as strides begin in the input; the odd pad goes behind (upper) or before.
 */
static void pad_to_same(graft_onnx_plan *plan, const graft_shape *x, window *w, bool upper)
{
    for (uint32_t i = 0; i < 2; i++) {
        int64_t size = x->dims[2 + i];
        int64_t outputs = (size + w->stride[i] - 1) / w->stride[i];
        int64_t total = (outputs - 1) * w->stride[i] + window_reach(w, i) - size;
        total = total < 0 ? 0 : total;
        w->before[i] = graft_plan_int32(plan, upper ? total / 2 : total - total / 2);
        w->after[i] = graft_plan_int32(plan, upper ? total - total / 2 : total / 2);
    }
}

/* Reads strides, dilations and padding; `w->kernel` is set. */
static void read_window(graft_onnx_plan *plan, const graft_shape *x, window *w)
{
    for (uint32_t i = 0; i < 2; i++) {
        w->stride[i] = 1;
        w->dilation[i] = 1;
        w->before[i] = 0;
        w->after[i] = 0;
    }
    read_pair(plan, "strides", w, w->stride);
    read_pair(plan, "dilations", w, w->dilation);
    if (x->rank != 4 || w->stride[0] < 1 || w->stride[1] < 1) {
        graft_plan_refuse(plan, "a window over more than two axes");
        return;
    }
    const bool upper = graft_onnx_says(plan->node, "auto_pad", "SAME_UPPER", false);
    if (graft_onnx_says(plan->node, "auto_pad", "NOTSET", true)) {
        read_pads(plan, w);
    } else if (upper || graft_onnx_says(plan->node, "auto_pad", "SAME_LOWER", false)) {
        pad_to_same(plan, x, w, upper);
    } else if (!graft_onnx_says(plan->node, "auto_pad", "VALID", false)) {
        graft_plan_refuse(plan, "an unknown auto_pad");
    }
}

/* Inputs x(N,C,H,W), w(C,O,kh,kw) and maybe b(O), which is added; of one group. */
void graft_plan_conv_transpose(graft_onnx_plan *plan)
{
    const graft_onnx_operand inputs[2] = {graft_plan_input(plan, 0), graft_plan_input(plan, 1)};
    const graft_shape x = graft_plan_shape(plan, inputs[0]);
    const graft_shape filter = graft_plan_shape(plan, inputs[1]);
    window w = {
        .kernel = {filter.dims[2], filter.dims[3]}
    };
    int32_t extra[2] = {0, 0};
    read_pair(plan, "kernel_shape", &w, w.kernel);
    read_pair(plan, "output_padding", &w, extra);
    read_window(plan, &x, &w);
    if (filter.rank != 4 || w.kernel[0] != filter.dims[2] || w.kernel[1] != filter.dims[3] ||
        w.dilation[0] != 1 || w.dilation[1] != 1 || graft_plan_int(plan, "group", 1) != 1 ||
        (!graft_onnx_says(plan->node, "auto_pad", "NOTSET", true) &&
         !graft_onnx_says(plan->node, "auto_pad", "VALID", false))) {
        graft_plan_refuse(plan, "groups, dilations or an auto_pad");
        return;
    }
    const int32_t attrs[GRAFT_MAX_ATTRS] = {w.stride[0], w.stride[1], w.before[0], w.before[1],
                                            w.after[0],  w.after[1],  extra[0],    extra[1]};
    graft_onnx_operand y = graft_plan_add(plan, GRAFT_OP_conv_transpose, attrs, inputs);
    if (graft_plan_has_input(plan, 2)) {
        const int32_t channels[3] = {filter.dims[1], 1, 1};
        y = graft_plan_add2(plan, GRAFT_OP_add, NULL, y,
                            graft_plan_reshape(plan, graft_plan_input(plan, 2), channels, 3));
    }
    graft_plan_output(plan, 0, y);
}

/* Inputs x(N,C,H,W), w(O,C/group,kh,kw) and maybe b(O); or x(N,C,L), w(O,C/group,k). */
void graft_plan_conv(graft_onnx_plan *plan)
{
    uint32_t op = plan->op;
    if (graft_plan_shape(plan, graft_plan_input(plan, 0)).rank == 5) {
        graft_plan_deep_conv(plan);
        return;
    }
    bool has_bias = graft_plan_has_input(plan, 2);
    bool one = graft_plan_shape(plan, graft_plan_input(plan, 0)).rank == 3;
    graft_onnx_operand inputs[3] = {as_image(plan, graft_plan_input(plan, 0)),
                                    as_image(plan, graft_plan_input(plan, 1))};
    graft_shape x = graft_plan_shape(plan, inputs[0]);
    graft_shape filter = graft_plan_shape(plan, inputs[1]);
    window w = {
        .first = one ? 1 : 0, .kernel = {filter.dims[2], filter.dims[3]}
    };
    read_pair(plan, "kernel_shape", &w, w.kernel);
    if (filter.rank != 4 || w.kernel[0] != filter.dims[2] || w.kernel[1] != filter.dims[3]) {
        graft_plan_refuse(plan, "a kernel_shape that is not that of the weights");
    }
    read_window(plan, &x, &w);
    int32_t attrs[GRAFT_MAX_ATTRS] = {
        [GRAFT_ATTR_conv_stride_h] = w.stride[0],
        [GRAFT_ATTR_conv_stride_w] = w.stride[1],
        [GRAFT_ATTR_conv_pad_top] = w.before[0],
        [GRAFT_ATTR_conv_pad_left] = w.before[1],
        [GRAFT_ATTR_conv_pad_bottom] = w.after[0],
        [GRAFT_ATTR_conv_pad_right] = w.after[1],
        [GRAFT_ATTR_conv_dilation_h] = w.dilation[0],
        [GRAFT_ATTR_conv_dilation_w] = w.dilation[1],
        [GRAFT_ATTR_conv_groups] = graft_plan_int32(plan, graft_plan_int(plan, "group", 1)),
    };
    if (has_bias) {
        op = GRAFT_OP_conv_bias; /* The same attributes and no activation. */
        inputs[2] = graft_plan_input(plan, 2);
    }
    graft_plan_output(plan, 0, from_image(plan, graft_plan_add(plan, op, attrs, inputs), &w));
}

/* ceil_mode: the last window may stick out. Where it still begins inside the input or the padding
 * before it, more padding behind is the same, unless padding counts in the mean. */
static void apply_ceil_mode(graft_onnx_plan *plan, const graft_shape *x, window *w, bool counts)
{
    for (uint32_t i = 0; i < 2; i++) {
        int64_t padded = (int64_t)x->dims[2 + i] + w->before[i] + w->after[i];
        int64_t slide = padded - window_reach(w, i);
        int64_t rest = slide > 0 ? slide % w->stride[i] : 0;
        if (rest == 0) {
            continue;
        }
        int64_t last = slide - rest + w->stride[i]; /* Where the extra window begins. */
        if (counts || last >= (int64_t)x->dims[2 + i] + w->before[i]) {
            graft_plan_refuse(plan, "a ceil_mode on which implementations differ");
            return;
        }
        w->after[i] = graft_plan_int32(plan, w->after[i] + w->stride[i] - rest);
    }
}

/* Whether a window over three axes covers one place of the last two. */
static bool is_along_first(const graft_onnx_plan *plan)
{
    const Onnx__AttributeProto *kernel = graft_plan_attribute(plan, "kernel_shape");
    return kernel != NULL && is_of_first(kernel->ints, (uint32_t)kernel->n_ints, 1);
}

void graft_plan_pool(graft_onnx_plan *plan)
{
    graft_onnx_operand input = graft_plan_input(plan, 0);
    graft_shape x = graft_plan_shape(plan, input);
    const bool one = x.rank == 3;
    window w = {
        .first = one ? 1 : 0, .kernel = {one ? 1 : 0, 0}
    };
    if (x.rank == 5 && !is_along_first(plan)) {
        graft_plan_deep_pool(plan);
        return;
    }
    if (x.rank == 5) {
        w.deep = x;
    }
    input = x.rank == 5 ? as_rows(plan, input) : as_image(plan, input);
    x = graft_plan_shape(plan, input);
    read_pair(plan, "kernel_shape", &w, w.kernel);
    read_window(plan, &x, &w);
    bool counts =
        plan->op == GRAFT_OP_avg_pool && graft_plan_int(plan, "count_include_pad", 0) != 0;
    if (plan->refusal == NULL && graft_plan_int(plan, "ceil_mode", 0) != 0) {
        apply_ceil_mode(plan, &x, &w, counts);
    }
    int32_t attrs[GRAFT_MAX_ATTRS] = {
        [GRAFT_ATTR_max_pool_kernel_h] = w.kernel[0],  [GRAFT_ATTR_max_pool_kernel_w] = w.kernel[1],
        [GRAFT_ATTR_max_pool_stride_h] = w.stride[0],  [GRAFT_ATTR_max_pool_stride_w] = w.stride[1],
        [GRAFT_ATTR_max_pool_pad_top] = w.before[0],   [GRAFT_ATTR_max_pool_pad_left] = w.before[1],
        [GRAFT_ATTR_max_pool_pad_bottom] = w.after[0], [GRAFT_ATTR_max_pool_pad_right] = w.after[1],
    };
    _Static_assert((int)GRAFT_ATTR_avg_pool_pad_right == (int)GRAFT_ATTR_max_pool_pad_right,
                   "both pools begin with the same attributes");
    if (plan->op == GRAFT_OP_avg_pool) {
        attrs[GRAFT_ATTR_avg_pool_count_pad] = counts;
        if (w.dilation[0] != 1 || w.dilation[1] != 1) {
            graft_plan_refuse(plan, "an average over a dilated window");
        }
    } else {
        attrs[GRAFT_ATTR_max_pool_dilation_h] = w.dilation[0];
        attrs[GRAFT_ATTR_max_pool_dilation_w] = w.dilation[1];
    }
    graft_plan_output(plan, 0, from_image(plan, graft_plan_add1(plan, plan->op, attrs, input), &w));
}

void graft_plan_global_pool(graft_onnx_plan *plan)
{
    graft_onnx_operand x = graft_plan_input(plan, 0);
    const graft_shape s = graft_plan_shape(plan, x);
    const window w = {
        .first = s.rank == 3 ? 1 : 0, .deep = {.rank = s.rank, .dims = {1, 1, 1, 1, 1}}
    };
    x = s.rank == 5 ? as_rows(plan, x) : as_image(plan, x);
    x = graft_plan_add1(plan, GRAFT_OP_global_avg_pool, NULL, x);
    graft_plan_output(plan, 0, from_image(plan, x, &w));
}

/* ----------------------------------------------------------------------- normalisation */

/* Batch normalisation at inference is x s + t with s = scale / sqrt(var + epsilon) and
 * t = bias - mean s, computed in double and rounded once. */
void graft_plan_batch_norm(graft_onnx_plan *plan)
{
    enum { SCALE = 0, BIAS = 1, MEAN = 2, VARIANCE = 3, PARAMETERS = 4 };
    for (size_t k = 1; k < plan->node->n_output; k++) {
        if (plan->node->output[k][0] != '\0') {
            graft_plan_refuse(plan, "more outputs, as in training");
        }
    }
    if ((plan->opset < 7 && graft_plan_int(plan, "is_test", 0) == 0) ||
        graft_plan_int(plan, "training_mode", 0) != 0 || graft_plan_int(plan, "spatial", 1) != 1) {
        graft_plan_refuse(plan, "training mode");
    }
    graft_onnx_operand x = graft_plan_input(plan, 0);
    graft_shape shape = graft_plan_shape(plan, x);
    double epsilon = (double)graft_plan_float(plan, "epsilon", 1e-5F);
    const float *parameters[PARAMETERS];
    uint32_t channels = shape.rank < 2 ? 0 : (uint32_t)shape.dims[1];
    for (uint32_t k = 0; k < PARAMETERS; k++) {
        uint64_t count = 0;
        parameters[k] = graft_plan_const_floats(plan, k + 1, &count);
        if (count != channels) {
            graft_plan_refuse(plan, "parameters that are not one per channel");
        }
    }
    if (plan->refusal != NULL) {
        return;
    }
    float *scale = GRAFT_NEW(plan->reader->arena, float, channels);
    float *shift = GRAFT_NEW(plan->reader->arena, float, channels);
    for (uint32_t c = 0; c < channels; c++) {
        double s = (double)parameters[SCALE][c] / sqrt((double)parameters[VARIANCE][c] + epsilon);
        scale[c] = (float)s;
        shift[c] = (float)((double)parameters[BIAS][c] - (double)parameters[MEAN][c] * s);
        if (!isfinite(scale[c]) || !isfinite(shift[c])) {
            graft_plan_refuse(plan, "parameters that give no finite scale and shift");
        }
    }
    graft_onnx_operand inputs[3] = {x, graft_plan_weight(plan, scale, channels),
                                    graft_plan_weight(plan, shift, channels)};
    graft_plan_output(plan, 0, graft_plan_add(plan, GRAFT_OP_scale_shift, NULL, inputs));
}

/* Up to opset 12 all axes from `axis` on are one: the tensor is seen as a matrix. */
static void plan_old_softmax(graft_onnx_plan *plan, uint32_t op, graft_onnx_operand x)
{
    graft_shape shape = graft_plan_shape(plan, x);
    int64_t axis = graft_plan_int(plan, "axis", 1);
    uint32_t start = axis == shape.rank ? shape.rank : graft_plan_axis(plan, axis, shape.rank);
    uint32_t wide = shape.rank; /* The only axis from `start` on that is longer than 1. */
    uint32_t wide_count = 0;
    int64_t sizes[2] = {1, 1};
    for (uint32_t i = 0; i < shape.rank; i++) {
        sizes[i >= start] *= shape.dims[i];
        if (i >= start && (shape.dims[i] > 1 || i == shape.rank - 1U)) {
            wide = shape.dims[i] > 1 || wide_count == 0 ? i : wide;
            wide_count += shape.dims[i] > 1;
        }
    }
    if (wide_count <= 1 && wide < shape.rank) {
        int32_t attr = (int32_t)wide;
        graft_plan_output(plan, 0, graft_plan_add1(plan, op, &attr, x));
        return;
    }
    int32_t matrix[2] = {graft_plan_int32(plan, sizes[0]), graft_plan_int32(plan, sizes[1])};
    int32_t last = 1;
    graft_onnx_operand flat = graft_plan_reshape(plan, x, matrix, 2);
    graft_onnx_operand soft = graft_plan_add1(plan, op, &last, flat);
    graft_plan_output(plan, 0, graft_plan_reshape(plan, soft, shape.dims, shape.rank));
}

/* Softmax or its logarithm, whose attribute is the same. */
void graft_plan_softmax(graft_onnx_plan *plan)
{
    graft_onnx_operand x = graft_plan_input(plan, 0);
    graft_shape shape = graft_plan_shape(plan, x);
    if (plan->refusal != NULL) {
        return;
    }
    if (plan->opset < 13) {
        plan_old_softmax(plan, plan->op, x);
        return;
    }
    int32_t axis = (int32_t)graft_plan_axis(plan, graft_plan_int(plan, "axis", -1), shape.rank);
    graft_plan_output(plan, 0, graft_plan_add1(plan, plan->op, &axis, x));
}

graft_onnx_operand graft_plan_reduced(graft_onnx_plan *plan, uint32_t op, graft_onnx_operand x,
                                      int64_t input_since)
{
    graft_shape shape = graft_plan_shape(plan, x);
    uint32_t count = 0;
    const int64_t *axes = graft_plan_ints(plan, "axes", &count);
    if (plan->opset >= input_since && graft_plan_has_input(plan, 1)) {
        const graft_onnx_ints *ints = graft_plan_const_ints(plan, 1);
        axes = ints->items;
        count = ints->count;
    }
    int32_t mask = 0;
    for (uint32_t i = 0; i < count; i++) {
        mask |= 1 << graft_plan_axis(plan, axes[i], shape.rank);
    }
    if (count == 0) {
        mask = (1 << shape.rank) - 1;
    }
    int32_t attrs[2]; /* All reductions have the same. */
    attrs[GRAFT_ATTR_reduce_mean_axes] = mask;
    attrs[GRAFT_ATTR_reduce_mean_keep] = graft_plan_int(plan, "keepdims", 1) != 0;
    bool nothing =
        shape.rank == 0 || (count == 0 && graft_plan_int(plan, "noop_with_empty_axes", 0) != 0);
    return nothing ? graft_plan_add1(plan, GRAFT_OP_identity, NULL, x)
                   : graft_plan_add1(plan, op, attrs, x);
}

/* First opset in which a reduction takes its axes as an input. */
enum { REDUCE_SUM_INPUT = 13, REDUCE_INPUT = 18 };

void graft_plan_reduce(graft_onnx_plan *plan)
{
    int64_t since = plan->op == GRAFT_OP_reduce_sum ? REDUCE_SUM_INPUT : REDUCE_INPUT;
    graft_plan_output(plan, 0,
                      graft_plan_reduced(plan, plan->op, graft_plan_input(plan, 0), since));
}

/* ---------------------------------------------------------------------------------- gemm */

static graft_onnx_operand swap_axes(graft_onnx_plan *plan, graft_onnx_operand x)
{
    static const int32_t swapped[GRAFT_MAX_ATTRS] = {1, 0};
    return graft_plan_add1(plan, GRAFT_OP_transpose, swapped, x);
}

/* factor x, in the weight program. */
static graft_onnx_operand scale_weight(graft_onnx_plan *plan, graft_onnx_operand x, float factor)
{
    return graft_plan_add2(plan, GRAFT_OP_mul, NULL, x, graft_plan_scalar(plan, factor));
}

/* Multiplies the product by alpha: whichever factor is a weight takes it. */
static void apply_alpha(graft_onnx_plan *plan, float alpha, graft_onnx_operand *a,
                        graft_onnx_operand *b)
{
    if (alpha == 1.0F) {
        return;
    }
    if (graft_plan_is_const(plan, *b)) {
        *b = scale_weight(plan, *b, alpha);
    } else if (graft_plan_is_const(plan, *a)) {
        *a = scale_weight(plan, *a, alpha);
    } else {
        graft_plan_refuse(plan, "alpha on a product of two tensors");
    }
}

/* alpha A' B' + beta C for matrices; C broadcasts to the product. */
void graft_plan_gemm(graft_onnx_plan *plan)
{
    graft_onnx_operand inputs[3] = {graft_plan_input(plan, 0), graft_plan_input(plan, 1)};
    float beta = graft_plan_float(plan, "beta", 1.0F);
    bool has_c = graft_plan_has_input(plan, 2) && beta != 0.0F;
    if (graft_plan_shape(plan, inputs[0]).rank != 2 ||
        graft_plan_shape(plan, inputs[1]).rank != 2) {
        graft_plan_refuse(plan, "a factor that is not a matrix");
        return;
    }
    apply_alpha(plan, graft_plan_float(plan, "alpha", 1.0F), &inputs[0], &inputs[1]);
    if (graft_plan_int(plan, "transA", 0) != 0) {
        inputs[0] = swap_axes(plan, inputs[0]);
    }
    if (graft_plan_int(plan, "transB", 0) != 0) {
        inputs[1] = swap_axes(plan, inputs[1]);
    }
    if (!has_c) {
        graft_plan_output(plan, 0, graft_plan_add(plan, plan->op, NULL, inputs));
        return;
    }
    inputs[2] = graft_plan_input(plan, 2);
    graft_shape c = graft_plan_shape(plan, inputs[2]);
    if (beta != 1.0F && !graft_plan_is_const(plan, inputs[2])) {
        graft_plan_refuse(plan, "beta on a tensor that is not a weight");
    } else if (beta != 1.0F) {
        inputs[2] = scale_weight(plan, inputs[2], beta);
    }
    int32_t columns = graft_plan_shape(plan, inputs[1]).dims[1];
    bool is_row = c.rank >= 1 && c.rank <= 2 && c.dims[c.rank - 1] == columns &&
                  (c.rank == 1 || c.dims[0] == 1);
    if (is_row && c.rank == 2) {
        inputs[2] = graft_plan_reshape(plan, inputs[2], &columns, 1);
    }
    graft_onnx_operand product;
    if (is_row) {
        product = graft_plan_add(plan, GRAFT_OP_matmul_bias, NULL, inputs);
    } else {
        graft_onnx_operand bare = graft_plan_add(plan, plan->op, NULL, inputs);
        graft_shape shape = graft_plan_shape(plan, bare);
        product = graft_plan_add2(plan, GRAFT_OP_add, NULL, bare, inputs[2]);
        graft_shape sum = graft_plan_shape(plan, product);
        if (!graft_shape_equal(&shape, &sum)) {
            graft_plan_refuse(plan, "a bias larger than the product");
        }
    }
    graft_plan_output(plan, 0, product);
}

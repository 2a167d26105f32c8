/* onnx_map_apart.c - planners of operators that come apart where a model is read to be run, not
 * written: runtimes have kernels for the whole, so that what is written keeps it (see onnx.h).
 *
 * Windows over three axes (depth, height, width) are windows over two at each depth: a convolution
 * is the sum over the kernel's depths, a pool is one over height and width and one over depth. */
#include "graph/onnx/onnx.h"

#include <string.h>

enum { AXES = 3, DEPTH_MOST = 32, PARTS_OF_DEPTH = 6 };

static bool comes_apart(graft_onnx_plan *plan)
{
    const graft_model_options *options = plan->reader->options;
    if (options == NULL || !options->as_binary32) {
        graft_plan_refuse(plan, "an operator that stays whole where a model is written");
    }
    return plan->refusal == NULL;
}

/* ------------------------------------------------------------------------ windows over volumes */

typedef struct {
    int32_t kernel[AXES];
    int32_t stride[AXES];
    int32_t dilation[AXES];
    int32_t before[AXES];
    int32_t after[AXES];
} volume_window;

/* Numbers `from` to `from` + 3 of a list of `count`; 1 or 0 each when it is not given. */
static void read_numbers(graft_onnx_plan *plan, const char *name, uint32_t count, uint32_t from,
                         int32_t numbers[AXES])
{
    uint32_t given = 0;
    const int64_t *items = graft_plan_ints(plan, name, &given);
    if (items != NULL && given != count) {
        graft_plan_refuse(plan, "a window that has not an axis for each of the volume's");
        return;
    }
    for (uint32_t i = 0; i < AXES; i++) {
        numbers[i] = items != NULL ? graft_plan_int32(plan, items[from + i]) : count == AXES;
    }
}

static volume_window read_window(graft_onnx_plan *plan)
{
    volume_window w;
    if (!graft_onnx_says(plan->node, "auto_pad", "NOTSET", true) ||
        graft_plan_attribute(plan, "kernel_shape") == NULL ||
        graft_plan_int(plan, "ceil_mode", 0) != 0) {
        graft_plan_refuse(plan, "an auto_pad, a ceil_mode or no kernel_shape over three axes");
    }
    read_numbers(plan, "kernel_shape", AXES, 0, w.kernel);
    read_numbers(plan, "strides", AXES, 0, w.stride);
    read_numbers(plan, "dilations", AXES, 0, w.dilation);
    read_numbers(plan, "pads", 2 * AXES, 0, w.before);
    read_numbers(plan, "pads", 2 * AXES, AXES, w.after);
    for (uint32_t i = 0; i < AXES && plan->refusal == NULL; i++) {
        if (w.kernel[i] < 1 || w.stride[i] < 1 || w.dilation[i] < 1 || w.before[i] < 0 ||
            w.after[i] < 0 || w.kernel[0] > DEPTH_MOST) {
            graft_plan_refuse(plan, "a window over three axes that is negative, or too deep");
        }
    }
    return w;
}

/* (N,C,D,H,W) to (N,D,C,H,W), or back. */
static graft_onnx_operand swap_depth(graft_onnx_plan *plan, graft_onnx_operand x)
{
    static const int32_t attrs[GRAFT_MAX_ATTRS] = {0, 2, 1, 3, 4};
    return graft_plan_add1(plan, GRAFT_OP_transpose, attrs, x);
}

/* Places `start`, `start` + step... of an axis, as images: its first two axes become one. */
static graft_onnx_operand take_depths(graft_onnx_plan *plan, graft_onnx_operand x, int32_t start,
                                      int32_t count, int32_t step)
{
    const int32_t end = graft_plan_int32(plan, start + ((int64_t)count - 1) * step + 1);
    const int32_t attrs[GRAFT_MAX_ATTRS] = {1, start, end, step > 1 ? step : 0};
    x = graft_plan_add1(plan, step > 1 ? GRAFT_OP_pick : GRAFT_OP_slice, attrs, x);
    const graft_shape s = graft_plan_shape(plan, x);
    const int32_t dims[4] = {graft_plan_int32(plan, (int64_t)s.dims[0] * s.dims[1]), s.dims[2],
                             s.dims[3], s.dims[4]};
    return graft_plan_reshape(plan, x, dims, 4);
}

/* The kernel's part (O,C/group,kh,kw) of a depth. */
static graft_onnx_operand kernel_at(graft_onnx_plan *plan, graft_onnx_operand filter, int32_t depth)
{
    const int32_t attrs[GRAFT_MAX_ATTRS] = {2, depth, depth + 1};
    const graft_shape s = graft_plan_shape(plan, filter);
    const int32_t dims[4] = {s.dims[0], s.dims[1], s.dims[3], s.dims[4]};
    return graft_plan_reshape(plan, graft_plan_add1(plan, GRAFT_OP_slice, attrs, filter), dims, 4);
}

/* Inputs x(N,C,D,H,W), w(O,C/group,kd,kh,kw) and maybe b(O). */
void graft_plan_deep_conv(graft_onnx_plan *plan)
{
    graft_onnx_operand x = graft_plan_input(plan, 0);
    const graft_onnx_operand filter = graft_plan_input(plan, 1);
    const graft_shape kernel = graft_plan_shape(plan, filter);
    const volume_window w = read_window(plan);
    const int32_t padding[GRAFT_MAX_ATTRS] = {2, w.before[0], w.after[0], 0};
    if (!comes_apart(plan) || kernel.rank != 5 || kernel.dims[2] != w.kernel[0] ||
        kernel.dims[3] != w.kernel[1] || kernel.dims[4] != w.kernel[2]) {
        graft_plan_refuse(plan, "a kernel_shape that is not that of the weights");
        return;
    }
    x = w.before[0] + w.after[0] > 0 ? graft_plan_add1(plan, GRAFT_OP_pad, padding, x) : x;
    const graft_shape padded = graft_plan_shape(plan, x);
    const int64_t reach = ((int64_t)w.kernel[0] - 1) * w.dilation[0] + 1;
    const int64_t depths = (padded.dims[2] - reach) / w.stride[0] + 1;
    if (padded.dims[2] < reach) {
        graft_plan_refuse(plan, "a window that is deeper than its input");
        return;
    }
    x = swap_depth(plan, x);
    const int32_t attrs[GRAFT_MAX_ATTRS] = {
        [GRAFT_ATTR_conv_stride_h] = w.stride[1],
        [GRAFT_ATTR_conv_stride_w] = w.stride[2],
        [GRAFT_ATTR_conv_pad_top] = w.before[1],
        [GRAFT_ATTR_conv_pad_left] = w.before[2],
        [GRAFT_ATTR_conv_pad_bottom] = w.after[1],
        [GRAFT_ATTR_conv_pad_right] = w.after[2],
        [GRAFT_ATTR_conv_dilation_h] = w.dilation[1],
        [GRAFT_ATTR_conv_dilation_w] = w.dilation[2],
        [GRAFT_ATTR_conv_groups] = graft_plan_int32(plan, graft_plan_int(plan, "group", 1)),
    };
    graft_onnx_operand sum = x;
    for (int32_t k = 0; k < w.kernel[0] && plan->refusal == NULL; k++) {
        const bool biased = k == 0 && graft_plan_has_input(plan, 2);
        graft_onnx_operand inputs[3] = {
            take_depths(plan, x, k * w.dilation[0], (int32_t)depths, w.stride[0]),
            kernel_at(plan, filter, k)};
        if (biased) {
            inputs[2] = graft_plan_input(plan, 2);
        }
        const graft_onnx_operand y =
            graft_plan_add(plan, biased ? GRAFT_OP_conv_bias : GRAFT_OP_conv, attrs, inputs);
        sum = k == 0 ? y : graft_plan_add2(plan, GRAFT_OP_add, NULL, sum, y);
    }
    const graft_shape s = graft_plan_shape(plan, sum);
    const int32_t dims[5] = {padded.dims[0], (int32_t)depths, s.dims[1], s.dims[2], s.dims[3]};
    graft_plan_output(plan, 0, swap_depth(plan, graft_plan_reshape(plan, sum, dims, 5)));
}

/* Depths of a kernel are known before anything is planned. */
uint32_t graft_plan_deep_most(const Onnx__NodeProto *node)
{
    const Onnx__AttributeProto *kernel = graft_onnx_attribute(node, "kernel_shape");
    const bool deep = kernel != NULL && kernel->n_ints == AXES && kernel->ints[0] > 0 &&
                      kernel->ints[0] <= DEPTH_MOST;
    return deep ? PARTS_OF_DEPTH * (uint32_t)kernel->ints[0] : 0;
}

/* Both kinds of pools have these places of attributes; those behind are dilations of the one, and
 * whether padding counts of the other. */
static graft_onnx_operand pool_image(graft_onnx_plan *plan, uint32_t op, graft_onnx_operand x,
                                     const volume_window *w, const uint32_t axes[2])
{
    int32_t attrs[GRAFT_MAX_ATTRS] = {0};
    const bool counts = graft_plan_int(plan, "count_include_pad", 0) != 0;
    for (uint32_t i = 0; i < 2; i++) {
        const bool is_still = axes[i] == AXES; /* The window does not move along this one. */
        attrs[GRAFT_ATTR_max_pool_kernel_h + i] = is_still ? 1 : w->kernel[axes[i]];
        attrs[GRAFT_ATTR_max_pool_stride_h + i] = is_still ? 1 : w->stride[axes[i]];
        attrs[GRAFT_ATTR_max_pool_pad_top + i] = is_still ? 0 : w->before[axes[i]];
        attrs[GRAFT_ATTR_max_pool_pad_bottom + i] = is_still ? 0 : w->after[axes[i]];
        if (op == GRAFT_OP_max_pool) {
            attrs[GRAFT_ATTR_max_pool_dilation_h + i] = is_still ? 1 : w->dilation[axes[i]];
        } else {
            attrs[GRAFT_ATTR_avg_pool_count_pad] = counts;
        }
    }
    return graft_plan_add1(plan, op, attrs, x);
}

void graft_plan_deep_pool(graft_onnx_plan *plan)
{
    static const uint32_t across[2] = {1, 2};
    static const uint32_t deep[2] = {0, AXES};
    graft_onnx_operand x = graft_plan_input(plan, 0);
    const graft_shape s = graft_plan_shape(plan, x);
    const volume_window w = read_window(plan);
    const bool dilated = w.dilation[0] != 1 || w.dilation[1] != 1 || w.dilation[2] != 1;
    if (!comes_apart(plan) || (plan->op == GRAFT_OP_avg_pool && dilated)) {
        graft_plan_refuse(plan, "an average over a dilated window");
        return;
    }
    const int32_t images[4] = {s.dims[0], graft_plan_int32(plan, (int64_t)s.dims[1] * s.dims[2]),
                               s.dims[3], s.dims[4]};
    x = pool_image(plan, plan->op, graft_plan_reshape(plan, x, images, 4), &w, across);
    const graft_shape y = graft_plan_shape(plan, x);
    const int32_t rows[4] = {s.dims[0], s.dims[1], s.dims[2],
                             graft_plan_int32(plan, (int64_t)y.dims[2] * y.dims[3])};
    x = pool_image(plan, plan->op, graft_plan_reshape(plan, x, rows, 4), &w, deep);
    const int32_t dims[5] = {s.dims[0], s.dims[1], graft_plan_shape(plan, x).dims[2], y.dims[2],
                             y.dims[3]};
    graft_plan_output(plan, 0, graft_plan_reshape(plan, x, dims, 5));
}

/* -------------------------------------------------------------------------------- normalisation */

/* Channels in groups: (x - mean) / sqrt(variance + epsilon) of each group, then a factor and an
 * offset for each channel; before opset 21 for each group. */
void graft_plan_group_norm(graft_onnx_plan *plan)
{
    enum { OPSET_CHANNELS = 21 };
    graft_onnx_operand x = graft_plan_input(plan, 0);
    graft_onnx_operand scale = graft_plan_input(plan, 1);
    graft_onnx_operand shift = graft_plan_input(plan, 2);
    const graft_shape s = graft_plan_shape(plan, x);
    const graft_shape scales = graft_plan_shape(plan, scale);
    const int32_t groups = graft_plan_int32(plan, graft_plan_int(plan, "num_groups", 0));
    const bool each = plan->opset >= OPSET_CHANNELS;
    if (!comes_apart(plan) || s.rank < 3 || groups < 1 || s.dims[1] % groups != 0 ||
        scales.rank != 1 || scales.dims[0] != (each ? s.dims[1] : groups) ||
        graft_plan_int(plan, "stash_type", 1) != 1) {
        graft_plan_refuse(plan, "groups or scales that do not fit the channels");
        return;
    }
    const int32_t attrs[GRAFT_MAX_ATTRS] = {
        [GRAFT_ATTR_instance_norm_epsilon] =
            graft_bits_of_float(graft_plan_float(plan, "epsilon", 1e-5F))};
    const uint64_t count = graft_shape_elements(&s) / (uint64_t)s.dims[0] / (uint64_t)groups;
    const int32_t grouped[3] = {s.dims[0], groups, graft_plan_int32(plan, (int64_t)count)};
    const int32_t channels[GRAFT_MAX_RANK] = {s.dims[1], 1, 1, 1, 1};
    const graft_onnx_operand inputs[3] = {
        graft_plan_reshape(plan, x, grouped, 3),
        each ? graft_plan_constant(plan, 1.0F, &groups, 1) : scale,
        each ? graft_plan_constant(plan, 0.0F, &groups, 1) : shift};
    x = graft_plan_add(plan, GRAFT_OP_instance_norm, attrs, inputs);
    x = graft_plan_reshape(plan, x, s.dims, s.rank);
    if (each) {
        scale = graft_plan_reshape(plan, scale, channels, s.rank - 1U);
        shift = graft_plan_reshape(plan, shift, channels, s.rank - 1U);
        x = graft_plan_add2(plan, GRAFT_OP_mul, NULL, x, scale);
        x = graft_plan_add2(plan, GRAFT_OP_add, NULL, x, shift);
    }
    graft_plan_output(plan, 0, x);
}

/* (x - mean) / (sqrt(variance) + 1e-9), over the axes 0, 2 and 3 unless others are said. */
void graft_plan_mean_variance(graft_onnx_plan *plan)
{
    graft_onnx_operand x = graft_plan_input(plan, 0);
    const graft_shape s = graft_plan_shape(plan, x);
    uint32_t count = 0;
    const int64_t *axes = graft_plan_ints(plan, "axes", &count);
    int32_t attrs[GRAFT_MAX_ATTRS] = {
        [GRAFT_ATTR_reduce_mean_axes] = 1 | 4 | 8, [GRAFT_ATTR_reduce_mean_keep] = 1};
    if (axes == NULL && s.rank != 4) {
        graft_plan_refuse(plan, "no axes of what is no image");
    }
    for (uint32_t i = 0; axes != NULL && i < count; i++) {
        attrs[0] = (i == 0 ? 0 : attrs[0]) | 1 << graft_plan_axis(plan, axes[i], s.rank);
    }
    if (!comes_apart(plan)) {
        return;
    }
    const graft_onnx_operand mean = graft_plan_add1(plan, GRAFT_OP_reduce_mean, attrs, x);
    x = graft_plan_add2(plan, GRAFT_OP_sub, NULL, x, mean);
    graft_onnx_operand d = graft_plan_add2(plan, GRAFT_OP_mul, NULL, x, x);
    d = graft_plan_add1(plan, GRAFT_OP_reduce_mean, attrs, d);
    d = graft_plan_add1(plan, GRAFT_OP_sqrt, NULL, d);
    d = graft_plan_add2(plan, GRAFT_OP_add, NULL, d, graft_plan_scalar(plan, 1e-9F));
    graft_plan_output(plan, 0, graft_plan_add2(plan, GRAFT_OP_div, NULL, x, d));
}

/* alpha elu(x / alpha) */
void graft_plan_celu(graft_onnx_plan *plan)
{
    const int32_t attrs[GRAFT_MAX_ATTRS] = {graft_bits_of_float(1.0F)};
    const float alpha = graft_plan_float(plan, "alpha", 1.0F);
    const graft_onnx_operand x = graft_plan_input(plan, 0);
    if (!comes_apart(plan) || !(alpha > 0.0F)) {
        graft_plan_refuse(plan, "an alpha that is not above 0");
        return;
    }
    const graft_onnx_operand factor = graft_plan_scalar(plan, alpha);
    graft_onnx_operand y = graft_plan_add2(plan, GRAFT_OP_div, NULL, x, factor);
    y = graft_plan_add1(plan, plan->op, attrs, y);
    graft_plan_output(plan, 0, graft_plan_add2(plan, GRAFT_OP_mul, NULL, y, factor));
}

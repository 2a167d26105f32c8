/* onnx_map_windows.c - planners of convolutions and pools, whose windows slide over one axis to
 * three (see onnx.h).
 *
 * Over one axis it is the width of images of one row. Over three (depth, height, width) a window
 * comes apart where a model is read to be run, not written: a convolution is the sum over the
 * kernel's depths, a pool is one over height and width and one over depth. One over depth alone is
 * a pool of images whose rows are the other two axes. */
#include "graph/onnx/onnx.h"

enum { DEPTH, HEIGHT, WIDTH, AXES, DEPTH_MOST = 32, PARTS_OF_DEPTH = 6 };

/* By axis; those before `first` are still. */
typedef struct {
    uint32_t first;
    int32_t kernel[AXES];
    int32_t stride[AXES];
    int32_t dilation[AXES];
    int32_t before[AXES];
    int32_t after[AXES];
} window;

/* Over the axes of (N,C,...); the kernel is still to be read. */
static window start_window(const graft_shape *x)
{
    window w = {.first = x->rank == 3 ? WIDTH : x->rank == 5 ? DEPTH : HEIGHT};
    for (uint32_t i = 0; i < AXES; i++) {
        w.kernel[i] = i < w.first;
        w.stride[i] = 1;
        w.dilation[i] = 1;
    }
    return w;
}

/* Of an attribute that has `sides` numbers an axis, those of one side. */
static void read_axes(graft_onnx_plan *plan, const char *name, uint32_t sides, uint32_t side,
                      const window *w, int32_t numbers[AXES])
{
    uint32_t count = 0;
    const uint32_t axes = AXES - w->first;
    const int64_t *items = graft_plan_ints(plan, name, &count);
    graft_plan_refuse_if(plan, items != NULL && count != sides * axes,
                         sides == 2 ? "pads that are not two numbers an axis"
                                    : "a window that has not an axis for each of the image's");
    for (uint32_t i = 0; items != NULL && plan->refusal == NULL && i < axes; i++) {
        numbers[w->first + i] = graft_plan_int32(plan, items[side * axes + i]);
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
    for (uint32_t i = w->first; i < AXES; i++) {
        int64_t size = x->dims[2 + i - w->first];
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
    read_axes(plan, "strides", 1, 0, w, w->stride);
    read_axes(plan, "dilations", 1, 0, w, w->dilation);
    if (x->rank != 2U + AXES - w->first || w->stride[DEPTH] < 1 || w->stride[HEIGHT] < 1 ||
        w->stride[WIDTH] < 1) {
        graft_plan_refuse(plan, "a window over more than two axes");
        return;
    }
    const bool upper = graft_onnx_says(plan->node, "auto_pad", "SAME_UPPER", false);
    if (graft_onnx_says(plan->node, "auto_pad", "NOTSET", true)) {
        read_axes(plan, "pads", 2, 0, w, w->before);
        read_axes(plan, "pads", 2, 1, w, w->after);
    } else if (upper || graft_onnx_says(plan->node, "auto_pad", "SAME_LOWER", false)) {
        pad_to_same(plan, x, w, upper);
    } else if (!graft_onnx_says(plan->node, "auto_pad", "VALID", false)) {
        graft_plan_refuse(plan, "an unknown auto_pad");
    }
}

/* One over three axes; whether it may come apart. */
static bool read_volume(graft_onnx_plan *plan, const graft_shape *x, window *w)
{
    if (!graft_onnx_says(plan->node, "auto_pad", "NOTSET", true) ||
        graft_plan_attribute(plan, "kernel_shape") == NULL ||
        graft_plan_int(plan, "ceil_mode", 0) != 0) {
        graft_plan_refuse(plan, "an auto_pad, a ceil_mode or no kernel_shape over three axes");
    }
    read_axes(plan, "kernel_shape", 1, 0, w, w->kernel);
    read_window(plan, x, w);
    for (uint32_t i = 0; i < AXES && plan->refusal == NULL; i++) {
        if (w->kernel[i] < 1 || w->dilation[i] < 1 || w->before[i] < 0 || w->after[i] < 0 ||
            w->kernel[DEPTH] > DEPTH_MOST) {
            graft_plan_refuse(plan, "a window over three axes that is negative, or too deep");
        }
    }
    return graft_plan_comes_apart(plan);
}

/* --------------------------------------------------------------- sequences and volumes as images */

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

/* Back to the rank of `like`, which has the sizes of rows that were joined. */
static graft_onnx_operand from_image(graft_onnx_plan *plan, graft_onnx_operand y,
                                     const graft_shape *like)
{
    graft_shape s = graft_plan_shape(plan, y);
    const int32_t dims[3] = {s.dims[0], s.dims[1], s.dims[3]};
    const int32_t deep[5] = {s.dims[0], s.dims[1], s.dims[2], like->dims[3], like->dims[4]};
    return like->rank == 3   ? graft_plan_reshape(plan, y, dims, 3)
           : like->rank == 5 ? graft_plan_reshape(plan, y, deep, 5)
                             : y;
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

/* ---------------------------------------------------------------------------------- convolutions */

/* Inputs x(N,C,H,W), w(C,O,kh,kw) and maybe b(O), which is added; of one group. */
graft_onnx_operand graft_plan_conv_transpose(graft_onnx_plan *plan)
{
    const graft_onnx_operand inputs[2] = {graft_plan_input(plan, 0), graft_plan_input(plan, 1)};
    const graft_shape x = graft_plan_shape(plan, inputs[0]);
    const graft_shape filter = graft_plan_shape(plan, inputs[1]);
    window w = start_window(&x);
    int32_t extra[AXES] = {0};
    w.first = HEIGHT;
    w.kernel[HEIGHT] = filter.dims[2];
    w.kernel[WIDTH] = filter.dims[3];
    read_axes(plan, "kernel_shape", 1, 0, &w, w.kernel);
    read_axes(plan, "output_padding", 1, 0, &w, extra);
    read_window(plan, &x, &w);
    GRAFT_RETURN_IF(filter.rank != 4 || w.kernel[HEIGHT] != filter.dims[2] ||
                        w.kernel[WIDTH] != filter.dims[3] || w.dilation[HEIGHT] != 1 ||
                        w.dilation[WIDTH] != 1 || graft_plan_int(plan, "group", 1) != 1 ||
                        (!graft_onnx_says(plan->node, "auto_pad", "NOTSET", true) &&
                         !graft_onnx_says(plan->node, "auto_pad", "VALID", false)),
                    graft_plan_refuse(plan, "groups, dilations or an auto_pad"));
    const int32_t attrs[GRAFT_MAX_ATTRS] = {w.stride[HEIGHT], w.stride[WIDTH], w.before[HEIGHT],
                                            w.before[WIDTH],  w.after[HEIGHT], w.after[WIDTH],
                                            extra[HEIGHT],    extra[WIDTH]};
    graft_onnx_operand y = graft_plan_add(plan, GRAFT_OP_conv_transpose, attrs, inputs);
    if (graft_plan_has_input(plan, 2)) {
        const int32_t channels[3] = {filter.dims[1], 1, 1};
        y = graft_plan_add2(plan, GRAFT_OP_add, NULL, y,
                            graft_plan_reshape(plan, graft_plan_input(plan, 2), channels, 3));
    }
    return y;
}

/* Of images, with a bias or without. */
static graft_onnx_operand convolve(graft_onnx_plan *plan, const window *w,
                                   const graft_onnx_operand *inputs, bool biased)
{
    const int32_t attrs[GRAFT_MAX_ATTRS] = {
        [GRAFT_ATTR_conv_stride_h] = w->stride[HEIGHT],
        [GRAFT_ATTR_conv_stride_w] = w->stride[WIDTH],
        [GRAFT_ATTR_conv_pad_top] = w->before[HEIGHT],
        [GRAFT_ATTR_conv_pad_left] = w->before[WIDTH],
        [GRAFT_ATTR_conv_pad_bottom] = w->after[HEIGHT],
        [GRAFT_ATTR_conv_pad_right] = w->after[WIDTH],
        [GRAFT_ATTR_conv_dilation_h] = w->dilation[HEIGHT],
        [GRAFT_ATTR_conv_dilation_w] = w->dilation[WIDTH],
        [GRAFT_ATTR_conv_groups] = graft_plan_int32(plan, graft_plan_int(plan, "group", 1)),
    };
    /* The same attributes and no activation. */
    return graft_plan_add(plan, biased ? GRAFT_OP_conv_bias : GRAFT_OP_conv, attrs, inputs);
}

/* Inputs x(N,C,D,H,W), w(O,C/group,kd,kh,kw) and maybe b(O). */
static graft_onnx_operand convolve_volume(graft_onnx_plan *plan, graft_onnx_operand x)
{
    const graft_onnx_operand filter = graft_plan_input(plan, 1);
    const graft_shape kernel = graft_plan_shape(plan, filter);
    const graft_shape given = graft_plan_shape(plan, x);
    window w = start_window(&given);
    if (!read_volume(plan, &given, &w) || kernel.rank != 5 || kernel.dims[2] != w.kernel[DEPTH] ||
        kernel.dims[3] != w.kernel[HEIGHT] || kernel.dims[4] != w.kernel[WIDTH]) {
        return graft_plan_refuse(plan, "a kernel_shape that is not that of the weights");
    }
    const int32_t padding[GRAFT_MAX_ATTRS] = {2, w.before[DEPTH], w.after[DEPTH], 0};
    x = w.before[DEPTH] + w.after[DEPTH] > 0 ? graft_plan_add1(plan, GRAFT_OP_pad, padding, x) : x;
    const graft_shape padded = graft_plan_shape(plan, x);
    const int64_t reach = window_reach(&w, DEPTH);
    const int64_t depths = (padded.dims[2] - reach) / w.stride[DEPTH] + 1;
    GRAFT_RETURN_IF(padded.dims[2] < reach,
                    graft_plan_refuse(plan, "a window that is deeper than its input"));
    x = swap_depth(plan, x);
    graft_onnx_operand sum = x;
    for (int32_t k = 0; k < w.kernel[DEPTH] && plan->refusal == NULL; k++) {
        const bool biased = k == 0 && graft_plan_has_input(plan, 2);
        graft_onnx_operand inputs[3] = {
            take_depths(plan, x, k * w.dilation[DEPTH], (int32_t)depths, w.stride[DEPTH]),
            kernel_at(plan, filter, k)};
        if (biased) {
            inputs[2] = graft_plan_input(plan, 2);
        }
        const graft_onnx_operand y = convolve(plan, &w, inputs, biased);
        sum = k == 0 ? y : graft_plan_add2(plan, GRAFT_OP_add, NULL, sum, y);
    }
    const graft_shape s = graft_plan_shape(plan, sum);
    const int32_t dims[5] = {padded.dims[0], (int32_t)depths, s.dims[1], s.dims[2], s.dims[3]};
    return swap_depth(plan, graft_plan_reshape(plan, sum, dims, 5));
}

/* Depths of a kernel are known before anything is planned. */
uint32_t graft_plan_deep_most(const Onnx__NodeProto *node)
{
    const Onnx__AttributeProto *kernel = graft_onnx_attribute(node, "kernel_shape");
    const bool deep = kernel != NULL && kernel->n_ints == AXES && kernel->ints[0] > 0 &&
                      kernel->ints[0] <= DEPTH_MOST;
    return deep ? PARTS_OF_DEPTH * (uint32_t)kernel->ints[0] : 0;
}

/* Inputs x(N,C,H,W), w(O,C/group,kh,kw) and maybe b(O); or x(N,C,L), w(O,C/group,k). */
graft_onnx_operand graft_plan_conv(graft_onnx_plan *plan)
{
    const graft_onnx_operand x = graft_plan_input(plan, 0);
    const graft_shape given = graft_plan_shape(plan, x);
    if (given.rank == 5) {
        return convolve_volume(plan, x);
    }
    const bool biased = graft_plan_has_input(plan, 2);
    graft_onnx_operand inputs[3] = {as_image(plan, x), as_image(plan, graft_plan_input(plan, 1))};
    const graft_shape filter = graft_plan_shape(plan, inputs[1]);
    window w = start_window(&given);
    w.kernel[HEIGHT] = filter.dims[2];
    w.kernel[WIDTH] = filter.dims[3];
    read_axes(plan, "kernel_shape", 1, 0, &w, w.kernel);
    if (filter.rank != 4 || w.kernel[HEIGHT] != filter.dims[2] ||
        w.kernel[WIDTH] != filter.dims[3]) {
        graft_plan_refuse(plan, "a kernel_shape that is not that of the weights");
    }
    read_window(plan, &given, &w);
    if (biased) {
        inputs[2] = graft_plan_input(plan, 2);
    }
    return from_image(plan, convolve(plan, &w, inputs, biased), &given);
}

/* ----------------------------------------------------------------------------------------- pools */

/* ceil_mode: the last window may stick out. Where it still begins inside the input or the padding
 * before it, more padding behind is the same, unless padding counts in the mean. */
static void apply_ceil_mode(graft_onnx_plan *plan, const graft_shape *x, window *w, bool counts)
{
    for (uint32_t i = w->first; i < AXES; i++) {
        int64_t size = x->dims[2 + i - w->first];
        int64_t slide = size + w->before[i] + w->after[i] - window_reach(w, i);
        int64_t rest = slide > 0 ? slide % w->stride[i] : 0;
        if (rest == 0) {
            continue;
        }
        int64_t last = slide - rest + w->stride[i]; /* Where the extra window begins. */
        if (counts || last >= size + w->before[i]) {
            graft_plan_refuse(plan, "a ceil_mode on which implementations differ");
            return;
        }
        w->after[i] = graft_plan_int32(plan, w->after[i] + w->stride[i] - rest);
    }
}

/* Of images along two axes of the window, AXES: none. Both kinds of pools have these places of
 * attributes; those behind are dilations of the one, and whether padding counts of the other. */
static graft_onnx_operand pool_image(graft_onnx_plan *plan, graft_onnx_operand x, const window *w,
                                     const uint32_t axes[2])
{
    _Static_assert((int)GRAFT_ATTR_avg_pool_pad_right == (int)GRAFT_ATTR_max_pool_pad_right,
                   "both pools begin with the same attributes");
    int32_t attrs[GRAFT_MAX_ATTRS] = {0};
    for (uint32_t i = 0; i < 2; i++) {
        const bool is_still = axes[i] == AXES; /* The window does not move along this one. */
        attrs[GRAFT_ATTR_max_pool_kernel_h + i] = is_still ? 1 : w->kernel[axes[i]];
        attrs[GRAFT_ATTR_max_pool_stride_h + i] = is_still ? 1 : w->stride[axes[i]];
        attrs[GRAFT_ATTR_max_pool_pad_top + i] = is_still ? 0 : w->before[axes[i]];
        attrs[GRAFT_ATTR_max_pool_pad_bottom + i] = is_still ? 0 : w->after[axes[i]];
        if (plan->op == GRAFT_OP_max_pool) {
            attrs[GRAFT_ATTR_max_pool_dilation_h + i] = is_still ? 1 : w->dilation[axes[i]];
        } else {
            attrs[GRAFT_ATTR_avg_pool_count_pad] =
                graft_plan_int(plan, "count_include_pad", 0) != 0;
        }
    }
    return graft_plan_add1(plan, plan->op, attrs, x);
}

static const uint32_t across[2] = {HEIGHT, WIDTH};
static const uint32_t along[2] = {DEPTH, AXES};

static bool is_dilated(const window *w)
{
    return w->dilation[DEPTH] != 1 || w->dilation[HEIGHT] != 1 || w->dilation[WIDTH] != 1;
}

static graft_onnx_operand pool_volume(graft_onnx_plan *plan, graft_onnx_operand x)
{
    const graft_shape s = graft_plan_shape(plan, x);
    window w = start_window(&s);
    GRAFT_RETURN_IF(!read_volume(plan, &s, &w) || (plan->op == GRAFT_OP_avg_pool && is_dilated(&w)),
                    graft_plan_refuse(plan, "an average over a dilated window"));
    const int32_t images[4] = {s.dims[0], graft_plan_int32(plan, (int64_t)s.dims[1] * s.dims[2]),
                               s.dims[3], s.dims[4]};
    x = pool_image(plan, graft_plan_reshape(plan, x, images, 4), &w, across);
    graft_shape y = graft_plan_shape(plan, x);
    const int32_t rows[4] = {s.dims[0], s.dims[1], s.dims[2],
                             graft_plan_int32(plan, (int64_t)y.dims[2] * y.dims[3])};
    const graft_shape like = {
        .rank = 5, .dims = {0, 0, 0, y.dims[2], y.dims[3]}
    };
    x = pool_image(plan, graft_plan_reshape(plan, x, rows, 4), &w, along);
    return from_image(plan, x, &like);
}

graft_onnx_operand graft_plan_pool(graft_onnx_plan *plan)
{
    graft_onnx_operand x = graft_plan_input(plan, 0);
    const graft_shape s = graft_plan_shape(plan, x);
    const bool deep = s.rank == 5;
    window w = start_window(&s);
    read_axes(plan, "kernel_shape", 1, 0, &w, w.kernel);
    if (deep && (w.kernel[HEIGHT] != 1 || w.kernel[WIDTH] != 1)) {
        return pool_volume(plan, x);
    }
    read_window(plan, &s, &w);
    for (uint32_t i = HEIGHT; deep && i < AXES; i++) {
        if (w.stride[i] != 1 || w.dilation[i] != 1 || w.before[i] != 0 || w.after[i] != 0) {
            graft_plan_refuse(plan, "a window that has not an axis for each of the image's");
        }
    }
    const bool mean = plan->op == GRAFT_OP_avg_pool;
    if (plan->refusal == NULL && graft_plan_int(plan, "ceil_mode", 0) != 0) {
        apply_ceil_mode(plan, &s, &w, mean && graft_plan_int(plan, "count_include_pad", 0) != 0);
    }
    graft_plan_refuse_if(plan, mean && is_dilated(&w), "an average over a dilated window");
    x = pool_image(plan, deep ? as_rows(plan, x) : as_image(plan, x), &w, deep ? along : across);
    return from_image(plan, x, &s);
}

graft_onnx_operand graft_plan_global_pool(graft_onnx_plan *plan)
{
    graft_onnx_operand x = graft_plan_input(plan, 0);
    const graft_shape s = graft_plan_shape(plan, x);
    const graft_shape like = {
        .rank = s.rank, .dims = {1, 1, 1, 1, 1}
    };
    x = s.rank == 5 ? as_rows(plan, x) : as_image(plan, x);
    return from_image(plan, graft_plan_add1(plan, GRAFT_OP_global_avg_pool, NULL, x), &like);
}

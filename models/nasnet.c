/* nasnet.c - NASNet-A (4 @ 1056), the mobile one (Zoph et al., Learning Transferable Architectures,
 * 2018), as the PyTorch port by R. Cadene builds it: a stem of two reduction cells, three groups of
 * four cells, two reduction cells between them. Every cell adds five pairs of branches, which read
 * the two cells before it. Padding is symmetric throughout. */
#include "models/nets.h"

enum { IMAGE = 224, CLASSES = 1000, STEM = 32, FILTERS = 44, GROUPS = 3, CELLS = 3 };

static const double epsilon = 1e-3;

static const char *inside(graft_builder *builder, const char *module, const char *part)
{
    return graft_build_name(builder, "%s.%s", module, part);
}

/* ------------------------------------------------------------------------------- branches */

static graft_build_value add_conv(graft_build_value x, const char *name, int64_t channels,
                                  int64_t groups, graft_window_size window)
{
    graft_conv_layer conv = {
        .name = name, .channels = channels, .groups = groups, .window = window};
    return graft_build_conv(x, &conv);
}

/* Relu, 1 x 1, normalisation. */
static graft_build_value add_project(graft_build_value x, const char *module, int64_t channels)
{
    x = graft_build_relu(x, inside(x.builder, module, "relu"));
    x = add_conv(x, inside(x.builder, module, "conv"), channels, 1, graft_build_centred(1, 1));
    return graft_build_batch_norm(x, inside(x.builder, module, "bn"), epsilon, 1.0);
}

/* Relu, a filter for each channel, 1 x 1, normalisation. */
static graft_build_value add_separable(graft_build_value x, const char *module, int64_t channels,
                                       graft_window_size window)
{
    x = graft_build_relu(x, inside(x.builder, module, "relu"));
    x = add_conv(x, inside(x.builder, module, "depthwise_conv2d"), x.dims[1], x.dims[1], window);
    x = add_conv(x, inside(x.builder, module, "pointwise_conv2d"), channels, 1,
                 graft_build_centred(1, 1));
    return graft_build_batch_norm(x, inside(x.builder, module, "bn"), epsilon, 0.5);
}

/* Two of these; the first has the stride and, when `narrows`, the fewer channels. */
static graft_build_value add_twice(graft_build_value x, const char *module, int64_t channels,
                                   graft_window_size window)
{
    graft_window_size second = graft_build_centred(window.kernel[0], 1);
    x = add_separable(x, inside(x.builder, module, "separable_1"), channels, window);
    return add_separable(x, inside(x.builder, module, "separable_2"), channels, second);
}

static graft_build_value add_average(graft_build_value x, const char *module, int64_t stride)
{
    graft_window_size window = graft_build_centred(3, stride);
    return graft_build_padded_average(x, module, &window, false);
}

static graft_build_value add_largest(graft_build_value x, const char *module)
{
    graft_window_size window = graft_build_centred(3, 2);
    return graft_build_max_pool(x, module, &window, false);
}

static graft_build_value add_sum(graft_build_value a, graft_build_value b, const char *module,
                                 int k)
{
    return graft_build_add(a, b, graft_build_name(a.builder, "%s.sum_%d", module, k));
}

/* Every second pixel, and every second one shifted by (1, 1), side by side: halves the size without
 * losing what lies between. */
static graft_build_value add_halved(graft_build_value x, const char *module, int64_t channels)
{
    static const int64_t pads[8] = {0, 0, 0, 0, 0, 0, 1, 1};
    graft_window_size every_second = graft_build_window(1, 1, 2);
    x = graft_build_relu(x, inside(x.builder, module, "relu"));
    const char *second = inside(x.builder, module, "path_2");
    const graft_build_value inputs[2] = {x, graft_build_ints(x.builder, second, "pads", pads, 8)};
    graft_build_value parts[2];
    parts[0] = graft_build_padded_average(x, inside(x.builder, module, "path_1.avgpool"),
                                          &every_second, false);
    parts[0] = add_conv(parts[0], inside(x.builder, module, "path_1.conv"), channels, 1,
                        graft_build_centred(1, 1));
    graft_build_value shifted = graft_build_node("Pad", second, inputs, 2);
    for (int axis = 2; axis < 4; axis++) {
        const int64_t range[2] = {1, x.dims[axis] + 1};
        shifted.dims[axis] = range[1];
        shifted = graft_build_slice(
            shifted, graft_build_name(x.builder, "%s.crop_%d", second, axis), axis, range);
    }
    shifted = graft_build_padded_average(shifted, inside(x.builder, module, "path_2.avgpool"),
                                         &every_second, false);
    parts[1] = add_conv(shifted, inside(x.builder, module, "path_2.conv"), channels, 1,
                        graft_build_centred(1, 1));
    x = graft_build_concat_all(parts, 2, 1, module);
    return graft_build_batch_norm(x, inside(x.builder, module, "final_path_bn"), epsilon, 1.0);
}

/* ---------------------------------------------------------------------------------- cells */

/* What a cell combines: the cell before the last, and the last. */
typedef struct {
    const char *module;
    graft_build_value left;
    graft_build_value right;
    int64_t channels;
} cell;

static graft_build_value add_branch(const cell *c, graft_build_value x, const char *name,
                                    int64_t kernel, int64_t stride)
{
    return add_twice(x, inside(x.builder, c->module, name), c->channels,
                     graft_build_centred(kernel, stride));
}

static graft_build_value add_normal(const cell *c)
{
    graft_builder *builder = c->left.builder;
    const char *m = c->module;
    graft_build_value parts[6] = {c->left};
    parts[1] = add_sum(add_branch(c, c->right, "comb_iter_0_left", 5, 1),
                       add_branch(c, c->left, "comb_iter_0_right", 3, 1), m, 0);
    parts[2] = add_sum(add_branch(c, c->left, "comb_iter_1_left", 5, 1),
                       add_branch(c, c->left, "comb_iter_1_right", 3, 1), m, 1);
    parts[3] =
        add_sum(add_average(c->right, inside(builder, m, "comb_iter_2_left"), 1), c->left, m, 2);
    parts[4] = add_sum(add_average(c->left, inside(builder, m, "comb_iter_3_left"), 1),
                       add_average(c->left, inside(builder, m, "comb_iter_3_right"), 1), m, 3);
    parts[5] = add_sum(add_branch(c, c->right, "comb_iter_4_left", 3, 1), c->right, m, 4);
    return graft_build_concat_all(parts, 6, 1, m);
}

/* Halves the size; `a` is the one of left and right that is pooled too. */
static graft_build_value add_reduction(const cell *c)
{
    graft_builder *builder = c->left.builder;
    const char *m = c->module;
    graft_build_value a = c->right;
    graft_build_value b = c->left;
    graft_build_value first = add_sum(add_branch(c, a, "comb_iter_0_left", 5, 2),
                                      add_branch(c, b, "comb_iter_0_right", 7, 2), m, 0);
    graft_build_value parts[4];
    parts[0] = add_sum(add_largest(a, inside(builder, m, "comb_iter_1_left")),
                       add_branch(c, b, "comb_iter_1_right", 7, 2), m, 1);
    parts[1] = add_sum(add_average(a, inside(builder, m, "comb_iter_2_left"), 2),
                       add_branch(c, b, "comb_iter_2_right", 5, 2), m, 2);
    parts[2] =
        add_sum(add_average(first, inside(builder, m, "comb_iter_3_right"), 1), parts[0], m, 3);
    parts[3] = add_sum(add_branch(c, first, "comb_iter_4_left", 3, 1),
                       add_largest(a, inside(builder, m, "comb_iter_4_right")), m, 4);
    return graft_build_concat_all(parts, 4, 1, m);
}

/* Brings the last cell, and the one before it, to the cell's channels. `halves`: the latter is
 * twice as large. */
static cell begin_cell(graft_builder *builder, const char *module, const graft_build_value last[2],
                       int64_t channels, bool halves)
{
    const char *left = inside(builder, module, "conv_prev_1x1");
    const char *right = inside(builder, module, "conv_1x1");
    return (cell){.module = module,
                  .left = halves ? add_halved(last[1], module, channels / 2)
                                 : add_project(last[1], left, channels),
                  .right = add_project(last[0], right, channels),
                  .channels = channels};
}

/* ------------------------------------------------------------------------------ the network */

/* last[0] is the last cell, last[1] the one before. */
static void push_cell(graft_build_value last[2], graft_build_value x)
{
    last[1] = last[0];
    last[0] = x;
}

/* Both cells of the stem read the first convolution, too. */
static void add_stem(graft_build_value x, graft_build_value last[2])
{
    x = add_conv(x, "conv0.conv", STEM, 1, graft_build_window(3, 3, 2));
    x = graft_build_batch_norm(x, "conv0.bn", epsilon, 1.0);
    const char *right = "cell_stem_0.conv_1x1";
    const cell first = {.module = "cell_stem_0",
                        .left = x,
                        .right = add_project(x, right, FILTERS / 4),
                        .channels = FILTERS / 4};
    last[0] = x;
    push_cell(last, add_reduction(&first));
    const cell second = begin_cell(x.builder, "cell_stem_1", last, FILTERS / 2, true);
    push_cell(last, add_reduction(&second));
}

void graft_build_nasnet(graft_builder *builder)
{
    static const char *const reductions[GROUPS - 1] = {"reduction_cell_0", "reduction_cell_1"};
    const int64_t dims[4] = {1, 3, IMAGE, IMAGE};
    graft_build_value last[2];
    add_stem(graft_build_input(builder, "input", dims, 4), last);
    for (int group = 0; group < GROUPS; group++) {
        int64_t channels = (int64_t)FILTERS << group;
        for (int i = 0; i < CELLS + 1; i++) {
            const char *module = graft_build_name(builder, "cell_%d", 6 * group + i);
            const cell c = begin_cell(builder, module, last, channels, i == 0);
            push_cell(last, add_normal(&c));
        }
        if (group + 1 < GROUPS) {
            const cell c = begin_cell(builder, reductions[group], last, 2 * channels, false);
            push_cell(last, add_reduction(&c));
        }
    }
    graft_build_value x = graft_build_relu(last[0], "relu");
    x = graft_build_global_pool(x, "avg_pool");
    x = graft_build_flatten(x, "flatten");
    graft_build_output(graft_build_linear(x, "last_linear", CLASSES), "output");
}

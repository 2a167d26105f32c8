/* inception.c - Inception v3 (Szegedy et al., Rethinking the Inception Architecture, 2016) as
 * torchvision has it, without the auxiliary classifier, which only training uses. */
#include "models/nets.h"

enum { IMAGE = 299, CLASSES = 1000, BRANCH_MOST = 6 };

static const double epsilon = 1e-3;

/* One convolution of a branch: without bias, with normalisation and relu. */
typedef struct {
    const char *name; /* NULL ends a list. */
    int64_t channels;
    int64_t height;
    int64_t width;
    int64_t stride;
    bool padded; /* So that the size stays. */
} layer;

static graft_build_value add_layer(graft_build_value x, const char *module, const layer *l)
{
    int64_t top = l->padded ? l->height / 2 : 0;
    int64_t left = l->padded ? l->width / 2 : 0;
    const char *name =
        module == NULL ? l->name : graft_build_name(x.builder, "%s.%s", module, l->name);
    graft_window_size window = graft_build_window(l->height, l->width, l->stride);
    graft_conv_layer conv = {.name = graft_build_name(x.builder, "%s.conv", name),
                             .channels = l->channels,
                             .window = graft_build_padded(window, top, left, top, left)};
    x = graft_build_conv(x, &conv);
    x = graft_build_batch_norm(x, graft_build_name(x.builder, "%s.bn", name), epsilon, 1.0);
    return graft_build_relu(x, graft_build_name(x.builder, "%s.relu", name));
}

static graft_build_value add_branch(graft_build_value x, const char *module,
                                    const layer layers[BRANCH_MOST])
{
    for (int i = 0; i < BRANCH_MOST && layers[i].name != NULL; i++) {
        x = add_layer(x, module, &layers[i]);
    }
    return x;
}

static graft_build_value add_max_pool(graft_build_value x, const char *name)
{
    graft_window_size window = graft_build_window(3, 3, 2);
    return graft_build_max_pool(x, name, &window, false);
}

/* 3 x 3 mean in which padding counts, then 1 x 1. */
static graft_build_value add_pool_branch(graft_build_value x, const char *module, int64_t channels)
{
    const layer project = {"branch_pool", channels, 1, 1, 1, false};
    graft_window_size window = graft_build_centred(3, 1);
    x = graft_build_padded_average(x, module, &window, true);
    return add_layer(x, module, &project);
}

/* 35 x 35 */
static graft_build_value add_block_a(graft_build_value x, const char *module, int64_t pool)
{
    static const layer one[BRANCH_MOST] = {
        {"branch1x1", 64, 1, 1, 1, false}
    };
    static const layer five[BRANCH_MOST] = {
        {"branch5x5_1", 48, 1, 1, 1, false},
        {"branch5x5_2", 64, 5, 5, 1, true }
    };
    static const layer three[BRANCH_MOST] = {
        {"branch3x3dbl_1", 64, 1, 1, 1, false},
        {"branch3x3dbl_2", 96, 3, 3, 1, true },
        {"branch3x3dbl_3", 96, 3, 3, 1, true }
    };
    const graft_build_value parts[4] = {add_branch(x, module, one), add_branch(x, module, five),
                                        add_branch(x, module, three),
                                        add_pool_branch(x, module, pool)};
    return graft_build_concat_all(parts, 4, 1, module);
}

/* 35 x 35 to 17 x 17 */
static graft_build_value add_block_b(graft_build_value x, const char *module)
{
    static const layer three[BRANCH_MOST] = {
        {"branch3x3", 384, 3, 3, 2, false}
    };
    static const layer twice[BRANCH_MOST] = {
        {"branch3x3dbl_1", 64, 1, 1, 1, false},
        {"branch3x3dbl_2", 96, 3, 3, 1, true },
        {"branch3x3dbl_3", 96, 3, 3, 2, false}
    };
    const graft_build_value parts[3] = {add_branch(x, module, three), add_branch(x, module, twice),
                                        add_max_pool(x, module)};
    return graft_build_concat_all(parts, 3, 1, module);
}

/* 17 x 17, `c` channels inside. */
static graft_build_value add_block_c(graft_build_value x, const char *module, int64_t c)
{
    const layer one[BRANCH_MOST] = {
        {"branch1x1", 192, 1, 1, 1, false}
    };
    const layer seven[BRANCH_MOST] = {
        {"branch7x7_1", c,   1, 1, 1, false},
        {"branch7x7_2", c,   1, 7, 1, true },
        {"branch7x7_3", 192, 7, 1, 1, true }
    };
    const layer twice[BRANCH_MOST] = {
        {"branch7x7dbl_1", c,   1, 1, 1, false},
        {"branch7x7dbl_2", c,   7, 1, 1, true },
        {"branch7x7dbl_3", c,   1, 7, 1, true },
        {"branch7x7dbl_4", c,   7, 1, 1, true },
        {"branch7x7dbl_5", 192, 1, 7, 1, true }
    };
    const graft_build_value parts[4] = {add_branch(x, module, one), add_branch(x, module, seven),
                                        add_branch(x, module, twice),
                                        add_pool_branch(x, module, 192)};
    return graft_build_concat_all(parts, 4, 1, module);
}

/* 17 x 17 to 8 x 8 */
static graft_build_value add_block_d(graft_build_value x, const char *module)
{
    static const layer three[BRANCH_MOST] = {
        {"branch3x3_1", 192, 1, 1, 1, false},
        {"branch3x3_2", 320, 3, 3, 2, false}
    };
    static const layer seven[BRANCH_MOST] = {
        {"branch7x7x3_1", 192, 1, 1, 1, false},
        {"branch7x7x3_2", 192, 1, 7, 1, true },
        {"branch7x7x3_3", 192, 7, 1, 1, true },
        {"branch7x7x3_4", 192, 3, 3, 2, false}
    };
    const graft_build_value parts[3] = {add_branch(x, module, three), add_branch(x, module, seven),
                                        add_max_pool(x, module)};
    return graft_build_concat_all(parts, 3, 1, module);
}

/* 1 x 3 and 3 x 1 of the same tensor, side by side. */
static graft_build_value add_cross(graft_build_value x, const char *module, const char *prefix)
{
    const layer wide = {graft_build_name(x.builder, "%sa", prefix), 384, 1, 3, 1, true};
    const layer tall = {graft_build_name(x.builder, "%sb", prefix), 384, 3, 1, 1, true};
    const graft_build_value parts[2] = {add_layer(x, module, &wide), add_layer(x, module, &tall)};
    return graft_build_concat_all(parts, 2, 1,
                                  graft_build_name(x.builder, "%s.%s", module, prefix));
}

/* 8 x 8 */
static graft_build_value add_block_e(graft_build_value x, const char *module)
{
    static const layer one[BRANCH_MOST] = {
        {"branch1x1", 320, 1, 1, 1, false}
    };
    static const layer three[BRANCH_MOST] = {
        {"branch3x3_1", 384, 1, 1, 1, false}
    };
    static const layer twice[BRANCH_MOST] = {
        {"branch3x3dbl_1", 448, 1, 1, 1, false},
        {"branch3x3dbl_2", 384, 3, 3, 1, true }
    };
    const graft_build_value parts[4] = {
        add_branch(x, module, one), add_cross(add_branch(x, module, three), module, "branch3x3_2"),
        add_cross(add_branch(x, module, twice), module, "branch3x3dbl_3"),
        add_pool_branch(x, module, 192)};
    return graft_build_concat_all(parts, 4, 1, module);
}

static graft_build_value add_stem(graft_build_value x)
{
    static const layer first[BRANCH_MOST] = {
        {"Conv2d_1a_3x3", 32, 3, 3, 2, false},
        {"Conv2d_2a_3x3", 32, 3, 3, 1, false},
        {"Conv2d_2b_3x3", 64, 3, 3, 1, true }
    };
    static const layer second[BRANCH_MOST] = {
        {"Conv2d_3b_1x1", 80,  1, 1, 1, false},
        {"Conv2d_4a_3x3", 192, 3, 3, 1, false}
    };
    x = add_max_pool(add_branch(x, NULL, first), "maxpool1");
    return add_max_pool(add_branch(x, NULL, second), "maxpool2");
}

void graft_build_inceptionv3(graft_builder *builder)
{
    const int64_t dims[4] = {1, 3, IMAGE, IMAGE};
    graft_build_value x = add_stem(graft_build_input(builder, "input", dims, 4));
    x = add_block_a(x, "Mixed_5b", 32);
    x = add_block_a(x, "Mixed_5c", 64);
    x = add_block_a(x, "Mixed_5d", 64);
    x = add_block_b(x, "Mixed_6a");
    x = add_block_c(x, "Mixed_6b", 128);
    x = add_block_c(x, "Mixed_6c", 160);
    x = add_block_c(x, "Mixed_6d", 160);
    x = add_block_c(x, "Mixed_6e", 192);
    x = add_block_d(x, "Mixed_7a");
    x = add_block_e(x, "Mixed_7b");
    x = add_block_e(x, "Mixed_7c");
    x = graft_build_global_pool(x, "avgpool");
    x = graft_build_flatten(x, "flatten");
    graft_build_output(graft_build_linear(x, "fc", CLASSES), "output");
}

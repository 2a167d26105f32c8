/* resnet.c - ResNet-50, version 1.5: He et al., Deep Residual Learning for Image Recognition
 * (2016), section 4.1, with the stride in the 3 x 3 convolution of a bottleneck, as torchvision has
 * it. */
#include "models/nets.h"

#include <string.h>

enum { STAGES = 4, EXPANSION = 4, WIDTH = 64, IMAGE = 224, CLASSES = 1000 };

static const double epsilon = 1e-5;
/* A trained network's last scale in a block is small: the sum stays near its first term. */
static const double residual_gain = 0.3;

static graft_window_size square_window(int64_t kernel, int64_t stride, int64_t pad)
{
    return graft_build_padded(graft_build_window(kernel, kernel, stride), pad, pad, pad, pad);
}

/* Convolution without bias, and normalisation. */
static graft_build_value add_conv_norm(graft_builder *builder, graft_build_value x,
                                       const char *conv_name, const char *norm_name,
                                       const graft_conv_layer *shape)
{
    graft_conv_layer conv = *shape;
    conv.name = conv_name;
    conv.groups = 1;
    double gain = strcmp(norm_name + strlen(norm_name) - 3, "bn3") == 0 ? residual_gain : 1.0;
    return graft_build_batch_norm(builder, graft_build_conv(builder, x, &conv), norm_name, epsilon,
                                  gain);
}

/* Number `k` of a block. */
static graft_build_value add_numbered(graft_builder *builder, graft_build_value x,
                                      const char *block, int k, const graft_conv_layer *shape)
{
    return add_conv_norm(builder, x, graft_build_name(builder, "%s.conv%d", block, k),
                         graft_build_name(builder, "%s.bn%d", block, k), shape);
}

/* 1 x 1 down, 3 x 3 (with the stride), 1 x 1 up, plus the input or its projection. */
static graft_build_value add_bottleneck(graft_builder *builder, graft_build_value x,
                                        const char *block, int64_t width, int64_t stride)
{
    graft_conv_layer down = {.channels = width, .window = square_window(1, 1, 0)};
    graft_conv_layer middle = {.channels = width, .window = square_window(3, stride, 1)};
    graft_conv_layer up = {.channels = EXPANSION * width, .window = square_window(1, 1, 0)};
    graft_conv_layer project = {.channels = EXPANSION * width,
                                .window = square_window(1, stride, 0)};
    const char *relu = graft_build_name(builder, "%s.relu", block);
    graft_build_value identity = x;
    graft_build_value y = add_numbered(builder, x, block, 1, &down);
    y = graft_build_relu(builder, y, relu);
    y = add_numbered(builder, y, block, 2, &middle);
    y = graft_build_relu(builder, y, graft_build_name(builder, "%s_1", relu));
    y = add_numbered(builder, y, block, 3, &up);
    if (stride != 1 || x.dims[1] != EXPANSION * width) {
        identity = add_conv_norm(builder, x, graft_build_name(builder, "%s.downsample.0", block),
                                 graft_build_name(builder, "%s.downsample.1", block), &project);
    }
    y = graft_build_add(builder, y, identity, block);
    return graft_build_relu(builder, y, graft_build_name(builder, "%s_2", relu));
}

void graft_build_resnet50(graft_builder *builder)
{
    static const int blocks[STAGES] = {3, 4, 6, 3};
    const int64_t dims[4] = {1, 3, IMAGE, IMAGE};
    graft_conv_layer stem = {.channels = WIDTH, .window = square_window(7, 2, 3)};
    graft_window_size pool = square_window(3, 2, 1);
    graft_build_value x = graft_build_input(builder, "input", dims, 4);
    x = add_conv_norm(builder, x, "conv1", "bn1", &stem);
    x = graft_build_relu(builder, x, "relu");
    x = graft_build_max_pool(builder, x, "maxpool", &pool, false);
    for (int stage = 0; stage < STAGES; stage++) {
        for (int i = 0; i < blocks[stage]; i++) {
            x = add_bottleneck(builder, x, graft_build_name(builder, "layer%d.%d", stage + 1, i),
                               (int64_t)WIDTH << stage, stage > 0 && i == 0 ? 2 : 1);
        }
    }
    x = graft_build_global_pool(builder, x, "avgpool");
    x = graft_build_flatten(builder, x, "flatten");
    graft_build_output(builder, graft_build_linear(builder, x, "fc", CLASSES), "output");
}

/* mobilenet.c - MobileNetV2 (Sandler et al., 2018) as torchvision has it. */
#include "models/nets.h"

static const double residual_gain = 0.3;
enum { IMAGE = 224, CLASSES = 1000, STEM = 32, HEAD = 1280 };

/* Convolution, normalisation; with a clipped activation behind unless `linear`. Number `k` of a
 * list of modules. */
static graft_build_value add_layer(graft_build_value x, const char *module, int k,
                                   graft_conv_layer conv)
{
    conv.name = graft_build_name(x.builder, "%s.%d.0", module, k);
    x = graft_build_conv(x, &conv);
    x = graft_build_batch_norm(x, graft_build_name(x.builder, "%s.%d.1", module, k), 1e-5, 1.0);
    return graft_build_relu6(x, graft_build_name(x.builder, "%s.%d.2", module, k));
}

/* 1 x 1 up, 3 x 3 in each channel, 1 x 1 down without activation. */
static graft_build_value add_inverted(graft_build_value x, const char *module, int64_t expand,
                                      const graft_conv_layer *shape)
{
    int64_t inner = x.dims[1] * expand;
    bool adds = shape->window.stride[0] == 1 && x.dims[1] == shape->channels;
    graft_build_value y = x;
    int k = 0;
    if (expand != 1) {
        y = add_layer(y, module, k++,
                      (graft_conv_layer){.channels = inner, .window = graft_build_centred(1, 1)});
    }
    y = add_layer(y, module, k++,
                  (graft_conv_layer){.channels = inner, .groups = inner, .window = shape->window});
    graft_conv_layer down = {.name = graft_build_name(x.builder, "%s.%d", module, k),
                             .channels = shape->channels,
                             .window = graft_build_centred(1, 1)};
    y = graft_build_conv(y, &down);
    y = graft_build_batch_norm(y, graft_build_name(x.builder, "%s.%d", module, k + 1), 1e-5,
                               adds ? residual_gain : 1.0);
    return adds ? graft_build_add(x, y, module) : y;
}

void graft_build_mobilenetv2(graft_builder *builder)
{
    static const struct {
        int64_t expand;
        int64_t channels;
        int repeats;
        int64_t stride; /* Of the first. */
    } groups[] = {
        {1, 16,  1, 1},
        {6, 24,  2, 2},
        {6, 32,  3, 2},
        {6, 64,  4, 2},
        {6, 96,  3, 1},
        {6, 160, 3, 2},
        {6, 320, 1, 1},
    };
    const int64_t dims[4] = {1, 3, IMAGE, IMAGE};
    int index = 1;
    graft_build_value x = graft_build_input(builder, "input", dims, 4);
    x = add_layer(x, "features", 0,
                  (graft_conv_layer){.channels = STEM, .window = graft_build_centred(3, 2)});
    for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++) {
        for (int i = 0; i < groups[g].repeats; i++) {
            const graft_conv_layer shape = {
                .channels = groups[g].channels,
                .window = graft_build_centred(3, i == 0 ? groups[g].stride : 1)};
            x = add_inverted(x, graft_build_name(builder, "features.%d.conv", index++),
                             groups[g].expand, &shape);
        }
    }
    x = add_layer(x, "features", index,
                  (graft_conv_layer){.channels = HEAD, .window = graft_build_centred(1, 1)});
    x = graft_build_global_pool(x, "avgpool");
    x = graft_build_flatten(x, "flatten");
    graft_build_output(graft_build_linear(x, "classifier.1", CLASSES), "output");
}

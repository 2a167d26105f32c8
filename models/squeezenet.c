/* squeezenet.c - SqueezeNet 1.1: Iandola et al., SqueezeNet (2016), in the later version of the
 * authors' repository, with torchvision's names. There is no normalisation; all convolutions have a
 * bias; pooling rounds up. */
#include "models/nets.h"

enum { IMAGE = 224, CLASSES = 1000 };

static graft_build_value add_conv_relu(graft_build_value x, const char *module, const char *name,
                                       int64_t channels, int64_t kernel)
{
    graft_conv_layer conv = {.name = graft_build_name(x.builder, "%s.%s", module, name),
                             .channels = channels,
                             .has_bias = true,
                             .window = graft_build_centred(kernel, 1)};
    return graft_build_relu(graft_build_conv(x, &conv),
                            graft_build_name(x.builder, "%s_activation", conv.name));
}

/* Squeeze to few channels, expand with 1 x 1 and 3 x 3 filters side by side. */
static graft_build_value add_fire(graft_build_value x, int index, int64_t squeeze, int64_t expand)
{
    const char *module = graft_build_name(x.builder, "features.%d", index);
    graft_build_value s = add_conv_relu(x, module, "squeeze", squeeze, 1);
    graft_build_value a = add_conv_relu(s, module, "expand1x1", expand, 1);
    graft_build_value b = add_conv_relu(s, module, "expand3x3", expand, 3);
    return graft_build_concat(a, b, module);
}

void graft_build_squeezenet(graft_builder *builder)
{
    static const struct {
        int index; /* In torchvision's list; pools stand between. */
        int64_t squeeze;
        int64_t expand;
        const char *pool; /* Before this module; NULL: none. */
    } fires[] = {
        {3,  16, 64,  "features.2"},
        {4,  16, 64,  NULL        },
        {6,  32, 128, "features.5"},
        {7,  32, 128, NULL        },
        {9,  48, 192, "features.8"},
        {10, 48, 192, NULL        },
        {11, 64, 256, NULL        },
        {12, 64, 256, NULL        },
    };
    const graft_window_size window = graft_build_window(3, 3, 2);
    const int64_t dims[4] = {1, 3, IMAGE, IMAGE};
    graft_conv_layer stem = {
        .name = "features.0", .channels = 64, .has_bias = true, .window = window};
    graft_build_value x = graft_build_input(builder, "input", dims, 4);
    x = graft_build_relu(graft_build_conv(x, &stem), "features.1");
    for (size_t i = 0; i < sizeof(fires) / sizeof(fires[0]); i++) {
        if (fires[i].pool != NULL) {
            x = graft_build_max_pool(x, fires[i].pool, &window, true);
        }
        x = add_fire(x, fires[i].index, fires[i].squeeze, fires[i].expand);
    }
    x = add_conv_relu(x, "classifier", "1", CLASSES, 1);
    x = graft_build_global_pool(x, "classifier.3");
    graft_build_output(graft_build_flatten(x, "flatten"), "output");
}

/* dscnn.c - DS-CNN for keyword spotting: Zhang et al., Hello Edge (2017), the small network, as the
 * MLPerf Tiny benchmark trains it: 49 frames of 10 cepstral coefficients, 12 classes. Its framework
 * gives convolutions a bias although a normalisation follows. */
#include "models/nets.h"

enum { FRAMES = 49, COEFFICIENTS = 10, CHANNELS = 64, BLOCKS = 4, CLASSES = 12 };

static const double epsilon = 1e-3;

/* Convolution, normalisation, relu number `index`. */
static graft_build_value add_conv(graft_builder *builder, graft_build_value x, const char *kind,
                                  int index, int64_t groups, graft_window_size window)
{
    graft_conv_layer conv = {.name = graft_build_name(builder, "%s_%d", kind, index),
                             .channels = CHANNELS,
                             .groups = groups,
                             .has_bias = true,
                             .window = window};
    x = graft_build_conv(builder, x, &conv);
    x = graft_build_batch_norm(
        builder, x, graft_build_name(builder, "batch_normalization_%d", index), epsilon, 1.0);
    return graft_build_relu(builder, x, graft_build_name(builder, "activation_%d", index));
}

void graft_build_dscnn(graft_builder *builder)
{
    /* "Same" padding: 9 rows and 2 columns in all, the odd one behind. */
    graft_window_size first = graft_build_padded(graft_build_window(10, 4, 2), 4, 1, 5, 1);
    graft_window_size depthwise = graft_build_centred(3, 1);
    graft_window_size pointwise = graft_build_window(1, 1, 1);
    const int64_t dims[4] = {1, 1, FRAMES, COEFFICIENTS};
    graft_build_value x = graft_build_input(builder, "input_1", dims, 4);
    x = add_conv(builder, x, "conv2d", 0, 1, first);
    for (int i = 0; i < BLOCKS; i++) {
        x = add_conv(builder, x, "depthwise_conv2d", 2 * i + 1, CHANNELS, depthwise);
        x = add_conv(builder, x, "conv2d", 2 * i + 2, 1, pointwise);
    }
    graft_window_size all = graft_build_window(x.dims[2], x.dims[3], 1);
    x = graft_build_average_pool(builder, x, "average_pooling2d", &all);
    x = graft_build_flatten(builder, x, "flatten");
    x = graft_build_linear(builder, x, "dense", CLASSES);
    graft_build_output(builder, graft_build_softmax(builder, x, "softmax"), "probabilities");
}

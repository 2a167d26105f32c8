/* tiny.c - the networks of the MLPerf Tiny benchmark (Banbury et al., 2021), as its training
 * scripts build them with Keras: DS-CNN for keyword spotting (Zhang et al., Hello Edge, 2017, the
 * small one: 49 frames of 10 cepstral coefficients, 12 classes), MobileNetV1 with a quarter of the
 * width (Howard et al., 2017) for persons in 96 x 96 images, ResNet-8 for 32 x 32 images of 10
 * classes, and the autoencoder that finds unusual sounds of machines in 5 frames of 128 bands.
 *
 * Keras gives convolutions a bias although a normalisation follows; its "same" padding puts the odd
 * row and column behind. */
#include "models/nets.h"

static const double residual_gain = 0.3;

static const char *number(graft_builder *builder, const char *kind, int index)
{
    return graft_build_name(builder, "%s_%d", kind, index);
}

static graft_build_value add_conv(graft_build_value x, int index, graft_conv_layer conv)
{
    conv.name = number(x.builder, conv.groups > 1 ? "depthwise_conv2d" : "conv2d", index);
    conv.has_bias = true;
    return graft_build_conv(x, &conv);
}

static graft_build_value add_norm(graft_build_value x, int index, double gain)
{
    return graft_build_batch_norm(x, number(x.builder, "batch_normalization", index), 1e-3, gain);
}

static graft_build_value add_relu(graft_build_value x, int index)
{
    return graft_build_relu(x, number(x.builder, "activation", index));
}

/* Convolution, normalisation, relu number `index`. */
static graft_build_value add_layer(graft_build_value x, int index, graft_conv_layer conv)
{
    x = add_conv(x, index, conv);
    return add_relu(add_norm(x, index, 1.0), index);
}

/* "Same" padding of an even image: at stride 2 one row and column behind. */
static graft_window_size same_window(int64_t kernel, int64_t stride)
{
    int64_t before = stride == 1 ? kernel / 2 : 0;
    return graft_build_padded(graft_build_window(kernel, kernel, stride), before, before,
                              kernel / 2, kernel / 2);
}

static void add_classes(graft_build_value x, int64_t classes)
{
    graft_window_size all = graft_build_window(x.dims[2], x.dims[3], 1);
    x = graft_build_average_pool(x, "average_pooling2d", &all);
    x = graft_build_flatten(x, "flatten");
    x = graft_build_linear(x, "dense", classes);
    graft_build_output(graft_build_softmax(x, "softmax"), "probabilities");
}

/* A filter for each channel, then 1 x 1; numbers `index` and the next. */
static graft_build_value add_separable(graft_build_value x, int index, int64_t channels,
                                       int64_t stride)
{
    x = add_layer(x, index,
                  (graft_conv_layer){.channels = x.dims[1],
                                     .groups = x.dims[1],
                                     .window = same_window(3, stride)});
    return add_layer(
        x, index + 1,
        (graft_conv_layer){.channels = channels, .window = graft_build_window(1, 1, 1)});
}

/* --------------------------------------------------------------------------------- DS-CNN */

void graft_build_dscnn(graft_builder *builder)
{
    enum { FRAMES = 49, COEFFICIENTS = 10, CHANNELS = 64, BLOCKS = 4, CLASSES = 12 };
    /* "Same" padding: 9 rows and 2 columns in all. */
    const graft_conv_layer first = {
        .channels = CHANNELS,
        .window = graft_build_padded(graft_build_window(10, 4, 2), 4, 1, 5, 1)};
    const int64_t dims[4] = {1, 1, FRAMES, COEFFICIENTS};
    graft_build_value x = graft_build_input(builder, "input_1", dims, 4);
    x = add_layer(x, 0, first);
    for (int i = 0; i < BLOCKS; i++) {
        x = add_separable(x, 2 * i + 1, CHANNELS, 1);
    }
    add_classes(x, CLASSES);
}

/* ---------------------------------------------------------------------------- MobileNetV1 */

void graft_build_mobilenetv1(graft_builder *builder)
{
    enum { IMAGE = 96, STEM = 8, BLOCKS = 13, CLASSES = 2 };
    static const int64_t channels[BLOCKS] = {16,  32,  32,  64,  64,  128, 128,
                                             128, 128, 128, 128, 256, 256};
    static const int64_t strides[BLOCKS] = {1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1};
    const int64_t dims[4] = {1, 3, IMAGE, IMAGE};
    graft_build_value x = graft_build_input(builder, "input_1", dims, 4);
    x = add_layer(x, 0, (graft_conv_layer){.channels = STEM, .window = same_window(3, 2)});
    for (int i = 0; i < BLOCKS; i++) {
        x = add_separable(x, 2 * i + 1, channels[i], strides[i]);
    }
    add_classes(x, CLASSES);
}

/* ------------------------------------------------------------------------------- ResNet-8 */

void graft_build_resnet8(graft_builder *builder)
{
    enum { IMAGE = 32, CLASSES = 10, STACKS = 3, WIDTH = 16 };
    const int64_t dims[4] = {1, 3, IMAGE, IMAGE};
    int convs = 1;
    int norms = 1;
    int relus = 1;
    graft_build_value x = graft_build_input(builder, "input_1", dims, 4);
    x = add_layer(x, 0, (graft_conv_layer){.channels = WIDTH, .window = same_window(3, 1)});
    for (int stack = 0; stack < STACKS; stack++) {
        int64_t stride = stack == 0 ? 1 : 2;
        graft_conv_layer conv = {.channels = (int64_t)WIDTH << stack,
                                 .window = same_window(3, stride)};
        graft_build_value y = add_conv(x, convs++, conv);
        y = add_relu(add_norm(y, norms++, 1.0), relus++);
        conv.window = same_window(3, 1);
        y = add_norm(add_conv(y, convs++, conv), norms++, residual_gain);
        if (stack > 0) {
            conv.window = same_window(1, stride);
            x = add_conv(x, convs++, conv);
        }
        x = graft_build_add(x, y, number(builder, "add", stack));
        x = add_relu(x, relus++);
    }
    add_classes(x, CLASSES);
}

/* ---------------------------------------------------------------------------- autoencoder */

void graft_build_autoencoder(graft_builder *builder)
{
    enum { FEATURES = 640, HIDDEN = 128, CODE = 8, HIDDEN_LAYERS = 9 };
    const int64_t dims[2] = {1, FEATURES};
    graft_build_value x = graft_build_input(builder, "input_1", dims, 2);
    for (int i = 0; i < HIDDEN_LAYERS; i++) {
        int64_t size = i == HIDDEN_LAYERS / 2 ? CODE : HIDDEN;
        x = graft_build_linear(x, number(builder, "dense", i), size);
        x = add_relu(add_norm(x, i, 1.0), i);
    }
    x = graft_build_linear(x, number(builder, "dense", HIDDEN_LAYERS), FEATURES);
    graft_build_output(x, "reconstruction");
}

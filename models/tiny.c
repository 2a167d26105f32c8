/* tiny.c - two of the networks of the MLPerf Tiny benchmark (Banbury et al., 2021), as its training
 * scripts build them with Keras: ResNet-8 for 32 x 32 images of 10 classes, and the autoencoder
 * that finds unusual sounds of machines in 5 frames of 128 bands. */
#include "models/nets.h"

static const double epsilon = 1e-3;
static const double residual_gain = 0.3;

static const char *number(graft_builder *builder, const char *kind, int index)
{
    return graft_build_name(builder, "%s_%d", kind, index);
}

/* ------------------------------------------------------------------------------- ResNet-8 */

enum { IMAGE = 32, CLASSES = 10, STACKS = 3, WIDTH = 16 };

/* "Same" padding of an even image: at stride 2 one row and column behind. */
static graft_build_value add_conv(graft_builder *builder, graft_build_value x, int index,
                                  int64_t channels, int64_t kernel, int64_t stride)
{
    int64_t before = stride == 1 ? kernel / 2 : 0;
    graft_window_size window = graft_build_window(kernel, kernel, stride);
    graft_conv_layer conv = {
        .name = number(builder, "conv2d", index),
        .channels = channels,
        .has_bias = true,
        .window = graft_build_padded(window, before, before, kernel / 2, kernel / 2)};
    return graft_build_conv(builder, x, &conv);
}

static graft_build_value add_norm(graft_builder *builder, graft_build_value x, int index,
                                  double gain)
{
    return graft_build_batch_norm(builder, x, number(builder, "batch_normalization", index),
                                  epsilon, gain);
}

void graft_build_resnet8(graft_builder *builder)
{
    const int64_t dims[4] = {1, 3, IMAGE, IMAGE};
    int convs = 0;
    int norms = 0;
    int relus = 0;
    graft_build_value x = graft_build_input(builder, "input_1", dims, 4);
    x = add_norm(builder, add_conv(builder, x, convs++, WIDTH, 3, 1), norms++, 1.0);
    x = graft_build_relu(builder, x, number(builder, "activation", relus++));
    for (int stack = 0; stack < STACKS; stack++) {
        int64_t width = (int64_t)WIDTH << stack;
        int64_t stride = stack == 0 ? 1 : 2;
        graft_build_value y = add_conv(builder, x, convs++, width, 3, stride);
        y = add_norm(builder, y, norms++, 1.0);
        y = graft_build_relu(builder, y, number(builder, "activation", relus++));
        y = add_conv(builder, y, convs++, width, 3, 1);
        y = add_norm(builder, y, norms++, residual_gain);
        if (stack > 0) {
            x = add_conv(builder, x, convs++, width, 1, stride);
        }
        x = graft_build_add(builder, x, y, number(builder, "add", stack));
        x = graft_build_relu(builder, x, number(builder, "activation", relus++));
    }
    graft_window_size all = graft_build_window(x.dims[2], x.dims[3], 1);
    x = graft_build_average_pool(builder, x, "average_pooling2d", &all);
    x = graft_build_flatten(builder, x, "flatten");
    x = graft_build_linear(builder, x, "dense", CLASSES);
    graft_build_output(builder, graft_build_softmax(builder, x, "softmax"), "probabilities");
}

/* ---------------------------------------------------------------------------- autoencoder */

enum { FEATURES = 640, HIDDEN = 128, CODE = 8, HIDDEN_LAYERS = 9 };

void graft_build_autoencoder(graft_builder *builder)
{
    const int64_t dims[2] = {1, FEATURES};
    graft_build_value x = graft_build_input(builder, "input_1", dims, 2);
    for (int i = 0; i < HIDDEN_LAYERS; i++) {
        int64_t size = i == HIDDEN_LAYERS / 2 ? CODE : HIDDEN;
        x = graft_build_linear(builder, x, number(builder, "dense", i), size);
        x = add_norm(builder, x, i, 1.0);
        x = graft_build_relu(builder, x, number(builder, "activation", i));
    }
    x = graft_build_linear(builder, x, number(builder, "dense", HIDDEN_LAYERS), FEATURES);
    graft_build_output(builder, x, "reconstruction");
}

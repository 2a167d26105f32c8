/* builder.h - models made layer by layer, as a framework exports them to ONNX.
 *
 * Convolution, normalisation, activation, residual sum and classifier are separate nodes, named as
 * the framework names its modules. Weights come from a seed: each tensor from its own stream, so
 * that a tensor's values do not depend on those before it.
 *
 * Activations must neither vanish nor grow through fifty layers, or comparing two graphs' outputs
 * would mean nothing. The builder estimates mean and mean square of every value: filters are drawn
 * with variance 2 / fan-in (He et al. 2015), and the recorded variance of a normalisation is what
 * its input is estimated to have, times a random factor near 1, as training would leave it. */
#ifndef GRAFT_MODELS_BUILDER_H
#define GRAFT_MODELS_BUILDER_H

#include "graph/onnx.h"

typedef struct graft_builder graft_builder;

/* A value of the model under construction: its name, shape, and the estimated mean and mean square
 * of its elements. */
typedef struct graft_build_value {
    const char *name;
    int64_t dims[4]; /* (batch, channels, height, width) or (batch, features) */
    uint32_t rank;
    double mean;
    double mean_square;
} graft_build_value;

/* A window over height and width. */
typedef struct graft_window_size {
    int64_t kernel[2];
    int64_t stride[2];
    int64_t pads[4]; /* top, left, bottom, right */
} graft_window_size;

/* A window without padding, with the same stride in both directions. */
graft_window_size graft_build_window(int64_t height, int64_t width, int64_t stride);
/* The same window with padding. */
graft_window_size graft_build_padded(graft_window_size window, int64_t top, int64_t left,
                                     int64_t bottom, int64_t right);

typedef struct graft_conv_layer {
    const char *name; /* Of the module: "<name>.weight", "<name>.bias". */
    int64_t channels; /* Of the output. */
    int64_t groups;
    bool has_bias;
    graft_window_size window;
} graft_conv_layer;

/* An empty model in `arena`. `name` is the graph's. */
graft_builder *graft_builder_new(graft_arena *arena, const char *name, int64_t opset,
                                 uint64_t seed);
/* The finished message; nothing may be added afterwards. */
Onnx__ModelProto *graft_builder_finish(graft_builder *builder);
/* Numbers of the model so far that training would change: filters, biases, scales, shifts. */
uint64_t graft_builder_parameters(const graft_builder *builder);

/* printf into the model's arena: names of modules. */
const char *graft_build_name(graft_builder *builder, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A binary32 input, taken to have elements of mean 0 and mean square 1. */
graft_build_value graft_build_input(graft_builder *builder, const char *name, const int64_t *dims,
                                    uint32_t rank);
/* Renames the last node's output, which `tensor` is, and makes it the model's output. */
void graft_build_output(graft_builder *builder, graft_build_value tensor, const char *name);

/* Each adds nodes named after `layer->name` or `name` and returns the output. */
graft_build_value graft_build_conv(graft_builder *builder, graft_build_value x,
                                   const graft_conv_layer *layer);
/* `gain` is the scale's mean: 1, or less where a residual sum follows. */
graft_build_value graft_build_batch_norm(graft_builder *builder, graft_build_value x,
                                         const char *name, double epsilon, double gain);
graft_build_value graft_build_relu(graft_builder *builder, graft_build_value x, const char *name);
graft_build_value graft_build_add(graft_builder *builder, graft_build_value a, graft_build_value b,
                                  const char *name);
graft_build_value graft_build_concat(graft_builder *builder, graft_build_value a,
                                     graft_build_value b,
                                     const char *name); /* Along the channels. */
graft_build_value graft_build_max_pool(graft_builder *builder, graft_build_value x,
                                       const char *name, const graft_window_size *window,
                                       bool ceil_mode);
graft_build_value graft_build_average_pool(graft_builder *builder, graft_build_value x,
                                           const char *name, const graft_window_size *window);
graft_build_value graft_build_global_pool(graft_builder *builder, graft_build_value x,
                                          const char *name);
graft_build_value graft_build_flatten(graft_builder *builder, graft_build_value x,
                                      const char *name);
/* Gemm with the weights as (outputs, inputs), transposed by the node. */
graft_build_value graft_build_linear(graft_builder *builder, graft_build_value x, const char *name,
                                     int64_t outputs);
graft_build_value graft_build_softmax(graft_builder *builder, graft_build_value x,
                                      const char *name);

#endif

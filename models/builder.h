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
#pragma once

#include "graph/onnx/onnx.h"

typedef struct graft_builder {
    graft_arena *arena;
    uint64_t seed;
    uint64_t tensor_count;
    uint64_t parameter_count; /* Numbers of the model so far that training would change: filters,
                                 biases, scales, shifts. */
    bool quantises; /* Layers are written as a static quantiser writes them (builder_quantise.c). */
    int64_t batch; /* Inputs at once: the first axis of size 1 of every input, and the first axis of
                       what is reshaped, have this size. */
    Onnx__ModelProto *model;
    uint32_t node_capacity;
    uint32_t initializer_capacity;
} graft_builder;

/* A value of the model under construction: its name, shape, and the estimated mean and mean square
 * of its elements. */
typedef struct graft_build_value {
    graft_builder *builder; /* Of the model. */
    const char *name;
    int64_t dims[4]; /* (batch, channels, height, width) or (batch, features) */
    uint32_t rank;
    bool is_positive;
    double mean;
    double mean_square;
    double scale; /* Of the 8-bit numbers that its elements are; 0: it was not quantised. */
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
/* A square window with half its size as padding: at stride 1 the size stays. */
graft_window_size graft_build_centred(int64_t kernel, int64_t stride);

typedef struct graft_conv_layer {
    const char *name; /* Of the module: "<name>.weight", "<name>.bias". */
    int64_t channels; /* Of the output. */
    int64_t groups;   /* 0: one. */
    bool has_bias;
    graft_window_size window;
} graft_conv_layer;

/* An empty model in `arena`, of one input at once and not quantised: that can be set as long as it
 * is empty. `name` is the graph's. */
graft_builder *graft_builder_new(graft_arena *arena, const char *name, int64_t opset,
                                 uint64_t seed);

/* printf into the model's arena: names of modules. */
const char *graft_build_name(graft_builder *builder, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A further input. Binary32, taken to have elements of mean 0 and mean square 1. */
graft_build_value graft_build_input(graft_builder *builder, const char *name, const int64_t *dims,
                                    uint32_t rank);
/* A further input of whole numbers (int64). */
graft_build_value graft_build_int_input(graft_builder *builder, const char *name,
                                        const int64_t *dims, uint32_t rank);
/* Renames the last node's output, which `tensor` is, and makes it the model's output. */
void graft_build_output(graft_build_value tensor, const char *name);

/* A weight "<module>.<part>" with elements uniform around 0, as linear layers are initialised. */
graft_build_value graft_build_weight(graft_builder *builder, const char *module, const char *part,
                                     const int64_t *dims, uint32_t rank, double deviation);
/* The same with elements around `mean`. */
graft_build_value graft_build_vector(graft_builder *builder, const char *module, const char *part,
                                     int64_t size, double mean, double deviation);
/* What an exporter writes into a file beside weights: not counted as parameters. */
graft_build_value graft_build_scalar(graft_builder *builder, const char *module, const char *part,
                                     float value);
graft_build_value graft_build_ints(graft_builder *builder, const char *module, const char *part,
                                   const int64_t *items, int64_t count);
graft_build_value graft_build_int(graft_builder *builder, const char *module, const char *part,
                                  int64_t value);

/* An initializer of any type with the given elements, which are borrowed. */
graft_build_value graft_build_tensor(graft_builder *builder, const char *name, uint8_t dtype,
                                     const int64_t *dims, uint32_t rank, const void *data);

/* Any node with one output, which is taken to be like the first input; the caller corrects its
 * shape. A second node of the same operator in a module is numbered. */
graft_build_value graft_build_node(const char *op_type, const char *module,
                                   const graft_build_value *inputs, uint32_t count);
/* Attributes of the node that was added last. */
void graft_build_set_int(graft_builder *builder, const char *name, int64_t value);
void graft_build_set_ints(graft_builder *builder, const char *name, const int64_t *values,
                          uint32_t count);

/* A tensor as 8-bit numbers and back (builder_quantise.c); the same nodes when it is asked for
 * again. The tensor itself when the model is not quantised. */
graft_build_value graft_build_quantised(graft_build_value x);

/* Filter and bias of a layer: `bias` may be NULL, otherwise it has dims[0] elements. */
typedef struct graft_build_filter {
    const char *name; /* Of the module. */
    int64_t dims[4];
    uint32_t rank;
    const float *weight;
    const float *bias;
} graft_build_filter;
/* Both as 8-bit and 32-bit numbers for the quantised input `x` of the layer, and back: inputs 1 and
 * 2 of the layer's node. */
void graft_build_quantised_filter(const graft_build_value *x, const graft_build_filter *filter,
                                  const char *inputs[3]);

/* Each adds nodes named after `layer->name` or `name` and returns the output. */
graft_build_value graft_build_conv(graft_build_value x, const graft_conv_layer *layer);
/* `gain` is the scale's mean: 1, or less where a residual sum follows. */
graft_build_value graft_build_batch_norm(graft_build_value x, const char *name, double epsilon,
                                         double gain);
graft_build_value graft_build_relu(graft_build_value x, const char *name);
graft_build_value graft_build_add(graft_build_value a, graft_build_value b, const char *name);
graft_build_value graft_build_concat(graft_build_value a, graft_build_value b,
                                     const char *name); /* Along the channels. */
graft_build_value graft_build_concat_all(const graft_build_value *parts, uint32_t count,
                                         int64_t axis, const char *name);
graft_build_value graft_build_max_pool(graft_build_value x, const char *name,
                                       const graft_window_size *window, bool ceil_mode);
graft_build_value graft_build_average_pool(graft_build_value x, const char *name,
                                           const graft_window_size *window);
/* `counts`: padding counts in the mean. */
graft_build_value graft_build_padded_average(graft_build_value x, const char *name,
                                             const graft_window_size *window, bool counts);
graft_build_value graft_build_global_pool(graft_build_value x, const char *name);
graft_build_value graft_build_flatten(graft_build_value x, const char *name);
/* Gemm with the weights as (outputs, inputs), transposed by the node. */
graft_build_value graft_build_linear(graft_build_value x, const char *name, int64_t outputs);
graft_build_value graft_build_softmax(graft_build_value x, const char *name);

/* Layers of transformers and recurrent cells (builder_layers.c), in the parts in which exporters
 * write them. */

/* Sigmoid, Tanh, Erf, Sqrt... */
graft_build_value graft_build_function(const char *op_type, graft_build_value x, const char *name);
/* Clip to [0, 6]. */
graft_build_value graft_build_relu6(graft_build_value x, const char *name);
/* Add, Sub, Mul, Div with broadcasting. */
graft_build_value graft_build_pair(const char *op_type, graft_build_value a, graft_build_value b,
                                   const char *name);
graft_build_value graft_build_matmul(graft_build_value a, graft_build_value b, const char *name);
/* MatMul and Add over the last axis, as linear layers of more than two axes are written. */
graft_build_value graft_build_dense(graft_build_value x, const char *name, int64_t outputs);
/* `dims` for one input of the batch: dims[0] is 1. */
graft_build_value graft_build_reshape(graft_build_value x, const char *name, const int64_t *dims,
                                      uint32_t rank);
graft_build_value graft_build_transpose(graft_build_value x, const char *name, const int64_t *axes);
/* Element `index` of an axis, which goes away: Gather with a scalar. */
graft_build_value graft_build_pick(graft_build_value x, const char *name, int64_t axis,
                                   int64_t index);
/* (1,...) once for each input of the batch: Expand, where there are several. */
graft_build_value graft_build_repeat(graft_build_value x, const char *name);
/* Elements [start, end) of an axis: Slice. */
graft_build_value graft_build_slice(graft_build_value x, const char *name, int64_t axis,
                                    const int64_t range[2]);
/* ReduceMean, Sub, Pow, ReduceMean, Add, Sqrt, Div, Mul, Add over the last axis. */
graft_build_value graft_build_layer_norm(graft_build_value x, const char *name, float epsilon);
/* Div, Erf, Add, Mul, Mul. */
graft_build_value graft_build_gelu(graft_build_value x, const char *name);

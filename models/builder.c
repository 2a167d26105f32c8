/* builder.c - see builder.h. Node and value names follow PyTorch's exporter: a node of module
 * "layer1.0.conv1" is "/layer1/layer1.0/conv1/Conv", its output that plus "_output_0". */
#include "models/builder.h"
#include "graph/rng.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { IR_VERSION = 8, FIRST_CAPACITY = 64 };

struct graft_builder {
    graft_arena *arena;
    uint64_t seed;
    uint64_t tensor_count;
    uint64_t parameter_count;
    Onnx__ModelProto *model;
    size_t node_capacity;
    size_t initializer_capacity;
};

/* ----------------------------------------------------------------------------- the message */

static Onnx__ValueInfoProto **one_port(graft_arena *arena, Onnx__ValueInfoProto *port)
{
    Onnx__ValueInfoProto **list = GRAFT_NEW(arena, Onnx__ValueInfoProto *, 1);
    list[0] = port;
    return list;
}

graft_builder *graft_builder_new(graft_arena *arena, const char *name, int64_t opset, uint64_t seed)
{
    graft_builder *builder = GRAFT_NEW(arena, graft_builder, 1);
    Onnx__ModelProto *model = GRAFT_NEW(arena, Onnx__ModelProto, 1);
    Onnx__GraphProto *graph = GRAFT_NEW(arena, Onnx__GraphProto, 1);
    Onnx__OperatorSetIdProto *set = GRAFT_NEW(arena, Onnx__OperatorSetIdProto, 1);
    onnx__model_proto__init(model);
    onnx__graph_proto__init(graph);
    onnx__operator_set_id_proto__init(set);
    set->domain = graft_arena_strdup(arena, "");
    set->has_version = 1;
    set->version = opset;
    model->has_ir_version = 1;
    model->ir_version = IR_VERSION;
    model->producer_name = graft_arena_strdup(arena, "graft");
    model->n_opset_import = 1;
    model->opset_import = GRAFT_NEW(arena, Onnx__OperatorSetIdProto *, 1);
    model->opset_import[0] = set;
    model->graph = graph;
    graph->name = graft_arena_strdup(arena, name);
    *builder = (graft_builder){.arena = arena, .seed = seed, .model = model};
    return builder;
}

Onnx__ModelProto *graft_builder_finish(graft_builder *builder) { return builder->model; }

uint64_t graft_builder_parameters(const graft_builder *builder) { return builder->parameter_count; }

const char *graft_build_name(graft_builder *builder, const char *format, ...)
{
    enum { NAME_BYTES = 256 };
    char name[NAME_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(name, sizeof(name), format, arguments);
    va_end(arguments);
    assert(length >= 0 && length < NAME_BYTES);
    return graft_arena_strdup(builder->arena, name);
}

/* Makes room for one more pointer in a list that doubles. */
static void *grow_list(graft_arena *arena, void *list, size_t count, size_t *capacity)
{
    if (count < *capacity) {
        return list;
    }
    size_t larger = *capacity > 0 ? 2 * *capacity : FIRST_CAPACITY;
    void *grown = graft_arena_array(arena, larger, sizeof(void *));
    if (count > 0) {
        memcpy(grown, list, count * sizeof(void *));
    }
    *capacity = larger;
    return grown;
}

/* Node names have the path of the module and the operator; outputs add a number. */
static Onnx__NodeProto *add_node(graft_builder *builder, const char *op_type, const char *module,
                                 const char *const *inputs, size_t input_count)
{
    Onnx__GraphProto *graph = builder->model->graph;
    char *path = graft_arena_printf(builder->arena, "/%s/%s", module, op_type);
    for (char *c = path; *c != '\0'; c++) {
        *c = *c == '.' ? '/' : *c;
    }
    const char *output = graft_arena_printf(builder->arena, "%s_output_0", path);
    Onnx__NodeProto *node =
        graft_onnx_make_node(builder->arena, op_type, inputs, input_count, &output, 1);
    node->name = path;
    graph->node = grow_list(builder->arena, graph->node, graph->n_node, &builder->node_capacity);
    graph->node[graph->n_node++] = node;
    return node;
}

static graft_build_value output_of(const Onnx__NodeProto *node, const graft_build_value *like)
{
    graft_build_value output = *like;
    output.name = node->output[0];
    return output;
}

graft_build_value graft_build_input(graft_builder *builder, const char *name, const int64_t *dims,
                                    uint32_t rank)
{
    graft_build_value input = {.name = name, .rank = rank, .mean_square = 1.0};
    memcpy(input.dims, dims, rank * sizeof(dims[0]));
    Onnx__GraphProto *graph = builder->model->graph;
    graph->n_input = 1;
    graph->input = one_port(
        builder->arena, graft_onnx_make_port(builder->arena, name, GRAFT_DTYPE_F32, dims, rank));
    return input;
}

void graft_build_output(graft_builder *builder, graft_build_value tensor, const char *name)
{
    Onnx__GraphProto *graph = builder->model->graph;
    Onnx__NodeProto *last = graph->node[graph->n_node - 1];
    assert(strcmp(last->output[0], tensor.name) == 0);
    last->output[0] = graft_arena_strdup(builder->arena, name);
    graph->n_output = 1;
    graph->output =
        one_port(builder->arena, graft_onnx_make_port(builder->arena, name, GRAFT_DTYPE_F32,
                                                      tensor.dims, tensor.rank));
}

/* --------------------------------------------------------------------------------- weights */

/* Each element is `mean` plus `deviation` times a standard normal number. */
static const char *add_weight(graft_builder *builder, const char *module, const char *part,
                              const int64_t *dims, uint32_t rank, const double distribution[2])
{
    Onnx__GraphProto *graph = builder->model->graph;
    size_t count = 1;
    for (uint32_t i = 0; i < rank; i++) {
        count *= (size_t)dims[i];
    }
    float *data = GRAFT_NEW(builder->arena, float, count);
    graft_rng rng;
    graft_rng_derive(&rng, builder->seed, builder->tensor_count++);
    for (size_t i = 0; i < count; i++) {
        data[i] = (float)(distribution[0] + distribution[1] * graft_rng_normal(&rng));
    }
    const char *name = graft_arena_printf(builder->arena, "%s.%s", module, part);
    graph->initializer = grow_list(builder->arena, graph->initializer, graph->n_initializer,
                                   &builder->initializer_capacity);
    graph->initializer[graph->n_initializer++] =
        graft_onnx_make_tensor(builder->arena, name, GRAFT_DTYPE_F32, dims, rank, data);
    builder->parameter_count += count;
    return name;
}

/* Elements uniform in `range`: for what must stay positive. */
static const char *add_uniform_weight(graft_builder *builder, const char *module, const char *part,
                                      int64_t count, const double range[2])
{
    const double unused[2] = {0.0, 0.0};
    const char *name = add_weight(builder, module, part, &count, 1, unused);
    Onnx__GraphProto *graph = builder->model->graph;
    float *data = (float *)(void *)graph->initializer[graph->n_initializer - 1]->raw_data.data;
    graft_rng rng;
    graft_rng_derive(&rng, builder->seed, builder->tensor_count++);
    for (int64_t i = 0; i < count; i++) {
        data[i] = (float)(range[0] + (range[1] - range[0]) * graft_rng_uniform(&rng));
    }
    return name;
}

/* ---------------------------------------------------------------------------------- layers */

graft_window_size graft_build_window(int64_t height, int64_t width, int64_t stride)
{
    graft_window_size window;
    memset(&window, 0, sizeof(window));
    window.kernel[0] = height;
    window.kernel[1] = width;
    window.stride[0] = stride;
    window.stride[1] = stride;
    return window;
}

graft_window_size graft_build_padded(graft_window_size window, int64_t top, int64_t left,
                                     int64_t bottom, int64_t right)
{
    window.pads[0] = top;
    window.pads[1] = left;
    window.pads[2] = bottom;
    window.pads[3] = right;
    return window;
}

static int64_t slide(int64_t size, const graft_window_size *window, uint32_t i, bool ceil_mode)
{
    int64_t room = size + window->pads[i] + window->pads[2 + i] - window->kernel[i];
    return (room + (ceil_mode ? window->stride[i] - 1 : 0)) / window->stride[i] + 1;
}

static void set_window(graft_builder *builder, Onnx__NodeProto *node,
                       const graft_window_size *window)
{
    graft_onnx_set_ints(builder->arena, node, "kernel_shape", window->kernel, 2);
    graft_onnx_set_ints(builder->arena, node, "pads", window->pads, 4);
    graft_onnx_set_ints(builder->arena, node, "strides", window->stride, 2);
}

graft_build_value graft_build_conv(graft_builder *builder, graft_build_value x,
                                   const graft_conv_layer *layer)
{
    static const int64_t no_dilation[2] = {1, 1};
    const int64_t *kernel = layer->window.kernel;
    int64_t dims[4] = {layer->channels, x.dims[1] / layer->groups, kernel[0], kernel[1]};
    double fan_in = (double)(dims[1] * dims[2] * dims[3]);
    double filter[2] = {0.0, sqrt(2.0 / fan_in)};
    double bias[2] = {0.0, 0.05};
    const char *inputs[3] = {x.name, add_weight(builder, layer->name, "weight", dims, 4, filter)};
    if (layer->has_bias) {
        inputs[2] = add_weight(builder, layer->name, "bias", &layer->channels, 1, bias);
    }
    Onnx__NodeProto *node = add_node(builder, "Conv", layer->name, inputs, layer->has_bias ? 3 : 2);
    graft_onnx_set_ints(builder->arena, node, "dilations", no_dilation, 2);
    graft_onnx_set_int(builder->arena, node, "group", layer->groups);
    set_window(builder, node, &layer->window);
    graft_build_value output = output_of(node, &x);
    output.dims[1] = layer->channels;
    output.dims[2] = slide(x.dims[2], &layer->window, 0, false);
    output.dims[3] = slide(x.dims[3], &layer->window, 1, false);
    output.mean = 0.0;
    output.mean_square = 2.0 * x.mean_square;
    return output;
}

graft_build_value graft_build_batch_norm(graft_builder *builder, graft_build_value x,
                                         const char *name, double epsilon, double gain)
{
    int64_t channels = x.dims[1];
    double deviation = sqrt(x.mean_square);
    double scale[2] = {gain, 0.1 * gain};
    double shift[2] = {0.0, 0.1 * gain};
    double mean[2] = {0.0, 0.1 * deviation};
    double variance[2] = {0.7 * x.mean_square, 1.3 * x.mean_square};
    const char *inputs[5] = {x.name, add_weight(builder, name, "weight", &channels, 1, scale),
                             add_weight(builder, name, "bias", &channels, 1, shift),
                             add_weight(builder, name, "running_mean", &channels, 1, mean),
                             add_uniform_weight(builder, name, "running_var", channels, variance)};
    builder->parameter_count -= 2 * (uint64_t)channels; /* Statistics are measured, not trained. */
    Onnx__NodeProto *node = add_node(builder, "BatchNormalization", name, inputs, 5);
    graft_onnx_set_float(builder->arena, node, "epsilon", (float)epsilon);
    graft_onnx_set_float(builder->arena, node, "momentum", 0.9F);
    graft_build_value output = output_of(node, &x);
    output.mean = 0.0;
    output.mean_square = gain * gain;
    return output;
}

/* The positive part of a normal distribution with the input's mean and variance. */
graft_build_value graft_build_relu(graft_builder *builder, graft_build_value x, const char *name)
{
    graft_build_value output = output_of(add_node(builder, "Relu", name, &x.name, 1), &x);
    double deviation = sqrt(fmax(x.mean_square - x.mean * x.mean, 1e-12));
    double at = x.mean / deviation;
    double density = exp(-0.5 * at * at) / sqrt(2.0 * M_PI);
    double positive = 0.5 * erfc(-at / sqrt(2.0));
    output.mean = x.mean * positive + deviation * density;
    output.mean_square = x.mean_square * positive + x.mean * deviation * density;
    return output;
}

graft_build_value graft_build_add(graft_builder *builder, graft_build_value a, graft_build_value b,
                                  const char *name)
{
    const char *inputs[2] = {a.name, b.name};
    graft_build_value output = output_of(add_node(builder, "Add", name, inputs, 2), &a);
    output.mean = a.mean + b.mean;
    output.mean_square = a.mean_square + b.mean_square + 2.0 * a.mean * b.mean;
    return output;
}

graft_build_value graft_build_concat(graft_builder *builder, graft_build_value a,
                                     graft_build_value b, const char *name)
{
    const char *inputs[2] = {a.name, b.name};
    Onnx__NodeProto *node = add_node(builder, "Concat", name, inputs, 2);
    graft_onnx_set_int(builder->arena, node, "axis", 1);
    graft_build_value output = output_of(node, &a);
    output.dims[1] = a.dims[1] + b.dims[1];
    output.mean = 0.5 * (a.mean + b.mean);
    output.mean_square = 0.5 * (a.mean_square + b.mean_square);
    return output;
}

graft_build_value graft_build_max_pool(graft_builder *builder, graft_build_value x,
                                       const char *name, const graft_window_size *window,
                                       bool ceil_mode)
{
    Onnx__NodeProto *node = add_node(builder, "MaxPool", name, &x.name, 1);
    graft_onnx_set_int(builder->arena, node, "ceil_mode", ceil_mode);
    set_window(builder, node, window);
    graft_build_value output = output_of(node, &x);
    output.dims[2] = slide(x.dims[2], window, 0, ceil_mode);
    output.dims[3] = slide(x.dims[3], window, 1, ceil_mode);
    output.mean_square = 2.0 * x.mean_square; /* The largest of a few is larger. */
    return output;
}

graft_build_value graft_build_average_pool(graft_builder *builder, graft_build_value x,
                                           const char *name, const graft_window_size *window)
{
    Onnx__NodeProto *node = add_node(builder, "AveragePool", name, &x.name, 1);
    set_window(builder, node, window);
    graft_build_value output = output_of(node, &x);
    output.dims[2] = slide(x.dims[2], window, 0, false);
    output.dims[3] = slide(x.dims[3], window, 1, false);
    output.mean_square = 0.5 * x.mean_square;
    return output;
}

graft_build_value graft_build_global_pool(graft_builder *builder, graft_build_value x,
                                          const char *name)
{
    graft_build_value output =
        output_of(add_node(builder, "GlobalAveragePool", name, &x.name, 1), &x);
    output.dims[2] = 1;
    output.dims[3] = 1;
    output.mean_square = 0.5 * x.mean_square;
    return output;
}

graft_build_value graft_build_flatten(graft_builder *builder, graft_build_value x, const char *name)
{
    Onnx__NodeProto *node = add_node(builder, "Flatten", name, &x.name, 1);
    graft_onnx_set_int(builder->arena, node, "axis", 1);
    graft_build_value output = output_of(node, &x);
    output.rank = 2;
    output.dims[1] = x.dims[1] * x.dims[2] * x.dims[3];
    return output;
}

graft_build_value graft_build_linear(graft_builder *builder, graft_build_value x, const char *name,
                                     int64_t outputs)
{
    int64_t dims[2] = {outputs, x.dims[1]};
    double matrix[2] = {0.0, sqrt(1.0 / (double)x.dims[1])};
    double bias[2] = {0.0, 0.05};
    const char *inputs[3] = {x.name, add_weight(builder, name, "weight", dims, 2, matrix),
                             add_weight(builder, name, "bias", &outputs, 1, bias)};
    Onnx__NodeProto *node = add_node(builder, "Gemm", name, inputs, 3);
    graft_onnx_set_float(builder->arena, node, "alpha", 1.0F);
    graft_onnx_set_float(builder->arena, node, "beta", 1.0F);
    graft_onnx_set_int(builder->arena, node, "transB", 1);
    graft_build_value output = output_of(node, &x);
    output.dims[1] = outputs;
    return output;
}

graft_build_value graft_build_softmax(graft_builder *builder, graft_build_value x, const char *name)
{
    Onnx__NodeProto *node = add_node(builder, "Softmax", name, &x.name, 1);
    graft_onnx_set_int(builder->arena, node, "axis", (int64_t)x.rank - 1);
    return output_of(node, &x);
}

/* builder.c - see builder.h. Node and value names follow PyTorch's exporter: a node of module
 * "layer1.0.conv1" is "/layer1/layer1.0/conv1/Conv", its output that plus "_output_0". */
#include "models/builder.h"
#include "graph/base/rng.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { IR_VERSION = 8, FIRST_CAPACITY = 64 };

/* ----------------------------------------------------------------------------- the message */

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
    *builder = (graft_builder){.arena = arena, .seed = seed, .batch = 1, .model = model};
    return builder;
}

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

/* Room for one more pointer in a list. */
static void *grow_list(graft_arena *arena, void *list, size_t count, uint32_t *capacity)
{
    return graft_arena_grow(arena, list, (uint32_t)count, capacity, FIRST_CAPACITY, sizeof(void *));
}

static bool has_node(const Onnx__GraphProto *graph, const char *name)
{
    for (size_t i = 0; i < graph->n_node; i++) {
        if (strcmp(graph->node[i]->name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Node names have the path of the module and the operator, numbered from the second one on; outputs
 * add a number. */
static Onnx__NodeProto *add_node(graft_builder *builder, const char *op_type, const char *module,
                                 const char *const *inputs, size_t input_count)
{
    Onnx__GraphProto *graph = builder->model->graph;
    char *path = graft_arena_printf(builder->arena, "/%s/%s", module, op_type);
    for (char *c = path; *c != '\0'; c++) {
        *c = *c == '.' ? '/' : *c;
    }
    char *numbered = path;
    for (int k = 1; has_node(graph, numbered); k++) {
        numbered = graft_arena_printf(builder->arena, "%s_%d", path, k);
    }
    path = numbered;
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
    output.scale = 0.0;
    return output;
}

static graft_build_value add_input(graft_builder *builder, const char *name, uint8_t dtype,
                                   const int64_t *dims, uint32_t rank)
{
    graft_build_value input = {.builder = builder, .name = name, .rank = rank, .mean_square = 1.0};
    uint32_t axis = 0;
    memcpy(input.dims, dims, rank * sizeof(dims[0]));
    while (axis + 1 < rank && dims[axis] != 1) {
        axis++;
    }
    input.dims[axis] *= builder->batch;
    Onnx__GraphProto *graph = builder->model->graph;
    graph->input =
        graft_onnx_append(builder->arena, graph->input, graph->n_input++,
                          graft_onnx_make_port(builder->arena, name, dtype, input.dims, rank));
    return input;
}

graft_build_value graft_build_input(graft_builder *builder, const char *name, const int64_t *dims,
                                    uint32_t rank)
{
    return add_input(builder, name, GRAFT_DTYPE_F32, dims, rank);
}

graft_build_value graft_build_int_input(graft_builder *builder, const char *name,
                                        const int64_t *dims, uint32_t rank)
{
    return add_input(builder, name, GRAFT_DTYPE_I64, dims, rank);
}

graft_build_value graft_build_node(const char *op_type, const char *module,
                                   const graft_build_value *inputs, uint32_t count)
{
    const char **names = GRAFT_NEW(inputs->builder->arena, const char *, count);
    for (uint32_t i = 0; i < count; i++) {
        names[i] = inputs[i].name;
    }
    return output_of(add_node(inputs->builder, op_type, module, names, count), &inputs[0]);
}

static Onnx__NodeProto *last_node(const graft_builder *builder)
{
    const Onnx__GraphProto *graph = builder->model->graph;
    return graph->node[graph->n_node - 1];
}

void graft_build_set_int(graft_builder *builder, const char *name, int64_t value)
{
    graft_onnx_set_int(builder->arena, last_node(builder), name, value);
}

void graft_build_set_ints(graft_builder *builder, const char *name, const int64_t *values,
                          uint32_t count)
{
    graft_onnx_set_ints(builder->arena, last_node(builder), name, values, count);
}

void graft_build_output(graft_build_value tensor, const char *name)
{
    Onnx__GraphProto *graph = tensor.builder->model->graph;
    Onnx__NodeProto *last = graph->node[graph->n_node - 1];
    assert(strcmp(last->output[0], tensor.name) == 0);
    last->output[0] = graft_arena_strdup(tensor.builder->arena, name);
    graph->output =
        graft_onnx_append(tensor.builder->arena, graph->output, graph->n_output++,
                          graft_onnx_make_port(tensor.builder->arena, name, GRAFT_DTYPE_F32,
                                               tensor.dims, tensor.rank));
}

/* --------------------------------------------------------------------------------- weights */

static const char *add_initializer(graft_builder *builder, const char *name, uint8_t dtype,
                                   const int64_t *dims, uint32_t rank, const void *data)
{
    Onnx__GraphProto *graph = builder->model->graph;
    graph->initializer = grow_list(builder->arena, graph->initializer, graph->n_initializer,
                                   &builder->initializer_capacity);
    graph->initializer[graph->n_initializer++] =
        graft_onnx_make_tensor(builder->arena, name, dtype, dims, rank, data);
    return name;
}

static const char *name_part(graft_builder *builder, const char *module, const char *part)
{
    return graft_arena_printf(builder->arena, "%s.%s", module, part);
}

/* How the elements of a weight are drawn. */
typedef struct {
    bool is_normal; /* mean and deviation; else uniform from `first` to `second`. */
    double first;
    double second;
} distribution;

static double draw(graft_rng *rng, const distribution *d)
{
    return d->is_normal ? d->first + d->second * graft_rng_normal(rng)
                        : d->first + (d->second - d->first) * graft_rng_uniform(rng);
}

static float *draw_weight(graft_builder *builder, const int64_t *dims, uint32_t rank,
                          distribution d)
{
    size_t count = 1;
    for (uint32_t i = 0; i < rank; i++) {
        count *= (size_t)dims[i];
    }
    float *data = GRAFT_NEW(builder->arena, float, count);
    graft_rng rng;
    graft_rng_derive(&rng, builder->seed, builder->tensor_count++);
    for (size_t i = 0; i < count; i++) {
        data[i] = (float)draw(&rng, &d);
    }
    builder->parameter_count += count;
    return data;
}

static const char *add_weight(graft_builder *builder, const char *name, const int64_t *dims,
                              uint32_t rank, distribution d)
{
    return add_initializer(builder, name, GRAFT_DTYPE_F32, dims, rank,
                           draw_weight(builder, dims, rank, d));
}

/* Each element is `mean` plus `deviation` times a standard normal number. */
static const char *add_normal(graft_builder *builder, const char *module, const char *part,
                              int64_t count, const double mean_deviation[2])
{
    distribution d = {true, mean_deviation[0], mean_deviation[1]};
    return add_weight(builder, name_part(builder, module, part), &count, 1, d);
}

graft_build_value graft_build_weight(graft_builder *builder, const char *module, const char *part,
                                     const int64_t *dims, uint32_t rank, double deviation)
{
    double half_width = deviation * sqrt(3.0);
    graft_build_value value = {
        .builder = builder, .rank = rank, .mean_square = deviation * deviation};
    memcpy(value.dims, dims, rank * sizeof(dims[0]));
    value.name = add_weight(builder, name_part(builder, module, part), dims, rank,
                            (distribution){false, -half_width, half_width});
    return value;
}

graft_build_value graft_build_vector(graft_builder *builder, const char *module, const char *part,
                                     int64_t size, double mean, double deviation)
{
    const double mean_deviation[2] = {mean, deviation};
    return (graft_build_value){.builder = builder,
                               .name = add_normal(builder, module, part, size, mean_deviation),
                               .dims = {size},
                               .rank = 1,
                               .mean = mean,
                               .mean_square = mean * mean + deviation * deviation};
}

graft_build_value graft_build_scalar(graft_builder *builder, const char *module, const char *part,
                                     float value)
{
    float *data = GRAFT_NEW(builder->arena, float, 1);
    *data = value;
    return (graft_build_value){.builder = builder,
                               .name = add_initializer(builder, name_part(builder, module, part),
                                                       GRAFT_DTYPE_F32, NULL, 0, data),
                               .mean = (double)value,
                               .mean_square = (double)value * (double)value};
}

graft_build_value graft_build_tensor(graft_builder *builder, const char *name, uint8_t dtype,
                                     const int64_t *dims, uint32_t rank, const void *data)
{
    graft_build_value value = {.builder = builder, .rank = rank};
    if (rank > 0) {
        memcpy(value.dims, dims, rank * sizeof(dims[0]));
    }
    value.name = add_initializer(builder, name, dtype, dims, rank, data);
    return value;
}

static graft_build_value add_ints(graft_builder *builder, const char *name, const int64_t *items,
                                  int64_t count, uint32_t rank)
{
    const int64_t *data = GRAFT_COPY(builder->arena, items, (size_t)count);
    return (graft_build_value){
        .builder = builder,
        .name = add_initializer(builder, name, GRAFT_DTYPE_I64, &count, rank, data),
        .dims = {rank == 0 ? 0 : count},
        .rank = rank};
}

graft_build_value graft_build_ints(graft_builder *builder, const char *module, const char *part,
                                   const int64_t *items, int64_t count)
{
    return add_ints(builder, name_part(builder, module, part), items, count, 1);
}

graft_build_value graft_build_int(graft_builder *builder, const char *module, const char *part,
                                  int64_t value)
{
    return add_ints(builder, name_part(builder, module, part), &value, 1, 0);
}

/* ---------------------------------------------------------------------------------- layers */

graft_window_size graft_build_window(int64_t height, int64_t width, int64_t stride)
{
    return (graft_window_size){
        .kernel = {height, width },
          .stride = {stride, stride}
    };
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

graft_window_size graft_build_centred(int64_t kernel, int64_t stride)
{
    int64_t pad = kernel / 2;
    return graft_build_padded(graft_build_window(kernel, kernel, stride), pad, pad, pad, pad);
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

/* Filter and bias of a layer, as inputs 1 and 2 of its node; filters have variance `gain` / fan-in.
 * A quantised model has no normalisations: they are folded into its filters, which then give their
 * outputs a mean square of 1. The result is the mean square of the layer's output. */
static double add_filter(const graft_build_value *x, graft_build_filter *filter, double gain,
                         const char *inputs[3])
{
    double fan_in = 1.0;
    for (uint32_t i = 1; i < filter->rank; i++) {
        fan_in *= (double)filter->dims[i];
    }
    gain = x->builder->quantises ? 1.0 / x->mean_square : gain;
    distribution matrix = {true, 0.0, sqrt(gain / fan_in)};
    distribution bias = {true, 0.0, 0.05};
    filter->weight = draw_weight(x->builder, filter->dims, filter->rank, matrix);
    if (inputs[2] != NULL) {
        filter->bias = draw_weight(x->builder, filter->dims, 1, bias);
    }
    if (x->builder->quantises) {
        graft_build_quantised_filter(x, filter, inputs);
        return 1.0;
    }
    inputs[1] = add_initializer(x->builder, inputs[1], GRAFT_DTYPE_F32, filter->dims, filter->rank,
                                filter->weight);
    if (inputs[2] != NULL) {
        inputs[2] =
            add_initializer(x->builder, inputs[2], GRAFT_DTYPE_F32, filter->dims, 1, filter->bias);
    }
    return gain * x->mean_square;
}

graft_build_value graft_build_conv(graft_build_value x, const graft_conv_layer *layer)
{
    static const int64_t no_dilation[2] = {1, 1};
    const int64_t *kernel = layer->window.kernel;
    const int64_t groups = layer->groups == 0 ? 1 : layer->groups;
    graft_build_filter filter = {
        .name = layer->name,
        .dims = {layer->channels, x.dims[1] / groups, kernel[0], kernel[1]},
        .rank = 4
    };
    x = graft_build_quantised(x);
    const char *inputs[3] = {x.name, name_part(x.builder, layer->name, "weight"),
                             layer->has_bias ? name_part(x.builder, layer->name, "bias") : NULL};
    double mean_square = add_filter(&x, &filter, 2.0, inputs);
    Onnx__NodeProto *node =
        add_node(x.builder, "Conv", layer->name, inputs, layer->has_bias ? 3 : 2);
    graft_onnx_set_ints(x.builder->arena, node, "dilations", no_dilation, 2);
    graft_onnx_set_int(x.builder->arena, node, "group", groups);
    set_window(x.builder, node, &layer->window);
    graft_build_value output = output_of(node, &x);
    output.dims[1] = layer->channels;
    output.dims[2] = slide(x.dims[2], &layer->window, 0, false);
    output.dims[3] = slide(x.dims[3], &layer->window, 1, false);
    output.mean = 0.0;
    output.mean_square = mean_square;
    output.is_positive = false;
    return output;
}

graft_build_value graft_build_batch_norm(graft_build_value x, const char *name, double epsilon,
                                         double gain)
{
    if (x.builder->quantises) {
        return x;
    }
    int64_t channels = x.dims[1];
    double deviation = sqrt(x.mean_square);
    double scale[2] = {gain, 0.1 * gain};
    double shift[2] = {0.0, 0.1 * gain};
    double mean[2] = {0.0, 0.1 * deviation};
    distribution variance = {false, 0.7 * x.mean_square, 1.3 * x.mean_square};
    const char *inputs[5] = {
        x.name, add_normal(x.builder, name, "weight", channels, scale),
        add_normal(x.builder, name, "bias", channels, shift),
        add_normal(x.builder, name, "running_mean", channels, mean),
        add_weight(x.builder, name_part(x.builder, name, "running_var"), &channels, 1, variance)};
    x.builder->parameter_count -=
        2 * (uint64_t)channels; /* Statistics are measured, not trained. */
    Onnx__NodeProto *node = add_node(x.builder, "BatchNormalization", name, inputs, 5);
    graft_onnx_set_float(x.builder->arena, node, "epsilon", (float)epsilon);
    graft_onnx_set_float(x.builder->arena, node, "momentum", 0.9F);
    graft_build_value output = output_of(node, &x);
    output.mean = 0.0;
    output.mean_square = gain * gain;
    return output;
}

/* The positive part of a normal distribution with the input's mean and variance. */
graft_build_value graft_build_relu(graft_build_value x, const char *name)
{
    graft_build_value output = output_of(add_node(x.builder, "Relu", name, &x.name, 1), &x);
    double deviation = sqrt(fmax(x.mean_square - x.mean * x.mean, 1e-12));
    double at = x.mean / deviation;
    double density = exp(-0.5 * at * at) / sqrt(2.0 * M_PI);
    double positive = 0.5 * erfc(-at / sqrt(2.0));
    output.mean = x.mean * positive + deviation * density;
    output.mean_square = x.mean_square * positive + x.mean * deviation * density;
    output.is_positive = true;
    return output;
}

graft_build_value graft_build_add(graft_build_value a, graft_build_value b, const char *name)
{
    a = graft_build_quantised(a);
    b = graft_build_quantised(b);
    const char *inputs[2] = {a.name, b.name};
    graft_build_value output = output_of(add_node(a.builder, "Add", name, inputs, 2), &a);
    output.is_positive = a.is_positive && b.is_positive;
    output.mean = a.mean + b.mean;
    output.mean_square = a.mean_square + b.mean_square + 2.0 * a.mean * b.mean;
    return output;
}

graft_build_value graft_build_concat_all(const graft_build_value *parts, uint32_t count,
                                         int64_t axis, const char *name)
{
    graft_build_value output = graft_build_node("Concat", name, parts, count);
    graft_build_set_int(parts->builder, "axis", axis);
    output.dims[axis] = 0;
    output.mean = 0.0;
    output.mean_square = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        output.dims[axis] += parts[i].dims[axis];
        output.mean += parts[i].mean / count;
        output.mean_square += parts[i].mean_square / count;
    }
    return output;
}

graft_build_value graft_build_concat(graft_build_value a, graft_build_value b, const char *name)
{
    const graft_build_value parts[2] = {a, b};
    return graft_build_concat_all(parts, 2, 1, name);
}

graft_build_value graft_build_max_pool(graft_build_value x, const char *name,
                                       const graft_window_size *window, bool ceil_mode)
{
    x = graft_build_quantised(x);
    Onnx__NodeProto *node = add_node(x.builder, "MaxPool", name, &x.name, 1);
    graft_onnx_set_int(x.builder->arena, node, "ceil_mode", ceil_mode);
    set_window(x.builder, node, window);
    graft_build_value output = output_of(node, &x);
    output.dims[2] = slide(x.dims[2], window, 0, ceil_mode);
    output.dims[3] = slide(x.dims[3], window, 1, ceil_mode);
    output.mean_square = 2.0 * x.mean_square; /* The largest of a few is larger. */
    return output;
}

graft_build_value graft_build_average_pool(graft_build_value x, const char *name,
                                           const graft_window_size *window)
{
    x = graft_build_quantised(x);
    Onnx__NodeProto *node = add_node(x.builder, "AveragePool", name, &x.name, 1);
    set_window(x.builder, node, window);
    graft_build_value output = output_of(node, &x);
    output.dims[2] = slide(x.dims[2], window, 0, false);
    output.dims[3] = slide(x.dims[3], window, 1, false);
    output.mean_square = 0.5 * x.mean_square;
    return output;
}

graft_build_value graft_build_padded_average(graft_build_value x, const char *name,
                                             const graft_window_size *window, bool counts)
{
    graft_build_value output = graft_build_average_pool(x, name, window);
    graft_build_set_int(x.builder, "count_include_pad", counts);
    return output;
}

graft_build_value graft_build_global_pool(graft_build_value x, const char *name)
{
    x = graft_build_quantised(x);
    graft_build_value output =
        output_of(add_node(x.builder, "GlobalAveragePool", name, &x.name, 1), &x);
    output.dims[2] = 1;
    output.dims[3] = 1;
    output.mean_square = 0.5 * x.mean_square;
    return output;
}

graft_build_value graft_build_flatten(graft_build_value x, const char *name)
{
    x = graft_build_quantised(x);
    Onnx__NodeProto *node = add_node(x.builder, "Flatten", name, &x.name, 1);
    graft_onnx_set_int(x.builder->arena, node, "axis", 1);
    graft_build_value output = output_of(node, &x);
    output.rank = 2;
    output.dims[1] = x.dims[1] * x.dims[2] * x.dims[3];
    return output;
}

graft_build_value graft_build_linear(graft_build_value x, const char *name, int64_t outputs)
{
    graft_build_filter filter = {
        .name = name, .dims = {outputs, x.dims[1]},
             .rank = 2
    };
    x = graft_build_quantised(x);
    const char *inputs[3] = {x.name, name_part(x.builder, name, "weight"),
                             name_part(x.builder, name, "bias")};
    double mean_square = add_filter(&x, &filter, 1.0, inputs);
    Onnx__NodeProto *node = add_node(x.builder, "Gemm", name, inputs, 3);
    graft_onnx_set_float(x.builder->arena, node, "alpha", 1.0F);
    graft_onnx_set_float(x.builder->arena, node, "beta", 1.0F);
    graft_onnx_set_int(x.builder->arena, node, "transB", 1);
    graft_build_value output = output_of(node, &x);
    output.dims[1] = outputs;
    output.mean = 0.0;
    output.mean_square = mean_square;
    output.is_positive = false;
    return output;
}

graft_build_value graft_build_softmax(graft_build_value x, const char *name)
{
    x = graft_build_quantised(x);
    Onnx__NodeProto *node = add_node(x.builder, "Softmax", name, &x.name, 1);
    graft_onnx_set_int(x.builder->arena, node, "axis", (int64_t)x.rank - 1);
    return output_of(node, &x);
}

/* builder_quantise.c - models of 8-bit numbers, in the form in which static quantisers write them
 * (onnxruntime's, format QDQ): every layer reads its inputs through QuantizeLinear and
 * DequantizeLinear, filters are stored as 8-bit numbers and biases as 32-bit numbers behind a
 * DequantizeLinear. A runtime makes one integer operator of a layer and what stands around it.
 *
 *      activations    int8, one scale and zero point; the range is that of the estimated
 *                     distribution, four deviations on each side, as calibration would find it
 *      filters        int8, symmetric, a scale for each output channel
 *      biases         int32, of the scale of the products that they are added to */
#include "models/builder.h"

#include <math.h>
#include <string.h>

enum { LEVELS = 255, LEAST = -128, MOST = 127 };
static const double deviations = 4.0;

/* DequantizeLinear of numbers that are stored, with `count` scales along the first axis, or one
 * scale where count is 0. */
typedef struct {
    const char *name;
    const float *scales;
    const void *zeros;
    int64_t count;
    uint8_t dtype;
} quantisation;

/* Adds scales and zero points: inputs 1 and 2 of a node. */
static void add_parameters(graft_builder *builder, const quantisation *q, graft_build_value in[3])
{
    const char *scale = graft_build_name(builder, "%s_scale", q->name);
    const char *zero = graft_build_name(builder, "%s_zero_point", q->name);
    uint32_t rank = q->count > 0 ? 1 : 0;
    in[1] = graft_build_tensor(builder, scale, GRAFT_DTYPE_F32, &q->count, rank, q->scales);
    in[2] = graft_build_tensor(builder, zero, q->dtype, &q->count, rank, q->zeros);
}

/* ------------------------------------------------------------------------- activations */

/* A tensor's name as a module's: without the slash before it. */
static const char *module_of(const char *tensor) { return tensor + (tensor[0] == '/' ? 1 : 0); }

static const char *find_output(graft_builder *builder, const char *op_type, const char *tensor)
{
    const Onnx__GraphProto *graph = builder->model->graph;
    for (size_t i = 0; i < graph->n_node; i++) {
        if (strcmp(graph->node[i]->op_type, op_type) == 0 &&
            strcmp(graph->node[i]->input[0], tensor) == 0) {
            return graph->node[i]->output[0];
        }
    }
    return NULL;
}

/* Scale and zero point for a tensor with the estimated distribution. */
static int8_t choose_scale(const graft_build_value *x, float *scale)
{
    double deviation = sqrt(fmax(x->mean_square - x->mean * x->mean, 1e-12));
    double least = x->is_positive ? 0.0 : fmin(0.0, x->mean - deviations * deviation);
    double most = fmax(0.0, x->mean + deviations * deviation);
    *scale = (float)((most - least) / LEVELS);
    return (int8_t)(LEAST + (int)rint(-least / (double)*scale));
}

graft_build_value graft_build_quantised(graft_build_value x)
{
    if (!x.builder->quantises || x.scale > 0.0) {
        return x;
    }
    float *scale = GRAFT_NEW(x.builder->arena, float, 1);
    int8_t *zero = GRAFT_NEW(x.builder->arena, int8_t, 1);
    *zero = choose_scale(&x, scale);
    const char *bytes = find_output(x.builder, "QuantizeLinear", x.name);
    if (bytes != NULL) {
        x.name = find_output(x.builder, "DequantizeLinear", bytes);
    } else {
        const quantisation q = {module_of(x.name), scale, zero, 0, GRAFT_DTYPE_I8};
        graft_build_value in[3] = {x};
        add_parameters(x.builder, &q, in);
        in[0] = graft_build_node("QuantizeLinear", q.name, in, 3);
        x.name = graft_build_node("DequantizeLinear", q.name, in, 3).name;
    }
    x.scale = (double)*scale;
    return x;
}

/* ----------------------------------------------------------------------------- filters */

static const char *add_dequantised(graft_builder *builder, const quantisation *q,
                                   graft_build_value numbers)
{
    graft_build_value in[3] = {numbers};
    add_parameters(builder, q, in);
    const graft_build_value out = graft_build_node("DequantizeLinear", q->name, in, 3);
    graft_build_set_int(builder, "axis", 0);
    return out.name;
}

/* Rounds the filter of each output channel; its scale makes the largest element 127. */
static const int8_t *round_filter(graft_builder *builder, const graft_build_filter *filter,
                                  float *scales)
{
    size_t channels = (size_t)filter->dims[0];
    size_t size = 1;
    for (uint32_t i = 1; i < filter->rank; i++) {
        size *= (size_t)filter->dims[i];
    }
    int8_t *bytes = GRAFT_NEW(builder->arena, int8_t, channels * size);
    for (size_t c = 0; c < channels; c++) {
        float largest = 1e-6F;
        for (size_t i = c * size; i < (c + 1) * size; i++) {
            largest = fmaxf(largest, fabsf(filter->weight[i]));
        }
        scales[c] = largest / MOST;
        for (size_t i = c * size; i < (c + 1) * size; i++) {
            bytes[i] = (int8_t)rintf(filter->weight[i] / scales[c]);
        }
    }
    return bytes;
}

void graft_build_quantised_filter(const graft_build_value *x, const graft_build_filter *filter,
                                  const char *inputs[3])
{
    graft_arena *arena = x->builder->arena;
    size_t channels = (size_t)filter->dims[0];
    float *scales = GRAFT_NEW(arena, float, channels);
    const char *stored = graft_build_name(x->builder, "%s_quantized", inputs[1]);
    const int8_t *bytes = round_filter(x->builder, filter, scales);
    const quantisation weight = {inputs[1], scales, GRAFT_NEW(arena, int8_t, channels),
                                 filter->dims[0], GRAFT_DTYPE_I8};
    inputs[1] = add_dequantised(
        x->builder, &weight,
        graft_build_tensor(x->builder, stored, GRAFT_DTYPE_I8, filter->dims, filter->rank, bytes));
    if (filter->bias == NULL) {
        return;
    }
    float *products = GRAFT_NEW(arena, float, channels);
    int32_t *numbers = GRAFT_NEW(arena, int32_t, channels);
    for (size_t c = 0; c < channels; c++) {
        products[c] = (float)x->scale * scales[c];
        numbers[c] = (int32_t)rintf(filter->bias[c] / products[c]);
    }
    stored = graft_build_name(x->builder, "%s_quantized", inputs[2]);
    const quantisation bias = {inputs[2], products, GRAFT_NEW(arena, int32_t, channels),
                               filter->dims[0], GRAFT_DTYPE_I32};
    inputs[2] = add_dequantised(
        x->builder, &bias,
        graft_build_tensor(x->builder, stored, GRAFT_DTYPE_I32, filter->dims, 1, numbers));
}

/* kernels.h - operators in plain C on tensors of binary32, filters of 8 bits: what the keyword
 * spotter runs, and what the device cortex-m4 counts the instructions of (devices/cortex-m4).
 *
 * Images are (channels, height, width), batches are of one. */
#ifndef EXAMPLES_CORTEX_M_KERNELS_H
#define EXAMPLES_CORTEX_M_KERNELS_H

#include "graft/graft.h"

enum { VALUES_MOST = 256, FILTER_MOST = 64 };

/* A tensor. What changes is `data`; a weight is bytes times scale, or floats; and times a number
 * for each of the first axis where there are factors. */
typedef struct tensor {
    float *data;
    const int8_t *bytes;
    const float *floats;
    const float *factors;
    float scale;
} tensor;

/* A graph that is ready to run, in `memory`. */
typedef struct net {
    const graft_graph *graph;
    graft_order order;
    tensor tensors[VALUES_MOST]; /* By value id. */
    unsigned char *memory;
    size_t memory_bytes;
    size_t used_bytes; /* By the order and the weight program... */
    size_t plan_bytes; /* ...and behind them by what lives during an inference. */
} net;

static const graft_shape *shape_of(const net *n, graft_index v)
{
    return &n->graph->values[v].shape;
}

static uint32_t count_of(const net *n, graft_index value)
{
    return (uint32_t)graft_shape_elements(shape_of(n, value));
}

static const tensor *operand(const net *n, graft_index node, uint32_t k)
{
    return &n->tensors[graft_node_input(n->graph, node, k)];
}

/* An element of any tensor; `row` elements belong to one of its first axis. */
static float element(const tensor *t, uint32_t i, uint32_t row)
{
    float x = t->bytes != NULL    ? (float)t->bytes[i] * t->scale
              : t->floats != NULL ? t->floats[i]
                                  : t->data[i];
    return t->factors != NULL ? x * t->factors[i / row] : x;
}

/* ----------------------------------------------------------------- kernels */

static float activate(float x, int32_t activation)
{
    x = activation != GRAFT_ACT_NONE && x < 0.0f ? 0.0f : x;
    return activation == GRAFT_ACT_RELU6 && x > 6.0f ? 6.0f : x;
}

/* Adds to the outputs (y, 0...) of one channel what one input channel gives. */
static void convolve_row(const graft_shape *in, const graft_shape *w, const int32_t *a,
                         const float *plane, const float *filter, int32_t y, float *out, int32_t n)
{
    for (int32_t i = 0; i < w->dims[2]; i++) {
        const int32_t from = y * a[0] + i * a[6] - a[2];
        for (int32_t j = 0; from >= 0 && from < in->dims[2] && j < w->dims[3]; j++) {
            const float weight = filter[i * w->dims[3] + j];
            const int32_t first = j * a[7] - a[3];
            const float *row = plane + from * in->dims[3] + first;
            int32_t x = first < 0 ? (-first + a[1] - 1) / a[1] : 0;
            for (; x < n && first + x * a[1] < in->dims[3]; x++) {
                out[x] += row[x * a[1]] * weight;
            }
        }
    }
}

static void run_convolution(const net *n, graft_index node, const graft_node *g, float *out)
{
    graft_shape in = *shape_of(n, graft_node_input(n->graph, node, 0));
    graft_shape to = *shape_of(n, graft_node_output(n->graph, node, 0));
    const graft_shape *w = shape_of(n, graft_node_input(n->graph, node, 1));
    const tensor *weights = operand(n, node, 1);
    const int32_t *a = g->attrs;
    const int32_t own = w->dims[2] * w->dims[3];
    float filter[FILTER_MOST];
    if (own == 1 && a[0] * a[1] == 1 && a[2] + a[3] + a[4] + a[5] == 0) {
        to.dims[3] = in.dims[3] = in.dims[2] * in.dims[3]; /* An image is one long row. */
        to.dims[2] = in.dims[2] = 1;
    }
    for (int32_t o = 0; o < to.dims[1]; o++) {
        const float bias =
            g->op != GRAFT_OP_conv ? element(operand(n, node, 2), (uint32_t)o, 1) : 0;
        for (int32_t i = 0; i < to.dims[2] * to.dims[3]; i++) {
            out[i] = bias;
        }
        for (int32_t c = 0; c < w->dims[1]; c++) {
            const int32_t plane = o / (w->dims[0] / a[8]) * w->dims[1] + c; /* Of the group. */
            for (int32_t k = 0; k < own; k++) {
                filter[k] = element(weights, (uint32_t)((o * w->dims[1] + c) * own + k),
                                    (uint32_t)(w->dims[1] * own));
            }
            for (int32_t y = 0; y < to.dims[2]; y++) {
                convolve_row(&in, w, a, operand(n, node, 0)->data + plane * in.dims[2] * in.dims[3],
                             filter, y, out + y * to.dims[3], to.dims[3]);
            }
        }
        if (g->op == GRAFT_OP_conv_bias_add) {
            const float *residual = operand(n, node, 3)->data + o * to.dims[2] * to.dims[3];
            for (int32_t i = 0; i < to.dims[2] * to.dims[3]; i++) {
                out[i] += residual[i];
            }
        }
        for (int32_t i = 0; g->op != GRAFT_OP_conv && i < to.dims[2] * to.dims[3]; i++) {
            out[i] = activate(out[i], a[GRAFT_ATTR_conv_bias_activation]);
        }
        out += to.dims[2] * to.dims[3];
    }
}

/* Rows times a matrix. */
static void run_product(const net *n, graft_index node, const graft_node *g, float *out)
{
    const graft_shape *w = shape_of(n, graft_node_input(n->graph, node, 1));
    const float *data = operand(n, node, 0)->data;
    const uint32_t depth = (uint32_t)w->dims[0];
    const uint32_t columns = (uint32_t)w->dims[1];
    const uint32_t count = count_of(n, graft_node_output(n->graph, node, 0));
    for (uint32_t r = 0; r < count / columns; r++, data += depth, out += columns) {
        for (uint32_t o = 0; o < columns; o++) {
            float sum = g->op == GRAFT_OP_matmul_bias ? element(operand(n, node, 2), o, 1) : 0.0f;
            for (uint32_t i = 0; i < depth; i++) {
                sum += data[i] * element(operand(n, node, 1), i * columns + o, columns);
            }
            out[o] = g->op == GRAFT_OP_matmul_bias ? activate(sum, g->attrs[0]) : sum;
        }
    }
}

/* Which element of an operand belongs to element i of the result, by numpy's rules. */
static uint32_t broadcast(const graft_shape *from, const graft_shape *to, uint32_t i)
{
    uint32_t at = 0;
    uint32_t step = 1;
    for (uint32_t k = 1; k <= to->rank; k++) {
        const uint32_t size = (uint32_t)to->dims[to->rank - k];
        if (k <= from->rank) {
            const uint32_t own = (uint32_t)from->dims[from->rank - k];
            at += own > 1 ? i % size * step : 0;
            step *= own;
        }
        i /= size;
    }
    return at;
}

static float combine(uint32_t op, float a, float b)
{
    switch (op) {
    case GRAFT_OP_add:
        return a + b;
    case GRAFT_OP_sub:
        return a - b;
    case GRAFT_OP_mul:
        return a * b;
    case GRAFT_OP_div:
        return a / b;
    case GRAFT_OP_max:
        return a > b ? a : b;
    default:
        return a < b ? a : b;
    }
}

static void run_binary(const net *n, graft_index node, const graft_node *g, float *out)
{
    const graft_index value = graft_node_output(n->graph, node, 0);
    const graft_shape *shape = shape_of(n, value);
    const graft_shape *from[2];
    const uint32_t count = count_of(n, value);
    bool alike = true;
    for (uint32_t k = 0; k < 2; k++) {
        from[k] = shape_of(n, graft_node_input(n->graph, node, k));
        alike = alike && operand(n, node, k)->data != NULL && graft_shape_equal(from[k], shape);
    }
    for (uint32_t i = 0; alike && i < count; i++) {
        out[i] = combine(g->op, operand(n, node, 0)->data[i], operand(n, node, 1)->data[i]);
    }
    for (uint32_t i = 0; !alike && i < count; i++) {
        float x[2];
        for (uint32_t k = 0; k < 2; k++) {
            x[k] = element(operand(n, node, k), broadcast(from[k], shape, i), count);
        }
        out[i] = combine(g->op, x[0], x[1]);
    }
}

/* The mean, sum or largest element of each run. */
static void run_reduction(const net *n, graft_index node, const graft_node *g, float *out)
{
    const graft_index value = graft_node_output(n->graph, node, 0);
    const float *data = operand(n, node, 0)->data;
    const uint32_t size = count_of(n, graft_node_input(n->graph, node, 0)) / count_of(n, value);
    for (uint32_t c = 0; c < count_of(n, value); c++, out++) {
        *out = *data++;
        for (uint32_t i = 1; i < size; i++, data++) {
            *out = g->op == GRAFT_OP_reduce_max ? combine(GRAFT_OP_max, *out, *data) : *out + *data;
        }
        *out /= g->op == GRAFT_OP_reduce_max || g->op == GRAFT_OP_reduce_sum ? 1.0f : (float)size;
    }
}

/* One window of a plane. */
static float pool_window(const graft_node *g, const graft_shape *in, const float *plane, int32_t y,
                         int32_t x)
{
    const int32_t *a = g->attrs;
    const bool largest = g->op == GRAFT_OP_max_pool;
    float best = 0.0f;
    int32_t seen = 0;
    for (int32_t i = 0; i < a[0]; i++) {
        const int32_t row = y * a[2] - a[4] + i * (largest ? a[8] : 1);
        for (int32_t j = 0; row >= 0 && row < in->dims[2] && j < a[1]; j++) {
            const int32_t column = x * a[3] - a[5] + j * (largest ? a[9] : 1);
            if (column >= 0 && column < in->dims[3]) {
                const float value = plane[row * in->dims[3] + column];
                best = seen++ == 0 ? value
                       : largest   ? combine(GRAFT_OP_max, best, value)
                                   : best + value;
            }
        }
    }
    return largest ? best : best / (float)(a[8] == 1 ? a[0] * a[1] : seen);
}

static void run_pool(const net *n, graft_index node, const graft_node *g, float *out)
{
    const graft_shape *in = shape_of(n, graft_node_input(n->graph, node, 0));
    const graft_shape *to = shape_of(n, graft_node_output(n->graph, node, 0));
    const float *plane = operand(n, node, 0)->data;
    for (int32_t c = 0; c < to->dims[0] * to->dims[1]; c++, plane += in->dims[2] * in->dims[3]) {
        for (int32_t y = 0; y < to->dims[2]; y++) {
            for (int32_t x = 0; x < to->dims[3]; x++) {
                *out++ = pool_window(g, in, plane, y, x);
            }
        }
    }
}

/* 2^f for 0 <= f < 1 by a polynomial, then the whole part by squaring. */
static float exponential(float x)
{
    const float t = x * 1.44269504f;
    int32_t whole = (int32_t)t - (t < 0.0f ? 1 : 0);
    const float f = t - (float)whole;
    float y = 1.0f + f * (0.6931472f + f * (0.2402265f + f * (0.0555041f + f * 0.0096181f)));
    for (; whole < 0 && y > 0.0f; whole++) {
        y *= 0.5f;
    }
    return y;
}

static void run_softmax(const net *n, graft_index node, float *out)
{
    const float *data = operand(n, node, 0)->data;
    const uint32_t count = count_of(n, graft_node_output(n->graph, node, 0));
    float most = data[0];
    float sum = 0.0f;
    for (uint32_t i = 1; i < count; i++) {
        most = data[i] > most ? data[i] : most;
    }
    for (uint32_t i = 0; i < count; i++) {
        out[i] = exponential(data[i] - most);
        sum += out[i];
    }
    for (uint32_t i = 0; i < count; i++) {
        out[i] /= sum;
    }
}

static float function_of(const graft_node *g, float x)
{
    union {
        int32_t bits;
        float number;
    } first = {g->attrs[0]}, second = {g->attrs[1]};
    switch (g->op) {
    case GRAFT_OP_relu:
        return activate(x, GRAFT_ACT_RELU);
    case GRAFT_OP_clip:
        x = combine(GRAFT_OP_max, x, first.number);
        return combine(GRAFT_OP_min, x, second.number);
    case GRAFT_OP_leaky_relu:
        return x < 0.0f ? x * first.number : x;
    case GRAFT_OP_sigmoid:
        return 1.0f / (1.0f + exponential(-x));
    case GRAFT_OP_tanh:
        return 2.0f / (1.0f + exponential(-2.0f * x)) - 1.0f;
    default:
        return x;
    }
}

static void run_elementwise(const net *n, graft_index node, const graft_node *g, float *out)
{
    const graft_index value = graft_node_output(n->graph, node, 0);
    const uint32_t count = count_of(n, value);
    const float *data = operand(n, node, 0)->data;
    const bool scales = g->op == GRAFT_OP_scale_shift;
    const uint32_t pixels = scales ? count / (uint32_t)shape_of(n, value)->dims[1] : 1;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t c = i / pixels;
        out[i] = scales ? data[i] * element(operand(n, node, 1), c, 1) +
                              element(operand(n, node, 2), c, 1)
                        : function_of(g, data[i]);
    }
}

/* Copies the first `length` elements of each of `runs` runs. */
static void copy_runs(const float *from, uint32_t from_step, float *to, uint32_t to_step,
                      uint32_t length, uint32_t runs)
{
    for (uint32_t r = 0; r < runs; r++, from += from_step, to += to_step) {
        for (uint32_t i = 0; i < length; i++) {
            to[i] = from[i];
        }
    }
}

/* Elements in one step along the axis that is the first attribute, and in all of a tensor's. */
static uint32_t step_of(const graft_shape *shape, const graft_node *g, bool whole)
{
    uint32_t step = 1;
    for (uint32_t k = (uint32_t)g->attrs[0] + (whole ? 0u : 1u); k < shape->rank; k++) {
        step *= (uint32_t)shape->dims[k];
    }
    return step;
}

/* Joins, cuts and widens along an axis: runs of one tensor go into those of another. */
static void run_cut(const net *n, graft_index node, const graft_node *g, float *out)
{
    const graft_shape *in = shape_of(n, graft_node_input(n->graph, node, 0));
    const graft_shape *to = shape_of(n, graft_node_output(n->graph, node, 0));
    const float *data = operand(n, node, 0)->data;
    const uint32_t step = step_of(in, g, false);
    const uint32_t long_in = step_of(in, g, true);
    const uint32_t long_out = step_of(to, g, true);
    const uint32_t runs = count_of(n, graft_node_input(n->graph, node, 0)) / long_in;
    if (g->op == GRAFT_OP_slice) {
        copy_runs(data + (uint32_t)g->attrs[1] * step, long_in, out, long_out, long_out, runs);
    } else if (g->op == GRAFT_OP_split) {
        float *rest = n->tensors[graft_node_output(n->graph, node, 1)].data;
        copy_runs(data, long_in, out, long_out, long_out, runs);
        copy_runs(data + long_out, long_in, rest, long_in - long_out, long_in - long_out, runs);
    } else if (g->op == GRAFT_OP_concat) {
        const float *second = operand(n, node, 1)->data;
        copy_runs(data, long_in, out, long_out, long_in, runs);
        copy_runs(second, long_out - long_in, out + long_in, long_out, long_out - long_in, runs);
    } else {
        const graft_node fill = {
            .op = GRAFT_OP_clip, .attrs = {g->attrs[3], g->attrs[3]}
        };
        const float value = function_of(&fill, 0.0f);
        for (uint32_t i = 0; i < runs * long_out; i++) {
            out[i] = value;
        }
        copy_runs(data, long_in, out + (uint32_t)g->attrs[1] * step, long_out, long_in, runs);
    }
}

static void run_transpose(const net *n, graft_index node, const graft_node *g, float *out)
{
    const graft_shape *in = shape_of(n, graft_node_input(n->graph, node, 0));
    const graft_index value = graft_node_output(n->graph, node, 0);
    const graft_shape *to = shape_of(n, value);
    uint32_t steps[GRAFT_MAX_RANK];
    for (uint32_t k = 0; k < to->rank; k++) {
        steps[k] = 1;
        for (uint32_t after = (uint32_t)g->attrs[k] + 1; after < in->rank; after++) {
            steps[k] *= (uint32_t)in->dims[after];
        }
    }
    for (uint32_t i = 0; i < count_of(n, value); i++) {
        uint32_t at = 0;
        uint32_t rest = i;
        for (uint32_t k = to->rank; k-- > 0;) {
            at += rest % (uint32_t)to->dims[k] * steps[k];
            rest /= (uint32_t)to->dims[k];
        }
        out[i] = operand(n, node, 0)->data[at];
    }
}

typedef enum kernel {
    KERNEL_NONE,
    KERNEL_CONVOLUTION,
    KERNEL_PRODUCT,
    KERNEL_BINARY,
    KERNEL_REDUCTION,
    KERNEL_POOL,
    KERNEL_SOFTMAX,
    KERNEL_ELEMENTWISE,
    KERNEL_CUT,
    KERNEL_TRANSPOSE
} kernel;

static const uint8_t kernels[GRAFT_OP_COUNT] = {
    [GRAFT_OP_conv] = KERNEL_CONVOLUTION,
    [GRAFT_OP_conv_bias] = KERNEL_CONVOLUTION,
    [GRAFT_OP_conv_bias_add] = KERNEL_CONVOLUTION,
    [GRAFT_OP_matmul] = KERNEL_PRODUCT,
    [GRAFT_OP_matmul_bias] = KERNEL_PRODUCT,
    [GRAFT_OP_add] = KERNEL_BINARY,
    [GRAFT_OP_sub] = KERNEL_BINARY,
    [GRAFT_OP_mul] = KERNEL_BINARY,
    [GRAFT_OP_div] = KERNEL_BINARY,
    [GRAFT_OP_max] = KERNEL_BINARY,
    [GRAFT_OP_min] = KERNEL_BINARY,
    [GRAFT_OP_global_avg_pool] = KERNEL_REDUCTION,
    [GRAFT_OP_reduce_mean] = KERNEL_REDUCTION,
    [GRAFT_OP_reduce_sum] = KERNEL_REDUCTION,
    [GRAFT_OP_reduce_max] = KERNEL_REDUCTION,
    [GRAFT_OP_avg_pool] = KERNEL_POOL,
    [GRAFT_OP_max_pool] = KERNEL_POOL,
    [GRAFT_OP_softmax] = KERNEL_SOFTMAX,
    [GRAFT_OP_relu] = KERNEL_ELEMENTWISE,
    [GRAFT_OP_clip] = KERNEL_ELEMENTWISE,
    [GRAFT_OP_leaky_relu] = KERNEL_ELEMENTWISE,
    [GRAFT_OP_sigmoid] = KERNEL_ELEMENTWISE,
    [GRAFT_OP_tanh] = KERNEL_ELEMENTWISE,
    [GRAFT_OP_scale_shift] = KERNEL_ELEMENTWISE,
    [GRAFT_OP_identity] = KERNEL_ELEMENTWISE,
    [GRAFT_OP_reshape] = KERNEL_ELEMENTWISE,
    [GRAFT_OP_concat] = KERNEL_CUT,
    [GRAFT_OP_split] = KERNEL_CUT,
    [GRAFT_OP_slice] = KERNEL_CUT,
    [GRAFT_OP_pad] = KERNEL_CUT,
    [GRAFT_OP_transpose] = KERNEL_TRANSPOSE,
};

/* The kernel of a node whose operands it takes: a batch of one, no large filters, products by a
 * matrix, reductions of the last axes. */
static kernel kernel_of(const net *n, graft_index node)
{
    const graft_node *g = &n->graph->nodes[node];
    const kernel found = g->op < GRAFT_OP_COUNT ? (kernel)kernels[g->op] : KERNEL_NONE;
    const uint32_t second = g->input_count > 1 ? 1 : 0;
    const graft_shape *in = shape_of(n, graft_node_input(n->graph, node, 0));
    const graft_shape *w = shape_of(n, graft_node_input(n->graph, node, second));
    const graft_shape *out = shape_of(n, graft_node_output(n->graph, node, 0));
    const uint32_t axes = (uint32_t)g->attrs[0];
    const int32_t *last = g->attrs + GRAFT_ATTR_conv_bias_activation;
    bool runs = true;
    if (found == KERNEL_CONVOLUTION) {
        runs =
            in->dims[0] == 1 && w->dims[2] * w->dims[3] <= FILTER_MOST && *last <= GRAFT_ACT_RELU6;
    } else if (found == KERNEL_PRODUCT) {
        runs = w->rank == 2 && g->attrs[0] <= GRAFT_ACT_RELU6;
    } else if (found == KERNEL_SOFTMAX) {
        runs = count_of(n, graft_node_output(n->graph, node, 0)) == (uint32_t)out->dims[axes];
    } else if (found == KERNEL_REDUCTION && g->op != GRAFT_OP_global_avg_pool) {
        runs = (axes + (axes & (0u - axes))) == 1u << in->rank;
    } else if (found == KERNEL_POOL && g->op == GRAFT_OP_avg_pool &&
               out->dims[2] * out->dims[3] == 1 && g->attrs[0] == in->dims[2] &&
               g->attrs[1] == in->dims[3]) {
        return KERNEL_REDUCTION; /* The window is the plane. */
    }
    return runs ? found : KERNEL_NONE;
}

static void run_node(const net *n, graft_index node)
{
    const graft_node *g = &n->graph->nodes[node];
    float *out = n->tensors[graft_node_output(n->graph, node, 0)].data;
    switch (kernel_of(n, node)) {
    case KERNEL_CONVOLUTION:
        run_convolution(n, node, g, out);
        break;
    case KERNEL_PRODUCT:
        run_product(n, node, g, out);
        break;
    case KERNEL_BINARY:
        run_binary(n, node, g, out);
        break;
    case KERNEL_REDUCTION:
        run_reduction(n, node, g, out);
        break;
    case KERNEL_POOL:
        run_pool(n, node, g, out);
        break;
    case KERNEL_SOFTMAX:
        run_softmax(n, node, out);
        break;
    case KERNEL_ELEMENTWISE:
        run_elementwise(n, node, g, out);
        break;
    case KERNEL_CUT:
        run_cut(n, node, g, out);
        break;
    case KERNEL_TRANSPOSE:
        run_transpose(n, node, g, out);
        break;
    case KERNEL_NONE:
        break;
    }
}

#endif

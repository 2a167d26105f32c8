/* The bodies against their definitions: each output element computed on its own, straight from the
 * formula in operators.def, with subscripts instead of loops over rows, views and ranges. */
#include "graph/base/bits.h"
#include "tests/support/cases.h"
#include "tests/support/check.h"

#include <math.h>

typedef struct {
    check_case drawn;
    float in[GRAFT_MAX_INPUTS][CHECK_CASE_ELEMENTS];
    float out[GRAFT_MAX_OUTPUTS][CHECK_CASE_ELEMENTS];
} workspace;

/* Subscripts of an element, e.g. {n, c, y, x}. */
typedef struct {
    int64_t at[GRAFT_MAX_RANK];
} place;

static place place_of(const graft_shape *shape, size_t index)
{
    place p = {{0}};
    for (uint32_t i = shape->rank; i-- > 0;) {
        p.at[i] = (int64_t)(index % (size_t)shape->dims[i]);
        index /= (size_t)shape->dims[i];
    }
    return p;
}

/* Element p of input i, or `outside` where there is none. */
static double element_or(const workspace *w, uint32_t i, place p, double outside)
{
    const graft_shape *shape = &w->drawn.in[i];
    size_t index = 0;
    for (uint32_t axis = 0; axis < shape->rank; axis++) {
        if (p.at[axis] < 0 || p.at[axis] >= shape->dims[axis]) {
            return outside;
        }
        index = index * (size_t)shape->dims[axis] + (size_t)p.at[axis];
    }
    return (double)w->in[i][index];
}

static double element(const workspace *w, uint32_t i, place p)
{
    return element_or(w, i, p, (double)NAN);
}

/* The element of input i that broadcasts to place p of a tensor of rank `rank`. */
static double element_broadcast(const workspace *w, uint32_t i, uint32_t rank, place p)
{
    const graft_shape *shape = &w->drawn.in[i];
    place q = {{0}};
    for (uint32_t axis = 0; axis < shape->rank; axis++) {
        q.at[axis] = shape->dims[axis] == 1 ? 0 : p.at[axis + rank - shape->rank];
    }
    return element(w, i, q);
}

static int32_t attr(const workspace *w, uint32_t index) { return w->drawn.attrs[index]; }

static double attr_float(const workspace *w, uint32_t index)
{
    return (double)graft_float_of_bits(w->drawn.attrs[index]);
}

/* ------------------------------------------------------------- definitions */

/* What element p of output `slot` is. */
typedef double (*definition)(const workspace *w, uint32_t slot, place p);

#define DEFINE(name)                                                                               \
    static double define_##name(const workspace *w, __attribute__((unused)) uint32_t slot,         \
                                __attribute__((unused)) place p)

DEFINE(identity) { return element(w, 0, p); }

/* Sum over c, i, j of x(n, g C/G + c, y sh + i dh - pt, x sw + j dw - pl) w(o, c, i, j). */
DEFINE(conv)
{
    const int32_t *filter = w->drawn.in[1].dims;
    int64_t group = p.at[1] / (filter[0] / attr(w, GRAFT_ATTR_conv_groups));
    double total = 0.0;
    for (int64_t c = 0; c < filter[1]; c++) {
        for (int64_t i = 0; i < filter[2]; i++) {
            for (int64_t j = 0; j < filter[3]; j++) {
                place x = {
                    {p.at[0], group * filter[1] + c,
                     p.at[2] * attr(w, GRAFT_ATTR_conv_stride_h) +
                         i * attr(w, GRAFT_ATTR_conv_dilation_h) - attr(w, GRAFT_ATTR_conv_pad_top),
                     p.at[3] * attr(w, GRAFT_ATTR_conv_stride_w) +
                         j * attr(w, GRAFT_ATTR_conv_dilation_w) -
                         attr(w, GRAFT_ATTR_conv_pad_left)}
                };
                place f = {
                    {p.at[1], c, i, j}
                };
                total += element_or(w, 0, x, 0.0) * element(w, 1, f);
            }
        }
    }
    return total;
}

static double define_sigmoid_of(double x) { return 1.0 / (1.0 + exp(-x)); }

static double activated(int32_t activation, double x)
{
    switch (activation) {
    case GRAFT_ACT_RELU:
        return x > 0.0 ? x : 0.0;
    case GRAFT_ACT_RELU6:
        return x > 6.0 ? 6.0 : x > 0.0 ? x : 0.0;
    case GRAFT_ACT_SIGMOID:
        return define_sigmoid_of(x);
    case GRAFT_ACT_TANH:
        return tanh(x);
    default:
        return x;
    }
}

DEFINE(conv_bias)
{
    double x = define_conv(w, slot, p) + (double)w->in[2][p.at[1]];
    return activated(attr(w, GRAFT_ATTR_conv_bias_activation), x);
}

DEFINE(conv_bias_add)
{
    double x = define_conv(w, slot, p) + (double)w->in[2][p.at[1]] + element(w, 3, p);
    return activated(attr(w, GRAFT_ATTR_conv_bias_add_activation), x);
}

DEFINE(matmul)
{
    uint32_t rank = w->drawn.out[0].rank;
    int32_t inner = w->drawn.in[0].dims[w->drawn.in[0].rank - 1];
    double total = 0.0;
    for (int64_t t = 0; t < inner; t++) {
        place a = p;
        place b = p;
        a.at[rank - 1] = t;
        b.at[rank - 2] = t;
        total += element_broadcast(w, 0, rank, a) * element_broadcast(w, 1, rank, b);
    }
    return total;
}

DEFINE(matmul_bias)
{
    double x = define_matmul(w, slot, p) + (double)w->in[2][p.at[w->drawn.out[0].rank - 1]];
    return activated(attr(w, GRAFT_ATTR_matmul_bias_activation), x);
}

DEFINE(scale_shift)
{
    return element(w, 0, p) * (double)w->in[1][p.at[1]] + (double)w->in[2][p.at[1]];
}

DEFINE(clip)
{
    double low = attr_float(w, GRAFT_ATTR_clip_low);
    double high = attr_float(w, GRAFT_ATTR_clip_high);
    double x = element(w, 0, p);
    return x < low ? low : x > high ? high : x;
}

DEFINE(quantise)
{
    double least = attr(w, GRAFT_ATTR_quantise_least);
    double q = nearbyint(element(w, 0, p) / attr_float(w, GRAFT_ATTR_quantise_scale)) +
               attr(w, GRAFT_ATTR_quantise_zero);
    return q < least ? least : q > least + 255 ? least + 255 : q;
}

DEFINE(dequantise)
{
    return (element(w, 0, p) - attr(w, GRAFT_ATTR_dequantise_zero)) *
           attr_float(w, GRAFT_ATTR_dequantise_scale);
}

#define DEFINE_UNARY(name, formula)                                                                \
    DEFINE(name)                                                                                   \
    {                                                                                              \
        double x = element(w, 0, p);                                                               \
        return formula;                                                                            \
    }
#define DEFINE_BINARY(name, formula)                                                               \
    DEFINE(name)                                                                                   \
    {                                                                                              \
        double a = element_broadcast(w, 0, w->drawn.out[0].rank, p);                               \
        double b = element_broadcast(w, 1, w->drawn.out[0].rank, p);                               \
        return formula;                                                                            \
    }
DEFINE_UNARY(relu, x > 0.0 ? x : 0.0)
DEFINE_UNARY(sigmoid, define_sigmoid_of(x))
DEFINE_UNARY(tanh, tanh(x))
DEFINE_UNARY(exp, exp(x))
DEFINE_UNARY(sqrt, sqrt(x))
DEFINE_UNARY(erf, erf(x))
DEFINE_UNARY(leaky_relu, x > 0.0 ? x : attr_float(w, GRAFT_ATTR_leaky_relu_slope) * x)
DEFINE_UNARY(gelu, x / 2.0 * (1.0 + erf(x / sqrt(2.0))))
DEFINE_UNARY(abs, fabs(x))
DEFINE_UNARY(hard_sigmoid, fmin(fmax(attr_float(w, 0) * x + attr_float(w, 1), 0.0), 1.0))
DEFINE_UNARY(hard_swish, x *fmin(fmax(x / 6.0 + 0.5, 0.0), 1.0))
DEFINE_UNARY(swish, x / (1.0 + exp(-attr_float(w, 0) * x)))
DEFINE_UNARY(elu, x > 0.0 ? x : attr_float(w, 0) * expm1(x))
DEFINE_UNARY(selu, attr_float(w, 1) * (x > 0.0 ? x : attr_float(w, 0) * expm1(x)))
DEFINE_UNARY(softsign, x / (1.0 + fabs(x)))
DEFINE_UNARY(gelu_tanh, x / 2.0 * (1.0 + tanh(sqrt(2.0 / acos(-1.0)) * (x + 0.044715 * x * x * x))))
DEFINE_UNARY(softplus, log1p(exp(x)))
DEFINE_UNARY(log, log(x))
DEFINE_UNARY(sin, sin(x))
DEFINE_UNARY(cos, cos(x))
DEFINE_UNARY(cosh, cosh(x))
DEFINE_UNARY(mish, x *tanh(log1p(exp(x))))
DEFINE_BINARY(add, a + b)
DEFINE_BINARY(sub, a - b)
DEFINE_BINARY(mul, a *b)
DEFINE_BINARY(div, a / b)
DEFINE_BINARY(max, a > b ? a : b)
DEFINE_BINARY(min, a < b ? a : b)
DEFINE_BINARY(less, a < b ? 1.0 : 0.0)
DEFINE_BINARY(equal_to, a == b ? 1.0 : 0.0)
DEFINE_BINARY(remainder, fmod(a, b))
DEFINE_UNARY(logical_not, 1.0 - x)

DEFINE(concat)
{
    int32_t axis = attr(w, GRAFT_ATTR_concat_axis);
    place q = p;
    q.at[axis] -= w->drawn.in[0].dims[axis];
    return q.at[axis] < 0 ? element(w, 0, p) : element(w, 1, q);
}

DEFINE(split)
{
    p.at[attr(w, GRAFT_ATTR_split_axis)] += slot == 0 ? 0 : attr(w, GRAFT_ATTR_split_at);
    return element(w, 0, p);
}

DEFINE(slice)
{
    p.at[attr(w, GRAFT_ATTR_slice_axis)] += attr(w, GRAFT_ATTR_slice_start);
    return element(w, 0, p);
}

DEFINE(pad)
{
    p.at[attr(w, GRAFT_ATTR_pad_axis)] -= attr(w, GRAFT_ATTR_pad_before);
    return element_or(w, 0, p, attr_float(w, GRAFT_ATTR_pad_value));
}

DEFINE(transpose)
{
    place q = {{0}};
    for (uint32_t i = 0; i < w->drawn.out[0].rank; i++) {
        q.at[attr(w, GRAFT_ATTR_transpose_axis_0 + i)] = p.at[i];
    }
    return element(w, 0, q);
}

DEFINE(reshape)
{
    size_t index = 0;
    for (uint32_t i = 0; i < w->drawn.out[0].rank; i++) {
        index = index * (size_t)w->drawn.out[0].dims[i] + (size_t)p.at[i];
    }
    return (double)w->in[0][index];
}

/* Tap (i, j) of the window at p; `outside` in the padding. */
static double tap(const workspace *w, place p, int64_t i, int64_t j, const int32_t dilation[2],
                  double outside)
{
    p.at[2] = p.at[2] * attr(w, GRAFT_ATTR_max_pool_stride_h) + i * dilation[0] -
              attr(w, GRAFT_ATTR_max_pool_pad_top);
    p.at[3] = p.at[3] * attr(w, GRAFT_ATTR_max_pool_stride_w) + j * dilation[1] -
              attr(w, GRAFT_ATTR_max_pool_pad_left);
    return element_or(w, 0, p, outside);
}

DEFINE(max_pool)
{
    const int32_t dilation[2] = {attr(w, GRAFT_ATTR_max_pool_dilation_h),
                                 attr(w, GRAFT_ATTR_max_pool_dilation_w)};
    double largest = -(double)INFINITY;
    for (int64_t i = 0; i < attr(w, GRAFT_ATTR_max_pool_kernel_h); i++) {
        for (int64_t j = 0; j < attr(w, GRAFT_ATTR_max_pool_kernel_w); j++) {
            largest = fmax(largest, tap(w, p, i, j, dilation, -(double)INFINITY));
        }
    }
    return largest;
}

DEFINE(avg_pool)
{
    const int32_t dilation[2] = {1, 1};
    double total = 0.0;
    double count = 0.0;
    for (int64_t i = 0; i < attr(w, GRAFT_ATTR_avg_pool_kernel_h); i++) {
        for (int64_t j = 0; j < attr(w, GRAFT_ATTR_avg_pool_kernel_w); j++) {
            double x = tap(w, p, i, j, dilation, (double)NAN);
            total += isnan(x) ? 0.0 : x;
            count += isnan(x) && attr(w, GRAFT_ATTR_avg_pool_count_pad) == 0 ? 0.0 : 1.0;
        }
    }
    return total / count;
}

/* Sum, number and largest of the input elements whose subscripts outside `axes` are those of p,
 * which has all axes. */
typedef struct {
    double sum;
    double count;
    double largest;
    double smallest;
} reduction;

static reduction reduce_over(const workspace *w, uint32_t axes, place p)
{
    reduction r = {.largest = -(double)INFINITY, .smallest = (double)INFINITY};
    for (size_t i = 0; i < graft_count(&w->drawn.in[0]); i++) {
        place q = place_of(&w->drawn.in[0], i);
        bool belongs = true;
        for (uint32_t axis = 0; axis < w->drawn.in[0].rank; axis++) {
            belongs = belongs && ((axes & (1u << axis)) != 0 || q.at[axis] == p.at[axis]);
        }
        if (belongs) {
            r.sum += (double)w->in[0][i];
            r.count += 1.0;
            r.largest = fmax(r.largest, (double)w->in[0][i]);
            r.smallest = fmin(r.smallest, (double)w->in[0][i]);
        }
    }
    return r;
}

DEFINE(global_avg_pool)
{
    reduction r = reduce_over(w, 12, p);
    return r.sum / r.count;
}

/* All reductions have the same attributes. */
static reduction reduce_for(const workspace *w, place p)
{
    uint32_t axes = (uint32_t)attr(w, GRAFT_ATTR_reduce_mean_axes);
    place q = {{0}};
    uint32_t next = 0;
    for (uint32_t axis = 0; axis < w->drawn.in[0].rank; axis++) {
        if (attr(w, GRAFT_ATTR_reduce_mean_keep) == 1 || (axes & (1u << axis)) == 0) {
            q.at[axis] = p.at[next++];
        }
    }
    return reduce_over(w, axes, q);
}

DEFINE(reduce_mean)
{
    reduction r = reduce_for(w, p);
    return r.sum / r.count;
}

DEFINE(reduce_sum) { return reduce_for(w, p).sum; }
DEFINE(reduce_max) { return reduce_for(w, p).largest; }
DEFINE(reduce_min) { return reduce_for(w, p).smallest; }

/* x without the mean of row `first`..., divided by the row's deviation: axes from `axis` on. */
static double normalised(const workspace *w, place p, uint32_t axis, bool centre)
{
    double sums[3] = {0.0, 0.0, 0.0}; /* Elements, x, squares. */
    for (uint32_t pass = 0; pass < 2; pass++) {
        sums[0] = 0.0;
        for (size_t i = 0; i < graft_count(&w->drawn.in[0]); i++) {
            place q = place_of(&w->drawn.in[0], i);
            bool own = true;
            for (uint32_t k = 0; k < axis; k++) {
                own = own && q.at[k] == p.at[k];
            }
            const double x = own ? element(w, 0, q) : 0.0;
            sums[0] += own ? 1.0 : 0.0;
            sums[1] += pass == 0 && centre ? x : 0.0;
            sums[2] += pass == 1 && own ? pow(x - sums[1], 2.0) : 0.0;
        }
        sums[1] /= pass == 0 ? sums[0] : 1.0;
    }
    return (element(w, 0, p) - sums[1]) /
           sqrt(sums[2] / sums[0] + attr_float(w, GRAFT_ATTR_layer_norm_epsilon));
}

DEFINE(layer_norm)
{
    uint32_t last = w->drawn.in[0].rank - 1U;
    return normalised(w, p, last, true) * (double)w->in[1][p.at[last]] +
           (double)w->in[2][p.at[last]];
}

DEFINE(rms_norm)
{
    uint32_t last = w->drawn.in[0].rank - 1U;
    return normalised(w, p, last, false) * (double)w->in[1][p.at[last]];
}

DEFINE(instance_norm)
{
    return normalised(w, p, 2, true) * (double)w->in[1][p.at[1]] + (double)w->in[2][p.at[1]];
}

DEFINE(cumsum)
{
    int32_t axis = attr(w, GRAFT_ATTR_cumsum_axis);
    int64_t end = p.at[axis] + 1 - attr(w, GRAFT_ATTR_cumsum_exclusive);
    double total = 0.0;
    for (p.at[axis] = 0; p.at[axis] < end; p.at[axis]++) {
        total += element(w, 0, p);
    }
    return total;
}

DEFINE(repeat)
{
    p.at[attr(w, GRAFT_ATTR_repeat_axis)] /= attr(w, GRAFT_ATTR_repeat_times);
    return element(w, 0, p);
}

DEFINE(pick)
{
    int32_t axis = attr(w, GRAFT_ATTR_pick_axis);
    p.at[axis] = p.at[axis] * attr(w, GRAFT_ATTR_pick_step) + attr(w, GRAFT_ATTR_pick_start);
    return element(w, 0, p);
}

DEFINE(select)
{
    const uint32_t rank = w->drawn.out[0].rank;
    return element_broadcast(w, element_broadcast(w, 0, rank, p) != 0.0 ? 1 : 2, rank, p);
}

DEFINE(reverse)
{
    int32_t axis = attr(w, GRAFT_ATTR_reverse_axis);
    p.at[axis] = w->drawn.in[0].dims[axis] - 1 - p.at[axis];
    return element(w, 0, p);
}

/* Every element of the input, with that of the filter that brings it here. */
DEFINE(conv_transpose)
{
    const int32_t *in = w->drawn.in[0].dims;
    double total = 0.0;
    for (int64_t i = 0; i < (int64_t)in[1] * in[2] * in[3]; i++) {
        place x = {
            {p.at[0], i / in[3] / in[2], i / in[3] % in[2], i % in[3]}
        };
        place f = {
            {x.at[1], p.at[1],
             p.at[2] + attr(w, GRAFT_ATTR_conv_transpose_pad_top) -
                 x.at[2] * attr(w, GRAFT_ATTR_conv_transpose_stride_h),
             p.at[3] + attr(w, GRAFT_ATTR_conv_transpose_pad_left) -
                 x.at[3] * attr(w, GRAFT_ATTR_conv_transpose_stride_w)}
        };
        total += element(w, 0, x) * element_or(w, 1, f, 0.0);
    }
    return total;
}

DEFINE(softmax)
{
    int32_t axis = attr(w, GRAFT_ATTR_softmax_axis);
    double total = 0.0;
    place q = p;
    for (q.at[axis] = 0; q.at[axis] < w->drawn.in[0].dims[axis]; q.at[axis]++) {
        total += exp(element(w, 0, q));
    }
    return exp(element(w, 0, p)) / total;
}

DEFINE(log_softmax) { return log(define_softmax(w, slot, p)); }

DEFINE(fill) { return attr_float(w, GRAFT_ATTR_fill_value); }

static const definition definitions[GRAFT_OP_COUNT] = {
#define OP(id, name, inputs, outputs, attributes, flags, onnx) [GRAFT_OP_##name] = define_##name,
#include "graft/operators.def"
};

/* ------------------------------------------------------------------- tests */

/* Multiples of 1/8 in -4..4, never 0; sums and products of a few are exact. */
static void draw_inputs(graft_rng *rng, workspace *w)
{
    for (uint32_t i = 0; i < graft_op(w->drawn.op)->input_count; i++) {
        for (size_t j = 0; j < graft_count(&w->drawn.in[i]); j++) {
            float x = (float)(1 + (int32_t)graft_rng_below(rng, 32)) / 8.0F;
            bool negative = w->drawn.op != GRAFT_OP_sqrt && w->drawn.op != GRAFT_OP_log &&
                            graft_rng_below(rng, 2) == 0;
            w->in[i][j] = negative ? -x : x;
        }
    }
}

/* Small differences of large numbers lose digits: of elements up to 4, a few 1e-7. The sum that a
 * logarithm is of may be just above 1, where binary32 rounds by 1e-7. */
static double absolute_tolerance(uint32_t op)
{
    if (op == GRAFT_OP_log_softmax) {
        return 2e-7;
    }
    return op == GRAFT_OP_layer_norm || op == GRAFT_OP_instance_norm ? 4e-6 : 1e-7;
}

static void check_outputs(const workspace *w)
{
    double slack = absolute_tolerance(w->drawn.op);
    for (uint32_t slot = 0; slot < graft_op(w->drawn.op)->output_count; slot++) {
        for (size_t i = 0; i < graft_count(&w->drawn.out[slot]); i++) {
            place p = place_of(&w->drawn.out[slot], i);
            double want = definitions[w->drawn.op](w, slot, p);
            double got = (double)w->out[slot][i];
            if (!(fabs(want - got) <= 1e-6 * fabs(want) + slack)) {
                check_case_print(&w->drawn);
                fail_msg("output %u, element %zu is %.9g, not %.9g", slot, i, got, want);
            }
        }
    }
}

static void test_definition(void **state)
{
    const uint32_t op = *(const uint32_t *)*state;
    static workspace w;
    graft_rng rng;
    graft_rng_derive(&rng, 41, op);
    for (uint32_t i = 0; i < 300; i++) {
        check_case_draw(&rng, op, &w.drawn);
        draw_inputs(&rng, &w);
        check_case_run_float(&w.drawn, w.in, w.out);
        check_outputs(&w);
    }
}

/* One case per operator, under its name. */
int main(void)
{
    uint32_t ops[GRAFT_OP_COUNT - 1];
    struct CMUnitTest tests[GRAFT_OP_COUNT - 1];
    for (uint32_t i = 0; i < GRAFT_OP_COUNT - 1; i++) {
        ops[i] = i + 1;
        tests[i] =
            (struct CMUnitTest){graft_op(ops[i])->name, test_definition, NULL, NULL, &ops[i]};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* plain.c - plain C implementations: what oneDNN lacks (pieces and copies of tensors, erf), and
 * second candidates for what it has.
 *
 * Everything is a short list of moves: loops over a tensor in whatever layouts its operands have,
 * with one innermost function. The compiler vectorises the contiguous cases. */
#include "cost/cpu/device_cpu.h"
#include "cost/plan/nest.h"
#include "graph/base/approximate.h"
#include "graph/base/bits.h"
#include "graph/base/share.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PLAIN_MOVES = 3 };

/* One loop. Operand 0 is output `out`, operand i > 0 is input `in[i - 1]`; offsets in elements. */
typedef struct {
    graft_nest nest;
    int64_t offsets[GRAFT_NEST_OPERANDS];
    uint32_t out;
    uint32_t in[GRAFT_NEST_OPERANDS - 1];
    graft_nest_plane plane;
    float values[2]; /* What the row function needs beside its operands. */
} plain_move;

typedef struct {
    plain_move moves[PLAIN_MOVES];
    uint32_t move_count;
} plain_state;

typedef struct {
    const graft_kernel *kernel;
    const plain_move *move;
} plain_work;

static void run_part(const void *context, uint32_t part, uint32_t parts)
{
    const plain_work *work = context;
    const plain_move *move = work->move;
    graft_nest nest = move->nest;
    float *pointers[GRAFT_NEST_OPERANDS] = {work->kernel->out[move->out] + move->offsets[0]};
    for (uint32_t i = 1; i < nest.operand_count; i++) {
        const float *in = work->kernel->in[move->in[i - 1]] + move->offsets[i];
        memcpy(&pointers[i], &in, sizeof(in)); /* Rows do not write them. */
    }
    if (parts == 1 || graft_nest_narrow(&nest, part, parts, pointers)) {
        graft_nest_walk(&nest, pointers, move->plane, move->values);
    }
}

static void run_moves(const graft_kernel *kernel)
{
    const plain_state *state = kernel->state;
    for (uint32_t m = 0; m < state->move_count; m++) {
        const plain_work work = {kernel, &state->moves[m]};
        graft_share(kernel->thread_count, run_part, &work);
    }
}

/* -------------------------------------------------------------------- rows */

/* A row function computes `count` elements; steps[i] elements lead from one to the next in operand
 * i. PLANE(f) makes of row_f the plane_f that a nest wants. */
#define PLANE(name)                                                                                \
    static void plane_##name(const void *context, const int64_t counts[2],                         \
                             const int64_t(*steps)[2], float *const *pointers)                     \
    {                                                                                              \
        int64_t along[GRAFT_NEST_OPERANDS];                                                        \
        float *row[GRAFT_NEST_OPERANDS];                                                           \
        for (uint32_t i = 0; i < GRAFT_NEST_OPERANDS; i++) {                                       \
            along[i] = steps[i][1];                                                                \
            row[i] = pointers[i];                                                                  \
        }                                                                                          \
        for (int64_t y = 0; y < counts[0]; y++) {                                                  \
            row_##name(context, counts[1], along, row);                                            \
            for (uint32_t i = 0; i < GRAFT_NEST_OPERANDS; i++) {                                   \
                row[i] += steps[i][0];                                                             \
            }                                                                                      \
        }                                                                                          \
    }

/* A row of out = EXPRESSION over `a`. */
#define UNARY_ROW(name, expression)                                                                \
    static inline void row_##name(const void *context, int64_t count, const int64_t *steps,        \
                                  float *const *pointers)                                          \
    {                                                                                              \
        const float *v = context; /* Two values. */                                                \
        float *restrict out = pointers[0];                                                         \
        const float *restrict in = pointers[1];                                                    \
        (void)v;                                                                                   \
        if (steps[0] == 1 && steps[1] == 1) {                                                      \
            for (int64_t i = 0; i < count; i++) {                                                  \
                float a = in[i];                                                                   \
                out[i] = (expression);                                                             \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < count; i++) {                                                      \
            float a = in[i * steps[1]];                                                            \
            out[i * steps[0]] = (expression);                                                      \
        }                                                                                          \
    }                                                                                              \
    PLANE(name)

/* The same over `a` and `b`. */
#define BINARY_ROW(name, expression)                                                               \
    static inline void row_##name(const void *context, int64_t count, const int64_t *steps,        \
                                  float *const *pointers)                                          \
    {                                                                                              \
        float *restrict out = pointers[0];                                                         \
        const float *left = pointers[1];                                                           \
        const float *right = pointers[2];                                                          \
        bool flat = steps[0] == 1 && steps[1] == 1;                                                \
        (void)context;                                                                             \
        if (flat && steps[2] == 1) {                                                               \
            for (int64_t i = 0; i < count; i++) {                                                  \
                float a = left[i];                                                                 \
                float b = right[i];                                                                \
                out[i] = (expression);                                                             \
            }                                                                                      \
        } else if (flat && steps[2] == 0) {                                                        \
            float b = right[0];                                                                    \
            for (int64_t i = 0; i < count; i++) {                                                  \
                float a = left[i];                                                                 \
                out[i] = (expression);                                                             \
            }                                                                                      \
        } else if (steps[0] == 1 && steps[1] == 0 && steps[2] == 1) {                              \
            float a = left[0];                                                                     \
            for (int64_t i = 0; i < count; i++) {                                                  \
                float b = right[i];                                                                \
                out[i] = (expression);                                                             \
            }                                                                                      \
        } else {                                                                                   \
            for (int64_t i = 0; i < count; i++) {                                                  \
                float a = left[i * steps[1]];                                                      \
                float b = right[i * steps[2]];                                                     \
                out[i * steps[0]] = (expression);                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    PLANE(name)

UNARY_ROW(tanh, approximate_tanh(a))
UNARY_ROW(sigmoid, approximate_sigmoid(a))
UNARY_ROW(relu, a > 0.0F ? a : 0.0F)
UNARY_ROW(leaky_relu, a > 0.0F ? a : a * v[0])
UNARY_ROW(erf, approximate_erf(a))
UNARY_ROW(gelu, 0.5F * a * (1.0F + approximate_erf(a * 0.707106781F)))

/* FUNCTION rows of operators.def: their bodies over these numbers. */
#define PLAIN_1(name, expression)                                                                  \
    static inline float name##_plain(void *k, float a)                                             \
    {                                                                                              \
        (void)k;                                                                                   \
        return expression;                                                                         \
    }
#define PLAIN_2(name, expression)                                                                  \
    static inline float name##_plain(void *k, float a, float b)                                    \
    {                                                                                              \
        (void)k;                                                                                   \
        return expression;                                                                         \
    }
PLAIN_2(sum, a + b)
PLAIN_2(difference, a - b)
PLAIN_2(product, a *b)
PLAIN_2(quotient, a / b)
PLAIN_2(max, a > b ? a : b)
PLAIN_2(min, a < b ? a : b)
PLAIN_2(less, a < b ? 1.0F : 0.0F)
PLAIN_2(equal, a == b ? 1.0F : 0.0F)
PLAIN_2(remainder, fmodf(a, b))
PLAIN_1(exp, expf(a))
PLAIN_1(sqrt, sqrtf(a))
PLAIN_1(erf, approximate_erf(a))
PLAIN_1(sigmoid, approximate_sigmoid(a))
PLAIN_1(tanh, approximate_tanh(a))
PLAIN_1(log, logf(a))
PLAIN_1(sin, sinf(a))
PLAIN_1(cos, cosf(a))

static inline float lift_plain(void *k, int32_t value)
{
    (void)k;
    return (float)value;
}

static inline float lift_float_plain(void *k, int32_t bits)
{
    (void)k;
    return graft_float_of_bits(bits);
}

#define NUM    float
#define ALG(f) f##_plain
#include "graph/meaning/operator_scalars.inc"

#define OP(id, name, inputs, outputs, attributes, flags, onnx)
#define FUNCTION(id, name, attributes, flags, work, since, onnx, body)                             \
    UNARY_ROW(function_##id, function_plain(NULL, id, a, v))
#include "graft/operators.def"

BINARY_ROW(add, a + b)
BINARY_ROW(sub, a - b)
BINARY_ROW(mul, a *b)
BINARY_ROW(div, a / b)
BINARY_ROW(max, a > b ? a : b)
BINARY_ROW(min, a < b ? a : b)
BINARY_ROW(remainder, fmodf(a, b))
UNARY_ROW(clip, min_plain(NULL, max_plain(NULL, a, v[0]), v[1]))

static inline void row_copy(const void *context, int64_t count, const int64_t *steps,
                            float *const *pointers)
{
    (void)context;
    if (steps[0] == 1 && steps[1] == 1) {
        memcpy(pointers[0], pointers[1], (size_t)count * sizeof(float));
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        pointers[0][i * steps[0]] = pointers[1][i * steps[1]];
    }
}
PLANE(copy)

/* Four by four of them. */
static inline void turn_square(int64_t out_step, int64_t in_step, const float *in, float *out)
{
    typedef float quad __attribute__((vector_size(16)));
    quad r[4];
    for (int k = 0; k < 4; k++) {
        memcpy(&r[k], in + k * in_step, sizeof(r[k]));
    }
    const quad low[2] = {__builtin_shufflevector(r[0], r[1], 0, 4, 1, 5),
                         __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5)};
    const quad high[2] = {__builtin_shufflevector(r[0], r[1], 2, 6, 3, 7),
                          __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7)};
    r[0] = __builtin_shufflevector(low[0], low[1], 0, 1, 4, 5);
    r[1] = __builtin_shufflevector(low[0], low[1], 2, 3, 6, 7);
    r[2] = __builtin_shufflevector(high[0], high[1], 0, 1, 4, 5);
    r[3] = __builtin_shufflevector(high[0], high[1], 2, 3, 6, 7);
    for (int k = 0; k < 4; k++) {
        memcpy(out + k * out_step, &r[k], sizeof(r[k]));
    }
}

/* Rows of the output that are columns of the input: in tiles, of which every cache line is used
 * whole while it is there. */
static void turn_plane(const int64_t counts[2], int64_t out_step, int64_t in_step, const float *in,
                       float *restrict out)
{
    enum { TILE = 16, SIDE = 4 };
    for (int64_t y0 = 0; y0 < counts[0]; y0 += TILE) {
        const int64_t y1 = y0 + TILE < counts[0] ? y0 + TILE : counts[0];
        for (int64_t x0 = 0; x0 < counts[1]; x0 += SIDE) {
            const int64_t x1 = x0 + SIDE < counts[1] ? x0 + SIDE : counts[1];
            int64_t y = y0;
            for (; x1 - x0 == SIDE && y + SIDE <= y1; y += SIDE) {
                turn_square(out_step, in_step, in + x0 * in_step + y, out + y * out_step + x0);
            }
            for (; y < y1; y++) {
                for (int64_t x = x0; x < x1; x++) {
                    out[y * out_step + x] = in[x * in_step + y];
                }
            }
        }
    }
}

static void plane_move(const void *context, const int64_t counts[2], const int64_t (*steps)[2],
                       float *const *pointers)
{
    if (steps[0][1] == 1 && steps[1][0] == 1 && steps[1][1] != 1) {
        turn_plane(counts, steps[0][0], steps[1][1], pointers[1], pointers[0]);
    } else {
        plane_copy(context, counts, steps, pointers);
    }
}

/* Every element so many times: v[0]. */
static inline void row_repeat(const void *context, int64_t count, const int64_t *steps,
                              float *const *pointers)
{
    const float *v = context;
    float *restrict out = pointers[0];
    const float *restrict in = pointers[1];
    if (v[0] == 2.0F && steps[0] == 2 && steps[1] == 1) {
        for (int64_t i = 0; i < count; i++) {
            out[2 * i] = in[i];
            out[2 * i + 1] = in[i];
        }
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        for (int64_t k = 0; k < (int64_t)v[0]; k++) {
            out[i * steps[0] + k] = in[i * steps[1]];
        }
    }
}
PLANE(repeat)

static inline void row_fill(const void *context, int64_t count, const int64_t *steps,
                            float *const *pointers)
{
    const float *v = context;
    for (int64_t i = 0; i < count; i++) {
        pointers[0][i * steps[0]] = v[0];
    }
}
PLANE(fill)

static inline void row_divide(const void *context, int64_t count, const int64_t *steps,
                              float *const *pointers)
{
    const float *v = context;
    for (int64_t i = 0; i < count; i++) {
        pointers[0][i * steps[0]] /= v[0];
    }
}
PLANE(divide)

/* out = x s + t */
static inline void row_scale_shift(const void *context, int64_t count, const int64_t *steps,
                                   float *const *pointers)
{
    float *restrict out = pointers[0];
    const float *x = pointers[1];
    const float *s = pointers[2];
    const float *t = pointers[3];
    (void)context;
    if (steps[0] == 1 && steps[1] == 1 && steps[2] == 1 && steps[3] == 1) {
        for (int64_t i = 0; i < count; i++) {
            out[i] = x[i] * s[i] + t[i];
        }
        return;
    }
    if (steps[0] == 1 && steps[1] == 1 && steps[2] == 0 && steps[3] == 0) {
        const float factor = s[0];
        const float more = t[0];
        for (int64_t i = 0; i < count; i++) {
            out[i] = x[i] * factor + more;
        }
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        out[i * steps[0]] = x[i * steps[1]] * s[i * steps[2]] + t[i * steps[3]];
    }
}
PLANE(scale_shift)

/* Sums are made of blocks, so that a sum of many numbers stays as accurate as one of few. */
enum { SUM_BLOCK = 128 };

/* The sum of a row, in partial sums that are independent. */
static inline float sum_row(const float *in, int64_t count, int64_t step)
{
    enum { LANES = 32 };
    float total = 0.0F;
    for (int64_t from = 0; from < count;) {
        const int64_t to = count - from < SUM_BLOCK * LANES ? count : from + SUM_BLOCK * LANES;
        float lanes[LANES] = {0.0F};
        for (; from + LANES <= to && step == 1; from += LANES) {
            for (int64_t lane = 0; lane < LANES; lane++) {
                lanes[lane] += in[from + lane];
            }
        }
        for (; from + LANES <= to; from += LANES) {
            for (int64_t lane = 0; lane < LANES; lane++) {
                lanes[lane] += in[(from + lane) * step];
            }
        }
        for (; from < to; from++) {
            lanes[0] += in[from * step];
        }
        for (int64_t lane = 0; lane < LANES; lane++) {
            total += lanes[lane];
        }
    }
    return total;
}

/* Adds `rows` rows of `width` columns, at most COLUMNS, to one row. */
enum { COLUMNS = 64 };
static inline void sum_columns(const float *in, int64_t rows, int64_t pitch, int64_t width,
                               float *out)
{
    for (int64_t from = 0; from < rows; from += SUM_BLOCK) {
        const int64_t to = rows - from < SUM_BLOCK ? rows : from + SUM_BLOCK;
        float sums[COLUMNS] = {0.0F};
        for (int64_t y = from; y < to; y++) {
            for (int64_t x = 0; x < width; x++) {
                sums[x] += in[y * pitch + x];
            }
        }
        for (int64_t x = 0; x < width; x++) {
            out[x] += sums[x];
        }
    }
}

/* Adds the input to an output that repeats along rows, from row to row, or along neither. */
static void plane_sum(const void *context, const int64_t counts[2], const int64_t (*steps)[2],
                      float *const *pointers)
{
    float *out = pointers[0];
    const float *in = pointers[1];
    (void)context;
    if (steps[0][0] == 0 && steps[0][1] == 1 && steps[1][1] == 1) {
        int64_t x = 0;
        for (; x + COLUMNS <= counts[1]; x += COLUMNS) {
            sum_columns(in + x, counts[0], steps[1][0], COLUMNS, out + x);
        }
        sum_columns(in + x, counts[0], steps[1][0], counts[1] - x, out + x);
        return;
    }
    for (int64_t y = 0; y < counts[0]; y++, out += steps[0][0], in += steps[1][0]) {
        if (steps[0][1] == 0) {
            out[0] += sum_row(in, counts[1], steps[1][1]);
            continue;
        }
        for (int64_t i = 0; i < counts[1]; i++) {
            out[i * steps[0][1]] += in[i * steps[1][1]];
        }
    }
}

/* The element of a row that is most by `than`; where the output repeats, in lanes as above. */
#define MOST_ROW(name, than)                                                                       \
    static inline void row_##name(const void *context, int64_t count, const int64_t *steps,        \
                                  float *const *pointers)                                          \
    {                                                                                              \
        enum { LANES = 32 };                                                                       \
        float *out = pointers[0];                                                                  \
        const float *in = pointers[1];                                                             \
        float lanes[LANES];                                                                        \
        (void)context;                                                                             \
        if (steps[0] != 0) {                                                                       \
            for (int64_t i = 0; i < count; i++) {                                                  \
                float x = in[i * steps[1]];                                                        \
                out[i * steps[0]] = x than out[i * steps[0]] ? x : out[i * steps[0]];              \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t lane = 0; lane < LANES; lane++) {                                             \
            lanes[lane] = out[0];                                                                  \
        }                                                                                          \
        int64_t i = 0;                                                                             \
        for (; i + LANES <= count && steps[1] == 1; i += LANES) {                                  \
            for (int64_t lane = 0; lane < LANES; lane++) {                                         \
                lanes[lane] = in[i + lane] than lanes[lane] ? in[i + lane] : lanes[lane];          \
            }                                                                                      \
        }                                                                                          \
        for (; i < count; i++) {                                                                   \
            float x = in[i * steps[1]];                                                            \
            lanes[0] = x than lanes[0] ? x : lanes[0];                                             \
        }                                                                                          \
        for (int64_t lane = 0; lane < LANES; lane++) {                                             \
            out[0] = lanes[lane] than out[0] ? lanes[lane] : out[0];                               \
        }                                                                                          \
    }                                                                                              \
    PLANE(name)

MOST_ROW(largest, >)
MOST_ROW(smallest, <)

/* ------------------------------------------------------------------- loops */

typedef struct {
    graft_kernel *kernel;
    plain_state *state;
    int64_t steps[GRAFT_NEST_OPERANDS][GRAFT_MAX_RANK];
} maker;

/* Elements of blocked images that are alike lie in one order, and pieces of whole blocks lie as in
 * row-major tensors: what remains of the operators here works on either as on row-major ones. */
static uint32_t flat_layout(uint32_t layout)
{
    return layout == GRAFT_LAYOUT_BLOCKED ? GRAFT_LAYOUT_ROW : layout;
}

static void input_steps(const maker *m, uint32_t k, int64_t steps[GRAFT_MAX_RANK])
{
    const graft_signature *s = &m->kernel->signature;
    graft_layout_strides(&s->inputs[k], flat_layout(s->in_layouts[k]), steps);
}

static void output_steps(const maker *m, uint32_t k, int64_t steps[GRAFT_MAX_RANK])
{
    graft_layout_strides(&m->kernel->outputs[k], flat_layout(m->kernel->signature.out_layouts[k]),
                         steps);
}

/* Steps of input k as it is repeated over the output: right-aligned, 0 along sizes of 1. */
static void repeated_steps(const maker *m, uint32_t k, int64_t steps[GRAFT_MAX_RANK])
{
    const graft_shape *from = &m->kernel->signature.inputs[k];
    uint32_t added = m->kernel->outputs[0].rank - from->rank;
    int64_t own[GRAFT_MAX_RANK];
    input_steps(m, k, own);
    for (uint32_t i = 0; i < m->kernel->outputs[0].rank; i++) {
        steps[i] = i < added || from->dims[i - added] == 1 ? 0 : own[i - added];
    }
}

static plain_move *add_move(maker *m, const graft_shape *shape, uint32_t operand_count,
                            uint32_t leader, graft_nest_plane plane)
{
    plain_move *move = &m->state->moves[m->state->move_count++];
    graft_nest_make(shape, operand_count, (const int64_t(*)[GRAFT_MAX_RANK])m->steps, leader,
                    &move->nest);
    move->in[1] = 1;
    move->in[2] = 2;
    move->plane = plane;
    return move;
}

static void make_unary(maker *m, graft_nest_plane plane, float first, float second)
{
    output_steps(m, 0, m->steps[0]);
    input_steps(m, 0, m->steps[1]);
    plain_move *move = add_move(m, &m->kernel->outputs[0], 2, 0, plane);
    move->values[0] = first;
    move->values[1] = second;
}

static void make_binary(maker *m, graft_nest_plane plane)
{
    output_steps(m, 0, m->steps[0]);
    repeated_steps(m, 0, m->steps[1]);
    repeated_steps(m, 1, m->steps[2]);
    (void)add_move(m, &m->kernel->outputs[0], 3, 0, plane);
}

/* A blocked image has five axes: batch, block, height, width, channel within the block. */
static void make_scale_shift(maker *m)
{
    enum { CHANNELS = 1, WITHIN = 4, BLOCKED_RANK = 5 };
    const bool blocked = m->kernel->signature.out_layouts[0] == GRAFT_LAYOUT_BLOCKED;
    graft_shape shape = m->kernel->outputs[0];
    output_steps(m, 0, m->steps[0]);
    input_steps(m, 0, m->steps[1]);
    if (blocked) {
        shape.rank = BLOCKED_RANK;
        shape.dims[CHANNELS] /= GRAFT_LAYOUT_BLOCK;
        shape.dims[WITHIN] = GRAFT_LAYOUT_BLOCK;
        graft_layout_strides(&shape, GRAFT_LAYOUT_ROW, m->steps[0]);
        memcpy(m->steps[1], m->steps[0], sizeof(m->steps[1]));
    }
    for (uint32_t i = 2; i < GRAFT_NEST_OPERANDS; i++) {
        memset(m->steps[i], 0, sizeof(m->steps[i]));
        m->steps[i][CHANNELS] = blocked ? GRAFT_LAYOUT_BLOCK : 1;
        m->steps[i][WITHIN] = blocked;
    }
    (void)add_move(m, &shape, 4, 0, plane_scale_shift);
}

/* Copies the box `shape` from `from` elements on in input `in` to `to` on in output `out`. */
static void make_copy(maker *m, const graft_shape *shape, uint32_t in, int64_t from, uint32_t out,
                      int64_t to)
{
    output_steps(m, out, m->steps[0]);
    input_steps(m, in, m->steps[1]);
    plain_move *move = add_move(m, shape, 2, 0, plane_move);
    move->in[0] = in;
    move->out = out;
    move->offsets[0] = to;
    move->offsets[1] = from;
}

static void make_concat(maker *m)
{
    const graft_signature *s = &m->kernel->signature;
    int32_t axis = s->attrs[GRAFT_ATTR_concat_axis];
    int64_t steps[GRAFT_MAX_RANK];
    output_steps(m, 0, steps);
    make_copy(m, &s->inputs[0], 0, 0, 0, 0);
    make_copy(m, &s->inputs[1], 1, 0, 0, s->inputs[0].dims[axis] * steps[axis]);
}

static void make_split(maker *m)
{
    const graft_signature *s = &m->kernel->signature;
    int32_t axis = s->attrs[GRAFT_ATTR_split_axis];
    int64_t steps[GRAFT_MAX_RANK];
    input_steps(m, 0, steps);
    make_copy(m, &m->kernel->outputs[0], 0, 0, 0, 0);
    make_copy(m, &m->kernel->outputs[1], 0, s->attrs[GRAFT_ATTR_split_at] * steps[axis], 1, 0);
}

/* Input 0 along an axis as its memory has it: `outer` times `size` times `inner` elements. */
typedef struct {
    int64_t outer;
    int64_t size;
    int64_t inner;
} cut;

static cut cut_along(const graft_signature *s, int32_t axis)
{
    const graft_shape *shape = &s->inputs[0];
    const bool blocked = s->in_layouts[0] == GRAFT_LAYOUT_BLOCKED;
    int64_t steps[GRAFT_MAX_RANK];
    graft_layout_strides(shape, flat_layout(s->in_layouts[0]), steps);
    cut c = {.size = shape->dims[axis],
             .inner = steps[axis] * (blocked && axis > 1 ? GRAFT_LAYOUT_BLOCK : 1)};
    c.outer = (int64_t)graft_shape_elements(shape) / (c.size * c.inner);
    return c;
}

/* Copies `size` elements of the axis, each `times` behind one another, from `start` on by
 * `step`. */
static void make_cut(maker *m, int32_t size, int32_t times, int32_t start, int32_t step)
{
    const cut c = cut_along(&m->kernel->signature, m->kernel->signature.attrs[0]);
    const bool apart = c.inner == 1 && times > 1; /* Rows of the output would be the times. */
    const graft_shape shape = {
        .rank = 4, .dims = {(int32_t)c.outer, size, apart ? 1 : times, (int32_t)c.inner}
    };
    const int64_t to[4] = {size * times * c.inner, times * c.inner, c.inner, 1};
    const int64_t from[4] = {c.size * c.inner, step * c.inner, 0, 1};
    memcpy(m->steps[0], to, sizeof(to));
    memcpy(m->steps[1], from, sizeof(from));
    plain_move *move = add_move(m, &shape, 2, 0, apart ? plane_repeat : plane_copy);
    move->offsets[1] = start * c.inner;
    move->values[0] = (float)times;
}

static void make_slice(maker *m)
{
    const graft_signature *s = &m->kernel->signature;
    make_cut(m, m->kernel->outputs[0].dims[s->attrs[GRAFT_ATTR_slice_axis]], 1,
             s->attrs[GRAFT_ATTR_slice_start],
             s->op == GRAFT_OP_pick ? s->attrs[GRAFT_ATTR_pick_step] : 1);
}

/* Every slice of `inner` elements is the one before and what is added to it. */
static void sum_along(const float *in, int64_t size, int64_t inner, bool exclusive,
                      float *restrict out)
{
    float total = 0.0F;
    for (int64_t i = 0; i < size && inner == 1; i++) {
        out[i] = exclusive ? total : total + in[i];
        total += in[i];
    }
    for (int64_t i = 0; i < size && inner > 1; i++, out += inner) {
        const float *more = in + (exclusive && i > 0 ? i - 1 : i) * inner;
        for (int64_t k = 0; k < inner; k++) {
            out[k] = i == 0 ? (exclusive ? 0.0F : more[k]) : out[k - inner] + more[k];
        }
    }
}

static void run_cumsum(const graft_kernel *kernel)
{
    const graft_signature *s = &kernel->signature;
    const cut c = cut_along(s, s->attrs[GRAFT_ATTR_cumsum_axis]);
    for (int64_t o = 0; o < c.outer; o++) {
        int64_t at = o * c.size * c.inner;
        sum_along(kernel->in[0] + at, c.size, c.inner, s->attrs[GRAFT_ATTR_cumsum_exclusive] == 1,
                  kernel->out[0] + at);
    }
}

static void make_fill(maker *m, const graft_shape *shape, int64_t to, float value)
{
    output_steps(m, 0, m->steps[0]);
    plain_move *move = add_move(m, shape, 1, 0, plane_fill);
    move->offsets[0] = to;
    move->values[0] = value;
}

static void make_pad(maker *m)
{
    const graft_signature *s = &m->kernel->signature;
    int32_t axis = s->attrs[GRAFT_ATTR_pad_axis];
    int32_t before = s->attrs[GRAFT_ATTR_pad_before];
    int32_t after = s->attrs[GRAFT_ATTR_pad_after];
    float value = graft_float_of_bits(s->attrs[GRAFT_ATTR_pad_value]);
    graft_shape edge = m->kernel->outputs[0];
    int64_t steps[GRAFT_MAX_RANK];
    output_steps(m, 0, steps);
    make_copy(m, &s->inputs[0], 0, 0, 0, before * steps[axis]);
    if (before > 0) {
        edge.dims[axis] = before;
        make_fill(m, &edge, 0, value);
    }
    if (after > 0) {
        edge.dims[axis] = after;
        make_fill(m, &edge, (before + s->inputs[0].dims[axis]) * steps[axis], value);
    }
}

static void make_transpose(maker *m)
{
    const graft_signature *s = &m->kernel->signature;
    int64_t steps[GRAFT_MAX_RANK];
    input_steps(m, 0, steps);
    output_steps(m, 0, m->steps[0]);
    for (uint32_t i = 0; i < m->kernel->outputs[0].rank; i++) {
        m->steps[1][i] = steps[s->attrs[GRAFT_ATTR_transpose_axis_0 + i]];
    }
    (void)add_move(m, &m->kernel->outputs[0], 2, 0, plane_move);
}

/* Fills with `first`, then folds the input in, in the order of its memory. The result is the number
 * of elements folded into one. `axes`: what is reduced. */
static float make_reduction(maker *m, uint32_t axes, float first, graft_nest_plane plane)
{
    const graft_signature *s = &m->kernel->signature;
    graft_shape kept = s->inputs[0];
    float count = 1.0F;
    for (uint32_t i = 0; i < kept.rank; i++) {
        if ((axes >> i & 1u) != 0) {
            count *= (float)kept.dims[i];
            kept.dims[i] = 1;
        }
    }
    make_fill(m, &m->kernel->outputs[0], 0, first);
    graft_layout_strides(&kept, s->out_layouts[0], m->steps[0]);
    for (uint32_t i = 0; i < kept.rank; i++) {
        m->steps[0][i] = (axes >> i & 1u) != 0 ? 0 : m->steps[0][i];
    }
    input_steps(m, 0, m->steps[1]);
    (void)add_move(m, &s->inputs[0], 2, 1, plane);
    return count;
}

static void make_mean(maker *m, uint32_t axes)
{
    float count = make_reduction(m, axes, 0.0F, plane_sum);
    output_steps(m, 0, m->steps[0]);
    add_move(m, &m->kernel->outputs[0], 1, 0, plane_divide)->values[0] = count;
}

/* ---------------------------------------------------------------- operators */

/* Of elementwise operators; attributes of those of one operand are at most two numbers. */
static const graft_nest_plane planes[GRAFT_OP_COUNT] = {
    [GRAFT_OP_relu] = plane_relu, [GRAFT_OP_leaky_relu] = plane_leaky_relu,
    [GRAFT_OP_clip] = plane_clip, [GRAFT_OP_sigmoid] = plane_sigmoid,
    [GRAFT_OP_tanh] = plane_tanh, [GRAFT_OP_erf] = plane_erf,
    [GRAFT_OP_gelu] = plane_gelu, [GRAFT_OP_add] = plane_add,
    [GRAFT_OP_sub] = plane_sub,   [GRAFT_OP_mul] = plane_mul,
    [GRAFT_OP_div] = plane_div,   [GRAFT_OP_max] = plane_max,
    [GRAFT_OP_min] = plane_min,   [GRAFT_OP_remainder] = plane_remainder,
#define OP(id, name, inputs, outputs, attributes, flags, onnx)
#define FUNCTION(id, name, attributes, flags, work, since, onnx, body) [id] = plane_function_##id,
#include "graft/operators.def"
};

static bool make_elementwise(maker *m)
{
    const graft_signature *s = &m->kernel->signature;
    graft_nest_plane plane = s->op < GRAFT_OP_COUNT ? planes[s->op] : NULL;
    if (s->op == GRAFT_OP_scale_shift) {
        make_scale_shift(m);
        return true;
    }
    if (plane != NULL && s->input_count == 1) {
        make_unary(m, plane, graft_float_of_bits(s->attrs[0]), graft_float_of_bits(s->attrs[1]));
    } else if (plane != NULL) {
        make_binary(m, plane);
    }
    return plane != NULL;
}

static bool make_movement(maker *m)
{
    const graft_signature *s = &m->kernel->signature;
    switch (s->op) {
    case GRAFT_COST_REORDER:
        if (s->inputs[0].dtype != GRAFT_DTYPE_F32) {
            return false;
        }
        make_copy(m, &m->kernel->outputs[0], 0, 0, 0, 0);
        return true;
    case GRAFT_OP_transpose:
        make_transpose(m);
        return true;
    case GRAFT_OP_concat:
        make_concat(m);
        return true;
    case GRAFT_OP_split:
        make_split(m);
        return true;
    case GRAFT_OP_slice:
    case GRAFT_OP_pick:
        make_slice(m);
        return true;
    case GRAFT_OP_repeat:
        make_cut(m, s->inputs[0].dims[s->attrs[GRAFT_ATTR_repeat_axis]],
                 s->attrs[GRAFT_ATTR_repeat_times], 0, 1);
        return true;
    case GRAFT_OP_reverse: {
        const int32_t size = s->inputs[0].dims[s->attrs[GRAFT_ATTR_reverse_axis]];
        make_cut(m, size, 1, size - 1, -1);
        return true;
    }
    case GRAFT_OP_cumsum:
        return true; /* No move: run_cumsum. */
    case GRAFT_OP_pad:
        make_pad(m);
        return true;
    default:
        return false;
    }
}

static bool make_reductions(maker *m)
{
    const graft_signature *s = &m->kernel->signature;
    enum { HEIGHT_AND_WIDTH = 12 };
    uint32_t axes = (uint32_t)s->attrs[GRAFT_ATTR_reduce_mean_axes]; /* The same in all. */
    switch (s->op) {
    case GRAFT_OP_reduce_mean:
        make_mean(m, axes);
        return true;
    case GRAFT_OP_global_avg_pool:
        make_mean(m, HEIGHT_AND_WIDTH);
        return true;
    case GRAFT_OP_reduce_sum:
        (void)make_reduction(m, axes, 0.0F, plane_sum);
        return true;
    case GRAFT_OP_reduce_max:
        (void)make_reduction(m, axes, -INFINITY, plane_largest);
        return true;
    case GRAFT_OP_reduce_min:
        (void)make_reduction(m, axes, INFINITY, plane_smallest);
        return true;
    default:
        return false;
    }
}

/* Whether the layouts of the operands are beyond these loops: blocks count, or meet other layouts.
 */
static bool is_beyond(const graft_signature *s)
{
    bool blocked = s->out_layouts[0] == GRAFT_LAYOUT_BLOCKED;
    bool alike = true;
    if (s->op == GRAFT_OP_scale_shift) {
        return s->in_layouts[0] != s->out_layouts[0];
    }
    for (uint32_t k = 0; k < s->input_count; k++) {
        blocked = blocked || s->in_layouts[k] == GRAFT_LAYOUT_BLOCKED;
        alike = alike && s->in_layouts[k] == s->out_layouts[0];
    }
    const graft_op_info *info = graft_op(s->op);
    bool piecewise = s->op == GRAFT_OP_concat || s->op == GRAFT_OP_split ||
                     s->op == GRAFT_OP_slice || s->op == GRAFT_OP_pick ||
                     s->op == GRAFT_OP_repeat || s->op == GRAFT_OP_reverse ||
                     s->op == GRAFT_OP_cumsum;
    bool flat = piecewise || (info != NULL && (info->flags & GRAFT_FLAG_ELEMENTWISE) != 0);
    return blocked && (!alike || !flat);
}

graft_status graft_cpu_open_plain(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    plain_state state;
    maker m = {.kernel = kernel, .state = &state};
    memset(&state, 0, sizeof(state));
    if (variant > 0 || is_beyond(&kernel->signature) ||
        (!make_elementwise(&m) && !make_movement(&m) && !make_reductions(&m))) {
        return GRAFT_UNSUPPORTED;
    }
    plain_run run = kernel->signature.op == GRAFT_OP_cumsum ? run_cumsum : run_moves;
    return graft_program_plain(env, kernel, "plain", run, &state, sizeof(state));
}

/* foreign_bytes.c - quantised operators beside those of quantised.h: what onnxruntime's quantiser
 * makes of models, with scales that are found while they run, or in its own domain (see foreign.h).
 *
 * Products are exact (byte_product.h). What is rounded is rounded once, halves to even, as
 * onnxruntime does. */
#include "graph/meaning/foreign_rows.h"

#include "graph/base/share.h"
#include "graph/meaning/algebra.h"
#include "graph/meaning/byte_product.h"

#include <math.h>
#include <string.h>

/* A scale of binary32 and a zero point of the elements' type, each one number; the second may be
 * missing. */
static bool has_scale(const graft_opaque *opaque, uint32_t k, uint32_t dtype)
{
    const graft_shape *scale = &opaque->in[k];
    const graft_shape *zero = &opaque->in[k + 1];
    return graft_foreign_has(opaque, k) && scale->dtype == GRAFT_DTYPE_F32 &&
           graft_shape_elements(scale) == 1 &&
           (!graft_foreign_has(opaque, k + 1) ||
            (zero->dtype == dtype && graft_shape_elements(zero) == 1));
}

static float scale_at(const graft_opaque *opaque, uint32_t k)
{
    float scale = 0.0F;
    memcpy(&scale, opaque->data[k], sizeof(scale));
    return scale;
}

static int32_t zero_at(const graft_opaque *opaque, uint32_t k, size_t i)
{
    const bool one = graft_foreign_has(opaque, k) && graft_shape_elements(&opaque->in[k]) == 1;
    return graft_foreign_has(opaque, k)
               ? (int32_t)graft_foreign_whole(opaque, k, one ? 0 : (uint32_t)i)
               : 0;
}

static uint8_t round_byte(float value, int32_t zero, uint32_t dtype)
{
    return graft_foreign_round(value, (float)zero, graft_foreign_least(dtype));
}

/* --------------------------------------------------------------- DynamicQuantizeLinear */

bool graft_foreign_dynamic_shape(const graft_opaque *opaque, graft_shape *shape)
{
    *shape = opaque->which == 0 ? opaque->in[0] : (graft_shape){.rank = 0};
    shape->dtype = opaque->which == 1 ? (uint8_t)GRAFT_DTYPE_F32 : (uint8_t)GRAFT_DTYPE_U8;
    return opaque->in[0].dtype == GRAFT_DTYPE_F32;
}

/* The smallest and the largest number, and 0; many at a time, which compilers make vectors of. */
static void find_ends(const float *x, size_t count, float *least, float *most)
{
    enum { ENDS = 32 };
    float low[ENDS] = {0.0F};
    float high[ENDS] = {0.0F};
    for (size_t i = 0; i + ENDS <= count; i += ENDS) {
        for (size_t k = 0; k < ENDS; k++) {
            low[k] = x[i + k] < low[k] ? x[i + k] : low[k];
            high[k] = x[i + k] > high[k] ? x[i + k] : high[k];
        }
    }
    for (size_t i = count / ENDS * ENDS; i < count; i++) {
        low[0] = x[i] < low[0] ? x[i] : low[0];
        high[0] = x[i] > high[0] ? x[i] : high[0];
    }
    *least = low[0];
    *most = high[0];
    for (size_t k = 1; k < ENDS; k++) {
        *least = low[k] < *least ? low[k] : *least;
        *most = high[k] > *most ? high[k] : *most;
    }
}

/* The scale that makes bytes of all numbers, and of 0 one without a rest. */
static float scale_between(float least, float most, int32_t *zero)
{
    const float scale = least == most ? 1.0F : (most - least) / 255.0F;
    const float place = 0.0F - least / scale;
    *zero = (int32_t)rintf(place < 0.0F ? 0.0F : place > 255.0F ? 255.0F : place);
    return scale;
}

static void quantise(const float *x, size_t count, float scale, int32_t zero, uint8_t *out)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = round_byte(x[i] / scale, zero, GRAFT_DTYPE_U8);
    }
}

float graft_foreign_quantise(const float *x, size_t rows, size_t columns, size_t step, uint8_t *out,
                             int32_t *zero)
{
    float least = 0.0F;
    float most = 0.0F;
    find_ends(x, rows * columns, &least, &most);
    const float scale = scale_between(least, most, zero);
    for (size_t i = 0; i < rows; i++) {
        quantise(x + i * columns, columns, scale, *zero, out + i * step);
    }
    return scale;
}

/* Numbers that are quantised part by part, once the ends of all parts are known. */
typedef struct {
    const float *x;
    size_t count;
    float (*ends)[2]; /* By part: the least and the largest. */
    float scale;
    int32_t zero;
    uint8_t *out;
} change;

static void find_some_ends(const void *work, uint32_t part, uint32_t parts)
{
    const change *c = work;
    const graft_range own = graft_range_part((int64_t)c->count, GRAFT_SHARE_LINE, part, parts);
    find_ends(c->x + own.from, (size_t)(own.to - own.from), &c->ends[part][0], &c->ends[part][1]);
}

static void quantise_some(const void *work, uint32_t part, uint32_t parts)
{
    const change *c = work;
    const graft_range own = graft_range_part((int64_t)c->count, GRAFT_SHARE_LINE, part, parts);
    quantise(c->x + own.from, (size_t)(own.to - own.from), c->scale, c->zero, c->out + own.from);
}

GRAFT_FOREIGN_RUNNER(dynamic)
{
    GRAFT_SCOPED(env->scratch);
    const int parts = opaque->threads > 1 ? opaque->threads : 1;
    change c = {.x = opaque->data[0],
                .count = graft_count(&opaque->in[0]),
                .ends = (float(*)[2])GRAFT_NEW(env->scratch, float, 2 * (size_t)parts),
                .out = opaque->made[0]};
    float ends[2] = {0.0F, 0.0F};
    graft_share(parts, find_some_ends, &c);
    for (int i = 0; i < parts; i++) {
        ends[0] = c.ends[i][0] < ends[0] ? c.ends[i][0] : ends[0];
        ends[1] = c.ends[i][1] > ends[1] ? c.ends[i][1] : ends[1];
    }
    c.scale = scale_between(ends[0], ends[1], &c.zero);
    if (c.out != NULL) {
        graft_share(parts, quantise_some, &c);
    }
    if (opaque->made[1] != NULL) {
        *(float *)opaque->made[1] = c.scale;
    }
    if (opaque->made[2] != NULL) {
        *(uint8_t *)opaque->made[2] = (uint8_t)c.zero;
    }
    return GRAFT_OK;
}

/* ---------------------------------------------------------------- MatMulInteger, QGemm */

size_t graft_foreign_zero_step(const graft_opaque *opaque, uint32_t k)
{
    return graft_foreign_has(opaque, k) && graft_shape_elements(&opaque->in[k]) > 1 ? 1 : 0;
}

int32_t *graft_foreign_row_zeros(graft_arena *scratch, const graft_opaque *opaque, size_t rows,
                                 size_t period)
{
    int32_t *zeros = GRAFT_NEW(scratch, int32_t, rows);
    const int32_t sign = opaque->in[0].dtype == GRAFT_DTYPE_I8 ? 128 : 0;
    const size_t different = graft_foreign_zero_step(opaque, 2) == 0 ? 1 : period;
    for (size_t i = 0; i < rows; i++) {
        zeros[i] = i < different ? zero_at(opaque, 2, i) + sign : zeros[i - different];
    }
    return zeros;
}

/* Which inputs are a matrix of a product and its zero points, and how it lies: from `first` on, as
 * (columns, rows) when it is turned. */
typedef struct {
    uint32_t input;
    uint32_t zero;
    size_t first;
    size_t rows;
    size_t columns;
    bool turned;
} matrix;

static graft_byte_panels pack(graft_arena *arena, const graft_opaque *opaque, const matrix *b)
{
    const graft_byte_matrix given = {
        .data = (const uint8_t *)opaque->data[b->input] + b->first,
        .zeros = graft_foreign_has(opaque, b->zero) ? opaque->data[b->zero] : NULL,
        .dtype = opaque->in[b->input].dtype,
        .depth = b->rows,
        .columns = b->columns,
        .depth_step = b->turned ? 1 : b->columns,
        .column_step = b->turned ? b->rows : 1,
        .zero_step = graft_foreign_zero_step(opaque, b->zero),
    };
    return graft_byte_pack(arena, &given);
}

/* Of input 0; see graft_foreign_row_zeros. */
static graft_byte_rows take_rows(graft_arena *scratch, const graft_opaque *opaque, const matrix *a,
                                 size_t period)
{
    const size_t bytes = graft_byte_row_bytes(a->columns);
    uint8_t *data = GRAFT_NEW(scratch, uint8_t, a->rows * bytes);
    for (size_t i = 0; i < a->rows; i++) {
        graft_byte_fill(opaque->data[0], opaque->in[0].dtype,
                        a->first + i * (a->turned ? 1 : a->columns), a->turned ? a->rows : 1,
                        a->columns, data + i * bytes);
    }
    const int32_t *zeros = graft_foreign_row_zeros(scratch, opaque, a->rows, period);
    return (graft_byte_rows){.data = data, .zeros = zeros, .zero_step = 1, .count = a->rows};
}

/* Missing, one number, or one for each of `count` rows or columns. */
static bool fits_zero(const graft_opaque *opaque, uint32_t k, uint32_t dtype, int32_t count)
{
    const graft_shape *zero = &opaque->in[k];
    return !graft_foreign_has(opaque, k) ||
           (zero->dtype == dtype && zero->rank <= 1 &&
            (graft_shape_elements(zero) == 1 || graft_shape_elements(zero) == (uint64_t)count));
}

bool graft_foreign_matmul_shape(const graft_opaque *opaque, graft_shape *shape)
{
    const graft_shape *a = &opaque->in[0];
    const graft_shape *b = &opaque->in[1];
    const int32_t none[GRAFT_MAX_ATTRS] = {0};
    graft_shape sides[2] = {*a, *b};
    sides[0].dtype = GRAFT_DTYPE_F32;
    sides[1].dtype = GRAFT_DTYPE_F32;
    if (!graft_foreign_is_byte(a->dtype) || !graft_foreign_is_byte(b->dtype) || a->rank < 2 ||
        b->rank < 2 || graft_infer_shapes(GRAFT_OP_matmul, none, sides, shape) != GRAFT_OK) {
        return false;
    }
    shape->dtype = GRAFT_DTYPE_I32;
    return fits_zero(opaque, 2, a->dtype, a->dims[a->rank - 2]) &&
           fits_zero(opaque, 3, b->dtype, b->dims[b->rank - 1]);
}

/* All matrices of the second operand. */
void *graft_foreign_keep_matmul(graft_arena *arena, const graft_opaque *opaque)
{
    const graft_shape *b = &opaque->in[1];
    const size_t k = (size_t)b->dims[b->rank - 2];
    const size_t n = (size_t)b->dims[b->rank - 1];
    const size_t count = graft_count(b) / (k * n);
    graft_byte_panels *panels = GRAFT_NEW(arena, graft_byte_panels, count);
    for (size_t i = 0; i < count; i++) {
        panels[i] = pack(arena, opaque, &(matrix){1, 3, i * k * n, k, n, false});
    }
    return panels;
}

/* With one second operand for all of the first ones these are one. */
GRAFT_FOREIGN_RUNNER(matmul)
{
    const graft_byte_panels *panels = opaque->kept;
    const graft_shape *shape = &opaque->out;
    const graft_shape *sides = opaque->in;
    const uint32_t batch = sides[1].rank == 2 ? 0 : shape->rank - 2U;
    const size_t count = graft_axes_count(shape, 0, batch);
    const size_t n = (size_t)shape->dims[shape->rank - 1];
    const size_t m = graft_count(shape) / count / n;
    const size_t period = (size_t)shape->dims[shape->rank - 2];
    for (size_t i = 0; i < count; i++) {
        GRAFT_SCOPED(env->scratch);
        size_t at[2] = {0, 0};
        for (uint32_t s = 0; s < 2 && batch > 0; s++) {
            const graft_view view =
                graft_view_broadcast(&sides[s], sides[s].rank - 2U, shape, batch);
            at[s] = graft_view_offset(&view, batch, i);
        }
        const size_t k = panels[at[1]].depth;
        const graft_byte_rows a =
            take_rows(env->scratch, opaque, &(matrix){0, 2, at[0] * m * k, m, k, false}, period);
        graft_byte_multiply(opaque->threads, &a, &panels[at[1]], n, 1, (int32_t *)out + i * m * n);
    }
    return GRAFT_OK;
}

enum { GEMM_TURN_A = 1, GEMM_TURN_B, GEMM_ALPHA };

/* Without a scale for it the result is binary32. Zero points are one a matrix. */
bool graft_foreign_gemm_shape(const graft_opaque *opaque, graft_shape *shape)
{
    const graft_shape *a = &opaque->in[0];
    const graft_shape *b = &opaque->in[3];
    const bool turn_a = opaque->attrs[GEMM_TURN_A] != 0;
    const bool turn_b = opaque->attrs[GEMM_TURN_B] != 0;
    if (!graft_foreign_has(opaque, 3) || a->rank != 2 || b->rank != 2 ||
        !graft_foreign_is_byte(a->dtype) || !graft_foreign_is_byte(b->dtype) ||
        a->dims[turn_a ? 0 : 1] != b->dims[turn_b ? 1 : 0]) {
        return false;
    }
    const int32_t columns = b->dims[turn_b ? 0 : 1];
    const graft_shape *scale = &opaque->in[4];
    const bool bytes = graft_foreign_has(opaque, 7);
    *shape = (graft_shape){
        .rank = 2, .dims = {a->dims[turn_a ? 1 : 0], columns},
             .dtype = GRAFT_DTYPE_F32
    };
    if (bytes) {
        shape->dtype = graft_foreign_has(opaque, 8) ? opaque->in[8].dtype : a->dtype;
    }
    return has_scale(opaque, 1, a->dtype) && graft_foreign_has(opaque, 4) &&
           scale->dtype == GRAFT_DTYPE_F32 && scale->rank <= 1 &&
           (graft_shape_elements(scale) == 1 || scale->dims[0] == columns) &&
           fits_zero(opaque, 5, b->dtype, columns) &&
           (!graft_foreign_has(opaque, 6) ||
            (opaque->in[6].dtype == GRAFT_DTYPE_I32 &&
             graft_shape_elements(&opaque->in[6]) == (uint64_t)columns)) &&
           (!bytes || has_scale(opaque, 7, shape->dtype));
}

void *graft_foreign_keep_gemm(graft_arena *arena, const graft_opaque *opaque)
{
    const bool turned = opaque->attrs[GEMM_TURN_B] != 0;
    const int32_t *dims = opaque->in[3].dims;
    graft_byte_panels *panels = GRAFT_NEW(arena, graft_byte_panels, 1);
    *panels = pack(
        arena, opaque,
        &(matrix){3, 5, 0, (size_t)dims[turned ? 1 : 0], (size_t)dims[turned ? 0 : 1], turned});
    return panels;
}

GRAFT_FOREIGN_RUNNER(gemm)
{
    GRAFT_SCOPED(env->scratch);
    const size_t m = (size_t)opaque->out.dims[0];
    const size_t n = (size_t)opaque->out.dims[1];
    const size_t k = graft_count(&opaque->in[0]) / m;
    int32_t *sums = GRAFT_NEW(env->scratch, int32_t, m * n);
    const bool many = graft_shape_elements(&opaque->in[4]) > 1;
    const graft_byte_rows a = take_rows(
        env->scratch, opaque, &(matrix){0, 2, 0, m, k, opaque->attrs[GEMM_TURN_A] != 0}, m);
    graft_byte_multiply(opaque->threads, &a, opaque->kept, n, 1, sums);
    for (size_t i = 0; i < m * n; i++) {
        const int32_t bias =
            graft_foreign_has(opaque, 6) ? ((const int32_t *)opaque->data[6])[i % n] : 0;
        const int32_t sum = (int32_t)((uint32_t)sums[i] + (uint32_t)bias);
        const float scale = graft_float_of_bits(opaque->attrs[GEMM_ALPHA]) * scale_at(opaque, 1) *
                            ((const float *)opaque->data[4])[many ? i % n : 0];
        if (opaque->out.dtype == GRAFT_DTYPE_F32) {
            ((float *)out)[i] = (float)sum * scale;
        } else {
            ((uint8_t *)out)[i] = round_byte((float)sum * (scale / scale_at(opaque, 7)),
                                             zero_at(opaque, 8, 0), opaque->out.dtype);
        }
    }
    return GRAFT_OK;
}

/* ------------------------------------------------- sums, products and functions of bytes */

bool graft_foreign_bytes_shape(const graft_opaque *opaque, graft_shape *shape)
{
    const uint8_t dtype = opaque->in[0].dtype;
    shape->dtype = dtype;
    return graft_foreign_is_byte(dtype) && opaque->in[3].dtype == dtype &&
           graft_foreign_stretch(opaque, 4, 3, shape) && has_scale(opaque, 1, dtype) &&
           has_scale(opaque, 4, dtype) && has_scale(opaque, 6, dtype);
}

/* A sum or product of two numbers, once what is the same for all is known. */
typedef struct {
    int32_t zeros[2];
    float factors[2]; /* Of a product: of both, and 0. */
    float zero;
    float least;
    bool adds;
} byte_pair;

static byte_pair pair_of(const graft_opaque *opaque)
{
    const bool adds = opaque->attrs[0] == GRAFT_FOREIGN_ADD;
    const float a = scale_at(opaque, 1);
    const float b = scale_at(opaque, 4);
    const float out = scale_at(opaque, 6);
    return (byte_pair){
        .zeros = {zero_at(opaque,  2, 0), zero_at(opaque, 5, 0)},
        .factors = {adds ? a / out : a * b / out, adds ? b / out : 0.0F},
        .zero = (float)zero_at(opaque, 7, 0),
        .least = graft_foreign_least(opaque->out.dtype),
        .adds = adds,
    };
}

static uint8_t combine(const byte_pair *p, int32_t x, int32_t y)
{
    x -= p->zeros[0];
    y -= p->zeros[1];
    return graft_foreign_round(p->adds ? (float)x * p->factors[0] + (float)y * p->factors[1]
                                       : (float)(x * y) * p->factors[0],
                               p->zero, p->least);
}

/* Of one shape. Compilers make vectors of it. */
static inline __attribute__((always_inline)) void
combine_all(byte_pair p, const uint8_t *restrict x, const uint8_t *restrict y, size_t count,
            const bool is_signed, uint8_t *restrict out)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = combine(&p, is_signed ? (int8_t)x[i] : x[i], is_signed ? (int8_t)y[i] : y[i]);
    }
}

static void combine_same(const graft_opaque *opaque, const byte_pair *p, uint8_t *out)
{
    const uint8_t *x = opaque->data[0];
    const uint8_t *y = opaque->data[3];
    const size_t count = graft_count(&opaque->out);
    if (opaque->out.dtype == GRAFT_DTYPE_I8) {
        combine_all(*p, x, y, count, true, out);
    } else {
        combine_all(*p, x, y, count, false, out);
    }
}

GRAFT_FOREIGN_RUNNER(bytes)
{
    const byte_pair p = pair_of(opaque);
    const uint32_t rank = opaque->out.rank;
    const size_t count = graft_count(&opaque->out);
    if (graft_count(&opaque->in[0]) == count && graft_count(&opaque->in[3]) == count) {
        combine_same(opaque, &p, out);
        return GRAFT_OK;
    }
    graft_view views[2];
    for (uint32_t k = 0; k < 2; k++) {
        const graft_shape *from = &opaque->in[3U * k];
        views[k] = graft_view_broadcast(from, from->rank, &opaque->out, rank);
    }
    for (size_t i = 0; i < count; i++) {
        const uint32_t at[2] = {(uint32_t)graft_view_offset(&views[0], rank, i),
                                (uint32_t)graft_view_offset(&views[1], rank, i)};
        ((uint8_t *)out)[i] = combine(&p, (int32_t)graft_foreign_whole(opaque, 0, at[0]),
                                      (int32_t)graft_foreign_whole(opaque, 3, at[1]));
    }
    return GRAFT_OK;
}

enum { MAP_ALPHA = 1, MEAN_CHANNELS_LAST = 1 };

/* The scales of what is read and made. */
bool graft_foreign_map_shape(const graft_opaque *opaque, graft_shape *shape)
{
    *shape = opaque->in[0];
    return graft_foreign_is_byte(shape->dtype) && has_scale(opaque, 1, shape->dtype) &&
           has_scale(opaque, 3, shape->dtype);
}

/* What becomes of each byte. */
typedef struct {
    uint8_t made[256];
} byte_table;

static void look_up(const byte_table *table, const uint8_t *from, size_t count, uint8_t *out)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = table->made[from[i]];
    }
}

/* The number that byte `i` of input `k` stands for. */
static float meant_by(const graft_opaque *opaque, uint32_t k, uint32_t i)
{
    const int32_t whole = opaque->in[k].dtype == GRAFT_DTYPE_I8 ? (int8_t)i : (int32_t)i;
    return (float)(whole - zero_at(opaque, k + 2, 0)) * scale_at(opaque, k + 1);
}

GRAFT_FOREIGN_RUNNER(map)
{
    const float alpha = graft_float_of_bits(opaque->attrs[MAP_ALPHA]);
    byte_table table;
    for (uint32_t i = 0; i < sizeof(table); i++) {
        const float x = meant_by(opaque, 0, i);
        const float y = opaque->attrs[0] == GRAFT_FOREIGN_SUM_EXP ? 1.0F / (1.0F + expf(-x))
                        : x >= 0.0F                               ? x
                                                                  : x * alpha;
        table.made[i] =
            round_byte(y / scale_at(opaque, 3), zero_at(opaque, 4, 0), opaque->out.dtype);
    }
    look_up(&table, opaque->data[0], graft_count(&opaque->out), out);
    return GRAFT_OK;
}

bool graft_foreign_mean_shape(const graft_opaque *opaque, graft_shape *shape)
{
    const bool fits = graft_foreign_map_shape(opaque, shape) && shape->rank >= 3;
    const uint32_t first = opaque->attrs[MEAN_CHANNELS_LAST] != 0 ? 1 : 2;
    for (uint32_t i = first; fits && i + 2 < shape->rank + first; i++) {
        shape->dims[i] = 1;
    }
    return fits;
}

GRAFT_FOREIGN_RUNNER(mean)
{
    const size_t count = graft_count(&opaque->out);
    const size_t terms = graft_count(&opaque->in[0]) / count;
    const bool last = opaque->attrs[MEAN_CHANNELS_LAST] != 0;
    const size_t inner = !last ? 1 : count / (size_t)opaque->out.dims[0];
    const float factor = scale_at(opaque, 1) / (scale_at(opaque, 3) * (float)terms);
    const uint8_t sign = opaque->in[0].dtype == GRAFT_DTYPE_I8 ? -INT8_MIN : 0;
    const int64_t zero = zero_at(opaque, 2, 0) + sign;
    const uint8_t *x = opaque->data[0];
    for (size_t i = 0; i < count; i++) {
        const uint8_t *from = x + i / inner * terms * inner + i % inner;
        uint64_t sum = 0;
        for (size_t k = 0; k < terms; k++) {
            sum += from[k * inner] ^ sign;
        }
        ((uint8_t *)out)[i] = round_byte((float)((int64_t)sum - (int64_t)terms * zero) * factor,
                                         zero_at(opaque, 4, 0), opaque->out.dtype);
    }
    return GRAFT_OK;
}

/* Inputs are a scale and a zero point of the result, then tensors with theirs. */
bool graft_foreign_read_join(const Onnx__NodeProto *node, graft_opaque *opaque)
{
    const int64_t rank = opaque->in[2].rank;
    return graft_foreign_read_axis(node, opaque, rank, rank) && node->n_input % 3 == 2;
}

bool graft_foreign_join_shape(const graft_opaque *opaque, graft_shape *shape)
{
    bool fits = graft_foreign_beside(opaque, 2, 3, shape) && graft_foreign_is_byte(shape->dtype);
    for (uint32_t k = 2; k < opaque->read_count && fits; k += 3) {
        fits = has_scale(opaque, k + 1, shape->dtype);
    }
    return fits && has_scale(opaque, 0, shape->dtype);
}

GRAFT_FOREIGN_RUNNER(join)
{
    const graft_blocks b = graft_blocks_of(&opaque->out, (int32_t)opaque->axis);
    size_t at = 0;
    for (uint32_t k = 2; k < opaque->read_count; k += 3) {
        const size_t piece = (size_t)opaque->in[k].dims[opaque->axis] * b.inner;
        byte_table table;
        for (uint32_t i = 0; i < sizeof(table); i++) {
            table.made[i] = round_byte(meant_by(opaque, k, i) / scale_at(opaque, 0),
                                       zero_at(opaque, 1, 0), opaque->out.dtype);
        }
        for (size_t i = 0; i < b.outer; i++) {
            look_up(&table, (const uint8_t *)opaque->data[k] + i * piece, piece,
                    (uint8_t *)out + i * b.size * b.inner + at);
        }
        at += piece;
    }
    return GRAFT_OK;
}

/* -------------------------------------------------------------------- QLinearSoftmax */

enum { PART_FLAT = 1, OPSET_ONE_AXIS = 13 };

/* Before opset 13 all axes from one on are one. */
bool graft_foreign_read_part(const Onnx__NodeProto *node, graft_opaque *opaque)
{
    const int64_t rank = opaque->in[0].rank;
    const int64_t opset = graft_onnx_int(node, "opset", 0);
    int64_t axis = graft_onnx_int(node, "axis", opset < OPSET_ONE_AXIS ? 1 : -1);
    axis += axis < 0 ? rank : 0;
    opaque->axis = (uint32_t)axis;
    opaque->attrs[PART_FLAT] = opset < OPSET_ONE_AXIS;
    return opset > 0 && axis >= 0 && axis < rank;
}

bool graft_foreign_part_shape(const graft_opaque *opaque, graft_shape *shape)
{
    return graft_foreign_map_shape(opaque, shape);
}

/* Exponentials by table: of how far a byte is below the largest. */
GRAFT_FOREIGN_RUNNER(part)
{
    graft_blocks b = graft_blocks_of(&opaque->out, (int32_t)opaque->axis);
    float table[256];
    if (opaque->attrs[PART_FLAT] != 0) {
        b.size *= b.inner;
        b.inner = 1;
    }
    for (int32_t i = 0; i < 256; i++) {
        table[i] = expf(-(float)i * scale_at(opaque, 1));
    }
    for (size_t r = 0; r < b.outer * b.inner; r++) {
        const size_t first = r / b.inner * b.size * b.inner + r % b.inner;
        int64_t most = INT32_MIN;
        float sum = 0.0F;
        for (size_t i = 0; i < b.size; i++) {
            const int64_t x = graft_foreign_whole(opaque, 0, (uint32_t)(first + i * b.inner));
            most = x > most ? x : most;
        }
        for (size_t i = 0; i < b.size; i++) {
            sum += table[most - graft_foreign_whole(opaque, 0, (uint32_t)(first + i * b.inner))];
        }
        for (size_t i = 0; i < b.size; i++) {
            const size_t at = first + i * b.inner;
            const float part = table[most - graft_foreign_whole(opaque, 0, (uint32_t)at)] / sum;
            ((uint8_t *)out)[at] =
                round_byte(part / scale_at(opaque, 3), zero_at(opaque, 4, 0), opaque->out.dtype);
        }
    }
    return GRAFT_OK;
}

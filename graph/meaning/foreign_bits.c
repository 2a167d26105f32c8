/* foreign_bits.c - weights of a few bits, packed in bytes, with a scale and a zero point for each
 * block (com.microsoft): they stay packed, so that a model of many takes no more memory than its
 * file. */
#include "graph/meaning/foreign_rows.h"

#include "graph/base/share.h"
#include "graph/meaning/algebra.h"

#include <inttypes.h>
#include <string.h>

/* ----------------------------------------------------------------------- MatMulNBits */

enum { BITS_DEPTH = 1, BITS_COLUMNS, BITS_EACH, BITS_BLOCK, BITS_BIAS = 5, BITS_BLOCK_LEAST = 16 };
enum { ROWS_GATHERED = 1, ROWS_QUANTISED }; /* Axes: 0 and 1. */

static bool has_count(const graft_opaque *opaque, uint32_t k, uint32_t dtype, uint64_t count)
{
    return opaque->in[k].dtype == dtype && graft_shape_elements(&opaque->in[k]) == count;
}

static bool fits_bits(const graft_opaque *opaque)
{
    const int32_t each = opaque->attrs[BITS_EACH];
    const int32_t block = opaque->attrs[BITS_BLOCK];
    return (each == 2 || each == 4 || each == 8) && block >= BITS_BLOCK_LEAST &&
           (block & (block - 1)) == 0;
}

/* Columns of packed numbers. */
typedef struct {
    const uint8_t *data; /* (columns, blocks, bytes) */
    const float *scales; /* (columns, blocks), */
    const float *real_zeros;
    const uint8_t *zeros; /* likewise, packed, zero_bytes a column; both NULL: half of the range. */
    size_t blocks;
    size_t block;
    size_t bytes;
    size_t zero_bytes;
    uint32_t each; /* Bits. */
} packed;

/* Number `i` of a column or row: the lowest bits of a byte come first. */
static float packed_at(const uint8_t *data, size_t i, uint32_t each)
{
    const size_t bit = i * each;
    return (float)((uint32_t)data[bit / 8] >> bit % 8 & ((1U << each) - 1U));
}

static float zero_at(const packed *w, size_t c, size_t b)
{
    return w->real_zeros != NULL ? w->real_zeros[c * w->blocks + b]
           : w->zeros != NULL    ? packed_at(w->zeros + c * w->zero_bytes, b, w->each)
                                 : (float)(1U << (w->each - 1U));
}

/* How columns of `depth` numbers lie. */
static packed measure(const graft_opaque *opaque, int32_t depth)
{
    packed w = {.block = (size_t)opaque->attrs[BITS_BLOCK],
                .each = (uint32_t)opaque->attrs[BITS_EACH]};
    w.blocks = ((size_t)depth + w.block - 1) / w.block;
    w.bytes = w.block * w.each / 8;
    w.zero_bytes = (w.blocks * w.each + 7) / 8;
    return w;
}

/* Input `k`, with scales and zero points at `s` and behind it. */
static packed packed_of(const graft_opaque *opaque, uint32_t k, uint32_t s, int32_t depth)
{
    const bool real = opaque->in[s + 1].dtype == GRAFT_DTYPE_F32;
    const void *zeros = graft_foreign_has(opaque, s + 1) ? opaque->data[s + 1] : NULL;
    packed w = measure(opaque, depth);
    w.data = opaque->data[k];
    w.scales = opaque->data[s];
    w.real_zeros = real ? zeros : NULL;
    w.zeros = real ? NULL : zeros;
    return w;
}

/* Zero points are packed as the columns are, or numbers of binary32. */
bool graft_foreign_bits_shape(const graft_opaque *opaque, graft_shape *shape)
{
    const uint64_t columns = (uint64_t)opaque->attrs[BITS_COLUMNS];
    *shape = opaque->in[0];
    if (!fits_bits(opaque) || opaque->attrs[BITS_COLUMNS] < 1 || shape->dtype != GRAFT_DTYPE_F32 ||
        shape->rank < 1 || shape->dims[shape->rank - 1] != opaque->attrs[BITS_DEPTH]) {
        return false;
    }
    const packed w = measure(opaque, opaque->attrs[BITS_DEPTH]);
    shape->dims[shape->rank - 1] = opaque->attrs[BITS_COLUMNS];
    return has_count(opaque, 1, GRAFT_DTYPE_U8, columns * w.blocks * w.bytes) &&
           has_count(opaque, 2, GRAFT_DTYPE_F32, columns * w.blocks) &&
           (!graft_foreign_has(opaque, 3) ||
            has_count(opaque, 3, GRAFT_DTYPE_U8, columns * w.zero_bytes) ||
            has_count(opaque, 3, GRAFT_DTYPE_F32, columns * w.blocks)) &&
           !graft_foreign_has(opaque, 4) &&
           (!graft_foreign_has(opaque, BITS_BIAS) ||
            has_count(opaque, BITS_BIAS, GRAFT_DTYPE_F32, columns));
}

/* A product by such a matrix. */
typedef struct {
    packed w;
    const float *x; /* (rows, depth), whole blocks. */
    size_t rows;
    size_t depth;
    const float *bias; /* By column; NULL: 0. */
    size_t columns;
    float *out; /* (rows, columns) */
} bits_product;

/* Eight numbers at once: GCC makes no vectors of a loop that shifts by 0 first. */
typedef int32_t eight_numbers __attribute__((vector_size(32)));
typedef float eight_floats __attribute__((vector_size(32)));
typedef uint8_t eight_bytes __attribute__((vector_size(8)));
/* A block has a multiple of both; rows that a column is unpacked for at once. */
enum { BITS_LANES = 8, BITS_CHAINS = 2, BITS_ROWS = 8 };

static inline __attribute__((always_inline)) void
unpack_eight(const uint8_t *data, const uint32_t each, eight_floats *out)
{
    static const eight_numbers places = {0, 1, 2, 3, 4, 5, 6, 7};
    eight_bytes bytes = {0};
    uint32_t word = 0;
    if (each == 8) {
        memcpy(&bytes, data, sizeof(bytes));
        *out = __builtin_convertvector(bytes, eight_floats);
        return;
    }
    for (uint32_t k = 0; k < each; k++) {
        word |= (uint32_t)data[k] << 8 * k;
    }
    const int32_t most = (int32_t)((1U << each) - 1U);
    const eight_numbers all = (eight_numbers){0} + (int32_t)word;
    *out = __builtin_convertvector(all >> places * (int32_t)each & most, eight_floats);
}

/* A column by `rows` rows of x from `first` on. */
static inline __attribute__((always_inline)) void multiply_column(const bits_product *p, size_t c,
                                                                  size_t first, const size_t rows,
                                                                  const uint32_t each)
{
    const size_t chains = rows == 1 ? BITS_CHAINS : 1; /* Several rows do not wait for one. */
    eight_floats sums[BITS_ROWS][BITS_CHAINS] = {{{0.0F}}};
    const float *x = p->x + first * p->depth;
    for (size_t b = 0; b < p->w.blocks; b++) {
        const float zero = zero_at(&p->w, c, b);
        const float scale = p->w.scales[c * p->w.blocks + b];
        const uint8_t *data = p->w.data + (c * p->w.blocks + b) * p->w.bytes;
        for (size_t i = 0; i < p->w.block; i += BITS_LANES * BITS_CHAINS) {
            for (size_t k = 0; k < BITS_CHAINS; k++, data += each) {
                const float *left = x + b * p->w.block + i + k * BITS_LANES;
                eight_floats w;
                unpack_eight(data, each, &w);
                w = (w - zero) * scale;
                for (size_t r = 0; r < rows; r++) {
                    eight_floats given;
                    memcpy(&given, left + r * p->depth, sizeof(given));
                    sums[r][k % chains] += given * w;
                }
            }
        }
    }
    for (size_t r = 0; r < rows; r++) {
        const eight_floats all = sums[r][0] + sums[r][1];
        float sum = p->bias == NULL ? 0.0F : p->bias[c];
        for (size_t k = 0; k < BITS_LANES; k++) {
            sum += all[k];
        }
        p->out[(first + r) * p->columns + c] = sum;
    }
}

static inline __attribute__((always_inline)) void
multiply_columns(const bits_product *p, graft_range own, const uint32_t each)
{
    for (size_t c = (size_t)own.from; c < (size_t)own.to; c++) {
        size_t row = 0;
        for (; row + BITS_ROWS <= p->rows; row += BITS_ROWS) {
            multiply_column(p, c, row, BITS_ROWS, each);
        }
        for (; row < p->rows; row++) {
            multiply_column(p, c, row, 1, each);
        }
    }
}

static void multiply_some(const void *work, uint32_t part, uint32_t parts)
{
    const bits_product *p = work;
    const graft_range own = graft_range_part((int64_t)p->columns, 1, part, parts);
    if (p->w.each == 2) {
        multiply_columns(p, own, 2);
    } else if (p->w.each == 4) {
        multiply_columns(p, own, 4);
    } else {
        multiply_columns(p, own, 8);
    }
}

/* Rows filled up with 0, where they end inside of a block. */
static const float *fill_blocks(graft_arena *scratch, const float *x, size_t rows, size_t depth,
                                size_t room)
{
    if (room == depth) {
        return x;
    }
    float *filled = GRAFT_NEW(scratch, float, rows *room);
    for (size_t i = 0; i < rows; i++) {
        memcpy(filled + i * room, x + i * depth, depth * sizeof(x[0]));
    }
    return filled;
}

GRAFT_FOREIGN_RUNNER(bits)
{
    GRAFT_SCOPED(env->scratch);
    bits_product p = {
        .w = packed_of(opaque, 1, 2, opaque->attrs[BITS_DEPTH]),
        .rows = graft_count(&opaque->out) / (size_t)opaque->attrs[BITS_COLUMNS],
        .bias = graft_foreign_has(opaque, BITS_BIAS) ? opaque->data[BITS_BIAS] : NULL,
        .columns = (size_t)opaque->attrs[BITS_COLUMNS],
        .out = out,
    };
    p.depth = p.w.blocks * p.w.block;
    p.x = fill_blocks(env->scratch, opaque->data[0], p.rows, (size_t)opaque->attrs[BITS_DEPTH],
                      p.depth);
    graft_share(opaque->threads, multiply_some, &p);
    return GRAFT_OK;
}

/* ----------------------------------------------------------------- GatherBlockQuantized */

/* Rows of a matrix, packed and quantised along their length. */

static int32_t row_depth(const graft_opaque *opaque)
{
    return opaque->in[0].dims[1] * (8 / opaque->attrs[BITS_EACH]);
}

bool graft_foreign_rows_shape(const graft_opaque *opaque, graft_shape *shape)
{
    const graft_shape *data = &opaque->in[0];
    const int32_t along = opaque->attrs[ROWS_QUANTISED];
    if (data->rank != 2 || data->dtype != GRAFT_DTYPE_U8 || data->dims[1] > INT32_MAX / 8 ||
        opaque->attrs[ROWS_GATHERED] != 0 || (along != 1 && along != -1) || !fits_bits(opaque)) {
        return false;
    }
    const packed w = measure(opaque, row_depth(opaque));
    const uint64_t rows = (uint64_t)data->dims[0];
    const uint8_t type = opaque->in[1].dtype;
    const uint32_t last = opaque->in[1].rank;
    *shape = opaque->in[1];
    shape->dtype = GRAFT_DTYPE_F32;
    shape->rank = (uint8_t)(last + 1);
    return (type == GRAFT_DTYPE_I32 || type == GRAFT_DTYPE_I64) && last < GRAFT_MAX_RANK &&
           graft_foreign_size(shape, last, row_depth(opaque)) &&
           has_count(opaque, 2, GRAFT_DTYPE_F32, rows * w.blocks) &&
           (!graft_foreign_has(opaque, 3) ||
            has_count(opaque, 3, GRAFT_DTYPE_U8, rows * w.zero_bytes));
}

GRAFT_FOREIGN_RUNNER(rows)
{
    const size_t depth = (size_t)row_depth(opaque);
    const packed w = packed_of(opaque, 0, 2, row_depth(opaque));
    const int64_t rows = opaque->in[0].dims[0];
    float *to = out;
    for (uint32_t i = 0; i < (uint32_t)graft_count(&opaque->in[1]); i++, to += depth) {
        const int64_t place = graft_foreign_whole(opaque, 1, i);
        const int64_t row = place + (place < 0 ? rows : 0);
        GRAFT_RETURN_IF(row < 0 || row >= rows,
                        GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                                   "place %" PRId64 " lies outside of a table of %" PRId64 " rows",
                                   place, rows));
        const uint8_t *data = w.data + (size_t)row * (size_t)opaque->in[0].dims[1];
        for (size_t k = 0; k < depth; k++) {
            const size_t b = k / w.block;
            to[k] = (packed_at(data, k, w.each) - zero_at(&w, (size_t)row, b)) *
                    w.scales[(size_t)row * w.blocks + b];
        }
    }
    return GRAFT_OK;
}

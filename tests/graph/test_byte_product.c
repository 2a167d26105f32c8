/* test_byte_product.c - products of bytes with zero points against the plain sum, of sizes that
 * fill panels and tiles and such as do not, of all types and layouts. */
#include "graph/base/rng.h"
#include "graph/meaning/byte_product.h"
#include "tests/support/build.h"
#include "tests/support/check.h"

#include <string.h>

typedef struct {
    size_t rows;
    size_t depth;
    size_t columns;
} sizes;

static int32_t byte_at(const uint8_t *data, uint32_t dtype, size_t i)
{
    return dtype == GRAFT_DTYPE_I8 ? (int8_t)data[i] : data[i];
}

static uint8_t *draw(graft_arena *arena, graft_rng *rng, size_t count)
{
    uint8_t *data = GRAFT_NEW(arena, uint8_t, count);
    for (size_t i = 0; i < count; i++) {
        data[i] = (uint8_t)graft_rng_below(rng, 256);
    }
    return data;
}

/* `form`: a bit each for the types, a zero point for each column, none, the matrix turned, results
 * turned, a zero point for each row. */
static void check_product(graft_arena *arena, graft_rng *rng, const sizes *s, uint32_t form)
{
    const uint32_t left = (form & 1U) != 0 ? GRAFT_DTYPE_I8 : GRAFT_DTYPE_U8;
    const uint32_t right = (form & 2U) != 0 ? GRAFT_DTYPE_I8 : GRAFT_DTYPE_U8;
    const bool turned = (form & 16U) != 0;
    const size_t bytes = graft_byte_row_bytes(s->depth);
    const uint8_t *a = draw(arena, rng, s->rows * s->depth);
    const uint8_t *b = draw(arena, rng, s->depth * s->columns);
    const uint8_t *b_zeros = draw(arena, rng, s->columns);
    const uint8_t *a_zeros = draw(arena, rng, s->rows);
    int32_t *zeros = GRAFT_NEW(arena, int32_t, s->rows);
    int32_t *out = GRAFT_NEW(arena, int32_t, s->rows * s->columns);
    uint8_t *data = GRAFT_NEW(arena, uint8_t, s->rows * bytes);
    const graft_byte_rows rows = {
        .data = data, .zeros = zeros, .zero_step = (form & 64U) != 0 ? 1 : 0, .count = s->rows};
    for (size_t m = 0; m < s->rows; m++) {
        graft_byte_fill(a, left, m * s->depth, 1, s->depth, data + m * bytes);
        zeros[m] = byte_at(a_zeros, left, m) + (left == GRAFT_DTYPE_I8 ? 128 : 0);
    }
    const graft_byte_matrix given = {
        .data = b,
        .zeros = (form & 8U) != 0 ? NULL : b_zeros,
        .dtype = right,
        .depth = s->depth,
        .columns = s->columns,
        .depth_step = turned ? 1 : s->columns,
        .column_step = turned ? s->depth : 1,
        .zero_step = (form & 4U) != 0 ? 1 : 0,
    };
    const graft_byte_panels panels = graft_byte_pack(arena, &given);
    const bool across = (form & 32U) != 0;
    const size_t row_step = across ? 1 : s->columns;
    const size_t column_step = across ? s->rows : 1;
    graft_byte_multiply(1 + (int)(form % 3), &rows, &panels, row_step, column_step, out);
    for (size_t i = 0; i < s->rows * s->columns; i++) {
        const size_t m = i / s->columns;
        const size_t n = i % s->columns;
        const int32_t a_zero = byte_at(a_zeros, left, m * rows.zero_step);
        const int32_t b_zero =
            given.zeros == NULL ? 0 : byte_at(b_zeros, right, n * given.zero_step);
        int32_t sum = 0;
        for (size_t k = 0; k < s->depth; k++) {
            const size_t at = k * given.depth_step + n * given.column_step;
            sum += (byte_at(a, left, m * s->depth + k) - a_zero) * (byte_at(b, right, at) - b_zero);
        }
        assert_int_equal(out[m * row_step + n * column_step], sum);
    }
}

CHECK_CASE(test_sizes)
{
    static const sizes all[] = {
        {1,  1,    1 },
        {1,  512,  64},
        {3,  5,    7 },
        {4,  8,    32},
        {8,  4,    33},
        {13, 27,   31},
        {29, 66,   97},
        {20, 3,    64},
        {67, 1029, 18}
    };
    graft_rng rng = check_rng(41);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        for (uint32_t form = 0; form < 128; form++) {
            graft_arena_reset(env->unit);
            check_product(env->unit, &rng, &all[i], form);
        }
    }
}

/* The largest products of one sign: those that 16 bits cannot add two of; and a sum that wraps. */
CHECK_CASE(test_extremes)
{
    enum { DEPTH = 1 << 16 };
    uint8_t *ones = GRAFT_NEW(env->unit, uint8_t, DEPTH);
    memset(ones, 255, DEPTH);
    const int32_t zero = 0;
    const uint8_t none = 0;
    const graft_byte_matrix given = {.data = ones,
                                     .zeros = &none,
                                     .dtype = GRAFT_DTYPE_U8,
                                     .depth = DEPTH,
                                     .columns = 1,
                                     .depth_step = 1,
                                     .column_step = 1};
    const graft_byte_panels panels = graft_byte_pack(env->unit, &given);
    const graft_byte_rows rows = {.data = ones, .zeros = &zero, .count = 1};
    int32_t out = 0;
    graft_byte_multiply(1, &rows, &panels, 1, 1, &out);
    assert_int_equal(out, (int32_t)(255U * 255U * (uint32_t)DEPTH));
}

/* winograd_product.c - the matrix products inside Winograd's convolution (see winograd.h).
 *
 * A block of rows and columns of the result stays in registers while the sum runs over k. The right
 * side, the filter, is read from far away once, by the first block of rows; the others find it in
 * the second-level cache, so while they compute, the next right side is fetched, a line a step. */
#include "cost/cpu/lanes.h"
#include "cost/cpu/winograd.h"

/* Vectors of a block; with a vector or more of the right side they fill the registers. */
#if defined(__AVX512F__)
enum { BLOCK = 24, WIDE = 4, NARROW = 2 };
#else
enum { BLOCK = 12, WIDE = 2, NARROW = 2 };
#endif
enum { MOST_ROWS = BLOCK / NARROW, LINE = 16 };

/* `rows` and `vectors` are constants where this is called, so that all sums are registers. `ahead`
 * is fetched, a line per step. */
LANES_INLINE void multiply_block(const graft_winograd_product *p, int64_t row, int64_t column,
                                 const float *ahead, const int rows, const int vectors)
{
    const float *left = p->left + row * p->left_step;
    const float *right = p->right + column;
    float *out = p->out + row * p->width + column;
    lanes sums[MOST_ROWS][WIDE];
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < vectors; v++) {
            sums[r][v] = p->adds ? lanes_load(out + r * p->width + v * LANES) : lanes_of(0.0F);
        }
    }
#pragma GCC unroll 4
    for (int64_t k = 0; k < p->depth; k++) {
        lanes b[WIDE];
        __builtin_prefetch(ahead + k * LINE);
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            b[v] = lanes_load(right + k * p->width + v * LANES);
        }
#pragma GCC unroll 12
        for (int r = 0; r < rows; r++) {
            lanes a = lanes_of(left[r * p->left_step + k]);
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++) {
                sums[r][v] = lanes_fused(a, b[v], sums[r][v]);
            }
        }
    }
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < vectors; v++) {
            lanes_store(out + r * p->width + v * LANES, sums[r][v]);
        }
    }
}

#define CASE(count, vectors)                                                                       \
    case count:                                                                                    \
        multiply_block(p, row, column, ahead, (count), (vectors));                                 \
        break

static void multiply_wide(const graft_winograd_product *p, int64_t row, int64_t rows,
                          int64_t column, const float *ahead)
{
    switch (rows) {
        CASE(1, WIDE);
        CASE(2, WIDE);
        CASE(3, WIDE);
        CASE(4, WIDE);
        CASE(5, WIDE);
    default:
        multiply_block(p, row, column, ahead, BLOCK / WIDE, WIDE);
        break;
    }
}

#if defined(__AVX512F__)
static void multiply_narrow(const graft_winograd_product *p, int64_t row, int64_t rows,
                            const float *ahead)
{
    const int64_t column = 0;
    switch (rows) {
        CASE(1, NARROW);
        CASE(2, NARROW);
        CASE(3, NARROW);
        CASE(4, NARROW);
        CASE(5, NARROW);
        CASE(6, NARROW);
        CASE(7, NARROW);
        CASE(8, NARROW);
        CASE(9, NARROW);
        CASE(10, NARROW);
        CASE(11, NARROW);
    default:
        multiply_block(p, row, column, ahead, BLOCK / NARROW, NARROW);
        break;
    }
}
#else
#define multiply_narrow(p, row, rows, ahead) multiply_wide(p, row, rows, 0, ahead)
#endif

void graft_winograd_multiply(const graft_winograd_product *p)
{
    bool wide = p->width >= (int64_t)WIDE * LANES;
    int64_t tall = wide ? BLOCK / WIDE : BLOCK / NARROW;
    int64_t blocks = (p->rows + tall - 1) / tall;
    int64_t columns = wide ? (int64_t)WIDE * LANES : p->width;
    int64_t fetched = 0; /* Lines, of depth * width / LINE. */
    for (int64_t column = 0; column < p->width; column += columns) {
        for (int64_t i = 0; i < blocks; i++) {
            int64_t row = p->rows * i / blocks; /* Shared out evenly. */
            int64_t rows = p->rows * (i + 1) / blocks - row;
            const float *ahead =
                fetched < p->width / LINE ? p->next + fetched * p->depth * LINE : p->right;
            fetched++;
            if (wide) {
                multiply_wide(p, row, rows, column, ahead);
            } else {
                multiply_narrow(p, row, rows, ahead);
            }
        }
    }
}

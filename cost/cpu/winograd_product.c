/* winograd_product.c - the matrix products inside Winograd's convolution (see winograd.h).
 *
 * A block of rows and columns of the result stays in registers while the sum runs over k. The right
 * side, the filter, is read from far away once, by the first block of rows; the others find it in
 * the second-level cache, so while they compute, the next right side is fetched, a line a step. */
#include "cost/cpu/lanes.h"
#include "cost/cpu/winograd.h"

/* Vectors of a block; with a vector or more of the right side they fill the registers. */
#if defined(__AVX512F__)
enum { BLOCK = 24, WIDE = 4 };
#else
enum { BLOCK = 12, WIDE = 2 };
#endif
enum { MOST_ROWS = 12, LINE = 16 };

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
    case (vectors) * (MOST_ROWS + 1) + (count):                                                    \
        multiply_block(p, row, column, ahead, (count), (vectors));                                 \
        break
#define SIX(vectors)                                                                               \
    CASE(1, vectors);                                                                              \
    CASE(2, vectors);                                                                              \
    CASE(3, vectors);                                                                              \
    CASE(4, vectors);                                                                              \
    CASE(5, vectors);                                                                              \
    CASE(6, vectors)
#define TWELVE(vectors)                                                                            \
    SIX(vectors);                                                                                  \
    CASE(7, vectors);                                                                              \
    CASE(8, vectors);                                                                              \
    CASE(9, vectors);                                                                              \
    CASE(10, vectors);                                                                             \
    CASE(11, vectors);                                                                             \
    CASE(12, vectors)

static void multiply_rows(const graft_winograd_product *p, int64_t row, int64_t rows,
                          int64_t column, int64_t vectors, const float *ahead)
{
    switch (vectors * (MOST_ROWS + 1) + rows) {
        SIX(WIDE);
#if defined(__AVX512F__)
        TWELVE(2);
#endif
        TWELVE(1);
    default:
        break; /* There are no others. */
    }
}

void graft_winograd_multiply(const graft_winograd_product *p)
{
    int64_t fetched = 0; /* Lines, of depth * width / LINE. */
    int64_t vectors = WIDE;
    for (int64_t column = 0; column < p->width; column += vectors * LANES) {
        while (vectors * LANES > p->width - column) {
            vectors /= 2;
        }
        const int64_t most = BLOCK / vectors < MOST_ROWS ? BLOCK / vectors : MOST_ROWS;
        const int64_t blocks = (p->rows + most - 1) / most;
        for (int64_t i = 0; i < blocks; i++) {
            int64_t row = p->rows * i / blocks; /* Shared out evenly. */
            int64_t rows = p->rows * (i + 1) / blocks - row;
            const float *ahead =
                fetched < p->width / LINE ? p->next + fetched * p->depth * LINE : p->right;
            fetched++;
            multiply_rows(p, row, rows, column, vectors, ahead);
        }
    }
}

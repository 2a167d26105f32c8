/* byte_product.c - see byte_product.h. */
#include "graph/meaning/byte_product.h"

#include "graft/graft.h"

#include <string.h>

#ifdef __AVX512VNNI__
#include <immintrin.h>
enum { WIDTH = 32 }; /* Columns of a panel. */
#else
enum { WIDTH = 8 };
#endif

enum { PART = 4, ROWS = 8, SIGN = 128 };

size_t graft_byte_row_bytes(size_t depth) { return (depth + PART - 1) / PART * PART; }

static size_t count_panels(size_t columns) { return (columns + WIDTH - 1) / WIDTH; }

static int32_t signed_byte(const void *data, uint32_t dtype, size_t i)
{
    return dtype == GRAFT_DTYPE_I8 ? ((const int8_t *)data)[i] : ((const uint8_t *)data)[i] - SIGN;
}

/* Without VNNI columns lie behind one another. */
static size_t place_in_panel(size_t k, size_t n, size_t bytes)
{
#ifdef __AVX512VNNI__
    (void)bytes;
    return k / PART * PART * WIDTH + n * PART + k % PART;
#else
    return n * bytes + k;
#endif
}

graft_byte_panels graft_byte_pack(graft_arena *arena, const graft_byte_matrix *b)
{
    const size_t bytes = graft_byte_row_bytes(b->depth);
    graft_byte_panels p = {.depth = b->depth, .columns = b->columns};
    p.data = GRAFT_NEW(arena, graft_byte_packed, count_panels(b->columns) * bytes * WIDTH);
    p.zeros = GRAFT_NEW(arena, int32_t, b->columns);
    p.sums = GRAFT_NEW(arena, int32_t, b->columns);
    for (size_t n = 0; n < b->columns; n++) {
        p.zeros[n] = b->zeros == NULL ? (b->dtype == GRAFT_DTYPE_I8 ? 0 : -SIGN)
                                      : signed_byte(b->zeros, b->dtype, n * b->zero_step);
    }
    for (size_t k = 0; k < b->depth; k++) {
        for (size_t n = 0; n < b->columns; n++) {
            const size_t from = k * b->depth_step + n * b->column_step;
            const int32_t number = signed_byte(b->data, b->dtype, from);
            graft_byte_packed *panel = p.data + n / WIDTH * WIDTH * bytes;
            panel[place_in_panel(k, n % WIDTH, bytes)] = (graft_byte_packed)number;
            p.sums[n] = (int32_t)((uint32_t)p.sums[n] + (uint32_t)(number - p.zeros[n]));
        }
    }
    return p;
}

void graft_byte_fill(const void *data, uint32_t dtype, size_t first, size_t step, size_t count,
                     uint8_t *row)
{
    const uint8_t sign = dtype == GRAFT_DTYPE_I8 ? SIGN : 0;
    const uint8_t *from = (const uint8_t *)data + first;
    for (size_t i = 0; i < count; i++) {
        row[i] = from[i * step] ^ sign;
    }
}

/* Sums of products of `rows` rows, `bytes` apart, with one panel. */
#ifdef __AVX512VNNI__
static inline __attribute__((always_inline)) void
multiply_rows(const uint8_t *a, const int8_t *panel, size_t bytes, const int rows, int32_t *tile)
{
    enum { VECTOR = 64, VECTORS = WIDTH * PART / VECTOR };
    __m512i sums[ROWS][VECTORS];
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < VECTORS; v++) {
            sums[r][v] = _mm512_setzero_si512();
        }
    }
    for (size_t k = 0; k < bytes; k += PART) {
        __m512i right[VECTORS];
        for (int v = 0; v < VECTORS; v++) {
            right[v] = _mm512_loadu_si512(panel + k * WIDTH + v * VECTOR);
        }
        for (int r = 0; r < rows; r++) {
            int32_t four = 0;
            memcpy(&four, a + (size_t)r * bytes + k, sizeof(four));
            for (int v = 0; v < VECTORS; v++) {
                sums[r][v] = _mm512_dpbusd_epi32(sums[r][v], _mm512_set1_epi32(four), right[v]);
            }
        }
    }
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < VECTORS; v++) {
            _mm512_storeu_si512(tile + r * WIDTH + v * (WIDTH / VECTORS), sums[r][v]);
        }
    }
}
#else
/* Compilers make a vector of it. */
static int32_t sum_products(const int16_t *a, const int16_t *b, size_t count)
{
    uint32_t sum = 0;
    for (size_t k = 0; k < count; k++) {
        sum += (uint32_t)((int32_t)a[k] * b[k]);
    }
    return (int32_t)sum;
}

static void multiply_rows(const uint8_t *a, const int16_t *panel, size_t bytes, size_t rows,
                          int32_t *tile)
{
    enum { STRIP = 1024 };
    memset(tile, 0, rows * WIDTH * sizeof(tile[0]));
    for (size_t first = 0; first < bytes; first += STRIP) {
        const size_t count = bytes - first < STRIP ? bytes - first : STRIP;
        for (size_t r = 0; r < rows; r++) {
            int16_t left[STRIP];
            for (size_t k = 0; k < count; k++) {
                left[k] = a[r * bytes + first + k];
            }
            for (size_t n = 0; n < WIDTH; n++) {
                const int32_t sum = sum_products(left, panel + n * bytes + first, count);
                tile[r * WIDTH + n] = (int32_t)((uint32_t)tile[r * WIDTH + n] + (uint32_t)sum);
            }
        }
    }
}
#endif

/* Returns for how many of `count` rows it did so. */
static size_t multiply_some(const uint8_t *a, const graft_byte_packed *panel, size_t bytes,
                            size_t count, int32_t *tile)
{
    if (count >= ROWS) {
        multiply_rows(a, panel, bytes, ROWS, tile);
        return ROWS;
    }
    if (count >= ROWS / 2) {
        multiply_rows(a, panel, bytes, ROWS / 2, tile);
        return ROWS / 2;
    }
    multiply_rows(a, panel, bytes, 1, tile);
    return 1;
}

/* What zero points make of the sums of `row`; `sum`: of its bytes. */
static void correct(const graft_byte_panels *b, size_t first, size_t width, int32_t sum,
                    int32_t zero, int32_t *row)
{
    for (size_t n = 0; n < width; n++) {
        row[n] = (int32_t)((uint32_t)row[n] - (uint32_t)b->zeros[first + n] * (uint32_t)sum -
                           (uint32_t)b->sums[first + n] * (uint32_t)zero);
    }
}

static int32_t *sum_rows(graft_arena *scratch, const graft_byte_rows *a, size_t bytes)
{
    int32_t *sums = GRAFT_NEW(scratch, int32_t, a->count);
    for (size_t m = 0; m < a->count; m++) {
        uint32_t sum = 0;
        for (size_t k = 0; k < bytes; k++) {
            sum += a->data[m * bytes + k];
        }
        sums[m] = (int32_t)sum;
    }
    return sums;
}

/* (rows, width) of a tile to where they belong. */
static void deliver(const int32_t *tile, size_t rows, size_t width, size_t row_step,
                    size_t column_step, int32_t *out)
{
    for (size_t m = 0; m < rows && column_step == 1; m++) {
        memcpy(out + m * row_step, tile + m * WIDTH, width * sizeof(out[0]));
    }
    for (size_t n = 0; n < width && column_step != 1; n++) {
        for (size_t m = 0; m < rows; m++) {
            out[m * row_step + n * column_step] = tile[m * WIDTH + n];
        }
    }
}

void graft_byte_multiply(graft_arena *scratch, const graft_byte_rows *a, const graft_byte_panels *b,
                         size_t row_step, size_t column_step, int32_t *out)
{
    GRAFT_SCOPED(scratch);
    const size_t bytes = graft_byte_row_bytes(b->depth);
    const int32_t *sums = sum_rows(scratch, a, bytes);
    for (size_t first = 0; first < b->columns; first += WIDTH) {
        const size_t width = b->columns - first < WIDTH ? b->columns - first : WIDTH;
        for (size_t m = 0; m < a->count;) {
            int32_t tile[ROWS * WIDTH];
            const size_t rows = multiply_some(a->data + m * bytes, b->data + first * bytes, bytes,
                                              a->count - m, tile);
            for (size_t r = 0; r < rows; r++) {
                correct(b, first, width, sums[m + r], a->zeros[(m + r) * a->zero_step],
                        tile + r * WIDTH);
            }
            deliver(tile, rows, width, row_step, column_step,
                    out + m * row_step + first * column_step);
            m += rows;
        }
    }
}

/* byte_product.c - see byte_product.h. */
#include "graph/meaning/byte_product.h"

#include "graft/graft.h"
#include "graph/base/share.h"

#include <string.h>

#ifdef __AVX2__
#include <immintrin.h>
#endif

/* Columns of a panel, rows of it that one instruction multiplies, rows that are multiplied at once:
 * as many as registers hold the sums of. */
#ifdef __AVX512VNNI__
enum { WIDTH = 32, TOGETHER = 4, ROWS = 8 };
#else
enum { WIDTH = 16, TOGETHER = 2, ROWS = 6 };
#endif

enum { PART = 4, BLOCK = 96, SIGN = 128 };

size_t graft_byte_row_bytes(size_t depth) { return (depth + PART - 1) / PART * PART; }

static size_t count_panels(size_t columns) { return (columns + WIDTH - 1) / WIDTH; }

static int32_t signed_byte(const void *data, uint32_t dtype, size_t i)
{
    return dtype == GRAFT_DTYPE_I8 ? ((const int8_t *)data)[i] : ((const uint8_t *)data)[i] - SIGN;
}

static size_t place_in_panel(size_t k, size_t n)
{
    return k / TOGETHER * TOGETHER * WIDTH + n * TOGETHER + k % TOGETHER;
}

size_t graft_byte_packed_bytes(size_t depth, size_t columns)
{
    return 2 * columns * sizeof(int32_t) +
           count_panels(columns) * graft_byte_row_bytes(depth) * WIDTH;
}

graft_byte_panels graft_byte_panels_in(const void *memory, size_t depth, size_t columns)
{
    const int32_t *numbers = memory;
    return (graft_byte_panels){.depth = depth,
                               .columns = columns,
                               .zeros = numbers,
                               .sums = numbers + columns,
                               .data = (const int8_t *)(numbers + 2 * columns)};
}

static size_t depth_place(const graft_byte_matrix *b, size_t k)
{
    return b->depth_turn == 0 ? k * b->depth_step
                              : k % b->depth_turn * b->depth_step + k / b->depth_turn;
}

graft_byte_panels graft_byte_pack_into(void *memory, const graft_byte_matrix *b)
{
    const size_t bytes = graft_byte_row_bytes(b->depth);
    int32_t *zeros = memory;
    int32_t *sums = zeros + b->columns;
    int8_t *data = (int8_t *)(sums + b->columns);
    memset(memory, 0, graft_byte_packed_bytes(b->depth, b->columns));
    for (size_t n = 0; n < b->columns; n++) {
        zeros[n] = b->zeros == NULL ? (b->dtype == GRAFT_DTYPE_I8 ? 0 : -SIGN)
                                    : signed_byte(b->zeros, b->dtype, n * b->zero_step);
    }
    for (size_t k = 0; k < b->depth; k++) {
        for (size_t n = 0; n < b->columns; n++) {
            const size_t from = depth_place(b, k) + n * b->column_step;
            const int32_t number = signed_byte(b->data, b->dtype, from);
            int8_t *panel = data + n / WIDTH * WIDTH * bytes;
            panel[place_in_panel(k, n % WIDTH)] = (int8_t)number;
            sums[n] = (int32_t)((uint32_t)sums[n] + (uint32_t)(number - zeros[n]));
        }
    }
    return graft_byte_panels_in(memory, b->depth, b->columns);
}

graft_byte_panels graft_byte_pack(graft_arena *arena, const graft_byte_matrix *b)
{
    const size_t count = graft_byte_packed_bytes(b->depth, b->columns) / sizeof(int32_t);
    return graft_byte_pack_into(GRAFT_NEW(arena, int32_t, count), b);
}

void graft_byte_fill(const void *data, uint32_t dtype, size_t first, size_t step, size_t count,
                     uint8_t *row)
{
    const uint8_t sign = dtype == GRAFT_DTYPE_I8 ? SIGN : 0;
    const uint8_t *from = (const uint8_t *)data + first;
    if (step == 1) {
        for (size_t i = 0; i < count; i++) {
            row[i] = from[i] ^ sign;
        }
        return;
    }
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
/* SUMS sums, what is multiplied for them of a panel, and two terms of a row for all of them. */
#ifdef __AVX2__
enum { SUMS = 8 };
typedef __m256i sums_of;
typedef __m256i taken;
typedef __m256i taken_left;

static inline sums_of load_sums(const int32_t *sums)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)sums);
}

static inline void store_sums(int32_t *sums, sums_of made)
{
    _mm256_storeu_si256((__m256i *)(void *)sums, made);
}

static inline taken take_two(const int8_t *two)
{
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)two));
}

static inline taken_left take_left(const int16_t *two)
{
    int32_t both = 0;
    memcpy(&both, two, sizeof(both));
    return _mm256_set1_epi32(both);
}

static inline sums_of add_two(sums_of sums, taken_left left, taken right)
{
    return _mm256_add_epi32(sums, _mm256_madd_epi16(left, right));
}
#else
enum { SUMS = 1 };
typedef int32_t sums_of;
typedef const int8_t *taken;
typedef const int16_t *taken_left;

static inline sums_of load_sums(const int32_t *sums) { return *sums; }
static inline void store_sums(int32_t *sums, sums_of made) { *sums = made; }
static inline taken take_two(const int8_t *two) { return two; }
static inline taken_left take_left(const int16_t *two) { return two; }

static inline sums_of add_two(sums_of sums, taken_left left, taken right)
{
    return (sums_of)((uint32_t)sums + (uint32_t)(left[0] * right[0] + left[1] * right[1]));
}
#endif

enum { STRIP = 512, VECTORS = WIDTH / SUMS };

/* `left`: STRIP apart. */
static inline __attribute__((always_inline)) void
add_strip(const int16_t *left, const int8_t *panel, size_t count, const size_t rows, int32_t *tile)
{
    sums_of sums[ROWS][VECTORS];
    for (size_t r = 0; r < rows; r++) {
        for (size_t v = 0; v < VECTORS; v++) {
            sums[r][v] = load_sums(tile + r * WIDTH + v * SUMS);
        }
    }
    for (size_t k = 0; k < count; k += TOGETHER) {
        taken right[VECTORS];
        for (size_t v = 0; v < VECTORS; v++) {
            right[v] = take_two(panel + k * WIDTH + v * SUMS * TOGETHER);
        }
        for (size_t r = 0; r < rows; r++) {
            const taken_left left_two = take_left(left + r * STRIP + k);
            for (size_t v = 0; v < VECTORS; v++) {
                sums[r][v] = add_two(sums[r][v], left_two, right[v]);
            }
            __asm__ volatile("" ::: "memory"); /* Loading all rows first, GCC spills the sums. */
        }
    }
    for (size_t r = 0; r < rows; r++) {
        for (size_t v = 0; v < VECTORS; v++) {
            store_sums(tile + r * WIDTH + v * SUMS, sums[r][v]);
        }
    }
}

static inline __attribute__((always_inline)) void
multiply_rows(const uint8_t *a, const int8_t *panel, size_t bytes, const size_t rows, int32_t *tile)
{
    int16_t left[ROWS * STRIP];
    memset(tile, 0, rows * WIDTH * sizeof(tile[0]));
    for (size_t first = 0; first < bytes; first += STRIP) {
        const size_t count = bytes - first < STRIP ? bytes - first : STRIP;
        for (size_t r = 0; r < rows; r++) {
            for (size_t k = 0; k < count; k++) {
                left[r * STRIP + k] = a[r * bytes + first + k];
            }
        }
        add_strip(left, panel + first * WIDTH, count, rows, tile);
    }
}
#endif

/* Returns for how many of `count` rows it did so. */
static size_t multiply_some(const uint8_t *a, const int8_t *panel, size_t bytes, size_t count,
                            int32_t *tile)
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

static int32_t sum_row(const uint8_t *row, size_t bytes)
{
    uint32_t sum = 0;
    for (size_t k = 0; k < bytes; k++) {
        sum += row[k];
    }
    return (int32_t)sum;
}

/* Sums of a row of a tile to where they belong, and `more` of each column. */
static inline __attribute__((always_inline)) void deliver(const int32_t *restrict tile,
                                                          const int32_t *restrict more,
                                                          const size_t width, size_t step,
                                                          int32_t *restrict out)
{
    for (size_t n = 0; n < width; n++) {
        out[n * step] = (int32_t)((uint32_t)tile[n] + (uint32_t)more[n]);
    }
}

/* What zero points make of the sums of a row; `sum`: of its bytes. */
static void find_more(const graft_byte_panels *b, size_t first, size_t width, int32_t zero,
                      int32_t sum, int32_t *more)
{
    for (size_t n = 0; n < width; n++) {
        more[n] = (int32_t)(0U - (uint32_t)b->zeros[first + n] * (uint32_t)sum -
                            (uint32_t)b->sums[first + n] * (uint32_t)zero);
    }
}

/* Some rows by panels. `sums` of their bytes, where they are summed: where the zero points of all
 * columns are 0, rows differ by their own alone. */
typedef struct {
    const graft_byte_rows *a;
    const graft_byte_panels *b;
    bool summed;
    const int32_t *sums;
    size_t from;
    size_t count;
    size_t row_step;
    size_t column_step;
    int32_t *out;
} block_product;

static void multiply_panel(const block_product *p, size_t first)
{
    const graft_byte_rows *a = p->a;
    const size_t bytes = graft_byte_row_bytes(p->b->depth);
    const size_t width = p->b->columns - first < WIDTH ? p->b->columns - first : WIDTH;
    int32_t tile[ROWS * WIDTH];
    int32_t more[WIDTH];
    size_t rows = 0;
    for (size_t m = 0; m < p->count; m += rows) {
        rows = multiply_some(a->data + (p->from + m) * bytes, p->b->data + first * bytes, bytes,
                             p->count - m, tile);
        for (size_t r = 0; r < rows; r++) {
            const size_t row = p->from + m + r;
            int32_t *to = p->out + row * p->row_step + first * p->column_step;
            if (p->summed || a->zero_step != 0 || m + r == 0) {
                find_more(p->b, first, width, a->zeros[row * a->zero_step],
                          p->summed ? p->sums[m + r] : 0, more);
            }
            if (width == WIDTH && p->column_step == 1) {
                deliver(tile + r * WIDTH, more, WIDTH, 1, to);
            } else {
                deliver(tile + r * WIDTH, more, width, p->column_step, to);
            }
        }
    }
}

static bool has_zeros(const graft_byte_panels *b)
{
    int32_t any = 0;
    for (size_t n = 0; n < b->columns; n++) {
        any |= b->zeros[n];
    }
    return any != 0;
}

/* Of a product: some rows, by the panels from column `first` to `end`. */
static void multiply_block(block_product *p, size_t first, size_t end)
{
    const size_t bytes = graft_byte_row_bytes(p->b->depth);
    int32_t sums[BLOCK];
    for (size_t m = 0; p->summed && m < p->count; m++) {
        sums[m] = sum_row(p->a->data + (p->from + m) * bytes, bytes);
    }
    p->sums = sums;
    for (; first < end; first += WIDTH) {
        multiply_panel(p, first);
    }
    p->sums = NULL;
}

/* Some of the rows, where there are many, else some of the panels. */
static void multiply_part(const void *work, uint32_t part, uint32_t parts)
{
    block_product p = *(const block_product *)work;
    const bool by_rows = p.a->count >= (size_t)parts * 2 * ROWS;
    const graft_range all = {0, (int64_t)(by_rows ? p.b->columns : p.a->count)};
    const graft_range own = by_rows ? graft_range_part((int64_t)p.a->count, ROWS, part, parts)
                                    : graft_range_part((int64_t)p.b->columns, WIDTH, part, parts);
    const graft_range rows = by_rows ? own : all;
    const graft_range columns = by_rows ? all : own;
    for (int64_t from = rows.from; from < rows.to; from += BLOCK) { /* Which stay in the caches. */
        p.from = (size_t)from;
        p.count = (size_t)(rows.to - from < BLOCK ? rows.to - from : BLOCK);
        multiply_block(&p, (size_t)columns.from, (size_t)columns.to);
    }
}

void graft_byte_multiply(int threads, const graft_byte_rows *a, const graft_byte_panels *b,
                         size_t row_step, size_t column_step, int32_t *out)
{
    block_product p = {
        .a = a, .b = b, .summed = has_zeros(b), .row_step = row_step, .column_step = column_step};
    p.out = out;
    graft_share(threads, multiply_part, &p);
}

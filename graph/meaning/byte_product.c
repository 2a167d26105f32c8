/* byte_product.c - see byte_product.h. */
#include "graph/meaning/byte_product.h"

#include "graft/graft.h"
#include "graph/base/share.h"

#include <string.h>

#ifdef __AVX2__
#include <immintrin.h>
#endif

/* Columns of a panel, rows of it that one instruction multiplies, rows that are multiplied at once:
 * as many as registers hold the sums of; rows that stay in the caches. */
#ifdef __AVX512VNNI__
enum { WIDTH = 32, TOGETHER = 4, ROWS = 8, BLOCK = 96 };
#else
enum { WIDTH = 16, TOGETHER = 2, ROWS = 6, BLOCK = 60 };
#endif

enum { PART = 4, SIGN = 128 };

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

/* Some rows by one panel. Rows are taken as they are with AVX-512 VNNI; else a strip of their terms
 * at a time, in 16 bits, which are made once for all panels. */
#ifdef __AVX512VNNI__
typedef uint8_t left_term;
#else
typedef int16_t left_term;
#endif

typedef struct {
    const left_term *left;
    size_t step; /* From row to row, likewise of what sums begin with and of where they go. */
    const int8_t *panel;
    size_t depth;
    const int32_t *start;
    size_t start_step;
    int32_t *out;
    size_t out_step;
} row_product;

#ifdef __AVX512VNNI__
enum { STRIP_ROOM = 1 };

static size_t strip_depth(size_t bytes) { return bytes; }
static size_t strip_step(size_t bytes) { return bytes; }

static const left_term *take_strip(const uint8_t *rows, size_t bytes, size_t depth, size_t count,
                                   left_term *room)
{
    (void)bytes, (void)depth, (void)count, (void)room;
    return rows;
}

static inline __attribute__((always_inline)) void multiply_rows(const row_product *p,
                                                                const int rows)
{
    enum { VECTOR = 64, VECTORS = WIDTH * PART / VECTOR };
    const row_product own = *p;
    __m512i sums[ROWS][VECTORS];
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < VECTORS; v++) {
            sums[r][v] =
                _mm512_loadu_si512(own.start + (size_t)r * own.start_step + v * (WIDTH / VECTORS));
        }
    }
    for (size_t k = 0; k < own.depth; k += PART) {
        __m512i right[VECTORS];
        for (int v = 0; v < VECTORS; v++) {
            right[v] = _mm512_loadu_si512(own.panel + k * WIDTH + v * VECTOR);
        }
        for (int r = 0; r < rows; r++) {
            int32_t four = 0;
            memcpy(&four, own.left + (size_t)r * own.step + k, sizeof(four));
            for (int v = 0; v < VECTORS; v++) {
                sums[r][v] = _mm512_dpbusd_epi32(sums[r][v], _mm512_set1_epi32(four), right[v]);
            }
        }
    }
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < VECTORS; v++) {
            _mm512_storeu_si512(own.out + (size_t)r * own.out_step + v * (WIDTH / VECTORS),
                                sums[r][v]);
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

enum { VECTORS = WIDTH / SUMS, STRIP = 512, STRIP_ROOM = BLOCK * STRIP };

/* Strips of a row are of about the same depth. */
static size_t strip_depth(size_t bytes)
{
    const size_t strips = (bytes + STRIP - 1) / STRIP;
    return graft_byte_row_bytes((bytes + strips - 1) / strips);
}

static size_t strip_step(size_t bytes)
{
    (void)bytes;
    return STRIP;
}

static inline __attribute__((always_inline)) void
widen(const uint8_t *restrict bytes, const size_t count, left_term *restrict terms)
{
    for (size_t k = 0; k < count; k++) {
        terms[k] = bytes[k];
    }
}

/* `depth` terms of `count` rows that are `bytes` apart: STRIP apart. Sixteen at once, the last of
 * which may lie over those before. */
static const left_term *take_strip(const uint8_t *rows, size_t bytes, size_t depth, size_t count,
                                   left_term *room)
{
    enum { ONCE = 16 };
    for (size_t m = 0; m < count; m++) {
        const uint8_t *row = rows + m * bytes;
        left_term *to = room + m * STRIP;
        for (size_t k = 0; k + ONCE <= depth; k += ONCE) {
            widen(row + k, ONCE, to + k);
        }
        if (depth >= ONCE) {
            widen(row + depth - ONCE, ONCE, to + depth - ONCE);
        } else {
            widen(row, depth, to);
        }
    }
    return room;
}

static inline __attribute__((always_inline)) void multiply_rows(const row_product *p,
                                                                const size_t rows)
{
    const row_product own = *p;
    sums_of sums[ROWS][VECTORS];
    for (size_t r = 0; r < rows; r++) {
        for (size_t v = 0; v < VECTORS; v++) {
            sums[r][v] = load_sums(own.start + r * own.start_step + v * SUMS);
        }
    }
    for (size_t k = 0; k < own.depth; k += TOGETHER) {
        taken right[VECTORS];
        for (size_t v = 0; v < VECTORS; v++) {
            right[v] = take_two(own.panel + k * WIDTH + v * SUMS * TOGETHER);
        }
        for (size_t r = 0; r < rows; r++) {
            const taken_left left_two = take_left(own.left + r * STRIP + k);
            for (size_t v = 0; v < VECTORS; v++) {
                sums[r][v] = add_two(sums[r][v], left_two, right[v]);
            }
            __asm__ volatile("" ::: "memory"); /* Loading all rows first, GCC spills the sums. */
        }
    }
    for (size_t r = 0; r < rows; r++) {
        for (size_t v = 0; v < VECTORS; v++) {
            store_sums(own.out + r * own.out_step + v * SUMS, sums[r][v]);
        }
    }
}
#endif

static int32_t sum_row(const uint8_t *row, size_t bytes)
{
    uint32_t sum = 0;
    for (size_t k = 0; k < bytes; k++) {
        sum += row[k];
    }
    return (int32_t)sum;
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

/* Some rows, a strip of them, by panels. `sums` of their bytes, where they are summed: where the
 * zero points of all columns are 0, rows differ by their own alone. */
typedef struct {
    const graft_byte_rows *a;
    const graft_byte_panels *b;
    bool summed;
    const int32_t *sums;
    size_t from;
    size_t count;
    size_t strip; /* Where it begins... */
    size_t depth; /* ...and its terms, ... */
    size_t step;  /* ...rows so far apart. */
    const left_term *left;
    size_t row_step;
    size_t column_step;
    int32_t *out;
} block_product;

/* What sums of rows from `m` on begin with: what zero points make of them, then the sums of the
 * strips before. Returns how far it is from row to row. */
static size_t begin_rows(const block_product *p, size_t first, size_t width, size_t m, size_t rows,
                         int32_t *start)
{
    const bool alike = !p->summed && p->a->zero_step == 0 && p->strip == 0;
    for (size_t r = 0; r < (alike ? m == 0 : rows); r++) {
        const size_t row = p->from + m + r;
        const int32_t *before = p->out + row * p->row_step + first * p->column_step;
        if (p->strip == 0) {
            find_more(p->b, first, width, p->a->zeros[row * p->a->zero_step],
                      p->summed ? p->sums[m + r] : 0, start + r * WIDTH);
        }
        for (size_t n = 0; p->strip > 0 && n < width; n++) {
            start[r * WIDTH + n] = before[n * p->column_step];
        }
    }
    return alike ? 0 : WIDTH;
}

/* A row of a tile to where it belongs, eight at once where that is possible. */
static inline void deliver(const int32_t *tile, size_t width, size_t step, int32_t *out)
{
    enum { ONCE = 8 };
    size_t n = 0;
    for (; step == 1 && n + ONCE <= width; n += ONCE) {
        memcpy(out + n, tile + n, ONCE * sizeof(tile[0]));
    }
    for (; n < width; n++) {
        out[n * step] = tile[n];
    }
}

static void multiply_panel(const block_product *p, size_t first)
{
    const size_t bytes = graft_byte_row_bytes(p->b->depth);
    const size_t width = p->b->columns - first < WIDTH ? p->b->columns - first : WIDTH;
    const bool direct = width == WIDTH && p->column_step == 1;
    int32_t start[ROWS * WIDTH] = {0};
    int32_t tile[ROWS * WIDTH];
    size_t rows = 0;
    for (size_t m = 0; m < p->count; m += rows) {
        const size_t left = p->count - m;
        rows = left >= ROWS ? ROWS : left >= ROWS / 2 ? ROWS / 2 : 1;
        int32_t *out = p->out + (p->from + m) * p->row_step + first * p->column_step;
        const row_product product = {
            .left = p->left + m * p->step,
            .step = p->step,
            .panel = p->b->data + first * bytes + p->strip * WIDTH,
            .depth = p->depth,
            .start = start,
            .start_step = begin_rows(p, first, width, m, rows, start),
            .out = direct ? out : tile,
            .out_step = direct ? p->row_step : WIDTH,
        };
        if (rows == ROWS) {
            multiply_rows(&product, ROWS);
        } else if (rows == ROWS / 2) {
            multiply_rows(&product, ROWS / 2);
        } else {
            multiply_rows(&product, 1);
        }
        for (size_t r = 0; !direct && r < rows; r++) {
            deliver(tile + r * WIDTH, width, p->column_step, out + r * p->row_step);
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
    left_term room[STRIP_ROOM];
    const uint8_t *rows = p->a->data + p->from * bytes;
    for (size_t m = 0; p->summed && m < p->count; m++) {
        sums[m] = sum_row(rows + m * bytes, bytes);
    }
    p->sums = sums;
    const size_t depth = strip_depth(bytes);
    for (p->strip = 0; p->strip < bytes; p->strip += depth) {
        p->depth = bytes - p->strip < depth ? bytes - p->strip : depth;
        p->left = take_strip(rows + p->strip, bytes, p->depth, p->count, room);
        for (size_t panel = first; panel < end; panel += WIDTH) {
            multiply_panel(p, panel);
        }
    }
    p->sums = NULL;
    p->left = NULL;
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
    block_product p = {.a = a,
                       .b = b,
                       .summed = has_zeros(b),
                       .step = strip_step(graft_byte_row_bytes(b->depth)),
                       .row_step = row_step,
                       .column_step = column_step};
    p.out = out;
    graft_share(threads, multiply_part, &p);
}

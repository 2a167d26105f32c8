/* byte_conv.c - see byte_conv.h. */
#include "graph/meaning/byte_conv.h"

#include "graph/base/share.h"
#include "graph/meaning/byte_product.h"

#include <string.h>

#ifdef __AVX2__
#include <immintrin.h>
#endif

enum { LANES = 16, SIGN = 128 }; /* Channels that are summed at once. */

static size_t round_up(size_t bytes)
{
    return (bytes + GRAFT_SHARE_LINE - 1) / GRAFT_SHARE_LINE * GRAFT_SHARE_LINE;
}

graft_shape graft_byte_conv_image(graft_shape shape)
{
    if (shape.rank == 3) {
        shape.rank = 4;
        shape.dims[3] = shape.dims[2];
        shape.dims[2] = 1;
    }
    return shape;
}

graft_byte_conv graft_byte_conv_of(const int32_t *attrs, const graft_shape *image,
                                   const graft_shape *filter, const graft_shape *out)
{
    const graft_shape in[2] = {graft_byte_conv_image(*image), graft_byte_conv_image(*filter)};
    const graft_shape made = graft_byte_conv_image(*out);
    const graft_call call = {attrs, in, &made};
    return (graft_byte_conv){
        .windows = {graft_window_of_conv(&call, 0), graft_window_of_conv(&call, 1)},
        .channels = (size_t)in[0].dims[1],
        .filters = (size_t)in[1].dims[0],
        .groups = (size_t)attrs[GRAFT_ATTR_conv_groups]
    };
}

static size_t taps_of(const graft_byte_conv *c)
{
    return (size_t)(c->windows[0].kernel * c->windows[1].kernel);
}

static bool is_depthwise(const graft_byte_conv *c)
{
    return c->groups == c->channels && c->groups == c->filters && c->groups > 1;
}

/* ------------------------------------------------------------------ filters */

static size_t depth_of(const graft_byte_conv *c) { return taps_of(c) * (c->channels / c->groups); }

static size_t group_bytes(const graft_byte_conv *c)
{
    return graft_byte_packed_bytes(depth_of(c), c->filters / c->groups);
}

/* A filter for each channel. Channels are summed in blocks of LANES, the last of which may begin
 * inside of the one before; two taps at once, the last of which may be 0. */
typedef struct {
    const int32_t *sums;  /* Of all taps of a channel. */
    const int16_t *pairs; /* (blocks, pairs, 2, LANES), less their zero points; see place_of_tap. */
} channel_filters;

static size_t pairs_of(const graft_byte_conv *c) { return (taps_of(c) + 1) / 2; }

static size_t blocks_of(const graft_byte_conv *c) { return (c->channels + LANES - 1) / LANES; }

/* Of what is as long as there are channels, and never shorter than a block. */
static size_t room_of(const graft_byte_conv *c)
{
    return c->channels < LANES ? LANES : c->channels;
}

/* Places side by side that one block has, with few channels; 1 with many. */
static size_t places_of_block(const graft_byte_conv *c)
{
    return c->channels < LANES && LANES % c->channels == 0 ? LANES / c->channels : 1;
}

static size_t block_at(const graft_byte_conv *c, size_t block)
{
    const size_t last = room_of(c) - LANES;
    return block * LANES < last ? block * LANES : last;
}

/* Where tap 0 or 1 of a pair lies for channel `i` of a block: both side by side, of channels 0 to 3
 * and 8 to 11 first, as instructions unpack them. */
static size_t place_of_tap(size_t i, size_t tap)
{
    const size_t half = i / 4 % 2;
    const size_t lane = i / 8;
    return half * LANES + lane * 8 + i % 4 * 2 + tap;
}

static channel_filters channel_filters_in(const graft_byte_conv *c, const void *packed)
{
    const int32_t *sums = packed;
    return (channel_filters){.sums = sums,
                             .pairs = (const int16_t *)(const void *)(sums + room_of(c))};
}

size_t graft_byte_conv_packed_bytes(const graft_byte_conv *c)
{
    return is_depthwise(c) ? room_of(c) * sizeof(int32_t) +
                                 blocks_of(c) * pairs_of(c) * 2 * LANES * sizeof(int16_t)
                           : c->groups * group_bytes(c);
}

static int32_t byte_at(const void *data, uint32_t dtype, size_t i)
{
    return dtype == GRAFT_DTYPE_I8 ? ((const int8_t *)data)[i] : ((const uint8_t *)data)[i];
}

static void pack_channels(const graft_byte_conv *c, const graft_byte_filter *filter, void *packed)
{
    int32_t *sums = packed;
    int16_t *pairs = (int16_t *)(void *)(sums + room_of(c));
    const size_t taps = taps_of(c);
    memset(packed, 0, graft_byte_conv_packed_bytes(c));
    const size_t count =
        c->channels < LANES ? c->channels * places_of_block(c) : blocks_of(c) * LANES;
    for (size_t k = 0; k < count; k++) {
        const size_t lane = block_at(c, k / LANES) + k % LANES;
        const size_t channel = lane % c->channels;
        const int32_t zero = filter->zeros == NULL ? 0
                                                   : byte_at(filter->zeros, filter->dtype,
                                                             channel * filter->zero_step);
        int16_t *block = pairs + k / LANES * pairs_of(c) * 2 * LANES;
        sums[lane] = 0;
        for (size_t tap = 0; tap < taps; tap++) {
            const int32_t number =
                byte_at(filter->data, filter->dtype, channel * taps + tap) - zero;
            block[tap / 2 * 2 * LANES + place_of_tap(k % LANES, tap % 2)] = (int16_t)number;
            sums[lane] += number;
        }
    }
}

/* Terms of a row are (height, width, channels of the group), those of a filter (channels, height,
 * width): one channel is a matrix whose rows lie together. */
static void pack_group(const graft_byte_conv *c, const graft_byte_filter *filter, size_t group,
                       void *packed)
{
    const size_t depth = depth_of(c);
    const size_t columns = c->filters / c->groups;
    const size_t first = group * columns;
    const uint8_t *zeros = filter->zeros;
    const graft_byte_matrix given = {
        .data = (const uint8_t *)filter->data + first * depth,
        .zeros = zeros == NULL ? NULL : zeros + first * filter->zero_step,
        .dtype = filter->dtype,
        .depth = depth,
        .columns = columns,
        .depth_step = filter->turned ? columns : taps_of(c),
        .depth_turn = c->channels / c->groups,
        .column_step = filter->turned ? 1 : depth,
        .zero_step = filter->zero_step,
    };
    (void)graft_byte_pack_into(packed, &given);
}

void graft_byte_conv_pack(const graft_byte_conv *c, const graft_byte_filter *filter, void *packed)
{
    if (is_depthwise(c)) {
        pack_channels(c, filter, packed);
        return;
    }
    for (size_t group = 0; group < c->groups; group++) {
        pack_group(c, filter, group, (char *)packed + group * group_bytes(c));
    }
}

/* ------------------------------------------------------------------- places */

size_t graft_byte_conv_work_bytes(const graft_byte_conv *c)
{
    return is_depthwise(c) ? 2 * pairs_of(c) * (2 * sizeof(uint8_t *) + sizeof(ptrdiff_t) + LANES) +
                                 room_of(c) * (sizeof(int32_t) + sizeof(uint8_t))
                           : GRAFT_BYTE_CONV_PLACES * graft_byte_row_bytes(depth_of(c));
}

/* Row and column of a place, and of the one that is so many after it, not beyond the next row. */
static void find_place(const graft_byte_conv *c, size_t index, int64_t place[2])
{
    place[0] = (int64_t)index / c->windows[1].count;
    place[1] = (int64_t)index % c->windows[1].count;
}

static inline void next_place(const graft_byte_conv *c, size_t moved, int64_t place[2])
{
    place[1] += (int64_t)moved;
    if (place[1] >= c->windows[1].count) {
        place[1] -= c->windows[1].count;
        place[0]++;
    }
}

/* As graft_byte_fill: eight at once, the last of which may lie over those before. */
static inline void fill_run(const uint8_t *from, uint64_t signs, size_t count, uint8_t *row)
{
    uint64_t eight = 0;
    for (size_t i = 0; i + sizeof(eight) <= count; i += sizeof(eight)) {
        memcpy(&eight, from + i, sizeof(eight));
        eight ^= signs;
        memcpy(row + i, &eight, sizeof(eight));
    }
    if (count >= sizeof(eight)) {
        memcpy(&eight, from + count - sizeof(eight), sizeof(eight));
        eight ^= signs;
        memcpy(row + count - sizeof(eight), &eight, sizeof(eight));
        return;
    }
    for (size_t i = 0; i < count; i++) {
        row[i] = from[i] ^ (uint8_t)signs;
    }
}

/* What all windows have in common. Divisions at each place would take longer than copies. */
typedef struct {
    size_t depth;
    size_t taken;        /* Channels of the group... */
    const uint8_t *data; /* ...from the first pixel on. */
    uint64_t signs;
    uint8_t zero; /* What is beyond the image. */
    bool whole;   /* Taps of a row lie side by side. */
} window_form;

static window_form form_of(const graft_byte_conv *c, const graft_byte_image *image, size_t group)
{
    const bool is_signed = image->dtype == GRAFT_DTYPE_I8;
    const size_t taken = c->channels / c->groups;
    return (window_form){
        .depth = depth_of(c),
        .taken = taken,
        .data = (const uint8_t *)image->data + group * taken,
        .signs = is_signed ? UINT64_MAX / UINT8_MAX * SIGN : 0,
        .zero = (uint8_t)(image->zero + (is_signed ? SIGN : 0)),
        .whole = c->groups == 1 && c->windows[1].dilation == 1,
    };
}

/* What lies under the filter at a place: (height, width, channels of the group). */
static inline void take_window(const graft_byte_conv *c, const window_form *form,
                               const int64_t place[2], uint8_t *window)
{
    const graft_window *h = &c->windows[0];
    const graft_window *w = &c->windows[1];
    const int64_t top = graft_window_at(h, place[0], 0);
    const int64_t left = graft_window_at(w, place[1], 0);
    int64_t rows[2];
    int64_t columns[2];
    graft_window_taps(h, place[0], rows);
    graft_window_taps(w, place[1], columns);
    if (rows[0] > 0 || columns[0] > 0 || rows[1] < h->kernel || columns[1] < w->kernel) {
        memset(window, form->zero, form->depth);
    }
    const int64_t step = form->whole ? columns[1] - columns[0] : 1;
    for (int64_t k = rows[0]; k < rows[1]; k++) {
        const int64_t row = (top + k * h->dilation) * w->size + left;
        for (int64_t j = columns[0]; j < columns[1]; j += step) {
            fill_run(form->data + (size_t)(row + j * w->dilation) * c->channels, form->signs,
                     (size_t)step * form->taken,
                     window + (size_t)(k * w->kernel + j) * form->taken);
        }
    }
}

/* Rows of the image are those of the product. */
static bool is_flat(const graft_byte_conv *c)
{
    bool flat = c->groups == 1 && depth_of(c) == graft_byte_row_bytes(depth_of(c));
    for (uint32_t i = 0; i < 2; i++) {
        const graft_window *w = &c->windows[i];
        flat = flat && w->kernel == 1 && w->stride == 1 && w->before == 0 && w->size == w->count;
    }
    return flat;
}

/* Rows of the product: those of the image itself, where they need no change. */
static const uint8_t *take_windows(const graft_byte_conv *c, const graft_byte_image *image,
                                   size_t group, const graft_byte_places *places)
{
    const size_t depth = depth_of(c);
    const size_t bytes = graft_byte_row_bytes(depth);
    const window_form form = form_of(c, image, group);
    int64_t place[2];
    uint8_t *row = places->work;
    find_place(c, places->first, place);
    if (is_flat(c)) {
        const uint8_t *first = (const uint8_t *)image->data + places->first * depth;
        if (image->dtype == GRAFT_DTYPE_U8) {
            return first;
        }
        graft_byte_fill(first, image->dtype, 0, 1, places->count * depth, row);
        return row;
    }
    for (size_t i = 0; i < places->count; i++, row += bytes) {
        take_window(c, &form, place, row);
        for (size_t k = depth; k < bytes; k++) {
            row[k] = 0;
        }
        next_place(c, 1, place);
    }
    return places->work;
}

static void run_groups(const graft_byte_conv *c, const void *packed, const graft_byte_image *image,
                       const graft_byte_places *places)
{
    const size_t columns = c->filters / c->groups;
    const int32_t zero = image->zero + (image->dtype == GRAFT_DTYPE_I8 ? SIGN : 0);
    graft_byte_rows rows = {.zeros = &zero, .count = places->count};
    for (size_t group = 0; group < c->groups; group++) {
        const graft_byte_panels panels = graft_byte_panels_in(
            (const char *)packed + group * group_bytes(c), depth_of(c), columns);
        rows.data = take_windows(c, image, group, places);
        graft_byte_multiply(1, &rows, &panels, c->filters, 1, places->sums + group * columns);
    }
}

/* ------------------------------------------------------------ channel by channel */

/* Where each tap of a place lies, all channels of it, and how far it is to the next place of the row;
 * those beyond the image stay where they are. */
typedef struct {
    const uint8_t **at;
    ptrdiff_t *steps;
    const uint8_t *outside;
} channel_taps;

static void find_taps(const graft_byte_conv *c, const uint8_t *image, const int64_t place[2],
                      const channel_taps *taps)
{
    const graft_window *h = &c->windows[0];
    const graft_window *w = &c->windows[1];
    size_t tap = 0;
    for (int64_t k = 0; k < h->kernel; k++) {
        const int64_t row = graft_window_at(h, place[0], k);
        for (int64_t j = 0; j < w->kernel; j++, tap++) {
            const int64_t column = graft_window_at(w, place[1], j);
            const bool in_row = row >= 0 && row < h->size;
            const bool inside = in_row && column >= 0 && column < w->size;
            const int64_t pixel = inside ? row * w->size + column : 0;
            taps->at[tap] = inside ? image + (size_t)pixel * c->channels : taps->outside;
            taps->steps[tap] = in_row ? w->stride * (ptrdiff_t)c->channels : 0;
        }
    }
}

/* Whether all columns of a place's window lie inside of the image. */
static bool is_within(const graft_window *w, int64_t column)
{
    return graft_window_at(w, column, 0) >= 0 &&
           graft_window_at(w, column, w->kernel - 1) < w->size;
}

/* From the place that is `moved` places before; 0: that is not known. */
static void move_taps(const graft_byte_conv *c, const uint8_t *image, const int64_t place[2],
                      size_t moved, const channel_taps *taps)
{
    const graft_window *w = &c->windows[1];
    const int64_t before = place[1] - (int64_t)moved;
    if (moved == 0 || before < 0 || !is_within(w, before) || !is_within(w, place[1])) {
        find_taps(c, image, place, taps);
        return;
    }
    const size_t count = taps_of(c);
    for (size_t tap = 0; tap < count; tap++) {
        taps->at[tap] += (ptrdiff_t)moved * taps->steps[tap];
    }
}

/* What all channels' sums are made of. */
typedef struct {
    const uint8_t **taps; /* Where each lies, all channels of it. */
    const int32_t *more;  /* What the zero point of the image makes of each channel's sum. */
    size_t pairs;
} channel_sums;

/* Sums of a block of channels from `first` on: of pairs of taps, both of one channel at once. */
#ifdef __AVX2__
static inline __attribute__((always_inline)) __m256i widen(const uint8_t *bytes,
                                                           const bool is_signed)
{
    const __m128i x = _mm_loadu_si128((const __m128i *)(const void *)bytes);
    return is_signed ? _mm256_cvtepi8_epi16(x) : _mm256_cvtepu8_epi16(x);
}

static inline __attribute__((always_inline)) void sum_block(const channel_sums *c,
                                                            const int16_t *filters, size_t first,
                                                            const bool is_signed, int32_t *out)
{
    __m256i low = _mm256_setzero_si256();
    __m256i high = _mm256_setzero_si256();
    for (size_t k = 0; k < c->pairs; k++) {
        const __m256i a = widen(c->taps[2 * k] + first, is_signed);
        const __m256i b = widen(c->taps[2 * k + 1] + first, is_signed);
        const __m256i *w = (const __m256i *)(const void *)(filters + 2 * LANES * k);
        low = _mm256_add_epi32(
            low, _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), _mm256_loadu_si256(w)));
        high = _mm256_add_epi32(
            high, _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), _mm256_loadu_si256(w + 1)));
    }
    const __m256i *add = (const __m256i *)(const void *)(c->more + first);
    __m256i *to = (__m256i *)(void *)(out + first);
    _mm256_storeu_si256(
        to, _mm256_add_epi32(_mm256_permute2x128_si256(low, high, 0x20), _mm256_loadu_si256(add)));
    _mm256_storeu_si256(to + 1, _mm256_add_epi32(_mm256_permute2x128_si256(low, high, 0x31),
                                                 _mm256_loadu_si256(add + 1)));
}
#else
static inline __attribute__((always_inline)) void sum_block(const channel_sums *c,
                                                            const int16_t *filters, size_t first,
                                                            const bool is_signed, int32_t *out)
{
    for (size_t i = 0; i < LANES; i++) {
        uint32_t sum = (uint32_t)c->more[first + i];
        for (size_t tap = 0; tap < 2 * c->pairs; tap++) {
            const uint8_t x = c->taps[tap][first + i];
            const int32_t number = is_signed ? (int8_t)x : x;
            sum += (uint32_t)(number * filters[tap / 2 * 2 * LANES + place_of_tap(i, tap % 2)]);
        }
        out[first + i] = (int32_t)sum;
    }
}
#endif

/* Whether so many places from one on lie in one row, one pixel apart, with all columns of their
 * windows inside of the image. */
static bool lie_together(const graft_byte_conv *c, int64_t column, size_t count)
{
    const graft_window *w = &c->windows[1];
    const int64_t last = column + (int64_t)count - 1;
    return count > 1 && w->stride == 1 && last < w->count && is_within(w, column) &&
           is_within(w, last);
}

/* Copies of a block each, where there are fewer channels: what is behind them counts for nothing. */
static void widen_taps(const graft_byte_conv *c, const channel_taps *taps, uint8_t *copies,
                       const uint8_t **wide)
{
    memset(copies, 0, 2 * pairs_of(c) * LANES);
    for (size_t tap = 0; tap < 2 * pairs_of(c); tap++) {
        wide[tap] = memcpy(copies + tap * LANES, taps->at[tap], c->channels);
    }
}

/* All blocks of a place. Loops over nine taps are unrolled. */
static inline __attribute__((always_inline)) void sum_blocks(const graft_byte_conv *c,
                                                             const channel_sums *given,
                                                             const int16_t *filters,
                                                             const bool is_signed, int32_t *out)
{
    enum { NINE = 5 };
    const size_t blocks = blocks_of(c);
    const size_t step = given->pairs * 2 * LANES;
    if (given->pairs != NINE) {
        for (size_t i = 0; i < blocks; i++) {
            sum_block(given, filters + i * step, block_at(c, i), is_signed, out);
        }
        return;
    }
    const uint8_t *taps[2 * NINE];
    memcpy(taps, given->taps, sizeof(taps));
    const channel_sums sums = {.taps = taps, .more = given->more, .pairs = NINE};
    for (size_t i = 0; i < blocks; i++) {
        sum_block(&sums, filters + i * NINE * 2 * LANES, block_at(c, i), is_signed, out);
    }
}

static inline __attribute__((always_inline)) void
run_channels(const graft_byte_conv *c, const void *packed, const graft_byte_image *image,
             const bool is_signed, const graft_byte_places *places)
{
    const channel_filters filters = channel_filters_in(c, packed);
    const size_t pairs = pairs_of(c);
    const uint8_t **at = places->work;
    const uint8_t **wide = at + 2 * pairs;
    ptrdiff_t *steps = (ptrdiff_t *)(void *)(wide + 2 * pairs);
    int32_t *more = (int32_t *)(void *)(steps + 2 * pairs);
    uint8_t *outside = (uint8_t *)(more + room_of(c));
    uint8_t *copies = outside + room_of(c);
    const channel_taps taps = {.at = at, .steps = steps, .outside = outside};
    const channel_sums sums = {.taps = at, .more = more, .pairs = pairs};
    const channel_sums wide_sums = {.taps = wide, .more = more, .pairs = pairs};
    const size_t together = places_of_block(c);
    int32_t *out = places->sums;
    size_t moved = 0;
    int64_t place[2];
    find_place(c, places->first, place);
    for (size_t i = 0; i < room_of(c); i++) {
        more[i] = (int32_t)(0U - (uint32_t)image->zero * (uint32_t)filters.sums[i]);
        outside[i] = (uint8_t)image->zero;
    }
    at[2 * pairs - 1] = outside;
    for (size_t i = 0; i < places->count; i += moved, out += moved * c->channels) {
        move_taps(c, image->data, place, moved, &taps);
        moved = 1;
        if (i + together <= places->count && lie_together(c, place[1], together)) {
            sum_block(&sums, filters.pairs, 0, is_signed, out);
            moved = together;
        } else if (c->channels < LANES) {
            int32_t block[LANES];
            widen_taps(c, &taps, copies, wide);
            sum_block(&wide_sums, filters.pairs, 0, is_signed, block);
            memcpy(out, block, c->channels * sizeof(out[0]));
        } else {
            sum_blocks(c, &sums, filters.pairs, is_signed, out);
        }
        next_place(c, moved, place);
    }
}

void graft_byte_conv_run(const graft_byte_conv *c, const void *packed,
                         const graft_byte_image *image, const graft_byte_places *places)
{
    if (!is_depthwise(c)) {
        run_groups(c, packed, image, places);
    } else if (image->dtype == GRAFT_DTYPE_I8) {
        run_channels(c, packed, image, true, places);
    } else {
        run_channels(c, packed, image, false, places);
    }
}

/* ------------------------------------------------------------------ whole images */

/* All places of an image, whose channels lie side by side for the products. */
typedef struct {
    const graft_byte_conv *c;
    const void *packed;
    const uint8_t *given; /* (channels, pixels) */
    uint8_t *turned;      /* (pixels, channels) */
    graft_byte_image image;
    char *rooms; /* For each part, room_bytes apart: of graft_byte_places, `work` and `sums`. */
    size_t work_bytes;
    size_t room_bytes;
    int32_t *out; /* (filters, places) */
} whole_image;

static void turn_some(const void *work, uint32_t part, uint32_t parts)
{
    const whole_image *w = work;
    const size_t channels = w->c->channels;
    const size_t pixels = (size_t)(w->c->windows[0].size * w->c->windows[1].size);
    const graft_range own = graft_range_part((int64_t)pixels, GRAFT_SHARE_LINE, part, parts);
    for (size_t k = 0; k < channels; k++) {
        for (size_t i = (size_t)own.from; i < (size_t)own.to; i++) {
            w->turned[i * channels + k] = w->given[k * pixels + i];
        }
    }
}

static void run_places(const void *work, uint32_t part, uint32_t parts)
{
    const whole_image *w = work;
    const size_t filters = w->c->filters;
    const size_t all = (size_t)(w->c->windows[0].count * w->c->windows[1].count);
    const graft_range own = graft_range_part((int64_t)all, GRAFT_SHARE_LINE, part, parts);
    char *room = w->rooms + part * w->room_bytes;
    graft_byte_places places = {.work = room, .sums = (int32_t *)(void *)(room + w->work_bytes)};
    for (places.first = (size_t)own.from; places.first < (size_t)own.to;
         places.first += places.count) {
        const size_t left = (size_t)own.to - places.first;
        places.count = left < GRAFT_BYTE_CONV_PLACES ? left : GRAFT_BYTE_CONV_PLACES;
        graft_byte_conv_run(w->c, w->packed, &w->image, &places);
        for (size_t k = 0; k < filters; k++) {
            for (size_t i = 0; i < places.count; i++) {
                w->out[k * all + places.first + i] = places.sums[i * filters + k];
            }
        }
    }
}

void graft_byte_conv_run_all(graft_arena *scratch, const graft_byte_conv *c, const void *packed,
                             const graft_byte_image *image, size_t images, int32_t *out)
{
    GRAFT_SCOPED(scratch);
    const size_t parts = c->threads > 1 ? (size_t)c->threads : 1;
    const size_t pixels = (size_t)(c->windows[0].size * c->windows[1].size);
    const size_t sums = GRAFT_BYTE_CONV_PLACES * c->filters * sizeof(int32_t);
    whole_image w = {.c = c,
                     .packed = packed,
                     .turned = GRAFT_NEW(scratch, uint8_t, pixels * c->channels),
                     .image = *image,
                     .work_bytes = round_up(graft_byte_conv_work_bytes(c))};
    w.room_bytes = round_up(w.work_bytes + sums);
    w.rooms = (char *)GRAFT_NEW(scratch, void *, parts *w.room_bytes / sizeof(void *));
    w.image.data = w.turned;
    for (size_t i = 0; i < images; i++) {
        w.given = (const uint8_t *)image->data + i * pixels * c->channels;
        w.out = out + i * c->filters * (size_t)(c->windows[0].count * c->windows[1].count);
        graft_share(c->threads, turn_some, &w);
        graft_share(c->threads, run_places, &w);
    }
}

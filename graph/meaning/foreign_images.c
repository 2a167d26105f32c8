/* foreign_images.c - images of other sizes, and normalisation across channels (see foreign.h). */
#include "graph/meaning/foreign_rows.h"

#include "graph/base/share.h"
#include "graph/meaning/algebra.h"

#include <math.h>
#include <string.h>

/* -------------------------------------------------------------------------------- resizing */

enum { MODE_NEAREST, MODE_LINEAR, MODE_CUBIC, MODE_BILINEAR, MODE_BICUBIC };
enum {
    PLACE_HALF_PIXEL,
    PLACE_ASYMMETRIC,
    PLACE_ALIGN_CORNERS,
    PLACE_PYTORCH,
    PLACE_TF_HALF_PIXEL
};
enum { ROUND_DOWN_HALF, ROUND_UP_HALF, ROUND_FLOOR, ROUND_CEIL };
/* Where attributes lie, and which inputs the numbers are. */
enum {
    RESIZE_MODE = 1,
    RESIZE_PLACE,
    RESIZE_ROUND,
    RESIZE_INSIDE,
    RESIZE_CUBIC,
    RESIZE_BLUR,
    RESIZE_SCALES,
    RESIZE_SIZES
};
enum { TAPS_MOST = 4 }; /* But of what is blurred. */

bool graft_foreign_read_resize(const Onnx__NodeProto *node, graft_opaque *opaque)
{
    const bool old = node->n_input == 2; /* Of opset 10: like Upsample, when it makes larger. */
    opaque->attrs[RESIZE_SCALES] = 2;
    opaque->attrs[RESIZE_SIZES] = 3;
    return !old && opaque->in[0].dtype == GRAFT_DTYPE_F32 &&
           graft_foreign_has(opaque, 2) != graft_foreign_has(opaque, 3);
}

bool graft_foreign_read_upsample(const Onnx__NodeProto *node, graft_opaque *opaque)
{
    (void)node;
    opaque->attrs[RESIZE_PLACE] = PLACE_ASYMMETRIC;
    opaque->attrs[RESIZE_ROUND] = ROUND_FLOOR;
    opaque->attrs[RESIZE_SCALES] = 1;
    opaque->attrs[RESIZE_SIZES] = GRAFT_OPAQUE_INPUTS_MOST; /* None. */
    return opaque->in[0].dtype == GRAFT_DTYPE_F32;
}

/* How much larger an axis becomes; 0 when it is not known. */
static float scale_of(const graft_opaque *opaque, uint32_t axis)
{
    const uint32_t scales = (uint32_t)opaque->attrs[RESIZE_SCALES];
    const uint32_t sizes = (uint32_t)opaque->attrs[RESIZE_SIZES];
    const graft_shape *from = &opaque->in[0];
    if (graft_foreign_has(opaque, sizes)) {
        return graft_foreign_list(opaque, sizes) != from->rank
                   ? 0.0F
                   : (float)graft_foreign_whole(opaque, sizes, axis) / (float)from->dims[axis];
    }
    const graft_shape *list = &opaque->in[scales];
    return list->dtype == GRAFT_DTYPE_F32 && list->rank == 1 && list->dims[0] == from->rank &&
                   opaque->data[scales] != NULL
               ? ((const float *)opaque->data[scales])[axis]
               : 0.0F;
}

/* Where the last element lies is not agreed on when a scale cuts it in two. */
static bool is_agreed(const graft_opaque *opaque, float size, bool sized)
{
    return sized || opaque->attrs[RESIZE_PLACE] != PLACE_ALIGN_CORNERS || size == floorf(size);
}

bool graft_foreign_resize_shape(const graft_opaque *opaque, graft_shape *shape)
{
    const uint32_t sizes = (uint32_t)opaque->attrs[RESIZE_SIZES];
    const bool sized = graft_foreign_has(opaque, sizes);
    bool fits = true;
    *shape = opaque->in[0];
    for (uint32_t i = 0; i < shape->rank && fits; i++) {
        const float scale = scale_of(opaque, i);
        const float size = (float)shape->dims[i] * scale;
        fits = scale > 0.0F && scale < 0x1p20F && size < 0x1p31F && is_agreed(opaque, size, sized);
        fits = fits && graft_foreign_size(shape, i,
                                          sized ? graft_foreign_whole(opaque, sizes, i)
                                                : (int64_t)floorf(size));
    }
    return fits;
}

/* Where the middle of element `i` of an axis lay before. */
static float place_before(const graft_opaque *opaque, float scale, int32_t from, int32_t to,
                          int32_t i)
{
    const float x = (float)i;
    switch (opaque->attrs[RESIZE_PLACE]) {
    case PLACE_ASYMMETRIC:
        return x / scale;
    case PLACE_ALIGN_CORNERS:
        return to == 1 ? 0.0F : x * (float)(from - 1) / (float)(to - 1);
    case PLACE_PYTORCH:
        return to == 1 ? 0.0F : (x + 0.5F) / scale - 0.5F;
    case PLACE_TF_HALF_PIXEL:
        return (x + 0.5F) / scale;
    default:
        return (x + 0.5F) / scale - 0.5F;
    }
}

static float round_place(float place, int32_t way)
{
    switch (way) {
    case ROUND_DOWN_HALF:
        return ceilf(place - 0.5F);
    case ROUND_UP_HALF:
        return floorf(place + 0.5F);
    case ROUND_FLOOR:
        return floorf(place);
    default:
        return ceilf(place);
    }
}

/* An element of an axis: the elements before that it is made of, by weights. */
typedef struct {
    int32_t *at;
    float *weight;
} taps;

static float cubic_weight(float distance, float a)
{
    const float x = fabsf(distance);
    return x <= 1.0F  ? ((a + 2.0F) * x - (a + 3.0F)) * x * x + 1.0F
           : x < 2.0F ? ((a * x - 5.0F * a) * x + 8.0F * a) * x - 4.0F * a
                      : 0.0F;
}

/* What elements around a place weigh: those nearer than `reach`, of which there are at most `count`,
 * by their distance times `narrow`. An image that becomes smaller is blurred where `antialias` asks
 * for it: all elements count then. */
typedef struct {
    float reach;
    float narrow;
    uint32_t count;
} filter;

static filter filter_of(const graft_opaque *opaque, float scale)
{
    const int32_t mode = opaque->attrs[RESIZE_MODE];
    const float reach = mode == MODE_LINEAR ? 1.0F : 2.0F;
    if (mode == MODE_NEAREST) {
        return (filter){.count = 1};
    }
    if (opaque->attrs[RESIZE_BLUR] == 0 || scale >= 1.0F) {
        return (filter){reach, 1.0F, mode == MODE_LINEAR ? 2 : 4};
    }
    return (filter){reach / scale, scale, 2 * (uint32_t)ceilf(reach / scale) + TAPS_MOST};
}

/* Elements outside are those of the edge, or weigh nothing. */
static void find_taps(const graft_opaque *opaque, float place, int32_t size, const filter *f,
                      taps *t)
{
    const float first = floorf(place - f->reach) + 1.0F;
    const bool linear = opaque->attrs[RESIZE_MODE] == MODE_LINEAR;
    const float a = graft_float_of_bits(opaque->attrs[RESIZE_CUBIC]);
    float sum = 0.0F;
    for (uint32_t k = 0; k < f->count; k++) {
        const float at = first + (float)k;
        const bool outside = at < 0.0F || at > (float)(size - 1);
        const float distance = (place - at) * f->narrow;
        const float weight = !linear             ? cubic_weight(distance, a)
                             : f->narrow != 1.0F ? fmaxf(0.0F, 1.0F - fabsf(distance))
                             : k == 0            ? 1.0F - (place - first)
                                                 : place - first;
        t->at[k] = at < 0.0F ? 0 : at > (float)(size - 1) ? size - 1 : (int32_t)at;
        t->weight[k] = outside && opaque->attrs[RESIZE_INSIDE] != 0 ? 0.0F : weight;
        sum += t->weight[k];
    }
    const bool whole = opaque->attrs[RESIZE_INSIDE] == 0 && f->narrow == 1.0F;
    for (uint32_t k = 0; k < f->count && !whole; k++) {
        t->weight[k] /= sum;
    }
}

static taps *list_taps(graft_env *env, const graft_opaque *opaque, float scale, uint32_t axis,
                       uint32_t *count)
{
    const int32_t from = opaque->in[0].dims[axis];
    const int32_t to = opaque->out.dims[axis];
    const filter f = filter_of(opaque, scale);
    taps *all = GRAFT_NEW(env->scratch, taps, (size_t)to);
    *count = f.count;
    for (int32_t i = 0; i < to; i++) {
        const float place = place_before(opaque, scale, from, to, i);
        all[i].at = GRAFT_NEW(env->scratch, int32_t, f.count);
        all[i].weight = GRAFT_NEW(env->scratch, float, f.count);
        if (f.count > 1) {
            find_taps(opaque, place, from, &f, &all[i]);
            continue;
        }
        const float nearest = round_place(place, opaque->attrs[RESIZE_ROUND]);
        all[i].at[0] = nearest < 0.0F                ? 0
                       : nearest > (float)(from - 1) ? from - 1
                                                     : (int32_t)nearest;
        all[i].weight[0] = 1.0F;
    }
    return all;
}

/* A row of an axis: `inner` elements that lie one behind the other, of `count` such rows. */
static void mix_rows(const float *from, const taps *t, uint32_t count, size_t inner, float *out)
{
    const float *row[TAPS_MOST];
    if (count > TAPS_MOST) {
        memset(out, 0, inner * sizeof(out[0]));
        for (uint32_t k = 0; k < count; k++) {
            const float *x = from + (size_t)t->at[k] * inner;
            for (size_t i = 0; i < inner; i++) {
                out[i] += t->weight[k] * x[i];
            }
        }
        return;
    }
    for (uint32_t k = 0; k < TAPS_MOST; k++) {
        row[k] = from + (size_t)t->at[k < count ? k : 0] * inner;
    }
    if (count == 1) {
        memcpy(out, row[0], inner * sizeof(out[0]));
        return;
    }
    if (count == 2) {
        for (size_t i = 0; i < inner; i++) {
            out[i] = t->weight[0] * row[0][i] + t->weight[1] * row[1][i];
        }
        return;
    }
    for (size_t i = 0; i < inner; i++) {
        out[i] = t->weight[0] * row[0][i] + t->weight[1] * row[1][i] + t->weight[2] * row[2][i] +
                 t->weight[3] * row[3][i];
    }
}

/* What has been resized so far. */
typedef struct {
    graft_shape shape;
    const float *data;
} image;

/* An axis that is resized: (outer, old, inner) becomes (outer, size, inner). */
typedef struct {
    const float *from;
    const taps *all; /* By place. */
    uint32_t count;  /* Of taps of a place. */
    size_t outer;
    size_t old;
    size_t size;
    size_t inner;
    float *out;
} mixed_axis;

static void mix_some(const void *work, uint32_t part, uint32_t parts)
{
    const mixed_axis *m = work;
    const graft_range own = graft_range_part((int64_t)(m->outer * m->size), 1, part, parts);
    for (size_t row = (size_t)own.from; row < (size_t)own.to; row++) {
        mix_rows(m->from + row / m->size * m->old * m->inner, &m->all[row % m->size], m->count,
                 m->inner, m->out + row * m->inner);
    }
}

/* One more axis; into `last` when it is the last one. */
static void resize_axis(graft_env *env, const graft_opaque *opaque, float scale, uint32_t axis,
                        image *of, float *last)
{
    mixed_axis m = {.from = of->data,
                    .outer = graft_axes_count(&of->shape, 0, axis),
                    .old = (size_t)of->shape.dims[axis],
                    .size = (size_t)opaque->out.dims[axis],
                    .inner = graft_axes_count(&of->shape, axis + 1, of->shape.rank)};
    m.all = list_taps(env, opaque, scale, axis, &m.count);
    m.out = last != NULL ? last : GRAFT_NEW(env->scratch, float, m.outer *m.size *m.inner);
    graft_share(opaque->threads, mix_some, &m);
    of->shape.dims[axis] = opaque->out.dims[axis];
    of->data = m.out;
}

/* Axis by axis from the last, so that most is done on long rows. */
GRAFT_FOREIGN_RUNNER(resize)
{
    GRAFT_SCOPED(env->scratch);
    image of = {.shape = opaque->in[0], .data = opaque->data[0]};
    uint32_t left = 0; /* Axes that change, as bits. */
    for (uint32_t i = 0; i < of.shape.rank; i++) {
        const float scale = scale_of(opaque, i);
        left |= scale != 1.0F || of.shape.dims[i] != opaque->out.dims[i] ? 1U << i : 0;
    }
    if (left == 0) {
        memcpy(out, of.data, (size_t)graft_shape_bytes(&of.shape));
    }
    for (uint32_t i = of.shape.rank; i-- > 0;) {
        if ((left >> i & 1U) != 0) {
            left &= ~(1U << i);
            resize_axis(env, opaque, scale_of(opaque, i), i, &of, left == 0 ? out : NULL);
        }
    }
    return GRAFT_OK;
}

/* ------------------------------------------------------------------------------ GridSample */

enum { GRID_MODE = 1, GRID_PADDING, GRID_CORNERS };
enum { GRID_ZEROS, GRID_BORDER, GRID_REFLECTION };

bool graft_foreign_grid_shape(const graft_opaque *opaque, graft_shape *shape)
{
    const graft_shape *x = &opaque->in[0];
    const graft_shape *grid = &opaque->in[1];
    *shape = *x;
    shape->dims[2] = grid->dims[1];
    shape->dims[3] = grid->dims[2];
    return x->rank == 4 && x->dtype == GRAFT_DTYPE_F32 && grid->rank == 4 &&
           grid->dtype == GRAFT_DTYPE_F32 && grid->dims[0] == x->dims[0] && grid->dims[3] == 2 &&
           graft_axes_count(x, 2, 4) <= INT32_MAX;
}

/* Where a place outside of an axis lies inside of it; without padding it stays. */
static float bring_inside(const graft_opaque *opaque, float x, int32_t size)
{
    const bool corners = opaque->attrs[GRID_CORNERS] != 0;
    const float least = corners ? 0.0F : -0.5F;
    const float range = corners ? (float)(size - 1) : (float)size;
    if (opaque->attrs[GRID_PADDING] == GRID_BORDER) {
        return x < 0.0F ? 0.0F : x > (float)(size - 1) ? (float)(size - 1) : x;
    }
    if (opaque->attrs[GRID_PADDING] == GRID_ZEROS || (x >= least && x <= least + range)) {
        return x;
    }
    const float beyond = x < least ? least - x : x - least - range;
    const float times = range > 0.0F ? truncf(beyond / range) : 0.0F;
    const float rest = beyond - times * range;
    return (fmodf(times, 2.0F) == 0.0F) == (x < least) ? least + rest : least + range - rest;
}

/* The index that a whole number names along an axis; -1: it lies outside. */
static int32_t index_at(const graft_opaque *opaque, float x, int32_t size)
{
    x = bring_inside(opaque, x, size);
    return x >= 0.0F && x <= (float)(size - 1) ? (int32_t)x : -1;
}

/* What some places of a grid are made of, which is the same in all channels. */
enum { GRID_BLOCK = 256 };
typedef struct {
    int32_t at[4]
              [GRID_BLOCK]; /* Above left, above right, below left, below right; -1: there is 0. */
    float below[GRID_BLOCK];
    float right[GRID_BLOCK];
} grid_block;

/* Where a number of a grid lies along axis 2 + `k`. */
static float place_on_axis(const graft_opaque *opaque, const float place[2], uint32_t k)
{
    const float p = place[1 - k];
    const float size = (float)opaque->in[0].dims[2 + k];
    return opaque->attrs[GRID_CORNERS] != 0 ? (p + 1.0F) / 2.0F * (size - 1.0F)
                                            : ((p + 1.0F) * size - 1.0F) / 2.0F;
}

static void find_place(const graft_opaque *opaque, const float place[2], size_t i, grid_block *b)
{
    const bool nearest = opaque->attrs[GRID_MODE] == MODE_NEAREST;
    float rest[2];
    int32_t index[2][2]; /* Row, column; and the next. */
    for (uint32_t k = 0; k < 2; k++) {
        const int32_t size = opaque->in[0].dims[2 + k];
        float at = place_on_axis(opaque, place, k);
        at = bring_inside(opaque, nearest ? rintf(at) : at, size);
        const float whole = nearest ? at : floorf(at);
        rest[k] = at - whole;
        index[k][0] = index_at(opaque, whole, size);
        index[k][1] = index_at(opaque, whole + 1.0F, size);
    }
    for (uint32_t k = 0; k < 4; k++) {
        const int32_t row = index[0][k / 2];
        const int32_t column = index[1][k % 2];
        b->at[k][i] = row < 0 || column < 0 ? -1 : row * opaque->in[0].dims[3] + column;
    }
    b->below[i] = rest[0];
    b->right[i] = rest[1];
}

static float element_or_zero(const float *x, int32_t at) { return at >= 0 ? x[at] : 0.0F; }

static void mix_places(const grid_block *b, size_t count, bool nearest, const float *x, float *out)
{
    for (size_t i = 0; i < count && nearest; i++) {
        out[i] = element_or_zero(x, b->at[0][i]);
    }
    for (size_t i = 0; i < count && !nearest; i++) {
        const float left = 1.0F - b->right[i];
        const float above =
            left * element_or_zero(x, b->at[0][i]) + b->right[i] * element_or_zero(x, b->at[1][i]);
        const float under =
            left * element_or_zero(x, b->at[2][i]) + b->right[i] * element_or_zero(x, b->at[3][i]);
        out[i] = (1.0F - b->below[i]) * above + b->below[i] * under;
    }
}

/* Sixteen pixels around a place, each of which is brought inside; for every channel. */
static void mix_cubic(const graft_opaque *opaque, const float place[2], const float *x, float *out)
{
    const size_t plane = graft_axes_count(&opaque->in[0], 2, 4);
    const size_t places = graft_axes_count(&opaque->out, 2, 4);
    int32_t index[2][4]; /* Rows, columns. */
    float weight[2][4];
    for (uint32_t i = 0; i < 8; i++) {
        const float at = place_on_axis(opaque, place, i / 4);
        const float pixel = floorf(at) + (float)(i % 4) - 1.0F;
        index[i / 4][i % 4] = index_at(opaque, pixel, opaque->in[0].dims[2 + i / 4]);
        weight[i / 4][i % 4] = cubic_weight(at - pixel, -0.75F);
    }
    for (int32_t c = 0; c < opaque->out.dims[1]; c++) {
        float sum = 0.0F;
        for (uint32_t i = 0; i < 16; i++) {
            const int32_t row = index[0][i / 4];
            const int32_t column = index[1][i % 4];
            const int32_t at = row < 0 || column < 0 ? -1 : row * opaque->in[0].dims[3] + column;
            sum += weight[0][i / 4] * weight[1][i % 4] * element_or_zero(x + (size_t)c * plane, at);
        }
        out[(size_t)c * places] = sum;
    }
}

GRAFT_FOREIGN_RUNNER(grid)
{
    const int32_t mode = opaque->attrs[GRID_MODE];
    const bool nearest = mode == MODE_NEAREST;
    const bool cubic = mode == MODE_CUBIC || mode == MODE_BICUBIC; /* Opset 16 has the latter. */
    const size_t plane = graft_axes_count(&opaque->in[0], 2, 4);
    const size_t places = graft_axes_count(&opaque->out, 2, 4);
    const size_t channels = (size_t)opaque->out.dims[1];
    grid_block block;
    for (size_t n = 0; n < (size_t)opaque->out.dims[0]; n++) {
        const float *x = (const float *)opaque->data[0] + n * channels * plane;
        const float *grid = (const float *)opaque->data[1] + n * places * 2;
        float *y = (float *)out + n * channels * places;
        for (size_t i = 0; i < places && cubic; i++) {
            mix_cubic(opaque, grid + i * 2, x, y + i);
        }
        for (size_t first = 0; first < places && !cubic; first += GRID_BLOCK) {
            const size_t count = places - first < GRID_BLOCK ? places - first : GRID_BLOCK;
            for (size_t i = 0; i < count; i++) {
                find_place(opaque, grid + (first + i) * 2, i, &block);
            }
            for (size_t c = 0; c < channels; c++) {
                mix_places(&block, count, nearest, x + c * plane, y + c * places + first);
            }
        }
    }
    return GRAFT_OK;
}

/* ------------------------------------------------------------------------------------- LRN */

enum { LRN_SIZE = 1, LRN_ALPHA, LRN_BETA, LRN_BIAS, LRN_BLOCK = 1024 };

bool graft_foreign_lrn_shape(const graft_opaque *opaque, graft_shape *shape)
{
    *shape = opaque->in[0];
    return opaque->attrs[LRN_SIZE] > 0 && shape->dtype == GRAFT_DTYPE_F32 && shape->rank >= 2;
}

/* out = x / sums^beta; 0.75, which all networks have, without a power. */
static void divide_by_power(const float *x, const float *sums, size_t count, float beta, float *out)
{
    if (beta == 0.75F) {
        for (size_t i = 0; i < count; i++) {
            const float root = sqrtf(sums[i]);
            out[i] = x[i] / (root * sqrtf(root));
        }
        return;
    }
    for (size_t i = 0; i < count; i++) {
        out[i] = x[i] / powf(sums[i], beta);
    }
}

/* A piece of a channel, by squares of the channels around it, each `step` elements apart. */
static void normalise(const graft_opaque *opaque, const float *x, const int64_t around[2],
                      size_t step, size_t count, float *out)
{
    float sums[LRN_BLOCK] = {0.0F};
    const float bias = graft_float_of_bits(opaque->attrs[LRN_BIAS]);
    const float factor =
        graft_float_of_bits(opaque->attrs[LRN_ALPHA]) / (float)opaque->attrs[LRN_SIZE];
    for (int64_t c = around[0]; c <= around[1]; c++) {
        const float *other = x + c * (int64_t)step;
        for (size_t i = 0; i < count; i++) {
            sums[i] += other[i] * other[i];
        }
    }
    for (size_t i = 0; i < count; i++) {
        sums[i] = bias + factor * sums[i];
    }
    divide_by_power(x, sums, count, graft_float_of_bits(opaque->attrs[LRN_BETA]), out);
}

GRAFT_FOREIGN_RUNNER(lrn)
{
    const int64_t channels = opaque->out.dims[1];
    const size_t step = graft_axes_count(&opaque->out, 2, opaque->out.rank);
    const int64_t before = (opaque->attrs[LRN_SIZE] - 1) / 2;
    const int64_t behind = opaque->attrs[LRN_SIZE] - 1 - before;
    for (int64_t row = 0; row < channels * opaque->out.dims[0]; row++) {
        const int64_t c = row % channels;
        const int64_t around[2] = {c < before ? -c : -before,
                                   channels - 1 - c < behind ? channels - 1 - c : behind};
        const float *x = (const float *)opaque->data[0] + (size_t)row * step;
        for (size_t i = 0; i < step; i += LRN_BLOCK) {
            const size_t count = step - i < LRN_BLOCK ? step - i : LRN_BLOCK;
            normalise(opaque, x + i, around, step, count, (float *)out + (size_t)row * step + i);
        }
    }
    return GRAFT_OK;
}

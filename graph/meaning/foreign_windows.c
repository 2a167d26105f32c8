/* foreign_windows.c - convolutions that rules do not know, by plain loops (see foreign.h). */
#include "graph/meaning/foreign_rows.h"

#include "graph/meaning/algebra.h"
#include "graph/meaning/byte_conv.h"

#include <string.h>

/* ------------------------------------------------------------------------------------ Conv */

/* The attributes of `conv`, of two axes: an image of one has another, of size 1, before it. */
enum {
    CONV_AXES = 2,
    CONV_STRIDE = GRAFT_ATTR_conv_stride_h,
    CONV_DILATION = GRAFT_ATTR_conv_dilation_h,
    CONV_BEFORE = GRAFT_ATTR_conv_pad_top,
    CONV_AFTER = GRAFT_ATTR_conv_pad_bottom,
    CONV_GROUPS = GRAFT_ATTR_conv_groups,
    CONV_EXTRA
};
/* Products of a node: of more, plain loops take longer than anybody waits. */
static const uint64_t products_most = UINT64_C(1) << 36;

/* An attribute with `sides` numbers an axis, each between `least` and 65535. */
static bool read_axes(const Onnx__NodeProto *node, const char *name, uint32_t sides, int32_t least,
                      uint32_t axes, int32_t *attrs)
{
    const Onnx__AttributeProto *attribute = graft_onnx_attribute(node, name);
    bool fits = attribute == NULL || attribute->n_ints == (size_t)sides * axes;
    for (uint32_t i = 0; i < sides * CONV_AXES; i++) {
        attrs[i] = least;
    }
    for (uint32_t i = 0; attribute != NULL && fits && i < sides * axes; i++) {
        const int64_t number = attribute->ints[i];
        fits = number >= least && number <= UINT16_MAX;
        attrs[i / axes * CONV_AXES + (CONV_AXES - axes) + i % axes] = (int32_t)number;
    }
    return fits;
}

bool graft_foreign_read_conv(const Onnx__NodeProto *node, graft_opaque *opaque)
{
    const uint32_t rank = opaque->in[0].rank;
    const int64_t groups = graft_onnx_int(node, "group", 1);
    opaque->attrs[CONV_GROUPS] = groups >= 1 && groups <= INT32_MAX ? (int32_t)groups : 0;
    return (rank == 3 || rank == 4) && opaque->in[1].rank == rank && groups >= 1 &&
           (graft_onnx_says(node, "auto_pad", "NOTSET", true) ||
            graft_onnx_says(node, "auto_pad", "VALID", false)) &&
           read_axes(node, "strides", 1, 1, rank - 2, opaque->attrs + CONV_STRIDE) &&
           read_axes(node, "dilations", 1, 1, rank - 2, opaque->attrs + CONV_DILATION) &&
           read_axes(node, "pads", 2, 0, rank - 2, opaque->attrs + CONV_BEFORE);
}

/* Whether input 2 is missing, or has one number of binary32 for each of `count` channels. */
static bool fits_bias(const graft_opaque *opaque, int32_t count)
{
    const graft_shape *bias = &opaque->in[2];
    return !graft_foreign_has(opaque, 2) ||
           (bias->dtype == GRAFT_DTYPE_F32 && bias->rank == 1 && bias->dims[0] == count);
}

/* Of elements of any type. */
static bool shape_windows(const graft_opaque *opaque, graft_shape *shape)
{
    const graft_shape *x = &opaque->in[0];
    const graft_shape *w = &opaque->in[1];
    const int64_t groups = opaque->attrs[CONV_GROUPS];
    bool fits = groups > 0 && w->dims[1] * groups == x->dims[1] && w->dims[0] % groups == 0;
    *shape = *x;
    shape->dims[1] = w->dims[0];
    for (uint32_t i = 2; i < x->rank && fits; i++) {
        const uint32_t a = i + CONV_AXES - x->rank;
        const int64_t reach = ((int64_t)w->dims[i] - 1) * opaque->attrs[CONV_DILATION + a] + 1;
        const int64_t way =
            x->dims[i] + opaque->attrs[CONV_BEFORE + a] + opaque->attrs[CONV_AFTER + a] - reach;
        fits = way >= 0 && graft_foreign_size(shape, i, way / opaque->attrs[CONV_STRIDE + a] + 1);
    }
    return fits;
}

bool graft_foreign_conv_shape(const graft_opaque *opaque, graft_shape *shape)
{
    const graft_shape *w = &opaque->in[1];
    const uint64_t window = graft_shape_elements(w) / (uint64_t)w->dims[0];
    return opaque->in[0].dtype == GRAFT_DTYPE_F32 && w->dtype == GRAFT_DTYPE_F32 &&
           fits_bias(opaque, w->dims[0]) && shape_windows(opaque, shape) &&
           graft_shape_elements(shape) <= products_most / window;
}

/* The places of a filter that lie inside of an axis, when its first lies at `start`. */
typedef struct {
    int64_t start;
    int64_t step;
    int64_t first;
    int64_t end;
} reach;

static reach reach_of(const graft_opaque *opaque, uint32_t axis, int64_t size, int64_t filter,
                      int64_t place)
{
    reach r = {.step = opaque->attrs[CONV_DILATION + axis]};
    r.start = place * opaque->attrs[CONV_STRIDE + axis] - opaque->attrs[CONV_BEFORE + axis];
    r.first = r.start >= 0 ? 0 : (-r.start + r.step - 1) / r.step;
    r.end = r.start >= size ? 0 : (size - 1 - r.start) / r.step + 1;
    r.end = r.end > filter ? filter : r.end;
    return r;
}

/* Many sums, which compilers make some vectors of: one would wait for itself. */
float graft_foreign_dot_real(const float *x, const float *w, int64_t count)
{
    enum { SUMS = 32 };
    float sums[SUMS] = {0.0F};
    float rest = 0.0F;
    int64_t i = 0;
    for (; i + SUMS <= count; i += SUMS) {
        for (int64_t k = 0; k < SUMS; k++) {
            sums[k] += x[i + k] * w[i + k];
        }
    }
    for (; i < count; i++) {
        rest += x[i] * w[i];
    }
    for (int64_t half = count < SUMS ? 0 : SUMS / 2; half > 0; half /= 2) {
        for (int64_t k = 0; k < half; k++) {
            sums[k] += sums[k + half];
        }
    }
    return rest + sums[0];
}

/* What lies under the filter at a place: (channels of the group, filter height, filter width). */
static void take_real_window(const float *x, int64_t channels, const int64_t size[2],
                             const int64_t filter[2], const reach r[2], float *window)
{
    memset(window, 0, (size_t)(channels * filter[0] * filter[1]) * sizeof(window[0]));
    for (int64_t c = 0; c < channels; c++) {
        for (int64_t k = r[0].first; k < r[0].end; k++) {
            const float *row = x + (c * size[0] + r[0].start + k * r[0].step) * size[1];
            float *to = window + (c * filter[0] + k) * filter[1];
            for (int64_t j = r[1].first; j < r[1].end; j++) {
                to[j] = row[r[1].start + j * r[1].step];
            }
        }
    }
}

/* One group of one image. */
typedef struct {
    const float *x;    /* (channels, height, width) */
    const float *w;    /* (filters, channels, height, width) */
    const float *bias; /* (filters); NULL: none. */
    float *out;
    int64_t size[2];
    int64_t filter[2];
    int64_t filters;
    int64_t terms;
    int64_t rows; /* Of the result, */
    int64_t width;
} conv_group;

/* A row of elements that lie side by side in `x` for each place of the filter, however far its
 * places lie apart; `rows` says which of its rows are inside. */
static void convolve_row(const graft_opaque *opaque, const conv_group *g, const float *w,
                         const reach *rows, float *out)
{
    const int64_t *size = g->size;
    const int64_t *filter = g->filter;
    for (int64_t c = 0; c < opaque->in[1].dims[1]; c++) {
        for (int64_t tap = rows->first * filter[1]; tap < rows->end * filter[1]; tap++) {
            const int64_t shift =
                tap % filter[1] * opaque->attrs[CONV_DILATION + 1] - opaque->attrs[CONV_BEFORE + 1];
            const int64_t end = size[1] - shift < g->width ? size[1] - shift : g->width;
            const float *row =
                g->x + (c * size[0] + rows->start + tap / filter[1] * rows->step) * size[1];
            const float weight = w[c * filter[0] * filter[1] + tap];
            for (int64_t i = shift < 0 ? -shift : 0; i < end; i++) {
                out[i] += weight * row[i + shift];
            }
        }
    }
}

static void convolve_rows(const graft_opaque *opaque, const conv_group *g)
{
    for (int64_t i = 0; i < g->filters * g->rows; i++) {
        const int64_t o = i / g->rows;
        const reach rows = reach_of(opaque, 0, g->size[0], g->filter[0], i % g->rows);
        float *to = g->out + i * g->width;
        for (int64_t k = 0; k < g->width; k++) {
            to[k] = g->bias == NULL ? 0.0F : g->bias[o];
        }
        convolve_row(opaque, g, g->w + o * g->terms, &rows, to);
    }
}

/* Where rows are short or their places lie apart: windows of some places at a time, for all
 * filters. */
static void convolve_windows(graft_arena *scratch, const graft_opaque *opaque, const conv_group *g)
{
    enum { ROOM = 1 << 16 };
    GRAFT_SCOPED(scratch);
    const int64_t places = g->rows * g->width;
    const int64_t most = g->terms < ROOM ? ROOM / g->terms : 1;
    float *windows = GRAFT_NEW(scratch, float, (size_t)(most * g->terms));
    for (int64_t first = 0; first < places; first += most) {
        const int64_t count = places - first < most ? places - first : most;
        for (int64_t i = 0; i < count; i++) {
            const int64_t at = first + i;
            const reach r[2] = {reach_of(opaque, 0, g->size[0], g->filter[0], at / g->width),
                                reach_of(opaque, 1, g->size[1], g->filter[1], at % g->width)};
            take_real_window(g->x, opaque->in[1].dims[1], g->size, g->filter, r,
                             windows + i * g->terms);
        }
        for (int64_t i = 0; i < g->filters * count; i++) {
            const int64_t o = i / count;
            g->out[o * places + first + i % count] =
                (g->bias == NULL ? 0.0F : g->bias[o]) +
                graft_foreign_dot_real(windows + i % count * g->terms, g->w + o * g->terms,
                                       g->terms);
        }
    }
}

GRAFT_FOREIGN_RUNNER(conv)
{
    enum { WIDE = 16 };
    const graft_shape *x = &opaque->in[0];
    const graft_shape *w = &opaque->in[1];
    const graft_shape *y = &opaque->out;
    const int64_t groups = opaque->attrs[CONV_GROUPS];
    conv_group g = {
        .size = {x->rank == 3 ? 1 : x->dims[2], x->dims[x->rank - 1]},
        .filter = {w->rank == 3 ? 1 : w->dims[2], w->dims[w->rank - 1]},
        .filters = w->dims[0] / groups,
        .terms = (int64_t)graft_axes_count(w, 1, w->rank),
        .rows = y->rank == 3 ? 1 : y->dims[2],
        .width = y->dims[y->rank - 1],
    };
    for (int64_t i = 0; i < x->dims[0] * groups; i++) {
        const int64_t first = i % groups * g.filters;
        g.x = (const float *)opaque->data[0] + i * w->dims[1] * g.size[0] * g.size[1];
        g.w = (const float *)opaque->data[1] + first * g.terms;
        g.bias = opaque->data[2] == NULL ? NULL : (const float *)opaque->data[2] + first;
        g.out = (float *)out + i * g.filters * g.rows * g.width;
        if (opaque->attrs[CONV_STRIDE + 1] == 1 && g.width >= WIDE) {
            convolve_rows(opaque, &g);
        } else {
            convolve_windows(env->scratch, opaque, &g);
        }
    }
    return GRAFT_OK;
}

/* Zero points: one of the image, one of the filters or of each; bytes of either sign. */
bool graft_foreign_conv_integer_shape(const graft_opaque *opaque, graft_shape *shape)
{
    bool fits = shape_windows(opaque, shape);
    for (uint32_t k = 0; k < 2; k++) {
        const graft_shape *zero = &opaque->in[2 + k];
        fits = fits && graft_foreign_is_byte(opaque->in[k].dtype) &&
               (!graft_foreign_has(opaque, 2 + k) ||
                (zero->dtype == opaque->in[k].dtype && zero->rank <= 1 &&
                 (graft_shape_elements(zero) == 1 ||
                  (k == 1 && zero->dims[0] == opaque->in[1].dims[0]))));
    }
    shape->dtype = GRAFT_DTYPE_I32;
    return fits;
}

static graft_byte_conv byte_conv_of(const graft_opaque *opaque)
{
    graft_byte_conv c =
        graft_byte_conv_of(opaque->attrs, &opaque->in[0], &opaque->in[1], &opaque->out);
    c.threads = opaque->threads;
    return c;
}

void *graft_foreign_keep_conv_integer(graft_arena *arena, const graft_opaque *opaque)
{
    const graft_byte_conv c = byte_conv_of(opaque);
    const graft_byte_filter filter = {
        .data = opaque->data[1],
        .zeros = graft_foreign_has(opaque, 3) ? opaque->data[3] : NULL,
        .dtype = opaque->in[1].dtype,
        .zero_step = graft_foreign_zero_step(opaque, 3),
    };
    int32_t *packed = GRAFT_NEW(arena, int32_t, graft_byte_conv_packed_bytes(&c) / sizeof(int32_t));
    graft_byte_conv_pack(&c, &filter, packed);
    return packed;
}

GRAFT_FOREIGN_RUNNER(conv_integer)
{
    const graft_byte_conv c = byte_conv_of(opaque);
    const graft_byte_image image = {
        .data = opaque->data[0],
        .dtype = opaque->in[0].dtype,
        .zero = graft_foreign_has(opaque, 2) ? (int32_t)graft_foreign_whole(opaque, 2, 0) : 0,
    };
    graft_byte_conv_run_all(env->scratch, &c, opaque->kept, &image, (size_t)opaque->in[0].dims[0],
                            out);
    return GRAFT_OK;
}

/* --------------------------------------------------------------------------- ConvTranspose */

bool graft_foreign_read_transposed(const Onnx__NodeProto *node, graft_opaque *opaque)
{
    return graft_foreign_read_conv(node, opaque) &&
           read_axes(node, "output_padding", 1, 0, opaque->in[0].rank - 2U,
                     opaque->attrs + CONV_EXTRA);
}

bool graft_foreign_transposed_shape(const graft_opaque *opaque, graft_shape *shape)
{
    const graft_shape *x = &opaque->in[0];
    const graft_shape *w = &opaque->in[1];
    const int32_t *a = opaque->attrs;
    const int64_t channels = (int64_t)w->dims[1] * a[CONV_GROUPS];
    bool fits = x->dtype == GRAFT_DTYPE_F32 && w->dtype == GRAFT_DTYPE_F32 && a[CONV_GROUPS] > 0 &&
                w->dims[0] == x->dims[1] && x->dims[1] % a[CONV_GROUPS] == 0 &&
                fits_bias(opaque, (int32_t)channels);
    *shape = *x;
    fits = fits && graft_foreign_size(shape, 1, channels);
    for (uint32_t i = 2; i < x->rank && fits; i++) {
        const uint32_t k = i + CONV_AXES - x->rank;
        const int64_t span = ((int64_t)w->dims[i] - 1) * a[CONV_DILATION + k] + 1;
        fits = graft_foreign_size(shape, i,
                                  ((int64_t)x->dims[i] - 1) * a[CONV_STRIDE + k] + span +
                                      a[CONV_EXTRA + k] - a[CONV_BEFORE + k] - a[CONV_AFTER + k]);
    }
    const uint64_t each = graft_shape_elements(w) / (uint64_t)w->dims[0];
    return fits && graft_shape_elements(x) <= products_most / each;
}

/* What a part of the taps of a group's filters, all of one channel, make of a row of the image. */
typedef struct {
    const float *x; /* (channels, height, width) */
    const float *w; /* (channels, filters * taps) */
    int64_t first;
    int64_t count;
    float
        *sums; /* (count, width) or, where more taps than places are side by side, (width, count) */
    bool by_taps;
} taps_of_row;

/* sums(lanes) = the sum over channels, in order, of each(channels) side(channels,lanes), where
 * channels lie `steps` apart. */
static inline void sum_lanes(const float *each, const float *side, const int64_t steps[2],
                             int64_t channels, int64_t lanes, float *sums)
{
    enum { MOST = 32 };
    float own[MOST] = {0.0F};
    for (int64_t c = 0; c < channels; c++) {
        for (int64_t k = 0; k < lanes; k++) {
            own[k] += each[c * steps[0]] * side[c * steps[1] + k];
        }
    }
    memcpy(sums, own, (size_t)lanes * sizeof(own[0]));
}

/* In lanes that stay in registers; the last ones may overlap those before. */
static void sum_taps(const graft_opaque *opaque, const taps_of_row *t, int64_t row)
{
    const graft_shape *s = &opaque->in[0];
    const int64_t width = s->dims[s->rank - 1];
    const int64_t step = (int64_t)graft_axes_count(&opaque->in[1], 1, opaque->in[1].rank);
    const int64_t area = (int64_t)graft_axes_count(s, 2, s->rank);
    const int64_t channels = s->dims[1] / opaque->attrs[CONV_GROUPS];
    const int64_t outer = t->by_taps ? width : t->count;
    const int64_t inner = t->by_taps ? t->count : width;
    const int64_t steps[2] = {t->by_taps ? area : step, t->by_taps ? step : area};
    const float *each = t->by_taps ? t->x + row * width : t->w + t->first;
    const float *side = t->by_taps ? t->w + t->first : t->x + row * width;
    const int64_t lanes = inner >= 32 ? 32 : inner >= 16 ? 16 : inner;
    for (int64_t k = 0; k < inner; k += lanes) {
        const int64_t first = k + lanes <= inner ? k : inner - lanes;
        for (int64_t i = 0; i < outer; i++) {
            float *sums = t->sums + i * inner + first;
            if (lanes == 32) {
                sum_lanes(each + i, side + first, steps, channels, 32, sums);
            } else if (lanes == 16) {
                sum_lanes(each + i, side + first, steps, channels, 16, sums);
            } else {
                sum_lanes(each + i, side + first, steps, channels, lanes, sums);
            }
        }
    }
}

/* Adds the sums where their taps put them. */
static void spread_taps(const graft_opaque *opaque, const taps_of_row *t, int64_t row, float *out)
{
    const graft_shape *f = &opaque->in[1];
    const graft_shape *y = &opaque->out;
    const int32_t *a = opaque->attrs;
    const int64_t area = (int64_t)graft_axes_count(f, 2, f->rank);
    const int64_t columns = f->dims[f->rank - 1];
    const int64_t width = opaque->in[0].dims[opaque->in[0].rank - 1];
    const int64_t size[2] = {y->rank == 3 ? 1 : y->dims[2], y->dims[y->rank - 1]};
    for (int64_t j = 0; j < t->count; j++) {
        const int64_t tap = (t->first + j) % area;
        const int64_t to = row * a[CONV_STRIDE] - a[CONV_BEFORE] + tap / columns * a[CONV_DILATION];
        const int64_t start = tap % columns * a[CONV_DILATION + 1] - a[CONV_BEFORE + 1];
        const int64_t stride = a[CONV_STRIDE + 1];
        int64_t begin = 0; /* Few places lie outside, so that this is faster than dividing. */
        int64_t end = to < 0 || to >= size[0] ? 0 : width;
        while (begin < end && start + begin * stride < 0) {
            begin++;
        }
        while (begin < end && start + (end - 1) * stride >= size[1]) {
            end--;
        }
        const int64_t line = ((t->first + j) / area * size[0] + to) * size[1] + start;
        const float *sums = t->sums + (t->by_taps ? j : j * width);
        const int64_t step = t->by_taps ? t->count : 1;
        for (int64_t k = begin; k < end; k++) {
            out[line + k * stride] += sums[k * step];
        }
    }
}

/* One group of one image, into results that hold the bias; some taps at a time. */
static void transpose_group(graft_arena *scratch, const graft_opaque *opaque, const float *x,
                            const float *w, float *out)
{
    enum { ROOM = 1 << 12 };
    GRAFT_SCOPED(scratch);
    const graft_shape *s = &opaque->in[0];
    const int64_t width = s->dims[s->rank - 1];
    const int64_t all = (int64_t)graft_axes_count(&opaque->in[1], 1, opaque->in[1].rank);
    const int64_t most = width < ROOM ? ROOM / width : 1;
    taps_of_row t = {.x = x, .w = w, .sums = GRAFT_NEW(scratch, float, (size_t)(most * width))};
    for (; t.first < all; t.first += t.count) {
        t.count = all - t.first < most ? all - t.first : most;
        t.by_taps = t.count > width;
        for (int64_t row = 0; row < (s->rank == 3 ? 1 : s->dims[2]); row++) {
            sum_taps(opaque, &t, row);
            spread_taps(opaque, &t, row, out);
        }
    }
}

GRAFT_FOREIGN_RUNNER(transposed)
{
    const size_t groups = (size_t)opaque->attrs[CONV_GROUPS];
    const size_t from = graft_axes_count(&opaque->in[0], 1, opaque->in[0].rank) / groups;
    const size_t weights = graft_axes_count(&opaque->in[1], 0, opaque->in[1].rank) / groups;
    const size_t to = graft_axes_count(&opaque->out, 1, opaque->out.rank) / groups;
    const size_t places = graft_axes_count(&opaque->out, 2, opaque->out.rank);
    const float *bias = opaque->data[2];
    float *results = out;
    for (size_t plane = 0; plane < graft_axes_count(&opaque->out, 0, 2); plane++) {
        const float start = bias == NULL ? 0.0F : bias[plane % (size_t)opaque->out.dims[1]];
        for (size_t i = 0; i < places; i++) {
            results[plane * places + i] = start;
        }
    }
    for (size_t i = 0; i < (size_t)opaque->in[0].dims[0] * groups; i++) {
        transpose_group(env->scratch, opaque, (const float *)opaque->data[0] + i * from,
                        (const float *)opaque->data[1] + i % groups * weights, results + i * to);
    }
    return GRAFT_OK;
}

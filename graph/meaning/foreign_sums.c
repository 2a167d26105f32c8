/* foreign_sums.c - sums and the like along axes, the largest along one, sums of products (see
 * foreign.h). Numbers of binary32 are added in binary64, whole ones wrap around. */
#include "graph/meaning/foreign_rows.h"

#include "graph/meaning/algebra.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static bool is_number(uint32_t dtype)
{
    return dtype == GRAFT_DTYPE_F32 || dtype == GRAFT_DTYPE_I64 || dtype == GRAFT_DTYPE_I32;
}

/* ------------------------------------------------------------------------------ reductions */

enum { REDUCE_KEEP = 1, REDUCE_NOTHING, REDUCE_LISTED, REDUCE_AXES };

static bool add_axis(int64_t axis, uint32_t rank, int32_t *axes)
{
    axis += axis < 0 ? rank : 0;
    const bool fits = axis >= 0 && axis < rank && (*axes >> axis & 1) == 0;
    *axes |= fits ? 1 << axis : 0;
    return fits;
}

/* Axes are an attribute, an input, or all; none of them where it says so. Roots and logarithms are
 * of binary32. */
bool graft_foreign_read_reduce(const Onnx__NodeProto *node, graft_opaque *opaque)
{
    const Onnx__AttributeProto *axes = graft_onnx_attribute(node, "axes");
    const uint32_t rank = opaque->in[0].rank;
    const bool real = opaque->in[0].dtype == GRAFT_DTYPE_F32;
    bool fits = (axes == NULL || node->n_input == 1) && is_number(opaque->in[0].dtype) &&
                (real || opaque->attrs[0] < GRAFT_FOREIGN_SUM_ROOT);
    opaque->attrs[REDUCE_KEEP] = graft_onnx_int(node, "keepdims", 1) != 0;
    opaque->attrs[REDUCE_NOTHING] = graft_onnx_int(node, "noop_with_empty_axes", 0) != 0;
    opaque->attrs[REDUCE_LISTED] = axes != NULL && axes->n_ints > 0;
    for (size_t i = 0; axes != NULL && i < axes->n_ints; i++) {
        fits = fits && add_axis(axes->ints[i], rank, &opaque->attrs[REDUCE_AXES]);
    }
    return fits;
}

/* The axes that go, as bits; false when they are not known. */
static bool find_axes(const graft_opaque *opaque, int32_t *axes)
{
    const uint32_t rank = opaque->in[0].rank;
    const bool listed = graft_foreign_has(opaque, 1);
    const uint32_t count = listed ? graft_foreign_list(opaque, 1) : 0;
    bool fits = count != UINT32_MAX;
    *axes = opaque->attrs[REDUCE_AXES];
    for (uint32_t i = 0; i < count && fits; i++) {
        fits = add_axis(graft_foreign_whole(opaque, 1, i), rank, axes);
    }
    if (!listed && opaque->attrs[REDUCE_LISTED] == 0 && opaque->attrs[REDUCE_NOTHING] == 0) {
        *axes = (1 << rank) - 1;
    }
    return fits;
}

static void drop_axes(graft_shape *shape, int32_t axes, bool keep)
{
    const graft_shape from = *shape;
    *shape = (graft_shape){.rank = 0, .dtype = from.dtype};
    for (uint32_t i = 0; i < from.rank; i++) {
        const bool gone = (axes >> i & 1) != 0;
        if (keep || !gone) {
            shape->dims[shape->rank++] = gone ? 1 : from.dims[i];
        }
    }
}

bool graft_foreign_reduce_shape(const graft_opaque *opaque, graft_shape *shape)
{
    int32_t axes = 0;
    const bool fits = find_axes(opaque, &axes);
    *shape = opaque->in[0];
    drop_axes(shape, axes, opaque->attrs[REDUCE_KEEP] != 0);
    return fits;
}

static double add_real(int32_t code, double sum, double x, double top)
{
    switch (code) {
    case GRAFT_FOREIGN_SUM_PRODUCT:
        return sum * x;
    case GRAFT_FOREIGN_SUM_MAX:
        return x > sum || x != x ? x : sum;
    case GRAFT_FOREIGN_SUM_MIN:
        return x < sum || x != x ? x : sum;
    case GRAFT_FOREIGN_SUM_ABS:
        return sum + fabs(x);
    case GRAFT_FOREIGN_SUM_SQUARE:
    case GRAFT_FOREIGN_SUM_ROOT:
        return sum + x * x;
    case GRAFT_FOREIGN_SUM_EXP:
        return sum + exp(x - top);
    default:
        return sum + x;
    }
}

static int64_t add_whole(int32_t code, int64_t sum, int64_t x)
{
    const uint64_t a = (uint64_t)sum;
    const uint64_t b = (uint64_t)x;
    switch (code) {
    case GRAFT_FOREIGN_SUM_PRODUCT:
        return (int64_t)(a * b);
    case GRAFT_FOREIGN_SUM_MAX:
        return x > sum ? x : sum;
    case GRAFT_FOREIGN_SUM_MIN:
        return x < sum ? x : sum;
    case GRAFT_FOREIGN_SUM_ABS:
        return (int64_t)(x < 0 ? a - b : a + b);
    case GRAFT_FOREIGN_SUM_SQUARE:
        return (int64_t)(a + b * b);
    default:
        return (int64_t)(a + b);
    }
}

static double finish_real(int32_t code, double sum, double count, double top)
{
    return code == GRAFT_FOREIGN_SUM_MEAN   ? sum / count
           : code == GRAFT_FOREIGN_SUM_ROOT ? sqrt(sum)
           : code == GRAFT_FOREIGN_SUM_LOG  ? log(sum)
           : code == GRAFT_FOREIGN_SUM_EXP  ? log(sum) + top
                                            : sum;
}

/* Adds all elements to the sums of their places; `tops` are subtracted from exponents. */
static void add_reals(int32_t code, const graft_view *view, const float *x, const double *tops,
                      double *sums)
{
    const size_t columns = graft_view_columns(view);
    const size_t step = graft_view_step(view);
    for (size_t row = 0; row < graft_view_row_count(view); row++) {
        const size_t at = graft_view_row(view, row);
        for (size_t i = 0; i < columns; i++) {
            double *sum = &sums[at + i * step];
            *sum = add_real(code, *sum, (double)x[row * columns + i], tops[at + i * step]);
        }
    }
}

static double start_of(int32_t code)
{
    return code == GRAFT_FOREIGN_SUM_MAX       ? (double)-INFINITY
           : code == GRAFT_FOREIGN_SUM_MIN     ? (double)INFINITY
           : code == GRAFT_FOREIGN_SUM_PRODUCT ? 1.0
                                               : 0.0;
}

static void reduce_reals(graft_arena *scratch, const graft_opaque *opaque, const graft_view *view,
                         const float *x, float *out)
{
    const int32_t code = opaque->attrs[0];
    const size_t count = graft_count(&opaque->out);
    double *sums = GRAFT_NEW(scratch, double, count);
    double *tops = GRAFT_NEW(scratch, double, count);
    if (code == GRAFT_FOREIGN_SUM_EXP) { /* The largest is added last, so that nothing overflows. */
        for (size_t i = 0; i < count; i++) {
            sums[i] = (double)-INFINITY;
        }
        add_reals(GRAFT_FOREIGN_SUM_MAX, view, x, tops, sums);
    }
    for (size_t i = 0; i < count; i++) {
        tops[i] = isfinite(sums[i]) ? sums[i] : 0.0;
        sums[i] = start_of(code);
    }
    add_reals(code, view, x, tops, sums);
    const double terms = (double)graft_count(&opaque->in[0]) / (double)count;
    for (size_t i = 0; i < count; i++) {
        out[i] = (float)finish_real(code, sums[i], terms, tops[i]);
    }
}

static void reduce_wholes(graft_arena *scratch, const graft_opaque *opaque, const graft_view *view,
                          void *out)
{
    const int32_t code = opaque->attrs[0];
    const size_t count = graft_count(&opaque->out);
    const size_t all = graft_count(&opaque->in[0]);
    assert(all >= count); /* No size is 0. */
    int64_t *sums = GRAFT_NEW(scratch, int64_t, count);
    for (size_t i = 0; i < count; i++) {
        sums[i] = code == GRAFT_FOREIGN_SUM_MAX       ? INT64_MIN
                  : code == GRAFT_FOREIGN_SUM_MIN     ? INT64_MAX
                  : code == GRAFT_FOREIGN_SUM_PRODUCT ? 1
                                                      : 0;
    }
    for (size_t i = 0; i < all; i++) {
        int64_t *sum = &sums[graft_view_offset(view, view->rank, i)];
        *sum = add_whole(code, *sum, graft_foreign_whole(opaque, 0, (uint32_t)i));
    }
    for (size_t i = 0; i < count; i++) {
        const int64_t terms = code == GRAFT_FOREIGN_SUM_MEAN ? (int64_t)(all / count) : 1;
        graft_whole_put(out, opaque->out.dtype, i, sums[i] / terms);
    }
}

GRAFT_FOREIGN_RUNNER(reduce)
{
    GRAFT_SCOPED(env->scratch);
    const graft_shape one = {.rank = 1, .dims = {1}};
    int32_t axes = 0;
    (void)find_axes(opaque, &axes); /* They gave the shape. */
    const graft_view view =
        graft_view_reduced(opaque->in[0].rank == 0 ? &one : &opaque->in[0], (uint32_t)axes);
    if (opaque->out.dtype == GRAFT_DTYPE_F32) {
        reduce_reals(env->scratch, opaque, &view, opaque->data[0], out);
    } else {
        reduce_wholes(env->scratch, opaque, &view, out);
    }
    return GRAFT_OK;
}

/* ------------------------------------------------------- the largest, and the largest few */

enum { ARG_KEEP = 1, ARG_LAST, TOP_COUNT = 1, TOP_LARGEST };

/* Whole numbers that are ordered as `count` elements are, from `first` on and `step` apart; in the
 * opposite order where `flip` is -1, and not 0. */
static void read_keys(const graft_opaque *opaque, size_t first, size_t step, size_t count,
                      int64_t flip, int64_t *keys)
{
    if (opaque->in[0].dtype == GRAFT_DTYPE_F32) {
        const float *from = (const float *)opaque->data[0] + first;
        for (size_t i = 0; i < count; i++) {
            const int32_t bits = graft_bits_of_float(from[i * step]);
            keys[i] = (bits >= 0 ? bits : -(int64_t)(bits & INT32_MAX)) ^ flip;
        }
        return;
    }
    for (size_t i = 0; i < count; i++) {
        keys[i] = graft_foreign_whole(opaque, 0, (uint32_t)(first + i * step)) ^ flip;
    }
}

bool graft_foreign_arg_shape(const graft_opaque *opaque, graft_shape *shape)
{
    *shape = opaque->in[0];
    shape->dtype = GRAFT_DTYPE_I64;
    drop_axes(shape, 1 << opaque->axis, opaque->attrs[ARG_KEEP] != 0);
    return is_number(opaque->in[0].dtype) || graft_foreign_is_byte(opaque->in[0].dtype);
}

/* The least has the largest key of flipped ones. */
static int64_t flip_of(const graft_opaque *opaque)
{
    return opaque->attrs[0] == GRAFT_FOREIGN_SUM_MIN ? -1 : 0;
}

/* Where the largest of `count` keys lies: the first of equal ones, or the last. */
static int64_t find_largest(const int64_t *keys, size_t count, bool last)
{
    int64_t most = keys[0];
    for (size_t i = 1; i < count; i++) {
        most = keys[i] > most ? keys[i] : most;
    }
    size_t at = last ? count - 1 : 0;
    while (keys[at] != most) {
        at = last ? at - 1 : at + 1;
    }
    return (int64_t)at;
}

/* Likewise of rows, for each of their columns side by side; `keys` has room for two rows. */
static void find_largest_rows(const graft_opaque *opaque, size_t first, const graft_blocks *b,
                              int64_t *keys, int64_t *out)
{
    const size_t columns = b->inner;
    const int64_t flip = flip_of(opaque);
    const bool last = opaque->attrs[ARG_LAST] != 0;
    int64_t *most = keys + columns;
    read_keys(opaque, first, 1, columns, flip, most);
    memset(out, 0, columns * sizeof(out[0]));
    for (size_t k = 1; k < b->size; k++) {
        read_keys(opaque, first + k * columns, 1, columns, flip, keys);
        for (size_t i = 0; i < columns; i++) {
            const bool above = keys[i] > most[i] || (last && keys[i] == most[i]);
            most[i] = above ? keys[i] : most[i];
            out[i] = above ? (int64_t)k : out[i];
        }
    }
}

GRAFT_FOREIGN_RUNNER(arg)
{
    GRAFT_SCOPED(env->scratch);
    const graft_blocks b = graft_blocks_of(&opaque->in[0], (int32_t)opaque->axis);
    int64_t *keys = GRAFT_NEW(env->scratch, int64_t, b.inner == 1 ? b.size : 2 * b.inner);
    int64_t *places = out;
    for (size_t i = 0; i < b.outer; i++) {
        const size_t first = i * b.size * b.inner;
        if (b.inner == 1) {
            read_keys(opaque, first, 1, b.size, flip_of(opaque), keys);
            places[i] = find_largest(keys, b.size, opaque->attrs[ARG_LAST] != 0);
        } else {
            find_largest_rows(opaque, first, &b, keys, places + i * b.inner);
        }
    }
    return GRAFT_OK;
}

/* How many is an attribute up to opset 9. */
bool graft_foreign_top_shape(const graft_opaque *opaque, graft_shape *shape)
{
    const bool listed = graft_foreign_has(opaque, 1);
    const bool fits = listed ? graft_foreign_list(opaque, 1) == 1 && opaque->attrs[TOP_COUNT] < 1
                             : opaque->attrs[TOP_COUNT] >= 1;
    const int64_t count = !fits    ? -1
                          : listed ? graft_foreign_whole(opaque, 1, 0)
                                   : opaque->attrs[TOP_COUNT];
    *shape = opaque->in[0];
    shape->dtype = opaque->which == 1 ? (uint8_t)GRAFT_DTYPE_I64 : shape->dtype;
    return count <= shape->dims[opaque->axis] && graft_foreign_size(shape, opaque->axis, count) &&
           (is_number(opaque->in[0].dtype) || graft_foreign_is_byte(opaque->in[0].dtype));
}

typedef struct {
    int64_t key;
    int64_t place;
} ranked;

/* Ranks the largest key first, and of equal ones the first. */
static bool is_before(const ranked *a, const ranked *b)
{
    return a->key != b->key ? a->key > b->key : a->place < b->place;
}

/* Moves element `at` of a heap down to where it belongs; the root of a heap ranks last. */
static void sink(ranked *heap, size_t count, size_t at)
{
    const ranked item = heap[at];
    for (size_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        child += child + 1 < count && is_before(&heap[child], &heap[child + 1]) ? 1 : 0;
        if (!is_before(&item, &heap[child])) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = item;
}

/* The first `count` of `size` keys in rank order. Most keys rank behind the root and go at once. */
static void rank_first(const int64_t *keys, size_t size, size_t count, ranked *best)
{
    for (size_t k = 0; k < count; k++) {
        best[k] = (ranked){keys[k], (int64_t)k};
    }
    for (size_t k = count / 2; k-- > 0;) {
        sink(best, count, k);
    }
    for (size_t k = count; k < size; k++) {
        if (keys[k] > best[0].key) {
            best[0] = (ranked){keys[k], (int64_t)k};
            sink(best, count, 0);
        }
    }
    for (size_t left = count; left-- > 1;) {
        const ranked last = best[0];
        best[0] = best[left];
        best[left] = last;
        sink(best, left, 0);
    }
}

GRAFT_FOREIGN_RUNNER(top)
{
    GRAFT_SCOPED(env->scratch);
    const graft_blocks b = graft_blocks_of(&opaque->in[0], (int32_t)opaque->axis);
    const graft_shape *shape = &opaque->outs[opaque->made[0] != NULL ? 0 : 1];
    const size_t count = (size_t)shape->dims[opaque->axis];
    const size_t width = graft_foreign_width(&opaque->in[0]);
    int64_t *keys = GRAFT_NEW(env->scratch, int64_t, b.size);
    ranked *best = GRAFT_NEW(env->scratch, ranked, count);
    for (size_t i = 0; i < b.outer * b.inner; i++) {
        const size_t first = i / b.inner * b.size * b.inner + i % b.inner;
        read_keys(opaque, first, b.inner, b.size, opaque->attrs[TOP_LARGEST] != 0 ? 0 : -1, keys);
        rank_first(keys, b.size, count, best);
        for (size_t k = 0; k < count; k++) {
            const size_t to = (i / b.inner * count + k) * b.inner + i % b.inner;
            const size_t from = first + (size_t)best[k].place * b.inner;
            if (opaque->made[0] != NULL) {
                memcpy((uint8_t *)opaque->made[0] + to * width,
                       (const uint8_t *)opaque->data[0] + from * width, width);
            }
            if (opaque->made[1] != NULL) {
                ((int64_t *)opaque->made[1])[to] = best[k].place;
            }
        }
    }
    return GRAFT_OK;
}

/* --------------------------------------------------------------------------------- CumSum */

enum { CUMSUM_EXCLUSIVE = 1, CUMSUM_REVERSE };

static bool find_axis(const graft_opaque *opaque, int64_t *axis)
{
    const int64_t rank = opaque->in[0].rank;
    *axis = graft_foreign_list(opaque, 1) == 1 ? graft_foreign_whole(opaque, 1, 0) : rank;
    *axis += *axis < 0 ? rank : 0;
    return *axis >= 0 && *axis < rank;
}

bool graft_foreign_cumsum_shape(const graft_opaque *opaque, graft_shape *shape)
{
    int64_t axis = 0;
    *shape = opaque->in[0];
    return is_number(shape->dtype) && find_axis(opaque, &axis);
}

GRAFT_FOREIGN_RUNNER(cumsum)
{
    int64_t axis = 0;
    (void)find_axis(opaque, &axis); /* It was looked at. */
    const graft_blocks b = graft_blocks_of(&opaque->in[0], (int32_t)axis);
    const bool real = opaque->out.dtype == GRAFT_DTYPE_F32;
    for (size_t i = 0; i < b.outer * b.inner; i++) {
        double reals = 0.0;
        uint64_t wholes = 0;
        for (size_t k = 0; k < b.size; k++) {
            const size_t place = opaque->attrs[CUMSUM_REVERSE] != 0 ? b.size - 1 - k : k;
            const size_t at = (i / b.inner * b.size + place) * b.inner + i % b.inner;
            const double before = reals;
            const uint64_t rest = wholes;
            reals += real ? (double)((const float *)opaque->data[0])[at] : 0.0;
            wholes += real ? 0 : (uint64_t)graft_foreign_whole(opaque, 0, (uint32_t)at);
            const bool exclusive = opaque->attrs[CUMSUM_EXCLUSIVE] != 0;
            if (real) {
                ((float *)out)[at] = (float)(exclusive ? before : reals);
            } else {
                graft_whole_put(out, opaque->out.dtype, at, (int64_t)(exclusive ? rest : wholes));
            }
        }
    }
    return GRAFT_OK;
}

/* --------------------------------------------------------------------------------- Einsum */

/* Labels of the operands' axes and of the result's, from 1; 0: no more axes. Those of "..." are the
 * last ones, aligned at the right. */
enum {
    EINSUM_OPERANDS = 3,
    EINSUM_LABELS = 64,
    EINSUM_DOTS = EINSUM_LABELS - GRAFT_MAX_RANK,
    EINSUM_AXES = GRAFT_MAX_RANK
};

static uint8_t *labels_of(graft_opaque *opaque, uint32_t k)
{
    return (uint8_t *)&opaque->attrs[1] + (size_t)k * EINSUM_AXES;
}

static const uint8_t *labels_at(const graft_opaque *opaque, uint32_t k)
{
    return (const uint8_t *)&opaque->attrs[1] + (size_t)k * EINSUM_AXES;
}

/* Reads one term up to a comma, an arrow or the end; `rank` axes, any number when it is -1 and
 * `dots` for "...". Returns how many axes it has, -1 when it makes no sense. */
static int32_t read_term(const char **text, const char *end, int32_t rank, int32_t *dots,
                         uint8_t *labels)
{
    int32_t letters = 0;
    int32_t count = 0;
    for (const char *c = *text; c < end && *c != ',' && *c != '-'; c++) {
        letters += (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z');
    }
    for (; *text < end && **text != ',' && **text != '-'; (*text)++) {
        const char c = **text;
        if (c == '.') {
            if (end - *text < 3 || (*text)[1] != '.' || (*text)[2] != '.') {
                return -1;
            }
            const int32_t hidden = rank < 0 ? *dots : rank - letters;
            for (int32_t i = 0; i < hidden && count < EINSUM_AXES; i++) {
                labels[count++] = (uint8_t)(EINSUM_LABELS - hidden + i);
            }
            *dots = hidden > *dots ? hidden : *dots;
            *text += 2;
        } else if (c != ' ') {
            const bool small = c >= 'a' && c <= 'z';
            if (count == EINSUM_AXES || (!small && !(c >= 'A' && c <= 'Z'))) {
                return -1;
            }
            labels[count++] = (uint8_t)(small ? c - 'a' + 1 : c - 'A' + 27);
        }
    }
    return rank < 0 || rank == count ? count : -1;
}

/* Only with an arrow. */
bool graft_foreign_read_einsum(const Onnx__NodeProto *node, graft_opaque *opaque)
{
    const Onnx__AttributeProto *equation = graft_onnx_attribute(node, "equation");
    const char *text = equation == NULL ? "" : (const char *)equation->s.data;
    const char *end = equation == NULL ? text : text + equation->s.len;
    int32_t dots = 0;
    bool fits = true;
    _Static_assert((EINSUM_OPERANDS + 1) * EINSUM_AXES <= 4 * (GRAFT_OPAQUE_ATTRS_MOST - 1),
                   "a byte for each axis");
    for (uint32_t k = 0; k < opaque->read_count && fits; k++) {
        fits = (k == 0 || (text < end && *text++ == ',')) &&
               read_term(&text, end, opaque->in[k].rank, &dots, labels_of(opaque, k)) >= 0;
    }
    fits = fits && end - text >= 2 && text[0] == '-' && text[1] == '>';
    text += fits ? 2 : 0;
    return fits && read_term(&text, end, -1, &dots, labels_of(opaque, EINSUM_OPERANDS)) >= 0 &&
           text == end;
}

/* Sizes by label; 0: there is none. */
static bool size_labels(const graft_opaque *opaque, int32_t *sizes)
{
    bool fits = true;
    for (uint32_t k = 0; k < opaque->read_count; k++) {
        for (uint32_t i = 0; i < opaque->in[k].rank; i++) {
            int32_t *size = &sizes[labels_at(opaque, k)[i]];
            const int32_t own = opaque->in[k].dims[i];
            fits = fits && (*size <= 1 || own == 1 || own == *size);
            *size = own > *size ? own : *size;
        }
    }
    return fits;
}

bool graft_foreign_einsum_shape(const graft_opaque *opaque, graft_shape *shape)
{
    int32_t sizes[EINSUM_LABELS] = {0};
    const uint8_t *labels = labels_at(opaque, EINSUM_OPERANDS);
    uint64_t seen = 0;
    bool fits = size_labels(opaque, sizes);
    uint32_t summed = 0;
    double products = 1.0;
    for (uint32_t k = 0; k < opaque->read_count; k++) {
        fits = fits && opaque->in[k].dtype == GRAFT_DTYPE_F32;
    }
    for (uint32_t i = 0; i < EINSUM_LABELS; i++) {
        products *= sizes[i] > 0 ? (double)sizes[i] : 1.0;
    }
    shape->dtype = GRAFT_DTYPE_F32;
    for (uint32_t i = 0; i < EINSUM_AXES && labels[i] != 0 && fits; i++) {
        fits = (seen >> labels[i] & 1U) == 0 &&
               graft_foreign_size(shape, shape->rank++, sizes[labels[i]]);
        seen |= (uint64_t)1 << labels[i];
    }
    for (uint32_t i = 1; i < EINSUM_LABELS; i++) {
        summed += sizes[i] > 0 && (seen >> i & 1U) == 0;
    }
    return fits && summed <= GRAFT_MAX_RANK && products < 0x1p32; /* More takes too long. */
}

/* The loops: axes of the result, then those that are summed over. */
typedef struct {
    graft_view views[EINSUM_OPERANDS];
    uint32_t count; /* Operands. */
} products;

/* The steps along the axes of `labels`; a label that an operand has twice is its diagonal. */
static graft_view view_of(const graft_opaque *opaque, uint32_t k, const uint8_t *labels,
                          uint32_t count, const int32_t *sizes)
{
    graft_view view = {.sizes = {1}, .rank = count == 0 ? 1 : count};
    for (uint32_t i = 0; i < count; i++) {
        view.sizes[i] = (size_t)sizes[labels[i]];
        for (uint32_t a = 0; a < opaque->in[k].rank; a++) {
            const bool same = labels_at(opaque, k)[a] == labels[i] && opaque->in[k].dims[a] > 1;
            view.steps[i] +=
                same ? (size_t)graft_axes_count(&opaque->in[k], a + 1, opaque->in[k].rank) : 0;
        }
    }
    return view;
}

static float sum_products(const products *inner, const float *const *from)
{
    const size_t columns = graft_view_columns(&inner->views[0]);
    double sum = 0.0;
    for (size_t row = 0; row < graft_view_row_count(&inner->views[0]); row++) {
        const float *at[EINSUM_OPERANDS];
        size_t step[EINSUM_OPERANDS];
        for (uint32_t k = 0; k < inner->count; k++) {
            at[k] = from[k] + graft_view_row(&inner->views[k], row);
            step[k] = graft_view_step(&inner->views[k]);
        }
        for (size_t i = 0; i < columns; i++) {
            float product = 1.0F;
            for (uint32_t k = 0; k < inner->count; k++) {
                product *= at[k][i * step[k]];
            }
            sum += (double)product;
        }
    }
    return (float)sum;
}

GRAFT_FOREIGN_RUNNER(einsum)
{
    int32_t sizes[EINSUM_LABELS] = {0};
    uint8_t summed[EINSUM_LABELS];
    uint32_t count = 0;
    products outer = {.count = opaque->read_count};
    products inner = {.count = opaque->read_count};
    const uint8_t *labels = labels_at(opaque, EINSUM_OPERANDS);
    (void)size_labels(opaque, sizes); /* They gave the shape. */
    for (uint32_t i = 1; i < EINSUM_LABELS; i++) {
        if (sizes[i] > 0 && memchr(labels, (int)i, opaque->out.rank) == NULL) {
            summed[count++] = (uint8_t)i;
        }
    }
    for (uint32_t k = 0; k < opaque->read_count; k++) {
        outer.views[k] = view_of(opaque, k, labels, opaque->out.rank, sizes);
        inner.views[k] = view_of(opaque, k, summed, count, sizes);
    }
    for (size_t i = 0; i < graft_count(&opaque->out); i++) {
        const float *from[EINSUM_OPERANDS] = {NULL};
        for (uint32_t k = 0; k < opaque->read_count; k++) {
            from[k] = (const float *)opaque->data[k] +
                      graft_view_offset(&outer.views[k], outer.views[k].rank, i);
        }
        ((float *)out)[i] = sum_products(&inner, from);
    }
    return GRAFT_OK;
}

/* foreign_places.c - operators that copy elements of any type from other places (see foreign.h).
 *
 * Each axis of the result is a list: how far the index along it moves in the input. An element lies
 * where the sum over the axes says, and is a filling where one of them names no place. */
#include "graph/meaning/foreign_rows.h"

#include "graph/meaning/algebra.h"

#include <string.h>

/* Far enough below any sum of places. */
static const int64_t nowhere = INT64_MIN / 16;

/* Elements of an axis that lie one behind the other, `step` apart. */
typedef struct {
    int64_t at; /* Negative: the filling. */
    int64_t step;
    size_t count;
} run;

typedef struct {
    int64_t *at[GRAFT_MAX_RANK]; /* By axis of the result. */
    size_t size[GRAFT_MAX_RANK];
    uint32_t rank; /* At least 1. */
    run *runs;     /* Room for those of the last axis. */
    const void *from;
    const void *fill;
} places;

/* Lists of the result's axes, to be filled. A scalar has one of one element. */
static places new_places(graft_arena *scratch, const graft_shape *out, const void *from)
{
    static const uint64_t zero = 0;
    places p = {.rank = out->rank == 0 ? 1 : out->rank, .from = from, .fill = &zero};
    for (uint32_t i = 0; i < p.rank; i++) {
        p.size[i] = out->rank == 0 ? 1 : (size_t)out->dims[i];
        p.at[i] = GRAFT_NEW(scratch, int64_t, p.size[i]);
    }
    p.runs = GRAFT_NEW(scratch, run, p.size[p.rank - 1]);
    return p;
}

static int64_t step_of(const graft_shape *shape, uint32_t axis)
{
    return (int64_t)graft_axes_count(shape, axis + 1, shape->rank);
}

static size_t find_runs(const int64_t *at, size_t size, run *runs)
{
    size_t count = 0;
    for (size_t i = 0; i < size; i += runs[count++].count) {
        const bool steps = i + 1 < size && at[i] >= 0 && at[i + 1] >= 0;
        run *r = &runs[count];
        *r = (run){at[i], steps ? at[i + 1] - at[i] : 0, 1};
        while (i + r->count < size && at[i + r->count] == at[i] + (int64_t)r->count * r->step) {
            r->count++;
        }
    }
    return count;
}

#define COPY_RUN(type)                                                                             \
    for (size_t i = 0; i < count && step == 0; i++) {                                              \
        ((type *)out)[i] = *(const type *)from;                                                    \
    }                                                                                              \
    for (size_t i = 0; i < count && step != 0; i++) {                                              \
        ((type *)out)[i] = ((const type *)from)[(int64_t)i * step];                                \
    }                                                                                              \
    break

static void copy_run(const void *restrict from, int64_t step, size_t count, size_t width,
                     void *restrict out)
{
    if (step == 1) {
        memcpy(out, from, count * width);
        return;
    }
    switch (width) {
    case 1:
        COPY_RUN(uint8_t);
    case 2:
        COPY_RUN(uint16_t);
    case 4:
        COPY_RUN(uint32_t);
    default:
        COPY_RUN(uint64_t);
    }
}

static void copy_places(const places *p, size_t width, uint8_t *out)
{
    const uint32_t last = p->rank - 1;
    const size_t run_count = find_runs(p->at[last], p->size[last], p->runs);
    size_t index[GRAFT_MAX_RANK] = {0};
    size_t rows = 1;
    for (uint32_t i = 0; i < last; i++) {
        rows *= p->size[i];
    }
    for (size_t row = 0; row < rows; row++) {
        int64_t base = 0;
        for (uint32_t i = 0; i < last; i++) {
            base += p->at[i][index[i]];
        }
        for (size_t i = 0; i < run_count; i++) {
            const run *r = &p->runs[i];
            const bool fills = base + r->at < 0;
            copy_run(fills ? p->fill : (const uint8_t *)p->from + (size_t)(base + r->at) * width,
                     fills ? 0 : r->step, r->count, width, out);
            out += r->count * width;
        }
        for (uint32_t i = last; i-- > 0 && ++index[i] == p->size[i];) {
            index[i] = 0;
        }
    }
}

/* ---------------------------------------------------------------------- Expand and Tile */

bool graft_foreign_expand_shape(const graft_opaque *opaque, graft_shape *shape)
{
    const graft_shape *from = &opaque->in[0];
    const uint32_t count = graft_foreign_list(opaque, 1);
    bool fits = count <= GRAFT_MAX_RANK && opaque->in[1].rank == 1;
    shape->rank = !fits || from->rank > count ? from->rank : (uint8_t)count;
    shape->dtype = from->dtype;
    for (uint32_t i = 0; i < shape->rank && fits; i++) {
        const uint32_t missing = (uint32_t)shape->rank - from->rank;
        const uint32_t absent = (uint32_t)shape->rank - count;
        const int64_t old = i < missing ? 1 : from->dims[i - missing];
        const int64_t wanted = i < absent ? 1 : graft_foreign_whole(opaque, 1, i - absent);
        fits = (wanted == old || wanted == 1 || old == 1) &&
               graft_foreign_size(shape, i, wanted == 1 ? old : wanted);
    }
    return fits;
}

/* An axis goes around along itself: any number of times, or on one place. */
GRAFT_FOREIGN_RUNNER(expand)
{
    const graft_shape *in = &opaque->in[0];
    const uint32_t missing = (uint32_t)opaque->out.rank - in->rank;
    GRAFT_SCOPED(env->scratch);
    places p = new_places(env->scratch, &opaque->out, opaque->data[0]);
    for (uint32_t i = missing; i < opaque->out.rank; i++) {
        const size_t size = (size_t)in->dims[i - missing];
        const int64_t step = step_of(in, i - missing);
        for (size_t k = 0; k < p.size[i]; k++) {
            p.at[i][k] = (int64_t)(k % size) * step;
        }
    }
    copy_places(&p, graft_foreign_width(&opaque->out), out);
    return GRAFT_OK;
}

bool graft_foreign_tile_shape(const graft_opaque *opaque, graft_shape *shape)
{
    const graft_shape *from = &opaque->in[0];
    bool fits = graft_foreign_list(opaque, 1) == from->rank;
    *shape = *from;
    for (uint32_t i = 0; i < from->rank && fits; i++) {
        int64_t size = 0;
        fits = !__builtin_mul_overflow(graft_foreign_whole(opaque, 1, i), from->dims[i], &size) &&
               graft_foreign_size(shape, i, size);
    }
    return fits;
}

GRAFT_FOREIGN_RUNNER(tile) { return graft_foreign_expand(env, opaque, out); }

/* ---------------------------------------------------------------------------------- Pad */

enum { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP };
/* Up to opset 10 pads and the filling are attributes. */
enum {
    PAD_MODE = 1,
    PAD_RANK,
    PAD_VALUE,
    PAD_LIST,
    PAD_LIST_MOST = GRAFT_OPAQUE_ATTRS_MOST - PAD_LIST
};

bool graft_foreign_read_pad(const Onnx__NodeProto *node, graft_opaque *opaque)
{
    const Onnx__AttributeProto *pads = graft_onnx_attribute(node, "pads");
    opaque->attrs[PAD_VALUE] = graft_foreign_float(node, "value", 0.0F);
    if ((pads == NULL) != (node->n_input > 1)) {
        return false;
    }
    if (pads == NULL) {
        return graft_onnx_attribute(node, "value") == NULL;
    }
    bool fits = pads->n_ints == 2U * opaque->in[0].rank && pads->n_ints <= PAD_LIST_MOST &&
                opaque->in[0].dtype == GRAFT_DTYPE_F32;
    opaque->attrs[PAD_RANK] = opaque->in[0].rank;
    for (size_t i = 0; i < pads->n_ints && fits; i++) {
        fits = pads->ints[i] >= INT32_MIN && pads->ints[i] <= INT32_MAX;
        opaque->attrs[PAD_LIST + i] = (int32_t)pads->ints[i];
    }
    return fits;
}

/* What is added in front of an axis and behind it; false when it is not known. */
static bool read_pads(const graft_opaque *opaque, int64_t pads[2][GRAFT_MAX_RANK])
{
    const uint32_t rank = opaque->in[0].rank;
    const bool listed = graft_foreign_has(opaque, 3);
    const uint32_t axes = listed ? graft_foreign_list(opaque, 3) : rank;
    memset(pads, 0, 2 * sizeof(pads[0]));
    if (!graft_foreign_has(opaque, 1)) {
        for (uint32_t i = 0; i < 2 * rank; i++) {
            pads[i / rank][i % rank] = opaque->attrs[PAD_LIST + i];
        }
        return (uint32_t)opaque->attrs[PAD_RANK] == rank;
    }
    bool fits = axes <= rank && graft_foreign_list(opaque, 1) == 2 * axes;
    for (uint32_t i = 0; i < axes && fits; i++) {
        int64_t axis = listed ? graft_foreign_whole(opaque, 3, i) : i;
        axis += axis < 0 ? rank : 0;
        fits = axis >= 0 && axis < rank;
        if (fits) {
            pads[0][axis] = graft_foreign_whole(opaque, 1, i);
            pads[1][axis] = graft_foreign_whole(opaque, 1, axes + i);
        }
    }
    return fits;
}

/* A mirror has no place behind the other end. What is cut off is gone before an edge or a mirror is
 * added; going around is not cut. */
bool graft_foreign_pad_shape(const graft_opaque *opaque, graft_shape *shape)
{
    int64_t pads[2][GRAFT_MAX_RANK];
    const graft_shape *from = &opaque->in[0];
    const int32_t mode = opaque->attrs[PAD_MODE];
    const bool filled =
        !graft_foreign_has(opaque, 2) ||
        (opaque->in[2].dtype == from->dtype && graft_shape_elements(&opaque->in[2]) == 1);
    bool fits = filled && read_pads(opaque, pads);
    *shape = *from;
    for (uint32_t i = 0; i < from->rank && fits; i++) {
        const int64_t least = mode == PAD_WRAP ? 0 : -(int64_t)from->dims[i];
        int64_t left = from->dims[i];
        for (uint32_t side = 0; side < 2 && fits; side++) {
            fits = pads[side][i] >= least;
            left += fits && pads[side][i] < 0 ? pads[side][i] : 0;
        }
        const int64_t most = mode == PAD_REFLECT ? left - 1 : INT32_MAX;
        fits = fits && (mode == PAD_CONSTANT || left > 0) && pads[0][i] <= most &&
               pads[1][i] <= most &&
               graft_foreign_size(shape, i, from->dims[i] + pads[0][i] + pads[1][i]);
    }
    return fits;
}

/* The index of an axis of `size` elements that stands at `index`, which may lie outside. */
static int64_t padded_index(int64_t index, int64_t size, int32_t mode)
{
    if (index >= 0 && index < size) {
        return index;
    }
    switch (mode) {
    case PAD_REFLECT:
        return index < 0 ? -index : 2 * (size - 1) - index;
    case PAD_EDGE:
        return index < 0 ? 0 : size - 1;
    case PAD_WRAP:
        return (index % size + size) % size;
    default:
        return nowhere;
    }
}

GRAFT_FOREIGN_RUNNER(pad)
{
    const graft_shape *from = &opaque->in[0];
    int64_t pads[2][GRAFT_MAX_RANK];
    GRAFT_SCOPED(env->scratch);
    places p = new_places(env->scratch, &opaque->out, opaque->data[0]);
    (void)read_pads(opaque, pads); /* They gave the shape. */
    p.fill = graft_foreign_has(opaque, 2)   ? opaque->data[2]
             : graft_foreign_has(opaque, 1) ? p.fill
                                            : &opaque->attrs[PAD_VALUE];
    for (uint32_t i = 0; i < opaque->out.rank; i++) {
        for (size_t k = 0; k < p.size[i]; k++) {
            const int64_t index =
                padded_index((int64_t)k - pads[0][i], from->dims[i], opaque->attrs[PAD_MODE]);
            p.at[i][k] = index < 0 ? nowhere : index * step_of(from, i);
        }
    }
    copy_places(&p, graft_foreign_width(&opaque->out), out);
    return GRAFT_OK;
}

/* -------------------------------------------------------------------------------- Slice */

/* What is taken of an axis. */
typedef struct {
    int64_t start;
    int64_t step;
    int64_t count;
} taken;

static bool take(const graft_opaque *opaque, uint32_t i, int64_t size, taken *t)
{
    const int64_t step = graft_foreign_has(opaque, 4) ? graft_foreign_whole(opaque, 4, i) : 1;
    const int64_t most = step > 0 ? size : size - 1;
    const int64_t least = step > 0 ? 0 : -1;
    int64_t start = graft_foreign_whole(opaque, 1, i);
    int64_t end = graft_foreign_whole(opaque, 2, i);
    if (step == 0 || step < -INT32_MAX || step > INT32_MAX) {
        return false;
    }
    start += start < 0 ? size : 0;
    end += end < 0 ? size : 0;
    start = start < 0 ? 0 : start > most ? most : start;
    end = end < least ? least : end > most ? most : end;
    const int64_t way = step > 0 ? end - start : start - end;
    const int64_t stride = step > 0 ? step : -step;
    *t = (taken){start, step, way <= 0 ? 0 : (way + stride - 1) / stride};
    return true;
}

/* Of each axis; false when the bounds make no sense or are not known. */
static bool read_slice(const graft_opaque *opaque, taken *axes)
{
    const graft_shape *from = &opaque->in[0];
    const uint32_t count = graft_foreign_list(opaque, 1);
    bool fits = count <= from->rank && graft_foreign_list(opaque, 2) == count;
    for (uint32_t k = 3; k < 5; k++) {
        fits = fits && (!graft_foreign_has(opaque, k) || graft_foreign_list(opaque, k) == count);
    }
    for (uint32_t i = 0; i < from->rank; i++) {
        axes[i] = (taken){0, 1, from->dims[i]};
    }
    uint32_t seen = 0;
    for (uint32_t i = 0; i < count && fits; i++) {
        int64_t axis = graft_foreign_has(opaque, 3) ? graft_foreign_whole(opaque, 3, i) : i;
        axis += axis < 0 ? from->rank : 0;
        fits = axis >= 0 && axis < from->rank && (seen >> axis & 1U) == 0 &&
               take(opaque, i, from->dims[axis], &axes[axis]);
        seen |= fits ? 1U << axis : 0;
    }
    return fits;
}

bool graft_foreign_slice_shape(const graft_opaque *opaque, graft_shape *shape)
{
    taken axes[GRAFT_MAX_RANK] = {{0}};
    bool fits = read_slice(opaque, axes);
    *shape = opaque->in[0];
    for (uint32_t i = 0; i < shape->rank && fits; i++) {
        fits = graft_foreign_size(shape, i, axes[i].count);
    }
    return fits;
}

GRAFT_FOREIGN_RUNNER(slice)
{
    taken axes[GRAFT_MAX_RANK] = {{0}};
    GRAFT_SCOPED(env->scratch);
    places p = new_places(env->scratch, &opaque->out, opaque->data[0]);
    (void)read_slice(opaque, axes); /* It gave the shape. */
    for (uint32_t i = 0; i < opaque->out.rank; i++) {
        for (size_t k = 0; k < p.size[i]; k++) {
            p.at[i][k] = (axes[i].start + (int64_t)k * axes[i].step) * step_of(&opaque->in[0], i);
        }
    }
    copy_places(&p, graft_foreign_width(&opaque->out), out);
    return GRAFT_OK;
}

/* ---------------------------------------------------------------- Transpose and Concat */

bool graft_foreign_read_transpose(const Onnx__NodeProto *node, graft_opaque *opaque)
{
    const Onnx__AttributeProto *order = graft_onnx_attribute(node, "perm");
    const uint32_t rank = opaque->in[0].rank;
    bool fits = order == NULL || order->n_ints == rank;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < rank && fits; i++) {
        const int64_t axis = order == NULL ? (int64_t)(rank - 1 - i) : order->ints[i];
        fits = axis >= 0 && axis < rank && (seen >> axis & 1U) == 0;
        seen |= fits ? 1U << axis : 0;
        opaque->attrs[1 + i] = (int32_t)axis;
    }
    return fits;
}

bool graft_foreign_transpose_shape(const graft_opaque *opaque, graft_shape *shape)
{
    *shape = opaque->in[0];
    for (uint32_t i = 0; i < shape->rank; i++) {
        shape->dims[i] = opaque->in[0].dims[opaque->attrs[1 + i]];
    }
    return true;
}

GRAFT_FOREIGN_RUNNER(transpose)
{
    GRAFT_SCOPED(env->scratch);
    places p = new_places(env->scratch, &opaque->out, opaque->data[0]);
    for (uint32_t i = 0; i < opaque->out.rank; i++) {
        for (size_t k = 0; k < p.size[i]; k++) {
            p.at[i][k] = (int64_t)k * step_of(&opaque->in[0], (uint32_t)opaque->attrs[1 + i]);
        }
    }
    copy_places(&p, graft_foreign_width(&opaque->out), out);
    return GRAFT_OK;
}

bool graft_foreign_beside(const graft_opaque *opaque, uint32_t first, uint32_t by,
                          graft_shape *shape)
{
    *shape = opaque->in[first];
    bool fits = true;
    int64_t size = 0;
    for (uint32_t k = first; k < opaque->read_count; k += by) {
        graft_shape other = opaque->in[k];
        size += other.dims[opaque->axis];
        other.dims[opaque->axis] = shape->dims[opaque->axis];
        fits = fits && graft_shape_equal(&other, shape);
    }
    return fits && graft_foreign_size(shape, opaque->axis, size);
}

bool graft_foreign_concat_shape(const graft_opaque *opaque, graft_shape *shape)
{
    return graft_foreign_beside(opaque, 0, 1, shape);
}

GRAFT_FOREIGN_RUNNER(concat)
{
    const size_t rows = graft_axes_count(&opaque->out, 0, opaque->axis);
    const size_t width = (size_t)graft_shape_bytes(&opaque->out) / rows;
    size_t at = 0;
    for (uint32_t k = 0; k < opaque->read_count; k++) {
        const size_t piece = (size_t)graft_shape_bytes(&opaque->in[k]) / rows;
        for (size_t row = 0; row < rows; row++) {
            memcpy((uint8_t *)out + row * width + at,
                   (const uint8_t *)opaque->data[k] + row * piece, piece);
        }
        at += piece;
    }
    return GRAFT_OK;
}

/* --------------------------------------------------------------------------------- Split */

/* Up to opset 12 sizes are an attribute. */
enum { SPLIT_COUNT = 1, SPLIT_LISTED, SPLIT_LIST };

bool graft_foreign_read_split(const Onnx__NodeProto *node, graft_opaque *opaque)
{
    const Onnx__AttributeProto *sizes = graft_onnx_attribute(node, "split");
    const size_t count = sizes == NULL ? 0 : sizes->n_ints;
    bool fits = graft_foreign_read_axis(node, opaque, opaque->in[0].rank, 0) &&
                count <= GRAFT_OPAQUE_ATTRS_MOST - SPLIT_LIST &&
                (sizes == NULL || (count == node->n_output && node->n_input == 1));
    opaque->attrs[SPLIT_COUNT] = (int32_t)node->n_output;
    opaque->attrs[SPLIT_LISTED] = sizes != NULL;
    for (size_t i = 0; i < count && fits; i++) {
        fits = sizes->ints[i] >= 1 && sizes->ints[i] <= INT32_MAX;
        opaque->attrs[SPLIT_LIST + i] = (int32_t)sizes->ints[i];
    }
    return fits;
}

/* Where the piece begins that is made, and its size. Without sizes the last one may be smaller. */
static bool find_piece(const graft_opaque *opaque, int64_t *from, int64_t *size)
{
    const int64_t whole = opaque->in[0].dims[opaque->axis];
    const uint32_t count = (uint32_t)opaque->attrs[SPLIT_COUNT];
    const bool given = graft_foreign_has(opaque, 1);
    bool fits = !given || graft_foreign_list(opaque, 1) == count;
    int64_t all = 0;
    for (uint32_t i = 0; i < count && fits; i++) {
        const int64_t each = (whole + count - 1) / count;
        const int64_t rest = whole - all < each ? whole - all : each;
        const int64_t piece = given                              ? graft_foreign_whole(opaque, 1, i)
                              : opaque->attrs[SPLIT_LISTED] != 0 ? opaque->attrs[SPLIT_LIST + i]
                                                                 : rest;
        *from = i == opaque->which ? all : *from;
        *size = i == opaque->which ? piece : *size;
        fits = piece >= 0 && piece <= whole - all;
        all += piece;
    }
    return fits && all == whole;
}

bool graft_foreign_split_shape(const graft_opaque *opaque, graft_shape *shape)
{
    int64_t from = 0;
    int64_t size = 0;
    *shape = opaque->in[0];
    return find_piece(opaque, &from, &size) && graft_foreign_size(shape, opaque->axis, size);
}

GRAFT_FOREIGN_RUNNER(split)
{
    int64_t from = 0;
    int64_t size = 0;
    (void)find_piece(opaque, &from, &size); /* It gave the shape. */
    const graft_blocks b = graft_blocks_of(&opaque->in[0], (int32_t)opaque->axis);
    const size_t bytes = b.inner * graft_foreign_width(&opaque->out);
    for (size_t i = 0; i < b.outer; i++) {
        memcpy((uint8_t *)out + i * (size_t)size * bytes,
               (const uint8_t *)opaque->data[0] + (i * b.size + (size_t)from) * bytes,
               (size_t)size * bytes);
    }
    return GRAFT_OK;
}

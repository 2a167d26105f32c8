/* algebra.h - what an operator's body reads, and the index maps it walks.
 *
 * operator_bodies.inc says what each operator means, once, over an abstract number. An algebra
 * includes it after defining
 *
 *      NUM                      the type of a number
 *      ALG(f)                   the algebra's name for f, e.g. f##_float
 *
 * and, all `static` and with the algebra's state `k` as first argument,
 *
 *      NUM lift(k, int32_t)         a small integer
 *      NUM lift_float(k, int32_t)   a finite binary32 given by its bits, exactly
 *      NUM sum, difference, product, quotient, max, min(k, NUM, NUM)
 *      NUM less, equal(k, NUM, NUM)     1 where it is so, else 0
 *      NUM remainder(k, NUM a, NUM b)   a less the largest whole number of b that are in it
 *      NUM choose(k, NUM c, NUM a, NUM b)   a where c, which is 0 or 1, is not 0; else b
 *      NUM exp, sqrt, erf, sigmoid, tanh, log, sin, cos(k, NUM)
 *      NUM round(k, NUM x, NUM scale)   x / scale rounded, halves to even
 *      NUM softmax_shift(k, const NUM *row, size_t count, size_t step)
 *                                   what to subtract from a row before exponentials are taken; the
 *                                   quotient does not depend on it. Exact algebras return 0, the
 *                                   floating-point one the largest element.
 *
 * One that knows more of dequantise than its arithmetic defines DEQUANTISED_APART, and
 *
 *      NUM scaled(k, NUM q, const int32_t *attrs)   what q stands for, by those of dequantise
 *
 * It then has ALG(run)[op](k, call, in, out) for every operator. Bodies write every output element
 * exactly once or accumulate in it; inputs and outputs do not overlap. Sums are taken in row-major
 * order of what is summed, starting from 0. Elements of padding are left out of sums and products,
 * never multiplied by 0. */
#pragma once

#include "graft/graft.h"

#include <stdlib.h>
#include <string.h>

/* One application of an operator; the shapes fit (graft_infer_shapes). */
typedef struct graft_call {
    const int32_t *attrs;   /* GRAFT_MAX_ATTRS entries */
    const graft_shape *in;  /* of the operator's inputs */
    const graft_shape *out; /* of its outputs */
} graft_call;

/* An operator without attributes on scalars, one output and two inputs at most. */
static inline graft_call graft_call_scalar(void)
{
    static const int32_t attrs[GRAFT_MAX_ATTRS] = {0};
    static const graft_shape scalars[3] = {
        {.dtype = GRAFT_DTYPE_F32}, {.dtype = GRAFT_DTYPE_F32}, {.dtype = GRAFT_DTYPE_F32}};
    return (graft_call){attrs, scalars, &scalars[2]};
}

static inline size_t graft_count(const graft_shape *shape)
{
    return (size_t)graft_shape_elements(shape);
}

/* Product of the sizes of axes [first, end). */
static inline size_t graft_axes_count(const graft_shape *shape, uint32_t first, uint32_t end)
{
    size_t count = 1;
    for (uint32_t i = first; i < end; i++) {
        count *= (size_t)shape->dims[i];
    }
    return count;
}

/* ------------------------------------------------------------------- views */

/* Where the element of an operand lies that belongs to a place in the tensor `sizes`. Rank at least
 * 1: a scalar is one row of one element. */
typedef struct graft_view {
    size_t sizes[GRAFT_MAX_RANK];
    size_t steps[GRAFT_MAX_RANK]; /* Elements of the operand per step along each axis; 0 repeats. */
    uint32_t rank;
} graft_view;

/* The operand's element at row-major place `index` of the first `rank` axes, 0 along the others. */
static inline size_t graft_view_offset(const graft_view *view, uint32_t rank, size_t index)
{
    size_t offset = 0;
    for (uint32_t i = rank; i-- > 0;) {
        offset += index % view->sizes[i] * view->steps[i];
        index /= view->sizes[i];
    }
    return offset;
}

/* Rows are everything but the last axis: where row `row` begins, and the step along it. */
static inline size_t graft_view_row(const graft_view *view, size_t row)
{
    return graft_view_offset(view, view->rank - 1, row);
}

static inline size_t graft_view_step(const graft_view *view) { return view->steps[view->rank - 1]; }

static inline size_t graft_view_columns(const graft_view *view)
{
    return view->sizes[view->rank - 1];
}

static inline size_t graft_view_row_count(const graft_view *view)
{
    size_t count = 1;
    for (uint32_t i = 0; i + 1 < view->rank; i++) {
        count *= view->sizes[i];
    }
    return count;
}

/* The axes of `from`, right-aligned with the first `rank` axes of `to`, sizes of 1 repeated. */
static inline graft_view graft_view_broadcast(const graft_shape *from, uint32_t from_rank,
                                              const graft_shape *to, uint32_t rank)
{
    graft_view view = {.sizes = {1}, .rank = rank > 0 ? rank : 1};
    size_t step = 1;
    for (uint32_t back = 1; back <= rank; back++) {
        int32_t size = back <= from_rank ? from->dims[from_rank - back] : 1;
        view.sizes[rank - back] = (size_t)to->dims[rank - back];
        view.steps[rank - back] = size == 1 ? 0 : step;
        step *= (size_t)size;
    }
    return view;
}

/* Makes one axis of two that follow each other in all operands. */
static inline void graft_views_join(graft_view *views, uint32_t count)
{
    for (uint32_t i = views[0].rank; i-- > 1;) {
        const size_t size = views[0].sizes[i];
        const bool joins = size == 1 || views[0].sizes[i - 1] == 1;
        bool follow = true;
        for (uint32_t k = 0; k < count; k++) {
            follow = follow && views[k].steps[i - 1] == views[k].steps[i] * size;
        }
        for (uint32_t k = 0; k < count && (joins || follow); k++) {
            graft_view *v = &views[k];
            const uint32_t behind = v->rank-- - i - 1;
            v->sizes[i - 1] *= size;
            v->steps[i - 1] = size == 1 ? v->steps[i - 1] : v->steps[i];
            memmove(&v->sizes[i], &v->sizes[i + 1], behind * sizeof(v->sizes[0]));
            memmove(&v->steps[i], &v->steps[i + 1], behind * sizeof(v->steps[0]));
        }
    }
}

/* Both operands of a broadcasting operator, in rows as long as may be. */
static inline void graft_view_operands(const graft_call *call, graft_view views[2])
{
    const graft_shape *out = &call->out[0];
    for (uint32_t i = 0; i < 2; i++) {
        views[i] = graft_view_broadcast(&call->in[i], call->in[i].rank, out, out->rank);
    }
    graft_views_join(views, 2);
}

/* The input of a transpose, in the order of its output. */
static inline graft_view graft_view_transpose(const graft_call *call)
{
    graft_view view = {.sizes = {1}, .rank = call->out->rank > 0 ? call->out->rank : 1};
    for (uint32_t i = 0; i < call->out->rank; i++) {
        uint32_t axis = (uint32_t)call->attrs[GRAFT_ATTR_transpose_axis_0 + i];
        view.sizes[i] = (size_t)call->out->dims[i];
        view.steps[i] = graft_axes_count(call->in, axis + 1, call->in->rank);
    }
    return view;
}

/* The output of a mean, in the order of its input: reduced axes stay where they are. */
static inline graft_view graft_view_reduced(const graft_shape *in, uint32_t axes)
{
    graft_view view = {.sizes = {1}, .rank = in->rank};
    size_t step = 1;
    for (uint32_t i = in->rank; i-- > 0;) {
        bool reduced = (axes & (1u << i)) != 0;
        view.sizes[i] = (size_t)in->dims[i];
        view.steps[i] = reduced ? 0 : step;
        step *= reduced ? 1 : (size_t)in->dims[i];
    }
    return view;
}

/* -------------------------------------------------------- blocks of an axis */

/* A tensor cut across one axis: `outer` blocks, each of `size` runs of `inner` elements. */
typedef struct graft_blocks {
    size_t outer;
    size_t size;
    size_t inner;
} graft_blocks;

static inline graft_blocks graft_blocks_of(const graft_shape *shape, int32_t axis)
{
    uint32_t a = (uint32_t)axis;
    return (graft_blocks){graft_axes_count(shape, 0, a), (size_t)shape->dims[a],
                          graft_axes_count(shape, a + 1, shape->rank)};
}

/* ----------------------------------------------------------------- windows */

/* A sliding window along one axis: tap t of position p reads element p stride + t dilation - before
 * of an axis of `size` elements. */
typedef struct graft_window {
    int64_t size;
    int64_t count;  /* positions */
    int64_t kernel; /* taps */
    int64_t stride;
    int64_t before;
    int64_t dilation;
} graft_window;

static inline int64_t graft_window_at(const graft_window *window, int64_t position, int64_t tap)
{
    return position * window->stride + tap * window->dilation - window->before;
}

/* The steps s in [0, limit) with 0 <= start + s step < size: a range [first, end), maybe empty.
 * Divisions would be a third of a small convolution, and most steps are 1. */
static inline void graft_window_range(int64_t start, int64_t step, int64_t size, int64_t limit,
                                      int64_t range[2])
{
    int64_t before = start < 0 ? -start + step - 1 : 0;
    int64_t room = start < size ? size - 1 - start + step : 0;
    int64_t first = step == 1 ? before : before / step;
    int64_t end = step == 1 ? room : room / step;
    range[0] = first;
    range[1] = end < limit ? end : limit;
}

/* Positions whose tap `tap` lies inside the input. */
static inline void graft_window_positions(const graft_window *window, int64_t tap, int64_t range[2])
{
    graft_window_range(graft_window_at(window, 0, tap), window->stride, window->size, window->count,
                       range);
}

/* Taps of position `position` that lie inside the input. */
static inline void graft_window_taps(const graft_window *window, int64_t position, int64_t range[2])
{
    graft_window_range(graft_window_at(window, position, 0), window->dilation, window->size,
                       window->kernel, range);
}

/* Axis i (0: height, 1: width) of a convolution's window. */
static inline graft_window graft_window_of_conv(const graft_call *call, uint32_t i)
{
    const int32_t *attrs = call->attrs;
    return (graft_window){.size = call->in[0].dims[2 + i],
                          .count = call->out[0].dims[2 + i],
                          .kernel = call->in[1].dims[2 + i],
                          .stride = attrs[GRAFT_ATTR_conv_stride_h + i],
                          .before = attrs[GRAFT_ATTR_conv_pad_top + i],
                          .dilation = attrs[GRAFT_ATTR_conv_dilation_h + i]};
}

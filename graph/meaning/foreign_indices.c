/* foreign_indices.c - operators that read places from a tensor: elements and rows that are gathered
 * and scattered, one-hot vectors; and the triangles of a matrix, sequences that are
 * reversed (see foreign.h). */
#include "graph/meaning/foreign_rows.h"

#include "graph/meaning/algebra.h"

#include <inttypes.h>
#include <string.h>

static bool is_whole(const graft_shape *shape)
{
    return shape->dtype == GRAFT_DTYPE_I64 || shape->dtype == GRAFT_DTYPE_I32;
}

/* Place `i` of the list that is input 1, in an axis of `size`; -1 when it lies outside. */
static int64_t place_at(const graft_opaque *opaque, size_t i, int64_t size)
{
    int64_t place = graft_foreign_whole(opaque, 1, (uint32_t)i);
    place += place < 0 ? size : 0;
    return place >= 0 && place < size ? place : -1;
}

static graft_status refuse_place(graft_env *env, size_t i)
{
    return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "place %zu of a list lies outside of its tensor", i);
}

/* ------------------------------------------------------------------- reading attributes */

/* Of a row that reads places; none has both. */
enum { INDEX_BATCH = 1, INDEX_REDUCTION = 2 };

/* How updates are taken up. */
static int32_t reduction_of(const graft_opaque *opaque)
{
    static const int32_t reductions[] = {GRAFT_FOREIGN_NONE, GRAFT_FOREIGN_ADD, GRAFT_FOREIGN_MUL,
                                         GRAFT_FOREIGN_MIN, GRAFT_FOREIGN_MAX};
    return reductions[opaque->attrs[INDEX_REDUCTION]];
}

/* ------------------------------------------------------- GatherElements, ScatterElements */

/* Whether a list of places has the axes of a tensor, none longer but the one that they are of. */
static bool lies_within(const graft_opaque *opaque)
{
    const graft_shape *data = &opaque->in[0];
    const graft_shape *list = &opaque->in[1];
    bool fits = is_whole(list) && list->rank == data->rank && data->rank > 0;
    for (uint32_t i = 0; i < data->rank && fits; i++) {
        fits = i == opaque->axis || list->dims[i] <= data->dims[i];
    }
    return fits;
}

/* Where the elements lie that the list names, one row of its last axis at a time. */
typedef struct {
    size_t rows;
    size_t columns;
    int64_t *at; /* Of each column; -1: outside. */
} element_rows;

static element_rows element_rows_of(graft_arena *scratch, const graft_shape *list)
{
    const size_t columns = (size_t)list->dims[list->rank - 1];
    return (element_rows){graft_count(list) / columns, columns,
                          GRAFT_NEW(scratch, int64_t, columns)};
}

/* False when one of them lies outside. */
static bool find_elements(const graft_opaque *opaque, size_t row, const element_rows *r)
{
    const graft_shape *data = &opaque->in[0];
    const uint32_t last = data->rank - 1U;
    const int64_t size = data->dims[opaque->axis];
    const int64_t step = (int64_t)graft_axes_count(data, opaque->axis + 1, data->rank);
    const int64_t along = opaque->axis == last ? 0 : 1;
    const bool wide = opaque->in[1].dtype == GRAFT_DTYPE_I64;
    const int64_t *longs = opaque->data[1];
    const int32_t *ints = opaque->data[1];
    const size_t first = row * r->columns;
    int64_t base = 0;
    int64_t stride = data->dims[last];
    for (uint32_t a = last; a-- > 0;) {
        const size_t count = (size_t)opaque->in[1].dims[a];
        base += a == opaque->axis ? 0 : (int64_t)(row % count) * stride;
        stride *= data->dims[a];
        row /= count;
    }
    bool inside = true;
    for (size_t i = 0; i < r->columns; i++) {
        int64_t place = wide ? longs[first + i] : ints[first + i];
        place += place < 0 ? size : 0;
        const bool fits = place >= 0 && place < size;
        r->at[i] = fits ? base + (int64_t)i * along + place * step : -1;
        inside = inside && fits;
    }
    return inside;
}

static graft_status refuse_element(graft_env *env, size_t row, const element_rows *r)
{
    size_t i = 0;
    while (r->at[i] >= 0) {
        i++;
    }
    return refuse_place(env, row * r->columns + i);
}

bool graft_foreign_gather_elements_shape(const graft_opaque *opaque, graft_shape *shape)
{
    *shape = opaque->in[1];
    shape->dtype = opaque->in[0].dtype;
    return lies_within(opaque);
}

static void copy_elements(const void *from, const element_rows *r, size_t width, void *out)
{
    for (size_t i = 0; i < r->columns && width == 4; i++) {
        ((uint32_t *)out)[i] = ((const uint32_t *)from)[r->at[i]];
    }
    for (size_t i = 0; i < r->columns && width != 4; i++) {
        memcpy((uint8_t *)out + i * width, (const uint8_t *)from + (size_t)r->at[i] * width, width);
    }
}

GRAFT_FOREIGN_RUNNER(gather_elements)
{
    GRAFT_SCOPED(env->scratch);
    const size_t width = graft_foreign_width(&opaque->out);
    const element_rows r = element_rows_of(env->scratch, &opaque->in[1]);
    for (size_t row = 0; row < r.rows; row++) {
        GRAFT_RETURN_IF(!find_elements(opaque, row, &r), refuse_element(env, row, &r));
        copy_elements(opaque->data[0], &r, width, (uint8_t *)out + row * r.columns * width);
    }
    return GRAFT_OK;
}

static void place_elements(const void *from, const element_rows *r, size_t width, void *out)
{
    for (size_t i = 0; i < r->columns && width == 4; i++) {
        ((uint32_t *)out)[r->at[i]] = ((const uint32_t *)from)[i];
    }
    for (size_t i = 0; i < r->columns && width != 4; i++) {
        memcpy((uint8_t *)out + (size_t)r->at[i] * width, (const uint8_t *)from + i * width, width);
    }
}

/* Whether updates are of the type, and how they are taken up can be run. */
static bool takes_updates(const graft_opaque *opaque)
{
    const int32_t code = reduction_of(opaque);
    return opaque->in[2].dtype == opaque->in[0].dtype &&
           (code == GRAFT_FOREIGN_NONE || graft_foreign_can_merge(code, opaque->in[0].dtype));
}

/* `count` elements at `from` replace those at `to`, or are added to them and the like. */
static void take_up(const graft_opaque *opaque, const void *from, size_t count, void *to)
{
    const int32_t code = reduction_of(opaque);
    if (code == GRAFT_FOREIGN_NONE) {
        memcpy(to, from, count * graft_foreign_width(&opaque->out));
    } else {
        graft_foreign_merge(code, opaque->out.dtype, from, count, to);
    }
}

bool graft_foreign_scatter_elements_shape(const graft_opaque *opaque, graft_shape *shape)
{
    graft_shape updates = opaque->in[2];
    updates.dtype = opaque->in[1].dtype;
    *shape = opaque->in[0];
    return lies_within(opaque) && graft_shape_equal(&updates, &opaque->in[1]) &&
           takes_updates(opaque);
}

GRAFT_FOREIGN_RUNNER(scatter_elements)
{
    GRAFT_SCOPED(env->scratch);
    const size_t width = graft_foreign_width(&opaque->out);
    const bool merges = reduction_of(opaque) != GRAFT_FOREIGN_NONE;
    const element_rows r = element_rows_of(env->scratch, &opaque->in[1]);
    memcpy(out, opaque->data[0], (size_t)graft_shape_bytes(&opaque->out));
    for (size_t row = 0; row < r.rows; row++) {
        const uint8_t *from = (const uint8_t *)opaque->data[2] + row * r.columns * width;
        GRAFT_RETURN_IF(!find_elements(opaque, row, &r), refuse_element(env, row, &r));
        if (!merges) {
            place_elements(from, &r, width, out);
        }
        for (size_t i = 0; i < r.columns && merges; i++) {
            take_up(opaque, from + i * width, 1, (uint8_t *)out + (size_t)r.at[i] * width);
        }
    }
    return GRAFT_OK;
}

/* --------------------------------------------------------------------- GatherND, ScatterND */

/* How many axes the last axis of the list names, behind those of the batch; 0: it does not fit. */
static uint32_t depth_of(const graft_opaque *opaque)
{
    const graft_shape *data = &opaque->in[0];
    const graft_shape *list = &opaque->in[1];
    const uint32_t batch = (uint32_t)opaque->attrs[INDEX_BATCH];
    if (!is_whole(list) || list->rank <= batch || data->rank == 0) {
        return 0;
    }
    const uint32_t depth = (uint32_t)list->dims[list->rank - 1];
    bool fits = batch + depth <= data->rank;
    for (uint32_t i = 0; i < batch; i++) {
        fits = fits && list->dims[i] == data->dims[i];
    }
    return fits ? depth : 0;
}

/* What places name: the axes of the list but its last, then those of the data that are left. */
bool graft_foreign_gather_nd_shape(const graft_opaque *opaque, graft_shape *shape)
{
    const graft_shape *data = &opaque->in[0];
    const graft_shape *list = &opaque->in[1];
    const uint32_t depth = depth_of(opaque);
    const uint32_t first = (uint32_t)opaque->attrs[INDEX_BATCH] + depth;
    if (depth == 0 || list->rank - 1U + data->rank - first > GRAFT_MAX_RANK) {
        return false;
    }
    *shape = (graft_shape){.rank = 0, .dtype = data->dtype};
    for (uint32_t i = 0; i + 1 < list->rank; i++) {
        shape->dims[shape->rank++] = list->dims[i];
    }
    for (uint32_t i = first; i < data->rank; i++) {
        shape->dims[shape->rank++] = data->dims[i];
    }
    return true;
}

/* Where row `i` begins, in rows; -1: outside. `rows` is how many the list names in each batch. */
static int64_t row_at(const graft_opaque *opaque, size_t i, size_t rows)
{
    const uint32_t depth = depth_of(opaque);
    const uint32_t batch = (uint32_t)opaque->attrs[INDEX_BATCH];
    int64_t at = (int64_t)(i / rows);
    for (uint32_t d = 0; d < depth && at >= 0; d++) {
        const int64_t size = opaque->in[0].dims[batch + d];
        const int64_t place = place_at(opaque, i * depth + d, size);
        at = place < 0 ? -1 : at * size + place;
    }
    return at;
}

/* Elements of a row, and rows that the list names in each batch and in all. */
typedef struct {
    size_t elements;
    size_t each;
    size_t all;
} row_counts;

static row_counts rows_of(const graft_opaque *opaque)
{
    const graft_shape *list = &opaque->in[1];
    const uint32_t batch = (uint32_t)opaque->attrs[INDEX_BATCH];
    return (row_counts){
        graft_axes_count(&opaque->in[0], batch + depth_of(opaque), opaque->in[0].rank),
        graft_axes_count(list, batch, list->rank - 1U), graft_axes_count(list, 0, list->rank - 1U)};
}

GRAFT_FOREIGN_RUNNER(gather_nd)
{
    const row_counts r = rows_of(opaque);
    const size_t bytes = r.elements * graft_foreign_width(&opaque->out);
    for (size_t i = 0; i < r.all; i++) {
        const int64_t at = row_at(opaque, i, r.each);
        GRAFT_RETURN_IF(at < 0, refuse_place(env, i));
        memcpy((uint8_t *)out + i * bytes, (const uint8_t *)opaque->data[0] + (size_t)at * bytes,
               bytes);
    }
    return GRAFT_OK;
}

bool graft_foreign_scatter_nd_shape(const graft_opaque *opaque, graft_shape *shape)
{
    graft_shape updates;
    *shape = opaque->in[0];
    return graft_foreign_gather_nd_shape(opaque, &updates) &&
           graft_shape_equal(&updates, &opaque->in[2]) && takes_updates(opaque);
}

GRAFT_FOREIGN_RUNNER(scatter_nd)
{
    const row_counts r = rows_of(opaque);
    const size_t bytes = r.elements * graft_foreign_width(&opaque->out);
    memcpy(out, opaque->data[0], (size_t)graft_shape_bytes(&opaque->out));
    for (size_t i = 0; i < r.all; i++) {
        const int64_t at = row_at(opaque, i, r.each);
        GRAFT_RETURN_IF(at < 0, refuse_place(env, i));
        take_up(opaque, (const uint8_t *)opaque->data[2] + i * bytes, r.elements,
                (uint8_t *)out + (size_t)at * bytes);
    }
    return GRAFT_OK;
}

/* --------------------------------------------------------------------------------- OneHot */

bool graft_foreign_read_one_hot(const Onnx__NodeProto *node, graft_opaque *opaque)
{
    return graft_foreign_read_axis(node, opaque, opaque->in[0].rank + 1, -1);
}

/* Number `i` of input `k`, which may be a whole one of binary32. */
static int64_t number_at(const graft_opaque *opaque, uint32_t k, size_t i)
{
    if (opaque->in[k].dtype != GRAFT_DTYPE_F32) {
        return graft_foreign_whole(opaque, k, (uint32_t)i);
    }
    const float number = ((const float *)opaque->data[k])[i];
    return number > -0x1p31F && number < 0x1p31F ? (int64_t)number : INT64_MIN / 2;
}

bool graft_foreign_one_hot_shape(const graft_opaque *opaque, graft_shape *shape)
{
    const graft_shape *from = &opaque->in[0];
    const graft_shape *depth = &opaque->in[1];
    const graft_shape *values = &opaque->in[2];
    if (opaque->data[1] == NULL || from->rank == GRAFT_MAX_RANK ||
        graft_shape_elements(depth) != 1 || (!is_whole(from) && from->dtype != GRAFT_DTYPE_F32) ||
        (!is_whole(depth) && depth->dtype != GRAFT_DTYPE_F32) || values->rank != 1 ||
        values->dims[0] != 2) {
        return false;
    }
    shape->rank = (uint8_t)(from->rank + 1);
    shape->dtype = values->dtype;
    for (uint32_t i = 0; i < shape->rank; i++) {
        shape->dims[i] = from->dims[i - (i > opaque->axis)];
    }
    return graft_foreign_size(shape, opaque->axis, number_at(opaque, 1, 0));
}

GRAFT_FOREIGN_RUNNER(one_hot)
{
    const graft_blocks b = graft_blocks_of(&opaque->out, (int32_t)opaque->axis);
    const size_t width = graft_foreign_width(&opaque->out);
    for (size_t i = 0; i < graft_count(&opaque->out); i++) {
        const size_t from = i / (b.inner * b.size) * b.inner + i % b.inner;
        const int64_t hot = number_at(opaque, 0, from);
        const int64_t place = (int64_t)(i / b.inner % b.size);
        const bool on = hot == place || hot + (int64_t)b.size == place;
        memcpy((uint8_t *)out + i * width, (const uint8_t *)opaque->data[2] + (on ? width : 0),
               width);
    }
    return GRAFT_OK;
}

/* ---------------------------------------------------------------------------------- Trilu */

bool graft_foreign_trilu_shape(const graft_opaque *opaque, graft_shape *shape)
{
    *shape = opaque->in[0];
    return shape->rank >= 2 &&
           (!graft_foreign_has(opaque, 1) || graft_foreign_list(opaque, 1) == 1);
}

GRAFT_FOREIGN_RUNNER(trilu)
{
    const int64_t columns = opaque->out.dims[opaque->out.rank - 1];
    const int64_t rows = opaque->out.dims[opaque->out.rank - 2];
    const size_t width = graft_foreign_width(&opaque->out);
    const int64_t given = graft_foreign_has(opaque, 1) ? graft_foreign_whole(opaque, 1, 0) : 0;
    const int64_t k = given < -rows ? -rows : given > columns ? columns : given;
    memcpy(out, opaque->data[0], (size_t)graft_shape_bytes(&opaque->out));
    for (int64_t i = 0; i < (int64_t)graft_count(&opaque->out) / columns; i++) {
        int64_t edge =
            i % rows + k + (opaque->attrs[1] != 0 ? 0 : 1); /* From it on, or up to it. */
        edge = edge < 0 ? 0 : edge > columns ? columns : edge;
        uint8_t *row = (uint8_t *)out + (size_t)(i * columns) * width;
        if (opaque->attrs[1] != 0) {
            memset(row, 0, (size_t)edge * width);
        } else {
            memset(row + (size_t)edge * width, 0, (size_t)(columns - edge) * width);
        }
    }
    return GRAFT_OK;
}

/* -------------------------------------------------------------------------------- EyeLike */

bool graft_foreign_eye_shape(const graft_opaque *opaque, graft_shape *shape)
{
    const int32_t dtype = opaque->attrs[2] == 0 ? opaque->in[0].dtype : opaque->attrs[2];
    *shape = opaque->in[0];
    shape->dtype = (uint8_t)dtype;
    return shape->rank == 2 && (dtype == GRAFT_DTYPE_F32 || dtype == GRAFT_DTYPE_I64 ||
                                dtype == GRAFT_DTYPE_I32 || dtype == GRAFT_DTYPE_BOOL);
}

GRAFT_FOREIGN_RUNNER(eye)
{
    const int64_t columns = opaque->out.dims[1];
    memset(out, 0, (size_t)graft_shape_bytes(&opaque->out));
    for (int64_t row = 0; row < opaque->out.dims[0]; row++) {
        const int64_t column = row + opaque->attrs[1];
        const size_t place = (size_t)(row * columns + column);
        if (column < 0 || column >= columns) {
            continue;
        }
        if (opaque->out.dtype == GRAFT_DTYPE_F32) {
            ((float *)out)[place] = 1.0F;
        } else {
            graft_whole_put(out, opaque->out.dtype, place, 1);
        }
    }
    return GRAFT_OK;
}

/* ------------------------------------------------------------------------ ReverseSequence */

enum { REVERSE_BATCH = 1, REVERSE_TIME }; /* Axes, which are 0 and 1. */

bool graft_foreign_reverse_shape(const graft_opaque *opaque, graft_shape *shape)
{
    const int32_t time = opaque->attrs[REVERSE_TIME];
    *shape = opaque->in[0];
    return shape->rank >= 2 && (time == 0 || time == 1) &&
           opaque->attrs[REVERSE_BATCH] == 1 - time && is_whole(&opaque->in[1]) &&
           opaque->in[1].rank == 1 && opaque->in[1].dims[0] == shape->dims[1 - time];
}

GRAFT_FOREIGN_RUNNER(reverse)
{
    const int64_t sizes[2] = {opaque->out.dims[0], opaque->out.dims[1]};
    const int32_t along = opaque->attrs[REVERSE_TIME];
    const int64_t times = sizes[along];
    const size_t bytes =
        (size_t)graft_shape_bytes(&opaque->out) / (size_t)sizes[0] / (size_t)sizes[1];
    for (int64_t i = 0; i < sizes[0] * sizes[1]; i++) {
        const int64_t at[2] = {i / sizes[1], i % sizes[1]};
        const int64_t time = at[along];
        const int64_t batch = at[1 - along];
        const int64_t length = graft_foreign_whole(opaque, 1, (uint32_t)batch);
        GRAFT_RETURN_IF(length < 0 || length > times,
                        GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                                   "sequence %" PRId64 " is longer than its axis", batch));
        const int64_t from = time < length ? length - 1 - time : time;
        const int64_t place = along == 0 ? from * sizes[1] + batch : batch * times + from;
        memcpy((uint8_t *)out + (size_t)i * bytes,
               (const uint8_t *)opaque->data[0] + (size_t)place * bytes, bytes);
    }
    return GRAFT_OK;
}

/* ------------------------------------------------------------------ ArrayFeatureExtractor */

/* Places of the last axis; of a list, a row. */
bool graft_foreign_features_shape(const graft_opaque *opaque, graft_shape *shape)
{
    *shape = opaque->in[0];
    if (shape->rank == 1) {
        shape->rank = 2;
        shape->dims[0] = 1;
    }
    return opaque->in[0].rank >= 1 && is_whole(&opaque->in[1]) &&
           graft_foreign_size(shape, shape->rank - 1U,
                              (int64_t)graft_shape_elements(&opaque->in[1]));
}

GRAFT_FOREIGN_RUNNER(features)
{
    const size_t width = graft_foreign_width(&opaque->out);
    const size_t count = (size_t)graft_shape_elements(&opaque->in[1]);
    const int64_t size = opaque->in[0].dims[opaque->in[0].rank - 1];
    for (size_t i = 0; i < graft_count(&opaque->out); i++) {
        const int64_t place = place_at(opaque, i % count, size);
        GRAFT_RETURN_IF(place < 0, refuse_place(env, i % count));
        memcpy((uint8_t *)out + i * width,
               (const uint8_t *)opaque->data[0] +
                   (i / count * (size_t)size + (size_t)place) * width,
               width);
    }
    return GRAFT_OK;
}

/* foreign_attention.c - what goes with attention and only runs: turned queries and keys, and caches
 * of keys and values that are written in place (see foreign.h). */
#include "graph/meaning/algebra.h"
#include "graph/meaning/foreign_rows.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* ------------------------------------------------------------------------ RotaryEmbedding */

/* The first three say which inputs these are. */
enum {
    ROTARY_PLACES = 1,
    ROTARY_COS,
    ROTARY_SIN,
    ROTARY_PAIRED, /* Numbers that are turned together lie side by side, else half a row apart. */
    ROTARY_HEADS,
    ROTARY_COLUMNS /* That are turned; 0: all. */
};

static bool read_rotary(const Onnx__NodeProto *node, graft_opaque *opaque, int32_t places,
                        int32_t cos)
{
    const int64_t heads = graft_onnx_int(node, "num_heads", 0);
    const int64_t columns = graft_onnx_int(node, "rotary_embedding_dim", 0);
    opaque->attrs[ROTARY_PLACES] = places;
    opaque->attrs[ROTARY_COS] = cos;
    opaque->attrs[ROTARY_SIN] = cos + 1;
    opaque->attrs[ROTARY_PAIRED] = graft_onnx_int(node, "interleaved", 0) != 0;
    opaque->attrs[ROTARY_HEADS] = (int32_t)heads;
    opaque->attrs[ROTARY_COLUMNS] = (int32_t)columns;
    return heads >= 0 && heads <= INT32_MAX && columns >= 0 && columns <= INT32_MAX &&
           graft_onnx_int(node, "is_packed_batching", 0) == 0;
}

bool graft_foreign_read_rotary(const Onnx__NodeProto *node, graft_opaque *opaque)
{
    return read_rotary(node, opaque, 3, 1);
}

/* Of com.microsoft. */
bool graft_foreign_read_rotary_first(const Onnx__NodeProto *node, graft_opaque *opaque)
{
    return read_rotary(node, opaque, 1, 2);
}

/* What is turned: tensors (batch, rows, heads, columns), heads in front of rows where the rank is
 * four. */
typedef struct {
    size_t batch, rows, heads, columns;
    size_t half; /* Of the columns that are turned. */
} rotation;

static bool find_rotation(const graft_opaque *opaque, rotation *r)
{
    const graft_shape *x = &opaque->in[0];
    const graft_shape *cos = &opaque->in[opaque->attrs[ROTARY_COS]];
    int32_t heads = opaque->attrs[ROTARY_HEADS];
    if ((x->rank != 3 && x->rank != 4) || cos->rank < 2) {
        return false;
    }
    const int32_t half = cos->dims[cos->rank - 1U];
    const int32_t turned = opaque->attrs[ROTARY_COLUMNS];
    if (x->rank == 4) {
        heads = x->dims[1];
    } else if (heads == 0 && turned == 0) {
        heads = x->dims[2] / half / 2;
    }
    if (heads < 1 || (x->rank == 3 && x->dims[2] % heads != 0)) {
        return false;
    }
    *r = (rotation){.batch = (size_t)x->dims[0],
                    .rows = (size_t)x->dims[x->rank == 4 ? 2 : 1],
                    .heads = (size_t)heads,
                    .columns = (size_t)(x->rank == 4 ? x->dims[3] : x->dims[2] / heads),
                    .half = (size_t)half};
    return 2 * r->half == (turned == 0 ? r->columns : (size_t)turned) && 2 * r->half <= r->columns;
}

bool graft_foreign_rotary_shape(const graft_opaque *opaque, graft_shape *shape)
{
    const graft_shape *cos = &opaque->in[opaque->attrs[ROTARY_COS]];
    const uint32_t k = (uint32_t)opaque->attrs[ROTARY_PLACES];
    const graft_shape *places = &opaque->in[k];
    const bool placed = graft_foreign_has(opaque, k);
    rotation r;
    *shape = opaque->in[0];
    if (!find_rotation(opaque, &r) || shape->dtype != GRAFT_DTYPE_F32 ||
        cos->dtype != GRAFT_DTYPE_F32 ||
        !graft_shape_equal(cos, &opaque->in[opaque->attrs[ROTARY_SIN]])) {
        return false;
    }
    return placed ? cos->rank == 2 && places->dtype == GRAFT_DTYPE_I64 &&
                        (graft_shape_elements(places) == r.batch * r.rows ||
                         (places->rank == 1 && places->dims[0] == 1))
                  : cos->rank == 3 && (size_t)cos->dims[0] == r.batch &&
                        (size_t)cos->dims[1] == r.rows;
}

/* The row of cosines for a row of what is turned; a single place is that of the first row. */
static int64_t find_place(const graft_opaque *opaque, const rotation *r, size_t row)
{
    const uint32_t k = (uint32_t)opaque->attrs[ROTARY_PLACES];
    if (!graft_foreign_has(opaque, k)) {
        return (int64_t)row;
    }
    return graft_shape_elements(&opaque->in[k]) == r->batch * r->rows
               ? graft_foreign_whole(opaque, k, (uint32_t)row)
               : graft_foreign_whole(opaque, k, 0) + (int64_t)(row % r->rows);
}

static void rotate(const rotation *r, bool paired, const float *cos, const float *sin,
                   const float *x, float *out)
{
    const size_t step = paired ? 2 : 1;
    const size_t apart = paired ? 1 : r->half;
    for (size_t i = 0; i < r->half; i++) {
        const float a = x[i * step];
        const float b = x[i * step + apart];
        out[i * step] = a * cos[i] - b * sin[i];
        out[i * step + apart] = a * sin[i] + b * cos[i];
    }
    memcpy(out + 2 * r->half, x + 2 * r->half, (r->columns - 2 * r->half) * sizeof(out[0]));
}

GRAFT_FOREIGN_RUNNER(rotary)
{
    rotation r = {.batch = 0};
    const bool found = find_rotation(opaque, &r); /* It gave the shape. */
    const bool turned = opaque->in[0].rank == 4;
    const graft_shape *cos = &opaque->in[opaque->attrs[ROTARY_COS]];
    assert(found && r.half > 0);
    const int64_t most = (int64_t)(graft_shape_elements(cos) / r.half);
    for (size_t row = 0; row < r.batch * r.rows; row++) {
        const int64_t place = find_place(opaque, &r, row);
        if (place < 0 || place >= most) {
            return GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                              "place %" PRId64 " lies outside of a table of %" PRId64 " rotations",
                              place, most);
        }
        const size_t at = (size_t)place * r.half;
        for (size_t h = 0; h < r.heads; h++) {
            const size_t line =
                turned ? (row / r.rows * r.heads + h) * r.rows + row % r.rows : row * r.heads + h;
            rotate(&r, opaque->attrs[ROTARY_PAIRED] != 0,
                   (const float *)opaque->data[opaque->attrs[ROTARY_COS]] + at,
                   (const float *)opaque->data[opaque->attrs[ROTARY_SIN]] + at,
                   (const float *)opaque->data[0] + line * r.columns,
                   (float *)out + line * r.columns);
        }
    }
    return GRAFT_OK;
}

/* -------------------------------------------------------------------------- TensorScatter */

enum { SCATTER_CIRCULAR = 1 };

bool graft_foreign_cache_shape(const graft_opaque *opaque, graft_shape *shape)
{
    const graft_shape *places = &opaque->in[2];
    graft_shape update = opaque->in[1];
    *shape = opaque->in[0];
    const bool fits = opaque->axis > 0 && update.rank == shape->rank &&
                      update.dtype == shape->dtype &&
                      update.dims[opaque->axis] <= shape->dims[opaque->axis];
    update.dims[opaque->axis] = shape->dims[opaque->axis];
    return fits && graft_shape_equal(&update, shape) &&
           (!graft_foreign_has(opaque, 2) ||
            (places->rank == 1 && places->dims[0] == shape->dims[0] &&
             (places->dtype == GRAFT_DTYPE_I64 || places->dtype == GRAFT_DTYPE_I32)));
}

GRAFT_FOREIGN_RUNNER(cache)
{
    const graft_blocks b = graft_blocks_of(&opaque->in[0], (int32_t)opaque->axis);
    const size_t count = (size_t)opaque->in[1].dims[opaque->axis];
    const size_t bytes = b.inner * graft_foreign_width(&opaque->in[0]);
    const size_t each = b.outer / (size_t)opaque->in[0].dims[0];
    memcpy(out, opaque->data[0], (size_t)graft_shape_bytes(&opaque->in[0]));
    for (size_t i = 0; i < b.outer; i++) {
        const int64_t first =
            graft_foreign_has(opaque, 2) ? graft_foreign_whole(opaque, 2, (uint32_t)(i / each)) : 0;
        const bool around = opaque->attrs[SCATTER_CIRCULAR] != 0;
        if (first < 0 || first >= (int64_t)b.size ||
            (!around && first + (int64_t)count > (int64_t)b.size)) {
            return GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                              "%zu rows from place %" PRId64 " on do not fit into a cache of %zu",
                              count, first, b.size);
        }
        for (size_t k = 0; k < count; k++) {
            const size_t place = ((size_t)first + k) % b.size;
            memcpy((uint8_t *)out + (i * b.size + place) * bytes,
                   (const uint8_t *)opaque->data[1] + (i * count + k) * bytes, bytes);
        }
    }
    return GRAFT_OK;
}

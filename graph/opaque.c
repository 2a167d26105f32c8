/* opaque.c - running opaque nodes (see opaque.h). */
#include "graph/opaque.h"

#include "graph/base/share.h"
#include "graph/meaning/algebra_float.h"
#include "graph/meaning/byte_pool.h"
#include "graph/meaning/foreign.h"
#include "graph/meaning/quantised.h"
#include "graph/onnx/onnx.h"

#include <inttypes.h>
#include <string.h>

/* ----------------------------------------------------------------------------- finding */

static const Onnx__NodeProto *find_proto(const graft_model *model, const graft_node *node)
{
    if (model == NULL || node->source >= model->record_count) {
        return NULL;
    }
    return model->onnx->proto->graph->node[model->records[node->source].onnx_node];
}

/* Of ONNX' own domain. */
static bool is_standard(const Onnx__NodeProto *proto)
{
    return proto->domain == NULL || proto->domain[0] == '\0';
}

static bool is_known(const graft_shape *shape)
{
    return shape->rank <= GRAFT_MAX_RANK && graft_shape_bytes(shape) > 0;
}

static bool is_whole(uint32_t dtype)
{
    return dtype == GRAFT_DTYPE_I64 || dtype == GRAFT_DTYPE_I32;
}

static bool find_copy(graft_opaque *opaque)
{
    opaque->kind = GRAFT_OPAQUE_COPY;
    return opaque->in[0].dtype == opaque->out.dtype &&
           graft_shape_bytes(&opaque->in[0]) == graft_shape_bytes(&opaque->out);
}

static bool is_castable(uint32_t dtype)
{
    return is_whole(dtype) || dtype == GRAFT_DTYPE_BOOL || dtype == GRAFT_DTYPE_F32 ||
           dtype == GRAFT_DTYPE_U8 || dtype == GRAFT_DTYPE_I8;
}

static bool find_cast(graft_opaque *opaque)
{
    opaque->kind = GRAFT_OPAQUE_CAST;
    return is_castable(opaque->in[0].dtype) && is_castable(opaque->out.dtype) &&
           graft_shape_elements(&opaque->in[0]) == graft_shape_elements(&opaque->out);
}

static bool find_gather(const Onnx__NodeProto *proto, graft_opaque *opaque)
{
    int64_t axis = graft_onnx_int(proto, "axis", 0);
    axis += axis < 0 ? opaque->in[0].rank : 0;
    opaque->kind = GRAFT_OPAQUE_GATHER;
    opaque->read_count = 2;
    if (axis < 0 || axis >= opaque->in[0].rank || !is_known(&opaque->in[1])) {
        return false;
    }
    opaque->axis = (uint32_t)axis;
    uint64_t elements = graft_axes_count(&opaque->in[0], 0, opaque->axis) *
                        graft_axes_count(&opaque->in[0], opaque->axis + 1, opaque->in[0].rank) *
                        graft_shape_elements(&opaque->in[1]);
    return opaque->in[0].dtype == opaque->out.dtype && is_whole(opaque->in[1].dtype) &&
           elements == graft_shape_elements(&opaque->out);
}

static void read_inputs(const graft_graph *graph, graft_index node, graft_opaque *opaque)
{
    const graft_node *n = &graph->nodes[node];
    for (uint32_t k = 0; k < GRAFT_OPAQUE_INPUTS_MOST; k++) {
        const graft_index v = k < n->input_count ? graft_node_input(graph, node, k) : GRAFT_NONE;
        opaque->in[k] =
            v != GRAFT_NONE ? graph->values[v].shape : (graft_shape){.rank = GRAFT_RANK_UNKNOWN};
    }
}

bool graft_opaque_describe(const Onnx__NodeProto *proto, const graft_graph *graph, graft_index node,
                           graft_opaque *opaque)
{
    static const char copies[] = "Unsqueeze Squeeze Reshape Flatten Identity";
    static const char of_one[] = "Max Min Sum Mean";
    const graft_node *n = &graph->nodes[node];
    if (proto->op_type == NULL || n->input_count < 1 || n->output_count < 1 ||
        n->output_count > GRAFT_OPAQUE_OUTPUTS_MOST) {
        return false;
    }
    memset(opaque, 0, sizeof(*opaque));
    opaque->read_count = 1;
    opaque->out_count = n->output_count;
    for (uint32_t k = 0; k < n->output_count; k++) {
        const bool named = k < proto->n_output && proto->output[k][0] != '\0';
        opaque->outs[k] = graph->values[graft_node_output(graph, node, k)].shape;
        opaque->outs[k].rank = named ? opaque->outs[k].rank : GRAFT_RANK_UNKNOWN;
        if (named && !is_known(&opaque->outs[k])) {
            return false;
        }
    }
    opaque->out = opaque->outs[0];
    read_inputs(graph, node, opaque);
    if (!is_known(&opaque->in[0]) || graft_half_is(opaque->in[0].dtype) ||
        graft_half_is(opaque->out.dtype)) {
        return false; /* To be run, a model is read in binary32. */
    }
    if (graft_foreign_find(proto, opaque)) {
        return graft_foreign_fits(opaque);
    }
    if ((!is_standard(proto) && !graft_quantised_is_change(proto)) || n->output_count != 1 ||
        !is_known(&opaque->out)) {
        return false;
    }
    if (graft_onnx_lists(copies, proto->op_type) ||
        (n->input_count == 1 && graft_onnx_lists(of_one, proto->op_type))) {
        return find_copy(opaque);
    }
    return graft_onnx_lists("Cast CastLike", proto->op_type) ? find_cast(opaque)
           : strcmp(proto->op_type, "Gather") == 0           ? find_gather(proto, opaque)
                                                             : graft_quantised_find(proto, opaque);
}

/* ---------------------------------------------------------------------------- lowering */

/* Where a lowered node keeps its operator and attributes; the first says whether it follows the
 * layouts of its neighbours (layout.h). */
enum { LOWERED_OP = GRAFT_MAX_ATTRS - 1, LOWERED_ATTRS = 1 };

bool graft_opaque_is_byte(const graft_graph *graph, graft_index node)
{
    const graft_node *n = &graph->nodes[node];
    bool alias = n->op == GRAFT_OP_identity || n->op == GRAFT_OP_reshape;
    if (graft_op(n->op) == NULL || alias || n->is_const) {
        return false;
    }
    const graft_index value = graft_node_output(graph, node, 0);
    return (n->input_count > 0 &&
            !graft_dtype_is_real(graph->values[graft_node_input(graph, node, 0)].shape.dtype)) ||
           !graft_dtype_is_real(graph->values[value].shape.dtype);
}

void graft_opaque_lower(graft_graph *graph, graft_index node)
{
    graft_node *n = &graph->nodes[node];
    int32_t attrs[GRAFT_MAX_ATTRS] = {[LOWERED_OP] = n->op};
    _Static_assert(LOWERED_ATTRS + 10 <= LOWERED_OP, "max_pool has ten attributes");
    memcpy(&attrs[LOWERED_ATTRS], n->attrs, graft_op(n->op)->attr_count * sizeof(attrs[0]));
    memcpy(n->attrs, attrs, sizeof(attrs));
    n->op = GRAFT_OP_OPAQUE;
}

/* What ONNX calls an operator that makes or reads booleans; NULL: it moves them, or there are none. */
static const char *boolean_name(const graft_opaque *opaque)
{
    const bool truth = opaque->out.dtype == GRAFT_DTYPE_BOOL;
    switch (opaque->op) {
    case GRAFT_OP_less:
    case GRAFT_OP_equal_to:
    case GRAFT_OP_logical_not:
    case GRAFT_OP_select:
        return graft_op(opaque->op)->onnx;
    case GRAFT_OP_min:
        return truth ? "And" : NULL;
    case GRAFT_OP_max:
        return truth ? "Or" : NULL;
    default:
        return NULL;
    }
}

/* Of a node that is or was one of the table's. */
static bool find_row(const graft_graph *graph, graft_index node, graft_opaque *opaque)
{
    const graft_node *n = &graph->nodes[node];
    bool lowered = n->op == GRAFT_OP_OPAQUE;
    const graft_op_info *info = graft_op(lowered ? (uint32_t)n->attrs[LOWERED_OP] : n->op);
    if (info == NULL || (!lowered && !graft_opaque_is_byte(graph, node))) {
        return false;
    }
    memset(opaque, 0, sizeof(*opaque));
    opaque->op = lowered ? (uint32_t)n->attrs[LOWERED_OP] : n->op;
    opaque->kind = opaque->op == GRAFT_OP_quantise     ? GRAFT_OPAQUE_QUANTISE
                   : opaque->op == GRAFT_OP_dequantise ? GRAFT_OPAQUE_DEQUANTISE
                                                       : GRAFT_OPAQUE_BYTES;
    memcpy(opaque->attrs, n->attrs + (lowered ? LOWERED_ATTRS : 0),
           info->attr_count * sizeof(opaque->attrs[0]));
    opaque->read_count = n->input_count;
    opaque->out = graph->values[graft_node_output(graph, node, 0)].shape;
    opaque->outs[0] = opaque->out;
    opaque->out_count = 1;
    read_inputs(graph, node, opaque);
    const char *name = boolean_name(opaque);
    return name == NULL || graft_foreign_find_plain(name, n->input_count, opaque);
}

bool graft_opaque_find(const graft_model *model, const graft_graph *graph, graft_index node,
                       graft_opaque *opaque)
{
    if (find_row(graph, node, opaque)) {
        return true;
    }
    const Onnx__NodeProto *proto = find_proto(model, &graph->nodes[node]);
    return proto != NULL && graft_opaque_describe(proto, graph, node, opaque);
}

bool graft_opaque_is_pointwise(const graft_opaque *opaque)
{
    bool changes = opaque->kind == GRAFT_OPAQUE_QUANTISE || opaque->kind == GRAFT_OPAQUE_DEQUANTISE;
    return opaque->kind == GRAFT_OPAQUE_CAST ||
           (opaque->kind == GRAFT_OPAQUE_FOREIGN && graft_foreign_is_pointwise(opaque)) ||
           (changes &&
            (opaque->op != 0 || graft_shape_elements(&opaque->in[1]) == 1)); /* One scale. */
}

/* ----------------------------------------------------------------------------- running */

/* Cut off, within the range of int64. */
static int64_t whole_of(float number)
{
    return number != number     ? 0
           : number >= 0x1p63F  ? INT64_MAX
           : number <= -0x1p63F ? INT64_MIN
                                : (int64_t)number;
}

/* Whole numbers as binary32, in loops that compilers make vectors of. */
static void widen(const void *in, uint32_t from, size_t count, float *out)
{
    switch (from) {
    case GRAFT_DTYPE_I32:
        for (size_t i = 0; i < count; i++) {
            out[i] = (float)((const int32_t *)in)[i];
        }
        break;
    case GRAFT_DTYPE_BOOL:
        for (size_t i = 0; i < count; i++) {
            out[i] = ((const uint8_t *)in)[i] != 0 ? 1.0F : 0.0F;
        }
        break;
    default:
        for (size_t i = 0; i < count; i++) {
            out[i] = (float)graft_whole_at(in, from, i);
        }
    }
}

/* Whether all are whole numbers of 32 bits when they are cut off. */
static bool fits_int32(const float *in, size_t count)
{
    int32_t outside = 0;
    for (size_t i = 0; i < count; i++) {
        outside |= in[i] > -0x1p31F && in[i] < 0x1p31F ? 0 : 1;
    }
    return outside == 0;
}

/* Cuts off binary32 numbers; those that fit into 32 bits in loops that compilers make vectors of. */
static void narrow(const float *in, size_t count, uint32_t to, void *out)
{
    const bool fits = fits_int32(in, count);
    for (size_t i = 0; i < count && fits && to == GRAFT_DTYPE_I32; i++) {
        ((int32_t *)out)[i] = (int32_t)in[i];
    }
    for (size_t i = 0; i < count && fits && to == GRAFT_DTYPE_I64; i++) {
        ((int64_t *)out)[i] = (int32_t)in[i];
    }
    if (fits && (to == GRAFT_DTYPE_I32 || to == GRAFT_DTYPE_I64)) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        graft_whole_put(out, to, i, to == GRAFT_DTYPE_BOOL ? in[i] != 0.0F : whole_of(in[i]));
    }
}

typedef struct {
    const graft_opaque *opaque;
    const uint8_t *in;
    uint8_t *out;
} cast;

/* Some of the elements. */
static void cast_some(const void *work, uint32_t part, uint32_t parts)
{
    const cast *c = work;
    const int64_t all = (int64_t)graft_shape_elements(&c->opaque->out);
    const graft_range own = graft_range_part(all, GRAFT_SHARE_LINE, part, parts);
    const size_t count = (size_t)(own.to - own.from);
    const uint32_t from = c->opaque->in[0].dtype;
    const uint32_t to = c->opaque->out.dtype;
    const void *in = c->in + (size_t)own.from * graft_type_width(from);
    void *out = c->out + (size_t)own.from * graft_type_width(to);
    if (from == to) {
        memcpy(out, in, count * graft_type_width(to));
    } else if (to == GRAFT_DTYPE_F32) {
        widen(in, from, count, out);
    } else if (from == GRAFT_DTYPE_F32) {
        narrow(in, count, to, out);
    } else {
        for (size_t i = 0; i < count; i++) {
            graft_whole_put(out, to, i, graft_whole_at(in, from, i));
        }
    }
}

static graft_status run_gather(graft_env *env, const graft_opaque *opaque, const uint8_t *table,
                               const void *places, uint8_t *out)
{
    graft_blocks blocks = graft_blocks_of(&opaque->in[0], (int32_t)opaque->axis);
    size_t count = (size_t)graft_shape_elements(&opaque->in[1]);
    size_t bytes = blocks.inner * (size_t)(graft_shape_bytes(&opaque->in[0]) /
                                           graft_shape_elements(&opaque->in[0]));
    for (size_t outer = 0; outer < blocks.outer; outer++) {
        for (size_t i = 0; i < count; i++) {
            int64_t place = graft_whole_at(places, opaque->in[1].dtype, i);
            int64_t row = place + (place < 0 ? (int64_t)blocks.size : 0);
            GRAFT_RETURN_IF(row < 0 || row >= (int64_t)blocks.size,
                            GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                                       "place %" PRId64 " lies outside of a table of %zu rows",
                                       place, blocks.size));
            memcpy(out + (outer * count + i) * bytes,
                   table + (outer * blocks.size + (size_t)row) * bytes, bytes);
        }
    }
    return GRAFT_OK;
}

/* In binary32, which has all numbers of 8 bits, but for maxima of images, which take long so. */
static void run_bytes(graft_env *env, const graft_opaque *opaque, const void *const *in, void *out)
{
    GRAFT_SCOPED(env->scratch);
    const graft_call call = {opaque->attrs, opaque->in, &opaque->out};
    const float *operands[GRAFT_MAX_INPUTS] = {NULL};
    const bool sign = opaque->out.dtype == GRAFT_DTYPE_I8;
    size_t count = (size_t)graft_shape_elements(&opaque->out);
    if (opaque->op == GRAFT_OP_max_pool) {
        graft_byte_max_pool(env->scratch, &call, in[0], out);
        return;
    }
    float *result = GRAFT_NEW(env->scratch, float, count);
    for (uint32_t k = 0; k < opaque->read_count; k++) {
        size_t size = (size_t)graft_shape_elements(&opaque->in[k]);
        float *wide = GRAFT_NEW(env->scratch, float, size);
        for (size_t i = 0; i < size; i++) {
            wide[i] = sign ? ((const int8_t *)in[k])[i] : ((const uint8_t *)in[k])[i];
        }
        operands[k] = wide;
    }
    graft_float_run(opaque->op, &call, operands, &result);
    for (size_t i = 0; i < count; i++) {
        ((uint8_t *)out)[i] = (uint8_t)(int32_t)result[i];
    }
}

void graft_opaque_keep(graft_arena *arena, graft_opaque *opaque, const void *const *in)
{
    if (opaque->kind == GRAFT_OPAQUE_FOREIGN) {
        graft_foreign_keep(arena, opaque, in);
    }
}

graft_status graft_opaque_run(graft_env *env, const graft_opaque *opaque, const void *const *in,
                              void *const *out)
{
    switch (opaque->kind) {
    case GRAFT_OPAQUE_GATHER:
        return run_gather(env, opaque, in[0], in[1], out[0]);
    case GRAFT_OPAQUE_CAST:
        graft_share(opaque->threads, cast_some, &(cast){opaque, in[0], out[0]});
        return GRAFT_OK;
    case GRAFT_OPAQUE_COPY:
        memcpy(out[0], in[0], (size_t)graft_shape_bytes(&opaque->out));
        return GRAFT_OK;
    case GRAFT_OPAQUE_FOREIGN:
        return graft_foreign_run(env, opaque, in, out);
    case GRAFT_OPAQUE_BYTES:
        run_bytes(env, opaque, in, out[0]);
        return GRAFT_OK;
    case GRAFT_OPAQUE_CHANGE:
    case GRAFT_OPAQUE_QUANTISE:
    case GRAFT_OPAQUE_DEQUANTISE:
    case GRAFT_OPAQUE_QUANTISED_CONV:
    case GRAFT_OPAQUE_QUANTISED_MATMUL:
        break;
    }
    graft_quantised_run(env->scratch, opaque, in, out[0]);
    return GRAFT_OK;
}

/* onnx_emit.h - what the emitters of forms share (onnx_emit.c, onnx_emit_moves.c); private to
 * graph/onnx/. */
#pragma once

#include "graph/onnx/onnx_write.h"

#include <string.h>

/* First opsets of the default domain in which a form exists. */
enum {
    OPSET_BROADCAST_MAX = 8,
    OPSET_ERF = 9,
    OPSET_MOD = 10,
    OPSET_DILATED_MAX_POOL = 10,
    OPSET_SLICE_INPUTS = 10,
    OPSET_CLIP_INPUTS = 11,
    OPSET_GEMM_OF_TWO = 11, /* Nothing has to be added. */
    OPSET_PAD_INPUTS = 11,
    OPSET_SPLIT_INPUT = 13,
    OPSET_RESIZE_BARE = 13, /* A region of interest may be left out. */
    OPSET_SOFTMAX_AXIS = 13,
    OPSET_REDUCE_SUM_INPUT = 13,
    OPSET_LAYER_NORM = 17,
    OPSET_REDUCE_INPUT = 18,
    OPSET_GELU = 20,
    OPSET_RMS_NORM = 23
};

/* A unit that is being written: its root node and the parts of its name. */
typedef struct graft_onnx_emitter {
    graft_onnx_writer *writer;
    graft_index n;
    const graft_node *node;
    graft_status status;
} graft_onnx_emitter;

/* Writes the nodes of a unit. Its status says how that failed, as graft_onnx_emit_unit. */
typedef void graft_onnx_form(graft_onnx_emitter *e);
/* What moves elements (onnx_emit_moves.c). */
graft_onnx_form graft_onnx_emit_transpose, graft_onnx_emit_reshape, graft_onnx_emit_concat,
    graft_onnx_emit_split, graft_onnx_emit_slice, graft_onnx_emit_pad, graft_onnx_emit_pick,
    graft_onnx_emit_reverse, graft_onnx_emit_cumsum, graft_onnx_emit_repeat;

static inline const char *in_name(const graft_onnx_emitter *e, uint32_t k)
{
    return graft_onnx_value_name(e->writer, graft_node_input(e->writer->graph, e->n, k));
}

static inline const char *out_name(const graft_onnx_emitter *e, uint32_t k)
{
    return graft_onnx_value_name(e->writer, graft_node_output(e->writer->graph, e->n, k));
}

static inline const graft_shape *in_shape(const graft_onnx_emitter *e, uint32_t k)
{
    return &e->writer->graph->values[graft_node_input(e->writer->graph, e->n, k)].shape;
}

/* New constants of a unit have the type of its tensors. */
static inline const char *push_scalar(const graft_onnx_emitter *e, const char *label, float value)
{
    const graft_shape shape = {.rank = 0, .dtype = in_shape(e, 0)->dtype};
    return graft_onnx_push_floats(e->writer, label, &value, &shape);
}

static inline Onnx__NodeProto *push1(const graft_onnx_emitter *e, const char *op_type,
                                     const char *in, const char *out)
{
    return graft_onnx_push_node(e->writer, op_type, &in, 1, &out, 1);
}

static inline Onnx__NodeProto *push2(const graft_onnx_emitter *e, const char *op_type,
                                     const char *a, const char *b, const char *out)
{
    const char *inputs[2] = {a, b};
    return graft_onnx_push_node(e->writer, op_type, inputs, 2, &out, 1);
}

static inline void set_ints32(const graft_onnx_emitter *e, Onnx__NodeProto *node, const char *name,
                              const int32_t *items, uint32_t count)
{
    int64_t wide[GRAFT_MAX_ATTRS];
    for (uint32_t i = 0; i < count; i++) {
        wide[i] = items[i];
    }
    graft_onnx_set_ints(e->writer->arena, node, name, wide, count);
}

/* opaque.h - opaque nodes that can be run although rules never see them: operators between a
 * model's whole-number inputs and its binary32 tensors (tables of embeddings, masks), and the
 * quantised operators of 8-bit models.
 *
 *      Gather       rows of a table, places int64 or int32, negative ones from the end
 *      Cast         between int64, int32, int8, uint8, bool and binary32; a fraction is cut off, what
 *                   does not fit has no certain result, as in ONNX
 *      Unsqueeze, Squeeze, Reshape, Flatten, Identity      of any type: a copy
 *      QuantizeLinear, DequantizeLinear, QLinearConv, QLinearMatMul      see quantised.h; the first
 *                   two of domain com.microsoft, too
 *      Where, Equal, Pad, Resize, LRN and others      see foreign.h
 *
 * Operators of operators.def that read or make numbers of 8 bits are run in the same way: rules see
 * them, kernels do not. Before a graph is planned they are made opaque in a copy (lowered). */
#pragma once

#include "model.h"

typedef enum graft_opaque_kind {
    GRAFT_OPAQUE_COPY,
    GRAFT_OPAQUE_CAST,
    GRAFT_OPAQUE_GATHER,
    GRAFT_OPAQUE_FOREIGN, /* See foreign.h. */
    GRAFT_OPAQUE_BYTES,   /* An operator on numbers of 8 bits that moves or chooses. */
    GRAFT_OPAQUE_CHANGE,  /* To or from 16 bits, or by scales of blocks; others are below. */
    GRAFT_OPAQUE_QUANTISE,
    GRAFT_OPAQUE_DEQUANTISE,
    GRAFT_OPAQUE_QUANTISED_CONV,
    GRAFT_OPAQUE_QUANTISED_MATMUL
} graft_opaque_kind;

enum {
    GRAFT_OPAQUE_INPUTS_MOST = 17,
    GRAFT_OPAQUE_OUTPUTS_MOST = 16,
    GRAFT_OPAQUE_ATTRS_MOST = 16
};

/* What an opaque node computes. */
typedef struct graft_opaque {
    graft_opaque_kind kind;
    uint32_t axis;                            /* Of a gather; the one that scales run along. */
    uint32_t read_count;                      /* Inputs that are read: the first ones. */
    uint32_t row;                             /* Of the table in foreign.c. */
    uint32_t op;                              /* In operators.def; 0: it is an opaque node. */
    int32_t attrs[GRAFT_OPAQUE_ATTRS_MOST];   /* Of a convolution, as those of `conv`; of `op`. */
    graft_shape in[GRAFT_OPAQUE_INPUTS_MOST]; /* Rank GRAFT_RANK_UNKNOWN: not given. */
    graft_shape outs[GRAFT_OPAQUE_OUTPUTS_MOST];
    uint32_t out_count;
    uint32_t which;  /* Of several outputs, where each is made by itself: the one that is made... */
    graft_shape out; /* ...and its shape. */
    const void *kept;        /* What graft_opaque_keep made; NULL: nothing. */
    int threads;             /* That share what is worth it; 0: one does all. */
    const void *const *data; /* In foreign*.c: elements of the inputs, NULL where not known; */
    void *const *made;       /* results, NULL where not wanted. */
} graft_opaque;

/* Bytes of an element; 0 for types that are not known. */
static inline size_t graft_type_width(uint32_t dtype)
{
    const graft_shape one = {.rank = 0, .dtype = (uint8_t)dtype};
    return (size_t)graft_shape_bytes(&one);
}

/* Element `i` of whole numbers or truth values. */
static inline int64_t graft_whole_at(const void *data, uint32_t dtype, size_t i)
{
    switch (dtype) {
    case GRAFT_DTYPE_I64:
        return ((const int64_t *)data)[i];
    case GRAFT_DTYPE_I32:
        return ((const int32_t *)data)[i];
    case GRAFT_DTYPE_I16:
        return ((const int16_t *)data)[i];
    case GRAFT_DTYPE_U16:
        return ((const uint16_t *)data)[i];
    case GRAFT_DTYPE_I8:
        return ((const int8_t *)data)[i];
    case GRAFT_DTYPE_BOOL:
        return ((const uint8_t *)data)[i] != 0;
    default:
        return ((const uint8_t *)data)[i];
    }
}

/* Sets one; narrower types have the last bits of what does not fit. */
static inline void graft_whole_put(void *data, uint32_t dtype, size_t i, int64_t number)
{
    switch (dtype) {
    case GRAFT_DTYPE_I64:
        ((int64_t *)data)[i] = number;
        break;
    case GRAFT_DTYPE_I32:
        ((int32_t *)data)[i] = (int32_t)number;
        break;
    case GRAFT_DTYPE_BOOL:
        ((uint8_t *)data)[i] = number != 0;
        break;
    default:
        ((uint8_t *)data)[i] = (uint8_t)number;
    }
}

/* Whether the opaque node of `graph`, which is model->graph or a rewritten copy, can be run. What
 * can computes the same from the same. */
bool graft_opaque_find(const graft_model *model, const graft_graph *graph, graft_index node,
                       graft_opaque *opaque);
/* Whether a node that is not opaque has to be run as if it were. */
bool graft_opaque_is_byte(const graft_graph *graph, graft_index node);
/* Makes such a node opaque; what it was is still known to the calls here. */
void graft_opaque_lower(graft_graph *graph, graft_index node);
struct Onnx__NodeProto;
/* Likewise of an opaque node that `proto` becomes while a model is read. */
bool graft_opaque_describe(const struct Onnx__NodeProto *proto, const graft_graph *graph,
                           graft_index node, graft_opaque *opaque);
/* Whether each element of the result is made of the same place of input 0 and of nothing else that
 * differs from place to place: it may then run on elements in any order. */
bool graft_opaque_is_pointwise(const graft_opaque *opaque);
/* Makes beforehand, in `arena`, what runs need of the inputs that are always the same (`in`, NULL
 * for the others): packed weights. Without this each run does. */
void graft_opaque_keep(graft_arena *arena, graft_opaque *opaque, const void *const *in);
/* Runs it on row-major tensors of its shapes and types; inputs and outputs that are not given are
 * NULL. GRAFT_BAD_INPUT when a place to gather lies outside of the table; the outputs are then
 * undefined. */
GRAFT_MUST_USE graft_status graft_opaque_run(graft_env *env, const graft_opaque *opaque,
                                             const void *const *in, void *const *out);

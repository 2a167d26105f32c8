/* onnx_cells.h - recurrent cells in a graph that has them step by step; private to graph/onnx/.
 *
 * A cell is told by what it computes, not by how it is written: gates are functions of sums of
 * products with constant matrices, whether these are a product each, one product that is split, of
 * the input and the state apart or side by side. Cells of the same weights, each of which takes the
 * state that the one before left, are a chain: what one LSTM or GRU of ONNX computes.
 *
 *   LSTM    c' = f c + i g, h' = o tanh(c'); i, f and o are sigmoids, g is a tanh
 *   GRU     h' = (1 - z) n + z h; n = tanh(x W + (r h) R), or linear: tanh(x W + r (h R)) */
#pragma once

#include "graph/onnx/onnx.h"

/* What a step takes and makes. Nodes are ONNX nodes by place in the file. */
typedef struct graft_chain_step {
    const char *x;       /* (batch, features); NULL: it has no name. */
    graft_index of;      /* The tensor that it is part `index` of, GRAFT_NONE: of none: */
    bool second;         /* along its second axis of three; else it is (steps, batch, features), */
    int64_t index;       /* perhaps in other axes. */
    const char *h;       /* (batch, units), made by h_node alone, as c is by c_node. */
    const char *c;       /* NULL: a GRU. */
    uint32_t h_node;
    uint32_t c_node;
} graft_chain_step;

typedef struct graft_chain {
    bool is_gru;
    bool is_linear;
    uint32_t step_count; /* At least 2. */
    const graft_chain_step *steps;
    int32_t batch;
    int32_t features;
    int32_t units;
    const char *h; /* The first state; NULL: zeros. */
    const char *c;
    const float *w; /* As ONNX has them: (1, gates * units, features), */
    const float *r; /* (1, gates * units, units) */
    const float *b; /* and (1, 2 * gates * units). */
    const uint32_t *inner; /* Nodes that only the cells may need. */
    uint32_t inner_count;
} graft_chain;

/* The chains of a model, in `arena`, those first that others may read. Each value belongs to one at
 * most. Fails as graft_model_fold_weights does. */
GRAFT_MUST_USE graft_status graft_onnx_find_chains(graft_env *env, graft_arena *arena,
                                                   const graft_model *model, graft_chain **chains,
                                                   uint32_t *count);

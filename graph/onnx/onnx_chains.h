/* onnx_chains.h - chains of recurrent cells (onnx_cells.h) with the same weights, each of which
 * takes the state that the one before left: what one LSTM or GRU of ONNX computes; private to
 * graph/onnx/. */
#pragma once

#include "graph/onnx/onnx.h"

/* What a step takes and makes. Nodes are ONNX nodes by place in the file. */
typedef struct graft_chain_step {
    const char *x;  /* (batch, features); NULL: it has no name. */
    graft_index of; /* The tensor that it is step `index` of, (steps, batch, features) perhaps in
                          other axes; GRAFT_NONE: of none. */
    bool second;    /* That is (batch, steps, features). */
    int64_t index;
    const char *h; /* (batch, units), made by h_node alone, as c is by c_node. */
    const char *c; /* NULL: a GRU. */
    uint32_t h_node;
    uint32_t c_node;
} graft_chain_step;

typedef struct graft_chain {
    bool is_gru;
    bool is_linear;
    uint32_t step_count; /* At least 2. */
    const graft_chain_step *steps;
    int32_t features;
    int32_t units;
    const char *h; /* The first state; NULL: zeros. */
    const char *c;
    const float *w;        /* As ONNX has them: (1, gates * units, features), */
    const float *r;        /* (1, gates * units, units) */
    const float *b;        /* and (1, 2 * gates * units). */
    const uint32_t *inner; /* Nodes that only the cells may need. */
    uint32_t inner_count;
} graft_chain;

/* The chains of a model, in `arena`, those first that others may read. Each value belongs to one at
 * most. Fails as graft_model_fold_weights does. */
GRAFT_MUST_USE graft_status graft_onnx_find_chains(graft_env *env, graft_arena *arena,
                                                   const graft_model *model, graft_chain **chains,
                                                   uint32_t *count);

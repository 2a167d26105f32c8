/* encoder.h - the graph network (Battaglia et al. 2018: edge, node and global blocks) that turns a
 * computation graph into a latent vector. Kept so plain that int8 arithmetic can repeat it exactly:
 * products, relu, means, maxima and one tanh table; no attention, no normalisation, no softmax.
 *
 *      h = relu(X W + b)                                         node encoder
 *      rounds times:
 *        in_e  = relu([h_sender, e] W_in + b_in)                 edge block, one message along
 *        out_e = relu([h_receiver, e] W_out + b_out)             and one against each edge
 *        a = mean of in_e over edges that arrive, c = mean of out_e over edges that leave
 *        h = relu(h + [h, a, c] W_node + b_node)                 node block
 *      z = tanh([mean h, max h, u] W_z + b_z)                    global block
 *
 * [h, e] W is computed as (h W_h) gathered by edge, plus e W_e: a product per node, not per edge.
 * The residual h can be folded into W_node by adding the identity. Nodes without edges on a side
 * get zeros there. */
#pragma once

#include "train/nn/tape.h"

enum { GRAFT_ENCODER_ROUNDS_MOST = 6 };

typedef struct {
    uint32_t node_features;
    uint32_t edge_features;   /* May be 0. */
    uint32_t global_features; /* Columns of u; may be 0. */
    uint32_t hidden;
    uint32_t latent;
    uint32_t rounds; /* At most GRAFT_ENCODER_ROUNDS_MOST. */
} graft_encoder_size;

/* Weights of one direction of a round: (hidden, hidden), (edge_features, hidden), (1, hidden). */
typedef struct {
    uint32_t node;
    uint32_t edge;
    uint32_t bias;
} graft_encoder_message;

typedef struct {
    graft_encoder_size size;
    graft_parameters parameters; /* Named "encoder". */
    graft_layer input;
    graft_encoder_message incoming[GRAFT_ENCODER_ROUNDS_MOST];
    graft_encoder_message outgoing[GRAFT_ENCODER_ROUNDS_MOST];
    graft_layer node[GRAFT_ENCODER_ROUNDS_MOST];
    graft_layer global;
} graft_encoder;

/* Random weights from `seed`, in `arena`. */
void graft_encoder_init(graft_encoder *encoder, graft_arena *arena, const graft_encoder_size *size,
                        uint64_t seed);

/* Several graphs side by side, indices into the batch. */
typedef struct {
    uint32_t graph_count;
    uint32_t node_count;
    uint32_t edge_count;
    float *nodes;         /* (node_count, node_features) */
    float *edges;         /* (edge_count, edge_features) */
    float *globals;       /* (graph_count, global_features) */
    uint32_t *senders;    /* (edge_count) */
    uint32_t *receivers;  /* (edge_count) */
    uint32_t *node_graph; /* (node_count), non-decreasing */
} graft_graph_batch;

typedef struct {
    const graft_matrix *latent; /* (graph_count, latent), each in (-1, 1) */
    const graft_matrix *nodes;  /* (node_count, hidden), h after the last round */
    /* On the way there: h before each round, and the means of its messages. */
    const graft_matrix *h[GRAFT_ENCODER_ROUNDS_MOST];
    const graft_matrix *incoming[GRAFT_ENCODER_ROUNDS_MOST];
    const graft_matrix *outgoing[GRAFT_ENCODER_ROUNDS_MOST];
} graft_encoding;

/* The encoder's set is bound to `tape`; `batch` outlives the tape's use. */
graft_encoding graft_encoder_apply(const graft_encoder *encoder, graft_tape *tape,
                                   const graft_graph_batch *batch);

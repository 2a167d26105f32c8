/* flow.h - If, Loop and Scan where a model is read to be run (graft_model_options.flows): what they
 * run are models of their own, of sizes that are known when the whole is read.
 *
 *      If       one of two, by its condition
 *      Loop     as long as its condition holds, so often at most; tensors that it collects have as
 *               many places as it is to make rounds, which has to be known
 *      Scan     for each place along an axis of its tensors
 *
 * What goes round keeps its size. A body's inputs are those that it declares, of which the node
 * gives the first state, and what it reads from outside: inputs of the node behind its own. */
#pragma once

#include "graph/model.h"

typedef enum graft_flow_kind { GRAFT_FLOW_IF, GRAFT_FLOW_LOOP, GRAFT_FLOW_SCAN } graft_flow_kind;

typedef struct graft_flow_body {
    graft_model *model;
    const graft_graph *graph; /* The model's, or what whoever runs it made of that. */
    const uint32_t *from;     /* By input of the model: the node's input that it is or follows. */
} graft_flow_body;

/* A tensor that a Scan or Loop goes through or collects. */
typedef struct graft_flow_piece {
    graft_shape whole;
    uint32_t axis;
    bool reversed;
} graft_flow_piece;

typedef struct graft_flow {
    const char *name;    /* Of the node. */
    const char *refusal; /* Why it cannot be run; NULL: it can. */
    graft_flow_kind kind;
    uint32_t first_state;    /* The body's input that is its first state... */
    uint32_t state_count;    /* ...of so many, */
    uint32_t read_count;     /* and what a Scan goes through behind these. */
    uint32_t made_count;     /* What is collected. */
    uint32_t rounds;         /* Of a Scan, and of a Loop that collects. */
    const graft_shape *outs; /* By output of the node. */
    const graft_flow_piece *read;
    const graft_flow_piece *made;
    graft_flow_body bodies[2]; /* Of an If: where the condition holds, and else. */
    uint32_t body_count;
} graft_flow;

/* What a node runs; NULL: it is no such node, or the model was not read to be run. */
graft_flow *graft_flow_of(const graft_model *model, const graft_node *node);

/* lower.h - a graph of Graft's as one of XNNPACK's: what the example and the device share.
 *
 * Channels come last there. What a subgraph of the version of 2022 (Debian's) cannot say is refused
 * with the node's name: concatenation, split, batched products, most moves of elements, anything
 * but binary32. */
#ifndef EXAMPLES_XNNPACK_LOWER_H
#define EXAMPLES_XNNPACK_LOWER_H

#include "graph/model.h"

#include <xnnpack.h>

enum { LOWERING_OPERATOR_BYTES = 32 };

/* An input or output: elements in XNNPACK's order, in env->unit. */
typedef struct {
    float *data;
    size_t count;
} lowered_port;

/* A graph that is ready to run. */
typedef struct {
    xnn_runtime_t runtime;
    uint32_t node_count; /* Of XNNPACK's. */
    uint32_t input_count;
    uint32_t port_count; /* Inputs as the model has them, then outputs. */
    lowered_port *ports;
} lowered;

typedef struct {
    uint32_t copy_count;   /* Side by side, on the same inputs, each with weights of its own. */
    pthreadpool_t threads; /* NULL: the caller's alone. */
} lowering_options;

/* Lowers `graph`, which is model->graph or a rewritten copy, into env->unit. GRAFT_UNSUPPORTED,
 * with the node, for what XNNPACK lacks. */
GRAFT_MUST_USE graft_status lower_graph(graft_env *env, const graft_model *model,
                                        const graft_graph *graph, const lowering_options *options,
                                        lowered *net);
GRAFT_MUST_USE graft_status lowered_run(graft_env *env, const lowered *net);
void lowered_close(lowered *net);

/* What there may be in a graph: bit op % 8 of byte op / 8, as graft_policy_skip_unrunnable has
 * it. */
void lowering_operators(uint8_t operators[LOWERING_OPERATOR_BYTES]);

#endif

/* algebra_float.c - operator bodies over binary32, and whole graphs in topological order. */
#include "algebra_float.h"
#include "graph/opaque.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define NUM      float
#define ALG(f)   f##_f32
#define ROUND(x) (float)(x)
#include "ieee.inc"
#include "operator_bodies.inc"

void graft_float_run(uint32_t op, const graft_call *call, const float *const in[],
                     float *const out[])
{
    assert(graft_op(op) != NULL);
    run_f32[op](NULL, call, in, out);
}

graft_status graft_float_opaque(graft_env *env, graft_arena *arena, const graft_model *model,
                                const graft_graph *graph, graft_index n, const float **values)
{
    graft_opaque opaque;
    const void *in[GRAFT_OPAQUE_INPUTS_MOST] = {NULL};
    GRAFT_RETURN_IF(!graft_opaque_find(model, graph, n, &opaque),
                    GRAFT_FAIL(env, GRAFT_UNSUPPORTED,
                               "node %u is opaque: the reference executor cannot run it", n));
    for (uint32_t k = 0; k < opaque.read_count; k++) {
        if (opaque.in[k].rank == GRAFT_RANK_UNKNOWN) {
            continue;
        }
        graft_index v = graft_node_input(graph, n, k);
        in[k] = values[v];
        GRAFT_RETURN_IF(in[k] == NULL,
                        GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                                   "node %u (opaque) reads value %u, which has no data", n, v));
    }
    void *out[GRAFT_OPAQUE_OUTPUTS_MOST] = {NULL};
    for (uint32_t k = 0; k < opaque.out_count; k++) {
        out[k] = graft_arena_alloc(arena, (size_t)graft_shape_bytes(&opaque.outs[k]));
        values[graft_node_output(graph, n, k)] = out[k];
    }
    return graft_opaque_run(env, &opaque, in, out);
}

/* Runs one node: finds its inputs among the values, gives memory to its outputs. */
static graft_status run_node(graft_env *env, graft_arena *arena, const graft_graph *graph,
                             graft_index n, const float **values)
{
    const graft_node *node = &graph->nodes[n];
    const graft_op_info *info = graft_op(node->op);
    graft_shape in_shapes[GRAFT_MAX_INPUTS];
    graft_shape out_shapes[GRAFT_MAX_OUTPUTS];
    const float *in[GRAFT_MAX_INPUTS] = {NULL};
    float *out[GRAFT_MAX_OUTPUTS] = {NULL};
    for (uint32_t i = 0; i < node->input_count; i++) {
        graft_index v = graft_node_input(graph, n, i);
        if (values[v] == NULL) {
            return GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                              "node %u (%s) reads value %u, which has no data", n, info->name, v);
        }
        in_shapes[i] = graph->values[v].shape;
        in[i] = values[v];
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        graft_index v = graft_node_output(graph, n, i);
        out_shapes[i] = graph->values[v].shape;
        out[i] = GRAFT_NEW(arena, float, graft_count(&out_shapes[i]));
        values[v] = out[i];
    }
    const graft_call call = {node->attrs, in_shapes, out_shapes};
    graft_float_run(node->op, &call, in, out);
    return GRAFT_OK;
}

graft_status graft_float_model(graft_env *env, graft_arena *arena, const graft_model *model,
                               const graft_graph *graph, const graft_order *order,
                               const float **values)
{
    for (graft_index i = 0; i < order->count; i++) {
        graft_index n = order->order[i];
        if (graph->nodes[n].op == GRAFT_OP_OPAQUE || graft_opaque_is_byte(graph, n)) {
            GRAFT_PASS(graft_float_opaque(env, arena, model, graph, n, values));
        } else {
            GRAFT_PASS(run_node(env, arena, graph, n, values));
        }
    }
    return GRAFT_OK;
}

/* evaluate.c - see evaluate.h. */
#include "tests/support/evaluate.h"

/* Elements of a tensor; a tensor of unknown shape stands for one. */
static size_t elements_of(const graft_shape *shape)
{
    return shape->rank == GRAFT_RANK_UNKNOWN ? 1 : graft_count(shape);
}

static graft_field *draw_tensor(graft_arena *arena, graft_rng *rng, size_t count,
                                double negative_share)
{
    graft_field *tensor = GRAFT_NEW(arena, graft_field, count);
    for (size_t i = 0; i < count; i++) {
        tensor[i] = graft_field_random(rng, negative_share);
    }
    return tensor;
}

const graft_field *evaluate_source(graft_arena *arena, uint64_t sample, const graft_value *value)
{
    graft_rng rng;
    graft_rng_derive(&rng, sample, (uint64_t)value->kind << 32 | value->source);
    const uint8_t type = value->shape.dtype;
    const bool byte = type == GRAFT_DTYPE_I8 || type == GRAFT_DTYPE_U8;
    if (byte || type == GRAFT_DTYPE_BOOL) {
        size_t count = graft_count(&value->shape);
        graft_field *whole = GRAFT_NEW(arena, graft_field, count);
        for (size_t i = 0; i < count; i++) {
            whole[i] = graft_field_integer((int64_t)graft_rng_below(&rng, byte ? 256 : 2) -
                                           (type == GRAFT_DTYPE_I8 ? 128 : 0));
        }
        return whole;
    }
    return draw_tensor(arena, &rng, elements_of(&value->shape), value->source % 3 == 0 ? 0.0 : 0.5);
}

bool evaluate_call(graft_arena *arena, uint32_t op, const graft_call *call,
                   const graft_field *const in[], const graft_field *out[])
{
    graft_field_state state = {0};
    graft_field *made[GRAFT_MAX_OUTPUTS] = {NULL};
    for (uint32_t o = 0; o < graft_op(op)->output_count; o++) {
        made[o] = GRAFT_NEW(arena, graft_field, graft_count(&call->out[o]));
        out[o] = made[o];
    }
    graft_field_run(&state, op, call, in, made);
    return state.ambiguous_count == 0 && state.invalid_count == 0;
}

/* One number that depends on everything an opaque node reads. */
static uint64_t digest_inputs(const graft_graph *graph, graft_index n, evaluate_tensors tensors)
{
    uint64_t digest = graph->nodes[n].source;
    for (uint32_t i = 0; i < graph->nodes[n].input_count; i++) {
        graft_index v = graft_node_input(graph, n, i);
        size_t count = v == GRAFT_NONE ? 0 : elements_of(&graph->values[v].shape);
        digest = digest * UINT64_C(0x9e3779b97f4a7c15) + count + 1;
        for (size_t e = 0; e < count; e++) {
            digest = (digest ^ digest >> 29) * UINT64_C(0xbf58476d1ce4e5b9) + tensors[v][e].residue;
        }
    }
    return digest;
}

void evaluate_opaque(graft_arena *arena, const graft_graph *graph, graft_index node,
                     evaluate_tensors tensors, const graft_field *out[])
{
    uint64_t digest = digest_inputs(graph, node, tensors);
    for (uint32_t o = 0; o < graph->nodes[node].output_count; o++) {
        graft_index v = graft_node_output(graph, node, o);
        graft_rng rng;
        graft_rng_derive(&rng, digest, o);
        out[o] = draw_tensor(arena, &rng, elements_of(&graph->values[v].shape), 0.5);
    }
}

static bool run_node(graft_arena *arena, const graft_graph *graph, graft_index n,
                     evaluate_tensors tensors, const graft_field *out[])
{
    const graft_node *node = &graph->nodes[n];
    graft_shape in_shapes[GRAFT_MAX_INPUTS];
    graft_shape out_shapes[GRAFT_MAX_OUTPUTS];
    const graft_field *in[GRAFT_MAX_INPUTS];
    if (node->op == GRAFT_OP_OPAQUE) {
        evaluate_opaque(arena, graph, n, tensors, out);
        return true;
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        graft_index v = graft_node_input(graph, n, i);
        in_shapes[i] = graph->values[v].shape;
        in[i] = tensors[v];
    }
    for (uint32_t o = 0; o < node->output_count; o++) {
        out_shapes[o] = graph->values[graft_node_output(graph, n, o)].shape;
    }
    graft_call call = {node->attrs, in_shapes, out_shapes};
    return evaluate_call(arena, node->op, &call, in, out);
}

evaluate_tensors evaluate_graph(graft_arena *arena, const graft_graph *graph,
                                const graft_order *order, uint64_t sample)
{
    const graft_field **tensors = GRAFT_NEW(arena, const graft_field *, graph->limits.values);
    for (graft_index v = 0; v < graph->value_end; v++) {
        const graft_value *value = &graph->values[v];
        if (value->kind == GRAFT_VALUE_INPUT || value->kind == GRAFT_VALUE_WEIGHT) {
            tensors[v] = evaluate_source(arena, sample, value);
        }
    }
    bool valid = true;
    for (graft_index i = 0; valid && i < order->count; i++) {
        graft_index n = order->order[i];
        const graft_field *out[EVALUATE_OUTPUTS] = {NULL};
        valid = run_node(arena, graph, n, tensors, out);
        for (uint32_t o = 0; o < graph->nodes[n].output_count; o++) {
            tensors[graft_node_output(graph, n, o)] = out[o];
        }
    }
    return valid ? tensors : NULL;
}

bool evaluate_outputs_equal(const graft_graph *a, evaluate_tensors a_tensors, const graft_graph *b,
                            evaluate_tensors b_tensors)
{
    bool equal = a->output_count == b->output_count;
    for (graft_index i = 0; equal && i < a->output_count; i++) {
        const graft_shape *shape = &a->values[a->outputs[i]].shape;
        equal = graft_shape_equal(shape, &b->values[b->outputs[i]].shape);
        for (size_t e = 0; equal && e < elements_of(shape); e++) {
            equal = a_tensors[a->outputs[i]][e].residue == b_tensors[b->outputs[i]][e].residue;
        }
    }
    return equal;
}

/* state.c - see state.h. */
#include "train/agent/state.h"

#include <assert.h>
#include <string.h>

void graft_state_open(graft_arena *arena, const graft_limits *limits, graft_state *state)
{
    size_t graph_bytes = graft_graph_bytes(limits);
    void *memory = graft_arena_alloc(arena, graph_bytes);
    graft_status status = graft_graph_init(&state->graph, limits, memory, graph_bytes);
    assert(status == GRAFT_OK); /* The buffer has the size that was asked for. */
    state->order_bytes = graft_order_bytes(limits);
    state->order_memory = graft_arena_alloc(arena, state->order_bytes);
    status =
        graft_order_build(&state->order, &state->graph, state->order_memory, state->order_bytes);
    assert(status == GRAFT_OK); /* That of no nodes. */
    (void)status;
    state->scratch = graft_arena_alloc(arena, graft_match_scratch_bytes(limits));
    state->hashes = GRAFT_NEW(arena, uint64_t, limits->values);
}

graft_limits graft_state_limits(const graft_graph *graph)
{
    graft_limits limits = {
        .nodes = graph->node_end + graph->node_end / 2 + 64,
        .values = graph->value_end + graph->value_end / 2 + 128,
        .edges = graph->edge_end + graph->edge_end / 2 + 256,
        .outputs = graph->output_count,
    };
    return limits;
}

graft_status graft_state_refresh(graft_env *env, graft_state *state)
{
    graft_status status =
        graft_order_build(&state->order, &state->graph, state->order_memory, state->order_bytes);
    return status == GRAFT_OK ? GRAFT_OK : GRAFT_FAIL(env, status, "the graph has a cycle");
}

static graft_status copy_graph(graft_env *env, graft_state *state, const graft_graph *graph)
{
    return graft_graph_copy(&state->graph, graph) == GRAFT_OK
               ? GRAFT_OK
               : GRAFT_FAIL(env, GRAFT_CAPACITY, "a graph of %u nodes does not fit into %u",
                            graph->node_end, state->graph.limits.nodes);
}

graft_status graft_state_set(graft_env *env, graft_state *state, const graft_graph *graph)
{
    GRAFT_PASS(copy_graph(env, state, graph));
    return graft_state_refresh(env, state);
}

graft_status graft_state_copy(graft_env *env, graft_state *state, const graft_graph *graph,
                              const graft_order *order)
{
    const graft_index values = graph->value_end;
    graft_order *own = &state->order;
    GRAFT_PASS(copy_graph(env, state, graph));
    own->count = order->count;
    memcpy(own->order, order->order, order->count * sizeof own->order[0]);
    memcpy(own->position, order->position, graph->node_end * sizeof own->position[0]);
    memcpy(own->use_first, order->use_first, (values + 1) * sizeof own->use_first[0]);
    memcpy(own->uses, order->uses, order->use_first[values] * sizeof own->uses[0]);
    memcpy(own->use_count, order->use_count, values * sizeof own->use_count[0]);
    return GRAFT_OK;
}

graft_status graft_state_make(graft_env *env, graft_arena *arena, const graft_graph *graph,
                              graft_state *state)
{
    const graft_limits limits = graft_state_limits(graph);
    graft_state_open(arena, &limits, state);
    return graft_state_set(env, state, graph);
}

graft_status graft_state_apply(graft_env *env, graft_state *state, const graft_rule *rule,
                               const graft_match *match, const graft_apply_options *options)
{
    graft_status status =
        graft_apply(&state->graph, rule, match, &state->order, options, state->scratch, NULL);
    return status == GRAFT_OK ? graft_state_refresh(env, state) : status;
}

uint64_t graft_state_hash(graft_state *state)
{
    return graft_graph_hash(&state->graph, &state->order, state->hashes);
}

/* build.c - see build.h. */
#include "tests/support/build.h"

graft_graph *build_graph_within(graft_arena *arena, graft_limits limits)
{
    graft_graph *graph = GRAFT_NEW(arena, graft_graph, 1);
    size_t bytes = graft_graph_bytes(&limits);
    CHECK_OK(graft_graph_init(graph, &limits, graft_arena_alloc(arena, bytes), bytes));
    return graph;
}

graft_graph *build_graph(graft_arena *arena)
{
    return build_graph_within(arena, (graft_limits){64, 160, 320, 8});
}

graft_index build_input(graft_graph *graph, graft_shape shape, graft_index source)
{
    graft_index value = GRAFT_NONE;
    CHECK_OK(graft_graph_add_input(graph, &shape, source, &value));
    return value;
}

graft_index build_weight(graft_graph *graph, graft_shape shape, graft_index source)
{
    graft_index value = GRAFT_NONE;
    CHECK_OK(graft_graph_add_weight(graph, &shape, source, &value));
    return value;
}

graft_index build_node(graft_graph *graph, uint32_t op, const int32_t *attrs, graft_index a,
                       graft_index b, graft_index c)
{
    const graft_index inputs[3] = {a, b, c};
    graft_index node = GRAFT_NONE;
    CHECK_OK(graft_graph_add_node(graph, op, attrs, inputs, GRAFT_NONE, &node));
    return graft_node_output(graph, node, 0);
}

graft_index build_conv(graft_graph *graph, graft_index x, graft_index w, int32_t pad)
{
    const int32_t attrs[9] = {1, 1, pad, pad, pad, pad, 1, 1, 1};
    return build_node(graph, GRAFT_OP_conv, attrs, x, w, GRAFT_NONE);
}

graft_order build_order(graft_arena *arena, const graft_graph *graph)
{
    graft_order order;
    size_t bytes = graft_order_bytes(&graph->limits);
    CHECK_OK(graft_order_build(&order, graph, graft_arena_alloc(arena, bytes), bytes));
    return order;
}

uint64_t build_hash(graft_arena *arena, const graft_graph *graph)
{
    graft_order order = build_order(arena, graph);
    return graft_graph_hash(graph, &order, GRAFT_NEW(arena, uint64_t, graph->limits.values));
}

void build_check(graft_arena *arena, const graft_graph *graph)
{
    size_t bytes = graft_order_bytes(&graph->limits);
    const char *fault = graft_graph_check(graph, graft_arena_alloc(arena, bytes), bytes);
    if (fault != NULL) {
        fail_msg("%s", fault);
    }
}

graft_estimator build_estimator(graft_arena *arena, const graft_tariff *tariff,
                                const graft_limits *limits)
{
    graft_estimator estimator;
    size_t bytes = graft_estimator_bytes(limits);
    CHECK_OK(
        graft_estimator_open(&estimator, tariff, limits, graft_arena_alloc(arena, bytes), bytes));
    return estimator;
}

void *build_scratch(graft_arena *arena, const graft_graph *graph)
{
    return graft_arena_alloc(arena, graft_match_scratch_bytes(&graph->limits));
}

graft_match build_match(const graft_graph *graph, const graft_rule *rule, const graft_order *order)
{
    graft_match match;
    for (graft_index i = 0; i < order->count; i++) {
        graft_matcher matcher;
        graft_matcher_start(&matcher, rule, graph, order, order->order[i]);
        if (graft_matcher_next(&matcher, &match)) {
            return match;
        }
    }
    fail_msg("the rule has no match");
    return match;
}

bool build_apply(graft_arena *arena, graft_graph *graph, const graft_rule *rule)
{
    const graft_apply_options options = {UINT64_MAX};
    const graft_mark mark = graft_arena_mark(arena);
    const graft_order order = build_order(arena, graph);
    void *scratch = build_scratch(arena, graph);
    bool applied = false;
    for (graft_index i = 0; i < order.count && !applied; i++) {
        graft_matcher matcher;
        graft_match match;
        graft_matcher_start(&matcher, rule, graph, &order, order.order[i]);
        while (!applied && graft_matcher_next(&matcher, &match)) {
            applied = graft_apply(graph, rule, &match, &order, &options, scratch, NULL) == GRAFT_OK;
        }
    }
    graft_arena_release(arena, mark);
    return applied;
}

graft_pattern_node *build_pattern_node(graft_pattern *pattern, uint32_t op, graft_operand a,
                                       graft_operand b, graft_operand c, int32_t slot)
{
    graft_pattern_node *node = &pattern->nodes[pattern->node_count++];
    node->op = (uint8_t)op;
    node->inputs[0] = a;
    node->inputs[1] = b;
    node->inputs[2] = c;
    for (uint32_t i = 0; slot >= 0 && i < graft_op(op)->attr_count; i++) {
        node->attrs[i] = (graft_term){.value = slot + (int32_t)i, .kind = GRAFT_TERM_SLOT};
    }
    return node;
}

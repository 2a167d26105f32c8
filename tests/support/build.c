/* build.c - see build.h. */
#include "tests/support/build.h"

#include "graph/base/bits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MOST = 40, TEXT_BYTES = 2048 };

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

static uint32_t find_operator(const char *name)
{
    for (uint32_t op = 1; op < GRAFT_OP_COUNT; op++) {
        if (strcmp(graft_op(op)->name, name) == 0) {
            return op;
        }
    }
    fail_msg("there is no operator '%s'", name);
    return 0;
}

static graft_index add_source(graft_graph *graph, bool input, char *const *sizes, uint32_t rank)
{
    graft_shape shape = {.rank = (uint8_t)rank, .dtype = GRAFT_DTYPE_F32};
    graft_index source = 0;
    for (uint32_t i = 0; i < rank; i++) {
        shape.dims[i] = (int32_t)strtol(sizes[i], NULL, 10);
    }
    for (graft_index v = 0; v < graph->value_end; v++) {
        source += graph->values[v].kind == (input ? GRAFT_VALUE_INPUT : GRAFT_VALUE_WEIGHT);
    }
    return input ? build_input(graph, shape, source) : build_weight(graph, shape, source);
}

/* Operands and attributes of a statement, from its operator on; the node. */
static graft_index add_operator(const built *b, char *const *words, uint32_t count,
                                uint32_t outputs)
{
    graft_index inputs[GRAFT_MAX_INPUTS] = {0};
    int32_t attrs[GRAFT_MAX_ATTRS] = {0};
    graft_shape shapes[GRAFT_MAX_INPUTS];
    graft_index node = GRAFT_NONE;
    uint32_t at = 1;
    uint32_t given = 0;
    for (; at < count && words[at][0] != ':'; at++) {
        inputs[at - 1] = words[at][0] == '_' ? GRAFT_NONE : b->at[(int)words[at][0]];
        given = words[at][0] == '_' ? given : at - 1;
    }
    if (strcmp(words[0], "opaque") == 0) {
        for (uint32_t i = 0; i < outputs; i++) {
            shapes[i] = b->graph->values[inputs[given]].shape;
        }
        CHECK_OK(graft_graph_add_opaque(b->graph, 0, inputs, (uint16_t)(at - 1), shapes,
                                        (uint16_t)outputs, &node));
        return node;
    }
    for (uint32_t k = 0; ++at < count; k++) {
        attrs[k] = strchr(words[at], '.') != NULL ? graft_bits_of_float(strtof(words[at], NULL))
                                                  : (int32_t)strtol(words[at], NULL, 10);
    }
    CHECK_OK(
        graft_graph_add_node(b->graph, find_operator(words[0]), attrs, inputs, GRAFT_NONE, &node));
    return node;
}

static void add_statement(built *b, char *text)
{
    char *words[WORDS_MOST];
    uint32_t count = 0;
    uint32_t equals = 0;
    char *rest = NULL;
    for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        assert_true(count < WORDS_MOST);
        equals = word[0] == '=' ? count : equals;
        words[count++] = word;
    }
    if (count > 0 && strcmp(words[0], "out") == 0) {
        for (uint32_t i = 1; i < count; i++) {
            CHECK_OK(graft_graph_add_output(b->graph, b->at[(int)words[i][0]]));
        }
    } else if (count > 0) {
        char *const *from = &words[equals + 1];
        const bool input = strcmp(from[0], "input") == 0;
        const bool source = input || strcmp(from[0], "weight") == 0;
        count -= equals + 1;
        const graft_index made = source ? add_source(b->graph, input, from + 1, count - 1)
                                        : add_operator(b, from, count, equals);
        for (uint32_t i = 0; i < equals; i++) {
            b->at[(int)words[i][0]] = source ? made : graft_node_output(b->graph, made, i);
        }
    }
}

static void add_text(built *b, const char *format, va_list arguments)
{
    char text[TEXT_BYTES];
    char *rest = NULL;
    assert_in_range(vsnprintf(text, sizeof text, format, arguments), 1, sizeof text - 1);
    for (char *part = strtok_r(text, ";", &rest); part != NULL; part = strtok_r(NULL, ";", &rest)) {
        add_statement(b, part);
    }
}

void build_more(built *b, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_text(b, format, arguments);
    va_end(arguments);
}

built build_text(graft_arena *arena, const char *format, ...)
{
    built b = {.graph = build_graph(arena)};
    va_list arguments;
    va_start(arguments, format);
    add_text(&b, format, arguments);
    va_end(arguments);
    return b;
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
    GRAFT_SCOPED(arena);
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

/* What the engine refuses, each with the promise that is broken: graphs that are not sound, rules
 * that are not valid, byte code that fails, limits that no memory has. */
#include "graph/base/rng.h"
#include "tests/support/build.h"
#include "tests/support/rows.h"

#include <string.h>

/* ------------------------------------------------------------------ memory */

CHECK_CASE(test_endless_limits)
{
    static const graft_tariff tariff = {.row_count = 0};
    const graft_limits limits = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
    graft_policy policy = {.decider = GRAFT_DECIDER_TARIFF, .tariff = &tariff};
    graft_graph graph = {.limits = limits};
    graft_estimator estimator;
    uint64_t memory[8];
    policy.rule_count = UINT16_MAX;
    assert_true(graft_graph_bytes(&limits) > UINT32_MAX);
    assert_true(graft_order_bytes(&limits) > UINT32_MAX);
    assert_true(graft_optimize_workspace_most_bytes(&policy, &limits, UINT32_MAX) > UINT32_MAX);
    assert_int_equal(graft_graph_init(&graph, &limits, memory, sizeof memory), GRAFT_NO_MEMORY);
    assert_int_equal(graft_estimator_open(&estimator, &tariff, &limits, memory, sizeof memory),
                     GRAFT_NO_MEMORY);
    assert_int_equal(graft_estimator_open(&estimator, &tariff, &limits, memory, SIZE_MAX),
                     GRAFT_CAPACITY);
    const graft_limits values = {8, UINT32_MAX, 8, 8};
    assert_int_equal(graft_estimator_open(&estimator, &tariff, &values, memory, SIZE_MAX),
                     GRAFT_CAPACITY);
    assert_int_equal(graft_estimator_open(&estimator, &tariff, &values, NULL, SIZE_MAX),
                     GRAFT_NO_MEMORY);
    assert_int_equal(graft_graph_init(&graph, &values, NULL, SIZE_MAX), GRAFT_NO_MEMORY);
}

CHECK_CASE(test_small_buffers)
{
    graft_graph *graph = build_text(env->life, "x = input 4; y = input 4").graph;
    const graft_limits less = {64, 1, 64, 1};
    graft_graph *narrow = build_graph_within(env->life, less);
    const size_t bytes = graft_order_bytes(&graph->limits);
    void *memory = graft_arena_alloc(env->life, bytes);
    graft_order order;
    assert_int_equal(graft_order_build(&order, graph, memory, bytes - 1), GRAFT_NO_MEMORY);
    assert_int_equal(graft_order_build(&order, graph, NULL, bytes), GRAFT_NO_MEMORY);
    assert_string_equal(graft_graph_check(graph, memory, 0), "the workspace is too small");
    assert_null(graft_graph_check(graph, memory, bytes));
    assert_int_equal(graft_graph_copy(narrow, graph), GRAFT_CAPACITY);
    assert_int_equal(narrow->value_end, 0);
}

/* A graph beyond what an estimator was opened for, and beyond what costs can be added up for. */
CHECK_CASE(test_estimator_limits)
{
    static const graft_tariff tariff = {.row_count = 0};
    const graft_limits small = {2, 2, 2, 1};
    graft_graph *graph =
        build_text(env->life, "x = input 4; x = relu x; x = relu x; x = relu x; x = relu x").graph;
    graft_estimator estimator = build_estimator(env->life, &tariff, &small);
    graft_estimated estimated;
    graft_order order = build_order(env->life, graph);
    const bool same[4] = {false};
    assert_int_equal(graft_estimate(&estimator, graph, &order, &estimated), GRAFT_CAPACITY);
    assert_int_equal(graft_estimate_again(&estimator, graph, &order, same), GRAFT_CAPACITY);
    graft_graph few_nodes = *graph;
    few_nodes.node_end = 1;
    assert_int_equal(graft_estimate(&estimator, &few_nodes, &order, &estimated), GRAFT_CAPACITY);
    few_nodes.value_end = 1;
    order.count = GRAFT_ESTIMATE_NODES + 1;
    assert_int_equal(graft_estimate(&estimator, &few_nodes, &order, &estimated), GRAFT_CAPACITY);
    static const graft_policy policy = {.abi = GRAFT_ABI,
                                        .feature_hash = GRAFT_FEATURE_HASH,
                                        .tariff = &tariff,
                                        .decider = GRAFT_DECIDER_TARIFF};
    const graft_optimize_options options = graft_optimize_options_default();
    graft_graph long_graph = *graph;
    long_graph.node_end = GRAFT_ESTIMATE_NODES + 1;
    assert_int_equal(graft_optimize(&long_graph, &policy, &options, NULL, 0, NULL), GRAFT_CAPACITY);
}

CHECK_CASE(test_costs)
{
    graft_graph *graph = build_text(env->life, "x = input 4; y = relu x").graph;
    graft_form form;
    graft_form_of_node(graph, 0, &form);
    const uint32_t key = graft_tariff_key(7, graft_form_hash(&form));
    const uint16_t value = 1 + 3 * 1024; /* 2^3 units. */
    const graft_tariff tariff = {.keys = &key, .values = &value, .row_count = 1, .seed = 7};
    const graft_node_price price = graft_tariff_price(&tariff, &form);
    assert_true(price.cost == 8 && price.flops == 4 && price.bytes == 32 && !price.fallback);
    const graft_tariff empty = {.seed = 7};
    assert_true(graft_tariff_price(&empty, &form).fallback);

    graft_order order = build_order(env->life, graph);
    graft_estimator estimator = build_estimator(env->life, &tariff, &graph->limits);
    graft_estimated estimated;
    bool guessed = true;
    CHECK_OK(graft_estimate(&estimator, graph, &order, &estimated));
    assert_true(estimated.cost == 8 && graft_estimator_cost(&estimator, 0, &guessed) == 8);
    assert_false(guessed);
}

/* The forms of an exponential and a root that a target makes are those of nodes of a graph. */
static void check_forms(graft_env *env, const graft_graph *graph, const graft_made *made)
{
    graft_graph *other = build_text(env->life, "x = input 4; y = exp x; z = sqrt y").graph;
    for (uint32_t n = 0; n < 2; n++) {
        graft_form forms[2];
        graft_form_of_node(other, (graft_index)n, &forms[0]);
        graft_form_of_made(graph, made, n, &forms[1]);
        assert_true(graft_form_hash(&forms[0]) == graft_form_hash(&forms[1]));
        assert_true(forms[0].bytes == forms[1].bytes);
    }
}

/* relu(x) = relu(x), and an exponential and what reads it that nobody reads: they die as they are
 * made. */
CHECK_CASE(test_idle_target)
{
    static const graft_tariff tariff = {.row_count = 0};
    static const graft_apply_options options = {0};
    graft_rule rule;
    memset(&rule, 0, sizeof rule);
    rule.var_count = rule.output_count = 1;
    rule.condition = 255;
    (void)build_pattern_node(&rule.source, GRAFT_OP_relu, VAR(0), 0, 0, -1);
    (void)build_pattern_node(&rule.target, GRAFT_OP_exp, VAR(0), 0, 0, -1);
    (void)build_pattern_node(&rule.target, GRAFT_OP_sqrt, NODE(0, 0), 0, 0, -1);
    (void)build_pattern_node(&rule.target, GRAFT_OP_relu, VAR(0), 0, 0, -1);
    rule.source.outputs[0] = NODE(0, 0);
    rule.target.outputs[0] = NODE(2, 0);
    assert_null(graft_rule_check(&rule));
    graft_graph *graph = build_text(env->life, "x = input 4; y = relu x; out y").graph;
    graft_order order = build_order(env->life, graph);
    graft_estimator estimator = build_estimator(env->life, &tariff, &graph->limits);
    graft_estimated estimated;
    graft_made made;
    graft_change change;
    CHECK_OK(graft_estimate(&estimator, graph, &order, &estimated));
    const graft_match match = build_match(graph, &rule, &order);
    CHECK_OK(graft_match_plan(graph, &rule, &match, &order, &options,
                              build_scratch(env->life, graph), &made));
    graft_estimate_match(&estimator, &rule, &match, &made, &change);
    assert_memory_equal(&change.added, &change.removed, sizeof change.added);
    check_forms(env, graph, &made);
}

/* pad(x, before s) = pad(x, before what a program makes of s), which nothing says is true: it has
 * no match where that is no attribute. */
static void refuse_attribute(graft_env *env, const uint8_t *code, size_t code_bytes)
{
    static const graft_apply_options options = {0};
    graft_rule rule;
    memset(&rule, 0, sizeof rule);
    rule.var_count = rule.output_count = rule.slot_count = 1;
    rule.condition = 255;
    rule.code_bytes = (uint8_t)code_bytes;
    memcpy(rule.code, code, code_bytes);
    (void)build_pattern_node(&rule.source, GRAFT_OP_pad, VAR(0), 0, 0, -1);
    (void)build_pattern_node(&rule.target, GRAFT_OP_pad, VAR(0), 0, 0, -1);
    rule.source.nodes[0].attrs[GRAFT_ATTR_pad_before].kind = GRAFT_TERM_SLOT;
    rule.target.nodes[0].attrs[GRAFT_ATTR_pad_before].kind = GRAFT_TERM_CODE;
    rule.source.outputs[0] = rule.target.outputs[0] = NODE(0, 0);
    assert_null(graft_rule_check(&rule));
    graft_graph *graph = build_text(env->life, "x = input 4; y = pad x : 0 50000; out y").graph;
    graft_order order = build_order(env->life, graph);
    const graft_match match = build_match(graph, &rule, &order);
    assert_int_equal(
        graft_match_try(graph, &rule, &match, &order, &options, build_scratch(env->life, graph)),
        GRAFT_NO_MATCH);
}

CHECK_CASE(test_large_attribute)
{
    enum { S = GRAFT_CODE_SLOT, END = GRAFT_CODE_END };
    static const uint8_t square[] = {S, 0, S, 0, GRAFT_CODE_MUL, END};
    static const uint8_t negative[] = {S, 0, S, 0, S, 0, GRAFT_CODE_MUL, GRAFT_CODE_SUB, END};
    refuse_attribute(env, square, sizeof square);
    refuse_attribute(env, negative, sizeof negative);
}

/* A node with more operands than a form lists: forms of others have other hashes, and a tariff
 * without trees guesses nothing. */
CHECK_CASE(test_many_operands)
{
    static const graft_tariff tariff = {.row_count = 0};
    enum { MANY = GRAFT_MAX_INPUTS + 1 };
    uint64_t hashes[2];
    for (int32_t i = 0; i < 2; i++) {
        const graft_shape shape = SHAPE(4);
        graft_graph *graph = build_graph(env->life);
        graft_index inputs[MANY];
        graft_index node = 0;
        graft_form form;
        int16_t seen[GRAFT_TARIFF_INPUTS];
        for (uint32_t k = 0; k < MANY; k++) {
            inputs[k] = build_input(graph, SHAPE(k + 1 < MANY ? 4 : 4 + i), k);
        }
        CHECK_OK(graft_graph_add_opaque(graph, 0, inputs, MANY, &shape, 1, &node));
        graft_form_of_node(graph, node, &form);
        hashes[i] = graft_form_hash(&form);
        graft_tariff_inputs(&form, seen);
        assert_int_equal(graft_tariff_guess(&tariff, seen).value, 0);
    }
    assert_true(hashes[0] != hashes[1]);
}

/* Opaque nodes with many outputs, with none, and with operands of no known shape or of more bytes
 * than can be counted. */
CHECK_CASE(test_odd_forms)
{
    enum { MANY = GRAFT_MAX_OUTPUTS + 1 };
    const graft_shape shapes[MANY] = {SHAPE(4), SHAPE(5), SHAPE(6)};
    const graft_shape endless = SHAPE(INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX);
    const graft_shape unknown = {.rank = GRAFT_RANK_UNKNOWN};
    graft_graph *graph = build_graph(env->life);
    const graft_index inputs[3] = {build_input(graph, endless, 0), build_input(graph, endless, 1),
                                   build_weight(graph, unknown, 2)};
    graft_index nodes[2];
    uint64_t hashes[2];
    CHECK_OK(graft_graph_add_opaque(graph, 0, inputs, 3, shapes, MANY, &nodes[0]));
    CHECK_OK(graft_graph_add_opaque(graph, 0, inputs, 3, NULL, 0, &nodes[1]));
    const graft_order order = build_order(env->life, graph);
    for (uint32_t i = 0; i < 2; i++) {
        graft_form form;
        int16_t seen[GRAFT_TARIFF_INPUTS];
        int8_t row[GRAFT_FEATURE_COUNT];
        graft_form_of_node(graph, nodes[i], &form);
        graft_tariff_inputs(&form, seen);
        graft_node_features(graph, &order, nodes[i], row);
        hashes[i] = graft_form_hash(&form);
        assert_true(form.bytes == UINT64_MAX && form.input_elements == UINT64_MAX);
        assert_int_equal(seen[GRAFT_FEATURE_COUNT + 1], GRAFT_ACTIVATION_MOST);
        assert_int_equal(row[GRAFT_FEATURE_weight_dims], 0);
        assert_int_equal(row[GRAFT_FEATURE_rank], i == 0 ? 16 : 0);
    }
    assert_true(hashes[0] != hashes[1]);
}

/* What trees add is kept within what a row can say. */
CHECK_CASE(test_extreme_trees)
{
    static const uint8_t tests[GRAFT_TREE_TESTS];
    static const int16_t bounds[GRAFT_TREE_TESTS];
    int16_t leaves[3 * GRAFT_TREE_LEAVES];
    uint8_t all_tests[3 * GRAFT_TREE_TESTS] = {0};
    int16_t all_bounds[3 * GRAFT_TREE_TESTS] = {0};
    int16_t inputs[GRAFT_TARIFF_INPUTS] = {0};
    graft_tariff tariff = {.tests = tests, .bounds = bounds, .leaves = leaves, .tree_count = 1};
    for (uint32_t i = 0; i < 3 * GRAFT_TREE_LEAVES; i++) {
        leaves[i] = INT16_MIN;
    }
    assert_int_equal(graft_tariff_guess(&tariff, inputs).value, 0);
    assert_int_equal(graft_tariff_guess(&tariff, inputs).skew, -GRAFT_SKEW_MOST);
    for (uint32_t i = 0; i < 3 * GRAFT_TREE_LEAVES; i++) {
        leaves[i] = INT16_MAX;
    }
    tariff.tests = all_tests;
    tariff.bounds = all_bounds;
    tariff.tree_count = 3;
    assert_int_equal(graft_tariff_guess(&tariff, inputs).value, UINT16_MAX);
    assert_int_equal(graft_tariff_guess(&tariff, inputs).skew, GRAFT_SKEW_MOST);
    all_tests[3] = GRAFT_TARIFF_INPUTS;
    assert_string_equal(graft_tariff_check(&tariff), "a tree tests an input that there is not");
}

/* ------------------------------------------------------------------ graphs */

typedef struct {
    const char *fault;
    void (*damage)(graft_graph *graph);
} damaged_graph;

static void unknown_operator(graft_graph *graph) { graph->nodes[0].op = 200; }
static void other_arity(graft_graph *graph) { graph->nodes[0].op = GRAFT_OP_relu; }

/* Twice the same operand and no output, in as many edges. */
static void no_result(graft_graph *graph)
{
    graph->nodes[0].input_count = 3;
    graph->nodes[0].output_count = 0;
    graph->values[2].kind = GRAFT_VALUE_INPUT;
}

/* As many operands, and no output. */
static void lost_result(graft_graph *graph) { graph->nodes[0].output_count = 0; }

/* Another computed value, of a node or an output that is not there. */
static void stray(graft_graph *graph, graft_index node, uint16_t slot)
{
    graft_value *value = &graph->values[graph->value_end++];
    *value = graph->values[2];
    value->node = node;
    value->slot = slot;
}

static void far_producer(graft_graph *graph) { stray(graph, graph->node_end, 0); }
static void far_result(graft_graph *graph) { stray(graph, 0, 1); }

static void freed_producer(graft_graph *graph)
{
    graph->nodes[graph->node_end].op = GRAFT_OP_NONE;
    stray(graph, graph->node_end++, 0);
}
static void far_nodes(graft_graph *graph) { graph->node_end = graph->limits.nodes + 1; }
static void far_edges(graft_graph *graph) { graph->nodes[0].first_edge = graph->edge_end; }
static void far_operand(graft_graph *graph) { graph->edges[0] = 60; }
static void far_output(graft_graph *graph) { graph->outputs[0] = 60; }
static void wrong_slot(graft_graph *graph) { graph->values[2].slot = 1; }
static void wrong_const(graft_graph *graph) { graph->nodes[0].is_const = true; }
static void const_input(graft_graph *graph) { graph->values[0].is_const = true; }
static void wrong_shape(graft_graph *graph) { graph->values[2].shape.dims[0]++; }
static void no_shape(graft_graph *graph) { graph->values[0].shape.dims[0] = 3; }

/* A computed value that no node lists among its outputs. */
static void orphan(graft_graph *graph)
{
    graph->values[0].kind = GRAFT_VALUE_COMPUTED;
    graph->values[0].node = 0;
}

static void cycle(graft_graph *graph) { graph->edges[0] = 2; }

CHECK_CASE(test_damaged_graphs)
{
    static const damaged_graph cases[] = {
        {"unknown operator",                                                 unknown_operator},
        {"a node has another number of inputs or outputs than its operator", other_arity     },
        {"a table ends behind its limit",                                    far_nodes       },
        {"a node's edges lie outside the table",                             far_edges       },
        {"a node reads a value that does not exist",                         far_operand     },
        {"an output names a value that does not exist",                      far_output      },
        {"a node and its output value disagree",                             wrong_slot      },
        {"a node's const flag is not that of its inputs",                    wrong_const     },
        {"a value's const flag is not that of its producer",                 const_input     },
        {"a value's shape is not the one inferred",                          wrong_shape     },
        {"a node's shapes do not infer",                                     no_shape        },
        {"a value and its producer disagree",                                orphan          },
        {"a value and its producer disagree",                                far_producer    },
        {"a value and its producer disagree",                                far_result      },
        {"a value and its producer disagree",                                freed_producer  },
        {"a node has another number of inputs or outputs than its operator", no_result       },
        {"a node has another number of inputs or outputs than its operator", lost_result     },
        {"the graph has a cycle",                                            cycle           },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        graft_graph *graph =
            build_text(env->life, "x = input 4; y = input 4; z = add x y; out z").graph;
        const size_t bytes = graft_order_bytes(&graph->limits);
        void *memory = graft_arena_alloc(env->life, bytes);
        assert_null(graft_graph_check(graph, memory, bytes));
        cases[i].damage(graph);
        assert_string_equal(graft_graph_check(graph, memory, bytes), cases[i].fault);
    }
}

/* ------------------------------------------------------------------- rules */

typedef struct {
    const char *fault;
    void (*damage)(graft_rule *rule);
} damaged_rule;

static void unknown_term(graft_rule *rule) { rule->source.nodes[1].attrs[0].kind = 9; }
static void unknown_node(graft_rule *rule) { rule->target.nodes[0].op = 0; }
static void many_nodes(graft_rule *rule) { rule->target.node_count = GRAFT_RULE_MAX_NODES + 1; }
static void no_outputs(graft_rule *rule) { rule->output_count = 0; }
static void many_vars(graft_rule *rule) { rule->var_count = GRAFT_RULE_MAX_VARS + 1; }
static void odd_operand(graft_rule *rule) { rule->target.nodes[0].inputs[0] = 0x80; }
static void far_condition(graft_rule *rule) { rule->condition = 1; }

static void many_outputs(graft_rule *rule) { rule->output_count = GRAFT_RULE_MAX_OUTPUTS + 1; }
static void far_operator(graft_rule *rule) { rule->source.nodes[1].op = 200; }
static void reads_itself(graft_rule *rule) { rule->target.nodes[0].inputs[0] = NODE(0, 0); }
static void second_output(graft_rule *rule) { rule->source.nodes[0].inputs[0] = NODE(1, 1); }

/* The second node reads what the first one gives. */
static void source_cycle(graft_rule *rule)
{
    rule->var_count = 2;
    rule->source.nodes[1].inputs[2] = NODE(0, 0);
    rule->target.nodes[0].inputs[2] = VAR(1);
}

static void far_slot(graft_rule *rule) { rule->source.nodes[1].attrs[0].value = rule->slot_count; }
static void negative_slot(graft_rule *rule) { rule->source.nodes[1].attrs[0].value = -1; }

static void set_code(graft_rule *rule, const uint8_t *code, size_t bytes)
{
    memcpy(rule->code, code, bytes);
    rule->code_bytes = (uint8_t)bytes;
}

static void code_in_source(graft_rule *rule)
{
    static const uint8_t code[] = {GRAFT_CODE_CONST8, 1, GRAFT_CODE_END};
    set_code(rule, code, sizeof code);
    rule->source.nodes[1].attrs[0] = (graft_term){0, GRAFT_TERM_CODE};
}

static void code_elsewhere(graft_rule *rule)
{
    code_in_source(rule);
    rule->source.nodes[1].attrs[0] = rule->target.nodes[0].attrs[0];
    rule->target.nodes[0].attrs[0] = (graft_term){1, GRAFT_TERM_CODE};
}

static void unknown_code(graft_rule *rule)
{
    static const uint8_t code[] = {GRAFT_CODE_COUNT, GRAFT_CODE_END};
    set_code(rule, code, sizeof code);
}

static void unknown_large_code(graft_rule *rule)
{
    static const uint8_t code[] = {200, GRAFT_CODE_END};
    set_code(rule, code, sizeof code);
}

static void same_as_nothing(graft_rule *rule)
{
    const uint8_t code[] = {GRAFT_CODE_SAME, rule->var_count, 0, GRAFT_CODE_END};
    set_code(rule, code, sizeof code);
}

static void nothing_as_same(graft_rule *rule)
{
    const uint8_t code[] = {GRAFT_CODE_SAME, 0, rule->var_count, GRAFT_CODE_END};
    set_code(rule, code, sizeof code);
}

static void output_twice(graft_rule *rule)
{
    rule->output_count = 2;
    rule->source.outputs[1] = rule->source.outputs[0];
    rule->target.outputs[1] = rule->target.outputs[0];
}

CHECK_CASE(test_damaged_rules)
{
    static const damaged_rule cases[] = {
        {"an attribute has an unknown kind",                           unknown_term      },
        {"a pattern node has an unknown operator",                     unknown_node      },
        {"a pattern has too many nodes",                               many_nodes        },
        {"a rule has no outputs, or too many",                         no_outputs        },
        {"a rule has too many variables or slots, or an empty source", many_vars         },
        {"an operand has an unknown form",                             odd_operand       },
        {"the precondition names byte code that is not there",         far_condition     },
        {"a source output is named twice",                             output_twice      },
        {"a rule has no outputs, or too many",                         many_outputs      },
        {"a target node reads a later one",                            reads_itself      },
        {"an operand names an output that its node does not have",     far_operator      },
        {"an operand names an output that its node does not have",     second_output     },
        {"the source has a cycle",                                     source_cycle      },
        {"an attribute names a slot that does not exist",              far_slot          },
        {"an attribute names a slot that does not exist",              negative_slot     },
        {"an attribute names byte code that is not there",             code_in_source    },
        {"an attribute names byte code that is not there",             code_elsewhere    },
        {"byte code is unknown or cut off",                            unknown_code      },
        {"byte code is unknown or cut off",                            unknown_large_code},
        {"byte code names a slot or variable that does not exist",     same_as_nothing   },
        {"byte code names a slot or variable that does not exist",     nothing_as_same   },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        graft_rule rule = rows_parse(env, RULE_FUSE_RELU);
        uint8_t bytes[8];
        assert_null(graft_rule_check(&rule));
        cases[i].damage(&rule);
        assert_string_equal(graft_rule_check(&rule), cases[i].fault);
        assert_int_equal(graft_rule_pack(&rule, bytes, sizeof bytes), 0);
    }
}

static size_t push_number(uint8_t *code, int32_t number)
{
    code[0] = GRAFT_CODE_CONST32;
    memcpy(code + 1, &number, sizeof number); /* Both are little-endian. */
    return 1 + sizeof number;
}

/* (a b + c) by (d e), as the compiler divides: numbers of 32 bits and larger ones. */
static void check_quotients(const int32_t *numbers, uint8_t how)
{
    uint8_t code[64];
    size_t size = push_number(code, numbers[0]);
    size += push_number(code + size, numbers[1]);
    code[size++] = GRAFT_CODE_MUL;
    size += push_number(code + size, numbers[2]);
    code[size++] = GRAFT_CODE_ADD;
    size += push_number(code + size, numbers[3]);
    size += push_number(code + size, numbers[4]);
    code[size++] = GRAFT_CODE_MUL;
    code[size++] = how;
    code[size++] = GRAFT_CODE_END;
    graft_rule rule;
    int64_t result = -1;
    memset(&rule, 0, sizeof rule);
    set_code(&rule, code, size);
    const int64_t a = (int64_t)numbers[0] * numbers[1] + numbers[2];
    const int64_t b = (int64_t)numbers[3] * numbers[4];
    const bool divides = b != 0 && a % b == 0;
    const bool runs = how == GRAFT_CODE_DIV ? divides : how != GRAFT_CODE_MOD || (a >= 0 && b > 0);
    assert_int_equal(graft_code_run(&rule, 0, NULL, NULL, NULL, &result), runs);
    if (runs) {
        assert_int_equal(result, how == GRAFT_CODE_DIV   ? a / b
                                 : how == GRAFT_CODE_MOD ? a % b
                                                         : a != 0 && b % a == 0);
    }
}

CHECK_CASE(test_quotients)
{
    static const uint8_t hows[] = {GRAFT_CODE_DIV, GRAFT_CODE_MOD, GRAFT_CODE_DIVIDES};
    graft_rng rng = check_rng(5);
    for (uint32_t i = 0; i < 60000; i++) {
        int32_t numbers[5];
        for (uint32_t k = 0; k < 5; k++) {
            const uint32_t drawn = graft_rng_below(&rng, UINT32_MAX) >> graft_rng_below(&rng, 32);
            numbers[k] = (int32_t)(drawn & INT32_MAX) - (int32_t)graft_rng_below(&rng, 3);
        }
        numbers[3] = i % 3 == 0 ? numbers[0] : numbers[3]; /* It may divide. */
        numbers[2] = i % 3 == 0 ? 0 : numbers[2];
        numbers[4] = i % 6 == 0 ? 1 : numbers[4];
        check_quotients(numbers, hows[i % 7 % 3]);
    }
}

CHECK_CASE(test_bytes_of_elements)
{
    static const struct {
        uint8_t dtype;
        uint64_t bytes;
    } cases[] = {
        {GRAFT_DTYPE_I8,      3 },
        {GRAFT_DTYPE_F16,     6 },
        {GRAFT_DTYPE_BF16,    6 },
        {GRAFT_DTYPE_I32,     12},
        {GRAFT_DTYPE_F64,     24},
        {GRAFT_DTYPE_UNKNOWN, 0 }
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const graft_shape shape = {.dims = {3}, .rank = 1, .dtype = cases[i].dtype};
        assert_true(graft_shape_bytes(&shape) == cases[i].bytes);
    }
    const graft_shape none = {
        {INT32_MAX, INT32_MAX, 0},
        3, GRAFT_DTYPE_F32
    };
    assert_int_equal(graft_shape_elements(&none), 0);
    assert_true(graft_dtype_is_real(GRAFT_DTYPE_F16) && graft_dtype_is_real(GRAFT_DTYPE_BF16));
    assert_true(graft_dtype_is_real(GRAFT_DTYPE_F32) && !graft_dtype_is_real(GRAFT_DTYPE_I32));
}

/* Rewrites that ordinary graphs and proved rules hardly have: nodes that die with a missing
 * operand, outputs that are variables, splits that take over one class or two. What a match is
 * estimated to change is what the graph costs afterwards, and the graph stays sound. Most of these
 * rules are false, which is nothing to the engine. */
#include "tests/support/build.h"
#include "tests/support/rows.h"

#include <string.h>

static graft_index opaque(graft_graph *graph, graft_index a, graft_index b, uint16_t outputs)
{
    const graft_index inputs[2] = {a, b};
    const graft_shape shapes[3] = {SHAPE(4), SHAPE(4), SHAPE(4)};
    graft_index node = GRAFT_NONE;
    CHECK_OK(graft_graph_add_opaque(graph, 7, inputs, 2, shapes, outputs, &node));
    return outputs > 0 ? graft_node_output(graph, node, 0) : GRAFT_NONE;
}

static void give(graft_graph *graph, graft_index value)
{
    CHECK_OK(graft_graph_add_output(graph, value));
}

/* -------------------------------------------------------------------- cases */

/* y is of an opaque node that lacks an operand and dies. */
static void forget_operand(graft_graph *graph)
{
    const graft_index x = build_input(graph, SHAPE(4), 0);
    const graft_index y = opaque(graph, x, GRAFT_NONE, 3);
    give(graph, build_node(graph, GRAFT_OP_add, NULL, x, y, 0));
}

static void give_variable(graft_graph *graph)
{
    const graft_index x = build_input(graph, SHAPE(4), 0);
    give(graph, build_node(graph, GRAFT_OP_relu, NULL, x, 0, 0));
    give(graph, build_node(graph, GRAFT_OP_exp, NULL,
                           build_node(graph, GRAFT_OP_sigmoid, NULL, x, 0, 0), 0, 0));
}

/* An output takes over a value that was a first output, while a node that reads that value is no
 * equal of the relu. */
static void take_other_slot(graft_graph *graph)
{
    static const int32_t slice[] = {0, 1, 4};
    const graft_index x = build_input(graph, SHAPE(4), 0);
    const graft_index y = build_input(graph, SHAPE(1), 1);
    const graft_index rest = build_node(graph, GRAFT_OP_slice, slice, x, 0, 0);
    give(graph, build_node(graph, GRAFT_OP_relu, NULL, rest, 0, 0));
    give(graph, build_node(graph, GRAFT_OP_tanh, NULL, y, 0, 0));
}

/* A node takes over two classes, or one. */
static void join_splits(graft_graph *graph, uint32_t splits)
{
    static const int32_t attrs[] = {0, 2};
    graft_index nodes[2];
    for (uint32_t n = 0; n < splits; n++) {
        const graft_index x = build_input(graph, SHAPE(4), n);
        CHECK_OK(graft_graph_add_node(graph, GRAFT_OP_split, attrs, &x, n, &nodes[n]));
    }
    const graft_index first = graft_node_output(graph, nodes[0], 0);
    const graft_index second = graft_node_output(graph, nodes[splits - 1], 1);
    give(graph, build_node(graph, GRAFT_OP_relu, NULL, first, 0, 0));
    give(graph, build_node(graph, GRAFT_OP_add, NULL, first, second, 0));
}

static void join_two(graft_graph *graph) { join_splits(graph, 2); }
static void keep_one(graft_graph *graph) { join_splits(graph, 1); }

/* An opaque node that lacks an operand lies before the tanh: looking for a cycle passes it. */
static void pass_missing(graft_graph *graph)
{
    const graft_index x = build_input(graph, SHAPE(4), 0);
    give(graph, build_node(graph, GRAFT_OP_relu, NULL, x, 0, 0));
    give(graph, build_node(graph, GRAFT_OP_tanh, NULL, opaque(graph, GRAFT_NONE, x, 1), 0, 0));
}

/* What is made is const: so is what reads it from then on. */
static void become_const(graft_graph *graph)
{
    const graft_index x = build_input(graph, SHAPE(4), 0);
    const graft_index w = build_weight(graph, SHAPE(4), 1);
    const graft_index y = build_node(graph, GRAFT_OP_add, NULL, x, w, 0);
    const graft_index z = build_node(graph, GRAFT_OP_tanh, NULL, y, 0, 0);
    give(graph, build_node(graph, GRAFT_OP_exp, NULL, z, 0, 0));
    give(graph, build_node(graph, GRAFT_OP_max, NULL, z, x, 0));
    give(graph, opaque(graph, z, GRAFT_NONE, 1));
}

static void make_idle(graft_graph *graph)
{
    const graft_index x = build_input(graph, SHAPE(4), 0);
    const graft_index y = build_node(graph, GRAFT_OP_sigmoid, NULL, x, 0, 0);
    const graft_index z = build_node(graph, GRAFT_OP_relu, NULL, y, 0, 0);
    give(graph, build_node(graph, GRAFT_OP_relu, NULL, z, 0, 0));
}

typedef struct {
    const char *name;
    const char *rule;
    void (*build)(graft_graph *graph);
    bool is_always; /* It leaves fewer nodes. */
    bool is_idle;   /* Its target has an exponential that nothing reads. */
} corner;

/* clang-format off */
static const corner corners[] = {
    {"forget operand", "add(a, b) = relu(a)", forget_operand, false, false},
    {"give variable", "[relu(a), sigmoid(b)] = [tanh(a), b]", give_variable, true, false},
    {"take other slot",
     "[slice(a, axis=0, start=1, end=4), tanh(b)] = "
     "[split(a, axis=0, at=1).1, relu(split(a, axis=0, at=1).0)]", take_other_slot, false, false},
    {"join two",
     "[split(a, axis=0, at=2).0, split(b, axis=0, at=2).1] = "
     "[split(a, axis=0, at=2).0, split(a, axis=0, at=2).1]", join_two, true, false},
    {"keep one",
     "[split(a, axis=0, at=2).0, split(a, axis=0, at=2).1] = "
     "[split(a, axis=0, at=2).0, split(a, axis=0, at=2).1]", keep_one, false, false},
    {"pass missing", "[relu(a), tanh(b)] = [tanh(a), relu(b)]", pass_missing, false, false},
    {"become const", "add(a, b) = relu(b)", become_const, false, false},
    {"make idle", "relu(relu(a)) = a", make_idle, true, true},
};
/* clang-format on */
enum { BECOME_CONST = 6 };

static graft_rule corner_rule(graft_env *env, const corner *c)
{
    graft_rule rule = rows_parse(env, c->rule);
    if (c->is_idle) {
        build_pattern_node(&rule.target, GRAFT_OP_exp, VAR(0), 0, 0, -1);
    }
    return rule;
}

/* ----------------------------------------------------------------- estimates */

/* Every cost is a guess: that of the size. */
static const uint8_t tests[GRAFT_TREE_TESTS];
static const int16_t bounds[GRAFT_TREE_TESTS];
static const int16_t leaves[GRAFT_TREE_LEAVES];
static const graft_tariff by_size = {
    .tests = tests, .bounds = bounds, .leaves = leaves, .tree_count = 1, .still = 1};

typedef struct {
    graft_order order;
    graft_estimator estimator;
    void *scratch;
} view;

static void open_view(graft_env *env, const graft_graph *graph, view *v)
{
    v->scratch = build_scratch(env->life, graph);
    v->estimator = build_estimator(env->life, &by_size, &graph->limits);
}

static graft_estimated estimate(graft_env *env, const graft_graph *graph, view *v)
{
    graft_estimated estimated;
    v->order = build_order(env->life, graph);
    CHECK_OK(graft_estimate(&v->estimator, graph, &v->order, &estimated));
    return estimated;
}

CHECK_CASE(test_estimates_come_true)
{
    static const graft_apply_options options = {UINT64_MAX};
    for (size_t i = 0; i < sizeof corners / sizeof corners[0]; i++) {
        view v;
        graft_made made;
        graft_change change;
        graft_graph *graph = build_graph(env->life);
        const graft_rule rule = corner_rule(env, &corners[i]);
        corners[i].build(graph);
        print_message("# %s\n", corners[i].name);
        assert_null(graft_rule_check(&rule));
        open_view(env, graph, &v);
        const graft_estimated before = estimate(env, graph, &v);
        const graft_match match = build_match(graph, &rule, &v.order);
        CHECK_OK(graft_match_plan(graph, &rule, &match, &v.order, &options, v.scratch, &made));
        graft_estimate_match(&v.estimator, &rule, &match, &made, &change);
        CHECK_OK(graft_apply(graph, &rule, &match, &v.order, &options, v.scratch, NULL));
        build_check(env->life, graph);
        const graft_estimated after = estimate(env, graph, &v);
        assert_int_equal(change.cost, (int64_t)(after.cost - before.cost));
        assert_int_equal(change.added.flops - change.removed.flops, after.flops - before.flops);
        assert_int_equal(change.added.bytes - change.removed.bytes, after.bytes - before.bytes);
        assert_int_equal(change.added.nodes - change.removed.nodes, after.nodes - before.nodes);
    }
}

/* A match that needs more new weights than allowed has no plan, and what was there stays. */
CHECK_CASE(test_plan_refused)
{
    static const graft_apply_options none = {0};
    view v;
    graft_made made;
    graft_graph *graph = build_graph(env->life);
    const graft_rule rule = corner_rule(env, &corners[BECOME_CONST]);
    become_const(graph);
    memset(&made, 0x5a, sizeof made);
    const graft_made untouched = made;
    open_view(env, graph, &v);
    (void)estimate(env, graph, &v);
    const graft_match match = build_match(graph, &rule, &v.order);
    assert_int_equal(graft_match_plan(graph, &rule, &match, &v.order, &none, v.scratch, &made),
                     GRAFT_NO_MATCH);
    assert_memory_equal(&made, &untouched, sizeof made);
    assert_int_equal(graft_apply(graph, &rule, &match, &v.order, &none, v.scratch, NULL),
                     GRAFT_NO_MATCH);
    build_check(env->life, graph);
}

/* ---------------------------------------------------------------------- tags */

/* What simplifying makes has the tag of what it takes over, also when an output is a variable or a
 * node that was made is gone again. */
CHECK_CASE(test_tags)
{
    for (size_t i = 0; i < sizeof corners / sizeof corners[0]; i++) {
        uint8_t bytes[256];
        const uint8_t flags = GRAFT_RULE_ALWAYS;
        uint32_t tags[64];
        graft_decision decision;
        graft_report report = {.decisions = &decision, .decision_limit = 1};
        graft_graph *graph = build_graph(env->life);
        const graft_rule rule = corner_rule(env, &corners[i]);
        corners[i].build(graph);
        const uint32_t offsets[2] = {0, (uint32_t)graft_rule_pack(&rule, bytes, sizeof bytes)};
        const graft_policy policy = {.abi = GRAFT_ABI,
                                     .feature_hash = GRAFT_FEATURE_HASH,
                                     .rules = bytes,
                                     .rule_offsets = offsets,
                                     .rule_flags = &flags,
                                     .rule_count = 1,
                                     .location_limit = 8,
                                     .tariff = &by_size,
                                     .decider = GRAFT_DECIDER_TARIFF};
        graft_optimize_options options = graft_optimize_options_default();
        const size_t room = graft_optimize_workspace_bytes(&policy, &graph->limits, 0);
        options.node_tags = tags;
        options.weight_bytes_limit = UINT64_MAX;
        for (uint32_t n = 0; n < 64; n++) {
            tags[n] = n < graph->node_end ? 100 + n : 0;
        }
        CHECK_OK(graft_simplify(graph, &policy, &options, graft_arena_alloc(env->life, room), room,
                                &report));
        print_message("# %s: %u steps\n", corners[i].name, report.step_count);
        assert_int_equal(report.step_count > 0, corners[i].is_always);
        build_check(env->life, graph);
        for (graft_index n = 0; n < graph->node_end; n++) {
            assert_true(graph->nodes[n].op == GRAFT_OP_NONE || tags[n] >= 100);
        }
    }
}

/* ----------------------------------------------------------------- capacity */

/* A graph that lacks room of one kind refuses a node; one of opaque nodes without edges closes
 * gaps. */
CHECK_CASE(test_room)
{
    static const graft_limits limits[] = {
        {1, 9, 9, 1},
        {9, 2, 9, 1},
        {9, 9, 3, 1},
    };
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        graft_graph *graph = build_graph_within(env->life, limits[i]);
        graft_graph *copy = build_graph(env->life);
        const graft_index x = build_input(graph, SHAPE(4), 0);
        const graft_index y = build_node(graph, GRAFT_OP_relu, NULL, x, 0, 0);
        graft_index node = GRAFT_NONE;
        assert_int_equal(graft_graph_add_node(graph, GRAFT_OP_relu, NULL, &y, GRAFT_NONE, &node),
                         GRAFT_CAPACITY);
        give(graph, y);
        assert_int_equal(graft_graph_add_output(graph, y), GRAFT_CAPACITY);
        CHECK_OK(graft_graph_copy(copy, graph));
        build_check(env->life, graph);
    }
    graft_graph *graph = build_graph_within(env->life, (graft_limits){4, 9, 6, 2});
    const graft_index x = build_input(graph, SHAPE(4), 0);
    graft_index idle = GRAFT_NONE;
    CHECK_OK(graft_graph_add_opaque(graph, 0, NULL, 0, NULL, 0, &idle));
    graft_index y = build_node(graph, GRAFT_OP_relu, NULL, x, 0, 0);
    graft_index z = build_node(graph, GRAFT_OP_tanh, NULL, x, 0, 0);
    give(graph, z);
    graft_graph_redirect(graph, y, x); /* The relu dies, and its edges lie before others. */
    graft_graph_remove_dead(graph);
    assert_int_equal(graft_graph_node_count(graph), 1);
    CHECK_OK(graft_graph_add_opaque(graph, 0, NULL, 0, NULL, 0, &idle));
    y = build_node(graph, GRAFT_OP_exp, NULL, z, 0, 0);
    z = build_node(graph, GRAFT_OP_exp, NULL, y, 0, 0);
    give(graph, z);
    build_check(env->life, graph);
}

CHECK_CASE(test_copies_that_do_not_fit)
{
    graft_graph *graph = build_graph(env->life);
    const graft_index x = build_input(graph, SHAPE(4), 0);
    give(graph, build_node(graph, GRAFT_OP_relu, NULL, x, 0, 0));
    static const graft_limits limits[] = {
        {0, 9, 9, 9},
        {9, 1, 9, 9},
        {9, 9, 1, 9},
        {9, 9, 9, 0},
    };
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        graft_graph *copy = build_graph_within(env->life, limits[i]);
        assert_int_equal(graft_graph_copy(copy, graph), GRAFT_CAPACITY);
        assert_int_equal(copy->value_end, 0);
    }
}

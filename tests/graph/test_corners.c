/* Rewrites that ordinary graphs and proved rules hardly have: nodes that die with a missing
 * operand, outputs that are variables, splits that take over one class or two. What a match is
 * estimated to change is what the graph costs afterwards, and the graph stays sound. Most of these
 * rules are false, which is nothing to the engine. */
#include "tests/support/build.h"
#include "tests/support/rows.h"

#include <string.h>

/* -------------------------------------------------------------------- cases */

typedef struct {
    const char *name;
    const char *rule;
    const char *graph;
    bool is_always; /* It leaves fewer nodes. */
    bool is_idle;   /* Its target has an exponential that nothing reads. */
} corner;

/* clang-format off */
static const corner corners[] = {
    /* The opaque node dies. */
    {"forget operand", "add(a, b) = relu(a)", "x = input 4; o p q = opaque x _; y = add x o; out y", false, false},
    {"give variable", "[relu(a), sigmoid(b)] = [tanh(a), b]",
     "x = input 4; y = relu x; z = sigmoid x; z = exp z; out y z", true, false},
    /* An output takes over a value that was a first output, while a node that reads that value is no equal of the
     * relu. */
    {"take other slot", "[slice(a, axis=0, start=1, end=4), tanh(b)] = "
     "[split(a, axis=0, at=1).1, relu(split(a, axis=0, at=1).0)]",
     "x = input 4; y = input 1; r = slice x : 0 1 4; r = relu r; t = tanh y; out r t", false, false},
    /* A node takes over two classes, or one. */
    {"join two", "[split(a, axis=0, at=2).0, split(b, axis=0, at=2).1] = "
     "[split(a, axis=0, at=2).0, split(a, axis=0, at=2).1]",
     "x = input 4; f g = split x : 0 2; y = input 4; h s = split y : 0 2; r = relu f; t = add f s; out r t", true, false},
    {"keep one", "[split(a, axis=0, at=2).0, split(a, axis=0, at=2).1] = "
     "[split(a, axis=0, at=2).0, split(a, axis=0, at=2).1]",
     "x = input 4; f s = split x : 0 2; r = relu f; t = add f s; out r t", false, false},
    /* The opaque node lies before the tanh: looking for a cycle passes it. */
    {"pass missing", "[relu(a), tanh(b)] = [tanh(a), relu(b)]",
     "x = input 4; y = relu x; o = opaque _ x; z = tanh o; out y z", false, false},
    /* What is made is const: so is what reads it from then on. */
    {"become const", "add(a, b) = relu(b)",
     "x = input 4; w = weight 4; y = add x w; z = tanh y; e = exp z; m = max z x; o = opaque z _; out e m o", false, false},
    {"make idle", "relu(relu(a)) = a", "x = input 4; y = sigmoid x; z = relu y; z = relu z; out z", true, true},
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
        graft_graph *graph = build_text(env->life, "%s", corners[i].graph).graph;
        const graft_rule rule = corner_rule(env, &corners[i]);
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
    graft_graph *graph = build_text(env->life, "%s", corners[BECOME_CONST].graph).graph;
    const graft_rule rule = corner_rule(env, &corners[BECOME_CONST]);
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
        graft_graph *graph = build_text(env->life, "%s", corners[i].graph).graph;
        const graft_rule rule = corner_rule(env, &corners[i]);
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
        built b = {.graph = graph};
        graft_index node = GRAFT_NONE;
        build_more(&b, "x = input 4; y = relu x; out y");
        assert_int_equal(
            graft_graph_add_node(graph, GRAFT_OP_relu, NULL, &b.at['y'], GRAFT_NONE, &node),
            GRAFT_CAPACITY);
        assert_int_equal(graft_graph_add_output(graph, b.at['y']), GRAFT_CAPACITY);
        CHECK_OK(graft_graph_copy(copy, graph));
        build_check(env->life, graph);
    }
    built b = {.graph = build_graph_within(env->life, (graft_limits){4, 9, 6, 2})};
    graft_index idle = GRAFT_NONE;
    build_more(&b, "x = input 4");
    CHECK_OK(graft_graph_add_opaque(b.graph, 0, NULL, 0, NULL, 0, &idle));
    build_more(&b, "y = relu x; z = tanh x; out z");
    graft_graph_redirect(b.graph, b.at['y'], b.at['x']); /* The relu dies, before others' edges. */
    graft_graph_remove_dead(b.graph);
    assert_int_equal(graft_graph_node_count(b.graph), 1);
    CHECK_OK(graft_graph_add_opaque(b.graph, 0, NULL, 0, NULL, 0, &idle));
    build_more(&b, "y = exp z; z = exp y; out z");
    build_check(env->life, b.graph);
}

CHECK_CASE(test_copies_that_do_not_fit)
{
    const graft_graph *graph = build_text(env->life, "x = input 4; y = relu x; out y").graph;
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

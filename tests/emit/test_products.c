/* What products ask of the loop beside decisions: the same in slices and with more memory, rules
 * that are not used, tags that survive, every step told. By the committed policy, on models of the
 * zoo. */
#include "graph/rule/policyfile.h"
#include "models/zoo.h"
#include "tests/support/check.h"

#include <string.h>

enum { STEPS = 200 };

typedef struct {
    graft_graph *graph;
    graft_report report;
    graft_decision decisions[STEPS];
    size_t bytes;
    void *workspace;
} run;

static const graft_optimize_options bare = {.weight_bytes_limit = UINT64_MAX, .step_limit = STEPS};

static graft_policy read_policy(graft_env *env, const char *const **names)
{
    graft_policy policy;
    CHECK_OK(graft_policyfile_read(env, env->life, "rules/policies/intel-xeon-6-167-avx512.graft",
                                   &policy, names));
    return policy;
}

static run *prepare(graft_env *env, const graft_policy *policy, const char *name, bool most)
{
    run *r = GRAFT_NEW(env->life, run, 1);
    graft_model *model = NULL;
    CHECK_OK(graft_model_open(env, env->life, name, NULL, &model));
    r->graph = graft_model_graph_copy(env->life, &model->graph);
    r->report = (graft_report){.decisions = r->decisions, .decision_limit = STEPS};
    r->bytes = most ? graft_optimize_workspace_most_bytes(policy, &r->graph->limits, STEPS)
                    : graft_optimize_workspace_bytes(policy, &r->graph->limits, STEPS);
    r->workspace = graft_arena_alloc(env->life, r->bytes);
    memset(r->workspace, 0xa5, r->bytes); /* Nothing may rest on zeros. */
    return r;
}

static run *optimize(graft_env *env, const graft_policy *policy, const char *name,
                     const graft_optimize_options *options, bool most)
{
    run *r = prepare(env, policy, name, most);
    CHECK_OK(graft_optimize(r->graph, policy, options, r->workspace, r->bytes, &r->report));
    return r;
}

static void assert_same(const run *a, const run *b)
{
    assert_int_equal(a->report.step_count, b->report.step_count);
    assert_int_equal(a->report.stop, b->report.stop);
    assert_true(a->report.hash_after == b->report.hash_after);
    assert_true(a->report.estimated_after.cost == b->report.estimated_after.cost);
    assert_memory_equal(a->decisions, b->decisions, a->report.step_count * sizeof(a->decisions[0]));
}

/* Recurrent nets too, where rules have several roots. */
CHECK_CASE(test_keeps_and_decides_alike)
{
    static const char *const names[] = {"dscnn", "resnet8", "squeezenet", "nasrnn"};
    const graft_policy policy = read_policy(env, NULL);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const run *all = optimize(env, &policy, names[i], &bare, false);
        assert_true(all->report.step_count > 10);
        assert_same(optimize(env, &policy, names[i], &bare, true), all);
    }
}

/* A limit on locations ends scans early: what was not looked at is not kept. */
CHECK_CASE(test_keeps_under_a_limit)
{
    graft_policy policy = read_policy(env, NULL);
    for (uint16_t limit = 1; limit < 4; limit++) {
        policy.location_limit = limit;
        assert_same(optimize(env, &policy, "resnet8", &bare, true),
                    optimize(env, &policy, "resnet8", &bare, false));
    }
}

static bool is_untouched(const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != 0xa5) {
            return false;
        }
    }
    return true;
}

/* Every size that is too small is refused and not written to, and the graph stays as it was; what
 * suffices is enough at any alignment. */
CHECK_CASE(test_workspaces)
{
    enum { GUARD = 64 };
    const graft_policy policy = read_policy(env, NULL);
    const run *expected = optimize(env, &policy, "dscnn", &bare, false);
    run *r = prepare(env, &policy, "dscnn", false);
    uint8_t *memory = graft_arena_alloc(env->life, r->bytes + 2 * GUARD);
    memset(memory, 0xa5, r->bytes + 2 * GUARD);
    for (size_t bytes = 0; bytes < r->bytes; bytes++) {
        assert_int_equal(
            graft_optimize(r->graph, &policy, &bare, memory + GUARD, bytes, &r->report),
            GRAFT_NO_MEMORY);
    }
    assert_true(is_untouched(memory, r->bytes + 2 * GUARD));
    assert_int_equal(graft_optimize(r->graph, &policy, &bare, NULL, r->bytes, &r->report),
                     GRAFT_NO_MEMORY);
    for (size_t i = 0; i < 8; i++) {
        memset(memory, 0xa5, r->bytes + 2 * GUARD);
        CHECK_OK(
            graft_optimize(r->graph, &policy, &bare, memory + GUARD + i, r->bytes, &r->report));
        assert_true(is_untouched(memory, GUARD + i));
        assert_true(is_untouched(memory + GUARD + i + r->bytes, GUARD - i));
        assert_same(r, expected);
        r = prepare(env, &policy, "dscnn", false);
    }
}

CHECK_CASE(test_slices)
{
    const graft_policy policy = read_policy(env, NULL);
    graft_optimize_options guarded = bare;
    guarded.simplify = true;
    guarded.guard = true;
    const run *whole = optimize(env, &policy, "dscnn", &guarded, false);
    static const uint32_t limits[] = {1, 100, 5000};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        run *r = prepare(env, &policy, "dscnn", i == 1);
        uint32_t calls = 0;
        bool finished = false;
        CHECK_OK(
            graft_optimize_begin(r->graph, &policy, &guarded, r->workspace, r->bytes, &r->report));
        for (; !finished; calls++) {
            CHECK_OK(graft_optimize_some(r->workspace, limits[i], &finished));
        }
        print_message("# at most %u candidates: %u calls\n", limits[i], calls);
        assert_true(calls > 1 && (i > 0 || calls > 5000));
        assert_same(r, whole);
        CHECK_OK(graft_optimize_some(r->workspace, 1, &finished));
        assert_true(finished);
        assert_same(r, whole);
    }
}

CHECK_CASE(test_skipped_rules)
{
    const graft_policy policy = read_policy(env, NULL);
    const run *all = optimize(env, &policy, "dscnn", &bare, false);
    uint8_t *skipped = GRAFT_NEW(env->life, uint8_t, (policy.rule_count + 7U) / 8);
    uint8_t operators[32];
    graft_optimize_options options = bare;
    graft_rule rule;
    options.skipped_rules = skipped;
    const uint32_t first = all->decisions[0].rule;
    skipped[first / 8] = (uint8_t)(1U << first % 8);
    const run *without = optimize(env, &policy, "dscnn", &options, true);
    assert_true(without->report.step_count > 0);
    for (uint32_t i = 0; i < without->report.step_count; i++) {
        assert_int_not_equal(without->decisions[i].rule, first);
    }
    memset(operators, 0xff, sizeof operators);
    operators[GRAFT_OP_conv_bias / 8] &= (uint8_t) ~(1U << GRAFT_OP_conv_bias % 8);
    CHECK_OK(graft_policy_skip_unrunnable(&policy, operators, skipped));
    const run *unfused = optimize(env, &policy, "dscnn", &options, true);
    for (uint32_t i = 0; i < unfused->report.step_count; i++) {
        CHECK_OK(graft_policy_rule(&policy, unfused->decisions[i].rule, &rule));
        for (uint32_t n = 0; n < rule.target.node_count; n++) {
            assert_int_not_equal(rule.target.nodes[n].op, GRAFT_OP_conv_bias);
        }
    }
    assert_int_equal(graft_policy_rule(&policy, policy.rule_count, &rule), GRAFT_BAD_INPUT);
}

CHECK_CASE(test_exact_only)
{
    graft_policy policy = read_policy(env, NULL);
    graft_optimize_options options = bare;
    uint8_t *flags = GRAFT_NEW(env->life, uint8_t, policy.rule_count);
    const run *all = optimize(env, &policy, "dscnn", &bare, false);
    policy.rule_flags = flags;
    options.exact = true;
    assert_int_equal(optimize(env, &policy, "dscnn", &options, false)->report.step_count, 0);
    flags[all->decisions[0].rule] = GRAFT_RULE_EXACT;
    const run *one = optimize(env, &policy, "dscnn", &options, false);
    assert_true(one->report.step_count > 0);
    for (uint32_t i = 0; i < one->report.step_count; i++) {
        assert_int_equal(one->decisions[i].rule, all->decisions[0].rule);
    }
}

/* What the observer was told. */
typedef struct {
    uint32_t count;
    graft_decision decisions[STEPS];
} told;

static void note(void *context, const graft_graph *graph, const graft_decision *decision)
{
    told *t = context;
    assert_non_null(graph);
    t->decisions[t->count++] = *decision;
}

CHECK_CASE(test_observed_and_tagged)
{
    const graft_policy policy = read_policy(env, NULL);
    graft_optimize_options options = bare;
    told *t = GRAFT_NEW(env->life, told, 1);
    run *r = prepare(env, &policy, "dscnn", true);
    uint32_t *tags = GRAFT_NEW(env->life, uint32_t, r->graph->limits.nodes);
    /* One number for each of the nine convolutions and what follows it. */
    uint32_t layer = 0;
    for (graft_index n = 0; n < r->graph->node_end; n++) {
        layer += r->graph->nodes[n].op == GRAFT_OP_conv_bias;
        tags[n] = layer;
    }
    options.node_tags = tags;
    options.observe = note;
    options.observe_context = t;
    assert_int_equal(layer, 9);
    CHECK_OK(graft_optimize(r->graph, &policy, &options, r->workspace, r->bytes, &r->report));
    assert_int_equal(t->count, r->report.step_count);
    assert_memory_equal(t->decisions, r->decisions, t->count * sizeof(t->decisions[0]));
    assert_true(t->decisions[0].cost_change < 0);
    layer = 0;
    for (graft_index v = r->graph->outputs[0], n = r->graph->values[v].node; n != GRAFT_NONE;) {
        const graft_index from = graft_node_input(r->graph, n, 0);
        if (r->graph->nodes[n].op == GRAFT_OP_conv_bias) {
            assert_int_equal(tags[n], 9 - layer++);
        }
        assert_true(tags[n] >= 1 && tags[n] <= 9);
        n = r->graph->values[from].is_const
                ? r->graph->values[graft_node_input(r->graph, n, 1)].node
                : r->graph->values[from].node;
    }
    assert_int_equal(layer, 9);
}

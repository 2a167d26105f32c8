/* The loop that optimises a graph: what it may do, where it stops, and what it leaves untouched. */
#include "emit/header/graphtable.h"
#include "tests/support/policy.h"
#include "tests/support/rows.h"

#include <string.h>

typedef policy_run run;

/* Whatever it costs. */
static graft_optimize_options bare(uint32_t step_limit)
{
    return (graft_optimize_options){
        .weight_bytes_limit = UINT64_MAX, .step_limit = step_limit, .first_cost = UINT64_MAX};
}

static run *optimize(graft_env *env, graft_graph *graph, const graft_policy *policy,
                     graft_optimize_options options)
{
    return policy_kit_optimize(env, graph, policy, &options);
}

static policy_kit *open_favourite(graft_env *env, uint32_t favourite)
{
    policy_kit_options options = policy_kit_plain;
    options.favourite = favourite;
    return policy_kit_open(env, &options);
}

/* ----------------------------------------------------------------- deciding */

/* Every decision is redone with the matches of the training side. */
CHECK_CASE(test_decisions_are_locations)
{
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    const run *r = optimize(env, policy_kit_copy(env, kit), &kit->policy, bare(30));
    const graft_apply_options apply = {UINT64_MAX};
    graft_state redo;
    graft_matches matches;
    CHECK_OK(r->status);
    assert_int_equal(r->report.step_count, 30);
    assert_int_equal(r->report.stop, GRAFT_STOP_STEP_LIMIT);
    build_check(env->life, r->graph);
    graft_state_open(env->life, &kit->graph->limits, &redo);
    graft_matches_open(env->life, &kit->xfers, kit->policy.location_limit, &matches);
    CHECK_OK(graft_state_set(env, &redo, kit->graph));
    assert_int_equal(graft_state_hash(&redo), r->report.hash_before);
    for (uint32_t s = 0; s < r->report.step_count; s++) {
        const graft_decision *d = &r->decisions[s];
        graft_matches_find(&matches, &redo, &apply);
        assert_int_equal(graft_matches_count(&matches, d->rule), d->location_count);
        assert_true(d->location < d->location_count);
        const graft_match *match = graft_matches_get(&matches, d->rule, d->location);
        assert_int_equal(d->node_count, kit->rules[d->rule].source.node_count);
        assert_memory_equal(d->nodes, match->nodes, d->node_count * sizeof d->nodes[0]);
        CHECK_OK(graft_state_apply(env, &redo, &kit->rules[d->rule], match, &apply));
    }
    assert_int_equal(graft_state_hash(&redo), r->report.hash_after);
    assert_int_equal(graft_graph_active_count(r->graph), r->report.active_after);
}

/* Other capacities, an odd address and an old workspace change nothing. */
CHECK_CASE(test_same_decisions_everywhere)
{
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    const graft_optimize_options options = bare(25);
    const run *first = optimize(env, policy_kit_copy(env, kit), &kit->policy, options);
    graft_limits limits = {401, 1003, 2007, 5};
    graft_graph *graph = build_graph_within(env->life, limits);
    CHECK_OK(graft_graph_copy(graph, kit->graph));
    size_t bytes = graft_optimize_workspace_bytes(&kit->policy, &limits, options.step_limit);
    uint8_t *workspace = graft_arena_alloc(env->life, bytes + 3);
    memset(workspace, 0xa5, bytes + 3);
    graft_decision decisions[25];
    graft_report report = {.decisions = decisions, .decision_limit = 25};
    CHECK_OK(graft_optimize(graph, &kit->policy, &options, workspace + 3, bytes, &report));
    assert_int_equal(report.step_count, first->report.step_count);
    assert_int_equal(report.hash_after, first->report.hash_after);
    assert_memory_equal(decisions, first->decisions, sizeof decisions);
}

/* One rewrite at a time is the same as all at once. */
CHECK_CASE(test_steps_add_up)
{
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    const graft_optimize_options options = bare(12);
    const run *r = optimize(env, policy_kit_copy(env, kit), &kit->policy, options);
    graft_graph *graph = policy_kit_copy(env, kit);
    size_t bytes = graft_optimize_workspace_bytes(&kit->policy, &graph->limits, 0);
    void *workspace = graft_arena_alloc(env->life, bytes);
    for (uint32_t s = 0; s < 12; s++) {
        graft_decision decision;
        CHECK_OK(graft_policy_step(graph, &kit->policy, &options, workspace, bytes, &decision));
        assert_memory_equal(&decision, &r->decisions[s], sizeof decision);
    }
    assert_int_equal(build_hash(env->life, graph), r->report.hash_after);
}

/* ----------------------------------------------------------------- stopping */

CHECK_CASE(test_step_limit)
{
    const policy_kit *kit = open_favourite(env, KIT_DOUBLE_RELU); /* Fits for ever. */
    for (uint32_t limit = 0; limit < 60; limit += 7) {
        const run *r = optimize(env, policy_kit_copy(env, kit), &kit->policy, bare(limit));
        CHECK_OK(r->status);
        assert_int_equal(r->report.step_count, limit);
        assert_int_equal(r->report.stop, GRAFT_STOP_STEP_LIMIT);
        build_check(env->life, r->graph);
    }
}

/* What the tariff calls dearer than the graph that rewriting began with is no candidate, however
 * much the network wants it; a program that decides step by step says what that graph cost. */
CHECK_CASE(test_never_dearer)
{
    const policy_kit *kit = open_favourite(env, KIT_DOUBLE_RELU);
    graft_optimize_options options = bare(60);
    options.first_cost = 0;
    const run *r = optimize(env, policy_kit_copy(env, kit), &kit->policy, options);
    CHECK_OK(r->status);
    assert_true(r->report.estimated_after.cost <= r->report.estimated_before.cost);
    const run *unbound = optimize(env, policy_kit_copy(env, kit), &kit->policy, bare(60));
    assert_true(unbound->report.estimated_after.cost > unbound->report.estimated_before.cost);
    options.first_cost = r->report.estimated_before.cost + r->report.estimated_before.cost / 10;
    const run *more = optimize(env, policy_kit_copy(env, kit), &kit->policy, options);
    assert_true(more->report.estimated_after.cost > r->report.estimated_before.cost);
    assert_true(more->report.estimated_after.cost <= options.first_cost);
}

/* Rewriting until the graph is full is no error: what does not fit is no location. */
CHECK_CASE(test_full_graph)
{
    const policy_kit *kit = open_favourite(env, KIT_DOUBLE_RELU);
    graft_limits limits = {kit->graph->node_end + 3, kit->graph->value_end + 6,
                           kit->graph->edge_end + 12, 2};
    graft_graph *graph = build_graph_within(env->life, limits);
    CHECK_OK(graft_graph_copy(graph, kit->graph));
    const run *r = optimize(env, graph, &kit->policy, bare(40));
    CHECK_OK(r->status);
    assert_true(r->report.step_count > 0);
    build_check(env->life, graph);
}

CHECK_CASE(test_guard)
{
    const policy_kit *kit = open_favourite(env, KIT_SWAP_ADD); /* Goes round in circles. */
    graft_optimize_options options = bare(50);
    const run *off = optimize(env, policy_kit_copy(env, kit), &kit->policy, options);
    options.guard = true;
    const run *on = optimize(env, policy_kit_copy(env, kit), &kit->policy, options);
    assert_int_equal(off->report.step_count, 50);
    CHECK_OK(on->status);
    assert_int_equal(on->report.stop, GRAFT_STOP_REPEATED);
    assert_true(on->report.step_count >= 2 && on->report.step_count <= 8);
}

CHECK_CASE(test_no_op)
{
    const policy_kit *kit = open_favourite(env, KIT_RULES);
    const run *r = optimize(env, policy_kit_copy(env, kit), &kit->policy, bare(50));
    CHECK_OK(r->status);
    assert_int_equal(r->report.stop, GRAFT_STOP_NO_OP);
    assert_int_equal(r->report.step_count, 0);
    assert_int_equal(r->report.hash_after, r->report.hash_before);
}

/* Nothing to match: an empty graph, one of an input alone, and one with an operator of no rule. */
CHECK_CASE(test_no_rule)
{
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    static const char *const texts[] = {" ", "x = input 4 5; out x",
                                        "x = input 4 5; x = tanh x; out x"};
    for (uint32_t i = 0; i < 3; i++) {
        const run *r = optimize(env, build_text(env->life, "%s", texts[i]).graph, &kit->policy,
                                graft_optimize_options_default());
        CHECK_OK(r->status);
        assert_int_equal(r->report.stop, GRAFT_STOP_NO_RULE);
        assert_int_equal(r->report.step_count, 0);
    }
}

static uint32_t count_rule(const run *r, uint32_t rule)
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < r->report.step_count; s++) {
        count += r->decisions[s].rule == rule;
    }
    return count;
}

CHECK_CASE(test_weight_limit)
{
    const policy_kit *kit = open_favourite(env, KIT_FOLD_SCALE);
    graft_optimize_options options = bare(20);
    const run *r = optimize(env, policy_kit_copy(env, kit), &kit->policy, options);
    assert_int_equal(count_rule(r, KIT_FOLD_SCALE), 9);
    assert_true(r->report.weight_bytes > 0);
    options.weight_bytes_limit = 0;
    r = optimize(env, policy_kit_copy(env, kit), &kit->policy, options);
    CHECK_OK(r->status);
    assert_int_equal(count_rule(r, KIT_FOLD_SCALE) + count_rule(r, KIT_MERGE_MATMUL), 0);
    assert_int_equal(r->report.weight_bytes, 0);
}

/* ----------------------------------------------------------------- simplify */

CHECK_CASE(test_simplify)
{
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    graft_graph *graph = policy_kit_copy(env, kit);
    graft_report report = {.decisions = NULL};
    const graft_optimize_options options = bare(100);
    size_t bytes = graft_optimize_workspace_bytes(&kit->policy, &graph->limits, 0);
    CHECK_OK(graft_simplify(graph, &kit->policy, &options, graft_arena_alloc(env->life, bytes),
                            bytes, &report));
    assert_int_equal(report.simplify_step_count, 4); /* The identities. */
    assert_int_equal(report.step_count, 4);
    assert_int_equal(report.active_before - report.active_after, 4);
    build_check(env->life, graph);
    graft_optimize_options with = bare(10);
    with.simplify = true;
    const run *r = optimize(env, policy_kit_copy(env, kit), &kit->policy, with);
    assert_int_equal(r->report.simplify_step_count, 4);
    for (uint32_t s = 0; s < 10; s++) {
        assert_int_equal(r->decisions[s].origin, s < 4 ? GRAFT_FROM_SIMPLIFY : GRAFT_FROM_POLICY);
    }
}

CHECK_CASE(test_always_flags)
{
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    for (uint32_t r = 0; r < KIT_RULES; r++) {
        assert_int_equal(kit->policy.rule_flags[r], r == KIT_DROP_IDENTITY ? GRAFT_RULE_ALWAYS : 0);
    }
    const graft_rule rule = rows_parse(env, "reshape#1(reshape#2(a)) = reshape#1(a)");
    assert_true(graft_rule_is_always(&rule));
}

/* -------------------------------------------------------------------- plans */

static graft_policy with_plan(graft_env *env, const policy_kit *kit, const run *r,
                              graft_recorded_plan *plan)
{
    graft_policy policy = kit->policy;
    graft_plan_step steps[POLICY_DECISIONS_MOST];
    for (uint32_t s = 0; s < r->report.step_count; s++) {
        steps[s] = (graft_plan_step){r->decisions[s].rule, r->decisions[s].location};
    }
    plan->steps = steps;
    plan->step_count = (uint16_t)r->report.step_count;
    CHECK_OK(graft_plan_record(env, env->life, &kit->policy, kit->graph, plan));
    CHECK_OK(graft_policy_set_plans(env, env->life, plan, 1, &policy));
    return policy;
}

CHECK_CASE(test_plan_is_replayed)
{
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    const run *r = optimize(env, policy_kit_copy(env, kit), &kit->policy, bare(18));
    graft_recorded_plan plan;
    graft_policy policy = with_plan(env, kit, r, &plan);
    graft_optimize_options options = bare(100);
    options.use_plans = true;
    options.simplify = true; /* Not before a plan that fits. */
    const run *replayed = optimize(env, policy_kit_copy(env, kit), &policy, options);
    assert_int_equal(plan.graph_hash, r->report.hash_before);
    assert_int_equal(plan.result_hash, r->report.hash_after);
    assert_int_equal(replayed->report.stop, GRAFT_STOP_PLAN);
    assert_int_equal(replayed->report.plan_step_count, 18);
    assert_int_equal(replayed->report.step_count, 18);
    assert_int_equal(replayed->report.hash_after, r->report.hash_after);
    assert_false(replayed->report.plan_dropped);
    options.use_plans = false;
    const run *without = optimize(env, policy_kit_copy(env, kit), &policy, options);
    assert_int_equal(without->report.plan_step_count, 0);
}

/* A plan whose steps need new weights, on a target that allows none; and one with another end. */
CHECK_CASE(test_plan_is_dropped)
{
    const policy_kit *kit = open_favourite(env, KIT_FOLD_SCALE);
    const run *r = optimize(env, policy_kit_copy(env, kit), &kit->policy, bare(5));
    graft_recorded_plan plan;
    graft_policy policy = with_plan(env, kit, r, &plan);
    graft_optimize_options options = bare(20);
    options.use_plans = true;
    options.weight_bytes_limit = 0;
    const run *dropped = optimize(env, policy_kit_copy(env, kit), &policy, options);
    CHECK_OK(dropped->status);
    assert_true(dropped->report.plan_dropped);
    assert_int_equal(dropped->report.plan_step_count, 0);
    assert_true(dropped->report.step_count > 0);
    assert_int_equal(dropped->report.weight_bytes, 0);
    build_check(env->life, dropped->graph);
    plan.result_hash++;
    options.weight_bytes_limit = UINT64_MAX;
    CHECK_OK(graft_policy_set_plans(env, env->life, &plan, 1, &policy));
    dropped = optimize(env, policy_kit_copy(env, kit), &policy, options);
    assert_true(dropped->report.plan_dropped);
    assert_int_equal(dropped->report.plan_step_count, 5);
}

/* Steps that there are no more of, a step limit before the plan's end, a rule of no policy, and a
 * graph that no plan is for: whatever is dropped, the policy goes on, and plans may be dropped
 * twice. */
CHECK_CASE(test_plans_that_end_early)
{
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    const run *r = optimize(env, policy_kit_copy(env, kit), &kit->policy, bare(18));
    graft_recorded_plan plan;
    graft_policy policy = with_plan(env, kit, r, &plan);
    graft_optimize_options options = bare(5);
    options.use_plans = true;
    const run *cut = optimize(env, policy_kit_copy(env, kit), &policy, options);
    assert_int_equal(cut->report.step_count, 5);
    assert_int_equal(cut->report.plan_step_count, 5);
    assert_int_equal(cut->report.stop, GRAFT_STOP_STEP_LIMIT);
    assert_true(cut->report.plan_dropped);
    const graft_plan_step unknown = {KIT_RULES, 0};
    const run *simple = optimize(env, policy_kit_copy(env, kit), &kit->policy,
                                 (graft_optimize_options){.step_limit = 4, .simplify = true});
    graft_recorded_plan plans[2] = {
        {.steps = &unknown, .step_count = 1, .graph_hash = r->report.hash_before    },
        {.steps = &unknown, .step_count = 1, .graph_hash = simple->report.hash_after}
    };
    options.simplify = true;
    CHECK_OK(graft_policy_set_plans(env, env->life, plans, 2, &policy));
    const run *twice = optimize(env, policy_kit_copy(env, kit), &policy, options);
    assert_true(twice->report.plan_dropped);
    assert_int_equal(twice->report.plan_step_count, 0);
    assert_int_equal(twice->report.step_count, 5);
    plans[1] = (graft_recorded_plan){.graph_hash = simple->report.hash_after,
                                     .result_hash = simple->report.hash_after};
    CHECK_OK(graft_policy_set_plans(env, env->life, plans, 2, &policy));
    const run *second = optimize(env, policy_kit_copy(env, kit), &policy, options);
    assert_int_equal(second->report.stop, GRAFT_STOP_PLAN);
    assert_int_equal(second->report.step_count, 4);
    plans[0].graph_hash = UINT64_MAX;
    plans[1].graph_hash = UINT64_MAX - 1;
    CHECK_OK(graft_policy_set_plans(env, env->life, plans, 2, &policy));
    const run *other = optimize(env, policy_kit_copy(env, kit), &policy, options);
    assert_false(other->report.plan_dropped);
}

CHECK_CASE(test_plan_faults)
{
    policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    const graft_plan_step wrong[2] = {
        {KIT_DROP_IDENTITY, 0},
        {KIT_DROP_IDENTITY, 3}
    };
    graft_recorded_plan plans[2] = {
        {.steps = wrong, .step_count = 2}
    };
    check_failed(env, graft_plan_record(env, env->life, &kit->policy, kit->graph, &plans[0]),
                 GRAFT_BAD_INPUT, "step 1 of a plan");
    plans[0].step_count = 1;
    CHECK_OK(graft_plan_record(env, env->life, &kit->policy, kit->graph, &plans[0]));
    plans[1] = plans[0];
    check_failed(env, graft_policy_set_plans(env, env->life, plans, 2, &kit->policy),
                 GRAFT_BAD_INPUT, "same graph");
}

/* ------------------------------------------------------------------- faults */

static void assert_refused(graft_env *env, const policy_kit *kit, const graft_policy *policy)
{
    graft_graph *graph = policy_kit_copy(env, kit);
    const run *r = optimize(env, graph, policy, graft_optimize_options_default());
    assert_int_equal(r->status, GRAFT_BAD_INPUT);
    assert_int_equal(build_hash(env->life, graph), build_hash(env->life, kit->graph));
}

CHECK_CASE(test_bad_policies)
{
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    graft_policy policy = kit->policy;
    policy.abi++;
    assert_refused(env, kit, &policy);
    policy = kit->policy;
    policy.feature_hash ^= 1;
    assert_refused(env, kit, &policy);
    policy = kit->policy;
    policy.rule_rows = NULL;
    assert_refused(env, kit, &policy);
    policy = kit->policy;
    policy.tariff = NULL;
    assert_refused(env, kit, &policy);
    uint8_t rules[4096];
    memcpy(rules, kit->policy.rules, kit->policy.rule_offsets[KIT_RULES]);
    rules[kit->policy.rule_offsets[3]] = 0xff;
    policy = kit->policy;
    policy.rules = rules;
    assert_refused(env, kit, &policy);
}

/* A rule that is marked "always" and leaves as many nodes would never end: it is not applied. Of
 * decisions as many are written as fit. */
CHECK_CASE(test_growing_always)
{
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    graft_graph *graph = policy_kit_copy(env, kit);
    graft_policy policy = kit->policy;
    uint8_t flags[KIT_RULES] = {0};
    graft_decision decisions[2];
    memset(decisions, 0x5a, sizeof decisions);
    const graft_decision untouched = decisions[1];
    graft_report report = {.decisions = decisions, .decision_limit = 1};
    const graft_optimize_options options = bare(100);
    const size_t bytes = graft_optimize_workspace_bytes(&policy, &graph->limits, 0);
    flags[KIT_DOUBLE_RELU] = flags[KIT_SWAP_ADD] = flags[KIT_DROP_IDENTITY] = GRAFT_RULE_ALWAYS;
    policy.rule_flags = flags;
    CHECK_OK(graft_simplify(graph, &policy, &options, graft_arena_alloc(env->life, bytes), bytes,
                            &report));
    assert_int_equal(report.step_count, 4);
    assert_int_equal(report.stop, GRAFT_STOP_NO_RULE);
    assert_int_equal(decisions[0].rule, KIT_DROP_IDENTITY);
    assert_memory_equal(&decisions[1], &untouched, sizeof untouched);
}

/* A cycle, which only the one who redirects values can make. */
CHECK_CASE(test_cycle)
{
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    const built b = build_text(env->life, "x = input 4 5; y = tanh x; z = exp y");
    graft_graph_redirect(b.graph, b.at['x'], b.at['z']);
    const run *r = optimize(env, b.graph, &kit->policy, graft_optimize_options_default());
    assert_int_equal(r->status, GRAFT_BAD_INPUT);
}

/* The operator of the largest id is none of a rule. */
CHECK_CASE(test_last_operator)
{
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    graft_graph *graph =
        build_text(env->life, "x = input 4; y = input 4; z = remainder x y; out z").graph;
    assert_int_equal(GRAFT_OP_remainder, GRAFT_OP_COUNT - 1);
    const run *r = optimize(env, graph, &kit->policy, graft_optimize_options_default());
    CHECK_OK(r->status);
    assert_int_equal(r->report.stop, GRAFT_STOP_NO_RULE);
}

/* A chain of relus as long as costs can be added up for, written by hand: building it takes a
 * while. */
static graft_graph *longest_chain(graft_env *env)
{
    enum { LONG = GRAFT_ESTIMATE_NODES };
    graft_graph *graph =
        build_graph_within(env->life, (graft_limits){LONG + 8, LONG + 9, 2 * LONG + 16, 1});
    const graft_index x = build_input(graph, SHAPE(4), 0);
    (void)build_node(graph, GRAFT_OP_relu, NULL, x, 0, 0);
    for (graft_index n = 1; n < LONG; n++) {
        graph->nodes[n] = graph->nodes[0];
        graph->nodes[n].first_edge = 2 * n;
        graph->values[n + 1] = graph->values[1];
        graph->values[n + 1].node = n;
        graph->edges[2 * n] = n;
        graph->edges[2 * n + 1] = n + 1;
    }
    graph->node_end = LONG;
    graph->value_end = LONG + 1;
    graph->edge_end = 2 * LONG;
    CHECK_OK(graft_graph_add_output(graph, LONG));
    return graph;
}

/* What would leave more nodes than costs can be added up for is no location. */
CHECK_CASE(test_longest_graph)
{
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    graft_graph *graph = longest_chain(env);
    const uint32_t offsets[2] = {kit->policy.rule_offsets[KIT_DOUBLE_RELU],
                                 kit->policy.rule_offsets[KIT_DOUBLE_RELU + 1]};
    graft_policy policy = kit->table;
    policy.rule_offsets = offsets;
    policy.rule_count = 1;
    build_check(env->life, graph);
    const run *r = optimize(env, graph, &policy, bare(3));
    CHECK_OK(r->status);
    assert_int_equal(r->report.stop, GRAFT_STOP_NO_RULE);
    assert_int_equal(r->report.step_count, 0);
}

/* ------------------------------------------------------------------- tables */

CHECK_CASE(test_renumber)
{
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    const run *r = optimize(env, policy_kit_copy(env, kit), &kit->policy, bare(9));
    graft_graph *renumbered = NULL;
    CHECK_OK(graft_graph_renumber(env, env->life, r->graph, &renumbered));
    assert_int_equal(build_hash(env->life, renumbered), r->report.hash_after);
    build_check(env->life, renumbered);
    graft_order order = build_order(env->life, renumbered);
    for (graft_index i = 0; i < order.count; i++) {
        assert_int_equal(order.order[i], i);
    }
}

CHECK_CASE(test_damaged_tables)
{
    graft_graph *graph = build_graph_within(env->life, (graft_limits){4, 8, 16, 2});
    static const int32_t table[] = {
        1,  0,
        1,  2,
        3,  5, /* input (3, 5) */
        2,  0,
        1,  2,
        5,  7, /* weight (5, 7) */
        3,  GRAFT_OP_matmul,
        4,  0,
        1, /* 2 */
        4,  9,
        2,  1,
        2,  -1,
        1,  1,
        11,    /* opaque of 2 and nothing, 3: (11) */
        5,  3, /* output */
    };
    enum { COUNT = sizeof table / sizeof table[0] };
    CHECK_OK(graft_graph_load(graph, table, COUNT));
    assert_int_equal(graft_graph_node_count(graph), 2);
    build_check(env->life, graph);
    uint32_t accepted = 0;
    for (size_t count = 0; count < COUNT; count++) {
        graft_status status = graft_graph_load(graph, table, count);
        assert_true(status == GRAFT_OK || status == GRAFT_BAD_INPUT);
        accepted += status == GRAFT_OK;
        build_check(env->life, graph);
    }
    assert_int_equal(accepted, 5); /* Between records. */
    CHECK_OK(graft_graph_load(graph, NULL, 0));
    for (size_t at = 2; at < 4; at++) { /* A type and a rank whose last byte is what it was. */
        int32_t damaged[COUNT];
        memcpy(damaged, table, sizeof table);
        damaged[at] += 256;
        assert_int_equal(graft_graph_load(graph, damaged, COUNT), GRAFT_BAD_INPUT);
    }
    for (size_t at = 0; at < COUNT; at++) {
        static const int32_t values[] = {-1, 0, 6, 33, 255, INT32_MAX, INT32_MIN};
        for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) {
            int32_t damaged[COUNT];
            memcpy(damaged, table, sizeof table);
            damaged[at] = values[k];
            if (graft_graph_load(graph, damaged, COUNT) == GRAFT_OK) {
                (void)graft_graph_check(graph, graft_arena_alloc(env->life, 4096), 4096);
            }
        }
    }
}

/* A policy that decides by its tariff: every choice is the best that the host finds, every graph is
 * cheaper than the one before, and it ends where nothing is to be had. */
#include "graph/rule/policyfile.h"
#include "tests/support/policy.h"

#include <string.h>

enum { STEPS = 60 };

typedef policy_run run;

static const graft_optimize_options bare = {.weight_bytes_limit = UINT64_MAX, .step_limit = STEPS};

static run *optimize(graft_env *env, const policy_kit *kit, const graft_policy *policy)
{
    return policy_kit_optimize(env, policy_kit_copy(env, kit), policy, &bare);
}

/* The host's view of one graph: all matches, and what each would change. */
typedef struct {
    graft_state state;
    graft_matches matches;
    graft_estimator estimator;
    graft_estimated estimated;
} host;

static host *open_host(graft_env *env, const policy_kit *kit, const graft_policy *policy)
{
    host *h = GRAFT_NEW(env->life, host, 1);
    const graft_limits *limits = &kit->graph->limits;
    graft_state_open(env->life, limits, &h->state);
    graft_matches_open(env->life, &kit->xfers, policy->location_limit, &h->matches);
    CHECK_OK(graft_state_set(env, &h->state, kit->graph));
    h->estimator = build_estimator(env->life, policy->tariff, limits);
    return h;
}

/* The change that lowers the estimate most, the first of equals; where none does by enough, the
 * first that is no dearer and leaves fewer nodes. False when there is none either. */
static bool find_best(const policy_kit *kit, host *h, graft_action *best, int64_t *change)
{
    const graft_apply_options apply = {UINT64_MAX};
    bool found = false;
    graft_matches_find(&h->matches, &h->state, &apply);
    CHECK_OK(graft_estimate(&h->estimator, &h->state.graph, &h->state.order, &h->estimated));
    int64_t least = -(int64_t)(h->estimated.cost >> GRAFT_GAIN_SHIFT);
    for (uint32_t r = 0; r < KIT_RULES; r++) {
        for (uint32_t l = 0; l < graft_matches_count(&h->matches, r); l++) {
            const graft_match *match = graft_matches_get(&h->matches, r, l);
            graft_made made;
            graft_change c;
            CHECK_OK(graft_match_plan(&h->state.graph, &kit->rules[r], match, &h->state.order,
                                      &apply, h->state.scratch, &made));
            graft_estimate_match(&h->estimator, &kit->rules[r], match, &made, &c);
            const bool gains = c.cost < least;
            least = gains ? c.cost : least;
            if (gains || (!found && c.cost <= 0 && c.added.nodes < c.removed.nodes)) {
                *change = c.cost;
                *best = (graft_action){.xfer = (uint16_t)r, .location = (uint16_t)l};
                found = true;
            }
        }
    }
    return found;
}

CHECK_CASE(test_takes_the_best)
{
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    const graft_policy policy = kit->table;
    const graft_apply_options apply = {UINT64_MAX};
    const run *r = optimize(env, kit, &policy);
    host *h = open_host(env, kit, &policy);
    graft_action best;
    int64_t change = 0;
    int64_t sum = 0;
    CHECK_OK(r->status);
    assert_true(r->report.step_count > 10 && r->report.step_count < STEPS);
    assert_int_equal(r->report.stop, GRAFT_STOP_NO_OP);
    for (uint32_t i = 0; i < r->report.step_count; i++) {
        const graft_decision *d = &r->decisions[i];
        assert_true(find_best(kit, h, &best, &change));
        assert_int_equal(d->rule, best.xfer);
        assert_int_equal(d->location, best.location);
        assert_true(d->cost_change == change);
        sum += change;
        CHECK_OK(graft_state_apply(env, &h->state, &kit->rules[best.xfer],
                                   graft_matches_get(&h->matches, best.xfer, best.location),
                                   &apply));
    }
    assert_false(find_best(kit, h, &best, &change));
    assert_true(graft_state_hash(&h->state) == r->report.hash_after);
    assert_true(r->report.estimated_after.cost == h->estimated.cost);
    assert_true((int64_t)r->report.estimated_before.cost + sum ==
                (int64_t)r->report.estimated_after.cost);
    assert_int_equal(r->report.estimated_before.fallback_nodes, 0);
}

CHECK_CASE(test_steps_and_scores)
{
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    const graft_policy policy = kit->table;
    const run *r = optimize(env, kit, &policy);
    graft_graph *graph = policy_kit_copy(env, kit);
    size_t bytes = graft_optimize_workspace_bytes(&policy, &graph->limits, 0);
    void *workspace = graft_arena_alloc(env->life, bytes);
    for (uint32_t i = 0; i <= r->report.step_count; i++) {
        const bool last = i == r->report.step_count;
        graft_scores scores;
        graft_decision decision;
        CHECK_OK(graft_policy_scores(graph, &policy, &bare, workspace, bytes, &scores));
        assert_null(scores.latent);
        assert_int_equal(scores.rule, last ? KIT_RULES : r->decisions[i].rule);
        assert_true(scores.change.cost == (last ? 0 : r->decisions[i].cost_change));
        CHECK_OK(graft_policy_step(graph, &policy, &bare, workspace, bytes, &decision));
        if (!last) {
            assert_memory_equal(&decision, &r->decisions[i], sizeof decision);
        }
    }
}

/* Where new weights are not allowed, merging products is no choice. */
CHECK_CASE(test_limits_hold)
{
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    const graft_policy policy = kit->table;
    graft_optimize_options options = bare;
    graft_graph *graph = policy_kit_copy(env, kit);
    size_t bytes = graft_optimize_workspace_bytes(&policy, &graph->limits, STEPS);
    void *workspace = graft_arena_alloc(env->life, bytes);
    graft_decision decisions[STEPS];
    graft_report report = {.decisions = decisions, .decision_limit = STEPS};
    options.weight_bytes_limit = 0;
    CHECK_OK(graft_optimize(graph, &policy, &options, workspace, bytes, &report));
    assert_true(report.weight_bytes == 0 && report.step_count > 0);
    assert_int_equal(graft_optimize(graph, &policy, &options, workspace, bytes - 8, &report),
                     GRAFT_NO_MEMORY);
}

static graft_status status_of(graft_env *env, const policy_kit *kit, const graft_policy *policy)
{
    return optimize(env, kit, policy)->status;
}

CHECK_CASE(test_damaged)
{
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    const graft_policy good = kit->table;
    graft_policy bad = good;
    bad.decider = GRAFT_DECIDER_NETWORK; /* It has none. */
    assert_int_equal(status_of(env, kit, &bad), GRAFT_BAD_INPUT);
    bad.decider = 2;
    assert_int_equal(status_of(env, kit, &bad), GRAFT_BAD_INPUT);
    bad = good;
    bad.tariff = NULL;
    assert_int_equal(status_of(env, kit, &bad), GRAFT_BAD_INPUT);
    graft_tariff tariff = *good.tariff;
    uint32_t *keys = GRAFT_NEW(env->life, uint32_t, tariff.row_count);
    memcpy(keys, tariff.keys, tariff.row_count * sizeof keys[0]);
    keys[1] = keys[0];
    tariff.keys = keys;
    bad = good;
    bad.tariff = &tariff;
    assert_int_equal(status_of(env, kit, &bad), GRAFT_BAD_INPUT);
}

/* A tree of one leaf in all places that brings a form's guess to `guess`. */
static void guess_form(graft_env *env, const graft_form *form, uint16_t guess, graft_tariff *tariff)
{
    int16_t inputs[GRAFT_TARIFF_INPUTS];
    int16_t *leaves = GRAFT_NEW(env->life, int16_t, GRAFT_TREE_LEAVES);
    uint8_t *tests = GRAFT_NEW(env->life, uint8_t, GRAFT_TREE_TESTS);
    int16_t *bounds = GRAFT_NEW(env->life, int16_t, GRAFT_TREE_TESTS);
    graft_tariff_inputs(form, inputs);
    memset(tests, 0, GRAFT_TREE_TESTS);
    memset(bounds, 0, GRAFT_TREE_TESTS * sizeof bounds[0]);
    for (uint32_t i = 0; i < GRAFT_TREE_LEAVES; i++) {
        leaves[i] = (int16_t)(guess - graft_tariff_base(tariff, inputs));
    }
    tariff->tests = tests;
    tariff->bounds = bounds;
    tariff->leaves = leaves;
    tariff->tree_count = 1;
    assert_int_equal(graft_tariff_guess(tariff, inputs).value, guess);
}

/* A tariff that knows what a relu costs, and guesses what costs what a relu reads. */
static graft_policy guessing(graft_env *env, const graft_policy *from, const policy_kit *kit,
                             uint16_t guess, uint16_t relu)
{
    graft_tariff *tariff = GRAFT_NEW(env->life, graft_tariff, 1);
    uint32_t *keys = GRAFT_NEW(env->life, uint32_t, 16);
    uint16_t *values = GRAFT_NEW(env->life, uint16_t, 16);
    graft_policy policy = *from;
    *tariff = (graft_tariff){.keys = keys, .values = values};
    for (graft_index n = 0; n < kit->graph->node_end; n++) {
        graft_form form;
        if (kit->graph->nodes[n].op != GRAFT_OP_relu) {
            continue;
        }
        graft_index read = graft_node_input(kit->graph, n, 0);
        graft_form_of_node(kit->graph, kit->graph->values[read].node, &form);
        guess_form(env, &form, guess, tariff);
        graft_form_of_node(kit->graph, n, &form);
        uint32_t key = graft_tariff_key(0, graft_form_hash(&form));
        uint32_t at = tariff->row_count;
        for (; at > 0 && keys[at - 1] > key; at--) {
            keys[at] = keys[at - 1];
        }
        if (at == 0 || keys[at - 1] != key) {
            keys[at] = key;
            tariff->row_count++;
        } else {
            memmove(&keys[at], &keys[at + 1], (tariff->row_count - at) * sizeof keys[0]);
        }
    }
    for (uint32_t i = 0; i < tariff->row_count; i++) {
        values[i] = relu;
    }
    assert_null(graft_tariff_check(tariff));
    policy.tariff = tariff;
    return policy;
}

/* How often a relu is fused into a normalisation when what it reads is guessed to cost 2^10 units.
 */
static uint32_t count_fused(graft_env *env, const policy_kit *kit, uint16_t relu)
{
    const graft_policy by_tariff = kit->table;
    const graft_policy policy = guessing(env, &by_tariff, kit, 1 + (10 << 10), relu);
    const run *r = optimize(env, kit, &policy);
    uint32_t count = 0;
    CHECK_OK(r->status);
    assert_true(r->report.estimated_before.fallback_nodes > 0);
    for (uint32_t i = 0; i < r->report.step_count; i++) {
        count += r->decisions[i].rule == KIT_FUSE_RELU;
    }
    return count;
}

/* A gain of a 512th of what is guessed is taken where the same guess goes and comes again; else
 * what the halves of the trees differ by is doubted. */
CHECK_CASE(test_doubt)
{
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    const graft_change higher = {.cost = -7, .removed.skew = 2, .added.skew = 5};
    const graft_change lower = {.cost = -7, .removed.skew = 2, .added.skew = -3};
    assert_true(count_fused(env, kit, 1 + (6 << 10)) > 0);
    assert_true(count_fused(env, kit, 1 + (2 << 10)) > 0);
    assert_int_equal(graft_change_doubted(&higher), -7 + 3);
    assert_int_equal(graft_change_doubted(&lower), -7 + 5);
}

/* What moves more and saves neither FLOPs nor a node gains nothing by a guess. */
CHECK_CASE(test_growth)
{
    graft_change change = {
        .cost = -7,
        .removed = {.flops = 3,  .bytes = 5, .nodes = 2         },
        .added = { .flops = 3, .bytes = 6, .nodes = 2, .fallback_nodes = 1}
    };
    assert_int_equal(graft_change_doubted(&change), 0);
    change.added.nodes = 1;
    assert_int_equal(graft_change_doubted(&change), -7);
    change.added = (graft_estimated){.flops = 2, .bytes = 6, .nodes = 2, .fallback_nodes = 1};
    assert_int_equal(graft_change_doubted(&change), -7);
    change.added = (graft_estimated){.flops = 4, .bytes = 5, .nodes = 2, .fallback_nodes = 1};
    assert_int_equal(graft_change_doubted(&change), -7);
    change.added = (graft_estimated){.flops = 4, .bytes = 6, .nodes = 3};
    assert_int_equal(graft_change_doubted(&change), -7); /* By rows. */
    change.removed.fallback_nodes = 1;
    assert_int_equal(graft_change_doubted(&change), 0);
    change.cost = 7;
    assert_int_equal(graft_change_doubted(&change), 7);
}

/* By a table that knows all nodes to cost nothing, rewrites that leave fewer nodes are taken. */
CHECK_CASE(test_fewer_nodes)
{
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    graft_policy policy = kit->table;
    const graft_tariff free_nodes = {0};
    policy.tariff = &free_nodes;
    const run *r = optimize(env, kit, &policy);
    CHECK_OK(r->status);
    assert_true(r->report.step_count > 0);
    assert_int_equal(r->report.stop, GRAFT_STOP_NO_OP);
    assert_true(r->report.estimated_after.nodes + r->report.step_count <=
                r->report.estimated_before.nodes);
}

/* Where calling a kernel takes time each node that runs costs so much more. */
CHECK_CASE(test_calls)
{
    enum { CALL_NS = 65535 };
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    const graft_policy dear = kit->table;
    const graft_tariff free_nodes = {0};
    graft_policy free_policy = dear;
    free_policy.tariff = &free_nodes;
    graft_optimize_options called = bare;
    called.call_ns = CALL_NS;
    const graft_policy *policies[] = {&dear, &free_policy};
    for (uint32_t i = 0; i < 2; i++) {
        const graft_report *without = &optimize(env, kit, policies[i])->report;
        const run *with = policy_kit_optimize(env, policy_kit_copy(env, kit), policies[i], &called);
        const graft_estimated *before = &with->report.estimated_before;
        const graft_estimated *after = &with->report.estimated_after;
        assert_true(before->cost - without->estimated_before.cost ==
                    (uint64_t)before->nodes * CALL_NS * GRAFT_COST_UNITS);
        assert_true(after->nodes < before->nodes && after->nodes <= without->estimated_after.nodes);
        int64_t sum = (int64_t)before->cost;
        for (uint32_t k = 0; k < with->report.step_count; k++) {
            assert_true(with->decisions[k].cost_change < 0);
            sum += with->decisions[k].cost_change;
        }
        assert_true(sum == (int64_t)after->cost);
    }
}

CHECK_CASE(test_file)
{
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    graft_policy policy = kit->table;
    graft_policy read;
    uint8_t *data = NULL;
    size_t size = 0;
    graft_policyfile_encode(env->life, &policy, policy_kit_names, &data, &size);
    CHECK_OK(graft_policyfile_decode(env, env->life, (graft_bytes){"p.graft", data, size}, &read));
    assert_int_equal(read.hidden, 0);
    assert_true(optimize(env, kit, &read)->report.hash_after ==
                optimize(env, kit, &policy)->report.hash_after);
    policy.tariff = NULL;
    graft_policyfile_encode(env->life, &policy, policy_kit_names, &data, &size);
    check_failed(
        env, graft_policyfile_decode(env, env->life, (graft_bytes){"p.graft", data, size}, &read),
        GRAFT_BAD_INPUT, "p.graft: decider: what it needs is not there");
}

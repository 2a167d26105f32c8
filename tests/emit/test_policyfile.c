/* A policy as a file: what is read decides as what was written, to the last score; a file that is
 * cut off, damaged or from another engine is refused by name, and never believed. */
#include "graph/rule/policyfile.h"

#include "graph/rule/policy.pb-c.h"
#include "tests/support/policy.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    uint8_t *data;
    size_t size;
} encoded;

static encoded encode(graft_env *env, const graft_policy *policy)
{
    encoded e = {NULL, 0};
    graft_policyfile_encode(env->life, policy, policy_kit_names, &e.data, &e.size);
    return e;
}

static graft_status decode(graft_env *env, encoded e, graft_policy *policy)
{
    return graft_policyfile_decode(env, env->unit, (graft_bytes){"p.graft", e.data, e.size},
                                   policy);
}

/* The hash of the kit's graph after a run of the policy. */
static uint64_t run_policy(graft_env *env, const policy_kit *kit, const graft_policy *policy)
{
    enum { STEPS = 40 };
    const graft_optimize_options options = {
        .weight_bytes_limit = UINT64_MAX, .step_limit = STEPS, .simplify = true, .guard = true};
    graft_graph *graph = policy_kit_copy(env, kit);
    size_t bytes = graft_optimize_workspace_bytes(policy, &graph->limits, STEPS);
    graft_report report = {.decisions = NULL};
    CHECK_OK(graft_optimize(graph, policy, &options, graft_arena_alloc(env->life, bytes), bytes,
                            &report));
    assert_true(report.step_count > 0);
    return report.hash_after;
}

CHECK_CASE(test_round_trip)
{
    for (uint32_t rounds = 0; rounds <= 2; rounds++) {
        policy_kit_options options = policy_kit_plain;
        options.rounds = rounds;
        const policy_kit *kit = policy_kit_open(env, &options);
        graft_policy again;
        encoded e = encode(env, &kit->policy);
        CHECK_OK(decode(env, e, &again));
        assert_int_equal(again.rule_count, KIT_RULES);
        assert_true(run_policy(env, kit, &again) == run_policy(env, kit, &kit->policy));
        encoded twice = encode(env, &again);
        assert_int_equal(twice.size, e.size);
        assert_memory_equal(twice.data, e.data, e.size);
    }
}

static encoded encode_before(graft_env *env, encoded now, uint32_t version)
{
    Graft__Policies__Policy *message = graft__policies__policy__unpack(NULL, now.size, now.data);
    assert_non_null(message);
    message->tariff->version = version;
    message->tariff->n_roofs = 0;
    encoded before = {.size = graft__policies__policy__get_packed_size(message)};
    before.data = GRAFT_NEW(env->life, uint8_t, before.size);
    graft__policies__policy__pack(message, before.data);
    graft__policies__policy__free_unpacked(message, NULL);
    return before;
}

/* Trees of a file of before roofs were guess what they did; of before halves were, what they guess is
 * not doubted. A file of now has roofs. */
CHECK_CASE(test_files_of_before)
{
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    static const uint8_t tests[2 * GRAFT_TREE_TESTS];
    static const int16_t bounds[2 * GRAFT_TREE_TESTS];
    static const int16_t inputs[GRAFT_TARIFF_INPUTS];
    int16_t leaves[2 * GRAFT_TREE_LEAVES];
    for (uint32_t i = 0; i < 2 * GRAFT_TREE_LEAVES; i++) {
        leaves[i] = i < GRAFT_TREE_LEAVES ? 801 : -51;
    }
    const graft_tariff tariff = {
        .tests = tests,
        .bounds = bounds,
        .leaves = leaves,
        .tree_count = 2,
        .roofs = {{0, 3 * 1024, 0}, {0, 3 * 1024, 0}}
    };
    graft_policy policy = kit->policy;
    graft_policy read;
    policy.tariff = &tariff;
    const encoded e = encode(env, &policy);
    assert_int_equal(decode(env, e, &read), GRAFT_OK);
    assert_int_equal(abs(graft_tariff_guess(read.tariff, inputs).skew), 852);
    assert_memory_equal(read.tariff->roofs, tariff.roofs, sizeof tariff.roofs);
    assert_int_equal(decode(env, encode_before(env, e, 3), &read), GRAFT_OK);
    assert_memory_equal(read.tariff->roofs, tariff.roofs, sizeof tariff.roofs);
    assert_int_equal(abs(graft_tariff_guess(read.tariff, inputs).skew), 852);
    assert_int_equal(decode(env, encode_before(env, e, 2), &read), GRAFT_OK);
    const graft_guess guess = graft_tariff_guess(read.tariff, inputs);
    assert_int_equal(guess.value, graft_tariff_guess(&tariff, inputs).value);
    assert_true(abs(guess.skew) <= 2);
    assert_int_equal(decode(env, encode_before(env, e, 4), &read), GRAFT_BAD_INPUT);
    graft_env_clear(env);
}

CHECK_CASE(test_cut_off)
{
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    encoded e = encode(env, &kit->policy);
    graft_policy policy;
    for (size_t size = 0; size < e.size; size += 1 + size / 50) {
        /* Its own block, so that a sanitizer sees a read past the end. */
        uint8_t *part = malloc(size + 1);
        assert_non_null(part);
        memcpy(part, e.data, size);
        assert_int_equal(decode(env, (encoded){part, size}, &policy), GRAFT_BAD_INPUT);
        assert_true(strncmp(env->message, "p.graft: ", 9) == 0);
        graft_env_clear(env);
        free(part);
    }
}

CHECK_CASE(test_refusals)
{
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    graft_policy policy = kit->policy;
    graft_policy read;
    policy.abi = GRAFT_ABI + 1;
    check_failed(env, decode(env, encode(env, &policy), &read), GRAFT_BAD_INPUT,
                 "p.graft: features: the policy was made for another version of the engine");
    policy = kit->policy;
    policy.hidden = 0;
    check_failed(env, decode(env, encode(env, &policy), &read), GRAFT_BAD_INPUT,
                 "p.graft: decider");
    policy = kit->policy;
    int32_t *bias = GRAFT_NEW(env->life, int32_t, policy.second.outputs);
    bias[1] = GRAFT_DENSE_MAX_BIAS + 1;
    policy.second.bias = bias;
    check_failed(env, decode(env, encode(env, &policy), &read), GRAFT_BAD_INPUT,
                 "p.graft: second: a bias is out of range");
    policy = kit->policy;
    int8_t *weights =
        GRAFT_NEW(env->life, int8_t, (size_t)policy.place.inputs * policy.place.outputs);
    weights[3] = INT8_MIN;
    policy.place.weights = weights;
    check_failed(env, decode(env, encode(env, &policy), &read), GRAFT_BAD_INPUT,
                 "p.graft: place: a weight is out of range");
    policy = kit->policy;
    uint8_t *rules = GRAFT_NEW(env->life, uint8_t, policy.rule_offsets[KIT_RULES]);
    memcpy(rules, policy.rules, policy.rule_offsets[KIT_RULES]);
    rules[policy.rule_offsets[2]] = 255;
    policy.rules = rules;
    check_failed(env, decode(env, encode(env, &policy), &read), GRAFT_BAD_INPUT,
                 "p.graft: rule 2 is malformed");
}

/* Rules made shorter for a header: how small those of the committed policy become, that they stay
 * the same and decide the same, and what becomes of bytes that were not made by
 * graft_rules_shorten. */
#include "emit/command/contents.h"
#include "emit/header/pairs.h"
#include "graph/rule/policyfile.h"
#include "models/zoo.h"
#include "tests/support/policy.h"

#include <stdlib.h>
#include <string.h>

enum { RULE_BYTES_MOST = 2048, STEPS = 100, ALL_RULES_BYTES_MOST = 48 << 10 };

static graft_policy read_committed(graft_env *env)
{
    graft_policy policy;
    CHECK_OK(graft_policyfile_read(env, env->life, "rules/policies/amd-epyc-25-17-avx512.graft",
                                   &policy, NULL));
    return policy;
}

static void assert_same_rules(const graft_policy *a, const graft_policy *b)
{
    assert_int_equal(a->rule_count, b->rule_count);
    for (uint32_t r = 0; r < a->rule_count; r++) {
        uint8_t bytes[2][RULE_BYTES_MOST];
        graft_rule rules[2];
        CHECK_OK(graft_policy_rule(a, r, &rules[0]));
        CHECK_OK(graft_policy_rule(b, r, &rules[1]));
        const size_t size = graft_rule_pack(&rules[0], bytes[0], RULE_BYTES_MOST);
        assert_true(size > 0);
        assert_int_equal(graft_rule_pack(&rules[1], bytes[1], RULE_BYTES_MOST), size);
        assert_memory_equal(bytes[0], bytes[1], size);
    }
}

/* All rules of the set, which this policy has, are to fit into 48 KiB of flash. */
CHECK_CASE(test_committed_is_small)
{
    const graft_policy policy = read_committed(env);
    const graft_policy shorter = graft_rules_shorten(env->life, &policy);
    print_message("# %u rules: %zu bytes, plain %zu\n", policy.rule_count,
                  graft_rules_bytes(&shorter), graft_rules_bytes(&policy));
    assert_non_null(shorter.rule_pairs);
    assert_true(graft_rules_bytes(&shorter) <= ALL_RULES_BYTES_MOST);
    assert_same_rules(&shorter, &policy);
}

typedef struct {
    graft_report report;
    graft_decision decisions[STEPS];
} outcome;

static outcome *optimize(graft_env *env, const graft_policy *policy, const char *name)
{
    outcome *o = GRAFT_NEW(env->life, outcome, 1);
    graft_model *model = NULL;
    CHECK_OK(graft_model_open(env, env->life, name, NULL, &model));
    graft_graph *graph = graft_model_graph_copy(env->life, &model->graph);
    graft_optimize_options options = graft_optimize_options_default();
    options.step_limit = STEPS;
    o->report = (graft_report){.decisions = o->decisions, .decision_limit = STEPS};
    const size_t bytes = graft_optimize_workspace_bytes(policy, &graph->limits, STEPS);
    CHECK_OK(graft_optimize(graph, policy, &options, graft_arena_alloc(env->life, bytes), bytes,
                            &o->report));
    return o;
}

CHECK_CASE(test_decides_alike)
{
    static const char *const names[] = {"dscnn", "nasrnn"};
    const graft_policy policy = read_committed(env);
    const graft_policy shorter = graft_rules_shorten(env->life, &policy);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const outcome *a = optimize(env, &policy, names[i]);
        const outcome *b = optimize(env, &shorter, names[i]);
        assert_true(a->report.step_count > 0);
        assert_int_equal(a->report.step_count, b->report.step_count);
        assert_true(a->report.hash_after == b->report.hash_after);
        assert_memory_equal(a->decisions, b->decisions, sizeof a->decisions);
    }
}

/* What rules begin with stands for itself, though no byte behind it is the same. */
CHECK_CASE(test_operator_of_anchors)
{
    enum { COPIES = 100 };
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    graft_rule *rules = GRAFT_NEW(env->life, graft_rule, COPIES);
    graft_policy policy = kit->table;
    for (uint32_t r = 0; r < COPIES; r++) {
        rules[r] = kit->rules[KIT_FOLD_SCALE];
    }
    CHECK_OK(graft_policy_pack_rules(env, env->life, rules, COPIES, &policy));
    const graft_policy shorter = graft_rules_shorten(env->life, &policy);
    assert_non_null(shorter.rule_pairs);
    assert_same_rules(&shorter, &policy);
}

/* Where the table of pairs takes more than it saves, rules stay as they are. */
CHECK_CASE(test_few_rules)
{
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    const graft_policy shorter = graft_rules_shorten(env->life, &kit->table);
    assert_null(shorter.rule_pairs);
    assert_ptr_equal(shorter.rules, kit->table.rules);
}

/* A rule whose bytes behind the head are pairs of pairs: 255 stands for 254 and a byte, and so
 * on. */
typedef struct {
    graft_policy policy;
    uint8_t pairs[GRAFT_PAIRS_BYTES];
    uint8_t bytes[RULE_BYTES_MOST];
    uint32_t offsets[2];
} paired;

static void set_pair(paired *p, uint32_t value, uint32_t first, uint32_t second)
{
    p->pairs[2 * value] = (uint8_t)first;
    p->pairs[2 * value + 1] = (uint8_t)second;
}

static void open_paired(const policy_kit *kit, uint32_t depth, paired *p)
{
    uint8_t *body = &p->bytes[GRAFT_RULE_HEAD];
    memset(p, 0, sizeof *p);
    p->policy = kit->table;
    p->policy.rules = p->bytes;
    p->policy.rule_offsets = p->offsets;
    p->policy.rule_pairs = p->pairs;
    p->policy.rule_count = 1;
    const size_t size =
        graft_rule_pack(&kit->rules[KIT_FOLD_SCALE], p->bytes, sizeof p->bytes) - depth;
    for (uint32_t value = 0; value < 256; value++) {
        set_pair(p, value, value, 0);
    }
    for (uint32_t i = 0; i < depth; i++) {
        set_pair(p, 255 - i, i + 1 < depth ? 254 - i : body[0], body[depth - i]);
    }
    body[0] = 255;
    memmove(&body[1], &body[1 + depth], size - GRAFT_RULE_HEAD - 1);
    p->offsets[1] = (uint32_t)size;
}

static bool is_read(const paired *p)
{
    graft_rule rule;
    const graft_status status = graft_policy_rule(&p->policy, 0, &rule);
    assert_true(status == GRAFT_OK || status == GRAFT_BAD_INPUT);
    assert_true(status != GRAFT_OK || graft_rule_check(&rule) == NULL);
    return status == GRAFT_OK;
}

/* As deep as GRAFT_PAIR_DEPTH and no deeper. */
CHECK_CASE(test_depth)
{
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    graft_policy plain = kit->table;
    paired p;
    plain.rule_count = 1;
    for (uint32_t depth = 1; depth <= GRAFT_PAIR_DEPTH; depth++) {
        open_paired(kit, depth, &p);
        assert_same_rules(&p.policy, &plain);
    }
    open_paired(kit, GRAFT_PAIR_DEPTH + 1, &p);
    assert_false(is_read(&p));
}

CHECK_CASE(test_pairs_that_are_wrong)
{
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    paired p;
    open_paired(kit, 1, &p);
    set_pair(&p, 255, 254, 0); /* Round in a circle... */
    set_pair(&p, 254, 255, 0);
    assert_false(is_read(&p));
    open_paired(kit, 1, &p);
    set_pair(&p, p.pairs[2 * 255 + 1], 255, 0); /* ...and by what comes second. */
    assert_false(is_read(&p));
    open_paired(kit, 1, &p); /* A scan would take the rule for one of another operator. */
    set_pair(&p, 254, p.bytes[GRAFT_RULE_HEAD - 1], p.bytes[GRAFT_RULE_HEAD]);
    p.bytes[GRAFT_RULE_HEAD - 1] = 254;
    memmove(&p.bytes[GRAFT_RULE_HEAD], &p.bytes[GRAFT_RULE_HEAD + 1],
            --p.offsets[1] - GRAFT_RULE_HEAD);
    assert_false(is_read(&p));
}

/* Bytes from a block of their own, so that a sanitizer sees a reading past the end. */
CHECK_CASE(test_cut_off)
{
    paired p;
    open_paired(policy_kit_open(env, &policy_kit_plain), 1, &p);
    const uint32_t size = p.offsets[1];
    for (uint32_t cut = 0; cut < size; cut++) {
        uint8_t *part = malloc(cut + 1);
        assert_non_null(part);
        memcpy(part, p.bytes, cut);
        p.policy.rules = part;
        p.offsets[1] = cut;
        assert_false(is_read(&p));
        free(part);
    }
}

/* Whatever one byte of rule and table becomes: refused, or a rule that passes the check. */
CHECK_CASE(test_survives_changes)
{
    paired p;
    uint32_t read = 0;
    open_paired(policy_kit_open(env, &policy_kit_plain), 2, &p);
    for (uint32_t i = 0; i < GRAFT_PAIRS_BYTES + p.offsets[1]; i++) {
        uint8_t *byte = i < GRAFT_PAIRS_BYTES ? &p.pairs[i] : &p.bytes[i - GRAFT_PAIRS_BYTES];
        const uint8_t was = *byte;
        for (uint32_t value = 0; value < 256; value++) {
            *byte = (uint8_t)value;
            read += is_read(&p);
        }
        *byte = was;
    }
    print_message("# %u of the changed ones are rules\n", read);
    assert_true(read > 0);
}

/* From a family to a proved set: what must be in it, that nothing gets in without an answer of the
 * solver, and that the bytes are the same from any number of processes. */
#include "verify/generate.h"

#include "graph/rule/ruleprint.h"
#include "tests/support/check.h"

#include <string.h>

/* Normalisation folded into a convolution, and small laws of relu around it. */
static const char *const family_text =
    "family: test\n"
    "order: 1\n"
    "about: folding\n"
    "sets:\n"
    "  - set: fold\n"
    "    depth: 2\n"
    "    sizes: {N: 2, C: 3, H: 4, W: 5, O: 2}\n"
    "    inputs:\n"
    "      x: [N, C, H, W]\n"
    "    weights:\n"
    "      w: [O, C, 3, 3]\n"
    "      s: [O]\n"
    "      t: [O]\n"
    "    compounds:\n"
    "      scale_kernel:\n"
    "        inputs: [w, s]\n"
    "        roles: [weight, weight]\n"
    "        rank: 4\n"
    "        steps:\n"
    "          column: {op: reshape, of: [s], dim: [O, 1, 1, 1]}\n"
    "          scaled: {op: mul, of: [w, column]}\n"
    "        outputs: [scaled]\n"
    "    operators:\n"
    "      - {op: conv, roles: [activation, weight], stride: [1, 2], pad: 1}\n"
    "      - {op: conv_bias, roles: [activation, weight, weight], stride: [1, 2], pad: 1}\n"
    "      - {op: scale_shift, roles: [activation, weight, weight]}\n"
    "      - {op: relu, roles: [activation]}\n";

static graft_generate_options quick_options(void)
{
    graft_generate_options options = graft_generate_defaults();
    options.check.points = 200;
    options.check.cover = 6;
    return options;
}

static void generate(graft_env *env, const graft_generate_options *options, graft_ruleset *set,
                     graft_generate_counts *counts)
{
    graft_gen_family *family = GRAFT_NEW(env->life, graft_gen_family, 1);
    CHECK_OK(
        graft_gen_family_parse(env, env->life, "text", family_text, strlen(family_text), family));
    CHECK_OK(graft_generate(env, family, 1, options, set, counts));
}

CHECK_CASE(test_fold)
{
    const graft_generate_options options = quick_options();
    graft_ruleset set;
    graft_generate_counts counts;
    env->thread_count = 2;
    generate(env, &options, &set, &counts);
    bool folds = false;
    bool idempotent = false;
    for (uint32_t i = 0; i < set.count; i++) {
        const graft_rule_entry *e = &set.entries[i];
        const char *line = graft_rule_print_line(env->life, &e->rule);
        folds = folds || strcmp(line, "scale_shift(conv#1(a, b), c, d) = conv_bias#1(a, mul(b, "
                                      "reshape(c, dim=[dim(c,0), 1, 1, 1])), d, "
                                      "activation=none)") == 0;
        idempotent = idempotent || strcmp(line, "relu(relu(a)) = relu(a)") == 0;
        assert_int_equal(e->proof, GRAFT_PROOF_UNBOUNDED); /* Nothing within bounds is kept. */
        assert_string_equal(e->reason, "");
        assert_true(e->cover > 0 && e->cover_bytes > 0 && e->points >= e->cover);
    }
    assert_true(folds && idempotent);
    assert_int_equal(set.count, counts.proved);
    assert_int_equal(counts.rules, counts.proved + counts.dropped + counts.refuted + counts.thin +
                                       counts.unknown + counts.bounded);
}

/* The solver says nothing, or may take nothing: no rule gets in. */
static void test_no_answer(graft_env *env, bool mute)
{
    graft_generate_options options = quick_options();
    graft_ruleset set;
    graft_generate_counts counts;
    options.check.prove.solver_is_mute = mute;
    if (!mute) {
        options.check.prove.most = (graft_effort){1, 1};
    }
    env->thread_count = 2;
    generate(env, &options, &set, &counts);
    assert_int_equal(set.count, 0);
    assert_int_equal(counts.proved, 0);
    assert_true(counts.unknown > 0);
    assert_int_equal(counts.rules, counts.refuted + counts.thin + counts.unknown);
}

CHECK_CASE(test_mute_solver) { test_no_answer(env, true); }

CHECK_CASE(test_no_share) { test_no_answer(env, false); }

static void write_set(graft_env *env, uint32_t threads, const char *path)
{
    const graft_generate_options options = quick_options();
    graft_ruleset set;
    graft_generate_counts counts;
    env->thread_count = threads;
    generate(env, &options, &set, &counts);
    CHECK_OK(graft_rulefile_write(env, path, &set));
}

CHECK_CASE(test_same_bytes)
{
    const char *one = check_path("one");
    const char *three = check_path("three");
    write_set(env, 1, one);
    write_set(env, 3, three);
    check_same_files(one, three);
}

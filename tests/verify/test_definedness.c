/* What divisions by 0 and roots of negative numbers make undefined: the elements that they reach,
 * no others (verify/instances/guarded.h). Each rule is put before the proof for all sizes alone, and before
 * Z3 at instances alone. */
#include "verify/sizes/symbolic.h"

#include "graph/rule/ruleparse.h"
#include "tests/support/check.h"
#include "verify/trial.h"

static const char *const true_rules[] = {
    /* What is not read may be undefined, on either side. */
    "slice#1(sqrt(a)) = sqrt(slice#1(a))",
    "sqrt(slice#1(a)) = slice#1(sqrt(a))",
    "split#1(div(a, b)).0 = div(split#1(a).0, split(b, axis=#1.axis, at=#1.at).0) "
    "where same_shape(a, b)",
    "transpose#1(div(a, b)) = div(transpose#1(a), b) where rank(b) = 0",
    /* What is read by pieces. */
    "sqrt(concat#1(a, b)) = concat#1(sqrt(a), sqrt(b))",
    "concat#1(sqrt(a), sqrt(b)) = sqrt(concat#1(a, b))",
    "pad#1(sqrt(a), value=1.0) = sqrt(pad#1(a, value=1.0))",
    /* All elements along an axis reach a sum. */
    "reduce_sum#1(mul(sqrt(a), b)) = reduce_sum#1(mul(b, sqrt(a)))",
    "matmul(div(a, b), c) = div(matmul(a, c), b) where rank(b) = 0",
    "mul(reduce_sum(sqrt(a), axes=2, keep=1), sqrt(slice(a, axis=1, start=0, end=1))) = "
    "mul(sqrt(slice(a, axis=1, start=0, end=1)), reduce_sum(sqrt(a), axes=2, keep=1)) "
    "where rank(a) = 2",
    /* Where the source is undefined the target may be anything. */
    "mul(div(a, b), b) = a",
    "mul(sqrt(a), sqrt(a)) = a",
    /* A divisor that is never 0 has no infinity. */
    "relu(div(a, exp(b))) = div(relu(a), exp(b))",
    "div(relu(a), exp(b)) = relu(div(a, exp(b)))",
    /* Nor does it matter what an infinity becomes here. */
    "max(add(min(div(a, b), c), fill(value=1, dim=[])), add(c, fill(value=1, dim=[]))) = "
    "add(c, fill(value=1, dim=[])) where same_shape(a, c) and same_shape(b, c)",
    /* A divisor that is not 0 since it divides elsewhere too. */
    "mul(relu(div(a, mul(b, b))), div(a, b)) = mul(div(relu(a), mul(b, b)), div(a, b))",
};

static const char *const false_rules[] = {
    /* The target reads what the source does not. */
    "slice(sqrt(a), axis=0, start=0, end=1) = add(slice(sqrt(a), axis=0, start=0, end=1), "
    "slice(sub(sqrt(a), sqrt(a)), axis=0, start=1, end=2)) where rank(a) = 1",
    "split#1(div(a, b)).0 = add(split#1(div(a, b)).0, mul(fill(value=0, dim=[]), "
    "reduce_sum(div(a, b), axes=1, keep=1))) where rank(a) = 1 and same_shape(a, b)",
    "div(slice(a, axis=0, start=0, end=1), slice(b, axis=0, start=0, end=1)) = "
    "add(div(slice(a, axis=0, start=0, end=1), slice(b, axis=0, start=0, end=1)), "
    "reduce_max(mul(div(a, b), fill(value=0, dim=[])), axes=1, keep=1)) "
    "where rank(a) = 1 and same_shape(a, b)",
    "slice(sqrt(a), axis=0, start=1, end=2) = mul(slice(sqrt(a), axis=0, start=1, end=2), "
    "slice(div(a, a), axis=0, start=0, end=1)) where rank(a) = 1",
    "matmul(a, slice(sqrt(b), axis=1, start=0, end=1)) = "
    "slice(matmul(a, mul(sqrt(b), div(b, b))), axis=1, start=0, end=1) where rank(b) = 2",
    "reduce_sum(sqrt(slice(a, axis=0, start=0, end=2)), axes=1, keep=1) = "
    "add(reduce_sum(sqrt(slice(a, axis=0, start=0, end=2)), axes=1, keep=1), "
    "sub(sqrt(slice(a, axis=0, start=2, end=3)), sqrt(slice(a, axis=0, start=2, end=3)))) "
    "where rank(a) = 1",
    /* It divides where the source does not. */
    "add(a, b) = add(mul(div(a, b), b), b)",
    "mul(a, b) = mul(mul(div(a, b), b), b)",
    "mul(a, fill(value=0, dim=[])) = mul(fill(value=0, dim=[]), div(a, a))",
    "sub(a, a) = sub(div(a, a), div(a, a))",
    /* An infinity becomes a number. */
    "clip#1(div(a, b)) = clip#1(div(mul(a, b), mul(b, b)))",
    "relu(div(div(a, b), b)) = div(div(relu(a), b), b)",
    "max(div(a, b), c) = max(div(mul(a, b), mul(b, b)), c)",
    "sigmoid(div(a, b)) = sigmoid(div(mul(a, b), mul(b, b)))",
    "exp(div(a, b)) = exp(div(mul(a, b), mul(b, b)))",
    "reduce_max(div(a, b), axes=1, keep=1) = "
    "reduce_max(div(mul(a, b), mul(b, b)), axes=1, keep=1) where rank(a) = 1 and same_shape(a, b)",
    "scale_shift(relu(div(a, b)), c, d) = scale_shift(relu(div(mul(a, b), mul(b, b))), c, d) "
    "where same_shape(a, b)",
    /* Not false, but nothing is known of it where b is 0. */
    "relu(div(mul(a, b), b)) = relu(a)",
};

static graft_rule parse(graft_env *env, const char *text)
{
    graft_rule rule;
    if (graft_rule_parse(env, "rule", text, &rule) != GRAFT_OK) {
        fail_msg("%s: %s", text, env->message);
    }
    return rule;
}

static void check_for_all_sizes(graft_env *env, const char *const *rules, size_t count,
                                bool expected)
{
    const graft_prove_options options = graft_prove_defaults();
    for (size_t i = 0; i < count; i++) {
        graft_symbolic_result result;
        const graft_rule rule = parse(env, rules[i]);
        graft_symbolic_prove(env, &rule, NULL, 0, &options, &result);
        if (result.proved != expected) {
            fail_msg("%s: %s %s", rules[i], result.proved ? "proved" : "not proved", result.reason);
        }
    }
}

/* At the instances that a sweep would pick, without its verdict. */
static void check_at_instances(graft_env *env, const char *const *rules, size_t count,
                               bool expected)
{
    const graft_prove_options options = graft_prove_defaults();
    for (size_t i = 0; i < count; i++) {
        const graft_rule rule = parse(env, rules[i]);
        const graft_domain_options find = {
            .points = 24, .attempts = 80000, .enumerate = true, .seed = 1};
        graft_domain domain;
        graft_prove_result result;
        graft_domain_find(env, env->unit, &rule, &find, &domain);
        assert_true(domain.count > 0);
        graft_prove_rule(env, &rule, domain.points, domain.count, &options, &result);
        if ((result.verdict == GRAFT_VERDICT_PROVED) != expected) {
            fail_msg("%s: %s %s", rules[i], graft_verdict_name(result.verdict), result.reason);
        }
    }
}

static void test_true_rules(void **state)
{
    size_t count = sizeof true_rules / sizeof true_rules[0];
    check_for_all_sizes(*state, true_rules, count, true);
    check_at_instances(*state, true_rules, count, true);
}

static void test_false_rules(void **state)
{
    size_t count = sizeof false_rules / sizeof false_rules[0];
    check_for_all_sizes(*state, false_rules, count, false);
    check_at_instances(*state, false_rules, count, false);
}

/* The command's words: refuted with an input that shows it, or unknown, never proved. */
static void test_verdicts(void **state)
{
    enum { COUNT = sizeof false_rules / sizeof false_rules[0] };
    graft_env *env = *state;
    graft_rule rules[COUNT];
    graft_trial trials[COUNT];
    graft_trial_options options = graft_trial_defaults();
    uint32_t refuted = 0;
    options.suggest = false;
    env->thread_count = 2;
    for (uint32_t i = 0; i < COUNT; i++) {
        rules[i] = parse(env, false_rules[i]);
    }
    assert_int_equal(graft_trial_run(env, env->life, rules, COUNT, &options, trials), GRAFT_OK);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_not_equal(trials[i].verdict, GRAFT_VERDICT_PROVED);
        refuted += trials[i].verdict == GRAFT_VERDICT_REFUTED ? 1 : 0;
        if (trials[i].verdict != GRAFT_VERDICT_REFUTED) {
            print_message("%s: %s\n", false_rules[i], trials[i].reason);
        }
    }
    assert_true(refuted + 4 >= COUNT); /* Of three there are few instances; the last one is true. */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(test_true_rules),
        CHECK_TEST(test_false_rules),
        CHECK_TEST(test_verdicts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What the checker says of rules that are known to be true and of rules that are known to be false,
 * and what it says when the solver says nothing. */
#include "verify/check.h"

#include "graph/rule/ruleprint.h"
#include "tests/support/check.h"
#include "tests/support/known_rules.h"
#include "tests/support/rows.h"

/* Enough to refute what is false here and to prove what is true, in little time. */
static graft_check_options quick_options(void)
{
    graft_check_options options = graft_check_defaults();
    options.points = 200;
    options.cover = 6;
    return options;
}

static graft_check check_rule(graft_env *env, const graft_rule *rule,
                              const graft_check_options *options)
{
    graft_check check;
    graft_sweeper *sweeper = GRAFT_NEW(env->unit, graft_sweeper, 1);
    graft_sweep_open(sweeper);
    graft_check_rule(&(graft_checking){env, sweeper, options, rule, NULL}, &check);
    return check;
}

CHECK_CASE(test_true_rules)
{
    const graft_check_options options = quick_options();
    const known_rules known = known_rules_true(env, env->life);
    uint32_t proved = 0;
    for (uint32_t i = 0; i < known.count; i++) {
        graft_arena_reset(env->unit);
        graft_check check = check_rule(env, &known.rules[i], &options);
        if (check.outcome == GRAFT_CHECK_PROVED) {
            assert_true(check.prove.points == check.cover && check.cover > 0);
            assert_non_null(check.cover_points);
            proved++;
            continue;
        }
        print_message("# %s: %s\n", graft_check_outcome_name(check.outcome),
                      graft_rule_print_line(env->unit, &known.rules[i]));
        assert_true(check.outcome == GRAFT_CHECK_THIN || check.outcome == GRAFT_CHECK_UNKNOWN);
    }
    print_message("# %u of %u proved\n", proved, known.count);
    assert_true(proved + 4 >= known.count);
}

/* Rules with few instances within the bounds, or none: past them the filter tells the false one,
 * and the proof for all sizes has instances beside it. The last has no variables: no shape of it
 * can be changed past the bounds. */
CHECK_CASE(test_past_bounds)
{
    static const struct {
        const char *text;
        graft_check_outcome outcome;
    } rows[] = {
        {"relu(transpose(a, axis=[4, 3, 2, 1, 0])) = transpose(relu(a), axis=[4, 3, 2, 1, 0])",
         GRAFT_CHECK_PROVED                                                                                       },
        {"relu(transpose(a, axis=[4, 3, 2, 1, 0])) = transpose(relu(a), axis=[4, 2, 3, 1, 0])",
         GRAFT_CHECK_REFUTED                                                                                      },
        {"matmul(a, b) = mul(a, reshape(b, dim=[1, dim(b,0)])) "
         "where rank(a) = 2 and dim(b,1) = 1 and dim(a,1) <= 2",                       GRAFT_CHECK_PROVED},
        {"slice#1(fill#2(), axis=0) = fill(value=#2.value, dim=[#1.end - #1.start, #2.dim_1]) "
         "where #2.dim_2 = 0",                                                         GRAFT_CHECK_PROVED},
    };
    const graft_check_options options = quick_options();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        graft_rule rule;
        rule = rows_parse(env, rows[i].text);
        assert_int_equal(check_rule(env, &rule, &options).outcome, rows[i].outcome);
        graft_arena_reset(env->unit);
    }
}

/* Beside the engine's false rules: laws of squares, of integers, of one group, of small sizes. */
static const char *const false_rules[] = {
    "matmul(a, b) = matmul(b, a)",
    "relu(add(a, b)) = add(relu(a), relu(b))",
    "add(relu(a), mul(a, relu(a))) = mul(a, relu(add(a, fill(value=1.0, dim=[]))))",
    "avg_pool#1(relu(a)) = relu(avg_pool#1(a))",
    "conv#1(a, add(b, c)) = add(conv#1(a, b), conv#1(b, c))",
    "concat#1(a, b) = concat#1(b, a)",
    "max_pool#1(mul(a, b)) = mul(max_pool#1(a), max_pool#1(b))",
    "softmax#1(add(a, a)) = softmax#1(a)",
    "scale_shift(conv#1(a, b), c, d) = conv_bias#1(a, b, d, activation=none)",
    ("scale_shift(conv#1(a, b), c, d) = "
     "conv_bias#1(a, mul(b, reshape(c, dim=[1, dim(c,0), 1, 1])), d, activation=none) "
     "where dim(b,0) = dim(b,1)"),
    "clip#1(clip#2(a)) = clip(a, low=#1.low, high=fmin(#1.high, #2.high))",
    "transpose(transpose(a, axis=[1, 2, 0]), axis=[1, 2, 0]) = a",
    "sub(a, sub(b, c)) = sub(sub(a, b), c)",
    "mul(sigmoid(a), sigmoid(b)) = sigmoid(add(a, b))",
    /* Undefined at 0, where the source is not. */
    "div(div(exp(a), b), exp(a)) = div(div(a, b), a)",
};

CHECK_CASE(test_false_rules)
{
    const graft_check_options options = quick_options();
    const known_rules known = known_rules_false(env, env->life);
    uint32_t count = known.count + (uint32_t)(sizeof false_rules / sizeof false_rules[0]);
    for (uint32_t i = 0; i < count; i++) {
        graft_rule rule;
        graft_arena_reset(env->unit);
        if (i < known.count) {
            rule = known.rules[i];
        } else {
            rule = rows_parse(env, false_rules[i - known.count]);
        }
        graft_check check = check_rule(env, &rule, &options);
        if (check.outcome != GRAFT_CHECK_REFUTED) {
            fail_msg("%s: %s", graft_check_outcome_name(check.outcome),
                     graft_rule_print_line(env->unit, &rule));
        }
        assert_true(check.sweep.refuted);
    }
}

static uint8_t verdict_at(graft_env *env, const graft_rule *rule, const graft_check *check,
                          const graft_prove_options *options)
{
    graft_prove_result result;
    graft_prover prover;
    graft_prover_open(&prover, options, &result);
    graft_prove_points(env, &prover, rule, check->instances, check->cover);
    graft_prover_close(&prover);
    return result.verdict;
}

/* What the sweep refutes, the solver refutes too, if it is asked. */
CHECK_CASE(test_solver_refutes)
{
    const graft_check_options options = quick_options();
    graft_rule truth;
    graft_rule lie;
    truth = rows_parse(env, "sub(a, b) = sub(a, b)");
    lie = rows_parse(env, "sub(a, b) = sub(b, a)");
    graft_sweeper *sweeper = GRAFT_NEW(env->unit, graft_sweeper, 1);
    graft_sweep_open(sweeper);
    graft_check check;
    graft_check_sweep(&(graft_checking){env, sweeper, &options, &truth, NULL}, &check);
    assert_int_equal(check.outcome, GRAFT_CHECK_SWEPT);
    assert_int_equal(verdict_at(env, &lie, &check, &options.prove), GRAFT_VERDICT_REFUTED);
    assert_int_equal(verdict_at(env, &truth, &check, &options.prove), GRAFT_VERDICT_PROVED);
}

/* No answer is no proof: neither when the solver says nothing, nor when it may do nothing. */
CHECK_CASE(test_no_answer)
{
    graft_check_options mute = quick_options();
    mute.prove.solver_is_mute = true;
    graft_check_options starved = quick_options();
    starved.prove.resource_limit = 1;
    graft_check_options poor = quick_options();
    poor.prove.most = (graft_effort){1, 1};
    graft_rule rule;
    rule = rows_parse(env, "max_pool#1(clip#2(a)) = clip#2(max_pool#1(a))");
    assert_int_equal(check_rule(env, &rule, &mute).outcome, GRAFT_CHECK_UNKNOWN);
    assert_int_equal(check_rule(env, &rule, &starved).outcome, GRAFT_CHECK_UNKNOWN);
    graft_check check = check_rule(env, &rule, &poor);
    assert_int_equal(check.outcome, GRAFT_CHECK_UNKNOWN);
    assert_string_equal(check.prove.reason, GRAFT_PROVE_SPENT);
}

/* False rules that a sweep and the solver had once let through, because none of the samples had the
 * shapes that tell: several groups, tensors of lower rank that broadcast elsewhere, empty paddings.
 */
#include "graph/rule/ruleparse.h"
#include "tests/support/check.h"
#include "verify/sizes/symbolic.h"
#include "verify/trial.h"

static const char *const texts[] = {
    ("conv_bias#1(concat(a, b, axis=1), concat#2(c, d), e, groups=1) = conv_bias#1(concat(b, a, "
     "axis=1), concat(d, c, axis=1), e, groups=1) where same_shape(a, b)"),
    ("conv_bias#1(a, concat#2(b, c), concat#3(d, e)) = concat(conv_bias#1(a, b, d), "
     "conv_bias#1(a, c, e), axis=1)"),
    "add(conv#1(a, b), conv#1(c, d)) = conv#1(concat(a, c, axis=1), concat(b, d, axis=1))",
    ("add(conv#1(a, b), conv_bias#1(c, d, e, activation=none)) = conv_bias#1(concat(a, c, "
     "axis=1), concat(b, d, axis=1), e, activation=none)"),
    ("add(conv#1(a, b, stride_h=1, pad_left=#1.pad_top, pad_bottom=#1.pad_top, "
     "pad_right=#1.pad_top, dilation_w=#1.dilation_h), conv_bias#2(a, c, d, stride_h=1, "
     "stride_w=#1.stride_w, pad_top=0, pad_left=0, pad_bottom=0, groups=#1.groups, "
     "activation=none)) = conv_bias#1(a, add(b, pad(pad(c, axis=2, before=#1.pad_top, "
     "after=#1.pad_top, value=0), axis=3, before=#1.pad_top, after=#1.pad_top, value=0)), "
     "d, stride_h=1, pad_left=#1.pad_top, pad_bottom=#1.pad_top, pad_right=#1.pad_top, "
     "dilation_w=#1.dilation_h, activation=none) where dim(b,-1) = dim(b,-2) and dim(c,-1) "
     "= 1"),
    ("pad#1(pad#2(conv#3(a, b), before=#1.before, after=#1.before, value=0), "
     "after=#1.before, value=0) = conv(a, b, stride_h=#3.stride_h, stride_w=#3.stride_w, "
     "pad_top=#3.pad_top + #1.before, pad_left=#3.pad_left + #1.before, "
     "pad_bottom=#3.pad_bottom + #1.before, pad_right=#3.pad_right + #1.before, "
     "dilation_h=#3.dilation_h, dilation_w=#3.dilation_w, groups=#3.groups) where "
     "dim(b,-1) = 1 and #3.groups = dim(b,-2)"),
    "conv#1(mul(a, b), c) = conv#1(b, mul(a, c)) where rank(a) = 3 and dim(a,-2) = 1",
    "add(matmul(a, b), matmul(c, d)) = matmul(concat(a, c, axis=1), concat(b, d, axis=0))",
    ("add(matmul(a, b), matmul(c, d)) = matmul(concat(a, c, axis=1), concat(b, d, axis=0)) "
     "where rank(a) <= 6"),
    ("add(matmul(a, b), matmul(c, d)) = matmul(concat(a, c, axis=1), concat(b, d, axis=0)) "
     "where rank(b) <= 7"),
    "conv#1(a, mul(b, c)) = conv#1(mul(a, b), c) where rank(b) = 3 and dim(b,-1) = 1",
    ("scale_shift(a, reshape#1(mul(b, c)), d) = scale_shift(mul(a, b), reshape#1(c), d) "
     "where dim(c,-1) = 1"),
    ("scale_shift(mul(a, b), reshape#1(c), d) = scale_shift(b, reshape#1(mul(a, c)), d) "
     "where rank(b) = 4"),
    ("scale_shift(mul(a, b), c, reshape#1(a)) = scale_shift(b, mul(c, reshape#1(a)), "
     "reshape#1(a)) where dim(c,-1) = dim(a,-3)"),
    ("scale_shift(mul(a, b), c, reshape#1(a)) = scale_shift(b, mul(c, reshape#1(a)), "
     "reshape#1(a)) where rank(a) = 3 and rank(b) = 4"),
    ("scale_shift(a, reshape#1(b), mul(c, reshape#1(b))) = mul(b, scale_shift(a, "
     "fill(value=1, dim=[#1.dim_0]), c)) where rank(b) = 4"),
    ("scale_shift(a, mul(b, reshape#1(c)), reshape#1(c)) = mul(c, scale_shift(a, b, "
     "fill(value=1, dim=[#1.dim_0]))) where rank(a) = 4 and dim(c,-1) = 1 and dim(c,-2) = "
     "1"),
    ("scale_shift(a, mul(b, reshape#1(c)), reshape#1(c)) = scale_shift(mul(a, c), b, "
     "reshape#1(c)) where rank(a) = 4 and dim(c,-1) = 1 and dim(c,-2) = 1"),
    ("scale_shift(a, mul(b, reshape#1(c)), mul(b, reshape#1(c))) = mul(c, scale_shift(a, "
     "b, b)) where rank(c) = 3"),
};

enum { ROWS = sizeof texts / sizeof texts[0] };

/* dim(b,0) to the 24th power, which these rules have as sizes: 1, but a product of so many factors
 * that the proof for all sizes once lost those behind them and took them for 1 too. */
#define SIX_SIZES  "dim(b,0) * dim(b,0) * dim(b,0) * dim(b,0) * dim(b,0) * dim(b,0)"
#define MANY_SIZES SIX_SIZES " * " SIX_SIZES " * " SIX_SIZES " * " SIX_SIZES

/* False rules that the proof for all sizes had accepted because a limit of its own was met. */
static const char *const past_limits[] = {
    ("add(reduce_sum(a, axes=3, keep=0), b) = add(reduce_max(reshape(a, dim=[" MANY_SIZES
     ", dim(a,0), dim(a,1)]), axes=7, keep=0), b) where rank(a) = 2 and rank(b) = 1 and dim(b,0) "
     "<= 1"),
    ("mul(matmul(a, c), b) = mul(matmul(transpose(reshape(a, dim=[" MANY_SIZES
     ", dim(a,1), dim(a,0)]), axis=[0, 2, 1]), c), b) where rank(a) = 2 and rank(c) = 2 and "
     "rank(b) = 3 and dim(b,0) <= 1 and dim(b,1) = 1 and dim(b,2) = 1"),
};

enum { PAST_LIMITS = sizeof past_limits / sizeof past_limits[0] };

/* The proof alone: nothing is swept that would find them false before. */
static void test_past_limits(void **state)
{
    graft_env *env = *state;
    uint32_t accepted = 0;
    for (uint32_t i = 0; i < PAST_LIMITS; i++) {
        graft_rule rule;
        graft_symbolic_result result;
        const graft_prove_options options = graft_prove_defaults();
        if (graft_rule_parse(env, "rule", past_limits[i], &rule) != GRAFT_OK) {
            fail_msg("%s: %s", past_limits[i], env->message);
        }
        graft_symbolic_prove(env, &rule, NULL, 0, &options, &result);
        if (result.proved) {
            print_message("# proved for all sizes: %s\n", past_limits[i]);
        }
        accepted += result.proved ? 1 : 0;
    }
    assert_int_equal(accepted, 0);
}

static void test_refused(void **state)
{
    graft_env *env = *state;
    graft_rule rules[ROWS];
    graft_trial trials[ROWS];
    graft_trial_options options = graft_trial_defaults();
    uint32_t refuted = 0;
    options.suggest = false;
    options.check.cover = 4;
    env->thread_count = 2;
    for (uint32_t i = 0; i < ROWS; i++) {
        if (graft_rule_parse(env, "rule", texts[i], &rules[i]) != GRAFT_OK) {
            fail_msg("%s: %s", texts[i], env->message);
        }
    }
    assert_int_equal(graft_trial_run(env, env->life, rules, ROWS, &options, trials), GRAFT_OK);
    for (uint32_t i = 0; i < ROWS; i++) {
        if (trials[i].verdict == GRAFT_VERDICT_PROVED ||
            trials[i].verdict == GRAFT_VERDICT_WITHIN_BOUNDS) {
            fail_msg("proved: %s", texts[i]);
        }
        refuted += trials[i].verdict == GRAFT_VERDICT_REFUTED ? 1 : 0;
    }
    assert_true(refuted + 2 >= ROWS); /* Some have too few instances to be refuted for sure. */
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECK_TEST(test_refused), CHECK_TEST(test_past_limits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

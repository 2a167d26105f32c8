/* Rules that hold at every instance within the bounds of the sweep and are false past them: they
 * are refuted all the same. All were in a rule set once, as `bounded`. */
#include "verify/check.h"

#include "graph/rule/ruleparse.h"
#include "tests/support/check.h"

static const struct {
    const char *text;
    bool holds;
} cases[] = {
  /* Slopes above 2. */
    {"max(a, leaky_relu#1(leaky_relu(a, slope=0.5))) = "
     "leaky_relu(leaky_relu(a, slope=fmax(#1.slope, 0.5)), slope=fmin(#1.slope, 0.5))", false},
 /* Rank 5, where an axis counted from the front is another one than counted from the back. */
    {"add(a, global_avg_pool(b)) = reduce_mean(add(a, b), axes=12, keep=1)",                 false},
    {"scale_shift(a, fill#1(value=1.0), b) = "
     "add(a, reshape(b, dim=[#1.dim_0, dim(a,3) - dim(a,2), 1]))",                      false},
    {"scale_shift(add(a, b), fill#1(value=1.0), c) = "
     "add(b, scale_shift(a, fill#1(value=1.0), c)) where rank(a) = 4",                  false},
 /* Sizes above the constant. */
    {"slice#1(pad#2(a, axis=0)) = pad#1(slice(a, axis=#1.axis, start=#1.start, end=4), "
     "before=#2.before, after=#2.after + #2.before, value=#2.value) where rank(a) = 2", false},
 /* Sizes that are told by others, larger than the bounds. */
    {"pad#1(slice#2(a, axis=0), axis=0, after=1) = "
     "slice(pad#1(a, axis=0, after=1 + #1.before), axis=0, start=#2.start, end=dim(a,1) - 1) "
     "where rank(a) = 2 and #2.end = dim(a,-2)",                                        false},
    {"relu(concat#1(a, b)) = concat#1(relu(a), relu(b))",                                    true },
    {"add(global_avg_pool(a), global_avg_pool(b)) = global_avg_pool(add(a, b))",             true },
    {"max(leaky_relu#1(a), leaky_relu#2(a)) = "
     "leaky_relu(a, slope=fmin(#1.slope, #2.slope))",                                   true },
};

static void test_cases(void **state)
{
    graft_env *env = *state;
    const graft_check_options options = graft_check_defaults();
    graft_sweeper *sweeper = GRAFT_NEW(env->life, graft_sweeper, 1);
    uint32_t wrong = 0;
    graft_sweep_open(sweeper);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        graft_rule rule;
        graft_check check;
        if (graft_rule_parse(env, "rule", cases[i].text, &rule) != GRAFT_OK) {
            fail_msg("%s", env->message);
        }
        graft_check_sweep(env, sweeper, &rule, NULL, &options, &check);
        bool holds = check.outcome == GRAFT_CHECK_SWEPT;
        if (holds != cases[i].holds || (!holds && check.outcome != GRAFT_CHECK_REFUTED)) {
            print_message("# %s: %s\n", cases[i].text, graft_check_outcome_name(check.outcome));
            wrong++;
        }
        graft_arena_reset(env->unit);
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECK_TEST(test_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

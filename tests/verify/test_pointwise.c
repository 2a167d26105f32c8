/* Rules of elementwise operators: scalars stand for all shapes (symcase.h). */
#include "graph/rule/ruleparse.h"
#include "tests/support/check.h"
#include "verify/sizes/symbolic.h"

static const struct {
    const char *text;
    bool proved;
} cases[] = {
    {"relu(relu(a)) = relu(a)",                                                 true },
    {"mul(a, add(b, c)) = add(mul(a, b), mul(a, c))",                           true },
    {"mul(a, div(b, c)) = div(mul(a, b), c)",                                   true },
    {"sub(a, a) = fill(value=0.0, dim=[dim(a,0), dim(a,1)]) where rank(a) = 2", true },
    {"add(a, sigmoid(b)) = add(sigmoid(b), a)",                                 true },
    {"sub(a, b) = sub(b, a)",                                                   false},
    {"div(mul(a, b), b) = div(mul(a, a), a)",                                   false},
    {"relu(clip#1(a, low=0)) = clip#1(a, low=0)",                               true },
    {"relu(clip#1(a)) = clip#1(a)",                                             false},
    {"mul(a, fill#1(value=1.0)) = a",                                           true },
    {"mul(a, fill#1()) = a",                                                    false},
    {"add(a, fill#1()) = add(fill#1(), a)",                                     true },
};

static void test_cases(void **state)
{
    graft_env *env = *state;
    const graft_prove_options options = graft_prove_defaults();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        graft_rule rule;
        graft_symbolic_result result;
        if (graft_rule_parse(env, "rule", cases[i].text, &rule) != GRAFT_OK) {
            fail_msg("%s", env->message);
        }
        graft_symbolic_prove(env, &rule, NULL, 0, &options, &result);
        if (result.proved != cases[i].proved) {
            fail_msg("%s: %s", cases[i].text, result.reason);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECK_TEST(test_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Which rules are proved for all sizes by a proof for scalars. */
#include "verify/instances/pointwise.h"

#include "graph/rule/ruleparse.h"
#include "tests/support/check.h"
#include "verify/check.h"

static const struct {
    const char *text;
    bool pointwise;
    uint8_t verdict; /* Of the solver on the scalar rule. */
} cases[] = {
    {"relu(relu(a)) = relu(a)",                                                 true,  GRAFT_VERDICT_PROVED },
    {"mul(a, add(b, c)) = add(mul(a, b), mul(a, c))",                           true,  GRAFT_VERDICT_PROVED },
    {"mul(a, div(b, c)) = div(mul(a, b), c)",                                   true,  GRAFT_VERDICT_PROVED },
    {"sub(a, a) = fill(value=0.0, dim=[dim(a,0), dim(a,1)]) where rank(a) = 2", true,
     GRAFT_VERDICT_PROVED                                                                                   },
    {"add(a, sigmoid(b)) = add(sigmoid(b), a)",                                 true,  GRAFT_VERDICT_PROVED },
    {"sub(a, b) = sub(b, a)",                                                   true,  GRAFT_VERDICT_REFUTED},
    {"div(mul(a, b), b) = div(mul(a, a), a)",                                   true,  GRAFT_VERDICT_REFUTED},
    {"relu(clip#1(a, low=0)) = clip#1(a, low=0)",                               false, 0                    },
    {"mul(a, fill#1(value=1.0)) = a",                                           true,  GRAFT_VERDICT_PROVED },
    {"add(a, fill#1()) = add(fill#1(), a)",                                     false, 0                    },
    {"relu(concat#1(a, b)) = concat#1(relu(a), relu(b))",                       false, 0                    },
    {"matmul(a, add(b, c)) = add(matmul(a, b), matmul(a, c))",                  false, 0                    },
};

static void test_cases(void **state)
{
    graft_env *env = *state;
    const graft_prove_options options = graft_prove_defaults();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        graft_rule rule;
        graft_rule scalar;
        graft_point point;
        if (graft_rule_parse(env, "rule", cases[i].text, &rule) != GRAFT_OK) {
            fail_msg("%s", env->message);
        }
        if (graft_pointwise_rule(&rule, &scalar, &point) != cases[i].pointwise) {
            fail_msg("%s", cases[i].text);
        }
        if (cases[i].pointwise) {
            graft_prove_result result;
            graft_prove_rule(env, &scalar, &point, 1, &options, &result);
            if (result.verdict != cases[i].verdict) {
                fail_msg("%s: %s", cases[i].text, graft_verdict_name(result.verdict));
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECK_TEST(test_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

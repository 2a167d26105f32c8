/* Obligations as SMT-LIB: read back from their text, true claims are unsat and false ones are not.
 */
#include "verify/smt.h"

#include "graph/ruleparse.h"
#include "tests/support/check.h"
#include "verify/domain.h"

#include <string.h>
#include <z3.h>

static const struct {
    const char *text;
    bool unbounded;
    bool holds;
} cases[] = {
    {"relu(relu(a)) = relu(a)",                                                       true,  true },
    {"mul(a, div(b, c)) = div(mul(a, b), c)",                                         true,  true },
    {"sub(a, b) = sub(b, a)",                                                         true,  false},
    {"relu(mul(a, fill#1(value=-0.75))) = mul(relu(a), fill#1(value=-0.75))",         true,  false},
    {"mul(a, fill#1(value=-0.75)) = mul(fill#1(value=-0.75), a)",                     true,  true },
    {"add(mul(a, fill#1(value=0.75)), mul(a, fill#2(value=0.25))) = a",               true,  true },
    {"mul(div(a, b), b) = a",                                                         true,  true },
    {"add(a, sub(b, b)) = add(a, sub(div(a, b), div(a, b)))",                         true,  false}, /* Only undefined. */
    {"add(a, sub(b, b)) = mul(div(a, b), b)",                                         true,  false}, /* Divides by 0. */
    {"relu(a) = div(mul(relu(a), sigmoid(a)), sigmoid(a))",                           true,  true },
    {"add(tanh(a), tanh(sub(b, a))) = sub(tanh(a), tanh(sub(a, b)))",                 true,  true },
    {"matmul(add(a, b), c) = add(matmul(a, c), matmul(b, c)) where same_shape(a, b)", false, true },
    {"matmul(a, b) = matmul(b, a)",                                                   false, false},
};

typedef struct {
    uint32_t unsat;
    uint32_t sat;
} tally;

/* Puts the text to Z3 as a stranger would: through its reader. */
static tally run_text(const char *text)
{
    tally found = {0, 0};
    Z3_config config = Z3_mk_config();
    Z3_context z3 = Z3_mk_context(config);
    Z3_del_config(config);
    (void)Z3_eval_smtlib2_string(z3, "(set-option :rlimit 3000000)");
    const char *answers = Z3_eval_smtlib2_string(z3, text);
    for (const char *at = answers; *at != '\0'; at += strcspn(at, "\n") + 1) {
        found.unsat += strncmp(at, "unsat\n", 6) == 0 ? 1 : 0;
        found.sat += strncmp(at, "sat\n", 4) == 0 ? 1 : 0;
        if (strncmp(at, "(error", 6) == 0) {
            fail_msg("%.*s", (int)strcspn(at, "\n"), at);
        }
    }
    Z3_del_context(z3);
    return found;
}

static void read_rule(graft_env *env, const char *text, graft_rule *rule, graft_domain *domain)
{
    const graft_domain_options options = {.points = 8, .attempts = 20000, .seed = 5};
    if (graft_rule_parse(env, "rule", text, rule) != GRAFT_OK) {
        fail_msg("%s", env->message);
    }
    graft_domain_find(env, env->unit, rule, &options, domain);
    assert_true(domain->count > 0);
}

static void test_answers(void **state)
{
    graft_env *env = *state;
    uint32_t failed = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        graft_rule rule;
        graft_domain domain;
        graft_buffer text = {.arena = env->unit};
        uint32_t checks = 0;
        read_rule(env, cases[i].text, &rule, &domain);
        const graft_smt_claim claim = {.title = cases[i].text,
                                       .solver = "nobody",
                                       .rule = &rule,
                                       .points = domain.points,
                                       .count = domain.count,
                                       .unbounded = cases[i].unbounded};
        assert_int_equal(graft_smt_print(env, &claim, &text, &checks), GRAFT_OK);
        assert_int_equal(checks, domain.count + (cases[i].unbounded ? 1 : 0));
        tally found = run_text(text.data);
        if (found.unsat + found.sat != checks || (found.sat == 0) != cases[i].holds) {
            print_message("# %s: %u unsat, %u sat\n", cases[i].text, found.unsat, found.sat);
            failed++;
        }
    }
    assert_int_equal(failed, 0);
}

static void test_refusals(void **state)
{
    graft_env *env = *state;
    graft_rule rule;
    graft_domain domain;
    graft_buffer text = {.arena = env->unit};
    uint32_t checks = 0;
    read_rule(env, "matmul(a, b) = matmul(a, identity(b))", &rule, &domain);
    graft_smt_claim claim = {
        .solver = "nobody", .rule = &rule, .points = domain.points, .count = 1, .unbounded = true};
    domain.points[0].vars[0].dims[domain.points[0].vars[0].rank - 1] = 77;
    check_failed(env, graft_smt_print(env, &claim, &text, &checks), GRAFT_BAD_INPUT,
                 "is no instance");
    assert_int_equal(text.size, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECK_TEST(test_answers), CHECK_TEST(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

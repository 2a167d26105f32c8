/* Derivations of rules from others. */
#include "verify/set/derive.h"

#include "graph/rule/ruleparse.h"
#include "tests/support/check.h"
#include "verify/sweep/domain.h"

static graft_rule *parse(graft_env *env, const char *text)
{
    graft_rule *rule = GRAFT_NEW(env->life, graft_rule, 1);
    if (graft_rule_parse(env, "rule", text, rule) != GRAFT_OK) {
        fail_msg("%s", env->message);
    }
    return rule;
}

static bool derive(graft_env *env, const graft_rulebook *book, const char *text, uint32_t steps,
                   graft_derivation *derivation)
{
    const graft_rule *rule = parse(env, text);
    const graft_domain_options options = {.points = 20, .attempts = 20000, .seed = 1};
    graft_domain domain;
    graft_domain_find(env, env->life, rule, &options, &domain);
    assert_true(domain.count > 0);
    return graft_derive(graft_deriver_new(env->life), rule, &domain.points[0], book, steps,
                        derivation);
}

static graft_rulebook make_book(graft_env *env)
{
    static const char *const rules[] = {
        "relu(relu(a)) = relu(a)",
        "sub(a, add(b, c)) = sub(sub(a, b), c)",
        "identity(a) = a",
        "concat#1(relu(a), relu(b)) = relu(concat#1(a, b))",
    };
    graft_rulebook book;
    graft_rulebook_open(&book, env->life);
    for (uint32_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        graft_rulebook_add(&book, parse(env, rules[i]), 10 + i);
    }
    return book;
}

static void test_steps(void **state)
{
    graft_env *env = *state;
    const graft_rulebook book = make_book(env);
    const char *thrice = "concat#1(relu(relu(a)), relu(identity(b))) = relu(concat#1(a, b))";
    graft_derivation d;
    assert_true(derive(env, &book, thrice, 3, &d));
    assert_int_equal(d.count, 3);
    uint32_t seen = 0;
    for (uint32_t i = 0; i < d.count; i++) {
        seen |= 1u << (d.steps[i] - 10);
    }
    assert_int_equal(seen, 1u | 4u | 8u);
    assert_false(derive(env, &book, thrice, 2, &d));
    assert_int_equal(d.count, 0);
}

/* A renaming, a rule in a context, commuted operands: one step each. */
static void test_one_step(void **state)
{
    graft_env *env = *state;
    const graft_rulebook book = make_book(env);
    graft_derivation d;
    assert_true(derive(env, &book, "sub(c, add(a, b)) = sub(sub(c, a), b)", 1, &d));
    assert_true(derive(env, &book, "sub(a, add(c, b)) = sub(sub(a, b), c)", 1, &d));
    assert_true(derive(env, &book, "tanh(sub(a, add(b, c))) = tanh(sub(sub(a, b), c))", 1, &d));
    assert_int_equal(d.steps[0], 11);
    assert_false(derive(env, &book, "sub(a, add(b, c)) = sub(sub(b, a), c)", 3, &d));
    assert_false(derive(env, &book, "sub(sub(a, b), c) = sub(a, add(b, c))", 3, &d));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(test_steps),
        CHECK_TEST(test_one_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

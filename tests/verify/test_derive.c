/* Derivations of rules from others. */
#include "verify/set/derive.h"

#include "tests/support/check.h"
#include "tests/support/rows.h"
#include "verify/sweep/domain.h"

static graft_rule *parse(graft_env *env, const char *text)
{
    graft_rule *rule = GRAFT_NEW(env->life, graft_rule, 1);
    *rule = rows_parse(env, text);
    return rule;
}

static const graft_point *find_point(graft_env *env, const graft_rule *rule)
{
    const graft_domain_options options = {.points = 20, .attempts = 20000, .seed = 1};
    const graft_domain domain = graft_domain_find(env, env->life, rule, &options);
    assert_true(domain.count > 0);
    return domain.points;
}

/* In how many steps a rule follows; 0: it does not. */
static uint32_t derive(graft_env *env, const graft_rulebook *book, const char *text,
                       graft_derivation *derivation)
{
    const graft_rule *rule = parse(env, text);
    bool derived = graft_derive(graft_deriver_new(env->life), rule, find_point(env, rule), book,
                                false, derivation);
    assert_true(derived == (derivation->count > 0));
    return derivation->count;
}

static bool derive_downhill(graft_env *env, const graft_rulebook *book, const char *text)
{
    const graft_rule *rule = parse(env, text);
    graft_derivation derivation;
    return graft_derive(graft_deriver_new(env->life), rule, find_point(env, rule), book, true,
                        &derivation);
}

static bool equate(graft_env *env, const graft_rulebook *book, const char *text,
                   graft_derivation sides[2])
{
    const graft_rule *rule = parse(env, text);
    return graft_equate(graft_deriver_new(env->life), graft_deriver_new(env->life), rule,
                        find_point(env, rule), book, sides);
}

static graft_rulebook book_of(graft_env *env, const char *const *rules, uint32_t count)
{
    graft_rulebook book;
    graft_rulebook_open(&book, env->life);
    for (uint32_t i = 0; i < count; i++) {
        graft_rulebook_add(&book, parse(env, rules[i]), 10 + i);
    }
    return book;
}

static graft_rulebook make_book(graft_env *env)
{
    static const char *const rules[] = {
        "relu(relu(a)) = relu(a)",
        "sub(a, add(b, c)) = sub(sub(a, b), c)",
        "identity(a) = a",
        "concat#1(relu(a), relu(b)) = relu(concat#1(a, b))",
    };
    return book_of(env, rules, sizeof rules / sizeof rules[0]);
}

CHECK_CASE(test_steps)
{
    const graft_rulebook book = make_book(env);
    const char *thrice = "concat#1(relu(relu(a)), relu(identity(b))) = relu(concat#1(a, b))";
    graft_derivation d;
    assert_int_equal(derive(env, &book, thrice, &d), 3);
    uint32_t seen = 0;
    for (uint32_t i = 0; i < d.count; i++) {
        seen |= 1u << (d.steps[i] - 10);
    }
    assert_int_equal(seen, 1u | 4u | 8u);
    const char *four = "concat#1(relu(relu(relu(a))), relu(identity(b))) = relu(concat#1(a, b))";
    assert_int_equal(derive(env, &book, four, &d), 0);
}

/* A renaming, a rule in a context, commuted operands: one step each. */
CHECK_CASE(test_one_step)
{
    const graft_rulebook book = make_book(env);
    graft_derivation d;
    assert_int_equal(derive(env, &book, "sub(c, add(a, b)) = sub(sub(c, a), b)", &d), 1);
    assert_int_equal(derive(env, &book, "sub(a, add(c, b)) = sub(sub(a, b), c)", &d), 1);
    assert_int_equal(derive(env, &book, "tanh(sub(a, add(b, c))) = tanh(sub(sub(a, b), c))", &d),
                     1);
    assert_int_equal(d.steps[0], 11);
    assert_int_equal(derive(env, &book, "sub(a, add(b, c)) = sub(sub(b, a), c)", &d), 0);
    assert_int_equal(derive(env, &book, "sub(sub(a, b), c) = sub(a, add(b, c))", &d), 0);
}

/* Three steps, each with an operator less; a step that saves none, in between; one that saves one
 * where two variables are weights, as they are where that rule pays; and the same on the way of a
 * rule that pays without weights. */
CHECK_CASE(test_downhill)
{
    static const char *const rules[] = {
        "relu(relu(a)) = relu(a)",
        "tanh(relu(a)) = relu(tanh(a))",
        "mul(mul(a, b), c) = mul(a, mul(b, c))",
        "mul(a, mul(sigmoid(a), b)) = mul(swish(a, alpha=1), b)",
    };
    const graft_rulebook book = book_of(env, rules, sizeof rules / sizeof rules[0]);
    const char *level = "tanh(relu(relu(a))) = relu(tanh(a))";
    const char *weight = "mul(mul(a, sigmoid(a)), b) = mul(swish(a, alpha=1), b)";
    graft_derivation d;
    assert_true(derive_downhill(env, &book, "relu(relu(relu(relu(a)))) = relu(a)"));
    assert_int_equal(derive(env, &book, level, &d), 2);
    assert_false(derive_downhill(env, &book, level));
    assert_true(derive_downhill(env, &book, "mul(mul(a, b), c) = mul(a, mul(b, c))"));
    assert_int_equal(derive(env, &book, weight, &d), 2);
    assert_false(derive_downhill(env, &book, weight));
}

/* What the engine does not do: a value that is read twice is computed twice, and the target leads
 * to the source. */
CHECK_CASE(test_equations)
{
    static const char *const rules[] = {
        "matmul(matmul(a, b), c) = matmul(a, matmul(b, c))",
        "add(matmul(a, b), matmul(a, c)) = matmul(a, add(b, c))",
    };
    const graft_rulebook book = book_of(env, rules, sizeof rules / sizeof rules[0]);
    const char *shared = "add(matmul(a, b), matmul(matmul(a, b), c)) = "
                         "matmul(a, add(b, matmul(b, c))) where rank(a) = 2";
    graft_derivation d;
    graft_derivation sides[2];
    assert_int_equal(derive(env, &book, shared, &d), 0);
    assert_true(equate(env, &book, shared, sides));
    assert_int_equal(sides[0].count + sides[1].count, 2);
    const char *turned = "matmul(a, matmul(b, c)) = matmul(matmul(a, b), c)";
    assert_int_equal(derive(env, &book, turned, &d), 0);
    assert_true(equate(env, &book, turned, sides));
    assert_int_equal(sides[0].count, 0);
    assert_int_equal(sides[1].count, 1);
    assert_false(equate(env, &book, "matmul(a, matmul(b, c)) = matmul(matmul(b, a), c)", sides));
}

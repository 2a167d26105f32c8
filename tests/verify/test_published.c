/* Nothing lost: laws that others have published (TASO's axioms and figures, SOSP 2019, sections 2.2
 * and 5; the rewrites that the dissertations on learned optimisers build on) are given to no stage
 * of Graft, and follow from the committed set: by one rule, read in either direction, or by up to
 * three rules one after the other. */
#include "graph/rule/rulefile.h"
#include "graph/rule/ruleparse.h"
#include "tests/support/check.h"
#include "verify/set/derive.h"
#include "verify/set/reverse.h"
#include "verify/sweep/domain.h"

enum { POINTS = 4, ATTEMPTS = 40000 };

static const char *const laws[] = {
    /* Element by element. */
    "add(add(a, b), c) = add(a, add(b, c)) where same_shape(a, b) and same_shape(b, c)",
    "mul(mul(a, b), c) = mul(a, mul(b, c)) where same_shape(a, b) and same_shape(b, c)",
    "add(mul(a, c), mul(b, c)) = mul(add(a, b), c) where same_shape(a, b) and same_shape(b, c)",
    "mul(mul(a, b), c) = mul(a, mul(b, c)) where rank(b) = 0 and rank(c) = 0",
    "add(mul(a, c), mul(b, c)) = mul(add(a, b), c) where same_shape(a, b) and rank(c) = 0",
    "mul(mul(a, c), b) = mul(mul(a, b), c) where same_shape(a, b) and rank(c) = 0",
    "relu(relu(a)) = relu(a)",
    /* Transposition. */
    "transpose(transpose(a, axis=[1, 0]), axis=[1, 0]) = a",
    "add(transpose(a, axis=[1, 0]), transpose(b, axis=[1, 0])) = transpose(add(a, b), axis=[1, 0]) "
    "where same_shape(a, b)",
    "mul(transpose(a, axis=[1, 0]), transpose(b, axis=[1, 0])) = transpose(mul(a, b), axis=[1, 0]) "
    "where same_shape(a, b)",
    "transpose(relu(a), axis=[1, 0]) = relu(transpose(a, axis=[1, 0]))",
    /* Products. */
    "matmul(matmul(a, b), c) = matmul(a, matmul(b, c)) where rank(a) = 2 and rank(b) = 2 and "
    "rank(c) "
    "= 2",
    "mul(matmul(a, b), c) = matmul(a, mul(b, c)) where rank(a) = 2 and rank(b) = 2 and rank(c) = 0",
    "add(matmul(a, b), matmul(a, c)) = matmul(a, add(b, c)) where same_shape(b, c) and rank(a) = 2 "
    "and rank(b) = 2",
    "matmul(transpose(b, axis=[1, 0]), transpose(a, axis=[1, 0])) = transpose(matmul(a, b), "
    "axis=[1, "
    "0])",
    "concat(matmul(a, b), matmul(a, c), axis=1) = matmul(a, concat(b, c, axis=1)) where rank(a) = "
    "2 "
    "and rank(b) = 2 and rank(c) = 2",
    "[matmul(a, b), matmul(a, c)] = [split(matmul(a, concat(b, c, axis=1)), axis=1, "
    "at=dim(b,1)).0, split(matmul(a, concat(b, c, axis=1)), axis=1, at=dim(b,1)).1] where rank(a) "
    "= 2 and rank(b) = 2 and rank(c) = 2",
    "relu(matmul_bias(a, b, c, activation=none)) = matmul_bias(a, b, c, activation=relu)",
    /* Concatenation and splitting. */
    "[split#1(concat(a, b, axis=1), axis=1).0, split#1(concat(a, b, axis=1), axis=1).1] = [a, b] "
    "where #1.at = dim(a,1)",
    "concat(relu(a), relu(b), axis=1) = relu(concat(a, b, axis=1))",
    "concat(transpose(a, axis=[1, 0]), transpose(b, axis=[1, 0]), axis=0) = transpose(concat(a, b, "
    "axis=1), axis=[1, 0])",
    "concat(concat(a, b, axis=1), c, axis=1) = concat(a, concat(b, c, axis=1), axis=1)",
    /* Convolution. */
    "add(conv#1(a, c), conv#1(b, c)) = conv#1(add(a, b), c) where same_shape(a, b)",
    "add(conv#1(a, b), conv#1(a, c)) = conv#1(a, add(b, c)) where same_shape(b, c)",
    "concat(conv#1(a, b, groups=1), conv#1(a, c, groups=1), axis=1) = conv#1(a, concat(b, c, "
    "axis=0), "
    "groups=1)",
    "add(conv#1(a, c, groups=1), conv#1(b, d, groups=1)) = conv#1(concat(a, b, axis=1), concat(c, "
    "d, "
    "axis=1), groups=1)",
    "relu(conv_bias#1(a, b, c, activation=none)) = conv_bias#1(a, b, c, activation=relu)",
    "scale_shift(conv#1(a, b), c, d) = conv_bias#1(a, mul(b, reshape(c, dim=[dim(b,0), 1, 1, 1])), "
    "d, activation=none)",
    "concat(max_pool#1(a), max_pool#1(b), axis=1) = max_pool#1(concat(a, b, axis=1))",
    "concat(avg_pool#1(a), avg_pool#1(b), axis=1) = avg_pool#1(concat(a, b, axis=1))",
};

static graft_rulebook read_book(graft_env *env)
{
    graft_ruleset set;
    graft_rulebook book;
    if (graft_rulefile_read(env, env->life, "rules/graft.rules", &set) != GRAFT_OK) {
        fail_msg("%s", env->message);
    }
    graft_rulebook_open(&book, env->life);
    for (uint32_t i = 0; i < set.count; i++) {
        graft_rule *reversed = GRAFT_NEW(env->life, graft_rule, 1);
        graft_rulebook_add(&book, &set.entries[i].rule, 2 * i);
        if (graft_rule_reverse(&set.entries[i].rule, reversed) == NULL) {
            graft_rulebook_add(&book, reversed, 2 * i + 1);
        }
    }
    return book;
}

static bool follows(graft_env *env, const graft_rulebook *book, graft_deriver *deriver,
                    const graft_rule *rule)
{
    const graft_domain_options options = {.points = POINTS, .attempts = ATTEMPTS, .seed = 3};
    graft_domain domain;
    graft_derivation derivation;
    graft_domain_find(env, env->unit, rule, &options, &domain);
    for (uint32_t i = 0; i < domain.count; i++) {
        if (!graft_derive(deriver, rule, &domain.points[i], book, GRAFT_DERIVATION_STEPS,
                          &derivation)) {
            return false;
        }
    }
    return domain.count > 0;
}

static void test_published_laws_follow(void **state)
{
    graft_env *env = *state;
    graft_rulebook book = read_book(env);
    graft_deriver *deriver = graft_deriver_new(env->life);
    uint32_t missing = 0;
    for (size_t i = 0; i < sizeof laws / sizeof laws[0]; i++) {
        graft_rule rule;
        if (graft_rule_parse(env, "law", laws[i], &rule) != GRAFT_OK) {
            fail_msg("%s: %s", laws[i], env->message);
        }
        if (!follows(env, &book, deriver, &rule)) {
            print_message("# not found: %s\n", laws[i]);
            missing++;
        }
        graft_arena_reset(env->unit);
    }
    assert_int_equal(missing, 0);
}

/* What is false must not follow, whatever the book. */
static void test_false_law_does_not_follow(void **state)
{
    graft_env *env = *state;
    graft_rulebook book = read_book(env);
    graft_deriver *deriver = graft_deriver_new(env->life);
    graft_rule rule;
    assert_int_equal(graft_rule_parse(env, "law", "relu(add(a, b)) = add(relu(a), relu(b))", &rule),
                     GRAFT_OK);
    assert_false(follows(env, &book, deriver, &rule));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(test_published_laws_follow),
        CHECK_TEST(test_false_law_does_not_follow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

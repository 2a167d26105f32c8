/* Which way rules pay: counts at an instance, and reverses. */
#include "verify/set/price.h"

#include "graph/rule/ruleprint.h"
#include "tests/support/build.h"
#include "tests/support/known_rules.h"
#include "tests/support/rows.h"
#include "verify/set/reverse.h"
#include "verify/sweep/cover.h"
#include "verify/sweep/sweep.h"

#include <math.h>
#include <string.h>

enum { POINTS = 60 };

static graft_domain find_points(graft_env *env, const graft_rule *rule)
{
    const graft_domain_options options = {.points = POINTS, .attempts = POINTS * 1000, .seed = 3};
    const graft_domain domain = graft_domain_find(env, env->unit, rule, &options);
    return domain;
}

/* relu(a b) as two operators and as one: (2,3) times (3,5). */
CHECK_CASE(test_counts)
{
    graft_rule rule = rows_parse(env, "relu(matmul_bias(a, b, c, activation=none)) = "
                                      "matmul_bias(a, b, c, activation=relu)");
    graft_point point = {
        .vars = {SHAPE(2, 3), SHAPE(3, 5), SHAPE(5)}
    };
    graft_instance instance;
    assert_int_equal(graft_instance_build(&instance, &rule, &point), GRAFT_FIT_OK);
    graft_price before = graft_price_side(&instance, &instance.source, 6);
    graft_price after = graft_price_side(&instance, &instance.target, 6);
    assert_int_equal(before.operators, 2);
    assert_int_equal(before.launches, 2);
    assert_int_equal(before.bytes, 4 * (6 + 15 + 5 + 10) + 4 * 20);
    assert_int_equal(after.bytes, 4 * (6 + 15 + 5 + 10));
    assert_int_equal(before.weight_bytes, 4 * 20);
    assert_int_equal(after.weight_bytes, 4 * 20);
    assert_true(before.flops == after.flops && after.flops >= 2 * 2 * 3 * 5);
    assert_int_equal(graft_price_side(&instance, &instance.source, 0).weight_bytes, 0);
}

/* What is computed from weights alone costs nothing per inference. */
CHECK_CASE(test_weights)
{
    graft_rule rule = rows_parse(env, "matmul(matmul(a, b), c) = matmul(a, matmul(b, c))");
    graft_point point = {
        .vars = {SHAPE(2, 3), SHAPE(3, 4), SHAPE(4, 5)}
    };
    graft_instance instance;
    assert_int_equal(graft_price_weights(&rule), 6);
    assert_int_equal(graft_instance_build(&instance, &rule, &point), GRAFT_FIT_OK);
    graft_price after = graft_price_side(&instance, &instance.target, 6);
    assert_int_equal(after.launches, 1);
    assert_int_equal(after.flops, 2 * 2 * 3 * 5);
    assert_int_equal(after.weight_bytes, 4 * 3 * 5);
    assert_int_equal(graft_price_side(&instance, &instance.source, 6).weight_bytes, 4 * (12 + 20));
}

CHECK_CASE(test_unpacked_cover)
{
    graft_rule rule = rows_parse(env, "slice#1(relu(a)) = relu(slice#1(a))");
    graft_domain domain = find_points(env, &rule);
    graft_point *points = NULL;
    size_t bytes = 0;
    uint32_t count = domain.count < 12 ? domain.count : 12;
    const uint8_t *packed = graft_cover_pack(env->unit, &rule, domain.points, count, &bytes);
    assert_true(count > 3);
    assert_true(graft_cover_unpack(env->unit, &rule, packed, bytes, count, &points));
    for (uint32_t i = 0; i < count; i++) {
        const graft_point *want = &domain.points[i];
        assert_string_equal(graft_point_print(env->unit, &rule, &points[i]),
                            graft_point_print(env->unit, &rule, want));
    }
    for (size_t cut = 0; cut < bytes; cut++) {
        assert_false(graft_cover_unpack(env->unit, &rule, packed, cut, count, &points));
    }
    assert_false(graft_cover_unpack(env->unit, &rule, packed, bytes, count - 1, &points));
}

/* The reverse has the same instances, where both sides agree, but that its target may be undefined.
 */
CHECK_CASE(test_reverses)
{
    known_rules known = known_rules_true(env, env->unit);
    graft_sweeper *sweeper = GRAFT_NEW(env->life, graft_sweeper, 1);
    uint32_t reversed_count = 0;
    graft_sweep_open(sweeper);
    for (uint32_t i = 0; i < known.count; i++) {
        graft_rule reversed;
        GRAFT_SCOPED(env->unit);
        if (graft_rule_reverse(&known.rules[i], &reversed) == NULL) {
            assert_null(graft_rule_check(&reversed));
            graft_domain domain = find_points(env, &known.rules[i]);
            reversed_count++;
            for (uint32_t p = 0; p < domain.count; p++) {
                graft_point turned;
                graft_instance instance;
                assert_true(graft_rule_reverse_point(&known.rules[i], &reversed, &domain.points[p],
                                                     &turned));
                assert_int_equal(graft_instance_build(&instance, &reversed, &turned), GRAFT_FIT_OK);
                graft_counterexample found;
                assert_true(graft_sweep_instance(env, sweeper, &instance, 1, p, &found) !=
                                GRAFT_SWEEP_DIFFERS ||
                            isnan(found.target));
            }
        }
    }
    assert_true(reversed_count > known.count / 2);
}

CHECK_CASE(test_what_cannot_be_reversed)
{
    static const struct {
        const char *rule;
        const char *why; /* NULL: it can. */
    } rows[] = {
        {"identity(a) = a",                                                 "its target is an input"       },
        {"mul(sub(a, a), b) = sub(a, a)",                                   "does not name every input"    },
        {"relu(reshape#1(reshape#2(a))) = relu(reshape#1(a))",              "does not name every attribute"},
        {"conv#1(pad#2(a, axis=2, value=0.0), b) = conv#1(a, b, pad_top=#1.pad_top + #2.before, "
         "pad_bottom=#1.pad_bottom + #2.after)",                   "does not name every attribute"},
        {"softmax(a, axis=1) = softmax(relu(a), axis=1)",                   NULL                           },
        {"relu(a) = concat(relu(slice(a, axis=0, start=0, end=1)), "
         "relu(slice(a, axis=0, start=1, end=dim(a,0))), axis=0)", NULL                           },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        graft_rule rule = rows_parse(env, rows[i].rule);
        graft_rule reversed;
        const char *why = graft_rule_reverse(&rule, &reversed);
        if (rows[i].why == NULL) {
            assert_null(why);
        } else {
            assert_non_null(why);
            assert_non_null(strstr(why, rows[i].why));
        }
    }
    graft_rule rule = rows_parse(env, rows[5].rule);
    graft_rule reversed;
    assert_null(graft_rule_reverse(&rule, &reversed));
    assert_non_null(strstr(graft_rule_print_line(env->unit, &reversed), "where #"));
}

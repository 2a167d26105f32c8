/* Instances: whether samples meet all values of an attribute, and enough instances of rules whose
 * target seldom fits. */
#include "verify/sweep/domain.h"

#include "tests/support/check.h"
#include "tests/support/rows.h"
#include "verify/sweep/choices.h"

static graft_domain sample(graft_env *env, const graft_rule *rule, uint32_t points,
                           uint32_t attempts)
{
    graft_domain domain;
    const graft_domain_options options = {.points = points, .attempts = attempts, .seed = 3};
    domain = graft_domain_find(env, env->unit, rule, &options);
    for (uint32_t i = 0; i < domain.count; i++) {
        graft_instance instance;
        assert_int_equal(graft_instance_build(&instance, rule, &domain.points[i]), GRAFT_FIT_OK);
    }
    return domain;
}

/* Inputs of an operator with an activation are checked early, as those of the operator without. */
CHECK_CASE(test_activations)
{
    static const char *const rules[] = {
        "matmul_bias#1(a, b, c) = matmul_bias#1(a, b, c)",
        "conv_bias#1(a, b, c) = conv_bias#1(a, b, c)",
        "conv_bias_add#1(a, b, c, d) = conv_bias_add#1(a, b, c, d)",
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        graft_rule rule = rows_parse(env, rules[i]);
        const graft_pattern_node *node = &rule.source.nodes[0];
        uint32_t last = graft_op(node->op)->attr_count - 1u;
        assert_string_equal(graft_op_attr(node->op, last)->name, "activation");
        graft_domain domain = sample(env, &rule, 200, 200 * 300);
        uint32_t seen = 0;
        for (uint32_t k = 0; k < domain.count; k++) {
            seen |= 1u << domain.points[k].slots[node->attrs[last].value];
        }
        assert_int_equal(seen, 0x1f);
    }
}

/* Rules whose target asks for what the source does not say: two paddings that make up for each
 * other, sizes that are equal. */
CHECK_CASE(test_narrow_targets)
{
    static const char *const rules[] = {
        "conv#1(a, pad#2(b), stride_h=1, stride_w=1) = "
        "conv(a, b, stride_h=1, stride_w=1, pad_top=0, pad_left=#1.pad_left, pad_bottom=0, "
        "pad_right=#1.pad_right, dilation_h=#1.dilation_h, dilation_w=#1.dilation_w, "
        "groups=#1.groups)",
        "add(conv#1(a, b), conv#2(c, d)) = conv#1(concat(a, c, axis=1), concat(b, d, axis=1))",
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        graft_rule rule = rows_parse(env, rules[i]);
        graft_domain domain = sample(env, &rule, 300, 300 * 400);
        /* Most instances are points of which a part was chosen anew. */
        assert_true(domain.count > 50 && domain.count > 2 * domain.fitted);
    }
}

/* 12 has 1, 6, 18 and 40 ways to be a product of one to four sizes; 36 has 9 divisors. */
CHECK_CASE(test_reshapes)
{
    const graft_shape twelve = {
        {3, 4},
        2, GRAFT_DTYPE_F32
    };
    const graft_shape square = {
        {6, 6},
        2, GRAFT_DTYPE_F32
    };
    graft_choices all = graft_choices_attrs(env->unit, GRAFT_OP_reshape, 0, &twelve);
    assert_int_equal(all.count, 1 + 6 + 18 + 40);
    for (uint32_t i = 0; i < all.count; i++) {
        int32_t product = 1;
        for (uint32_t k = 0; k < all.width; k++) {
            int32_t size = all.tuples[(size_t)i * all.width + k];
            product *= size > 0 ? size : 1;
        }
        assert_int_equal(product, 12);
    }
    all = graft_choices_attrs(env->unit, GRAFT_OP_reshape, 0, &square);
    assert_int_equal(all.count, 1 + 9 + 36 + 100);
}

/* A small domain is enumerated to its end, a large one is given up. */
CHECK_CASE(test_enumeration)
{
    const graft_domain_options options = {
        .points = 400, .attempts = 20000, .enumerate = true, .seed = 3};
    graft_domain domain;
    const graft_rule small = rows_parse(env, "relu(relu(a)) = relu(a) where rank(a) <= 3");
    domain = graft_domain_find(env, env->unit, &small, &options);
    assert_true(domain.complete);
    assert_int_equal(domain.count, 1 + 4 + 16 + 64);
    const graft_rule large = rows_parse(env, "add(add(a, b), c) = add(a, add(b, c))");
    domain = graft_domain_find(env, env->unit, &large, &options);
    assert_false(domain.complete);
    assert_int_equal(domain.count, 400);
}

/* Second chances for rules that were lifted too far: attributes pinned to what they were, the
 * restriction that a proof for all sizes needs, and attributes that do nothing at an instance. */
#include "verify/lift/narrow.h"

#include "graph/rule/ruleprint.h"
#include "tests/support/check.h"
#include "tests/support/rows.h"
#include "verify/check.h"
#include "verify/instances/idle.h"

#include <string.h>

static graft_shape shape(uint8_t rank, const int32_t *dims)
{
    graft_shape s = {.rank = rank, .dtype = GRAFT_DTYPE_F32};
    memcpy(s.dims, dims, rank * sizeof *dims);
    return s;
}

/* The second of three slots becomes a number in the pattern and in the precondition, the third one
 * takes its place. */
CHECK_CASE(test_pins)
{
    graft_found_rule pinned;
    graft_found_rule found = {
        .rule = rows_parse(env, "pad#1(relu(a), value=0) = relu(pad#1(a, value=0)) "
                                "where 1 <= #1.before and #1.before <= #1.after"),
        .origin = {.slots = {2, 3, 4}}};
    assert_int_equal(graft_rule_pinnable(&found.rule, false), 1); /* The axis; others are sizes. */
    assert_int_equal(graft_rule_pinnable(&found.rule, true), 0);
    assert_true(graft_rule_pin(env, &found, 2, &pinned));
    assert_string_equal(graft_rule_print_line(env->unit, &pinned.rule),
                        "pad#1(relu(a), before=3, value=0) = relu(pad#1(a, before=3, value=0)) "
                        "where 1 <= 3 and 3 <= #1.after");
    assert_int_equal(pinned.rule.slot_count, 2);
    assert_int_equal(pinned.origin.slots[0], 2);
    assert_int_equal(pinned.origin.slots[1], 4);
    found.origin.slots[1] = 200; /* No small number. */
    assert_false(graft_rule_pin(env, &found, 2, &pinned));
}

/* A rule that is none leaves no message, and one that is leaves that of something else. */
CHECK_CASE(test_restated)
{
    graft_rule rule;
    assert_false(graft_rule_restate(env, "relu(a)", "relu(b)", "", &rule));
    assert_string_equal(env->message, "");
    assert_int_equal(GRAFT_FAIL(env, GRAFT_BAD_INPUT, "before"), GRAFT_BAD_INPUT);
    assert_true(graft_rule_restate(env, "relu(a)", "relu(relu(a))", "", &rule));
    assert_string_equal(env->message, "before");
    graft_env_clear(env);
}

/* Two convolutions as one: true without groups. Of nine attributes, all of which the target
 * mentions, the restriction pins that one alone. */
CHECK_CASE(test_restriction_is_wide)
{
    graft_check check = {.outcome = GRAFT_CHECK_SWEPT};
    graft_check_options options = graft_check_defaults();
    graft_sweeper *sweeper = GRAFT_NEW(env->life, graft_sweeper, 1);
    const char *same = "stride_h=#1.stride_h, stride_w=#1.stride_w, pad_top=#1.pad_top, "
                       "pad_left=#1.pad_left, pad_bottom=#1.pad_bottom, pad_right=#1.pad_right, "
                       "dilation_h=#1.dilation_h, dilation_w=#1.dilation_w, groups=#1.groups";
    const char *text = graft_arena_printf(env->life,
                                          "concat(conv#1(a, b), conv(a, c, %s), axis=1) = "
                                          "conv#1(a, concat(b, c, axis=0))",
                                          same);
    const graft_rule rule = rows_parse(env, text);
    graft_point origin = {
        .vars = {shape(4, (int32_t[]){1, 2, 4, 4}), shape(4, (int32_t[]){3, 2, 2, 2}),
                 shape(4, (int32_t[]){2, 2, 2, 2})}
    };
    for (uint32_t i = 0; i < rule.slot_count; i++) {
        const graft_attr_info *info = graft_op_attr(GRAFT_OP_conv, i);
        origin.slots[i] = info->least;
    }
    graft_sweep_open(sweeper);
    options.restricts = true;
    graft_check_prove(&(graft_checking){env, sweeper, &options, &rule, &origin}, &check);
    assert_int_equal(check.outcome, GRAFT_CHECK_RESTRICTED);
    const char *line = graft_rule_print_line(env->unit, &check.restricted->rule);
    assert_non_null(strstr(line, "conv#1(a, b, groups=1)"));
    assert_int_equal(check.restricted->rule.slot_count, rule.slot_count - 1);
}

/* One product as two: proved for matrices, and restricted to them. */
CHECK_CASE(test_restriction)
{
    graft_check check = {.outcome = GRAFT_CHECK_SWEPT};
    graft_check_options options = graft_check_defaults();
    graft_sweeper *sweeper = GRAFT_NEW(env->life, graft_sweeper, 1);
    const graft_rule rule =
        rows_parse(env, "matmul(concat#1(a, b), concat#2(c, d)) = add(matmul(a, c), matmul(b, d))");
    const graft_point origin = {
        .vars = {shape(2,             (int32_t[]){2, 3}), shape(2, (int32_t[]){2, 4}),
                 shape(2, (int32_t[]){3, 5}), shape(2, (int32_t[]){4, 5})},
        .slots = {1, 0                                }
    };
    graft_sweep_open(sweeper);
    options.restricts = true;
    graft_check_prove(&(graft_checking){env, sweeper, &options, &rule, &origin}, &check);
    assert_int_equal(check.outcome, GRAFT_CHECK_RESTRICTED);
    graft_symbolic_result proof;
    graft_symbolic_prove(env, &rule, &options.prove, &proof);
    assert_false(proof.proved);
    graft_symbolic_prove(env, &check.restricted->rule, &options.prove, &proof);
    assert_true(proof.proved);
    graft_instance instance;
    assert_int_equal(
        graft_instance_build(&instance, &check.restricted->rule, &check.restricted->origin),
        GRAFT_FIT_OK);
}

CHECK_CASE(test_idle_attributes)
{
    const graft_rule rule = rows_parse(env, "relu(max_pool#1(a)) = max_pool#1(relu(a))");
    graft_point point = {
        .vars = {shape(4, (int32_t[]){1, 1, 2, 5})},
          .slots = { 2, 1, 3, 2, 0, 0, 0, 0, 2, 3}
    };
    graft_instance instance;
    point.slots[8] = 1; /* Two taps, not dilated: one position high, three wide. */
    assert_int_equal(graft_instance_build(&instance, &rule, &point), GRAFT_FIT_OK);
    uint32_t pool = rule.source.nodes[0].op == GRAFT_OP_max_pool ? 0 : 1;
    assert_true(graft_idle_attribute(&instance, pool, GRAFT_ATTR_max_pool_stride_h));
    assert_false(graft_idle_attribute(&instance, pool, GRAFT_ATTR_max_pool_stride_h + 1));
    assert_false(graft_idle_attribute(&instance, pool, GRAFT_ATTR_max_pool_dilation_h));
    assert_true(graft_idle_attribute(&instance, pool, GRAFT_ATTR_max_pool_dilation_h + 1));
    assert_false(graft_idle_attribute(&instance, pool, GRAFT_ATTR_max_pool_kernel_h));
    assert_false(graft_idle_pads(&instance));
}

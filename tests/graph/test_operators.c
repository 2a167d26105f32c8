/* The operator table: rows, attributes, shapes of outputs, refusals, and the number of operations,
 * which is compared with what the bodies do when they only count. */
#include "tests/support/cases.h"
#include "tests/support/check.h"

#include <string.h>

/* --------------------------------------------------------------- the table */

CHECK_CASE(test_rows_are_complete)
{
    for (uint32_t op = 1; op < GRAFT_OP_COUNT; op++) {
        const graft_op_info *info = graft_op(op);
        assert_non_null(info);
        assert_true(strlen(info->name) > 0 && strlen(info->onnx) > 0);
        assert_in_range(info->output_count, 1, GRAFT_MAX_OUTPUTS);
        assert_in_range(info->input_count, 0, GRAFT_MAX_INPUTS);
        for (uint32_t other = 1; other < op; other++) {
            assert_string_not_equal(info->name, graft_op(other)->name);
        }
        for (uint32_t i = 0; i < GRAFT_MAX_ATTRS; i++) {
            const graft_attr_info *attr = graft_op_attr(op, i);
            assert_int_equal(attr != NULL, i < info->attr_count);
            assert_true(attr == NULL || attr->kind == GRAFT_ATTR_FLOAT ||
                        attr->least <= attr->most);
        }
    }
}

CHECK_CASE(test_numbers_without_a_row)
{
    const uint32_t numbers[] = {GRAFT_OP_NONE, GRAFT_OP_COUNT, GRAFT_OP_OPAQUE, UINT32_MAX};
    const int32_t attrs[GRAFT_MAX_ATTRS] = {0};
    graft_shape out[GRAFT_MAX_OUTPUTS];
    for (uint32_t i = 0; i < 4; i++) {
        assert_null(graft_op(numbers[i]));
        assert_null(graft_op_attr(numbers[i], 0));
        assert_int_equal(graft_infer_shapes(numbers[i], attrs, NULL, out), GRAFT_BAD_INPUT);
        assert_string_equal(graft_infer_explain(numbers[i], attrs, NULL),
                            "there is no such operator");
        assert_int_equal(graft_op_flops(numbers[i], attrs, NULL, NULL), 0);
    }
    assert_null(graft_op_attr(GRAFT_OP_conv, UINT32_MAX));
}

/* Ids are stored in files: a row that moves is caught here. */
CHECK_CASE(test_ids_do_not_move)
{
    assert_int_equal(GRAFT_OP_identity, 1);
    assert_int_equal(GRAFT_OP_conv, 2);
    assert_int_equal(GRAFT_OP_matmul_bias, 6);
    assert_int_equal(GRAFT_OP_relu, 8);
    assert_int_equal(GRAFT_OP_concat, 18);
    assert_int_equal(GRAFT_OP_reshape, 23);
    assert_int_equal(GRAFT_OP_fill, 29);
    assert_int_equal(GRAFT_OP_leaky_relu, 33);
    assert_int_equal(GRAFT_OP_gelu, 34);
    assert_int_equal(GRAFT_OP_layer_norm, 35);
    assert_int_equal(GRAFT_OP_reduce_sum, 36);
    assert_int_equal(GRAFT_OP_reduce_max, 37);
    assert_int_equal(GRAFT_OP_quantise, 60);
    assert_int_equal(GRAFT_OP_dequantise, 61);
    assert_int_equal(GRAFT_OP_reverse, 62);
    assert_int_equal(GRAFT_OP_less, 63);
    assert_int_equal(GRAFT_OP_select, 66);
    assert_int_equal(GRAFT_OP_remainder, 67);
    assert_string_equal(graft_op(GRAFT_OP_conv)->name, "conv");
    assert_string_equal(graft_op_attr(GRAFT_OP_conv, GRAFT_ATTR_conv_groups)->name, "groups");
}

CHECK_CASE(test_status_names)
{
    for (int a = GRAFT_OK; a <= GRAFT_REFUTED; a++) {
        for (int b = GRAFT_OK; b < a; b++) {
            assert_string_not_equal(graft_status_name((graft_status)a),
                                    graft_status_name((graft_status)b));
        }
    }
    assert_string_equal(graft_status_name(GRAFT_BAD_INPUT), "bad input");
    assert_string_equal(graft_status_name((graft_status)99), "unknown status");
}

/* ------------------------------------------------------------------ shapes */

#define BOOLEANS(r, ...)                                                                           \
    {                                                                                              \
        .dims = {__VA_ARGS__}, .rank = (r), .dtype = GRAFT_DTYPE_BOOL                              \
    }
#define SHAPE(r, ...)                                                                              \
    {                                                                                              \
        .dims = {__VA_ARGS__}, .rank = (r), .dtype = GRAFT_DTYPE_F32                               \
    }

CHECK_CASE(test_elements_and_bytes)
{
    graft_shape shape = SHAPE(3, 2, 3, 5);
    assert_int_equal(graft_shape_elements(&shape), 30);
    assert_int_equal(graft_shape_bytes(&shape), 120);
    shape.dtype = GRAFT_DTYPE_I64;
    assert_int_equal(graft_shape_bytes(&shape), 240);
    shape.dtype = GRAFT_DTYPE_UNKNOWN;
    assert_int_equal(graft_shape_bytes(&shape), 0);
    graft_shape scalar = SHAPE(0, 0);
    assert_int_equal(graft_shape_elements(&scalar), 1);
    graft_shape unknown = {.rank = GRAFT_RANK_UNKNOWN};
    assert_int_equal(graft_shape_elements(&unknown), 0);
    graft_shape large = SHAPE(3, INT32_MAX, INT32_MAX, INT32_MAX);
    assert_true(graft_shape_elements(&large) == UINT64_MAX);
    assert_true(graft_shape_bytes(&large) == UINT64_MAX);
    graft_shape other = SHAPE(3, 2, 3, 5);
    assert_false(graft_shape_equal(&shape, &other));
    shape.dtype = GRAFT_DTYPE_F32;
    assert_true(graft_shape_equal(&shape, &other));
}

#define FLOAT_ONE      0x3f800000
#define FLOAT_INFINITY 0x7f800000
#define FLOAT_NAN      0x7fc00000
#define FLOAT_MINUS    INT32_MIN

/* clang-format off */
/* Operators on shapes that they take. */
static const struct {
    uint32_t op;
    int32_t attrs[GRAFT_MAX_ATTRS];
    graft_shape in[GRAFT_MAX_INPUTS];
    graft_shape out[GRAFT_MAX_OUTPUTS];
} fitting[] = {
    {GRAFT_OP_conv, {2, 2, 3, 3, 3, 3, 1, 1, 1}, {SHAPE(4, 1, 3, 224, 224), SHAPE(4, 64, 3, 7, 7)},
     {SHAPE(4, 1, 64, 112, 112)}},
    {GRAFT_OP_conv, {1, 2, 0, 1, 2, 3, 2, 3, 2}, {SHAPE(4, 2, 4, 9, 8), SHAPE(4, 6, 2, 3, 2)}, {SHAPE(4, 2, 6, 7, 5)}},
    {GRAFT_OP_matmul, {0}, {SHAPE(4, 5, 1, 2, 3), SHAPE(3, 4, 3, 7)}, {SHAPE(4, 5, 4, 2, 7)}},
    {GRAFT_OP_add, {0}, {SHAPE(3, 1, 4, 1), SHAPE(1, 5)}, {SHAPE(3, 1, 4, 5)}},
    {GRAFT_OP_sub, {0}, {SHAPE(0, 0), SHAPE(0, 0)}, {SHAPE(0, 0)}},
    {GRAFT_OP_clip, {FLOAT_MINUS | FLOAT_INFINITY, FLOAT_INFINITY}, {SHAPE(1, 2)}, {SHAPE(1, 2)}},
    {GRAFT_OP_concat, {1}, {SHAPE(2, 3, 2), SHAPE(2, 3, 4)}, {SHAPE(2, 3, 6)}},
    {GRAFT_OP_split, {1, 2}, {SHAPE(2, 3, 5)}, {SHAPE(2, 3, 2), SHAPE(2, 3, 3)}},
    {GRAFT_OP_slice, {0, 1, 3}, {SHAPE(2, 3, 5)}, {SHAPE(2, 2, 5)}},
    {GRAFT_OP_pad, {1, 2, 0, FLOAT_ONE}, {SHAPE(2, 3, 5)}, {SHAPE(2, 3, 7)}},
    {GRAFT_OP_transpose, {2, 0, 1}, {SHAPE(3, 3, 5, 7)}, {SHAPE(3, 7, 3, 5)}},
    {GRAFT_OP_transpose, {0}, {SHAPE(0, 0)}, {SHAPE(0, 0)}},
    {GRAFT_OP_reshape, {5, 6}, {SHAPE(3, 3, 5, 2)}, {SHAPE(2, 5, 6)}},
    {GRAFT_OP_reshape, {0}, {SHAPE(2, 1, 1)}, {SHAPE(0, 0)}},
    {GRAFT_OP_max_pool, {3, 2, 2, 2, 1, 0, 1, 1, 1, 2}, {SHAPE(4, 1, 2, 7, 6)}, {SHAPE(4, 1, 2, 4, 3)}},
    {GRAFT_OP_reduce_mean, {5, 1}, {SHAPE(3, 3, 5, 7)}, {SHAPE(3, 1, 5, 1)}},
    {GRAFT_OP_reduce_mean, {5, 0}, {SHAPE(3, 3, 5, 7)}, {SHAPE(1, 5)}},
    {GRAFT_OP_reduce_mean, {1, 0}, {SHAPE(1, 3)}, {SHAPE(0, 0)}},
    {GRAFT_OP_fill, {FLOAT_ONE, 2, 3}, {{.rank = 0}}, {SHAPE(2, 2, 3)}},
    {GRAFT_OP_layer_norm, {FLOAT_ONE}, {SHAPE(2, 2, 3), SHAPE(1, 3), SHAPE(1, 3)}, {SHAPE(2, 2, 3)}},
    {GRAFT_OP_reduce_sum, {2, 1}, {SHAPE(2, 3, 5)}, {SHAPE(2, 3, 1)}},
    {GRAFT_OP_reduce_max, {3, 0}, {SHAPE(2, 3, 5)}, {SHAPE(0, 0)}},
    {GRAFT_OP_quantise, {FLOAT_ONE, 3, 0}, {SHAPE(1, 2)}, {{{2}, 1, GRAFT_DTYPE_U8}}},
    {GRAFT_OP_reverse, {1}, {SHAPE(2, 3, 4)}, {SHAPE(2, 3, 4)}},
    {GRAFT_OP_less, {0}, {SHAPE(1, 2), SHAPE(2, 3, 1)}, {BOOLEANS(2, 3, 2)}},
    {GRAFT_OP_equal_to, {0}, {SHAPE(0, 0), SHAPE(0, 0)}, {BOOLEANS(0, 0)}},
    {GRAFT_OP_logical_not, {0}, {BOOLEANS(2, 3, 2)}, {BOOLEANS(2, 3, 2)}},
    {GRAFT_OP_min, {0}, {BOOLEANS(1, 2), BOOLEANS(0, 0)}, {BOOLEANS(1, 2)}},
    {GRAFT_OP_transpose, {1}, {BOOLEANS(2, 3, 2)}, {BOOLEANS(2, 2, 3)}},
    {GRAFT_OP_select, {0}, {BOOLEANS(1, 2), SHAPE(2, 3, 1), SHAPE(0, 0)}, {SHAPE(2, 3, 2)}},
    {GRAFT_OP_select, {0}, {BOOLEANS(0, 0), SHAPE(0, 0), SHAPE(3, 2, 1, 1)}, {SHAPE(3, 2, 1, 1)}},
    {GRAFT_OP_dequantise, {FLOAT_ONE, 3, -128}, {{{2}, 1, GRAFT_DTYPE_I8}}, {SHAPE(1, 2)}},
    {GRAFT_OP_transpose, {1, 0}, {{{2, 3}, 2, GRAFT_DTYPE_I8}}, {{{3, 2}, 2, GRAFT_DTYPE_I8}}},
    {GRAFT_OP_add, {0}, {{{2}, 1, GRAFT_DTYPE_BF16}, {{2}, 1, GRAFT_DTYPE_BF16}}, {{{2}, 1, GRAFT_DTYPE_BF16}}},
};

/* And on those that they refuse. */
static const struct {
    const char *why;
    uint32_t op;
    int32_t attrs[GRAFT_MAX_ATTRS];
    graft_shape in[GRAFT_MAX_INPUTS];
} refused[] = {
    {"groups times", GRAFT_OP_conv, {1, 1, 0, 0, 0, 0, 1, 1, 2}, {SHAPE(4, 1, 3, 5, 5), SHAPE(4, 4, 2, 3, 3)}},
    {"do not divide", GRAFT_OP_conv, {1, 1, 0, 0, 0, 0, 1, 1, 2}, {SHAPE(4, 1, 4, 5, 5), SHAPE(4, 3, 2, 3, 3)}},
    {"larger than the padded", GRAFT_OP_conv, {1, 1, 0, 0, 0, 0, 2, 1, 1},
     {SHAPE(4, 1, 3, 4, 4), SHAPE(4, 4, 3, 3, 3)}},
    {"is not (batch", GRAFT_OP_conv, {1, 1, 0, 0, 0, 0, 1, 1, 1}, {SHAPE(3, 3, 4, 4), SHAPE(4, 4, 3, 3, 3)}},
    {"one element per channel", GRAFT_OP_conv_bias, {1, 1, 0, 0, 0, 0, 1, 1, 1, 0},
     {SHAPE(4, 1, 3, 4, 4), SHAPE(4, 4, 3, 1, 1), SHAPE(1, 3)}},
    {"residual", GRAFT_OP_conv_bias_add, {1, 1, 0, 0, 0, 0, 1, 1, 1, 0},
     {SHAPE(4, 1, 3, 4, 4), SHAPE(4, 4, 3, 1, 1), SHAPE(1, 4), SHAPE(4, 1, 4, 4, 1)}},
    {"those of the filter", GRAFT_OP_conv_transpose, {1, 1, 0, 0, 0, 0, 0, 0},
     {SHAPE(4, 1, 3, 4, 4), SHAPE(4, 4, 3, 1, 1)}},
    {"INT32_MAX elements", GRAFT_OP_conv_transpose, {64, 1, 0, 0, 0, 0, 0, 0},
     {SHAPE(4, 1, 1, 1 << 30, 1), SHAPE(4, 1, 1, 1, 1)}},
    {"inner dimensions differ", GRAFT_OP_matmul, {0}, {SHAPE(2, 2, 3), SHAPE(2, 2, 3)}},
    {"fewer than two axes", GRAFT_OP_matmul, {0}, {SHAPE(1, 3), SHAPE(2, 3, 2)}},
    {"do not broadcast", GRAFT_OP_matmul, {0}, {SHAPE(3, 2, 2, 3), SHAPE(3, 3, 3, 2)}},
    {"one element per channel", GRAFT_OP_matmul_bias, {GRAFT_ACT_RELU},
     {SHAPE(2, 2, 3), SHAPE(2, 3, 4), SHAPE(2, 1, 4)}},
    {"no channel axis", GRAFT_OP_scale_shift, {0}, {SHAPE(1, 2), SHAPE(1, 2), SHAPE(1, 2)}},
    {"do not broadcast", GRAFT_OP_mul, {0}, {SHAPE(2, 2, 3), SHAPE(1, 2)}},
    {"INT32_MAX elements", GRAFT_OP_max, {0}, {SHAPE(2, 65536, 1), SHAPE(2, 1, 65536)}},
    {"above the upper", GRAFT_OP_clip, {FLOAT_ONE, 0}, {SHAPE(1, 2)}},
    {"not a number", GRAFT_OP_clip, {FLOAT_NAN, FLOAT_ONE}, {SHAPE(1, 2)}},
    {"no number satisfies", GRAFT_OP_clip, {FLOAT_INFINITY, FLOAT_INFINITY}, {SHAPE(1, 2)}},
    {"not a number", GRAFT_OP_clip, {FLOAT_ONE, FLOAT_NAN}, {SHAPE(1, 2)}},
    {"another axis", GRAFT_OP_concat, {1}, {SHAPE(2, 3, 2), SHAPE(2, 2, 4)}},
    {"ranks differ", GRAFT_OP_concat, {0}, {SHAPE(2, 3, 2), SHAPE(1, 3)}},
    {"INT32_MAX elements", GRAFT_OP_concat, {0}, {SHAPE(1, INT32_MAX), SHAPE(1, 1)}},
    {"outside the axis", GRAFT_OP_split, {1, 5}, {SHAPE(2, 3, 5)}},
    {"not an axis", GRAFT_OP_split, {2, 1}, {SHAPE(2, 3, 5)}},
    {"would be empty", GRAFT_OP_slice, {0, 2, 2}, {SHAPE(2, 3, 5)}},
    {"ends outside", GRAFT_OP_slice, {0, 2, 4}, {SHAPE(2, 3, 5)}},
    {"would be empty", GRAFT_OP_pick, {0, 2, 2, 2}, {SHAPE(2, 3, 5)}},
    {"end outside", GRAFT_OP_pick, {0, 2, 4, 2}, {SHAPE(2, 3, 5)}},
    {"INT32_MAX elements", GRAFT_OP_pad, {0, INT32_MAX, INT32_MAX, 0}, {SHAPE(1, 5)}},
    {"not finite", GRAFT_OP_pad, {0, 1, 1, FLOAT_INFINITY}, {SHAPE(1, 5)}},
    {"not a permutation", GRAFT_OP_transpose, {2, 0, 2}, {SHAPE(3, 3, 5, 7)}},
    {"past the rank", GRAFT_OP_transpose, {1, 0, 2}, {SHAPE(2, 3, 5)}},
    {"numbers of elements", GRAFT_OP_reshape, {5, 5}, {SHAPE(3, 3, 5, 2)}},
    {"follows a size of 0", GRAFT_OP_reshape, {30, 0, 1}, {SHAPE(3, 3, 5, 2)}},
    {"padding alone", GRAFT_OP_max_pool, {2, 2, 1, 1, 2, 0, 0, 0, 1, 1}, {SHAPE(4, 1, 2, 7, 6)}},
    {"padding alone", GRAFT_OP_max_pool, {2, 2, 1, 1, 1, 0, 1, 0, 2, 1}, {SHAPE(4, 1, 2, 1, 6)}},
    {"padding alone", GRAFT_OP_avg_pool, {1, 2, 1, 1, 0, 0, 1, 0, 1}, {SHAPE(4, 1, 2, 7, 6)}},
    {"is not (batch", GRAFT_OP_global_avg_pool, {0}, {SHAPE(3, 2, 7, 6)}},
    {"not an axis", GRAFT_OP_softmax, {1}, {SHAPE(1, 3)}},
    {"not an axis", GRAFT_OP_reduce_mean, {8, 0}, {SHAPE(3, 3, 5, 7)}},
    {"not finite", GRAFT_OP_fill, {FLOAT_NAN, 2, 3}, {{.rank = 0}}},
    {"is negative", GRAFT_OP_leaky_relu, {FLOAT_MINUS | FLOAT_ONE}, {SHAPE(1, 3)}},
    {"per channel", GRAFT_OP_layer_norm, {FLOAT_ONE}, {SHAPE(2, 2, 3), SHAPE(1, 3), SHAPE(1, 2)}},
    {"not positive", GRAFT_OP_layer_norm, {0}, {SHAPE(1, 3), SHAPE(1, 3), SHAPE(1, 3)}},
    {"not an axis", GRAFT_OP_layer_norm, {FLOAT_ONE}, {SHAPE(0, 0), SHAPE(1, 1), SHAPE(1, 1)}},
    {"not finite", GRAFT_OP_layer_norm, {FLOAT_NAN}, {SHAPE(1, 3), SHAPE(1, 3), SHAPE(1, 3)}},
    {"not finite", GRAFT_OP_rms_norm, {FLOAT_INFINITY}, {SHAPE(1, 3), SHAPE(1, 3)}},
    {"not finite", GRAFT_OP_instance_norm, {FLOAT_NAN}, {SHAPE(3, 1, 3, 2), SHAPE(1, 3), SHAPE(1, 3)}},
    {"not finite", GRAFT_OP_leaky_relu, {FLOAT_NAN}, {SHAPE(1, 3)}},
    {"not finite", GRAFT_OP_elu, {FLOAT_NAN}, {SHAPE(1, 3)}},
    {"not finite", GRAFT_OP_hard_sigmoid, {FLOAT_ONE, FLOAT_NAN}, {SHAPE(1, 3)}},
    {"8 bits", GRAFT_OP_dequantise, {FLOAT_ONE, 3, 0}, {{{2}, 1, GRAFT_DTYPE_I8}}},
    {"8 bits", GRAFT_OP_quantise, {FLOAT_ONE, 3, -1}, {SHAPE(1, 2)}},
    {"booleans", GRAFT_OP_logical_not, {0}, {SHAPE(1, 2)}},
    {"booleans", GRAFT_OP_relu, {0}, {BOOLEANS(1, 2)}},
    {"booleans", GRAFT_OP_less, {0}, {BOOLEANS(1, 2), BOOLEANS(1, 2)}},
    {"booleans", GRAFT_OP_min, {0}, {BOOLEANS(1, 2), SHAPE(1, 2)}},
    {"booleans", GRAFT_OP_split, {0, 1}, {BOOLEANS(1, 2)}},
    {"booleans", GRAFT_OP_select, {0}, {SHAPE(1, 2), SHAPE(1, 2), SHAPE(1, 2)}},
    {"booleans", GRAFT_OP_select, {0}, {BOOLEANS(1, 2), BOOLEANS(1, 2), SHAPE(1, 2)}},
    {"booleans", GRAFT_OP_select, {0}, {BOOLEANS(1, 2), BOOLEANS(1, 2), BOOLEANS(1, 2)}},
    {"do not broadcast", GRAFT_OP_select, {0}, {BOOLEANS(1, 3), SHAPE(1, 1), SHAPE(1, 2)}},
    {"zero point", GRAFT_OP_quantise, {FLOAT_ONE, -1, 0}, {SHAPE(1, 2)}},
    {"zero point", GRAFT_OP_quantise, {FLOAT_ONE, 128, -128}, {SHAPE(1, 2)}},
    {"not positive", GRAFT_OP_quantise, {FLOAT_NAN, 3, 0}, {SHAPE(1, 2)}},
    {"not positive", GRAFT_OP_quantise, {0, 3, 0}, {SHAPE(1, 2)}},
    {"8 bits", GRAFT_OP_split, {0, 1}, {{{2, 3}, 2, GRAFT_DTYPE_I8}}},
    {"8 bits", GRAFT_OP_relu, {0}, {{{2}, 1, GRAFT_DTYPE_U8}}},
    {"8 bits", GRAFT_OP_concat, {0}, {{{2}, 1, GRAFT_DTYPE_U8}, {{2}, 1, GRAFT_DTYPE_I8}}},
    {"not all of binary32, float16", GRAFT_OP_relu, {0}, {{{2}, 1, GRAFT_DTYPE_I64}}},
    {"not all of binary32, float16", GRAFT_OP_add, {0}, {{{2}, 1, GRAFT_DTYPE_F16}, {{2}, 1, GRAFT_DTYPE_BF16}}},
    {"is unknown", GRAFT_OP_relu, {0}, {{{0}, GRAFT_RANK_UNKNOWN, GRAFT_DTYPE_F32}}},
    {"malformed", GRAFT_OP_relu, {0}, {SHAPE(1, 2, 3)}},
    {"malformed", GRAFT_OP_relu, {0}, {SHAPE(2, 2, 0)}},
    {"malformed", GRAFT_OP_relu, {0}, {SHAPE(1, -2)}},
    {"INT32_MAX elements", GRAFT_OP_relu, {0}, {SHAPE(2, 65536, 65536)}},
    {"unused attribute", GRAFT_OP_relu, {0, 1}, {SHAPE(1, 3)}},
};
/* clang-format on */

CHECK_CASE(test_shapes)
{
    for (uint32_t i = 0; i < sizeof fitting / sizeof fitting[0]; i++) {
        const uint32_t op = fitting[i].op;
        graft_shape out[GRAFT_MAX_OUTPUTS];
        assert_null(graft_infer_explain(op, fitting[i].attrs, fitting[i].in));
        CHECK_OK(graft_infer_shapes(op, fitting[i].attrs, fitting[i].in, out));
        for (uint32_t k = 0; k < graft_op(op)->output_count; k++) {
            if (!graft_shape_equal(&out[k], &fitting[i].out[k])) {
                fail_msg("row %u (%s): output %u is different", i, graft_op(op)->name, k);
            }
        }
    }
}

CHECK_CASE(test_refused_shapes)
{
    for (uint32_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        graft_shape out[GRAFT_MAX_OUTPUTS];
        graft_shape before[GRAFT_MAX_OUTPUTS];
        memset(out, 0x5a, sizeof out);
        memcpy(before, out, sizeof out);
        const char *why = graft_infer_explain(refused[i].op, refused[i].attrs, refused[i].in);
        if (why == NULL || strstr(why, refused[i].why) == NULL) {
            fail_msg("row %u: \"%s\" instead of \"%s\"", i, why == NULL ? "" : why, refused[i].why);
        }
        assert_int_equal(graft_infer_shapes(refused[i].op, refused[i].attrs, refused[i].in, out),
                         GRAFT_BAD_INPUT);
        assert_memory_equal(out, before, sizeof out);
    }
}

/* An attribute just outside its domain is refused, whatever the operator. */
CHECK_CASE(test_attribute_domains)
{
    graft_rng rng = check_rng(11);
    for (uint32_t op = 1; op < GRAFT_OP_COUNT; op++) {
        check_case drawn;
        check_case_draw(&rng, op, &drawn);
        for (uint32_t i = 0; i < graft_op(op)->attr_count; i++) {
            const graft_attr_info *attr = graft_op_attr(op, i);
            for (uint32_t side = 0; side < 2 && attr->kind != GRAFT_ATTR_FLOAT; side++) {
                check_case changed = drawn;
                int64_t value = side == 0 ? (int64_t)attr->least - 1 : (int64_t)attr->most + 1;
                changed.attrs[i] = (int32_t)value;
                if (value == changed.attrs[i]) {
                    assert_string_equal(graft_infer_explain(op, changed.attrs, changed.in),
                                        "an attribute is outside its domain");
                }
            }
        }
    }
}

/* -------------------------------------------------------------- operations */

/* An algebra that does nothing but count: a number is nothing, the state is the count. */
typedef uint8_t counted;

static counted one_operation(void *k)
{
    uint64_t *count = k;
    ++*count;
    return 0;
}

#define COUNTS_UNARY(name)                                                                         \
    static counted name##_count(void *k, counted x)                                                \
    {                                                                                              \
        (void)x;                                                                                   \
        return one_operation(k);                                                                   \
    }
#define COUNTS_BINARY(name)                                                                        \
    static counted name##_count(void *k, counted a, counted b)                                     \
    {                                                                                              \
        (void)a, (void)b;                                                                          \
        return one_operation(k);                                                                   \
    }
COUNTS_UNARY(exp)
COUNTS_UNARY(sqrt)
COUNTS_UNARY(erf)
COUNTS_UNARY(sigmoid)
COUNTS_UNARY(tanh)
COUNTS_UNARY(log)
COUNTS_UNARY(sin)
COUNTS_UNARY(cos)
COUNTS_BINARY(sum)
COUNTS_BINARY(difference)
COUNTS_BINARY(product)
COUNTS_BINARY(quotient)
COUNTS_BINARY(max)
COUNTS_BINARY(round)
COUNTS_BINARY(min)
COUNTS_BINARY(less)
COUNTS_BINARY(equal)
COUNTS_BINARY(remainder)

static counted choose_count(void *k, counted c, counted a, counted b)
{
    (void)c, (void)a, (void)b;
    return one_operation(k);
}

static counted lift_count(void *k, int32_t value)
{
    (void)k, (void)value;
    return 0;
}

static counted lift_float_count(void *k, int32_t bits)
{
    (void)k, (void)bits;
    return 0;
}

static counted softmax_shift_count(void *k, const counted *row, size_t count, size_t step)
{
    (void)row, (void)step;
    for (size_t i = 0; i < count; i++) {
        (void)one_operation(k);
    }
    return 0;
}

#define NUM    counted
#define ALG(f) f##_count
#include "graph/meaning/operator_bodies.inc"

/* The same convolution or pool on an input that holds its padding: taps there count too. */
static void include_padding(check_case *c, uint32_t first_pad)
{
    for (uint32_t i = 0; i < 4; i++) {
        c->in[0].dims[2 + i % 2] += c->attrs[first_pad + i];
        c->attrs[first_pad + i] = 0;
    }
}

static bool is_conv(uint32_t op)
{
    return op == GRAFT_OP_conv || op == GRAFT_OP_conv_bias || op == GRAFT_OP_conv_bias_add;
}

CHECK_CASE(test_flops_are_what_bodies_do)
{
    static counted data[4][2 * CHECK_CASE_ELEMENTS];
    const counted *const in[] = {data[0], data[0], data[0], data[0]};
    counted *const out[] = {data[1], data[2]};
    graft_rng rng = check_rng(12);
    for (uint32_t i = 0; i < 100 * GRAFT_OP_COUNT; i++) {
        uint32_t op = 1 + i % (GRAFT_OP_COUNT - 1);
        check_case drawn;
        check_case_draw(&rng, op, &drawn);
        uint64_t flops = graft_op_flops(op, drawn.attrs, drawn.in, drawn.out);
        if (is_conv(op)) {
            include_padding(&drawn, GRAFT_ATTR_conv_pad_top);
        } else if (op == GRAFT_OP_max_pool || op == GRAFT_OP_avg_pool) {
            include_padding(&drawn, GRAFT_ATTR_max_pool_pad_top);
        } else if (op == GRAFT_OP_conv_transpose) { /* An output that holds everything. */
            memset(&drawn.attrs[GRAFT_ATTR_conv_transpose_pad_top], 0, 6 * sizeof(int32_t));
            CHECK_OK(graft_infer_shapes(op, drawn.attrs, drawn.in, drawn.out));
        }
        uint64_t count = 0;
        graft_call call = check_case_call(&drawn);
        run_count[op](&count, &call, in, out);
        if (op == GRAFT_OP_max_pool) {
            count += graft_shape_elements(drawn.out); /* The first of a window counts, too. */
        }
        if (count != flops) {
            check_case_print(&drawn);
            fail_msg("%s does %llu operations, not %llu", graft_op(op)->name,
                     (unsigned long long)count, (unsigned long long)flops);
        }
    }
}

CHECK_CASE(test_flops_saturate)
{
    const int32_t attrs[GRAFT_MAX_ATTRS] = {0};
    const graft_shape in[2] = {SHAPE(2, INT32_MAX, INT32_MAX), SHAPE(2, INT32_MAX, INT32_MAX)};
    const graft_shape out[1] = {SHAPE(2, INT32_MAX, INT32_MAX)};
    assert_true(graft_op_flops(GRAFT_OP_matmul, attrs, in, out) == UINT64_MAX);
}

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

typedef struct {
    const char *why; /* NULL: it fits, and `out` is the result. */
    int32_t attrs[GRAFT_MAX_ATTRS];
    graft_shape in[GRAFT_MAX_INPUTS];
    graft_shape out[GRAFT_MAX_OUTPUTS];
    uint32_t op;
} shape_row;

#define FLOAT_ONE      0x3f800000
#define FLOAT_INFINITY 0x7f800000
#define FLOAT_NAN      0x7fc00000
#define FLOAT_MINUS    INT32_MIN

/* clang-format off */
static const shape_row shape_rows[] = {
    {NULL, {2, 2, 3, 3, 3, 3, 1, 1, 1}, {SHAPE(4, 1, 3, 224, 224), SHAPE(4, 64, 3, 7, 7)},
     {SHAPE(4, 1, 64, 112, 112)}, GRAFT_OP_conv},
    {NULL, {1, 2, 0, 1, 2, 3, 2, 3, 2}, {SHAPE(4, 2, 4, 9, 8), SHAPE(4, 6, 2, 3, 2)},
     {SHAPE(4, 2, 6, 7, 5)}, GRAFT_OP_conv},
    {"groups times", {1, 1, 0, 0, 0, 0, 1, 1, 2}, {SHAPE(4, 1, 3, 5, 5), SHAPE(4, 4, 2, 3, 3)},
     {{{0}, 0, 0}}, GRAFT_OP_conv},
    {"do not divide", {1, 1, 0, 0, 0, 0, 1, 1, 2}, {SHAPE(4, 1, 4, 5, 5), SHAPE(4, 3, 2, 3, 3)},
     {{{0}, 0, 0}}, GRAFT_OP_conv},
    {"larger than the padded", {1, 1, 0, 0, 0, 0, 2, 1, 1},
     {SHAPE(4, 1, 3, 4, 4), SHAPE(4, 4, 3, 3, 3)}, {{{0}, 0, 0}}, GRAFT_OP_conv},
    {"is not (batch", {1, 1, 0, 0, 0, 0, 1, 1, 1}, {SHAPE(3, 3, 4, 4), SHAPE(4, 4, 3, 3, 3)},
     {{{0}, 0, 0}}, GRAFT_OP_conv},
    {"one element per channel", {1, 1, 0, 0, 0, 0, 1, 1, 1, 0},
     {SHAPE(4, 1, 3, 4, 4), SHAPE(4, 4, 3, 1, 1), SHAPE(1, 3)}, {{{0}, 0, 0}}, GRAFT_OP_conv_bias},
    {"residual", {1, 1, 0, 0, 0, 0, 1, 1, 1, 0},
     {SHAPE(4, 1, 3, 4, 4), SHAPE(4, 4, 3, 1, 1), SHAPE(1, 4), SHAPE(4, 1, 4, 4, 1)},
     {{{0}, 0, 0}}, GRAFT_OP_conv_bias_add},
    {"those of the filter", {1, 1, 0, 0, 0, 0, 0, 0}, {SHAPE(4, 1, 3, 4, 4), SHAPE(4, 4, 3, 1, 1)},
     {{{0}, 0, 0}}, GRAFT_OP_conv_transpose},
    {"INT32_MAX elements", {64, 1, 0, 0, 0, 0, 0, 0},
     {SHAPE(4, 1, 1, 1 << 30, 1), SHAPE(4, 1, 1, 1, 1)}, {{{0}, 0, 0}}, GRAFT_OP_conv_transpose},
    {NULL, {0}, {SHAPE(4, 5, 1, 2, 3), SHAPE(3, 4, 3, 7)}, {SHAPE(4, 5, 4, 2, 7)}, GRAFT_OP_matmul},
    {"inner dimensions differ", {0}, {SHAPE(2, 2, 3), SHAPE(2, 2, 3)}, {{{0}, 0, 0}},
     GRAFT_OP_matmul},
    {"fewer than two axes", {0}, {SHAPE(1, 3), SHAPE(2, 3, 2)}, {{{0}, 0, 0}}, GRAFT_OP_matmul},
    {"do not broadcast", {0}, {SHAPE(3, 2, 2, 3), SHAPE(3, 3, 3, 2)}, {{{0}, 0, 0}},
     GRAFT_OP_matmul},
    {"one element per channel", {GRAFT_ACT_RELU}, {SHAPE(2, 2, 3), SHAPE(2, 3, 4), SHAPE(2, 1, 4)},
     {{{0}, 0, 0}}, GRAFT_OP_matmul_bias},
    {"no channel axis", {0}, {SHAPE(1, 2), SHAPE(1, 2), SHAPE(1, 2)}, {{{0}, 0, 0}},
     GRAFT_OP_scale_shift},
    {NULL, {0}, {SHAPE(3, 1, 4, 1), SHAPE(1, 5)}, {SHAPE(3, 1, 4, 5)}, GRAFT_OP_add},
    {NULL, {0}, {SHAPE(0, 0), SHAPE(0, 0)}, {SHAPE(0, 0)}, GRAFT_OP_sub},
    {"do not broadcast", {0}, {SHAPE(2, 2, 3), SHAPE(1, 2)}, {{{0}, 0, 0}}, GRAFT_OP_mul},
    {"INT32_MAX elements", {0}, {SHAPE(2, 65536, 1), SHAPE(2, 1, 65536)}, {{{0}, 0, 0}},
     GRAFT_OP_max},
    {NULL, {FLOAT_MINUS | FLOAT_INFINITY, FLOAT_INFINITY}, {SHAPE(1, 2)}, {SHAPE(1, 2)},
     GRAFT_OP_clip},
    {"above the upper", {FLOAT_ONE, 0}, {SHAPE(1, 2)}, {{{0}, 0, 0}}, GRAFT_OP_clip},
    {"not a number", {FLOAT_NAN, FLOAT_ONE}, {SHAPE(1, 2)}, {{{0}, 0, 0}}, GRAFT_OP_clip},
    {"no number satisfies", {FLOAT_INFINITY, FLOAT_INFINITY}, {SHAPE(1, 2)}, {{{0}, 0, 0}},
     GRAFT_OP_clip},
    {"not a number", {FLOAT_ONE, FLOAT_NAN}, {SHAPE(1, 2)}, {{{0}, 0, 0}}, GRAFT_OP_clip},
    {NULL, {1}, {SHAPE(2, 3, 2), SHAPE(2, 3, 4)}, {SHAPE(2, 3, 6)}, GRAFT_OP_concat},
    {"another axis", {1}, {SHAPE(2, 3, 2), SHAPE(2, 2, 4)}, {{{0}, 0, 0}}, GRAFT_OP_concat},
    {"ranks differ", {0}, {SHAPE(2, 3, 2), SHAPE(1, 3)}, {{{0}, 0, 0}}, GRAFT_OP_concat},
    {"INT32_MAX elements", {0}, {SHAPE(1, INT32_MAX), SHAPE(1, 1)}, {{{0}, 0, 0}}, GRAFT_OP_concat},
    {NULL, {1, 2}, {SHAPE(2, 3, 5)}, {SHAPE(2, 3, 2), SHAPE(2, 3, 3)}, GRAFT_OP_split},
    {"outside the axis", {1, 5}, {SHAPE(2, 3, 5)}, {{{0}, 0, 0}}, GRAFT_OP_split},
    {"not an axis", {2, 1}, {SHAPE(2, 3, 5)}, {{{0}, 0, 0}}, GRAFT_OP_split},
    {NULL, {0, 1, 3}, {SHAPE(2, 3, 5)}, {SHAPE(2, 2, 5)}, GRAFT_OP_slice},
    {"would be empty", {0, 2, 2}, {SHAPE(2, 3, 5)}, {{{0}, 0, 0}}, GRAFT_OP_slice},
    {"ends outside", {0, 2, 4}, {SHAPE(2, 3, 5)}, {{{0}, 0, 0}}, GRAFT_OP_slice},
    {NULL, {1, 2, 0, FLOAT_ONE}, {SHAPE(2, 3, 5)}, {SHAPE(2, 3, 7)}, GRAFT_OP_pad},
    {"INT32_MAX elements", {0, INT32_MAX, INT32_MAX, 0}, {SHAPE(1, 5)}, {{{0}, 0, 0}},
     GRAFT_OP_pad},
    {"not finite", {0, 1, 1, FLOAT_INFINITY}, {SHAPE(1, 5)}, {{{0}, 0, 0}}, GRAFT_OP_pad},
    {NULL, {2, 0, 1}, {SHAPE(3, 3, 5, 7)}, {SHAPE(3, 7, 3, 5)}, GRAFT_OP_transpose},
    {NULL, {0}, {SHAPE(0, 0)}, {SHAPE(0, 0)}, GRAFT_OP_transpose},
    {"not a permutation", {2, 0, 2}, {SHAPE(3, 3, 5, 7)}, {{{0}, 0, 0}}, GRAFT_OP_transpose},
    {"past the rank", {1, 0, 2}, {SHAPE(2, 3, 5)}, {{{0}, 0, 0}}, GRAFT_OP_transpose},
    {NULL, {5, 6}, {SHAPE(3, 3, 5, 2)}, {SHAPE(2, 5, 6)}, GRAFT_OP_reshape},
    {NULL, {0}, {SHAPE(2, 1, 1)}, {SHAPE(0, 0)}, GRAFT_OP_reshape},
    {"numbers of elements", {5, 5}, {SHAPE(3, 3, 5, 2)}, {{{0}, 0, 0}}, GRAFT_OP_reshape},
    {"follows a size of 0", {30, 0, 1}, {SHAPE(3, 3, 5, 2)}, {{{0}, 0, 0}}, GRAFT_OP_reshape},
    {NULL, {3, 2, 2, 2, 1, 0, 1, 1, 1, 2}, {SHAPE(4, 1, 2, 7, 6)}, {SHAPE(4, 1, 2, 4, 3)},
     GRAFT_OP_max_pool},
    {"padding alone", {2, 2, 1, 1, 2, 0, 0, 0, 1, 1}, {SHAPE(4, 1, 2, 7, 6)}, {{{0}, 0, 0}},
     GRAFT_OP_max_pool},
    {"padding alone", {2, 2, 1, 1, 1, 0, 1, 0, 2, 1}, {SHAPE(4, 1, 2, 1, 6)}, {{{0}, 0, 0}},
     GRAFT_OP_max_pool},
    {"padding alone", {1, 2, 1, 1, 0, 0, 1, 0, 1}, {SHAPE(4, 1, 2, 7, 6)}, {{{0}, 0, 0}},
     GRAFT_OP_avg_pool},
    {"is not (batch", {0}, {SHAPE(3, 2, 7, 6)}, {{{0}, 0, 0}}, GRAFT_OP_global_avg_pool},
    {"not an axis", {1}, {SHAPE(1, 3)}, {{{0}, 0, 0}}, GRAFT_OP_softmax},
    {NULL, {5, 1}, {SHAPE(3, 3, 5, 7)}, {SHAPE(3, 1, 5, 1)}, GRAFT_OP_reduce_mean},
    {NULL, {5, 0}, {SHAPE(3, 3, 5, 7)}, {SHAPE(1, 5)}, GRAFT_OP_reduce_mean},
    {NULL, {1, 0}, {SHAPE(1, 3)}, {SHAPE(0, 0)}, GRAFT_OP_reduce_mean},
    {"not an axis", {8, 0}, {SHAPE(3, 3, 5, 7)}, {{{0}, 0, 0}}, GRAFT_OP_reduce_mean},
    {NULL, {FLOAT_ONE, 2, 3}, {{{0}, 0, 0}}, {SHAPE(2, 2, 3)}, GRAFT_OP_fill},
    {"not finite", {FLOAT_NAN, 2, 3}, {{{0}, 0, 0}}, {{{0}, 0, 0}}, GRAFT_OP_fill},
    {"is negative", {FLOAT_MINUS | FLOAT_ONE}, {SHAPE(1, 3)}, {{{0}, 0, 0}}, GRAFT_OP_leaky_relu},
    {NULL, {FLOAT_ONE}, {SHAPE(2, 2, 3), SHAPE(1, 3), SHAPE(1, 3)}, {SHAPE(2, 2, 3)},
     GRAFT_OP_layer_norm},
    {"per channel", {FLOAT_ONE}, {SHAPE(2, 2, 3), SHAPE(1, 3), SHAPE(1, 2)}, {{{0}, 0, 0}},
     GRAFT_OP_layer_norm},
    {"not positive", {0}, {SHAPE(1, 3), SHAPE(1, 3), SHAPE(1, 3)}, {{{0}, 0, 0}},
     GRAFT_OP_layer_norm},
    {"not an axis", {FLOAT_ONE}, {SHAPE(0, 0), SHAPE(1, 1), SHAPE(1, 1)}, {{{0}, 0, 0}},
     GRAFT_OP_layer_norm},
    {"not finite", {FLOAT_NAN}, {SHAPE(1, 3), SHAPE(1, 3), SHAPE(1, 3)}, {{{0}, 0, 0}},
     GRAFT_OP_layer_norm},
    {"not finite", {FLOAT_INFINITY}, {SHAPE(1, 3), SHAPE(1, 3)}, {{{0}, 0, 0}}, GRAFT_OP_rms_norm},
    {"not finite", {FLOAT_NAN}, {SHAPE(3, 1, 3, 2), SHAPE(1, 3), SHAPE(1, 3)}, {{{0}, 0, 0}},
     GRAFT_OP_instance_norm},
    {"not finite", {FLOAT_NAN}, {SHAPE(1, 3)}, {{{0}, 0, 0}}, GRAFT_OP_leaky_relu},
    {"not finite", {FLOAT_NAN}, {SHAPE(1, 3)}, {{{0}, 0, 0}}, GRAFT_OP_elu},
    {"not finite", {FLOAT_ONE, FLOAT_NAN}, {SHAPE(1, 3)}, {{{0}, 0, 0}}, GRAFT_OP_hard_sigmoid},
    {NULL, {2, 1}, {SHAPE(2, 3, 5)}, {SHAPE(2, 3, 1)}, GRAFT_OP_reduce_sum},
    {NULL, {3, 0}, {SHAPE(2, 3, 5)}, {SHAPE(0, 0)}, GRAFT_OP_reduce_max},
    {NULL, {FLOAT_ONE, 3, 0}, {SHAPE(1, 2)}, {{{2}, 1, GRAFT_DTYPE_U8}}, GRAFT_OP_quantise},
    {NULL, {FLOAT_ONE, 3, -128}, {{{2}, 1, GRAFT_DTYPE_I8}}, {SHAPE(1, 2)}, GRAFT_OP_dequantise},
    {"8 bits", {FLOAT_ONE, 3, 0}, {{{2}, 1, GRAFT_DTYPE_I8}}, {{{0}, 0, 0}}, GRAFT_OP_dequantise},
    {"8 bits", {FLOAT_ONE, 3, -1}, {SHAPE(1, 2)}, {{{0}, 0, 0}}, GRAFT_OP_quantise},
    {"zero point", {FLOAT_ONE, -1, 0}, {SHAPE(1, 2)}, {{{0}, 0, 0}}, GRAFT_OP_quantise},
    {"zero point", {FLOAT_ONE, 128, -128}, {SHAPE(1, 2)}, {{{0}, 0, 0}}, GRAFT_OP_quantise},
    {"not positive", {FLOAT_NAN, 3, 0}, {SHAPE(1, 2)}, {{{0}, 0, 0}}, GRAFT_OP_quantise},
    {"not positive", {0, 3, 0}, {SHAPE(1, 2)}, {{{0}, 0, 0}}, GRAFT_OP_quantise},
    {NULL, {1, 0}, {{{2, 3}, 2, GRAFT_DTYPE_I8}}, {{{3, 2}, 2, GRAFT_DTYPE_I8}}, GRAFT_OP_transpose},
    {"8 bits", {0, 1}, {{{2, 3}, 2, GRAFT_DTYPE_I8}}, {{{0}, 0, 0}}, GRAFT_OP_split},
    {"8 bits", {0}, {{{2}, 1, GRAFT_DTYPE_U8}}, {{{0}, 0, 0}}, GRAFT_OP_relu},
    {"8 bits", {0}, {{{2}, 1, GRAFT_DTYPE_U8}, {{2}, 1, GRAFT_DTYPE_I8}}, {{{0}, 0, 0}}, GRAFT_OP_concat},
    {"not all of binary32, float16", {0}, {{{2}, 1, GRAFT_DTYPE_I64}}, {{{0}, 0, 0}}, GRAFT_OP_relu},
    {"not all of binary32, float16", {0}, {{{2}, 1, GRAFT_DTYPE_F16}, {{2}, 1, GRAFT_DTYPE_BF16}}, {{{0}, 0, 0}}, GRAFT_OP_add},
    {NULL, {0}, {{{2}, 1, GRAFT_DTYPE_BF16}, {{2}, 1, GRAFT_DTYPE_BF16}}, {{{2}, 1, GRAFT_DTYPE_BF16}}, GRAFT_OP_add},
    {"is unknown", {0}, {{{0}, GRAFT_RANK_UNKNOWN, GRAFT_DTYPE_F32}}, {{{0}, 0, 0}}, GRAFT_OP_relu},
    {"malformed", {0}, {SHAPE(1, 2, 3)}, {{{0}, 0, 0}}, GRAFT_OP_relu},
    {"malformed", {0}, {SHAPE(2, 2, 0)}, {{{0}, 0, 0}}, GRAFT_OP_relu},
    {"malformed", {0}, {SHAPE(1, -2)}, {{{0}, 0, 0}}, GRAFT_OP_relu},
    {"INT32_MAX elements", {0}, {SHAPE(2, 65536, 65536)}, {{{0}, 0, 0}}, GRAFT_OP_relu},
    {"unused attribute", {0, 1}, {SHAPE(1, 3)}, {{{0}, 0, 0}}, GRAFT_OP_relu},
};
/* clang-format on */

static void check_shape_row(uint32_t number, const shape_row *row)
{
    graft_shape out[GRAFT_MAX_OUTPUTS];
    graft_shape before[GRAFT_MAX_OUTPUTS];
    memset(out, 0x5a, sizeof out);
    memcpy(before, out, sizeof out);
    const char *why = graft_infer_explain(row->op, row->attrs, row->in);
    graft_status status = graft_infer_shapes(row->op, row->attrs, row->in, out);
    const char *name = graft_op(row->op)->name;
    if ((status == GRAFT_OK) != (row->why == NULL) || (why == NULL) != (row->why == NULL) ||
        (why != NULL && strstr(why, row->why) == NULL)) {
        fail_msg("row %u (%s): \"%s\" instead of \"%s\"", number, name, why == NULL ? "" : why,
                 row->why == NULL ? "" : row->why);
    }
    if (status != GRAFT_OK) {
        assert_int_equal(status, GRAFT_BAD_INPUT);
        assert_memory_equal(out, before, sizeof out);
        return;
    }
    for (uint32_t i = 0; i < graft_op(row->op)->output_count; i++) {
        if (!graft_shape_equal(&out[i], &row->out[i])) {
            fail_msg("row %u (%s): output %u is different", number, name, i);
        }
    }
}

CHECK_CASE(test_shapes)
{
    for (uint32_t i = 0; i < sizeof shape_rows / sizeof shape_rows[0]; i++) {
        check_shape_row(i, &shape_rows[i]);
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

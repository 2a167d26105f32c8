/* One operator as an ONNX file: what it is made of, what its inputs, weights and outputs are. */
#include "models/operator.h"

#include "graph/base/file.h"
#include "tests/support/build.h"
#include "tests/support/check.h"

#include <string.h>

#define CONV_ATTRS 2, 1, 1, 1, 1, 1, 1, 1, 1

/* clang-format off */
static const struct {
    const char *name;
    uint32_t op;
    int32_t attrs[GRAFT_MAX_ATTRS];
    graft_shape inputs[GRAFT_MAX_INPUTS];
    uint32_t const_mask;
    const char *kinds; /* ONNX operators of the file, sorted. */
} rows[] = {
    {"relu", GRAFT_OP_relu, {0}, {{{2, 3, 4, 5, 6, 7}, 6, GRAFT_DTYPE_F32}}, 0, "Relu "},
    {"add, broadcast", GRAFT_OP_add, {0}, {{{4, 5}, 2, GRAFT_DTYPE_F32}, {{5}, 1, GRAFT_DTYPE_F32}}, 2, "Add "},
    {"matmul of a weight by an input", GRAFT_OP_matmul, {0},
     {{{4, 5}, 2, GRAFT_DTYPE_F32}, {{5, 6}, 2, GRAFT_DTYPE_F32}}, 1, "MatMul "},
    {"conv", GRAFT_OP_conv, {CONV_ATTRS}, {{{1, 3, 8, 8}, 4, GRAFT_DTYPE_F32}, {{4, 3, 3, 3}, 4, GRAFT_DTYPE_F32}}, 2,
     "Conv "},
    {"conv, bias, residual, relu", GRAFT_OP_conv_bias_add, {CONV_ATTRS, GRAFT_ACT_RELU}, {{{1, 3, 8, 8},
     4, GRAFT_DTYPE_F32}, {{4, 3, 3, 3}, 4, GRAFT_DTYPE_F32}, {{4}, 1, GRAFT_DTYPE_F32}, {{1, 4, 4, 8},
     4, GRAFT_DTYPE_F32}}, 6, "Add Conv Relu "},
    {"split", GRAFT_OP_split, {1, 3}, {{{2, 8}, 2, GRAFT_DTYPE_F32}}, 0, "Split "},
    {"layer_norm", GRAFT_OP_layer_norm, {0x3727c5ac},
     {{{2, 8}, 2, GRAFT_DTYPE_F32}, {{8}, 1, GRAFT_DTYPE_F32}, {{8}, 1, GRAFT_DTYPE_F32}}, 6, "LayerNormalization "},
};
/* clang-format on */

static void check_ports(const graft_model *model, const graft_operator *of, const char *kinds)
{
    uint32_t inputs = 0;
    uint32_t weights = 0;
    uint32_t count = 0;
    graft_buffer have = {.arena = NULL};
    graft_arena *arena = graft_arena_new(1024);
    have.arena = arena;
    const graft_model_kind *list = graft_model_kinds(arena, model, &count);
    for (uint32_t i = 0; i < count; i++) {
        graft_buffer_printf(&have, "%s ", list[i].name);
        assert_int_equal(list[i].count, 1);
    }
    assert_string_equal(have.data, kinds);
    for (uint32_t k = 0; k < graft_op(of->op)->input_count; k++) {
        char name[16];
        bool is_const = (of->const_mask >> k & 1U) != 0;
        (void)snprintf(name, sizeof name, "%c%u", is_const ? 'w' : 'x', k);
        if (is_const) {
            bool found = false;
            for (uint32_t w = 0; w < model->weight_count; w++) {
                const graft_model_weight *weight = &model->weights[w];
                found = found || (weight->name != NULL && strcmp(weight->name, name) == 0 &&
                                  graft_shape_equal(&weight->shape, &of->inputs[k]));
            }
            assert_true(found);
            weights++;
        } else {
            assert_string_equal(model->inputs[inputs].name, name);
            assert_true(graft_shape_equal(&model->inputs[inputs++].shape, &of->inputs[k]));
        }
    }
    assert_int_equal(model->input_count, inputs);
    graft_arena_free(arena);
}

CHECK_CASE(test_forms)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const graft_operator of = {rows[i].op, rows[i].attrs, rows[i].inputs, rows[i].const_mask};
        graft_shape outputs[GRAFT_MAX_OUTPUTS];
        uint8_t *data[2] = {NULL, NULL};
        size_t size[2] = {0, 0};
        graft_model *model = NULL;
        print_message("# %s\n", rows[i].name);
        for (int k = 0; k < 2; k++) {
            CHECK_OK(graft_operator_pack(env, env->unit, &of, &data[k], &size[k]));
        }
        assert_int_equal(size[0], size[1]);
        assert_memory_equal(data[0], data[1], size[0]);
        CHECK_OK(graft_model_parse(env, env->unit, (graft_bytes){"operator", data[0], size[0]},
                                   NULL, &model));
        assert_int_equal(model->opaque_count, 0);
        check_ports(model, &of, rows[i].kinds);
        CHECK_OK(graft_infer_shapes(of.op, of.attrs, of.inputs, outputs));
        assert_int_equal(model->output_count, graft_op(of.op)->output_count);
        for (uint32_t k = 0; k < model->output_count; k++) {
            char name[16];
            (void)snprintf(name, sizeof name, "y%u", k);
            assert_string_equal(model->outputs[k].name, name);
            assert_true(graft_shape_equal(&model->outputs[k].shape, &outputs[k]));
        }
    }
}

CHECK_CASE(test_refusals)
{
    uint8_t *data = NULL;
    size_t size = 0;
    const int32_t attrs[GRAFT_MAX_ATTRS] = {0};
    const graft_shape bytes[2] = {
        {{4}, 1, GRAFT_DTYPE_U8},
        {{4}, 1, GRAFT_DTYPE_U8}
    };
    const graft_shape uneven[2] = {
        {{4}, 1, GRAFT_DTYPE_F32},
        {{5}, 1, GRAFT_DTYPE_F32}
    };
    graft_operator of = {GRAFT_OP_add, attrs, bytes, 0};
    check_failed(env, graft_operator_pack(env, env->unit, &of, &data, &size), GRAFT_UNSUPPORTED,
                 "not an operator on binary32 tensors");
    of.op = GRAFT_OP_OPAQUE;
    check_failed(env, graft_operator_pack(env, env->unit, &of, &data, &size), GRAFT_UNSUPPORTED,
                 "not an operator on binary32 tensors");
    of = (graft_operator){GRAFT_OP_add, attrs, uneven, 0};
    check_failed(env, graft_operator_pack(env, env->unit, &of, &data, &size), GRAFT_BAD_INPUT,
                 "add does not take these shapes");
    assert_null(data);
}

/* test_onnx_fold.c - whole-number arithmetic on sizes while reading: what is worked out, and what
 * is left to the runtime. Each row computes `d`, which an unknown operator reads: as a weight when
 * it was worked out. */
#include "graph/model.h"
#include "tests/support/onnx_text.h"

#include <inttypes.h>
#include <string.h>

typedef struct {
    const char *name;
    const char *nodes;
    const char *numbers; /* "-": not worked out. A scalar stands in brackets. */
} fold_row;

/* x has the sizes 2 3 4; lists l = 5 6 7, m = 1 2 3, e (no items); scalars i = 1, n = -1, z = 0. */
static const char head[] =
    "input x 2 3 4; input u; ints l = 5 6 7; ints m = 1 2 3; ints e =; scalar i = 1; scalar n = -1;"
    "scalar z = 0; ints zero = 0; ints one = 1; ints two = 2; ints last = -1; ints all = 100;"
    "ints back = -100; weight w 2 = 1.0 2.0;";

/* clang-format off */
static const fold_row rows[] = {
    {"the shape", "node Shape x -> d", "2 3 4"},
    {"a part of the shape", "node Shape x -> d : start=1 end=-1", "3"},
    {"a part beyond the shape", "node Shape x -> d : start=-9 end=9", "2 3 4"},
    {"the shape of a weight", "node Shape w -> d", "2"},
    {"the shape of what is not known", "node Shape u -> d", "-"},
    {"the number of elements", "node Size x -> d", "(24)"},
    {"identity", "node Identity l -> d", "5 6 7"},
    {"identity of binary32", "node Identity w -> d", "-"},
    {"cast to int64", "node Cast l -> d : to=7", "5 6 7"},
    {"cast to int32", "node Cast l -> d : to=6", "5 6 7"},
    {"cast to binary32 and back", "node Cast l -> f : to=1; node Cast f -> d : to=7", "5 6 7"},
    {"cast of what does not fit", "ints k = 4294967296; node Cast k -> d : to=6", "-"},
    {"not", "bools b = 0; node Not b -> c; node Cast c -> d : to=7", "(1)"},
    {"compare, choose", "node Less m two -> c; node Where c l last -> d", "5 -1 -1"},
    {"a table",
     "ints k = 3 1; node Reshape l k -> t; node Mul t m -> q; node Slice q one two zero -> r; node Squeeze r -> d",
     "6 12 18"},
    {"backwards", "node Slice l last back zero last -> d", "7 6 5"},
    {"count", "scalar k = 9; scalar t = 3; node Range n k t -> d", "-1 2 5 8"},
    {"count too far", "scalar k = 200000; node Range z k i -> d", "-"},
    {"count nothing", "node Range i i i -> d", "-"},
    {"choose between types", "node Less m two -> c; node Where c l w -> d", "-"},
    {"remainder", "node Mod l two -> d", "1 0 1"},
    {"remainder of a negative number", "node Mod n two -> d", "-"},
    {"places outside", "ints k = 2 9; node Reshape l last -> t; node Gather t k -> d", "-"},
    {"gather one", "node Gather l i -> d", "(6)"},
    {"gather the last", "node Gather l n -> d", "(7)"},
    {"gather a list", "node Gather l last -> d : axis=-1", "7"},
    {"gather outside", "node Gather l all -> d", "-"},
    {"gather before the first", "node Gather l back -> d", "-"},
    {"gather along another axis", "node Gather l i -> d : axis=1", "-"},
    {"concat", "node Concat l m l -> d : axis=0", "5 6 7 1 2 3 5 6 7"},
    {"concat of scalars", "node Concat i i -> d : axis=0", "-"},
    {"concat of two types", "node Cast l -> k : to=6; node Concat l k -> d : axis=0", "-"},
    {"nothing of a list, joined", "node Slice l all back -> c; node Concat c m c -> d : axis=0", "1 2 3"},
    {"nothing of a list, multiplied", "node Slice l one zero -> c; node Mul c two -> f; node Concat f m -> d : axis=0",
     "1 2 3"},
    {"gather nothing", "node Slice l one zero -> k; node Gather l k -> c; node Concat l c -> d : axis=0", "5 6 7"},
    {"nothing of a kind, joined", "node ConstantOfShape zero -> c : value=#9; node Concat l c -> d : axis=0", "5 6 7"},
    {"two of a kind", "node ConstantOfShape two -> d : value=#9", "9 9"},
    {"one number", "node ConstantOfShape e -> d : value=#9", "(9)"},
    {"fewer than none of a kind", "node ConstantOfShape last -> d : value=#9", "-"},
    {"unsqueeze", "node Unsqueeze i zero -> d", "1"},
    {"unsqueeze a list", "node Unsqueeze l zero -> d", "5 6 7"},
    {"squeeze", "node Squeeze one zero -> d", "(1)"},
    {"squeeze without axes", "node Squeeze one -> d", "(1)"},
    {"squeeze three", "node Squeeze l -> d", "5 6 7"},
    {"reshape to a list", "node Reshape i last -> d", "1"},
    {"reshape to the same", "ints k = 3; node Reshape l k -> d", "5 6 7"},
    {"reshape to two axes", "ints k = 3 1; node Reshape l k -> d", "5 6 7"},
    {"slice", "node Slice l one all -> d", "6 7"},
    {"slice from behind", "node Slice l last all -> d", "7"},
    {"slice with steps", "node Slice m zero all zero two -> d", "1 3"},
    {"slice backwards", "node Slice l all back zero last -> d", "7 6 5"},
    {"slice backwards to the end",
     "ints k = 9223372036854775807; node Slice l last k zero last -> c; node Concat c l -> d : axis=0", "-"},
    {"slice backwards to an end near",
     "ints k = 2147483647; node Slice l last k zero last -> c; node Concat c l -> d : axis=0", "-"},
    {"slice backwards of nothing", "node Slice l last all zero last -> c; node Concat c l -> d : axis=0", "5 6 7"},
    {"slice with steps of 0", "node Slice l zero all zero zero -> d", "-"},
    {"slice of no items", "node Slice e last all -> d", "-"},
    {"add", "node Add l m -> d", "6 8 10"},
    {"subtract a scalar", "node Sub l i -> d", "4 5 6"},
    {"multiply a scalar by a list", "node Mul i m -> d", "1 2 3"},
    {"divide", "node Div l two -> d", "2 3 3"},
    {"divide by 0", "node Div l zero -> d", "-"},
    {"divide a negative number", "node Div n two -> d", "-"},
    {"add lists that do not fit", "ints k = 1 2; node Add l k -> d", "-"},
    {"overflow", "ints k = 9223372036854775807 1; node Add k one -> d", "-"},
    {"a chain", "node Shape x -> a; node Gather a i -> b; node Mul b i -> c; "
     "node Unsqueeze c zero -> f;node Concat f last -> d : axis=0", "3 -1"},
    {"what depends on data", "node NonZero x -> a; node Gather a z -> d", "-"},
};
/* clang-format on */

static const char *print_weight(graft_arena *arena, const graft_model_weight *weight)
{
    char *text = graft_arena_printf(arena, "%s", "");
    size_t width = weight->shape.dtype == GRAFT_DTYPE_I32 ? sizeof(int32_t) : sizeof(int64_t);
    for (size_t i = 0; i < weight->data_bytes / width; i++) {
        int64_t number = width == sizeof(int32_t) ? ((const int32_t *)weight->data)[i]
                                                  : ((const int64_t *)weight->data)[i];
        text = graft_arena_printf(arena, "%s%s%" PRId64, text, i > 0 ? " " : "", number);
    }
    return weight->shape.rank == 0 ? graft_arena_printf(arena, "(%s)", text) : text;
}

CHECK_ROWS(test_row, rows)
{
    const fold_row *row = place;
    const char *text = "-";
    graft_model *model = onnx_text_model(
        env, graft_arena_printf(env->life, "%s%s; node Magic d -> y; output y", head, row->nodes));
    for (graft_index v = 0; v < model->graph.value_end; v++) {
        const graft_value *value = &model->graph.values[v];
        const char *name = graft_model_value_name(model, &model->graph, v);
        if (value->kind == GRAFT_VALUE_WEIGHT && strcmp(name, "d") == 0) {
            text = print_weight(env->unit, &model->weights[value->source]);
        }
    }
    assert_string_equal(text, row->numbers);
}

/* What is worked out of a weight without elements, as it is stored; NULL when nothing is. */
static const Onnx__TensorProto *joined_nothing(graft_env *env, size_t rank, uint8_t dtype)
{
    static int64_t sizes[] = {0, 3};
    Onnx__ModelProto *proto =
        onnx_text_message(env->life, "ints e =; node Concat e e -> d : axis=0; node Magic d -> y");
    Onnx__TensorProto *tensor = proto->graph->initializer[0];
    graft_model *model = NULL;
    tensor->data_type = dtype;
    tensor->n_dims = rank;
    tensor->dims = sizes;
    CHECK_OK(onnx_text_read(env, proto, NULL, &model));
    for (uint32_t w = 0; w < model->weight_count; w++) {
        if (strcmp(model->weights[w].name, "d") == 0) {
            return model->weights[w].tensor;
        }
    }
    return NULL;
}

/* Lists without items keep their type; what else has no elements is left alone. */
CHECK_CASE(test_without_elements)
{
    static const uint8_t types[] = {GRAFT_DTYPE_I64, GRAFT_DTYPE_I32};
    for (uint32_t t = 0; t < 2; t++) {
        const Onnx__TensorProto *list = joined_nothing(env, 1, types[t]);
        assert_non_null(list);
        assert_int_equal(list->n_dims, 1);
        assert_int_equal(list->data_type, types[t]);
        assert_null(joined_nothing(env, 2, types[t]));
    }
}

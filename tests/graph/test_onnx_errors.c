/* test_onnx_errors.c - files that are no valid models: one clear message, no crash, nothing leaked
 * into the result. */
#include "graph/base/file.h"
#include "graph/model.h"
#include "tests/support/onnx_text.h"

#include <string.h>

typedef struct {
    const char *name;
    const char *model;
    const char *message;
} error_row;

/* clang-format off */
static const error_row rows[] = {
    {"an input that nothing produces", "input x 2; node Relu a -> y",
     "node 0 'n0' (Relu): input 0 is 'a', which nothing produces"},
    {"an output that nothing produces", "input x 2; node Relu x -> y; output z",
     "output 0 is 'z', which nothing produces"},
    {"a name given twice by nodes", "input x 2; node Relu x -> y; node Exp x -> y",
     "the name 'y' is given twice, by output 0 of node 1 'n1' (Exp)"},
    {"a name given by an input and a node", "input x 2; node Relu x -> x; output x", "the name 'x' is given twice"},
    {"two weights of one name", "weight w 2; weight w 3; node Relu w -> y", "the name 'w' is given twice"},
    {"a cycle", "input x 2; node Add x b -> a; node Relu a -> b; output b",
     "node 0 'n0' (Add) depends on its own output"},
    {"a cycle through a subgraph",
     "input c; graph t; node Relu y -> r; output r; end; node If c -> y : then_branch=@t else_branch=@t",
     "node 0 'n1' (If) depends on its own output"},
    {"a body that reads what nothing produces",
     "input c; graph t; node Relu q -> r; output r; end; node If c -> y : then_branch=@t else_branch=@t",
     "node 0 'n1' (If): its body reads 'q', which nothing produces"},
    {"a body whose output nothing produces",
     "input c; graph t; output r; end; node If c -> y : then_branch=@t else_branch=@t",
     "node 0 'n0' (If): its body reads 'r', which nothing produces"},
    {"a body that is missing", "input c; graph t; node Relu c -> r; output r; end; node If c -> y : then_branch=@t",
     "node 0 'n1' (If): its else_branch has 0 outputs, not 1"},
    {"an empty body", "input n; input x 3; graph b; end; node Loop n _ x -> y : body=@b",
     "node 0 'n0' (Loop): its body has 0 outputs, not 2"},
};
/* clang-format on */

static void expect_error(graft_env *env, Onnx__ModelProto *proto, const char *message)
{
    graft_model *model = NULL;
    graft_status status = onnx_text_read(env, proto, NULL, &model);
    check_failed(env, status, GRAFT_BAD_INPUT, message);
    assert_null(model);
}

CHECK_ROWS(test_row, rows)
{
    const error_row *row = place;
    expect_error(env, onnx_text_message(env->life, row->model), row->message);
}

/* ------------------------------------------------------------------- messages that are edited */

static const char weighted[] = "input x 2 3; weight w 2 3; node Add x w -> y; output y";

CHECK_CASE(test_tensor_data)
{
    Onnx__ModelProto *proto = onnx_text_message(env->life, weighted);
    Onnx__TensorProto *w = proto->graph->initializer[0];
    w->raw_data.len = 20;
    expect_error(env, proto, "initializer 'w' has 20 bytes where its shape needs 24");
    w->has_raw_data = 0;
    expect_error(env, proto, "initializer 'w' has 0 elements where its shape needs 6");
    w->dims[0] = -2;
    expect_error(env, proto, "initializer 'w' has impossible sizes");
    w->dims[0] = INT64_MAX;
    expect_error(env, proto, "initializer 'w' has impossible sizes");
    w->dims[0] = 2;
    w->name = NULL;
    w->has_raw_data = 1;
    w->raw_data.len = 24;
    expect_error(env, proto, "initializer 0 has no name");
}

CHECK_CASE(test_constant_data)
{
    const int64_t dims[1] = {3};
    const float data[3] = {1.0F, 2.0F, 3.0F};
    Onnx__ModelProto *proto =
        onnx_text_message(env->life, "input x 2; node Constant -> c : value=0; node Add x c -> y");
    Onnx__AttributeProto *value = proto->graph->node[0]->attribute[0];
    value->has_i = 0;
    value->t = graft_onnx_make_tensor(env->life, "", GRAFT_DTYPE_F32, dims, 1, data);
    value->t->raw_data.len = 8;
    expect_error(env, proto, "tensor '' has 8 bytes where its shape needs 12");
}

CHECK_CASE(test_no_graph)
{
    Onnx__ModelProto *proto = onnx_text_message(env->life, weighted);
    proto->n_opset_import = 0;
    expect_error(env, proto, "not a whole ONNX model: it has no opset_import");
    proto->has_ir_version = 0;
    expect_error(env, proto, "not a whole ONNX model: it has no ir_version");
    proto->graph = NULL;
    expect_error(env, proto, "test.onnx: not an ONNX model: it has no graph");
}

CHECK_CASE(test_external_data_out_of_reach)
{
    static const char *const places[] = {"", "/etc/passwd", "../x", "a/../../x", ".."};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        Onnx__ModelProto *proto = onnx_text_message(env->life, weighted);
        Onnx__TensorProto *w = proto->graph->initializer[0];
        Onnx__StringStringEntryProto entry;
        Onnx__StringStringEntryProto *entries[1] = {&entry};
        onnx__string_string_entry_proto__init(&entry);
        entry.key = graft_arena_strdup(env->life, "location");
        entry.value = graft_arena_strdup(env->life, places[i]);
        w->has_data_location = 1;
        w->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
        w->n_external_data = 1;
        w->external_data = entries;
        expect_error(env, proto, "is not a file in the model's folder");
    }
}

CHECK_CASE(test_options)
{
    const graft_model_size sizes[] = {
        {.name = "N", .value = 0},
        {.name = "M", .value = 4}
    };
    static const char *const messages[] = {"test.onnx: size 'N' cannot be 0",
                                           "test.onnx: has no open size 'M'"};
    for (size_t i = 0; i < 2; i++) {
        graft_model *model = NULL;
        graft_model_options options = {.sizes = &sizes[i], .size_count = 1};
        graft_status status = onnx_text_read(
            env, onnx_text_message(env->life, "input x N 3; node Relu x -> y; output y"), &options,
            &model);
        check_failed(env, status, GRAFT_BAD_INPUT, messages[i]);
    }
}

/* ------------------------------------------------------------------------------------ bytes */

static const char everything[] =
    "input x N 3; input c; weight w 2 3; ints s = 3 -1; scalar k = 4; graph t; node Relu x -> r;"
    "output r; end; node Add x w -> a; node Reshape a s -> b; node Conv b w -> d : pads=1,2,3,4"
    " group=1 auto_pad=VALID; node Softmax b -> e : axis=1; node LeakyRelu e -> f : alpha=0.5;"
    "node If c -> g : then_branch=@t else_branch=@t; info b 3 2; output f; output g 1 3";

/* A model that is cut off is never a model, and the message names the byte. */
CHECK_CASE(test_truncation)
{
    uint8_t *whole = NULL;
    size_t size = 0;
    onnx_text_bytes(env->life, everything, &whole, &size);
    for (size_t cut = 0; cut < size; cut++) {
        graft_model *model = NULL;
        /* A copy of its own, so that reading past the end is seen. */
        uint8_t *part = test_malloc(cut + 1);
        memcpy(part, whole, cut);
        graft_status status =
            graft_model_parse(env, env->unit, (graft_bytes){"cut.onnx", part, cut}, NULL, &model);
        test_free(part);
        check_failed(env, status, GRAFT_BAD_INPUT, "cut.onnx: ");
        graft_arena_reset(env->unit);
    }
}

/* Every byte changed in turn: an error or a model, which can be written again, but no crash. */
CHECK_CASE(test_changed_bytes)
{
    uint8_t *whole = NULL;
    size_t size = 0;
    uint32_t models = 0;
    onnx_text_bytes(env->life, everything, &whole, &size);
    for (size_t i = 0; i < size; i++) {
        uint8_t old = whole[i];
        for (uint32_t bit = 0; bit < 8; bit++) {
            graft_model *model = NULL;
            uint8_t *data = NULL;
            size_t bytes = 0;
            whole[i] = (uint8_t)(old ^ 1U << bit);
            if (graft_model_parse(env, env->unit, (graft_bytes){"x.onnx", whole, size}, NULL,
                                  &model) == GRAFT_OK) {
                models++;
                CHECK_OK(graft_model_pack(env, env->unit, model, &model->graph, &data, &bytes));
            } else {
                assert_non_null(strstr(env->message, "x.onnx"));
            }
            graft_env_clear(env);
            graft_arena_reset(env->unit);
        }
        whole[i] = old;
    }
    assert_true(models > 0);
}

CHECK_CASE(test_files)
{
    char *path = check_path("x.onnx");
    graft_model *model = NULL;
    check_failed(env, graft_model_read(env, env->life, path, NULL, &model), GRAFT_IO,
                 "x.onnx: cannot open: No such file or directory");
    CHECK_OK(graft_file_write(env, path, "garbage", 7));
    check_failed(env, graft_model_read(env, env->life, path, NULL, &model), GRAFT_BAD_INPUT,
                 "x.onnx: byte 0: ");
    CHECK_OK(graft_file_write(env, path, "", 0));
    check_failed(env, graft_model_read(env, env->life, path, NULL, &model), GRAFT_BAD_INPUT,
                 "x.onnx: not an ONNX model: it has no graph");
    assert_null(model);
}

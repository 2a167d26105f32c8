/* Equal nodes become one: which are, who keeps its ids, and that outputs stay what they were. */
#include "graph/equal.h"

#include "tests/support/build.h"
#include "tests/support/onnx_text.h"

typedef struct {
    const char *name;
    const char *model;
    const char *merged; /* NULL: nothing is. */
} equal_row;

/* clang-format off */
static const equal_row rows[] = {
    {"two of three", "input x 2; node Relu x -> a; node Tanh x -> b; node Relu x -> c; node Sum a b c -> y; output y",
     "a = relu(x)\nb = tanh(x)\n%4 = add(a, b)\ny = add(%4, a)\nout y"},
    {"chains", "input x 2; input z 2;node Concat x z -> a : axis=0; node Relu a -> b; "
     "node Concat x z -> c : axis=0;node Relu c -> d; node Add b d -> y; output y",
     "a = concat(x, z)\nb = relu(a)\ny = add(b, b)\nout y"},
    {"operands the other way round",
     "input x 2; input z 2; node Add x z -> a; node Add z x -> b; node Mul a b -> y; output y", NULL},
    {"attributes", "input x 2 2; node Concat x x -> a : axis=0; node Concat x x -> b : axis=1; output a; output b",
     NULL},
    {"both results of a split", "input x 4; node Split x -> a b : axis=0; "
     "node Split x -> c d : axis=0;node Add a d -> y; node Add c b -> z; output y; output z",
     "a, b = split(x) 0 2\ny = add(a, b)\nout y y"},
    {"outputs", "input x 2; node Relu x -> a; node Relu x -> b; output b; output a", "a = relu(x)\nout a a"},
    {"sums of one weight", "input x 2; weight w 2; node Relu w -> a; node Relu w -> b;node Add x a -> c; "
     "node Mul x b -> d; output c; output d", "a = relu(w)\nc = add(x, a)\nd = mul(x, a)\nout c d"},
    {"weights of equal elements",
     "input x 2; weight v 2; weight w 2; node Add x v -> a; node Add x w -> b; output a; output b", NULL},
    {"operators that are not known",
     "input x 2; node RandomNormalLike x -> a; node RandomNormalLike x -> b; output a; output b", NULL},
    {"what reads them",
     "input x 2; info a 2; node RandomNormalLike x -> a; node Relu a -> b; node Relu a -> c; output b;output c",
     "a = RandomNormalLike(x) opaque\nb = relu(a)\nout b b"},
};
/* clang-format on */

CHECK_ROWS(test_row, rows)
{
    const equal_row *row = place;
    const graft_model *model = onnx_text_model(env, row->model);
    const graft_order given = build_order(env->unit, &model->graph);
    const graft_graph *graph = &model->graph;
    const graft_order *order = &given;
    const char *before = onnx_text_print(env->unit, model, graph);
    graft_equal_merge(env->unit, &graph, &order);
    assert_string_equal(onnx_text_print(env->unit, model, &model->graph), before);
    if (row->merged == NULL) {
        assert_ptr_equal(graph, &model->graph);
        assert_ptr_equal(order, &given);
    } else {
        assert_string_equal(onnx_text_print(env->unit, model, graph), row->merged);
        build_check(env->unit, graph);
        assert_int_equal(order->count, graft_graph_node_count(graph));
    }
}

/* Two outputs that one node makes now keep their names. */
CHECK_CASE(test_written_outputs)
{
    const graft_model *model =
        onnx_text_model(env, "input x 2; node Relu x -> a; node Relu x -> b; output a; output b");
    const graft_order given = build_order(env->unit, &model->graph);
    const graft_graph *graph = &model->graph;
    const graft_order *order = &given;
    uint8_t *data = NULL;
    size_t size = 0;
    graft_model *again = NULL;
    graft_equal_merge(env->unit, &graph, &order);
    CHECK_OK(graft_model_pack(env, env->unit, model, graph, &data, &size));
    const graft_bytes bytes = {"written", data, size};
    CHECK_OK(graft_model_parse(env, env->unit, bytes, NULL, &again));
    assert_string_equal(onnx_text_print(env->unit, again, &again->graph),
                        "a = relu(x)\nb = identity(a)\nout a b");
}

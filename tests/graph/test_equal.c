/* Equal nodes become one: which are, who keeps its ids, and that outputs stay what they were. */
#include "graph/equal.h"

#include "tests/support/build.h"
#include "tests/support/onnx_text.h"

#include <string.h>

typedef struct {
    const char *name;
    const char *model;
    const char *merged; /* NULL: nothing is. */
} equal_row;

/* clang-format off */
static const equal_row rows[] = {
    {"two of three",
     "input x 2; node Relu x -> a; node Tanh x -> b; node Relu x -> c; node Sum a b c -> y; output y",
     "a = relu(x)\nb = tanh(x)\n%4 = add(a, b)\ny = add(%4, a)\nout y"},
    {"chains",
     "input x 2; input z 2;"
     "node Concat x z -> a : axis=0; node Relu a -> b; node Concat x z -> c : axis=0;"
     "node Relu c -> d; node Add b d -> y; output y",
     "a = concat(x, z)\nb = relu(a)\ny = add(b, b)\nout y"},
    {"operands the other way round",
     "input x 2; input z 2; node Add x z -> a; node Add z x -> b; node Mul a b -> y; output y",
     NULL},
    {"attributes",
     "input x 2 2; node Concat x x -> a : axis=0; node Concat x x -> b : axis=1; output a; output b",
     NULL},
    {"both results of a split",
     "input x 4; node Split x -> a b : axis=0; node Split x -> c d : axis=0;"
     "node Add a d -> y; node Add c b -> z; output y; output z",
     "a, b = split(x) 0 2\ny = add(a, b)\nout y y"},
    {"outputs",
     "input x 2; node Relu x -> a; node Relu x -> b; output b; output a",
     "a = relu(x)\nout a a"},
    {"sums of one weight",
     "input x 2; weight w 2; node Relu w -> a; node Relu w -> b;"
     "node Add x a -> c; node Mul x b -> d; output c; output d",
     "a = relu(w)\nc = add(x, a)\nd = mul(x, a)\nout c d"},
    {"weights of equal elements",
     "input x 2; weight v 2; weight w 2; node Add x v -> a; node Add x w -> b; output a; output b",
     NULL},
    {"operators that are not known",
     "input x 2; node RandomNormalLike x -> a; node RandomNormalLike x -> b; output a; output b",
     NULL},
    {"what reads them",
     "input x 2; info a 2; node RandomNormalLike x -> a; node Relu a -> b; node Relu a -> c; output b;"
     "output c",
     "a = RandomNormalLike(x) opaque\nb = relu(a)\nout b b"},
};
/* clang-format on */

static void test_row(void **state)
{
    const equal_row *row = *state;
    void *opened = NULL;
    assert_int_equal(check_open_env(&opened), 0);
    graft_env *env = opened;
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
        size_t bytes = graft_order_bytes(&graph->limits);
        assert_string_equal(onnx_text_print(env->unit, model, graph), row->merged);
        assert_null(graft_graph_check(graph, graft_arena_alloc(env->unit, bytes), bytes));
        assert_int_equal(order->count, graft_graph_node_count(graph));
    }
    assert_int_equal(check_close_env(&opened), 0);
}

/* Two outputs that one node makes now keep their names. */
static void test_written_outputs(void **state)
{
    graft_env *env = *state;
    const graft_model *model =
        onnx_text_model(env, "input x 2; node Relu x -> a; node Relu x -> b; output a; output b");
    const graft_order given = build_order(env->unit, &model->graph);
    const graft_graph *graph = &model->graph;
    const graft_order *order = &given;
    uint8_t *data = NULL;
    size_t size = 0;
    graft_model *again = NULL;
    graft_equal_merge(env->unit, &graph, &order);
    assert_int_equal(graft_model_pack(env, env->unit, model, graph, &data, &size), GRAFT_OK);
    const graft_bytes bytes = {"written", data, size};
    assert_int_equal(graft_model_parse(env, env->unit, bytes, NULL, &again), GRAFT_OK);
    assert_string_equal(onnx_text_print(env->unit, again, &again->graph),
                        "a = relu(x)\nb = identity(a)\nout a b");
}

int main(void)
{
    enum { ROWS = sizeof(rows) / sizeof(rows[0]) };
    struct CMUnitTest tests[ROWS + 1] = {[ROWS] = CHECK_TEST(test_written_outputs)};
    for (size_t i = 0; i < ROWS; i++) {
        tests[i] = (struct CMUnitTest){.name = rows[i].name, .test_func = test_row};
        memcpy(&tests[i].initial_state, &(const void *){&rows[i]}, sizeof(void *));
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_opaque.c - opaque nodes that can be run: what they compute, and what they refuse. */
#include "graph/equal.h"
#include "graph/meaning/algebra_float.h"
#include "graph/opaque.h"
#include "tests/support/build.h"
#include "tests/support/onnx_text.h"

#include <string.h>

typedef struct {
    const char *name;
    const char *model; /* Input x, if any, has elements 0, 1, 2... */
    uint32_t count;
    float outputs[12];
} opaque_row;

static const opaque_row rows[] = {
    {"rows in another order",
     "input x 4 2; ints i = 3 0 3; node Gather x i -> y; output y",                  6,
     {6, 7, 0, 1, 6, 7}                                                                        },
    {"places from the end",
     "input x 4 2; ints i = -1 -4; node Gather x i -> y; output y",                  4,
     {6, 7, 0, 1}                                                                              },
    {"columns",
     "input x 2 3; ints i = 2 0; node Gather x i -> y : axis=-1; output y",          4,
     {2, 0, 5, 3}                                                                              },
    {"cast of whole numbers",    "ints c = -3 7; node Cast c -> y : to=1; output y", 2, {-3, 7}},
    {"cast of truth values",     "bools c = 1; node Cast c -> y : to=1; output y",   1, {1}    },
    {"there and back",
     "input x 3; node Cast x -> i : to=7; node Cast i -> y : to=1; output y",        3,
     {0, 1, 2}                                                                                 },
    {"an axis of whole numbers",
     "input x 2; ints a = 0; node Cast x -> c : to=7; node Unsqueeze c a -> d;"
     "node Cast d -> y : to=1; output y",                                            2,
     {0, 1}                                                                                    },
};

CHECK_CASE(test_outputs)
{
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        print_message("# %s\n", rows[r].name);
        const graft_model *model = onnx_text_model(env, rows[r].model);
        const graft_graph *graph = &model->graph;
        graft_order order = build_order(env->unit, graph);
        const float **values = onnx_text_values(env, model);
        /* Constants were cast while the model was read. */
        assert_true(model->opaque_count > 0 || model->onnx->proto->graph->n_input == 0);
        CHECK_OK(graft_float_model(env, env->unit, model, graph, &order, values));
        graft_index y = graph->outputs[0];
        assert_int_equal(graft_shape_elements(&graph->values[y].shape), rows[r].count);
        assert_memory_equal(values[y], rows[r].outputs, rows[r].count * sizeof(float));
    }
}

static void check_refused(graft_env *env, const char *text, graft_status expected,
                          const char *message)
{
    const graft_model *model = onnx_text_model(env, text);
    graft_order order = build_order(env->unit, &model->graph);
    check_failed(env,
                 graft_float_model(env, env->unit, model, &model->graph, &order,
                                   onnx_text_values(env, model)),
                 expected, message);
}

CHECK_CASE(test_refusals)
{
    check_refused(env, "input x 4 2; ints i = 0 4; node Gather x i -> y; output y", GRAFT_BAD_INPUT,
                  "place 4 lies outside of a table of 4 rows");
    check_refused(env, "input x 4 2; ints i = -5 0; node Gather x i -> y; output y",
                  GRAFT_BAD_INPUT, "place -5 lies outside");
    check_refused(env, "input x 2; node Magic x -> y; output y 2", GRAFT_UNSUPPORTED, "is opaque");
    check_refused(env, "input x 2; node Cast x -> d : to=11; node Cast d -> y : to=1; output y",
                  GRAFT_UNSUPPORTED, "is opaque");
    check_refused(env, "input x 2; node Identity x -> y : domain=com.example; output y 2",
                  GRAFT_UNSUPPORTED, "is opaque");
}

/* Without a model nothing is known about an opaque node. */
CHECK_CASE(test_without_a_model)
{
    const graft_model *model = onnx_text_model(env, rows[0].model);
    graft_order order = build_order(env->unit, &model->graph);
    check_failed(env,
                 graft_float_model(env, env->unit, NULL, &model->graph, &order,
                                   onnx_text_values(env, model)),
                 GRAFT_UNSUPPORTED, "is opaque");
}

/* Nodes of weights alone are part of the weight program, whatever types are between them. */
CHECK_CASE(test_weights)
{
    static const float numbers[] = {0.0F, 0.5F, 2.0F, 127.5F};
    graft_weights weights;
    const graft_model *model =
        onnx_text_model(env, "input x 4; weight w 4 = -1 0.6 2 200; weight s = 0.5;"
                             "node QuantizeLinear w s -> q; node DequantizeLinear q s -> d;"
                             "node Add x d -> y; output y; output d");
    const graft_graph *graph = &model->graph;
    assert_int_equal(model->opaque_count, 2);
    assert_int_equal(graft_graph_active_count(graph), 1);
    CHECK_OK(graft_model_fold_weights(env, env->unit, model, graph, &weights));
    assert_memory_equal(graft_weights_data(&weights, graph->outputs[1]), numbers, sizeof(numbers));
}

/* Others run at each inference: of inputs, or when nobody knows what they compute. */
CHECK_CASE(test_no_weights)
{
    static const char *const texts[] = {
        "input x 2; weight s = 0.5; node QuantizeLinear x s -> q; node DequantizeLinear q s -> y;"
        "output y",
        "input x 2; weight w 2; node Magic w -> a; info a 2; node Add x a -> y; output y",
        "input x 2; weight w 2; node Identity w -> a : domain=com.example; info a 2;"
        "node Add x a -> y; output y",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        print_message("# %s\n", texts[i]);
        const graft_model *model = onnx_text_model(env, texts[i]);
        assert_int_equal(graft_graph_active_count(&model->graph), 2);
    }
}

CHECK_CASE(test_weights_that_do_not_fit)
{
    graft_weights weights;
    const graft_model *model =
        onnx_text_model(env, "input x 2 2; weight w 4 2; ints i = 1 4; node Gather w i -> a;"
                             "node Add x a -> y; output y");
    check_failed(env, graft_model_fold_weights(env, env->unit, model, &model->graph, &weights),
                 GRAFT_BAD_INPUT, "weights of test.onnx");
}

/* An executor reads the first of equal constants, also where nothing else does. */
CHECK_CASE(test_weights_that_are_equal)
{
    graft_weights weights;
    const graft_model *model =
        onnx_text_model(env, "input x 8; weight w 4; weight e = 0.5; ints r = 2; node Add w e -> a;"
                             "node Tile a r -> t; node Add x t -> b; node Add b e -> y; output y");
    const graft_graph *graph = &model->graph;
    graft_order order = build_order(env->unit, graph);
    const graft_index *same = graft_equal_find(env->unit, graph, &order);
    assert_non_null(same);
    CHECK_OK(graft_model_fold_weights(env, env->unit, model, graph, &weights));
    for (graft_index v = 0; v < graph->value_end; v++) {
        if (graft_weights_data(&weights, v) != NULL) {
            assert_non_null(graft_weights_data(&weights, same[v]));
        }
    }
}

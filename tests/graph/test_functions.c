/* test_functions.c - functions that a file brings along (onnx_functions.c): what their calls
 * become, which of them stay, and which files are refused. */
#include "graph/model.h"
#include "tests/support/onnx_text.h"

static void check_graph(graft_env *env, const char *text, const char *expected, size_t functions)
{
    graft_model *model = NULL;
    Onnx__ModelProto *proto = onnx_text_message(env->life, text);
    CHECK_OK(onnx_text_read(env, proto, NULL, &model));
    assert_string_equal(onnx_text_print(env->unit, model, &model->graph), expected);
    assert_int_equal(proto->n_functions, functions);
}

CHECK_CASE(test_calls)
{
    /* Names of a body are its own, also where the graph has them; each call has others. */
    check_graph(env,
                "input x 2; function f a b -> y; node Exp a -> x; node Add x b -> y; end;"
                "node f x x -> b : domain=own; node f b x -> y : domain=own; output y",
                "b/x = exp(x)\nb = add(b/x, x)\ny/x = exp(b)\ny = add(y/x, x)\nout y", 0);
    /* One in another, given later; an output that is an input, one twice, one that nothing
     * reads. */
    check_graph(
        env,
        "input x 2; function f a -> y z y q; node g a -> y : domain=own;"
        "node Identity a -> z; node Abs y -> q; end; function g a -> y; node Exp a -> y; end;"
        "node f x -> p q r : domain=own; function h a -> a; end;"
        "node h r -> s : domain=own; output p; output q; output s",
        "p = exp(x)\nq = identity(x)\np/q = abs(p)\nr = identity(p)\ns = identity(r)\n"
        "out p q s",
        0);
    /* What is not given stays so. */
    check_graph(env,
                "input x 2; weight w = 1; function f a least most -> y;"
                "node Clip a least most -> y; end; node f x _ w -> y : domain=own; output y",
                "y = clip(x) -3.40282e+38 1\nout y", 0);
}

CHECK_CASE(test_attributes)
{
    static const char text[] =
        "input x 2; function f a -> y : slope=0.25; node LeakyRelu a -> y : alpha=&slope; end;"
        "function g a -> y; node f a -> y : domain=own slope=&s; end;"
        "node f x -> p : domain=own; node f p -> q : domain=own slope=0.5;"
        "node g q -> r : domain=own s=0.75; node g r -> y : domain=own; output y";
    check_graph(env, text,
                "p = leaky_relu(x) 0.25\nq = leaky_relu(p) 0.5\nr = leaky_relu(q) 0.75\n"
                "y = leaky_relu(r) 0.25\nout y",
                0);
    /* Without a default the operator's own. */
    check_graph(env,
                "input x 2; function f a -> y; node LeakyRelu a -> y : alpha=&slope; end;"
                "node f x -> y : domain=own; output y",
                "y = leaky_relu(x) 0.01\nout y", 0);
}

CHECK_CASE(test_what_stays)
{
    /* The model would read its nodes as others. What it calls goes with it. */
    check_graph(env,
                "input x 2; function g a -> y; opset 12; node Exp a -> y; end;"
                "function f a -> y; opset 12; node g a -> t : domain=own; node Abs t -> y; end;"
                "function h a -> y; node Abs a -> y; end; function unused a -> y; end;"
                "node f x -> p : domain=own; node h p -> y : domain=own; output y",
                "p = f(x) opaque\ny = Abs(p) opaque\nout y", 2);
    /* More than it has. */
    check_graph(env,
                "input x 2; function f a -> y; node Exp a -> y; end; node f x x -> y : domain=own",
                "y = f(x, x) opaque\nout y", 1);
}

/* Each calls the one before it twice. */
CHECK_CASE(test_size)
{
    enum { LEVELS = 20 };
    graft_model *model = NULL;
    Onnx__ModelProto *proto = onnx_text_message(
        env->life, "input x 2; function f a -> y; node f a -> t : domain=own;"
                   "node f t -> y : domain=own; end; node f x -> y : domain=own; output y");
    Onnx__FunctionProto *first = proto->functions[0];
    proto->functions = GRAFT_NEW(env->life, Onnx__FunctionProto *, LEVELS);
    proto->n_functions = LEVELS;
    for (int f = 0; f < LEVELS; f++) {
        proto->functions[f] = GRAFT_NEW(env->life, Onnx__FunctionProto, 1);
        *proto->functions[f] = *first;
        proto->functions[f]->name = graft_arena_printf(env->life, f == 0 ? "f" : "f%d", f);
        proto->functions[f]->node = GRAFT_NEW(env->life, Onnx__NodeProto *, 2);
        for (int n = 0; n < 2; n++) {
            Onnx__NodeProto *node = GRAFT_NEW(env->life, Onnx__NodeProto, 1);
            *node = *first->node[n];
            node->op_type = graft_arena_printf(env->life, f + 1 < LEVELS ? "f%d" : "Exp", f + 1);
            node->domain = f + 1 < LEVELS ? node->domain : NULL;
            proto->functions[f]->node[n] = node;
        }
    }
    CHECK_OK(onnx_text_read(env, proto, NULL, &model));
    assert_string_equal(onnx_text_print(env->unit, model, &model->graph), "y = f(x) opaque\nout y");
    assert_int_equal(proto->n_functions, LEVELS);
}

CHECK_CASE(test_errors)
{
    static const char *const rows[][2] = {
        {"input x 2; function f a -> y; node g a -> y : domain=own; end; function g a -> y;"
         "node f a -> y : domain=own; end; node f x -> y : domain=own; output y", "test.onnx: function 'f' calls itself"                                  },
        {"input x 2; function f a -> y; node Exp a -> y; end; function f a -> y; node Abs a -> y;"
         "end; node f x -> y : domain=own; output y",                             "test.onnx: function 'f' is given twice"                                },
 /* Not the graph's x. */
        {"input x 2; function f a -> y; node Add a x -> y; end; node f x -> y : domain=own; output "
         "y",                                                                     "test.onnx: node 0 'n0' (Add): input 1 is 'y/x', which nothing produces"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        graft_model *model = NULL;
        Onnx__ModelProto *proto = onnx_text_message(env->life, rows[i][0]);
        assert_int_equal(onnx_text_read(env, proto, NULL, &model), GRAFT_BAD_INPUT);
        assert_string_equal(env->message, rows[i][1]);
        graft_env_clear(env);
    }
}

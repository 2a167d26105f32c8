/* test_runtime.c - what a runtime makes of a file (emit/run/runtime.h): what is timed computes the
 * same; what is priced has one kernel where runtimes have one; and that nothing that parts such
 * kernels is ever a gain. */
#include "emit/run/runtime.h"
#include "graph/base/file.h"
#include "tests/support/build.h"
#include "tests/support/evaluate.h"
#include "tests/support/onnx_text.h"
#include "tests/support/rows.h"

#include <string.h>

typedef struct {
    const char *name;
    const char *model;
    const char *run;    /* The operators that run, in order. */
    const char *priced; /* Those that are priced; NULL: the same. */
} runtime_row;

#define IMAGE  "opset 13; input x 1 4 6 6; weight w 4 4 3 3; weight b 4; output y;"
#define MATRIX "opset 13; input x 2 3 8; weight w 8 8; weight b 8; output y;"
#define BELL   "node Div x r -> t; node Erf t -> e; node Add e one -> f;"
#define CUBE   "node Pow x three -> p; node Mul p k -> c; node Add x c -> d; node Mul d q -> e;"
#define BEND   "node Tanh e -> f; node Add f one -> g;"
#define SCALARS                                                                                    \
    "weight r = 1.4142135; weight one = 1; weight half = 0.5; weight k = 0.044715;"                \
    "weight q = 0.7978846; weight three = 3; weight eight = 8; weight eps = 0.00001;"

/* clang-format off */
static const runtime_row rows[] = {
    {"conv, relu", IMAGE "node Conv x w -> a; node Relu a -> y", "conv_bias", "conv"},
    {"conv, bias, relu", IMAGE "node Conv x w b -> a; node Relu a -> y", "conv_bias", NULL},
    {"conv, clip to 6", IMAGE "weight l = 0; weight h = 6; node Conv x w b -> a; node Clip a l h -> y", "conv_bias", NULL},
    {"conv, clip elsewhere", IMAGE "weight l = -1; weight h = 6; node Conv x w b -> a; node Clip a l h -> y", "conv_bias clip", "conv_bias"},
    {"conv, sigmoid", IMAGE "node Conv x w b -> a; node Sigmoid a -> y", "conv_bias", NULL},
    {"conv, tanh", IMAGE "node Conv x w -> a; node Tanh a -> y", "conv_bias", "conv"},
    {"conv, leaky relu", IMAGE "node Conv x w -> a; node LeakyRelu a -> y", "conv leaky_relu", "conv"},
    {"conv of rows, relu", "opset 13; input x 1 4 6; weight w 4 4 3; output y; node Conv x w -> a; node Relu a -> y", "reshape conv reshape relu", "reshape conv reshape"},
    {"conv of rows, bias, sigmoid", "opset 13; input x 1 4 6; weight w 4 4 3; weight b 4; output y; node Conv x w b -> a; node Sigmoid a -> y", "reshape conv_bias reshape sigmoid", "reshape conv_bias reshape"},
    {"conv, normalisation, relu", IMAGE "weight v 4; node Conv x w -> a; node BatchNormalization a b b b v -> n; node Relu n -> y", "conv_bias", NULL},
    {"conv with bias, normalisation", IMAGE "weight v 4; node Conv x w b -> a; node BatchNormalization a b b b v -> y", "conv_bias", NULL},
    {"conv, bias as a sum", IMAGE "weight c 4 1 1; node Conv x w -> a; node Add a c -> y", "conv_bias", NULL},
    {"conv, bias as a sum of four axes", IMAGE "weight c 1 4 1 1; node Conv x w -> a; node Add a c -> y", "conv_bias", NULL},
    {"conv, factor", IMAGE "weight c 4 1 1; node Conv x w -> a; node Mul a c -> y", "conv", NULL},
    {"conv with bias, factor, sum", IMAGE "weight c 4 1 1; weight d 1 4 1 1; node Conv x w b -> a; node Mul a c -> m; node Add m d -> y", "conv_bias", NULL},
    {"conv, residual, relu", IMAGE "input z 1 4 4 4; node Conv x w b -> a; node Add a z -> s; node Relu s -> y", "conv_bias_add", NULL},
    {"conv without bias, residual", IMAGE "input z 1 4 4 4; node Conv x w -> a; node Add a z -> y", "conv_bias_add", NULL},
    {"pad, conv", IMAGE "ints p = 0 0 1 2 0 0 0 1; node Pad x p -> q; node Conv q w b -> a; node Relu a -> y", "conv_bias", NULL},
    {"a pad of other than zeros", IMAGE "ints p = 0 0 1 2 0 0 0 1; weight o = 1; node Pad x p o -> q; node Conv q w b -> y", "pad pad conv_bias", NULL},
    {"a conv that is read twice", IMAGE "node Conv x w b -> a; node Relu a -> c; node Add a c -> y", "conv_bias relu add", NULL},
    {"product, bias, relu", MATRIX "node MatMul x w -> a; node Add a b -> s; node Relu s -> y", "matmul_bias", NULL},
    {"product of tensors, sum", MATRIX "input z 2 3 8; node MatMul x w -> a; node Add a z -> y", "matmul add", NULL},
    {"equal nodes are one", MATRIX "node Exp x -> a; node Exp x -> c; node Add a c -> y", "exp add", NULL},
    {"gelu", MATRIX SCALARS BELL "node Mul x f -> g; node Mul g half -> y", "div erf add mul mul", "gelu"},
    {"gelu, half first", MATRIX SCALARS BELL "node Mul x half -> g; node Mul g f -> y", "div erf add mul mul", "gelu"},
    {"gelu, half last of all", MATRIX SCALARS BELL "node Mul f half -> g; node Mul x g -> y", "div erf add mul mul", "gelu"},
    {"gelu with a factor", MATRIX SCALARS "node Mul x half -> t; node Erf t -> e; node Add e one -> f; node Mul x f -> g; node Mul g half -> y", "mul erf add mul mul", "gelu"},
    {"gelu by tanh", MATRIX SCALARS CUBE BEND "node Mul x half -> h; node Mul h g -> y", "mul mul mul add mul tanh add mul mul", "gelu"},
    {"gelu by tanh, in fewer products", MATRIX SCALARS "node Mul x q -> c; node Mul x k -> s; node Mul s x -> p; node Add p one -> d; node Mul c d -> e;"
     BEND "node Mul x half -> h; node Mul h g -> y", "mul mul mul add mul tanh add mul mul", "gelu"},
    {"gelu by tanh, half last", MATRIX SCALARS CUBE BEND "node Mul x g -> h; node Mul h half -> y", "mul mul mul add mul tanh add mul mul", NULL},
    {"gelu by tanh, as one operator", "opset 20; input x 2 3; node Gelu x -> y : approximate=tanh; output y", "gelu_tanh", "gelu"},
    {"a gelu whose inside is read", MATRIX SCALARS BELL "node Mul x f -> g; node Mul g half -> y; output e", "div erf add mul mul", NULL},
    {"layer normalisation", MATRIX SCALARS "node ReduceMean x -> m : axes=-1,; node Sub x m -> d; node Mul d d -> s; node ReduceMean s -> v : axes=-1,;"
     "node Add v eps -> u; node Sqrt u -> t; node Div d t -> n; node Mul n b -> g; node Add g b -> y",
     "reduce_mean sub mul reduce_mean add sqrt div mul add", "layer_norm"},
    {"layer normalisation behind a transpose", MATRIX SCALARS "node Transpose x -> p : perm=0,2,1; node ReduceMean p -> m : axes=-1,; node Sub p m -> d;"
     "node Mul d d -> s; node ReduceMean s -> v : axes=-1,; node Add v eps -> u; node Sqrt u -> t; node Div d t -> n;"
     "weight f 3; node Mul n f -> g; node Add g f -> y", "transpose reduce_mean sub mul reduce_mean add sqrt div mul add", "transpose reduce_mean sub rms_norm add"},
    {"layer normalisation behind a transposed sum", MATRIX SCALARS "node Add x x -> a; node Transpose a -> p : perm=0,2,1; node ReduceMean p -> m : axes=-1,;"
     "node Sub p m -> d; node Mul d d -> s; node ReduceMean s -> v : axes=-1,; node Add v eps -> u; node Sqrt u -> t; node Div d t -> n;"
     "weight f 3; node Mul n f -> g; node Add g f -> y", "add transpose reduce_mean sub mul reduce_mean add sqrt div mul add", "add transpose layer_norm"},
    {"layer normalisation without a factor", MATRIX SCALARS "node ReduceMean x -> m : axes=-1,; node Sub x m -> d; node Mul d d -> s; node ReduceMean s -> v : axes=-1,;"
     "node Add v eps -> u; node Sqrt u -> t; node Div d t -> y", "reduce_mean sub mul reduce_mean add sqrt div", NULL},
    {"layer normalisation without a summand", MATRIX SCALARS "node ReduceMean x -> m : axes=-1,; node Sub x m -> d; node Mul d d -> s; node ReduceMean s -> v : axes=-1,;"
     "node Add v eps -> u; node Sqrt u -> t; node Div d t -> n; node Mul n b -> y", "reduce_mean sub mul reduce_mean add sqrt div mul", "reduce_mean sub rms_norm"},
    {"normalisation by the root of the mean square", MATRIX SCALARS "node Mul x x -> s; node ReduceMean s -> v : axes=-1,; node Add v eps -> u; node Sqrt u -> t;"
     "node Div x t -> n; node Mul n b -> y", "mul reduce_mean add sqrt div mul", "rms_norm"},
    {"the same without a factor", MATRIX SCALARS "node Mul x x -> s; node ReduceMean s -> v : axes=-1,; node Add v eps -> u; node Sqrt u -> t;"
     "node Div x t -> y", "mul reduce_mean add sqrt div", NULL},
    {"scores of attention", SCALARS "opset 13; input a 2 3 8; input c 2 8 3; input m 2 1 3; node MatMul a c -> s; node Div s eight -> t;"
     "node Add t m -> u; node Softmax u -> y; output y", "matmul div add softmax", "matmul softmax"},
    {"a scaled operand of a product", SCALARS "opset 13; input a 2 3 8; input c 2 8 3; node Mul a half -> s; node MatMul s c -> t; node Exp t -> y; output y",
     "mul matmul exp", "matmul exp"},
    {"the other operand, divided by one number of one axis", "opset 13; weight n = 8; input a 2 3 8; input c 2 8 3; node Div c n -> s; node MatMul a s -> y; output y",
     "div matmul", "matmul"},
    {"a product times eight numbers", "opset 13; weight f 8; input a 2 3 8; input c 2 8 8; node MatMul a c -> s; node Mul s f -> y; output y", "matmul mul", NULL},
    {"attention", "opset 13; input q 1 3 2 4; input k 1 3 2 4; input v 1 3 2 4; weight h = 8; input m 1 1 1 3;"
     "node Transpose q -> a : perm=0,2,1,3; node Transpose k -> b : perm=0,2,3,1; node Transpose v -> c : perm=0,2,1,3;"
     "node MatMul a b -> s; node Div s h -> t; node Add t m -> u; node Softmax u -> w; node MatMul w c -> o;"
     "node Transpose o -> y : perm=0,2,1,3; output y",
     "transpose transpose transpose matmul div add softmax matmul transpose", "reshape reshape matmul softmax reshape matmul reshape"},
    {"products of heads without scores", "opset 13; input q 1 3 2 4; input k 1 3 2 4;"
     "node Transpose q -> a : perm=0,2,1,3; node Transpose k -> b : perm=0,2,3,1; node MatMul a b -> y; output y",
     "transpose transpose matmul", NULL},
    {"a classifier's product is no score",
     "opset 13; input x 2 8; weight w 8 8; weight b 8; node MatMul x w -> a; node Add a b -> s; node Softmax s -> y; output y",
     "matmul_bias softmax", NULL},
    {"nothing to fuse", "input x 2 3; node Exp x -> a; node Sqrt a -> y; output y", "exp sqrt", NULL},
};
/* clang-format on */

static const char *operators_of(graft_arena *arena, const graft_graph *graph)
{
    const graft_order order = build_order(arena, graph);
    graft_buffer text = {.arena = arena};
    for (graft_index i = 0; i < order.count; i++) {
        const graft_node *node = &graph->nodes[order.order[i]];
        if (!node->is_const) {
            graft_buffer_printf(&text, "%s%s", text.size > 0 ? " " : "", graft_op(node->op)->name);
        }
    }
    graft_buffer_printf(&text, "%c", '\0');
    return (const char *)text.data;
}

typedef enum { RUN, PRICED, OWN } fusions;

static const graft_graph *fuse(graft_env *env, const graft_graph *graph, fusions by)
{
    graft_runtime runtime;
    const graft_order first = build_order(env->unit, graph);
    const graft_order *order = &first;
    CHECK_OK(graft_runtime_open(env, env->unit, NULL, 0, &runtime));
    if (by == OWN) {
        CHECK_OK(graft_runtime_fuse_own(env, env->unit, &runtime, &graph, &order));
    } else {
        const graft_xfers *xfers = by == RUN ? &runtime.run : &runtime.priced;
        CHECK_OK(graft_runtime_fuse(env, env->unit, xfers, &graph, &order));
    }
    build_check(env->unit, graph);
    return graph;
}

#define NORMAL(data, axes, keep)                                                                   \
    "node ReduceMean " data " -> m : axes=" axes " keepdims=1; node Sub " data " m -> d;"          \
    "node Mul d d -> s; node ReduceMean s -> v : axes=" axes " keepdims=" keep ";"                 \
    "node Add v eps -> u; node Sqrt u -> t; node Div d t -> n;"

/* What the executor has a kernel for: a swish, whichever way round it is written; functions and
 * normalisations in parts, by the right numbers. */
CHECK_CASE(test_own)
{
    /* clang-format off */
    static const struct {
        const char *model;
        const char *own;
    } models[] = {
        {IMAGE "node Conv x w b -> a; node Sigmoid a -> s; node Mul a s -> y",                     "conv_bias swish"},
        {IMAGE "node Conv x w b -> a; node Sigmoid a -> s; node Mul s a -> y",                     "conv_bias swish"},
        {MATRIX "node Sigmoid x -> s; node Mul x s -> m; node MatMul m w -> t; node Add t b -> y",
         "swish matmul_bias"                                                                                        },
        {MATRIX "input z 2 3 8; node Sigmoid x -> s; node Mul z s -> y",                           "sigmoid mul"    },
        {MATRIX "node Sigmoid x -> s; node Mul x s -> y; output s",                                "sigmoid mul"    },
        {MATRIX SCALARS BELL "node Mul x f -> g; node Mul g half -> y", "gelu"},
        {MATRIX SCALARS BELL "node Mul x half -> g; node Mul g f -> y", "gelu"},
        {MATRIX SCALARS BELL "node Mul f half -> g; node Mul x g -> y", "gelu"},
        {MATRIX SCALARS "weight i = 0.70710677; node Mul x i -> t; node Erf t -> e; node Add e one -> f; node Mul x f -> g; node Mul g half -> y", "gelu"},
        {MATRIX SCALARS BELL "node Mul x f -> g; node Mul g k -> y", "div erf add mul mul"},
        {MATRIX SCALARS BELL "node Mul x f -> g; node Mul g half -> y; output e", "div erf add mul mul"},
        {MATRIX SCALARS CUBE BEND "node Mul x half -> h; node Mul h g -> y", "gelu_tanh"},
        {MATRIX SCALARS "weight six = 6; weight o = 0; node Add x three -> t; node Clip t o six -> c; node Mul x c -> m; node Div m six -> y", "hard_swish"},
        {MATRIX SCALARS NORMAL("x", "-1,", "1") "node Mul n b -> g; node Add g b -> y", "layer_norm"},
        {MATRIX SCALARS "weight f 3; node Transpose x -> p : perm=0,2,1;" NORMAL("p", "-1,", "1") "node Mul n f -> g; node Add g f -> y", "transpose layer_norm"},
        {MATRIX SCALARS "node Mul x x -> s; node ReduceMean s -> v : axes=-1,; node Add v eps -> u; node Sqrt u -> t; node Reciprocal t -> i; node Mul x i -> n; node Mul b n -> y", "rms_norm"},
        {MATRIX SCALARS NORMAL("x", "1,", "1") "node Mul n b -> g; node Add g b -> y", "reduce_mean sub mul reduce_mean add sqrt div mul add"},
        {"opset 13; input x 1 8 8; weight b 8; output y;" SCALARS NORMAL("x", "-1,", "0") "node Mul n b -> g; node Add g b -> y", "reduce_mean sub mul reduce_mean add sqrt div mul add"},
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        const graft_model *model = onnx_text_model(env, models[i].model);
        const graft_graph *own = fuse(env, &model->graph, OWN);
        assert_string_equal(operators_of(env->unit, own), models[i].own);
        const graft_graph *run = fuse(env, &model->graph, RUN);
        assert_null(strstr(operators_of(env->unit, run), "swish"));
    }
}

/* How often a runtime calls a kernel: once for each node of the file, but for what fuses. */
CHECK_CASE(test_calls)
{
    /* clang-format off */
    static const struct {
        const char *name;
        const char *model;
        uint32_t calls;
    } models[] = {
        {"each node is a call", "input x 2 4; node Exp x -> a; node Sqrt a -> b; node Add a b -> y; output y", 3},
        {"a product takes more with it", IMAGE "node Conv x w -> a; node Add a b -> c; node Relu c -> y", 3},
        {"its bias and activation", IMAGE "node Conv x w b -> a; node Relu a -> y", 1},
        {"rows are images of one row",
         "opset 13; input x 1 4 6; weight w 4 4 3; output y; node Conv x w -> a; node Relu a -> y", 1},
        {"images of one row are not", "opset 13; input x 1 4 6; weight w 4 4 1 3; ints s = 1 4 1 6; ints t = 1 4 4; "
         "output y;node Reshape x s -> a; node Conv a w -> b; node Reshape b t -> y", 3},
        {"an operator in many parts", MATRIX SCALARS BELL "node Mul x f -> g; node Mul g half -> y", 1},
        {"a node that is read as many", "opset 18; input x 2 4; node HardSwish x -> y; output y", 1},
        {"a pad of two axes",
         IMAGE "ints p = 0 0 1 2 0 0 0 1; node Pad x p -> q; node Conv q w b -> a; node Relu a -> y", 1},
        {"a pad alone", IMAGE "ints p = 0 0 1 2 0 0 0 1; node Pad x p -> y", 1},
        {"nodes that compute the same", MATRIX "node Exp x -> a; node Exp x -> c; node Add a c -> y", 2},
        {"what is known and what does nothing",
         MATRIX "weight u 8; weight v 8; node Add u v -> k; node Identity x -> i; node Add i k -> y", 1},
        {"changes to 8 bits and back", "opset 13; input x 2 4; weight s = 0.5; "
         "node QuantizeLinear x s -> q;node DequantizeLinear q s -> d; node Exp d -> y; output y", 1},
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        const graft_model *model = onnx_text_model(env, models[i].model);
        const graft_order first = build_order(env->unit, &model->graph);
        const graft_graph *graph = &model->graph;
        const graft_order *order = &first;
        graft_runtime runtime;
        uint32_t calls = 0;
        CHECK_OK(graft_runtime_open(env, env->unit, NULL, 0, &runtime));
        CHECK_OK(graft_runtime_calls(env, env->unit, &runtime, model, &graph, &order, &calls));
        if (calls != models[i].calls) {
            fail_msg("%s: %u calls, not %u", models[i].name, calls, models[i].calls);
        }
    }
}

/* One resizing along two axes is priced as such, in whatever order its parts stand. */
CHECK_CASE(test_resizing)
{
    static const char *const models[] = {
        "input x 1 2 3 3; weight k 4 = 1 1 2 3; node Resize x _ k -> y : mode=nearest; output y",
        "input x 1 2 3 3; weight k 4 = 1 1 1 3; weight l 4 = 1 1 2 1; output y;"
        "node Resize x _ k -> z : mode=nearest; node Resize z _ l -> y : mode=nearest",
    };
    const char *priced[2];
    for (size_t i = 0; i < 2; i++) {
        const graft_model *model =
            onnx_text_model(env, graft_arena_printf(env->unit, "opset 13; %s", models[i]));
        const graft_graph *graph = fuse(env, &model->graph, PRICED);
        const graft_order order = build_order(env->unit, graph);
        const graft_node *first = &graph->nodes[order.order[0]];
        assert_int_equal(first->op, GRAFT_OP_repeat);
        priced[i] = graft_arena_printf(env->unit, "axis %d, %d times", first->attrs[0],
                                       first->attrs[GRAFT_ATTR_repeat_times]);
    }
    assert_string_equal(priced[0], "axis 2, 2 times");
    assert_string_equal(priced[1], priced[0]);
}

CHECK_ROWS(test_row, rows)
{
    const runtime_row *row = place;
    const graft_model *model = onnx_text_model(env, row->model);
    const char *before = onnx_text_print(env->unit, model, &model->graph);
    const graft_graph *run = fuse(env, &model->graph, RUN);
    assert_string_equal(operators_of(env->unit, run), row->run);
    const graft_graph *priced = fuse(env, &model->graph, PRICED);
    assert_string_equal(operators_of(env->unit, priced),
                        row->priced == NULL ? row->run : row->priced);
    assert_string_equal(onnx_text_print(env->unit, model, &model->graph), before);
    const graft_order orders[2] = {build_order(env->unit, &model->graph),
                                   build_order(env->unit, run)};
    uint32_t samples = 0;
    for (uint64_t sample = 0; sample < 20; sample++) {
        evaluate_tensors a = evaluate_graph(env->unit, &model->graph, &orders[0], sample);
        evaluate_tensors b = evaluate_graph(env->unit, run, &orders[1], sample);
        if (a != NULL && b != NULL) {
            assert_true(evaluate_outputs_equal(&model->graph, a, run, b));
            samples++;
        }
    }
    assert_true(samples > 0);
}

/* Graph and what a rule would make of it cost the same to the price: it is one graph. */
CHECK_CASE(test_pairs_of_one_price)
{
    static const char *const pairs[][2] = {
  /* Taken apart and put together. */
        {IMAGE "node Conv x w b -> a; node Relu a -> y",                                 IMAGE "node Conv x w b -> y"},
        {IMAGE "weight v 4; node Conv x w -> a; node BatchNormalization a b b b v -> y",
         IMAGE "node Conv x w b -> y"                                                                                },
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        const graft_model *a = onnx_text_model(env, pairs[i][0]);
        const graft_model *b = onnx_text_model(env, pairs[i][1]);
        assert_string_equal(operators_of(env->unit, fuse(env, &a->graph, true)),
                            operators_of(env->unit, fuse(env, &b->graph, true)));
    }
}

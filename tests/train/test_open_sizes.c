/* test_open_sizes.c - files with open sizes that stay open: what depends on them is kept, what does
 * not can be rewritten, and what is written computes the same at sizes that nobody looked at. */
#include "tests/support/onnx_text.h"
#include "tests/support/variants.h"

#include <math.h>

static graft_model *read_open(graft_env *env, const char *text)
{
    const graft_model_options options = {.keep_open = true};
    graft_model *model = NULL;
    graft_status status = onnx_text_read(env, onnx_text_message(env->life, text), &options, &model);
    assert_string_equal(env->message, "");
    CHECK_OK(status);
    return model;
}

/* ------------------------------------------------------------------- what is kept */

typedef struct {
    const char *name;
    const char *model;
    const char *graph;
} open_row;

/* clang-format off */
static const open_row rows[] = {
    {"what has no sizes in it", "input x N 4 H W; weight w 4 4 3 3; node Conv x w -> a; node Relu a -> b; node GlobalAveragePool b -> y; output y",
     "a = conv(x, w) 1 1 0 0 0 0 1 1 1\nb = relu(a)\ny = global_avg_pool(b)\nout y"},
    {"padding that follows from the size", "input x 1 4 H W; weight w 4 4 3 3; node Conv x w -> y : auto_pad=SAME_UPPER strides=2,2; output y",
     "y = Conv(x, w) opaque\nout y"},
    {"the same padding everywhere", "input x 1 4 H W; weight w 4 4 3 3; node Conv x w -> y : pads=1,1,1,1; output y",
     "y = conv(x, w) 1 1 1 1 1 1 1 1 1\nout y"},
    {"a pool that rounds up", "input x N 4 H 8; node MaxPool x -> y : kernel_shape=2,2 strides=2,2 ceil_mode=1; output y",
     "y = MaxPool(x) opaque\nout y"},
    {"a pool that rounds up a fixed size", "input x N 4 8 8; node MaxPool x -> y : kernel_shape=2,2 strides=2,2 ceil_mode=1; output y",
     "y = max_pool(x) 2 2 2 2 0 0 0 0 1 1\nout y"},
    {"a remainder that is 0 at both sizes", "input x N 3 H 4; node Shape x -> s; ints i = 2; node Gather s i -> h; ints d = 64; node Div h d -> q; node Mul q d -> m;"
     "node Sub h m -> r; ints o = 0; ints z = 0 0; ints e = 0; node Concat z r o z o o -> p : axis=0; node Pad x p -> y; output y",
     "s = Shape(x) opaque\nh = Gather(s, i) opaque\nq = Div(h, d) opaque\nm = Mul(q, d) opaque\nr = Sub(h, m) opaque\np = Concat(z, r, o, z, o, o) opaque\ny = Pad(x, p) opaque\nout y"},
    {"a slice that takes all at both sizes", "input x N L 4; ints z = 0; ints e = 512; ints i = 1; node Slice x z e i -> y; output y",
     "y = Slice(x, z, e, i) opaque\nout y"},
    {"a slice that takes all of another one", "input x N 8 L; ints z = 0; ints e = 8; ints i = 1; node Slice x z e i -> y; output y",
     "y = identity(x)\nout y"},
    {"the same by attributes", "opset 9; input x N 8 L; node Slice x -> y : starts=0, ends=9, axes=-2,; output y",
     "y = identity(x)\nout y"},
    {"a slice that takes all without axes", "input x N 8 L; ints z = 0 0; ints e = 99 9; node Slice x z e -> y; output y",
     "y = Slice(x, z, e) opaque\nout y"},
    {"a table over an open axis", "input x N L; node Shape x -> s; scalar o = 1; node Gather s o -> n; scalar z = 0; node Range z n o -> r; ints c = -1 1;"
     "node Reshape r c -> t; node Cast t -> y : to=1; output y",
     "s = Shape(x) opaque\nn = Gather(s, o) opaque\nr = Range(z, n, o) opaque\nt = Reshape(r, c) opaque\ny = Cast(t) opaque\nout y"},
    {"a table whose entries are the same at both sizes", "input x N L; node Shape x -> s; scalar o = 1; node Gather s o -> n; scalar m = 32; node Mod n m -> r; ints c = 1 1;"
     "node Reshape r c -> t; ints l = 3 1; node Expand t l -> p; ints f = -1; node Reshape p f -> q; ints k = 0; node Gather q k -> g; node ConstantOfShape g -> y; output y",
     "s = Shape(x) opaque\nn = Gather(s, o) opaque\nr = Mod(n, m) opaque\nt = Reshape(r, c) opaque\np = Expand(t, l) opaque\nq = Reshape(p, f) opaque\ng = Gather(q, k) opaque\ny = ConstantOfShape(g) opaque\nout y"},
    {"a table that does not depend on it", "input x N 4; node Shape x -> s; ints o = 1; node Gather s o -> n; ints c = 1 1; node Reshape n c -> t; node Cast t -> f : to=1; node Add x f -> y; output y",
     "s = Shape(x) opaque\n%2 = fill() 4 1 1\ny = add(x, %2)\nout y"},
    {"a slice of an open axis", "input x N L 4; ints z = 0; ints e = 2; ints i = 1; node Slice x z e i -> y; output y",
     "y = Slice(x, z, e, i) opaque\nout y"},
    {"a slice behind one that is cut", "input x 1 L; input v 1 3; ints z = 0; ints e = 5; ints i = 1; node Slice x z e i -> s; node Concat s v -> c : axis=1;"
     "ints f = 5; ints g = 8; node Slice c f g i -> y; output y",
     "s = Slice(x, z, e, i) opaque\nc = concat(s, v) 1\ny = Slice(c, f, g, i) opaque\nout y"},
    {"a slice behind strides that come out alike", "input x 1 4 L; weight w 4 4 64; input v 1 4 3; node Conv x w -> s : strides=64,; node Concat s v -> c : axis=2;"
     "ints f = 1; ints g = 4; ints i = 2; node Slice c f g i -> y; output y",
     "s = Conv(x, w) opaque\nc = concat(s, v) 2\ny = Slice(c, f, g, i) opaque\nout y"},
    {"a slice of another one", "input x N L 4; ints z = 0; ints e = 2; ints i = 2; node Slice x z e i -> y; output y",
     "y = slice(x) 2 0 2\nout y"},
    {"the sizes of what is cut", "input x 1 L 4; ints z = 0; ints e = 2; ints i = 1; node Slice x z e i -> s; node Shape s -> t; node Gather t i -> n; node ConstantOfShape n -> y; output y",
     "s = Slice(x, z, e, i) opaque\nt = Shape(s) opaque\nn = Gather(t, i) opaque\ny = ConstantOfShape(n) opaque\nout y"},
    {"their number", "input x 1 L 4; ints z = 0; ints e = 2; ints i = 1; node Slice x z e i -> s; node Size s -> n; node Cast n -> c : to=1; node Mul s c -> y; output y",
     "s = Slice(x, z, e, i) opaque\nn = Size(s) opaque\nc = Cast(n) opaque\ny = Mul(s, c) opaque\nout y"},
    {"another shape of what is cut", "input x 1 L 4; ints z = 0; ints e = 2; ints i = 1; node Slice x z e i -> s; node Relu s -> r; node Flatten r -> f; ints m = -1; node Reshape f m -> y; output y",
     "s = Slice(x, z, e, i) opaque\nr = relu(s)\nf = Flatten(r) opaque\ny = Reshape(f, m) opaque\nout y"},
    {"a cut to another's size", "input x 2 8; input v L; ints z = 0; ints i = 1; node Shape v -> e; node Slice x z e i -> s; node Shape s -> t; node Gather t i -> n; node ConstantOfShape n -> y; output y",
     "e = Shape(v) opaque\ns = Slice(x, z, e, i) opaque\nt = Shape(s) opaque\nn = Gather(t, i) opaque\ny = ConstantOfShape(n) opaque\nout y"},
    {"as many of a list as the size", "input x 1 L 4; ints o = 1; ints e = 2; ints z = 0; ints p = 5 6 7; node Shape x -> s; node Slice s o e -> n; node Slice p z n -> q; node Cast q -> y : to=1; output y",
     "s = Shape(x) opaque\nn = Slice(s, o, e) opaque\nq = Slice(p, z, n) opaque\ny = Cast(q) opaque\nout y"},
    {"a size that is the same behind rows of a table", "input x N L; weight w 9 4; node Cast x -> k : to=7; node Gather w k -> s; node Shape s -> t; ints i = 2; node Gather t i -> n; node ConstantOfShape n -> c; node Add s c -> y; output y",
     "k = Cast(x) opaque\ns = Gather(w, k) opaque\nt = Shape(s) opaque\nc = fill() 0 4\ny = add(s, c)\nout y"},
    {"flatten", "input x N 2 3; node Flatten x -> a; node Relu a -> y; output y", "a = Flatten(x) opaque\ny = relu(a)\nout y"},
    {"a computed shape", "input x N 6; node Shape x -> s; scalar i = 0; node Gather s i -> n; ints z = 0; node Unsqueeze n z -> u; ints r = 2 3;"
     "node Concat u r -> t : axis=0; node Reshape x t -> a; node Relu a -> y; output y",
     "s = Shape(x) opaque\nn = Gather(s, i) opaque\nu = Unsqueeze(n, z) opaque\nt = Concat(u, r) opaque\na = Reshape(x, t) opaque\ny = relu(a)\nout y"},
    {"a shape that does not depend on it", "input x N 6; node Shape x -> s; scalar i = 1; node Gather s i -> n; ints z = 0; node Unsqueeze n z -> u; ints r = -1;"
     "node Concat r u -> t : axis=0; weight w 6 6; node Reshape w t -> a; node MatMul x a -> y; output y",
     "s = Shape(x) opaque\na = reshape(w) 6 6\ny = matmul(x, a)\nout y"},
    {"a bound that follows from the size", "input x N 6; node Shape x -> s; ints z = 0; ints b = 0; ints e = 1; node Slice s b e -> n; node Slice x z n z -> y; output y",
     "s = Shape(x) opaque\nn = Slice(s, b, e) opaque\ny = Slice(x, z, n, z) opaque\nout y"},
    {"halves of an open axis", "input x N L 4; node Split x -> a b : axis=1; node Add a b -> y; output y", "a, b = Split(x) opaque\ny = add(a, b)\nout y"},
    {"halves of another one", "input x N L 4; node Split x -> a b : axis=2; node Add a b -> y; output y", "a, b = split(x) 2 2\ny = add(a, b)\nout y"},
    {"a constant of an open shape", "input x N 4; node Shape x -> s; node ConstantOfShape s -> c; node Add x c -> y; output y",
     "s = Shape(x) opaque\nc = ConstantOfShape(s) opaque\ny = add(x, c)\nout y"},
};
/* clang-format on */

CHECK_ROWS(test_row, rows)
{
    const open_row *row = place;
    const graft_model *model = read_open(env, row->model);
    assert_true(model->is_open);
    assert_string_equal(onnx_text_print(env->life, model, &model->graph), row->graph);
}

CHECK_CASE(test_nothing_open)
{
    const graft_model *model = read_open(env, "input x 2 3; node Flatten x -> y; output y");
    assert_false(model->is_open);
    assert_int_equal(model->opaque_count, 0);
}

/* ----------------------------------------------------------------- what comes out */

/* The first output of a model at bound sizes; `count` elements in env->unit. */
static const float *run_at(graft_env *env, Onnx__ModelProto *proto, const graft_model_size *sizes,
                           uint32_t size_count, size_t *count)
{
    const graft_model_options options = {.sizes = sizes, .size_count = size_count};
    graft_model *model = NULL;
    graft_status status = onnx_text_read(env, proto, &options, &model);
    assert_string_equal(env->message, "");
    CHECK_OK(status);
    assert_int_equal(model->opaque_count, 0);
    const graft_graph *graph = &model->graph;
    *count = (size_t)graft_shape_elements(&graph->values[graph->outputs[0]].shape);
    return variant_run(env, model, graph, 7)[graph->outputs[0]];
}

/* A small network of images: normalisation, HardSwish, a shape that is computed, and Identities
 * that rules take away. */
static const char network[] =
    "opset 14; input x N 3 H W; weight w 4 3 3 3; weight s 4; weight v 4; weight u 4 2;"
    "weight r 4 4 3 3; node Identity x -> i; node Conv i w -> o : auto_pad=SAME_UPPER strides=2,2;"
    "node Conv o r -> a : pads=1,1,1,1; node BatchNormalization a s s s v -> b;"
    "node HardSwish b -> c; node Identity c -> d;"
    "node GlobalAveragePool d -> e; node Shape e -> f; scalar z = 0; node Gather f z -> g;"
    "ints q = 0; node Unsqueeze g q -> h; ints m = -1; node Concat h m -> t : axis=0;"
    "node Reshape e t -> k; node MatMul k u -> l; node Identity l -> y; output y N 2";

CHECK_CASE(test_other_sizes)
{
    uint32_t applied = 0;
    const graft_model *model = read_open(env, network);
    const graft_graph *graph = variant_fused(env, env->life, model, &applied);
    assert_true(applied >= 4);
    Onnx__ModelProto *out = onnx_text_written(env, model, graph);
    const Onnx__TensorShapeProto *shape = out->graph->input[0]->type->tensor_type->shape;
    assert_string_equal(shape->dim[0]->dim_param, "N");
    assert_string_equal(shape->dim[2]->dim_param, "H");
    assert_string_equal(shape->dim[3]->dim_param, "W");
    assert_string_equal(out->graph->output[0]->type->tensor_type->shape->dim[0]->dim_param, "N");
    static const int32_t tried[][3] = {
        {1, 9,  9 },
        {2, 5,  12},
        {5, 16, 7 },
        {1, 1,  1 }
    };
    for (size_t i = 0; i < sizeof(tried) / sizeof(tried[0]); i++) {
        const graft_model_size sizes[] = {
            {.name = "N", .value = tried[i][0]},
            {.name = "H", .value = tried[i][1]},
            {.name = "W", .value = tried[i][2]}
        };
        size_t counts[2] = {0, 0};
        const float *want =
            run_at(env, onnx_text_message(env->unit, network), sizes, 3, &counts[0]);
        const float *have = run_at(env, out, sizes, 3, &counts[1]);
        assert_int_equal(counts[0], counts[1]);
        assert_int_equal(counts[0], 2 * tried[i][0]);
        for (size_t k = 0; k < counts[0]; k++) {
            float allowed = 1e-4F * (1.0F + fabsf(want[k]));
            assert_true(fabsf(want[k] - have[k]) < allowed);
        }
    }
}

/* ------------------------------------------------------- sizes that follow from others */

/* What an input of N x P, of N x S and of N x NAME is looked at with; P is chosen. */
typedef struct {
    const char *name;
    int32_t chosen;
    int32_t values[2];
} formula_row;

static const formula_row formulas[] = {
    {"P+S",                                     64,  {128, 192}},
    {"S*2+P//2-1",                              64,  {159, 239}},
    {"(P+(S-1))/3",                             64,  {42, 63}  },
    {"P+S",                                     128, {192, 289}}, /* 192 with both. */
    {"P-S",                                     64,  {64, 96}  }, /* No size: as if it said nothing. */
    {"P+Q",                                     64,  {64, 96}  },
    {"P+",                                      64,  {64, 96}  },
    {"(P+S",                                    64,  {64, 96}  },
    {"P+S)",                                    64,  {64, 96}  },
    {"P//(S-S)",                                64,  {64, 96}  },
    {"P*P*P*P*P*P",                             64,  {64, 96}  },
    {"99999999999999999999+P",                  64,  {64, 96}  },
    {"2*7",                                     64,  {64, 96}  },
    {"((((((((((((((((((P+1))))))))))))))))))", 64,  {64, 96}  },
};

CHECK_ROWS(test_formula, formulas)
{
    const formula_row *row = place;
    const graft_model_size chosen = {.name = "P", .value = row->chosen};
    const graft_model_options options = {.keep_open = true, .sizes = &chosen, .size_count = 1};
    graft_model *model = NULL;
    Onnx__ModelProto *proto = onnx_text_message(
        env->life, "input m N M; input p N P; input s N S; node Relu m -> y; output y");
    proto->graph->input[0]->type->tensor_type->shape->dim[1]->dim_param =
        graft_arena_strdup(env->life, row->name);
    CHECK_OK(onnx_text_read(env, proto, &options, &model));
    assert_int_equal(model->size_count, 4);
    assert_string_equal(model->sizes[3].name, row->name);
    assert_int_equal(model->sizes[3].value, row->values[0]);
    assert_int_equal(model->sizes[3].other, row->values[1]);
}

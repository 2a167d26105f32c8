/* test_simplify.c - what simplifying leaves of a model: written nodes against expected text. */
#include "emit/policy/simplify.h"
#include "graph/base/file.h"
#include "tests/support/check.h"
#include "tests/support/onnx_text.h"
#include "tests/support/rows.h"

typedef struct {
    const char *name;
    const char *model;
    const char *graph;
} simplify_row;

/* clang-format off */
static const simplify_row rows[] = {
    {"identities and dropout", "opset 10; input x 2 3; node Identity x -> a; node Dropout a -> b; node Relu b -> c; node Identity c -> y; output y",
     "Relu x -> y\nout y"},
    {"arithmetic on fixed sizes", "input x 2 3 4; node Shape x -> s; scalar i = 1; node Gather s i -> n; ints z = 0; node Unsqueeze n z -> u; ints m = -1;"
     "node Concat m u -> t : axis=0; node Reshape x t -> a; node Relu a -> y; output y",
     "graft_t_0: 2\nReshape x graft_t_0 -> a\nRelu a -> y\nout y"},
    {"the same on open sizes", "input x N 3 4; node Shape x -> s; scalar i = 0; node Gather s i -> n; ints z = 0; node Unsqueeze n z -> u; ints m = -1;"
     "node Concat u m -> t : axis=0; node Reshape x t -> a; node Relu a -> y; output y",
     "i:\nz: 1\nm: 1\nShape x -> s\nGather s i -> n\nUnsqueeze n z -> u\nConcat u m -> t : axis=0\nReshape x t -> a\nRelu a -> y\nout y"},
    {"constants", "input x 3; weight a 3; weight b 3; node Add a b -> c; node Sqrt c -> d; node Mul x d -> y; output y", "d: 3\nMul x d -> y\nout y"},
    {"products of a table that several share would swell the file",
     "input x 128 64; weight e 128 64; weight a 64 64; weight b 64 64; weight c 64 64; weight d 64 64; node MatMul e a -> f; node Exp f -> g;"
     "node MatMul e b -> h; node MatMul e c -> i; node MatMul e d -> j; node Add x g -> k; node Add k h -> l; node Add l i -> m; node Add m j -> y; output y",
     "e: 128 64\na: 64 64\nb: 64 64\nc: 64 64\nd: 64 64\nMatMul e a -> f\nExp f -> g\nMatMul e b -> h\nMatMul e c -> i\nMatMul e d -> j\n"
     "Add x g -> k\nAdd k h -> l\nAdd l i -> m\nAdd m j -> y\nout y"},
    {"of a smaller one they do not",
     "input x 128 64; weight e 128 64; weight a 64 64; weight b 64 64; node MatMul e a -> f; node Exp f -> g; node MatMul e b -> h; node Add x g -> k;"
     "node Add k h -> y; output y",
     "g: 128 64\nh: 128 64\nAdd x g -> k\nAdd k h -> y\nout y"},
    {"multiples of one table do", "input x 64 128; weight w 64 128; weight a 1 = 3; weight b 1 = 5; node Mul w a -> c; node Mul w b -> d; node Add x c -> k; node Add k d -> y; output y",
     "w: 64 128\na: 1\nb: 1\nMul w a -> c\nMul w b -> d\nAdd x c -> k\nAdd k d -> y\nout y"},
    {"and what only runs by loops, unless its table leaves the file", "input x 64 128; weight w 64 128; weight v 64 128; node Floor w -> c; node Ceil w -> d; node Floor v -> f;"
     "node Add x c -> k; node Add k d -> l; node Add l f -> y; output y",
     "w: 64 128\nf: 64 128\nFloor w -> c\nCeil w -> d\nAdd x c -> k\nAdd k d -> l\nAdd l f -> y\nout y"},
    {"and parts of what a node that runs reads", "input x 512 64; weight w 512 64; ints z = 0; ints e = 250; node Add x w -> b; node Slice w z e z -> c; node Exp c -> d; node Slice b z e z -> k;"
     "node Add k d -> y; output y",
     "w: 512 64\nz: 1\ne: 1\nAdd x w -> b\nSlice w z e z -> c\nExp c -> d\nSlice b z e z -> k\nAdd k d -> y\nout y"},
    {"a weight under two names", "input x 2 2; weight w 2 2; node Identity w -> v; node MatMul x w -> a; node MatMul a v -> y; output y",
     "w: 2 2\nMatMul x w -> a\nMatMul a w -> y\nout y"},
    {"the same on open sizes, also opaque", "input x N 2; weight w 2 2; node Identity w -> v; node Identity v -> u; node MatMul x v -> a; node Unknown a u -> y; output y",
     "w: 2 2\nMatMul x w -> a\nUnknown a w -> y\nout y"},
    {"a constant that is an output", "input x 2; weight a 2; weight b 2; node Add a b -> c; node Relu x -> y; output y; output c",
     "graft_c_0: 2\nRelu x -> y\nIdentity graft_c_0 -> c\nout y c"},
    {"numbers that are an output", "input x 2 5; node Shape x -> s; node Relu x -> y; output s; output y", "s: 2\nRelu x -> y\nout s y"},
    {"an input that is an output", "input x 2; node Identity x -> a; node Identity a -> y; output y", "Identity x -> y\nout y"},
    {"moves that do nothing", "input x 2 3 4; ints z = 0; ints e = 99; ints one = 1; node Slice x z e one -> a; ints p = 0 0 0 0 0 0; node Pad a p -> b;"
     "node Cast b -> c : to=1; ints t = 0 3 -1; node Reshape c t -> d; node Transpose d -> f : perm=0,1,2; node Relu f -> y; output y",
     "Relu x -> y\nout y"},
    {"moves that undo one another", "input x 2 3 4; node Transpose x -> a : perm=1,0,2; node Transpose a -> b : perm=1,0,2; ints t = 6 4; node Reshape b t -> c;"
     "ints u = 8 3; node Reshape c u -> d; node Relu d -> y; output y",
     "graft_shape_1: 2\nReshape x graft_shape_1 -> graft_reshape_0\nRelu graft_reshape_0 -> y\nout y"},
    {"nodes that were read as several stay whole", "input x 1 4 16; weight w 4 4 3; node Conv x w -> a; node MaxPool a -> b : kernel_shape=2,;"
     "ints t = 1 4 13 1; node Reshape b t -> c; node DepthToSpace c -> y : blocksize=2; output y",
     "w: 4 4 3\nt: 4\nConv x w -> a\nMaxPool a -> b : kernel_shape=2\nReshape b t -> c\nDepthToSpace c -> y : blocksize=2\nout y"},
    {"unless the file gets no longer", "input x 2 3 4; weight w 4; ints t = 6; node MatMul x w -> a; node Reshape a t -> y; output y",
     "graft_reshape_1: 4 1\ngraft_shape_2: 1\nMatMul x graft_reshape_1 -> graft_matmul_0\nReshape graft_matmul_0 graft_shape_2 -> y\nout y"},
    {"equal and dead nodes", "input x 2; node Relu x -> a; node Relu x -> b; node Sqrt x -> c; node Add a b -> y; output y", "Relu x -> a\nAdd a a -> y\nout y"},
    {"nothing to do", "input x 2; weight w 2; node Mul x w -> a; node HardSwish a -> y; output y", "w: 2\nMul x w -> a\nHardSwish a -> y\nout y"},
};
/* clang-format on */

/* The written graph; `*bytes` of the file. */
static const char *simplified(graft_env *env, const char *text, size_t *bytes)
{
    const graft_model_options reading = {.keep_open = true};
    const graft_model_write_options writing = {.simplify = true};
    const char *path = check_path("x.onnx");
    graft_session session = {.device = NULL};
    graft_graph *graph = NULL;
    uint32_t step_count = 0;
    uint8_t *data = NULL;
    CHECK_OK(onnx_text_read(env, onnx_text_message(env->life, text), &reading, &session.model));
    graft_session_open_judge(env, &session);
    session.rules = rows_committed(env);
    CHECK_OK(graft_simplify_rewrite(env, &session, &session.model->graph, &graph, &step_count));
    if (session.open != NULL) {
        graft_open_sizes_close(session.open);
    }
    CHECK_OK(graft_model_write(env, session.model, graph, path, &writing));
    CHECK_OK(graft_file_read(env, env->life, path, &data, bytes));
    return onnx_text_print_proto(env->life, onnx_text_unpack(env, data, *bytes)->graph);
}

CHECK_ROWS(test_row, rows)
{
    const simplify_row *row = place;
    size_t bytes = 0;
    assert_string_equal(simplified(env, row->model, &bytes), row->graph);
}

/* Results that are hardly larger than what they are made of add up to no more than 16 KiB. */
CHECK_CASE(test_many_small_results)
{
    enum { COUNT = 30, GROWTH_MOST = 16 << 10 };
    const char *text = "input x 250; weight w 250";
    uint8_t *data = NULL;
    size_t before = 0;
    size_t after = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        text = graft_arena_printf(env->life,
                                  "%s; weight k%u 1 = %u; node Mul w k%u -> c%u; node Mul x c%u -> "
                                  "y%u; output y%u",
                                  text, i, i + 2, i, i, i, i, i);
    }
    onnx_text_bytes(env->life, text, &data, &before);
    (void)simplified(env, text, &after);
    assert_in_range(after, 0, before + GROWTH_MOST);
}

/* Sessions of include/graft/run.h: of a model and of a graph, by name, and what they refuse. That
 * outputs are those of onnxruntime is checked by test_run_command.sh. */
#include "graft/run.h"

#include "cost/cpu/device_cpu.h"
#include "emit/command/command.h"
#include "emit/run/run.h"
#include "graph/base/file.h"
#include "graph/base/npz.h"
#include "tests/support/build.h"
#include "tests/support/onnx_text.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect(graft_run *run, graft_status status, graft_status want, const char *message)
{
    if (status != want || strstr(graft_run_message(run), message) == NULL) {
        fail_msg("status %s, message '%s'", graft_status_name(status), graft_run_message(run));
    }
}

static const float *weight_of(void *context, graft_index value)
{
    return ((const float *const *)context)[value];
}

/* relu(a w) - b: two inputs, two outputs. */
CHECK_CASE(test_graph)
{
    graft_graph *graph = build_graph(env->life);
    const graft_index b = build_input(graph, SHAPE(1, 2), 1);
    const graft_index a = build_input(graph, SHAPE(1, 3), 0);
    const graft_index w = build_weight(graph, SHAPE(3, 2), 0);
    const graft_index product = build_node(graph, GRAFT_OP_matmul, NULL, a, w, 0);
    const graft_index bent = build_node(graph, GRAFT_OP_relu, NULL, product, 0, 0);
    const graft_index less = build_node(graph, GRAFT_OP_sub, NULL, bent, b, 0);
    float weights[] = {1, -2, 3, -4, 5, -6}, first[] = {1, 1, 2}, second[] = {10, 20}, y[2], z[2];
    const float *data[64] = {NULL};
    char *file = check_path("x.costs");
    const graft_run_options options = {.thread_count = 1, .database = file};
    graft_run *run = NULL;
    data[w] = weights;
    CHECK_OK(graft_graph_add_output(graph, less));
    CHECK_OK(graft_graph_add_output(graph, product));
    expect(run, graft_run_open_graph(graph, weight_of, data, &options, &run), GRAFT_OK, "");
    assert_int_equal(graft_run_input_count(run), 2);
    assert_int_equal(graft_run_output_count(run), 2);
    assert_string_equal(graft_run_input(run, 0)->name, "x0");
    assert_int_equal(graft_run_input(run, 0)->shape.dims[1], 3);
    graft_run_tensor inputs[] = {*graft_run_input(run, 1), *graft_run_input(run, 0)};
    graft_run_tensor outputs[] = {*graft_run_output(run, 1), *graft_run_output(run, 0)};
    inputs[0].data = second;
    inputs[1].data = first;
    outputs[0].data = z;
    outputs[1].data = y;
    expect(run, graft_run_once(run, inputs, 2, &(graft_run_tensor){.name = NULL}, 1),
           GRAFT_BAD_INPUT, "output 0 of those given has no name");
    expect(run, graft_run_once(run, inputs, 2, outputs, 2), GRAFT_OK, "");
    assert_int_equal(z[0], 14);
    assert_int_equal((int)z[1], -18);
    assert_int_equal(y[0], 4);
    assert_int_equal((int)y[1], -20);
    first[0] = 0;
    expect(run, graft_run_once(run, inputs, 2, outputs, 1), GRAFT_OK, "");
    assert_int_equal(z[0], 13);
    assert_int_equal(y[0], 4); /* It was not asked for. */

    expect(run, graft_run_once(run, inputs, 1, NULL, 0), GRAFT_BAD_INPUT,
           "missing: input 'x0' f32[1,3]");
    expect(run, graft_run_once(run, NULL, 0, NULL, 0), GRAFT_BAD_INPUT,
           "missing: input 'x0' f32[1,3], 'x1' f32[1,2]");
    outputs[1] = outputs[0];
    expect(run, graft_run_once(run, inputs, 2, outputs, 2), GRAFT_BAD_INPUT,
           "output 'y1': it comes twice");
    inputs[0].shape.dims[0] = 2;
    expect(run, graft_run_once(run, inputs, 2, NULL, 0), GRAFT_BAD_INPUT,
           "input 'x1' is f32[2,2], not the model's f32[1,2]");
    inputs[0].name = "z";
    expect(run, graft_run_once(run, inputs, 2, NULL, 0), GRAFT_BAD_INPUT,
           "input 'z': the model has none of this name");
    expect(run, graft_run_resize(run, inputs, 2), GRAFT_UNSUPPORTED, "a graph has no open sizes");
    graft_run_close(run);
    data[w] = NULL;
    expect(run, graft_run_open_graph(graph, weight_of, data, &options, &run), GRAFT_BAD_INPUT,
           "has no data");
    graft_run_close(run);
}

/* Tuned, in turns by threads that have other numbers of OpenMP's: the same outputs. */
CHECK_CASE(test_model)
{
    char *file = check_path("x.costs");
    float in[640], out[3][640];
    for (uint32_t i = 0; i < sizeof in / sizeof in[0]; i++) {
        in[i] = (float)(i % 17) / 17.0F;
    }
    for (uint32_t i = 0; i < 3; i++) {
        const graft_run_options options = {
            .thread_count = 1 + i / 2, .tune = i == 1, .database = file};
        graft_run *run = NULL;
        expect(run, graft_run_open("autoencoder", &options, &run), GRAFT_OK, "");
        graft_run_tensor input = *graft_run_input(run, 0), output = *graft_run_output(run, 0);
        assert_int_equal(graft_shape_bytes(&input.shape), sizeof in);
        assert_int_equal(graft_shape_bytes(&output.shape), sizeof out[0]);
        input.data = in;
        output.data = out[i];
        expect(run, graft_run_once(run, &input, 1, &output, 1), GRAFT_OK, "");
        graft_run_close(run);
        for (uint32_t k = 0; k < 640; k++) {
            assert_float_equal(out[i][k], out[0][k], 1e-4F);
        }
    }
}

/* A model may list an output twice: both are computed, and a file has one of the name. */
CHECK_CASE(test_output_twice)
{
    char *path = check_path("x.onnx");
    char *costs = check_path("x.costs");
    char *file = check_path("y.npz");
    char *words[] = {"run",       path, "--bench",    "--rounds", "3",
                     "--outputs", file, "--database", costs};
    const graft_run_options options = {.thread_count = 1, .database = costs};
    float in[2] = {-1, 2}, out[3][2] = {{0}};
    graft_run *run = NULL;
    graft_run_tensor *read = NULL;
    uint8_t *data = NULL;
    size_t size = 0;
    uint32_t count = 0;
    onnx_text_write(
        env, "input x 2; node Relu x -> y; node Exp x -> z; output y; output z; output y", path);
    expect(run, graft_run_open(path, &options, &run), GRAFT_OK, "");
    assert_int_equal(graft_run_output_count(run), 3);
    graft_run_tensor x = *graft_run_input(run, 0), y[3];
    x.data = in;
    for (uint32_t k = 0; k < 3; k++) {
        y[k] = *graft_run_output(run, k);
        y[k].data = out[k];
    }
    expect(run, graft_run_once(run, &x, 1, y, 3), GRAFT_OK, "");
    assert_true(out[0][1] == 2 && out[2][1] == 2);
    y[1] = y[0];
    expect(run, graft_run_once(run, &x, 1, y, 3), GRAFT_BAD_INPUT, "output 'y': it comes twice");
    graft_run_close(run);
    CHECK_OK(graft_command_call(env, &graft_command_run, 9, words));
    CHECK_OK(graft_file_read(env, env->life, file, &data, &size));
    CHECK_OK(graft_npz_parse(env, env->life, (graft_bytes){file, data, size}, &read, &count));
    assert_int_equal(count, 2);
}

/* Old exporters give a region of no elements to what needs none. */
CHECK_CASE(test_empty_weight)
{
    const char *path = check_path("x.onnx");
    const graft_run_options options = {.thread_count = 1, .database = check_path("x.costs")};
    float in[2] = {0, 1};
    float out[4] = {0};
    graft_run *run = NULL;
    onnx_text_write(env,
                    "opset 11; input x 1 1 1 2; weight r 0; weight s 4 = 1 1 1 2;"
                    "node Resize x r s -> y : mode=linear",
                    path);
    expect(run, graft_run_open(path, &options, &run), GRAFT_OK, "");
    graft_run_tensor x = *graft_run_input(run, 0), y = *graft_run_output(run, 0);
    x.data = in;
    y.data = out;
    expect(run, graft_run_once(run, &x, 1, &y, 1), GRAFT_OK, "");
    assert_float_equal(out[1], 0.25F, 1e-6F);
    graft_run_close(run);
}

/* Sizes that are open are those of the inputs that the caller has, named or not, whichever input they
 * come from; where `sizes` says another, that counts, and the input does not fit. */
CHECK_CASE(test_sizes_of_inputs)
{
    static const char *const two = "n=2";
    const char *path = check_path("x.onnx");
    float in[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    float out[3] = {0};
    const graft_run_tensor x = {"x", SHAPE(3, 4), in};
    graft_run_options options = {
        .thread_count = 1, .database = check_path("x.costs"), .inputs = &x, .input_count = 1};
    graft_run *run = NULL;
    onnx_text_write(env,
                    "input z n; input x n ?; ints a = 1; node ReduceSum x a -> s : keepdims=0; "
                    "node Sub s z -> y",
                    path);
    expect(run, graft_run_open(path, &options, &run), GRAFT_OK, "");
    const graft_run_tensor inputs[2] = {
        x, {"z", SHAPE(3), in}
    };
    graft_run_tensor y = *graft_run_output(run, 0);
    y.data = out;
    expect(run, graft_run_once(run, inputs, 2, &y, 1), GRAFT_OK, "");
    assert_true(out[0] == 6.0F && out[1] == 21.0F && out[2] == 36.0F);
    graft_run_close(run);
    options.sizes = &two;
    options.size_count = 1;
    expect(run, graft_run_open(path, &options, &run), GRAFT_OK, "");
    y = *graft_run_output(run, 0);
    y.data = out;
    expect(run, graft_run_once(run, inputs, 2, &y, 1), GRAFT_BAD_INPUT, "input 'x'");
    graft_run_close(run);
}

static uint32_t count_packs(const graft_run *run)
{
    uint32_t count = 0;
    for (const program_pack *pack = run->device->packs; pack != NULL; pack = pack->next) {
        count++;
    }
    return count;
}

/* A past that is empty first and grows by a row in each step, in one session, twice, and behind more
 * plans than are kept. One that does not fit leaves the session as it was. */
CHECK_CASE(test_resized)
{
    enum { STEPS = 5, MANY = 150 };
    const char *path = check_path("x.onnx");
    float past[2 * STEPS], all[2 * STEPS], y[2 * STEPS], row[2];
    graft_run_tensor in[2] = {
        {.name = "past", .shape = SHAPE(0, 2) },
        { "x",       SHAPE(1,               2), row}
    };
    const graft_run_options options = {
        .thread_count = 1, .database = check_path("x.costs"), .inputs = in, .input_count = 2};
    graft_run *run = NULL;
    uint32_t packs = 0; /* Of the first plan and of one more: others share what is transposed. */
    onnx_text_write(env,
                    "input x 1 2; input past p 2; weight w 2 2 = 1 10 100 1000; weight v 64 2; "
                    "node Concat past x -> all : axis=0; node MatMul all w -> y; "
                    "node Gemm all v -> z : transB=1; output all; output y; output z",
                    path);
    for (int32_t turn = 0; turn < 3 * STEPS; turn++) {
        const int32_t step = turn % STEPS;
        for (int32_t i = STEPS; i < MANY && turn == 2 * STEPS; i++) {
            in[0].shape.dims[0] = i;
            expect(run, graft_run_resize(run, in, 2), GRAFT_OK, "");
        }
        in[0].shape.dims[0] = step;
        in[0].data = step == 0 ? NULL : past;
        row[0] = (float)step;
        row[1] = 1.0F;
        expect(run, turn == 0 ? graft_run_open(path, &options, &run) : graft_run_resize(run, in, 2),
               GRAFT_OK, "");
        graft_run_tensor out[2] = {*graft_run_output(run, 0), *graft_run_output(run, 1)};
        assert_int_equal(out[0].shape.dims[0], step + 1);
        packs = turn < 2 ? count_packs(run) : packs;
        assert_true(packs > 0 && (turn >= STEPS || count_packs(run) == packs));
        out[0].data = all;
        out[1].data = y;
        for (uint32_t again = 0; again < 2; again++) {
            expect(run, graft_run_once(run, in, 2, out, 2), GRAFT_OK, "");
            for (int32_t i = 0; i <= step; i++) {
                assert_int_equal((int)y[2 * i], i + 100);
                assert_int_equal((int)y[2 * i + 1], 10 * i + 1000);
            }
            in[0].shape.dims[1] = 3;
            expect(run, graft_run_resize(run, &(graft_run_tensor){.name = NULL}, 1),
                   GRAFT_BAD_INPUT, "input 0 of those given has no name");
            expect(run, graft_run_once(run, in, 2, NULL, 0), GRAFT_BAD_INPUT,
                   "input 'past' is f32");
            in[0].shape.dims[1] = 2;
        }
        memcpy(past, all, sizeof all);
    }
    graft_run_close(run);
}

/* Runs a model, written as text, of one input, and compares its outputs, one behind the other. */
static void check_flow(graft_env *env, const char *text, const float *in, const float *want,
                       graft_status status, const char *message)
{
    enum { ROOM = 16 };
    const graft_run_options options = {.thread_count = 1, .database = check_path("x.costs")};
    const char *path = check_path("x.onnx");
    float copy[ROOM], out[ROOM];
    graft_run *run = NULL;
    uint32_t place = 0;
    onnx_text_write(env, text, path);
    const bool opens = status != GRAFT_UNSUPPORTED;
    const graft_status opened = graft_run_open(path, &options, &run);
    expect(run, opened, opens ? GRAFT_OK : status, opens ? "" : message);
    if (!opens) {
        graft_run_close(run);
        return;
    }
    graft_run_tensor x = *graft_run_input(run, 0), y[2] = {{.name = NULL}};
    memcpy(copy, in, graft_shape_bytes(&x.shape));
    x.data = copy;
    uint32_t given = 0;
    for (uint32_t k = 0; k < graft_run_output_count(run); k++) {
        y[given] = *graft_run_output(run, k);
        y[given].data = out + place;
        place += (uint32_t)graft_shape_elements(&y[given].shape);
        given += y[given].shape.rank != GRAFT_RANK_UNKNOWN;
    }
    for (uint32_t again = 0; again < 2; again++) {
        expect(run, graft_run_once(run, &x, 1, y, given), status, message);
    }
    for (uint32_t k = 0; k < graft_run_output_count(run) && given == 0; k++) {
        const graft_run_tensor *made = graft_run_output(run, k);
        memcpy(out + place, made->data, graft_shape_bytes(&made->shape));
        place += (uint32_t)graft_shape_elements(&made->shape);
    }
    for (uint32_t i = 0; i < place && status == GRAFT_OK; i++) {
        assert_float_equal(out[i], want[i], 1e-6F);
    }
    graft_run_close(run);
}

#define IF_POSITIVE                                                                                \
    "input x 2; weight z 1 = 0; graph t; node Mul x x -> r; output r; end; graph e; node Neg x "   \
    "-> r;"                                                                                        \
    "output r; end; ints k = 0; node ReduceSum x k -> s; node Greater s z -> c;"                   \
    "node If c -> y : then_branch=@t else_branch=@e; output y"
/* A state that doubles, and the squares of what it was. */
#define LOOP(rounds, goes)                                                                         \
    "input x 2; scalar n = 3; weight z 1 = 5; ints k = 0; graph b; input i; input g; input "       \
    "h; " goes "; node Add h h -> d; node Mul h h -> q; output f; output d; output q; end;"        \
    "node Loop " rounds " _ x -> y s : body=@b; output y; output s"

/* The same with a counter that ends it at 5, in a state of its own. */
#define COUNTS(goes, next)                                                                         \
    "input x 2; scalar c = -1; scalar l = 5; scalar t = 2; graph b; input i; input g; input h; "   \
    "input o; node Add o t -> a; node Mul o o -> p; " goes "; node Add h h -> d; "                 \
    "node Mul h h -> q; node Add " next " t -> n; output f; output d; output n; output q; end;"    \
    "node Loop _ _ x c -> y z s : body=@b; output y; output s"

CHECK_CASE(test_flows)
{
    check_flow(env, IF_POSITIVE, (float[]){3, -1}, (float[]){9, 1}, GRAFT_OK, "");
    check_flow(env, IF_POSITIVE, (float[]){1, -3}, (float[]){-1, 3}, GRAFT_OK, "");
    check_flow(env, LOOP("n", "node Identity g -> f"), (float[]){1, 2},
               (float[]){8, 16, 1, 4, 4, 16, 16, 64}, GRAFT_OK, "");
    check_flow(env, LOOP("n", "node ReduceSum h k -> u; node Less u z -> f"), (float[]){1, 2}, NULL,
               GRAFT_BAD_INPUT, "node 'n4' ended after 2 of 3 rounds");
    /* A condition that counts by twos, beside a state of numbers; one by what is summed and one by a
     * counter that grows otherwise, which end when they do. */
    check_flow(env, COUNTS("node Less a l -> f", "o"), (float[]){1, 2},
               (float[]){8, 16, 1, 4, 4, 16, 16, 64}, GRAFT_OK, "");
    check_flow(env,
               COUNTS("node Cast h -> w : to=7; ints k = 0; node ReduceMax w k -> u : keepdims=0; "
                      "node Less u l -> f",
                      "o"),
               (float[]){1, 2}, (float[]){8, 16, 1, 4, 4, 16, 16, 64}, GRAFT_OK, "");
    check_flow(env, COUNTS("node Less a l -> f", "p"), (float[]){1, 2},
               (float[]){4, 8, 1, 4, 4, 16}, GRAFT_OK, "");
    /* Through two tensors, one of them backwards, along different axes. */
    check_flow(
        env,
        "input x 2 2; graph b; input h; input p; input q; node Add h p -> d; node Sub d q -> e;"
        "output d; output e; end; weight z 2 = 0 0; node Scan z x x -> t y : body=@b"
        " num_scan_inputs=2 scan_input_axes=0,1 scan_input_directions=0,1"
        " scan_output_axes=1, scan_output_directions=1,; output t; output y",
        (float[]){1, 2, 3, 4}, (float[]){4, 6, 3, -1, 3, -2}, GRAFT_OK, "");
}

/* Sizes that data tell are known after each run, of none too. */
CHECK_CASE(test_stages)
{
    const graft_run_options options = {.thread_count = 1, .database = check_path("x.costs")};
    const char *path = check_path("x.onnx");
    float in[2][4] = {
        {1, 0, 2, 0},
        {0, 0, 0, 0}
    };
    int64_t out[4] = {7, 7, 7, 7};
    graft_run *run = NULL;
    onnx_text_write(env, "input x 4; node Relu x -> r; node NonZero r -> y; output r; output y",
                    path);
    expect(run, graft_run_open(path, &options, &run), GRAFT_OK, "");
    assert_int_equal(graft_run_output(run, 0)->shape.rank, 1);
    assert_int_equal(graft_run_output(run, 1)->shape.rank, GRAFT_RANK_UNKNOWN);
    graft_run_tensor x = *graft_run_input(run, 0);
    const graft_run_tensor *y = graft_run_output(run, 1);
    for (int32_t i = 0; i < 3; i++) {
        x.data = in[i % 2];
        expect(run, graft_run_once(run, &x, 1, NULL, 0), GRAFT_OK, "");
        assert_true(y->shape.rank == 2 && y->shape.dtype == GRAFT_DTYPE_I64);
        assert_true(y->shape.dims[0] == 1 && y->shape.dims[1] == (i == 1 ? 0 : 2));
        assert_true(i == 1 || ((const int64_t *)y->data)[1] == 2);
        assert_float_equal(((const float *)graft_run_output(run, 0)->data)[2], in[i % 2][2], 0.0F);
    }
    graft_run_tensor wanted = *y;
    wanted.data = out;
    expect(run, graft_run_once(run, &x, 1, &wanted, 1), GRAFT_OK, "");
    assert_true(out[0] == 0 && out[1] == 2 && out[2] == 7);
    x.data = in[1];
    expect(run, graft_run_once(run, &x, 1, &wanted, 1), GRAFT_BAD_INPUT,
           "output 'y' is i64[1,2], not the model's i64[1,0]");
    graft_run_close(run);
    /* What is not known is told when it is reached; by then it reads what has sizes. */
    onnx_text_write(env,
                    "input x 4; node NonZero x -> p; node Cast p -> c : to=1; node Det c -> y; "
                    "output y",
                    path);
    expect(run, graft_run_open(path, &options, &run), GRAFT_OK, "");
    x = *graft_run_input(run, 0);
    x.data = in[0];
    expect(run, graft_run_once(run, &x, 1, NULL, 0), GRAFT_UNSUPPORTED, "(Det) cannot be run");
    graft_run_close(run);
}

enum { KEPT_PLACES = 24, KEPT_DEPTH = 64, KEPT_COLUMNS = 40 };

/* relu(v a) w' of the numbers v of x that are not 0, where `a` and w are 0.5, 1.0, 1.5 ... */
static void check_kept(const graft_run_tensor *y, const float *x)
{
    const float *made = y->data;
    int32_t rows = 0;
    for (uint32_t i = 0; i < KEPT_PLACES; i++) {
        for (uint32_t j = 0; x[i] != 0.0F && j < KEPT_COLUMNS; j++) {
            double sum = 0.0;
            for (uint32_t k = 0; k < KEPT_DEPTH && x[i] > 0.0F; k++) {
                sum += 0.25 * (k + 1) * (j * KEPT_DEPTH + k + 1) * (double)x[i];
            }
            assert_float_equal(made[rows * KEPT_COLUMNS + (int32_t)j], (float)sum,
                               1e-5F * (float)sum);
        }
        rows += x[i] != 0.0F;
    }
    assert_true(y->shape.rank == 2 && y->shape.dims[0] == rows && y->shape.dims[1] == KEPT_COLUMNS);
}

/* Data of sizes that were met before runs by the plans of then, and such of new sizes reads the
 * weights that were packed. */
CHECK_CASE(test_kept_stages)
{
    const graft_run_options options = {.thread_count = 1, .database = check_path("x.costs")};
    static const struct {
        float from;
        uint32_t count;
        uint32_t plans; /* By then. */
    } runs[] = {
        {1,  3, 1},
        {2,  5, 2},
        {7,  3, 2},
        {-7, 5, 2},
        {1,  0, 2},
        {3,  3, 2},
    };
    const char *path = check_path("x.onnx");
    graft_run *run = NULL;
    uint32_t packs = 0;
    onnx_text_write(
        env,
        "input x 24; weight a 1 64; weight w 40 64; ints s = -1 1; node NonZero x -> p; "
        "node Transpose p -> q; node GatherND x q -> v; node Reshape v s -> c; "
        "node MatMul c a -> m; node Relu m -> r; node Gemm r w -> y : transB=1; "
        "output y",
        path);
    expect(run, graft_run_open(path, &options, &run), GRAFT_OK, "");
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        float in[KEPT_PLACES] = {0.0F};
        for (uint32_t k = 0; k < runs[i].count; k++) {
            in[(5 * k + i) % KEPT_PLACES] = runs[i].from + (float)k;
        }
        graft_run_tensor x = *graft_run_input(run, 0);
        x.data = in;
        expect(run, graft_run_once(run, &x, 1, NULL, 0), GRAFT_OK, "");
        check_kept(graft_run_output(run, 0), in);
        assert_int_equal(run->plan.stages->planned_count, runs[i].plans);
        packs = i == 0 ? count_packs(run) : packs;
        assert_int_equal(count_packs(run), packs);
    }
    assert_true(packs > 0);
    graft_run_close(run);
}

CHECK_CASE(test_refusals)
{
    static const char *const size = "nonesuch=3";
    const graft_run_options options[] = {
        {.policy = "none.graft", .database = "none.costs"},
        {.sizes = &size,         .size_count = 1         },
        {.thread_count = 1025  },
        {.inputs = &(graft_run_tensor){.name = NULL},      .input_count = 1                        },
    };
    graft_run *run = NULL;
    expect(run, graft_run_open("none.onnx", NULL, &run), GRAFT_IO, "none.onnx: cannot open");
    expect(run, graft_run_once(run, NULL, 0, NULL, 0), GRAFT_BAD_INPUT, "none.onnx: cannot open");
    assert_int_equal(graft_run_input_count(run), 0);
    graft_run_close(run);
    expect(run, graft_run_open("autoencoder", &options[0], &run), GRAFT_IO, "none.graft");
    graft_run_close(run);
    expect(run, graft_run_open("autoencoder", &options[1], &run), GRAFT_BAD_INPUT, "nonesuch");
    graft_run_close(run);
    expect(run, graft_run_open("autoencoder", &options[2], &run), GRAFT_BAD_INPUT,
           "1025 threads are more than 1024");
    graft_run_close(run);
    expect(run, graft_run_open("autoencoder", &options[3], &run), GRAFT_BAD_INPUT,
           "input 0 of those given has no name");
    graft_run_close(run);
}

/* Where numbers have a comma, costs are still read and written with a point. */
CHECK_CASE(test_locale)
{
    const char *folder = check_folder();
    const char *make =
        graft_arena_printf(env->life, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8", folder);
    graft_graph *graph = build_graph(env->life);
    const graft_index x = build_input(graph, SHAPE(1, 8), 0);
    const graft_index y = build_node(graph, GRAFT_OP_relu, NULL, x, 0, 0);
    const graft_run_options options = {
        .thread_count = 1, .tune = true, .database = check_path("x.costs")};
    graft_run *run = NULL;
    CHECK_OK(graft_graph_add_output(graph, y));
    assert_int_equal(setenv("LOCPATH", folder, 1), 0);
    if (system(make) != 0 || setlocale(LC_ALL, "de_DE.UTF-8") == NULL) {
        CHECK_SKIP("a locale with a decimal comma needs Debian's package locales");
    }
    for (int i = 0; i < 2; i++) { /* What the first one wrote the second one reads. */
        expect(run, graft_run_open_graph(graph, NULL, NULL, &options, &run), GRAFT_OK, "");
        graft_run_close(run);
        assert_string_equal(localeconv()->decimal_point, i == 0 ? "," : ".");
        assert_non_null(setlocale(LC_ALL, "C"));
    }
}

/* Other algorithms (graph/algorithms.h): Winograd's matrices exactly, and of each algorithm what a
 * file with it computes, beside the file as it was. onnxruntime is asked by test_devices.sh. */
#include "graph/algorithms.h"

#include "graft/run.h"
#include "graph/onnx/onnx_winograd.h"
#include "tests/support/onnx_text.h"

#include <math.h>
#include <string.h>

/* What w[k] in[i] is times in out[a], times 24: with that all numbers are whole, and binary64 is
 * exact. */
static double coefficient(const graft_onnx_winograd *w, uint32_t a, uint32_t k, uint32_t i)
{
    double sum = 0.0;
    for (uint32_t p = 0; p < w->points; p++) {
        const double whole = round(24.0 * w->g[p][k]);
        assert_true(fabs(whole - 24.0 * w->g[p][k]) < 1e-12);
        sum += w->at[a][p] * whole * w->bt[p][i];
    }
    return sum;
}

/* Whether out[a] = sum of w[k] in[a + k] whatever w and in are. */
CHECK_CASE(test_matrices)
{
    static const uint32_t sizes[][2] = {
        {4, 3},
        {2, 3},
        {2, 5},
        {1, 1},
        {3, 4},
        {5, 2}
    };
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        graft_onnx_winograd w;
        graft_onnx_winograd_make(sizes[s][0], sizes[s][1], &w);
        assert_int_equal(w.points, sizes[s][0] + sizes[s][1] - 1);
        for (uint32_t a = 0; a < w.outputs; a++) {
            assert_true(w.points == 1 || w.at[a][w.ones] == 1.0);
            for (uint32_t k = 0; k < w.taps; k++) {
                for (uint32_t i = 0; i < w.points; i++) {
                    assert_true(coefficient(&w, a, k, i) == (i == a + k ? 24.0 : 0.0));
                }
            }
        }
    }
}

/* ---------------------------------------------------------------- files */

typedef struct {
    const char *name;
    const char *model; /* Input x, output y. */
    uint32_t count;    /* Nodes that have other algorithms, */
    uint32_t others;   /* which. */
} algorithm_row;

#define BIT(name) (1U << GRAFT_ALGORITHM_##name)
#define BOTH      (BIT(WINOGRAD_6) | BIT(WINOGRAD_4))

/* clang-format off */
static const algorithm_row rows[] = {
    {"whole tiles", "input x 1 8 8 8; weight w 8 8 3 3; weight b 8; node Conv x w b -> y : pads=1,1,1,1", 1, BOTH},
    {"tiles that hang over, no bias, two images, no padding", "input x 2 8 9 12; weight w 11 8 3 3; node Conv x w -> y",
     1, BOTH},
    {"uneven paddings in an old file",
     "opset 9; ir 3; input x 1 8 7 5; input w 8 8 3 3; weight w 8 8 3 3; node Conv x w -> y : pads=0,2,1,1", 1, BOTH},
    {"padded by a word", "input x 1 8 10 6; weight w 8 8 3 3; node Conv x w -> y : auto_pad=SAME_UPPER", 1, BOTH},
    {"a column", "input x 1 9 13 4; weight w 8 9 3 1; weight b 8; node Conv x w b -> y : pads=1,0,1,0", 1, BOTH},
    {"a row", "input x 3 9 2 13; weight w 8 9 1 3; weight b 8; node Conv x w b -> y", 1, BOTH},
    {"five taps", "input x 1 8 9 9; weight w 8 8 5 5; weight b 8; node Conv x w b -> y : pads=2,2,2,2", 1,
     BIT(WINOGRAD_6)},
    {"three by five", "input x 1 8 9 9; weight w 8 8 3 5; node Conv x w -> y : pads=1,2,1,2", 1, BIT(WINOGRAD_6)},
    {"two alike, and one weight for both", "input x 1 8 8 8; weight w 8 8 3 3; node Conv x w -> a : pads=1,1,1,1; "
     "node Relu a -> b; node Conv b w -> y : pads=1,1,1,1", 2, BOTH},
    {"normalised over channels", "input x 2 7 3 4; node LRN x -> y : size=3 alpha=0.3 beta=0.75 bias=2.0", 1,
     BIT(POOL)},
    {"over an even number of them", "opset 8; input x 1 5 4 4; node LRN x -> y : size=4 alpha=0.5 beta=0.5", 1,
     BIT(POOL)},
    {"two sides",
     "input x 2 4 3 3; weight c = -2.0; weight s 4 1 1 = 0.5 -1.5 0 2; node Add x c -> a; node PRelu a s -> y", 1,
     BIT(TWO_SIDES)},
    {"a sum that is normalised",
     "input x 2 3 8; weight g 8; weight b 8; node Relu x -> r; node Add x r -> a; node LayerNormalization a g b -> y",
     1, BIT(SUM)},
    {"normalised in parts", "opset 13; input x 1 6 4; weight g 4; node Relu x -> r; node Add r x -> a; "
     "node ReduceMean a -> m : axes=-1; node Sub a m -> s; node Mul s g -> y", 1, BIT(SUM)},
    {"a bias that is normalised",
     "input x 2 3 8; weight g 8; weight b 8; node Add x b -> a; node LayerNormalization a g -> y", 0, 0},
    {"a sum that is stretched", "input x 1 3 8; weight g 8; node Relu x -> r; "
     "node ReduceMax r -> m : axes=1 keepdims=1; node Add r m -> a; node LayerNormalization a g -> y", 0, 0},
    {"a sum that is not normalised", "input x 2 3 8; node Relu x -> r; node Add x r -> y", 0, 0},
    {"groups", "input x 1 16 8 8; weight w 16 8 3 3; node Conv x w -> y : group=2", 0, 0},
    {"steps of two", "input x 1 8 8 8; weight w 8 8 3 3; node Conv x w -> y : strides=2,2", 0, 0},
    {"dilated", "input x 1 8 8 8; weight w 8 8 3 3; node Conv x w -> y : dilations=2,1", 0, 0},
    {"one tap", "input x 1 8 8 8; weight w 8 8 1 1; node Conv x w -> y", 0, 0},
    {"seven taps", "input x 1 8 9 9; weight w 8 8 7 7; node Conv x w -> y", 0, 0},
    {"few channels", "input x 1 3 8 8; weight w 8 3 3 3; node Conv x w -> y", 0, 0},
    {"computed weights", "input x 1 8 8 8; input v 8 8 3 3; node Relu v -> w; node Conv x w -> y", 0, 0},
    {"open rows", "input x 1 8 N 8; weight w 8 8 3 3; node Conv x w -> y", 0, 0},
    {"another operator of that name", "input x 1 8 8 8; weight w 8 8 3 3; node Conv x w -> y : domain=mine", 0, 0},
    {"another power", "input x 1 4 4 4; node LRN x -> y : size=3 beta=0.6", 0, 0},
    {"a slope for each place", "input x 1 2 2 2; weight s 2 2 2; node PRelu x s -> y", 0, 0},
};
/* clang-format on */

enum { ELEMENTS_MOST = 2048 };

/* Runs a file on what the elements 0, 1, 2... are scattered to; `size` is of what it leaves
 * open. */
static uint32_t run_file(const char *path, const char *costs, const char *size, float *out)
{
    static float in[ELEMENTS_MOST];
    const graft_run_options options = {
        .thread_count = 1, .database = costs, .sizes = &size, .size_count = size != NULL};
    graft_run *run = NULL;
    for (uint32_t i = 0; i < ELEMENTS_MOST; i++) {
        in[i] = (float)(i * 37 % 101) / 25.0F;
    }
    if (graft_run_open(path, &options, &run) != GRAFT_OK) {
        fail_msg("%s: %s", path, graft_run_message(run));
    }
    graft_run_tensor x = *graft_run_input(run, 0);
    graft_run_tensor y = *graft_run_output(run, 0);
    const uint64_t count = graft_shape_elements(&y.shape);
    assert_true(graft_shape_elements(&x.shape) <= ELEMENTS_MOST && count <= ELEMENTS_MOST);
    x.data = in;
    y.data = out;
    if (graft_run_once(run, &x, 1, &y, 1) != GRAFT_OK) {
        fail_msg("%s: %s", path, graft_run_message(run));
    }
    graft_run_close(run);
    return (uint32_t)count;
}

/* The same bits, and no Add any more. */
static void check_sum(graft_env *env, const char *path)
{
    graft_model *model = NULL;
    CHECK_OK(graft_model_read(env, env->life, path, NULL, &model));
    for (uint32_t i = 0; i < model->onnx->node_count; i++) {
        assert_string_not_equal(model->onnx->proto->graph->node[i]->op_type, "Add");
    }
}

/* Whether a file computes what the other one did. */
static void compare(const char *name, const float *want, uint32_t count, const char *path,
                    const char *costs, const char *size)
{
    static float have[ELEMENTS_MOST];
    float largest = 0.0F;
    assert_int_equal(run_file(path, costs, size, have), count);
    for (uint32_t i = 0; i < count; i++) {
        largest = fmaxf(largest, fabsf(want[i]));
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!(fabsf(want[i] - have[i]) <= 2e-5F * largest)) {
            fail_msg("%s: element %u is %g, not %g of %g", name, i, (double)have[i],
                     (double)want[i], (double)largest);
        }
    }
}

/* A weight that nothing reads any more is not written. */
static void find_no_filter(graft_env *env, const char *path, const char *name)
{
    graft_model *model = NULL;
    CHECK_OK(graft_model_read(env, env->life, path, NULL, &model));
    for (uint32_t w = 0; w < model->weight_count; w++) {
        if (model->weights[w].name != NULL && strcmp(model->weights[w].name, "w") == 0) {
            fail_msg("%s: the filter is still there", name);
        }
    }
    assert_string_equal(model->outputs[0].name, "y");
    assert_int_equal(model->input_count, 1);
}

static void test_row(graft_env *env, const algorithm_row *row)
{
    static float want[ELEMENTS_MOST];
    const char *file = check_path("x.onnx");
    const char *costs = check_path("x.costs");
    graft_model *model = onnx_text_model(env, row->model);
    graft_algorithm last = GRAFT_ALGORITHM_OWN;
    graft_algorithms found;
    graft_algorithms_find(env, model, &found);
    if (found.count != (row->count > 0) ||
        (found.count > 0 && found.classes[0].count != row->count)) {
        fail_msg("%s: %u classes", row->name, found.count);
    }
    if (found.count == 0) {
        return;
    }
    assert_int_equal(found.classes[0].others, row->others);
    CHECK_OK(graft_algorithms_write(env, &found, file));
    uint32_t count = run_file(file, costs, NULL, want);
    for (uint32_t a = 1; a < GRAFT_ALGORITHM_COUNT; a++) {
        if ((row->others >> a & 1U) != 0) {
            found.classes[0].chosen = last = a;
            CHECK_OK(graft_algorithms_write(env, &found, file));
            compare(row->name, want, count, file, costs, NULL);
            find_no_filter(env, file, row->name);
        }
    }
    if (last == GRAFT_ALGORITHM_SUM) {
        check_sum(env, file);
        return; /* It has nothing to be timed alone. */
    }
    CHECK_OK(graft_algorithms_write_alone(env, &found, 0, GRAFT_ALGORITHM_OWN, file));
    count = run_file(file, costs, NULL, want);
    CHECK_OK(graft_algorithms_write_alone(env, &found, 0, last, file));
    compare(row->name, want, count, file, costs, NULL);
}

CHECK_CASE(test_files)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(env, &rows[i]);
    }
}

/* Any number of images, where the file leaves it open; not of rows. */
CHECK_CASE(test_open)
{
    static const char *const numbers[] = {"N=1", "N=2", "N=3"};
    static const char *const texts[] = {
        "input x N 8 7 9; weight w 8 8 3 3; weight b 8; node Conv x w b -> a : pads=1,1,1,1; "
        "node Relu a -> y; output y",
        "input x N 4 5 6; node LRN x -> y : size=3; output y",
        "input x N 8 5 6; weight s 8 1 1; node PRelu x s -> y; output y",
        "input x 1 8 N 8; weight w 8 8 3 3; node Conv x w -> y; output y"};
    static float want[ELEMENTS_MOST];
    const char *file = check_path("x.onnx");
    const char *costs = check_path("x.costs");
    const graft_model_options options = {.keep_open = true};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        graft_model *model = NULL;
        graft_algorithms found;
        CHECK_OK(onnx_text_read(env, onnx_text_message(env->life, texts[i]), &options, &model));
        graft_algorithms_find(env, model, &found);
        assert_int_equal(found.count, i < 3);
        for (size_t n = 0; n < sizeof numbers / sizeof numbers[0] && found.count > 0; n++) {
            found.classes[0].chosen = GRAFT_ALGORITHM_OWN;
            CHECK_OK(graft_algorithms_write(env, &found, file));
            const uint32_t count = run_file(file, costs, numbers[n], want);
            while ((found.classes[0].others >> found.classes[0].chosen & 1U) == 0) {
                found.classes[0].chosen++;
            }
            CHECK_OK(graft_algorithms_write(env, &found, file));
            compare(texts[i], want, count, file, costs, numbers[n]);
        }
    }
}

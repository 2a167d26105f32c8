/* Every implementation of every operator against the float reference: random small cases of each
 * operator in every layout, with and without const operands, and chosen larger ones that reach the
 * library's fast kernels (odd channel counts, depthwise, groups, dilation, Winograd, in place). */
#include "cost/cpu/device_cpu.h"
#include "tests/support/build.h"
#include "tests/support/cases.h"
#include "tests/support/check.h"
#include "tests/support/kernels.h"

#include <math.h>
#include <omp.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DRAWS = 60 };

static void print_signature(graft_env *env, const graft_signature *s)
{
    graft_buffer text = {.arena = env->scratch};
    graft_signature_print(s, &text);
    print_message("# %s\n", text.data);
}

/* Which operands may be weights without the whole node being const. */
static uint32_t draw_const_mask(graft_rng *rng, uint32_t inputs)
{
    return graft_rng_below(rng, 1u << inputs) & ((1u << inputs) - 2u);
}

static bool is_run(uint32_t op)
{
    return op != GRAFT_OP_identity && op != GRAFT_OP_reshape && op != GRAFT_OP_fill &&
           !check_case_is_lowered(op);
}

/* The library's code for processors without AVX2: a depthwise convolution with a residual whose
 * pixels are not aligned. The first case, in a process of its own: the library keeps to what it was
 * first used with. */
CHECK_CASE(test_older_processor)
{
    int exit_status = 1;
    pid_t child = fork();
    if (child == 0) {
        const int32_t attrs[GRAFT_MAX_ATTRS] = {1, 1, 0, 0, 0, 0, 1, 1, 5};
        const graft_shape in[4] = {SHAPE(2, 5, 5, 3), SHAPE(5, 1, 1, 1), SHAPE(5),
                                   SHAPE(2, 5, 5, 3)};
        graft_rng rng = check_rng(14);
        bool sound = dnnl_set_max_cpu_isa(dnnl_cpu_isa_sse41) == dnnl_success;
        graft_device *device = check_device_open(env);
        graft_signature s =
            check_signature(env, GRAFT_OP_conv_bias_add, attrs, in, 6, GRAFT_LAYOUT_NHWC);
        sound = sound && check_kernels(env, device, &rng, &s) > 0;
        _exit(sound ? 0 : 1);
    }
    assert_true(waitpid(child, &exit_status, 0) == child);
    assert_int_equal(exit_status, 0);
}

CHECK_CASE(test_random_cases)
{
    graft_device *device = check_device_open(env);
    graft_device *shared = check_device_shared(env);
    graft_rng rng = check_rng(5);
    uint32_t ours = 0;
    for (uint32_t op = 1; op < GRAFT_OP_COUNT; op++) {
        for (uint32_t draw = 0; draw < DRAWS && graft_op(op) != NULL && is_run(op); draw++) {
            check_case drawn;
            check_case_draw(&rng, op, &drawn);
            uint32_t mask = draw_const_mask(&rng, graft_op(op)->input_count);
            graft_signature s =
                check_signature(env, op, drawn.attrs, drawn.in, mask, draw % GRAFT_LAYOUT_COUNT);
            assert_true(check_kernels(env, device, &rng, &s) > 0);
            ours += check_kernels_shared(env, device, shared, &rng, &s);
        }
    }
    assert_true(ours > GRAFT_OP_COUNT * DRAWS / 2);
}

typedef struct {
    const char *name;
    uint32_t op;
    int32_t image[4];
    int32_t filter[4];
    int32_t attrs[10]; /* stride 2, pad 4, dilation 2, groups, activation */
    bool in_place;
    uint32_t least; /* implementations */
} conv_row;

/* clang-format off */
static const conv_row conv_rows[] = {
    {"pointwise", GRAFT_OP_conv, {1, 64, 14, 14}, {32, 64, 1, 1}, {1, 1, 0, 0, 0, 0, 1, 1, 1, 0}, false, 2},
    {"odd channels", GRAFT_OP_conv, {2, 17, 9, 11}, {23, 17, 3, 3}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 0}, false, 1},
    {"stem", GRAFT_OP_conv_bias, {1, 3, 32, 32}, {16, 3, 7, 7}, {2, 2, 3, 3, 3, 3, 1, 1, 1, 1}, false, 2},
    {"uneven padding", GRAFT_OP_conv, {1, 8, 13, 10}, {16, 8, 3, 3}, {2, 1, 0, 2, 1, 0, 1, 1, 1, 0}, false, 1},
    {"dilated", GRAFT_OP_conv_bias, {1, 16, 15, 15}, {16, 16, 3, 3}, {1, 1, 2, 2, 2, 2, 2, 2, 1, 2}, false, 1},
    {"depthwise", GRAFT_OP_conv_bias, {1, 32, 14, 14}, {32, 1, 3, 3}, {1, 1, 1, 1, 1, 1, 1, 1, 32, 1}, false, 1},
    {"depthwise odd", GRAFT_OP_conv, {1, 19, 7, 7}, {19, 1, 3, 3}, {2, 2, 1, 1, 1, 1, 1, 1, 19, 0}, false, 1},
    {"grouped", GRAFT_OP_conv, {1, 32, 14, 14}, {64, 8, 3, 3}, {1, 1, 1, 1, 1, 1, 1, 1, 4, 0}, false, 1},
    {"winograd", GRAFT_OP_conv, {1, 32, 14, 14}, {64, 32, 3, 3}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 0}, false, 2},
    {"winograd relu6", GRAFT_OP_conv_bias, {1, 32, 14, 14}, {64, 32, 3, 3}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 2}, false, 2},
    {"sigmoid", GRAFT_OP_conv_bias, {1, 16, 9, 9}, {24, 16, 1, 1}, {1, 1, 0, 0, 0, 0, 1, 1, 1, 3}, false, 1},
    {"tanh", GRAFT_OP_conv_bias, {1, 16, 9, 9}, {24, 16, 1, 1}, {1, 1, 0, 0, 0, 0, 1, 1, 1, 4}, false, 1},
    {"residual", GRAFT_OP_conv_bias_add, {1, 64, 14, 14}, {256, 64, 1, 1}, {1, 1, 0, 0, 0, 0, 1, 1, 1, 1}, false, 2},
    {"residual in place", GRAFT_OP_conv_bias_add, {1, 64, 14, 14}, {256, 64, 1, 1}, {1, 1, 0, 0, 0, 0, 1, 1, 1, 1},
     true, 2},
    {"residual 3x3", GRAFT_OP_conv_bias_add, {1, 32, 14, 14}, {32, 32, 3, 3}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, true, 2},
    {"residual odd", GRAFT_OP_conv_bias_add, {3, 5, 6, 7}, {7, 5, 3, 3}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 0}, true, 1},
    {"one pixel", GRAFT_OP_conv_bias, {1, 128, 1, 1}, {64, 128, 1, 1}, {1, 1, 0, 0, 0, 0, 1, 1, 1, 1}, false, 1},
    {"one channel", GRAFT_OP_conv, {1, 1, 49, 10}, {64, 1, 10, 4}, {2, 2, 4, 1, 5, 1, 1, 1, 1, 0}, false, 1},
    {"far over the edges", GRAFT_OP_conv_bias, {1, 8, 9, 30}, {16, 8, 3, 39}, {1, 1, 1, 19, 1, 19, 1, 1, 1, 1}, false,
     1},
    {"far over one edge", GRAFT_OP_conv, {2, 17, 5, 40}, {23, 17, 1, 3}, {1, 1, 0, 32, 0, 0, 1, 16, 1, 0}, false, 1},
    {"far, added to", GRAFT_OP_conv_bias_add, {1, 16, 3, 40}, {16, 16, 3, 9}, {1, 1, 1, 16, 1, 16, 1, 4, 1, 1}, true,
     1},
    {"groups, no vectors", GRAFT_OP_conv_bias, {2, 68, 9, 7}, {136, 17, 1, 1}, {1, 1, 0, 0, 0, 0, 1, 1, 4, 1}, false, 1},
    {"groups, added to", GRAFT_OP_conv_bias_add, {1, 34, 6, 5}, {150, 17, 1, 1}, {1, 1, 0, 0, 0, 0, 1, 1, 2, 2}, true, 1},
    {"groups of 3x3", GRAFT_OP_conv, {1, 20, 8, 9}, {40, 10, 3, 3}, {2, 1, 1, 1, 1, 1, 1, 1, 2, 0}, false, 1},
    {"groups, sigmoid", GRAFT_OP_conv_bias, {1, 12, 5, 40}, {28, 6, 1, 1}, {1, 1, 0, 0, 0, 0, 1, 1, 2, 3}, false, 1},
    {"far along a height", GRAFT_OP_conv_bias, {1, 16, 40, 1}, {16, 16, 3, 1}, {2, 1, 12, 0, 0, 0, 8, 1, 1, 0}, false,
     1},
    {"far, many filters", GRAFT_OP_conv_bias_add, {2, 16, 9, 20}, {48, 16, 3, 3}, {1, 1, 6, 6, 6, 6, 6, 6, 1, 1}, true,
     1},
    {"far, in groups, with strides", GRAFT_OP_conv_bias, {1, 16, 16, 75}, {140, 8, 3, 3},
     {2, 1, 5, 25, 4, 25, 5, 25, 2, 3}, false, 1},
    {"far along a height, many filters", GRAFT_OP_conv, {1, 16, 40, 1}, {40, 16, 3, 1}, {1, 1, 12, 0, 0, 0, 8, 1, 1, 0},
     false, 1},
    {"a width of 1", GRAFT_OP_conv_bias, {2, 32, 29, 1}, {16, 32, 5, 1}, {2, 1, 3, 0, 1, 0, 2, 1, 1, 1}, false, 2},
    {"a width of 1, added to", GRAFT_OP_conv_bias_add, {2, 32, 29, 1}, {16, 16, 3, 1}, {1, 3, 1, 0, 2, 0, 1, 1, 2, 1},
     true, 1},
};
/* clang-format on */

static graft_shape shape_of(const int32_t *dims, uint32_t rank)
{
    graft_shape shape = {.rank = (uint8_t)rank, .dtype = GRAFT_DTYPE_F32};
    memcpy(shape.dims, dims, rank * sizeof(dims[0]));
    return shape;
}

/* With const weights as in models, and with computed ones; channels last, and blocked where that
 * fits. */
CHECK_CASE(test_convolutions)
{
    graft_device *device = check_device_open(env);
    graft_device *shared = check_device_shared(env);
    uint32_t ours = 0;
    graft_rng rng = check_rng(6);
    for (size_t i = 0; i < sizeof(conv_rows) / sizeof(conv_rows[0]); i++) {
        const conv_row *row = &conv_rows[i];
        graft_shape in[GRAFT_MAX_INPUTS] = {shape_of(row->image, 4), shape_of(row->filter, 4),
                                            shape_of(row->filter, 1)};
        int32_t attrs[GRAFT_MAX_ATTRS] = {0};
        memcpy(attrs, row->attrs, sizeof(row->attrs));
        if (row->op == GRAFT_OP_conv) {
            attrs[9] = 0;
        }
        int32_t plain[GRAFT_MAX_ATTRS] = {0};
        memcpy(plain, row->attrs, 9 * sizeof(int32_t));
        CHECK_OK(graft_infer_shapes(GRAFT_OP_conv, plain, in, &in[3]));
        for (uint32_t draw = 0; draw < 4; draw++) {
            uint32_t layout = draw < 2 ? GRAFT_LAYOUT_NHWC : GRAFT_LAYOUT_BLOCKED;
            graft_signature s =
                check_signature(env, row->op, attrs, in, draw % 2 == 0 ? 6u : 0u, layout);
            s.in_place = row->in_place;
            uint32_t count = check_kernels(env, device, &rng, &s);
            if (count < row->least) {
                print_signature(env, &s);
                fail_msg("%s: %u implementations, expected %u", row->name, count, row->least);
            }
            ours += check_kernels_shared(env, device, shared, &rng, &s);
        }
    }
    assert_true(ours > 0);
}

typedef struct {
    const char *name;
    uint32_t op;
    uint32_t ranks[3];
    int32_t dims[3][GRAFT_MAX_RANK];
    int32_t attrs[10];
    uint32_t const_mask;
} row;

/* clang-format off */
static const row rows[] = {
    {"linear layer", GRAFT_OP_matmul_bias, {2, 2, 1}, {{1, 256}, {256, 100}, {100}}, {1}, 6},
    {"batch by matrix", GRAFT_OP_matmul, {3, 2}, {{2, 33, 64}, {64, 48}}, {0}, 2},
    {"one row", GRAFT_OP_matmul, {2, 2}, {{1, 100}, {100, 64}}, {0}, 2},
    {"ragged columns", GRAFT_OP_matmul, {3, 2}, {{1, 1, 33}, {33, 1000}}, {0}, 2},
    {"gate", GRAFT_OP_matmul_bias, {2, 2, 1}, {{1, 64}, {64, 200}, {200}}, {3}, 6},
    {"state", GRAFT_OP_matmul_bias, {2, 2, 1}, {{5, 64}, {64, 130}, {130}}, {4}, 6},
    {"bounded", GRAFT_OP_matmul_bias, {2, 2, 1}, {{16, 40}, {40, 96}, {96}}, {2}, 6},
    {"computed bias", GRAFT_OP_matmul_bias, {2, 2, 1}, {{1, 40}, {40, 96}, {96}}, {1}, 2},
    {"many rows", GRAFT_OP_matmul_bias, {2, 2, 1}, {{130, 40}, {40, 100}, {100}}, {1}, 6},
    {"many rows, of images", GRAFT_OP_matmul, {3, 2}, {{3, 33, 64}, {64, 150}}, {0}, 2},
    {"attention", GRAFT_OP_matmul, {4, 4}, {{1, 4, 32, 16}, {1, 4, 16, 32}}, {0}, 0},
    {"batch repeated", GRAFT_OP_matmul, {4, 3}, {{2, 1, 9, 7}, {3, 7, 5}}, {0}, 0},
    {"batched weights", GRAFT_OP_matmul, {3, 3}, {{4, 17, 20}, {4, 20, 12}}, {0}, 2},
    {"const left", GRAFT_OP_matmul, {2, 2}, {{12, 20}, {20, 31}}, {0}, 1},
    {"rank 6", GRAFT_OP_matmul, {6, 6}, {{2, 1, 2, 1, 3, 4}, {1, 2, 2, 2, 4, 5}}, {0}, 0},
    {"batch norm", GRAFT_OP_scale_shift, {4, 1, 1}, {{1, 37, 14, 14}, {37}, {37}}, {0}, 6},
    {"batch norm row", GRAFT_OP_scale_shift, {2, 1, 1}, {{5, 37}, {37}, {37}}, {0}, 0},
    {"batch norm blocks", GRAFT_OP_scale_shift, {4, 1, 1}, {{2, 32, 7, 5}, {32}, {32}}, {0}, 6},
    {"concat blocks", GRAFT_OP_concat, {4, 4}, {{2, 16, 7, 5}, {2, 32, 7, 5}}, {1}, 0},
    {"split blocks", GRAFT_OP_split, {4}, {{2, 48, 7, 5}}, {1, 16}, 0},
    {"slice blocks", GRAFT_OP_slice, {4}, {{2, 64, 7, 5}}, {1, 16, 48}, 0},
    {"add blocks", GRAFT_OP_add, {4, 4}, {{2, 32, 9, 9}, {2, 32, 9, 9}}, {0}, 0},
    {"relu blocks", GRAFT_OP_relu, {4}, {{2, 32, 9, 9}}, {0}, 0},
    {"add channels", GRAFT_OP_add, {4, 3}, {{1, 24, 9, 9}, {24, 1, 1}}, {0}, 2},
    {"add images", GRAFT_OP_add, {4, 4}, {{1, 24, 9, 9}, {1, 24, 9, 9}}, {0}, 0},
    {"const image", GRAFT_OP_sub, {4, 4}, {{1, 24, 9, 9}, {1, 24, 9, 9}}, {0}, 1},
    {"add a row", GRAFT_OP_add, {4, 1}, {{1, 24, 9, 16}, {16}}, {0}, 0},
    {"mask scores", GRAFT_OP_mul, {4, 4}, {{1, 8, 16, 16}, {1, 1, 1, 16}}, {0}, 0},
    {"scalar", GRAFT_OP_div, {4, 0}, {{1, 8, 16, 16}, {0}}, {0}, 2},
    {"max pool", GRAFT_OP_max_pool, {4}, {{1, 64, 28, 28}}, {3, 3, 2, 2, 1, 1, 1, 1, 1, 1}, 0},
    {"average pool", GRAFT_OP_avg_pool, {4}, {{1, 32, 14, 14}}, {3, 3, 1, 1, 1, 1, 1, 1, 0}, 0},
    {"average counted", GRAFT_OP_avg_pool, {4}, {{1, 32, 14, 14}}, {3, 3, 1, 1, 1, 1, 1, 1, 1}, 0},
    {"global pool", GRAFT_OP_global_avg_pool, {4}, {{2, 100, 7, 7}}, {0}, 0},
    {"softmax", GRAFT_OP_softmax, {2}, {{3, 1000}}, {1}, 0},
    {"softmax apart", GRAFT_OP_softmax, {4}, {{2, 16, 4, 210}}, {1}, 0},
    {"log softmax", GRAFT_OP_log_softmax, {3}, {{2, 21, 100}}, {2}, 0},
    {"log softmax apart", GRAFT_OP_log_softmax, {3}, {{2, 21, 100}}, {1}, 0},
    {"softmax channels", GRAFT_OP_softmax, {4}, {{1, 19, 8, 8}}, {1}, 0},
    {"mean", GRAFT_OP_reduce_mean, {3}, {{2, 64, 96}}, {4, 1}, 0},
    {"mean of pixels", GRAFT_OP_reduce_mean, {4}, {{2, 64, 7, 7}}, {12, 0}, 0},
    {"concat", GRAFT_OP_concat, {4, 4}, {{1, 64, 14, 14}, {1, 27, 14, 14}}, {1}, 0},
    {"concat const", GRAFT_OP_concat, {4, 4}, {{1, 16, 5, 5}, {1, 16, 5, 5}}, {2}, 2},
    {"transpose", GRAFT_OP_transpose, {4}, {{1, 24, 14, 14}}, {0, 2, 3, 1}, 0},
    {"transpose rank 6", GRAFT_OP_transpose, {6}, {{2, 3, 2, 4, 3, 2}}, {5, 3, 1, 0, 2, 4}, 0},
    {"erf", GRAFT_OP_erf, {2}, {{64, 100}}, {0}, 0},
    {"gelu", GRAFT_OP_gelu, {3}, {{2, 13, 100}}, {0}, 0},
    {"layer norm", GRAFT_OP_layer_norm, {3, 1, 1}, {{2, 13, 100}, {100}, {100}}, {0x3727c5ac}, 6},
    {"layer norm rank 1", GRAFT_OP_layer_norm, {1, 1, 1}, {{37}, {37}, {37}}, {0x3727c5ac}, 0},
    {"layer norm image", GRAFT_OP_layer_norm, {4, 1, 1}, {{2, 3, 5, 37}, {37}, {37}}, {0x3727c5ac}, 6},
    {"sum", GRAFT_OP_reduce_sum, {3}, {{2, 64, 96}}, {4, 1}, 0},
    {"sum of channels", GRAFT_OP_reduce_sum, {4}, {{2, 64, 7, 7}}, {2, 0}, 0},
    {"largest", GRAFT_OP_reduce_max, {3}, {{2, 64, 97}}, {4, 1}, 0},
    {"largest pixels", GRAFT_OP_reduce_max, {4}, {{2, 64, 7, 7}}, {12, 1}, 0},
    {"exp", GRAFT_OP_exp, {1}, {{1000}}, {0}, 0},
    {"smallest", GRAFT_OP_reduce_min, {3}, {{2, 64, 97}}, {4, 1}, 0},
    {"smallest pixels", GRAFT_OP_reduce_min, {4}, {{2, 64, 7, 7}}, {12, 1}, 0},
    {"rms norm", GRAFT_OP_rms_norm, {3, 1}, {{2, 13, 200}, {200}}, {0x3727c5ac}, 2},
    {"instance norm", GRAFT_OP_instance_norm, {4, 1, 1}, {{2, 48, 31, 17}, {48}, {48}}, {0x3727c5ac}, 6},
    {"instance ragged", GRAFT_OP_instance_norm, {4, 1, 1}, {{2, 37, 13, 11}, {37}, {37}}, {0x3727c5ac}, 6},
    {"instance long", GRAFT_OP_instance_norm, {3, 1, 1}, {{2, 5, 301}, {5}, {5}}, {0x3727c5ac}, 0},
    {"sums along rows", GRAFT_OP_cumsum, {3}, {{2, 5, 70}}, {2, 1}, 0},
    {"sums of pixels", GRAFT_OP_cumsum, {4}, {{2, 32, 9, 7}}, {2, 0}, 0},
    {"sums of channels", GRAFT_OP_cumsum, {4}, {{2, 32, 5, 7}}, {1, 1}, 0},
    {"resize rows", GRAFT_OP_repeat, {4}, {{2, 32, 9, 7}}, {2, 2}, 0},
    {"resize columns", GRAFT_OP_repeat, {4}, {{2, 32, 9, 7}}, {3, 2}, 0},
    {"repeat channels", GRAFT_OP_repeat, {4}, {{2, 32, 5, 7}}, {1, 3}, 0},
    {"repeat rank 6", GRAFT_OP_repeat, {6}, {{2, 3, 2, 4, 3, 2}}, {3, 3}, 0},
    {"turn columns", GRAFT_OP_reverse, {4}, {{2, 32, 9, 7}}, {3}, 0},
    {"turn rows", GRAFT_OP_reverse, {4}, {{2, 32, 9, 7}}, {2}, 0},
    {"turn channels", GRAFT_OP_reverse, {4}, {{2, 48, 5, 7}}, {1}, 0},
    {"pick columns", GRAFT_OP_pick, {4}, {{2, 32, 9, 8}}, {3, 1, 8, 2}, 0},
    {"pick rows", GRAFT_OP_pick, {4}, {{2, 32, 9, 8}}, {2, 1, 9, 3}, 0},
    {"pick channels", GRAFT_OP_pick, {4}, {{2, 48, 5, 7}}, {1, 3, 40, 4}, 0},
    {"upward", GRAFT_OP_conv_transpose, {4, 4}, {{1, 32, 9, 7}, {32, 16, 2, 2}}, {2, 2}, 2},
    {"upward, padded", GRAFT_OP_conv_transpose, {4, 4}, {{2, 32, 6, 7}, {32, 48, 4, 4}}, {2, 2, 1, 1, 1, 1}, 2},
    {"upward, extra", GRAFT_OP_conv_transpose, {4, 4}, {{1, 16, 8, 8}, {16, 16, 3, 3}}, {2, 2, 1, 1, 1, 1, 1, 1}, 2},
    {"upward, beyond", GRAFT_OP_conv_transpose, {4, 4}, {{1, 16, 5, 6}, {16, 3, 3, 2}}, {3, 2, 0, 1, 0, 0, 2, 1}, 2},
    {"upward, computed", GRAFT_OP_conv_transpose, {4, 4}, {{1, 17, 5, 6}, {17, 9, 3, 3}}, {1, 1, 1, 1, 1, 1}, 0},
};
/* clang-format on */

CHECK_CASE(test_larger_cases)
{
    graft_device *device = check_device_open(env);
    graft_device *shared = check_device_shared(env);
    graft_rng rng = check_rng(7);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        graft_shape in[GRAFT_MAX_INPUTS];
        int32_t attrs[GRAFT_MAX_ATTRS] = {0};
        memcpy(attrs, rows[i].attrs, sizeof(rows[i].attrs));
        for (uint32_t k = 0; k < graft_op(rows[i].op)->input_count; k++) {
            in[k] = shape_of(rows[i].dims[k], rows[i].ranks[k]);
        }
        for (uint32_t layout = 0; layout < GRAFT_LAYOUT_COUNT; layout++) {
            graft_signature s =
                check_signature(env, rows[i].op, attrs, in, rows[i].const_mask, layout);
            assert_true(check_kernels(env, device, &rng, &s) > 0);
            (void)check_kernels_shared(env, device, shared, &rng, &s);
        }
    }
}

/* A sum of many numbers is as accurate as one of few: one by one 9,000 tenths are 899.93. */
CHECK_CASE(test_long_sums)
{
    enum { CHANNELS = 24, PIXELS = 9000 };
    static const int32_t attrs[GRAFT_MAX_ATTRS] = {12, 1};
    const graft_shape image = SHAPE(1, CHANNELS, 100, 90);
    static float tenths[CHANNELS * PIXELS];
    graft_device *device = check_device_open(env);
    for (uint32_t i = 0; i < CHANNELS * PIXELS; i++) {
        tenths[i] = 0.1F;
    }
    for (uint32_t layout = GRAFT_LAYOUT_ROW; layout <= GRAFT_LAYOUT_NHWC; layout++) {
        graft_signature s = check_signature(env, GRAFT_OP_reduce_mean, attrs, &image, 0, layout);
        const float *in[GRAFT_MAX_INPUTS] = {tenths};
        float means[CHANNELS];
        float *out[GRAFT_MAX_OUTPUTS] = {means};
        graft_kernel *kernel = NULL;
        CHECK_OK(graft_kernel_open(env, device, &s, "plain", in, &kernel));
        CHECK_OK(graft_kernel_bind(env, kernel, in, out, NULL));
        CHECK_OK(graft_kernel_run(env, kernel));
        graft_kernel_close(kernel);
        for (uint32_t c = 0; c < CHANNELS; c++) {
            assert_true(fabsf(means[c] - 0.1F) < 4e-8F);
        }
    }
}

static uint32_t count_primitives(const graft_device *device)
{
    uint32_t count = 0;
    for (const program_primitive *p = device->primitives; p != NULL; p = p->next) {
        count++;
    }
    return count;
}

static graft_kernel *open_favourite(graft_env *env, graft_device *device, const graft_signature *s,
                                    const float *weights)
{
    const float *constants[GRAFT_MAX_INPUTS] = {NULL, weights};
    graft_kernel *kernel = NULL;
    CHECK_OK(graft_kernel_open(env, device, s, NULL, constants, &kernel));
    return kernel;
}

/* Kernels of one signature run the same code, each on its own weights, until the last is closed;
 * another signature has its own. */
CHECK_CASE(test_sharing)
{
    enum { CHANNELS = 32, SIDE = 6, COUNT = CHANNELS * SIDE * SIDE };
    static const int32_t image[4] = {1, CHANNELS, SIDE, SIDE};
    static const int32_t filter[4] = {CHANNELS, CHANNELS, 1, 1};
    static const int32_t attrs[GRAFT_MAX_ATTRS] = {1, 1, 0, 0, 0, 0, 1, 1, 1, 0};
    static float weights[2][CHANNELS * CHANNELS];
    static float in[COUNT];
    static float out[2][COUNT];
    static _Alignas(64) char workspace[1 << 16];
    graft_device *device = check_device_open(env);
    const graft_shape shapes[2] = {shape_of(image, 4), shape_of(filter, 4)};
    graft_signature s = check_signature(env, GRAFT_OP_conv, attrs, shapes, 2, GRAFT_LAYOUT_NHWC);
    graft_kernel *kernels[3];
    for (size_t i = 0; i < COUNT; i++) {
        in[i] = 1.0F;
    }
    for (size_t i = 0; i < CHANNELS * CHANNELS; i++) {
        weights[0][i] = 1.0F;
        weights[1][i] = 2.0F;
    }
    kernels[0] = open_favourite(env, device, &s, weights[0]);
    uint32_t alone = count_primitives(device);
    kernels[1] = open_favourite(env, device, &s, weights[1]);
    assert_true(alone > 0);
    assert_int_equal(count_primitives(device), alone);
    s.inputs[0].dims[2] = SIDE - 1;
    kernels[2] = open_favourite(env, device, &s, weights[0]);
    assert_true(count_primitives(device) > alone);
    for (uint32_t k = 0; k < 2; k++) {
        const float *const inputs[GRAFT_MAX_INPUTS] = {in, weights[k]};
        float *const outputs[GRAFT_MAX_OUTPUTS] = {out[k]};
        assert_true(graft_kernel_facts_of(kernels[k])->workspace_bytes <= sizeof(workspace));
        CHECK_OK(graft_kernel_bind(env, kernels[k], inputs, outputs, workspace));
        CHECK_OK(graft_kernel_run(env, kernels[k]));
        graft_kernel_close(kernels[k]);
        for (uint32_t i = 0; i < COUNT; i++) {
            assert_true(out[k][i] == (float)(CHANNELS * (k + 1)));
        }
    }
    graft_kernel_close(kernels[2]);
    assert_int_equal(count_primitives(device), 0);
}

static bool is_listed(graft_env *env, graft_device *device, const graft_signature *s,
                      const char *name)
{
    graft_kernel_name names[GRAFT_KERNEL_MOST];
    uint32_t count = 0;
    bool listed = false;
    CHECK_OK(graft_kernel_list(env, device, s, names, &count));
    for (uint32_t k = 0; k < count; k++) {
        listed = listed || strcmp(names[k].text, name) == 0;
    }
    return listed;
}

/* Where the library would multiply matrices, which only processors without AVX-512 are known for,
 * windows that reach far over an edge have two implementations of ours, and groups of channels that
 * are no whole vectors one. */
CHECK_CASE(test_without_loops)
{
    static const int32_t far[GRAFT_MAX_ATTRS] = {1, 1, 0, 16, 0, 16, 1, 16, 1};
    static const int32_t grouped[GRAFT_MAX_ATTRS] = {1, 1, 0, 0, 0, 0, 1, 1, 4};
    const graft_shape image = shape_of((const int32_t[]){1, 16, 9, 30}, 4);
    const graft_shape wide = shape_of((const int32_t[]){1, 136, 9, 30}, 4);
    const graft_shape in[2] = {image, shape_of((const int32_t[]){32, 16, 1, 3}, 4)};
    const graft_shape odd[2] = {wide, shape_of((const int32_t[]){136, 34, 1, 1}, 4)};
    graft_device *device = check_device_open(env);
    graft_signature s = check_signature(env, GRAFT_OP_conv, far, in, 2, GRAFT_LAYOUT_NHWC);
    if (strstr(graft_device_name(device), "avx2") != NULL) {
        assert_true(is_listed(env, device, &s, "taps:plain"));
        assert_true(is_listed(env, device, &s, "padded:jit:avx2"));
        s = check_signature(env, GRAFT_OP_conv, grouped, odd, 2, GRAFT_LAYOUT_NHWC);
        assert_true(is_listed(env, device, &s, "taps:plain"));
    }
}

/* Our own product is among the implementations where it is meant to be. */
CHECK_CASE(test_panels)
{
    static const struct {
        const char *name;
        int32_t rows;
        int32_t columns;
        uint32_t const_mask;
        bool listed;
    } products[] = {
        {"cell",            1,  256, 2, true },
        {"sixteen rows",    16, 256, 2, true },
        {"seventeen rows",  17, 256, 2, true },
        {"few columns",     1,  63,  2, false},
        {"computed matrix", 1,  256, 0, false},
    };
    graft_device *device = check_device_open(env);
    for (size_t i = 0; i < sizeof(products) / sizeof(products[0]); i++) {
        const int32_t dims[2][2] = {
            {products[i].rows, 32                 },
            {32,               products[i].columns}
        };
        const int32_t attrs[GRAFT_MAX_ATTRS] = {0};
        const graft_shape in[2] = {shape_of(dims[0], 2), shape_of(dims[1], 2)};
        graft_signature s =
            check_signature(env, GRAFT_OP_matmul, attrs, in, products[i].const_mask, 0);
        print_message("%s\n", products[i].name);
        assert_int_equal(is_listed(env, device, &s, "panels:plain"), products[i].listed);
    }
}

/* Convolutions by it: strides, images, residuals, channels that do not fill a panel. */
CHECK_CASE(test_panels_of_pixels)
{
    /* clang-format off */
    static const struct {
        const char *name;
        uint32_t op;
        int32_t image[4];
        int32_t filters;
        int32_t attrs[10];
        bool listed;
    } images[] = {
        {"a 7x7 image", GRAFT_OP_conv, {1, 40, 7, 7}, 128, {1, 1, 0, 0, 0, 0, 1, 1, 1}, true},
        {"a residual", GRAFT_OP_conv_bias_add, {1, 40, 7, 7}, 72, {1, 1, 0, 0, 0, 0, 1, 1, 1, GRAFT_ACT_RELU}, true},
        {"strides", GRAFT_OP_conv_bias, {2, 40, 9, 7}, 70, {2, 3, 0, 0, 0, 0, 1, 1, 1, GRAFT_ACT_SIGMOID}, true},
        {"a pixel", GRAFT_OP_conv_bias, {1, 40, 1, 1}, 64, {1, 1, 0, 0, 0, 0, 1, 1, 1, GRAFT_ACT_RELU6}, true},
        {"64 pixels", GRAFT_OP_conv, {1, 40, 8, 8}, 64, {1, 1, 0, 0, 0, 0, 1, 1, 1}, true},
        {"65 pixels", GRAFT_OP_conv, {1, 40, 13, 5}, 64, {1, 1, 0, 0, 0, 0, 1, 1, 1}, false},
        {"padding", GRAFT_OP_conv, {1, 40, 5, 5}, 64, {1, 1, 1, 1, 1, 1, 1, 1, 1}, false},
        {"few filters", GRAFT_OP_conv, {1, 40, 5, 5}, 63, {1, 1, 0, 0, 0, 0, 1, 1, 1}, false},
        {"groups", GRAFT_OP_conv, {1, 40, 5, 5}, 80, {1, 1, 0, 0, 0, 0, 1, 1, 2}, false},
    };
    /* clang-format on */
    graft_device *device = check_device_open(env);
    graft_rng rng = check_rng(12);
    for (size_t i = 0; i < sizeof(images) / sizeof(images[0]); i++) {
        int32_t groups = images[i].attrs[GRAFT_ATTR_conv_groups];
        const int32_t filter[4] = {images[i].filters, images[i].image[1] / groups, 1, 1};
        int32_t attrs[GRAFT_MAX_ATTRS] = {0};
        graft_shape in[4] = {shape_of(images[i].image, 4), shape_of(filter, 4),
                             shape_of(&images[i].filters, 1)};
        graft_kernel_name names[GRAFT_KERNEL_MOST];
        uint32_t count = 0;
        bool listed = false;
        memcpy(attrs, images[i].attrs, 9 * sizeof(int32_t));
        CHECK_OK(graft_infer_shapes(GRAFT_OP_conv, attrs, in, &in[3]));
        attrs[GRAFT_ATTR_conv_bias_activation] = images[i].attrs[GRAFT_ATTR_conv_bias_activation];
        graft_signature s = check_signature(env, images[i].op, attrs, in, 6, GRAFT_LAYOUT_NHWC);
        print_message("%s\n", images[i].name);
        CHECK_OK(graft_kernel_list(env, device, &s, names, &count));
        for (uint32_t k = 0; k < count; k++) {
            listed = listed || strcmp(names[k].text, "panels:plain") == 0;
        }
        assert_int_equal(listed, images[i].listed);
        assert_true(check_kernels(env, device, &rng, &s) > 0);
        s.in_place = images[i].op == GRAFT_OP_conv_bias_add;
        assert_true(check_kernels(env, device, &rng, &s) > 0);
    }
}

CHECK_CASE(test_reorders)
{
    graft_device *device = check_device_open(env);
    graft_rng rng = check_rng(8);
    static const int32_t shapes[][4] = {
        {1, 3,  224, 224},
        {2, 64, 7,   7  },
        {1, 17, 5,   3  },
        {1, 1,  4,   4  },
        {3, 5,  1,   1  },
        {2, 16, 5,   7  },
        {1, 96, 3,   3  }
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        graft_shape shape = shape_of(shapes[i], 4);
        for (uint32_t way = 0; way < GRAFT_LAYOUT_COUNT * GRAFT_LAYOUT_COUNT; way++) {
            graft_signature s;
            uint32_t from = way % GRAFT_LAYOUT_COUNT;
            uint32_t to = way / GRAFT_LAYOUT_COUNT;
            if (!graft_layout_fits(&shape, from) || !graft_layout_fits(&shape, to)) {
                continue;
            }
            graft_signature_of_reorder(&shape, from, to, &s);
            bool blocked =
                s.in_layouts[0] == GRAFT_LAYOUT_BLOCKED || s.out_layouts[0] == GRAFT_LAYOUT_BLOCKED;
            assert_int_equal(check_kernels(env, device, &rng, &s), blocked ? 1 : 2);
        }
    }
}

/* Threads share what is worth meeting for. */
CHECK_CASE(test_threads)
{
    static const struct {
        int32_t channels;
        int want;
    } sizes[] = {
        {8,   1},
        {512, 3}
    };
    graft_device *device = check_device_named(env, "cpu", 3);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        const int32_t dims[4] = {1, sizes[i].channels, 28, 28};
        graft_shape shape = shape_of(dims, 4);
        graft_kernel_name names[GRAFT_KERNEL_MOST];
        uint32_t count = 0;
        graft_signature s = check_signature(env, GRAFT_OP_relu, NULL, &shape, 0, GRAFT_LAYOUT_NHWC);
        CHECK_OK(graft_kernel_list(env, device, &s, names, &count));
        assert_int_equal(omp_get_max_threads(), sizes[i].want);
    }
}

/* Softmax of columns as of rows, masked: all numbers of a first but one, all, one that is infinite,
 * one that is none, and numbers far below the largest. */
CHECK_CASE(test_masked_softmax)
{
    enum { ROWS = 5, SIZE = 37 };
    graft_device *device = check_device_open(env);
    for (uint32_t axis = 0; axis < 2; axis++) {
        const graft_shape shape = axis == 0 ? SHAPE(SIZE, ROWS) : SHAPE(ROWS, SIZE);
        const int32_t attrs[GRAFT_MAX_ATTRS] = {(int32_t)axis};
        const size_t first = axis == 0 ? 1 : SIZE;
        const size_t step = axis == 0 ? ROWS : 1;
        float x[ROWS * SIZE];
        float y[ROWS * SIZE];
        graft_kernel *kernel = NULL;
        graft_signature s = check_signature(env, GRAFT_OP_softmax, attrs, &shape, 0, 0);
        for (size_t i = 0; i < SIZE; i++) {
            x[i * step] = i == 36 ? 3.0F : -INFINITY;
            x[first + i * step] = -INFINITY;
            x[2 * first + i * step] = i == 5 ? INFINITY : 1.0F;
            x[3 * first + i * step] = i == 20 ? NAN : 1.0F;
            x[4 * first + i * step] = -8.0F * (float)i;
        }
        CHECK_OK(graft_kernel_open(env, device, &s, "plain", NULL, &kernel));
        CHECK_OK(graft_kernel_bind(env, kernel, (const float *[1]){x}, (float *[1]){y}, NULL));
        CHECK_OK(graft_kernel_run(env, kernel));
        graft_kernel_close(kernel);
        for (size_t i = 0; i < SIZE; i++) {
            const double want = exp(-8.0 * (double)i) * (1.0 - exp(-8.0));
            assert_true(y[i * step] == (i == 36 ? 1.0F : 0.0F));
            assert_true(isnan(y[first + i * step]) && isnan(y[3 * first + i * step]));
            assert_true(isnan(y[2 * first + i * step]));
            assert_true(fabs((double)y[4 * first + i * step] - want) <= 1e-5 * want + 1e-37);
        }
    }
}

/* Our swish, wherever it is not next to nothing: the exponent's last bit counts as often as it is
 * large. */
CHECK_CASE(test_swish)
{
    enum { COUNT = 4003 };
    static const float alphas[] = {1.0F, 1.702F, 0.01F};
    graft_device *device = check_device_open(env);
    float *x = GRAFT_NEW(env->life, float, COUNT);
    float *y = GRAFT_NEW(env->life, float, COUNT);
    for (size_t a = 0; a < sizeof(alphas) / sizeof(alphas[0]); a++) {
        const graft_shape shape = {.rank = 1, .dtype = GRAFT_DTYPE_F32, .dims = {COUNT}};
        int32_t attrs[GRAFT_MAX_ATTRS] = {0};
        graft_kernel *kernel = NULL;
        memcpy(attrs, &alphas[a], sizeof(alphas[a]));
        graft_signature s = check_signature(env, GRAFT_OP_swish, attrs, &shape, 0, 0);
        for (uint32_t i = 0; i < COUNT; i++) {
            x[i] = (float)i / 20.0F - 100.0F;
        }
        x[0] = -INFINITY;
        x[1] = INFINITY;
        x[2] = -3e38F;
        x[3] = 3e38F;
        x[4] = NAN;
        CHECK_OK(graft_kernel_open(env, device, &s, "plain:exp2", NULL, &kernel));
        CHECK_OK(graft_kernel_bind(env, kernel, (const float *[1]){x}, (float *[1]){y}, NULL));
        CHECK_OK(graft_kernel_run(env, kernel));
        graft_kernel_close(kernel);
        assert_true(fabsf(y[0]) < 1e-30F && y[1] == INFINITY && fabsf(y[2]) < 1e-30F);
        assert_true(y[3] == 3e38F && isnan(y[4]));
        for (uint32_t i = 5; i < COUNT; i++) {
            const double want = (double)x[i] / (1.0 + exp(-(double)alphas[a] * (double)x[i]));
            const double apart = 3e-7 + 1e-7 * fabs((double)alphas[a] * (double)x[i]);
            if (!(fabs((double)y[i] - want) <= apart * fabs(want) + 1e-30)) {
                fail_msg("%g of %g is %g, should be %g", (double)alphas[a], (double)x[i],
                         (double)y[i], want);
            }
        }
    }
}

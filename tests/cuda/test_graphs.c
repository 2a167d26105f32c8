/* Every operation graph that is built for cuDNN is one that cuDNN takes: built and finalised for
 * all types and both layouts, without a GPU. Where cuDNN can plan without a driver (precompiled
 * engines: convolutions), plans are made for a GPU that is described in tests/cuda/h200.json. */
#include "tests/support/check.h"
#include "tests/support/kernels.h"

#ifdef GRAFT_WITH_CUDA

#include "cost/cuda/device_cuda.h"

#include <stdlib.h>
#include <string.h>

static const char *const types[CUDA_TYPE_COUNT] = {"fp32", "tf32", "fp16", "bf16"};

typedef struct {
    const char *name;
    uint32_t op;
    uint32_t ranks[3];
    int32_t dims[3][4];
    int32_t attrs[10];
    bool precompiled; /* cuDNN plans it without a driver. */
} row;

/* clang-format off */
static const row rows[] = {
    {"pointwise", GRAFT_OP_conv, {4, 4}, {{1, 64, 14, 14}, {32, 64, 1, 1}}, {1, 1, 0, 0, 0, 0, 1, 1, 1}, true},
    {"3x3", GRAFT_OP_conv, {4, 4}, {{1, 64, 28, 28}, {64, 64, 3, 3}}, {1, 1, 1, 1, 1, 1, 1, 1, 1}, true},
    {"stem", GRAFT_OP_conv_bias, {4, 4, 1}, {{1, 3, 64, 64}, {64, 3, 7, 7}, {64}}, {2, 2, 3, 3, 3, 3, 1, 1, 1, 1},
     true},
    {"uneven padding", GRAFT_OP_conv, {4, 4}, {{1, 16, 13, 11}, {16, 16, 3, 3}}, {2, 1, 0, 2, 1, 0, 1, 1, 1}, false},
    {"groups", GRAFT_OP_conv, {4, 4}, {{1, 32, 14, 14}, {64, 8, 3, 3}}, {1, 1, 1, 1, 1, 1, 1, 1, 4}, true},
    {"depthwise", GRAFT_OP_conv_bias, {4, 4, 1}, {{1, 32, 14, 14}, {32, 1, 3, 3}, {32}},
     {1, 1, 1, 1, 1, 1, 1, 1, 32, 1}, false},
    {"bias, relu", GRAFT_OP_conv_bias, {4, 4, 1}, {{1, 64, 28, 28}, {64, 64, 3, 3}, {64}},
     {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, true},
    {"bias, relu6", GRAFT_OP_conv_bias, {4, 4, 1}, {{1, 64, 28, 28}, {64, 64, 3, 3}, {64}},
     {1, 1, 1, 1, 1, 1, 1, 1, 1, 2}, true},
    {"bias, sigmoid", GRAFT_OP_conv_bias, {4, 4, 1}, {{1, 64, 28, 28}, {64, 64, 3, 3}, {64}},
     {1, 1, 1, 1, 1, 1, 1, 1, 1, 3}, true},
    {"bias, tanh", GRAFT_OP_conv_bias, {4, 4, 1}, {{1, 64, 28, 28}, {64, 64, 3, 3}, {64}},
     {1, 1, 1, 1, 1, 1, 1, 1, 1, 4}, true},
    {"matmul", GRAFT_OP_matmul, {3, 2}, {{1, 128, 768}, {768, 768}}, {0}, false},
    {"attention", GRAFT_OP_matmul, {4, 4}, {{1, 12, 128, 64}, {1, 12, 64, 128}}, {0}, false},
    {"linear", GRAFT_OP_matmul_bias, {2, 2, 1}, {{4, 256}, {256, 104}, {104}}, {1}, false},
    {"max pool", GRAFT_OP_max_pool, {4}, {{1, 64, 28, 28}}, {3, 3, 2, 2, 1, 1, 1, 1, 1, 1}, false},
    {"mean pool", GRAFT_OP_avg_pool, {4}, {{1, 64, 28, 28}}, {3, 3, 1, 1, 1, 1, 1, 1, 0}, false},
    {"counted pool", GRAFT_OP_avg_pool, {4}, {{1, 64, 28, 28}}, {3, 3, 1, 1, 1, 1, 1, 1, 1}, false},
    {"layer norm", GRAFT_OP_layer_norm, {3, 1, 1}, {{1, 128, 768}, {768}, {768}}, {0x3727c5ac}, false},
};
/* clang-format on */

static graft_device *open_described(graft_env *env, uint32_t type)
{
    graft_device *device = NULL;
    char name[128];
    (void)snprintf(name, sizeof(name), "cuda:%s,described=tests/cuda/h200.json", types[type]);
    CHECK_OK(cuda_device_open(env, name, 1, &device));
    return device;
}

static graft_signature make_signature(graft_env *env, const row *r, uint32_t layout, bool residual)
{
    graft_shape in[GRAFT_MAX_INPUTS] = {{.rank = 0}};
    int32_t attrs[GRAFT_MAX_ATTRS] = {0};
    uint32_t op = residual ? (uint32_t)GRAFT_OP_conv_bias_add : r->op;
    memcpy(attrs, r->attrs, sizeof(r->attrs));
    for (uint32_t k = 0; k < 3 && k < graft_op(r->op)->input_count; k++) {
        in[k] = (graft_shape){.rank = (uint8_t)r->ranks[k], .dtype = GRAFT_DTYPE_F32};
        memcpy(in[k].dims, r->dims[k], r->ranks[k] * sizeof(int32_t));
    }
    if (residual) {
        CHECK_OK(graft_infer_shapes(r->op, attrs, in, &in[3]));
    }
    graft_signature s = check_signature(env, op, attrs, in, 6, layout);
    if (layout == GRAFT_LAYOUT_ROW && s.in_layouts[0] == GRAFT_LAYOUT_NHWC) {
        memset(s.in_layouts, 0, sizeof(s.in_layouts)); /* Convolutions and pools channels first. */
        memset(s.out_layouts, 0, sizeof(s.out_layouts));
    }
    return s;
}

/* Lowers by every family of cuDNN's; each that is for this operator must give a graph. */
static uint32_t count_graphs(graft_env *env, graft_device *device, const graft_signature *s)
{
    uint32_t graphs = 0;
    for (uint32_t i = 0; i < cuda_family_count(); i++) {
        graft_kernel *kernel = calloc(1, sizeof(*kernel));
        assert_non_null(kernel);
        kernel->device = device;
        kernel->target = &device->target;
        kernel->signature = *s;
        kernel->dry = true;
        CHECK_OK(graft_signature_outputs(s, kernel->outputs));
        graft_status status = cuda_family_at(i)->lower(env, kernel);
        if (status != GRAFT_OK && (status != GRAFT_UNSUPPORTED || kernel->has_graph)) {
            fail_msg("family %s: the graph is refused: %s", cuda_family_at(i)->name, env->message);
        }
        graphs += status == GRAFT_OK && kernel->has_graph;
        cuda_kernel_close(kernel);
    }
    return graphs;
}

static uint32_t count_plans(graft_env *env, graft_device *device, const graft_signature *s)
{
    const float *constants[GRAFT_MAX_INPUTS] = {NULL};
    graft_kernel_name names[GRAFT_KERNEL_MOST];
    uint32_t count = 0;
    uint32_t plans = 0;
    CHECK_OK(cuda_kernel_list(env, device, s, names, &count));
    for (uint32_t i = 0; i < count; i++) {
        graft_kernel *kernel = NULL;
        graft_status status = cuda_kernel_open(env, device, s, names[i].text, constants, &kernel);
        graft_env_clear(env);
        if (status == GRAFT_OK) {
            assert_string_equal(kernel->facts.name, names[i].text);
            plans += kernel->plan != NULL;
            cuda_kernel_close(kernel);
        }
    }
    return plans;
}

/* How many configurations of an engine are listed for a row of the table. */
static uint32_t count_engine(graft_env *env, graft_device *device, const char *name,
                             const char *engine)
{
    uint32_t listed = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        graft_kernel_name names[GRAFT_KERNEL_MOST];
        uint32_t count = 0;
        if (strcmp(rows[i].name, name) == 0) {
            graft_signature s = make_signature(env, &rows[i], GRAFT_LAYOUT_NHWC, false);
            CHECK_OK(cuda_kernel_list(env, device, &s, names, &count));
        }
        for (uint32_t n = 0; n < count; n++) {
            listed += strstr(names[n].text, engine) != NULL;
        }
    }
    return listed;
}

/* As was seen on an H200: engine 0 fuses a tanh that is not a number for large sums, and is asked
 * for a sigmoid, not for that; engine 1 may never end where a convolution has groups. */
CHECK_CASE(test_seen_faults)
{
    graft_device *device = open_described(env, CUDA_F16);
    assert_true(count_engine(env, device, "bias, sigmoid", "cudnn:e0:") > 0);
    assert_int_equal(count_engine(env, device, "bias, tanh", "cudnn:e0:"), 0);
    assert_true(count_engine(env, device, "3x3", ":e1:") > 0);
    assert_int_equal(count_engine(env, device, "groups", ":e1:"), 0);
    assert_int_equal(count_engine(env, device, "depthwise", ":e1:"), 0);
    cuda_device_close(device);
}

static void check_graphs(graft_env *env, graft_device *device, uint32_t type)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (uint32_t way = 0; way < (rows[i].op == GRAFT_OP_conv_bias ? 4U : 2U); way++) {
            graft_signature s = make_signature(env, &rows[i], way % 2, way / 2 == 1);
            if (count_graphs(env, device, &s) == 0) {
                fail_msg("%s, %s: no operation graph", rows[i].name, types[type]);
            }
        }
    }
}

CHECK_CASE(test_graphs)
{
    for (uint32_t type = 0; type < CUDA_TYPE_COUNT; type++) {
        graft_device *device = open_described(env, type);
        check_graphs(env, device, type);
        cuda_device_close(device);
    }
}

/* In binary32 these are planned as convolutions, too. */
static bool is_product(uint32_t op) { return op == GRAFT_OP_matmul || op == GRAFT_OP_matmul_bias; }

CHECK_CASE(test_plans)
{
    for (uint32_t type = 0; type < CUDA_TYPE_COUNT; type++) {
        graft_device *device = open_described(env, type);
        assert_false(cuda_device_present(device));
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            graft_signature s = make_signature(env, &rows[i], GRAFT_LAYOUT_NHWC, false);
            bool product = type == CUDA_F32 && is_product(rows[i].op);
            if ((rows[i].precompiled || product) && count_plans(env, device, &s) == 0) {
                fail_msg("%s, %s: no plan", rows[i].name, types[type]);
            }
        }
        cuda_device_close(device);
    }
}

/* A kernel of a GPU that is not here cannot be bound, a name that is not offered not opened. */
CHECK_CASE(test_refusals)
{
    const float *constants[GRAFT_MAX_INPUTS] = {NULL};
    float *outputs[GRAFT_MAX_OUTPUTS] = {NULL};
    graft_kernel *kernel = NULL;
    graft_device *device = open_described(env, CUDA_F16);
    graft_signature s = make_signature(env, &rows[0], GRAFT_LAYOUT_NHWC, false);
    check_failed(env, cuda_kernel_open(env, device, &s, "cudnn:e999:00000000", constants, &kernel),
                 GRAFT_UNSUPPORTED, "has no cudnn:e999:00000000 of conv(");
    CHECK_OK(cuda_kernel_open(env, device, &s, NULL, constants, &kernel));
    check_failed(env, cuda_kernel_bind(env, kernel, constants, outputs, NULL), GRAFT_UNSUPPORTED,
                 "has no memory");
    cuda_kernel_close(kernel);
    void *memory = NULL;
    check_failed(env, cuda_device_allocate(env, device, 16, &memory), GRAFT_UNSUPPORTED,
                 "is not here");
    cuda_device_close(device);
}

/* cuDNN's and CUDA's own words reach the message; what is not supported is no failure. */
CHECK_CASE(test_words)
{
    check_failed(env, cuda_status(env, cudaErrorMemoryAllocation, "allocating x"), GRAFT_NO_MEMORY,
                 "CUDA: allocating x: out of memory");
    check_failed(env, cuda_status(env, cudaErrorIllegalAddress, "running y"), GRAFT_INTERNAL,
                 "illegal memory access");
    check_failed(env, cudnn_status(env, CUDNN_STATUS_EXECUTION_FAILED, "running z"), GRAFT_INTERNAL,
                 "cuDNN: running z: CUDNN_STATUS_EXECUTION_FAILED");
    check_failed(
        env, cudnn_status(env, CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, "planning"),
        GRAFT_NO_MEMORY, "planning");
    assert_int_equal(cudnn_status(env, CUDNN_STATUS_NOT_SUPPORTED_SHAPE, "planning"),
                     GRAFT_UNSUPPORTED);
    assert_string_equal(env->message, "");
}

#else

CHECK_CASE(test_graphs) { CHECK_SKIP("built without cuDNN: see the line that make ends with"); }

#endif

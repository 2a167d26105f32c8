/* Which engines cuDNN offers for what we lower to it, on a stand-in for the driver (driver.c) and
 * for a GPU that is only described: the runtime-compiled engines check support and compile, so that
 * a lowering which no engine takes is seen without a GPU. Not seen: cuBLASLt's engines, captures,
 * results, speed.
 *
 * Here a sample of signatures; long_engines.c takes all that the zoo's models are made of. */
#include "tests/support/check.h"

#ifdef GRAFT_WITH_CUDA

#include "cost/cuda/device_cuda.h"
#include "cost/plan/layout.h"
#include "models/zoo.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const types[CUDA_TYPE_COUNT] = {"fp32", "tf32", "fp16", "bf16"};

static graft_device *open_described(graft_env *env, uint32_t type)
{
    graft_device *device = NULL;
    char name[128];
    (void)snprintf(name, sizeof(name), "cuda:%s,described=tests/cuda/h200.json", types[type]);
    CHECK_OK(cuda_device_open(env, name, 1, &device));
    return device;
}

/* Plans of cuDNN, of the first `most` engines that it offers. */
static uint32_t count_plans(graft_env *env, graft_device *device, const graft_signature *s,
                            uint32_t most)
{
    static const float *const constants[GRAFT_MAX_INPUTS];
    graft_kernel_name names[GRAFT_KERNEL_MOST];
    uint32_t count = 0;
    uint32_t plans = 0;
    CHECK_OK(cuda_kernel_list(env, device, s, names, &count));
    for (uint32_t i = 0; i < count && plans < most; i++) {
        graft_kernel *kernel = NULL;
        if (cuda_kernel_open(env, device, s, names[i].text, constants, &kernel) == GRAFT_OK) {
            plans += kernel->plan != NULL;
            cuda_kernel_close(kernel);
        }
        graft_env_clear(env);
    }
    return plans;
}

#ifndef ENGINES_WHOLE

#define CONV "stride_h=1, stride_w=1, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, "

static const char clipped[] =
    "conv_bias(" CONV "dilation_h=1, dilation_w=1, groups=1, activation=2) f32[1,64,28,28]@nhwc "
    "f32[64,64,3,3]@const f32[64]@const -> nhwc";
static const char attention[] = "matmul() f32[1,12,128,64]@row f32[1,12,64,128]@row -> row";
/* Planned in fp16: batches that are folded, copied, and repeated by cuDNN; one of each kind. */
static const char *const sample[] = {
    attention,
    "matmul() f32[2,1,16,8]@row f32[3,8,24]@row -> row",
    "matmul() f32[16,8]@row f32[3,8,24]@row -> row",
    "matmul_bias(activation=0) f32[1,2048]@row f32[2048,1000]@const f32[1000]@const -> row",
    "max_pool(kernel_h=3, kernel_w=3, stride_h=2, stride_w=2, pad_top=1, pad_left=1, "
    "pad_bottom=1, pad_right=1, dilation_h=1, dilation_w=1) f32[1,64,28,28]@nhwc -> nhwc",
    "layer_norm(epsilon=0x3727c5ac) f32[1,128,768]@row f32[768]@const f32[768]@const -> row",
    "attention(scale=0x3e000000, turned=7) f32[1,197,12,64]@row f32[1,197,12,64]@row "
    "f32[1,197,12,64]@row -> row",
    "masked_attention(scale=0x3e000000, turned=0) f32[2,12,128,64]@row f32[2,12,64,128]@row "
    "f32[2,12,128,64]@row f32[2,1,1,128]@row -> row",
    "masked_attention(scale=0x3f800000, turned=2) f32[1,12,128,64]@row f32[1,128,12,64]@row "
    "f32[1,12,128,64]@row f32[128,128]@row -> row",
};

enum { SAMPLE_COUNT = sizeof(sample) / sizeof(sample[0]), AHEAD = 2 };

static graft_signature read_signature(graft_env *env, const char *text)
{
    graft_signature s;
    if (graft_signature_parse(env, text, &s) != GRAFT_OK) {
        fail_msg("%s: %s", text, env->message);
    }
    return s;
}

/* Each has plans of cuDNN's; several threads make them, and nothing is planned twice, whichever
 * kernel asks. */
static void test_plans(void **state)
{
    graft_env *env = *state;
    graft_device *device = open_described(env, CUDA_F16);
    graft_signature all[SAMPLE_COUNT];
    for (uint32_t i = 0; i < SAMPLE_COUNT; i++) {
        all[i] = read_signature(env, sample[i]);
    }
    assert_int_equal(cuda_plan_ahead(env, device, all, AHEAD), AHEAD);
    uint64_t asked = device->cache.asked_count;
    uint64_t planned = device->cache.planned_count;
    assert_true(asked >= AHEAD && planned >= AHEAD);
    for (uint32_t i = 0; i < AHEAD; i++) {
        assert_true(count_plans(env, device, &all[i], GRAFT_KERNEL_MOST) > 0);
    }
    assert_int_equal(device->cache.asked_count, asked);
    assert_int_equal(device->cache.planned_count, planned);
    for (uint32_t i = AHEAD; i < SAMPLE_COUNT; i++) {
        if (count_plans(env, device, &all[i], 1) == 0) {
            fail_msg("no plan for %s", sample[i]);
        }
    }
    cuda_device_close(device);
}

/* Where few engines fuse a clip, more of those that do not may take part. */
static void test_split(void **state)
{
    graft_env *env = *state;
    graft_kernel_name names[GRAFT_KERNEL_MOST];
    uint32_t count = 0;
    uint32_t split = 0;
    graft_device *device = open_described(env, CUDA_F32);
    const graft_signature s = read_signature(env, clipped);
    CHECK_OK(cuda_kernel_list(env, device, &s, names, &count));
    for (uint32_t i = 0; i < count; i++) {
        split += strncmp(names[i].text, "split:", 6) == 0;
    }
    assert_true(split >= 4);
    cuda_device_close(device);
}

/* What bandwidth bounds is our own kernels', which take no time to compile. */
static void test_own(void **state)
{
    static const char *const own[] = {
        "add() f32[1,64,14,14]@nhwc f32[1,64,14,14]@nhwc -> nhwc",
        "scale_shift() f32[1,37,14,14]@nhwc f32[37]@const f32[37]@const -> nhwc",
        "reduce_mean(axes=4, keep=1) f32[1,128,768]@row -> row",
    };
    graft_env *env = *state;
    graft_device *device = open_described(env, CUDA_F16);
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        graft_kernel_name names[GRAFT_KERNEL_MOST];
        uint32_t count = 0;
        const graft_signature s = read_signature(env, own[i]);
        CHECK_OK(cuda_kernel_list(env, device, &s, names, &count));
        assert_int_equal(count, 1);
        assert_string_equal(names[0].text, "graft");
    }
    cuda_device_close(device);
}

/* Engines that were seen to be wrong, or hardly to end, are not offered where they were. */
static void test_seen(void **state)
{
    static const struct {
        cuda_type type;
        const char *engine;
        const char *signature;
        bool offered;
    } rows[] = {
        {CUDA_BF16, "cudnn:e3:",
         "max_pool(kernel_h=3, kernel_w=3, stride_h=2, stride_w=2, pad_top=1, pad_left=1, "
         "pad_bottom=1, pad_right=1, dilation_h=1, dilation_w=1) f32[1,64,28,28]@nhwc -> nhwc", false},
        {CUDA_F16,  "cudnn:e3:",
         "max_pool(kernel_h=3, kernel_w=3, stride_h=2, stride_w=2, pad_top=1, pad_left=1, "
         "pad_bottom=1, pad_right=1, dilation_h=1, dilation_w=1) f32[1,64,28,28]@nhwc -> nhwc", true },
        {CUDA_F16,  "cudnn:e28:",
         "conv(stride_h=1, stride_w=1, pad_top=0, pad_left=0, pad_bottom=0, pad_right=0, "
         "dilation_h=1, dilation_w=1, groups=2) f32[1,528,14,14]@nhwc f32[88,264,1,1]@const -> "
         "nhwc",                                                                                false},
    };
    graft_env *env = *state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        graft_kernel_name names[GRAFT_KERNEL_MOST];
        uint32_t count = 0;
        bool offered = false;
        graft_device *device = open_described(env, rows[i].type);
        const graft_signature s = read_signature(env, rows[i].signature);
        CHECK_OK(cuda_kernel_list(env, device, &s, names, &count));
        for (uint32_t k = 0; k < count; k++) {
            offered =
                offered || strncmp(names[k].text, rows[i].engine, strlen(rows[i].engine)) == 0;
        }
        if (offered != rows[i].offered) {
            fail_msg("%s of %s", rows[i].engine, rows[i].signature);
        }
        cuda_device_close(device);
    }
}

/* What is left out or refused is said, with the family, the engine, the note and the signature. */
static void test_log(void **state)
{
    graft_env *env = *state;
    const char *path = check_path("log");
    static char text[1 << 16];
    graft_device *device = open_described(env, CUDA_F32);
    const graft_signature s = read_signature(env, attention);
    int kept = dup(STDERR_FILENO);
    assert_non_null(freopen(path, "w", stderr));
    env->verbosity = 2;
    (void)count_plans(env, device, &s, 1);
    env->verbosity = 1;
    (void)fflush(stderr);
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    (void)close(kept);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    (void)fread(text, 1, sizeof(text) - 1, file);
    (void)fclose(file);
    assert_non_null(strstr(text, "cudnn:e"));
    assert_non_null(strstr(text, "is left out: note: it uses tensor cores"));
    assert_non_null(strstr(text, "cudnn of matmul() f32[1,12,128,64]@row"));
    cuda_device_close(device);
}

/* Copies of weights that a cache of 50 MB does not keep from one replay to the next. */
static void test_turns(void **state)
{
    (void)state;
    const size_t cache_bytes = 50U << 20;
    assert_int_equal(cuda_kernel_turns(0, cache_bytes), 1);
    assert_int_equal(cuda_kernel_turns(1U << 30, cache_bytes), 1);
    assert_true(cuda_kernel_turns(1U << 20, cache_bytes) * (size_t)(1U << 20) >= 2 * cache_bytes);
    assert_true(cuda_kernel_turns(1U << 16, cache_bytes) * (size_t)(1U << 16) >= cache_bytes);
}

static const struct CMUnitTest tests[] = {
    CHECK_TEST(test_turns), CHECK_TEST(test_plans), CHECK_TEST(test_split),
    CHECK_TEST(test_own),   CHECK_TEST(test_seen),  CHECK_TEST(test_log),
};

#else

enum { SIGNATURES_MOST = 1024 };

typedef struct {
    graft_signature list[SIGNATURES_MOST];
    uint32_t count;
} signatures;

static void add_signature(signatures *all, const graft_signature *s)
{
    for (uint32_t i = 0; i < all->count; i++) {
        if (graft_signature_equal(&all->list[i], s)) {
            return;
        }
    }
    assert_true(all->count < SIGNATURES_MOST);
    all->list[all->count++] = *s;
}

/* What cuDNN is for. */
static bool is_planned(const graft_signature *s)
{
    return graft_signature_is_product(s) || s->op == GRAFT_OP_max_pool ||
           s->op == GRAFT_OP_avg_pool || s->op == GRAFT_OP_layer_norm;
}

/* The operators of a model, channels last; const nodes do not run. */
static void add_model(graft_env *env, const graft_zoo_entry *entry, signatures *all)
{
    GRAFT_SCOPED(env->unit);
    graft_model *model = NULL;
    graft_order order;
    CHECK_OK(graft_zoo_open(env, env->unit, entry, true, &model));
    const graft_graph *graph = &model->graph;
    size_t bytes = graft_order_bytes(&graph->limits);
    CHECK_OK(graft_order_build(&order, graph, graft_arena_alloc(env->unit, bytes), bytes));
    uint8_t *layouts = GRAFT_NEW(env->unit, uint8_t, graph->value_end);
    graft_layout_choice *choices = GRAFT_NEW(env->unit, graft_layout_choice, graph->limits.nodes);
    graft_layout_assign(graph, &order, GRAFT_LAYOUT_NHWC, layouts, choices);
    for (graft_index node = 0; node < graph->node_end; node++) {
        graft_signature s;
        uint32_t op = graph->nodes[node].op;
        if (op == GRAFT_OP_NONE || op == GRAFT_OP_OPAQUE || graph->nodes[node].is_const) {
            continue;
        }
        graft_signature_of_node(graph, node, &choices[node], false, &s);
        if (is_planned(&s)) {
            add_signature(all, &s);
        }
    }
}

static void test_zoo(void **state)
{
    graft_env *env = *state;
    static signatures all;
    uint32_t models = 0;
    const graft_zoo_entry *zoo = graft_zoo(&models);
    for (uint32_t i = 0; i < models; i++) {
        if (!zoo[i].is_quantised) {
            add_model(env, &zoo[i], &all);
        }
    }
    for (uint32_t type = 0; type < CUDA_TYPE_COUNT; type++) {
        uint32_t missing = 0;
        graft_device *device = open_described(env, type);
        for (uint32_t i = 0; i < all.count; i++) {
            graft_buffer text = {.arena = env->scratch};
            if (count_plans(env, device, &all.list[i], 1) == 0) {
                graft_signature_print(&all.list[i], &text);
                print_message("# %s: no plan for %s\n", types[type], text.data);
                missing++;
            }
        }
        print_message("# %s: %u of %u signatures have a plan\n", types[type], all.count - missing,
                      all.count);
        assert_int_equal(missing, 0);
        cuda_device_close(device);
    }
}

static const struct CMUnitTest tests[] = {CHECK_TEST(test_zoo)};

#endif

/* The loader reads the path when a process begins: this one begins anew, with the stand-in. */
static bool has_driver(char **argv)
{
    char path[4096];
    const char *out = getenv("OUT");
    (void)snprintf(path, sizeof(path), "%s/tests/cuda/driver", out == NULL ? "out/release" : out);
    char *folder = realpath(path, NULL);
    const char *set = getenv("LD_LIBRARY_PATH");
    bool is_there = folder != NULL;
    if (is_there && (set == NULL || strcmp(set, folder) != 0)) {
        (void)setenv("LD_LIBRARY_PATH", folder, 1);
        (void)execv("/proc/self/exe", argv);
        is_there = false;
    }
    free(folder);
    return is_there;
}

static void test_nothing(void **state)
{
    (void)state;
    CHECK_SKIP("the stand-in for the driver was not built");
}

int main(int argc, char **argv)
{
    (void)argc;
    const struct CMUnitTest none[] = {CHECK_TEST(test_nothing)};
    return has_driver(argv) ? cmocka_run_group_tests_name("engines", tests, NULL, NULL)
                            : cmocka_run_group_tests_name("engines", none, NULL, NULL);
}

#else

static void test_nothing(void **state)
{
    (void)state;
    CHECK_SKIP("built without cuDNN: see the line that make ends with");
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECK_TEST(test_nothing)};
    return cmocka_run_group_tests_name("engines", tests, NULL, NULL);
}

#endif

/* Opening a GPU where there is none, or no back end: what the user is told. */
#include "cost/cost.h"
#include "cost/database/recorded.h"
#include "cost/device/backend.h"
#include "tests/support/check.h"
#include "tests/support/kernels.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The library lies with the binary, not with the tests. */
static bool find_library(void)
{
    char path[4096];
    const char *out = getenv("OUT");
    (void)snprintf(path, sizeof(path), "%s/graft-cuda.so", out == NULL ? "out/release" : out);
    assert_int_equal(setenv("GRAFT_CUDA_LIBRARY", path, 1), 0);
    return access(path, R_OK) == 0;
}

CHECK_CASE(test_without_library)
{
    graft_device *device = NULL;
    assert_int_equal(setenv("GRAFT_CUDA_LIBRARY", "/nowhere/graft-cuda.so", 1), 0);
    check_failed(env, graft_device_open(env, "cuda", 1, &device), GRAFT_UNSUPPORTED,
                 "/nowhere/graft-cuda.so is missing");
    assert_int_equal(setenv("GRAFT_CUDA_LIBRARY", "/etc/hostname", 1), 0);
    check_failed(env, graft_device_open(env, "cuda:fp16", 1, &device), GRAFT_UNSUPPORTED,
                 "does not load");
    assert_null(device);
}

CHECK_CASE(test_without_gpu)
{
    graft_device *device = NULL;
    if (!find_library()) {
        CHECK_SKIP("built without CUDA");
    }
    graft_status status = graft_device_open(env, "cuda", 1, &device);
    if (status == GRAFT_OK) {
        graft_device_close(device);
        CHECK_SKIP("there is a GPU here");
    }
    assert_int_equal(status, GRAFT_UNSUPPORTED);
    assert_true(strstr(env->message, "no GPU") != NULL || strstr(env->message, "driver") != NULL);
}

CHECK_CASE(test_options)
{
    graft_device *device = NULL;
    if (!find_library()) {
        CHECK_SKIP("built without CUDA");
    }
    static const char *const wrong[] = {"cuda:fp8", "cuda:fp16,gpu=x", "cuda:gpu=-1",
                                        "cuda:described="};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        check_failed(env, graft_device_open(env, wrong[i], 1, &device), GRAFT_BAD_INPUT,
                     "is none of fp32, tf32, fp16, bf16");
    }
    check_failed(env, graft_device_open(env, "cuda:described=/nowhere.json", 1, &device), GRAFT_IO,
                 "/nowhere.json");
    check_failed(env, graft_device_open(env, "cuda:described=tests/cuda/test_device.c", 1, &device),
                 GRAFT_BAD_INPUT, "does not take these device properties");
    assert_null(device);
}

/* Another name that begins so is a recorded device. */
CHECK_CASE(test_recorded)
{
    graft_kernel_name names[GRAFT_KERNEL_MOST];
    graft_signature s;
    uint32_t count = 7;
    const graft_shape shape = {
        .rank = 4, .dtype = GRAFT_DTYPE_F32, .dims = {1, 8, 4, 4}
    };
    graft_device *device = check_device_named(env, "cudax", 1);
    assert_false(graft_device_present(device));
    graft_signature_of_reorder(&shape, GRAFT_LAYOUT_ROW, GRAFT_LAYOUT_NHWC, &s);
    check_failed(env, graft_kernel_list(env, device, &s, names, &count), GRAFT_UNSUPPORTED,
                 "is not here");
    assert_int_equal(count, 0);
}

/* Recorded devices are found by the words of their names; a database that is not there is named. */
CHECK_CASE(test_names)
{
    const char *path = check_path("h999.costs");
    graft_signature s;
    const graft_shape shape = {
        .rank = 4, .dtype = GRAFT_DTYPE_F32, .dims = {1, 8, 4, 4}
    };
    const graft_cost_entry entry = {.median_ns = 100.0, .bytes = 1024, .rounds = 5};
    graft_signature_of_reorder(&shape, GRAFT_LAYOUT_ROW, GRAFT_LAYOUT_NHWC, &s);
    graft_database *database =
        check_database_open(env, path, "NVIDIA H999 (sm_90), fp16", "cuDNN 9");
    graft_database_add(database, &s, &entry);
    check_database_save(env, database);
    static const struct {
        const char *name;
        bool found;
    } names[] = {
        {"h999",         true },
        {"h999-fp16",    true },
        {"H999 (sm_90)", true },
        {"h100",         false},
        {"h999-fp32",    false}
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        graft_device *device = NULL;
        graft_cost *cost = NULL;
        CHECK_OK(graft_device_open(env, names[i].name, 1, &device));
        graft_status status = graft_cost_open(env, device, path, &cost);
        assert_int_equal(status, names[i].found ? GRAFT_OK : GRAFT_BAD_INPUT);
        graft_env_clear(env);
        CHECK_OK(graft_cost_close(env, cost));
        graft_device_close(device);
    }
    /* Numbers are whole and stay together. */
    assert_true(graft_recorded_means("AMD EPYC (25-1-1), avx2", "amd-epyc-25-1"));
    assert_true(graft_recorded_means("AMD EPYC (25-17-1), avx512", "amd-epyc-25-17-avx512"));
    assert_false(graft_recorded_means("AMD EPYC (25-17-1), avx512", "amd-epyc-25-1"));
    assert_false(graft_recorded_means("AMD EPYC (125-1-1), avx512", "amd-epyc-25-1"));
    /* Words of any length. */
    assert_true(graft_recorded_means("NVIDIA H999", "h999-nvidia-"));
    assert_false(
        graft_recorded_means("0123456789012345678901234567890123456789012345678901234567890123",
                             "01234567890123456789012345678901234567890123456789012345678901234"));
    assert_string_equal(graft_device_database(env, "cuda:fp16"), "out/costs/cuda.costs");
    assert_string_equal(graft_device_database(env, "h999"), "out/costs/cpu.costs");
}

/* The memory of the processor behind the same calls. */
static graft_status count_run(graft_env *env, void *context)
{
    (void)env;
    uint32_t *runs = context;
    (*runs)++;
    return GRAFT_OK;
}

CHECK_CASE(test_memory)
{
    graft_device *device = check_device_open(env);
    const float numbers[3] = {1.0F, -2.0F, 3.5F};
    float back[3] = {0.0F};
    void *memory = NULL;
    uint32_t runs = 0;
    double ns = -1.0;
    assert_true(graft_device_shares_memory(device));
    CHECK_OK(graft_device_allocate(env, device, sizeof(numbers), &memory));
    assert_memory_equal(memory, back, sizeof(back));
    CHECK_OK(graft_device_write(env, device, memory, numbers, 3));
    CHECK_OK(graft_device_read(env, device, back, memory, 3));
    assert_memory_equal(numbers, back, sizeof(back));
    CHECK_OK(graft_device_time(env, device, count_run, &runs, 5, &ns));
    assert_int_equal(runs, 5);
    assert_true(ns >= 0.0);
    graft_device_release(device, memory);
}

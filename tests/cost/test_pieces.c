/* Pieces of tensors on a device with memory of its own, whose numbers are not of four bytes: they
 * lie where the device has them, and nothing is copied (cost/plan/executor.c). The device here is
 * the processor, with numbers of two bytes. */
#include "cost/device/backend.h"
#include "cost/plan/executor.h"
#include "tests/support/build.h"
#include "tests/support/check.h"

#include <stdlib.h>

enum { ROWS = 3, COLUMNS = 32 };

struct graft_device {
    graft_device_head head;
};

struct graft_kernel {
    graft_device *device; /* graft_kernel_head */
    const graft_kernel_facts *facts;
    size_t count;
    const int16_t *in;
    int16_t *out;
};

static bool is_present(const graft_device *device)
{
    (void)device;
    return true;
}

static const graft_kernel_facts facts = {.name = "relu"};

/* Every operator is a relu. */
static graft_status open_kernel(graft_env *env, graft_device *device,
                                const graft_signature *signature, const char *name,
                                const float *const *constants, graft_kernel **kernel)
{
    (void)env;
    (void)name;
    (void)constants;
    assert_int_equal(signature->op, GRAFT_OP_relu);
    *kernel = calloc(1, sizeof(**kernel));
    assert_non_null(*kernel);
    **kernel = (graft_kernel){.device = device,
                              .facts = &facts,
                              .count = (size_t)graft_shape_elements(&signature->inputs[0])};
    return GRAFT_OK;
}

static void close_kernel(graft_kernel *kernel) { free(kernel); }

static graft_status bind_kernel(graft_env *env, graft_kernel *kernel, const float *const *inputs,
                                float *const *outputs, void *workspace)
{
    (void)env;
    (void)workspace;
    kernel->in = (const void *)inputs[0];
    kernel->out = (void *)outputs[0];
    return GRAFT_OK;
}

static graft_status run_kernel(graft_env *env, graft_kernel *kernel)
{
    (void)env;
    for (size_t i = 0; i < kernel->count; i++) {
        kernel->out[i] = kernel->in[i] > 0 ? kernel->in[i] : 0;
    }
    return GRAFT_OK;
}

static graft_status measure(graft_env *env, graft_device *device, const graft_signature *signatures,
                            uint32_t count, const graft_measure_options *options,
                            graft_cost_entry *entries)
{
    (void)env;
    (void)device;
    (void)signatures;
    (void)options;
    for (uint32_t i = 0; i < count; i++) {
        entries[i] =
            (graft_cost_entry){.median_ns = 10.0, .rounds = 5, .source = GRAFT_COST_MEASURED};
        (void)snprintf(entries[i].implementation, sizeof(entries[i].implementation), "relu");
    }
    return GRAFT_OK;
}

static graft_status allocate(graft_env *env, graft_device *device, size_t bytes, void **memory)
{
    (void)env;
    (void)device;
    *memory = calloc(bytes > 0 ? bytes : 1, 1);
    assert_non_null(*memory);
    return GRAFT_OK;
}

static void release(graft_device *device, void *memory)
{
    (void)device;
    free(memory);
}

static graft_status write_numbers(graft_env *env, graft_device *device, void *to, const float *from,
                                  size_t count)
{
    int16_t *numbers = to;
    (void)env;
    (void)device;
    for (size_t i = 0; i < count; i++) {
        numbers[i] = (int16_t)from[i];
    }
    return GRAFT_OK;
}

static graft_status read_numbers(graft_env *env, graft_device *device, float *to, const void *from,
                                 size_t count)
{
    const int16_t *numbers = from;
    (void)env;
    (void)device;
    for (size_t i = 0; i < count; i++) {
        to[i] = numbers[i];
    }
    return GRAFT_OK;
}

static const graft_backend backend = {
    .abi = GRAFT_BACKEND_ABI,
    .present = is_present,
    .kernel_open = open_kernel,
    .kernel_close = close_kernel,
    .kernel_bind = bind_kernel,
    .kernel_run = run_kernel,
    .measure = measure,
    .allocate = allocate,
    .release = release,
    .write = write_numbers,
    .read = read_numbers,
};

static const float *no_weights(void *context, graft_index value)
{
    (void)context;
    (void)value;
    return NULL;
}

/* split, relu of both pieces, concat: two steps. */
CHECK_CASE(test_pieces)
{
    graft_device device = {
        .head = {.backend = &backend, .number_bytes = 2}
    };
    (void)snprintf(device.head.name, sizeof(device.head.name), "two bytes");
    (void)snprintf(device.head.library, sizeof(device.head.library), "like cuDNN");
    const graft_graph *graph =
        build_text(env->unit,
                   "x = input %d %d; f s = split x : 0 1; s = relu s; f = relu f;"
                   "y = concat s f; out y",
                   ROWS, COLUMNS)
            .graph;
    graft_cost *cost = NULL;
    graft_executor *executor = NULL;
    CHECK_OK(graft_cost_open(env, &device, NULL, &cost));
    CHECK_OK(graft_executor_open(env, cost, graph, no_weights, NULL, &executor));
    assert_int_equal(graft_executor_schedule(executor)->step_count, 2);
    float in[ROWS * COLUMNS];
    float out[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        in[i] = (float)(i * (i % 2 == 0 ? 1 : -1));
    }
    const float *inputs[1] = {in};
    float *outputs[1] = {out};
    CHECK_OK(graft_executor_run(env, executor, inputs, outputs));
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        float from = in[(i + COLUMNS) % (ROWS * COLUMNS)];
        assert_true(out[i] == (from > 0.0F ? from : 0.0F));
    }
    graft_executor_close(executor);
    CHECK_OK(graft_cost_close(env, cost));
}

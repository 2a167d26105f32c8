/* backend.c - devices and kernels of every kind, by the table of their back end (see backend.h). */
#include "cost/device/backend.h"

#include "cost/database/recorded.h"
#include "cost/device/device_program.h"
#include "cost/measure/clock.h"
#include "graph/base/library.h"
#include "graph/base/log.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALIGNMENT = 64 };

static const graft_library cuda_library = {
    .file = "graft-cuda.so",
    .variable = "GRAFT_CUDA_LIBRARY",
    .symbol = GRAFT_BACKEND_SYMBOL,
    .what = "back end for NVIDIA GPUs",
    .advice = "build with the CUDA toolkit and cuDNN (`make CUDA=1`, docs/gpu.md)"};

/* A device whose costs were recorded somewhere else. */
struct recorded_device {
    graft_device_head head;
};

/* ------------------------------------------------------- finding a back end */

static graft_status load_library(graft_env *env, const graft_backend **backend)
{
    graft_backend_find find = NULL;
    GRAFT_PASS(graft_library_load(env, &cuda_library, &find));
    if (find()->abi != GRAFT_BACKEND_ABI) {
        return GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "%s was built for another version of Graft",
                          cuda_library.file);
    }
    *backend = find();
    return GRAFT_OK;
}

static bool is_gpu(const char *name)
{
    return strcmp(name, "cuda") == 0 || strncmp(name, "cuda:", 5) == 0;
}

/* Builds for GPUs leave programs out. */
static const graft_backend *find_program(graft_env *env, const char *name)
{
#ifdef GRAFT_WITHOUT_ONEDNN
    (void)env;
    (void)name;
    return NULL;
#else
    return graft_device_program_path(env, name) != NULL ? &graft_backend_program : NULL;
#endif
}

static graft_status find_backend(graft_env *env, const char *name, const graft_backend **backend)
{
    if (name[0] == '\0') {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "the name of a device is empty");
    }
    if (strcmp(name, "cpu") == 0) {
#ifdef GRAFT_WITHOUT_ONEDNN
        return GRAFT_FAIL(env, GRAFT_UNSUPPORTED,
                          "this program was built without oneDNN: no 'cpu'");
#else
        *backend = &graft_backend_cpu;
        return GRAFT_OK;
#endif
    }
    if (is_gpu(name)) {
        return load_library(env, backend);
    }
    *backend = find_program(env, name);
    return GRAFT_OK;
}

const char *graft_device_database(graft_env *env, const char *name)
{
    const char *file = is_gpu(name)                      ? "costs/cuda.costs"
                       : find_program(env, name) != NULL ? "costs/programs.costs"
                                                         : "costs/cpu.costs";
    return graft_file_cached(env, file);
}

/* -------------------------------------------------------------- devices */

static graft_status open_recorded(graft_env *env, const char *name, uint32_t thread_count,
                                  graft_device **device)
{
    struct recorded_device *d = calloc(1, sizeof(*d));
    if (d == NULL) {
        return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left for a device");
    }
    d->head.thread_count = thread_count;
    *device = (graft_device *)(void *)d;
    graft_device_identify(*device, name, "");
    return GRAFT_OK;
}

/* Whether costs come with Graft for a device in devices/ that cannot be here. */
static bool is_shipped(graft_env *env, const char *name)
{
    return strchr(name, '/') == NULL && find_program(env, name) != NULL &&
           graft_shipped_has(env, name);
}

graft_status graft_device_open(graft_env *env, const char *name, uint32_t thread_count,
                               graft_device **device)
{
    graft_status status = GRAFT_OK;
    const graft_backend *backend = NULL;
    graft_device *opened = NULL;
    uint32_t threads = thread_count > 0 ? thread_count : 1;
    GRAFT_CHECK(find_backend(env, name, &backend));
    if (backend != NULL) {
        const bool free = backend == find_program(env, name); /* To say for itself. */
        status = backend->open(env, name, free ? thread_count : threads, &opened);
    }
    if (status == GRAFT_UNSUPPORTED && is_shipped(env, name)) {
        graft_log(env, 1, "%s; its recorded costs are taken", env->message);
        graft_env_clear(env);
        graft_device_close(opened);
        opened = NULL;
        backend = NULL;
        status = GRAFT_OK;
    }
    GRAFT_CHECK(status);
    if (backend == NULL) {
        GRAFT_CHECK(open_recorded(env, name, threads, &opened));
    }
    *device = opened;
    return GRAFT_OK;
done:
    graft_device_close(opened);
    return status;
}

void graft_device_close(graft_device *device)
{
    if (device == NULL) {
        return;
    }
    const graft_backend *backend = graft_device_head_at(device)->backend;
    if (backend == NULL) {
        free(device);
    } else {
        backend->close(device);
    }
}

const char *graft_device_name(const graft_device *device)
{
    return graft_device_head_at(device)->name;
}

const char *graft_device_library(const graft_device *device)
{
    return graft_device_head_at(device)->library;
}

void graft_device_identify(graft_device *device, const char *name, const char *library)
{
    graft_device_head *head = graft_device_head_of(device);
    (void)snprintf(head->name, sizeof(head->name), "%s", name);
    (void)snprintf(head->library, sizeof(head->library), "%s", library);
}

bool graft_device_present(const graft_device *device)
{
    const graft_backend *backend = graft_device_head_at(device)->backend;
    return backend != NULL && (backend->present == NULL || backend->present(device));
}

bool graft_device_is_program(const graft_device *device)
{
    const char *library = graft_device_library(device);
    const char *mark = strrchr(library, ',');
    return mark != NULL && strcmp(mark, GRAFT_DEVICE_PROGRAM_MARK) == 0;
}

uint32_t graft_device_threads(const graft_device *device)
{
    return graft_device_head_at(device)->thread_count;
}

/* ------------------------------------------------------------- what it has */

bool graft_device_has(const graft_device *device, uint32_t op)
{
    const bool *has = graft_device_head_at(device)->has;
    return graft_op(op) != NULL && (has == NULL || has[op]);
}

/* -------------------------------------------------------------- kernels */

static const graft_kernel_head *head_of(const graft_kernel *kernel)
{
    return (const graft_kernel_head *)(const void *)kernel;
}

static const graft_backend *backend_of(const graft_kernel *kernel)
{
    return graft_device_head_at(head_of(kernel)->device)->backend;
}

static graft_status refuse_absent(graft_env *env, const graft_device *device)
{
    return GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "device '%s' is not here: it cannot run",
                      graft_device_name(device));
}

graft_status graft_kernel_list(graft_env *env, graft_device *device,
                               const graft_signature *signature,
                               graft_kernel_name names[GRAFT_KERNEL_MOST], uint32_t *count)
{
    const graft_backend *backend = graft_device_head_at(device)->backend;
    *count = 0;
    return backend == NULL ? refuse_absent(env, device)
                           : backend->kernel_list(env, device, signature, names, count);
}

graft_status graft_kernel_open(graft_env *env, graft_device *device,
                               const graft_signature *signature, const char *name,
                               const float *const *constants, graft_kernel **kernel)
{
    const graft_backend *backend = graft_device_head_at(device)->backend;
    return backend == NULL ? refuse_absent(env, device)
                           : backend->kernel_open(env, device, signature, name, constants, kernel);
}

void graft_kernel_close(graft_kernel *kernel)
{
    if (kernel != NULL) {
        backend_of(kernel)->kernel_close(kernel);
    }
}

const graft_kernel_facts *graft_kernel_facts_of(const graft_kernel *kernel)
{
    return head_of(kernel)->facts;
}

graft_status graft_kernel_copy_weights(graft_env *env, graft_kernel *kernel, uint32_t count,
                                       double part)
{
    return backend_of(kernel)->kernel_copy_weights(env, kernel, count, part);
}

void graft_kernel_turn(graft_kernel *kernel) { backend_of(kernel)->kernel_turn(kernel); }

void graft_kernel_recall(graft_kernel *kernel) { backend_of(kernel)->kernel_recall(kernel); }

graft_status graft_kernel_bind(graft_env *env, graft_kernel *kernel, const float *const *inputs,
                               float *const *outputs, void *workspace)
{
    return backend_of(kernel)->kernel_bind(env, kernel, inputs, outputs, workspace);
}

graft_status graft_kernel_run(graft_env *env, graft_kernel *kernel)
{
    return backend_of(kernel)->kernel_run(env, kernel);
}

/* ----------------------------------------------------- memory and time */

uint32_t graft_device_prepare(graft_env *env, graft_device *device,
                              const graft_signature *signatures, uint32_t count)
{
    const graft_backend *backend = graft_device_head_of(device)->backend;
    return backend == NULL || backend->prepare == NULL
               ? 0
               : backend->prepare(env, device, signatures, count);
}

bool graft_device_shares_memory(const graft_device *device)
{
    const graft_backend *backend = graft_device_head_at(device)->backend;
    return backend == NULL || backend->allocate == NULL;
}

graft_status graft_device_allocate(graft_env *env, graft_device *device, size_t bytes,
                                   void **memory)
{
    if (!graft_device_shares_memory(device)) {
        return graft_device_head_at(device)->backend->allocate(env, device, bytes, memory);
    }
    size_t size = (bytes / ALIGNMENT + 1) * ALIGNMENT;
    void *allocated = aligned_alloc(ALIGNMENT, size);
    if (allocated == NULL) {
        return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left for a tensor of %zu bytes", bytes);
    }
    memset(allocated, 0, size);
    *memory = allocated;
    return GRAFT_OK;
}

void graft_device_release(graft_device *device, void *memory)
{
    if (memory == NULL || graft_device_shares_memory(device)) {
        free(memory);
    } else {
        graft_device_head_at(device)->backend->release(device, memory);
    }
}

graft_status graft_device_write(graft_env *env, graft_device *device, void *to, const float *from,
                                size_t count)
{
    if (!graft_device_shares_memory(device)) {
        return graft_device_head_at(device)->backend->write(env, device, to, from, count);
    }
    memcpy(to, from, count * sizeof(float));
    return GRAFT_OK;
}

graft_status graft_device_read(graft_env *env, graft_device *device, float *to, const void *from,
                               size_t count)
{
    if (!graft_device_shares_memory(device)) {
        return graft_device_head_at(device)->backend->read(env, device, to, from, count);
    }
    memcpy(to, from, count * sizeof(float));
    return GRAFT_OK;
}

graft_status graft_device_time(graft_env *env, graft_device *device, graft_device_body body,
                               void *context, uint32_t runs, double *ns)
{
    assert(runs > 0);
    if (!graft_device_shares_memory(device)) {
        return graft_device_head_at(device)->backend->time(env, device, body, context, runs, ns);
    }
    uint32_t threads = graft_device_threads(device);
    uint64_t start_ns = graft_cost_clock_ns(threads);
    for (uint32_t i = 0; i < runs; i++) {
        GRAFT_PASS(body(env, context));
    }
    *ns = (double)(graft_cost_clock_ns(threads) - start_ns) / (double)runs;
    return GRAFT_OK;
}

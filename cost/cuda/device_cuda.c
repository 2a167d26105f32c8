/* device_cuda.c - an NVIDIA GPU as a device: opening and naming it, its memory, its clock.
 *
 * The name is "cuda", or "cuda:" and options with commas between them:
 *      fp32 | tf32 | fp16 | bf16   how numbers are stored and multiplied (fp32)
 *      wide                        list all engines that fit, not only the first few of each kind
 *      warm                        measure with weights that the cache may keep from run to run
 *      gaps                        time launches one by one, not replayed as a CUDA graph
 *      gpu=N                       the GPU with this number (0)
 *      described=FILE              a GPU that is not here, by its properties in cuDNN's JSON: what
 *                                  cuDNN would run can be listed, nothing can be run */
#include "cost/cuda/device_cuda.h"

#include "graph/base/file.h"

#include <stdlib.h>
#include <string.h>

enum { GPUS_MOST = 64, UNROLL_MOST = TURNS_MOST, OPTION_BYTES = 512 };

static const char *const type_names[CUDA_TYPE_COUNT] = {"fp32", "tf32", "fp16", "bf16"};

graft_status cuda_status(graft_env *env, cudaError_t result, const char *what)
{
    if (result == cudaSuccess) {
        return GRAFT_OK;
    }
    (void)cudaGetLastError(); /* So that the next call does not report it again. */
    graft_status status = result == cudaErrorMemoryAllocation ? GRAFT_NO_MEMORY : GRAFT_INTERNAL;
    return GRAFT_FAIL(env, status, "CUDA: %s: %s (%s)", what, cudaGetErrorString(result),
                      cudaGetErrorName(result));
}

/* ------------------------------------------------------------------ options */

typedef struct {
    cuda_type type;
    bool gaps;
    bool wide;
    bool warm;
    int gpu;
    char described[OPTION_BYTES];
} device_options;

static bool parse_option(const char *text, device_options *options)
{
    for (uint32_t i = 0; i < CUDA_TYPE_COUNT; i++) {
        if (strcmp(text, type_names[i]) == 0) {
            options->type = (cuda_type)i;
            return true;
        }
    }
    const struct {
        const char *name;
        bool *value;
    } switches[] = {
        {"gaps", &options->gaps},
        {"warm", &options->warm},
        {"wide", &options->wide},
    };
    for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++) {
        if (strcmp(text, switches[i].name) == 0) {
            *switches[i].value = true;
            return true;
        }
    }
    if (strncmp(text, "described=", 10) == 0 && text[10] != '\0') {
        (void)snprintf(options->described, sizeof(options->described), "%s", text + 10);
        return true;
    }
    if (strncmp(text, "gpu=", 4) == 0) {
        char *end = NULL;
        long number = strtol(text + 4, &end, 10);
        options->gpu = (int)number;
        return end != text + 4 && *end == '\0' && number >= 0 && number < GPUS_MOST;
    }
    return false;
}

static graft_status parse_options(graft_env *env, const char *text, device_options *options)
{
    char copy[OPTION_BYTES];
    char *rest = NULL;
    *options = (device_options){.type = CUDA_F32};
    if (strlen(text) >= sizeof(copy)) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "the name of a device is too long");
    }
    (void)snprintf(copy, sizeof(copy), "%s", strncmp(text, "cuda:", 5) == 0 ? text + 5 : "");
    for (char *word = strtok_r(copy, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        if (!parse_option(word, options)) {
            return GRAFT_FAIL(
                env, GRAFT_BAD_INPUT,
                "device '%s': '%s' is none of fp32, tf32, fp16, bf16, wide, warm, gaps, "
                "gpu=N, described=FILE",
                text, word);
        }
    }
    return GRAFT_OK;
}

/* ------------------------------------------------------------------ opening */

/* The runtime library is part of the program; the driver is the machine's. */
static graft_status check_driver(graft_env *env)
{
    int driver = 0;
    int count = 0;
    (void)cudaDriverGetVersion(&driver);
    if (driver == 0) {
        return GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "no GPU: there is no NVIDIA driver here");
    }
    if (driver / 1000 < CUDART_VERSION / 1000) {
        return GRAFT_FAIL(env, GRAFT_UNSUPPORTED,
                          "the NVIDIA driver is too old: it is for CUDA %d.%d, this program for "
                          "%d.%d; update the driver or build with an older toolkit",
                          driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000,
                          CUDART_VERSION % 1000 / 10);
    }
    cudaError_t result = cudaGetDeviceCount(&count);
    if (result == cudaErrorInsufficientDriver || result == cudaErrorSystemDriverMismatch) {
        return GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "the NVIDIA driver does not fit this program: %s",
                          cudaGetErrorString(result));
    }
    if (result == cudaErrorNoDevice || (result == cudaSuccess && count == 0)) {
        return GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "no GPU: the NVIDIA driver finds none");
    }
    return cuda_status(env, result, "looking for GPUs");
}

static graft_status name_gpu(graft_env *env, graft_device *device)
{
    struct cudaDeviceProp properties;
    int driver = 0;
    int runtime = 0;
    GRAFT_PASS(cuda_status(env, cudaGetDeviceProperties(&properties, device->gpu),
                           "reading a GPU's properties"));
    (void)cudaDriverGetVersion(&driver);
    (void)cudaRuntimeGetVersion(&runtime);
    device->cache_bytes = properties.l2CacheSize > 0 ? (size_t)properties.l2CacheSize : 0;
    (void)snprintf(device->head.name, sizeof(device->head.name),
                   "%.180s (sm_%d%d, %d multiprocessors), %s%s%s", properties.name,
                   properties.major, properties.minor, properties.multiProcessorCount,
                   type_names[device->target.type], device->keeps_gaps ? ", launch gaps" : "",
                   device->is_warm ? ", warm weights" : "");
    size_t cudnn = cudnnGetVersion();
    (void)snprintf(device->head.library, sizeof(device->head.library),
                   "cuDNN %zu.%zu.%zu, CUDA %d.%d, kernels %d", cudnn / 10000, cudnn / 100 % 100,
                   cudnn % 100, runtime / 1000, runtime % 1000 / 10, CUDA_KERNELS_VERSION);
    return GRAFT_OK;
}

static graft_status start_gpu(graft_env *env, graft_device *device)
{
    GRAFT_PASS(check_driver(env));
    GRAFT_PASS(cuda_status(env, cudaSetDevice(device->gpu), "choosing the GPU"));
    GRAFT_PASS(name_gpu(env, device));
    GRAFT_PASS(cuda_status(env, cudaStreamCreateWithFlags(&device->stream, cudaStreamNonBlocking),
                           "creating a stream"));
    for (uint32_t i = 0; i < 2; i++) {
        GRAFT_PASS(cuda_status(env, cudaEventCreate(&device->events[i]), "creating an event"));
    }
    cudnnStatus_t result = cudnnCreate(&device->target.handle);
    if (result == CUDNN_STATUS_SUCCESS) {
        result = cudnnSetStream(device->target.handle, device->stream);
    }
    graft_status status = cudnn_status(env, result, "starting");
    return status == GRAFT_UNSUPPORTED
               ? GRAFT_FAIL(env, status, "cuDNN does not support this GPU or driver: %s",
                            cudnnGetErrorString(result))
               : status;
}

static graft_status describe_gpu(graft_env *env, graft_device *device, const char *path)
{
    graft_status status = GRAFT_OK;
    GRAFT_SCOPED(env->scratch);
    uint8_t *text = NULL;
    size_t size = 0;
    GRAFT_CHECK(graft_file_read(env, env->scratch, path, &text, &size));
    const char *json = graft_arena_printf(env->scratch, "%.*s", (int)size, (const char *)text);
    GRAFT_TRY(env, cudnn_describe_device(env, json, &device->target.device), "in %s", path);
    size_t cudnn = cudnnGetVersion();
    (void)snprintf(device->head.name, sizeof(device->head.name), "described by %.200s, %s", path,
                   type_names[device->target.type]);
    (void)snprintf(device->head.library, sizeof(device->head.library), "cuDNN %zu.%zu.%zu",
                   cudnn / 10000, cudnn / 100 % 100, cudnn % 100);
done:
    return status;
}

graft_status cuda_device_open(graft_env *env, const char *text, uint32_t thread_count,
                              graft_device **device)
{
    device_options options;
    GRAFT_PASS(parse_options(env, text, &options));
    graft_device *d = calloc(1, sizeof(*d));
    if (d == NULL) {
        return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left for a device");
    }
    (void)pthread_mutex_init(&d->lock, NULL);
    cuda_cache_open(&d->cache);
    d->head.backend = &cuda_backend;
    d->head.thread_count = thread_count;
    d->head.has = d->has;
    for (uint32_t op = 1; op < GRAFT_OP_COUNT; op++) {
        d->has[op] = op <= GRAFT_OP_reduce_max || (graft_op(op)->flags & GRAFT_FLAG_COMPOSED) != 0;
    }
    d->target.type = options.type;
    d->head.number_bytes = cuda_type_bytes(options.type);
    d->gpu = options.gpu;
    d->keeps_gaps = options.gaps;
    d->is_wide = options.wide;
    d->is_warm = options.warm;
    d->is_described = options.described[0] != '\0';
    graft_status status =
        d->is_described ? describe_gpu(env, d, options.described) : start_gpu(env, d);
    if (status == GRAFT_OK) {
        *device = d;
    } else {
        cuda_device_close(d);
    }
    return status;
}

graft_status cuda_device_planner(graft_env *env, graft_device *device, uint32_t i,
                                 const cudnn_target **target)
{
    cudnn_target *planner = &device->planners[i];
    planner->type = device->target.type;
    planner->device = device->target.device;
    if (!device->is_described && planner->handle == NULL) {
        GRAFT_PASS(cuda_status(env, cudaSetDevice(device->gpu), "choosing the GPU"));
        GRAFT_PASS(cudnn_status(env, cudnnCreate(&planner->handle), "starting"));
    }
    *target = planner;
    return GRAFT_OK;
}

void cuda_device_close(graft_device *device)
{
    cuda_cache_close(&device->cache);
    for (uint32_t i = 0; i < PLANNERS_MOST; i++) {
        if (device->planners[i].handle != NULL) {
            (void)cudnnDestroy(device->planners[i].handle);
        }
    }
    if (device->target.handle != NULL) {
        (void)cudnnDestroy(device->target.handle);
    }
    cudnn_destroy(device->target.device);
    for (uint32_t i = 0; i < 2; i++) {
        if (device->events[i] != NULL) {
            (void)cudaEventDestroy(device->events[i]);
        }
    }
    if (device->stream != NULL) {
        (void)cudaStreamDestroy(device->stream);
    }
    (void)pthread_mutex_destroy(&device->lock);
    free(device);
}

bool cuda_device_present(const graft_device *device) { return !device->is_described; }

/* ------------------------------------------------------------------- memory */

static graft_status refuse_described(graft_env *env, const graft_device *device)
{
    return GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "device '%s' is not here: it cannot run",
                      device->head.name);
}

graft_status cuda_device_allocate(graft_env *env, graft_device *device, size_t bytes, void **memory)
{
    size_t size = bytes > 0 ? bytes : 1;
    void *allocated = NULL;
    if (device->is_described) {
        return refuse_described(env, device);
    }
    GRAFT_PASS(cuda_status(env, cudaSetDevice(device->gpu), "choosing the GPU"));
    cudaError_t result = cudaMalloc(&allocated, size);
    if (result == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left on the GPU for %zu bytes", bytes);
    }
    GRAFT_PASS(cuda_status(env, result, "allocating memory"));
    result = cudaMemsetAsync(allocated, 0, size, device->stream);
    if (result != cudaSuccess) {
        (void)cudaFree(allocated);
    }
    GRAFT_PASS(cuda_status(env, result, "clearing memory"));
    *memory = allocated;
    return GRAFT_OK;
}

void cuda_device_release(graft_device *device, void *memory)
{
    if (memory != NULL) {
        (void)cudaSetDevice(device->gpu);
        (void)cudaFree(memory);
    }
}

static graft_status copy_in(graft_env *env, graft_device *device, void *to, const void *from,
                            size_t bytes)
{
    GRAFT_PASS(cuda_status(env,
                           cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, device->stream),
                           "copying to the GPU"));
    return cuda_device_wait(env, device, "copying to the GPU");
}

graft_status cuda_device_write(graft_env *env, graft_device *device, void *to, const float *from,
                               size_t count)
{
    cuda_type type = device->target.type;
    if (cuda_type_bytes(type) == sizeof(float)) {
        return copy_in(env, device, to, from, count * sizeof(float));
    }
    uint16_t *halves = calloc(count > 0 ? count : 1, sizeof(*halves));
    if (halves == NULL) {
        return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left for %zu numbers", count);
    }
    cuda_narrow(type, from, count, halves);
    graft_status status = copy_in(env, device, to, halves, count * sizeof(*halves));
    free(halves);
    return status;
}

graft_status cuda_device_read(graft_env *env, graft_device *device, float *to, const void *from,
                              size_t count)
{
    cuda_type type = device->target.type;
    size_t size = cuda_type_bytes(type);
    /* Halves are read to the end of the array and spread from its beginning. */
    char *place = (char *)to + (sizeof(float) - size) * count;
    GRAFT_PASS(cuda_status(
        env, cudaMemcpyAsync(place, from, size * count, cudaMemcpyDeviceToHost, device->stream),
        "copying from the GPU"));
    GRAFT_PASS(cuda_device_wait(env, device, "copying from the GPU"));
    if (size < sizeof(float)) {
        cuda_widen(type, place, count, to);
    }
    return GRAFT_OK;
}

graft_status cuda_device_wait(graft_env *env, graft_device *device, const char *what)
{
    return cuda_status(env, cudaStreamSynchronize(device->stream), what);
}

/* ------------------------------------------------------------ const operands */

/* A filter (o, i, h, w) as (o, h, w, i). */
static void order_filter(const graft_shape *shape, const float *from, float *to)
{
    size_t inputs = (size_t)shape->dims[1];
    size_t taps = (size_t)shape->dims[2] * (size_t)shape->dims[3];
    for (size_t o = 0; o < (size_t)shape->dims[0]; o++) {
        for (size_t i = 0; i < inputs; i++) {
            for (size_t t = 0; t < taps; t++) {
                to[(o * taps + t) * inputs + i] = from[(o * inputs + i) * taps + t];
            }
        }
    }
}

static graft_status fill_pack(graft_env *env, graft_device *device, const graft_shape *filter,
                              cuda_pack *pack)
{
    graft_status status = GRAFT_OK;
    float *ordered = NULL;
    if (filter != NULL) {
        ordered = calloc(pack->count, sizeof(float));
        if (ordered == NULL) {
            return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left for %zu weights", pack->count);
        }
        order_filter(filter, pack->given, ordered);
    }
    GRAFT_CHECK(cuda_device_allocate(
        env, device, pack->count * cuda_type_bytes(device->target.type), &pack->data));
    GRAFT_CHECK(cuda_device_write(env, device, pack->data, ordered == NULL ? pack->given : ordered,
                                  pack->count));
done:
    free(ordered);
    return status;
}

static cuda_pack *find_pack(graft_device *device, const float *given, size_t count, bool is_nhwc)
{
    cuda_pack *pack = device->packs;
    while (pack != NULL &&
           (pack->given != given || pack->count != count || pack->is_nhwc != is_nhwc)) {
        pack = pack->next;
    }
    return pack;
}

graft_status cuda_pack_obtain(graft_env *env, graft_device *device, const float *given,
                              size_t count, const graft_shape *filter, cuda_pack **pack)
{
    GRAFT_LOCKED(&device->lock);
    cuda_pack *found = find_pack(device, given, count, filter != NULL);
    if (found == NULL) {
        found = calloc(1, sizeof(*found));
        if (found == NULL) {
            return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left for weights");
        }
        found->given = given;
        found->count = count;
        found->is_nhwc = filter != NULL;
        graft_status status = fill_pack(env, device, filter, found);
        if (status != GRAFT_OK) {
            cuda_device_release(device, found->data);
            free(found);
            return status;
        }
        found->next = device->packs;
        device->packs = found;
    }
    found->user_count++;
    *pack = found;
    return GRAFT_OK;
}

void cuda_pack_release(graft_device *device, cuda_pack *pack)
{
    if (pack == NULL) {
        return;
    }
    GRAFT_LOCKED(&device->lock);
    if (--pack->user_count == 0) {
        cuda_pack **link = &device->packs;
        while (*link != pack) {
            link = &(*link)->next;
        }
        *link = pack->next;
        cuda_device_release(device, pack->data);
        free(pack);
    }
}

/* -------------------------------------------------------------------- clock */

static graft_status run_times(graft_env *env, graft_device_body body, void *context, uint32_t runs)
{
    for (uint32_t i = 0; i < runs; i++) {
        GRAFT_PASS(body(env, context));
    }
    return GRAFT_OK;
}

/* The capture ends whatever happens within it. An engine that cannot be captured is no candidate.
 */
static graft_status capture(graft_env *env, graft_device *device, graft_device_body body,
                            void *context, uint32_t runs, cudaGraph_t *graph)
{
    GRAFT_PASS(cuda_status(env,
                           cudaStreamBeginCapture(device->stream, cudaStreamCaptureModeThreadLocal),
                           "capturing a graph"));
    graft_status status = run_times(env, body, context, runs);
    cudaError_t result = cudaStreamEndCapture(device->stream, graph);
    if (result != cudaSuccess || *graph == NULL) {
        (void)cudaGetLastError();
        status = GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "CUDA: what runs cannot be captured: %s",
                            cudaGetErrorString(result));
    }
    return status;
}

void cuda_replay_close(cuda_replay *replay)
{
    if (replay->exec != NULL) {
        (void)cudaGraphExecDestroy(replay->exec);
    }
    if (replay->graph != NULL) {
        (void)cudaGraphDestroy(replay->graph);
    }
    *replay = (cuda_replay){.runs = 0};
}

graft_status cuda_replay_open(graft_env *env, graft_device *device, graft_device_body body,
                              void *context, uint32_t runs, cuda_replay *replay)
{
    graft_status status = GRAFT_OK;
    *replay = (cuda_replay){.device = device, .body = body, .context = context, .runs = 1};
    GRAFT_CHECK(cuda_status(env, cudaSetDevice(device->gpu), "choosing the GPU"));
    /* Code is loaded and libraries allocate when something runs for the first time: neither is
     * allowed while a graph is captured. */
    GRAFT_CHECK(run_times(env, body, context, 1));
    GRAFT_CHECK(cuda_device_wait(env, device, "running what is to be timed"));
    if (device->keeps_gaps) {
        return GRAFT_OK;
    }
    replay->runs = runs < UNROLL_MOST ? runs : UNROLL_MOST;
    GRAFT_CHECK(capture(env, device, body, context, replay->runs, &replay->graph));
    GRAFT_CHECK(cuda_status(env, cudaGraphInstantiate(&replay->exec, replay->graph, 0),
                            "instantiating a graph"));
    GRAFT_CHECK(
        cuda_status(env, cudaGraphLaunch(replay->exec, device->stream), "replaying a graph"));
done:
    if (status != GRAFT_OK) {
        cuda_replay_close(replay);
    }
    return status;
}

static graft_status launch(graft_env *env, const cuda_replay *replay, uint32_t times)
{
    if (replay->exec == NULL) {
        return run_times(env, replay->body, replay->context, times);
    }
    for (uint32_t i = 0; i < times; i++) {
        GRAFT_PASS(cuda_status(env, cudaGraphLaunch(replay->exec, replay->device->stream),
                               "replaying a graph"));
    }
    return GRAFT_OK;
}

graft_status cuda_replay_time(graft_env *env, const cuda_replay *replay, uint32_t runs, double *ns)
{
    graft_device *device = replay->device;
    uint32_t launches = (runs + replay->runs - 1) / replay->runs;
    float ms = 0.0F;
    GRAFT_PASS(cuda_status(env, cudaEventRecord(device->events[0], device->stream), "timing"));
    GRAFT_PASS(launch(env, replay, launches));
    GRAFT_PASS(cuda_status(env, cudaEventRecord(device->events[1], device->stream), "timing"));
    GRAFT_PASS(cuda_device_wait(env, device, "running what is timed"));
    GRAFT_PASS(cuda_status(env, cudaEventElapsedTime(&ms, device->events[0], device->events[1]),
                           "timing"));
    *ns = (double)ms * 1e6 / ((double)launches * (double)replay->runs);
    /* Events tell half a microsecond: never a cost of 0. */
    return *ns > 0.0 ? GRAFT_OK
                     : GRAFT_FAIL(env, GRAFT_INTERNAL, "CUDA: events say that no time has passed");
}

graft_status cuda_device_time(graft_env *env, graft_device *device, graft_device_body body,
                              void *context, uint32_t runs, double *ns)
{
    cuda_replay replay;
    graft_status status = cuda_replay_open(env, device, body, context, runs, &replay);
    if (status == GRAFT_OK) {
        status = cuda_replay_time(env, &replay, runs, ns);
        cuda_replay_close(&replay);
    }
    return status;
}

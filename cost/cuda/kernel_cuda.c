/* kernel_cuda.c - implementations on a GPU: listed, opened, bound, run (see kernel.h).
 *
 * A name is a family's, and behind it the engine's: "cudnn:e10:1a2b3c4d", "graft". Engines are
 * those that cuDNN proposes for the operation graph here and now; a name that is proposed no more,
 * by another version of the library, is refused, and the database knows the version. */
#include "cost/cuda/device_cuda.h"

#include "cost/measure/clock.h"
#include "graph/base/bytes.h"
#include "graph/base/file.h"
#include "graph/base/log.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 256 };

static size_t round_up(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

/* -------------------------------------------------------------- life time */

void cuda_kernel_close(graft_kernel *kernel)
{
    for (uint32_t i = 0; i < TURNS_MOST; i++) {
        cudnn_destroy(kernel->variants[i]);
    }
    if (kernel->has_graph && kernel->recipe == NULL) {
        cudnn_graph_close(&kernel->graph);
    }
    cuda_recipe_release(kernel->recipe);
    for (uint32_t i = 0; i < kernel->operand_count; i++) {
        cuda_device_release(kernel->device, kernel->operands[i].copies);
        cuda_pack_release(kernel->device, kernel->operands[i].pack);
    }
    free(kernel);
}

/* What cuDNN proposes for a kernel's graph, and plans, are kept under the family and signature. */
static graft_status obtain_recipe(graft_env *env, graft_kernel *k, const cuda_family *family)
{
    GRAFT_SCOPED(env->scratch);
    graft_buffer text = {.arena = env->scratch};
    graft_signature_print(&k->signature, &text);
    k->graph.family = family->name;
    const char *key = graft_arena_printf(env->scratch, "%s of %s", family->name, text.data);
    return cuda_recipe_obtain(env, &k->device->cache, key, &k->graph, &k->recipe);
}

/* What is listed or opened; `name` NULL: all, or whatever works first. */
typedef struct {
    const graft_signature *signature;
    const char *name;
    const float *const *constants; /* NULL: dry. */
    const cudnn_target *target;
} wanted_kernel;

static graft_status lower_kernel(graft_env *env, graft_device *device, const wanted_kernel *wanted,
                                 const cuda_family *family, graft_kernel **kernel)
{
    const graft_signature *signature = wanted->signature;
    const float *const *constants = wanted->constants;
    graft_kernel *k = calloc(1, sizeof(*k));
    if (k == NULL) {
        return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left for a kernel");
    }
    k->device = device;
    k->own_facts = &k->facts;
    k->target = wanted->target;
    k->way = family->way;
    k->signature = *signature;
    k->dry = constants == NULL || device->is_described;
    for (uint32_t i = 0; i < signature->input_count && constants != NULL; i++) {
        k->constants[i] = constants[i];
    }
    graft_status status = graft_signature_outputs(signature, k->outputs);
    if (status != GRAFT_OK) {
        status =
            GRAFT_FAIL(env, GRAFT_BAD_INPUT, "the operands of a signature do not fit together");
    } else {
        status = family->lower(env, k);
    }
    if (status == GRAFT_OK && k->has_graph) {
        status = obtain_recipe(env, k, family);
    }
    if (status == GRAFT_OK) {
        *kernel = k;
    } else {
        cuda_kernel_close(k);
    }
    return status;
}

/* ------------------------------------------------------------------ listing */

/* Names so far. `spare`: engines that families had room for and cuDNN did not offer; a family that
 * comes later may have as many more. A convolution with a clip is fused by few engines. */
typedef struct {
    graft_kernel_name *names;
    uint32_t count;
    uint32_t spare;
} listing;

static graft_status list_family(graft_env *env, graft_device *device, const wanted_kernel *wanted,
                                const cuda_family *family, listing *all)
{
    graft_kernel *kernel = NULL;
    cudnn_tag tags[GRAFT_KERNEL_MOST];
    uint32_t tag_count = 0;
    graft_status status = lower_kernel(env, device, wanted, family, &kernel);
    if (status != GRAFT_OK) {
        return status == GRAFT_UNSUPPORTED ? GRAFT_OK : status;
    }
    if (!kernel->has_graph) {
        (void)snprintf(all->names[all->count++].text, GRAFT_KERNEL_NAME_BYTES, "%s", family->name);
        goto done;
    }
    uint32_t room = GRAFT_KERNEL_MOST - 1 - all->count; /* One for our own. */
    uint32_t engines = family->engines_most + all->spare;
    uint32_t most = device->is_wide || engines > room ? room : engines;
    GRAFT_CHECK(cuda_recipe_tags(env, kernel->recipe, kernel->target, most, tags, &tag_count));
    for (uint32_t i = 0; i < tag_count; i++) {
        (void)snprintf(all->names[all->count++].text, GRAFT_KERNEL_NAME_BYTES, "%s:%s",
                       family->name, tags[i].text);
    }
    all->spare = engines > tag_count ? engines - tag_count : 0;
done:
    cuda_kernel_close(kernel);
    return status;
}

static graft_status refuse(graft_env *env, const graft_device *device,
                           const graft_signature *signature, const char *what)
{
    GRAFT_SCOPED(env->scratch);
    graft_buffer text = {.arena = env->scratch};
    graft_signature_print(signature, &text);
    return GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "device '%s' has no %s of %s", device->head.name,
                      what, text.data);
}

static graft_status list_names(graft_env *env, graft_device *device, const cudnn_target *target,
                               const graft_signature *signature,
                               graft_kernel_name names[GRAFT_KERNEL_MOST], uint32_t *count)
{
    graft_status status = GRAFT_OK;
    const wanted_kernel wanted = {.signature = signature, .target = target};
    listing all = {.names = names};
    if (!device->is_described) {
        GRAFT_CHECK(cuda_status(env, cudaSetDevice(device->gpu), "choosing the GPU"));
    }
    for (uint32_t i = 0; i < cuda_family_count() && all.count < GRAFT_KERNEL_MOST; i++) {
        GRAFT_CHECK(list_family(env, device, &wanted, cuda_family_at(i), &all));
    }
    if (all.count == 0) {
        status = refuse(env, device, signature, "implementation");
    }
done:
    *count = all.count;
    return status;
}

/* Names of a described device, too. */
graft_status cuda_kernel_list(graft_env *env, graft_device *device,
                              const graft_signature *signature,
                              graft_kernel_name names[GRAFT_KERNEL_MOST], uint32_t *count)
{
    return list_names(env, device, &device->target, signature, names, count);
}

/* ------------------------------------------------------------------ opening */

/* The engine part of "family:engine" when `name` is of this family, "" for one without engines;
 * NULL when it is another's. */
static const char *match_family(const cuda_family *family, const char *name)
{
    size_t size = strlen(family->name);
    if (strncmp(name, family->name, size) != 0 || (name[size] != ':' && name[size] != '\0')) {
        return NULL;
    }
    return name[size] == ':' ? name + size + 1 : name + size;
}

static graft_status plan_kernel(graft_env *env, graft_kernel *k, const char *engine)
{
    size_t bytes = 0;
    if (!k->has_graph) {
        return GRAFT_OK;
    }
    const cudnn_target *target = k->target == NULL ? &k->device->target : k->target;
    GRAFT_PASS(cuda_recipe_plan(env, k->recipe, target, engine, &k->plan, &bytes));
    k->plan_offset = round_up(k->workspace_bytes);
    k->workspace_bytes = k->plan_offset + bytes;
    return GRAFT_OK;
}

static graft_status open_family(graft_env *env, graft_device *device, const wanted_kernel *wanted,
                                const cuda_family *family, graft_kernel **kernel)
{
    const char *name = wanted->name;
    const char *engine = name == NULL ? NULL : match_family(family, name);
    graft_kernel *k = NULL;
    if (name != NULL && (engine == NULL || (engine[0] == '\0') != (family->engines_most == 0))) {
        return GRAFT_UNSUPPORTED;
    }
    uint64_t start_ns = graft_cost_clock_ns(2);
    graft_status status = lower_kernel(env, device, wanted, family, &k);
    if (status != GRAFT_OK) {
        return status;
    }
    k->facts.pack_ns = graft_cost_clock_ns(2) - start_ns;
    status = plan_kernel(env, k, engine);
    if (status != GRAFT_OK) {
        cuda_kernel_close(k);
        return status;
    }
    /* Callers align to 64 bytes, cuBLASLt behind cuDNN counts on what cudaMalloc gives: 256. */
    k->facts.workspace_bytes = k->workspace_bytes > 0 ? k->workspace_bytes + ALIGNMENT : 0;
    (void)snprintf(k->facts.name, sizeof(k->facts.name), "%s", name == NULL ? family->name : name);
    *kernel = k;
    return GRAFT_OK;
}

static graft_status open_wanted(graft_env *env, graft_device *device, const wanted_kernel *wanted,
                                graft_kernel **kernel)
{
    graft_status status = GRAFT_UNSUPPORTED;
    for (uint32_t i = 0; i < cuda_family_count() && status == GRAFT_UNSUPPORTED; i++) {
        status = open_family(env, device, wanted, cuda_family_at(i), kernel);
    }
    return status;
}

graft_status cuda_kernel_open(graft_env *env, graft_device *device,
                              const graft_signature *signature, const char *name,
                              const float *const *constants, graft_kernel **kernel)
{
    const wanted_kernel wanted = {
        .signature = signature, .name = name, .constants = constants, .target = &device->target};
    graft_status status = open_wanted(env, device, &wanted, kernel);
    if (status == GRAFT_UNSUPPORTED) {
        status = refuse(env, device, signature, name == NULL ? "implementation" : name);
    }
    return status;
}

graft_status cuda_kernel_plan_all(graft_env *env, graft_device *device, const cudnn_target *target,
                                  const graft_signature *signature)
{
    graft_kernel_name names[GRAFT_KERNEL_MOST];
    uint32_t count = 0;
    GRAFT_PASS(list_names(env, device, target, signature, names, &count));
    for (uint32_t i = 0; i < count && !graft_interrupted(); i++) {
        const wanted_kernel wanted = {
            .signature = signature, .name = names[i].text, .target = target};
        graft_kernel *kernel = NULL;
        if (open_wanted(env, device, &wanted, &kernel) == GRAFT_OK) {
            cuda_kernel_close(kernel);
        }
        graft_env_clear(env); /* Who asks for it is told. */
    }
    return GRAFT_OK;
}

static void *align_workspace(void *workspace)
{
    char *start = workspace;
    return start + (ALIGNMENT - (uintptr_t)start % ALIGNMENT) % ALIGNMENT;
}

/* ------------------------------------------------------------ weight copies */

static graft_status copy_operand(graft_env *env, graft_kernel *k, kernel_operand *operand)
{
    size_t step = round_up(operand->bytes);
    GRAFT_PASS(cuda_device_allocate(env, k->device, step * (k->turn_count - 1), &operand->copies));
    for (uint32_t t = 0; t + 1 < k->turn_count; t++) {
        GRAFT_PASS(cuda_status(env,
                               cudaMemcpyAsync((char *)operand->copies + step * t,
                                               operand->pack->data, operand->bytes,
                                               cudaMemcpyDeviceToDevice, k->device->stream),
                               "copying weights"));
    }
    return GRAFT_OK;
}

/* Copies are whole here. */
graft_status cuda_kernel_copy_weights(graft_env *env, graft_kernel *kernel, uint32_t count,
                                      double part)
{
    (void)part;
    if (kernel->turn_count > 0 || count < 2) {
        return GRAFT_OK;
    }
    kernel->turn_count = count < TURNS_MOST ? count : TURNS_MOST;
    for (uint32_t i = 0; i < kernel->operand_count; i++) {
        if (kernel->operands[i].pack != NULL && kernel->operands[i].bytes >= CUDA_LEAST_COPIED) {
            GRAFT_PASS(copy_operand(env, kernel, &kernel->operands[i]));
        }
    }
    return GRAFT_OK;
}

uint32_t cuda_kernel_turns(size_t bytes, size_t cache_bytes)
{
    size_t wanted = bytes == 0 ? 1 : 2 * cache_bytes / bytes + 1;
    return (uint32_t)(wanted < TURNS_MOST ? wanted : TURNS_MOST);
}

uint32_t cuda_kernel_turn_count(const graft_kernel *kernel)
{
    return kernel->turn_count > 0 ? kernel->turn_count : 1;
}

void cuda_kernel_turn(graft_kernel *kernel)
{
    if (kernel->turn_count > 0) {
        kernel->turn = (kernel->turn + 1) % kernel->turn_count;
    }
}

/* ------------------------------------------------------------------ binding */

static void *place_at(const graft_kernel *k, uint32_t operand, uint32_t turn)
{
    const kernel_operand *o = &k->operands[operand];
    return o->copies == NULL || turn == 0 ? o->place
                                          : (char *)o->copies + round_up(o->bytes) * (turn - 1);
}

static graft_status bind_plan(graft_env *env, graft_kernel *k, const kernel_stage *stage,
                              void *workspace)
{
    uint32_t turns = k->turn_count > 0 ? k->turn_count : 1;
    int64_t uids[STAGE_OPERANDS];
    void *pointers[STAGE_OPERANDS];
    for (uint32_t t = 0; t < turns; t++) {
        for (uint32_t i = 0; i < stage->operand_count; i++) {
            uids[i] = stage->operands[i] + 1;
            pointers[i] = place_at(k, stage->operands[i], t);
        }
        cudnn_destroy(k->variants[t]);
        k->variants[t] = NULL;
        GRAFT_PASS(cudnn_variant_pack(env, stage->operand_count, uids, pointers,
                                      (char *)workspace + k->plan_offset, &k->variants[t]));
    }
    return GRAFT_OK;
}

graft_status cuda_kernel_bind(graft_env *env, graft_kernel *kernel, const float *const *inputs,
                              float *const *outputs, void *workspace)
{
    if (kernel->dry) {
        return refuse(env, kernel->device, &kernel->signature, "memory for the operands");
    }
    workspace = align_workspace(workspace);
    for (uint32_t i = 0; i < kernel->operand_count; i++) {
        kernel_operand *o = &kernel->operands[i];
        o->place = o->role == ROLE_INPUT       ? graft_borrow(inputs[o->slot])
                   : o->role == ROLE_OUTPUT    ? (void *)outputs[o->slot]
                   : o->role == ROLE_WORKSPACE ? (char *)workspace + o->offset
                   : o->role == ROLE_FIXED     ? o->pack->data
                                               : &kernel->scalars[o->slot];
    }
    for (uint32_t i = 0; i < kernel->stage_count; i++) {
        if (kernel->stages[i].kind == STAGE_PLAN) {
            GRAFT_PASS(bind_plan(env, kernel, &kernel->stages[i], workspace));
        }
    }
    return GRAFT_OK;
}

/* ------------------------------------------------------------------ running */

/* What failed, with the operator that it failed for. The message of a plan is not the end: others
 * may do. */
static graft_status fail_run(graft_env *env, const graft_kernel *k, graft_status status,
                             const char *words)
{
    GRAFT_SCOPED(env->scratch);
    graft_buffer text = {.arena = env->scratch};
    graft_signature_print(&k->signature, &text);
    (void)GRAFT_FAIL(env, status, "%s failed: %s; for %s", k->facts.name, words, text.data);
    return status;
}

static graft_status run_job(graft_env *env, const graft_kernel *k, const kernel_stage *stage)
{
    const void *in[3] = {NULL};
    void *out[2] = {NULL};
    for (uint32_t i = 0; i < 5; i++) {
        if (stage->operands[i] != UINT32_MAX) {
            void *place = place_at(k, stage->operands[i], k->turn);
            if (i < 3) {
                in[i] = place;
            } else {
                out[i - 3] = place;
            }
        }
    }
    cudaError_t result =
        cuda_job_launch(&stage->job, k->device->target.type, in, out, k->device->stream);
    return result == cudaSuccess ? GRAFT_OK
                                 : fail_run(env, k, GRAFT_INTERNAL, cudaGetErrorString(result));
}

static cudnnStatus_t describe_rows(const graft_kernel *k, const kernel_stage *stage,
                                   cudnnTensorDescriptor_t tensor)
{
    return cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, cuda_data_type(k->device),
                                      (int)stage->softmax[0], (int)stage->softmax[1],
                                      (int)stage->softmax[2], 1);
}

static graft_status run_softmax(graft_env *env, const graft_kernel *k, const kernel_stage *stage)
{
    const float one = 1.0F;
    const float zero = 0.0F;
    cudnnTensorDescriptor_t tensor = NULL;
    cudnnStatus_t result = cudnnCreateTensorDescriptor(&tensor);
    if (result == CUDNN_STATUS_SUCCESS) {
        result = describe_rows(k, stage, tensor);
    }
    if (result == CUDNN_STATUS_SUCCESS) {
        result = cudnnSoftmaxForward(k->device->target.handle, CUDNN_SOFTMAX_ACCURATE,
                                     CUDNN_SOFTMAX_MODE_CHANNEL, &one, tensor,
                                     place_at(k, stage->operands[0], k->turn), &zero, tensor,
                                     place_at(k, stage->operands[1], k->turn));
    }
    if (tensor != NULL) {
        (void)cudnnDestroyTensorDescriptor(tensor);
    }
    return result == CUDNN_STATUS_SUCCESS
               ? GRAFT_OK
               : fail_run(env, k, GRAFT_UNSUPPORTED, cudnnGetErrorString(result));
}

static graft_status run_plan(graft_env *env, const graft_kernel *k)
{
    cudnnStatus_t result =
        cudnnBackendExecute(k->device->target.handle, k->plan, k->variants[k->turn]);
    return result == CUDNN_STATUS_SUCCESS
               ? GRAFT_OK
               : fail_run(env, k, GRAFT_UNSUPPORTED, cudnnGetErrorString(result));
}

graft_status cuda_kernel_run(graft_env *env, graft_kernel *kernel)
{
    graft_status status = GRAFT_OK;
    for (uint32_t i = 0; i < kernel->stage_count && status == GRAFT_OK; i++) {
        const kernel_stage *stage = &kernel->stages[i];
        status = stage->kind == STAGE_JOB    ? run_job(env, kernel, stage)
                 : stage->kind == STAGE_PLAN ? run_plan(env, kernel)
                                             : run_softmax(env, kernel, stage);
    }
    return status;
}

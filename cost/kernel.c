/* kernel.c - listing, opening, binding and running implementations on the processor (see kernel.h).
 */
#include "cost/device_cpu.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* oneDNN reads the number of threads from the calling thread's OpenMP settings. */
#include <omp.h>

/* In the order of preference when nothing has been measured. */
static const kernel_open families[] = {
    graft_cpu_open_conv_direct,   graft_cpu_open_conv_binary,    graft_cpu_open_conv_blocked,
    graft_cpu_open_conv_winograd, graft_cpu_open_plain_winograd, graft_cpu_open_matmul,
    graft_cpu_open_inner_product, graft_cpu_open_panels,         graft_cpu_open_eltwise,
    graft_cpu_open_binary,        graft_cpu_open_batch_norm,     graft_cpu_open_pool,
    graft_cpu_open_softmax,       graft_cpu_open_reduction,      graft_cpu_open_layer_norm,
    graft_cpu_open_concat,        graft_cpu_open_reorder,        graft_cpu_open_plain_norm,
    graft_cpu_open_plain,         graft_cpu_open_quantised,
};

enum { FAMILY_COUNT = sizeof(families) / sizeof(families[0]) };

void graft_cpu_kernel_close(graft_kernel *kernel)
{
    if (kernel == NULL) {
        return;
    }
    for (uint32_t i = 0; i < kernel->stage_count; i++) {
        graft_program_release_primitive(kernel->device, kernel->stages[i].shared);
    }
    for (uint32_t i = 0; i < kernel->operand_count; i++) {
        program_operand *operand = &kernel->operands[i];
        for (uint32_t t = 1; t < kernel->turn_count && operand->turns != NULL; t++) {
            (void)dnnl_memory_destroy(operand->turns[t]);
        }
        (void)dnnl_memory_destroy(operand->memory);
        free(operand->turns);
        free(operand->copies);
        free(operand->owned);
        graft_program_release(kernel->device, operand->pack);
    }
    free(kernel->state);
    free(kernel);
}

/* A kernel with nothing in it but what families read. */
static graft_status begin_kernel(graft_env *env, graft_device *device,
                                 const graft_signature *signature, bool dry, graft_kernel **kernel)
{
    graft_kernel *k = calloc(1, sizeof(*k));
    if (k == NULL) {
        return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left for a kernel");
    }
    k->device = device;
    k->signature = *signature;
    k->dry = dry;
    if (graft_signature_outputs(signature, k->outputs) != GRAFT_OK) {
        free(k);
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "the operands of a signature do not fit together");
    }
    *kernel = k;
    return GRAFT_OK;
}

/* Which family and variant a name stands for. */
typedef struct {
    char name[GRAFT_KERNEL_NAME_BYTES];
    uint32_t family;
    uint32_t variant;
} listing;

/* Without `constants` only the name is found out. */
static graft_status open_variant(graft_env *env, graft_device *device,
                                 const graft_signature *signature, const listing *which,
                                 const float *const *constants, graft_kernel **kernel)
{
    graft_kernel *k = NULL;
    graft_status status = begin_kernel(env, device, signature, constants == NULL, &k);
    if (status != GRAFT_OK) {
        return status;
    }
    for (uint32_t i = 0; i < signature->input_count && constants != NULL; i++) {
        k->constants[i] = constants[i];
    }
    status = families[which->family](env, k, which->variant);
    if (status == GRAFT_OK) {
        *kernel = k;
    } else {
        graft_cpu_kernel_close(k);
    }
    return status;
}

static bool is_listed(const listing *list, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(list[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Reference implementations are for correctness; they count only when there is nothing else. */
static bool is_reference(const char *name) { return strstr(name, ":ref") != NULL; }

bool graft_kernel_is_direct(const char *name)
{
    return strncmp(name, "winograd:", 9) != 0 && strncmp(name, "blocked:", 8) != 0 &&
           strncmp(name, "panels:", 7) != 0;
}

static graft_status list_family(graft_env *env, graft_device *device,
                                const graft_signature *signature, uint32_t family, listing *list,
                                uint32_t *count)
{
    for (uint32_t variant = 0; *count < GRAFT_KERNEL_MOST; variant++) {
        graft_kernel *kernel = NULL;
        const listing which = {.family = family, .variant = variant};
        graft_status status = open_variant(env, device, signature, &which, NULL, &kernel);
        if (status != GRAFT_OK) {
            return status == GRAFT_UNSUPPORTED ? GRAFT_OK : status;
        }
        if (!is_listed(list, *count, kernel->name)) {
            listing *entry = &list[(*count)++];
            memcpy(entry->name, kernel->name, sizeof(entry->name));
            entry->family = family;
            entry->variant = variant;
        }
        graft_cpu_kernel_close(kernel);
    }
    return GRAFT_OK;
}

static void drop_references(listing *list, uint32_t *count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *count; i++) {
        if (!is_reference(list[i].name)) {
            list[kept++] = list[i];
        }
    }
    *count = kept > 0 ? kept : *count; /* Nothing was moved when none was kept. */
}

static graft_status list_all(graft_env *env, graft_device *device, const graft_signature *signature,
                             listing *list, uint32_t *count)
{
    graft_status status = GRAFT_OK;
    graft_mark mark = graft_arena_mark(env->scratch);
    graft_buffer text = {.arena = env->scratch};
    *count = 0;
    omp_set_num_threads((int)device->head.thread_count);
    for (uint32_t family = 0; family < FAMILY_COUNT; family++) {
        GRAFT_CHECK(list_family(env, device, signature, family, list, count));
    }
    drop_references(list, count);
    if (*count == 0) {
        graft_signature_print(signature, &text);
        status = GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "device '%s' has no implementation of %s",
                            device->head.name, text.data);
    }
done:
    graft_arena_release(env->scratch, mark);
    return status;
}

graft_status graft_cpu_kernel_list(graft_env *env, graft_device *device,
                                   const graft_signature *signature,
                                   graft_kernel_name names[GRAFT_KERNEL_MOST], uint32_t *count)
{
    listing list[GRAFT_KERNEL_MOST];
    graft_status status = list_all(env, device, signature, list, count);
    for (uint32_t i = 0; i < *count && status == GRAFT_OK; i++) {
        memcpy(names[i].text, list[i].name, sizeof(names[i].text));
    }
    return status;
}

graft_status graft_cpu_kernel_open(graft_env *env, graft_device *device,
                                   const graft_signature *signature, const char *name,
                                   const float *const *constants, graft_kernel **kernel)
{
    graft_status status = GRAFT_OK;
    listing list[GRAFT_KERNEL_MOST];
    uint32_t count = 0;
    GRAFT_CHECK(list_all(env, device, signature, list, &count));
    for (uint32_t i = 0; i < count; i++) {
        if (name == NULL || strcmp(name, list[i].name) == 0) {
            status = open_variant(env, device, signature, &list[i], constants, kernel);
            if (status == GRAFT_UNSUPPORTED && name == NULL) {
                continue; /* It exists but cannot be created here. */
            }
            goto done;
        }
    }
    status = GRAFT_UNSUPPORTED;
done:
    if (status == GRAFT_UNSUPPORTED) {
        status = GRAFT_FAIL(env, status, "device '%s' has no implementation '%s' of this operator",
                            device->head.name, name == NULL ? "" : name);
    }
    return status;
}

const char *graft_cpu_kernel_name_of(const graft_kernel *kernel) { return kernel->name; }

size_t graft_cpu_kernel_workspace_bytes(const graft_kernel *kernel)
{
    return kernel->workspace_bytes;
}

size_t graft_cpu_kernel_packed_bytes(const graft_kernel *kernel) { return kernel->packed_bytes; }

uint64_t graft_cpu_kernel_pack_ns(const graft_kernel *kernel) { return kernel->pack_ns; }

/* ----------------------------------------------------------- weight copies */

enum { LEAST_COPIED_BYTES = 4096, COPY_ALIGNMENT = 64 };

static graft_status copy_operand(graft_env *env, graft_kernel *kernel, program_operand *operand)
{
    size_t size = dnnl_memory_desc_get_size(&operand->desc);
    size_t step = (size + COPY_ALIGNMENT - 1) / COPY_ALIGNMENT * COPY_ALIGNMENT;
    void *data = NULL;
    (void)dnnl_memory_get_data_handle(operand->memory, &data);
    dnnl_memory_t *turns = calloc(kernel->turn_count, sizeof(turns[0]));
    void *copies = aligned_alloc(COPY_ALIGNMENT, step * kernel->turn_count);
    if (turns == NULL || copies == NULL) {
        free(turns);
        free(copies);
        return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left for copies of weights");
    }
    operand->turns = turns;
    operand->copies = copies;
    operand->copy_step = step;
    operand->turns[0] = operand->memory;
    for (uint32_t t = 1; t < kernel->turn_count; t++) {
        char *copy = operand->copies + step * t;
        memcpy(copy, data, size);
        if (dnnl_memory_create(&operand->turns[t], &operand->desc, kernel->device->engine, copy) !=
            dnnl_success) {
            return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "oneDNN: no memory left for an operand");
        }
    }
    return GRAFT_OK;
}

/* Whether a run reads operand number `i`: a plain function what has been packed for it, a program
 * what its stages name. */
static bool is_read(const graft_kernel *kernel, uint32_t i)
{
    bool read = kernel->plain != NULL && kernel->operands[i].pack != NULL;
    for (uint32_t s = 0; s < kernel->stage_count; s++) {
        for (int a = 0; a < kernel->stages[s].arg_count; a++) {
            read = read || kernel->stages[s].operands[a] == i;
        }
    }
    return read;
}

graft_status graft_cpu_kernel_copy_weights(graft_env *env, graft_kernel *kernel, uint32_t count)
{
    graft_status status = GRAFT_OK;
    if (kernel->turn_count > 0 || count < 2) {
        return GRAFT_OK;
    }
    kernel->turn_count = count;
    for (uint32_t i = 0; i < kernel->operand_count; i++) {
        program_operand *operand = &kernel->operands[i];
        if (operand->role == ROLE_FIXED && operand->turns == NULL && is_read(kernel, i) &&
            dnnl_memory_desc_get_size(&operand->desc) >= LEAST_COPIED_BYTES) {
            GRAFT_CHECK(copy_operand(env, kernel, operand));
        }
    }
done:
    return status;
}

void graft_cpu_kernel_turn(graft_kernel *kernel)
{
    if (kernel->turn_count == 0) {
        return;
    }
    kernel->turn = (kernel->turn + 1) % kernel->turn_count;
    for (uint32_t i = 0; i < kernel->stage_count; i++) {
        program_stage *stage = &kernel->stages[i];
        for (int a = 0; a < stage->arg_count; a++) {
            const program_operand *operand = &kernel->operands[stage->operands[a]];
            if (operand->turns != NULL) {
                stage->args[a].memory = operand->turns[kernel->turn];
            }
        }
    }
}

static graft_status bind_operand(graft_env *env, const graft_kernel *kernel,
                                 program_operand *operand, void *workspace)
{
    void *place = NULL;
    if (operand->role == ROLE_INPUT) {
        memcpy(&place, &kernel->in[operand->slot], sizeof(place)); /* It is only read. */
    } else if (operand->role == ROLE_OUTPUT) {
        place = kernel->out[operand->slot];
    } else if (operand->role == ROLE_WORKSPACE) {
        place = (char *)workspace + operand->offset;
    } else {
        return GRAFT_OK;
    }
    operand->place = place;
    if (dnnl_memory_set_data_handle(operand->memory, place) != dnnl_success) {
        return GRAFT_FAIL(env, GRAFT_INTERNAL, "oneDNN: cannot bind an operand of %s",
                          kernel->name);
    }
    return GRAFT_OK;
}

graft_status graft_cpu_kernel_bind(graft_env *env, graft_kernel *kernel, const float *const *inputs,
                                   float *const *outputs, void *workspace)
{
    graft_status status = GRAFT_OK;
    const graft_signature *s = &kernel->signature;
    for (uint32_t k = 0; k < s->input_count; k++) {
        bool is_const = (s->const_mask >> k & 1u) != 0;
        kernel->in[k] = is_const ? kernel->constants[k] : inputs[k];
    }
    for (uint32_t k = 0; k < s->output_count; k++) {
        kernel->out[k] = outputs[k];
    }
    assert(s->in_place == 0 || kernel->in[3] == kernel->out[0]);
    for (uint32_t i = 0; i < kernel->operand_count; i++) {
        GRAFT_CHECK(bind_operand(env, kernel, &kernel->operands[i], workspace));
    }
done:
    return status;
}

graft_status graft_cpu_kernel_run(graft_env *env, graft_kernel *kernel)
{
    if (kernel->plain != NULL) {
        kernel->plain(kernel);
        return GRAFT_OK;
    }
    for (uint32_t i = 0; i < kernel->stage_count; i++) {
        const program_stage *stage = &kernel->stages[i];
        dnnl_status_t result = dnnl_primitive_execute(stage->primitive, kernel->device->stream,
                                                      stage->arg_count, stage->args);
        if (result != dnnl_success) {
            return GRAFT_FAIL(env, GRAFT_INTERNAL, "oneDNN: %s failed with status %d", kernel->name,
                              (int)result);
        }
    }
    return GRAFT_OK;
}

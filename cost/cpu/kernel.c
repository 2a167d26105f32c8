/* kernel.c - listing, opening, binding and running implementations on the processor (see kernel.h),
 * and the table of its back end (see backend.h). */
#include "cost/cpu/device_cpu.h"

#include "graph/base/bytes.h"
#include "graph/base/divisor.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* oneDNN reads the number of threads from the calling thread's OpenMP settings. */
#include <omp.h>

/* In the order of preference when nothing has been measured: those before the plain loops are as a
 * rule faster than these, those after them slower, reductions of short rows fifty times. */
static kernel_family *const families[] = {
    graft_cpu_open_conv_taps,      graft_cpu_open_conv_padded,    graft_cpu_open_conv_direct,
    graft_cpu_open_conv_binary,    graft_cpu_open_conv_blocked,   graft_cpu_open_conv_winograd,
    graft_cpu_open_plain_winograd, graft_cpu_open_conv_apart,     graft_cpu_open_conv_groups,
    graft_cpu_open_panels,         graft_cpu_open_matmul,         graft_cpu_open_inner_product,
    graft_cpu_open_tall_panels,    graft_cpu_open_swish,          graft_cpu_open_eltwise,
    graft_cpu_open_pool,           graft_cpu_open_softmax,        graft_cpu_open_plain_softmax,
    graft_cpu_open_layer_norm,     graft_cpu_open_plain_norm,     graft_cpu_open_reorder,
    graft_cpu_open_plain,          graft_cpu_open_vector_eltwise, graft_cpu_open_binary,
    graft_cpu_open_batch_norm,     graft_cpu_open_reduction,      graft_cpu_open_concat,
    graft_cpu_open_quantised,      graft_cpu_open_integers,       graft_cpu_open_bytes,
    graft_cpu_open_integer_sum,    graft_cpu_open_body,
};

enum { FAMILY_COUNT = sizeof(families) / sizeof(families[0]) };

static void close_kernel(graft_kernel *kernel)
{
    if (kernel == NULL) {
        return;
    }
    for (uint32_t i = 0; i < kernel->stage_count; i++) {
        graft_program_release_primitive(kernel->device, kernel->stages[i].shared);
    }
    for (uint32_t i = 0; i < kernel->operand_count; i++) {
        program_operand *operand = &kernel->operands[i];
        free(operand->owned);
        graft_program_release(kernel->device, operand->pack);
    }
    for (uint32_t i = 0; i < kernel->copied_count; i++) {
        free(kernel->copies[i].data);
    }
    free(kernel->state);
    free(kernel);
}

/* One for what is done before threads have met. */
static int count_threads(const graft_device *device, const graft_signature *signature)
{
    const bool small = graft_signature_flops(signature) < device->shared_from &&
                       graft_signature_bytes(signature) < device->shared_from;
    return small ? 1 : (int)device->head.thread_count;
}

/* A kernel with nothing in it but what families read. */
static graft_status begin_kernel(graft_env *env, graft_device *device,
                                 const graft_signature *signature, bool dry, graft_kernel **kernel)
{
    graft_kernel *k = malloc(sizeof(*k));
    if (k == NULL) {
        return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left for a kernel");
    }
    memset(k, 0, offsetof(graft_kernel, operands)); /* These are most of it, and set when added. */
    k->device = device;
    k->own_facts = &k->facts;
    k->signature = *signature;
    k->dry = dry;
    k->thread_count = count_threads(device, signature);
    omp_set_num_threads(k->thread_count);
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
        close_kernel(k);
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
static bool is_reference(const char *name)
{
    return strstr(name, ":ref") != NULL || strstr(name, ":bnorm_ref") != NULL;
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
        if (!is_listed(list, *count, kernel->facts.name)) {
            listing *entry = &list[(*count)++];
            memcpy(entry->name, kernel->facts.name, sizeof(entry->name));
            entry->family = family;
            entry->variant = variant;
        }
        close_kernel(kernel);
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
    GRAFT_SCOPED(env->scratch);
    graft_buffer text = {.arena = env->scratch};
    *count = 0;
    for (uint32_t family = 0; family < FAMILY_COUNT; family++) {
        GRAFT_PASS(list_family(env, device, signature, family, list, count));
    }
    drop_references(list, count);
    if (*count == 0) {
        graft_signature_print(signature, &text);
        return GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "device '%s' has no implementation of %s",
                          device->head.name, text.data);
    }
    return GRAFT_OK;
}

static graft_status list_kernels(graft_env *env, graft_device *device,
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

static program_found **found_list(graft_device *device, const graft_signature *signature)
{
    return &device->found[graft_signature_hash(signature, 0) % PROGRAM_FOUND_LISTS];
}

/* False where it was not looked for yet. */
static bool recall(graft_device *device, const graft_signature *signature, const char *name,
                   listing *which)
{
    GRAFT_LOCKED(&device->lock);
    const program_found *f = *found_list(device, signature);
    while (f != NULL &&
           (strcmp(f->name, name) != 0 || !graft_signature_equal(&f->signature, signature))) {
        f = f->next;
    }
    if (f != NULL) {
        *which = (listing){.family = f->family, .variant = f->variant};
    }
    return f != NULL;
}

static void remember(graft_device *device, const graft_signature *signature, const char *name,
                     const listing *which)
{
    GRAFT_LOCKED(&device->lock);
    program_found *f = calloc(1, sizeof(*f));
    program_found **list = found_list(device, signature);
    if (f != NULL) { /* Else it is looked for again. */
        *f = (program_found){*list, .signature = *signature, .family = which->family,
                             .variant = which->variant};
        (void)snprintf(f->name, sizeof(f->name), "%s", name);
        *list = f;
    }
}

static graft_status open_kernel(graft_env *env, graft_device *device,
                                const graft_signature *signature, const char *name,
                                const float *const *constants, graft_kernel **kernel)
{
    graft_status status = GRAFT_OK;
    listing list[GRAFT_KERNEL_MOST];
    uint32_t count = 0;
    const char *wanted = name == NULL ? "" : name;
    if (recall(device, signature, wanted, &list[0])) {
        return open_variant(env, device, signature, &list[0], constants, kernel);
    }
    GRAFT_CHECK(list_all(env, device, signature, list, &count));
    for (uint32_t i = 0; i < count; i++) {
        if (name == NULL || strcmp(name, list[i].name) == 0) {
            status = open_variant(env, device, signature, &list[i], constants, kernel);
            if (status == GRAFT_UNSUPPORTED && name == NULL) {
                continue; /* It exists but cannot be created here. */
            }
            if (status == GRAFT_OK) {
                remember(device, signature, wanted, &list[i]);
            }
            goto done;
        }
    }
    status = GRAFT_UNSUPPORTED;
done:
    if (status == GRAFT_UNSUPPORTED) {
        status = GRAFT_FAIL(env, status, "device '%s' has no implementation '%s' of this operator",
                            device->head.name, wanted);
    }
    return status;
}

/* ----------------------------------------------------------- weight copies */

enum { COPY_ALIGNMENT = 64 };

static size_t round_up(size_t bytes)
{
    return (bytes + COPY_ALIGNMENT - 1) / COPY_ALIGNMENT * COPY_ALIGNMENT;
}

/* `given`: what is copied, of `size` bytes. */
static graft_status add_copies(graft_env *env, graft_kernel *kernel, program_copies copies,
                               const void *given, size_t size, double part)
{
    assert(kernel->copied_count < PROGRAM_COPIES);
    copies.step = round_up((size_t)((double)size * part));
    copies.bytes = copies.step * (kernel->turn_count - 1) + round_up(size);
    copies.data = aligned_alloc(COPY_ALIGNMENT, copies.bytes);
    if (copies.data == NULL) {
        return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left for copies of weights");
    }
    for (uint32_t t = 0; t < kernel->turn_count; t++) {
        memcpy(copies.data + copies.step * t, given, size);
    }
    kernel->copies[kernel->copied_count++] = copies;
    return GRAFT_OK;
}

static void place_copies(graft_kernel *kernel)
{
    for (uint32_t i = 0; i < kernel->copied_count; i++) {
        const program_copies *copies = &kernel->copies[i];
        void *place = copies->data + copies->step * kernel->turn;
        if (copies->is_operand) {
            kernel->places[copies->number] = place;
        } else {
            kernel->in[copies->number] = place;
        }
    }
}

/* Whether a run reads operand number `i`: a plain function what has been packed for it, a program
 * what its stages name. */
static bool is_read(const graft_kernel *kernel, uint32_t i)
{
    bool read = kernel->plain != NULL && kernel->operands[i].pack != NULL;
    for (uint32_t s = 0; s < kernel->stage_count; s++) {
        for (uint32_t a = 0; a < kernel->stages[s].shared->arg_count; a++) {
            read = read || kernel->stages[s].operands[a] == i;
        }
    }
    return read;
}

/* Whether a plain function reads const input `k` as it was given, not packed. */
static bool is_read_plainly(const graft_kernel *kernel, uint32_t k)
{
    bool read = kernel->plain != NULL && (kernel->signature.const_mask >> k & 1u) != 0;
    for (uint32_t i = 0; i < kernel->operand_count; i++) {
        read = read && !(kernel->operands[i].role == ROLE_FIXED && kernel->operands[i].slot == k);
    }
    return read;
}

/* From one turn to the next: far, so that nothing is fetched in advance that is only next in
 * memory, and through all of them. */
static uint32_t choose_stride(uint32_t count)
{
    uint32_t stride =
        (uint32_t)(0.618 * count); /* Below it and at least 1, as count is at least 2. */
    while (graft_greatest_divisor(stride, count) != 1) {
        stride++;
    }
    return stride;
}

static graft_status copy_weights(graft_env *env, graft_kernel *kernel, uint32_t count, double part)
{
    if (kernel->turn_count > 0 || count < 2) {
        return GRAFT_OK;
    }
    kernel->turn_count = count;
    kernel->turn_stride = choose_stride(count);
    for (uint32_t i = 0; i < kernel->operand_count; i++) {
        const program_operand *operand = &kernel->operands[i];
        const program_copies copies = {.is_operand = true, .number = (uint8_t)i};
        if (operand->role == ROLE_FIXED && is_read(kernel, i)) {
            GRAFT_PASS(add_copies(env, kernel, copies, operand->data,
                                  dnnl_memory_desc_get_size(&operand->desc), part));
        }
    }
    for (uint32_t k = 0; k < kernel->signature.input_count; k++) {
        const program_copies copies = {.number = (uint8_t)k};
        if (is_read_plainly(kernel, k)) {
            GRAFT_PASS(add_copies(env, kernel, copies, kernel->constants[k],
                                  (size_t)graft_shape_bytes(&kernel->signature.inputs[k]), part));
        }
    }
    place_copies(kernel);
    return GRAFT_OK;
}

static void turn_kernel(graft_kernel *kernel)
{
    if (kernel->turn_count > 0) {
        kernel->turn += kernel->turn_stride;
        kernel->turn -= kernel->turn < kernel->turn_count ? 0 : kernel->turn_count;
        place_copies(kernel);
    }
}

static void recall_kernel(graft_kernel *kernel)
{
    for (uint32_t i = 0; i < kernel->copied_count; i++) {
        const program_copies *copies = &kernel->copies[i];
        for (size_t at = 0; at < copies->bytes; at += COPY_ALIGNMENT) {
            (void)*(const volatile char *)(copies->data + at);
        }
    }
}

static void bind_operand(graft_kernel *kernel, uint32_t number, void *workspace)
{
    const program_operand *operand = &kernel->operands[number];
    if (operand->role == ROLE_INPUT) {
        kernel->places[number] = graft_borrow(kernel->in[operand->slot]);
    } else if (operand->role == ROLE_OUTPUT) {
        kernel->places[number] = kernel->out[operand->slot];
    } else if (operand->role == ROLE_WORKSPACE) {
        kernel->places[number] = (char *)workspace + operand->offset;
    }
}

static graft_status bind_kernel(graft_env *env, graft_kernel *kernel, const float *const *inputs,
                                float *const *outputs, void *workspace)
{
    const graft_signature *s = &kernel->signature;
    (void)env;
    for (uint32_t k = 0; k < s->input_count; k++) {
        bool is_const = (s->const_mask >> k & 1u) != 0;
        kernel->in[k] = is_const ? kernel->constants[k] : inputs[k];
    }
    place_copies(kernel);
    for (uint32_t k = 0; k < s->output_count; k++) {
        kernel->out[k] = outputs[k];
    }
    assert(s->in_place == 0 || kernel->in[3] == kernel->out[0]);
    for (uint32_t i = 0; i < kernel->operand_count; i++) {
        bind_operand(kernel, i, workspace);
    }
    return GRAFT_OK;
}

/* The library's objects lie where the last run of any kernel of this signature left them. */
static dnnl_status_t run_stage(const graft_kernel *kernel, const program_stage *stage)
{
    program_primitive *shared = stage->shared;
    for (uint32_t a = 0; a < shared->arg_count; a++) {
        void *place = kernel->places[stage->operands[a]];
        if (shared->bound[a] != place) {
            dnnl_status_t result = dnnl_memory_set_data_handle(shared->args[a].memory, place);
            if (result != dnnl_success) {
                return result;
            }
            shared->bound[a] = place;
        }
    }
    return dnnl_primitive_execute(shared->primitive, kernel->device->stream, (int)shared->arg_count,
                                  shared->args);
}

static graft_status run_kernel(graft_env *env, graft_kernel *kernel)
{
    if (kernel->plain != NULL) {
        kernel->plain(kernel);
        return GRAFT_OK;
    }
    omp_set_num_threads(kernel->thread_count);
    for (uint32_t i = 0; i < kernel->stage_count; i++) {
        dnnl_status_t result = run_stage(kernel, &kernel->stages[i]);
        if (result != dnnl_success) {
            return GRAFT_FAIL(env, GRAFT_INTERNAL, "oneDNN: %s failed with status %d",
                              kernel->facts.name, (int)result);
        }
    }
    return GRAFT_OK;
}

const graft_backend graft_backend_cpu = {
    .abi = GRAFT_BACKEND_ABI,
    .open = graft_cpu_open,
    .close = graft_cpu_close,
    .kernel_list = list_kernels,
    .kernel_open = open_kernel,
    .kernel_close = close_kernel,
    .kernel_copy_weights = copy_weights,
    .kernel_turn = turn_kernel,
    .kernel_recall = recall_kernel,
    .kernel_bind = bind_kernel,
    .kernel_run = run_kernel,
};

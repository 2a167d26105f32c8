/* program.c - building blocks of oneDNN programs (see program.h). */
#include "cost/cpu/program.h"

#include "graph/base/bytes.h"
#include "graph/base/log.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

graft_status graft_program_status(graft_env *env, dnnl_status_t status, const char *what)
{
    switch (status) {
    case dnnl_success:
        return GRAFT_OK;
    case dnnl_unimplemented:
    case dnnl_iterator_ends:
    case dnnl_invalid_arguments: /* Also how 2.6 says that an algorithm does not fit a shape. */
        return GRAFT_UNSUPPORTED;
    case dnnl_out_of_memory:
        return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "oneDNN: %s: out of memory", what);
    case dnnl_runtime_error:
    case dnnl_not_required:
    default:
        return GRAFT_FAIL(env, GRAFT_INTERNAL, "oneDNN: %s failed with status %d", what,
                          (int)status);
    }
}

graft_status graft_program_plain(graft_env *env, graft_kernel *kernel, const char *name,
                                 plain_run run, const void *state, size_t bytes)
{
    (void)snprintf(kernel->facts.name, sizeof(kernel->facts.name), "%s", name);
    kernel->plain = run;
    if (bytes > 0 && !kernel->dry) {
        kernel->state = malloc(bytes);
        if (kernel->state == NULL) {
            return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left for a kernel");
        }
        memcpy(kernel->state, state, bytes);
    }
    return GRAFT_OK;
}

/* ------------------------------------------------------------- descriptors */

/* Images of bytes are only moved. */
static dnnl_data_type_t type_of(const graft_shape *shape)
{
    return shape->dtype == GRAFT_DTYPE_I8   ? dnnl_s8
           : shape->dtype == GRAFT_DTYPE_U8 ? dnnl_u8
                                            : dnnl_f32;
}

static void describe_blocked(const graft_shape *shape, dnnl_memory_desc_t *desc)
{
    dnnl_dims_t dims = {shape->dims[0], shape->dims[1], shape->dims[2], shape->dims[3]};
    dnnl_status_t status =
        dnnl_memory_desc_init_by_tag(desc, 4, dims, type_of(shape), dnnl_nChw16c);
    assert(status == dnnl_success && graft_layout_fits(shape, GRAFT_LAYOUT_BLOCKED));
    (void)status;
}

void graft_program_describe_ranked(const graft_shape *shape, uint32_t layout, uint32_t rank,
                                   dnnl_memory_desc_t *desc)
{
    int64_t strides[GRAFT_MAX_RANK];
    dnnl_dims_t dims;
    dnnl_dims_t steps;
    uint32_t added = rank - shape->rank;
    assert(rank >= shape->rank && rank >= 1 && rank <= DNNL_MAX_NDIMS);
    if (layout == GRAFT_LAYOUT_BLOCKED) {
        assert(rank == shape->rank);
        describe_blocked(shape, desc);
        return;
    }
    graft_layout_strides(shape, layout, strides);
    int64_t elements = (int64_t)graft_shape_elements(shape);
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = i < added ? 1 : shape->dims[i - added];
        steps[i] = i < added ? elements : strides[i - added];
    }
    dnnl_status_t status =
        dnnl_memory_desc_init_by_strides(desc, (int)rank, dims, type_of(shape), steps);
    assert(status == dnnl_success);
    (void)status;
}

void graft_program_describe(const graft_shape *shape, uint32_t layout, dnnl_memory_desc_t *desc)
{
    graft_program_describe_ranked(shape, layout, shape->rank == 0 ? 1 : shape->rank, desc);
}

void graft_program_describe_dims(uint32_t rank, const int64_t *dims, bool any,
                                 dnnl_memory_desc_t *desc)
{
    dnnl_dims_t sizes;
    memcpy(sizes, dims, rank * sizeof(dims[0]));
    dnnl_status_t status =
        any ? dnnl_memory_desc_init_by_tag(desc, (int)rank, sizes, dnnl_f32, dnnl_format_tag_any)
            : dnnl_memory_desc_init_by_strides(desc, (int)rank, sizes, dnnl_f32, NULL);
    assert(status == dnnl_success);
    (void)status;
}

void graft_program_describe_input(const graft_kernel *kernel, uint32_t k, dnnl_memory_desc_t *desc)
{
    graft_program_describe(&kernel->signature.inputs[k], kernel->signature.in_layouts[k], desc);
}

void graft_program_describe_output(const graft_kernel *kernel, uint32_t k, dnnl_memory_desc_t *desc)
{
    graft_program_describe(&kernel->outputs[k], kernel->signature.out_layouts[k], desc);
}

/* -------------------------------------------------------------- attributes */

program_attr graft_program_attr_open(void)
{
    program_attr attr = {.post_ops = NULL};
    dnnl_status_t status = dnnl_primitive_attr_create(&attr.attr);
    if (status == dnnl_success) {
        status = dnnl_primitive_attr_set_scratchpad_mode(attr.attr, dnnl_scratchpad_mode_user);
    }
    if (status == dnnl_success) {
        status = dnnl_post_ops_create(&attr.post_ops);
    }
    assert(status == dnnl_success); /* A few bytes; nothing else can go wrong. */
    (void)status;
    return attr;
}

void graft_program_attr_close(const program_attr *attr)
{
    (void)dnnl_post_ops_destroy(attr->post_ops);
    (void)dnnl_primitive_attr_destroy(attr->attr);
}

void graft_program_forget(const dnnl_primitive_desc_t *chosen)
{
    (void)dnnl_primitive_desc_destroy(*chosen);
}

graft_status graft_program_attr_sum(graft_env *env, program_attr *attr)
{
    return graft_program_status(env, dnnl_post_ops_append_sum(attr->post_ops, 1.0F), "sum");
}

graft_status graft_program_attr_binary(graft_env *env, program_attr *attr,
                                       const dnnl_memory_desc_t *operand)
{
    return graft_program_status(
        env, dnnl_post_ops_append_binary(attr->post_ops, dnnl_binary_add, operand), "binary");
}

const program_function *graft_program_activation(int32_t activation)
{
    static const program_function functions[GRAFT_ACT_COUNT] = {
        [GRAFT_ACT_NONE] = {dnnl_alg_kind_undef,   0.0F, 0.0F},
        [GRAFT_ACT_RELU] = {dnnl_eltwise_relu,     0.0F, 0.0F},
        [GRAFT_ACT_RELU6] = {dnnl_eltwise_clip,     0.0F, 6.0F},
        [GRAFT_ACT_SIGMOID] = {dnnl_eltwise_logistic, 0.0F, 0.0F},
        [GRAFT_ACT_TANH] = {dnnl_eltwise_tanh,     0.0F, 0.0F},
    };
    bool is_one = activation > GRAFT_ACT_NONE && activation < GRAFT_ACT_COUNT;
    return is_one ? &functions[activation] : NULL;
}

graft_status graft_program_attr_activation(graft_env *env, program_attr *attr, int32_t activation)
{
    const program_function *f = graft_program_activation(activation);
    if (f == NULL) {
        return GRAFT_OK;
    }
    return graft_program_status(
        env, dnnl_post_ops_append_eltwise(attr->post_ops, 1.0F, f->kind, f->alpha, f->beta),
        "activation");
}

graft_status graft_program_attr_finish(graft_env *env, program_attr *attr)
{
    return graft_program_status(env, dnnl_primitive_attr_set_post_ops(attr->attr, attr->post_ops),
                                "post-operations");
}

/* ---------------------------------------------------------------- choosing */

graft_status graft_program_choose(graft_env *env, graft_kernel *kernel, const void *op_desc,
                                  const program_attr *attr, uint32_t variant,
                                  dnnl_primitive_desc_t *chosen)
{
    dnnl_primitive_desc_iterator_t iterator = NULL;
    dnnl_status_t result = dnnl_primitive_desc_iterator_create(&iterator, op_desc, attr->attr,
                                                               kernel->device->engine, NULL);
    for (uint32_t i = 0; i < variant && result == dnnl_success; i++) {
        result = dnnl_primitive_desc_iterator_next(iterator);
    }
    if (result == dnnl_success) {
        *chosen = dnnl_primitive_desc_iterator_fetch(iterator);
        result = *chosen == NULL ? dnnl_out_of_memory : dnnl_success;
    }
    if (iterator != NULL) {
        (void)dnnl_primitive_desc_iterator_destroy(iterator);
    }
    return graft_program_status(env, result, "choosing an implementation");
}

void graft_program_name(graft_kernel *kernel, const char *family, const_dnnl_primitive_desc_t pd)
{
    const char *implementation = "unnamed";
    (void)dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&implementation);
    (void)snprintf(kernel->facts.name, sizeof(kernel->facts.name), "%s:%s", family, implementation);
}

const dnnl_memory_desc_t *graft_program_query(const_dnnl_primitive_desc_t pd, dnnl_query_t what,
                                              int index)
{
    return dnnl_primitive_desc_query_md(pd, what, index);
}

/* ---------------------------------------------------------------- operands */

static uint32_t add_operand(graft_kernel *kernel, const dnnl_memory_desc_t *desc, operand_role role,
                            uint32_t slot)
{
    assert(kernel->operand_count < PROGRAM_OPERANDS);
    program_operand *operand = &kernel->operands[kernel->operand_count];
    *operand = (program_operand){.role = (uint8_t)role, .slot = (uint8_t)slot, .desc = *desc};
    if (role == ROLE_WORKSPACE) {
        size_t bytes = dnnl_memory_desc_get_size(desc);
        operand->offset = kernel->facts.workspace_bytes;
        kernel->facts.workspace_bytes += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    return kernel->operand_count++;
}

/* A const one. */
static uint32_t add_fixed(graft_kernel *kernel, const dnnl_memory_desc_t *desc, uint32_t slot,
                          void *data)
{
    uint32_t number = add_operand(kernel, desc, ROLE_FIXED, slot);
    kernel->operands[number].data = data;
    kernel->places[number] = data;
    return number;
}

static graft_status create_memory(graft_env *env, const graft_kernel *kernel,
                                  const dnnl_memory_desc_t *desc, void *data, dnnl_memory_t *memory)
{
    return graft_program_status(env, dnnl_memory_create(memory, desc, kernel->device->engine, data),
                                "a memory object");
}

static graft_status run_reorder(graft_env *env, const graft_kernel *kernel, dnnl_memory_t from,
                                dnnl_memory_t to)
{
    graft_status status = GRAFT_OK;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_t primitive = NULL;
    const dnnl_memory_desc_t *source = NULL;
    const dnnl_memory_desc_t *target = NULL;
    dnnl_engine_t engine = kernel->device->engine;
    (void)dnnl_memory_get_memory_desc(from, &source);
    (void)dnnl_memory_get_memory_desc(to, &target);
    dnnl_exec_arg_t args[2] = {
        {DNNL_ARG_FROM, from},
        {DNNL_ARG_TO,   to  }
    };
    GRAFT_CHECK(graft_program_status(
        env, dnnl_reorder_primitive_desc_create(&pd, source, engine, target, engine, NULL),
        "choosing a reorder"));
    GRAFT_CHECK(graft_program_status(env, dnnl_primitive_create(&primitive, pd), "a reorder"));
    GRAFT_CHECK(graft_program_status(
        env, dnnl_primitive_execute(primitive, kernel->device->stream, 2, args), "a reorder"));
done:
    (void)dnnl_primitive_destroy(primitive);
    (void)dnnl_primitive_desc_destroy(pd);
    return status;
}

/* ----------------------------------------------------------- packed weights */

static program_pack *find_pack(const graft_device *device, const float *given,
                               const dnnl_memory_desc_t *have, const dnnl_memory_desc_t *want)
{
    for (program_pack *p = device->packs; p != NULL; p = p->next) {
        if (p->given == given && dnnl_memory_desc_equal(&p->have, have) != 0 &&
            dnnl_memory_desc_equal(&p->want, want) != 0) {
            return p;
        }
    }
    return NULL;
}

static program_pack *new_pack(const float *given, const dnnl_memory_desc_t *have,
                              const dnnl_memory_desc_t *want)
{
    program_pack *pack = calloc(1, sizeof(*pack));
    if (pack == NULL) {
        return NULL;
    }
    size_t bytes = (dnnl_memory_desc_get_size(want) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    pack->data = aligned_alloc(ALIGNMENT, bytes == 0 ? ALIGNMENT : bytes);
    if (pack->data == NULL) {
        free(pack);
        return NULL;
    }
    pack->given = given;
    pack->have = *have;
    pack->want = *want;
    pack->bytes = bytes;
    return pack;
}

/* What a const operand is packed from and into; by the library when `fill` is NULL. */
typedef struct {
    const dnnl_memory_desc_t *have;
    const dnnl_memory_desc_t *want;
    program_fill fill;
} pack_form;

/* Converts what is given into a pack that is new. */
static graft_status fill_pack(graft_env *env, graft_kernel *kernel, program_fill fill,
                              program_pack *pack)
{
    graft_status status = GRAFT_OK;
    dnnl_memory_t from = NULL;
    dnnl_memory_t to = NULL;
    uint64_t start_ns = graft_clock_ns();
    if (fill != NULL) {
        fill(kernel, pack->given, pack->data);
    } else {
        GRAFT_CHECK(create_memory(env, kernel, &pack->have, graft_borrow(pack->given), &from));
        GRAFT_CHECK(create_memory(env, kernel, &pack->want, pack->data, &to));
        GRAFT_CHECK(run_reorder(env, kernel, from, to));
    }
    kernel->facts.pack_ns += graft_clock_ns() - start_ns;
    kernel->facts.packed_bytes += pack->bytes;
done:
    (void)dnnl_memory_destroy(from);
    (void)dnnl_memory_destroy(to);
    return status;
}

/* The pack of const input `k` in the form `want`, found or made; the caller is one of its users. */
static graft_status obtain_pack(graft_env *env, graft_kernel *kernel, uint32_t k,
                                const pack_form *form, program_pack **result)
{
    graft_status status = GRAFT_OK;
    graft_device *device = kernel->device;
    const float *data = kernel->constants[k];
    GRAFT_LOCKED(&device->lock);
    program_pack *pack = find_pack(device, data, form->have, form->want);
    if (pack == NULL) {
        pack = new_pack(data, form->have, form->want);
        if (pack == NULL) {
            return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left for %zu bytes of weights",
                              dnnl_memory_desc_get_size(form->want));
        }
        pack->next = device->packs;
        device->packs = pack;
        status = fill_pack(env, kernel, form->fill, pack);
    }
    pack->user_count++;
    *result = pack;
    return status;
}

void graft_program_release(graft_device *device, program_pack *pack)
{
    if (pack == NULL) {
        return;
    }
    GRAFT_LOCKED(&device->lock);
    if (--pack->user_count == 0) {
        program_pack **link = &device->packs;
        while (*link != pack) {
            link = &(*link)->next;
        }
        *link = pack->next;
        free(pack->data);
        free(pack);
    }
}

static graft_status pack_constant(graft_env *env, graft_kernel *kernel, uint32_t k,
                                  const pack_form *form, uint32_t *operand)
{
    program_pack *pack = NULL;
    if (dnnl_memory_desc_equal(form->have, form->want) != 0) {
        *operand = add_fixed(kernel, form->have, k, graft_borrow(kernel->constants[k]));
        return GRAFT_OK;
    }
    GRAFT_PASS(obtain_pack(env, kernel, k, form, &pack));
    *operand = add_fixed(kernel, form->want, k, pack->data);
    kernel->operands[*operand].pack = pack;
    return GRAFT_OK;
}

static void describe_floats(size_t count, dnnl_memory_desc_t *desc)
{
    int64_t dims[1] = {(int64_t)count};
    graft_program_describe_dims(1, dims, false, desc);
}

graft_status graft_program_packed(graft_env *env, graft_kernel *kernel, uint32_t k, size_t count,
                                  program_fill fill, uint32_t *operand)
{
    dnnl_memory_desc_t have;
    dnnl_memory_desc_t want;
    graft_program_describe_input(kernel, k, &have);
    describe_floats(count, &want);
    const pack_form form = {.have = &have, .want = &want, .fill = fill};
    return pack_constant(env, kernel, k, &form, operand);
}

uint32_t graft_program_workspace(graft_kernel *kernel, size_t count)
{
    dnnl_memory_desc_t desc;
    describe_floats(count, &desc);
    return add_operand(kernel, &desc, ROLE_WORKSPACE, 0);
}

void *graft_program_place(const graft_kernel *kernel, uint32_t operand)
{
    return kernel->places[operand];
}

graft_status graft_program_input(graft_env *env, graft_kernel *kernel, uint32_t k,
                                 const dnnl_memory_desc_t *have, const dnnl_memory_desc_t *want,
                                 uint32_t *operand)
{
    if (((uint32_t)kernel->signature.const_mask >> k & 1u) != 0) {
        const pack_form form = {.have = have, .want = want};
        return pack_constant(env, kernel, k, &form, operand);
    }
    uint32_t given = add_operand(kernel, have, ROLE_INPUT, k);
    *operand = given;
    if (dnnl_memory_desc_equal(have, want) == 0) {
        *operand = add_operand(kernel, want, ROLE_WORKSPACE, k);
        GRAFT_PASS(graft_program_reorder(env, kernel, given, *operand));
    }
    return GRAFT_OK;
}

uint32_t graft_program_output(graft_kernel *kernel, const dnnl_memory_desc_t *have,
                              const dnnl_memory_desc_t *want)
{
    bool direct = dnnl_memory_desc_equal(have, want) != 0;
    return add_operand(kernel, want, direct ? ROLE_OUTPUT : ROLE_WORKSPACE, 0);
}

graft_status graft_program_deliver(graft_env *env, graft_kernel *kernel,
                                   const dnnl_memory_desc_t *have, uint32_t operand)
{
    if (kernel->operands[operand].role == ROLE_OUTPUT) {
        return GRAFT_OK;
    }
    return graft_program_reorder(env, kernel, operand, add_operand(kernel, have, ROLE_OUTPUT, 0));
}

graft_status graft_program_fixed(graft_env *env, graft_kernel *kernel,
                                 const dnnl_memory_desc_t *desc, const void *data,
                                 uint32_t *operand)
{
    size_t size = dnnl_memory_desc_get_size(desc);
    size_t bytes = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    void *owned = aligned_alloc(ALIGNMENT, bytes == 0 ? ALIGNMENT : bytes);
    if (owned == NULL) {
        return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left for %zu bytes of weights", bytes);
    }
    memcpy(owned, data, size);
    *operand = add_fixed(kernel, desc, 0, owned);
    kernel->operands[*operand].owned = owned;
    kernel->facts.packed_bytes += bytes;
    return GRAFT_OK;
}

/* ------------------------------------------------------------------ stages */

static program_primitive *find_primitive(const graft_kernel *kernel)
{
    for (program_primitive *p = kernel->device->primitives; p != NULL; p = p->next) {
        if (!kernel->alone && p->stage == kernel->stage_count &&
            strcmp(p->name, kernel->facts.name) == 0 &&
            graft_signature_equal(&p->signature, &kernel->signature)) {
            return p;
        }
    }
    return NULL;
}

static void free_primitive(program_primitive *primitive)
{
    for (uint32_t a = 0; a < primitive->arg_count; a++) {
        (void)dnnl_memory_destroy(primitive->args[a].memory);
    }
    (void)dnnl_primitive_destroy(primitive->primitive);
    free(primitive);
}

/* `args`: what the arguments are operands of the kernel. */
static graft_status new_primitive(graft_env *env, const graft_kernel *kernel,
                                  const_dnnl_primitive_desc_t pd, const program_arg *args,
                                  uint32_t arg_count, program_primitive **result)
{
    graft_status status = GRAFT_OK;
    program_primitive *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left for a kernel");
    }
    GRAFT_CHECK(graft_program_status(env, dnnl_primitive_create(&p->primitive, pd), "a primitive"));
    for (uint32_t a = 0; a < arg_count; a++) {
        p->args[a].arg = args[a].arg;
        GRAFT_CHECK(create_memory(env, kernel, &kernel->operands[args[a].operand].desc,
                                  DNNL_MEMORY_NONE, &p->args[a].memory));
        p->arg_count++;
    }
    p->signature = kernel->signature;
    memcpy(p->name, kernel->facts.name, sizeof(p->name));
    p->stage = kernel->stage_count;
    *result = p;
done:
    if (status != GRAFT_OK) {
        free_primitive(p);
    }
    return status;
}

/* The primitive of the kernel's next stage, found or made; the kernel is one of its users. */
static graft_status obtain_primitive(graft_env *env, const graft_kernel *kernel,
                                     const_dnnl_primitive_desc_t pd, const program_arg *args,
                                     uint32_t arg_count, program_primitive **result)
{
    graft_device *device = kernel->device;
    GRAFT_LOCKED(&device->lock);
    program_primitive *p = find_primitive(kernel);
    if (p == NULL) {
        GRAFT_PASS(new_primitive(env, kernel, pd, args, arg_count, &p));
        p->next = device->primitives;
        device->primitives = p;
    }
    p->user_count++;
    *result = p;
    return GRAFT_OK;
}

void graft_program_release_primitive(graft_device *device, program_primitive *primitive)
{
    if (primitive == NULL) {
        return;
    }
    GRAFT_LOCKED(&device->lock);
    if (--primitive->user_count == 0) {
        program_primitive **link = &device->primitives;
        while (*link != primitive) {
            link = &(*link)->next;
        }
        *link = primitive->next;
        free_primitive(primitive);
    }
}

graft_status graft_program_stage(graft_env *env, graft_kernel *kernel,
                                 const_dnnl_primitive_desc_t pd, const program_arg *args,
                                 uint32_t arg_count)
{
    assert(kernel->stage_count < PROGRAM_STAGES && arg_count < PROGRAM_ARGS);
    program_stage *stage = &kernel->stages[kernel->stage_count];
    program_arg all[PROGRAM_ARGS];
    memcpy(all, args, arg_count * sizeof(args[0]));
    const dnnl_memory_desc_t *scratch =
        dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    if (scratch != NULL && dnnl_memory_desc_get_size(scratch) > 0) {
        all[arg_count++] = (program_arg){
            .arg = DNNL_ARG_SCRATCHPAD,
            .operand = add_operand(kernel, scratch, ROLE_WORKSPACE, 0),
        };
    }
    GRAFT_PASS(obtain_primitive(env, kernel, pd, all, arg_count, &stage->shared));
    kernel->stage_count++;
    for (uint32_t i = 0; i < arg_count; i++) {
        stage->operands[i] = (uint8_t)all[i].operand;
    }
    return GRAFT_OK;
}

graft_status graft_program_reorder(graft_env *env, graft_kernel *kernel, uint32_t from, uint32_t to)
{
    PROGRAM_CHOSEN(pd);
    PROGRAM_ATTR(attr);
    program_arg args[2] = {
        {DNNL_ARG_FROM, from},
        {DNNL_ARG_TO,   to  }
    };
    dnnl_engine_t engine = kernel->device->engine;
    GRAFT_PASS(graft_program_attr_finish(env, &attr));
    GRAFT_PASS(graft_program_status(
        env,
        dnnl_reorder_primitive_desc_create(&pd, &kernel->operands[from].desc, engine,
                                           &kernel->operands[to].desc, engine, attr.attr),
        "choosing a reorder"));
    return graft_program_stage(env, kernel, pd, args, 2);
}

/* A tensor of one number. */
static graft_status fill_operand(graft_env *env, graft_kernel *kernel,
                                 const dnnl_memory_desc_t *desc, float number, uint32_t *operand)
{
    GRAFT_SCOPED(env->scratch);
    const size_t count = dnnl_memory_desc_get_size(desc) / sizeof(float);
    float *numbers = GRAFT_NEW(env->scratch, float, count);
    for (size_t i = 0; i < count; i++) {
        numbers[i] = number;
    }
    return graft_program_fixed(env, kernel, desc, numbers, operand);
}

graft_status graft_program_padded(graft_env *env, graft_kernel *kernel, uint32_t k,
                                  const dnnl_memory_desc_t *have, const dnnl_memory_desc_t *want,
                                  const dnnl_dims_t before, uint32_t *operand)
{
    dnnl_memory_desc_t middle;
    uint32_t zeros = 0;
    GRAFT_PASS(graft_program_status(
        env, dnnl_memory_desc_init_submemory(&middle, want, have->dims, before), "a padding"));
    GRAFT_PASS(fill_operand(env, kernel, want, 0.0F, &zeros));
    *operand = add_operand(kernel, want, ROLE_WORKSPACE, k);
    GRAFT_PASS(graft_program_reorder(env, kernel, zeros, *operand));
    const uint32_t given = add_operand(kernel, have, ROLE_INPUT, k);
    const uint32_t part = add_operand(kernel, &middle, ROLE_INPUT, k);
    kernel->operands[part].role = ROLE_WORKSPACE; /* The same memory. */
    kernel->operands[part].offset = kernel->operands[*operand].offset;
    return graft_program_reorder(env, kernel, given, part);
}

static graft_status build_one(graft_env *env, graft_kernel *kernel, const program_one *one,
                              const_dnnl_primitive_desc_t pd)
{
    program_arg args[PROGRAM_ARGS] = {{.arg = 0}};
    for (uint32_t i = 0; i < one->use_count; i++) {
        const program_use *use = &one->uses[i];
        args[i].arg = use->arg;
        if (use->input == PROGRAM_RESULT) {
            args[i].operand = graft_program_output(kernel, use->have, use->want);
        } else if (use->input == PROGRAM_ZEROS || use->input == PROGRAM_ONES) {
            const float number = use->input == PROGRAM_ONES ? 1.0F : 0.0F;
            GRAFT_PASS(fill_operand(env, kernel, use->want, number, &args[i].operand));
        } else {
            GRAFT_PASS(graft_program_input(env, kernel, use->input, use->have, use->want,
                                           &args[i].operand));
        }
    }
    return graft_program_stage(env, kernel, pd, args, one->use_count);
}

graft_status graft_program_open_one(graft_env *env, graft_kernel *kernel, const program_one *one)
{
    PROGRAM_CHOSEN(pd);
    PROGRAM_ATTR(attr);
    GRAFT_PASS(graft_program_attr_finish(env, &attr));
    GRAFT_PASS(graft_program_choose(env, kernel, one->desc, &attr, one->variant, &pd));
    graft_program_name(kernel, one->family, pd);
    if (!kernel->dry) {
        GRAFT_PASS(build_one(env, kernel, one, pd));
    }
    return GRAFT_OK;
}

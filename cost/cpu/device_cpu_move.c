/* device_cpu_move.c - conversions between layouts, transposes and concatenation through oneDNN. */
#include "cost/cpu/program.h"

/* ---------------------------------------------------- reorders, transposes */

/* The input of a transpose as the output sees it: output axis i steps as input axis axis_i. */
static void describe_transposed(const graft_kernel *kernel, dnnl_memory_desc_t *desc)
{
    const graft_signature *s = &kernel->signature;
    const graft_shape *out = &kernel->outputs[0];
    int64_t strides[GRAFT_MAX_RANK];
    dnnl_dims_t dims = {1};
    dnnl_dims_t steps = {1};
    graft_layout_strides(&s->inputs[0], s->in_layouts[0], strides);
    for (uint32_t i = 0; i < out->rank; i++) {
        dims[i] = out->dims[i];
        steps[i] = strides[s->attrs[GRAFT_ATTR_transpose_axis_0 + i]];
    }
    (void)dnnl_memory_desc_init_by_strides(desc, out->rank == 0 ? 1 : out->rank, dims, dnnl_f32,
                                           steps);
}

graft_status graft_cpu_open_reorder(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    const graft_signature *s = &kernel->signature;
    dnnl_memory_desc_t have;
    dnnl_memory_desc_t want;
    uint32_t input = 0;
    uint32_t output = 0;
    if ((s->op != GRAFT_COST_REORDER && s->op != GRAFT_OP_transpose) || variant > 0) {
        return GRAFT_UNSUPPORTED;
    }
    (void)snprintf(kernel->facts.name, sizeof(kernel->facts.name), "reorder");
    if (kernel->dry) {
        return GRAFT_OK;
    }
    if (s->op == GRAFT_OP_transpose) {
        describe_transposed(kernel, &have);
    } else {
        graft_program_describe_input(kernel, 0, &have);
    }
    graft_program_describe_output(kernel, 0, &want);
    GRAFT_PASS(graft_program_input(env, kernel, 0, &have, &have, &input));
    output = graft_program_output(kernel, &want, &want);
    return graft_program_reorder(env, kernel, input, output);
}

/* ------------------------------------------------------------------ concat */

static graft_status build_concat(graft_env *env, graft_kernel *kernel,
                                 const dnnl_memory_desc_t forms[3], const_dnnl_primitive_desc_t pd)
{
    program_arg args[3] = {
        {.arg = DNNL_ARG_MULTIPLE_SRC}, {.arg = DNNL_ARG_MULTIPLE_SRC + 1}, {.arg = DNNL_ARG_DST}};
    for (uint32_t k = 0; k < 2; k++) {
        dnnl_memory_desc_t have;
        graft_program_describe_input(kernel, k, &have);
        GRAFT_PASS(graft_program_input(env, kernel, k, &have, &forms[k], &args[k].operand));
    }
    args[2].operand = graft_program_output(kernel, &forms[2], &forms[2]);
    return graft_program_stage(env, kernel, pd, args, 3);
}

graft_status graft_cpu_open_concat(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    const graft_signature *s = &kernel->signature;
    dnnl_memory_desc_t forms[3];
    PROGRAM_CHOSEN(pd);
    if (s->op != GRAFT_OP_concat || variant > 0) {
        return GRAFT_UNSUPPORTED;
    }
    PROGRAM_ATTR(attr);
    for (uint32_t k = 0; k < 2; k++) { /* A const operand takes the output's layout. */
        bool is_const = (s->const_mask >> k & 1u) != 0;
        graft_program_describe(&s->inputs[k], is_const ? s->out_layouts[0] : s->in_layouts[k],
                               &forms[k]);
    }
    graft_program_describe_output(kernel, 0, &forms[2]);
    GRAFT_PASS(graft_program_attr_finish(env, &attr));
    GRAFT_PASS(graft_program_status(
        env,
        dnnl_concat_primitive_desc_create(&pd, &forms[2], 2, s->attrs[GRAFT_ATTR_concat_axis],
                                          forms, attr.attr, kernel->device->engine),
        "choosing a concatenation"));
    graft_program_name(kernel, "concat", pd);
    if (!kernel->dry) {
        GRAFT_PASS(build_concat(env, kernel, forms, pd));
    }
    return GRAFT_OK;
}

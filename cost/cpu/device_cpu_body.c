/* device_cpu_body.c - what no other family implements: the body that says what an operator
 * computes, on row-major tensors. */
#include "cost/cpu/device_cpu.h"

#include "graph/meaning/algebra_float.h"

static void run_body(const graft_kernel *kernel)
{
    const graft_signature *s = &kernel->signature;
    const graft_call call = {s->attrs, s->inputs, kernel->outputs};
    graft_float_run(s->op, &call, kernel->in, kernel->out);
}

graft_status graft_cpu_open_body(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    const graft_signature *s = &kernel->signature;
    bool fits = graft_op(s->op) != NULL;
    for (uint32_t k = 0; k < s->input_count; k++) {
        fits = fits && s->in_layouts[k] == GRAFT_LAYOUT_ROW;
    }
    if (!fits || variant > 0 || s->out_layouts[0] != GRAFT_LAYOUT_ROW) {
        return GRAFT_UNSUPPORTED;
    }
    return graft_program_plain(env, kernel, "body:ref", run_body, NULL, 0);
}

/* device_cpu_body.c - operators that have no primitive and no loops of their own here: the body that
 * says what they compute, on the tensors as they lie. */
#include "cost/cpu/device_cpu.h"

#include "graph/meaning/algebra_float.h"

#include <stdio.h>

static const uint8_t operators[] = {
    GRAFT_OP_reduce_min, GRAFT_OP_rms_norm, GRAFT_OP_instance_norm,  GRAFT_OP_cumsum,
    GRAFT_OP_repeat,     GRAFT_OP_pick,     GRAFT_OP_conv_transpose,
};

static void run_body(const graft_kernel *kernel)
{
    const graft_signature *s = &kernel->signature;
    const graft_call call = {s->attrs, s->inputs, kernel->outputs};
    graft_float_run(s->op, &call, kernel->in, kernel->out);
}

graft_status graft_cpu_open_body(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    const graft_signature *s = &kernel->signature;
    bool fits = false;
    (void)env;
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        fits = fits || operators[i] == s->op;
    }
    for (uint32_t k = 0; k < s->input_count; k++) {
        fits = fits && s->in_layouts[k] == GRAFT_LAYOUT_ROW;
    }
    if (!fits || variant > 0 || s->out_layouts[0] != GRAFT_LAYOUT_ROW) {
        return GRAFT_UNSUPPORTED;
    }
    (void)snprintf(kernel->name, sizeof kernel->name, "body");
    kernel->plain = run_body;
    return GRAFT_OK;
}

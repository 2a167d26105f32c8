/* device_cpu_quantised.c - quantised operators, to be measured: the loops that run opaque nodes, on
 * operands of one scale each and without zero points. */
#include "cost/cpu/program.h"
#include "graph/meaning/quantised.h"

#include <string.h>

static const float scale = 1.0F;

typedef struct {
    graft_opaque opaque;
    const void *in[GRAFT_OPAQUE_INPUTS_MOST];
} quantised_state;

/* Operands lie between scales and zero points. */
static void run_quantised(const graft_kernel *kernel)
{
    quantised_state *state = kernel->state;
    for (uint32_t k = 0; k < kernel->signature.input_count; k++) {
        state->in[3 * k] = kernel->in[k];
    }
    GRAFT_ARENA(scratch, 0);
    graft_quantised_run(scratch, &state->opaque, state->in, kernel->out[0]);
}

static void describe(const graft_kernel *kernel, quantised_state *state)
{
    const graft_signature *s = &kernel->signature;
    graft_opaque *opaque = &state->opaque;
    opaque->kind = GRAFT_OPAQUE_QUANTISE + (s->op - GRAFT_COST_QUANTISE);
    memcpy(opaque->attrs, s->attrs, sizeof(s->attrs));
    opaque->out = kernel->outputs[0];
    for (uint32_t k = 0; k < GRAFT_OPAQUE_INPUTS_MOST; k++) {
        bool is_scale = k == 1 || k == 4 || k == 6;
        opaque->in[k].rank = is_scale ? 0 : GRAFT_RANK_UNKNOWN;
        opaque->in[k].dtype = GRAFT_DTYPE_F32;
        state->in[k] = is_scale ? &scale : NULL;
    }
    for (uint32_t k = 0; k < s->input_count; k++) {
        opaque->in[3 * k] = s->inputs[k];
    }
}

graft_status graft_cpu_open_quantised(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    if (!graft_signature_is_quantised(&kernel->signature) || variant > 0) {
        return GRAFT_UNSUPPORTED;
    }
    quantised_state state;
    memset(&state, 0, sizeof(state));
    describe(kernel, &state);
    return graft_program_plain(env, kernel, "plain", run_quantised, &state, sizeof(state));
}

/* device_cpu_winograd.c - Winograd's convolution of our own (cost/cpu/winograd.h) as an
 * implementation: "winograd:plain_2x3" and "winograd:plain_4x3", in the layouts of the signature.
 * The library's, which device_cpu_conv.c offers, leave more than half of the possible gain where
 * the filter comes from memory. */
#include "cost/cpu/program.h"
#include "cost/cpu/winograd.h"

#include <string.h>

enum { IMAGE = 0, FILTER = 1, BIAS = 2, RESIDUAL = 3 };

static const uint32_t tiles[] = {2, 4};
enum { TILE_COUNT = sizeof(tiles) / sizeof(tiles[0]) };

typedef struct {
    graft_winograd plan;
    uint32_t filter; /* Operands. */
    uint32_t work;
} winograd_state;

static void run_winograd(const graft_kernel *kernel)
{
    const winograd_state *state = kernel->state;
    uint8_t op = kernel->signature.op;
    const graft_winograd_data data = {
        .image = kernel->in[IMAGE],
        .filter = graft_program_place(kernel, state->filter),
        .bias = op == GRAFT_OP_conv ? NULL : kernel->in[BIAS],
        .residual = op == GRAFT_OP_conv_bias_add ? kernel->in[RESIDUAL] : NULL,
        .out = kernel->out[0],
        .work = graft_program_place(kernel, state->work),
    };
    graft_winograd_run(&state->plan, &data);
}

static void fill_filter(const graft_kernel *kernel, const float *given, void *packed)
{
    const winograd_state *state = kernel->state;
    graft_winograd_pack(&state->plan, given, packed);
}

graft_status graft_cpu_open_plain_winograd(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    winograd_state plan;
    char name[GRAFT_KERNEL_NAME_BYTES];
    memset(&plan, 0, sizeof(plan));
    if (variant >= TILE_COUNT ||
        !graft_winograd_plan(&kernel->signature, &kernel->outputs[0], tiles[variant],
                             (uint32_t)kernel->thread_count, &plan.plan)) {
        return GRAFT_UNSUPPORTED;
    }
    (void)snprintf(name, sizeof(name), "winograd:plain_%ux%u", tiles[variant],
                   (unsigned)GRAFT_WINOGRAD_FILTER);
    GRAFT_PASS(graft_program_plain(env, kernel, name, run_winograd, &plan, sizeof(plan)));
    if (kernel->dry) {
        return GRAFT_OK;
    }
    winograd_state *state = kernel->state;
    GRAFT_PASS(graft_program_packed(env, kernel, FILTER, graft_winograd_filter_count(&plan.plan),
                                    fill_filter, &state->filter));
    state->work =
        graft_program_workspace(kernel, graft_winograd_work_bytes(&plan.plan) / sizeof(float));
    return GRAFT_OK;
}

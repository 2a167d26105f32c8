/* caught.c - see caught.h. */
#include "verify/core/caught.h"

/* Beside those that move elements. Of an operator that is not listed nothing is assumed. */
static const bool passes_on[GRAFT_OP_COUNT] = {
    [GRAFT_OP_conv] = true,          [GRAFT_OP_conv_bias] = true,
    [GRAFT_OP_conv_bias_add] = true, [GRAFT_OP_conv_transpose] = true,
    [GRAFT_OP_matmul] = true,        [GRAFT_OP_matmul_bias] = true,
    [GRAFT_OP_scale_shift] = true,   [GRAFT_OP_add] = true,
    [GRAFT_OP_sub] = true,           [GRAFT_OP_mul] = true,
    [GRAFT_OP_div] = true,           [GRAFT_OP_pad] = true,
    [GRAFT_OP_avg_pool] = true,      [GRAFT_OP_global_avg_pool] = true,
    [GRAFT_OP_reduce_mean] = true,   [GRAFT_OP_reduce_sum] = true,
    [GRAFT_OP_cumsum] = true,        [GRAFT_OP_layer_norm] = true,
    [GRAFT_OP_instance_norm] = true, [GRAFT_OP_sqrt] = true,
    [GRAFT_OP_log] = true,           [GRAFT_OP_abs] = true,
    [GRAFT_OP_gelu] = true,          [GRAFT_OP_select] = true, /* As far as it chooses. */
};

bool graft_catches_infinity(uint32_t op, uint32_t operand, int32_t activation)
{
    const bool moves = (graft_op(op)->flags & GRAFT_FLAG_MOVES) != 0;
    const bool divides = op == GRAFT_OP_div && operand == 1; /* By an infinity: that is 0. */
    return !(moves || passes_on[op]) || divides || activation != GRAFT_ACT_NONE;
}

static bool jumps(const graft_pattern *side)
{
    bool found = false;
    for (uint32_t n = 0; n < side->node_count; n++) {
        const uint32_t op = side->nodes[n].op;
        found = found || op == GRAFT_OP_less || op == GRAFT_OP_equal_to ||
                op == GRAFT_OP_remainder || op == GRAFT_OP_quantise;
    }
    return found;
}

bool graft_rule_jumps(const graft_rule *rule)
{
    return jumps(&rule->source) || jumps(&rule->target);
}

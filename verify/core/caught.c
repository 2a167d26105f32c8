/* caught.c - see caught.h. */
#include "verify/core/caught.h"

bool graft_catches_infinity(uint32_t op, uint32_t operand, int32_t activation)
{
    switch (op) {
    case GRAFT_OP_identity:
    case GRAFT_OP_conv:
    case GRAFT_OP_matmul:
    case GRAFT_OP_scale_shift:
    case GRAFT_OP_add:
    case GRAFT_OP_sub:
    case GRAFT_OP_mul:
    case GRAFT_OP_concat:
    case GRAFT_OP_split:
    case GRAFT_OP_slice:
    case GRAFT_OP_pad:
    case GRAFT_OP_transpose:
    case GRAFT_OP_reshape:
    case GRAFT_OP_avg_pool:
    case GRAFT_OP_global_avg_pool:
    case GRAFT_OP_reduce_mean:
    case GRAFT_OP_reduce_sum:
    case GRAFT_OP_sqrt:
    case GRAFT_OP_gelu:
    case GRAFT_OP_layer_norm:
    case GRAFT_OP_instance_norm:
    case GRAFT_OP_abs:
    case GRAFT_OP_log:
    case GRAFT_OP_cumsum:
    case GRAFT_OP_repeat:
    case GRAFT_OP_conv_transpose:
    case GRAFT_OP_pick:
    case GRAFT_OP_reverse:
    case GRAFT_OP_select: /* As far as it chooses. */
        return false;
    case GRAFT_OP_div: /* A number divided by an infinity is 0. */
        return operand == 1;
    case GRAFT_OP_conv_bias:
    case GRAFT_OP_conv_bias_add:
    case GRAFT_OP_matmul_bias:
        return activation != GRAFT_ACT_NONE;
    default:
        return true; /* Of an operator that is not listed nothing is assumed. */
    }
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

/* pattern.c - see pattern.h. */
#include "graph/rule/pattern.h"

#include <assert.h>

static bool is_ready(const graft_pattern_node *node, uint32_t done)
{
    for (uint32_t i = 0; i < graft_op(node->op)->input_count; i++) {
        graft_operand x = node->inputs[i];
        if (GRAFT_OPERAND_IS_NODE(x) && (done >> GRAFT_OPERAND_NODE_OF(x) & 1u) == 0) {
            return false;
        }
    }
    return true;
}

void graft_pattern_order(const graft_pattern *pattern, uint8_t order[GRAFT_RULE_MAX_NODES])
{
    uint32_t done = 0;
    for (uint32_t k = 0; k < pattern->node_count; k++) {
        uint32_t n = 0;
        while (n < pattern->node_count &&
               ((done >> n & 1u) != 0 || !is_ready(&pattern->nodes[n], done))) {
            n++;
        }
        assert(n < pattern->node_count && "a pattern has no cycle");
        order[k] = (uint8_t)n;
        done |= 1u << n;
    }
}

uint32_t graft_pattern_reached(const graft_pattern *pattern, uint32_t vars)
{
    uint8_t order[GRAFT_RULE_MAX_NODES];
    uint32_t reached = 0;
    graft_pattern_order(pattern, order);
    for (uint32_t i = 0; i < pattern->node_count; i++) {
        const graft_pattern_node *node = &pattern->nodes[order[i]];
        for (uint32_t k = 0; k < graft_op(node->op)->input_count; k++) {
            graft_operand x = node->inputs[k];
            uint32_t bit =
                GRAFT_OPERAND_IS_NODE(x) ? reached >> GRAFT_OPERAND_NODE_OF(x) : vars >> x;
            reached |= (bit & 1u) << order[i];
        }
    }
    return reached;
}

/* By number, the operators that compute what an output is. */
static uint64_t operators_of(const graft_pattern *pattern, graft_operand output)
{
    uint64_t through[GRAFT_RULE_MAX_NODES] = {0};
    uint8_t order[GRAFT_RULE_MAX_NODES];
    graft_pattern_order(pattern, order);
    for (uint32_t i = 0; i < pattern->node_count; i++) {
        const graft_pattern_node *node = &pattern->nodes[order[i]];
        const graft_op_info *op = graft_op(node->op);
        const bool computes = (op->flags & (GRAFT_FLAG_MOVES | GRAFT_FLAG_PIECEWISE)) == 0;
        uint64_t *set = &through[order[i]];
        *set = computes ? UINT64_C(1) << node->op : 0;
        for (uint32_t k = 0; k < op->input_count; k++) {
            graft_operand x = node->inputs[k];
            *set |= GRAFT_OPERAND_IS_NODE(x) ? through[GRAFT_OPERAND_NODE_OF(x)] : 0;
        }
    }
    return GRAFT_OPERAND_IS_NODE(output) ? through[GRAFT_OPERAND_NODE_OF(output)] : 0;
}

bool graft_rule_rounds_alike(const graft_rule *rule)
{
    _Static_assert(GRAFT_OP_COUNT <= 64, "operators are bits");
    bool alike = true;
    for (uint32_t o = 0; o < rule->output_count; o++) {
        alike = alike && operators_of(&rule->source, rule->source.outputs[o]) ==
                             operators_of(&rule->target, rule->target.outputs[o]);
    }
    return alike;
}

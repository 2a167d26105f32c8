/* pattern.c - see pattern.h. */
#include "graph/rule/pattern.h"

#include <assert.h>
#include <string.h>

uint32_t graft_op_named(const char *name)
{
    for (uint32_t op = 1; op < GRAFT_OP_COUNT; op++) {
        if (strcmp(graft_op(op)->name, name) == 0) {
            return op;
        }
    }
    return GRAFT_OP_NONE;
}

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

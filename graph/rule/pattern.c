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

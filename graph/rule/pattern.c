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

/* ---------------------------------------------------------------- booleans */

/* Tensors of a source that are known to be booleans. */
typedef struct {
    uint32_t vars;
    uint32_t nodes[GRAFT_MAX_OUTPUTS]; /* By output. */
} booleans;

static uint32_t *word_of(booleans *known, graft_operand x, uint32_t *bit)
{
    bool node = GRAFT_OPERAND_IS_NODE(x);
    *bit = 1u << (node ? GRAFT_OPERAND_NODE_OF(x) : x);
    return node ? &known->nodes[GRAFT_OPERAND_SLOT_OF(x)] : &known->vars;
}

/* Whether operands and results have one type, which may be that of booleans. */
static bool is_of_one_type(uint32_t op)
{
    return op == GRAFT_OP_min || op == GRAFT_OP_max || op == GRAFT_OP_logical_not ||
           (graft_op(op)->flags & GRAFT_FLAG_MOVES) != 0;
}

/* Adds what a node says of its operands and results; whether that was new. */
static bool grow(const graft_pattern *pattern, uint32_t n, booleans *known)
{
    const graft_pattern_node *node = &pattern->nodes[n];
    const graft_op_info *info = graft_op(node->op);
    const bool compares = node->op == GRAFT_OP_less || node->op == GRAFT_OP_equal_to;
    const bool alike = is_of_one_type(node->op);
    bool all = node->op == GRAFT_OP_logical_not;
    bool grew = false;
    for (uint32_t pass = 0; pass < 2; pass++) { /* What is known of some, and then of all. */
        for (uint32_t i = 0; i < (uint32_t)info->input_count + info->output_count; i++) {
            uint32_t bit = 0;
            const bool is_result = i >= info->input_count;
            const graft_operand x =
                is_result ? GRAFT_OPERAND_NODE(n, i - info->input_count) : node->inputs[i];
            uint32_t *word = word_of(known, x, &bit);
            all = all || (alike && (*word & bit) != 0);
            if ((compares && is_result) || (node->op == GRAFT_OP_select && i == 0) ||
                (pass == 1 && all)) {
                grew = grew || (*word & bit) == 0;
                *word |= bit;
            }
        }
    }
    return grew;
}

uint32_t graft_rule_booleans(const graft_rule *rule)
{
    booleans known = {.vars = 0};
    for (bool grew = true; grew;) {
        grew = false;
        for (uint32_t n = 0; n < rule->source.node_count; n++) {
            grew = grow(&rule->source, n, &known) || grew;
        }
    }
    return known.vars;
}

/* price.c - see price.h. */
#include "verify/set/price.h"

#include "graph/rule/pattern.h"

#include <string.h>

/* Which nodes of a pattern depend on one of the variables in `vars` (bit v: variable v); bit n of
 * the result is node n. */
static uint32_t find_reached(const graft_pattern *pattern, uint32_t vars)
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

static bool is_weight(graft_operand x, uint32_t active, uint32_t weights)
{
    return GRAFT_OPERAND_IS_NODE(x) ? (active >> GRAFT_OPERAND_NODE_OF(x) & 1u) == 0
                                    : (weights >> x & 1u) != 0;
}

static void add_node(const graft_instance *instance, const graft_side *side, uint32_t n,
                     graft_price *price)
{
    const graft_pattern_node *node = &side->pattern->nodes[n];
    const graft_op_info *info = graft_op(node->op);
    graft_shape in[GRAFT_MAX_INPUTS];
    for (uint32_t k = 0; k < info->input_count; k++) {
        in[k] = *graft_instance_shape(instance, side, node->inputs[k]);
        price->bytes += graft_shape_bytes(&in[k]);
    }
    for (uint32_t k = 0; k < info->output_count; k++) {
        price->bytes += graft_shape_bytes(&side->shapes[n][k]);
    }
    price->flops += graft_op_flops(node->op, side->attrs[n], in, side->shapes[n]);
    price->launches++;
}

/* Weights that the operand list of active nodes and the outputs name, each once. */
static void add_weights(const graft_instance *instance, const graft_side *side, uint32_t active,
                        uint32_t weights, graft_price *price)
{
    bool seen[UINT8_MAX + 1] = {false};
    for (uint32_t n = 0; n < side->pattern->node_count; n++) {
        const graft_pattern_node *node = &side->pattern->nodes[n];
        uint32_t count = (active >> n & 1u) != 0 ? graft_op(node->op)->input_count : 0;
        for (uint32_t k = 0; k < count; k++) {
            graft_operand x = node->inputs[k];
            if (is_weight(x, active, weights) && !seen[x]) {
                seen[x] = true;
                price->weight_bytes += graft_shape_bytes(graft_instance_shape(instance, side, x));
            }
        }
    }
}

graft_price graft_price_side(const graft_instance *instance, const graft_side *side,
                             uint32_t weights)
{
    graft_price price = {.operators = side->pattern->node_count};
    uint32_t active = find_reached(side->pattern, ~weights);
    for (uint32_t n = 0; n < side->pattern->node_count; n++) {
        if ((active >> n & 1u) != 0) {
            add_node(instance, side, n, &price);
        }
    }
    add_weights(instance, side, active, weights, &price);
    return price;
}

/* The best case: which variables are weights, and what that saves; INT32_MIN: the engine never
 * matches the rule, whose outputs it leaves alone where they are weights. */
static int32_t find_best_case(const graft_rule *rule, uint32_t *best)
{
    int32_t best_gain = INT32_MIN;
    *best = 0;
    for (uint32_t weights = 0; weights + 1 < 1u << rule->var_count; weights++) {
        uint32_t before = find_reached(&rule->source, ~weights);
        uint32_t after = find_reached(&rule->target, ~weights);
        bool matches = true;
        for (uint32_t i = 0; i < rule->output_count; i++) {
            matches = matches && !is_weight(rule->source.outputs[i], before, weights);
        }
        int32_t gain = __builtin_popcount(before) - __builtin_popcount(after);
        bool better = gain > best_gain || (gain == best_gain &&
                                           __builtin_popcount(weights) < __builtin_popcount(*best));
        if (matches && better) {
            *best = weights;
            best_gain = gain;
        }
    }
    return best_gain;
}

uint32_t graft_price_weights(const graft_rule *rule)
{
    uint32_t weights = 0;
    (void)find_best_case(rule, &weights);
    return weights;
}

int32_t graft_rule_gain(const graft_rule *rule)
{
    uint32_t weights = 0;
    return find_best_case(rule, &weights);
}

/* ruletypes.c - see ruletypes.h. */
#include "graph/rule/ruletypes.h"

#include "graph/rule/pattern.h"

/* What tensors of 8 bits are: the attribute `least`, NULL for others; by operand. */
typedef struct {
    const graft_term *vars[GRAFT_RULE_MAX_VARS];
    const graft_term *nodes[GRAFT_RULE_MAX_NODES][GRAFT_MAX_OUTPUTS];
} byte_types;

static const graft_term **type_of(byte_types *types, graft_operand x)
{
    return GRAFT_OPERAND_IS_NODE(x)
               ? &types->nodes[GRAFT_OPERAND_NODE_OF(x)][GRAFT_OPERAND_SLOT_OF(x)]
               : &types->vars[x];
}

/* Gives what a node takes and makes the types that follow from each other. */
static void type_node(const graft_pattern *pattern, uint32_t n, byte_types *types)
{
    const graft_pattern_node *node = &pattern->nodes[n];
    const graft_op_info *info = graft_op(node->op);
    const graft_term *least = &node->attrs[GRAFT_ATTR_quantise_least];
    if (node->op == GRAFT_OP_quantise) {
        types->nodes[n][0] = least;
    } else if (node->op == GRAFT_OP_dequantise) {
        *type_of(types, node->inputs[0]) = least;
    } else if ((info->flags & GRAFT_FLAG_MOVES) != 0 || node->op == GRAFT_OP_max_pool) {
        const graft_term *known = NULL;
        for (uint32_t i = 0; i < info->input_count + info->output_count; i++) {
            graft_operand x = i < info->input_count ? node->inputs[i]
                                                    : GRAFT_OPERAND_NODE(n, i - info->input_count);
            known = *type_of(types, x) != NULL ? *type_of(types, x) : known;
        }
        for (uint32_t i = 0; i < info->input_count + info->output_count; i++) {
            graft_operand x = i < info->input_count ? node->inputs[i]
                                                    : GRAFT_OPERAND_NODE(n, i - info->input_count);
            *type_of(types, x) = *type_of(types, x) != NULL ? *type_of(types, x) : known;
        }
    }
}

void graft_rule_types(const graft_rule *rule, const int32_t *slots, uint64_t bound,
                      uint8_t types[GRAFT_RULE_MAX_VARS])
{
    byte_types found = {0};
    for (uint32_t i = 0; i < rule->source.node_count * rule->source.node_count; i++) {
        type_node(&rule->source, i % rule->source.node_count, &found);
    }
    const uint32_t booleans = graft_rule_booleans(rule);
    for (uint32_t v = 0; v < rule->var_count; v++) {
        const graft_term *least = found.vars[v];
        bool given =
            least != NULL && (least->kind == GRAFT_TERM_CONST || (bound >> least->value & 1u) != 0);
        int32_t value = !given                            ? -128
                        : least->kind == GRAFT_TERM_CONST ? least->value
                                                          : slots[least->value];
        types[v] = (booleans >> v & 1u) != 0 ? GRAFT_DTYPE_BOOL
                   : least == NULL           ? GRAFT_DTYPE_F32
                   : value == 0              ? GRAFT_DTYPE_U8
                                             : GRAFT_DTYPE_I8;
    }
}

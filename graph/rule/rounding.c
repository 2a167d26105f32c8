/* rounding.c - see rounding.h. */
#include "graph/rule/rounding.h"

#include "graph/base/bits.h"
#include "graph/base/half.h"
#include "graph/names.h"
#include "graph/rule/pattern.h"
#include "graph/rule/rulefile.h"

#include <math.h>
#include <xxhash.h>

/* What is neither moved, nor written, nor chosen is rounded. */
static bool computes(uint32_t op)
{
    return (graft_op(op)->flags & (GRAFT_FLAG_MOVES | GRAFT_FLAG_PIECEWISE)) == 0 &&
           op != GRAFT_OP_fill && op != GRAFT_OP_pad;
}

/* Whether something is computed where all operands may be numbers that the rule names: what
 * binary32 rounds to the same, a narrower type may not. */
static bool computes_constants(const graft_pattern *pattern)
{
    bool may_be[GRAFT_RULE_MAX_NODES];
    uint8_t order[GRAFT_RULE_MAX_NODES];
    bool found = false;
    graft_pattern_order(pattern, order);
    for (uint32_t i = 0; i < pattern->node_count; i++) {
        const graft_pattern_node *node = &pattern->nodes[order[i]];
        const graft_op_info *op = graft_op(node->op);
        bool all = true;
        bool any = node->op == GRAFT_OP_fill || node->op == GRAFT_OP_pad;
        for (uint32_t k = 0; k < op->input_count; k++) {
            const graft_operand x = node->inputs[k];
            const bool is = GRAFT_OPERAND_IS_NODE(x) && may_be[GRAFT_OPERAND_NODE_OF(x)];
            all = all && is;
            any = any || is;
        }
        may_be[order[i]] = computes(node->op) ? all : any;
        found = found || (computes(node->op) && all);
    }
    return found;
}

/* Chains of operators that compute, in their order, on the ways from variables to an operand; those
 * that begin with a fill are taken for a variable's. */
enum { CHAINS = 64, OF_FILL = GRAFT_OPERAND_NODE(0, 0) };
typedef struct {
    struct {
        uint64_t operators; /* A hash. */
        graft_operand from;
    } items[CHAINS];
    uint32_t count;
    bool cut; /* There are more. */
} chains;

static void add_chain(chains *to, graft_operand from, uint64_t operators)
{
    for (uint32_t i = 0; i < to->count; i++) {
        if (to->items[i].from == from && to->items[i].operators == operators) {
            return;
        }
    }
    to->cut = to->cut || to->count == CHAINS;
    if (to->count < CHAINS) {
        to->items[to->count].operators = operators;
        to->items[to->count++].from = from;
    }
}

/* Adds the chains of `from`, made longer by an operator where it computes. */
static void add_chains(chains *to, const chains *from, uint32_t op)
{
    for (uint32_t i = 0; i < from->count; i++) {
        uint64_t operators = from->items[i].operators;
        if (computes(op)) {
            operators = XXH3_64bits_withSeed(&operators, sizeof operators, op);
        }
        add_chain(to, from->items[i].from, operators);
    }
    to->cut = to->cut || from->cut;
}

/* Those of an operand; `nodes` are those of the nodes of its side. */
static chains chains_of(const chains *nodes, graft_operand x)
{
    return GRAFT_OPERAND_IS_NODE(x) ? nodes[GRAFT_OPERAND_NODE_OF(x)]
                                    : (chains){.items = {{.from = x}}, .count = 1};
}

static void find_chains(const graft_pattern *pattern, chains nodes[GRAFT_RULE_MAX_NODES])
{
    uint8_t order[GRAFT_RULE_MAX_NODES];
    graft_pattern_order(pattern, order);
    for (uint32_t i = 0; i < pattern->node_count; i++) {
        const graft_pattern_node *node = &pattern->nodes[order[i]];
        const uint32_t inputs = graft_op(node->op)->input_count;
        chains *own = &nodes[order[i]];
        *own = (chains){.count = 0};
        for (uint32_t k = 0; k < inputs; k++) {
            const chains from = chains_of(nodes, node->inputs[k]);
            add_chains(own, &from, node->op);
        }
        if (inputs == 0) {
            add_chain(own, OF_FILL, 0);
        }
    }
}

/* Whether `b` has all chains of `a` that begin where one of its own does; there has to be one. What
 * a slice or a split leaves out, one of the sides may not mention. */
static bool has_chains(const chains *a, const chains *b)
{
    uint32_t shared = 0;
    for (uint32_t i = 0; i < a->count; i++) {
        bool begins = false;
        bool has = false;
        for (uint32_t k = 0; k < b->count; k++) {
            const bool same = a->items[i].from == b->items[k].from;
            begins = begins || same;
            has = has || (same && a->items[i].operators == b->items[k].operators);
        }
        if (begins && !has) {
            return false;
        }
        shared += begins;
    }
    return shared > 0 && !a->cut;
}

bool graft_rule_rounds_alike(const graft_rule *rule)
{
    chains source[GRAFT_RULE_MAX_NODES];
    chains target[GRAFT_RULE_MAX_NODES];
    bool alike = !computes_constants(&rule->source) && !computes_constants(&rule->target);
    find_chains(&rule->source, source);
    find_chains(&rule->target, target);
    for (uint32_t o = 0; o < rule->output_count; o++) {
        const chains a = chains_of(source, rule->source.outputs[o]);
        const chains b = chains_of(target, rule->target.outputs[o]);
        alike = alike && has_chains(&a, &b) && has_chains(&b, &a);
    }
    return alike;
}

/* Part of a number that rounding may change: half a unit of bfloat16's last place, and one of
 * float16's below its normal numbers, which may be 0, is more. */
static const float rounding_most = 0x1p-8F;

static bool round_fills(graft_pattern *pattern, uint32_t dtype)
{
    bool fits = true;
    for (uint32_t n = 0; n < pattern->node_count; n++) {
        graft_term *term = &pattern->nodes[n].attrs[GRAFT_ATTR_fill_value];
        if (pattern->nodes[n].op == GRAFT_OP_fill && term->kind == GRAFT_TERM_CONST) {
            float number = graft_float_of_bits(term->value);
            const float before = number;
            fits = graft_half_round_all(dtype, &number, 1) && fits &&
                   fabsf(number - before) <= fabsf(before) * rounding_most;
            term->value = graft_bits_of_float(number);
        }
    }
    return fits;
}

bool graft_rule_round(graft_rule *rule, uint32_t dtype)
{
    const uint64_t before = graft_rule_id(rule);
    graft_rule rounded = *rule;
    const bool source_fits = round_fills(&rounded.source, dtype);
    if (!round_fills(&rounded.target, dtype) || !source_fits || graft_rule_id(&rounded) == before) {
        return false;
    }
    *rule = rounded;
    return true;
}

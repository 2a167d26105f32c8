/* canon.c - renumbering a rule in every arrangement and keeping the least. */
#include "verify/set/canon.h"

#include "graph/rule/rulecode.h"
#include "graph/rule/ruleparse.h"

#include <assert.h>
#include <string.h>

enum { PACKED_MOST = 2048, SWAPS_MOST = 10, NOT_MET = UINT8_MAX };

/* One arrangement: bit i of `swaps` exchanges the operands of commutative node i (source nodes
 * first), outputs are taken in the order `outputs`. By side, the source first. */
typedef struct {
    const graft_rule *from;
    graft_rule to;
    uint32_t swaps;
    uint8_t swap_of[2][GRAFT_RULE_MAX_NODES]; /* The bit of a commutative node; NOT_MET. */
    uint8_t outputs[GRAFT_RULE_MAX_OUTPUTS];
    uint8_t nodes[2][GRAFT_RULE_MAX_NODES]; /* New numbers; NOT_MET. */
    uint8_t var[GRAFT_RULE_MAX_VARS];
    uint8_t slot[GRAFT_RULE_MAX_SLOTS];
} arrangement;

enum { SOURCE, TARGET };

static bool commutes(uint32_t op) { return (graft_op(op)->flags & GRAFT_FLAG_COMMUTES) != 0; }

static const graft_pattern *side_of(const graft_rule *rule, uint32_t side)
{
    return side == SOURCE ? &rule->source : &rule->target;
}

/* Numbers commutative nodes of both sides in turn; how many there are. */
static uint32_t number_swaps(arrangement *a)
{
    uint32_t count = 0;
    memset(a->swap_of, NOT_MET, sizeof a->swap_of);
    for (uint32_t side = 0; side < 2; side++) {
        const graft_pattern *from = side_of(a->from, side);
        for (uint32_t n = 0; n < from->node_count; n++) {
            if (commutes(from->nodes[n].op) && count < SWAPS_MOST) {
                a->swap_of[side][n] = (uint8_t)count++;
            }
        }
    }
    return count;
}

static graft_operand operand_at(const arrangement *a, uint32_t side, uint32_t n, uint32_t i)
{
    uint8_t bit = a->swap_of[side][n];
    bool swapped = i < 2 && bit != NOT_MET && (a->swaps >> bit & 1u) != 0;
    return side_of(a->from, side)->nodes[n].inputs[swapped ? 1 - i : i];
}

static graft_operand renumber(const arrangement *a, uint32_t side, graft_operand x)
{
    return GRAFT_OPERAND_IS_NODE(x) ? GRAFT_OPERAND_NODE(a->nodes[side][GRAFT_OPERAND_NODE_OF(x)],
                                                         GRAFT_OPERAND_SLOT_OF(x))
                                    : a->var[x];
}

/* Numbers what an operand leads to: source nodes before their operands, target nodes after.
 * Patterns are at most GRAFT_RULE_MAX_NODES deep. */
static void visit(arrangement *a, uint32_t side, graft_operand x)
{
    uint8_t *count = side == SOURCE ? &a->to.source.node_count : &a->to.target.node_count;
    if (!GRAFT_OPERAND_IS_NODE(x)) {
        if (a->var[x] == NOT_MET) {
            a->var[x] = a->to.var_count++;
        }
        return;
    }
    uint32_t n = GRAFT_OPERAND_NODE_OF(x);
    if (a->nodes[side][n] != NOT_MET) {
        return;
    }
    if (side == SOURCE) {
        a->nodes[side][n] = (*count)++;
    }
    for (uint32_t i = 0; i < graft_op(side_of(a->from, side)->nodes[n].op)->input_count; i++) {
        visit(a, side, operand_at(a, side, n, i));
    }
    if (side == TARGET) {
        a->nodes[side][n] = (*count)++;
    }
}

/* ------------------------------------------------------------------- code */

/* Appends the program at `offset`, renumbered; an equal one that is there already is used instead.
 */
static uint8_t copy_program(arrangement *a, uint32_t offset)
{
    uint32_t start = a->to.code_bytes;
    uint32_t code = UINT32_MAX;
    while (code != GRAFT_CODE_END) {
        graft_code_step step = graft_code_at(a->from, offset);
        uint32_t next = graft_code_next(a->from, offset);
        uint8_t *to = &a->to.code[a->to.code_bytes];
        memcpy(to, &a->from->code[offset], next - offset);
        code = step.code;
        if (code == GRAFT_CODE_SLOT) {
            to[1] = a->slot[step.index];
        } else if (code >= GRAFT_CODE_DIM && code <= GRAFT_CODE_SAME) {
            to[1] = a->var[step.index];
        }
        if (code == GRAFT_CODE_SAME) {
            to[2] = a->var[step.other];
        }
        a->to.code_bytes = (uint8_t)(a->to.code_bytes + next - offset);
        offset = next;
    }
    return (uint8_t)graft_code_share(&a->to, start);
}

static graft_term renumber_term(arrangement *a, const graft_term *term)
{
    graft_term result = {term->value, term->kind};
    if (term->kind == GRAFT_TERM_SLOT) {
        if (a->slot[term->value] == NOT_MET) {
            a->slot[term->value] = a->to.slot_count++;
        }
        result.value = a->slot[term->value];
    } else if (term->kind == GRAFT_TERM_CODE) {
        result.value = copy_program(a, (uint32_t)term->value);
    }
    return result;
}

/* ----------------------------------------------------------------- patterns */

static void place_nodes(arrangement *a, uint32_t side)
{
    const graft_pattern *from = side_of(a->from, side);
    graft_pattern *to = side == SOURCE ? &a->to.source : &a->to.target;
    for (uint8_t number = 0; number < to->node_count; number++) {
        uint32_t n = 0;
        while (a->nodes[side][n] != number) {
            n++;
        }
        graft_pattern_node *node = &to->nodes[number];
        const graft_op_info *info = graft_op(from->nodes[n].op);
        node->op = from->nodes[n].op;
        for (uint32_t i = 0; i < info->input_count; i++) {
            node->inputs[i] = renumber(a, side, operand_at(a, side, n, i));
        }
        for (uint32_t i = 0; i < info->attr_count; i++) {
            node->attrs[i] = renumber_term(a, &from->nodes[n].attrs[i]);
        }
    }
    for (uint32_t i = 0; i < a->from->output_count; i++) {
        to->outputs[i] = renumber(a, side, from->outputs[a->outputs[i]]);
    }
}

static void arrange(arrangement *a)
{
    memset(a->nodes, NOT_MET, sizeof a->nodes);
    memset(a->var, NOT_MET, sizeof a->var);
    memset(a->slot, NOT_MET, sizeof a->slot);
    memset(&a->to, 0, sizeof a->to);
    a->to.output_count = a->from->output_count;
    for (uint32_t side = 0; side < 2; side++) {
        for (uint32_t i = 0; i < a->from->output_count; i++) {
            visit(a, side, side_of(a->from, side)->outputs[a->outputs[i]]);
        }
    }
    place_nodes(a, SOURCE);
    place_nodes(a, TARGET);
    a->to.condition = 255;
    if (a->from->condition != 255) {
        a->to.condition = copy_program(a, a->from->condition);
    }
}

/* ------------------------------------------------------------------ choosing */

/* Order k of the outputs, by its digits in base `count`; false when it names one twice. */
static bool order_outputs(uint32_t k, uint32_t count, uint8_t *outputs)
{
    uint32_t seen = 0;
    for (uint32_t i = 0; i < count; i++, k /= count) {
        outputs[i] = (uint8_t)(k % count);
        seen |= 1u << outputs[i];
    }
    return seen == (1u << count) - 1u;
}

/* The packed bytes of the least arrangement so far. */
typedef struct {
    uint8_t bytes[PACKED_MOST];
    size_t size;
    arrangement found;
} least;

static void compare_arrangement(const arrangement *a, least *best)
{
    uint8_t bytes[PACKED_MOST];
    size_t size = graft_rule_pack(&a->to, bytes, sizeof bytes);
    int order = best->size == 0      ? -1
                : size != best->size ? (size < best->size ? -1 : 1)
                                     : memcmp(bytes, best->bytes, size);
    if (size > 0 && order < 0) {
        memcpy(best->bytes, bytes, size);
        best->size = size;
        best->found = *a;
    }
}

static void renumber_point(const arrangement *a, graft_point *point)
{
    graft_point old = *point;
    memset(point, 0, sizeof *point);
    for (uint32_t v = 0; v < a->from->var_count; v++) {
        point->vars[a->var[v]] = old.vars[v];
    }
    for (uint32_t s = 0; s < a->from->slot_count; s++) {
        point->slots[a->slot[s]] = old.slots[s];
    }
}

void graft_rule_canonicalise(graft_rule *rule, graft_point *point)
{
    const graft_rule from = *rule;
    arrangement a = {.from = &from};
    least best = {.size = 0};
    const uint32_t swaps = number_swaps(&a);
    uint32_t orders = 1;
    for (uint32_t i = 0; i < rule->output_count; i++) {
        orders *= rule->output_count;
    }
    for (uint32_t k = 0; k < orders; k++) {
        if (!order_outputs(k, rule->output_count, a.outputs)) {
            continue;
        }
        for (a.swaps = 0; a.swaps < 1u << swaps; a.swaps++) {
            arrange(&a);
            compare_arrangement(&a, &best);
        }
    }
    assert(best.size > 0);
    if (point != NULL) {
        renumber_point(&best.found, point);
    }
    *rule = best.found.to;
}

/* ------------------------------------------------------------------- trivial */

static bool same_operand(const graft_rule *rule, graft_operand x, graft_operand y, uint32_t depth);

static bool same_nodes(const graft_rule *rule, uint32_t n, uint32_t m, uint32_t depth)
{
    const graft_pattern_node *x = &rule->source.nodes[n];
    const graft_pattern_node *y = &rule->target.nodes[m];
    if (x->op != y->op || depth == 0) {
        return false;
    }
    const graft_op_info *info = graft_op(x->op);
    for (uint32_t i = 0; i < info->attr_count; i++) {
        if (x->attrs[i].kind != y->attrs[i].kind || x->attrs[i].value != y->attrs[i].value) {
            return false;
        }
    }
    bool straight = true;
    for (uint32_t i = 0; i < info->input_count && straight; i++) {
        straight = same_operand(rule, x->inputs[i], y->inputs[i], depth - 1);
    }
    return straight ||
           (commutes(x->op) && same_operand(rule, x->inputs[0], y->inputs[1], depth - 1) &&
            same_operand(rule, x->inputs[1], y->inputs[0], depth - 1));
}

static bool same_operand(const graft_rule *rule, graft_operand x, graft_operand y, uint32_t depth)
{
    if (!GRAFT_OPERAND_IS_NODE(x) || !GRAFT_OPERAND_IS_NODE(y)) {
        return x == y;
    }
    return GRAFT_OPERAND_SLOT_OF(x) == GRAFT_OPERAND_SLOT_OF(y) &&
           same_nodes(rule, GRAFT_OPERAND_NODE_OF(x), GRAFT_OPERAND_NODE_OF(y), depth);
}

bool graft_rule_is_trivial(const graft_rule *rule)
{
    bool same = true;
    for (uint32_t i = 0; i < rule->output_count && same; i++) {
        same = same_operand(rule, rule->source.outputs[i], rule->target.outputs[i],
                            GRAFT_RULE_MAX_NODES);
    }
    return same;
}

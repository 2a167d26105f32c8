/* symcase.c - see symcase.h. A depth-first search over digits; ranks are inferred after each choice
 * as far as they are known, which cuts off most of the tree. */
#include "verify/symcase.h"

#include "graph/pattern.h"
#include "verify/instance.h"

#include <string.h>

enum {
    DIGITS_MOST = GRAFT_RULE_MAX_VARS + GRAFT_RULE_MAX_SLOTS + 2 * GRAFT_RULE_MAX_NODES,
    RANK_UNKNOWN = -1,
    RANK_WRONG = -2
};

typedef enum { DIGIT_RANK, DIGIT_SLOT, DIGIT_INFINITE, DIGIT_MADE } digit_kind;

typedef struct {
    uint8_t kind; /* digit_kind */
    uint8_t side;
    uint8_t index; /* Variable, slot or node. */
    int32_t least;
    int32_t most;
} digit;

typedef struct {
    const graft_rule *rule;
    graft_sym_case_visitor visit;
    void *context;
    digit digits[DIGITS_MOST];
    uint32_t count;
    uint32_t known; /* Digits that are set. */
    uint64_t slots; /* Bit: the slot has its value. */
    uint32_t vars;
    uint32_t made[2];
    uint8_t order[2][GRAFT_RULE_MAX_NODES]; /* By side: operands first. */
    graft_sym_case c;
} search;

bool graft_sym_is_choice(uint32_t op, uint32_t attr)
{
    switch (op) {
    case GRAFT_OP_concat:
    case GRAFT_OP_split:
    case GRAFT_OP_slice:
    case GRAFT_OP_pad:
        return attr == GRAFT_ATTR_concat_axis;
    case GRAFT_OP_transpose:
    case GRAFT_OP_softmax:
    case GRAFT_OP_reduce_mean:
    case GRAFT_OP_reduce_sum:
    case GRAFT_OP_reduce_max:
        return true;
    case GRAFT_OP_avg_pool:
        return attr == GRAFT_ATTR_avg_pool_count_pad;
    default:
        return graft_op_attr(op, attr)->kind == GRAFT_ATTR_ACTIVATION;
    }
}

/* ------------------------------------------------------------------- values */

static const graft_pattern *side_of(const graft_rule *rule, uint32_t side)
{
    return side == GRAFT_SYM_SOURCE ? &rule->source : &rule->target;
}

/* Whether a program reads nothing but constants and slots that are set. */
static bool is_computable(const graft_rule *rule, uint64_t slots, uint32_t offset)
{
    const uint8_t *code = rule->code;
    static const uint8_t operands[GRAFT_CODE_COUNT] = {
        [GRAFT_CODE_CONST8] = 1, [GRAFT_CODE_CONST32] = 4, [GRAFT_CODE_SLOT] = 1,
        [GRAFT_CODE_DIM] = 2,    [GRAFT_CODE_RANK] = 1,    [GRAFT_CODE_IS_CONST] = 1,
        [GRAFT_CODE_SAME] = 2};
    for (; code[offset] != GRAFT_CODE_END; offset += 1u + operands[code[offset]]) {
        bool reads_shape = code[offset] >= GRAFT_CODE_DIM && code[offset] <= GRAFT_CODE_SAME;
        bool unset = code[offset] == GRAFT_CODE_SLOT && (slots >> code[offset + 1] & 1u) == 0;
        if (reads_shape || unset) {
            return false;
        }
    }
    return true;
}

/* False when the attribute's value does not follow from the slots that are set (as bits). */
static bool compute_attr(const graft_rule *rule, const graft_sym_case *c, uint64_t slots,
                         const graft_term *term, int32_t *value)
{
    int64_t result = 0;
    switch (term->kind) {
    case GRAFT_TERM_CONST:
        *value = term->value;
        return true;
    case GRAFT_TERM_SLOT:
        *value = c->slots[term->value];
        return (slots >> term->value & 1u) != 0;
    default:
        if (!is_computable(rule, slots, (uint32_t)term->value) ||
            !graft_code_run(rule, (uint32_t)term->value, NULL, NULL, c->slots, &result)) {
            return false;
        }
        *value = (int32_t)result;
        return true;
    }
}

/* False when the attribute's value is not known yet. */
static bool attr_value(const search *s, const graft_pattern_node *node, uint32_t attr,
                       int32_t *value)
{
    return compute_attr(s->rule, &s->c, s->slots, &node->attrs[attr], value);
}

bool graft_sym_case_attr(const graft_rule *rule, const graft_sym_case *c,
                         const graft_pattern_node *node, uint32_t attr, int32_t *value)
{
    uint64_t slots = 0;
    for (uint32_t i = 0; i < rule->slot_count; i++) {
        slots |= c->chosen[i] ? UINT64_C(1) << i : 0;
    }
    return compute_attr(rule, c, slots, &node->attrs[attr], value);
}

/* -------------------------------------------------------------------- ranks */

static int broadcast_rank(int a, int b)
{
    return a == RANK_UNKNOWN || b == RANK_UNKNOWN ? RANK_UNKNOWN : a > b ? a : b;
}

/* The input's rank when the axis is one of its axes. */
static int with_axis(const search *s, const graft_pattern_node *node, int rank)
{
    int32_t axis = 0;
    bool known = attr_value(s, node, GRAFT_ATTR_concat_axis, &axis);
    return rank >= 0 && known && axis >= rank ? RANK_WRONG : rank;
}

static int reduced_rank(const search *s, const graft_pattern_node *node, int rank)
{
    int32_t axes = 0;
    int32_t keep = 0;
    bool known = attr_value(s, node, GRAFT_ATTR_reduce_mean_axes, &axes);
    if (rank >= 0 && known && (uint32_t)axes >> (uint32_t)rank != 0) {
        return RANK_WRONG;
    }
    if (rank < 0 || !known || !attr_value(s, node, GRAFT_ATTR_reduce_mean_keep, &keep)) {
        return RANK_UNKNOWN;
    }
    return keep == 1 ? rank : rank - __builtin_popcount((uint32_t)axes);
}

static int permuted_rank(const search *s, const graft_pattern_node *node, int rank)
{
    uint32_t seen = 0;
    for (int i = 0; rank >= 0 && i < GRAFT_MAX_RANK; i++) {
        int32_t axis = 0;
        if (!attr_value(s, node, (uint32_t)i, &axis)) {
            continue;
        }
        bool fits = i >= rank ? axis == 0 : axis < rank && (seen >> axis & 1u) == 0;
        if (!fits) {
            return RANK_WRONG;
        }
        seen |= i < rank ? 1u << axis : 0;
    }
    return rank;
}

static int matmul_rank(int a, int b)
{
    return (a >= 0 && a < 2) || (b >= 0 && b < 2) ? RANK_WRONG : broadcast_rank(a, b);
}

static int exact_rank(int rank, int wanted)
{
    return rank >= 0 && rank != wanted ? RANK_WRONG : wanted;
}

static int same_rank(int a, int b)
{
    return a >= 0 && b >= 0 && a != b ? RANK_WRONG : a >= 0 ? a : b;
}

static int fitting_rank(const search *s, const graft_pattern_node *node, const int *in)
{
    switch (node->op) {
    case GRAFT_OP_conv:
        return exact_rank(in[0], 4) == 4 ? exact_rank(in[1], 4) : RANK_WRONG;
    case GRAFT_OP_conv_bias_add:
    case GRAFT_OP_conv_bias:
        if (exact_rank(in[0], 4) != 4 || exact_rank(in[1], 4) != 4 || exact_rank(in[2], 1) != 1) {
            return RANK_WRONG;
        }
        return node->op == GRAFT_OP_conv_bias ? 4 : exact_rank(in[3], 4);
    case GRAFT_OP_max_pool:
    case GRAFT_OP_avg_pool:
    case GRAFT_OP_global_avg_pool:
        return exact_rank(in[0], 4);
    case GRAFT_OP_matmul:
        return matmul_rank(in[0], in[1]);
    case GRAFT_OP_matmul_bias:
        return exact_rank(in[2], 1) == 1 ? matmul_rank(in[0], in[1]) : RANK_WRONG;
    case GRAFT_OP_scale_shift:
    case GRAFT_OP_layer_norm: {
        int least = node->op == GRAFT_OP_scale_shift ? 2 : 1;
        bool vectors = exact_rank(in[1], 1) == 1 && exact_rank(in[2], 1) == 1;
        return !vectors || (in[0] >= 0 && in[0] < least) ? RANK_WRONG : in[0];
    }
    case GRAFT_OP_concat:
        return same_rank(in[0], in[1]) == RANK_WRONG ? RANK_WRONG
                                                     : with_axis(s, node, same_rank(in[0], in[1]));
    case GRAFT_OP_split:
    case GRAFT_OP_slice:
    case GRAFT_OP_pad:
    case GRAFT_OP_softmax:
        return with_axis(s, node, in[0]);
    case GRAFT_OP_transpose:
        return permuted_rank(s, node, in[0]);
    case GRAFT_OP_reduce_mean:
    case GRAFT_OP_reduce_sum:
    case GRAFT_OP_reduce_max:
        return reduced_rank(s, node, in[0]);
    default:
        return graft_op(node->op)->input_count == 2 ? broadcast_rank(in[0], in[1]) : in[0];
    }
}

static bool makes_rank(uint32_t op) { return op == GRAFT_OP_reshape || op == GRAFT_OP_fill; }

static int var_rank(const search *s, uint32_t v)
{
    return (s->vars >> v & 1u) != 0 ? s->c.ranks[v] : RANK_UNKNOWN;
}

/* The rank of an operand on a side whose nodes have `ranks`. */
static int operand_rank(const search *s, const int *ranks, graft_operand x)
{
    if (GRAFT_OPERAND_IS_NODE(x)) {
        return ranks[GRAFT_OPERAND_NODE_OF(x)];
    }
    return var_rank(s, x);
}

/* Infers ranks on a side as far as they are known; false when they do not fit. */
static bool infer_ranks(const search *s, uint32_t side, int *ranks)
{
    const graft_pattern *pattern = side_of(s->rule, side);
    for (uint32_t k = 0; k < pattern->node_count; k++) {
        uint32_t n = s->order[side][k];
        const graft_pattern_node *node = &pattern->nodes[n];
        int in[GRAFT_MAX_INPUTS] = {RANK_UNKNOWN, RANK_UNKNOWN, RANK_UNKNOWN, RANK_UNKNOWN};
        for (uint32_t i = 0; i < graft_op(node->op)->input_count; i++) {
            in[i] = operand_rank(s, ranks, node->inputs[i]);
        }
        if (makes_rank(node->op)) {
            ranks[n] = (s->made[side] >> n & 1u) != 0 ? s->c.made[side][n] : RANK_UNKNOWN;
        } else {
            ranks[n] = fitting_rank(s, node, in);
        }
        if (ranks[n] == RANK_WRONG || ranks[n] > GRAFT_MAX_RANK) {
            return false;
        }
    }
    return true;
}

static void note_ranks(search *s, uint32_t side, const int *ranks)
{
    for (uint32_t n = 0; n < side_of(s->rule, side)->node_count; n++) {
        s->c.node_ranks[side][n] = (int8_t)ranks[n];
    }
}

/* Whether they do as far as they are known; notes what they are. */
static bool ranks_fit(search *s)
{
    int source[GRAFT_RULE_MAX_NODES] = {0};
    int target[GRAFT_RULE_MAX_NODES] = {0};
    if (!infer_ranks(s, GRAFT_SYM_SOURCE, source) || !infer_ranks(s, GRAFT_SYM_TARGET, target)) {
        return false;
    }
    for (uint32_t i = 0; i < s->rule->output_count; i++) {
        int a = operand_rank(s, source, s->rule->source.outputs[i]);
        int b = operand_rank(s, target, s->rule->target.outputs[i]);
        if (same_rank(a, b) == RANK_WRONG) {
            return false;
        }
    }
    note_ranks(s, GRAFT_SYM_SOURCE, source);
    note_ranks(s, GRAFT_SYM_TARGET, target);
    return true;
}

/* ------------------------------------------------------------ the precondition */

enum { DEPTH = 16, NUMBER_MOST = 1 << 20 };

/* A number that a program computes, as far as the case decides it. */
typedef struct {
    bool known;
    int64_t number;
} decided;

static decided decide(int64_t number)
{
    return (decided){number <= NUMBER_MOST && number >= -NUMBER_MOST, number};
}

static bool is_known_as(decided x, bool truth) { return x.known && (x.number != 0) == truth; }

static decided decide_operation(uint32_t code, decided a, decided b)
{
    bool both = a.known && b.known;
    switch (code) {
    case GRAFT_CODE_AND:
        if (is_known_as(a, false) || is_known_as(b, false)) {
            return decide(0);
        }
        return (decided){both, 1};
    case GRAFT_CODE_OR:
        if (is_known_as(a, true) || is_known_as(b, true)) {
            return decide(1);
        }
        return (decided){both, 0};
    case GRAFT_CODE_ADD:
        return both ? decide(a.number + b.number) : (decided){false, 0};
    case GRAFT_CODE_SUB:
        return both ? decide(a.number - b.number) : (decided){false, 0};
    case GRAFT_CODE_EQ:
        return (decided){both, a.number == b.number};
    case GRAFT_CODE_LE:
        return (decided){both, a.number <= b.number};
    default:
        return (decided){false, 0};
    }
}

static decided decide_leaf(const search *s, uint32_t code, const uint8_t *operand, bool *fails)
{
    int rank = code >= GRAFT_CODE_DIM ? var_rank(s, operand[0]) : 0;
    int32_t axis = 0;
    switch (code) {
    case GRAFT_CODE_CONST8:
        return decide(operand[0] < 128 ? operand[0] : operand[0] - 256);
    case GRAFT_CODE_SLOT:
        return (decided){(s->slots >> operand[0] & 1u) != 0, s->c.slots[operand[0]]};
    case GRAFT_CODE_RANK:
        return (decided){rank >= 0, rank};
    case GRAFT_CODE_DIM:
        axis = operand[1] < 128 ? operand[1] : operand[1] - 256;
        *fails = *fails || (rank >= 0 && (axis >= rank || axis < -rank));
        return (decided){false, 0};
    case GRAFT_CODE_SAME:
        return (decided){same_rank(rank, var_rank(s, operand[1])) == RANK_WRONG, 0};
    default:
        return (decided){false, 0};
    }
}

/* Whether the precondition is false, or reads an axis that is not there, whatever sizes and the
 * choices that are still open are. */
static bool is_refused(const search *s)
{
    decided stack[DEPTH] = {
        {false, 0}
    };
    uint32_t depth = 0;
    bool fails = false;
    const uint8_t *code = s->rule->code;
    if (s->rule->condition == 255 || s->c.scalar) {
        return false;
    }
    for (uint32_t i = s->rule->condition; code[i] != GRAFT_CODE_END;
         i += 1 + graft_code_operand_bytes(code[i])) {
        bool leaf = code[i] >= GRAFT_CODE_CONST8 && code[i] <= GRAFT_CODE_SAME;
        if (leaf ? depth == DEPTH : depth < (code[i] == GRAFT_CODE_NOT ? 1u : 2u)) {
            return true; /* The engine refuses such a program. */
        }
        if (leaf) {
            stack[depth++] = decide_leaf(s, code[i], &code[i + 1], &fails);
        } else if (code[i] == GRAFT_CODE_NOT) {
            stack[depth - 1].number = stack[depth - 1].number == 0 ? 1 : 0;
        } else {
            depth--;
            stack[depth - 1] = decide_operation(code[i], stack[depth - 1], stack[depth]);
        }
    }
    return fails || is_known_as(stack[0], false);
}

/* ---------------------------------------------------------------- searching */

static void set_digit(search *s, const digit *d, int32_t value)
{
    switch ((digit_kind)d->kind) {
    case DIGIT_RANK:
        s->c.ranks[d->index] = (uint8_t)value;
        s->vars |= 1u << d->index;
        break;
    case DIGIT_SLOT:
        s->c.slots[d->index] = value;
        s->slots |= UINT64_C(1) << d->index;
        break;
    case DIGIT_INFINITE:
        s->c.infinite[d->index] = (int8_t)value;
        break;
    case DIGIT_MADE:
        s->c.made[d->side][d->index] = (uint8_t)value;
        s->made[d->side] |= 1u << d->index;
        break;
    }
}

static void clear_digit(search *s, const digit *d)
{
    if (d->kind == DIGIT_RANK) {
        s->vars &= ~(1u << d->index);
    } else if (d->kind == DIGIT_SLOT) {
        s->slots &= ~(UINT64_C(1) << d->index);
    } else if (d->kind == DIGIT_MADE) {
        s->made[d->side] &= ~(1u << d->index);
    }
}

static bool search_from(search *s, uint32_t depth)
{
    if (depth == s->count) {
        return s->visit(s->context, &s->c);
    }
    const digit *d = &s->digits[depth];
    bool go_on = true;
    for (int32_t value = d->least; value <= d->most && go_on; value++) {
        set_digit(s, d, value);
        if (s->c.scalar || (!is_refused(s) && ranks_fit(s))) {
            go_on = search_from(s, depth + 1);
        }
    }
    clear_digit(s, d);
    return go_on;
}

/* ------------------------------------------------------------------- digits */

static void add_digit(search *s, digit d) { s->digits[s->count++] = d; }

static void add_slot_digit(search *s, uint32_t slot, digit_kind kind, int32_t least, int32_t most)
{
    for (uint32_t i = 0; i < s->count; i++) {
        digit *d = &s->digits[i];
        if (d->kind == kind && d->index == slot) {
            d->least = least < d->least ? least : d->least;
            d->most = most > d->most ? most : d->most;
            return;
        }
    }
    s->c.chosen[slot] = s->c.chosen[slot] || kind == DIGIT_SLOT;
    add_digit(s,
              (digit){.kind = (uint8_t)kind, .index = (uint8_t)slot, .least = least, .most = most});
}

/* The ranks that a node's constant sizes leave open. */
static void add_made_digit(search *s, uint32_t side, uint32_t n, const graft_pattern_node *node)
{
    uint32_t first = node->op == GRAFT_OP_fill ? (uint32_t)GRAFT_ATTR_fill_dim_0 : 0;
    int32_t least = 0;
    int32_t most = GRAFT_MAX_RANK;
    for (int32_t i = GRAFT_MAX_RANK; i-- > 0;) {
        const graft_term *term = &node->attrs[first + (uint32_t)i];
        if (term->kind == GRAFT_TERM_CONST && term->value == 0) {
            most = i;
        } else if (term->kind == GRAFT_TERM_CONST && least == 0) {
            least = i + 1;
        }
    }
    if (s->c.scalar) {
        least = most = 0;
    }
    add_digit(s, (digit){.kind = DIGIT_MADE,
                         .side = (uint8_t)side,
                         .index = (uint8_t)n,
                         .least = least,
                         .most = most});
}

static void add_node_digits(search *s, uint32_t side, uint32_t n)
{
    const graft_pattern_node *node = &side_of(s->rule, side)->nodes[n];
    for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
        const graft_attr_info *info = graft_op_attr(node->op, i);
        if (node->attrs[i].kind != GRAFT_TERM_SLOT) {
            continue;
        }
        uint32_t slot = (uint32_t)node->attrs[i].value;
        if (graft_sym_is_choice(node->op, i)) {
            add_slot_digit(s, slot, DIGIT_SLOT, info->least, info->most);
        } else if (node->op == GRAFT_OP_clip) {
            bool low = i == GRAFT_ATTR_clip_low;
            add_slot_digit(s, slot, DIGIT_INFINITE, low ? -1 : 0, low ? 0 : 1);
        }
    }
    if (makes_rank(node->op)) {
        add_made_digit(s, side, n, node);
    }
}

static bool is_elementwise(const graft_rule *rule)
{
    for (uint32_t side = 0; side < 2; side++) {
        const graft_pattern *pattern = side_of(rule, side);
        for (uint32_t n = 0; n < pattern->node_count; n++) {
            uint32_t op = pattern->nodes[n].op;
            if (op != GRAFT_OP_fill && (graft_op(op)->flags & GRAFT_FLAG_ELEMENTWISE) == 0) {
                return false;
            }
        }
    }
    return true;
}

bool graft_sym_cases(const graft_rule *rule, graft_sym_case_visitor visit, void *context)
{
    search s = {.rule = rule, .visit = visit, .context = context};
    s.c.scalar = is_elementwise(rule);
    graft_pattern_order(&rule->source, s.order[GRAFT_SYM_SOURCE]);
    graft_pattern_order(&rule->target, s.order[GRAFT_SYM_TARGET]);
    for (uint32_t v = 0; v < rule->var_count; v++) {
        add_digit(&s, (digit){.kind = DIGIT_RANK,
                              .index = (uint8_t)v,
                              .most = s.c.scalar ? 0 : GRAFT_MAX_RANK});
    }
    for (uint32_t side = 0; side < 2; side++) {
        for (uint32_t n = 0; n < side_of(rule, side)->node_count; n++) {
            add_node_digits(&s, side, n);
        }
    }
    return search_from(&s, 0);
}

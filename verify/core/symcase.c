/* symcase.c - see symcase.h. A depth-first search over digits; ranks are inferred after each choice
 * as far as they are known, which cuts off most of the tree. */
#include "verify/core/symcase.h"

#include "graph/rule/pattern.h"
#include "graph/rule/rulecode.h"
#include "verify/core/limits.h"

#include <string.h>

enum {
    /* Of a slot, two: what it chooses, and whether it is infinite. */
    DIGITS = GRAFT_RULE_MAX_VARS + 2 * GRAFT_RULE_MAX_SLOTS + 2 * GRAFT_RULE_MAX_NODES,
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
    digit digits[DIGITS];
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
    switch (graft_op_attr(op, attr)->role) {
    case GRAFT_ROLE_AXIS:
    case GRAFT_ROLE_AXES:
    case GRAFT_ROLE_ORDER:
    case GRAFT_ROLE_MODE:
        return true;
    default:
        return false;
    }
}

/* ------------------------------------------------------------------- values */

const graft_pattern *graft_sym_pattern(const graft_rule *rule, uint32_t side)
{
    return side == GRAFT_SYM_SOURCE ? &rule->source : &rule->target;
}

/* Whether a program reads nothing but constants and slots that are set. */
static bool is_computable(const graft_rule *rule, uint64_t slots, uint32_t offset)
{
    for (; rule->code[offset] != GRAFT_CODE_END; offset = graft_code_next(rule, offset)) {
        graft_code_step step = graft_code_at(rule, offset);
        bool reads_shape = step.code >= GRAFT_CODE_DIM && step.code <= GRAFT_CODE_SAME;
        bool unset = step.code == GRAFT_CODE_SLOT && (slots >> step.index & 1u) == 0;
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
        return result >= INT32_MIN && result <= INT32_MAX; /* The engine refuses others. */
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

/* graft/shapes.def where nothing is known but ranks, and these in part: of sizes everything is so. */
typedef struct {
    uint32_t rank; /* 0 when it is open. */
    bool open;
    bool dims[GRAFT_MAX_RANK];
} op_shape;

typedef bool op_size;

typedef struct op_site {
    const search *s;
    const graft_pattern_node *node;
    op_shape in[GRAFT_MAX_INPUTS];
    op_shape *out;
    op_shape made; /* What a reshape or fill makes. */
    bool *guessed; /* A choice was read that is open: the first of its domain stands for it. */
} op_site;

static const op_shape *op_input(const op_site *p, uint32_t i) { return &p->in[i]; }

static op_shape *op_output(const op_site *p, uint32_t i) { return &p->out[i]; }

static bool op_is_open(const op_site *p, uint32_t k)
{
    int32_t value = 0;
    return !attr_value(p->s, p->node, k, &value);
}

/* Where the least axis is refused every one is. */
static uint32_t op_choice(const op_site *p, uint32_t k)
{
    int32_t value = 0;
    if (!attr_value(p->s, p->node, k, &value)) {
        *p->guessed = true;
        value = graft_op_attr(p->node->op, k)->least;
    }
    return (uint32_t)value;
}

static bool is_any_rank(const op_shape *shape) { return shape->open; }

static op_shape empty_shape(uint32_t rank) { return (op_shape){.rank = rank}; }

static op_shape wider_shape(const op_shape *a, const op_shape *b)
{
    bool open = a->open || b->open;
    return (op_shape){.rank = open ? 0 : a->rank > b->rank ? a->rank : b->rank, .open = open};
}

static op_shape made_shape(const op_site *p, uint32_t first)
{
    (void)first;
    return p->made;
}

/* A rank that is counted depends on the choices that were read. */
static void set_rank(const op_site *p, op_shape *shape, uint32_t rank)
{
    shape->open = shape->open || *p->guessed;
    shape->rank = shape->open ? 0 : rank;
}

static const char *expect(bool so, const char *why) { return so ? NULL : why; }

#define ANY(p, a, b)                       ((void)(p), (void)(a), (void)(b), true)
#define op_attr(p, k)                      ANY(p, k, k)
#define op_number(p, n)                    ANY(p, n, n)
#define op_add                             ANY
#define op_subtract                        ANY
#define op_multiply                        ANY
#define op_wide                            ANY
#define op_windows                         ANY
#define set_dim(p, shape, axis, size)      ((void)(ANY(p, axis, size) && ANY(p, shape, size)))
#define put_dim(p, shape, axis, size)      expect(ANY(p, axis, size) && ANY(p, shape, size), "")
#define expect_equal(p, a, b, why)         expect(ANY(p, a, b), why)
#define expect_le(p, a, b, why)            expect(ANY(p, a, b), why)
#define expect_divides(p, by, a, why)      expect(ANY(p, by, a), why)
#define expect_broadcast(p, a, b, why)     expect(ANY(p, a, b), why)
#define expect_same_elements(p, a, b, why) expect(ANY(p, a, b), why)
#define expect_order(p, low, high, why)    expect(ANY(p, low, high), why)
#define expect_sign(p, k, strictly, why)   expect(ANY(p, k, strictly), why)
#define expect_bound(p, k, above, why)     expect(ANY(p, k, above), why)
#define expect_absent(p, k, why)           expect(ANY(p, k, k), why)
#define expect_positive(p, a, why)         expect(ANY(p, a, a), why)
#define expect_finite(p, k, why)           expect(ANY(p, k, k), why)
#define expect_le_or_none(p, a, b, c, why) expect(ANY(p, a, b) && ANY(p, b, c), why)

#include "graft/shapes.def"

/* The first of the attributes that say which shape is made; GRAFT_MAX_ATTRS where there are none. */
static uint32_t first_extent(uint32_t op)
{
    uint32_t first = 0;
    while (first < graft_op(op)->attr_count &&
           graft_op_attr(op, first)->role != GRAFT_ROLE_EXTENT) {
        first++;
    }
    return first < graft_op(op)->attr_count ? first : GRAFT_MAX_ATTRS;
}

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

static bool may_be_equal(int a, int b) { return a < 0 || b < 0 || a == b; }

static op_shape shape_of_rank(int rank)
{
    return (op_shape){.rank = rank < 0 ? 0 : (uint32_t)rank, .open = rank < 0};
}

/* The rank of a node's outputs; RANK_WRONG when its inputs' ranks or its choices do not fit. */
static int infer_rank(const search *s, uint32_t side, uint32_t n, const int *ranks)
{
    const graft_pattern_node *node = &graft_sym_pattern(s->rule, side)->nodes[n];
    op_shape out[GRAFT_MAX_OUTPUTS];
    bool guessed = false;
    op_site site = {.s = s, .node = node, .out = out, .guessed = &guessed};
    bool made = (s->made[side] >> n & 1u) != 0;
    site.made = shape_of_rank(made ? s->c.made[side][n] : RANK_UNKNOWN);
    for (uint32_t i = 0; i < graft_op(node->op)->input_count; i++) {
        site.in[i] = shape_of_rank(operand_rank(s, ranks, node->inputs[i]));
    }
    if (shape_table[node->op](&site) != NULL) {
        return RANK_WRONG;
    }
    return out[0].open ? RANK_UNKNOWN : (int)out[0].rank;
}

/* Infers ranks on a side as far as they are known; false when they do not fit. */
static bool infer_ranks(const search *s, uint32_t side, int *ranks)
{
    for (uint32_t k = 0; k < graft_sym_pattern(s->rule, side)->node_count; k++) {
        uint32_t n = s->order[side][k];
        ranks[n] = infer_rank(s, side, n, ranks);
        if (ranks[n] == RANK_WRONG) {
            return false;
        }
    }
    return true;
}

static void note_ranks(search *s, uint32_t side, const int *ranks)
{
    for (uint32_t n = 0; n < graft_sym_pattern(s->rule, side)->node_count; n++) {
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
        if (!may_be_equal(a, b)) {
            return false;
        }
    }
    note_ranks(s, GRAFT_SYM_SOURCE, source);
    note_ranks(s, GRAFT_SYM_TARGET, target);
    return true;
}

/* ------------------------------------------------------------ the precondition */

/* A number that a program computes, as far as the case decides it. */
typedef struct {
    bool known;
    int32_t number;
} decided;

static bool is_known_as(decided x, bool truth) { return x.known && (x.number != 0) == truth; }

static decided decide_operation(uint32_t code, decided a, decided b, bool *fails)
{
    int64_t number = 0;
    if (code == GRAFT_CODE_AND && (is_known_as(a, false) || is_known_as(b, false))) {
        return (decided){true, 0};
    }
    if (code == GRAFT_CODE_OR && (is_known_as(a, true) || is_known_as(b, true))) {
        return (decided){true, 1};
    }
    if (!a.known || !b.known) {
        return (decided){false, 0};
    }
    *fails = !graft_code_compute(code, a.number, b.number, &number) || *fails;
    return (decided){number >= INT32_MIN && number <= INT32_MAX, (int32_t)number};
}

static decided decide_leaf(const search *s, const graft_code_step *step, bool *fails)
{
    int rank = step->code >= GRAFT_CODE_DIM ? var_rank(s, step->index) : 0;
    switch (step->code) {
    case GRAFT_CODE_CONST8:
        return (decided){true, step->number};
    case GRAFT_CODE_SLOT:
        return (decided){(s->slots >> step->index & 1u) != 0, s->c.slots[step->index]};
    case GRAFT_CODE_RANK:
        return (decided){rank >= 0, rank};
    case GRAFT_CODE_DIM:
        *fails = *fails || (rank >= 0 && (step->number >= rank || step->number < -rank));
        return (decided){false, 0};
    case GRAFT_CODE_SAME:
        return (decided){!may_be_equal(rank, var_rank(s, step->other)), 0};
    default:
        return (decided){false, 0};
    }
}

/* Whether the precondition is false, or fails, whatever sizes and the choices that are still open
 * are. */
static bool is_refused(const search *s)
{
    decided stack[GRAFT_ROOM_PROGRAM_DEPTH] = {
        {false, 0}
    };
    bool fails = false;
    if (s->rule->condition == 255 || s->c.scalar) {
        return false;
    }
    graft_code_reader reader =
        graft_code_open(s->rule, s->rule->condition, GRAFT_LIMIT(PROGRAM_DEPTH));
    for (graft_code_step step; graft_code_read(&reader, &step);) {
        decided *top = &stack[step.place];
        *top = step.takes == 0   ? decide_leaf(s, &step, &fails)
               : step.takes == 1 ? decide_operation(step.code, top[0], top[0], &fails)
                                 : decide_operation(step.code, top[0], top[1], &fails);
    }
    /* Nothing is known of a program that is too deep (symcode.c). */
    return reader.end == GRAFT_CODE_WHOLE && (fails || is_known_as(stack[0], false));
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
    uint32_t first = first_extent(node->op);
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
    const graft_pattern_node *node = &graft_sym_pattern(s->rule, side)->nodes[n];
    for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
        const graft_attr_info *info = graft_op_attr(node->op, i);
        if (node->attrs[i].kind != GRAFT_TERM_SLOT) {
            continue;
        }
        uint32_t slot = (uint32_t)node->attrs[i].value;
        if (graft_sym_is_choice(node->op, i)) {
            add_slot_digit(s, slot, DIGIT_SLOT, info->least, info->most);
        } else if (info->role == GRAFT_ROLE_LOW || info->role == GRAFT_ROLE_HIGH) {
            bool low = info->role == GRAFT_ROLE_LOW;
            add_slot_digit(s, slot, DIGIT_INFINITE, low ? -1 : 0, low ? 0 : 1);
        }
    }
    if (first_extent(node->op) < GRAFT_MAX_ATTRS) {
        add_made_digit(s, side, n, node);
    }
}

static bool is_elementwise(const graft_rule *rule)
{
    for (uint32_t side = 0; side < 2; side++) {
        const graft_pattern *pattern = graft_sym_pattern(rule, side);
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
        for (uint32_t n = 0; n < graft_sym_pattern(rule, side)->node_count; n++) {
            add_node_digits(&s, side, n);
        }
    }
    return search_from(&s, 0);
}

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
    OPEN = -1 /* A rank or a choice that is not known yet. */
};

/* A part of the case, and its values. */
typedef struct {
    int8_t *place;
    int8_t least;
    int8_t most;
} digit;

typedef struct {
    const graft_rule *rule;
    graft_sym_case_visitor visit;
    void *context;
    digit digits[DIGITS];
    uint32_t count;
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

const graft_pattern *graft_sym_pattern(const graft_rule *rule, uint32_t side)
{
    return side == GRAFT_SYM_SOURCE ? &rule->source : &rule->target;
}

/* ----------------------------------------------------------------- programs */

/* A number that a program computes, as far as the case decides it. */
typedef struct {
    bool known;
    int32_t number;
} decided;

static bool is_known_as(decided x, bool truth) { return x.known && (x.number != 0) == truth; }

static bool may_be_equal(int a, int b) { return a == OPEN || b == OPEN || a == b; }

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

static decided decide_leaf(const graft_sym_case *c, const graft_code_step *step, bool *fails)
{
    int rank = step->code >= GRAFT_CODE_DIM ? c->ranks[step->index] : 0;
    switch (step->code) {
    case GRAFT_CODE_CONST8:
    case GRAFT_CODE_CONST32:
        return (decided){true, step->number};
    case GRAFT_CODE_SLOT:
        return (decided){c->chosen[step->index] && c->slots[step->index] != OPEN,
                         c->slots[step->index]};
    case GRAFT_CODE_RANK:
        return (decided){rank != OPEN, rank};
    case GRAFT_CODE_DIM:
        *fails = *fails || (rank != OPEN && (step->number >= rank || step->number < -rank));
        return (decided){false, 0};
    case GRAFT_CODE_SAME:
        return (decided){!may_be_equal(rank, c->ranks[step->other]), 0};
    default:
        return (decided){false, 0};
    }
}

/* A program, whatever sizes and the choices that are still open are. */
typedef struct {
    decided value;
    bool fails;
} outcome;

/* Nothing is known of a program that is too deep (symcode.c). */
static outcome decide(const graft_rule *rule, const graft_sym_case *c, uint32_t offset)
{
    decided stack[GRAFT_ROOM_PROGRAM_DEPTH] = {
        {false, 0}
    };
    outcome x = {.fails = false};
    graft_code_reader reader = graft_code_open(rule, offset, GRAFT_LIMIT(PROGRAM_DEPTH));
    for (graft_code_step step; graft_code_read(&reader, &step);) {
        decided *top = &stack[step.place];
        *top = step.takes == 0   ? decide_leaf(c, &step, &x.fails)
               : step.takes == 1 ? decide_operation(step.code, top[0], top[0], &x.fails)
                                 : decide_operation(step.code, top[0], top[1], &x.fails);
    }
    x.value = stack[0];
    return reader.end == GRAFT_CODE_WHOLE ? x : (outcome){.fails = false};
}

bool graft_sym_case_attr(const graft_rule *rule, const graft_sym_case *c,
                         const graft_pattern_node *node, uint32_t attr, int32_t *value)
{
    const graft_term *term = &node->attrs[attr];
    outcome x = {
        .value = {true, term->value}
    };
    if (term->kind == GRAFT_TERM_SLOT) {
        x.value = (decided){c->slots[term->value] != OPEN, c->slots[term->value]};
    } else if (term->kind == GRAFT_TERM_CODE) {
        x = decide(rule, c, (uint32_t)term->value);
    }
    *value = x.value.number;
    return x.value.known && !x.fails;
}

/* Whether the precondition is false, or fails, whatever is still open. */
static bool is_refused(const search *s)
{
    if (s->rule->condition == 255) {
        return false;
    }
    outcome x = decide(s->rule, &s->c, s->rule->condition);
    return x.fails || is_known_as(x.value, false);
}

/* -------------------------------------------------------------------- ranks */

/* graft/shapes.def where nothing is known but ranks: of sizes everything is so. */
typedef struct {
    uint32_t rank;
    bool open; /* It depends on a choice that is open. */
    bool dims[GRAFT_MAX_RANK];
} graft_op_shape;

typedef bool graft_op_size;

typedef struct graft_op_site {
    const search *s;
    const graft_pattern_node *node;
    graft_op_shape in[GRAFT_MAX_INPUTS];
    graft_op_shape *out;
    uint32_t made; /* The rank of what a reshape or fill makes. */
    bool *guessed; /* A choice was read that is open: the first of its domain stands for it. */
} graft_op_site;

static const graft_op_shape *graft_op_input(const graft_op_site *p, uint32_t i)
{
    return &p->in[i];
}

static graft_op_shape *graft_op_output(const graft_op_site *p, uint32_t i) { return &p->out[i]; }

static bool graft_op_is_open(const graft_op_site *p, uint32_t k)
{
    int32_t value = 0;
    return !graft_sym_case_attr(p->s->rule, &p->s->c, p->node, k, &value);
}

/* Where the least axis is refused every one is. */
static uint32_t graft_op_choice(const graft_op_site *p, uint32_t k)
{
    int32_t value = 0;
    if (!graft_sym_case_attr(p->s->rule, &p->s->c, p->node, k, &value)) {
        *p->guessed = true;
        value = graft_op_attr(p->node->op, k)->least;
    }
    return (uint32_t)value;
}

static graft_op_shape graft_empty_shape(uint32_t rank) { return (graft_op_shape){.rank = rank}; }

static graft_op_shape graft_wider_shape(const graft_op_shape *a, const graft_op_shape *b)
{
    return graft_empty_shape(a->rank > b->rank ? a->rank : b->rank);
}

static graft_op_shape graft_made_shape(const graft_op_site *p, uint32_t first)
{
    (void)first;
    return graft_empty_shape(p->made);
}

/* A rank that is counted depends on the choices that were read. */
static void graft_set_rank(const graft_op_site *p, graft_op_shape *shape, uint32_t rank)
{
    *shape = (graft_op_shape){.rank = rank, .open = *p->guessed};
}

static const char *graft_expect(bool so, const char *why) { return so ? NULL : why; }

#define ANY(p, a, b)                        ((void)(p), (void)(a), (void)(b), true)
#define graft_op_attribute(p, k)            ANY(p, k, k)
#define graft_op_number(p, n)               ANY(p, n, n)
#define graft_op_add                        ANY
#define graft_op_subtract                   ANY
#define graft_op_multiply                   ANY
#define graft_op_wide                       ANY
#define graft_op_windows                    ANY
#define graft_set_dim(p, shape, axis, size) ((void)(ANY(p, axis, size) && ANY(p, shape, size)))
#define graft_put_dim(p, shape, axis, size)                                                        \
    graft_expect(ANY(p, axis, size) && ANY(p, shape, size), "")
#define graft_expect_equal(p, a, b, why)         graft_expect(ANY(p, a, b), why)
#define graft_expect_le(p, a, b, why)            graft_expect(ANY(p, a, b), why)
#define graft_expect_divides(p, by, a, why)      graft_expect(ANY(p, by, a), why)
#define graft_expect_broadcast(p, a, b, why)     graft_expect(ANY(p, a, b), why)
#define graft_expect_same_elements(p, a, b, why) graft_expect(ANY(p, a, b), why)
#define graft_expect_order(p, low, high, why)    graft_expect(ANY(p, low, high), why)
#define graft_expect_sign(p, k, strictly, why)   graft_expect(ANY(p, k, strictly), why)
#define graft_expect_bound(p, k, above, why)     graft_expect(ANY(p, k, above), why)
#define graft_expect_absent(p, k, why)           graft_expect(ANY(p, k, k), why)
#define graft_expect_positive(p, a, why)         graft_expect(ANY(p, a, a), why)
#define graft_expect_finite(p, k, why)           graft_expect(ANY(p, k, k), why)
#define graft_expect_le_or_none(p, a, b, c, why) graft_expect(ANY(p, a, b) && ANY(p, b, c), why)

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

/* The rank of an operand on a side. */
static int8_t operand_rank(const search *s, uint32_t side, graft_operand x)
{
    return GRAFT_OPERAND_IS_NODE(x) ? s->c.node_ranks[side][GRAFT_OPERAND_NODE_OF(x)]
                                    : s->c.ranks[x];
}

/* Notes the rank of a node's outputs, as far as it is known; false when its inputs' ranks or its
 * choices do not fit. */
static bool infer_rank(search *s, uint32_t side, uint32_t n)
{
    const graft_pattern_node *node = &graft_sym_pattern(s->rule, side)->nodes[n];
    graft_op_shape out[GRAFT_MAX_OUTPUTS] = {{0}};
    bool guessed = false;
    graft_op_site site = {.s = s,
                          .node = node,
                          .out = out,
                          .made = (uint32_t)s->c.made[side][n],
                          .guessed = &guessed};
    bool open = s->c.made[side][n] == OPEN;
    for (uint32_t i = 0; i < graft_op(node->op)->input_count; i++) {
        int8_t rank = operand_rank(s, side, node->inputs[i]);
        site.in[i].rank = (uint32_t)rank;
        open = open || rank == OPEN;
    }
    bool fits = open || graft_shape_table[node->op](&site) == NULL;
    s->c.node_ranks[side][n] = open || out[0].open ? OPEN : (int8_t)out[0].rank;
    return fits;
}

/* Infers ranks on a side as far as they are known; false when they do not fit. */
static bool infer_ranks(search *s, uint32_t side)
{
    bool fit = true;
    for (uint32_t k = 0; k < graft_sym_pattern(s->rule, side)->node_count && fit; k++) {
        fit = infer_rank(s, side, s->order[side][k]);
    }
    return fit;
}

/* Whether they do as far as they are known. */
static bool ranks_fit(search *s)
{
    bool fit = infer_ranks(s, GRAFT_SYM_SOURCE) && infer_ranks(s, GRAFT_SYM_TARGET);
    for (uint32_t i = 0; i < s->rule->output_count && fit; i++) {
        fit = may_be_equal(operand_rank(s, GRAFT_SYM_SOURCE, s->rule->source.outputs[i]),
                           operand_rank(s, GRAFT_SYM_TARGET, s->rule->target.outputs[i]));
    }
    return fit;
}

/* ---------------------------------------------------------------- searching */

static bool search_from(search *s, uint32_t depth)
{
    if (depth == s->count) {
        return s->visit(s->context, &s->c);
    }
    const digit *d = &s->digits[depth];
    bool go_on = true;
    for (int32_t value = d->least; value <= d->most && go_on; value++) {
        *d->place = (int8_t)value;
        if (s->c.scalar || (!is_refused(s) && ranks_fit(s))) {
            go_on = search_from(s, depth + 1);
        }
    }
    *d->place = OPEN;
    return go_on;
}

/* ------------------------------------------------------------------- digits */

/* Adds values that a part of the case may have. */
static void add_digit(search *s, int8_t *place, int32_t least, int32_t most)
{
    uint32_t i = 0;
    while (i < s->count && s->digits[i].place != place) {
        i++;
    }
    digit *d = &s->digits[i];
    bool is_new = i == s->count;
    d->place = place;
    d->least = (int8_t)(is_new || least < d->least ? least : d->least);
    d->most = (int8_t)(is_new || most > d->most ? most : d->most);
    s->count += is_new ? 1 : 0;
    *place = OPEN;
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
    add_digit(s, &s->c.made[side][n], s->c.scalar ? 0 : least, s->c.scalar ? 0 : most);
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
            s->c.chosen[slot] = true;
            add_digit(s, &s->c.slots[slot], info->least, info->most);
        } else if (info->role == GRAFT_ROLE_LOW || info->role == GRAFT_ROLE_HIGH) {
            bool low = info->role == GRAFT_ROLE_LOW;
            add_digit(s, &s->c.infinite[slot], low ? -1 : 0, low ? 0 : 1);
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
        add_digit(&s, &s.c.ranks[v], 0, s.c.scalar ? 0 : GRAFT_MAX_RANK);
    }
    for (uint32_t side = 0; side < 2; side++) {
        for (uint32_t n = 0; n < graft_sym_pattern(rule, side)->node_count; n++) {
            add_node_digits(&s, side, n);
        }
    }
    return search_from(&s, 0);
}

/* symshape.c - see symshape.h. Operators are read from graft/shapes.def, as the engine reads them;
 * tests instantiate what comes out and compare it with graft_infer_shapes. */
#include "verify/core/symshape.h"

#include "graph/rule/pattern.h"
#include "verify/core/readings.h"
#include "verify/core/symassume.h"

#include <inttypes.h>
#include <string.h>

typedef graft_sym_window window;
typedef graft_sym_shaper shaper;

const graft_sym_shape *graft_sym_shape_of(const graft_sym_instance *instance, uint32_t side,
                                          graft_operand x)
{
    return GRAFT_OPERAND_IS_NODE(x)
               ? &instance->nodes[side][GRAFT_OPERAND_NODE_OF(x)].shapes[GRAFT_OPERAND_SLOT_OF(x)]
               : &instance->vars[x];
}

/* ----------------------------------------------------------------- claiming */

static void claim_at_least(const shaper *p, Z3_ast term, int64_t least)
{
    if (least == 1) {
        graft_sym_claim_positive(p->e, term);
    } else {
        graft_sym_claim(p->e, Z3_mk_le(p->s->z3, graft_sym_int(p->s, least), term));
    }
}

/* Claims each part of a conjunction; solves equations. */
static void claim_parts(const shaper *p, Z3_ast condition)
{
    graft_sym *s = p->s;
    Z3_decl_kind kind = graft_sym_kind(s, condition);
    if (kind == Z3_OP_AND) {
        for (uint32_t i = 0; i < graft_sym_arity(s, condition); i++) {
            claim_parts(p, graft_sym_arg(s, condition, i));
        }
    } else if (kind == Z3_OP_EQ &&
               Z3_get_sort(s->z3, graft_sym_arg(s, condition, 0)) == s->integer) {
        graft_sym_equate(p->e, graft_sym_arg(s, condition, 0), graft_sym_arg(s, condition, 1));
    } else {
        graft_sym_claim(p->e, condition);
    }
}

/* ------------------------------------------------------ variables and slots */

static void make_vars(shaper *p)
{
    const graft_rule *rule = p->instance->rule;
    for (uint32_t v = 0; v < rule->var_count; v++) {
        graft_sym_shape *shape = &p->instance->vars[v];
        shape->rank = (uint32_t)p->instance->c->ranks[v];
        for (uint32_t i = 0; i < shape->rank; i++) {
            Z3_ast size = graft_term_constant(p->s->z3, p->s->integer, "d%" PRIu32 "_%" PRIu32, v,
                                              shape->rank - i);
            shape->dims[i] = graft_sym_solved(p->e, size);
            claim_at_least(p, shape->dims[i], 1);
        }
    }
}

/* The kind of attribute that a slot stands for. */
static bool is_float_slot(const graft_rule *rule, uint32_t slot)
{
    for (uint32_t n = 0; n < rule->source.node_count; n++) {
        const graft_pattern_node *node = &rule->source.nodes[n];
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
            if (node->attrs[i].kind == GRAFT_TERM_SLOT && node->attrs[i].value == (int32_t)slot) {
                return graft_op_attr(node->op, i)->kind == GRAFT_ATTR_FLOAT;
            }
        }
    }
    return false;
}

static void make_slots(shaper *p)
{
    const graft_sym_case *c = p->instance->c;
    const graft_sym *s = p->s;
    for (uint32_t i = 0; i < p->instance->rule->slot_count; i++) {
        graft_sym_value *slot = &p->inputs.slots[i];
        *slot = (graft_sym_value){.sort = GRAFT_SYM_INTEGER};
        if (c->chosen[i]) {
            slot->term = graft_sym_int(s, c->slots[i]);
        } else if (is_float_slot(p->instance->rule, i)) {
            slot->sort = GRAFT_SYM_FLOAT;
            slot->infinite = c->infinite[i];
            slot->term = graft_term_constant(s->z3, s->term.real, "s%" PRIu32, i);
        } else {
            slot->term =
                graft_sym_solved(p->e, graft_term_constant(s->z3, s->integer, "s%" PRIu32, i));
        }
    }
}

/* -------------------------------------------------------------- attributes */

static bool fetch_attr(shaper *p, const graft_term *term, bool is_float, graft_sym_value *value)
{
    switch (term->kind) {
    case GRAFT_TERM_SLOT:
        *value = p->inputs.slots[term->value];
        return true;
    case GRAFT_TERM_CODE:
        if (graft_sym_code(&p->inputs, (uint32_t)term->value, value, &p->why)) {
            return true;
        }
        p->never = p->never || p->why == NULL;
        return false;
    default:
        *value = is_float ? graft_sym_float(p->s, term->value)
                          : (graft_sym_value){.term = graft_sym_int(p->s, term->value),
                                              .sort = GRAFT_SYM_INTEGER};
        return true;
    }
}

static bool make_attr(shaper *p, const graft_pattern_node *node, uint32_t i, graft_sym_attr *attr)
{
    const graft_attr_info *info = graft_op_attr(node->op, i);
    bool is_float = info->kind == GRAFT_ATTR_FLOAT;
    graft_sym_value value;
    int64_t number = 0;
    if (!fetch_attr(p, &node->attrs[i], is_float, &value)) {
        return false;
    }
    if (is_float) {
        if (!graft_sym_as_float(p->s, &value)) {
            p->why = "a float attribute is computed otherwise than by comparing";
            return false;
        }
        *attr = (graft_sym_attr){.term = value.term, .infinite = value.infinite};
        return true;
    }
    if (value.sort == GRAFT_SYM_FLOAT) {
        p->why = "a float's bits are used as an integer";
        return false;
    }
    attr->term = graft_sym_solved(p->e, graft_sym_integer(p->s, &value));
    if (p->fix != NULL && !p->fix(p, &node->attrs[i], attr)) {
        p->never = true;
        return false;
    }
    claim_at_least(p, attr->term, info->least);
    if (graft_sym_is_choice(node->op, i)) {
        if (!Z3_is_numeral_ast(p->s->z3, attr->term) ||
            !Z3_get_numeral_int64(p->s->z3, attr->term, &number)) {
            p->why = "an attribute that chooses axes depends on sizes";
            return false;
        }
        p->never = p->never || number < info->least || number > info->most;
        attr->value = (int32_t)number;
    }
    return !p->never;
}

/* ------------------------------------------------------ shapes.def over terms */

typedef graft_sym_shape graft_op_shape;
typedef Z3_ast graft_op_size;

typedef struct graft_op_site {
    shaper *p;
    const graft_sym_attr *attrs;
    const graft_sym_shape *in[GRAFT_MAX_INPUTS];
    graft_sym_shape *out;
    uint32_t made; /* The rank of what a reshape or fill makes. */
} graft_op_site;

static const graft_op_shape *graft_op_input(const graft_op_site *o, uint32_t i) { return o->in[i]; }

static graft_op_shape *graft_op_output(const graft_op_site *o, uint32_t i) { return &o->out[i]; }

static Z3_ast graft_op_attribute(const graft_op_site *o, uint32_t k) { return o->attrs[k].term; }

static uint32_t graft_op_choice(const graft_op_site *o, uint32_t k)
{
    return (uint32_t)o->attrs[k].value;
}

static const char *graft_expect(bool so, const char *why) { return so ? NULL : why; }

#define graft_op_is_open(o, k)     false
#define graft_op_number(o, number) graft_sym_int((o)->p->s, number)
#define graft_op_add(o, a, b)      graft_sym_add((o)->p->s, a, b)
#define graft_op_subtract(o, a, b) graft_sym_sub((o)->p->s, a, b)
#define graft_op_multiply(o, a, b) graft_sym_mul((o)->p->s, a, b)
#define graft_op_wide(o, a, b)     graft_sym_wide((o)->p->s, a, b)

/* Of two windows with one stride, the one with more room has no fewer positions, and at most as
 * many more as it has more room. */
static void claim_monotone(const shaper *p, const window *a, const window *b)
{
    graft_sym *s = p->s;
    Z3_ast more = graft_sym_sub(s, b->count, a->count);
    Z3_ast parts[2] = {Z3_mk_le(s->z3, a->count, b->count),
                       Z3_mk_le(s->z3, more, graft_sym_sub(s, b->room, a->room))};
    graft_sym_claim(
        p->e, Z3_mk_implies(s->z3, Z3_mk_le(s->z3, a->room, b->room), Z3_mk_and(s->z3, 2, parts)));
}

static void note_window(shaper *p, window w)
{
    for (uint32_t i = 0; i < p->window_count; i++) {
        const window *other = &p->windows[i];
        if (other->count == w.count) {
            return;
        }
        if (other->stride == w.stride) {
            claim_monotone(p, other, &w);
            claim_monotone(p, &w, other);
        }
    }
    if (p->window_count < GRAFT_LIMIT(WINDOWS)) {
        p->windows[p->window_count++] = w;
    }
}

static Z3_ast graft_op_windows(const graft_op_site *o, Z3_ast room, Z3_ast stride)
{
    shaper *p = o->p;
    graft_sym *s = p->s;
    if (s->plain != NULL) { /* What follows of the count's definition is no assumption. */
        return Z3_mk_app(s->z3, s->window, 2, (Z3_ast[]){room, stride});
    }
    if (graft_sym_is_number(s, stride, 1)) {
        return graft_sym_add(s, room, graft_sym_int(s, 1));
    }
    Z3_ast count = Z3_mk_app(s->z3, s->window, 2, (Z3_ast[]){room, stride});
    Z3_ast last = graft_sym_mul(s, stride, graft_sym_sub(s, count, graft_sym_int(s, 1)));
    claim_at_least(p, count, 1);
    graft_sym_claim(p->e, Z3_mk_le(s->z3, last, room));
    graft_sym_claim(p->e, Z3_mk_lt(s->z3, room, graft_sym_mul(s, stride, count)));
    /* A product in which Z3 sees no more than a number: what it needs to know of it. */
    graft_sym_claim(p->e, Z3_mk_implies(s->z3, Z3_mk_eq(s->z3, room, graft_sym_int(s, 0)),
                                        Z3_mk_eq(s->z3, count, graft_sym_int(s, 1))));
    note_window(p, (window){room, stride, count});
    return count;
}

#define graft_set_dim(o, shape, axis, size) ((void)(o), (void)((shape)->dims[axis] = (size)))

static const char *graft_put_dim(const graft_op_site *o, graft_sym_shape *shape, uint32_t axis,
                                 Z3_ast size)
{
    graft_set_dim(o, shape, axis, size);
    return NULL;
}

static graft_sym_shape graft_empty_shape(uint32_t rank) { return (graft_sym_shape){.rank = rank}; }

static graft_sym_shape graft_wider_shape(const graft_sym_shape *a, const graft_sym_shape *b)
{
    return graft_empty_shape(a->rank > b->rank ? a->rank : b->rank);
}

#define graft_made_shape(o, first)     graft_empty_shape((o)->made)
#define graft_set_rank(o, shape, axes) ((void)(o), (void)((shape)->rank = (axes)))

/* Checks that are claims: the engine refuses where one does not hold. */
static const char *claim(const graft_op_site *o, Z3_ast condition)
{
    graft_sym_claim(o->p->e, condition);
    return NULL;
}

static const char *equate(const graft_op_site *o, Z3_ast a, Z3_ast b)
{
    graft_sym_equate(o->p->e, a, b);
    return NULL;
}

static const char *claim_divides(const graft_op_site *o, Z3_ast by, Z3_ast size)
{
    const graft_sym *s = o->p->s;
    if (graft_sym_is_number(s, size, 1)) {
        return equate(o, by, size);
    }
    return graft_sym_is_number(s, by, 1)
               ? NULL
               : claim(o, Z3_mk_eq(s->z3, Z3_mk_mod(s->z3, size, by), graft_sym_int(s, 0)));
}

/* a <= b, unless `size` is 0. */
static Z3_ast le_or_none(const graft_op_site *o, Z3_ast a, Z3_ast b, Z3_ast size)
{
    Z3_context z3 = o->p->s->z3;
    Z3_ast parts[2] = {Z3_mk_le(z3, a, b), Z3_mk_le(z3, size, graft_sym_int(o->p->s, 0))};
    return Z3_mk_or(z3, 2, parts);
}

static const char *graft_expect_broadcast(const graft_op_site *o, Z3_ast a, Z3_ast b,
                                          const char *why)
{
    Z3_context z3 = o->p->s->z3;
    Z3_ast one = graft_sym_int(o->p->s, 1);
    Z3_ast ways[3] = {Z3_mk_eq(z3, a, b), Z3_mk_eq(z3, a, one), Z3_mk_eq(z3, b, one)};
    if (a == b || a == one || b == one) {
        return NULL;
    }
    if (Z3_is_numeral_ast(z3, a) && Z3_is_numeral_ast(z3, b)) {
        return why;
    }
    graft_sym_claim(o->p->e, Z3_mk_or(z3, 3, ways));
    return NULL;
}

static const char *claim_same_elements(const graft_op_site *o, const graft_sym_shape *a,
                                       const graft_sym_shape *b)
{
    graft_sym_equate_products(o->p->e, a->dims, a->rank, b->dims, b->rank);
    return NULL;
}

static const char *claim_positive(const graft_op_site *o, Z3_ast size)
{
    graft_sym_claim_positive(o->p->e, size);
    return NULL;
}

static const char *claim_sign(const graft_op_site *o, Z3_ast x, bool strictly)
{
    Z3_ast zero = o->p->s->term.zero;
    return claim(o, strictly ? Z3_mk_lt(o->p->s->z3, zero, x) : Z3_mk_le(o->p->s->z3, zero, x));
}

static const char *claim_order(const graft_op_site *o, const graft_sym_attr *low,
                               const graft_sym_attr *high)
{
    bool numbers = low->infinite == 0 && high->infinite == 0;
    return numbers ? claim(o, Z3_mk_le(o->p->s->z3, low->term, high->term)) : NULL;
}

#define graft_expect_equal(o, a, b, why)         equate(o, a, b)
#define graft_expect_le(o, a, b, why)            ((void)(why), claim(o, Z3_mk_le((o)->p->s->z3, a, b)))
#define graft_expect_le_or_none(o, a, b, n, why) claim(o, le_or_none(o, a, b, n))
#define graft_expect_divides(o, by, size, why)   claim_divides(o, by, size)
#define graft_expect_same_elements(o, a, b, why) claim_same_elements(o, a, b)
#define graft_expect_positive(o, size, why)      claim_positive(o, size)
#define graft_expect_sign(o, k, strictly, why)   claim_sign(o, (o)->attrs[k].term, strictly)
#define graft_expect_order(o, low, high, why)    claim_order(o, &(o)->attrs[low], &(o)->attrs[high])
#define graft_expect_finite(o, k, why)           graft_expect((o)->attrs[k].infinite == 0, why)
/* A number, or the infinity that is no bound from above or below. */
#define graft_expect_bound(o, k, above, why)                                                       \
    graft_expect((o)->attrs[k].infinite != ((above) ? -1 : 1), why)
/* A size among the attributes is 0. Where scalars stand for all, those of a fill are. */
#define graft_expect_absent(o, k, why)                                                             \
    ((o)->p->inputs.scalar ? NULL : equate(o, (o)->attrs[k].term, graft_sym_int((o)->p->s, 0)))

#include "graft/shapes.def"

/* ---------------------------------------------------------------- the whole rule */

void graft_sym_shape_op(shaper *p, uint32_t op, const graft_sym_attr *attrs,
                        const graft_sym_shape *const in[], uint32_t made, graft_sym_shape *out)
{
    graft_op_site site = {.p = p, .attrs = attrs, .out = out, .made = made};
    memcpy((void *)site.in, (const void *)in, graft_op(op)->input_count * sizeof *in);
    p->never = graft_shape_table[op](&site) != NULL || p->never;
}

static void shape_node(shaper *p, uint32_t side, uint32_t n)
{
    graft_sym_instance *instance = p->instance;
    const graft_pattern_node *node = &graft_sym_pattern(instance->rule, side)->nodes[n];
    const graft_op_info *info = graft_op(node->op);
    const graft_sym_shape *in[GRAFT_MAX_INPUTS];
    graft_sym_node *place = &instance->nodes[side][n];
    bool number = node->op == GRAFT_OP_fill && instance->c->scalar; /* Its sizes play no role. */
    for (uint32_t i = 0; i < info->attr_count; i++) {
        bool unread = number && graft_op_attr(node->op, i)->kind != GRAFT_ATTR_FLOAT;
        if (!unread && !make_attr(p, node, i, &place->attrs[i])) {
            return;
        }
    }
    for (uint32_t i = 0; i < info->input_count; i++) {
        in[i] = graft_sym_shape_of(instance, side, node->inputs[i]);
    }
    uint32_t made = (uint32_t)instance->c->made[side][n];
    graft_sym_shape_op(p, node->op, place->attrs, in, made, place->shapes);
    if (p->s->plain != NULL && p->fix == NULL && !p->never) {
        p->s->plain->sizes(p->s, side, n, info->output_count, place->shapes);
    }
}

/* In the scalar case a condition that is not understood is left out: the claim is made without it. */
void graft_sym_claim_condition(shaper *p)
{
    graft_sym_value value;
    const char *why = NULL;
    if (p->instance->rule->condition == 255) {
        return;
    }
    bool runs = graft_sym_code(&p->inputs, p->instance->rule->condition, &value, &why);
    if (runs && value.sort == GRAFT_SYM_FLOAT) { /* The bits of -0 are not 0. */
        runs = false;
        why = "a precondition is a float";
    }
    if (runs) {
        claim_parts(p, graft_sym_truth(p->s, &value));
    } else if (why == NULL) {
        p->never = true;
    } else if (!p->instance->c->scalar) {
        p->why = why;
    }
}

void graft_sym_shape_side(shaper *p, uint32_t side)
{
    const graft_pattern *pattern = graft_sym_pattern(p->instance->rule, side);
    for (uint32_t k = 0; k < pattern->node_count && p->why == NULL && !p->never; k++) {
        shape_node(p, side, p->instance->order[side][k]);
    }
}

void graft_sym_equate_outputs(shaper *p)
{
    const graft_rule *rule = p->instance->rule;
    const graft_op_site site = {.p = p};
    for (uint32_t i = 0; i < rule->output_count && !p->never; i++) {
        p->never =
            graft_check_same(
                &site, graft_sym_shape_of(p->instance, GRAFT_SYM_SOURCE, rule->source.outputs[i]),
                graft_sym_shape_of(p->instance, GRAFT_SYM_TARGET, rule->target.outputs[i]),
                "") != NULL;
    }
}

/* Once through the rule, with what is known about its symbols. */
static void shape_rule(shaper *p)
{
    p->e->claim_count = 0;
    p->e->changed = false;
    p->window_count = 0;
    for (uint32_t i = 0; i < p->extra->count; i++) {
        claim_parts(p, p->extra->claims[i]);
    }
    make_vars(p);
    make_slots(p);
    graft_sym_shape_side(p, GRAFT_SYM_SOURCE);
    if (p->why == NULL && !p->never) {
        graft_sym_claim_condition(p);
        graft_sym_shape_side(p, GRAFT_SYM_TARGET);
    }
    if (p->why == NULL && !p->never) {
        graft_sym_equate_outputs(p);
    }
}

void graft_sym_shaper_begin(shaper *p, const graft_rule *rule, const graft_sym_case *c)
{
    graft_sym_instance *instance = p->instance;
    p->s->refusal = NULL;
    memset(instance, 0, sizeof *instance);
    instance->rule = rule;
    instance->c = c;
    p->inputs.equations = p->e;
    p->inputs.rule = rule;
    p->inputs.scalar = c->scalar;
    p->inputs.vars = instance->vars;
    graft_pattern_order(&rule->source, instance->order[GRAFT_SYM_SOURCE]);
    graft_pattern_order(&rule->target, instance->order[GRAFT_SYM_TARGET]);
}

graft_sym_fit graft_sym_shapes(graft_sym *s, const graft_rule *rule, const graft_sym_case *c,
                               const graft_sym_extra *extra, graft_sym_instance *instance,
                               const char **why)
{
    graft_sym_equations equations = {.s = s, .changed = true};
    graft_sym_equations *e = &equations;
    shaper p = {.s = s, .e = e, .instance = instance, .extra = extra};
    graft_sym_shaper_begin(&p, rule, c);
    graft_sym_assumed_reset(s);
    memset((void *)s->elements, 0, sizeof s->elements);
    for (uint32_t round = 0; e->changed && !p.never && !e->impossible && p.why == NULL; round++) {
        shape_rule(&p);
        if (round == GRAFT_LIMIT(SHAPE_ROUNDS)) {
            (void)graft_sym_refuse(s, GRAFT_LIMIT_SHAPE_ROUNDS);
        }
        p.why = s->refusal != NULL ? s->refusal : p.why;
    }
    *why = p.why;
    graft_sym_fit fit = s->refusal != NULL         ? GRAFT_SYM_UNSUPPORTED
                        : p.never || e->impossible ? GRAFT_SYM_NEVER
                        : p.why != NULL            ? GRAFT_SYM_UNSUPPORTED
                                                   : GRAFT_SYM_FITS;
    for (uint32_t i = 0; i < e->claim_count && fit == GRAFT_SYM_FITS; i++) {
        graft_sym_assume(s, e->claims[i]);
    }
    if (s->plain != NULL && fit == GRAFT_SYM_FITS) {
        s->plain->claims(s, e->claims, e->claim_count);
    }
    return fit;
}

const graft_facts *graft_sym_within(const graft_sym *s, const graft_sym_shape *shape,
                                    graft_facts *room)
{
    const graft_facts *facts = NULL;
    for (uint32_t i = 0; i < shape->rank; i++) {
        room[i] = (graft_facts){
            .outer = facts,
            .fact = graft_sym_in_range(s, graft_sym_formals(s, shape->rank)[i], shape->dims[i])};
        facts = &room[i];
    }
    return facts;
}

/* symread.c - see symread.h. */
#include "verify/core/symread.h"

#include "graph/rule/pattern.h"
#include "verify/core/caught.h"
#include "verify/core/readings.h"
#include "verify/core/symassume.h"
#include "verify/core/symfold.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* One node being read. */
typedef struct {
    graft_sym *s;
    const graft_sym_instance *instance;
    graft_sym_side *read;
    const graft_pattern_node *node;
    const graft_sym_node *symbolic; /* Its attributes and shapes. */
    const graft_facts *facts;       /* Its formals lie in its output's shape. */
    graft_sym_conditions *conditions;
    uint32_t side;
    uint32_t output;
    graft_sym_range *range;        /* Of the fold whose body is being read, or NULL, */
    Z3_ast guards[GRAFT_MAX_RANK]; /* and what it asks of each binder, or NULL. */
    Z3_ast where;                  /* Where what is being read is needed; NULL: everywhere. */
    Z3_ast first;                  /* What was read last of the first input. */
} reader;

/* ------------------------------------------------------------------ operands */

static const graft_sym_shape *in_shape(const reader *r, uint32_t i)
{
    return graft_sym_shape_of(r->instance, r->side, r->node->inputs[i]);
}

/* A boolean is 1 or 0, whatever number its symbol is. (Of bits that is not said.) */
static Z3_ast element_of(const graft_sym *s, uint32_t v, uint32_t rank, const Z3_ast *index)
{
    Z3_ast x = Z3_mk_app(s->z3, s->elements[v], rank, index);
    const bool is_boolean = (s->booleans >> v & 1u) != 0 && s->numbers == NULL;
    return is_boolean
               ? Z3_mk_ite(s->z3, Z3_mk_lt(s->z3, s->term.zero, x), s->term.one, s->term.zero)
               : x;
}

Z3_ast graft_sym_operand(const graft_sym *s, const graft_sym_instance *instance,
                         const graft_sym_side *read, graft_operand x)
{
    return GRAFT_OPERAND_IS_NODE(x)
               ? read->values[GRAFT_OPERAND_NODE_OF(x)][GRAFT_OPERAND_SLOT_OF(x)]
               : element_of(s, x, instance->vars[x].rank,
                            graft_sym_formals(s, instance->vars[x].rank));
}

const graft_sym_conditions *graft_sym_operand_conditions(const graft_sym_side *read,
                                                         graft_operand x)
{
    static const graft_sym_conditions none;
    return GRAFT_OPERAND_IS_NODE(x)
               ? &read->conditions[GRAFT_OPERAND_NODE_OF(x)][GRAFT_OPERAND_SLOT_OF(x)]
               : &none;
}

/* ----------------------------------------------------------------- definedness */

static void add_condition(const reader *r, const graft_sym_condition *c)
{
    graft_sym_conditions *list = r->conditions;
    for (uint32_t i = 0; i < list->count; i++) {
        const graft_sym_condition *other = &list->items[i];
        if (other->holds == c->holds && other->where == c->where &&
            other->is_caught == c->is_caught && other->is_factor == c->is_factor &&
            other->is_signed == c->is_signed && other->is_root == c->is_root &&
            other->is_of_div == c->is_of_div) {
            return;
        }
    }
    if (list->count == GRAFT_LIMIT(CONDITIONS)) {
        (void)graft_sym_refuse(r->s, GRAFT_LIMIT_CONDITIONS);
        return;
    }
    list->items[list->count++] = *c;
}

static Z3_ast both(const graft_sym *s, Z3_ast a, Z3_ast b)
{
    return a == NULL ? b : b == NULL ? a : Z3_mk_and(s->z3, 2, (Z3_ast[]){a, b});
}

/* The activation of the node at hand, if it has one. */
static int32_t activation_of(const reader *r)
{
    for (uint32_t i = 0; i < graft_op(r->node->op)->attr_count; i++) {
        if (graft_op_attr(r->node->op, i)->kind == GRAFT_ATTR_ACTIVATION) {
            return r->symbolic->attrs[i].value;
        }
    }
    return GRAFT_ACT_NONE;
}

/* Binders of conditions are symbols of their own: those of ranges come up again in other nodes. */
static void rename_binders(graft_sym *s, const graft_sym_range *range, graft_sym_condition *c,
                           Z3_ast *to)
{
    for (uint32_t i = 0; i < range->count; i++) {
        to[i] = graft_term_constant(s->z3, s->integer, "c%" PRIu32, s->bound++);
        c->binders[c->binder_count++] = to[i];
    }
}

/* Whether input i hangs on something that is caught, and compared where that is asked. */
static bool hangs(const reader *r, uint32_t i, bool compared)
{
    const graft_sym_conditions *of = graft_sym_operand_conditions(r->read, r->node->inputs[i]);
    bool found = false;
    for (uint32_t k = 0; k < of->count; k++) {
        found = found || (of->items[k].is_caught && (!compared || of->items[k].is_signed));
    }
    return found;
}

/* What a condition of input i comes to where the node reads it. */
static void pass_condition(const reader *r, uint32_t i, const graft_sym_condition *of,
                           const Z3_ast *at)
{
    graft_sym *s = r->s;
    Z3_ast index[GRAFT_MAX_RANK];
    Z3_ast to[GRAFT_SYM_BINDERS];
    Z3_ast where = r->where;
    graft_sym_condition c = *of;
    uint32_t rank = in_shape(r, i)->rank;
    uint32_t bound = r->range != NULL ? r->range->count : 0;
    c.is_factor = c.is_factor &&
                  graft_sym_operand(s, r->instance, r->read, r->node->inputs[i]) != s->term.zero;
    if (c.is_factor && r->node->op == GRAFT_OP_div && i == 1) {
        return; /* Where it is 0 the quotient is 0, as the term says (caught.h). */
    }
    if (c.binder_count + bound > GRAFT_LIMIT(CONDITION_BINDERS)) {
        (void)graft_sym_refuse(s, GRAFT_LIMIT_CONDITION_BINDERS);
        return;
    }
    memcpy((void *)index, (const void *)at, rank * sizeof *index);
    if (bound > 0) {
        rename_binders(s, r->range, &c, to);
        where = both(s, where, graft_sym_range_formula(s, r->range));
        where = graft_sym_substitute(s, where, bound, r->range->binders, to);
        for (uint32_t k = 0; k < rank; k++) {
            index[k] = graft_sym_substitute(s, index[k], bound, r->range->binders, to);
        }
    }
    c.holds = graft_sym_read(s, c.holds, rank, index);
    c.where = both(s, c.where == NULL ? NULL : graft_sym_read(s, c.where, rank, index), where);
    const bool compares = r->node->op == GRAFT_OP_less || r->node->op == GRAFT_OP_equal_to ||
                          r->node->op == GRAFT_OP_remainder;
    c.is_signed = c.is_signed || compares;
    c.is_caught = c.is_caught || compares ||
                  (!c.is_root && graft_catches_infinity(r->node->op, i, activation_of(r)));
    if (r->node->op == GRAFT_OP_select && i > 0) {
        Z3_ast other = Z3_mk_eq(s->z3, r->first, s->term.zero);
        other = i == 1 ? other : Z3_mk_not(s->z3, other);
        c.holds = Z3_mk_or(s->z3, 2, (Z3_ast[]){other, c.holds});
        c.is_caught = c.is_caught || hangs(r, 0, true);
    }
    c.is_factor = c.is_factor && (r->node->op == GRAFT_OP_mul || r->node->op == GRAFT_OP_div);
    add_condition(r, &c);
}

/* --------------------------------------------------- what reading.inc asks for: indices */

typedef reader rd;
typedef Z3_ast rd_int;
typedef Z3_ast rd_num;
typedef Z3_ast rd_cond;

static uint32_t rd_op(const rd *r) { return r->node->op; }
static uint32_t rd_output(const rd *r) { return r->output; }
static uint32_t rd_rank(const rd *r, uint32_t i) { return in_shape(r, i)->rank; }
static uint32_t rd_out_rank(const rd *r) { return r->symbolic->shapes[r->output].rank; }
static Z3_ast rd_dim(const rd *r, uint32_t i, uint32_t axis) { return in_shape(r, i)->dims[axis]; }

static Z3_ast rd_out_dim(const rd *r, uint32_t axis)
{
    return r->symbolic->shapes[r->output].dims[axis];
}

static Z3_ast rd_at(const rd *r, uint32_t axis)
{
    return graft_sym_formals(r->s, rd_out_rank(r))[axis];
}

static uint32_t rd_choice(const rd *r, uint32_t i) { return (uint32_t)r->symbolic->attrs[i].value; }

static Z3_ast rd_attr(const rd *r, uint32_t i) { return r->symbolic->attrs[i].term; }
static Z3_ast rd_whole(const rd *r, int value) { return graft_sym_int(r->s, value); }
static Z3_ast rd_add(const rd *r, Z3_ast a, Z3_ast b) { return graft_sym_add(r->s, a, b); }
static Z3_ast rd_sub(const rd *r, Z3_ast a, Z3_ast b) { return graft_sym_sub(r->s, a, b); }
static Z3_ast rd_mul(const rd *r, Z3_ast a, Z3_ast b) { return graft_sym_mul(r->s, a, b); }
static Z3_ast rd_less(const rd *r, Z3_ast a, Z3_ast b) { return Z3_mk_lt(r->s->z3, a, b); }
static Z3_ast rd_at_most(const rd *r, Z3_ast a, Z3_ast b) { return Z3_mk_le(r->s->z3, a, b); }
static Z3_ast rd_not(const rd *r, Z3_ast c) { return Z3_mk_not(r->s->z3, c); }
static Z3_ast rd_and(const rd *r, Z3_ast c, Z3_ast d) { return both(r->s, c, d); }

static Z3_ast rd_select(const rd *r, Z3_ast c, Z3_ast a, Z3_ast b)
{
    return Z3_mk_ite(r->s->z3, c, a, b);
}

static bool rd_enter(rd *r, Z3_ast condition)
{
    assert(r->where == NULL);
    r->where = condition;
    return true;
}

static void rd_leave(rd *r) { r->where = NULL; }

static Z3_ast rd_spread(const rd *r, Z3_ast size, Z3_ast out, Z3_ast at)
{
    return size == out && r->s->plain == NULL ? at : graft_sym_at(r->s, size, at);
}

#define rd_quotient(r, a, n) graft_sym_quotient((r)->s, a, n)

static Z3_ast rd_group(const rd *r, Z3_ast output, Z3_ast outputs, Z3_ast groups)
{
    Z3_ast one = Z3_mk_eq(r->s->z3, groups, graft_sym_int(r->s, 1));
    Z3_ast of[3] = {output, outputs, groups};
    return graft_sym_holds(r->s, NULL, one) ? graft_sym_int(r->s, 0)
                                            : Z3_mk_app(r->s->z3, r->s->group, 3, of);
}

/* 0 <= x factor <= (most - 1) factor, which Z3 is told because it does not multiply. */
static Z3_ast product_bounds(const graft_sym *s, Z3_ast x, Z3_ast most, Z3_ast factor)
{
    Z3_ast product = graft_sym_mul(s, x, factor);
    Z3_ast last = graft_sym_mul(s, graft_sym_sub(s, most, graft_sym_int(s, 1)), factor);
    Z3_ast parts[2] = {Z3_mk_le(s->z3, graft_sym_int(s, 0), product),
                       Z3_mk_le(s->z3, product, last)};
    return Z3_mk_and(s->z3, 2, parts);
}

/* The axes of a shape that are not of size 1. */
static uint32_t list_axes(const graft_sym *s, const graft_sym_shape *shape, uint32_t *axes)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (s->plain != NULL || !graft_sym_is_number(s, shape->dims[i], 1)) {
            axes[count++] = i;
        }
    }
    return count;
}

static Z3_ast place_of(const rd *r, const graft_sym_shape *shape, const uint32_t *axes,
                       uint32_t count)
{
    Z3_ast args[2 * GRAFT_MAX_RANK];
    for (uint32_t i = 0; i < count; i++) {
        args[i] = rd_at(r, axes[i]);
        args[count + i] = shape->dims[axes[i]];
    }
    return count == 0   ? graft_sym_int(r->s, 0)
           : count == 1 ? args[0]
                        : Z3_mk_app(r->s->z3, r->s->place[count], 2 * count, args);
}

static Z3_ast part_of(const rd *r, Z3_ast place, const graft_sym_shape *shape, const uint32_t *axes,
                      uint32_t count, uint32_t part)
{
    Z3_ast args[GRAFT_MAX_RANK + 1] = {place};
    for (uint32_t i = 0; i < count; i++) {
        args[i + 1] = shape->dims[axes[i]];
    }
    return count == 1 ? place : Z3_mk_app(r->s->z3, r->s->part[count][part], count + 1, args);
}

static void rd_replace(const rd *r, Z3_ast *index)
{
    const graft_sym_shape *in = in_shape(r, 0);
    const graft_sym_shape *out = &r->symbolic->shapes[0];
    uint32_t from[GRAFT_MAX_RANK] = {0};
    uint32_t to[GRAFT_MAX_RANK] = {0};
    uint32_t from_end = list_axes(r->s, in, from);
    uint32_t to_end = list_axes(r->s, out, to);
    uint32_t first = 0;
    bool plain = r->s->plain != NULL; /* Then all axes are joined and taken apart. */
    for (uint32_t i = 0; i < in->rank; i++) {
        index[i] = graft_sym_int(r->s, 0);
    }
    for (; !plain && first < from_end && first < to_end &&
           in->dims[from[first]] == out->dims[to[first]];
         first++) {
        index[from[first]] = rd_at(r, to[first]);
    }
    while (!plain && from_end > first && to_end > first &&
           in->dims[from[from_end - 1]] == out->dims[to[to_end - 1]]) {
        index[from[--from_end]] = rd_at(r, to[--to_end]);
    }
    Z3_ast place = place_of(r, out, to + first, to_end - first);
    for (uint32_t i = first; i < from_end; i++) {
        index[from[i]] = part_of(r, place, in, from + first, from_end - first, i - first);
    }
}

static Z3_ast rd_read(rd *r, uint32_t i, const Z3_ast *index)
{
    const graft_operand x = r->node->inputs[i];
    Z3_ast value = graft_sym_operand(r->s, r->instance, r->read, x);
    const graft_sym_conditions *of = graft_sym_operand_conditions(r->read, x);
    value = graft_sym_read(r->s, value, in_shape(r, i)->rank, index);
    r->first = i == 0 ? value : r->first;
    for (uint32_t k = 0; k < of->count; k++) {
        pass_condition(r, i, &of->items[k], index);
    }
    return value;
}

/* ------------------------------------------------------------------- numbers */

static Z3_ast compute(const rd *r, uint32_t op, Z3_ast a, Z3_ast b)
{
    return r->s->numbers != NULL ? r->s->numbers->scalar(r->s, op, a, b)
                                 : graft_term_scalar(&r->s->term, op, a, b);
}

static Z3_ast rd_plus(const rd *r, Z3_ast a, Z3_ast b) { return compute(r, GRAFT_OP_add, a, b); }
static Z3_ast rd_minus(const rd *r, Z3_ast a, Z3_ast b) { return compute(r, GRAFT_OP_sub, a, b); }
static Z3_ast rd_times(const rd *r, Z3_ast a, Z3_ast b) { return compute(r, GRAFT_OP_mul, a, b); }
static Z3_ast rd_over(const rd *r, Z3_ast a, Z3_ast b) { return compute(r, GRAFT_OP_div, a, b); }
static Z3_ast rd_exp(const rd *r, Z3_ast x) { return compute(r, GRAFT_OP_exp, x, NULL); }
static Z3_ast rd_root(const rd *r, Z3_ast x) { return compute(r, GRAFT_OP_sqrt, x, NULL); }
static Z3_ast rd_log(const rd *r, Z3_ast x)
{
    return r->s->numbers != NULL ? r->s->numbers->function(r->s, GRAFT_OP_log, x, NULL)
                                 : graft_term_composed(&r->s->term, GRAFT_OP_log, x, NULL);
}

static Z3_ast rd_choose(const rd *r, Z3_ast c, Z3_ast a, Z3_ast b)
{
    return r->s->numbers != NULL ? r->s->numbers->select(r->s, c, a, b)
                                 : graft_term_select(&r->s->term, c, a, b);
}

static Z3_ast rd_tidy(const rd *r, Z3_ast x) { return graft_sym_normal(r->s, x); }
static Z3_ast rd_nothing(const rd *r) { return r->s->term.zero; }

static Z3_ast rd_float(const rd *r, uint32_t i)
{
    return r->s->numbers != NULL ? r->s->numbers->attr(r->s, &r->node->attrs[i], rd_attr(r, i))
                                 : rd_attr(r, i);
}

static Z3_ast rd_activate(const rd *r, uint32_t activation, Z3_ast x)
{
    static const uint32_t ops[GRAFT_ACT_COUNT] = {[GRAFT_ACT_RELU] = GRAFT_OP_relu,
                                                  [GRAFT_ACT_RELU6] = GRAFT_OP_relu,
                                                  [GRAFT_ACT_SIGMOID] = GRAFT_OP_sigmoid,
                                                  [GRAFT_ACT_TANH] = GRAFT_OP_tanh};
    Z3_ast y = activation == GRAFT_ACT_NONE ? x : compute(r, ops[activation], x, NULL);
    if (activation == GRAFT_ACT_RELU6) {
        Z3_ast six = r->s->numbers != NULL ? r->s->numbers->size(r->s, graft_sym_int(r->s, 6))
                                           : Z3_mk_int(r->s->z3, 6, r->s->term.real);
        y = compute(r, GRAFT_OP_min, y, six);
    }
    return y;
}

static Z3_ast clamp(const rd *r, Z3_ast x)
{
    if (r->symbolic->attrs[GRAFT_ATTR_clip_low].infinite == 0) {
        x = compute(r, GRAFT_OP_max, x, rd_float(r, GRAFT_ATTR_clip_low));
    }
    return r->symbolic->attrs[GRAFT_ATTR_clip_high].infinite == 0
               ? compute(r, GRAFT_OP_min, x, rd_float(r, GRAFT_ATTR_clip_high))
               : x;
}

static Z3_ast leaky_relu(const rd *r, Z3_ast x)
{
    Z3_context z3 = r->s->z3;
    Z3_ast slope = rd_float(r, GRAFT_ATTR_leaky_relu_slope);
    if (r->s->numbers != NULL) {
        return r->s->numbers->leaky_relu(r->s, x, slope);
    }
    Z3_ast scaled = compute(r, GRAFT_OP_mul, x, slope);
    Z3_ast above = compute(r, GRAFT_OP_max, x, scaled);
    Z3_ast below = compute(r, GRAFT_OP_min, x, scaled);
    Z3_ast small = Z3_simplify(z3, Z3_mk_le(z3, slope, r->s->term.one));
    return Z3_get_bool_value(z3, small) == Z3_L_TRUE ? above : Z3_mk_ite(z3, small, above, below);
}

static Z3_ast compute_function(const rd *r, Z3_ast x)
{
    const uint32_t op = r->node->op;
    Z3_ast attrs[GRAFT_MAX_ATTRS] = {NULL};
    for (uint32_t i = 0; i < graft_op(op)->attr_count; i++) {
        attrs[i] = rd_float(r, i);
    }
    return r->s->numbers != NULL ? r->s->numbers->function(r->s, op, x, attrs)
                                 : graft_term_composed(&r->s->term, op, x, attrs);
}

/* A whole number among the attributes, as a number. */
static Z3_ast whole(const rd *r, uint32_t i, int64_t more)
{
    Z3_ast term = graft_sym_add(r->s, rd_attr(r, i), graft_sym_int(r->s, more));
    return r->s->numbers != NULL ? r->s->numbers->size(r->s, term) : graft_sym_real(r->s, term);
}

static Z3_ast quantise(const rd *r, Z3_ast x)
{
    Z3_ast q = compute(r, GRAFT_OP_quantise, x, rd_float(r, GRAFT_ATTR_quantise_scale));
    q = rd_plus(r, q, whole(r, GRAFT_ATTR_quantise_zero, 0));
    q = compute(r, GRAFT_OP_max, q, whole(r, GRAFT_ATTR_quantise_least, 0));
    return compute(r, GRAFT_OP_min, q, whole(r, GRAFT_ATTR_quantise_least, 255));
}

static Z3_ast dequantise(const rd *r, Z3_ast q)
{
    Z3_ast scale = rd_float(r, GRAFT_ATTR_dequantise_scale);
    Z3_ast zero = whole(r, GRAFT_ATTR_dequantise_zero, 0);
    const Z3_ast of[GRAFT_TERM_ARGUMENTS] = {q, scale, zero,
                                             whole(r, GRAFT_ATTR_dequantise_least, 0)};
    return r->s->numbers != NULL ? rd_times(r, rd_minus(r, q, zero), scale)
                                 : graft_term_scaled(&r->s->term, of);
}

static Z3_ast rd_compute(const rd *r, Z3_ast a, Z3_ast b)
{
    if ((graft_op(r->node->op)->flags & GRAFT_FLAG_COMPOSED) != 0) {
        return compute_function(r, a);
    }
    switch (r->node->op) {
    case GRAFT_OP_clip:
        return clamp(r, a);
    case GRAFT_OP_leaky_relu:
        return leaky_relu(r, a);
    case GRAFT_OP_quantise:
        return quantise(r, a);
    case GRAFT_OP_dequantise:
        return dequantise(r, a);
    default:
        return compute(r, r->node->op, a, graft_op(r->node->op)->input_count == 2 ? b : NULL);
    }
}

/* --------------------------------------------------------------------- folds */

static Z3_ast rd_shifted(const rd *r, Z3_ast x, Z3_ast shift)
{
    return shift == NULL ? x : rd_minus(r, x, shift);
}

#include "graph/meaning/reading.inc"

/* A tap is guarded, unless without padding every one lies inside. */
static bool rd_slide(rd *r, const rd_window *w, Z3_ast *at)
{
    graft_sym *s = r->s;
    Z3_ast reached = graft_sym_add(s, graft_sym_mul(s, w->position, w->stride),
                                   graft_sym_mul(s, w->tap, w->dilation));
    *at = graft_sym_sub(s, reached, w->before);
    Z3_ast inside = graft_sym_in_range(s, *at, w->size);
    const graft_facts taps = {.outer = r->facts,
                              .fact = product_bounds(s, w->tap, w->kernel, w->dilation)};
    const graft_facts positions = {.outer = &taps,
                                   .fact = product_bounds(s, w->position, w->count, w->stride)};
    const graft_facts facts = {.outer = &positions,
                               .fact = graft_sym_in_range(s, w->tap, w->kernel)};
    if (!graft_sym_is_number(s, w->before, 0) || !graft_sym_holds(s, &facts, inside)) {
        graft_sym_range_guard(s, r->range, inside);
        r->guards[w->binder] = inside;
    }
    if (graft_sym_is_number(s, w->size, 1) && s->plain == NULL) {
        *at = graft_sym_int(s, 0);
    }
    return true;
}

/* A quotient by a number that shape inference makes positive. */
static Z3_ast divide_by_count(const rd *r, Z3_ast total, Z3_ast count)
{
    uint32_t known = Z3_ast_vector_size(r->s->z3, r->s->term.domain);
    Z3_ast quotient = rd_over(r, total, count);
    Z3_ast_vector_resize(r->s->z3, r->s->term.domain, known);
    return graft_sym_normal(r->s, quotient);
}

/* How many values of a binder its guard lets through, which is never none. */
static Z3_ast count_of(rd *r, const graft_sym_range *range, uint32_t binder)
{
    graft_sym_range own = graft_sym_range_open(r->s);
    if (r->guards[binder] == NULL) {
        return graft_sym_real(r->s, range->sizes[binder]);
    }
    Z3_ast to = graft_sym_range_add(r->s, &own, range->sizes[binder]);
    Z3_ast guard = graft_sym_substitute(r->s, r->guards[binder], 1, &range->binders[binder], &to);
    graft_sym_range_guard(r->s, &own, guard);
    Z3_ast count = graft_sym_sum(r->s, r->facts, &own, r->s->term.one);
    if (r->read->fact_count < GRAFT_LIMIT(CONDITIONS) && r->s->plain == NULL) {
        r->read->facts[r->read->fact_count++] = (graft_sym_fact){
            .holds = Z3_mk_lt(r->s->z3, r->s->term.zero, count), .shape = r->symbolic->shapes[0]};
    }
    return count;
}

/* Of real numbers a mean is a sum divided by how many there are along each axis. */
static Z3_ast close_real(rd *r, rd_kind kind, const graft_sym_range *range, Z3_ast body)
{
    if (kind == RD_MAX || kind == RD_MIN) {
        return graft_sym_max(r->s, r->facts, range, body);
    }
    Z3_ast total = graft_sym_sum(r->s, r->facts, range, body);
    for (uint32_t i = 0; i < range->count && kind != RD_SUM; i++) {
        total = divide_by_count(r, total,
                                kind == RD_MEAN ? count_of(r, range, i)
                                                : graft_sym_real(r->s, range->sizes[i]));
    }
    return total;
}

/* The smallest is the opposite of the largest opposite, bit for bit. */
static Z3_ast opposite(const rd *r, Z3_ast x)
{
    Z3_ast minus = r->s->numbers != NULL ? r->s->numbers->size(r->s, graft_sym_int(r->s, -1))
                                         : Z3_mk_int(r->s->z3, -1, r->s->term.real);
    return rd_times(r, x, minus);
}

static Z3_ast rd_fold(rd *r, rd_kind kind, uint32_t count, const Z3_ast *sizes, rd_body body,
                      const void *context)
{
    static const graft_sym_fold folds[] = {[RD_SUM] = GRAFT_SYM_ORDERED_SUM,
                                           [RD_MAX] = GRAFT_SYM_ORDERED_MAX,
                                           [RD_MIN] = GRAFT_SYM_ORDERED_MAX,
                                           [RD_MEAN] = GRAFT_SYM_ORDERED_MEAN,
                                           [RD_MEAN_OF_ALL] = GRAFT_SYM_ORDERED_MEAN};
    graft_sym_range range = graft_sym_range_open(r->s);
    const uint32_t asked = Z3_ast_vector_size(r->s->z3, r->s->term.domain);
    assert(r->range == NULL && count <= GRAFT_MAX_RANK); /* No fold stands in another's body. */
    for (uint32_t i = 0; i < count; i++) {
        (void)graft_sym_range_add(r->s, &range, sizes[i]);
        r->guards[i] = NULL;
    }
    r->range = &range;
    Z3_ast value = body(r, range.binders, context);
    r->range = NULL;
    value = kind == RD_MIN ? opposite(r, value) : value;
    assert(asked == Z3_ast_vector_size(r->s->z3, r->s->term.domain)); /* Nothing divides there. */
    value = r->s->numbers != NULL
                ? r->s->numbers->fold(r->s, folds[kind], kind == RD_MEAN_OF_ALL, &range, value)
                : close_real(r, kind, &range, value);
    return kind == RD_MIN ? opposite(r, value) : value;
}

static Z3_ast rd_row_shift(rd *r, const rd_along *along)
{
    if (r->s->numbers == NULL) {
        return NULL;
    }
    return r->s->numbers->row_shift(r->s, read_fold_along(r, RD_MAX, read_along, along));
}

/* --------------------------------------------------------------- a node's own */

/* Takes note of what the node's own divisions and roots ask. */
static void note_conditions(const reader *r)
{
    graft_sym *s = r->s;
    uint32_t count = Z3_ast_vector_size(s->z3, s->term.domain);
    const bool divides = r->node->op == GRAFT_OP_div;
    const bool second = divides || r->node->op == GRAFT_OP_remainder;
    bool compared = false;
    bool caught = false;
    for (uint32_t i = second ? 1 : 0; i < graft_op(r->node->op)->input_count; i++) {
        compared = compared || hangs(r, i, true);
        caught = caught || hangs(r, i, false);
    }
    for (uint32_t i = 0; i < count; i++) {
        Z3_ast holds = Z3_ast_vector_get(s->z3, s->term.domain, i);
        const bool is_root = graft_sym_kind(s, holds) != Z3_OP_NOT ||
                             r->node->op == GRAFT_OP_remainder; /* By 0 it is no number. */
        const bool composed = (graft_op(r->node->op)->flags & GRAFT_FLAG_COMPOSED) != 0;
        const graft_sym_condition c = {
            .holds = holds,
            .is_root = is_root,
            .is_factor = divides,
            .is_of_div = divides,
            .is_signed = divides && GRAFT_OPERAND_IS_NODE(r->node->inputs[1]),
            .is_caught =
                compared ||
                (is_root ? caught : composed && graft_catches_infinity(r->node->op, 0, 0))};
        add_condition(r, &c);
    }
    graft_term_forget(&s->term);
}

static void declare_elements(graft_sym *s, const graft_sym_instance *instance)
{
    s->booleans = graft_rule_booleans(instance->rule);
    for (uint32_t v = 0; v < instance->rule->var_count; v++) {
        s->elements[v] = graft_term_declare(s->z3, instance->vars[v].rank, s->integer, s->term.real,
                                            "x%" PRIu32, v);
    }
}

bool graft_sym_read_side(graft_sym *s, const graft_sym_instance *instance, uint32_t side,
                         graft_sym_side *result)
{
    const graft_pattern *pattern = graft_sym_pattern(instance->rule, side);
    memset((void *)result, 0, sizeof *result);
    declare_elements(s, instance);
    graft_term_forget(&s->term);
    s->bound = 0;
    for (uint32_t k = 0; k < pattern->node_count; k++) {
        uint32_t n = instance->order[side][k];
        const graft_sym_node *symbolic = &instance->nodes[side][n];
        for (uint32_t o = 0; o < graft_op(pattern->nodes[n].op)->output_count; o++) {
            graft_facts room[GRAFT_MAX_RANK];
            const graft_facts *facts = graft_sym_within(s, &symbolic->shapes[o], room);
            reader r = {.s = s,
                        .instance = instance,
                        .read = result,
                        .node = &pattern->nodes[n],
                        .symbolic = symbolic,
                        .facts = facts,
                        .conditions = &result->conditions[n][o],
                        .side = side,
                        .output = o};
            s->splits = 0;
            s->fresh = 0; /* No symbol of the kind is in use between nodes. */
            result->values[n][o] = read_element(&r);
            if (s->plain != NULL) {
                result->values[n][o] =
                    s->plain->value(s, side, n, o, symbolic->shapes[o].rank, result->values[n][o]);
            }
            note_conditions(&r);
        }
    }
    return s->refusal == NULL;
}

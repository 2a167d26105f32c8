/* symsame.c - see symsame.h. */
#include "verify/sizes/symsame.h"

#include "graph/meaning/algebra_float.h"
#include "verify/core/limits.h"
#include "verify/core/symassume.h"
#include "verify/core/symmatch.h"

#include <string.h>

typedef struct {
    graft_sym *s;
    uint32_t steps;
} comparison;

/* -------------------------------------------------------------------- laws */

/* The operation that a term applies, or GRAFT_SYM_BITS_COUNT. */
static uint32_t operation_of(const graft_sym *s, Z3_ast term)
{
    uint32_t i = 0;
    while (i < GRAFT_SYM_BITS_COUNT &&
           !graft_sym_is_app(s, term, graft_sym_bits_of(s)->operations[i])) {
        i++;
    }
    return i;
}

static bool is_choice(uint32_t operation)
{
    return operation == GRAFT_SYM_BITS_MAX || operation == GRAFT_SYM_BITS_MIN;
}

/* What max(x, y) or min(x, y) is when one is an operand of the other, or is it; NULL otherwise. */
static Z3_ast chosen_already(const graft_sym *s, uint32_t operation, Z3_ast x, Z3_ast y)
{
    bool ends = operation_of(s, x) == operation && graft_sym_arg(s, x, 1) == y;
    bool has = operation_of(s, y) == operation &&
               (graft_sym_arg(s, y, 0) == x || graft_sym_arg(s, y, 1) == x);
    return x == y || ends ? x : has ? y : NULL;
}

static Z3_ast zero_of(const graft_sym *s)
{
    return graft_sym_bits_constant(graft_sym_bits_of(s), 0);
}

/* Whether it is known that a value is never -0. */
static bool is_never_minus_zero(const graft_sym *s, Z3_ast x)
{
    return x == zero_of(s) || graft_sym_fold_kind(s, x) == GRAFT_SYM_ORDERED_SUM ||
           (operation_of(s, x) == GRAFT_SYM_BITS_SUM &&
            (is_never_minus_zero(s, graft_sym_arg(s, x, 0)) ||
             is_never_minus_zero(s, graft_sym_arg(s, x, 1))));
}

/* An operation on constants; NULL when x or y is none. */
static Z3_ast compute_constants(const graft_sym *s, uint32_t operation, Z3_ast x, Z3_ast y)
{
    static const uint8_t ops[] = {
        [GRAFT_SYM_BITS_SUM] = GRAFT_OP_add,        [GRAFT_SYM_BITS_PRODUCT] = GRAFT_OP_mul,
        [GRAFT_SYM_BITS_DIFFERENCE] = GRAFT_OP_sub, [GRAFT_SYM_BITS_QUOTIENT] = GRAFT_OP_div,
        [GRAFT_SYM_BITS_MAX] = GRAFT_OP_max,        [GRAFT_SYM_BITS_MIN] = GRAFT_OP_min};
    static const int32_t attrs[GRAFT_MAX_ATTRS] = {0};
    const graft_shape scalars[2] = {{.dtype = GRAFT_DTYPE_F32}, {.dtype = GRAFT_DTYPE_F32}};
    const graft_call call = {attrs, scalars, &scalars[1]};
    float operands[2];
    float result = 0.0F;
    uint32_t bits = 0;
    if (operation >= GRAFT_SYM_BITS_LEAKY_RELU || !graft_sym_bits_is_constant(s, x, &operands[0]) ||
        !graft_sym_bits_is_constant(s, y, &operands[1])) {
        return NULL;
    }
    graft_float_run(ops[operation], &call, (const float *const[]){&operands[0], &operands[1]},
                    (float *const[]){&result});
    memcpy(&bits, &result, sizeof bits);
    return graft_sym_bits_constant(graft_sym_bits_of(s), bits);
}

/* What an operation on x and y is by a law; NULL when by none. */
static Z3_ast find_law(const graft_sym *s, uint32_t operation, Z3_ast x, Z3_ast y)
{
    Z3_ast zero = zero_of(s);
    Z3_ast one = graft_sym_bits_size(s, graft_sym_int(s, 1));
    switch (operation) {
    case GRAFT_SYM_BITS_SUM:
        return y == zero && is_never_minus_zero(s, x)   ? x
               : x == zero && is_never_minus_zero(s, y) ? y
                                                        : NULL;
    case GRAFT_SYM_BITS_PRODUCT:
        return x == one ? y : y == one ? x : NULL;
    case GRAFT_SYM_BITS_DIFFERENCE:
        return y == zero ? x : NULL;
    case GRAFT_SYM_BITS_QUOTIENT:
        return y == one ? x : NULL;
    case GRAFT_SYM_BITS_MAX:
    case GRAFT_SYM_BITS_MIN:
        return chosen_already(s, operation, x, y);
    default:
        return NULL;
    }
}

static Z3_ast apply_law(void *context, Z3_ast term)
{
    const graft_sym *s = context;
    uint32_t operation = operation_of(s, term);
    if (operation >= GRAFT_SYM_BITS_EXP) {
        return term;
    }
    Z3_ast x = graft_sym_arg(s, term, 0);
    Z3_ast y = graft_sym_arg(s, term, 1);
    Z3_ast simpler = compute_constants(s, operation, x, y);
    simpler = simpler == NULL ? find_law(s, operation, x, y) : simpler;
    return simpler == NULL ? term : simpler;
}

/* ------------------------------------------------------- folds on their own */

static bool is_bound(const graft_sym *s, const graft_sym_range *range, Z3_ast term)
{
    return graft_sym_mentions(s, term, range->count, range->binders);
}

/* Binders of size 1 are 0; the others keep their order. */
static Z3_ast drop_units(graft_sym *s, const graft_facts *facts, graft_sym_range *range,
                         Z3_ast body)
{
    Z3_ast zero = graft_sym_int(s, 0);
    Z3_ast one = graft_sym_int(s, 1);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < range->count; i++) {
        Z3_ast binder = range->binders[i];
        if (graft_sym_holds(s, facts, Z3_mk_eq(s->z3, range->sizes[i], one))) {
            body = graft_sym_substitute(s, body, 1, &binder, &zero);
            range->guard = graft_sym_substitute(s, range->guard, 1, &binder, &zero);
        } else {
            range->binders[kept] = binder;
            range->sizes[kept++] = range->sizes[i];
        }
    }
    range->count = kept;
    return body;
}

/* Sorts the parts of a guard by whether binders occur in them. */
static void split_guard(const graft_sym *s, const graft_sym_range *range, Z3_ast guard,
                        graft_sym_range *bound, graft_sym_range *free)
{
    if (graft_sym_kind(s, guard) == Z3_OP_AND) {
        for (uint32_t i = 0; i < graft_sym_arity(s, guard); i++) {
            split_guard(s, range, graft_sym_arg(s, guard, i), bound, free);
        }
    } else {
        graft_sym_range_guard(s, is_bound(s, range, guard) ? bound : free, guard);
    }
}

/* Of one element, where no binder is left. */
static Z3_ast close_fold(graft_sym *s, graft_sym_fold kind, const graft_sym_range *range,
                         Z3_ast body)
{
    if (range->count > 0) {
        return graft_sym_fold_close(s, kind, range, body);
    }
    return kind == GRAFT_SYM_ORDERED_MAX
               ? body
               : graft_sym_bits_apply(graft_sym_bits_of(s), GRAFT_SYM_BITS_SUM, zero_of(s), body);
}

/* A fold with what its range says of it carried out; itself where that is nothing. */
static Z3_ast reduce_fold(graft_sym *s, const graft_facts *facts, Z3_ast fold)
{
    graft_sym_range range;
    graft_sym_range bound = graft_sym_range_open(s);
    graft_sym_range free = graft_sym_range_open(s);
    graft_sym_fold kind = graft_sym_fold_kind(s, fold);
    Z3_ast body = graft_sym_fold_open(s, fold, &range);
    uint32_t count = range.count;
    body = drop_units(s, facts, &range, body);
    if (kind == GRAFT_SYM_ORDERED_MAX && !is_bound(s, &range, body)) {
        return body;
    }
    uint32_t operation = operation_of(s, body);
    if (kind == GRAFT_SYM_ORDERED_MAX && is_choice(operation) &&
        !is_bound(s, &range, graft_sym_arg(s, body, 1))) {
        Z3_ast inner = close_fold(s, kind, &range, graft_sym_arg(s, body, 0));
        return graft_sym_bits_apply(graft_sym_bits_of(s), operation, inner,
                                    graft_sym_arg(s, body, 1));
    }
    split_guard(s, &range, range.guard, &bound, &free);
    bool whole = kind != GRAFT_SYM_ORDERED_SUM || Z3_get_bool_value(s->z3, free.guard) == Z3_L_TRUE;
    if (whole && range.count == count) {
        return fold;
    }
    if (kind == GRAFT_SYM_ORDERED_SUM) {
        range.guard = bound.guard;
    }
    Z3_ast value = close_fold(s, kind, &range, body);
    return whole ? value : Z3_mk_ite(s->z3, free.guard, value, zero_of(s));
}

static bool is_empty_sum(graft_sym *s, const graft_facts *facts, Z3_ast term)
{
    graft_sym_range range;
    if (graft_sym_fold_kind(s, term) != GRAFT_SYM_ORDERED_SUM) {
        return false;
    }
    (void)graft_sym_fold_open(s, term, &range);
    Z3_ast some = graft_sym_range_formula(s, &range);
    return graft_sym_holds(s, facts, Z3_mk_not(s->z3, some));
}

/* --------------------------------------------------------------- comparing */

static bool are_same(comparison *c, const graft_facts *facts, Z3_ast x, Z3_ast y);

static bool are_same_both_ways(comparison *c, const graft_facts *facts, Z3_ast condition,
                               const Z3_ast pair[2])
{
    graft_sym *s = c->s;
    Z3_ast opposite = Z3_mk_not(s->z3, condition);
    const graft_facts yes = {.outer = facts, .fact = condition};
    const graft_facts no = {.outer = facts, .fact = opposite};
    bool never = graft_sym_holds(s, facts, opposite);
    bool always = !never && graft_sym_holds(s, facts, condition);
    return (never || are_same(c, &yes, graft_sym_given(s, pair[0], condition, true),
                              graft_sym_given(s, pair[1], condition, true))) &&
           (always || are_same(c, &no, graft_sym_given(s, pair[0], condition, false),
                               graft_sym_given(s, pair[1], condition, false)));
}

/* Two folds, opened, and what is to be added to the second one's binders. */
typedef struct {
    graft_sym_range ranges[2];
    Z3_ast bodies[2];
    Z3_ast shifts[GRAFT_SYM_BINDERS];
} fold_pair;

/* What an index adds to a binder; NULL when it is no such sum, or another binder occurs in it. */
static Z3_ast rest_of(const graft_sym *s, const graft_sym_range *range, uint32_t i, Z3_ast index)
{
    while (graft_sym_is_app(s, index, s->at)) {
        index = graft_sym_arg(s, index, 1);
    }
    if (!graft_sym_mentions(s, index, 1, &range->binders[i])) {
        return NULL;
    }
    Z3_ast rest = graft_sym_sub(s, index, range->binders[i]);
    return is_bound(s, range, rest) ? NULL : rest;
}

/* Reads shifts off two elements of one variable. */
static bool find_shifts(const graft_sym *s, fold_pair *p, Z3_ast x, Z3_ast y)
{
    bool found = false;
    for (uint32_t k = 0; k < graft_sym_arity(s, x); k++) {
        for (uint32_t i = 0; i < p->ranges[0].count; i++) {
            Z3_ast rest_x = rest_of(s, &p->ranges[0], i, graft_sym_arg(s, x, k));
            Z3_ast rest_y = rest_of(s, &p->ranges[1], i, graft_sym_arg(s, y, k));
            if (rest_x != NULL && rest_y != NULL && rest_x != rest_y) {
                p->shifts[i] = graft_sym_sub(s, rest_y, rest_x);
                found = true;
            }
        }
    }
    return found;
}

/* Shifts that some pair of elements suggests; false when none does. */
static bool suggest_shifts(const graft_sym *s, fold_pair *p)
{
    graft_sym_atoms left = {.count = 0};
    graft_sym_atoms right = {.count = 0};
    graft_sym_list(s, p->bodies[0], GRAFT_SYM_ALL_ELEMENTS, &left);
    graft_sym_list(s, p->bodies[1], GRAFT_SYM_ALL_ELEMENTS, &right);
    for (uint32_t i = 0; i < left.count; i++) {
        Z3_func_decl decl = Z3_get_app_decl(s->z3, Z3_to_app(s->z3, left.from[i]));
        for (uint32_t k = 0; k < right.count; k++) {
            if (graft_sym_is_app(s, right.from[k], decl) &&
                find_shifts(s, p, left.from[i], right.from[k])) {
                return true;
            }
        }
    }
    return false;
}

static bool are_same_shifted(comparison *c, const graft_facts *facts, const fold_pair *p)
{
    graft_sym *s = c->s;
    const graft_sym_range *a = &p->ranges[0];
    const graft_sym_range *b = &p->ranges[1];
    Z3_ast to[GRAFT_SYM_BINDERS];
    for (uint32_t i = 0; i < a->count; i++) {
        to[i] = graft_sym_add(s, b->binders[i], p->shifts[i]);
    }
    Z3_ast range_b = graft_sym_range_formula(s, b);
    Z3_ast range_a = graft_sym_range_formula(s, a);
    range_a = graft_sym_substitute(s, range_a, a->count, a->binders, to);
    range_a = graft_sym_simplify(s, range_a);
    const graft_facts in_a = {.outer = facts, .fact = range_a};
    const graft_facts in_b = {.outer = facts, .fact = range_b};
    if (!graft_sym_holds(s, &in_b, range_a) || !graft_sym_holds(s, &in_a, range_b)) {
        return false;
    }
    Z3_ast body = graft_sym_substitute(s, p->bodies[0], a->count, a->binders, to);
    return are_same(c, &in_b, body, p->bodies[1]);
}

static bool are_same_folds(comparison *c, const graft_facts *facts, Z3_ast x, Z3_ast y)
{
    graft_sym *s = c->s;
    fold_pair p;
    if (!graft_sym_is_app(s, y, Z3_get_app_decl(s->z3, Z3_to_app(s->z3, x)))) {
        return false;
    }
    p.bodies[0] = graft_sym_fold_open(s, x, &p.ranges[0]);
    p.bodies[1] = graft_sym_fold_open(s, y, &p.ranges[1]);
    for (uint32_t i = 0; i < p.ranges[0].count; i++) {
        p.shifts[i] = graft_sym_int(s, 0);
    }
    return are_same_shifted(c, facts, &p) ||
           (suggest_shifts(s, &p) && are_same_shifted(c, facts, &p));
}

static bool is_same_operand(comparison *c, const graft_facts *facts, Z3_ast x, Z3_ast y)
{
    graft_sym *s = c->s;
    if (Z3_get_sort(s->z3, x) == s->integer) {
        return x == y || graft_sym_holds(s, facts, Z3_mk_eq(s->z3, x, y));
    }
    return are_same(c, facts, x, y);
}

/* One function, applied to operands that are the same. */
static bool are_same_applications(comparison *c, const graft_facts *facts, Z3_ast x, Z3_ast y)
{
    graft_sym *s = c->s;
    if (Z3_get_ast_kind(s->z3, x) != Z3_APP_AST ||
        !graft_sym_is_app(s, y, Z3_get_app_decl(s->z3, Z3_to_app(s->z3, x)))) {
        return false;
    }
    uint32_t operation = operation_of(s, x);
    uint32_t count = graft_sym_arity(s, x);
    bool same = count > 0;
    for (uint32_t i = 0; i < count && same; i++) {
        same = is_same_operand(c, facts, graft_sym_arg(s, x, i), graft_sym_arg(s, y, i));
    }
    bool commutes = operation == GRAFT_SYM_BITS_SUM || operation == GRAFT_SYM_BITS_PRODUCT;
    return same ||
           (commutes && are_same(c, facts, graft_sym_arg(s, x, 0), graft_sym_arg(s, y, 1)) &&
            are_same(c, facts, graft_sym_arg(s, x, 1), graft_sym_arg(s, y, 0)));
}

static Z3_ast tidy(graft_sym *s, const graft_facts *facts, Z3_ast term)
{
    Z3_ast tidied = graft_term_rebuild(s->z3, term, apply_law, s);
    bool fold = graft_sym_fold_kind(s, tidied) != GRAFT_SYM_FOLD_COUNT;
    return fold ? reduce_fold(s, facts, tidied) : tidied;
}

static bool are_same(comparison *c, const graft_facts *facts, Z3_ast x, Z3_ast y)
{
    graft_sym *s = c->s;
    if (x == y) {
        return true;
    }
    if (++c->steps > GRAFT_LIMIT(BIT_STEPS) || graft_sym_is_spent(s)) {
        return false;
    }
    Z3_ast condition = graft_sym_find_condition(s, x);
    condition = condition == NULL ? graft_sym_find_condition(s, y) : condition;
    if (condition != NULL) {
        return are_same_both_ways(c, facts, condition, (Z3_ast[]){x, y});
    }
    Z3_ast left = tidy(s, facts, x);
    Z3_ast right = tidy(s, facts, y);
    if (left != x || right != y) {
        return are_same(c, facts, left, right);
    }
    if (graft_sym_fold_kind(s, x) != GRAFT_SYM_FOLD_COUNT &&
        graft_sym_fold_kind(s, y) != GRAFT_SYM_FOLD_COUNT) {
        return are_same_folds(c, facts, x, y);
    }
    return (x == zero_of(s) && is_empty_sum(s, facts, y)) ||
           (y == zero_of(s) && is_empty_sum(s, facts, x)) || are_same_applications(c, facts, x, y);
}

bool graft_sym_same_bits(graft_sym *s, const graft_facts *facts, Z3_ast x, Z3_ast y)
{
    comparison c = {.s = s};
    s->fresh = 0; /* No symbol of the kind is in use in a question. */
    return are_same(&c, facts, x, y);
}

/* symsolve.c - see symsolve.h. */
#include "verify/core/symsolve.h"

#include "verify/core/hints.h"

Z3_ast graft_sym_solved(const graft_sym_equations *e, Z3_ast term)
{
    if (e->s->plain != NULL || e->count == 0) {
        return term;
    }
    Z3_ast solved = graft_sym_substitute(e->s, term, e->count, e->from, e->to);
    return solved == term ? term : graft_sym_simplify(e->s, solved);
}

void graft_sym_claim(graft_sym_equations *e, Z3_ast claim)
{
    Z3_ast simple = graft_sym_simplify(e->s, graft_sym_expand(e->s, claim));
    Z3_lbool value = Z3_get_bool_value(e->s->z3, simple);
    if (value == Z3_L_TRUE) {
        return;
    }
    e->impossible = e->impossible || value == Z3_L_FALSE;
    if (e->claim_count == GRAFT_LIMIT(CLAIMS)) {
        (void)graft_sym_refuse(e->s, GRAFT_LIMIT_CLAIMS);
        return;
    }
    e->claims[e->claim_count++] = claim;
}

void graft_sym_claim_positive(graft_sym_equations *e, Z3_ast term)
{
    graft_sym_claim(e, Z3_mk_le(e->s->z3, graft_sym_int(e->s, 1), term));
    for (uint32_t i = 0; i < e->positive_count; i++) {
        if (e->positive[i] == term) {
            return;
        }
    }
    if (e->positive_count < GRAFT_LIMIT(POSITIVE_SIZES)) {
        e->positive[e->positive_count++] = term;
    }
}

static bool is_positive(const graft_sym_equations *e, Z3_ast term);

/* Whether all that a product, or a broadcast size, is made of is known to be at least 1. */
static bool has_positive_parts(const graft_sym_equations *e, Z3_ast term)
{
    bool positive = true;
    for (uint32_t i = 0; positive && i < graft_sym_arity(e->s, term); i++) {
        positive = is_positive(e, graft_sym_arg(e->s, term, i));
    }
    return positive;
}

/* Whether a term is known to be at least 1 without asking. */
static bool is_positive(const graft_sym_equations *e, Z3_ast term)
{
    const graft_sym *s = e->s;
    int64_t number = 0;
    if (Z3_is_numeral_ast(s->z3, term)) {
        return Z3_get_numeral_int64(s->z3, term, &number) && number >= 1;
    }
    bool product = graft_sym_kind(s, term) == Z3_OP_MUL || graft_sym_is_app(s, term, s->wide);
    bool positive = product && has_positive_parts(e, term);
    for (uint32_t i = 0; i < e->positive_count && !positive; i++) {
        positive = e->positive[i] == term;
    }
    return positive;
}

static void solve(graft_sym_equations *e, Z3_ast symbol, Z3_ast value)
{
    if (e->count == GRAFT_LIMIT(SOLVED_SIZES)) {
        (void)graft_sym_refuse(e->s, GRAFT_LIMIT_SOLVED_SIZES);
        return;
    }
    for (uint32_t i = 0; i < e->count; i++) {
        e->to[i] =
            graft_sym_simplify(e->s, graft_sym_substitute(e->s, e->to[i], 1, &symbol, &value));
    }
    e->from[e->count] = symbol;
    e->to[e->count++] = value;
    e->changed = true;
}

/* Solves difference = 0 for a symbol, as is proposed: the difference is a whole multiple, other than
 * 0 times, of symbol - value or of the opposite. */
static bool solve_for_symbol(graft_sym_equations *e, Z3_ast difference)
{
    const graft_sym *s = e->s;
    graft_sym_solution x;
    if (s->hints == NULL || !s->hints->solve(s, difference, &x)) {
        return false;
    }
    Z3_ast apart =
        x.opposite ? graft_sym_sub(s, x.value, x.symbol) : graft_sym_sub(s, x.symbol, x.value);
    Z3_ast multiple = x.times == 1 ? apart : graft_sym_mul(s, graft_sym_int(s, x.times), apart);
    bool follows = x.times != 0 && graft_sym_is_symbol(s, x.symbol) &&
                   !graft_sym_mentions(s, x.value, 1, &x.symbol) &&
                   (multiple == difference ||
                    graft_sym_is_number(s, graft_sym_sub(s, multiple, difference), 0));
    if (follows) {
        solve(e, x.symbol, x.value);
    }
    return follows;
}

void graft_sym_equate(graft_sym_equations *e, Z3_ast a, Z3_ast b)
{
    graft_sym *s = e->s;
    if (s->plain != NULL) {
        graft_sym_claim(e, Z3_mk_eq(s->z3, a, b));
        return;
    }
    a = graft_sym_solved(e, a);
    b = graft_sym_solved(e, b);
    Z3_ast difference = graft_sym_sub(s, a, b);
    if (graft_sym_is_number(s, difference, 0)) {
        return;
    }
    if (Z3_is_numeral_ast(s->z3, difference)) {
        e->impossible = true;
        return;
    }
    if (graft_sym_is_app(s, a, s->wide) && graft_sym_is_number(s, b, 1)) {
        graft_sym_equate(e, graft_sym_arg(s, a, 0), b);
        graft_sym_equate(e, graft_sym_arg(s, a, 1), b);
        return;
    }
    if (graft_sym_is_app(s, b, s->wide) && graft_sym_is_number(s, a, 1)) {
        graft_sym_equate(e, b, a);
        return;
    }
    bool products = graft_sym_kind(s, a) == Z3_OP_MUL || graft_sym_kind(s, b) == Z3_OP_MUL;
    if (products && is_positive(e, a) && is_positive(e, b) && !e->in_products) {
        e->in_products = true;
        graft_sym_equate_products(e, &a, 1, &b, 1);
        e->in_products = false;
    } else if (!solve_for_symbol(e, difference)) {
        graft_sym_claim(e, Z3_mk_eq(s->z3, a, b));
    }
}

/* ------------------------------------------------------------------ products */

/* The factors of a product of sizes. */
typedef struct {
    Z3_ast items[GRAFT_ROOM_SIZE_FACTORS];
    uint32_t count;
} factor_list;

/* Products among the sizes are taken apart where their factors are positive, as the sizes are; 1s are
 * left out. False when there are too many: what the list lacks would count as 1. */
static bool list_factors(const graft_sym_equations *e, const Z3_ast *sizes, uint32_t count,
                         factor_list *list)
{
    const graft_sym *s = e->s;
    for (uint32_t i = 0; i < count; i++) {
        Z3_ast size = graft_sym_solved(e, sizes[i]);
        bool product = graft_sym_kind(s, size) == Z3_OP_MUL && has_positive_parts(e, size);
        uint32_t parts = product ? graft_sym_arity(s, size) : 1;
        for (uint32_t k = 0; k < parts; k++) {
            Z3_ast factor = product ? graft_sym_arg(s, size, k) : size;
            if (graft_sym_is_number(s, factor, 1)) {
                continue;
            }
            if (list->count == GRAFT_LIMIT(SIZE_FACTORS)) {
                return graft_sym_refuse(e->s, GRAFT_LIMIT_SIZE_FACTORS);
            }
            list->items[list->count++] = factor;
        }
    }
    return true;
}

static Z3_ast multiply_all(const graft_sym *s, const Z3_ast *factors, uint32_t count)
{
    Z3_ast product = graft_sym_int(s, 1);
    for (uint32_t i = 0; i < count; i++) {
        product = graft_sym_mul(s, product, factors[i]);
    }
    return product;
}

/* Leaves out the factors that both have. */
static void cancel_common(factor_list *left, factor_list *right)
{
    for (uint32_t i = 0; i < left->count; i++) {
        for (uint32_t k = 0; k < right->count; k++) {
            if (left->items[i] == right->items[k]) {
                left->items[i--] = left->items[--left->count];
                right->items[k] = right->items[--right->count];
                break;
            }
        }
    }
}

void graft_sym_equate_products(graft_sym_equations *e, const Z3_ast *a, uint32_t a_count,
                               const Z3_ast *b, uint32_t b_count)
{
    const graft_sym *s = e->s;
    if (s->plain != NULL) {
        graft_sym_equate(e, multiply_all(s, a, a_count), multiply_all(s, b, b_count));
        return;
    }
    factor_list left = {.count = 0};
    factor_list right = {.count = 0};
    if (!list_factors(e, a, a_count, &left) || !list_factors(e, b, b_count, &right)) {
        return;
    }
    cancel_common(&left, &right);
    if (left.count == 0 || right.count == 0) {
        const factor_list *rest = left.count > 0 ? &left : &right;
        for (uint32_t i = 0; i < rest->count; i++) {
            graft_sym_equate(e, rest->items[i], graft_sym_int(s, 1));
        }
        return;
    }
    graft_sym_equate(e, multiply_all(s, left.items, left.count),
                     multiply_all(s, right.items, right.count));
}

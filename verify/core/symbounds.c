/* symbounds.c - see symbounds.h. */
#include "verify/core/symbounds.h"

#include "verify/core/symfold.h"

typedef struct {
    graft_sym *s;
    Z3_ast *facts;
    uint32_t count;
} fact_list;

static void note(fact_list *list, Z3_ast fact)
{
    if (list->count < GRAFT_LIMIT(BOUNDS)) {
        list->facts[list->count++] = fact;
    }
}

/* a <= b */
static void note_order(fact_list *list, Z3_ast a, Z3_ast b)
{
    note(list, Z3_mk_le(list->s->z3, a, b));
}

static Z3_ast times(const graft_sym *s, Z3_ast a, Z3_ast b)
{
    return Z3_mk_mul(s->z3, 2, (Z3_ast[]){a, b});
}

/* ---------------------------------------------------------------- one sum */

/* A sum, opened. */
typedef struct {
    Z3_ast fold;
    graft_sym_range range;
    Z3_ast body;
    bool whole; /* Without a guard. */
} sum;

static sum open_sum(graft_sym *s, Z3_ast fold)
{
    sum x = {.fold = fold};
    x.body = graft_sym_fold_open(s, fold, &x.range);
    x.whole = Z3_get_bool_value(s->z3, x.range.guard) == Z3_L_TRUE;
    return x;
}

/* How many places a sum has: none beyond those that it has without its guard. */
static Z3_ast count_places(fact_list *list, const sum *x)
{
    graft_sym *s = list->s;
    graft_sym_range all = x->range;
    all.guard = Z3_mk_true(s->z3);
    Z3_ast count = graft_sym_sum(s, NULL, &x->range, s->term.one);
    note_order(list, s->term.zero, count);
    note_order(list, count, graft_sym_sum(s, NULL, &all, s->term.one));
    return count;
}

static void note_sign(fact_list *list, const sum *x)
{
    graft_sym *s = list->s;
    if (x->whole && graft_sym_is_so(s, NULL, Z3_mk_lt(s->z3, s->term.zero, x->body))) {
        note(list, Z3_mk_lt(s->z3, s->term.zero, x->fold));
    } else if (graft_sym_is_so(s, NULL, Z3_mk_le(s->z3, s->term.zero, x->body))) {
        note_order(list, s->term.zero, x->fold);
    }
}

/* ------------------------------------------------------- bounds of a body */

typedef struct {
    const graft_sym *s;
    Z3_ast numbers[GRAFT_ROOM_BOUND_NUMBERS];
    uint32_t count;
} number_search;

/* The alternatives of conditionals that are numbers or symbols of numbers: no place is one. */
static bool visit_alternative(void *context, Z3_ast term)
{
    number_search *n = context;
    const graft_sym *s = n->s;
    bool inside =
        graft_sym_fold_kind(s, term) == GRAFT_SYM_FOLD_COUNT && !graft_sym_is_element(s, term);
    for (uint32_t i = 1; i < 3 && graft_sym_kind(s, term) == Z3_OP_ITE; i++) {
        Z3_ast number = graft_sym_arg(s, term, i);
        bool plain = graft_sym_arity(s, number) == 0;
        if (plain && n->count < GRAFT_LIMIT(BOUND_NUMBERS)) {
            n->numbers[n->count++] = number;
        }
    }
    return inside;
}

static void note_range(fact_list *list, const sum *x)
{
    graft_sym *s = list->s;
    number_search n = {.s = s};
    graft_sym_walk(s, x->body, visit_alternative, &n);
    for (uint32_t i = 0; i < n.count; i++) {
        if (graft_sym_is_so(s, NULL, Z3_mk_le(s->z3, n.numbers[i], x->body))) {
            note_order(list, times(s, n.numbers[i], count_places(list, x)), x->fold);
        } else if (graft_sym_is_so(s, NULL, Z3_mk_le(s->z3, x->body, n.numbers[i]))) {
            note_order(list, x->fold, times(s, n.numbers[i], count_places(list, x)));
        }
    }
}

/* ------------------------------------------------------------- two sums */

/* Whether `squares` sums over the same range what x sums, squared. Binders are named alike, so the
 * arguments of the folds are the same terms. */
static bool sums_squares(const graft_sym *s, Z3_ast x, Z3_ast squares)
{
    uint32_t last = graft_sym_arity(s, x) - 1;
    bool same = graft_sym_arity(s, squares) == last + 1;
    for (uint32_t i = 0; i < last && same; i++) {
        same = graft_sym_arg(s, x, i) == graft_sym_arg(s, squares, i);
    }
    if (!same) {
        return false;
    }
    Z3_ast body = graft_sym_arg(s, x, last);
    return graft_sym_simplify(s, times(s, body, body)) ==
           graft_sym_simplify(s, graft_sym_arg(s, squares, last));
}

static void note_squares(fact_list *list, const sum *x, const graft_sym_atoms *folds)
{
    graft_sym *s = list->s;
    for (uint32_t i = 0; i < folds->count; i++) {
        Z3_ast squares = folds->from[i];
        if (graft_sym_fold_kind(s, squares) == GRAFT_SYM_SUM && sums_squares(s, x->fold, squares)) {
            note_order(list, times(s, x->fold, x->fold), times(s, count_places(list, x), squares));
        }
    }
}

uint32_t graft_sym_bounds(graft_sym *s, const graft_sym_atoms *folds,
                          Z3_ast facts[GRAFT_ROOM_BOUNDS])
{
    fact_list list = {.s = s, .facts = facts};
    for (uint32_t i = 0; i < folds->count; i++) {
        if (graft_sym_fold_kind(s, folds->from[i]) == GRAFT_SYM_SUM) {
            s->fresh = 0; /* No symbol of the kind is in use in a question. */
            sum x = open_sum(s, folds->from[i]);
            note_sign(&list, &x);
            note_range(&list, &x);
            note_squares(&list, &x, folds);
        }
    }
    return list.count;
}

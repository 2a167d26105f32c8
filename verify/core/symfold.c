/* symfold.c - see symfold.h. */
#include "verify/core/symfold.h"

#include "verify/core/hints.h"
#include "verify/core/readings.h"
#include "verify/core/symassume.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- folds */

graft_sym_fold graft_sym_fold_kind(const graft_sym *s, Z3_ast term)
{
    if (Z3_get_ast_kind(s->z3, term) != Z3_APP_AST) {
        return GRAFT_SYM_FOLD_COUNT;
    }
    Z3_func_decl decl = Z3_get_app_decl(s->z3, Z3_to_app(s->z3, term));
    uint32_t arity = graft_sym_arity(s, term);
    uint32_t count = arity >= 4 && arity % 2 == 0 ? (arity - 2) / 2 : 0;
    for (uint32_t f = 0; f < GRAFT_SYM_FOLD_COUNT && count > 0; f++) {
        if (count <= GRAFT_SYM_BINDERS && s->folds[f][count] == decl) {
            return (graft_sym_fold)f;
        }
    }
    return GRAFT_SYM_FOLD_COUNT;
}

Z3_ast graft_sym_fold_open(graft_sym *s, Z3_ast fold, graft_sym_range *range)
{
    Z3_ast from[GRAFT_SYM_BINDERS];
    range->count = (graft_sym_arity(s, fold) - 2) / 2;
    for (uint32_t i = 0; i < range->count; i++) {
        from[i] = graft_sym_arg(s, fold, i);
        range->binders[i] = graft_sym_fresh(s);
        range->sizes[i] = graft_sym_arg(s, fold, range->count + i);
    }
    Z3_ast guard = graft_sym_arg(s, fold, 2 * range->count);
    Z3_ast body = graft_sym_arg(s, fold, 2 * range->count + 1);
    range->guard = graft_sym_substitute(s, guard, range->count, from, range->binders);
    return graft_sym_substitute(s, body, range->count, from, range->binders);
}

/* Binders of folds are called b<height>_<number>, other integers differently. */
static const char *name_of(const graft_sym *s, Z3_ast symbol)
{
    Z3_app app = Z3_to_app(s->z3, symbol);
    return Z3_get_symbol_string(s->z3, Z3_get_decl_name(s->z3, Z3_get_app_decl(s->z3, app)));
}

static bool is_named(const graft_sym *s, Z3_ast term, const void *letter)
{
    return graft_sym_is_symbol(s, term) && name_of(s, term)[0] == *(const char *)letter;
}

bool graft_sym_is_bound(const graft_sym *s, Z3_ast term)
{
    return graft_sym_find(s, term, true, is_named, "b") != NULL;
}

bool graft_sym_is_open(const graft_sym *s, Z3_ast term)
{
    return graft_sym_find(s, term, true, is_named, "r") != NULL;
}

/* Sizes are called d<variable>_<axis from the end>, attributes s<slot>. */
static bool is_of_place(const graft_sym *s, Z3_ast term, const void *context)
{
    (void)context;
    return graft_sym_is_symbol(s, term) && name_of(s, term)[0] != 'd' && name_of(s, term)[0] != 's';
}

bool graft_sym_is_of_instance(const graft_sym *s, Z3_ast term)
{
    return graft_sym_find(s, term, true, is_of_place, NULL) == NULL;
}

typedef struct {
    const graft_sym *s;
    uint32_t height;
} height_search;

static bool visit_height(void *context, Z3_ast term)
{
    height_search *h = context;
    if (graft_sym_fold_kind(h->s, term) == GRAFT_SYM_FOLD_COUNT) {
        return true;
    }
    const char *name = name_of(h->s, graft_sym_arg(h->s, term, 0));
    uint32_t height = (uint32_t)strtoul(name + 1, NULL, 10);
    h->height = height > h->height ? height : h->height;
    return false;
}

static void sort_binders(const graft_sym *s, graft_sym_range *range)
{
    for (uint32_t i = 1; i < range->count; i++) {
        Z3_ast binder = range->binders[i];
        Z3_ast size = range->sizes[i];
        uint32_t k = i;
        for (; k > 0 && Z3_get_ast_id(s->z3, range->sizes[k - 1]) > Z3_get_ast_id(s->z3, size);
             k--) {
            range->binders[k] = range->binders[k - 1];
            range->sizes[k] = range->sizes[k - 1];
        }
        range->binders[k] = binder;
        range->sizes[k] = size;
    }
}

Z3_ast graft_sym_fold_close(graft_sym *s, graft_sym_fold kind, const graft_sym_range *range,
                            Z3_ast body)
{
    Z3_ast args[2 * GRAFT_SYM_BINDERS + 2];
    height_search h = {.s = s};
    uint32_t count = range->count;
    graft_sym_walk(s, body, visit_height, &h);
    for (uint32_t i = 0; i < count; i++) {
        args[i] = graft_term_constant(s->z3, s->integer, "b%" PRIu32 "_%" PRIu32, h.height + 1, i);
        args[count + i] = range->sizes[i];
    }
    Z3_ast guard = graft_sym_substitute(s, range->guard, count, range->binders, args);
    Z3_ast named = graft_sym_substitute(s, body, count, range->binders, args);
    args[2 * count] = graft_sym_simplify(s, guard);
    args[2 * count + 1] = graft_sym_simplify(s, named);
    return Z3_mk_app(s->z3, s->folds[kind][count], 2 * count + 2, args);
}

static Z3_ast make_fold(graft_sym *s, graft_sym_fold kind, graft_sym_range range, Z3_ast body)
{
    sort_binders(s, &range);
    return graft_sym_fold_close(s, kind, &range, body);
}

/* -------------------------------------------------------------- conditionals */

static bool is_choice_on_indices(const graft_sym *s, Z3_ast term, const void *context)
{
    (void)context;
    return graft_sym_kind(s, term) == Z3_OP_ITE && !graft_sym_is_real(s, graft_sym_arg(s, term, 0));
}

Z3_ast graft_sym_find_condition(const graft_sym *s, Z3_ast term)
{
    Z3_ast found = graft_sym_find(s, term, false, is_choice_on_indices, NULL);
    return found == NULL ? NULL : graft_sym_arg(s, found, 0);
}

Z3_ast graft_sym_given(graft_sym *s, Z3_ast term, Z3_ast condition, bool holds)
{
    Z3_ast value = holds ? Z3_mk_true(s->z3) : Z3_mk_false(s->z3);
    return graft_sym_simplify(s, Z3_substitute(s->z3, term, 1, &condition, &value));
}

/* --------------------------------------------------------------- monomials */

/* A monomial as its factors. */
typedef struct {
    Z3_ast factors[GRAFT_ROOM_FACTORS];
    uint32_t count;
} monomial;

static bool open_monomial(const graft_sym *s, Z3_ast term, monomial *m)
{
    m->count = 0;
    if (graft_sym_kind(s, term) != Z3_OP_MUL) {
        m->factors[m->count++] = term;
        return true;
    }
    for (uint32_t i = 0; i < graft_sym_arity(s, term); i++) {
        Z3_ast factor = graft_sym_arg(s, term, i);
        bool product = graft_sym_kind(s, factor) == Z3_OP_MUL;
        uint32_t parts = product ? graft_sym_arity(s, factor) : 1;
        for (uint32_t k = 0; k < parts; k++) {
            if (m->count == GRAFT_LIMIT(FACTORS)) {
                return false;
            }
            m->factors[m->count++] = product ? graft_sym_arg(s, factor, k) : factor;
        }
    }
    return true;
}

static Z3_ast close_monomial(const graft_sym *s, const monomial *m)
{
    return m->count == 0   ? s->term.one
           : m->count == 1 ? m->factors[0]
                           : Z3_mk_mul(s->z3, m->count, m->factors);
}

/* Sizes are at least 1: a size and its reciprocal leave 1. */
static Z3_ast cancel_sizes(graft_sym *s, Z3_ast term)
{
    monomial m = {.count = 0};
    if (!open_monomial(s, term, &m)) {
        return term;
    }
    for (uint32_t i = 0; i < m.count; i++) {
        if (!graft_sym_is_app(s, m.factors[i], s->term.functions[GRAFT_TERM_INVERSE])) {
            continue;
        }
        Z3_ast size = graft_sym_arg(s, m.factors[i], 0);
        uint32_t k = 0;
        while (k < m.count && m.factors[k] != size) {
            k++;
        }
        Z3_ast zero = Z3_mk_eq(s->z3, size, s->term.zero);
        if (k < m.count && graft_sym_kind(s, size) == Z3_OP_TO_REAL &&
            graft_sym_holds(s, NULL, Z3_mk_not(s->z3, zero))) {
            uint32_t low = i < k ? i : k;
            m.factors[i < k ? k : i] = m.factors[--m.count];
            m.factors[low] = m.factors[--m.count];
            i = UINT32_MAX; /* From the beginning. */
        }
    }
    return close_monomial(s, &m);
}

Z3_ast graft_sym_normal(graft_sym *s, Z3_ast term)
{
    if (s->plain != NULL) {
        return term;
    }
    Z3_ast simple = graft_sym_simplify(s, term);
    bool sum = graft_sym_kind(s, simple) == Z3_OP_ADD;
    uint32_t count = sum ? graft_sym_arity(s, simple) : 1;
    Z3_ast *parts = graft_term_room(count, sizeof *parts);
    bool changed = false;
    for (uint32_t i = 0; i < count; i++) {
        Z3_ast part = sum ? graft_sym_arg(s, simple, i) : simple;
        parts[i] = cancel_sizes(s, part);
        changed = changed || parts[i] != part;
    }
    simple = changed ? graft_sym_simplify(s, Z3_mk_add(s->z3, count, parts)) : simple;
    free(parts);
    return simple;
}

Z3_ast graft_sym_real(const graft_sym *s, Z3_ast size)
{
    return graft_sym_simplify(s, Z3_mk_int2real(s->z3, size));
}

/* -------------------------------------------------------------------- sums */

static Z3_ast fold_conditions(graft_sym *s, const graft_facts *facts, graft_sym_fold kind,
                              const graft_sym_range *range, Z3_ast body);
static Z3_ast sum_guarded(graft_sym *s, const graft_facts *facts, graft_sym_range range,
                          Z3_ast body);

static Z3_ast times(const graft_sym *s, Z3_ast a, Z3_ast b)
{
    return a == s->term.one ? b : b == s->term.one ? a : Z3_mk_mul(s->z3, 2, (Z3_ast[]){a, b});
}

static bool is_bound(const graft_sym *s, const graft_sym_range *range, Z3_ast term)
{
    return graft_sym_mentions(s, term, range->count, range->binders);
}

/* Takes the binders that occur neither in the body nor in the guard out as factors. */
static Z3_ast take_unused(const graft_sym *s, graft_sym_range *range, Z3_ast body, Z3_ast outside)
{
    for (uint32_t i = range->count; i-- > 0;) {
        Z3_ast binder = range->binders[i];
        bool used = graft_sym_mentions(s, body, 1, &binder) ||
                    graft_sym_mentions(s, range->guard, 1, &binder);
        if (!used) {
            outside = times(s, outside, graft_sym_real(s, range->sizes[i]));
            graft_sym_range_remove(range, i);
        }
    }
    return outside;
}

/* Takes the range of a fold in a body into the body's own: `fold` becomes its body. False when
 * there are too many binders. */
static bool merge_range(graft_sym *s, graft_sym_range *range, Z3_ast *fold)
{
    graft_sym_range inner;
    Z3_ast body = graft_sym_fold_open(s, *fold, &inner);
    if (range->count + inner.count > GRAFT_LIMIT(MERGED_BINDERS)) {
        return false;
    }
    for (uint32_t i = 0; i < inner.count; i++) {
        range->binders[range->count] = inner.binders[i];
        range->sizes[range->count++] = inner.sizes[i];
    }
    graft_sym_range_guard(s, range, inner.guard);
    *fold = body;
    return true;
}

/* Takes the sums among the factors into the range, as far as there is room for their binders; whether
 * there were any. */
static bool merge_sums(graft_sym *s, graft_sym_range *range, monomial *m)
{
    bool merged = false;
    for (uint32_t i = 0; i < m->count; i++) {
        const bool sum = graft_sym_fold_kind(s, m->factors[i]) == GRAFT_SYM_SUM;
        merged = (sum && merge_range(s, range, &m->factors[i])) || merged;
    }
    return merged;
}

/* ------------------------------------------------- sums that fall apart */

/* The binders that a term mentions, as bits. */
static uint32_t binders_of(const graft_sym *s, const graft_sym_range *range, Z3_ast term)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < range->count; i++) {
        bits |= graft_sym_mentions(s, term, 1, &range->binders[i]) ? 1u << i : 0;
    }
    return bits;
}

/* The parts of a conjunction. */
static bool open_guard(const graft_sym *s, Z3_ast guard, monomial *parts)
{
    if (Z3_get_bool_value(s->z3, guard) == Z3_L_TRUE) {
        return true;
    }
    if (graft_sym_kind(s, guard) == Z3_OP_AND) {
        bool fits = true;
        for (uint32_t i = 0; i < graft_sym_arity(s, guard); i++) {
            fits = fits && open_guard(s, graft_sym_arg(s, guard, i), parts);
        }
        return fits;
    }
    if (parts->count == GRAFT_LIMIT(FACTORS)) {
        return false;
    }
    parts->factors[parts->count++] = guard;
    return true;
}

/* How many places a guard leaves a range of one binder, if it says no more of it than bounds: NULL
 * where it says something else, or Z3 does not say how the bounds lie. */
static Z3_ast count_between(graft_sym *s, const graft_facts *facts, const graft_sym_range *range)
{
    Z3_ast binder = range->binders[0];
    Z3_ast none = graft_sym_int(s, 0);
    Z3_ast ends[2] = {none, range->sizes[0]}; /* The first place, and behind the last. */
    monomial parts = {.count = 0};
    bool known = open_guard(s, range->guard, &parts);
    for (uint32_t i = 0; i < parts.count && known; i++) {
        Z3_ast slack = graft_sym_slack(s, parts.factors[i]);
        Z3_ast low = slack == NULL ? binder : graft_sym_sub(s, binder, slack);
        const bool above = graft_sym_mentions(s, low, 1, &binder);
        Z3_ast high = slack == NULL
                          ? binder
                          : graft_sym_add(s, graft_sym_add(s, slack, binder), graft_sym_int(s, 1));
        Z3_ast *end = &ends[above ? 1 : 0];
        Z3_ast bound = above ? high : low;
        const bool moot = above ? graft_sym_holds(s, facts, Z3_mk_le(s->z3, *end, bound))
                                : graft_sym_holds(s, facts, Z3_mk_le(s->z3, bound, *end));
        known = !graft_sym_mentions(s, bound, 1, &binder) &&
                (moot || *end == (above ? range->sizes[0] : none));
        *end = moot ? *end : bound;
    }
    Z3_ast order[3] = {Z3_mk_le(s->z3, none, ends[0]), Z3_mk_le(s->z3, ends[0], ends[1]),
                       Z3_mk_le(s->z3, ends[1], range->sizes[0])};
    return known && graft_sym_holds(s, facts, Z3_mk_and(s->z3, 3, order))
               ? graft_sym_sub(s, ends[1], ends[0])
               : NULL;
}

/* Widens `group` to all binders that are tied to it. */
static uint32_t tied_binders(const graft_sym *s, const graft_sym_range *range, const monomial *body,
                             const monomial *guard, uint32_t group)
{
    for (uint32_t before = 0; before != group;) {
        before = group;
        for (uint32_t i = 0; i < body->count + guard->count; i++) {
            Z3_ast term = i < body->count ? body->factors[i] : guard->factors[i - body->count];
            uint32_t bits = binders_of(s, range, term);
            group |= (bits & group) != 0 ? bits : 0;
        }
    }
    return group;
}

/* The sum over the binders of a group, of the factors that mention them. */
static Z3_ast sum_group(graft_sym *s, const graft_sym_range *range, const monomial *body,
                        const monomial *guard, uint32_t group)
{
    graft_sym_range part = graft_sym_range_open(s);
    monomial factors = {.count = 0};
    for (uint32_t i = 0; i < range->count; i++) {
        if ((group >> i & 1u) != 0) {
            part.binders[part.count] = range->binders[i];
            part.sizes[part.count++] = range->sizes[i];
        }
    }
    for (uint32_t i = 0; i < body->count; i++) {
        if ((binders_of(s, range, body->factors[i]) & group) != 0) {
            factors.factors[factors.count++] = body->factors[i];
        }
    }
    for (uint32_t i = 0; i < guard->count; i++) {
        if ((binders_of(s, range, guard->factors[i]) & group) != 0) {
            graft_sym_range_guard(s, &part, guard->factors[i]);
        }
    }
    return make_fold(s, GRAFT_SYM_SUM, part, close_monomial(s, &factors));
}

/* The sum of a product whose factors all mention binders, taken apart where it falls apart. A part
 * of the guard without binders stays with the first group. */
static Z3_ast sum_product(graft_sym *s, const graft_sym_range *range, const monomial *body)
{
    monomial guard = {.count = 0};
    bool opened = open_guard(s, range->guard, &guard);
    for (uint32_t i = 0; i < guard.count; i++) {
        opened = opened && binders_of(s, range, guard.factors[i]) != 0;
    }
    uint32_t all = (1u << range->count) - 1;
    uint32_t first = opened ? tied_binders(s, range, body, &guard, 1) : all;
    if (first == all) {
        return make_fold(s, GRAFT_SYM_SUM, *range, close_monomial(s, body));
    }
    Z3_ast product = s->term.one;
    for (uint32_t left = all; left != 0;) {
        uint32_t group = tied_binders(s, range, body, &guard, left & (~left + 1));
        product = times(s, product, sum_group(s, range, body, &guard, group));
        left &= ~group;
    }
    return product;
}

/* A sum where a condition without binders holds, 0 elsewhere. */
static Z3_ast sum_where(const graft_sym *s, Z3_ast condition, Z3_ast sum)
{
    bool always = Z3_get_bool_value(s->z3, condition) == Z3_L_TRUE;
    return always ? sum : Z3_mk_ite(s->z3, condition, sum, s->term.zero);
}

static Z3_ast sum_monomial(graft_sym *s, const graft_facts *facts, graft_sym_range range,
                           Z3_ast term)
{
    monomial all;
    monomial inside = {.count = 0};
    monomial outside = {.count = 0};
    if (!open_monomial(s, term, &all)) {
        return make_fold(s, GRAFT_SYM_SUM, range, term);
    }
    for (uint32_t i = 0; i < all.count; i++) {
        monomial *to = is_bound(s, &range, all.factors[i]) ? &inside : &outside;
        to->factors[to->count++] = all.factors[i];
    }
    Z3_ast factor = close_monomial(s, &outside);
    if (merge_sums(s, &range, &inside)) {
        Z3_ast body = graft_sym_simplify(s, close_monomial(s, &inside));
        body = graft_sym_range_settle(s, facts, &range, body);
        return times(s, factor, sum_guarded(s, facts, range, body));
    }
    Z3_ast body = close_monomial(s, &inside);
    factor = take_unused(s, &range, body, factor);
    const bool counts = range.count == 1 && !is_bound(s, &range, body);
    Z3_ast count = counts ? count_between(s, facts, &range) : NULL;
    if (count != NULL) {
        return times(s, times(s, factor, graft_sym_real(s, count)), body);
    }
    return range.count == 0 ? sum_where(s, range.guard, times(s, factor, body))
                            : times(s, factor, sum_product(s, &range, &inside));
}

static Z3_ast sum_body(graft_sym *s, const graft_facts *facts, const graft_sym_range *range,
                       Z3_ast body)
{
    Z3_ast simple = graft_sym_normal(s, body);
    if (simple == s->term.zero) {
        return simple;
    }
    if (graft_sym_kind(s, simple) != Z3_OP_ADD) {
        return fold_conditions(s, facts, GRAFT_SYM_SUM, range, simple);
    }
    uint32_t count = graft_sym_arity(s, simple);
    Z3_ast *parts = graft_term_room(count, sizeof *parts);
    for (uint32_t i = 0; i < count; i++) {
        parts[i] = fold_conditions(s, facts, GRAFT_SYM_SUM, range, graft_sym_arg(s, simple, i));
    }
    simple = Z3_mk_add(s->z3, count, parts);
    free(parts);
    return simple;
}

/* Takes the parts without binders out of a range's guard, and returns them; all of it, however many
 * they are, where none has one. */
static Z3_ast take_free_guard(const graft_sym *s, graft_sym_range *range)
{
    monomial parts = {.count = 0};
    graft_sym_range free = graft_sym_range_open(s);
    if (!is_bound(s, range, range->guard)) {
        free.guard = range->guard;
        range->guard = Z3_mk_true(s->z3);
    } else if (open_guard(s, range->guard, &parts)) {
        range->guard = Z3_mk_true(s->z3);
        for (uint32_t i = 0; i < parts.count; i++) {
            bool bound = is_bound(s, range, parts.factors[i]);
            graft_sym_range_guard(s, bound ? range : &free, parts.factors[i]);
        }
    }
    return free.guard;
}

/* The sum where the parts of the guard without binders hold, 0 elsewhere. */
static Z3_ast sum_guarded(graft_sym *s, const graft_facts *facts, graft_sym_range range,
                          Z3_ast body)
{
    Z3_ast free = take_free_guard(s, &range);
    const graft_facts inner = {.outer = facts, .fact = free};
    Z3_ast sum = range.count > 0 ? sum_body(s, &inner, &range, body) : body;
    return graft_sym_holds(s, facts, free) ? sum : sum_where(s, free, sum);
}

Z3_ast graft_sym_sum(graft_sym *s, const graft_facts *facts, const graft_sym_range *range,
                     Z3_ast body)
{
    if (s->plain != NULL) {
        return s->plain->fold(s, GRAFT_SYM_SUM, range, body);
    }
    graft_sym_range left = *range;
    body = graft_sym_range_settle(s, facts, &left, body);
    return graft_sym_normal(s, sum_guarded(s, facts, left, body));
}

/* ------------------------------------------------------------------- maxima */

/* What stands for a number in a term of which Z3 is asked something: it becomes a symbol, for what is
 * so is so whatever it is. */
typedef struct {
    const graft_sym *s;
    const graft_sym_range *range;
    Z3_ast bound; /* What names a binder, */
    uint32_t bound_count;
    Z3_ast from[GRAFT_ROOM_BESIDE]; /* and what does not. */
    Z3_ast to[GRAFT_ROOM_BESIDE];
    uint32_t count;
    bool full; /* There are more. */
} number_list;

static void name_number(number_list *n, char letter, Z3_ast term)
{
    if (n->count == GRAFT_LIMIT(BESIDE)) {
        n->full = true;
        return;
    }
    n->from[n->count] = term;
    n->to[n->count] = graft_sym_unknown(n->s, letter, n->count);
    n->count++;
}

static bool is_atom(const graft_sym *s, Z3_ast term, const void *context)
{
    (void)context;
    return graft_sym_fold_kind(s, term) != GRAFT_SYM_FOLD_COUNT || graft_sym_is_element(s, term);
}

/* Elements, folds and sizes. */
static bool visit_atom(void *context, Z3_ast term)
{
    number_list *n = context;
    if (!is_atom(n->s, term, NULL) && graft_sym_kind(n->s, term) != Z3_OP_TO_REAL) {
        return true;
    }
    if (is_bound(n->s, n->range, term)) {
        n->bound = term;
        n->bound_count++;
    } else {
        name_number(n, 'g', term);
    }
    return false;
}

static number_list list_atoms(const graft_sym *s, const graft_sym_range *range, Z3_ast term)
{
    number_list n = {.s = s, .range = range};
    graft_sym_walk(s, term, visit_atom, &n);
    return n;
}

/* Functions. */
static bool visit_function(void *context, Z3_ast term)
{
    number_list *n = context;
    if (graft_sym_kind(n->s, term) == Z3_OP_UNINTERPRETED && graft_sym_arity(n->s, term) > 0) {
        name_number(n, 'h', term);
    }
    return true;
}

static bool is_no_number(const graft_sym *s, Z3_ast term, const void *context)
{
    (void)context;
    return Z3_get_sort(s->z3, term) == s->integer ||
           (graft_sym_kind(s, term) == Z3_OP_UNINTERPRETED && graft_sym_arity(s, term) > 0);
}

/* What is implied by the laws of the functions in a statement, and by what is assumed of numbers. */
static Z3_ast with_laws(const graft_sym *s, Z3_ast goal)
{
    graft_term_state term;
    graft_term_open(&term, s->z3);
    goal = graft_term_rebuild(s->z3, goal, graft_term_renew, &term);
    Z3_ast known = graft_growth_laws(&term, goal);
    for (uint32_t i = 0; i < Z3_ast_vector_size(s->z3, term.laws); i++) {
        Z3_ast law = Z3_ast_vector_get(s->z3, term.laws, i);
        known = Z3_mk_and(s->z3, 2, (Z3_ast[]){known, law});
    }
    for (uint32_t i = 0; i < s->assumed->number_count; i++) {
        known = Z3_mk_and(s->z3, 2, (Z3_ast[]){known, s->assumed->numbers[i]});
    }
    graft_term_close(&term);
    return Z3_mk_implies(s->z3, known, goal);
}

/* Whether Z3 says so where `facts` hold, what is listed being symbols: functions are unknown at first,
 * and then symbols, too. Z3 sees no fold (symfold.h). */
static bool is_so(graft_sym *s, const number_list *n, const graft_facts *facts, Z3_ast goal)
{
    number_list functions = {.s = s};
    goal = Z3_substitute(s->z3, goal, n->count, n->from, n->to);
    if (n->full || graft_sym_mentions(s, goal, n->range->count, n->range->binders) ||
        graft_sym_find(s, goal, true, is_atom, NULL) != NULL) {
        return false;
    }
    goal = with_laws(s, goal);
    if (graft_sym_holds(s, facts, goal)) {
        return true;
    }
    graft_sym_walk(s, goal, visit_function, &functions);
    goal = Z3_substitute(s->z3, goal, functions.count, functions.from, functions.to);
    return graft_sym_find(s, goal, true, is_no_number, NULL) == NULL &&
           graft_sym_holds_for_reals(s, goal);
}

/* Whether x <= y implies g(x) <= g(y), or the opposite where g falls, g being `term` as a function of
 * all that names a binder in it. */
static bool is_monotone(graft_sym *s, const number_list *n, const graft_facts *facts, Z3_ast term,
                        bool falls)
{
    Z3_ast x = graft_term_constant(s->z3, s->term.real, "x");
    Z3_ast y = graft_term_constant(s->z3, s->term.real, "y");
    Z3_ast at_x = Z3_substitute(s->z3, term, 1, &n->bound, &x);
    Z3_ast at_y = Z3_substitute(s->z3, term, 1, &n->bound, &y);
    Z3_ast order = falls ? Z3_mk_le(s->z3, at_y, at_x) : Z3_mk_le(s->z3, at_x, at_y);
    return !graft_sym_mentions(s, term, 2, (Z3_ast[]){x, y}) && /* They stand for themselves. */
           is_so(s, n, facts, Z3_mk_implies(s->z3, Z3_mk_le(s->z3, x, y), order));
}

bool graft_sym_is_so(graft_sym *s, const graft_facts *facts, Z3_ast statement)
{
    const graft_sym_range none = graft_sym_range_open(s);
    const number_list n = list_atoms(s, &none, statement);
    return is_so(s, &n, facts, statement);
}

static Z3_ast max_body(graft_sym *s, const graft_facts *facts, const graft_sym_range *range,
                       Z3_ast body);

/* The maximum over the binders that occur in an atom: an element, or a maximum that is part of this
 * one then. */
static Z3_ast max_atom(graft_sym *s, const graft_facts *facts, graft_sym_range range, Z3_ast atom)
{
    Z3_ast inside = atom;
    if (graft_sym_fold_kind(s, atom) == GRAFT_SYM_MAX && merge_range(s, &range, &inside)) {
        return max_body(s, facts, &range, inside);
    }
    (void)take_unused(s, &range, atom, s->term.one);
    return range.count == 0 ? atom : make_fold(s, GRAFT_SYM_MAX, range, atom);
}

static Z3_ast minus_one(const graft_sym *s) { return Z3_mk_int(s->z3, -1, s->term.real); }

static Z3_ast minus(const graft_sym *s, Z3_ast term)
{
    return Z3_mk_mul(s->z3, 2, (Z3_ast[]){minus_one(s), term});
}

/* Whether a term is the larger one of two, or the opposite of the smaller one. */
static bool is_larger_of(const graft_sym *s, Z3_ast term, Z3_ast parts[2])
{
    bool opposite = graft_sym_kind(s, term) == Z3_OP_MUL && graft_sym_arity(s, term) == 2 &&
                    graft_sym_arg(s, term, 0) == minus_one(s);
    Z3_ast choice = opposite ? graft_sym_arg(s, term, 1) : term;
    if (graft_sym_kind(s, choice) != Z3_OP_ITE) {
        return false;
    }
    Z3_ast condition = graft_sym_simplify(s, graft_sym_arg(s, choice, 0));
    Z3_ast large = graft_sym_arg(s, choice, opposite ? 2 : 1);
    Z3_ast small = graft_sym_arg(s, choice, opposite ? 1 : 2);
    parts[0] = opposite ? minus(s, small) : large;
    parts[1] = opposite ? minus(s, large) : small;
    return condition == graft_sym_simplify(s, Z3_mk_ge(s->z3, large, small)) ||
           condition == graft_sym_simplify(s, Z3_mk_gt(s->z3, large, small)) ||
           condition == graft_sym_simplify(s, Z3_mk_le(s->z3, small, large));
}

static Z3_ast larger_of(const graft_sym *s, Z3_ast a, Z3_ast b)
{
    return a == b ? a : Z3_mk_ite(s->z3, Z3_mk_ge(s->z3, a, b), a, b);
}

static Z3_ast max_body(graft_sym *s, const graft_facts *facts, const graft_sym_range *range,
                       Z3_ast body)
{
    Z3_ast parts[2];
    body = graft_sym_normal(s, body);
    const number_list a = list_atoms(s, range, body);
    if (a.bound_count == 0 && !is_bound(s, range, body)) {
        return body;
    }
    if (a.bound_count == 1 && a.bound != body && is_monotone(s, &a, facts, body, false)) {
        Z3_ast fold = max_atom(s, facts, *range, a.bound);
        return Z3_substitute(s->z3, body, 1, &a.bound, &fold);
    }
    Z3_ast opposite = a.bound_count == 1 ? graft_sym_normal(s, minus(s, a.bound)) : body;
    if (opposite != body && a.bound != body && is_monotone(s, &a, facts, body, true)) {
        Z3_ast least = minus(s, max_atom(s, facts, *range, opposite));
        return Z3_substitute(s->z3, body, 1, &a.bound, &least);
    }
    if (is_larger_of(s, body, parts)) {
        return larger_of(s, max_body(s, facts, range, parts[0]),
                         max_body(s, facts, range, parts[1]));
    }
    return max_atom(s, facts, *range, body);
}

/* Whether Z3 says that a place that is proposed lies in the range. */
static bool has_place(graft_sym *s, const graft_facts *facts, const graft_sym_range *range)
{
    Z3_ast to[GRAFT_SYM_BINDERS];
    if (s->hints == NULL) {
        return false;
    }
    s->hints->inside(s, range, to);
    Z3_ast formula = graft_sym_range_formula(s, range);
    formula = graft_sym_substitute(s, formula, range->count, range->binders, to);
    return graft_sym_holds(s, facts, formula);
}

/* Whether a term with binders of a range is chosen by numbers without. */
static bool is_chosen_outside(const graft_sym *s, Z3_ast term, const void *range)
{
    return graft_sym_kind(s, term) == Z3_OP_ITE && is_bound(s, range, term) &&
           !is_bound(s, range, graft_sym_arg(s, term, 0));
}

/* A fold whose body has a condition on indices: where it depends on the binders, the fold where it
 * holds and that where it does not, of maxima if there are places of both kinds. A condition without
 * binders may be one on numbers. */
static Z3_ast fold_conditions(graft_sym *s, const graft_facts *facts, graft_sym_fold kind,
                              const graft_sym_range *range, Z3_ast body)
{
    const bool max = kind == GRAFT_SYM_MAX;
    Z3_ast condition = graft_sym_find_condition(s, body);
    const bool of_numbers = condition == NULL;
    Z3_ast choice = of_numbers ? graft_sym_find(s, body, false, is_chosen_outside, range) : NULL;
    condition = choice != NULL ? graft_sym_arg(s, choice, 0) : condition;
    if (condition == NULL || s->splits >= GRAFT_LIMIT(CONDITIONS_SPLIT)) {
        return max ? max_body(s, facts, range, body) : sum_monomial(s, facts, *range, body);
    }
    s->splits++;
    const graft_facts inner = {.outer = facts, .fact = graft_sym_range_formula(s, range)};
    Z3_ast ways[2] = {condition, Z3_mk_not(s->z3, condition)};
    Z3_ast parts[2];
    bool bound = is_bound(s, range, condition);
    for (uint32_t i = 0; i < 2 && !of_numbers; i++) {
        Z3_ast given = graft_sym_given(s, body, condition, i == 0);
        if (graft_sym_holds(s, &inner, ways[i])) {
            return max ? fold_conditions(s, facts, kind, range, given)
                       : sum_body(s, facts, range, given);
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        const graft_facts where = {.outer = facts, .fact = ways[i]};
        const graft_facts *known = bound || of_numbers ? facts : &where;
        Z3_ast given = graft_sym_given(s, body, condition, i == 0);
        graft_sym_range part = *range;
        if (bound) {
            graft_sym_range_guard(s, &part, ways[i]);
        }
        if (bound && max && !has_place(s, facts, &part)) {
            return max_body(s, facts, range, body);
        }
        parts[i] =
            max ? graft_sym_max(s, known, &part, given) : graft_sym_sum(s, known, &part, given);
    }
    return !bound ? Z3_mk_ite(s->z3, condition, parts[0], parts[1])
           : max  ? larger_of(s, parts[0], parts[1])
                  : Z3_mk_add(s->z3, 2, parts);
}

Z3_ast graft_sym_max(graft_sym *s, const graft_facts *facts, const graft_sym_range *range,
                     Z3_ast body)
{
    if (s->plain != NULL) {
        return s->plain->fold(s, GRAFT_SYM_MAX, range, body);
    }
    graft_sym_range left = *range;
    body = graft_sym_range_settle(s, facts, &left, body);
    return left.count > 0 ? fold_conditions(s, facts, GRAFT_SYM_MAX, &left, body) : body;
}

Z3_ast graft_sym_fold_parted(graft_sym *s, const graft_facts *facts, graft_sym_fold kind,
                             const graft_sym_range *range, Z3_ast body, Z3_ast condition)
{
    s->splits = 0;
    return fold_conditions(s, facts, kind, range, Z3_mk_ite(s->z3, condition, body, body));
}

/* theoremfind.c - which instances of lemmas to write (theoremlemma.h). Nothing here is trusted: an
 * instance is true whatever it is about.
 *
 * 1. Sums are taken apart into sums of products (linear<k>): factors without the index go out, sums
 *    within go innermost, a range of one index is that index.
 * 2. What is left is split where a condition compares its index with something else.
 * 3. Of each two sums whose bodies read the same variables it is said that equal bodies make them
 *    equal, and the same of the sums that these bodies hold; of each two maxima, that neither is
 *    below what the other attains. */
#include "verify/export/theoremlemma.h"

#include <string.h>

enum {
    FACTORS_MOST = 24,
    ITEMS_MOST = GRAFT_THEOREM_SUMMANDS_MOST,
    FOLDS_MOST = 48,
    BREAKS_MOST = 3,
    DEPTH_MOST = 7,
    PAIRS_MOST = 90,
    EQUAL_MOST = 256,
    SIZES_LIMIT = 20000
};

typedef struct {
    Z3_ast folds[FOLDS_MOST];
    uint32_t count;
} fold_list;

/* A sum and what it is split into. */
typedef struct {
    Z3_ast fold;
    fold_list parts;
} split;

typedef struct {
    graft_lemmas *l;
    graft_sym *s;
    Z3_context z3;
    Z3_ast_map known; /* Sums with what they were taken apart into. */
    Z3_ast_map paired;
    uint32_t pairs;
    Z3_ast equal[EQUAL_MOST][2]; /* Sizes that the assumptions equate. */
    uint32_t equal_count;
    split *splits;
    uint32_t split_count;
    uint32_t split_capacity;
    Z3_solver sizes;   /* Knows the assumptions. */
    Z3_ast_map ones;   /* Sizes with whether they must be 1. */
    Z3_ast_map ranges; /* Indices with the sizes that they are within. */
} finder;

/* A product: what does not depend on the index, what does, and the conditions under which it is
 * not 0. */
typedef struct {
    Z3_ast outside; /* NULL: 1. */
    Z3_ast factors[FACTORS_MOST];
    uint32_t count;
    Z3_ast guards[FACTORS_MOST];
    uint32_t guard_count;
} item;

typedef struct {
    item items[ITEMS_MOST];
    uint32_t count;
    bool full;
} item_list;

/* --------------------------------------------------------------------- terms */

static bool is_sum(const finder *f, Z3_ast term)
{
    const graft_sym_definition *d = graft_sym_plain_find(f->s, term);
    return d != NULL && d->kind == GRAFT_SYM_DEFINES_SUM;
}

static bool is_max(const finder *f, Z3_ast term)
{
    const graft_sym_definition *d = graft_sym_plain_find(f->s, term);
    return d != NULL && d->kind == GRAFT_SYM_DEFINES_MAX && graft_sym_is_app(f->s, term, d->decl);
}

static Z3_ast size_of(const finder *f, Z3_ast fold) { return graft_sym_arg(f->s, fold, 0); }

static Z3_ast times(const finder *f, Z3_ast a, Z3_ast b)
{
    return a == NULL ? b : b == NULL ? a : Z3_mk_mul(f->z3, 2, (Z3_ast[]){a, b});
}

static void add_fold(fold_list *list, Z3_ast fold)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->folds[i] == fold) {
            return;
        }
    }
    if (list->count < FOLDS_MOST) {
        list->folds[list->count++] = fold;
    }
}

typedef struct {
    const finder *f;
    fold_list *list;
} fold_search;

static bool visit_fold(void *context, Z3_ast term)
{
    fold_search *c = context;
    bool fold = is_sum(c->f, term) || is_max(c->f, term);
    if (fold) {
        add_fold(c->list, term);
    }
    return !fold;
}

static void list_folds(const finder *f, Z3_ast term, fold_list *list)
{
    fold_search c = {f, list};
    graft_sym_walk(f->s, term, visit_fold, &c);
}

/* Sums and maxima over one range, of a body over an index. */
static Z3_ast make_sum(const finder *f, Z3_ast index, Z3_ast size, Z3_ast body)
{
    const graft_sym_level level = {
        .kind = GRAFT_SYM_SUM, .binder = index, .size = size, .body = body};
    return graft_sym_plain_level(f->s, &level, f->l->symbol_count, f->l->symbols);
}

/* --------------------------------------------------------------------- sizes */

static void open_sizes(finder *f)
{
    const graft_sym_plain *p = graft_sym_plain_of(f->s);
    Z3_params limit = Z3_mk_params(f->z3);
    Z3_params_inc_ref(f->z3, limit);
    Z3_params_set_uint(f->z3, limit, Z3_mk_string_symbol(f->z3, "rlimit"), SIZES_LIMIT);
    f->sizes = Z3_mk_simple_solver(f->z3);
    Z3_solver_inc_ref(f->z3, f->sizes);
    Z3_solver_set_params(f->z3, f->sizes, limit);
    Z3_params_dec_ref(f->z3, limit);
    f->ones = graft_term_map(f->z3);
    f->ranges = graft_term_map(f->z3);
    for (uint32_t i = 0; i < p->claim_count; i++) {
        Z3_ast claim = graft_sym_plain_expand(f->s, p->claims[i]);
        if (graft_sym_kind(f->s, claim) == Z3_OP_EQ && f->equal_count < EQUAL_MOST) {
            f->equal[f->equal_count][0] = graft_sym_arg(f->s, claim, 0);
            f->equal[f->equal_count++][1] = graft_sym_arg(f->s, claim, 1);
        }
        Z3_solver_assert(f->z3, f->sizes, graft_sym_expand(f->s, claim));
    }
}

static void close_sizes(finder *f)
{
    Z3_ast_map_dec_ref(f->z3, f->ones);
    Z3_ast_map_dec_ref(f->z3, f->ranges);
    Z3_solver_dec_ref(f->z3, f->sizes);
}

static bool must_be_one(finder *f, Z3_ast size)
{
    if (Z3_is_numeral_ast(f->z3, size)) {
        return graft_sym_is_number(f->s, size, 1);
    }
    if (!Z3_ast_map_contains(f->z3, f->ones, size)) {
        Z3_ast other = Z3_mk_not(f->z3, Z3_mk_eq(f->z3, size, graft_sym_int(f->s, 1)));
        Z3_solver_push(f->z3, f->sizes);
        Z3_solver_assert(f->z3, f->sizes, graft_sym_expand(f->s, other));
        Z3_lbool answer = Z3_solver_check(f->z3, f->sizes);
        Z3_solver_pop(f->z3, f->sizes, 1);
        Z3_ast_map_insert(f->z3, f->ones, size,
                          answer == Z3_L_FALSE ? Z3_mk_true(f->z3) : Z3_mk_false(f->z3));
    }
    return Z3_get_bool_value(f->z3, Z3_ast_map_find(f->z3, f->ones, size)) == Z3_L_TRUE;
}

/* Of all that a size is equated with, the first that Z3 made; a number, if there is one. */
static Z3_ast least_equal(finder *f, Z3_ast size)
{
    bool seen[EQUAL_MOST] = {false};
    Z3_ast reached[EQUAL_MOST + 1] = {size};
    Z3_ast best = size;
    uint32_t count = 1;
    if (must_be_one(f, size)) {
        return graft_sym_int(f->s, 1);
    }
    for (uint32_t at = 0; at < count; at++) {
        for (uint32_t i = 0; i < f->equal_count; i++) {
            for (uint32_t k = 0; k < 2 && !seen[i]; k++) {
                if (f->equal[i][k] == reached[at] && count <= EQUAL_MOST) {
                    seen[i] = true;
                    reached[count++] = f->equal[i][1 - k];
                }
            }
        }
    }
    for (uint32_t i = 1; i < count; i++) {
        bool simpler = graft_sym_arity(f->s, reached[i]) < graft_sym_arity(f->s, best);
        bool alike = graft_sym_arity(f->s, reached[i]) == graft_sym_arity(f->s, best);
        bool earlier = Z3_get_ast_id(f->z3, reached[i]) < Z3_get_ast_id(f->z3, best);
        best = simpler || (alike && earlier) ? reached[i] : best;
    }
    return best;
}

static Z3_ast range_of(const finder *f, Z3_ast index)
{
    return Z3_ast_map_contains(f->z3, f->ranges, index) ? Z3_ast_map_find(f->z3, f->ranges, index)
                                                        : NULL;
}

/* Broadcast sizes and indices, where the assumptions say which. */
static Z3_ast change_size(void *context, Z3_ast term)
{
    finder *f = context;
    graft_sym *s = f->s;
    bool at = graft_sym_is_app(s, term, s->at);
    if (!at && !graft_sym_is_app(s, term, s->wide)) {
        return term;
    }
    Z3_ast a = least_equal(f, graft_sym_arg(s, term, 0));
    Z3_ast b = graft_sym_arg(s, term, 1);
    if (!at) {
        b = least_equal(f, b);
        return a == b || graft_sym_is_number(s, b, 1) ? a
               : graft_sym_is_number(s, a, 1)         ? b
               : Z3_get_ast_id(f->z3, a) < Z3_get_ast_id(f->z3, b)
                   ? Z3_mk_app(f->z3, s->wide, 2, (Z3_ast[]){a, b})
                   : Z3_mk_app(f->z3, s->wide, 2, (Z3_ast[]){b, a});
    }
    if (graft_sym_is_number(s, a, 1) || graft_sym_is_number(s, b, 0)) {
        return graft_sym_int(s, 0);
    }
    while (graft_sym_is_app(s, b, s->at) && graft_sym_is_wide_of(s, graft_sym_arg(s, b, 0), a)) {
        b = graft_sym_arg(s, b, 1);
    }
    return range_of(f, b) == a ? b : Z3_mk_app(f->z3, s->at, 2, (Z3_ast[]){a, b});
}

/* A term written out, in which broadcasting is decided as far as it can be. */
static Z3_ast tidy(finder *f, Z3_ast term)
{
    return graft_sym_rebuild(f->s, graft_sym_plain_expand(f->s, term), change_size, f);
}

static Z3_ast tidy_size(finder *f, Z3_ast size) { return least_equal(f, tidy(f, size)); }

/* A constant that stands for an index within the range of a fold. */
static Z3_ast index_within(finder *f, Z3_ast fold)
{
    Z3_ast index = graft_lemmas_index(f->l);
    Z3_ast_map_insert(f->z3, f->ranges, index, tidy_size(f, size_of(f, fold)));
    return index;
}

/* The body of a fold there. */
static Z3_ast body_at(finder *f, Z3_ast fold, Z3_ast index)
{
    return tidy(f, graft_lemmas_body(f->l, fold, index));
}

/* --------------------------------------------------------- sums of products */

static void list_items(finder *f, Z3_ast term, Z3_ast index, item_list *list);

static bool add_factor(item *to, Z3_ast factor)
{
    if (to->count == FACTORS_MOST) {
        return false;
    }
    to->factors[to->count++] = factor;
    return true;
}

static bool add_guard(item *to, Z3_ast guard)
{
    if (to->guard_count == FACTORS_MOST) {
        return false;
    }
    to->guards[to->guard_count++] = guard;
    return true;
}

static bool multiply(const finder *f, const item *a, const item *b, item *result)
{
    bool fits = true;
    *result = *a;
    result->outside = times(f, a->outside, b->outside);
    for (uint32_t i = 0; i < b->count; i++) {
        fits = fits && add_factor(result, b->factors[i]);
    }
    for (uint32_t i = 0; i < b->guard_count; i++) {
        fits = fits && add_guard(result, b->guards[i]);
    }
    return fits;
}

static void list_products(finder *f, Z3_ast term, Z3_ast index, item_list *list)
{
    item_list all = {.count = 1};
    for (uint32_t i = 0; i < graft_sym_arity(f->s, term) && !list->full; i++) {
        item_list parts = {.count = 0};
        item_list next = {.count = 0};
        list_items(f, graft_sym_arg(f->s, term, i), index, &parts);
        list->full = list->full || parts.full || all.count * parts.count > ITEMS_MOST;
        for (uint32_t a = 0; a < all.count && !list->full; a++) {
            for (uint32_t b = 0; b < parts.count; b++) {
                list->full =
                    !multiply(f, &all.items[a], &parts.items[b], &next.items[next.count++]) ||
                    list->full;
            }
        }
        all = next;
    }
    list->full = list->full || list->count + all.count > ITEMS_MOST;
    for (uint32_t i = 0; i < all.count && !list->full; i++) {
        list->items[list->count++] = all.items[i];
    }
}

/* The items of a term, each where a condition holds. */
static void list_guarded(finder *f, Z3_ast term, Z3_ast index, Z3_ast guard, item_list *list)
{
    uint32_t first = list->count;
    bool bound = graft_sym_mentions(f->s, guard, 1, &index);
    list_items(f, term, index, list);
    for (uint32_t i = first; i < list->count; i++) {
        item *at = &list->items[i];
        if (bound) {
            list->full = !add_guard(at, guard) || list->full;
        } else {
            Z3_ast one = at->outside == NULL ? f->s->term.one : at->outside;
            at->outside = Z3_mk_ite(f->z3, guard, one, f->s->term.zero);
        }
    }
}

static void list_conditional(finder *f, Z3_ast term, Z3_ast index, item_list *list)
{
    Z3_ast guard = graft_sym_arg(f->s, term, 0);
    Z3_ast yes = graft_sym_arg(f->s, term, 1);
    Z3_ast no = graft_sym_arg(f->s, term, 2);
    if (yes != f->s->term.zero) {
        list_guarded(f, yes, index, guard, list);
    }
    if (no != f->s->term.zero) {
        list_guarded(f, no, index, Z3_mk_not(f->z3, guard), list);
    }
}

/* exp(a + b): the factors exp(a), exp(b) where only one has the index. */
static bool split_exp(finder *f, Z3_ast term, Z3_ast index, item *to)
{
    Z3_ast parts[2] = {NULL, NULL};
    Z3_func_decl exp = f->s->term.functions[GRAFT_TERM_EXP];
    if (!graft_sym_is_app(f->s, term, exp)) {
        return false;
    }
    Z3_ast sum = graft_sym_arg(f->s, term, 0);
    Z3_decl_kind kind = graft_sym_kind(f->s, sum);
    if (kind != Z3_OP_ADD && kind != Z3_OP_SUB) {
        return false;
    }
    for (uint32_t i = 0; i < graft_sym_arity(f->s, sum); i++) {
        Z3_ast part = graft_sym_arg(f->s, sum, i);
        Z3_ast *side = &parts[graft_sym_mentions(f->s, part, 1, &index) ? 1 : 0];
        part = kind == Z3_OP_SUB && i > 0 ? Z3_mk_unary_minus(f->z3, part) : part;
        *side = *side == NULL ? part : Z3_mk_add(f->z3, 2, (Z3_ast[]){*side, part});
    }
    if (parts[0] == NULL || parts[1] == NULL) {
        return false;
    }
    to->outside = Z3_mk_app(f->z3, exp, 1, &parts[0]);
    return add_factor(to, Z3_mk_app(f->z3, exp, 1, &parts[1]));
}

static void list_item(finder *f, Z3_ast term, Z3_ast index, item_list *list)
{
    item *to = &list->items[list->count];
    list->full = list->full || list->count == ITEMS_MOST;
    if (list->full) {
        return;
    }
    list->count++;
    *to = (item){.count = 0};
    if (!graft_sym_mentions(f->s, term, 1, &index)) {
        to->outside = term;
    } else if (!split_exp(f, term, index, to)) {
        (void)add_factor(to, term);
    }
}

static void list_items(finder *f, Z3_ast term, Z3_ast index, item_list *list)
{
    uint32_t arity = graft_sym_arity(f->s, term);
    Z3_decl_kind kind = graft_sym_kind(f->s, term);
    bool bound = graft_sym_mentions(f->s, term, 1, &index);
    if (list->full) {
        return;
    }
    if (bound && (kind == Z3_OP_ADD || kind == Z3_OP_SUB || kind == Z3_OP_UMINUS)) {
        for (uint32_t i = 0; i < arity; i++) {
            uint32_t first = list->count;
            list_items(f, graft_sym_arg(f->s, term, i), index, list);
            bool minus = kind == Z3_OP_UMINUS || (kind == Z3_OP_SUB && i > 0);
            for (uint32_t k = first; k < list->count && minus; k++) {
                Z3_ast *outside = &list->items[k].outside;
                Z3_ast one = *outside == NULL ? f->s->term.one : *outside;
                *outside = Z3_mk_unary_minus(f->z3, one);
            }
        }
    } else if (bound && kind == Z3_OP_MUL) {
        list_products(f, term, index, list);
    } else if (bound && kind == Z3_OP_ITE &&
               !graft_sym_is_real(f->s, graft_sym_arg(f->s, term, 0)) &&
               (graft_sym_arg(f->s, term, 1) == f->s->term.zero ||
                graft_sym_arg(f->s, term, 2) == f->s->term.zero)) {
        list_conditional(f, term, index, list);
    } else {
        list_item(f, term, index, list);
    }
}

static void sort_terms(const finder *f, Z3_ast *terms, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        Z3_ast term = terms[i];
        uint32_t k = i;
        for (; k > 0 && Z3_get_ast_id(f->z3, terms[k - 1]) > Z3_get_ast_id(f->z3, term); k--) {
            terms[k] = terms[k - 1];
        }
        terms[k] = term;
    }
}

static Z3_ast guard_term(const finder *f, const item *a, Z3_ast term)
{
    for (uint32_t i = 0; i < a->guard_count; i++) {
        term = Z3_mk_ite(f->z3, a->guards[i], term, f->s->term.zero);
    }
    return term;
}

static Z3_ast product_of(const finder *f, const item *a)
{
    Z3_ast product = NULL;
    for (uint32_t i = 0; i < a->count; i++) {
        product = times(f, product, a->factors[i]);
    }
    return product == NULL ? f->s->term.one : product;
}

/* ---------------------------------------------------------------- sums within */

/* The product of an item's factors as one term: a sum among them gets the others innermost. */
static Z3_ast nest_item(finder *f, const item *a, uint32_t depth)
{
    uint32_t which = 0;
    while (which < a->count && !is_sum(f, a->factors[which])) {
        which++;
    }
    item rest = *a;
    if (which == a->count || (a->count == 1 && a->guard_count == 0) || depth > DEPTH_MOST) {
        sort_terms(f, rest.factors, rest.count);
        sort_terms(f, rest.guards, rest.guard_count);
        return guard_term(f, &rest, product_of(f, &rest));
    }
    Z3_ast inner = a->factors[which];
    Z3_ast index = index_within(f, inner);
    rest.factors[which] = rest.factors[--rest.count];
    item body = rest;
    item_list parts = {.count = 0};
    Z3_ast inner_body = body_at(f, inner, index);
    list_items(f, inner_body, index, &parts);
    if (parts.full || parts.count != 1 || parts.items[0].outside != NULL ||
        !multiply(f, &rest, &parts.items[0], &body)) {
        body = rest;
        (void)add_factor(&body, inner_body);
    }
    Z3_ast nested =
        make_sum(f, index, tidy_size(f, size_of(f, inner)), nest_item(f, &body, depth + 1));
    Z3_ast factor = guard_term(f, &rest, product_of(f, &rest));
    graft_lemma_linear(f->l, nested, index, 1, &factor, &inner);
    (void)graft_lemmas_body(f->l, nested, index);
    return nested;
}

/* A sum of sums with the ranges in the order of their sizes. */
static Z3_ast order_ranges(finder *f, Z3_ast fold)
{
    Z3_ast r = index_within(f, fold);
    Z3_ast inner = graft_sym_plain_at(f->s, fold, r, false);
    if (!is_sum(f, inner) || graft_sym_mentions(f->s, size_of(f, inner), 1, &r) ||
        Z3_get_ast_id(f->z3, tidy_size(f, size_of(f, inner))) >=
            Z3_get_ast_id(f->z3, tidy_size(f, size_of(f, fold)))) {
        return fold;
    }
    Z3_ast q = index_within(f, inner);
    Z3_ast body = graft_sym_plain_at(f->s, inner, q, false);
    Z3_ast across = make_sum(f, r, size_of(f, fold), body);
    Z3_ast exchanged = make_sum(f, q, size_of(f, inner), across);
    graft_lemma_exchange(f->l, fold, exchanged);
    return exchanged;
}

/* ------------------------------------------------------------ taking apart */

static Z3_ast take_apart(finder *f, Z3_ast term, uint32_t depth);

static Z3_ast sum_items(finder *f, Z3_ast fold, Z3_ast index, const item_list *list, uint32_t depth)
{
    Z3_ast factors[ITEMS_MOST];
    Z3_ast folds[ITEMS_MOST];
    Z3_ast result = f->s->term.zero;
    Z3_ast size = tidy_size(f, size_of(f, fold));
    for (uint32_t i = 0; i < list->count; i++) {
        factors[i] = list->items[i].outside;
        folds[i] = make_sum(f, index, size, nest_item(f, &list->items[i], depth));
    }
    if (list->count != 1 || factors[0] != NULL || folds[0] != fold) {
        graft_lemma_linear(f->l, fold, index, list->count, factors, folds);
    }
    for (uint32_t i = 0; i < list->count; i++) {
        bool counts = list->items[i].count == 0 && list->items[i].guard_count == 0;
        Z3_ast part = counts ? folds[i] : order_ranges(f, folds[i]);
        if (counts) {
            graft_lemma_count(f->l, part);
        }
        part = times(f, factors[i], part);
        result = i == 0 ? part : Z3_mk_add(f->z3, 2, (Z3_ast[]){result, part});
    }
    return result;
}

/* Whether there is nothing to take apart: one product in which no sum is to go innermost. */
static bool is_product(const finder *f, const item_list *list)
{
    const item *a = &list->items[0];
    bool single = list->count == 1 && a->outside == NULL && a->count > 0;
    for (uint32_t i = 0; single && i < a->count; i++) {
        single = !is_sum(f, a->factors[i]) || (a->count == 1 && a->guard_count == 0);
    }
    return single;
}

static Z3_ast take_sum_apart(finder *f, Z3_ast fold, uint32_t depth)
{
    item_list *list = GRAFT_NEW(f->s->arena, item_list, 1);
    if (graft_sym_is_number(f->s, tidy_size(f, size_of(f, fold)), 1)) {
        graft_lemma_one(f->l, fold);
        return take_apart(f, body_at(f, fold, graft_sym_int(f->s, 0)), depth + 1);
    }
    Z3_ast index = index_within(f, fold);
    Z3_ast plain = body_at(f, fold, index);
    Z3_ast body = take_apart(f, plain, depth + 1);
    *list = (item_list){.count = 0};
    list_items(f, body, index, list);
    if (list->full || (body == plain && is_product(f, list))) {
        return order_ranges(f, fold);
    }
    return sum_items(f, fold, index, list, depth);
}

/* A ground term, written out, with its sums taken apart. */
static Z3_ast take_apart(finder *f, Z3_ast term, uint32_t depth)
{
    fold_list folds = {.count = 0};
    Z3_ast to[FOLDS_MOST];
    list_folds(f, term, &folds);
    for (uint32_t i = 0; i < folds.count; i++) {
        Z3_ast fold = folds.folds[i];
        to[i] = fold;
        if (is_max(f, fold)) {
            continue;
        }
        if (Z3_ast_map_contains(f->z3, f->known, fold)) {
            to[i] = Z3_ast_map_find(f->z3, f->known, fold);
        } else if (depth <= DEPTH_MOST) {
            to[i] = take_sum_apart(f, fold, depth);
            Z3_ast_map_insert(f->z3, f->known, fold, to[i]);
        }
    }
    return folds.count == 0 ? term : Z3_substitute(f->z3, term, folds.count, folds.folds, to);
}

/* ----------------------------------------------------------------- splitting */

typedef struct {
    finder *f;
    Z3_ast index;
    Z3_ast found[BREAKS_MOST];
    uint32_t count;
} break_search;

/* Where index <= right, or index < right: what it is compared with. */
static void note_break(break_search *b, Z3_ast left, Z3_ast right, int offset)
{
    finder *f = b->f;
    Z3_ast rest = Z3_simplify(f->z3, Z3_mk_sub(f->z3, 2, (Z3_ast[]){left, b->index}));
    if (graft_sym_mentions(f->s, rest, 1, &b->index) ||
        graft_sym_mentions(f->s, right, 1, &b->index)) {
        return;
    }
    Z3_ast parts[3] = {right, graft_sym_int(f->s, offset), Z3_mk_unary_minus(f->z3, rest)};
    Z3_ast at = least_equal(f, Z3_simplify(f->z3, Z3_mk_add(f->z3, 3, parts)));
    bool known = (Z3_is_numeral_ast(f->z3, at) && graft_sym_is_number(f->s, at, 0)) ||
                 graft_sym_mentions(f->s, at, f->l->symbol_count, f->l->symbols);
    for (uint32_t i = 0; i < b->count; i++) {
        known = known || b->found[i] == at;
    }
    if (!known && b->count < BREAKS_MOST) {
        b->found[b->count++] = at;
    }
}

static bool visit_break(void *context, Z3_ast term)
{
    break_search *b = context;
    finder *f = b->f;
    Z3_decl_kind kind = graft_sym_kind(f->s, term);
    bool order = kind == Z3_OP_LE || kind == Z3_OP_LT || kind == Z3_OP_GE || kind == Z3_OP_GT;
    if (order && Z3_get_sort(f->z3, graft_sym_arg(f->s, term, 0)) == f->s->integer) {
        Z3_ast left = graft_sym_arg(f->s, term, 0);
        Z3_ast right = graft_sym_arg(f->s, term, 1);
        bool mirrored = kind == Z3_OP_GE || kind == Z3_OP_GT;
        bool strict = kind == Z3_OP_LT || kind == Z3_OP_GT;
        note_break(b, mirrored ? right : left, mirrored ? left : right, strict ? 0 : 1);
        note_break(b, mirrored ? left : right, mirrored ? right : left, strict ? 1 : 0);
        return false;
    }
    return true;
}

/* Of a body, and of those of the sums in it. */
static void list_breaks(break_search *b, Z3_ast body, uint32_t depth)
{
    fold_list folds = {.count = 0};
    graft_sym_walk(b->f->s, body, visit_break, b);
    list_folds(b->f, body, &folds);
    for (uint32_t i = 0; i < folds.count && depth < DEPTH_MOST; i++) {
        Z3_ast inner =
            graft_sym_plain_at(b->f->s, folds.folds[i], graft_sym_symbol(b->f->s, "inner"), false);
        list_breaks(b, graft_sym_plain_expand(b->f->s, inner), depth + 1);
    }
}

/* Splits a sum where its body's conditions change; the parts are added to a list. */
static void split_sum(finder *f, Z3_ast fold, const Z3_ast *breaks, uint32_t count,
                      fold_list *parts)
{
    if (count == 0) {
        Z3_ast at = index_within(f, fold);
        (void)graft_lemmas_body(f->l, fold, at);
        graft_lemma_linear(f->l, fold, at, 0, NULL, NULL);
        add_fold(parts, fold);
        return;
    }
    Z3_ast args[GRAFT_SYM_PARAMS_MOST + 1];
    Z3_ast later[BREAKS_MOST];
    Z3_ast m = breaks[0];
    Z3_ast index = graft_lemmas_index(f->l);
    Z3_ast moved = Z3_mk_add(f->z3, 2, (Z3_ast[]){index, m});
    Z3_ast left = Z3_simplify(f->z3, Z3_mk_sub(f->z3, 2, (Z3_ast[]){size_of(f, fold), m}));
    Z3_ast high = make_sum(f, index, left, graft_sym_plain_at(f->s, fold, moved, false));
    uint32_t arity = graft_sym_arity(f->s, fold);
    for (uint32_t i = 0; i < arity; i++) {
        args[i] = i == 0 ? m : graft_sym_arg(f->s, fold, i);
    }
    Z3_ast low = Z3_mk_app(f->z3, Z3_get_app_decl(f->z3, Z3_to_app(f->z3, fold)), arity, args);
    graft_lemma_split(f->l, fold, low, high);
    for (uint32_t i = 1; i < count; i++) {
        later[i] = Z3_simplify(f->z3, Z3_mk_sub(f->z3, 2, (Z3_ast[]){breaks[i], m}));
    }
    split_sum(f, low, NULL, 0, parts);
    split_sum(f, high, &later[1], count - 1, parts);
}

/* The parts of a sum; itself when it is not to be split. */
static const fold_list *list_parts(finder *f, Z3_ast fold)
{
    for (uint32_t i = 0; i < f->split_count; i++) {
        if (f->splits[i].fold == fold) {
            return &f->splits[i].parts;
        }
    }
    f->splits = graft_arena_grow(f->l->arena, f->splits, f->split_count, &f->split_capacity,
                                 FOLDS_MOST, sizeof *f->splits);
    fold_list *parts = &f->splits[f->split_count].parts;
    f->splits[f->split_count++] = (split){.fold = fold};
    break_search b = {.f = f, .index = index_within(f, fold)};
    list_breaks(&b, tidy(f, graft_sym_plain_at(f->s, fold, b.index, false)), 0);
    if (b.count == 0) {
        add_fold(parts, fold);
    } else {
        split_sum(f, fold, b.found, b.count, parts);
    }
    return parts;
}

/* ------------------------------------------------------------------- pairing */

typedef struct {
    const finder *f;
    uint32_t bits;
    uint32_t depth;
} reading_search;

static bool visit_reading(void *context, Z3_ast term)
{
    reading_search *r = context;
    for (uint32_t v = 0; v < GRAFT_RULE_MAX_VARS; v++) {
        bool reads =
            r->f->s->elements[v] != NULL && graft_sym_is_app(r->f->s, term, r->f->s->elements[v]);
        r->bits |= reads ? 1u << v : 0;
    }
    if ((is_sum(r->f, term) || is_max(r->f, term)) && r->depth < DEPTH_MOST) {
        Z3_ast body = graft_sym_plain_at(r->f->s, term, graft_sym_plain_of(r->f->s)->binder, false);
        r->depth++;
        graft_sym_walk(r->f->s, graft_sym_plain_expand(r->f->s, body), visit_reading, r);
        r->depth--;
    }
    return true;
}

/* The variables that a fold reads, as bits. */
static uint32_t reads(const finder *f, Z3_ast fold)
{
    reading_search r = {.f = f};
    (void)visit_reading(&r, fold);
    return r.bits;
}

static bool are_alike(const finder *f, Z3_ast a, Z3_ast b)
{
    uint32_t x = reads(f, a);
    uint32_t y = reads(f, b);
    return a != b && is_sum(f, a) == is_sum(f, b) && ((x & y) == x || (x & y) == y);
}

static void pair(finder *f, Z3_ast a, Z3_ast b, uint32_t depth);

static void pair_inner(finder *f, Z3_ast body_a, Z3_ast body_b, uint32_t depth)
{
    fold_list inner_a = {.count = 0};
    fold_list inner_b = {.count = 0};
    list_folds(f, body_a, &inner_a);
    list_folds(f, body_b, &inner_b);
    for (uint32_t i = 0; i < inner_a.count; i++) {
        for (uint32_t k = 0; k < inner_b.count; k++) {
            if (are_alike(f, inner_a.folds[i], inner_b.folds[k])) {
                pair(f, inner_a.folds[i], inner_b.folds[k], depth + 1);
            }
        }
    }
}

/* The larger attains at some index a value that the other one is not below, and the other way. */
static void pair_maxima(finder *f, Z3_ast a, Z3_ast b, uint32_t depth)
{
    const Z3_ast both[2] = {a, b};
    for (uint32_t i = 0; i < 2; i++) {
        Z3_ast at = graft_lemma_attained(f->l, both[i]);
        graft_lemma_bound(f->l, both[1 - i], at);
        Z3_ast own = graft_lemmas_body(f->l, both[i], at);
        pair_inner(f, own, graft_lemmas_body(f->l, both[1 - i], at), depth);
    }
}

/* Two sums are equal if they have equal bodies. */
static void link_sums(finder *f, Z3_ast a, Z3_ast b, uint32_t depth)
{
    Z3_ast index = index_within(f, a);
    Z3_ast body_a = graft_lemmas_body(f->l, a, index);
    Z3_ast body_b = graft_lemmas_body(f->l, b, index);
    graft_lemma_linear(f->l, a, index, 1, NULL, &b);
    pair_inner(f, body_a, body_b, depth);
}

/* Of two sums of the same case, the parts are, of two maxima, they themselves. */
static void pair(finder *f, Z3_ast a, Z3_ast b, uint32_t depth)
{
    Z3_ast key = Z3_mk_eq(f->z3, a, b);
    if (depth > DEPTH_MOST || f->pairs >= PAIRS_MOST ||
        Z3_ast_map_contains(f->z3, f->paired, key)) {
        return;
    }
    Z3_ast_map_insert(f->z3, f->paired, key, key);
    f->pairs++;
    if (is_max(f, a)) {
        pair_maxima(f, a, b, depth);
        return;
    }
    fold_list parts[2] = {*list_parts(f, a), *list_parts(f, b)}; /* Copies: the list may move. */
    for (uint32_t i = 0; i < parts[0].count; i++) {
        for (uint32_t k = 0; k < parts[1].count; k++) {
            if (parts[0].folds[i] != parts[1].folds[k]) {
                link_sums(f, parts[0].folds[i], parts[1].folds[k], depth);
            }
        }
    }
}

/* Without a guard a maximum has something at 0, and so have the maxima within. */
static void note_maximum(finder *f, Z3_ast fold, uint32_t depth)
{
    fold_list inner = {.count = 0};
    Z3_ast first = graft_sym_int(f->s, 0);
    graft_lemma_bound(f->l, fold, first);
    list_folds(f, graft_lemmas_body(f->l, fold, first), &inner);
    for (uint32_t i = 0; i < inner.count && depth < DEPTH_MOST; i++) {
        if (is_max(f, inner.folds[i])) {
            note_maximum(f, inner.folds[i], depth + 1);
        }
    }
}

static void find(finder *f, uint32_t count, const Z3_ast *terms)
{
    fold_list atoms = {.count = 0};
    for (uint32_t i = 0; i < f->l->size_count; i++) {
        Z3_ast_map_insert(f->z3, f->ranges, f->l->symbols[i], tidy_size(f, f->l->sizes[i]));
    }
    for (uint32_t i = 0; i < count; i++) {
        list_folds(f, take_apart(f, tidy(f, terms[i]), 0), &atoms);
    }
    for (uint32_t i = 0; i < atoms.count; i++) {
        Z3_ast fold = atoms.folds[i];
        if (is_max(f, fold)) {
            note_maximum(f, fold, 0);
        } else if (f->l->signs) {
            graft_lemma_sign(f->l, fold);
        }
        for (uint32_t k = 0; k < i; k++) {
            if (are_alike(f, atoms.folds[k], fold)) {
                pair(f, atoms.folds[k], fold, 0);
            }
        }
    }
}

void graft_lemmas_find(graft_lemmas *l, uint32_t count, const Z3_ast *terms)
{
    graft_mark mark = graft_arena_mark(l->s->arena);
    finder *f = GRAFT_NEW(l->s->arena, finder, 1);
    *f = (finder){.l = l, .s = l->s, .z3 = l->s->z3};
    f->known = graft_term_map(f->z3);
    f->paired = graft_term_map(f->z3);
    open_sizes(f);
    find(f, count, terms);
    close_sizes(f);
    Z3_ast_map_dec_ref(f->z3, f->known);
    Z3_ast_map_dec_ref(f->z3, f->paired);
    graft_arena_release(l->s->arena, mark);
}

/* symterm.c - see symterm.h. */
#include "verify/core/symterm.h"

#include "verify/core/hints.h"
#include "verify/core/readings.h"
#include "verify/core/symassume.h"
#include "verify/core/symfold.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

_Static_assert(GRAFT_SYM_BINDERS >= GRAFT_MAX_RANK, "an operator has a binder for each axis");
_Static_assert(GRAFT_SYM_BINDERS <= 32, "sets of binders are bits");

/* --------------------------------------------------------------- structure */

bool graft_sym_is_symbol(const graft_sym *s, Z3_ast term)
{
    return graft_sym_arity(s, term) == 0 && graft_sym_kind(s, term) == Z3_OP_UNINTERPRETED;
}

bool graft_sym_is_element(const graft_sym *s, Z3_ast term)
{
    bool is = false;
    for (uint32_t v = 0; v < GRAFT_RULE_MAX_VARS && !is; v++) {
        is = s->elements[v] != NULL && graft_sym_is_app(s, term, s->elements[v]);
    }
    return is;
}

bool graft_sym_mentions(const graft_sym *s, Z3_ast term, uint32_t count, const Z3_ast *symbols)
{
    Z3_ast others[GRAFT_SYM_BINDERS];
    assert(count <= GRAFT_SYM_BINDERS);
    for (uint32_t i = 0; i < count; i++) {
        Z3_sort sort = Z3_get_sort(s->z3, symbols[i]);
        others[i] = graft_term_constant(s->z3, sort, "other");
    }
    return count > 0 && Z3_substitute(s->z3, term, count, symbols, others) != term;
}

typedef struct {
    const graft_sym *s;
    graft_sym_test test;
    const void *context;
    bool inside;
    Z3_ast found;
} search;

static bool visit_tested(void *context, Z3_ast term)
{
    search *c = context;
    if (c->found == NULL && c->test(c->s, term, c->context)) {
        c->found = term;
    }
    return c->found == NULL &&
           (c->inside || !(graft_sym_is_element(c->s, term) ||
                           graft_sym_fold_kind(c->s, term) != GRAFT_SYM_FOLD_COUNT));
}

Z3_ast graft_sym_find(const graft_sym *s, Z3_ast term, bool inside, graft_sym_test test,
                      const void *context)
{
    search c = {.s = s, .test = test, .context = context, .inside = inside};
    graft_sym_walk(s, term, visit_tested, &c);
    return c.found;
}

static bool is_of_real(const graft_sym *s, Z3_ast term, const void *context)
{
    (void)context;
    return Z3_get_sort(s->z3, term) == s->term.real;
}

bool graft_sym_is_real(const graft_sym *s, Z3_ast term)
{
    return graft_sym_find(s, term, true, is_of_real, NULL) != NULL;
}

/* ---------------------------------------------------------------- integers */

Z3_ast graft_sym_simplify(const graft_sym *s, Z3_ast term)
{
    if (Z3_get_ast_kind(s->z3, term) != Z3_APP_AST || graft_sym_arity(s, term) == 0) {
        return term;
    }
    if (s->plain != NULL) {
        return s->plain->numeral(s, term);
    }
    if (Z3_ast_map_contains(s->z3, s->simplified, term)) {
        return Z3_ast_map_find(s->z3, s->simplified, term);
    }
    Z3_ast simple = Z3_simplify_ex(s->z3, term, s->som);
    Z3_ast_map_insert(s->z3, s->simplified, term, simple);
    return simple;
}

Z3_ast graft_sym_int(const graft_sym *s, int64_t value)
{
    return Z3_mk_int64(s->z3, value, s->integer);
}

Z3_ast graft_sym_add(const graft_sym *s, Z3_ast a, Z3_ast b)
{
    return graft_sym_simplify(s, Z3_mk_add(s->z3, 2, (Z3_ast[]){a, b}));
}

Z3_ast graft_sym_sub(const graft_sym *s, Z3_ast a, Z3_ast b)
{
    return graft_sym_simplify(s, Z3_mk_sub(s->z3, 2, (Z3_ast[]){a, b}));
}

Z3_ast graft_sym_mul(const graft_sym *s, Z3_ast a, Z3_ast b)
{
    return graft_sym_simplify(s, Z3_mk_mul(s->z3, 2, (Z3_ast[]){a, b}));
}

Z3_ast graft_sym_fresh(graft_sym *s)
{
    return graft_term_constant(s->z3, s->integer, "r%" PRIu32, s->fresh++);
}

Z3_ast graft_sym_unknown(const graft_sym *s, char kind, uint32_t i)
{
    return graft_term_constant(s->z3, s->term.real, "%c%" PRIu32, kind, i);
}

bool graft_sym_is_number(const graft_sym *s, Z3_ast term, int64_t value)
{
    int64_t number = 0;
    return Z3_is_numeral_ast(s->z3, term) && Z3_get_numeral_int64(s->z3, term, &number) &&
           number == value;
}

Z3_ast graft_sym_in_range(const graft_sym *s, Z3_ast i, Z3_ast size)
{
    Z3_ast parts[2] = {Z3_mk_le(s->z3, graft_sym_int(s, 0), i), Z3_mk_lt(s->z3, i, size)};
    return Z3_mk_and(s->z3, 2, parts);
}

/* ------------------------------------------------------------ broadcasting */

/* Whether `part` is among the sizes that `size` is broadcast from, or is it. */
static bool is_wide_of(const graft_sym *s, Z3_ast size, Z3_ast part)
{
    return size == part ||
           (graft_sym_is_app(s, size, s->wide) && (is_wide_of(s, graft_sym_arg(s, size, 0), part) ||
                                                   is_wide_of(s, graft_sym_arg(s, size, 1), part)));
}

Z3_ast graft_sym_at(const graft_sym *s, Z3_ast size, Z3_ast index)
{
    if (s->plain != NULL) {
        return Z3_mk_app(s->z3, s->at, 2, (Z3_ast[]){size, index});
    }
    if (graft_sym_is_number(s, size, 1)) {
        return graft_sym_int(s, 0);
    }
    while (graft_sym_is_app(s, index, s->at) && is_wide_of(s, graft_sym_arg(s, index, 0), size)) {
        index = graft_sym_arg(s, index, 1);
    }
    bool whole = Z3_is_numeral_ast(s->z3, size) || graft_sym_is_number(s, index, 0);
    return whole ? index : Z3_mk_app(s->z3, s->at, 2, (Z3_ast[]){size, index});
}

Z3_ast graft_sym_wide(const graft_sym *s, Z3_ast a, Z3_ast b)
{
    if (s->plain == NULL && (graft_sym_is_number(s, a, 1) || a == b)) {
        return b;
    }
    if (s->plain == NULL && (graft_sym_is_number(s, b, 1) || Z3_is_numeral_ast(s->z3, a))) {
        return a;
    }
    return s->plain == NULL && Z3_is_numeral_ast(s->z3, b)
               ? b
               : Z3_mk_app(s->z3, s->wide, 2, (Z3_ast[]){a, b});
}

Z3_ast graft_sym_slack(const graft_sym *s, Z3_ast comparison)
{
    const bool opposite = graft_sym_kind(s, comparison) == Z3_OP_NOT;
    Z3_ast order = opposite ? graft_sym_arg(s, comparison, 0) : comparison;
    const Z3_decl_kind kind = graft_sym_kind(s, order);
    const bool up = kind == Z3_OP_LE || kind == Z3_OP_LT;
    const bool strict = kind == Z3_OP_LT || kind == Z3_OP_GT;
    if ((!up && kind != Z3_OP_GE && kind != Z3_OP_GT) ||
        Z3_get_sort(s->z3, graft_sym_arg(s, order, 0)) != s->integer) {
        return NULL;
    }
    Z3_ast low = graft_sym_arg(s, order, up != opposite ? 0 : 1);
    Z3_ast high = graft_sym_arg(s, order, up != opposite ? 1 : 0);
    Z3_ast slack = graft_sym_sub(s, high, low);
    return strict != opposite ? graft_sym_sub(s, slack, graft_sym_int(s, 1)) : slack;
}

Z3_ast graft_sym_multiples(const graft_sym *s, Z3_ast x, Z3_ast n)
{
    bool asks = s->hints != NULL && s->plain == NULL;
    Z3_ast y = asks ? s->hints->multiples(s, x, n) : NULL;
    bool whole = y != NULL && Z3_get_sort(s->z3, y) == s->integer; /* Z3 would round others. */
    return whole && !graft_sym_is_bound(s, y) ? y : graft_sym_int(s, 0);
}

Z3_ast graft_sym_quotient(const graft_sym *s, Z3_ast x, Z3_ast n)
{
    if (graft_sym_is_app(s, x, s->at) && s->plain == NULL) {
        Z3_ast quotient = graft_sym_quotient(s, graft_sym_arg(s, x, 1), n);
        return graft_sym_at(s, graft_sym_arg(s, x, 0), quotient);
    }
    Z3_ast y = graft_sym_multiples(s, x, n);
    Z3_ast rest = graft_sym_is_number(s, y, 0) ? x : graft_sym_sub(s, x, graft_sym_mul(s, y, n));
    Z3_ast quotient = Z3_mk_app(s->z3, s->quotient, 2, (Z3_ast[]){rest, n});
    if (s->plain != NULL) {
        return quotient;
    }
    if (graft_sym_is_app(s, rest, s->quotient)) {
        n = graft_sym_mul(s, graft_sym_arg(s, rest, 1), n);
        quotient = graft_sym_quotient(s, graft_sym_arg(s, rest, 0), n);
    }
    bool whole = graft_sym_is_number(s, rest, 0) || graft_sym_is_number(s, n, 1);
    return graft_sym_add(s, y, whole ? rest : quotient);
}

/* The number of axes of a place or, with `part`, of the place that a term is that part of; 0 for
 * other terms. */
static uint32_t count_axes(const graft_sym *s, Z3_ast term, const uint32_t *part)
{
    uint32_t arity = graft_sym_arity(s, term);
    uint32_t n = part == NULL ? arity / 2 : arity - 1;
    bool fits = arity > 0 && n >= 1 && n <= GRAFT_MAX_RANK && (part == NULL || *part < n);
    return fits && graft_sym_is_app(s, term, part == NULL ? s->place[n] : s->part[n][*part]) ? n
                                                                                             : 0;
}

static bool have_sizes(const graft_sym *s, Z3_ast place, Z3_ast part, uint32_t n)
{
    bool same = true;
    for (uint32_t i = 0; i < n && same; i++) {
        same = graft_sym_arg(s, place, n + i) == graft_sym_arg(s, part, 1 + i);
    }
    return same;
}

/* A place whose index is the parts of another place in the same sizes is that place, else the term. */
static Z3_ast whole_of_place(const graft_sym *s, Z3_ast place)
{
    uint32_t n = count_axes(s, place, NULL);
    Z3_ast whole = NULL;
    for (uint32_t i = 0; i < n; i++) {
        Z3_ast part = graft_sym_arg(s, place, i);
        if (count_axes(s, part, &i) != n || !have_sizes(s, place, part, n) ||
            (i > 0 && graft_sym_arg(s, part, 0) != whole)) {
            return place;
        }
        whole = graft_sym_arg(s, part, 0);
    }
    return n > 0 ? whole : place;
}

uint32_t graft_sym_part_axes(const graft_sym *s, Z3_ast term)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i + 1 < graft_sym_arity(s, term) && n == 0; i++) {
        n = count_axes(s, term, &i);
    }
    return n;
}

Z3_ast graft_sym_divisor(const graft_sym *s, Z3_ast term)
{
    const uint32_t first = 0;
    const bool quotient = graft_sym_is_app(s, term, s->quotient);
    if (!quotient && count_axes(s, term, &first) == 0) {
        return NULL;
    }
    Z3_ast n = graft_sym_int(s, 1);
    for (uint32_t i = quotient ? 1 : 2; i < graft_sym_arity(s, term); i++) {
        n = graft_sym_mul(s, n, graft_sym_arg(s, term, i));
    }
    return n;
}

/* Part i of a place y n, n being the last of its sizes, is 0, or that of y in the other sizes; else
 * the term. */
static Z3_ast part_of_multiple(const graft_sym *s, Z3_ast part, uint32_t i, uint32_t count)
{
    Z3_ast args[1 + GRAFT_MAX_RANK];
    Z3_ast n = graft_sym_arg(s, part, count);
    Z3_ast place = graft_sym_arg(s, part, 0);
    Z3_ast y = graft_sym_multiples(s, place, n);
    Z3_ast rest = graft_sym_sub(s, place, graft_sym_mul(s, y, n));
    if (count < 2 || graft_sym_is_number(s, y, 0) || !graft_sym_is_number(s, rest, 0)) {
        return part;
    }
    args[0] = y;
    for (uint32_t k = 1; k < count; k++) {
        args[k] = graft_sym_arg(s, part, k);
    }
    return i + 1 == count ? graft_sym_int(s, 0)
           : count == 2   ? y
                          : Z3_mk_app(s->z3, s->part[count - 1][i], count, args);
}

/* A part of a place in the same sizes is what the place was made of, else the term. */
static Z3_ast place_of_part(const graft_sym *s, Z3_ast part)
{
    for (uint32_t i = 0; i + 1 < graft_sym_arity(s, part); i++) {
        uint32_t n = count_axes(s, part, &i);
        if (n > 0) {
            Z3_ast place = graft_sym_arg(s, part, 0);
            bool cancels = count_axes(s, place, NULL) == n && have_sizes(s, place, part, n);
            return cancels ? graft_sym_arg(s, place, i) : part_of_multiple(s, part, i, n);
        }
    }
    return part;
}

static Z3_ast change_index(void *context, Z3_ast term)
{
    const graft_sym *s = context;
    if (graft_sym_is_app(s, term, s->at)) {
        return graft_sym_at(s, graft_sym_arg(s, term, 0), graft_sym_arg(s, term, 1));
    }
    if (graft_sym_is_app(s, term, s->quotient)) {
        return graft_sym_quotient(s, graft_sym_arg(s, term, 0), graft_sym_arg(s, term, 1));
    }
    Z3_ast place = whole_of_place(s, term);
    return place != term ? place : place_of_part(s, term);
}

Z3_ast graft_sym_write_place(const graft_sym *s, Z3_ast place, bool by_any)
{
    uint32_t n = count_axes(s, place, NULL);
    if (n == 0) {
        return place;
    }
    Z3_ast sum = graft_sym_arg(s, place, 0);
    for (uint32_t i = 1; i < n; i++) {
        Z3_ast size = graft_sym_arg(s, place, n + i);
        if (!by_any && !Z3_is_numeral_ast(s->z3, size)) {
            return place;
        }
        sum = graft_sym_add(s, graft_sym_mul(s, sum, size), graft_sym_arg(s, place, i));
    }
    return sum;
}

static Z3_ast change_to_meaning(void *context, Z3_ast term)
{
    const graft_sym *s = context;
    bool at = graft_sym_is_app(s, term, s->at);
    if (!at && !graft_sym_is_app(s, term, s->wide)) {
        return graft_sym_write_place(s, term, false);
    }
    Z3_ast first = graft_sym_arg(s, term, 0);
    Z3_ast second = graft_sym_arg(s, term, 1);
    Z3_ast one = Z3_mk_eq(s->z3, first, graft_sym_int(s, 1));
    return at ? Z3_mk_ite(s->z3, one, graft_sym_int(s, 0), second)
              : Z3_mk_ite(s->z3, one, second, first);
}

Z3_ast graft_sym_expand(graft_sym *s, Z3_ast term)
{
    if (s->plain == NULL && Z3_ast_map_contains(s->z3, s->expanded, term)) {
        return Z3_ast_map_find(s->z3, s->expanded, term);
    }
    Z3_ast expanded = graft_term_rebuild(s->z3, term, change_to_meaning, s);
    if (s->plain == NULL) {
        Z3_ast_map_insert(s->z3, s->expanded, term, expanded);
    }
    return expanded;
}

Z3_ast graft_sym_substitute(graft_sym *s, Z3_ast term, uint32_t count, const Z3_ast *from,
                            const Z3_ast *to)
{
    if (count == 0) {
        return term;
    }
    Z3_ast changed = Z3_substitute(s->z3, term, count, from, to);
    return changed == term || s->plain != NULL
               ? changed
               : graft_term_rebuild(s->z3, changed, change_index, s);
}

Z3_ast graft_sym_read(graft_sym *s, Z3_ast term, uint32_t rank, const Z3_ast *index)
{
    return graft_sym_substitute(s, term, rank, graft_sym_formals(s, rank), index);
}

/* --------------------------------------------------------------- the state */

static void declare_places(graft_sym *s)
{
    for (uint32_t n = 1; n <= GRAFT_MAX_RANK; n++) {
        s->place[n] = graft_term_declare(s->z3, 2 * n, s->integer, s->integer, "place%" PRIu32, n);
        for (uint32_t i = 0; i < n; i++) {
            s->part[n][i] = graft_term_declare(s->z3, n + 1, s->integer, s->integer,
                                               "part%" PRIu32 "_%" PRIu32, n, i);
        }
    }
}

static void declare_folds(graft_sym *s)
{
    static const char *const names[GRAFT_SYM_FOLD_COUNT] = {"sum", "max", "ordered_sum",
                                                            "ordered_mean", "ordered_max"};
    for (uint32_t f = 0; f < GRAFT_SYM_FOLD_COUNT; f++) {
        for (uint32_t n = 1; n <= GRAFT_SYM_BINDERS; n++) {
            Z3_sort domain[2 * GRAFT_SYM_BINDERS + 2];
            char name[GRAFT_ROOM_NAME];
            (void)snprintf(name, sizeof name, "%s%" PRIu32, names[f], n);
            for (uint32_t i = 0; i < 2 * n; i++) {
                domain[i] = s->integer;
            }
            domain[2 * n] = s->boolean;
            domain[2 * n + 1] = s->term.real;
            s->folds[f][n] = Z3_mk_func_decl(s->z3, Z3_mk_string_symbol(s->z3, name), 2 * n + 2,
                                             domain, s->term.real);
        }
    }
}

void graft_sym_open(graft_sym *s, graft_prover *prover)
{
    Z3_context z3 = prover->z3;
    memset(s, 0, sizeof *s);
    s->prover = prover;
    s->z3 = z3;
    graft_term_open(&s->term, z3);
    s->integer = Z3_mk_int_sort(z3);
    s->boolean = Z3_mk_bool_sort(z3);
    s->at = graft_term_declare(z3, 2, s->integer, s->integer, "at");
    s->wide = graft_term_declare(z3, 2, s->integer, s->integer, "wide");
    s->window = graft_term_declare(z3, 2, s->integer, s->integer, "window");
    s->group = graft_term_declare(z3, 3, s->integer, s->integer, "group");
    s->quotient = graft_term_declare(z3, 2, s->integer, s->integer, "quotient");
    declare_places(s);
    declare_folds(s);
    for (uint32_t i = 0; i <= GRAFT_MAX_RANK; i++) {
        s->formals[i] = graft_term_constant(z3, s->integer, "q%" PRIu32, i);
    }
    s->som = graft_prover_som(z3, GRAFT_LIMIT(SIZE_MONOMIALS));
    s->simplified = graft_term_map(z3);
    s->expanded = graft_term_map(z3);
    graft_sym_assumed_open(s);
}

void graft_sym_begin(graft_sym *s) { s->term_base = Z3_ast_map_size(s->z3, s->simplified); }

void graft_sym_close(graft_sym *s)
{
    graft_sym_assumed_close(s);
    Z3_ast_map_dec_ref(s->z3, s->simplified);
    Z3_ast_map_dec_ref(s->z3, s->expanded);
    Z3_params_dec_ref(s->z3, s->som);
    graft_term_close(&s->term);
}

bool graft_sym_refuse(graft_sym *s, uint32_t limit)
{
    s->refusal = graft_limit_reason(limit);
    return false;
}

graft_effort graft_sym_effort(const graft_sym *s)
{
    return (graft_effort){s->prover->result->resource_count,
                          Z3_ast_map_size(s->z3, s->simplified) - s->term_base};
}

bool graft_sym_is_spent(const graft_sym *s)
{
    return graft_prover_is_spent(s->prover) ||
           graft_sym_effort(s).term_count > s->prover->options->most.term_count;
}

/* symmatch.c - see symmatch.h. */
#include "verify/sizes/symmatch.h"

#include "verify/sizes/symassume.h"
#include "verify/sizes/symfold.h"
#include "verify/sizes/symmax.h"

#include <string.h>

/* ------------------------------------------------------------------ listing */

typedef struct {
    const graft_sym *s;
    graft_sym_atoms *atoms;
    bool folds;
    bool in_folds;
} listing;

static void list_atom(graft_sym_atoms *atoms, Z3_ast term)
{
    for (uint32_t i = 0; i < atoms->count; i++) {
        if (atoms->from[i] == term) {
            return;
        }
    }
    if (atoms->count == GRAFT_LIMIT(ATOMS)) {
        atoms->full = true;
        return;
    }
    atoms->from[atoms->count++] = term;
}

static bool visit_atom(void *context, Z3_ast term)
{
    listing *l = context;
    bool fold = graft_sym_fold_kind(l->s, term) != GRAFT_SYM_FOLD_COUNT;
    if (l->folds ? fold : graft_sym_is_element(l->s, term)) {
        list_atom(l->atoms, term);
    }
    return l->folds ? !fold : !fold || l->in_folds;
}

void graft_sym_list_folds(const graft_sym *s, Z3_ast term, graft_sym_atoms *atoms)
{
    listing l = {.s = s, .atoms = atoms, .folds = true};
    graft_sym_walk(s, term, visit_atom, &l);
}

void graft_sym_list_elements(const graft_sym *s, Z3_ast term, bool in_folds, graft_sym_atoms *atoms)
{
    listing l = {.s = s, .atoms = atoms, .in_folds = in_folds};
    graft_sym_walk(s, term, visit_atom, &l);
}

Z3_ast graft_sym_replace(const graft_sym *s, const graft_sym_atoms *atoms, Z3_ast term)
{
    return atoms->count == 0 ? term
                             : Z3_substitute(s->z3, term, atoms->count, atoms->from, atoms->to);
}

/* ------------------------------------------------------------------ elements */

static bool same_element(graft_sym *s, const graft_facts *facts, Z3_ast a, Z3_ast b)
{
    Z3_func_decl decl = Z3_get_app_decl(s->z3, Z3_to_app(s->z3, a));
    if (!graft_sym_is_app(s, b, decl)) {
        return false;
    }
    for (uint32_t i = 0; i < graft_sym_arity(s, a); i++) {
        Z3_ast x = graft_sym_arg(s, a, i);
        Z3_ast y = graft_sym_arg(s, b, i);
        if (x != y && !graft_sym_holds(s, facts, Z3_mk_eq(s->z3, x, y))) {
            return false;
        }
    }
    return true;
}

void graft_sym_merge_elements(graft_sym *s, const graft_facts *facts, graft_sym_atoms *elements)
{
    for (uint32_t i = 0; i < elements->count; i++) {
        elements->to[i] = elements->from[i];
        for (uint32_t k = 0; k < i; k++) {
            if (elements->to[k] == elements->from[k] &&
                same_element(s, facts, elements->from[i], elements->from[k])) {
                elements->to[i] = elements->from[k];
                break;
            }
        }
    }
}

/* --------------------------------------------------------------------- folds */

/* Two folds, opened, and a map from the first one's binders. */
typedef struct {
    graft_sym *s;
    graft_sym_range a;
    graft_sym_range b;
    Z3_ast body_a;
    Z3_ast body_b;
    Z3_ast to[GRAFT_SYM_BINDERS]; /* By binder of a; NULL for those without an image yet. */
    uint32_t taken;               /* Binders of b that are images. */
} pairing;

/* The only binder in an index, with factor 1: the index is the binder plus `*rest`. */
static bool find_lone(graft_sym *s, const graft_sym_range *range, Z3_ast index, uint32_t *which,
                      Z3_ast *rest)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < range->count; i++) {
        Z3_ast binder = range->binders[i];
        if (graft_sym_mentions(s, index, 1, &binder)) {
            *which = i;
            found++;
        }
    }
    if (found != 1) {
        return false;
    }
    Z3_ast binder = range->binders[*which];
    *rest = graft_sym_sub(s, index, binder);
    return !graft_sym_mentions(s, *rest, 1, &binder);
}

static void map_index(pairing *p, Z3_ast x, Z3_ast y)
{
    graft_sym *s = p->s;
    uint32_t i = 0;
    uint32_t k = 0;
    Z3_ast rest_x = NULL;
    Z3_ast rest_y = NULL;
    while (graft_sym_is_app(s, x, s->at) && graft_sym_is_app(s, y, s->at)) {
        x = graft_sym_arg(s, x, 1);
        y = graft_sym_arg(s, y, 1);
    }
    if (!find_lone(s, &p->a, x, &i, &rest_x) || !find_lone(s, &p->b, y, &k, &rest_y) ||
        p->to[i] != NULL || (p->taken >> k & 1u) != 0) {
        return;
    }
    p->to[i] = graft_sym_add(s, p->b.binders[k], graft_sym_sub(s, rest_y, rest_x));
    p->taken |= 1u << k;
}

static void map_element(pairing *p, Z3_ast x, Z3_ast y)
{
    if (!graft_sym_is_app(p->s, y, Z3_get_app_decl(p->s->z3, Z3_to_app(p->s->z3, x)))) {
        return;
    }
    for (uint32_t i = 0; i < graft_sym_arity(p->s, x); i++) {
        map_index(p, graft_sym_arg(p->s, x, i), graft_sym_arg(p->s, y, i));
    }
}

/* Binders that no element tells an image for go to one with the same size. */
static bool map_others(pairing *p)
{
    bool all = true;
    for (uint32_t i = 0; i < p->a.count; i++) {
        for (uint32_t k = 0; k < p->b.count && p->to[i] == NULL; k++) {
            if ((p->taken >> k & 1u) == 0 && p->a.sizes[i] == p->b.sizes[k]) {
                p->to[i] = p->b.binders[k];
                p->taken |= 1u << k;
            }
        }
        all = all && p->to[i] != NULL;
    }
    return all;
}

bool graft_sym_same_bodies(graft_sym *s, const graft_facts *facts, Z3_ast a, Z3_ast b)
{
    a = graft_sym_simplify(s, a);
    b = graft_sym_simplify(s, b);
    if (a == b) {
        return true;
    }
    graft_sym_atoms elements = {.count = 0};
    graft_sym_list_elements(s, b, true, &elements);
    graft_sym_list_elements(s, a, true, &elements);
    if (elements.full) {
        return false;
    }
    graft_sym_merge_elements(s, facts, &elements);
    return graft_sym_simplify(s, graft_sym_replace(s, &elements, a)) ==
           graft_sym_simplify(s, graft_sym_replace(s, &elements, b));
}

static bool check_map(pairing *p, const graft_facts *facts)
{
    graft_sym *s = p->s;
    Z3_ast range_b = graft_sym_range_formula(s, &p->b);
    Z3_ast range_a = graft_sym_range_formula(s, &p->a);
    range_a = graft_sym_substitute(s, range_a, p->a.count, p->a.binders, p->to);
    range_a = graft_sym_simplify(s, range_a);
    const graft_facts in_b = {.outer = facts, .fact = range_b};
    const graft_facts in_a = {.outer = facts, .fact = range_a};
    if (!graft_sym_holds(s, &in_b, range_a) || !graft_sym_holds(s, &in_a, range_b)) {
        return false;
    }
    Z3_ast body = graft_sym_substitute(s, p->body_a, p->a.count, p->a.binders, p->to);
    return graft_sym_same_bodies(s, &in_b, body, p->body_b);
}

/* ------------------------------------------------------------- which goes to which */

/* What two indices of elements of one variable say of whether these are the same. */
typedef enum {
    INDEX_DIFFERS,
    INDEX_OPEN, /* Nothing, as far as binders have images. */
    INDEX_AGREES
} index_word;

static index_word compare_indices(const pairing *p, Z3_ast x, Z3_ast y)
{
    graft_sym *s = p->s;
    uint32_t i = 0;
    Z3_ast rest = NULL;
    while (graft_sym_is_app(s, x, s->at) && graft_sym_is_app(s, y, s->at)) {
        x = graft_sym_arg(s, x, 1);
        y = graft_sym_arg(s, y, 1);
    }
    if (!graft_sym_mentions(s, x, p->a.count, p->a.binders)) {
        return x == y ? INDEX_AGREES : INDEX_DIFFERS;
    }
    if (!find_lone(s, &p->a, x, &i, &rest) || p->to[i] == NULL) {
        return INDEX_OPEN;
    }
    return graft_sym_add(s, p->to[i], rest) == y ? INDEX_AGREES : INDEX_DIFFERS;
}

/* Whether two elements may be the same, and some index says so. */
static bool is_likely(const pairing *p, Z3_ast x, Z3_ast y)
{
    graft_sym *s = p->s;
    bool agrees = false;
    if (!graft_sym_is_app(s, y, Z3_get_app_decl(s->z3, Z3_to_app(s->z3, x)))) {
        return false;
    }
    for (uint32_t i = 0; i < graft_sym_arity(s, x); i++) {
        index_word word = compare_indices(p, graft_sym_arg(s, x, i), graft_sym_arg(s, y, i));
        if (word == INDEX_DIFFERS) {
            return false;
        }
        agrees = agrees || word == INDEX_AGREES;
    }
    return agrees;
}

/* Pairs elements of which some index is known to be the same, whereby others become known: in a
 * chain of matrix products the first factor has the row that is asked about, the second one the
 * first one's binder. */
static void follow_chains(pairing *p, const graft_sym_atoms *x, const graft_sym_atoms *y)
{
    bool paired_x[GRAFT_ROOM_ATOMS] = {false};
    bool paired_y[GRAFT_ROOM_ATOMS] = {false};
    for (bool grew = true; grew;) {
        grew = false;
        for (uint32_t i = 0; i < x->count; i++) {
            for (uint32_t k = 0; k < y->count && !paired_x[i]; k++) {
                if (!paired_y[k] && is_likely(p, x->from[i], y->from[k])) {
                    map_element(p, x->from[i], y->from[k]);
                    paired_x[i] = paired_y[k] = grew = true;
                }
            }
        }
    }
}

/* Ways of pairing elements: x[0] with some y and then each with each; along chains; x[0] with some
 * y and then along chains. */
static void map_elements(pairing *p, const graft_sym_atoms *x, const graft_sym_atoms *y,
                         uint32_t way)
{
    uint32_t first = way < y->count ? way : way - y->count - 1;
    memset((void *)p->to, 0, sizeof p->to);
    p->taken = 0;
    if (x->count > 0 && way != y->count && first < y->count) {
        map_element(p, x->from[0], y->from[first]);
    }
    if (way >= y->count) {
        follow_chains(p, x, y);
    }
    for (uint32_t i = 0; i < x->count; i++) {
        for (uint32_t k = 0; k < y->count; k++) {
            map_element(p, x->from[i], y->from[k]);
        }
    }
}

/* Maps that were tried. */
typedef struct {
    Z3_ast to[GRAFT_ROOM_MAPS][GRAFT_SYM_BINDERS];
    uint32_t count;
} map_list;

/* Whether a map has not been tried before; notes it. */
static bool is_new_map(map_list *list, const pairing *p)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (memcmp((const void *)list->to[i], (const void *)p->to, sizeof p->to) == 0) {
            return false;
        }
    }
    if (list->count < GRAFT_LIMIT(MAPS)) {
        memcpy((void *)list->to[list->count++], (const void *)p->to, sizeof p->to);
    }
    return true;
}

static bool same_folds(graft_sym *s, const graft_facts *facts, Z3_ast a, Z3_ast b)
{
    pairing p = {.s = s};
    graft_sym_atoms x = {.count = 0};
    graft_sym_atoms y = {.count = 0};
    map_list tried = {.count = 0};
    if (!graft_sym_is_app(s, b, Z3_get_app_decl(s->z3, Z3_to_app(s->z3, a)))) {
        return false;
    }
    s->fresh = 0; /* No symbol of the kind is in use in a question. */
    p.body_a = graft_sym_fold_open(s, a, &p.a);
    p.body_b = graft_sym_fold_open(s, b, &p.b);
    graft_sym_list_elements(s, p.body_a, true, &x);
    graft_sym_list_elements(s, p.body_b, true, &y);
    for (uint32_t way = 0; way <= 2 * y.count; way++) {
        map_elements(&p, &x, &y, way);
        if (map_others(&p) && is_new_map(&tried, &p) && check_map(&p, facts)) {
            return true;
        }
    }
    return false;
}

static bool same_maxima(graft_sym *s, const graft_facts *facts, Z3_ast a, Z3_ast b)
{
    return graft_sym_is_below(s, facts, a, b) && graft_sym_is_below(s, facts, b, a);
}

void graft_sym_name_folds(graft_sym *s, const graft_facts *facts, graft_sym_atoms *folds)
{
    for (uint32_t i = 0; i < folds->count; i++) {
        folds->to[i] = NULL;
        for (uint32_t k = 0; k < i && folds->to[i] == NULL; k++) {
            if (same_folds(s, facts, folds->from[i], folds->from[k]) ||
                same_maxima(s, facts, folds->from[i], folds->from[k])) {
                folds->to[i] = folds->to[k];
            }
        }
        if (folds->to[i] == NULL) {
            folds->to[i] = Z3_mk_fresh_const(s->z3, "fold", s->term.real);
        }
    }
}

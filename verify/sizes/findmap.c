/* findmap.c - see findmap.h. */
#include "verify/sizes/findmap.h"

#include "verify/core/symmatch.h"
#include "verify/sizes/products.h"

#include <string.h>

/* ------------------------------------------------------------- maps between binders */

/* Two folds, opened, and a map from the first one's binders. */
typedef struct {
    graft_sym *s;
    graft_sym_range a;
    graft_sym_range b;
    Z3_ast to[GRAFT_SYM_BINDERS]; /* By binder of a; NULL for those without an image yet. */
    uint32_t taken;               /* Binders of b that are images. */
} pairing;

/* An index in which one binder stands: it is the binder plus `rest`, or `rest` less the binder. */
typedef struct {
    uint32_t which;
    bool falls;
    Z3_ast rest;
} lone;

/* The only binder of a range in an index; how many there are where there is none, or another. */
static uint32_t find_binder(const graft_sym *s, const graft_sym_range *range, Z3_ast index)
{
    uint32_t which = range->count;
    uint32_t found = 0;
    for (uint32_t i = 0; i < range->count; i++) {
        Z3_ast binder = range->binders[i];
        if (graft_sym_mentions(s, index, 1, &binder)) {
            which = i;
            found++;
        }
    }
    return found == 1 ? which : range->count;
}

static bool find_lone(graft_sym *s, const graft_sym_range *range, Z3_ast index, lone *found_at)
{
    found_at->which = find_binder(s, range, index);
    if (found_at->which == range->count) {
        return false;
    }
    Z3_ast binder = range->binders[found_at->which];
    found_at->rest = graft_sym_sub(s, index, binder);
    found_at->falls = graft_sym_mentions(s, found_at->rest, 1, &binder);
    if (found_at->falls) {
        found_at->rest = graft_sym_add(s, index, binder);
    }
    return !graft_sym_mentions(s, found_at->rest, 1, &binder);
}

/* An index goes to another by what makes them equal: where both have a binder alone, whatever stands
 * beside it; else where they are the same but for the binder. */
static void map_index(pairing *p, Z3_ast x, Z3_ast y)
{
    graft_sym *s = p->s;
    lone a;
    lone b;
    while (graft_sym_is_app(s, x, s->at) && graft_sym_is_app(s, y, s->at)) {
        x = graft_sym_arg(s, x, 1);
        y = graft_sym_arg(s, y, 1);
    }
    const bool alone_a = find_lone(s, &p->a, x, &a);
    const bool alone_b = find_lone(s, &p->b, y, &b);
    if (a.which == p->a.count || b.which == p->b.count || p->to[a.which] != NULL ||
        (p->taken >> b.which & 1u) != 0) {
        return;
    }
    Z3_ast to = p->b.binders[b.which];
    if (alone_a && alone_b) {
        to = a.falls ? graft_sym_sub(s, a.rest, y) : graft_sym_sub(s, y, a.rest);
    } else if (graft_sym_substitute(s, x, 1, &p->a.binders[a.which], &to) != y) {
        return;
    }
    p->to[a.which] = to;
    p->taken |= 1u << b.which;
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

/* Binders that no element tells an image for go to one with the same size, or to its opposite. */
static bool map_others(pairing *p, bool turned)
{
    graft_sym *s = p->s;
    bool all = true;
    for (uint32_t i = 0; i < p->a.count; i++) {
        for (uint32_t k = 0; k < p->b.count && p->to[i] == NULL; k++) {
            if ((p->taken >> k & 1u) == 0 && p->a.sizes[i] == p->b.sizes[k]) {
                Z3_ast last = graft_sym_sub(s, p->b.sizes[k], graft_sym_int(s, 1));
                Z3_ast binder = p->b.binders[k];
                p->to[i] = turned ? graft_sym_sub(s, last, binder) : binder;
                p->taken |= 1u << k;
            }
        }
        all = all && p->to[i] != NULL;
    }
    return all;
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
    lone a;
    while (graft_sym_is_app(s, x, s->at) && graft_sym_is_app(s, y, s->at)) {
        x = graft_sym_arg(s, x, 1);
        y = graft_sym_arg(s, y, 1);
    }
    if (!graft_sym_mentions(s, x, p->a.count, p->a.binders)) {
        return x == y ? INDEX_AGREES : INDEX_DIFFERS;
    }
    if (!find_lone(s, &p->a, x, &a) || p->to[a.which] == NULL) {
        return INDEX_OPEN;
    }
    Z3_ast to = p->to[a.which];
    Z3_ast image = a.falls ? graft_sym_sub(s, a.rest, to) : graft_sym_add(s, to, a.rest);
    return image == y ? INDEX_AGREES : INDEX_DIFFERS;
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

/* Whether a map has not been tried before; notes it. */
static bool is_new_map(graft_sym_maps *list, const pairing *p)
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

bool graft_sym_find_map(graft_sym_maps *tried, graft_sym *s, const graft_sym_pair *pair,
                        uint32_t way, Z3_ast to[GRAFT_SYM_BINDERS])
{
    pairing p = {.s = s, .a = pair->ranges[0], .b = pair->ranges[1]};
    graft_sym_atoms x = {.count = 0};
    graft_sym_atoms y = {.count = 0};
    graft_sym_list(s, pair->bodies[0], GRAFT_SYM_ALL_ELEMENTS, &x);
    graft_sym_list(s, pair->bodies[1], GRAFT_SYM_ALL_ELEMENTS, &y);
    if (way == 0) {
        tried->count = 0;
    }
    const bool turned = way > 2 * y.count;
    if (way > 2 * y.count + 1) {
        return false;
    }
    map_elements(&p, &x, &y, turned ? 0 : way);
    to[0] = NULL;
    if (map_others(&p, turned) && is_new_map(tried, &p)) {
        memcpy((void *)to, (const void *)p.to, sizeof p.to);
    }
    return true;
}

/* ------------------------------------------------------------- places of a maximum */

/* The maximum to be reached, opened, and where its binders are taken from. */
typedef struct {
    graft_sym *s;
    graft_sym_range range;
    Z3_ast to[GRAFT_SYM_BINDERS]; /* NULL: not known yet. */
} reached;

/* A term over the binders that are not known yet. */
static Z3_ast place_known(reached *r, Z3_ast term)
{
    for (uint32_t i = 0; i < r->range.count; i++) {
        if (r->to[i] != NULL) {
            term = graft_sym_substitute(r->s, term, 1, &r->range.binders[i], &r->to[i]);
        }
    }
    return term;
}

/* The binders in an index that are not known yet, two at most; returns how many there are. */
static uint32_t find_open(const reached *r, Z3_ast index, uint32_t open[2])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->range.count; i++) {
        Z3_ast binder = r->range.binders[i];
        if (r->to[i] == NULL && graft_sym_mentions(r->s, index, 1, &binder)) {
            if (count < 2) {
                open[count] = i;
            }
            count++;
        }
    }
    return count;
}

/* By what a binder is multiplied in a polynomial; 0 when it is no number. */
static int64_t coefficient_of(reached *r, Z3_ast polynomial, Z3_ast binder)
{
    graft_sym *s = r->s;
    int64_t value = 0;
    Z3_ast next = graft_sym_add(s, binder, graft_sym_int(s, 1));
    Z3_ast shifted = graft_sym_substitute(s, polynomial, 1, &binder, &next);
    Z3_ast difference = graft_sym_sub(s, shifted, polynomial);
    bool number =
        Z3_is_numeral_ast(s->z3, difference) && Z3_get_numeral_int64(s->z3, difference, &value);
    return number ? value : 0;
}

static Z3_ast multiple(reached *r, int64_t factor, Z3_ast binder)
{
    return graft_sym_mul(r->s, graft_sym_int(r->s, factor), binder);
}

/* The least number that the range leaves a binder: the largest of its lower bounds. NULL when there
 * is none. */
static Z3_ast least_of(reached *r, Z3_ast binder, Z3_ast range)
{
    graft_sym *s = r->s;
    Z3_ast facts[GRAFT_ROOM_PRODUCT_FACTS]; /* Not negative. */
    Z3_ast least = NULL;
    uint32_t count = graft_sym_list_facts(s, graft_sym_simplify(s, range), facts);
    for (uint32_t i = 0; i < count; i++) {
        int64_t factor = coefficient_of(r, facts[i], binder);
        Z3_ast bound = graft_sym_sub(s, multiple(r, factor, binder), facts[i]);
        uint32_t open[2];
        if (factor <= 0 || graft_sym_mentions(s, bound, 1, &binder) ||
            find_open(r, bound, open) > 0) {
            continue;
        }
        if (factor > 1) { /* Rounded up. */
            bound = Z3_mk_div(s->z3, graft_sym_add(s, bound, graft_sym_int(s, factor - 1)),
                              graft_sym_int(s, factor));
        }
        least =
            least == NULL ? bound : Z3_mk_ite(s->z3, Z3_mk_ge(s->z3, least, bound), least, bound);
    }
    return least;
}

/* Makes index x of the reached body index y. Of two binders the one that is not multiplied makes up
 * for what is left. */
static void reach_index(reached *r, Z3_ast x, Z3_ast y)
{
    graft_sym *s = r->s;
    uint32_t open[2];
    while (graft_sym_is_app(s, x, s->at) && graft_sym_is_app(s, y, s->at)) {
        x = graft_sym_arg(s, x, 1);
        y = graft_sym_arg(s, y, 1);
    }
    x = place_known(r, x);
    uint32_t count = find_open(r, x, open);
    Z3_ast binders[2] = {NULL, NULL};
    int64_t factors[2] = {0, 0};
    Z3_ast rest = graft_sym_sub(s, y, x); /* What the binders have to make up for. */
    for (uint32_t i = 0; i < count && count <= 2; i++) {
        binders[i] = r->range.binders[open[i]];
        factors[i] = coefficient_of(r, x, binders[i]);
        rest = graft_sym_add(s, rest, multiple(r, factors[i], binders[i]));
    }
    uint32_t last = count == 2 && factors[1] == 1 ? 1 : 0;
    if (count == 0 || count > 2 || factors[last] != 1 ||
        graft_sym_mentions(s, rest, count, binders)) {
        return;
    }
    if (count == 2) {
        uint32_t first = 1 - last;
        Z3_ast other = graft_sym_sub(s, rest, multiple(r, factors[first], binders[first]));
        Z3_ast range = place_known(r, graft_sym_range_formula(s, &r->range));
        range = graft_sym_substitute(s, range, 1, &binders[last], &other);
        Z3_ast least = least_of(r, binders[first], range);
        if (least == NULL) {
            return;
        }
        r->to[open[first]] = least;
        Z3_ast taken = Z3_mk_mul(s->z3, 2, (Z3_ast[]){graft_sym_int(s, factors[first]), least});
        rest = Z3_mk_sub(s->z3, 2, (Z3_ast[]){rest, taken});
    }
    r->to[open[last]] = rest;
}

static void reach_element(reached *r, Z3_ast x, Z3_ast y)
{
    const graft_sym *s = r->s;
    if (graft_sym_is_app(s, y, Z3_get_app_decl(s->z3, Z3_to_app(s->z3, x)))) {
        for (uint32_t i = 0; i < graft_sym_arity(s, x); i++) {
            reach_index(r, graft_sym_arg(s, x, i), graft_sym_arg(s, y, i));
        }
    }
}

bool graft_sym_find_place(graft_sym *s, const graft_sym_pair *pair, Z3_ast to[GRAFT_SYM_BINDERS])
{
    reached r = {.s = s, .range = pair->ranges[0]};
    graft_sym_atoms x = {.count = 0};
    graft_sym_atoms y = {.count = 0};
    graft_sym_list(s, pair->bodies[0], GRAFT_SYM_ALL_ELEMENTS, &x);
    graft_sym_list(s, pair->bodies[1], GRAFT_SYM_ALL_ELEMENTS, &y);
    for (uint32_t i = 0; i < x.count; i++) {
        for (uint32_t k = 0; k < y.count; k++) {
            reach_element(&r, x.from[i], y.from[k]);
        }
    }
    memcpy((void *)to, (const void *)r.to, sizeof r.to);
    bool all = true;
    for (uint32_t i = 0; i < r.range.count; i++) {
        all = all && r.to[i] != NULL;
    }
    return all;
}

/* ------------------------------------------------------------- parts of folds */

enum { FEW = 4 }; /* Values of a binder that are gone through one by one. */

/* Whether the guard does not exclude at sight that a binder is a value. */
static bool may_be(graft_sym *s, const graft_sym_range *range, Z3_ast binder, Z3_ast value)
{
    Z3_ast guard = graft_sym_substitute(s, range->guard, 1, &binder, &value);
    return Z3_get_bool_value(s->z3, graft_sym_simplify(s, guard)) != Z3_L_FALSE;
}

/* The values of a binder with few of them that a guard does not exclude at sight; returns how many
 * there are, 0 where there may be any number. */
static uint32_t list_values(graft_sym *s, const graft_sym_range *range, uint32_t i,
                            Z3_ast values[FEW])
{
    int64_t size = FEW + 1;
    uint32_t count = 0;
    if (!Z3_is_numeral_ast(s->z3, range->sizes[i]) ||
        !Z3_get_numeral_int64(s->z3, range->sizes[i], &size) || size > FEW) {
        return 0;
    }
    for (int64_t k = 0; k < size; k++) {
        Z3_ast value = graft_sym_int(s, k);
        if (may_be(s, range, range->binders[i], value)) {
            values[count++] = value;
        }
    }
    return count;
}

/* The number that a range leaves a binder between its bounds, if that is one. */
static Z3_ast between_bounds(graft_sym *s, const graft_sym_range *range, uint32_t i)
{
    reached r = {.s = s, .range = *range};
    Z3_ast facts[GRAFT_ROOM_PRODUCT_FACTS]; /* Not negative. */
    Z3_ast binder = range->binders[i];
    Z3_ast formula = graft_sym_simplify(s, graft_sym_range_formula(s, range));
    uint32_t count = graft_sym_list_facts(s, formula, facts);
    for (uint32_t low = 0; low < count; low++) {
        if (coefficient_of(&r, facts[low], binder) != 1) {
            continue;
        }
        Z3_ast value = graft_sym_sub(s, binder, facts[low]);
        for (uint32_t high = 0; high < count; high++) {
            if (graft_sym_is_number(s, graft_sym_add(s, facts[low], facts[high]), 0)) {
                return value;
            }
        }
    }
    return NULL;
}

Z3_ast graft_sym_find_fixed(graft_sym *s, const graft_sym_range *range, uint32_t binder)
{
    Z3_ast values[FEW];
    if (Z3_get_bool_value(s->z3, range->guard) == Z3_L_TRUE) {
        return NULL;
    }
    return list_values(s, range, binder, values) == 1 ? values[0]
                                                      : between_bounds(s, range, binder);
}

void graft_sym_find_inside(graft_sym *s, const graft_sym_range *range, Z3_ast to[GRAFT_SYM_BINDERS])
{
    Z3_ast formula = graft_sym_range_formula(s, range);
    for (uint32_t i = 0; i < range->count; i++) {
        reached r = {.s = s, .range = *range};
        Z3_ast least = least_of(&r, range->binders[i], formula);
        to[i] = least != NULL ? least : graft_sym_int(s, 0);
    }
}

/* Where one sum or maximum is to be cut beside another that is like it but for its range: where that
 * begins later there, else where it ends; of equal sizes the one place that it lacks. NULL where
 * there is none like it. */
static Z3_ast find_cut(graft_sym *s, uint32_t count, const Z3_ast *folds, uint32_t which,
                       const graft_sym_range *range, Z3_ast body)
{
    Z3_func_decl decl = Z3_get_app_decl(s->z3, Z3_to_app(s->z3, folds[which]));
    Z3_ast one = graft_sym_int(s, 1);
    Z3_ast binder = range->binders[0];
    for (uint32_t i = 0; i < count && range->count == 1; i++) {
        graft_sym_pair p = {.ranges = {*range}, .bodies = {body}};
        graft_sym_maps tried = {.count = 0};
        Z3_ast to[GRAFT_SYM_BINDERS] = {NULL};
        if (i == which || !graft_sym_is_app(s, folds[i], decl)) {
            continue;
        }
        p.bodies[1] = graft_sym_fold_open(s, folds[i], &p.ranges[1]);
        if (!graft_sym_find_map(&tried, s, &p, 0, to) || to[0] == NULL) {
            continue;
        }
        Z3_ast shift = graft_sym_sub(s, to[0], p.ranges[1].binders[0]);
        int64_t number = 1;
        (void)(Z3_is_numeral_ast(s->z3, shift) && Z3_get_numeral_int64(s->z3, shift, &number));
        const bool later = number > 0;
        const bool shorter = p.ranges[1].sizes[0] != range->sizes[0];
        Z3_ast end = shorter ? p.ranges[1].sizes[0] : graft_sym_sub(s, range->sizes[0], one);
        Z3_ast first = later ? graft_sym_sub(s, shift, one) : end; /* On the cut's lower side. */
        if (!graft_sym_is_open(s, shift) && may_be(s, range, binder, first)) {
            return later ? Z3_mk_le(s->z3, binder, first) : Z3_mk_ge(s->z3, binder, first);
        }
    }
    return NULL;
}

/* Value by value, where a binder has few; else where another fold begins or ends. */
Z3_ast graft_sym_find_part(graft_sym *s, uint32_t count, const Z3_ast *folds, uint32_t which,
                           const graft_sym_range *range, Z3_ast body)
{
    Z3_ast values[FEW];
    for (uint32_t i = 0; i < range->count; i++) {
        if (list_values(s, range, i, values) > 0) {
            return Z3_mk_le(s->z3, range->binders[i], values[0]);
        }
    }
    return find_cut(s, count, folds, which, range, body);
}

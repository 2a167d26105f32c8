/* symmax.c - see symmax.h. */
#include "verify/sizes/symmax.h"

#include "verify/sizes/symassume.h"
#include "verify/sizes/symfold.h"
#include "verify/sizes/symmatch.h"
#include "verify/sizes/symproduct.h"

#include <string.h>

/* The maximum to be reached, opened, and where its binders are taken from. */
typedef struct {
    graft_sym *s;
    graft_sym_range range;
    Z3_ast body;
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
static void map_index(reached *r, Z3_ast x, Z3_ast y)
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

static void map_element(reached *r, Z3_ast x, Z3_ast y)
{
    const graft_sym *s = r->s;
    if (graft_sym_is_app(s, y, Z3_get_app_decl(s->z3, Z3_to_app(s->z3, x)))) {
        for (uint32_t i = 0; i < graft_sym_arity(s, x); i++) {
            map_index(r, graft_sym_arg(s, x, i), graft_sym_arg(s, y, i));
        }
    }
}

static bool is_known(const reached *r)
{
    bool all = true;
    for (uint32_t i = 0; i < r->range.count; i++) {
        all = all && r->to[i] != NULL;
    }
    return all;
}

/* Whether a conjunction holds: at once, or else part by part, which is less to look at for Z3. */
static bool holds_in_parts(graft_sym *s, const graft_facts *facts, Z3_ast goal)
{
    if (graft_sym_holds(s, facts, goal)) {
        return true;
    }
    bool holds = graft_sym_kind(s, goal) == Z3_OP_AND;
    for (uint32_t i = 0; holds && i < graft_sym_arity(s, goal); i++) {
        holds = holds_in_parts(s, facts, graft_sym_arg(s, goal, i));
    }
    return holds;
}

bool graft_sym_is_below(graft_sym *s, const graft_facts *facts, Z3_ast value, Z3_ast fold)
{
    reached r = {.s = s};
    graft_sym_range range = graft_sym_range_open(s);
    graft_sym_atoms x = {.count = 0};
    graft_sym_atoms y = {.count = 0};
    bool is_fold = graft_sym_fold_kind(s, value) == GRAFT_SYM_MAX;
    if (graft_sym_fold_kind(s, fold) != GRAFT_SYM_MAX ||
        (!is_fold && !graft_sym_is_element(s, value))) {
        return false;
    }
    s->fresh = 0; /* No symbol of the kind is in use in a question. */
    r.body = graft_sym_fold_open(s, fold, &r.range);
    Z3_ast body = is_fold ? graft_sym_fold_open(s, value, &range) : value;
    graft_sym_list_elements(s, r.body, true, &x);
    graft_sym_list_elements(s, body, true, &y);
    for (uint32_t i = 0; i < x.count; i++) {
        for (uint32_t k = 0; k < y.count; k++) {
            map_element(&r, x.from[i], y.from[k]);
        }
    }
    if (!is_known(&r)) {
        return false;
    }
    const graft_facts inside = {.outer = facts, .fact = graft_sym_range_formula(s, &range)};
    Z3_ast goal = place_known(&r, graft_sym_range_formula(s, &r.range));
    return holds_in_parts(s, &inside, goal) &&
           graft_sym_same_bodies(s, &inside, body, place_known(&r, r.body));
}

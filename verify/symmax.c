/* symmax.c - see symmax.h. */
#include "verify/symmax.h"

#include "verify/symassume.h"
#include "verify/symfold.h"
#include "verify/symmatch.h"
#include "verify/symproduct.h"

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

/* The least number that the range leaves a binder: the largest of its lower bounds. NULL when there
 * is none. */
static Z3_ast least_of(reached *r, Z3_ast binder, Z3_ast range)
{
    graft_sym *s = r->s;
    Z3_ast facts[GRAFT_SYM_FACTS_MOST];
    Z3_ast least = NULL;
    uint32_t count = graft_sym_list_facts(s, graft_sym_simplify(s, range), facts);
    for (uint32_t i = 0; i < count; i++) {
        Z3_ast bound = graft_sym_sub(s, binder, facts[i]);
        uint32_t open[2];
        if (graft_sym_mentions(s, facts[i], 1, &binder) &&
            !graft_sym_mentions(s, bound, 1, &binder) && find_open(r, bound, open) == 0) {
            least = least == NULL ? bound
                                  : Z3_mk_ite(s->z3, Z3_mk_ge(s->z3, least, bound), least, bound);
        }
    }
    return least;
}

/* Makes index x of the reached body index y. */
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
    Z3_ast binders[2];
    Z3_ast rest = graft_sym_sub(s, y, x); /* What the binders have to make up for. */
    for (uint32_t i = 0; i < count && count <= 2; i++) {
        binders[i] = r->range.binders[open[i]];
        rest = graft_sym_add(s, rest, binders[i]);
    }
    if (count == 0 || count > 2 || graft_sym_mentions(s, rest, count, binders)) {
        return;
    }
    if (count == 2) {
        Z3_ast other = graft_sym_sub(s, rest, binders[0]);
        Z3_ast range = place_known(r, graft_sym_range_formula(s, &r->range));
        range = graft_sym_substitute(s, range, 1, &binders[1], &other);
        r->to[open[0]] = least_of(r, binders[0], range);
        if (r->to[open[0]] == NULL) {
            return;
        }
        rest = Z3_mk_sub(s->z3, 2, (Z3_ast[]){rest, r->to[open[0]]});
    }
    r->to[open[count - 1]] = rest;
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
    return graft_sym_holds(s, &inside, goal) &&
           graft_sym_same_bodies(s, &inside, body, place_known(&r, r.body));
}

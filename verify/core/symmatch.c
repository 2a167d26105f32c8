/* symmatch.c - see symmatch.h. */
#include "verify/core/symmatch.h"

#include "verify/core/hints.h"
#include "verify/core/symassume.h"
#include "verify/core/symfold.h"

/* ------------------------------------------------------------------ listing */

typedef struct {
    const graft_sym *s;
    graft_sym_atoms *atoms;
    graft_sym_atom kind;
} listing;

/* Adds a term that is not listed yet. */
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
    bool is = l->kind == GRAFT_SYM_FOLDS   ? fold
              : l->kind == GRAFT_SYM_SIZES ? graft_sym_kind(l->s, term) == Z3_OP_TO_REAL
                                           : graft_sym_is_element(l->s, term);
    if (is) {
        list_atom(l->atoms, term);
    }
    return !is && (!fold || l->kind == GRAFT_SYM_ALL_ELEMENTS);
}

void graft_sym_list(const graft_sym *s, Z3_ast term, graft_sym_atom kind, graft_sym_atoms *atoms)
{
    graft_sym_walk(s, term, visit_atom, &(listing){s, atoms, kind});
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

/* Whether two terms are the same where `facts` hold, once elements that are the same are one. */
static bool same_bodies(graft_sym *s, const graft_facts *facts, Z3_ast a, Z3_ast b)
{
    a = graft_sym_simplify(s, a);
    b = graft_sym_simplify(s, b);
    if (a == b) {
        return true;
    }
    graft_sym_atoms elements = {.count = 0};
    graft_sym_list(s, b, GRAFT_SYM_ALL_ELEMENTS, &elements);
    graft_sym_list(s, a, GRAFT_SYM_ALL_ELEMENTS, &elements);
    if (elements.full) {
        return false;
    }
    graft_sym_merge_elements(s, facts, &elements);
    a = graft_sym_simplify(s, graft_sym_replace(s, &elements, a));
    b = graft_sym_simplify(s, graft_sym_replace(s, &elements, b));
    return a == b || graft_sym_is_so(s, facts, Z3_mk_eq(s->z3, a, b));
}

/* Whether a term is a binder of a range, or the opposite of one, plus what has none in it. */
static bool is_shifted(graft_sym *s, const graft_sym_range *range, Z3_ast binder, Z3_ast term)
{
    return !graft_sym_is_bound(s, term) &&
           (!graft_sym_mentions(s, graft_sym_sub(s, term, binder), range->count, range->binders) ||
            !graft_sym_mentions(s, graft_sym_add(s, term, binder), range->count, range->binders));
}

/* Whether each binder of the first goes to one of the second so, and no two to the same. */
static bool is_one_to_one(graft_sym *s, const graft_sym_pair *p, const Z3_ast *to)
{
    const graft_sym_range *b = &p->ranges[1];
    uint32_t taken = 0;
    for (uint32_t i = 0; i < p->ranges[0].count; i++) {
        uint32_t k = 0;
        while (k < b->count &&
               ((taken >> k & 1u) != 0 || !is_shifted(s, b, b->binders[k], to[i]))) {
            k++;
        }
        if (k == b->count) {
            return false;
        }
        taken |= 1u << k;
    }
    return p->ranges[0].count == b->count;
}

static bool is_same_under(graft_sym *s, const graft_facts *facts, const graft_sym_pair *p,
                          const Z3_ast *to)
{
    const graft_sym_range *a = &p->ranges[0];
    Z3_ast range_b = graft_sym_range_formula(s, &p->ranges[1]);
    Z3_ast range_a = graft_sym_range_formula(s, a);
    range_a = graft_sym_substitute(s, range_a, a->count, a->binders, to);
    range_a = graft_sym_simplify(s, range_a);
    const graft_facts in_b = {.outer = facts, .fact = range_b};
    const graft_facts in_a = {.outer = facts, .fact = range_a};
    if (!is_one_to_one(s, p, to) || !graft_sym_holds(s, &in_b, range_a) ||
        !graft_sym_holds(s, &in_a, range_b)) {
        return false;
    }
    Z3_ast body = graft_sym_substitute(s, p->bodies[0], a->count, a->binders, to);
    return same_bodies(s, &in_b, body, p->bodies[1]);
}

static bool same_folds(graft_sym *s, const graft_facts *facts, Z3_ast a, Z3_ast b)
{
    graft_sym_pair p;
    Z3_ast to[GRAFT_SYM_BINDERS];
    bool same = a == b;
    if (same || s->hints == NULL ||
        !graft_sym_is_app(s, b, Z3_get_app_decl(s->z3, Z3_to_app(s->z3, a)))) {
        return same;
    }
    s->fresh = 0; /* No symbol of the kind is in use in a question. */
    p.bodies[0] = graft_sym_fold_open(s, a, &p.ranges[0]);
    p.bodies[1] = graft_sym_fold_open(s, b, &p.ranges[1]);
    for (uint32_t way = 0; !same && s->hints->map(s, &p, way, to); way++) {
        same = to[0] != NULL && is_same_under(s, facts, &p, to);
    }
    return same;
}

/* -------------------------------------------------------------------- maxima */

/* Whether a conjunction holds, part by part, which is less to look at for Z3. */
static bool holds_in_parts(graft_sym *s, const graft_facts *facts, Z3_ast goal)
{
    bool holds = graft_sym_kind(s, goal) == Z3_OP_AND || graft_sym_holds(s, facts, goal);
    for (uint32_t i = 0; holds && i < graft_sym_arity(s, goal); i++) {
        holds = graft_sym_kind(s, goal) != Z3_OP_AND ||
                holds_in_parts(s, facts, graft_sym_arg(s, goal, i));
    }
    return holds;
}

/* Whether a place names no binder of another fold. */
static bool is_free(const graft_sym *s, uint32_t count, const Z3_ast *to)
{
    bool free = true;
    for (uint32_t i = 0; i < count; i++) {
        free = free && !graft_sym_is_bound(s, to[i]);
    }
    return free;
}

bool graft_sym_is_below(graft_sym *s, const graft_facts *facts, Z3_ast value, Z3_ast fold)
{
    graft_sym_pair p;
    Z3_ast to[GRAFT_SYM_BINDERS];
    bool is_fold = graft_sym_fold_kind(s, value) == GRAFT_SYM_MAX;
    if (s->hints == NULL || graft_sym_fold_kind(s, fold) != GRAFT_SYM_MAX ||
        (!is_fold && !graft_sym_is_element(s, value))) {
        return false;
    }
    s->fresh = 0; /* No symbol of the kind is in use in a question. */
    p.bodies[0] = graft_sym_fold_open(s, fold, &p.ranges[0]);
    p.ranges[1] = graft_sym_range_open(s);
    p.bodies[1] = is_fold ? graft_sym_fold_open(s, value, &p.ranges[1]) : value;
    if (!s->hints->place(s, &p, to) || !is_free(s, p.ranges[0].count, to)) {
        return false;
    }
    const graft_facts inside = {.outer = facts, .fact = graft_sym_range_formula(s, &p.ranges[1])};
    const graft_sym_range *first = &p.ranges[0];
    Z3_ast goal = graft_sym_range_formula(s, first);
    goal = graft_sym_substitute(s, goal, first->count, first->binders, to);
    Z3_ast there = graft_sym_substitute(s, p.bodies[0], first->count, first->binders, to);
    return holds_in_parts(s, &inside, goal) && same_bodies(s, &inside, p.bodies[1], there);
}

/* Whether a sum has no places. Without a guard it has one: sizes are positive. */
static bool is_empty(graft_sym *s, const graft_facts *facts, Z3_ast fold)
{
    graft_sym_range range;
    if (graft_sym_fold_kind(s, fold) != GRAFT_SYM_SUM) {
        return false;
    }
    s->fresh = 0; /* No symbol of the kind is in use in a question. */
    (void)graft_sym_fold_open(s, fold, &range);
    return Z3_get_bool_value(s->z3, range.guard) != Z3_L_TRUE &&
           graft_sym_holds(s, facts, Z3_mk_not(s->z3, graft_sym_range_formula(s, &range)));
}

void graft_sym_name_folds(graft_sym *s, const graft_facts *facts, graft_sym_atoms *folds)
{
    for (uint32_t i = 0; i < folds->count; i++) {
        folds->to[i] = is_empty(s, facts, folds->from[i]) ? s->term.zero : NULL;
        for (uint32_t k = 0; k < i && folds->to[i] == NULL; k++) {
            if (same_folds(s, facts, folds->from[i], folds->from[k])) {
                folds->to[i] = folds->to[k];
            }
        }
        if (folds->to[i] == NULL) {
            folds->to[i] = graft_sym_unknown(s, 'f', i);
        }
    }
}

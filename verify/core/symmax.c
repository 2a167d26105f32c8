/* symmax.c - see symmax.h. */
#include "verify/core/symmax.h"

#include "verify/core/hints.h"
#include "verify/core/symassume.h"
#include "verify/core/symfold.h"
#include "verify/core/symmatch.h"

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

/* Whether a place names no binder of another fold. */
static bool is_free(const graft_sym *s, uint32_t count, const Z3_ast *to)
{
    bool free = true;
    for (uint32_t i = 0; i < count; i++) {
        free = free && !graft_sym_is_bound(s, to[i]);
    }
    return free;
}

/* `term` of the first fold at a place of it. */
static Z3_ast at_place(graft_sym *s, const graft_sym_pair *p, const Z3_ast *to, Z3_ast term)
{
    for (uint32_t i = 0; i < p->ranges[0].count; i++) {
        term = graft_sym_substitute(s, term, 1, &p->ranges[0].binders[i], &to[i]);
    }
    return term;
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
    if (!s->hints->place(s->hints->context, s, &p, to) || !is_free(s, p.ranges[0].count, to)) {
        return false;
    }
    const graft_facts inside = {.outer = facts, .fact = graft_sym_range_formula(s, &p.ranges[1])};
    Z3_ast goal = at_place(s, &p, to, graft_sym_range_formula(s, &p.ranges[0]));
    return holds_in_parts(s, &inside, goal) &&
           graft_sym_same_bodies(s, &inside, p.bodies[1], at_place(s, &p, to, p.bodies[0]));
}

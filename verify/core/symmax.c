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
    return holds_in_parts(s, &inside, goal) &&
           graft_sym_same_bodies(s, &inside, p.bodies[1], there);
}

/* symfold.h - sums and maxima over symbolic ranges, in normal form.
 *
 * A fold is an application of an unknown function sum<k> or max<k> to k binders, the sizes of their
 * ranges, a guard and a body: sum over all 0 <= binder < size at which the guard holds of the body.
 * It stands for a number that depends on what the binders do not bind. Z3 never sees one: before a
 * question about elements is asked, folds become symbols, the same symbol only if they were proved
 * equal (symask.h), for congruence of such applications would claim too much.
 *
 * Sums are brought to a normal form by these laws, and no others:
 *   - a conditional on indices in the body: decided when Z3 says so under the range and guard; else
 *     taken out when it does not depend on the binders, as is one on numbers, and otherwise
 *     sum[g] (c ? x : y) = sum[g and c] x + sum[g and not c] y;
 *   - parts of the guard without binders are taken out: g ? sum : 0;
 *   - where Z3 says that the range has no place, the sum is 0 (symmatch.h);
 *   - the sum of a sum is the sum of the sums; factors without the binders are taken out;
 *   - sum over s of f(s) sum over t of g(s,t) = sum over s, t of f(s) g(s,t);
 *   - a binder that has one value in the range is that value; one that occurs nowhere
 *     contributes a factor, its size; one that only its bounds in the guard name, how many there are;
 *   - sum over s, t [g(s) and h(t)] f(s) k(t) = (sum over s [g] f) (sum over t [h] k);
 *   - n inverse(n) = 1 for a size n;
 *   - sum over t < m n of f(t / n, t mod n) = sum over i < m, j < n of f(i, j), of maxima likewise.
 * Maxima, whose ranges are never empty (engine/shapes.h sees to that), by these:
 *   - conditionals on indices as above; max[g] (c ? x : y) is the larger of max[g and c] x and
 *     max[g and not c] y where Z3 says that both ranges have a place;
 *   - max over t of g(x(t)) = g(max over t of x(t)) for g that grows, and g(-(max over t of -x(t)))
 *     for g that falls, if Z3 says that g does;
 *   - max over t of the larger of x(t) and y(t) is the larger of their maxima;
 *   - the maximum of maxima is one.
 * Binders are then named by nesting, so that equal folds mostly are equal terms. */
#ifndef GRAFT_SYMFOLD_H
#define GRAFT_SYMFOLD_H

#include "verify/core/symterm.h"

typedef struct graft_sym_range {
    uint32_t count;
    Z3_ast binders[GRAFT_SYM_BINDERS]; /* Symbols that occur nowhere else. */
    Z3_ast sizes[GRAFT_SYM_BINDERS];
    Z3_ast guard; /* Of sort Bool. */
} graft_sym_range;

/* A range without binders. */
graft_sym_range graft_sym_range_open(const graft_sym *s);
/* Adds a binder and returns it. */
Z3_ast graft_sym_range_add(graft_sym *s, graft_sym_range *range, Z3_ast size);
void graft_sym_range_guard(const graft_sym *s, graft_sym_range *range, Z3_ast guard);

void graft_sym_range_remove(graft_sym_range *range, uint32_t i);
/* Binders that are row-major places become those of the indices, and binders that have one value
 * become it; returns the body so. */
Z3_ast graft_sym_range_settle(graft_sym *s, const graft_facts *facts, graft_sym_range *range,
                              Z3_ast body);

/* The fold of `body` over a range, `facts` being known where it stands. */
Z3_ast graft_sym_sum(graft_sym *s, const graft_facts *facts, const graft_sym_range *range,
                     Z3_ast body);
Z3_ast graft_sym_max(graft_sym *s, const graft_facts *facts, const graft_sym_range *range,
                     Z3_ast body);

/* A sum or maximum, taken apart by a condition on its places. */
Z3_ast graft_sym_fold_parted(graft_sym *s, const graft_facts *facts, graft_sym_fold kind,
                             const graft_sym_range *range, Z3_ast body, Z3_ast condition);

/* A fold as it stands, its binders named by nesting and in the order that they have. */
Z3_ast graft_sym_fold_close(graft_sym *s, graft_sym_fold kind, const graft_sym_range *range,
                            Z3_ast body);
/* Which fold a term is; GRAFT_SYM_FOLD_COUNT when it is none. */
graft_sym_fold graft_sym_fold_kind(const graft_sym *s, Z3_ast term);
/* Opens a fold, its binders renamed to fresh symbols. */
Z3_ast graft_sym_fold_open(graft_sym *s, Z3_ast fold, graft_sym_range *range);
/* Whether a term names a binder of a fold that is not open: a fold would bind it anew, so what is
 * proposed to be put into one may not. */
bool graft_sym_is_bound(const graft_sym *s, Z3_ast term);
/* Whether it names a binder of a fold that is open, or was: of a question no term may. */
bool graft_sym_is_open(const graft_sym *s, Z3_ast term);
/* Whether it names sizes and attributes alone: then it says the same wherever it is asked. */
bool graft_sym_is_of_instance(const graft_sym *s, Z3_ast term);
/* The range and guard as one formula. */
Z3_ast graft_sym_range_formula(const graft_sym *s, const graft_sym_range *range);

/* A condition on indices alone of a conditional outside of folds, or NULL. */
Z3_ast graft_sym_find_condition(const graft_sym *s, Z3_ast term);
/* `term` where a condition is known to hold, or not to. */
Z3_ast graft_sym_given(graft_sym *s, Z3_ast term, Z3_ast condition, bool holds);
/* Multiplied out, sizes cancelled against their reciprocals. */
Z3_ast graft_sym_normal(graft_sym *s, Z3_ast term);
/* Whether Z3 says that a statement about numbers is so where `facts` hold, whatever the elements, folds
 * and sizes in it are. */
bool graft_sym_is_so(graft_sym *s, const graft_facts *facts, Z3_ast statement);
/* A size as a number. */
Z3_ast graft_sym_real(const graft_sym *s, Z3_ast size);

#endif

/* obligation.h - what has to be unsatisfiable for a rule to hold at a point, as Z3 terms.
 *
 * An obligation is a list of *questions*: "element i of the two sides differs", and "the target
 * divides by 0 (or takes the root of a negative number) although the source does not". Beside them
 * stand *assumptions*: the laws of unknown functions, and the conditions under which the source is
 * defined. */
#ifndef GRAFT_OBLIGATION_H
#define GRAFT_OBLIGATION_H

#include "verify/instance.h"
#include "verify/term.h"

typedef struct graft_obligation {
    graft_arena *arena;
    Z3_context z3;
    graft_term_state term;
    Z3_ast *questions; /* Formulas. */
    Z3_ast *left;      /* Of the first `elements` questions: the two sides. */
    Z3_ast *right;
    uint32_t count;
    uint32_t elements;
    Z3_ast *assumptions;
    uint32_t assumption_count;
    struct graft_mentions *mentions; /* By assumption: what it is about. */
} graft_obligation;

/* Builds the obligation of an instance in `z3`, which must outlive it; memory lies in `arena`. */
void graft_obligation_build(graft_obligation *o, graft_arena *arena, Z3_context z3,
                            const graft_instance *instance);
void graft_obligation_close(graft_obligation *o);

/* Any question is true. */
Z3_ast graft_obligation_joined(const graft_obligation *o);

/* Question i under those assumptions that say something about what occurs in it. Symbols are
 * numbered in the order of their occurrence, so that questions which differ only in names are the
 * same term. */
Z3_ast graft_obligation_single(const graft_obligation *o, uint32_t i);

/* The same in an easier form. When `cut`, the largest terms that both sides contain are first
 * replaced by fresh symbols: whatever they are, the sides must agree. Then everything is multiplied
 * out, and applications of unknown functions, now equal only if they are the same term, become
 * symbols too. Unsatisfiable only if the question is; the converse holds when *exact: nothing was
 * replaced. *symbols is the number of symbols. */
Z3_ast graft_obligation_eased(const graft_obligation *o, uint32_t i, bool cut, bool *exact,
                              uint32_t *symbols);

/* Z3's simplifier set to multiply out: one sum of monomials for equal polynomials. */
Z3_params graft_obligation_som(Z3_context z3);

#endif

/* symmatch.h - which folds and elements are the same at some place.
 *
 * Two elements of a variable are the same when Z3 says that their indices are equal. Two folds are
 * the same when there is a one-to-one map between their binders, each going to another and a shift,
 * under which Z3 says that the ranges with their guards are the same set, and the bodies become the
 * same term once elements that are the same within the range are one; those in folds within the
 * bodies for all values of their binders, of which nothing is known. Maps are
 * proposed (hints.h). A sum without places is 0.
 *
 * A maximum is at most another when every place of its range goes to one of the other's at which
 * the body is the same term; what lies in the range of a maximum is at most the maximum. Where a
 * place goes is proposed. */
#ifndef GRAFT_SYMMATCH_H
#define GRAFT_SYMMATCH_H

#include "verify/core/symterm.h"

/* Replacements that make a list of terms free of folds, or of elements. */
typedef struct graft_sym_atoms {
    Z3_ast from[GRAFT_ROOM_ATOMS];
    Z3_ast to[GRAFT_ROOM_ATOMS];
    uint32_t count;
    bool full;
} graft_sym_atoms;

typedef enum graft_sym_atom {
    GRAFT_SYM_FOLDS,        /* The largest. */
    GRAFT_SYM_ELEMENTS,     /* Outside of folds. */
    GRAFT_SYM_ALL_ELEMENTS, /* Those in folds, too. */
    GRAFT_SYM_SIZES         /* That stand as numbers outside of folds. */
} graft_sym_atom;

/* Lists what of a kind is in `term` and not listed yet, in `from`. */
void graft_sym_list(const graft_sym *s, Z3_ast term, graft_sym_atom kind, graft_sym_atoms *atoms);
/* Gives each a symbol, those that are the same where `facts` hold the same one. */
void graft_sym_name_folds(graft_sym *s, const graft_facts *facts, graft_sym_atoms *folds);
/* Maps each element to the first that is the same where `facts` hold. */
void graft_sym_merge_elements(graft_sym *s, const graft_facts *facts, graft_sym_atoms *elements);
/* Whether `value`, which is a maximum or an element, is at most the maximum `fold` where `facts`
 * hold. */
bool graft_sym_is_below(graft_sym *s, const graft_facts *facts, Z3_ast value, Z3_ast fold);
Z3_ast graft_sym_replace(const graft_sym *s, const graft_sym_atoms *atoms, Z3_ast term);

#endif

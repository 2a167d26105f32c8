/* graphsizes.h - what the engine checks of a match in a graph whose sizes are terms, in the plain
 * reading (symplain.h): the shapes of a proof, over sizes that are given. */
#pragma once

#include "verify/core/symshape.h"

/* A match in a graph whose sizes are terms. Attributes are numbers there. */
typedef struct graft_sym_found {
    const graft_sym_shape *vars;
    const graft_shape *const *sample; /* Shapes of the variables at some sizes. */
    const bool *is_const;             /* By variable. */
    const int32_t *slots;
} graft_sym_found;

/* What the engine checks of a match, as claims, in the plain reading (symplain.h): the first
 * `*given` hold where the source does; the others are the precondition's and the target's, that
 * outputs have one shape, and that attributes of the target are what they are at the sample. Of the
 * case only ranks and what reshape and fill make are read. False when some check always fails or is
 * not understood, or when the target has an operator that a file gives a size as a number (split,
 * scale_shift) and that is none. */
bool graft_sym_claims_of_match(graft_sym *s, const graft_rule *rule, const graft_sym_case *c,
                               const graft_sym_found *found, graft_sym_equations *claims,
                               uint32_t *given);
/* The sizes of what an operator of a graph makes, of rank `made` where it says so itself. What its
 * checks claim is added to `claims`. False as above. */
bool graft_sym_apply(graft_sym_equations *claims, uint32_t op, const int32_t *attrs,
                     const graft_sym_shape *const in[], uint32_t made, graft_sym_shape *out);

/* A size or claim of these, in which Z3 knows every function: broadcasts are conditionals, and the
 * positions of windows whose strides are numbers are quotients. */
Z3_ast graft_sym_write_sizes(graft_sym *s, Z3_ast term);

/* symread.h - what each operator computes, over symbolic sizes: the value of a node as one term
 * over the index of its element.
 *
 * Scalar arithmetic is that of graph/operator_bodies.inc, run on scalars. Index maps, ranges of
 * sums and guards of padding are written here a second time, for the bodies' loops need numbers;
 * tests evaluate both at random shapes well beyond those of the bounded proofs and compare
 * (tests/verify/test_symbolic_reading.c).
 *
 * A reshape keeps row-major places: place<n>(i..., d...) is the place of index i in sizes d, and
 * part<n>_<k>(p, d...) the k-th part of the index of place p. Sizes of 1 are left out, axes on
 * which both shapes agree from the left or from the right are passed through, and parts of a place
 * and the place of parts cancel (symterm.h); nothing else is known of the two. */
#ifndef GRAFT_SYMREAD_H
#define GRAFT_SYMREAD_H

#include "verify/symshape.h"

enum { GRAFT_SYM_CONDITIONS_MOST = 64 };

/* Something that must hold of every element of a node for it to be defined. */
typedef struct graft_sym_condition {
    Z3_ast holds;          /* Over the formals. */
    graft_sym_shape shape; /* Of the node. */
    bool is_fact;          /* It holds: shape inference sees to it. */
} graft_sym_condition;

/* One side of a rule. */
typedef struct graft_sym_side {
    Z3_ast values[GRAFT_RULE_MAX_NODES][GRAFT_MAX_OUTPUTS];
    graft_sym_condition conditions[GRAFT_SYM_CONDITIONS_MOST];
    uint32_t condition_count;
} graft_sym_side;

/* Reads all nodes of a side; the solver holds the assumptions of `instance`. False when there are
 * more conditions than there is room for. */
bool graft_sym_read_side(graft_sym *s, const graft_sym_instance *instance, uint32_t side,
                         graft_sym_side *result);
/* The value of an operand over the formals. */
Z3_ast graft_sym_operand(const graft_sym *s, const graft_sym_instance *instance, uint32_t side,
                         const graft_sym_side *read, graft_operand x);

#endif

/* symread.h - what each operator computes, over symbolic sizes: the value of a node as one term
 * over the index of its element.
 *
 * The text is graph/meaning/reading.inc, over Z3 terms; scalar arithmetic is that of
 * graph/meaning/operator_bodies.inc, run on scalars. Tests evaluate the terms at random shapes well beyond
 * those of the bounded proofs and compare with the bodies (tests/verify/test_symbolic_reading.c).
 *
 * A reshape keeps row-major places: place<n>(i..., d...) is the place of index i in sizes d, and
 * part<n>_<k>(p, d...) the k-th part of the index of place p. Sizes of 1 are left out, axes on
 * which both shapes agree from the left or from the right are passed through, and parts of a place
 * and the place of parts cancel (symterm.h); nothing else is known of the two. */
#ifndef GRAFT_SYMREAD_H
#define GRAFT_SYMREAD_H

#include "verify/core/symshape.h"

/* A fact about every element of a node: shape inference sees to it. */
typedef struct graft_sym_fact {
    Z3_ast holds;          /* Over the formals, */
    graft_sym_shape shape; /* which lie in this shape. */
} graft_sym_fact;

/* Something that must hold for an element of a node to be defined, whatever the binders are where
 * `where` holds: it reads the operands there (caught.h says what that means). */
typedef struct graft_sym_condition {
    Z3_ast holds; /* Over the formals and binders. */
    Z3_ast where; /* The same; NULL: everywhere. */
    Z3_ast binders[GRAFT_ROOM_CONDITION_BINDERS];
    uint32_t binder_count;
    bool is_root;   /* Of the argument of a root; else of a divisor, */
    bool is_factor; /* whose reciprocal is a factor of the element as products and quotients go. */
    bool is_caught; /* The divisor's infinity may come out as a number. */
    bool is_signed; /* Of what was computed: the sign of a zero is none that a term tells. */
    bool is_of_div; /* Of the divisor of a `div`, which is infinite with either sign. */
} graft_sym_condition;

typedef struct graft_sym_conditions {
    graft_sym_condition items[GRAFT_ROOM_CONDITIONS];
    uint32_t count;
} graft_sym_conditions;

/* One side of a rule. */
typedef struct graft_sym_side {
    Z3_ast values[GRAFT_RULE_MAX_NODES][GRAFT_MAX_OUTPUTS];
    graft_sym_conditions conditions[GRAFT_RULE_MAX_NODES][GRAFT_MAX_OUTPUTS];
    graft_sym_fact facts[GRAFT_ROOM_CONDITIONS];
    uint32_t fact_count;
} graft_sym_side;

/* Reads all nodes of a side; the solver holds the assumptions of `instance`. False
 * when a limit was met (graft_sym_refuse). */
bool graft_sym_read_side(graft_sym *s, const graft_sym_instance *instance, uint32_t side,
                         graft_sym_side *result);
/* What an operand's element is defined under; of variables nothing. */
const graft_sym_conditions *graft_sym_operand_conditions(const graft_sym_side *read,
                                                         graft_operand x);
/* The value of an operand over the formals. */
Z3_ast graft_sym_operand(const graft_sym *s, const graft_sym_instance *instance,
                         const graft_sym_side *read, graft_operand x);

#endif

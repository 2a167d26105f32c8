/* symbits.h - the second reading of a rule: what each operator does to bits.
 *
 * Proofs of equality read arithmetic as that of real numbers (symread.h). With `graft_sym.numbers` set
 * the same reader, and so the same index maps, ranges and guards, builds other terms: an element is
 * the bits of a binary32 number, and every operation is an unknown function of such bits, the
 * text of operator_scalars.inc over those functions. Nothing else is known of the functions
 * here, so whatever Z3 rewrites in such a term holds for those of IEEE 754 too; what else does is
 * listed in symsame.h.
 *
 * Constants are their bits, so that the zeros of both signs are two constants. A float attribute
 * that is a slot is a symbol: a proof is about all its values. One that a program computes is equal
 * to nothing else, unless it is a slot's value under another name.
 *
 * Sums, means and maxima are folds (symfold.h) of kinds of their own. Binders stand in the order in
 * which the bodies loop, outermost first, and the fold goes through the range in that order,
 * leaving out what its guard leaves out:
 *      sum    begins with 0 and adds each;
 *      mean   is that sum divided by the number of summands, converted to a float;
 *      max    begins with the first and takes the maximum of what it has and each.
 * Ranges of means and maxima are never empty (engine/shapes.h sees to that). */
#pragma once

#include "graph/rule/pattern.h"
#include "verify/core/readings.h"

typedef enum graft_sym_operation {
    GRAFT_SYM_BITS_SUM,
    GRAFT_SYM_BITS_PRODUCT,
    GRAFT_SYM_BITS_DIFFERENCE,
    GRAFT_SYM_BITS_QUOTIENT,
    GRAFT_SYM_BITS_MAX,
    GRAFT_SYM_BITS_MIN,
    GRAFT_SYM_BITS_LEAKY_RELU, /* Of x and the slope. */
    GRAFT_SYM_BITS_ROUND,      /* Of x and the scale. */
    GRAFT_SYM_BITS_LESS,
    GRAFT_SYM_BITS_EQUAL,
    GRAFT_SYM_BITS_REMAINDER,
    GRAFT_SYM_BITS_WHERE,  /* Of two numbers: what is chosen of them where a condition holds... */
    GRAFT_SYM_BITS_CHOSEN, /* ...of the condition and that. */
    GRAFT_SYM_BITS_EXP,    /* From here on of one number. */
    GRAFT_SYM_BITS_SQRT,
    GRAFT_SYM_BITS_ERF,
    GRAFT_SYM_BITS_SIGMOID,
    GRAFT_SYM_BITS_TANH,
    GRAFT_SYM_BITS_SHIFT, /* What a softmax subtracts, of the row's maximum. */
    GRAFT_SYM_BITS_SIZE,  /* Of an integer: the float nearest to it. */
    GRAFT_SYM_BITS_COUNT
} graft_sym_operation;

/* The functions. */
typedef struct graft_sym_bits {
    graft_sym_numbers numbers; /* How they are read; comes first. */
    Z3_context z3;
    Z3_sort real; /* Bits are terms of the sort that elements have in the other reading. */
    Z3_func_decl operations[GRAFT_SYM_BITS_COUNT];
} graft_sym_bits;

/* s->numbers = &bits->numbers is the reading over them. */
void graft_sym_bits_open(const graft_sym *s, graft_sym_bits *bits);
/* Those of that reading. */
graft_sym_bits *graft_sym_bits_of(const graft_sym *s);

/* An operation on one number, y being NULL, or two. */
Z3_ast graft_sym_bits_apply(const graft_sym_bits *bits, graft_sym_operation operation, Z3_ast x,
                            Z3_ast y);
Z3_ast graft_sym_bits_constant(const graft_sym_bits *bits, uint32_t value);
/* Whether a term is one, and the number. */
bool graft_sym_bits_is_constant(const graft_sym *s, Z3_ast term, float *value);
/* A size as a number. */
Z3_ast graft_sym_bits_size(const graft_sym *s, Z3_ast size);

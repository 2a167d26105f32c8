/* guarded.h - operators over Z3 terms that know what they are defined under.
 *
 * A number is a term together with the divisors and roots that reach it. Definedness is that of one
 * element: a division by 0, or the root of a negative number, makes undefined the elements that it
 * reaches and no others. What it was made for and never read does not count.
 *
 * What an infinity may come out of as a number is *caught*: caught.h says what that means.
 */
#pragma once

#include "graph/meaning/algebra.h"
#include "verify/core/term.h"

/* Formulas are NULL where nothing is asked. */
typedef struct graft_guarded {
    Z3_ast term;
    Z3_ast roots;     /* What it takes roots and logarithms of is not negative. */
    Z3_ast ties;      /* The part of it about numbers other than elements. */
    Z3_ast divisors;  /* What it is divided by is not 0. */
    Z3_ast mixed;     /* The part of it about divisors whose reciprocals are not plain factors. */
    Z3_ast caught;    /* Nor what divides in other divisors, in the arguments of maxima, minima and
                        bounded functions. */
    Z3_ast computed;  /* The part of `divisors` that is about numbers other than elements: of a zero
                        that was computed no term tells the sign. */
    Z3_ast quotients; /* The part of `divisors` that is of quotients, not of logarithms, */
    Z3_ast tied;      /* and that of `caught`, which has to hold in the source beside a root. */
    Z3_ast needed; /* What has to hold in the source too: of computed divisors that are caught; of
                        all that goes into a comparison. */
} graft_guarded;

/* The free symbol of element `index` of variable `variable`, e.g. x2_17. */
Z3_ast graft_term_symbol(const graft_term_state *k, uint32_t variable, size_t index);

/* Runs one operator (see graft_term_run). Empties k->domain. */
void graft_guarded_run(graft_term_state *k, uint32_t op, const graft_call *call,
                       const graft_guarded *const in[], graft_guarded *const out[]);

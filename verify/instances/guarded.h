/* guarded.h - operators over Z3 terms that know what they are defined under.
 *
 * A number is a term together with the divisors and roots that reach it. Definedness is that of one
 * element: a division by 0, or the root of a negative number, makes undefined the elements that it
 * reaches and no others. What it was made for and never read does not count.
 *
 * An infinity that goes into a maximum, a minimum or a bounded function may come out as a number:
 * clip(1 / 0) is the upper bound. Divisors that reach an element so are *caught*. Those of the
 * source are not assumed to be something other than 0, for the source may be defined where they
 * are; those of the target must not be 0, as all its divisors. The exponential counts as bounded
 * here: exp(-1 / 0) is 0. A root of a negative number is no number wherever it goes.
 *
 * Why that is enough where a caught divisor of the source is 0: its reciprocal is an unknown number
 * u then, and what is proved holds for every u. All operators are continuous, also at infinity
 * where IEEE arithmetic does not say NaN, so that the source's number at an infinite u is the limit
 * of what it is at finite ones, and that is the target's number, which does not depend on u or is
 * defined for every u. Where it says NaN the source is undefined.
 */
#ifndef GRAFT_GUARDED_H
#define GRAFT_GUARDED_H

#include "verify/instances/term.h"

/* Formulas are NULL where nothing is asked. */
typedef struct graft_guarded {
    Z3_ast term;
    Z3_ast roots;    /* What it takes roots of is not negative. */
    Z3_ast divisors; /* What it is divided by is not 0. */
    Z3_ast caught; /* Nor what divides in the arguments of maxima, minima and bounded functions. */
} graft_guarded;

/* A symbol: defined. */
graft_guarded graft_guarded_symbol(const graft_term_state *k, uint32_t variable, size_t index);

/* Runs one operator (see graft_term_run). Empties k->domain. */
void graft_guarded_run(graft_term_state *k, uint32_t op, const graft_call *call,
                       const graft_guarded *const in[], graft_guarded *const out[]);

/* Whether an operator may let an infinity among its inputs come out as a number, with the
 * activation that it has (0 for operators without): the same of a whole operator as of the numbers
 * above. */
bool graft_guarded_catches(uint32_t op, int32_t activation);

#endif

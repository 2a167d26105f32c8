/* polynomial.h - a reading of the operators as canonical polynomials: a fast filter before the
 * solver and a cross-check of it, never a proof.
 *
 * Every element becomes a polynomial with rational coefficients over atoms: elements of the
 * variables, maxima, unknown functions, reciprocals. Maxima have a normal form of their own: nested
 * ones are flattened, the least coefficients are taken out (so max(x, -x) = 2 max(x, 0) - x), then
 * the non-negative content, and members that another one dominates are dropped. Known laws of
 * functions: exp(a + b) = exp(a) exp(b), tanh and erf are odd, sigmoid(-x) = 1 - sigmoid(x).
 * Divisors are taken to be different from 0. Equal normal forms mean equal values; different ones
 * mean different values only where no atom but variables occurs. */
#ifndef GRAFT_POLYNOMIAL_H
#define GRAFT_POLYNOMIAL_H

#include "verify/instances/instance.h"

typedef enum graft_polynomial_verdict {
    GRAFT_POLYNOMIAL_EQUAL,
    GRAFT_POLYNOMIAL_DIFFERENT, /* Some element is another polynomial of the variables. */
    GRAFT_POLYNOMIAL_UNKNOWN    /* Normal forms differ in other atoms, or grew too large. */
} graft_polynomial_verdict;

/* Compares the two sides of an instance element by element. */
graft_polynomial_verdict graft_polynomial_compare(graft_env *env, const graft_instance *instance);

#endif

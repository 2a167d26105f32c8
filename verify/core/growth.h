/* growth.h - that exp, sigmoid, tanh, erf, sqrt, round and scaled grow.
 *
 * A fact about pairs of applications, so there are many of it: they are told only where the laws of
 * single applications (term.h) were not enough, and of what occurs in one question. */
#ifndef GRAFT_GROWTH_H
#define GRAFT_GROWTH_H

#include "verify/core/term.h"

/* For each two applications f(x), f(y) of a growing function in `term` that x <= y implies
 * f(x) <= f(y) and y <= x implies f(y) <= f(x), where f is defined, and the same of f(x) and f(0);
 * of the first few of each function. `true` when there are none. */
Z3_ast graft_growth_laws(const graft_term_state *k, Z3_ast term);

#endif

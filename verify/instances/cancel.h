/* cancel.h - x / x = 1 inside of terms.
 *
 * That t inverse(t) = 1 where t is not 0 is a law that Z3 is told (term.h), and enough where the
 * product stands in a sum. In the argument of a function it is not: that exp(t inverse(t) x) is
 * exp(x) would need the product to be known equal to x before the functions are compared. */
#pragma once

#include "graph/base/arena.h"
#include "verify/core/term.h"

/* `term` without the pairs t, inverse(t) of factors of its products, for each t that is not 0 by
 * one of the conditions "not (t = 0)" in `given` (`count` of them). Equal to `term` where these
 * hold. */
Z3_ast graft_cancel(const graft_term_state *k, Z3_ast term, const Z3_ast *given, uint32_t count);

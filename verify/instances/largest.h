/* largest.h - maxima of maxima as one, in a fixed order.
 *
 * The largest of some numbers is the same in whatever order, and however often, they are compared.
 * Z3 finds that out case by case, which it gives up on for windows of some dozen elements. */
#pragma once

#include "graph/base/arena.h"
#include "verify/core/term.h"

/* `term` with each nest of maxima (a >= b ? a : b) written as one chain over its distinct operands,
 * in the order of their identities; nests of more than a few hundred stay. Equal to `term`. */
Z3_ast graft_largest(Z3_context z3, Z3_ast term);

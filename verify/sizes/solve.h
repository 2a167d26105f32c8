/* solve.h - for which of its symbols an equation between sizes is solved, proposed to a proof
 * (hints.h). */
#pragma once

#include "verify/core/hints.h"

/* Finds a symbol that stands alone in a difference, once the factor that all its summands have is
 * left out (paddings that are the same on both sides come twice): that of an attribute where there
 * is one, for sizes read better. False when there is none. */
bool graft_sym_find_solution(const graft_sym *s, Z3_ast difference, graft_sym_solution *x);

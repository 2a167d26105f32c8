/* symmax.h - which maxima are at most which.
 *
 * A maximum is at most another when every place of its range goes to one of the other's at which
 * the body is the same term; what lies in the range of a maximum is at most the maximum. Where a
 * place goes is proposed (hints.h).
 */
#ifndef GRAFT_SYMMAX_H
#define GRAFT_SYMMAX_H

#include "verify/core/symterm.h"

/* Whether `value`, which is a maximum or an element, is at most the maximum `fold` where `facts`
 * hold. */
bool graft_sym_is_below(graft_sym *s, const graft_facts *facts, Z3_ast value, Z3_ast fold);

#endif

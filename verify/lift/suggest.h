/* suggest.h - the one precondition that would make a wrong rule true.
 *
 * The vocabulary is what rules are given preconditions in: equal shapes, ranks, equal sizes, sizes
 * that are 1, attributes that are equal, ordered, constant, a size, or divide a size. At instances
 * of the rule it is known where the sides agree. A condition that is false wherever they differ,
 * and true at as many of the others as possible, is proposed, and is a suggestion once the rule
 * with it has been proved. */
#pragma once

#include "verify/check.h"

/* Finds the precondition; NULL when none of the vocabulary does it. `rule` is valid and was refuted
 * by the sweep. The text lies in env->unit, which is not given back. */
const char *graft_suggest_condition(graft_env *env, const graft_sweeper *sweeper,
                                    const graft_rule *rule, const graft_check_options *options);

/* subsume.h - whether a rule is only a case of another one.
 *
 * The engine decides: at sample points of the rule, its source is built as a graph, the other rule
 * is applied wherever it matches, and the result is compared with the rule's target. So instances
 * of a more general rule, rules in a context, renamings and commuted operands are all recognised,
 * by the very matching that will be used. */
#pragma once

#include "verify/instances/instance.h"

/* Whether one application of `other` does what `rule` does at each of `count` points (instances of
 * `rule`, at least one). */
bool graft_rule_follows(graft_env *env, const graft_rule *rule, const graft_point *points,
                        uint32_t count, const graft_rule *other);

/* Operators that `rule` saves per inference in the best case: where its variables are such that as
 * many as possible of the target's operators depend on weights alone. INT32_MIN when its outputs
 * depend on no variable, so that the engine never matches it. */
int32_t graft_rule_gain(const graft_rule *rule);

/* symmodel.h - instances that Z3 finds: sizes and attributes that a rule's operators and
 * precondition allow and that nobody would draw, since they are related to one another.
 *
 * In each case of a proof for all sizes (symcase.h) what the engine lets through is a formula. Z3
 * is asked for numbers that make it true, and, of each comparison in it and in the rule's
 * expressions, for numbers at which that is true, and false: with sizes of 2 and more wherever that
 * can be. What it answers is a proposal; whether it is an instance is for graft_instance_build to
 * say. */
#pragma once

#include "verify/instances/instance.h"
#include "verify/instances/prove.h"

/* At most `most` points that Z3 says are instances, and that are; takes at most `resources` of Z3's
 * count. Returns how many. */
uint32_t graft_symbolic_models(graft_env *env, const graft_rule *rule, uint64_t resources,
                               graft_point *points, uint32_t most);

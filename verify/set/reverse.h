/* reverse.h - a rule read from right to left.
 *
 * The target becomes the pattern to match. Its constant attributes and those that are slots match
 * as they are; an attribute that the target computes becomes a slot of its own, and that it has the
 * computed value becomes part of the precondition. A rule cannot be reversed when its target does
 * not name every variable, or not every attribute that the source needs. The reverse of a proved
 * rule is equal to it wherever both sides are defined, but it may be defined in other places: it
 * needs a proof of its own. */
#pragma once

#include "graph/rule/rulefile.h"
#include "verify/instances/instance.h"

/* Makes the reverse of a valid rule; NULL, or why there is none (static text; `reversed` is then
 * untouched). */
const char *graft_rule_reverse(const graft_rule *rule, graft_rule *reversed);

/* The point of the reverse that has the shapes of a point of the rule, and the attributes that the
 * rule's target has there. False when `point` is no instance of the rule. */
bool graft_rule_reverse_point(const graft_rule *rule, const graft_rule *reversed,
                              const graft_point *point, graft_point *turned);
/* The name of the rule of the set that does what the reverse of an entry does, at instances of that
 * which are turned round; NULL: none does. */
const char *graft_rule_find_reverse(graft_env *env, const graft_ruleset *set,
                                    const graft_rule_entry *entry, const graft_rule *reversed);

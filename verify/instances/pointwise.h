/* pointwise.h - rules whose proof for scalars is a proof for tensors of every shape.
 *
 * Let every operator of a rule be elementwise: element i of its output is f of the elements that
 * broadcasting assigns to i. Broadcasting aligns axes from the last one and repeats sizes of 1, so
 * the element of a variable that reaches element i of the rule's output is the same however many
 * operators lie between them: an intermediate axis of size 1 comes from axes of size 1. Both sides
 * of the rule have the same output shape (the engine refuses a match where they have not), so they
 * give element i the same elements of the same variables, and the two sides of the rule at i are
 * its two sides at scalars. What Z3 proves of scalars therefore holds at every i of every shape.
 * `fill` repeats one number and may take part; its size plays no role. Numbers must be constants of
 * the rule: a slot would stand for all numbers. */
#ifndef GRAFT_POINTWISE_H
#define GRAFT_POINTWISE_H

#include "verify/instances/instance.h"

/* Makes the rule over scalars, without its precondition, and the one point it has; false when the
 * rule is not of this kind. The rule must be valid. */
bool graft_pointwise_rule(const graft_rule *rule, graft_rule *scalar, graft_point *point);

#endif

/* canon.h - one form for all rules that differ only in names: of variables, slots and nodes, the
 * order of outputs, of the operands of commutative operators and of programs in the byte code. */
#pragma once

#include "verify/instances/instance.h"

/* Brings a valid rule into its canonical form: the one whose packed bytes are least. Nodes are in
 * preorder from the outputs (source) and in postorder (target), target nodes without use are gone.
 * `point` (may be NULL) is a point of the rule and stays one. */
void graft_rule_canonicalise(graft_rule *rule, graft_point *point);

/* Whether source and target are the same up to the order of commutative operands. */
bool graft_rule_is_trivial(const graft_rule *rule);

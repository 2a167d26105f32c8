/* pattern.h - operators by name; orders and reachability of those of a pattern. */
#pragma once

#include "graft/rule.h"

/* The operator of this name in graft/operators.def; GRAFT_OP_NONE: there is none. */
uint32_t graft_op_named(const char *name);

/* Nodes of a pattern in the order in which data meets them: operands before their consumers, of
 * those that are ready always the one with the least number. */
void graft_pattern_order(const graft_pattern *pattern, uint8_t order[GRAFT_RULE_MAX_NODES]);

/* Which nodes of a pattern depend on one of the variables in `vars` (bit v: variable v); bit n of
 * the result is node n. */
uint32_t graft_pattern_reached(const graft_pattern *pattern, uint32_t vars);

/* pattern.h - the order of the operators of a pattern. */
#pragma once

#include "graft/rule.h"

/* Nodes of a pattern in the order in which data meets them: operands before their consumers, of
 * those that are ready always the one with the least number. */
void graft_pattern_order(const graft_pattern *pattern, uint8_t order[GRAFT_RULE_MAX_NODES]);

/* pattern.h - the order of the operators of a pattern, and which of its tensors are booleans. */
#pragma once

#include "graft/rule.h"

/* Nodes of a pattern in the order in which data meets them: operands before their consumers, of
 * those that are ready always the one with the least number. */
void graft_pattern_order(const graft_pattern *pattern, uint8_t order[GRAFT_RULE_MAX_NODES]);

/* The variables, a bit each, that are booleans wherever the rule applies: what a Not or the condition
 * of a select reads in its source, and what is moved together with, or goes into a min or max
 * with, such a tensor or the result of a comparison. */
uint32_t graft_rule_booleans(const graft_rule *rule);

/* pattern.h - orders and reachability of the operators of a pattern. */
#ifndef GRAFT_PATTERN_H
#define GRAFT_PATTERN_H

#include "graft/rule.h"

/* Nodes of a pattern in the order in which data meets them: operands before their consumers, of
 * those that are ready always the one with the least number. */
void graft_pattern_order(const graft_pattern *pattern, uint8_t order[GRAFT_RULE_MAX_NODES]);

/* Which nodes of a pattern depend on one of the variables in `vars` (bit v: variable v); bit n of
 * the result is node n. */
uint32_t graft_pattern_reached(const graft_pattern *pattern, uint32_t vars);

/* Whether each output comes through the same operators on both sides, those apart that only move or
 * choose. A rule of class exact for which this holds gives the same bits in float16 and bfloat16
 * too, also where a runtime computes an operator in a wider type and rounds once behind it; one that
 * fuses two operators is rounded at fewer places then. */
bool graft_rule_rounds_alike(const graft_rule *rule);

#endif

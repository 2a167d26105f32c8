/* rounding.h - rules in float16 and bfloat16, where operators compute in binary32, most of them, and
 * round once. */
#pragma once

#include "graft/rule.h"

/* Whether both sides round alike: from each variable to each output lead the same chains of
 * operators, those apart that only move or choose, and nothing is computed where all operands may
 * be numbers that the rule names, as fills and paddings are. A rule of class exact for which this
 * holds gives the same bits in float16 and bfloat16 too, also where a runtime computes an operator
 * in a wider type and rounds once behind it; one that fuses two operators is rounded at fewer
 * places then. False too for a side of more chains than are told apart. */
bool graft_rule_rounds_alike(const graft_rule *rule);

/* Rounds the numbers of a rule's fills to float16 or bfloat16, as a model of that type has them:
 * the root of 2 in a Gelu is 1.4140625 there. True when one changed; a rule with one that
 * overflows, or changes by more than its 256th part, stays as it is. No proof speaks of the rule
 * that comes out. */
bool graft_rule_round(graft_rule *rule, uint32_t dtype);

/* ruleparse.h - a rule from the text that graft_rule_print_line writes (see ruleprint.h):
 *
 *      rule      = side "=" side ["where" condition]
 *      side      = term | "[" term { "," term } "]"
 *      term      = letter | operator ["#" number] "(" [term { "," term }] { "," name "=" value }
 * ")" ["." digit] value     = expression | "[" expression { "," expression } "]" | activation
 *      condition = expressions joined by "or", "and", "not", "=", "<=", "divides(,)",
 * "same_shape(,)", "const()", "fle(,)" expression= whole number, decimal, "#k.name",
 * "dim(letter,axis)", "rank(letter)", "min(,)", "max(,)", "fmin(,)", "fmax(,)", + - * / mod,
 * parentheses
 *
 * A source operator with a number that is new owns a slot for each attribute that is not written;
 * one with a known number takes those of the same name. In the target "#k" takes attributes by
 * name. Variables are the letters from a on, without gaps, in any order. Every other attribute must
 * be written (past the rank, sizes and axes in brackets are 0). Attributes of float kind are
 * decimals ("0.5", "inf"). */
#ifndef GRAFT_RULEPARSE_H
#define GRAFT_RULEPARSE_H

#include "env.h"

/* Parses one rule. GRAFT_BAD_INPUT, naming the column and what was expected there; also when the
 * rule does not pass graft_rule_check. `name` stands in front of messages. */
GRAFT_MUST_USE graft_status graft_rule_parse(graft_env *env, const char *name, const char *text,
                                             graft_rule *rule);

#endif

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
 * decimals ("0.5", "inf"), and so are numbers inside fmin, fmax and fle. */
#pragma once

#include "graph/base/env.h"

/* The operator of this name in graft/operators.def; GRAFT_OP_NONE: there is none. */
uint32_t graft_op_named(const char *name);

/* Parses one rule. GRAFT_BAD_INPUT, naming the column and what was expected there; also when the
 * rule does not pass graft_rule_check. `name` stands in front of messages. */
GRAFT_MUST_USE graft_status graft_rule_parse(graft_env *env, const char *name, const char *text,
                                             graft_rule *rule);

/* A piece of a rule's text and what stands for its place in messages, e.g. "my.yaml:4: source". */
typedef struct graft_rule_part {
    const char *name;
    const char *text;
} graft_rule_part;

/* The number that a text gives to the source operator which graft_rule_print_number calls k; 0:
 * there is none. */
typedef struct graft_rule_numbers {
    uint8_t given[GRAFT_RULE_MAX_NODES + 1];
} graft_rule_numbers;

/* A rule as separate texts; all of the preconditions must hold. */
typedef struct graft_rule_parts {
    graft_rule_part source;
    graft_rule_part target;
    const graft_rule_part *where; /* `where_count` of them. */
    uint32_t where_count;
} graft_rule_parts;

/* Parses a rule from its parts. Messages name the part. `numbers` may be NULL. Fails as
 * graft_rule_parse does. */
GRAFT_MUST_USE graft_status graft_rule_parse_parts(graft_env *env, const graft_rule_parts *parts,
                                                   graft_rule *rule, graft_rule_numbers *numbers);

/* Call it when an expression was written from offset `start` to the end of the code: drops it where
 * the same expression stands before. Returns the offset to refer to. So rules that say the same
 * have the same bytes, whoever wrote them. */
uint32_t graft_code_share(graft_rule *rule, uint32_t start);

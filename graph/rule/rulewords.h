/* rulewords.h - a rule in words and as a picture, for people.
 *
 *      t1 = conv#1(a, b) with any stride_h, ... groups          source, one line an operator
 *      dim_0 = size of axis 0 of b                              a computed attribute
 *      groups of #1 divides size of axis 0 of b                 a precondition
 */
#pragma once

#include "graph/base/json.h"

/* The parts of a valid rule's precondition that must all hold, each as a phrase; `count` of them, 0
 * when there is none. */
const char *const *graft_rule_words_where(graft_arena *arena, const graft_rule *rule,
                                          uint32_t *count);
/* Appends the steps of one side, one line each, indented by four blanks. */
void graft_rule_words_steps(graft_buffer *out, const graft_rule *rule, bool is_source);

/* A Graphviz digraph: source and target as clusters side by side, operators as boxes with the
 * attributes that are fixed or computed, variables and outputs as ellipses. `name` is the label. */
void graft_rule_picture(graft_buffer *out, const graft_rule *rule, const char *name);

/* The same for a page: adds "source" and "target" to `json`, each {"nodes": [{"op", "with", "in"}],
 * "out"}, in the order in which data meets the operators. An operand is a variable's letter, or a
 * place in the list, ".1" behind it for the second output. */
void graft_rule_sketch(graft_json *json, graft_arena *arena, const graft_rule *rule);

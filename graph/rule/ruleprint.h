/* ruleprint.h - a rule as one line of text, for listings, messages and scripts.
 *
 *      scale_shift(conv#1(a, b), c, d)                                                  source
 *      conv_bias#1(a, mul(b, reshape(c, dims=[dim(c,0), 1, 1, 1])), d, activation=none) target
 *      divides(#1.groups, dim(b,0))                                                     where
 *
 * Variables are letters. Attributes are written name=value, after the operands. "#k" gives a source
 * operator's attributes a number: a later operator with the same number takes every attribute of
 * the same name from it, and "#1.groups" is that one attribute. A subterm that is written twice is
 * one operator; ".0" and ".1" are the outputs of an operator that has two. */
#pragma once

#include "graph/base/file.h"

typedef struct graft_rule_text {
    const char *source; /* "f(a)", or "[f(a), g(a)]" for several outputs. */
    const char *target;
    const char *where; /* "" when there is no precondition. */
} graft_rule_text;

/* Prints a valid rule into `arena`. */
graft_rule_text graft_rule_print(graft_arena *arena, const graft_rule *rule);
/* "source = target where condition". */
const char *graft_rule_print_line(graft_arena *arena, const graft_rule *rule);
/* The name of a slot, e.g. "#1.groups". */
const char *graft_rule_print_slot(graft_arena *arena, const graft_rule *rule, uint32_t slot);
/* An attribute, of kind `kind` (graft_attr_kind): "2", "relu", "#1.groups", "dim(b,0) + 1". */
const char *graft_rule_print_term(graft_arena *arena, const graft_rule *rule,
                                  const graft_term *term, uint32_t kind);
/* The number k of "#k" that a source node has; 0: none. */
uint32_t graft_rule_print_number(const graft_rule *rule, uint32_t node);
/* Names the operators of both sides in data-flow order: "conv-scale_shift=>mul-conv_bias". */
const char *graft_rule_print_name(graft_arena *arena, const graft_rule *rule);

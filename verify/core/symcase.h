/* symcase.h - the cases of a proof for all sizes: everything about an instance that is not a size.
 *
 * A case fixes the rank of each variable, the attributes that choose axes, modes and activations,
 * which bounds of `clip` are infinite, and the ranks that `reshape` and `fill` make. There are
 * finitely many, up to the engine's limit on ranks, and all of them are visited whose ranks fit on
 * both sides. Sizes, and attributes that are sizes or numbers, stay symbolic.
 *
 * A rule all of whose operators are elementwise has one case of ranks, scalars. Element i of such an
 * operator's output is f of the elements that broadcasting assigns to i. Broadcasting aligns axes
 * from the last one and repeats sizes of 1, so the element of a variable that reaches element i of
 * the rule's output is the same however many operators lie between them: an intermediate axis of
 * size 1 comes from axes of size 1. Both sides of the rule have the same output shape (the engine
 * refuses a match where they have not), so they give element i the same elements of the same
 * variables, and the two sides at i are the two sides at scalars. What is proved of scalars holds
 * at every i of every shape. `fill` repeats one number and may take part; its size plays no role,
 * and the shapes that programs read may be any. */
#ifndef GRAFT_SYMCASE_H
#define GRAFT_SYMCASE_H

#include "graft/rule.h"

#include <stdbool.h>

enum { GRAFT_SYM_SOURCE = 0, GRAFT_SYM_TARGET = 1 };

const graft_pattern *graft_sym_pattern(const graft_rule *rule, uint32_t side);

typedef struct graft_sym_case {
    int8_t ranks[GRAFT_RULE_MAX_VARS];
    int8_t slots[GRAFT_RULE_MAX_SLOTS];    /* Of the chosen slots. */
    bool chosen[GRAFT_RULE_MAX_SLOTS];     /* Slots that choose an axis, a mode or an activation. */
    int8_t infinite[GRAFT_RULE_MAX_SLOTS]; /* Float slots: -1, 1 for infinities, 0 for numbers. */
    int8_t made[2][GRAFT_RULE_MAX_NODES];  /* By side and node: the rank that a reshape or fill
                                              makes. */
    int8_t node_ranks[2][GRAFT_RULE_MAX_NODES]; /* By side and node; negative: depends on sizes. */
    bool scalar; /* For an elementwise rule, scalars stand for all. */
} graft_sym_case;

/* Is given each case; false ends the enumeration. */
typedef bool (*graft_sym_case_visitor)(void *context, const graft_sym_case *c);

/* Visits the cases of a valid rule in a fixed order. False when a visitor ended it. */
bool graft_sym_cases(const graft_rule *rule, graft_sym_case_visitor visit, void *context);

/* Whether an attribute is fixed by the case rather than symbolic. */
bool graft_sym_is_choice(uint32_t op, uint32_t attr);

/* The value of an attribute of a node that the case fixes; false when it depends on sizes. */
bool graft_sym_case_attr(const graft_rule *rule, const graft_sym_case *c,
                         const graft_pattern_node *node, uint32_t attr, int32_t *value);

#endif

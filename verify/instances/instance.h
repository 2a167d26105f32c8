/* instance.h - a rule at one point of its domain: concrete shapes for the variables and values for
 * the slots, with every attribute computed and every shape inferred on both sides.
 *
 * This is what graft_apply would do at a match with these shapes, by the same shape inference and
 * the same byte code: a point is an instance exactly when the engine would let the rule through. */
#pragma once

#include "graph/base/env.h"

typedef struct graft_point {
    graft_shape vars[GRAFT_RULE_MAX_VARS];
    int32_t slots[GRAFT_RULE_MAX_SLOTS];
} graft_point;

typedef enum graft_fit {
    GRAFT_FIT_OK,
    GRAFT_FIT_SOURCE,    /* The source's shapes do not infer: nothing there to match. */
    GRAFT_FIT_CONDITION, /* The precondition is false. */
    GRAFT_FIT_TARGET     /* The target's shapes do not infer, or its outputs have others: the engine
                            refuses the match. */
} graft_fit;

/* One side of a rule at a point. */
typedef struct graft_side {
    const graft_pattern *pattern;
    uint8_t order[GRAFT_RULE_MAX_NODES]; /* Nodes, operands first. */
    int32_t attrs[GRAFT_RULE_MAX_NODES][GRAFT_MAX_ATTRS];
    graft_shape shapes[GRAFT_RULE_MAX_NODES][GRAFT_MAX_OUTPUTS];
} graft_side;

typedef struct graft_instance {
    const graft_rule *rule;
    const graft_point *point;
    graft_shape vars[GRAFT_RULE_MAX_VARS]; /* The point's, of the types that the rule gives them. */
    graft_side source;
    graft_side target;
} graft_instance;

/* Fills `instance`, which borrows rule and point; complete only when GRAFT_FIT_OK is returned. The
 * rule must be valid. Every variable counts as const when the precondition asks. */
graft_fit graft_instance_build(graft_instance *instance, const graft_rule *rule,
                               const graft_point *point);
/* Why a point is no instance, in `arena`: "source: matmul: inner dimensions differ", "target:
 * output 0 is 3x2, in the source 2x3"; NULL when it is one. `*progress` (may be NULL) is set to the
 * number of operators whose shapes fit. */
const char *graft_instance_explain(graft_arena *arena, const graft_rule *rule,
                                   const graft_point *point, uint32_t *progress);
/* The shape of an operand on one side. */
const graft_shape *graft_instance_shape(const graft_instance *instance, const graft_side *side,
                                        graft_operand operand);
/* That of an output of the rule. */
const graft_shape *graft_instance_output(const graft_instance *instance, uint32_t output);
/* Multiply-adds and the like on both sides: how much work evaluating the instance is. */
uint64_t graft_instance_work(const graft_instance *instance);
/* What the program at `offset` computes at a point, every variable being const; false where it
 * fails. */
bool graft_point_compute(const graft_rule *rule, uint32_t offset, const graft_point *point,
                         int64_t *result);
/* The first attribute of the source that a slot of a valid rule is. */
const graft_attr_info *graft_slot_attr(const graft_rule *rule, uint32_t slot);
/* "a: 2x3, b: 3; #1.groups=2": the point as text, slots named as graft_rule_print names them. */
const char *graft_point_print(graft_arena *arena, const graft_rule *rule, const graft_point *point);

/* mutate.h - small changes to a rule, each of a named class: what somebody who writes rules, or a
 * program that infers them, gets wrong. A mutant need not be false; a witness must say so. */
#pragma once

#include "graph/base/env.h"
#include "graph/base/rng.h"

typedef enum mutate_class {
    MUTATE_SWAPPED_OPERANDS, /* Of an operator of either side that does not commute. */
    MUTATE_OTHER_OPERAND,    /* A variable of the target in place of another. */
    MUTATE_OTHER_OPERATOR,   /* max for min, tanh for sigmoid, reduce_sum for reduce_mean... */
    MUTATE_LEFT_OUT,         /* An operator of the target. */
    MUTATE_SWAPPED_OUTPUTS,  /* Of the rule, or .0 and .1 of a split. */
    MUTATE_DROPPED_CONDITION,
    MUTATE_WEAKENED_CONDITION, /* = to <=, "and" to "or", a bound or an axis by one. */
    MUTATE_UNTIED_ATTRIBUTES,  /* Two attributes of the source that had to be equal. */
    MUTATE_FREED_ATTRIBUTE,    /* A constant of the source becomes a variable. */
    MUTATE_WRONG_AXIS,         /* Of the target, by one. */
    MUTATE_WRONG_WINDOW,       /* Stride, padding, dilation, kernel or groups of the target. */
    MUTATE_OFF_BY_ONE,         /* A size, split or slice of the target. */
    MUTATE_WRONG_NUMBER,       /* A real constant of the target. */
    MUTATE_WRONG_ACTIVATION,   /* Of a fused operator of the target. */
    MUTATE_CLASS_COUNT
} mutate_class;

/* "swapped-operands"... */
const char *mutate_class_name(uint32_t class);

/* A random change of a class. False when the rule has no place for it, or what comes out is no
 * rule, or is the same. The mutant has gone through its text and back. */
bool mutate_rule(graft_env *env, graft_rng *rng, const graft_rule *rule, uint32_t class,
                 graft_rule *mutant);

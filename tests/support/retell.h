/* retell.h - a rule in other words, or a special case of it, or the rule inside an operator: what
 * is true of the rule is true of it. */
#pragma once

#include "graph/base/env.h"
#include "graph/base/rng.h"

typedef enum retell_class {
    RETELL_RENAMED,    /* Variables. */
    RETELL_COMMUTED,   /* Operands of additions, products, maxima. */
    RETELL_REORDERED,  /* Outputs. */
    RETELL_BOUND,      /* An attribute variable has a value. */
    RETELL_IDENTIFIED, /* Two variables are one. */
    RETELL_IN_CONTEXT, /* Both sides under one more operator. */
    RETELL_CLASS_COUNT
} retell_class;

/* "renamed"... */
const char *retell_class_name(uint32_t class);
/* False when there is nothing to change, or what comes out is no rule. */
bool retell_rule(graft_env *env, graft_rng *rng, const graft_rule *rule, uint32_t class,
                 graft_rule *told);

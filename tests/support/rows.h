/* rows.h - rules in a file of tests/verify/rules/, one a line, behind what is expected of it:
 *
 *      # a comment
 *      + relu(relu(a)) = relu(a)       it holds
 *      - matmul(a, b) = matmul(b, a)   it does not */
#pragma once

#include "graph/rule/rulefile.h"

typedef struct rule_rows {
    graft_rule *rules;
    const char **texts;
    bool *holds;
    uint32_t count;
} rule_rows;

/* Reads "tests/verify/rules/NAME.txt" into env->life; asserts that it can. */
rule_rows rows_read(graft_env *env, const char *name);
/* Those that hold, or those that do not. */
rule_rows rows_of(graft_env *env, const rule_rows *all, bool holds);

/* The rules of rules/graft.rules, in env->life; asserts that they can be read. */
graft_ruleset rows_committed(graft_env *env);

/* The rule; the test fails, with the parser's message, when it is none. */
graft_rule rows_parse(graft_env *env, const char *text);

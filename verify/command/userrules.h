/* userrules.h - rules that users write, as YAML (docs/rule-format.md):
 *
 *      rules:
 *        - name: fuse-relu
 *          source: relu(conv_bias#1(a, b, c, activation=none))
 *          target: conv_bias#1(a, b, c, activation=relu)
 *          where: ["#1.groups = 1"]
 */
#pragma once

#include "graph/base/bytes.h"
#include "graph/base/settings.h"
#include "graph/rule/ruleparse.h"

typedef struct graft_user_rule {
    graft_rule rule;
    graft_rule_numbers numbers; /* That its text gives to operators. */
    const char *fault;  /* Why it cannot be read, "file:line: ..."; NULL: it can. Of one that cannot
                           only what follows up to `line` is known. */
    const char *name;   /* "" when there is none that can be read. */
    const char *family; /* "user" unless the file names another. */
    uint32_t line;      /* Of its name, or of the rule, */
    uint32_t source_line;
    uint32_t target_line;
    uint32_t where_line; /* of its first precondition; 0: it has none. */
} graft_user_rule;

/* Reads a file's rules into `arena`. GRAFT_IO when it cannot be read; GRAFT_BAD_INPUT, naming file
 * and line, for faults of YAML and where no list of rules is. What is wrong with one rule is its
 * `fault`, which names file, line, part and column and what was expected there: unknown or missing
 * keys, a name that another has, faults of syntax and arity, and what graft_rule_check refuses. */
GRAFT_MUST_USE graft_status graft_user_rules_read(graft_env *env, graft_arena *arena,
                                                  const char *path, graft_user_rule **rules,
                                                  uint32_t *count);
/* Same, from memory. */
GRAFT_MUST_USE graft_status graft_user_rules_parse(graft_env *env, graft_arena *arena,
                                                   graft_bytes bytes, graft_user_rule **rules,
                                                   uint32_t *count);

/* A text about the rule ("#2.at = 1") with the numbers that its author gave to operators. */
const char *graft_user_rule_retell(graft_arena *arena, const graft_user_rule *rule,
                                   const char *text);

/* Whether a rule has instances at all within the verifier's bounds. GRAFT_BAD_INPUT "file:line:
 * ..." when no shapes fit the source, the precondition never holds, or the target does not fit (or
 * gives other shapes) where the source does: says which operator misfits, and at which shapes. */
GRAFT_MUST_USE graft_status graft_user_rule_check_shapes(graft_env *env, const char *file,
                                                         const graft_user_rule *rule);

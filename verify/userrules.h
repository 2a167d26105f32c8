/* userrules.h - rules that users write, as YAML (docs/rule-format.md):
 *
 *      rules:
 *        - name: fuse-relu
 *          source: relu(conv_bias#1(a, b, c, activation=none))
 *          target: conv_bias#1(a, b, c, activation=relu)
 *          where: ["#1.groups = 1"]
 */
#ifndef GRAFT_USERRULES_H
#define GRAFT_USERRULES_H

#include "graph/bytes.h"
#include "graph/settings.h"

typedef struct graft_user_rule {
    graft_rule rule;
    const char *name;
    const char *family; /* "user" unless the file names another. */
    uint32_t line;      /* Of its name, */
    uint32_t source_line;
    uint32_t target_line;
    uint32_t where_line; /* of its first precondition; 0: it has none. */
} graft_user_rule;

/* Reads a file's rules into `arena`. GRAFT_IO when it cannot be read; GRAFT_BAD_INPUT, naming file,
 * line, part and column and what was expected there, for faults of YAML, unknown or missing keys,
 * names that occur twice, faults of syntax and arity, and rules that fail graft_rule_check. */
GRAFT_MUST_USE graft_status graft_user_rules_read(graft_env *env, graft_arena *arena,
                                                  const char *path, graft_user_rule **rules,
                                                  uint32_t *count);
/* Same, from memory. */
GRAFT_MUST_USE graft_status graft_user_rules_parse(graft_env *env, graft_arena *arena,
                                                   graft_bytes bytes, graft_user_rule **rules,
                                                   uint32_t *count);

/* Whether a rule has instances at all within the verifier's bounds. GRAFT_BAD_INPUT "file:line:
 * ..." when no shapes fit the source, the precondition never holds, or the target does not fit (or
 * gives other shapes) where the source does: says which operator misfits, and at which shapes. */
GRAFT_MUST_USE graft_status graft_user_rule_check_shapes(graft_env *env, const char *file,
                                                         const graft_user_rule *rule);

#endif

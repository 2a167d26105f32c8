/* command.h - the commands of this folder, for the table in main.c. */
#ifndef GRAFT_VERIFY_COMMAND_H
#define GRAFT_VERIFY_COMMAND_H

#include "graph/env.h"

/* graft rules [FILE] [--uses OPERATOR] [--json]: lists a rule set, rules/graft.rules unless another
 * is named.
 * graft rules --generate DIR: enumerates DIR/families, proves, and writes DIR/graft.rules and
 * DIR/README.md. */
GRAFT_MUST_USE graft_status graft_command_rules(graft_env *env, int argc, char **argv);

#endif

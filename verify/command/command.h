/* command.h - the commands of this folder, for the table in main.c. */
#pragma once

#include "graph/base/options.h"

/* Lists a rule set, explains and converts it, or makes one from families: DIR/graft.rules,
 * and DIR/derivations.txt. */
extern const graft_command graft_command_rules;

/* Proves or refutes users' rules (docs/rule-format.md), each in a child of its own, and prints each
 * verdict as soon as it stands. GRAFT_BAD_INPUT when some rule cannot be tried, else GRAFT_REFUTED
 * when some is refuted, else GRAFT_UNDECIDED when not all are proved. With --emit-smt, writes the
 * obligations of every rule of a rule set as SMT-LIB 2 (docs/verification.md), for other solvers to
 * check. */
extern const graft_command graft_command_verify;

/* command.h - the commands of this folder, for the table in main.c. */
#ifndef GRAFT_VERIFY_COMMAND_H
#define GRAFT_VERIFY_COMMAND_H

#include "graph/env.h"

/* graft rules [FILE]: lists a rule set, rules/graft.rules unless another is named.
 *   --uses OP --proof LEVEL --numeric CLASS --family F --shrinks   only these rules
 *   --count                     how many by family, proof level and numeric class
 *   --explain NAME|ID           one rule in words; with --dot FILE also as a Graphviz picture
 *   --page FILE                 writes the list as Markdown, as rules/README.md is
 *   --both FILE                 writes the set with the other direction of its rules, proved too
 *   --taso FILE                 judges the rules of a TASO file: implied by the set, refuted, ...
 *   --export-taso FILE          writes those rules of the set that TASO can say
 *   --generate DIR              enumerates DIR/families, or those of --families FOLDER, proves, and
 *                               writes DIR/graft.rules, DIR/derivations.txt and DIR/README.md */
GRAFT_MUST_USE graft_status graft_command_rules(graft_env *env, int argc, char **argv);

/* graft verify FILE.yaml: proves or refutes users' rules (docs/rule-format.md), each in a child of
 * its own. Succeeds only when all are proved.
 *   --merge                     adds the proved ones to the rule set, unless they follow from it
 *   --rules FILE                the rule set, rules/graft.rules by default
 *   --no-suggest                looks for no missing precondition
 * graft verify --emit-smt DIR: writes the obligations of every rule of a rule set as SMT-LIB 2
 * (docs/verification.md), for other solvers to check.
 *   --rules FILE                the rule set, rules/graft.rules by default
 *   --sample N                  only N rules, spread evenly over the set */
GRAFT_MUST_USE graft_status graft_command_verify(graft_env *env, int argc, char **argv);

#endif

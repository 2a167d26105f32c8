/* command.h - the commands of this folder, for the table in main.c. */
#ifndef GRAFT_COST_COMMAND_H
#define GRAFT_COST_COMMAND_H

#include "graph/env.h"

/* graft measure MODEL [--device D] [--rounds N] [--database F] [--plot F]: the time of every
 * operator of a model (a zoo name or an .onnx file), sorted by share, with its distance to the
 * device's measured roofline, and of the whole graph; --plot draws them into an SVG file. */
GRAFT_MUST_USE graft_status graft_command_measure(graft_env *env, int argc, char **argv);
/* graft cost show FILE...: the entries of cost databases. graft cost merge OUT FILE...: joins
 * databases into OUT. graft cost diff A B: entries that one of them lacks, or that differ by more
 * than their spreads. graft cost calibrate: measures whole graphs of the zoo and fits what the sums
 * of their parts lack (see calibrate.h). */
GRAFT_MUST_USE graft_status graft_command_cost(graft_env *env, int argc, char **argv);

#endif

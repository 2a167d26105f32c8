/* command.h - the commands of this folder, for the table in main.c. */
#ifndef GRAFT_EMIT_COMMAND_H
#define GRAFT_EMIT_COMMAND_H

#include "graph/env.h"

/* graft emit-graph MODEL OUT.h [--name NAME]: writes a model's graph as a table for
 * graft_graph_load. MODEL is a zoo name or the path of an ONNX file; NAME is that without folder
 * and ending. */
GRAFT_MUST_USE graft_status graft_command_emit_graph(graft_env *env, int argc, char **argv);

/* graft policy MODEL --out DIR [--device D] [--rules F] [--settings F] [--database F] [--exact]
 * [--amalgamate]: measures, trains, compares and emits; see docs/architecture.md. Writes into DIR
 * graft_policy.h, policy.graft, graft_graph.h, results.json and checkpoint.bin, which a second run
 * goes on from.
 */
GRAFT_MUST_USE graft_status graft_command_policy(graft_env *env, int argc, char **argv);
/* graft report MODEL --out DIR [...]: replays the decisions of the compiled policy
 * (DIR/decisions.txt, as tests/firmware/rewrite.c prints them), writes DIR/NAME.opt.onnx, checks
 * that both graphs give the same outputs, measures each method's graph end to end and prints the
 * table. */
GRAFT_MUST_USE graft_status graft_command_report(graft_env *env, int argc, char **argv);
/* graft optimize IN OUT.onnx [--search greedy|backtracking|beam|random] [--dequeues N] [--width N]
 * [--policy DIR/policy.graft] [...]: rewrites a model by search, or as a policy says that was
 * trained for this or another model. */
GRAFT_MUST_USE graft_status graft_command_optimize(graft_env *env, int argc, char **argv);

#endif

/* command.h - the commands of this folder and of emit/bench, for the table in main.c. */
#pragma once

#include "graph/base/options.h"

/* Writes a model's graph as a table for graft_graph_load. */
extern const graft_command graft_command_emit_graph;

/* Writes a policy file as a header for products. */
extern const graft_command graft_command_emit_policy;

/* Measures, trains, compares and emits; see docs/architecture.md. Writes into its folder
 * graft_policy.h, policy.graft, graft_graph.h, results.json and checkpoint.bin, which a second run
 * goes on from. */
extern const graft_command graft_command_policy;
extern const graft_command graft_command_eval;
/* Replays the decisions of the compiled policy (decisions.txt in its folder, as
 * emit/firmware/rewrite.c prints them), writes NAME.opt.onnx, checks that both graphs give the
 * same outputs, measures each method's graph end to end and prints the table. */
extern const graft_command graft_command_report;
/* Rewrites a model by search, or as a policy says that was trained for this or another model. */
extern const graft_command graft_command_optimize;
/* Runs a model by a session of include/graft/run.h. */
extern const graft_command graft_command_run;
/* Makes the table of node costs and prints what greedy over it alone finds, beside greedy over
 * prices. */
extern const graft_command graft_command_cost_table;
/* Walks until nothing new is met, then measures what the database lacks. */
extern const graft_command graft_command_cost_close;
extern const graft_command graft_command_bench;
extern const graft_command graft_command_bench_agents;

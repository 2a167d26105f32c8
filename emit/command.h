/* command.h - the commands of this folder, for the table in main.c. */
#ifndef GRAFT_EMIT_COMMAND_H
#define GRAFT_EMIT_COMMAND_H

#include "graph/env.h"

/* graft emit-graph MODEL OUT.h [--name NAME]: writes a model's graph as a table for
 * graft_graph_load. MODEL is a zoo name or the path of an ONNX file; NAME is that without folder
 * and ending. */
GRAFT_MUST_USE graft_status graft_command_emit_graph(graft_env *env, int argc, char **argv);

#endif

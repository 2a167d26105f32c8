/* command.h - the commands of this folder, for the table in main.c. */
#ifndef GRAFT_MODELS_COMMAND_H
#define GRAFT_MODELS_COMMAND_H

#include "graph/env.h"

/* graft model NAME OUT.onnx [--seed N]: writes a model of the zoo; without arguments lists them. */
GRAFT_MUST_USE graft_status graft_command_model(graft_env *env, int argc, char **argv);
/* graft convert IN OUT.onnx [--size NAME=N]... [--external-data]: reads and writes a model. */
GRAFT_MUST_USE graft_status graft_command_convert(graft_env *env, int argc, char **argv);

#endif

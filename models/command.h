/* command.h - the commands of this folder, for the table in main.c. */
#pragma once

#include "graph/base/options.h"

/* Writes a model of the zoo; without arguments lists them. */
extern const graft_command graft_command_model;
/* Reads a model and writes it. */
extern const graft_command graft_command_convert;

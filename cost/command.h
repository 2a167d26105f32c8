/* command.h - the commands of this folder, for the table in main.c. */
#pragma once

#include "graph/base/options.h"

/* The time of every operator of a model (a zoo name or an .onnx file), sorted by share, with its
 * distance to the device's measured roofline, and of the whole graph. */
extern const graft_command graft_command_measure;
/* The entries of cost databases; databases joined into one; entries that one of two lacks, or that
 * differ by more than their spreads. */
extern const graft_command graft_command_cost_show;
extern const graft_command graft_command_cost_merge;
extern const graft_command graft_command_cost_diff;
/* Measures whole graphs of the zoo and fits what the sums of their parts lack (calibrate.h);
 * measures the costs of a database again, side by side; measures those of another. */
extern const graft_command graft_command_cost_calibrate;
extern const graft_command graft_command_cost_confirm;
extern const graft_command graft_command_cost_renew;
extern const graft_command graft_command_cost_random;

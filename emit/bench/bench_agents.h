/* bench_agents.h - agents side by side: what each makes of some models, and what it asked for. */
#pragma once

#include "graph/base/options.h"

/* `graft bench agents MODEL,...`: makes the table of node costs of the models, trains the agent that
 * scores candidates (train/agent/candidates.h) on all of them together, and prints what part of the cost
 * each method leaves, by prices, with the steps taken in the environment and the seconds. Training
 * asks for prices, or for the tariff's estimates alone. `--metrics FILE` gets a JSON line for each
 * update, result, gate, and step that the world model was held against. With `--dreams` one more is trained in the dreams of a world model (train/agent/dreamer.h), which
 * is held against episodes that it has not seen, of all models together and of each; GRAFT_REFUTED when
 * those of all fail. */
extern const graft_command graft_command_bench_agents;

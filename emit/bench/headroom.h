/* headroom.h - how far rewriting could go: the best plan that any search finds, for each model. */
#pragma once

#include "graph/base/options.h"

/* Runs every search on some models, or on all of the zoo that are not quantised, each for at most N
 * seconds (60), and prints for each what part of the cost is left, the graphs that it priced, its
 * seconds and how many costs of its graph are estimates. Prices are those of the graph as it is
 * (not of a written file). A graph that rests on more estimates than the graph as given is no
 * result: searches refuse it, unless --estimates lets them through, and then their rows are marked.
 * Ranks share the models.
 *
 * The best plan of each model and device is kept in FILE (out/bench/headroom.plans) unless a better
 * one, of the same rules and costs, is there already. `--check FILE` replays all plans of a file on
 * --device instead, and fails with GRAFT_REFUTED unless each costs what it says. */
extern const graft_command graft_command_headroom;

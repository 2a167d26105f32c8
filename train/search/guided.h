/* guided.h - search guided by a table of node costs, for hosts that can price graphs.
 *
 *      rollouts by the table ──► graphs that are priced ──► rows of the table
 *             ▲    ▲                                              │
 *   blurred rows  sampled steps ◄─────────────────────────────────┘
 *
 * A rollout takes rewrites by what the table says of each, and those that leave less at no cost, as
 * the engine simplifies; only the graph where it ends is priced. Prices correct the rows of what
 * the graph is made of, for the next one. What rollouts found is made better by iterated local
 * search: a few rewrites in one place, drawn by their estimates; then there what the table says
 * gains; and one price for all of it. So a graph is priced for a whole way, where greedy search
 * prices every step of each. */
#pragma once

#include "cost/cost.h"
#include "train/search/search.h"

/* Of the choice it reads the table that it begins with (without rows and fallback it learns them),
 * costs, graphs (those that rows are learnt from included), seed, and the temperature of sampled
 * rollouts, in gains of a thousandth of the first graph. found->evaluations is the number of graphs
 * priced, that of the first graph included. */
graft_search graft_search_guided;

/* One rollout, sampled at the temperature: one graph is priced. It is what is found, dearer or
 * not. */
graft_search graft_guided_sample;

/* A table that is better for the environment's graph: its rows are corrected by prices, and blurred
 * where that led to a cheaper graph. Greedy over `refined`, in `arena`, ends at found's graph, or
 * near it: what the engine's own loop makes of it is for the caller to see. It is the tariff given
 * when no graph was cheaper than the one which that leads to; choice->temperature is not used. */
GRAFT_MUST_USE graft_status graft_guided_refine(graft_env *env, graft_arena *arena,
                                                graft_environment *environment,
                                                const graft_search_choice *choice,
                                                graft_tariff *refined, graft_plan_found *found);

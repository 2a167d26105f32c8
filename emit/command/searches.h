/* searches.h - the searches by name, with what decides how far they go. */
#pragma once

#include "train/agent/agent_settings.h"
#include "train/search/guided.h"

/* Graphs that guided search prices when nothing else is asked for. */
enum { GRAFT_GUIDED_GRAPHS = 2000 };

/* Their names, as an option lists its choices. */
#define GRAFT_SEARCH_NAMES                                                                         \
    "greedy|escape|annealing|iterated|backtracking|beam|guided|random|saturation"

/* Runs a search that exists. The plan is in `arena`. */
GRAFT_MUST_USE graft_status graft_search_run(graft_env *env, graft_arena *arena,
                                             graft_environment *environment,
                                             const graft_agent_settings *settings,
                                             const graft_search_choice *choice,
                                             graft_plan_found *found);

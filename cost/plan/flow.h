/* flow.h - runs what an If, Loop or Scan runs (graph/flow.h): each body by its own executor. */
#pragma once

#include "cost/plan/executor.h"
#include "graph/flow.h"

typedef struct graft_flow_run graft_flow_run;

/* In `arena`, weights included; leaves another model with the costs (graft_cost_set_model). Fails
 * as graft_executor_open does; close it also then. */
GRAFT_MUST_USE graft_status graft_flow_open(graft_env *env, graft_arena *arena, graft_cost *cost,
                                            const graft_flow *flow, graft_flow_run **run);
/* Runs once: `in` and `out` are the node's tensors, those from outside behind its own inputs; NULL:
 * not given, not wanted. GRAFT_BAD_INPUT when a Loop ends before what it collects is full. */
GRAFT_MUST_USE graft_status graft_flow_once(graft_env *env, graft_flow_run *run,
                                            const void *const *in, void *const *out);
void graft_flow_close(graft_flow_run *run); /* NULL is allowed. */

/* rehearsal.h - whether a policy rewrites a graph as before when it has less room: the engine is
 * asked, by letting it, once with no new weights and once with as many as it likes. */
#pragma once

#include "graft/graft.h"
#include "graph/base/arena.h"
#include "graph/base/env.h"

enum { GRAFT_REHEARSAL_RUNS = 2 };

/* What the policy makes of a graph. */
typedef struct graft_rehearsed {
    graft_status status;
    uint64_t hash;      /* Of the graph that comes out. */
    uint64_t decisions; /* A hash of them. */
    uint32_t step_count;
} graft_rehearsed;

typedef struct graft_rehearsal {
    graft_arena *arena;       /* NULL: closed. */
    const graft_graph *graph; /* As a product loads it. */
    const graft_policy *policy;
    graft_limits least; /* Of what is loaded. */
    graft_rehearsed before[GRAFT_REHEARSAL_RUNS];
    uint32_t steps_most; /* Of both. */
} graft_rehearsal;

/* Rewrites it with these limits. Fails as graft_optimize does. To be closed in any case. */
GRAFT_MUST_USE graft_status graft_rehearsal_open(graft_env *env, const graft_graph *graph,
                                                 const graft_policy *policy,
                                                 const graft_limits *limits, uint32_t step_limit,
                                                 graft_rehearsal *rehearsal);
/* Whether it comes to the same, step by step, with these. */
bool graft_rehearsal_same(const graft_rehearsal *rehearsal, const graft_limits *limits,
                          uint32_t step_limit);
void graft_rehearsal_close(graft_rehearsal *rehearsal);

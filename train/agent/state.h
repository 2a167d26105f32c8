/* state.h - a graph on the host together with everything the engine derives from it: order, uses,
 * scratch. The environment and the searches keep one per graph that they work on. */
#pragma once

#include "graph/base/env.h"

typedef struct graft_state {
    graft_graph graph;
    graft_order order; /* Valid for `graph` after every call below. */
    void *order_memory;
    size_t order_bytes;
    void *scratch; /* For graft_match_try and graft_apply. */
    uint64_t *hashes;
} graft_state;

/* Allocates a state for graphs within `limits`; it is empty. */
void graft_state_open(graft_arena *arena, const graft_limits *limits, graft_state *state);
/* Limits that leave room for rewriting `graph`: half as much again, and some for small graphs. */
graft_limits graft_state_limits(const graft_graph *graph);
/* Copies `graph` in. GRAFT_CAPACITY when it does not fit, GRAFT_BAD_INPUT when it has a cycle. */
GRAFT_MUST_USE graft_status graft_state_set(graft_env *env, graft_state *state,
                                            const graft_graph *graph);
/* The same of a graph whose order is known, and need not be found again. */
GRAFT_MUST_USE graft_status graft_state_copy(graft_env *env, graft_state *state,
                                             const graft_graph *graph, const graft_order *order);
/* A state with a copy of `graph` and room for rewriting it. Fails as graft_state_set does. */
GRAFT_MUST_USE graft_status graft_state_make(graft_env *env, graft_arena *arena,
                                             const graft_graph *graph, graft_state *state);
/* Applies a rule at a match of this very graph; GRAFT_NO_MATCH and GRAFT_CAPACITY as graft_apply,
 * without a message and with the state unchanged. */
GRAFT_MUST_USE graft_status graft_state_apply(graft_env *env, graft_state *state,
                                              const graft_rule *rule, const graft_match *match,
                                              const graft_apply_options *options);
/* After the engine changed `state->graph` itself. Fails as graft_state_set does. */
GRAFT_MUST_USE graft_status graft_state_refresh(graft_env *env, graft_state *state);
uint64_t graft_state_hash(graft_state *state);

/* environment.h - graph substitution as a reinforcement-learning environment, in Gym's shape:
 * reset, then step(xfer, location) -> next state, reward, terminal.
 *
 * State-action space after the dissertation, section 3.3.3: an action is (xfer, location); xfer
 * number `xfers->count` is NO-OP and ends the episode. A rule's locations are numbered 0, 1, ... in
 * canonical order (matches.h), so the location mask of a rule is a prefix and its length says all.
 * Reward (X-RLflow, section 3): 100 (cost before - cost after) / cost of the first graph, so that
 * an episode's undiscounted return is the percentage by which the cost fell. */
#pragma once

#include "train/search/matches.h"

/* What a graph costs, in nanoseconds per inference. A negative cost never occurs. */
typedef struct graft_price {
    graft_status (*cost_ns)(graft_env *env, void *context, const graft_graph *graph,
                            const graft_order *order, double *ns);
    void *context;
    /* Both may be NULL. By how much the costs of two graphs, of which one comes from the other, can
     * differ by chance: what is less is no gain. */
    graft_status (*noise_ns)(graft_env *env, void *context, const graft_state *before,
                             const graft_state *after, double *ns);
    /* Of graphs that cost the same the one with the least of this is wanted. */
    graft_status (*form)(graft_env *env, void *context, const graft_graph *graph, uint64_t *form);
} graft_price;

typedef struct graft_environment_options {
    graft_price price;
    uint32_t location_limit; /* Locations offered per rule; the dissertation's 200. */
    uint32_t step_limit;     /* An episode ends after so many applications. */
    double cost_limit;       /* ...and at a graph dearer than this many first graphs; 0: none. */
    graft_apply_options apply;
    uint64_t deadline_ns; /* By graft_clock_ns: when searches end with what they have; 0: none. */
    double least_gain; /* Part of the first graph's cost that a rewrite must bring to a search. */
} graft_environment_options;

typedef struct graft_environment {
    const graft_xfers *xfers;
    graft_environment_options options;
    graft_state first; /* What reset returns to. */
    graft_state state;
    graft_matches matches; /* All legal actions in `state`. */
    double first_ns;
    double cost_ns;
    uint32_t step_count;   /* Applications in this episode. */
    bool terminal;         /* The episode has ended: only reset is allowed. */
    bool dear;             /* The graph costs more than the limit. */
    bool sealed;           /* While an agent dreams: every call aborts. */
    uint64_t interactions; /* Steps taken since the environment was opened. */
} graft_environment;

typedef struct graft_outcome {
    double reward;
    bool terminal;  /* NO-OP, the step limit, too dear a graph, or no legal rule left. */
    bool truncated; /* By the step limit alone: the episode could have gone on. */
} graft_outcome;

/* `xfers` is kept. Fails as the price does. */
GRAFT_MUST_USE graft_status graft_environment_open(graft_env *env, graft_arena *arena,
                                                   const graft_graph *graph,
                                                   const graft_xfers *xfers,
                                                   const graft_environment_options *options,
                                                   graft_environment *environment);
/* Back to the first graph. */
GRAFT_MUST_USE graft_status graft_environment_reset(graft_env *env, graft_environment *environment);
/* The same after prices have changed: the first graph is priced anew. Fails as the price does. */
GRAFT_MUST_USE graft_status graft_environment_reprice(graft_env *env,
                                                      graft_environment *environment);
/* Takes an action. GRAFT_BAD_INPUT when it is not legal or the episode has ended; the state is then
 * unchanged. */
GRAFT_MUST_USE graft_status graft_environment_step(graft_env *env, graft_environment *environment,
                                                   uint32_t xfer, uint32_t location,
                                                   graft_outcome *step);

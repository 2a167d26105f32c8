/* recording.h - what is kept of the real environment: episodes of snapshots, actions and rewards.
 *
 * A snapshot is a state as the networks see it: the policy's graph as arrays (features from the
 * engine, so that training and firmware see the same numbers) and the facts that the encoder's
 * heads must read off it. Nothing else of the environment is needed after recording. */
#ifndef GRAFT_TRAIN_RECORDING_H
#define GRAFT_TRAIN_RECORDING_H

#include "graph/rng.h"
#include "train/encoder.h"
#include "train/environment.h"

typedef struct graft_snapshot {
    graft_graph_arrays arrays;
    uint16_t *location_counts; /* (xfers): the legal actions */
    float *histogram;          /* (GRAFT_OP_COUNT): log(1 + active nodes of the operator) */
    float cost;                /* cost / cost of the episode's first graph */
} graft_snapshot;

/* The policy's graph of `graph`, with `counts` locations of `xfers` rules, into `arena`. */
void graft_arrays_take(graft_arena *arena, const graft_graph *graph, const graft_order *order,
                       const uint16_t *counts, uint32_t xfers, graft_graph_arrays *arrays);

/* Chooses an action for the environment's present state, whose snapshot is given. */
typedef struct graft_chooser {
    graft_status (*choose)(graft_env *env, void *context, const graft_environment *environment,
                           const graft_snapshot *snapshot, graft_rng *rng, graft_action *action);
    void *context;
} graft_chooser;

/* One episode: step i leads from snapshots[i] to snapshots[i + 1]. */
typedef struct graft_episode {
    uint32_t step_count;
    graft_snapshot *snapshots; /* (step_count + 1) */
    uint16_t *xfers;           /* (step_count); the number of rules stands for NO-OP */
    uint16_t *locations;       /* (step_count) */
    float *rewards;            /* (step_count) */
    uint8_t *ends; /* (step_count): 1 where the episode ended, but not by the step limit */
    double total_reward;
    double cost_ns; /* Of the last graph. */
} graft_episode;

/* Resets the environment and plays one episode into `arena`. */
GRAFT_MUST_USE graft_status graft_episode_record(graft_env *env, graft_arena *arena,
                                                 graft_environment *environment,
                                                 const graft_chooser *chooser, graft_rng *rng,
                                                 graft_episode *episode);

/* The data agent: NO-OP with probability `noop`, else a random legal rule and a uniformly random
 * location of it (the dissertation, section 4.3.1). Its taste lasts for an episode: rule x is drawn
 * with weight exp(preference n_x + eagerness u g_x): n_x standard normal; g_x the mean reward that
 * the rule brought so far, in units of the rules' root mean square and within 3; u uniform in 0..1,
 * one for the episode. With preference and eagerness 0 all rules are alike; but then a rule and its
 * reverse undo one another, and what lies behind a hundred good rewrites is never seen. */
typedef struct graft_data_agent {
    double noop;
    double preference;
    double eagerness;
    uint32_t xfer_count;
    double *weights;     /* (xfer_count) */
    double *reward_sums; /* (xfer_count): over the episodes learnt from */
    double *use_counts;  /* (xfer_count) */
} graft_data_agent;

/* An agent without eagerness that knows nothing yet; its arrays are in `arena`. */
void graft_data_agent_open(graft_arena *arena, uint32_t xfer_count, double noop, double preference,
                           graft_data_agent *agent);
/* Draws the taste of the next episode. */
void graft_data_agent_draw(graft_data_agent *agent, graft_rng *rng);
/* Adds what an episode's rules brought to what the agent knows. */
void graft_data_agent_learn(graft_data_agent *agent, const graft_episode *episode);
graft_chooser graft_data_agent_chooser(graft_data_agent *agent);

#endif

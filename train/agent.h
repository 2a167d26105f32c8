/* agent.h - the model-based agent (the dissertation, chapter 4; Ha & Schmidhuber 2018): what it
 * consists of, and how it is trained.
 *
 *      record episodes ──► train encoder, freeze it, standardise its latents
 *             ▲                       │
 *             │              ┌────────▼─────────┐
 *      controller plays      │ world model      │  learns transitions of latents
 *      the environment       │ controller (PPO) │  learns inside the world model alone
 *             └──────────────┴──────────────────┘  rounds
 *
 * Random numbers are derived from (seed, phase, step), so a run that was interrupted goes on from
 * its checkpoint to the same bytes; recorded episodes are kept there as actions and replayed. */
#ifndef GRAFT_TRAIN_AGENT_H
#define GRAFT_TRAIN_AGENT_H

#include "train/agent_settings.h"
#include "train/controller.h"
#include "train/grounding.h"
#include "train/ppo.h"
#include "train/recording.h"
#include "train/world_training.h"

enum { GRAFT_AGENT_EPISODES_MOST = 4096 };

/* How far training has come: phases of a round, updates of a phase. Saved with the networks. */
typedef enum graft_agent_phase {
    GRAFT_PHASE_ENCODER = 0, /* Round 0 only. */
    GRAFT_PHASE_WORLD = 1,
    GRAFT_PHASE_CONTROLLER = 2,
    GRAFT_PHASE_RECORD = 3, /* Episodes by the controller; not after the last round. */
    GRAFT_PHASE_DONE = 4
} graft_agent_phase;

/* Whole numbers that a checkpoint holds, in this order. */
typedef struct graft_agent_progress {
    uint64_t identity; /* Hash of settings, rules, model and device: what the run is about. */
    uint64_t round;
    uint64_t phase;        /* graft_agent_phase */
    uint64_t update;       /* Done in this phase. */
    uint64_t interactions; /* Steps taken in the real environment, trials included. */
    uint64_t dream_steps;
    uint64_t trial_count; /* Trials of the controller in the real environment. */
    uint64_t best_cost;   /* In picoseconds: of the best trial. */
    uint64_t encoder_ms;  /* Time spent, for the report; the only numbers that clocks decide. */
    uint64_t world_ms;
    uint64_t controller_ms;
    uint64_t record_ms;
} graft_agent_progress;

typedef struct graft_agent {
    const graft_agent_settings *settings;
    uint32_t xfers;
    uint32_t thread_count;
    graft_encoder encoder;
    graft_grounding grounding;
    graft_standardiser standardiser; /* Of the frozen encoder's latents. */
    graft_world_model world;
    graft_controller controller;
    graft_controller best; /* The one of the best trial. */
    graft_agent_progress progress;

    /* Recorded episodes: the random ones, then the controller's. */
    uint32_t episode_count;
    graft_episode *episodes;        /* (GRAFT_AGENT_EPISODES_MOST) */
    graft_trajectory *trajectories; /* Their latents, once the encoder is frozen. */
    uint64_t *actions;              /* Episode lengths and actions by the controller, packed. */
    uint32_t action_count;
    uint32_t action_capacity;
    double dream_return; /* Mean predicted return of the last dreams, in percent. */
} graft_agent;

/* An untrained agent for `xfers` rules, in `arena`. */
void graft_agent_open(graft_arena *arena, const graft_agent_settings *settings, uint32_t xfers,
                      uint32_t thread_count, uint64_t identity, graft_agent *agent);

/* Trains to the end, or until interrupted (GRAFT_INTERRUPTED, checkpoint saved). A checkpoint of
 * the same identity at `path` is resumed, one of another is replaced; `path` NULL keeps none. Fails
 * as environment and files do. */
GRAFT_MUST_USE graft_status graft_agent_train(graft_env *env, graft_arena *arena,
                                              graft_agent *agent, graft_environment *environment,
                                              const char *path);

/* Latents of snapshots, standardised: `z` (count, latent). */
void graft_agent_encode(const graft_agent *agent, graft_arena *scratch,
                        const graft_snapshot *snapshots, uint32_t count, float *z);

/* Plays with a controller on the encoder's latents: drawn from its distribution, or the most likely
 * action. The context is the chooser's own, in `arena`. */
graft_chooser graft_agent_chooser(graft_arena *arena, const graft_agent *agent,
                                  const graft_controller *controller, bool draw);

#endif

/* dreamer.h - the candidate-scoring agent trained in dreams: stories by the policy, a world model
 * from them, and the policy in its dreams, phase after phase. Every few updates the policy is tried
 * in the environments, once each with its most likely actions, and the best one is kept, the one
 * before the dreams among them. What encodes graphs and places stays as it is meanwhile, since a
 * story's latents are its own; what decides between candidates learns. */
#pragma once

#include "train/agent/foresight_check.h"

/* How far training is: as counters of a checkpoint. */
typedef struct graft_dreamer_progress {
    uint64_t world_updates;
    uint64_t dream_updates;
    uint64_t agent_updates;
    uint64_t saved;       /* By the best policy so far: 10^-9 percent of the cost, over models. */
    uint64_t tried;       /* One more than dream_updates at the last trial. */
    uint64_t trial_steps; /* In the environments. */
    uint64_t dream_steps;
} graft_dreamer_progress;

typedef struct graft_dreamer graft_dreamer;
/* Is told of each update of the policy in dreams, and of the last trial. */
typedef void graft_dreamer_told(void *context, const graft_dreamer *dreamer);

struct graft_dreamer {
    graft_env *env;
    graft_candidates *agent;
    graft_observer *const *observers;
    uint32_t count; /* Of observers. */
    graft_foresight model;
    graft_shards shards;
    graft_repertoire repertoire;
    graft_story *learnt; /* Of one observer after the other. */
    graft_story *held;
    graft_stories learnt_stories;
    graft_stories held_stories;
    graft_foresight_loss loss; /* Of the last update. */
    graft_foresight_report report;
    graft_foresight_report *reports; /* Of each observer. */
    graft_dreamer_progress progress;
    graft_parameters best; /* The scorer's of the best policy so far... */
    float *first;          /* ...and its values when the stories were told. */
    const char *path;      /* Of the checkpoint; NULL: none is kept. */
    const char *run; /* Whose it is: a file of another's has another name here, and is refused. */
    uint64_t saved_ns;
    double dreamed; /* Percent saved in the dreams of the last update... */
    double lived;   /* ...and in the last trial, mean over environments. */
    float *curve;   /* (updates + 1, 2): both after each update; the last are those of the end. */
    graft_dreamer_told *told; /* NULL: nobody. */
    void *told_context;
    double world_seconds; /* Of this run, as is the next. */
    double dream_seconds;
};

/* For an untrained agent and the environments that it plays in, which are kept; in env->life. */
void graft_dreamer_open(graft_env *env, graft_candidates *agent, graft_observer *const observers[],
                        uint32_t count, graft_dreamer *dreamer);
void graft_dreamer_close(graft_dreamer *dreamer);

/* The phases in order. */
typedef graft_status graft_dreamer_phase(graft_dreamer *dreamer);
/* Plays the stories. */
GRAFT_MUST_USE graft_dreamer_phase graft_dreamer_record;
/* Trains the world model on some of them. */
GRAFT_MUST_USE graft_dreamer_phase graft_dreamer_learn;
/* Holds it against the others. */
GRAFT_MUST_USE graft_dreamer_phase graft_dreamer_check;
/* Trains the policy in dreams that begin where stories began; environments are sealed but for
 * trials. */
GRAFT_MUST_USE graft_dreamer_phase graft_dreamer_dream;

/* All of them, or until interrupted (GRAFT_INTERRUPTED; once stories are told, checkpoint saved).
 * `identity` is a hash of settings, models, rules and tariff. A checkpoint at `path` of the same
 * identity is resumed: stories are played again, and training goes on where it was. One of another
 * is replaced; NULL keeps none. Equal inputs give equal networks, interrupted or not. */
GRAFT_MUST_USE graft_status graft_dreamer_run(graft_dreamer *dreamer, const char *path,
                                              uint64_t identity);

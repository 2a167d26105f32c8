/* diagnosis.h - is the dream faithful? Holds a trained agent's world model and critic against
 * episodes of the real environment that no training has seen: some by the data agent, some by the
 * controller that ships, drawn from its distribution. */
#ifndef GRAFT_TRAIN_DIAGNOSIS_H
#define GRAFT_TRAIN_DIAGNOSIS_H

#include "train/agent.h"

/* The world model on held-out episodes; see graft_world_metrics. */
typedef struct graft_faithfulness {
    uint32_t step_count;
    uint32_t live_count;     /* Latent dimensions that change at all. */
    double latent_gain;      /* nats per step and live dimension over "nothing changes" */
    double reward_explained; /* Share of the rewards' variance. */
    double rule_explained;   /* The same of the mean reward of each rule in the training data:
                                what the world model must beat. */
    uint64_t bit_count;      /* Masks: all bits, and those right; */
    uint64_t right;
    uint64_t changed_count; /* those that changed (persistence gets none of them right). */
    uint64_t changed_right;
} graft_faithfulness;

typedef struct graft_diagnosis {
    graft_faithfulness random;     /* Episodes by the data agent. */
    graft_faithfulness controller; /* Episodes by the controller. */
    uint32_t horizon;              /* Both below are from the first graph over so many steps. */
    uint32_t dreams;
    double dream_return; /* Mean, in percent of the first graph's cost. */
    double dream_length;
    uint32_t episodes;
    double real_return;
    double real_length;
    double critic_explained; /* Share of the variance of returns in those dreams. */
    uint64_t interactions;   /* Steps in the real environment that all this took. */
} graft_diagnosis;

/* Plays and dreams. The agent is trained; the environment is its own, and is left somewhere. Fails
 * as playing does. */
GRAFT_MUST_USE graft_status graft_agent_diagnose(graft_env *env, graft_agent *agent,
                                                 graft_environment *environment,
                                                 graft_diagnosis *diagnosis);

/* A few lines for people; a JSON object in one line. */
void graft_diagnosis_print(const graft_diagnosis *diagnosis, FILE *out);
void graft_diagnosis_write(const graft_diagnosis *diagnosis, FILE *out);

#endif

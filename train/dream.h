/* dream.h - rollouts of a controller in the world model alone. A dream starts from a recorded
 * latent with its masks and an empty LSTM memory; from then on it reads the two networks and its
 * own random numbers, and nothing else: no graph, no environment, no cost. Legal actions, rewards
 * and ends are the world model's predictions. It is over after NO-OP, a predicted end, or `horizon`
 * steps. */
#ifndef GRAFT_DREAM_H
#define GRAFT_DREAM_H

#include "train/controller.h"
#include "train/rollout.h"
#include "train/world_state.h"

/* Recorded states to start from; each dream takes one at random. */
typedef struct {
    uint32_t count;
    const float *z;         /* (count, latent) */
    const uint16_t *counts; /* (count, xfers) */
} graft_dream_starts;

typedef struct {
    float temperature; /* Of the latent mixture; see graft_mixture_sample. */
    float step_cost;   /* Taken off the reward of every rewrite, so that one that brings nothing
                          is worse than NO-OP and a rule and its reverse are worse than none. */
    uint64_t seed;     /* Dream d draws from stream d of this seed. */
} graft_dream_settings;

/* Fills all episodes of `rollout` (its horizon bounds the dreams). `shards` lends threads and
 * tapes; its parameter sets do not matter. Same bytes whatever its thread count. */
void graft_dream(const graft_world_model *model, const graft_controller *controller,
                 graft_shards *shards, const graft_dream_starts *starts,
                 const graft_dream_settings *settings, graft_rollout *rollout);

#endif

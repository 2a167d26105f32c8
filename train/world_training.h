/* world_training.h - loss, gradient and report of the world model on recorded trajectories.
 *
 * Sequences of different lengths are batched with padding behind their ends. Heads and losses are
 * evaluated on the real steps only, and every mean is over real steps: padding contributes nothing,
 * by construction. */
#ifndef GRAFT_WORLD_TRAINING_H
#define GRAFT_WORLD_TRAINING_H

#include "train/world_model.h"

/* Windows of trajectories: steps first[i], first[i] + 1, ... of trajectories[index[i]], to its end
 * or `steps_most` of them. The LSTM starts each window at zero, as dreams do. */
typedef struct {
    const graft_trajectory *trajectories;
    const uint32_t *index;
    const uint32_t *first; /* NULL: all 0. */
    uint32_t count;
    uint32_t steps_most; /* 0: no limit. */
} graft_world_batch;

/* What the parts count for in the sum that is differentiated. */
typedef struct {
    double latent;
    double reward;
    double end;
    double legality;
    double counts;
} graft_world_weights;
/* 1 each, 10 for legality: it is a mean over all bits, of which few change. */
graft_world_weights graft_world_weights_default(void);

/* Means over the batch, unweighted. */
typedef struct {
    double latent;   /* nats per step and dimension, change in units of delta_scale */
    double reward;   /* Huber (delta 1) on the standardised reward */
    double end;      /* nats per step */
    double legality; /* nats per step and xfer */
    double counts;   /* Huber (delta 1) on log(1 + count), per legal xfer */
    uint32_t step_count;
} graft_world_loss;

/* The loss, and the gradient of its weighted sum: go on with graft_adam_step. `shards` was opened
 * with the model's parameters alone. `weights` NULL: the default. */
graft_world_loss graft_world_model_differentiate(const graft_world_model *model,
                                                 graft_shards *shards,
                                                 const graft_world_batch *batch,
                                                 const graft_world_weights *weights);

/* Everything a report needs. "Nothing changes" is a Gaussian of mean 0 with the variance of each
 * dimension's change in the calibration data; still dimensions are left out. */
typedef struct {
    graft_world_loss loss;
    double latent_gain;      /* nats per step and live dimension over "nothing changes" */
    uint32_t live_count;     /* Dimensions that change at all. */
    const double *gain;      /* (latent), per dimension */
    const double *variance;  /* (latent), of z over the states of the batch */
    double reward_error;     /* Root mean square, in the reward's units. */
    double reward_explained; /* 1 - squared error / variance over the batch; 0 without variance */
    double end_right;        /* Share of steps. */
    uint64_t bit_count;      /* Legality bits, steps times xfers. */
    uint64_t changed_count;  /* Those that differ from the state before; the rest is what
                                "persistence" gets right. */
    uint64_t changed_right;  /* Of the changed bits. */
    uint64_t right;          /* Of all bits. */
    double count_error;      /* Mean absolute error in locations, over next legal xfers. */
} graft_world_metrics;

/* Arrays of the result are in `arena`. */
graft_world_metrics graft_world_model_evaluate(const graft_world_model *model, graft_shards *shards,
                                               graft_arena *arena, const graft_world_batch *batch);

#endif

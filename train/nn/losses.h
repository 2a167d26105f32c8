/* losses.h - losses as (1, 1) matrices on the tape.
 *
 * A loss is `scale` times a sum over elements, so that shards add up: with the same scale 1 / (all
 * valid elements of the batch) in each shard, the sum of the shards' losses is the batch's mean. */
#pragma once

#include "train/nn/tape.h"

/* scale * sum of weight[i] x[i]; `weight`, of x's shape, may be NULL: ones. */
graft_matrix *graft_weighted_sum(graft_tape *tape, const graft_matrix *x, const float *weight,
                                 float scale);

/* Makes `weight` times a (1, 1) loss part of what graft_tape_backward differentiates, when
 * recording; returns the loss. */
double graft_loss_use(graft_tape *tape, const graft_matrix *loss, float weight);

/* A loss whose `slope` at each element of x is known, scaled; NULL when not recording. */
graft_matrix *graft_loss_of_slopes(graft_tape *tape, const graft_matrix *x, double loss,
                                   float *slope);

/* What a prediction is compared with. */
typedef struct {
    const float *value;  /* Of the prediction's shape. */
    const float *weight; /* The same, or NULL for ones; weight 0 leaves an element out. */
    float scale;
} graft_target;

/* Cross entropy of Bernoulli variables given logits; targets in [0, 1]. */
graft_matrix *graft_loss_binary(graft_tape *tape, const graft_matrix *logits,
                                const graft_target *target);
/* Half the squared error. */
graft_matrix *graft_loss_squared(graft_tape *tape, const graft_matrix *prediction,
                                 const graft_target *target);
/* Half the squared error up to |error| = delta, linear beyond (Huber 1964). */
graft_matrix *graft_loss_huber(graft_tape *tape, const graft_matrix *prediction,
                               const graft_target *target, float delta);

/* PPO's clipped surrogate (Schulman et al. 2017, eq. 7), to be minimised:
 * - min(r A, clip(r, 1 - clip, 1 + clip) A) with r = exp(log_p - old_log_p), summed. */
typedef struct {
    const float *old_log_p; /* (n) */
    const float *advantage; /* (n) */
    float clip;
    float scale;
} graft_surrogate;
/* `log_p` is (n, 1). `terms` outlives the tape's use. */
graft_matrix *graft_loss_policy(graft_tape *tape, const graft_matrix *log_p,
                                const graft_surrogate *terms);

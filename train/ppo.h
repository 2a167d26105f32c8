/* ppo.h - proximal policy optimisation (Schulman et al. 2017) of a controller on one rollout.
 *
 * Both parts of an action have their probability under the masks that were in force when it was
 * drawn. Advantages are normalised over the rollout. Updates stop early when the policy has moved
 * too far (mean of (r - 1) - log r over a minibatch above 1.5 times the target). */
#ifndef GRAFT_PPO_H
#define GRAFT_PPO_H

#include "train/controller.h"
#include "train/rollout.h"
#include "train/shards.h"

typedef struct {
    double learning_rate; /* Default 3e-4. */
    double discount;      /* 0.99 */
    double lambda;        /* 0.95 */
    float clip;           /* 0.2 */
    double target_kl;     /* 0.05 */
    double norm_most;     /* 0.5 */
    float value_weight;   /* 0.5 */
    float entropy_weight; /* 0.01 */
    uint32_t epochs;      /* 4 */
    uint32_t minibatch;   /* 256 transitions */
} graft_ppo_settings;

graft_ppo_settings graft_ppo_defaults(void);

/* Means over the minibatches that were done. */
typedef struct {
    double policy_loss;
    double value_loss; /* Half squared error in units of value_scale. */
    double entropy;    /* nats, xfer and location together */
    double kl;
    double clipped; /* Share of transitions outside the clip range. */
    uint32_t minibatches;
    bool stopped; /* By the target. */
} graft_ppo_report;

/* Estimates advantages, then updates the controller. `shards` was opened with the controller's
 * parameters alone; `rng` shuffles. The first call ever fixes value_scale: the root mean square of
 * its returns. A rollout without steps changes nothing. */
graft_ppo_report graft_ppo_update(graft_controller *controller, graft_shards *shards,
                                  graft_arena *scratch, graft_rollout *rollout,
                                  const graft_ppo_settings *settings, graft_rng *rng);

/* One minibatch: rollout rows row[0..count), whose `advantage` and `gain` are as given. Loss and
 * gradient only; what graft_ppo_update repeats, and what tests check. */
graft_ppo_report graft_ppo_differentiate(const graft_controller *controller, graft_shards *shards,
                                         const graft_rollout *rollout, const uint32_t *row,
                                         uint32_t count, const graft_ppo_settings *settings);

#endif

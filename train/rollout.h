/* rollout.h - what a controller did, in the dream or in the real environment, as PPO needs it. */
#ifndef GRAFT_ROLLOUT_H
#define GRAFT_ROLLOUT_H

#include "graph/arena.h"

/* `episodes` slots of `horizon` steps; step t of episode e is row e * horizon + t of every array.
 * States carry the masks under which the action was drawn. */
typedef struct {
    uint32_t episodes;
    uint32_t horizon;
    uint32_t latent;
    uint32_t xfers;
    uint32_t *length;   /* (episodes): steps taken */
    float *z;           /* (rows, latent) */
    uint16_t *counts;   /* (rows, xfers) */
    uint16_t *xfer;     /* (rows) */
    uint16_t *location; /* (rows) */
    float *log_p;       /* (rows), when it was drawn */
    float *value;       /* (rows), predicted */
    float *reward;      /* (rows) */
    float *bootstrap;   /* (episodes): value of the state after the last step; 0 after an end */
    float *advantage;   /* (rows) */
    float *gain;        /* (rows): return, advantage + value */
} graft_rollout;

/* Zeroed, in `arena`. */
graft_rollout graft_rollout_new(graft_arena *arena, uint32_t episodes, uint32_t horizon,
                                uint32_t latent, uint32_t xfers);

/* Fills `advantage` and `gain` by generalised advantage estimation (Schulman et al. 2016, eq. 16):
 * A[t] = d[t] + discount lambda A[t + 1],  d[t] = r[t] + discount v[t + 1] - v[t]. */
void graft_rollout_estimate(graft_rollout *rollout, double discount, double lambda);

/* How much of the returns' variance the values predicted: 1 - var(gain - value) / var(gain), over
 * all steps of an estimated rollout; 0 without variance. */
double graft_rollout_explained(const graft_rollout *rollout);

/* Mean undiscounted return and mean length of the episodes. */
double graft_rollout_mean_return(const graft_rollout *rollout);
double graft_rollout_mean_length(const graft_rollout *rollout);

#endif

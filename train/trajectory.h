/* trajectory.h - one recorded episode, and the fixed scaling of latents that everything behind the
 * encoder works on. */
#ifndef GRAFT_TRAJECTORY_H
#define GRAFT_TRAJECTORY_H

#include "graph/arena.h"

/* Locations per xfer that an agent can name. */
enum { GRAFT_LOCATIONS_DEFAULT = 200 };

/* States 0..step_count, actions 0..step_count - 1. An xfer with c matches offers the locations
 * 0..c - 1, so its count is its mask; 0: not legal. The NO-OP is xfer number `xfers`, always legal,
 * with location 0. */
typedef struct {
    uint32_t step_count;
    float *z;                  /* (step_count + 1, latent), standardised */
    uint16_t *xfer;            /* (step_count) */
    uint16_t *location;        /* (step_count) */
    float *reward;             /* (step_count) */
    uint8_t *end;              /* (step_count): 1 when the episode was over after this action; a
                                  cut-off by a step limit is no end. */
    uint16_t *location_counts; /* (step_count + 1, xfers) */
} graft_trajectory;

/* Zeroed arrays for `step_count` steps in `arena`. */
graft_trajectory graft_trajectory_new(graft_arena *arena, uint32_t step_count, uint32_t latent,
                                      uint32_t xfers);

/* z' = (z - mean) * scale, fixed when the encoder is frozen. */
typedef struct {
    uint32_t latent;
    float *mean;  /* (latent) */
    float *scale; /* (latent): 1 / standard deviation, at most 1000. */
} graft_standardiser;

/* From `rows` latents (rows, latent); arrays in `arena`. `rows` > 0. */
graft_standardiser graft_standardiser_fit(graft_arena *arena, const float *z, size_t rows,
                                          uint32_t latent);
/* In place, (rows, latent). */
void graft_standardiser_apply(const graft_standardiser *standardiser, float *z, size_t rows);

#endif

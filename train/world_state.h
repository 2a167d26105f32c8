/* world_state.h - the world model as an environment: a batch of imagined states that are moved on
 * by actions. Reads the model and the state, nothing else. */
#ifndef GRAFT_WORLD_STATE_H
#define GRAFT_WORLD_STATE_H

#include "train/world_model.h"

/* `rows` imagined states; arrays have room for `capacity`. */
typedef struct {
    uint32_t rows;
    uint32_t capacity;
    float *z;                /* (rows, latent) */
    uint16_t *counts;        /* (rows, xfers): predicted locations, 0: not legal */
    graft_lstm_state memory; /* (rows, hidden) */
    graft_rng *rng;          /* (rows): each state draws from its own. */
} graft_world_state;

/* Empty, in `arena`. */
graft_world_state graft_world_state_new(const graft_world_model *model, graft_arena *arena,
                                        uint32_t capacity);
/* Adds a state with recorded latent and counts and an empty memory. */
void graft_world_state_start(const graft_world_model *model, graft_world_state *state,
                             const float *z, const uint16_t *counts, const graft_rng *rng);
/* Moves row `from` to row `to`, from >= to: for closing gaps. */
void graft_world_state_move(const graft_world_model *model, graft_world_state *state, uint32_t to,
                            uint32_t from);

/* Actions, one per row. */
typedef struct {
    const uint16_t *xfer;
    const uint16_t *location;
} graft_world_action;

/* What came of them, one per row. */
typedef struct {
    float *reward;
    uint8_t *end;
} graft_world_outcome;

/* One step: the latent is sampled at `temperature` (see graft_mixture_sample), then held to the
 * model's range; the end is sampled; an xfer is legal when more likely so than not, with 1 to
 * `locations` locations, fractions drawn. */
void graft_world_state_step(const graft_world_model *model, graft_arena *scratch,
                            graft_world_state *state, graft_world_action action, float temperature,
                            const graft_world_outcome *outcome);

#endif

/* controller.h - the policy that ships: feed-forward actor and critic on the latent (the graph is
 * fully observed, so no memory is needed).
 *
 *      t = relu(.. relu(z W_1 + b_1) ..)          trunk
 *      xfer      ~ masked softmax(t W_x + b_x)    over xfers and NO-OP, which is the last
 *      u = relu([t, E[xfer]] W_u + b_u)
 *      location  ~ masked softmax(u W_l + b_l)    over the locations that the xfer has
 *      value     = value_scale (t W_v + b_v)
 *
 * With `counts_input` the trunk sees log(1 + locations) of every xfer beside z: exact numbers that
 * the engine has anyway. Illegal choices have probability 0, in acting and in learning. */
#ifndef GRAFT_CONTROLLER_H
#define GRAFT_CONTROLLER_H

#include "train/tape.h"
#include "train/trajectory.h"

typedef struct {
    uint32_t latent;
    uint32_t xfers;          /* Without the NO-OP. */
    uint32_t locations;      /* Default GRAFT_LOCATIONS_DEFAULT. */
    uint32_t hidden;         /* Width of trunk and u; default 64. */
    uint32_t layers;         /* Of the trunk, 1 or 2; default 2. */
    uint32_t xfer_embedding; /* Default 16. */
    bool counts_input;
} graft_controller_size;

graft_controller_size graft_controller_defaults(graft_controller_size size);

typedef struct {
    graft_controller_size size;
    graft_parameters parameters; /* Named "controller". */
    graft_layer trunk[2];
    graft_layer xfer_head;      /* (hidden, xfers + 1) */
    uint32_t xfer_table;        /* (xfers + 1, xfer_embedding) */
    graft_layer location_trunk; /* (hidden + xfer_embedding, hidden) */
    graft_layer location_head;  /* (hidden, locations) */
    graft_layer value_head;     /* (hidden, 1) */
    float *value_scale;         /* One number, for checkpoints; 0 until the first PPO update. */
} graft_controller;

/* Random weights from `seed`, in `arena`: nearly uniform over legal choices, NO-OP less likely, so
 * that the first episodes are not cut short. */
void graft_controller_init(graft_controller *controller, graft_arena *arena,
                           const graft_controller_size *size, uint64_t seed);

/* States, one per row. */
typedef struct {
    uint32_t rows;
    const float *z;         /* (rows, latent) */
    const uint16_t *counts; /* (rows, xfers); 0: not legal */
} graft_controller_states;

/* The state's side of the network; masks are in the tape's arena. */
typedef struct {
    const graft_matrix *trunk; /* (rows, hidden) */
    const graft_matrix *log_p; /* (rows, xfers + 1) */
    const graft_matrix *value; /* (rows, 1), without value_scale */
    const uint8_t *mask;       /* (rows, xfers + 1) */
} graft_controller_view;
graft_controller_view graft_controller_apply(const graft_controller *controller, graft_tape *tape,
                                             const graft_controller_states *states);

/* The location's side, given the xfer of each row. NO-OP has the one location 0. */
typedef struct {
    const graft_matrix *log_p; /* (rows, locations) */
    const uint8_t *mask;       /* (rows, locations) */
} graft_location_view;
graft_location_view graft_controller_locate(const graft_controller *controller, graft_tape *tape,
                                            const graft_controller_states *states,
                                            const graft_matrix *trunk, const uint32_t *xfer);

/* Actions, one per row; `log_p` of xfer and location together. */
typedef struct {
    uint16_t *xfer;
    uint16_t *location;
    float *log_p;
    float *value;
} graft_controller_choice;

/* Chooses for every row: drawn with rng[row], or, when `rng` is NULL, the most likely xfer and then
 * its most likely location, the lowest number of equals. */
void graft_controller_act(const graft_controller *controller, graft_arena *scratch,
                          const graft_controller_states *states, graft_rng *rng,
                          const graft_controller_choice *choice);

#endif

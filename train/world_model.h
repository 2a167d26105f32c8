/* world_model.h - MDN-RNN (Ha & Schmidhuber 2018): given latent and action, the distribution of the
 * next latent, the reward, the end of the episode and the legal actions of the next state.
 *
 *      x = [z, log(1 + counts), E_xfer[xfer], E_location[bucket(location)], E_place[place]]
 *      h = LSTM(x)                  f = relu([h, x] W + b)
 *      heads, linear on f:  mixture over (z' - z) / delta_scale      mixture.h
 *                           (reward - mean of the xfer) / scale of the xfer
 *                           logit of the end
 *                           per xfer: logit of being legal next, change of its locations
 *
 * Most xfers keep their locations from step to step, so the network says what changes: counts are
 * predicted as differences, logits beside the present state times a trained factor per xfer, and to
 * both the row of a table is added that belongs to the action taken, for what a rewrite does to the
 * others' places is much the same everywhere. The counts are part of a dream's own state (it starts
 * from recorded ones and goes on with predicted ones).
 * The place of a location is where among the rule's locations it lies: location 3 of 4 is at the
 * far end of the graph, location 3 of 50 near its input, where tensors are large and rewards too.
 * `latent_only` leaves the counts out of input and heads, as in the dissertation. */
#ifndef GRAFT_WORLD_MODEL_H
#define GRAFT_WORLD_MODEL_H

#include "train/lstm.h"
#include "train/mixture.h"
#include "train/shards.h"
#include "train/trajectory.h"

typedef struct {
    uint32_t latent;
    uint32_t xfers;              /* Without the NO-OP. */
    uint32_t locations;          /* Most locations of an xfer; default 200. */
    uint32_t hidden;             /* Of the LSTM; default 256. */
    uint32_t features;           /* Width of f; default 256. */
    uint32_t components;         /* Gaussians per latent dimension; default 8. */
    uint32_t xfer_embedding;     /* Default 32. */
    uint32_t location_embedding; /* Default 16. */
    float sigma_floor;           /* In units of delta_scale; default 0.05. */
    bool latent_only;
} graft_world_size;

/* `size` with its zeros, from locations to sigma_floor, replaced by the defaults. */
graft_world_size graft_world_defaults(graft_world_size size);

enum { GRAFT_LOCATION_BUCKETS = 64 };
/* The first 16 locations by themselves, then four buckets an octave; below 64 for every location.
 */
uint32_t graft_location_bucket(uint32_t location);
enum { GRAFT_LOCATION_PLACES = 16 };
/* The sixteenth of 0..count - 1 that `location` is in. */
uint32_t graft_location_place(uint32_t location, uint32_t count);

typedef struct {
    graft_world_size size;
    graft_mixture mixture;
    graft_parameters parameters; /* Named "world". */
    uint32_t xfer_table;         /* (xfers + 1, xfer_embedding) */
    uint32_t location_table;     /* (buckets, location_embedding) */
    uint32_t place_table;        /* (places, location_embedding) */
    graft_layer gates;
    uint32_t recurrent;
    graft_layer features;
    graft_layer latent_head;
    graft_layer reward_head;
    graft_layer end_head;
    graft_layer legality_head;
    graft_layer counts_head;
    uint32_t legality_keep;   /* (1, xfers) */
    uint32_t legality_effect; /* (xfers + 1, xfers) */
    uint32_t counts_effect;   /* (xfers + 1, xfers) */
    /* Fixed by graft_world_model_calibrate; kept together for checkpoints. */
    float *constants; /* (graft_world_model_constant_count) */
    float *delta_scale;
    float *low;
    float *high;
    float *reward_means;  /* (xfers + 1): by xfer, so that the head says what differs from it */
    float *reward_scales; /* (xfers + 1) */
    float *reward_lows;   /* (xfers + 1): the range of recorded rewards, to which dreams are held */
    float *reward_highs;  /* (xfers + 1) */
} graft_world_model;

/* Random weights from `seed`, neutral constants; in `arena`. */
void graft_world_model_init(graft_world_model *model, graft_arena *arena,
                            const graft_world_size *size, uint64_t seed);
/* Latent dimensions that change less than this per step (root mean square) count as still. */
#define GRAFT_DELTA_LEAST 1e-4F

uint32_t graft_world_model_constant_count(const graft_world_model *model);

/* Sets the constants from data: per latent dimension the root mean square of its change per step
 * and the range that dreams are held to (that of the data, widened by half its width on each side);
 * and the rewards' as below. Before the first update, never after. */
void graft_world_model_calibrate(graft_world_model *model, const graft_trajectory *trajectories,
                                 uint32_t count);
/* Mean, range and deviation of each xfer's reward, the latter drawn towards that of all where there
 * are few steps, and never below a hundredth of it; all 0 but the deviation for an xfer that was
 * never taken. May be repeated when there is more data. */
void graft_world_model_calibrate_rewards(graft_world_model *model,
                                         const graft_trajectory *trajectories, uint32_t count);

/* Rows as the LSTM wants them: row = step * batch + sequence. */
typedef struct {
    uint32_t batch;
    uint32_t steps;
    const float *state;     /* (rows, latent), or (rows, latent + xfers): z, log(1 + counts) */
    const float *log_count; /* (rows, xfers); NULL when latent_only */
    const float *legality;  /* (rows, xfers): 1 legal, -1 not; NULL when latent_only */
    const uint32_t *xfer;   /* (rows) */
    const uint32_t *bucket; /* (rows) */
    const uint32_t *place;  /* (rows) */
    const uint32_t *valid;  /* Rows to predict for, in order; NULL: all. */
    uint32_t valid_count;
} graft_world_input;

/* One row per valid row. */
typedef struct {
    const graft_matrix *latent;   /* (n, graft_mixture_width) */
    const graft_matrix *reward;   /* (n, 1), standardised */
    const graft_matrix *end;      /* (n, 1), logit */
    const graft_matrix *legality; /* (n, xfers), logits */
    const graft_matrix *counts;   /* (n, xfers), if legal: see graft_world_count */
} graft_world_prediction;

/* What the counts' head should say, or says, and what it means: the difference of the counts, or,
 * when the present ones are not known (latent_only), log(1 + next). */
float graft_world_count_target(const graft_world_model *model, uint32_t present, uint32_t next);
float graft_world_count(const graft_world_model *model, uint32_t present, float said);

/* The forward pass, for training and dreams alike. `initial` and `final` as in graft_lstm. */
graft_world_prediction graft_world_model_apply(const graft_world_model *model, graft_tape *tape,
                                               const graft_world_input *input,
                                               const graft_lstm_state *initial,
                                               const graft_lstm_state *final);

#endif

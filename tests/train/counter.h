/* counter.h - a synthetic environment whose best return is known, for tests of the agent.
 *
 * The state is how many locations each of six xfers has left. Applying an xfer removes one of its
 * locations and pays:
 *     0  pays 2           1  pays 1 at location 0, costs 1 elsewhere
 *     2  costs 1, but adds a location to xfer 3      3  pays 4
 *     4  costs 5          5  pays 0.5
 * so the best play takes 2 although it costs, leaves 4 alone, and picks location 0 of xfer 1. */
#ifndef TESTS_TRAIN_COUNTER_H
#define TESTS_TRAIN_COUNTER_H

#include "graph/rng.h"
#include "train/trajectory.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { COUNTER_XFERS = 6, COUNTER_LATENT = 6, COUNTER_START_MOST = 3, COUNTER_STEPS_MOST = 24 };

typedef struct {
    uint16_t left[COUNTER_XFERS];
} counter_state;

static inline counter_state counter_start(graft_rng *rng)
{
    counter_state state;
    for (uint32_t x = 0; x < COUNTER_XFERS; x++) {
        state.left[x] = (uint16_t)graft_rng_below(rng, COUNTER_START_MOST + 1);
    }
    return state;
}

/* Bounded like an encoder's output, with a spread of about 1. */
static inline void counter_encode(const counter_state *state, float *z)
{
    for (uint32_t x = 0; x < COUNTER_XFERS; x++) {
        z[x] = 2.0F * tanhf(0.5F * ((float)state->left[x] - 1.5F));
    }
}

/* Applies a legal xfer; returns the reward. */
static inline float counter_apply(counter_state *state, uint32_t xfer, uint32_t location)
{
    static const float pay[COUNTER_XFERS] = {2.0F, 1.0F, -1.0F, 4.0F, -5.0F, 0.5F};
    state->left[xfer]--;
    if (xfer == 2) {
        state->left[3]++;
    }
    return xfer == 1 && location > 0 ? -1.0F : pay[xfer];
}

static inline float counter_best(const counter_state *start)
{
    const uint16_t *n = start->left;
    return 2.0F * (float)n[0] + 1.0F * (float)n[1] + 3.0F * (float)n[2] + 4.0F * (float)n[3] +
           0.5F * (float)n[5];
}

static inline bool counter_is_over(const counter_state *state)
{
    uint32_t left = 0;
    for (uint32_t x = 0; x < COUNTER_XFERS; x++) {
        left += state->left[x];
    }
    return left == 0;
}

/* An episode of the data agent: NO-OP one time in ten, else any legal xfer, any location. */
static inline graft_trajectory counter_record(graft_arena *arena, graft_rng *rng)
{
    graft_trajectory t =
        graft_trajectory_new(arena, COUNTER_STEPS_MOST, COUNTER_LATENT, COUNTER_XFERS);
    counter_state state = counter_start(rng);
    bool over = false;
    t.step_count = 0;
    for (uint32_t k = 0; k <= COUNTER_STEPS_MOST; k++) {
        counter_encode(&state, t.z + (size_t)k * COUNTER_LATENT);
        memcpy(t.location_counts + (size_t)k * COUNTER_XFERS, state.left, sizeof state.left);
        if (over || k == COUNTER_STEPS_MOST) {
            break;
        }
        t.xfer[k] = COUNTER_XFERS;
        if (!counter_is_over(&state) && graft_rng_below(rng, 10) > 0) {
            do {
                t.xfer[k] = (uint16_t)graft_rng_below(rng, COUNTER_XFERS);
            } while (state.left[t.xfer[k]] == 0);
            t.location[k] = (uint16_t)graft_rng_below(rng, state.left[t.xfer[k]]);
            t.reward[k] = counter_apply(&state, t.xfer[k], t.location[k]);
        }
        over = t.xfer[k] == COUNTER_XFERS || counter_is_over(&state);
        t.end[k] = over ? 1 : 0;
        t.step_count++;
    }
    return t;
}

#endif

/* rollout.c - see rollout.h. */
#include "train/rollout.h"

graft_rollout graft_rollout_new(graft_arena *arena, uint32_t episodes, uint32_t horizon,
                                uint32_t latent, uint32_t xfers)
{
    size_t rows = (size_t)episodes * horizon;
    graft_rollout rollout = {
        .episodes = episodes, .horizon = horizon, .latent = latent, .xfers = xfers};
    rollout.length = GRAFT_NEW(arena, uint32_t, episodes);
    rollout.bootstrap = GRAFT_NEW(arena, float, episodes);
    rollout.z = GRAFT_NEW(arena, float, rows *latent);
    rollout.counts = GRAFT_NEW(arena, uint16_t, rows * xfers);
    rollout.xfer = GRAFT_NEW(arena, uint16_t, rows);
    rollout.location = GRAFT_NEW(arena, uint16_t, rows);
    rollout.log_p = GRAFT_NEW(arena, float, rows);
    rollout.value = GRAFT_NEW(arena, float, rows);
    rollout.reward = GRAFT_NEW(arena, float, rows);
    rollout.advantage = GRAFT_NEW(arena, float, rows);
    rollout.gain = GRAFT_NEW(arena, float, rows);
    return rollout;
}

void graft_rollout_estimate(graft_rollout *rollout, double discount, double lambda)
{
    for (uint32_t e = 0; e < rollout->episodes; e++) {
        size_t first = (size_t)e * rollout->horizon;
        double next_value = (double)rollout->bootstrap[e];
        double advantage = 0.0;
        for (uint32_t t = rollout->length[e]; t-- > 0;) {
            size_t row = first + t;
            double value = (double)rollout->value[row];
            double surprise = (double)rollout->reward[row] + discount * next_value - value;
            advantage = surprise + discount * lambda * advantage;
            rollout->advantage[row] = (float)advantage;
            rollout->gain[row] = (float)(advantage + value);
            next_value = value;
        }
    }
}

double graft_rollout_explained(const graft_rollout *rollout)
{
    double sums[2] = {0, 0}; /* Of gain, and of gain - value. */
    double squares[2] = {0, 0};
    double steps = 0;
    for (uint32_t e = 0; e < rollout->episodes; e++) {
        for (uint32_t t = 0; t < rollout->length[e]; t++) {
            size_t row = (size_t)e * rollout->horizon + t;
            double gain = (double)rollout->gain[row];
            double left = gain - (double)rollout->value[row];
            sums[0] += gain;
            sums[1] += left;
            squares[0] += gain * gain;
            squares[1] += left * left;
            steps += 1;
        }
    }
    double variance = steps > 0 ? squares[0] / steps - sums[0] / steps * (sums[0] / steps) : 0;
    double left = steps > 0 ? squares[1] / steps - sums[1] / steps * (sums[1] / steps) : 0;
    return variance > 1e-12 ? 1.0 - left / variance : 0.0;
}

double graft_rollout_mean_return(const graft_rollout *rollout)
{
    double sum = 0.0;
    for (uint32_t e = 0; e < rollout->episodes; e++) {
        for (uint32_t t = 0; t < rollout->length[e]; t++) {
            sum += (double)rollout->reward[(size_t)e * rollout->horizon + t];
        }
    }
    return rollout->episodes > 0 ? sum / rollout->episodes : 0.0;
}

double graft_rollout_mean_length(const graft_rollout *rollout)
{
    double sum = 0.0;
    for (uint32_t e = 0; e < rollout->episodes; e++) {
        sum += (double)rollout->length[e];
    }
    return rollout->episodes > 0 ? sum / rollout->episodes : 0.0;
}

/* trajectory.c - see trajectory.h. */
#include "train/trajectory.h"

#include <assert.h>
#include <math.h>

graft_trajectory graft_trajectory_new(graft_arena *arena, uint32_t step_count, uint32_t latent,
                                      uint32_t xfers)
{
    size_t states = (size_t)step_count + 1;
    graft_trajectory trajectory = {.step_count = step_count};
    trajectory.z = GRAFT_NEW(arena, float, states *latent);
    trajectory.xfer = GRAFT_NEW(arena, uint16_t, step_count);
    trajectory.location = GRAFT_NEW(arena, uint16_t, step_count);
    trajectory.reward = GRAFT_NEW(arena, float, step_count);
    trajectory.end = GRAFT_NEW(arena, uint8_t, step_count);
    trajectory.location_counts = GRAFT_NEW(arena, uint16_t, states * xfers);
    return trajectory;
}

graft_standardiser graft_standardiser_fit(graft_arena *arena, const float *z, size_t rows,
                                          uint32_t latent)
{
    assert(rows > 0);
    graft_standardiser fitted = {.latent = latent};
    fitted.mean = GRAFT_NEW(arena, float, latent);
    fitted.scale = GRAFT_NEW(arena, float, latent);
    for (uint32_t d = 0; d < latent; d++) {
        double sum = 0.0;
        double squares = 0.0;
        for (size_t i = 0; i < rows; i++) {
            sum += (double)z[i * latent + d];
        }
        double mean = sum / (double)rows;
        for (size_t i = 0; i < rows; i++) {
            double off = (double)z[i * latent + d] - mean;
            squares += off * off;
        }
        double deviation = sqrt(squares / (double)rows);
        fitted.mean[d] = (float)mean;
        fitted.scale[d] = (float)(1.0 / (deviation > 1e-3 ? deviation : 1e-3));
    }
    return fitted;
}

void graft_standardiser_apply(const graft_standardiser *standardiser, float *z, size_t rows)
{
    size_t latent = standardiser->latent;
    for (size_t i = 0; i < rows; i++) {
        for (size_t d = 0; d < latent; d++) {
            z[i * latent + d] =
                (z[i * latent + d] - standardiser->mean[d]) * standardiser->scale[d];
        }
    }
}

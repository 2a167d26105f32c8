/* optimiser.c - see optimiser.h. */
#include "train/nn/optimiser.h"

#include "train/nn/subnormal.h"

#include <math.h>

/* The Euclidean norm of the gradients of several sets together. */
static double gradient_norm(graft_parameters *const sets[], uint32_t set_count)
{
    double sum = 0.0;
    for (uint32_t k = 0; k < set_count; k++) {
        for (size_t i = 0; i < sets[k]->size; i++) {
            double g = (double)sets[k]->gradient[i];
            sum += g * g;
        }
    }
    return sqrt(sum);
}

static void update_set(graft_parameters *set, double learning_rate, float clip)
{
    const float keep_moment = 0.9F;
    const float keep_variance = 0.999F;
    set->step++;
    /* Both bias corrections are moved into the rate and epsilon (Kingma & Ba 2015, section 2). */
    double correction = sqrt(1.0 - pow((double)keep_variance, (double)set->step));
    double bias = 1.0 - pow((double)keep_moment, (double)set->step);
    float rate = (float)(learning_rate * correction / bias);
    float epsilon = (float)(1e-8 * correction);
    float *restrict value = set->value;
    float *restrict moment = set->moment;
    float *restrict variance = set->variance;
    const float *restrict gradient = set->gradient;
    for (size_t i = 0; i < set->size; i++) {
        float g = gradient[i] * clip;
        float m = keep_moment * moment[i] + (1.0F - keep_moment) * g;
        moment[i] = fabsf(m) < 1e-30F ? 0.0F : m; /* A dying moment would become denormal: slow. */
        variance[i] = keep_variance * variance[i] + (1.0F - keep_variance) * g * g;
        value[i] -= rate * moment[i] / (sqrtf(variance[i]) + epsilon);
    }
}

bool graft_adam_step(graft_parameters *const sets[], uint32_t set_count, double learning_rate,
                     double norm_most)
{
    double norm = gradient_norm(sets, set_count);
    if (!isfinite(norm)) {
        return false;
    }
    float clip = norm > norm_most ? (float)(norm_most / norm) : 1.0F;
    uint32_t float_mode = graft_subnormal_flush();
    for (uint32_t k = 0; k < set_count; k++) {
        update_set(sets[k], learning_rate, clip);
    }
    graft_subnormal_restore(float_mode);
    return true;
}

/* blur.c - see blur.h. */
#include "train/tariff/blur.h"

#include "graph/base/rng.h"

#include <math.h>

uint16_t graft_blur_value(const graft_blur *blurs, uint32_t count, uint32_t key, uint8_t op,
                          uint16_t value)
{
    const double octave = 1024.0 / log(2.0);
    double blurred = value;
    for (uint32_t b = 0; b < count && value > 0; b++) {
        graft_rng rng;
        graft_rng_derive(&rng, blurs[b].seed, blurs[b].by_operator ? op : key);
        blurred += octave * blurs[b].sigma * graft_rng_normal(&rng);
    }
    return (uint16_t)fmin(fmax(blurred, value > 0 ? 1.0 : 0.0), (double)UINT16_MAX);
}

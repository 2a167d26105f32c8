/* scale.c - see scale.h. */
#include "emit/header/scale.h"

#include <math.h>

bool graft_scale_make(double factor, graft_scale *scale)
{
    int exponent = 0;
    if (!(factor >= 0.0) || factor >= 65536.0) {
        return false;
    }
    double fraction =
        frexp(factor, &exponent); /* factor = fraction 2^exponent, fraction in [1/2, 1) */
    uint32_t multiplier = (uint32_t)(fraction * 65536.0 + 0.5);
    if (multiplier == 65536) {
        multiplier /= 2;
        exponent++;
    }
    if (exponent > 16) { /* Rounded up to 2^16. */
        return false;
    }
    *scale = (graft_scale){0, 0};
    if (multiplier > 0 && 16 - exponent <= 62) {
        *scale = (graft_scale){(uint16_t)multiplier, (uint8_t)(16 - exponent)};
    }
    return true;
}

/* blur.h - rows of a tariff times random factors, the same wherever a form appears, so that greedy
 * over the rows does another thing at every place alike. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Factors exp(sigma z), z normal, by seed and form, or by seed and operator. */
typedef struct graft_blur {
    uint64_t seed;
    double sigma;
    bool by_operator;
} graft_blur;

/* A row's value (see graft_tariff) blurred by all of these. What costs nothing goes on doing so. */
uint16_t graft_blur_value(const graft_blur *blurs, uint32_t count, uint32_t key, uint8_t op,
                          uint16_t value);

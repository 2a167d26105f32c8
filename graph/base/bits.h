/* bits.h - binary32 numbers and their bits, which attributes are. */
#pragma once

#include <stdint.h>
#include <string.h>

static inline float graft_float_of_bits(int32_t bits)
{
    float number = 0.0F;
    memcpy(&number, &bits, sizeof(number));
    return number;
}

static inline int32_t graft_bits_of_float(float number)
{
    int32_t bits = 0;
    memcpy(&bits, &number, sizeof(bits));
    return bits;
}

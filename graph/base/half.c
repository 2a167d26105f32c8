/* half.c - see half.h: by the bits, so that no processor's mode of rounding plays a part. */
#include "graph/base/half.h"

#include <math.h>
#include <string.h>

enum { SINGLE_MANTISSA = 23, SINGLE_BIAS = 127 };

static const uint32_t single_infinity = 0x7f800000U;

typedef struct {
    uint32_t mantissa; /* Bits. */
    uint32_t bias;     /* Of exponents. */
    uint32_t infinity;
} format;

static format format_of(uint32_t dtype)
{
    return dtype == GRAFT_DTYPE_F16 ? (format){10, 15, 0x7c00U} : (format){7, SINGLE_BIAS, 0x7f80U};
}

bool graft_half_is(uint32_t dtype) { return dtype == GRAFT_DTYPE_F16 || dtype == GRAFT_DTYPE_BF16; }

static float widen_one(format f, uint32_t bits)
{
    const uint32_t shift = SINGLE_MANTISSA - f.mantissa;
    uint32_t magnitude = bits & 0x7fffU;
    float value = 0.0F;
    if (magnitude >= f.infinity) {
        magnitude = single_infinity | (magnitude - f.infinity) << shift;
    } else if (magnitude >> f.mantissa != 0 || f.bias == SINGLE_BIAS) {
        magnitude = (magnitude << shift) + ((SINGLE_BIAS - f.bias) << SINGLE_MANTISSA);
    } else { /* A subnormal of float16, of units of 2^-24. */
        value = (float)magnitude * 0x1p-24F;
        memcpy(&magnitude, &value, sizeof magnitude);
    }
    magnitude |= (bits & 0x8000U) << 16;
    memcpy(&value, &magnitude, sizeof value);
    return value;
}

/* x / 2^shift, to the nearest, ties to even. */
static uint32_t round_shifted(uint32_t x, uint32_t shift)
{
    const uint32_t half = 1U << (shift - 1U);
    const uint32_t rest = x & ((1U << shift) - 1U);
    const uint32_t down = x >> shift;
    return down + (rest > half || (rest == half && (down & 1U) != 0) ? 1U : 0U);
}

static uint32_t narrow_one(format f, float value)
{
    const uint32_t shift = SINGLE_MANTISSA - f.mantissa;
    const uint32_t offset = SINGLE_BIAS - f.bias; /* Between the exponents. */
    uint32_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000U;
    const uint32_t magnitude = bits & 0x7fffffffU;
    const uint32_t exponent = magnitude >> SINGLE_MANTISSA;
    if (magnitude > single_infinity) {
        const uint32_t kept = (magnitude - single_infinity) >> shift;
        return sign | f.infinity | (kept != 0 ? kept : 1U << (f.mantissa - 1U));
    }
    if (offset > 0 && exponent <= offset) { /* Subnormal in the result. */
        const uint32_t away = shift + offset + 1U - exponent;
        const uint32_t full = (magnitude & ((1U << SINGLE_MANTISSA) - 1U)) | 1U << SINGLE_MANTISSA;
        return sign | (away > SINGLE_MANTISSA + 1U ? 0 : round_shifted(full, away));
    }
    const uint32_t rounded = round_shifted(magnitude - (offset << SINGLE_MANTISSA), shift);
    return sign | (rounded < f.infinity ? rounded : f.infinity);
}

void graft_half_widen(uint32_t dtype, const void *from, size_t count, float *to)
{
    const format f = format_of(dtype);
    const uint8_t *bytes = from;
    for (size_t i = 0; i < count; i++) {
        uint16_t bits = 0;
        memcpy(&bits, bytes + i * sizeof bits, sizeof bits);
        to[i] = widen_one(f, bits);
    }
}

static bool is_finite(float value) { return value - value == 0.0F; }

bool graft_half_narrow(uint32_t dtype, const float *from, size_t count, uint16_t *to)
{
    const format f = format_of(dtype);
    bool fits = true;
    for (size_t i = 0; i < count; i++) {
        to[i] = (uint16_t)narrow_one(f, from[i]);
        fits = fits && ((to[i] & 0x7fffU) != f.infinity || !is_finite(from[i]));
    }
    return fits;
}

bool graft_half_round_all(uint32_t dtype, float *numbers, size_t count)
{
    bool fits = true;
    for (size_t i = 0; i < count; i++) {
        uint16_t bits = 0;
        fits = graft_half_narrow(dtype, &numbers[i], 1, &bits) && fits;
        graft_half_widen(dtype, &bits, 1, &numbers[i]);
    }
    return fits;
}

bool graft_half_keeps(uint32_t dtype, const float *numbers, size_t count, bool each)
{
    const float part = ldexpf(1.0F, -(int)format_of(dtype).mantissa - 1);
    float largest = 0.0F;
    bool keeps = true;
    for (size_t i = 0; i < count; i++) {
        largest = fmaxf(largest, fabsf(numbers[i]));
    }
    for (size_t i = 0; i < count; i++) {
        float rounded = numbers[i];
        keeps = graft_half_round_all(dtype, &rounded, 1) && keeps &&
                !(fabsf(rounded - numbers[i]) > part * (each ? fabsf(numbers[i]) : largest));
    }
    return keeps;
}

/* numeric.h - exp, log, tanh and the logistic function in plain arithmetic on floats.
 *
 * Why not libm: these inline into loops that the compiler vectorises, and they give the same bytes
 * on every machine and library. Reduction and polynomials as in Cephes (Moshier 1992); relative
 * error of exp and log below 2e-7, absolute error of tanh and the logistic below 2e-7, checked by
 * tests/train/test_numeric.c. NaN stays NaN; exp saturates instead of overflowing. */
#pragma once

#include <stdint.h>
#include <string.h>

static inline float graft_float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t graft_bits_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* e^x; x is first clamped to [-87, 88]: the result is in [1.6e-38, 1.7e38], never denormal. */
static inline float graft_exp(float x)
{
    x = x < -87.0F ? -87.0F : x;
    x = x > 88.0F ? 88.0F : x;
    /* Adding 1.5 * 2^23 rounds to the nearest integer, which is then in the low bits. */
    float shifted = x * 1.44269504F + 12582912.0F;
    float n = shifted - 12582912.0F;
    uint32_t exponent = (graft_bits_of_float(shifted) - 0x4B400000U + 127U) << 23;
    float r = x - n * 0.693359375F;
    r = r + n * 2.12194440e-4F;
    float p = 1.9875691500e-4F;
    p = p * r + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    return (p * (r * r) + r + 1.0F) * graft_float_of_bits(exponent);
}

/* Natural logarithm of a positive, normal x; anything else gives a number without meaning. */
static inline float graft_ln(float x)
{
    uint32_t bits = graft_bits_of_float(x);
    /* x = m 2^e with m in [sqrt(1/2), sqrt(2)): 0x3F3504F3 is sqrt(1/2). */
    uint32_t moved = bits - 0x3F3504F3U;
    float e = (float)((int32_t)moved >> 23);
    float m = graft_float_of_bits((moved & 0x007FFFFFU) + 0x3F3504F3U) - 1.0F;
    float p = 7.0376836292e-2F;
    p = p * m - 1.1514610310e-1F;
    p = p * m + 1.1676998740e-1F;
    p = p * m - 1.2420140846e-1F;
    p = p * m + 1.4249322787e-1F;
    p = p * m - 1.6668057665e-1F;
    p = p * m + 2.0000714765e-1F;
    p = p * m - 2.4999993993e-1F;
    p = p * m + 3.3333331174e-1F;
    float square = m * m;
    float y = p * m * square - e * 2.12194440e-4F - 0.5F * square;
    return m + y + e * 0.693359375F;
}

static inline float graft_logistic(float x) { return 1.0F / (1.0F + graft_exp(-x)); }

static inline float graft_tanh(float x) { return 1.0F - 2.0F / (graft_exp(2.0F * x) + 1.0F); }

/* log(1 + e^x) without overflow or cancellation. */
static inline float graft_softplus(float x)
{
    float magnitude = x < 0.0F ? -x : x;
    return (x > 0.0F ? x : 0.0F) + graft_ln(1.0F + graft_exp(-magnitude));
}

/* real.h - the types of numbers that a GPU computes with, and their bits.
 *
 * binary16 and bfloat16 as IEEE 754 and its truncation define them; rounding is to nearest, ties to
 * even, as the device rounds. What is sent from here and is finite stays finite: numbers beyond the
 * type's largest become the largest. Masks of attention are made of the least binary32, whose
 * product with 0 would be a NaN if it were infinite. */
#pragma once

#include <stdint.h>
#include <string.h>

/* How tensors are stored and multiplied. Sums are in binary32 always. */
typedef enum cuda_type {
    CUDA_F32 = 0,  /* binary32 throughout */
    CUDA_TF32 = 1, /* binary32 in memory; products may round factors to 10 bits (tensor cores) */
    CUDA_F16 = 2,
    CUDA_BF16 = 3,
    CUDA_TYPE_COUNT = 4
} cuda_type;

static inline uint32_t cuda_type_bytes(cuda_type type) { return type <= CUDA_TF32 ? 4 : 2; }

static inline uint32_t cuda_float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static inline float cuda_bits_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* Drops `count` low bits (1 to 31), rounding to nearest even. */
static inline uint32_t cuda_round_bits(uint32_t bits, uint32_t count)
{
    uint32_t half = (1U << (count - 1)) - 1 + (bits >> count & 1U);
    return (bits + half) >> count;
}

static inline uint16_t cuda_to_bf16(float x)
{
    uint32_t bits = cuda_float_bits(x);
    if ((bits & 0x7fffffffU) > 0x7f800000U) {
        return (uint16_t)(bits >> 16 | 0x40U); /* A NaN stays one. */
    }
    if ((bits & 0x7fffffffU) > 0x7f7f0000U && (bits & 0x7fffffffU) < 0x7f800000U) {
        return (uint16_t)((bits >> 16 & 0x8000U) | 0x7f7fU); /* Above the largest, but finite. */
    }
    return (uint16_t)cuda_round_bits(bits & 0x7fffffffU, 16) | (uint16_t)(bits >> 16 & 0x8000U);
}

static inline float cuda_from_bf16(uint16_t half) { return cuda_bits_float((uint32_t)half << 16); }

static inline uint16_t cuda_to_f16(float x)
{
    uint32_t bits = cuda_float_bits(x);
    uint32_t sign = bits >> 16 & 0x8000U;
    bits &= 0x7fffffffU;
    if (bits > 0x477fe000U) { /* Above 65504, the largest; infinite; NaN. */
        return (uint16_t)(sign | (bits < 0x7f800000U   ? 0x7bffU
                                  : bits > 0x7f800000U ? 0x7e00U
                                                       : 0x7c00U));
    }
    if (bits < 0x38800000U) { /* Subnormal: a multiple of 2^-24. */
        uint32_t exponent = bits >> 23;
        uint32_t digits = exponent < 102 ? 0 : (bits & 0x7fffffU) | 0x800000U;
        uint32_t drop = exponent < 102 ? 24 : 126 - exponent;
        return (uint16_t)(sign | (drop > 24 ? 0 : cuda_round_bits(digits, drop)));
    }
    return (uint16_t)(sign | cuda_round_bits(bits - 0x38000000U, 13));
}

static inline float cuda_from_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000U) << 16;
    uint32_t exponent = half >> 10 & 0x1fU;
    uint32_t digits = half & 0x3ffU;
    if (exponent == 31) {
        return cuda_bits_float(sign | 0x7f800000U | digits << 13);
    }
    if (exponent == 0) {
        float size = (float)digits * 0x1p-24F;
        return cuda_bits_float(sign | cuda_float_bits(size));
    }
    return cuda_bits_float(sign | ((exponent + 112) << 23) | digits << 13);
}

/* `x` as it is stored: bits in the low bytes. */
static inline uint32_t cuda_to_bits(cuda_type type, float x)
{
    return type == CUDA_F16    ? cuda_to_f16(x)
           : type == CUDA_BF16 ? cuda_to_bf16(x)
                               : cuda_float_bits(x);
}

static inline float cuda_from_bits(cuda_type type, uint32_t bits)
{
    return type == CUDA_F16    ? cuda_from_f16((uint16_t)bits)
           : type == CUDA_BF16 ? cuda_from_bf16((uint16_t)bits)
                               : cuda_bits_float(bits);
}

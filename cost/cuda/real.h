/* real.h - the types of numbers that a GPU computes with, and their bits.
 *
 * Rounding is to nearest, ties to even (graph/base/half.h), as the device rounds. What is sent from
 * here and is finite stays finite: numbers beyond the type's largest become the largest. Masks of
 * attention are made of the least binary32, whose product with 0 would be a NaN if it were
 * infinite. */
#pragma once

#include "graph/base/bits.h"
#include "graph/base/half.h"

#include <math.h>

/* How tensors are stored and multiplied. Sums are in binary32 always. */
typedef enum cuda_type {
    CUDA_F32 = 0,  /* binary32 throughout */
    CUDA_TF32 = 1, /* binary32 in memory; products may round factors to 10 bits (tensor cores) */
    CUDA_F16 = 2,
    CUDA_BF16 = 3,
    CUDA_TYPE_COUNT = 4
} cuda_type;

static inline uint32_t cuda_type_bytes(cuda_type type) { return type <= CUDA_TF32 ? 4 : 2; }

/* Numbers in 16 bits, as the type stores them. */
static inline void cuda_narrow(cuda_type type, const float *from, size_t count, uint16_t *to)
{
    const uint32_t dtype = type == CUDA_F16 ? GRAFT_DTYPE_F16 : GRAFT_DTYPE_BF16;
    const uint32_t infinity = type == CUDA_F16 ? 0x7c00U : 0x7f80U;
    if (!graft_half_narrow(dtype, from, count, to)) {
        for (size_t i = 0; i < count; i++) {
            to[i] = (uint16_t)(to[i] - ((to[i] & 0x7fffU) == infinity && isfinite(from[i])));
        }
    }
}

static inline void cuda_widen(cuda_type type, const void *from, size_t count, float *to)
{
    graft_half_widen(type == CUDA_F16 ? GRAFT_DTYPE_F16 : GRAFT_DTYPE_BF16, from, count, to);
}

/* `x` as it is stored: bits in the low bytes. */
static inline uint32_t cuda_to_bits(cuda_type type, float x)
{
    uint16_t half = 0;
    if (cuda_type_bytes(type) == sizeof(float)) {
        return (uint32_t)graft_bits_of_float(x);
    }
    cuda_narrow(type, &x, 1, &half);
    return half;
}

static inline float cuda_from_bits(cuda_type type, uint32_t bits)
{
    const uint16_t half = (uint16_t)bits;
    float x = graft_float_of_bits((int32_t)bits);
    if (cuda_type_bytes(type) == sizeof(half)) {
        cuda_widen(type, &half, 1, &x);
    }
    return x;
}

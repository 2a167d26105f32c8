/* lanes.h - as many floats as the processor computes with at once, in the compiler's own vector
 * types: written once, compiled for whatever -march says. Only for files whose loops the compiler
 * cannot be left to vectorise. */
#pragma once

#include <stdint.h>
#include <string.h>

#ifdef __FMA__
#include <immintrin.h>
#endif

/* LANES divides GRAFT_LAYOUT_BLOCK. */
#if defined(__AVX512F__)
enum { LANES = 16 };
#elif defined(__AVX__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif

typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t lanes_mask __attribute__((vector_size(LANES * sizeof(float))));
typedef uint32_t lanes_bits __attribute__((vector_size(LANES * sizeof(float))));

#define LANES_INLINE static inline __attribute__((always_inline))

LANES_INLINE lanes lanes_load(const float *from)
{
    lanes v;
    memcpy(&v, from, sizeof(v));
    return v;
}

/* The first `count` of them; the others are 0. */
LANES_INLINE lanes lanes_load_some(const float *from, int64_t count)
{
    lanes v = {0.0F};
    if (count == LANES) {
        return lanes_load(from);
    }
    memcpy(&v, from, (size_t)count * sizeof(float));
    return v;
}

LANES_INLINE void lanes_store(float *to, lanes v) { memcpy(to, &v, sizeof(v)); }

LANES_INLINE lanes lanes_of(float x) { return x - (lanes){0.0F}; }

/* a b + c, rounded once where the processor can. */
LANES_INLINE lanes lanes_fused(lanes a, lanes b, lanes c)
{
#if defined(__AVX512F__)
    return (lanes)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
    return (lanes)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return a * b + c;
#endif
}

/* `a` where the mask is set, elsewhere `b`. */
LANES_INLINE lanes lanes_choose(lanes_mask mask, lanes a, lanes b)
{
    return (lanes)(((lanes_mask)a & mask) | ((lanes_mask)b & ~mask));
}

/* 2^x for |x| <= 126, from the nearest whole power and a polynomial for the rest, that of Cephes'
 * exp2f; relative error below 3e-7. Adding `big` rounds, and leaves the power in the last bits. */
LANES_INLINE lanes lanes_exp2(lanes x)
{
    static const float p[6] = {1.535336188319500e-4F, 1.339887440266574e-3F, 9.618437357674640e-3F,
                               5.550332471162809e-2F, 2.402264791363012e-1F, 6.931472028550421e-1F};
    const lanes big = lanes_of(12582912.0F); /* 1.5 2^23 */
    const lanes whole = x + big;
    const lanes rest = x - (whole - big);
    lanes sum = lanes_of(p[0]);
    for (int i = 1; i < 6; i++) {
        sum = lanes_fused(sum, rest, lanes_of(p[i]));
    }
    sum = lanes_fused(sum, rest, lanes_of(1.0F));
    return (lanes)((lanes_bits)sum + (lanes_bits)whole * (1U << 23));
}

/* What is NaN stays it. */
LANES_INLINE lanes lanes_clamp(lanes x, lanes low, lanes high)
{
    x = lanes_choose(x < low, low, x);
    return lanes_choose(x > high, high, x);
}

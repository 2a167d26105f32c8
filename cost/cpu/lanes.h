/* lanes.h - as many floats as the processor computes with at once, in the compiler's own vector
 * types: written once, compiled for whatever -march says. Only for files whose loops the compiler
 * cannot be left to vectorise. */
#ifndef GRAFT_COST_LANES_H
#define GRAFT_COST_LANES_H

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

#define LANES_INLINE static inline __attribute__((always_inline))

LANES_INLINE lanes lanes_load(const float *from)
{
    lanes v;
    memcpy(&v, from, sizeof(v));
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

/* What is NaN stays it. */
LANES_INLINE lanes lanes_clamp(lanes x, lanes low, lanes high)
{
    x = lanes_choose(x < low, low, x);
    return lanes_choose(x > high, high, x);
}

#endif

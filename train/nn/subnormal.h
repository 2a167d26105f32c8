/* subnormal.h - floats below 2^-126 are taken for 0 while networks are trained.
 *
 * A processor takes some hundred cycles for a product with a subnormal number, and the gradients of
 * a mixture are full of them: components that explain nothing get weights like e^-90. Without this
 * a trained world model learns three times slower than a fresh one. The mode belongs to the thread,
 * and threads started under it inherit it. Where the processor has no such mode nothing happens. */
#pragma once

#include <stdint.h>

#if defined(__SSE2__)
#include <xmmintrin.h>

/* Bits of MXCSR: results flushed to zero, operands taken for zero. */
enum { GRAFT_FLUSH_BITS = 0x8040 };

/* Switches it on; returns what graft_subnormal_restore wants. */
static inline uint32_t graft_subnormal_flush(void)
{
    uint32_t before = _mm_getcsr();
    _mm_setcsr(before | GRAFT_FLUSH_BITS);
    return before;
}
static inline void graft_subnormal_restore(uint32_t before) { _mm_setcsr(before); }
#else
static inline uint32_t graft_subnormal_flush(void) { return 0; }
static inline void graft_subnormal_restore(uint32_t before) { (void)before; }
#endif

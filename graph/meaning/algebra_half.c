/* algebra_half.c - see algebra_half.h. */
#include "algebra_half.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { HALF_BITS = 11, HALF_LEAST = -14, HALF_MOST = 15 };

float graft_half_round(double x)
{
    int exponent = 0;
    if (x == 0.0 || !isfinite(x)) {
        return (float)x;
    }
    (void)frexp(x, &exponent); /* |x| is in [2^(exponent - 1), 2^exponent). */
    exponent = exponent - 1 < HALF_LEAST ? HALF_LEAST : exponent - 1;
    double unit = ldexp(1.0, exponent - (HALF_BITS - 1));
    double rounded = nearbyint(x / unit) * unit; /* Exact but for the one rounding. */
    double limit = ldexp(2.0, HALF_MOST);
    return rounded >= limit ? INFINITY : rounded <= -limit ? -INFINITY : (float)rounded;
}

static inline float lift_half(void *k, int32_t value)
{
    (void)k;
    return graft_half_round((double)value);
}

static inline float lift_float_half(void *k, int32_t bits)
{
    (void)k;
    float value = 0.0F;
    memcpy(&value, &bits, sizeof value);
    return graft_half_round((double)value);
}

static inline float sum_half(void *k, float a, float b)
{
    (void)k;
    return graft_half_round((double)a + (double)b);
}

static inline float difference_half(void *k, float a, float b)
{
    (void)k;
    return graft_half_round((double)a - (double)b);
}

static inline float product_half(void *k, float a, float b)
{
    (void)k;
    return graft_half_round((double)a * (double)b);
}

static inline float quotient_half(void *k, float a, float b)
{
    (void)k;
    return graft_half_round((double)a / (double)b);
}

/* A NaN in either place wins. */
static inline float max_half(void *k, float a, float b)
{
    (void)k;
    return a > b || a != a ? a : b;
}

static inline float min_half(void *k, float a, float b)
{
    (void)k;
    return a < b || a != a ? a : b;
}

static inline float exp_half(void *k, float x)
{
    (void)k;
    return graft_half_round(exp((double)x));
}

static inline float sqrt_half(void *k, float x)
{
    (void)k;
    return graft_half_round(sqrt((double)x));
}

static inline float erf_half(void *k, float x)
{
    (void)k;
    return graft_half_round(erf((double)x));
}

static inline float sigmoid_half(void *k, float x)
{
    (void)k;
    return graft_half_round(1.0 / (1.0 + exp(-(double)x)));
}

static inline float tanh_half(void *k, float x)
{
    (void)k;
    return graft_half_round(tanh((double)x));
}

static inline float log_half(void *k, float x)
{
    (void)k;
    return graft_half_round(log((double)x));
}

static inline float sin_half(void *k, float x)
{
    (void)k;
    return graft_half_round(sin((double)x));
}

static inline float cos_half(void *k, float x)
{
    (void)k;
    return graft_half_round(cos((double)x));
}

static inline float softmax_shift_half(void *k, const float *row, size_t count, size_t step)
{
    float largest = row[0];
    for (size_t i = 1; i < count; i++) {
        largest = max_half(k, largest, row[i * step]);
    }
    return largest;
}

static inline float round_half(void *k, float a, float b) { return rintf(quotient_half(k, a, b)); }

#define NUM    float
#define ALG(f) f##_half
#include "operator_bodies.inc"

void graft_half_run(uint32_t op, const graft_call *call, const float *const in[],
                    float *const out[])
{
    assert(graft_op(op) != NULL);
    run_half[op](NULL, call, in, out);
}

/* algebra_real.c - operator bodies over binary64. */
#include "algebra_real.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static inline double lift_real(void *k, int32_t value)
{
    (void)k;
    return (double)value;
}

static inline double lift_float_real(void *k, int32_t bits)
{
    (void)k;
    float value = 0.0F;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static inline double sum_real(void *k, double a, double b)
{
    (void)k;
    return a + b;
}

static inline double difference_real(void *k, double a, double b)
{
    (void)k;
    return a - b;
}

static inline double product_real(void *k, double a, double b)
{
    (void)k;
    return a * b;
}

static inline double quotient_real(void *k, double a, double b)
{
    (void)k;
    return a / b;
}

/* A NaN in either place wins. */
static inline double max_real(void *k, double a, double b)
{
    (void)k;
    return a > b || a != a ? a : b;
}

static inline double min_real(void *k, double a, double b)
{
    (void)k;
    return a < b || a != a ? a : b;
}

static inline double exp_real(void *k, double x)
{
    (void)k;
    return exp(x);
}

static inline double sqrt_real(void *k, double x)
{
    (void)k;
    return sqrt(x);
}

static inline double erf_real(void *k, double x)
{
    (void)k;
    return erf(x);
}

static inline double sigmoid_real(void *k, double x)
{
    (void)k;
    return 1.0 / (1.0 + exp(-x));
}

static inline double tanh_real(void *k, double x)
{
    (void)k;
    return tanh(x);
}

static inline double log_real(void *k, double x)
{
    (void)k;
    return log(x);
}

static inline double sin_real(void *k, double x)
{
    (void)k;
    return sin(x);
}

static inline double cos_real(void *k, double x)
{
    (void)k;
    return cos(x);
}

static inline double softmax_shift_real(void *k, const double *row, size_t count, size_t step)
{
    double largest = row[0];
    for (size_t i = 1; i < count; i++) {
        largest = max_real(k, largest, row[i * step]);
    }
    return largest;
}

static inline double round_real(void *k, double a, double b)
{
    (void)k;
    return rint(a / b);
}

#define NUM    double
#define ALG(f) f##_real
#include "operator_bodies.inc"

void graft_real_run(uint32_t op, const graft_call *call, const double *const in[],
                    double *const out[])
{
    assert(graft_op(op) != NULL);
    run_real[op](NULL, call, in, out);
}

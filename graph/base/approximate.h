/* approximate.h - functions that the library's mathematics are too slow for, as short straight code
 * that the compiler makes vectors of. */
#pragma once

/* By Horner's rule, the highest power first. */
static inline float polynomial(float x, const float *coefficients, int count)
{
    float sum = coefficients[0];
    for (int i = 1; i < count; i++) {
        sum = sum * x + coefficients[i];
    }
    return sum;
}

/* erf on [-4, 4], beyond which it is 1 in binary32: x P(x^2) / Q(x^2), the rational minimax
 * approximation of Eigen's MathFunctionsImpl.h; error below 4e-7. */
static inline float approximate_erf(float x)
{
    static const float p[7] = {-2.72614225801306e-10F, 2.77068142495902e-08F,
                               -2.10102402082508e-06F, -5.69250639462346e-05F,
                               -7.34990630326855e-04F, -2.95459980854025e-03F,
                               -1.60960333262415e-02F};
    static const float q[5] = {-1.45660718464996e-05F, -2.13374055278905e-04F,
                               -1.68282697438203e-03F, -7.37332916720468e-03F,
                               -1.42647390514189e-02F};
    float t = x > 4.0F ? 4.0F : (x < -4.0F ? -4.0F : x);
    float s = t * t;
    return t * polynomial(s, p, 7) / polynomial(s, q, 5);
}

/* tanh: x P(x^2) / Q(x^2), the rational minimax approximation of Eigen's MathFunctionsImpl.h on
 * [-7.905, 7.905], beyond which it is 1 in binary32; error below 4e-7. */
static inline float approximate_tanh(float x)
{
    static const float p[7] = {-2.76076847742355e-16F, 2.00018790482477e-13F,
                               -8.60467152213735e-11F, 5.12229709037114e-08F,
                               1.48572235717979e-05F,  6.37261928875436e-04F,
                               4.89352455891786e-03F};
    static const float q[4] = {1.19825839466702e-06F, 1.18534705686654e-04F, 2.26843463243900e-03F,
                               4.89352518554385e-03F};
    float t = x > 7.90531111F ? 7.90531111F : (x < -7.90531111F ? -7.90531111F : x);
    float s = t * t;
    return t * polynomial(s, p, 7) / polynomial(s, q, 4);
}

static inline float approximate_sigmoid(float x)
{
    return 0.5F + 0.5F * approximate_tanh(0.5F * x);
}

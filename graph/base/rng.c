/* rng.c - xoshiro256** 1.0 and splitmix64 (Blackman and Vigna, "Scrambled linear pseudorandom
 * number generators", 2018; both generators are in the public domain).
 *
 * The normal distribution needs a logarithm, and C libraries differ in its last bit: the one below
 * uses only operations that IEEE 754 rounds exactly, so that seeded weights are equal everywhere.
 */
#include "graph/base/rng.h"

#include <math.h>

static uint64_t next_splitmix(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void graft_rng_seed(graft_rng *rng, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        rng->state[i] = next_splitmix(&seed);
    }
}

/* Both numbers go through splitmix first, and by different ways: seeds and streams are usually
 * small and close together, and (a, b) must not be (b, a). */
void graft_rng_derive(graft_rng *rng, uint64_t seed, uint64_t stream)
{
    uint64_t mixed_seed = next_splitmix(&seed);
    uint64_t mixed_stream = next_splitmix(&stream);
    graft_rng_seed(rng, mixed_seed ^ graft_rotate_left(mixed_stream, 32));
}

double graft_rng_uniform(graft_rng *rng) { return (double)(graft_rng_next(rng) >> 11) * 0x1p-53; }

/* log x for 0 < x < infinity: x = m 2^e with m around 1, log m = 2 artanh((m-1)/(m+1)). The series
 * is cut where its terms fall below 2^-53 of the first: |(m-1)/(m+1)| < 0.172. */
static double log_exactly_rounded_steps(double x)
{
    enum { TERMS = 11 };
    int exponent = 0;
    double m = frexp(x, &exponent); /* In [0.5, 1). */
    if (m < 0.70710678118654752) {
        m *= 2.0;
        exponent--;
    }
    double z = (m - 1.0) / (m + 1.0);
    double square = z * z;
    double sum = 0.0;
    for (int i = TERMS; i >= 0; i--) {
        sum = sum * square + 1.0 / (2.0 * i + 1.0);
    }
    return 2.0 * z * sum + (double)exponent * 0.69314718055994531;
}

double graft_rng_normal(graft_rng *rng)
{
    double x = 0.0;
    double radius = 0.0;
    do {
        x = 2.0 * graft_rng_uniform(rng) - 1.0;
        double y = 2.0 * graft_rng_uniform(rng) - 1.0;
        radius = x * x + y * y;
    } while (radius >= 1.0 || radius == 0.0);
    return x * sqrt(-2.0 * log_exactly_rounded_steps(radius) / radius);
}

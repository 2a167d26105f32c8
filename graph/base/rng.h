/* rng.h - seeded random numbers (xoshiro256**, seeded with splitmix64). Equal seeds give equal
 * sequences on every machine. Never shared between threads: derive one per unit of work. */
#pragma once

#include <assert.h>
#include <stdint.h>

typedef struct {
    uint64_t state[4];
} graft_rng;

void graft_rng_seed(graft_rng *rng, uint64_t seed);
/* A generator for sub-task `stream` of `seed`: independent of every other stream. */
void graft_rng_derive(graft_rng *rng, uint64_t seed, uint64_t stream);

static inline uint64_t graft_rotate_left(uint64_t x, int by)
{
    return (x << by) | (x >> (64 - by));
}

static inline uint64_t graft_rng_next(graft_rng *rng)
{
    uint64_t *s = rng->state;
    uint64_t result = graft_rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = graft_rotate_left(s[3], 45);
    return result;
}

/* Uniform in [0, bound), without modulo bias; bound > 0. Lemire, "Fast random integer generation in
 * an interval", 2019: the upper half of a product is uniform once the few lower halves that would
 * be over-represented are drawn again. */
static inline uint32_t graft_rng_below(graft_rng *rng, uint32_t bound)
{
    assert(bound > 0);
    uint64_t product = (graft_rng_next(rng) >> 32) * bound;
    if ((uint32_t)product < bound) { /* Else it is no surplus either: spares the division. */
        uint32_t surplus = (uint32_t)(0u - bound) % bound; /* 2^32 mod bound. */
        while ((uint32_t)product < surplus) {
            product = (graft_rng_next(rng) >> 32) * bound;
        }
    }
    return (uint32_t)(product >> 32);
}

/* Uniform in [0, 1) with 53 random bits. */
double graft_rng_uniform(graft_rng *rng);
/* Standard normal (Marsaglia's polar method). */
double graft_rng_normal(graft_rng *rng);

/* rng.h - seeded random numbers (xoshiro256**, seeded with splitmix64). Equal seeds give equal
 * sequences on every machine. Never shared between threads: derive one per unit of work. */
#ifndef GRAFT_RNG_H
#define GRAFT_RNG_H

#include <stdint.h>

typedef struct {
    uint64_t state[4];
} graft_rng;

void graft_rng_seed(graft_rng *rng, uint64_t seed);
/* A generator for sub-task `stream` of `seed`: independent of every other stream. */
void graft_rng_derive(graft_rng *rng, uint64_t seed, uint64_t stream);
uint64_t graft_rng_next(graft_rng *rng);
/* Uniform in [0, bound), without modulo bias; bound > 0. */
uint32_t graft_rng_below(graft_rng *rng, uint32_t bound);
/* Uniform in [0, 1) with 53 random bits. */
double graft_rng_uniform(graft_rng *rng);
/* Standard normal (Marsaglia's polar method). */
double graft_rng_normal(graft_rng *rng);

#endif

/* bench.h - how long the numerics take, on one thread, on sizes that training really has. */
#ifndef GRAFT_TRAIN_BENCH_H
#define GRAFT_TRAIN_BENCH_H

#include "graph/env.h"

/* Prints JSON Lines with name, unit, median, low and high (quartiles), one figure a line:
 *   encoder.forward, encoder.differentiate   a graph of 175 nodes and 190 edges
 *   world.forward, world.differentiate       10 sequences of 150 steps, LSTM 256, latent 64, 100
 * xfers world.update                             the same with the Adam step dream 64 dreams of at
 * most 50 steps, per step of one dream ppo.differentiate                        256 transitions */
void graft_numerics_bench(graft_env *env, FILE *out);

#endif

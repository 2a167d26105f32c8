/* bench.h - how much gen enumerates, how long it takes, how much memory it needs. */
#ifndef GRAFT_GEN_BENCH_H
#define GRAFT_GEN_BENCH_H

#include "graph/base/env.h"

/* Runs the families of a folder three times, each set to the depth it names or, unless it is 0, to
 * `depth`, and prints JSON Lines with name and unit, one figure a line: gen.FAMILY.{graphs,
 * evaluated, keys, pairs, laws, candidates} with value; gen.FAMILY.memory, the most that a set
 * held; gen.FAMILY.time, on the clock, and gen.FOLDER.cpu, of all families and threads, with
 * median, low and high; gen.FOLDER.false, the share of candidates that differ on 256 fresh samples.
 * A depth of the caller's is part of the names (gen.taso4.time). */
GRAFT_MUST_USE graft_status graft_gen_bench(graft_env *env, const char *folder, uint32_t depth,
                                            FILE *out);
/* Names the machine: processor, cores, threads used, load. */
void graft_gen_bench_machine(graft_env *env, FILE *out);

#endif

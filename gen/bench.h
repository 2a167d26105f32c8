/* bench.h - how much gen enumerates, how long it takes, how much memory it needs. */
#ifndef GRAFT_GEN_BENCH_H
#define GRAFT_GEN_BENCH_H

#include "graph/env.h"

/* Runs the families of a folder, each set to the depth it names, and prints JSON Lines with name
 * and unit, one figure a line: gen.FAMILY.{graphs, evaluated, keys, pairs, laws, candidates} with
 * value; gen.FAMILY.time with median, low and high of three runs; gen.FAMILY.memory, the most that
 * a set held; gen.false, the share of candidates that differ on 256 fresh samples; gen.rss, the
 * process's peak. */
GRAFT_MUST_USE graft_status graft_gen_bench(graft_env *env, const char *folder, FILE *out);

#endif

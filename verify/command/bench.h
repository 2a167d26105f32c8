/* bench.h - what verifying costs: `make bench-verify`. */
#ifndef GRAFT_VERIFY_BENCH_H
#define GRAFT_VERIFY_BENCH_H

#include "graph/base/env.h"

/* Prints JSON Lines, one figure a line with name and unit:
 *  - verify.filter.rule: a rule swept as `make rules` sweeps it, processor time; median, low, high
 * and mean over a hundred rules of the committed set;
 *  - verify.prove.set: the committed set swept and proved from scratch in env->thread_count
 *    children, wall clock; verify.prove.cpu: their processor time; and how many were proved;
 *  - verify.generate.*: the families gone through from candidates to a set: wall clock, the counts
 * of graft_generate, and the share of distinct rules that got a verdict. `rules` and `families`
 * name the committed set and its families. Fails as graft_rulefile_read, graft_gen_families_read and graft_generate do. */
GRAFT_MUST_USE graft_status graft_verify_bench(graft_env *env, const char *rules,
                                               const char *families, FILE *out);

#endif

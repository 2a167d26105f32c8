/* bench_speed.h - how fast models of the zoo run, before and after rewriting, beside onnxruntime.
 */
#ifndef GRAFT_EMIT_BENCH_SPEED_H
#define GRAFT_EMIT_BENCH_SPEED_H

#include "graph/base/figures.h"

/* For each model, the milliseconds of a run (one thread, median of interleaved rounds) of
 *
 *      before    the graph as exported, by our executor
 *      after     the graph that greedy search with the committed rules finds, by our executor
 *      off, all  onnxruntime with none and with all of its optimisations
 *
 * and the median over the rounds of their ratios: before/off, after/all, after/before. Where
 * onnxruntime cannot be had, its rows are missing and the log says why. */
GRAFT_MUST_USE graft_status graft_speed_bench(graft_env *env, const graft_bench *bench);

#endif

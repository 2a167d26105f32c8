/* bench.h - the figures of this stage: how fast costs are found, how long measuring takes, how well
 * sums of parts predict whole graphs. */
#ifndef GRAFT_COST_BENCH_H
#define GRAFT_COST_BENCH_H

#include "graph/base/figures.h"

/* Measures on this CPU with one thread, in a database of its own, and prints JSON Lines with name,
 * unit, median and spread (distance between the quartiles; 0 for single figures):
 *   cost.MODEL.measuring      seconds to measure all operators of a model, from nothing
 *   cost.MODEL.whole          milliseconds of the unfused model in the executor
 *   cost.MODEL.sum            milliseconds that the database predicts for it
 *   cost.MODEL.control        ratio of the model's time to itself: what the clock cannot tell apart
 *   cost.MODEL.peak           megabytes of tensors while it runs
 *   cost.MODEL.graph          microseconds to price the graph
 *   cost.MODEL.lookup         nanoseconds to find one entry of its
 *   cost.MODEL.LAYOUTS.sum    sum of parts / whole graph, layouts "joint" or by the "convention"
 *   cost.MODEL.LAYOUTS.left_out  the same with factors fitted to all other models
 * for the models of the zoo; the last two only for all of them together. GRAFT_INTERRUPTED when the
 * user asked to stop. */
GRAFT_MUST_USE graft_status graft_cost_bench(graft_env *env, const graft_bench *bench);

#endif

/* bench_views.h - what it brings that concatenations, splits and slices are views. */
#ifndef GRAFT_EMIT_BENCH_VIEWS_H
#define GRAFT_EMIT_BENCH_VIEWS_H

#include "graph/base/figures.h"

/* Models that cut and join much, each as given and as greedy search finds it with the committed
 * rules (with copies and with views: two searches), on this CPU with one thread. WHAT is "given"
 * or "found"; ratios are with views / with copies:
 *   views.MODEL.WHAT.measured   whole graphs, interleaved: median of paired ratios
 *   views.MODEL.WHAT.control    the graph with copies against itself
 *   views.MODEL.WHAT.copies     milliseconds of that
 *   views.MODEL.WHAT.predicted  costs
 *   views.MODEL.WHAT.moves      steps that concatenate, split or slice: copies; .left: with views
 *   views.MODEL.WHAT.peak       most bytes of tensors alive at once
 * Costs are kept in out/bench/search.costs. GRAFT_INTERRUPTED when the user asked to stop. */
GRAFT_MUST_USE graft_status graft_views_bench(graft_env *env, const graft_bench *bench);

#endif

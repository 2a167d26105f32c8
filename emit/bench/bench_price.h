/* bench_price.h - how long a search waits for the price of a graph. */
#pragma once

#include "graph/base/figures.h"

/* For some models of the zoo, with the committed rules and the costs in out/bench/search.costs:
 *   cost.MODEL.same     microseconds to price the graph as given, just after it was priced
 *   cost.MODEL.rewrite  the same after one rewrite, each of those that it offers: the median over
 *                       rewrites; rounds: their number
 *   cost.MODEL.rewrite_most  what nine in ten of them stay below
 *   cost.MODEL.lookup   nanoseconds to find one entry that the price rests on
 * Each is the median of several times; nothing is measured meanwhile. GRAFT_INTERRUPTED when the
 * user asked to stop. */
GRAFT_MUST_USE graft_status graft_price_bench(graft_env *env, const graft_bench *bench);

/* bench_search.h - what long searches gain, how well costs put rewritten graphs in order, and how long
 * a search waits for the price of a graph. */
#pragma once

#include "graph/base/options.h"

/* `graft bench [NAME]` measures on this CPU with one thread, in the database out/bench/search.costs, and
 * prints JSON Lines.
 *
 * search: for models with published best gains, with the committed rules: TASO's backtracking search
 * (1,000 dequeues, at most five minutes) in up to three passes, between which the costs that the
 * graph found rests on are measured again (refine.h); the passes' graphs are then timed.
 *   search.MODEL.passN      pass N's graph / the best of the passes before and the graph as given
 *   search.MODEL.best       whose graph is taken
 *   search.MODEL.predicted  cost of the graph found / cost of the graph as given
 *   search.MODEL.measured   the same of whole graphs, interleaved: median of paired ratios
 *   search.MODEL.control    a graph against itself
 *   search.MODEL.before     the graph as given, layouts chosen jointly, in ms
 *   search.MODEL.nhwc, .nchw16c  the graph found / the base: the graph as given in one layout
 *                           throughout, direct implementations, copies (graft_cost_set_base, in
 *                           out/bench/base.costs); .base: the base in ms
 *   search.MODEL.gain       the better base / the graph found
 *   search.MODEL.layouts    as given, layouts of the convention / chosen jointly
 *   search.MODEL.steps      rewrites taken
 *
 * order: for each model 100 graphs along random walks of up to ten rewrites, priced, and measured whole in
 * turns with the graph as given; both as parts of what that one costs and takes:
 *   order.MODEL.right     of the pairs whose measured parts differ by more than three spreads, the
 *                         share whose costs differ in the same direction; rounds: such pairs (1.0
 *                         when there is none)
 *   order.MODEL.excluded  the share of pairs that do not differ by so much
 *   order.MODEL.graphs    graphs that were met
 *   order.MODEL.ratio     cost / measured over all of them; spread: between the quartiles
 *
 * cost: for some models of the zoo, with the committed rules and the costs in out/bench/search.costs:
 *   cost.MODEL.same     microseconds to price the graph as given, just after it was priced
 *   cost.MODEL.rewrite  the same after one rewrite, each of those that it offers: the median over
 *                       rewrites; rounds: their number
 *   cost.MODEL.rewrite_most  what nine in ten of them stay below
 *   cost.MODEL.lookup   nanoseconds to find one entry that the price rests on
 * Each is the median of several times; nothing is measured meanwhile. */
extern const graft_command graft_command_bench;

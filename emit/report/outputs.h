/* outputs.h - whether two graphs of the executor compute the same on inputs drawn at random. */
#pragma once

#include "cost/plan/executor.h"
#include "graph/base/rng.h"

/* Largest difference of an output, relative to the output's largest magnitude. Rules reassociate
 * sums and fold factors into weights: over the 50 layers of a network rounding grows to about 1e-5.
 */
#define GRAFT_OUTPUTS_DIFFERENCE_MOST 1e-3

/* A tensor: normal numbers; places and masks are 0 and 1, which lie in every table. In `arena`. */
float *graft_outputs_draw_tensor(graft_arena *arena, const graft_shape *shape, graft_rng *rng);
/* One such tensor for each input of an executor of `graph`, which is of `model`. What alone decides
 * an If is true and false for two seeds in a row, and what says how often a Loop's body runs 1 to
 * 3. In `arena`. */
const float **graft_outputs_draw(graft_arena *arena, const graft_executor *executor,
                                 const graft_model *model, const graft_graph *graph, uint64_t seed);
/* Room for its outputs. In `arena`. */
float **graft_outputs_new(graft_arena *arena, const graft_executor *executor,
                          const graft_graph *graph);
/* Largest difference of two sets of outputs of such an executor, relative to the largest magnitude
 * in `before` of each output. Infinite where one has NaN and the other not, and where whole
 * numbers, which rules leave alone, differ at all. */
double graft_outputs_difference(const graft_executor *executor, const graft_graph *graph,
                                float *const *before, float *const *after);

/* variants.h - the same model in other words: graphs that must compute what the model computes and
 * that exercise all of the ONNX writer; and what it computes of random inputs. */
#pragma once

#include "graph/model.h"
#include "tests/support/check.h"

/* A copy in which every node that Graft knows counts as made by a rule: each is generated anew. */
graft_graph *variant_regenerated(graft_arena *arena, const graft_model *model);
/* A copy to which a few fusing rules have been applied, with weight programs, until none matches;
 * *applied counts them. */
graft_graph *variant_fused(graft_env *env, graft_arena *arena, const graft_model *model,
                           uint32_t *applied);

/* By value, in env->unit: the data of the model's weights, and of its inputs normal numbers, or 0 and
 * 1 for whole numbers, which depend on the seed and the number of the input alone. */
const float **variant_values(graft_env *env, const graft_model *model, const graft_graph *graph,
                             uint64_t seed);
/* The same, and what the reference executor makes of them. */
const float **variant_run(graft_env *env, const graft_model *model, const graft_graph *graph,
                          uint64_t seed);

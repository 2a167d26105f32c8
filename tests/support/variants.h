/* variants.h - the same model in other words: graphs that must compute what the model computes and
 * that exercise all of the ONNX writer. */
#pragma once

#include "graph/model.h"
#include "tests/support/check.h"

/* A copy in which every node that Graft knows counts as made by a rule: each is generated anew. */
graft_graph *variant_regenerated(graft_arena *arena, const graft_model *model);
/* A copy to which a few fusing rules have been applied, with weight programs, until none matches;
 * *applied counts them. */
graft_graph *variant_fused(graft_env *env, graft_arena *arena, const graft_model *model,
                           uint32_t *applied);

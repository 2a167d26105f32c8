/* runtime.h - what a runtime makes of an ONNX file by itself when it loads it.
 *
 * A file says Conv, Add, Relu; runtimes run that as one. So for a graph that will be written as a
 * file, a rewrite that fuses these brings nothing, and one that parts them costs. Costs of such
 * graphs are those of the graph after the fusions listed in runtime.c, which all runtimes do that
 * we know (onnxruntime's level "extended" is the model). They are applied to copies, to price them
 * and to time them; what is written does not have them. */
#pragma once

#include "graph/model.h"
#include "train/search/matches.h"

typedef struct graft_runtime {
    graft_xfers run;    /* Both sides compute the same. */
    graft_xfers own;    /* Those, and what Graft's executor runs as one besides. */
    graft_xfers priced; /* The right side takes as long as a kernel for the left one would. */
} graft_runtime;

/* In `arena`. `fuses`: what a device says that it runs as one kernel, rules by which that is
 * priced; NULL: activations within products take no time. GRAFT_BAD_INPUT when one of them is no
 * rule. */
GRAFT_MUST_USE graft_status graft_runtime_open(graft_env *env, graft_arena *arena,
                                               const char *const *fuses, uint32_t fuse_count,
                                               graft_runtime *runtime);
/* Sets *graph and *order to what one of these makes of them, in `arena`: a copy, or the same where
 * there is nothing to fuse. By `priced` single kernels stand for what Graft has no operator for
 * (the other form of Gelu, the scores of attention): such a graph can be priced, not run. Fails
 * when the graph has a cycle. */
GRAFT_MUST_USE graft_status graft_runtime_fuse(graft_env *env, graft_arena *arena,
                                               const graft_xfers *xfers, const graft_graph **graph,
                                               const graft_order **order);
/* The same as Graft's executor does for itself, by `own`. */
GRAFT_MUST_USE graft_status graft_runtime_fuse_own(graft_env *env, graft_arena *arena,
                                                   const graft_runtime *runtime,
                                                   const graft_graph **graph,
                                                   const graft_order **order);
/* The same by `priced` for a graph that is written into the file of `model`, with how many kernels
 * a runtime then calls: one for each node of the file, and for what of them fuses. Changes to and
 * from 8 bits, which are parts of other kernels mostly, do not count. */
GRAFT_MUST_USE graft_status graft_runtime_calls(graft_env *env, graft_arena *arena,
                                                const graft_runtime *runtime,
                                                const graft_model *model, const graft_graph **graph,
                                                const graft_order **order, uint32_t *calls);

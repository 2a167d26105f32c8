/* algebra_float.h - the reference executor: operators over binary32 numbers, in plain loops.
 *
 * Sums are taken in the order of operator_bodies.inc, one rounding per operation, no contraction;
 * exp, erf, sigmoid, tanh, log, sin and cos are computed in binary64 and rounded once. A maximum or minimum with a
 * NaN is NaN. Results are the same on every machine up to the C library's last bits of exp and erf.
 */
#pragma once

#include "algebra.h"
#include "graph/base/env.h"

/* Runs one operator. `call` holds shapes that graft_infer_shapes accepts; `in` and `out` point to
 * row-major tensors of these shapes that do not overlap. */
void graft_float_run(uint32_t op, const graft_call *call, const float *const in[],
                     float *const out[]);

struct graft_model;
/* Runs every node of a graph, const nodes included. `values` has one entry per value id
 * (graph->value_end): on entry the tensors of inputs and weights, NULL elsewhere; afterwards those
 * of computed values too, allocated in `arena` and valid as long as it is, all of the values' own
 * types. Opaque nodes of a model (NULL: it is of none) that opaque.h can run are run.
 * GRAFT_UNSUPPORTED when the graph has another, GRAFT_BAD_INPUT when the tensor of an input or
 * weight that is read is missing, and as graft_opaque_run fails; `values` may then hold some
 * results. */
GRAFT_MUST_USE graft_status graft_float_model(graft_env *env, graft_arena *arena,
                                              const struct graft_model *model,
                                              const graft_graph *graph, const graft_order *order,
                                              const float **values);
/* Runs one opaque node of such a graph; its result lies in `arena`. Fails likewise. */
GRAFT_MUST_USE graft_status graft_float_opaque(graft_env *env, graft_arena *arena,
                                               const struct graft_model *model,
                                               const graft_graph *graph, graft_index node,
                                               const float **values);

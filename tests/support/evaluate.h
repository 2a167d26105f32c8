/* evaluate.h - a whole graph over exact residues (graph/meaning/algebra_field.h), for one sample of
 * inputs and weights.
 *
 * The tensor of an input or weight depends on the sample, its kind, its number and its shape alone,
 * so two graphs over the same sources are run on the same numbers. An opaque node's outputs are
 * random functions of its number and of all residues that it reads. */
#pragma once

#include "graph/base/arena.h"
#include "graph/meaning/algebra_field.h"

/* Most outputs of an opaque node. */
enum { EVALUATE_OUTPUTS = 4 };

/* Tensors by value id, row-major; NULL where there is none. */
typedef const graft_field *const *evaluate_tensors;

/* The numbers of an input or weight. Every third source is positive throughout, so that square
 * roots and quotients have arguments. */
const graft_field *evaluate_source(graft_arena *arena, uint64_t sample, const graft_value *value);
/* Runs one operator into new tensors out[0..output_count). False when the sample says nothing: a
 * division by zero, the root of a negative number, an order that the shadows cannot tell. */
bool evaluate_call(graft_arena *arena, uint32_t op, const graft_call *call,
                   const graft_field *const in[], const graft_field *out[]);
/* The outputs of an opaque node, as new tensors. */
void evaluate_opaque(graft_arena *arena, const graft_graph *graph, graft_index node,
                     evaluate_tensors tensors, const graft_field *out[]);
/* Runs every node in order: limits.values tensors in `arena`. NULL when the sample says nothing. */
evaluate_tensors evaluate_graph(graft_arena *arena, const graft_graph *graph,
                                const graft_order *order, uint64_t sample);
/* Whether the graphs' outputs have the same residues, one by one; false when their numbers or
 * shapes differ. */
bool evaluate_outputs_equal(const graft_graph *a, evaluate_tensors a_tensors, const graft_graph *b,
                            evaluate_tensors b_tensors);

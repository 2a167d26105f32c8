/* kernels.h - the differentiable operations that networks are built from. Derivations of the ones
 * that are not one line: docs/train-numerics.md.
 *
 * Every function computes its result, records the way back and returns a matrix of the tape. Index
 * lists are kept by reference until the tape is reset. Shapes as (rows, cols). */
#pragma once

#include "train/nn/tape.h"

/* x weight + bias: (n, in) (in, out) + (1, out) -> (n, out). `bias` may be NULL. */
graft_matrix *graft_linear(graft_tape *tape, const graft_matrix *x, const graft_matrix *weight,
                           const graft_matrix *bias);
/* The same with the parameters of a layer of a bound set. */
graft_matrix *graft_layer_apply(graft_tape *tape, const graft_parameters *set, graft_layer layer,
                                const graft_matrix *x);

/* Elementwise, any shape. The gradient of relu at 0 is 0. */
graft_matrix *graft_relu(graft_tape *tape, const graft_matrix *x);
graft_matrix *graft_tanh_of(graft_tape *tape, const graft_matrix *x);
/* Equal shapes. */
graft_matrix *graft_add(graft_tape *tape, const graft_matrix *a, const graft_matrix *b);

/* Columns of up to GRAFT_TAPE_INPUTS matrices of equal row count, side by side. */
graft_matrix *graft_concat(graft_tape *tape, const graft_matrix *const parts[], uint32_t count);

/* Row i of the result is row index[i] of x: (r, c) -> (count, c). */
graft_matrix *graft_gather_rows(graft_tape *tape, const graft_matrix *x, const uint32_t *index,
                                uint32_t count);

/* Rows of x grouped by segment[i] < segment_count, in any order: (n, c) -> (segment_count, c). An
 * empty segment gives zeros. Rows are taken in index order; the maximum goes to the first of
 * equals, which alone gets the gradient. */
graft_matrix *graft_segment_mean(graft_tape *tape, const graft_matrix *x, const uint32_t *segment,
                                 uint32_t segment_count);
graft_matrix *graft_segment_max(graft_tape *tape, const graft_matrix *x, const uint32_t *segment,
                                uint32_t segment_count);

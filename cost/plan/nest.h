/* nest.h - loops over tensors in any layout: the same elements visited in several operands at once,
 * each with its own steps. Axes are ordered and joined so that the innermost loop is long and,
 * where the layouts allow it, contiguous. */
#pragma once

#include "graft/graft.h"

enum { GRAFT_NEST_OPERANDS = 4 };

/* Rank is at least 1. Operand 0 is the one that is written. */
typedef struct graft_nest {
    int64_t sizes[GRAFT_MAX_RANK];
    int64_t steps[GRAFT_NEST_OPERANDS][GRAFT_MAX_RANK]; /* In elements; 0 repeats. */
    uint32_t rank;
    uint32_t operand_count;
} graft_nest;

/* A loop over `shape` (its sizes; a scalar is one element). `steps[i]` has GRAFT_MAX_RANK entries
 * for operand i. Axes run in descending order of the steps of operand `leader`. */
void graft_nest_make(const graft_shape *shape, uint32_t operand_count,
                     const int64_t (*steps)[GRAFT_MAX_RANK], uint32_t leader, graft_nest *nest);

/* The two innermost loops, `counts` being their lengths, outer first: operand i begins at
 * pointers[i] and steps[i] elements lead to the next row and to the next element of a row. */
typedef void (*graft_nest_plane)(const void *context, const int64_t counts[2],
                                 const int64_t (*steps)[2], float *const *pointers);

/* Narrows a nest to part number `part` of `parts`, of which no two write the same elements, and
 * moves `pointers` to where it begins. False: there is nothing left. */
bool graft_nest_narrow(graft_nest *nest, uint32_t part, uint32_t parts, float **pointers);

/* Runs `plane` over the whole nest. `pointers` says where each operand begins. Operands but the
 * first are not written. */
void graft_nest_walk(const graft_nest *nest, float *const *pointers, graft_nest_plane plane,
                     const void *context);

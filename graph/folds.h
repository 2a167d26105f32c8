/* folds.h - results of weight programs that the stages of a model share (graft_folds_new in
 * model.h). */
#pragma once

#include "graph/model.h"

/* A node and what it reads. */
typedef struct graft_fold {
    uint8_t op;
    int32_t attrs[GRAFT_MAX_ATTRS];
    const float *in[GRAFT_MAX_INPUTS]; /* NULL behind the last one. */
    graft_shape shapes[GRAFT_MAX_INPUTS];
} graft_fold;

/* The results of an equal node that was there before; NULL: there was none. */
float *const *graft_folds_find(const graft_folds *folds, const graft_fold *fold);
/* Places for results of `bytes` bytes each, which the caller fills, with those of equal nodes to
 * come; NULL where data that it reads is not the file's, or there is no room left. */
float *const *graft_folds_add(graft_folds *folds, const graft_fold *fold, uint32_t output_count,
                              const size_t *bytes);

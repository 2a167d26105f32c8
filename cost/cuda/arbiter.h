/* arbiter.h - who is right when implementations on a GPU give different results: the float
 * reference, on a part of the operator that the processor computes in milliseconds.
 *
 * Of a convolution the part is some output channels, of a product some rows of the left factor,
 * both with the first and the last; of everything else the whole. Plain C, no CUDA. */
#pragma once

#include "cost/cuda/real.h"
#include "cost/database/signature.h"
#include "graph/base/env.h"

enum { CUDA_PICKS = 16 };

typedef struct cuda_arbiter {
    bool is_there;   /* False: too large even in part, or there is no reference. */
    float tolerance; /* Relative to the largest element. */
    graft_signature part;
    graft_shape outputs[GRAFT_MAX_OUTPUTS]; /* Of the whole. */
    graft_shape parts[GRAFT_MAX_OUTPUTS];   /* Of the part. */
    uint32_t axis;                          /* Of the outputs, along which it is a part. */
    uint32_t pick_count;                    /* 0: it is the whole. */
    int32_t picks[CUDA_PICKS];              /* Positions along that axis. */
    uint8_t out_layouts[GRAFT_MAX_OUTPUTS];
    float *wants[GRAFT_MAX_OUTPUTS]; /* Row-major. */
} cuda_arbiter;

/* Runs the reference. `host` are the inputs as they were sent: const ones row-major, the others in
 * the signature's layouts. In env->scratch. */
graft_status cuda_arbiter_open(graft_env *env, const graft_signature *signature, cuda_type type,
                               float *const *host, cuda_arbiter *arbiter);

/* Whether output `k`, whole and in its layout, is a number everywhere and agrees with the
 * reference; without a reference, only the first. */
bool cuda_arbiter_agrees(const cuda_arbiter *arbiter, uint32_t k, const float *got);

/* Whether two results are the same but for roundings; a NaN agrees with nothing. */
bool cuda_results_agree(const float *got, const float *want, size_t count);

/* panels.h - what follows a product by a panel of a const matrix, while its sums are near. */
#pragma once

#include "cost/database/signature.h"

#include <stdint.h>

typedef struct graft_panel_end {
    const float *bias;     /* NULL: none. */
    const float *residual; /* Likewise; lies as `out` does, or is it. */
    float *out;
    int64_t step; /* Floats from row to row of `out`. */
    int32_t activation;
} graft_panel_end;

/* Whether a convolution's tensors have channels last, and its residual is computed. */
bool graft_panel_takes(const graft_signature *conv);
/* Writes `rows` rows of `width` sums, of which the first `count` count, from column `from`
 * on, with bias, residual and activation. A row has whole vectors (LANES, lanes.h). */
void graft_panel_deliver(const graft_panel_end *end, int64_t rows, int64_t width, int64_t from,
                         int64_t count, const float *sums);

/* blas.h - the one door to OpenBLAS: matrix products, single-threaded and reproducible.
 *
 * Graft parallelises over shards (shards.h), never inside a product, so equal inputs give equal
 * bytes on one machine whatever the thread count. Other processors may round differently. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Call once, before the first product and before threads are started: makes OpenBLAS
 * single-threaded and, where it did not recognise the processor and fell back to its slowest
 * kernels, selects the kernels for the vector instructions that are there. The user's
 * OPENBLAS_CORETYPE wins. Calling again changes nothing. */
void graft_blas_open(void);
/* The kernel family in use, e.g. "SkylakeX". */
const char *graft_blas_core(void);

/* A row-major matrix as it is stored; `transposed` says how the product reads it. */
typedef struct {
    const float *value;
    uint32_t rows;
    uint32_t cols;
    bool transposed;
} graft_factor;

/* out = a b + beta out, out (rows of a, cols of b) as read; beta 0 never reads `out`. Any size may
 * be 0. `out` overlaps neither factor. Few rows times a matrix that is not transposed is fast too.
 */
void graft_blas_multiply(graft_factor a, graft_factor b, float beta, float *out);

/* kernels.h - launching our own kernels. */
#pragma once

#include "cost/cuda/moves.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes whenever these kernels get faster or slower: costs of older ones are then not taken for
 * theirs. */
enum { CUDA_KERNELS_VERSION = 7 };

/* Puts a job on a stream. Inputs and outputs are device memory, aligned to 16 bytes, which do not
 * overlap, but that a job of points may write where it reads, element by element. Returns what the
 * launch reports; faults inside of a kernel show at the next synchronisation. */
cudaError_t cuda_job_launch(const cuda_job *job, cuda_type type, const void *const *in,
                            void *const *out, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

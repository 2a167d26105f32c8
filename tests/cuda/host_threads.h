/* host_threads.h - the jobs of the CUDA kernels run on the processor, thread by thread. */
#pragma once

#include "cost/cuda/moves.h"

/* Runs every thread of a job. Movement copies units of bytes, whatever they hold; `written`, when
 * not NULL, has an entry per byte of each output and counts how often a copy wrote it. Everything
 * else computes on binary32 tensors. */
void host_threads_run(const cuda_job *job, const void *const *in, void *const *out,
                      uint8_t *const *written);

/* What the kernels of 16 bits compute for GELU. */
float host_threads_near_gelu(float x);

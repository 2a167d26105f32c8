/* share.h - kernels of ours on several threads: each writes a part of the output, so that results
 * do not depend on their number. They are those of OpenMP, on which the library computes, too. */
#pragma once

#include <stdint.h>

/* Does part number `part` of `parts`. */
typedef void (*cpu_part)(const void *work, uint32_t part, uint32_t parts);

/* Calls `part` on `thread_count` threads at once, or on fewer, with a part each; ends when all
 * have ended. */
void graft_cpu_share(int thread_count, cpu_part part, const void *work);

/* share.h - kernels of ours on several threads: each writes a part of the output, so that results
 * do not depend on their number. They are those of OpenMP, on which the library computes, too. */
#pragma once

#include <stdint.h>

/* Operations, or bytes, from which on this is worth it; elements that one thread writes at least,
 * so that two do not write the same line of a cache. */
enum { GRAFT_SHARE_LEAST = 1 << 16, GRAFT_SHARE_LINE = 64 };

/* Does part number `part` of `parts`. */
typedef void (*graft_share_part)(const void *work, uint32_t part, uint32_t parts);

/* Calls `part` on `thread_count` threads at once, or on fewer, with a part each; ends when all
 * have ended. In builds without OpenMP on one. */
void graft_share(int thread_count, graft_share_part part, const void *work);

/* Part number `part` of `parts` of [0, count): [from, to), borders being multiples of `unit`. */
typedef struct graft_range {
    int64_t from;
    int64_t to;
} graft_range;
graft_range graft_range_part(int64_t count, int64_t unit, uint32_t part, uint32_t parts);

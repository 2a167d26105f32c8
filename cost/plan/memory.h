/* memory.h - where the regions of a schedule lie in one block of memory. */
#pragma once

#include "cost/plan/schedule.h"

enum { GRAFT_MEMORY_ALIGNMENT = 64 };

/* Places every planned region that is its own root: regions that are alive at the same step do not
 * overlap. `offsets` has an entry per region, a multiple of the alignment; those of other regions
 * are 0. Returns the bytes of the block. Largest regions first, each at the lowest place that is
 * free for the whole of its life (Pisarchyk and Lee, "Efficient memory management for deep neural
 * net inference", 2020, greedy by size). */
uint64_t graft_memory_plan(graft_arena *scratch, const graft_schedule *schedule, uint64_t *offsets);

/* memory.c - planning memory (see memory.h). */
#include "cost/plan/memory.h"

#include <stdlib.h>

typedef struct {
    const graft_region *region;
    uint32_t number;
    uint64_t offset;
    uint64_t bytes; /* Rounded up to the alignment. */
} placement;

/* Larger first; among equals, in the order of the schedule. */
static int compare_sizes(const void *a, const void *b)
{
    const placement *left = a;
    const placement *right = b;
    if (left->bytes != right->bytes) {
        return left->bytes < right->bytes ? 1 : -1;
    }
    return (left->number > right->number) - (left->number < right->number);
}

static int compare_offsets(const void *a, const void *b)
{
    const placement *const *left = a;
    const placement *const *right = b;
    return ((*left)->offset > (*right)->offset) - ((*left)->offset < (*right)->offset);
}

static bool live_together(const graft_region *a, const graft_region *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* The lowest gap among the first `count` placements that live at the same time. */
static uint64_t find_gap(const placement *placed, uint32_t count, const placement *wanted,
                         const placement **near)
{
    uint32_t neighbours = 0;
    uint64_t offset = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (live_together(placed[i].region, wanted->region)) {
            near[neighbours++] = &placed[i];
        }
    }
    qsort(near, neighbours, sizeof(near[0]), compare_offsets);
    for (uint32_t i = 0; i < neighbours; i++) {
        if (near[i]->offset >= offset + wanted->bytes) {
            break;
        }
        uint64_t end = near[i]->offset + near[i]->bytes;
        offset = end > offset ? end : offset;
    }
    return offset;
}

uint64_t graft_memory_plan(graft_arena *scratch, const graft_schedule *schedule, uint64_t *offsets)
{
    GRAFT_SCOPED(scratch);
    placement *placed = GRAFT_NEW(scratch, placement, schedule->region_count);
    const placement **near = GRAFT_NEW(scratch, const placement *, schedule->region_count);
    uint64_t total = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < schedule->region_count; i++) {
        const graft_region *region = &schedule->regions[i];
        offsets[i] = 0;
        if (region->kind == GRAFT_REGION_PLANNED && region->root == i) {
            uint64_t units = (region->bytes + GRAFT_MEMORY_ALIGNMENT - 1) / GRAFT_MEMORY_ALIGNMENT;
            placed[count++] = (placement){region, i, 0, units * GRAFT_MEMORY_ALIGNMENT};
        }
    }
    qsort(placed, count, sizeof(placed[0]), compare_sizes);
    for (uint32_t i = 0; i < count; i++) {
        placed[i].offset = find_gap(placed, i, &placed[i], near);
        offsets[placed[i].number] = placed[i].offset;
        uint64_t end = placed[i].offset + placed[i].bytes;
        total = end > total ? end : total;
    }
    return total;
}

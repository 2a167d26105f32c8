/* nest.c - ordering, joining and walking loops (see nest.h). */
#include "cost/plan/nest.h"

#include "graph/base/share.h"

#include <assert.h>
#include <string.h>

static void swap_axes(graft_nest *nest, uint32_t a, uint32_t b)
{
    int64_t size = nest->sizes[a];
    nest->sizes[a] = nest->sizes[b];
    nest->sizes[b] = size;
    for (uint32_t i = 0; i < nest->operand_count; i++) {
        int64_t step = nest->steps[i][a];
        nest->steps[i][a] = nest->steps[i][b];
        nest->steps[i][b] = step;
    }
}

/* Larger steps of the leader go outside; axes along which it repeats, outermost. */
static void sort_axes(graft_nest *nest, uint32_t leader)
{
    for (uint32_t end = nest->rank; end > 1; end--) {
        for (uint32_t i = 0; i + 1 < end; i++) {
            int64_t outer = nest->steps[leader][i];
            int64_t inner = nest->steps[leader][i + 1];
            if (outer != 0 && (inner == 0 || inner > outer)) {
                swap_axes(nest, i, i + 1);
            }
        }
    }
}

/* Whether axis a + 1 continues where a step of axis a ends, for every operand. */
static bool joins(const graft_nest *nest, uint32_t a)
{
    bool all = true;
    for (uint32_t i = 0; i < nest->operand_count; i++) {
        all = all && nest->steps[i][a] == nest->steps[i][a + 1] * nest->sizes[a + 1];
    }
    return all;
}

static void drop_axis(graft_nest *nest, uint32_t axis)
{
    for (uint32_t a = axis; a + 1 < nest->rank; a++) {
        swap_axes(nest, a, a + 1);
    }
    nest->rank--;
}

static void join_axes(graft_nest *nest)
{
    for (uint32_t a = nest->rank - 1; a-- > 0;) {
        if (joins(nest, a)) {
            nest->sizes[a + 1] *= nest->sizes[a];
            drop_axis(nest, a);
        }
    }
}

void graft_nest_make(const graft_shape *shape, uint32_t operand_count,
                     const int64_t (*steps)[GRAFT_MAX_RANK], uint32_t leader, graft_nest *nest)
{
    assert(operand_count <= GRAFT_NEST_OPERANDS);
    memset(nest, 0, sizeof(*nest));
    nest->operand_count = operand_count;
    for (uint32_t axis = 0; axis < shape->rank; axis++) {
        if (shape->dims[axis] == 1) {
            continue;
        }
        nest->sizes[nest->rank] = shape->dims[axis];
        for (uint32_t i = 0; i < operand_count; i++) {
            nest->steps[i][nest->rank] = steps[i][axis];
        }
        nest->rank++;
    }
    if (nest->rank == 0) {
        nest->sizes[0] = 1;
        nest->rank = 1;
    }
    sort_axes(nest, leader);
    join_axes(nest);
}

/* The axis to be divided: the first that is long enough to be divided evenly, else the longest. Rank
 * when every element of the result is a fold over all axes. */
static uint32_t find_divided(const graft_nest *nest, uint32_t parts)
{
    enum { EVEN = 8 };
    uint32_t longest = nest->rank;
    for (uint32_t axis = 0; axis < nest->rank; axis++) {
        if (nest->steps[0][axis] == 0) {
            continue;
        }
        if (nest->sizes[axis] >= (int64_t)EVEN * parts) {
            return axis;
        }
        longest =
            longest == nest->rank || nest->sizes[axis] > nest->sizes[longest] ? axis : longest;
    }
    return longest;
}

bool graft_nest_narrow(graft_nest *nest, uint32_t part, uint32_t parts, float **pointers)
{
    enum { LINE = 16 }; /* Elements that one thread at a time should write. */
    const uint32_t axis = find_divided(nest, parts);
    if (axis == nest->rank) {
        return part == 0;
    }
    const graft_range own =
        graft_range_part(nest->sizes[axis], nest->steps[0][axis] == 1 ? LINE : 1, part, parts);
    for (uint32_t i = 0; i < nest->operand_count; i++) {
        pointers[i] += own.from * nest->steps[i][axis];
    }
    nest->sizes[axis] = own.to - own.from;
    return own.to > own.from;
}

void graft_nest_walk(const graft_nest *nest, float *const *pointers, graft_nest_plane plane,
                     const void *context)
{
    uint32_t last = nest->rank - 1;
    uint32_t outer = nest->rank > 1 ? nest->rank - 2 : 0; /* Axes that are counted here. */
    int64_t at[GRAFT_MAX_RANK] = {0};
    int64_t counts[2] = {nest->rank > 1 ? nest->sizes[last - 1] : 1, nest->sizes[last]};
    int64_t steps[GRAFT_NEST_OPERANDS][2] = {{0}};
    float *place[GRAFT_NEST_OPERANDS] = {NULL};
    for (uint32_t i = nest->operand_count; i < GRAFT_NEST_OPERANDS; i++) {
        place[i] = pointers[0]; /* Stepped by 0, not read. */
    }
    for (uint32_t i = 0; i < nest->operand_count; i++) {
        steps[i][0] = nest->rank > 1 ? nest->steps[i][last - 1] : 0;
        steps[i][1] = nest->steps[i][last];
        place[i] = pointers[i];
    }
    for (;;) {
        plane(context, counts, (const int64_t(*)[2])steps, place);
        uint32_t axis = outer;
        while (axis-- > 0) { /* Count up the outer axes. */
            bool carry = ++at[axis] == nest->sizes[axis];
            int64_t move = carry ? 1 - nest->sizes[axis] : 1;
            for (uint32_t i = 0; i < nest->operand_count; i++) {
                place[i] += move * nest->steps[i][axis];
            }
            if (!carry) {
                break;
            }
            at[axis] = 0;
        }
        if (axis == UINT32_MAX) {
            return;
        }
    }
}

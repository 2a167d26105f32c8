/* layout.h - how a tensor lies in memory, and which layout each value of a graph gets.
 *
 * Two layouts exist so far: row-major, and channels last for images. graft_layout_assign is the one
 * place that decides; whatever it says, the schedule inserts the conversions and the cost counts
 * them. Its present rule is a convention, not an optimum: convolutions and pools work on channels
 * last, matrix products and reshapes on row-major tensors, and everything else follows its first
 * operand. */
#ifndef GRAFT_COST_LAYOUT_H
#define GRAFT_COST_LAYOUT_H

#include "graft/graft.h"

typedef enum graft_layout {
    GRAFT_LAYOUT_ROW = 0,  /* Row-major. */
    GRAFT_LAYOUT_NHWC = 1, /* Rank 4 only: (batch, height, width, channel) in memory. */
    GRAFT_LAYOUT_COUNT = 2
} graft_layout;

/* "row", "nhwc". */
const char *graft_layout_name(uint32_t layout);

/* Elements from one index of each axis to the next; `strides` has GRAFT_MAX_RANK entries, those
 * past the rank become 0. */
void graft_layout_strides(const graft_shape *shape, uint32_t layout,
                          int64_t strides[GRAFT_MAX_RANK]);

/* Whether a tensor of this shape has its elements in the same order in both layouts, so that a
 * conversion is free: equal layouts, one channel, or one pixel. */
bool graft_layout_same(const graft_shape *shape, uint32_t from, uint32_t to);

/* What the operands of one operator must look like, given the layouts that its inputs arrive in. */
typedef struct graft_layout_choice {
    uint8_t inputs[GRAFT_MAX_INPUTS];
    uint8_t outputs[GRAFT_MAX_OUTPUTS];
} graft_layout_choice;

/* The layouts at node `node` when its input values have the layouts `layouts` (by value id). Const
 * operands are always row-major here: implementations pack them once. */
void graft_layout_choose(const graft_graph *graph, graft_index node, const uint8_t *layouts,
                         graft_layout_choice *choice);

/* Decides for the whole graph: the layout that every value is made in (`layouts`, by value id;
 * inputs of the graph and const values are row-major) and what every node that runs wants
 * (`choices`, by node id; where a choice differs from the layout of the value, a conversion stands
 * between). */
void graft_layout_assign(const graft_graph *graph, const graft_order *order, uint8_t *layouts,
                         graft_layout_choice *choices);

#endif

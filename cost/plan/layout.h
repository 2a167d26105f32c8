/* layout.h - how a tensor lies in memory, and in which layouts an operator can work.
 *
 * Three layouts: row-major, channels last, and channels in blocks of 16 as oneDNN's AVX-512 kernels
 * and Winograd's algorithm want them. graft_layout_alternatives lists what an operator can be run
 * with; cost/plan/plan.h chooses among these for a whole graph by measured costs. Without costs
 * there is graft_layout_assign, a convention: convolutions and pools on channels last, matrix
 * products and reshapes on row-major tensors, everything else as its first operand. Either way the
 * schedule inserts the conversions and the cost counts them. */
#pragma once

#include "graft/graft.h"

typedef enum graft_layout {
    GRAFT_LAYOUT_ROW = 0,     /* Row-major. */
    GRAFT_LAYOUT_NHWC = 1,    /* Rank 4 only: (batch, height, width, channel) in memory. */
    GRAFT_LAYOUT_BLOCKED = 2, /* Rank 4, channels a multiple of GRAFT_LAYOUT_BLOCK: (batch, block,
                                 height, width, channel within the block) in memory. */
    GRAFT_LAYOUT_COUNT = 3
} graft_layout;

enum { GRAFT_LAYOUT_BLOCK = 16 };
/* Of graft_layout_assign alone: row-major throughout, also where no implementation of ours works
 * so. For devices that are given tensors and lay them out themselves. */
enum { GRAFT_LAYOUT_PLAIN = GRAFT_LAYOUT_COUNT };

/* "row", "nhwc", "nchw16c". */
const char *graft_layout_name(uint32_t layout);

/* Whether a tensor of this shape can have the layout. */
bool graft_layout_fits(const graft_shape *shape, uint32_t layout);

/* Elements from one index of each axis to the next, in a layout other than BLOCKED; `strides` has
 * GRAFT_MAX_RANK entries, those past the rank become 0. */
void graft_layout_strides(const graft_shape *shape, uint32_t layout,
                          int64_t strides[GRAFT_MAX_RANK]);

/* Where element `i` of a row-major tensor lies in such a layout. */
size_t graft_layout_place(const graft_shape *shape, uint32_t layout, size_t i);

/* Whether a tensor of this shape has its elements in the same order in both layouts, so that a
 * conversion is free: equal layouts, one channel, one pixel, or one block of channels. Both fit. */
bool graft_layout_same(const graft_shape *shape, uint32_t from, uint32_t to);
/* The first layout that fits and has the elements in the same order. */
uint32_t graft_layout_canonical(const graft_shape *shape, uint32_t layout);

/* In attrs[0] of an opaque node: its result has the form of its input 0, and it works on elements
 * in any order (graft_opaque_is_pointwise). Whoever knows the model marks such nodes in a copy of
 * the graph; others work on row-major tensors. */
enum { GRAFT_LAYOUT_POINTWISE = 1 };

/* Whether a node is opaque and not marked: it has one way to run, and nothing goes through it. */
bool graft_layout_is_closed(const graft_node *node);

/* What the operands of one operator must look like, given the layouts that its inputs arrive in. */
typedef struct graft_layout_choice {
    uint8_t inputs[GRAFT_MAX_INPUTS];
    uint8_t outputs[GRAFT_MAX_OUTPUTS];
    bool view; /* No step: see cost/plan/views.h, which sets it. */
} graft_layout_choice;

/* The ways to run node `node` when its input values can be had in the layouts of `offered` (by
 * value id; bit L: layout L) without a conversion: one to GRAFT_LAYOUT_COUNT choices that differ in
 * more than name, the convention's first. An operator that has no preference works in the layouts
 * that its operands are offered in, convolutions and pools in those that libraries have. Const
 * operands are always row-major here: implementations pack them once. */
uint32_t graft_layout_alternatives(const graft_graph *graph, graft_index node,
                                   const uint8_t *offered,
                                   graft_layout_choice choices[GRAFT_LAYOUT_COUNT]);

/* Whether a choice is of use only as a view: a transpose that gives channels last. */
bool graft_layout_is_for_views(const graft_graph *graph, graft_index node,
                               const graft_layout_choice *choice);

/* Every image that is no weight in one layout, whether the operator can work so or not. */
void graft_layout_uniform(const graft_graph *graph, graft_index node, uint32_t layout,
                          graft_layout_choice *choice);

/* Takes those with an operand in blocks out; returns how many are left, never none: the
 * convention's has no blocks. */
uint32_t graft_layout_drop_blocked(graft_layout_choice *choices, uint32_t count);

/* One layout throughout: every node works in `layout` where it can, else in what is listed first.
 * With channels last it is the convention for the whole graph: the layout that every value is made
 * in (`layouts`, by value id; inputs of the graph and const values are row-major) and what every
 * node that runs wants (`choices`, by node id; where a choice differs from the layout of the value,
 * a conversion stands between). */
void graft_layout_assign(const graft_graph *graph, const graft_order *order, uint32_t layout,
                         uint8_t *layouts, graft_layout_choice *choices);

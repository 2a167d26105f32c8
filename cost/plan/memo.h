/* memo.h - inside plan.c: what is found out about nodes and conversions, and remembered from one
 * plan to the next (graft_plan_memo, see plan.h). */
#pragma once

#include "cost/plan/plan.h"

/* Between layouts of one shape, canonical ones; NAN: not looked up yet. */
typedef struct {
    graft_shape shape;
    uint8_t canonical[GRAFT_LAYOUT_COUNT];
    double ns[GRAFT_LAYOUT_COUNT][GRAFT_LAYOUT_COUNT];
} conversions;

typedef struct {
    graft_layout_choice choices[GRAFT_LAYOUT_COUNT];
    double ns[GRAFT_LAYOUT_COUNT];
    uint32_t count;
    uint32_t carried; /* The input through which a chain goes, UINT32_MAX: none. */
} node_plan;

/* A node as it was seen last, and what was found out about it. */
typedef struct {
    graft_signature signature; /* Without layouts. */
    uint8_t offered[GRAFT_MAX_INPUTS];
    bool joins; /* It may be a view: graft_views. */
    bool known;
    node_plan plan;
} node_memo;

enum { MEMO_SHAPES = 64 };

struct graft_plan_memo {
    node_memo *nodes; /* By node. */
    uint32_t node_capacity;
    conversions shapes[MEMO_SHAPES];
    uint8_t distances[MEMO_SHAPES];
    uint32_t shape_count;
};

/* Whether the memo has, or gets, room for so many nodes. */
bool graft_plan_memo_fit(graft_plan_memo *memo, uint32_t node_count);

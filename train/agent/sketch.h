/* sketch.h - graphs and patterns as rows of bytes for the encoder of scenes (scene.h). */
#pragma once

#include "train/agent/scene.h"

/* The graph that was estimated last: its nodes that run at inference, in the engine's order;
 * row_of (limits.nodes) receives each node's row, UINT32_MAX for others. One node of zeros when there
 * is none. `cost` is that of the whole graph. */
void graft_sketch_graph(graft_arena *arena, const graft_estimator *estimator, uint64_t cost,
                        uint32_t *row_of, graft_sketch *sketch);
/* One side of a rule. Shapes are not known there. */
void graft_sketch_pattern(graft_arena *arena, const graft_pattern *pattern, graft_sketch *sketch);
/* One node of zeros. */
void graft_sketch_nothing(graft_arena *arena, graft_sketch *sketch);

/* found.h - operators of ONNX that find how much they make: its size is told by elements, and may be
 * 0. They run where a model is read in stages (graph/onnx/onnx_stage.c), never with a graph.
 *
 *      NonZero             places of elements that are not 0, in order: int64 (axes, places)
 *      Compress            the elements, or parts along an axis, that a list of truth values chooses
 *      Unique              the different elements, or parts along an axis, of numbers
 *      NonMaxSuppression   batch, class and box of the boxes that no better one overlaps: int64
 *                          (boxes, 3), as onnxruntime chooses them */
#pragma once

#include "graph/base/arena.h"
#include "graph/onnx/onnx.pb-c.h"

#include "graft/graft.h"

#include <stdbool.h>

enum { GRAFT_FOUND_OUTPUTS_MOST = 4 };

typedef struct graft_found {
    graft_shape shape; /* Sizes may be 0. */
    void *data;        /* Row-major. */
} graft_found;

bool graft_found_is(const Onnx__NodeProto *node);
/* Runs it on row-major inputs of such shapes, of rank GRAFT_RANK_UNKNOWN where they are not given;
 * `outs` has room for all that it makes, which is in `arena`. False for other operators, for types
 * and forms that are not run, and for inputs that do not fit. */
bool graft_found_run(graft_arena *arena, const Onnx__NodeProto *node, const graft_shape *in,
                     const void *const *data, graft_found *outs);

/* onnx_view.h - what elements of a graph's values are made of, whatever tensors they were put into;
 * private to graph/onnx/.
 *
 * A view is rows and columns of a value, seen as a matrix whose columns are its last axis. It goes
 * through what only moves elements (split, slice, concat, reshape) and through functions of single
 * elements to what these were made from: so a gate that is a quarter of one product, or of the
 * sigmoid of three, is read like one that stands by itself. */
#pragma once

#include "graph/onnx/onnx.h"

enum { GRAFT_VIEW_NOTED_MOST = 24 };

typedef struct graft_view {
    graft_index value;
    int64_t row;
    int64_t rows;
    int32_t column;
    int32_t columns;
} graft_view;

typedef struct graft_viewer {
    const graft_model *model;
    const graft_graph *graph;              /* The model's. */
    uint32_t noted[GRAFT_VIEW_NOTED_MOST]; /* ONNX nodes of the functions that were gone through. */
    uint32_t noted_count;
} graft_viewer;

const graft_shape *graft_view_shape(const graft_viewer *f, graft_index value);
/* The size of the last axis; 1 without one. */
int32_t graft_view_columns(const graft_shape *shape);
/* The node that makes a value; NULL: it is an input or a weight. */
const graft_node *graft_view_maker(const graft_viewer *f, graft_index value);
graft_index graft_view_input(const graft_viewer *f, const graft_node *node, uint32_t k);

/* A view of all of a value, and whether a view is one. */
graft_view graft_view_all(const graft_viewer *f, graft_index value);
bool graft_view_is_all(const graft_viewer *f, graft_view v);
/* The same elements where they were before they were moved. Rows are only followed where sizes are
 * bound. */
graft_view graft_view_settle(const graft_viewer *f, graft_view v);
bool graft_view_is_same(const graft_viewer *f, graft_view a, graft_view b);
/* A value that a view is all of and that has a name in the file; GRAFT_NONE when there is none. */
graft_index graft_view_find_named(const graft_viewer *f, graft_view v);

/* Whether a view is the function `op` of another one. */
bool graft_view_take(graft_viewer *f, graft_view v, uint32_t op, graft_view *of);
/* Whether it is `op` of two others of its shape; what something is subtracted from may also be any
 * constant. */
bool graft_view_take_both(graft_viewer *f, graft_view v, uint32_t op, graft_view of[2]);
/* Whether it is the product, element by element, of two others in any order, of which one is the
 * function `a_op` of *a and the other `b_op` of *b; with GRAFT_OP_NONE for b_op it is *b itself. */
bool graft_view_take_product(graft_viewer *f, graft_view v, uint32_t a_op, graft_view *a,
                             uint32_t b_op, graft_view *b);

/* onnx_view.c - see onnx_view.h. */
#include "graph/onnx/onnx_view.h"

#include <string.h>

const graft_shape *graft_view_shape(const graft_viewer *f, graft_index value)
{
    return &f->graph->values[value].shape;
}

int32_t graft_view_columns(const graft_shape *shape)
{
    return shape->rank == 0 || shape->rank == GRAFT_RANK_UNKNOWN ? 1 : shape->dims[shape->rank - 1];
}

graft_view graft_view_all(const graft_viewer *f, graft_index value)
{
    const graft_shape *shape = graft_view_shape(f, value);
    const int32_t columns = graft_view_columns(shape);
    const int64_t rows = (int64_t)graft_shape_elements(shape) / columns;
    return (graft_view){value, 0, rows, 0, columns};
}

static bool is_equal(graft_view a, graft_view b)
{
    return a.value == b.value && a.row == b.row && a.rows == b.rows && a.column == b.column &&
           a.columns == b.columns;
}

bool graft_view_is_all(const graft_viewer *f, graft_view v)
{
    return is_equal(v, graft_view_all(f, v.value));
}

const graft_node *graft_view_maker(const graft_viewer *f, graft_index value)
{
    const graft_index node = f->graph->values[value].node;
    return node == GRAFT_NONE ? NULL : &f->graph->nodes[node];
}

graft_index graft_view_input(const graft_viewer *f, const graft_node *node, uint32_t k)
{
    return f->graph->edges[node->first_edge + k];
}

/* How many elements of what an axis consists of make a unit of rows or columns; 0: they do not lie
 * together, or would not at other sizes. */
static int64_t unit_of_axis(const graft_viewer *f, const graft_shape *shape, uint32_t axis)
{
    int64_t unit = 1;
    if (axis + 1U == shape->rank) {
        return 1;
    }
    for (uint32_t i = 0; i + 1U < shape->rank; i++) {
        if (i < axis && shape->dims[i] != 1) {
            return 0;
        }
        unit *= i > axis ? shape->dims[i] : 1;
    }
    return f->model->is_open ? 0 : unit;
}

/* From what a part of a tensor is, `from` places along an axis, to that tensor. */
static bool move_into(const graft_viewer *f, graft_view *v, graft_index value, uint32_t axis,
                      int32_t from)
{
    const graft_shape *shape = graft_view_shape(f, value);
    const int64_t unit = unit_of_axis(f, shape, axis);
    v->value = value;
    if (axis + 1U == shape->rank) {
        v->column += from;
    } else {
        v->row += unit * from;
    }
    return unit > 0;
}

/* From two tensors side by side to the one that the view lies in. */
static bool move_beside(const graft_viewer *f, graft_view *v, const graft_node *node)
{
    const uint32_t axis = (uint32_t)node->attrs[GRAFT_ATTR_concat_axis];
    const graft_shape *first = graft_view_shape(f, graft_view_input(f, node, 0));
    const bool by_columns = axis + 1U == first->rank;
    const int64_t unit = unit_of_axis(f, graft_view_shape(f, v->value), axis);
    const int64_t border = unit * first->dims[axis];
    const int64_t start = by_columns ? v->column : v->row;
    const int64_t end = start + (by_columns ? v->columns : v->rows);
    if (unit == 0 || (start < border && end > border)) {
        return false;
    }
    return move_into(f, v, graft_view_input(f, node, start < border ? 0 : 1), axis,
                     start < border ? 0 : -first->dims[axis]);
}

/* Goes from a view to the same elements of what it was cut out of; false where it was not. */
static bool descend(const graft_viewer *f, graft_view *v)
{
    const graft_node *node = graft_view_maker(f, v->value);
    const uint32_t slot = f->graph->values[v->value].slot;
    graft_view inner = *v;
    bool moved = false;
    if (node == NULL) {
        return false;
    }
    const graft_index input = node->input_count > 0 ? graft_view_input(f, node, 0) : GRAFT_NONE;
    if (node->op == GRAFT_OP_split) {
        moved = move_into(f, &inner, input, (uint32_t)node->attrs[GRAFT_ATTR_split_axis],
                          slot == 0 ? 0 : node->attrs[GRAFT_ATTR_split_at]);
    } else if (node->op == GRAFT_OP_slice) {
        moved = move_into(f, &inner, input, (uint32_t)node->attrs[GRAFT_ATTR_slice_axis],
                          node->attrs[GRAFT_ATTR_slice_start]);
    } else if (node->op == GRAFT_OP_concat) {
        moved = move_beside(f, &inner, node);
    } else if (node->op == GRAFT_OP_reshape || node->op == GRAFT_OP_identity) {
        inner.value = input;
        moved = graft_view_columns(graft_view_shape(f, input)) ==
                graft_view_columns(graft_view_shape(f, v->value));
    }
    *v = moved ? inner : *v;
    return moved;
}

graft_view graft_view_settle(const graft_viewer *f, graft_view v)
{
    while (descend(f, &v)) {
    }
    return v;
}

bool graft_view_is_same(const graft_viewer *f, graft_view a, graft_view b)
{
    return is_equal(graft_view_settle(f, a), graft_view_settle(f, b));
}

graft_index graft_view_find_named(const graft_viewer *f, graft_view v)
{
    do {
        if (graft_view_is_all(f, v) &&
            graft_model_value_name(f->model, f->graph, v.value) != NULL) {
            return v.value;
        }
    } while (descend(f, &v));
    return GRAFT_NONE;
}

static void note(graft_viewer *f, const graft_node *node)
{
    if (f->noted_count < GRAFT_VIEW_NOTED_MOST && node->source < f->model->record_count) {
        f->noted[f->noted_count++] = f->model->records[node->source].onnx_node;
    }
}

bool graft_view_take(graft_viewer *f, graft_view v, uint32_t op, graft_view *of)
{
    v = graft_view_settle(f, v);
    const graft_node *node = graft_view_maker(f, v.value);
    if (node == NULL || node->op != op) {
        return false;
    }
    note(f, node);
    v.value = graft_view_input(f, node, 0);
    *of = v;
    return true;
}

bool graft_view_take_both(graft_viewer *f, graft_view v, uint32_t op, graft_view of[2])
{
    v = graft_view_settle(f, v);
    const graft_node *node = graft_view_maker(f, v.value);
    bool fits = node != NULL && node->op == op;
    for (uint32_t k = 0; k < 2 && fits; k++) {
        const graft_index input = graft_view_input(f, node, k);
        of[k] = v;
        of[k].value = input;
        fits = graft_shape_equal(graft_view_shape(f, input), graft_view_shape(f, v.value)) ||
               (k == 0 && op == GRAFT_OP_sub && f->graph->values[input].is_const);
    }
    if (fits) {
        note(f, node);
    }
    return fits;
}

bool graft_view_take_product(graft_viewer *f, graft_view v, uint32_t a_op, graft_view *a,
                             uint32_t b_op, graft_view *b)
{
    graft_view in[2];
    const bool fits = graft_view_take_both(f, v, GRAFT_OP_mul, in);
    const uint32_t noted = f->noted_count;
    for (uint32_t k = 0; k < 2 && fits; k++) {
        f->noted_count = noted;
        *b = in[1 - k];
        if (graft_view_take(f, in[k], a_op, a) &&
            (b_op == GRAFT_OP_NONE || graft_view_take(f, in[1 - k], b_op, b))) {
            return true;
        }
    }
    return false;
}

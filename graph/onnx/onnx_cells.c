/* onnx_cells.c - see onnx_cells.h. */
#include "graph/onnx/onnx_cells.h"

#include <string.h>

enum { SUMS_MOST = 8 };

typedef struct {
    graft_viewer *viewer;
    const graft_weights *weights;
} reader;

/* -------------------------------------------------------------------------- gates */

static bool is_const(const reader *r, graft_index value)
{
    return r->viewer->graph->values[value].is_const;
}

static bool add_bias(const reader *r, graft_gate *gate, graft_index value, int32_t column)
{
    const float *data = graft_weights_data(r->weights, value);
    const graft_view all = graft_view_all(r->viewer, value);
    const bool repeats = all.columns == 1;
    const bool fits =
        is_const(r, value) && data != NULL && all.rows == 1 && gate->bias_count < GRAFT_GATE_BIASES;
    if (fits) {
        gate->biases[gate->bias_count].data = repeats ? data : data + column;
        gate->biases[gate->bias_count++].repeats = repeats;
    }
    return fits;
}

/* Adds a view of what a product makes. */
static bool add_product(const reader *r, graft_gate *gate, const graft_node *node, graft_view v)
{
    const graft_index matrix = graft_view_input(r->viewer, node, 1);
    graft_view of = graft_view_all(r->viewer, graft_view_input(r->viewer, node, 0));
    of.row = v.row;
    of.rows = v.rows;
    if (gate->product_count == 2 || graft_view_shape(r->viewer, matrix)->rank != 2 ||
        !is_const(r, matrix) || graft_weights_data(r->weights, matrix) == NULL) {
        return false;
    }
    gate->products[gate->product_count++] = (graft_gate_product){of, matrix, 0, v.column};
    return node->op == GRAFT_OP_matmul ||
           (node->attrs[GRAFT_ATTR_matmul_bias_activation] == GRAFT_ACT_NONE &&
            add_bias(r, gate, graft_view_input(r->viewer, node, 2), v.column));
}

/* Adds what a view is the sum of, sums of sums `depth` deep. */
static bool add_sum(const reader *r, graft_gate *gate, graft_view v, uint32_t depth)
{
    v = graft_view_settle(r->viewer, v);
    const graft_node *node = graft_view_maker(r->viewer, v.value);
    const uint32_t op = node == NULL ? GRAFT_OP_NONE : node->op;
    bool fits = depth > 0;
    if (op == GRAFT_OP_add) {
        for (uint32_t k = 0; k < 2 && fits; k++) {
            graft_view part = v;
            part.value = graft_view_input(r->viewer, node, k);
            fits = graft_shape_equal(graft_view_shape(r->viewer, part.value),
                                     graft_view_shape(r->viewer, v.value))
                       ? add_sum(r, gate, part, depth - 1)
                       : add_bias(r, gate, part.value, v.column);
        }
    } else if (op == GRAFT_OP_matmul || op == GRAFT_OP_matmul_bias) {
        fits = fits && add_product(r, gate, node, v);
    } else if (op == GRAFT_OP_mul && !is_const(r, v.value)) {
        fits = fits && !gate->has_gated;
        gate->has_gated = true;
        gate->gated = v;
    } else {
        fits = fits && add_bias(r, gate, v.value, v.column);
    }
    return fits;
}

/* The product of two tensors side by side is the sum of two products. */
static void split_product(const reader *r, graft_gate *gate)
{
    if (gate->product_count != 1 || gate->has_gated) {
        return;
    }
    graft_gate_product *p = gate->products;
    const graft_view both = graft_view_settle(r->viewer, p[0].of);
    const graft_node *node = graft_view_maker(r->viewer, both.value);
    const graft_shape *shape = graft_view_shape(r->viewer, both.value);
    if (node != NULL && node->op == GRAFT_OP_concat &&
        (uint32_t)node->attrs[GRAFT_ATTR_concat_axis] + 1U == shape->rank && both.column == 0 &&
        both.columns == graft_view_columns(shape)) {
        p[0].of = graft_view_all(r->viewer, graft_view_input(r->viewer, node, 0));
        p[1] = p[0];
        p[1].row += p[0].of.columns;
        p[1].of = graft_view_all(r->viewer, graft_view_input(r->viewer, node, 1));
        for (uint32_t k = 0; k < 2; k++) {
            p[k].of.row = both.row;
            p[k].of.rows = both.rows;
        }
        gate->product_count = 2;
    }
}

static bool read_gate(const reader *r, graft_gate *gate, graft_view of)
{
    *gate = (graft_gate){.product_count = 0};
    const bool fits = add_sum(r, gate, of, SUMS_MOST);
    split_product(r, gate);
    return fits;
}

/* Puts the products of a gate into the order of the operands; false where they are of others. */
static bool order_products(const reader *r, const graft_cell *cell, graft_gate *gate)
{
    if (gate->product_count != 2 || gate->has_gated) {
        return false;
    }
    if (!graft_view_is_same(r->viewer, gate->products[0].of, cell->operands[0])) {
        const graft_gate_product first = gate->products[0];
        gate->products[0] = gate->products[1];
        gate->products[1] = first;
    }
    return graft_view_is_same(r->viewer, gate->products[0].of, cell->operands[0]) &&
           graft_view_is_same(r->viewer, gate->products[1].of, cell->operands[1]);
}

float graft_gate_bias(const graft_gate *gate, int32_t unit)
{
    float total = 0.0F;
    for (uint32_t i = 0; i < gate->bias_count; i++) {
        total += gate->biases[i].data[gate->biases[i].repeats ? 0 : unit];
    }
    return total;
}

const float *graft_gate_row(const graft_viewer *viewer, const graft_weights *weights,
                            const graft_gate_product *product, int32_t k)
{
    const int32_t columns = graft_view_columns(graft_view_shape(viewer, product->matrix));
    return graft_weights_data(weights, product->matrix) +
           (size_t)(product->row + k) * (size_t)columns + product->column;
}

/* --------------------------------------------------------------------------- LSTM */

/* Reads the gates; the operands are those of the first one. */
static bool read_lstm_gates(const reader *r, graft_cell *cell, const graft_view *of)
{
    bool fits = true;
    for (uint32_t g = 0; g < GRAFT_LSTM_GATES && fits; g++) {
        graft_gate *gate = &cell->gates[g];
        fits = read_gate(r, gate, of[g]) && gate->product_count == 2;
        if (fits && g == 0) {
            cell->operands[0] = gate->products[0].of;
            cell->operands[1] = gate->products[1].of;
        }
        fits = fits && order_products(r, cell, gate);
    }
    return fits && !graft_view_is_same(r->viewer, cell->operands[0], cell->operands[1]);
}

static bool read_lstm(const reader *r, graft_index value, graft_cell *cell)
{
    graft_viewer *viewer = r->viewer;
    graft_view of[GRAFT_LSTM_GATES];
    graft_view c;
    graft_view in[2];
    if (!graft_view_take_product(viewer, graft_view_all(viewer, value), GRAFT_OP_sigmoid,
                                 &of[GRAFT_LSTM_O], GRAFT_OP_tanh, &c) ||
        !graft_view_take_both(viewer, c, GRAFT_OP_add, in)) {
        return false;
    }
    c = graft_view_settle(viewer, c);
    cell->c_made = c.value;
    cell->gate_count = GRAFT_LSTM_GATES;
    const uint32_t noted = viewer->noted_count;
    bool fits = false;
    for (uint32_t k = 0; k < 2 && graft_view_is_all(viewer, c) && !fits; k++) {
        viewer->noted_count = noted;
        fits = graft_view_take_product(viewer, in[k], GRAFT_OP_sigmoid, &of[GRAFT_LSTM_I],
                                       GRAFT_OP_tanh, &of[GRAFT_LSTM_G]) &&
               graft_view_take_product(viewer, in[1 - k], GRAFT_OP_sigmoid, &of[GRAFT_LSTM_F],
                                       GRAFT_OP_NONE, &cell->c) &&
               read_lstm_gates(r, cell, of);
    }
    return fits;
}

/* ---------------------------------------------------------------------------- GRU */

static bool is_one(const reader *r, graft_index value)
{
    const float *data = graft_weights_data(r->weights, value);
    const uint64_t count = graft_shape_elements(graft_view_shape(r->viewer, value));
    bool one = is_const(r, value) && data != NULL;
    for (uint64_t i = 0; one && i < count; i++) {
        one = data[i] == 1.0F;
    }
    return one;
}

/* (1 - z) n + z h, or n + z (h - n), with `a` before the plus and `b` behind it. */
static bool read_mean(const reader *r, graft_view a, graft_view b, graft_view *z, graft_view *n,
                      graft_view *h)
{
    graft_viewer *viewer = r->viewer;
    graft_view rest;
    graft_view again;
    graft_view in[2];
    if (!graft_view_take_product(viewer, b, GRAFT_OP_sigmoid, z, GRAFT_OP_NONE, h)) {
        return false;
    }
    if (graft_view_take(viewer, a, GRAFT_OP_tanh, n)) {
        if (!graft_view_take_both(viewer, *h, GRAFT_OP_sub, in)) {
            return false;
        }
        *h = in[0];
        return graft_view_is_same(viewer, in[1], a);
    }
    return graft_view_take_product(viewer, a, GRAFT_OP_tanh, n, GRAFT_OP_NONE, &rest) &&
           graft_view_take_both(viewer, rest, GRAFT_OP_sub, in) && is_one(r, in[0].value) &&
           graft_view_take(viewer, in[1], GRAFT_OP_sigmoid, &again) &&
           graft_view_is_same(viewer, again, *z);
}

/* Finds what the reset gate is a sigmoid of, and where it is multiplied. */
static bool read_reset(const reader *r, graft_cell *cell, graft_view *reset)
{
    graft_gate *n = &cell->gates[GRAFT_GRU_N];
    graft_view state;
    cell->is_linear = n->has_gated;
    if (cell->is_linear) {
        n->has_gated = false;
        if (n->product_count != 1 ||
            !graft_view_take_product(r->viewer, n->gated, GRAFT_OP_sigmoid, reset, GRAFT_OP_NONE,
                                     &state) ||
            !read_gate(r, &cell->inner, state) || cell->inner.product_count != 1) {
            return false;
        }
        n->products[n->product_count++] = cell->inner.products[0];
        return !cell->inner.has_gated;
    }
    for (uint32_t k = 0; k < n->product_count; k++) {
        graft_view *of = &n->products[k].of;
        if (graft_view_take_product(r->viewer, *of, GRAFT_OP_sigmoid, reset, GRAFT_OP_NONE,
                                    &state) &&
            graft_view_is_same(r->viewer, state, cell->operands[1])) {
            *of = state;
            return true;
        }
    }
    return false;
}

static bool read_gru(const reader *r, graft_index value, graft_cell *cell)
{
    graft_viewer *viewer = r->viewer;
    graft_gate *gates = cell->gates;
    graft_view z;
    graft_view n;
    graft_view reset;
    graft_view in[2];
    bool fits = graft_view_take_both(viewer, graft_view_all(viewer, value), GRAFT_OP_add, in);
    cell->c_made = GRAFT_NONE;
    cell->is_gru = true;
    cell->gate_count = GRAFT_GRU_GATES;
    cell->state = 1;
    fits = fits && (read_mean(r, in[0], in[1], &z, &n, &cell->operands[1]) ||
                    read_mean(r, in[1], in[0], &z, &n, &cell->operands[1]));
    if (!fits || !read_gate(r, &gates[GRAFT_GRU_Z], z) || !read_gate(r, &gates[GRAFT_GRU_N], n) ||
        !read_reset(r, cell, &reset) || !read_gate(r, &gates[GRAFT_GRU_R], reset)) {
        return false;
    }
    const graft_gate_product *p = gates[GRAFT_GRU_Z].products;
    const bool first = graft_view_is_same(viewer, p[1].of, cell->operands[1]);
    cell->operands[0] = p[first ? 0 : 1].of;
    return order_products(r, cell, &gates[GRAFT_GRU_Z]) &&
           order_products(r, cell, &gates[GRAFT_GRU_R]) &&
           order_products(r, cell, &gates[GRAFT_GRU_N]);
}

/* -------------------------------------------------------------------------- cells */

/* Whether a value is a matrix of binary32 that is all that its ONNX node makes, and has a name. */
static bool is_alone(const reader *r, graft_index value)
{
    const graft_model *model = r->viewer->model;
    const graft_node *node = graft_view_maker(r->viewer, value);
    const graft_shape *shape = graft_view_shape(r->viewer, value);
    return node != NULL && shape->rank == 2 && shape->dtype == GRAFT_DTYPE_F32 &&
           !is_const(r, value) && node->source < model->record_count &&
           graft_model_value_name(model, r->viewer->graph, value) != NULL &&
           model->onnx->proto->graph->node[model->records[node->source].onnx_node]->n_output == 1;
}

uint32_t graft_onnx_find_cells(graft_arena *arena, graft_viewer *viewer,
                               const graft_weights *weights, graft_cell **cells)
{
    const reader r = {viewer, weights};
    uint32_t count = 0;
    uint32_t capacity = 0;
    *cells = NULL;
    for (graft_index n = 0; n < viewer->graph->node_end; n++) {
        const uint32_t op = viewer->graph->nodes[n].op;
        if (op != GRAFT_OP_mul && op != GRAFT_OP_add) {
            continue;
        }
        const graft_index value = graft_node_output(viewer->graph, n, 0);
        graft_cell cell = {.h_made = value};
        viewer->noted_count = 0;
        if (is_alone(&r, value) &&
            (op == GRAFT_OP_mul ? read_lstm(&r, value, &cell) && is_alone(&r, cell.c_made)
                                : read_gru(&r, value, &cell))) {
            cell.units = graft_view_columns(graft_view_shape(viewer, value));
            memcpy(cell.noted, viewer->noted, sizeof(cell.noted));
            cell.noted_count = viewer->noted_count;
            GRAFT_PUSH(arena, *cells, count, capacity, 16) = cell;
        }
    }
    return count;
}

/* onnx_cells.c - see onnx_cells.h. */
#include "graph/onnx/onnx_cells.h"

#include <string.h>

enum { GATES_MOST = 4, BIASES_MOST = 8, SUMS_MOST = 8, INNER_MOST = 24 };
enum { LSTM_I, LSTM_O, LSTM_F, LSTM_G }; /* As ONNX orders them. */
enum { GRU_Z, GRU_R, GRU_N, GRU_STATE }; /* The last: what r is multiplied by, of a linear one. */

/* Rows and columns of a value as a matrix whose columns are its last axis. */
typedef struct {
    graft_index value;
    int64_t row;
    int64_t rows;
    int32_t column;
    int32_t columns;
} view;

/* A view times rows and columns of a constant matrix. */
typedef struct {
    view of;
    graft_index matrix; /* GRAFT_NONE: there is no such product. */
    int32_t row;
    int32_t column;
} product;

/* A constant row from a column on; `repeats`: one number. */
typedef struct {
    const float *data;
    bool repeats;
} bias;

/* What a gate is a function of. */
typedef struct {
    product products[2];
    bias biases[BIASES_MOST];
    uint32_t product_count;
    uint32_t bias_count;
    bool has_gated;
    view gated; /* A product of two computed values. */
} sum;

typedef struct {
    bool is_gru;
    bool is_linear;
    bool is_negated; /* Of a GRU: z is one minus the sigmoid. */
    int32_t units;
    sum gates[GATES_MOST]; /* Products are those of the two operands, in that order. */
    view operands[2];
    uint32_t state; /* Which of them is h, once that is known. */
    view h;         /* Of a GRU: the state that is taken. */
    view c;         /* Of an LSTM. */
    graft_index h_made;
    graft_index c_made;    /* GRAFT_NONE: a GRU. */
    graft_index successor; /* A cell. */
    bool has_predecessor;
    uint32_t inner[INNER_MOST];
    uint32_t inner_count;
} cell;

typedef struct {
    graft_arena *arena;
    const graft_model *model;
    const graft_graph *graph;
    graft_weights weights;
    uint32_t inner[INNER_MOST]; /* ONNX nodes of the cell that is looked at. */
    uint32_t inner_count;
    cell *cells;
    uint32_t cell_count;
    uint32_t cell_capacity;
    graft_index *maker_of_h; /* By value: the cell; GRAFT_NONE. */
    graft_index *maker_of_c;
} finder;

/* ------------------------------------------------------------------------- views */

static const graft_shape *shape_of(const finder *f, graft_index value)
{
    return &f->graph->values[value].shape;
}

static int32_t columns_of(const graft_shape *shape)
{
    return shape->rank == 0 || shape->rank == GRAFT_RANK_UNKNOWN ? 1 : shape->dims[shape->rank - 1];
}

static view all_of(const finder *f, graft_index value)
{
    const graft_shape *shape = shape_of(f, value);
    const int32_t columns = columns_of(shape);
    const int64_t rows = (int64_t)graft_shape_elements(shape) / columns;
    return (view){value, 0, rows, 0, columns};
}

static bool is_equal(view a, view b)
{
    return a.value == b.value && a.row == b.row && a.rows == b.rows && a.column == b.column &&
           a.columns == b.columns;
}

static bool is_all(const finder *f, view v) { return is_equal(v, all_of(f, v.value)); }

static const graft_node *maker_of(const finder *f, graft_index value)
{
    const graft_index node = f->graph->values[value].node;
    return node == GRAFT_NONE ? NULL : &f->graph->nodes[node];
}

static graft_index input_of(const finder *f, const graft_node *node, uint32_t k)
{
    return f->graph->edges[node->first_edge + k];
}

static uint32_t op_of(const finder *f, graft_index value)
{
    const graft_node *node = maker_of(f, value);
    return node == NULL ? GRAFT_OP_NONE : node->op;
}

/* How many elements of what an axis consists of make a unit of rows or columns; 0: they do not lie
 * together, or would not at other sizes. */
static int64_t unit_of_axis(const finder *f, const graft_shape *shape, uint32_t axis)
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
static bool move_into(const finder *f, view *v, graft_index value, uint32_t axis, int32_t from)
{
    const graft_shape *shape = shape_of(f, value);
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
static bool move_beside(const finder *f, view *v, const graft_node *node)
{
    const uint32_t axis = (uint32_t)node->attrs[GRAFT_ATTR_concat_axis];
    const graft_shape *first = shape_of(f, input_of(f, node, 0));
    const bool by_columns = axis + 1U == first->rank;
    const int64_t unit = unit_of_axis(f, shape_of(f, v->value), axis);
    const int64_t border = unit * first->dims[axis];
    const int64_t start = by_columns ? v->column : v->row;
    const int64_t end = start + (by_columns ? v->columns : v->rows);
    if (unit == 0 || (start < border && end > border)) {
        return false;
    }
    return move_into(f, v, input_of(f, node, start < border ? 0 : 1), axis,
                     start < border ? 0 : -first->dims[axis]);
}

/* Goes from a view to the same elements of what it was cut out of; false where it was not. */
static bool descend(const finder *f, view *v)
{
    const graft_node *node = maker_of(f, v->value);
    const uint32_t slot = f->graph->values[v->value].slot;
    view inner = *v;
    bool moved = false;
    if (node == NULL) {
        return false;
    }
    const graft_index input = node->input_count > 0 ? input_of(f, node, 0) : GRAFT_NONE;
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
        moved = columns_of(shape_of(f, input)) == columns_of(shape_of(f, v->value));
    }
    *v = moved ? inner : *v;
    return moved;
}

static view settle(const finder *f, view v)
{
    while (descend(f, &v)) {
    }
    return v;
}

static bool is_same(const finder *f, view a, view b)
{
    return is_equal(settle(f, a), settle(f, b));
}

/* A value that a view is all of and that has a name in the file; GRAFT_NONE when there is none. */
static graft_index find_named(const finder *f, view v)
{
    do {
        if (is_all(f, v) && graft_model_value_name(f->model, f->graph, v.value) != NULL) {
            return v.value;
        }
    } while (descend(f, &v));
    return GRAFT_NONE;
}

/* --------------------------------------------------------------------- functions */

static void note_inner(finder *f, const graft_node *node)
{
    if (f->inner_count < INNER_MOST && node->source < f->model->record_count) {
        f->inner[f->inner_count++] = f->model->records[node->source].onnx_node;
    }
}

/* Whether a view is a function of another one. */
static bool take_function(finder *f, view v, uint32_t op, view *of)
{
    v = settle(f, v);
    const graft_node *node = maker_of(f, v.value);
    if (node == NULL || node->op != op) {
        return false;
    }
    note_inner(f, node);
    v.value = input_of(f, node, 0);
    *of = v;
    return true;
}

/* Whether it is `op` of two others; the first of them may also be a number for all. */
static bool take_both(finder *f, view v, uint32_t op, view of[2])
{
    v = settle(f, v);
    const graft_node *node = maker_of(f, v.value);
    bool fits = node != NULL && node->op == op;
    for (uint32_t k = 0; k < 2 && fits; k++) {
        const graft_index input = input_of(f, node, k);
        of[k] = v;
        of[k].value = input;
        fits = graft_shape_equal(shape_of(f, input), shape_of(f, v.value)) ||
               (k == 0 && op == GRAFT_OP_sub && f->graph->values[input].is_const);
    }
    if (fits) {
        note_inner(f, node);
    }
    return fits;
}

/* Whether it is `op` of two others, in any order, of which one is `a_op` of *a and the other `b_op`
 * of *b; with b_op GRAFT_OP_NONE it is *b itself. */
static bool take_pair(finder *f, view v, uint32_t op, uint32_t a_op, view *a, uint32_t b_op,
                      view *b)
{
    view in[2];
    const bool fits = take_both(f, v, op, in);
    const uint32_t noted = f->inner_count;
    for (uint32_t k = 0; k < 2 && fits; k++) {
        f->inner_count = noted;
        *b = in[1 - k];
        if (take_function(f, in[k], a_op, a) &&
            (b_op == GRAFT_OP_NONE || take_function(f, in[1 - k], b_op, b))) {
            return true;
        }
    }
    return false;
}

static bool is_one(const finder *f, graft_index value)
{
    const float *data = graft_weights_data(&f->weights, value);
    const uint64_t count = graft_shape_elements(shape_of(f, value));
    bool one = data != NULL && f->graph->values[value].is_const;
    for (uint64_t i = 0; one && i < count; i++) {
        one = data[i] == 1.0F;
    }
    return one;
}

/* -------------------------------------------------------------------------- sums */

static bool add_bias(const finder *f, sum *s, graft_index value, int32_t column)
{
    const float *data = graft_weights_data(&f->weights, value);
    const view all = all_of(f, value);
    if (!f->graph->values[value].is_const || data == NULL || all.rows != 1 ||
        s->bias_count == BIASES_MOST) {
        return false;
    }
    const bool repeats = all.columns == 1;
    s->biases[s->bias_count++] = (bias){repeats ? data : data + column, repeats};
    return true;
}

static bool add_product(sum *s, product p)
{
    const bool fits = s->product_count < 2;
    if (fits) {
        s->products[s->product_count++] = p;
    }
    return fits;
}

/* The product of two tensors side by side is the sum of two products. */
static void split_product(const finder *f, sum *s)
{
    const view both = settle(f, s->products[0].of);
    if (s->product_count != 1 || s->has_gated || op_of(f, both.value) != GRAFT_OP_concat) {
        return;
    }
    const graft_node *node = maker_of(f, both.value);
    const graft_index in[2] = {input_of(f, node, 0), input_of(f, node, 1)};
    const int32_t border = columns_of(shape_of(f, in[0]));
    const bool by_columns =
        (uint32_t)node->attrs[GRAFT_ATTR_concat_axis] + 1U == shape_of(f, both.value)->rank;
    if (by_columns && both.column == 0 && both.columns == columns_of(shape_of(f, both.value))) {
        s->products[1] = s->products[0];
        s->products[0].of = (view){in[0], both.row, both.rows, 0, border};
        s->products[1].of = (view){in[1], both.row, both.rows, 0, both.columns - border};
        s->products[1].row += border;
        s->product_count = 2;
    }
}

/* Adds up what a view is the sum of, sums of sums `depth` deep. */
static bool gather(const finder *f, sum *s, view v, uint32_t depth)
{
    v = settle(f, v);
    const uint32_t op = op_of(f, v.value);
    const graft_node *node = maker_of(f, v.value);
    bool fits = depth > 0;
    if (op == GRAFT_OP_add) {
        for (uint32_t k = 0; k < 2 && fits; k++) {
            view part = v;
            part.value = input_of(f, node, k);
            fits = graft_shape_equal(shape_of(f, part.value), shape_of(f, v.value))
                       ? gather(f, s, part, depth - 1)
                       : add_bias(f, s, part.value, v.column);
        }
        return fits;
    }
    if (op == GRAFT_OP_matmul || op == GRAFT_OP_matmul_bias) {
        const graft_index matrix = input_of(f, node, 1);
        view of = all_of(f, input_of(f, node, 0));
        of.row = v.row;
        of.rows = v.rows;
        return fits && shape_of(f, matrix)->rank == 2 &&
               graft_weights_data(&f->weights, matrix) != NULL &&
               (op == GRAFT_OP_matmul ||
                (node->attrs[GRAFT_ATTR_matmul_bias_activation] == GRAFT_ACT_NONE &&
                 add_bias(f, s, input_of(f, node, 2), v.column))) &&
               add_product(s, (product){of, matrix, 0, v.column});
    }
    if (op == GRAFT_OP_mul && !f->graph->values[v.value].is_const) {
        fits = fits && !s->has_gated;
        s->has_gated = true;
        s->gated = v;
        return fits;
    }
    return fits && add_bias(f, s, v.value, v.column);
}

/* Puts the products of a gate into the order of the operands. */
static bool order_products(const finder *f, const cell *c, sum *s)
{
    if (s->product_count != 2 || s->has_gated) {
        return false;
    }
    if (!is_same(f, s->products[0].of, c->operands[0])) {
        const product first = s->products[0];
        s->products[0] = s->products[1];
        s->products[1] = first;
    }
    return is_same(f, s->products[0].of, c->operands[0]) &&
           is_same(f, s->products[1].of, c->operands[1]);
}

/* What a gate is a function of. */
static bool read_gate(const finder *f, sum *s, view before)
{
    *s = (sum){.product_count = 0};
    const bool fits = gather(f, s, before, SUMS_MOST);
    split_product(f, s);
    return fits;
}

/* ------------------------------------------------------------------------- cells */

/* Reads the gates of an LSTM, whose operands are those of the first one. */
static bool order_gates(const finder *f, cell *c, const view before[GATES_MOST])
{
    bool fits = true;
    for (uint32_t g = 0; g < GATES_MOST && fits; g++) {
        fits = read_gate(f, &c->gates[g], before[g]) && c->gates[g].product_count == 2;
        if (fits && g == 0) {
            c->operands[0] = c->gates[0].products[0].of;
            c->operands[1] = c->gates[0].products[1].of;
        }
        fits = fits && order_products(f, c, &c->gates[g]);
    }
    return fits;
}

static bool read_lstm(finder *f, graft_index value, cell *c)
{
    view before[GATES_MOST];
    view made;
    view in[2];
    if (!take_pair(f, all_of(f, value), GRAFT_OP_mul, GRAFT_OP_sigmoid, &before[LSTM_O],
                   GRAFT_OP_tanh, &made) ||
        !take_both(f, made, GRAFT_OP_add, in)) {
        return false;
    }
    made = settle(f, made);
    c->c_made = made.value;
    const uint32_t noted = f->inner_count;
    bool fits = false;
    for (uint32_t k = 0; k < 2 && is_all(f, made) && !fits; k++) {
        f->inner_count = noted;
        fits = take_pair(f, in[k], GRAFT_OP_mul, GRAFT_OP_sigmoid, &before[LSTM_I], GRAFT_OP_tanh,
                         &before[LSTM_G]) &&
               take_pair(f, in[1 - k], GRAFT_OP_mul, GRAFT_OP_sigmoid, &before[LSTM_F],
                         GRAFT_OP_NONE, &c->c) &&
               order_gates(f, c, before);
    }
    return fits && !is_same(f, c->operands[0], c->operands[1]);
}

/* h' = (1 - z) n + z h as two products, or as one of a difference: n + z (h - n). Where z and 1 - z
 * have changed places, it is negated. */
static bool read_update(finder *f, view of, view *z, view *n, cell *c)
{
    view in[2];
    view rest;
    view again;
    view difference[2];
    const bool fits = take_both(f, of, GRAFT_OP_add, in);
    const uint32_t noted = f->inner_count;
    for (uint32_t k = 0; k < 2 && fits; k++) {
        f->inner_count = noted;
        c->is_negated = false;
        if (take_pair(f, in[k], GRAFT_OP_mul, GRAFT_OP_tanh, n, GRAFT_OP_NONE, &rest) &&
            take_pair(f, in[1 - k], GRAFT_OP_mul, GRAFT_OP_sigmoid, z, GRAFT_OP_NONE, &c->h) &&
            take_both(f, rest, GRAFT_OP_sub, difference) && is_one(f, difference[0].value) &&
            take_function(f, difference[1], GRAFT_OP_sigmoid, &again) && is_same(f, again, *z)) {
            return true;
        }
        f->inner_count = noted;
        if (take_function(f, in[k], GRAFT_OP_tanh, n) &&
            take_pair(f, in[1 - k], GRAFT_OP_mul, GRAFT_OP_sigmoid, z, GRAFT_OP_NONE, &rest) &&
            take_both(f, rest, GRAFT_OP_sub, difference) && is_same(f, difference[1], in[k])) {
            c->h = difference[0];
            return true;
        }
        f->inner_count = noted;
        c->is_negated = true;
        if (take_pair(f, in[k], GRAFT_OP_mul, GRAFT_OP_tanh, n, GRAFT_OP_sigmoid, z) &&
            take_both(f, in[1 - k], GRAFT_OP_mul, difference)) {
            for (uint32_t m = 0; m < 2; m++) {
                view one[2];
                c->h = difference[1 - m];
                if (take_both(f, difference[m], GRAFT_OP_sub, one) && is_one(f, one[0].value) &&
                    take_function(f, one[1], GRAFT_OP_sigmoid, &again) && is_same(f, again, *z)) {
                    return true;
                }
            }
        }
        f->inner_count = noted;
        if (take_pair(f, in[1 - k], GRAFT_OP_mul, GRAFT_OP_sigmoid, z, GRAFT_OP_NONE, &rest) &&
            take_both(f, rest, GRAFT_OP_sub, difference) && is_same(f, difference[1], in[k]) &&
            take_function(f, difference[0], GRAFT_OP_tanh, n)) {
            c->h = in[k];
            return true;
        }
    }
    return false;
}

/* Finds what the reset gate is a sigmoid of, and what it is multiplied by. */
static bool read_reset(finder *f, cell *c, view *r)
{
    sum *n = &c->gates[GRU_N];
    view state;
    c->is_linear = n->has_gated;
    if (c->is_linear) {
        return n->product_count == 1 &&
               take_pair(f, n->gated, GRAFT_OP_mul, GRAFT_OP_sigmoid, r, GRAFT_OP_NONE, &state) &&
               gather(f, &c->gates[GRU_STATE], state, SUMS_MOST) &&
               c->gates[GRU_STATE].product_count == 1 && !c->gates[GRU_STATE].has_gated;
    }
    for (uint32_t k = 0; k < n->product_count; k++) {
        if (take_pair(f, n->products[k].of, GRAFT_OP_mul, GRAFT_OP_sigmoid, r, GRAFT_OP_NONE,
                      &state) &&
            is_same(f, state, c->h)) {
            n->products[k].of = c->h;
            return true;
        }
    }
    return false;
}

static bool read_gru(finder *f, graft_index value, cell *c)
{
    view z;
    view r;
    view n;
    sum *gates = c->gates;
    if (!read_update(f, all_of(f, value), &z, &n, c) || !read_gate(f, &gates[GRU_Z], z) ||
        !read_gate(f, &gates[GRU_N], n) || !read_reset(f, c, &r) ||
        !read_gate(f, &gates[GRU_R], r) || gates[GRU_Z].product_count != 2) {
        return false;
    }
    if (c->is_linear) { /* Its two products are found in two places. */
        gates[GRU_N].products[1] = gates[GRU_STATE].products[0];
        gates[GRU_N].product_count = 2;
        gates[GRU_N].has_gated = false;
    }
    const uint32_t first = is_same(f, gates[GRU_Z].products[0].of, c->h) ? 1 : 0;
    c->operands[0] = gates[GRU_Z].products[first].of;
    c->operands[1] = c->h;
    c->state = 1;
    c->c_made = GRAFT_NONE;
    c->is_gru = true;
    return order_products(f, c, &gates[GRU_Z]) && order_products(f, c, &gates[GRU_R]) &&
           order_products(f, c, &gates[GRU_N]) && !is_same(f, c->operands[0], c->operands[1]);
}

/* Whether a value of the file is a matrix of binary32 that is all that its ONNX node makes. */
static bool is_alone(const finder *f, graft_index value)
{
    const graft_node *node = maker_of(f, value);
    const graft_shape *shape = shape_of(f, value);
    return node != NULL && shape->rank == 2 && shape->dtype == GRAFT_DTYPE_F32 &&
           !f->graph->values[value].is_const && node->source < f->model->record_count &&
           graft_model_value_name(f->model, f->graph, value) != NULL &&
           f->model->onnx->proto->graph->node[f->model->records[node->source].onnx_node]
                   ->n_output == 1;
}

static void read_cells(finder *f)
{
    for (graft_index n = 0; n < f->graph->node_end; n++) {
        const uint32_t op = f->graph->nodes[n].op;
        if (op != GRAFT_OP_mul && op != GRAFT_OP_add) {
            continue;
        }
        const graft_index value = graft_node_output(f->graph, n, 0);
        cell c = {.successor = GRAFT_NONE, .h_made = value, .units = columns_of(shape_of(f, value))};
        f->inner_count = 0;
        if (is_alone(f, value) &&
            (op == GRAFT_OP_mul ? read_lstm(f, value, &c) && is_alone(f, c.c_made)
                                : read_gru(f, value, &c))) {
            memcpy(c.inner, f->inner, sizeof(c.inner));
            c.inner_count = f->inner_count;
            f->maker_of_h[value] = f->cell_count;
            if (!c.is_gru) {
                f->maker_of_c[c.c_made] = f->cell_count;
            }
            GRAFT_PUSH(f->arena, f->cells, f->cell_count, f->cell_capacity, 16) = c;
        }
    }
}

/* ------------------------------------------------------------------------ chains */

static const float *row_of(const finder *f, const product *p, int32_t k)
{
    const size_t columns = (size_t)columns_of(shape_of(f, p->matrix));
    return graft_weights_data(&f->weights, p->matrix) + (size_t)(p->row + k) * columns + p->column;
}

static bool is_same_matrix(const finder *f, const product *a, const product *b, int32_t units)
{
    bool same = a->of.columns == b->of.columns;
    for (int32_t k = 0; k < a->of.columns && same; k++) {
        same = memcmp(row_of(f, a, k), row_of(f, b, k), (size_t)units * sizeof(float)) == 0;
    }
    return same;
}

static float bias_at(const sum *s, int32_t j)
{
    float total = 0.0F;
    for (uint32_t i = 0; i < s->bias_count; i++) {
        total += s->biases[i].data[s->biases[i].repeats ? 0 : j];
    }
    return total;
}

static uint32_t gates_of(const cell *c) { return c->is_gru ? 3 : 4; }

/* Whether two cells compute the same of their operands; `state` is which of a's is the state. */
static bool is_same_cell(const finder *f, const cell *a, uint32_t state, const cell *b)
{
    bool same = a->is_gru == b->is_gru && a->is_linear == b->is_linear &&
                a->is_negated == b->is_negated && a->units == b->units;
    for (uint32_t g = 0; g < GATES_MOST && same; g++) {
        const sum *x = &a->gates[g];
        const sum *y = &b->gates[g];
        if (g < gates_of(a)) {
            same =
                is_same_matrix(f, &x->products[state], &y->products[b->state], a->units) &&
                is_same_matrix(f, &x->products[1 - state], &y->products[1 - b->state], a->units);
        }
        for (int32_t j = 0; j < a->units && same; j++) {
            same = bias_at(x, j) == bias_at(y, j);
        }
    }
    return same;
}

/* The cell that made the states which a cell takes; GRAFT_NONE when there is none. */
static uint32_t find_predecessor(const finder *f, cell *c)
{
    if (c->is_gru) {
        const view h = settle(f, c->h);
        return is_all(f, h) ? f->maker_of_h[h.value] : GRAFT_NONE;
    }
    const view state = settle(f, c->c);
    const uint32_t before = is_all(f, state) ? f->maker_of_c[state.value] : GRAFT_NONE;
    for (uint32_t k = 0; k < 2 && before != GRAFT_NONE; k++) {
        if (is_same(f, c->operands[k], all_of(f, f->cells[before].h_made))) {
            c->state = k;
            return before;
        }
    }
    return GRAFT_NONE;
}

/* Links cells that take one another's states and have the same weights. */
static void link_cells(finder *f)
{
    for (uint32_t i = 0; i < f->cell_count; i++) {
        cell *c = &f->cells[i];
        const uint32_t p = find_predecessor(f, c);
        if (p == GRAFT_NONE || f->cells[p].successor != GRAFT_NONE) {
            continue;
        }
        cell *before = &f->cells[p];
        bool same = is_same_cell(f, before, before->state, c);
        if (!same && !before->is_gru && !before->has_predecessor) {
            before->state = 1 - before->state; /* The first of a chain: either may be its state. */
            same = is_same_cell(f, before, before->state, c);
        }
        if (same) {
            before->successor = i;
            c->has_predecessor = true;
        }
    }
}

/* ------------------------------------------------------------------------ output */

static const char *name_of(const finder *f, graft_index value)
{
    return value == GRAFT_NONE ? NULL : graft_model_value_name(f->model, f->graph, value);
}

/* Whether a value has as many rows at the other sizes of a model whose sizes stay open as the
 * states have. */
static bool is_as_open(const finder *f, const char *name, const char *state)
{
    const graft_model *other = f->model->other;
    const graft_onnx_entry *a = other == NULL ? NULL : graft_onnx_entry_named(other->onnx, name);
    const graft_onnx_entry *b = other == NULL ? NULL : graft_onnx_entry_named(other->onnx, state);
    if (!f->model->is_open) {
        return true;
    }
    if (a == NULL || b == NULL || a->value == GRAFT_NONE || b->value == GRAFT_NONE) {
        return false;
    }
    const graft_shape *x = &other->graph.values[a->value].shape;
    const graft_shape *y = &other->graph.values[b->value].shape;
    return x->rank == 2 && y->rank == 2 && x->dims[0] == y->dims[0];
}

/* Whether what a node makes is places of an axis, the first or the second, of a tensor of three; from
 * which one on. */
static bool is_cut(const finder *f, graft_index value, uint32_t *axis, int64_t *from)
{
    const graft_node *node = maker_of(f, value);
    const bool splits = node != NULL && node->op == GRAFT_OP_split;
    if (!splits && (node == NULL || node->op != GRAFT_OP_slice)) {
        return false;
    }
    *axis = (uint32_t)node->attrs[splits ? GRAFT_ATTR_split_axis : GRAFT_ATTR_slice_axis];
    *from = !splits                                ? node->attrs[GRAFT_ATTR_slice_start]
            : f->graph->values[value].slot == 0 ? 0
                                                   : node->attrs[GRAFT_ATTR_split_at];
    return shape_of(f, value)->rank == 3 && *axis < 2;
}

/* Finds the tensor that an input is a step of. */
static void find_sequence(const finder *f, view x, graft_chain_step *step)
{
    const view v = settle(f, x);
    uint32_t axis = 0;
    uint32_t next = 0;
    int64_t from = 0;
    step->of = GRAFT_NONE;
    if (!is_all(f, v)) { /* Rows of a matrix. */
        const bool wide = v.columns == columns_of(shape_of(f, v.value));
        step->of = wide && v.row % v.rows == 0 ? v.value : GRAFT_NONE;
        step->index = v.row / v.rows;
    } else if (is_cut(f, v.value, &axis, &from) && shape_of(f, v.value)->dims[axis] == 1) {
        step->of = v.value;
        step->second = axis == 1;
        while (is_cut(f, step->of, &next, &from) && next == axis) {
            step->of = input_of(f, maker_of(f, step->of), 0);
            step->index += from;
        }
    }
}

static bool fill_step(const finder *f, const cell *c, graft_chain_step *step)
{
    const graft_model_record *records = f->model->records;
    const graft_node *h = maker_of(f, c->h_made);
    const view x = c->operands[1 - c->state];
    *step = (graft_chain_step){.x = name_of(f, find_named(f, x)), .h = name_of(f, c->h_made)};
    step->h_node = records[h->source].onnx_node;
    if (!c->is_gru) {
        step->c = name_of(f, c->c_made);
        step->c_node = records[maker_of(f, c->c_made)->source].onnx_node;
    }
    find_sequence(f, x, step);
    return f->model->is_open ? step->x != NULL && is_as_open(f, step->x, step->h)
                             : step->x != NULL || step->of != GRAFT_NONE;
}

/* The name of a first state, NULL for zeros; false when it has none. */
static bool name_state(const finder *f, view v, const char *h, const char **name)
{
    const graft_index value = find_named(f, v);
    const view settled = settle(f, v);
    const float *data = graft_weights_data(&f->weights, settled.value);
    const uint64_t count = graft_shape_elements(shape_of(f, settled.value));
    bool zeros = data != NULL && f->graph->values[settled.value].is_const;
    for (uint64_t i = 0; i < count && zeros; i++) {
        zeros = data[i] == 0.0F;
    }
    *name = zeros ? NULL : name_of(f, value);
    return zeros || (*name != NULL && is_as_open(f, *name, h));
}

/* One matrix of ONNX: rows are the columns of those of the gates. */
static const float *pack_matrix(const finder *f, const cell *c, uint32_t operand)
{
    const int32_t width = c->operands[operand].columns;
    float *packed =
        GRAFT_NEW(f->arena, float, (size_t)gates_of(c) * (size_t)c->units * (size_t)width);
    float *to = packed;
    for (uint32_t g = 0; g < gates_of(c); g++) {
        const float sign = c->is_negated && g == GRU_Z ? -1.0F : 1.0F;
        for (int32_t j = 0; j < c->units; j++) {
            for (int32_t k = 0; k < width; k++) {
                *to++ = sign * row_of(f, &c->gates[g].products[operand], k)[j];
            }
        }
    }
    return packed;
}

static const float *pack_biases(const finder *f, const cell *c)
{
    const size_t units = (size_t)c->units;
    float *packed = GRAFT_NEW(f->arena, float, 2 * gates_of(c) * units);
    for (uint32_t g = 0; g < gates_of(c); g++) {
        const float sign = c->is_negated && g == GRU_Z ? -1.0F : 1.0F;
        for (size_t j = 0; j < units; j++) {
            packed[g * units + j] = sign * bias_at(&c->gates[g], (int32_t)j);
        }
    }
    for (size_t j = 0; j < units && c->is_linear; j++) {
        packed[5 * units + j] = bias_at(&c->gates[GRU_STATE], (int32_t)j);
    }
    return packed;
}

/* The chain that begins with a cell; false where something has no name. */
static bool fill_chain(const finder *f, const cell *first, graft_chain *chain)
{
    const view x = first->operands[1 - first->state];
    uint32_t inner_count = 0;
    uint32_t t = 0;
    *chain = (graft_chain){.is_gru = first->is_gru,
                           .is_linear = first->is_linear,
                           .batch = shape_of(f, first->h_made)->dims[0],
                           .features = x.columns,
                           .units = first->units};
    for (const cell *c = first;; c = &f->cells[c->successor]) {
        chain->step_count++;
        inner_count += c->inner_count;
        if (c->successor == GRAFT_NONE) {
            break;
        }
    }
    graft_chain_step *steps = GRAFT_NEW(f->arena, graft_chain_step, chain->step_count);
    uint32_t *inner = GRAFT_NEW(f->arena, uint32_t, inner_count);
    chain->steps = steps;
    chain->inner = inner;
    for (const cell *c = first; t < chain->step_count; t++) {
        if (!fill_step(f, c, &steps[t])) {
            return false;
        }
        memcpy(inner + chain->inner_count, c->inner, c->inner_count * sizeof(inner[0]));
        chain->inner_count += c->inner_count;
        c = c->successor == GRAFT_NONE ? c : &f->cells[c->successor];
    }
    if (first->operands[first->state].columns != first->units ||
        !name_state(f, first->operands[first->state], steps[0].h, &chain->h) ||
        (!first->is_gru && !name_state(f, first->c, steps[0].h, &chain->c))) {
        return false;
    }
    chain->w = pack_matrix(f, first, 1 - first->state);
    chain->r = pack_matrix(f, first, first->state);
    chain->b = pack_biases(f, first);
    return true;
}

graft_status graft_onnx_find_chains(graft_env *env, graft_arena *arena, const graft_model *model,
                                    graft_chain **chains, uint32_t *count)
{
    finder f = {.arena = arena, .model = model, .graph = &model->graph};
    const graft_index value_count = model->graph.value_end;
    uint32_t capacity = 0;
    *chains = NULL;
    *count = 0;
    GRAFT_PASS(graft_model_fold_weights(env, arena, model, &model->graph, &f.weights));
    f.maker_of_h = GRAFT_NEW(arena, graft_index, value_count);
    f.maker_of_c = GRAFT_NEW(arena, graft_index, value_count);
    for (graft_index v = 0; v < value_count; v++) {
        f.maker_of_h[v] = f.maker_of_c[v] = GRAFT_NONE;
    }
    read_cells(&f);
    link_cells(&f);
    for (uint32_t i = 0; i < f.cell_count; i++) {
        const cell *c = &f.cells[i];
        graft_chain chain;
        if (!c->has_predecessor && c->successor != GRAFT_NONE && fill_chain(&f, c, &chain)) {
            GRAFT_PUSH(arena, *chains, *count, capacity, 4) = chain;
        }
    }
    return GRAFT_OK;
}

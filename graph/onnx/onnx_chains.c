/* onnx_chains.c - see onnx_chains.h. */
#include "graph/onnx/onnx_chains.h"

#include "graph/onnx/onnx_cells.h"

#include <string.h>

typedef struct {
    graft_arena *arena;
    graft_viewer viewer;
    graft_weights weights;
    graft_cell *cells;
    uint32_t cell_count;
    uint32_t *next; /* By cell: the one that goes on; GRAFT_NONE. */
    bool *goes_on;  /* By cell: another one's `next` is it. */
} finder;

static const graft_shape *shape_of(const finder *f, graft_index value)
{
    return graft_view_shape(&f->viewer, value);
}

/* -------------------------------------------------------------------------- links */

static const float *row_of(const finder *f, const graft_gate_product *p, int32_t k)
{
    return graft_gate_row(&f->viewer, &f->weights, p, k);
}

static bool are_same_rows(const finder *f, const graft_gate_product *a, const graft_gate_product *b,
                          int32_t units)
{
    bool same = a->of.columns == b->of.columns;
    for (int32_t k = 0; k < a->of.columns && same; k++) {
        same = memcmp(row_of(f, a, k), row_of(f, b, k), (size_t)units * sizeof(float)) == 0;
    }
    return same;
}

static bool are_same_biases(const graft_gate *a, const graft_gate *b, int32_t units)
{
    bool same = true;
    for (int32_t j = 0; j < units && same; j++) {
        same = graft_gate_bias(a, j) == graft_gate_bias(b, j);
    }
    return same;
}

/* Whether two cells compute the same of their inputs and states. */
static bool are_same(const finder *f, const graft_cell *a, const graft_cell *b)
{
    bool same = a->is_gru == b->is_gru && a->is_linear == b->is_linear && a->units == b->units &&
                are_same_biases(&a->inner, &b->inner, a->units);
    for (uint32_t g = 0; g < a->gate_count && same; g++) {
        const graft_gate *x = &a->gates[g];
        const graft_gate *y = &b->gates[g];
        same = are_same_biases(x, y, a->units) &&
               are_same_rows(f, &x->products[a->state], &y->products[b->state], a->units) &&
               are_same_rows(f, &x->products[1 - a->state], &y->products[1 - b->state], a->units);
    }
    return same;
}

/* Whether a cell takes the states that another one made; notes which of its operands is one. */
static bool takes_states(const finder *f, graft_cell *cell, const graft_cell *before)
{
    if (cell->is_gru != before->is_gru ||
        (!cell->is_gru &&
         !graft_view_is_same(&f->viewer, cell->c, graft_view_all(&f->viewer, before->c_made)))) {
        return false;
    }
    const graft_view h = graft_view_all(&f->viewer, before->h_made);
    for (uint32_t k = cell->is_gru ? 1 : 0; k < 2; k++) {
        if (graft_view_is_same(&f->viewer, cell->operands[k], h)) {
            cell->state = k;
            return true;
        }
    }
    return false;
}

/* Links cell i to the one before it, where they have the same weights. */
static void link_cell(const finder *f, uint32_t i)
{
    for (uint32_t p = i; p-- > 0;) {
        graft_cell *before = &f->cells[p];
        if (f->next[p] != GRAFT_NONE || !takes_states(f, &f->cells[i], before)) {
            continue;
        }
        bool same = are_same(f, before, &f->cells[i]);
        if (!same && !before->is_gru && !f->goes_on[p]) { /* Either operand may be its state. */
            before->state = 1 - before->state;
            same = are_same(f, before, &f->cells[i]);
        }
        if (same) {
            f->next[p] = i;
            f->goes_on[i] = true;
        }
        return;
    }
}

/* -------------------------------------------------------------------------- steps */

static const char *name_of(const finder *f, graft_index value)
{
    return value == GRAFT_NONE ? NULL
                               : graft_model_value_name(f->viewer.model, f->viewer.graph, value);
}

/* Whether a value has as many rows as the states at the other sizes of a model whose sizes stay
 * open, too. */
static bool is_as_open(const finder *f, const char *name, const char *state)
{
    if (!f->viewer.model->is_open) {
        return true;
    }
    const graft_model *other = f->viewer.model->other;
    const graft_onnx_entry *a = graft_onnx_entry_named(other->onnx, name);
    const graft_onnx_entry *b = graft_onnx_entry_named(other->onnx, state);
    if (a == NULL || b == NULL || a->value == GRAFT_NONE || b->value == GRAFT_NONE) {
        return false;
    }
    const graft_shape *x = &other->graph.values[a->value].shape;
    const graft_shape *y = &other->graph.values[b->value].shape;
    return x->rank == 2 && y->rank == 2 && x->dims[0] == y->dims[0];
}

/* Whether a value is places of an axis, the first or the second, of a tensor of three; from which
 * one on. */
static bool is_cut(const finder *f, graft_index value, uint32_t *axis, int64_t *from)
{
    const graft_node *node = graft_view_maker(&f->viewer, value);
    const bool splits = node != NULL && node->op == GRAFT_OP_split;
    if (!splits && (node == NULL || node->op != GRAFT_OP_slice)) {
        return false;
    }
    *axis = (uint32_t)node->attrs[splits ? GRAFT_ATTR_split_axis : GRAFT_ATTR_slice_axis];
    *from = !splits                                    ? node->attrs[GRAFT_ATTR_slice_start]
            : f->viewer.graph->values[value].slot == 0 ? 0
                                                       : node->attrs[GRAFT_ATTR_split_at];
    return shape_of(f, value)->rank == 3 && *axis < 2;
}

/* Finds the tensor that an input is a step of. */
static void find_sequence(const finder *f, graft_view x, graft_chain_step *step)
{
    const graft_view v = graft_view_settle(&f->viewer, x);
    uint32_t axis = 0;
    uint32_t next = 0;
    int64_t from = 0;
    step->of = GRAFT_NONE;
    if (!graft_view_is_all(&f->viewer, v)) { /* Rows of a matrix. */
        const bool wide = v.columns == graft_view_columns(shape_of(f, v.value));
        step->of = wide && v.row % v.rows == 0 ? v.value : GRAFT_NONE;
        step->index = v.row / v.rows;
    } else if (is_cut(f, v.value, &axis, &from) && shape_of(f, v.value)->dims[axis] == 1) {
        step->of = v.value;
        step->second = axis == 1;
        while (is_cut(f, step->of, &next, &from) && next == axis) {
            step->of = graft_view_input(&f->viewer, graft_view_maker(&f->viewer, step->of), 0);
            step->index += from;
        }
    }
}

/* False where the input has no name that could be read. */
static bool fill_step(const finder *f, const graft_cell *cell, graft_chain_step *step)
{
    const graft_model *model = f->viewer.model;
    const graft_view x = cell->operands[1 - cell->state];
    *step = (graft_chain_step){.x = name_of(f, graft_view_find_named(&f->viewer, x)),
                               .h = name_of(f, cell->h_made),
                               .c = name_of(f, cell->c_made)};
    step->h_node = model->records[graft_view_maker(&f->viewer, cell->h_made)->source].onnx_node;
    if (step->c != NULL) {
        step->c_node = model->records[graft_view_maker(&f->viewer, cell->c_made)->source].onnx_node;
    }
    find_sequence(f, x, step);
    return step->x != NULL ? is_as_open(f, step->x, step->h)
                           : step->of != GRAFT_NONE && !model->is_open;
}

/* ------------------------------------------------------------------------- chains */

/* The name of a first state, NULL for zeros; false when it has none. */
static bool name_state(const finder *f, graft_view v, const char *h, const char **name)
{
    const graft_index settled = graft_view_settle(&f->viewer, v).value;
    const float *data = graft_weights_data(&f->weights, settled);
    const uint64_t count = graft_shape_elements(shape_of(f, settled));
    bool zeros = data != NULL && f->viewer.graph->values[settled].is_const;
    for (uint64_t i = 0; i < count && zeros; i++) {
        zeros = data[i] == 0.0F;
    }
    *name = zeros ? NULL : name_of(f, graft_view_find_named(&f->viewer, v));
    return zeros || (*name != NULL && is_as_open(f, *name, h));
}

/* A matrix of ONNX: its rows are the columns of those of the gates. */
static const float *pack_matrix(const finder *f, const graft_cell *cell, uint32_t operand)
{
    const size_t width = (size_t)cell->operands[operand].columns;
    const size_t units = (size_t)cell->units;
    float *packed = GRAFT_NEW(f->arena, float, cell->gate_count *units *width);
    for (uint32_t g = 0; g < cell->gate_count; g++) {
        for (size_t k = 0; k < width; k++) {
            const float *row = row_of(f, &cell->gates[g].products[operand], (int32_t)k);
            for (size_t j = 0; j < units; j++) {
                packed[(g * units + j) * width + k] = row[j];
            }
        }
    }
    return packed;
}

/* What is added to the product of the input, and behind that to the one of the state. */
static const float *pack_biases(const finder *f, const graft_cell *cell)
{
    const size_t units = (size_t)cell->units;
    const size_t inner = (2 * GRAFT_GRU_GATES - 1) * units;
    float *packed = GRAFT_NEW(f->arena, float, 2 * cell->gate_count * units);
    for (size_t j = 0; j < units; j++) {
        for (uint32_t g = 0; g < cell->gate_count; g++) {
            packed[g * units + j] = graft_gate_bias(&cell->gates[g], (int32_t)j);
        }
        if (cell->is_linear) {
            packed[inner + j] = graft_gate_bias(&cell->inner, (int32_t)j);
        }
    }
    return packed;
}

/* The chain that begins with a cell; false where something has no name. */
static bool fill_chain(const finder *f, uint32_t first, graft_chain *chain)
{
    const graft_cell *head = &f->cells[first];
    uint32_t capacity = 0;
    uint32_t inner_capacity = 0;
    graft_chain_step *steps = NULL;
    uint32_t *inner = NULL;
    *chain = (graft_chain){.is_gru = head->is_gru,
                           .is_linear = head->is_linear,
                           .features = head->operands[1 - head->state].columns,
                           .units = head->units};
    for (uint32_t i = first; i != GRAFT_NONE; i = f->next[i]) {
        graft_chain_step step;
        if (!fill_step(f, &f->cells[i], &step)) {
            return false;
        }
        GRAFT_PUSH(f->arena, steps, chain->step_count, capacity, 16) = step;
        for (uint32_t k = 0; k < f->cells[i].noted_count; k++) {
            GRAFT_PUSH(f->arena, inner, chain->inner_count, inner_capacity, 256) =
                f->cells[i].noted[k];
        }
    }
    if (head->operands[head->state].columns != head->units ||
        !name_state(f, head->operands[head->state], steps[0].h, &chain->h) ||
        (!head->is_gru && !name_state(f, head->c, steps[0].h, &chain->c))) {
        return false;
    }
    chain->steps = steps;
    chain->inner = inner;
    chain->w = pack_matrix(f, head, 1 - head->state);
    chain->r = pack_matrix(f, head, head->state);
    chain->b = pack_biases(f, head);
    return true;
}

graft_status graft_onnx_find_chains(graft_env *env, graft_arena *arena, const graft_model *model,
                                    graft_chain **chains, uint32_t *count)
{
    finder f = {
        .arena = arena, .viewer = {.model = model, .graph = &model->graph}
    };
    uint32_t capacity = 0;
    *chains = NULL;
    *count = 0;
    GRAFT_PASS(graft_model_fold_weights(env, arena, model, &model->graph, &f.weights));
    f.cell_count = graft_onnx_find_cells(arena, &f.viewer, &f.weights, &f.cells);
    f.next = GRAFT_NEW(arena, uint32_t, f.cell_count);
    f.goes_on = GRAFT_NEW(arena, bool, f.cell_count);
    memset(f.next, 0xff, f.cell_count * sizeof(f.next[0])); /* GRAFT_NONE */
    for (uint32_t i = 0; i < f.cell_count; i++) {
        link_cell(&f, i);
    }
    for (uint32_t i = 0; i < f.cell_count; i++) {
        graft_chain chain;
        if (!f.goes_on[i] && f.next[i] != GRAFT_NONE && fill_chain(&f, i, &chain)) {
            GRAFT_PUSH(arena, *chains, *count, capacity, 4) = chain;
        }
    }
    return GRAFT_OK;
}

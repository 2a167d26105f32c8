/* model.c - what can be asked of a model, and its weight program (see model.h). */
#include "graph/model.h"

#include "graph/equal.h"
#include "graph/folds.h"
#include "graph/meaning/algebra_float.h"
#include "graph/onnx/onnx.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------------- names */

/* The record of a node; NULL when a rule made it. */
static const graft_model_record *record_of_node(const graft_model *model, const graft_node *node)
{
    return node->source < model->record_count ? &model->records[node->source] : NULL;
}

static const Onnx__NodeProto *onnx_node(const graft_model *model, const graft_node *node)
{
    const graft_model_record *record = record_of_node(model, node);
    return record == NULL ? NULL : model->onnx->proto->graph->node[record->onnx_node];
}

const char *graft_model_node_name(const graft_model *model, const graft_node *node)
{
    const Onnx__NodeProto *onnx = onnx_node(model, node);
    if (onnx == NULL) {
        return "";
    }
    if (onnx->name != NULL && onnx->name[0] != '\0') {
        return onnx->name;
    }
    return onnx->n_output > 0 ? onnx->output[0] : "";
}

const char *graft_model_node_type(const graft_model *model, const graft_node *node)
{
    const Onnx__NodeProto *onnx = onnx_node(model, node);
    return onnx == NULL || onnx->op_type == NULL ? "" : onnx->op_type;
}

const char *graft_model_node_refusal(const graft_model *model, const graft_node *node)
{
    const graft_model_record *record = record_of_node(model, node);
    const char *why = record == NULL ? NULL : model->onnx->groups[record->onnx_node].refusal;
    return why == NULL ? "" : why;
}

/* The name of output `slot` of a node of the file; NULL when it is inner to a group or not named.
 */
static const char *output_name(const graft_model *model, const graft_node *node, uint32_t slot)
{
    const graft_model_record *record = record_of_node(model, node);
    const Onnx__NodeProto *onnx = onnx_node(model, node);
    if (record == NULL) {
        return NULL;
    }
    const graft_onnx_group *group = &model->onnx->groups[record->onnx_node];
    for (size_t k = 0; k < onnx->n_output; k++) {
        bool same = group->is_opaque ? k == slot
                                     : group->outputs[k].kind == GRAFT_ONNX_OPERAND_PART &&
                                           group->outputs[k].index == record->part &&
                                           group->outputs[k].slot == slot;
        if (same && onnx->output[k][0] != '\0') {
            return onnx->output[k];
        }
    }
    return NULL;
}

const char *graft_model_value_name(const graft_model *model, const graft_graph *graph,
                                   graft_index value)
{
    const graft_value *v = &graph->values[value];
    switch ((graft_value_kind)v->kind) {
    case GRAFT_VALUE_INPUT:
        return v->source < model->input_count ? model->inputs[v->source].name : NULL;
    case GRAFT_VALUE_WEIGHT:
        return v->source < model->weight_count ? model->weights[v->source].name : NULL;
    case GRAFT_VALUE_COMPUTED:
        return output_name(model, &graph->nodes[v->node], v->slot);
    case GRAFT_VALUE_FREE:
        break;
    }
    return NULL;
}

/* ---------------------------------------------------------------------------------- kinds */

static int compare_kinds(const void *a, const void *b)
{
    return strcmp(((const graft_model_kind *)a)->name, ((const graft_model_kind *)b)->name);
}

const graft_model_kind *graft_model_kinds(graft_arena *arena, const graft_model *model,
                                          uint32_t *count)
{
    const Onnx__GraphProto *graph = model->onnx->proto->graph;
    graft_model_kind *kinds = GRAFT_NEW(arena, graft_model_kind, graph->n_node);
    uint32_t nodes = 0;
    *count = 0;
    for (size_t i = 0; i < graph->n_node; i++) {
        const char *name = graph->node[i]->op_type == NULL ? "" : graph->node[i]->op_type;
        if (strcmp(name, "Constant") != 0) {
            kinds[nodes++] = (graft_model_kind){.name = name, .count = 1};
        }
    }
    qsort(kinds, nodes, sizeof(kinds[0]), compare_kinds);
    for (uint32_t i = 0; i < nodes; i++) {
        if (*count > 0 && strcmp(kinds[*count - 1].name, kinds[i].name) == 0) {
            kinds[*count - 1].count++;
        } else {
            kinds[(*count)++] = kinds[i];
        }
    }
    return kinds;
}

/* --------------------------------------------------------------------------------- copies */

static graft_graph *new_graph(graft_arena *arena, const graft_limits *limits)
{
    graft_graph *graph = GRAFT_NEW(arena, graft_graph, 1);
    size_t bytes = graft_graph_bytes(limits);
    /* Cannot fail: the engine told the size. */
    (void)!graft_graph_init(graph, limits, graft_arena_alloc(arena, bytes), bytes);
    return graph;
}

graft_graph *graft_model_graph_copy(graft_arena *arena, const graft_graph *graph)
{
    graft_graph *copy = new_graph(arena, &graph->limits);
    (void)!graft_graph_copy(copy, graph); /* Cannot fail: the capacities are equal. */
    return copy;
}

/* ------------------------------------------------------------------------- weight program */

typedef struct {
    graft_arena *arena;
    const graft_model *model;
    const graft_graph *graph;
    const float **data; /* By value id. */
    bool *wanted;       /* By value id. */
    bool *divides;      /* As in graft_weights. */
    graft_index spoilt; /* As in graft_weights. */
} fold_state;

/* And what an executor reads in its place. */
static void want(fold_state *state, const graft_index *same, graft_index value)
{
    state->wanted[value] = true;
    state->wanted[same == NULL ? value : same[value]] = true;
}

/* So is what a divisor is computed from. */
static void note_divisor(fold_state *state, graft_index n, uint32_t k)
{
    const graft_node *node = &state->graph->nodes[n];
    graft_index v = graft_node_input(state->graph, n, k);
    state->divides[v] = state->divides[v] || (node->op == GRAFT_OP_div && k == 1) ||
                        (node->is_const && state->divides[graft_node_output(state->graph, n, 0)]);
}

/* Wants what runs at inference reads, then what computes that, consumers first. */
static void mark_wanted(fold_state *state, graft_arena *scratch, const graft_order *order)
{
    const graft_graph *graph = state->graph;
    const graft_index *same = graft_equal_find(scratch, graph, order);
    for (graft_index i = 0; i < graph->output_count; i++) {
        want(state, same, graph->outputs[i]);
    }
    for (graft_index i = order->count; i-- > 0;) {
        graft_index n = order->order[i];
        bool wanted = !graph->nodes[n].is_const;
        for (uint32_t k = 0; k < graph->nodes[n].output_count; k++) {
            wanted = wanted || state->wanted[graft_node_output(graph, n, k)];
        }
        for (uint32_t k = 0; wanted && k < graph->nodes[n].input_count; k++) {
            graft_index v = graft_node_input(graph, n, k);
            if (v != GRAFT_NONE) {
                want(state, same, v);
                note_divisor(state, n, k);
            }
        }
    }
}

static void borrow_weights(fold_state *state)
{
    for (graft_index v = 0; v < state->graph->value_end; v++) {
        const graft_value *value = &state->graph->values[v];
        if (value->kind == GRAFT_VALUE_WEIGHT && state->wanted[v] &&
            value->source < state->model->weight_count) {
            state->data[v] = state->model->weights[value->source].data;
        }
    }
}

static bool is_wanted_node(const fold_state *state, graft_index n)
{
    for (uint32_t k = 0; k < state->graph->nodes[n].output_count; k++) {
        if (state->wanted[graft_node_output(state->graph, n, k)]) {
            return true;
        }
    }
    return false;
}

/* Whether two const nodes compute the same: operator, attributes, shapes and data. */
static bool is_same_node(const fold_state *state, graft_index a, graft_index b)
{
    const graft_graph *graph = state->graph;
    const graft_node *x = &graph->nodes[a];
    const graft_node *y = &graph->nodes[b];
    bool same = x->op == y->op && x->op != GRAFT_OP_OPAQUE &&
                memcmp(x->attrs, y->attrs, sizeof(x->attrs)) == 0;
    for (uint32_t k = 0; same && k < x->input_count; k++) {
        graft_index v = graft_node_input(graph, a, k);
        graft_index w = graft_node_input(graph, b, k);
        same = state->data[v] == state->data[w] &&
               graft_shape_equal(&graph->values[v].shape, &graph->values[w].shape);
    }
    return same;
}

/* Takes the results of an earlier node that computed the same: the steps of an unrolled cell, whose
 * weights were rewritten step by step, then still share them. */
static bool reuse_results(fold_state *state, const graft_order *order, graft_index place)
{
    const graft_graph *graph = state->graph;
    graft_index n = order->order[place];
    for (graft_index i = 0; i < place; i++) {
        graft_index m = order->order[i];
        if (!graph->nodes[m].is_const || !is_same_node(state, n, m) ||
            state->data[graft_node_output(graph, m, 0)] == NULL) {
            continue;
        }
        for (uint32_t k = 0; k < graph->nodes[n].output_count; k++) {
            state->data[graft_node_output(graph, n, k)] =
                state->data[graft_node_output(graph, m, k)];
        }
        return true;
    }
    return false;
}

static bool is_finite(const float *data, const graft_shape *shape)
{
    const size_t count = (size_t)graft_shape_elements(shape);
    size_t other = 0;
    for (size_t i = 0; i < count; i++) {
        other += data[i] - data[i] == 0.0F ? 0 : 1;
    }
    return other == 0;
}

/* Whether numbers are too small for their precision: one of a divisor, elsewhere even the largest,
 * beside which the others count for little. `zeros` says whether 0 is such a number. */
static bool is_faint(const float *data, const graft_shape *shape, bool divides, bool zeros)
{
    const size_t count = (size_t)graft_shape_elements(shape);
    size_t faint = 0;
    for (size_t i = 0; i < count; i++) {
        faint += fabsf(data[i]) < FLT_MIN && (zeros || data[i] != 0.0F) ? 1 : 0;
    }
    return divides ? faint > 0 : faint == count;
}

/* Whether a result leaves the range of numbers. A 0 is no sign of that but where factors make it:
 * differences and maxima have zeros of their own. */
static bool is_spoilt(const fold_state *state, graft_index n, uint32_t k, const graft_call *call,
                      const float *data)
{
    const graft_op_info *op = graft_op(state->graph->nodes[n].op);
    const bool multiplies = op->input_count > 1 && (op->flags & GRAFT_FLAG_LINEAR) != 0;
    return !is_finite(data, &call->out[k]) ||
           is_faint(data, &call->out[k], state->divides[graft_node_output(state->graph, n, k)],
                    multiplies);
}

/* Notes a node that a rule made and that leaves the range of numbers, which its inputs are in. */
static void note_spoilt(fold_state *state, graft_index n, const graft_call *call,
                        const float *const *in, float *const *out)
{
    const graft_node *node = &state->graph->nodes[n];
    bool fine = state->spoilt == GRAFT_NONE && node->source == GRAFT_NONE;
    for (uint32_t k = 0; fine && k < node->input_count; k++) {
        const bool divides = state->divides[graft_node_input(state->graph, n, k)];
        fine = is_finite(in[k], &call->in[k]) && !is_faint(in[k], &call->in[k], divides, true);
    }
    for (uint32_t k = 0; fine && k < node->output_count; k++) {
        if (is_spoilt(state, n, k, call, out[k])) {
            state->spoilt = graft_node_output(state->graph, n, k);
            return;
        }
    }
}

/* All inputs of a const node are real weights or const: only these have a shape the engine accepts.
 * False where one has no data. */
static bool describe_fold(const fold_state *state, graft_index n, graft_fold *fold)
{
    const graft_node *node = &state->graph->nodes[n];
    bool known = true;
    *fold = (graft_fold){.op = node->op};
    memcpy(fold->attrs, node->attrs, sizeof fold->attrs);
    for (uint32_t k = 0; k < node->input_count; k++) {
        const graft_index v = graft_node_input(state->graph, n, k);
        fold->shapes[k] = state->graph->values[v].shape;
        fold->in[k] = state->data[v];
        known = known && fold->in[k] != NULL;
    }
    return known;
}

static void run_const_node(fold_state *state, graft_index n)
{
    const graft_graph *graph = state->graph;
    const graft_node *node = &graph->nodes[n];
    graft_folds *folds = state->model->folds;
    graft_shape out_shapes[GRAFT_MAX_OUTPUTS];
    size_t bytes[GRAFT_MAX_OUTPUTS];
    float *out[GRAFT_MAX_OUTPUTS];
    graft_fold fold;
    if (!describe_fold(state, n, &fold)) {
        return;
    }
    if (node->op == GRAFT_OP_identity) { /* One weight under two names is stored once. */
        state->data[graft_node_output(graph, n, 0)] = fold.in[0];
        return;
    }
    for (uint32_t k = 0; k < node->output_count; k++) {
        out_shapes[k] = graph->values[graft_node_output(graph, n, k)].shape;
        bytes[k] = (size_t)graft_shape_elements(&out_shapes[k]) * sizeof(float);
    }
    float *const *found = folds == NULL ? NULL : graft_folds_find(folds, &fold);
    float *const *kept = folds == NULL || found != NULL
                             ? found
                             : graft_folds_add(folds, &fold, node->output_count, bytes);
    for (uint32_t k = 0; k < node->output_count; k++) {
        out[k] = kept != NULL ? kept[k] : graft_arena_alloc(state->arena, bytes[k]);
        state->data[graft_node_output(graph, n, k)] = out[k];
    }
    if (found == NULL) {
        graft_call call = {.attrs = node->attrs, .in = fold.shapes, .out = out_shapes};
        graft_float_run(node->op, &call, fold.in, out);
        note_spoilt(state, n, &call, fold.in, out);
    }
}

graft_status graft_model_fold_weights(graft_env *env, graft_arena *arena, const graft_model *model,
                                      const graft_graph *graph, graft_weights *weights)
{
    graft_status status = GRAFT_OK;
    graft_mark mark = graft_arena_mark(env->scratch);
    graft_order order;
    size_t order_bytes = graft_order_bytes(&graph->limits);
    fold_state state = {.arena = arena, .model = model, .graph = graph, .spoilt = GRAFT_NONE};
    void *memory = graft_arena_alloc(env->scratch, order_bytes);
    if (graft_order_build(&order, graph, memory, order_bytes) != GRAFT_OK) {
        status = GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: the graph has a cycle", model->file);
        goto done;
    }
    state.data = GRAFT_NEW(arena, const float *, graph->value_end);
    state.wanted = GRAFT_NEW(arena, bool, graph->value_end);
    state.divides = GRAFT_NEW(arena, bool, graph->value_end);
    mark_wanted(&state, env->scratch, &order);
    borrow_weights(&state);
    for (graft_index i = 0; i < order.count; i++) {
        graft_index n = order.order[i];
        if (!graph->nodes[n].is_const || !is_wanted_node(&state, n)) {
            continue;
        }
        if (graph->nodes[n].op == GRAFT_OP_OPAQUE) {
            GRAFT_TRY(env, graft_float_opaque(env, arena, model, graph, n, state.data),
                      "while preparing the weights of %s", model->file);
        } else if (!reuse_results(&state, &order, i)) {
            run_const_node(&state, n);
        }
    }
    *weights = (graft_weights){.value_count = graph->value_end,
                               .spoilt = state.spoilt,
                               .divides = state.divides,
                               .data = state.data};
done:
    if (arena != env->scratch) { /* There the result lies behind the mark. */
        graft_arena_release(env->scratch, mark);
    }
    return status;
}

const float *graft_weights_data(const graft_weights *weights, graft_index value)
{
    return value < weights->value_count ? weights->data[value] : NULL;
}

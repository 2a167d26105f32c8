/* onnx_build.c - the second half of reading: each ONNX node becomes nodes of the engine's graph, an
 * opaque node, a weight or known numbers (see onnx.h). */
#include "graph/base/log.h"
#include "graph/onnx/onnx_apart.h"
#include "graph/opaque.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* More than the longest plan of a node apart from chains: layer normalisation with all outputs; and
 * than what comes of a node of onnx_apart.def. */
enum { PARTS_MOST = 24, APART_MOST = 256, EDGES_OF_PART = GRAFT_MAX_INPUTS + GRAFT_MAX_OUTPUTS };

/* Room for rewriting: a rewritten graph may have twice the nodes, and some more when it is small.
 */
enum { ROOM_FACTOR = 2, ROOM_NODES = 64, ROOM_VALUES = 256, ROOM_EDGES = 512 };

static graft_status fail_node(graft_onnx_reader *reader, uint32_t index, const char *what)
{
    const Onnx__NodeProto *node = reader->onnx->proto->graph->node[index];
    return GRAFT_FAIL(reader->env, GRAFT_INTERNAL, "%s: node %u '%s' (%s): %s", reader->model->file,
                      index, text_or_empty(node->name), text_or_empty(node->op_type), what);
}

/* ------------------------------------------------------------------------------ capacities */

/* More than any plan of these nodes can need. */
static graft_limits largest_limits(const graft_onnx_reader *reader)
{
    const graft_onnx *onnx = reader->onnx;
    const Onnx__GraphProto *graph = onnx->proto->graph;
    size_t nodes = 0;
    size_t edges = 0;
    for (size_t i = 0; i < graph->n_node; i++) {
        size_t width = graph->node[i]->n_input + graph->node[i]->n_output;
        nodes += width + graph->node[i]->n_input /* Numbers. */ + PARTS_MOST +
                 graft_plan_recurrent_most(reader, graph->node[i]) +
                 graft_plan_deep_most(graph->node[i]) +
                 (graft_onnx_comes_apart(reader, graph->node[i]) ? APART_MOST : 0);
        edges += width + onnx->groups[i].captured_count;
    }
    return (graft_limits){
        .nodes = (graft_index)nodes,
        .values = (graft_index)(nodes * GRAFT_MAX_OUTPUTS + 2 * onnx->entry_count + 2 * nodes),
        .edges = (graft_index)(edges + nodes * EDGES_OF_PART),
        .outputs =
            (graft_index)(graph->n_output + (graft_onnx_is_staged(reader) ? onnx->entry_count : 0)),
    };
}

static graft_limits limits_with_room(const graft_graph *graph)
{
    return (graft_limits){.nodes = ROOM_FACTOR * graph->node_end + ROOM_NODES,
                          .values = ROOM_FACTOR * graph->value_end + ROOM_VALUES,
                          .edges = ROOM_FACTOR * graph->edge_end + ROOM_EDGES,
                          .outputs = graph->output_count};
}

static graft_status new_graph(graft_onnx_reader *reader, graft_arena *arena,
                              const graft_limits *limits, graft_graph *graph)
{
    size_t bytes = graft_graph_bytes(limits);
    if (graft_graph_init(graph, limits, graft_arena_alloc(arena, bytes), bytes) != GRAFT_OK) {
        return GRAFT_FAIL(reader->env, GRAFT_INTERNAL, "%s: a graph does not fit its own size",
                          reader->model->file);
    }
    return GRAFT_OK;
}

/* --------------------------------------------------------------------------------- values */

graft_status graft_onnx_know_weight(graft_onnx_reader *reader, graft_onnx_entry *entry)
{
    graft_model_weight weight = {.name = NULL};
    bool fits = true; /* As it did when it was worked out. */
    GRAFT_PASS(graft_onnx_weight_of_tensor(reader,
                                           graft_onnx_make_weight(reader->arena, entry->name,
                                                                  &entry->known->shape,
                                                                  entry->known->data, &fits),
                                           "tensor", &weight));
    entry->weight = graft_onnx_add_weight(reader, &weight);
    return GRAFT_OK;
}

/* What is known of this run's data alone is an input, as it was made. */
static graft_status add_told_input(graft_onnx_reader *reader, graft_onnx_entry *entry,
                                   graft_index *value)
{
    graft_model *model = reader->model;
    graft_model_port port = {entry->name, entry->known->shape, 0, entry->known->data};
    port.shape.dtype =
        graft_half_is(port.shape.dtype) ? (uint8_t)GRAFT_DTYPE_F32 : port.shape.dtype;
    port.dtype = port.shape.dtype;
    GRAFT_PUSH(reader->arena, reader->ports, model->input_count, reader->port_capacity, 8) = port;
    model->inputs = reader->ports;
    GRAFT_PASS_IN(
        reader->env,
        graft_graph_add_input(&model->graph, &port.shape, model->input_count - 1, &entry->value),
        "while adding '%s'", entry->name);
    *value = entry->value;
    return GRAFT_OK;
}

/* The value of an entry; weights and known numbers enter the graph when they are first read. */
static graft_status value_of_entry(graft_onnx_reader *reader, graft_onnx_entry *entry,
                                   graft_index *value)
{
    graft_graph *graph = &reader->model->graph;
    if (entry->value == GRAFT_NONE) {
        if (entry->of_data && entry->known != NULL) {
            return add_told_input(reader, entry, value);
        }
        if (entry->weight == GRAFT_NONE && entry->known != NULL) {
            GRAFT_PASS(graft_onnx_know_weight(reader, entry));
        }
        if (entry->weight == GRAFT_NONE) {
            return GRAFT_FAIL(reader->env, GRAFT_INTERNAL, "%s: '%s' is read before it is made",
                              reader->model->file, entry->name);
        }
        GRAFT_PASS_IN(reader->env,
                      graft_graph_add_weight(graph, &reader->weights[entry->weight].shape,
                                             entry->weight, &entry->value),
                      "while adding the weight '%s'", entry->name);
    }
    *value = entry->value;
    return GRAFT_OK;
}

static uint32_t add_record(graft_onnx_reader *reader, uint32_t onnx_node, uint32_t part)
{
    GRAFT_PUSH(reader->arena, reader->records, reader->record_count, reader->record_capacity, 64) =
        (graft_model_record){.onnx_node = onnx_node, .part = part};
    return reader->record_count - 1;
}

/* ---------------------------------------------------------------------------------- plans */

/* Numbers the weights that the plan made, and lets its operands name them. */
static void keep_plan_weights(graft_onnx_reader *reader, graft_onnx_plan *plan)
{
    uint32_t first = reader->weight_count;
    for (uint32_t i = 0; i < plan->weight_count; i++) {
        (void)graft_onnx_add_weight(reader, &plan->weights[i]);
    }
    for (uint32_t p = 0; p < plan->part_count; p++) {
        for (uint32_t i = 0; i < GRAFT_MAX_INPUTS; i++) {
            graft_onnx_operand *operand = &plan->parts[p].inputs[i];
            operand->index += operand->kind == GRAFT_ONNX_OPERAND_WEIGHT ? first : 0;
        }
    }
}

static graft_status value_of_operand(graft_onnx_reader *reader, const graft_onnx_plan *plan,
                                     graft_onnx_operand operand, const graft_index *part_nodes,
                                     graft_index *value)
{
    graft_graph *graph = &reader->model->graph;
    switch ((graft_onnx_operand_kind)operand.kind) {
    case GRAFT_ONNX_OPERAND_INPUT:
        return value_of_entry(reader, graft_onnx_input(reader->onnx, plan->node, operand.index),
                              value);
    case GRAFT_ONNX_OPERAND_PART:
        *value = graft_node_output(graph, part_nodes[operand.index], operand.slot);
        return GRAFT_OK;
    case GRAFT_ONNX_OPERAND_WEIGHT:
        return graft_graph_add_weight(graph, &reader->weights[operand.index].shape, operand.index,
                                      value);
    case GRAFT_ONNX_OPERAND_NONE:
        break;
    }
    return GRAFT_INTERNAL;
}

/* Input `k` of the node as parts read it: a fill where it is a constant of one element that a rule
 * could name, else itself. A fill has the graph's type, so a number of another real type stays a
 * weight. Weights of float16 and bfloat16 are held in binary32, which has every number of both. A
 * number that was worked out becomes a weight, so that a node that stays finds it by name. */
static graft_status spell_input(graft_onnx_reader *reader, graft_onnx_plan *plan, uint32_t k,
                                graft_onnx_operand *operand)
{
    graft_onnx_entry *entry = graft_onnx_input(reader->onnx, plan->node, k);
    const graft_model_weight *weight = entry == NULL ? NULL
                                       : entry->weight != GRAFT_NONE
                                           ? &reader->weights[entry->weight]
                                           : entry->known;
    float number = 0.0F;
    *operand = (graft_onnx_operand){.kind = GRAFT_ONNX_OPERAND_INPUT, .index = k};
    if (weight == NULL || weight->data == NULL ||
        weight->shape.dtype != reader->model->graph.dtype || plan->dtype != weight->shape.dtype ||
        weight->shape.rank > GRAFT_MAX_RANK || graft_shape_elements(&weight->shape) != 1) {
        return GRAFT_OK;
    }
    memcpy(&number, weight->data, sizeof(number));
    if (isfinite(number)) {
        *operand = graft_plan_constant(plan, number, weight->shape.dims, weight->shape.rank);
        if (entry->weight == GRAFT_NONE) {
            GRAFT_PASS(graft_onnx_know_weight(reader, entry));
        }
    }
    return GRAFT_OK;
}

/* Where functions of two tensors read a single number, that is an operator of its own, one for each
 * input of the node: a graph has no data, and rules know a number (an epsilon, the half of a GELU)
 * by a fill's attribute. These parts stand behind all others; `first` is where. */
static graft_status spell_numbers(graft_onnx_reader *reader, graft_onnx_plan *plan, uint32_t *first)
{
    graft_onnx_operand *numbers =
        GRAFT_NEW(reader->env->scratch, graft_onnx_operand, plan->node->n_input);
    *first = plan->part_count;
    for (uint32_t p = 0; p < *first; p++) {
        const graft_op_info *info = graft_op(plan->parts[p].op);
        bool two = (info->flags & GRAFT_FLAG_ELEMENTWISE) != 0 && info->input_count == 2;
        for (uint32_t i = 0; two && i < info->input_count; i++) {
            const graft_onnx_operand operand = plan->parts[p].inputs[i];
            if (operand.kind != GRAFT_ONNX_OPERAND_INPUT) {
                continue;
            }
            if (numbers[operand.index].kind == GRAFT_ONNX_OPERAND_NONE) {
                GRAFT_PASS(spell_input(reader, plan, operand.index, &numbers[operand.index]));
            }
            plan->parts[p].inputs[i] = numbers[operand.index];
        }
    }
    return GRAFT_OK;
}

/* Part `first` and those behind it come first: the others read them. */
static graft_status add_parts(graft_onnx_reader *reader, uint32_t index, graft_onnx_plan *plan,
                              uint32_t first, graft_index *part_nodes)
{
    const uint32_t record = reader->record_count;
    for (uint32_t p = 0; p < plan->part_count; p++) {
        (void)add_record(reader, index, p);
    }
    for (uint32_t k = 0; k < plan->part_count; k++) {
        const uint32_t p = (first + k) % plan->part_count;
        graft_index inputs[GRAFT_MAX_INPUTS];
        const graft_onnx_part *part = &plan->parts[p];
        for (uint32_t i = 0; i < graft_op(part->op)->input_count; i++) {
            GRAFT_PASS_IN(reader->env,
                          value_of_operand(reader, plan, part->inputs[i], part_nodes, &inputs[i]),
                          "as an input of ONNX node %u", index);
        }
        GRAFT_RETURN_IF(graft_graph_add_node(&reader->model->graph, part->op, part->attrs, inputs,
                                             record + p, &part_nodes[p]) != GRAFT_OK,
                        fail_node(reader, index, "its plan does not fit the graph"));
    }
    return GRAFT_OK;
}

/* A planner that forgets an output is wrong about the node. */
static void check_outputs(graft_onnx_plan *plan)
{
    for (size_t k = 0; k < plan->node->n_output; k++) {
        const graft_onnx_entry *entry =
            graft_onnx_entry_named(plan->reader->onnx, plan->node->output[k]);
        if (entry != NULL && entry->read_count > 0 &&
            plan->outputs[k].kind != GRAFT_ONNX_OPERAND_PART) {
            graft_plan_refuse(plan, "an output that no part computes");
        }
    }
}

/* Adds the nodes of a plan to the graph and keeps it as the group. */
static graft_status carry_out_plan(graft_onnx_reader *reader, uint32_t index, graft_onnx_plan *plan)
{
    const Onnx__NodeProto *node = plan->node;
    graft_onnx_group *group = &reader->onnx->groups[index];
    uint32_t first = 0;
    GRAFT_PASS(spell_numbers(reader, plan, &first));
    graft_index *part_nodes = GRAFT_NEW(reader->env->scratch, graft_index, plan->part_count);
    keep_plan_weights(reader, plan);
    group->first_record = reader->record_count;
    group->part_count = plan->part_count;
    GRAFT_PASS(add_parts(reader, index, plan, first, part_nodes));
    group->parts = GRAFT_COPY(reader->arena, plan->parts, plan->part_count);
    group->outputs = GRAFT_COPY(reader->arena, plan->outputs, node->n_output);
    for (size_t k = 0; k < node->n_output; k++) {
        graft_onnx_entry *entry = graft_onnx_entry_named(reader->onnx, node->output[k]);
        const graft_onnx_operand output = group->outputs[k];
        if (entry != NULL && output.kind == GRAFT_ONNX_OPERAND_PART) {
            entry->value =
                graft_node_output(&reader->model->graph, part_nodes[output.index], output.slot);
        }
    }
    return GRAFT_OK;
}

/* --------------------------------------------------------------------------------- opaque */

static graft_status list_opaque_inputs(graft_onnx_reader *reader, uint32_t index,
                                       graft_index *inputs)
{
    graft_onnx *onnx = reader->onnx;
    const Onnx__NodeProto *node = onnx->proto->graph->node[index];
    const graft_onnx_group *group = &onnx->groups[index];
    for (size_t k = 0; k < node->n_input; k++) {
        graft_onnx_entry *entry = graft_onnx_input(onnx, node, k);
        inputs[k] = GRAFT_NONE;
        if (entry != NULL) {
            GRAFT_PASS(value_of_entry(reader, entry, &inputs[k]));
        }
    }
    for (uint32_t k = 0; k < group->captured_count; k++) {
        GRAFT_PASS(
            value_of_entry(reader, &onnx->entries[group->captured[k]], &inputs[node->n_input + k]));
    }
    return GRAFT_OK;
}

/* The shapes of a node's outputs as far as its plan or its numbers tell them; `plan` may be NULL.
 */
static void find_known_shapes(graft_onnx_reader *reader, const Onnx__NodeProto *node,
                              const graft_onnx_plan *plan, graft_shape *shapes)
{
    for (size_t k = 0; k < node->n_output; k++) {
        const graft_onnx_entry *entry = graft_onnx_entry_named(reader->onnx, node->output[k]);
        shapes[k] = graft_onnx_shape_of_opaque(reader, node, k);
        if (plan != NULL && plan->refusal == NULL &&
            plan->outputs[k].kind != GRAFT_ONNX_OPERAND_NONE) {
            shapes[k] = graft_plan_shape(plan, plan->outputs[k]);
        } else if (entry != NULL && entry->known != NULL) {
            shapes[k] = graft_onnx_shape_of_entry(reader, entry);
        }
    }
}

static void count_opaque(graft_onnx_reader *reader, const Onnx__NodeProto *node, const char *why)
{
    const char *op_type = text_or_empty(node->op_type);
    for (uint32_t i = 0; i < reader->opaque_kind_count; i++) {
        graft_onnx_opaque_kind *kind = &reader->opaque_kinds[i];
        if (strcmp(kind->op_type, op_type) == 0 && strcmp(kind->why, why) == 0) {
            kind->count++;
            return;
        }
    }
    GRAFT_PUSH(reader->arena, reader->opaque_kinds, reader->opaque_kind_count,
               reader->opaque_kind_capacity, 16) =
        (graft_onnx_opaque_kind){.op_type = op_type, .why = why, .count = 1};
}

static int compare_opaque_kinds(const void *a, const void *b)
{
    const graft_onnx_opaque_kind *x = a;
    const graft_onnx_opaque_kind *y = b;
    return x->count != y->count                  ? (x->count < y->count) - (x->count > y->count)
           : strcmp(x->op_type, y->op_type) != 0 ? strcmp(x->op_type, y->op_type)
                                                 : strcmp(x->why, y->why);
}

/* The most frequent first. */
static void log_opaque_kinds(const graft_onnx_reader *reader)
{
    if (reader->opaque_kind_count > 0) {
        qsort(reader->opaque_kinds, reader->opaque_kind_count, sizeof(reader->opaque_kinds[0]),
              compare_opaque_kinds);
    }
    for (uint32_t i = 0; i < reader->opaque_kind_count; i++) {
        const graft_onnx_opaque_kind *kind = &reader->opaque_kinds[i];
        graft_log(reader->env, 2, "%s: opaque: %u %s: %s", reader->model->file, kind->count,
                  kind->op_type, kind->why);
    }
}

static graft_status add_opaque(graft_onnx_reader *reader, uint32_t index,
                               const graft_onnx_plan *plan, const char *why)
{
    graft_status status = GRAFT_OK;
    graft_onnx *onnx = reader->onnx;
    graft_onnx_group *group = &onnx->groups[index];
    const Onnx__NodeProto *node = onnx->proto->graph->node[index];
    size_t input_count = node->n_input + group->captured_count;
    graft_index added = GRAFT_NONE;
    graft_opaque opaque;
    bool told = true;
    if (input_count > UINT16_MAX) {
        return GRAFT_FAIL(reader->env, GRAFT_UNSUPPORTED,
                          "%s: node %u '%s' (%s) reads more than 65535 values", reader->model->file,
                          index, text_or_empty(node->name), text_or_empty(node->op_type));
    }
    graft_index *inputs = GRAFT_NEW(reader->env->scratch, graft_index, input_count);
    graft_shape *shapes = GRAFT_NEW(reader->env->scratch, graft_shape, node->n_output);
    GRAFT_PASS(list_opaque_inputs(reader, index, inputs));
    find_known_shapes(reader, node, plan, shapes);
    GRAFT_PASS(graft_onnx_read_flow(reader, index, shapes));
    if (graft_onnx_is_staged(reader) && graft_onnx_waits(reader, index, shapes)) {
        return GRAFT_OK;
    }
    group->is_opaque = true;
    group->refusal = why;
    group->first_record = add_record(reader, index, 0);
    reader->model->opaque_count++;
    status =
        graft_graph_add_opaque(&reader->model->graph, group->first_record, inputs,
                               (uint16_t)input_count, shapes, (uint16_t)node->n_output, &added);
    GRAFT_RETURN_IF(status != GRAFT_OK, fail_node(reader, index, "does not fit the graph"));
    for (uint32_t k = 0; k < node->n_output; k++) {
        const graft_shape shape = graft_onnx_shape_of_foreign(reader, node, k);
        told = told && graft_shape_equal(&shape, &shapes[k]);
    }
    if (graft_opaque_describe(node, &reader->model->graph, added, &opaque) &&
        (opaque.kind != GRAFT_OPAQUE_FOREIGN || told)) {
        graft_graph_set_repeatable(&reader->model->graph, added);
    }
    for (size_t k = 0; k < node->n_output; k++) {
        graft_onnx_entry *entry = graft_onnx_entry_named(onnx, node->output[k]);
        if (entry != NULL) {
            entry->value = graft_node_output(&reader->model->graph, added, (uint32_t)k);
        }
    }
    graft_log(reader->env, 2, "%s: node %u '%s' (%s) is opaque: %s", reader->model->file, index,
              text_or_empty(node->name), text_or_empty(node->op_type), why);
    count_opaque(reader, node, why);
    return status;
}

/* ------------------------------------------------------------------------------ constants */

static void note_output(graft_onnx_reader *reader, const Onnx__NodeProto *node, uint32_t weight,
                        uint64_t spare)
{
    graft_onnx_entry *entry = graft_onnx_entry_named(reader->onnx, node->output[0]);
    if (entry != NULL) {
        entry->weight = weight;
        entry->spare = spare;
    }
}

/* The tensor of a Constant node; numbers given directly become one. NULL for other forms. */
static const Onnx__TensorProto *constant_tensor(graft_onnx_reader *reader,
                                                const Onnx__NodeProto *node)
{
    if (node->n_attribute != 1 || node->n_output != 1 || node->output[0][0] == '\0') {
        return NULL;
    }
    const Onnx__AttributeProto *a = node->attribute[0];
    const char *name = text_or_empty(a->name);
    int64_t count = 1;
    if (strcmp(name, "value") == 0) {
        return a->t;
    }
    if (strcmp(name, "value_float") == 0 && a->has_f) {
        return graft_onnx_make_tensor(reader->arena, node->output[0], GRAFT_DTYPE_F32, &count, 0,
                                      &a->f);
    }
    if (strcmp(name, "value_int") == 0 && a->has_i) {
        return graft_onnx_make_tensor(reader->arena, node->output[0], GRAFT_DTYPE_I64, &count, 0,
                                      &a->i);
    }
    if (strcmp(name, "value_floats") == 0) {
        count = (int64_t)a->n_floats;
        return graft_onnx_make_tensor(reader->arena, node->output[0], GRAFT_DTYPE_F32, &count, 1,
                                      a->floats);
    }
    if (strcmp(name, "value_ints") == 0) {
        count = (int64_t)a->n_ints;
        return graft_onnx_make_tensor(reader->arena, node->output[0], GRAFT_DTYPE_I64, &count, 1,
                                      a->ints);
    }
    return NULL;
}

static graft_status read_constant(graft_onnx_reader *reader, uint32_t index, bool *done)
{
    const Onnx__NodeProto *node = reader->onnx->proto->graph->node[index];
    const Onnx__TensorProto *tensor = constant_tensor(reader, node);
    graft_model_weight weight = {.name = NULL};
    if (tensor != NULL) {
        GRAFT_PASS_IN(reader->env, graft_onnx_weight_of_tensor(reader, tensor, "tensor", &weight),
                      "in node %u '%s' (Constant)", index, text_or_empty(node->name));
        weight.name = node->output[0];
        note_output(reader, node, graft_onnx_add_weight(reader, &weight), weight.data_bytes);
        *done = true;
    }
    return GRAFT_OK;
}

/* ---------------------------------------------------------------------------- all of them */

static bool is_known_domain(const graft_onnx *onnx, const Onnx__NodeProto *node)
{
    return graft_onnx_is_own_domain(node->domain) && !onnx->keep_all &&
           onnx->opset >= GRAFT_ONNX_OPSET_FIRST && onnx->opset <= GRAFT_ONNX_OPSET_LAST;
}

static const char *why_unknown(const graft_onnx *onnx, const Onnx__NodeProto *node)
{
    for (size_t f = 0; f < onnx->proto->n_functions; f++) {
        if (strcmp(text_or_empty(onnx->proto->functions[f]->name), text_or_empty(node->op_type)) ==
            0) {
            return "a function of the file that stays one";
        }
    }
    return "not an operator of a known opset";
}

/* The output of an Identity of a weight is known, too. */
static void pass_through_identity(graft_onnx_reader *reader, const Onnx__NodeProto *node)
{
    const graft_onnx_entry *from = graft_onnx_input(reader->onnx, node, 0);
    if (from != NULL && graft_onnx_is(node, "Identity")) {
        note_output(reader, node, from->weight, from->read_count > 1 ? 0 : from->spare);
    }
}

/* Whether input `k` of a Concat adds nothing to it. */
static bool adds_nothing(graft_onnx_reader *reader, const Onnx__NodeProto *node, size_t k)
{
    const graft_onnx_entry *entry = graft_onnx_input(reader->onnx, node, k);
    const graft_shape *shape = entry == NULL || entry->known == NULL ? NULL : &entry->known->shape;
    int64_t axis = graft_onnx_int(node, "axis", 0);
    axis += shape != NULL && axis < 0 ? shape->rank : 0;
    return shape != NULL && axis >= 0 && axis < shape->rank && shape->dims[axis] == 0;
}

/* Exporters cut off what is behind the rotated part of a row also where that is all of it, and join
 * the two. A Concat that is run reads nothing that has no elements; of several, the last. */
static void drop_nothing(graft_onnx_reader *reader, Onnx__NodeProto *node)
{
    size_t count = 0;
    for (size_t k = 0; k < node->n_input; k++) {
        const bool last = count == 0 && k + 1 == node->n_input;
        if (last || !adds_nothing(reader, node, k)) {
            node->input[count++] = node->input[k];
        }
    }
    node->n_input = count;
}

/* Notes what a node of constants computes; lists of whole numbers as such. */
static const graft_model_weight *note_known(graft_onnx_reader *reader, const Onnx__NodeProto *node,
                                            const graft_onnx_plan *plan)
{
    const graft_model_weight *known = graft_onnx_fold_constant(reader, node, plan);
    if (known == NULL && plan->refusal != NULL && graft_onnx_is_to_run(reader)) {
        known = graft_onnx_without_elements(reader, node);
    }
    graft_onnx_entry *entry = graft_onnx_entry_named(reader->onnx, node->output[0]);
    if (known != NULL && entry != NULL) {
        entry->known = known;
        for (size_t k = 0; k < node->n_input; k++) {
            const graft_onnx_entry *in = graft_onnx_input(reader->onnx, node, k);
            entry->of_data = entry->of_data || (in != NULL && in->of_data);
        }
        (void)graft_onnx_ints_of_entry(reader, entry);
    }
    return known;
}

graft_status graft_onnx_build_node(graft_onnx_reader *reader, uint32_t index)
{
    GRAFT_SCOPED(reader->env->scratch);
    static const char open[] = "it depends on open sizes";
    Onnx__NodeProto *node = reader->onnx->proto->graph->node[index];
    graft_onnx_plan plan;
    bool finished = false;
    bool is_bound = reader->bound != NULL && reader->bound[index];
    if (graft_onnx_is_to_run(reader) && is_known_domain(reader->onnx, node) &&
        graft_onnx_is(node, "Concat")) {
        drop_nothing(reader, node);
    }
    if (graft_onnx_is_staged(reader)) {
        GRAFT_PASS(graft_onnx_stage_node(reader, index, &finished));
        if (finished) {
            return GRAFT_OK;
        }
    }
    if (node->n_output > 0 && graft_onnx_comes_apart(reader, node)) {
        const char *why = NULL;
        GRAFT_PASS(graft_onnx_take_apart(reader, node, &why));
        reader->has_left_parts = reader->has_left_parts || why != NULL;
        return why == NULL ? GRAFT_OK : add_opaque(reader, index, NULL, why);
    }
    if (!is_known_domain(reader->onnx, node) || node->n_output == 0) {
        return add_opaque(reader, index, NULL, why_unknown(reader->onnx, node));
    }
    if (graft_onnx_is(node, "Constant")) {
        GRAFT_PASS(read_constant(reader, index, &finished));
    }
    if (finished) {
        return is_bound ? add_opaque(reader, index, NULL, open) : GRAFT_OK;
    }
    if (graft_onnx_is_to_run(reader) && graft_onnx_split_known(reader, index)) {
        return GRAFT_OK;
    }
    graft_onnx_plan_node(reader, node, &plan);
    check_outputs(&plan);
    const bool known = note_known(reader, node, &plan) != NULL;
    const graft_onnx_entry *made = graft_onnx_entry_named(reader->onnx, node->output[0]);
    const bool of_data = made != NULL && made->of_data;
    if ((plan.refusal != NULL || of_data) && known && !is_bound) {
        return GRAFT_OK;
    }
    if (plan.refusal != NULL || is_bound) {
        return add_opaque(reader, index, &plan,
                          plan.refusal == NULL || known ? open : plan.refusal);
    }
    GRAFT_PASS(carry_out_plan(reader, index, &plan));
    pass_through_identity(reader, node);
    return GRAFT_OK;
}

/* The type of most weights and inputs that are real, binary32 among equals. Nodes of others are
 * understood all the same, but for those that need constants made for them. */
static uint8_t find_main_type(graft_onnx_reader *reader)
{
    static const uint8_t types[] = {GRAFT_DTYPE_F32, GRAFT_DTYPE_F16, GRAFT_DTYPE_BF16};
    uint32_t counts[UINT8_MAX + 1] = {0};
    uint32_t most = 0;
    for (uint32_t w = 0; w < reader->weight_count; w++) {
        counts[reader->weights[w].shape.dtype]++;
    }
    for (uint32_t i = 0; i < reader->model->input_count; i++) {
        counts[reader->model->inputs[i].shape.dtype]++;
    }
    for (uint32_t i = 0; i < reader->onnx->node_count; i++) {
        const Onnx__TensorProto *tensor =
            constant_tensor(reader, reader->onnx->proto->graph->node[i]);
        counts[tensor == NULL ? 0 : graft_onnx_dtype(reader, tensor->data_type)]++;
    }
    for (uint32_t i = 1; i < sizeof(types); i++) {
        most = counts[types[i]] > counts[types[most]] ? i : most;
    }
    return types[most];
}

static graft_status build_inputs(graft_onnx_reader *reader)
{
    for (uint32_t i = 0; i < reader->onnx->entry_count; i++) {
        graft_onnx_entry *entry = &reader->onnx->entries[i];
        if (entry->kind == GRAFT_ONNX_INPUT && entry->known == NULL) { /* It has elements. */
            GRAFT_PASS_IN(reader->env,
                          graft_graph_add_input(&reader->model->graph,
                                                &reader->ports[entry->index].shape, entry->index,
                                                &entry->value),
                          "while adding the input '%s'", entry->name);
        }
    }
    return GRAFT_OK;
}

static graft_status build_outputs(graft_onnx_reader *reader)
{
    graft_model *model = reader->model;
    const Onnx__GraphProto *graph = reader->onnx->proto->graph;
    const bool staged = graft_onnx_is_staged(reader);
    const size_t most = graph->n_output + (staged ? reader->onnx->entry_count : 0);
    const char **names = GRAFT_NEW(reader->arena, const char *, most);
    uint32_t count = 0;
    for (size_t i = 0; i < graph->n_output && !staged; i++) {
        names[count++] = graph->output[i]->name;
    }
    if (staged) {
        graft_onnx_cut(reader, names, &count);
    }
    graft_model_port *ports = GRAFT_NEW(reader->arena, graft_model_port, count);
    for (uint32_t i = 0; i < count; i++) {
        const char *name = text_or_empty(names[i]);
        graft_onnx_entry *entry = graft_onnx_entry_named(reader->onnx, name);
        graft_index value = GRAFT_NONE;
        GRAFT_RETURN_IF(entry == NULL, GRAFT_FAIL(reader->env, GRAFT_BAD_INPUT,
                                                  "%s: output %u is '%s', which nothing produces",
                                                  model->file, i, name));
        GRAFT_PASS(value_of_entry(reader, entry, &value));
        GRAFT_PASS_IN(reader->env, graft_graph_add_output(&model->graph, value),
                      "while adding the output '%s'", name);
        ports[i] = (graft_model_port){.name = name, .shape = model->graph.values[value].shape};
        ports[i].dtype = graft_onnx_declared_dtype(entry->type, ports[i].shape.dtype);
    }
    model->outputs = ports;
    model->output_count = count;
    return GRAFT_OK;
}

graft_status graft_onnx_build(graft_onnx_reader *reader)
{
    GRAFT_SCOPED(reader->env->scratch);
    graft_model *model = reader->model;
    graft_limits limits = largest_limits(reader);
    graft_graph roomy;
    GRAFT_PASS(new_graph(reader, reader->env->scratch, &limits, &model->graph));
    model->graph.dtype = find_main_type(reader);
    GRAFT_PASS(build_inputs(reader));
    const uint32_t count = reader->onnx->node_count; /* Some come apart in more. */
    for (uint32_t i = 0; i < count; i++) {
        GRAFT_PASS(graft_onnx_build_node(reader, reader->onnx->order[i]));
    }
    GRAFT_PASS(build_outputs(reader));
    if (reader->has_left_parts) {
        graft_graph_remove_dead(&model->graph);
    }
    limits = limits_with_room(&model->graph);
    GRAFT_PASS(new_graph(reader, reader->arena, &limits, &roomy));
    GRAFT_PASS_IN(reader->env, graft_graph_copy(&roomy, &model->graph), "while copying the graph");
    model->graph = roomy;
    for (graft_index v = 0; v < roomy.value_end; v++) {
        model->has_halves = model->has_halves || graft_half_is(roomy.values[v].shape.dtype);
    }
    if (model->opaque_count > 0) {
        graft_log(reader->env, 1, "%s: %u of %u nodes are opaque and stay as they are", model->file,
                  model->opaque_count, reader->onnx->node_count);
        log_opaque_kinds(reader);
    }
    return GRAFT_OK;
}

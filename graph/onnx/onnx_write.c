/* onnx_write.c - a graph becomes an ONNX message (see onnx_write.h).
 *
 * Names. A value keeps the name that the file gave it. Two things take precedence: the name of a
 * model output goes to the value that the output now is, and a name that a subgraph reads from
 * outside stays with what it stands for. Where one value would need two names an Identity node
 * gives the second. New names begin with "graft_" and are not in the file already. */
#include "graph/onnx/onnx_write.h"
#include "graph/base/log.h"

#include <inttypes.h>
#include <string.h>

/* IR versions before this one list every initializer among the inputs. */
enum { IR_FREE_INITIALIZERS = 4 };

/* ---------------------------------------------------------------------------------- names */

static bool take_name(graft_onnx_writer *writer, const char *name)
{
    return graft_names_add(writer->taken, name, 0);
}

const char *graft_onnx_fresh_name(graft_onnx_writer *writer, const char *hint)
{
    static const char prefix[] = "graft_";
    const char *stem =
        strncmp(hint, prefix, sizeof(prefix) - 1) == 0 ? hint + sizeof(prefix) - 1 : hint;
    for (;;) {
        const char *name =
            graft_arena_printf(writer->arena, "%s%s_%" PRIu32, prefix, stem, writer->fresh_count++);
        if (graft_names_find(writer->model->onnx->names, name) == GRAFT_NONE &&
            graft_names_find(writer->model->onnx->inner, name) == GRAFT_NONE &&
            take_name(writer, name)) {
            return name;
        }
    }
}

static void push_proto(graft_onnx_writer *writer, Onnx__NodeProto *node)
{
    GRAFT_PUSH(writer->arena, writer->nodes, writer->node_count, writer->node_capacity, 64) = node;
}

/* A weight that a Constant node of the file gave comes from that node again, which is written
 * before its first reader. */
static void push_constant(graft_onnx_writer *writer, uint32_t weight, const char *name)
{
    const graft_onnx *onnx = writer->model->onnx;
    const graft_onnx_entry *entry =
        graft_onnx_entry_named(onnx, writer->model->weights[weight].name);
    if (entry == NULL || entry->kind != GRAFT_ONNX_COMPUTED || entry->weight != weight) {
        return;
    }
    const Onnx__NodeProto *node = onnx->proto->graph->node[entry->index];
    if (graft_onnx_is(node, "Constant")) {
        Onnx__NodeProto *copy = GRAFT_COPY(writer->arena, node, 1);
        copy->output = GRAFT_NEW(writer->arena, char *, 1);
        copy->output[0] = graft_borrow(name);
        push_proto(writer, copy);
        writer->weight_is_node[weight] = true;
    }
}

/* Weights are named and marked as read at once. */
static const char *name_of_weight(graft_onnx_writer *writer, uint32_t weight)
{
    if (writer->weight_names[weight] == NULL) {
        const char *name = writer->model->weights[weight].name;
        writer->weight_names[weight] =
            name != NULL && take_name(writer, name)
                ? name
                : graft_onnx_fresh_name(writer, name == NULL ? "weight" : name);
        push_constant(writer, weight, writer->weight_names[weight]);
    }
    return writer->weight_names[weight];
}

/* The value that is read in place of one: mostly itself. */
static graft_index value_instead(const graft_onnx_writer *writer, graft_index value)
{
    return writer->instead == NULL ? value : writer->instead[value];
}

static void push_extra(graft_onnx_writer *writer, Onnx__TensorProto *tensor)
{
    GRAFT_PUSH(writer->arena, writer->extra, writer->extra_count, writer->extra_capacity, 32) =
        tensor;
}

static void note_misfit(graft_onnx_writer *writer, const char *name, const graft_shape *shape)
{
    if (writer->misfit == NULL) {
        writer->misfit = name;
        writer->misfit_type = shape->dtype;
    }
}

/* A tensor of numbers that are binary32 here; notes when they do not fit into the type. */
static Onnx__TensorProto *make_weight(graft_onnx_writer *writer, const char *name,
                                      const graft_shape *shape, const void *data)
{
    bool fits = true;
    Onnx__TensorProto *tensor = graft_onnx_make_weight(writer->arena, name, shape, data, &fits);
    if (!fits) {
        note_misfit(writer, name, shape);
    }
    return tensor;
}

/* An initializer with what the weight program computed for a const value. */
static void store_folded(graft_onnx_writer *writer, graft_index value, const char *name)
{
    const graft_value *v = &writer->graph->values[value];
    const graft_node *node = &writer->graph->nodes[v->node];
    const float *data = graft_weights_data(&writer->weights, value);
    const bool is_made = node->source == GRAFT_NONE && node->input_count > 0;
    if (is_made && graft_half_is(v->shape.dtype) &&
        !graft_half_keeps(v->shape.dtype, data, (size_t)graft_shape_elements(&v->shape),
                          writer->weights.divides[value])) {
        note_misfit(writer, name, &v->shape);
    }
    push_extra(writer, make_weight(writer, name, &v->shape, data));
}

/* The name of a weight or of a folded value that is stored already, where it shares the data of
 * `value`; or NULL. */
static const char *name_of_twin(graft_onnx_writer *writer, graft_index value)
{
    const graft_graph *graph = writer->graph;
    const float *data = graft_weights_data(&writer->weights, value);
    for (graft_index v = 0; v < graph->value_end && data != NULL; v++) {
        const bool is_weight = graph->values[v].kind == GRAFT_VALUE_WEIGHT;
        if (graft_weights_data(&writer->weights, v) != data ||
            !graft_shape_equal(&graph->values[v].shape, &graph->values[value].shape)) {
            continue;
        }
        if (is_weight || (writer->value_names[v] != NULL && graft_onnx_is_folded(writer, v))) {
            return is_weight ? name_of_weight(writer, graph->values[v].source)
                             : writer->value_names[v];
        }
    }
    return NULL;
}

const char *graft_onnx_value_name(graft_onnx_writer *writer, graft_index value)
{
    value = value_instead(writer, value);
    const graft_value *v = &writer->graph->values[value];
    if (v->kind == GRAFT_VALUE_WEIGHT) {
        return name_of_weight(writer, v->source);
    }
    if (writer->value_names[value] == NULL && graft_onnx_is_folded(writer, value)) {
        writer->value_names[value] = name_of_twin(writer, value);
    }
    if (writer->value_names[value] == NULL) {
        const char *name = graft_model_value_name(writer->model, writer->graph, value);
        const char *hint = name;
        if (hint == NULL) {
            const graft_op_info *op = graft_op(writer->graph->nodes[v->node].op);
            hint = op == NULL ? "value" : op->name;
        }
        writer->value_names[value] =
            name != NULL && take_name(writer, name) ? name : graft_onnx_fresh_name(writer, hint);
        if (graft_onnx_is_folded(writer, value)) {
            store_folded(writer, value, writer->value_names[value]);
        }
    }
    return writer->value_names[value];
}

/* ------------------------------------------------------------------- nodes, initializers */

Onnx__NodeProto *graft_onnx_push_node(graft_onnx_writer *writer, const char *op_type,
                                      const char *const *inputs, size_t input_count,
                                      const char *const *outputs, size_t output_count)
{
    Onnx__NodeProto *node =
        graft_onnx_make_node(writer->arena, op_type, inputs, input_count, outputs, output_count);
    node->name = node->output[0];
    push_proto(writer, node);
    return node;
}

bool graft_onnx_tensors_equal(const Onnx__TensorProto *a, const Onnx__TensorProto *b)
{
    return a->data_type == b->data_type && a->n_dims == b->n_dims &&
           a->raw_data.len == b->raw_data.len &&
           memcmp(a->dims, b->dims, a->n_dims * sizeof(a->dims[0])) == 0 &&
           (a->raw_data.len == 0 ||
            memcmp(a->raw_data.data, b->raw_data.data, a->raw_data.len) == 0);
}

static const char *push_shared(graft_onnx_writer *writer, const char *hint,
                               Onnx__TensorProto *tensor)
{
    for (size_t i = 0; i < writer->extra_count; i++) {
        if (graft_onnx_tensors_equal(writer->extra[i], tensor)) {
            return writer->extra[i]->name;
        }
    }
    tensor->name = graft_borrow(graft_onnx_fresh_name(writer, hint));
    push_extra(writer, tensor);
    return tensor->name;
}

const char *graft_onnx_push_floats(graft_onnx_writer *writer, const char *hint, const float *data,
                                   const graft_shape *shape)
{
    const size_t count = (size_t)graft_shape_elements(shape);
    float *copy = GRAFT_COPY(writer->arena, data, count);
    return push_shared(writer, hint, make_weight(writer, hint, shape, copy));
}

const char *graft_onnx_push_byte(graft_onnx_writer *writer, const char *hint, uint8_t dtype,
                                 int32_t value)
{
    uint8_t *byte = GRAFT_NEW(writer->arena, uint8_t, 1);
    *byte = (uint8_t)value;
    return push_shared(writer, hint,
                       graft_onnx_make_tensor(writer->arena, NULL, dtype, NULL, 0, byte));
}

const char *graft_onnx_push_ints(graft_onnx_writer *writer, const char *hint, const int64_t *items,
                                 size_t count)
{
    int64_t size = (int64_t)count;
    int64_t *copy = GRAFT_COPY(writer->arena, items, count);
    return push_shared(
        writer, hint, graft_onnx_make_tensor(writer->arena, NULL, GRAFT_DTYPE_I64, &size, 1, copy));
}

/* ----------------------------------------------------------------- original nodes, edited */

/* The name for an input that no part reads: a weight, maybe behind Identity nodes, or numbers that
 * were worked out while reading. */
static const char *name_of_setting(graft_onnx_writer *writer, graft_onnx_entry *entry)
{
    if (entry->weight != GRAFT_NONE) {
        return name_of_weight(writer, entry->weight);
    }
    if (entry->known == NULL) {
        return entry->name; /* Not reached: planners read nothing else. */
    }
    bool fits = true; /* As it did when it was worked out. */
    return push_shared(writer, entry->name,
                       graft_onnx_make_weight(writer->arena, NULL, &entry->known->shape,
                                              entry->known->data, &fits));
}

/* The value that input `k` of an intact group reads now; GRAFT_NONE when no part reads it. */
static graft_index value_of_input(const graft_onnx_writer *writer, const graft_onnx_group *group,
                                  size_t k)
{
    for (uint32_t p = 0; p < group->part_count; p++) {
        graft_index n = writer->node_of_record[group->first_record + p];
        for (uint32_t i = 0; n != GRAFT_NONE && i < writer->graph->nodes[n].input_count; i++) {
            const graft_onnx_operand *operand = &group->parts[p].inputs[i];
            if (operand->kind == GRAFT_ONNX_OPERAND_INPUT && operand->index == k) {
                return graft_node_input(writer->graph, n, i);
            }
        }
    }
    return GRAFT_NONE;
}

static const char *name_of_input(graft_onnx_writer *writer, uint32_t index, size_t k)
{
    const graft_onnx *onnx = writer->model->onnx;
    const graft_onnx_group *group = &onnx->groups[index];
    const Onnx__NodeProto *node = onnx->proto->graph->node[index];
    graft_onnx_entry *entry = graft_onnx_input(onnx, node, k);
    if (entry == NULL) {
        return "";
    }
    if (group->is_opaque) {
        graft_index n = writer->node_of_record[group->first_record];
        return graft_onnx_value_name(writer, graft_node_input(writer->graph, n, (uint32_t)k));
    }
    graft_index value = value_of_input(writer, group, k);
    return value == GRAFT_NONE ? name_of_setting(writer, entry)
                               : graft_onnx_value_name(writer, value);
}

static const char *name_of_output(graft_onnx_writer *writer, uint32_t index, size_t k)
{
    const graft_onnx_group *group = &writer->model->onnx->groups[index];
    const char *name = writer->model->onnx->proto->graph->node[index]->output[k];
    graft_index n = GRAFT_NONE;
    uint32_t slot = (uint32_t)k;
    if (name[0] == '\0') {
        return name;
    }
    if (group->is_opaque) {
        n = writer->node_of_record[group->first_record];
    } else if (group->outputs[k].kind == GRAFT_ONNX_OPERAND_PART) {
        n = writer->node_of_record[group->first_record + group->outputs[k].index];
        slot = group->outputs[k].slot;
    }
    if (n == GRAFT_NONE) { /* It was never computed or its part is gone: nothing reads it. */
        return take_name(writer, name) ? name : graft_onnx_fresh_name(writer, name);
    }
    return graft_onnx_value_name(writer, graft_node_output(writer->graph, n, slot));
}

/* Subgraphs name what they read from outside: a value that goes by another name now gets that one
 * back, once. */
static void restore_captured(graft_onnx_writer *writer, uint32_t index)
{
    const graft_onnx *onnx = writer->model->onnx;
    const graft_onnx_group *group = &onnx->groups[index];
    size_t first = onnx->proto->graph->node[index]->n_input;
    graft_index n = writer->node_of_record[group->first_record];
    for (uint32_t k = 0; k < group->captured_count; k++) {
        const char *name = onnx->entries[group->captured[k]].name;
        const char *now =
            graft_onnx_value_name(writer, graft_node_input(writer->graph, n, (uint32_t)first + k));
        if (strcmp(now, name) != 0 && graft_names_add(writer->restored, name, 0)) {
            (void)graft_onnx_push_node(writer, "Identity", &now, 1, &name, 1);
        }
    }
}

static void emit_original(graft_onnx_writer *writer, uint32_t index)
{
    const Onnx__NodeProto *node = writer->model->onnx->proto->graph->node[index];
    Onnx__NodeProto *copy = GRAFT_COPY(writer->arena, node, 1);
    copy->input = GRAFT_NEW(writer->arena, char *, node->n_input);
    copy->output = GRAFT_NEW(writer->arena, char *, node->n_output);
    for (size_t k = 0; k < node->n_input; k++) {
        copy->input[k] = graft_borrow(name_of_input(writer, index, k));
    }
    if (writer->model->onnx->groups[index].is_opaque) {
        restore_captured(writer, index);
    }
    for (size_t k = 0; k < node->n_output; k++) {
        copy->output[k] = graft_borrow(name_of_output(writer, index, k));
    }
    push_proto(writer, copy);
}

/* -------------------------------------------------------------------- names given first */

static void name_inputs(graft_onnx_writer *writer)
{
    for (uint32_t i = 0; i < writer->model->input_count; i++) {
        (void)take_name(writer, writer->model->inputs[i].name);
    }
    for (graft_index v = 0; v < writer->graph->value_end; v++) {
        const graft_value *value = &writer->graph->values[v];
        if (value->kind == GRAFT_VALUE_INPUT) {
            writer->value_names[v] = writer->model->inputs[value->source].name;
        }
    }
}

/* Gives `name` to a value if it can have it: it is computed and has no name yet, or it is a weight
 * or input whose own name this is. False: the name is kept free for an Identity node. */
static bool give_name(graft_onnx_writer *writer, graft_index value, const char *name)
{
    value = value_instead(writer, value);
    const graft_value *v = &writer->graph->values[value];
    if (v->kind == GRAFT_VALUE_WEIGHT) {
        const char *own = writer->model->weights[v->source].name;
        return own != NULL && strcmp(own, name) == 0 &&
               strcmp(name_of_weight(writer, v->source), name) == 0;
    }
    if (v->kind == GRAFT_VALUE_COMPUTED && !graft_onnx_is_folded(writer, value) &&
        writer->value_names[value] == NULL && take_name(writer, name)) {
        writer->value_names[value] = name;
    }
    return writer->value_names[value] != NULL && strcmp(writer->value_names[value], name) == 0;
}

/* Whether an output is listed once more. */
static bool is_listed_before(const graft_onnx_writer *writer, uint32_t i)
{
    const graft_model_port *outputs = writer->model->outputs;
    bool found = false;
    for (uint32_t j = 0; j < i && !found; j++) {
        found = writer->graph->outputs[j] == writer->graph->outputs[i] &&
                strcmp(outputs[j].name, outputs[i].name) == 0;
    }
    return found;
}

static graft_status name_outputs(graft_onnx_writer *writer)
{
    for (uint32_t i = 0; i < writer->model->output_count; i++) {
        const char *name = writer->model->outputs[i].name;
        if (!is_listed_before(writer, i) && !give_name(writer, writer->graph->outputs[i], name) &&
            !take_name(writer, name)) {
            return GRAFT_FAIL(writer->env, GRAFT_INTERNAL,
                              "%s: the output '%s' has the name of another value",
                              writer->model->file, name);
        }
    }
    return GRAFT_OK;
}

/* Whether an output has this name for the same value: one Identity gives it to both. */
static bool is_output_name(const graft_onnx_writer *writer, graft_index value, const char *name)
{
    bool found = false;
    for (uint32_t i = 0; i < writer->model->output_count && !found; i++) {
        found = strcmp(writer->model->outputs[i].name, name) == 0 &&
                value_instead(writer, writer->graph->outputs[i]) == value;
    }
    return found;
}

static graft_status name_captured(graft_onnx_writer *writer)
{
    const graft_onnx *onnx = writer->model->onnx;
    graft_names *readers = graft_names_new(writer->arena);
    for (uint32_t index = 0; index < onnx->node_count; index++) {
        const graft_onnx_group *group = &onnx->groups[index];
        if (!group->is_opaque || !writer->intact[index]) {
            continue;
        }
        size_t first = onnx->proto->graph->node[index]->n_input;
        graft_index n = writer->node_of_record[group->first_record];
        for (uint32_t k = 0; k < group->captured_count; k++) {
            const char *name = onnx->entries[group->captured[k]].name;
            graft_index value =
                value_instead(writer, graft_node_input(writer->graph, n, (uint32_t)first + k));
            bool known = !graft_names_add(readers, name, value);
            GRAFT_RETURN_IF((known && graft_names_find(readers, name) != value) ||
                                (!known && !give_name(writer, value, name) &&
                                 !is_output_name(writer, value, name) && !take_name(writer, name)),
                            GRAFT_FAIL(writer->env, GRAFT_INTERNAL,
                                       "%s: subgraphs and others mean different values by '%s'",
                                       writer->model->file, name));
        }
    }
    return GRAFT_OK;
}

/* Outputs whose value goes by another name. */
static void emit_output_names(graft_onnx_writer *writer)
{
    for (uint32_t i = 0; i < writer->model->output_count; i++) {
        const char *name = writer->model->outputs[i].name;
        const char *now = graft_onnx_value_name(writer, writer->graph->outputs[i]);
        if (strcmp(now, name) != 0 && graft_names_add(writer->restored, name, 0)) {
            (void)graft_onnx_push_node(writer, "Identity", &now, 1, &name, 1);
        }
    }
}

/* Nodes that are new are called as their outputs are. Runtimes refuse two nodes of one name, so
 * where a node of the file has that name already they get another one. */
static void name_new_nodes(graft_onnx_writer *writer)
{
    graft_names *names = graft_names_new(writer->arena);
    for (int round = 0; round < 2; round++) { /* Those of the file first. */
        for (uint32_t i = 0; i < writer->node_count; i++) {
            Onnx__NodeProto *node = writer->nodes[i];
            const bool is_new = node->n_output > 0 && node->name == node->output[0];
            const char *name = text_or_empty(node->name);
            bool taken = is_new == (round == 1) && !graft_names_add(names, name, 0);
            while (is_new && taken) {
                name = graft_onnx_fresh_name(writer, node->output[0]);
                taken = !graft_names_add(names, name, 0);
                node->name = graft_borrow(name);
            }
        }
    }
}

/* ------------------------------------------------------------------------ the two ways */

static void find_staying(graft_onnx_writer *writer)
{
    const graft_onnx *onnx = writer->model->onnx;
    for (uint32_t u = 0; u < writer->unit_count; u++) {
        const uint32_t index = writer->units[u].onnx_node;
        if (writer->dropped[u] || index == GRAFT_NONE) {
            continue;
        }
        const Onnx__NodeProto *node = onnx->proto->graph->node[index];
        for (size_t k = 0; k < node->n_input; k++) {
            const graft_onnx_entry *entry = graft_onnx_input(onnx, node, k);
            if (entry != NULL && entry->weight != GRAFT_NONE) {
                writer->weight_stays[entry->weight] = true;
            }
        }
    }
}

/* A changed graph: units in their order. */
static graft_status emit_units(graft_onnx_writer *writer, const uint32_t *order)
{
    find_staying(writer);
    name_inputs(writer);
    GRAFT_PASS(name_outputs(writer));
    GRAFT_PASS(name_captured(writer));
    for (uint32_t i = 0; i < writer->unit_count; i++) {
        const graft_onnx_unit *unit = &writer->units[order[i]];
        if (writer->dropped[order[i]]) {
            continue;
        }
        if (unit->onnx_node != GRAFT_NONE) {
            emit_original(writer, unit->onnx_node);
        } else {
            GRAFT_PASS(graft_onnx_emit_unit(writer, unit));
        }
    }
    emit_output_names(writer);
    name_new_nodes(writer);
    return GRAFT_OK;
}

static void read_name(graft_onnx_writer *writer, const char *name)
{
    const graft_onnx_entry *entry = graft_onnx_entry_named(writer->model->onnx, name);
    if (entry != NULL) {
        (void)take_name(writer, name);
        if (entry->kind == GRAFT_ONNX_WEIGHT && writer->weight_names[entry->weight] == NULL) {
            writer->weight_names[entry->weight] = name;
        }
    }
}

static bool is_read(const graft_onnx_writer *writer, const Onnx__NodeProto *node)
{
    for (size_t k = 0; k < node->n_output; k++) {
        if (node->output[k][0] != '\0' &&
            graft_names_find(writer->taken, node->output[k]) != GRAFT_NONE) {
            return true;
        }
    }
    return false;
}

/* An unchanged graph: the nodes of the file that the outputs need, sorted. */
static void copy_nodes(graft_onnx_writer *writer)
{
    const graft_onnx *onnx = writer->model->onnx;
    const Onnx__GraphProto *graph = onnx->proto->graph;
    bool *keep = GRAFT_NEW(writer->arena, bool, onnx->node_count);
    for (size_t i = 0; i < graph->n_output; i++) {
        read_name(writer, graph->output[i]->name);
    }
    for (uint32_t w = 0; onnx->keep_all && w < writer->model->weight_count; w++) {
        read_name(writer, text_or_empty(writer->model->weights[w].name));
    }
    for (uint32_t i = onnx->node_count; i-- > 0;) {
        uint32_t index = onnx->order[i];
        const Onnx__NodeProto *node = graph->node[index];
        keep[index] = onnx->keep_all || is_read(writer, node);
        for (size_t k = 0; keep[index] && k < node->n_input; k++) {
            read_name(writer, node->input[k]);
        }
        for (uint32_t k = 0; keep[index] && k < onnx->groups[index].captured_count; k++) {
            read_name(writer, onnx->entries[onnx->groups[index].captured[k]].name);
        }
    }
    for (uint32_t i = 0; i < onnx->node_count; i++) {
        Onnx__NodeProto *node = graph->node[onnx->order[i]];
        if (!keep[onnx->order[i]]) {
            continue;
        }
        push_proto(writer, node);
        for (size_t k = 0; k < node->n_output; k++) {
            (void)take_name(writer, node->output[k]);
        }
    }
}

/* Whether outputs need nodes of the file of which all is known beforehand. */
static bool computes_constants(const graft_onnx_writer *writer)
{
    const graft_onnx *onnx = writer->model->onnx;
    const Onnx__GraphProto *graph = onnx->proto->graph;
    graft_names *needed = graft_names_new(writer->arena);
    bool found = false;
    for (size_t i = 0; i < graph->n_output; i++) {
        (void)graft_names_add(needed, text_or_empty(graph->output[i]->name), 0);
    }
    for (uint32_t i = onnx->node_count; i-- > 0 && !found;) {
        uint32_t index = onnx->order[i];
        const Onnx__NodeProto *node = graph->node[index];
        bool is_needed = false;
        for (size_t k = 0; k < node->n_output; k++) {
            is_needed = is_needed || graft_names_find(needed, node->output[k]) != GRAFT_NONE;
        }
        for (size_t k = 0; is_needed && k < node->n_input; k++) {
            (void)graft_names_add(needed, node->input[k], 0);
        }
        for (uint32_t k = 0; is_needed && k < onnx->groups[index].captured_count; k++) {
            (void)graft_names_add(needed, onnx->entries[onnx->groups[index].captured[k]].name, 0);
        }
        found = is_needed && graft_onnx_is_known(writer, index);
    }
    return found;
}

/* ---------------------------------------------------------------- the rest of the message */

/* Annotations of tensors that are written; what they name is kept. */
static void keep_annotations(graft_onnx_writer *writer, Onnx__GraphProto *graph)
{
    const Onnx__GraphProto *from = writer->model->onnx->proto->graph;
    graph->quantization_annotation =
        GRAFT_NEW(writer->arena, Onnx__TensorAnnotation *, from->n_quantization_annotation);
    graph->n_quantization_annotation = 0;
    for (size_t i = 0; i < from->n_quantization_annotation; i++) {
        Onnx__TensorAnnotation *annotation = from->quantization_annotation[i];
        if (graft_names_find(writer->taken, text_or_empty(annotation->tensor_name)) == GRAFT_NONE) {
            continue;
        }
        graph->quantization_annotation[graph->n_quantization_annotation++] = annotation;
        for (size_t k = 0; k < annotation->n_quant_parameter_tensor_names; k++) {
            read_name(writer, text_or_empty(annotation->quant_parameter_tensor_names[k]->value));
        }
    }
}

/* A tensor under the name that its readers use. */
static Onnx__TensorProto *rename_tensor(graft_onnx_writer *writer, const Onnx__TensorProto *tensor,
                                        const char *name)
{
    Onnx__TensorProto *copy = GRAFT_COPY(writer->arena, tensor, 1);
    copy->name = graft_borrow(name);
    return copy;
}

static Onnx__TensorProto *tensor_of_weight(graft_onnx_writer *writer,
                                           const graft_model_weight *weight, const char *name)
{
    if (weight->tensor != NULL) {
        return rename_tensor(writer, weight->tensor, name);
    }
    return make_weight(writer, name, &weight->shape, weight->data);
}

/* Sparse weights keep their list; one that lost its name to an output is renamed inside. */
static Onnx__SparseTensorProto *sparse_of_weight(graft_onnx_writer *writer,
                                                 const graft_model_weight *weight, const char *name)
{
    Onnx__SparseTensorProto *copy = GRAFT_COPY(writer->arena, weight->sparse, 1);
    copy->values = rename_tensor(writer, weight->sparse->values, name);
    return copy;
}

/* Weights that something reads, in the order of the model, then the values of inputs that have one,
 * then the new ones. */
static void list_initializers(graft_onnx_writer *writer, Onnx__GraphProto *graph)
{
    const graft_model *model = writer->model;
    const Onnx__GraphProto *from = model->onnx->proto->graph;
    const graft_names *settable = model->onnx->settable;
    graph->n_initializer = 0;
    graph->n_sparse_initializer = 0;
    graph->initializer = GRAFT_NEW(writer->arena, Onnx__TensorProto *,
                                   model->weight_count + writer->extra_count + from->n_initializer);
    graph->sparse_initializer = GRAFT_NEW(writer->arena, Onnx__SparseTensorProto *,
                                          model->weight_count + from->n_sparse_initializer);
    for (uint32_t w = 0; w < model->weight_count; w++) {
        const graft_model_weight *weight = &model->weights[w];
        const char *name = writer->weight_names[w];
        if (name != NULL && weight->sparse != NULL) {
            graph->sparse_initializer[graph->n_sparse_initializer++] =
                sparse_of_weight(writer, weight, name);
        } else if (name != NULL && !writer->weight_is_node[w]) {
            graph->initializer[graph->n_initializer++] = tensor_of_weight(writer, weight, name);
        }
    }
    for (size_t i = 0; settable != NULL && i < from->n_initializer; i++) {
        if (graft_names_find(settable, text_or_empty(from->initializer[i]->name)) != GRAFT_NONE) {
            graph->initializer[graph->n_initializer++] = from->initializer[i];
        }
    }
    for (size_t i = 0; settable != NULL && i < from->n_sparse_initializer; i++) {
        const Onnx__TensorProto *values = from->sparse_initializer[i]->values;
        if (graft_names_find(settable, text_or_empty(values->name)) != GRAFT_NONE) {
            graph->sparse_initializer[graph->n_sparse_initializer++] = from->sparse_initializer[i];
        }
    }
    for (size_t i = 0; i < writer->extra_count; i++) {
        graph->initializer[graph->n_initializer++] = writer->extra[i];
    }
}

/* The default domain's opset becomes the writer's. */
static void raise_opset(graft_onnx_writer *writer, Onnx__ModelProto *proto)
{
    Onnx__OperatorSetIdProto **old = proto->opset_import;
    proto->opset_import =
        GRAFT_NEW(writer->arena, Onnx__OperatorSetIdProto *, proto->n_opset_import);
    for (size_t i = 0; i < proto->n_opset_import; i++) {
        proto->opset_import[i] = old[i];
        if (graft_onnx_is_own_domain(old[i]->domain)) {
            proto->opset_import[i] = GRAFT_COPY(writer->arena, old[i], 1);
            proto->opset_import[i]->has_version = 1;
            proto->opset_import[i]->version = writer->opset;
        }
    }
}

static bool has_free_initializers(const graft_onnx_writer *writer)
{
    for (uint32_t w = 0; w < writer->model->weight_count; w++) {
        const char *name = writer->weight_names[w];
        if (name != NULL && !writer->weight_is_node[w] &&
            !graft_onnx_names_weight(writer->model->onnx, name)) {
            return true;
        }
    }
    return writer->extra_count > 0;
}

/* Before this opset some operators say how they broadcast; what rules make does not. Such models
 * are raised when every node is known, for then each can be generated anew. */
static graft_status choose_opset(graft_onnx_writer *writer)
{
    const graft_onnx *onnx = writer->model->onnx;
    writer->opset = onnx->opset;
    if (onnx->opset >= GRAFT_ONNX_OPSET_WRITE) {
        return GRAFT_OK;
    }
    if (graft_onnx_is_untouched(writer)) {
        writer->simplify = false; /* That is no reason to raise the opset. */
        return GRAFT_OK;
    }
    for (uint32_t i = 0; i < onnx->node_count; i++) {
        if (onnx->groups[i].is_opaque && writer->intact[i]) {
            return GRAFT_FAIL(writer->env, GRAFT_UNSUPPORTED,
                              "%s: opset %d is too old to write a changed graph with nodes that "
                              "Graft does not know; convert the model to opset %d or later first",
                              writer->model->file, (int)onnx->opset, GRAFT_ONNX_OPSET_WRITE);
        }
        writer->intact[i] = false;
    }
    writer->opset = GRAFT_ONNX_OPSET_WRITE;
    return GRAFT_OK;
}

/* No number of the file is an infinity or no number only because it was rewritten. */
static graft_status check_numbers(const graft_onnx_writer *writer)
{
    const graft_index spoilt = writer->weights.spoilt;
    const char *name = writer->misfit;
    const char *what = writer->misfit_type == GRAFT_DTYPE_F16 ? "float16" : "bfloat16";
    if (name == NULL && spoilt != GRAFT_NONE) {
        name = writer->value_names[spoilt] == NULL ? "" : writer->value_names[spoilt];
        what = "binary32";
    }
    return name == NULL ? GRAFT_OK
                        : GRAFT_FAIL(writer->env, GRAFT_CAPACITY,
                                     "%s: the rewritten weight '%s' does not fit into %s",
                                     writer->model->file, name, what);
}

/* Fills `proto` and `graph` (which it points to) with what is to be written. */
static graft_status write_message(graft_onnx_writer *writer, Onnx__ModelProto *proto,
                                  Onnx__GraphProto *graph)
{
    uint32_t *order = NULL;
    graft_onnx_find_intact(writer);
    GRAFT_PASS(choose_opset(writer));
    bool untouched = graft_onnx_is_untouched(writer);
    if (!untouched || writer->simplify) {
        GRAFT_PASS(graft_onnx_form_units(writer, &order));
        untouched = untouched && writer->merged_count == 0 && !computes_constants(writer);
    }
    bool bind = (!untouched || writer->model->is_chosen) && writer->model->size_count > 0 &&
                !writer->model->is_open;
    *proto = *writer->model->onnx->proto;
    *graph = *proto->graph;
    proto->graph = graph;
    if (untouched) {
        name_inputs(writer);
        copy_nodes(writer);
    } else {
        GRAFT_PASS(emit_units(writer, order));
        raise_opset(writer, proto);
    }
    keep_annotations(writer, graph);
    list_initializers(writer, graph);
    GRAFT_PASS(check_numbers(writer));
    if (proto->ir_version < IR_FREE_INITIALIZERS && has_free_initializers(writer)) {
        proto->has_ir_version = 1;
        proto->ir_version = IR_FREE_INITIALIZERS;
    }
    graft_onnx_list_declarations(writer, graph, bind,
                                 untouched || proto->ir_version < IR_FREE_INITIALIZERS);
    graph->n_node = writer->node_count;
    graph->node = writer->nodes;
    if (bind) {
        graft_log(writer->env, 1,
                  "%s: the rewritten graph holds for the bound sizes only and declares them",
                  writer->model->file);
    }
    return GRAFT_OK;
}

/* A writer in env->scratch, before anything is written. */
static graft_status open_writer(graft_env *env, const graft_model *model, const graft_graph *graph,
                                bool simplify, graft_onnx_writer *writer)
{
    size_t bytes = graft_order_bytes(&graph->limits);
    *writer = (graft_onnx_writer){
        .env = env, .arena = env->scratch, .model = model, .graph = graph, .simplify = simplify};
    GRAFT_RETURN_IF(model->is_apart,
                    GRAFT_FAIL(env, GRAFT_UNSUPPORTED,
                               "%s: it was read to be run, not to be written", model->file));
    GRAFT_RETURN_IF(graph->output_count != model->output_count,
                    GRAFT_FAIL(env, GRAFT_INTERNAL, "%s: the graph has %u outputs, the model %u",
                               model->file, graph->output_count, model->output_count));
    if (graft_order_build(&writer->order, graph, graft_arena_alloc(env->scratch, bytes), bytes) !=
        GRAFT_OK) {
        return GRAFT_FAIL(env, GRAFT_INTERNAL, "%s: the graph to write has a cycle", model->file);
    }
    return GRAFT_OK;
}

/* A writer that has found what it would write. */
static graft_status open_units(graft_env *env, const graft_model *model, const graft_graph *graph,
                               graft_onnx_writer *writer)
{
    uint32_t *order = NULL;
    GRAFT_PASS(open_writer(env, model, graph, true, writer));
    writer->opset = model->onnx->opset;
    graft_onnx_find_intact(writer);
    return graft_onnx_form_units(writer, &order);
}

graft_status graft_model_pieces(graft_env *env, graft_arena *arena, const graft_model *model,
                                const graft_graph *graph, const uint32_t **pieces, uint32_t *count)
{
    uint32_t *found = GRAFT_NEW(arena, uint32_t, graph->node_end);
    GRAFT_SCOPED(env->scratch);
    graft_onnx_writer writer;
    GRAFT_PASS(open_units(env, model, graph, &writer));
    memcpy(found, writer.unit_of_node, graph->node_end * sizeof(found[0]));
    *pieces = found;
    *count = writer.unit_count;
    return GRAFT_OK;
}

graft_status graft_model_form_of(graft_env *env, const graft_model *model, const graft_graph *graph,
                                 graft_model_form *form)
{
    GRAFT_SCOPED(env->scratch);
    graft_onnx_writer writer;
    graft_model_form count = {.nodes = 0};
    GRAFT_PASS(open_units(env, model, graph, &writer));
    for (uint32_t u = 0; u < writer.unit_count; u++) {
        const graft_onnx_unit *unit = &writer.units[u];
        if (writer.dropped[u] || graph->nodes[unit->root].is_const) {
            continue;
        }
        uint32_t made = unit->onnx_node == GRAFT_NONE ? graft_onnx_unit_nodes(&writer, unit) : 0;
        count.made += made;
        count.nodes += unit->onnx_node == GRAFT_NONE ? made : 1;
    }
    *form = count;
    return GRAFT_OK;
}

graft_status graft_onnx_make_message(graft_env *env, const graft_model *model,
                                     const graft_graph *graph, bool simplify,
                                     Onnx__ModelProto *proto, Onnx__GraphProto *onnx_graph)
{
    graft_onnx_writer writer;
    GRAFT_PASS(open_writer(env, model, graph, simplify, &writer));
    GRAFT_PASS(graft_model_fold_weights(env, env->scratch, model, graph, &writer.weights));
    writer.value_names = GRAFT_NEW(env->scratch, const char *, graph->value_end);
    writer.weight_names = GRAFT_NEW(env->scratch, const char *, model->weight_count);
    writer.weight_is_node = GRAFT_NEW(env->scratch, bool, model->weight_count);
    writer.weight_stays = GRAFT_NEW(env->scratch, bool, model->weight_count);
    writer.taken = graft_names_new(env->scratch);
    writer.restored = graft_names_new(env->scratch);
    return write_message(&writer, proto, onnx_graph);
}

/* onnx_read.c - an ONNX message becomes a model (see onnx.h for the way it goes).
 *
 * First half: every name of the main graph gets an entry that says what it stands for, nodes are
 * sorted, open sizes are bound. The second half, onnx_build.c, builds the graph. */
#include "graph/base/log.h"
#include "graph/onnx/onnx.h"

#include <assert.h>
#include <string.h>

/* IR_OPSETS: the first version whose models say which operator sets they use. */
enum { NAMES_MOST = 1 << 24, IR_OPSETS = 3, IR_SETTABLE = 4 };

/* ---------------------------------------------------------------------------------- names */

graft_onnx_entry *graft_onnx_entry_named(const graft_onnx *onnx, const char *name)
{
    uint32_t index = graft_names_find(onnx->names, text_or_empty(name));
    return index == GRAFT_NONE ? NULL : &onnx->entries[index];
}

bool graft_onnx_names_weight(const graft_onnx *onnx, const char *name)
{
    const graft_onnx_entry *entry = graft_onnx_entry_named(onnx, name);
    return entry != NULL && entry->kind == GRAFT_ONNX_WEIGHT;
}

graft_onnx_entry *graft_onnx_input(const graft_onnx *onnx, const Onnx__NodeProto *node, size_t k)
{
    return k >= node->n_input ? NULL : graft_onnx_entry_named(onnx, node->input[k]);
}

static graft_status add_entry(graft_onnx_reader *reader, const char *name,
                              graft_onnx_entry_kind kind, size_t index, size_t slot)
{
    graft_onnx *onnx = reader->onnx;
    GRAFT_RETURN_IF(!graft_names_add(onnx->names, name, onnx->entry_count),
                    GRAFT_FAIL(reader->env, GRAFT_BAD_INPUT, "%s: the name '%s' is given twice",
                               reader->model->file, name));
    onnx->entries[onnx->entry_count++] = (graft_onnx_entry){.name = name,
                                                            .index = (uint32_t)index,
                                                            .slot = (uint32_t)slot,
                                                            .kind = (uint8_t)kind,
                                                            .value = GRAFT_NONE,
                                                            .weight = GRAFT_NONE};
    return GRAFT_OK;
}

/* Notes the initializers that stay inputs, of both kinds. */
static graft_status find_settable(graft_onnx_reader *reader, const Onnx__GraphProto *graph)
{
    uint32_t count = 0;
    graft_onnx *onnx = reader->onnx;
    if (reader->options == NULL || !reader->options->settable ||
        onnx->proto->ir_version < IR_SETTABLE) {
        return GRAFT_OK;
    }
    graft_names *inputs = graft_names_new(reader->arena);
    onnx->settable = graft_names_new(reader->arena);
    for (size_t i = 0; i < graph->n_input; i++) {
        (void)graft_names_add(inputs, text_or_empty(graph->input[i]->name), 0);
    }
    for (size_t i = 0; i < graph->n_initializer + graph->n_sparse_initializer; i++) {
        const char *name =
            i < graph->n_initializer
                ? text_or_empty(graph->initializer[i]->name)
                : graft_onnx_sparse_name(graph->sparse_initializer[i - graph->n_initializer]);
        if (graft_names_find(inputs, name) == GRAFT_NONE) {
            continue;
        }
        GRAFT_RETURN_IF(!graft_names_add(onnx->settable, name, (uint32_t)i),
                        GRAFT_FAIL(reader->env, GRAFT_BAD_INPUT, "%s: the name '%s' is given twice",
                                   reader->model->file, name));
        count++;
    }
    if (count > 0 && reader->sample <= 1) {
        graft_log(reader->env, 1,
                  "%s: %u initializers are inputs too, so a caller may set them, and they stay "
                  "inputs; --constants takes them for constants",
                  reader->model->file, count);
    }
    return GRAFT_OK;
}

static bool is_settable(const graft_onnx *onnx, const char *name)
{
    return onnx->settable != NULL && graft_names_find(onnx->settable, name) != GRAFT_NONE;
}

static graft_status name_initializers(graft_onnx_reader *reader, const Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_initializer; i++) {
        const Onnx__TensorProto *tensor = graph->initializer[i];
        graft_model_weight weight = {.name = tensor->name};
        GRAFT_PASS(graft_onnx_weight_of_tensor(reader, tensor, "initializer", &weight));
        GRAFT_RETURN_IF(text_or_empty(tensor->name)[0] == '\0',
                        GRAFT_FAIL(reader->env, GRAFT_BAD_INPUT, "%s: initializer %zu has no name",
                                   reader->model->file, i));
        if (is_settable(reader->onnx, tensor->name)) {
            continue;
        }
        GRAFT_PASS(add_entry(reader, tensor->name, GRAFT_ONNX_WEIGHT, i, 0));
        reader->onnx->entries[reader->onnx->entry_count - 1].weight =
            graft_onnx_add_weight(reader, &weight);
        reader->onnx->entries[reader->onnx->entry_count - 1].spare = weight.data_bytes;
    }
    for (size_t i = 0; i < graph->n_sparse_initializer; i++) {
        const char *name = graft_onnx_sparse_name(graph->sparse_initializer[i]);
        graft_model_weight weight = {.name = name,
                                     .shape = {.rank = GRAFT_RANK_UNKNOWN},
                                     .sparse = graph->sparse_initializer[i]};
        GRAFT_RETURN_IF(name[0] == '\0', GRAFT_FAIL(reader->env, GRAFT_BAD_INPUT,
                                                    "%s: sparse initializer %zu has no name",
                                                    reader->model->file, i));
        if (is_settable(reader->onnx, name)) {
            continue;
        }
        GRAFT_PASS(add_entry(reader, name, GRAFT_ONNX_WEIGHT, i, 0));
        reader->onnx->entries[reader->onnx->entry_count - 1].weight =
            graft_onnx_add_weight(reader, &weight);
    }
    return GRAFT_OK;
}

/* Inputs that are not initializers become ports. */
static graft_status name_inputs(graft_onnx_reader *reader, const Onnx__GraphProto *graph)
{
    graft_model *model = reader->model;
    reader->ports = GRAFT_NEW(reader->arena, graft_model_port, graph->n_input);
    reader->port_capacity = (uint32_t)graph->n_input;
    model->inputs = reader->ports;
    for (size_t i = 0; i < graph->n_input; i++) {
        const char *name = text_or_empty(graph->input[i]->name);
        GRAFT_RETURN_IF(name[0] == '\0', GRAFT_FAIL(reader->env, GRAFT_BAD_INPUT,
                                                    "%s: input %zu has no name", model->file, i));
        if (graft_onnx_names_weight(reader->onnx, name)) {
            continue;
        }
        GRAFT_PASS(add_entry(reader, name, GRAFT_ONNX_INPUT, model->input_count, 0));
        reader->onnx->entries[reader->onnx->entry_count - 1].type = graph->input[i]->type;
        reader->ports[model->input_count++].name = name;
    }
    return GRAFT_OK;
}

static graft_status name_node_outputs(graft_onnx_reader *reader, const Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_node; i++) {
        const Onnx__NodeProto *node = graph->node[i];
        GRAFT_RETURN_IF(node->n_input > UINT16_MAX || node->n_output > UINT16_MAX,
                        GRAFT_FAIL(reader->env, GRAFT_UNSUPPORTED,
                                   "%s: node %zu '%s' (%s) has more than 65535 inputs or outputs",
                                   reader->model->file, i, text_or_empty(node->name),
                                   text_or_empty(node->op_type)));
        for (size_t k = 0; k < node->n_output; k++) {
            if (node->output[k][0] != '\0') {
                GRAFT_PASS_IN(reader->env,
                              add_entry(reader, node->output[k], GRAFT_ONNX_COMPUTED, i, k),
                              "by output %zu of node %zu '%s' (%s)", k, i,
                              text_or_empty(node->name), text_or_empty(node->op_type));
            }
        }
    }
    return GRAFT_OK;
}

static void note_type(const graft_onnx *onnx, const Onnx__ValueInfoProto *info)
{
    graft_onnx_entry *entry = graft_onnx_entry_named(onnx, info->name);
    if (entry != NULL && entry->type == NULL) {
        entry->type = info->type;
    }
}

static graft_status name_everything(graft_onnx_reader *reader)
{
    const Onnx__GraphProto *graph = reader->onnx->proto->graph;
    size_t count = graph->n_input + graph->n_initializer + graph->n_sparse_initializer +
                   (reader->options == NULL ? 0 : reader->options->told_count);
    for (size_t i = 0; i < graph->n_node; i++) {
        count += graph->node[i]->n_output;
    }
    GRAFT_RETURN_IF(count > NAMES_MOST,
                    GRAFT_FAIL(reader->env, GRAFT_UNSUPPORTED, "%s: has more than %d names",
                               reader->model->file, NAMES_MOST));
    reader->onnx->entries = GRAFT_NEW(reader->arena, graft_onnx_entry, count);
    reader->entry_capacity = (uint32_t)count;
    reader->onnx->names = graft_names_new(reader->arena);
    reader->onnx->inner = graft_names_new(reader->arena);
    GRAFT_PASS(find_settable(reader, graph));
    GRAFT_PASS(name_initializers(reader, graph));
    GRAFT_PASS(name_inputs(reader, graph));
    GRAFT_PASS(graft_onnx_name_told(reader));
    GRAFT_PASS(name_node_outputs(reader, graph));
    for (size_t i = 0; i < graph->n_output; i++) {
        graft_onnx_entry *entry = graft_onnx_entry_named(reader->onnx, graph->output[i]->name);
        if (entry != NULL) {
            entry->read_count++;
        }
        note_type(reader->onnx, graph->output[i]);
    }
    for (size_t i = 0; i < graph->n_value_info; i++) {
        note_type(reader->onnx, graph->value_info[i]);
    }
    return GRAFT_OK;
}

uint32_t graft_onnx_add_weight(graft_onnx_reader *reader, const graft_model_weight *weight)
{
    GRAFT_PUSH(reader->arena, reader->weights, reader->weight_count, reader->weight_capacity, 64) =
        *weight;
    return reader->weight_count - 1;
}

/* ---------------------------------------------------------------------------------- order */

/* Every input must be something's name; marks what is read. */
static graft_status check_inputs(graft_onnx_reader *reader, size_t index)
{
    const Onnx__NodeProto *node = reader->onnx->proto->graph->node[index];
    for (size_t k = 0; k < node->n_input; k++) {
        graft_onnx_entry *entry = graft_onnx_input(reader->onnx, node, k);
        if (entry != NULL) {
            entry->read_count++;
        } else if (node->input[k][0] != '\0') {
            return GRAFT_FAIL(reader->env, GRAFT_BAD_INPUT,
                              "%s: node %zu '%s' (%s): input %zu is '%s', which nothing produces",
                              reader->model->file, index, text_or_empty(node->name),
                              text_or_empty(node->op_type), k, node->input[k]);
        }
    }
    return GRAFT_OK;
}

/* Nodes that node `index` waits for, appended to `items`; returns how many. */
static uint32_t list_producers(const graft_onnx *onnx, size_t index, uint32_t *items)
{
    const Onnx__NodeProto *node = onnx->proto->graph->node[index];
    const graft_onnx_group *group = &onnx->groups[index];
    uint32_t count = 0;
    assert(onnx->entries != NULL); /* The node's own outputs are among them. */
    for (size_t k = 0; k < node->n_input; k++) {
        const graft_onnx_entry *entry = graft_onnx_input(onnx, node, k);
        if (entry != NULL && entry->kind == GRAFT_ONNX_COMPUTED) {
            items[count++] = entry->index;
        }
    }
    for (uint32_t k = 0; k < group->captured_count; k++) {
        const graft_onnx_entry *entry = &onnx->entries[group->captured[k]];
        if (entry->kind == GRAFT_ONNX_COMPUTED) {
            items[count++] = entry->index;
        }
    }
    return count;
}

static graft_status sort_nodes(graft_onnx_reader *reader)
{
    GRAFT_SCOPED(reader->env->scratch);
    graft_onnx *onnx = reader->onnx;
    const Onnx__GraphProto *graph = onnx->proto->graph;
    size_t total = 0;
    for (size_t i = 0; i < graph->n_node; i++) {
        GRAFT_PASS(check_inputs(reader, i));
        GRAFT_PASS(graft_onnx_look_into(reader, i));
        total += graph->node[i]->n_input + onnx->groups[i].captured_count;
    }
    uint32_t *first = GRAFT_NEW(reader->env->scratch, uint32_t, graph->n_node + 1);
    uint32_t *items = GRAFT_NEW(reader->env->scratch, uint32_t, total);
    for (size_t i = 0; i < graph->n_node; i++) {
        first[i + 1] = first[i] + list_producers(onnx, i, items + first[i]);
    }
    uint32_t on_cycle = 0;
    if (!graft_onnx_sort(reader->env->scratch, onnx->node_count, first, items, onnx->order,
                         &on_cycle)) {
        const Onnx__NodeProto *node = graph->node[on_cycle];
        return GRAFT_FAIL(reader->env, GRAFT_BAD_INPUT,
                          "%s: node %u '%s' (%s) depends on its own output", reader->model->file,
                          on_cycle, text_or_empty(node->name), text_or_empty(node->op_type));
    }
    return GRAFT_OK;
}

/* --------------------------------------------------------------------------------- shapes */

/* -1: there is none. */
static int32_t look_up(const graft_model_size *sizes, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(sizes[i].name, name) == 0) {
            return sizes[i].value;
        }
    }
    return -1;
}

static int32_t find_size(const graft_onnx_reader *reader, const char *name)
{
    return look_up(reader->sizes, reader->size_count, name);
}

static bool is_fixed(const Onnx__TensorShapeProto__Dimension *dim)
{
    return dim->has_dim_value && dim->dim_value > 0;
}

uint8_t graft_onnx_dtype(const graft_onnx_reader *reader, int64_t type)
{
    const bool known = type > 0 && type <= UINT8_MAX;
    const bool widened = known && graft_onnx_is_to_run(reader) && graft_half_is((uint32_t)type);
    return (uint8_t)(widened ? (int64_t)GRAFT_DTYPE_F32 : known ? type : 0);
}

uint8_t graft_onnx_declared_dtype(const Onnx__TypeProto *type, uint8_t absent)
{
    const int32_t declared =
        type == NULL || type->tensor_type == NULL ? 0 : type->tensor_type->elem_type;
    return declared > 0 && declared <= UINT8_MAX ? (uint8_t)declared : absent;
}

graft_shape graft_onnx_shape_of_type(const graft_onnx_reader *reader, const Onnx__TypeProto *type)
{
    graft_shape unknown = {.rank = GRAFT_RANK_UNKNOWN};
    const Onnx__TensorShapeProto *declared = graft_onnx_declared_shape(type);
    unknown.dtype = graft_onnx_dtype(reader, graft_onnx_declared_dtype(type, 0));
    if (declared == NULL || declared->n_dim > GRAFT_MAX_RANK) {
        return unknown;
    }
    graft_shape shape = {.rank = (uint8_t)declared->n_dim, .dtype = unknown.dtype};
    for (uint32_t i = 0; i < shape.rank; i++) {
        const Onnx__TensorShapeProto__Dimension *dim = declared->dim[i];
        int64_t size =
            is_fixed(dim) ? dim->dim_value : find_size(reader, text_or_empty(dim->dim_param));
        if (size < 1 || size > INT32_MAX) {
            return unknown;
        }
        shape.dims[i] = (int32_t)size;
    }
    return shape;
}

graft_shape graft_onnx_shape_of_entry(const graft_onnx_reader *reader,
                                      const graft_onnx_entry *entry)
{
    if (entry->value != GRAFT_NONE) {
        return reader->model->graph.values[entry->value].shape;
    }
    if (entry->kind == GRAFT_ONNX_INPUT && entry->known == NULL) {
        return reader->model->inputs[entry->index].shape;
    }
    if (entry->weight != GRAFT_NONE) {
        return reader->weights[entry->weight].shape;
    }
    if (entry->known != NULL && entry->known->data_bytes > 0) {
        return entry->known->shape;
    }
    return (graft_shape){.rank = GRAFT_RANK_UNKNOWN};
}

graft_shape graft_onnx_shape_of_input(const graft_onnx_reader *reader, const Onnx__NodeProto *node,
                                      size_t k)
{
    const graft_onnx_entry *entry = graft_onnx_input(reader->onnx, node, k);
    return entry == NULL ? (graft_shape){.rank = GRAFT_RANK_UNKNOWN}
                         : graft_onnx_shape_of_entry(reader, entry);
}

const graft_model_weight *graft_onnx_weight_of_input(const graft_onnx_reader *reader,
                                                     const Onnx__NodeProto *node, size_t k)
{
    const graft_onnx_entry *entry = graft_onnx_input(reader->onnx, node, k);
    return entry == NULL || entry->weight == GRAFT_NONE ? NULL : &reader->weights[entry->weight];
}

static graft_onnx_ints *read_ints(graft_arena *arena, const graft_model_weight *weight)
{
    graft_onnx_ints *ints = GRAFT_NEW(arena, graft_onnx_ints, 1);
    *ints = (graft_onnx_ints){.rank = weight->shape.rank, .dtype = weight->shape.dtype};
    ints->count = (uint32_t)graft_shape_elements(&weight->shape);
    if (weight->shape.dtype == GRAFT_DTYPE_I64) {
        ints->items = weight->data;
        return ints;
    }
    const int32_t *narrow = weight->data;
    int64_t *items = GRAFT_NEW(arena, int64_t, ints->count);
    for (uint32_t i = 0; i < ints->count; i++) {
        items[i] = narrow[i];
    }
    ints->items = items;
    return ints;
}

const graft_onnx_ints *graft_onnx_ints_of_entry(graft_onnx_reader *reader, graft_onnx_entry *entry)
{
    static const graft_onnx_ints none[] = {
        {.rank = 1, .dtype = GRAFT_DTYPE_I32},
        {.rank = 1, .dtype = GRAFT_DTYPE_I64}
    };
    enum { ITEMS_MOST = 1024 };
    if (entry->ints != NULL || (entry->weight == GRAFT_NONE && entry->known == NULL)) {
        return entry->ints;
    }
    const graft_model_weight *weight =
        entry->known != NULL ? entry->known : &reader->weights[entry->weight];
    if (weight->shape.dtype != GRAFT_DTYPE_I64 && weight->shape.dtype != GRAFT_DTYPE_I32) {
        return NULL;
    }
    if (weight->shape.rank == GRAFT_RANK_UNKNOWN && weight->data_bytes == 0) {
        if (weight->tensor == NULL || weight->tensor->n_dims == 1) {
            /* A list of no items, e.g. the target of a Reshape to a scalar. */
            entry->ints = &none[weight->shape.dtype == GRAFT_DTYPE_I64];
        }
    } else if (weight->shape.rank <= 1 && weight->data != NULL &&
               graft_shape_elements(&weight->shape) <= ITEMS_MOST) {
        entry->ints = read_ints(reader->arena, weight);
    }
    return entry->ints;
}

/* ------------------------------------------------------------------------------ open sizes */

/* Tensors without elements are known (graft_onnx_stage_node), so that stages may have them. */
static int32_t least_size(const graft_onnx_reader *reader)
{
    return reader->options != NULL && reader->options->staged ? 0 : 1;
}

static graft_status check_options(graft_onnx_reader *reader)
{
    for (uint32_t i = 0; reader->options != NULL && i < reader->options->size_count; i++) {
        const graft_model_size *size = &reader->options->sizes[i];
        GRAFT_RETURN_IF(size->value < least_size(reader),
                        GRAFT_FAIL(reader->env, GRAFT_BAD_INPUT, "%s: size '%s' cannot be %d",
                                   reader->model->file, size->name, size->value));
        GRAFT_RETURN_IF(find_size(reader, size->name) < 0,
                        GRAFT_FAIL(reader->env, GRAFT_BAD_INPUT,
                                   "%s: has no open size '%s' among those of its inputs",
                                   reader->model->file, size->name));
    }
    return GRAFT_OK;
}

/* Samples of sizes: 0 is for models that are bound, 1 and 2 for those that stay open. All sizes of
 * sample 2 differ from those of sample 1, those that are chosen or follow from others too, and leave
 * a multiple of 64 where networks halve images. */
static int32_t default_size(uint32_t sample, uint32_t rank, uint32_t axis)
{
    if (sample == 0) {
        return 1;
    }
    if (axis == 0) {
        return sample == 1 ? 1 : 3;
    }
    if (rank == 4 && axis >= 2) {
        return sample == 1 ? 320 : 448;
    }
    return sample == 1 ? 64 : 96;
}

static int32_t chosen_size(const graft_onnx_reader *reader, const char *name, uint32_t rank,
                           uint32_t axis)
{
    const graft_model_options *options = reader->options;
    int32_t value = reader->sample == 2 || options == NULL
                        ? -1
                        : look_up(options->sizes, options->size_count, name);
    value = value < 0 ? look_up(reader->given, reader->given_count, name) : value;
    value = value < 0 ? graft_onnx_evaluate_size(name, reader->known, reader->known_count) : value;
    value = value < least_size(reader) ? default_size(reader->sample, rank, axis) : value;
    const graft_model *first = reader->first;
    return first != NULL && look_up(first->sizes, first->size_count, name) == value
               ? value + value / 2 + 1
               : value;
}

/* Whether a model that is run declares an axis of 0 elements. Old exporters wrote that for an open
 * size, so a caller may say another. */
static bool is_empty(const graft_onnx_reader *reader, const char *name,
                     const Onnx__TensorShapeProto__Dimension *dim)
{
    const graft_model_options *o = reader->options;
    return o != NULL && o->flows && dim->has_dim_value && dim->dim_value == 0 &&
           look_up(o->sizes, o->size_count, name) < 0 &&
           look_up(reader->given, reader->given_count, name) < 0;
}

/* The size of axis `axis` of an input; an open one is bound, once for each name. */
static int32_t bind_size(graft_onnx_reader *reader, const char *input,
                         const Onnx__TensorShapeProto *shape, uint32_t axis)
{
    const char *name = graft_onnx_open_size(reader->arena, input, shape, axis);
    if (name == NULL) {
        return (int32_t)shape->dim[axis]->dim_value;
    }
    int32_t value = find_size(reader, name);
    if (value < 0) {
        value = is_empty(reader, name, shape->dim[axis])
                    ? 0
                    : chosen_size(reader, name, (uint32_t)shape->n_dim, axis);
        GRAFT_PUSH(reader->arena, reader->sizes, reader->size_count, reader->size_capacity, 8) =
            (graft_model_size){.name = name, .value = value};
        if (reader->sample == 0) {
            graft_log(reader->env, 1, "%s: the size '%s' is open and bound to %d",
                      reader->model->file, name, value);
        }
    }
    return value;
}

static graft_status bind_port(graft_onnx_reader *reader, const graft_onnx_entry *entry,
                              graft_shape *shape)
{
    const Onnx__TensorShapeProto *declared = graft_onnx_declared_shape(entry->type);
    *shape = graft_onnx_shape_of_type(reader, entry->type);
    if (declared == NULL || declared->n_dim > GRAFT_MAX_RANK) {
        return GRAFT_OK;
    }
    *shape = (graft_shape){.rank = (uint8_t)declared->n_dim, .dtype = shape->dtype};
    for (uint32_t k = 0; k < shape->rank; k++) {
        GRAFT_RETURN_IF(is_fixed(declared->dim[k]) && declared->dim[k]->dim_value > INT32_MAX,
                        GRAFT_FAIL(reader->env, GRAFT_UNSUPPORTED,
                                   "%s: input '%s': size %u is larger than 2^31 - 1",
                                   reader->model->file, entry->name, k));
        shape->dims[k] = bind_size(reader, entry->name, declared, k);
        if (shape->dims[k] < least_size(reader)) {
            return GRAFT_FAIL(reader->env, GRAFT_UNSUPPORTED,
                              "%s: input '%s': size %u is 0: tensors without elements are not run",
                              reader->model->file, entry->name, k);
        }
    }
    return GRAFT_OK;
}

/* An input without elements is known. */
static void know_nothing(graft_onnx_reader *reader, graft_onnx_entry *entry,
                         const graft_shape *shape)
{
    static const uint64_t nothing = 0;
    if (shape->rank <= GRAFT_MAX_RANK && graft_shape_elements(shape) == 0) {
        graft_model_weight *known = GRAFT_NEW(reader->arena, graft_model_weight, 1);
        *known = (graft_model_weight){.name = entry->name, .shape = *shape, .data = &nothing};
        entry->known = known;
    }
}

/* The sizes that the caller's inputs have where the model leaves them open. */
static void note_given(graft_onnx_reader *reader)
{
    const graft_model_options *o = reader->options;
    for (uint32_t i = 0; o != NULL && i < o->given_count; i++) {
        const graft_onnx_entry *entry = graft_onnx_entry_named(reader->onnx, o->given[i].name);
        const graft_shape *shape = &o->given[i].shape;
        const Onnx__TensorShapeProto *declared =
            entry == NULL ? NULL : graft_onnx_declared_shape(entry->type);
        const bool fits = declared != NULL && declared->n_dim == shape->rank;
        for (uint32_t k = 0; fits && k < shape->rank; k++) {
            const char *name = graft_onnx_open_size(reader->arena, entry->name, declared, k);
            if (name != NULL && shape->dims[k] >= least_size(reader)) {
                GRAFT_PUSH(reader->arena, reader->given, reader->given_count,
                           reader->given_capacity, 8) =
                    (graft_model_size){.name = name, .value = shape->dims[k]};
            }
        }
    }
}

/* Binds those sizes whose names say nothing of others: what follows from them is found then. */
static void bind_names(graft_onnx_reader *reader)
{
    const graft_model_options *o = reader->options;
    const uint32_t frozen = o == NULL ? 0 : o->frozen_count;
    for (uint32_t i = 0; i < reader->onnx->entry_count; i++) {
        const graft_onnx_entry *entry = &reader->onnx->entries[i];
        const Onnx__TensorShapeProto *declared = graft_onnx_declared_shape(entry->type);
        const bool bound = entry->kind == GRAFT_ONNX_INPUT && declared != NULL &&
                           declared->n_dim <= GRAFT_MAX_RANK;
        for (uint32_t k = 0; bound && k < declared->n_dim; k++) {
            const char *name = graft_onnx_open_size(reader->arena, entry->name, declared, k);
            if (name != NULL && !graft_onnx_is_formula(name)) {
                (void)bind_size(reader, entry->name, declared, k);
            }
        }
    }
    graft_model_size *known =
        GRAFT_NEW(reader->arena, graft_model_size, reader->size_count + frozen);
    for (uint32_t i = 0; i < reader->size_count + frozen; i++) {
        known[i] = i < frozen ? o->frozen[i] : reader->sizes[i - frozen];
    }
    reader->known = known;
    reader->known_count = reader->size_count + frozen;
}

/* Binds every open size of the inputs and fills in their shapes. */
static graft_status bind_inputs(graft_onnx_reader *reader)
{
    note_given(reader);
    bind_names(reader);
    for (uint32_t i = 0; i < reader->onnx->entry_count; i++) {
        graft_onnx_entry *entry = &reader->onnx->entries[i];
        if (entry->kind == GRAFT_ONNX_INPUT) {
            graft_model_port *port = &reader->ports[entry->index];
            GRAFT_PASS(bind_port(reader, entry, &port->shape));
            port->dtype = graft_onnx_declared_dtype(entry->type, port->shape.dtype);
            know_nothing(reader, entry, &port->shape);
        }
    }
    return check_options(reader);
}

/* ------------------------------------------------------------------------------ all of it */

/* Looks at the model as a whole: opset of the default domain, operators of its own, training. */
static graft_status check_message(graft_onnx_reader *reader)
{
    const Onnx__ModelProto *proto = reader->onnx->proto;
    GRAFT_RETURN_IF(proto->graph == NULL,
                    GRAFT_FAIL(reader->env, GRAFT_BAD_INPUT,
                               "%s: not an ONNX model: it has no graph", reader->model->file));
    GRAFT_RETURN_IF(
        !proto->has_ir_version || (proto->ir_version >= IR_OPSETS && proto->n_opset_import == 0),
        GRAFT_FAIL(reader->env, GRAFT_BAD_INPUT,
                   "%s: not a whole ONNX model: it has no %s (is the file cut off?)",
                   reader->model->file, proto->has_ir_version ? "opset_import" : "ir_version"));
    reader->onnx->opset = 1;
    for (size_t i = 0; i < proto->n_opset_import; i++) {
        if (graft_onnx_is_own_domain(proto->opset_import[i]->domain)) {
            reader->onnx->opset = proto->opset_import[i]->version;
        }
    }
    reader->onnx->keep_all = proto->n_training_info > 0;
    for (size_t i = 0; i < proto->n_functions; i++) {
        reader->onnx->keep_all |= graft_onnx_is_own_domain(proto->functions[i]->domain);
    }
    reader->onnx->node_count = (uint32_t)proto->graph->n_node;
    reader->onnx->groups = GRAFT_NEW(reader->arena, graft_onnx_group, proto->graph->n_node);
    reader->onnx->order = GRAFT_NEW(reader->arena, uint32_t, proto->graph->n_node);
    return GRAFT_OK;
}

/* One reading of a message. */
typedef struct {
    const graft_onnx_source *source;
    const graft_model_options *options;
    const bool *bound; /* These as in the reader. */
    const graft_model *first;
    uint32_t sample;
    bool tight;
    bool flows;
} reading;

static graft_status read_once(graft_env *env, graft_arena *arena, const reading *how,
                              graft_model **model)
{
    graft_model *made = GRAFT_NEW(arena, graft_model, 1);
    graft_onnx *onnx = GRAFT_NEW(arena, graft_onnx, 1);
    graft_onnx_reader reader = {.env = env,
                                .arena = arena,
                                .model = made,
                                .onnx = onnx,
                                .options = how->options,
                                .bound = how->bound,
                                .sample = how->sample,
                                .first = how->first,
                                .tight = how->tight,
                                .flows = how->flows,
                                .folder = how->source->folder};
    made->file = graft_arena_strdup(arena, how->source->file);
    made->onnx = onnx;
    onnx->proto = how->source->proto;
    onnx->tight = how->tight;
    GRAFT_PASS(check_message(&reader));
    GRAFT_PASS(graft_onnx_load_external(&reader, how->source->proto));
    GRAFT_PASS(name_everything(&reader));
    GRAFT_PASS(sort_nodes(&reader));
    GRAFT_PASS(bind_inputs(&reader));
    GRAFT_PASS(graft_onnx_build(&reader));
    made->sizes = reader.sizes;
    made->size_count = reader.size_count;
    made->weights = reader.weights;
    made->weight_count = reader.weight_count;
    made->records = reader.records;
    made->record_count = reader.record_count;
    *model = made;
    return GRAFT_OK;
}

/* The same without a word: the last reading says what there is to say. */
static graft_status read_quietly(graft_env *env, graft_arena *arena, const reading *how,
                                 graft_model **model)
{
    const int verbosity = env->verbosity;
    env->verbosity = 0;
    const graft_status status = read_once(env, arena, how, model);
    env->verbosity = verbosity;
    return status;
}

static void log_open_sizes(graft_env *env, const graft_model *a, const graft_model *b,
                           uint32_t bound)
{
    for (uint32_t i = 0; i < a->size_count; i++) {
        graft_log(env, 1, "%s: the size '%s' is open and stays so; looked at with %d and %d",
                  a->file, a->sizes[i].name, a->sizes[i].value, b->sizes[i].value);
    }
    if (bound > 0) {
        graft_log(env, 1, "%s: %u nodes depend on open sizes and stay as they are", a->file, bound);
    }
}

/* `*model` was read with sample 1: reads it once more with what depends on the sizes kept. */
static graft_status keep_open(graft_env *env, graft_arena *arena, const reading *first,
                              graft_model **model)
{
    const graft_model *a = *model;
    graft_model *b = NULL;
    reading how = *first;
    how.sample = 2;
    how.first = a;
    GRAFT_PASS(read_quietly(env, arena, &how, &b));
    how.sample = 1;
    how.first = NULL;
    const graft_onnx_open found = graft_onnx_find_open(arena, a, b);
    how.bound = found.bound;
    log_open_sizes(env, a, b, found.count);
    GRAFT_PASS(read_once(env, arena, &how, model));
    graft_model_size *sizes = GRAFT_NEW(arena, graft_model_size, a->size_count);
    for (uint32_t i = 0; i < a->size_count; i++) {
        sizes[i] = a->sizes[i];
        sizes[i].other = b->sizes[i].value;
    }
    (*model)->sizes = sizes;
    (*model)->is_open = true;
    (*model)->other = b;
    (*model)->unsure = found.unsure;
    return GRAFT_OK;
}

/* Whether there is an If that could be replaced. */
static bool has_choice(const Onnx__ModelProto *proto)
{
    bool found = false;
    for (size_t i = 0; proto->graph != NULL && i < proto->graph->n_node && !found; i++) {
        found = graft_onnx_is(proto->graph->node[i], "If");
    }
    return found;
}

/* Reads until no condition is known any more. Sizes that stay open could decide otherwise. */
static graft_status read_choices(graft_env *env, graft_arena *arena, const reading *how,
                                 bool *chosen)
{
    graft_model *made = NULL;
    uint32_t replaced = 0;
    uint32_t count = 0;
    while (has_choice(how->source->proto)) {
        GRAFT_PASS(read_quietly(env, arena, how, &made));
        if (how->options != NULL && how->options->keep_open && made->size_count > 0) {
            return GRAFT_OK;
        }
        replaced = graft_onnx_inline(arena, how->source->proto, made);
        count += replaced;
        if (replaced == 0) {
            break;
        }
    }
    *chosen = count > 0;
    if (count > 0) {
        graft_log(env, 1, "%s: %u If nodes have a known condition and become the branch it chooses",
                  how->source->file, count);
    }
    return GRAFT_OK;
}

/* Reads a message in which no condition is known. */
static graft_status read_chosen(graft_env *env, graft_arena *arena, reading how,
                                graft_model **model)
{
    how.flows = how.options != NULL && how.options->flows;
    if (how.sample == 0) {
        return read_once(env, arena, &how, model);
    }
    GRAFT_PASS(read_quietly(env, arena, &how, model));
    if (graft_onnx_swells(env, *model,
                          protobuf_c_message_get_packed_size(&how.source->proto->base))) {
        how.tight = true;
        GRAFT_PASS(read_quietly(env, arena, &how, model));
    }
    return (*model)->size_count > 0 ? keep_open(env, arena, &how, model)
                                    : read_once(env, arena, &how, model);
}

/* Has the bodies in a message rewritten. Where one still reads the weights of which another made
 * new ones, the file would grow. */
static graft_status rewrite_bodies(graft_env *env, graft_arena *arena, const reading *how)
{
    graft_status status = GRAFT_OK;
    const uint64_t had = protobuf_c_message_get_packed_size(&how->source->proto->base);
    const int verbosity = env->verbosity;
    graft_onnx_bodies bodies = {.lean = false};
    graft_model *model = NULL;
    bool grown = true;
    for (uint32_t i = 0; i < 2 && grown; i++) {
        bodies.lean = i == 1;
        env->verbosity = 0; /* The last reading says what there is to say. */
        GRAFT_CHECK(read_chosen(env, arena, *how, &model));
        env->verbosity = verbosity;
        GRAFT_CHECK(
            graft_onnx_rewrite_bodies(env, arena, how->source, how->options, model, &bodies));
        env->verbosity = 0;
        GRAFT_CHECK(read_chosen(env, arena, *how, &model));
        env->verbosity = verbosity;
        grown = bodies.count > 0 && graft_onnx_swells(env, model, had);
        if (grown) {
            graft_log(env, 1, "%s: its bodies would make the file grow: they %s", how->source->file,
                      bodies.lean ? "stay as they were"
                                  : "are rewritten again without new weights");
            graft_onnx_restore_bodies(how->source, &bodies);
        }
        if (how->options->bodies->settle != NULL) {
            how->options->bodies->settle(how->options->bodies->context, !grown);
        }
    }
done:
    env->verbosity = verbosity;
    return status;
}

graft_status graft_onnx_copy_message(graft_env *env, graft_arena *arena, const char *file,
                                     const Onnx__ModelProto *from, Onnx__ModelProto **copy)
{
    ProtobufCMessage *made = NULL;
    Onnx__ModelProto bare = *from;
    Onnx__GraphProto graph = *from->graph;
    bare.graph = &graph;
    graph.n_initializer = 0;
    GRAFT_PASS(graft_wire_copy(env, arena, file, &bare.base, &made));
    *copy = (Onnx__ModelProto *)made;
    const size_t count = from->graph->n_initializer;
    (*copy)->graph->initializer = GRAFT_COPY(arena, from->graph->initializer, count);
    (*copy)->graph->n_initializer = count;
    return GRAFT_OK;
}

graft_status graft_onnx_read_message(graft_env *env, graft_arena *arena,
                                     const graft_onnx_source *source,
                                     const graft_model_options *options, graft_model **model)
{
    graft_model *made = NULL;
    bool chosen = false;
    const bool open = options != NULL && options->keep_open;
    const reading how = {.source = source, .options = options, .sample = open ? 1 : 0};
    Onnx__ModelProto *again = NULL;
    if (options != NULL && options->again && source->proto->graph != NULL) {
        GRAFT_PASS(graft_onnx_copy_message(env, arena, source->file, source->proto, &again));
    }
    GRAFT_PASS(graft_onnx_inline_functions(env, arena, source));
    GRAFT_PASS(graft_onnx_freeze(env, arena, source, options));
    uint32_t peeled = 0;
    do {
        GRAFT_PASS(read_choices(env, arena, &how, &chosen));
        if (options != NULL && options->staged) {
            GRAFT_PASS(read_chosen(env, arena, how, &made));
            GRAFT_PASS(graft_onnx_peel(env, arena, source, made, &peeled));
        }
    } while (peeled > 0);
    if (options != NULL && options->bodies != NULL && graft_onnx_has_bodies(source->proto)) {
        GRAFT_PASS(rewrite_bodies(env, arena, &how));
    }
    if (made == NULL) {
        GRAFT_PASS(read_chosen(env, arena, how, &made));
    }
    made->is_chosen = chosen;
    made->again = again;
    made->frozen = options == NULL ? NULL : options->frozen;
    made->frozen_count = options == NULL ? 0 : options->frozen_count;
    made->folds = options == NULL ? NULL : options->folds;
    *model = made;
    return GRAFT_OK;
}

graft_status graft_model_parse(graft_env *env, graft_arena *arena, graft_bytes bytes,
                               const graft_model_options *options, graft_model **model)
{
    ProtobufCMessage *message = NULL;
    GRAFT_PASS(graft_wire_decode(env, arena, bytes, &onnx__model_proto__descriptor, &message));
    graft_onnx_source source = {.proto = (Onnx__ModelProto *)message, .file = bytes.file};
    return graft_onnx_read_message(env, arena, &source, options, model);
}

graft_status graft_model_read_again(graft_env *env, graft_arena *arena, const graft_model *model,
                                    const graft_model_options *options, graft_model **next)
{
    graft_onnx_source source = {.file = model->file};
    GRAFT_PASS(graft_onnx_copy_message(env, arena, model->file, model->again, &source.proto));
    return graft_onnx_read_message(env, arena, &source, options, next);
}

/* The folder of a path; "." when it names none. */
static char *folder_of_path(graft_arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL) {
        return graft_arena_strdup(arena, ".");
    }
    return graft_arena_printf(arena, "%.*s", (int)(slash == path ? 1 : slash - path), path);
}

graft_status graft_model_read(graft_env *env, graft_arena *arena, const char *path,
                              const graft_model_options *options, graft_model **model)
{
    ProtobufCMessage *message = NULL;
    GRAFT_PASS(graft_wire_read(env, arena, path, &onnx__model_proto__descriptor, &message));
    graft_onnx_source source = {
        .proto = (Onnx__ModelProto *)message, .file = path, .folder = folder_of_path(arena, path)};
    return graft_onnx_read_message(env, arena, &source, options, model);
}

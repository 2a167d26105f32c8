/* onnx_stage.c - a model whose sizes depend on data is read in stages (graft_model_options.staged).
 *
 *      x -> Conv -> NonZero -> Gather(x) -> ...         first stage: Conv, which makes what NonZero
 *                   ~~~~~~~~~~~~~~~~~~~~                reads, and x; the rest is late
 *
 * A node is late when it reads what is late, or when the sizes of what it makes are told by elements
 * that are not known yet. What late nodes read is handed on: as a weight, or as a result of the
 * stage. When these results are there, the rest is read as a model of its own, in which they are
 * known as constants are: what is small is worked out while it is read, sizes among it, and also
 * what finds sizes (found.h) and what makes or reads tensors without elements, of which the engine
 * has none. What has kernels becomes the graph of the next stage, which has what is known so for
 * inputs, since other data will give other ones. */
#include "graph/onnx/onnx_stage.h"
#include "graph/flow.h"
#include "graph/meaning/found.h"
#include "graph/onnx/onnx_apart.h"

#include <string.h>

enum { OPSET_ROI_HALF = 16 };

bool graft_onnx_is_staged(const graft_onnx_reader *reader)
{
    return reader->options != NULL && reader->options->staged && !reader->onnx->keep_all;
}

graft_status graft_onnx_name_told(graft_onnx_reader *reader)
{
    graft_onnx *onnx = reader->onnx;
    const graft_model_options *o = reader->options;
    for (uint32_t i = 0; o != NULL && i < o->told_count; i++) {
        graft_model_weight *known = GRAFT_NEW(reader->arena, graft_model_weight, 1);
        known->name = o->told[i].name;
        known->shape = o->told[i].shape;
        known->data = o->told[i].data;
        known->data_bytes = (size_t)graft_shape_bytes(&known->shape);
        GRAFT_RETURN_IF(!graft_names_add(onnx->names, known->name, onnx->entry_count),
                        GRAFT_FAIL(reader->env, GRAFT_BAD_INPUT, "%s: the name '%s' is given twice",
                                   reader->model->file, known->name));
        onnx->entries[onnx->entry_count++] = (graft_onnx_entry){.name = known->name,
                                                                .kind = GRAFT_ONNX_TOLD,
                                                                .value = GRAFT_NONE,
                                                                .weight = GRAFT_NONE,
                                                                .known = known,
                                                                .of_data = true};
    }
    return GRAFT_OK;
}

/* ---------------------------------------------------------------------------- what is left */

static void leave(graft_onnx_reader *reader, uint32_t index)
{
    const Onnx__NodeProto *node = reader->onnx->proto->graph->node[index];
    reader->onnx->groups[index].is_late = true;
    for (size_t k = 0; k < node->n_output; k++) {
        graft_onnx_entry *entry = graft_onnx_entry_named(reader->onnx, node->output[k]);
        if (entry != NULL) {
            entry->late = true;
        }
    }
}

static bool reads_late(const graft_onnx *onnx, uint32_t index)
{
    const size_t count = graft_onnx_read_count(onnx, index);
    bool late = false;
    for (size_t i = 0; i < count && !late; i++) {
        const graft_onnx_entry *entry = graft_onnx_read_at(onnx, index, i);
        late = entry != NULL && entry->late;
    }
    return late;
}

/* Before opset 16 the way to count coordinates had no name. */
static void spell_roi_align(graft_onnx_reader *reader, Onnx__NodeProto *node)
{
    static const char name[] = "coordinate_transformation_mode";
    if (strcmp(node->op_type, "RoiAlign") == 0 && graft_onnx_attribute(node, name) == NULL) {
        graft_onnx_set_text(reader->arena, node, name,
                            reader->onnx->opset < OPSET_ROI_HALF ? "output_half_pixel"
                                                                 : "half_pixel");
    }
}

graft_status graft_onnx_stage_node(graft_onnx_reader *reader, uint32_t index, bool *done)
{
    Onnx__NodeProto *node = reader->onnx->proto->graph->node[index];
    graft_onnx_known k;
    *done = true;
    if (reads_late(reader->onnx, index)) {
        leave(reader, index);
        return GRAFT_OK;
    }
    *done = false;
    if (node->op_type == NULL || !graft_onnx_is_own_domain(node->domain) || node->n_input == 0 ||
        graft_onnx_comes_apart(reader, node)) {
        return GRAFT_OK;
    }
    spell_roi_align(reader, node);
    const bool all = graft_onnx_know(reader, index, &k);
    if (all && (k.of_data || k.none || graft_found_is(node))) {
        *done = graft_onnx_work_out(&k);
    } else if (k.none || graft_found_is(node)) {
        if (!k.none || !graft_onnx_work_out_none(&k)) {
            leave(reader, index);
        }
        *done = true;
    }
    const char *names[2];
    if (!*done && k.none && graft_onnx_list_bodies(node, names) > 0) {
        leave(reader, index); /* A Loop is peeled then, and an If chosen. */
        *done = true;
    }
    return *done || !k.none || !k.of_data
               ? GRAFT_OK
               : GRAFT_FAIL(reader->env, GRAFT_UNSUPPORTED,
                            "%s: node %u '%s' (%s) reads a tensor without elements, of which Graft "
                            "does not know what it makes",
                            reader->model->file, index, text_or_empty(node->name), node->op_type);
}

bool graft_onnx_waits(graft_onnx_reader *reader, uint32_t index, const graft_shape *shapes)
{
    static const char sized[] =
        "Range Expand Reshape ConstantOfShape Slice TopK Tile Resize Upsample Pad Split OneHot "
        "If Loop";
    const Onnx__NodeProto *node = reader->onnx->proto->graph->node[index];
    const graft_flow *flow = reader->onnx->groups[index].flow;
    bool known = flow == NULL || flow->refusal == NULL;
    graft_onnx_known k;
    for (size_t i = 0; i < node->n_output && known; i++) {
        const graft_onnx_entry *entry = graft_onnx_entry_named(reader->onnx, node->output[i]);
        known = entry == NULL || entry->read_count == 0 ||
                (shapes[i].rank <= GRAFT_MAX_RANK && graft_shape_bytes(&shapes[i]) > 0);
    }
    if (known || !graft_onnx_is_own_domain(node->domain) ||
        !graft_onnx_lists(sized, node->op_type)) {
        return false;
    }
    const bool all = graft_onnx_know(reader, index, &k);
    if (all && flow == NULL) {
        return graft_onnx_work_out_none(&k);
    }
    if (!all || strcmp(node->op_type, "Loop") == 0) { /* Which is peeled then. */
        leave(reader, index);
        return true;
    }
    return false;
}

/* ------------------------------------------------------------------------------- the cut */

typedef struct {
    graft_onnx_reader *reader;
    Onnx__GraphProto *rest;
    graft_model_told *told;
    const char **outputs;
    uint32_t *output_count;
} cutting;

static void hand_tensor(const cutting *c, const graft_onnx_entry *entry,
                        const graft_model_weight *weight)
{
    graft_arena *arena = c->reader->arena;
    bool fits = true;
    if (weight->sparse != NULL) {
        c->rest->sparse_initializer =
            graft_onnx_append(arena, c->rest->sparse_initializer, c->rest->n_sparse_initializer++,
                              graft_borrow((const char *)weight->sparse));
        return;
    }
    Onnx__TensorProto *tensor = GRAFT_NEW(arena, Onnx__TensorProto, 1);
    *tensor = weight->tensor != NULL ? *weight->tensor
                                     : *graft_onnx_make_weight(arena, entry->name, &weight->shape,
                                                               weight->data, &fits);
    tensor->name = graft_borrow(entry->name);
    c->rest->initializer[c->rest->n_initializer++] = tensor;
}

/* For later stages; `made`: for whoever runs this one. */
static void hand(const cutting *c, graft_onnx_entry *entry, bool made)
{
    graft_model *model = c->reader->model;
    const graft_model_weight *weight = graft_onnx_known_of(entry, c->reader->weights);
    if (entry->late || (entry->handed && !made)) {
        return; /* A file may name an output twice. */
    }
    if (weight != NULL && !made && !entry->of_data) {
        entry->handed = true;
        hand_tensor(c, entry, weight);
        return;
    }
    entry->handed = weight == NULL || entry->of_data;
    graft_model_told told = {.name = entry->name};
    if (weight != NULL && graft_onnx_find_known(c->reader, entry, &told.shape, &told.data) &&
        (entry->of_data || graft_shape_elements(&told.shape) == 0)) {
        c->told[model->told_count++] = told;
    } else {
        c->outputs[(*c->output_count)++] = entry->name;
    }
}

/* The type of an output of the file; its sizes may be of other data. */
static Onnx__ValueInfoProto *bare_output(graft_arena *arena, const Onnx__ValueInfoProto *output)
{
    Onnx__ValueInfoProto *bare = GRAFT_COPY(arena, output, 1);
    if (output->type != NULL && output->type->tensor_type != NULL) {
        bare->type = GRAFT_COPY(arena, output->type, 1);
        bare->type->tensor_type = GRAFT_COPY(arena, output->type->tensor_type, 1);
        bare->type->tensor_type->shape = NULL;
    }
    return bare;
}

/* Nodes and outputs that are late; false where none are. */
static bool list_late(const cutting *c)
{
    const graft_onnx *onnx = c->reader->onnx;
    const Onnx__GraphProto *graph = onnx->proto->graph;
    for (uint32_t i = 0; i < onnx->node_count; i++) {
        if (onnx->groups[i].is_late) {
            c->rest->node[c->rest->n_node++] = graph->node[i];
        }
    }
    for (size_t i = 0; i < graph->n_output; i++) {
        const graft_onnx_entry *entry = graft_onnx_entry_named(onnx, graph->output[i]->name);
        if (entry != NULL && entry->late) {
            c->rest->output[c->rest->n_output++] = bare_output(c->reader->arena, graph->output[i]);
        }
    }
    return c->rest->n_node > 0;
}

/* All outputs of the file, of unknown rank where they are late. */
static void promise(graft_onnx_reader *reader)
{
    const Onnx__GraphProto *graph = reader->onnx->proto->graph;
    graft_model_port *ports = GRAFT_NEW(reader->arena, graft_model_port, graph->n_output);
    for (size_t i = 0; i < graph->n_output; i++) {
        const graft_onnx_entry *entry =
            graft_onnx_entry_named(reader->onnx, graph->output[i]->name);
        ports[i] = (graft_model_port){.name = graph->output[i]->name,
                                      .shape = {.rank = GRAFT_RANK_UNKNOWN}};
        if (entry != NULL && !entry->late) {
            ports[i].shape = entry->known != NULL ? entry->known->shape
                                                  : graft_onnx_shape_of_entry(reader, entry);
        }
        ports[i].dtype = graft_onnx_declared_dtype(graph->output[i]->type, ports[i].shape.dtype);
        ports[i].shape.dtype = ports[i].dtype;
    }
    reader->model->promised = ports;
    reader->model->promised_count = (uint32_t)graph->n_output;
}

void graft_onnx_cut(graft_onnx_reader *reader, const char **outputs, uint32_t *count)
{
    graft_onnx *onnx = reader->onnx;
    graft_arena *arena = reader->arena;
    const Onnx__GraphProto *graph = onnx->proto->graph;
    Onnx__ModelProto *rest = GRAFT_NEW(arena, Onnx__ModelProto, 1);
    cutting c = {.reader = reader,
                 .rest = GRAFT_NEW(arena, Onnx__GraphProto, 1),
                 .told = GRAFT_NEW(arena, graft_model_told, onnx->entry_count),
                 .outputs = outputs,
                 .output_count = count};
    *rest = *onnx->proto;
    onnx__graph_proto__init(c.rest);
    rest->graph = c.rest;
    c.rest->name = graph->name;
    c.rest->node = GRAFT_NEW(arena, Onnx__NodeProto *, onnx->node_count);
    c.rest->output = GRAFT_NEW(arena, Onnx__ValueInfoProto *, graph->n_output);
    c.rest->initializer = GRAFT_NEW(arena, Onnx__TensorProto *, onnx->entry_count);
    reader->model->told = c.told;
    for (size_t i = 0; i < graph->n_output; i++) {
        graft_onnx_entry *entry = graft_onnx_entry_named(onnx, graph->output[i]->name);
        if (entry == NULL) {
            outputs[(*count)++] = graph->output[i]->name; /* Which is told of then. */
        } else {
            hand(&c, entry, true);
        }
    }
    if (list_late(&c)) {
        reader->model->rest = rest;
    }
    for (uint32_t i = 0; i < onnx->node_count; i++) {
        const size_t read = onnx->groups[i].is_late ? graft_onnx_read_count(onnx, i) : 0;
        for (size_t k = 0; k < read; k++) {
            graft_onnx_entry *entry = graft_onnx_read_at(onnx, i, k);
            if (entry != NULL) {
                hand(&c, entry, false);
            }
        }
    }
    promise(reader);
}

graft_status graft_model_read_rest(graft_env *env, graft_arena *arena, const graft_model *model,
                                   const graft_model_options *options, graft_model **next)
{
    graft_onnx_source source = {.file = model->file};
    GRAFT_PASS(graft_onnx_copy_message(env, arena, model->file, model->rest, &source.proto));
    GRAFT_PASS(graft_onnx_read_message(env, arena, &source, options, next));
    if ((*next)->rest != NULL && (*next)->rest->graph->n_node == source.proto->graph->n_node) {
        const Onnx__NodeProto *node = (*next)->rest->graph->node[0];
        return GRAFT_FAIL(
            env, GRAFT_UNSUPPORTED,
            "%s: node '%s' (%s) cannot be run: what it makes has sizes that Graft does "
            "not find",
            model->file, text_or_empty(node->name), text_or_empty(node->op_type));
    }
    return GRAFT_OK;
}

/* onnx_apart.c - parts of operators that come apart where a model is run (see onnx_apart.h). */
#include "graph/onnx/onnx_apart.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    const char *op_type;
    graft_apart_taker *take;
    const char *attributes;
} apart_row;

static const apart_row rows[] = {
#define APART(op_type, taker, attributes) {op_type, graft_apart_##taker, attributes},
#include "graph/onnx/onnx_apart.def"
};

static const apart_row *find_row(const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (graft_onnx_is_named(node, rows[i].op_type)) {
            return &rows[i];
        }
    }
    return NULL;
}

bool graft_onnx_comes_apart(const graft_onnx_reader *reader, const Onnx__NodeProto *node)
{
    return graft_onnx_is_to_run(reader) && !reader->onnx->keep_all &&
           reader->onnx->opset >= GRAFT_ONNX_OPSET_FIRST &&
           reader->onnx->opset <= GRAFT_ONNX_OPSET_LAST && find_row(node) != NULL;
}

void graft_apart_refuse(graft_apart *apart, const char *reason)
{
    graft_apart_refuse_if(apart, true, reason);
}

void graft_apart_refuse_if(graft_apart *apart, bool refused, const char *reason)
{
    apart->refusal = refused && apart->refusal == NULL ? reason : apart->refusal;
}

/* The node's outputs are what the results are. */
static void name_results(const graft_apart *apart)
{
    for (size_t k = 0; k < apart->node->n_output; k++) {
        graft_onnx_entry *entry =
            graft_onnx_entry_named(apart->reader->onnx, apart->node->output[k]);
        if (entry != NULL && apart->results[k] != NULL) {
            const graft_onnx_entry *made =
                graft_onnx_entry_named(apart->reader->onnx, apart->results[k]);
            entry->value = made->value;
            entry->weight = made->weight;
            entry->known = made->known;
            entry->ints = made->ints;
        }
    }
}

graft_status graft_onnx_take_apart(graft_onnx_reader *reader, const Onnx__NodeProto *node,
                                   const char **refusal)
{
    const apart_row *row = find_row(node);
    graft_apart apart = {.reader = reader,
                         .node = node,
                         .results = GRAFT_NEW(reader->env->scratch, graft_tensor, node->n_output),
                         .microsoft = !graft_onnx_is_own_domain(node->domain)};
    assert(row != NULL);
    if (!graft_onnx_has_only(node, row->attributes)) {
        graft_apart_refuse(&apart, "an attribute that is not known");
    } else {
        row->take(&apart);
    }
    for (uint32_t k = 0; k < node->n_output; k++) {
        graft_apart_refuse_if(&apart, graft_apart_is_read(&apart, k) && apart.results[k] == NULL,
                              "an output that is not known");
    }
    if (apart.status == GRAFT_OK && apart.refusal == NULL) {
        name_results(&apart);
        reader->model->is_apart = true;
    }
    *refusal = apart.refusal;
    return apart.status;
}

/* ------------------------------------------------------------------------- inputs, outputs */

graft_tensor graft_apart_input(const graft_apart *apart, uint32_t k)
{
    const graft_onnx_entry *entry = graft_onnx_input(apart->reader->onnx, apart->node, k);
    const bool none =
        entry != NULL && entry->known != NULL && graft_shape_elements(&entry->known->shape) == 0;
    return entry == NULL || none ? NULL : entry->name;
}

graft_shape graft_apart_shape(const graft_apart *apart, graft_tensor x)
{
    const graft_onnx_entry *entry =
        x == NULL ? NULL : graft_onnx_entry_named(apart->reader->onnx, x);
    return entry == NULL ? (graft_shape){.rank = GRAFT_RANK_UNKNOWN}
                         : graft_onnx_shape_of_entry(apart->reader, entry);
}

bool graft_apart_is_real(const graft_apart *apart, graft_tensor x, uint32_t rank)
{
    const graft_shape shape = graft_apart_shape(apart, x);
    return shape.rank == rank && shape.dtype == GRAFT_DTYPE_F32 && graft_shape_bytes(&shape) > 0;
}

bool graft_apart_is_read(const graft_apart *apart, uint32_t k)
{
    const graft_onnx_entry *entry =
        k < apart->node->n_output
            ? graft_onnx_entry_named(apart->reader->onnx, apart->node->output[k])
            : NULL;
    return entry != NULL && entry->read_count > 0;
}

void graft_apart_result(graft_apart *apart, uint32_t k, graft_tensor x)
{
    if (k < apart->node->n_output) {
        apart->results[k] = x;
    }
}

int64_t graft_apart_known(graft_apart *apart, uint32_t k, int64_t absent)
{
    graft_onnx_entry *entry = graft_onnx_input(apart->reader->onnx, apart->node, k);
    const graft_onnx_ints *ints =
        entry == NULL ? NULL : graft_onnx_ints_of_entry(apart->reader, entry);
    graft_apart_refuse_if(apart, entry != NULL && (ints == NULL || ints->count != 1),
                          "numbers that are only known when the model runs");
    return ints != NULL && ints->count == 1 ? ints->items[0] : absent;
}

double graft_apart_known_real(graft_apart *apart, uint32_t k)
{
    const graft_onnx_entry *entry = graft_onnx_input(apart->reader->onnx, apart->node, k);
    const graft_model_weight *weight =
        entry == NULL ? NULL : graft_onnx_known_of(entry, apart->reader->weights);
    float number = 0.0F;
    if (weight == NULL || weight->data == NULL || weight->shape.dtype != GRAFT_DTYPE_F32 ||
        weight->data_bytes != sizeof(number)) {
        graft_apart_refuse(apart, "numbers that are only known when the model runs");
    } else {
        memcpy(&number, weight->data, sizeof(number));
    }
    return (double)number;
}

float graft_apart_float(const graft_apart *apart, const char *name, float absent)
{
    const Onnx__AttributeProto *attribute = graft_onnx_attribute(apart->node, name);
    return attribute == NULL ? absent : attribute->f;
}

/* ----------------------------------------------------------------------------- new entries */

/* A name that nothing has, of something that is read once. */
static graft_onnx_entry *add_entry(graft_apart *apart, graft_onnx_entry_kind kind, uint32_t index)
{
    graft_onnx_reader *reader = apart->reader;
    graft_onnx *onnx = reader->onnx;
    const char *whole = apart->node->output[0];
    const char *name = NULL;
    do {
        name = graft_arena_printf(reader->arena, "%s/%u", whole, reader->apart_count++);
    } while (!graft_names_add(onnx->names, name, onnx->entry_count));
    graft_onnx_entry *entry =
        &GRAFT_PUSH(reader->arena, onnx->entries, onnx->entry_count, reader->entry_capacity, 64);
    *entry = (graft_onnx_entry){.name = name,
                                .index = index,
                                .kind = (uint8_t)kind,
                                .read_count = 1,
                                .value = GRAFT_NONE,
                                .weight = GRAFT_NONE};
    return entry;
}

static graft_tensor add_weight(graft_apart *apart, const graft_shape *shape, const void *data)
{
    if (apart->refusal != NULL) {
        return NULL;
    }
    graft_onnx_entry *entry = add_entry(apart, GRAFT_ONNX_WEIGHT, 0);
    const graft_model_weight weight = {.name = entry->name,
                                       .shape = *shape,
                                       .data = data,
                                       .data_bytes = (size_t)graft_shape_bytes(shape)};
    entry->weight = graft_onnx_add_weight(apart->reader, &weight);
    return entry->name;
}

graft_tensor graft_apart_whole(graft_apart *apart, const int64_t *numbers, uint32_t count)
{
    graft_shape shape = {.rank = 1, .dtype = GRAFT_DTYPE_I64, .dims = {(int32_t)count}};
    int64_t *data = GRAFT_COPY(apart->reader->arena, numbers, count);
    return add_weight(apart, &shape, data);
}

graft_tensor graft_apart_real(graft_apart *apart, const float *data, const int32_t *dims,
                              uint32_t rank)
{
    graft_shape shape = {.rank = (uint8_t)rank, .dtype = GRAFT_DTYPE_F32};
    memcpy(shape.dims, dims, rank * sizeof(dims[0]));
    return add_weight(apart, &shape, data);
}

graft_tensor graft_apart_number(graft_apart *apart, float number)
{
    return graft_apart_range(apart, number, 0.0F, 1, 0, 0);
}

graft_tensor graft_apart_range(graft_apart *apart, float first, float step, int32_t count,
                               uint32_t axis, uint32_t rank)
{
    int32_t dims[GRAFT_MAX_RANK] = {1, 1, 1, 1, 1, 1};
    float *data = GRAFT_NEW(apart->reader->arena, float, (size_t)count);
    for (int32_t i = 0; i < count; i++) {
        data[i] = first + step * (float)i;
    }
    dims[axis] = count;
    return graft_apart_real(apart, data, dims, rank);
}

graft_tensor graft_apart_filled(graft_apart *apart, const graft_shape *shape, float number)
{
    const uint64_t count = graft_shape_elements(shape);
    float *data = GRAFT_NEW(apart->reader->arena, float, (size_t)count);
    for (uint64_t i = 0; i < count; i++) {
        data[i] = number;
    }
    return graft_apart_real(apart, data, shape->dims, shape->rank);
}

/* ----------------------------------------------------------------------------------- parts */

/* Appends a node to a message that is the reader's own: what was given may be read again. */
static uint32_t append_node(graft_onnx_reader *reader, Onnx__NodeProto *node)
{
    graft_onnx *onnx = reader->onnx;
    if (reader->own_graph == NULL) {
        const Onnx__GraphProto *given = onnx->proto->graph;
        Onnx__ModelProto *model = GRAFT_COPY(reader->arena, onnx->proto, 1);
        reader->own_graph = GRAFT_COPY(reader->arena, given, 1);
        model->graph = reader->own_graph;
        onnx->proto = model;
        reader->node_capacity = onnx->node_count;
        reader->own_graph->node = GRAFT_COPY(reader->arena, given->node, given->n_node);
    }
    uint32_t capacity = reader->node_capacity; /* Of both lists. */
    onnx->groups = graft_arena_grow(reader->arena, onnx->groups, onnx->node_count, &capacity, 16,
                                    sizeof(onnx->groups[0]));
    reader->own_graph->node =
        graft_arena_grow(reader->arena, reader->own_graph->node, onnx->node_count,
                         &reader->node_capacity, 16, sizeof(Onnx__NodeProto *));
    reader->own_graph->node[onnx->node_count] = node;
    reader->own_graph->n_node++;
    return onnx->node_count++;
}

/* NAME=1, NAME=1,2, NAME=0x1p-3, NAME=word, or NAME, which the node that comes apart may have. */
static void set_attribute(const graft_apart *apart, Onnx__NodeProto *node, char *text)
{
    enum { NUMBERS_MOST = GRAFT_MAX_RANK };
    graft_arena *arena = apart->reader->arena;
    int64_t numbers[NUMBERS_MOST] = {0};
    size_t count = 0;
    char *value = strchr(text, '=');
    if (value == NULL) {
        Onnx__AttributeProto *given = graft_onnx_attribute(apart->node, text);
        if (given != NULL) {
            node->attribute = graft_onnx_append(arena, node->attribute, node->n_attribute++, given);
        }
        return;
    }
    *value++ = '\0';
    const bool real = strchr(value, 'p') != NULL && (value[0] == '0' || value[0] == '-');
    if (real) {
        graft_onnx_set_float(arena, node, text, strtof(value, NULL));
    } else if (value[0] > '9') {
        graft_onnx_set_text(arena, node, text, value);
    } else {
        const bool one = strchr(value, ',') == NULL;
        for (char *end = value; count < NUMBERS_MOST && *value != '\0'; value = end) {
            numbers[count++] = strtoll(value, &end, 10);
            end += *end == ',';
        }
        if (one) {
            graft_onnx_set_int(arena, node, text, numbers[0]);
        } else {
            graft_onnx_set_ints(arena, node, text, numbers, count);
        }
    }
}

enum { OUTPUTS_MOST = 3 };

/* The node that a part's text describes. */
static Onnx__NodeProto *make_node(graft_apart *apart, const char *part, const graft_tensor *inputs,
                                  size_t count, size_t output_count)
{
    static const char *const outputs[OUTPUTS_MOST] = {NULL};
    graft_arena *arena = apart->reader->arena;
    char *text = graft_arena_strdup(arena, part);
    char *rest = NULL;
    char *op_type = strtok_r(text, " ", &rest);
    Onnx__NodeProto *node =
        graft_onnx_make_node(arena, op_type, inputs, count, outputs, output_count);
    for (size_t k = 0; k < count; k++) {
        node->input[k] = graft_borrow(inputs[k] == NULL ? "" : inputs[k]);
    }
    for (char *next = strtok_r(NULL, " ", &rest); next != NULL; next = strtok_r(NULL, " ", &rest)) {
        set_attribute(apart, node, next);
    }
    node->name = apart->node->name;
    return node;
}

void graft_apart_add_all(graft_apart *apart, const char *part, const graft_tensor *inputs,
                         size_t count, graft_tensor *outputs, size_t output_count)
{
    graft_onnx *onnx = apart->reader->onnx;
    memset(outputs, 0, output_count * sizeof(outputs[0]));
    if (apart->refusal != NULL) {
        return;
    }
    Onnx__NodeProto *node = make_node(apart, part, inputs, count, output_count);
    const uint32_t index = append_node(apart->reader, node);
    for (size_t k = 0; k < output_count; k++) {
        graft_onnx_entry *entry = add_entry(apart, GRAFT_ONNX_COMPUTED, index);
        entry->slot = (uint32_t)k;
        node->output[k] = graft_borrow(entry->name);
    }
    apart->status = graft_onnx_build_node(apart->reader, index);
    if (apart->status != GRAFT_OK) {
        graft_apart_refuse(apart, "a part that cannot be built");
        return;
    }
    for (size_t k = 0; k < output_count; k++) {
        const graft_shape shape = graft_apart_shape(apart, node->output[k]);
        if (graft_shape_bytes(&shape) == 0 || shape.rank > GRAFT_MAX_RANK) {
            const char *why = onnx->groups[index].refusal;
            graft_apart_refuse(apart, why == NULL ? "a part of unknown shape" : why);
            return;
        }
    }
    for (size_t k = 0; k < output_count; k++) {
        outputs[k] = node->output[k];
    }
}

graft_tensor graft_apart_add(graft_apart *apart, const char *part, const graft_tensor *inputs,
                             size_t count)
{
    graft_tensor output = NULL;
    graft_apart_add_all(apart, part, inputs, count, &output, 1);
    return output;
}

const char *graft_apart_text(const graft_apart *apart, const char *format, ...)
{
    char text[160];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return graft_arena_strdup(apart->reader->arena, text);
}

graft_tensor graft_apart_view(graft_apart *apart, graft_tensor x, const int64_t *dims, size_t rank)
{
    return GRAFT_APART(apart, "Reshape", x, graft_apart_whole(apart, dims, (uint32_t)rank));
}

graft_tensor graft_apart_slice(graft_apart *apart, graft_tensor x, int64_t axis, int64_t start,
                               int64_t end)
{
    return GRAFT_APART(apart, "Slice", x, graft_apart_whole(apart, &start, 1),
                       graft_apart_whole(apart, &end, 1), graft_apart_whole(apart, &axis, 1));
}

/* An axis is an attribute first, and an input since an opset. */
static graft_tensor add_along(graft_apart *apart, const char *part, graft_tensor x, int64_t axis,
                              int64_t since)
{
    if (apart->reader->onnx->opset >= since) {
        return GRAFT_APART(apart, part, x, graft_apart_whole(apart, &axis, 1));
    }
    return GRAFT_APART(apart, graft_apart_text(apart, "%s axes=%d,", part, (int)axis), x);
}

graft_tensor graft_apart_reduced(graft_apart *apart, const char *part, graft_tensor x, int64_t axis)
{
    return add_along(apart, part, x, axis, strncmp(part, "ReduceSum", 9) == 0 ? 13 : 18);
}

graft_tensor graft_apart_unsqueezed(graft_apart *apart, graft_tensor x, int64_t axis)
{
    return add_along(apart, "Unsqueeze", x, axis, 13);
}

graft_tensor graft_apart_scaled(graft_apart *apart, graft_tensor x, float factor)
{
    return GRAFT_APART(apart, "Mul", x, graft_apart_number(apart, factor));
}

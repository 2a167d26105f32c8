/* onnx_told.c - nodes that are worked out while a later stage is read (see onnx_stage.h). */
#include "graph/meaning/algebra.h"
#include "graph/meaning/foreign.h"
#include "graph/meaning/found.h"
#include "graph/onnx/onnx_stage.h"

#include <string.h>

enum { CONCAT_BYTES_MOST = 1 << 20 }; /* A larger one is a node, unless tensors have no elements. */

/* ----------------------------------------------------------------------------- what is known */

bool graft_onnx_find_known(const graft_onnx_reader *reader, const graft_onnx_entry *entry,
                           graft_shape *shape, const void **data)
{
    static const uint64_t nothing = 0;
    const graft_model_weight *weight = graft_onnx_known_of(entry, reader->weights);
    if (weight == NULL) {
        return false;
    }
    *shape = weight->shape;
    *data = weight->data;
    const Onnx__TensorProto *tensor = weight->tensor;
    if (shape->rank == GRAFT_RANK_UNKNOWN && weight->data_bytes == 0 && tensor != NULL &&
        tensor->n_dims <= GRAFT_MAX_RANK) { /* The engine knows no shape without elements. */
        shape->rank = (uint8_t)tensor->n_dims;
        for (uint32_t i = 0; i < tensor->n_dims; i++) {
            const bool fits = tensor->dims[i] >= 0 && tensor->dims[i] <= INT32_MAX;
            shape->dims[i] = fits ? (int32_t)tensor->dims[i] : 0;
            shape->rank = fits ? shape->rank : (uint8_t)GRAFT_RANK_UNKNOWN;
        }
    }
    *data = weight->data_bytes == 0 ? &nothing : *data;
    shape->dtype = graft_half_is(shape->dtype) ? (uint8_t)GRAFT_DTYPE_F32 : shape->dtype;
    return shape->rank != GRAFT_RANK_UNKNOWN && *data != NULL &&
           (weight->data_bytes > 0 || graft_shape_elements(shape) == 0);
}

graft_onnx_entry *graft_onnx_read_at(const graft_onnx *onnx, uint32_t index, size_t k)
{
    const Onnx__NodeProto *node = onnx->proto->graph->node[index];
    return k < node->n_input ? graft_onnx_input(onnx, node, k)
                             : &onnx->entries[onnx->groups[index].captured[k - node->n_input]];
}

size_t graft_onnx_read_count(const graft_onnx *onnx, uint32_t index)
{
    return onnx->proto->graph->node[index]->n_input + onnx->groups[index].captured_count;
}

/* Whether input `i` says what is done with others, so that none may be said. */
static bool is_setting(const Onnx__NodeProto *node, size_t i)
{
    static const char told[] =
        "Reshape Expand Squeeze Unsqueeze Resize Upsample ReduceSum ReduceMax "
        "ReduceMin ReduceMean ReduceProd";
    return (i > 0 && graft_onnx_lists(told, node->op_type)) ||
           graft_onnx_is(node, "ConstantOfShape");
}

bool graft_onnx_know(graft_onnx_reader *reader, uint32_t index, graft_onnx_known *k)
{
    const size_t count = graft_onnx_read_count(reader->onnx, index);
    bool known = true;
    *k = (graft_onnx_known){.reader = reader,
                            .node = reader->onnx->proto->graph->node[index],
                            .in = GRAFT_NEW(reader->env->scratch, graft_shape, count),
                            .data = GRAFT_NEW(reader->env->scratch, const void *, count)};
    for (size_t i = 0; i < count; i++) {
        graft_onnx_entry *entry = graft_onnx_read_at(reader->onnx, index, i);
        k->in[i].rank = GRAFT_RANK_UNKNOWN;
        if (entry == NULL) {
            continue;
        }
        if (!graft_onnx_find_known(reader, entry, &k->in[i], &k->data[i])) {
            k->in[i] = graft_onnx_shape_of_entry(reader, entry);
            known = false;
            continue;
        }
        k->none = k->none || (graft_shape_elements(&k->in[i]) == 0 && !is_setting(k->node, i));
        k->of_data = k->of_data || entry->of_data;
        (void)graft_onnx_ints_of_entry(reader, entry);
    }
    return known;
}

/* Says what output `i` of a node is; its data is in the reader's arena. */
static void set_known(const graft_onnx_known *k, size_t i, const graft_shape *shape,
                      const void *data)
{
    graft_onnx_entry *entry =
        i < k->node->n_output ? graft_onnx_entry_named(k->reader->onnx, k->node->output[i]) : NULL;
    if (entry != NULL) {
        graft_model_weight *known = GRAFT_NEW(k->reader->arena, graft_model_weight, 1);
        *known = (graft_model_weight){.name = entry->name,
                                      .shape = *shape,
                                      .data = data,
                                      .data_bytes = (size_t)graft_shape_bytes(shape)};
        entry->known = known;
        entry->of_data = k->of_data;
        (void)graft_onnx_ints_of_entry(k->reader, entry);
    }
}

/* ------------------------------------------------------------------ what is worked out here */

static bool work_out_found(const graft_onnx_known *k)
{
    graft_found outs[GRAFT_FOUND_OUTPUTS_MOST] = {{.data = NULL}};
    if (!graft_found_run(k->reader->arena, k->node, k->in, k->data, outs)) {
        return false;
    }
    for (size_t i = 0; i < k->node->n_output; i++) {
        set_known(k, i, &outs[i].shape, outs[i].data);
    }
    return true;
}

/* Adds the size of another one along an axis; of two that do not fit the one without elements does
 * not count. */
static bool put_beside(const graft_shape *in, int64_t axis, graft_shape *shape)
{
    const int64_t along = axis + (axis < 0 ? in->rank : 0);
    graft_shape both = *in;
    if (along < 0 || along >= in->rank) {
        return false;
    }
    both.dims[along] = shape->dims[along];
    if (shape->rank != GRAFT_RANK_UNKNOWN && graft_shape_equal(&both, shape)) {
        const bool fits = in->dims[along] <= INT32_MAX - shape->dims[along];
        shape->dims[along] += fits ? in->dims[along] : 0;
        return fits;
    }
    if (shape->rank == GRAFT_RANK_UNKNOWN || graft_shape_elements(shape) == 0) {
        *shape = *in;
        return true;
    }
    return graft_shape_elements(in) == 0;
}

/* Of any number of tensors. */
static bool work_out_concat(const graft_onnx_known *k)
{
    graft_shape shape = {.rank = GRAFT_RANK_UNKNOWN};
    size_t step = 0; /* Bytes of a row of the result. */
    int64_t axis = graft_onnx_int(k->node, "axis", 0);
    for (size_t i = 0; i < k->node->n_input; i++) {
        const graft_shape *in = &k->in[i];
        if (in->rank == GRAFT_RANK_UNKNOWN || in->rank == 0) {
            return false;
        }
        if (!put_beside(in, axis, &shape)) {
            return false;
        }
    }
    axis += axis < 0 ? shape.rank : 0;
    if (shape.rank == GRAFT_RANK_UNKNOWN || axis < 0 || axis >= shape.rank ||
        graft_shape_elements(&shape) > INT32_MAX ||
        (!k->none && graft_shape_bytes(&shape) > CONCAT_BYTES_MOST)) {
        return false;
    }
    const size_t rows = (size_t)graft_axes_count(&shape, 0, (uint32_t)axis);
    step = rows == 0 ? 0 : (size_t)graft_shape_bytes(&shape) / rows;
    uint8_t *data = GRAFT_NEW(k->reader->arena, uint8_t, rows * step);
    size_t at = 0;
    for (size_t i = 0; i < k->node->n_input; i++) {
        const size_t width = rows == 0 ? 0 : (size_t)graft_shape_bytes(&k->in[i]) / rows;
        for (size_t row = 0; row < rows && width > 0; row++) {
            memcpy(data + row * step + at, (const uint8_t *)k->data[i] + row * width, width);
        }
        at += width;
    }
    set_known(k, 0, &shape, data);
    return true;
}

/* The sizes of what has no elements. */
static bool work_out_sizes(const graft_onnx_known *k)
{
    const bool all = strcmp(k->node->op_type, "Size") == 0;
    int64_t *sizes = GRAFT_NEW(k->reader->arena, int64_t, GRAFT_MAX_RANK); /* 0, of all of them. */
    graft_shape shape = {.rank = all ? 0 : 1, .dtype = GRAFT_DTYPE_I64};
    shape.dims[0] = all ? 0 : (int32_t)graft_onnx_sizes(k->node, &k->in[0], sizes);
    set_known(k, 0, &shape, sizes);
    return true;
}

/* What places without elements put into a tensor: nothing. */
static bool work_out_scatter(const graft_onnx_known *k)
{
    if (graft_shape_elements(&k->in[0]) == 0 || graft_shape_elements(&k->in[1]) > 0) {
        return false;
    }
    set_known(k, 0, &k->in[0], k->data[0]);
    return true;
}

/* Several results, each by its loop. */
static bool work_out_several(const graft_onnx_known *k)
{
    graft_env *env = k->reader->env;
    graft_opaque opaque = {.out_count = (uint32_t)k->node->n_output};
    const void *in[GRAFT_OPAQUE_INPUTS_MOST] = {NULL};
    void *out[GRAFT_OPAQUE_OUTPUTS_MOST] = {NULL};
    if (k->node->n_input > GRAFT_OPAQUE_INPUTS_MOST ||
        opaque.out_count > GRAFT_OPAQUE_OUTPUTS_MOST) {
        return false;
    }
    for (size_t i = 0; i < GRAFT_OPAQUE_INPUTS_MOST; i++) {
        const bool given = i < k->node->n_input;
        opaque.in[i] = given ? k->in[i] : (graft_shape){.rank = GRAFT_RANK_UNKNOWN};
        in[i] = given ? k->data[i] : NULL;
    }
    bool fits = graft_foreign_find(k->node, &opaque);
    for (opaque.which = 0; opaque.which < opaque.out_count && fits; opaque.which++) {
        graft_shape *shape = &opaque.outs[opaque.which];
        fits = graft_foreign_shape(&opaque, in, shape);
        out[opaque.which] =
            GRAFT_NEW(k->reader->arena, uint8_t, fits ? (size_t)graft_shape_bytes(shape) : 0);
    }
    if (!fits || graft_opaque_run(env, &opaque, in, out) != GRAFT_OK) {
        graft_env_clear(env);
        return false;
    }
    for (size_t i = 0; i < k->node->n_output; i++) {
        set_known(k, i, &opaque.outs[i], out[i]);
    }
    return true;
}

bool graft_onnx_split_known(graft_onnx_reader *reader, uint32_t index)
{
    graft_onnx_known k;
    const Onnx__NodeProto *node = reader->onnx->proto->graph->node[index];
    return graft_onnx_is(node, "Split") && node->n_input > 0 &&
           graft_onnx_know(reader, index, &k) && k.in[0].rank == 1 && !k.none &&
           (k.in[0].dtype == GRAFT_DTYPE_I64 || k.in[0].dtype == GRAFT_DTYPE_I32) &&
           work_out_several(&k);
}

bool graft_onnx_work_out_none(const graft_onnx_known *k)
{
    static const char sums[] = "MatMul ReduceSum ReduceSumSquare ReduceL1 ReduceL2";
    static const uint64_t nothing = 0;
    graft_shape shapes[GRAFT_OPAQUE_OUTPUTS_MOST];
    const uint64_t most = k->none && graft_onnx_lists(sums, k->node->op_type) ? INT32_MAX : 0;
    bool none = k->node->n_output <= GRAFT_OPAQUE_OUTPUTS_MOST;
    for (size_t i = 0; i < k->node->n_output && none; i++) {
        const graft_onnx_entry *entry = graft_onnx_entry_named(k->reader->onnx, k->node->output[i]);
        shapes[i] = graft_onnx_shape_of_none(k->reader, k->node, k->in, i);
        none = entry == NULL || entry->read_count == 0 ||
               (shapes[i].rank <= GRAFT_MAX_RANK && graft_shape_elements(&shapes[i]) <= most);
    }
    for (size_t i = 0; i < k->node->n_output && none; i++) {
        if (shapes[i].rank <= GRAFT_MAX_RANK) {
            const size_t bytes = (size_t)graft_shape_bytes(&shapes[i]);
            const void *zeros = GRAFT_NEW(k->reader->arena, uint8_t, bytes);
            set_known(k, i, &shapes[i], bytes == 0 ? &nothing : zeros);
        }
    }
    return none;
}

bool graft_onnx_work_out(const graft_onnx_known *k)
{
    const char *type = k->node->op_type;
    const bool sizes = graft_onnx_lists("Shape Size", type);
    return (graft_found_is(k->node) && work_out_found(k)) ||
           (strcmp(type, "Concat") == 0 && work_out_concat(k)) ||
           (k->none && sizes && work_out_sizes(k)) ||
           (k->none && graft_onnx_lists("ScatterND ScatterElements", type) &&
            work_out_scatter(k)) ||
           (k->none && !sizes && graft_onnx_work_out_none(k)) ||
           (!k->none && graft_onnx_lists("TopK Split", type) && work_out_several(k));
}

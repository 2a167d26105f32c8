/* onnx_declare.c - the declarations of a message that is written: inputs, outputs, shapes of values
 * (see onnx_write.h). */
#include "graph/onnx/onnx_write.h"

#include <string.h>

static int64_t bound_size(const graft_model *model, const char *name)
{
    for (uint32_t i = 0; i < model->size_count; i++) {
        if (strcmp(model->sizes[i].name, name) == 0) {
            return model->sizes[i].value;
        }
    }
    return 0;
}

/* The declaration with open sizes replaced by what they were bound to. */
static Onnx__ValueInfoProto *bind_declaration(graft_onnx_writer *writer,
                                              const Onnx__ValueInfoProto *info)
{
    graft_arena *arena = writer->arena;
    Onnx__ValueInfoProto *copy = GRAFT_NEW(arena, Onnx__ValueInfoProto, 1);
    *copy = *info;
    if (info->type == NULL || info->type->tensor_type == NULL ||
        info->type->tensor_type->shape == NULL) {
        return copy;
    }
    copy->type = GRAFT_NEW(arena, Onnx__TypeProto, 1);
    *copy->type = *info->type;
    copy->type->tensor_type = GRAFT_NEW(arena, Onnx__TypeProto__Tensor, 1);
    *copy->type->tensor_type = *info->type->tensor_type;
    Onnx__TensorShapeProto *shape = GRAFT_NEW(arena, Onnx__TensorShapeProto, 1);
    *shape = *info->type->tensor_type->shape;
    copy->type->tensor_type->shape = shape;
    Onnx__TensorShapeProto__Dimension **old = shape->dim;
    shape->dim = GRAFT_NEW(arena, Onnx__TensorShapeProto__Dimension *, shape->n_dim);
    for (size_t i = 0; i < shape->n_dim; i++) {
        shape->dim[i] = GRAFT_NEW(arena, Onnx__TensorShapeProto__Dimension, 1);
        *shape->dim[i] = *old[i];
        const char *name = text_or_empty(old[i]->dim_param);
        if (name[0] == '\0') {
            name = graft_arena_printf(arena, "%s.%zu", text_or_empty(info->name), i);
        }
        int64_t value = bound_size(writer->model, name);
        if ((!old[i]->has_dim_value || old[i]->dim_value <= 0) && value > 0) {
            shape->dim[i]->has_dim_value = 1;
            shape->dim[i]->dim_value = value;
            shape->dim[i]->dim_param = NULL;
        }
    }
    return copy;
}

/* Whether a declaration still says something: of an input that is no weight any more, or of a name
 * that is written. */
static bool keep_declaration(const graft_onnx_writer *writer, const Onnx__ValueInfoProto *info)
{
    return graft_names_find(writer->taken, text_or_empty(info->name)) != GRAFT_NONE;
}

static bool is_weight(const graft_onnx_writer *writer, const char *name)
{
    uint32_t entry = graft_names_find(writer->model->onnx->names, text_or_empty(name));
    return entry != GRAFT_NONE && writer->model->onnx->entries[entry].kind == GRAFT_ONNX_WEIGHT;
}

void graft_onnx_list_declarations(graft_onnx_writer *writer, Onnx__GraphProto *graph, bool bind,
                                  bool keep_weights)
{
    const Onnx__GraphProto *from = writer->model->onnx->proto->graph;
    graph->input = GRAFT_NEW(writer->arena, Onnx__ValueInfoProto *, from->n_input);
    graph->output = GRAFT_NEW(writer->arena, Onnx__ValueInfoProto *, from->n_output);
    graph->value_info = GRAFT_NEW(writer->arena, Onnx__ValueInfoProto *, from->n_value_info);
    graph->n_input = 0;
    graph->n_value_info = 0;
    for (size_t i = 0; i < from->n_input; i++) {
        if (keep_declaration(writer, from->input[i]) &&
            (keep_weights || !is_weight(writer, from->input[i]->name))) {
            graph->input[graph->n_input++] =
                bind ? bind_declaration(writer, from->input[i]) : from->input[i];
        }
    }
    for (size_t i = 0; i < from->n_output; i++) {
        graph->output[i] = bind ? bind_declaration(writer, from->output[i]) : from->output[i];
    }
    for (size_t i = 0; i < from->n_value_info; i++) {
        if (keep_declaration(writer, from->value_info[i])) {
            graph->value_info[graph->n_value_info++] =
                bind ? bind_declaration(writer, from->value_info[i]) : from->value_info[i];
        }
    }
}

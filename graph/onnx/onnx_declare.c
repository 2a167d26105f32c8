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

/* The declaration, where wanted with open sizes replaced by what they were bound to. */
static Onnx__ValueInfoProto *bind_declaration(graft_onnx_writer *writer, bool bind,
                                              Onnx__ValueInfoProto *info)
{
    graft_arena *arena = writer->arena;
    if (!bind || graft_onnx_declared_shape(info->type) == NULL) {
        return info;
    }
    Onnx__ValueInfoProto *copy = GRAFT_COPY(arena, info, 1);
    copy->type = GRAFT_COPY(arena, info->type, 1);
    copy->type->tensor_type = GRAFT_COPY(arena, info->type->tensor_type, 1);
    Onnx__TensorShapeProto *shape = GRAFT_COPY(arena, info->type->tensor_type->shape, 1);
    copy->type->tensor_type->shape = shape;
    Onnx__TensorShapeProto__Dimension **old = shape->dim;
    shape->dim = GRAFT_NEW(arena, Onnx__TensorShapeProto__Dimension *, shape->n_dim);
    for (size_t i = 0; i < shape->n_dim; i++) {
        shape->dim[i] = GRAFT_COPY(arena, old[i], 1);
        const char *name = graft_onnx_open_size(arena, info->name, shape, i);
        int64_t value = name == NULL ? 0 : bound_size(writer->model, name);
        if (value > 0) {
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
            (keep_weights || !graft_onnx_names_weight(writer->model->onnx, from->input[i]->name))) {
            graph->input[graph->n_input++] = bind_declaration(writer, bind, from->input[i]);
        }
    }
    for (size_t i = 0; i < from->n_output; i++) {
        graph->output[i] = bind_declaration(writer, bind, from->output[i]);
    }
    for (size_t i = 0; i < from->n_value_info; i++) {
        if (keep_declaration(writer, from->value_info[i])) {
            graph->value_info[graph->n_value_info++] =
                bind_declaration(writer, bind, from->value_info[i]);
        }
    }
}

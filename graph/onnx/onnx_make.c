/* onnx_make.c - ONNX messages made from scratch (see onnx.h). */
#include "graph/onnx/onnx.h"

#include <string.h>

void *graft_onnx_append(graft_arena *arena, const void *list, size_t count, void *item)
{
    void **longer = GRAFT_NEW(arena, void *, count + 1);
    if (count > 0) {
        memcpy(longer, list, count * sizeof(longer[0]));
    }
    longer[count] = item;
    return longer;
}

const char *graft_onnx_open_size(graft_arena *arena, const char *value,
                                 const Onnx__TensorShapeProto *shape, size_t axis)
{
    const Onnx__TensorShapeProto__Dimension *dim = shape->dim[axis];
    const char *name = text_or_empty(dim->dim_param);
    if (dim->has_dim_value && dim->dim_value > 0) {
        return NULL;
    }
    return name[0] != '\0' ? name : graft_arena_printf(arena, "%s.%zu", text_or_empty(value), axis);
}

static char **copy_texts(graft_arena *arena, const char *const *texts, size_t count)
{
    char **copy = GRAFT_NEW(arena, char *, count);
    for (size_t i = 0; i < count; i++) {
        copy[i] = graft_borrow(texts[i]);
    }
    return copy;
}

Onnx__NodeProto *graft_onnx_make_node(graft_arena *arena, const char *op_type,
                                      const char *const *inputs, size_t input_count,
                                      const char *const *outputs, size_t output_count)
{
    Onnx__NodeProto *node = GRAFT_NEW(arena, Onnx__NodeProto, 1);
    onnx__node_proto__init(node);
    node->op_type = graft_borrow(op_type);
    node->n_input = input_count;
    node->input = copy_texts(arena, inputs, input_count);
    node->n_output = output_count;
    node->output = copy_texts(arena, outputs, output_count);
    return node;
}

static Onnx__AttributeProto *add_attribute(graft_arena *arena, Onnx__NodeProto *node,
                                           const char *name,
                                           Onnx__AttributeProto__AttributeType type)
{
    Onnx__AttributeProto *attribute = GRAFT_NEW(arena, Onnx__AttributeProto, 1);
    onnx__attribute_proto__init(attribute);
    attribute->name = graft_borrow(name);
    attribute->has_type = 1;
    attribute->type = type;
    node->attribute = graft_onnx_append(arena, node->attribute, node->n_attribute++, attribute);
    return attribute;
}

void graft_onnx_set_int(graft_arena *arena, Onnx__NodeProto *node, const char *name, int64_t value)
{
    Onnx__AttributeProto *attribute =
        add_attribute(arena, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    attribute->has_i = 1;
    attribute->i = value;
}

void graft_onnx_set_float(graft_arena *arena, Onnx__NodeProto *node, const char *name, float value)
{
    Onnx__AttributeProto *attribute =
        add_attribute(arena, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    attribute->has_f = 1;
    attribute->f = value;
}

void graft_onnx_set_text(graft_arena *arena, Onnx__NodeProto *node, const char *name,
                         const char *value)
{
    Onnx__AttributeProto *attribute =
        add_attribute(arena, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    attribute->has_s = 1;
    attribute->s.len = strlen(value);
    attribute->s.data = (uint8_t *)graft_arena_strdup(arena, value);
}

void graft_onnx_set_ints(graft_arena *arena, Onnx__NodeProto *node, const char *name,
                         const int64_t *values, size_t count)
{
    Onnx__AttributeProto *attribute =
        add_attribute(arena, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    attribute->n_ints = count;
    attribute->ints = GRAFT_COPY(arena, values, count);
}

Onnx__StringStringEntryProto *graft_onnx_make_entry(graft_arena *arena, const char *key,
                                                    const char *value)
{
    Onnx__StringStringEntryProto *entry = GRAFT_NEW(arena, Onnx__StringStringEntryProto, 1);
    onnx__string_string_entry_proto__init(entry);
    entry->key = graft_borrow(key);
    entry->value = graft_borrow(value);
    return entry;
}

Onnx__TensorProto *graft_onnx_make_tensor(graft_arena *arena, const char *name, int32_t dtype,
                                          const int64_t *dims, size_t rank, const void *data)
{
    size_t bytes = graft_onnx_type_bytes(dtype);
    Onnx__TensorProto *tensor = GRAFT_NEW(arena, Onnx__TensorProto, 1);
    onnx__tensor_proto__init(tensor);
    tensor->name = graft_borrow(name);
    tensor->has_data_type = 1;
    tensor->data_type = dtype;
    tensor->n_dims = rank;
    tensor->dims = GRAFT_NEW(arena, int64_t, rank);
    for (size_t i = 0; i < rank; i++) {
        tensor->dims[i] = dims[i];
        bytes *= (size_t)dims[i];
    }
    tensor->has_raw_data = 1;
    tensor->raw_data.len = bytes;
    tensor->raw_data.data = graft_borrow(data);
    return tensor;
}

Onnx__TensorProto *graft_onnx_make_weight(graft_arena *arena, const char *name,
                                          const graft_shape *shape, const void *data, bool *fits)
{
    int64_t dims[GRAFT_MAX_RANK] = {0};
    for (uint32_t i = 0; i < shape->rank; i++) {
        dims[i] = shape->dims[i];
    }
    if (graft_half_is(shape->dtype)) {
        const size_t count = (size_t)graft_shape_elements(shape);
        uint16_t *halves = GRAFT_NEW(arena, uint16_t, count);
        *fits = graft_half_narrow(shape->dtype, data, count, halves) && *fits;
        data = halves;
    }
    return graft_onnx_make_tensor(arena, name, shape->dtype, dims, shape->rank, data);
}

Onnx__ValueInfoProto *graft_onnx_make_port(graft_arena *arena, const char *name, int32_t dtype,
                                           const int64_t *dims, size_t rank)
{
    Onnx__ValueInfoProto *port = GRAFT_NEW(arena, Onnx__ValueInfoProto, 1);
    Onnx__TypeProto *type = GRAFT_NEW(arena, Onnx__TypeProto, 1);
    Onnx__TypeProto__Tensor *tensor = GRAFT_NEW(arena, Onnx__TypeProto__Tensor, 1);
    Onnx__TensorShapeProto *shape = GRAFT_NEW(arena, Onnx__TensorShapeProto, 1);
    onnx__value_info_proto__init(port);
    onnx__type_proto__init(type);
    onnx__type_proto__tensor__init(tensor);
    onnx__tensor_shape_proto__init(shape);
    shape->n_dim = rank;
    shape->dim = GRAFT_NEW(arena, Onnx__TensorShapeProto__Dimension *, rank);
    for (size_t i = 0; i < rank; i++) {
        shape->dim[i] = GRAFT_NEW(arena, Onnx__TensorShapeProto__Dimension, 1);
        onnx__tensor_shape_proto__dimension__init(shape->dim[i]);
        shape->dim[i]->has_dim_value = 1;
        shape->dim[i]->dim_value = dims[i];
    }
    tensor->has_elem_type = 1;
    tensor->elem_type = dtype;
    tensor->shape = shape;
    type->tensor_type = tensor;
    port->name = graft_borrow(name);
    port->type = type;
    return port;
}

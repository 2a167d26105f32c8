/* onnx_tensor.c - tensors of ONNX files: where their bytes are and whether they fit (see onnx.h).
 *
 * A tensor's elements are raw little-endian bytes, or a list of a wider type, or lie in a file
 * beside the model ("external data": location, offset, length). Weights borrow bytes wherever they
 * have the right width. */
#include "graph/onnx/onnx.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "ONNX stores little-endian bytes, which are used here as they are");

/* Smaller tensors stay in the model; larger ones start on a page, so that they can be mapped. */
enum { EXTERNAL_LEAST_BYTES = 1024, EXTERNAL_ALIGNMENT = 4096 };

/* ------------------------------------------------------------- external data, reading */

typedef struct {
    const char *location;
    uint64_t offset;
    uint64_t length; /* UINT64_MAX: to the end of the file. */
} external_place;

static graft_status parse_number(graft_env *env, const char *file, const Onnx__TensorProto *tensor,
                                 const Onnx__StringStringEntryProto *entry, uint64_t *number)
{
    char *end = NULL;
    const char *text = text_or_empty(entry->value);
    errno = 0;
    *number = strtoull(text, &end, 10);
    GRAFT_RETURN_IF(errno != 0 || end == text || *end != '\0' || text[0] == '-',
                    GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                               "%s: tensor '%s': external data: %s is '%s', not a number", file,
                               text_or_empty(tensor->name), entry->key, text));
    return GRAFT_OK;
}

/* Only files in the model's folder or below it. */
static bool is_safe_location(const char *location)
{
    if (location[0] == '\0' || location[0] == '/') {
        return false;
    }
    for (const char *part = location; part != NULL; part = strchr(part, '/')) {
        part += part[0] == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0')) {
            return false;
        }
    }
    return true;
}

static graft_status find_place(graft_env *env, const char *file, const Onnx__TensorProto *tensor,
                               external_place *place)
{
    *place = (external_place){.location = "", .length = UINT64_MAX};
    for (size_t i = 0; i < tensor->n_external_data; i++) {
        const Onnx__StringStringEntryProto *entry = tensor->external_data[i];
        const char *key = text_or_empty(entry->key);
        if (strcmp(key, "location") == 0 && entry->value != NULL) {
            place->location = entry->value;
        } else if (strcmp(key, "offset") == 0) {
            GRAFT_PASS(parse_number(env, file, tensor, entry, &place->offset));
        } else if (strcmp(key, "length") == 0) {
            GRAFT_PASS(parse_number(env, file, tensor, entry, &place->length));
        }
    }
    GRAFT_RETURN_IF(!is_safe_location(place->location),
                    GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                               "%s: tensor '%s': external data: location '%s' is not a file in the "
                               "model's folder",
                               file, text_or_empty(tensor->name), place->location));
    return GRAFT_OK;
}

static bool read_range(int file, uint8_t *data, uint64_t offset, uint64_t size)
{
    uint64_t have = 0;
    while (have < size) {
        ssize_t got = pread(file, data + have, size - have, (off_t)(offset + have));
        if (got <= 0 && !(got < 0 && errno == EINTR)) {
            return false;
        }
        have += got > 0 ? (uint64_t)got : 0;
    }
    return true;
}

static graft_status read_place(graft_onnx_reader *reader, const char *path, int file,
                               const external_place *place, Onnx__TensorProto *tensor)
{
    struct stat info;
    GRAFT_RETURN_IF(fstat(file, &info) != 0 || !S_ISREG(info.st_mode),
                    GRAFT_FAIL(reader->env, GRAFT_IO, "%s: is not a file that can be read", path));
    uint64_t size = (uint64_t)info.st_size;
    uint64_t length = place->length;
    if (length == UINT64_MAX && place->offset <= size) {
        length = size - place->offset;
    }
    GRAFT_RETURN_IF(place->offset > size || length > size - place->offset,
                    GRAFT_FAIL(reader->env, GRAFT_BAD_INPUT,
                               "%s: tensor '%s' lies at %" PRIu64 " to %" PRIu64
                               " of '%s', which has %" PRIu64 " bytes",
                               reader->model->file, text_or_empty(tensor->name), place->offset,
                               place->offset + length, place->location, size));
    uint8_t *data = graft_arena_alloc(reader->arena, length);
    if (!read_range(file, data, place->offset, length)) {
        return GRAFT_FAIL(reader->env, GRAFT_IO, "%s: cannot read: %s", path, strerror(errno));
    }
    tensor->has_raw_data = 1;
    tensor->raw_data.len = length;
    tensor->raw_data.data = data;
    tensor->n_external_data = 0;
    tensor->has_data_location = 0;
    tensor->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__DEFAULT;
    return GRAFT_OK;
}

static graft_status load_tensor(graft_onnx_reader *reader, Onnx__TensorProto *tensor)
{
    graft_status status = GRAFT_OK;
    GRAFT_SCOPED(reader->env->scratch);
    int file = -1;
    external_place place;
    GRAFT_CHECK(find_place(reader->env, reader->model->file, tensor, &place));
    if (reader->folder == NULL) {
        status = GRAFT_FAIL(reader->env, GRAFT_BAD_INPUT,
                            "%s: tensor '%s' lies in another file, '%s', which is not at hand",
                            reader->model->file, text_or_empty(tensor->name), place.location);
        goto done;
    }
    char *path = graft_arena_printf(reader->env->scratch, "%s/%s", reader->folder, place.location);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        status =
            GRAFT_FAIL(reader->env, GRAFT_IO, "%s: cannot open, for tensor '%s' of %s: %s", path,
                       text_or_empty(tensor->name), reader->model->file, strerror(errno));
        goto done;
    }
    status = read_place(reader, path, file, &place, tensor);
done:
    if (file >= 0) {
        (void)close(file);
    }
    return status;
}

/* --------------------------------------------- all tensors of a message, wherever they are */

static void *member_at(ProtobufCMessage *message, unsigned offset)
{
    return (char *)message + offset;
}

static graft_status load_tensors(graft_onnx_reader *reader, ProtobufCMessage *message,
                                 uint32_t depth)
{
    if (message->descriptor == &onnx__tensor_proto__descriptor) {
        Onnx__TensorProto *tensor = (Onnx__TensorProto *)message;
        return tensor->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL
                   ? load_tensor(reader, tensor)
                   : GRAFT_OK;
    }
    for (uint32_t f = 0; f < message->descriptor->n_fields && depth < GRAFT_WIRE_DEPTH; f++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[f];
        const bool is_list = field->label == PROTOBUF_C_LABEL_REPEATED;
        void *member = member_at(message, field->offset);
        if (field->type != PROTOBUF_C_TYPE_MESSAGE) {
            continue;
        }
        ProtobufCMessage **items = is_list ? *(ProtobufCMessage ***)member : member;
        const size_t count = is_list ? *(size_t *)member_at(message, field->quantifier_offset) : 1;
        for (size_t i = 0; i < count; i++) {
            if (items[i] != NULL) {
                GRAFT_PASS(load_tensors(reader, items[i], depth + 1));
            }
        }
    }
    return GRAFT_OK;
}

graft_status graft_onnx_load_external(graft_onnx_reader *reader, Onnx__ModelProto *proto)
{
    return load_tensors(reader, &proto->base, 0);
}

/* ------------------------------------------------------------------------------ weights */

/* ONNX's element types; enum graft_dtype lists those that more than this file knows. */
enum {
    TYPE_TEXT = 8,
    TYPE_U32 = 12,
    TYPE_U64 = 13,
    TYPE_C64 = 14,
    TYPE_C128 = 15,
    TYPE_F8_FIRST = 17,
    TYPE_F8_LAST = 20,
    TYPE_U4 = 21,
    TYPE_I4 = 22
};

size_t graft_onnx_type_bytes(int32_t type)
{
    switch (type) {
    case TYPE_U32:
        return 4;
    case TYPE_U64:
    case TYPE_C64:
        return 8;
    case TYPE_C128:
        return 16;
    default:
        break;
    }
    const graft_shape one = {.dtype = type < 0 || type > UINT8_MAX ? 0 : (uint8_t)type};
    return type >= TYPE_F8_FIRST && type <= TYPE_F8_LAST ? 1 : (size_t)graft_shape_bytes(&one);
}

size_t graft_onnx_held_bytes(uint32_t dtype)
{
    return graft_half_is(dtype) ? sizeof(float) : graft_onnx_type_bytes((int32_t)dtype);
}

/* The typed list that holds elements of `type`, the width of its items, and their number; an item
 * may be wider than an element, and a complex number is two items. */
typedef struct {
    const void *items;
    size_t item_bytes;
    size_t count;
} typed_list;

static typed_list find_typed_list(const Onnx__TensorProto *tensor)
{
    switch (tensor->data_type) {
    case GRAFT_DTYPE_F32:
    case TYPE_C64:
        return (typed_list){tensor->float_data, sizeof(float), tensor->n_float_data};
    case GRAFT_DTYPE_F64:
    case TYPE_C128:
        return (typed_list){tensor->double_data, sizeof(double), tensor->n_double_data};
    case GRAFT_DTYPE_I64:
        return (typed_list){tensor->int64_data, sizeof(int64_t), tensor->n_int64_data};
    case TYPE_U32:
    case TYPE_U64:
        return (typed_list){tensor->uint64_data, sizeof(uint64_t), tensor->n_uint64_data};
    default:
        return (typed_list){tensor->int32_data, sizeof(int32_t), tensor->n_int32_data};
    }
}

/* The low `bytes` of every item. */
static const void *narrow_list(graft_arena *arena, const typed_list *list, size_t bytes)
{
    uint8_t *narrow = graft_arena_alloc(arena, list->count * bytes);
    const uint8_t *items = list->items;
    for (size_t i = 0; i < list->count; i++) {
        memcpy(narrow + i * bytes, items + i * list->item_bytes, bytes);
    }
    return narrow;
}

/* Counts the elements and fills the shape; false when a size is negative or the product overflows.
 */
static bool measure_tensor(const Onnx__TensorProto *tensor, graft_shape *shape, uint64_t *elements)
{
    bool known = tensor->n_dims <= GRAFT_MAX_RANK;
    bool empty = false;
    *elements = 1;
    *shape = (graft_shape){.rank = known ? (uint8_t)tensor->n_dims : GRAFT_RANK_UNKNOWN};
    shape->dtype = tensor->data_type < 0 || tensor->data_type > UINT8_MAX
                       ? GRAFT_DTYPE_UNKNOWN
                       : (uint8_t)tensor->data_type;
    for (size_t i = 0; i < tensor->n_dims; i++) {
        int64_t size = tensor->dims[i];
        if (size < 0) {
            return false;
        }
        empty = empty || size == 0;
        known = known && size > 0 && size <= INT32_MAX;
        if (known) {
            shape->dims[i] = (int32_t)size;
        }
        if (!empty && __builtin_mul_overflow(*elements, (uint64_t)size, elements)) {
            return false;
        }
    }
    *elements = empty ? 0 : *elements;
    if (!known) {
        *shape = (graft_shape){.rank = GRAFT_RANK_UNKNOWN, .dtype = shape->dtype};
    }
    return true;
}

static graft_status fail_data(graft_onnx_reader *reader, const Onnx__TensorProto *tensor,
                              const char *what, size_t have, const char *unit, uint64_t need)
{
    return GRAFT_FAIL(reader->env, GRAFT_BAD_INPUT,
                      "%s: %s '%s' has %zu %s where its shape needs %" PRIu64, reader->model->file,
                      what, text_or_empty(tensor->name), have, unit, need);
}

/* Elements that are not stored as raw bytes. */
static graft_status borrow_typed_list(graft_onnx_reader *reader, const Onnx__TensorProto *tensor,
                                      const char *what, uint64_t elements,
                                      graft_model_weight *weight)
{
    size_t width = graft_onnx_type_bytes(tensor->data_type);
    typed_list list = find_typed_list(tensor);
    uint64_t items = elements;
    if (tensor->data_type == TYPE_C64 || tensor->data_type == TYPE_C128) {
        items = 2 * elements;
        width /= 2;
    }
    GRAFT_RETURN_IF(list.count != items,
                    fail_data(reader, tensor, what, list.count, "elements", items));
    weight->data = list.item_bytes == width ? list.items : narrow_list(reader->arena, &list, width);
    weight->data_bytes = list.count * width;
    return GRAFT_OK;
}

/* Float16 and bfloat16 are held in binary32: once for each tensor, for a model whose sizes stay
 * open is read several times. The message keeps them where it has numbers of binary32, whose count
 * stays 0, so that nothing is written of it. */
static void widen_weight(graft_onnx_reader *reader, const Onnx__TensorProto *tensor,
                         graft_model_weight *weight)
{
    const size_t count = weight->data_bytes / sizeof(uint16_t);
    const bool is_free = tensor->n_float_data == 0;
    float *wide = is_free ? tensor->float_data : NULL;
    if (!graft_half_is((uint32_t)tensor->data_type) || count == 0) {
        return;
    }
    if (wide == NULL) {
        wide = GRAFT_NEW(reader->arena, float, count);
        graft_half_widen((uint32_t)tensor->data_type, weight->data, count, wide);
    }
    if (is_free) {
        Onnx__TensorProto *own = graft_borrow(tensor); /* Which are ours to change, though. */
        own->float_data = wide;
    }
    weight->data = wide;
    weight->data_bytes = count * sizeof(float);
}

bool graft_onnx_is_of_nibbles(const Onnx__TensorProto *tensor)
{
    return tensor != NULL && (tensor->data_type == TYPE_U4 || tensor->data_type == TYPE_I4);
}

/* Numbers of 4 bits, two in a byte, the first one below: each gets a byte of its own. */
static graft_status widen_nibbles(graft_onnx_reader *reader, const Onnx__TensorProto *tensor,
                                  const char *what, uint64_t elements, graft_model_weight *weight)
{
    const bool is_signed = tensor->data_type == TYPE_I4;
    const size_t have = tensor->has_raw_data ? tensor->raw_data.len : tensor->n_int32_data;
    GRAFT_RETURN_IF(have != (elements + 1) / 2,
                    fail_data(reader, tensor, what, have, "bytes", (elements + 1) / 2));
    uint8_t *wide = graft_arena_alloc(reader->arena, elements);
    for (uint64_t i = 0; i < elements; i++) {
        const uint32_t pair = tensor->has_raw_data ? tensor->raw_data.data[i / 2]
                                                   : (uint32_t)tensor->int32_data[i / 2];
        const uint32_t number = pair >> (i % 2 * 4) & 15U;
        wide[i] = (uint8_t)(is_signed && number > 7 ? number + 0xf0U : number);
    }
    weight->data = wide;
    weight->data_bytes = elements;
    weight->shape.dtype = is_signed ? GRAFT_DTYPE_I8 : GRAFT_DTYPE_U8;
    return GRAFT_OK;
}

graft_status graft_onnx_weight_of_tensor(graft_onnx_reader *reader, const Onnx__TensorProto *tensor,
                                         const char *what, graft_model_weight *weight)
{
    uint64_t elements = 0;
    graft_model_weight made = {.name = tensor->name, .tensor = tensor};
    size_t width = graft_onnx_type_bytes(tensor->data_type);
    GRAFT_RETURN_IF(!measure_tensor(tensor, &made.shape, &elements) || elements > SIZE_MAX / 16,
                    GRAFT_FAIL(reader->env, GRAFT_BAD_INPUT, "%s: %s '%s' has impossible sizes",
                               reader->model->file, what, text_or_empty(tensor->name)));
    if (tensor->data_type == TYPE_TEXT) {
        GRAFT_RETURN_IF(tensor->n_string_data != elements,
                        fail_data(reader, tensor, what, tensor->n_string_data, "texts", elements));
    } else if (graft_onnx_is_of_nibbles(tensor) && graft_onnx_is_to_run(reader)) {
        GRAFT_PASS(widen_nibbles(reader, tensor, what, elements, &made));
    } else if (tensor->has_raw_data && width > 0) {
        if (tensor->raw_data.len != elements * width) {
            return fail_data(reader, tensor, what, tensor->raw_data.len, "bytes", elements * width);
        }
        made.data = tensor->raw_data.data;
        made.data_bytes = tensor->raw_data.len;
    } else if (width > 0) {
        GRAFT_PASS(borrow_typed_list(reader, tensor, what, elements, &made));
    }
    widen_weight(reader, tensor, &made);
    made.shape.dtype = graft_onnx_dtype(reader, made.shape.dtype);
    *weight = made;
    return GRAFT_OK;
}

/* ------------------------------------------------------------- external data, writing */

static bool goes_outside(const Onnx__TensorProto *tensor)
{
    return tensor->has_raw_data && tensor->raw_data.len >= EXTERNAL_LEAST_BYTES;
}

static size_t align_offset(size_t offset)
{
    return (offset + EXTERNAL_ALIGNMENT - 1) / EXTERNAL_ALIGNMENT * EXTERNAL_ALIGNMENT;
}

size_t graft_onnx_external_bytes(const Onnx__GraphProto *graph)
{
    size_t size = 0;
    for (size_t i = 0; i < graph->n_initializer; i++) {
        if (goes_outside(graph->initializer[i])) {
            size = align_offset(size) + graph->initializer[i]->raw_data.len;
        }
    }
    return size;
}

static void point_outside(graft_arena *arena, Onnx__TensorProto *tensor, const char *location,
                          size_t offset)
{
    enum { ENTRIES = 3 };
    tensor->n_external_data = ENTRIES;
    tensor->external_data = GRAFT_NEW(arena, Onnx__StringStringEntryProto *, ENTRIES);
    tensor->external_data[0] = graft_onnx_make_entry(arena, "location", location);
    tensor->external_data[1] =
        graft_onnx_make_entry(arena, "offset", graft_arena_printf(arena, "%zu", offset));
    tensor->external_data[2] = graft_onnx_make_entry(
        arena, "length", graft_arena_printf(arena, "%zu", tensor->raw_data.len));
    tensor->has_data_location = 1;
    tensor->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    tensor->has_raw_data = 0;
    tensor->raw_data.len = 0;
    tensor->raw_data.data = NULL;
}

void graft_onnx_store_external(graft_arena *arena, Onnx__GraphProto *graph, const char *location,
                               uint8_t *data)
{
    size_t offset = 0;
    for (size_t i = 0; i < graph->n_initializer; i++) {
        if (!goes_outside(graph->initializer[i])) {
            continue;
        }
        Onnx__TensorProto *tensor = GRAFT_COPY(arena, graph->initializer[i], 1);
        offset = align_offset(offset);
        size_t length = tensor->raw_data.len;
        memcpy(data + offset, tensor->raw_data.data, length);
        point_outside(arena, tensor, location, offset);
        graph->initializer[i] = tensor;
        offset += length;
    }
}

/* wire.c - a walk over protobuf's wire format before it is decoded (see wire.h). */
#include "graph/base/wire.h"

#include "graph/base/file.h"

#include <string.h>

enum { VARINT_MOST = 10, WIRE_TYPE_BITS = 3, FIELD_MOST = (1 << 29) - 1 };

typedef enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_LENGTH = 2, WIRE_FIXED32 = 5 } wire_type;

typedef struct {
    graft_env *env;
    const char *file;
    const uint8_t *data;
    size_t at;
    const ProtobufCMessageDescriptor *type; /* Of the message that it is in, */
    size_t end;                             /* which ends here. */
    uint32_t depth;
} wire_walk;

static graft_status fail_at(const wire_walk *walk, size_t at, const char *what)
{
    return GRAFT_FAIL(walk->env, GRAFT_BAD_INPUT, "%s: byte %zu: %s in %s", walk->file, at, what,
                      walk->type->short_name);
}

static graft_status fail_field(const wire_walk *walk, size_t at,
                               const ProtobufCFieldDescriptor *field, const char *what)
{
    return GRAFT_FAIL(walk->env, GRAFT_BAD_INPUT, "%s: byte %zu: %s.%s %s", walk->file, at,
                      walk->type->short_name, field == NULL ? "(unknown field)" : field->name,
                      what);
}

static graft_status read_varint(wire_walk *walk, uint64_t *value)
{
    size_t end = walk->end;
    size_t start = walk->at;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < VARINT_MOST && walk->at < end; i++) {
        uint8_t byte = walk->data[walk->at++];
        sum |= (uint64_t)(byte & 0x7fU) << (7 * i);
        if ((byte & 0x80U) == 0) {
            *value = sum;
            return GRAFT_OK;
        }
    }
    return fail_at(walk, start, "a number does not end");
}

static wire_type type_of_field(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return WIRE_FIXED32;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return WIRE_FIXED64;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return WIRE_LENGTH;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_BOOL:
    case PROTOBUF_C_TYPE_ENUM:
        break;
    }
    return WIRE_VARINT;
}

/* Many numbers in one run of bytes; each must end inside the run. */
static graft_status check_packed(wire_walk *walk, const ProtobufCFieldDescriptor *field,
                                 size_t size)
{
    wire_type type = type_of_field(field);
    size_t start = walk->at;
    if (type == WIRE_VARINT) {
        bool ends = size == 0 || (walk->data[start + size - 1] & 0x80U) == 0;
        size_t run = 0;
        for (size_t i = 0; i < size && run < VARINT_MOST; i++) {
            run = (walk->data[start + i] & 0x80U) != 0 ? run + 1 : 0;
        }
        GRAFT_RETURN_IF(!ends || run >= VARINT_MOST,
                        fail_field(walk, start, field, "holds a number that does not end"));
    } else if (size % (type == WIRE_FIXED32 ? 4 : 8) != 0) {
        return fail_field(walk, start, field, "ends inside a number");
    }
    walk->at += size;
    return GRAFT_OK;
}

static graft_status walk_field(wire_walk *walk);

/* A message of `size` bytes. */
static graft_status walk_message(wire_walk *walk, const ProtobufCMessageDescriptor *type,
                                 size_t size)
{
    const wire_walk outer = *walk;
    walk->type = type;
    walk->end = walk->at + size;
    walk->depth++;
    while (walk->at < walk->end) {
        GRAFT_PASS(walk_field(walk));
    }
    walk->type = outer.type;
    walk->end = outer.end;
    walk->depth = outer.depth;
    return GRAFT_OK;
}

/* `field` is NULL for one that the description does not list. */
static graft_status walk_bytes(wire_walk *walk, const ProtobufCFieldDescriptor *field)
{
    size_t start = walk->at;
    uint64_t size = 0;
    GRAFT_PASS(read_varint(walk, &size));
    GRAFT_RETURN_IF(size > walk->end - walk->at,
                    fail_field(walk, start, field, "runs past the end (is the file cut off?)"));
    if (field != NULL && field->type == PROTOBUF_C_TYPE_MESSAGE) {
        return walk->depth == GRAFT_WIRE_DEPTH
                   ? fail_field(walk, walk->at, field, "is nested too deep")
                   : walk_message(walk, field->descriptor, size);
    }
    GRAFT_RETURN_IF(field != NULL && field->type == PROTOBUF_C_TYPE_STRING && size > 0 &&
                        memchr(walk->data + walk->at, 0, size) != NULL,
                    fail_field(walk, walk->at, field, "holds a zero byte"));
    if (field != NULL && type_of_field(field) != WIRE_LENGTH) {
        return check_packed(walk, field, size);
    }
    walk->at += size;
    return GRAFT_OK;
}

static graft_status walk_fixed(wire_walk *walk, const ProtobufCFieldDescriptor *field, size_t size)
{
    GRAFT_RETURN_IF(size > walk->end - walk->at,
                    fail_field(walk, walk->at, field, "runs past the end (is the file cut off?)"));
    walk->at += size;
    return GRAFT_OK;
}

static graft_status walk_field(wire_walk *walk)
{
    size_t start = walk->at;
    uint64_t tag = 0;
    uint64_t ignored = 0;
    GRAFT_PASS(read_varint(walk, &tag));
    uint64_t number = tag >> WIRE_TYPE_BITS;
    uint32_t type = (uint32_t)tag & ((1U << WIRE_TYPE_BITS) - 1);
    GRAFT_RETURN_IF(number == 0 || number > FIELD_MOST,
                    fail_at(walk, start, "an impossible field number"));
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(walk->type, (unsigned)number);
    if (field != NULL && type != (uint32_t)type_of_field(field) &&
        !(type == WIRE_LENGTH && field->label == PROTOBUF_C_LABEL_REPEATED)) {
        return fail_field(walk, start, field, "has another kind of content than the format says");
    }
    switch (type) {
    case WIRE_VARINT:
        return read_varint(walk, &ignored);
    case WIRE_FIXED64:
        return walk_fixed(walk, field, 8);
    case WIRE_LENGTH:
        return walk_bytes(walk, field);
    case WIRE_FIXED32:
        return walk_fixed(walk, field, 4);
    default:
        return fail_at(walk, start, "a kind of content that does not exist");
    }
}

static void *allocate_in_arena(void *arena, size_t size) { return graft_arena_alloc(arena, size); }

static void free_in_arena(void *arena, void *memory)
{
    (void)arena;
    (void)memory;
}

graft_status graft_wire_decode(graft_env *env, graft_arena *arena, graft_bytes bytes,
                               const ProtobufCMessageDescriptor *type, ProtobufCMessage **message)
{
    graft_mark mark = graft_arena_mark(arena);
    ProtobufCAllocator allocator = {
        .alloc = allocate_in_arena, .free = free_in_arena, .allocator_data = arena};
    wire_walk walk = {.env = env, .file = bytes.file, .data = bytes.data};
    GRAFT_PASS(walk_message(&walk, type, bytes.size));
    ProtobufCMessage *decoded = protobuf_c_message_unpack(type, &allocator, bytes.size, bytes.data);
    if (decoded == NULL) {
        graft_arena_release(arena, mark);
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: does not decode as %s", bytes.file,
                          type->short_name);
    }
    *message = decoded;
    return GRAFT_OK;
}

graft_status graft_wire_read(graft_env *env, graft_arena *arena, const char *path,
                             const ProtobufCMessageDescriptor *type, ProtobufCMessage **message)
{
    GRAFT_SCOPED(arena == env->scratch ? env->unit : env->scratch);
    uint8_t *data = NULL;
    size_t size = 0;
    GRAFT_PASS(graft_file_read(env, graft_scoped.arena, path, &data, &size));
    return graft_wire_decode(env, arena, (graft_bytes){path, data, size}, type, message);
}

graft_status graft_wire_copy(graft_env *env, graft_arena *arena, const char *file,
                             const ProtobufCMessage *from, ProtobufCMessage **to)
{
    GRAFT_SCOPED(env->scratch);
    uint8_t *data = NULL;
    size_t size = 0;
    graft_wire_encode(env->scratch, from, &data, &size);
    return graft_wire_decode(env, arena, (graft_bytes){file, data, size}, from->descriptor, to);
}

graft_status graft_wire_write(graft_env *env, const char *path, const ProtobufCMessage *message)
{
    GRAFT_SCOPED(env->scratch);
    uint8_t *data = NULL;
    size_t size = 0;
    graft_wire_encode(env->scratch, message, &data, &size);
    return graft_file_write(env, path, data, size);
}

void graft_wire_encode(graft_arena *arena, const ProtobufCMessage *message, uint8_t **data,
                       size_t *size)
{
    size_t need = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = graft_arena_alloc(arena, need);
    *size = protobuf_c_message_pack(message, bytes);
    *data = bytes;
}

/* wire.c - a walk over protobuf's wire format with an explicit stack (see wire.h). */
#include "graph/base/wire.h"

#include <string.h>

enum { VARINT_MOST = 10, WIRE_TYPE_BITS = 3, FIELD_MOST = (1 << 29) - 1 };

typedef enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_LENGTH = 2, WIRE_FIXED32 = 5 } wire_type;

typedef struct {
    const ProtobufCMessageDescriptor *type;
    size_t end;
} wire_frame;

typedef struct {
    graft_env *env;
    const char *file;
    const uint8_t *data;
    size_t at;
    wire_frame frames[GRAFT_WIRE_DEPTH];
    uint32_t depth;
} wire_walk;

static graft_status fail_at(const wire_walk *walk, size_t at, const char *what)
{
    const wire_frame *frame = &walk->frames[walk->depth - 1];
    return GRAFT_FAIL(walk->env, GRAFT_BAD_INPUT, "%s: byte %zu: %s in %s", walk->file, at, what,
                      frame->type->short_name);
}

static graft_status fail_field(const wire_walk *walk, size_t at,
                               const ProtobufCFieldDescriptor *field, const char *what)
{
    const wire_frame *frame = &walk->frames[walk->depth - 1];
    return GRAFT_FAIL(walk->env, GRAFT_BAD_INPUT, "%s: byte %zu: %s.%s %s", walk->file, at,
                      frame->type->short_name, field == NULL ? "(unknown field)" : field->name,
                      what);
}

static graft_status read_varint(wire_walk *walk, uint64_t *value)
{
    size_t end = walk->frames[walk->depth - 1].end;
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

/* Fields are sorted by number. */
static const ProtobufCFieldDescriptor *find_field(const ProtobufCMessageDescriptor *type,
                                                  uint64_t number)
{
    uint32_t low = 0;
    uint32_t high = type->n_fields;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (type->fields[middle].id == number) {
            return &type->fields[middle];
        }
        if (type->fields[middle].id < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
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
        if (!ends || run >= VARINT_MOST) {
            return fail_field(walk, start, field, "holds a number that does not end");
        }
    } else if (size % (type == WIRE_FIXED32 ? 4 : 8) != 0) {
        return fail_field(walk, start, field, "ends inside a number");
    }
    walk->at += size;
    return GRAFT_OK;
}

static graft_status enter_message(wire_walk *walk, const ProtobufCFieldDescriptor *field,
                                  size_t size)
{
    if (walk->depth == GRAFT_WIRE_DEPTH) {
        return fail_field(walk, walk->at, field, "is nested too deep");
    }
    walk->frames[walk->depth++] = (wire_frame){.type = field->descriptor, .end = walk->at + size};
    return GRAFT_OK;
}

/* `field` is NULL for one that the description does not list. */
static graft_status walk_bytes(wire_walk *walk, const ProtobufCFieldDescriptor *field)
{
    size_t start = walk->at;
    uint64_t size = 0;
    GRAFT_PASS(read_varint(walk, &size));
    if (size > walk->frames[walk->depth - 1].end - walk->at) {
        return fail_field(walk, start, field, "runs past the end (is the file cut off?)");
    }
    if (field != NULL && field->type == PROTOBUF_C_TYPE_MESSAGE) {
        return enter_message(walk, field, size);
    }
    if (field != NULL && field->type == PROTOBUF_C_TYPE_STRING && size > 0 &&
        memchr(walk->data + walk->at, 0, size) != NULL) {
        return fail_field(walk, walk->at, field, "holds a zero byte");
    }
    if (field != NULL && type_of_field(field) != WIRE_LENGTH) {
        return check_packed(walk, field, size);
    }
    walk->at += size;
    return GRAFT_OK;
}

static graft_status walk_fixed(wire_walk *walk, const ProtobufCFieldDescriptor *field, size_t size)
{
    if (size > walk->frames[walk->depth - 1].end - walk->at) {
        return fail_field(walk, walk->at, field, "runs past the end (is the file cut off?)");
    }
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
    if (number == 0 || number > FIELD_MOST) {
        return fail_at(walk, start, "an impossible field number");
    }
    const ProtobufCFieldDescriptor *field = find_field(walk->frames[walk->depth - 1].type, number);
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

static graft_status check_wire(graft_env *env, graft_bytes bytes,
                               const ProtobufCMessageDescriptor *type)
{
    wire_walk walk = {.env = env, .file = bytes.file, .data = bytes.data, .depth = 1};
    walk.frames[0] = (wire_frame){.type = type, .end = bytes.size};
    while (walk.depth > 0) {
        if (walk.at == walk.frames[walk.depth - 1].end) {
            walk.depth--;
            continue;
        }
        GRAFT_PASS(walk_field(&walk));
    }
    return GRAFT_OK;
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
    GRAFT_PASS(check_wire(env, bytes, type));
    ProtobufCMessage *decoded = protobuf_c_message_unpack(type, &allocator, bytes.size, bytes.data);
    if (decoded == NULL) {
        graft_arena_release(arena, mark);
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: does not decode as %s", bytes.file,
                          type->short_name);
    }
    *message = decoded;
    return GRAFT_OK;
}

void graft_wire_encode(graft_arena *arena, const ProtobufCMessage *message, uint8_t **data,
                       size_t *size)
{
    size_t need = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = graft_arena_alloc(arena, need);
    *size = protobuf_c_message_pack(message, bytes);
    *data = bytes;
}

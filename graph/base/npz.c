/* npz.c - see npz.h. ZIP as in its APPNOTE 6.3.10, read from the directory at its end; .npy as in
 * numpy/lib/format.py, versions 1 to 3. */
#include "graph/base/npz.h"

#include "graph/base/file.h"
#include "graph/names.h"

#include <string.h>
#define ZLIB_CONST
#include <zlib.h>

enum {
    LOCAL_BYTES = 30,
    ENTRY_BYTES = 46,
    END_BYTES = 22,
    COMMENT_MOST = 65535,
    NAME_MOST = 60000,
    STORED = 0,
    DEFLATED = 8,
    ENCRYPTED = 1,
    ALIGNMENT = 64, /* Of the data of an array, by the format. */
    MAGIC_BYTES = 8
};

static const uint32_t local_mark = 0x04034b50, entry_mark = 0x02014b50, end_mark = 0x06054b50;
static const char magic[] = "\x93NUMPY";

static const struct {
    const char *name;
    uint8_t dtype;
} types[] = {
    {"<f4", GRAFT_DTYPE_F32 },
    {"|u1", GRAFT_DTYPE_U8  },
    {"|i1", GRAFT_DTYPE_I8  },
    {"<u2", GRAFT_DTYPE_U16 },
    {"<i2", GRAFT_DTYPE_I16 },
    {"<i4", GRAFT_DTYPE_I32 },
    {"<i8", GRAFT_DTYPE_I64 },
    {"|b1", GRAFT_DTYPE_BOOL},
    {"<f2", GRAFT_DTYPE_F16 },
    {"<f8", GRAFT_DTYPE_F64 }
};
enum { TYPE_COUNT = sizeof types / sizeof types[0] };

/* ------------------------------------------------------------------ bytes */

static uint32_t take_number(const uint8_t *at, uint32_t bytes)
{
    uint32_t value = 0;
    for (uint32_t i = bytes; i-- > 0;) {
        value = value << 8 | at[i];
    }
    return value;
}

static void put_number(graft_buffer *to, size_t value, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) {
        const uint8_t byte = (uint8_t)(value >> 8 * i);
        graft_buffer_append(to, &byte, 1);
    }
}

/* ------------------------------------------------------------------ arrays */

/* An array that is read: its file in the archive. */
typedef struct {
    graft_env *env;
    const char *file;
    const char *name;
    const char *at; /* In its header. */
    const char *end;
} array_reader;

static graft_status refuse(const array_reader *r, graft_status status, const char *what)
{
    return GRAFT_FAIL(r->env, status, "%s: array '%s': %s", r->file, r->name, what);
}

static bool take_text(array_reader *r, const char *text)
{
    const size_t length = strlen(text);
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n')) {
        r->at++;
    }
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, text, length) != 0) {
        return false;
    }
    r->at += length;
    return true;
}

static bool take_type(array_reader *r, graft_shape *shape)
{
    for (uint32_t t = 0; t < TYPE_COUNT; t++) {
        if (take_text(r, types[t].name)) {
            shape->dtype = types[t].dtype;
            return true;
        }
    }
    return false;
}

static bool take_size(array_reader *r, int32_t *size)
{
    int64_t value = 0;
    (void)take_text(r, "");
    const bool digits = r->at < r->end && *r->at >= '0' && *r->at <= '9';
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9' && value <= INT32_MAX) {
        value = 10 * value + (*r->at++ - '0');
    }
    *size = (int32_t)value;
    return digits && value <= INT32_MAX;
}

static graft_status take_sizes(array_reader *r, graft_shape *shape)
{
    bool more = true;
    shape->rank = 0;
    while (more && !take_text(r, ")")) {
        GRAFT_RETURN_IF(shape->rank == GRAFT_MAX_RANK,
                        refuse(r, GRAFT_UNSUPPORTED, "shape: more than 6 axes"));
        GRAFT_RETURN_IF(!take_size(r, &shape->dims[shape->rank++]),
                        refuse(r, GRAFT_BAD_INPUT, "shape: not a tuple of sizes"));
        more = take_text(r, ",");
    }
    return more || take_text(r, ")") ? GRAFT_OK : refuse(r, GRAFT_BAD_INPUT, "shape: not a tuple");
}

/* {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } with the members in any order. */
static graft_status read_header(array_reader *r, graft_shape *shape)
{
    bool turned = false, typed = false, ordered = false, sized = false, more = take_text(r, "{");
    while (more && !take_text(r, "}")) {
        if (!typed && take_text(r, "'descr':")) {
            typed = take_text(r, "'") && take_type(r, shape) && take_text(r, "'");
            GRAFT_RETURN_IF(!typed, refuse(r, GRAFT_UNSUPPORTED,
                                           "descr: none of <f4 <f2 <f8 |u1 |i1 <i4 <i8 |b1"));
        } else if (!ordered && take_text(r, "'fortran_order':")) {
            turned = take_text(r, "True");
            ordered = turned || take_text(r, "False");
        } else if (!sized && take_text(r, "'shape':") && take_text(r, "(")) {
            GRAFT_PASS(take_sizes(r, shape));
            sized = true;
        } else {
            break;
        }
        more = take_text(r, ",") || take_text(r, "}");
    }
    if (!typed || !ordered || !sized || !more) {
        return refuse(r, GRAFT_BAD_INPUT, "its header is not that of an .npy file");
    } else if (turned && shape->rank > 1) {
        return refuse(r, GRAFT_UNSUPPORTED, "fortran_order: only arrays in C order are read");
    }
    return GRAFT_OK;
}

static graft_status read_array(array_reader *r, const uint8_t *data, size_t size,
                               graft_run_tensor *tensor)
{
    size_t head = MAGIC_BYTES + 4, length = 0;
    if (size < head || memcmp(data, magic, sizeof magic - 1) != 0 || data[6] < 1 || data[6] > 3) {
        return refuse(r, GRAFT_BAD_INPUT, "it is no .npy file of version 1 to 3");
    }
    head = data[6] == 1 ? MAGIC_BYTES + 2 : head;
    length = take_number(data + MAGIC_BYTES, data[6] == 1 ? 2 : 4);
    GRAFT_RETURN_IF(length > size - head, refuse(r, GRAFT_BAD_INPUT, "it ends within its header"));
    r->at = (const char *)data + head;
    r->end = r->at + length;
    GRAFT_PASS(read_header(r, &tensor->shape));
    head += length;
    if (graft_shape_bytes(&tensor->shape) != size - head) {
        return GRAFT_FAIL(r->env, GRAFT_BAD_INPUT,
                          "%s: array '%s': %zu bytes of data instead of %llu", r->file, r->name,
                          size - head, (unsigned long long)graft_shape_bytes(&tensor->shape));
    }
    memcpy(tensor->data, data + head, size - head);
    return GRAFT_OK;
}

/* ------------------------------------------------------------------ archive */

typedef struct {
    const uint8_t *data; /* As it is packed. */
    size_t packed_size;
    size_t size;
    uint32_t method;
    uint32_t checksum;
} zip_entry;

static graft_status fail_zip(graft_env *env, graft_bytes bytes, size_t at, const char *what)
{
    return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: byte %zu: %s", bytes.file, at, what);
}

/* The end of the directory: behind it there may be a comment. */
static graft_status find_end(graft_env *env, graft_bytes bytes, size_t *end)
{
    for (size_t behind = END_BYTES; behind <= bytes.size && behind <= END_BYTES + COMMENT_MOST;
         behind++) {
        *end = bytes.size - behind;
        if (take_number(bytes.data + *end, 4) == end_mark) {
            return GRAFT_OK;
        }
    }
    return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: not an .npz file: there is no ZIP directory",
                      bytes.file);
}

/* Reads the entry of the directory at *at, which moves behind it. */
static graft_status read_entry(graft_env *env, graft_arena *arena, graft_bytes bytes, size_t *at,
                               char **name, zip_entry *entry)
{
    const uint8_t *from = bytes.data + *at;
    GRAFT_RETURN_IF(bytes.size - *at < ENTRY_BYTES || take_number(from, 4) != entry_mark,
                    fail_zip(env, bytes, *at, "no entry of a ZIP directory"));
    const size_t name_bytes = take_number(from + 28, 2);
    const size_t size =
        ENTRY_BYTES + name_bytes + take_number(from + 30, 2) + take_number(from + 32, 2);
    const size_t local = take_number(from + 42, 4);
    if (bytes.size - *at < size || bytes.size < LOCAL_BYTES || local > bytes.size - LOCAL_BYTES ||
        take_number(bytes.data + local, 4) != local_mark) {
        return fail_zip(env, bytes, *at, "this entry of the ZIP directory leads nowhere");
    }
    const size_t first = local + LOCAL_BYTES + take_number(bytes.data + local + 26, 2) +
                         take_number(bytes.data + local + 28, 2);
    *entry = (zip_entry){.method = take_number(from + 10, 2),
                         .checksum = take_number(from + 16, 4),
                         .packed_size = take_number(from + 20, 4),
                         .size = take_number(from + 24, 4)};
    if (first > bytes.size || entry->packed_size > bytes.size - first) {
        return fail_zip(env, bytes, *at, "the data of this entry of the ZIP directory are cut off");
    }
    entry->data = bytes.data + first;
    *name = graft_arena_printf(arena, "%.*s", (int)name_bytes, (const char *)from + ENTRY_BYTES);
    const size_t length = strlen(*name);
    GRAFT_RETURN_IF(length != name_bytes || length < 4 || strcmp(*name + length - 4, ".npy") != 0,
                    fail_zip(env, bytes, *at, "this entry of the ZIP directory is no .npy file"));
    GRAFT_RETURN_IF(((entry->method != STORED || entry->packed_size != entry->size) &&
                     entry->method != DEFLATED) ||
                        (from[8] & ENCRYPTED) != 0,
                    fail_zip(env, bytes, *at, "this entry is neither stored nor deflated"));
    (*name)[length - 4] = '\0';
    *at += size;
    return GRAFT_OK;
}

/* To `to`, of entry->size bytes. */
static bool unpack(const zip_entry *entry, uint8_t *to)
{
    z_stream stream = {.next_in = entry->data,
                       .avail_in = (uInt)entry->packed_size,
                       .next_out = to,
                       .avail_out = (uInt)entry->size};
    if (entry->method == STORED) {
        memcpy(to, entry->data, entry->size);
    } else if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) {
        return false;
    } else {
        const int ended = inflate(&stream, Z_FINISH);
        (void)inflateEnd(&stream);
        if (ended != Z_STREAM_END || stream.avail_out != 0) {
            return false;
        }
    }
    return crc32_z(0, to, entry->size) == entry->checksum;
}

static graft_status read_tensor(graft_env *env, graft_arena *arena, const char *file,
                                const zip_entry *entry, graft_run_tensor *tensor)
{
    enum { PACKED_MOST = 1032 }; /* Deflate makes that many bytes of one at most. */
    array_reader r = {.env = env, .file = file, .name = tensor->name};
    GRAFT_RETURN_IF(entry->size / PACKED_MOST > entry->packed_size,
                    refuse(&r, GRAFT_BAD_INPUT, "it is damaged"));
    GRAFT_SCOPED(env->scratch);
    uint8_t *data = graft_arena_alloc(env->scratch, entry->size);
    tensor->data = graft_arena_alloc(arena, entry->size);
    return unpack(entry, data) ? read_array(&r, data, entry->size, tensor)
                               : refuse(&r, GRAFT_BAD_INPUT, "it is damaged");
}

graft_status graft_npz_parse(graft_env *env, graft_arena *arena, graft_bytes bytes,
                             graft_run_tensor **tensors, uint32_t *count)
{
    size_t end = 0;
    GRAFT_PASS(find_end(env, bytes, &end));
    const uint32_t entry_count = take_number(bytes.data + end + 10, 2);
    size_t at = take_number(bytes.data + end + 16, 4);
    GRAFT_RETURN_IF(entry_count == UINT16_MAX || at > end,
                    fail_zip(env, bytes, end, "a ZIP64 directory, or one that lies nowhere"));
    graft_names *names = graft_names_new(arena);
    graft_run_tensor *found = GRAFT_NEW(arena, graft_run_tensor, entry_count);
    for (uint32_t i = 0; i < entry_count; i++) {
        zip_entry entry;
        char *name = NULL;
        GRAFT_PASS(read_entry(env, arena, bytes, &at, &name, &entry));
        found[i].name = name;
        if (!graft_names_add(names, name, i)) {
            return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: array '%s' comes twice", bytes.file, name);
        }
        GRAFT_PASS(read_tensor(env, arena, bytes.file, &entry, &found[i]));
    }
    *tensors = found;
    *count = entry_count;
    return GRAFT_OK;
}

/* ------------------------------------------------------------------ writing */

static const char *type_name(const graft_shape *shape)
{
    for (uint32_t t = 0; t < TYPE_COUNT; t++) {
        if (types[t].dtype == shape->dtype) {
            return types[t].name;
        }
    }
    return NULL;
}

static graft_buffer pack_array(graft_arena *arena, const graft_run_tensor *tensor)
{
    graft_buffer text = {.arena = arena};
    graft_buffer out = {.arena = arena};
    graft_buffer_printf(&text, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                        type_name(&tensor->shape));
    for (uint32_t i = 0; i < tensor->shape.rank; i++) {
        graft_buffer_printf(&text, "%d, ", tensor->shape.dims[i]);
    }
    graft_buffer_printf(&text, "), }");
    while ((MAGIC_BYTES + 2 + text.size + 1) % ALIGNMENT != 0) {
        graft_buffer_append(&text, " ", 1);
    }
    graft_buffer_append(&out, "\x93NUMPY\1\0", MAGIC_BYTES);
    put_number(&out, text.size + 1, 2);
    graft_buffer_append(&out, text.data, text.size);
    graft_buffer_append(&out, "\n", 1);
    graft_buffer_append(&out, tensor->data, (size_t)graft_shape_bytes(&tensor->shape));
    return out;
}

/* What stands in front of an entry, and again in the directory: version, that names are UTF-8,
 * stored, the first day that there is, checksum, sizes. */
static void put_entry(graft_buffer *to, const graft_buffer *array, size_t name_bytes)
{
    enum { VERSION = 20, UTF8 = 1 << 11, FIRST_DAY = 1 << 5 | 1 };
    put_number(to, VERSION, 2);
    put_number(to, UTF8, 2);
    put_number(to, STORED, 2);
    put_number(to, 0, 2);
    put_number(to, FIRST_DAY, 2);
    put_number(to, crc32_z(0, (const Bytef *)array->data, array->size), 4);
    put_number(to, array->size, 4);
    put_number(to, array->size, 4);
    put_number(to, name_bytes, 2);
    put_number(to, 0, 2);
}

static void pack_tensor(graft_arena *arena, const graft_run_tensor *tensor, graft_buffer *out,
                        graft_buffer *directory)
{
    const char *name = graft_arena_printf(arena, "%s.npy", tensor->name);
    const graft_buffer array = pack_array(arena, tensor);
    put_number(directory, entry_mark, 4);
    put_number(directory, 0, 2);
    put_entry(directory, &array, strlen(name));
    put_number(directory, 0, 8); /* No comment, the first disk, no attributes. */
    put_number(directory, 0, 2);
    put_number(directory, out->size, 4);
    graft_buffer_append(directory, name, strlen(name));
    put_number(out, local_mark, 4);
    put_entry(out, &array, strlen(name));
    graft_buffer_append(out, name, strlen(name));
    graft_buffer_append(out, array.data, array.size);
}

graft_status graft_npz_pack(graft_env *env, graft_arena *arena, const graft_run_tensor *tensors,
                            uint32_t count, graft_bytes *bytes)
{
    graft_buffer out = {.arena = arena};
    graft_buffer directory = {.arena = arena};
    for (uint32_t i = 0; i < count && out.size <= UINT32_MAX; i++) {
        if (type_name(&tensors[i].shape) == NULL || strlen(tensors[i].name) > NAME_MOST) {
            return GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "%s: '%s' has a type or name that .npz lacks",
                              bytes->file, tensors[i].name);
        }
        pack_tensor(arena, &tensors[i], &out, &directory);
    }
    GRAFT_RETURN_IF(count >= UINT16_MAX || out.size + directory.size > UINT32_MAX,
                    GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "%s: more tensors or bytes than .npz holds",
                               bytes->file));
    const size_t at = out.size;
    graft_buffer_append(&out, directory.data, directory.size);
    put_number(&out, end_mark, 4);
    put_number(&out, 0, 4);
    put_number(&out, count, 2);
    put_number(&out, count, 2);
    put_number(&out, directory.size, 4);
    put_number(&out, at, 4);
    put_number(&out, 0, 2);
    bytes->data = (const uint8_t *)out.data;
    bytes->size = out.size;
    return GRAFT_OK;
}

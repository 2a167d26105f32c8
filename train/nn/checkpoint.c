/* checkpoint.c - see checkpoint.h. Loading walks the file twice with the same code: first only
 * comparing, then copying. */
#include "train/nn/checkpoint.h"

#include "graph/base/file.h"

#include <string.h>
#include <xxhash.h>

static const char magic[8] = {'G', 'R', 'A', 'F', 'T', 'C', 'K', 'P'};
enum { VERSION = 1, CHECKSUM_BYTES = 8, LEAST_BYTES = 8 + 4 + 4 + 8 };
enum { SECTION_PARAMETERS = 1, SECTION_REALS = 2, SECTION_COUNTERS = 3 };

/* -------------------------------------------------------------------------------------- writing */

static void put_number(graft_buffer *buffer, uint64_t value, uint32_t byte_count)
{
    uint8_t bytes[8];
    for (uint32_t i = 0; i < byte_count; i++) {
        bytes[i] = (uint8_t)(value >> (8 * i));
    }
    graft_buffer_append(buffer, bytes, byte_count);
}

static void put_u32(graft_buffer *buffer, uint32_t value) { put_number(buffer, value, 4); }

static void put_name(graft_buffer *buffer, const char *name)
{
    put_u32(buffer, (uint32_t)strlen(name));
    graft_buffer_append(buffer, name, strlen(name));
}

static void put_floats(graft_buffer *buffer, const float *value, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &value[i], sizeof bits);
        put_u32(buffer, bits);
    }
}

static void put_section(graft_buffer *buffer, uint32_t kind, const char *name)
{
    put_u32(buffer, kind);
    put_name(buffer, name);
}

static void put_parameters(graft_buffer *buffer, const graft_parameters *set)
{
    put_section(buffer, SECTION_PARAMETERS, set->name);
    put_number(buffer, set->step, 8);
    put_u32(buffer, set->count);
    for (uint32_t i = 0; i < set->count; i++) {
        const graft_parameter *item = &set->items[i];
        size_t size = (size_t)item->rows * item->cols;
        put_name(buffer, item->name);
        put_u32(buffer, item->rows);
        put_u32(buffer, item->cols);
        put_floats(buffer, set->value + item->offset, size);
        put_floats(buffer, set->moment + item->offset, size);
        put_floats(buffer, set->variance + item->offset, size);
    }
}

graft_status graft_checkpoint_save(graft_env *env, const char *path,
                                   const graft_checkpoint *checkpoint)
{
    graft_status status = GRAFT_OK;
    GRAFT_SCOPED(env->scratch);
    graft_buffer buffer = {.arena = env->scratch};
    graft_buffer_append(&buffer, magic, sizeof magic);
    put_u32(&buffer, VERSION);
    put_u32(&buffer, checkpoint->set_count + checkpoint->reals_count + checkpoint->counters_count);
    for (uint32_t i = 0; i < checkpoint->set_count; i++) {
        put_parameters(&buffer, checkpoint->sets[i]);
    }
    for (uint32_t i = 0; i < checkpoint->reals_count; i++) {
        const graft_reals *reals = &checkpoint->reals[i];
        put_section(&buffer, SECTION_REALS, reals->name);
        put_u32(&buffer, reals->count);
        put_floats(&buffer, reals->value, reals->count);
    }
    for (uint32_t i = 0; i < checkpoint->counters_count; i++) {
        const graft_counters *counters = &checkpoint->counters[i];
        put_section(&buffer, SECTION_COUNTERS, counters->name);
        put_u32(&buffer, counters->count);
        for (uint32_t k = 0; k < counters->count; k++) {
            put_number(&buffer, counters->value[k], 8);
        }
    }
    put_number(&buffer, XXH3_64bits(buffer.data, buffer.size), CHECKSUM_BYTES);
    GRAFT_TRY(env, graft_file_write(env, path, buffer.data, buffer.size), "while saving %s", path);
done:
    return status;
}

/* -------------------------------------------------------------------------------------- reading */

/* A place in a file whose checksum is right; running past the end means a malformed writer. */
typedef struct {
    graft_env *env;
    const char *path;
    const uint8_t *data;
    size_t size;
    size_t at;
    bool copying; /* Second walk. */
} reader;

static graft_status need_bytes(const reader *in, uint64_t count)
{
    if (count > in->size - in->at) {
        return GRAFT_FAIL(in->env, GRAFT_BAD_INPUT,
                          "%s: ends at byte %zu, where %llu more bytes were expected", in->path,
                          in->size, (unsigned long long)count);
    }
    return GRAFT_OK;
}

/* `need_bytes` came first. */
static uint64_t take_number(reader *in, uint32_t byte_count)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < byte_count; i++) {
        value |= (uint64_t)in->data[in->at++] << (8 * i);
    }
    return value;
}

/* Reads a u32 and insists on its value. */
static graft_status expect_u32(reader *in, uint32_t want, const char *what)
{
    graft_status status = GRAFT_OK;
    GRAFT_CHECK(need_bytes(in, 4));
    uint32_t got = (uint32_t)take_number(in, 4);
    if (got != want) {
        status = GRAFT_FAIL(in->env, GRAFT_BAD_INPUT, "%s: %s is %u in the file and %u here",
                            in->path, what, got, want);
    }
done:
    return status;
}

static graft_status expect_name(reader *in, const char *want)
{
    graft_status status = GRAFT_OK;
    GRAFT_CHECK(need_bytes(in, 4));
    uint32_t length = (uint32_t)take_number(in, 4);
    GRAFT_CHECK(need_bytes(in, length));
    const char *got = (const char *)in->data + in->at;
    in->at += length;
    if (length != strlen(want) || memcmp(got, want, length) != 0) {
        int shown = length < 40 ? (int)length : 40;
        status = GRAFT_FAIL(in->env, GRAFT_BAD_INPUT, "%s: holds \"%.*s\" where \"%s\" is expected",
                            in->path, shown, got, want);
    }
done:
    return status;
}

static graft_status take_floats(reader *in, float *value, size_t count)
{
    graft_status status = GRAFT_OK;
    GRAFT_CHECK(need_bytes(in, (uint64_t)count * 4));
    if (!in->copying) {
        in->at += count * 4;
        goto done;
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)take_number(in, 4);
        memcpy(&value[i], &bits, sizeof bits);
    }
done:
    return status;
}

static graft_status take_section(reader *in, uint32_t kind, const char *name)
{
    GRAFT_PASS(expect_u32(in, kind, "the kind of the next section"));
    return expect_name(in, name);
}

static graft_status take_parameter(reader *in, graft_parameters *set, const graft_parameter *item)
{
    graft_status status = GRAFT_OK;
    size_t size = (size_t)item->rows * item->cols;
    GRAFT_CHECK(expect_name(in, item->name));
    GRAFT_TRY(in->env, expect_u32(in, item->rows, "the row count"), "parameter %s", item->name);
    GRAFT_TRY(in->env, expect_u32(in, item->cols, "the column count"), "parameter %s", item->name);
    GRAFT_CHECK(take_floats(in, set->value + item->offset, size));
    GRAFT_CHECK(take_floats(in, set->moment + item->offset, size));
    GRAFT_CHECK(take_floats(in, set->variance + item->offset, size));
done:
    return status;
}

static graft_status take_parameters(reader *in, graft_parameters *set)
{
    graft_status status = GRAFT_OK;
    GRAFT_CHECK(take_section(in, SECTION_PARAMETERS, set->name));
    GRAFT_CHECK(need_bytes(in, 8));
    uint64_t step = take_number(in, 8);
    if (in->copying) {
        set->step = step;
    }
    GRAFT_TRY(in->env, expect_u32(in, set->count, "the number of parameters"), "network %s",
              set->name);
    for (uint32_t i = 0; i < set->count; i++) {
        GRAFT_TRY(in->env, take_parameter(in, set, &set->items[i]), "network %s", set->name);
    }
done:
    return status;
}

static graft_status take_reals(reader *in, const graft_reals *reals)
{
    graft_status status = GRAFT_OK;
    GRAFT_CHECK(take_section(in, SECTION_REALS, reals->name));
    GRAFT_TRY(in->env, expect_u32(in, reals->count, "the length"), "section %s", reals->name);
    GRAFT_CHECK(take_floats(in, reals->value, reals->count));
done:
    return status;
}

static graft_status take_counters(reader *in, const graft_counters *counters)
{
    graft_status status = GRAFT_OK;
    GRAFT_CHECK(take_section(in, SECTION_COUNTERS, counters->name));
    GRAFT_TRY(in->env, expect_u32(in, counters->count, "the length"), "section %s", counters->name);
    GRAFT_CHECK(need_bytes(in, (uint64_t)counters->count * 8));
    for (uint32_t i = 0; i < counters->count; i++) {
        uint64_t value = take_number(in, 8);
        if (in->copying) {
            counters->value[i] = value;
        }
    }
done:
    return status;
}

/* One walk over the whole file. */
static graft_status walk_file(reader *in, const graft_checkpoint *checkpoint)
{
    graft_status status = GRAFT_OK;
    uint32_t sections =
        checkpoint->set_count + checkpoint->reals_count + checkpoint->counters_count;
    in->at = sizeof magic;
    GRAFT_CHECK(expect_u32(in, VERSION, "the format version"));
    GRAFT_CHECK(expect_u32(in, sections, "the number of sections"));
    for (uint32_t i = 0; i < checkpoint->set_count; i++) {
        GRAFT_CHECK(take_parameters(in, checkpoint->sets[i]));
    }
    for (uint32_t i = 0; i < checkpoint->reals_count; i++) {
        GRAFT_CHECK(take_reals(in, &checkpoint->reals[i]));
    }
    for (uint32_t i = 0; i < checkpoint->counters_count; i++) {
        GRAFT_CHECK(take_counters(in, &checkpoint->counters[i]));
    }
    if (in->at != in->size) {
        status = GRAFT_FAIL(in->env, GRAFT_BAD_INPUT, "%s: %zu bytes too many", in->path,
                            in->size - in->at);
    }
done:
    return status;
}

/* Size, magic and checksum; on success the reader ends before the checksum. */
static graft_status check_frame(reader *in)
{
    if (in->size < sizeof magic || memcmp(in->data, magic, sizeof magic) != 0) {
        return GRAFT_FAIL(in->env, GRAFT_BAD_INPUT, "%s: not a Graft checkpoint", in->path);
    }
    if (in->size < LEAST_BYTES) {
        return GRAFT_FAIL(in->env, GRAFT_BAD_INPUT, "%s: truncated: only %zu bytes", in->path,
                          in->size);
    }
    in->size -= CHECKSUM_BYTES;
    in->at = in->size;
    if (take_number(in, CHECKSUM_BYTES) != XXH3_64bits(in->data, in->size)) {
        return GRAFT_FAIL(in->env, GRAFT_BAD_INPUT,
                          "%s: truncated or damaged: the checksum is wrong", in->path);
    }
    return GRAFT_OK;
}

graft_status graft_checkpoint_load(graft_env *env, const char *path,
                                   const graft_checkpoint *checkpoint)
{
    GRAFT_SCOPED(env->scratch);
    uint8_t *data = NULL;
    reader in = {.env = env, .path = path};
    GRAFT_PASS(graft_file_read(env, env->scratch, path, &data, &in.size));
    in.data = data;
    GRAFT_PASS(check_frame(&in));
    GRAFT_PASS(walk_file(&in, checkpoint));
    in.copying = true;
    return walk_file(&in, checkpoint);
}

/* checkpoint.c - see checkpoint.h. One walk over all parts says what a file is made of: it writes
 * one, compares one with what is here, and takes what is in one. Loading walks twice, comparing
 * first. */
#include "train/nn/checkpoint.h"

#include "graph/base/file.h"

#include <string.h>
#include <xxhash.h>

static const char magic[8] = {'G', 'R', 'A', 'F', 'T', 'C', 'K', 'P'};
enum { VERSION = 1, CHECKSUM_BYTES = 8, LEAST_BYTES = 8 + 4 + 4 + 8 };
enum { SECTION_PARAMETERS = 1, SECTION_REALS = 2, SECTION_COUNTERS = 3 };

/* A place in a file whose checksum is right; running past the end means a malformed writer. */
typedef struct {
    graft_env *env;
    const char *path;
    enum { WRITING, COMPARING, TAKING } way;
    graft_buffer written;
    const uint8_t *data; /* Of a file that is read. */
    size_t size;
    size_t at;
} walker;

/* ----------------------------------------------------------------------------- parts of a file */

/* Whether there are as many bytes left. */
static graft_status need_bytes(const walker *w, uint64_t count)
{
    if (count > w->size - w->at) {
        return GRAFT_FAIL(w->env, GRAFT_BAD_INPUT,
                          "%s: ends at byte %zu, where %llu more bytes were expected", w->path,
                          w->size, (unsigned long long)count);
    }
    return GRAFT_OK;
}

static uint64_t read_number(const uint8_t *from, uint32_t bytes)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        value |= (uint64_t)from[i] << (8 * i);
    }
    return value;
}

static void write_number(walker *w, uint64_t value, uint32_t bytes)
{
    uint8_t little[8];
    for (uint32_t i = 0; i < bytes; i++) {
        little[i] = (uint8_t)(value >> (8 * i));
    }
    graft_buffer_append(&w->written, little, bytes);
}

static graft_status pass_floats(walker *w, float *values, size_t count)
{
    GRAFT_PASS(w->way == WRITING ? GRAFT_OK : need_bytes(w, (uint64_t)count * 4));
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = 0;
        memcpy(&bits, &values[i], sizeof bits);
        if (w->way == WRITING) {
            write_number(w, bits, 4);
        } else if (w->way == TAKING) {
            bits = (uint32_t)read_number(&w->data[w->at + 4 * i], 4);
            memcpy(&values[i], &bits, sizeof bits);
        }
    }
    w->at += 4 * count;
    return GRAFT_OK;
}

static graft_status pass_counters(walker *w, uint64_t *values, size_t count)
{
    GRAFT_PASS(w->way == WRITING ? GRAFT_OK : need_bytes(w, (uint64_t)count * 8));
    for (size_t i = 0; i < count; i++) {
        if (w->way == WRITING) {
            write_number(w, values[i], 8);
        } else if (w->way == TAKING) {
            values[i] = read_number(&w->data[w->at + 8 * i], 8);
        }
    }
    w->at += 8 * count;
    return GRAFT_OK;
}

/* A number that is the same in the file as here. */
static graft_status pass_u32(walker *w, uint32_t here, const char *what)
{
    if (w->way == WRITING) {
        write_number(w, here, 4);
        return GRAFT_OK;
    }
    GRAFT_PASS(need_bytes(w, 4));
    const uint32_t got = (uint32_t)read_number(&w->data[w->at], 4);
    w->at += 4;
    return got == here ? GRAFT_OK
                       : GRAFT_FAIL(w->env, GRAFT_BAD_INPUT, "%s: %s is %u in the file and %u here",
                                    w->path, what, got, here);
}

static graft_status pass_name(walker *w, const char *here)
{
    uint32_t length = (uint32_t)strlen(here);
    if (w->way == WRITING) {
        write_number(w, length, 4);
        graft_buffer_append(&w->written, here, length);
        return GRAFT_OK;
    }
    GRAFT_PASS(need_bytes(w, 4));
    const uint32_t got_length = (uint32_t)read_number(&w->data[w->at], 4);
    w->at += 4;
    GRAFT_PASS(need_bytes(w, got_length));
    const char *got = (const char *)w->data + w->at;
    w->at += got_length;
    if (got_length != length || memcmp(got, here, length) != 0) {
        const int shown = got_length < 40 ? (int)got_length : 40;
        return GRAFT_FAIL(w->env, GRAFT_BAD_INPUT, "%s: holds \"%.*s\" where \"%s\" is expected",
                          w->path, shown, got, here);
    }
    return GRAFT_OK;
}

static graft_status pass_section(walker *w, uint32_t kind, const char *name)
{
    GRAFT_PASS(pass_u32(w, kind, "the kind of the next section"));
    return pass_name(w, name);
}

/* ------------------------------------------------------------------------------------ sections */

static graft_status pass_parameter(walker *w, graft_parameters *set, const graft_parameter *item)
{
    const size_t size = (size_t)item->rows * item->cols;
    GRAFT_PASS(pass_name(w, item->name));
    GRAFT_PASS_IN(w->env, pass_u32(w, item->rows, "the row count"), "parameter %s", item->name);
    GRAFT_PASS_IN(w->env, pass_u32(w, item->cols, "the column count"), "parameter %s", item->name);
    GRAFT_PASS(pass_floats(w, set->value + item->offset, size));
    GRAFT_PASS(pass_floats(w, set->moment + item->offset, size));
    return pass_floats(w, set->variance + item->offset, size);
}

static graft_status pass_parameters(walker *w, graft_parameters *set)
{
    GRAFT_PASS(pass_section(w, SECTION_PARAMETERS, set->name));
    GRAFT_PASS(pass_counters(w, &set->step, 1));
    GRAFT_PASS_IN(w->env, pass_u32(w, set->count, "the number of parameters"), "network %s",
                  set->name);
    for (uint32_t i = 0; i < set->count; i++) {
        GRAFT_PASS_IN(w->env, pass_parameter(w, set, &set->items[i]), "network %s", set->name);
    }
    return GRAFT_OK;
}

/* One walk over a whole file. */
static graft_status walk(walker *w, const graft_checkpoint *checkpoint)
{
    const uint32_t sections =
        checkpoint->set_count + checkpoint->reals_count + checkpoint->counters_count;
    w->at = sizeof magic;
    GRAFT_PASS(pass_u32(w, VERSION, "the format version"));
    GRAFT_PASS(pass_u32(w, sections, "the number of sections"));
    for (uint32_t i = 0; i < checkpoint->set_count; i++) {
        GRAFT_PASS(pass_parameters(w, checkpoint->sets[i]));
    }
    for (uint32_t i = 0; i < checkpoint->reals_count; i++) {
        const graft_reals *reals = &checkpoint->reals[i];
        GRAFT_PASS(pass_section(w, SECTION_REALS, reals->name));
        GRAFT_PASS_IN(w->env, pass_u32(w, reals->count, "the length"), "section %s", reals->name);
        GRAFT_PASS(pass_floats(w, reals->value, reals->count));
    }
    for (uint32_t i = 0; i < checkpoint->counters_count; i++) {
        const graft_counters *counters = &checkpoint->counters[i];
        GRAFT_PASS(pass_section(w, SECTION_COUNTERS, counters->name));
        GRAFT_PASS_IN(w->env, pass_u32(w, counters->count, "the length"), "section %s",
                      counters->name);
        GRAFT_PASS(pass_counters(w, counters->value, counters->count));
    }
    if (w->way != WRITING && w->at != w->size) {
        return GRAFT_FAIL(w->env, GRAFT_BAD_INPUT, "%s: %zu bytes too many", w->path,
                          w->size - w->at);
    }
    return GRAFT_OK;
}

/* ----------------------------------------------------------------------------- saving, loading */

graft_status graft_checkpoint_save(graft_env *env, const char *path,
                                   const graft_checkpoint *checkpoint)
{
    GRAFT_SCOPED(env->scratch);
    walker w = {.env = env, .path = path, .way = WRITING, .written = {.arena = env->scratch}};
    graft_buffer_append(&w.written, magic, sizeof magic);
    GRAFT_PASS(walk(&w, checkpoint));
    write_number(&w, XXH3_64bits(w.written.data, w.written.size), CHECKSUM_BYTES);
    GRAFT_PASS_IN(env, graft_file_write(env, path, w.written.data, w.written.size),
                  "while saving %s", path);
    return GRAFT_OK;
}

/* Size, magic and checksum; on success the file ends before the checksum. */
static graft_status check_frame(walker *w)
{
    if (w->size < sizeof magic || memcmp(w->data, magic, sizeof magic) != 0) {
        return GRAFT_FAIL(w->env, GRAFT_BAD_INPUT, "%s: not a Graft checkpoint", w->path);
    }
    if (w->size < LEAST_BYTES) {
        return GRAFT_FAIL(w->env, GRAFT_BAD_INPUT, "%s: truncated: only %zu bytes", w->path,
                          w->size);
    }
    w->size -= CHECKSUM_BYTES;
    if (read_number(&w->data[w->size], CHECKSUM_BYTES) != XXH3_64bits(w->data, w->size)) {
        return GRAFT_FAIL(w->env, GRAFT_BAD_INPUT,
                          "%s: truncated or damaged: the checksum is wrong", w->path);
    }
    return GRAFT_OK;
}

graft_status graft_checkpoint_load(graft_env *env, const char *path,
                                   const graft_checkpoint *checkpoint)
{
    GRAFT_SCOPED(env->scratch);
    uint8_t *data = NULL;
    walker w = {.env = env, .path = path, .way = COMPARING};
    GRAFT_PASS(graft_file_read(env, env->scratch, path, &data, &w.size));
    w.data = data;
    GRAFT_PASS(check_frame(&w));
    GRAFT_PASS(walk(&w, checkpoint));
    w.way = TAKING;
    return walk(&w, checkpoint);
}

/* checkpoint.c - see checkpoint.h. What a file holds is listed once: arrays in their order, and
 * words that say what they are, of which the file has a hash. */
#include "train/nn/checkpoint.h"

#include "graph/base/file.h"

#include <string.h>
#include <xxhash.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are written as they lie");

enum { VERSION = 2, FIRST_PARTS = 16 };

/* The start of a file; its end is a checksum of everything before. */
typedef struct {
    char magic[8];
    uint64_t version;
    uint64_t words; /* Their hash. */
} opening;

typedef struct {
    void *data;
    size_t bytes;
} part;

typedef struct {
    opening opening;
    graft_arena *arena; /* Of the parts and the words. */
    part *parts;
    uint32_t count;
    uint32_t capacity;
    size_t bytes; /* Of a file. */
    graft_buffer words;
} contents;

static void add_part(contents *c, void *data, size_t bytes)
{
    GRAFT_PUSH(c->arena, c->parts, c->count, c->capacity, FIRST_PARTS) = (part){data, bytes};
    c->bytes += bytes;
}

static void add_network(contents *c, graft_parameters *set)
{
    graft_buffer_printf(&c->words, "network %s\n", set->name);
    for (uint32_t i = 0; i < set->count; i++) {
        const graft_parameter *item = &set->items[i];
        graft_buffer_printf(&c->words, "%s %u %u\n", item->name, item->rows, item->cols);
    }
    add_part(c, &set->step, sizeof set->step);
    add_part(c, set->value, set->size * sizeof set->value[0]);
    add_part(c, set->moment, set->size * sizeof set->moment[0]);
    add_part(c, set->variance, set->size * sizeof set->variance[0]);
}

static contents list_contents(graft_arena *arena, const graft_checkpoint *checkpoint)
{
    contents c = {
        .opening = {"GRAFTCKP", VERSION, 0},
        .arena = arena,
        .bytes = sizeof(opening) + sizeof(uint64_t),
        .words = {.arena = arena        }
    };
    for (uint32_t i = 0; i < checkpoint->set_count; i++) {
        add_network(&c, checkpoint->sets[i]);
    }
    for (uint32_t i = 0; i < checkpoint->reals_count; i++) {
        const graft_reals *reals = &checkpoint->reals[i];
        graft_buffer_printf(&c.words, "reals %s %u\n", reals->name, reals->count);
        add_part(&c, reals->value, reals->count * sizeof reals->value[0]);
    }
    for (uint32_t i = 0; i < checkpoint->counters_count; i++) {
        const graft_counters *counters = &checkpoint->counters[i];
        graft_buffer_printf(&c.words, "counters %s %u\n", counters->name, counters->count);
        add_part(&c, counters->value, counters->count * sizeof counters->value[0]);
    }
    c.opening.words = XXH3_64bits(c.words.data, c.words.size);
    return c;
}

graft_status graft_checkpoint_save(graft_env *env, const char *path,
                                   const graft_checkpoint *checkpoint)
{
    GRAFT_SCOPED(env->scratch);
    const contents c = list_contents(env->scratch, checkpoint);
    graft_buffer file = {.arena = env->scratch};
    graft_buffer_append(&file, &c.opening, sizeof c.opening);
    for (uint32_t i = 0; i < c.count; i++) {
        graft_buffer_append(&file, c.parts[i].data, c.parts[i].bytes);
    }
    const uint64_t sum = XXH3_64bits(file.data, file.size);
    graft_buffer_append(&file, &sum, sizeof sum);
    GRAFT_PASS_IN(env, graft_file_write(env, path, file.data, file.size), "while saving %s", path);
    return GRAFT_OK;
}

/* Why a file cannot be taken; NULL: it can. */
static const char *find_fault(const contents *c, const uint8_t *data, size_t size)
{
    opening found = {.version = 0};
    uint64_t sum = 0;
    if (size < sizeof found + sizeof sum) {
        return "truncated";
    }
    memcpy(&found, data, sizeof found);
    memcpy(&sum, data + size - sizeof sum, sizeof sum);
    return memcmp(found.magic, c->opening.magic, sizeof found.magic) != 0 ? "not a Graft checkpoint"
           : found.version != VERSION                    ? "of another format version"
           : found.words != c->opening.words             ? "of other networks, or of another run"
           : size != c->bytes                            ? "truncated, or too long"
           : sum != XXH3_64bits(data, size - sizeof sum) ? "damaged: the checksum is wrong"
                                                         : NULL;
}

graft_status graft_checkpoint_load(graft_env *env, const char *path,
                                   const graft_checkpoint *checkpoint)
{
    GRAFT_SCOPED(env->scratch);
    const contents c = list_contents(env->scratch, checkpoint);
    uint8_t *data = NULL;
    size_t size = 0;
    GRAFT_PASS(graft_file_read(env, env->scratch, path, &data, &size));
    const char *fault = find_fault(&c, data, size);
    if (fault != NULL) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: %s", path, fault);
    }
    const uint8_t *at = data + sizeof c.opening;
    for (uint32_t i = 0; i < c.count; at += c.parts[i++].bytes) {
        memcpy(c.parts[i].data, at, c.parts[i].bytes);
    }
    return GRAFT_OK;
}

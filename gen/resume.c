/* resume.c - see resume.h. */
#include "gen/resume.h"

#include "graph/base/ranks.h"

#include <string.h>

static const uint64_t magic = UINT64_C(0x7377616c74666167);

typedef struct {
    uint64_t magic;
    uint64_t identity;
    uint64_t law_count;
    uint64_t law_bytes;
    graft_gen_counts counts;
} head;

uint64_t graft_gen_set_identity(const graft_gen_set *set, uint64_t seed, uint64_t before)
{
    uint64_t words[5] = {seed, before, set->depth, set->output_count, set->input_count};
    uint64_t hash = XXH3_64bits(words, sizeof words);
    for (uint32_t i = 0; i < set->input_count; i++) {
        const graft_shape *shape = &set->inputs[i].shape;
        uint64_t kind = shape->rank * 2u + (set->inputs[i].is_weight ? 1u : 0u);
        hash = XXH3_64bits_withSeed(shape->dims, shape->rank * sizeof shape->dims[0], hash + kind);
    }
    for (uint32_t c = 0; c < set->config_count; c++) {
        uint64_t config = graft_gen_config_hash(&set->configs[c]);
        hash = XXH3_64bits_withSeed(&config, sizeof config, hash);
    }
    return hash;
}

graft_status graft_gen_set_save(graft_env *env, const char *path, uint64_t identity,
                                const graft_gen_laws *laws, uint32_t first,
                                const graft_gen_counts *counts)
{
    graft_mark mark = graft_arena_mark(env->unit);
    graft_buffer file = {.arena = env->unit};
    head start;
    if (graft_ranks_own(env) > 0) {
        return GRAFT_OK;
    }
    memset(&start, 0, sizeof start);
    start.magic = magic;
    start.identity = identity;
    start.law_count = laws->count - first;
    start.law_bytes = sizeof *laws->laws;
    start.counts = *counts;
    graft_buffer_append(&file, &start, sizeof start);
    for (uint32_t i = first; i < laws->count; i++) {
        graft_buffer_append(&file, &laws->laws[i], sizeof laws->laws[i]);
    }
    graft_status status = graft_file_write(env, path, file.data, file.size);
    graft_arena_release(env->unit, mark);
    return status;
}

bool graft_gen_set_load(graft_env *env, const char *path, uint64_t identity,
                        const graft_gen_set *set, graft_gen_laws *laws, graft_gen_counts *counts)
{
    GRAFT_SCOPED(env->unit);
    uint8_t *data = NULL;
    size_t size = 0;
    head start;
    bool found = false;
    graft_ranks_read(env, env->unit, path, &data, &size);
    if (size < sizeof start) {
        goto done;
    }
    memcpy(&start, data, sizeof start);
    found = start.magic == magic && start.identity == identity &&
            start.law_bytes == sizeof *laws->laws &&
            start.law_count == (size - sizeof start) / sizeof *laws->laws;
    for (uint64_t i = 0; found && i < start.law_count; i++) {
        laws->laws = graft_gen_grow(laws->arena, laws->laws, laws->count, &laws->capacity,
                                    sizeof *laws->laws);
        memcpy(&laws->laws[laws->count], data + sizeof start + i * sizeof *laws->laws,
               sizeof *laws->laws);
        laws->laws[laws->count++].set = set;
    }
    *counts = found ? start.counts : *counts;
done:
    return found;
}

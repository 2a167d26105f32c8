/* resume.c - see resume.h. */
#include "gen/resume.h"

#include "graph/base/ranks.h"

#include <string.h>

uint64_t graft_gen_set_identity(const graft_gen_set *set, uint64_t seed, uint64_t before)
{
    const uint64_t words[6] = {
        seed, before, set->depth, set->output_count, set->input_count, sizeof(graft_gen_law)};
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

/* A file begins with the hash of what follows, seeded with the identity. */
graft_buffer graft_gen_seal(graft_arena *arena)
{
    const uint64_t seal = 0;
    graft_buffer file = {.arena = arena};
    graft_buffer_append(&file, &seal, sizeof seal);
    return file;
}

graft_status graft_gen_seal_write(graft_env *env, const char *path, uint64_t identity,
                                  graft_buffer *file)
{
    uint64_t seal = 0;
    if (graft_ranks_own(env) > 0) {
        return GRAFT_OK;
    }
    seal = XXH3_64bits_withSeed(file->data + sizeof seal, file->size - sizeof seal, identity);
    memcpy(file->data, &seal, sizeof seal);
    GRAFT_PASS(graft_file_make_folders(env, path));
    return graft_file_write(env, path, file->data, file->size);
}

const uint8_t *graft_gen_unseal(graft_env *env, graft_arena *arena, const char *path,
                                uint64_t identity, size_t *size)
{
    uint8_t *data = NULL;
    uint64_t seal = 0;
    graft_ranks_read(env, arena, path, &data, size);
    if (*size < sizeof seal) {
        return NULL;
    }
    memcpy(&seal, data, sizeof seal);
    *size -= sizeof seal;
    data += sizeof seal;
    return XXH3_64bits_withSeed(data, *size, identity) == seal ? data : NULL;
}

/* trail.c - see trail.h. */
#include "gen/trail.h"

#include "graph/base/log.h"
#include "graph/base/ranks.h"

#include <string.h>
#include <unistd.h>

static const uint64_t magic = UINT64_C(0x6c69617274667267);
static const uint64_t save_every_ns = UINT64_C(10) * 1000 * 1000 * 1000;

enum { SAVE_SHARE = 20 }; /* At most this part of the time goes into writing. */

/* Behind it stand the fates and the laws. */
typedef struct {
    uint64_t magic;
    uint64_t identity;
    uint64_t pair_count;
    uint64_t told_count;
    uint64_t law_bytes;
    uint64_t hash; /* Of what stands behind. */
} head;

static const char *make_path(graft_arena *arena, const char *folder, uint32_t output_count)
{
    return graft_arena_printf(arena, "%s/laws-%u", folder, output_count);
}

/* ----------------------------------------------------------------- reading */

/* Whether a file is whole and of this search. */
static bool is_valid(const graft_gen_trail *trail, uint32_t pair_count, const uint8_t *data,
                     size_t size)
{
    head start;
    memcpy(&start, data, sizeof start);
    return start.magic == magic && start.identity == trail->identity &&
           start.pair_count == pair_count && start.told_count <= pair_count &&
           start.law_bytes == sizeof(graft_gen_law) && size - sizeof start >= start.told_count &&
           start.hash == XXH3_64bits(data + sizeof start, size - sizeof start);
}

/* Takes fates and laws from a valid file. */
static void take_file(graft_gen_trail *trail, const graft_gen_space *space, const uint8_t *data,
                      size_t size)
{
    head start;
    memcpy(&start, data, sizeof start);
    uint32_t told = (uint32_t)start.told_count;
    uint8_t *fates = GRAFT_NEW(space->arena, uint8_t, told);
    uint32_t *law_of = GRAFT_NEW(space->arena, uint32_t, told);
    uint32_t law_count = 0;
    memcpy(fates, data + sizeof start, told);
    for (uint32_t i = 0; i < told; i++) {
        law_of[i] = law_count;
        law_count += fates[i] == GRAFT_GEN_TAKEN ? 1 : 0;
        if (fates[i] == GRAFT_GEN_UNTOLD || fates[i] >= GRAFT_GEN_FATE_COUNT) {
            return;
        }
    }
    if (size - sizeof start - told != law_count * sizeof *trail->laws) {
        return;
    }
    trail->laws = GRAFT_NEW(space->arena, graft_gen_law, law_count);
    if (law_count > 0) {
        memcpy(trail->laws, data + sizeof start + told, law_count * sizeof *trail->laws);
    }
    for (uint32_t i = 0; i < law_count; i++) {
        trail->laws[i].set = space->set;
    }
    trail->fates = fates;
    trail->law_of = law_of;
    trail->law_count = law_count;
    trail->told_count = told;
}

void graft_gen_trail_open(const graft_gen_space *space, uint32_t output_count, uint32_t pair_count,
                          graft_gen_trail *trail)
{
    graft_env *env = space->env;
    uint8_t *data = NULL;
    size_t size = 0;
    *trail = (graft_gen_trail){.env = env, .saved_ns = graft_clock_ns()};
    if (space->room.folder == NULL) {
        return;
    }
    const uint64_t words[4] = {
        space->room.identity, space->node_count, output_count,
        XXH3_64bits(space->samples.draws, space->samples.draw_count * sizeof(uint32_t))};
    trail->path = make_path(space->arena, space->room.folder, output_count);
    trail->identity = XXH3_64bits(words, sizeof words);
    GRAFT_SCOPED(env->unit);
    graft_ranks_read(env, env->unit, trail->path, &data, &size);
    if (size >= sizeof(head) && is_valid(trail, pair_count, data, size)) {
        take_file(trail, space, data, size);
        graft_log(env, 1, "%s: going on behind %u pairs and %u laws", space->set->name,
                  trail->told_count, trail->law_count);
    }
}

const graft_gen_law *graft_gen_trail_law(const graft_gen_trail *trail, uint32_t pair)
{
    return &trail->laws[trail->law_of[pair]];
}

/* ----------------------------------------------------------------- writing */

bool graft_gen_trail_is_due(const graft_gen_trail *trail, uint32_t told, bool at_once)
{
    if (trail->path == NULL || told <= trail->told_count || graft_ranks_own(trail->env) > 0) {
        return false;
    }
    uint64_t since_ns = graft_clock_ns() - trail->saved_ns;
    return at_once || (since_ns > save_every_ns && since_ns > SAVE_SHARE * trail->spent_ns);
}

void graft_gen_trail_begin(graft_gen_trail *trail, uint32_t pair_count, uint32_t told)
{
    head start;
    memset(&start, 0, sizeof start);
    start.magic = magic;
    start.identity = trail->identity;
    start.pair_count = pair_count;
    start.told_count = told;
    start.law_bytes = sizeof(graft_gen_law);
    trail->saved_ns = graft_clock_ns();
    trail->mark = graft_arena_mark(trail->env->unit);
    trail->file = (graft_buffer){.arena = trail->env->unit};
    graft_buffer_append(&trail->file, &start, sizeof start);
}

void graft_gen_trail_tell(graft_gen_trail *trail, uint8_t fate)
{
    graft_buffer_append(&trail->file, &fate, 1);
}

void graft_gen_trail_add(graft_gen_trail *trail, const graft_gen_law *law)
{
    graft_buffer_append(&trail->file, law, sizeof *law);
}

graft_status graft_gen_trail_write(graft_gen_trail *trail)
{
    head start;
    memcpy(&start, trail->file.data, sizeof start);
    start.hash = XXH3_64bits(trail->file.data + sizeof start, trail->file.size - sizeof start);
    memcpy(trail->file.data, &start, sizeof start);
    graft_status status =
        graft_file_write(trail->env, trail->path, trail->file.data, trail->file.size);
    graft_arena_release(trail->env->unit, trail->mark);
    trail->spent_ns = graft_clock_ns() - trail->saved_ns;
    trail->saved_ns = graft_clock_ns();
    return status;
}

void graft_gen_trail_remove(graft_env *env, const char *folder)
{
    GRAFT_SCOPED(env->unit);
    for (uint32_t outputs = 1; outputs <= GRAFT_MAX_OUTPUTS; outputs++) {
        (void)unlink(make_path(env->unit, folder, outputs));
    }
}

/* trail.c - see trail.h. */
#include "gen/trail.h"

#include "gen/resume.h"
#include "graph/base/log.h"
#include "graph/base/ranks.h"

#include <string.h>
#include <unistd.h>

static const uint64_t save_every_ns = UINT64_C(10) * 1000 * 1000 * 1000;

enum { SAVE_SHARE = 20 }; /* At most this part of the time goes into writing. */

static const char *make_path(graft_arena *arena, const char *folder, uint32_t output_count)
{
    return graft_arena_printf(arena, "%s/laws-%u", folder, output_count);
}

/* ----------------------------------------------------------------- reading */

/* Takes how many pairs had their turn, their fates, and the laws that were taken. */
static void take_file(graft_gen_trail *trail, const graft_gen_space *space, const uint8_t *data,
                      size_t size)
{
    memcpy(&trail->told_count, data, sizeof trail->told_count);
    uint32_t told = trail->told_count;
    uint8_t *fates = GRAFT_COPY(space->arena, data + sizeof told, told);
    uint32_t *law_of = GRAFT_NEW(space->arena, uint32_t, told);
    for (uint32_t i = 0; i < told; i++) {
        law_of[i] = trail->law_count;
        trail->law_count += fates[i] == GRAFT_GEN_TAKEN ? 1 : 0;
    }
    trail->laws = GRAFT_NEW(space->arena, graft_gen_law, trail->law_count);
    if (trail->law_count > 0) {
        memcpy(trail->laws, data + sizeof told + told, size - sizeof told - told);
    }
    for (uint32_t i = 0; i < trail->law_count; i++) {
        trail->laws[i].set = space->set;
    }
    trail->fates = fates;
    trail->law_of = law_of;
}

void graft_gen_trail_open(const graft_gen_space *space, uint32_t output_count, uint32_t pair_count,
                          graft_gen_trail *trail)
{
    graft_env *env = space->env;
    size_t size = 0;
    *trail = (graft_gen_trail){.env = env, .saved_ns = graft_clock_ns()};
    if (space->room.folder == NULL) {
        return;
    }
    const uint64_t words[5] = {
        space->room.identity, space->node_count, output_count, pair_count,
        XXH3_64bits(space->samples.draws, space->samples.draw_count * sizeof(uint32_t))};
    trail->path = make_path(space->arena, space->room.folder, output_count);
    trail->identity = XXH3_64bits(words, sizeof words);
    GRAFT_SCOPED(env->unit);
    const uint8_t *data = graft_gen_unseal(env, env->unit, trail->path, trail->identity, &size);
    if (data != NULL) {
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

graft_status graft_gen_trail_write(graft_gen_trail *trail, graft_buffer *file)
{
    const uint64_t start_ns = graft_clock_ns();
    GRAFT_PASS(graft_gen_seal_write(trail->env, trail->path, trail->identity, file));
    trail->saved_ns = graft_clock_ns();
    trail->spent_ns = trail->saved_ns - start_ns;
    return GRAFT_OK;
}

void graft_gen_trail_remove(graft_env *env, const char *folder)
{
    GRAFT_SCOPED(env->unit);
    for (uint32_t outputs = 1; outputs <= GRAFT_MAX_OUTPUTS; outputs++) {
        (void)unlink(make_path(env->unit, folder, outputs));
    }
}

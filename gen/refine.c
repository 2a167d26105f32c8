/* refine.c - see refine.h. */
#include "gen/refine.h"

#include "gen/check.h"
#include "gen/resume.h"
#include "gen/search.h"
#include "graph/base/log.h"
#include "graph/base/ranks.h"

#include <string.h>
#include <unistd.h>

enum { SPACE_ARENA_BYTES = 1 << 20, UNLISTED_SAMPLES = 384 };

void graft_gen_samples_add(graft_gen_samples *samples, uint32_t draw)
{
    GRAFT_GEN_PUSH(samples->arena, samples->draws, samples->draw_count, samples->capacity) = draw;
}

/* ----------------------------------------------- what the search does not list */

/* Pairs of roots of one value. */
typedef struct {
    graft_arena *arena;
    uint32_t (*roots)[2];
    uint32_t count;
    uint32_t capacity;
} pair_list;

static void list_pair(pair_list *list, uint32_t left, uint32_t right)
{
    if (left != right) {
        uint32_t *pair = GRAFT_GEN_PUSH(list->arena, list->roots, list->count, list->capacity);
        pair[0] = left;
        pair[1] = right;
    }
}

/* That both roots of a pair are the same; false when it is too large for a law. */
static bool make_law(const graft_gen_space *space, const uint32_t pair[2], graft_gen_law *law)
{
    const graft_gen_roots roots[2] = {{{pair[0]}}, {{pair[1]}}};
    return graft_gen_law_draw(space, &roots[0], &roots[1], 1, law);
}

/* A draw of fresh samples that tells a pair apart, or GRAFT_GEN_NONE. */
static uint32_t find_draw(const graft_gen_space *space, const uint32_t pair[2])
{
    const graft_gen_fresh fresh = {graft_gen_fresh_seed(space), 0, UNLISTED_SAMPLES};
    graft_gen_checker checker = {.scratch = space->env->scratch};
    graft_gen_law law;
    uint32_t draw = GRAFT_GEN_NONE;
    return make_law(space, pair, &law) && !graft_gen_law_holds(&checker, &law, &fresh, &draw)
               ? draw
               : GRAFT_GEN_NONE;
}

/* Lists a draw that tells a pair apart, unless one does that is listed already. */
static void take_draw(graft_gen_search *find, const uint32_t pair[2], uint32_t draw)
{
    graft_gen_checker checker = {.scratch = find->space->env->scratch};
    graft_gen_law law;
    if (draw == GRAFT_GEN_NONE || !make_law(find->space, pair, &law)) {
        return;
    }
    for (uint32_t i = find->told_first; i < find->told->draw_count; i++) {
        if (graft_gen_law_shows(&checker, &law, graft_gen_fresh_seed(find->space),
                                find->told->draws[i], false)) {
            return;
        }
    }
    graft_gen_samples_add(find->told, draw);
}

/* Graphs of weights, and of constants: no law is looked for there, but they are arguments too. */
static void list_unlisted(const graft_gen_space *space, pair_list *list)
{
    for (uint32_t v = space->set->input_count; v < space->value_count; v++) {
        const graft_gen_value *value = &space->values[v];
        for (uint32_t i = space->producer_first[v];
             (value->is_weight || value->is_idle) && i < space->producer_first[v + 1]; i++) {
            list_pair(list, value->node * GRAFT_MAX_OUTPUTS + value->slot, space->producers[i]);
        }
    }
}

/* A sample may tell two graphs apart and let their renamings pass as equal. The search looks at one
 * renaming of a graph only, but all are arguments. */
static void list_images(const graft_gen_space *space, uint32_t *from, pair_list *list)
{
    for (uint32_t r = 1; r < space->renaming_count; r++) {
        memset(from, 0xff, space->value_count * sizeof *from);
        for (uint32_t v = space->set->input_count; v < space->value_count; v++) {
            uint32_t image = graft_gen_value_image(space, v, r);
            if (image == GRAFT_GEN_NONE) {
                continue;
            }
            if (from[image] != GRAFT_GEN_NONE) {
                const graft_gen_value *a = &space->values[from[image]];
                const graft_gen_value *b = &space->values[v];
                list_pair(list,
                          graft_gen_node_image(space, a->node, r) * GRAFT_MAX_OUTPUTS + a->slot,
                          graft_gen_node_image(space, b->node, r) * GRAFT_MAX_OUTPUTS + b->slot);
            }
            from[image] = v;
        }
    }
}

/* Checks that what the search does not list agrees, each rank a part of it; lists draws that tell
 * pairs apart. */
static void compare_rest(graft_gen_search *find)
{
    const graft_gen_space *space = find->space;
    const graft_env *env = space->env;
    GRAFT_SCOPED(find->arena);
    uint32_t *from = GRAFT_NEW(find->arena, uint32_t, space->value_count);
    pair_list list = {.arena = find->arena};
    list_unlisted(space, &list);
    list_images(space, from, &list);
    uint32_t *draws = GRAFT_NEW(find->arena, uint32_t, list.count);
    uint32_t end = graft_ranks_first(env, graft_ranks_own(env) + 1, list.count);
    for (uint32_t i = graft_ranks_first(env, graft_ranks_own(env), list.count); i < end; i++) {
        draws[i] = find_draw(space, list.roots[i]);
    }
    graft_ranks_fill(env, draws, list.count, sizeof *draws);
    for (uint32_t i = 0; i < list.count; i++) {
        take_draw(find, list.roots[i], draws[i]);
    }
}

/* ------------------------------------------------------------------ rounds */

/* Enumerates graphs of at most set->depth operators and lists draws that tell some of them apart.
 */
static graft_status find_draws(graft_env *env, const graft_gen_set *set, const graft_gen_room *room,
                               const graft_gen_laws *known, graft_gen_samples *samples)
{
    graft_status status = GRAFT_OK;
    graft_gen_space space;
    graft_gen_search find = {.ahead = NULL};
    graft_arena *arena = graft_arena_new(SPACE_ARENA_BYTES);
    GRAFT_CHECK(graft_gen_space_build_whole(env, arena, set, samples, room, &space));
    graft_gen_search_open(&find, &space, 1);
    find.told = samples;
    find.told_first = samples->draw_count;
    graft_gen_search_know(&find, known, known->count);
    GRAFT_CHECK(graft_gen_search_walk(&find));
    compare_rest(&find);
done:
    graft_gen_ahead_close(find.ahead);
    graft_arena_free(arena);
    return status;
}

/* ------------------------------------------------------------------- files */

static const char *make_path(graft_arena *arena, const char *folder)
{
    return graft_arena_printf(arena, "%s/samples", folder);
}

/* All graphs of so many operators are told apart by the draws. */
static graft_status save_draws(graft_env *env, const graft_gen_room *room, uint32_t depth,
                               const graft_gen_samples *samples)
{
    GRAFT_SCOPED(env->unit);
    graft_buffer file = graft_gen_seal(env->unit);
    graft_buffer_append(&file, &depth, sizeof depth);
    graft_buffer_append(&file, samples->draws, samples->draw_count * sizeof *samples->draws);
    return graft_gen_seal_write(env, make_path(env->unit, room->folder), room->identity, &file);
}

/* Takes the draws of an earlier run; returns how many operators are done, 0 when there is none. */
static uint32_t load_draws(graft_env *env, const graft_gen_room *room, graft_gen_samples *samples)
{
    GRAFT_SCOPED(env->unit);
    size_t size = 0;
    uint32_t depth = 0;
    const uint8_t *data =
        graft_gen_unseal(env, env->unit, make_path(env->unit, room->folder), room->identity, &size);
    if (data == NULL) {
        return 0;
    }
    memcpy(&depth, data, sizeof depth);
    for (size_t at = sizeof depth; at < size; at += sizeof *samples->draws) {
        uint32_t draw;
        memcpy(&draw, data + at, sizeof draw);
        graft_gen_samples_add(samples, draw);
    }
    return depth;
}

void graft_gen_samples_remove(graft_env *env, const char *folder)
{
    GRAFT_SCOPED(env->unit);
    (void)unlink(make_path(env->unit, folder));
}

graft_status graft_gen_samples_refine(graft_env *env, const graft_gen_set *set,
                                      const graft_gen_room *room, const graft_gen_laws *known,
                                      graft_gen_samples *samples)
{
    graft_gen_set smaller = *set;
    uint32_t done_depth = room->folder != NULL ? load_draws(env, room, samples) : 0;
    for (smaller.depth = done_depth + 1; smaller.depth < set->depth; smaller.depth++) {
        uint32_t before;
        do {
            before = samples->draw_count;
            GRAFT_PASS(find_draws(env, &smaller, room, known, samples));
        } while (samples->draw_count > before);
        if (room->folder != NULL) {
            GRAFT_PASS(save_draws(env, room, smaller.depth, samples));
        }
    }
    if (samples->draw_count > 0) {
        graft_log(env, 1, "%s: %u more samples tell graphs apart", set->name, samples->draw_count);
    }
    return GRAFT_OK;
}

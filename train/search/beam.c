/* beam.c - beam search: of all successors of a level's graphs the cheapest few are the next level,
 * whether or not they are cheaper than their parents (Lowerre, The Harpy speech recognition system,
 * 1976). */
#include "graph/base/log.h"
#include "train/search/explored.h"

#include <string.h>

/* The cheapest successors seen in this level, cheapest first. */
typedef struct level {
    graft_successor *items;
    uint32_t count;
    uint32_t width;
} level;

static void visit(void *search, const graft_successor *successor)
{
    level *l = search;
    uint32_t place = l->count;
    while (place > 0 && graft_successor_before(successor, &l->items[place - 1])) {
        place--;
    }
    if (place == l->width) {
        return;
    }
    l->count += l->count < l->width ? 1 : 0;
    memmove(&l->items[place + 1], &l->items[place], (l->count - 1 - place) * sizeof(l->items[0]));
    l->items[place] = *successor;
}

graft_status graft_search_beam(graft_env *env, graft_arena *arena, graft_environment *environment,
                               const graft_search_choice *choice, graft_plan_found *found)
{
    uint64_t start_ns = graft_clock_ns();
    uint32_t idle = 0; /* Levels since the best graph was found. */
    graft_progress progress;
    GRAFT_ARENA(own, (size_t)1 << 20);
    graft_explored *explored = graft_explored_open(own, environment, found);
    level levels[2] = {
        {GRAFT_NEW(own, graft_successor, choice->width), 0, (uint32_t)choice->width},
        {GRAFT_NEW(own, graft_successor, choice->width), 0, (uint32_t)choice->width}
    };
    graft_progress_start(&progress, env, "beam search", "levels", environment->options.step_limit);
    GRAFT_PASS(graft_explored_expand(env, explored, NULL, visit, &levels[0]));
    for (uint32_t depth = 1; depth < environment->options.step_limit && idle < choice->patience &&
                             !graft_search_is_over(environment, found);
         depth++) {
        const level *from = &levels[(depth + 1) % 2];
        level *to = &levels[depth % 2];
        double best_ns = found->cost_ns;
        to->count = 0;
        for (uint32_t i = 0; i < from->count; i++) {
            GRAFT_PASS(graft_explored_expand(env, explored, &from->items[i], visit, to));
        }
        idle = found->cost_ns < best_ns ? 0 : idle + 1;
        graft_progress_update(&progress, depth, NULL);
    }
    graft_progress_finish(&progress);
    graft_explored_trace(arena, explored);
    found->seconds = (double)(graft_clock_ns() - start_ns) / 1e9;
    return GRAFT_OK;
}

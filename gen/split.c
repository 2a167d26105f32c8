/* split.c - graphs of one group that turn out to differ.
 *
 * The samples of a space let two different graphs pass as equal now and then. When a fresh sample
 * tells a pair apart, its group is two: pairs whose turn comes later are compared with the graph
 * that they agree with on this sample. Those before have been told apart from the first graph by
 * samples of their own, or follow from laws.
 *
 * For graphs that are arguments of others this comes too late, for those others were made of the
 * group's first graph alone: refine.h. */
#include "gen/check.h"
#include "gen/search.h"

/* Whether two graphs agree (or, unless `agree`, differ) on a draw. */
static bool graphs_show(const graft_gen_search *find, const uint32_t graphs[2], uint32_t draw,
                        bool agree)
{
    const graft_gen_graph *const all = find->groups.graphs;
    graft_gen_checker checker = {.scratch = find->space->env->scratch};
    graft_gen_law law;
    return graft_gen_law_draw(find->space, &all[graphs[0]].roots, &all[graphs[1]].roots,
                              find->groups.output_count, &law) &&
           graft_gen_law_shows(&checker, &law, graft_gen_fresh_seed(find->space), draw, agree);
}

/* Lists the draw unless one that is listed tells the pair apart too. */
static void list_draw(graft_gen_search *find, const graft_gen_pair *p, uint32_t draw)
{
    const uint32_t graphs[2] = {p->hub, p->other};
    graft_gen_samples *told = find->told;
    if (draw >= GRAFT_GEN_WIDE_DRAWS) {
        return;
    }
    for (uint32_t i = find->told_first; i < told->draw_count; i++) {
        if (told->draws[i] == draw || graphs_show(find, graphs, told->draws[i], false)) {
            return;
        }
    }
    graft_gen_samples_add(told, draw);
}

void graft_gen_search_split(graft_gen_search *find, uint32_t number, uint32_t draw)
{
    const graft_gen_pair split = find->pairs[number];
    uint32_t first = find->groups.graphs[split.other].hub;
    bool is_moved = false;
    if (draw == GRAFT_GEN_NONE) {
        return;
    }
    if (find->told != NULL) {
        list_draw(find, &split, draw);
    }
    for (uint32_t g = first; g < find->groups.count && find->groups.graphs[g].hub == first; g++) {
        const uint32_t graphs[2] = {split.other, g};
        uint32_t pair = find->pair_of[g];
        if (pair != GRAFT_GEN_NONE && pair > number && find->pairs[pair].hub == split.hub &&
            graphs_show(find, graphs, draw, true)) {
            find->pairs[pair].hub = split.other;
            find->covers[g] = GRAFT_GEN_COVER_NONE;
            is_moved = true;
        }
    }
    if (is_moved) {
        graft_gen_ahead_forget(find->ahead); /* They were tried with another graph. */
    }
}

/* minimise.c - dropping laws that the others make superfluous. */
#include "gen/search.h"

#include <stdlib.h>

/* ------------------------------------------------------------------- joins */

static int compare_joins(const void *a, const void *b)
{
    const graft_gen_join *x = a;
    const graft_gen_join *y = b;
    if (x->from != y->from) {
        return x->from < y->from ? -1 : 1;
    }
    if (x->to != y->to) {
        return x->to < y->to ? -1 : 1;
    }
    return x->law < y->law ? -1 : x->law > y->law;
}

uint32_t graft_gen_search_first_join(const graft_gen_search *find, uint32_t graph)
{
    uint32_t low = 0;
    uint32_t high = find->sorted_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (find->joins.items[middle].from < graph) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void graft_gen_search_sort_joins(graft_gen_search *find)
{
    if (find->joins.count > 0) {
        qsort(find->joins.items, find->joins.count, sizeof *find->joins.items, compare_joins);
    }
    find->sorted_count = find->joins.count;
}

/* ---------------------------------------------------------------- dropping */

/* Whether the laws alive but `number` join its two graphs, resting on earlier pairs alone. */
static bool is_superfluous(graft_gen_search *find, uint32_t number)
{
    const graft_gen_found *law = &find->laws[number];
    uint32_t end = law->hub;
    for (; end < find->groups.count && find->groups.graphs[end].hub == law->hub; end++) {
        find->parents[end] = end;
    }
    for (uint32_t i = graft_gen_search_first_join(find, law->hub);
         i < find->sorted_count && find->joins.items[i].from < end; i++) {
        const graft_gen_join *j = &find->joins.items[i];
        const graft_gen_found *step = &find->laws[j->law];
        bool usable = step->is_lemma ? step->place < law->place : step->alive;
        if (j->law != number && usable && j->ready < law->place) {
            (void)graft_gen_unite(find->parents, j->from, j->to);
        }
    }
    return graft_gen_root_of(find->parents, law->hub) ==
           graft_gen_root_of(find->parents, law->other);
}

/* What to keep: fewer operators first, then more variables, then the earlier one. */
static uint64_t rank_law(const graft_gen_found *law, uint32_t number)
{
    uint64_t operators = (uint64_t)law->law.sides[0].count + law->law.sides[1].count;
    return operators << 40 | (uint64_t)(GRAFT_GEN_LAW_VARS - law->law.var_count) << 32 | number;
}

static int compare_ranks(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x > y ? -1 : x < y; /* The first to go first. */
}

/* Adds the joins of lemmas in the groups of laws that may be dropped. */
static void add_lemma_joins(graft_gen_search *find)
{
    graft_gen_index index;
    graft_gen_site site = find->site;
    bool *marks = GRAFT_NEW(find->arena, bool, find->groups.count);
    for (uint32_t i = 0; i < find->law_count; i++) {
        if (graft_gen_is_own(&find->laws[i])) {
            marks[find->laws[i].hub] = true;
        }
    }
    graft_gen_index_build(&find->groups, marks, find->arena, &index);
    site.index = &index;
    for (uint32_t i = 0; i < find->law_count; i++) {
        if (find->laws[i].is_lemma) {
            (void)graft_gen_law_join(&site, &find->laws[i].law, i, &find->joins);
        }
    }
}

void graft_gen_search_minimise(graft_gen_search *find)
{
    add_lemma_joins(find);
    uint64_t *ranks = GRAFT_NEW(find->arena, uint64_t, find->law_count);
    for (uint32_t i = 0; i < find->law_count; i++) {
        ranks[i] = rank_law(&find->laws[i], i);
    }
    if (find->law_count > 0) {
        qsort(ranks, find->law_count, sizeof *ranks, compare_ranks);
    }
    graft_gen_search_sort_joins(find);
    for (uint32_t i = 0; i < find->law_count; i++) {
        uint32_t number = (uint32_t)ranks[i];
        if (graft_gen_is_own(&find->laws[number])) {
            find->laws[number].alive = !is_superfluous(find, number);
        }
    }
}

/* minimise.c - dropping laws that the others make superfluous, and what has to come back. */
#include "gen/search.h"

#include <stdlib.h>
#include <string.h>

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

static void sort_joins(graft_gen_search *find)
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
    uint32_t first = find->groups.graphs[law->hub].hub;
    uint32_t end = first;
    for (; end < find->groups.count && find->groups.graphs[end].hub == first; end++) {
        find->parents[end] = end;
    }
    for (uint32_t i = graft_gen_search_first_join(find, first);
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
            marks[find->groups.graphs[find->laws[i].hub].hub] = true;
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

static void drop_superfluous(graft_gen_search *find)
{
    add_lemma_joins(find);
    uint64_t *ranks = GRAFT_NEW(find->arena, uint64_t, find->law_count);
    for (uint32_t i = 0; i < find->law_count; i++) {
        ranks[i] = rank_law(&find->laws[i], i);
    }
    if (find->law_count > 0) {
        qsort(ranks, find->law_count, sizeof *ranks, compare_ranks);
    }
    sort_joins(find);
    for (uint32_t i = 0; i < find->law_count; i++) {
        uint32_t number = (uint32_t)ranks[i];
        if (graft_gen_is_own(&find->laws[number])) {
            find->laws[number].alive = !is_superfluous(find, number);
        }
    }
}

/* -------------------------------------------------------------- confirming */

/* Lets a join of a law or lemma that stays count. */
static void count_join(graft_gen_search *find, const graft_gen_join *j)
{
    graft_gen_search_connect(find, j);
    graft_gen_search_cover(find, j, GRAFT_GEN_COVER_FIRM);
}

/* Starts anew: nothing is joined but by the laws that were kept. */
static void restart(graft_gen_search *find)
{
    for (uint32_t g = 0; g < find->groups.count; g++) {
        find->parents[g] = g;
        find->covers[g] = GRAFT_GEN_COVER_NONE;
    }
    memset(find->waiting, 0xff, ((size_t)find->pair_count + 2) * sizeof *find->waiting);
    find->wait_count = 0;
    find->place = 1;
    find->trail.told_count = 0;
    graft_gen_ahead_forget(find->ahead);
    for (uint32_t i = 0; i < find->law_count; i++) {
        const graft_gen_found *law = &find->laws[i];
        if (law->alive && graft_gen_is_own(law)) {
            (void)graft_gen_unite(find->parents, law->hub, law->other);
        }
    }
    for (uint32_t i = 0; i < find->joins.count; i++) {
        const graft_gen_found *law = &find->laws[find->joins.items[i].law];
        if (law->alive && !law->is_lemma) {
            count_join(find, &find->joins.items[i]);
        }
    }
}

/* The law of a pair that was dropped, or GRAFT_GEN_NONE. */
static uint32_t find_dropped(const graft_gen_search *find, uint32_t number)
{
    for (uint32_t i = 0; i < find->law_count; i++) {
        const graft_gen_found *law = &find->laws[i];
        if (graft_gen_is_own(law) && law->place == number + 1 && !law->alive) {
            return i;
        }
    }
    return GRAFT_GEN_NONE;
}

/* Takes a pair that does not follow from the laws that were kept. */
static void take_back(graft_gen_search *find, uint32_t number)
{
    graft_gen_pair *p = &find->pairs[number];
    uint32_t law = find_dropped(find, number);
    if (law == GRAFT_GEN_NONE) {
        const graft_gen_trial *trial = graft_gen_search_try(find, number, GRAFT_GEN_TRY_LAW, true);
        uint32_t told = trial->told;
        bool is_taken = graft_gen_search_take(find, number, trial, 0);
        if (!is_taken) {
            graft_gen_search_split(find, number, told);
        }
        p->fate = is_taken ? GRAFT_GEN_TAKEN : GRAFT_GEN_REFUTED;
        find->refuted_count += is_taken ? 0 : 1;
        return;
    }
    find->laws[law].alive = true;
    (void)graft_gen_unite(find->parents, p->hub, p->other);
    for (uint32_t i = 0; i < find->joins.count; i++) {
        if (find->joins.items[i].law == law) {
            count_join(find, &find->joins.items[i]);
        }
    }
}

/* Lays a pair that follows, as a step for larger ones. */
static void lay_step(graft_gen_search *find, uint32_t number)
{
    const graft_gen_trial *trial = graft_gen_search_try(find, number, GRAFT_GEN_TRY_LEMMA, false);
    for (uint32_t i = 0; trial->holds && !trial->is_refuted && i < trial->joins.count; i++) {
        count_join(find, &trial->joins.items[i]);
    }
}

/* Derives all pairs again, from nothing but the laws that were kept, and takes back what that does
 * not reach: a law may have been dropped because of one that was itself dropped later, with the
 * help of pairs that rest on the first. Here each pair rests on kept laws and on pairs before it,
 * so that nothing can rest on itself. */
static graft_status confirm_kept(graft_gen_search *find)
{
    graft_progress progress;
    uint32_t taken_count = 0;
    restart(find);
    for (uint32_t i = 0; i < find->pair_count; i++) {
        GRAFT_PASS(graft_gen_search_tell(find, &progress, i, "pairs derived again"));
        graft_gen_search_reach(find, i + 1);
        graft_gen_task task = graft_gen_search_task(find, i);
        if (task == GRAFT_GEN_TRY_LEMMA) {
            lay_step(find, i);
        } else if (task == GRAFT_GEN_TRY_LAW) {
            take_back(find, i);
            taken_count++;
        }
    }
    if (taken_count > 0) {
        sort_joins(find);
        graft_log(find->space->env, 2, "%s: %u laws taken back", find->space->set->name,
                  taken_count);
    }
    return GRAFT_OK;
}

graft_status graft_gen_search_minimise(graft_gen_search *find)
{
    drop_superfluous(find);
    return confirm_kept(find);
}

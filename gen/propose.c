/* propose.c - from groups of equal graphs to the laws that join them. */
#include "gen/propose.h"

#include "gen/apply.h"
#include "gen/check.h"
#include "gen/rule.h"
#include "graph/log.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN_PAIRS = 100000 }; /* So many have their progress told. */

typedef struct {
    uint32_t hub;
    uint32_t other;
    uint32_t order; /* Small graphs first; among equals those with more variables. */
    bool is_derived;
} pair;

/* Two graphs that are joined from some place on. */
typedef struct {
    uint32_t a;
    uint32_t b;
    uint32_t next; /* Chain of those that wait for the same pair. */
} wait;

/* By which laws a pair is known to be a mere instance (graft_gen_join.is_whole). */
typedef enum { COVER_NONE, COVER_OWN_LAW, COVER_FIRM } cover;

typedef struct {
    graft_gen_law law;
    uint32_t hub; /* GRAFT_GEN_NONE for a law of another set. */
    uint32_t other;
    uint32_t place; /* Of its pair. */
    bool is_lemma;  /* Follows from the laws before its place; helps to derive, is not kept. */
    bool alive;
} found_law;

typedef struct {
    const graft_gen_space *space;
    graft_arena *arena;
    graft_gen_groups groups;
    graft_gen_index index;
    graft_gen_site site;
    uint32_t *parents; /* Union-find over the graphs. */
    pair *pairs;
    uint32_t pair_count;
    uint32_t *places;  /* By node: 1 + number of the pair that says what it equals; 0 for the first
                          of a group and nodes in none. */
    uint32_t place;    /* Of the pair being looked at. */
    uint32_t *waiting; /* By place: chain of waits that count from there on. */
    wait *waits;
    uint32_t wait_count;
    uint32_t wait_capacity;
    uint8_t *covers; /* By graph: how it is joined to the first of its group (cover). */
    graft_gen_joins joins;
    uint32_t sorted_count; /* Joins of laws and lemmas; those of macros stand behind, */
    uint32_t *macro_joins; /* chained by the graph that they lead from. */
    found_law *laws;
    uint32_t law_count;
    uint32_t law_capacity;
    uint64_t refuted_count;
    graft_gen_checker checker;
} search;

/* -------------------------------------------------------------- union-find */

static uint32_t find_root(uint32_t *parents, uint32_t g)
{
    while (parents[g] != g) {
        parents[g] = parents[parents[g]];
        g = parents[g];
    }
    return g;
}

static void join_graphs(uint32_t *parents, uint32_t a, uint32_t b)
{
    uint32_t x = find_root(parents, a);
    uint32_t y = find_root(parents, b);
    parents[x > y ? x : y] = x > y ? y : x;
}

/* --------------------------------------------------------------- applying */

/* Joins two graphs, now or when the pair that the join rests on has had its turn. */
static void connect(search *find, const graft_gen_join *j)
{
    if (j->ready < find->place) {
        join_graphs(find->parents, j->from, j->to);
    } else if (find_root(find->parents, j->from) != find_root(find->parents, j->to)) {
        find->waits = graft_gen_grow(find->arena, find->waits, find->wait_count,
                                     &find->wait_capacity, sizeof *find->waits);
        find->waits[find->wait_count] = (wait){j->from, j->to, find->waiting[j->ready]};
        find->waiting[j->ready] = find->wait_count++;
    }
}

/* Notes the pair that a whole join says all about. */
static void note_cover(search *find, const found_law *found, const graft_gen_join *j)
{
    uint32_t hub = find->groups.graphs[j->from].hub;
    uint8_t kind = found->is_lemma || found->hub == GRAFT_GEN_NONE ? COVER_FIRM : COVER_OWN_LAW;
    if (j->is_whole && (j->from == hub || j->to == hub)) {
        uint32_t other = j->from == hub ? j->to : j->from;
        find->covers[other] = kind > find->covers[other] ? kind : find->covers[other];
    }
}

/* Finds all pairs of graphs that the law connects, and joins those that count already; a macro's
 * count for nothing yet, a lemma's are not kept. False when the law is refuted. */
static bool apply_law(search *find, const found_law *found)
{
    uint32_t before = find->joins.count;
    if (!graft_gen_law_join(&find->site, &found->law, find->law_count, &find->joins)) {
        return false;
    }
    for (uint32_t i = before; i < find->joins.count && !found->law.is_macro; i++) {
        connect(find, &find->joins.items[i]);
        note_cover(find, found, &find->joins.items[i]);
    }
    if (found->is_lemma) {
        find->joins.count = before;
    }
    return true;
}

/* ------------------------------------------------------------------- pairs */

static int compare_pairs(const void *a, const void *b)
{
    const pair *x = a;
    const pair *y = b;
    if (x->order != y->order) {
        return x->order < y->order ? -1 : 1;
    }
    return x->other < y->other ? -1 : x->other > y->other;
}

static void list_pairs(search *find)
{
    find->pairs = GRAFT_NEW(find->arena, pair, find->groups.count);
    for (uint32_t g = 0; g < find->groups.count; g++) {
        const graft_gen_graph *other = &find->groups.graphs[g];
        const graft_gen_graph *hub = &find->groups.graphs[other->hub];
        if (other->hub != g) {
            uint32_t large = hub->size > other->size ? hub->size : other->size;
            uint32_t small = hub->size > other->size ? other->size : hub->size;
            uint32_t vars = hub->var_count > other->var_count ? hub->var_count : other->var_count;
            find->pairs[find->pair_count++] = (pair){
                other->hub, g, large << 16 | small << 8 | (GRAFT_GEN_MAX_VARS - vars), false};
        }
    }
    qsort(find->pairs, find->pair_count, sizeof *find->pairs, compare_pairs);
}

static found_law *add_law(search *find, uint32_t hub, uint32_t other)
{
    find->laws = graft_gen_grow(find->arena, find->laws, find->law_count, &find->law_capacity,
                                sizeof *find->laws);
    find->laws[find->law_count] =
        (found_law){.hub = hub, .other = other, .place = find->place, .alive = true};
    return &find->laws[find->law_count];
}

/* The sides of a law that can be the source of a rule, as bits. */
static uint8_t find_directions(const graft_gen_law *law)
{
    graft_gen_ruling ruling;
    uint32_t directions = 0;
    for (uint32_t s = 0; s < 2; s++) {
        directions |= graft_gen_rule_make(law, s, &ruling) ? 1u << s : 0u;
    }
    return (uint8_t)directions;
}

/* Makes the law of a pair and applies it. False when it is false, or too large. A macro keeps only
 * the directions asked for, and is not taken when it has none of them. */
static bool accept_pair(search *find, const pair *p, bool is_macro, uint8_t directions)
{
    found_law *found = add_law(find, p->hub, p->other);
    if (!graft_gen_law_make(find->space, &find->checker, &find->groups.graphs[p->hub].roots,
                            &find->groups.graphs[p->other].roots, find->groups.output_count,
                            &found->law)) {
        return false;
    }
    found->law.is_macro = is_macro;
    found->law.directions = find_directions(&found->law) & directions;
    if ((is_macro && found->law.directions == 0) || !apply_law(find, found)) {
        return false;
    }
    find->law_count++;
    join_graphs(find->parents, p->hub, p->other);
    return true;
}

/* A pair that follows from laws is itself a step for larger pairs, for which the space may be too
 * small to hold the graphs in between. One that is an instance of a lemma joins nothing that this
 * does not join. One that is an instance of a law is needed only when the law is dropped. */
static void add_lemma(search *find, const pair *p)
{
    if (find->covers[p->other] == COVER_FIRM) {
        return;
    }
    found_law *found = add_law(find, p->hub, p->other);
    found->is_lemma = true;
    if (graft_gen_law_draw(find->space, &find->groups.graphs[p->hub].roots,
                           &find->groups.graphs[p->other].roots, find->groups.output_count,
                           &found->law) &&
        (find->covers[p->other] == COVER_OWN_LAW || apply_law(find, found))) {
        find->law_count++;
    }
}

/* Laws of other sets, as far as their operators are in this one. */
static void apply_known(search *find, const graft_gen_laws *known, uint32_t count)
{
    find->place = 1; /* What they rest on within this set still has to wait. */
    for (uint32_t i = 0; i < count; i++) {
        found_law *found = add_law(find, GRAFT_GEN_NONE, GRAFT_GEN_NONE);
        if (known->laws[i].output_count == find->groups.output_count && !known->laws[i].is_macro &&
            graft_gen_law_translate(&known->laws[i], find->space->set, &found->law) &&
            apply_law(find, found)) {
            find->law_count++;
        }
    }
}

/* Notes for every node, and its renamings, which pair says what it equals. */
static void set_places(search *find)
{
    const graft_gen_space *space = find->space;
    find->places = GRAFT_NEW(find->arena, uint32_t, space->node_count);
    find->waiting = GRAFT_NEW(find->arena, uint32_t, (size_t)find->pair_count + 2);
    memset(find->waiting, 0xff, ((size_t)find->pair_count + 2) * sizeof *find->waiting);
    for (uint32_t i = 0; i < find->pair_count && find->groups.output_count == 1; i++) {
        uint32_t root = find->groups.graphs[find->pairs[i].other].roots.of[0];
        for (uint32_t r = 0; r < space->renaming_count; r++) {
            uint32_t node = graft_gen_node_image(space, root / GRAFT_MAX_OUTPUTS, r);
            if (node != GRAFT_GEN_NONE && find->places[node] == 0) {
                find->places[node] = i + 1;
            }
        }
    }
}

/* Lets the joins count that waited for the pair before this place. */
static void reach_place(search *find, uint32_t place)
{
    find->place = place;
    for (uint32_t i = find->waiting[place - 1]; i != GRAFT_GEN_NONE; i = find->waits[i].next) {
        join_graphs(find->parents, find->waits[i].a, find->waits[i].b);
    }
}

/* The progress of a walk over all pairs, and whether it may go on. */
static graft_status tell_progress(const search *find, graft_progress *progress, uint32_t i,
                                  const char *unit)
{
    const graft_gen_space *space = find->space;
    if (graft_interrupted()) {
        return GRAFT_FAIL(space->env, GRAFT_INTERRUPTED, "interrupted");
    }
    if (i == 0) {
        graft_progress_start(progress, space->env, space->set->name, unit, find->pair_count);
    }
    if (find->pair_count >= SHOWN_PAIRS) {
        graft_progress_update(progress, i, NULL);
    }
    return GRAFT_OK;
}

static graft_status take_pairs(search *find)
{
    graft_status status = GRAFT_OK;
    graft_progress progress;
    for (uint32_t i = 0; i < find->pair_count; i++) {
        pair *p = &find->pairs[i];
        GRAFT_CHECK(tell_progress(find, &progress, i, "pairs for laws"));
        reach_place(find, i + 1);
        p->is_derived = find_root(find->parents, p->hub) == find_root(find->parents, p->other);
        if (p->is_derived && p->order >> 16 < find->space->set->depth) {
            add_lemma(find, p);
        } else if (!p->is_derived && !accept_pair(find, p, false, 3)) {
            find->refuted_count++;
        }
    }
done:
    return status;
}

/* -------------------------------------------------------------- minimising */

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

/* The first join whose graph is at least `graph`; joins are sorted. */
static uint32_t first_join(const search *find, uint32_t graph)
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

/* Whether the laws alive but `number` join its two graphs, resting on earlier pairs alone. */
static bool is_superfluous(search *find, uint32_t number)
{
    const found_law *law = &find->laws[number];
    uint32_t end = law->hub;
    for (; end < find->groups.count && find->groups.graphs[end].hub == law->hub; end++) {
        find->parents[end] = end;
    }
    for (uint32_t i = first_join(find, law->hub);
         i < find->sorted_count && find->joins.items[i].from < end; i++) {
        const graft_gen_join *j = &find->joins.items[i];
        const found_law *step = &find->laws[j->law];
        bool usable = step->is_lemma ? step->place < law->place : step->alive;
        if (j->law != number && usable && j->ready < law->place) {
            join_graphs(find->parents, j->from, j->to);
        }
    }
    return find_root(find->parents, law->hub) == find_root(find->parents, law->other);
}

/* What to keep: fewer operators first, then more variables, then the earlier one. */
static uint64_t rank_law(const found_law *law, uint32_t number)
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

static bool is_own_law(const found_law *law)
{
    return law->hub != GRAFT_GEN_NONE && !law->is_lemma;
}

/* Adds the joins of lemmas in the groups of laws that may be dropped. */
static void add_lemma_joins(search *find)
{
    graft_gen_index index;
    graft_gen_site site = find->site;
    bool *marks = GRAFT_NEW(find->arena, bool, find->groups.count);
    for (uint32_t i = 0; i < find->law_count; i++) {
        if (is_own_law(&find->laws[i])) {
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

static void drop_superfluous(search *find)
{
    add_lemma_joins(find);
    uint64_t *ranks = GRAFT_NEW(find->arena, uint64_t, find->law_count);
    for (uint32_t i = 0; i < find->law_count; i++) {
        ranks[i] = rank_law(&find->laws[i], i);
    }
    if (find->law_count > 0) {
        qsort(ranks, find->law_count, sizeof *ranks, compare_ranks);
    }
    if (find->joins.count > 0) {
        qsort(find->joins.items, find->joins.count, sizeof *find->joins.items, compare_joins);
        find->sorted_count = find->joins.count;
    }
    for (uint32_t i = 0; i < find->law_count; i++) {
        uint32_t number = (uint32_t)ranks[i];
        if (is_own_law(&find->laws[number])) {
            find->laws[number].alive = !is_superfluous(find, number);
        }
    }
}

/* ------------------------------------------------------------------ macros */

/* What a search would like to make smaller: operators that run at inference, then all operators. */
static uint32_t weigh_graph(const search *find, uint32_t graph)
{
    return (uint32_t)find->groups.graphs[graph].live_count << 8 | find->groups.graphs[graph].size;
}

/* A walk over a group, from graph to graph by rules that can be matched. */
typedef struct {
    const search *find;
    uint32_t *stamps; /* By graph: the last walk that reached it. */
    uint32_t *pending;
    uint32_t depth;
    uint32_t stamp;
    bool downhill; /* Only to graphs that are no heavier. */
    bool literal;  /* Only by laws that fit as they are. */
} walk;

static void follow_join(walk *w, const graft_gen_join *j)
{
    const search *find = w->find;
    const found_law *law = &find->laws[j->law];
    bool matched = law->alive && !law->is_lemma && (law->law.directions >> j->side & 1u) != 0;
    bool lighter = weigh_graph(find, j->to) <= weigh_graph(find, j->from);
    bool allowed = (j->is_literal || !w->literal) && (lighter || !w->downhill);
    if (matched && allowed && w->stamps[j->to] != w->stamp) {
        w->stamps[j->to] = w->stamp;
        w->pending[w->depth++] = j->to;
    }
}

static bool leads_to(walk *w, uint32_t from, uint32_t to, bool downhill)
{
    const search *find = w->find;
    w->downhill = downhill;
    w->literal = downhill || find->groups.output_count > 1;
    w->stamp++;
    w->depth = 0;
    w->stamps[from] = w->stamp;
    w->pending[w->depth++] = from;
    while (w->depth > 0) {
        uint32_t graph = w->pending[--w->depth];
        if (graph == to) {
            return true;
        }
        for (uint32_t i = first_join(find, graph);
             i < find->sorted_count && find->joins.items[i].from == graph; i++) {
            follow_join(w, &find->joins.items[i]);
        }
        for (uint32_t i = find->macro_joins[graph]; i != GRAFT_GEN_NONE;
             i = find->joins.items[i].next) {
            follow_join(w, &find->joins.items[i]);
        }
    }
    return false;
}

/* The directions that a dropped pair is missed in; side 0 is the first of the group. A law fits up
 * to equal inner graphs where nothing is to be saved, but for pairs of outputs: two products whose
 * operands could be pieces of one concatenation are nowhere pieces of it. */
static uint8_t missed_directions(walk *w, const pair *p)
{
    const search *find = w->find;
    const uint32_t ends[2] = {p->hub, p->other};
    uint32_t directions = 0;
    for (uint32_t s = 0; s < 2; s++) {
        uint32_t from = ends[s];
        uint32_t to = ends[1 - s];
        bool saves = weigh_graph(find, to) < weigh_graph(find, from);
        if (!leads_to(w, from, to, saves)) {
            directions |= 1u << s;
        }
    }
    return (uint8_t)directions;
}

static graft_status take_macros(search *find)
{
    graft_status status = GRAFT_OK;
    graft_progress progress;
    walk w = {.find = find};
    w.stamps = GRAFT_NEW(find->arena, uint32_t, find->groups.count);
    w.pending = GRAFT_NEW(find->arena, uint32_t, find->groups.count);
    find->macro_joins = GRAFT_NEW(find->arena, uint32_t, find->groups.count);
    memset(find->macro_joins, 0xff, find->groups.count * sizeof *find->macro_joins);
    for (uint32_t i = 0; i < find->pair_count; i++) {
        const pair *p = &find->pairs[i];
        GRAFT_CHECK(tell_progress(find, &progress, i, "pairs for macros"));
        uint8_t directions = p->is_derived ? missed_directions(&w, p) : 0;
        uint32_t before = find->joins.count;
        if (directions != 0 && accept_pair(find, p, true, directions)) {
            for (uint32_t j = before; j < find->joins.count; j++) {
                find->joins.items[j].next = find->macro_joins[find->joins.items[j].from];
                find->macro_joins[find->joins.items[j].from] = j;
            }
        }
    }
done:
    return status;
}

/* ----------------------------------------------------------------- results */

static void keep_laws(search *find, graft_arena *arena, graft_gen_counts *counts,
                      graft_gen_laws *laws)
{
    for (uint32_t i = 0; i < find->law_count; i++) {
        if (find->laws[i].alive && is_own_law(&find->laws[i])) {
            laws->laws =
                graft_gen_grow(arena, laws->laws, laws->count, &laws->capacity, sizeof *laws->laws);
            laws->laws[laws->count++] = find->laws[i].law;
            counts->laws += find->laws[i].law.is_macro ? 0 : 1;
            counts->macros += find->laws[i].law.is_macro ? 1 : 0;
        }
    }
    counts->keys += find->groups.key_count;
    counts->raw += find->pair_count;
    counts->refuted += find->refuted_count;
    size_t bytes = graft_arena_used_bytes(find->arena);
    counts->memory_bytes = bytes > counts->memory_bytes ? bytes : counts->memory_bytes;
}

static graft_status propose(graft_gen_space *space, uint32_t output_count, uint32_t known_count,
                            graft_arena *arena, graft_gen_laws *laws)
{
    graft_status status = GRAFT_OK;
    search find = {.space = space, .arena = space->arena};
    find.checker.scratch = space->env->scratch;
    find.checker.memory = graft_arena_new(1 << 20);
    graft_gen_groups_build(space, find.arena, output_count, &find.groups);
    graft_gen_index_build(&find.groups, NULL, find.arena, &find.index);
    find.parents = GRAFT_NEW(find.arena, uint32_t, find.groups.count);
    find.covers = GRAFT_NEW(find.arena, uint8_t, find.groups.count);
    for (uint32_t g = 0; g < find.groups.count; g++) {
        find.parents[g] = g;
    }
    list_pairs(&find);
    set_places(&find);
    find.site = (graft_gen_site){&find.groups, &find.index, find.places, find.arena};
    apply_known(&find, laws, known_count);
    GRAFT_CHECK(take_pairs(&find));
    drop_superfluous(&find);
    GRAFT_CHECK(take_macros(&find));
    keep_laws(&find, arena, &space->counts, laws);
done:
    graft_arena_free(find.checker.memory);
    return status;
}

graft_status graft_gen_propose(graft_gen_space *space, graft_arena *arena, graft_gen_laws *laws)
{
    graft_status status = GRAFT_OK;
    uint32_t known_count = laws->count;
    for (uint32_t outputs = 1; outputs <= space->set->output_count; outputs++) {
        graft_mark mark = graft_arena_mark(space->arena);
        status = propose(space, outputs, known_count, arena, laws);
        graft_arena_release(space->arena, mark);
        if (status != GRAFT_OK) {
            break;
        }
    }
    return status;
}

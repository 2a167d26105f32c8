/* propose.c - from groups of equal graphs to the laws that join them. */
#include "gen/propose.h"

#include "gen/groups.h"
#include "gen/rule.h"
#include "graph/log.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    uint32_t hub;
    uint32_t other;
    uint32_t order; /* Small graphs first; among equals those with more variables. */
    bool is_derived;
} pair;

/* Two graphs that a law connects; counts for pairs behind `ready`. */
typedef struct {
    uint32_t from;
    uint32_t to;
    uint32_t law;
    uint32_t ready;
    uint32_t next;   /* Chain of joins that wait for the same pair. */
    uint8_t side;    /* Of the law, at `from`. */
    bool is_literal; /* The side stands in `from` as it is, not just up to equal inner graphs. */
} join;

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
    uint32_t *parents; /* Union-find over the graphs. */
    pair *pairs;
    uint32_t pair_count;
    uint32_t *places;  /* By node: 1 + number of the pair that says what it equals; 0 for the first
                          of a group and nodes in none. */
    uint32_t *waiting; /* By place: chain of joins that count from there on. */
    uint32_t place;    /* Of the pair being looked at. */
    join *joins;
    uint32_t join_count;
    uint32_t join_capacity;
    uint32_t sorted_count; /* Joins of laws; those of macros stand behind, */
    uint32_t *macro_joins; /* chained by the graph that they lead from. */
    found_law *laws;
    uint32_t law_count;
    uint32_t law_capacity;
    uint64_t refuted_count;
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

/* A law at one graph. */
typedef struct {
    search *find;
    const graft_gen_law *law;
    uint32_t number;
    uint32_t side;
    uint32_t from;
    bool swapped; /* The law's outputs stand for the graph's in the other order. */
    bool refuted;
} application;

static bool is_root(const graft_gen_side *side, uint32_t output_count, uint32_t n)
{
    for (uint32_t o = 0; o < output_count; o++) {
        if (GRAFT_GEN_IS_OUT(side->outputs[o]) && GRAFT_GEN_OUT_NODE(side->outputs[o]) == n) {
            return true;
        }
    }
    return false;
}

/* The place of the last pair that inner nodes of a side rest on. */
static uint32_t inner_ready(const search *find, const graft_gen_side *side, const uint32_t *nodes,
                            uint32_t output_count)
{
    uint32_t ready = 0;
    for (uint32_t n = 0; n < side->count; n++) {
        if (!is_root(side, output_count, n) && find->places[nodes[n]] > ready) {
            ready = find->places[nodes[n]];
        }
    }
    return ready;
}

/* Whether the inner nodes of a fit are those that a graph is made of. */
static bool fit_is_literal(const search *find, const graft_gen_side *side, const graft_gen_fit *fit,
                           uint32_t output_count)
{
    for (uint32_t n = 0; n < side->count; n++) {
        if (!is_root(side, output_count, n) &&
            !graft_gen_is_representative(find->space, fit->nodes[n])) {
            return false;
        }
    }
    return true;
}

static void record_join(application *apply, const graft_gen_fit *fit, uint32_t to)
{
    search *find = apply->find;
    const graft_gen_law *law = apply->law;
    const graft_gen_side *side = &law->sides[apply->side];
    const graft_gen_side *other = &law->sides[1 - apply->side];
    uint32_t near = inner_ready(find, side, fit->nodes, law->output_count);
    uint32_t far = inner_ready(find, other, fit->others, law->output_count);
    find->joins = graft_gen_grow(find->arena, find->joins, find->join_count, &find->join_capacity,
                                 sizeof *find->joins);
    find->joins[find->join_count++] =
        (join){.from = apply->from,
               .to = to,
               .law = apply->number,
               .ready = near > far ? near : far,
               .next = GRAFT_GEN_NONE,
               .side = (uint8_t)apply->side,
               .is_literal = fit_is_literal(find, side, fit, law->output_count)};
}

static bool visit_fit(void *context, graft_gen_fit *fit)
{
    application *apply = context;
    search *find = apply->find;
    const graft_gen_graph *from = &find->groups.graphs[apply->from];
    uint32_t values[GRAFT_MAX_OUTPUTS];
    graft_gen_roots roots = {
        {0, 0}
    };
    graft_gen_roots sorted = {
        {0, 0}
    };
    if (!graft_gen_law_apply(find->space, apply->law, apply->side, fit, values, &roots)) {
        return true;
    }
    for (uint32_t o = 0; o < apply->law->output_count; o++) {
        uint32_t place = apply->swapped ? 1 - o : o;
        if (values[o] != from->values[place]) {
            apply->refuted = apply->refuted || fit->same_shapes;
            return !apply->refuted;
        }
        sorted.of[place] = roots.of[o];
    }
    uint32_t to = graft_gen_groups_find(&find->groups, apply->from, &sorted);
    if (to != GRAFT_GEN_NONE && to != apply->from) {
        record_join(apply, fit, to);
    }
    return true;
}

static void apply_at(application *apply, uint32_t graph)
{
    const graft_gen_graph *from = &apply->find->groups.graphs[graph];
    apply->from = graph;
    apply->swapped = false;
    graft_gen_law_match(apply->find->space, apply->law, apply->side, &from->roots, visit_fit,
                        apply);
    if (apply->law->output_count == 2 && !apply->refuted) {
        graft_gen_roots roots = {
            {from->roots.of[1], from->roots.of[0]}
        };
        apply->swapped = true;
        graft_gen_law_match(apply->find->space, apply->law, apply->side, &roots, visit_fit, apply);
    }
}

/* Whether the clue says nothing against pattern node n at the first root. */
static bool clue_fits(const application *apply, uint32_t n, const graft_gen_clue *clue)
{
    const graft_gen_law *law = apply->law;
    const graft_gen_application *node = &law->sides[apply->side].nodes[n];
    const graft_gen_config *config = &apply->find->space->set->configs[node->config];
    for (uint32_t swap = 0; swap < (config->commutes ? 2u : 1u); swap++) {
        bool fits = true;
        for (uint32_t i = 0; i < 2 && i < config->input_count; i++) {
            fits =
                fits && graft_gen_operand_may_bind(law, apply->side, node->args[i],
                                                   clue->makers[i ^ swap], clue->ranks[i ^ swap]);
        }
        if (fits) {
            return true;
        }
    }
    return false;
}

/* Matches one side at every graph whose first root may be its output o. */
static void apply_output(application *apply, uint32_t o)
{
    const graft_gen_groups *groups = &apply->find->groups;
    const graft_gen_side *pattern = &apply->law->sides[apply->side];
    uint32_t n = GRAFT_GEN_OUT_NODE(pattern->outputs[o]);
    uint32_t config = pattern->nodes[n].config;
    bool is_only = apply->law->output_count == 1;
    for (uint32_t i = groups->first_by_config[config];
         i < groups->first_by_config[config + 1] && !apply->refuted; i++) {
        const graft_gen_clue *clue = &groups->clues[i];
        const graft_gen_graph *graph = &groups->graphs[clue->graph];
        /* Of two outputs with one configuration either may be the first root. */
        if (is_only ? clue_fits(apply, n, clue) : !GRAFT_GEN_ROOT_IS_INPUT(graph->roots.of[1])) {
            apply_at(apply, clue->graph);
        }
    }
}

/* Matches one side at every graph whose first root may be its first or, of two, its second. */
static void apply_side(application *apply, uint32_t side)
{
    const graft_gen_side *pattern = &apply->law->sides[side];
    apply->side = side;
    for (uint32_t o = 0; o < apply->law->output_count; o++) {
        if (!GRAFT_GEN_IS_OUT(pattern->outputs[o])) {
            return; /* A bare variable fits everywhere and says nothing. */
        }
    }
    for (uint32_t o = 0; o < apply->law->output_count; o++) {
        uint32_t config = pattern->nodes[GRAFT_GEN_OUT_NODE(pattern->outputs[o])].config;
        uint32_t before = pattern->nodes[GRAFT_GEN_OUT_NODE(pattern->outputs[0])].config;
        if (o == 1 && config == before) {
            return; /* Seen already. */
        }
        apply_output(apply, o);
    }
}

/* Records all pairs of graphs that the law connects, and joins those that count already. False, and
 * nothing recorded, when it is refuted. */
static bool apply_law(search *find, const graft_gen_law *law, bool is_macro)
{
    uint32_t before = find->join_count;
    application apply = {.find = find, .law = law, .number = find->law_count};
    apply_side(&apply, 0);
    apply_side(&apply, 1);
    if (apply.refuted) {
        find->join_count = before;
        return false;
    }
    for (uint32_t i = before; i < find->join_count && !is_macro; i++) {
        join *j = &find->joins[i];
        if (j->ready < find->place) {
            join_graphs(find->parents, j->from, j->to);
        } else {
            j->next = find->waiting[j->ready];
            find->waiting[j->ready] = i;
        }
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
    if (!graft_gen_law_make(find->space, &find->groups.graphs[p->hub].roots,
                            &find->groups.graphs[p->other].roots, find->groups.output_count,
                            &found->law)) {
        return false;
    }
    found->law.is_macro = is_macro;
    found->law.directions = find_directions(&found->law) & directions;
    if ((is_macro && found->law.directions == 0) || !apply_law(find, &found->law, is_macro)) {
        return false;
    }
    find->law_count++;
    join_graphs(find->parents, p->hub, p->other);
    return true;
}

/* A pair that follows from laws is itself a step for larger pairs, for which the space may be too
 * small to hold the graphs in between. */
static void add_lemma(search *find, const pair *p)
{
    found_law *found = add_law(find, p->hub, p->other);
    found->is_lemma = true;
    if (graft_gen_law_draw(find->space, &find->groups.graphs[p->hub].roots,
                           &find->groups.graphs[p->other].roots, find->groups.output_count,
                           &found->law) &&
        apply_law(find, &found->law, false)) {
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
            apply_law(find, &found->law, false)) {
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
    for (uint32_t i = find->waiting[place - 1]; i != GRAFT_GEN_NONE; i = find->joins[i].next) {
        join_graphs(find->parents, find->joins[i].from, find->joins[i].to);
    }
}

static graft_status take_pairs(search *find)
{
    for (uint32_t i = 0; i < find->pair_count; i++) {
        pair *p = &find->pairs[i];
        if (graft_interrupted()) {
            return GRAFT_FAIL(find->space->env, GRAFT_INTERRUPTED, "interrupted");
        }
        reach_place(find, i + 1);
        p->is_derived = find_root(find->parents, p->hub) == find_root(find->parents, p->other);
        if (p->is_derived && p->order >> 16 < find->space->set->depth) {
            add_lemma(find, p);
        } else if (!p->is_derived && !accept_pair(find, p, false, 3)) {
            find->refuted_count++;
        }
    }
    return GRAFT_OK;
}

/* -------------------------------------------------------------- minimising */

static int compare_joins(const void *a, const void *b)
{
    const join *x = a;
    const join *y = b;
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
        if (find->joins[middle].from < graph) {
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
         i < find->sorted_count && find->joins[i].from < end; i++) {
        const join *j = &find->joins[i];
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

static void drop_superfluous(search *find)
{
    uint64_t *ranks = GRAFT_NEW(find->arena, uint64_t, find->law_count);
    for (uint32_t i = 0; i < find->law_count; i++) {
        ranks[i] = rank_law(&find->laws[i], i);
    }
    if (find->law_count > 0) {
        qsort(ranks, find->law_count, sizeof *ranks, compare_ranks);
    }
    if (find->join_count > 0) {
        qsort(find->joins, find->join_count, sizeof *find->joins, compare_joins);
        find->sorted_count = find->join_count;
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
    bool downhill; /* Only by laws that fit as they are, and to graphs that are no heavier. */
} walk;

static void follow_join(walk *w, const join *j)
{
    const search *find = w->find;
    const found_law *law = &find->laws[j->law];
    bool matched = law->alive && !law->is_lemma && (law->law.directions >> j->side & 1u) != 0;
    bool allowed =
        !w->downhill || (j->is_literal && weigh_graph(find, j->to) <= weigh_graph(find, j->from));
    if (matched && allowed && w->stamps[j->to] != w->stamp) {
        w->stamps[j->to] = w->stamp;
        w->pending[w->depth++] = j->to;
    }
}

static bool leads_to(walk *w, uint32_t from, uint32_t to, bool downhill)
{
    const search *find = w->find;
    w->downhill = downhill;
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
             i < find->sorted_count && find->joins[i].from == graph; i++) {
            follow_join(w, &find->joins[i]);
        }
        for (uint32_t i = find->macro_joins[graph]; i != GRAFT_GEN_NONE; i = find->joins[i].next) {
            follow_join(w, &find->joins[i]);
        }
    }
    return false;
}

/* The directions that a dropped pair is missed in; side 0 is the first of the group. */
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

static void take_macros(search *find)
{
    walk w = {.find = find};
    w.stamps = GRAFT_NEW(find->arena, uint32_t, find->groups.count);
    w.pending = GRAFT_NEW(find->arena, uint32_t, find->groups.count);
    find->macro_joins = GRAFT_NEW(find->arena, uint32_t, find->groups.count);
    memset(find->macro_joins, 0xff, find->groups.count * sizeof *find->macro_joins);
    for (uint32_t i = 0; i < find->pair_count; i++) {
        const pair *p = &find->pairs[i];
        uint8_t directions = p->is_derived ? missed_directions(&w, p) : 0;
        uint32_t before = find->join_count;
        if (directions != 0 && accept_pair(find, p, true, directions)) {
            for (uint32_t j = before; j < find->join_count; j++) {
                find->joins[j].next = find->macro_joins[find->joins[j].from];
                find->macro_joins[find->joins[j].from] = j;
            }
        }
    }
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
    graft_gen_groups_build(space, find.arena, output_count, &find.groups);
    find.parents = GRAFT_NEW(find.arena, uint32_t, find.groups.count);
    for (uint32_t g = 0; g < find.groups.count; g++) {
        find.parents[g] = g;
    }
    list_pairs(&find);
    set_places(&find);
    apply_known(&find, laws, known_count);
    GRAFT_CHECK(take_pairs(&find));
    drop_superfluous(&find);
    take_macros(&find);
    keep_laws(&find, arena, &space->counts, laws);
done:
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

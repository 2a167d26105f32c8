/* propose.c - from groups of equal graphs to the laws that join them. */
#include "gen/propose.h"

#include "gen/resume.h"
#include "gen/rule.h"
#include "gen/search.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN_PAIRS = 100000 }; /* So many have their progress told. */

/* --------------------------------------------------------------- applying */

void graft_gen_search_connect(graft_gen_search *find, const graft_gen_join *j)
{
    if (j->ready < find->place) {
        find->change_count += graft_gen_unite(find->parents, j->from, j->to) ? 1 : 0;
    } else if (graft_gen_root_of(find->parents, j->from) !=
               graft_gen_root_of(find->parents, j->to)) {
        GRAFT_GEN_PUSH(find->arena, find->waits, find->wait_count, find->wait_capacity) =
            (graft_gen_wait){j->from, j->to, find->waiting[j->ready]};
        find->waiting[j->ready] = find->wait_count - 1;
        find->change_count++;
    }
}

void graft_gen_search_cover(graft_gen_search *find, const graft_gen_join *j, graft_gen_cover kind)
{
    const uint32_t ends[2] = {j->from, j->to};
    for (uint32_t e = 0; e < 2 && j->is_whole; e++) {
        uint32_t pair = find->pair_of[ends[e]];
        if (pair != GRAFT_GEN_NONE && find->pairs[pair].hub == ends[1 - e] &&
            kind > find->covers[ends[e]]) {
            find->covers[ends[e]] = (uint8_t)kind;
            find->change_count++;
        }
    }
}

/* Joins what the last law joins: what counts already at once; a macro's count for nothing yet, a
 * lemma's are not kept. */
static void take_joins(graft_gen_search *find, const graft_gen_trial *trial)
{
    const graft_gen_found *found = &find->laws[find->law_count];
    bool is_firm = found->is_lemma || found->hub == GRAFT_GEN_NONE;
    for (uint32_t i = 0; i < trial->joins.count; i++) {
        graft_gen_join join = trial->joins.items[i];
        join.law = find->law_count;
        if (!found->law.is_macro) {
            graft_gen_search_connect(find, &join);
            graft_gen_search_cover(find, &join,
                                   is_firm ? GRAFT_GEN_COVER_FIRM : GRAFT_GEN_COVER_OWN_LAW);
        }
        if (!found->is_lemma) {
            graft_gen_joins *joins = &find->joins;
            GRAFT_GEN_PUSH(find->arena, joins->items, joins->count, joins->capacity) = join;
        }
    }
}

/* ------------------------------------------------------------------- pairs */

static int compare_pairs(const void *a, const void *b)
{
    const graft_gen_pair *x = a;
    const graft_gen_pair *y = b;
    if (x->order != y->order) {
        return x->order < y->order ? -1 : 1;
    }
    return x->other < y->other ? -1 : x->other > y->other;
}

static void list_pairs(graft_gen_search *find)
{
    find->pairs = GRAFT_NEW(find->arena, graft_gen_pair, find->groups.count);
    for (uint32_t g = 0; g < find->groups.count; g++) {
        const graft_gen_graph *other = &find->groups.graphs[g];
        const graft_gen_graph *hub = &find->groups.graphs[other->hub];
        if (other->hub != g) {
            uint32_t large = hub->size > other->size ? hub->size : other->size;
            uint32_t small = hub->size > other->size ? other->size : hub->size;
            uint32_t vars = hub->var_count > other->var_count ? hub->var_count : other->var_count;
            find->pairs[find->pair_count++] = (graft_gen_pair){
                other->hub, g, large << 16 | small << 8 | (GRAFT_GEN_MAX_VARS - vars),
                GRAFT_GEN_UNTOLD};
        }
    }
    qsort(find->pairs, find->pair_count, sizeof *find->pairs, compare_pairs);
    find->pair_of = GRAFT_NEW(find->arena, uint32_t, find->groups.count);
    memset(find->pair_of, 0xff, find->groups.count * sizeof *find->pair_of);
    for (uint32_t i = 0; i < find->pair_count; i++) {
        find->pair_of[find->pairs[i].other] = i;
    }
}

static graft_gen_found *add_law(graft_gen_search *find, uint32_t hub, uint32_t other)
{
    find->laws = graft_arena_grow(find->arena, find->laws, find->law_count, &find->law_capacity,
                                  GRAFT_GEN_FIRST_CAPACITY, sizeof *find->laws);
    graft_gen_found *found = &find->laws[find->law_count];
    *found = (graft_gen_found){.hub = hub, .other = other, .place = find->place, .alive = true};
    return found;
}

uint8_t graft_gen_search_directions(const graft_gen_law *law)
{
    graft_gen_ruling ruling;
    uint32_t directions = 0;
    for (uint32_t s = 0; s < 2; s++) {
        directions |= graft_gen_rule_make(law, s, &ruling) ? 1u << s : 0u;
    }
    return (uint8_t)directions;
}

/* Whether a pair's graphs are joined. */
static bool pair_follows(const graft_gen_search *find, const graft_gen_pair *p)
{
    return graft_gen_root_of(find->parents, p->hub) == graft_gen_root_of(find->parents, p->other);
}

/* ------------------------------------------------------------------ trials */

static void make_trial(const graft_gen_search *find, uint32_t number, graft_gen_task task,
                       graft_gen_trial *trial)
{
    const graft_gen_pair *p = &find->pairs[number];
    trial->number = number;
    trial->task = (uint8_t)task;
    trial->roots[0] = &find->groups.graphs[p->hub].roots;
    trial->roots[1] = &find->groups.graphs[p->other].roots;
    trial->given = task == GRAFT_GEN_TRY_GIVEN ? graft_gen_trail_law(&find->trail, number) : NULL;
}

graft_gen_task graft_gen_search_task(const graft_gen_search *find, uint32_t number)
{
    const graft_gen_pair *p = &find->pairs[number];
    switch (graft_gen_trail_fate(&find->trail, number)) {
    case GRAFT_GEN_TAKEN:
        return GRAFT_GEN_TRY_GIVEN;
    case GRAFT_GEN_LAID:
        return GRAFT_GEN_TRY_LEMMA;
    case GRAFT_GEN_UNTOLD:
        break;
    case GRAFT_GEN_PASSED:
    case GRAFT_GEN_DRAWN:
    case GRAFT_GEN_IDLE:
    case GRAFT_GEN_REFUTED:
    default:
        return GRAFT_GEN_NO_TASK;
    }
    if (!pair_follows(find, p)) {
        return p->fate == GRAFT_GEN_REFUTED ? GRAFT_GEN_NO_TASK : GRAFT_GEN_TRY_LAW;
    }
    bool is_step =
        p->order >> 16 < find->space->set->depth && find->covers[p->other] == GRAFT_GEN_COVER_NONE;
    return is_step ? GRAFT_GEN_TRY_LEMMA : GRAFT_GEN_NO_TASK;
}

static void guess_pair(void *context, uint32_t number, graft_gen_trial *trial)
{
    const graft_gen_search *find = context;
    make_trial(find, number, graft_gen_search_task(find, number), trial);
}

const graft_gen_trial *graft_gen_search_try(graft_gen_search *find, uint32_t number,
                                            graft_gen_task task, bool alone)
{
    graft_gen_trial wanted = {.holds = false};
    make_trial(find, number, task, &wanted);
    return graft_gen_ahead_take(find->ahead, &wanted, guess_pair, find,
                                alone ? number + 1 : find->pair_count);
}

bool graft_gen_search_take(graft_gen_search *find, uint32_t number, const graft_gen_trial *trial,
                           uint8_t macro_directions)
{
    const graft_gen_pair *p = &find->pairs[number];
    graft_gen_found *found = add_law(find, p->hub, p->other);
    if (!trial->holds || trial->is_refuted) {
        return false;
    }
    found->law = trial->law;
    found->law.is_macro = macro_directions != 0;
    found->law.directions = graft_gen_search_directions(&found->law);
    if (found->law.is_macro) {
        found->law.directions &= macro_directions;
        if (found->law.directions == 0) {
            return false;
        }
    }
    take_joins(find, trial);
    find->law_count++;
    (void)graft_gen_unite(find->parents, p->hub, p->other);
    return true;
}

/* --------------------------------------------------------------- the walk */

/* A lemma that is laid on nothing for now. False when it is too large. */
static bool draw_lemma(graft_gen_search *find, const graft_gen_pair *p)
{
    graft_gen_found *found = add_law(find, p->hub, p->other);
    found->is_lemma = true;
    bool is_drawn = graft_gen_law_draw(find->space, &find->groups.graphs[p->hub].roots,
                                       &find->groups.graphs[p->other].roots,
                                       find->groups.output_count, &found->law);
    find->law_count += is_drawn ? 1 : 0;
    return is_drawn;
}

/* Lays a pair that follows, as drawn, wherever it fits: GRAFT_GEN_LAID, ..._IDLE or ..._PASSED. */
static graft_gen_fate lay_lemma(graft_gen_search *find, uint32_t number)
{
    const graft_gen_pair *p = &find->pairs[number];
    const graft_gen_trial *trial = graft_gen_search_try(find, number, GRAFT_GEN_TRY_LEMMA, false);
    uint64_t before = find->change_count;
    graft_gen_found *found = add_law(find, p->hub, p->other);
    if (!trial->holds || trial->is_refuted) {
        return GRAFT_GEN_PASSED;
    }
    found->is_lemma = true;
    found->law = trial->law;
    take_joins(find, trial);
    find->law_count++;
    return find->change_count > before ? GRAFT_GEN_LAID : GRAFT_GEN_IDLE;
}

/* A pair that follows from laws is itself a step for larger pairs, for which the space may be too
 * small to hold the graphs in between. One that is an instance of a lemma joins nothing that this
 * does not join. One that is an instance of a law is needed only when the law is dropped. */
static graft_gen_fate take_lemma(graft_gen_search *find, uint32_t number)
{
    const graft_gen_pair *p = &find->pairs[number];
    uint8_t cover = find->covers[p->other];
    if (p->order >> 16 >= find->space->set->depth || cover == GRAFT_GEN_COVER_FIRM) {
        return GRAFT_GEN_PASSED;
    }
    if (cover == GRAFT_GEN_COVER_OWN_LAW) {
        return draw_lemma(find, p) ? GRAFT_GEN_DRAWN : GRAFT_GEN_PASSED;
    }
    return lay_lemma(find, number);
}

static graft_gen_fate take_pair(graft_gen_search *find, uint32_t number)
{
    if (pair_follows(find, &find->pairs[number])) {
        return take_lemma(find, number);
    }
    const graft_gen_trial *trial = graft_gen_search_try(find, number, GRAFT_GEN_TRY_LAW, false);
    uint32_t told = trial->told;
    if (graft_gen_search_take(find, number, trial, 0)) {
        return GRAFT_GEN_TAKEN;
    }
    graft_gen_search_split(find, number, told);
    return GRAFT_GEN_REFUTED;
}

/* Does again what an earlier run has told of a pair. */
static graft_gen_fate retake_pair(graft_gen_search *find, uint32_t number)
{
    graft_gen_fate fate = graft_gen_trail_fate(&find->trail, number);
    if (fate == GRAFT_GEN_TAKEN) {
        (void)graft_gen_search_take(
            find, number, graft_gen_search_try(find, number, GRAFT_GEN_TRY_GIVEN, false), 0);
    } else if (fate == GRAFT_GEN_LAID) {
        (void)lay_lemma(find, number);
    } else if (fate == GRAFT_GEN_DRAWN || fate == GRAFT_GEN_IDLE) {
        (void)draw_lemma(find, &find->pairs[number]);
    } else if (fate == GRAFT_GEN_REFUTED) {
        graft_gen_search_split(find, number,
                               graft_gen_search_try(find, number, GRAFT_GEN_TRY_LAW, true)->told);
    }
    return fate;
}

void graft_gen_search_reach(graft_gen_search *find, uint32_t place)
{
    find->place = place;
    for (uint32_t i = find->waiting[place - 1]; i != GRAFT_GEN_NONE; i = find->waits[i].next) {
        find->change_count +=
            graft_gen_unite(find->parents, find->waits[i].a, find->waits[i].b) ? 1 : 0;
    }
}

graft_status graft_gen_search_tell(const graft_gen_search *find, graft_progress *progress,
                                   uint32_t i, const char *unit)
{
    const graft_gen_space *space = find->space;
    if (graft_interrupted()) {
        return GRAFT_FAIL(space->env, GRAFT_INTERRUPTED, "interrupted");
    }
    GRAFT_PASS(graft_gen_space_check_room(space, graft_gen_ahead_bytes(find->ahead)));
    if (i == 0) {
        graft_progress_start(progress, space->env, space->set->name, unit, find->pair_count);
    }
    if (find->pair_count >= SHOWN_PAIRS) {
        graft_progress_update(progress, i, NULL);
    }
    return GRAFT_OK;
}

/* Notes how far the search has come: now and then, and `at_once` when it cannot go on. */
static graft_status save_trail(graft_gen_search *find, uint32_t told, bool at_once)
{
    if (graft_gen_trail_is_due(&find->trail, told, at_once)) {
        GRAFT_SCOPED(find->space->env->unit);
        graft_buffer file = graft_gen_seal(find->space->env->unit);
        graft_buffer_append(&file, &told, sizeof told);
        for (uint32_t i = 0; i < told; i++) {
            graft_buffer_append(&file, &find->pairs[i].fate, 1);
        }
        for (uint32_t i = 0; i < find->law_count; i++) {
            if (graft_gen_is_own(&find->laws[i])) {
                graft_buffer_append(&file, &find->laws[i].law, sizeof find->laws[i].law);
            }
        }
        GRAFT_PASS(graft_gen_trail_write(&find->trail, &file));
    }
    return GRAFT_OK;
}

graft_status graft_gen_search_walk(graft_gen_search *find)
{
    graft_status status = GRAFT_OK;
    graft_progress progress;
    uint32_t i = 0;
    for (; i < find->pair_count; i++) {
        graft_gen_pair *p = &find->pairs[i];
        GRAFT_CHECK(graft_gen_search_tell(find, &progress, i, "pairs for laws"));
        graft_gen_search_reach(find, i + 1);
        p->fate = (uint8_t)(graft_gen_trail_fate(&find->trail, i) == GRAFT_GEN_UNTOLD
                                ? take_pair(find, i)
                                : retake_pair(find, i));
        find->refuted_count += p->fate == GRAFT_GEN_REFUTED ? 1 : 0;
        GRAFT_CHECK(save_trail(find, i + 1, false));
    }
done:
    if (status == GRAFT_OK || status == GRAFT_INTERRUPTED || status == GRAFT_NO_MEMORY) {
        graft_status saved = save_trail(find, i, true);
        status = status == GRAFT_OK ? saved : status;
    }
    return status;
}

/* ------------------------------------------------------------------ search */

/* As far as their operators are in this set. */
void graft_gen_search_know(graft_gen_search *find, const graft_gen_laws *known, uint32_t count)
{
    find->place = 1; /* What they rest on within this set still has to wait. */
    for (uint32_t i = 0; i < count; i++) {
        graft_gen_found *found = add_law(find, GRAFT_GEN_NONE, GRAFT_GEN_NONE);
        if (known->laws[i].output_count != find->groups.output_count || known->laws[i].is_macro ||
            !graft_gen_law_translate(&known->laws[i], find->space->set, &found->law)) {
            continue;
        }
        graft_gen_trial wanted = {.number = i, .task = GRAFT_GEN_TRY_GIVEN, .given = &found->law};
        const graft_gen_trial *trial =
            graft_gen_ahead_take(find->ahead, &wanted, guess_pair, find, 0);
        graft_gen_ahead_forget(find->ahead);
        if (!trial->is_refuted) {
            take_joins(find, trial);
            find->law_count++;
        }
    }
}

/* Notes for every node, and its renamings, which pair says what it equals. */
static void set_places(graft_gen_search *find)
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

static void keep_laws(graft_gen_search *find, graft_gen_counts *counts, graft_gen_laws *laws)
{
    for (uint32_t i = 0; i < find->law_count; i++) {
        if (find->laws[i].alive && graft_gen_is_own(&find->laws[i])) {
            GRAFT_GEN_PUSH(laws->arena, laws->laws, laws->count, laws->capacity) =
                find->laws[i].law;
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

void graft_gen_search_open(graft_gen_search *find, const graft_gen_space *space,
                           uint32_t output_count)
{
    *find = (graft_gen_search){.space = space, .arena = space->arena};
    graft_gen_groups_build(space, find->arena, output_count, &find->groups);
    graft_gen_index_build(&find->groups, NULL, find->arena, &find->index);
    find->parents = GRAFT_NEW(find->arena, uint32_t, find->groups.count);
    find->covers = GRAFT_NEW(find->arena, uint8_t, find->groups.count);
    for (uint32_t g = 0; g < find->groups.count; g++) {
        find->parents[g] = g;
    }
    list_pairs(find);
    set_places(find);
    find->site = (graft_gen_site){&find->groups, &find->index, find->places, find->arena};
    graft_gen_trail_open(space, output_count, find->pair_count, &find->trail);
    find->ahead = graft_gen_ahead_open(space->env, &find->site);
}

static graft_status propose(graft_gen_space *space, uint32_t output_count, uint32_t known_count,
                            graft_gen_laws *laws)
{
    graft_status status = GRAFT_OK;
    graft_gen_search find = {.ahead = NULL};
    graft_gen_search_open(&find, space, output_count);
    graft_log(space->env, 2, "%s: %u pairs of equal graphs with %u outputs", space->set->name,
              find.pair_count, output_count);
    graft_gen_search_know(&find, laws, known_count);
    GRAFT_CHECK(graft_gen_search_walk(&find));
    GRAFT_CHECK(graft_gen_search_minimise(&find));
    GRAFT_CHECK(graft_gen_search_macros(&find));
    keep_laws(&find, &space->counts, laws);
done:
    graft_gen_ahead_close(find.ahead);
    return status;
}

graft_status graft_gen_propose(graft_gen_space *space, graft_gen_laws *laws)
{
    graft_status status = GRAFT_OK;
    uint32_t known_count = laws->count;
    for (uint32_t outputs = 1; outputs <= space->set->output_count; outputs++) {
        graft_mark mark = graft_arena_mark(space->arena);
        status = propose(space, outputs, known_count, laws);
        graft_arena_release(space->arena, mark);
        if (status != GRAFT_OK) {
            break;
        }
    }
    return status;
}

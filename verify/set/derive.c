/* derive.c - see derive.h. */
#include "verify/set/derive.h"

#include "verify/set/plot.h"

#include <string.h>

enum { STATES_MOST = 256 };

void graft_rulebook_open(graft_rulebook *book, graft_arena *arena)
{
    *book = (graft_rulebook){.arena = arena};
}

void graft_rulebook_add(graft_rulebook *book, const graft_rule *rule, uint32_t number)
{
    struct graft_rulebook_page *page = &book->by_anchor[rule->source.nodes[0].op];
    if (page->count == page->capacity) {
        uint32_t capacity = page->capacity == 0 ? 16 : 2 * page->capacity;
        const graft_rule **rules = GRAFT_NEW(book->arena, const graft_rule *, capacity);
        uint32_t *numbers = GRAFT_NEW(book->arena, uint32_t, capacity);
        for (uint32_t i = 0; i < page->count; i++) {
            rules[i] = page->rules[i];
            numbers[i] = page->numbers[i];
        }
        page->rules = rules;
        page->numbers = numbers;
        page->capacity = capacity;
    }
    page->rules[page->count] = rule;
    page->numbers[page->count++] = number;
}

/* A graph on the way, and how it came about. */
typedef struct {
    graft_plot plot;
    uint64_t hash;
    uint32_t parent;
    uint32_t number; /* Of the rule that made it from its parent. */
    uint32_t depth;
} state;

struct graft_deriver {
    state states[STATES_MOST + 1]; /* The last one is where the next graph is tried. */
    uint32_t count;
    uint64_t wanted;
    uint32_t steps;
    uint32_t found; /* The state that is the target; STATES_MOST + 1 while there is none. */
};

graft_deriver *graft_deriver_new(graft_arena *arena)
{
    graft_deriver *d = GRAFT_NEW(arena, graft_deriver, 1);
    for (uint32_t i = 0; i <= STATES_MOST; i++) {
        d->states[i].plot = graft_plot_new(arena);
    }
    return d;
}

static bool is_known(const graft_deriver *d, uint64_t hash)
{
    for (uint32_t i = 0; i < d->count; i++) {
        if (d->states[i].hash == hash) {
            return true;
        }
    }
    return false;
}

/* Applies one rule at one match of state `from`; keeps the result if it is new. */
static void try_match(graft_deriver *d, uint32_t from, const graft_rule *rule, uint32_t number,
                      const graft_match *match)
{
    const graft_apply_options options = {.weight_bytes_limit = UINT64_MAX};
    const state *before = &d->states[from];
    state *next = &d->states[d->count];
    if (graft_graph_copy(&next->plot.graph, &before->plot.graph) != GRAFT_OK ||
        graft_apply(&next->plot.graph, rule, match, &before->plot.order, &options,
                    next->plot.scratch, NULL) != GRAFT_OK) {
        return;
    }
    next->hash = graft_plot_hash(&next->plot);
    next->parent = from;
    next->number = number;
    next->depth = before->depth + 1;
    if (next->hash == d->wanted) {
        d->found = d->count;
    } else if (next->depth < d->steps && d->count < STATES_MOST && !is_known(d, next->hash)) {
        d->count++;
    }
}

static void expand(graft_deriver *d, uint32_t from, const graft_rulebook *book)
{
    const graft_plot *plot = &d->states[from].plot;
    for (graft_index i = 0; i < plot->order.count && d->found > STATES_MOST; i++) {
        graft_index n = plot->order.order[i];
        const struct graft_rulebook_page *page = &book->by_anchor[plot->graph.nodes[n].op];
        for (uint32_t r = 0; r < page->count && d->found > STATES_MOST; r++) {
            graft_matcher matcher;
            graft_match match;
            graft_matcher_start(&matcher, page->rules[r], &plot->graph, &plot->order, n);
            while (d->found > STATES_MOST && graft_matcher_next(&matcher, &match)) {
                try_match(d, from, page->rules[r], page->numbers[r], &match);
            }
        }
    }
}

/* Makes the source state 0 and notes what is wanted. */
static bool start(graft_deriver *d, const graft_rule *rule, const graft_point *point)
{
    graft_instance instance;
    state *first = &d->states[0];
    if (graft_instance_build(&instance, rule, point) != GRAFT_FIT_OK ||
        !graft_plot_build(&first->plot, &instance, &instance.target)) {
        return false;
    }
    d->wanted = graft_plot_hash(&first->plot);
    if (!graft_plot_build(&first->plot, &instance, &instance.source)) {
        return false;
    }
    first->hash = graft_plot_hash(&first->plot);
    first->depth = 0;
    d->count = 1;
    d->found = STATES_MOST + 1;
    return d->wanted != 0 && first->hash != 0;
}

bool graft_derive(graft_deriver *deriver, const graft_rule *rule, const graft_point *point,
                  const graft_rulebook *book, uint32_t steps, graft_derivation *derivation)
{
    graft_deriver *d = deriver;
    d->steps = steps < GRAFT_DERIVATION_STEPS ? steps : GRAFT_DERIVATION_STEPS;
    derivation->count = 0;
    if (!start(d, rule, point)) {
        return false;
    }
    for (uint32_t i = 0; i < d->count && d->found > STATES_MOST; i++) {
        expand(d, i, book);
    }
    if (d->found > STATES_MOST) {
        return false;
    }
    derivation->count = d->states[d->found].depth;
    for (uint32_t s = d->found; d->states[s].depth > 0; s = d->states[s].parent) {
        derivation->steps[d->states[s].depth - 1] = d->states[s].number;
    }
    return true;
}

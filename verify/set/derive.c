/* derive.c - see derive.h. */
#include "verify/set/derive.h"

#include "verify/set/plot.h"
#include "verify/set/price.h"

enum { STATES_MOST = 256 };

void graft_rulebook_open(graft_rulebook *book, graft_arena *arena)
{
    *book = (graft_rulebook){.arena = arena};
}

void graft_rulebook_add(graft_rulebook *book, const graft_rule *rule, uint32_t number)
{
    struct graft_rulebook_page *page = &book->by_anchor[rule->source.nodes[0].op];
    GRAFT_PUSH(book->arena, page->rules, page->count, page->capacity, 16) =
        (graft_numbered_rule){rule, number};
}

bool graft_rule_follows(graft_env *env, const graft_rule *rule, const graft_point *points,
                        uint32_t count, const graft_rule *other)
{
    GRAFT_SCOPED(env->scratch);
    graft_plot plots[2] = {graft_plot_new(env->scratch), graft_plot_new(env->scratch)};
    bool follows = count > 0;
    for (uint32_t i = 0; i < count && follows; i++) {
        graft_instance instance;
        follows = graft_instance_build(&instance, rule, &points[i]) == GRAFT_FIT_OK &&
                  graft_plot_build(&plots[1], &instance, &instance.target);
        const uint64_t wanted = follows ? graft_plot_hash(&plots[1]) : 0;
        follows = follows && graft_plot_build(&plots[0], &instance, &instance.source) &&
                  graft_plot_leads(plots, other, 1, wanted);
    }
    return follows;
}

/* A graph on the way, and how it came about. */
typedef struct {
    graft_plot plot;
    uint64_t hash;
    uint32_t parent;
    uint32_t number; /* Of the rule that made it from its parent. */
    uint32_t depth;
    uint32_t live; /* Operators that run at inference, where that counts. */
} state;

struct graft_deriver {
    state states[STATES_MOST + 1]; /* The last one is where the next graph is tried. */
    uint32_t count;
    uint64_t wanted;
    const graft_deriver *meets; /* Its graphs are wanted too; NULL: there is none. */
    graft_plot apart; /* The graph at hand with nothing computed for two; see graft_equate. */
    bool downhill;    /* Each step must leave fewer operators that run at inference, */
    uint32_t weights; /* where these variables, as bits, are weights. */
    uint32_t found;   /* The state that is wanted; STATES_MOST + 1 while there is none. */
};

graft_deriver *graft_deriver_new(graft_arena *arena)
{
    graft_deriver *d = GRAFT_NEW(arena, graft_deriver, 1);
    for (uint32_t i = 0; i <= STATES_MOST; i++) {
        d->states[i].plot = graft_plot_new(arena);
    }
    d->apart = graft_plot_new(arena);
    return d;
}

/* The state of a graph; d->count when there is none. */
static uint32_t find_state(const graft_deriver *d, uint64_t hash)
{
    uint32_t i = 0;
    while (i < d->count && d->states[i].hash != hash) {
        i++;
    }
    return i;
}

/* Operators that depend on more than weights; the order is up to date. */
static uint32_t count_live(const graft_plot *plot, uint32_t weights)
{
    const graft_graph *g = &plot->graph;
    uint32_t live = 0;
    bool by_node[GRAFT_PLOT_NODES];
    for (graft_index i = 0; i < plot->order.count; i++) {
        graft_index n = plot->order.order[i];
        by_node[n] = false;
        for (uint32_t k = 0; k < g->nodes[n].input_count; k++) {
            const graft_value *value = &g->values[graft_node_input(g, n, k)];
            by_node[n] = by_node[n] || (value->kind == GRAFT_VALUE_COMPUTED
                                            ? by_node[value->node]
                                            : (weights >> value->source & 1u) == 0);
        }
        live += by_node[n] ? 1 : 0;
    }
    return live;
}

/* Applies one rule at one match in `plot`, which is state `from`; keeps the result if it is new. */
static void try_match(graft_deriver *d, uint32_t from, const graft_plot *plot,
                      const graft_rule *rule, uint32_t number, const graft_match *match)
{
    state *next = &d->states[d->count];
    next->hash =
        graft_plot_apply(&next->plot, plot, rule, match) ? graft_plot_hash(&next->plot) : 0;
    if (next->hash == 0) {
        return;
    }
    next->parent = from;
    next->number = number;
    next->depth = d->states[from].depth + 1;
    if (d->downhill) {
        next->live = count_live(&next->plot, d->weights);
        if (next->live >= d->states[from].live) {
            return;
        }
    }
    if (next->hash == d->wanted ||
        (d->meets != NULL && find_state(d->meets, next->hash) < d->meets->count)) {
        d->found = d->count;
    } else if (next->depth < GRAFT_DERIVATION_STEPS && d->count < STATES_MOST &&
               find_state(d, next->hash) == d->count) {
        d->count++;
    }
}

/* Tries all rules in `plot`, which is state `from`. */
static void expand(graft_deriver *d, uint32_t from, const graft_plot *plot,
                   const graft_rulebook *book)
{
    for (graft_index i = 0; i < plot->order.count && d->found > STATES_MOST; i++) {
        graft_index n = plot->order.order[i];
        const struct graft_rulebook_page *page = &book->by_anchor[plot->graph.nodes[n].op];
        for (uint32_t r = 0; r < page->count && d->found > STATES_MOST; r++) {
            graft_matcher matcher;
            graft_match match;
            graft_matcher_start(&matcher, page->rules[r].rule, &plot->graph, &plot->order, n);
            while (d->found > STATES_MOST && graft_matcher_next(&matcher, &match)) {
                try_match(d, from, plot, page->rules[r].rule, page->rules[r].number, &match);
            }
        }
    }
}

/* Makes one side of the rule state 0. */
static bool start(graft_deriver *d, const graft_instance *instance, const graft_side *side)
{
    state *first = &d->states[0];
    d->wanted = 0;
    d->meets = NULL;
    d->downhill = false;
    d->found = STATES_MOST + 1;
    d->count = 1;
    if (!graft_plot_build(&first->plot, instance, side)) {
        return false;
    }
    first->hash = graft_plot_hash(&first->plot);
    first->depth = 0;
    return first->hash != 0;
}

/* The rules that lead to a state. */
static void trace(const graft_deriver *d, uint32_t to, graft_derivation *derivation)
{
    derivation->count = d->states[to].depth;
    for (uint32_t s = to; d->states[s].depth > 0; s = d->states[s].parent) {
        derivation->steps[d->states[s].depth - 1] = d->states[s].number;
    }
}

bool graft_derive(graft_deriver *d, const graft_rule *rule, const graft_point *point,
                  const graft_rulebook *book, bool downhill, graft_derivation *derivation)
{
    graft_instance instance;
    derivation->count = 0;
    if (graft_instance_build(&instance, rule, point) != GRAFT_FIT_OK ||
        !start(d, &instance, &instance.target)) {
        return false;
    }
    const uint64_t wanted = d->states[0].hash;
    if (!start(d, &instance, &instance.source)) {
        return false;
    }
    d->wanted = wanted;
    d->downhill = downhill;
    d->weights = graft_price_weights(rule);
    d->states[0].live = count_live(&d->states[0].plot, d->weights);
    for (uint32_t i = 0; i < d->count && d->found > STATES_MOST; i++) {
        expand(d, i, &d->states[i].plot, book);
    }
    if (d->found > STATES_MOST) {
        return false;
    }
    trace(d, d->found, derivation);
    return true;
}

/* As `expand`, also where inner values are computed for each of their readers. */
static void expand_apart(graft_deriver *d, uint32_t from, const graft_rulebook *book)
{
    expand(d, from, &d->states[from].plot, book);
    if (d->found > STATES_MOST && graft_plot_part(&d->apart, &d->states[from].plot)) {
        expand(d, from, &d->apart, book);
    }
}

bool graft_equate(graft_deriver *left, graft_deriver *right, const graft_rule *rule,
                  const graft_point *point, const graft_rulebook *book, graft_derivation sides[2])
{
    graft_instance instance;
    if (graft_instance_build(&instance, rule, point) != GRAFT_FIT_OK ||
        !start(left, &instance, &instance.source) || !start(right, &instance, &instance.target)) {
        return false;
    }
    for (uint32_t i = 0; i < left->count && left->states[i].depth + 1 < GRAFT_DERIVATION_STEPS;
         i++) {
        expand_apart(left, i, book);
    }
    right->meets = left;
    right->found = find_state(left, right->states[0].hash) < left->count ? 0 : right->found;
    for (uint32_t i = 0; i < right->count && right->found > STATES_MOST; i++) {
        expand_apart(right, i, book);
    }
    if (right->found > STATES_MOST) {
        return false;
    }
    trace(left, find_state(left, right->states[right->found].hash), &sides[0]);
    trace(right, right->found, &sides[1]);
    return true;
}

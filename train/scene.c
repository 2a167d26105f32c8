/* scene.c - see scene.h. */
#include "train/scene.h"

#include "graph/rulefile.h"
#include "train/sketch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Parts of the graph's cost: what counts as a small gain, and what counts as none. */
static const double small_part = 2e-4;
static const double no_part = 1.0 / (1 << GRAFT_GAIN_SHIFT);

/* A candidate before it is chosen for a scene. */
typedef struct {
    graft_action action;
    uint32_t item; /* Its match, in the order of the matches. */
    uint32_t rank; /* Among those alike. */
    uint32_t alike;
    bool recent; /* It, or what is beside it, changed with the last rewrite. */
    graft_change change;
} offer;

graft_status graft_observer_open(graft_env *env, graft_arena *arena, graft_environment *environment,
                                 const graft_tariff *tariff, const graft_scene_options *options,
                                 graft_observer *observer)
{
    graft_status status = GRAFT_OK;
    const graft_xfers *xfers = environment->xfers;
    const graft_limits *limits = &environment->state.graph.limits;
    size_t bytes = graft_estimator_bytes(limits);
    *observer = (graft_observer){.environment = environment, .options = *options};
    if (graft_estimator_open(&observer->estimator, tariff, limits, graft_arena_alloc(arena, bytes),
                             bytes) != GRAFT_OK) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "the tariff is broken");
    }
    observer->row_of = GRAFT_NEW(arena, uint32_t, limits->nodes);
    observer->sheets = GRAFT_NEW(arena, graft_sheet, xfers->count + 1);
    for (uint32_t r = 0; r < xfers->count; r++) {
        observer->sheets[r].id = graft_rule_id(&xfers->rules[r]);
        graft_sketch_pattern(arena, &xfers->rules[r].source, &observer->sheets[r].source);
        graft_sketch_pattern(arena, &xfers->rules[r].target, &observer->sheets[r].target);
    }
    graft_sketch_nothing(arena, &observer->sheets[xfers->count].source);
    graft_sketch_nothing(arena, &observer->sheets[xfers->count].target);
    GRAFT_CHECK(graft_environment_reset(env, environment));
    if (graft_estimate(&observer->estimator, &environment->state.graph, &environment->state.order,
                       &observer->first) != GRAFT_OK) {
        status = GRAFT_FAIL(env, GRAFT_CAPACITY, "the graph is too large to estimate");
    }
done:
    return status;
}

/* ------------------------------------------------------------------- what is on offer */

static graft_status look_at(graft_env *env, graft_observer *o, offer *found)
{
    graft_environment *e = o->environment;
    const graft_rule *rule = &e->xfers->rules[found->action.xfer];
    const graft_match *match =
        graft_matches_get(&e->matches, found->action.xfer, found->action.location);
    graft_made made;
    if (graft_match_plan(&e->state.graph, rule, match, &e->state.order, &e->options.apply,
                         e->state.scratch, &made) != GRAFT_OK) {
        return GRAFT_FAIL(env, GRAFT_INTERNAL, "a match does not apply");
    }
    graft_estimate_match(&o->estimator, rule, match, &made, &found->change);
    return GRAFT_OK;
}

static int compare_numbers(int64_t a, int64_t b) { return a < b ? -1 : a > b; }

/* Those that the engine cannot tell apart stand together, in the matcher's order. */
static int compare_kinds(const offer *x, const offer *y)
{
    int by_cost = compare_numbers(x->change.cost, y->change.cost);
    int by_rule = compare_numbers(x->action.xfer, y->action.xfer);
    int by_flops = compare_numbers(x->change.flops, y->change.flops);
    int by_bytes = compare_numbers(x->change.bytes, y->change.bytes);
    int by_nodes = compare_numbers(x->change.nodes, y->change.nodes);
    return by_cost != 0             ? by_cost
           : x->recent != y->recent ? (x->recent ? -1 : 1)
           : by_rule != 0           ? by_rule
           : by_flops != 0          ? by_flops
           : by_bytes != 0          ? by_bytes
                                    : by_nodes;
}

static int compare_offers(const void *a, const void *b)
{
    const offer *x = a;
    const offer *y = b;
    int kinds = compare_kinds(x, y);
    return kinds != 0 ? kinds : compare_numbers(x->item, y->item);
}

/* One of each kind comes before two of any. */
static int compare_turns(const void *a, const void *b)
{
    const offer *x = a;
    const offer *y = b;
    int turns = compare_numbers(x->rank, y->rank);
    return turns != 0 ? turns : compare_offers(a, b);
}

static bool is_recent(const graft_environment *e, graft_action action)
{
    const graft_matches *matches = &e->matches;
    uint32_t index = graft_matches_index(matches, action.xfer, action.location);
    return e->step_count > 0 && matches->items[index].moved == matches->call;
}

static void count_kinds(offer *offers, uint32_t count)
{
    uint32_t end = 0;
    for (uint32_t first = 0; first < count; first = end) {
        for (end = first; end < count && compare_kinds(&offers[first], &offers[end]) == 0; end++) {
            offers[end].rank = end - first;
        }
        for (uint32_t i = first; i < end; i++) {
            offers[i].alike = end - first;
        }
    }
}

/* All candidates, those to keep first; returns how many these are. */
static graft_status list_offers(graft_env *env, graft_observer *o, offer *offers, uint32_t *kept)
{
    graft_status status = GRAFT_OK;
    const graft_environment *e = o->environment;
    uint32_t count = 0;
    for (uint32_t x = 0; x < e->xfers->count; x++) {
        for (uint32_t l = 0; l < graft_matches_count(&e->matches, x); l++) {
            offers[count] = (offer){
                .action = {(uint16_t)x, (uint16_t)l},
                  .item = count
            };
            offers[count].recent = is_recent(e, offers[count].action);
            GRAFT_CHECK(look_at(env, o, &offers[count++]));
        }
    }
    qsort(offers, count, sizeof *offers, compare_offers);
    count_kinds(offers, count);
    qsort(offers, count, sizeof *offers, compare_turns);
    *kept = 0;
    while (*kept < count && *kept < o->options.limit && offers[*kept].rank < o->options.alike) {
        ++*kept;
    }
done:
    return status;
}

/* ------------------------------------------------------------------- facts */

static float squeeze(double part) { return (float)(asinh(part / small_part) / 8.0); }

double graft_fact_part(float squeezed) { return small_part * sinh(8.0 * (double)squeezed); }

bool graft_fact_gains(const float *facts)
{
    return graft_fact_part(facts[GRAFT_FACT_GAIN]) > no_part;
}

static double part_of(double amount, uint64_t whole)
{
    return whole > 0 ? amount / (double)whole : 0.0;
}

static double prior_of(const graft_scene_options *options, double gain)
{
    double logit = options->sharpness * asinh((gain - no_part) / small_part);
    return gain > no_part ? logit : logit - options->reserve;
}

float graft_fact_prior(const graft_scene_options *options, const float *facts)
{
    const bool noop = facts[GRAFT_FACT_NOOP] > 0.5F;
    return noop ? 0.0F : (float)prior_of(options, graft_fact_part(facts[GRAFT_FACT_GAIN]));
}

static void set_facts(const graft_observer *o, const graft_scene *scene, const offer *c,
                      float *facts, float *prior)
{
    const graft_change *change = &c->change;
    double gain = -part_of((double)change->cost, scene->estimated.cost);
    double both = (double)change->removed_cost + (double)change->added_cost;
    facts[GRAFT_FACT_GAIN] = squeeze(gain);
    facts[GRAFT_FACT_GAIN_PLAIN] = (float)fmax(-1.0, fmin(1.0, 20.0 * gain));
    facts[GRAFT_FACT_REMOVED] =
        squeeze(part_of((double)change->removed_cost, scene->estimated.cost));
    facts[GRAFT_FACT_ADDED] = squeeze(part_of((double)change->added_cost, scene->estimated.cost));
    facts[GRAFT_FACT_NODES] = (float)fmax(-2.0, fmin(2.0, change->nodes / 4.0));
    facts[GRAFT_FACT_FLOPS] = squeeze(part_of((double)change->flops, scene->estimated.flops));
    facts[GRAFT_FACT_BYTES] = squeeze(part_of((double)change->bytes, scene->estimated.bytes));
    facts[GRAFT_FACT_WEIGHTS] = (float)(log2(1.0 + (double)change->weight_bytes) / 32.0);
    facts[GRAFT_FACT_GUESSED] =
        both > 0 ? (float)fmin(1.0, (double)change->guessed_cost / both) : 0.0F;
    facts[GRAFT_FACT_GAINS] = gain > no_part ? 1.0F : 0.0F;
    facts[GRAFT_FACT_ALIKE] = (float)(log1p(c->alike) / 4.0);
    facts[GRAFT_FACT_RECENT] = c->recent ? 1.0F : 0.0F;
    *prior = (float)prior_of(&o->options, gain);
}

/* What is known of the scene as a whole. */
static void set_globals(const graft_observer *o, const offer *offers, uint32_t count,
                        graft_scene *scene)
{
    const graft_estimated *now = &scene->estimated;
    double best = 0.0;
    double sum = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        double gain = fmax(0.0, -part_of((double)offers[i].change.cost, now->cost));
        best = fmax(best, gain);
        sum += gain;
    }
    scene->globals[0] = (float)(log1p(count) / 8.0);
    scene->globals[1] = squeeze(best);
    scene->globals[2] = squeeze(sum);
    scene->globals[3] = (float)part_of((double)now->cost, o->first.cost);
    scene->globals[4] = (float)(log1p(now->nodes) / 8.0);
    scene->globals[5] = (float)part_of((double)now->fallback_cost, now->cost);
}

/* ------------------------------------------------------------------- scenes */

static void add_members(const graft_observer *o, const graft_match *match, uint32_t node_count,
                        uint32_t candidate, graft_scene *scene)
{
    for (uint32_t n = 0; n < node_count; n++) {
        uint32_t row = o->row_of[match->nodes[n]];
        if (row != UINT32_MAX) {
            scene->member_nodes[scene->member_count] = row;
            scene->member_candidates[scene->member_count++] = candidate;
        }
    }
}

static uint64_t key_of(const graft_matches *matches, uint32_t index)
{
    return (uint64_t)matches->items[index].born << 32 | index;
}

static int compare_keys(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void list_present(graft_arena *arena, const graft_matches *matches, graft_scene *scene)
{
    scene->present_count = matches->count;
    scene->present = GRAFT_NEW(arena, uint64_t, matches->count);
    for (uint32_t i = 0; i < matches->count; i++) {
        scene->present[i] = key_of(matches, matches->order[i]);
    }
    qsort(scene->present, matches->count, sizeof *scene->present, compare_keys);
}

static void fill_candidates(graft_arena *arena, const graft_observer *o, const offer *offers,
                            graft_scene *scene)
{
    const graft_environment *e = o->environment;
    const uint32_t last = scene->count - 1;
    scene->actions = GRAFT_NEW(arena, graft_action, scene->count);
    scene->sheets = GRAFT_NEW(arena, const graft_sheet *, scene->count);
    scene->keys = GRAFT_NEW(arena, uint64_t, scene->count);
    scene->facts = GRAFT_NEW(arena, float, (size_t)scene->count *GRAFT_FACT_COUNT);
    scene->priors = GRAFT_NEW(arena, float, scene->count);
    scene->member_nodes = GRAFT_NEW(arena, uint32_t, (size_t)scene->count * GRAFT_RULE_MAX_NODES);
    scene->member_candidates =
        GRAFT_NEW(arena, uint32_t, (size_t)scene->count * GRAFT_RULE_MAX_NODES);
    for (uint32_t i = 0; i < last; i++) {
        const graft_action action = offers[i].action;
        scene->actions[i] = action;
        scene->sheets[i] = &o->sheets[action.xfer];
        scene->keys[i] =
            key_of(&e->matches, graft_matches_index(&e->matches, action.xfer, action.location));
        set_facts(o, scene, &offers[i], &scene->facts[(size_t)i * GRAFT_FACT_COUNT],
                  &scene->priors[i]);
        add_members(o, graft_matches_get(&e->matches, action.xfer, action.location),
                    e->xfers->rules[action.xfer].source.node_count, i, scene);
    }
    scene->actions[last] = (graft_action){(uint16_t)e->xfers->count, 0};
    scene->sheets[last] = &o->sheets[e->xfers->count];
    scene->facts[(size_t)last * GRAFT_FACT_COUNT + GRAFT_FACT_NOOP] = 1.0F;
}

graft_status graft_scene_take(graft_env *env, graft_arena *arena, graft_observer *observer,
                              bool nameless, graft_scene *scene)
{
    graft_status status = GRAFT_OK;
    graft_mark mark = graft_arena_mark(env->scratch);
    const graft_environment *e = observer->environment;
    offer *offers = GRAFT_NEW(env->scratch, offer, e->matches.count);
    uint32_t kept = 0;
    *scene = (graft_scene){.nameless = nameless};
    if (graft_estimate(&observer->estimator, &e->state.graph, &e->state.order, &scene->estimated) !=
        GRAFT_OK) {
        status = GRAFT_FAIL(env, GRAFT_CAPACITY, "the graph is too large to estimate");
        goto done;
    }
    GRAFT_CHECK(list_offers(env, observer, offers, &kept));
    scene->count = kept + 1;
    set_globals(observer, offers, e->matches.count, scene);
    graft_sketch_graph(arena, &observer->estimator, scene->estimated.cost, observer->row_of,
                       &scene->graph);
    fill_candidates(arena, observer, offers, scene);
    list_present(arena, &e->matches, scene);
done:
    graft_arena_release(env->scratch, mark);
    return status;
}

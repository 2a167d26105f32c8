/* scene.c - see scene.h. */
#include "train/agent/scene.h"

#include "graph/rule/rulefile.h"
#include "train/search/appraisal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OCTAVE = 64 }; /* Units of graft_part_log. */

/* A candidate before it is chosen for a scene. */
typedef struct {
    graft_action action;
    uint32_t item; /* Its match, in the order of the matches. */
    uint32_t rank; /* Among those alike. */
    uint32_t alike;
    bool recent; /* It, or what is beside it, changed with the last rewrite. */
    graft_change change;
} offer;

/* ------------------------------------------------------------------- sketches */

static void sketch_nothing(graft_arena *arena, graft_sketch *sketch)
{
    *sketch = (graft_sketch){.node_count = 1};
    sketch->nodes = GRAFT_NEW(arena, int8_t, GRAFT_SCENE_NODE_FEATURES);
}

static int8_t *node_row(const graft_sketch *sketch, uint32_t row)
{
    return &sketch->nodes[(size_t)row * GRAFT_SCENE_NODE_FEATURES];
}

static void open_edges(graft_arena *arena, uint32_t most, graft_sketch *sketch)
{
    sketch->edges = GRAFT_NEW(arena, int8_t, (size_t)most * GRAFT_EDGE_FEATURE_COUNT);
    sketch->senders = GRAFT_NEW(arena, uint32_t, most);
    sketch->receivers = GRAFT_NEW(arena, uint32_t, most);
}

static int8_t *add_edge(graft_sketch *sketch, uint32_t sender, uint32_t receiver)
{
    sketch->senders[sketch->edge_count] = sender;
    sketch->receivers[sketch->edge_count] = receiver;
    return &sketch->edges[(size_t)sketch->edge_count++ * GRAFT_EDGE_FEATURE_COUNT];
}

/* The graph that was estimated last: its nodes that run at inference, in the engine's order; row_of
 * (limits.nodes) receives each node's row, UINT32_MAX for others. `cost` is that of the whole
 * graph. */
static void sketch_graph(graft_arena *arena, const graft_estimator *estimator, uint64_t cost,
                         uint32_t *row_of, graft_sketch *sketch)
{
    const graft_graph *graph = estimator->graph;
    const graft_order *order = estimator->order;
    uint32_t edges = 0;
    *sketch = (graft_sketch){.node_count = 0};
    memset(row_of, 0xff, graph->node_end * sizeof *row_of);
    for (graft_index i = 0; i < order->count; i++) {
        const graft_node *node = &graph->nodes[order->order[i]];
        edges += node->input_count;
        row_of[order->order[i]] = node->is_const ? UINT32_MAX : sketch->node_count;
        sketch->node_count += node->is_const ? 0 : 1;
    }
    if (sketch->node_count == 0) {
        sketch_nothing(arena, sketch);
        return;
    }
    sketch->nodes =
        GRAFT_NEW(arena, int8_t, (size_t)sketch->node_count * GRAFT_SCENE_NODE_FEATURES);
    open_edges(arena, edges, sketch);
    for (graft_index i = 0; i < order->count; i++) {
        const graft_index n = order->order[i];
        const graft_node *node = &graph->nodes[n];
        if (node->is_const) {
            continue;
        }
        int8_t *out = node_row(sketch, row_of[n]);
        graft_scene_node(estimator, cost, n, out);
        for (uint32_t k = 0; k < node->input_count; k++) {
            if (graft_edge_exists(graph, n, k)) {
                uint32_t sender = row_of[graph->values[graft_node_input(graph, n, k)].node];
                graft_edge_features(graph, n, k, add_edge(sketch, sender, row_of[n]));
            }
        }
    }
}

/* One side of a rule. Shapes are not known there. */
static void sketch_pattern(graft_arena *arena, const graft_pattern *pattern, graft_sketch *sketch)
{
    if (pattern->node_count == 0) { /* The rule's result is one of its variables. */
        sketch_nothing(arena, sketch);
        return;
    }
    *sketch = (graft_sketch){.node_count = pattern->node_count};
    sketch->nodes =
        GRAFT_NEW(arena, int8_t, (size_t)sketch->node_count * GRAFT_SCENE_NODE_FEATURES);
    open_edges(arena, sketch->node_count * GRAFT_MAX_INPUTS, sketch);
    for (uint32_t n = 0; n < pattern->node_count; n++) {
        const graft_pattern_node *node = &pattern->nodes[n];
        int8_t *out = node_row(sketch, n);
        if (GRAFT_FEATURE_operator + node->op <= GRAFT_FEATURE_END_operator) {
            out[GRAFT_FEATURE_operator + node->op] = GRAFT_FEATURE_SCALE;
        }
        out[GRAFT_SCENE_PATTERN] = GRAFT_FEATURE_SCALE;
        const graft_op_info *info = graft_op(node->op);
        for (uint32_t i = 0; info != NULL && i < GRAFT_SCENE_COST - GRAFT_SCENE_FLAGS; i++) {
            out[GRAFT_SCENE_FLAGS + i] = (info->flags >> i & 1u) != 0 ? GRAFT_FEATURE_SCALE : 0;
        }
        for (uint32_t k = 0; k < graft_op(node->op)->input_count; k++) {
            if (GRAFT_OPERAND_IS_NODE(node->inputs[k])) {
                int8_t *edge = add_edge(sketch, GRAFT_OPERAND_NODE_OF(node->inputs[k]), n);
                edge[GRAFT_EDGE_FEATURE_operand + (k < 3 ? k : 3)] = GRAFT_FEATURE_SCALE;
                edge[GRAFT_EDGE_FEATURE_slot] =
                    GRAFT_OPERAND_SLOT_OF(node->inputs[k]) > 0 ? GRAFT_FEATURE_SCALE : 0;
            }
        }
    }
}

/* ------------------------------------------------------------------- observers */

graft_status graft_observer_open(graft_env *env, graft_arena *arena, graft_environment *environment,
                                 const graft_tariff *tariff, const graft_scene_options *options,
                                 graft_observer *observer)
{
    const graft_xfers *xfers = environment->xfers;
    const graft_limits *limits = &environment->state.graph.limits;
    *observer = (graft_observer){.environment = environment, .options = *options};
    GRAFT_PASS(graft_estimator_make(env, arena, tariff, limits, &observer->estimator));
    observer->row_of = GRAFT_NEW(arena, uint32_t, limits->nodes);
    observer->sheets = GRAFT_NEW(arena, graft_sheet, xfers->count + 1);
    for (uint32_t r = 0; r < xfers->count; r++) {
        observer->sheets[r].id = graft_rule_id(&xfers->rules[r]);
        sketch_pattern(arena, &xfers->rules[r].source, &observer->sheets[r].source);
        sketch_pattern(arena, &xfers->rules[r].target, &observer->sheets[r].target);
    }
    sketch_nothing(arena, &observer->sheets[xfers->count].source);
    sketch_nothing(arena, &observer->sheets[xfers->count].target);
    GRAFT_PASS(graft_environment_reset(env, environment));
    return graft_estimate_state(env, &observer->estimator, &environment->state, &observer->first);
}

/* ------------------------------------------------------------------- what is on offer */

static graft_status look_at(graft_env *env, graft_observer *o, offer *found)
{
    const graft_environment *e = o->environment;
    const graft_place place = {&e->state, &e->matches, &e->options.apply};
    graft_made made;
    GRAFT_PASS(graft_appraisal_plan(env, &place, found->action, &made));
    graft_estimate_match(&o->estimator, graft_place_rule(&place, found->action),
                         graft_place_match(&place, found->action), &made, &found->change);
    return GRAFT_OK;
}

static int compare_numbers(int64_t a, int64_t b) { return a < b ? -1 : a > b; }

static int compare_changes(uint64_t x_added, uint64_t x_removed, uint64_t y_added,
                           uint64_t y_removed)
{
    return compare_numbers((int64_t)(x_added - x_removed), (int64_t)(y_added - y_removed));
}

/* Those of one rule that change the same stand together, in the matcher's order. */
static int compare_kinds(const offer *x, const offer *y)
{
    const graft_change *a = &x->change;
    const graft_change *b = &y->change;
    int by_cost = compare_numbers(a->cost, b->cost);
    int by_rule = compare_numbers(x->action.xfer, y->action.xfer);
    int by_flops =
        compare_changes(a->added.flops, a->removed.flops, b->added.flops, b->removed.flops);
    int by_bytes =
        compare_changes(a->added.bytes, a->removed.bytes, b->added.bytes, b->removed.bytes);
    int by_nodes =
        compare_changes(a->added.nodes, a->removed.nodes, b->added.nodes, b->removed.nodes);
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

/* The candidates in a graph estimated at `now`, those to keep first; returns how many these are. */
static graft_status list_offers(graft_env *env, graft_observer *o, const graft_estimated *now,
                                offer *offers, uint32_t *kept)
{
    const graft_environment *e = o->environment;
    uint32_t count = 0;
    uint32_t items = 0;
    for (uint32_t x = 0; x < e->xfers->count; x++) {
        for (uint32_t l = 0; l < graft_matches_count(&e->matches, x); l++) {
            offer *found = &offers[count];
            *found = (offer){
                .action = {(uint16_t)x, (uint16_t)l},
                  .item = items++
            };
            found->recent = is_recent(e, found->action);
            GRAFT_PASS(look_at(env, o, found));
            count += (int64_t)now->cost + found->change.cost <= (int64_t)o->first.cost ? 1 : 0;
        }
    }
    qsort(offers, count, sizeof *offers, compare_offers);
    count_kinds(offers, count);
    qsort(offers, count, sizeof *offers, compare_turns);
    *kept = 0;
    while (*kept < count && *kept < o->options.limit && offers[*kept].rank < o->options.alike) {
        ++*kept;
    }
    return GRAFT_OK;
}

/* ------------------------------------------------------------------- facts */

double graft_fact_part(float logarithm)
{
    const double octaves = fabs((double)logarithm) * GRAFT_FACT_ONE / OCTAVE;
    return octaves > 0.0 ? copysign(exp2(octaves - GRAFT_GAIN_SHIFT), (double)logarithm) : 0.0;
}

bool graft_fact_gains(const float *facts)
{
    return graft_fact_part(facts[GRAFT_FACT_GAIN]) > 1.0 / (1 << GRAFT_GAIN_SHIFT);
}

uint32_t graft_prior_slope(const graft_scene_options *options)
{
    return (uint32_t)lround(options->sharpness * log(2.0) / OCTAVE * GRAFT_LOGIT_ONE);
}

uint32_t graft_prior_reserve(const graft_scene_options *options)
{
    return (uint32_t)lround(options->reserve * GRAFT_LOGIT_ONE);
}

float graft_fact_prior(const graft_scene_options *options, const float *facts)
{
    const bool spared = facts[GRAFT_FACT_NOOP] > 0.5F || facts[GRAFT_FACT_GAINS] > 0.5F;
    const double slope = graft_prior_slope(options) / (double)GRAFT_LOGIT_ONE;
    const double prior = slope * (double)facts[GRAFT_FACT_GAIN] * GRAFT_FACT_ONE;
    return (float)(spared ? prior : prior - options->reserve);
}

static void set_facts(const graft_observer *o, const graft_scene *scene, const offer *c,
                      float *facts, float *prior)
{
    int16_t seen[GRAFT_FACT_SEEN];
    graft_candidate_facts(&c->change, &scene->estimated, seen);
    for (uint32_t f = 0; f < GRAFT_FACT_SEEN; f++) {
        facts[f] = (float)seen[f] / GRAFT_FACT_ONE;
    }
    facts[GRAFT_FACT_ALIKE] = (float)(log1p(c->alike) / 4.0);
    facts[GRAFT_FACT_RECENT] = c->recent ? 1.0F : 0.0F;
    *prior = graft_fact_prior(&o->options, facts);
}

static void set_globals(const graft_observer *o, graft_scene *scene)
{
    int8_t globals[GRAFT_SCENE_GLOBALS];
    graft_scene_globals(&scene->estimated, o->first.cost, globals);
    for (uint32_t i = 0; i < GRAFT_SCENE_GLOBALS; i++) {
        scene->globals[i] = (float)globals[i] / GRAFT_FEATURE_SCALE;
    }
}

/* ------------------------------------------------------------------- scenes */

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
        const graft_match *match = graft_matches_get(&e->matches, action.xfer, action.location);
        for (uint32_t n = 0; n < e->xfers->rules[action.xfer].source.node_count; n++) {
            uint32_t row = o->row_of[match->nodes[n]];
            if (row != UINT32_MAX) {
                scene->member_nodes[scene->member_count] = row;
                scene->member_candidates[scene->member_count++] = i;
            }
        }
    }
    scene->actions[last] = (graft_action){(uint16_t)e->xfers->count, 0};
    scene->sheets[last] = &o->sheets[e->xfers->count];
    scene->facts[(size_t)last * GRAFT_FACT_COUNT + GRAFT_FACT_NOOP] = 1.0F;
}

graft_status graft_scene_take(graft_env *env, graft_arena *arena, graft_observer *observer,
                              bool nameless, graft_scene *scene)
{
    GRAFT_SCOPED(env->scratch);
    const graft_environment *e = observer->environment;
    offer *offers = GRAFT_NEW(env->scratch, offer, e->matches.count);
    uint32_t kept = 0;
    *scene = (graft_scene){.nameless = nameless};
    GRAFT_PASS(graft_estimate_state(env, &observer->estimator, &e->state, &scene->estimated));
    GRAFT_PASS(list_offers(env, observer, &scene->estimated, offers, &kept));
    scene->count = kept + 1;
    set_globals(observer, scene);
    sketch_graph(arena, &observer->estimator, scene->estimated.cost, observer->row_of,
                 &scene->graph);
    fill_candidates(arena, observer, offers, scene);
    list_present(arena, &e->matches, scene);
    return GRAFT_OK;
}

/* What the engine estimates of rewrites, against the estimates of the graphs before and after. */
#include "graph/equal.h"
#include "models/zoo.h"
#include "tests/support/build.h"
#include "tests/support/priced.h"
#include "tests/support/random_graph.h"
#include "train/search/appraisal.h"

#include <stdlib.h>
#include <string.h>

enum { GRAPHS = 450, COPIES = 12, SAMPLE = 1 };
enum { ROWS_MOST = 4096, TREES = 8, STEPS = 8, MATCHES_MOST = 300, LOCATIONS = 30 };

/* A tariff without sense: every other form that was met has a row, the trees are random. */
typedef struct {
    graft_tariff tariff;
    uint32_t keys[ROWS_MOST];
    uint16_t values[ROWS_MOST];
    uint8_t tests[TREES * GRAFT_TREE_TESTS];
    int16_t bounds[TREES * GRAFT_TREE_TESTS];
    int16_t leaves[TREES * GRAFT_TREE_LEAVES];
} nonsense;

static int compare_keys(const void *a, const void *b)
{
    const uint32_t *x = a;
    const uint32_t *y = b;
    return (*x > *y) - (*x < *y);
}

static void make_trees(nonsense *t)
{
    graft_rng rng = check_rng(5);
    for (uint32_t i = 0; i < sizeof t->tests; i++) {
        t->tests[i] = (uint8_t)graft_rng_below(&rng, GRAFT_TARIFF_INPUTS);
        t->bounds[i] = (int16_t)graft_rng_below(&rng, 1000);
    }
    for (uint32_t i = 0; i < sizeof t->leaves / sizeof t->leaves[0]; i++) {
        t->leaves[i] = (int16_t)((int32_t)graft_rng_below(&rng, 1000) - 300);
    }
    t->tariff.tests = t->tests;
    t->tariff.bounds = t->bounds;
    t->tariff.leaves = t->leaves;
    t->tariff.tree_count = TREES;
}

/* Adds rows for half of the graph's forms. */
static void add_rows(nonsense *t, const graft_graph *graph)
{
    for (graft_index n = 0; n < graph->node_end && t->tariff.row_count < ROWS_MOST; n++) {
        graft_form form;
        if (graph->nodes[n].op == GRAFT_OP_NONE) {
            continue;
        }
        graft_form_of_node(graph, n, &form);
        uint32_t key = graft_tariff_key(t->tariff.seed, graft_form_hash(&form));
        if (key % 2 == 0) {
            t->keys[t->tariff.row_count++] = key;
        }
    }
    qsort(t->keys, t->tariff.row_count, sizeof t->keys[0], compare_keys);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < t->tariff.row_count; i++) {
        if (kept == 0 || t->keys[kept - 1] != t->keys[i]) {
            t->keys[kept++] = t->keys[i];
        }
    }
    t->tariff.row_count = kept;
    for (uint32_t i = 0; i < kept; i++) {
        t->values[i] = (uint16_t)(t->keys[i] % 7 == 0 ? 0 : 10000 + t->keys[i] % 20000);
    }
}

static nonsense *open_nonsense(graft_arena *arena)
{
    nonsense *t = GRAFT_NEW(arena, nonsense, 1);
    memset(t, 0, sizeof *t);
    t->tariff.keys = t->keys;
    t->tariff.values = t->values;
    t->tariff.seed = 3;
    make_trees(t);
    return t;
}

typedef struct {
    graft_env *env;
    const char *model;
    const graft_xfers *xfers;
    graft_apply_options apply;
    graft_state state;
    graft_state after;
    graft_matches matches;
    graft_estimator estimator;
    graft_estimator other;
    graft_appraisal renewed; /* Its nodes keep their prices where nothing has changed. */
    graft_estimated now;
    uint64_t compared;
} walker;

static void check_count(walker *w)
{
    const graft_graph *graph = &w->state.graph;
    const graft_order *order = &w->state.order;
    GRAFT_SCOPED(w->env->scratch);
    graft_equal_merge(w->env->scratch, &graph, &order);
    if (w->now.nodes != graft_graph_active_count(graph)) {
        fail_msg("%s: %u different nodes, merged %u", w->model, w->now.nodes,
                 graft_graph_active_count(graph));
    }
}

static void check_renewed(walker *w)
{
    const graft_order *order = &w->state.order;
    CHECK_OK(graft_appraisal_renew(w->env, &w->renewed));
    for (graft_index i = 0; i < order->count; i++) {
        const graft_index n = order->order[i];
        bool fallbacks[2];
        if (!w->state.graph.nodes[n].is_const &&
            (graft_estimator_cost(&w->estimator, n, &fallbacks[0]) !=
                 graft_estimator_cost(&w->renewed.estimator, n, &fallbacks[1]) ||
             fallbacks[0] != fallbacks[1])) {
            fail_msg("%s: node %u has another price when estimates are renewed", w->model, n);
        }
    }
}

static void check_change(walker *w, uint32_t xfer, uint32_t location)
{
    const graft_rule *rule = &w->xfers->rules[xfer];
    const graft_match *match = graft_matches_get(&w->matches, xfer, location);
    graft_made made;
    graft_change change;
    graft_change renewed;
    graft_estimated then;
    CHECK_OK(graft_match_plan(&w->state.graph, rule, match, &w->state.order, &w->apply,
                              w->state.scratch, &made));
    graft_estimate_match(&w->estimator, rule, match, &made, &change);
    graft_estimate_match(&w->renewed.estimator, rule, match, &made, &renewed);
    assert_memory_equal(&renewed, &change, sizeof change);
    CHECK_OK(graft_state_set(w->env, &w->after, &w->state.graph));
    CHECK_OK(graft_state_apply(w->env, &w->after, rule, match, &w->apply));
    CHECK_OK(graft_estimate(&w->other, &w->after.graph, &w->after.order, &then));
    const graft_estimated *go = &change.removed;
    const graft_estimated *come = &change.added;
    if (change.cost != (int64_t)(then.cost - w->now.cost) ||
        come->fallback_cost - go->fallback_cost != then.fallback_cost - w->now.fallback_cost ||
        come->skew - go->skew != then.skew - w->now.skew ||
        come->flops - go->flops != then.flops - w->now.flops ||
        come->bytes - go->bytes != then.bytes - w->now.bytes ||
        come->nodes - go->nodes != then.nodes - w->now.nodes ||
        come->fallback_nodes - go->fallback_nodes != then.fallback_nodes - w->now.fallback_nodes) {
        fail_msg("%s, %s, location %u: %lld estimated, %lld is right; nodes %d, %d", w->model,
                 w->xfers->names[xfer], location, (long long)change.cost,
                 (long long)(then.cost - w->now.cost), (int)(come->nodes - go->nodes),
                 (int)(then.nodes - w->now.nodes));
    }
    assert_true((int64_t)(come->cost - go->cost) == change.cost);
    w->compared++;
}

/* Compares all matches, as many as a test may take, and goes on by one of them. */
static bool step(walker *w, graft_rng *rng)
{
    uint32_t left = MATCHES_MOST;
    graft_matches_find(&w->matches, &w->state, &w->apply);
    if (w->matches.count == 0) {
        return false;
    }
    CHECK_OK(graft_estimate(&w->estimator, &w->state.graph, &w->state.order, &w->now));
    check_count(w);
    check_renewed(w);
    uint32_t start = graft_rng_below(rng, w->xfers->count);
    for (uint32_t i = 0; i < w->xfers->count && left > 0; i++) {
        uint32_t x = (start + i) % w->xfers->count;
        for (uint32_t l = 0; l < graft_matches_count(&w->matches, x) && left > 0; l++, left--) {
            check_change(w, x, l);
        }
    }
    return graft_matches_apply(w->env, &w->matches, graft_matches_draw(&w->matches, rng),
                               &w->state) == GRAFT_OK;
}

/* Compares all rewrites along a random walk from `graph`; returns their number. */
static uint64_t walk(graft_env *env, const char *name, const graft_graph *graph,
                     const graft_xfers *xfers, uint64_t seed)
{
    graft_rng rng;
    graft_limits limits = graft_state_limits(graph);
    nonsense *t = open_nonsense(env->unit);
    walker w = {.env = env, .model = name, .xfers = xfers, .apply.weight_bytes_limit = 1 << 28};
    graft_rng_derive(&rng, 11, seed);
    add_rows(t, graph);
    graft_state_open(env->unit, &limits, &w.state);
    graft_state_open(env->unit, &limits, &w.after);
    graft_matches_open(env->unit, xfers, LOCATIONS, &w.matches);
    w.estimator = build_estimator(env->unit, &t->tariff, &limits);
    w.other = build_estimator(env->unit, &t->tariff, &limits);
    const graft_place place = {&w.state, &w.matches, &w.apply};
    CHECK_OK(graft_appraisal_open(env, env->unit, &t->tariff, &place, &w.renewed));
    CHECK_OK(graft_state_set(env, &w.state, graph));
    for (uint32_t i = 0; i < STEPS && step(&w, &rng); i++) {
    }
    return w.compared;
}

/* Gives some nodes an equal one, which takes over some of their readers. */
static void copy_nodes(graft_graph *graph, graft_rng *rng)
{
    for (uint32_t i = 0; i < COPIES; i++) {
        graft_index copy = GRAFT_NONE;
        graft_index n = graft_rng_below(rng, graph->node_end);
        const graft_node *node = &graph->nodes[n];
        if (graft_op(node->op) == NULL ||
            graft_graph_add_node(graph, node->op, node->attrs, &graph->edges[node->first_edge],
                                 GRAFT_NONE, &copy) != GRAFT_OK) {
            continue;
        }
        for (graft_index r = 0; r < graph->node_end; r++) {
            const graft_node *reader = &graph->nodes[r];
            for (uint32_t k = 0; reader->op != GRAFT_OP_NONE && k < reader->input_count; k++) {
                graft_index *read = &graph->edges[reader->first_edge + k];
                if (*read == graft_node_output(graph, n, 0) && graft_rng_below(rng, 2) == 0) {
                    *read = graft_node_output(graph, copy, 0);
                }
            }
        }
    }
}

CHECK_CASE(test_changes_are_differences)
{
    uint32_t count = 0;
    const graft_zoo_entry *zoo = graft_zoo(&count);
    graft_xfers xfers = proved_xfers(env);
    for (uint32_t i = 0; i < count; i++) {
        graft_model *model = NULL;
        CHECK_OK(graft_zoo_open(env, env->unit, &zoo[i], true, &model));
        uint64_t compared = walk(env, zoo[i].name, &model->graph, &xfers, i);
        assert_true(compared > 100);
        graft_arena_reset(env->unit);
    }
}

/* Models have few equal nodes, and no rewrite there makes anything const: random graphs do. */
CHECK_CASE(test_random_graphs)
{
    graft_xfers xfers = proved_xfers(env);
    const graft_rule **rules = GRAFT_NEW(env->life, const graft_rule *, xfers.count);
    uint64_t compared = 0;
    for (uint32_t i = 0; i < xfers.count; i++) {
        rules[i] = &xfers.rules[i];
    }
    for (uint32_t g = 0; g < GRAPHS; g++) {
        const random_graph_options options = {
            .rules = rules, .rule_count = xfers.count, .node_count = 30, .sample = SAMPLE};
        graft_rng rng;
        graft_rng_derive(&rng, 12, g);
        graft_graph *graph = random_graph_draw(env->unit, &rng, &options);
        graft_state room;
        CHECK_OK(graft_state_make(env, env->unit, graph, &room));
        copy_nodes(&room.graph, &rng);
        compared += walk(env, "a random graph", &room.graph, &xfers, g);
        graft_arena_reset(env->unit);
    }
    assert_true(compared > (uint64_t)10 * GRAPHS);
}

/* The weight of the second product is made of the one that the first reads too, or of one that lies
 * further away. */
static graft_graph *build_products(graft_env *env, bool far)
{
    return build_text(env->unit,
                      "v = weight 725 725; w = weight 725 725; x = input 1 725; m = relu %c;"
                      "y = matmul x v; z = matmul y m; l = matmul z w; out l",
                      far ? 'w' : 'v')
        .graph;
}

/* A node that has not changed has another price when its weight is made otherwise. */
CHECK_CASE(test_renewed_weights)
{
    nonsense *t = open_nonsense(env->unit);
    graft_xfers xfers = proved_xfers(env);
    graft_estimated first;
    walker w = {.env = env, .model = "products", .xfers = &xfers};
    const graft_place place = {&w.state, &w.matches, &w.apply};
    memset(t->tests, GRAFT_TARIFF_INPUTS - 1, sizeof t->tests); /* How far weights lie. */
    memset(t->leaves, 0, sizeof t->leaves);
    for (uint32_t i = 0; i < GRAFT_TREE_TESTS; i++) {
        t->bounds[i] = 2;
    }
    t->leaves[GRAFT_TREE_LEAVES - 1] = 1024;
    t->tariff.tree_count = 1;
    CHECK_OK(graft_state_make(env, env->unit, build_products(env, false), &w.state));
    graft_matches_open(env->unit, &xfers, LOCATIONS, &w.matches);
    w.estimator = build_estimator(env->unit, &t->tariff, &w.state.graph.limits);
    CHECK_OK(graft_appraisal_open(env, env->unit, &t->tariff, &place, &w.renewed));
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_OK(graft_state_set(env, &w.state, build_products(env, i == 1)));
        graft_matches_find(&w.matches, &w.state, &w.apply);
        CHECK_OK(graft_estimate(&w.estimator, &w.state.graph, &w.state.order, &w.now));
        first = i == 0 ? w.now : first;
        assert_int_equal(w.now.cost == first.cost, i != 1);
        check_renewed(&w);
    }
}

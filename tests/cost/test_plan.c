/* Variable elimination against enumeration, and plans of layouts against every other assignment. */
#include "cost/plan/plan.h"

#include "cost/plan/elimination.h"
#include "graph/base/rng.h"
#include "tests/support/build.h"

#include <math.h>
#include <string.h>

/* --------------------------------------------------------------- elimination */

enum { VARIABLES = 7, FACTORS = 12, STATES_MOST = 4, ENTRIES_MOST = 256 };

typedef struct {
    uint32_t states[VARIABLES];
    uint32_t scopes[FACTORS][3];
    uint32_t scope_counts[FACTORS];
    double tables[FACTORS][ENTRIES_MOST];
    uint32_t variable_count;
} drawn_problem;

static void draw_scope(graft_rng *rng, drawn_problem *d, uint32_t f)
{
    uint32_t wanted = 1 + graft_rng_below(rng, 3);
    d->scope_counts[f] = 0;
    while (d->scope_counts[f] < wanted) {
        uint32_t v = graft_rng_below(rng, d->variable_count);
        bool known = false;
        for (uint32_t i = 0; i < d->scope_counts[f]; i++) {
            known = known || d->scopes[f][i] == v;
        }
        if (!known) {
            d->scopes[f][d->scope_counts[f]++] = v;
        }
    }
}

static graft_elimination *draw_problem(graft_env *env, graft_rng *rng, drawn_problem *d)
{
    graft_elimination *problem = graft_elimination_new(env->unit, VARIABLES, FACTORS);
    d->variable_count = 3 + graft_rng_below(rng, VARIABLES - 2);
    for (uint32_t v = 0; v < d->variable_count; v++) {
        d->states[v] = 1 + graft_rng_below(rng, STATES_MOST);
        assert_int_equal(graft_elimination_variable(problem, d->states[v]), v);
    }
    for (uint32_t f = 0; f < FACTORS; f++) {
        uint32_t entries = 1;
        draw_scope(rng, d, f);
        for (uint32_t i = 0; i < d->scope_counts[f]; i++) {
            entries *= d->states[d->scopes[f][i]];
        }
        double *table = graft_elimination_factor(problem, d->scope_counts[f], d->scopes[f]);
        for (uint32_t i = 0; i < entries; i++) {
            table[i] = (double)graft_rng_below(rng, 1000);
            d->tables[f][i] = table[i];
        }
    }
    return problem;
}

static double total_of(const drawn_problem *d, const uint8_t *states)
{
    double sum = 0.0;
    for (uint32_t f = 0; f < FACTORS; f++) {
        uint32_t place = 0;
        for (uint32_t i = d->scope_counts[f]; i-- > 0;) {
            place = place * d->states[d->scopes[f][i]] + states[d->scopes[f][i]];
        }
        sum += d->tables[f][place];
    }
    return sum;
}

static double find_least(const drawn_problem *d)
{
    uint8_t states[VARIABLES] = {0};
    double least = (double)INFINITY;
    for (;;) {
        uint32_t i = 0;
        least = fmin(least, total_of(d, states));
        while (i < d->variable_count && ++states[i] == d->states[i]) {
            states[i++] = 0;
        }
        if (i == d->variable_count) {
            return least;
        }
    }
}

CHECK_CASE(test_elimination)
{
    graft_rng rng = check_rng(31);
    drawn_problem *d = GRAFT_NEW(env->life, drawn_problem, 1);
    for (uint32_t trial = 0; trial < 300; trial++) {
        uint8_t states[VARIABLES];
        graft_elimination *problem = draw_problem(env, &rng, d);
        assert_true(graft_elimination_solve(problem, states));
        assert_true(total_of(d, states) == find_least(d));
        graft_arena_reset(env->unit);
    }
}

/* Every pair of 24 variables has a table: no order keeps joint tables small. The answer says so,
 * and is a state for each variable. */
CHECK_CASE(test_too_wide)
{
    enum { WIDE = 24 };
    uint8_t states[WIDE];
    graft_elimination *problem = graft_elimination_new(env->unit, WIDE, WIDE * WIDE);
    for (uint32_t v = 0; v < WIDE; v++) {
        (void)graft_elimination_variable(problem, 3);
    }
    for (uint32_t a = 0; a < WIDE; a++) {
        for (uint32_t b = 0; b < a; b++) {
            const uint32_t scope[2] = {a, b};
            double *table = graft_elimination_factor(problem, 2, scope);
            for (uint32_t i = 0; i < 9; i++) {
                table[i] = i == 4 ? 0.0 : 1.0; /* Best: state 1 for all. */
            }
        }
    }
    assert_false(graft_elimination_solve(problem, states));
    for (uint32_t v = 0; v < WIDE; v++) {
        assert_int_equal(states[v], 1);
    }
}

/* --------------------------------------------------------------------- plans */

enum { NODES_MOST = 16, KNOWN_MOST = 512 };

/* Costs by signature, drawn when first asked for. */
typedef struct {
    graft_rng rng;
    graft_signature signatures[KNOWN_MOST];
    graft_cost_entry entries[KNOWN_MOST];
    uint32_t count;
    bool hides; /* Knows nothing new. */
} oracle;

static const graft_cost_entry *ask(void *context, const graft_signature *signature)
{
    oracle *o = context;
    for (uint32_t i = 0; i < o->count; i++) {
        if (graft_signature_equal(&o->signatures[i], signature)) {
            return &o->entries[i];
        }
    }
    if (o->hides) {
        return NULL;
    }
    assert_true(o->count < KNOWN_MOST);
    bool reorder = signature->op == GRAFT_COST_REORDER;
    o->signatures[o->count] = *signature;
    o->entries[o->count] =
        (graft_cost_entry){.median_ns = (double)graft_rng_below(&o->rng, reorder ? 400 : 1000),
                           .rounds = 15,
                           .source = GRAFT_COST_MEASURED};
    return &o->entries[o->count++];
}

static void build_plan(graft_env *env, const graft_graph *graph, const graft_order *order,
                       oracle *o, graft_plan *plan)
{
    const graft_plan_request request = {
        .graph = graph, .order = order, .source = ask, .context = o};
    graft_plan_build(env->unit, &request, plan);
}

static double cost_schedule(graft_env *env, oracle *o, const graft_graph *graph,
                            const graft_order *order, const graft_assignment *assignment)
{
    GRAFT_SCOPED(env->scratch);
    graft_schedule s;
    double sum = 0.0;
    graft_schedule_build_as(env->scratch, graph, order, assignment, &s);
    for (uint32_t i = 0; i < s.step_count; i++) {
        sum += ask(o, &s.steps[i].signature)->median_ns;
    }
    return sum;
}

/* Costs every way to go on from node `from` of the order; the alternatives of later nodes depend on
 * those of earlier ones only through what is offered, which is everything. */
typedef struct {
    graft_env *env;
    oracle *oracle;
    const graft_graph *graph;
    const graft_order *order;
    uint8_t *offered;
    graft_assignment assignment;
    double least;
    uint32_t count;
} enumeration;

static void enumerate(enumeration *e, graft_index from)
{
    while (from < e->order->count && e->graph->nodes[e->order->order[from]].is_const) {
        from++;
    }
    if (from == e->order->count) {
        e->least =
            fmin(e->least, cost_schedule(e->env, e->oracle, e->graph, e->order, &e->assignment));
        e->count++;
        return;
    }
    graft_index node = e->order->order[from];
    graft_layout_choice listed[GRAFT_LAYOUT_COUNT];
    uint32_t count = graft_layout_alternatives(e->graph, node, e->offered, listed);
    const graft_node *n = &e->graph->nodes[node];
    for (uint32_t k = 0; k < n->output_count; k++) {
        e->offered[graft_node_output(e->graph, node, k)] = 0;
        for (uint32_t a = 0; a < count; a++) {
            uint8_t *offers = &e->offered[graft_node_output(e->graph, node, k)];
            *offers = (uint8_t)(*offers | 1U << listed[a].outputs[k]);
        }
    }
    for (uint32_t a = 0; a < count; a++) {
        listed[a].view = graft_views_possible(e->graph, node, &e->assignment.views, &listed[a]);
        e->assignment.choices[node] = listed[a];
        for (uint32_t k = 0; k < n->output_count; k++) {
            e->assignment.layouts[graft_node_output(e->graph, node, k)] = listed[a].outputs[k];
        }
        enumerate(e, from + 1);
    }
}

static double enumerate_all(graft_env *env, oracle *o, const graft_graph *graph,
                            const graft_order *order, uint32_t *count)
{
    enumeration e = {.env = env,
                     .oracle = o,
                     .graph = graph,
                     .order = order,
                     .offered = GRAFT_NEW(env->unit, uint8_t, graph->value_end),
                     .least = (double)INFINITY};
    e.assignment.layouts = GRAFT_NEW(env->unit, uint8_t, graph->value_end);
    e.assignment.choices = GRAFT_NEW(env->unit, graft_layout_choice, graph->node_end);
    graft_views_find(env->unit, graph, order, &e.assignment.views);
    memset(e.offered, 1U << GRAFT_LAYOUT_ROW, graph->value_end);
    enumerate(&e, 0);
    *count = e.count;
    return e.least;
}

static graft_index draw_conv(graft_graph *graph, graft_rng *rng, graft_index x, graft_index y)
{
    const int32_t attrs[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const int32_t *image = graph->values[x].shape.dims;
    const int32_t *residual = graph->values[y].shape.dims;
    int32_t filters = graft_rng_below(rng, 2) == 0 ? residual[1] : 32;
    graft_index w = build_weight(graph, SHAPE(filters, image[1], 3, 3), 0);
    graft_index b = build_weight(graph, SHAPE(filters), 0);
    const graft_index inputs[4] = {x, w, b, y};
    graft_index node = GRAFT_NONE;
    uint32_t op = filters == residual[1] ? GRAFT_OP_conv_bias_add : GRAFT_OP_conv;
    CHECK_OK(graft_graph_add_node(graph, op, attrs, inputs, GRAFT_NONE, &node));
    return graft_node_output(graph, node, 0);
}

/* Pieces of whole blocks of channels, one behind the other unless channels lie last. */
static graft_index draw_move(graft_graph *graph, graft_rng *rng, graft_index x, graft_index y)
{
    int32_t channels = graph->values[x].shape.dims[1];
    graft_index piece = GRAFT_NONE;
    switch (channels > 16 ? graft_rng_below(rng, 4) : 0) {
    case 0:
    case 1:
        return build_node(graph, GRAFT_OP_concat, (const int32_t[1]){1}, x, y, 0);
    case 2:
        return build_node(graph, GRAFT_OP_slice, (const int32_t[3]){1, channels - 16, channels}, x,
                          0, 0);
    default:
        piece = build_node(graph, GRAFT_OP_split, (const int32_t[2]){1, 16}, x, 0, 0);
        return graft_node_output(graph, graph->values[piece].node, graft_rng_below(rng, 2));
    }
}

static graft_index draw_node(graft_graph *graph, graft_rng *rng, graft_index x, graft_index y)
{
    const int32_t pool[10] = {3, 3, 1, 1, 1, 1, 1, 1, 1, 1};
    bool alike = graph->values[x].shape.dims[1] == graph->values[y].shape.dims[1];
    switch (graft_rng_below(rng, 9)) {
    case 0:
        return build_node(graph, GRAFT_OP_relu, NULL, x, 0, 0);
    case 1:
        return alike ? build_node(graph, GRAFT_OP_add, NULL, x, y, 0)
                     : build_node(graph, GRAFT_OP_tanh, NULL, x, 0, 0);
    case 2:
        return build_node(graph, GRAFT_OP_max_pool, pool, x, 0, 0);
    case 3:
        return build_node(graph, GRAFT_OP_softmax, (const int32_t[1]){3}, x, 0, 0);
    case 4:
        return build_node(graph, GRAFT_OP_identity, NULL, x, 0, 0);
    case 5:
    case 6:
        return draw_move(graph, rng, x, y);
    default:
        return draw_conv(graph, rng, x, y);
    }
}

static graft_graph *draw_graph(graft_env *env, graft_rng *rng)
{
    graft_graph *graph = build_graph_within(env->unit, (graft_limits){32, 96, 128, 8});
    graft_index pool[NODES_MOST] = {build_input(graph, SHAPE(1, 32, 5, 6), 0)};
    uint32_t count = 1;
    while (count < 9) {
        graft_index x = pool[count - 1 - graft_rng_below(rng, count < 3 ? count : 3)];
        graft_index y = pool[graft_rng_below(rng, count)];
        pool[count] = draw_node(graph, rng, x, y);
        count++;
    }
    CHECK_OK(graft_graph_add_output(graph, pool[count - 1]));
    CHECK_OK(graft_graph_add_output(graph, pool[count - 3]));
    return graph;
}

/* Nodes that leave no step and are no aliases. */
static uint32_t count_views(const graft_plan *plan, const graft_order *order)
{
    uint32_t count = 0;
    for (graft_index i = 0; i < order->count; i++) {
        count += plan->assignment.choices[order->order[i]].view;
    }
    return count;
}

/* Random graphs under random costs: shared values, residuals in place, views of each kind, equal
 * alternatives. */
CHECK_CASE(test_plans)
{
    graft_rng rng = check_rng(32);
    oracle *o = GRAFT_NEW(env->life, oracle, 1);
    uint32_t assignments = 0;
    uint32_t views = 0;
    for (uint32_t trial = 0; trial < 300; trial++) {
        graft_plan plan;
        uint32_t count = 0;
        graft_graph *graph = draw_graph(env, &rng);
        graft_order order = build_order(env->unit, graph);
        *o = (oracle){.count = 0};
        graft_rng_derive(&o->rng, 33, trial);
        build_plan(env, graph, &order, o, &plan);
        assert_true(plan.exact);
        double got = cost_schedule(env, o, graph, &order, &plan.assignment);
        double least = enumerate_all(env, o, graph, &order, &count);
        assignments += count;
        views += count_views(&plan, &order);
        assert_true(plan.ns == got);
        if (got != least) {
            fail_msg("graph %u: the plan costs %g, the best of %u assignments %g", trial, got,
                     count, least);
        }
        graft_arena_reset(env->unit);
    }
    assert_true(assignments > 5000 && views > 100);
}

/* With a memo of the graph before, plans are the same: graphs that differ in one node or in all. */
CHECK_CASE(test_memo)
{
    graft_rng rng = check_rng(36);
    oracle *o = GRAFT_NEW(env->life, oracle, 1);
    graft_plan_memo *memo = graft_plan_memo_new();
    assert_non_null(memo);
    for (uint32_t trial = 0; trial < 300; trial++) {
        graft_plan plan;
        graft_plan again;
        if (trial % 10 == 0) {
            *o = (oracle){.count = 0};
            graft_rng_derive(&o->rng, 37, trial);
            graft_plan_memo_clear(memo);
        }
        graft_graph *graph = draw_graph(env, &rng);
        for (uint32_t change = 0; change < 4; change++) {
            graft_order order = build_order(env->unit, graph);
            build_plan(env, graph, &order, o, &plan);
            const graft_plan_request request = {
                .graph = graph, .order = &order, .source = ask, .context = o, .memo = memo};
            graft_plan_build(env->unit, &request, &again);
            assert_true(plan.ns == again.ns && again.missing_count == 0);
            double sum = cost_schedule(env, o, graph, &order, &again.assignment);
            assert_true(sum == plan.ns);
            graft_index node = order.order[graft_rng_below(&rng, order.count)];
            if (graph->nodes[node].op == GRAFT_OP_relu) {
                graph->nodes[node].op = GRAFT_OP_tanh;
            }
        }
        graft_arena_reset(env->unit);
    }
    graft_plan_memo_free(memo);
}

#define CONVOLUTION "x = input 1 32 5 6; w = weight 32 32 3 3; y = conv x w" PADDED "; "

/* What the source does not know is asked for, once the plan is of no use without it. */
CHECK_CASE(test_missing)
{
    graft_plan plan;
    oracle *o = GRAFT_NEW(env->life, oracle, 1);
    o->hides = true;
    const graft_graph *graph = build_text(env->unit, CONVOLUTION "out y").graph;
    graft_order order = build_order(env->unit, graph);
    build_plan(env, graph, &order, o, &plan);
    assert_true(plan.missing_count >= 4); /* Two convolutions, conversions in and out. */
}

/* A device without blocked layouts is not asked what they cost, and gets none. */
CHECK_CASE(test_unblocked)
{
    graft_rng rng = check_rng(41);
    oracle *o = GRAFT_NEW(env->life, oracle, 1);
    uint32_t convs = 0;
    for (uint32_t trial = 0; trial < 100; trial++) {
        graft_plan plan;
        graft_graph *graph = draw_graph(env, &rng);
        graft_order order = build_order(env->unit, graph);
        *o = (oracle){.count = 0};
        graft_rng_derive(&o->rng, 42, trial);
        const graft_plan_request request = {
            .graph = graph, .order = &order, .source = ask, .context = o, .unblocked = true};
        graft_plan_build(env->unit, &request, &plan);
        assert_int_equal(plan.missing_count, 0);
        for (uint32_t i = 0; i < o->count; i++) {
            const graft_signature *s = &o->signatures[i];
            convs += s->op == GRAFT_OP_conv || s->op == GRAFT_OP_conv_bias_add;
            assert_null(memchr(s->in_layouts, GRAFT_LAYOUT_BLOCKED, sizeof(s->in_layouts)));
            assert_null(memchr(s->out_layouts, GRAFT_LAYOUT_BLOCKED, sizeof(s->out_layouts)));
        }
        graft_arena_reset(env->unit);
    }
    assert_true(convs > 50);
}

/* An estimate is no reason to leave what was measured. */
CHECK_CASE(test_estimates)
{
    graft_plan plan;
    oracle *o = GRAFT_NEW(env->life, oracle, 1);
    graft_rng_seed(&o->rng, 35);
    const built b = build_text(env->unit, CONVOLUTION "out y");
    const graft_graph *graph = b.graph;
    const graft_index node = graph->values[b.at['y']].node;
    graft_order order = build_order(env->unit, graph);
    build_plan(env, graph, &order, o, &plan);
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < o->count; i++) {
            bool conv = o->signatures[i].op == GRAFT_OP_conv;
            bool blocked = o->signatures[i].in_layouts[0] == GRAFT_LAYOUT_BLOCKED;
            o->entries[i].median_ns = !conv ? 10.0 : (blocked ? 1.0 : 1000.0);
            o->entries[i].source =
                conv && blocked && round == 1 ? GRAFT_COST_ESTIMATED : GRAFT_COST_MEASURED;
        }
        build_plan(env, graph, &order, o, &plan);
        assert_int_equal(plan.assignment.choices[node].inputs[0],
                         round == 0 ? GRAFT_LAYOUT_BLOCKED : GRAFT_LAYOUT_NHWC);
    }
}

/* A concatenation that is a view in one layout and was merely estimated in the other: both count.
 */
CHECK_CASE(test_views_beside_estimates)
{
    graft_plan plan;
    oracle *o = GRAFT_NEW(env->life, oracle, 1);
    graft_rng_seed(&o->rng, 38);
    const built b =
        build_text(env->unit, CONVOLUTION "z = conv y w" PADDED "; b = concat y z : 1;"
                                          "v = weight 32 64 3 3; c = conv b v" PADDED "; out c");
    const graft_graph *graph = b.graph;
    const graft_index node = graph->values[b.at['b']].node;
    graft_order order = build_order(env->unit, graph);
    build_plan(env, graph, &order, o, &plan);
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < o->count; i++) {
            bool conv = o->signatures[i].op == GRAFT_OP_conv;
            bool blocked = o->signatures[i].in_layouts[0] == GRAFT_LAYOUT_BLOCKED;
            bool copy = o->signatures[i].op == GRAFT_OP_concat;
            o->entries[i].median_ns = conv && blocked ? 20.0 : 10.0;
            if (copy) {
                o->entries[i].median_ns = round == 0 ? 1.0 : 1000.0;
                o->entries[i].source = GRAFT_COST_ESTIMATED;
            }
        }
        build_plan(env, graph, &order, o, &plan);
        assert_int_equal(plan.assignment.choices[node].view, round == 1);
        assert_true(plan.ns == cost_schedule(env, o, graph, &order, &plan.assignment));
    }
}

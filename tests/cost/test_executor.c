/* The executor against the float reference: random small graphs of every operator that it runs, and
 * the models of the zoo; what it refuses; and its clock. */
#include "cost/plan/executor.h"

#include "cost/cpu/winograd.h"
#include "cost/plan/plan.h"
#include "graph/meaning/algebra_float.h"
#include "models/zoo.h"
#include "tests/support/build.h"
#include "tests/support/kernels.h"
#include "tests/support/proposal.h"
#include "tests/support/variants.h"

#include <string.h>

/* Layers one behind the other multiply the tolerance of a kernel. */
static const double graph_tolerance = 2e-4;

/* ------------------------------------------------------------- random graphs */

enum { GRAPHS = 60, NODES = 14, VALUES = 200, ELEMENTS_MOST = 20000 };

typedef struct {
    graft_env *env;
    graft_rng *rng;
    graft_graph *graph;
    graft_index pool[VALUES]; /* Computed values and inputs so far. */
    uint32_t pool_count;
    uint32_t block;            /* Channels are mostly multiples of this. */
    bool pieces;               /* Single images, much cut and joined. */
    const float *data[VALUES]; /* By value id: inputs and weights. */
} maker;

static float *draw_data(maker *m, const graft_shape *shape)
{
    size_t count = (size_t)graft_shape_elements(shape);
    float *data = GRAFT_NEW(m->env->unit, float, count);
    for (size_t i = 0; i < count; i++) {
        data[i] = (float)graft_rng_normal(m->rng) * 0.5F;
    }
    return data;
}

static int32_t below(maker *m, uint32_t bound) { return (int32_t)graft_rng_below(m->rng, bound); }

static graft_index any_value(maker *m) { return m->pool[graft_rng_below(m->rng, m->pool_count)]; }

static const graft_shape *shape_of(const maker *m, graft_index value)
{
    return &m->graph->values[value].shape;
}

static graft_index add_weight(maker *m, graft_shape shape)
{
    graft_index value = build_weight(m->graph, shape, 0);
    m->data[value] = draw_data(m, &shape);
    return value;
}

static void add_input(maker *m, graft_shape shape, graft_index source)
{
    graft_index value = build_input(m->graph, shape, source);
    m->data[value] = draw_data(m, &shape);
    m->pool[m->pool_count++] = value;
}

/* Adds the node if it fits; its outputs join the pool. */
static void try_node(maker *m, uint32_t op, const int32_t *attrs, const graft_index *inputs)
{
    graft_index node = GRAFT_NONE;
    if (graft_graph_add_node(m->graph, op, attrs, inputs, GRAFT_NONE, &node) == GRAFT_OK) {
        for (uint32_t k = 0; k < graft_op(op)->output_count; k++) {
            m->pool[m->pool_count++] = graft_node_output(m->graph, node, k);
        }
    }
}

/* A value of this shape, or a weight. */
static graft_index find_operand(maker *m, const graft_shape *shape)
{
    for (uint32_t attempt = 0; attempt < 4; attempt++) {
        graft_index value = any_value(m);
        if (graft_shape_equal(shape_of(m, value), shape)) {
            return value;
        }
    }
    return add_weight(m, *shape);
}

/* Mostly whole blocks of filters, all of one group. */
static void widen_filter(maker *m, proposal *p)
{
    bool conv = p->op == GRAFT_OP_conv || p->op == GRAFT_OP_conv_bias;
    if (conv && m->block > 1 && p->in[0].rank == 4 && below(m, 4) != 0) {
        p->attrs[GRAFT_ATTR_conv_groups] = 1;
        p->in[1].dims[0] = p->in[2].dims[0] = (int32_t)m->block * (1 + below(m, 2));
        p->in[1].dims[1] = p->in[0].dims[1];
    }
}

/* An operator on some value, beside values or weights that fit. */
static void try_operator(maker *m)
{
    static const uint32_t ops[] = {GRAFT_OP_conv,          GRAFT_OP_conv,
                                   GRAFT_OP_conv_bias,     GRAFT_OP_conv_bias,
                                   GRAFT_OP_conv_bias,     GRAFT_OP_relu,
                                   GRAFT_OP_identity,      GRAFT_OP_sigmoid,
                                   GRAFT_OP_tanh,          GRAFT_OP_erf,
                                   GRAFT_OP_gelu,          GRAFT_OP_softmax,
                                   GRAFT_OP_add,           GRAFT_OP_sub,
                                   GRAFT_OP_mul,           GRAFT_OP_max,
                                   GRAFT_OP_concat,        GRAFT_OP_split,
                                   GRAFT_OP_slice,         GRAFT_OP_pad,
                                   GRAFT_OP_transpose,     GRAFT_OP_reshape,
                                   GRAFT_OP_max_pool,      GRAFT_OP_avg_pool,
                                   GRAFT_OP_matmul,        GRAFT_OP_matmul_bias,
                                   GRAFT_OP_conv_bias_add, GRAFT_OP_global_avg_pool,
                                   GRAFT_OP_reduce_mean,   GRAFT_OP_reduce_sum,
                                   GRAFT_OP_reduce_max,    GRAFT_OP_scale_shift};
    enum { KEEPING = 16 }; /* Of them keep images as they are, mostly. */
    const uint32_t count = m->pieces ? KEEPING : sizeof(ops) / sizeof(ops[0]);
    proposal p = {.op = ops[below(m, count)], .in_known = {true}};
    graft_index inputs[GRAFT_MAX_INPUTS] = {any_value(m)};
    graft_shape out[GRAFT_MAX_OUTPUTS];
    p.in[0] = *shape_of(m, inputs[0]);
    proposal_draw(m->rng, &p);
    widen_filter(m, &p);
    if (graft_infer_shapes(p.op, p.attrs, p.in, out) == GRAFT_OK &&
        graft_shape_elements(&out[0]) <= ELEMENTS_MOST) {
        for (uint32_t i = 1; i < graft_op(p.op)->input_count; i++) {
            inputs[i] = find_operand(m, &p.in[i]);
        }
        try_node(m, p.op, p.attrs, inputs);
    }
}

/* Turns of which the first two are free between two layouts. */
static void try_turn(maker *m)
{
    static const int32_t turns[4][6] = {
        {0, 2, 3, 1},
        {0, 3, 1, 2},
        {0, 1, 3, 2},
        {0, 2, 1, 3}
    };
    const graft_index x = any_value(m);
    try_node(m, GRAFT_OP_transpose, turns[below(m, 4)], &x);
}

/* Cuts and joins along the first axes, mostly of whole blocks of channels; of values read twice, of
 * inputs, of weights, of results and operands of others. */
static void try_pieces(maker *m)
{
    graft_index inputs[2] = {any_value(m), any_value(m)};
    const graft_shape *shape = shape_of(m, inputs[0]);
    int32_t axis = below(m, 5) == 0 ? below(m, 3) : 1;
    int32_t step = below(m, 6) == 0 ? 1 + below(m, 3) : 16;
    int32_t parts = (int32_t)axis < shape->rank ? shape->dims[axis] / step : 0;
    int32_t at = parts > 1 ? step * (1 + below(m, (uint32_t)parts - 1)) : step;
    const int32_t cut[3] = {axis, below(m, 2) == 0 ? at : 0, parts * step};
    switch (below(m, 8)) {
    case 0:
        inputs[1] = add_weight(m, *shape);
        try_node(m, GRAFT_OP_concat, &axis, inputs);
        break;
    case 1:
        try_node(m, GRAFT_OP_slice, cut, inputs);
        break;
    case 2:
    case 3:
        try_node(m, GRAFT_OP_split, (const int32_t[2]){axis, at}, inputs);
        break;
    default:
        try_node(m, GRAFT_OP_concat, &axis, inputs);
    }
}

/* The second half of the channels of something that nobody else reads, or `value` itself. */
static graft_index draw_half(maker *m, graft_index value)
{
    uint32_t count = m->pool_count;
    int32_t channels = shape_of(m, value)->dims[1];
    const int32_t cut[3] = {1, channels / 2, channels};
    if (channels % 32 == 0 && m->graph->value_end < VALUES - 16) {
        try_node(m, GRAFT_OP_tanh, NULL, &value);
        try_node(m, GRAFT_OP_slice, cut, &m->pool[m->pool_count - 1]);
        value = m->pool[m->pool_count - 1];
        m->pool_count = count;
    }
    return value;
}

/* A convolution whose residual is any value, a piece of another maybe. */
static void try_residual(maker *m)
{
    const int32_t attrs[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, below(m, 5)};
    graft_index inputs[4] = {any_value(m), 0, 0, any_value(m)};
    if (shape_of(m, inputs[0])->rank != 4 || shape_of(m, inputs[3])->rank != 4) {
        return;
    }
    inputs[3] = draw_half(m, inputs[3]);
    int32_t filters = shape_of(m, inputs[3])->dims[1];
    inputs[1] = add_weight(m, SHAPE(filters, shape_of(m, inputs[0])->dims[1], 3, 3));
    inputs[2] = add_weight(m, SHAPE(filters));
    try_node(m, GRAFT_OP_conv_bias_add, attrs, inputs);
}

/* A node over again: what reads it may become equal as well. */
static void repeat_node(maker *m)
{
    graft_index inputs[GRAFT_MAX_INPUTS];
    graft_index node = m->graph->values[any_value(m)].node;
    if (node != GRAFT_NONE) {
        const graft_node *n = &m->graph->nodes[node];
        for (uint32_t k = 0; k < n->input_count; k++) {
            inputs[k] = graft_node_input(m->graph, node, k);
        }
        try_node(m, n->op, n->attrs, inputs);
    }
}

static void try_any(maker *m)
{
    static void (*const tries[])(maker *) = {try_operator, try_operator, try_operator,
                                             try_operator, try_turn,     repeat_node};
    static void (*const cuts[])(maker *) = {try_pieces,   try_pieces,   try_pieces,   try_pieces,
                                            try_operator, try_operator, try_residual, try_residual,
                                            try_turn,     repeat_node};
    if (m->pieces) {
        cuts[below(m, sizeof(cuts) / sizeof(cuts[0]))](m);
    } else {
        tries[below(m, sizeof(tries) / sizeof(tries[0]))](m);
    }
}

static void make_graph(maker *m)
{
    m->pool_count = 0;
    memset(m->data, 0, sizeof(m->data));
    m->graph = build_graph_within(m->env->unit, (graft_limits){64, VALUES, 320, 8});
    int32_t channels = m->block > 1 ? (int32_t)m->block * (1 + below(m, 2)) : 1 + below(m, 17);
    add_input(m, SHAPE(1 + (m->pieces ? 0 : below(m, 2)), channels, 5, 6), 0);
    add_input(m, *shape_of(m, m->pool[0]), 1);
    while (graft_graph_node_count(m->graph) < NODES && m->graph->value_end < VALUES - 8) {
        try_any(m);
    }
    for (uint32_t i = 0; i < 3; i++) { /* Any values, inputs and views among them. */
        CHECK_OK(graft_graph_add_output(m->graph, m->pool[m->pool_count - 1 - i * 3]));
    }
}

/* ---------------------------------------------------------------- comparing */

static const float *find_data(void *context, graft_index value)
{
    const float *const *values = context;
    return values[value];
}

/* A cost that never measures: executors then run the library's favourites. */
static graft_cost *open_unmeasured(graft_env *env, graft_device *device, const char *path)
{
    graft_database *database = NULL;
    graft_cost *cost = NULL;
    uint32_t count = 0;
    const graft_signature *probes = graft_roofline_probes(env->scratch, &count);
    CHECK_OK(graft_database_open(env, path, &database));
    graft_database_select(database, graft_device_name(device), graft_device_library(device));
    for (uint32_t i = 0; i < count; i++) {
        graft_cost_entry entry = {.median_ns = 1000.0 * (i + 1), .rounds = 1};
        graft_database_add(database, &probes[i], &entry);
    }
    check_database_save(env, database);
    CHECK_OK(graft_cost_open(env, device, path, &cost));
    graft_cost_set_estimating(cost, true);
    return cost;
}

/* What is run: a graph, maybe of a model, and the data of inputs and weights by value id. */
typedef struct {
    const char *name;
    const graft_graph *graph;
    const float **values;
    const graft_model *model;
    const graft_weights *weights;
    uint32_t winograd; /* Steps that are Winograd's convolution of our own. */
} subject;

static graft_executor *open_subject(graft_env *env, graft_cost *cost, const subject *s)
{
    graft_executor *executor = NULL;
    graft_status status =
        s->model == NULL
            ? graft_executor_open(env, cost, s->graph, find_data, s->values, &executor)
            : graft_executor_open_model(env, cost, s->model, s->graph, s->weights, &executor);
    if (status != GRAFT_OK) {
        fail_msg("%s: %s", s->name, env->message);
    }
    return executor;
}

static uint32_t count_winograd(const graft_executor *executor)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < graft_executor_schedule(executor)->step_count; i++) {
        const char *name = graft_executor_implementation(executor, i);
        count += name != NULL && strncmp(name, "winograd:plain", 14) == 0;
    }
    return count;
}

/* Runs the graph twice, outputs poisoned, and compares with the reference. */
static void check_subject(graft_env *env, graft_cost *cost, const subject *s)
{
    const graft_graph *graph = s->graph;
    const float *inputs[8];
    float *outputs[8];
    graft_order order = build_order(env->unit, graph);
    if (graft_float_model(env, env->unit, s->model, graph, &order, s->values) != GRAFT_OK) {
        fail_msg("%s: %s", s->name, env->message);
    }
    graft_executor *executor = open_subject(env, cost, s);
    assert_int_equal(count_winograd(executor), s->winograd);
    for (uint32_t k = 0; k < graft_executor_input_count(executor); k++) {
        inputs[k] = s->values[graft_executor_input(executor, k)];
    }
    for (uint32_t run = 0; run < 2; run++) {
        for (uint32_t k = 0; k < graph->output_count; k++) {
            size_t count = (size_t)graft_shape_elements(&graph->values[graph->outputs[k]].shape);
            outputs[k] = GRAFT_NEW(env->unit, float, count);
            memset(outputs[k], 0xff, count * sizeof(float)); /* NaN */
        }
        CHECK_OK(graft_executor_run(env, executor, inputs, outputs));
        for (uint32_t k = 0; k < graph->output_count; k++) {
            graft_index v = graph->outputs[k];
            check_close(outputs[k], s->values[v],
                        (size_t)graft_shape_elements(&graph->values[v].shape), graph_tolerance,
                        s->name);
        }
    }
    graft_executor_close(executor);
}

static maker *open_maker(graft_env *env, graft_rng *rng, uint64_t seed, uint32_t block)
{
    maker *m = GRAFT_NEW(env->life, maker, 1);
    graft_rng_seed(rng, seed);
    m->env = env;
    m->rng = rng;
    m->block = block;
    return m;
}

/* ------------------------------------------------------------ random layouts */

typedef struct {
    graft_database *database;
    graft_rng *rng;
} inventor;

/* Pretends to have measured whatever is asked for. */
static const graft_cost_entry *invent(void *context, const graft_signature *signature)
{
    inventor *i = context;
    if (graft_database_find(i->database, signature) == NULL) {
        bool reorder = signature->op == GRAFT_COST_REORDER;
        const graft_cost_entry entry = {
            .median_ns = graft_cost_round(graft_rng_uniform(i->rng) * (reorder ? 1e3 : 4e3)),
            .rounds = 15,
            .source = GRAFT_COST_MEASURED};
        graft_database_add(i->database, signature, &entry);
    }
    return graft_database_find(i->database, signature);
}

/* What random plans have met. */
typedef struct {
    uint32_t blocked; /* Operators. */
    uint32_t joined;  /* Concatenations that are views. */
    uint32_t cut;     /* Splits and slices that are. */
    uint32_t turned;  /* Transposes that are. */
    uint32_t placed;  /* Residuals overwritten that lie in something larger. */
} encounters;

static void count_encounters(graft_env *env, const graft_graph *graph, const graft_order *order,
                             const graft_plan *plan, encounters *met)
{
    graft_schedule s;
    for (graft_index i = 0; i < order->count; i++) {
        const graft_layout_choice *choice = &plan->assignment.choices[order->order[i]];
        bool joins = graph->nodes[order->order[i]].op == GRAFT_OP_concat;
        bool turns = graph->nodes[order->order[i]].op == GRAFT_OP_transpose;
        met->blocked += choice->outputs[0] == GRAFT_LAYOUT_BLOCKED;
        met->joined += choice->view && joins;
        met->turned += choice->view && turns;
        met->cut += choice->view && !joins && !turns;
    }
    graft_schedule_build_as(env->unit, graph, order, &plan->assignment, &s);
    for (uint32_t i = 0; i < s.step_count; i++) {
        const graft_region *region = &s.regions[graft_step_output(&s, &s.steps[i], 0)];
        met->placed +=
            s.steps[i].signature.in_place != 0 && region->bytes < s.regions[region->root].bytes;
    }
}

/* Writes costs by which the plan of a graph is a random one. */
static void invent_costs(graft_env *env, const maker *m, const graft_device *device,
                         const char *path, encounters *met)
{
    inventor i = {.rng = m->rng};
    graft_plan plan;
    graft_order order = build_order(env->unit, m->graph);
    CHECK_OK(graft_database_open(env, path, &i.database));
    graft_database_select(i.database, graft_device_name(device), graft_device_library(device));
    const graft_plan_request request = {
        .graph = m->graph, .order = &order, .source = invent, .context = &i};
    graft_plan_build(env->unit, &request, &plan);
    assert_int_equal(plan.missing_count, 0);
    count_encounters(env, m->graph, &order, &plan, met);
    CHECK_OK(graft_database_save(env, i.database));
    graft_database_close(i.database);
}

/* Runs random graphs under random plans: whatever is chosen, results are the same. */
static encounters run_random_plans(graft_env *env, maker *m, uint32_t count, const char *name)
{
    graft_device *device = check_device_open(env);
    encounters met = {.blocked = 0};
    for (uint32_t i = 0; i < count; i++) {
        const float *values[VALUES];
        make_graph(m);
        memcpy(values, m->data, sizeof(values));
        const char *path = graft_arena_printf(env->unit, "%s/costs%u", check_folder(), i);
        invent_costs(env, m, device, path, &met);
        graft_cost *cost = open_unmeasured(env, device, path);
        const subject random = {.name = graft_arena_printf(env->unit, "%s %u", name, i),
                                .graph = m->graph,
                                .values = values};
        check_subject(env, cost, &random);
        CHECK_OK(graft_cost_close(env, cost));
        graft_arena_reset(env->unit);
    }
    return met;
}

/* Of any number of channels, and mostly of whole blocks. */
CHECK_CASE(test_random_layouts)
{
    graft_rng rng;
    (void)run_random_plans(env, open_maker(env, &rng, 21, 1), GRAPHS, "random graph");
    encounters met = run_random_plans(env, open_maker(env, &rng, 23, 16), GRAPHS, "random layouts");
    assert_true(met.blocked > GRAPHS / 2); /* The test meets what it is about. */
}

CHECK_CASE(test_random_views)
{
    graft_rng rng;
    maker *m = open_maker(env, &rng, 24, 16);
    m->pieces = true;
    encounters met = run_random_plans(env, m, 4 * GRAPHS, "random views");
    assert_true(met.joined > GRAPHS && met.cut > GRAPHS && met.placed > 4 &&
                met.turned > GRAPHS / 4);
}

/* ------------------------------------------------------------------- models */

/* Makes Winograd's convolution of our own, in turns with tiles of 2 and of 4, the cheapest way to
 * run whatever it can run. Gives the number of nodes. */
static uint32_t prefer_winograd(graft_env *env, graft_cost *cost, const graft_graph *graph)
{
    const graft_order order = build_order(env->unit, graph);
    graft_distances distances;
    const graft_layout_choice choice = {.inputs = {GRAFT_LAYOUT_NHWC},
                                        .outputs = {GRAFT_LAYOUT_NHWC}};
    uint32_t count = 0;
    graft_distances_find(env->unit, graph, &order, &distances);
    for (graft_index i = 0; i < order.count; i++) {
        const graft_node *node = &graph->nodes[order.order[i]];
        graft_signature s;
        graft_shape outputs[GRAFT_MAX_OUTPUTS];
        graft_winograd plan;
        if (node->is_const || (node->op != GRAFT_OP_conv && node->op != GRAFT_OP_conv_bias)) {
            continue;
        }
        graft_signature_of_node(graph, order.order[i], &choice, false, &s);
        s.distance = distances.nodes[order.order[i]];
        CHECK_OK(graft_signature_outputs(&s, outputs));
        if (graft_winograd_plan(&s, outputs, 2, 1, &plan)) {
            graft_cost_entry entry = {.median_ns = 1.0, .rounds = 1};
            (void)snprintf(entry.implementation, sizeof(entry.implementation),
                           "winograd:plain_%ux3", count % 2 == 0 ? 4U : 2U);
            if (graft_database_find(graft_cost_database(cost), &s) == NULL) {
                graft_cost_store(cost, &s, &entry);
            }
            count++;
        }
    }
    return count;
}

static uint32_t check_model(graft_env *env, graft_cost *cost, const graft_zoo_entry *entry)
{
    graft_model *model = NULL;
    graft_weights weights;
    CHECK_OK(graft_zoo_open(env, env->unit, entry, true, &model));
    const graft_graph *graph = &model->graph;
    const float **values = variant_values(env, model, graph, 22);
    CHECK_OK(graft_model_fold_weights(env, env->unit, model, graph, &weights));
    for (graft_index v = 0; v < graph->value_end; v++) {
        if (graph->values[v].kind == GRAFT_VALUE_WEIGHT) {
            values[v] = graft_weights_data(&weights, v);
        }
    }
    const subject zoo = {.name = entry->name,
                         .graph = graph,
                         .values = values,
                         .model = model,
                         .weights = &weights,
                         .winograd = prefer_winograd(env, cost, graph)};
    check_subject(env, cost, &zoo);
    return zoo.winograd;
}

/* Every model of the zoo; of the transformers two layers. */
CHECK_CASE(test_models)
{
    graft_device *device = check_device_open(env);
    graft_cost *cost = open_unmeasured(env, device, check_path("costs"));
    uint32_t count = 0;
    uint32_t winograd = 0;
    const graft_zoo_entry *zoo = graft_zoo(&count);
    for (uint32_t i = 0; i < count; i++) {
        winograd += check_model(env, cost, &zoo[i]);
        graft_arena_reset(env->unit);
    }
    assert_true(winograd >= 50);
    CHECK_OK(graft_cost_close(env, cost));
}

/* A place outside of a table is refused when the model runs. */
CHECK_CASE(test_place_outside)
{
    graft_device *device = check_device_open(env);
    graft_cost *cost = open_unmeasured(env, device, check_path("costs"));
    const graft_zoo_entry *entry = NULL;
    graft_model *model = NULL;
    graft_weights weights;
    graft_executor *executor = NULL;
    int64_t places[128] = {0};
    const float *inputs[3];
    float *outputs[2];
    CHECK_OK(graft_zoo_find(env, "bert", &entry));
    CHECK_OK(graft_zoo_open(env, env->unit, entry, true, &model));
    const graft_graph *graph = &model->graph;
    CHECK_OK(graft_model_fold_weights(env, env->unit, model, graph, &weights));
    CHECK_OK(graft_executor_open_model(env, cost, model, graph, &weights, &executor));
    for (uint32_t k = 0; k < 3; k++) {
        inputs[k] = (const float *)(const void *)places;
    }
    for (uint32_t k = 0; k < 2; k++) {
        uint64_t count = graft_shape_elements(&graph->values[graph->outputs[k]].shape);
        outputs[k] = GRAFT_NEW(env->unit, float, (size_t)count);
    }
    places[5] = -1;
    CHECK_OK(graft_executor_run(env, executor, inputs, outputs));
    places[5] = 2;
    check_failed(env, graft_executor_run(env, executor, inputs, outputs), GRAFT_BAD_INPUT,
                 "place 2 lies outside of a table of 2 rows");
    graft_executor_close(executor);
    CHECK_OK(graft_cost_close(env, cost));
}

/* ---------------------------------------------------------- refusals, timing */

CHECK_CASE(test_refusals)
{
    graft_device *device = check_device_open(env);
    graft_cost *cost = open_unmeasured(env, device, check_path("costs"));
    graft_graph *graph = build_graph(env->life);
    graft_executor *executor = NULL;
    graft_shape shape = SHAPE(3, 4);
    graft_index node = GRAFT_NONE;
    const float *none[160] = {NULL};
    graft_index x = build_input(graph, shape, 0);
    graft_index w = build_weight(graph, shape, 0);
    x = build_node(graph, GRAFT_OP_add, NULL, x, w, 0);
    CHECK_OK(graft_graph_add_output(graph, x));
    check_failed(env, graft_executor_open(env, cost, graph, find_data, none, &executor),
                 GRAFT_BAD_INPUT, "has no data");
    CHECK_OK(graft_graph_add_opaque(graph, 7, &x, 1, &shape, 1, &node));
    check_failed(env, graft_executor_open(env, cost, graph, find_data, none, &executor),
                 GRAFT_UNSUPPORTED, "number 7 of a model");
    CHECK_OK(graft_cost_close(env, cost));
}

static graft_executor *open_chain(graft_env *env, graft_cost *cost, uint32_t length)
{
    const float *none[1] = {NULL};
    graft_executor *executor = NULL;
    built b = build_text(env->life, "x = input 256 256");
    for (uint32_t i = 0; i < length; i++) {
        build_more(&b, "x = tanh x");
    }
    build_more(&b, "out x");
    CHECK_OK(graft_executor_open(env, cost, b.graph, find_data, none, &executor));
    return executor;
}

/* Convolutions in a row, all with the same filter: bytes of packed weights. */
static uint64_t packed_bytes(graft_env *env, graft_cost *cost, const float **data, uint32_t length)
{
    graft_executor *executor = NULL;
    graft_executor_memory memory;
    built b = build_text(env->life, "x = input 1 32 8 8; w = weight 32 32 3 3");
    data[b.at['w']] = GRAFT_NEW(env->life, float, 32 * 32 * 9);
    for (uint32_t i = 0; i < length; i++) {
        build_more(&b, "x = conv x w" PADDED);
    }
    build_more(&b, "out x");
    CHECK_OK(graft_executor_open(env, cost, b.graph, find_data, data, &executor));
    graft_executor_memory_of(executor, &memory);
    graft_executor_close(executor);
    return memory.packed_bytes;
}

/* Steps of an unrolled cell share their weights: packed once, not once per step. */
CHECK_CASE(test_weights_are_shared)
{
    graft_device *device = check_device_open(env);
    graft_cost *cost = open_unmeasured(env, device, check_path("costs"));
    const float *data[16] = {NULL};
    uint64_t one = packed_bytes(env, cost, data, 1);
    assert_true(one > 0);
    assert_true(packed_bytes(env, cost, data, 3) == one);
    CHECK_OK(graft_cost_close(env, cost));
}

/* Sixty functions take about sixty times as long as one; a graph as long as itself. The bounds are
 * so wide that they hold on a busy machine, too. */
CHECK_CASE(test_compare)
{
    graft_device *device = check_device_open(env);
    graft_cost *cost = open_unmeasured(env, device, check_path("costs"));
    graft_executor *shorter = open_chain(env, cost, 1);
    graft_executor *longer = open_chain(env, cost, 60);
    graft_comparison c;
    graft_executor_memory memory;
    CHECK_OK(graft_executor_compare(env, shorter, longer, 15, &c));
    assert_int_equal(c.rounds, 15);
    assert_true(c.a.median_ns > 0.0 && c.b.median_ns > c.a.median_ns);
    assert_true(c.ratio > 4.0 && c.ratio < 900.0);
    assert_true(c.control > 0.05 && c.control < 20.0);
    graft_executor_memory_of(longer, &memory); /* The input and two tensors that take turns. */
    assert_true(memory.peak_bytes - memory.workspace_bytes == 3 * 256 * 256 * 4);
    graft_executor_close(shorter);
    graft_executor_close(longer);
    CHECK_OK(graft_cost_close(env, cost));
}

CHECK_CASE(test_gains)
{
    static const struct {
        graft_comparison c;
        bool gain;
    } rows[] = {
        {{.ratio = 0.90, .ratio_spread = 0.04, .control = 1.00, .rounds = 25}, true },
        {{.ratio = 0.99, .ratio_spread = 0.04, .control = 1.00, .rounds = 25}, false},
        {{.ratio = 0.99, .ratio_spread = 0.04, .control = 1.00, .rounds = 81}, true },
        {{.ratio = 0.97, .ratio_spread = 0.01, .control = 1.04, .rounds = 25}, false},
        {{.ratio = 0.97, .ratio_spread = 0.01, .control = 0.96, .rounds = 25}, false},
        {{.ratio = 1.10, .ratio_spread = 0.01, .control = 1.00, .rounds = 25}, false},
        {{.ratio = 1.00, .ratio_spread = 0.00, .control = 1.00, .rounds = 25}, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(graft_comparison_is_gain(&rows[i].c), rows[i].gain);
    }
}

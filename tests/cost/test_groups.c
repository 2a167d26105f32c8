/* Groups of nodes that a device runs as one: what is one and what is not, what it computes, and
 * that a plan takes it where it is cheaper (cost/plan/groups.h). */
#include "cost/cost.h"
#include "cost/device/device.h"
#include "cost/plan/executor.h"
#include "cost/plan/plan.h"
#include "graph/base/rng.h"
#include "graph/meaning/algebra_float.h"
#include "tests/support/build.h"
#include "tests/support/check.h"
#include "tests/support/kernels.h"

#include <math.h>

enum { VALUES = 32 };

/* How an attention is written: of queries q, keys k, values v and a mask m, whose heads are turned to
 * the front or are there already. */
#define ROWS_FIRST                                                                                 \
    "q = input 2 5 3 4; k = input 2 7 3 4; v = input 2 7 3 5; m = input 2 1 1 7;"                  \
    "q = transpose q : 0 2 1 3; k = transpose k : 0 2 3 1; s = matmul q k; "
#define HEADS_FIRST                                                                                \
    "q = input 2 3 5 4; k = input 2 3 4 7; v = input 2 3 7 5; m = input 2 1 1 7; s = matmul q k; "
#define NUMBER  "n = weight 1; "
#define WEIGHTS "x = add m x; w = softmax x : 3; "
#define TURNED  "v = transpose v : 0 2 1 3; "
#define RESULT  "y = matmul w v; out y"

typedef struct {
    const char *name;
    const char *graph;
    uint32_t nodes; /* Of the group; 0: there is none. */
} writing;

/* clang-format off */
static const writing rows[] = {
    {"all", ROWS_FIRST NUMBER "x = div s n; " WEIGHTS TURNED RESULT, 8},
    {"no mask", ROWS_FIRST NUMBER "x = mul s n; w = softmax x : 3; " TURNED RESULT, 7},
    {"no scale", ROWS_FIRST "x = add m s; w = softmax x : 3; " TURNED RESULT, 7},
    {"plain", HEADS_FIRST NUMBER "x = mul n s; " WEIGHTS RESULT, 5},
    {"weights are seen", ROWS_FIRST NUMBER "x = mul s n; " WEIGHTS "out w; " TURNED RESULT, 0},
    {"read twice", ROWS_FIRST NUMBER "x = mul s n; " WEIGHTS "r = relu s; out r; " TURNED RESULT, 0},
    {"scaled by many", ROWS_FIRST "n = weight 7; x = mul s n; " WEIGHTS TURNED RESULT, 0},
    {"another axis", ROWS_FIRST NUMBER "x = mul s n; x = add m x; w = softmax x : 2; " TURNED RESULT, 0},
};
/* clang-format on */

typedef struct {
    graft_graph *graph;
    graft_index last;
    graft_model model; /* Of the number alone. */
    graft_model_weight weight;
    float number;
    const float *values[VALUES];
} subject;

static const float *draw(graft_env *env, const graft_shape *shape, uint64_t seed)
{
    size_t count = (size_t)graft_shape_elements(shape);
    float *data = GRAFT_NEW(env->unit, float, count);
    graft_rng rng = check_rng(seed);
    for (size_t i = 0; i < count; i++) {
        data[i] = (float)graft_rng_normal(&rng);
    }
    return data;
}

static void write_graph(graft_env *env, const writing *w, subject *t)
{
    const built b = build_text(env->unit, "%s", w->graph);
    *t = (subject){.graph = b.graph, .last = b.at['y'], .number = 1.75F};
    t->weight = (graft_model_weight){.data = &t->number};
    t->model = (graft_model){.weight_count = 1, .weights = &t->weight};
    for (graft_index i = 0; i < b.graph->value_end; i++) {
        const graft_value *value = &b.graph->values[i];
        bool is_number = graft_shape_elements(&value->shape) == 1;
        t->values[i] = is_number                             ? &t->number
                       : value->kind != GRAFT_VALUE_COMPUTED ? draw(env, &value->shape, i)
                                                             : NULL;
    }
}

/* The group computes what its nodes do. */
static void check_values(graft_env *env, subject *t, const graft_order *order,
                         const graft_group *group)
{
    const float *in[GRAFT_MAX_INPUTS] = {NULL};
    CHECK_OK(graft_float_model(env, env->unit, NULL, t->graph, order, t->values));
    for (uint32_t k = 0; k < group->signature.input_count; k++) {
        in[k] = t->values[group->inputs[k]];
    }
    size_t count = (size_t)graft_shape_elements(&t->graph->values[t->last].shape);
    float *out = GRAFT_NEW(env->unit, float, count);
    graft_signature_run(env->unit, &group->signature, &t->graph->values[t->last].shape, in, &out);
    for (size_t i = 0; i < count; i++) {
        assert_true(fabsf(out[i] - t->values[t->last][i]) < 1e-5F);
    }
}

CHECK_CASE(test_found)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        subject t;
        graft_groups groups;
        print_message("# %s\n", rows[i].name);
        write_graph(env, &rows[i], &t);
        const graft_order order = build_order(env->unit, t.graph);
        const bool *overwrites = GRAFT_NEW(env->unit, bool, t.graph->node_end);
        graft_groups_find(env->unit, t.graph, &order, overwrites, &t.model, &groups);
        assert_int_equal(groups.count, rows[i].nodes > 0);
        if (groups.count > 0) {
            assert_int_equal(groups.list[0].node_count, rows[i].nodes);
            check_values(env, &t, &order, &groups.list[0]);
        }
        graft_arena_reset(env->unit);
    }
}

/* A number that nobody knows; a node in between that overwrites what the group is yet to read. */
CHECK_CASE(test_refused)
{
    subject t;
    graft_groups groups;
    write_graph(env, &rows[0], &t);
    const graft_order order = build_order(env->unit, t.graph);
    bool *overwrites = GRAFT_NEW(env->unit, bool, t.graph->node_end);
    graft_groups_find(env->unit, t.graph, &order, overwrites, NULL, &groups);
    assert_int_equal(groups.count, 0);
    overwrites[order.order[order.count / 2]] = true;
    graft_groups_find(env->unit, t.graph, &order, overwrites, &t.model, &groups);
    assert_int_equal(groups.count, 0);
}

/* ------------------------------------------------------------------- plans */

typedef struct {
    double group_ns;
    bool estimates; /* The group's cost is no measurement. */
    bool fuses;
    graft_cost_entry entry;
} source;

static const graft_cost_entry *ask(void *context, const graft_signature *signature)
{
    source *s = context;
    bool group = graft_signature_is_attention(signature);
    s->entry = (graft_cost_entry){.median_ns = group ? s->group_ns : 10.0,
                                  .rounds = 5,
                                  .source = group && s->estimates ? GRAFT_COST_ESTIMATED
                                                                  : GRAFT_COST_MEASURED};
    return &s->entry;
}

static bool fuses(void *context, const graft_signature *signature)
{
    (void)signature;
    return ((const source *)context)->fuses;
}

/* Eight nodes of 10 ns each, or one step: what the plan says is what its schedule costs. */
CHECK_CASE(test_plans)
{
    static const struct {
        source source;
        uint32_t steps;
        double ns;
    } plans[] = {
        {{.group_ns = 79.0, .fuses = true},                    1, 79.0},
        {{.group_ns = 81.0, .fuses = true},                    8, 80.0},
        {{.group_ns = 79.0},                                   8, 80.0},
        {{.group_ns = 79.0, .fuses = true, .estimates = true}, 8, 80.0},
    };
    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        subject t;
        graft_plan plan;
        graft_schedule schedule;
        source s = plans[i].source;
        write_graph(env, &rows[0], &t);
        const graft_order order = build_order(env->unit, t.graph);
        const graft_plan_request request = {.graph = t.graph,
                                            .order = &order,
                                            .source = ask,
                                            .context = &s,
                                            .fuses = fuses,
                                            .model = &t.model};
        graft_plan_build(env->unit, &request, &plan);
        assert_int_equal(plan.missing_count, 0);
        assert_true(plan.exact && fabs(plan.ns - plans[i].ns) < 1e-9);
        for (uint32_t k = 0; k < GRAFT_GROUP_NODES; k++) {
            const float share = plan.assignment.groups.list[0].shares[k];
            assert_true(share == (plans[i].steps == 1 ? 0.125F : 0.0F));
        }
        graft_schedule_build_as(env->unit, t.graph, &order, &plan.assignment, &schedule);
        assert_int_equal(schedule.step_count, plans[i].steps);
        const graft_step *last = &schedule.steps[schedule.step_count - 1];
        assert_int_equal(last->node, t.graph->values[t.last].node);
        assert_int_equal(graft_step_output(&schedule, last, 0), schedule.outputs[0]);
        for (uint32_t k = 0; k < last->input_count && plans[i].steps == 1; k++) {
            const graft_region *region = &schedule.regions[graft_step_input(&schedule, last, k)];
            assert_int_equal(region->kind, GRAFT_REGION_INPUT);
            assert_int_equal(t.graph->values[region->value].source, k);
        }
        graft_arena_reset(env->unit);
    }
}

/* ViT's attention by the costs of an H200: one step, of which each node has a share. */
CHECK_CASE(test_shares)
{
    graft_cost_total total;
    graft_cost_node by_node[VALUES];
    const float number = 8.0F;
    const built b =
        build_text(env->unit, "q = input 1 197 12 64; k = input 1 197 12 64; v = input 1 197 12 64;"
                              "q = transpose q : 0 2 1 3; k = transpose k : 0 2 3 1;" TURNED NUMBER
                              "s = matmul q k; x = div s n; w = softmax x : 3; " RESULT);
    const graft_graph *graph = b.graph;
    const graft_index first = graph->values[b.at['s']].node;
    const graft_order order = build_order(env->unit, graph);
    const graft_model_weight weight = {.data = &number};
    const graft_model model = {.weight_count = 1, .weights = &weight};
    graft_device *device = check_device_named(env, "h200-fp16", 1);
    graft_cost *cost = check_cost_open(env, device, NULL);
    graft_cost_set_model(cost, &model);
    CHECK_OK(graft_cost_nodes(env, cost, graph, &order, by_node, &total));
    assert_int_equal(total.launches, 1);
    double sum = 0.0;
    for (graft_index n = 0; n < graph->node_end; n++) {
        assert_true(by_node[n].ns > 0.0 && by_node[n].ns < 0.5 * total.ns);
        sum += by_node[n].ns;
    }
    assert_true(sum == total.ns);
    assert_true(by_node[first].ns > 0.1 * total.ns);
}

/* ---------------------------------------------------------------- shuffles */

enum { BATCH = 2, GROUPS = 3, CHANNELS = 12, HIGH = 4, WIDE = 5 };

/* A convolution, Relu, and a shuffle of its channels before another convolution. */
typedef struct {
    const char *name;
    int32_t axes[6];
    bool convolved;
    bool flat;  /* Pixels are one axis. */
    bool given; /* What lies between is an output, too. */
    bool found;
} shuffling;

static const shuffling shufflings[] = {
    {"as in ShuffleNet", {0, 2, 1, 3, 4}, true,  false, false, true },
    {"flat",             {0, 2, 1, 3},    true,  true,  false, true },
    {"pixels turned",    {0, 2, 1, 4, 3}, true,  false, false, false},
    {"of an input",      {0, 2, 1, 3, 4}, false, false, false, false},
    {"seen between",     {0, 2, 1, 3, 4}, true,  false, true,  false},
};

static graft_index add_conv(graft_graph *graph, graft_index x)
{
    static const int32_t attrs[GRAFT_MAX_ATTRS] = {1, 1, 0, 0, 0, 0, 1, 1, 1};
    const graft_index filter = build_weight(graph, SHAPE(CHANNELS, CHANNELS, 1, 1), 0);
    return build_node(graph, GRAFT_OP_conv, attrs, x, filter, 0);
}

static void write_shuffle(graft_env *env, const shuffling *w, subject *t)
{
    const graft_shape image = SHAPE(BATCH, CHANNELS, HIGH, WIDE);
    const graft_shape apart = w->flat ? SHAPE(BATCH, GROUPS, CHANNELS / GROUPS, HIGH * WIDE)
                                      : SHAPE(BATCH, GROUPS, CHANNELS / GROUPS, HIGH, WIDE);
    *t = (subject){.graph = build_graph(env->unit)};
    graft_graph *graph = t->graph;
    graft_index x = build_input(graph, image, 0);
    x = w->convolved ? add_conv(graph, x) : x;
    x = build_node(graph, GRAFT_OP_relu, NULL, x, 0, 0);
    x = build_node(graph, GRAFT_OP_reshape, apart.dims, x, 0, 0);
    x = build_node(graph, GRAFT_OP_transpose, w->axes, x, 0, 0);
    if (w->given) {
        CHECK_OK(graft_graph_add_output(graph, x));
    }
    x = build_node(graph, GRAFT_OP_reshape, image.dims, x, 0, 0);
    t->last = add_conv(graph, x);
    CHECK_OK(graft_graph_add_output(graph, t->last));
    for (graft_index i = 0; i < graph->value_end; i++) {
        const graft_value *value = &graph->values[i];
        t->values[i] = value->kind != GRAFT_VALUE_COMPUTED ? draw(env, &value->shape, i) : NULL;
    }
}

static const float *find_value(void *context, graft_index value)
{
    return ((const subject *)context)->values[value];
}

/* What the executor makes of it is what its nodes do, and nothing is converted around it. */
CHECK_CASE(test_shuffles)
{
    graft_device *device = check_device_open(env);
    graft_cost *cost = check_cost_open(env, device, NULL);
    CHECK_OK(graft_cost_borrow(env, cost, NULL));
    for (size_t i = 0; i < sizeof(shufflings) / sizeof(shufflings[0]); i++) {
        subject t;
        graft_executor *executor = NULL;
        float made[2][BATCH * CHANNELS * HIGH * WIDE];
        uint32_t groups = 0;
        uint32_t conversions = 0;
        print_message("# %s\n", shufflings[i].name);
        write_shuffle(env, &shufflings[i], &t);
        CHECK_OK(graft_executor_open(env, cost, t.graph, find_value, &t, &executor));
        const graft_schedule *schedule = graft_executor_schedule(executor);
        for (uint32_t k = 0; k < schedule->step_count; k++) {
            groups += schedule->steps[k].group != NULL;
            conversions += schedule->steps[k].node == GRAFT_NONE;
        }
        assert_int_equal(groups, shufflings[i].found);
        assert_true(!shufflings[i].found ||
                    conversions == 2); /* Of the graph's input and output. */
        const float *in[1] = {t.values[graft_executor_input(executor, 0)]};
        float *out[2] = {made[0], made[1]};
        CHECK_OK(graft_executor_run(env, executor, in, out));
        const graft_order order = build_order(env->unit, t.graph);
        CHECK_OK(graft_float_model(env, env->unit, NULL, t.graph, &order, t.values));
        for (size_t k = 0; k < BATCH * CHANNELS * HIGH * WIDE; k++) {
            assert_true(fabsf(made[shufflings[i].given][k] - t.values[t.last][k]) < 1e-4F);
        }
        graft_executor_close(executor);
        graft_arena_reset(env->unit);
    }
}

/* The line of the database. */
CHECK_CASE(test_signature)
{
    static const char *const good[] = {
        "attention(scale=0x3e000000, turned=7) f32[1,9,2,4]@row f32[1,5,2,4]@row f32[1,5,2,6]@row "
        "-> row",
        "masked_attention(scale=0x3f800000, turned=0) f32[1,2,9,4]@row f32[1,2,4,5]@row "
        "f32[1,2,5,6]@row f32[5]@const -> row",
    };
    static const char *const bad[] = {
        "attention(scale=0x3e000000, turned=7) f32[1,9,2,4]@row f32[1,5,3,4]@row f32[1,5,2,6]@row "
        "-> row",
        "attention(scale=0x3e000000, turned=0) f32[1,2,9,4]@row f32[1,2,4,5]@row f32[1,2,6,6]@row "
        "-> row",
        "masked_attention(scale=0x3f800000, turned=0) f32[1,2,9,4]@row f32[1,2,4,5]@row "
        "f32[1,2,5,6]@row f32[6]@row -> row",
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        graft_signature s;
        graft_shape outputs[GRAFT_MAX_OUTPUTS];
        graft_buffer text = {.arena = env->scratch};
        CHECK_OK(graft_signature_parse(env, good[i], &s));
        graft_signature_print(&s, &text);
        assert_string_equal(text.data, good[i]);
        CHECK_OK(graft_signature_outputs(&s, outputs));
        assert_int_equal(graft_shape_elements(&outputs[0]), 2 * 9 * 6);
        assert_int_equal(graft_signature_flops(&s), 2 * 2 * 9 * 5 * (4 + 6));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        graft_signature s;
        check_failed(env, graft_signature_parse(env, bad[i], &s), GRAFT_BAD_INPUT, "do not fit");
    }
}

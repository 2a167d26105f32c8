/* Schedules, memory plans, the roofline, and the cost of graphs. */
#include "cost/cost.h"

#include "cost/plan/memory.h"
#include "tests/support/build.h"
#include "tests/support/kernels.h"
#include "tests/support/onnx_text.h"

#include <math.h>
#include <string.h>

static graft_schedule schedule_of(graft_env *env, const graft_graph *graph)
{
    graft_schedule schedule;
    graft_order order = build_order(env->life, graph);
    graft_schedule_build_in(env->life, graph, &order, GRAFT_LAYOUT_NHWC, true, &schedule);
    return schedule;
}

static uint32_t count_steps(const graft_schedule *schedule, uint32_t op)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < schedule->step_count; i++) {
        count += schedule->steps[i].signature.op == op;
    }
    return count;
}

/* One layout throughout: a convolution that enters, one that can block, a sum of both. */
CHECK_CASE(test_one_layout)
{
    static const struct {
        uint32_t layout;
        uint32_t blocked; /* Operators whose result is blocked... */
        uint32_t moves;   /* ...and conversions: into the net, and out of it. */
    } rows[] = {
        {GRAFT_LAYOUT_NHWC,    0, 2},
        {GRAFT_LAYOUT_BLOCKED, 3, 1}
    };
    const graft_graph *graph =
        build_text(env->life, "x = input 1 3 8 8; e = weight 32 3 3 3; s = weight 32 32 3 3;"
                              "y = conv x e" PADDED "; z = conv y s" PADDED "; z = add y z; out z")
            .graph;
    graft_order order = build_order(env->life, graph);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        graft_schedule schedule;
        uint32_t blocked = 0;
        graft_schedule_build_in(env->life, graph, &order, rows[i].layout, false, &schedule);
        for (uint32_t k = 0; k < schedule.step_count; k++) {
            blocked += schedule.steps[k].signature.out_layouts[0] == GRAFT_LAYOUT_BLOCKED;
        }
        assert_int_equal(blocked, rows[i].blocked);
        assert_int_equal(count_steps(&schedule, GRAFT_COST_REORDER), rows[i].moves);
    }
}

/* ---------------------------------------------------------------- schedules */

/* The image is converted once for both convolutions, the result back; the reshape behind the global
 * pool is free; const nodes leave no step. */
CHECK_CASE(test_conversions)
{
    built b = build_text(env->life, "x = input 1 8 6 6; w = weight 8 8 3 3; d = add w w;"
                                    "a = conv x w" PADDED "; b = conv x d" PADDED "; s = add a b;"
                                    "m = global_avg_pool s; r = reshape m : 1 8; out r");
    graft_schedule s = schedule_of(env, b.graph);
    assert_int_equal(s.step_count, 5); /* One conversion, two convolutions, sum, pool. */
    assert_int_equal(count_steps(&s, GRAFT_COST_REORDER), 1);
    assert_int_equal(s.regions[s.outputs[0]].value, b.at['m']); /* A view. */

    build_more(&b, "out s");
    s = schedule_of(env, b.graph);
    assert_int_equal(count_steps(&s, GRAFT_COST_REORDER), 2); /* Given away row-major. */
}

/* A chain of three 400-byte tensors has two alive at a time, besides the input. */
CHECK_CASE(test_peak)
{
    const built b =
        build_text(env->life, "x = input 10 10; x = relu x; x = relu x; x = relu x; out x");
    assert_int_equal(schedule_of(env, b.graph).peak_bytes, 1200);
}

/* Whether the residual r = relu(image) of y may be overwritten; `image` is what the convolution
 * reads, and `rest` ends the graph. */
static uint32_t residual_in_place(graft_env *env, char image, const char *rest)
{
    const built b = build_text(env->life,
                               "x = input 1 8 6 6; w = weight 8 8 3 3; b = weight 8;"
                               "i = conv x w" PADDED "; i = sigmoid i; r = relu i;"
                               "y = conv_bias_add %c w b r" PADDED " 1; %s",
                               image, rest);
    graft_schedule s = schedule_of(env, b.graph);
    for (uint32_t i = 0; i < s.step_count; i++) {
        if (s.steps[i].signature.op == GRAFT_OP_conv_bias_add) {
            uint32_t out = graft_step_output(&s, &s.steps[i], 0);
            uint32_t in = graft_step_input(&s, &s.steps[i], 3);
            bool joined = s.regions[out].root == s.regions[in].root;
            assert_int_equal(joined, s.steps[i].signature.in_place);
            return s.steps[i].signature.in_place;
        }
    }
    return 2;
}

CHECK_CASE(test_in_place)
{
    assert_int_equal(residual_in_place(env, 'i', "out y"), 1);
    assert_int_equal(residual_in_place(env, 'i', "y = add y r; out y"), 0);
    assert_int_equal(residual_in_place(env, 'i', "out y r"), 0); /* Converted at the end. */
    assert_int_equal(residual_in_place(env, 'r', "out y"), 0);
}

/* Random regions: none that live at the same step overlap, and the block is not larger than their
 * sum. */
CHECK_CASE(test_memory_plan)
{
    graft_rng rng = check_rng(3);
    enum { REGIONS = 40, STEPS = 30 };
    for (int trial = 0; trial < 200; trial++) {
        graft_region regions[REGIONS];
        uint64_t offsets[REGIONS];
        uint64_t sum = 0;
        graft_schedule s = {.regions = regions, .region_count = REGIONS, .step_count = STEPS};
        for (uint32_t i = 0; i < REGIONS; i++) {
            uint32_t first = graft_rng_below(&rng, STEPS);
            regions[i] = (graft_region){.bytes = graft_rng_below(&rng, 5000),
                                        .first = first,
                                        .last = first + graft_rng_below(&rng, 6),
                                        .root = i,
                                        .kind = (uint8_t)(graft_rng_below(&rng, 8) == 0)};
            sum += (regions[i].bytes + 63) / 64 * 64;
        }
        uint64_t total = graft_memory_plan(env->scratch, &s, offsets);
        assert_true(total <= sum);
        for (uint32_t i = 0; i < REGIONS; i++) {
            assert_true(offsets[i] % GRAFT_MEMORY_ALIGNMENT == 0);
            for (uint32_t j = 0; j < i; j++) {
                bool planned = regions[i].kind == GRAFT_REGION_PLANNED &&
                               regions[j].kind == GRAFT_REGION_PLANNED;
                bool together =
                    regions[i].first <= regions[j].last && regions[j].first <= regions[i].last;
                bool apart = offsets[i] + regions[i].bytes <= offsets[j] ||
                             offsets[j] + regions[j].bytes <= offsets[i] || regions[i].bytes == 0 ||
                             regions[j].bytes == 0;
                assert_true(!planned || !together || apart);
            }
        }
    }
}

/* ----------------------------------------------------------------- roofline */

CHECK_CASE(test_fit)
{
    graft_cost_entry points[40];
    graft_rng rng = check_rng(4);
    for (uint32_t i = 0; i < 40; i++) {
        points[i] = (graft_cost_entry){.bytes = 1000 + graft_rng_below(&rng, 1000000),
                                       .flops = 1000 + graft_rng_below(&rng, 100000000)};
        points[i].median_ns =
            250.0 + 0.125 * (double)points[i].bytes + 0.005 * (double)points[i].flops;
    }
    graft_roofline_line line = graft_roofline_fit_line(env, points, 40);
    assert_true(fabs(line.launch_ns - 250.0) < 0.01);
    assert_true(fabs(line.ns_per_byte - 0.125) < 1e-6);
    assert_true(fabs(line.ns_per_flop - 0.005) < 1e-8);
    assert_true(line.error < 1e-6);
    for (uint32_t i = 0; i < 40; i++) { /* Would want a negative price per operation. */
        points[i].median_ns =
            250.0 + 0.125 * (double)points[i].bytes - 0.0002 * (double)points[i].flops + 30000.0;
    }
    line = graft_roofline_fit_line(env, points, 40);
    assert_true(line.launch_ns >= 0.0 && line.ns_per_byte >= 0.0 && line.ns_per_flop == 0.0);
    assert_int_equal(graft_roofline_fit_line(env, points, 3).points, 0);
}

/* ------------------------------------------------------------------- graphs */

/* A database of a device that is not here: times that grow with size, for convolutions and relus.
 */
static void fill_recorded(graft_env *env, const char *path, uint32_t count)
{
    graft_database *database = NULL;
    uint32_t probe_count = 0;
    const graft_signature *probes = graft_roofline_probes(env->scratch, &probe_count);
    CHECK_OK(graft_database_open(env, path, &database));
    graft_database_select(database, "Board 9, 1 thread", "some library");
    for (uint32_t i = 0; i < count && i < probe_count; i++) {
        graft_cost_entry entry = {.rounds = 15,
                                  .flops = graft_signature_flops(&probes[i]),
                                  .bytes = graft_signature_bytes(&probes[i])};
        entry.median_ns = graft_cost_round(1000.0 + (double)entry.bytes);
        graft_database_add(database, &probes[i], &entry);
    }
    check_database_save(env, database);
}

/* A cost of that device, with `count` of its times. */
static graft_cost *open_recorded(graft_env *env, const char *name, uint32_t count)
{
    const char *path = check_path("costs");
    fill_recorded(env, path, count);
    return check_cost_open(env, check_device_named(env, name, 1), path);
}

static graft_graph *relu_chain(graft_env *env, uint32_t length)
{
    graft_graph *graph = build_graph(env->life);
    graft_index x = build_input(graph, SHAPE(10, 10), 0);
    for (uint32_t i = 0; i < length; i++) {
        x = build_node(graph, GRAFT_OP_relu, NULL, x, 0, 0);
    }
    CHECK_OK(graft_graph_add_output(graph, x));
    return graph;
}

CHECK_CASE(test_recorded_device)
{
    graft_device *bored = check_device_named(env, "Bored", 1);
    graft_device *device = check_device_named(env, "Board", 1);
    graft_cost_total total;
    graft_graph *graph = relu_chain(env, 3);
    graft_order order = build_order(env->life, graph);
    fill_recorded(env, check_path("costs"), UINT32_MAX);
    graft_cost *cost = check_cost_open(env, device, check_path("costs"));
    assert_string_equal(graft_device_name(device), "Board 9, 1 thread");
    CHECK_OK(graft_cost_graph(env, cost, graph, &order, &total));
    assert_int_equal(total.launches, 3);
    assert_int_equal(total.estimated_count, 3); /* Each says that it is an estimate. */
    assert_true(fabs(total.ns / 3.0 - 1800.0) < 1.0);
    graft_cost_statistics statistics;
    graft_cost_statistics_of(cost, &statistics);
    assert_int_equal(statistics.estimated, 1);
    assert_int_equal(statistics.measured, 0);
    check_failed(env, graft_cost_open(env, bored, check_path("costs"), &cost), GRAFT_BAD_INPUT,
                 "nor recorded");
}

/* What a recorded device lacks is estimated as off its line as the same operator is at the next
 * distance that it has; between two, either will do. */
CHECK_CASE(test_other_distance)
{
    static const struct {
        uint8_t asked;
        double want_ns;
    } rows[] = {
        {GRAFT_DISTANCE_OWN,    100.0},
        {GRAFT_DISTANCE_NEAR,   100.0},
        {GRAFT_DISTANCE_EDGE,   300.0},
        {GRAFT_DISTANCE_SHARED, 300.0},
        {GRAFT_DISTANCE_MEMORY, 300.0},
    };
    const char *path = check_path("costs");
    graft_database *database = NULL;
    graft_signature s;
    graft_shape shape = SHAPE(10, 10);
    graft_signature_of_reorder(&shape, 0, 0, &s);
    s.op = GRAFT_OP_relu;
    CHECK_OK(graft_database_open(env, path, &database));
    graft_database_select(database, "Board 9, 1 thread", "some library, protocol 5");
    for (uint32_t i = 0; i < 2; i++) {
        graft_cost_entry entry = {.rounds = 15, .median_ns = i == 0 ? 100.0 : 300.0};
        s.distance = i == 0 ? GRAFT_DISTANCE_OWN : GRAFT_DISTANCE_EDGE;
        graft_database_add(database, &s, &entry);
    }
    for (int32_t i = 0; i < GRAFT_ROOFLINE_LEAST_POINTS; i++) {
        const graft_cost_entry entry = {.rounds = 15, .median_ns = 1000.0 * (i + 1)};
        graft_signature larger = s;
        larger.inputs[0].dims[0] = 100 * (i + 1);
        graft_database_add(database, &larger, &entry);
    }
    check_database_save(env, database);
    graft_device *device = check_device_named(env, "Board", 1);
    graft_cost *cost = check_cost_open(env, device, path);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        graft_cost_entry entry;
        s.distance = rows[i].asked;
        bool known = s.distance == GRAFT_DISTANCE_OWN || s.distance == GRAFT_DISTANCE_EDGE;
        CHECK_OK(graft_cost_signature(env, cost, &s, &entry));
        assert_true(entry.median_ns == rows[i].want_ns);
        assert_int_equal(entry.source, known ? GRAFT_COST_MEASURED : GRAFT_COST_ESTIMATED);
    }
}

/* Costs for running on the machine here, beside a database with one relu of 1,000 numbers that a
 * device of this name has measured; `s` is its signature. */
static graft_cost *borrow_one(graft_env *env, graft_device *device, const char *name,
                              graft_signature *s)
{
    const graft_cost_entry known = {.rounds = 15, .median_ns = 50.0, .implementation = "mine"};
    const char *path = check_path("costs");
    const graft_shape shape = SHAPE(1000);
    graft_database *database = NULL;
    graft_signature_of_reorder(&shape, 0, 0, s);
    s->op = GRAFT_OP_relu;
    CHECK_OK(graft_database_open(env, path, &database));
    graft_database_select(database, name, graft_device_library(device));
    graft_database_add(database, s, &known);
    check_database_save(env, database);
    graft_cost *cost = check_cost_open(env, device, NULL);
    CHECK_OK(graft_cost_borrow(env, cost, path));
    return cost;
}

/* What is to be run names an implementation, and nothing is measured for it or written. */
CHECK_CASE(test_borrowed)
{
    graft_device *device = check_device_open(env);
    graft_cost_entry entry;
    graft_cost_statistics statistics;
    graft_signature s;
    graft_cost *cost = borrow_one(env, device, graft_device_name(device), &s);
    CHECK_OK(graft_cost_signature(env, cost, &s, &entry));
    assert_true(entry.source == GRAFT_COST_MEASURED && entry.median_ns == 50.0);
    s.inputs[0].dims[0] = 1001;
    CHECK_OK(graft_cost_signature(env, cost, &s, &entry));
    assert_int_equal(entry.source, GRAFT_COST_ESTIMATED);
    assert_string_equal(entry.implementation, "mine");
    graft_cost_statistics_of(cost, &statistics);
    assert_int_equal(statistics.measured, 0);
    assert_true(statistics.entries > 100); /* Of the nearest recorded processor. */
}

/* This machine with more threads has recorded one operator: the nearest by name, and not enough. */
CHECK_CASE(test_borrowed_of_two)
{
    graft_device *device = check_device_open(env);
    const char *name = graft_arena_printf(env->life, "%s, 7 threads", graft_device_name(device));
    graft_cost_entry entry;
    graft_cost_statistics statistics;
    graft_signature s;
    graft_cost *cost = borrow_one(env, device, name, &s);
    CHECK_OK(graft_cost_signature(env, cost, &s, &entry));
    assert_string_equal(entry.implementation, "mine");
    s.inputs[0].dims[0] = 1001;
    CHECK_OK(graft_cost_signature(env, cost, &s, &entry));
    graft_cost_statistics_of(cost, &statistics);
    assert_int_equal(statistics.measured, 0); /* No probe. */
    assert_true(statistics.entries > 100);
}

/* Two threads run what one runs: what is known of both is the same. */
CHECK_CASE(test_borrowed_by_threads)
{
    const graft_database *known[2];
    uint32_t compared = 0;
    for (uint32_t i = 0; i < 2; i++) {
        graft_cost *cost = check_cost_open(env, check_device_named(env, "cpu", i + 1), NULL);
        CHECK_OK(graft_cost_borrow(env, cost, NULL));
        known[i] = graft_cost_database(cost);
    }
    for (uint32_t i = 0; i < graft_database_count(known[0]); i++) {
        const graft_database_record *record = graft_database_at(known[0], i);
        const graft_cost_entry *other = graft_database_find(known[1], &record->signature);
        if (graft_database_selects(known[0], record) && record->entry.implementation[0] != '\0') {
            assert_true(other != NULL);
            assert_string_equal(record->entry.implementation, other->implementation);
            compared++;
        }
    }
    assert_true(compared > 100);
}

/* Nothing to fit a line to, nothing to measure with: refused, never 0. */
CHECK_CASE(test_no_estimate)
{
    graft_cost_total total = {.ns = -1.0};
    graft_graph *graph = relu_chain(env, 1);
    graft_order order = build_order(env->life, graph);
    graft_cost *cost = open_recorded(env, "Board 9", 4);
    check_failed(env, graft_cost_graph(env, cost, graph, &order, &total), GRAFT_UNSUPPORTED,
                 "too few measured");
    assert_true(total.ns == -1.0); /* Untouched. */
}

CHECK_CASE(test_measured_on_demand)
{
    const graft_measure_options quick = {.rounds = 5, .batch_ns = 20000, .quiet = true};
    graft_device *device = check_device_open(env);
    graft_cost_total total;
    graft_cost_statistics statistics;
    graft_graph *graph = relu_chain(env, 4);
    graft_order order = build_order(env->life, graph);
    graft_cost_node by_node[64];
    graft_cost *cost = check_cost_open(env, device, NULL);
    graft_cost_set_measuring(cost, &quick);
    CHECK_OK(graft_cost_nodes(env, cost, graph, &order, by_node, &total));
    graft_cost_statistics_of(cost, &statistics);
    assert_int_equal(statistics.measured, 1); /* Four equal nodes, one signature. */
    assert_int_equal(statistics.entries, 2);  /* And the anchor. */
    assert_int_equal(total.estimated_count, 0);
    assert_int_equal(total.launches, 4);
    assert_true(total.ns > 0.0);
    assert_true(by_node[0].ns + by_node[1].ns + by_node[2].ns + by_node[3].ns == total.ns);
    CHECK_OK(graft_cost_graph(env, cost, graph, &order, &total));
    graft_cost_statistics_of(cost, &statistics);
    assert_int_equal(statistics.measured, 1); /* Looked up this time. */
}

/* Measured once more, a time is only ever lowered. */
CHECK_CASE(test_measured_again)
{
    static const double known_ns[] = {1e9, 0.0625};
    const graft_measure_options quick = {.rounds = 5, .batch_ns = 20000, .quiet = true};
    graft_device *device = check_device_open(env);
    graft_cost_statistics statistics;
    graft_signature s[3];
    graft_cost *cost = check_cost_open(env, device, NULL);
    for (uint32_t i = 0; i < 2; i++) {
        const graft_cost_entry entry = {.median_ns = known_ns[i], .rounds = 1};
        graft_shape shape = SHAPE(1000 + (int32_t)i);
        graft_signature_of_reorder(&shape, 0, 0, &s[i]);
        s[i].op = GRAFT_OP_relu;
        graft_cost_store(cost, &s[i], &entry);
    }
    s[2] = s[0]; /* Counts once. */
    CHECK_OK(graft_cost_measure_again(env, cost, s, 3, &quick));
    graft_cost_statistics_of(cost, &statistics);
    assert_int_equal(statistics.measured, 2);
    for (uint32_t i = 0; i < 2; i++) {
        graft_cost_entry entry;
        CHECK_OK(graft_cost_signature(env, cost, &s[i], &entry));
        assert_true(i == 0 ? entry.median_ns < 1e8 : entry.median_ns == 0.0625);
    }
}

/* An opaque node costs by its bytes, marked; what surrounds it is measured. */
CHECK_CASE(test_opaque)
{
    graft_cost_total total;
    const graft_graph *graph =
        build_text(env->life, "x = input 100 25; y = opaque x _; out y").graph;
    graft_order order = build_order(env->life, graph);
    graft_cost *cost = open_recorded(env, "Board 9", UINT32_MAX);
    CHECK_OK(graft_cost_graph(env, cost, graph, &order, &total));
    assert_int_equal(total.estimated_count, 1);
    assert_true(fabs(total.ns - 21000.0) < 10.0); /* 1 us and 20 kB at 1 ns a byte. */
}

/* Quantised operators of a model are measured like others; those of no model are estimated. */
CHECK_CASE(test_quantised)
{
    const graft_measure_options quick = {.rounds = 5, .batch_ns = 20000, .quiet = true};
    const graft_model *model =
        onnx_text_model(env, "input x 2 3; weight s = 0.5; node QuantizeLinear x s -> q;"
                             "node DequantizeLinear q s -> y; output y");
    graft_device *device = check_device_open(env);
    graft_schedule schedule;
    graft_cost_total total;
    double ns = 0.0;
    graft_order order = build_order(env->life, &model->graph);
    graft_cost *cost = check_cost_open(env, device, NULL);
    graft_cost_set_measuring(cost, &quick);
    CHECK_OK(graft_cost_graph(env, cost, &model->graph, &order, &total));
    assert_int_equal(total.estimated_count, 2);
    graft_cost_set_model(cost, model);
    CHECK_OK(graft_cost_plan(env, cost, env->life, &model->graph, &order, &schedule));
    assert_int_equal(schedule.step_count, 2);
    assert_int_equal(schedule.steps[0].signature.op, GRAFT_COST_QUANTISE);
    assert_int_equal(schedule.steps[1].signature.op, GRAFT_COST_DEQUANTISE);
    CHECK_OK(graft_cost_graph(env, cost, &model->graph, &order, &total));
    assert_int_equal(total.estimated_count, 0);
    CHECK_OK(graft_cost_price(env, cost, &model->graph, &order, &ns));
    assert_true(ns == total.ns && ns > 0.0);
}

typedef struct {
    const char *text;
    graft_shape in[2];
    uint64_t flops;
    graft_opaque_kind kind;
    uint32_t dtype; /* Of the result. */
} quantised_row;

/* clang-format off */
static const quantised_row quantised_rows[] = {
    {"quantise() f32[7]@row -> row own", {{{7}, 1, GRAFT_DTYPE_F32}}, 0, GRAFT_OPAQUE_QUANTISE, GRAFT_DTYPE_I8},
    {"dequantise() i32[7]@row -> row own", {{{7}, 1, GRAFT_DTYPE_I32}}, 0, GRAFT_OPAQUE_DEQUANTISE, GRAFT_DTYPE_F32},
    {"quantised_conv(stride_h=1, stride_w=1, pad_top=0, pad_left=0, pad_bottom=0, pad_right=0, dilation_h=1, "
     "dilation_w=1, groups=2) u8[1,4,6,5]@row i8[8,2,3,3]@row -> row own",
     {{{1, 4, 6, 5}, 4, GRAFT_DTYPE_U8}, {{8, 2, 3, 3}, 4, GRAFT_DTYPE_I8}}, 2 * 8 * 12 * 2 * 9,
     GRAFT_OPAQUE_QUANTISED_CONV, GRAFT_DTYPE_U8},
    {"quantised_matmul() i8[3,4]@row u8[4,5]@row -> row own",
     {{{3, 4}, 2, GRAFT_DTYPE_I8}, {{4, 5}, 2, GRAFT_DTYPE_U8}}, 2 * 3 * 4 * 5, GRAFT_OPAQUE_QUANTISED_MATMUL,
     GRAFT_DTYPE_I8},
};
/* clang-format on */

/* What the signature of a quantised operator says, and how it is written. */
static graft_signature check_quantised(graft_env *env, const quantised_row *row)
{
    graft_opaque opaque = {.kind = row->kind};
    graft_buffer text = {.arena = env->life};
    graft_signature signature;
    graft_signature back;
    graft_shape outputs[GRAFT_MAX_OUTPUTS];
    opaque.in[0] = row->in[0];
    opaque.in[3] = row->in[1];
    if (row->kind == GRAFT_OPAQUE_QUANTISED_CONV) {
        memcpy(opaque.attrs, (const int32_t[9]){1, 1, 0, 0, 0, 0, 1, 1, 2}, 9 * sizeof(int32_t));
    }
    assert_true(graft_signature_of_opaque(&opaque, &signature));
    graft_signature_print(&signature, &text);
    assert_string_equal(text.data, row->text);
    CHECK_OK(graft_signature_parse(env, text.data, &back));
    assert_true(graft_signature_equal(&signature, &back));
    CHECK_OK(graft_signature_outputs(&signature, outputs));
    assert_int_equal(outputs[0].dtype, row->dtype);
    assert_int_equal(graft_signature_flops(&signature), row->flops);
    return signature;
}

CHECK_CASE(test_quantised_signatures)
{
    const graft_measure_options quick = {.rounds = 5, .batch_ns = 20000, .quiet = true};
    const graft_opaque gather = {.kind = GRAFT_OPAQUE_GATHER};
    const graft_opaque one_axis = {
        .kind = GRAFT_OPAQUE_QUANTISED_CONV,
        .attrs = {1,  1, 0, 0, 0, 0, 1, 1, 1},
        .in = {{{1, 1, 4}, 3, GRAFT_DTYPE_U8}, [3] = {{1, 1, 2}, 3, GRAFT_DTYPE_U8}}
    };
    graft_device *device = check_device_open(env);
    graft_signature none;
    graft_cost *cost = check_cost_open(env, device, NULL);
    graft_cost_set_measuring(cost, &quick);
    for (size_t i = 0; i < sizeof(quantised_rows) / sizeof(quantised_rows[0]); i++) {
        const graft_signature signature = check_quantised(env, &quantised_rows[i]);
        graft_cost_entry entry;
        CHECK_OK(graft_cost_signature(env, cost, &signature, &entry));
        assert_int_equal(entry.source, GRAFT_COST_MEASURED);
        assert_true(entry.median_ns > 0.0);
    }
    assert_false(graft_signature_of_opaque(&gather, &none));
    assert_false(graft_signature_of_opaque(&one_axis, &none));
}

/* Equal nodes are paid for once, whoever asks; others are not shared. */
CHECK_CASE(test_equal_nodes)
{
    graft_schedule schedule;
    graft_cost_total total;
    graft_cost_node by_node[64];
    double ns = 0.0;
    const graft_graph *graph =
        build_text(env->life, "x = input 10 10; a = relu x; a = sigmoid a; b = relu x;"
                              "b = sigmoid b; c = tanh x; c = sigmoid c; out a b c")
            .graph;
    graft_order order = build_order(env->life, graph);
    graft_cost *cost = open_recorded(env, "Board 9", UINT32_MAX);
    CHECK_OK(graft_cost_plan(env, cost, env->life, graph, &order, &schedule));
    assert_int_equal(schedule.step_count, 4);
    assert_int_equal(schedule.output_count, 3);
    assert_true(schedule.outputs[0] == schedule.outputs[1]);
    assert_true(schedule.outputs[0] != schedule.outputs[2]);
    CHECK_OK(graft_cost_nodes(env, cost, graph, &order, by_node, &total));
    assert_int_equal(total.launches, 4);
    assert_true(by_node[0].ns > 0.0 && by_node[1].ns > 0.0);
    assert_true(by_node[2].ns == 0.0 && by_node[3].ns == 0.0);
    CHECK_OK(graft_cost_price(env, cost, graph, &order, &ns));
    assert_true(ns == total.ns);
}

CHECK_CASE(test_device_table)
{
    graft_device *device = check_device_open(env);
    for (uint32_t op = 1; op < GRAFT_OP_COUNT; op++) {
        assert_int_equal(graft_device_has(device, op), graft_op(op) != NULL);
    }
    assert_false(graft_device_has(device, GRAFT_OP_OPAQUE));
}

/* Times are multiples of 1/16 ns, so any order of summing gives the same sum. */
CHECK_CASE(test_rounding)
{
    assert_true(graft_cost_round(0.0) == 0.0625);
    assert_true(graft_cost_round(1e-9) == 0.0625);
    assert_true(graft_cost_round(100.03) == 100.0);
    assert_true(graft_cost_round(100.04) == 100.0625);
    double up = 0.0;
    double down = 0.0;
    for (int i = 1; i <= 1000; i++) {
        up += graft_cost_round(1e6 / i);
        down += graft_cost_round(1e6 / (1001 - i));
    }
    assert_true(up == down);
}

/* How far away weights lie, and what measuring makes of it. */
#include "cost/cost.h"
#include "cost/cpu/device_cpu.h"
#include "cost/measure/trial.h"
#include "graph/base/bits.h"
#include "tests/support/build.h"
#include "tests/support/kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A chain of `layers` products of one row with `width` x `width` weights; with `shared`, all read
 * the same weight. `spare` adds a weight that only a const node reads. */
static graft_graph *product_chain(graft_env *env, uint32_t layers, int32_t width, bool shared,
                                  bool spare)
{
    built b = build_text(env->life, "x = input 1 %d", width);
    for (uint32_t i = 0; i < layers; i++) {
        if (i == 0 || !shared) {
            build_more(&b, "w = weight %d %d", width, width);
        }
        build_more(&b, "x = matmul x w");
    }
    build_more(&b, spare ? "v = weight 4096 4096; r = relu v; out x" : "out x");
    return b.graph;
}

CHECK_CASE(test_distance)
{
    static const struct {
        const char *name;
        uint32_t layers;
        int32_t width;
        bool shared;
        bool spare;
        uint32_t want;
    } rows[] = {
        {"one quarter",           1,  256,  false, false, GRAFT_DISTANCE_OWN   },
        {"one megabyte",          1,  512,  false, false, GRAFT_DISTANCE_NEAR  },
        {"two and a half",        10, 256,  false, false, GRAFT_DISTANCE_EDGE  },
        {"eight",                 8,  512,  false, false, GRAFT_DISTANCE_SHARED},
        {"sixteen",               16, 512,  false, false, GRAFT_DISTANCE_FAR   },
        {"a half, eight times",   8,  360,  true,  false, GRAFT_DISTANCE_OWN   },
        {"one, read eight times", 8,  512,  true,  false, GRAFT_DISTANCE_NEAR  },
        {"sixty-four",            16, 1024, false, false, GRAFT_DISTANCE_MEMORY},
        {"four, and folded ones", 1,  1024, false, true,  GRAFT_DISTANCE_SHARED},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        print_message("%s\n", rows[i].name);
        graft_graph *graph =
            product_chain(env, rows[i].layers, rows[i].width, rows[i].shared, rows[i].spare);
        graft_order order = build_order(env->life, graph);
        graft_schedule schedule;
        graft_distances distances;
        graft_distances_find(env->scratch, graph, &order, &distances);
        /* A weight that fills the core's caches alone is not found again by a few reads. */
        bool edge = rows[i].shared && rows[i].width == 512;
        uint32_t want = edge ? GRAFT_DISTANCE_EDGE : rows[i].want;
        assert_int_equal(distances.others, rows[i].want);
        graft_schedule_build_in(env->life, graph, &order, GRAFT_LAYOUT_NHWC, true, &schedule);
        for (uint32_t s = 0; s < schedule.step_count; s++) {
            assert_int_equal(schedule.steps[s].signature.distance, want);
        }
    }
}

/* A cell unrolled over eight steps with a weight of half a megabyte for what it remembers and one
 * for what it is told: read in turns, both have to stay; hoisted out of it, the second one does
 * not, and is as far away as both together, as is the first one when it is read behind it. */
CHECK_CASE(test_hoisted)
{
    enum { STEPS = 8 };
    static const uint32_t others[2] = {GRAFT_DISTANCE_NEAR, GRAFT_DISTANCE_OWN};
    for (uint32_t hoisted = 0; hoisted < 2; hoisted++) {
        built b = build_text(env->life, "t = input 1 384; x = input 1 384; w = weight 384 384;"
                                        "v = weight 384 384");
        uint32_t own_reads = 0;
        for (uint32_t i = 0; i < STEPS; i++) {
            build_more(&b, "%sx = matmul x w; x = add x h",
                       i == 0 || hoisted == 0 ? "h = matmul t v; " : "");
        }
        build_more(&b, "out x");
        const graft_graph *graph = b.graph;
        graft_order order = build_order(env->life, graph);
        graft_distances distances;
        graft_schedule schedule;
        graft_distances_find(env->scratch, graph, &order, &distances);
        assert_int_equal(distances.others, others[hoisted]);
        graft_schedule_build_in(env->life, graph, &order, GRAFT_LAYOUT_NHWC, true, &schedule);
        for (uint32_t s = 0; s < schedule.step_count; s++) {
            const graft_step *step = &schedule.steps[s];
            if (step->signature.op == GRAFT_OP_matmul) {
                own_reads += step->signature.distance == GRAFT_DISTANCE_OWN;
                assert_true(step->signature.distance == GRAFT_DISTANCE_OWN ||
                            step->signature.distance == GRAFT_DISTANCE_NEAR);
            } else {
                assert_int_equal(step->signature.distance, others[hoisted]);
            }
        }
        assert_int_equal(own_reads, hoisted == 0 ? 0 : STEPS - 1);
    }
}

/* Four weights of a quarter of a megabyte, read in turning directions: what was read last is near,
 * and the first one has seen all others; three of them and what else there is are more than 0.75.
 */
CHECK_CASE(test_turning)
{
    enum { GATES = 4, STEPS = 6 };
    static const uint32_t want[GATES] = {GRAFT_DISTANCE_OWN, GRAFT_DISTANCE_OWN,
                                         GRAFT_DISTANCE_NEAR, GRAFT_DISTANCE_NEAR};
    built b = build_text(env->life, "x = input 1 256; a = weight 256 256; b = weight 256 256;"
                                    "c = weight 256 256; d = weight 256 256");
    for (int i = 0; i < STEPS * GATES; i++) {
        build_more(&b, "x = matmul x %c", i / GATES % 2 == 0 ? 'a' + i % GATES : 'd' - i % GATES);
    }
    build_more(&b, "out x");
    const graft_graph *graph = b.graph;
    graft_order order = build_order(env->life, graph);
    graft_distances distances;
    graft_distances_find(env->scratch, graph, &order, &distances);
    for (uint32_t i = 0; i < STEPS * GATES; i++) {
        assert_int_equal(distances.nodes[order.order[i]], want[i % GATES]);
    }
}

/* A filter of a few kilobytes beside images of four megabytes each has left the core's caches when
 * its turn comes again. */
CHECK_CASE(test_working)
{
    for (int32_t side = 8; side <= 128; side += 120) {
        const graft_graph *graph = build_text(env->life,
                                              "x = input 1 64 %d %d; w = weight 64 64 1 1;"
                                              "y = conv x w" UNPADDED "; y = relu y; out y",
                                              side, side)
                                       .graph;
        graft_order order = build_order(env->life, graph);
        graft_distances distances;
        graft_distances_find(env->scratch, graph, &order, &distances);
        uint32_t want = side == 8 ? GRAFT_DISTANCE_OWN : GRAFT_DISTANCE_SHARED;
        assert_int_equal(distances.others, want);
        for (graft_index i = 0; i < order.count; i++) {
            assert_int_equal(distances.nodes[order.order[i]], want);
        }
    }
}

/* The distance is part of the text, and of the key. */
CHECK_CASE(test_text)
{
    for (uint32_t distance = 0; distance < GRAFT_DISTANCE_COUNT; distance++) {
        graft_signature s;
        graft_signature back;
        graft_buffer text = {.arena = env->life};
        graft_shape shape = SHAPE(1, 32, 8, 8);
        graft_signature_of_reorder(&shape, 0, 1, &s);
        s.distance = (uint8_t)distance;
        graft_signature_print(&s, &text);
        CHECK_OK(graft_signature_parse(env, text.data, &back));
        assert_true(graft_signature_equal(&s, &back));
    }
}

/* y = op(x, z, w) on images of `side` by `side`, at a distance where a network's weights are far.
 */
static graft_signature image_signature(uint8_t op, uint8_t inputs, int32_t side)
{
    graft_signature s;
    memset(&s, 0, sizeof(s));
    s.op = op;
    s.input_count = inputs;
    s.output_count = 1;
    s.distance = GRAFT_DISTANCE_MEMORY;
    if (op == GRAFT_OP_rms_norm) {
        s.attrs[GRAFT_ATTR_rms_norm_epsilon] = graft_bits_of_float(1e-5F);
    }
    for (uint32_t k = 0; k < inputs; k++) {
        bool image = k == 0 || (op != GRAFT_OP_scale_shift && op != GRAFT_OP_rms_norm);
        s.inputs[k] = image ? SHAPE(1, 64, side, side) : SHAPE(op == GRAFT_OP_rms_norm ? side : 64);
        s.const_mask = (uint8_t)(s.const_mask | (image ? 0U : 1U << k));
    }
    return s;
}

/* Results are passed on: the next run reads them, and writes to where they came from. After
 * thousands of runs numbers are normal still. */
CHECK_CASE(test_passing)
{
    static const struct {
        uint8_t op;
        uint8_t inputs;
        bool passes;
        int32_t side;
    } rows[] = {
        {GRAFT_OP_relu,            1, true,  32},
        {GRAFT_OP_add,             2, true,  32},
        {GRAFT_OP_mul,             2, true,  32},
        {GRAFT_OP_div,             2, true,  32},
        {GRAFT_OP_scale_shift,     3, true,  32},
        {GRAFT_OP_rms_norm,        2, true,  32},
        {GRAFT_OP_relu,            1, false, 7 }, /* So little is near in any case. */
        {GRAFT_OP_global_avg_pool, 1, false, 32},
    };
    graft_device *device = check_device_open(env);
    for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        double samples[2 * GRAFT_KERNEL_MOST * 2];
        graft_trial trial;
        graft_signature s = image_signature(rows[i].op, rows[i].inputs, rows[i].side);
        CHECK_OK(graft_trial_open(env, device, &s, NULL, samples, 2, &trial));
        assert_int_equal(trial.passes_on, rows[i].passes);
        float last = trial.inputs[0][0];
        CHECK_OK(graft_trial_qualify(env, &trial));
        for (uint32_t k = 0; k < trial.contestant_count; k++) {
            graft_contestant *c = &trial.contestants[k];
            assert_true(c->dropped ||
                        graft_trial_round(env, &trial, c, 10000000, NULL) == GRAFT_OK);
        }
        for (uint32_t k = 0; k < 1024; k++) {
            assert_true(isnormal(trial.inputs[0][k]) ||
                        (rows[i].op == GRAFT_OP_relu && trial.inputs[0][k] == 0.0F));
        }
        assert_true(rows[i].passes || trial.inputs[0][0] == last);
        graft_trial_close(&trial);
    }
}

/* A product of one row and a weight of a quarter of a megabyte is measured with as many copies of
 * it as networks of its distance read between two reads; without copies where all stays near. One
 * run is thrown away after a switch. */
CHECK_CASE(test_copies)
{
    static const uint32_t copies[GRAFT_DISTANCE_COUNT] = {
        [GRAFT_DISTANCE_OWN] = 0,     [GRAFT_DISTANCE_NEAR] = 5, [GRAFT_DISTANCE_EDGE] = 9,
        [GRAFT_DISTANCE_SHARED] = 24, [GRAFT_DISTANCE_FAR] = 72, [GRAFT_DISTANCE_MEMORY] = 384,
    };
    graft_device *device = check_device_open(env);
    const int32_t attrs[GRAFT_MAX_ATTRS] = {0};
    const graft_shape shapes[2] = {SHAPE(1, 256), SHAPE(256, 256)};
    for (uint32_t distance = 0; distance < GRAFT_DISTANCE_COUNT; distance++) {
        double samples[2 * GRAFT_KERNEL_MOST * 2];
        graft_trial trial;
        graft_signature s = check_signature(env, GRAFT_OP_matmul, attrs, shapes, 2, 0);
        s.distance = (uint8_t)distance;
        CHECK_OK(graft_trial_open(env, device, &s, NULL, samples, 2, &trial));
        CHECK_OK(graft_trial_qualify(env, &trial));
        for (uint32_t k = 0; k < trial.contestant_count; k++) {
            graft_contestant *c = &trial.contestants[k];
            if (c->dropped) {
                continue;
            }
            assert_int_equal(c->kernel->turn_count, copies[distance]);
            CHECK_OK(graft_trial_round(env, &trial, c, 1, NULL)); /* One run. */
            if (copies[distance] > 0) {
                assert_int_equal(c->kernel->turn, 2 * c->kernel->turn_stride % copies[distance]);
            }
        }
        graft_trial_close(&trial);
    }
}

/* Two copies of a megabyte that take one and a quarter. */
CHECK_CASE(test_overlap)
{
    graft_device *device = check_device_open(env);
    const graft_shape shapes[2] = {SHAPE(1, 512), SHAPE(512, 512)};
    double samples[2 * GRAFT_KERNEL_MOST * 2];
    graft_trial trial;
    graft_signature s = check_signature(env, GRAFT_OP_matmul, NULL, shapes, 2, 0);
    s.const_mask = 2;
    s.distance = GRAFT_DISTANCE_NEAR;
    CHECK_OK(graft_trial_open(env, device, &s, NULL, samples, 2, &trial));
    CHECK_OK(graft_trial_qualify(env, &trial));
    for (uint32_t k = 0; k < trial.contestant_count; k++) {
        const graft_kernel *kernel = trial.contestants[k].kernel;
        if (!trial.contestants[k].dropped) {
            assert_int_equal(kernel->turn_count, 2);
            assert_int_equal(kernel->copied_count, 1);
            assert_int_equal(kernel->copies[0].bytes, 5 << 18);
        }
    }
    graft_trial_close(&trial);
}

/* Constants of a few hundred bytes lie as far away as all others, and a copy does not follow the
 * one before in memory, where hardware would fetch it in advance. */
CHECK_CASE(test_small_copies)
{
    enum { CHANNELS = 100, COPIES = (6 << 20) / (2 * 448) + 1 }; /* In whole lines. */
    graft_device *device = check_device_open(env);
    const graft_shape shapes[3] = {SHAPE(1, CHANNELS, 2, 2), SHAPE(CHANNELS), SHAPE(CHANNELS)};
    double samples[2 * GRAFT_KERNEL_MOST * 2];
    graft_trial trial;
    graft_signature s = check_signature(env, GRAFT_OP_scale_shift, NULL, shapes, 3, 0);
    s.const_mask = 6;
    s.distance = GRAFT_DISTANCE_SHARED;
    CHECK_OK(graft_trial_open(env, device, &s, NULL, samples, 2, &trial));
    CHECK_OK(graft_trial_qualify(env, &trial));
    for (uint32_t k = 0; k < trial.contestant_count; k++) {
        graft_kernel *kernel = trial.contestants[k].kernel;
        if (trial.contestants[k].dropped || kernel->plain == NULL) {
            continue;
        }
        bool *seen = GRAFT_NEW(env->unit, bool, COPIES);
        assert_int_equal(kernel->turn_count, COPIES);
        for (uint32_t turn = 0; turn < COPIES; turn++) {
            const float *before = kernel->in[1];
            graft_kernel_turn(kernel);
            assert_false(seen[kernel->turn]);
            seen[kernel->turn] = true;
            assert_true(labs((long)(kernel->in[1] - before)) > CHANNELS * 2);
            assert_memory_equal(kernel->in[1], trial.inputs[1], CHANNELS * sizeof(float));
            assert_memory_equal(kernel->in[2], trial.inputs[2], CHANNELS * sizeof(float));
        }
    }
    graft_trial_close(&trial);
}

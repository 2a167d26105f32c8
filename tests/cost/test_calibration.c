/* Fitted factors: found again where they were put in, robust against graphs that went wrong, kept
 * near 1 where nothing was measured, stored and applied. */
#include "cost/cost.h"
#include "graph/base/rng.h"
#include "tests/support/build.h"
#include "tests/support/kernels.h"

#include <math.h>
#include <string.h>

enum { SAMPLES = 24 };

static const double truth[GRAFT_FACTOR_COUNT] = {1.05, 1.4, 1.2, 150.0, 1.15, 1.6};

/* Graphs of all kinds: mostly products, mostly others, many short steps; `wrong` of them are half
 * as slow again as they should be. */
static void draw_samples(graft_rng *rng, uint32_t wrong, graft_calibration_sample *samples)
{
    for (uint32_t s = 0; s < SAMPLES; s++) {
        double scale = pow(10.0, 4.0 + graft_rng_uniform(rng) * 4.0);
        double products = graft_rng_uniform(rng);
        graft_calibration_sample *sample = &samples[s];
        sample->parts[GRAFT_FACTOR_PRODUCTS] = scale * products;
        sample->parts[GRAFT_FACTOR_OTHERS] = scale * (1.0 - products);
        sample->parts[GRAFT_FACTOR_CONVERSIONS] = scale * 0.1 * graft_rng_uniform(rng);
        sample->parts[GRAFT_FACTOR_BLOCKED] = scale * graft_rng_uniform(rng);
        sample->parts[GRAFT_FACTOR_COLD] = scale * 0.3 * graft_rng_uniform(rng);
        sample->parts[GRAFT_FACTOR_STEP] = 10.0 + graft_rng_below(rng, 100);
        sample->estimated_ns = 0.0;
        sample->model = s / 2;
        const graft_calibration exact = {
            .values = {truth[0], truth[1], truth[2], truth[3], truth[4], truth[5]}
        };
        double noise = 1.0 + 0.02 * (graft_rng_uniform(rng) - 0.5);
        sample->whole_ns = graft_calibration_predict(&exact, sample) * noise;
        sample->whole_ns *= s < wrong ? 1.5 : 1.0;
    }
}

CHECK_CASE(test_fit)
{
    for (uint32_t wrong = 0; wrong <= 4; wrong += 4) {
        graft_calibration_sample samples[SAMPLES];
        graft_rng rng = check_rng(51);
        draw_samples(&rng, wrong, samples);
        graft_calibration c = graft_calibration_fit(env, samples, SAMPLES, UINT32_MAX);
        assert_int_equal(c.graphs, SAMPLES);
        assert_true(fabs(c.values[GRAFT_FACTOR_PRODUCTS] / truth[0] - 1.0) < 0.05);
        assert_true(fabs(c.values[GRAFT_FACTOR_OTHERS] / truth[1] - 1.0) < 0.12);
        assert_true(c.error < 0.03);
        graft_calibration without = graft_calibration_fit(env, samples, SAMPLES, 3);
        assert_int_equal(without.graphs, SAMPLES - 2);
        double left = graft_calibration_predict(&without, &samples[6]) / samples[6].whole_ns;
        assert_true(wrong > 6 || fabs(left - 1.0) < 0.05);
    }
}

/* One graph cannot say which class it was: the prior keeps factors between 1 and what it asks. */
CHECK_CASE(test_prior)
{
    const graft_calibration_sample sample = {
        .parts = {1e6, 0.0, 0.0, 10.0, 0.0, 0.0},
          .whole_ns = 1.2e6
    };
    graft_calibration c = graft_calibration_fit(env, &sample, 1, UINT32_MAX);
    assert_true(c.values[GRAFT_FACTOR_PRODUCTS] > 1.0 && c.values[GRAFT_FACTOR_PRODUCTS] <= 1.2);
    assert_true(c.values[GRAFT_FACTOR_OTHERS] == 1.0);
    c = graft_calibration_fit(env, &sample, 0, UINT32_MAX);
    assert_int_equal(c.graphs, 0);
    for (uint32_t i = 0; i < GRAFT_FACTOR_COUNT; i++) {
        assert_true(c.values[i] == (i == GRAFT_FACTOR_STEP ? 0.0 : 1.0));
    }
}

/* Graphs whose sums rest on estimates are no graphs to fit to. */
CHECK_CASE(test_unsure)
{
    graft_calibration_sample samples[SAMPLES];
    graft_rng rng = check_rng(53);
    draw_samples(&rng, 8, samples);
    for (uint32_t s = 0; s < 8; s++) {
        samples[s].estimated_ns = 0.03 * samples[s].whole_ns;
        assert_true(graft_calibration_unsure(&samples[s]));
    }
    samples[8].estimated_ns = 0.01 * samples[8].parts[GRAFT_FACTOR_PRODUCTS];
    assert_false(graft_calibration_unsure(&samples[8]));
    graft_calibration c = graft_calibration_fit(env, samples, SAMPLES, UINT32_MAX);
    graft_calibration sure = graft_calibration_fit(env, samples + 8, SAMPLES - 8, UINT32_MAX);
    assert_int_equal(c.graphs, SAMPLES - 8);
    assert_memory_equal(&c, &sure, sizeof(c));
    graft_calibration_sample sample = {.whole_ns = 1.0};
    const graft_signature signature = {.op = GRAFT_OP_relu};
    const graft_cost_entry measured = {.median_ns = 100.0};
    const graft_cost_entry estimated = {.median_ns = 3.0, .source = GRAFT_COST_ESTIMATED};
    graft_calibration_add(&sample, &signature, &measured);
    assert_false(graft_calibration_unsure(&sample));
    graft_calibration_add(&sample, &signature, &estimated);
    assert_true(graft_calibration_unsure(&sample));
}

/* By what a signature does and how much it moves. */
CHECK_CASE(test_classes)
{
    static const struct {
        uint8_t op;
        int32_t channels; /* Of a filter. */
        int32_t side;
        uint32_t layout;
        uint32_t distance;
        graft_factor factor;
    } rows[] = {
        {GRAFT_OP_conv,      64, 14,  GRAFT_LAYOUT_NHWC,    GRAFT_DISTANCE_MEMORY, GRAFT_FACTOR_PRODUCTS},
        {GRAFT_OP_conv,      64, 14,  GRAFT_LAYOUT_BLOCKED, GRAFT_DISTANCE_MEMORY, GRAFT_FACTOR_BLOCKED },
        {GRAFT_OP_conv,      1,  14,  GRAFT_LAYOUT_NHWC,    GRAFT_DISTANCE_MEMORY, GRAFT_FACTOR_COLD    },
        {GRAFT_OP_conv,      1,  14,  GRAFT_LAYOUT_NHWC,    GRAFT_DISTANCE_OWN,    GRAFT_FACTOR_OTHERS  },
        {GRAFT_OP_relu,      0,  14,  GRAFT_LAYOUT_NHWC,    GRAFT_DISTANCE_SHARED, GRAFT_FACTOR_COLD    },
        {GRAFT_OP_relu,      0,  14,  GRAFT_LAYOUT_NHWC,    GRAFT_DISTANCE_FAR,    GRAFT_FACTOR_COLD    },
        {GRAFT_OP_relu,      0,  112, GRAFT_LAYOUT_NHWC,    GRAFT_DISTANCE_SHARED, GRAFT_FACTOR_OTHERS  },
        {GRAFT_COST_REORDER, 0,  14,  GRAFT_LAYOUT_NHWC,    GRAFT_DISTANCE_MEMORY,
         GRAFT_FACTOR_CONVERSIONS                                                                       },
    };
    for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        graft_signature s;
        memset(&s, 0, sizeof(s));
        s.op = rows[i].op;
        s.input_count = rows[i].channels > 0 ? 2 : 1;
        s.output_count = 1;
        s.inputs[0] = SHAPE(1, 64, rows[i].side, rows[i].side);
        s.out_layouts[0] = (uint8_t)rows[i].layout;
        s.distance = (uint8_t)rows[i].distance;
        if (rows[i].channels > 0) {
            const int32_t attrs[] = {1, 1, 1, 1, 1, 1, 1, 1, 64 / rows[i].channels};
            s.inputs[1] = SHAPE(64, rows[i].channels, 3, 3);
            memcpy(s.attrs, attrs, sizeof(attrs));
        }
        assert_int_equal(graft_factor_of(&s), rows[i].factor);
    }
}

/* Stored beside the entries, it corrects every total; without it, totals are as measured. */
CHECK_CASE(test_applied)
{
    const graft_calibration c = {
        .values = {1.0, 2.0, 1.0, 100.0, 1.0, 1.0},
          .error = 0.05, .graphs = 7
    };
    const graft_calibration none = graft_calibration_none();
    const graft_measure_options quick = {.rounds = 5, .batch_ns = 20000, .quiet = true};
    graft_device *device = check_device_open(env);
    graft_cost_total before;
    graft_cost_total after;
    double price = 0.0;
    const graft_graph *graph =
        build_text(env->life, "x = input 64 64; x = relu x; x = tanh x; out x").graph;
    graft_order order = build_order(env->life, graph);
    graft_cost *cost = check_cost_open(env, device, NULL);
    graft_cost_set_measuring(cost, &quick);
    CHECK_OK(graft_cost_graph(env, cost, graph, &order, &before));
    CHECK_OK(graft_cost_store_calibration(env, cost, &c, "by hand"));
    CHECK_OK(graft_cost_graph(env, cost, graph, &order, &after));
    assert_true(after.ns == 2.0 * before.ns + 200.0);
    CHECK_OK(graft_cost_price(env, cost, graph, &order, &price));
    assert_true(price == after.ns);
    graft_calibration back = graft_calibration_read(graft_cost_database(cost));
    assert_int_equal(back.graphs, 7);
    for (uint32_t i = 0; i < GRAFT_FACTOR_COUNT; i++) {
        assert_true(fabs(back.values[i] - c.values[i]) < 1e-3);
    }
    CHECK_OK(graft_cost_set_calibration(env, cost, &none));
    CHECK_OK(graft_cost_graph(env, cost, graph, &order, &after));
    assert_true(after.ns == before.ns);
}

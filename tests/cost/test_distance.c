/* How far away weights lie, and what measuring makes of it. */
#include "cost/cost.h"
#include "cost/trial.h"
#include "tests/support/build.h"
#include "tests/support/kernels.h"

#include <string.h>

/* A chain of `layers` products of one row with `width` x `width` weights; with `shared`, all read
 * the same weight. `spare` adds a weight that only a const node reads. */
static graft_graph *product_chain(graft_env *env, uint32_t layers, int32_t width, bool shared,
                                  bool spare)
{
    graft_graph *graph = build_graph(env->life);
    graft_index x = build_input(graph, build_shape(2, 1, width, 0, 0), 0);
    graft_index w = build_weight(graph, build_shape(2, width, width, 0, 0), 0);
    for (uint32_t i = 0; i < layers; i++) {
        if (i > 0 && !shared) {
            w = build_weight(graph, build_shape(2, width, width, 0, 0), i);
        }
        x = build_node(graph, GRAFT_OP_matmul, NULL, x, w, GRAFT_NONE);
    }
    if (spare) {
        graft_index large = build_weight(graph, build_shape(2, 4096, 4096, 0, 0), layers);
        (void)build_node(graph, GRAFT_OP_relu, NULL, large, 0, 0);
    }
    assert_int_equal(graft_graph_add_output(graph, x), GRAFT_OK);
    return graph;
}

static void test_distance(void **state)
{
    static const struct {
        const char *name;
        uint32_t layers;
        int32_t width;
        bool shared;
        bool spare;
        uint32_t want;
    } rows[] = {
        {"one megabyte",          1,  512,  false, false, GRAFT_DISTANCE_OWN   },
        {"two and a half",        10, 256,  false, false, GRAFT_DISTANCE_EDGE  },
        {"eight",                 8,  512,  false, false, GRAFT_DISTANCE_SHARED},
        {"one, read eight times", 8,  512,  true,  false, GRAFT_DISTANCE_OWN   },
        {"sixty-four",            16, 1024, false, false, GRAFT_DISTANCE_MEMORY},
        {"four, and folded ones", 1,  1024, false, true,  GRAFT_DISTANCE_SHARED},
    };
    graft_env *env = *state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        print_message("%s\n", rows[i].name);
        graft_graph *graph =
            product_chain(env, rows[i].layers, rows[i].width, rows[i].shared, rows[i].spare);
        graft_order order = build_order(env->life, graph);
        graft_schedule schedule;
        assert_int_equal(graft_distance_of(env->scratch, graph, &order), rows[i].want);
        graft_schedule_build(env->life, graph, &order, true, &schedule);
        for (uint32_t s = 0; s < schedule.step_count; s++) {
            assert_int_equal(schedule.steps[s].signature.distance, rows[i].want);
        }
    }
}

/* A cell unrolled over eight steps with a weight of a megabyte for what it remembers and one for
 * what it is told: read in turns, both have to stay; hoisted out of it, the second one does not. */
static void test_hoisted(void **state)
{
    enum { STEPS = 8, WIDTH = 512 };
    static const uint32_t want[2] = {GRAFT_DISTANCE_EDGE, GRAFT_DISTANCE_OWN};
    graft_env *env = *state;
    for (uint32_t hoisted = 0; hoisted < 2; hoisted++) {
        graft_graph *graph = build_graph(env->life);
        graft_index told = build_input(graph, build_shape(2, 1, WIDTH, 0, 0), 0);
        graft_index x = build_input(graph, build_shape(2, 1, WIDTH, 0, 0), 1);
        graft_index own = build_weight(graph, build_shape(2, WIDTH, WIDTH, 0, 0), 0);
        graft_index other = build_weight(graph, build_shape(2, WIDTH, WIDTH, 0, 0), 1);
        graft_index heard = GRAFT_NONE;
        for (uint32_t i = 0; i < STEPS; i++) {
            if (i == 0 || hoisted == 0) {
                heard = build_node(graph, GRAFT_OP_matmul, NULL, told, other, GRAFT_NONE);
            }
            x = build_node(graph, GRAFT_OP_matmul, NULL, x, own, GRAFT_NONE);
            x = build_node(graph, GRAFT_OP_add, NULL, x, heard, GRAFT_NONE);
        }
        assert_int_equal(graft_graph_add_output(graph, x), GRAFT_OK);
        graft_order order = build_order(env->life, graph);
        assert_int_equal(graft_distance_of(env->scratch, graph, &order), want[hoisted]);
    }
}

/* The distance is part of the text, and of the key. */
static void test_text(void **state)
{
    graft_env *env = *state;
    for (uint32_t distance = 0; distance < GRAFT_DISTANCE_COUNT; distance++) {
        graft_signature s;
        graft_signature back;
        graft_buffer text = {.arena = env->life};
        graft_shape shape = build_shape(4, 1, 32, 8, 8);
        graft_signature_of_reorder(&shape, 0, 1, &s);
        s.distance = (uint8_t)distance;
        graft_signature_print(&s, &text);
        assert_int_equal(graft_signature_parse(env, text.data, &back), GRAFT_OK);
        assert_true(graft_signature_equal(&s, &back));
    }
}

/* Operands that lie far away take turns: as many places as exceed the second-level cache, one where
 * the network stays in it. */
static void test_places(void **state)
{
    graft_env *env = *state;
    graft_device *device = check_device_open(env);
    for (uint32_t distance = 0; distance < GRAFT_DISTANCE_COUNT; distance++) {
        double samples[2 * GRAFT_KERNEL_MOST];
        graft_trial trial;
        graft_signature s;
        graft_shape shape = build_shape(4, 1, 64, 32, 32); /* A quarter of a megabyte. */
        memset(&s, 0, sizeof(s));
        s.op = GRAFT_OP_add;
        s.input_count = 2;
        s.output_count = 1;
        s.inputs[0] = shape;
        s.inputs[1] = shape;
        s.distance = (uint8_t)distance;
        assert_int_equal(graft_trial_open(env, device, &s, samples, 1, &trial), GRAFT_OK);
        bool own = distance == GRAFT_DISTANCE_OWN || distance == GRAFT_DISTANCE_EDGE;
        assert_true(own ? trial.place_count == 1 : trial.place_count > 4);
        assert_int_equal(trial.input_steps[0], 0); /* Written just before. */
        assert_int_equal(trial.input_steps[1], own ? 0 : 65536);
        assert_int_equal(trial.output_steps[0], 65536);
        graft_trial_close(&trial);
    }
    graft_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECK_TEST(test_distance), CHECK_TEST(test_hoisted),
                                       CHECK_TEST(test_text), CHECK_TEST(test_places)};
    return cmocka_run_group_tests_name("distance", tests, NULL, NULL);
}

/* The graph network: gradients, what it may and may not depend on, and that its heads can be
 * learnt. */
#include "tests/support/check.h"
#include "tests/support/gradient.h"
#include "train/blas.h"
#include "train/grounding.h"
#include "train/optimiser.h"

#include <math.h>
#include <string.h>

enum { NODE_FEATURES = 5, EDGE_FEATURES = 2, GLOBALS = 1, XFERS = 3, OPERATORS = 5, GRAPHS = 48 };

/* A random graph whose facts follow from it: nodes are one of five operators (one-hot); xfer x has
 * a location wherever an edge runs from operator x to operator x + 1. */
static graft_grounding_sample make_sample(graft_arena *arena, graft_rng *rng)
{
    uint32_t nodes = 2 + graft_rng_below(rng, 9);
    uint32_t edges = graft_rng_below(rng, 2 * nodes);
    float *features = GRAFT_NEW(arena, float, nodes *NODE_FEATURES);
    float *edge_features = GRAFT_NEW(arena, float, edges *EDGE_FEATURES);
    float *globals = GRAFT_NEW(arena, float, GLOBALS);
    uint32_t *senders = GRAFT_NEW(arena, uint32_t, edges);
    uint32_t *receivers = GRAFT_NEW(arena, uint32_t, edges);
    uint32_t *operators = GRAFT_NEW(arena, uint32_t, nodes);
    uint16_t *counts = GRAFT_NEW(arena, uint16_t, XFERS);
    float *gain = GRAFT_NEW(arena, float, XFERS);
    float *histogram = GRAFT_NEW(arena, float, OPERATORS);
    for (uint32_t i = 0; i < nodes; i++) {
        operators[i] = graft_rng_below(rng, OPERATORS);
        features[i * NODE_FEATURES + operators[i]] = 1.0F;
        histogram[operators[i]] += 0.2F;
    }
    for (uint32_t k = 0; k < edges; k++) {
        senders[k] = graft_rng_below(rng, nodes);
        receivers[k] = graft_rng_below(rng, nodes);
        edge_features[k * EDGE_FEATURES] = (float)graft_rng_normal(rng);
        edge_features[k * EDGE_FEATURES + 1] = 1.0F;
        uint32_t from = operators[senders[k]];
        if (from < XFERS && operators[receivers[k]] == from + 1) {
            counts[from]++;
            gain[from] = 1.0F - (float)from;
        }
    }
    globals[0] = 0.1F * (float)nodes;
    return (graft_grounding_sample){
        .graph = {nodes, edges, features, edge_features, globals, senders, receivers},
        .location_counts = counts,
        .gain = gain,
        .cost = 0.1F * (float)nodes,
        .histogram = histogram
    };
}

typedef struct {
    graft_encoder encoder;
    graft_grounding grounding;
    graft_parameters *sets[2];
    graft_shards shards;
    graft_grounding_sample samples[GRAPHS];
    uint32_t index[GRAPHS];
    graft_grounding_batch batch;
} fixture;

static fixture *open_fixture(graft_env *env, uint32_t thread_count)
{
    fixture *f = GRAFT_NEW(env->life, fixture, 1);
    graft_rng rng;
    graft_rng_seed(&rng, 4);
    for (uint32_t i = 0; i < GRAPHS; i++) {
        f->samples[i] = make_sample(env->life, &rng);
        f->index[i] = i;
    }
    graft_encoder_size size = graft_encoder_defaults((graft_encoder_size){
        NODE_FEATURES, EDGE_FEATURES, GLOBALS, .hidden = 16, .latent = 12, .rounds = 2});
    graft_encoder_init(&f->encoder, env->life, &size, 1);
    graft_grounding_init(&f->grounding, env->life, size.latent, XFERS, OPERATORS, 2);
    f->sets[0] = &f->encoder.parameters;
    f->sets[1] = &f->grounding.parameters;
    graft_shards_open(&f->shards, env->life, thread_count, f->sets, 2);
    f->batch = (graft_grounding_batch){f->samples, f->index, GRAPHS};
    return f;
}

static void test_defaults(void **state)
{
    (void)state;
    graft_encoder_size size = graft_encoder_defaults((graft_encoder_size){.node_features = 7});
    assert_int_equal(size.hidden, 32);
    assert_int_equal(size.latent, 64);
    assert_int_equal(size.rounds, 3);
    size = graft_encoder_defaults((graft_encoder_size){7, 0, 0, 8, 9, 1});
    assert_true(size.hidden == 8 && size.latent == 9 && size.rounds == 1);
}

/* The sum of all five losses. */
static double lose_all(void *context)
{
    fixture *f = context;
    graft_grounding_loss loss =
        graft_grounding_evaluate(&f->encoder, &f->grounding, &f->shards, &f->batch);
    return loss.legality + loss.counts + loss.gain + loss.cost + loss.histogram;
}

static void test_gradients(void **state)
{
    fixture *f = open_fixture(*state, 1);
    for (uint32_t k = 0; k < 2; k++) {
        (void)graft_grounding_differentiate(&f->encoder, &f->grounding, &f->shards, &f->batch);
        assert_true(gradient_worst_slope(f->sets[k], lose_all, f) < 1.0);
    }
    graft_shards_close(&f->shards);
}

static float largest_difference(const float *a, const float *b, size_t count)
{
    float most = 0.0F;
    for (size_t i = 0; i < count; i++) {
        most = fmaxf(most, fabsf(a[i] - b[i]));
    }
    return most;
}

/* A graph's latent does not depend on what else is in the batch. */
static void test_graphs_do_not_mix(void **state)
{
    graft_env *env = *state;
    fixture *f = open_fixture(env, 1);
    enum { LATENT = 12 };
    graft_graph_arrays graphs[GRAPHS];
    float together[GRAPHS * LATENT];
    for (uint32_t i = 0; i < GRAPHS; i++) {
        graphs[i] = f->samples[i].graph;
    }
    graft_encoder_run(&f->encoder, env->scratch, graphs, GRAPHS, together);
    for (uint32_t i = 0; i < GRAPHS; i++) {
        float alone[LATENT];
        graft_encoder_run(&f->encoder, env->scratch, &graphs[i], 1, alone);
        assert_true(largest_difference(alone, together + i * LATENT, LATENT) < 1e-5F);
        for (uint32_t d = 0; d < LATENT; d++) {
            assert_true(fabsf(alone[d]) < 1.0F);
        }
        assert_true(i == 0 || largest_difference(alone, together, LATENT) > 1e-3F);
    }
    graft_shards_close(&f->shards);
}

/* Renumbering nodes and reordering edges changes nothing; turning an edge round does. */
static void test_order_of_nodes_does_not_matter(void **state)
{
    graft_env *env = *state;
    fixture *f = open_fixture(env, 1);
    enum { LATENT = 12 };
    graft_graph_arrays graph = f->samples[0].graph;
    for (uint32_t i = 0; i < GRAPHS && graph.edge_count < 5; i++) {
        graph = f->samples[i].graph;
    }
    graft_graph_arrays turned = graph;
    float *nodes = GRAFT_NEW(env->life, float, graph.node_count *NODE_FEATURES);
    float *edges = GRAFT_NEW(env->life, float, graph.edge_count *EDGE_FEATURES);
    uint32_t *senders = GRAFT_NEW(env->life, uint32_t, graph.edge_count);
    uint32_t *receivers = GRAFT_NEW(env->life, uint32_t, graph.edge_count);
    uint32_t last_node = graph.node_count - 1;
    uint32_t last_edge = graph.edge_count - 1;
    for (uint32_t i = 0; i <= last_node; i++) {
        memcpy(nodes + (last_node - i) * NODE_FEATURES, graph.nodes + i * NODE_FEATURES,
               NODE_FEATURES * sizeof(float));
    }
    for (uint32_t k = 0; k <= last_edge; k++) {
        memcpy(edges + (last_edge - k) * EDGE_FEATURES, graph.edges + k * EDGE_FEATURES,
               EDGE_FEATURES * sizeof(float));
        senders[last_edge - k] = last_node - graph.senders[k];
        receivers[last_edge - k] = last_node - graph.receivers[k];
    }
    turned.nodes = nodes;
    turned.edges = edges;
    turned.senders = senders;
    turned.receivers = receivers;
    float a[LATENT];
    float b[LATENT];
    graft_encoder_run(&f->encoder, env->scratch, &graph, 1, a);
    graft_encoder_run(&f->encoder, env->scratch, &turned, 1, b);
    assert_true(largest_difference(a, b, LATENT) < 1e-5F);
    turned.senders = receivers;
    turned.receivers = senders;
    graft_encoder_run(&f->encoder, env->scratch, &turned, 1, b);
    assert_true(largest_difference(a, b, LATENT) > 1e-3F);
    graft_shards_close(&f->shards);
}

/* With one round, a change at one end of an edge is felt at the other, both ways, and nowhere
 * else. */
static void test_messages_run_both_ways(void **state)
{
    graft_env *env = *state;
    enum { NODES = 3, HIDDEN = 8 };
    graft_encoder encoder;
    graft_encoder_size size = {NODE_FEATURES, 0, 0, HIDDEN, 4, 1};
    graft_encoder_init(&encoder, env->life, &size, 1);
    float nodes[NODES * NODE_FEATURES];
    float h[NODES + 1][NODES * HIDDEN];
    const uint32_t sender = 0;
    const uint32_t receiver = 1;
    graft_graph_arrays graph = {NODES, 1, nodes, NULL, NULL, &sender, &receiver};
    for (uint32_t changed = 0; changed <= NODES; changed++) { /* The last run changes none. */
        for (uint32_t i = 0; i < NODES * NODE_FEATURES; i++) {
            nodes[i] = i / NODE_FEATURES == changed ? 1.0F : 0.5F;
        }
        graft_tape tape;
        graft_tape_init(&tape, env->unit, false);
        graft_tape_bind(&tape, &encoder.parameters, NULL);
        graft_graph_batch batch = graft_graph_batch_join(env->unit, &size, &graph, NULL, 1);
        const graft_matrix *out = graft_encoder_apply(&encoder, &tape, &batch).nodes;
        memcpy(h[changed], out->value, sizeof h[changed]);
    }
    static const bool felt[NODES][NODES] = {
        {true,  true,  false},
        {true,  true,  false},
        {false, false, true }
    };
    for (uint32_t changed = 0; changed < NODES; changed++) {
        for (uint32_t at = 0; at < NODES; at++) {
            float moved = largest_difference(&h[changed][(size_t)at * HIDDEN],
                                             &h[NODES][(size_t)at * HIDDEN], HIDDEN);
            assert_true(felt[changed][at] ? moved > 1e-3F : moved == 0.0F);
        }
    }
}

static void train(fixture *f, uint32_t updates)
{
    for (uint32_t i = 0; i < updates; i++) {
        (void)graft_grounding_differentiate(&f->encoder, &f->grounding, &f->shards, &f->batch);
        assert_true(graft_adam_step(f->sets, 2, 5e-3, 1.0));
    }
}

static void test_heads_are_learnt(void **state)
{
    fixture *f = open_fixture(*state, 2);
    graft_grounding_loss before =
        graft_grounding_evaluate(&f->encoder, &f->grounding, &f->shards, &f->batch);
    train(f, 400);
    graft_grounding_loss after =
        graft_grounding_evaluate(&f->encoder, &f->grounding, &f->shards, &f->batch);
    assert_true(after.legal_right > 0.97 && after.legality < 0.3 * before.legality);
    assert_true(after.counts < 0.3 * before.counts);
    assert_true(after.gain < 0.3 * before.gain);
    assert_true(after.cost < 0.1 * before.cost);
    assert_true(after.histogram < 0.3 * before.histogram);
    graft_shards_close(&f->shards);
}

/* Gains that are not known contribute neither loss nor gradient. */
static void test_unknown_gain_is_left_out(void **state)
{
    fixture *f = open_fixture(*state, 1);
    for (uint32_t i = 0; i < GRAPHS; i++) {
        f->samples[i].gain = NULL;
    }
    graft_grounding_loss loss =
        graft_grounding_differentiate(&f->encoder, &f->grounding, &f->shards, &f->batch);
    assert_true(loss.gain == 0.0 && loss.counts > 0.0);
    const graft_parameter *item = &f->sets[1]->items[f->grounding.gain.weight];
    for (size_t k = 0; k < (size_t)item->rows * item->cols; k++) {
        assert_true(f->sets[1]->gradient[item->offset + k] == 0.0F);
    }
    graft_shards_close(&f->shards);
}

/* Recorded losses: they move when seeds, initial values or architecture do, which is to be noticed.
 * One part in 10,000 is left to the order in which a processor's products add up. */
static void check_golden(const char *what, double is, double want)
{
    if (!(fabs(is - want) <= 1e-4 * (0.01 + fabs(want)))) {
        fail_msg("%s is %a (%g), not %a", what, is, is, want);
    }
}

static void test_golden(void **state)
{
    fixture *f = open_fixture(*state, 1);
    train(f, 3);
    graft_grounding_loss loss =
        graft_grounding_evaluate(&f->encoder, &f->grounding, &f->shards, &f->batch);
    check_golden("legality", loss.legality, 0x1.3da7e68p-1);
    check_golden("counts", loss.counts, 0x1.8a73d68p-4);
    check_golden("gain", loss.gain, 0x1.aa3a814p-4);
    check_golden("cost", loss.cost, 0x1.a812ec8p-6);
    check_golden("histogram", loss.histogram, 0x1.322665cp-5);
    graft_shards_close(&f->shards);
}

static void test_threads_change_nothing(void **state)
{
    fixture *one = open_fixture(*state, 1);
    fixture *two = open_fixture(*state, 2);
    train(one, 5);
    train(two, 5);
    for (uint32_t k = 0; k < 2; k++) {
        assert_memory_equal(one->sets[k]->value, two->sets[k]->value,
                            one->sets[k]->size * sizeof(float));
    }
    graft_shards_close(&one->shards);
    graft_shards_close(&two->shards);
}

int main(void)
{
    graft_blas_open();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),           CHECK_TEST(test_gradients),
        CHECK_TEST(test_graphs_do_not_mix),        CHECK_TEST(test_order_of_nodes_does_not_matter),
        CHECK_TEST(test_messages_run_both_ways),   CHECK_TEST(test_heads_are_learnt),
        CHECK_TEST(test_unknown_gain_is_left_out), CHECK_TEST(test_golden),
        CHECK_TEST(test_threads_change_nothing),
    };
    return cmocka_run_group_tests_name("encoder", tests, NULL, NULL);
}

/* The graph network: what it may and may not depend on. Its gradients, the numbering of nodes, any
 * number of threads and that it learns are seen through the agent (test_candidates.c). */
#include "tests/support/check.h"
#include "train/nn/blas.h"
#include "train/nn/encoder.h"

#include <math.h>
#include <string.h>

enum { NODE_FEATURES = 5, EDGE_FEATURES = 2, GLOBALS = 1, GRAPHS = 48, LATENT = 12, MOST = 20 };

/* Random graphs as one batch. Node n of the batch is of graph node_graph[n]. */
typedef struct {
    graft_graph_batch batch;
    uint32_t first_nodes[GRAPHS + 1];
    uint32_t first_edges[GRAPHS + 1];
} graphs;

static void draw_floats(graft_rng *rng, float *to, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        to[i] = (float)graft_rng_normal(rng);
    }
}

static graphs *draw_graphs(graft_arena *arena)
{
    graphs *all = GRAFT_NEW(arena, graphs, 1);
    graft_graph_batch *batch = &all->batch;
    graft_rng rng = check_rng(4);
    batch->graph_count = GRAPHS;
    batch->nodes = GRAFT_NEW(arena, float, GRAPHS *MOST *NODE_FEATURES);
    batch->edges = GRAFT_NEW(arena, float, GRAPHS *MOST *EDGE_FEATURES);
    batch->globals = GRAFT_NEW(arena, float, GRAPHS *GLOBALS);
    batch->senders = GRAFT_NEW(arena, uint32_t, GRAPHS * MOST);
    batch->receivers = GRAFT_NEW(arena, uint32_t, GRAPHS * MOST);
    batch->node_graph = GRAFT_NEW(arena, uint32_t, GRAPHS * MOST);
    for (uint32_t g = 0; g < GRAPHS; g++) {
        const uint32_t nodes = 2 + graft_rng_below(&rng, 9);
        const uint32_t edges = graft_rng_below(&rng, 2 * nodes);
        for (uint32_t i = 0; i < nodes; i++) {
            batch->node_graph[batch->node_count + i] = g;
        }
        for (uint32_t k = batch->edge_count; k < batch->edge_count + edges; k++) {
            batch->senders[k] = batch->node_count + graft_rng_below(&rng, nodes);
            batch->receivers[k] = batch->node_count + graft_rng_below(&rng, nodes);
        }
        batch->node_count += nodes;
        batch->edge_count += edges;
        all->first_nodes[g + 1] = batch->node_count;
        all->first_edges[g + 1] = batch->edge_count;
    }
    draw_floats(&rng, batch->nodes, (size_t)batch->node_count * NODE_FEATURES);
    draw_floats(&rng, batch->edges, (size_t)batch->edge_count * EDGE_FEATURES);
    draw_floats(&rng, batch->globals, GRAPHS * GLOBALS);
    return all;
}

/* Graph `g` of them alone. */
static graft_graph_batch take_graph(graft_arena *arena, const graphs *all, uint32_t g)
{
    const uint32_t node = all->first_nodes[g];
    const uint32_t edge = all->first_edges[g];
    graft_graph_batch one = {.graph_count = 1,
                             .node_count = all->first_nodes[g + 1] - node,
                             .edge_count = all->first_edges[g + 1] - edge,
                             .nodes = all->batch.nodes + (size_t)node * NODE_FEATURES,
                             .edges = all->batch.edges + (size_t)edge * EDGE_FEATURES,
                             .globals = all->batch.globals + (size_t)g * GLOBALS};
    one.senders = GRAFT_NEW(arena, uint32_t, one.edge_count);
    one.receivers = GRAFT_NEW(arena, uint32_t, one.edge_count);
    one.node_graph = GRAFT_NEW(arena, uint32_t, one.node_count);
    for (uint32_t k = 0; k < one.edge_count; k++) {
        one.senders[k] = all->batch.senders[edge + k] - node;
        one.receivers[k] = all->batch.receivers[edge + k] - node;
    }
    return one;
}

static graft_encoding encode(graft_env *env, const graft_encoder *encoder,
                             const graft_graph_batch *batch)
{
    graft_tape tape;
    graft_tape_init(&tape, env->unit, false);
    graft_tape_bind(&tape, &encoder->parameters, NULL);
    return graft_encoder_apply(encoder, &tape, batch);
}

static float largest_difference(const float *a, const float *b, size_t count)
{
    float most = 0.0F;
    for (size_t i = 0; i < count; i++) {
        most = fmaxf(most, fabsf(a[i] - b[i]));
    }
    return most;
}

/* A graph's latent does not depend on what else is in the batch, but on which way its edges run. */
CHECK_CASE(test_graphs_do_not_mix)
{
    const graphs *all = draw_graphs(env->life);
    const graft_encoder_size size = {NODE_FEATURES, EDGE_FEATURES,    GLOBALS,
                                     .hidden = 16,  .latent = LATENT, .rounds = 2};
    graft_encoder encoder;
    graft_encoder_init(&encoder, env->life, &size, 1);
    const float *together = encode(env, &encoder, &all->batch).latent->value;
    for (uint32_t g = 0; g < GRAPHS; g++) {
        graft_graph_batch one = take_graph(env->unit, all, g);
        const float *alone = encode(env, &encoder, &one).latent->value;
        assert_true(largest_difference(alone, together + (size_t)g * LATENT, LATENT) < 1e-5F);
        assert_true(g == 0 || largest_difference(alone, together, LATENT) > 1e-3F);
        uint32_t *senders = one.senders;
        one.senders = one.receivers;
        one.receivers = senders;
        const float *turned = encode(env, &encoder, &one).latent->value;
        assert_true(one.edge_count < 5 || largest_difference(alone, turned, LATENT) > 1e-3F);
        for (uint32_t d = 0; d < LATENT; d++) {
            assert_true(fabsf(alone[d]) < 1.0F);
        }
    }
}

/* With one round, a change at one end of an edge is felt at the other, both ways, and nowhere
 * else. */
CHECK_CASE(test_messages_run_both_ways)
{
    enum { NODES = 3, HIDDEN = 8 };
    const graft_encoder_size size = {NODE_FEATURES, 0, 0, HIDDEN, 4, 1};
    graft_encoder encoder;
    graft_encoder_init(&encoder, env->life, &size, 1);
    float nodes[NODES * NODE_FEATURES];
    const float *h[NODES + 1];
    uint32_t sender = 0;
    uint32_t receiver = 1;
    uint32_t graph[NODES] = {0};
    const graft_graph_batch batch = {.graph_count = 1,
                                     .node_count = NODES,
                                     .edge_count = 1,
                                     .nodes = nodes,
                                     .senders = &sender,
                                     .receivers = &receiver,
                                     .node_graph = graph};
    for (uint32_t changed = 0; changed <= NODES; changed++) { /* The last run changes none. */
        for (uint32_t i = 0; i < NODES * NODE_FEATURES; i++) {
            nodes[i] = i / NODE_FEATURES == changed ? 1.0F : 0.5F;
        }
        h[changed] = encode(env, &encoder, &batch).nodes->value;
    }
    for (uint32_t changed = 0; changed < NODES; changed++) {
        for (uint32_t at = 0; at < NODES; at++) {
            const size_t row = (size_t)at * HIDDEN;
            float moved = largest_difference(&h[changed][row], &h[NODES][row], HIDDEN);
            const bool felt = (changed < 2) == (at < 2); /* The third has no edge. */
            assert_true(at == changed || felt ? moved > 1e-3F : moved == 0.0F);
        }
    }
}

int main(void)
{
    graft_blas_open();
    return check_run_cases();
}

/* reference.c - see reference.h. Sums are taken in double, so that only the training code's own
 * rounding stands between the two. */
#include "emit/reference.h"

#include <math.h>
#include <string.h>

/* One output: x is a row of layer->inputs. */
static float layer_output(const graft_float_layer *layer, const float *x, uint32_t output)
{
    double sum = layer->bias != NULL ? (double)layer->bias[output] : 0.0;
    for (uint32_t i = 0; i < layer->inputs; i++) {
        sum += (double)x[i] * (double)layer->weight[(size_t)i * layer->outputs + output];
    }
    return (float)sum;
}

/* (rows, inputs) -> (rows, outputs), in `arena`. */
static float *apply_layer(const graft_float_layer *layer, graft_arena *arena, const float *x,
                          uint32_t rows)
{
    float *out = GRAFT_NEW(arena, float, (size_t)rows * layer->outputs);
    for (uint32_t row = 0; row < rows; row++) {
        for (uint32_t j = 0; j < layer->outputs; j++) {
            out[(size_t)row * layer->outputs + j] =
                layer_output(layer, x + (size_t)row * layer->inputs, j);
        }
    }
    return out;
}

static void relu_all(float *x, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        x[i] = x[i] > 0.0F ? x[i] : 0.0F;
    }
}

static void widen(float *range, const float *x, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        *range = fabsf(x[i]) > *range ? fabsf(x[i]) : *range;
    }
}

/* ------------------------------------------------------------ graph network */

/* The mean over the edges at each node's near end of relu(h_far W + e W_e + b). */
static float *mean_messages(const graft_float_layer *node, const graft_float_layer *edge,
                            graft_arena *arena, const graft_graph_arrays *state, const float *h,
                            bool incoming)
{
    uint32_t hidden = node->outputs;
    const uint32_t *near = incoming ? state->receivers : state->senders;
    const uint32_t *far = incoming ? state->senders : state->receivers;
    float *from_node = apply_layer(node, arena, h, state->node_count);
    float *from_edge = apply_layer(edge, arena, state->edges, state->edge_count);
    float *mean = GRAFT_NEW(arena, float, (size_t)state->node_count *hidden);
    uint32_t *count = GRAFT_NEW(arena, uint32_t, state->node_count);
    for (uint32_t e = 0; e < state->edge_count; e++) {
        count[near[e]]++;
        for (uint32_t j = 0; j < hidden; j++) {
            float message =
                from_node[(size_t)far[e] * hidden + j] + from_edge[(size_t)e * hidden + j];
            mean[(size_t)near[e] * hidden + j] += message > 0.0F ? message : 0.0F;
        }
    }
    for (uint32_t n = 0; n < state->node_count; n++) {
        for (uint32_t j = 0; count[n] > 0 && j < hidden; j++) {
            mean[(size_t)n * hidden + j] /= (float)count[n];
        }
    }
    return mean;
}

/* h = relu(h + [h, mean in, mean out] W + b), in place. */
static void update_nodes(const graft_float_layer *layer, graft_arena *arena, float *h,
                         const float *const means[2], uint32_t node_count)
{
    uint32_t hidden = layer->outputs;
    float *x = GRAFT_NEW(arena, float, layer->inputs);
    for (uint32_t n = 0; n < node_count; n++) {
        float *row = h + (size_t)n * hidden;
        memcpy(x, row, hidden * sizeof *x);
        memcpy(x + hidden, means[0] + (size_t)n * hidden, hidden * sizeof *x);
        memcpy(x + (size_t)2 * hidden, means[1] + (size_t)n * hidden, hidden * sizeof *x);
        for (uint32_t j = 0; j < hidden; j++) {
            row[j] = x[j] + layer_output(layer, x, j);
        }
    }
    relu_all(h, (size_t)node_count * hidden);
}

/* [mean h, max h, globals]. */
static float *pool_nodes(const graft_float_policy *policy, graft_arena *arena,
                         const graft_graph_arrays *state, const float *h)
{
    uint32_t hidden = policy->hidden;
    float *pooled = GRAFT_NEW(arena, float, policy->global.inputs);
    for (uint32_t j = 0; j < hidden; j++) {
        double sum = 0.0;
        float most = h[j];
        for (uint32_t n = 0; n < state->node_count; n++) {
            float value = h[(size_t)n * hidden + j];
            sum += (double)value;
            most = value > most ? value : most;
        }
        pooled[j] = (float)(sum / state->node_count);
        pooled[hidden + j] = most;
    }
    for (uint32_t i = 0; i < policy->global_features; i++) {
        pooled[2 * hidden + i] = state->globals[i];
    }
    return pooled;
}

/* h after the last round. */
static float *pass_rounds(const graft_float_policy *policy, graft_arena *arena,
                          const graft_graph_arrays *state, graft_ranges *ranges)
{
    size_t size = (size_t)state->node_count * policy->hidden;
    float *h = apply_layer(&policy->input, arena, state->nodes, state->node_count);
    relu_all(h, size);
    widen(&ranges->input, h, size);
    for (uint32_t r = 0; r < policy->round_count; r++) {
        const graft_float_round *round = &policy->rounds[r];
        const float *const means[2] = {
            mean_messages(&round->incoming, &round->incoming_edge, arena, state, h, true),
            mean_messages(&round->outgoing, &round->outgoing_edge, arena, state, h, false),
        };
        update_nodes(&round->node, arena, h, means, state->node_count);
        widen(&ranges->incoming[r], means[0], size);
        widen(&ranges->outgoing[r], means[1], size);
        widen(&ranges->h[r], h, size);
    }
    return h;
}

/* The trunk on [latent, log(1 + counts)]. */
static float *run_trunk(const graft_float_policy *policy, graft_arena *arena, const float *latent,
                        const uint16_t *counts, graft_ranges *ranges)
{
    float *x = GRAFT_NEW(arena, float, (size_t)policy->latent + policy->count_features);
    memcpy(x, latent, policy->latent * sizeof *x);
    for (uint32_t r = 0; r < policy->count_features; r++) {
        x[policy->latent + r] = logf(1.0F + (float)counts[r]);
    }
    for (uint32_t k = 0; k < policy->trunk_count; k++) {
        x = apply_layer(&policy->trunk[k], arena, x, 1);
        relu_all(x, policy->trunk[k].outputs);
        widen(&ranges->trunk[k], x, policy->trunk[k].outputs);
    }
    return x;
}

graft_float_scores graft_reference_run(const graft_float_policy *policy, graft_arena *arena,
                                       const graft_graph_arrays *state, const uint16_t *counts,
                                       graft_ranges *ranges)
{
    graft_ranges unused = {0};
    graft_float_scores scores;
    ranges = ranges != NULL ? ranges : &unused;
    const float *h = pass_rounds(policy, arena, state, ranges);
    const float *pooled = pool_nodes(policy, arena, state, h);
    scores.tanhs = apply_layer(&policy->global, arena, pooled, 1);
    scores.latent = GRAFT_NEW(arena, float, policy->latent);
    for (uint32_t i = 0; i < policy->latent; i++) {
        float t = tanhf(scores.tanhs[i]);
        scores.tanhs[i] = t;
        scores.latent[i] = policy->latent_mean != NULL
                               ? (t - policy->latent_mean[i]) * policy->latent_scale[i]
                               : t;
    }
    widen(&ranges->latent, scores.latent, policy->latent);
    scores.trunk = run_trunk(policy, arena, scores.latent, counts, ranges);
    scores.xfers = apply_layer(&policy->xfer, arena, scores.trunk, 1);
    return scores;
}

/* ------------------------------------------------------------------ choices */

float *graft_reference_locations(const graft_float_policy *policy, graft_arena *arena,
                                 const float *trunk, uint32_t rule, graft_ranges *ranges)
{
    uint32_t width = policy->xfer.inputs;
    float *x = GRAFT_NEW(arena, float, policy->location_trunk.inputs);
    memcpy(x, trunk, width * sizeof *x);
    memcpy(x + width, policy->embeddings + (size_t)rule * policy->embedding_width,
           policy->embedding_width * sizeof *x);
    float *place = apply_layer(&policy->location_trunk, arena, x, 1);
    relu_all(place, policy->location_trunk.outputs);
    if (ranges != NULL) {
        widen(&ranges->place, place, policy->location_trunk.outputs);
    }
    return apply_layer(&policy->location, arena, place, 1);
}

void graft_ranges_add(graft_ranges *ranges, const graft_float_policy *policy, graft_arena *scratch,
                      const graft_graph_arrays *state, const uint16_t *counts)
{
    graft_mark mark = graft_arena_mark(scratch);
    graft_float_scores scores = graft_reference_run(policy, scratch, state, counts, ranges);
    for (uint32_t r = 0; r < policy->rule_count; r++) {
        if (counts[r] > 0) {
            (void)graft_reference_locations(policy, scratch, scores.trunk, r, ranges);
        }
    }
    graft_arena_release(scratch, mark);
}

uint32_t graft_reference_rule(const graft_float_policy *policy, const float *xfers,
                              const uint16_t *counts)
{
    uint32_t best = policy->rule_count;
    for (uint32_t r = policy->rule_count; r-- > 0;) {
        best = counts[r] > 0 && xfers[r] >= xfers[best] ? r : best;
    }
    return best;
}

uint32_t graft_reference_location(const float *locations, uint32_t count)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; i++) {
        best = locations[i] > locations[best] ? i : best;
    }
    return best;
}

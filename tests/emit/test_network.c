/* The integer network: against a recomputation in wide integers, against the float network it came
 * from, and that one against the code that trains it. */
#include "tests/support/policy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LATENT_MOST = 128, WIDTH_MOST = 256 };

static const policy_kit_options variants[] = {
    {1, 2, false, -1000.0F, 30.0F, KIT_RULES},
    {2, 1, true,  -1000.0F, 30.0F, KIT_RULES},
    {3, 2, true,  0.0F,     30.0F, KIT_RULES},
    {4, 1, false, -2.0F,    10.0F, KIT_RULES},
};

enum { VARIANTS = sizeof variants / sizeof variants[0] };

/* ----------------------------------------------------- plain recomputation */

/* Nearest, halves up, for numbers that are not negative. */
static int64_t divide_rounded(int64_t x, int64_t by)
{
    by = by > 0 ? by : 1; /* Never 0, which the analyser cannot know. */
    int64_t quotient = x / by;
    return x % by * 2 >= by ? quotient + 1 : quotient;
}

static int64_t plain_scale(graft_scale scale, int64_t x, int64_t limit)
{
    int64_t size = divide_rounded(llabs(x) * scale.multiplier, INT64_C(1) << scale.shift);
    size = size < limit ? size : limit;
    return x < 0 ? -size : size;
}

/* The sum of one row before scaling; must fit int32, as the engine assumes. */
static int64_t plain_sum(const graft_dense *dense, uint32_t row, const int64_t *x)
{
    int64_t sum = dense->bias[row];
    int64_t worst = llabs(sum);
    for (uint32_t i = 0; i < dense->inputs; i++) {
        int8_t weight = dense->weights[(size_t)row * dense->inputs + i];
        assert_true(weight >= -127);
        sum += weight * x[i];
        worst += INT64_C(127) * GRAFT_ACTIVATION_MOST;
    }
    assert_true(worst <= INT32_MAX);
    return sum;
}

static void plain_layer(const graft_dense *dense, const int64_t *x, int64_t limit, bool relu,
                        int64_t *out)
{
    for (uint32_t i = 0; i < dense->outputs; i++) {
        int64_t y = plain_scale(dense->scales[i], plain_sum(dense, i, x), limit);
        out[i] = relu && y < 0 ? 0 : y;
    }
}

/* The integers behind the floats of a state. */
static int64_t *features_of(graft_arena *arena, const float *x, size_t count)
{
    int64_t *out = GRAFT_NEW(arena, int64_t, count);
    for (size_t i = 0; i < count; i++) {
        float scaled = x[i] * GRAFT_FEATURE_SCALE;
        assert_true(scaled == truncf(scaled) && fabsf(scaled) <= 127.0F);
        out[i] = (int64_t)scaled * 32;
    }
    return out;
}

/* Means of messages over the edges at each node, from edge lists instead of the graph. */
static int64_t *plain_means(graft_arena *arena, const graft_dense *message,
                            const graft_graph_arrays *state, const int64_t *h, bool incoming)
{
    uint32_t hidden = message->outputs;
    const uint32_t *near = incoming ? state->receivers : state->senders;
    const uint32_t *far = incoming ? state->senders : state->receivers;
    int64_t *edges =
        features_of(arena, state->edges, (size_t)state->edge_count * GRAFT_EDGE_FEATURE_COUNT);
    int64_t *mean = GRAFT_NEW(arena, int64_t, (size_t)state->node_count * hidden);
    int64_t *count = GRAFT_NEW(arena, int64_t, state->node_count);
    for (uint32_t e = 0; e < state->edge_count; e++) {
        int64_t x[WIDTH_MOST] = {0};
        int64_t y[WIDTH_MOST] = {0};
        memcpy(x, h + (size_t)far[e] * hidden, hidden * sizeof *x);
        memcpy(x + hidden, edges + (size_t)e * GRAFT_EDGE_FEATURE_COUNT,
               GRAFT_EDGE_FEATURE_COUNT * sizeof *x);
        plain_layer(message, x, GRAFT_ACTIVATION_MOST * 16, true, y);
        count[near[e]]++;
        for (uint32_t j = 0; j < hidden; j++) {
            mean[(size_t)near[e] * hidden + j] += y[j];
        }
    }
    for (size_t i = 0; i < (size_t)state->node_count * hidden; i++) {
        int64_t n = count[i / hidden];
        mean[i] = n > 0 ? divide_rounded(divide_rounded(mean[i], n), 16) : 0;
    }
    return mean;
}

static void plain_round(graft_arena *arena, const graft_policy_round *round,
                        const graft_graph_arrays *state, int64_t *h)
{
    uint32_t hidden = round->node.outputs;
    const int64_t *in = plain_means(arena, &round->incoming, state, h, true);
    const int64_t *out = plain_means(arena, &round->outgoing, state, h, false);
    for (uint32_t n = 0; n < state->node_count; n++) {
        int64_t x[WIDTH_MOST] = {0};
        size_t row = (size_t)n * hidden;
        memcpy(x, h + row, hidden * sizeof *x);
        memcpy(x + hidden, in + row, hidden * sizeof *x);
        memcpy(x + (size_t)2 * hidden, out + row, hidden * sizeof *x);
        for (uint32_t j = 0; j < hidden; j++) {
            int64_t y = plain_scale(round->node.scales[j], plain_sum(&round->node, j, x), 1 << 24) +
                        plain_scale(round->keep, x[j], 1 << 24);
            y = y > 0 ? divide_rounded(y, 16) : 0;
            h[row + j] = y < GRAFT_ACTIVATION_MOST ? y : GRAFT_ACTIVATION_MOST;
        }
    }
}

/* Straight lines between the points of tanh that lie 1/32 apart. */
static int64_t plain_tanh(int64_t x)
{
    int64_t index = llabs(x) / 2048;
    int64_t low = (int64_t)floor(32768.0 * tanh((double)index / 32.0) + 0.5);
    int64_t high = (int64_t)floor(32768.0 * tanh((double)(index + 1) / 32.0) + 0.5);
    int64_t value = low * 2048 + (high - low) * (llabs(x) % 2048);
    return x < 0 ? -value : value;
}

static void plain_latent(graft_arena *arena, const graft_policy *policy,
                         const graft_graph_arrays *state, int64_t *tanhs, int64_t *latent)
{
    uint32_t hidden = policy->hidden;
    int64_t *pooled = GRAFT_NEW(arena, int64_t, policy->global.inputs);
    int64_t *nodes =
        features_of(arena, state->nodes, (size_t)state->node_count * GRAFT_FEATURE_COUNT);
    int64_t *globals = features_of(arena, state->globals, policy->global_features);
    int64_t *h = GRAFT_NEW(arena, int64_t, (size_t)state->node_count * hidden);
    for (uint32_t n = 0; n < state->node_count; n++) {
        plain_layer(&policy->input, nodes + (size_t)n * GRAFT_FEATURE_COUNT, GRAFT_ACTIVATION_MOST,
                    true, h + (size_t)n * hidden);
    }
    for (uint32_t r = 0; r < policy->round_count; r++) {
        plain_round(arena, &policy->rounds[r], state, h);
    }
    for (uint32_t j = 0; j < hidden; j++) {
        int64_t sum = 0;
        for (uint32_t n = 0; n < state->node_count; n++) {
            int64_t value = h[(size_t)n * hidden + j];
            sum += value;
            pooled[hidden + j] = value * 8 > pooled[hidden + j] ? value * 8 : pooled[hidden + j];
        }
        pooled[j] = divide_rounded(sum * 8, state->node_count);
    }
    for (uint32_t i = 0; i < policy->global_features; i++) {
        pooled[2 * hidden + i] = globals[i] * 8;
    }
    for (uint32_t i = 0; i < policy->latent; i++) {
        int64_t sum = plain_sum(&policy->global, i, pooled);
        tanhs[i] = plain_tanh(plain_scale(policy->global.scales[i], sum, (8 << 16) - 1));
        latent[i] = plain_scale(policy->latent_scales[i], tanhs[i] - policy->latent_centres[i],
                                GRAFT_ACTIVATION_MOST);
    }
}

static void plain_heads(const graft_policy *policy, const uint16_t *counts, const int64_t *latent,
                        uint32_t rule, int64_t *xfers, int64_t *locations)
{
    int64_t x[WIDTH_MOST] = {0};
    int64_t trunk[WIDTH_MOST] = {0};
    memcpy(x, latent, policy->latent * sizeof *x);
    for (uint32_t r = 0; r < policy->count_features; r++) {
        uint32_t count = counts[r] < 255 ? counts[r] : 255;
        x[policy->latent + r] =
            (int64_t)floor(GRAFT_ACTIVATION_MOST * log(1.0 + count) / log(256.0) + 0.5);
    }
    for (uint32_t k = 0; k < policy->trunk_count; k++) {
        plain_layer(&policy->trunk[k], x, GRAFT_ACTIVATION_MOST, true, trunk);
        memcpy(x, trunk, policy->trunk_width * sizeof *x);
    }
    plain_layer(&policy->xfer, x, INT32_MAX, false, xfers);
    for (uint32_t i = 0; rule < policy->rule_count && i < policy->embedding_width; i++) {
        x[policy->trunk_width + i] =
            policy->embeddings[(size_t)rule * policy->embedding_width + i] * 32;
    }
    plain_layer(&policy->location_trunk, x, GRAFT_ACTIVATION_MOST, true, trunk);
    plain_layer(&policy->location, trunk, INT32_MAX, false, locations);
}

/* ------------------------------------------------------------------- cases */

static graft_scores score(graft_env *env, const policy_kit *kit, const graft_graph *graph)
{
    graft_scores scores;
    graft_optimize_options options = graft_optimize_options_default();
    options.weight_bytes_limit = UINT64_MAX;
    size_t bytes = graft_optimize_workspace_bytes(&kit->policy, &graph->limits, 0);
    assert_int_equal(graft_policy_scores(graph, &kit->policy, &options,
                                         graft_arena_alloc(env->scratch, bytes), bytes, &scores),
                     GRAFT_OK);
    return scores;
}

static void compare_plain(graft_env *env, const policy_kit *kit, const graft_policy_state *state)
{
    int64_t tanhs[LATENT_MOST] = {0};
    int64_t latent[LATENT_MOST] = {0};
    int64_t xfers[WIDTH_MOST] = {0};
    int64_t locations[WIDTH_MOST] = {0};
    const graft_policy *policy = &kit->policy;
    graft_scores scores = score(env, kit, state->graph);
    plain_latent(env->scratch, policy, &state->arrays, tanhs, latent);
    plain_heads(policy, state->counts, latent, scores.rule, xfers, locations);
    for (uint32_t i = 0; i < policy->latent; i++) {
        assert_int_equal(scores.tanhs[i], tanhs[i]);
        assert_int_equal(scores.latent[i], latent[i]);
    }
    uint32_t best = policy->rule_count;
    for (uint32_t r = 0; r <= policy->rule_count; r++) {
        assert_int_equal(scores.xfer_logits[r], xfers[r]);
        bool open = r == policy->rule_count || state->counts[r] > 0;
        best = open && (xfers[r] > xfers[best] || (r < best && xfers[r] == xfers[best])) ? r : best;
    }
    assert_int_equal(scores.rule, best);
    for (uint32_t i = 0; scores.location_logits != NULL && i < policy->location_limit; i++) {
        assert_int_equal(scores.location_logits[i], locations[i]);
    }
    for (uint32_t i = 0; best < policy->rule_count && i < state->counts[best]; i++) {
        assert_true(i < scores.location ? locations[i] < locations[scores.location]
                                        : locations[i] <= locations[scores.location]);
    }
}

static void test_integers_equal_recomputation(void **state)
{
    graft_env *env = *state;
    for (uint32_t v = 0; v < VARIANTS; v++) {
        const policy_kit *kit = policy_kit_open(env, &variants[v]);
        for (uint32_t s = 0; s < kit->others.count; s++) {
            graft_mark mark = graft_arena_mark(env->scratch);
            compare_plain(env, kit, &kit->others.items[s]);
            graft_arena_release(env->scratch, mark);
        }
    }
}

/* Activations beyond their range are clipped, everywhere. */
static void test_clipping(void **state)
{
    graft_env *env = *state;
    policy_kit *kit = policy_kit_open(env, &variants[1]);
    graft_ranges ranges = {0};
    for (uint32_t s = 0; s < kit->states.count; s++) {
        graft_ranges_add(&ranges, &kit->network, env->scratch, &kit->states.items[s].arrays,
                         kit->states.items[s].counts);
    }
    ranges.input /= 8.0F;
    for (uint32_t r = 0; r < kit->network.round_count; r++) {
        ranges.h[r] /= 8.0F;
        ranges.incoming[r] /= 8.0F;
        ranges.outgoing[r] /= 8.0F;
    }
    ranges.latent /= 8.0F;
    ranges.trunk[0] /= 8.0F;
    ranges.place /= 8.0F;
    assert_int_equal(graft_quantise(env, env->life, &kit->network, &ranges, &kit->policy),
                     GRAFT_OK);
    uint32_t clipped = 0;
    for (uint32_t s = 0; s < kit->others.count; s++) {
        graft_mark mark = graft_arena_mark(env->scratch);
        graft_scores scores = score(env, kit, kit->others.items[s].graph);
        for (uint32_t i = 0; i < kit->policy.latent; i++) {
            clipped += abs(scores.latent[i]) == GRAFT_ACTIVATION_MOST;
        }
        compare_plain(env, kit, &kit->others.items[s]);
        graft_arena_release(env->scratch, mark);
    }
    assert_true(clipped > 0);
}

/* Of equal logits the lowest index wins, and NO-OP never. */
static void test_ties(void **state)
{
    graft_env *env = *state;
    policy_kit *kit = policy_kit_open(env, &variants[0]);
    const graft_controller *controller = &kit->controller;
    const graft_layer heads[2] = {controller->xfer_head, controller->location_head};
    for (uint32_t i = 0; i < 2; i++) {
        const graft_parameters *set = &controller->parameters;
        const graft_parameter *weight = &set->items[heads[i].weight];
        memset(graft_parameters_value(set, heads[i].weight), 0,
               (size_t)weight->rows * weight->cols * sizeof(float));
        memset(graft_parameters_value(set, heads[i].bias), 0, weight->cols * sizeof(float));
    }
    assert_int_equal(
        graft_policy_calibrate(env, env->life, &kit->network, &kit->states, &kit->policy),
        GRAFT_OK);
    for (uint32_t s = 0; s < kit->states.count; s++) {
        graft_scores scores = score(env, kit, kit->states.items[s].graph);
        uint32_t first = 0;
        while (first < KIT_RULES && scores.counts[first] == 0) {
            first++;
        }
        assert_int_equal(scores.rule, first);
        assert_int_equal(scores.location, 0);
    }
}

/* Integer weights are the nearest ones in their row's unit. */
static void test_nearest_weights(void **state)
{
    graft_env *env = *state;
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    const graft_float_layer *layer = &kit->network.location;
    for (uint32_t o = 0; o < layer->outputs; o++) {
        float most = 0.0F;
        for (uint32_t i = 0; i < layer->inputs; i++) {
            most = fmaxf(most, fabsf(layer->weight[i * layer->outputs + o]));
        }
        for (uint32_t i = 0; i < layer->inputs; i++) {
            float want = layer->weight[i * layer->outputs + o] / most * 127.0F;
            int8_t have = kit->policy.location.weights[o * layer->inputs + i];
            assert_true(fabsf(want - (float)have) < 0.501F);
        }
    }
}

static void test_reference_equals_training(void **state)
{
    graft_env *env = *state;
    for (uint32_t v = 0; v < VARIANTS; v++) {
        const policy_kit *kit = policy_kit_open(env, &variants[v]);
        for (uint32_t s = 0; s < kit->others.count; s++) {
            const graft_policy_state *item = &kit->others.items[s];
            float z[LATENT_MOST];
            uint16_t xfer = 0;
            uint16_t location = 0;
            float log_p = 0;
            float value = 0;
            graft_encoder_run(&kit->encoder, env->scratch, &item->arrays, 1, z);
            graft_standardiser_apply(&kit->standardiser, z, 1);
            const graft_controller_states rows = {1, z, item->counts};
            const graft_controller_choice choice = {&xfer, &location, &log_p, &value};
            graft_controller_act(&kit->controller, env->scratch, &rows, NULL, &choice);
            graft_float_scores scores =
                graft_reference_run(&kit->network, env->scratch, &item->arrays, item->counts, NULL);
            for (uint32_t i = 0; i < kit->network.latent; i++) {
                assert_true(fabsf(z[i] - scores.latent[i]) < 2e-3F); /* In deviations. */
            }
            assert_int_equal(graft_reference_rule(&kit->network, scores.xfers, item->counts), xfer);
            if (xfer < KIT_RULES) {
                const float *where = graft_reference_locations(&kit->network, env->scratch,
                                                               scores.trunk, xfer, NULL);
                assert_int_equal(graft_reference_location(where, item->counts[xfer]), location);
            }
        }
    }
}

/* Untrained networks have many near ties, so this is a lower bound for trained ones. */
static void test_integers_agree_with_floats(void **state)
{
    graft_env *env = *state;
    uint32_t states = 0;
    uint32_t rules = 0;
    uint32_t locations = 0;
    for (uint32_t v = 0; v < VARIANTS; v++) {
        const policy_kit *kit = policy_kit_open(env, &variants[v]);
        graft_agreement agreement;
        assert_int_equal(
            graft_agreement_measure(env, &kit->network, &kit->policy, &kit->others, &agreement),
            GRAFT_OK);
        print_message("# %u unseen states: same rule %u, same location %u, latent error %.3f "
                      "deviations, largest margin lost %.3f\n",
                      agreement.state_count, agreement.rule_count, agreement.location_count,
                      agreement.latent_error, agreement.margin_lost);
        states += agreement.state_count;
        rules += agreement.rule_count;
        locations += agreement.location_count;
        assert_true(agreement.latent_error < 0.25);
    }
    assert_true(rules * 100 >= states * 95);
    assert_true(locations * 100 >= states * 90);
}

static void test_scales(void **state)
{
    (void)state;
    graft_scale scale;
    for (int k = 0; k < 2300; k++) {
        double factor = 1e-13 * pow(1.018, k); /* To 65000. */
        assert_true(graft_scale_make(factor, &scale));
        double made = ldexp((double)scale.multiplier, -(int)scale.shift);
        assert_true(fabs(made - factor) <= factor / 65536.0);
    }
    assert_true(graft_scale_make(0.0, &scale) && scale.multiplier == 0);
    assert_true(graft_scale_make(1.0, &scale));
    assert_int_equal(plain_scale(scale, 12345, 1 << 30), 12345);
    assert_true(graft_scale_make(1e-30, &scale) && scale.multiplier == 0);
    assert_false(graft_scale_make(65536.0, &scale));
    assert_false(graft_scale_make(65535.9, &scale));
    assert_false(graft_scale_make(-1.0, &scale));
    assert_false(graft_scale_make(NAN, &scale));
    assert_false(graft_scale_make(INFINITY, &scale));
}

/* ---------------------------------------------------------------- features */

static uint32_t hash_row(uint32_t hash, const char *kind, const char *name, int number)
{
    char text[128];
    (void)snprintf(text, sizeof text, "%s %s %d\n", kind, name, number);
    for (const char *c = text; *c != '\0'; c++) {
        hash = (hash ^ (uint8_t)*c) * 16777619u;
    }
    return hash;
}

static void test_feature_hash(void **state)
{
    (void)state;
    uint32_t hash = 2166136261u;
#define FEATURE(name, width)      hash = hash_row(hash, "feature", #name, width);
#define EDGE_FEATURE(name, width) hash = hash_row(hash, "edge", #name, width);
#include "graft/features.def"
#define OP(id, name, inputs, outputs, attributes, flags, onnx)                                     \
    hash = hash_row(hash, "op", #name, id);
#include "graft/operators.def"
    if (hash != GRAFT_FEATURE_HASH) {
        fail_msg("features or operators changed: GRAFT_FEATURE_HASH in policy.h must be 0x%08xu",
                 hash);
    }
}

static void test_features(void **state)
{
    graft_env *env = *state;
    int8_t row[GRAFT_FEATURE_COUNT];
    graft_graph *graph = policy_kit_graph(env->life);
    graft_order order = build_order(env->life, graph);
    graft_node_features(graph, &order, order.order[0], row); /* conv (64,1,10,4), stride 2 */
    assert_int_equal(row[GRAFT_FEATURE_operator + GRAFT_OP_conv], GRAFT_FEATURE_SCALE);
    assert_int_equal(row[GRAFT_FEATURE_operand_input], GRAFT_FEATURE_SCALE);
    assert_int_equal(row[GRAFT_FEATURE_operand_const + 1], GRAFT_FEATURE_SCALE);
    assert_int_equal(row[GRAFT_FEATURE_kernel], 52);     /* 16 log2 10, fraction 1/4 */
    assert_int_equal(row[GRAFT_FEATURE_kernel + 1], 32); /* 16 log2 4 */
    assert_int_equal(row[GRAFT_FEATURE_stride], 16);
    assert_int_equal(row[GRAFT_FEATURE_padding], 52);     /* 16 log2 (1 + 4 + 5) */
    assert_int_equal(row[GRAFT_FEATURE_padding + 1], 24); /* 16 log2 (1 + 1 + 1) */
    assert_int_equal(row[GRAFT_FEATURE_rank], 64);
    assert_int_equal(row[GRAFT_FEATURE_dims + 1], 48); /* 8 log2 64 */
    assert_int_equal(row[GRAFT_FEATURE_uses], 0);
    assert_int_equal(row[GRAFT_FEATURE_depthwise], 0);
    graft_node_features(graph, &order, order.order[3], row); /* the first depthwise one */
    assert_int_equal(row[GRAFT_FEATURE_depthwise], GRAFT_FEATURE_SCALE);
    assert_int_equal(row[GRAFT_FEATURE_groups], 48);
    graft_node_features(graph, &order, order.order[order.count - 1], row);
    assert_int_equal(row[GRAFT_FEATURE_is_output], GRAFT_FEATURE_SCALE);
    assert_int_equal(row[GRAFT_FEATURE_axes + 1], GRAFT_FEATURE_SCALE);
    for (uint32_t i = 0; i < order.count; i++) {
        graft_node_features(graph, &order, order.order[i], row);
        for (uint32_t f = 0; f < GRAFT_FEATURE_COUNT; f++) {
            assert_true(row[f] >= 0);
        }
    }
}

static void test_opaque_features(void **state)
{
    graft_env *env = *state;
    int8_t row[GRAFT_FEATURE_COUNT];
    int8_t edge[GRAFT_EDGE_FEATURE_COUNT];
    graft_graph *graph = build_graph(env->life);
    graft_shape unknown = {.rank = GRAFT_RANK_UNKNOWN};
    graft_index x = build_input(graph, build_shape(2, 3, 5, 0, 0), 0);
    const graft_index inputs[6] = {x, GRAFT_NONE, x, x, GRAFT_NONE, x};
    const graft_shape shapes[2] = {unknown, build_shape(1, 7, 0, 0, 0)};
    graft_index first = GRAFT_NONE;
    graft_index second = GRAFT_NONE;
    assert_int_equal(graft_graph_add_opaque(graph, 0, inputs, 6, shapes, 2, &first), GRAFT_OK);
    graft_index reads[5] = {GRAFT_NONE, x, GRAFT_NONE, GRAFT_NONE, GRAFT_NONE};
    reads[4] = graft_node_output(graph, first, 1);
    assert_int_equal(graft_graph_add_opaque(graph, 1, reads, 5, shapes, 0, &second), GRAFT_OK);
    graft_order order = build_order(env->life, graph);
    graft_node_features(graph, &order, first, row);
    assert_int_equal(row[GRAFT_FEATURE_operator], GRAFT_FEATURE_SCALE);
    assert_int_equal(row[GRAFT_FEATURE_rank], 0);
    assert_int_equal(row[GRAFT_FEATURE_elements + 1], 11); /* 4 log2 7 */
    assert_false(graft_edge_exists(graph, second, 0));
    assert_false(graft_edge_exists(graph, second, 1));
    assert_true(graft_edge_exists(graph, second, 4));
    graft_edge_features(graph, second, 4, edge);
    assert_int_equal(edge[GRAFT_EDGE_FEATURE_operand + 3], GRAFT_FEATURE_SCALE);
    assert_int_equal(edge[GRAFT_EDGE_FEATURE_slot], GRAFT_FEATURE_SCALE);
    graft_node_features(graph, &order, second, row);
}

/* ------------------------------------------------------------------ faults */

static void test_quantise_faults(void **state)
{
    graft_env *env = *state;
    policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    const graft_states none = {.count = 0};
    check_failed(env, graft_policy_calibrate(env, env->life, &kit->network, &none, &kit->policy),
                 GRAFT_BAD_INPUT, "without states");
    const graft_parameters *set = &kit->controller.parameters;
    float *weight = graft_parameters_value(set, kit->controller.location_head.weight);
    weight[3] = NAN;
    check_failed(env,
                 graft_policy_calibrate(env, env->life, &kit->network, &kit->states, &kit->policy),
                 GRAFT_BAD_INPUT, "location head has a weight that is not finite");
    weight[3] = 0.0F;
    graft_states wrong = kit->states;
    uint16_t counts[KIT_RULES];
    memcpy(counts, wrong.items[0].counts, sizeof counts);
    counts[0]++;
    wrong.items[0].counts = counts;
    check_failed(env, graft_policy_calibrate(env, env->life, &kit->network, &wrong, &kit->policy),
                 GRAFT_INTERNAL, "rule 0 has");
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        CHECK_TEST(test_integers_equal_recomputation),
        CHECK_TEST(test_clipping),
        CHECK_TEST(test_ties),
        CHECK_TEST(test_nearest_weights),
        CHECK_TEST(test_reference_equals_training),
        CHECK_TEST(test_integers_agree_with_floats),
        CHECK_TEST(test_scales),
        CHECK_TEST(test_feature_hash),
        CHECK_TEST(test_features),
        CHECK_TEST(test_opaque_features),
        CHECK_TEST(test_quantise_faults),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}

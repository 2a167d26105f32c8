/* The integer network: against a recomputation in wide integers that sees what training sees, and
 * against the float network it came from. */
#include "emit/header/quantise.h"
#include "tests/support/policy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LATENT_MOST = 128, WIDTH_MOST = 256 };

static const policy_kit_options variants[] = {
    {1, 2, KIT_FREE   },
    {2, 1, KIT_FREE   },
    {3, 0, KIT_GOES_ON},
    {4, 3, KIT_FREE   },
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

/* Bytes as the network reads them. */
static int64_t *widen(graft_arena *arena, const int8_t *x, size_t count)
{
    int64_t *out = GRAFT_NEW(arena, int64_t, count);
    for (size_t i = 0; i < count; i++) {
        out[i] = (int64_t)x[i] * 32;
    }
    return out;
}

/* The integer behind a float of training's. */
static int64_t number_of(float x, double unit)
{
    const double scaled = (double)x * unit;
    assert_true(scaled == floor(scaled));
    return (int64_t)scaled;
}

/* Means of messages over the edges at each node, from edge lists instead of the graph. */
static int64_t *plain_means(graft_arena *arena, const graft_dense *message,
                            const graft_sketch *state, const int64_t *h, bool incoming)
{
    uint32_t hidden = message->outputs;
    const uint32_t *near = incoming ? state->receivers : state->senders;
    const uint32_t *far = incoming ? state->senders : state->receivers;
    int64_t *edges =
        widen(arena, state->edges, (size_t)state->edge_count * GRAFT_EDGE_FEATURE_COUNT);
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
                        const graft_sketch *state, int64_t *h)
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

/* h of each node after the last round. */
static int64_t *plain_nodes(graft_arena *arena, const graft_policy *policy,
                            const graft_sketch *state)
{
    const uint32_t hidden = policy->hidden;
    int64_t *nodes =
        widen(arena, state->nodes, (size_t)state->node_count * GRAFT_SCENE_NODE_FEATURES);
    int64_t *h = GRAFT_NEW(arena, int64_t, (size_t)state->node_count * hidden);
    for (uint32_t n = 0; n < state->node_count; n++) {
        plain_layer(&policy->input, nodes + (size_t)n * GRAFT_SCENE_NODE_FEATURES,
                    GRAFT_ACTIVATION_MOST, true, h + (size_t)n * hidden);
    }
    for (uint32_t r = 0; r < policy->round_count; r++) {
        plain_round(arena, &policy->rounds[r], state, h);
    }
    return h;
}

static void plain_latent(graft_arena *arena, const graft_policy *policy, const graft_scene *scene,
                         const int64_t *h, int64_t *latent)
{
    const uint32_t hidden = policy->hidden;
    const uint32_t nodes = scene->graph.node_count;
    int64_t *pooled = GRAFT_NEW(arena, int64_t, policy->global.inputs);
    for (uint32_t j = 0; j < hidden; j++) {
        int64_t sum = 0;
        for (uint32_t n = 0; n < nodes; n++) {
            int64_t value = h[(size_t)n * hidden + j];
            sum += value;
            pooled[hidden + j] = value * 8 > pooled[hidden + j] ? value * 8 : pooled[hidden + j];
        }
        pooled[j] = divide_rounded(sum * 8, nodes);
    }
    for (uint32_t i = 0; i < GRAFT_SCENE_GLOBALS; i++) {
        pooled[2 * hidden + i] = number_of(scene->globals[i], GRAFT_FEATURE_SCALE) * 256;
    }
    for (uint32_t i = 0; i < policy->latent; i++) {
        int64_t sum = plain_sum(&policy->global, i, pooled);
        int64_t wide = plain_tanh(plain_scale(policy->global.scales[i], sum, (8 << 16) - 1));
        int64_t size = divide_rounded(llabs(wide), 1 << 14);
        size = size < GRAFT_ACTIVATION_MOST ? size : GRAFT_ACTIVATION_MOST;
        latent[i] = wide < 0 ? -size : size;
    }
}

/* Mean and maximum of the nodes that candidate `i` matches, behind the latent. */
static void plain_members(const graft_policy *policy, const graft_scene *scene, const int64_t *h,
                          uint32_t i, int64_t *x)
{
    for (uint32_t j = 0; j < policy->hidden; j++) {
        int64_t sum = 0;
        int64_t most = 0;
        int64_t count = 0;
        for (uint32_t m = 0; m < scene->member_count; m++) {
            if (scene->member_candidates[m] == i) {
                int64_t value = h[(size_t)scene->member_nodes[m] * policy->hidden + j];
                sum += value;
                most = value > most ? value : most;
                count++;
            }
        }
        x[j] = count > 0 ? divide_rounded(sum, count) : 0;
        x[policy->hidden + j] = most;
    }
}

/* The logit of candidate `i`. */
static int64_t plain_logit(const graft_policy *policy, const graft_scene *scene,
                           const int64_t *latent, const int64_t *h, uint32_t i)
{
    int64_t x[WIDTH_MOST] = {0};
    int64_t first[WIDTH_MOST] = {0};
    int64_t second[WIDTH_MOST] = {0};
    int64_t logit = 0;
    const float *facts = &scene->facts[(size_t)i * GRAFT_FACT_COUNT];
    int64_t *seen = x + policy->latent + (size_t)2 * policy->hidden;
    memcpy(x, latent, policy->latent * sizeof *x);
    plain_members(policy, scene, h, i, x + policy->latent);
    for (uint32_t f = 0; f < GRAFT_FACT_SEEN; f++) {
        seen[f] = number_of(facts[f], GRAFT_FACT_ONE);
    }
    for (uint32_t j = 0; j < policy->width; j++) {
        int64_t y = plain_scale(policy->place.scales[j], plain_sum(&policy->place, j, x), 1 << 20);
        y += policy->rule_rows[(size_t)scene->actions[i].xfer * policy->width + j] * 32;
        first[j] = y < 0 ? 0 : y < GRAFT_ACTIVATION_MOST ? y : GRAFT_ACTIVATION_MOST;
    }
    plain_layer(&policy->second, first, GRAFT_ACTIVATION_MOST, true, second);
    plain_layer(&policy->score, second, INT32_MAX, false, &logit);
    logit += (int64_t)policy->prior_slope * seen[GRAFT_FACT_GAIN];
    bool spared = seen[GRAFT_FACT_NOOP] > 0 || seen[GRAFT_FACT_GAINS] > 0;
    return spared ? logit : logit - (int64_t)policy->prior_reserve;
}

/* ------------------------------------------------------------------- cases */

static graft_scores score_without(graft_env *env, const policy_kit *kit, const graft_graph *graph,
                                  const uint8_t *skipped)
{
    graft_scores scores;
    graft_optimize_options options = graft_optimize_options_default();
    options.skipped_rules = skipped;
    options.weight_bytes_limit = UINT64_MAX;
    options.first_cost = kit->observer.first.cost;
    size_t bytes = graft_optimize_workspace_bytes(&kit->policy, &graph->limits, 0);
    CHECK_OK(graft_policy_scores(graph, &kit->policy, &options,
                                 graft_arena_alloc(env->scratch, bytes), bytes, &scores));
    return scores;
}

static graft_scores score(graft_env *env, const policy_kit *kit, const graft_graph *graph)
{
    return score_without(env, kit, graph, NULL);
}

/* The latent, every logit, and the choice: the largest one, NO-OP before what is equal. */
static void compare_plain(graft_env *env, const policy_kit *kit, const policy_kit_state *state)
{
    int64_t latent[LATENT_MOST] = {0};
    const graft_policy *policy = &kit->policy;
    const graft_scene *scene = &state->scene;
    const graft_scores scores = score(env, kit, state->graph);
    const int64_t *h = plain_nodes(env->scratch, policy, &scene->graph);
    plain_latent(env->scratch, policy, scene, h, latent);
    for (uint32_t i = 0; i < policy->latent; i++) {
        assert_int_equal(scores.latent[i], latent[i]);
    }
    bool found = false;
    for (uint32_t i = 0; i < scene->count; i++) {
        const int64_t logit = plain_logit(policy, scene, latent, h, i);
        const graft_action *action = &scene->actions[i];
        assert_true(logit <= scores.logit);
        if (action->xfer == KIT_RULES) {
            assert_true(logit == scores.noop_logit);
            assert_true(logit < scores.logit || scores.rule == KIT_RULES);
        }
        if (action->xfer == scores.rule && action->location == scores.location) {
            assert_true(logit == scores.logit);
            found = true;
        }
    }
    assert_true(found);
}

CHECK_CASE(test_integers_equal_recomputation)
{
    for (uint32_t v = 0; v < VARIANTS; v++) {
        const policy_kit *kit = policy_kit_open(env, &variants[v]);
        for (uint32_t s = 0; s < kit->state_count; s++) {
            GRAFT_SCOPED(env->scratch);
            compare_plain(env, kit, &kit->states[s]);
        }
    }
}

/* What the network's ranges are when only some of what it meets was looked at. */
static graft_ranges find_ranges(graft_env *env, const policy_kit *kit, float part)
{
    graft_ranges ranges = {.first = 0.0F};
    const graft_scorer *scorer = &kit->agent.scorer;
    for (uint32_t s = 0; s < kit->state_count; s++) {
        GRAFT_SCOPED(env->scratch);
        const graft_scene *scene = &kit->states[s].scene;
        const uint32_t *first = NULL;
        const uint32_t *rows = NULL;
        graft_tape tape;
        graft_tape_init(&tape, env->scratch, false);
        graft_tape_bind(&tape, &scorer->encoder.parameters, NULL);
        graft_tape_bind(&tape, &scorer->parameters, NULL);
        const graft_scored scored = graft_scorer_look(scorer, &tape, &scene, 1, &first, &rows);
        graft_ranges_widen(&ranges, scorer, &scored);
    }
    float *numbers = (float *)&ranges;
    for (size_t i = 0; i < sizeof ranges / sizeof *numbers; i++) {
        numbers[i] *= part;
    }
    return ranges;
}

/* Activations beyond their range are clipped, everywhere. */
CHECK_CASE(test_clipping)
{
    policy_kit *kit = policy_kit_open(env, &variants[0]);
    const graft_ranges ranges = find_ranges(env, kit, 0.125F);
    const graft_policy whole = kit->policy;
    float *rows = GRAFT_NEW(env->life, float, graft_policy_rows_bytes(&whole));
    CHECK_OK(graft_quantise(env, env->life, &kit->agent.scorer, &ranges, rows, &kit->policy));
    uint32_t changed = 0;
    for (uint32_t s = 0; s < kit->state_count; s++) {
        GRAFT_SCOPED(env->scratch);
        compare_plain(env, kit, &kit->states[s]);
        changed += score(env, kit, kit->states[s].graph).logit % 2 != 0;
    }
    assert_true(changed > 0);
}

/* A network that adds nothing decides as the tariff does. */
CHECK_CASE(test_prior)
{
    policy_kit *kit = policy_kit_open(env, &variants[0]);
    const int8_t *weights = GRAFT_NEW(env->life, int8_t, kit->policy.width);
    const int32_t bias = 0;
    uint32_t taken = 0;
    kit->policy.score.weights = weights;
    kit->policy.score.bias = &bias;
    for (uint32_t s = 0; s < kit->state_count; s++) {
        GRAFT_SCOPED(env->scratch);
        const graft_scores by_network = score(env, kit, kit->states[s].graph);
        const graft_policy network = kit->policy;
        kit->policy = kit->table;
        const graft_scores by_tariff = score(env, kit, kit->states[s].graph);
        kit->policy = network;
        assert_int_equal(by_network.rule, by_tariff.rule);
        assert_int_equal(by_network.location, by_tariff.location);
        taken += by_tariff.rule < KIT_RULES;
    }
    assert_true(taken > kit->state_count / 2);
}

/* Integer weights are the nearest ones in their row's unit. */
CHECK_CASE(test_nearest_weights)
{
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    const graft_parameters *set = &kit->agent.scorer.parameters;
    const graft_parameter *item = &set->items[kit->agent.scorer.second.weight];
    const float *weight = graft_parameters_value(set, kit->agent.scorer.second.weight);
    for (uint32_t o = 0; o < item->cols; o++) {
        float most = 0.0F;
        for (uint32_t i = 0; i < item->rows; i++) {
            most = fmaxf(most, fabsf(weight[i * item->cols + o]));
        }
        for (uint32_t i = 0; i < item->rows; i++) {
            float want = weight[i * item->cols + o] / most * 127.0F;
            int8_t have = kit->policy.second.weights[o * item->rows + i];
            assert_true(fabsf(want - (float)have) < 0.501F);
        }
    }
}

/* An untrained network has many near ties, so this is a lower bound for trained ones. */
CHECK_CASE(test_integers_agree_with_floats)
{
    graft_agreement agreement = {.decisions = 0};
    for (uint32_t v = 0; v < VARIANTS; v++) {
        policy_kit *kit = policy_kit_open(env, &variants[v]);
        if (variants[v].favourite == KIT_FREE) {
            CHECK_OK(graft_agreement_measure(env, &kit->agent, &kit->observer, &kit->policy,
                                             &agreement));
        }
    }
    print_message("# %u of %u decisions alike, largest margin lost %.3f\n", agreement.same,
                  agreement.decisions, agreement.margin_lost);
    assert_true(agreement.decisions > 30);
    assert_true(agreement.same * 100 >= agreement.decisions * 90);
    assert_true(agreement.margin_lost < 1.0);
}

CHECK_CASE(test_scales)
{
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

CHECK_CASE(test_feature_hash)
{
    uint32_t hash = 2166136261u;
#define FEATURE(name, width)      hash = hash_row(hash, "feature", #name, width);
#define EDGE_FEATURE(name, width) hash = hash_row(hash, "edge", #name, width);
#include "graft/features.def"
#define OP(id, name, inputs, outputs, attributes, flags, onnx)                                     \
    if (GRAFT_FEATURE_operator + (id) <= GRAFT_FEATURE_END_operator) {                             \
        hash = hash_row(hash, "op", #name, id);                                                    \
    }
#include "graft/operators.def"
    if (hash != GRAFT_FEATURE_HASH) {
        fail_msg("features or operators changed: GRAFT_FEATURE_HASH in policy.h must be 0x%08xu",
                 hash);
    }
}

CHECK_CASE(test_features)
{
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
    const int32_t fused[10] = {1, 1, 0, 0, 0, 0, 1, 1, 1, 0};
    const int32_t tall[10] = {1024, 1, 1, 1, 0, 0, 0, 0, 1, 1};
    const graft_index image = build_input(graph, SHAPE(1, 1, 1 << 18, 1), 9);
    const graft_index inputs[4] = {image, build_weight(graph, SHAPE(1, 1, 3, 1), 9),
                                   build_weight(graph, SHAPE(1), 9),
                                   build_input(graph, SHAPE(1, 1, (1 << 18) - 2, 1), 9)};
    graft_index node = GRAFT_NONE;
    CHECK_OK(graft_graph_add_node(graph, GRAFT_OP_conv_bias_add, fused, inputs, 0, &node));
    order = build_order(env->life, graph);
    graft_node_features(graph, &order, node, row);
    assert_int_equal(row[GRAFT_FEATURE_kernel], 24);    /* 16 log2 3 */
    assert_int_equal(row[GRAFT_FEATURE_dims + 2], 127); /* 8 log2 of more than 2^17 */
    CHECK_OK(graft_graph_add_node(graph, GRAFT_OP_max_pool, tall, inputs, 0, &node));
    order = build_order(env->life, graph);
    for (uint32_t i = 0; i < order.count; i++) {
        graft_node_features(graph, &order, order.order[i], row);
        for (uint32_t f = 0; f < GRAFT_FEATURE_COUNT; f++) {
            assert_true(row[f] >= 0);
        }
    }
}

CHECK_CASE(test_opaque_features)
{
    int8_t row[GRAFT_FEATURE_COUNT];
    int8_t edge[GRAFT_EDGE_FEATURE_COUNT];
    graft_graph *graph = build_graph(env->life);
    graft_shape unknown = {.rank = GRAFT_RANK_UNKNOWN};
    graft_index x = build_input(graph, SHAPE(3, 5), 0);
    const graft_index inputs[6] = {x, GRAFT_NONE, x, x, GRAFT_NONE, x};
    const graft_shape shapes[2] = {unknown, SHAPE(7)};
    graft_index first = GRAFT_NONE;
    graft_index second = GRAFT_NONE;
    CHECK_OK(graft_graph_add_opaque(graph, 0, inputs, 6, shapes, 2, &first));
    graft_index reads[5] = {GRAFT_NONE, x, GRAFT_NONE, GRAFT_NONE, GRAFT_NONE};
    reads[4] = graft_node_output(graph, first, 1);
    CHECK_OK(graft_graph_add_opaque(graph, 1, reads, 5, shapes, 0, &second));
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

/* ----------------------------------------------------------------- corners */

/* Each layer of another size, and each size without its layers. */
CHECK_CASE(test_misfits)
{
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    const graft_optimize_options options = graft_optimize_options_default();
    const size_t bytes = 2 * graft_optimize_workspace_bytes(&kit->policy, &kit->graph->limits, 256);
    void *workspace = graft_arena_alloc(env->life, bytes);
    graft_graph *graph = policy_kit_copy(env, kit);
    graft_policy_round rounds[2];
    graft_policy policy = kit->policy;
    graft_dense *const layers[] = {&policy.input,       &policy.global, &policy.place,
                                   &policy.second,      &policy.score,  &rounds[1].incoming,
                                   &rounds[1].outgoing, &rounds[1].node};
    assert_int_equal(policy.round_count, 2);
    memcpy(rounds, kit->policy.rounds, sizeof rounds);
    policy.rounds = rounds;
    for (size_t i = 0; i < 2 * (sizeof layers / sizeof layers[0]); i++) {
        graft_dense *layer = layers[i / 2];
        const graft_dense kept = *layer;
        layer->inputs = (uint16_t)(layer->inputs + (i % 2 == 0));
        layer->outputs = (uint16_t)(layer->outputs + (i % 2 != 0));
        assert_int_equal(graft_optimize(graph, &policy, &options, workspace, bytes, NULL),
                         GRAFT_BAD_INPUT);
        *layer = kept;
    }
    policy.width = 0;
    assert_int_equal(graft_optimize(graph, &policy, &options, workspace, bytes, NULL),
                     GRAFT_BAD_INPUT);
    policy = kit->policy;
    policy.hidden = 0;
    assert_int_equal(graft_optimize(graph, &policy, &options, workspace, bytes, NULL),
                     GRAFT_BAD_INPUT);
    policy.hidden = policy.latent = policy.width = GRAFT_DENSE_MAX_INPUTS;
    policy.input.outputs = policy.hidden;
    policy.global.inputs = 2 * GRAFT_DENSE_MAX_INPUTS + GRAFT_SCENE_GLOBALS;
    policy.global.outputs = policy.latent;
    assert_int_equal(graft_optimize(graph, &policy, &options, workspace, bytes, NULL),
                     GRAFT_BAD_INPUT);
}

/* Of equal logits the one counts that gains most: here all rules are equal to the network. */
CHECK_CASE(test_ties)
{
    policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    const graft_policy table = kit->table;
    int8_t *weights = GRAFT_NEW(env->life, int8_t, kit->policy.width);
    uint32_t taken = 0;
    weights[0] = 127; /* That of the favourites: any rule. */
    kit->policy.score.weights = weights;
    kit->policy.prior_slope = kit->policy.prior_reserve = 0;
    const graft_policy network = kit->policy;
    for (uint32_t i = 0; i < kit->state_count * KIT_RULES; i++) {
        GRAFT_SCOPED(env->scratch);
        const graft_graph *graph = kit->states[i / KIT_RULES].graph;
        const uint8_t skipped = (uint8_t)((1u << i % KIT_RULES) - 1u); /* The first ones. */
        kit->policy = network;
        const graft_scores by_network = score_without(env, kit, graph, &skipped);
        kit->policy = table;
        const graft_scores by_tariff = score_without(env, kit, graph, &skipped);
        assert_true(by_network.rule == KIT_RULES || by_network.logit > by_network.noop_logit);
        if (by_tariff.rule < KIT_RULES) {
            assert_int_equal(by_network.rule, by_tariff.rule);
            assert_int_equal(by_network.location, by_tariff.location);
            taken++;
        }
    }
    assert_true(taken > 0);
    weights[0] = 0; /* Now NO-OP is equal, too. */
    kit->policy = network;
    for (uint32_t s = 0; s < kit->state_count; s++) {
        assert_int_equal(score(env, kit, kit->states[s].graph).rule, KIT_RULES);
    }
}

/* What the kit's network says of a graph. */
static graft_scores look(graft_env *env, const graft_policy *policy, const graft_graph *graph)
{
    graft_scores scores;
    const graft_optimize_options options = {.weight_bytes_limit = UINT64_MAX,
                                            .first_cost = UINT64_MAX};
    const size_t bytes = graft_optimize_workspace_bytes(policy, &graph->limits, 0);
    CHECK_OK(graft_policy_scores(graph, policy, &options, graft_arena_alloc(env->life, bytes),
                                 bytes, &scores));
    return scores;
}

/* A match with a const node, of which the network sees nothing; costs that are far apart; an opaque
 * node. */
CHECK_CASE(test_unseen_members)
{
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    const built b = build_text(env->life, "x = weight 1 2 3 3; w = weight 2 2 1 1; s = input 2;"
                                          "y = conv x w" UNPADDED
                                          "; y = scale_shift y s s; out y; o = opaque s");
    const graft_graph *graph = b.graph;
    graft_form form;
    graft_form_of_node(graph, graph->values[b.at['o']].node, &form);
    const uint32_t key = graft_tariff_key(0, graft_form_hash(&form));
    const uint16_t value = UINT16_MAX;
    const graft_tariff tariff = {.keys = &key,
                                 .values = &value,
                                 .row_count = 1,
                                 .tests = (const uint8_t[GRAFT_TREE_TESTS]){0},
                                 .bounds = (const int16_t[GRAFT_TREE_TESTS]){0},
                                 .leaves = (const int16_t[GRAFT_TREE_LEAVES]){0},
                                 .tree_count = 1};
    graft_policy policy = kit->policy;
    policy.tariff = &tariff;
    const graft_scores scores = look(env, &policy, graph);
    assert_int_equal(scores.counts[KIT_FOLD_SCALE], 1);
}

/* More messages than are summed arrive at one node. */
CHECK_CASE(test_many_messages)
{
    enum { MANY = 40000 };
    const policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    const graft_shape shape = SHAPE(4);
    graft_graph *graph = build_graph_within(env->life, (graft_limits){8, 8, 3 * MANY, 1});
    const graft_index x = build_input(graph, shape, 0);
    const graft_index y = build_node(graph, GRAFT_OP_relu, NULL, x, 0, 0);
    graft_index *inputs = GRAFT_NEW(env->life, graft_index, MANY);
    graft_index node = GRAFT_NONE;
    for (uint32_t i = 0; i < MANY; i++) {
        inputs[i] = y;
    }
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_OK(graft_graph_add_opaque(graph, i, inputs, MANY, &shape, 1, &node));
    }
    const graft_scores scores = look(env, &kit->policy, graph);
    for (uint32_t i = 0; i < kit->policy.latent; i++) {
        assert_in_range(scores.latent[i] + GRAFT_ACTIVATION_MOST, 0, 2 * GRAFT_ACTIVATION_MOST);
    }
}

/* A change of many nodes counts as one of eight. */
CHECK_CASE(test_facts_of_many_nodes)
{
    const graft_estimated now = {.cost = 1000, .flops = 1, .bytes = 1, .nodes = 40};
    graft_change change = {.removed = {.nodes = 20}};
    int16_t facts[GRAFT_FACT_SEEN];
    graft_candidate_facts(&change, &now, facts);
    assert_int_equal(facts[GRAFT_FACT_NODES], -2 * GRAFT_FACT_ONE);
    change.added.nodes = 40;
    graft_candidate_facts(&change, &now, facts);
    assert_int_equal(facts[GRAFT_FACT_NODES], 2 * GRAFT_FACT_ONE);
}

/* ------------------------------------------------------------------ faults */

CHECK_CASE(test_quantise_faults)
{
    policy_kit *kit = policy_kit_open(env, &policy_kit_plain);
    const graft_scorer *scorer = &kit->agent.scorer;
    const graft_ranges ranges = find_ranges(env, kit, 1.0F);
    float *rows = GRAFT_NEW(env->life, float, graft_policy_rows_bytes(&kit->policy));
    graft_parameters_value(&scorer->parameters, scorer->score.weight)[3] = NAN;
    check_failed(env, graft_quantise(env, env->life, scorer, &ranges, rows, &kit->policy),
                 GRAFT_BAD_INPUT, "score of candidates has a weight that is not finite");
    graft_parameters_value(&scorer->parameters, scorer->score.weight)[3] = 1.0F;
    graft_parameters_value(&scorer->parameters, scorer->facts.bias)[1] = INFINITY;
    check_failed(env, graft_quantise(env, env->life, scorer, &ranges, rows, &kit->policy),
                 GRAFT_BAD_INPUT, "first layer of candidates has a weight that is not finite");
}

/* What amounts are of a whole: signed, monotone, and 0 up to what counts as no gain. */
CHECK_CASE(test_parts)
{
    const uint64_t whole = UINT64_C(1) << 40;
    int16_t last = 0;
    assert_int_equal(graft_part_log(0, whole), 0);
    assert_int_equal(graft_part_log(1, 0), 0);
    assert_int_equal(graft_part_log(INT64_MAX, 1), GRAFT_ACTIVATION_MOST);
    assert_int_equal(graft_part_log(INT64_MIN, 1), -GRAFT_ACTIVATION_MOST);
    assert_int_equal(graft_part_log((int64_t)(whole >> GRAFT_GAIN_SHIFT), whole), 0);
    assert_int_equal(graft_part_log((int64_t)whole, whole), 64 * GRAFT_GAIN_SHIFT);
    assert_int_equal(graft_part_log(-(int64_t)whole / 2, whole), -64 * (GRAFT_GAIN_SHIFT - 1));
    for (int64_t amount = 1; amount < (int64_t)whole; amount += 1 + amount / 50) {
        const int16_t part = graft_part_log(amount, whole);
        assert_true(part >= last);
        assert_int_equal(graft_part_log(-amount, whole), -part);
        last = part;
    }
}

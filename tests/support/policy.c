/* policy.c - see policy.h. */
#include "tests/support/policy.h"

#include "train/tariff.h"

#include <stdlib.h>
#include <string.h>

enum {
    CHANNELS = 64,
    BLOCKS = 4,
    CLASSES = 12,
    EPISODES = 4,
    KIT_STEPS = 30,
    KIT_LOCATIONS = 40,
    KIT_STATES = 64
};

const char *const policy_kit_names[KIT_RULES] = {"fold-scale",   "fuse-relu", "drop-identity",
                                                 "merge-matmul", "swap-add",  "double-relu",
                                                 "single-relu"};
const policy_kit_options policy_kit_plain = {1, 2, false, -1000.0F, 30.0F, KIT_RULES};

/* ------------------------------------------------------------------- graph */

/* conv, scale_shift, relu; `source` numbers the weights and moves on. */
static graft_index build_block(graft_graph *graph, graft_index x, graft_shape filter,
                               const int32_t *attrs, graft_index *source)
{
    graft_index w = build_weight(graph, filter, (*source)++);
    graft_index s = build_weight(graph, build_shape(1, filter.dims[0], 0, 0, 0), (*source)++);
    graft_index t = build_weight(graph, build_shape(1, filter.dims[0], 0, 0, 0), (*source)++);
    x = build_node(graph, GRAFT_OP_conv, attrs, x, w, 0);
    x = build_node(graph, GRAFT_OP_scale_shift, NULL, x, s, t);
    return build_node(graph, GRAFT_OP_relu, NULL, x, 0, 0);
}

graft_graph *policy_kit_graph(graft_arena *arena)
{
    static const int32_t first[9] = {2, 2, 4, 1, 5, 1, 1, 1, 1};
    static const int32_t depthwise[9] = {1, 1, 1, 1, 1, 1, 1, 1, CHANNELS};
    static const int32_t pointwise[9] = {1, 1, 0, 0, 0, 0, 1, 1, 1};
    graft_index source = 0;
    graft_graph *graph = build_graph_within(arena, (graft_limits){160, 400, 800, 4});
    graft_index x = build_input(graph, build_shape(4, 1, 1, 49, 10), 0);
    x = build_block(graph, x, build_shape(4, CHANNELS, 1, 10, 4), first, &source);
    for (uint32_t b = 0; b < BLOCKS; b++) {
        graft_index y =
            build_block(graph, x, build_shape(4, CHANNELS, 1, 3, 3), depthwise, &source);
        y = build_block(graph, y, build_shape(4, CHANNELS, CHANNELS, 1, 1), pointwise, &source);
        y = build_node(graph, GRAFT_OP_identity, NULL, y, 0, 0);
        x = b % 2 == 1 ? build_node(graph, GRAFT_OP_add, NULL, x, y, 0) : y;
    }
    graft_index square = build_node(graph, GRAFT_OP_mul, NULL, x, x, 0); /* Reads it twice. */
    x = build_node(graph, GRAFT_OP_add, NULL, square, x, 0);
    x = build_node(graph, GRAFT_OP_global_avg_pool, NULL, x, 0, 0);
    x = build_node(graph, GRAFT_OP_reshape, (const int32_t[]){1, CHANNELS, 0, 0, 0, 0}, x, 0, 0);
    for (uint32_t k = 0; k < 2; k++) {
        graft_index w = build_weight(graph, build_shape(2, CHANNELS, CLASSES, 0, 0), source++);
        graft_index y = build_node(graph, GRAFT_OP_matmul, NULL, x, w, 0);
        y = build_node(graph, GRAFT_OP_softmax, (const int32_t[]){1}, y, 0, 0);
        assert_int_equal(graft_graph_add_output(graph, y), GRAFT_OK);
    }
    return graph;
}

graft_graph *policy_kit_copy(graft_env *env, const policy_kit *kit)
{
    graft_graph *copy = build_graph_within(env->life, kit->graph->limits);
    assert_int_equal(graft_graph_copy(copy, kit->graph), GRAFT_OK);
    return copy;
}

/* ------------------------------------------------------------------- rules */

/* outer(inner(...)) = the same or a shorter chain of relu: `source` and `target` nodes. */
static graft_rule build_relu_chain(uint32_t source, uint32_t target)
{
    graft_rule rule = {.var_count = 1, .output_count = 1, .condition = 255};
    for (uint32_t n = 0; n < source; n++) {
        build_pattern_node(&rule.source, GRAFT_OP_relu, n + 1 < source ? NODE(n + 1, 0) : VAR(0), 0,
                           0, -1);
    }
    for (uint32_t n = 0; n < target; n++) {
        build_pattern_node(&rule.target, GRAFT_OP_relu, n > 0 ? NODE(n - 1, 0) : VAR(0), 0, 0, -1);
    }
    rule.source.outputs[0] = NODE(0, 0);
    rule.target.outputs[0] = NODE(target - 1, 0);
    return rule;
}

static graft_rule build_swap_add(void)
{
    graft_rule rule = {.var_count = 2, .output_count = 1, .condition = 255};
    build_pattern_node(&rule.source, GRAFT_OP_add, VAR(0), VAR(1), 0, -1);
    build_pattern_node(&rule.target, GRAFT_OP_add, VAR(1), VAR(0), 0, -1);
    rule.source.outputs[0] = NODE(0, 0);
    rule.target.outputs[0] = NODE(0, 0);
    return rule;
}

static void build_rules(policy_kit *kit)
{
    kit->rules[KIT_FOLD_SCALE] = build_rule_fold_scale();
    kit->rules[KIT_FUSE_RELU] = build_rule_fuse_relu();
    kit->rules[KIT_DROP_IDENTITY] = build_rule_drop_identity();
    kit->rules[KIT_MERGE_MATMUL] = build_rule_merge_matmul();
    kit->rules[KIT_SWAP_ADD] = build_swap_add();
    kit->rules[KIT_DOUBLE_RELU] = build_relu_chain(1, 2);
    kit->rules[KIT_SINGLE_RELU] = build_relu_chain(2, 1);
}

/* ---------------------------------------------------------------- networks */

static graft_status price_nodes(graft_env *env, void *context, const graft_graph *graph,
                                const graft_order *order, double *ns)
{
    (void)env;
    (void)context;
    (void)order;
    *ns = (double)graft_graph_active_count(graph);
    return GRAFT_OK;
}

static void open_environment(graft_env *env, policy_kit *kit)
{
    const graft_environment_options options = {.price = {.cost_ns = price_nodes},
                                               .location_limit = KIT_LOCATIONS,
                                               .step_limit = KIT_STEPS,
                                               .apply.weight_bytes_limit = UINT64_MAX};
    graft_xfers_index(env->life, kit->rules, policy_kit_names, KIT_RULES, &kit->xfers);
    assert_int_equal(graft_environment_open(env, env->life, kit->graph, &kit->xfers, &options,
                                            &kit->environment),
                     GRAFT_OK);
}

static void scale_head(policy_kit *kit, uint32_t weight, float gain)
{
    const graft_parameters *set = &kit->controller.parameters;
    float *value = graft_parameters_value(set, weight);
    for (uint32_t i = 0; i < set->items[weight].rows * set->items[weight].cols; i++) {
        value[i] *= gain;
    }
}

static void open_networks(graft_env *env, policy_kit *kit, const policy_kit_options *options)
{
    const graft_encoder_size encoder = graft_encoder_defaults((graft_encoder_size){
        .node_features = GRAFT_FEATURE_COUNT,
        .edge_features = GRAFT_EDGE_FEATURE_COUNT,
        .global_features = KIT_RULES,
    });
    const graft_controller_size controller = graft_controller_defaults((graft_controller_size){
        .latent = encoder.latent,
        .xfers = KIT_RULES,
        .locations = KIT_LOCATIONS,
        .layers = options->trunk_layers,
        .counts_input = options->counts_input,
    });
    graft_encoder_init(&kit->encoder, env->life, &encoder, options->seed);
    graft_controller_init(&kit->controller, env->life, &controller, options->seed + 1);
    scale_head(kit, kit->controller.xfer_head.weight, options->head_gain);
    scale_head(kit, kit->controller.location_head.weight, options->head_gain);
    float *bias =
        graft_parameters_value(&kit->controller.parameters, kit->controller.xfer_head.bias);
    bias[KIT_RULES] = options->noop_bias;
    if (options->favourite < KIT_RULES) {
        bias[options->favourite] += 1000.0F;
    }
}

/* Anything that is legal, for as long as the episode lasts. */
static graft_status choose_any(graft_env *env, void *context, const graft_environment *environment,
                               const graft_snapshot *snapshot, graft_rng *rng, graft_action *action)
{
    (void)env;
    (void)context;
    (void)snapshot;
    uint32_t xfer = 0;
    uint32_t location = 0;
    graft_matches_draw(&environment->matches, rng, &xfer, &location);
    *action = (graft_action){.xfer = (uint16_t)xfer, .location = (uint16_t)location};
    return GRAFT_OK;
}

const graft_chooser policy_kit_chooser = {choose_any, NULL};

/* Graphs of random episodes. */
static void collect_states(graft_env *env, policy_kit *kit, uint64_t seed, graft_states *states)
{
    graft_episode episodes[EPISODES];
    graft_rng rng;
    const graft_states_source source = {kit->graph, &kit->xfers, KIT_LOCATIONS,
                                        kit->environment.options.apply, KIT_STATES};
    graft_rng_seed(&rng, seed);
    for (uint32_t i = 0; i < EPISODES; i++) {
        assert_int_equal(graft_episode_record(env, env->life, &kit->environment,
                                              &policy_kit_chooser, &rng, &episodes[i]),
                         GRAFT_OK);
    }
    assert_int_equal(graft_states_collect(env, env->life, &source, episodes, EPISODES, states),
                     GRAFT_OK);
    assert_true(states->count > KIT_STATES / 4);
}

/* Standardises the latents over the states, as training does. */
static void standardise(graft_env *env, policy_kit *kit)
{
    uint32_t latent = kit->encoder.size.latent;
    graft_graph_arrays *arrays = GRAFT_NEW(env->life, graft_graph_arrays, kit->states.count);
    float *z = GRAFT_NEW(env->life, float, (size_t)kit->states.count *latent);
    for (uint32_t s = 0; s < kit->states.count; s++) {
        arrays[s] = kit->states.items[s].arrays;
    }
    graft_encoder_run(&kit->encoder, env->scratch, arrays, kit->states.count, z);
    kit->standardiser = graft_standardiser_fit(env->life, z, kit->states.count, latent);
}

policy_kit *policy_kit_open(graft_env *env, const policy_kit_options *options)
{
    policy_kit *kit = GRAFT_NEW(env->life, policy_kit, 1);
    kit->graph = policy_kit_graph(env->life);
    build_rules(kit);
    open_environment(env, kit);
    open_networks(env, kit, options);
    collect_states(env, kit, options->seed + 2, &kit->states);
    collect_states(env, kit, options->seed + 3, &kit->others);
    standardise(env, kit);
    kit->network = graft_float_policy_of(&kit->encoder, &kit->standardiser, &kit->controller);
    kit->policy.metadata = "{\"model\":\"kit\"}";
    assert_int_equal(graft_policy_pack_rules(env, env->life, kit->rules, KIT_RULES, &kit->policy),
                     GRAFT_OK);
    assert_int_equal(
        graft_policy_calibrate(env, env->life, &kit->network, &kit->states, &kit->policy),
        GRAFT_OK);
    return kit;
}

/* ------------------------------------------------------------------ tariff */

enum { TARIFF_ROWS = 512, TARIFF_WALKS = 6, TARIFF_STEPS = 40 };

typedef struct {
    uint32_t key;
    uint16_t value;
} priced_form;

static int compare_keys(const void *a, const void *b)
{
    const priced_form *x = a;
    const priced_form *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

/* Adds the nodes of a graph that are not there yet. */
static uint32_t price_forms(const graft_graph *graph, priced_form *forms, uint32_t count)
{
    for (graft_index n = 0; n < graph->node_end; n++) {
        graft_form form;
        if (graph->nodes[n].op == GRAFT_OP_NONE || graph->nodes[n].is_const) {
            continue;
        }
        graft_form_of_node(graph, n, &form);
        const priced_form priced = {
            .key = graft_tariff_key(0, graft_form_hash(&form)),
            .value = graft_tariff_encode(500.0 + (double)form.bytes / 16.0 +
                                         (double)form.weight_elements),
        };
        uint32_t i = 0;
        while (i < count && forms[i].key != priced.key) {
            i++;
        }
        if (i == count) {
            assert_true(count < TARIFF_ROWS);
            forms[count++] = priced;
        }
    }
    return count;
}

graft_policy policy_kit_by_tariff(graft_env *env, const policy_kit *kit)
{
    const graft_apply_options apply = {UINT64_MAX};
    priced_form *forms = GRAFT_NEW(env->life, priced_form, TARIFF_ROWS);
    uint32_t *keys = GRAFT_NEW(env->life, uint32_t, TARIFF_ROWS);
    uint16_t *values = GRAFT_NEW(env->life, uint16_t, TARIFF_ROWS);
    graft_tariff *tariff = GRAFT_NEW(env->life, graft_tariff, 1);
    graft_policy policy = kit->policy;
    graft_state state;
    graft_matches matches;
    graft_rng rng;
    uint32_t count = 0;
    graft_state_open(env->life, &kit->graph->limits, &state);
    graft_matches_open(env->life, &kit->xfers, KIT_LOCATIONS, &matches);
    graft_rng_seed(&rng, 7);
    for (uint32_t walk = 0; walk < TARIFF_WALKS; walk++) {
        assert_int_equal(graft_state_set(env, &state, kit->graph), GRAFT_OK);
        for (uint32_t step = 0; step < TARIFF_STEPS; step++) {
            uint32_t rule = 0;
            uint32_t location = 0;
            count = price_forms(&state.graph, forms, count);
            graft_matches_find(&matches, &state, &apply);
            graft_matches_draw(&matches, &rng, &rule, &location);
            assert_int_equal(graft_state_apply(env, &state, &kit->rules[rule],
                                               graft_matches_get(&matches, rule, location), &apply),
                             GRAFT_OK);
        }
    }
    qsort(forms, count, sizeof forms[0], compare_keys);
    for (uint32_t i = 0; i < count; i++) {
        keys[i] = forms[i].key;
        values[i] = forms[i].value;
    }
    *tariff = (graft_tariff){.keys = keys, .values = values, .row_count = count};
    policy = (graft_policy){.abi = GRAFT_ABI,
                            .feature_hash = GRAFT_FEATURE_HASH,
                            .metadata = "",
                            .rules = policy.rules,
                            .rule_offsets = policy.rule_offsets,
                            .rule_flags = policy.rule_flags,
                            .rule_count = policy.rule_count,
                            .location_limit = policy.location_limit,
                            .tariff = tariff,
                            .decider = GRAFT_DECIDER_TARIFF};
    return policy;
}

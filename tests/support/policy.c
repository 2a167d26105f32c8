/* policy.c - see policy.h. */
#include "tests/support/policy.h"

#include "tests/support/rows.h"
#include "train/tariff/tariff.h"

#include <stdlib.h>
#include <string.h>

enum { CHANNELS = 64, BLOCKS = 4, CLASSES = 12, EPISODES = 3, KIT_STEPS = 24, KIT_STATES = 64 };

const char *const policy_kit_names[KIT_RULES] = {"fold-scale",   "fuse-relu", "drop-identity",
                                                 "merge-matmul", "swap-add",  "double-relu",
                                                 "single-relu"};
const policy_kit_options policy_kit_plain = {1, 2, KIT_GOES_ON};

/* ------------------------------------------------------------------- graph */

/* conv, scale_shift, relu; `source` numbers the weights and moves on. */
static graft_index build_block(graft_graph *graph, graft_index x, graft_shape filter,
                               const int32_t *attrs, graft_index *source)
{
    graft_index w = build_weight(graph, filter, (*source)++);
    graft_index s = build_weight(graph, SHAPE(filter.dims[0]), (*source)++);
    graft_index t = build_weight(graph, SHAPE(filter.dims[0]), (*source)++);
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
    graft_index x = build_input(graph, SHAPE(1, 1, 49, 10), 0);
    x = build_block(graph, x, SHAPE(CHANNELS, 1, 10, 4), first, &source);
    for (uint32_t b = 0; b < BLOCKS; b++) {
        graft_index y = build_block(graph, x, SHAPE(CHANNELS, 1, 3, 3), depthwise, &source);
        y = build_block(graph, y, SHAPE(CHANNELS, CHANNELS, 1, 1), pointwise, &source);
        y = build_node(graph, GRAFT_OP_identity, NULL, y, 0, 0);
        x = b % 2 == 1 ? build_node(graph, GRAFT_OP_add, NULL, x, y, 0) : y;
    }
    graft_index square = build_node(graph, GRAFT_OP_mul, NULL, x, x, 0); /* Reads it twice. */
    x = build_node(graph, GRAFT_OP_add, NULL, square, x, 0);
    x = build_node(graph, GRAFT_OP_global_avg_pool, NULL, x, 0, 0);
    x = build_node(graph, GRAFT_OP_reshape, (const int32_t[]){1, CHANNELS, 0, 0, 0, 0}, x, 0, 0);
    for (uint32_t k = 0; k < 2; k++) {
        graft_index w = build_weight(graph, SHAPE(CHANNELS, CLASSES), source++);
        graft_index y = build_node(graph, GRAFT_OP_matmul, NULL, x, w, 0);
        y = build_node(graph, GRAFT_OP_softmax, (const int32_t[]){1}, y, 0, 0);
        CHECK_OK(graft_graph_add_output(graph, y));
    }
    return graph;
}

graft_graph *policy_kit_copy(graft_env *env, const policy_kit *kit)
{
    graft_graph *copy = build_graph_within(env->life, kit->graph->limits);
    CHECK_OK(graft_graph_copy(copy, kit->graph));
    return copy;
}

policy_run *policy_kit_optimize(graft_env *env, graft_graph *graph, const graft_policy *policy,
                                const graft_optimize_options *options)
{
    policy_run *r = GRAFT_NEW(env->life, policy_run, 1);
    size_t bytes = graft_optimize_workspace_bytes(policy, &graph->limits, options->step_limit);
    r->graph = graph;
    r->report.decisions = r->decisions;
    r->report.decision_limit = POLICY_DECISIONS_MOST;
    r->status = graft_optimize(graph, policy, options, graft_arena_alloc(env->life, bytes), bytes,
                               &r->report);
    return r;
}

/* ------------------------------------------------------------------- rules */

static const char *const rule_texts[KIT_RULES] = {
    RULE_FOLD_SCALE,          RULE_FUSE_RELU,          RULE_DROP_IDENTITY,
    RULE_MERGE_MATMUL,        "add(a, b) = add(b, a)", "relu(a) = relu(relu(a))",
    "relu(relu(a)) = relu(a)"};

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

static void make_table(graft_env *env, policy_kit *kit)
{
    const graft_apply_options apply = {UINT64_MAX};
    priced_form *forms = GRAFT_NEW(env->life, priced_form, TARIFF_ROWS);
    uint32_t *keys = GRAFT_NEW(env->life, uint32_t, TARIFF_ROWS);
    uint16_t *values = GRAFT_NEW(env->life, uint16_t, TARIFF_ROWS);
    graft_tariff *tariff = GRAFT_NEW(env->life, graft_tariff, 1);
    graft_state state;
    graft_matches matches;
    uint32_t count = 0;
    graft_state_open(env->life, &kit->graph->limits, &state);
    graft_matches_open(env->life, &kit->xfers, UINT16_MAX, &matches);
    graft_rng rng = check_rng(7);
    for (uint32_t walk = 0; walk < TARIFF_WALKS; walk++) {
        CHECK_OK(graft_state_set(env, &state, kit->graph));
        for (uint32_t step = 0; step < TARIFF_STEPS; step++) {
            count = price_forms(&state.graph, forms, count);
            graft_matches_find(&matches, &state, &apply);
            CHECK_OK(
                graft_matches_apply(env, &matches, graft_matches_draw(&matches, &rng), &state));
        }
    }
    qsort(forms, count, sizeof forms[0], compare_keys);
    for (uint32_t i = 0; i < count; i++) {
        keys[i] = forms[i].key;
        values[i] = forms[i].value;
    }
    *tariff = (graft_tariff){.keys = keys, .values = values, .row_count = count};
    kit->table = (graft_policy){.abi = GRAFT_ABI,
                                .feature_hash = GRAFT_FEATURE_HASH,
                                .metadata = "",
                                .location_limit = UINT16_MAX,
                                .tariff = tariff,
                                .decider = GRAFT_DECIDER_TARIFF};
    CHECK_OK(graft_policy_pack_rules(env, env->life, kit->rules, KIT_RULES, &kit->table));
}

/* ---------------------------------------------------------------- network */

static void open_environment(graft_env *env, policy_kit *kit)
{
    const graft_scene_options scenes = {
        .limit = UINT32_MAX, .alike = UINT32_MAX, .sharpness = 1.0, .reserve = 3.0};
    graft_environment_options options = {.location_limit = UINT16_MAX,
                                         .step_limit = KIT_STEPS,
                                         .apply.weight_bytes_limit = UINT64_MAX};
    CHECK_OK(graft_estimator_make(env, env->life, kit->table.tariff, &kit->graph->limits,
                                  &kit->estimating));
    options.price = graft_estimator_price(&kit->estimating);
    CHECK_OK(graft_environment_open(env, env->life, kit->graph, &kit->xfers, &options,
                                    &kit->environment));
    CHECK_OK(graft_observer_open(env, env->life, &kit->environment, kit->table.tariff, &scenes,
                                 &kit->observer));
}

/* Column 0 of a matrix of the scorer's. */
static void clear_column(const graft_candidates *agent, uint32_t parameter)
{
    const graft_parameters *set = &agent->scorer.parameters;
    const graft_parameter *item = &set->items[parameter];
    for (uint32_t i = 0; i < item->rows; i++) {
        graft_parameters_value(set, parameter)[(size_t)i * item->cols] = 0.0F;
    }
}

/* Hidden unit 0 of candidates is left to the favourite: it reads nothing, and counts for much. */
static void reserve_unit(const graft_candidates *agent)
{
    const graft_scorer *scorer = &agent->scorer;
    const graft_layer parts[] = {scorer->mean,     scorer->most,  scorer->of_rule,
                                 scorer->of_scene, scorer->facts, scorer->second};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        clear_column(agent, parts[i].weight);
        clear_column(agent, parts[i].bias);
    }
    float *second = graft_parameters_value(&scorer->parameters, scorer->second.weight);
    float *score = graft_parameters_value(&scorer->parameters, scorer->score.weight);
    memset(second, 0, scorer->size.width * sizeof *second);
    second[0] = 1.0F;
    for (uint32_t i = 0; i < scorer->size.width; i++) {
        score[i] = i == 0 ? 30.0F : 0.9F - 0.5F * (float)(i % 5);
    }
}

static void open_agent(graft_env *env, policy_kit *kit, const policy_kit_options *options)
{
    kit->settings = (graft_agent_settings){.candidates_hidden = 12,
                                           .candidates_latent = 10,
                                           .candidates_rounds = options->rounds,
                                           .candidates_width = 8,
                                           .candidates_discount = 1.0,
                                           .candidates_lambda = 1.0};
    graft_candidates_open(env->life, &kit->settings, options->seed, 1, &kit->agent);
    reserve_unit(&kit->agent);
}

/* Writes what the policy wants into the reserved unit's rows. */
static void set_favourite(graft_env *env, policy_kit *kit, uint32_t favourite)
{
    const size_t count = graft_policy_rows_bytes(&kit->policy);
    int8_t *rows = GRAFT_NEW(env->life, int8_t, count);
    memcpy(rows, kit->policy.rule_rows, count);
    for (uint32_t r = 0; r <= KIT_RULES; r++) {
        bool wanted = r == favourite || (favourite == KIT_GOES_ON && r < KIT_RULES);
        rows[(size_t)r * kit->policy.width] = wanted ? 127 : 0;
    }
    kit->policy.rule_rows = rows;
}

static void collect_states(graft_env *env, policy_kit *kit, uint64_t seed)
{
    graft_rng rng = check_rng(seed);
    kit->states = GRAFT_NEW(env->life, policy_kit_state, KIT_STATES);
    for (uint32_t e = 0; e < EPISODES; e++) {
        CHECK_OK(graft_environment_reset(env, &kit->environment));
        while (!kit->environment.terminal && kit->state_count < KIT_STATES) {
            policy_kit_state *state = &kit->states[kit->state_count++];
            graft_outcome outcome;
            state->graph = build_graph_within(env->life, kit->graph->limits);
            CHECK_OK(graft_graph_copy(state->graph, &kit->environment.state.graph));
            CHECK_OK(graft_scene_take(env, env->life, &kit->observer, false, &state->scene));
            if (state->scene.count == 1) {
                break; /* Nothing but NO-OP. */
            }
            const graft_action action =
                state->scene.actions[graft_rng_below(&rng, state->scene.count - 1)];
            CHECK_OK(graft_environment_step(env, &kit->environment, action.xfer, action.location,
                                            &outcome));
        }
    }
    assert_true(kit->state_count > KIT_STATES / 4);
}

policy_kit *policy_kit_open(graft_env *env, const policy_kit_options *options)
{
    policy_kit *kit = GRAFT_NEW(env->life, policy_kit, 1);
    graft_observer *const observers[] = {&kit->observer};
    env->verbosity = 0;
    kit->graph = policy_kit_graph(env->life);
    for (uint32_t r = 0; r < KIT_RULES; r++) {
        kit->rules[r] = rows_parse(env, rule_texts[r]);
    }
    graft_xfers_index(env->life, kit->rules, policy_kit_names, KIT_RULES, &kit->xfers);
    make_table(env, kit);
    open_environment(env, kit);
    open_agent(env, kit, options);
    CHECK_OK(graft_policy_compile(env, &kit->agent, observers, 1, &kit->policy));
    kit->policy.metadata = "{\"model\":\"kit\"}";
    if (options->favourite != KIT_FREE) {
        set_favourite(env, kit, options->favourite);
    }
    collect_states(env, kit, options->seed + 2);
    graft_candidates_close(&kit->agent); /* It learns no more. */
    return kit;
}

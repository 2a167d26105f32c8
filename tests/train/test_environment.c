/* The environment and the search baselines, over a price that is easy to compute by hand. */
#include "graph/base/log.h"
#include "tests/support/build.h"
#include "tests/support/rows.h"
#include "train/search/search.h"
#include "train/search/survey.h"

#include <signal.h>
#include <string.h>

enum { BLOCKS = 4, XFERS = 3 };

/* A fused convolution costs 60, a plain one 50, everything else 20 per inference. */
static graft_status price_graph(graft_env *env, void *context, const graft_graph *graph,
                                const graft_order *order, double *ns)
{
    (void)env;
    ++*(uint64_t *)context;
    *ns = 0;
    for (graft_index i = 0; i < order->count; i++) {
        const graft_node *node = &graph->nodes[order->order[i]];
        if (!node->is_const) {
            *ns += node->op == GRAFT_OP_conv ? 50 : node->op == GRAFT_OP_conv_bias ? 60 : 20;
        }
    }
    return GRAFT_OK;
}

/* The same, but folding alone makes an operator that costs 100: only fusing pays. */
static graft_status price_over_a_hill(graft_env *env, void *context, const graft_graph *graph,
                                      const graft_order *order, double *ns)
{
    graft_status status = price_graph(env, context, graph, order, ns);
    for (graft_index i = 0; i < order->count; i++) {
        const graft_node *node = &graph->nodes[order->order[i]];
        bool folded = !node->is_const && node->op == GRAFT_OP_conv_bias &&
                      node->attrs[GRAFT_ATTR_conv_bias_activation] == GRAFT_ACT_NONE;
        *ns += folded ? 40 : 0;
    }
    return status;
}

static const char *const xfer_names[XFERS] = {"fold", "fuse", "drop"};

typedef struct {
    graft_rule rules[XFERS];
    graft_xfers xfers;
    graft_environment environment;
    uint64_t priced;
} fixture;

/* BLOCKS times conv, scale_shift, relu, identity: 110 each, 60 at best. */
static fixture *open_fixture(graft_env *env)
{
    fixture *f = GRAFT_NEW(env->life, fixture, 1);
    built b = build_text(env->life, "y = input 1 3 6 6");
    for (uint32_t i = 0; i < BLOCKS; i++) {
        build_more(&b, BUILD_BLOCK);
    }
    build_more(&b, "out y");
    f->rules[0] = rows_parse(env, RULE_FOLD_SCALE);
    f->rules[1] = rows_parse(env, RULE_FUSE_RELU);
    f->rules[2] = rows_parse(env, RULE_DROP_IDENTITY);
    graft_xfers_index(env->life, f->rules, xfer_names, XFERS, &f->xfers);
    const graft_environment_options options = {
        .price = {.cost_ns = price_graph, .context = &f->priced},
        .location_limit = 200,
        .step_limit = 40,
        .apply.weight_bytes_limit = 1 << 20
    };
    CHECK_OK(graft_environment_open(env, env->life, b.graph, &f->xfers, &options, &f->environment));
    return f;
}

static uint32_t count(const fixture *f, uint32_t xfer)
{
    return graft_matches_count(&f->environment.matches, xfer);
}

CHECK_CASE(test_masks_and_rewards)
{
    fixture *f = open_fixture(env);
    graft_outcome step;
    assert_true(f->environment.first_ns == BLOCKS * 110.0);
    assert_int_equal(count(f, 0), BLOCKS);
    assert_int_equal(count(f, 1), 0);
    assert_int_equal(count(f, 2), BLOCKS);
    CHECK_OK(graft_environment_step(env, &f->environment, 0, 2, &step));
    assert_true(step.reward > 2.27 && step.reward < 2.28); /* 10 of 440. */
    assert_false(step.terminal);
    assert_int_equal(count(f, 0), BLOCKS - 1);
    assert_int_equal(count(f, 1), 1);
    CHECK_OK(graft_environment_step(env, &f->environment, 1, 0, &step));
    assert_true(step.reward > 4.54 && step.reward < 4.55); /* 20 of 440. */
    assert_int_equal(count(f, 1), 0);
}

/* Noise of the price, and a form that counts the nodes which a rule made. */
static graft_status noise_of_15(graft_env *env, void *context, const graft_state *before,
                                const graft_state *after, double *ns)
{
    (void)env;
    (void)context;
    (void)before;
    (void)after;
    *ns = 15;
    return GRAFT_OK;
}

static graft_status count_nodes(graft_env *env, void *context, const graft_graph *graph,
                                uint64_t *form)
{
    (void)env;
    (void)context;
    *form = graft_graph_node_count(graph);
    return GRAFT_OK;
}

/* Identities cost nothing: only the form asks for their removal. */
static graft_status price_but_identities(graft_env *env, void *context, const graft_graph *graph,
                                         const graft_order *order, double *ns)
{
    graft_status status = price_graph(env, context, graph, order, ns);
    for (graft_index i = 0; i < order->count; i++) {
        *ns -= graph->nodes[order->order[i]].op == GRAFT_OP_identity ? 20 : 0;
    }
    return status;
}

static double greedy(graft_env *env, fixture *f, uint32_t *steps)
{
    graft_plan_found found;
    CHECK_OK(graft_environment_reprice(env, &f->environment));
    CHECK_OK(graft_search_greedy(env, env->unit, &f->environment, NULL, &found));
    *steps = found.step_count;
    return found.cost_ns;
}

/* Folding brings 10 of 440, fusing and dropping 20. */
CHECK_CASE(test_small_gains_are_none)
{
    fixture *f = open_fixture(env);
    uint32_t steps = 0;
    f->environment.options.least_gain = 0.03;
    assert_true(greedy(env, f, &steps) == BLOCKS * 90.0 && steps == BLOCKS);
    f->environment.options.least_gain = 10.0 / 440;
    assert_true(greedy(env, f, &steps) == BLOCKS * 60.0 && steps == 3 * BLOCKS);
    f->environment.options.least_gain = 0.1;
    assert_true(greedy(env, f, &steps) == BLOCKS * 110.0 && steps == 0);
    f->environment.options.least_gain = 0;
    f->environment.options.price.noise_ns = noise_of_15;
    assert_true(greedy(env, f, &steps) == BLOCKS * 90.0 && steps == BLOCKS);
}

CHECK_CASE(test_better_forms_at_no_cost)
{
    fixture *f = open_fixture(env);
    uint32_t steps = 0;
    f->environment.options.price.cost_ns = price_but_identities;
    f->environment.options.least_gain = 0.1;
    assert_true(greedy(env, f, &steps) == BLOCKS * 90.0 && steps == 0);
    f->environment.options.price.form = count_nodes;
    /* Folding makes more nodes, const ones: its 10 are too little and its form is no better. */
    assert_true(greedy(env, f, &steps) == BLOCKS * 90.0 && steps == BLOCKS);
    f->environment.options.least_gain = 0;
    assert_true(greedy(env, f, &steps) == BLOCKS * 60.0 && steps == 3 * BLOCKS);
    /* Tidying takes no gains, only forms. */
    graft_plan_found found = {.steps = NULL};
    CHECK_OK(graft_environment_reset(env, &f->environment));
    CHECK_OK(graft_search_tidy(env, env->unit, &f->environment, &found));
    assert_int_equal(found.step_count, BLOCKS);
    assert_true(found.cost_ns == BLOCKS * 90.0 && f->environment.options.least_gain == 0);
}

/* A plan that is as long as an episode may be is gone on with, by as much again. */
CHECK_CASE(test_finishing_long_plans)
{
    graft_environment *environment = &open_fixture(env)->environment;
    graft_plan_found found;
    environment->options.step_limit = 4;
    CHECK_OK(graft_search_greedy(env, env->unit, environment, NULL, &found));
    assert_true(found.step_count == 4 && !found.at_rest);
    CHECK_OK(graft_search_finish(env, env->unit, environment, &found));
    assert_int_equal(found.step_count, 8);
    CHECK_OK(graft_search_finish(env, env->unit, environment, &found));
    assert_true(found.step_count == 3 * BLOCKS && found.cost_ns == BLOCKS * 60.0);
    assert_int_equal(environment->options.step_limit, 4);
}

/* Other searches are held to the same, rewrite for rewrite. */
CHECK_CASE(test_small_gains_of_other_searches)
{
    const graft_search_choice options = {.alpha = 1.05, .dequeues = 400};
    const graft_search_choice beam = {.width = 8, .patience = 4};
    for (uint32_t which = 0; which < 2; which++) {
        graft_environment *environment = &open_fixture(env)->environment;
        graft_plan_found found;
        environment->options.least_gain = 0.03;
        CHECK_OK(which == 0
                     ? graft_search_backtracking(env, env->unit, environment, &options, &found)
                     : graft_search_beam(env, env->unit, environment, &beam, &found));
        /* Folding and then fusing brings 30 for two, dropping 20 for one. */
        assert_true(found.cost_ns == BLOCKS * 60.0 && found.step_count == 3 * BLOCKS);
        CHECK_OK(graft_search_finish(env, env->unit, environment, &found));
        assert_true(found.cost_ns == BLOCKS * 60.0 && found.step_count == 3 * BLOCKS);
        environment->options.least_gain = 0.9; /* More than all of it brings. */
        CHECK_OK(graft_search_finish(env, env->unit, environment, &found));
        assert_true(found.step_count == 0 && found.cost_ns == BLOCKS * 110.0);
        environment->options.least_gain = 0.04; /* 17.6: only dropping is worth it. */
        CHECK_OK(which == 0
                     ? graft_search_backtracking(env, env->unit, environment, &options, &found)
                     : graft_search_beam(env, env->unit, environment, &beam, &found));
        assert_true(found.cost_ns == BLOCKS * 90.0 && found.step_count == BLOCKS);
    }
}

CHECK_CASE(test_illegal_actions)
{
    fixture *f = open_fixture(env);
    graft_outcome step;
    check_failed(env, graft_environment_step(env, &f->environment, 1, 0, &step), GRAFT_BAD_INPUT,
                 "action (1, 0) is not legal here");
    check_failed(env, graft_environment_step(env, &f->environment, 4, 0, &step), GRAFT_BAD_INPUT,
                 "not legal");
    CHECK_OK(graft_environment_step(env, &f->environment, XFERS, 0, &step));
    assert_true(step.terminal && step.reward == 0);
    check_failed(env, graft_environment_step(env, &f->environment, 0, 0, &step), GRAFT_BAD_INPUT,
                 "after the end");
    CHECK_OK(graft_environment_reset(env, &f->environment));
    assert_int_equal(count(f, 0), BLOCKS);
    assert_int_equal(f->environment.interactions, 1);
}

/* Once a graph is too dear the episode is over, and not merely cut short. */
CHECK_CASE(test_cost_limit_ends_episodes)
{
    fixture *f = open_fixture(env);
    graft_outcome step;
    f->environment.options.cost_limit = 0.99; /* Even the first graph is above it. */
    CHECK_OK(graft_environment_reset(env, &f->environment));
    assert_true(f->environment.terminal && f->environment.dear);
    f->environment.options.cost_limit = 1.0; /* Equal is not dearer. */
    CHECK_OK(graft_environment_reset(env, &f->environment));
    assert_false(f->environment.terminal);
    f->environment.first_ns /= 1.2; /* As if what follows had become dearer. */
    f->environment.cost_ns = f->environment.first_ns;
    CHECK_OK(graft_environment_step(env, &f->environment, 0, 0, &step));
    assert_true(step.terminal && !step.truncated && step.reward < 0);
    const graft_action plan[2] = {
        {0, 0},
        {0, 0}
    }; /* Plans may lead there and on. */
    CHECK_OK(graft_plan_replay(env, &f->environment, plan, 2));
    assert_true(f->environment.options.cost_limit == 1.0);
}

/* Rules are met when a walk comes by a place for them: fusing only after folding, the rule whose
 * operator the graph lacks never. */
CHECK_CASE(test_survey_tells_who_fits)
{
    fixture *f = open_fixture(env);
    graft_rule rules[XFERS + 1];
    const char *names[XFERS + 1] = {"fold", "fuse", "drop", "absent"};
    memcpy(rules, f->rules, sizeof f->rules);
    rules[XFERS] = rows_parse(env, "tanh(a) = a");
    graft_xfers xfers;
    graft_xfers_index(env->life, rules, names, XFERS + 1, &xfers);
    const graft_survey survey = {.episodes = 2, .preference = 2, .seed = 1};
    bool met[XFERS + 1] = {false};
    graft_survey_result found = {.met = met};
    uint64_t priced = f->priced;
    CHECK_OK(graft_survey_run(env, &f->environment.first.graph, &xfers, &f->environment.options,
                              &survey, &found));
    assert_true(met[0] && met[1] && met[2] && !met[3]);
    assert_int_equal(found.step_count, 2 * 3 * BLOCKS);
    assert_true(priced == f->priced); /* Without prices. */
}

/* Replays a plan and checks that it leads to the cost it promises. */
static void check_plan(graft_env *env, fixture *f, const graft_plan_found *found)
{
    CHECK_OK(graft_plan_replay(env, &f->environment, found->steps, found->step_count));
    assert_true(f->environment.cost_ns == found->cost_ns);
}

CHECK_CASE(test_greedy_reaches_the_best)
{
    fixture *f = open_fixture(env);
    graft_plan_found found;
    CHECK_OK(graft_search_greedy(env, env->life, &f->environment, NULL, &found));
    assert_true(found.cost_ns == BLOCKS * 60.0);
    assert_int_equal(found.step_count, 3 * BLOCKS);
    check_plan(env, f, &found);
}

CHECK_CASE(test_backtracking_finds_each_graph_once)
{
    fixture *f = open_fixture(env);
    graft_plan_found found;
    const graft_search_choice options = {.alpha = 10, .dequeues = 5000};
    CHECK_OK(graft_search_backtracking(env, env->life, &f->environment, &options, &found));
    assert_true(found.cost_ns == BLOCKS * 60.0);
    check_plan(env, f, &found);
    /* A block is in one of 3 forms (plain, folded, fused) with or without its identity; fusing
     * needs no identity in between: 6 forms, 6^4 graphs, the first of which is never re-priced. */
    assert_int_equal(found.evaluations, 6 * 6 * 6 * 6 - 1);
    assert_int_equal(found.dequeues, 6 * 6 * 6 * 6);
}

CHECK_CASE(test_backtracking_respects_its_budget)
{
    fixture *f = open_fixture(env);
    graft_plan_found found;
    const graft_search_choice options = {.alpha = 1.05, .dequeues = 3};
    CHECK_OK(graft_search_backtracking(env, env->life, &f->environment, &options, &found));
    assert_int_equal(found.dequeues, 3);
    check_plan(env, f, &found);
}

static const graft_search_choice narrow = {.width = 3, .patience = 2};

/* Greedy stays before the hill; a beam goes over it. */
CHECK_CASE(test_beam_goes_over_a_hill)
{
    fixture *f = open_fixture(env);
    graft_plan_found found;
    f->environment.options.price.cost_ns = price_over_a_hill;
    CHECK_OK(graft_search_greedy(env, env->life, &f->environment, NULL, &found));
    assert_true(found.cost_ns == BLOCKS * 90.0);
    CHECK_OK(graft_search_beam(env, env->life, &f->environment, &narrow, &found));
    assert_true(found.cost_ns == BLOCKS * 60.0);
    assert_int_equal(found.step_count, 3 * BLOCKS);
    check_plan(env, f, &found);
    const graft_search_choice impatient = {.width = 1, .patience = 1};
    CHECK_OK(graft_search_beam(env, env->life, &f->environment, &impatient, &found));
    assert_true(found.cost_ns == BLOCKS * 90.0);
    check_plan(env, f, &found);
}

/* Two rewrites in one place, of which the first costs 30. */
CHECK_CASE(test_escape_goes_over_a_hill)
{
    fixture *f = open_fixture(env);
    graft_plan_found found;
    f->environment.options.price.cost_ns = price_over_a_hill;
    CHECK_OK(graft_search_escape(env, env->life, &f->environment, NULL, &found));
    assert_true(found.cost_ns == BLOCKS * 60.0);
    assert_int_equal(found.step_count, 3 * BLOCKS);
    check_plan(env, f, &found);
    f->environment.options.least_gain = 0.2; /* All of a block, 50 of 440, is less. */
    CHECK_OK(graft_search_escape(env, env->life, &f->environment, NULL, &found));
    assert_true(found.cost_ns == f->environment.first_ns);
}

CHECK_CASE(test_random_searches_go_over_a_hill)
{
    fixture *f = open_fixture(env);
    graft_plan_found found;
    graft_plan_found again;
    const graft_search_choice warm = {.graphs = 2000, .temperature = 0.05, .seed = 3};
    const graft_search_choice cold = {.graphs = 2000, .temperature = 1e-6, .seed = 3};
    const graft_search_choice kicks = {.graphs = 2000, .seed = 3};
    f->environment.options.price.cost_ns = price_over_a_hill;
    CHECK_OK(graft_search_annealing(env, env->life, &f->environment, &warm, &found));
    assert_true(found.cost_ns == BLOCKS * 60.0);
    check_plan(env, f, &found);
    CHECK_OK(graft_search_annealing(env, env->life, &f->environment, &warm, &again));
    assert_int_equal(again.step_count, found.step_count);
    assert_int_equal(again.evaluations, found.evaluations);
    CHECK_OK(graft_search_annealing(env, env->life, &f->environment, &cold, &found));
    assert_true(found.cost_ns == BLOCKS * 90.0);
    CHECK_OK(graft_search_iterated(env, env->life, &f->environment, &kicks, &found));
    assert_true(found.cost_ns == BLOCKS * 60.0);
    check_plan(env, f, &found);
}

/* The deadline has passed: each search has nothing, and says so. */
CHECK_CASE(test_searches_end_in_time)
{
    fixture *f = open_fixture(env);
    graft_plan_found found[6];
    const graft_search_choice backtracking = {.alpha = 1.05, .dequeues = 100};
    const graft_search_choice beam = {.width = 2, .patience = 2};
    const graft_search_choice annealing = {.graphs = 100, .temperature = 0.05, .seed = 3};
    const graft_search_choice iterated = {.graphs = 100, .seed = 3};
    graft_environment *e = &f->environment;
    e->options.deadline_ns = 1;
    CHECK_OK(graft_search_greedy(env, env->life, e, NULL, &found[0]));
    CHECK_OK(graft_search_escape(env, env->life, e, NULL, &found[1]));
    CHECK_OK(graft_search_annealing(env, env->life, e, &annealing, &found[2]));
    CHECK_OK(graft_search_iterated(env, env->life, e, &iterated, &found[3]));
    CHECK_OK(graft_search_beam(env, env->life, e, &beam, &found[4]));
    CHECK_OK(graft_search_backtracking(env, env->life, e, &backtracking, &found[5]));
    for (uint32_t i = 0; i < 6; i++) {
        assert_true(found[i].cut);
        assert_int_equal(found[i].step_count, 0);
        assert_true(found[i].cost_ns == e->first_ns);
    }
    e->options.deadline_ns = 0;
    CHECK_OK(graft_search_greedy(env, env->life, e, NULL, &found[0]));
    assert_false(found[0].cut);
}

static const graft_search_choice five = {.episodes = 5, .seed = 7};

CHECK_CASE(test_random_is_reproducible)
{
    fixture *f = open_fixture(env);
    graft_plan_found a;
    graft_plan_found b;
    CHECK_OK(graft_search_random(env, env->life, &f->environment, &five, &a));
    CHECK_OK(graft_search_random(env, env->life, &f->environment, &five, &b));
    assert_int_equal(a.step_count, b.step_count);
    for (uint32_t i = 0; i < a.step_count; i++) {
        assert_int_equal(a.steps[i].xfer, b.steps[i].xfer);
        assert_int_equal(a.steps[i].location, b.steps[i].location);
    }
    check_plan(env, f, &a);
}

/* Half a search is no search. */
CHECK_CASE(test_interrupted_searches_fail)
{
    fixture *f = open_fixture(env);
    graft_plan_found found;
    const graft_search_choice options = {.alpha = 10, .dequeues = 5000};
    graft_interrupt_install();
    assert_int_equal(raise(SIGINT), 0);
    check_failed(env, graft_search_greedy(env, env->life, &f->environment, NULL, &found),
                 GRAFT_INTERRUPTED, "interrupted while searching");
    check_failed(env, graft_search_random(env, env->life, &f->environment, &five, &found),
                 GRAFT_INTERRUPTED, "interrupted while searching");
    check_failed(env, graft_search_backtracking(env, env->life, &f->environment, &options, &found),
                 GRAFT_INTERRUPTED, "interrupted while searching");
    check_failed(env, graft_search_beam(env, env->life, &f->environment, &narrow, &found),
                 GRAFT_INTERRUPTED, "interrupted while searching");
    graft_interrupt_install();
    CHECK_OK(graft_search_greedy(env, env->life, &f->environment, NULL, &found));
}

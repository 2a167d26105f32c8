/* The agent that scores candidates: kernels and networks against differences, a fresh agent against
 * greedy over the tariff, numbering of nodes and rules, threads and seeds, and that it learns. */
#include "tests/support/gradient.h"
#include "tests/train/scenes.h"
#include "train/nn/ragged.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------- gradients */

static const uint32_t choosers[6] = {1, 0, 1, 1, 0, 2};

typedef const graft_matrix *const *leaf_list;
static const graft_matrix *apply_choices(graft_tape *t, leaf_list x)
{
    return graft_ragged_log_softmax(t, x[0], choosers, 3);
}
static const graft_matrix *apply_entropy(graft_tape *t, leaf_list x)
{
    return graft_ragged_entropy(t, graft_ragged_log_softmax(t, x[0], choosers, 3), choosers, 3);
}

CHECK_CASE(test_ragged_gradients)
{
    static const gradient_case cases[] = {
        {"log-softmax", 1, {6}, {1}, apply_choices},
        {"entropy",     1, {6}, {1}, apply_entropy},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double worst = gradient_worst(&cases[i]);
        if (!(worst < 1e-4)) {
            fail_msg("%s: %g", cases[i].name, worst);
        }
    }
}

typedef struct {
    graft_candidates *agent;
    const graft_transition *steps[3];
} losing;

static double lose(void *context)
{
    losing *l = context;
    graft_candidates_report report = {.episodes = 0};
    return graft_candidates_differentiate(l->agent, l->steps, 3, &report);
}

/* Of all that an update minimises, in the parameters of both networks. */
CHECK_CASE(test_network_gradients)
{
    fixture *f = open_fixture(env, "dscnn");
    graft_candidates *agent = open_agent(env, 3, 1);
    graft_transition steps[3];
    losing l = {.agent = agent};
    stir(agent);
    for (uint32_t i = 0; i < 3; i++) {
        graft_outcome outcome;
        graft_transition *t = &steps[i];
        *t = (graft_transition){.choice = i, .advantage = 1.0F - (float)i, .gain = 0.5F};
        CHECK_OK(graft_scene_take(env, env->life, &f->observer, i == 2, &t->scene));
        t->log_p = -1.5F;
        l.steps[i] = t;
        CHECK_OK(graft_environment_step(env, &f->engine, t->scene.actions[0].xfer,
                                        t->scene.actions[0].location, &outcome));
    }
    graft_parameters *sets[] = {&agent->scorer.encoder.parameters, &agent->scorer.parameters};
    for (uint32_t k = 0; k < 2; k++) {
        (void)lose(&l);
        assert_true(gradient_worst_slope(sets[k], lose, &l) < 1.0);
    }
}

/* ------------------------------------------------------------------- what it does */

/* Untrained it is greedy over the tariff. */
CHECK_CASE(test_fresh_agent)
{
    fixture *f = open_fixture(env, "dscnn");
    graft_candidates *agent = open_agent(env, 1, 1);
    graft_tariff_plan plan;
    graft_plan_found found;
    CHECK_OK(graft_search_tariff(env, env->life, &f->engine, &f->tariff, &plan));
    CHECK_OK(graft_candidates_play(env, env->life, agent, &f->observer, NULL, &found));
    assert_true(plan.found.step_count > 10);
    assert_true(fabs(found.cost_ns / plan.found.cost_ns - 1.0) < 1e-9);
}

static graft_xfers reverse_rules(graft_env *env, const graft_xfers *xfers)
{
    graft_xfers reversed;
    graft_rule *rules = GRAFT_NEW(env->life, graft_rule, xfers->count);
    const char **names = GRAFT_NEW(env->life, const char *, xfers->count);
    for (uint32_t r = 0; r < xfers->count; r++) {
        rules[r] = xfers->rules[xfers->count - 1 - r];
        names[r] = xfers->names[xfers->count - 1 - r];
    }
    graft_xfers_index(env->life, rules, names, xfers->count, &reversed);
    return reversed;
}

/* Log-probabilities of a scene's candidates. */
static const float *score(graft_env *env, const graft_candidates *agent, const graft_scene *scene)
{
    graft_tape tape;
    graft_tape_init(&tape, env->unit, false);
    graft_tape_bind(&tape, &agent->scorer.encoder.parameters, NULL);
    graft_tape_bind(&tape, &agent->scorer.parameters, NULL);
    const graft_scene_batch batch = graft_scene_batch_join(env->unit, &scene, 1);
    return graft_scorer_apply(&agent->scorer, &tape, &batch).log_p->value;
}

/* The same rule at the same location has the same probability whatever the rules' order. */
CHECK_CASE(test_order_of_rules)
{
    fixture *f = open_fixture(env, "resnet8");
    graft_candidates *agent = open_agent(env, 1, 1);
    const graft_xfers reversed = reverse_rules(env, &f->by_prices->xfers);
    graft_environment engine;
    graft_observer observer;
    graft_scene scenes[2];
    uint32_t compared = 0;
    stir(agent);
    open_engine(f, &reversed, graft_estimator_price(&f->estimating), &engine, &observer);
    CHECK_OK(graft_scene_take(env, env->life, &f->observer, false, &scenes[0]));
    CHECK_OK(graft_scene_take(env, env->life, &observer, false, &scenes[1]));
    assert_int_equal(scenes[0].count, scenes[1].count);
    const float *left = score(env, agent, &scenes[0]);
    const float *right = score(env, agent, &scenes[1]);
    for (uint32_t i = 0; i + 1 < scenes[0].count; i++) {
        for (uint32_t j = 0; j + 1 < scenes[1].count; j++) {
            const graft_action x = scenes[0].actions[i];
            const graft_action y = scenes[1].actions[j];
            if (x.xfer == f->by_prices->xfers.count - 1 - y.xfer && x.location == y.location) {
                assert_true(fabsf(left[i] - right[j]) < 1e-4F);
                compared++;
            }
        }
    }
    assert_int_equal(compared, scenes[0].count - 1);
}

/* Nor does it matter how nodes are numbered. */
CHECK_CASE(test_order_of_nodes)
{
    fixture *f = open_fixture(env, "resnet8");
    graft_candidates *agent = open_agent(env, 1, 1);
    graft_scene scene;
    stir(agent);
    CHECK_OK(graft_scene_take(env, env->life, &f->observer, false, &scene));
    graft_scene turned = scene;
    graft_sketch *graph = &turned.graph;
    const uint32_t last = graph->node_count - 1;
    graph->nodes = GRAFT_NEW(env->life, int8_t, (size_t)(last + 1) * GRAFT_SCENE_NODE_FEATURES);
    graph->senders = GRAFT_NEW(env->life, uint32_t, graph->edge_count);
    graph->receivers = GRAFT_NEW(env->life, uint32_t, graph->edge_count);
    turned.member_nodes = GRAFT_NEW(env->life, uint32_t, scene.member_count);
    for (uint32_t n = 0; n <= last; n++) {
        memcpy(&graph->nodes[(size_t)(last - n) * GRAFT_SCENE_NODE_FEATURES],
               &scene.graph.nodes[(size_t)n * GRAFT_SCENE_NODE_FEATURES],
               GRAFT_SCENE_NODE_FEATURES);
    }
    for (uint32_t k = 0; k < graph->edge_count; k++) {
        graph->senders[k] = last - scene.graph.senders[k];
        graph->receivers[k] = last - scene.graph.receivers[k];
    }
    for (uint32_t m = 0; m < scene.member_count; m++) {
        turned.member_nodes[m] = last - scene.member_nodes[m];
    }
    const float *left = score(env, agent, &scene);
    const float *right = score(env, agent, &turned);
    for (uint32_t i = 0; i < scene.count; i++) {
        assert_true(fabsf(left[i] - right[i]) < 1e-4F);
    }
}

/* Equal seeds give equal networks for any number of threads. */
CHECK_CASE(test_same_seed)
{
    fixture *f = open_fixture(env, "dscnn");
    graft_observer *observers[] = {&f->observer};
    graft_candidates *agents[2] = {open_agent(env, 5, 1), open_agent(env, 5, 2)};
    for (uint32_t i = 0; i < 2; i++) {
        graft_candidates_report report;
        CHECK_OK(graft_candidates_update(env, agents[i], observers, 1, &report));
        assert_true(report.transitions > 0);
    }
    const graft_parameters *left = &agents[0]->scorer.parameters;
    assert_memory_equal(left->value, agents[1]->scorer.parameters.value,
                        left->size * sizeof(float));
    assert_int_equal(agents[0]->interactions, agents[1]->interactions);
}

/* Estimates, but a graph is dearer by a tenth for each convolution with an activation. */
static graft_status price_otherwise(graft_env *env, void *context, const graft_graph *graph,
                                    const graft_order *order, double *ns)
{
    const graft_price estimates = graft_estimator_price(context);
    graft_status status = estimates.cost_ns(env, estimates.context, graph, order, ns);
    const double once = *ns;
    for (graft_index i = 0; i < order->count; i++) {
        const graft_node *node = &graph->nodes[order->order[i]];
        if (node->op == GRAFT_OP_conv_bias && node->attrs[GRAFT_ATTR_conv_bias_activation] != 0) {
            *ns += 0.1 * once;
        }
    }
    return status;
}

/* Where the tariff is wrong the agent learns to deviate from it. */
CHECK_CASE(test_it_learns)
{
    fixture *f = open_fixture(env, "dscnn");
    const graft_price price = {.cost_ns = price_otherwise, .context = &f->estimating};
    graft_candidates *agent = open_agent(env, 1, 1);
    graft_environment engine;
    graft_observer observer;
    graft_observer *observers[] = {&observer};
    graft_plan_found before;
    graft_plan_found after;
    open_engine(f, &f->by_prices->xfers, price, &engine, &observer);
    observer.options.sharpness = 0.3; /* What the tariff is sure of is to be tried otherwise too. */
    CHECK_OK(graft_candidates_play(env, env->life, agent, &observer, NULL, &before));
    assert_true(before.cost_ns > 1.2 * engine.first_ns);
    /* How many it takes depends on how a processor's kernels round. */
    after = before;
    for (uint32_t u = 1; u <= 40 && after.cost_ns >= engine.first_ns; u++) {
        graft_candidates_report report;
        CHECK_OK(graft_candidates_update(env, agent, observers, 1, &report));
        if (u % 20 == 0) {
            CHECK_OK(graft_candidates_play(env, env->life, agent, &observer, NULL, &after));
            print_message("by the tariff %.3f of the cost, learnt %.3f by %u updates\n",
                          before.cost_ns / engine.first_ns, after.cost_ns / engine.first_ns, u);
        }
    }
    assert_true(after.cost_ns < engine.first_ns);
}

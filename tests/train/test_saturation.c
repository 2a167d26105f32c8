/* Equality saturation: what an e-graph finds to be equal, and what is taken out of it. */
#include "tests/support/build.h"
#include "tests/support/evaluate.h"
#include "tests/support/priced.h"
#include "tests/support/rows.h"
#include "train/search/egraph.h"
#include "train/search/search.h"

#include <string.h>

enum { RULES_MOST = 3, NODES = 200, SAMPLES = 4 };
static const char *const names[RULES_MOST] = {"a", "b", "c"};
static const graft_apply_options apply = {.weight_bytes_limit = 1 << 20};

static graft_xfers index_rules(graft_env *env, const char *const *texts, uint32_t count)
{
    graft_xfers xfers;
    graft_rule *rules = GRAFT_NEW(env->life, graft_rule, count);
    for (uint32_t i = 0; i < count; i++) {
        rules[i] = rows_parse(env, texts[i]);
    }
    graft_xfers_index(env->life, rules, names, count, &xfers);
    return xfers;
}

/* Applies every rule everywhere, once. */
static void run_round(graft_env *env, graft_egraph *g)
{
    for (uint32_t rule = 0; rule < g->xfers->count; rule++) {
        g->match_count = 0;
        graft_egraph_match(g, rule, NODES);
        for (uint32_t m = 0; m < g->match_count; m++) {
            assert_true(graft_egraph_apply(g, rule, &g->matches[m]));
        }
    }
    CHECK_OK(graft_egraph_rebuild(env, g));
}

static bool are_equal(const graft_egraph *g, graft_index a, graft_index b)
{
    return graft_egraph_class(g, a) == graft_egraph_class(g, b);
}

/* tanh(relu(identity(x))) and tanh(relu(x)): x and its identity are equal by the rule, what is made
 * of them by congruence, and so on. */
CHECK_CASE(test_equal_operands_make_equal_results)
{
    const graft_xfers xfers = index_rules(env, (const char *[]){RULE_DROP_IDENTITY}, 1);
    const graft_environment e = {.xfers = &xfers, .options = {.apply = apply}};
    graft_egraph g;
    const built b = build_text(env->life, "x = input 2 3; a = relu x; b = identity x; b = relu b;"
                                          "s = tanh a; t = tanh b; out s t");
    const graft_index *at = b.at;
    CHECK_OK(graft_egraph_open(env, env->life, b.graph, &e, NODES, &g));
    assert_false(are_equal(&g, at['a'], at['b']));
    run_round(env, &g);
    assert_true(are_equal(&g, at['a'], at['b']));
    assert_true(are_equal(&g, at['s'], at['t']));
    assert_false(are_equal(&g, at['a'], at['s']));
    assert_int_equal(g.step_count, 1);
    run_round(env, &g); /* Nothing new. */
    assert_int_equal(g.step_count, 1);
}

/* a b + b a, of which the products are twins before any rule is applied; and a match of a rule that
 * reads the same twice, where the graph has them apart. */
CHECK_CASE(test_patterns_match_classes)
{
    const graft_xfers xfers =
        index_rules(env, (const char *[]){"sub(mul(a, b), mul(a, b)) = mul(sub(a, a), b)"}, 1);
    const graft_environment e = {.xfers = &xfers, .options = {.apply = apply}};
    graft_egraph g;
    const built b = build_text(env->life, "x = input 2 3; y = input 2 3; p = mul x y; q = mul y x;"
                                          "z = sub p q; out z");
    const graft_index x = b.at['x'];
    CHECK_OK(graft_egraph_open(env, env->life, b.graph, &e, NODES, &g));
    assert_true(are_equal(&g, b.at['p'], b.at['q']));
    run_round(env, &g);
    assert_int_equal(g.step_count, 2); /* Either operand is a. */
    const graft_node like = {.op = GRAFT_OP_sub, .input_count = 2, .output_count = 1};
    assert_true(graft_egraph_find(&g, &like, (graft_index[]){x, x}) != GRAFT_NONE);
}

/* -------------------------------------------------------------------- search */

/* A node costs 20, a product 100; folding alone makes an operator that costs 100. */
static graft_status price_graph(graft_env *env, void *context, const graft_graph *graph,
                                const graft_order *order, double *ns)
{
    (void)env;
    (void)context;
    *ns = 0;
    for (graft_index i = 0; i < order->count; i++) {
        const graft_node *node = &graph->nodes[order->order[i]];
        bool folded = node->op == GRAFT_OP_conv_bias &&
                      node->attrs[GRAFT_ATTR_conv_bias_activation] == GRAFT_ACT_NONE;
        bool moves = node->op == GRAFT_OP_split || node->op == GRAFT_OP_concat;
        const double each = node->op == GRAFT_OP_matmul || folded ? 100 : moves ? 1 : 20;
        *ns += node->is_const ? 0 : each;
    }
    return GRAFT_OK;
}

/* Whether the graph found computes what the first one does. */
static void compare_outputs(graft_env *env, const graft_environment *environment)
{
    const graft_state *states[2] = {&environment->first, &environment->state};
    uint32_t compared = 0;
    for (uint64_t sample = 0; sample < SAMPLES; sample++) {
        GRAFT_SCOPED(env->life);
        evaluate_tensors tensors[2];
        for (uint32_t k = 0; k < 2; k++) {
            tensors[k] = evaluate_graph(env->life, &states[k]->graph, &states[k]->order, sample);
        }
        if (tensors[0] != NULL && tensors[1] != NULL) {
            compared++;
            assert_true(evaluate_outputs_equal(&states[0]->graph, tensors[0], &states[1]->graph,
                                               tensors[1]));
        }
    }
    assert_true(compared > 0);
}

static void search(graft_env *env, const graft_graph *graph, const graft_xfers *xfers,
                   graft_environment *environment, graft_plan_found *found)
{
    const graft_environment_options options = {
        .price = {.cost_ns = price_graph}, .location_limit = 200, .step_limit = 40, .apply = apply};
    const graft_search_choice choice = {.name = "saturation"};
    CHECK_OK(graft_environment_open(env, env->life, graph, xfers, &options, environment));
    CHECK_OK(graft_search_saturation(env, env->life, environment, &choice, found));
    CHECK_OK(graft_plan_replay(env, environment, found->steps, found->step_count));
    assert_true(environment->cost_ns == found->cost_ns);
    compare_outputs(env, environment);
}

/* conv, scale_shift, relu, identity: 80, and 20 when all is one, over a hill of 140. */
CHECK_CASE(test_extraction_goes_over_a_hill)
{
    const char *const texts[] = {RULE_FOLD_SCALE, RULE_FUSE_RELU, RULE_DROP_IDENTITY};
    const graft_xfers xfers = index_rules(env, texts, 3);
    graft_environment environment;
    graft_plan_found found;
    const built b = build_text(env->life, "y = input 1 3 6 6; " BUILD_BLOCK BUILD_BLOCK "out y");
    search(env, b.graph, &xfers, &environment, &found);
    assert_true(environment.first_ns == 2 * 80.0);
    assert_true(found.cost_ns == 2 * 20.0);
    assert_int_equal(found.step_count, 2 * 3);
}

/* Four products of one input: a rule of two roots merges them, and what it merged. */
CHECK_CASE(test_products_of_one_input_are_merged)
{
    const graft_xfers xfers = index_rules(env, (const char *[]){RULE_MERGE_MATMUL}, 1);
    graft_environment environment;
    graft_plan_found found;
    built b = build_text(env->life, "x = input 2 3");
    for (uint32_t i = 0; i < 4; i++) {
        build_more(&b, "w = weight 3 2; y = matmul x w; out y");
    }
    search(env, b.graph, &xfers, &environment, &found);
    assert_true(environment.first_ns == 4 * 100.0);
    assert_true(found.cost_ns == 100.0 + 3);
    assert_int_equal(found.step_count, 3);
}

/* Prices of a processor, all rules: the same plan twice, as cheap as the best that is known. */
CHECK_CASE(test_a_model_with_recorded_costs)
{
    priced_model *p = priced_open(env, "autoencoder", &(priced_options){.step_limit = 200});
    const graft_search_choice choice = {.name = "saturation", .cost = p->cost};
    graft_environment *e = &p->environment;
    graft_plan_found greedy;
    graft_plan_found found[2];
    CHECK_OK(graft_search_greedy(env, env->life, e, NULL, &greedy));
    CHECK_OK(graft_search_saturation(env, env->life, e, &choice, &found[0]));
    CHECK_OK(graft_search_saturation(env, env->life, e, &choice, &found[1]));
    assert_true(found[0].cost_ns <= greedy.cost_ns);
    assert_int_equal(found[0].step_count, found[1].step_count);
    assert_memory_equal(found[0].steps, found[1].steps,
                        found[0].step_count * sizeof found[0].steps[0]);
    CHECK_OK(graft_plan_replay(env, e, found[0].steps, found[0].step_count));
    assert_true(e->cost_ns == found[0].cost_ns);
    compare_outputs(env, e);
    e->options.deadline_ns = 1; /* It has passed. */
    CHECK_OK(graft_search_saturation(env, env->life, e, &choice, &found[1]));
    assert_true(found[1].cut);
    assert_int_equal(found[1].step_count, 0);
}

/* Guided search and its ledger, by recorded costs. */
#include "models/zoo.h"
#include "tests/support/build.h"
#include "tests/support/priced.h"
#include "train/search/guided.h"
#include "train/search/ledger.h"
#include "train/tariff/tariff.h"

#include <math.h>
#include <string.h>

enum { STEPS = 200, GRAPHS = 400 };

static const priced_options priced = {.step_limit = STEPS};

static graft_plan_found search(graft_env *env, priced_model *f, const graft_tariff *tariff,
                               uint64_t graphs, uint64_t seed)
{
    graft_plan_found found;
    const graft_search_choice options = {
        .tariff = tariff, .cost = f->cost, .graphs = graphs, .temperature = 1.0, .seed = seed};
    f->asked = 0;
    CHECK_OK(graft_search_guided(env, env->unit, &f->environment, &options, &found));
    return found;
}

/* From nothing: the table is learnt from the graphs that are priced. As good as greedy search, and
 * what is counted is what was asked. */
CHECK_CASE(test_from_nothing)
{
    priced_model *f = priced_open(env, "dscnn", &priced);
    const graft_tariff nothing = {.row_count = 0};
    graft_plan_found greedy;
    CHECK_OK(graft_search_greedy(env, env->unit, &f->environment, NULL, &greedy));
    graft_plan_found found = search(env, f, &nothing, GRAPHS, 1);
    assert_true(greedy.evaluations > GRAPHS);
    assert_true(found.evaluations <= GRAPHS);
    assert_true(found.evaluations == f->asked);
    assert_true(found.cost_ns <= greedy.cost_ns * 1.0001);
    CHECK_OK(graft_plan_replay(env, &f->environment, found.steps, found.step_count));
    assert_true(fabs(f->environment.cost_ns - found.cost_ns) < 1e-6);
}

/* The same seed, the same plan; few graphs, and none but the first. */
CHECK_CASE(test_budget)
{
    priced_model *f = priced_open(env, "resnet8", &priced);
    const graft_tariff nothing = {.row_count = 0};
    graft_plan_found one = search(env, f, &nothing, 60, 3);
    graft_plan_found two = search(env, f, &nothing, 60, 3);
    assert_true(one.evaluations == 60);
    assert_int_equal(one.step_count, two.step_count);
    assert_memory_equal(one.steps, two.steps, one.step_count * sizeof one.steps[0]);
    graft_plan_found none = search(env, f, &nothing, 1, 3);
    assert_true(none.evaluations == 1);
    assert_int_equal(none.step_count, 0);
    assert_true(none.cost_ns == f->environment.first_ns);
}

/* What the ledger says of a graph is what it was told, also where the tariff said another thing. */
CHECK_CASE(test_ledger)
{
    priced_model *f = priced_open(env, "resnet8", &priced);
    const graft_state *first = &f->environment.first;
    const graft_tariff nothing = {.row_count = 0};
    graft_ledger ledger;
    graft_estimated estimated;
    graft_ledger_open(env->unit, &nothing, &ledger);
    CHECK_OK(graft_ledger_note(env, &ledger, f->cost, first));
    assert_null(graft_tariff_check(&ledger.tariff));
    graft_estimator estimator = build_estimator(env->unit, &ledger.tariff, &first->graph.limits);
    CHECK_OK(graft_estimate(&estimator, &first->graph, &first->order, &estimated));
    assert_int_equal(estimated.fallback_nodes, 0);
    assert_true(fabs((double)estimated.cost / GRAFT_COST_UNITS / f->environment.first_ns - 1.0) <
                0.01);

    /* A row that was given ten times the cost comes nearer with every graph. */
    uint16_t *given = GRAFT_NEW(env->unit, uint16_t, ledger.row_count);
    graft_tariff dear = ledger.tariff;
    uint32_t row = 0;
    while (ledger.values[row] == 0) {
        row++;
    }
    memcpy(given, ledger.values, ledger.row_count * sizeof given[0]);
    given[row] =
        graft_tariff_encode(10.0 * (double)graft_tariff_value(given[row]) / GRAFT_COST_UNITS);
    dear.values = given;
    graft_ledger second;
    graft_ledger_open(env->unit, &dear, &second);
    uint16_t before = second.values[row];
    for (uint32_t i = 0; i < 20; i++) {
        CHECK_OK(graft_ledger_note(env, &second, f->cost, first));
        assert_true(second.values[row] < before);
        before = second.values[row];
    }
    assert_true(graft_tariff_value(before) < 4 * graft_tariff_value(ledger.values[row]));
}

CHECK_CASE(test_blur)
{
    const uint32_t keys[] = {5, 9, 70};
    const uint16_t values[] = {8000, 0, 9000};
    const graft_tariff given = {.keys = keys, .values = values, .row_count = 3};
    const graft_blur blurs[] = {
        {1, 0.1, false},
        {2, 0.1, true }
    };
    graft_ledger ledger;
    graft_ledger_open(env->unit, &given, &ledger);
    graft_ledger_blur(&ledger, blurs, 2);
    uint16_t first = ledger.values[0];
    assert_true(first != 8000 && first > 7000 && first < 9000);
    assert_int_equal(ledger.values[1], 0); /* What costs nothing goes on so. */
    graft_ledger_blur(&ledger, blurs, 1);
    assert_true(ledger.values[0] != first);
    graft_ledger_blur(&ledger, blurs, 2);
    assert_int_equal(ledger.values[0], first);
    graft_ledger_blur(&ledger, NULL, 0);
    assert_memory_equal(ledger.values, values, sizeof values);
}

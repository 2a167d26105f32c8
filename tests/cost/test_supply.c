/* Operators at sizes drawn at random: they infer, are what they were but for sizes, and are the
 * same whenever they are drawn. */
#include "cost/plan/supply.h"
#include "tests/support/check.h"
#include "tests/support/kernels.h"

#include <string.h>

enum { DRAWS = 4000 };

static void check_varied(const graft_signature *from, const graft_signature *to)
{
    graft_shape outputs[GRAFT_MAX_OUTPUTS];
    CHECK_OK(graft_signature_outputs(to, outputs));
    assert_int_equal(to->op, from->op);
    assert_int_equal(to->const_mask, from->const_mask);
    assert_int_equal(to->distance, from->distance);
    assert_memory_equal(to->in_layouts, from->in_layouts, sizeof to->in_layouts);
    assert_false(graft_signature_equal(from, to));
    assert_true(graft_signature_bytes(to) <= UINT64_C(1) << 26);
    for (uint32_t i = 0; i < from->input_count; i++) {
        assert_int_equal(to->inputs[i].rank, from->inputs[i].rank);
        for (uint32_t k = 0; k < from->inputs[i].rank; k++) {
            int32_t was = from->inputs[i].dims[k];
            assert_true(to->inputs[i].dims[k] >= 1);
            assert_true(was % 16 != 0 || to->inputs[i].dims[k] % 16 == 0);
            assert_true(was != 1 || to->inputs[i].dims[k] == 1);
        }
    }
}

CHECK_CASE(test_variety)
{
    graft_database *database = NULL;
    uint32_t drawn = 0;
    uint32_t operators = 0;
    bool met[GRAFT_OP_COUNT] = {false};
    CHECK_OK(graft_database_open(env, NULL, &database));
    CHECK_OK(graft_database_merge(env, database, "rules/costs/intel-xeon-6-207-avx512.costs"));
    graft_rng rng = check_rng(4);
    for (uint32_t i = 0; i < DRAWS; i++) {
        graft_signature varied;
        const graft_signature *from =
            &graft_database_at(database, graft_rng_below(&rng, graft_database_count(database)))
                 ->signature;
        graft_rng once = rng;
        graft_rng again = rng;
        if (graft_signature_vary(from, &rng, &varied)) {
            graft_signature same;
            check_varied(from, &varied);
            assert_true(graft_signature_vary(from, &once, &same));
            assert_true(graft_signature_equal(&same, &varied));
            operators += !met[varied.op];
            met[varied.op] = true;
            drawn++;
        } else {
            assert_false(graft_signature_vary(from, &again, &varied));
        }
    }
    print_message("%u of %d drawn, of %u operators\n", drawn, DRAWS, operators);
    assert_true(drawn > DRAWS / 3 && operators >= 15);
    graft_database_close(database);
}

/* What has no sizes, or is no operator, is left alone. */
CHECK_CASE(test_nothing_to_vary)
{
    graft_signature factor;
    graft_signature varied;
    graft_rng rng = check_rng(1);
    memset(&factor, 0, sizeof factor);
    factor.op = GRAFT_COST_FACTOR;
    assert_false(graft_signature_vary(&factor, &rng, &varied));
}

/* Of ninety-nine records of one operator and one of another the latter is drawn on half of the odd
 * turns, wherever it stands. */
CHECK_CASE(test_draw)
{
    enum { RECORDS = 100, TURNS = 2000, LONELY = 37 };
    graft_signature list[RECORDS];
    uint32_t met[2] = {0};
    graft_rng rng = check_rng(5);
    memset(list, 0, sizeof list);
    for (uint32_t i = 0; i < RECORDS; i++) {
        list[i].op = i == LONELY ? GRAFT_OP_relu : GRAFT_OP_conv;
    }
    for (uint64_t turn = 0; turn < 2 * TURNS; turn++) {
        met[turn % 2] += graft_supply_draw(list, RECORDS, turn, &rng) == &list[LONELY];
    }
    assert_in_range(met[0], 1, TURNS / 40);
    assert_in_range(met[1], TURNS * 45 / 100, TURNS * 55 / 100);
}

/* Two numbers can become one, and three to eighteen: once each, however many are wanted. */
CHECK_CASE(test_different)
{
    const int32_t attrs[GRAFT_MAX_ATTRS] = {0};
    const graft_shape shape = {.dims = {2}, .rank = 1, .dtype = GRAFT_DTYPE_F32};
    const graft_cost_entry entry = {.median_ns = 10.0, .rounds = 5};
    graft_device *device = check_device_open(env);
    graft_database *from = NULL;
    graft_cost_statistics statistics;
    uint32_t count = 0;
    const graft_signature s =
        check_signature(env, GRAFT_OP_relu, attrs, &shape, 0, GRAFT_LAYOUT_ROW);
    CHECK_OK(graft_database_open(env, NULL, &from));
    graft_database_select(from, graft_device_name(device), graft_device_library(device));
    graft_database_add(from, &s, &entry);
    graft_cost *cost = check_cost_open(env, device, NULL);
    CHECK_OK(graft_cost_supply_random(env, cost, from, 40, 1, &count));
    assert_in_range(count, 2, 17);
    graft_cost_statistics_of(cost, &statistics);
    assert_int_equal(statistics.entries, count + 1); /* And the anchor. */
    graft_database_close(from);
}

/* Tuning: what pays for one model stays, no row more than that, and nothing that others lose by. */
#include "tests/support/check.h"
#include "train/tariff/tuning.h"

#include <math.h>
#include <string.h>

enum { ROWS = 6, SHARED = 1, FREE = 5 };

/* Model 0 meets rows 0 to 3 and the free one, model 1 rows 1 and 4. */
typedef struct {
    uint16_t values[ROWS];
    uint32_t keys[ROWS];
    uint16_t guesses[ROWS];
    uint8_t ops[ROWS];
    uint64_t met[ROWS];
    graft_tariff measured;
    graft_leaning_rows rows;
    double loss_of_other; /* Of model 1, where the row that both meet has moved. */
    uint32_t calls;
    uint32_t fails_at;
} fixture;

static void open_fixture(fixture *f)
{
    *f = (fixture){
        .values = {10000,           20000,           30000,           15000,        9000,         0   },
        .keys = {1,               2,               3,               4,            5,            6   },
        .guesses = {11000,           19000,           33000,           15500,        9500,         4000},
        .ops = {GRAFT_OP_matmul, GRAFT_OP_matmul, GRAFT_OP_matmul, GRAFT_OP_add, GRAFT_OP_add,
                   GRAFT_OP_add                                                                       },
        .met = {1,               3,               1,               1,            2,            1   },
    };
    f->measured = (graft_tariff){.keys = f->keys, .values = f->values, .row_count = ROWS};
    f->rows = (graft_leaning_rows){
        .measured = &f->measured, .guesses = f->guesses, .ops = f->ops, .met = f->met};
}

/* The first model's graph is cheaper once row 0 has gone half of the way to its guess. */
static graft_status judge(graft_env *env, void *context, const graft_tariff *tariff, uint32_t model,
                          double *part)
{
    fixture *f = context;
    if (f->fails_at > 0 && ++f->calls == f->fails_at) {
        return GRAFT_FAIL(env, GRAFT_IO, "no more");
    }
    if (model == 0) {
        *part = tariff->values[0] >= 10500 ? 0.8 : 0.9;
    } else {
        *part = tariff->values[SHARED] != f->values[SHARED] ? 0.9 + f->loss_of_other : 0.9;
    }
    return GRAFT_OK;
}

static const double aims[] = {0.0, 0.0};
static const graft_tuning_options options = {
    .models = 3, .blurs = 0, .aims = aims, .blurs_most = 16, .least = 1e-4, .seed = 1};

static uint32_t tune(graft_env *env, fixture *f, graft_tariff *tariff)
{
    const graft_tuning_judge judging = {judge, f};
    uint32_t tuned = 0;
    env->verbosity = 0;
    *tariff = f->measured;
    CHECK_OK(graft_tuning_search(env, &f->rows, &judging, &options, tariff, &tuned));
    return tuned;
}

CHECK_CASE(test_only_what_pays_moves)
{
    fixture f;
    graft_tariff tariff;
    open_fixture(&f);
    f.loss_of_other = 0.5;
    assert_int_equal(tune(env, &f, &tariff), 1);
    assert_true(tariff.values[0] >= 10500);
    for (uint32_t i = 1; i < ROWS; i++) {
        assert_int_equal(tariff.values[i], f.values[i]);
    }
    assert_int_equal(f.values[0], 10000); /* The rows that were given are as they were. */
}

/* Both models meet every row: what one gains is less than what the other loses. */
static graft_status judge_rivals(graft_env *env, void *context, const graft_tariff *tariff,
                                 uint32_t model, double *part)
{
    const fixture *f = context;
    const bool moved = memcmp(tariff->values, f->values, sizeof f->values) != 0;
    (void)env;
    *part = !moved ? 0.9 : model == 0 ? 0.8 : 0.95 + f->loss_of_other;
    return GRAFT_OK;
}

CHECK_CASE(test_others_count)
{
    fixture f;
    open_fixture(&f);
    const graft_tuning_judge judging = {judge_rivals, &f};
    uint32_t tuned = 0;
    graft_tariff tariff = f.measured;
    env->verbosity = 0;
    f.loss_of_other = HUGE_VAL;
    CHECK_OK(graft_tuning_search(env, &f.rows, &judging, &options, &tariff, &tuned));
    assert_int_equal(tuned, 0);
    assert_memory_equal(tariff.values, f.values, sizeof f.values);
    f.loss_of_other = 0.0; /* Half of what the first one gains. */
    CHECK_OK(graft_tuning_search(env, &f.rows, &judging, &options, &tariff, &tuned));
    assert_int_equal(tuned, 1);
    assert_int_equal(tariff.values[FREE], 0); /* A view stays one. */
}

CHECK_CASE(test_same_again_and_failing)
{
    fixture f;
    graft_tariff first;
    graft_tariff second;
    uint32_t tuned = 0;
    open_fixture(&f);
    (void)tune(env, &f, &first);
    (void)tune(env, &f, &second);
    assert_memory_equal(first.values, second.values, sizeof f.values);
    const graft_tuning_judge judging = {judge, &f};
    f.fails_at = 5;
    check_failed(env, graft_tuning_search(env, &f.rows, &judging, &options, &second, &tuned),
                 GRAFT_IO, "no more");
}

/* Only the blurs count: no leaning leads there. */
static graft_status judge_blurred(graft_env *env, void *context, const graft_tariff *tariff,
                                  uint32_t model, double *part)
{
    const fixture *f = context;
    (void)env;
    *part = model == 1 && tariff->values[4] != f->values[4] && tariff->values[4] < 9000 ? 0.8 : 0.9;
    return GRAFT_OK;
}

CHECK_CASE(test_more_is_tried_of_who_is_behind)
{
    fixture f;
    open_fixture(&f);
    const double reached[] = {0.9, 0.9};
    const graft_tuning_judge judging = {judge_blurred, &f};
    graft_tuning_options few = options;
    graft_tariff tariff = f.measured;
    uint32_t tuned = 0;
    env->verbosity = 0;
    few.aims = reached;
    CHECK_OK(graft_tuning_search(env, &f.rows, &judging, &few, &tariff, &tuned));
    assert_int_equal(tuned, 0); /* No blur at all. */
    few.aims = aims;
    CHECK_OK(graft_tuning_search(env, &f.rows, &judging, &few, &tariff, &tuned));
    assert_int_equal(tuned, 1);
    assert_true(tariff.values[4] < 9000);
}

/* Leaning: which rows move, by how much, and that the search finds the parts that are the best. */
#include "tests/support/check.h"
#include "train/tariff/leaning.h"

#include <math.h>

enum { ROWS = 4 };

/* Two forms of one operator, one of another, and one that costs nothing. */
typedef struct {
    uint16_t values[ROWS];
    uint32_t keys[ROWS];
    uint16_t guesses[ROWS];
    uint8_t ops[ROWS];
    graft_tariff measured;
    graft_leaning_rows rows;
    uint32_t calls;
    uint32_t interrupted_at;
} fixture;

static void open_fixture(fixture *f)
{
    *f = (fixture){
        .values = {10000,           20000,           30000,        0           },
        .keys = {1,               2,               3,            4           },
        .guesses = {11000,           19000,           33000,        5000        },
        .ops = {GRAFT_OP_matmul, GRAFT_OP_matmul, GRAFT_OP_add, GRAFT_OP_add},
    };
    f->measured = (graft_tariff){.keys = f->keys, .values = f->values, .row_count = ROWS};
    f->rows = (graft_leaning_rows){.measured = &f->measured, .guesses = f->guesses, .ops = f->ops};
    f->rows.counts[GRAFT_OP_matmul] = 2;
    f->rows.counts[GRAFT_OP_add] = 2;
}

CHECK_CASE(test_rows_move)
{
    fixture f;
    uint16_t values[ROWS];
    graft_leaning leaning = {.parts = {0}};
    open_fixture(&f);
    graft_tariff same = graft_leaning_apply(&f.rows, &leaning, values);
    assert_memory_equal(same.values, f.values, sizeof values);
    leaning.parts[GRAFT_OP_matmul] = 30;
    graft_tariff leant = graft_leaning_apply(&f.rows, &leaning, values);
    assert_int_equal(leant.values[0], 10300);
    assert_int_equal(leant.values[1], 19700);
    assert_int_equal(leant.values[2], 30000);
    assert_int_equal(leant.values[3], 0);
    leaning.parts[GRAFT_OP_add] = 100;
    leant = graft_leaning_apply(&f.rows, &leaning, values);
    assert_int_equal(leant.values[2], 33000);
    assert_int_equal(leant.values[3], 0); /* A view stays one. */
    assert_ptr_equal(leant.keys, f.keys);
}

/* The best is where the first row is at 10600 and the third as measured. */
static graft_status judge_distance(graft_env *env, void *context, const graft_tariff *tariff,
                                   double *loss)
{
    fixture *f = context;
    if (f->interrupted_at > 0 && f->calls == f->interrupted_at) {
        return GRAFT_FAIL(env, GRAFT_IO, "no more");
    }
    f->calls++;
    *loss = fabs((double)tariff->values[0] - 10600.0) + fabs((double)tariff->values[2] - 30000.0);
    return GRAFT_OK;
}

static graft_leaning search(graft_env *env, fixture *f, graft_leaning_judge judge, double least)
{
    graft_leaning leaning;
    env->verbosity = 0;
    CHECK_OK(graft_leaning_search(env, &f->rows, &judge, least, &leaning));
    return leaning;
}

CHECK_CASE(test_search)
{
    fixture f;
    const graft_leaning_judge judge = {judge_distance, &f};
    open_fixture(&f);
    graft_leaning leaning = search(env, &f, judge, 0.5);
    assert_int_equal(leaning.parts[GRAFT_OP_matmul], 60);
    assert_int_equal(leaning.parts[GRAFT_OP_add], 0);
    assert_int_equal(f.calls, 5 + 2 * 4); /* Starts, and the other parts of two operators. */
    leaning = search(env, &f, judge, 1000.0);
    assert_int_equal(leaning.parts[GRAFT_OP_matmul], 0); /* Not worth it. */
}

/* Either operator alone makes it worse; both together make it best. */
static graft_status judge_together(graft_env *env, void *context, const graft_tariff *tariff,
                                   double *loss)
{
    const fixture *f = context;
    bool first = tariff->values[0] != f->values[0];
    bool second = tariff->values[2] != f->values[2];
    (void)env;
    *loss = first != second ? 2.0 : first ? 0.0 : 1.0;
    return GRAFT_OK;
}

CHECK_CASE(test_start)
{
    fixture f;
    open_fixture(&f);
    const graft_leaning leaning = search(env, &f, (graft_leaning_judge){judge_together, &f}, 0.5);
    assert_int_equal(leaning.parts[GRAFT_OP_matmul], 15);
    assert_int_equal(leaning.parts[GRAFT_OP_add], 15);
}

CHECK_CASE(test_failure)
{
    fixture f;
    graft_leaning leaning;
    const graft_leaning_judge judge = {judge_distance, &f};
    env->verbosity = 0;
    open_fixture(&f);
    f.interrupted_at = 3;
    check_failed(env, graft_leaning_search(env, &f.rows, &judge, 0.5, &leaning), GRAFT_IO,
                 "no more");
}

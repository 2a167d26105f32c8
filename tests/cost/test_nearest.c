/* Times that nobody measured, from the nearest operator that was measured: held against what the
 * recorded devices took for work that is left out. */

#include "cost/database/nearest.h"
#include "cost/measure/clock.h"
#include "tests/support/build.h"
#include "tests/support/kernels.h"

#include <math.h>
#include <string.h>

static graft_signature product(graft_env *env, uint32_t op, int32_t rows, uint32_t distance)
{
    const graft_shape shapes[3] = {SHAPE(rows, 64), SHAPE(64, 64), SHAPE(64)};
    const int32_t attrs[GRAFT_MAX_ATTRS] = {op == GRAFT_OP_matmul_bias ? GRAFT_ACT_RELU
                                                                       : GRAFT_ACT_NONE};
    graft_signature s =
        check_signature(env, op, attrs, shapes, op == GRAFT_OP_matmul ? 2 : 6, GRAFT_LAYOUT_ROW);
    s.distance = (uint8_t)distance;
    return s;
}

static graft_database *open_database(graft_env *env)
{
    graft_database *database = NULL;
    CHECK_OK(graft_database_open(env, NULL, &database));
    graft_database_select(database, "here", "library");
    return database;
}

static void record(graft_database *database, const graft_signature *s, double ns)
{
    const graft_cost_entry entry = {.median_ns = ns,
                                    .rounds = 9,
                                    .source = GRAFT_COST_MEASURED,
                                    .flops = graft_signature_flops(s),
                                    .bytes = graft_signature_bytes(s)};
    graft_database_add(database, s, &entry);
}

/* A line of one nanosecond for every two operations. */
static const graft_roofline half_a_ns = {
    .products = {.ns_per_flop = 0.5, .error = 0.3, .points = 9},
    .others = {.ns_per_flop = 0.5, .error = 0.3, .points = 9},
};

static double estimate(const graft_database *database, const graft_signature *s)
{
    graft_cost_entry entry;
    assert_true(graft_roofline_estimate(&half_a_ns, s->op, graft_signature_flops(s),
                                        graft_signature_bytes(s), &entry));
    graft_nearest_correct(database, &half_a_ns, s, &entry);
    assert_int_equal(entry.source, GRAFT_COST_ESTIMATED);
    return entry.median_ns;
}

/* Fused or not, further away or not: the nearest one of this device counts, whatever else is off by
 * more, and in proportion to the line where sizes differ. */
CHECK_CASE(test_the_nearest_counts)
{
    const graft_signature fused = product(env, GRAFT_OP_matmul_bias, 1, GRAFT_DISTANCE_OWN);
    const graft_signature far = product(env, GRAFT_OP_matmul, 1, GRAFT_DISTANCE_MEMORY);
    const graft_signature twice = product(env, GRAFT_OP_matmul, 2, GRAFT_DISTANCE_OWN);
    const graft_signature plain = product(env, GRAFT_OP_matmul, 1, GRAFT_DISTANCE_OWN);
    double flops = (double)graft_signature_flops(&plain);
    graft_database *database = open_database(env);
    assert_true(estimate(database, &plain) == graft_cost_round(0.5 * flops)); /* The line alone. */
    graft_database_select(database, "elsewhere", "library");
    record(database, &fused, 1e6);
    graft_database_select(database, "here", "library");
    record(database, &far, 4.0 * flops);
    assert_true(estimate(database, &plain) == graft_cost_round(4.0 * flops));
    record(database, &twice, 6.0 * flops); /* An octave away, where memory is five steps. */
    assert_true(estimate(database, &plain) == graft_cost_round(3.0 * flops));
    record(database, &fused, 2.0 * (double)graft_signature_flops(&fused));
    assert_true(estimate(database, &plain) == graft_cost_round(2.0 * flops));
    graft_database_close(database);
}

/* ----------------------------------------------------------- recorded devices */

static uint64_t hash_work(const graft_signature *s)
{
    graft_signature work = {.op = 0};
    uint32_t inputs = graft_signature_is_product(s) ? 2 : s->input_count;
    memcpy(work.inputs, s->inputs, inputs * sizeof(work.inputs[0]));
    work.op = graft_signature_is_product(s) ? GRAFT_OP_conv : s->op;
    return graft_signature_hash(&work, 1);
}

static bool is_plain(const graft_database *database, const graft_database_record *record)
{
    return record->signature.op != GRAFT_COST_FACTOR &&
           !graft_signature_is_quantised(&record->signature) &&
           record->entry.source == GRAFT_COST_MEASURED && graft_database_selects(database, record);
}

/* Every fifth work, an operator on its operands however fused, laid out and placed, is left out.
 * What is estimated for it then has less than 40 % of the error of the line alone, and is within
 * 10 % for most. */
static void leave_out(graft_env *env, const char *path)
{
    enum { PART = 5 };
    GRAFT_SCOPED(env->scratch);
    graft_database *all = NULL;
    graft_database *kept = open_database(env);
    graft_roofline roofline;
    CHECK_OK(graft_database_open(env, path, &all));
    uint32_t total = graft_database_count(all);
    const graft_database_record *some = graft_database_at(all, total / 2);
    graft_database_select(all, some->device, some->library);
    graft_database_select(kept, some->device, some->library);
    const graft_database_record **left_out =
        GRAFT_NEW(env->scratch, const graft_database_record *, total);
    double *of_line = GRAFT_NEW(env->scratch, double, total);
    double *of_nearest = GRAFT_NEW(env->scratch, double, total);
    uint32_t count = 0;
    for (uint32_t i = 0; i < total; i++) {
        const graft_database_record *record = graft_database_at(all, i);
        if (is_plain(all, record) && hash_work(&record->signature) % PART == 0) {
            left_out[count++] = record;
        } else if (is_plain(all, record)) {
            graft_database_add(kept, &record->signature, &record->entry);
        }
    }
    graft_roofline_fit(env, kept, &roofline);
    for (uint32_t i = 0; i < count; i++) {
        const graft_signature *s = &left_out[i]->signature;
        graft_cost_entry entry;
        assert_true(graft_roofline_estimate(&roofline, s->op, graft_signature_flops(s),
                                            graft_signature_bytes(s), &entry));
        of_line[i] = fabs(entry.median_ns / left_out[i]->entry.median_ns - 1.0);
        graft_nearest_correct(kept, &roofline, s, &entry);
        of_nearest[i] = fabs(entry.median_ns / left_out[i]->entry.median_ns - 1.0);
    }
    double line = graft_cost_quantile(of_line, count, 0.5);
    double nearest = graft_cost_quantile(of_nearest, count, 0.5);
    print_message("%s: %u of %u left out; median error of the line %.3f, of the nearest %.3f (of a "
                  "tenth %.3f and %.3f)\n",
                  path, count, total, line, nearest, graft_cost_quantile(of_line, count, 0.9),
                  graft_cost_quantile(of_nearest, count, 0.9));
    assert_true(count > 100 && nearest < 0.4 * line && nearest < 0.1);
    graft_database_close(all);
    graft_database_close(kept);
}

CHECK_CASE(test_recorded_devices)
{
    leave_out(env, "rules/costs/amd-epyc-25-17-avx512.costs");
    leave_out(env, "rules/costs/intel-xeon-6-207-avx512.costs");
    leave_out(env, "rules/costs/h200-fp16.costs");
}

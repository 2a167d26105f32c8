/* The anchor and what is timed beside it: looks are held against the record, slices count when both
 * looks are quiet, and else are scaled; what is summed up is the first quartile of quiet rounds. */
#include "cost/measure/anchor.h"
#include "cost/measure/clock.h"
#include "tests/support/check.h"

#include <math.h>

CHECK_CASE(test_looks)
{
    graft_anchor *anchor = NULL;
    graft_cost_entry entry;
    graft_signature signature;
    graft_signature back;
    graft_buffer text = {.arena = env->life};
    CHECK_OK(graft_anchor_open(env, &anchor));
    graft_anchor_measure(anchor, &entry);
    assert_true(entry.median_ns > 0.0 && entry.rounds > 0);
    const double known_ns = entry.median_ns;
    entry.median_ns = known_ns * 1e6; /* It never takes as long as that, however busy it is. */
    graft_anchor_refer(anchor, &entry);
    assert_true(graft_anchor_look(anchor) == 1.0 && graft_anchor_wait(anchor) == 1.0);
    entry.median_ns = known_ns / 1e3;
    graft_anchor_refer(anchor, &entry);
    assert_true(graft_anchor_look(anchor) < 0.01 && graft_anchor_wait(anchor) < 0.01);
    graft_anchor_close(anchor);
    graft_anchor_signature(&signature);
    graft_signature_print(&signature, &text);
    assert_string_equal(text.data, "factor(anchor)");
    CHECK_OK(graft_signature_parse(env, text.data, &back));
    assert_true(graft_signature_equal(&signature, &back));
}

/* A run of 1 us, ten of them a slice, 100 us wanted. */
CHECK_CASE(test_slices)
{
    static const struct {
        double reference_ns;
        uint32_t slices;
        bool quiet;
    } rows[] = {
        {1e9,  10, true },
        {1e-3, 30, false}
    };
    for (uint32_t i = 0; i < 2; i++) {
        graft_anchor *anchor = NULL;
        graft_slices slices;
        double factor = 0.0;
        uint32_t count = 0;
        const graft_cost_entry entry = {.median_ns = rows[i].reference_ns};
        CHECK_OK(graft_anchor_open(env, &anchor));
        graft_anchor_refer(anchor, &entry);
        graft_slices_begin(&slices, anchor, 1e5);
        for (; graft_slices_want_more(&slices); count++) {
            graft_slices_add(&slices, 1e3, 10.0);
        }
        double run_ns = graft_slices_result(&slices, &factor);
        assert_int_equal(count, rows[i].slices);
        assert_int_equal(factor == 1.0, rows[i].quiet);
        assert_true(fabs(run_ns - 1e3 * factor) <= 1e-6 * run_ns);
        graft_anchor_close(anchor);
    }
}

CHECK_CASE(test_summary)
{
    /* Nine quiet rounds, and three of a busy machine that would be the fastest. */
    const double samples[12] = {9, 1, 5, 7, 3, 8, 2, 6, 4, 0.1, 0.2, 0.3};
    const double factors[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 0.5, 0.6, 0.7};
    double first = 0.0;
    double spread = 0.0;
    assert_int_equal(graft_anchor_quiet(factors, 12), 9);
    assert_int_equal(graft_anchor_summarise(env->scratch, samples, factors, 12, &first, &spread),
                     9);
    assert_true(first == 3.0 && spread == 4.0);
    assert_int_equal(
        graft_anchor_summarise(env->scratch, samples + 8, factors + 8, 4, &first, &spread),
        4); /* All that there are. */
    assert_int_equal(graft_anchor_summarise(env->scratch, samples, factors, 0, &first, &spread), 0);
    assert_true(isinf(first));
}

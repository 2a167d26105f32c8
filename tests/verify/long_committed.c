/* The committed rules at thousands of instances that follow their preconditions, and at thousands
 * past the bounds of their sweeps: none may differ. Independent of the samples that the rules were
 * made with. */
#include "graph/rule/ruleprint.h"
#include "tests/support/beyond.h"
#include "tests/support/check.h"
#include "tests/support/rows.h"
#include "verify/sweep/cover.h"
#include "verify/sweep/sweep.h"

enum { POINTS = 1500, BEYOND = 4000 };

CHECK_CASE(test_committed_rules)
{
    graft_sweeper *sweeper = GRAFT_NEW(env->life, graft_sweeper, 1);
    const graft_ruleset set = rows_committed(env);
    uint32_t refuted = 0;
    graft_sweep_open(sweeper);
    for (uint32_t i = 0; i < set.count; i++) {
        GRAFT_SCOPED(env->unit);
        const graft_rule *rule = &set.entries[i].rule;
        const graft_domain_options options = {
            .points = POINTS, .attempts = POINTS * 300, .seed = 9};
        graft_sweep_result result;
        graft_domain domain = graft_domain_find(env, env->unit, rule, &options);
        graft_sweep_domain(env, sweeper, rule, &domain, 2, &result);
        if (!result.refuted) {
            const graft_rule_entry *e = &set.entries[i];
            graft_point *points = NULL;
            assert_true(graft_cover_unpack(env->unit, rule, e->cover_points, e->cover_bytes,
                                           e->cover, &points));
            graft_beyond_find(env->unit, rule, points, e->cover, BEYOND, &domain);
            graft_sweep_domain(env, sweeper, rule, &domain, 2, &result);
        }
        if (result.refuted) {
            print_message("# %s: %s at %s\n", set.entries[i].name,
                          graft_rule_print_line(env->unit, rule),
                          graft_point_print(env->unit, rule, &result.counterexample.point));
            refuted++;
        }
    }
    assert_int_equal(refuted, 0);
}

/* Random graphs over all operators, rewritten by true rules: every promise of the engine about an
 * application, and the same outputs to the last residue. False rules show that a difference would
 * be seen. `make test-long` does a million of them. */
#include "graph/rule/ruleprint.h"
#include "tests/support/check.h"
#include "tests/support/known_rules.h"
#include "tests/support/rewriting.h"

#include <string.h>

#ifndef BUDGET
#define BUDGET 8000
#endif

CHECK_CASE(test_known_rules)
{
    known_rules known = known_rules_true(env, env->life);
    rewriting_options options = {known.rules, known.count, 1, BUDGET};
    rewriting_report report;
    rewriting_check(env, &options, &report);
    for (uint32_t i = 0; i < known.count; i++) {
        if (report.applied[i] == 0) {
            fail_msg("never applied: %s", graft_rule_print_line(env->unit, &known.rules[i]));
        }
    }
    for (uint32_t op = 1; op < GRAFT_OP_COUNT; op++) {
        if (report.operators[op] < 100) {
            fail_msg("%s is rarely drawn", graft_op(op)->name);
        }
    }
    /* What the checks are for has happened. */
    assert_true(report.full_count > BUDGET / 100 && report.refused_count > BUDGET / 100);
    assert_true(report.skipped_count < BUDGET / 100);
}

/* The rules that the verifier has accepted. */
CHECK_CASE(test_proved_rules)
{
    known_rules proved = known_rules_proved(env);
    rewriting_options options = {proved.rules, proved.count, 2, BUDGET};
    rewriting_report report;
    rewriting_check(env, &options, &report);
}

/* One false rule among the true ones is caught with the same budget, and its graph becomes small.
 */
CHECK_CASE(test_false_rules_are_caught)
{
    known_rules truths = known_rules_true(env, env->life);
    known_rules lies = known_rules_false(env, env->life);
    graft_rule *rules = GRAFT_NEW(env->life, graft_rule, truths.count + 1);
    memcpy(rules, truths.rules, truths.count * sizeof *rules);
    for (uint32_t i = 0; i < lies.count; i++) {
        rules[truths.count] = lies.rules[i];
        rewriting_options options = {rules, truths.count + 1, 10 + i, BUDGET};
        rewriting_report report;
        rewriting_run(env, &options, &report);
        const char *line = graft_rule_print_line(env->unit, &lies.rules[i]);
        print_message("# after %llu applications, %u nodes: %s\n",
                      (unsigned long long)report.application_count, report.failure_nodes, line);
        if (report.failure == NULL) {
            fail_msg("not caught: %s", line);
        }
        bool named = report.failure != NULL && strstr(report.failure, line) != NULL;
        assert_true(named && strstr(report.failure, "the graphs compute different") != NULL);
        assert_true(report.failure_nodes <= lies.rules[i].source.node_count + 2u);
    }
}

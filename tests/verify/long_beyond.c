/* The committed rules past the bounds of their sweeps: all at instances like those of their
 * certificates (verify/sweep/beyond.h), and those that are not proved for all sizes once more by the
 * engine itself, which rewrites random graphs that both are run in binary64 (witness.h). A rule
 * that is false there may not ship, whatever its level says. */
#include "graph/rule/rulefile.h"
#include "graph/rule/ruleprint.h"
#include "tests/support/check.h"
#include "tests/support/witness.h"
#include "verify/sweep/beyond.h"
#include "verify/sweep/cover.h"
#include "verify/sweep/sweep.h"

#include <stdlib.h>

enum { POINTS = 4000, ATTEMPTS = 200000, ENOUGH = 3000 };

static void read_set(graft_env *env, graft_ruleset *set)
{
    const char *path = getenv("RULES");
    if (graft_rulefile_read(env, env->life, path == NULL ? "rules/graft.rules" : path, set) !=
        GRAFT_OK) {
        fail_msg("%s", env->message);
    }
}

static void test_all_rules(void **state)
{
    graft_env *env = *state;
    graft_sweeper *sweeper = GRAFT_NEW(env->life, graft_sweeper, 1);
    graft_ruleset set;
    uint32_t found = 0;
    read_set(env, &set);
    graft_sweep_open(sweeper);
    for (uint32_t i = 0; i < set.count; i++) {
        const graft_rule_entry *e = &set.entries[i];
        graft_mark mark = graft_arena_mark(env->unit);
        graft_point *points = NULL;
        graft_domain domain;
        graft_sweep_result result;
        assert_true(graft_cover_unpack(env->unit, &e->rule, e->cover_points, e->cover_bytes,
                                       e->cover, &points));
        graft_beyond_find(env->unit, &e->rule, points, e->cover, POINTS, &domain);
        graft_sweep_domain(env, sweeper, &e->rule, &domain, 2, &result);
        if (result.refuted) {
            print_message("# %s (%s): %s at %s\n", e->name, graft_proof_name(e->proof),
                          graft_rule_print_line(env->unit, &e->rule),
                          graft_point_print(env->unit, &e->rule, &result.counterexample.point));
            found++;
        }
        graft_arena_release(env->unit, mark);
    }
    print_message("# %u rules, %u false\n", set.count, found);
    assert_int_equal(found, 0);
}

static void test_bounded_rules(void **state)
{
    graft_env *env = *state;
    graft_ruleset set;
    uint32_t found = 0;
    uint32_t tried = 0;
    read_set(env, &set);
    for (uint32_t i = 0; i < set.count; i++) {
        const graft_rule *rule = &set.entries[i].rule;
        const witness_options options = {.seed = 77, .attempts = ATTEMPTS, .enough = ENOUGH};
        graft_mark mark = graft_arena_mark(env->unit);
        if (set.entries[i].proof == GRAFT_PROOF_UNBOUNDED) {
            continue;
        }
        witness w = witness_find(env, rule, &options);
        tried++;
        if (w.found) {
            print_message("# %s: %s at %s\n", set.entries[i].name,
                          graft_rule_print_line(env->unit, rule),
                          witness_print(env->unit, rule, &w));
            found++;
        }
        graft_arena_release(env->unit, mark);
    }
    print_message("# %u rules tried, %u false\n", tried, found);
    assert_int_equal(found, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECK_TEST(test_all_rules), CHECK_TEST(test_bounded_rules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

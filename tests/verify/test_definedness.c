/* What divisions by 0 and roots of negative numbers make undefined
 * (tests/verify/rules/definedness.txt). Each rule is put before the proof for all sizes alone, and
 * before Z3 at instances alone. The first is also given false rules about newer operators, each a
 * slip away from a true one (adversarial.txt). And rules that were accepted once
 * (once_accepted.txt) are not any more. */
#include "verify/sizes/symbolic.h"

#include "tests/support/check.h"
#include "tests/support/rows.h"
#include "verify/trial.h"

static void try_all_sizes(graft_env *env, const char *name)
{
    const graft_prove_options options = graft_prove_defaults();
    const rule_rows all = rows_read(env, name);
    for (uint32_t i = 0; i < all.count; i++) {
        graft_symbolic_result result;
        graft_symbolic_prove(env, &all.rules[i], NULL, 0, &options, &result);
        if (result.proved != all.holds[i]) {
            fail_msg("%s: %s %s", all.texts[i], result.proved ? "proved" : "not proved",
                     result.reason);
        }
    }
}

static void test_all_sizes(void **state)
{
    try_all_sizes(*state, "definedness");
    try_all_sizes(*state, "adversarial");
}

/* At the instances that a sweep would pick, without its verdict. */
static void test_instances(void **state)
{
    graft_env *env = *state;
    const graft_prove_options options = graft_prove_defaults();
    const rule_rows all = rows_read(env, "definedness");
    for (uint32_t i = 0; i < all.count; i++) {
        const graft_domain_options find = {
            .points = 24, .attempts = 80000, .enumerate = true, .seed = 1};
        graft_domain domain;
        graft_prove_result result;
        graft_domain_find(env, env->unit, &all.rules[i], &find, &domain);
        assert_true(domain.count > 0);
        graft_prove_rule(env, &all.rules[i], domain.points, domain.count, &options, &result);
        if ((result.verdict == GRAFT_VERDICT_PROVED) != all.holds[i]) {
            fail_msg("%s: %s %s", all.texts[i], graft_verdict_name(result.verdict), result.reason);
        }
    }
}

/* The command's words: refuted with an input that shows it, or unknown, but for a few, never
 * accepted. */
static void try_lies(graft_env *env, const char *name, uint32_t undecided)
{
    graft_trial_options options = graft_trial_defaults();
    const rule_rows all = rows_read(env, name);
    const rule_rows lies = rows_of(env, &all, false);
    graft_trial *trials = GRAFT_NEW(env->life, graft_trial, lies.count);
    uint32_t refuted = 0;
    options.suggest = false;
    env->thread_count = 2;
    assert_int_equal(graft_trial_run(env, env->life, lies.rules, lies.count, &options, trials),
                     GRAFT_OK);
    for (uint32_t i = 0; i < lies.count; i++) {
        if (trials[i].verdict == GRAFT_VERDICT_PROVED ||
            trials[i].verdict == GRAFT_VERDICT_WITHIN_BOUNDS) {
            fail_msg("accepted: %s", lies.texts[i]);
        }
        refuted += trials[i].verdict == GRAFT_VERDICT_REFUTED ? 1 : 0;
        if (trials[i].verdict != GRAFT_VERDICT_REFUTED) {
            print_message("# %s: %s: %s\n", lies.texts[i], graft_verdict_name(trials[i].verdict),
                          trials[i].reason);
        }
    }
    assert_true(refuted + undecided >= lies.count);
}

/* Of two there are few instances; two are true. */
static void test_verdicts(void **state) { try_lies(*state, "definedness", 4); }

static void test_adversarial(void **state) { try_lies(*state, "adversarial", 0); }

/* Some have too few instances to be refuted for sure. */
static void test_once_accepted(void **state) { try_lies(*state, "once_accepted", 2); }

int main(void)
{
    const struct CMUnitTest tests[] = {CHECK_TEST(test_all_sizes), CHECK_TEST(test_instances),
                                       CHECK_TEST(test_verdicts), CHECK_TEST(test_adversarial),
                                       CHECK_TEST(test_once_accepted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

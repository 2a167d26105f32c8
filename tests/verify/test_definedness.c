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
        graft_symbolic_prove(env, &all.rules[i], &options, &result);
        if (result.proved != all.holds[i]) {
            fail_msg("%s: %s %s", all.texts[i], result.proved ? "proved" : "not proved",
                     result.reason);
        }
    }
}

CHECK_CASE(test_all_sizes)
{
    try_all_sizes(env, "definedness");
    try_all_sizes(env, "adversarial");
}

/* At the instances that a sweep would pick, without its verdict. */
CHECK_CASE(test_instances)
{
    const graft_prove_options options = graft_prove_defaults();
    const rule_rows all = rows_read(env, "definedness");
    for (uint32_t i = 0; i < all.count; i++) {
        const graft_domain_options find = {
            .points = 24, .attempts = 80000, .enumerate = true, .seed = 1};
        graft_prove_result result;
        graft_prover prover;
        const graft_domain domain = graft_domain_find(env, env->unit, &all.rules[i], &find);
        assert_true(domain.count > 0);
        graft_prover_open(&prover, &options, &result);
        graft_prove_points(env, &prover, &all.rules[i], domain.points, domain.count);
        graft_prover_close(&prover);
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
    CHECK_OK(graft_trial_run(env, lies.rules, lies.count, &options, trials));
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

/* Of twelve there are few instances, sixteen differ at equal infinities, at -0 or at 0 alone; two are
 * true. */
CHECK_CASE(test_verdicts) { try_lies(env, "definedness", 30); }

CHECK_CASE(test_adversarial) { try_lies(env, "adversarial", 0); }

/* Some have too few instances to be refuted for sure. */
CHECK_CASE(test_once_accepted) { try_lies(env, "once_accepted", 2); }

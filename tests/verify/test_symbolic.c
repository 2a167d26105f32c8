/* The proof for all sizes: what it accepts, and above all what it does not
 * (tests/verify/rules/all_sizes.txt). */
#include "verify/sizes/symbolic.h"

#include "tests/support/check.h"
#include "tests/support/rows.h"

#include <assert.h>

static bool is_proved(graft_env *env, const graft_rule *rule, const graft_prove_options *options,
                      graft_symbolic_result *result)
{
    graft_symbolic_prove(env, rule, options, result);
    return result->proved;
}

CHECK_CASE(test_rules)
{
    const graft_prove_options options = graft_prove_defaults();
    const rule_rows all = rows_read(env, "all_sizes");
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < all.count; i++) {
        graft_symbolic_result result;
        if (is_proved(env, &all.rules[i], &options, &result) != all.holds[i]) {
            print_error("%s: %s %s\n", all.texts[i], result.proved ? "proved" : "not proved",
                        result.reason);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

static bool is_proved_in(graft_symbolic *proofs, const graft_rule *rule)
{
    const graft_prove_options options = graft_prove_defaults();
    graft_symbolic_result result;
    graft_symbolic_try(proofs, rule, &options, &result);
    return result.proved;
}

/* Proofs that follow each other in one context lend each other nothing that holds of one rule only:
 * true and false rules in turns are told apart as they are alone. */
CHECK_CASE(test_one_context)
{
    const graft_prove_options options = graft_prove_defaults();
    const rule_rows all = rows_read(env, "all_sizes");
    const rule_rows truths = rows_of(env, &all, true);
    const rule_rows lies = rows_of(env, &all, false);
    assert(truths.count > 0 && lies.count > 0);
    graft_prove_result counts;
    graft_prover prover;
    graft_prover_open(&prover, &options, &counts);
    graft_symbolic *proofs = graft_symbolic_open(env, &prover);
    for (uint32_t i = 0; i < truths.count || i < lies.count; i++) {
        if (!is_proved_in(proofs, &truths.rules[i % truths.count])) {
            fail_msg("not proved any more: %s", truths.texts[i % truths.count]);
        }
        if (is_proved_in(proofs, &lies.rules[i % lies.count])) {
            fail_msg("proved: %s", lies.texts[i % lies.count]);
        }
    }
    graft_symbolic_close(proofs);
    graft_prover_close(&prover);
}

/* A solver that never answers proves nothing. */
CHECK_CASE(test_mute_solver)
{
    graft_prove_options options = graft_prove_defaults();
    const rule_rows all = rows_read(env, "all_sizes");
    options.solver_is_mute = true;
    for (uint32_t i = 0; i < all.count; i++) {
        graft_symbolic_result result;
        assert_false(all.holds[i] && is_proved(env, &all.rules[i], &options, &result));
    }
}

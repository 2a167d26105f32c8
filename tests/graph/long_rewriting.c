/* Random applications of true rules without a difference, a million of those written by hand and a
 * million of those that the verifier has accepted; see test_rewriting.c for the short form.
 *
 * REWRITING_SEED and REWRITING_COUNT in the environment choose other ones, or fewer. */
#include "tests/support/check.h"
#include "tests/support/known_rules.h"
#include "tests/support/rewriting.h"

#include <stdlib.h>

static uint64_t read_number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

static void rewrite(graft_env *env, const graft_rule *rules, uint32_t count)
{
    rewriting_options options = {rules, count, read_number("REWRITING_SEED", 2026),
                                 read_number("REWRITING_COUNT", 1000000)};
    rewriting_report report;
    rewriting_check(env, &options, &report);
}

CHECK_CASE(test_known_rules)
{
    known_rules known = known_rules_true(env, env->life);
    rewrite(env, known.rules, known.count);
}

CHECK_CASE(test_proved_rules)
{
    known_rules proved = known_rules_proved(env);
    rewrite(env, proved.rules, proved.count);
}

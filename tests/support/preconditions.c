/* preconditions.c - see preconditions.h. */
#include "tests/support/preconditions.h"

#include "graph/rule/ruleprint.h"
#include "tests/support/check.h"
#include "tests/support/witness.h"
#include "verify/check.h"
#include "verify/lift/narrow.h"

enum { ATTEMPTS = 20000, ENOUGH = 1500 };

static bool is_refuted(graft_env *env, const graft_sweeper *sweeper, const graft_rule *rule)
{
    graft_check check;
    graft_check_options options = graft_check_defaults();
    graft_mark mark = graft_arena_mark(env->unit);
    graft_check_sweep(&(graft_checking){env, sweeper, &options, rule, NULL}, &check);
    graft_arena_release(env->unit, mark);
    return check.outcome == GRAFT_CHECK_REFUTED;
}

static bool is_proved(graft_env *env, const graft_rule *rule)
{
    graft_symbolic_result result;
    graft_prove_options options = graft_prove_defaults();
    graft_symbolic_prove(env, rule, &options, &result);
    return result.proved;
}

static void try_part(graft_env *env, const graft_sweeper *sweeper, const graft_rule_entry *entry,
                     const graft_rule *weaker, uint32_t part, preconditions_tally *tally)
{
    const witness_options options = {entry->id + part, ATTEMPTS, ENOUGH, false};
    tally->parts++;
    if (witness_find(env, weaker, &options).found) {
        tally->witnessed++;
    } else if (is_refuted(env, sweeper, weaker)) {
        tally->swept++;
    } else if (is_proved(env, &entry->rule) && !is_proved(env, weaker)) {
        tally->proof_rests++;
    } else {
        tally->needless++;
        print_message("# part %u is not needed: %s: %s\n", part + 1, entry->name,
                      graft_rule_print_line(env->unit, &entry->rule));
    }
}

preconditions_tally preconditions_try(graft_env *env, const graft_ruleset *set, uint32_t first,
                                      uint32_t every)
{
    preconditions_tally tally = {0};
    graft_sweeper *sweeper = GRAFT_NEW(env->life, graft_sweeper, 1);
    graft_sweep_open(sweeper);
    for (uint32_t i = first; i < set->count; i += every) {
        const graft_rule_entry *e = &set->entries[i];
        graft_rule weaker;
        uint32_t part = 0;
        for (; graft_rule_without(env, &e->rule, part, &weaker); part++) {
            try_part(env, sweeper, e, &weaker, part, &tally);
        }
        assert_true((part > 0) == (e->rule.condition != 255));
        tally.rules += part > 0 ? 1 : 0;
    }
    print_message("# %u rules with a precondition of %u parts: %u needed (%u seen by the sweep "
                  "alone), %u for the proof, %u not\n",
                  tally.rules, tally.parts, tally.witnessed + tally.swept, tally.swept,
                  tally.proof_rests, tally.needless);
    return tally;
}

/* Every part of the precondition of some committed rules, left out in turn: there must be a place at
 * which the sides differ, or no proof for all sizes where there is one with it. Parts for which
 * neither is so are printed: samples, from which preconditions are learnt, may leave a few that only
 * restate what shapes imply. long_preconditions.c looks at all rules. */
#include "graph/rule/ruleprint.h"
#include "tests/support/check.h"
#include "tests/support/rows.h"
#include "tests/support/witness.h"
#include "verify/check.h"
#include "verify/lift/narrow.h"

enum { ATTEMPTS = 20000, ENOUGH = 1500 };

/* Every so many of the rules, and one part in so many that may be needless. */
#ifndef EVERY
#define EVERY 4
enum { FIRST = 1, NEEDLESS_SHARE = 20 };
#endif

typedef struct {
    uint32_t rules;       /* With a precondition. */
    uint32_t parts;       /* Of them. */
    uint32_t witnessed;   /* Needed: the engine and binary64 show a difference (witness.h), */
    uint32_t swept;       /* or only the verifier's sweep finds one, */
    uint32_t proof_rests; /* or only the proof needs it. */
    uint32_t needless;    /* None of these; each was printed. */
} tally;

static bool is_refuted(graft_env *env, const graft_sweeper *sweeper, const graft_rule *rule)
{
    graft_check check;
    graft_check_options options = graft_check_defaults();
    GRAFT_SCOPED(env->unit);
    graft_check_sweep(&(graft_checking){env, sweeper, &options, rule, NULL}, &check);
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
                     const graft_rule *weaker, uint32_t part, tally *t)
{
    const witness_options options = {entry->id + part, ATTEMPTS, ENOUGH, false};
    t->parts++;
    if (witness_find(env, weaker, &options).found) {
        t->witnessed++;
    } else if (is_refuted(env, sweeper, weaker)) {
        t->swept++;
    } else if (is_proved(env, &entry->rule) && !is_proved(env, weaker)) {
        t->proof_rests++;
    } else {
        t->needless++;
        print_message("# part %u is not needed: %s: %s\n", part + 1, entry->name,
                      graft_rule_print_line(env->unit, &entry->rule));
    }
}

CHECK_CASE(test_all)
{
    const graft_ruleset set = rows_committed(env);
    tally t = {0};
    graft_sweeper *sweeper = GRAFT_NEW(env->life, graft_sweeper, 1);
    graft_sweep_open(sweeper);
    for (uint32_t i = FIRST; i < set.count; i += EVERY) {
        const graft_rule_entry *e = &set.entries[i];
        graft_rule weaker;
        uint32_t part = 0;
        for (; graft_rule_without(env, &e->rule, part, &weaker); part++) {
            try_part(env, sweeper, e, &weaker, part, &t);
        }
        assert_true((part > 0) == (e->rule.condition != 255));
        t.rules += part > 0 ? 1 : 0;
    }
    print_message("# %u rules with a precondition of %u parts: %u needed (%u seen by the sweep "
                  "alone), %u for the proof, %u not\n",
                  t.rules, t.parts, t.witnessed + t.swept, t.swept, t.proof_rests, t.needless);
    assert_true(t.parts > 0);
    assert_true(t.needless * NEEDLESS_SHARE <= t.parts);
}

/* A selection of the adversarial corpus (tests/support/corpus.h), tried with fewer instances than
 * usual: no false rule gets in, no true one is refuted. `make test-long` tries all of it, as users'
 * rules are tried. And the witness, which says what is false without the verifier, finds fault with
 * known false rules and none with known true ones. */
#include "graph/rule/ruleprint.h"
#include "tests/support/check.h"
#include "tests/support/corpus.h"
#include "tests/support/known_rules.h"
#include "tests/support/witness.h"

enum { EVERY = 7, POINTS = 600, COVER = 8, ATTEMPTS = 4000, ENOUGH = 200 };

CHECK_CASE(test_selection)
{
    graft_trial_options options = graft_trial_defaults();
    uint32_t wrong = 0;
    options.suggest = false;
    options.check.points = POINTS;
    options.check.cover = COVER;
    for (uint32_t f = 0; f < CORPUS_FILES; f++) {
        corpus_rules rules = corpus_read(env, corpus_files[f].path, f, EVERY);
        corpus_tally t = corpus_try(env, &rules, corpus_files[f].kind, &options);
        print_message("# %s: %u rules, %u proved, %u refuted, %u unknown\n", corpus_files[f].path,
                      t.count, t.proved, t.refuted, t.unknown);
        assert_true(t.count > 0);
        wrong += t.wrong;
    }
    assert_int_equal(wrong, 0);
}

/* As many as are promised, under names that are used once. */
CHECK_CASE(test_size)
{
    uint32_t true_count = 0;
    uint32_t false_count = 0;
    for (uint32_t f = 0; f < CORPUS_FILES; f++) {
        corpus_rules rules = corpus_read(env, corpus_files[f].path, 0, 1);
        true_count += corpus_files[f].kind == CORPUS_TRUE ? rules.count : 0;
        false_count += corpus_files[f].kind != CORPUS_TRUE ? rules.count : 0;
    }
    false_count += corpus_read(env, "tests/verify/corpus/outside.yaml", 0, 1).count;
    true_count += corpus_read(env, "tests/verify/corpus/true-outside.yaml", 0, 1).count;
    print_message("# %u false rules, %u true ones\n", false_count, true_count);
    assert_true(false_count >= 1000);
    assert_true(true_count >= 500);
}

CHECK_CASE(test_witness)
{
    known_rules lies = known_rules_false(env, env->life);
    known_rules truths = known_rules_true(env, env->life);
    for (uint32_t i = 0; i < lies.count + truths.count; i++) {
        bool is_true = i >= lies.count;
        const graft_rule *rule = is_true ? &truths.rules[i - lies.count] : &lies.rules[i];
        const witness_options options = {i, ATTEMPTS, ENOUGH, false};
        witness w = witness_find(env, rule, &options);
        if (w.found == is_true) {
            fail_msg("%s: %s", is_true ? "a witness against a true rule" : "no witness",
                     graft_rule_print_line(env->unit, rule));
        }
        assert_true(w.found || w.compared > 0);
    }
}

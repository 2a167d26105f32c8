/* The whole adversarial corpus (tests/support/corpus.h): no false rule is accepted for all sizes,
 * none that is false within the bounds is accepted at all, no true one is refuted; and the witness
 * says of every rule what its file says. */
#include "tests/support/check.h"
#include "tests/support/corpus.h"
#include "tests/support/witness.h"

#include "graph/rule/ruleprint.h"

static const uint64_t symbolic_limit_ns = UINT64_C(10000000000);

enum { FALSE_ATTEMPTS = 40000, TRUE_ATTEMPTS = 1500, WITNESS_ENOUGH = 8000, SEEDS = 6 };

static void print_tally(const char *path, const corpus_tally *t)
{
    print_message("# %s: %u rules, %u proved (%u unbounded), %u refuted, %u unknown, %u wrong\n",
                  path, t->count, t->proved, t->unbounded, t->refuted, t->unknown, t->wrong);
}

CHECK_CASE(test_verdicts)
{
    graft_trial_options options = graft_trial_defaults();
    uint32_t wrong = 0;
    options.suggest = false;
    for (uint32_t f = 0; f < CORPUS_FILES; f++) {
        corpus_rules rules = corpus_read(env, corpus_files[f].path, 0, 1);
        corpus_tally tally = corpus_try(env, &rules, corpus_files[f].kind, &options);
        print_tally(corpus_files[f].path, &tally);
        wrong += tally.wrong;
    }
    assert_int_equal(wrong, 0);
}

/* The proof for all sizes alone: it does not rely on the sweep to have refuted a rule before. */
CHECK_CASE(test_all_sizes)
{
    uint32_t wrong = 0;
    for (uint32_t f = 0; f < CORPUS_FILES; f++) {
        corpus_rules rules = corpus_read(env, corpus_files[f].path, 0, 1);
        corpus_kind kind = (corpus_kind)corpus_files[f].kind;
        uint32_t proved = corpus_try_symbolic(env, &rules, kind, symbolic_limit_ns);
        print_message("# %s: %u rules, %u proved for all sizes\n", corpus_files[f].path,
                      rules.count, proved);
        wrong += kind == CORPUS_TRUE ? 0 : proved;
    }
    assert_int_equal(wrong, 0);
}

/* The places at which some rules are false are rare. */
static witness search(graft_env *env, const graft_rule *rule, corpus_kind kind)
{
    witness w = {.found = false};
    for (uint64_t seed = 0; seed < (kind == CORPUS_TRUE ? 1 : SEEDS) && !w.found; seed++) {
        const witness_options options = {seed, kind == CORPUS_TRUE ? TRUE_ATTEMPTS : FALSE_ATTEMPTS,
                                         WITNESS_ENOUGH, kind == CORPUS_FALSE};
        w = witness_find(env, rule, &options);
    }
    return w;
}

CHECK_CASE(test_witness)
{
    uint32_t wrong = 0;
    for (uint32_t f = 0; f < CORPUS_FILES; f++) {
        corpus_rules rules = corpus_read(env, corpus_files[f].path, 0, 1);
        bool is_true = corpus_files[f].kind == CORPUS_TRUE;
        for (uint32_t i = 0; i < rules.count; i++) {
            witness w = search(env, &rules.rules[i], (corpus_kind)corpus_files[f].kind);
            if (w.found == is_true) {
                print_message("# %s %s: %s (%u places compared%s%s)\n", rules.named[i].name,
                              is_true ? "is false" : "no witness",
                              graft_rule_print_line(env->unit, &rules.rules[i]), w.compared,
                              w.found ? ": " : "",
                              w.found ? witness_print(env->unit, &rules.rules[i], &w) : "");
                wrong++;
            }
        }
    }
    assert_int_equal(wrong, 0);
}

/* Limits of proofs are refusals (verify/core/limits.def). Each limit is set to 1, 2 and 3, in
 * objects compiled for it, and the proof for all sizes is tried alone, without a sweep, a filter or
 * an instance before it: whatever it gives up for it, it proves no false rule and does not crash,
 * and where it is to refuse it says so. long_limits.c tries more of the corpus.
 *
 * And as they are, limits let none of the corpus's false rules through (`false` and `beyond` here,
 * all of them in long_corpus.c). */
#include "tests/support/limits.h"

#include "tests/support/check.h"
#include "tests/support/corpus.h"

#include <string.h>

static const uint64_t proof_limit_ns = UINT64_C(10000000000);

enum { EVERY = 199 };

CHECK_CASE(test_prover_alone)
{
    uint32_t proved = 0;
    env->thread_count = 2;
    for (uint32_t f = 0; f < CORPUS_FILES; f++) {
        corpus_kind kind = (corpus_kind)corpus_files[f].kind;
        if (kind != CORPUS_TRUE && strstr(corpus_files[f].path, "mutants") == NULL) {
            corpus_rules rules = corpus_read(env, corpus_files[f].path, 0, 1);
            proved += corpus_try_symbolic(env, &rules, kind, proof_limit_ns);
        }
    }
    assert_int_equal(proved, 0);
}

CHECK_CASE(test_small_limits)
{
    env->thread_count = 2;
    limits_tally tally = limits_try(env, EVERY);
    print_message("# %u limits and values\n", tally.tries);
    assert_int_equal(tally.lost, 0);
    assert_int_equal(tally.ended, 0);
    assert_int_equal(tally.proved, 0);
    assert_int_equal(tally.unnamed, 0);
}

/* The committed set's exact rules past the bounds of the sweep: other sizes and ranks, any real
 * attributes, ordinary and awkward inputs. No bit may differ. And the whole adversarial corpus: no
 * false rule is proved exact. */
#include "tests/support/check.h"
#include "tests/support/exact.h"
#include "tests/support/rows.h"

enum { POINTS = 400 };

CHECK_CASE(test_exact_rules)
{
    const graft_ruleset set = rows_committed(env);
    uint32_t samples = 0;
    uint32_t untried = 0;
    for (uint32_t i = 0; i < set.count; i++) {
        if (set.entries[i].numeric == GRAFT_NUMERIC_EXACT) {
            graft_arena_reset(env->unit);
            uint32_t tried = exact_try_beyond(env, &set.entries[i], POINTS);
            samples += tried;
            untried += tried == 0 ? 1 : 0;
        }
    }
    print_message("# %u samples; of %u rules no instance was drawn\n", samples, untried);
    assert_int_equal(untried, 0);
}

CHECK_CASE(test_whole_corpus)
{
    for (uint32_t f = 0; f < CORPUS_FILES; f++) {
        exact_try_corpus(env, &corpus_files[f], 0, 1);
    }
}

/* As test_limits.c, with more of the corpus: at each limit every false rule is tried at one of its
 * three values. */
#include "tests/support/limits.h"

#include "tests/support/check.h"

enum { EVERY = 3 };

CHECK_CASE(test_small_limits)
{
    limits_tally tally = limits_try(env, EVERY);
    print_message("# %u limits and values\n", tally.tries);
    assert_int_equal(tally.ended, 0);
    assert_int_equal(tally.proved, 0);
}

/* As test_limits.c, with more of the corpus: at each limit every false rule is tried at one of its
 * three values. */
#include "tests/support/limits.h"

#include "tests/support/check.h"

enum { EVERY = 3 };

static void test_small_limits(void **state)
{
    limits_tally tally = limits_try(*state, EVERY);
    print_message("# %u limits and values\n", tally.tries);
    assert_int_equal(tally.ended, 0);
    assert_int_equal(tally.proved, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECK_TEST(test_small_limits)};
    return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}

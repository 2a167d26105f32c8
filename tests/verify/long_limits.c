/* As test_limits.c, with more of the corpus: at each limit every false rule is tried at one of its
 * three values. */
#define EVERY 3
/* NOLINTNEXTLINE(bugprone-suspicious-include): the same program, with more rules. */
#include "tests/verify/test_limits.c"

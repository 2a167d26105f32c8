/* As test_preconditions.c, with all committed rules. */
#define EVERY 1
enum { FIRST = 0, NEEDLESS_SHARE = 50 };
/* NOLINTNEXTLINE(bugprone-suspicious-include): the same program, with more rules. */
#include "tests/verify/test_preconditions.c"

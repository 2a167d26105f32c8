/* As test_rewriting.c, with a million applications of each kind. */
#define BUDGET 1000000
/* NOLINTNEXTLINE(bugprone-suspicious-include): the same program, with more applications. */
#include "tests/graph/test_rewriting.c"

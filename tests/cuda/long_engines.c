/* All signatures of the zoo's models against cuDNN: see test_engines.c. */
#define ENGINES_WHOLE
/* NOLINTNEXTLINE(bugprone-suspicious-include): the same program, with more rows. */
#include "tests/cuda/test_engines.c"

/* All signatures of the zoo's models against cuDNN: see test_engines.c. */
#define ENGINES_WHOLE
#include "tests/cuda/test_engines.c"

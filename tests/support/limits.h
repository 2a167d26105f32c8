/* limits.h - the limits of proofs (verify/core/limits.def) set to next to nothing, in programs that
 * link the objects which ask for them: test_limits and long_limits (see the Makefile). */
#pragma once

#include "graph/base/env.h"

typedef struct limits_tally {
    uint32_t tries;   /* Limits and values. */
    uint32_t ended;   /* Tries that did not end: a crash, out of time. */
    uint32_t proved;  /* False rules proved for all sizes. */
    uint32_t unnamed; /* Limits that refuse, but no reason names them. */
    uint32_t lost;    /* True rules not proved with no limit set. */
} limits_tally;

/* Sets each limit to 1, 2 and 3 and puts rules before the proof for all sizes, without a sweep, a
 * filter or instances: a few true ones, by which limits that refuse are to be met, and of the
 * corpus's false ones every `every`-th, others at each limit and value. Prints what is wrong. */
limits_tally limits_try(graft_env *env, uint32_t every);

/* decisions.h - what a compiled policy printed (emit/firmware/rewrite.c): its rewrites, and the
 * hash of the graph that came out. */
#pragma once

#include "graph/base/env.h"
#include "train/search/environment.h"

typedef struct graft_decisions {
    graft_action *steps;
    uint32_t step_count;
    uint64_t hash;
} graft_decisions;

/* Takes a whole number up to `most` from the front of *text, which it moves behind it; false, and
 * nothing moved, when there is none. `base` is 10 or 16. */
bool graft_text_number(const char **text, int base, uint64_t most, uint64_t *number);

/* Reads "step RULE LOCATION" lines and the "hash HEX" line behind them into `arena`. GRAFT_IO;
 * GRAFT_BAD_INPUT naming file and line. */
GRAFT_MUST_USE graft_status graft_decisions_read(graft_env *env, graft_arena *arena,
                                                 const char *path, graft_decisions *decisions);

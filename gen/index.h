/* index.h - graphs of groups by the configuration of their first root. */
#pragma once

#include "gen/groups.h"

typedef struct graft_gen_index {
    uint32_t *first_by_config; /* Where a configuration's graphs begin; config_count + 1 entries. */
    uint32_t *graphs;          /* In ascending order within a configuration. */
} graft_gen_index;

/* Lists the graphs whose first root is no input, those of the marked groups alone when `marks` is
 * not NULL (by hub). The index lives in `arena`. */
void graft_gen_index_build(const graft_gen_groups *groups, const bool *marks, graft_arena *arena,
                           graft_gen_index *index);

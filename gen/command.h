/* command.h - `graft gen`: lists the substitutions that the families propose. */
#pragma once

#include "gen/gen.h"
#include "graph/base/options.h"

/* Prints one line a candidate, then one a set; with --counts only the latter. With --json, objects
 * {"candidate": ...} and {"set": ...}. --family runs one family alone, so laws known from the
 * others are found again. */
extern const graft_command graft_command_gen;

/* Sets memory_bytes from the argument of `--memory MIB`; GRAFT_BAD_INPUT when it is not 0 without a
 * folder. */
GRAFT_MUST_USE graft_status graft_gen_room_bound(graft_env *env, uint64_t mebibytes,
                                                 graft_gen_room *room);

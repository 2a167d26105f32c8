/* command.h - `graft gen`: lists the substitutions that the families propose. */
#ifndef GRAFT_GEN_COMMAND_H
#define GRAFT_GEN_COMMAND_H

#include "gen/gen.h"

/* graft gen [--families FOLDER] [--family NAME] [--depth N] [--seed N] [--counts]
 *      Prints one line a candidate, then one a set; with --counts only the latter. With --json,
 *      objects {"candidate": ...} and {"set": ...}. --depth 0 takes the depth that each set names;
 *      --family runs one family alone, so laws known from the others are found again. */
GRAFT_MUST_USE graft_status graft_command_gen(graft_env *env, int argc, char **argv);

/* Sets memory_bytes from the argument of `--memory MIB`; GRAFT_BAD_INPUT when it is no number, or
 * not 0 without a folder. */
GRAFT_MUST_USE graft_status graft_gen_room_bound(graft_env *env, const char *memory,
                                                 graft_gen_room *room);

#endif

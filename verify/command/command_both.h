/* command_both.h - the part of `graft rules` that adds the other direction of rules. */
#pragma once

#include "graph/rule/rulefile.h"

/* Writes to `path` the set with the reverse of each rule that has one (reverse.h), does not follow
 * from the set, and is proved on its own. `make rules` keeps only rules that can save operators; a
 * search that may go uphill, or a device on which the other side is the cheaper one, wants both.
 * Fails as graft_trial_run and graft_rulefile_write do. */
GRAFT_MUST_USE graft_status graft_both_save(graft_env *env, const graft_ruleset *set,
                                            const char *path);

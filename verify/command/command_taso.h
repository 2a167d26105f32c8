/* command_taso.h - `graft rules --taso`. */
#pragma once

#include "graph/rule/rulefile.h"

/* Says of each rule of a TASO file whether it is implied by the set, refuted (with a
 * counterexample), unknown, proved but not implied, or not expressible, and then how many are.
 * Fails as graft_taso_read and graft_trial_run do; GRAFT_UNDECIDED when a rule was killed for its
 * time. */
GRAFT_MUST_USE graft_status graft_taso_report(graft_env *env, const graft_ruleset *set,
                                              const char *path);

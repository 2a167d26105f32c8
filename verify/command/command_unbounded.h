/* command_unbounded.h - `graft verify --unbounded`: the proof for all sizes over a rule set. */
#pragma once

#include "graph/rule/rulefile.h"

/* Tries to prove every rule of a set for all sizes and prints, for each, what it rests on or why it
 * is not proved; then how many there are of each kind. `only` (may be NULL) is a text that a rule's
 * name or line must contain. GRAFT_INTERNAL when a child ran into the clock. */
GRAFT_MUST_USE graft_status graft_unbounded_report(graft_env *env, const graft_ruleset *set,
                                                   const char *only);

/* confirm_all.h - recorded costs measured again beside their kin (see confirm.h). */
#pragma once

#include "cost/cost.h"

/* Measures these signatures and their recorded kin once more, side by side, and replaces their
 * entries; what has no kin stays as it is. `count` receives the number of entries measured. Not for
 * several threads at once.
 *
 * What is settled is saved every minute, and in the end, however that comes. `journal` (NULL: none)
 * is a file that says which signatures these are: a run that was interrupted is taken up where it
 * was, and when all is done the file is removed. A journal of another device or library is passed
 * over. Fails as graft_cost_measure and graft_cost_save do. */
GRAFT_MUST_USE graft_status graft_cost_confirm(graft_env *env, graft_cost *cost,
                                               const graft_signature *signatures,
                                               uint32_t signature_count, const char *journal,
                                               uint32_t *count);

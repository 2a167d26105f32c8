/* resweep.h - a second sweep of a rule, at other samples than the checker's.
 *
 * A precondition, or shapes that must fit each other, make most of the checker's samples miss: a
 * rule may have been swept at thousands of instances none of which has several groups, or a tensor
 * of the rank that tells. Here samples are guided (domain.h): they follow what the precondition
 * says and propose shapes that fit. */
#ifndef GRAFT_RESWEEP_H
#define GRAFT_RESWEEP_H

#include "verify/check.h"

/* Sweeps a rule whose check is done or SWEPT, unless the check was refuted or complete. A
 * difference makes it REFUTED, with the counterexample in check->sweep; fewer than forty instances
 * in all make SWEPT and PROVED rules THIN. env->unit is used and not given back. */
void graft_resweep(graft_env *env, const graft_sweeper *sweeper, const graft_rule *rule,
                   uint32_t samples, graft_check *check);

#endif

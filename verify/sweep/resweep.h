/* resweep.h - the second part of the sweep of a rule, at more samples and others.
 *
 * Shapes that must fit each other and narrow preconditions make most samples miss: a rule may have
 * been swept at thousands of instances few of which have several groups, or a tensor of the rank
 * that tells. So this one is drawn anew, larger, and goes on to the neighbours of the covering set
 * (neighbours.h), to the numbers that the rule names (boundary.h), past the bounds (beyond.h), to
 * sizes past them that a rule's own relations tell, and to those that Z3 finds (symmodel.h): what
 * is true up to the bounds only is of no use. */
#ifndef GRAFT_RESWEEP_H
#define GRAFT_RESWEEP_H

#include "verify/check.h"

enum { GRAFT_LARGER_SIZE_MOST = 9 }; /* Of sizes past the bounds that are drawn. */

/* Sweeps a rule whose check is SWEPT, else does nothing; where the check was complete, only past
 * the bounds. A difference makes it REFUTED, with the counterexample in check->sweep; fewer than
 * forty instances in all make it THIN. env->unit is used and not given back. */
void graft_resweep(graft_env *env, const graft_sweeper *sweeper, const graft_rule *rule,
                   uint32_t samples, graft_check *check);

/* Instances of a rule that has few or none within the bounds: at the numbers that it names, and
 * those that Z3 finds. Points lie in env->unit. */
void graft_resweep_named(graft_env *env, const graft_rule *rule, graft_domain *domain);

/* Sweeps a PROVED rule at a few hundred instances past the bounds and at its boundaries: a
 * difference, which would show a mistake of ours in a proof for all sizes, makes it REFUTED. */
void graft_resweep_beyond(graft_env *env, const graft_sweeper *sweeper, const graft_rule *rule,
                          uint32_t samples, graft_check *check);

#endif

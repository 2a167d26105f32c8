/* resweep.h - the second part of the sweep of a rule, past the bounds.
 *
 * What is true up to the bounds only is of no use. So a rule that is not proved for all sizes is
 * also swept at the numbers that it names (boundary.h), and beside sizes that Z3 finds where they
 * are related (symmodel.h). */
#pragma once

#include "verify/check.h"

/* Sweeps a rule whose check is SWEPT, else does nothing; where the check was complete, only past
 * the bounds. A difference makes it REFUTED, with the counterexample in check->sweep; fewer than
 * forty instances in all make it THIN. env->unit is used and not given back. */
void graft_resweep(graft_env *env, const graft_sweeper *sweeper, const graft_rule *rule,
                   uint32_t samples, graft_check *check);

/* Instances of a rule that has few or none within the bounds: at the numbers that it names, and
 * those that Z3 finds. Points lie in env->unit. */
void graft_resweep_named(graft_env *env, const graft_rule *rule, graft_domain *domain);

/* Sweeps a PROVED rule at a few hundred instances at its boundaries: a difference, which would show a
 * mistake of ours in a proof for all sizes, makes it REFUTED. */
void graft_resweep_proved(graft_env *env, const graft_sweeper *sweeper, const graft_rule *rule,
                          uint32_t samples, graft_check *check);

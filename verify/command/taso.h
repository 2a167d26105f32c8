/* taso.h - TASO's substitutions as rules of ours, and which follow from ours.
 *
 * What a TASO operator means is read off its public sources: convolutions take their groups from
 * the shapes and pad to the same size or not at all, a split cuts where the concatenation behind it
 * joined, an enlarged kernel is padded with zeros about its middle, element-wise operators want
 * equal shapes. Sizes that an attribute depends on become expressions over the inputs' sizes;
 * attributes of the source that TASO computes become slots with a precondition; ranks, kernel sizes
 * and equal shapes become preconditions. Fused activations are separate operators here. The second
 * factor of `mul` is the scalar, as the generator has it; average pooling leaves padding out, as
 * the run time has it. */
#pragma once

#include "graph/rule/rulefile.h"
#include "graph/rule/tasofile.h"
#include "verify/instances/instance.h"

/* Makes the rule. NULL, or why it cannot be expressed (in `arena`; `rule` is then untouched). */
const char *graft_taso_import(graft_env *env, graft_arena *arena, const graft_taso_rule *from,
                              graft_rule *rule);

/* How `rule` follows from rules of the set, at each of some sample points: the names of those that
 * are applied one after the other at the first point, in `arena`; NULL when it does not. Where the
 * engine does not lead from its source to its target, `*as_equations` is set and both sides lead to
 * a third graph (graft_equate). */
const char *graft_taso_implied(graft_env *env, graft_arena *arena, const graft_ruleset *set,
                               const graft_rule *rule, bool *as_equations);

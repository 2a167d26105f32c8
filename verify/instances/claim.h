/* claim.h - what has to be unsatisfiable for a rule to hold at one point (obligation.h). A question
 * about element i assumes the conditions of element i alone (guarded.h). */
#pragma once

#include "verify/instances/instance.h"
#include "verify/instances/obligation.h"

/* Builds the obligation of an instance in `z3`, which must outlive it; memory lies in `arena`. */
void graft_obligation_build(graft_obligation *o, graft_arena *arena, Z3_context z3,
                            const graft_instance *instance);

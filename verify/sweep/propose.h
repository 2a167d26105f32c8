/* propose.h - shapes that are likely to fit, given what is chosen already. Whether they do is
 * decided by shape inference alone. */
#pragma once

#include "verify/sweep/finder.h"

/* Begins a sample that is made like the origin: draws the sizes that take the place of its. */
void graft_propose_rename(graft_finder *f);
/* A shape for the variable of a VAR step. */
graft_shape graft_propose_shape(graft_finder *f, const graft_step *s);
/* A value for the attribute of an ATTRS step of width 1: a size or slot value that is there
 * already, since equalities are rare among independent choices. */
int32_t graft_propose_value(graft_finder *f, const graft_step *s);

/* sample.h - drawing instances of a domain that is too large to be enumerated.
 *
 * A sample is made along the plan: shapes and attributes are proposed (propose.h), and after a
 * misfit the latest choices are drawn again, then those before them. Samples follow what the
 * precondition says outright (guide.h), most of them. */
#pragma once

#include "verify/sweep/finder.h"

/* Adds drawn points to the domain until there are as many as wanted, attempts run out, or nothing
 * new has come for a while. */
void graft_sample_points(graft_finder *f);

/* beyond.h - instances of a rule past the bounds of its domain: sizes to 9, ranks to the engine's
 * limit, whole numbers and real attributes that no list has.
 *
 * A rule can hold at every instance within the bounds and be false past them: one that counts axes
 * from the front, say, where broadcasting counts them from the back, is true of images and false at
 * rank 5. Nothing is proved here; what is drawn can only refute. */
#pragma once

#include "verify/sweep/domain.h"

enum { GRAFT_BEYOND_SIZE_MOST = 9 };

/* Draws at most `limit` instances, each a given one (there are `count`) with other sizes in place
 * of its sizes (equal ones stay equal), axes put into its shapes and attributes changed.
 * Those are left out whose evaluation is much work. Points lie in `arena`. */
void graft_beyond_find(graft_arena *arena, const graft_rule *rule, const graft_point *points,
                       uint32_t count, uint32_t limit, graft_domain *domain);

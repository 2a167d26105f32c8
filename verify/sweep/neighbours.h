/* neighbours.h - the instances next to given ones.
 *
 * Random samples rarely meet instances in which two sizes differ that could be equal, when others
 * must be changed along with them to keep the sum of two parts, say. So instances are also sought
 * systematically: every point that differs from a given one in one or two steps, a step being one
 * size one larger or smaller, an axis of size 1 or 2 put in front or the first axis taken away, an
 * attribute one larger or smaller, or two sizes of a variable or of an operator in each other's
 * place. Those that are instances are neighbours. */
#pragma once

#include "verify/sweep/domain.h"

/* Finds neighbours of `count` points, each at most once, `limit` in all and the same share of it
 * for each point. Sizes stay within the bounds of the domain. Points and table lie in `arena`. */
graft_domain graft_neighbours_find(graft_arena *arena, const graft_rule *rule,
                                   const graft_point *points, uint32_t count, uint32_t limit);

/* nearest.h - times that were not measured, from the nearest operator that was.
 *
 * A line through all measurements (roofline.h) says little about one of them. But what it is off by
 * for an operator, it is off by for one that is nearly the same: the fused product for the plain
 * one, 14 pixels for 16, a weight that comes from another cache. So
 *
 *      ns = line(operator) * measured(nearest) / line(nearest)
 *
 * which is regression by the nearest neighbour (Cover and Hart, IEEE Trans. Inf. Theory 13, 1967)
 * of what the line leaves over. Distances are in octaves between sizes, with some octaves for what
 * is not a size. How far such estimates are off, and the line alone: docs/cost.md. */
#pragma once

#include "cost/database/roofline.h"

/* Corrects `entry`, the roofline's estimate for `signature`, by the nearest measured operator of
 * the selected device. Without one, or without points of the line, it stays as it is. Still an
 * estimate: the source does not change. */
void graft_nearest_correct(const graft_database *database, const graft_roofline *roofline,
                           const graft_signature *signature, graft_cost_entry *entry);

/* What is likely to be the fastest implementation of an operator that nobody measured: that of the
 * nearest measured one of `device` with the same operator and layouts, so that it can run this one.
 * NULL when there is none. */
const char *graft_nearest_implementation(const graft_database *database, const char *device,
                                         const graft_signature *signature);

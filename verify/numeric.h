/* numeric.h - whether a rule changes results in floating point.
 *
 * A rule is `exact` when, at every point of its covering set, both sides are the same
 * floating-point operations in the same order, up to what IEEE 754 leaves no choice about: sums and
 * products commute, and a maximum or minimum with the same operand twice is that of once. What is
 * left of each element is a tree of operations; equal trees give equal bits, whatever the inputs
 * (the payload of NaNs aside). As a check of this reading, both sides are also run in binary32 on
 * zeros of both signs, infinities, NaN, subnormal, huge and ordinary numbers. Every other rule is
 * `reassociating`. */
#ifndef GRAFT_NUMERIC_H
#define GRAFT_NUMERIC_H

#include "graph/rulefile.h"
#include "verify/cover.h"

/* The class of a rule, by the points of its covering set. */
graft_numeric graft_numeric_classify(graft_env *env, const graft_rule *rule,
                                     const graft_point *points, uint32_t count);

#endif

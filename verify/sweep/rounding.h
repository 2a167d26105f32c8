/* rounding.h - how far rounding takes the two sides of a rule from the exact result, in binary32
 * and binary16: measured, not bounded.
 *
 * Both sides are evaluated at the first instances of the certificate in both formats and in
 * binary64, on inputs that both formats represent: normally distributed, positive, with exponents
 * spread over six binades, and numbers that nearly cancel (neighbours of few values, both signs).
 * An element's error is its distance from the source's binary64 result in units in the last place
 * of that result in the format; the unit is that of the largest input where the result is smaller
 * than that, or complete cancellations would count as errors without bound. Elements that overflow
 * on a side are counted, not measured. Which inputs are drawn depends on the rule's content alone.
 */
#pragma once

#include "graph/rule/rulefile.h"
#include "verify/instances/instance.h"

/* Measures at the first of `count` instances of the rule; `rounding` is all 0 when nothing could be
 * measured. */
void graft_rounding_measure(graft_env *env, const graft_rule *rule, const graft_point *points,
                            uint32_t count, graft_rounding *rounding);

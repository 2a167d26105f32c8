/* numeric.h - whether a rule changes results in floating point.
 *
 * A rule is `exact` when it is proved, for all sizes and all values of its attributes, that both
 * sides compute the same bits of every element whatever the inputs are, NaN's payload and sign
 * aside: the same operations of IEEE 754 on the same operands in the same order, up to the few laws
 * that leave no choice about a bit (symsame.h). Every other rule is `reassociating`: equal over the
 * real numbers, and its rounding may differ, or was not proved not to.
 *
 * A rule is `exact-integer` when it is proved over the real numbers, changes numbers to or from 8
 * bits, and beside that moves elements and chooses among them. Of both changes the proof knows that
 * they are functions that grow, what their signs are, and that one undoes the other (term.h), and
 * binary32 keeps to that; rounding what a number stands for keeps the order of what is chosen
 * among. So the numbers of both sides are equal, but for the sign of a zero and what is made of
 * NaN.
 *
 * As a check of that proof both sides are first run in binary32 at every point of the rule's
 * covering set: on zeros of both signs, infinities, NaN, subnormal and huge numbers, and on
 * ordinary ones. A difference takes the word away; agreement alone never gives it. */
#pragma once

#include "graph/rule/rulefile.h"
#include "verify/sizes/symbolic.h"

/* The class of a valid rule; `points` are instances of it, at which it is tried out. The proof is a
 * task of its own for the prover of `symbolic`, and ends without one when it has taken
 * options->most. */
graft_numeric graft_numeric_classify(graft_env *env, graft_symbolic *symbolic,
                                     const graft_rule *rule, const graft_point *points,
                                     uint32_t count, const graft_prove_options *options);

/* caught.h - divisors of which a proof assumes nothing, though they divide in the source.
 *
 * An infinity that goes into a maximum, a minimum or a bounded function may come out as a number:
 * clip(1 / 0) is the upper bound. So may one that divides: 1 / (1 / 0) is 0. Divisors that reach
 * an element so are *caught*. Those of the source are not assumed to be something other than 0,
 * for the source may be defined where they are; those of the target must not be 0, as all its
 * divisors. The exponential counts as bounded here: exp(-1 / 0) is 0. A root of a negative number
 * is no number wherever it goes.
 *
 * Why that is enough where a caught divisor of the source is 0 and a variable's element: its
 * reciprocal is an unknown number u then, and what is proved holds for every u. All operators are
 * continuous, also at infinity where IEEE arithmetic does not say NaN, so that the source's number
 * at an infinite u is the limit of what it is at finite ones, and that is the target's number,
 * which does not depend on u or is defined for every u. Where it says NaN the source is undefined.
 *
 * Comparisons are not continuous: 1 / b is less than 1 / b + 1 at every b but 0. What divides below one,
 * and what is a root, has to be proved defined, in the source too. So no selection hangs on such a
 * divisor by its condition. What is not chosen reaches no element: of what a selection chooses from
 * is asked what was, where it is chosen.
 *
 * A divisor that is computed may not be 0, caught or not: 0 - a a is a zero with the sign of none of
 * the numbers below 0 beside it, and one over it is the other infinity. Nor are a and a + 0 zeros of
 * one sign, whose reciprocals would be one u. What is proved of such a divisor is proved of finite
 * numbers: sigmoid(u) - 1 is 0 at an infinite u alone. So beside one nothing that is caught may be
 * left open. Nor may it beside a comparison anywhere: a = b holds of zeros of two signs.
 *
 * Nor may a quotient that is caught be left open beside a root that is not: where sqrt(a - b) and
 * sqrt(b - a) are defined a is b, so that zeros of two signs have no finite numbers beside them to be
 * the limit of. Of what a logarithm takes an infinity has one sign only, so beside roots (and other
 * logarithms) of elements it may be left open: these leave numbers beside 0. Roots of anything else may
 * not. Where sqrt(-a) and log(a) are defined a is 0, and laws that are true of a > 0 say what they like
 * of sigmoid(-log(a)).
 *
 * A root of what hangs on something that is caught is caught itself: sqrt(sigmoid(u) - 1) is a root
 * of a negative number at every u but an infinite one, at which it is 0. And so is all that hangs on a
 * comparison of what may be undefined, which may have chosen otherwise.
 *
 * Of what stands in products and quotients alone nothing need be asked: a / (b / c) is the term a
 * c / b. The outer quotient asks that b is not 0. Where c is 0 then, b / c is infinite and no NaN,
 * and the quotient by it is 0, as the term is. That holds of any tree of products and quotients:
 * what would make it 0 or NaN stands in the numerator, where the outer quotient asks for it. So c
 * is not asked for on either side. In a / (b / c + d) it is caught; and it is asked for where the
 * divisor is the number 0, for nothing of b / c is left in the term of 0 (b / c). */
#ifndef GRAFT_CAUGHT_H
#define GRAFT_CAUGHT_H

#include "graft/rule.h"

#include <stdbool.h>

/* Whether an operator may let an infinity in this operand come out as a number, with the activation
 * that it has (0 for operators without). */
bool graft_catches_infinity(uint32_t op, uint32_t operand, int32_t activation);
/* Whether some operator of a rule is not continuous. */
bool graft_rule_jumps(const graft_rule *rule);

#endif

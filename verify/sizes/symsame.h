/* symsame.h - whether two values are the same bits at a symbolic index, whatever the bits of the
 * elements and the values of float attributes are.
 *
 * Both are terms of the second reading (symbits.h). Conditionals on indices are taken apart as in
 * proofs of equality (symask.h). What is left is compared from the outside in: the same operation
 * on operands that are the same; elements of one variable at indices that Z3 says are equal; the
 * same constant, slot or size. Of arithmetic these laws are used, which hold for every x and y of
 * IEEE 754 with round-to-nearest, infinities, NaN, zeros of both signs and subnormal numbers
 * included (payloads and signs of NaN aside):
 *      x + y = y + x and x y = y x;
 *      1 x = x, x / 1 = x and x - 0 = x;
 *      x + 0 = x where x is a sum that began with 0 or has such a summand: sums of which not both
 *      summands are -0 never are;
 *      max(max(x, y), y) = max(y, max(x, y)) = max(x, y), max(x, max(x, y)) = max(x, y) and
 *      max(x, x) = x, and the same of min. Of two operands that compare equal, as zeros of both
 *      signs do, the right one is taken (algebra_float.c): maxima do not commute, and the engine
 *      finds them either way (symbolic.h);
 *      an operation on two constants is the constant that binary32 gives.
 * Constants in these laws are written in the rule: a slot is never one, for it stands for all.
 *
 * Scalars that stand for all shapes of an elementwise rule (symcase.h) do so here too: the argument
 * says of which elements an element is made, and broadcasting does not change the operations.
 *
 * Two folds of one kind are the same when they go through the same elements in the same order:
 * after binders of size 1 are replaced by 0, both have as many; binder for binder, from the
 * outermost, one is the other and a shift in which no binder occurs, so that the orders of both
 * are one; under this map Z3 says that ranges with their guards are the same set; and the bodies
 * are the same bits in it. The laws of sums and maxima in symfold.h are not used. These are:
 *      a sum over one element is 0 + x, a maximum over one is x, a mean over one 0 + x;
 *      parts of a sum's guard without binders are taken out: g ? sum : 0;
 *      a sum over an empty range is 0;
 *      a maximum over a range of what no binder occurs in is that;
 *      max over t of max(x(t), c) = max(max over t of x(t), c), and the same of min(x(t), c): among
 *      x and y that compare equal both sides take the same one, and c's bits where it is c. */
#pragma once

#include "verify/sizes/symbits.h"

/* False when it was not found out. s->numbers are bits. */
bool graft_sym_same_bits(graft_sym *s, const graft_facts *facts, Z3_ast x, Z3_ast y);

/* smtsizes.h - what a proof for all sizes rests on (symbolic.h), as SMT-LIB 2.6: every formula that
 * Z3 was asked about and found unsatisfiable, in the order in which it was asked.
 *
 *      (set-logic QF_UFNIRA)
 *      (push 1)                        one question
 *      (declare-const d0_1 Int)        its symbols: dimension 1 of variable a, index q0, ...
 *      (declare-fun fn_window (Int Int) Int)
 *      (define-fun t0 () Int ...)      a term that occurs more than once
 *      (assert (or false
 *        ...
 *      ))
 *      (check-sat)                     must be unsat
 *      (pop 1)
 *
 * Most are about integers: whether an index lies in a range, whether two indices are the same,
 * whether an assumed shape is possible at all. Others are the equalities of values at one index
 * that were left when folds and elements had become symbols. Not written is what needs no solver:
 * equalities of terms that are one term once they are in normal form. So the files recheck Z3's
 * answers; the reading of operators, the laws of folds and the normal form are trusted. */
#pragma once

#include "verify/export/smt.h"

/* Proves the rule again and appends the file to `out`; `*checks` is the number of check-sats in it.
 * GRAFT_UNDECIDED when it is not proved this time (another version of the solver), leaving `out`.
 */
GRAFT_MUST_USE graft_status graft_smt_print_sizes(graft_env *env, const graft_smt_claim *claim,
                                                  graft_buffer *out, uint32_t *checks);

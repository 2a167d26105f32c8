/* smt.h - a rule's obligations as SMT-LIB 2 (version 2.6), for solvers that are not the one that
 * proved it.
 *
 *      (set-logic QF_UFNRA)            QF_NRA when no function occurs
 *      (declare-fun fn_exp (Real) Real)
 *      (declare-const x0_0 Real)       element 0 of variable a, and so on
 *      (push 1)                        one instance of the certificate
 *      (define-fun t0 () Real ...)     a term that occurs more than once
 *      (assert ...)                    where the source is defined, laws of functions
 *      (assert (or                     the questions: an element that differs,
 *        ...                           a place where the target alone is undefined; beside each
 *                                      that functions in it grow (growth.h)
 *      ))
 *      (check-sat)                     must be unsat
 *      (pop 1)
 *
 * What is written is the obligation as it is built (obligation.h), before any simplification, with
 * every assumption; only n-ary sums and products are written for nested ones. */
#pragma once

#include "graph/base/file.h"
#include "verify/sweep/cover.h"

typedef struct graft_smt_claim {
    const char *title;  /* Comment lines without "; ", may contain several lines; or NULL. */
    const char *solver; /* That proved it. */
    const graft_rule *rule;
    const graft_point *points; /* `count` instances of the rule. */
    uint32_t count;
    bool unbounded; /* Claimed for all sizes: see smtsizes.h. */
} graft_smt_claim;

/* Appends the file of one rule to `out`; `*checks` is the number of check-sats in it. Equal rules
 * and points give equal bytes. GRAFT_BAD_INPUT when a point is no instance of the rule. */
GRAFT_MUST_USE graft_status graft_smt_print(graft_env *env, const graft_smt_claim *claim,
                                            graft_buffer *out, uint32_t *checks);

/* Comment lines. */
void graft_smt_print_title(graft_buffer *out, const char *title);

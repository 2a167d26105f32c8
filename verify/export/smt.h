/* smt.h - what a rule's proofs rest on as SMT-LIB 2 (version 2.6), for solvers that are not the one
 * that proved it: formulas that Z3 found unsatisfiable, as Z3 prints them, each between a push and
 * its pop. Functions of numbers are called fn_exp and so on.
 *
 * *Instances*: the obligation of each instance of the certificate as it is built (obligation.h),
 * before any simplification, with every assumption. Laws of functions are assertions of their own;
 * the last one is that some element differs, or is undefined in the target alone, each beside the
 * conditions of the source and beside the fact that functions in it grow (growth.c).
 *
 * *Questions*: every formula that the proof for all sizes asked about, in the order in which it was
 * asked. Most are about integers: whether an index lies in a range, whether two indices are the
 * same, whether an assumed shape is possible at all. Others are the equalities of values at one
 * index that were left when folds and elements had become symbols. Not written is what needs no
 * solver: equalities of terms that are one term once they are in normal form. So the files recheck
 * Z3's answers; the reading of operators, the laws of folds and the normal form are trusted. */
#pragma once

#include "graph/base/file.h"
#include "verify/sweep/cover.h"

#include <z3.h>

typedef struct graft_smt_claim {
    const char *title;  /* Comment lines without "; ", may contain several lines; or NULL. */
    const char *solver; /* That proved it. */
    const graft_rule *rule;
    const graft_point *points; /* `count` instances of the rule. */
    uint32_t count;
    bool unbounded; /* Claimed for all sizes. */
} graft_smt_claim;

/* Appends the file of a rule's instances to `out`; `*checks` is the number of check-sats in it. Equal rules
 * and points give equal bytes. GRAFT_BAD_INPUT when a point is no instance of the rule. */
GRAFT_MUST_USE graft_status graft_smt_print(graft_env *env, const graft_smt_claim *claim,
                                            graft_buffer *out, uint32_t *checks);

/* Proves the rule again and appends the file of its questions to `out`; `*checks` is the number of
 * check-sats in it. GRAFT_UNDECIDED when it is not proved this time (another version of the
 * solver), leaving `out`. */
GRAFT_MUST_USE graft_status graft_smt_print_sizes(graft_env *env, const graft_smt_claim *claim,
                                                  graft_buffer *out, uint32_t *checks);

/* A term in which functions of numbers are called fn_exp and so on. */
Z3_ast graft_smt_rename(Z3_context z3, Z3_ast term);
/* Comment lines. */
void graft_smt_print_title(graft_buffer *out, const char *title);

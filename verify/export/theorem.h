/* theorem.h - what a proof for all sizes claims, whole, as SMT-LIB 2.6: one file for each case.
 *
 * The proof is of all cases (symcase.h); of a rule with more than GRAFT_THEOREM_CASES an even sample
 * of so many is written. A file holds, as the plain reading (symplain.h) has the case and before any
 * simplification,
 *      sizes of variables, attributes and indices as constants of sort Int (numbers: Real): d0_1 is
 *      the last size of the first variable;
 *      variables as functions from an index to a number, x0(i, j);
 *      each operator's output as a defined function of the index of its element, each sum and
 *      maximum as a function defined by recursion over its range;
 *      what shape inference and the precondition let through, and where the source is defined, as
 *      assertions, and laws of exp and the like for the arguments that occur;
 *      the claim's opposite: at some index within an output the two sides differ, or the target is
 *      undefined somewhere.
 * Its check-sat must be unsat. */
#pragma once

#include "graph/base/file.h"
#include "graph/rule/rulefile.h"

enum { GRAFT_THEOREM_CASES = 64 };

typedef struct graft_theorem_file {
    uint32_t number; /* Of the case, from 0. */
    uint32_t count;  /* Cases of the rule, with those that are left out. */
    const char *text;
    size_t size;
} graft_theorem_file;

/* Is given each file of a rule; a failure ends it. */
typedef graft_status (*graft_theorem_sink)(graft_env *env, void *context,
                                           const graft_theorem_file *file);

/* Writes the theorem of a rule that is claimed for all sizes. `title`: comment lines.
 * GRAFT_UNDECIDED when a case has no reading. */
GRAFT_MUST_USE graft_status graft_theorem_write(graft_env *env, const graft_rule *rule,
                                                const char *title, graft_theorem_sink sink,
                                                void *context);

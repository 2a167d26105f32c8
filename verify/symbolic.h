/* symbolic.h - the proof of a rule for all sizes.
 *
 * The cases of a rule (symcase.h) are finitely many. In each, shapes and attributes are terms over
 * symbols, and what the engine lets through is assumed of them (symshape.h). Both sides are read as
 * terms over the index of an element (symread.h; sums and maxima: symfold.h), and Z3 is asked
 * whether they can differ at an index within the output, or the target be undefined where the
 * source is not (symask.h). A rule is proved when Z3 says `unsat` in every case, and at least one
 * has instances.
 *
 * Trusted beside Z3: the index maps and ranges of symread.c and symshape.c, which tests compare
 * with the bodies and shape functions that the engine and every other algebra use, and the laws of
 * sums and maxima listed in symfold.h. */
#ifndef GRAFT_SYMBOLIC_H
#define GRAFT_SYMBOLIC_H

#include "graph/env.h"
#include "verify/instance.h"
#include "verify/prove.h"

typedef struct graft_symbolic_result {
    bool proved;
    uint32_t cases;     /* Whose ranks and constants fit. */
    uint32_t questions; /* Put to the solver. */
    graft_effort effort;
    char reason[160]; /* Why it is not proved. */
} graft_symbolic_result;

/* Tries to prove a valid rule for all sizes, in a context of its own. Ends without a proof when it
 * has taken options->most, or what any proof may take. Some of the rule's instances, if there are
 * any at hand, spare Z3 questions that are false at one of them. */
void graft_symbolic_prove(graft_env *env, const graft_rule *rule, const graft_point *points,
                          uint32_t count, const graft_prove_options *options,
                          graft_symbolic_result *result);

#endif

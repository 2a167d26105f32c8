/* core.h - the proof of a rule for all sizes: the one place where a rule becomes `proved`.
 *
 * The cases of a rule (symcase.h) are finitely many. In each, shapes and attributes are terms over
 * symbols, and what the engine lets through is assumed of them (symshape.h). Both sides are read as
 * terms over the index of an element (symread.h; sums and maxima: symfold.h), and Z3 is asked
 * whether they can differ at an index within the output, or the target be undefined where the
 * source is not (symask.h). A rule is proved when Z3 says `unsat` in every case, and at least one
 * has instances.
 *
 * Trusted beside Z3: graph/meaning/reading.inc over terms (symread.c) and symshape.c, which tests
 * compare with the bodies and shape functions that the engine and every other algebra use, and the
 * laws of sums and maxima listed in symfold.h. */
#ifndef GRAFT_CORE_H
#define GRAFT_CORE_H

#include "verify/core/hints.h"
#include "verify/core/limits.h"
#include "verify/core/prover.h"
#include "verify/core/readings.h"
#include "verify/core/symcase.h"

typedef struct graft_core_result {
    bool same;          /* Both sides are the same numbers, of those that were asked for. */
    bool proved;        /* And these are real ones. */
    uint32_t cases;     /* Whose ranks and constants fit. */
    uint32_t questions; /* Put to the solver. */
    graft_effort effort;
    char reason[GRAFT_ROOM_REASON]; /* Why it is neither. */
} graft_core_result;

/* Tries to prove one valid rule after another. They share the prover's context: what it was asked
 * about sizes it is not asked again, which is most of it where rules are versions of one. */
typedef struct graft_core graft_core;

/* The prover must outlive it. */
graft_core *graft_core_open(graft_prover *prover);
void graft_core_close(graft_core *p);

/* Tries to prove a rule for all sizes, as a task of the prover. Ends without a proof when it has
 * taken options->most, or what any proof may take. `hints` may be NULL; none of them can make a proof
 * of what is none. With `numbers` the same cases, shapes and index maps are read and compared in these,
 * and the rule is not proved by it; NULL: in real ones. */
void graft_core_try(graft_core *p, const graft_rule *rule, const graft_sym_hints *hints,
                    graft_sym_numbers *numbers, const graft_prove_options *options,
                    graft_core_result *result);

/* The case in which the last try failed; NULL when it was in none. */
const graft_sym_case *graft_core_failed_case(const graft_core *p);
/* The terms that it works with: hints and readings are about these. */
graft_sym *graft_core_terms(graft_core *p);

#endif

/* symbolic.h - the proof of a rule for all sizes.
 *
 * The cases of a rule (symcase.h) are finitely many. In each, shapes and attributes are terms over
 * symbols, and what the engine lets through is assumed of them (symshape.h). Both sides are read as
 * terms over the index of an element (symread.h; sums and maxima: symfold.h), and Z3 is asked
 * whether they can differ at an index within the output, or the target be undefined where the
 * source is not (symask.h). A rule is proved when Z3 says `unsat` in every case, and at least one
 * has instances.
 *
 * That both sides give the same bits is a theorem of its own, over the same cases, shapes and index
 * maps, where values are read as what operators do to bits (symbits.h, symsame.h). It says nothing
 * of real numbers and needs nothing of them.
 *
 * Trusted beside Z3: graph/meaning/reading.inc over terms (symread.c) and symshape.c, which tests compare
 * with the bodies and shape functions that the engine and every other algebra use, and the laws of
 * sums and maxima listed in symfold.h. */
#ifndef GRAFT_SYMBOLIC_H
#define GRAFT_SYMBOLIC_H

#include "graph/base/env.h"
#include "verify/instances/instance.h"
#include "verify/instances/prove.h"
#include "verify/limits.h"
#include "verify/sizes/symcase.h"

typedef struct graft_symbolic_result {
    bool proved;
    uint32_t cases;     /* Whose ranks and constants fit. */
    uint32_t questions; /* Put to the solver. */
    graft_effort effort;
    char reason[GRAFT_ROOM_REASON]; /* Why it is not proved. */
} graft_symbolic_result;

/* Tries to prove one valid rule after another. They share the prover's context: what it was asked
 * about sizes it is not asked again, which is most of it where rules are versions of one. */
typedef struct graft_symbolic graft_symbolic;

/* In env->unit. The prover must outlive it. */
graft_symbolic *graft_symbolic_open(graft_env *env, graft_prover *prover);
void graft_symbolic_close(graft_symbolic *p);
/* Tries to prove a rule for all sizes, as a task of the prover. Ends without a proof when it has
 * taken options->most, or what any proof may take. Some of the rule's instances, if there are any
 * at hand, spare Z3 questions that are false at one of them. */
void graft_symbolic_try(graft_symbolic *p, const graft_rule *rule, const graft_point *points,
                        uint32_t count, const graft_prove_options *options,
                        graft_symbolic_result *result);
/* Tries to prove that both sides of a rule give the same bits of binary32 for all sizes, inputs and
 * values of attributes (symsame.h); the rest is as above. */
void graft_symbolic_try_exact(graft_symbolic *p, const graft_rule *rule, const graft_point *points,
                              uint32_t count, const graft_prove_options *options,
                              graft_symbolic_result *result);

/* The same in a context of its own. */
void graft_symbolic_prove(graft_env *env, const graft_rule *rule, const graft_point *points,
                          uint32_t count, const graft_prove_options *options,
                          graft_symbolic_result *result);

/* "ranks 4,4,1 #1.axis=0". */
const char *graft_symbolic_print_case(graft_arena *arena, const graft_rule *rule,
                                      const graft_sym_case *c);

#endif

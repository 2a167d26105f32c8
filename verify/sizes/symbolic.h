/* symbolic.h - trying proofs for all sizes (core.h), with what helps to find them, and saying what
 * came of it. Nothing here is trusted.
 *
 * That both sides give the same bits is a theorem of its own, over the same cases, shapes and index
 * maps, where values are read as what operators do to bits (symbits.h, symsame.h). It says nothing
 * of real numbers and needs nothing of them: a rule is `same` by it, and not proved. */
#pragma once

#include "graph/base/env.h"
#include "verify/core/core.h"
#include "verify/instances/prove.h"

/* Its reason says in which case it failed. */
typedef graft_core_result graft_symbolic_result;

/* Tries to prove one valid rule after another. */
typedef struct graft_symbolic graft_symbolic;

/* In env->unit. The prover must outlive it. */
graft_symbolic *graft_symbolic_open(graft_env *env, graft_prover *prover);
void graft_symbolic_close(graft_symbolic *p);
/* Tries to prove a rule for all sizes (graft_core_try). */
void graft_symbolic_try(graft_symbolic *p, const graft_rule *rule,
                        const graft_prove_options *options, graft_symbolic_result *result);
/* Tries to prove that both sides of a rule give the same bits of binary32 for all sizes, inputs and
 * values of attributes, in whichever order the source's maxima and minima of two have their
 * operands: one proof for each, while they succeed. */
void graft_symbolic_try_exact(graft_symbolic *p, const graft_rule *rule,
                              const graft_prove_options *options, graft_symbolic_result *result);

/* The first in a context of its own. */
void graft_symbolic_prove(graft_env *env, const graft_rule *rule,
                          const graft_prove_options *options, graft_symbolic_result *result);

/* "ranks 4,4,1 #1.axis=0". */
const char *graft_symbolic_print_case(graft_arena *arena, const graft_rule *rule,
                                      const graft_sym_case *c);

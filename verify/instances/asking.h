/* asking.h - the ways of asking Z3 about an obligation. Nothing here is trusted where a rule is
 * proved for all sizes: what was asked is looked at by the prover (graft_prover_refutes).
 *
 * Most obligations are polynomial identities, possibly under the same case distinctions on both
 * sides: multiplied out into sums of monomials, the two sides become the same term and the joined
 * question becomes `false` before any search. Where that is not enough, questions are asked one by
 * one, the easier forms of each first, and those that differ only in the names of their symbols
 * once. An easier form claims more than the question: `unsat` of it proves the question, `sat`
 * refutes it only when nothing was replaced. */
#pragma once

#include "verify/instances/obligation.h"
#include "verify/instances/prove.h"

/* The solver's word on an obligation in the prover's context. */
graft_verdict graft_prove_obligation(graft_prover *p, const graft_obligation *o);
/* Whether the only question of an obligation that is `checked` is unsatisfiable, and by what; terms
 * lie in its arena. */
bool graft_ask_refute(graft_prover *p, const graft_obligation *o, graft_asked *refutation);

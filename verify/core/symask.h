/* symask.h - whether two values agree at a symbolic index.
 *
 * 1. Both are multiplied out. If they are not one term yet, conditionals on indices are taken
 * apart: where Z3 cannot decide a condition, both ways are gone, each with what it assumes.
 * 2. What the source's element asks of divisors and roots that reach it is assumed: where it asks
 *    this at many places, at those at which elements of the question occur.
 * 3. Folds become symbols, the same one where they are the same (symmatch.h); so do elements, and
 *    sizes as numbers.
 * 4. What is left is a question about real numbers and unknown functions, as for concrete shapes
 *    (obligation.h), and is put to Z3 in the same ways (prove.h). */
#ifndef GRAFT_SYMASK_H
#define GRAFT_SYMASK_H

#include "verify/core/symread.h"

/* What a question is asked with. */
typedef struct graft_sym_asker {
    graft_sym *s;
    const graft_sym_side *sides[2];    /* Their facts hold. */
    const graft_sym_conditions *given; /* Those of them that are not caught hold at the formals. */
    uint32_t leaves;                   /* Of all questions of a case, so far. */
} graft_sym_asker;

/* Whether Z3 says that left = right where `facts` hold. */
bool graft_sym_equal(graft_sym_asker *a, const graft_facts *facts, Z3_ast left, Z3_ast right);
/* Whether Z3 says that a condition holds where `facts` do. */
bool graft_sym_implied(graft_sym_asker *a, const graft_facts *facts, Z3_ast condition);

#endif

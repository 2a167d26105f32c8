/* Which searches a question is put to (verify/core/prover.c): not those that do not see how large
 * its polynomials are, when these are large. */
#include "tests/support/check.h"
#include "verify/core/prover.h"
#include "verify/instances/asking.h"
#include "verify/instances/guarded.h"

enum { SYMBOLS = 16, SUMMANDS_MOST = 130 };

/* A sum of `count` different products of two of the symbols. */
static Z3_ast sum_of_products(const graft_obligation *o, uint32_t count)
{
    Z3_ast parts[SUMMANDS_MOST];
    uint32_t made = 0;
    for (size_t a = 0; a < SYMBOLS && made < count; a++) {
        for (size_t b = a; b < SYMBOLS && made < count; b++) {
            parts[made++] = Z3_mk_mul(
                o->z3, 2,
                (Z3_ast[]){graft_term_symbol(&o->term, 0, a), graft_term_symbol(&o->term, 0, b)});
        }
    }
    assert_int_equal(made, count);
    return Z3_mk_add(o->z3, count, parts);
}

/* How often the solver is asked whether a sum of that many products is the first symbol,
 * which it is not. */
static uint32_t ask(graft_env *env, uint32_t count)
{
    const graft_prove_options options = graft_prove_defaults();
    graft_prove_result result;
    graft_prover prover;
    graft_obligation o;
    graft_prover_open(&prover, &options, &result);
    graft_obligation_open(&o, env->unit, prover.z3);
    Z3_ast left = sum_of_products(&o, count);
    Z3_ast right = graft_term_symbol(&o.term, 0, 0);
    const graft_obligation_parts parts = {.left = &left, .right = &right, .element_count = 1};
    graft_obligation_state(&o, &parts);
    assert_int_equal(graft_obligation_eased(&o, 0, GRAFT_EASE_PURE).summands, count);
    assert_int_not_equal(graft_prove_obligation(&prover, &o), GRAFT_VERDICT_PROVED);
    graft_obligation_close(&o);
    graft_prover_close(&prover);
    return result.questions;
}

CHECK_CASE(test_large_sums)
{
    const uint32_t few = ask(env, GRAFT_ROOM_FEW_SUMMANDS);
    const uint32_t more = ask(env, GRAFT_ROOM_FEW_SUMMANDS + 1);
    const uint32_t most = ask(env, GRAFT_ROOM_SUMMANDS);
    const uint32_t too_many = ask(env, GRAFT_ROOM_SUMMANDS + 1);
    assert_int_equal(more, few - 1); /* Not the newer simplex... */
    assert_int_equal(most, more);
    assert_int_equal(too_many, most - 1); /* ...nor the decision procedure of the reals. */
}

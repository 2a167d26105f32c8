/* test_opensizes.c - what is claimed of an operator in a graph with open sizes (symshape.h) is what
 * the engine checks, no less: at sizes where all claims are true, the engine accepts the operator
 * and gives the same shapes, and nowhere else. Where rules are proved a claim too few would do no
 * harm; here it would let a rule apply at sizes at which the engine had refused it. */
#include "tests/support/cases.h"
#include "tests/support/check.h"
#include "verify/sizes/graphsizes.h"
#include "verify/sizes/symplain.h"

enum { DRAWINGS = 1500, SIZE_MOST = 7 };

typedef struct {
    graft_prove_options options;
    graft_prove_result result;
    graft_prover prover;
    graft_sym s;
    graft_sym_plain plain;
} workshop;

static uint32_t count_made(const check_case *drawn)
{
    const bool fill = drawn->op == GRAFT_OP_fill;
    const int32_t *dims = &drawn->attrs[fill ? GRAFT_ATTR_fill_dim_0 : 0];
    uint32_t made = 0;
    while ((fill || drawn->op == GRAFT_OP_reshape) && made < GRAFT_MAX_RANK && dims[made] > 0) {
        made++;
    }
    return made;
}

/* Other sizes of the same ranks: mostly a few that differ from those that fit. */
static void change_sizes(graft_rng *rng, check_case *drawn)
{
    for (uint32_t i = 0; i < graft_op(drawn->op)->input_count; i++) {
        for (uint32_t k = 0; k < drawn->in[i].rank; k++) {
            if (graft_rng_below(rng, 4) == 0) {
                drawn->in[i].dims[k] = 1 + (int32_t)graft_rng_below(rng, SIZE_MOST);
            }
        }
    }
}

static bool is_true(workshop *w, Z3_ast claim)
{
    Z3_ast simple = Z3_simplify(w->s.z3, graft_sym_write_sizes(&w->s, claim));
    const Z3_lbool value = Z3_get_bool_value(w->s.z3, simple);
    assert_true(value != Z3_L_UNDEF);
    return value == Z3_L_TRUE;
}

/* Whether all claims are true of a case's sizes; `out` receives what is made. */
static bool are_claims_true(workshop *w, graft_env *env, const check_case *drawn, graft_shape *out)
{
    graft_sym_equations *claims = GRAFT_NEW(env->unit, graft_sym_equations, 1);
    graft_sym_shape terms[GRAFT_MAX_INPUTS];
    graft_sym_shape made[GRAFT_MAX_OUTPUTS] = {{.rank = 0}};
    const graft_sym_shape *in[GRAFT_MAX_INPUTS] = {NULL};
    claims->s = &w->s;
    for (uint32_t i = 0; i < graft_op(drawn->op)->input_count; i++) {
        in[i] = &terms[i];
        terms[i].rank = drawn->in[i].rank;
        for (uint32_t k = 0; k < terms[i].rank; k++) {
            terms[i].dims[k] = graft_sym_int(&w->s, drawn->in[i].dims[k]);
        }
    }
    bool all = graft_sym_apply(claims, drawn->op, drawn->attrs, in, count_made(drawn), made);
    for (uint32_t i = 0; all && i < claims->claim_count; i++) {
        all = is_true(w, claims->claims[i]);
    }
    for (uint32_t o = 0; all && o < graft_op(drawn->op)->output_count; o++) {
        out[o] = (graft_shape){.rank = (uint8_t)made[o].rank, .dtype = drawn->out[o].dtype};
        for (uint32_t k = 0; k < made[o].rank; k++) {
            Z3_ast size = Z3_simplify(w->s.z3, graft_sym_write_sizes(&w->s, made[o].dims[k]));
            int number = 0;
            assert_true(Z3_get_numeral_int(w->s.z3, size, &number));
            out[o].dims[k] = number;
        }
    }
    return all;
}

CHECK_CASE(test_claims)
{
    uint32_t refused = 0;
    workshop *w = GRAFT_NEW(env->life, workshop, 1);
    w->options = graft_prove_defaults();
    graft_prover_open(&w->prover, &w->options, &w->result);
    graft_sym_open(&w->s, &w->prover);
    graft_sym_plain_open(&w->plain, &w->s, env->life);
    for (uint32_t op = GRAFT_OP_NONE + 1; op < GRAFT_OP_COUNT; op++) {
        graft_rng rng;
        graft_rng_derive(&rng, 11, op);
        for (uint32_t i = 0; i < DRAWINGS; i++) {
            GRAFT_SCOPED(env->unit);
            check_case drawn;
            graft_shape out[GRAFT_MAX_OUTPUTS];
            check_case_draw(&rng, op, &drawn);
            change_sizes(&rng, &drawn);
            const bool accepted =
                graft_infer_shapes(op, drawn.attrs, drawn.in, drawn.out) == GRAFT_OK;
            bool same = are_claims_true(w, env, &drawn, out) == accepted;
            for (uint32_t o = 0; same && accepted && o < graft_op(op)->output_count; o++) {
                same = graft_shape_equal(&out[o], &drawn.out[o]);
            }
            if (!same) {
                check_case_print(&drawn);
                fail_msg("%s: the engine %s it", graft_op(op)->name,
                         accepted ? "accepts" : "refuses");
            }
            refused += !accepted;
        }
    }
    assert_true(refused > 1000);
    graft_sym_close(&w->s);
    graft_prover_close(&w->prover);
}

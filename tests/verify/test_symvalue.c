/* test_symvalue.c - values of terms at a rule's instances are what Z3 says they are, our own
 * functions mean what symterm.h says, indices are where conditions put them. */
#include "verify/sizes/symvalue.h"

#include "graph/base/rng.h"
#include "tests/support/check.h"
#include "tests/support/rows.h"

#include <stdlib.h>

enum { TEXT_BYTES = 1024, SYMBOLS = 6, OWN = 4, POINTS = 40 };

/* Sizes and attributes of the rule below, indices. */
static const char *const names[SYMBOLS] = {"d0_2", "d0_1", "s0", "s1", "q0", "r0"};
static const char *const rule_text = "slice#1(relu(a)) = relu(slice#1(a))";

/* Closed once the sizes and attributes are numbers. */
static const char *const conditions[] = {
    "(<= (+ d0_2 (* 3 s0)) (* d0_1 s1))",
    "(= (mod (- d0_2 7) d0_1) (div (- s0 9) d0_2))",
    "(<= (* d0_1 (div (- 1 s0) d0_1)) (- 1 s0))",
    "(and (< s0 d0_2) (or (> s1 d0_1) (= s0 s1)))",
    "(=> (>= s0 2) (not (= d0_2 (ite (< s1 d0_1) s1 d0_1))))",
    "(distinct (- s0 s1 d0_2) (- d0_1))",
    "(= (< s0 s1) (< d0_2 d0_1))",
    "(or (= s0 1) (< (* s0 s0 s0) (* d0_2 d0_1)))",
};

/* True at every place. */
static const char *const laws[] = {
    "(= (window d0_2 d0_1) (+ (div d0_2 d0_1) 1))",
    "(= (window (- 0 d0_2) d0_1) (+ (div (- 0 d0_2) d0_1) 1))",
    "(= (group s0 (* 2 d0_2) 2) (div s0 d0_2))",
    "(= (place2 s0 s1 d0_2 d0_1) (+ (* s0 d0_1) s1))",
    "(= (part2_0 s0 d0_2 d0_1) (mod (div s0 d0_1) d0_2))",
    "(= (part2_1 s0 d0_2 d0_1) (mod s0 d0_1))",
};

/* Conditions together, and whether numbers for the indices make them true. */
typedef struct {
    const char *conditions[4];
    bool satisfied;
} case_of;

static const case_of cases[] = {
    {{"(= r0 (- d0_2 1))", "(<= 0 r0)", "(< r0 d0_2)"},        true },
    {{"(= q0 0)", "(and (<= 0 q0) (< q0 d0_1))"},              true },
    {{"(= r0 (- d0_2 1))", "(<= 0 r0)", "(not (<= d0_2 r0))"}, true },
    {{"(< r0 0)", "(< r0 d0_2)"},                              false},
    {{"(= r0 d0_2)", "(< r0 d0_2)"},                           false},
    {{"(= (div d0_2 0) (div d0_2 0))"},                        false},
    {{"(= x x)"},                                              false},
    {{"(< 0 (* 4000000000 4000000000 d0_2))"},                 false},
};

typedef struct {
    graft_sym s;
    graft_rule rule;
    graft_point points[POINTS];
    Z3_ast symbols[SYMBOLS];
} workspace;

static Z3_ast parse(const workspace *w, const char *text)
{
    Z3_context z3 = w->s.z3;
    Z3_symbol decl_names[SYMBOLS + OWN + 2];
    Z3_func_decl decls[SYMBOLS + OWN + 2] = {0};
    const Z3_func_decl own[OWN + 1] = {w->s.window, w->s.group, w->s.place[2], w->s.part[2][0],
                                       w->s.part[2][1]};
    uint32_t count = 0;
    for (; count < SYMBOLS; count++) {
        decls[count] = Z3_get_app_decl(z3, Z3_to_app(z3, w->symbols[count]));
    }
    for (uint32_t i = 0; i <= OWN; i++) {
        decls[count++] = own[i];
    }
    decls[count++] = Z3_get_app_decl(z3, Z3_to_app(z3, graft_sym_symbol(&w->s, "x")));
    for (uint32_t i = 0; i < count; i++) {
        decl_names[i] = Z3_get_decl_name(z3, decls[i]);
    }
    char assertion[TEXT_BYTES];
    assert_true(snprintf(assertion, sizeof assertion, "(assert %s)", text) < TEXT_BYTES);
    Z3_ast_vector read =
        Z3_parse_smtlib2_string(z3, assertion, 0, NULL, NULL, count, decl_names, decls);
    Z3_ast_vector_inc_ref(z3, read);
    assert_int_equal(Z3_ast_vector_size(z3, read), 1);
    Z3_ast term = Z3_ast_vector_get(z3, read, 0);
    term = Z3_mk_and(z3, 1, &term); /* Lives as long as the context, unlike what was read. */
    Z3_ast_vector_dec_ref(z3, read);
    return term;
}

static void open_workspace(workspace *w, graft_env *env, graft_prover *prover)
{
    graft_rng rng = check_rng(5);
    graft_sym_open(&w->s, prover);
    w->rule = rows_parse(env, rule_text);
    for (uint32_t i = 0; i < SYMBOLS; i++) {
        w->symbols[i] = graft_sym_symbol(&w->s, names[i]);
    }
    for (uint32_t i = 0; i < POINTS; i++) {
        graft_point *p = &w->points[i];
        p->vars[0] = (graft_shape){.rank = 2, .dtype = GRAFT_DTYPE_F32};
        for (uint32_t k = 0; k < 2; k++) {
            p->vars[0].dims[k] = (int32_t)graft_rng_below(&rng, 6) + 1;
            p->slots[k] = (int32_t)graft_rng_below(&rng, 6);
        }
    }
}

static bool is_satisfied(workspace *w, uint32_t point, uint32_t count, const Z3_ast *terms)
{
    graft_sym_values *values = graft_sym_values_new(&w->s, &w->rule, &w->points[point], 1);
    bool satisfied = graft_sym_values_satisfy(values, count, terms);
    graft_sym_values_free(values);
    return satisfied;
}

static bool is_true_for_z3(const workspace *w, uint32_t point, Z3_ast term)
{
    const graft_point *p = &w->points[point];
    Z3_ast numbers[4] = {graft_sym_int(&w->s, p->vars[0].dims[0]),
                         graft_sym_int(&w->s, p->vars[0].dims[1]),
                         graft_sym_int(&w->s, p->slots[0]), graft_sym_int(&w->s, p->slots[1])};
    Z3_ast placed = Z3_substitute(w->s.z3, term, 4, w->symbols, numbers);
    Z3_lbool value = Z3_get_bool_value(w->s.z3, Z3_simplify(w->s.z3, placed));
    assert_int_not_equal(value, Z3_L_UNDEF);
    return value == Z3_L_TRUE;
}

static void check_conditions(workspace *w)
{
    for (size_t i = 0; i < sizeof conditions / sizeof conditions[0]; i++) {
        Z3_ast term = parse(w, conditions[i]);
        for (uint32_t k = 0; k < POINTS; k++) {
            if (is_satisfied(w, k, 1, &term) != is_true_for_z3(w, k, term)) {
                fail_msg("%s: differs from Z3 at point %u", conditions[i], k);
            }
        }
    }
}

static void check_laws(workspace *w)
{
    for (size_t i = 0; i < sizeof laws / sizeof laws[0]; i++) {
        Z3_ast term = parse(w, laws[i]);
        Z3_ast opposite = Z3_mk_not(w->s.z3, term);
        for (uint32_t k = 0; k < POINTS; k++) {
            if (!is_satisfied(w, k, 1, &term) || is_satisfied(w, k, 1, &opposite)) {
                fail_msg("%s: not so at point %u", laws[i], k);
            }
        }
    }
}

static void check_cases(workspace *w)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Z3_ast terms[4];
        uint32_t count = 0;
        for (; count < 4 && cases[i].conditions[count] != NULL; count++) {
            terms[count] = parse(w, cases[i].conditions[count]);
        }
        for (uint32_t k = 0; k < POINTS; k++) {
            if (is_satisfied(w, k, count, terms) != cases[i].satisfied) {
                fail_msg("%s: wrong at point %u", cases[i].conditions[0], k);
            }
        }
    }
}

/* What is true stays true while the table of terms grows and moves. */
static void check_growth(workspace *w)
{
    enum { TERMS = 10000, BEYOND = 1000 };
    graft_sym_values *values = graft_sym_values_new(&w->s, &w->rule, w->points, POINTS);
    for (uint32_t i = 0; i < TERMS; i++) {
        Z3_ast number = graft_sym_int(&w->s, BEYOND + i);
        Z3_ast holds = Z3_mk_lt(w->s.z3, w->symbols[2], number);
        Z3_ast fails = Z3_mk_lt(w->s.z3, number, w->symbols[2]);
        if (!graft_sym_values_satisfy(values, 1, &holds) ||
            graft_sym_values_satisfy(values, 1, &fails)) {
            fail_msg("wrong after %u terms", i);
        }
    }
    graft_sym_values_free(values);
}

CHECK_CASE(test_values)
{
    const graft_prove_options options = graft_prove_defaults();
    graft_prove_result result;
    graft_prover prover;
    workspace *w = GRAFT_NEW(env->life, workspace, 1);
    graft_prover_open(&prover, &options, &result);
    open_workspace(w, env, &prover);
    check_conditions(w);
    check_laws(w);
    check_cases(w);
    check_growth(w);
    graft_sym_close(&w->s);
    graft_prover_close(&prover);
}

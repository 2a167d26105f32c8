/* test_products.c - what is stated of products and groups (products.h) is true of random integers,
 * and is enough for questions that Z3 does not answer without it. */
#include "verify/sizes/products.h"

#include "graph/base/rng.h"
#include "tests/support/check.h"
#include "verify/core/symassume.h"
#include "verify/sizes/hinter.h"

#include <stdlib.h>

typedef struct {
    const char *question;
    const char *facts[4];
    bool follows;
} case_of;

/* group is of an output, the number of outputs, the number of groups. */
/* clang-format off */
static const case_of cases[] = {
    {"(<= (* x f) (- (* b f) f))", {"(<= 0 x)", "(< x b)", "(<= 0 f)"}, true},
    {"(< (* x f) (- (* b f) f))", {"(<= 0 x)", "(< x b)", "(<= 0 f)"}, false},
    {"(<= 0 (- (* x f) (* s f)))", {"(<= 0 (- x s))", "(<= 0 f)"}, true},
    {"(<= 0 (- (* x f s) (* b f s)))", {"(<= b x)", "(<= 0 f)", "(<= 0 s)", "(<= 0 (* f s))"}, true},
    {"(< (* f (group q b g)) (* f g))", {"(and (<= 0 q) (< q b))", "(<= 1 f)", "(<= 1 g)"}, true},
    {"(= (group q b g) q)", {"(and (<= 0 q) (< q b))", "(= b g)"}, true},
    {"(= (group q (* 2 b) 2) 1)", {"(and (<= 0 q) (< q (* 2 b)))", "(<= b q)"}, true},
    {"(= (group q (* 2 b) 2) 1)", {"(and (<= 0 q) (< q (* 2 b)))", "(<= (- b 1) q)"}, false},
    {"(= (group q (* 3 b) 3) 1)", {"(and (<= 0 q) (< q (* 3 b)))", "(<= b q)", "(< q (* 2 b))"}, true},
    {"(<= (* f g) (* f (group q (* 2 b) (* 2 g))))",
     {"(and (<= 0 q) (< q (* 2 b)))", "(<= b q)", "(<= 0 f)", "(<= 1 g)"}, true},
    {"(< (group q (* 2 b) (* 2 g)) g)", {"(and (<= 0 q) (< q (* 2 b)))", "(not (<= b q))", "(<= 1 g)"}, true},
    {"(< (group q (* 2 b) (* 2 g)) g)", {"(and (<= 0 q) (< q (* 2 b)))", "(< q (* 2 b))"}, false},
    {"(= (* f (group q (* 2 b) (* 2 g))) (+ (* f g) (* f (group (- q b) b g))))",
     {"(and (<= 0 q) (< q (* 2 b)))", "(<= b q)", "(<= 1 g)"}, true},
    {"(= (group q (* 2 b) (* 2 g)) (group q b g))", {"(and (<= 0 q) (< q b))", "(<= 1 b)", "(<= 1 g)"}, true},
};
/* clang-format on */

enum { SYMBOLS = 7, DRAWS = 400, TEXT_BYTES = 1024 };
static const char *const names[SYMBOLS] = {"x", "f", "b", "s", "g", "q", "r"};

typedef struct {
    graft_sym s;
    graft_sym_hinter hinter;
    graft_rng rng;
    Z3_ast symbols[SYMBOLS];
    Z3_ast values[SYMBOLS];
    bool meaningless; /* Some group has no groups or uneven ones. */
} workspace;

static Z3_ast parse(const workspace *w, const char *text)
{
    Z3_context z3 = w->s.z3;
    Z3_symbol decl_names[SYMBOLS + 1];
    Z3_func_decl decls[SYMBOLS + 1];
    for (uint32_t i = 0; i < SYMBOLS; i++) {
        decl_names[i] = Z3_mk_string_symbol(z3, names[i]);
        decls[i] = Z3_get_app_decl(z3, Z3_to_app(z3, w->symbols[i]));
    }
    decl_names[SYMBOLS] = Z3_mk_string_symbol(z3, "group");
    decls[SYMBOLS] = w->s.group;
    char assertion[TEXT_BYTES];
    assert_true(snprintf(assertion, sizeof assertion, "(assert %s)", text) < TEXT_BYTES);
    Z3_ast_vector read =
        Z3_parse_smtlib2_string(z3, assertion, 0, NULL, NULL, SYMBOLS + 1, decl_names, decls);
    Z3_ast_vector_inc_ref(z3, read);
    assert_int_equal(Z3_ast_vector_size(z3, read), 1);
    Z3_ast term = graft_sym_simplify(&w->s, Z3_ast_vector_get(z3, read, 0));
    Z3_ast_vector_dec_ref(z3, read);
    return term;
}

static Z3_ast change_group(void *context, Z3_ast term)
{
    workspace *w = context;
    int64_t numbers[3] = {0};
    if (!graft_sym_is_app(&w->s, term, w->s.group)) {
        return term;
    }
    for (uint32_t i = 0; i < 3; i++) {
        Z3_ast number = Z3_simplify(w->s.z3, graft_sym_arg(&w->s, term, i));
        assert_true(Z3_get_numeral_int64(w->s.z3, number, &numbers[i]));
    }
    if (numbers[2] <= 0 || numbers[1] <= 0 || numbers[1] % numbers[2] != 0) {
        w->meaningless = true;
        return term;
    }
    int64_t share = numbers[1] / numbers[2];
    int64_t floor = numbers[0] >= 0 ? numbers[0] / share : -((share - 1 - numbers[0]) / share);
    return graft_sym_int(&w->s, floor);
}

/* The value of a formula at the drawn numbers. */
static Z3_lbool value_of(workspace *w, Z3_ast formula)
{
    w->meaningless = false;
    Z3_ast placed = Z3_substitute(w->s.z3, formula, SYMBOLS, w->symbols, w->values);
    placed = graft_term_rebuild(w->s.z3, placed, change_group, w);
    return Z3_get_bool_value(w->s.z3, Z3_simplify(w->s.z3, placed));
}

static void draw(workspace *w)
{
    for (uint32_t i = 0; i < SYMBOLS; i++) {
        w->values[i] = graft_sym_int(&w->s, (int64_t)graft_rng_below(&w->rng, 13) - 3);
    }
}

static void check_case(workspace *w, const case_of *c)
{
    graft_sym_law laws[GRAFT_ROOM_LEMMAS];
    Z3_ast lemmas[GRAFT_ROOM_LEMMAS];
    Z3_ast known[4];
    graft_facts facts[4];
    uint32_t count = 0;
    Z3_ast question = parse(w, c->question);
    for (; count < 4 && c->facts[count] != NULL; count++) {
        known[count] = parse(w, c->facts[count]);
        facts[count] =
            (graft_facts){.outer = count > 0 ? &facts[count - 1] : NULL, .fact = known[count]};
    }
    uint32_t lemma_count = graft_sym_list_products(&w->s, question, count, known, laws);
    for (uint32_t k = 0; k < lemma_count; k++) {
        lemmas[k] = graft_sym_state_law(&w->s, &laws[k]);
    }
    assert_true(lemma_count > 0);
    uint32_t compared = 0;
    for (uint32_t i = 0; i < DRAWS; i++) {
        draw(w);
        for (uint32_t k = 0; k < lemma_count; k++) {
            Z3_lbool value = value_of(w, lemmas[k]);
            if (!w->meaningless && value != Z3_L_TRUE) {
                fail_msg("%s: not true: %s", c->question, Z3_ast_to_string(w->s.z3, lemmas[k]));
            }
            compared += w->meaningless ? 0 : 1;
        }
    }
    assert_true(compared > 0);
    if (graft_sym_holds(&w->s, &facts[count - 1], question) != c->follows) {
        fail_msg("%s: %s", c->question, c->follows ? "was not proved" : "was proved");
    }
}

CHECK_CASE(test_lemmas)
{
    workspace *w = calloc(1, sizeof *w);
    graft_prover prover;
    graft_prove_result result;
    const graft_prove_options options = graft_prove_defaults();
    assert_non_null(w);
    graft_rng_seed(&w->rng, 3);
    graft_prover_open(&prover, &options, &result);
    graft_sym_open(&w->s, &prover);
    for (uint32_t i = 0; i < SYMBOLS; i++) {
        w->symbols[i] = graft_term_constant(w->s.z3, w->s.integer, "%s", names[i]);
    }
    graft_sym_hinter_open(&w->hinter, &w->s);
    w->s.hints = &w->hinter.hints;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_case(w, &cases[i]);
    }
    graft_sym_hinter_close(&w->hinter);
    graft_sym_close(&w->s);
    graft_prover_close(&prover);
    free(w);
}

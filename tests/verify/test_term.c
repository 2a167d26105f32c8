/* The term algebra: agreement with the field algebra on every operator that is exact, what is
 * simplified while terms are built, the laws of unknown functions, and how fast terms grow. */
#include "graph/base/bits.h"
#include "verify/core/term.h"

#include "graph/meaning/algebra_field.h"
#include "tests/support/cases.h"
#include "tests/support/check.h"
#include "verify/instances/cancel.h"
#include "verify/instances/guarded.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t prime = GRAFT_FIELD_PRIME;

typedef struct {
    graft_term_state k;
    Z3_context z3;
    graft_rng rng;
    check_case drawn;
    Z3_ast term_in[GRAFT_MAX_INPUTS][CHECK_CASE_ELEMENTS];
    Z3_ast term_out[GRAFT_MAX_OUTPUTS][CHECK_CASE_ELEMENTS];
    graft_guarded guarded_in[GRAFT_MAX_INPUTS][CHECK_CASE_ELEMENTS];
    graft_guarded guarded_out[GRAFT_MAX_OUTPUTS][CHECK_CASE_ELEMENTS];
    graft_field field_in[GRAFT_MAX_INPUTS][CHECK_CASE_ELEMENTS];
    graft_field field_out[GRAFT_MAX_OUTPUTS][CHECK_CASE_ELEMENTS];
} workspace;

static void close_workspace(void *object)
{
    workspace *w = object;
    graft_term_close(&w->k);
    Z3_del_context(w->z3);
    free(w);
}

static workspace *open_workspace(void)
{
    workspace *w = calloc(1, sizeof *w);
    assert_non_null(w);
    Z3_config config = Z3_mk_config();
    w->z3 = Z3_mk_context(config);
    Z3_del_config(config);
    graft_term_open(&w->k, w->z3);
    w->rng = check_rng(31);
    check_at_end(close_workspace, w);
    return w;
}

static void run_terms(workspace *w)
{
    const graft_guarded *in[GRAFT_MAX_INPUTS];
    graft_guarded *out[GRAFT_MAX_OUTPUTS];
    for (uint32_t i = 0; i < GRAFT_MAX_INPUTS; i++) {
        for (uint32_t k = 0; k < CHECK_CASE_ELEMENTS; k++) {
            w->guarded_in[i][k] = (graft_guarded){.term = w->term_in[i][k]};
        }
        in[i] = w->guarded_in[i];
    }
    for (uint32_t i = 0; i < GRAFT_MAX_OUTPUTS; i++) {
        out[i] = w->guarded_out[i];
    }
    memset(w->guarded_out, 0, sizeof w->guarded_out);
    graft_call call = check_case_call(&w->drawn);
    graft_guarded_run(&w->k, w->drawn.op, &call, in, out);
    for (uint32_t i = 0; i < GRAFT_MAX_OUTPUTS; i++) {
        for (uint32_t k = 0; k < CHECK_CASE_ELEMENTS; k++) {
            w->term_out[i][k] = w->guarded_out[i][k].term;
            if (w->guarded_out[i][k].divisors != NULL) {
                Z3_ast_vector_push(w->z3, w->k.domain, w->guarded_out[i][k].divisors);
            }
        }
    }
}

static void run_field(workspace *w)
{
    graft_field_state k = {0};
    check_case_run_field(&k, &w->drawn, w->field_in, w->field_out);
    assert_int_equal(k.ambiguous_count, 0);
    assert_int_equal(k.invalid_count, 0);
}

/* --------------------------------------------------------------- agreement */

/* The residue of a decimal number of any length. */
static uint64_t residue_of_digits(const char *digits, size_t count)
{
    uint64_t residue = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned __int128 shifted = (unsigned __int128)residue * 10U;
        uint64_t digit = (uint64_t)(digits[i] - '0');
        residue = ((uint64_t)(shifted % prime) + digit) % prime;
    }
    return residue;
}

/* Whether a numeral's value has this residue: numerator = residue denominator, modulo the prime. */
static bool has_residue(const workspace *w, Z3_ast numeral, uint64_t residue)
{
    if (!Z3_is_numeral_ast(w->z3, numeral)) {
        return false;
    }
    const char *text = Z3_get_numeral_string(w->z3, numeral);
    bool negative = text[0] == '-';
    const char *digits = text + (negative ? 1 : 0);
    size_t count = strcspn(digits, "/");
    uint64_t numerator = residue_of_digits(digits, count);
    uint64_t denominator = 1;
    if (digits[count] == '/') {
        denominator = residue_of_digits(digits + count + 1, strlen(digits + count + 1));
    }
    uint64_t product = (uint64_t)((unsigned __int128)residue * denominator % prime);
    return (negative && numerator != 0 ? prime - numerator : numerator) == product;
}

/* Symbols for terms; rationals n/d for the field, and as numerals in `values`. */
static uint32_t draw_inputs(workspace *w, Z3_ast *symbols, Z3_ast *values)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < graft_op(w->drawn.op)->input_count; i++) {
        for (size_t j = 0; j < graft_count(&w->drawn.in[i]); j++) {
            int64_t numerator = 1 + (int64_t)graft_rng_below(&w->rng, 50);
            int64_t denominator = 1 + (int64_t)graft_rng_below(&w->rng, 12);
            numerator = graft_rng_below(&w->rng, 2) == 0 ? -numerator : numerator;
            w->field_in[i][j] = graft_field_rational(numerator, denominator);
            w->term_in[i][j] = graft_term_symbol(&w->k, i, j);
            symbols[count] = w->term_in[i][j];
            values[count++] = graft_term_rational(&w->k, numerator, denominator);
        }
    }
    return count;
}

static bool calls_function(const check_case *drawn)
{
    const graft_op_info *info = graft_op(drawn->op);
    bool calls = (info->flags & GRAFT_FLAG_UNKNOWN_FN) != 0;
    for (uint32_t i = 0; i < info->attr_count; i++) {
        calls = calls || (graft_op_attr(drawn->op, i)->kind == GRAFT_ATTR_ACTIVATION &&
                          drawn->attrs[i] >= GRAFT_ACT_SIGMOID);
    }
    return calls;
}

/* A term without symbols, with quotients in place of reciprocals. */
static Z3_ast open_reciprocals(const workspace *w, Z3_ast term)
{
    Z3_ast args[8];
    Z3_app app = Z3_to_app(w->z3, term);
    uint32_t count = Z3_is_numeral_ast(w->z3, term) ? 0 : Z3_get_app_num_args(w->z3, app);
    if (count == 0 || count > 8) {
        return term;
    }
    for (uint32_t i = 0; i < count; i++) {
        args[i] = open_reciprocals(w, Z3_get_app_arg(w->z3, app, i));
    }
    if (Z3_get_app_decl(w->z3, app) == w->k.functions[GRAFT_TERM_INVERSE]) {
        return Z3_mk_div(w->z3, w->k.one, args[0]);
    }
    return Z3_update_term(w->z3, term, count, args);
}

static void check_elements(workspace *w, uint32_t count, const Z3_ast *symbols,
                           const Z3_ast *values)
{
    for (uint32_t i = 0; i < graft_op(w->drawn.op)->output_count; i++) {
        for (size_t j = 0; j < graft_count(&w->drawn.out[i]); j++) {
            Z3_ast term = Z3_substitute(w->z3, w->term_out[i][j], count, symbols, values);
            Z3_ast value = Z3_simplify(w->z3, open_reciprocals(w, term));
            if (!has_residue(w, value, w->field_out[i][j].residue)) {
                check_case_print(&w->drawn);
                fail_msg("output %u, element %zu: term %s, field %.17g", i, j,
                         Z3_ast_to_string(w->z3, value), w->field_out[i][j].shadow);
            }
        }
    }
}

/* A minimum of n elements, seen as a tree, has 2^n leaves. */
static void draw_small(workspace *w, uint32_t op)
{
    enum { ELEMENTS = 16 };
    bool small = false;
    while (!small) {
        check_case_draw(&w->rng, op, &w->drawn);
        small = true;
        for (uint32_t i = 0; i < graft_op(op)->input_count; i++) {
            small = small && graft_count(&w->drawn.in[i]) <= ELEMENTS;
        }
    }
}

/* Terms over symbols, evaluated exactly at rationals, have the residues that the field computes. */
CHECK_CASE(test_terms_and_field_agree)
{
    workspace *w = open_workspace();
    static Z3_ast symbols[GRAFT_MAX_INPUTS * CHECK_CASE_ELEMENTS];
    static Z3_ast values[GRAFT_MAX_INPUTS * CHECK_CASE_ELEMENTS];
    for (uint32_t op = 1; op < GRAFT_OP_COUNT; op++) {
        for (uint32_t i = 0; i < 12; i++) {
            draw_small(w, op);
            if (calls_function(&w->drawn)) {
                continue;
            }
            uint32_t count = draw_inputs(w, symbols, values);
            run_terms(w);
            run_field(w);
            check_elements(w, count, symbols, values);
        }
    }
}

/* Numerals in give numerals out, without substitution. */
CHECK_CASE(test_numerals_are_computed)
{
    workspace *w = open_workspace();
    static Z3_ast symbols[GRAFT_MAX_INPUTS * CHECK_CASE_ELEMENTS];
    static Z3_ast values[GRAFT_MAX_INPUTS * CHECK_CASE_ELEMENTS];
    for (uint32_t op = 1; op < GRAFT_OP_COUNT; op++) {
        draw_small(w, op);
        if (calls_function(&w->drawn)) {
            continue;
        }
        (void)draw_inputs(w, symbols, values);
        uint32_t next = 0;
        for (uint32_t i = 0; i < graft_op(op)->input_count; i++) {
            for (size_t j = 0; j < graft_count(&w->drawn.in[i]); j++) {
                w->term_in[i][j] = values[next++];
            }
        }
        run_terms(w);
        run_field(w);
        check_elements(w, 0, symbols, values);
    }
}

/* ------------------------------------------------------------ construction */

static Z3_ast apply(workspace *w, uint32_t op, Z3_ast a, Z3_ast b)
{
    return graft_term_scalar(&w->k, op, a, b);
}

CHECK_CASE(test_constants_leave_no_trace)
{
    workspace *w = open_workspace();
    Z3_ast x = graft_term_symbol(&w->k, 0, 0);
    Z3_ast zero = w->k.zero;
    Z3_ast one = w->k.one;
    assert_ptr_equal(apply(w, GRAFT_OP_add, x, zero), x);
    assert_ptr_equal(apply(w, GRAFT_OP_add, zero, x), x);
    assert_ptr_equal(apply(w, GRAFT_OP_sub, x, zero), x);
    assert_ptr_equal(apply(w, GRAFT_OP_sub, x, x), zero);
    assert_ptr_equal(apply(w, GRAFT_OP_mul, x, zero), zero);
    assert_ptr_equal(apply(w, GRAFT_OP_mul, zero, x), zero);
    assert_ptr_equal(apply(w, GRAFT_OP_mul, x, one), x);
    assert_ptr_equal(apply(w, GRAFT_OP_mul, one, x), x);
    assert_ptr_equal(apply(w, GRAFT_OP_div, x, one), x);
    assert_ptr_equal(apply(w, GRAFT_OP_max, x, x), x);
    assert_ptr_equal(apply(w, GRAFT_OP_exp, zero, x), one);
    assert_ptr_equal(apply(w, GRAFT_OP_tanh, zero, x), zero);
    assert_ptr_equal(apply(w, GRAFT_OP_sqrt, one, x), one);
    assert_int_equal(Z3_ast_vector_size(w->z3, w->k.laws), 0);
    assert_int_equal(Z3_ast_vector_size(w->z3, w->k.domain), 0);
    assert_ptr_equal(graft_term_symbol(&w->k, 0, 0), x);
    assert_ptr_not_equal(graft_term_symbol(&w->k, 1, 0), x);
}

/* Number of nodes of kind `kind` in the tree of a term. */
static uint32_t count_kind(const workspace *w, Z3_ast term, Z3_decl_kind kind)
{
    if (Z3_get_ast_kind(w->z3, term) != Z3_APP_AST) {
        return 0;
    }
    Z3_app app = Z3_to_app(w->z3, term);
    uint32_t count = Z3_get_decl_kind(w->z3, Z3_get_app_decl(w->z3, app)) == kind;
    for (uint32_t i = 0; i < Z3_get_app_num_args(w->z3, app); i++) {
        count += count_kind(w, Z3_get_app_arg(w->z3, app, i), kind);
    }
    return count;
}

/* A 3x3 convolution of a 3x4 image padded by 1: 4 products in a corner, 6 at an edge, 9 inside, and
 * one sum fewer. */
CHECK_CASE(test_padding_makes_no_products)
{
    workspace *w = open_workspace();
    const check_case conv = {
        .op = GRAFT_OP_conv,
        .attrs = {1,  1, 1, 1, 1, 1, 1, 1, 1},
        .in = {{{1, 1, 3, 4}, 4, GRAFT_DTYPE_F32}, {{1, 1, 3, 3}, 4, GRAFT_DTYPE_F32}}
    };
    w->drawn = conv;
    CHECK_OK(graft_infer_shapes(conv.op, conv.attrs, conv.in, w->drawn.out));
    static Z3_ast symbols[32];
    static Z3_ast values[32];
    (void)draw_inputs(w, symbols, values);
    run_terms(w);
    const uint32_t want[12] = {4, 6, 6, 4, 6, 9, 9, 6, 4, 6, 6, 4};
    for (uint32_t i = 0; i < 12; i++) {
        assert_int_equal(count_kind(w, w->term_out[0][i], Z3_OP_MUL), want[i]);
        assert_int_equal(count_kind(w, w->term_out[0][i], Z3_OP_ADD), want[i] - 1);
        assert_int_equal(count_kind(w, w->term_out[0][i], Z3_OP_ANUM), 0);
    }
}

CHECK_CASE(test_floats_are_exact)
{
    workspace *w = open_workspace();
    const struct {
        float value;
        const char *text;
    } rows[] = {
        {0.5F,    "1/2"                                    },
        {-0.0F,   "0"                                      },
        {0.1F,    "13421773/134217728"                     },
        {-2.5F,   "-5/2"                                   },
        {3.0e38F, "300000000549775575777803994281145270272"}
    };
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        w->drawn = (check_case){.op = GRAFT_OP_fill, .out = {{.dtype = GRAFT_DTYPE_F32}}};
        w->drawn.attrs[GRAFT_ATTR_fill_value] = graft_bits_of_float(rows[i].value);
        run_terms(w);
        assert_string_equal(Z3_get_numeral_string(w->z3, w->term_out[0][0]), rows[i].text);
    }
}

/* -------------------------------------------------------------------- laws */

/* Whether `claim` follows from laws and domain: Z3_L_TRUE when its negation is unsatisfiable.
 * Resource units instead of seconds, so that the answer does not depend on the machine. */
static Z3_lbool follows(workspace *w, Z3_ast claim)
{
    Z3_solver solver = Z3_mk_solver(w->z3);
    Z3_solver_inc_ref(w->z3, solver);
    Z3_params params = Z3_mk_params(w->z3);
    Z3_params_inc_ref(w->z3, params);
    Z3_params_set_uint(w->z3, params, Z3_mk_string_symbol(w->z3, "rlimit"), 5000000);
    Z3_solver_set_params(w->z3, solver, params);
    for (uint32_t i = 0; i < Z3_ast_vector_size(w->z3, w->k.laws); i++) {
        Z3_solver_assert(w->z3, solver, Z3_ast_vector_get(w->z3, w->k.laws, i));
    }
    for (uint32_t i = 0; i < Z3_ast_vector_size(w->z3, w->k.domain); i++) {
        Z3_solver_assert(w->z3, solver, Z3_ast_vector_get(w->z3, w->k.domain, i));
    }
    Z3_solver_assert(w->z3, solver, Z3_mk_not(w->z3, claim));
    Z3_lbool answer = Z3_solver_check(w->z3, solver);
    Z3_params_dec_ref(w->z3, params);
    Z3_solver_dec_ref(w->z3, solver);
    return answer == Z3_L_FALSE ? Z3_L_TRUE : answer == Z3_L_TRUE ? Z3_L_FALSE : Z3_L_UNDEF;
}

static Z3_ast equal(workspace *w, Z3_ast a, Z3_ast b) { return Z3_mk_eq(w->z3, a, b); }

CHECK_CASE(test_consequences_of_laws)
{
    workspace *w = open_workspace();
    Z3_ast x = graft_term_symbol(&w->k, 0, 0);
    Z3_ast y = graft_term_symbol(&w->k, 0, 1);
    Z3_ast sum = apply(w, GRAFT_OP_add, x, y);
    Z3_ast minus = apply(w, GRAFT_OP_sub, w->k.zero, x);
    Z3_ast exp_x = apply(w, GRAFT_OP_exp, x, x);
    Z3_ast exp_y = apply(w, GRAFT_OP_exp, y, y);
    assert_int_equal(
        follows(w, equal(w, apply(w, GRAFT_OP_exp, sum, x), apply(w, GRAFT_OP_mul, exp_x, exp_y))),
        Z3_L_TRUE);
    graft_term_forget(&w->k);
    assert_int_equal(
        follows(w, equal(w, apply(w, GRAFT_OP_erf, minus, x),
                         apply(w, GRAFT_OP_sub, w->k.zero, apply(w, GRAFT_OP_erf, x, x)))),
        Z3_L_TRUE);
    graft_term_forget(&w->k);
    Z3_ast total = apply(w, GRAFT_OP_add, apply(w, GRAFT_OP_sigmoid, x, x),
                         apply(w, GRAFT_OP_sigmoid, minus, x));
    assert_int_equal(follows(w, equal(w, total, w->k.one)), Z3_L_TRUE);
    graft_term_forget(&w->k);
    Z3_ast root = apply(w, GRAFT_OP_sqrt, x, x);
    assert_int_equal(follows(w, equal(w, apply(w, GRAFT_OP_mul, root, root), x)), Z3_L_TRUE);
    assert_int_equal(follows(w, Z3_mk_ge(w->z3, x, w->k.zero)), Z3_L_TRUE);
}

/* The laws have a model, and do not make equal what is not. */
CHECK_CASE(test_laws_prove_nothing_false)
{
    workspace *w = open_workspace();
    Z3_ast x = graft_term_symbol(&w->k, 0, 0);
    Z3_ast y = graft_term_symbol(&w->k, 0, 1);
    for (uint32_t op = GRAFT_OP_exp; op <= GRAFT_OP_erf; op++) {
        graft_term_forget(&w->k);
        assert_int_not_equal(follows(w, equal(w, apply(w, op, x, x), apply(w, op, y, y))),
                             Z3_L_TRUE);
        assert_int_not_equal(follows(w, equal(w, apply(w, op, x, x), x)), Z3_L_TRUE);
    }
    graft_term_forget(&w->k);
    Z3_ast quotient = apply(w, GRAFT_OP_div, x, y);
    assert_int_equal(Z3_ast_vector_size(w->z3, w->k.domain), 1);
    assert_int_equal(follows(w, equal(w, apply(w, GRAFT_OP_mul, quotient, y), x)), Z3_L_TRUE);
    assert_int_equal(follows(w, equal(w, quotient, x)), Z3_L_FALSE);
}

/* The value of a term at x0 = `at[0]`, x1 = `at[1]`, formulas as 0 and 1. Comparisons are generous
 * by `slack`: no law is closer to false than that. */
static const double slack = 1e-9;

static double value_of(const workspace *w, Z3_ast term, const double at[2]);

static double fold_values(Z3_decl_kind kind, double a, double b)
{
    switch ((uint32_t)kind) {
    case Z3_OP_ADD:
        return a + b;
    case Z3_OP_SUB:
        return a - b;
    case Z3_OP_MUL:
        return a * b;
    case Z3_OP_DIV:
        return a / b;
    case Z3_OP_LE:
    case Z3_OP_LT:
        return a <= b + slack * (1.0 + fabs(b)) ? 1.0 : 0.0;
    case Z3_OP_GE:
    case Z3_OP_GT:
        return a + slack * (1.0 + fabs(b)) >= b ? 1.0 : 0.0;
    case Z3_OP_EQ:
        return fabs(a - b) <= slack * (1.0 + fabs(b)) ? 1.0 : 0.0;
    case Z3_OP_AND:
        return fmin(a, b);
    case Z3_OP_OR:
        return fmax(a, b);
    case Z3_OP_IMPLIES:
        return fmax(1.0 - a, b);
    default:
        fail_msg("what kind is %d", (int)kind);
    }
    return NAN;
}

/* The root of a negative number is 0, and its logarithm that of the opposite: laws hold of these, too,
 * as term.h says, for a question may name what no element hangs on. */
static double function_value(const workspace *w, Z3_func_decl decl, double x)
{
    const double values[GRAFT_TERM_FUNCTION_COUNT] = {[GRAFT_TERM_EXP] = exp(x),
                                                      [GRAFT_TERM_SQRT] = sqrt(fmax(x, 0)),
                                                      [GRAFT_TERM_ERF] = erf(x),
                                                      [GRAFT_TERM_SIGMOID] = 1 / (1 + exp(-x)),
                                                      [GRAFT_TERM_INVERSE] = x == 0 ? 0 : 1 / x,
                                                      [GRAFT_TERM_LOG] = log(fabs(x)),
                                                      [GRAFT_TERM_SIN] = sin(x),
                                                      [GRAFT_TERM_COS] = cos(x)};
    for (uint32_t f = 0; f < GRAFT_TERM_FUNCTION_COUNT; f++) {
        if (w->k.functions[f] == decl) {
            return values[f];
        }
    }
    fail_msg("an unknown function");
    return NAN;
}

/* A premise that a number is positive is not granted by the slack. */
static double premise_of(const workspace *w, Z3_ast term, const double at[2])
{
    Z3_app app = Z3_to_app(w->z3, term);
    const bool positive = Z3_get_decl_kind(w->z3, Z3_get_app_decl(w->z3, app)) == Z3_OP_LT &&
                          Z3_get_app_arg(w->z3, app, 0) == w->k.zero;
    return !positive                                                ? value_of(w, term, at)
           : value_of(w, Z3_get_app_arg(w->z3, app, 1), at) > slack ? 1.0
                                                                    : 0.0;
}

static double value_of(const workspace *w, Z3_ast term, const double at[2])
{
    if (Z3_is_numeral_ast(w->z3, term)) {
        return Z3_get_numeral_double(w->z3, term);
    }
    Z3_app app = Z3_to_app(w->z3, term);
    Z3_func_decl decl = Z3_get_app_decl(w->z3, app);
    Z3_decl_kind kind = Z3_get_decl_kind(w->z3, decl);
    uint32_t count = Z3_get_app_num_args(w->z3, app);
    if (count == 0) {
        return term == graft_term_symbol(&w->k, 0, 0) ? at[0] : at[1];
    }
    Z3_ast first = Z3_get_app_arg(w->z3, app, 0);
    double value = kind == Z3_OP_IMPLIES ? premise_of(w, first, at) : value_of(w, first, at);
    if (count == 1) {
        return kind == Z3_OP_UMINUS ? -value
               : kind == Z3_OP_NOT  ? 1.0 - value
                                    : function_value(w, decl, value);
    }
    if (kind == Z3_OP_ITE) {
        return value_of(w, Z3_get_app_arg(w->z3, app, value > 0.5 ? 1 : 2), at);
    }
    if (decl == w->k.functions[GRAFT_TERM_REMAINDER]) {
        return fmod(value, value_of(w, Z3_get_app_arg(w->z3, app, 1), at));
    }
    for (uint32_t i = 1; i < count; i++) {
        value = fold_values(kind, value, value_of(w, Z3_get_app_arg(w->z3, app, i), at));
    }
    return value;
}

static void check_laws(const workspace *w, const double at[2])
{
    for (uint32_t l = 0; l < Z3_ast_vector_size(w->z3, w->k.laws); l++) {
        Z3_ast law = Z3_ast_vector_get(w->z3, w->k.laws, l);
        if (!(value_of(w, law, at) > 0.5)) {
            fail_msg("at %g, %g not true: %s", at[0], at[1], Z3_ast_to_string(w->z3, law));
        }
    }
}

static Z3_ast function_of(workspace *w, uint32_t op, Z3_ast x)
{
    return graft_term_composed(&w->k, op, x, NULL);
}

enum { LOGARITHMS = 9 };

/* Of what logarithms are taken that laws are about. */
static void list_logarithms(workspace *w, Z3_ast x, Z3_ast y, Z3_ast of[LOGARITHMS])
{
    Z3_ast product = apply(w, GRAFT_OP_mul, x, y);
    Z3_ast exp = apply(w, GRAFT_OP_exp, x, x);
    of[0] = product;
    of[1] = apply(w, GRAFT_OP_div, x, y);
    of[2] = apply(w, GRAFT_OP_add, w->k.one, exp);
    of[3] = apply(w, GRAFT_OP_sigmoid, y, y);
    of[4] = apply(w, GRAFT_OP_mul, exp, of[1]);
    of[5] = apply(w, GRAFT_OP_mul, apply(w, GRAFT_OP_sqrt, product, product), of[3]);
    Z3_ast square = apply(w, GRAFT_OP_mul, y, y);
    of[6] = apply(w, GRAFT_OP_div, of[2], apply(w, GRAFT_OP_sqrt, square, y));
    of[7] = apply(w, GRAFT_OP_mul, x, apply(w, GRAFT_OP_mul, x, y));
    of[8] = apply(w, GRAFT_OP_add, exp, apply(w, GRAFT_OP_exp, y, y));
}

/* Exponentials of sums and multiples, and of multiples of logarithms. */
CHECK_CASE(test_exponentials_are_true)
{
    static const float times[] = {-4.0F, -1.0F, -0.5F, 0.5F, 1.5F, 2.0F, 3.0F, 0.25F, 5.0F, 6.0F};
    enum { COUNT = sizeof times / sizeof times[0] };
    workspace *w = open_workspace();
    Z3_ast x = graft_term_symbol(&w->k, 0, 0);
    Z3_ast y = graft_term_symbol(&w->k, 0, 1);
    Z3_ast log = function_of(w, GRAFT_OP_log, y);
    Z3_ast multiples[COUNT];
    Z3_ast powers[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        int32_t bits = 0;
        memcpy(&bits, &times[i], sizeof bits);
        multiples[i] = apply(w, GRAFT_OP_mul, graft_term_float(&w->k, bits), log);
        powers[i] = apply(w, GRAFT_OP_exp, apply(w, GRAFT_OP_sub, multiples[i], x), x);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        (void)apply(w, GRAFT_OP_sigmoid, multiples[i], x);
        (void)apply(w, GRAFT_OP_sqrt, apply(w, GRAFT_OP_exp, multiples[i], x), x);
        Z3_ast more = apply(w, GRAFT_OP_exp, multiples[i > 0 ? i - 1 : COUNT - 1], x);
        Z3_ast sum = apply(w, GRAFT_OP_add, apply(w, GRAFT_OP_exp, multiples[i], x), more);
        (void)function_of(w, GRAFT_OP_log, sum);
    }
    Z3_ast choice = apply(w, GRAFT_OP_exp, apply(w, GRAFT_OP_max, x, y), x);
    for (uint32_t i = 0; i < 2000; i++) {
        double at[2] = {(graft_rng_uniform(&w->rng) - 0.5) * 4.0, graft_rng_uniform(&w->rng) + 0.1};
        for (uint32_t k = 0; k < COUNT; k++) {
            double value = pow(at[1], (double)times[k]) * exp(-at[0]);
            assert_true(fabs(value_of(w, powers[k], at) / value - 1) < 1e-6);
        }
        assert_true(fabs(value_of(w, choice, at) / exp(fmax(at[0], at[1])) - 1) < 1e-6);
        check_laws(w, at);
        check_laws(w, (const double[]){at[0], -2 * at[1]});
    }
}

/* What is carried out at once, and the laws that are noted on the way, are true. */
CHECK_CASE(test_normal_forms_are_true)
{
    workspace *w = open_workspace();
    Z3_ast of[LOGARITHMS];
    Z3_ast logs[LOGARITHMS];
    Z3_ast x = graft_term_symbol(&w->k, 0, 0);
    Z3_ast opposite = apply(w, GRAFT_OP_sub, w->k.zero, x);
    Z3_ast sine = function_of(w, GRAFT_OP_sin, opposite);
    Z3_ast cosine = function_of(w, GRAFT_OP_cos, opposite);
    list_logarithms(w, x, graft_term_symbol(&w->k, 0, 1), of);
    for (uint32_t i = 0; i < LOGARITHMS; i++) {
        logs[i] = function_of(w, GRAFT_OP_log, of[i]);
    }
    for (uint32_t i = 0; i < 2000; i++) {
        double at[2] = {(graft_rng_uniform(&w->rng) - 0.5) * 8.0,
                        (graft_rng_uniform(&w->rng) - 0.5) * 8.0};
        for (uint32_t k = 0; k < LOGARITHMS; k++) {
            double value = value_of(w, of[k], at);
            double log_value = value_of(w, logs[k], at);
            assert_true(!(value > 0) || fabs(log_value - log(value)) < 1e-6);
        }
        check_laws(w, at);
        assert_true(fabs(value_of(w, sine, at) - sin(-at[0])) < 1e-6);
        assert_true(fabs(value_of(w, cosine, at) - cos(at[0])) < 1e-6);
    }
}

/* Every law is true of the function that it is said of, at many numbers. */
CHECK_CASE(test_laws_are_true)
{
    workspace *w = open_workspace();
    Z3_ast x = graft_term_symbol(&w->k, 0, 0);
    Z3_ast y = graft_term_symbol(&w->k, 0, 1);
    static const uint32_t ops[] = {GRAFT_OP_exp, GRAFT_OP_sqrt, GRAFT_OP_erf, GRAFT_OP_sigmoid,
                                   GRAFT_OP_tanh};
    Z3_ast all = w->k.zero;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        all = apply(w, GRAFT_OP_add, all, apply(w, ops[i], x, x));
        all = apply(w, GRAFT_OP_add, all, apply(w, ops[i], apply(w, GRAFT_OP_sub, x, y), x));
    }
    (void)apply(w, GRAFT_OP_div, x, y);
    Z3_ast rest = apply(w, GRAFT_OP_remainder, apply(w, GRAFT_OP_add, x, y), y);
    all = apply(w, GRAFT_OP_add, all, rest); /* Which does not grow. */
    all = apply(w, GRAFT_OP_add, all, function_of(w, GRAFT_OP_log, x));
    all = apply(w, GRAFT_OP_add, all, function_of(w, GRAFT_OP_log, y));
    /* Of two applications of a function there are three, and ten of four sigmoids, as tanh is one. */
    Z3_ast growth = graft_growth_laws(&w->k, all);
    assert_int_equal(Z3_get_app_num_args(w->z3, Z3_to_app(w->z3, growth)), 4 * 3 + 10);
    for (uint32_t i = 0; i < 2000; i++) {
        double spread = i % 2 == 0 ? 3.0 : 12.0;
        double at[2] = {(graft_rng_uniform(&w->rng) - 0.5) * spread,
                        (graft_rng_uniform(&w->rng) - 0.5) * spread};
        check_laws(w, at);
        /* Farther out functions are so flat that the slack hides how they grow. */
        double less[2] = {at[0] / 2.0, at[1] / 2.0};
        assert_true(value_of(w, growth, less) > 0.5);
    }
}

/* Of x / x times y in the argument of a function y is left where x is not 0, and only there. */
CHECK_CASE(test_quotients_cancel)
{
    workspace *w = open_workspace();
    Z3_ast x = graft_term_symbol(&w->k, 0, 0);
    Z3_ast y = graft_term_symbol(&w->k, 0, 1);
    Z3_ast one = apply(w, GRAFT_OP_div, x, x);
    Z3_ast term = apply(w, GRAFT_OP_exp, apply(w, GRAFT_OP_mul, one, y), x);
    Z3_ast given[2] = {Z3_mk_not(w->z3, equal(w, x, w->k.zero)),
                       Z3_mk_not(w->z3, equal(w, y, w->k.zero))};
    assert_ptr_equal(graft_cancel(&w->k, term, given, 1), apply(w, GRAFT_OP_exp, y, y));
    assert_ptr_equal(graft_cancel(&w->k, term, given + 1, 1), term);
    assert_ptr_equal(graft_cancel(&w->k, one, given, 2), w->k.one);
}

/* A softmax is a quotient of exponentials that sum to 1, and each fact is noted once. */
CHECK_CASE(test_softmax)
{
    workspace *w = open_workspace();
    w->drawn = (check_case){.op = GRAFT_OP_softmax, .in = {{{3}, 1, GRAFT_DTYPE_F32}}};
    w->drawn.out[0] = w->drawn.in[0];
    static Z3_ast symbols[4];
    static Z3_ast values[4];
    (void)draw_inputs(w, symbols, values);
    run_terms(w);
    uint32_t laws = Z3_ast_vector_size(w->z3, w->k.laws);
    assert_int_equal(Z3_ast_vector_size(w->z3, w->k.domain), 3); /* One for each quotient. */
    run_terms(w);
    assert_int_equal(Z3_ast_vector_size(w->z3, w->k.laws), laws);
    Z3_ast total = apply(w, GRAFT_OP_add, w->term_out[0][0],
                         apply(w, GRAFT_OP_add, w->term_out[0][1], w->term_out[0][2]));
    assert_int_equal(follows(w, equal(w, total, w->k.one)), Z3_L_TRUE);
}

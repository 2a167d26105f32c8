/* term.c - Z3 terms as an algebra, and the operator bodies over them. */
#include "verify/core/term.h"

#include "graph/base/exits.h"
#include "verify/core/limits.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARITY_MOST = 32, POWER_MOST = 4 };

/* --------------------------------------------------------------- structure */

Z3_decl_kind graft_ast_kind(Z3_context z3, Z3_ast term)
{
    return Z3_get_ast_kind(z3, term) != Z3_APP_AST
               ? Z3_OP_ANUM
               : Z3_get_decl_kind(z3, Z3_get_app_decl(z3, Z3_to_app(z3, term)));
}

uint32_t graft_ast_arity(Z3_context z3, Z3_ast term)
{
    const bool app = Z3_get_ast_kind(z3, term) == Z3_APP_AST;
    return app ? Z3_get_app_num_args(z3, Z3_to_app(z3, term)) : 0;
}

Z3_ast graft_ast_arg(Z3_context z3, Z3_ast term, uint32_t i)
{
    return Z3_get_app_arg(z3, Z3_to_app(z3, term), i);
}

bool graft_ast_is_app(Z3_context z3, Z3_ast term, Z3_func_decl decl)
{
    return Z3_get_ast_kind(z3, term) == Z3_APP_AST &&
           Z3_get_app_decl(z3, Z3_to_app(z3, term)) == decl;
}

/* Without recursion. */
void graft_ast_walk(Z3_context z3, Z3_ast root, Z3_ast_map seen, graft_ast_visitor visit,
                    void *context)
{
    Z3_ast_map known = seen != NULL ? seen : graft_term_map(z3);
    Z3_ast_vector stack = graft_term_list(z3);
    Z3_ast_vector_push(z3, stack, root);
    for (uint32_t size = 1; size > 0; size = Z3_ast_vector_size(z3, stack)) {
        Z3_ast term = Z3_ast_vector_get(z3, stack, size - 1);
        Z3_ast_vector_resize(z3, stack, size - 1);
        if (Z3_get_ast_kind(z3, term) != Z3_APP_AST || Z3_ast_map_contains(z3, known, term)) {
            continue;
        }
        Z3_ast_map_insert(z3, known, term, term);
        for (uint32_t i = visit(context, term) ? graft_ast_arity(z3, term) : 0; i-- > 0;) {
            Z3_ast_vector_push(z3, stack, graft_ast_arg(z3, term, i));
        }
    }
    Z3_ast_vector_dec_ref(z3, stack);
    if (seen == NULL) {
        Z3_ast_map_dec_ref(z3, known);
    }
}

/* ------------------------------------------------------------ construction */

static bool is_numeral(const graft_term_state *k, Z3_ast a) { return Z3_is_numeral_ast(k->z3, a); }

/* Computes `term` when its operands are numerals. */
static Z3_ast fold_numerals(const graft_term_state *k, Z3_ast a, Z3_ast b, Z3_ast term)
{
    return is_numeral(k, a) && is_numeral(k, b) ? Z3_simplify(k->z3, term) : term;
}

static Z3_ast lift_term(const graft_term_state *k, int32_t value)
{
    return Z3_mk_int(k->z3, value, k->real);
}

/* 149 decimals hold every binary32 exactly. */
Z3_ast graft_term_float(const graft_term_state *k, int32_t bits)
{
    char text[GRAFT_ROOM_DECIMALS];
    float value = 0.0F;
    memcpy(&value, &bits, sizeof value);
    size_t length = (size_t)snprintf(text, sizeof text, "%.149f", (double)value);
    while (text[length - 1] == '0' && text[length - 2] != '.') {
        text[--length] = '\0'; /* Z3 takes its time over zeros. */
    }
    Z3_ast numeral = Z3_mk_numeral(k->z3, text, k->real);
    return value == 0.0F ? k->zero : numeral;
}

static Z3_ast lift_float_term(void *state, int32_t bits) { return graft_term_float(state, bits); }

static Z3_ast sum_term(const graft_term_state *k, Z3_ast a, Z3_ast b)
{
    if (a == k->zero) {
        return b;
    }
    if (b == k->zero) {
        return a;
    }
    return fold_numerals(k, a, b, Z3_mk_add(k->z3, 2, (Z3_ast[]){a, b}));
}

static Z3_ast difference_term(const graft_term_state *k, Z3_ast a, Z3_ast b)
{
    if (b == k->zero) {
        return a;
    }
    if (a == b) {
        return k->zero;
    }
    if (a == k->zero && !is_numeral(k, b)) {
        return Z3_mk_unary_minus(k->z3, b);
    }
    return fold_numerals(k, a, b, Z3_mk_sub(k->z3, 2, (Z3_ast[]){a, b}));
}

static Z3_ast product_term(const graft_term_state *k, Z3_ast a, Z3_ast b)
{
    if (a == k->zero || b == k->zero) {
        return k->zero;
    }
    if (a == k->one) {
        return b;
    }
    if (b == k->one) {
        return a;
    }
    return fold_numerals(k, a, b, Z3_mk_mul(k->z3, 2, (Z3_ast[]){a, b}));
}

/* Adds `fact` to a list unless it is there. */
static void note_fact(graft_term_state *k, Z3_ast_vector list, Z3_ast fact)
{
    if (!Z3_ast_map_contains(k->z3, k->known, fact)) {
        Z3_ast_map_insert(k->z3, k->known, fact, fact);
        Z3_ast_vector_push(k->z3, list, fact);
    }
}

static Z3_ast choose_term(const graft_term_state *k, Z3_ast condition, Z3_ast a, Z3_ast b)
{
    if (a == b) {
        return a;
    }
    Z3_ast term = Z3_mk_ite(k->z3, condition, a, b);
    return fold_numerals(k, a, b, term);
}

static Z3_ast max_term(const graft_term_state *k, Z3_ast a, Z3_ast b)
{
    return choose_term(k, Z3_mk_ge(k->z3, a, b), a, b);
}

static Z3_ast min_term(const graft_term_state *k, Z3_ast a, Z3_ast b)
{
    return choose_term(k, Z3_mk_le(k->z3, a, b), a, b);
}

static Z3_ast less_term(const graft_term_state *k, Z3_ast a, Z3_ast b)
{
    Z3_ast term = a == b ? k->zero : choose_term(k, Z3_mk_lt(k->z3, a, b), k->one, k->zero);
    return fold_numerals(k, a, b, term);
}

static Z3_ast equal_term(const graft_term_state *k, Z3_ast a, Z3_ast b)
{
    Z3_ast term = a == b ? k->one : choose_term(k, Z3_mk_eq(k->z3, a, b), k->one, k->zero);
    return fold_numerals(k, a, b, term);
}

Z3_ast graft_term_select(const graft_term_state *k, Z3_ast c, Z3_ast a, Z3_ast b)
{
    return c == k->zero ? b : c == k->one ? a : choose_term(k, Z3_mk_eq(k->z3, c, k->zero), b, a);
}

/* ------------------------------------------------------- unknown functions */

/* Counted at once: Z3 lets go of an object that nobody counts when the next one is made. */
Z3_ast_vector graft_term_list(Z3_context z3)
{
    Z3_ast_vector list = Z3_mk_ast_vector(z3);
    Z3_ast_vector_inc_ref(z3, list);
    return list;
}

/* The unknown functions, and which operators are made of them. */
static const struct {
    const char *name;
    uint8_t arity;
    uint8_t op;
} rows[GRAFT_TERM_FUNCTION_COUNT] = {
    [GRAFT_TERM_EXP] = {"exp",       1, GRAFT_OP_exp       },
    [GRAFT_TERM_SQRT] = {"sqrt",      1, GRAFT_OP_sqrt      },
    [GRAFT_TERM_ERF] = {"erf",       1, GRAFT_OP_erf       },
    [GRAFT_TERM_SIGMOID] = {"sigmoid",   1, GRAFT_OP_sigmoid   },
    [GRAFT_TERM_INVERSE] = {"inverse",   1, GRAFT_OP_div       },
    [GRAFT_TERM_LOG] = {"log",       1, GRAFT_OP_log       },
    [GRAFT_TERM_SIN] = {"sin",       1, GRAFT_OP_sin       },
    [GRAFT_TERM_COS] = {"cos",       1, GRAFT_OP_cos       },
    [GRAFT_TERM_ROUND] = {"round",     2, GRAFT_OP_quantise  },
    [GRAFT_TERM_SCALED] = {"scaled",    4, GRAFT_OP_dequantise},
    [GRAFT_TERM_REMAINDER] = {"remainder", 2, GRAFT_OP_remainder },
};

/* f(of); `*is_new` when it has not been met since the state was opened or emptied. */
static Z3_ast apply_to(graft_term_state *k, graft_term_function f, const Z3_ast *of, bool *is_new)
{
    Z3_ast term = Z3_mk_app(k->z3, k->functions[f], rows[f].arity, of);
    *is_new = !Z3_ast_map_contains(k->z3, k->known, term);
    if (*is_new) {
        Z3_ast_map_insert(k->z3, k->known, term, term);
    }
    return term;
}

static Z3_ast apply_function(graft_term_state *k, graft_term_function f, Z3_ast x, bool *is_new)
{
    return apply_to(k, f, &x, is_new);
}

/* Whether a term is an application of an unknown function, and what it is applied to. */
static bool is_call(const graft_term_state *k, Z3_ast x, graft_term_function f)
{
    return graft_ast_is_app(k->z3, x, k->functions[f]);
}

static Z3_ast argument_of(const graft_term_state *k, Z3_ast call)
{
    return graft_ast_arg(k->z3, call, 0);
}

/* ---------------------------------------------------------------- division */

/* The reciprocal of something that is no product. */
static Z3_ast invert_factor(graft_term_state *k, Z3_ast factor)
{
    Z3_ast zero = Z3_mk_eq(k->z3, factor, k->zero);
    Z3_ast_vector_push(k->z3, k->domain, Z3_mk_not(k->z3, zero));
    if (is_call(k, factor, GRAFT_TERM_INVERSE)) {
        return argument_of(k, factor);
    }
    bool is_new = false;
    Z3_ast inverse = apply_function(k, GRAFT_TERM_INVERSE, factor, &is_new);
    if (is_new) {
        Z3_ast one = Z3_mk_eq(k->z3, product_term(k, factor, inverse), k->one);
        note_fact(k, k->laws, Z3_mk_or(k->z3, 2, (Z3_ast[]){zero, one}));
    }
    return inverse;
}

/* Divides by each factor of a divisor. */
static Z3_ast quotient_term(graft_term_state *k, Z3_ast a, Z3_ast b)
{
    if (is_numeral(k, b) && b != k->zero) {
        return b == k->one ? a : fold_numerals(k, a, b, Z3_mk_div(k->z3, a, b));
    }
    Z3_decl_kind kind = graft_ast_kind(k->z3, b);
    if (kind != Z3_OP_MUL && kind != Z3_OP_UMINUS) {
        return product_term(k, a, invert_factor(k, b));
    }
    for (uint32_t i = graft_ast_arity(k->z3, b); i-- > 0;) {
        a = quotient_term(k, a, graft_ast_arg(k->z3, b, i));
    }
    return kind == Z3_OP_UMINUS ? difference_term(k, k->zero, a) : a;
}

/* -------------------------------------------------------------------- laws */

static void note_bounds(graft_term_state *k, Z3_ast low, Z3_ast term, Z3_ast high)
{
    note_fact(k, k->laws, Z3_mk_lt(k->z3, low, term));
    note_fact(k, k->laws, Z3_mk_lt(k->z3, term, high));
}

static void note_equal(graft_term_state *k, Z3_ast a, Z3_ast b)
{
    note_fact(k, k->laws, Z3_mk_eq(k->z3, a, b));
}

static Z3_ast sqrt_term(graft_term_state *k, Z3_ast x);

/* Of x, which is no sum and no multiple. */
static Z3_ast exp_of_leaf(graft_term_state *k, Z3_ast x)
{
    bool is_new = false;
    Z3_ast term = apply_function(k, GRAFT_TERM_EXP, x, &is_new);
    note_fact(k, k->laws, Z3_mk_lt(k->z3, k->zero, term));
    return term;
}

/* `product` times exp(n x), x being no sum and no multiple: exp(x) so many times, and y where x is the
 * logarithm of y, or its root where n is half a whole number. What is asked of y the logarithm asks. */
static Z3_ast times_power(graft_term_state *k, Z3_ast product, Z3_ast n, Z3_ast x)
{
    const uint32_t known = Z3_ast_vector_size(k->z3, k->domain);
    const bool log = is_call(k, x, GRAFT_TERM_LOG);
    Z3_ast twice = product_term(k, n, lift_term(k, 2));
    int power = 0;
    bool few = Z3_get_numeral_int(k->z3, n, &power) && abs(power) <= POWER_MOST;
    Z3_ast base = log ? argument_of(k, x) : NULL;
    if (log && !few && Z3_get_numeral_int(k->z3, twice, &power) && abs(power) <= POWER_MOST) {
        base = sqrt_term(k, base);
        few = true;
    }
    power = few ? power : 1;
    base = log && few ? base : exp_of_leaf(k, few ? x : product_term(k, n, x));
    for (int i = abs(power); i > 0; i--) {
        product = power < 0 ? quotient_term(k, product, base) : product_term(k, product, base);
    }
    Z3_ast_vector_resize(k->z3, k->domain, known);
    return product;
}

/* The same for any x: exp(a + b) = exp(a) exp(b). */
static Z3_ast times_exp(graft_term_state *k, Z3_ast product, Z3_ast n, Z3_ast x)
{
    const Z3_decl_kind kind = graft_ast_kind(k->z3, x);
    const uint32_t arity = graft_ast_arity(k->z3, x);
    Z3_ast minus = difference_term(k, k->zero, n);
    for (uint32_t i = 0; i < 2 && kind == Z3_OP_MUL && arity == 2; i++) {
        Z3_ast factor = graft_ast_arg(k->z3, x, i);
        if (is_numeral(k, factor)) {
            Z3_ast times = product_term(k, n, factor);
            return times_exp(k, product, times, graft_ast_arg(k->z3, x, 1 - i));
        }
    }
    if (kind == Z3_OP_ITE && n != k->one) { /* Of a choice between multiples. */
        Z3_ast yes = product_term(k, n, graft_ast_arg(k->z3, x, 1));
        Z3_ast no = product_term(k, n, graft_ast_arg(k->z3, x, 2));
        x = choose_term(k, graft_ast_arg(k->z3, x, 0), yes, no);
        return times_exp(k, product, k->one, x);
    }
    if (kind != Z3_OP_ADD && kind != Z3_OP_SUB && kind != Z3_OP_UMINUS) {
        return x == k->zero ? product : times_power(k, product, n, x);
    }
    for (uint32_t i = 0; i < arity; i++) {
        const bool flips = kind == Z3_OP_UMINUS || (kind == Z3_OP_SUB && i > 0);
        product = times_exp(k, product, flips ? minus : n, graft_ast_arg(k->z3, x, i));
    }
    return product;
}

static Z3_ast exp_term(graft_term_state *k, Z3_ast x) { return times_exp(k, k->one, k->one, x); }

/* What a term is the exponential of, as a product of such and of reciprocals; NULL: of nothing. */
static Z3_ast exponent_of(const graft_term_state *k, Z3_ast x)
{
    if (x == k->one || is_call(k, x, GRAFT_TERM_EXP)) {
        return x == k->one ? k->zero : argument_of(k, x);
    }
    const bool inverse = is_call(k, x, GRAFT_TERM_INVERSE);
    const bool product = graft_ast_kind(k->z3, x) == Z3_OP_MUL;
    Z3_ast sum = inverse || product ? k->zero : NULL;
    for (uint32_t i = 0; sum != NULL && i < graft_ast_arity(k->z3, x); i++) {
        Z3_ast own = exponent_of(k, graft_ast_arg(k->z3, x, i));
        sum = own == NULL ? NULL : inverse ? difference_term(k, sum, own) : sum_term(k, sum, own);
    }
    return sum;
}

/* That a = b where `power`, the exponential of some number written as a product, is one: y^n is
 * exp(n log(y)) of a positive y alone (term.h). */
static void note_equal_for(graft_term_state *k, Z3_ast power, Z3_ast a, Z3_ast b)
{
    Z3_ast equal = Z3_mk_eq(k->z3, a, b);
    Z3_ast positive = Z3_mk_lt(k->z3, k->zero, power);
    bool always = exponent_of(k, power) != NULL;
    note_fact(k, k->laws, always ? equal : Z3_mk_implies(k->z3, positive, equal));
}

/* f(-x), which equals `mirrored`; without laws of its own. */
static void note_mirrored(graft_term_state *k, graft_term_function f, Z3_ast x, Z3_ast mirrored)
{
    bool is_new = false;
    note_equal(k, apply_function(k, f, difference_term(k, k->zero, x), &is_new), mirrored);
}

/* term has the sign of x. */
static void note_sign(graft_term_state *k, Z3_ast x, Z3_ast term)
{
    Z3_context z3 = k->z3;
    note_fact(k, k->laws, Z3_mk_implies(z3, Z3_mk_ge(z3, x, k->zero), Z3_mk_ge(z3, term, k->zero)));
    note_fact(k, k->laws, Z3_mk_implies(z3, Z3_mk_le(z3, x, k->zero), Z3_mk_le(z3, term, k->zero)));
}

/* 0 <= x term <= |x|, of a term with the sign of x that lies between -1 and 1. */
static void note_damped(graft_term_state *k, Z3_ast x, Z3_ast term)
{
    Z3_context z3 = k->z3;
    Z3_ast product = product_term(k, x, term);
    Z3_ast opposite = difference_term(k, k->zero, x);
    Z3_ast positive = Z3_mk_ge(z3, x, k->zero);
    Z3_ast negative = Z3_mk_le(z3, x, k->zero);
    note_fact(k, k->laws, Z3_mk_ge(z3, product, k->zero));
    note_fact(k, k->laws, Z3_mk_implies(z3, positive, Z3_mk_le(z3, product, x)));
    note_fact(k, k->laws, Z3_mk_implies(z3, negative, Z3_mk_le(z3, product, opposite)));
}

/* x (1 + erf(x)) is nowhere below -0.2404..., nor is that of -x. */
static void note_dip(graft_term_state *k, Z3_ast x, Z3_ast erf_x)
{
    Z3_ast low = graft_term_rational(k, -1, 4);
    Z3_ast product = product_term(k, x, erf_x);
    note_fact(k, k->laws, Z3_mk_lt(k->z3, low, sum_term(k, product, x)));
    note_fact(k, k->laws, Z3_mk_lt(k->z3, low, difference_term(k, product, x)));
}

static Z3_ast sqrt_term(graft_term_state *k, Z3_ast x)
{
    if (x == k->zero || x == k->one) {
        return x;
    }
    bool is_new = false;
    Z3_ast defined = Z3_mk_ge(k->z3, x, k->zero);
    Z3_ast term = apply_function(k, GRAFT_TERM_SQRT, x, &is_new);
    Z3_ast_vector_push(k->z3, k->domain, defined);
    if (is_new) {
        Z3_ast square = Z3_mk_eq(k->z3, product_term(k, term, term), x);
        note_fact(k, k->laws, Z3_mk_ge(k->z3, term, k->zero));
        note_fact(k, k->laws, Z3_mk_implies(k->z3, defined, square));
    }
    Z3_ast exponent = is_new ? exponent_of(k, x) : NULL;
    if (exponent != NULL) {
        Z3_ast half = times_exp(k, k->one, graft_term_rational(k, 1, 2), exponent);
        note_equal_for(k, half, term, half);
    }
    return term;
}

static Z3_ast erf_term(graft_term_state *k, Z3_ast x)
{
    if (x == k->zero) {
        return x;
    }
    bool is_new = false;
    Z3_ast term = apply_function(k, GRAFT_TERM_ERF, x, &is_new);
    if (is_new) {
        note_bounds(k, lift_term(k, -1), term, k->one);
        note_mirrored(k, GRAFT_TERM_ERF, x, difference_term(k, k->zero, term));
        note_sign(k, x, term);
        note_damped(k, x, term);
        note_dip(k, x, term);
    }
    return term;
}

static Z3_ast sigmoid_term(graft_term_state *k, Z3_ast x)
{
    if (x == k->zero) {
        return graft_term_rational(k, 1, 2);
    }
    bool is_new = false;
    Z3_ast term = apply_function(k, GRAFT_TERM_SIGMOID, x, &is_new);
    if (is_new) {
        Z3_ast exp_opposite = exp_term(k, difference_term(k, k->zero, x));
        note_bounds(k, k->zero, term, k->one);
        note_mirrored(k, GRAFT_TERM_SIGMOID, x, difference_term(k, k->one, term));
        note_equal_for(k, exp_opposite, product_term(k, term, sum_term(k, k->one, exp_opposite)),
                       k->one);
    }
    return term;
}

static Z3_ast tanh_term(graft_term_state *k, Z3_ast x)
{
    Z3_ast half = sigmoid_term(k, sum_term(k, x, x));
    return difference_term(k, sum_term(k, half, half), k->one);
}

/* Without laws of its own. */
static Z3_ast unknown_term(graft_term_state *k, graft_term_function f, Z3_ast x)
{
    bool is_new = false;
    return apply_function(k, f, x, &is_new);
}

/* log(exp(t) + exp(u)) = t + log(1 + exp(u - t)), and where t is a choice it is one. */
static Z3_ast log_of_sum(graft_term_state *k, Z3_ast x)
{
    const bool sum = graft_ast_kind(k->z3, x) == Z3_OP_ADD && graft_ast_arity(k->z3, x) == 2;
    Z3_ast exponents[2] = {NULL, NULL};
    for (uint32_t i = 0; i < 2 && sum; i++) {
        Z3_ast part = graft_ast_arg(k->z3, x, i);
        Z3_ast choice = is_call(k, part, GRAFT_TERM_EXP) ? argument_of(k, part) : part;
        if (choice != part && graft_ast_kind(k->z3, choice) == Z3_OP_ITE) {
            Z3_ast ways[2] = {exp_term(k, graft_ast_arg(k->z3, choice, 1)),
                              exp_term(k, graft_ast_arg(k->z3, choice, 2))};
            Z3_ast yes = log_of_sum(k, Z3_substitute(k->z3, x, 1, &part, &ways[0]));
            Z3_ast no = log_of_sum(k, Z3_substitute(k->z3, x, 1, &part, &ways[1]));
            return choose_term(k, graft_ast_arg(k->z3, choice, 0), yes, no);
        }
        exponents[i] = exponent_of(k, part);
    }
    Z3_ast log = unknown_term(k, GRAFT_TERM_LOG, x);
    for (uint32_t i = 0; i < 2 && exponents[0] != NULL && exponents[1] != NULL; i++) {
        Z3_ast apart = difference_term(k, exponents[1 - i], exponents[i]);
        Z3_ast power = exp_term(k, Z3_simplify(k->z3, apart));
        Z3_ast rest = unknown_term(k, GRAFT_TERM_LOG, sum_term(k, k->one, power));
        note_equal_for(k, power, log, sum_term(k, exponents[i], rest));
    }
    return log;
}

/* The logarithm of a factor, in terms of `*base`, which is positive where the factor is. */
static Z3_ast log_of_factor(graft_term_state *k, Z3_ast factor, Z3_ast *base)
{
    *base = factor;
    Z3_ast exponent = exponent_of(k, factor);
    if (exponent != NULL) {
        *base = k->one;
        return exponent;
    }
    if (is_call(k, factor, GRAFT_TERM_SIGMOID)) {
        Z3_ast exp = exp_term(k, difference_term(k, k->zero, argument_of(k, factor)));
        *base = k->one;
        return difference_term(k, k->zero, log_of_sum(k, sum_term(k, k->one, exp)));
    }
    bool inverse = is_call(k, factor, GRAFT_TERM_INVERSE);
    bool root = is_call(k, factor, GRAFT_TERM_SQRT);
    if (!inverse && !root) {
        return log_of_sum(k, factor);
    }
    Z3_ast log = log_of_factor(k, argument_of(k, factor), base);
    return inverse ? difference_term(k, k->zero, log)
                   : product_term(k, graft_term_rational(k, 1, 2), log);
}

/* Of a negative number there is none, as there is no root; at 0 it is infinite, as a quotient is.
 * log(exp(t) y) = t + log(y), log(1 / y) = -log(y) and log(sqrt(y)) = log(y) / 2: both sides are
 * defined at the same y. That of a product of others is the sum of theirs where all are positive. */
static Z3_ast log_term(graft_term_state *k, Z3_ast x)
{
    const bool product = graft_ast_kind(k->z3, x) == Z3_OP_MUL;
    Z3_ast zero = Z3_mk_eq(k->z3, x, k->zero);
    Z3_ast_vector_push(k->z3, k->domain, Z3_mk_ge(k->z3, x, k->zero));
    Z3_ast_vector_push(k->z3, k->domain, Z3_mk_not(k->z3, zero));
    Z3_ast base = NULL;
    Z3_ast powers = k->zero;
    Z3_ast rest = k->one;
    Z3_ast logs = k->zero;
    Z3_ast positive = Z3_mk_true(k->z3);
    uint32_t others = 0;
    for (uint32_t i = 0; i < (product ? graft_ast_arity(k->z3, x) : 1); i++) {
        Z3_ast factor = product ? graft_ast_arg(k->z3, x, i) : x;
        Z3_ast log = log_of_factor(k, factor, &base);
        if (base == k->one) {
            powers = sum_term(k, powers, log);
            continue;
        }
        others++;
        rest = product_term(k, rest, factor);
        logs = sum_term(k, logs, log);
        Z3_ast both[2] = {positive, Z3_mk_lt(k->z3, k->zero, base)};
        positive = others == 1 ? both[1] : Z3_mk_and(k->z3, 2, both);
    }
    if (others > 1) {
        Z3_ast log = unknown_term(k, GRAFT_TERM_LOG, rest);
        note_fact(k, k->laws, Z3_mk_implies(k->z3, positive, Z3_mk_eq(k->z3, log, logs)));
        logs = log;
    }
    return sum_term(k, powers, logs);
}

static Z3_ast cos_term(graft_term_state *k, Z3_ast x)
{
    Z3_ast cos = unknown_term(k, GRAFT_TERM_COS, x);
    note_mirrored(k, GRAFT_TERM_COS, x, cos);
    return cos;
}

static Z3_ast sin_term(graft_term_state *k, Z3_ast x)
{
    Z3_ast sin = unknown_term(k, GRAFT_TERM_SIN, x);
    Z3_ast cos = cos_term(k, x);
    note_mirrored(k, GRAFT_TERM_SIN, x, difference_term(k, k->zero, sin));
    note_equal(k, sum_term(k, product_term(k, sin, sin), product_term(k, cos, cos)), k->one);
    return sin;
}

static Z3_ast round_term(graft_term_state *k, Z3_ast x, Z3_ast scale)
{
    bool is_new = false;
    if (x == k->zero) {
        return x;
    }
    Z3_ast term = apply_to(k, GRAFT_TERM_ROUND, (const Z3_ast[]){x, scale}, &is_new);
    if (is_new) {
        note_sign(k, x, term);
    }
    return term;
}

Z3_ast graft_term_scaled(graft_term_state *k, const Z3_ast of[GRAFT_TERM_ARGUMENTS])
{
    bool is_new = false;
    Z3_ast term = apply_to(k, GRAFT_TERM_SCALED, of, &is_new);
    if (is_new) {
        Z3_ast whole = difference_term(k, of[0], of[2]);
        Z3_ast most = sum_term(k, of[3], lift_term(k, 255));
        /* In one fact, which names the term: a question is told what is about its applications. */
        Z3_ast facts[3] = {Z3_mk_le(k->z3, of[3], of[0]), Z3_mk_le(k->z3, of[0], most),
                           Z3_mk_eq(k->z3, round_term(k, term, of[1]), whole)};
        note_fact(k, k->laws, Z3_mk_and(k->z3, 3, facts));
        note_sign(k, whole, term);
    }
    return term;
}

static Z3_ast absolute_term(const graft_term_state *k, Z3_ast x)
{
    return max_term(k, x, difference_term(k, k->zero, x));
}

/* A sum without one of its summands; NULL: it is none of them. */
static Z3_ast sum_without(const graft_term_state *k, Z3_ast sum, Z3_ast summand)
{
    bool met = false;
    Z3_ast rest = k->zero;
    for (uint32_t i = 0; graft_ast_kind(k->z3, sum) == Z3_OP_ADD && i < graft_ast_arity(k->z3, sum);
         i++) {
        bool is = !met && graft_ast_arg(k->z3, sum, i) == summand;
        rest = is ? rest : sum_term(k, rest, graft_ast_arg(k->z3, sum, i));
        met = met || is;
    }
    return met ? rest : NULL;
}

static Z3_ast remainder_term(graft_term_state *k, Z3_ast a, Z3_ast b)
{
    bool is_new = false;
    Z3_context z3 = k->z3;
    Z3_ast divides = Z3_mk_not(z3, Z3_mk_eq(z3, b, k->zero));
    Z3_ast term = apply_to(k, GRAFT_TERM_REMAINDER, (const Z3_ast[]){a, b}, &is_new);
    Z3_ast_vector_push(z3, k->domain, divides);
    if (!is_new) {
        return term;
    }
    Z3_ast wide = absolute_term(k, b);
    Z3_ast up = Z3_mk_ge(z3, a, k->zero);
    Z3_ast down = Z3_mk_le(z3, a, k->zero);
    Z3_ast below = Z3_mk_lt(z3, absolute_term(k, a), wide);
    Z3_ast facts[4] = {Z3_mk_lt(z3, absolute_term(k, term), wide),
                       Z3_mk_implies(z3, up, Z3_mk_ge(z3, term, k->zero)),
                       Z3_mk_implies(z3, down, Z3_mk_le(z3, term, k->zero)),
                       Z3_mk_implies(z3, below, Z3_mk_eq(z3, term, a))};
    note_fact(k, k->laws, Z3_mk_implies(z3, divides, Z3_mk_and(z3, 4, facts)));
    Z3_ast rest = sum_without(k, a, b);
    if (rest != NULL) {
        Z3_ast both_up[2] = {up, Z3_mk_ge(z3, rest, k->zero)};
        Z3_ast both_down[2] = {down, Z3_mk_le(z3, rest, k->zero)};
        Z3_ast signs[2] = {Z3_mk_and(z3, 2, both_up), Z3_mk_and(z3, 2, both_down)};
        Z3_ast given[2] = {divides, Z3_mk_or(z3, 2, signs)};
        Z3_ast same = Z3_mk_eq(z3, term, remainder_term(k, rest, b));
        note_fact(k, k->laws, Z3_mk_implies(z3, Z3_mk_and(z3, 2, given), same));
    }
    return term;
}

#define NUM    Z3_ast
#define ALG(f) f##_term
#include "graph/meaning/operator_scalars.inc"

Z3_ast graft_term_scalar(graft_term_state *k, uint32_t op, Z3_ast a, Z3_ast b)
{
    return op == GRAFT_OP_quantise ? round_term(k, a, b) : scalar_term(k, op, a, b);
}

Z3_ast graft_term_composed(graft_term_state *k, uint32_t op, Z3_ast x, const Z3_ast *attrs)
{
    return function_term(k, op, x, attrs);
}

Z3_ast graft_term_renew(void *state, Z3_ast term)
{
    graft_term_state *k = state;
    Z3_app app = Z3_to_app(k->z3, term);
    Z3_func_decl decl = Z3_get_app_decl(k->z3, app);
    Z3_ast of[GRAFT_TERM_ARGUMENTS] = {NULL};
    uint32_t f = 0;
    while (f < GRAFT_TERM_FUNCTION_COUNT && k->functions[f] != decl) {
        f++;
    }
    if (f == GRAFT_TERM_FUNCTION_COUNT) {
        return term;
    }
    for (uint32_t i = 0; i < rows[f].arity; i++) {
        of[i] = Z3_get_app_arg(k->z3, app, i);
    }
    return f == GRAFT_TERM_SCALED    ? graft_term_scaled(k, of)
           : f == GRAFT_TERM_INVERSE ? graft_term_scalar(k, rows[f].op, k->one, of[0])
           : f >= GRAFT_TERM_LOG && f <= GRAFT_TERM_COS
               ? graft_term_composed(k, rows[f].op, of[0], NULL)
               : graft_term_scalar(k, rows[f].op, of[0], of[1]);
}

/* --------------------------------------------------------------- the state */

void graft_term_open(graft_term_state *k, Z3_context z3)
{
    k->z3 = z3;
    k->real = Z3_mk_real_sort(z3);
    k->zero = Z3_mk_int(z3, 0, k->real);
    k->one = Z3_mk_int(z3, 1, k->real);
    for (uint32_t i = 0; i < GRAFT_TERM_FUNCTION_COUNT; i++) {
        k->functions[i] =
            graft_term_declare(z3, rows[i].arity, k->real, k->real, "%s", rows[i].name);
    }
    k->laws = graft_term_list(z3);
    k->domain = graft_term_list(z3);
    k->known = graft_term_map(z3);
}

void graft_term_close(graft_term_state *k)
{
    Z3_ast_vector_dec_ref(k->z3, k->laws);
    Z3_ast_vector_dec_ref(k->z3, k->domain);
    Z3_ast_map_dec_ref(k->z3, k->known);
}

void graft_term_forget(graft_term_state *k)
{
    Z3_ast_vector_resize(k->z3, k->laws, 0);
    Z3_ast_vector_resize(k->z3, k->domain, 0);
    Z3_ast_map_reset(k->z3, k->known);
}

Z3_ast graft_term_rational(const graft_term_state *k, int64_t numerator, int64_t denominator)
{
    char text[GRAFT_ROOM_NAME];
    assert(denominator > 0);
    (void)snprintf(text, sizeof text, "%" PRId64 "/%" PRId64, numerator, denominator);
    return Z3_mk_numeral(k->z3, text, k->real);
}

/* ----------------------------------------------------------------------- names */

/* Names are never cut (limits.def). */
static Z3_symbol make_name(Z3_context z3, const char *format, va_list values)
{
    char name[GRAFT_ROOM_NAME];
    const int length = vsnprintf(name, sizeof name, format, values);
    assert(length >= 0 && (size_t)length < sizeof name);
    (void)length;
    return Z3_mk_string_symbol(z3, name);
}

Z3_func_decl graft_term_declare(Z3_context z3, uint32_t arity, Z3_sort of, Z3_sort to,
                                const char *format, ...)
{
    Z3_sort domain[ARITY_MOST];
    va_list values;
    assert(arity <= ARITY_MOST);
    for (uint32_t i = 0; i < arity; i++) {
        domain[i] = of;
    }
    va_start(values, format);
    Z3_symbol name = make_name(z3, format, values);
    va_end(values);
    return Z3_mk_func_decl(z3, name, arity, domain, to);
}

Z3_ast graft_term_constant(Z3_context z3, Z3_sort sort, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    Z3_symbol name = make_name(z3, format, values);
    va_end(values);
    return Z3_mk_const(z3, name, sort);
}

/* ------------------------------------------------------------------ rebuilding */

Z3_ast_map graft_term_map(Z3_context z3)
{
    Z3_ast_map map = Z3_mk_ast_map(z3);
    Z3_ast_map_inc_ref(z3, map);
    return map;
}

void *graft_term_room(size_t count, size_t bytes)
{
    void *room = calloc(count > 0 ? count : 1, bytes);
    if (room == NULL) {
        (void)fprintf(stderr, "graft: no memory for a proof\n");
        _Exit(GRAFT_EXIT_NO_MEMORY);
    }
    return room;
}

typedef struct {
    Z3_context z3;
    Z3_ast_map known; /* Terms with what they have become. */
    graft_term_change change;
    void *context;
} rebuilding;

static Z3_ast rebuild(const rebuilding *r, Z3_ast term)
{
    if (Z3_get_ast_kind(r->z3, term) != Z3_APP_AST) {
        return term;
    }
    if (Z3_ast_map_contains(r->z3, r->known, term)) {
        return Z3_ast_map_find(r->z3, r->known, term);
    }
    Z3_app app = Z3_to_app(r->z3, term);
    uint32_t count = Z3_get_app_num_args(r->z3, app);
    Z3_ast *args = graft_term_room(count, sizeof *args);
    bool changed = false;
    for (uint32_t i = 0; i < count; i++) {
        Z3_ast arg = Z3_get_app_arg(r->z3, app, i);
        args[i] = rebuild(r, arg);
        changed = changed || args[i] != arg;
    }
    Z3_ast same = changed ? Z3_mk_app(r->z3, Z3_get_app_decl(r->z3, app), count, args) : term;
    free(args);
    Z3_ast result = r->change(r->context, same);
    Z3_ast_map_insert(r->z3, r->known, term, result);
    return result;
}

Z3_ast graft_term_rebuild(Z3_context z3, Z3_ast term, graft_term_change change, void *context)
{
    const rebuilding r = {z3, graft_term_map(z3), change, context};
    Z3_ast result = rebuild(&r, term);
    Z3_ast_map_dec_ref(z3, r.known);
    return result;
}

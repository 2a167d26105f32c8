/* term.h - operators over Z3 terms of sort Real: what proofs are about.
 *
 * An element of a tensor is a term; running an operator on terms builds the terms of its output.
 * Sums and products are taken in the order of operator_bodies.inc; adding 0, multiplying by 0 or 1
 * and arithmetic on numerals are carried out at once, so that constants leave no trace. relu, max
 * and min become if-then-else. a / b is a times the reciprocal of b, which is an unknown function
 * with inverse(0) = 0, so that inverse(x y) = inverse(x) inverse(y) and inverse(inverse(x)) = x
 * hold throughout and are carried out at once. What a quotient by 0 is plays no role (see
 * `domain`).
 *
 * exp, sqrt, erf, sigmoid, log, sin and cos are uninterpreted functions; tanh(t) is
 * 2 sigmoid(2t) - 1. exp(a + b) = exp(a) exp(b), exp(-a) = 1 / exp(a), exp(n a) = exp(a)^n for n to
 * 4, exp(n log(y)) = y^n and exp(n/2 log(y)) = sqrt(y)^n, which ask of y what the logarithm has
 * asked, log(1 + exp(c ? a : b)) = (c ? log(1 + exp(a)) : log(1 + exp(b))),
 * log(exp(t) y) = t + log(y), log(1 / y) = -log(y), log(sqrt(y)) = log(y) / 2 and
 * log(sigmoid(t)) = -log(1 + exp(-t)) are carried out at once.
 * For each term that they are applied to, true facts about it are collected in `laws`, ready
 * to be asserted:
 *      t inverse(t) = 1 for t != 0;
 *      exp(t) > 0;
 *      0 < sigmoid(t) < 1 and sigmoid(t) (1 + exp(-t)) = 1;
 *      -1 < erf(t) < 1, erf(0) = 0 and erf(-t) = -erf(t), 0 <= t erf(t) <= |t| and
 *      t erf(t) - |t| > -1/4;
 *      sqrt(t) >= 0, that of a negative number being 0 where nothing asks for it; sqrt(t)^2 = t for
 *      t >= 0, and sqrt(exp(t)) = exp(t / 2);
 *      log(x y ...) = log(x) + log(y) + ... where x, y, ... > 0, and
 *      log(exp(t) + exp(u)) = t + log(1 + exp(u - t));
 *      sin(-t) = -sin(t), cos(-t) = cos(t) and sin(t)^2 + cos(t)^2 = 1.
 * A question is told of whatever it names, though it may be asked where nothing hangs on that, as of
 * log(a) in (a > 0 ? log(a) : b). So facts have to be true everywhere, of some functions that are the
 * real ones where these are defined: of log(y) = log(-y) for y < 0, sqrt(y) = 0 there, and 1 / 0 = 0.
 * Those with an exponential that is written as a power hold where that is positive.
 *
 * remainder(a, b), which is not defined at b = 0, where its laws say nothing, is one of two numbers:
 *      |remainder(a, b)| < |b|; it has the sign of a; it is a where |a| < |b|; and
 *      remainder(c + b, b) = remainder(c, b) where c and c + b are of one sign.
 *
 * Numbers of 8 bits are two more. round(x, s), x / s rounded, is one function of x for each scale s,
 * of which it is known that it grows, and has the sign of x. scaled(q, s, z, l), what q stands for,
 * is one of q for each scale, zero point and type, and
 *      l <= q <= l + 255; it has the sign of q - z and grows; round(scaled(q, s, z, l), s) = q - z.
 * So it is of whole numbers q of the type alone, which is what dequantise reads. All of it holds of
 * binary32 as of real numbers, s being normal: (q - z) s / s is as near q - z as rounding twice
 * leaves it. Nothing is said of two scales.
 * In `domain` are the conditions under which what was built since it was last emptied is defined
 * over the reals: divisors are not 0, arguments of square roots not negative, those of logarithms
 * neither. (What of it reaches
 * which element is known to guarded.h.) */
#ifndef GRAFT_TERM_H
#define GRAFT_TERM_H

#include "graft/rule.h"

#include <z3.h>

/* The unknown functions. */
typedef enum graft_term_function {
    GRAFT_TERM_EXP = 0,
    GRAFT_TERM_SQRT = 1,
    GRAFT_TERM_ERF = 2,
    GRAFT_TERM_SIGMOID = 3,
    GRAFT_TERM_LOG = 4,
    GRAFT_TERM_SIN = 5,
    GRAFT_TERM_COS = 6,
    GRAFT_TERM_INVERSE = 7,
    GRAFT_TERM_ROUND = 8,
    GRAFT_TERM_SCALED = 9,
    GRAFT_TERM_REMAINDER = 10,
    GRAFT_TERM_FUNCTION_COUNT = 11
} graft_term_function;

/* Belongs to one context and one thread. */
typedef struct graft_term_state {
    Z3_context z3; /* made by Z3_mk_context, which owns every term */
    Z3_sort real;
    Z3_ast zero;
    Z3_ast one;
    Z3_func_decl functions[GRAFT_TERM_FUNCTION_COUNT];
    Z3_ast_vector laws;   /* facts, without duplicates */
    Z3_ast_vector domain; /* conditions, in the order they came up */
    Z3_ast_map known;     /* applications and facts that were met */
} graft_term_state;

/* Makes the state's own objects in `z3`, which must outlive it. Terms of two states of one context
 * may be mixed: equal symbols and functions are the same terms. */
void graft_term_open(graft_term_state *k, Z3_context z3);
void graft_term_close(graft_term_state *k);
/* Empties `laws` and `domain`. */
void graft_term_forget(graft_term_state *k);

/* An elementwise operator without attributes, on scalars; `b` is NULL where it has one input. Of
 * quantise the rounded quotient, `b` being the scale. */
Z3_ast graft_term_scalar(graft_term_state *k, uint32_t op, Z3_ast a, Z3_ast b);
/* A FUNCTION row of operators.def at x, with its attributes. */
Z3_ast graft_term_composed(graft_term_state *k, uint32_t op, Z3_ast x, const Z3_ast *attrs);

/* a where c, which is 0 or 1, is 1; else b. */
Z3_ast graft_term_select(const graft_term_state *k, Z3_ast c, Z3_ast a, Z3_ast b);

enum { GRAFT_TERM_ARGUMENTS = 4 }; /* At most. */

/* What q stands for: of q, scale, zero and least (operators.def). */
Z3_ast graft_term_scaled(graft_term_state *k, const Z3_ast of[GRAFT_TERM_ARGUMENTS]);

/* Structure. Of what is no application, a numeral, the kind is Z3_OP_ANUM and the arity 0. */
Z3_decl_kind graft_ast_kind(Z3_context z3, Z3_ast term);
uint32_t graft_ast_arity(Z3_context z3, Z3_ast term);
Z3_ast graft_ast_arg(Z3_context z3, Z3_ast term, uint32_t i);
bool graft_ast_is_app(Z3_context z3, Z3_ast term, Z3_func_decl decl);
/* Calls `visit` for each application in `root` that is not in `seen` (NULL: an empty map), once,
 * readers before operands, operands from left to right, and adds it to `seen`; it says whether to go
 * on into the term. */
typedef bool (*graft_ast_visitor)(void *context, Z3_ast term);
void graft_ast_walk(Z3_context z3, Z3_ast root, Z3_ast_map seen, graft_ast_visitor visit,
                    void *context);

/* An application of an unknown function, made anew in a graft_term_state, which takes note of its
 * laws; any other term as it is. */
Z3_ast graft_term_renew(void *state, Z3_ast term);

/* The number of a finite binary32 given by its bits. */
Z3_ast graft_term_float(const graft_term_state *k, int32_t bits);

/* The numeral numerator / denominator; `denominator` is positive. */
Z3_ast graft_term_rational(const graft_term_state *k, int64_t numerator, int64_t denominator);

/* An unknown function of `arity` operands of one sort, and a constant, called as printf has it. */
Z3_func_decl graft_term_declare(Z3_context z3, uint32_t arity, Z3_sort of, Z3_sort to,
                                const char *format, ...) __attribute__((format(printf, 5, 6)));
Z3_ast graft_term_constant(Z3_context z3, Z3_sort sort, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* An empty map and an empty list, which the caller releases (Z3_ast_map_dec_ref,
 * Z3_ast_vector_dec_ref). */
Z3_ast_map graft_term_map(Z3_context z3);
Z3_ast_vector graft_term_list(Z3_context z3);
/* Zeroed memory, which the caller frees. Where there is none the process ends (exits.h). */
void *graft_term_room(size_t count, size_t bytes);
/* Builds a term anew from its leaves: `change` is given each application once, with its new
 * operands. */
typedef Z3_ast (*graft_term_change)(void *context, Z3_ast term);
Z3_ast graft_term_rebuild(Z3_context z3, Z3_ast term, graft_term_change change, void *context);

/* For each two applications f(x), f(y) of a growing function in `term` that x <= y implies
 * f(x) <= f(y) and y <= x implies f(y) <= f(x), where f is defined, and the same of f(x) and f(0),
 * of logarithms f(1); of the first few of each function. `true` when there are none. */
Z3_ast graft_growth_laws(const graft_term_state *k, Z3_ast term);

#endif

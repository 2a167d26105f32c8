/* guarded.c - see guarded.h. */
#include "verify/instances/guarded.h"

#include <inttypes.h>
#include <stdio.h>

/* ------------------------------------------------------------------ formulas */

static Z3_ast both(const graft_term_state *k, Z3_ast a, Z3_ast b)
{
    return a == NULL || a == b ? b : b == NULL ? a : Z3_mk_and(k->z3, 2, (Z3_ast[]){a, b});
}

/* What the last operation asks, of a division or a root. */
static Z3_ast take_domain(const graft_term_state *k)
{
    Z3_ast all = NULL;
    uint32_t count = Z3_ast_vector_size(k->z3, k->domain);
    for (uint32_t i = 0; i < count; i++) {
        all = both(k, all, Z3_ast_vector_get(k->z3, k->domain, i));
    }
    Z3_ast_vector_resize(k->z3, k->domain, 0);
    return all;
}

/* --------------------------------------------------------------- primitives */

static graft_guarded lift_guarded(void *state, int32_t value)
{
    const graft_term_state *k = state;
    return (graft_guarded){.term = Z3_mk_int(k->z3, value, k->real)};
}

static graft_guarded lift_float_guarded(void *state, int32_t bits)
{
    return (graft_guarded){.term = graft_term_float(state, bits)};
}

/* f(a, b), of whose operands all is asked. */
static graft_guarded join(graft_term_state *k, uint32_t op, const graft_guarded *a,
                          const graft_guarded *b)
{
    Z3_ast divisors = both(k, a->divisors, b->divisors);
    return (graft_guarded){.term = graft_term_scalar(k, op, a->term, b->term),
                           .roots = both(k, a->roots, b->roots),
                           .ties = both(k, a->ties, b->ties),
                           .divisors = divisors,
                           .mixed = divisors,
                           .caught = both(k, a->caught, b->caught),
                           .computed = both(k, a->computed, b->computed),
                           .quotients = both(k, a->quotients, b->quotients),
                           .tied = both(k, a->tied, b->tied),
                           .needed = both(k, a->needed, b->needed)};
}

static graft_guarded multiply(graft_term_state *k, uint32_t op, const graft_guarded *a,
                              const graft_guarded *b)
{
    graft_guarded x = join(k, op, a, b);
    x.mixed = x.term == k->zero ? x.divisors : both(k, a->mixed, b->mixed);
    return x;
}

/* The same where an infinite operand may give a number. */
static graft_guarded catch_infinities(graft_term_state *k, uint32_t op, const graft_guarded *a,
                                      const graft_guarded *b)
{
    graft_guarded x = join(k, op, a, b);
    x.caught = both(k, x.caught, x.divisors);
    x.needed = both(k, x.needed, x.computed);
    x.tied = both(k, x.tied, x.quotients);
    x.computed = NULL;
    x.quotients = NULL;
    x.divisors = NULL;
    x.mixed = NULL;
    return x;
}

/* An infinity, or what is no number, is neither below nor equal to itself and more. */
static graft_guarded compare(graft_term_state *k, uint32_t op, const graft_guarded *a,
                             const graft_guarded *b)
{
    graft_guarded x = catch_infinities(k, op, a, b);
    x.caught = both(k, x.caught, x.roots);
    x.needed = both(k, x.needed, x.caught);
    x.roots = NULL;
    x.ties = NULL;
    return x;
}

/* By 0 it is no number; of an infinity neither. */
static graft_guarded divide_whole(graft_term_state *k, uint32_t op, const graft_guarded *a,
                                  const graft_guarded *b)
{
    graft_guarded x = compare(k, op, a, b);
    Z3_ast *where = b->needed != NULL ? &x.caught : &x.roots;
    *where = both(k, *where, take_domain(k));
    return x;
}

#define BINARY(name, op, how)                                                                      \
    static graft_guarded name##_guarded(void *k, graft_guarded a, graft_guarded b)                 \
    {                                                                                              \
        return how(k, op, &a, &b);                                                                 \
    }
#define UNARY(name, op, how)                                                                       \
    static graft_guarded name##_guarded(void *k, graft_guarded x)                                  \
    {                                                                                              \
        const graft_guarded none = {.term = NULL};                                                 \
        return how(k, op, &x, &none);                                                              \
    }
BINARY(sum, GRAFT_OP_add, join)
BINARY(difference, GRAFT_OP_sub, join)
BINARY(product, GRAFT_OP_mul, multiply)
BINARY(min, GRAFT_OP_min, catch_infinities)
BINARY(less, GRAFT_OP_less, compare)
BINARY(equal, GRAFT_OP_equal_to, compare)
BINARY(remainder, GRAFT_OP_remainder, divide_whole)
UNARY(exp, GRAFT_OP_exp, catch_infinities)
UNARY(erf, GRAFT_OP_erf, catch_infinities)
UNARY(sigmoid, GRAFT_OP_sigmoid, catch_infinities)
UNARY(tanh, GRAFT_OP_tanh, catch_infinities)

/* The larger one of x and -x, an absolute value, is infinite where x is. */
static graft_guarded max_guarded(void *k, graft_guarded a, graft_guarded b)
{
    Z3_ast opposite = graft_term_scalar(k, GRAFT_OP_mul, lift_guarded(k, -1).term, a.term);
    return b.term == opposite ? join(k, GRAFT_OP_max, &a, &b)
                              : catch_infinities(k, GRAFT_OP_max, &a, &b);
}

/* What is asked of what is chosen, and of c. */
static Z3_ast asked_of(const graft_term_state *k, Z3_ast is_other, Z3_ast of_c, Z3_ast a, Z3_ast b)
{
    Z3_ast first = a == NULL ? NULL : Z3_mk_or(k->z3, 2, (Z3_ast[]){is_other, a});
    Z3_ast second = b == NULL ? NULL : Z3_mk_implies(k->z3, is_other, b);
    return both(k, of_c, both(k, first, second));
}

static graft_guarded choose_guarded(void *k, graft_guarded c, graft_guarded a, graft_guarded b)
{
    const graft_term_state *term = k;
    Z3_ast other = Z3_mk_eq(term->z3, c.term, term->zero);
    graft_guarded x = {.term = graft_term_select(k, c.term, a.term, b.term),
                       .roots = asked_of(k, other, c.roots, a.roots, b.roots),
                       .ties = asked_of(k, other, c.ties, a.ties, b.ties),
                       .divisors = asked_of(k, other, c.divisors, a.divisors, b.divisors),
                       .caught = asked_of(k, other, c.caught, a.caught, b.caught),
                       .computed = asked_of(k, other, c.computed, a.computed, b.computed),
                       .quotients = asked_of(k, other, c.quotients, a.quotients, b.quotients),
                       .tied = asked_of(k, other, c.tied, a.tied, b.tied),
                       .needed = asked_of(k, other, c.needed, a.needed, b.needed)};
    if (c.needed != NULL) { /* What may be undefined may choose otherwise. */
        x.caught = both(k, x.caught, both(k, x.roots, x.divisors));
        x.needed = both(k, x.needed, x.computed);
        x.tied = both(k, x.tied, x.quotients);
        x.roots = NULL;
        x.ties = NULL;
        x.divisors = NULL;
        x.computed = NULL;
        x.quotients = NULL;
    }
    x.mixed = x.divisors;
    return x;
}

static bool is_element(const graft_term_state *k, Z3_ast term)
{
    return Z3_get_ast_kind(k->z3, term) == Z3_APP_AST &&
           Z3_get_app_num_args(k->z3, Z3_to_app(k->z3, term)) == 0;
}

/* What divides in the divisor is caught, or need not be asked (caught.h). */
static graft_guarded quotient_guarded(void *state, graft_guarded a, graft_guarded b)
{
    graft_term_state *k = state;
    graft_guarded x = join(k, GRAFT_OP_div, &a, &b);
    Z3_ast own = take_domain(k);
    x.divisors = both(k, a.divisors, b.needed == NULL ? own : NULL);
    x.mixed = x.term == k->zero ? x.divisors : a.mixed;
    x.caught = both(k, x.caught, both(k, b.mixed, b.needed == NULL ? NULL : own));
    x.computed = both(k, a.computed, is_element(k, b.term) ? NULL : own);
    x.quotients = both(k, a.quotients, b.needed == NULL ? own : NULL);
    x.tied = both(k, x.tied,
                  both(k, b.mixed != NULL ? b.quotients : NULL, b.needed == NULL ? NULL : own));
    x.needed = both(k, x.needed, b.mixed != NULL ? b.computed : NULL);
    return x;
}

/* A root of what hangs on something that is caught is caught itself (caught.h). */
static void ask_root(const graft_term_state *k, graft_guarded *x, Z3_ast of, Z3_ast root)
{
    Z3_ast *where = x->caught != NULL ? &x->caught : &x->roots;
    x->ties = both(k, x->ties, where == &x->roots && !is_element(k, of) ? root : NULL);
    *where = both(k, *where, root);
}

static graft_guarded sqrt_guarded(void *state, graft_guarded a)
{
    graft_term_state *k = state;
    const graft_guarded none = {.term = NULL};
    graft_guarded x = join(k, GRAFT_OP_sqrt, &a, &none);
    ask_root(k, &x, a.term, take_domain(k));
    return x;
}

/* log, sin or cos: undefined where x is, and no number at an infinite x. */
static graft_guarded unknown_guarded(graft_term_state *k, uint32_t op, graft_guarded x)
{
    x.term = graft_term_composed(k, op, x.term, NULL);
    return x;
}

static graft_guarded log_guarded(void *state, graft_guarded a)
{
    graft_term_state *k = state;
    graft_guarded x = unknown_guarded(k, GRAFT_OP_log, a);
    ask_root(k, &x, a.term, Z3_ast_vector_get(k->z3, k->domain, 0));
    x.divisors = both(k, x.divisors, Z3_ast_vector_get(k->z3, k->domain, 1));
    x.mixed = x.divisors;
    Z3_ast_vector_resize(k->z3, k->domain, 0);
    return x;
}

static graft_guarded sin_guarded(void *k, graft_guarded x)
{
    return unknown_guarded(k, GRAFT_OP_sin, x);
}

static graft_guarded cos_guarded(void *k, graft_guarded x)
{
    return unknown_guarded(k, GRAFT_OP_cos, x);
}

static graft_guarded softmax_shift_guarded(void *k, const graft_guarded *row, size_t count,
                                           size_t step)
{
    (void)row, (void)count, (void)step;
    return lift_guarded(k, 0);
}

static graft_guarded round_guarded(void *k, graft_guarded x, graft_guarded scale)
{
    return catch_infinities(k, GRAFT_OP_quantise, &x, &scale);
}

static graft_guarded scaled_guarded(void *k, graft_guarded q, const int32_t *attrs)
{
    graft_guarded x = q;
    x.term = graft_term_scaled(
        k, (const Z3_ast[]){q.term, graft_term_float(k, attrs[GRAFT_ATTR_dequantise_scale]),
                            graft_term_rational(k, attrs[GRAFT_ATTR_dequantise_zero], 1),
                            graft_term_rational(k, attrs[GRAFT_ATTR_dequantise_least], 1)});
    return x;
}

#define DEQUANTISED_APART
#define NUM    graft_guarded
#define ALG(f) f##_guarded
#include "graph/meaning/operator_bodies.inc"

void graft_guarded_run(graft_term_state *k, uint32_t op, const graft_call *call,
                       const graft_guarded *const in[], graft_guarded *const out[])
{
    Z3_ast_vector_resize(k->z3, k->domain, 0);
    run_guarded[op](k, call, in, out);
}

Z3_ast graft_term_symbol(const graft_term_state *k, uint32_t variable, size_t index)
{
    return graft_term_constant(k->z3, k->real, "x%" PRIu32 "_%zu", variable, index);
}

/* growth.c - that exp, sigmoid, erf, sqrt, log, round and scaled grow.
 *
 * A fact about pairs of applications, so there are many of it: they are told only where the laws of
 * single applications (term.h) were not enough, and of what occurs in one question. */
#include "verify/core/limits.h"
#include "verify/core/term.h"

/* Applications of one function, and what can be said of them, two by two and beside 0. */
enum { LAWS = GRAFT_ROOM_GROWING * (GRAFT_ROOM_GROWING + 1) / 2 };

typedef struct {
    const graft_term_state *k;
    Z3_ast found[GRAFT_TERM_FUNCTION_COUNT][GRAFT_ROOM_GROWING];
    uint32_t counts[GRAFT_TERM_FUNCTION_COUNT];
} applications;

/* Whether a function is one of this file's. */
static bool grows(uint32_t f)
{
    return f <= GRAFT_TERM_LOG || f == GRAFT_TERM_ROUND || f == GRAFT_TERM_SCALED;
}

static bool note_application(void *context, Z3_ast term)
{
    applications *a = context;
    for (uint32_t f = 0; f < GRAFT_TERM_FUNCTION_COUNT; f++) {
        if (grows(f) && graft_ast_is_app(a->k->z3, term, a->k->functions[f]) &&
            a->counts[f] < GRAFT_LIMIT(GROWING)) {
            a->found[f][a->counts[f]++] = term;
        }
    }
    return true;
}

/* A place, and the function's value there. */
typedef struct {
    Z3_ast x;
    Z3_ast value;
} value_at;

static value_at value_of(const graft_term_state *k, Z3_ast application)
{
    return (value_at){graft_ast_arg(k->z3, application, 0), application};
}

/* At 0, of logarithms at 1. */
static value_at value_known(const graft_term_state *k, uint32_t f)
{
    Z3_ast value = f == GRAFT_TERM_EXP       ? k->one
                   : f == GRAFT_TERM_SIGMOID ? graft_term_rational(k, 1, 2)
                                             : k->zero;
    return (value_at){f == GRAFT_TERM_LOG ? k->one : k->zero, value};
}

/* Whether all arguments but the first are the same. */
static bool is_same_function(const graft_term_state *k, Z3_ast a, Z3_ast b)
{
    bool same = true;
    for (uint32_t i = 1; i < graft_ast_arity(k->z3, a); i++) {
        same = same && graft_ast_arg(k->z3, a, i) == graft_ast_arg(k->z3, b, i);
    }
    return same;
}

/* That f is larger at b if b is, of logarithms where both are real; and only then, but of what is
 * rounded, and of the root of a negative number, which may be taken to be 0. */
static Z3_ast larger_at(const graft_term_state *k, uint32_t f, value_at a, value_at b)
{
    Z3_context z3 = k->z3;
    const bool strictly = f <= GRAFT_TERM_LOG;
    Z3_ast up = Z3_mk_le(z3, a.x, b.x);
    Z3_ast grown = Z3_mk_le(z3, a.value, b.value);
    Z3_ast real[2] = {Z3_mk_lt(z3, k->zero, a.x), Z3_mk_lt(z3, k->zero, b.x)};
    Z3_ast back = Z3_mk_implies(z3, grown, up);
    back = f == GRAFT_TERM_SQRT ? Z3_mk_implies(z3, Z3_mk_le(z3, k->zero, b.x), back) : back;
    Z3_ast ways[2] = {Z3_mk_implies(z3, up, grown), back};
    Z3_ast both = Z3_mk_and(z3, strictly ? 2 : 1, ways);
    return f == GRAFT_TERM_LOG ? Z3_mk_implies(z3, Z3_mk_and(z3, 2, real), both) : both;
}

static Z3_ast pair_law(const graft_term_state *k, uint32_t f, value_at a, value_at b)
{
    Z3_ast ways[2] = {larger_at(k, f, a, b), larger_at(k, f, b, a)};
    return Z3_mk_and(k->z3, 2, ways);
}

Z3_ast graft_growth_laws(const graft_term_state *k, Z3_ast term)
{
    applications a = {.k = k};
    graft_ast_walk(k->z3, term, NULL, note_application, &a);
    Z3_ast laws[GRAFT_TERM_FUNCTION_COUNT * LAWS];
    uint32_t count = 0;
    for (uint32_t f = 0; f < GRAFT_TERM_FUNCTION_COUNT; f++) {
        for (uint32_t i = 0; i < a.counts[f]; i++) {
            value_at own = value_of(k, a.found[f][i]);
            if (f <= GRAFT_TERM_LOG) { /* The signs of the others are told with each. */
                laws[count++] = pair_law(k, f, value_known(k, f), own);
            }
            for (uint32_t j = 0; j < i; j++) {
                if (is_same_function(k, a.found[f][j], a.found[f][i])) {
                    laws[count++] = pair_law(k, f, value_of(k, a.found[f][j]), own);
                }
            }
        }
    }
    return count == 0 ? Z3_mk_true(k->z3) : Z3_mk_and(k->z3, count, laws);
}

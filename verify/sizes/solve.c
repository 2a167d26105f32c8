/* solve.c - see solve.h. */
#include "verify/sizes/solve.h"

#include "graph/base/divisor.h"

enum {
    SUMMANDS_MOST = 64, /* No common divisor is taken out of more. */
};

/* The symbol of a summand c x with c = 1 or -1; NULL for others. */
static Z3_ast lone_symbol(const graft_sym *s, Z3_ast summand, bool *negative)
{
    *negative = graft_sym_kind(s, summand) == Z3_OP_MUL && graft_sym_arity(s, summand) == 2 &&
                graft_sym_is_number(s, graft_sym_arg(s, summand, 0), -1);
    Z3_ast x = *negative ? graft_sym_arg(s, summand, 1) : summand;
    return graft_sym_is_symbol(s, x) ? x : NULL;
}

/* ---------------------------------------------------------------- common factors */

/* The whole number that a summand is a multiple of on the face of it. */
static int64_t coefficient(const graft_sym *s, Z3_ast summand)
{
    int64_t number = 1;
    bool product = graft_sym_kind(s, summand) == Z3_OP_MUL;
    Z3_ast first = product ? graft_sym_arg(s, summand, 0) : summand;
    bool known = Z3_is_numeral_ast(s->z3, first) && Z3_get_numeral_int64(s->z3, first, &number);
    return known && number != INT64_MIN ? number : 1;
}

static Z3_ast divide_summand(const graft_sym *s, Z3_ast summand, int64_t by)
{
    Z3_ast factors[SUMMANDS_MOST];
    Z3_ast number = Z3_mk_int64(s->z3, coefficient(s, summand) / by, s->integer);
    uint32_t count = Z3_is_numeral_ast(s->z3, summand) ? 0 : graft_sym_arity(s, summand);
    if (count > SUMMANDS_MOST) {
        return NULL;
    }
    factors[0] = number;
    for (uint32_t i = 1; i < count; i++) {
        factors[i] = graft_sym_arg(s, summand, i);
    }
    return count == 0 ? number : Z3_mk_mul(s->z3, count, factors);
}

/* A difference without the whole factor that all its summands have, which `*by` gets. */
static Z3_ast divide_common(const graft_sym *s, Z3_ast difference, int64_t *by)
{
    bool sum = graft_sym_kind(s, difference) == Z3_OP_ADD;
    uint32_t count = sum ? graft_sym_arity(s, difference) : 1;
    Z3_ast summands[SUMMANDS_MOST];
    int64_t divisor = 0;
    *by = 1;
    for (uint32_t i = 0; i < count && i < SUMMANDS_MOST; i++) {
        summands[i] = sum ? graft_sym_arg(s, difference, i) : difference;
        divisor = graft_greatest_divisor(divisor, coefficient(s, summands[i]));
    }
    if (count > SUMMANDS_MOST || divisor < 2) {
        return difference;
    }
    for (uint32_t i = 0; i < count; i++) {
        summands[i] = divide_summand(s, summands[i], divisor);
        if (summands[i] == NULL) {
            return difference;
        }
    }
    *by = divisor;
    return graft_sym_simplify(s, Z3_mk_add(s->z3, count, summands));
}

/* Attributes' symbols are made after those of sizes. */
bool graft_sym_find_solution(const graft_sym *s, Z3_ast difference, graft_sym_solution *x)
{
    int64_t divisor = 1;
    difference = divide_common(s, difference, &divisor);
    bool sum = graft_sym_kind(s, difference) == Z3_OP_ADD;
    uint32_t count = sum ? graft_sym_arity(s, difference) : 1;
    x->symbol = NULL;
    for (uint32_t i = 0; i < count; i++) {
        bool negative = false;
        Z3_ast summand = sum ? graft_sym_arg(s, difference, i) : difference;
        Z3_ast symbol = lone_symbol(s, summand, &negative);
        if (symbol == NULL ||
            (x->symbol != NULL && Z3_get_ast_id(s->z3, x->symbol) > Z3_get_ast_id(s->z3, symbol))) {
            continue;
        }
        Z3_ast rest = graft_sym_sub(s, difference, summand);
        if (!graft_sym_mentions(s, rest, 1, &symbol)) {
            x->symbol = symbol;
            x->value = negative ? rest : graft_sym_sub(s, graft_sym_int(s, 0), rest);
            x->times = divisor;
            x->opposite = negative;
        }
    }
    return x->symbol != NULL;
}

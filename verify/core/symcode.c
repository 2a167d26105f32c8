/* symcode.c - see symcode.h. */
#include "verify/core/symcode.h"

#include "graph/rule/rulecode.h"

#include <string.h>

typedef struct {
    const graft_sym_inputs *in;
    graft_sym *s;
    const char *why;
} machine;

/* ------------------------------------------------------------------- values */

static graft_sym_value integer_value(Z3_ast term)
{
    return (graft_sym_value){.term = term, .sort = GRAFT_SYM_INTEGER};
}

static graft_sym_value truth_value(Z3_ast term)
{
    return (graft_sym_value){.term = term, .sort = GRAFT_SYM_TRUTH};
}

graft_sym_value graft_sym_float(graft_sym *s, int32_t bits)
{
    graft_sym_value value = {.sort = GRAFT_SYM_FLOAT};
    if ((bits & INT32_MAX) == 0x7f800000) {
        value.infinite = bits < 0 ? -1 : 1;
        return value;
    }
    value.term = graft_term_float(&s->term, bits);
    return value;
}

Z3_ast graft_sym_truth(const graft_sym *s, const graft_sym_value *value)
{
    return value->sort == GRAFT_SYM_TRUTH
               ? value->term
               : Z3_mk_not(s->z3, Z3_mk_eq(s->z3, value->term, graft_sym_int(s, 0)));
}

Z3_ast graft_sym_integer(const graft_sym *s, const graft_sym_value *value)
{
    return value->sort == GRAFT_SYM_INTEGER
               ? value->term
               : Z3_mk_ite(s->z3, value->term, graft_sym_int(s, 1), graft_sym_int(s, 0));
}

bool graft_sym_as_float(graft_sym *s, graft_sym_value *value)
{
    if (value->sort == GRAFT_SYM_FLOAT) {
        return true;
    }
    uint32_t bits = (uint32_t)value->bits;
    if (!value->has_bits || (bits & 0x7fffffffu) > 0x7f800000u) {
        return false;
    }
    int32_t signed_bits = 0;
    memcpy(&signed_bits, &bits, sizeof bits);
    *value = graft_sym_float(s, signed_bits);
    return true;
}

/* ------------------------------------------------------------------- leaves */

static bool not_understood(machine *m, const char *why)
{
    m->why = why;
    return false;
}

static graft_sym_value constant_value(const machine *m, int64_t number)
{
    graft_sym_value value = integer_value(graft_sym_int(m->s, number));
    value.bits = number;
    value.has_bits = true;
    return value;
}

/* False when there is no such axis. */
static bool read_dim(const graft_sym_shape *shape, int32_t axis, graft_sym_value *value)
{
    axis += axis < 0 ? (int32_t)shape->rank : 0;
    if (axis < 0 || axis >= (int32_t)shape->rank) {
        return false;
    }
    *value = integer_value(shape->dims[axis]);
    return true;
}

static Z3_ast same_shape(const machine *m, const graft_sym_shape *a, const graft_sym_shape *b)
{
    Z3_context z3 = m->s->z3;
    Z3_ast same = a->rank == b->rank ? Z3_mk_true(z3) : Z3_mk_false(z3);
    for (uint32_t i = 0; a->rank == b->rank && i < a->rank; i++) {
        Z3_ast equal = Z3_mk_eq(z3, a->dims[i], b->dims[i]);
        same = i == 0 ? equal : Z3_mk_and(z3, 2, (Z3_ast[]){same, equal});
    }
    return same;
}

/* What a program reads of shapes that play no role may be anything. */
static graft_sym_value free_value(const machine *m, const graft_code_step *step)
{
    const bool is_truth = step->code == GRAFT_CODE_SAME;
    Z3_ast free =
        graft_term_constant(m->s->z3, is_truth ? m->s->boolean : m->s->integer, "free%u_%u_%u_%d",
                            step->code, step->index, step->other, (int)step->number);
    return is_truth ? truth_value(free) : integer_value(graft_sym_solved(m->in->equations, free));
}

static bool read_leaf(machine *m, const graft_code_step *step, graft_sym_value *value)
{
    const graft_sym *s = m->s;
    const graft_sym_shape *vars = m->in->vars;
    if (m->in->scalar && (step->code == GRAFT_CODE_DIM || step->code == GRAFT_CODE_RANK ||
                          step->code == GRAFT_CODE_SAME)) {
        *value = free_value(m, step);
        return true;
    }
    switch (step->code) {
    case GRAFT_CODE_CONST8:
    case GRAFT_CODE_CONST32:
        *value = constant_value(m, step->number);
        return true;
    case GRAFT_CODE_SLOT:
        *value = m->in->slots[step->index];
        return true;
    case GRAFT_CODE_DIM:
        return read_dim(&vars[step->index], step->number, value);
    case GRAFT_CODE_RANK:
        *value = constant_value(m, vars[step->index].rank);
        return true;
    case GRAFT_CODE_IS_CONST:
        *value = truth_value(graft_term_constant(s->z3, s->boolean, "const%u", step->index));
        return true;
    default:
        *value = truth_value(same_shape(m, &vars[step->index], &vars[step->other]));
        return true;
    }
}

/* --------------------------------------------------------------- operations */

/* -1, 0, 1 when only infinities decide; 2 when numbers do. */
static int compare_infinities(const graft_sym_value *a, const graft_sym_value *b)
{
    if (a->infinite == 0 && b->infinite == 0) {
        return 2;
    }
    return a->infinite < b->infinite ? -1 : a->infinite > b->infinite ? 1 : 0;
}

static bool compute_float(machine *m, uint32_t code, graft_sym_value a, graft_sym_value b,
                          graft_sym_value *result)
{
    Z3_context z3 = m->s->z3;
    if (!graft_sym_as_float(m->s, &a) || !graft_sym_as_float(m->s, &b)) {
        return not_understood(m, "a program compares what is no float as one");
    }
    int order = compare_infinities(&a, &b);
    if (code == GRAFT_CODE_FLE) {
        Z3_ast le = order == 2   ? Z3_mk_le(z3, a.term, b.term)
                    : order == 1 ? Z3_mk_false(z3)
                                 : Z3_mk_true(z3);
        *result = truth_value(le);
        return true;
    }
    bool least = code == GRAFT_CODE_FMIN;
    if (order != 2) {
        *result = least == (order <= 0) ? a : b;
        return true;
    }
    *result = a;
    if (a.term != b.term) {
        Z3_ast le = Z3_mk_le(z3, a.term, b.term);
        result->term = Z3_mk_ite(z3, le, least ? a.term : b.term, least ? b.term : a.term);
    }
    return true;
}

/* Equal bits are equal floats; the converse is not claimed. */
static bool compute_equal_floats(machine *m, graft_sym_value a, graft_sym_value b,
                                 graft_sym_value *result)
{
    Z3_context z3 = m->s->z3;
    if (!graft_sym_as_float(m->s, &a) || !graft_sym_as_float(m->s, &b)) {
        return not_understood(m, "a program compares a float with a number");
    }
    Z3_ast equal = Z3_mk_false(z3);
    if (compare_infinities(&a, &b) == 2) {
        equal = Z3_mk_fresh_const(z3, "bits", m->s->boolean);
        graft_sym_claim(m->in->equations, Z3_mk_implies(z3, equal, Z3_mk_eq(z3, a.term, b.term)));
    } else if (a.infinite == b.infinite) {
        equal = Z3_mk_true(z3);
    }
    *result = truth_value(equal);
    return true;
}

/* The remainder by a symbol, by which Z3 does not divide, is said with the number of windows, which is
 * one more than the quotient (symshape.c). */
static Z3_ast remainder_by(machine *m, Z3_ast a, Z3_ast b)
{
    graft_sym *s = m->s;
    Z3_ast remainder = Z3_mk_mod(s->z3, a, b);
    if (!Z3_is_numeral_ast(s->z3, b) && s->plain == NULL) {
        Z3_ast rest = graft_sym_sub(s, a, graft_sym_mul(s, graft_sym_multiples(s, a, b), b));
        Z3_ast count = Z3_mk_app(s->z3, s->window, 2, (Z3_ast[]){rest, b});
        Z3_ast last = graft_sym_mul(s, b, graft_sym_sub(s, count, graft_sym_int(s, 1)));
        graft_sym_claim(m->in->equations, Z3_mk_eq(s->z3, remainder, graft_sym_sub(s, rest, last)));
    }
    return remainder;
}

static bool compute_division(machine *m, uint32_t code, Z3_ast a, Z3_ast b, graft_sym_value *result)
{
    Z3_context z3 = m->s->z3;
    Z3_ast zero = graft_sym_int(m->s, 0);
    graft_sym_equations *e = m->in->equations;
    if (code == GRAFT_CODE_DIV) {
        Z3_ast quotient = Z3_simplify(z3, Z3_mk_div(z3, a, b));
        graft_sym_claim(e, Z3_mk_not(z3, Z3_mk_eq(z3, b, zero)));
        graft_sym_claim(e, Z3_mk_eq(z3, a, graft_sym_mul(m->s, quotient, b)));
        *result = integer_value(quotient);
    } else if (code == GRAFT_CODE_MOD) {
        graft_sym_claim(e, Z3_mk_lt(z3, zero, b));
        graft_sym_claim(e, Z3_mk_le(z3, zero, a));
        *result = integer_value(remainder_by(m, a, b));
    } else { /* Which divides which is not decided by Z3 for unknown divisors. */
        Z3_ast divides = Z3_mk_eq(z3, Z3_mk_mod(z3, b, a), zero);
        Z3_ast not_zero = Z3_mk_not(z3, Z3_mk_eq(z3, a, zero));
        *result = truth_value(Z3_mk_and(z3, 2, (Z3_ast[]){not_zero, divides}));
    }
    return true;
}

static Z3_ast choose(Z3_context z3, Z3_ast condition, Z3_ast a, Z3_ast b)
{
    return a == b ? a : Z3_mk_ite(z3, condition, a, b);
}

static bool compute_integers(machine *m, uint32_t code, Z3_ast a, Z3_ast b, graft_sym_value *result)
{
    Z3_context z3 = m->s->z3;
    switch (code) {
    case GRAFT_CODE_ADD:
        *result = integer_value(graft_sym_add(m->s, a, b));
        return true;
    case GRAFT_CODE_SUB:
        *result = integer_value(graft_sym_sub(m->s, a, b));
        return true;
    case GRAFT_CODE_MUL:
        *result = integer_value(graft_sym_mul(m->s, a, b));
        return true;
    case GRAFT_CODE_EQ:
        *result = truth_value(Z3_mk_eq(z3, a, b));
        return true;
    case GRAFT_CODE_LE:
        *result = truth_value(Z3_mk_le(z3, a, b));
        return true;
    case GRAFT_CODE_MIN:
        *result = integer_value(choose(z3, Z3_mk_le(z3, a, b), a, b));
        return true;
    case GRAFT_CODE_MAX:
        *result = integer_value(choose(z3, Z3_mk_le(z3, a, b), b, a));
        return true;
    default:
        return compute_division(m, code, a, b, result);
    }
}

static bool compute_binary(machine *m, uint32_t code, graft_sym_value a, graft_sym_value b,
                           graft_sym_value *result)
{
    graft_sym *s = m->s;
    if (code == GRAFT_CODE_FMIN || code == GRAFT_CODE_FMAX || code == GRAFT_CODE_FLE) {
        return compute_float(m, code, a, b, result);
    }
    bool floats = a.sort == GRAFT_SYM_FLOAT || b.sort == GRAFT_SYM_FLOAT;
    if (floats) {
        return code == GRAFT_CODE_EQ ? compute_equal_floats(m, a, b, result)
                                     : not_understood(m, "a program computes with a float's bits");
    }
    if (code == GRAFT_CODE_AND || code == GRAFT_CODE_OR) {
        Z3_ast both[2] = {graft_sym_truth(s, &a), graft_sym_truth(s, &b)};
        *result = truth_value(code == GRAFT_CODE_AND ? Z3_mk_and(s->z3, 2, both)
                                                     : Z3_mk_or(s->z3, 2, both));
        return true;
    }
    return compute_integers(m, code, graft_sym_integer(s, &a), graft_sym_integer(s, &b), result);
}

static bool negate(machine *m, graft_sym_value *value)
{
    if (value->sort == GRAFT_SYM_FLOAT) {
        return not_understood(m, "a program takes a float for a truth value");
    }
    *value = truth_value(Z3_mk_not(m->s->z3, graft_sym_truth(m->s, value)));
    return true;
}

bool graft_sym_code(const graft_sym_inputs *in, uint32_t offset, graft_sym_value *result,
                    const char **why)
{
    graft_sym_value stack[GRAFT_ROOM_PROGRAM_DEPTH];
    machine m = {.in = in, .s = in->equations->s};
    graft_code_reader reader = graft_code_open(in->rule, offset, GRAFT_LIMIT(PROGRAM_DEPTH));
    bool runs = true;
    for (graft_code_step step; runs && graft_code_read(&reader, &step);) {
        graft_sym_value *top = &stack[step.place];
        runs = step.takes == 0   ? read_leaf(&m, &step, top)
               : step.takes == 1 ? negate(&m, top)
                                 : compute_binary(&m, step.code, top[0], top[1], top);
    }
    if (reader.end == GRAFT_CODE_DEEP) {
        (void)not_understood(&m, graft_limit_reason(GRAFT_LIMIT_PROGRAM_DEPTH));
    }
    *why = m.why;
    if (runs && reader.end == GRAFT_CODE_WHOLE) {
        *result = stack[0];
        return true;
    }
    return false;
}

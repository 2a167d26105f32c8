/* symcode.c - see symcode.h. */
#include "verify/symcode.h"

#include <stdio.h>
#include <string.h>

enum { DEPTH = 16 };

typedef struct {
    const graft_sym_inputs *in;
    graft_sym *s;
    graft_sym_value stack[DEPTH];
    uint32_t depth;
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
    const int32_t attrs[GRAFT_MAX_ATTRS] = {bits};
    const graft_shape scalar = {.dtype = GRAFT_DTYPE_F32};
    const graft_call call = {attrs, NULL, &scalar};
    Z3_ast *out[1] = {&value.term};
    graft_term_run(&s->term, GRAFT_OP_fill, &call, NULL, out);
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

static bool push(machine *m, graft_sym_value value)
{
    if (m->depth == DEPTH) {
        return false;
    }
    m->stack[m->depth++] = value;
    return true;
}

static bool not_understood(machine *m, const char *why)
{
    m->why = why;
    return false;
}

static bool push_constant(machine *m, int64_t number)
{
    graft_sym_value value = integer_value(graft_sym_int(m->s, number));
    value.bits = number;
    value.has_bits = true;
    return push(m, value);
}

static bool push_dim(machine *m, uint32_t v, uint8_t axis_byte)
{
    const graft_sym_shape *shape = &m->in->vars[v];
    int32_t axis = axis_byte < 128 ? axis_byte : (int32_t)axis_byte - 256;
    axis += axis < 0 ? (int32_t)shape->rank : 0;
    return axis >= 0 && axis < (int32_t)shape->rank && push(m, integer_value(shape->dims[axis]));
}

static bool push_same(machine *m, const graft_sym_shape *a, const graft_sym_shape *b)
{
    Z3_context z3 = m->s->z3;
    Z3_ast same = a->rank == b->rank ? Z3_mk_true(z3) : Z3_mk_false(z3);
    for (uint32_t i = 0; a->rank == b->rank && i < a->rank; i++) {
        Z3_ast equal = Z3_mk_eq(z3, a->dims[i], b->dims[i]);
        same = i == 0 ? equal : Z3_mk_and(z3, 2, (Z3_ast[]){same, equal});
    }
    return push(m, truth_value(same));
}

static int64_t read_number(const uint8_t *bytes, uint32_t count)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < count; i++) {
        bits |= (uint32_t)bytes[i] << 8 * i;
    }
    int64_t number = bits;
    int64_t half = INT64_C(1) << (8 * count - 1);
    return number >= half ? number - 2 * half : number;
}

static bool push_leaf(machine *m, uint32_t code, const uint8_t *operand)
{
    const graft_sym *s = m->s;
    char name[24];
    if (m->in->scalar &&
        (code == GRAFT_CODE_DIM || code == GRAFT_CODE_RANK || code == GRAFT_CODE_SAME)) {
        return not_understood(m, "a program reads shapes that play no role");
    }
    switch (code) {
    case GRAFT_CODE_CONST8:
        return push_constant(m, read_number(operand, 1));
    case GRAFT_CODE_CONST32:
        return push_constant(m, read_number(operand, 4));
    case GRAFT_CODE_SLOT:
        return push(m, m->in->slots[operand[0]]);
    case GRAFT_CODE_DIM:
        return push_dim(m, operand[0], operand[1]);
    case GRAFT_CODE_RANK:
        return push_constant(m, m->in->vars[operand[0]].rank);
    case GRAFT_CODE_IS_CONST:
        (void)snprintf(name, sizeof name, "const%u", operand[0]);
        return push(m,
                    truth_value(Z3_mk_const(s->z3, Z3_mk_string_symbol(s->z3, name), s->boolean)));
    default:
        return push_same(m, &m->in->vars[operand[0]], &m->in->vars[operand[1]]);
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
        *result = integer_value(Z3_mk_mod(z3, a, b));
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

static bool run_operator(machine *m, uint32_t code)
{
    if (m->depth < (code == GRAFT_CODE_NOT ? 1u : 2u)) {
        return false;
    }
    graft_sym_value b = m->stack[--m->depth];
    if (code == GRAFT_CODE_NOT) {
        if (b.sort == GRAFT_SYM_FLOAT) {
            return not_understood(m, "a program takes a float for a truth value");
        }
        return push(m, truth_value(Z3_mk_not(m->s->z3, graft_sym_truth(m->s, &b))));
    }
    graft_sym_value *top = &m->stack[m->depth - 1];
    return compute_binary(m, code, *top, b, top);
}

bool graft_sym_code(const graft_sym_inputs *in, uint32_t offset, graft_sym_value *result,
                    const char **why)
{
    static const uint8_t operands[GRAFT_CODE_COUNT] = {
        [GRAFT_CODE_CONST8] = 1, [GRAFT_CODE_CONST32] = 4, [GRAFT_CODE_SLOT] = 1,
        [GRAFT_CODE_DIM] = 2,    [GRAFT_CODE_RANK] = 1,    [GRAFT_CODE_IS_CONST] = 1,
        [GRAFT_CODE_SAME] = 2};
    machine m = {.in = in, .s = in->equations->s};
    bool runs = true;
    while (runs && in->rule->code[offset] != GRAFT_CODE_END) {
        uint32_t code = in->rule->code[offset++];
        bool leaf = code >= GRAFT_CODE_CONST8 && code <= GRAFT_CODE_SAME;
        runs = leaf ? push_leaf(&m, code, &in->rule->code[offset]) : run_operator(&m, code);
        offset += operands[code];
    }
    *why = m.why;
    if (runs) {
        *result = m.stack[0];
    }
    return runs;
}

/* code.h - the byte code of preconditions and target attributes. The verifier translates the same
 * bytes to Z3 (verify/), so what is proved is what is checked. */
#ifndef GRAFT_ENGINE_CODE_H
#define GRAFT_ENGINE_CODE_H

#define GRAFT_CODE_DEPTH 16
/* Operands and results stay below 2^62 in magnitude, so that sums never overflow. */
#define GRAFT_CODE_BOUND (INT64_C(1) << 62)

/* What a program reads. */
typedef struct graft_code_inputs {
    const graft_shape *const *vars;
    const bool *var_const;
    const int32_t *slots;
} graft_code_inputs;

uint32_t graft_code_operand_bytes(uint32_t code)
{
    static const uint8_t bytes[] = {0, 1, 4, 1, 2, 1, 1, 2}; /* Up to GRAFT_CODE_SAME. */
    return code <= GRAFT_CODE_SAME ? bytes[code] : 0;
}

static int32_t graft_read_signed8(uint8_t byte) { return (int32_t)(byte ^ 128u) - 128; }

static int32_t graft_read_signed32(const uint8_t *bytes)
{
    uint32_t bits = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
                    (uint32_t)bytes[3] << 24;
    return bits <= INT32_MAX ? (int32_t)bits : (int32_t)(bits - 1u - INT32_MAX) + INT32_MIN;
}

/* The size of an axis, which counts from the end when it is negative. */
static bool graft_read_dim(const graft_shape *shape, int32_t axis, int32_t *value)
{
    axis += axis < 0 ? shape->rank : 0;
    if (shape->rank == GRAFT_RANK_UNKNOWN || axis < 0 || axis >= shape->rank) {
        return false;
    }
    *value = shape->dims[axis];
    return true;
}

/* A constant, slot, dimension, rank or flag. */
static bool graft_read_leaf(const graft_code_inputs *inputs, uint32_t code, const uint8_t *operand,
                            int32_t *number)
{
    const uint32_t first = operand[0];
    if (GRAFT_CODE_IS(code, CONST8)) {
        *number = graft_read_signed8(operand[0]);
    } else if (GRAFT_CODE_IS(code, CONST32)) {
        *number = graft_read_signed32(operand);
    } else if (GRAFT_CODE_IS(code, SLOT)) {
        *number = inputs->slots[first];
    } else if (GRAFT_CODE_IS(code, IS_CONST)) {
        *number = inputs->var_const[first];
    } else {
        const graft_shape *var = inputs->vars[first];
        if (GRAFT_CODE_IS(code, DIM)) {
            return graft_read_dim(var, graft_read_signed8(operand[1]), number);
        }
        *number = GRAFT_CODE_IS(code, RANK) ? var->rank
                                            : graft_sizes_equal(var, inputs->vars[operand[1]]);
    }
    return true;
}

/* Orders the bits of a binary32 number as an integer; NaN has no place. */
static bool graft_float_key(int64_t bits, int64_t *key)
{
    *key = graft_order_float((uint32_t)bits);
    return (bits & INT32_MAX) <= graft_float_infinity;
}

static uint64_t graft_size_of(int64_t number)
{
    return number < 0 ? 0u - (uint64_t)number : (uint64_t)number;
}

/* Of numbers below 2^63, `by` not 0. Those of 32 bits are frequent, and have an instruction. */
static uint64_t graft_divide(uint64_t number, uint64_t by, uint64_t *rest)
{
    uint64_t quotient = 0;
    uint64_t step = 1;
    if ((number | by) >> 32 == 0) {
        *rest = (uint32_t)number % (uint32_t)by;
        return (uint32_t)number / (uint32_t)by;
    }
    while (by <= number >> 1) {
        by <<= 1;
        step <<= 1;
    }
    for (; step > 0; step >>= 1, by >>= 1) {
        if (number >= by) {
            number -= by;
            quotient += step;
        }
    }
    *rest = number;
    return quotient;
}

static bool graft_is_so(uint32_t code, int64_t a, int64_t b, bool ordered)
{
    if (GRAFT_CODE_IS(code, EQ) || GRAFT_CODE_IS(code, NOT)) {
        return a == b;
    }
    if (GRAFT_CODE_IS(code, AND)) {
        return a != 0 && b != 0;
    }
    if (GRAFT_CODE_IS(code, OR)) {
        return a != 0 || b != 0;
    }
    return ordered; /* LE and FLE */
}

/* A product or quotient, or what is left of one; false where it is too large, or there is none. */
static bool graft_compute_product(uint32_t code, int64_t a, int64_t b, int64_t *result)
{
    const bool negative = (a < 0) != (b < 0);
    uint64_t rest = 0;
    uint64_t size = 0;
    if (GRAFT_CODE_IS(code, MUL)) {
        size = graft_multiply_saturating(graft_size_of(a), graft_size_of(b));
    } else if (GRAFT_CODE_IS(code, DIVIDES)) {
        rest = 1;
        (void)(a != 0 && graft_divide(graft_size_of(b), graft_size_of(a), &rest));
        *result = rest == 0;
        return true;
    } else if (b == 0) {
        return false;
    } else {
        size = graft_divide(graft_size_of(a), graft_size_of(b), &rest);
    }
    if (GRAFT_CODE_IS(code, MOD)) {
        *result = (int64_t)rest;
        return a >= 0 && b > 0;
    }
    *result = (int64_t)(negative ? 0u - size : size);
    return rest == 0 && size < (uint64_t)GRAFT_CODE_BOUND;
}

/* Of a and b; where they are floats, what is compared are their places in the order. */
static GRAFT_APART bool graft_compute_binary(uint32_t code, int64_t a, int64_t b, int64_t *result)
{
    int64_t key_a = a;
    int64_t key_b = b;
    const bool floats =
        GRAFT_CODE_IS(code, FMIN) || GRAFT_CODE_IS(code, FMAX) || GRAFT_CODE_IS(code, FLE);
    if (floats && !(graft_float_key(a, &key_a) && graft_float_key(b, &key_b))) {
        return false;
    }
    const bool ordered = key_a <= key_b;
    if (GRAFT_CODE_IS(code, MUL) || GRAFT_CODE_IS(code, DIV) || GRAFT_CODE_IS(code, MOD) ||
        GRAFT_CODE_IS(code, DIVIDES)) {
        return graft_compute_product(code, a, b, result);
    }
    if (GRAFT_CODE_IS(code, ADD)) {
        *result = a + b;
    } else if (GRAFT_CODE_IS(code, SUB)) {
        *result = a - b;
    } else if (GRAFT_CODE_IS(code, MIN) || GRAFT_CODE_IS(code, FMIN)) {
        *result = ordered ? a : b;
    } else if (GRAFT_CODE_IS(code, MAX) || GRAFT_CODE_IS(code, FMAX)) {
        *result = ordered ? b : a;
    } else {
        *result = graft_is_so(code, a, b, ordered);
    }
    return true;
}

/* Replaces the uppermost numbers by what an operator makes of them. NOT compares with 0. */
static bool graft_run_operator(int64_t *stack, uint32_t *depth, uint32_t code)
{
    int64_t b = 0;
    const bool negates = GRAFT_CODE_IS(code, NOT);
    if (*depth < (negates ? 1u : 2u)) {
        return false;
    }
    if (!negates) {
        b = stack[--*depth];
    }
    int64_t *top = &stack[*depth - 1];
    return graft_compute_binary(code, *top, b, top) && *top > -GRAFT_CODE_BOUND &&
           *top < GRAFT_CODE_BOUND;
}

bool graft_code_run(const graft_rule *rule, uint32_t offset, const graft_shape *const *vars,
                    const bool *var_const, const int32_t *slots, int64_t *result)
{
    const graft_code_inputs inputs = {vars, var_const, slots};
    int64_t stack[GRAFT_CODE_DEPTH];
    uint32_t depth = 0;
    while (offset < rule->code_bytes && rule->code[offset] != GRAFT_CODE_END) {
        const uint8_t *at = &rule->code[offset];
        if (*at > GRAFT_CODE_SAME) {
            if (!graft_run_operator(stack, &depth, *at)) {
                return false;
            }
        } else {
            int32_t leaf = 0;
            if (depth == GRAFT_CODE_DEPTH || !graft_read_leaf(&inputs, *at, at + 1, &leaf)) {
                return false;
            }
            stack[depth++] = leaf;
        }
        offset += 1u + graft_code_operand_bytes(*at);
    }
    if (offset >= rule->code_bytes || depth != 1) {
        return false;
    }
    *result = stack[0];
    return true;
}

#endif

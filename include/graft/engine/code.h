/* code.h - the byte code of preconditions and target attributes. The verifier translates the same
 * bytes to Z3 (verify/), so what is proved is what is checked. */
#ifndef GRAFT_ENGINE_CODE_H
#define GRAFT_ENGINE_CODE_H

#define GRAFT_CODE_DEPTH 16
/* Operands and results stay below 2^62 in magnitude, so that sums never overflow. */
#define GRAFT_CODE_BOUND (INT64_C(1) << 62)

typedef struct graft_machine {
    int64_t stack[GRAFT_CODE_DEPTH];
    const graft_shape *const *vars;
    const bool *var_const;
    const int32_t *slots;
    uint32_t depth;
} graft_machine;

uint32_t graft_code_operand_bytes(uint32_t code)
{
    switch (code) {
    case GRAFT_CODE_CONST8:
    case GRAFT_CODE_SLOT:
    case GRAFT_CODE_RANK:
    case GRAFT_CODE_IS_CONST:
        return 1;
    case GRAFT_CODE_DIM:
    case GRAFT_CODE_SAME:
        return 2;
    case GRAFT_CODE_CONST32:
        return 4;
    default:
        return 0;
    }
}

static int32_t read_signed8(uint8_t byte)
{
    return byte < 128 ? (int32_t)byte : (int32_t)byte - 256;
}

static int32_t read_signed32(const uint8_t *bytes)
{
    uint32_t bits = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
                    (uint32_t)bytes[3] << 24;
    return bits <= INT32_MAX ? (int32_t)bits : (int32_t)(bits - 1u - INT32_MAX) + INT32_MIN;
}

static bool push_dim(graft_machine *machine, uint8_t var, uint8_t axis_byte)
{
    const graft_shape *shape = machine->vars[var];
    int32_t axis = read_signed8(axis_byte);
    axis += axis < 0 ? shape->rank : 0;
    if (shape->rank == GRAFT_RANK_UNKNOWN || axis < 0 || axis >= shape->rank) {
        return false;
    }
    machine->stack[machine->depth++] = shape->dims[axis];
    return true;
}

/* Pushes a leaf: a constant, slot, dimension, rank or flag. */
static bool push_leaf(graft_machine *machine, uint32_t code, const uint8_t *operand)
{
    if (machine->depth == GRAFT_CODE_DEPTH) {
        return false;
    }
    int64_t value = 0;
    switch (code) {
    case GRAFT_CODE_CONST8:
        value = read_signed8(operand[0]);
        break;
    case GRAFT_CODE_CONST32:
        value = read_signed32(operand);
        break;
    case GRAFT_CODE_SLOT:
        value = machine->slots[operand[0]];
        break;
    case GRAFT_CODE_DIM:
        return push_dim(machine, operand[0], operand[1]);
    case GRAFT_CODE_RANK:
        value = machine->vars[operand[0]]->rank;
        break;
    case GRAFT_CODE_IS_CONST:
        value = machine->var_const[operand[0]] ? 1 : 0;
        break;
    default:
        value = graft_shape_equal(machine->vars[operand[0]], machine->vars[operand[1]]) ? 1 : 0;
        break;
    }
    machine->stack[machine->depth++] = value;
    return true;
}

static bool multiply_exact(int64_t a, int64_t b, int64_t *result)
{
    int64_t magnitude_a = a < 0 ? -a : a;
    int64_t magnitude_b = b < 0 ? -b : b;
    if (magnitude_b != 0 && magnitude_a > GRAFT_CODE_BOUND / magnitude_b) {
        return false;
    }
    *result = a * b;
    return true;
}

/* Orders the bits of two binary32 numbers as integers; NaN has no place. */
static bool float_key(int64_t bits, int64_t *key)
{
    uint32_t u = (uint32_t)(bits & INT64_C(0xffffffff));
    uint32_t magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
        return false;
    }
    *key = (u >> 31) != 0 ? -(int64_t)magnitude : (int64_t)magnitude;
    return true;
}

static bool compute_float(uint32_t code, int64_t a, int64_t b, int64_t *result)
{
    int64_t key_a = 0;
    int64_t key_b = 0;
    if (!float_key(a, &key_a) || !float_key(b, &key_b)) {
        return false;
    }
    if (code == GRAFT_CODE_FLE) {
        *result = key_a <= key_b;
    } else {
        *result = (code == GRAFT_CODE_FMIN) == (key_a <= key_b) ? a : b;
    }
    return true;
}

static bool compute_division(uint32_t code, int64_t a, int64_t b, int64_t *result)
{
    switch (code) {
    case GRAFT_CODE_DIV:
        if (b == 0 || a % b != 0) {
            return false;
        }
        *result = a / b;
        return true;
    case GRAFT_CODE_MOD:
        if (b <= 0 || a < 0) {
            return false;
        }
        *result = a % b;
        return true;
    default:
        *result = a != 0 && b % a == 0;
        return true;
    }
}

static bool compute_binary(uint32_t code, int64_t a, int64_t b, int64_t *result)
{
    switch (code) {
    case GRAFT_CODE_ADD:
        *result = a + b;
        return true;
    case GRAFT_CODE_SUB:
        *result = a - b;
        return true;
    case GRAFT_CODE_MUL:
        return multiply_exact(a, b, result);
    case GRAFT_CODE_EQ:
        *result = a == b;
        return true;
    case GRAFT_CODE_LE:
        *result = a <= b;
        return true;
    case GRAFT_CODE_AND:
        *result = a != 0 && b != 0;
        return true;
    case GRAFT_CODE_OR:
        *result = a != 0 || b != 0;
        return true;
    case GRAFT_CODE_MIN:
        *result = a < b ? a : b;
        return true;
    case GRAFT_CODE_MAX:
        *result = a > b ? a : b;
        return true;
    case GRAFT_CODE_FMIN:
    case GRAFT_CODE_FMAX:
    case GRAFT_CODE_FLE:
        return compute_float(code, a, b, result);
    default:
        return compute_division(code, a, b, result);
    }
}

static bool run_operator(graft_machine *machine, uint32_t code)
{
    if (code == GRAFT_CODE_NOT) {
        if (machine->depth == 0) {
            return false;
        }
        machine->stack[machine->depth - 1] = machine->stack[machine->depth - 1] == 0;
        return true;
    }
    if (machine->depth < 2) {
        return false;
    }
    int64_t b = machine->stack[--machine->depth];
    int64_t *top = &machine->stack[machine->depth - 1];
    return compute_binary(code, *top, b, top) && *top > -GRAFT_CODE_BOUND &&
           *top < GRAFT_CODE_BOUND;
}

bool graft_code_run(const graft_rule *rule, uint32_t offset, const graft_shape *const *vars,
                    const bool *var_const, const int32_t *slots, int64_t *result)
{
    graft_machine machine;
    machine.vars = vars;
    machine.var_const = var_const;
    machine.slots = slots;
    machine.depth = 0;
    while (offset < rule->code_bytes) {
        uint32_t code = rule->code[offset++];
        if (code == GRAFT_CODE_END) {
            if (machine.depth != 1) {
                return false;
            }
            *result = machine.stack[0];
            return true;
        }
        bool leaf = code >= GRAFT_CODE_CONST8 && code <= GRAFT_CODE_SAME;
        if (!(leaf ? push_leaf(&machine, code, &rule->code[offset])
                   : run_operator(&machine, code))) {
            return false;
        }
        offset += graft_code_operand_bytes(code);
    }
    return false;
}

#endif

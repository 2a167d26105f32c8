/* operators.h - the constant tables that operators.def describes: one row per operator, one per
 * attribute.
 *
 * Rows stand at the place of their id, and an operator's attributes stand together in index order.
 * Both are checked by the compiler, so that looking one up is an index and nothing else. */
#ifndef GRAFT_ENGINE_OPERATORS_H
#define GRAFT_ENGINE_OPERATORS_H

/* What is wrong with a graph, a rule or an operator's inputs. Without texts it is an address that no
 * table has to hold, until graft_tell_fault says what a caller may read. */
#ifdef GRAFT_WITHOUT_TEXTS
#define GRAFT_FAULT(text) ((const char *)1) /* NOLINT(performance-no-int-to-ptr) */
#else
#define GRAFT_FAULT(text) text
#endif

static const char *graft_tell_fault(const char *fault)
{
#ifdef GRAFT_WITHOUT_TEXTS
    return fault != NULL ? "invalid" : NULL;
#else
    return fault;
#endif
}

/* A function that several others call and that is better called than copied where size counts. Found by
 * trying: each saves six bytes at least of a Cortex-M4's text. */
#if defined(__GNUC__) && defined(__OPTIMIZE_SIZE__)
#define GRAFT_APART __attribute__((noinline))
#else
#define GRAFT_APART
#endif

/* Whether an id is that of an operator. Of one that the product has not it never is, and the compiler
 * leaves out what is for that one alone. */
#ifndef GRAFT_OPERATORS
#define GRAFT_HAS(id) 1
#define GRAFT_HAS_ALL /* For headers of policies, which cannot ask it of each. */
#else
#ifndef GRAFT_OPERATORS_64
#define GRAFT_OPERATORS_64 0
#endif
#define GRAFT_HAS(id)                                                                              \
    ((((id) < 64 ? (uint64_t)(GRAFT_OPERATORS) : (uint64_t)(GRAFT_OPERATORS_64)) >> (id) % 64 &    \
      1u) != 0)
#endif
#define GRAFT_IS(op, name) (GRAFT_HAS(GRAFT_OP_##name) && (op) == GRAFT_OP_##name)

#define GRAFT_IS_CONV(op)                                                                          \
    (GRAFT_IS(op, conv) || GRAFT_IS(op, conv_bias) || GRAFT_IS(op, conv_bias_add))

/* What the rules of a policy use, where its header says so (graft emit-policy --operators): the most
 * outputs of a rule, and the codes of their programs, a bit for each. What is for others alone is left
 * out; a rule that uses more is not valid. */
#ifndef GRAFT_RULE_OUTPUTS
#define GRAFT_RULE_OUTPUTS GRAFT_RULE_MAX_OUTPUTS
#endif
#ifndef GRAFT_RULE_CODES
#define GRAFT_RULE_CODES 0xffffffu /* All, as a number that other headers can compare. */
typedef char graft_rule_codes_are_not_all[0xffffffu == (1u << GRAFT_CODE_COUNT) - 1u ? 1 : -1];
#endif

/* Whether a code is that of a name, which only those can be that rules use. */
#define GRAFT_CODE_IS(code, name)                                                                  \
    (((uint64_t)(GRAFT_RULE_CODES) >> GRAFT_CODE_##name & 1u) != 0 && (code) == GRAFT_CODE_##name)

/* Counts rows: an OP row takes a place among the operators, an ATTR row one among the attributes.
 * GRAFT_ATTR_FIRST_x is where the attributes of x begin; the enumerator after it steps back by one so
 * that the row that follows gets that place. */
enum {
    GRAFT_OP_PLACE_none,
#define OP(id, name, inputs, outputs, attributes, flags, onnx) GRAFT_OP_PLACE_##name,
#include "../operators.def"
    GRAFT_OP_PLACE_end
};

enum {
#define OP(id, name, inputs, outputs, attributes, flags, onnx)                                     \
    GRAFT_ATTR_FIRST_##name, GRAFT_ATTR_BEFORE_##name = GRAFT_ATTR_FIRST_##name - 1,
#define ATTR(operator_, index, name, kind, role, least, most) GRAFT_ATTR_PLACE_##operator_##_##name,
#include "../operators.def"
    GRAFT_ATTR_PLACE_end
};

enum {
    GRAFT_ATTR_TOTAL = 0
#define OP(id, name, inputs, outputs, attributes, flags, onnx) +(attributes)
#include "../operators.def"
};

/* A negative array size, that is an error, when a row breaks the order or the sizes. */
#define OP(id, name, inputs, outputs, attributes, flags, onnx)                                     \
    enum { GRAFT_ATTR_COUNT_##name = (attributes) };                                               \
    typedef char graft_op_row_##name##_is_out_of_place                                             \
        [(id) == (int)GRAFT_OP_PLACE_##name && (inputs) <= GRAFT_MAX_INPUTS &&                     \
                 (outputs) == ((id) == (int)GRAFT_OP_split ? 2 : 1) &&                             \
                 (attributes) <= GRAFT_MAX_ATTRS &&                                                \
                 (((flags)&GRAFT_FLAG_COMMUTES) == 0 || (inputs) == 2)                             \
             ? 1                                                                                   \
             : -1];
#define ATTR(operator_, index, name, kind, role, least, most)                                      \
    typedef char graft_attr_row_##operator_##_##name##_is_out_of_place                             \
        [(int)GRAFT_ATTR_PLACE_##operator_##_##name ==                                             \
                     (int)GRAFT_ATTR_FIRST_##operator_ + (index) &&                                \
                 (index) < (int)GRAFT_ATTR_COUNT_##operator_ &&                                    \
                 ((int)GRAFT_ATTR_##kind != (int)GRAFT_ATTR_ACTIVATION ||                          \
                  (index) + 1 == (int)GRAFT_ATTR_COUNT_##operator_)                                \
             ? 1                                                                                   \
             : -1];
#include "../operators.def"
typedef char graft_op_ids_end_out_of_place[(int)GRAFT_OP_PLACE_end == (int)GRAFT_OP_COUNT ? 1 : -1];
typedef char
    graft_attr_rows_are_missing[(int)GRAFT_ATTR_PLACE_end == (int)GRAFT_ATTR_TOTAL ? 1 : -1];

/* Version 14 of the formatter crashes on tables of structs that are built from rows of a file. */
/* clang-format off */
static const graft_op_info graft_op_table[GRAFT_OP_COUNT] = {
    {NULL, NULL, 0, 0, 0, 0},
#define OP(id, name, inputs, outputs, attributes, flags, onnx)                                     \
    {#name, onnx, inputs, outputs, attributes, flags},
#include "../operators.def"
};

/* What the engine itself asks of an operator: a program that wants no names has no graft_op_table. */
typedef struct graft_op_row {
    uint8_t input_count;
    uint8_t output_count;
    uint8_t attr_count;
    uint8_t flags;
} graft_op_row;

static const graft_op_row graft_op_rows[GRAFT_OP_COUNT] = {
    {0, 0, 0, 0},
#define OP(id, name, inputs, outputs, attributes, flags, onnx) {inputs, outputs, attributes, flags},
#include "../operators.def"
};

static const uint16_t graft_attr_first[GRAFT_OP_COUNT] = {
    0,
#define OP(id, name, inputs, outputs, attributes, flags, onnx) GRAFT_ATTR_FIRST_##name,
#include "../operators.def"
};

static const graft_attr_info graft_attr_table[GRAFT_ATTR_TOTAL] = {
#define ATTR(operator_, index, name, kind, role, least, most)                                      \
    {#name, least, most, GRAFT_ATTR_##kind, GRAFT_ROLE_##role},
#include "../operators.def"
};
/* clang-format on */

/* A rule with one output has one root. */
static uint32_t graft_rule_outputs(const graft_rule *rule)
{
    return GRAFT_RULE_OUTPUTS == 1 ? 1 : rule->output_count;
}

/* Outputs of an operator; `split` alone has two. */
static uint32_t graft_outputs_of(uint32_t op) { return GRAFT_IS(op, split) ? 2 : 1; }

/* The row of an operator, NULL for what is none. */
static const graft_op_row *graft_find_op(uint32_t op)
{
    return op > GRAFT_OP_NONE && op < GRAFT_OP_COUNT ? &graft_op_rows[op] : NULL;
}

const graft_op_info *graft_op(uint32_t op)
{
    return graft_find_op(op) != NULL ? &graft_op_table[op] : NULL;
}

const graft_attr_info *graft_op_attr(uint32_t op, uint32_t index)
{
    const graft_op_row *info = graft_find_op(op);
    if (info == NULL || index >= info->attr_count) {
        return NULL;
    }
    return &graft_attr_table[graft_attr_first[op] + index];
}

#endif

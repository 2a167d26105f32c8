/* SPDX-License-Identifier: MIT */
/* rule.h - what rules are made of: the operators and their attributes, shapes, patterns, byte code.
 * A part of graft.h, and all of it that a proof of a rule needs. */
#ifndef GRAFT_RULE_H
#define GRAFT_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The tables' macros; a product may have its own of these names. */
#pragma push_macro("OP")
#pragma push_macro("ATTR")
#undef OP
#undef ATTR

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------- operators */

#define GRAFT_MAX_RANK  6
#define GRAFT_MAX_ATTRS 12
/* Most inputs and outputs of a known operator; opaque nodes may have up to 65535. */
#define GRAFT_MAX_INPUTS  4
#define GRAFT_MAX_OUTPUTS 2

/* Activations inside fused operators. */
typedef enum graft_activation {
    GRAFT_ACT_NONE = 0,
    GRAFT_ACT_RELU = 1,
    GRAFT_ACT_RELU6 = 2, /* clip to [0, 6] */
    GRAFT_ACT_SIGMOID = 3,
    GRAFT_ACT_TANH = 4,
    GRAFT_ACT_COUNT = 5
} graft_activation;

enum {
    GRAFT_OP_NONE = 0, /* A free node slot. */
#define OP(id, name, inputs, outputs, attributes, flags, onnx) GRAFT_OP_##name = id,
#include "operators.def"
    GRAFT_OP_COUNT, /* One past the largest id. */
    GRAFT_OP_OPAQUE = 255
};

/* Indices of attributes, e.g. GRAFT_ATTR_conv_stride_h. */
enum {
#define ATTR(operator, index, name, kind, role, least, most) GRAFT_ATTR_##operator##_##name = index,
#include "operators.def"
    GRAFT_ATTR_NONE_ = 0
};

enum {
    GRAFT_FLAG_COMMUTES = 1,
    GRAFT_FLAG_ELEMENTWISE = 2,
    GRAFT_FLAG_MOVES = 4,
    GRAFT_FLAG_LINEAR = 8,
    GRAFT_FLAG_PIECEWISE = 16,
    GRAFT_FLAG_UNKNOWN_FN = 32,
    GRAFT_FLAG_COMPOSED = 64 /* A FUNCTION row. */
};

typedef enum graft_attr_kind {
    GRAFT_ATTR_INT = 0,
    GRAFT_ATTR_FLOAT = 1, /* Bits of an IEEE binary32. */
    GRAFT_ATTR_DIM = 2,
    GRAFT_ATTR_ACTIVATION = 3
} graft_attr_kind;

typedef enum graft_attr_role {
    GRAFT_ROLE_NUMBER, /* A size or number that is none of these. */
    GRAFT_ROLE_AXIS,
    GRAFT_ROLE_AXES,     /* A set of axes, a bit each. */
    GRAFT_ROLE_ORDER,    /* One place of a permutation of axes. */
    GRAFT_ROLE_MODE,     /* One of a few ways. */
    GRAFT_ROLE_POSITION, /* A place along an axis. */
    GRAFT_ROLE_EXTENT,   /* A size of the output, which ends at a 0. */
    GRAFT_ROLE_GROUPS,
    GRAFT_ROLE_STRIDE,
    GRAFT_ROLE_DILATION,
    GRAFT_ROLE_KERNEL, /* A size of a window. */
    GRAFT_ROLE_PADDING,
    GRAFT_ROLE_LOW, /* A bound, which may be infinite. */
    GRAFT_ROLE_HIGH,
    GRAFT_ROLE_BYTE /* A number of 8 bits. */
} graft_attr_role;

typedef struct graft_attr_info {
    const char *name; /* NULL past the operator's last attribute. */
    int32_t least;
    int32_t most;
    uint8_t kind; /* graft_attr_kind */
    uint8_t role; /* graft_attr_role */
} graft_attr_info;

typedef struct graft_op_info {
    const char *name; /* NULL for ids without a row. */
    const char *onnx;
    uint8_t input_count;
    uint8_t output_count;
    uint8_t attr_count;
    uint8_t flags;
} graft_op_info;

/* The row of an operator; NULL for GRAFT_OP_NONE, GRAFT_OP_OPAQUE and numbers without a row. */
const graft_op_info *graft_op(uint32_t op);
/* The row of one attribute; NULL where there is none. */
const graft_attr_info *graft_op_attr(uint32_t op, uint32_t index);

/* ------------------------------------------------------------------ shapes */

/* Element types, numbered as ONNX numbers them. */
typedef enum graft_dtype {
    GRAFT_DTYPE_UNKNOWN = 0,
    GRAFT_DTYPE_F32 = 1,
    GRAFT_DTYPE_U8 = 2,
    GRAFT_DTYPE_I8 = 3,
    GRAFT_DTYPE_U16 = 4,
    GRAFT_DTYPE_I16 = 5,
    GRAFT_DTYPE_I32 = 6,
    GRAFT_DTYPE_I64 = 7,
    GRAFT_DTYPE_BOOL = 9,
    GRAFT_DTYPE_F16 = 10,
    GRAFT_DTYPE_F64 = 11,
    GRAFT_DTYPE_BF16 = 16
} graft_dtype;

#define GRAFT_RANK_UNKNOWN 255

/* Sizes are at least 1 for i < rank and 0 beyond, so shapes compare field by field. A scalar has
 * rank 0. Shapes of opaque outputs may be unknown (rank GRAFT_RANK_UNKNOWN). */
typedef struct graft_shape {
    int32_t dims[GRAFT_MAX_RANK];
    uint8_t rank;
    uint8_t dtype;
} graft_shape;

/* ------------------------------------------------------------------- rules */

#define GRAFT_RULE_MAX_NODES   14 /* On each side. */
#define GRAFT_RULE_MAX_VARS    8
#define GRAFT_RULE_MAX_SLOTS   40
#define GRAFT_RULE_MAX_OUTPUTS 4
#define GRAFT_RULE_MAX_CODE    255

/* An operand of a pattern: variable v, or output `o` of pattern node `n`. */
typedef uint8_t graft_operand;
#define GRAFT_OPERAND_VAR(v)     ((graft_operand)(v))
#define GRAFT_OPERAND_NODE(n, o) ((graft_operand)(0x40u | ((unsigned)(n) << 1) | (unsigned)(o)))
#define GRAFT_OPERAND_IS_NODE(x) (((x)&0x40u) != 0)
#define GRAFT_OPERAND_NODE_OF(x) (((x)&0x3fu) >> 1)
#define GRAFT_OPERAND_SLOT_OF(x) ((x)&1u)
/* Its place among the outputs of all nodes of a pattern, GRAFT_MAX_OUTPUTS of each. */
#define GRAFT_OPERAND_PLACE_OF(x) ((x)&0x3fu)

/* How an attribute is given: a constant; the attribute slot `value`; the result of the byte code
 * that starts at offset `value` of the rule's code (target side only). */
typedef enum graft_term_kind {
    GRAFT_TERM_CONST = 0,
    GRAFT_TERM_SLOT = 1,
    GRAFT_TERM_CODE = 2
} graft_term_kind;

typedef struct graft_term {
    int32_t value;
    uint8_t kind; /* graft_term_kind */
} graft_term;

typedef struct graft_pattern_node {
    uint8_t op;
    graft_operand inputs[GRAFT_MAX_INPUTS];
    graft_term attrs[GRAFT_MAX_ATTRS];
} graft_pattern_node;

typedef struct graft_pattern {
    uint8_t node_count;
    graft_operand
        outputs[GRAFT_RULE_MAX_OUTPUTS]; /* output i of source equals output i of target */
    graft_pattern_node nodes[GRAFT_RULE_MAX_NODES];
} graft_pattern;

/* A substitution. In the source pattern node 0 produces output 0 (the anchor), and every other node
 * either is an operand of an earlier node or produces another output; in the target pattern nodes
 * stand in topological order, producers first. A source slot's first mention binds it, later ones
 * compare. */
typedef struct graft_rule {
    uint8_t var_count;
    uint8_t slot_count;
    uint8_t output_count;
    uint8_t condition; /* Offset in `code` of the precondition; 255 when there is none. */
    uint8_t code_bytes;
    graft_pattern source;
    graft_pattern target;
    uint8_t code[GRAFT_RULE_MAX_CODE];
} graft_rule;

/* Byte code of preconditions and target attributes: postfix over 64-bit integers, at most 16 deep.
 * A division that is not exact, an overflow, a missing dimension or a stack fault makes the whole
 * program fail; a failed precondition is false, a failed attribute refuses the match.
 * Operands follow their code as bytes; CONST32 is little-endian. */
typedef enum graft_code {
    GRAFT_CODE_END = 0,      /* The result is on top. */
    GRAFT_CODE_CONST8 = 1,   /* int8 */
    GRAFT_CODE_CONST32 = 2,  /* int32 */
    GRAFT_CODE_SLOT = 3,     /* slot */
    GRAFT_CODE_DIM = 4,      /* variable, axis (int8; negative counts from the end) */
    GRAFT_CODE_RANK = 5,     /* variable */
    GRAFT_CODE_IS_CONST = 6, /* variable */
    GRAFT_CODE_SAME = 7,     /* variable, variable: 1 when they have the same sizes */
    GRAFT_CODE_ADD = 8,
    GRAFT_CODE_SUB = 9,
    GRAFT_CODE_MUL = 10,
    GRAFT_CODE_DIV = 11, /* exact */
    GRAFT_CODE_MOD = 12, /* of non-negative numbers */
    GRAFT_CODE_EQ = 13,
    GRAFT_CODE_LE = 14,
    GRAFT_CODE_DIVIDES = 15, /* a b: 1 when a divides b */
    GRAFT_CODE_AND = 16,
    GRAFT_CODE_OR = 17,
    GRAFT_CODE_NOT = 18,
    GRAFT_CODE_MIN = 19,
    GRAFT_CODE_MAX = 20,
    GRAFT_CODE_FMIN = 21, /* of FLOAT attributes, given as binary32 bits; NaN fails */
    GRAFT_CODE_FMAX = 22,
    GRAFT_CODE_FLE = 23,
    GRAFT_CODE_COUNT = 24
} graft_code;

/* Bytes of operands that follow a code in a program. */
uint32_t graft_code_operand_bytes(uint32_t code);

/* Runs the program at `offset`. False when it fails; `result` is then untouched. `vars` holds the
 * shape of each variable, `var_const` whether it is const. */
bool graft_code_run(const graft_rule *rule, uint32_t offset, const graft_shape *const *vars,
                    const bool *var_const, const int32_t *slots, int64_t *result);

#ifdef __cplusplus
}
#endif

#pragma pop_macro("OP")
#pragma pop_macro("ATTR")

#endif

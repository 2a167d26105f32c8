/* tasofile.h - TASO's substitution files (Jia et al., SOSP 2019): protobuf, graph/rule/taso.proto.
 *
 * The numbers are those of TASO's public sources: the enumerations OpType, PMParameter, ActiMode
 * and PaddingMode of its ops.h, written by its generator. A rule has operators in order, each after
 * those it reads; inputs are tensors with negative operator numbers. What an operator means is the
 * business of verify/command/taso.h. */
#pragma once

#include "graph/base/bytes.h"
#include "graph/base/env.h"

typedef enum graft_taso_type {
    GRAFT_TASO_CONV2D = 3,
    GRAFT_TASO_POOL2D_MAX = 6,
    GRAFT_TASO_POOL2D_AVG = 7,
    GRAFT_TASO_RELU = 8,
    GRAFT_TASO_SIGMOID = 9,
    GRAFT_TASO_TANH = 10,
    GRAFT_TASO_CONCAT = 12,
    GRAFT_TASO_SPLIT = 13,
    GRAFT_TASO_TRANSPOSE = 15,
    GRAFT_TASO_EW_ADD = 16,
    GRAFT_TASO_EW_MUL = 17,
    GRAFT_TASO_MATMUL = 18,
    GRAFT_TASO_MUL = 19, /* By a scalar. */
    GRAFT_TASO_ENLARGE = 20,
    GRAFT_TASO_CONSTANT_IMM = 22,
    GRAFT_TASO_CONSTANT_ICONV = 23,
    GRAFT_TASO_CONSTANT_ONE = 24,
    GRAFT_TASO_CONSTANT_POOL = 25
} graft_taso_type;

typedef enum graft_taso_key {
    GRAFT_TASO_NUM_INPUTS = 1,
    GRAFT_TASO_NUM_OUTPUTS = 2,
    GRAFT_TASO_KERNEL_H = 4,
    GRAFT_TASO_KERNEL_W = 5,
    GRAFT_TASO_STRIDE_H = 6,
    GRAFT_TASO_STRIDE_W = 7,
    GRAFT_TASO_PAD = 8,  /* 0: same, 1: valid. */
    GRAFT_TASO_ACTI = 9, /* 0: none, 1: sigmoid, 2: relu, 3: tanh. */
    GRAFT_TASO_NUMDIM = 10,
    GRAFT_TASO_AXIS = 11,
    GRAFT_TASO_PERM = 12, /* Output axis i is input axis p_i; the p_i as digits of base NUMDIM. */
    GRAFT_TASO_OUTSHUFFLE = 13
} graft_taso_key;

/* "conv2d"; "operator 99" for other numbers, in `arena`. */
const char *graft_taso_name(graft_arena *arena, int32_t type);

enum { GRAFT_TASO_OPERATORS = 16, GRAFT_TASO_INPUTS = 6, GRAFT_TASO_PARAMETERS = 12 };
enum { GRAFT_TASO_OUTPUTS = 8 };

typedef struct graft_taso_tensor {
    int32_t op; /* Negative: an input of the rule. */
    int32_t output;
} graft_taso_tensor;

typedef struct graft_taso_operator {
    int32_t type;
    uint32_t input_count;
    uint32_t parameter_count;
    graft_taso_tensor inputs[GRAFT_TASO_INPUTS];
    int32_t keys[GRAFT_TASO_PARAMETERS];
    int32_t values[GRAFT_TASO_PARAMETERS];
} graft_taso_operator;

typedef struct graft_taso_rule {
    graft_taso_operator source[GRAFT_TASO_OPERATORS];
    graft_taso_operator target[GRAFT_TASO_OPERATORS];
    uint32_t source_count;
    uint32_t target_count;
    uint32_t output_count;
    graft_taso_tensor outputs[GRAFT_TASO_OUTPUTS][2]; /* Of source and target. */
    bool too_large; /* More operators, inputs or outputs than fit here: the rest is empty. */
} graft_taso_rule;

/* The value of a parameter; false when the operator does not have it. */
bool graft_taso_value(const graft_taso_operator *op, graft_taso_key key, int32_t *value);

/* Reads a file into `arena`. GRAFT_IO when it cannot be read; GRAFT_BAD_INPUT, naming byte or rule,
 * when it is no such file, or when an operator reads what does not stand before it. */
GRAFT_MUST_USE graft_status graft_taso_read(graft_env *env, graft_arena *arena, const char *path,
                                            graft_taso_rule **rules, uint32_t *count);
/* Same, from memory. */
GRAFT_MUST_USE graft_status graft_taso_parse(graft_env *env, graft_arena *arena, graft_bytes bytes,
                                             graft_taso_rule **rules, uint32_t *count);

/* operator.h - one operator as an ONNX file, for runtimes that only know files. */
#pragma once

#include "graph/model.h"

/* An operator of the engine on binary32 tensors; bit k of `const_mask`: input k is a weight. */
typedef struct graft_operator {
    uint32_t op;
    const int32_t *attrs; /* GRAFT_MAX_ATTRS; unused ones 0. */
    const graft_shape *inputs;
    uint32_t const_mask;
} graft_operator;

/* The bytes of an ONNX model, in `arena` (not env->scratch), whose nodes compute the operator:
 * several where ONNX has no single one, such as a convolution with its activation. Input k of the
 * operator is the model's input "x<k>" or the initializer "w<k>", of numbers that keep results of
 * about the size of the inputs; output k is "y<k>". Equal operators give equal bytes.
 * GRAFT_UNSUPPORTED for other element types and what has no form in the opset that is written (17);
 * GRAFT_BAD_INPUT when the shapes do not fit. */
GRAFT_MUST_USE graft_status graft_operator_pack(graft_env *env, graft_arena *arena,
                                                const graft_operator *of, uint8_t **data,
                                                size_t *size);

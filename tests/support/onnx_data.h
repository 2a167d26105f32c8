/* onnx_data.h - the conformance cases of the ONNX project, as Debian's libonnx-testdata installs
 * them: a folder per case with model.onnx and test_data_set_0/{input,output}_N.pb.
 *
 * Newer operators take what Graft needs to know in advance (axes, shapes, bounds) as inputs. So a
 * case can be loaded frozen: every input but a first one of binary32 becomes an initializer, with
 * the data of the case, as it is in models that people export. */
#pragma once

#include "graph/model.h"

typedef struct onnx_tensor {
    const char *name;
    graft_shape shape;
    const float *data; /* In binary32; NULL unless they are of it, of float16 or of bfloat16. */
    const void *raw;   /* Elements of any type; NULL when the file does not store them as bytes. */
} onnx_tensor;

typedef struct onnx_case {
    const char *name; /* e.g. "node/test_relu" */
    graft_model *model;
    const onnx_tensor *inputs; /* Of the case; frozen ones are among the model's weights. */
    const onnx_tensor *outputs;
    uint32_t input_count;
    uint32_t output_count;
} onnx_case;

/* The installed cases, sorted, or none when the package is missing. The environment variable
 * GRAFT_ONNX_TESTDATA names another folder. */
const char *const *onnx_data_list(graft_arena *arena, uint32_t *count);
/* Reads a case through graft_model_parse. Not every case has tensors as inputs and outputs: those
 * give GRAFT_UNSUPPORTED. */
GRAFT_MUST_USE graft_status onnx_data_load(graft_env *env, graft_arena *arena, const char *name,
                                           bool frozen, onnx_case *loaded);

typedef enum onnx_data_form {
    ONNX_DATA_AS_IS,
    ONNX_DATA_FROZEN,
    ONNX_DATA_UNDECLARED, /* Frozen, and the types of outputs are left out. */
    ONNX_DATA_CONSTANT,   /* Every input is an initializer. */
    ONNX_DATA_TO_RUN      /* Frozen, and read to be run. */
} onnx_data_form;
/* The same in any form. */
GRAFT_MUST_USE graft_status onnx_data_load_as(graft_env *env, graft_arena *arena, const char *name,
                                              onnx_data_form form, onnx_case *loaded);

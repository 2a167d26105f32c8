/* onnx_infer.h - what ONNX's own library says of the shapes that a node computes; private to
 * graph/onnx/onnx_opaque.c. onnx_infer.cc is the only C++ of the program, and is left out where the
 * library is not installed.
 *
 * The library is older than the models that are read: it knows the operators up to opset 17. Those
 * that came later it does not know. Of those that changed later it is asked unless the change can
 * matter: a node that has an attribute or more inputs than the library's form of the operator, or
 * one of the few that mean something else without (opset 24 was compared). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { GRAFT_INFER_RANK_MOST = 8 };

typedef struct graft_infer_tensor {
    bool known; /* Of an input: it is given. Of an output: what follows was found. */
    int32_t dtype;
    uint32_t rank;
    int64_t dims[GRAFT_INFER_RANK_MOST];
    const void *data; /* Of an input: its elements, where they are few and known beforehand. */
    size_t data_bytes;
} graft_infer_tensor;

/* `node` is an encoded NodeProto of the default domain in a model of the opset, `inputs` has one
 * entry for each of its inputs. Writes what output `k` is, not known when there is no answer;
 * whatever goes wrong in the library ends here. */
void graft_onnx_infer(const uint8_t *node, size_t node_bytes, int64_t opset,
                      const graft_infer_tensor *inputs, size_t k, graft_infer_tensor *output);

#ifdef __cplusplus
}
#endif

/* rolled.h - recurrent nets that a file has step by step, as the LSTM or GRU that they are.
 *
 * Keras with `unroll`, static_rnn of TensorFlow and loops over cells that were traced write every
 * step out. A runtime that has a kernel for all of them together is faster by that, or not, which
 * only its clock says (emit/policy/faster.h). Equal in real numbers; no rule, since it holds for any
 * number of steps. */
#pragma once

#include "graph/model.h"

/* Writes the model's file with each chain of equal cells as one node (onnx_chains.h); *cells is how
 * many cells these are. Nothing is written when there are none: where a tensor within a cell is read
 * elsewhere, where an input of the chain depends on what it makes, and where the file is one that
 * graft_algorithms_find finds nothing in. Names of what is left, and inputs and outputs, stay. Fails
 * as graft_model_write does. */
GRAFT_MUST_USE graft_status graft_rolled_write(graft_env *env, const graft_model *model,
                                               const char *path, uint32_t *cells);

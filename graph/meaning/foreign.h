/* foreign.h - operators of ONNX that only run: rules never see them, they have no row in
 * operators.def, or not in the form at hand, and no kernel, but a model that has them among others
 * can be run, and what they make of constants is worked out while it is read. Rows that make or read
 * booleans are run by them, too (graph/opaque.c).
 *
 *      Abs Neg Sign                           of numbers (binary32, int64, int32, int8, uint8)
 *      Ceil Floor Round IsNaN IsInf           of binary32; halves to even
 *      Shrink ThresholdedRelu                 of binary32
 *      Tan Asin Acos Atan Sinh Asinh Acosh Atanh      of binary32
 *      Equal Less Greater ... And Or Xor Not  of numbers; of truth values
 *      Add Sub Mul Div Mod Min Max Clip       of numbers; whole ones wrap around
 *      BitwiseAnd BitwiseOr BitwiseXor BitwiseNot     of whole numbers
 *      Pow                                    of binary32, int64, int32, also mixed
 *      Where Expand Tile Pad Slice Transpose Concat Split Trilu OneHot    of elements of any type
 *      ReverseSequence, ArrayFeatureExtractor of ai.onnx.ml    likewise
 *      EyeLike                                of binary32, int64, int32, bool
 *      GatherElements GatherND ScatterElements ScatterND      likewise; sums of numbers
 *      ReduceSum ... ReduceLogSumExp CumSum   of binary32, int64, int32
 *      ArgMax ArgMin TopK                     of numbers; of equal ones the first
 *      Einsum                                 of one to three operands of binary32, with an arrow
 *      Range                                  of int32, int64 and binary32
 *      Resize Upsample GridSample LRN         of binary32
 *      RoiAlign                               of binary32
 *      Det                                    of binary32
 *      Conv                                   of binary32, along one or two axes, with strides that
 *                                             operators.def does not have; no large ones
 *      ConvTranspose                          likewise, in groups and with dilations
 *      LSTM GRU RNN                           of binary32, of any length, of sequences of several
 *      DynamicQuantizeLinear MatMulInteger ConvInteger, DynamicQuantizeLSTM of com.microsoft
 *      QLinearAdd QLinearMul QLinearSigmoid QLinearLeakyRelu QLinearGlobalAveragePool
 *      QLinearConcat QLinearSoftmax QGemm     of com.microsoft, scales of whole tensors
 *      RotaryEmbedding, that of com.microsoft, too    of binary32
 *      TensorScatter                          of elements of any type
 *      MatMulNBits, GatherBlockQuantized      of com.microsoft, of 2, 4 and 8 bits
 *
 * Operands are stretched as ONNX stretches them. Numbers that say how large a result is (pads,
 * repeats, sizes) are read when the node is run, and must then give the size that it has. */
#pragma once

#include "graph/opaque.h"

#include "graph/onnx/onnx.pb-c.h"

/* Recognises such an operator, whose inputs' shapes and types are filled in: sets its kind, row,
 * attributes and number of inputs. False for other operators, types and forms. */
bool graft_foreign_find(const Onnx__NodeProto *node, graft_opaque *opaque);
/* Likewise of an operator without attributes, all of whose inputs are given. */
bool graft_foreign_find_plain(const char *op_type, uint32_t inputs, graft_opaque *opaque);
/* The shape of what it makes, of inputs whose elements are `in` as far as they are known, else
 * NULL. False when they are needed and are not known, or do not fit. */
bool graft_foreign_shape(const graft_opaque *opaque, const void *const *in, graft_shape *shape);
/* Whether the shape that it has is the one that the shapes of its inputs give, or one of those that
 * numbers may give. */
bool graft_foreign_fits(const graft_opaque *opaque);
bool graft_foreign_is_pointwise(const graft_opaque *opaque);
/* See graft_opaque_keep. */
void graft_foreign_keep(graft_arena *arena, graft_opaque *opaque, const void *const *in);
/* Runs it, see graft_opaque_run. GRAFT_BAD_INPUT when numbers give another size, or a whole number
 * is divided by 0. */
GRAFT_MUST_USE graft_status graft_foreign_run(graft_env *env, const graft_opaque *opaque,
                                              const void *const *in, void *const *out);

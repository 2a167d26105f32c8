/* quantised.h - ONNX's quantised operators, as opaque nodes that can be run.
 *
 * A quantised tensor holds whole numbers q, 8 bits with or without a sign, that stand for
 * (q - zero) scale. Scales are binary32 numbers above 0: one for a tensor, or one for each place
 * along an axis; where numbers change alone, also one for each block of places along an axis.
 *
 *      QuantizeLinear       saturate(round(x / scale) + zero), halves to even, to 8 or 16 bits
 *      DequantizeLinear     (q - zero) scale, from 8, 16 or 32 bits
 *      QLinearConv          sums of (x - x_zero) (w - w_zero), plus an int32 bias, in int32; times
 *                           x_scale w_scale / y_scale; rounded, plus y_zero, saturated
 *      QLinearMatMul        likewise, no bias; the second factor's scales are one or one a column
 *
 * Sums are exact; they wrap around as int32 does, as ONNX leaves open and runtimes do. The factor
 * is taken in binary32, as onnxruntime takes it. */
#pragma once

#include "graph/opaque.h"

#include "graph/onnx/onnx.pb-c.h"

/* Recognises a quantised operator whose shapes and types are filled in: sets its kind, axis,
 * attributes and number of inputs. False for other operators and for forms that are not run:
 * elements of other types, a convolution over other than two axes. */
bool graft_quantised_find(const Onnx__NodeProto *node, graft_opaque *opaque);
/* Whether it is QuantizeLinear or DequantizeLinear, of ONNX' own domain or onnxruntime's. */
bool graft_quantised_is_change(const Onnx__NodeProto *node);
/* Runs it, see graft_opaque_run. */
void graft_quantised_run(graft_arena *scratch, const graft_opaque *opaque, const void *const *in,
                         void *out);

/* test_foreign.c - operators that only run, in forms that ONNX has no conformance case of: what
 * they compute of inputs and, worked out while a model is read, of constants; what they refuse; and
 * an If that becomes its branch. The numbers are onnxruntime's. */
#include "graph/equal.h"
#include "graph/meaning/algebra_float.h"
#include "graph/opaque.h"
#include "tests/support/build.h"
#include "tests/support/onnx_text.h"

#include <math.h>
#include <string.h>

typedef struct {
    const char *name;
    const char *model; /* Input x, if any, has elements 0, 1, 2...; output y is binary32. */
    const char *outputs;
} foreign_row;

/* clang-format off */
static const foreign_row rows[] = {
    {"a choice of stretched operands", "input x 2 3; ints w = 7 8 9; weight h = 2.5; node Less x h -> c; "
     "node Cast x -> i : to=7; node Where c i w -> j; node Cast j -> y : to=1", "0 1 2 7 8 9"},
    {"numbers compared as whole ones",
     "input x 4; ints a = 1 -1 2 3; node Cast x -> i : to=7; node GreaterOrEqual i a -> c; node Cast c -> y : to=1",
     "0 1 1 1"},
    {"remainders have the sign of the divisor",
     "input x 4; ints a = 3 -3 2 -2; node Cast x -> i : to=7; node Mod i a -> m; node Cast m -> y : to=1", "0 -2 0 -1"},
    {"a mirror on both sides", "input x 1 4; ints p = 0 2 0 3; node Pad x p -> y : mode=reflect", "2 1 0 1 2 3 2 1 0"},
    {"a mirror by an attribute", "opset 10; input x 1 3; node Pad x -> y : mode=reflect pads=0,1,0,0", "1 0 1 2"},
    {"an axis of three again and again, and one element of whole ones",
     "input x 2 3; ints r = 2 2; ints e = 4 12; node Tile x r -> a; ints b = 7; node Expand b e -> c; "
     "node Cast a -> i : to=7; node Concat i c -> d : axis=1; node Cast d -> y : to=1",
     "0 1 2 0 1 2 7 7 7 7 7 7 7 7 7 7 7 7 3 4 5 3 4 5 7 7 7 7 7 7 7 7 7 7 7 7 0 1 2 0 1 2 7 7 7 7 7 7 7 7 7 7 7 7 3 "
     "4 5 3 4 5 7 7 7 7 7 7 7 7 7 7 7 7"},
    {"a filling around whole numbers, and rows of it", "input x 1 2; ints p = 1 1 0 2; ints v = 9; "
     "node Cast x -> i : to=7; node Squeeze v -> f; node Pad i p f -> q; node Cast q -> y : to=1",
     "9 9 9 9 9 9 0 1 9 9"},
    {"an edge along a listed axis",
     "opset 18; input x 2 2; ints p = 1 0; ints a = -2; node Pad x p _ a -> y : mode=edge", "0 1 0 1 2 3"},
    {"an edge on one side and a cut on the other", "input x 2 3; ints p = 0 2 0 -1; node Pad x p -> y : mode=edge",
     "0 0 0 1 3 3 3 4"},
    {"a mirror of what a cut leaves", "input x 5; ints p = -2 2; node Pad x p -> y : mode=reflect", "2 3 4 3 2"},
    {"around and around", "opset 19; input x 3; ints p = 4 1; node Pad x p -> y : mode=wrap", "2 0 1 2 0 1 2 0"},
    {"a slice backwards", "input x 2 4; ints s = -1; ints e = -9; ints a = 1; ints t = -2; node Cast x -> i : to=7; "
     "node Slice i s e a t -> j; node Cast j -> y : to=1", "3 1 7 5"},
    {"whole numbers moved", "input x 2 3; ints a = 0; node Cast x -> i : to=6; node Transpose i -> t; "
     "node Concat t t -> c : axis=1; node Gather c a -> g : axis=1; node Cast g -> y : to=1", "0 1 2"},
    {"an image of twice the width", "input x 1 1 2 2; weight s 4 = 1 1 1 2; node Resize x _ s -> y : mode=linear",
     "0 0.25 0.75 1 2 2.25 2.75 3"},
    {"an image of twice the width, all attributes given", "opset 18; input x 1 1 2 2; weight s 4 = 1 1 1 2; "
     "node Resize x _ s -> y : mode=linear antialias=0 keep_aspect_ratio_policy=stretch",
     "0 0.25 0.75 1 2 2.25 2.75 3"},
    {"a window of strides longer than 64",
     "input x 1 1 200; weight w 1 1 3 = 1 1 1; weight b 1 = 0.5; node Conv x w b -> y : strides=70, pads=1,1",
     "1.5 210.5 420.5"},
    {"a window whose places lie more than 64 apart",
     "input x 1 2 72; weight w 1 2 2 = 1 -1 2 1; weight b 1 = 0.5; node Conv x w b -> y : dilations=70, pads=1,0",
     "72.5 216.5 219.5"},
    {"a long row of them",
     "input x 1 1 97; weight w 1 1 2 = 1 -1; weight b 1 = 0.5; node Conv x w b -> y : dilations=80, pads=1,0",
     "-78.5 -79.5 -79.5 -79.5 -79.5 -79.5 -79.5 -79.5 -79.5 -79.5 -79.5 -79.5 -79.5 -79.5 -79.5 -79.5 -79.5 -79.5"},
    {"a power of the sums", "input x 1 3 1; node LRN x -> y : size=3 alpha=3.0 beta=1.0 bias=2.0",
     "0 0.142857149 0.2857143"},
    {"a rest with the sign of what is divided", "input x 4; ints a = 3 -3 2 -2; ints m = -1; node Cast x -> i : to=7; "
     "node Mul i m -> n; node Mod n a -> r : fmod=1; node Cast r -> y : to=1", "0 -1 0 -1"},
    {"a power of whole numbers",
     "input x 4; ints a = 3; node Cast x -> i : to=7; node Pow i a -> p; node Cast p -> y : to=1", "0 1 8 27"},
    {"an angle and its tangent",
     "input x 3; weight w = 0.5; node Mul x w -> z; node Atan z -> a; node Tan a -> t; node Identity t -> y",
     "0 0.5 1"},
    {"infinite below", "input x 3; weight a 3 = 0 -1 1; node Sub a x -> s; node Log x -> l; "
     "node IsInf l -> b : detect_positive=0; node Cast b -> y : to=1", "1 0 0"},
    {"bits", "opset 18; input x 4; ints a = 6; node Cast x -> i : to=6; node Cast a -> b : to=6; "
     "node BitwiseXor i b -> c; node BitwiseNot c -> d; node Cast d -> y : to=1", "-7 -8 -5 -6"},
    {"the largest and least of one tensor of whole numbers",
     "input x 4; node Cast x -> i : to=7; node Max i -> a; node Min a -> b; node Cast b -> y : to=1", "0 1 2 3"},
    {"bounds of whole numbers",
     "input x 4; scalar a = 1; scalar b = 2; node Cast x -> i : to=7; node Clip i a b -> c; node Cast c -> y : to=1",
     "1 1 2 2"},
    {"the type of another",
     "opset 15; input x 4; ints a = 1; weight w = 2.5; node CastLike x a -> i; node CastLike i w -> y", "0 1 2 3"},
    {"a product along two axes",
     "opset 18; input x 2 2 2; ints a = -1 0; weight w = 1; node Add x w -> z; node ReduceProd z a -> y : keepdims=0",
     "60 672"},
    {"a logarithm that does not overflow",
     "input x 2 2; weight w = 500; node Mul x w -> z; node ReduceLogSumExp z -> y : axes=1, keepdims=0", "500 1500"},
    {"a mean of whole numbers, cut off",
     "input x 2 2; node Cast x -> i : to=6; node ReduceMean i -> m : axes=1,; node Cast m -> y : to=1", "0 2"},
    {"the last of the smallest", "input x 2 3; weight w 2 3 = 1 0 0 2 2 2; node Mul x w -> z; "
     "node ArgMin z -> i : axis=-1 select_last_index=1 keepdims=0; node Cast i -> y : to=1", "2 0"},
    {"the first of the largest, and the last, between axes", "input x 1 4 3; ints m = 6; node Cast x -> i : to=7; "
     "node Mod i m -> z; node ArgMax z -> a : axis=-2 keepdims=0; "
     "node ArgMax z -> b : axis=1 select_last_index=1 keepdims=0; node Concat a b -> c : axis=0; "
     "node Cast c -> y : to=1", "1 1 1 3 3 3"},
    {"sums from the end, each without its own", "input x 4; scalar a = 0; node Cast x -> i : to=7; "
     "node CumSum i a -> j : exclusive=1 reverse=1; node Cast j -> y : to=1", "6 5 3 0"},
    {"products summed over a label",
     "input x 2 3; weight w 2 3 = 1 2 3 4 5 6; node Einsum x w -> y : equation=ij,kj->ki", "8 26 17 62"},
    {"elements of places",
     "input x 2 3; ints s = 2 2; ints i = 2 0 -1 -2; node Reshape i s -> p; node GatherElements x p -> y : axis=1",
     "2 0 5 4"},
    {"elements of places between axes, of fewer columns", "input x 2 2 3; ints s = 1 3 2; ints i = 1 0 -1 -2 0 1; "
     "node Reshape i s -> p; node GatherElements x p -> y : axis=1", "3 1 3 1 0 4"},
    {"whole elements of places along the first axis",
     "input x 2 2 3; ints s = 2 1 2; ints i = 1 0 0 -1; node Cast i -> j : to=6; node Reshape j s -> p; "
     "node Cast x -> z : to=7; node GatherElements z p -> g; node Cast g -> y : to=1", "6 1 0 7"},
    {"rows of places in a batch", "opset 13; input x 2 2 2; ints s = 2 1; ints i = 1 0; node Reshape i s -> p; "
     "node GatherND x p -> y : batch_dims=1", "2 3 4 5"},
    {"elements that are added", "opset 16; input x 2 2; ints s = 1 2; ints i = 1 1; weight u 1 2 = 5 7; "
     "node Reshape i s -> p; node ScatterElements x p u -> y : reduction=add", "0 1 7 10"},
    {"rows that replace others", "input x 3 2; ints s = 2 1; ints i = 2 -3; weight u 2 2 = 5 6 7 8; "
     "node Reshape i s -> p; node ScatterND x p u -> y", "7 8 2 3 5 6"},
    {"elements that replace others",
     "input x 2 3; ints s = 2 2; ints i = 1 2 0 -1; weight u 2 = 7 8; node Reshape i s -> p; node ScatterND x p u -> y",
     "0 1 8 3 4 7"},
    {"squares of whole numbers", "opset 18; input x 2 2; ints a = 1; node Cast x -> i : to=7; "
     "node ReduceSumSquare i a -> s; node Cast s -> y : to=1", "1 13"},
    {"one hot", "input x 3; scalar d = 3; weight v 2 = 1 4; node Cast x -> i : to=7; node OneHot i d v -> y : axis=0",
     "4 1 1 1 4 1 1 1 4"},
    {"a lower triangle", "opset 14; input x 3 3; scalar k = -1; node Trilu x k -> y : upper=0", "0 0 0 3 0 0 6 7 0"},
    {"spread along one axis, in groups", "input x 1 2 2; weight w 2 1 2 = 1 2 3 4; weight b 2 = 0.5 -0.5; "
     "node ConvTranspose x w b -> y : group=2 strides=2, pads=1,0 output_padding=1,",
     "0.5 1.5 2.5 0.5 7.5 8.5 11.5 -0.5"},
    {"spread of a narrow image, in groups", "input x 1 4 2 1; weight w 4 1 2 2; weight b 2 = 0.5 -0.5; "
     "node ConvTranspose x w b -> y : group=2 dilations=2,1 pads=1,0,0,0",
     "8.5 10.5 7.5 8.5 12.5 14.5 67.5 73.5 66.5 71.5 79.5 85.5"},
    {"spread along one axis of more places than lanes",
     "input x 1 2 18; weight w 2 1 3 = 1 -1 2 3 1 -2; node ConvTranspose x w -> y : strides=2, pads=1,1",
     "18 22 18 26 18 30 18 34 18 38 18 42 18 46 18 50 18 54 18 58 18 62 18 66 18 70 18 74 18 78 18 82 18 86 18"},
    {"windows in groups, of strides longer than 64", "input x 1 4 2 2; weight w 2 2 2 1; weight b 2 = 0.5 -0.5; "
     "node Conv x w b -> y : group=2 strides=1,70 pads=1,0,0,0", "8.5 20.5 71.5 147.5"},
    {"nearer to 0", "input x 5; weight w = 2; node Sub x w -> z; node Shrink z -> y : lambd=1.0 bias=0.5",
     "-1.5 0 0 0 1.5"},
    {"only above a number", "input x 4; node ThresholdedRelu x -> y : alpha=1.5", "0 0 2 3"},
    {"ones on a diagonal", "input x 2 3; node EyeLike x -> y : k=1", "0 1 0 0 0 1"},
    {"whole ones on a diagonal", "input x 2 2; node EyeLike x -> e : dtype=7; node Cast e -> y : to=1", "1 0 0 1"},
    {"sequences of a batch turned round",
     "input x 2 3; ints l = 2 3; node ReverseSequence x l -> y : batch_axis=0 time_axis=1", "1 0 2 5 4 3"},
    {"sequences turned round", "input x 3 2; ints l = 2 3; node ReverseSequence x l -> y", "2 5 0 3 4 1"},
    {"sums of places that a grid names",
     "opset 16; input x 1 1 2 2; weight g 1 1 2 2 = 0 0 0.5 2; node GridSample x g -> y : padding_mode=border",
     "1.5 3"},
    {"places partly outside, in each channel of each image",
     "opset 16; input x 2 2 1 3; weight g 2 1 2 2 = -1 0 0.5 0 0 0 1 0; node GridSample x g -> y",
     "0 1.75 1.5 4.75 7 4 10 5.5"},
    {"rows in another order", "input x 4 2; ints i = 3 0 3; node Gather x i -> y", "6 7 0 1 6 7"},
    {"places from the end", "input x 4 2; ints i = -1 -4; node Gather x i -> y", "6 7 0 1"},
    {"columns", "input x 2 3; ints i = 2 0; node Gather x i -> y : axis=-1", "2 0 5 3"},
    {"there and back", "input x 3; node Cast x -> i : to=7; node Cast i -> y : to=1", "0 1 2"},
    {"numbers cut off at 0, and at the ends of 64 bits", "input x 5; weight w 5 = 0.5 -1.7 3e9 1e19 -1.5; "
     "node Mul x w -> m; node Cast m -> i : to=7; node Cast i -> y : to=1", "0 -1 6000000000 9223372036854775807 -6"},
    {"whole numbers of 32 bits",
     "input x 4; weight w = -1.75; node Mul x w -> m; node Cast m -> i : to=6; node Cast i -> y : to=1", "0 -1 -3 -5"},
    {"an axis of whole numbers",
     "input x 2; ints a = 0; node Cast x -> c : to=7; node Unsqueeze c a -> d; node Cast d -> y : to=1", "0 1"},
};
/* clang-format on */

/* Of several outputs, of another domain, or of no input: such nodes run, whatever they are made
 * of. */
/* clang-format off */
static const foreign_row kept_rows[] = {
    {"whole numbers in pieces",
     "input x 2 3; ints s = 1 2; node Cast x -> i : to=7; node Split i s -> p q : axis=1; node Cast q -> y : to=1",
     "1 2 4 5"},
    {"the largest two", "input x 2 3; ints k = 2; weight w 2 3 = 1 -1 1 1 1 -1; node Mul x w -> z; "
     "node TopK z k -> v p; node Cast p -> q : to=1; node Concat v q -> y : axis=1", "2 0 2 0 4 3 1 0"},
    {"the largest of many, of equal ones the first", "input x 8; ints k = 3; ints m = 3; node Cast x -> i : to=7; "
     "node Mod i m -> z; node TopK z k -> v p; node Concat v p -> c : axis=0; node Cast c -> y : to=1", "2 2 1 2 5 1"},
    {"the smallest of many, between axes", "input x 1 5 2; ints k = 3; ints m = 4; node Cast x -> i : to=6; "
     "node Cast m -> n : to=6; node Mod i n -> z; node TopK z k -> v p : axis=-2 largest=0; node Cast v -> w : to=1; "
     "node Cast p -> q : to=1; node Concat w q -> y : axis=2", "0 1 0 0 0 1 2 2 0 1 4 4"},
    {"scales that are found", "input x 3; weight w = -1; weight o = 5; node Mul x w -> m; "
     "node DynamicQuantizeLinear x -> q s z; node DequantizeLinear q s z -> d; node DynamicQuantizeLinear m -> r g e; "
     "node Cast r -> c : to=1; node Cast e -> f : to=1; node Concat d c -> y : axis=0", "0 0.9960785 2 255 128 0"},
    {"the second of several results alone", "input x 3; ints k = 2; node DynamicQuantizeLinear x -> _ s; "
     "node TopK x k -> _ p; node Cast p -> q : to=1; node Mul q s -> y", "0.0156862754 0.007843138"},
    {"a product of bytes", "input x 2 2; ints a = 1 2; ints z = 1; node Cast x -> q : to=2; node Cast z -> p : to=2; "
     "node MatMulInteger q q p -> m; node Cast m -> y : to=1", "0 -1 4 7"},
    {"a window of bytes", "input x 1 1 3; weight w 1 1 2 = -1 2; weight z = 1; node Cast x -> q : to=2; "
     "node Cast w -> v : to=3; node Cast z -> p : to=2; node ConvInteger q v p -> m : pads=1,0; "
     "node Cast m -> y : to=1", "-2 1 2"},
    {"bytes that are added",
     "input x 4; weight o 1 = 3; weight s = 0.5; node Cast x -> q : to=2; node Squeeze o -> n; "
     "node Cast n -> z : to=2; node QLinearAdd q s z q s z s z -> a : domain=com.microsoft; node Cast a -> y : to=1",
     "0 0 1 3"},
    {"a mean of bytes",
     "input x 1 2 2 2; weight s = 0.5; weight t = 0.25; weight n = 1; node Cast n -> z : to=2; "
     "node Cast x -> q : to=2; node QLinearGlobalAveragePool q s z t z -> a : domain=com.microsoft; "
     "node Cast a -> y : to=1", "2 10"},
    {"bytes of other scales joined",
     "input x 2; weight s = 0.5; weight t = 1; node Cast x -> q : to=2; weight n = 1; node Cast n -> z : to=2; "
     "node QLinearConcat s z q s z q t z -> a : domain=com.microsoft axis=0; node Cast a -> y : to=1", "0 1 0 1"},
    {"a product of bytes with a bias", "input x 2 2; weight s = 0.5; weight n = 1; weight w 2 2 = 1 2 3 4; "
     "weight b 2 = 4 -4; node Cast n -> z : to=2; node Cast x -> q : to=2; node Cast w -> v : to=2; "
     "node Cast b -> c : to=6; node QGemm q s z v s z c s z -> a : domain=com.microsoft transB=1; "
     "node Cast a -> y : to=1", "3 0 4 3"},
    {"a softmax of bytes", "input x 2 2; weight s = 0.6931472; weight t = 0.00390625; weight n = 0; "
     "weight w 2 2 = 1 1 1 3; node Mul x w -> m; node Cast n -> z : to=2; node Cast m -> q : to=2; "
     "node QLinearSoftmax q s z t z -> a : domain=com.microsoft axis=-1 opset=13; node Cast a -> y : to=1",
     "85 171 2 254"},
    {"a softmax of bytes over two axes", "input x 1 2 2; weight s = 0.6931472; weight t = 0.015625; weight n = 0; "
     "weight o = 1; node Cast n -> z : to=2; node Cast o -> u : to=2; node Cast x -> q : to=2; "
     "node QLinearSoftmax q s z t u -> a : domain=com.microsoft axis=1 opset=12; node Cast a -> y : to=1",
     "5 10 18 35"},
    {"a matrix of 4 bits in blocks", "input x 2 2; weight b 2 1 8 = 33 0 0 0 0 0 0 0 101 0 0 0 0 0 0 0; "
     "weight s 2 = 0.5 2; weight p 2 = 1 5; weight c 2 = 10 20; node Cast b -> v : to=2; node Cast p -> z : to=2; "
     "node MatMulNBits x v s z _ c -> y : domain=com.microsoft K=2 N=2 bits=4 block_size=16", "10.5 22 11.5 26"},
    {"a matrix of 8 bits around the middle", "input x 1 2; weight b 1 1 16 = 129 125; weight s 1 = 0.5; "
     "node Cast b -> v : to=2; node MatMulNBits x v s -> y : domain=com.microsoft K=2 N=1 bits=8 block_size=16",
     "-1.5"},
    {"a sequence in bytes", "opset 13; input x 1 1 4; weight f = 1; weight o = 0; weight w 1 1 2 = 1 2; "
     "node Cast o -> z : to=2; node Cast x -> q : to=2; node Cast w -> v : to=2; "
     "node QLinearConv q f z v f z f z -> a : pads=1,0 strides=2,; node Cast a -> y : to=1", "0 5"},
    {"features of places", "input x 2 3; ints l = 2 0; node ArrayFeatureExtractor x l -> y : domain=ai.onnx.ml",
     "2 0 5 3"},
    {"more steps than are taken apart", "input x 300 1 1; weight w 1 4 1 = 0.01 0.02 -0.01 0.03; "
     "weight r 1 4 1 = 0.5 -0.5 0.25 1; node LSTM x w r -> a b c : hidden_size=1; node Concat b c -> y : axis=0",
     "0.7693827 1.02585661"},
    {"steps of weights of 8 bits",
     "input x 3 1 1; weight w 1 1 4 = 10 20 -10 30; weight r 1 1 4 = 50 -50 25 100; weight n = 5; weight s 1 = 0.02; "
     "weight o 1 = 5; node Cast w -> u : to=3; node Cast r -> v : to=3; node Cast o -> z : to=3; "
     "node DynamicQuantizeLSTM x u v _ _ _ _ _ s z s z -> y : domain=com.microsoft hidden_size=1 direction=reverse",
     "0.229241014 0.280733675 0.255600542"},
    {"cast of whole numbers", "ints c = -3 7; node Cast c -> y : to=1", "-3 7"},
    {"cast of truth values", "bools c = 1; node Cast c -> y : to=1", "1"},
};
/* clang-format on */

/* Runtimes have kernels for these: they come apart only where a model is read to be run. */
/* clang-format off */
static const foreign_row apart_rows[] = {
    {"channels in groups",
     "opset 21; input x 1 4 1 2; weight s 4; weight b 4; node GroupNormalization x s b -> y : num_groups=2 epsilon=0.5",
     "-0.0669467449 0.311017752 1.3779645 2.13389349 -0.200840235 0.933053255 2.755929 4.267787"},
    {"channels in groups, a scale for each",
     "opset 18; input x 1 4 1 2; weight s 2; weight b 2; node GroupNormalization x s b -> y : num_groups=2 epsilon=0.5",
     "-0.0669467449 0.311017752 0.688982248 1.06694674 -0.13389349 0.6220355 1.3779645 2.13389349"},
    {"a mean and variance of axes", "input x 2 2 2; node MeanVarianceNormalization x -> y : axes=-1,0",
     "-1.21267819 -0.7276069 -1.21267819 -0.7276069 0.7276069 1.21267819 0.7276069 1.21267819"},
    {"a smooth bend", "input x 4; weight w = 1; node Sub x w -> z; node Celu z -> y : alpha=0.5", "-0.432332367 0 1 2"},
    {"a window over three axes", "input x 1 1 3 2 2; weight w 1 1 2 1 2; weight b 1; "
     "node Conv x w b -> y : kernel_shape=2,1,2 strides=2,1,1 pads=1,0,0,0,0,1", "2.5 2 9.5 5 37.5 16.5 47.5 20.5"},
    {"the largest of a volume", "input x 1 1 3 1 2; node MaxPool x -> y : kernel_shape=2,1,2 pads=1,0,0,0,0,1",
     "1 1 3 3 5 5"},
    {"the mean of a volume", "input x 1 1 3 1 2; node AveragePool x -> y : kernel_shape=2,1,2 pads=1,0,0,0,0,1",
     "0.5 1 1.5 2 3.5 4"},
    {"the mean of a volume and its padding",
     "input x 1 1 3 1 2; node AveragePool x -> y : kernel_shape=2,1,2 pads=1,0,0,0,0,1 count_include_pad=1",
     "0.25 0.25 1.5 1 3.5 2"},
    {"attention of heads that share one, capped", "opset 23; input x 1 2 4; weight k 1 2 2 = 0.5 1 1.5 2; "
     "weight v 1 2 1; node Attention x k v -> y : q_num_heads=2 kv_num_heads=1 is_causal=1 scale=0.25 softcap=2.0",
     "0.5 0.5 0.813602388 0.786088884"},
    {"blocks that overlap, and a column behind the last",
     "opset 18; input x 1 4 4; ints i = 3 5; ints b = 2 2; node Col2Im x i b -> y : strides=1,2",
     "0 4 1 5 0 10 18 12 20 0 10 14 11 15 0"},
    {"half of a spectrum, with a zero behind", "opset 17; input x 1 3 1; scalar n = 4; node DFT x n -> y : onesided=1",
     "3 0 -2 -1 1 0"},
    {"numbers of half of a spectrum",
     "opset 20; input x 1 3 2; scalar n = 4; scalar a = 1; node DFT x n a -> y : onesided=1 inverse=1", "2 -2.5 0 0.5"},
    {"spectra of frames", "opset 17; input x 1 8 1; scalar s = 2; weight w 4 = 0.5 1 1 0.5; node STFT x s w -> y",
     "4.5 0 -2 0.5 -0.5 0 10.5 0 -3 -0.5 -0.5 0 16.5 0 -4 -1.5 -0.5 0"},
    {"a norm of nothing",
     "input x 1 2; weight w = 0.0; node Mul x w -> z; node LpNormalization z -> n; node Add n x -> y", "0 1"},
};

/* What is known beforehand only where a model is run: tensors without elements, and what runtimes
 * differ on. */
static const foreign_row running_rows[] = {
    {"up to a multiple of four",
     "input x 3; ints z = 0; ints m = -1; ints f = 4; node Shape x -> s; node Mul s m -> n; "
     "node Mod n f -> r; node Concat z r -> p : axis=0; node Pad x p -> y", "0 1 2 0"},
    {"sizes by a split, as onnxruntime writes them",
     "input x 2 3; ints p = 1 1; node Shape x -> s; node Split s p -> m n : axis=0; "
     "node Concat n m -> d : axis=0; node Reshape x d -> r; node Transpose r -> y : perm=1,0",
     "0 2 4 1 3 5"},
    {"a norm by numbers that are computed",
     "input x 2 2; input s 2; weight m 2 = 1 2; weight v 2 = 3 8; "
     "node BatchNormalization x s m m v -> y : epsilon=1.0",
     "1 1.66666663 1 2.3333333"},
    {"six tensors of bytes joined",
     "input x 2; weight s = 0.5; weight t = 1; weight n = 1; node Cast n -> z : to=2; "
     "node Cast x -> q : to=2; "
     "node QLinearConcat s z q t z q t z q t z q t z q t z q s z -> a : axis=0 "
     "domain=com.microsoft; node Cast a -> y : to=1", "0 1 0 1 0 1 0 1 0 1 0 1"},
    {"means of windows of bytes",
     "input x 1 1 1 4; weight s = 1; weight t = 0.5; weight n = 0; node Cast n -> z : to=2; "
     "node Cast s -> k : to=2; node Cast x -> q : to=2; node QLinearAveragePool q s z t k -> a : kernel_shape=1,2 "
     "domain=com.microsoft; node Cast a -> y : to=1", "2 4 6"},
#ifdef GRAFT_WITH_LIBONNX /* It says that there are no elements. */
    {"what lies behind the last of a row, joined to it",
     "input x 2 3; ints s = 3; ints e = 9; ints a = 1; weight f = 2; node Slice x s e a -> r; "
     "node Mul r f -> m; node Concat m x m -> y : axis=1", "0 1 2 3 4 5"},
    {"whole numbers, and none of them",
     "input x 2 3; ints s = 0 3; node ConstantOfShape s -> n; node Cast n -> k : to=7; "
     "node Cast x -> i : to=7; node Concat i k -> j : axis=0; node Cast j -> y : to=1",
     "0 1 2 3 4 5"},
#endif
};
/* clang-format on */

/* Whole numbers to the bit, others up to rounding. */
static void check_outputs(graft_env *env, const foreign_row *row, const graft_model *model)
{
    const graft_graph *graph = &model->graph;
    graft_order order = build_order(env->unit, graph);
    const float **values = onnx_text_values(env, model);
    const graft_index y = graph->outputs[0];
    uint32_t count = 0;
    CHECK_OK(graft_float_model(env, env->unit, model, graph, &order, values));
    char *next = NULL;
    for (const char *text = row->outputs; *text != '\0'; text = next) {
        const float want = strtof(text, &next);
        assert_true(count < graft_shape_elements(&graph->values[y].shape));
        const float got = values[y][count++];
        assert_true(rintf(want) == want ? memcmp(&got, &want, sizeof got) == 0
                                        : fabsf(got - want) <= 1e-6F * fabsf(want));
    }
    assert_int_equal(graft_shape_elements(&graph->values[y].shape), count);
}

static void check_runs(graft_env *env, const foreign_row *row)
{
    const graft_model *model = onnx_text_model(env, row->model);
    /* Constants were cast while the model was read. */
    assert_true(model->opaque_count > 0 || model->onnx->proto->graph->n_input == 0);
    check_outputs(env, row, model);
}

CHECK_ROWS(test_inputs, rows) { check_runs(env, place); }
CHECK_ROWS(test_kept, kept_rows) { check_runs(env, place); }

CHECK_ROWS(test_apart, apart_rows)
{
    const foreign_row *row = place;
    const graft_model_options running = {.as_binary32 = true};
    graft_model *model = NULL;
    assert_int_equal(onnx_text_model(env, row->model)->opaque_count, 1);
    CHECK_OK(onnx_text_read(env, onnx_text_message(env->life, row->model), &running, &model));
    assert_true(model->is_apart || model->opaque_count == 0);
    check_outputs(env, row, model);
}

CHECK_ROWS(test_running, running_rows)
{
    const foreign_row *row = place;
    const graft_model_options running = {.as_binary32 = true};
    graft_model *model = NULL;
    CHECK_OK(onnx_text_read(env, onnx_text_message(env->life, row->model), &running, &model));
    check_outputs(env, row, model);
}

/* The mean of a whole volume is one of an image. */
CHECK_CASE(test_volume)
{
    static const foreign_row row = {.model = "input x 1 2 2 1 2; node GlobalAveragePool x -> y",
                                    .outputs = "1.5 5.5"};
    check_outputs(env, &row, onnx_text_model(env, row.model));
}

/* clang-format off */
/* Large enough for several threads to have a part. */
static const char *const large_models[] = {
    "input x 60 40; node DynamicQuantizeLinear x -> q s z; weight w 40 70; node DynamicQuantizeLinear w -> b t u; "
     "node MatMulInteger q b z u -> m; node Cast m -> y : to=1",
    "input x 2 40; node DynamicQuantizeLinear x -> q s z; weight w 40 170; node DynamicQuantizeLinear w -> b t u; "
     "node MatMulInteger q b z u -> m; node Cast m -> y : to=1",
    "input x 2 3 20 17; node DynamicQuantizeLinear x -> q s z; weight w 5 3 3 3; "
     "node DynamicQuantizeLinear w -> b t u; node ConvInteger q b z u -> m : pads=1,1,1,1; node Cast m -> y : to=1",
    "input x 2 3 150; weight s 3; node QuantizeLinear x s -> q : axis=1; node DequantizeLinear q s -> y : axis=1",
    "input x 1 3 9 21; weight s 4 = 1 1 2 2; node Resize x _ s -> y : mode=linear",
    "input x 9 50; node Cast x -> i : to=7; node ReduceMax i -> r : axes=1,; node Add i r -> j; "
     "node Cast j -> y : to=1",
    "input x 4 32; weight b 20 1 16; node Cast b -> q : to=2; weight s 20; "
     "node MatMulNBits x q s -> y : domain=com.microsoft K=32 N=20 bits=4 block_size=32",
};
/* clang-format on */

/* Returns how many opaque nodes there are: what they make is the same on three threads. */
static uint32_t check_shared(graft_env *env, const graft_model *model)
{
    const graft_graph *graph = &model->graph;
    const float **values = onnx_text_values(env, model);
    graft_order order = build_order(env->unit, graph);
    uint32_t count = 0;
    CHECK_OK(graft_float_model(env, env->unit, model, graph, &order, values));
    for (graft_index i = 0; i < order.count; i++) {
        graft_opaque opaque;
        const void *in[GRAFT_OPAQUE_INPUTS_MOST] = {NULL};
        void *out[GRAFT_OPAQUE_OUTPUTS_MOST] = {NULL};
        const graft_index n = order.order[i];
        if (graph->nodes[n].op != GRAFT_OP_OPAQUE) {
            continue;
        }
        assert_true(graft_opaque_find(model, graph, n, &opaque));
        for (uint32_t k = 0; k < opaque.read_count; k++) {
            const bool given = opaque.in[k].rank != GRAFT_RANK_UNKNOWN;
            in[k] = given ? values[graft_node_input(graph, n, k)] : NULL;
        }
        for (uint32_t k = 0; k < opaque.out_count; k++) {
            out[k] = graft_arena_alloc(env->unit, (size_t)graft_shape_bytes(&opaque.outs[k]));
        }
        opaque.threads = 3;
        CHECK_OK(graft_opaque_run(env, &opaque, in, out));
        for (uint32_t k = 0; k < opaque.out_count; k++) {
            assert_memory_equal(out[k], values[graft_node_output(graph, n, k)],
                                (size_t)graft_shape_bytes(&opaque.outs[k]));
        }
        count++;
    }
    return count;
}

CHECK_CASE(test_shared)
{
    for (size_t i = 0; i < sizeof large_models / sizeof large_models[0]; i++) {
        assert_true(check_shared(env, onnx_text_model(env, large_models[i])) > 0);
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)check_shared(env, onnx_text_model(env, rows[i].model));
    }
}

/* Elements of two bytes. */
CHECK_CASE(test_short)
{
    static const int16_t from[] = {0, 1, 2, 3, 4, 5};
    static const int16_t want[] = {0, 3, 1, 4, 2, 5};
    int16_t got[6] = {0};
    Onnx__ModelProto *proto = onnx_text_message(env->life, "input x 2 3; node Transpose x -> y");
    proto->graph->input[0]->type->tensor_type->elem_type = GRAFT_DTYPE_I16;
    graft_model *model = NULL;
    graft_opaque opaque;
    CHECK_OK(onnx_text_read(env, proto, NULL, &model));
    assert_true(graft_opaque_find(model, &model->graph, 0, &opaque));
    CHECK_OK(graft_opaque_run(env, &opaque, (const void *[GRAFT_OPAQUE_INPUTS_MOST]){from},
                              (void *[GRAFT_OPAQUE_OUTPUTS_MOST]){got}));
    assert_memory_equal(got, want, sizeof want);
}

/* The same with a weight for the input, which leaves nothing to run but weights. */
CHECK_ROWS(test_constants, rows)
{
    const foreign_row *row = place;
    Onnx__ModelProto *proto = onnx_text_message(env->life, row->model);
    Onnx__GraphProto *graph = proto->graph;
    graft_model *model = NULL;
    CHECK_OK(onnx_text_read(env, proto, NULL, &model));
    const graft_shape *shape = &model->inputs[0].shape;
    const size_t count = (size_t)graft_shape_elements(shape);
    float *data = GRAFT_NEW(env->life, float, count);
    for (size_t i = 0; i < count; i++) {
        data[i] = (float)i;
    }
    bool fits = true;
    graph->initializer[graph->n_initializer++] =
        graft_onnx_make_weight(env->life, "x", shape, data, &fits);
    graph->n_input = 0;
    CHECK_OK(onnx_text_read(env, proto, NULL, &model));
    assert_int_equal(graft_graph_active_count(&model->graph), 0);
    check_outputs(env, row, model);
}

/* clang-format off */
/* What the file declares is another size, a mirror that is too long, places outside. */
static const struct {
    const char *model;
    const char *message;
} refused_rows[] = {
    {"input x 2; ints a = 1; node Cast x -> i : to=7; node Mod a i -> m; node Cast m -> y : to=1", "divided by 0"},
    {"input x 1 4; ints p = 0 2 0 3; node Tile x p -> y; output y 1 8", "do not give the size of its result"},
    {"input x 1 4; ints p = 0 4 0 0; node Pad x p -> y : mode=reflect; output y 1 8",
     "do not give the size of its result"},
    {"input x 4; ints p = -2 2; node Pad x p -> y : mode=reflect; output y 4", "do not give the size of its result"},
    {"input x 4; ints p = -4 2; node Pad x p -> y : mode=edge; output y 2", "do not give the size of its result"},
    {"input x 1 1 1 4; weight s 4 = 1 1 1 0.9; node Resize x _ s -> y : mode=linear "
     "coordinate_transformation_mode=align_corners; output y 1 1 1 3", "implementations differ"},
    {"input x 2 2; ints s = 1 2; ints i = 2 0; node Reshape i s -> p; node GatherElements x p -> y; output y 1 2",
     "lies outside"},
    {"input x 3 2; ints s = 1 1; ints i = 3; weight u 1 2; node Reshape i s -> p; node ScatterND x p u -> y; "
     "output y 3 2", "lies outside"},
    {"input x 4 2; ints i = 0 4; node Gather x i -> y", "place 4 lies outside of a table of 4 rows"},
    {"input x 4 2; ints i = -5 0; node Gather x i -> y", "place -5 lies outside"},
    {"input x 1 1 2; weight c 3 1; weight s 3 1; ints p = 3; node RotaryEmbedding x p c s -> y : domain=com.microsoft",
     "place 3 lies outside of a table of 3 rotations"},
    {"input x 1 3 2; weight u 1 2 2; ints p = 2; node TensorScatter x u p -> y",
     "2 rows from place 2 on do not fit into a cache of 3"},
};
/* More than there are, and what is said of no row of the table. */
static const char *const opaque_models[] = {
    "input x 3; ints k = 4; node TopK x k -> y p; output y 3",
    "input x 2 2; node Einsum x -> y : equation=ij; output y 2 2",
    "input x 1 2; weight b 1 1 15; weight s 1; node Cast b -> v : to=2; "
     "node MatMulNBits x v s -> y : domain=com.microsoft K=2 N=1 bits=8 block_size=16; output y 1 1",
    "input x 1 2; weight b 1 1 24; weight s 1; node Cast b -> v : to=2; "
     "node MatMulNBits x v s -> y : domain=com.microsoft K=2 N=1 bits=8 block_size=24; output y 1 1",
    "input x 4; node Tan x -> y : domain=com.microsoft; output y 4",
    "input x 4; node Equal x x -> c : axis=0; node Cast c -> y : to=1; output y 4",
    "input x 1 4; ints p = 0 1 0 1; node Pad x p -> y : mode=other; output y 1 6",
    "input x 2; node Magic x -> y; output y 2",
    "input x 2; node Cast x -> d : to=11; node Cast d -> y : to=1",
    "input x 2; node Identity x -> y : domain=com.example; output y 2",
};
/* What does not come apart, also where a model is read to be run. */
static const struct {
    const char *model;
    const char *reason;
} whole_models[] = {
    {"opset 23; input x 1 2 4; node Attention x x x -> y", "do not fit one another"},
    {"opset 23; input x 1 2 4; node Attention x x x -> y : q_num_heads=3 kv_num_heads=1", "do not fit one another"},
    {"opset 23; input x 1 2 4; node Attention x x x -> y : q_num_heads=1 kv_num_heads=1 window=1",
     "an attribute that is not known"},
    {"opset 23; input x 1 2 4; input m 2 3; node Attention x x x m -> y : q_num_heads=1 kv_num_heads=1",
     "does not fit the scores"},
    {"opset 23; input x 1 2 4; input m 3 1 2 2; node Attention x x x m -> y : q_num_heads=1 kv_num_heads=1",
     "does not fit the scores"},
    {"opset 23; input x 1 2 4; input p 1 1 2 3; node Attention x x x _ p p -> y : q_num_heads=1 kv_num_heads=1",
     "differ in another axis"},
    {"opset 24; input x 1 2 4; ints n = 2 2; node Attention x x x _ _ _ n -> y : q_num_heads=1 kv_num_heads=1",
     "one for each item"},
    {"input x 1 2 4; node MultiHeadAttention x x x -> y : domain=com.microsoft", "do not fit one another"},
    {"input x 1 2 4; weight w 4 12; node Attention x w -> y : num_heads=1 do_rotary=1 domain=com.microsoft",
     "a form that is not known"},
    {"input x 1 2 4; node Cast x -> n : to=7; node GroupQueryAttention x x x _ _ n n -> y : num_heads=1 "
     "kv_num_heads=1 domain=com.microsoft", "only known when the model runs"},
    {"opset 17; input x 1 3 1; node Cast x -> n : to=7; node DFT x n -> y", "only known when the model runs"},
    {"opset 17; input x 1 3 1; scalar n = 0; node DFT x n -> y", "no transform's"},
    {"opset 17; input x 1 3 1; scalar n = 100000000000; node DFT x n -> y", "no transform's"},
    {"opset 17; input x 1 3 1; scalar n = 33000000; node DFT x n -> y", "too large"},
    {"opset 17; input x 1 3 1; node DFT x -> y : axis=2", "cannot be transformed"},
    {"opset 17; input x 1 3 1; node DFT x -> y : inverse=1 onesided=1", "no transform's"},
    {"opset 17; input x 1 8 1; scalar s = 0; weight w 4; node STFT x s w -> y", "does not fit"},
    {"opset 17; input x 1 8 1; scalar s = 2; weight w 9; node STFT x s w -> y", "does not fit"},
    {"opset 17; input x 1 8 1; scalar s = 2; scalar l = 5; weight w 4; node STFT x s w l -> y", "does not fit"},
    {"opset 17; input x 2; scalar s = 0; node HannWindow s -> w; node Add x w -> y", "no table"},
    {"opset 17; input x 2; scalar s = 2; node HannWindow s -> y : output_datatype=11", "a type that is not run"},
    {"opset 17; input x 2; scalar b = 4; scalar l = 8; scalar r = 100; weight e = 0.0; weight f = 4000.0; "
     "node MelWeightMatrix b l r e f -> y", "outside of the spectrum"},
    {"input x 1 1 4 4; node LpPool x -> y : kernel_shape=2,2 ceil_mode=1", "ceil_mode"},
    {"input x 1 1 4 4; node GlobalLpPool x -> y : p=0", "a power"},
    {"input x 1 1 4 4; node FusedConv x x -> y : activation=Other domain=com.microsoft", "an activation"},
    {"input x 1 4; node EmbedLayerNormalization x _ x x _ x x -> y : domain=com.microsoft", ""},
};
/* clang-format on */

static void check_refused(graft_env *env, const char *text, graft_status expected,
                          const char *message)
{
    print_message("# %s\n", text);
    const graft_model *model = onnx_text_model(env, text);
    graft_order order = build_order(env->unit, &model->graph);
    check_failed(env,
                 graft_float_model(env, env->unit, model, &model->graph, &order,
                                   onnx_text_values(env, model)),
                 expected, message);
}

CHECK_CASE(test_refusals)
{
    for (size_t i = 0; i < sizeof refused_rows / sizeof refused_rows[0]; i++) {
        check_refused(env, refused_rows[i].model, GRAFT_BAD_INPUT, refused_rows[i].message);
    }
    for (size_t i = 0; i < sizeof opaque_models / sizeof opaque_models[0]; i++) {
        check_refused(env, opaque_models[i], GRAFT_UNSUPPORTED, "is opaque");
    }
}

CHECK_CASE(test_whole)
{
    const graft_model_options running = {.as_binary32 = true};
    for (size_t i = 0; i < sizeof whole_models / sizeof whole_models[0]; i++) {
        graft_model *model = NULL;
        print_message("# %s\n", whole_models[i].model);
        CHECK_OK(onnx_text_read(env, onnx_text_message(env->life, whole_models[i].model), &running,
                                &model));
        uint32_t n = 0;
        while (!model->onnx->groups[n].is_opaque ||
               graft_onnx_is(model->onnx->proto->graph->node[n], "Cast")) {
            n++;
        }
        assert_non_null(strstr(model->onnx->groups[n].refusal, whole_models[i].reason));
        assert_false(model->is_apart);
    }
}

/* A constant whose declared shape is not the one it has is no weight: reading must not fail. */
CHECK_CASE(test_declared_otherwise)
{
    graft_weights weights;
    const graft_model *model =
        onnx_text_model(env, "input x 4; weight a = 0.5; weight b = 2; weight d = 0.25;"
                             "node Range a b d -> r; info r 4; node Add x r -> y; output y 4");
    assert_int_equal(graft_graph_active_count(&model->graph), 2);
    CHECK_OK(graft_model_fold_weights(env, env->unit, model, &model->graph, &weights));
}

/* Without a model nothing is known about an opaque node. */
CHECK_CASE(test_without_a_model)
{
    const graft_model *model = onnx_text_model(env, "input x 2; node Tan x -> y");
    graft_order order = build_order(env->unit, &model->graph);
    check_failed(env,
                 graft_float_model(env, env->unit, NULL, &model->graph, &order,
                                   onnx_text_values(env, model)),
                 GRAFT_UNSUPPORTED, "is opaque");
}

/* Nodes of weights alone are part of the weight program, whatever types are between them. */
CHECK_CASE(test_weights)
{
    static const float numbers[] = {0.0F, 0.5F, 2.0F, 127.5F};
    graft_weights weights;
    const graft_model *model =
        onnx_text_model(env, "input x 4; weight w 4 = -1 0.6 2 200; weight s = 0.5;"
                             "node QuantizeLinear w s -> q; node DequantizeLinear q s -> d;"
                             "node Add x d -> y; output y; output d");
    const graft_graph *graph = &model->graph;
    assert_int_equal(model->opaque_count, 2);
    assert_int_equal(graft_graph_active_count(graph), 1);
    CHECK_OK(graft_model_fold_weights(env, env->unit, model, graph, &weights));
    assert_memory_equal(graft_weights_data(&weights, graph->outputs[1]), numbers, sizeof(numbers));
}

/* Others run at each inference: of inputs, or when nobody knows what they compute. */
CHECK_CASE(test_no_weights)
{
    static const char *const texts[] = {
        "input x 2; weight s = 0.5; node QuantizeLinear x s -> q; node DequantizeLinear q s -> y",
        "input x 2; weight w 2; node Magic w -> a; info a 2; node Add x a -> y; output y",
        "input x 2; weight w 2; node Identity w -> a : domain=com.example; info a 2;"
        "node Add x a -> y; output y",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        print_message("# %s\n", texts[i]);
        const graft_model *model = onnx_text_model(env, texts[i]);
        assert_int_equal(graft_graph_active_count(&model->graph), 2);
    }
}

CHECK_CASE(test_weights_that_do_not_fit)
{
    graft_weights weights;
    const graft_model *model =
        onnx_text_model(env, "input x 2 2; weight w 4 2; ints i = 1 4; node Gather w i -> a;"
                             "node Add x a -> y; output y");
    check_failed(env, graft_model_fold_weights(env, env->unit, model, &model->graph, &weights),
                 GRAFT_BAD_INPUT, "weights of test.onnx");
}

/* An executor reads the first of equal constants, also where nothing else does. */
CHECK_CASE(test_weights_that_are_equal)
{
    graft_weights weights;
    const graft_model *model =
        onnx_text_model(env, "input x 8; weight w 4; weight e = 0.5; ints r = 2; node Add w e -> a;"
                             "node Tile a r -> t; node Add x t -> b; node Add b e -> y; output y");
    const graft_graph *graph = &model->graph;
    graft_order order = build_order(env->unit, graph);
    const graft_index *same = graft_equal_find(env->unit, graph, &order);
    assert_non_null(same);
    CHECK_OK(graft_model_fold_weights(env, env->unit, model, graph, &weights));
    for (graft_index v = 0; v < graph->value_end; v++) {
        if (graft_weights_data(&weights, v) != NULL) {
            assert_non_null(graft_weights_data(&weights, same[v]));
        }
    }
}

/* ---------------------------------------------------------------------------------- choices */

static void check_graph(graft_env *env, const char *text, const graft_model_options *options,
                        const char *expected)
{
    graft_model *model = NULL;
    CHECK_OK(onnx_text_read(env, onnx_text_message(env->life, text), options, &model));
    assert_string_equal(onnx_text_print(env->unit, model, &model->graph), expected);
}

CHECK_CASE(test_choices)
{
    check_graph(env,
                "input x 2; bools c = 1; graph t; node Relu x -> r; output r; end;"
                "graph e; node Exp x -> r; output r; end;"
                "node If c -> y : then_branch=@t else_branch=@e; node Sqrt y -> z; output z",
                NULL, "y = relu(x)\nz = sqrt(y)\nout z");
    check_graph(env,
                "input x 2; bools c = 0; graph t; node Relu x -> r; output r; end; graph e; "
                "node Exp x -> r; output r; end; node If c -> y : then_branch=@t else_branch=@e",
                NULL, "y = exp(x)\nout y");
    /* What is inside has names of its own; outputs may be of outside, or the same twice. */
    check_graph(env,
                "input x 2; bools c = 1; node Abs x -> r; graph t; weight w 2; node Add r w -> a;"
                "node Mul a a -> m; output m; output r; output m; end;"
                "node If c -> p q s : then_branch=@t else_branch=@t; node Add p q -> y; output y;"
                "output s",
                NULL,
                "r = abs(x)\np/a = add(r, p/w)\np = mul(p/a, p/a)\nq = identity(r)\n"
                "s = identity(p)\ny = add(p, q)\nout y s");
    /* One in another, decided by a shape. */
    check_graph(env,
                "input x 2 3; scalar i = 1; scalar three = 3; node Shape x -> s;"
                "node Gather s i -> d; node Equal d three -> c; graph u; node Relu x -> r;"
                "output r; end; graph t; node Equal d d -> k;"
                "node If k -> b : then_branch=@u else_branch=@u; node Exp b -> r; output r; end;"
                "node If c -> y : then_branch=@t else_branch=@t; output y",
                NULL, "y/b = relu(x)\ny = exp(y/b)\nout y");
}

/* At other sizes another branch may be chosen. */
CHECK_CASE(test_open_choices)
{
    static const char text[] =
        "input x 2 N; scalar i = 1; scalar many = 4096; node Shape x -> s; node Gather s i -> d;"
        "node Less d many -> c; graph t; node Relu x -> r; output r; end;"
        "graph e; node Exp x -> r; output r; end;"
        "node If c -> y : then_branch=@t else_branch=@e; output y";
    const graft_model_options open = {.keep_open = true};
    graft_model *model = NULL;
    check_graph(env, text, NULL, "y = relu(x)\nout y");
    CHECK_OK(onnx_text_read(env, onnx_text_message(env->life, text), &open, &model));
    assert_non_null(strstr(onnx_text_print(env->unit, model, &model->graph), "y = If("));
}

/* test_onnx_read.c - what each ONNX operator becomes, and what stays opaque. Each row reads a small
 * model (tests/support/onnx_text.h) and compares the printed graph. */
#include "graph/model.h"
#include "tests/support/build.h"
#include "tests/support/onnx_text.h"

typedef struct {
    const char *name;
    const char *model;
    const char *graph;
} read_row;

/* clang-format off */
static const read_row rows[] = {
    /* ------------------------------------------------------------------- conv and pools */
    {"conv without attributes", "input x 1 3 5 6; weight w 2 3 3 3; node Conv x w -> y",
     "y = conv(x, w) 1 1 0 0 0 0 1 1 1"},
    {"conv with everything", "input x 1 4 9 8; weight w 6 2 3 2; weight b 6; "
     "node Conv x w b -> y : strides=2,3 pads=1,2,3,4 dilations=2,1 group=2 kernel_shape=3,2",
     "y = conv_bias(x, w, b) 2 3 1 2 3 4 2 1 2"},
    {"conv padded to the same size, odd pad behind",
     "input x 1 1 7 8; weight w 1 1 2 3; node Conv x w -> y : auto_pad=SAME_UPPER strides=2,1",
     "y = conv(x, w) 2 1 0 1 1 1 1 1 1"},
    {"conv padded to the same size, odd pad before",
     "input x 1 1 7 8; weight w 1 1 2 3; node Conv x w -> y : auto_pad=SAME_LOWER strides=2,1",
     "y = conv(x, w) 2 1 1 1 0 1 1 1 1"},
    {"conv with another kernel_shape than its weights",
     "input x 1 1 7 8; weight w 1 1 2 3; node Conv x w -> y : kernel_shape=3,3", "y = Conv(x, w) opaque"},
    {"conv over one axis", "input x 1 1 7; weight w 1 1 2; node Conv x w -> y",
     "%1 = reshape(x) 1 1 1 7\n%3 = reshape(w) 1 1 1 2\n%4 = conv(%1, %3) 1 1 0 0 0 0 1 1 1\ny = reshape(%4) 1 1 6"},
    {"conv over three axes", "input x 1 1 7 7 7; weight w 1 1 2 2 2; node Conv x w -> y", "y = Conv(x, w) opaque"},
    {"max pool over one axis", "input x 1 2 8; node MaxPool x -> y : pads=1,0 kernel_shape=3, strides=2,",
     "%1 = reshape(x) 1 2 1 8\n%2 = max_pool(%1) 1 3 1 2 0 1 0 0 1 1\ny = reshape(%2) 1 2 4"},
    {"a window with an axis too few", "input x 1 2 8; node MaxPool x -> y : kernel_shape=3 strides=2,2",
     "y = MaxPool(x) opaque"},
    {"conv with an attribute nobody knows", "input x 1 1 7 8; weight w 1 1 2 3; node Conv x w -> y : shiny=1",
     "y = Conv(x, w) opaque"},
    {"conv of channels that do not fit", "input x 1 2 7 8; weight w 1 1 2 3; node Conv x w -> y",
     "y = Conv(x, w) opaque"},
    {"max pool that rounds up, the extra window begins inside",
     "input x 1 1 6 5; node MaxPool x -> y : kernel_shape=3,3 strides=2,2 ceil_mode=1",
     "y = max_pool(x) 3 3 2 2 0 0 1 0 1 1"},
    {"max pool that rounds up, the extra window would begin in the padding",
     "input x 1 1 4 4; node MaxPool x -> y : kernel_shape=1,1 strides=3,3 pads=0,0,0,0 ceil_mode=1",
     "y = max_pool(x) 1 1 3 3 0 0 0 0 1 1"},
    {"max pool whose indices are used", "input x 1 1 4 4; node MaxPool x -> y i : kernel_shape=2,2; output y; output i",
     "y, i = MaxPool(x) opaque\nout y i"},
    {"max pool whose indices are not named", "input x 1 1 4 4; node MaxPool x -> y _ : kernel_shape=2,2",
     "y = max_pool(x) 2 2 1 1 0 0 0 0 1 1"},
    {"average pool that counts padding",
     "input x 1 1 4 4; node AveragePool x -> y : kernel_shape=2,2 pads=1,1,0,0 count_include_pad=1",
     "y = avg_pool(x) 2 2 1 1 1 1 0 0 1"},
    {"average pool that rounds up and counts padding", "input x 1 1 5 5; node AveragePool x -> y : kernel_shape=2,2 "
     "strides=2,2 pads=0,0,0,0 ceil_mode=1 count_include_pad=1", "y = AveragePool(x) opaque"},
    {"average pool along the first of three axes", "input x 1 2 4 3 2; node AveragePool x -> y : kernel_shape=3,1,1 "
     "pads=1,0,0,1,0,0 strides=2,1,1 count_include_pad=1",
     "%1 = reshape(x) 1 2 4 6\n%2 = avg_pool(%1) 3 1 2 1 1 0 1 0 1\ny = reshape(%2) 1 2 2 3 2"},
    {"average pool along more of them", "input x 1 2 4 3 2; node AveragePool x -> y : kernel_shape=3,1,2",
     "y = AveragePool(x) opaque"},
    {"max pool padded along more of them",
     "input x 1 2 4 3 2; node MaxPool x -> y : kernel_shape=3,1,1 pads=1,0,0,1,1,0", "y = MaxPool(x) opaque"},
    {"global average pool", "input x 1 2 4 4; node GlobalAveragePool x -> y", "y = global_avg_pool(x)"},
    /* --------------------------------------------------------------------- gemm, matmul */
    {"gemm as frameworks write it", "input x 1 3; weight w 2 3; weight b 2; node Gemm x w b -> y : transB=1",
     "%2 = transpose(w) 1\ny = matmul_bias(x, %2, b)"},
    {"gemm with factors", "input x 1 3; weight w 3 2; weight b 1 2; node Gemm x w b -> y : alpha=0.5 beta=2.0",
     "%1 = fill() 0.5\n%3 = mul(w, %1)\n%4 = fill() 2\n%6 = mul(b, %4)\n%7 = reshape(%6) 2\ny = matmul_bias(x, %3, %7)"
     },
    {"gemm with a bias for each row", "input x 2 3; weight w 3 2; weight b 2 1; node Gemm x w b -> y",
     "%2 = matmul(x, w)\ny = add(%2, b)"},
    {"gemm without bias, first factor transposed", "opset 11; input x 3 2; weight w 3 4; node Gemm x w -> y : transA=1",
     "%1 = transpose(x) 1\ny = matmul(%1, w)"},
    {"gemm of two tensors with a factor", "input x 2 3; input z 3 2; weight b 2; node Gemm x z b -> y : alpha=0.5",
     "y = Gemm(x, z, b) opaque"},
    {"matmul with batches", "input x 5 2 3; weight w 3 4; node MatMul x w -> y", "y = matmul(x, w)"},
    {"matmul of a vector", "input x 3; weight w 3 4; node MatMul x w -> y",
     "%1 = reshape(x) 1 3\n%3 = matmul(%1, w)\ny = reshape(%3) 4"},
    {"matmul by a vector", "input x 5 2 3; weight w 3; node MatMul x w -> y",
     "%2 = reshape(w) 3 1\n%3 = matmul(x, %2)\ny = reshape(%3) 5 2"},
    {"matmul of two vectors", "input x 3; weight w 3; node MatMul x w -> y",
     "%1 = reshape(x) 1 3\n%3 = reshape(w) 3 1\n%4 = matmul(%1, %3)\ny = reshape(%4)"},
    /* ------------------------------------------------------------------------ elementwise */
    {"sum of four", "input a 2; input b 2; input c 1; input d 2; node Sum a b c d -> y",
     "%4 = add(a, b)\n%5 = add(%4, c)\ny = add(%5, d)"},
    {"max of one", "input a 2; node Max a -> y", "y = identity(a)"},
    {"clip by inputs", "input x 2; weight l = -1; weight h = 6; node Clip x l h -> y", "y = clip(x) -1 6"},
    {"clip by one input", "input x 2; weight h = 6; node Clip x _ h -> y", "y = clip(x) -3.40282e+38 6"},
    {"clip by attributes", "opset 6; input x 2; node Clip x -> y : min=0.0 max=6.0", "y = clip(x) 0 6"},
    {"clip by a tensor", "input x 2; input l; node Clip x l -> y", "y = Clip(x, l) opaque"},
    {"clip with bounds the wrong way round", "input x 2; weight l = 2; weight h = 1; node Clip x l h -> y",
     "y = Clip(x, l, h) opaque"},
    {"leaky relu", "input x 2; node LeakyRelu x -> y : alpha=0.25", "y = leaky_relu(x) 0.25"},
    {"leaky relu that is not monotone", "input x 2; node LeakyRelu x -> y : alpha=-0.25", "y = LeakyRelu(x) opaque"},
    {"addition before opset 7, smaller operand at an axis",
     "opset 6; input x 2 3 4 5; weight b 3; node Add x b -> y : broadcast=1 axis=1",
     "%2 = reshape(b) 3 1 1\ny = add(x, %2)"},
    {"addition before opset 7, a number at an axis",
     "opset 6; input x 2 3; weight b = 2; node Add x b -> y : broadcast=1 axis=1", "%1 = fill() 2\ny = add(x, %1)"},
    {"addition before opset 7, unequal shapes", "opset 6; input x 2 3; weight b 3; node Add x b -> y",
     "y = Add(x, b) opaque"},
    {"dropout at inference", "input x 2; node Dropout x -> y m; node Relu y -> z; output z",
     "y = identity(x)\nz = relu(y)\nout z"},
    {"dropout whose mask is read", "input x 2; node Dropout x -> y m; output y; output m",
     "y, m = Dropout(x) opaque\nout y m"},
    {"dropout without its mask", "input x 2; bools t = 0; node Dropout x _ t -> y; node Relu y -> z; output z",
     "y = identity(x)\nz = relu(y)\nout z"},
    {"dropout in training", "input x 2; bools t = 1; node Dropout x _ t -> y", "y = Dropout(x, _, t) opaque"},
    /* -------------------------------------------------------------------- normalisation */
    {"batch normalisation", "input x 1 2 3; weight s 2 = 2 4; weight b 2 = 1 1; weight m 2 = 3 5; weight v 2 = 4 16; "
     "node BatchNormalization x s b m v -> y : epsilon=0.0", "y = scale_shift(x, %1, %2)"},
    {"batch normalisation in training", "opset 14; input x 1 2 3; weight s 2; weight b 2; weight m 2; weight v 2; "
     "node BatchNormalization x s b m v -> y mm vv : training_mode=1",
     "y, mm, vv = BatchNormalization(x, s, b, m, v) opaque"},
    {"batch normalisation by a tensor",
     "input x 1 2 3; input s 2; weight b 2; weight m 2; weight v 2; node BatchNormalization x s b m v -> y",
     "y = BatchNormalization(x, s, b, m, v) opaque"},
    {"batch normalisation by an identity of weights", "input x 1 2; weight s 2; weight b 2; weight m 2; weight v 2; "
     "node Identity b -> bb; node BatchNormalization x s bb m v -> y", "bb = identity(b)\ny = scale_shift(x, %3, %4)"},
    {"softmax", "input x 2 3 4; node Softmax x -> y", "y = softmax(x) 2"},
    {"old softmax on the last axis", "opset 11; input x 2 3; node Softmax x -> y", "y = softmax(x) 1"},
    {"old softmax, one wide axis", "opset 11; input x 2 3 1 1; node Softmax x -> y", "y = softmax(x) 1"},
    {"old softmax over two axes", "opset 11; input x 2 3 4; node Softmax x -> y",
     "%1 = reshape(x) 2 12\n%2 = softmax(%1) 1\ny = reshape(%2) 2 3 4"},
    {"mean over axes", "input x 2 3 4; node ReduceMean x -> y : axes=-1,0 keepdims=0", "y = reduce_mean(x) 5"},
    {"mean over all axes", "opset 18; input x 2 3; node ReduceMean x -> y", "y = reduce_mean(x) 3 1"},
    {"mean over axes given as input", "opset 18; input x 2 3; ints a = 1; node ReduceMean x a -> y",
     "y = reduce_mean(x) 2 1"},
    {"mean over no axes", "opset 18; input x 2 3; node ReduceMean x -> y : noop_with_empty_axes=1", "y = identity(x)"},
    {"square", "input x 2; weight e = 2; node Pow x e -> y", "y = mul(x, x)"},
    {"square with a whole exponent", "input x 2; ints e = 2; node Pow x e -> y", "y = mul(x, x)"},
    {"cube", "input x 2; weight e = 3; node Pow x e -> y", "%1 = mul(x, x)\ny = mul(%1, x)"},
    {"root as a power", "input x 2; weight e = 0.5; node Pow x e -> y", "y = sqrt(x)"},
    {"reciprocal of a root", "input x 2; weight e = -0.5; node Pow x e -> y",
     "%1 = sqrt(x)\n%2 = fill() 1\ny = div(%2, %1)"},
    {"another power", "input x 2; weight e = 2.5; node Pow x e -> y", "y = Pow(x, e) opaque"},
    {"power by a tensor", "input x 2; input e 2; node Pow x e -> y", "y = Pow(x, e) opaque"},
    {"reciprocal", "input x 2; node Reciprocal x -> y", "%1 = fill() 1\ny = div(%1, x)"},
    {"negation", "input x 2; node Neg x -> y", "%1 = fill() -1\ny = mul(x, %1)"},
    {"absolute value", "input x 2; node Abs x -> y", "y = abs(x)"},
    {"hard sigmoid", "input x 2; node HardSigmoid x -> y : alpha=0.25", "y = hard_sigmoid(x) 0.25 0.5"},
    {"gelu", "opset 20; input x 2; node Gelu x -> y", "y = gelu(x)"},
    {"approximate gelu", "opset 20; input x 2; node Gelu x -> y : approximate=tanh", "y = gelu_tanh(x)"},
    {"layer normalisation",
     "opset 17; input x 2 3; weight s 3; weight b 3; node LayerNormalization x s b -> y : epsilon=0.5",
     "y = layer_norm(x, s, b) 0.5"},
    {"layer normalisation over two axes, without a bias",
     "opset 17; input x 2 3 4; weight s 3 4; node LayerNormalization x s -> y : axis=1 epsilon=0.5",
     "%1 = reshape(x) 2 12\n%3 = reshape(s) 12\n%4 = fill() 0 12\n%5 = layer_norm(%1, %3, %4) 0.5\ny = reshape(%5) 2 "
     "3 4"},
    {"layer normalisation with scales that repeat",
     "opset 17; input x 2 3; weight s 1; node LayerNormalization x s -> y", "y = LayerNormalization(x, s) opaque"},
    {"sum by input", "input x 2 3; ints a = 1; node ReduceSum x a -> y : keepdims=0", "y = reduce_sum(x) 2"},
    {"largest by attribute", "input x 2 3; node ReduceMax x -> y : axes=0,", "y = reduce_max(x) 1 1"},
    {"one element of an axis", "input x 2 3 4; scalar i = -1; node Gather x i -> y : axis=1",
     "%1 = slice(x) 1 2 3\ny = reshape(%1) 2 4"},
    {"elements behind one another", "input x 5 2; ints i = 1 2 3; node Gather x i -> y", "y = slice(x) 0 1 4"},
    {"elements in another order", "input x 5 2; ints i = 2 1; node Gather x i -> y", "y = Gather(x, i) opaque"},
    {"expand", "input x 3 1; ints s = 2 1 4; node Expand x s -> y", "%1 = fill() 1 2 1 4\ny = mul(x, %1)"},
    {"cast to the same type", "input x 2; node Cast x -> y : to=1", "y = identity(x)"},
    {"cast to another type", "input x 2; node Cast x -> y : to=7", "y = Cast(x) opaque"},
    /* ---------------------------------------------------------------------- data movement */
    {"concat of three", "input a 2 1; input b 2 2; input c 2 3; node Concat a b c -> y : axis=-1",
     "%3 = concat(a, b) 1\ny = concat(%3, c) 1"},
    {"split by attribute", "opset 12; input x 6; node Split x -> a b c : split=1,2,3; output a; output b; output c",
     "a, %2 = split(x) 0 1\nb, c = split(%2) 0 2\nout a b c"},
    {"split into equal parts", "input x 1 6; node Split x -> a b : axis=1; output a; output b",
     "a, b = split(x) 1 3\nout a b"},
    {"split into parts that are not equal", "input x 5; node Split x -> a b; output a; output b",
     "a, b = Split(x) opaque\nout a b"},
    {"split since opset 18: the last part is smaller",
     "opset 18; input x 5; node Split x -> a b c : num_outputs=3; output a; output b; output c",
     "a, %2 = split(x) 0 2\nb, c = split(%2) 0 2\nout a b c"},
    {"slice by attributes", "opset 9; input x 4 5 6; node Slice x -> y : starts=1,-3 ends=3,100 axes=0,2",
     "%1 = slice(x) 0 1 3\ny = slice(%1) 2 3 6"},
    {"slice by inputs", "input x 4 5; ints s = 0 1; ints e = 4 9223372036854775807; node Slice x s e -> y",
     "y = slice(x) 1 1 5"},
    {"slice with steps", "input x 4; ints s = 0; ints e = 4; ints a = 0; ints t = 2; node Slice x s e a t -> y",
     "y = pick(x) 0 0 4 2"},
    {"slice backwards", "input x 4; ints s = 3; ints e = -9; ints a = 0; ints t = -1; node Slice x s e a t -> y",
     "y = reverse(x)"},
    {"slice backwards by steps",
     "input x 9; ints s = -2; ints e = 1; ints a = 0; ints t = -2; node Slice x s e a t -> y",
     "%1 = slice(x) 0 2 8\n%2 = reverse(%1)\ny = pick(%2) 0 0 6 2"},
    {"slice backwards from before the first",
     "input x 4; ints s = -9; ints e = -99; ints a = 0; ints t = -1; node Slice x s e a t -> y",
     "y = Slice(x, s, e, a, t) opaque"},
    {"comparisons", "opset 13; input x 2; input z 2; node Less x z -> a; node Greater x z -> b; node Equal x z -> c; "
     "output a; output b; output c", "a = less(x, z)\nb = less(z, x)\nc = equal_to(x, z)\nout a b c"},
    {"booleans",
     "opset 13; input x 2; input z 2; node Less x z -> a; node Not a -> b; node And a b -> c; node Or c b -> y",
     "a = less(x, z)\nb = logical_not(a)\nc = min(a, b)\ny = max(c, b)"},
    {"a choice of two", "opset 13; input x 2; input z 2; node Less x z -> c; node Where c x z -> y",
     "c = less(x, z)\ny = select(c, x, z)"},
    {"a choice by weights", "opset 13; input x 2; weight v 2; weight w 2; node Less v w -> c; node Where c x w -> y",
     "y = select(c, x, w)"},
    {"a choice of whole numbers",
     "opset 13; input x 2; input z 2; node Less x z -> c; node Cast x -> i : to=7; node Where c i i -> y",
     "c = less(x, z)\ni = Cast(x) opaque\ny = Where(c, i, i) opaque"},
    {"resize to the nearest", "opset 13; input x 1 2 3 3; weight k 4 = 1 1 2 3; node Resize x _ k -> y : mode=nearest",
     "%1 = repeat(x) 2 2\ny = repeat(%1) 3 3"},
    {"resize by lines", "opset 13; input x 1 2 3 3; weight k 4 = 1 1 2 2; node Resize x _ k -> y : mode=linear",
     "y = Resize(x, _, k) opaque"},
    {"sums along an axis", "opset 13; input x 2 3; ints a = -1; node CumSum x a -> y : exclusive=1",
     "y = cumsum(x) 1 1"},
    {"sums from the end", "opset 13; input x 2 3; ints a = -1; node CumSum x a -> y : reverse=1",
     "%1 = reverse(x) 1\n%2 = cumsum(%1) 1\ny = reverse(%2) 1"},
    {"a transposed convolution", "input x 1 2 3 3; weight w 2 4 3 3; weight b 4; "
     "node ConvTranspose x w b -> y : strides=2,2 pads=1,1,1,1 output_padding=1,1",
     "%2 = conv_transpose(x, w) 2 2 1 1 1 1 1 1\n%4 = reshape(b) 4 1 1\ny = add(%2, %4)"},
    {"a transposed convolution of groups", "input x 1 2 3 3; weight w 2 2 3 3; node ConvTranspose x w -> y : group=2",
     "y = ConvTranspose(x, w) opaque"},
    {"instance normalisation",
     "input x 1 2 3 3; weight s 2; weight b 2; node InstanceNormalization x s b -> y : epsilon=0.5",
     "y = instance_norm(x, s, b) 0.5"},
    {"normalisation by the root of the mean square",
     "opset 23; input x 2 3; weight s 3; node RMSNormalization x s -> y : epsilon=0.5", "y = rms_norm(x, s) 0.5"},
    {"logarithm of a softmax", "opset 13; input x 2 3; node LogSoftmax x -> y : axis=0", "y = log_softmax(x)"},
    {"slice of everything", "input x 4; ints s = 0; ints e = 4; node Slice x s e -> y", "y = identity(x)"},
    {"pad by inputs", "input x 4 5; ints p = 1 0 2 3; weight v = 0.5; node Pad x p v -> y : mode=constant",
     "%1 = pad(x) 0 1 2 0.5\ny = pad(%1) 1 0 3 0.5"},
    {"pad by attributes", "opset 10; input x 4; node Pad x -> y : pads=1,2 value=1.5", "y = pad(x) 0 1 2 1.5"},
    {"pad by reflection", "input x 4; ints p = 1 1; node Pad x p -> y : mode=reflect", "y = Pad(x, p) opaque"},
    {"pad that cuts", "input x 4; ints p = 1 -1; node Pad x p -> y", "y = Pad(x, p) opaque"},
    {"pad some axes", "opset 18; input x 4 5; ints p = 1 2; ints a = -1; node Pad x p _ a -> y", "y = pad(x) 1 1 2"},
    {"transpose without axes", "input x 2 3 4; node Transpose x -> y", "y = transpose(x) 2 1"},
    {"transpose", "input x 2 3 4; node Transpose x -> y : perm=1,2,0", "y = transpose(x) 1 2"},
    {"reshape with kept and open sizes", "input x 2 3 4; ints s = 0 -1 2; node Reshape x s -> y",
     "y = reshape(x) 2 6 2"},
    {"reshape to nothing", "input x 1; ints s =; node Reshape x s -> y", "y = reshape(x)"},
    {"reshape to what does not fit", "input x 2 3; ints s = 4 -1; node Reshape x s -> y", "y = Reshape(x, s) opaque"},
    {"flatten", "input x 2 3 4; node Flatten x -> y : axis=2", "y = reshape(x) 6 4"},
    {"flatten before all axes", "input x 2 3; node Flatten x -> y : axis=0", "y = reshape(x) 1 6"},
    {"squeeze all", "input x 1 3 1; node Squeeze x -> y", "y = reshape(x) 3"},
    {"squeeze some", "opset 11; input x 1 3 1; node Squeeze x -> y : axes=-1,", "y = reshape(x) 1 3"},
    {"unsqueeze", "input x 2 3; ints a = 0 -1; node Unsqueeze x a -> y", "y = reshape(x) 1 2 3 1"},
    {"constant of shape", "input x 2 3; ints s = 2 1; node ConstantOfShape s -> c; node Add x c -> y",
     "c = fill() 0 2 1\ny = add(x, c)"},
    {"batch normalisation by a constant of shape",
     "input x 2 1 3 3; ints d = 1; weight v 1; node ConstantOfShape d -> c; node BatchNormalization x c c c v -> y",
     "c = fill() 0 1\ny = scale_shift(x, %2, %3)"},
    /* ------------------------------------------------------------------- what is not known */
    {"an operator nobody knows", "input x 2; node Relu x -> a; node Magic a x -> b; node Relu b -> y; info b 2",
     "a = relu(x)\nb = Magic(a, x) opaque\ny = relu(b)"},
    {"behind an unknown shape", "input x 2; node Magic x -> b; node Relu b -> y",
     "b = Magic(x) opaque\ny = Relu(b) opaque"},
    {"an operator that keeps the shape", "input x 2; node Celu x -> b; node Relu b -> y; opset 18",
     "b = Celu(x) opaque\ny = relu(b)"},
    {"a known name in another domain", "input x 2; node Relu x -> y : domain=com.example", "y = Relu(x) opaque"},
    {"an opset from the past", "opset 5; input x 2; node Relu x -> y", "y = Relu(x) opaque"},
    {"an opset from the future", "opset 99; input x 2; node Relu x -> y", "y = Relu(x) opaque"},
    {"seven axes", "input x 1 1 1 1 1 1 2; node Relu x -> y", "y = Relu(x) opaque"},
    {"an optional input that is not given", "input x 2; node Magic _ x -> y", "y = Magic(_, x) opaque"},
    {"nodes out of order", "input x 2; node Exp b -> y; node Sqrt a -> b; node Relu x -> a",
     "a = relu(x)\nb = sqrt(a)\ny = exp(b)"},
    {"what subgraphs read", "input x 2; input c; weight w 2; graph t; node Add a w -> r; output r; end; graph e; "
     "node Relu a -> s; output s; end; node Exp x -> a; node If c -> y : then_branch=@t else_branch=@e",
     "a = exp(x)\ny = If(c, a, w) opaque"},
    {"subgraph names that hide outer ones", "input x 2; input c; graph t; node Relu x -> h; node Exp h -> r; "
     "output r; end; node If c -> y : then_branch=@t else_branch=@t; node Relu x -> h; node Add h y -> z; output z",
     "y = If(c, x) opaque\nh = relu(x)\nz = Add(h, y) opaque\nout z"},
    {"a name that one branch hides and the other reads from outside",
     "input x 2; input c; graph t; node Relu x -> h; output h; end; graph e; node Exp h -> r; output r; end; "
     "node Sqrt x -> h; node If c -> y : then_branch=@t else_branch=@e", "h = sqrt(x)\ny = If(c, x, h) opaque"},
    /* --------------------------------------------------------------------------- open sizes */
    {"open sizes become 1", "input x N 3 ?; ints s = -1 3; node Reshape x s -> y", "y = reshape(x) 1 3"},
    {"the target of a reshape computed from the shape",
     "input x N 3 4; scalar i = 0; ints a = 0; ints m = -1; node Shape x -> s; node Gather s i -> b; "
     "node Unsqueeze b a -> c; node Concat c m -> d : axis=0; node Reshape x d -> y", "y = reshape(x) 1 12"},
    {"a computed size that something opaque reads", "input x 2 3; node Shape x -> s; node Tile x s -> y; info y 4 9",
     "y = Tile(x, s) opaque"},
    {"the shape of what is not known", "input x 2; node Magic x -> b; node Shape b -> s; node Reshape x s -> y",
     "b = Magic(x) opaque\ns = Shape(b) opaque\ny = Reshape(x, s) opaque"},
};
/* clang-format on */

CHECK_ROWS(test_row, rows)
{
    const read_row *row = place;
    graft_model *model = onnx_text_model(env, row->model);
    onnx_text_is(env->unit, onnx_text_print(env->unit, model, &model->graph), row->graph);
    build_check(env->unit, &model->graph);
}

/* s = scale / sqrt(variance + epsilon), t = bias - mean s. */
CHECK_CASE(test_batch_norm_numbers)
{
    graft_model *model = onnx_text_model(
        env, "input x 1 2 3; weight s 2 = 3 4; weight b 2 = 1 7; weight m 2 = 2 -1;"
             "weight v 2 = 3 15; node BatchNormalization x s b m v -> y : epsilon=1.0; output y");
    const graft_node *node = &model->graph.nodes[0];
    const float expected[2][2] = {
        {1.5F,  1.0F},
        {-2.0F, 8.0F}
    };
    assert_int_equal(node->op, GRAFT_OP_scale_shift);
    for (uint32_t k = 0; k < 2; k++) {
        const graft_value *value = &model->graph.values[graft_node_input(&model->graph, 0, k + 1)];
        const float *data = model->weights[value->source].data;
        assert_true(data[0] == expected[k][0] && data[1] == expected[k][1]);
    }
}

/* The proof for all sizes: what it accepts, and above all what it does not. The false rules hold
 * for some shapes, many for all that a bounded proof looks at: small, square, divisible, or with
 * the values that one tries first. */
#include "verify/sizes/symbolic.h"

#include "graph/rule/ruleparse.h"
#include "tests/support/check.h"

static const char *const true_rules[] = {
    "relu(relu(a)) = relu(a)",
    "clip#1(min(a, b)) = min(clip#1(a), clip#1(b))",
    "max(leaky_relu#1(a), leaky_relu#2(a)) = "
    "leaky_relu(a, slope=fmin(#1.slope, #2.slope))",
    "relu(concat#1(a, b)) = concat#1(relu(a), relu(b))",
    "[split#1(concat#1(a, b)).0, split#1(concat#1(a, b)).1] = [a, b]",
    "[split#1(add(a, b)).0, split#1(add(a, b)).1] = [add(split#1(a).0, b), add(split#1(a).1, b)]",
    "slice#1(pad#2(a)) = slice#1(pad#1(a, before=#2.before, after=#1.start, value=#2.value))",
    "add(a, concat#1(b, c)) = concat#1(add(a, b), add(a, c))",
    "matmul(matmul(a, b), c) = matmul(a, matmul(b, c)) where rank(a) = 2 and rank(b) = 2",
    "matmul(concat#1(a, b), concat#2(c, d)) = add(matmul(a, c), matmul(b, d)) where rank(a) = 2",
    "matmul_bias#1(a, concat(b, c, axis=1), concat(d, e, axis=0)) = "
    "concat(matmul_bias#1(a, b, d), matmul_bias#1(a, c, e), axis=1) where rank(a) = 2",
    "conv#1(a, add(b, c)) = add(conv#1(a, b), conv#1(a, c)) "
    "where dim(b,-1) = dim(c,-1) and dim(b,-2) = dim(c,-2)",
    "conv#1(concat(a, b, axis=1), concat(c, d, axis=1), groups=1) = "
    "add(conv#1(a, c, groups=1), conv#1(b, d, groups=1))",
    "scale_shift(conv#1(a, b), c, d) = conv_bias#1(a, mul(b, reshape(c, dim=[dim(c,0), 1, 1, 1])), "
    "d, activation=none)",
    "relu(max_pool#1(a)) = max_pool#1(relu(a))",
    "add(global_avg_pool(a), global_avg_pool(b)) = global_avg_pool(add(a, b))",
    "reduce_sum#1(mul(a, b)) = mul(b, reduce_sum#1(a)) where rank(b) = 0 and rank(a) = 3",
    "div(exp(a), reduce_sum(exp(a), axes=2, keep=1)) = softmax(a, axis=1)",
    "layer_norm#1(add(a, fill#2()), b, c) = layer_norm#1(a, b, c)",
    "reshape#1(mul(a, b)) = mul(reshape#1(a), reshape#1(b)) where same_shape(a, b) and rank(a) = 3",
    /* Row-major places and their parts cancel. */
    "reshape#1(reshape#2(a)) = a",
    "reshape#1(relu(reshape#2(a))) = relu(a)",
    /* One group for each output. */
    "scale_shift(a, b, c) = conv_bias(a, reshape(b, dim=[dim(b,-1), 1, 1, 1]), c, stride_h=1, "
    "stride_w=1, pad_top=0, pad_left=0, pad_bottom=0, pad_right=0, dilation_h=1, dilation_w=1, "
    "groups=dim(a,1), activation=none)",
    "conv_bias#1(scale_shift(a, b, b), reshape#2(c), b) = "
    "conv_bias#1(scale_shift(a, c, c), reshape#2(b), b)",
    /* Places times strides. */
    "conv#1(a, b, pad_top=0, dilation_h=1) = conv(a, pad(b, axis=2, before=#1.pad_left, "
    "after=#1.pad_left, value=0), stride_h=#1.stride_h, stride_w=#1.stride_w, "
    "pad_top=#1.pad_left, pad_left=#1.pad_left, pad_bottom=#1.pad_left, pad_right=#1.pad_right, "
    "dilation_h=1, dilation_w=#1.dilation_w, groups=#1.groups)",
    /* Windows and kernels that are padded, enlarged and added. */
    "pad#1(conv#2(a, b, stride_h=1, stride_w=1), axis=3, value=0) = "
    "conv#2(pad#1(a, axis=3, value=0), b, stride_h=1, stride_w=1) where dim(b,-1) = 1",
    "conv#1(conv#1(a, b, stride_h=1, pad_top=#1.pad_left, pad_bottom=#1.pad_left), "
    "pad#2(c, axis=2, after=#2.before, value=0), stride_h=1, pad_top=0, pad_bottom=0) = "
    "conv#1(conv#1(a, b, stride_h=1, pad_top=0, pad_bottom=0), c, stride_h=1, pad_top=0, "
    "pad_bottom=0)",
    "conv#1(a, add(b, pad(c, axis=2, before=1, after=1, value=0)), stride_h=1, stride_w=1, "
    "pad_top=1, pad_bottom=1) = add(conv#1(a, b, stride_h=1, stride_w=1, pad_top=1, pad_bottom=1), "
    "conv#1(a, c, stride_h=1, stride_w=1, pad_top=0, pad_bottom=0))",
    /* Groups. */
    "concat(conv#1(a, b), conv#1(c, d), axis=1) = conv(concat(a, c, axis=1), concat(b, d, axis=0), "
    "stride_h=#1.stride_h, stride_w=#1.stride_w, pad_top=#1.pad_top, pad_left=#1.pad_left, "
    "pad_bottom=#1.pad_bottom, pad_right=#1.pad_right, dilation_h=#1.dilation_h, "
    "dilation_w=#1.dilation_w, groups=2 * #1.groups) where same_shape(b, d) and same_shape(a, c)",
    "conv#1(concat#2(a, b), concat#3(c, d), groups=2) = "
    "concat#2(conv#1(a, c, groups=1), conv#1(b, d, groups=1)) "
    "where same_shape(c, d) and #2.axis = 1 and #3.axis = 0",
    /* Places in row-major order, summed over: as many binders as axes. */
    "reduce_sum(mul(a, b), axes=3, keep=0) = reshape(matmul(reshape(a, dim=[1, dim(a,0) * "
    "dim(a,1)]), reshape(b, dim=[dim(b,0) * dim(b,1), 1])), dim=[]) "
    "where rank(a) = 2 and same_shape(a, b)",
    "reduce_max(a, axes=12, keep=0) = reduce_max(reshape(a, dim=[dim(a,0), dim(a,1), dim(a,2) * "
    "dim(a,3)]), axes=4, keep=0) where rank(a) = 4",
    "reduce_mean(a, axes=7, keep=0) = reduce_mean(reshape(a, dim=[dim(a,0) * dim(a,1) * "
    "dim(a,2)]), axes=1, keep=0) where rank(a) = 3",
    /* A place in axes whose sizes are numbers. */
    "reshape(concat(a, b, axis=0), dim=[2, 3]) = concat(reshape(a, dim=[1, 3]), "
    "reshape(b, dim=[1, 3]), axis=0) where rank(a) = 1 and same_shape(a, b)",
    /* A mask that is the same along a row, which may also broadcast rows. */
    "softmax(add(matmul(a, transpose(b, axis=[1, 0])), c), axis=1) = "
    "softmax(matmul(a, transpose(b, axis=[1, 0])), axis=1) "
    "where rank(a) = 2 and rank(c) = 2 and dim(c,1) = 1",
    /* Halves of a maximum. */
    "reduce_max(concat(a, b, axis=0), axes=1, keep=1) = "
    "max(reduce_max(a, axes=1, keep=1), reduce_max(b, axes=1, keep=1))",
    "reduce_max(pad(a, axis=0, before=0, after=1, value=0), axes=1, keep=1) = "
    "relu(reduce_max(a, axes=1, keep=1))",
    /* Pools of pools with the same padding. */
    "max_pool(max_pool(a, kernel_h=3, kernel_w=3, stride_h=2, stride_w=2, pad_top=1, pad_left=1, "
    "pad_bottom=1, pad_right=1, dilation_h=1, dilation_w=1), kernel_h=3, kernel_w=3, stride_h=2, "
    "stride_w=2, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, dilation_h=1, dilation_w=1) = "
    "max_pool(a, kernel_h=7, kernel_w=7, stride_h=4, stride_w=4, pad_top=3, pad_left=3, "
    "pad_bottom=3, pad_right=3, dilation_h=1, dilation_w=1)",
    /* Maxima. */
    "max(reduce_max#1(a), reduce_max#1(b)) = reduce_max#1(max(a, b)) where same_shape(a, b)",
    "max(max(a, b), reduce_max#1(a, keep=1)) = max(b, reduce_max#1(a, keep=1))",
    "max_pool#1(mul(a, relu(a))) = mul(max_pool#1(a), relu(max_pool#1(a)))",
    "max_pool#1(max_pool#2(a, stride_h=1, stride_w=1, dilation_h=1, dilation_w=1), stride_h=1, "
    "stride_w=1, pad_top=0, pad_left=0, pad_bottom=0, pad_right=0, dilation_h=1, dilation_w=1) = "
    "max_pool(a, kernel_h=#1.kernel_h + #2.kernel_h - 1, kernel_w=#1.kernel_w + #2.kernel_w - 1, "
    "stride_h=1, stride_w=1, pad_top=#2.pad_top, pad_left=#2.pad_left, pad_bottom=#2.pad_bottom, "
    "pad_right=#2.pad_right, dilation_h=1, dilation_w=1)",
    "relu(avg_pool#1(mul(a, a))) = avg_pool#1(mul(a, a))",
    "max_pool(max_pool(a, kernel_h=3, kernel_w=3, stride_h=2, stride_w=2, pad_top=1, pad_left=1, "
    "pad_bottom=1, pad_right=1, dilation_h=1, dilation_w=1), kernel_h=3, kernel_w=3, stride_h=1, "
    "stride_w=1, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, dilation_h=1, dilation_w=1) = "
    "max_pool(max_pool(a, kernel_h=5, kernel_w=5, stride_h=1, stride_w=1, pad_top=2, pad_left=2, "
    "pad_bottom=2, pad_right=2, dilation_h=1, dilation_w=1), kernel_h=3, kernel_w=3, stride_h=2, "
    "stride_w=2, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, dilation_h=1, dilation_w=1)",
    /* Functions that grow. */
    "exp(reduce_max#1(a)) = reduce_max#1(exp(a))",
    "max_pool#1(sigmoid(add(a, tanh(a)))) = sigmoid(add(max_pool#1(a), tanh(max_pool#1(a))))",
    "softmax(sub(a, reduce_max(a, axes=2, keep=1)), axis=1) = softmax(a, axis=1)",
    /* What is known of sums. */
    "clip#1(global_avg_pool(clip#1(a))) = global_avg_pool(clip#1(a))",
    "clip(avg_pool#1(clip(a, low=0, high=6)), low=0, high=6) = avg_pool#1(clip(a, low=0, high=6))",
    "layer_norm(mul(a, b), fill#1(value=0), c, epsilon=0.25) = "
    "layer_norm(a, fill#1(value=0), c, epsilon=0.25)",
    /* Broadcast within the shape of the whole. */
    "conv_bias_add#1(a, b, c, add(d, e), activation=none) = "
    "add(e, conv_bias_add#1(a, b, c, d, activation=none))",
};

/* Two convolutions as one with the groups of the first. */
static const char joined_as_one[] =
    "concat(conv#1(a, b), conv#1(c, d), axis=1) = conv(concat(a, c, axis=1), concat(b, d, axis=0), "
    "stride_h=#1.stride_h, stride_w=#1.stride_w, pad_top=#1.pad_top, pad_left=#1.pad_left, "
    "pad_bottom=#1.pad_bottom, pad_right=#1.pad_right, dilation_h=#1.dilation_h, "
    "dilation_w=#1.dilation_w, groups=#1.groups) where dim(b,1) = 1";

static const char halves_as_groups[] =
    "conv#1(concat(a, b, axis=1), concat(c, d, axis=0), groups=2) = "
    "concat(conv#1(a, c, groups=1), conv#1(b, d, groups=1), axis=1)";

/* Two windows are one that is larger by less than the second. */
static const char window_too_small[] =
    "max_pool#1(max_pool#2(a, stride_h=1, stride_w=1, dilation_h=1, dilation_w=1), stride_h=1, "
    "stride_w=1, pad_bottom=#1.pad_top, pad_right=#1.pad_left, dilation_h=1, dilation_w=1) = "
    "max_pool(a, kernel_h=#1.kernel_h + #2.kernel_h - 2, kernel_w=#1.kernel_w + #2.kernel_w - 1, "
    "stride_h=1, stride_w=1, pad_top=#2.pad_top + #1.pad_top, pad_left=#2.pad_left + #1.pad_left, "
    "pad_bottom=#2.pad_bottom + #1.pad_bottom - 1, pad_right=#2.pad_right + #1.pad_right, "
    "dilation_h=1, dilation_w=1)";

static const char *const false_folds[] = {
    /* Groups of unequal kernels. */
    joined_as_one,
    halves_as_groups,
    /* Maxima over fewer places, of what is not monotone, and of what is larger. */
    "max(a, reduce_max#1(b, keep=1)) = reduce_max#1(b, keep=1) where same_shape(a, b)",
    "max_pool#1(mul(a, a)) = mul(max_pool#1(a), max_pool#1(a))",
    "max(reduce_max#1(a), reduce_max#1(b)) = reduce_max#1(add(a, b)) where same_shape(a, b)",
    window_too_small,
    "relu(avg_pool#1(mul(a, mul(a, a)))) = avg_pool#1(mul(a, mul(a, a)))",
    "max_pool(max_pool(a, kernel_h=3, kernel_w=3, stride_h=2, stride_w=2, pad_top=1, pad_left=1, "
    "pad_bottom=1, pad_right=1, dilation_h=1, dilation_w=1), kernel_h=3, kernel_w=3, stride_h=1, "
    "stride_w=1, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, dilation_h=1, dilation_w=1) = "
    "max_pool(max_pool(a, kernel_h=7, kernel_w=5, stride_h=1, stride_w=1, pad_top=3, pad_left=2, "
    "pad_bottom=3, pad_right=2, dilation_h=1, dilation_w=1), kernel_h=3, kernel_w=3, stride_h=2, "
    "stride_w=2, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, dilation_h=1, dilation_w=1)",
    "softmax(add(a, b), axis=1) = softmax(a, axis=1) where rank(b) = 2",
    "max_pool#1(exp(mul(a, fill#2()))) = exp(mul(max_pool#1(a), fill#2()))",
    /* A border of zeros is below 1; a sum of numbers up to 1 is not; a square of a sum. */
    "clip(avg_pool#1(clip(a, low=1, high=6)), low=1, high=6) = avg_pool#1(clip(a, low=1, high=6))",
    "clip#1(reduce_sum#2(clip#1(a))) = reduce_sum#2(clip#1(a))",
    "relu(sub(reduce_sum#1(mul(a, a)), mul(reduce_sum#1(a), reduce_sum#1(a)))) = "
    "sub(reduce_sum#1(mul(a, a)), mul(reduce_sum#1(a), reduce_sum#1(a)))",
};

static const char *const false_rules[] = {
    /* Neighbours of what was lost once: places in another order, */
    "reduce_sum(mul(a, b), axes=3, keep=0) = reshape(matmul(reshape(a, dim=[1, dim(a,0) * "
    "dim(a,1)]), reshape(transpose(b, axis=[1, 0]), dim=[dim(b,0) * dim(b,1), 1])), dim=[]) "
    "where rank(a) = 2 and same_shape(a, b)",
    "reduce_max(a, axes=4, keep=0) = reduce_max(reshape(a, dim=[dim(a,0), dim(a,2), dim(a,1)]), "
    "axes=2, keep=0) where rank(a) = 3",
    "reduce_mean(a, axes=4, keep=0) = reduce_mean(reshape(a, dim=[dim(a,0), dim(a,1), dim(a,3), "
    "dim(a,2)]), axes=8, keep=0) where rank(a) = 4",
    "reduce_sum(a, axes=5, keep=0) = reduce_sum(reshape(a, dim=[dim(a,0) * dim(a,1), dim(a,2)]), "
    "axes=1, keep=0) where rank(a) = 3 and dim(a,1) = dim(a,2)",
    "reduce_sum(a, axes=3, keep=0) = reduce_sum(slice(reshape(a, dim=[dim(a,0) * dim(a,1)]), "
    "axis=0, start=0, end=dim(a,0)), axes=1, keep=0) where rank(a) = 2",
    "reshape(concat(a, b, axis=0), dim=[2, 3]) = concat(reshape(b, dim=[1, 3]), "
    "reshape(a, dim=[1, 3]), axis=0) where rank(a) = 1 and same_shape(a, b)",
    "reshape(concat(a, b, axis=0), dim=[3, 2]) = concat(reshape(a, dim=[3, 1]), "
    "reshape(b, dim=[3, 1]), axis=1) where rank(a) = 1 and same_shape(a, b)",
    /* a mask along the row, a factor, */
    "softmax(add(matmul(a, b), c), axis=1) = softmax(matmul(a, b), axis=1) "
    "where rank(a) = 2 and rank(b) = 2 and rank(c) = 2 and dim(c,0) = 1",
    "softmax(mul(matmul(a, b), c), axis=1) = softmax(matmul(a, b), axis=1) "
    "where rank(a) = 2 and rank(b) = 2 and rank(c) = 2 and dim(c,1) = 1",
    /* elements in sums in a sum that differ by their own binder alone, */
    "softmax(matmul(a, b), axis=1) = softmax(matmul(b, a), axis=1) "
    "where rank(a) = 2 and same_shape(a, b)",
    "softmax(matmul(a, a), axis=1) = softmax(matmul(a, transpose(a, axis=[1, 0])), axis=1) "
    "where rank(a) = 2",
    /* halves of a maximum, one of which may be empty or left out, */
    "reduce_max(pad#1(a, axis=0, value=0), axes=1, keep=1) = relu(reduce_max(a, axes=1, keep=1))",
    "reduce_max(pad#1(a, axis=0, before=0, value=0), axes=1, keep=1) = "
    "relu(reduce_max(a, axes=1, keep=1))",
    "reduce_max(pad#1(a, axis=0, after=0, value=0), axes=1, keep=1) = "
    "relu(reduce_max(a, axes=1, keep=1))",
    "reduce_max(concat(a, b, axis=0), axes=1, keep=1) = reduce_max(a, axes=1, keep=1)",
    "reduce_max(slice#1(concat(a, b, axis=0), axis=0, start=0), axes=1, keep=1) = "
    "max(reduce_max(a, axes=1, keep=1), reduce_max(b, axes=1, keep=1)) where dim(a,0) <= #1.end",
    /* and windows that are a little off. */
    "max_pool(max_pool(a, kernel_h=3, kernel_w=3, stride_h=2, stride_w=2, pad_top=1, pad_left=1, "
    "pad_bottom=1, pad_right=1, dilation_h=1, dilation_w=1), kernel_h=3, kernel_w=3, stride_h=2, "
    "stride_w=2, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, dilation_h=1, dilation_w=1) = "
    "max_pool(a, kernel_h=5, kernel_w=7, stride_h=4, stride_w=4, pad_top=2, pad_left=3, "
    "pad_bottom=2, pad_right=3, dilation_h=1, dilation_w=1)",
    "max_pool(max_pool(a, kernel_h=3, kernel_w=3, stride_h=2, stride_w=2, pad_top=1, pad_left=1, "
    "pad_bottom=1, pad_right=1, dilation_h=1, dilation_w=1), kernel_h=3, kernel_w=3, stride_h=2, "
    "stride_w=2, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, dilation_h=1, dilation_w=1) = "
    "max_pool(a, kernel_h=7, kernel_w=7, stride_h=4, stride_w=4, pad_top=4, pad_left=3, "
    "pad_bottom=2, pad_right=3, dilation_h=1, dilation_w=1)",
    "max_pool(max_pool(a, kernel_h=3, kernel_w=3, stride_h=2, stride_w=2, pad_top=1, pad_left=1, "
    "pad_bottom=1, pad_right=1, dilation_h=1, dilation_w=1), kernel_h=2, kernel_w=2, stride_h=2, "
    "stride_w=2, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, dilation_h=1, dilation_w=1) = "
    "max_pool(a, kernel_h=7, kernel_w=7, stride_h=4, stride_w=4, pad_top=3, pad_left=3, "
    "pad_bottom=3, pad_right=3, dilation_h=1, dilation_w=1)",
    /* Elementwise, at numbers that a slot may be. */
    "clip#1(max(a, b)) = max(clip#1(a), b)",
    "leaky_relu#1(leaky_relu#1(a)) = leaky_relu#1(a)",
    "max(a, leaky_relu#1(a)) = a",
    "max(leaky_relu#1(a), leaky_relu#2(a)) = leaky_relu(a, slope=fmax(#1.slope, #2.slope))",
    "clip#1(clip#2(a)) = clip#2(clip#1(a))",
    "relu(clip#1(a)) = clip#1(relu(a))",
    "add(a, fill#1()) = a",
    /* A border on the wrong side, and one that a dilation spreads. */
    "conv#1(a, b, pad_top=0, dilation_h=1) = conv(a, pad(b, axis=2, before=#1.pad_left, "
    "after=#1.pad_left, value=0), stride_h=#1.stride_h, stride_w=#1.stride_w, "
    "pad_top=2 * #1.pad_left, pad_left=#1.pad_left, pad_bottom=0, pad_right=#1.pad_right, "
    "dilation_h=1, dilation_w=#1.dilation_w, groups=#1.groups)",
    "conv#1(a, b, pad_top=0) = conv(a, pad(b, axis=2, before=#1.pad_left, "
    "after=#1.pad_left, value=0), stride_h=#1.stride_h, stride_w=#1.stride_w, "
    "pad_top=#1.pad_left, pad_left=#1.pad_left, pad_bottom=#1.pad_left, pad_right=#1.pad_right, "
    "dilation_h=#1.dilation_h, dilation_w=#1.dilation_w, groups=#1.groups)",
    /* Another order of places, and another number for each channel. */
    "reshape#1(transpose(reshape#2(a), axis=[1, 0])) = a",
    "conv_bias#1(scale_shift(a, b, b), reshape#2(c), b) = "
    "conv_bias#1(scale_shift(a, c, b), reshape#2(b), b)",
    /* Where the target is not defined. */
    "mul(a, b) = div(mul(mul(a, b), b), b)",
    "add(a, a) = add(a, div(mul(a, a), a))",
    "relu(a) = relu(mul(sqrt(a), sqrt(a)))",
    /* Square, or of size 1. */
    "transpose(a, axis=[1, 0]) = a",
    "matmul(a, b) = matmul(b, a)",
    "transpose#1(transpose#1(a)) = a",
    "matmul(transpose(a, axis=[1, 0]), b) = matmul(a, b)",
    "add(a, transpose(b, axis=[1, 0])) = add(a, b)",
    "reduce_sum(a, axes=1, keep=0) = reduce_sum(a, axes=2, keep=0)",
    "softmax(a, axis=0) = softmax(a, axis=1)",
    "reduce_max#1(a) = reduce_mean#1(a)",
    "scale_shift(a, b, c) = add(mul(a, b), c)",
    "add(a, matmul(b, c)) = matmul(b, add(a, c))",
    /* All sizes up to 5, but not beyond. */
    "max(a, max_pool(a, kernel_h=9, kernel_w=9, stride_h=1, stride_w=1, pad_top=4, pad_left=4, "
    "pad_bottom=4, pad_right=4, dilation_h=1, dilation_w=1)) = max(a, reduce_max(a, axes=12, "
    "keep=1))",
    "slice(pad(a, axis=0, before=0, after=9, value=0.0), axis=0, start=5, end=9) = "
    "slice(pad(fill(value=0.0, dim=[dim(a,0)]), axis=0, before=0, after=9, value=0.0), axis=0, "
    "start=5, end=9)",
    "mul(a, slice#1(pad(a, axis=0, before=9, after=0, value=0.0), axis=0, start=4)) = "
    "mul(fill(value=0.0, dim=[dim(a,0)]), a) where rank(a) = 1",
    /* Off by one, and the wrong part. */
    "[split#1(concat#1(a, b)).0, split#1(concat#1(a, b)).1] = [b, a]",
    "slice#1(concat#1(a, b), start=1) = a",
    "slice#1(slice#2(a)) = slice#1(a)",
    "slice#1(pad#2(a)) = a",
    "slice#1(pad#2(a, before=1), start=2) = a",
    "pad#1(a, value=0.0) = pad(a, axis=#1.axis, before=#1.after, after=#1.before, value=0.0)",
    "concat#1(a, b) = concat#1(b, a)",
    "concat#1(split#2(a).1, split#2(a).0) = a",
    "concat#1(concat#2(a, b), concat#2(c, d)) = concat#2(concat#1(a, c), concat#1(b, d))",
    "[split#1(add(a, b)).0, split#1(add(a, b)).1] = [add(split#1(a).0, b), split#1(a).1]",
    /* Values of padding. */
    "mul(pad#1(a), pad#1(b)) = pad#1(mul(a, b))",
    "add(pad#1(a), pad#1(b)) = pad#1(add(a, b))",
    "relu(pad#1(a)) = pad#1(relu(a))",
    "exp(pad#1(a, value=0.0)) = pad#1(exp(a), value=0.0)",
    /* Sums. */
    "mul(reduce_sum#1(a), reduce_sum#1(b)) = reduce_sum#1(mul(a, b)) where same_shape(a, b)",
    "reduce_mean#1(mul(a, b)) = mul(reduce_mean#1(a), reduce_mean#1(b)) where same_shape(a, b)",
    "reduce_sum#1(add(a, fill#2())) = reduce_sum#1(a)",
    "reduce_sum#1(add(a, b)) = add(b, reduce_sum#1(a)) where rank(b) = 0",
    "reduce_mean#1(relu(a)) = relu(reduce_mean#1(a))",
    "reduce_max#1(add(a, b)) = add(reduce_max#1(a), reduce_max#1(b)) where same_shape(a, b)",
    "reduce_max#1(mul(a, b)) = mul(b, reduce_max#1(a)) where rank(b) = 0",
    "matmul(add(a, b), c) = add(matmul(a, c), b)",
    "matmul(concat(a, b, axis=1), concat(c, d, axis=0)) = add(matmul(a, d), matmul(b, c))",
    "matmul(relu(a), b) = relu(matmul(a, b))",
    "matmul(a, b) = matmul_bias(a, b, fill(value=1.0, dim=[dim(b,-1)]), activation=none)",
    "mul(a, matmul(b, c)) = matmul(mul(a, b), c)",
    "matmul(softmax(a, axis=0), add(b, c)) = add(c, matmul(softmax(a, axis=0), b)) "
    "where rank(a) = 2 and rank(c) = 0",
    "layer_norm#1(mul(a, fill(value=2.0, dim=[])), b, c) = layer_norm#1(a, b, c)",
    "layer_norm#1(add(a, d), b, c) = layer_norm#1(a, b, c)",
    "softmax#1(add(a, b)) = softmax#1(a)",
    /* Convolution and pooling. */
    "conv#1(a, concat(b, c, axis=0)) = concat(conv#1(a, b), conv#1(a, c), axis=1)",
    "conv#1(concat(a, b, axis=1), concat(c, d, axis=1)) = add(conv#1(a, c), conv#1(b, d))",
    "conv#1(a, b) = conv#1(a, b, dilation_h=1)",
    "conv#1(a, b, stride_h=2) = conv#1(a, b, stride_h=3)",
    "conv#1(a, b, pad_top=1, pad_bottom=1) = conv#1(a, b, pad_top=0, pad_bottom=2)",
    "conv#1(pad(a, axis=2, before=1, after=1, value=1.0), b) = "
    "conv(a, b, stride_h=#1.stride_h, stride_w=#1.stride_w, pad_top=#1.pad_top + 1, "
    "pad_left=#1.pad_left, pad_bottom=#1.pad_bottom + 1, pad_right=#1.pad_right, "
    "dilation_h=#1.dilation_h, dilation_w=#1.dilation_w, groups=#1.groups)",
    "conv#1(pad(a, axis=2, before=1, after=1, value=0.0), b) = "
    "conv(a, b, stride_h=#1.stride_h, stride_w=#1.stride_w, pad_top=#1.pad_top + 2, "
    "pad_left=#1.pad_left, pad_bottom=#1.pad_bottom, pad_right=#1.pad_right, "
    "dilation_h=#1.dilation_h, dilation_w=#1.dilation_w, groups=#1.groups)",
    "conv#1(add(a, b), c) = add(conv#1(a, c), conv#1(b, c))",
    "conv_bias#1(a, b, c, activation=relu) = conv_bias#1(a, b, c, activation=none)",
    "conv_bias#1(a, b, c, activation=relu) = relu(conv#1(a, b))",
    "max_pool#1(add(a, b)) = add(max_pool#1(a), max_pool#1(b))",
    "max_pool#1(max_pool#1(a)) = max_pool#1(a)",
    "relu(avg_pool#1(a)) = avg_pool#1(relu(a))",
    "avg_pool#1(a, count_pad=1) = avg_pool#1(a, count_pad=0)",
    "avg_pool#1(add(a, b), count_pad=1) = add(b, avg_pool#1(a, count_pad=1)) "
    "where dim(b,-1) = 1 and dim(b,-2) = 1",
    "global_avg_pool(max_pool#1(a)) = max_pool#1(global_avg_pool(a))",
    "global_avg_pool(avg_pool#1(a)) = global_avg_pool(a)",
    "max_pool#1(sub(b, a)) = sub(b, max_pool#1(a)) where dim(b,-1) = 1 and dim(b,-2) = 1",
    /* Row-major places. */
    "reshape#1(transpose(a, axis=[1, 0])) = reshape#1(a)",
    "reshape#1(add(a, b)) = add(reshape#1(a), b)",
    "transpose(a, axis=[1, 0]) = reshape(a, dim=[dim(a,1), dim(a,0)])",
    "reshape#1(concat(a, b, axis=1)) = reshape#1(concat(a, b, axis=0))",
    /* True of all of no instances. */
    "matmul(a, b) = matmul(b, a) where rank(a) = 2 and rank(a) = 3",
};

static void check_rules(graft_env *env, const char *const *rules, size_t count, bool expected)
{
    const graft_prove_options options = graft_prove_defaults();
    uint32_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        graft_rule rule;
        graft_symbolic_result result;
        if (graft_rule_parse(env, "rule", rules[i], &rule) != GRAFT_OK) {
            fail_msg("%s: %s", rules[i], env->message);
        }
        graft_symbolic_prove(env, &rule, NULL, 0, &options, &result);
        if (result.proved != expected) {
            print_error("%s: %s %s\n", rules[i], result.proved ? "proved" : "not proved",
                        result.reason);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

static void test_true_rules(void **state)
{
    check_rules(*state, true_rules, sizeof true_rules / sizeof true_rules[0], true);
}

static void test_false_rules(void **state)
{
    check_rules(*state, false_rules, sizeof false_rules / sizeof false_rules[0], false);
    check_rules(*state, false_folds, sizeof false_folds / sizeof false_folds[0], false);
}

static bool is_proved_in(graft_symbolic *proofs, graft_env *env, const char *text)
{
    const graft_prove_options options = graft_prove_defaults();
    graft_rule rule;
    graft_symbolic_result result;
    assert_int_equal(graft_rule_parse(env, "rule", text, &rule), GRAFT_OK);
    graft_symbolic_try(proofs, &rule, NULL, 0, &options, &result);
    return result.proved;
}

/* Proofs that follow each other in one context lend each other nothing that holds of one rule only:
 * true and false rules in turns are told apart as they are alone. */
static void test_one_context(void **state)
{
    graft_env *env = *state;
    const graft_prove_options options = graft_prove_defaults();
    const size_t true_count = sizeof true_rules / sizeof true_rules[0];
    const size_t false_count = sizeof false_rules / sizeof false_rules[0];
    graft_prove_result counts;
    graft_prover prover;
    graft_prover_open(&prover, &options, &counts);
    graft_symbolic *proofs = graft_symbolic_open(env, &prover);
    for (size_t i = 0; i < true_count || i < false_count; i++) {
        if (!is_proved_in(proofs, env, true_rules[i % true_count])) {
            fail_msg("not proved any more: %s", true_rules[i % true_count]);
        }
        if (is_proved_in(proofs, env, false_rules[i % false_count])) {
            fail_msg("proved: %s", false_rules[i % false_count]);
        }
    }
    graft_symbolic_close(proofs);
    graft_prover_close(&prover);
}

/* A solver that never answers proves nothing. */
static void test_mute_solver(void **state)
{
    graft_env *env = *state;
    graft_prove_options options = graft_prove_defaults();
    options.solver_is_mute = true;
    for (size_t i = 0; i < sizeof true_rules / sizeof true_rules[0]; i++) {
        graft_rule rule;
        graft_symbolic_result result;
        assert_int_equal(graft_rule_parse(env, "rule", true_rules[i], &rule), GRAFT_OK);
        graft_symbolic_prove(env, &rule, NULL, 0, &options, &result);
        assert_false(result.proved);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {CHECK_TEST(test_true_rules), CHECK_TEST(test_false_rules),
                                       CHECK_TEST(test_one_context), CHECK_TEST(test_mute_solver)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

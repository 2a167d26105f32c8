/* onnx_map_functions.c - planners of operators that are made of others (powers, negation,
 * norms), and of normalisations (see onnx.h). Constants in them are `fill` nodes of
 * the weight program, so that rules can see their values. */
#include "graph/onnx/onnx.h"

#include <string.h>

static graft_onnx_operand negated(graft_onnx_plan *plan, graft_onnx_operand x)
{
    return graft_plan_add2(plan, GRAFT_OP_mul, NULL, x, graft_plan_scalar(plan, -1.0F));
}

static graft_onnx_operand reciprocal(graft_onnx_plan *plan, graft_onnx_operand x)
{
    return graft_plan_add2(plan, GRAFT_OP_div, NULL, graft_plan_scalar(plan, 1.0F), x);
}

static graft_onnx_operand square(graft_onnx_plan *plan, graft_onnx_operand x)
{
    return graft_plan_add2(plan, GRAFT_OP_mul, NULL, x, x);
}

/* ------------------------------------------------------------------------------ one input */

graft_onnx_operand graft_plan_reciprocal(graft_onnx_plan *plan)
{
    return reciprocal(plan, graft_plan_input(plan, 0));
}

graft_onnx_operand graft_plan_negation(graft_onnx_plan *plan)
{
    return negated(plan, graft_plan_input(plan, 0));
}

/* The exact form, or the one with tanh. */
graft_onnx_operand graft_plan_gelu(graft_onnx_plan *plan)
{
    const bool none = graft_onnx_says(plan->node, "approximate", "none", true);
    graft_plan_refuse_if(plan, !none && !graft_onnx_says(plan->node, "approximate", "tanh", false),
                         "an approximation that is not known");
    return graft_plan_add1(plan, none ? GRAFT_OP_gelu : GRAFT_OP_gelu_tanh, NULL,
                           graft_plan_input(plan, 0));
}

/* A scale that is one number, far from the ends of the range: then changes to and from 8 bits are
 * what rules take them for (verify/core/term.h), and its zero point; weights both. */
static bool read_scale(const graft_onnx_plan *plan, uint8_t type, int32_t *attrs)
{
    const uint8_t types[2] = {GRAFT_DTYPE_F32, type};
    const void *data[2] = {NULL, NULL};
    for (uint32_t i = 0; i < 2 && graft_plan_has_input(plan, i + 1); i++) {
        const graft_model_weight *weight =
            graft_onnx_weight_of_input(plan->reader, plan->node, i + 1);
        if (weight == NULL || weight->shape.dtype != types[i] || weight->shape.rank > 1 ||
            graft_shape_elements(&weight->shape) != 1) {
            return false;
        }
        data[i] = weight->data;
    }
    float scale = 0.0F;
    if (data[0] != NULL) {
        memcpy(&scale, data[0], sizeof(scale));
    }
    attrs[GRAFT_ATTR_quantise_scale] = graft_bits_of_float(scale);
    attrs[GRAFT_ATTR_quantise_least] = type == GRAFT_DTYPE_I8 ? INT8_MIN : 0;
    attrs[GRAFT_ATTR_quantise_zero] = data[1] == NULL          ? 0
                                      : type == GRAFT_DTYPE_I8 ? *(const int8_t *)data[1]
                                                               : *(const uint8_t *)data[1];
    return scale >= 0x1p-100F && scale <= 0x1p100F;
}

/* Inputs x, scale and maybe a zero point, whose type is that of the numbers of 8 bits. */
graft_onnx_operand graft_plan_quantise(graft_onnx_plan *plan)
{
    int32_t attrs[GRAFT_MAX_ATTRS] = {0};
    const graft_onnx_entry *zero = graft_onnx_input(plan->reader->onnx, plan->node, 2);
    uint8_t type = plan->op == GRAFT_OP_dequantise ? plan->dtype
                   : zero == NULL                  ? GRAFT_DTYPE_U8
                                  : graft_onnx_shape_of_entry(plan->reader, zero).dtype;
    const bool is_byte = (type == GRAFT_DTYPE_U8 || type == GRAFT_DTYPE_I8) &&
                         !graft_onnx_is_nibble_weight(plan->reader, plan->node, 2);
    graft_onnx_operand x = graft_plan_input(plan, 0);
    GRAFT_RETURN_IF(plan->opset < 13 || !is_byte || graft_plan_is_const(plan, x) ||
                        !read_scale(plan, type, attrs),
                    graft_plan_refuse(
                        plan, "weights, before opset 13, or other than 8 bits of one known scale"));
    return graft_plan_add1(plan, plan->op, attrs, x);
}

/* ----------------------------------------------------------------------------- two inputs */

/* The exponent: one number, real or whole. */
static float read_exponent(graft_onnx_plan *plan, const graft_shape *x)
{
    const graft_onnx_entry *entry = graft_onnx_input(plan->reader->onnx, plan->node, 1);
    graft_shape shape = {.rank = 0, .dtype = GRAFT_DTYPE_UNKNOWN};
    if (entry != NULL) {
        shape = graft_onnx_shape_of_entry(plan->reader, entry);
    }
    uint64_t count = 0;
    if (shape.rank > x->rank) {
        graft_plan_refuse(plan, "an exponent that changes the shape");
    } else if (graft_dtype_is_real(shape.dtype)) {
        const float *data = graft_plan_const_floats(plan, 1, &count);
        if (data != NULL && count == 1) {
            return data[0];
        }
    } else {
        const graft_onnx_ints *ints = graft_plan_const_ints(plan, 1);
        if (ints->count == 1) {
            return (float)ints->items[0];
        }
    }
    graft_plan_refuse(plan, "an exponent that is not one number");
    return 1.0F;
}

/* Exponents that products, roots and quotients give. */
graft_onnx_operand graft_plan_power(graft_onnx_plan *plan)
{
    graft_onnx_operand x = graft_plan_input(plan, 0);
    graft_shape shape = graft_plan_shape(plan, x);
    float exponent = read_exponent(plan, &shape);
    graft_onnx_operand y = x;
    if (exponent == 1.0F) {
        y = graft_plan_add1(plan, GRAFT_OP_identity, NULL, x);
    } else if (exponent == 2.0F) {
        y = square(plan, x);
    } else if (exponent == 3.0F) {
        y = graft_plan_add2(plan, GRAFT_OP_mul, NULL, square(plan, x), x);
    } else if (exponent == 0.5F) {
        y = graft_plan_add1(plan, GRAFT_OP_sqrt, NULL, x);
    } else if (exponent == -0.5F) {
        y = reciprocal(plan, graft_plan_add1(plan, GRAFT_OP_sqrt, NULL, x));
    } else if (exponent == -1.0F) {
        y = reciprocal(plan, x);
    } else {
        graft_plan_refuse(plan, "an exponent other than 1, 2, 3, 1/2, -1/2 and -1");
    }
    return y;
}

/* max(x, 0) + slope min(x, 0) */
graft_onnx_operand graft_plan_prelu(graft_onnx_plan *plan)
{
    graft_onnx_operand x = graft_plan_input(plan, 0);
    graft_onnx_operand slope = graft_plan_input(plan, 1);
    graft_onnx_operand below =
        graft_plan_add2(plan, GRAFT_OP_min, NULL, x, graft_plan_scalar(plan, 0.0F));
    below = graft_plan_add2(plan, GRAFT_OP_mul, NULL, below, slope);
    graft_shape before = graft_plan_shape(plan, x);
    graft_shape after = graft_plan_shape(plan, below);
    graft_plan_refuse_if(plan, !graft_shape_equal(&before, &after),
                         "slopes that do not broadcast to the input");
    graft_onnx_operand above = graft_plan_add1(plan, GRAFT_OP_relu, NULL, x);
    return graft_plan_add2(plan, GRAFT_OP_add, NULL, above, below);
}

/* Of any number of tensors. */
graft_onnx_operand graft_plan_mean(graft_onnx_plan *plan)
{
    graft_onnx_operand all = graft_plan_input(plan, 0);
    for (uint32_t k = 1; k < plan->node->n_input; k++) {
        all = graft_plan_add2(plan, GRAFT_OP_add, NULL, all, graft_plan_input(plan, k));
    }
    graft_onnx_operand count = graft_plan_scalar(plan, (float)plan->node->n_input);
    return graft_plan_add2(plan, GRAFT_OP_div, NULL, all, count);
}

/* ----------------------------------------------------------------------------- reductions */

enum { REDUCE_INPUT = 18 };

/* The sum of squares, or its root when `op` is sqrt. */
graft_onnx_operand graft_plan_reduce_squares(graft_onnx_plan *plan)
{
    graft_onnx_operand x = square(plan, graft_plan_input(plan, 0));
    x = graft_plan_reduced(plan, GRAFT_OP_reduce_sum, x, REDUCE_INPUT);
    return plan->op == GRAFT_OP_sqrt ? graft_plan_add1(plan, plan->op, NULL, x) : x;
}

graft_onnx_operand graft_plan_reduce_absolute(graft_onnx_plan *plan)
{
    graft_onnx_operand x = graft_plan_add1(plan, GRAFT_OP_abs, NULL, graft_plan_input(plan, 0));
    return graft_plan_reduced(plan, GRAFT_OP_reduce_sum, x, REDUCE_INPUT);
}

graft_onnx_operand graft_plan_global_max_pool(graft_onnx_plan *plan)
{
    graft_onnx_operand x = graft_plan_input(plan, 0);
    uint32_t rank = graft_plan_shape(plan, x).rank;
    int32_t attrs[2];
    attrs[GRAFT_ATTR_reduce_max_axes] = (int32_t)((1U << rank) - 1U) & ~3;
    attrs[GRAFT_ATTR_reduce_max_keep] = 1;
    return graft_plan_add1(plan, GRAFT_OP_reduce_max, attrs, x);
}

/* --------------------------------------------------------------------- layer normalisation */

/* The tensor seen so that all axes from `axis` on are one. */
static graft_onnx_operand join_axes(graft_onnx_plan *plan, graft_onnx_operand x, uint32_t axis)
{
    graft_shape shape = graft_plan_shape(plan, x);
    int32_t dims[GRAFT_MAX_RANK] = {0};
    int64_t joined = 1; /* At most INT32_MAX elements in all. */
    for (uint32_t i = 0; i < shape.rank; i++) {
        dims[i] = i < axis ? shape.dims[i] : 0;
        joined *= i < axis ? 1 : shape.dims[i];
    }
    dims[axis] = (int32_t)joined;
    return axis + 1U == shape.rank ? x : graft_plan_reshape(plan, x, dims, axis + 1);
}

/* sqrt(mean of squares + epsilon) of x; `attrs` are those of the mean. */
static graft_onnx_operand deviation(graft_onnx_plan *plan, graft_onnx_operand x,
                                    const int32_t *attrs, float epsilon)
{
    graft_onnx_operand v = graft_plan_add1(plan, GRAFT_OP_reduce_mean, attrs, square(plan, x));
    v = graft_plan_add2(plan, GRAFT_OP_add, NULL, v, graft_plan_scalar(plan, epsilon));
    return graft_plan_add1(plan, GRAFT_OP_sqrt, NULL, v);
}

/* 1 / sqrt(variance + epsilon) of the rows of x, the axes as 1. */
static graft_onnx_operand inverse_deviation(graft_onnx_plan *plan, graft_onnx_operand x,
                                            graft_onnx_operand mean, const int32_t *attrs)
{
    graft_onnx_operand d = graft_plan_add2(plan, GRAFT_OP_sub, NULL, x, mean);
    return reciprocal(plan, deviation(plan, d, attrs, graft_plan_float(plan, "epsilon", 1e-5F)));
}

/* Outputs 1 and 2, where something reads them. */
static void plan_statistics(graft_onnx_plan *plan, graft_onnx_operand x, uint32_t axis)
{
    uint32_t rank = graft_plan_shape(plan, x).rank;
    int32_t attrs[2];
    attrs[GRAFT_ATTR_reduce_mean_axes] =
        (int32_t)((1U << rank) - 1U) & ~(int32_t)((1U << axis) - 1U);
    attrs[GRAFT_ATTR_reduce_mean_keep] = 1;
    if (!graft_plan_is_read(plan, 1) && !graft_plan_is_read(plan, 2)) {
        return;
    }
    graft_onnx_operand mean = graft_plan_add1(plan, GRAFT_OP_reduce_mean, attrs, x);
    graft_plan_output(plan, 1, mean);
    if (graft_plan_is_read(plan, 2)) {
        graft_plan_output(plan, 2, inverse_deviation(plan, x, mean, attrs));
    }
}

/* Refuses scales that are not of the sizes of `x` from `axis` on. */
static void check_scales(graft_onnx_plan *plan, graft_onnx_operand x, uint32_t axis,
                         graft_onnx_operand scale)
{
    const graft_shape shape = graft_plan_shape(plan, x);
    const graft_shape scales = graft_plan_shape(plan, scale);
    bool fits = plan->refusal == NULL && axis < shape.rank && scales.rank == shape.rank - axis;
    for (uint32_t i = 0; fits && i < scales.rank; i++) {
        fits = scales.dims[i] == shape.dims[axis + i];
    }
    graft_plan_refuse_if(plan, !fits || graft_plan_int(plan, "stash_type", 1) != 1,
                         "scales that do not have the shape of what is normalised");
}

/* Over several axes it is seen as over one. */
graft_onnx_operand graft_plan_layer_norm(graft_onnx_plan *plan)
{
    graft_onnx_operand x = graft_plan_input(plan, 0);
    graft_onnx_operand scale = graft_plan_input(plan, 1);
    graft_shape shape = graft_plan_shape(plan, x);
    uint32_t axis = graft_plan_axis(plan, graft_plan_int(plan, "axis", -1), shape.rank);
    float epsilon = graft_plan_float(plan, "epsilon", 1e-5F);
    int32_t attrs[GRAFT_MAX_ATTRS] = {0};
    attrs[GRAFT_ATTR_layer_norm_epsilon] = graft_bits_of_float(epsilon);
    check_scales(plan, x, axis, scale);
    GRAFT_RETURN_IF(plan->refusal != NULL, graft_plan_refuse(plan, plan->refusal));
    graft_onnx_operand rows = join_axes(plan, x, axis);
    graft_onnx_operand vector = join_axes(plan, scale, 0);
    graft_shape joined = graft_plan_shape(plan, vector);
    graft_onnx_operand shift = graft_plan_has_input(plan, 2)
                                   ? join_axes(plan, graft_plan_input(plan, 2), 0)
                                   : graft_plan_constant(plan, 0.0F, joined.dims, 1);
    graft_onnx_operand inputs[3] = {rows, vector, shift};
    graft_onnx_operand y = graft_plan_add(plan, GRAFT_OP_layer_norm, attrs, inputs);
    if (axis + 1U < shape.rank) {
        y = graft_plan_reshape(plan, y, shape.dims, shape.rank);
    }
    plan_statistics(plan, x, axis);
    return y;
}

/* --------------------------------------------------------------------- other normalisations */

/* x / sqrt(mean of x x + epsilon) scale, over the axes from `axis` on, which the scale has. */
graft_onnx_operand graft_plan_rms_norm(graft_onnx_plan *plan)
{
    graft_onnx_operand x = graft_plan_input(plan, 0);
    graft_onnx_operand scale = graft_plan_input(plan, 1);
    graft_shape shape = graft_plan_shape(plan, x);
    uint32_t axis = graft_plan_axis(plan, graft_plan_int(plan, "axis", -1), shape.rank);
    check_scales(plan, x, axis, scale);
    GRAFT_RETURN_IF(plan->refusal != NULL, graft_plan_refuse(plan, plan->refusal));
    const float epsilon = graft_plan_float(plan, "epsilon", 1e-5F);
    int32_t attrs[GRAFT_MAX_ATTRS] = {0};
    attrs[GRAFT_ATTR_rms_norm_epsilon] = graft_bits_of_float(epsilon);
    x = graft_plan_add2(plan, GRAFT_OP_rms_norm, attrs, join_axes(plan, x, axis),
                        join_axes(plan, scale, 0));
    return axis + 1U == shape.rank ? x : graft_plan_reshape(plan, x, shape.dims, shape.rank);
}

graft_onnx_operand graft_plan_instance_norm(graft_onnx_plan *plan)
{
    const float epsilon = graft_plan_float(plan, "epsilon", 1e-5F);
    const graft_onnx_operand inputs[3] = {graft_plan_input(plan, 0), graft_plan_input(plan, 1),
                                          graft_plan_input(plan, 2)};
    int32_t attrs[GRAFT_MAX_ATTRS] = {0};
    attrs[GRAFT_ATTR_instance_norm_epsilon] = graft_bits_of_float(epsilon);
    return graft_plan_add(plan, GRAFT_OP_instance_norm, attrs, inputs);
}

/* -------------------------- what stays whole where a model is written: runtimes have kernels for it */

bool graft_plan_comes_apart(graft_onnx_plan *plan)
{
    graft_plan_refuse_if(plan, !graft_onnx_is_to_run(plan->reader),
                         "an operator that stays whole where a model is written");
    return plan->refusal == NULL;
}

/* Channels in groups: (x - mean) / sqrt(variance + epsilon) of each group, then a factor and an
 * offset for each channel; before opset 21 for each group. */
graft_onnx_operand graft_plan_group_norm(graft_onnx_plan *plan)
{
    enum { OPSET_CHANNELS = 21 };
    graft_onnx_operand x = graft_plan_input(plan, 0);
    graft_onnx_operand scale = graft_plan_input(plan, 1);
    graft_onnx_operand shift = graft_plan_input(plan, 2);
    const graft_shape s = graft_plan_shape(plan, x);
    const graft_shape scales = graft_plan_shape(plan, scale);
    const int32_t groups = graft_plan_int32(plan, graft_plan_int(plan, "num_groups", 0));
    const bool each = plan->opset >= OPSET_CHANNELS;
    if (!graft_plan_comes_apart(plan) || s.rank < 3 || groups < 1 || s.dims[1] % groups != 0 ||
        scales.rank != 1 || scales.dims[0] != (each ? s.dims[1] : groups) ||
        graft_plan_int(plan, "stash_type", 1) != 1) {
        return graft_plan_refuse(plan, "groups or scales that do not fit the channels");
    }
    const int32_t attrs[GRAFT_MAX_ATTRS] = {
        [GRAFT_ATTR_instance_norm_epsilon] =
            graft_bits_of_float(graft_plan_float(plan, "epsilon", 1e-5F))};
    const uint64_t count = graft_shape_elements(&s) / (uint64_t)s.dims[0] / (uint64_t)groups;
    const int32_t grouped[3] = {s.dims[0], groups, graft_plan_int32(plan, (int64_t)count)};
    const int32_t channels[GRAFT_MAX_RANK] = {s.dims[1], 1, 1, 1, 1};
    const graft_onnx_operand inputs[3] = {
        graft_plan_reshape(plan, x, grouped, 3),
        each ? graft_plan_constant(plan, 1.0F, &groups, 1) : scale,
        each ? graft_plan_constant(plan, 0.0F, &groups, 1) : shift};
    x = graft_plan_add(plan, GRAFT_OP_instance_norm, attrs, inputs);
    x = graft_plan_reshape(plan, x, s.dims, s.rank);
    if (each) {
        scale = graft_plan_reshape(plan, scale, channels, s.rank - 1U);
        shift = graft_plan_reshape(plan, shift, channels, s.rank - 1U);
        x = graft_plan_add2(plan, GRAFT_OP_mul, NULL, x, scale);
        x = graft_plan_add2(plan, GRAFT_OP_add, NULL, x, shift);
    }
    return x;
}

/* (x - mean) / (sqrt(variance) + 1e-9), over the axes 0, 2 and 3 unless others are said. */
graft_onnx_operand graft_plan_mean_variance(graft_onnx_plan *plan)
{
    graft_onnx_operand x = graft_plan_input(plan, 0);
    const graft_shape s = graft_plan_shape(plan, x);
    uint32_t count = 0;
    const int64_t *axes = graft_plan_ints(plan, "axes", &count);
    int32_t attrs[GRAFT_MAX_ATTRS] = {
        [GRAFT_ATTR_reduce_mean_axes] = 1 | 4 | 8, [GRAFT_ATTR_reduce_mean_keep] = 1};
    graft_plan_refuse_if(plan, axes == NULL && s.rank != 4, "no axes of what is no image");
    for (uint32_t i = 0; axes != NULL && i < count; i++) {
        attrs[0] = (i == 0 ? 0 : attrs[0]) | 1 << graft_plan_axis(plan, axes[i], s.rank);
    }
    GRAFT_RETURN_IF(!graft_plan_comes_apart(plan), graft_plan_refuse(plan, plan->refusal));
    const graft_onnx_operand mean = graft_plan_add1(plan, GRAFT_OP_reduce_mean, attrs, x);
    x = graft_plan_add2(plan, GRAFT_OP_sub, NULL, x, mean);
    graft_onnx_operand d = graft_plan_add2(plan, GRAFT_OP_mul, NULL, x, x);
    d = graft_plan_add1(plan, GRAFT_OP_reduce_mean, attrs, d);
    d = graft_plan_add1(plan, GRAFT_OP_sqrt, NULL, d);
    d = graft_plan_add2(plan, GRAFT_OP_add, NULL, d, graft_plan_scalar(plan, 1e-9F));
    return graft_plan_add2(plan, GRAFT_OP_div, NULL, x, d);
}

/* alpha elu(x / alpha) */
graft_onnx_operand graft_plan_celu(graft_onnx_plan *plan)
{
    const int32_t attrs[GRAFT_MAX_ATTRS] = {graft_bits_of_float(1.0F)};
    const float alpha = graft_plan_float(plan, "alpha", 1.0F);
    const graft_onnx_operand x = graft_plan_input(plan, 0);
    GRAFT_RETURN_IF(!graft_plan_comes_apart(plan) || !(alpha > 0.0F),
                    graft_plan_refuse(plan, "an alpha that is not above 0"));
    const graft_onnx_operand factor = graft_plan_scalar(plan, alpha);
    graft_onnx_operand y = graft_plan_add2(plan, GRAFT_OP_div, NULL, x, factor);
    y = graft_plan_add1(plan, plan->op, attrs, y);
    return graft_plan_add2(plan, GRAFT_OP_mul, NULL, y, factor);
}

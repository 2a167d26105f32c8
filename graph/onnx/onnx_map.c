/* onnx_map.c - planners of the operators that compute (see onnx.h). Each says what of the ONNX form
 * it takes; the rest is refused, and the node stays opaque. */
#include "graph/onnx/onnx.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------------------- elementwise */

graft_onnx_operand graft_plan_unary(graft_onnx_plan *plan)
{
    return graft_plan_add1(plan, plan->op, NULL, graft_plan_input(plan, 0));
}

/* A FUNCTION row; its attributes' `least` are their numbers where the node has none. */
graft_onnx_operand graft_plan_function(graft_onnx_plan *plan)
{
    int32_t attrs[GRAFT_MAX_ATTRS];
    for (uint32_t i = 0; i < graft_op(plan->op)->attr_count; i++) {
        const graft_attr_info *info = graft_op_attr(plan->op, i);
        attrs[i] = graft_plan_attribute(plan, info->name) == NULL
                       ? info->least
                       : graft_bits_of_float(graft_plan_float(plan, info->name, 0.0F));
    }
    return graft_plan_add1(plan, plan->op, attrs, graft_plan_input(plan, 0));
}

/* Before opset 7: `broadcast` allows b to be smaller; `axis` says where its axes start in a. */
static graft_onnx_operand align_old_operand(graft_onnx_plan *plan, graft_onnx_operand a,
                                            graft_onnx_operand b)
{
    graft_shape big = graft_plan_shape(plan, a);
    graft_shape small = graft_plan_shape(plan, b);
    if (graft_plan_int(plan, "broadcast", 0) == 0) {
        graft_plan_refuse_if(plan, !graft_shape_equal(&big, &small),
                             "unequal shapes without broadcast");
        return b;
    }
    if (graft_plan_attribute(plan, "axis") == NULL || small.rank == 0) {
        return b;
    }
    uint32_t axis = graft_plan_axis(plan, graft_plan_int(plan, "axis", 0), big.rank);
    if (plan->refusal != NULL || axis + small.rank > big.rank) {
        graft_plan_refuse(plan, "an operand that does not fit at the axis");
        return b;
    }
    int32_t dims[GRAFT_MAX_RANK];
    uint32_t rank = big.rank - axis;
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = i < small.rank ? small.dims[i] : 1;
    }
    return rank == small.rank ? b : graft_plan_reshape(plan, b, dims, rank);
}

/* A vector is a row on the left of a product and a column on the right, and its axis is none of the
 * result's. */
static graft_onnx_operand multiply_vectors(graft_onnx_plan *plan, graft_onnx_operand a,
                                           graft_onnx_operand b)
{
    const graft_shape left = graft_plan_shape(plan, a);
    const graft_shape right = graft_plan_shape(plan, b);
    const bool row = left.rank == 1;
    const bool column = right.rank == 1;
    graft_shape kept = {.rank = 0};
    a = row ? graft_plan_reshape(plan, a, (const int32_t[]){1, left.dims[0]}, 2) : a;
    b = column ? graft_plan_reshape(plan, b, (const int32_t[]){right.dims[0], 1}, 2) : b;
    const graft_onnx_operand c = graft_plan_add2(plan, GRAFT_OP_matmul, NULL, a, b);
    const graft_shape product = graft_plan_shape(plan, c);
    for (uint32_t i = 0; i < product.rank; i++) {
        if (!(row && i + 2U == product.rank) && !(column && i + 1U == product.rank)) {
            kept.dims[kept.rank++] = product.dims[i];
        }
    }
    return graft_plan_reshape(plan, c, kept.dims, kept.rank);
}

/* Also MatMul. */
graft_onnx_operand graft_plan_binary(graft_onnx_plan *plan)
{
    graft_onnx_operand a = graft_plan_input(plan, 0);
    graft_onnx_operand b = graft_plan_input(plan, 1);
    if (plan->opset < 7 && plan->op != GRAFT_OP_matmul && plan->refusal == NULL) {
        b = align_old_operand(plan, a, b);
    } else if (plan->node->n_attribute > 0) {
        graft_plan_refuse(plan, "an attribute of an older opset");
    }
    const bool vectors =
        plan->op == GRAFT_OP_matmul && plan->refusal == NULL &&
        (graft_plan_shape(plan, a).rank == 1 || graft_plan_shape(plan, b).rank == 1);
    return vectors ? multiply_vectors(plan, a, b) : graft_plan_add2(plan, plan->op, NULL, a, b);
}

/* Booleans may be constants where they are read; those that a node would make of constants alone are
 * left to who works out constants. */
static graft_onnx_operand add_boolean(graft_onnx_plan *plan, uint32_t op,
                                      const graft_onnx_operand *operands)
{
    bool all = true;
    for (uint32_t i = 0; i < graft_op(op)->input_count; i++) {
        all = all && graft_plan_is_const(plan, operands[i]);
    }
    return all ? graft_plan_refuse(plan, "booleans, or what they select, of constants alone")
               : graft_plan_add(plan, op, NULL, operands);
}

/* Less, Equal; Greater, as a > b is b < a. */
graft_onnx_operand graft_plan_compare(graft_onnx_plan *plan)
{
    const bool turned = graft_onnx_is(plan->node, "Greater");
    const graft_onnx_operand operands[2] = {graft_plan_input(plan, turned ? 1 : 0),
                                            graft_plan_input(plan, turned ? 0 : 1)};
    return add_boolean(plan, plan->op, operands);
}

/* Not, And, Or of booleans. */
graft_onnx_operand graft_plan_boolean(graft_onnx_plan *plan)
{
    graft_onnx_operand operands[2];
    plan->dtype = GRAFT_DTYPE_BOOL;
    for (uint32_t i = 0; i < graft_op(plan->op)->input_count; i++) {
        operands[i] = graft_plan_input(plan, i);
    }
    return add_boolean(plan, plan->op, operands);
}

/* One of two real tensors by booleans. */
graft_onnx_operand graft_plan_where(graft_onnx_plan *plan)
{
    const uint8_t type = plan->dtype;
    graft_onnx_operand operands[3];
    for (uint32_t i = 0; i < 3; i++) {
        plan->dtype = i == 0 ? (uint8_t)GRAFT_DTYPE_BOOL : type;
        operands[i] = graft_plan_input(plan, i);
    }
    return add_boolean(plan, GRAFT_OP_select, operands);
}

/* Of real numbers that of C's fmod, which has to be asked for. */
graft_onnx_operand graft_plan_mod(graft_onnx_plan *plan)
{
    GRAFT_RETURN_IF(graft_onnx_int(plan->node, "fmod", 0) == 0,
                    graft_plan_refuse(plan, "a remainder of the sign of what divides"));
    graft_onnx_operand a = graft_plan_input(plan, 0);
    return graft_plan_add2(plan, plan->op, NULL, a, graft_plan_input(plan, 1));
}

/* Sum, Max, Min of any number of tensors: from the left, two at a time. */
graft_onnx_operand graft_plan_chain(graft_onnx_plan *plan)
{
    graft_onnx_operand all = graft_plan_input(plan, 0);
    if (plan->node->n_input == 1) {
        all = graft_plan_add1(plan, GRAFT_OP_identity, NULL, all);
    }
    for (uint32_t k = 1; k < plan->node->n_input; k++) {
        all = graft_plan_add2(plan, plan->op, NULL, all, graft_plan_input(plan, k));
    }
    return all;
}

graft_onnx_operand graft_plan_leaky_relu(graft_onnx_plan *plan)
{
    int32_t slope = graft_bits_of_float(graft_plan_float(plan, "alpha", 0.01F));
    return graft_plan_add1(plan, GRAFT_OP_leaky_relu, &slope, graft_plan_input(plan, 0));
}

/* A bound: attribute up to opset 10, optional input since. */
static float clip_bound(graft_onnx_plan *plan, const char *name, uint32_t k, float absent)
{
    uint64_t count = 0;
    float bound = absent;
    if (plan->opset < 11) {
        bound = graft_plan_float(plan, name, absent);
    } else if (graft_plan_attribute(plan, name) != NULL) {
        graft_plan_refuse(plan, "an attribute of an older opset");
    } else if (graft_plan_has_input(plan, k)) {
        const float *data = graft_plan_const_floats(plan, k, &count);
        if (data == NULL || count != 1) {
            graft_plan_refuse(plan, "a bound that is not one number");
            return absent;
        }
        bound = data[0];
    }
    graft_plan_refuse_if(plan, isnan(bound), "a bound that is not a number");
    return bound;
}

graft_onnx_operand graft_plan_clip(graft_onnx_plan *plan)
{
    int32_t attrs[2];
    attrs[GRAFT_ATTR_clip_low] = graft_bits_of_float(clip_bound(plan, "min", 1, -FLT_MAX));
    attrs[GRAFT_ATTR_clip_high] = graft_bits_of_float(clip_bound(plan, "max", 2, FLT_MAX));
    return graft_plan_add1(plan, GRAFT_OP_clip, attrs, graft_plan_input(plan, 0));
}

/* Whether a dropout drops nothing: its ratio is 0, also while a model is trained. */
static bool drops_nothing(const graft_onnx_plan *plan)
{
    const graft_model_weight *ratio = graft_onnx_weight_of_input(plan->reader, plan->node, 1);
    float value = 1.0F;
    if (ratio != NULL && graft_dtype_is_real(ratio->shape.dtype) &&
        ratio->data_bytes == sizeof(value)) {
        memcpy(&value, ratio->data, sizeof(value));
    }
    return value == 0.0F;
}

/* At inference the identity. */
graft_onnx_operand graft_plan_dropout(graft_onnx_plan *plan)
{
    graft_plan_refuse_if(plan, plan->opset < 7 && graft_plan_int(plan, "is_test", 0) == 0,
                         "training mode");
    if (graft_plan_has_input(plan, 2) && !drops_nothing(plan)) {
        const graft_model_weight *weight = graft_onnx_weight_of_input(plan->reader, plan->node, 2);
        if (weight == NULL || weight->data_bytes != 1 || *(const uint8_t *)weight->data != 0) {
            graft_plan_refuse(plan, "training mode");
        }
    }
    return graft_plan_add1(plan, GRAFT_OP_identity, NULL, graft_plan_input(plan, 0));
}

/* ----------------------------------------------------------------------- normalisation */

/* Whether inputs 1 to 4 are weights, or known. */
static bool has_known_parameters(const graft_onnx_plan *plan)
{
    bool known = true;
    for (uint32_t k = 1; k <= 4; k++) {
        const graft_onnx_entry *entry = graft_onnx_input(plan->reader->onnx, plan->node, k);
        known = known && entry != NULL && (entry->weight != GRAFT_NONE || entry->known != NULL);
    }
    return known;
}

/* Likewise with numbers that are computed, where the model is run. */
static graft_onnx_operand plan_computed_norm(graft_onnx_plan *plan, graft_onnx_operand x)
{
    const graft_shape shape = graft_plan_shape(plan, x);
    const uint32_t rank = shape.rank < 2 ? 0 : shape.rank - 1U;
    int32_t dims[GRAFT_MAX_RANK] = {rank == 0 ? 0 : shape.dims[1], 1, 1, 1, 1, 1};
    graft_onnx_operand in[4];
    for (uint32_t k = 0; k < 4; k++) {
        in[k] = graft_plan_input(plan, k + 1);
        const graft_shape list = graft_plan_shape(plan, in[k]);
        GRAFT_RETURN_IF(rank == 0 || list.rank != 1 || list.dims[0] != dims[0],
                        graft_plan_refuse(plan, "parameters that are not one per channel"));
    }
    const graft_onnx_operand epsilon =
        graft_plan_constant(plan, graft_plan_float(plan, "epsilon", 1e-5F), dims, 1);
    graft_onnx_operand deviation = graft_plan_add2(plan, GRAFT_OP_add, NULL, in[3], epsilon);
    deviation = graft_plan_add1(plan, GRAFT_OP_sqrt, NULL, deviation);
    const graft_onnx_operand s = graft_plan_add2(plan, GRAFT_OP_div, NULL, in[0], deviation);
    graft_onnx_operand t = graft_plan_add2(plan, GRAFT_OP_mul, NULL, in[2], s);
    t = graft_plan_add2(plan, GRAFT_OP_sub, NULL, in[1], t);
    x = graft_plan_add2(plan, GRAFT_OP_mul, NULL, x, graft_plan_reshape(plan, s, dims, rank));
    return graft_plan_add2(plan, GRAFT_OP_add, NULL, x, graft_plan_reshape(plan, t, dims, rank));
}

/* Batch normalisation at inference is x s + t with s = scale / sqrt(var + epsilon) and
 * t = bias - mean s, computed in double and rounded once. */
graft_onnx_operand graft_plan_batch_norm(graft_onnx_plan *plan)
{
    enum { SCALE = 0, BIAS = 1, MEAN = 2, VARIANCE = 3, PARAMETERS = 4 };
    for (size_t k = 1; k < plan->node->n_output; k++) {
        graft_plan_refuse_if(plan, plan->node->output[k][0] != '\0',
                             "more outputs, as in training");
    }
    if ((plan->opset < 7 && graft_plan_int(plan, "is_test", 0) == 0) ||
        graft_plan_int(plan, "training_mode", 0) != 0 || graft_plan_int(plan, "spatial", 1) != 1) {
        graft_plan_refuse(plan, "training mode");
    }
    graft_onnx_operand x = graft_plan_input(plan, 0);
    if (plan->refusal == NULL && graft_onnx_is_to_run(plan->reader) &&
        !has_known_parameters(plan)) {
        return plan_computed_norm(plan, x);
    }
    graft_shape shape = graft_plan_shape(plan, x);
    double epsilon = (double)graft_plan_float(plan, "epsilon", 1e-5F);
    const float *parameters[PARAMETERS];
    uint32_t channels = shape.rank < 2 ? 0 : (uint32_t)shape.dims[1];
    for (uint32_t k = 0; k < PARAMETERS; k++) {
        uint64_t count = 0;
        parameters[k] = graft_plan_const_floats(plan, k + 1, &count);
        graft_plan_refuse_if(plan, count != channels, "parameters that are not one per channel");
    }
    GRAFT_RETURN_IF(plan->refusal != NULL, graft_plan_refuse(plan, plan->refusal));
    float *scale = GRAFT_NEW(plan->reader->arena, float, channels);
    float *shift = GRAFT_NEW(plan->reader->arena, float, channels);
    for (uint32_t c = 0; c < channels; c++) {
        double s = (double)parameters[SCALE][c] / sqrt((double)parameters[VARIANCE][c] + epsilon);
        scale[c] = (float)s;
        shift[c] = (float)((double)parameters[BIAS][c] - (double)parameters[MEAN][c] * s);
        graft_plan_refuse_if(plan, !isfinite(scale[c]) || !isfinite(shift[c]),
                             "parameters that give no finite scale and shift");
    }
    graft_onnx_operand inputs[3] = {x, graft_plan_weight(plan, scale, channels),
                                    graft_plan_weight(plan, shift, channels)};
    return graft_plan_add(plan, GRAFT_OP_scale_shift, NULL, inputs);
}

/* Up to opset 12 all axes from `axis` on are one: the tensor is seen as a matrix. */
static graft_onnx_operand plan_old_softmax(graft_onnx_plan *plan, graft_onnx_operand x)
{
    graft_shape shape = graft_plan_shape(plan, x);
    int64_t axis = graft_plan_int(plan, "axis", 1);
    uint32_t start = axis == shape.rank ? shape.rank : graft_plan_axis(plan, axis, shape.rank);
    uint32_t wide = shape.rank; /* The only axis from `start` on that is longer than 1. */
    uint32_t wide_count = 0;
    int64_t sizes[2] = {1, 1};
    for (uint32_t i = 0; i < shape.rank; i++) {
        sizes[i >= start] *= shape.dims[i];
        if (i >= start && (shape.dims[i] > 1 || i == shape.rank - 1U)) {
            wide = shape.dims[i] > 1 || wide_count == 0 ? i : wide;
            wide_count += shape.dims[i] > 1;
        }
    }
    if (wide_count <= 1 && wide < shape.rank) {
        int32_t attr = (int32_t)wide;
        return graft_plan_add1(plan, plan->op, &attr, x);
    }
    int32_t matrix[2] = {graft_plan_int32(plan, sizes[0]), graft_plan_int32(plan, sizes[1])};
    int32_t last = 1;
    graft_onnx_operand flat = graft_plan_reshape(plan, x, matrix, 2);
    graft_onnx_operand soft = graft_plan_add1(plan, plan->op, &last, flat);
    return graft_plan_reshape(plan, soft, shape.dims, shape.rank);
}

/* Softmax or its logarithm, whose attribute is the same. */
graft_onnx_operand graft_plan_softmax(graft_onnx_plan *plan)
{
    graft_onnx_operand x = graft_plan_input(plan, 0);
    graft_shape shape = graft_plan_shape(plan, x);
    GRAFT_RETURN_IF(plan->refusal != NULL, graft_plan_refuse(plan, plan->refusal));
    if (plan->opset < 13) {
        return plan_old_softmax(plan, x);
    }
    int32_t axis = (int32_t)graft_plan_axis(plan, graft_plan_int(plan, "axis", -1), shape.rank);
    return graft_plan_add1(plan, plan->op, &axis, x);
}

graft_onnx_operand graft_plan_reduced(graft_onnx_plan *plan, uint32_t op, graft_onnx_operand x,
                                      int64_t input_since)
{
    graft_shape shape = graft_plan_shape(plan, x);
    uint32_t count = 0;
    const int64_t *axes = graft_plan_ints(plan, "axes", &count);
    if (plan->opset >= input_since && graft_plan_has_input(plan, 1)) {
        const graft_onnx_ints *ints = graft_plan_const_ints(plan, 1);
        axes = ints->items;
        count = ints->count;
    }
    int32_t mask = 0;
    for (uint32_t i = 0; i < count; i++) {
        mask |= 1 << graft_plan_axis(plan, axes[i], shape.rank);
    }
    if (count == 0) {
        mask = (1 << shape.rank) - 1;
    }
    int32_t attrs[2]; /* All reductions have the same. */
    attrs[GRAFT_ATTR_reduce_mean_axes] = mask;
    attrs[GRAFT_ATTR_reduce_mean_keep] = graft_plan_int(plan, "keepdims", 1) != 0;
    bool nothing =
        shape.rank == 0 || (count == 0 && graft_plan_int(plan, "noop_with_empty_axes", 0) != 0);
    return nothing ? graft_plan_add1(plan, GRAFT_OP_identity, NULL, x)
                   : graft_plan_add1(plan, op, attrs, x);
}

/* First opset in which a reduction takes its axes as an input. */
enum { REDUCE_SUM_INPUT = 13, REDUCE_INPUT = 18 };

graft_onnx_operand graft_plan_reduce(graft_onnx_plan *plan)
{
    int64_t since = plan->op == GRAFT_OP_reduce_sum ? REDUCE_SUM_INPUT : REDUCE_INPUT;
    return graft_plan_reduced(plan, plan->op, graft_plan_input(plan, 0), since);
}

/* ---------------------------------------------------------------------------------- gemm */

static graft_onnx_operand swap_axes(graft_onnx_plan *plan, graft_onnx_operand x)
{
    static const int32_t swapped[GRAFT_MAX_ATTRS] = {1, 0};
    return graft_plan_add1(plan, GRAFT_OP_transpose, swapped, x);
}

/* factor x, in the weight program. */
static graft_onnx_operand scale_weight(graft_onnx_plan *plan, graft_onnx_operand x, float factor)
{
    return graft_plan_add2(plan, GRAFT_OP_mul, NULL, x, graft_plan_scalar(plan, factor));
}

/* Multiplies the product by alpha: whichever factor is a weight takes it. */
static void apply_alpha(graft_onnx_plan *plan, float alpha, graft_onnx_operand *a,
                        graft_onnx_operand *b)
{
    if (alpha == 1.0F) {
        return;
    }
    if (graft_plan_is_const(plan, *b)) {
        *b = scale_weight(plan, *b, alpha);
    } else if (graft_plan_is_const(plan, *a)) {
        *a = scale_weight(plan, *a, alpha);
    } else {
        graft_plan_refuse(plan, "alpha on a product of two tensors");
    }
}

/* alpha A' B' + beta C for matrices; C broadcasts to the product. */
graft_onnx_operand graft_plan_gemm(graft_onnx_plan *plan)
{
    graft_onnx_operand inputs[3] = {graft_plan_input(plan, 0), graft_plan_input(plan, 1)};
    float beta = graft_plan_float(plan, "beta", 1.0F);
    bool has_c = graft_plan_has_input(plan, 2) && beta != 0.0F;
    GRAFT_RETURN_IF(graft_plan_shape(plan, inputs[0]).rank != 2 ||
                        graft_plan_shape(plan, inputs[1]).rank != 2,
                    graft_plan_refuse(plan, "a factor that is not a matrix"));
    apply_alpha(plan, graft_plan_float(plan, "alpha", 1.0F), &inputs[0], &inputs[1]);
    if (graft_plan_int(plan, "transA", 0) != 0) {
        inputs[0] = swap_axes(plan, inputs[0]);
    }
    if (graft_plan_int(plan, "transB", 0) != 0) {
        inputs[1] = swap_axes(plan, inputs[1]);
    }
    if (!has_c) {
        return graft_plan_add(plan, plan->op, NULL, inputs);
    }
    inputs[2] = graft_plan_input(plan, 2);
    graft_shape c = graft_plan_shape(plan, inputs[2]);
    if (beta != 1.0F && !graft_plan_is_const(plan, inputs[2])) {
        graft_plan_refuse(plan, "beta on a tensor that is not a weight");
    } else if (beta != 1.0F) {
        inputs[2] = scale_weight(plan, inputs[2], beta);
    }
    int32_t columns = graft_plan_shape(plan, inputs[1]).dims[1];
    bool is_row = c.rank >= 1 && c.rank <= 2 && c.dims[c.rank - 1] == columns &&
                  (c.rank == 1 || c.dims[0] == 1);
    if (is_row && c.rank == 2) {
        inputs[2] = graft_plan_reshape(plan, inputs[2], &columns, 1);
    }
    graft_onnx_operand product;
    if (is_row) {
        product = graft_plan_add(plan, GRAFT_OP_matmul_bias, NULL, inputs);
    } else {
        graft_onnx_operand bare = graft_plan_add(plan, plan->op, NULL, inputs);
        graft_shape shape = graft_plan_shape(plan, bare);
        product = graft_plan_add2(plan, GRAFT_OP_add, NULL, bare, inputs[2]);
        graft_shape sum = graft_plan_shape(plan, product);
        graft_plan_refuse_if(plan, !graft_shape_equal(&shape, &sum),
                             "a bias larger than the product");
    }
    return product;
}

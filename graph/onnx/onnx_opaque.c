/* onnx_opaque.c - shapes of what opaque nodes compute, where they are known although rules never
 * see the node: what stands behind it can still be optimised when the file declares no shapes. */
#include "graph/meaning/quantised.h"
#include "graph/onnx/onnx.h"
#include "graph/onnx/onnx_infer.h"

#include <string.h>

/* Operators that Graft does not know and whose first output has the shape and type of their first
 * input. */
static const char same_shape_types[] =
    "Abs Acos Acosh Asin Asinh Atan Atanh Ceil Celu Cos Cosh CumSum Elu Floor Gelu Hardmax "
    "HardSigmoid HardSwish Identity Log LRN Mish Neg PRelu InstanceNormalization Reciprocal Round "
    "Selu Shrink Sign LayerNormalization Sin Sinh Softplus Softsign Tan BatchNormalization "
    "LogSoftmax LpNormalization MeanVarianceNormalization ThresholdedRelu Clip LeakyRelu "
    "Softmax";

static graft_shape unknown_shape(void) { return (graft_shape){.rank = GRAFT_RANK_UNKNOWN}; }

bool graft_onnx_is_nibble_weight(const graft_onnx_reader *reader, const Onnx__NodeProto *node,
                                 size_t k)
{
    const graft_model_weight *weight = graft_onnx_weight_of_input(reader, node, k);
    return weight != NULL && graft_onnx_is_of_nibbles(weight->tensor);
}

static graft_shape shape_of_cast(graft_onnx_reader *reader, const Onnx__NodeProto *node)
{
    const Onnx__AttributeProto *to = graft_onnx_attribute(node, "to");
    graft_shape shape = graft_onnx_shape_of_input(reader, node, 0);
    bool known = to != NULL && to->has_i && graft_onnx_type_bytes((int32_t)to->i) > 0;
    if (shape.rank == GRAFT_RANK_UNKNOWN || !known || to->i > UINT8_MAX) {
        return unknown_shape();
    }
    shape.dtype = graft_onnx_dtype(reader, to->i);
    return shape;
}

/* The axis of the data is replaced by the axes of the places. */
graft_shape graft_onnx_gathered_shape(const graft_shape *data, const graft_shape *places,
                                      int64_t axis)
{
    if (data->rank > GRAFT_MAX_RANK || places->rank > GRAFT_MAX_RANK) {
        return unknown_shape();
    }
    axis += axis < 0 ? data->rank : 0;
    uint32_t rank = (uint32_t)data->rank + places->rank - 1U;
    if (axis < 0 || axis >= data->rank || rank > GRAFT_MAX_RANK) {
        return unknown_shape();
    }
    graft_shape shape = {.rank = (uint8_t)rank, .dtype = data->dtype};
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t a = (uint32_t)axis;
        shape.dims[i] = i < a                  ? data->dims[i]
                        : i < a + places->rank ? places->dims[i - a]
                                               : data->dims[i + 1U - places->rank];
    }
    return shape;
}

static graft_shape shape_of_gather(graft_onnx_reader *reader, const Onnx__NodeProto *node)
{
    const graft_shape data = graft_onnx_shape_of_input(reader, node, 0);
    const graft_shape places = graft_onnx_shape_of_input(reader, node, 1);
    return graft_onnx_gathered_shape(&data, &places, graft_onnx_int(node, "axis", 0));
}

/* As its planner says, of whatever type. */
static graft_shape shape_of_unsqueeze(graft_onnx_reader *reader, const Onnx__NodeProto *node)
{
    const graft_shape in = graft_onnx_shape_of_input(reader, node, 0);
    graft_onnx_plan plan;
    graft_onnx_plan_moves(reader, node, &plan);
    graft_shape shape =
        plan.refusal == NULL ? graft_plan_shape(&plan, plan.outputs[0]) : unknown_shape();
    shape.dtype = in.dtype;
    return shape;
}

/* Its second input is the scale, its third the zero point. */
static graft_shape shape_of_quantised(graft_onnx_reader *reader, const Onnx__NodeProto *node,
                                      bool quantises)
{
    graft_shape shape = graft_onnx_shape_of_input(reader, node, 0);
    graft_shape like = graft_onnx_shape_of_input(reader, node, quantises ? 2 : 1);
    const Onnx__AttributeProto *type = graft_onnx_attribute(node, "output_dtype");
    shape.dtype = GRAFT_DTYPE_U8;
    if (like.rank != GRAFT_RANK_UNKNOWN) {
        shape.dtype = quantises && graft_onnx_is_nibble_weight(reader, node, 2)
                          ? GRAFT_DTYPE_UNKNOWN
                          : like.dtype;
    } else if (type != NULL && type->i > 0 && type->i <= UINT8_MAX) {
        shape.dtype = (uint8_t)type->i;
    }
    return shape;
}

static graft_shape shape_of_operator(graft_onnx_reader *reader, const Onnx__NodeProto *node)
{
    const char *type = text_or_empty(node->op_type);
    if (strcmp(type, "Cast") == 0) {
        return shape_of_cast(reader, node);
    }
    if (strcmp(type, "CastLike") == 0) {
        graft_shape shape = graft_onnx_shape_of_input(reader, node, 0);
        shape.dtype = graft_onnx_shape_of_input(reader, node, 1).dtype;
        return shape;
    }
    if (strcmp(type, "Gather") == 0) {
        return shape_of_gather(reader, node);
    }
    if (strcmp(type, "Unsqueeze") == 0) {
        return shape_of_unsqueeze(reader, node);
    }
    bool quantises = strcmp(type, "QuantizeLinear") == 0;
    if (quantises || strcmp(type, "DequantizeLinear") == 0) {
        return shape_of_quantised(reader, node, quantises);
    }
    return graft_onnx_lists(same_shape_types, node->op_type)
               ? graft_onnx_shape_of_input(reader, node, 0)
               : unknown_shape();
}

/* --------------------------------------------------------------- ONNX's own inference */

#ifdef GRAFT_WITH_LIBONNX
enum { DATA_MOST = 8192 }; /* Bytes; what shapes depend on is shorter. */

/* A weight is there as the file has it: the engine knows none without elements. */
static bool describe_weight(const graft_model_weight *weight, graft_infer_tensor *tensor)
{
    if (weight->tensor == NULL || weight->tensor->n_dims > GRAFT_INFER_RANK_MOST) {
        return false;
    }
    *tensor = (graft_infer_tensor){.known = true,
                                   .dtype = weight->tensor->data_type,
                                   .rank = (uint32_t)weight->tensor->n_dims};
    for (uint32_t i = 0; i < tensor->rank; i++) {
        tensor->dims[i] = weight->tensor->dims[i];
    }
    if (weight->data != NULL && weight->data_bytes <= DATA_MOST &&
        weight->shape.dtype == tensor->dtype && !graft_half_is((uint32_t)tensor->dtype)) {
        tensor->data = weight->data;
        tensor->data_bytes = weight->data_bytes;
    }
    return true;
}

static void describe_shape(const graft_shape *shape, graft_infer_tensor *tensor)
{
    *tensor = (graft_infer_tensor){
        .known = shape->rank <= GRAFT_MAX_RANK, .dtype = shape->dtype, .rank = shape->rank};
    for (uint32_t i = 0; tensor->known && i < tensor->rank; i++) {
        tensor->dims[i] = shape->dims[i];
    }
}

/* What is known, and small or a list, is there as it is; it may have no elements. */
static void describe_known(const graft_onnx_entry *entry, graft_infer_tensor *tensor)
{
    const graft_model_weight *known = entry->known;
    const bool small = known->data_bytes <= DATA_MOST && !graft_half_is(known->shape.dtype);
    describe_shape(&known->shape, tensor);
    if (small || entry->ints != NULL) {
        tensor->data = known->data;
        tensor->data_bytes = known->data_bytes;
    }
}

static bool describe_entry(graft_onnx_reader *reader, graft_onnx_entry *entry,
                           graft_infer_tensor *tensor)
{
    if (entry->known != NULL &&
        (entry->of_data || entry->ints != NULL || entry->known->data_bytes == 0)) {
        describe_known(entry, tensor);
        return tensor->known;
    }
    if (entry->weight != GRAFT_NONE) {
        return describe_weight(&reader->weights[entry->weight], tensor);
    }
    const graft_shape shape = graft_onnx_shape_of_entry(reader, entry);
    describe_shape(&shape, tensor);
    return tensor->known && shape.dtype != 0;
}

static void infer(graft_onnx_reader *reader, const Onnx__NodeProto *node, size_t k,
                  graft_infer_tensor *output)
{
    GRAFT_SCOPED(reader->env->scratch);
    graft_infer_tensor *inputs = GRAFT_NEW(reader->env->scratch, graft_infer_tensor, node->n_input);
    uint8_t *bytes = NULL;
    size_t size = 0;
    bool described = reader->onnx->opset <= GRAFT_ONNX_OPSET_LAST && !reader->onnx->keep_all;
    for (size_t i = 0; i < node->n_input && described; i++) {
        graft_onnx_entry *entry = graft_onnx_input(reader->onnx, node, i);
        described = entry == NULL || describe_entry(reader, entry, &inputs[i]);
    }
    if (described) {
        graft_wire_encode(reader->env->scratch, &node->base, &bytes, &size);
        graft_onnx_infer(bytes, size, reader->onnx->opset, inputs, k, output);
    }
}
#else
static void infer(graft_onnx_reader *reader, const Onnx__NodeProto *node, size_t k,
                  graft_infer_tensor *output)
{
    (void)reader;
    (void)node;
    (void)k;
    (void)output;
}
#endif

static graft_shape shape_by_library(graft_onnx_reader *reader, const Onnx__NodeProto *node,
                                    size_t k)
{
    graft_infer_tensor output = {.known = false};
    graft_shape shape = unknown_shape();
    infer(reader, node, k, &output);
    if (output.known && output.rank <= GRAFT_MAX_RANK && output.dtype <= UINT8_MAX) {
        shape = (graft_shape){.rank = (uint8_t)output.rank,
                              .dtype = graft_onnx_dtype(reader, output.dtype)};
        for (uint32_t i = 0; i < output.rank; i++) {
            bool fits = output.dims[i] >= 0 && output.dims[i] <= INT32_MAX;
            shape.dims[i] =
                fits ? (int32_t)output.dims[i] : -1; /* -1 is not sound, neither is 0. */
        }
    }
    return shape;
}

const graft_model_weight *graft_onnx_without_elements(graft_onnx_reader *reader,
                                                      const Onnx__NodeProto *node)
{
    static const int64_t nothing = 0;
    graft_model_weight *known = NULL;
    const graft_shape shape = shape_by_library(reader, node, 0);
    bool empty = false;
    bool fits = shape.rank <= GRAFT_MAX_RANK && node->n_output == 1;
    for (uint32_t i = 0; fits && i < shape.rank; i++) {
        fits = shape.dims[i] >= 0;
        empty = empty || shape.dims[i] == 0;
    }
    if (fits && empty) {
        known = GRAFT_NEW(reader->arena, graft_model_weight, 1);
        *known = (graft_model_weight){.name = node->output[0], .shape = shape, .data = &nothing};
    }
    return known;
}

/* The shape to which tensors of such shapes are stretched, of the last one's type. */
static graft_shape stretched_shape(const graft_shape *in, size_t count, bool tells)
{
    graft_shape shape = {.rank = 0};
    for (size_t i = 0; i < count; i++) {
        shape.rank = in[i].rank > shape.rank ? in[i].rank : shape.rank;
        shape.dtype = tells ? (uint8_t)GRAFT_DTYPE_BOOL : in[i].dtype;
    }
    for (uint32_t axis = 0; axis < shape.rank && shape.rank <= GRAFT_MAX_RANK; axis++) {
        shape.dims[axis] = 1;
        for (size_t i = 0; i < count; i++) {
            const uint32_t missing = (uint32_t)shape.rank - in[i].rank;
            const int32_t size = axis < missing ? 1 : in[i].dims[axis - missing];
            shape.dims[axis] = size == 1 ? shape.dims[axis] : size;
        }
    }
    return shape.rank <= GRAFT_MAX_RANK ? shape : unknown_shape();
}

/* Of no regions. The attribute that onnx_stage.c spells out is unknown to the library before its
 * opset. */
static graft_shape shape_of_no_regions(const Onnx__NodeProto *node, const graft_shape *in)
{
    const int64_t height = graft_onnx_int(node, "output_height", 1);
    const int64_t width = graft_onnx_int(node, "output_width", 1);
    const bool fits = node->n_input == 3 && in[0].rank == 4 && in[1].rank == 2 &&
                      in[1].dims[0] == 0 && height >= 0 && height <= INT32_MAX && width >= 0 &&
                      width <= INT32_MAX;
    graft_shape shape = in[0];
    shape.dims[0] = 0;
    shape.dims[2] = fits ? (int32_t)height : 0;
    shape.dims[3] = fits ? (int32_t)width : 0;
    return fits ? shape : unknown_shape();
}

graft_shape graft_onnx_shape_of_none(graft_onnx_reader *reader, const Onnx__NodeProto *node,
                                     const graft_shape *in, size_t k)
{
    static const char same[] = "Erf Exp HardSwish Relu Sigmoid Sqrt Tanh";
    static const char pairs[] = "Add Sub Mul Div Pow Mod Min Max Mean Sum Where";
    static const char tests[] = "And Or Xor Equal Less Greater LessOrEqual GreaterOrEqual";
    const bool tells = graft_onnx_lists(tests, node->op_type);
    if (node->n_input == 0 || in[0].rank == GRAFT_RANK_UNKNOWN || k >= node->n_output) {
        return unknown_shape();
    }
    if (graft_onnx_lists(same_shape_types, node->op_type) ||
        graft_onnx_lists(same, node->op_type)) {
        return k == 0 ? in[0] : unknown_shape();
    }
    if (tells || graft_onnx_lists(pairs, node->op_type)) {
        return k == 0 ? stretched_shape(in, node->n_input, tells) : unknown_shape();
    }
    if (strcmp(node->op_type, "RoiAlign") == 0) {
        return k == 0 ? shape_of_no_regions(node, in) : unknown_shape();
    }
    return strcmp(node->op_type, "Gather") == 0
               ? graft_onnx_gathered_shape(&in[0], &in[1], graft_onnx_int(node, "axis", 0))
               : shape_by_library(reader, node, k);
}

/* A tensor without elements, or with more than the engine counts, is not known to it. */
static bool is_sound(const graft_shape *shape)
{
    bool sound = shape->rank <= GRAFT_MAX_RANK;
    for (uint32_t i = 0; sound && i < shape->rank; i++) {
        sound = shape->dims[i] >= 1;
    }
    return sound && graft_shape_elements(shape) <= INT32_MAX;
}

graft_shape graft_onnx_shape_of_opaque(graft_onnx_reader *reader, const Onnx__NodeProto *node,
                                       size_t k)
{
    const graft_onnx_entry *entry = graft_onnx_entry_named(reader->onnx, node->output[k]);
    graft_shape shape = unknown_shape();
    if (entry != NULL) {
        shape = graft_onnx_shape_of_type(reader, entry->type);
    }
    if (shape.rank == GRAFT_RANK_UNKNOWN && k == 0 &&
        (text_or_empty(node->domain)[0] == '\0' || graft_quantised_is_change(node))) {
        shape = shape_of_operator(reader, node);
    }
    if (shape.rank == GRAFT_RANK_UNKNOWN) {
        shape = graft_onnx_shape_of_foreign(reader, node, (uint32_t)k);
    }
    if (shape.rank == GRAFT_RANK_UNKNOWN && text_or_empty(node->domain)[0] == '\0') {
        shape = shape_by_library(reader, node, k);
    }
    return is_sound(&shape) ? shape : unknown_shape();
}

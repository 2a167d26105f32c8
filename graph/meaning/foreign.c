/* foreign.c - the table of operators that only run (see foreign.h). */
#include "graph/meaning/foreign_rows.h"

#include <string.h>

typedef struct {
    const char *op_type;
    const char *attributes; /* Those that are read or say nothing; a node with others is not run. */
    graft_foreign_reader *read; /* NULL: no attributes. */
    graft_foreign_shaper *shape;
    graft_foreign_runner *run;
    uint8_t code;   /* graft_foreign_code, of rows that share a runner. */
    uint8_t least;  /* Inputs that must be given... */
    uint8_t most;   /* ...and may be; all of them are read. */
    bool by_number; /* The shape of the result depends on elements. */
    uint8_t outputs;
    graft_foreign_joint_runner *run_all; /* Instead of `run`. */
    graft_foreign_keeper *keep;          /* NULL: nothing. */
    uint32_t kept;                       /* Bit k: of input k. */
} foreign_row;

#define FULL(op_type, attributes, read, name, code, least, most, by_number, outputs)               \
    {                                                                                              \
        op_type, attributes, read, graft_foreign_##name##_shape, graft_foreign_##name, code,       \
            least, most, by_number, outputs, NULL, NULL, 0                                         \
    }
#define JOINT(op_type, attributes, read, name, least, most, by_number, outputs, keep, kept)        \
    {                                                                                              \
        op_type, attributes, read, graft_foreign_##name##_shape, NULL, 0, least, most, by_number,  \
            outputs, graft_foreign_##name, keep, kept                                              \
    }
#define KEPT(op_type, attributes, read, name, least, most, keep, kept)                             \
    {                                                                                              \
        op_type, attributes, read, graft_foreign_##name##_shape, graft_foreign_##name, 0, least,   \
            most, false, 1, NULL, graft_foreign_keep_##keep, kept                                  \
    }
#define ROW(op_type, attributes, read, name, least, most, by_number)                               \
    FULL(op_type, attributes, read, name, 0, least, most, by_number, 1)
#define ONE(op_type, code) FULL(op_type, "", NULL, one, code, 1, 1, false, 1)
#define TWO(op_type, code) FULL(op_type, "", NULL, two, code, 2, 2, false, 1)
#define MAP(op_type, code) FULL(op_type, "alpha", graft_foreign_read_map, map, code, 4, 5, false, 1)
#define REDUCE(op_type, code)                                                                      \
    FULL(op_type, "axes keepdims noop_with_empty_axes", graft_foreign_read_reduce, reduce, code,   \
         1, 2, true, 1)
#define ARG(op_type, code)                                                                         \
    FULL(op_type, "axis keepdims select_last_index", graft_foreign_read_arg, arg, code, 1, 1,      \
         false, 1)
#define INDEX(op_type, attributes, name, inputs)                                                   \
    ROW(op_type, attributes, graft_foreign_read_index, name, inputs, inputs, false)
#define BYTES(op_type, code) FULL(op_type, "", NULL, bytes, code, 7, 8, false, 1)

#define RESIZE_ATTRIBUTES                                                                          \
    "antialias coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value "  \
    "keep_aspect_ratio_policy mode nearest_mode"
#define LSTM_ATTRIBUTES "direction hidden_size input_forget layout"
#define CONV_ATTRIBUTES "auto_pad dilations group kernel_shape pads strides"

static const foreign_row rows[] = {
    ONE("Abs", GRAFT_FOREIGN_ABS),
    ONE("Neg", GRAFT_FOREIGN_NEG),
    ONE("Sign", GRAFT_FOREIGN_SIGN),
    ONE("Ceil", GRAFT_FOREIGN_CEIL),
    ONE("Floor", GRAFT_FOREIGN_FLOOR),
    ONE("Round", GRAFT_FOREIGN_ROUND),
    ONE("Tan", GRAFT_FOREIGN_TAN),
    ONE("Asin", GRAFT_FOREIGN_ASIN),
    ONE("Acos", GRAFT_FOREIGN_ACOS),
    ONE("Atan", GRAFT_FOREIGN_ATAN),
    ONE("Sinh", GRAFT_FOREIGN_SINH),
    ONE("Asinh", GRAFT_FOREIGN_ASINH),
    ONE("Acosh", GRAFT_FOREIGN_ACOSH),
    ONE("Atanh", GRAFT_FOREIGN_ATANH),
    FULL("Shrink", "bias lambd", graft_foreign_read_shrink, one, GRAFT_FOREIGN_SHRINK, 1, 1, false,
         1),
    FULL("ThresholdedRelu", "alpha", graft_foreign_read_above, one, GRAFT_FOREIGN_ABOVE, 1, 1,
         false, 1),
    ONE("IsNaN", GRAFT_FOREIGN_IS_NAN),
    FULL("IsInf", "detect_negative detect_positive", graft_foreign_read_inf, one, 0, 1, 1, false,
         1),
    ONE("BitwiseNot", GRAFT_FOREIGN_BIT_NOT),
    ONE("Not", GRAFT_FOREIGN_NOT),
    TWO("Equal", GRAFT_FOREIGN_EQUAL),
    TWO("Less", GRAFT_FOREIGN_LESS),
    TWO("Greater", GRAFT_FOREIGN_GREATER),
    TWO("LessOrEqual", GRAFT_FOREIGN_AT_MOST),
    TWO("GreaterOrEqual", GRAFT_FOREIGN_AT_LEAST),
    TWO("And", GRAFT_FOREIGN_AND),
    TWO("Or", GRAFT_FOREIGN_OR),
    TWO("Xor", GRAFT_FOREIGN_XOR),
    TWO("Add", GRAFT_FOREIGN_ADD),
    TWO("Sub", GRAFT_FOREIGN_SUB),
    TWO("Mul", GRAFT_FOREIGN_MUL),
    TWO("Div", GRAFT_FOREIGN_DIV),
    FULL("Mod", "fmod", graft_foreign_read_mod, two, 0, 2, 2, false, 1),
    TWO("Pow", GRAFT_FOREIGN_POW),
    TWO("BitwiseAnd", GRAFT_FOREIGN_BIT_AND),
    TWO("BitwiseOr", GRAFT_FOREIGN_BIT_OR),
    TWO("BitwiseXor", GRAFT_FOREIGN_BIT_XOR),
    TWO("Min", GRAFT_FOREIGN_MIN),
    TWO("Max", GRAFT_FOREIGN_MAX),
    ROW("Where", "", NULL, where, 3, 3, false),
    ROW("Clip", "", NULL, clip, 1, 3, false),
    ROW("Range", "", NULL, range, 3, 3, true),
    ROW("Expand", "", NULL, expand, 2, 2, true),
    ROW("Tile", "", NULL, tile, 2, 2, true),
    ROW("Pad", "mode pads value", graft_foreign_read_pad, pad, 1, 4, true),
    ROW("Slice", "axes ends starts", graft_foreign_read_slice, slice, 3, 5, true),
    ROW("Transpose", "perm", graft_foreign_read_transpose, transpose, 1, 1, false),
    ROW("Concat", "axis", graft_foreign_read_concat, concat, 1, GRAFT_OPAQUE_INPUTS_MOST, false),
    FULL("Split", "axis num_outputs split", graft_foreign_read_split, split, 0, 1, 2, true,
         GRAFT_OPAQUE_OUTPUTS_MOST),
    REDUCE("ReduceSum", GRAFT_FOREIGN_SUM),
    REDUCE("ReduceMean", GRAFT_FOREIGN_SUM_MEAN),
    REDUCE("ReduceProd", GRAFT_FOREIGN_SUM_PRODUCT),
    REDUCE("ReduceMax", GRAFT_FOREIGN_SUM_MAX),
    REDUCE("ReduceMin", GRAFT_FOREIGN_SUM_MIN),
    REDUCE("ReduceL1", GRAFT_FOREIGN_SUM_ABS),
    REDUCE("ReduceSumSquare", GRAFT_FOREIGN_SUM_SQUARE),
    REDUCE("ReduceL2", GRAFT_FOREIGN_SUM_ROOT),
    REDUCE("ReduceLogSum", GRAFT_FOREIGN_SUM_LOG),
    REDUCE("ReduceLogSumExp", GRAFT_FOREIGN_SUM_EXP),
    ARG("ArgMax", GRAFT_FOREIGN_SUM_MAX),
    ARG("ArgMin", GRAFT_FOREIGN_SUM_MIN),
    JOINT("TopK", "axis k largest sorted", graft_foreign_read_top, top, 1, 2, true, 2, NULL, 0),
    ROW("CumSum", "exclusive reverse", graft_foreign_read_cumsum, cumsum, 2, 2, true),
    ROW("Einsum", "equation", graft_foreign_read_einsum, einsum, 1, 3, false),
    INDEX("GatherElements", "axis", gather_elements, 2),
    INDEX("GatherND", "batch_dims", gather_nd, 2),
    INDEX("ScatterElements", "axis reduction", scatter_elements, 3),
    INDEX("ScatterND", "reduction", scatter_nd, 3),
    ROW("OneHot", "axis", graft_foreign_read_one_hot, one_hot, 3, 3, true),
    ROW("Trilu", "upper", graft_foreign_read_trilu, trilu, 1, 2, true),
    ROW("EyeLike", "dtype k", graft_foreign_read_eye, eye, 1, 1, false),
    ROW("ReverseSequence", "batch_axis time_axis", graft_foreign_read_reverse, reverse, 2, 2,
        false),
    ROW("ai.onnx.ml:ArrayFeatureExtractor", "", NULL, features, 2, 2, false),
    ROW("Resize", RESIZE_ATTRIBUTES, graft_foreign_read_resize, resize, 1, 4, true),
    ROW("Upsample", "mode", graft_foreign_read_upsample, resize, 2, 2, true),
    ROW("GridSample", "align_corners mode padding_mode", graft_foreign_read_grid, grid, 2, 2,
        false),
    ROW("LRN", "alpha beta bias size", graft_foreign_read_lrn, lrn, 1, 1, false),
    JOINT("LSTM", LSTM_ATTRIBUTES, graft_foreign_read_lstm, lstm, 3, 8, false, 3, NULL, 0),
    JOINT("com.microsoft:DynamicQuantizeLSTM", LSTM_ATTRIBUTES, graft_foreign_read_lstm, lstm, 3,
          12, false, 3, graft_foreign_keep_lstm, 1U << 1 | 1U << 2 | 1U << 9 | 1U << 11),
    KEPT("ConvInteger", CONV_ATTRIBUTES, graft_foreign_read_conv, conv_integer, 2, 4, conv,
         1U << 1 | 1U << 3),
    KEPT("MatMulInteger", "", NULL, matmul, 2, 4, matmul, 1U << 1 | 1U << 3),
    JOINT("DynamicQuantizeLinear", "", NULL, dynamic, 1, 1, false, 3, NULL, 0),
    BYTES("com.microsoft:QLinearAdd", GRAFT_FOREIGN_ADD),
    BYTES("com.microsoft:QLinearMul", GRAFT_FOREIGN_MUL),
    MAP("com.microsoft:QLinearSigmoid", GRAFT_FOREIGN_SUM_EXP),
    MAP("com.microsoft:QLinearLeakyRelu", GRAFT_FOREIGN_NONE),
    ROW("com.microsoft:QLinearGlobalAveragePool", "channels_last", graft_foreign_read_mean, mean, 4,
        5, false),
    ROW("com.microsoft:QLinearConcat", "axis", graft_foreign_read_join, join, 5,
        GRAFT_OPAQUE_INPUTS_MOST, false),
    ROW("com.microsoft:QLinearSoftmax", "axis opset", graft_foreign_read_part, part, 5, 5, false),
    KEPT("com.microsoft:MatMulNBits", "K N accuracy_level bits block_size", graft_foreign_read_bits,
         bits, 3, 6, bits, 1U << 1 | 1U << 2 | 1U << 3),
    KEPT("com.microsoft:QGemm", "alpha transA transB", graft_foreign_read_gemm, gemm, 6, 9, gemm,
         1U << 3 | 1U << 5),
    ROW("ConvTranspose", CONV_ATTRIBUTES " output_padding", graft_foreign_read_transposed,
        transposed, 2, 3, false),
    ROW("Conv", CONV_ATTRIBUTES, graft_foreign_read_conv, conv, 2, 3, false),
};

/* ----------------------------------------------------------------------------- finding */

static bool has_known_attributes(const Onnx__NodeProto *node, const char *known)
{
    bool all = true;
    for (size_t i = 0; i < node->n_attribute && all; i++) {
        const Onnx__AttributeProto *attribute = node->attribute[i];
        all = attribute->name != NULL && graft_onnx_lists(known, attribute->name) &&
              attribute->ref_attr_name == NULL;
    }
    return all;
}

/* Rows of another domain begin with its name. */
static uint32_t find_row(const Onnx__NodeProto *node)
{
    const char *domain = node->domain == NULL ? "" : node->domain;
    const size_t length = strlen(domain);
    uint32_t i = 0;
    for (; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *name = rows[i].op_type;
        if (length == 0 ? strcmp(name, node->op_type) == 0
                        : strncmp(name, domain, length) == 0 && name[length] == ':' &&
                              strcmp(name + length + 1, node->op_type) == 0) {
            break;
        }
    }
    return i;
}

bool graft_foreign_find(const Onnx__NodeProto *node, graft_opaque *opaque)
{
    const uint32_t place = find_row(node);
    if (place == sizeof(rows) / sizeof(rows[0]) || node->n_input < rows[place].least ||
        node->n_input > rows[place].most || node->n_output > rows[place].outputs) {
        return false;
    }
    const foreign_row *row = &rows[place];
    bool given = has_known_attributes(node, row->attributes);
    for (uint32_t k = 0; k < row->least; k++) {
        given = given && graft_foreign_has(opaque, k);
    }
    for (uint32_t k = 0; k < node->n_input && row->shape != graft_foreign_resize_shape; k++) {
        given = given && (node->input[k][0] == '\0' || graft_foreign_has(opaque, k));
    } /* What a Resize does not need may have no elements. */
    opaque->kind = GRAFT_OPAQUE_FOREIGN;
    opaque->row = place;
    opaque->op = 0;
    opaque->attrs[0] = row->code;
    opaque->read_count = (uint32_t)node->n_input;
    return given && (row->read == NULL || row->read(node, opaque));
}

bool graft_foreign_shape(const graft_opaque *opaque, const void *const *in, graft_shape *shape)
{
    *shape = (graft_shape){.rank = 0};
    graft_opaque one = *opaque;
    one.data = in;
    return rows[opaque->row].shape(&one, shape) && graft_shape_bytes(shape) > 0 &&
           graft_shape_elements(shape) <= INT32_MAX;
}

bool graft_foreign_fits(const graft_opaque *opaque)
{
    static const void *const unknown[GRAFT_OPAQUE_INPUTS_MOST] = {NULL};
    graft_shape shape;
    graft_opaque one = *opaque;
    bool fits = true;
    for (one.which = 0; one.which < opaque->out_count && !rows[opaque->row].by_number;
         one.which++) {
        const graft_shape *out = &opaque->outs[one.which];
        fits = fits &&
               (out->rank == GRAFT_RANK_UNKNOWN ||
                (graft_foreign_shape(&one, unknown, &shape) && graft_shape_equal(&shape, out)));
    }
    return fits;
}

bool graft_foreign_is_pointwise(const graft_opaque *opaque)
{
    return rows[opaque->row].run == graft_foreign_one;
}

void graft_foreign_keep(graft_arena *arena, graft_opaque *opaque, const void *const *in)
{
    const foreign_row *row = &rows[opaque->row];
    bool known = row->keep != NULL;
    for (uint32_t k = 0; k < opaque->read_count; k++) {
        known =
            known && ((row->kept >> k & 1U) == 0 || !graft_foreign_has(opaque, k) || in[k] != NULL);
    }
    graft_opaque one = *opaque;
    one.data = in;
    opaque->kept = known ? row->keep(arena, &one) : NULL;
}

/* Whether the numbers that a node reads give result `which` the size that it has. */
static bool fits_numbers(const graft_opaque *opaque, const void *const *in, uint32_t which)
{
    graft_shape shape;
    graft_opaque one = *opaque;
    one.which = which;
    return !rows[opaque->row].by_number || (graft_foreign_shape(&one, in, &shape) &&
                                            graft_shape_equal(&shape, &opaque->outs[which]));
}

graft_status graft_foreign_run(graft_env *env, const graft_opaque *opaque, const void *const *in,
                               void *const *out)
{
    const foreign_row *row = &rows[opaque->row];
    GRAFT_SCOPED(env->scratch);
    void *wanted[GRAFT_OPAQUE_OUTPUTS_MOST] = {NULL};
    graft_opaque one = *opaque;
    if (one.kept == NULL) {
        graft_foreign_keep(env->scratch, &one, in);
    }
    one.data = in;
    for (one.which = 0; one.which < opaque->out_count; one.which++) {
        one.out = opaque->outs[one.which];
        if (one.out.rank == GRAFT_RANK_UNKNOWN) {
            continue;
        }
        if (!fits_numbers(opaque, in, one.which)) {
            return GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                              "the numbers that a node (%s) reads do not give the size of its "
                              "result, or are such as implementations differ on",
                              row->op_type);
        }
        wanted[one.which] = out[one.which];
        if (row->run_all == NULL) {
            GRAFT_PASS(row->run(env, &one, out[one.which]));
        }
    }
    if (row->run_all != NULL) {
        row->run_all(env, &one, wanted);
    }
    return GRAFT_OK;
}

/* ---------------------------------------------------------------- what rows are made of */

int32_t graft_foreign_float(const Onnx__NodeProto *node, const char *name, float absent)
{
    const Onnx__AttributeProto *attribute = graft_onnx_attribute(node, name);
    return graft_bits_of_float(attribute == NULL ? absent : attribute->f);
}

int32_t graft_foreign_choice(const Onnx__NodeProto *node, const char *name,
                             const char *const *choices, int32_t absent)
{
    if (graft_onnx_attribute(node, name) == NULL) {
        return absent;
    }
    for (int32_t i = 0; choices[i] != NULL; i++) {
        if (graft_onnx_says(node, name, choices[i], false)) {
            return i;
        }
    }
    return -1;
}

bool graft_foreign_has(const graft_opaque *opaque, uint32_t k)
{
    return k < GRAFT_OPAQUE_INPUTS_MOST && opaque->in[k].rank <= GRAFT_MAX_RANK &&
           graft_shape_bytes(&opaque->in[k]) > 0;
}

int64_t graft_foreign_whole(const graft_opaque *opaque, uint32_t k, uint32_t i)
{
    switch (opaque->in[k].dtype) {
    case GRAFT_DTYPE_I64:
        return ((const int64_t *)opaque->data[k])[i];
    case GRAFT_DTYPE_I32:
        return ((const int32_t *)opaque->data[k])[i];
    case GRAFT_DTYPE_I8:
        return ((const int8_t *)opaque->data[k])[i];
    default:
        return ((const uint8_t *)opaque->data[k])[i];
    }
}

void graft_foreign_put(void *out, uint32_t dtype, size_t i, int64_t number)
{
    switch (dtype) {
    case GRAFT_DTYPE_I64:
        ((int64_t *)out)[i] = number;
        break;
    case GRAFT_DTYPE_I32:
        ((int32_t *)out)[i] = (int32_t)number;
        break;
    default:
        ((uint8_t *)out)[i] = (uint8_t)number;
    }
}

size_t graft_foreign_width(const graft_shape *shape)
{
    return (size_t)(graft_shape_bytes(shape) / graft_shape_elements(shape));
}

bool graft_foreign_read_axis(const Onnx__NodeProto *node, graft_opaque *opaque, int64_t rank,
                             int64_t absent)
{
    const int64_t axis = graft_onnx_int(node, "axis", absent);
    const bool given = axis >= -rank && axis < rank;
    opaque->axis = given ? (uint32_t)(axis + (axis < 0 ? rank : 0)) : 0;
    return given;
}

bool graft_foreign_is_byte(uint32_t dtype)
{
    return dtype == GRAFT_DTYPE_U8 || dtype == GRAFT_DTYPE_I8;
}

uint32_t graft_foreign_list(const graft_opaque *opaque, uint32_t k)
{
    const graft_shape *shape = &opaque->in[k];
    const bool whole = shape->dtype == GRAFT_DTYPE_I64 || shape->dtype == GRAFT_DTYPE_I32;
    return graft_foreign_has(opaque, k) && opaque->data[k] != NULL && shape->rank <= 1 && whole
               ? (uint32_t)graft_shape_elements(shape)
               : UINT32_MAX;
}

bool graft_foreign_size(graft_shape *shape, uint32_t axis, int64_t size)
{
    shape->dims[axis] = (int32_t)size;
    return size >= 1 && size <= INT32_MAX;
}

/* onnx_plan.c - which planner handles which ONNX operator, and what planners are written with (see
 * onnx.h). */
#include "graph/onnx/onnx.h"

#include <string.h>

typedef struct {
    const char *op_type;
    graft_onnx_planner *plan;
    const char *attributes; /* Those that the planner reads or may ignore; others are refused. */
    uint8_t op;             /* Of the engine, for planners that several rows share. */
} plan_row;

static const plan_row plan_table[] = {
    {"Identity",                  graft_plan_unary,           "",                                                             GRAFT_OP_identity   },
    {"Conv",                      graft_plan_conv,            "auto_pad dilations group kernel_shape pads strides",           GRAFT_OP_conv       },
    {"MatMul",                    graft_plan_binary,          "",                                                             GRAFT_OP_matmul     },
    {"Gemm",                      graft_plan_gemm,            "alpha beta broadcast transA transB",                           GRAFT_OP_matmul     },
    {"BatchNormalization",        graft_plan_batch_norm,      "epsilon is_test momentum spatial training_mode",
     0                                                                                                                                            },
    {"Relu",                      graft_plan_unary,           "",                                                             GRAFT_OP_relu       },
    {"LeakyRelu",                 graft_plan_leaky_relu,      "alpha",                                                        0                   },
    {"Clip",                      graft_plan_clip,            "max min",                                                      0                   },
    {"Sigmoid",                   graft_plan_unary,           "",                                                             GRAFT_OP_sigmoid    },
    {"Tanh",                      graft_plan_unary,           "",                                                             GRAFT_OP_tanh       },
    {"Exp",                       graft_plan_unary,           "",                                                             GRAFT_OP_exp        },
    {"Sqrt",                      graft_plan_unary,           "",                                                             GRAFT_OP_sqrt       },
    {"Erf",                       graft_plan_unary,           "",                                                             GRAFT_OP_erf        },
    {"Add",                       graft_plan_binary,          "axis broadcast",                                               GRAFT_OP_add        },
    {"Sub",                       graft_plan_binary,          "axis broadcast",                                               GRAFT_OP_sub        },
    {"Mul",                       graft_plan_binary,          "axis broadcast",                                               GRAFT_OP_mul        },
    {"Div",                       graft_plan_binary,          "axis broadcast",                                               GRAFT_OP_div        },
    {"Sum",                       graft_plan_chain,           "",                                                             GRAFT_OP_add        },
    {"Max",                       graft_plan_chain,           "",                                                             GRAFT_OP_max        },
    {"Min",                       graft_plan_chain,           "",                                                             GRAFT_OP_min        },
    {"Concat",                    graft_plan_concat,          "axis",                                                         0                   },
    {"Split",                     graft_plan_split,           "axis num_outputs split",                                       0                   },
    {"Slice",                     graft_plan_slice,           "axes ends starts",                                             0                   },
    {"Pad",                       graft_plan_pad,             "mode pads value",                                              0                   },
    {"Transpose",                 graft_plan_transpose,       "perm",                                                         0                   },
    {"Reshape",                   graft_plan_to_shape,        "allowzero",                                                    0                   },
    {"Flatten",                   graft_plan_flatten,         "axis",                                                         0                   },
    {"Squeeze",                   graft_plan_squeeze,         "axes",                                                         0                   },
    {"Unsqueeze",                 graft_plan_unsqueeze,       "axes",                                                         0                   },
    {"MaxPool",                   graft_plan_pool,
     "auto_pad ceil_mode dilations kernel_shape pads storage_order strides",                                                  GRAFT_OP_max_pool   },
    {"AveragePool",               graft_plan_pool,
     "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides",                                              GRAFT_OP_avg_pool   },
    {"GlobalAveragePool",         graft_plan_global_pool,     "",                                                             0                   },
    {"Softmax",                   graft_plan_softmax,         "axis",                                                         GRAFT_OP_softmax    },
    {"ReduceMean",                graft_plan_reduce,          "axes keepdims noop_with_empty_axes",                           GRAFT_OP_reduce_mean},
    {"ReduceSum",                 graft_plan_reduce,          "axes keepdims noop_with_empty_axes",                           GRAFT_OP_reduce_sum },
    {"ReduceMax",                 graft_plan_reduce,          "axes keepdims noop_with_empty_axes",                           GRAFT_OP_reduce_max },
    {"ReduceMin",                 graft_plan_reduce,          "axes keepdims noop_with_empty_axes",                           GRAFT_OP_reduce_min },
    {"InstanceNormalization",     graft_plan_instance_norm,   "epsilon",                                                      0                   },
    {"CumSum",                    graft_plan_cumsum,          "exclusive reverse",                                            0                   },
    {"Resize",                    graft_plan_resize,
     "antialias coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value "
     "keep_aspect_ratio_policy mode nearest_mode",                                                                            0                   },
    {"ConvTranspose",             graft_plan_conv_transpose,
     "auto_pad dilations group kernel_shape output_padding pads strides",                                                     0                   },
    {"LogSoftmax",                graft_plan_softmax,         "axis",                                                         GRAFT_OP_log_softmax},
    {"ReduceSumSquare",           graft_plan_reduce_squares,  "axes keepdims noop_with_empty_axes",
     GRAFT_OP_identity                                                                                                                            },
    {"ReduceL2",                  graft_plan_reduce_squares,  "axes keepdims noop_with_empty_axes",                           GRAFT_OP_sqrt       },
    {"ReduceL1",                  graft_plan_reduce_absolute, "axes keepdims noop_with_empty_axes",                           0                   },
    {"GlobalMaxPool",             graft_plan_global_max_pool, "",                                                             0                   },
    {"LayerNormalization",        graft_plan_layer_norm,      "axis epsilon stash_type",                                      0                   },
    {"Gelu",                      graft_plan_gelu,            "approximate",                                                  0                   },
    {"Pow",                       graft_plan_power,           "",                                                             0                   },
    {"Reciprocal",                graft_plan_reciprocal,      "",                                                             0                   },
    {"Neg",                       graft_plan_negation,        "",                                                             0                   },
    {"PRelu",                     graft_plan_prelu,           "",                                                             0                   },
    {"Mean",                      graft_plan_mean,            "",                                                             0                   },
    {"Gather",                    graft_plan_gather,          "axis",                                                         0                   },
    {"Expand",                    graft_plan_expand,          "",                                                             0                   },
    {"Cast",                      graft_plan_cast,            "to",                                                           0                   },
    {"Dropout",                   graft_plan_dropout,         "is_test ratio seed",                                           0                   },
    {"ConstantOfShape",           graft_plan_fill,            "value",                                                        0                   },
    {"RMSNormalization",          graft_plan_rms_norm,        "axis epsilon stash_type",                                      0                   },
    {"DepthToSpace",              graft_plan_depth_to_space,  "blocksize mode",                                               0                   },
    {"GroupNormalization",        graft_plan_group_norm,      "epsilon num_groups stash_type",                                0                   },
    {"MeanVarianceNormalization", graft_plan_mean_variance,   "axes",                                                         0                   },
    {"Celu",                      graft_plan_celu,            "alpha",                                                        GRAFT_OP_elu        },
    {"LSTM",                      graft_plan_recurrent,       "activations direction hidden_size input_forget layout",        4                   },
    {"GRU",                       graft_plan_recurrent,       "activations direction hidden_size layout linear_before_reset",
     3                                                                                                                                            },
    {"RNN",                       graft_plan_recurrent,       "activations direction hidden_size layout",                     1                   },
    {"SpaceToDepth",              graft_plan_space_to_depth,  "blocksize",                                                    0                   },
    {"QuantizeLinear",            graft_plan_quantise,        "axis",                                                         GRAFT_OP_quantise   },
    {"DequantizeLinear",          graft_plan_quantise,        "axis",                                                         GRAFT_OP_dequantise },
};

static void check_attributes(graft_onnx_plan *plan, const char *allowed)
{
    for (size_t i = 0; i < plan->node->n_attribute; i++) {
        const Onnx__AttributeProto *attribute = plan->node->attribute[i];
        const char *name = attribute->name == NULL ? "" : attribute->name;
        if (!graft_onnx_lists(allowed, name) || attribute->ref_attr_name != NULL) {
            graft_plan_refuse(plan, "an attribute that is not known");
        }
    }
}

/* The FUNCTION row of an ONNX operator: its attributes have the same names. */
static uint32_t find_function(const char *op_type)
{
    for (uint32_t op = 1; op < GRAFT_OP_COUNT; op++) {
        const graft_op_info *info = graft_op(op);
        if ((info->flags & GRAFT_FLAG_COMPOSED) != 0 && strcmp(info->onnx, op_type) == 0) {
            return op;
        }
    }
    return GRAFT_OP_NONE;
}

static void check_function(graft_onnx_plan *plan, uint32_t op)
{
    char names[128] = "";
    for (uint32_t i = 0; i < graft_op(op)->attr_count; i++) {
        strncat(names, graft_op_attr(op, i)->name, sizeof names - strlen(names) - 2);
        strncat(names, " ", 2);
    }
    check_attributes(plan, names);
}

/* Whether a planner looks at outputs behind the first by itself. */
static bool takes_outputs(graft_onnx_planner *planner)
{
    return planner == graft_plan_split || planner == graft_plan_batch_norm ||
           planner == graft_plan_layer_norm || planner == graft_plan_recurrent;
}

static void plan_by_table(graft_onnx_plan *plan)
{
    const char *op_type = plan->node->op_type == NULL ? "" : plan->node->op_type;
    for (size_t i = 0; i < sizeof(plan_table) / sizeof(plan_table[0]); i++) {
        const plan_row *row = &plan_table[i];
        if (strcmp(row->op_type, op_type) == 0) {
            check_attributes(plan, row->attributes);
            if (!takes_outputs(row->plan)) {
                graft_plan_outputs_at_most(plan, 1);
            }
            plan->op = row->op;
            row->plan(plan);
            return;
        }
    }
    plan->op = (uint8_t)find_function(op_type);
    if (plan->op == GRAFT_OP_NONE) {
        graft_plan_refuse(plan, "an operator that is not known");
        return;
    }
    check_function(plan, plan->op);
    graft_plan_outputs_at_most(plan, 1);
    graft_plan_function(plan);
}

static bool is_byte(uint32_t dtype) { return dtype == GRAFT_DTYPE_U8 || dtype == GRAFT_DTYPE_I8; }

/* The type of the first input that rules are about; else that of the graph's constants. */
static uint8_t find_type(const graft_onnx_reader *reader, const Onnx__NodeProto *node)
{
    for (size_t k = 0; k < node->n_input; k++) {
        const graft_onnx_entry *entry = graft_onnx_input(reader->onnx, node, k);
        const uint8_t dtype = entry == NULL ? 0 : graft_onnx_shape_of_entry(reader, entry).dtype;
        if (graft_dtype_is_real(dtype) || is_byte(dtype)) {
            return dtype;
        }
    }
    return reader->model->graph.dtype;
}

void graft_onnx_plan_node(graft_onnx_reader *reader, const Onnx__NodeProto *node,
                          graft_onnx_plan *plan)
{
    *plan = (graft_onnx_plan){.reader = reader, .node = node, .opset = reader->onnx->opset};
    plan->dtype = find_type(reader, node);
    plan->outputs = GRAFT_NEW(reader->env->scratch, graft_onnx_operand, node->n_output);
    plan_by_table(plan);
}

void graft_onnx_plan_moves(graft_onnx_reader *reader, const Onnx__NodeProto *node,
                           graft_onnx_plan *plan)
{
    static const char moves[] =
        "Identity Concat Slice Transpose Reshape Flatten Squeeze Unsqueeze Expand";
    *plan = (graft_onnx_plan){.reader = reader,
                              .node = node,
                              .opset = reader->onnx->opset,
                              .any_type = true,
                              .dtype = GRAFT_DTYPE_F32};
    plan->outputs = GRAFT_NEW(reader->env->scratch, graft_onnx_operand, node->n_output);
    if (graft_onnx_lists(moves, node->op_type)) {
        plan_by_table(plan);
    } else {
        graft_plan_refuse(plan, "an operator that does more than to move elements");
    }
}

void graft_plan_refuse(graft_onnx_plan *plan, const char *reason)
{
    if (plan->refusal == NULL) {
        plan->refusal = reason;
    }
}

/* ----------------------------------------------------------------------------- attributes */

const Onnx__AttributeProto *graft_plan_attribute(const graft_onnx_plan *plan, const char *name)
{
    return graft_onnx_attribute(plan->node, name);
}

int64_t graft_plan_int(graft_onnx_plan *plan, const char *name, int64_t absent)
{
    const Onnx__AttributeProto *attribute = graft_plan_attribute(plan, name);
    if (attribute == NULL) {
        return absent;
    }
    if (!attribute->has_i) {
        graft_plan_refuse(plan, "an attribute of another type");
        return absent;
    }
    return attribute->i;
}

float graft_plan_float(graft_onnx_plan *plan, const char *name, float absent)
{
    const Onnx__AttributeProto *attribute = graft_plan_attribute(plan, name);
    if (attribute == NULL) {
        return absent;
    }
    if (!attribute->has_f) {
        graft_plan_refuse(plan, "an attribute of another type");
        return absent;
    }
    return attribute->f;
}

const int64_t *graft_plan_ints(graft_onnx_plan *plan, const char *name, uint32_t *count)
{
    static const int64_t none[1] = {0};
    const Onnx__AttributeProto *attribute = graft_plan_attribute(plan, name);
    *count = 0;
    if (attribute == NULL) {
        return NULL;
    }
    if (attribute->n_ints > UINT16_MAX || attribute->has_i || attribute->has_f) {
        graft_plan_refuse(plan, "an attribute of another type");
        return none;
    }
    *count = (uint32_t)attribute->n_ints;
    return *count == 0 ? none : attribute->ints;
}

uint32_t graft_plan_axis(graft_onnx_plan *plan, int64_t axis, uint32_t rank)
{
    if (axis < -(int64_t)rank || axis >= (int64_t)rank) {
        graft_plan_refuse(plan, "an axis that the tensor does not have");
        return 0;
    }
    return (uint32_t)(axis < 0 ? axis + rank : axis);
}

int32_t graft_plan_int32(graft_onnx_plan *plan, int64_t value)
{
    if (value < INT32_MIN || value > INT32_MAX) {
        graft_plan_refuse(plan, "a number that is too large");
        return 0;
    }
    return (int32_t)value;
}

/* ------------------------------------------------------------------------ inputs, outputs */

bool graft_plan_has_input(const graft_onnx_plan *plan, uint32_t k)
{
    return graft_onnx_input(plan->reader->onnx, plan->node, k) != NULL;
}

void graft_plan_outputs_at_most(graft_onnx_plan *plan, uint32_t count)
{
    for (uint32_t k = count; k < plan->node->n_output; k++) {
        if (graft_plan_is_read(plan, k)) {
            graft_plan_refuse(plan, "an output that is not known");
        }
    }
}

bool graft_plan_is_read(const graft_onnx_plan *plan, uint32_t k)
{
    const graft_onnx *onnx = plan->reader->onnx;
    uint32_t entry = k < plan->node->n_output ? graft_names_find(onnx->names, plan->node->output[k])
                                              : GRAFT_NONE;
    return entry != GRAFT_NONE && onnx->entries[entry].is_read;
}

static bool entry_is_const(const graft_onnx_plan *plan, uint32_t k)
{
    const graft_onnx_entry *entry = graft_onnx_input(plan->reader->onnx, plan->node, k);
    if (entry == NULL) {
        return false;
    }
    return entry->weight != GRAFT_NONE || entry->known != NULL ||
           (entry->value != GRAFT_NONE && plan->reader->model->graph.values[entry->value].is_const);
}

/* From here on operators that move take tensors of any type. */
enum { OPSET_BYTES = 13 };

graft_onnx_operand graft_plan_input(graft_onnx_plan *plan, uint32_t k)
{
    const graft_onnx_entry *entry = graft_onnx_input(plan->reader->onnx, plan->node, k);
    if (entry == NULL) {
        graft_plan_refuse(plan, "an input is missing");
        return (graft_onnx_operand){.kind = GRAFT_ONNX_OPERAND_NONE};
    }
    graft_shape shape = graft_onnx_shape_of_entry(plan->reader, entry);
    if (shape.rank == GRAFT_RANK_UNKNOWN) {
        graft_plan_refuse(plan, "an input of unknown shape");
        return (graft_onnx_operand){.kind = GRAFT_ONNX_OPERAND_NONE};
    }
    if (shape.dtype != plan->dtype && !plan->any_type) {
        graft_plan_refuse(plan, graft_dtype_is_real(shape.dtype)
                                    ? "inputs of two element types"
                                    : "an input that is not binary32, float16 or bfloat16");
        return (graft_onnx_operand){.kind = GRAFT_ONNX_OPERAND_NONE};
    }
    if (is_byte(shape.dtype) && !plan->any_type &&
        (plan->opset < OPSET_BYTES || entry_is_const(plan, k))) {
        graft_plan_refuse(plan, "weights of 8 bits, or numbers of 8 bits before opset 13");
        return (graft_onnx_operand){.kind = GRAFT_ONNX_OPERAND_NONE};
    }
    return (graft_onnx_operand){.kind = GRAFT_ONNX_OPERAND_INPUT, .index = k};
}

const graft_onnx_ints *graft_plan_const_ints(graft_onnx_plan *plan, uint32_t k)
{
    static const graft_onnx_ints none = {.rank = 1, .dtype = GRAFT_DTYPE_I64};
    graft_onnx_entry *entry = graft_onnx_input(plan->reader->onnx, plan->node, k);
    const graft_onnx_ints *ints =
        entry == NULL ? NULL : graft_onnx_ints_of_entry(plan->reader, entry);
    if (ints == NULL) {
        graft_plan_refuse(plan, "numbers that are only known when the model runs");
        return &none;
    }
    return ints;
}

/* A list that a ConstantOfShape makes counts as a weight too. It keeps its name, by which a node
 * that comes back as it was reads it from then on. */
static void know_fill(const graft_onnx_plan *plan, graft_onnx_entry *entry)
{
    enum { ELEMENTS_MOST = 65536 };
    const graft_onnx_group *group =
        entry->kind == GRAFT_ONNX_COMPUTED ? &plan->reader->onnx->groups[entry->index] : NULL;
    if (group == NULL || group->part_count != 1 || group->parts[0].op != GRAFT_OP_fill ||
        group->parts[0].outputs[0].rank != 1 ||
        group->parts[0].outputs[0].dims[0] > ELEMENTS_MOST) {
        return;
    }
    graft_model_weight weight = {.name = entry->name, .shape = group->parts[0].outputs[0]};
    float *data = GRAFT_NEW(plan->reader->arena, float, (size_t)weight.shape.dims[0]);
    for (int32_t i = 0; i < weight.shape.dims[0]; i++) {
        memcpy(&data[i], &group->parts[0].attrs[GRAFT_ATTR_fill_value], sizeof(data[i]));
    }
    weight.data = data;
    weight.data_bytes = (size_t)weight.shape.dims[0] * sizeof(data[0]);
    entry->weight = graft_onnx_add_weight(plan->reader, &weight);
}

const float *graft_plan_const_floats(graft_onnx_plan *plan, uint32_t k, uint64_t *count)
{
    graft_onnx_entry *entry = graft_onnx_input(plan->reader->onnx, plan->node, k);
    *count = 0;
    if (entry != NULL && entry->weight == GRAFT_NONE) {
        know_fill(plan, entry);
    }
    if (entry == NULL || entry->weight == GRAFT_NONE) {
        graft_plan_refuse(plan, "an input that is not a weight");
        return NULL;
    }
    const graft_model_weight *weight = &plan->reader->weights[entry->weight];
    if (weight->shape.dtype != plan->dtype || !graft_dtype_is_real(plan->dtype) ||
        weight->shape.rank == GRAFT_RANK_UNKNOWN || weight->data == NULL) {
        graft_plan_refuse(plan, "a weight that is not of the other inputs' type");
        return NULL;
    }
    *count = graft_shape_elements(&weight->shape);
    return weight->data;
}

static graft_shape shape_of_input(const graft_onnx_plan *plan, uint32_t k)
{
    graft_shape shape = graft_onnx_shape_of_entry(
        plan->reader, graft_onnx_input(plan->reader->onnx, plan->node, k));
    shape.dtype = plan->any_type ? plan->dtype : shape.dtype;
    return shape;
}

graft_shape graft_plan_shape(const graft_onnx_plan *plan, graft_onnx_operand operand)
{
    switch ((graft_onnx_operand_kind)operand.kind) {
    case GRAFT_ONNX_OPERAND_INPUT:
        return shape_of_input(plan, operand.index);
    case GRAFT_ONNX_OPERAND_PART:
        return plan->parts[operand.index].outputs[operand.slot];
    case GRAFT_ONNX_OPERAND_WEIGHT:
        return plan->weights[operand.index].shape;
    case GRAFT_ONNX_OPERAND_NONE:
        break;
    }
    return (graft_shape){.dtype = plan->dtype};
}

bool graft_plan_is_const(const graft_onnx_plan *plan, graft_onnx_operand operand)
{
    switch ((graft_onnx_operand_kind)operand.kind) {
    case GRAFT_ONNX_OPERAND_INPUT:
        return entry_is_const(plan, operand.index);
    case GRAFT_ONNX_OPERAND_WEIGHT:
        return true;
    case GRAFT_ONNX_OPERAND_PART:
    case GRAFT_ONNX_OPERAND_NONE:
        break;
    }
    return false;
}

/* ---------------------------------------------------------------------------------- parts */

static graft_onnx_part *push_part(graft_onnx_plan *plan)
{
    plan->parts = graft_arena_grow(plan->reader->env->scratch, plan->parts, plan->part_count,
                                   &plan->part_capacity, 8, sizeof(plan->parts[0]));
    return &plan->parts[plan->part_count++];
}

graft_onnx_operand graft_plan_add(graft_onnx_plan *plan, uint32_t op, const int32_t *attrs,
                                  const graft_onnx_operand *inputs)
{
    graft_onnx_operand none = {.kind = GRAFT_ONNX_OPERAND_NONE};
    if (plan->refusal != NULL) {
        return none;
    }
    const graft_op_info *info = graft_op(op);
    graft_onnx_part part = {.op = (uint8_t)op};
    graft_shape in[GRAFT_MAX_INPUTS];
    for (uint32_t i = 0; attrs != NULL && i < info->attr_count; i++) {
        part.attrs[i] = attrs[i];
    }
    for (uint32_t i = 0; inputs != NULL && i < info->input_count; i++) {
        part.inputs[i] = inputs[i];
        in[i] = graft_plan_shape(plan, inputs[i]);
    }
    if (graft_infer_shapes(op, part.attrs, in, part.outputs) != GRAFT_OK) {
        const char *why = graft_infer_explain(op, part.attrs, in);
        graft_plan_refuse(plan, why == NULL ? "shapes that do not fit" : why);
        return none;
    }
    if (info->input_count == 0) { /* In the graph it has the graph's type. */
        part.outputs[0].dtype = plan->dtype;
        if (plan->dtype != plan->reader->model->graph.dtype && !plan->any_type) {
            graft_plan_refuse(plan, "a constant of another type than most of the model");
        }
    }
    graft_onnx_operand result = {.kind = GRAFT_ONNX_OPERAND_PART, .index = plan->part_count};
    *push_part(plan) = part;
    return result;
}

graft_onnx_operand graft_plan_add1(graft_onnx_plan *plan, uint32_t op, const int32_t *attrs,
                                   graft_onnx_operand input)
{
    return graft_plan_add(plan, op, attrs, &input);
}

graft_onnx_operand graft_plan_add2(graft_onnx_plan *plan, uint32_t op, const int32_t *attrs,
                                   graft_onnx_operand a, graft_onnx_operand b)
{
    graft_onnx_operand inputs[2] = {a, b};
    return graft_plan_add(plan, op, attrs, inputs);
}

graft_onnx_operand graft_plan_weight(graft_onnx_plan *plan, const float *data, uint32_t count)
{
    enum { MOST = sizeof(plan->weights) / sizeof(plan->weights[0]) };
    if (plan->refusal != NULL || plan->weight_count == MOST || count > INT32_MAX) {
        graft_plan_refuse(plan, "too many weights");
        return (graft_onnx_operand){.kind = GRAFT_ONNX_OPERAND_NONE};
    }
    graft_model_weight *weight = &plan->weights[plan->weight_count];
    *weight = (graft_model_weight){.data = data, .data_bytes = count * sizeof(data[0])};
    weight->shape = (graft_shape){.rank = 1, .dtype = plan->dtype};
    weight->shape.dims[0] = (int32_t)count;
    return (graft_onnx_operand){.kind = GRAFT_ONNX_OPERAND_WEIGHT, .index = plan->weight_count++};
}

graft_onnx_operand graft_plan_reshape(graft_onnx_plan *plan, graft_onnx_operand x,
                                      const int32_t *dims, uint32_t rank)
{
    int32_t attrs[GRAFT_MAX_ATTRS] = {0};
    if (rank > GRAFT_MAX_RANK) {
        graft_plan_refuse(plan, "a tensor of more than 6 axes");
        return x;
    }
    for (uint32_t i = 0; i < rank; i++) {
        attrs[GRAFT_ATTR_reshape_dim_0 + i] = dims[i];
    }
    return graft_plan_add1(plan, GRAFT_OP_reshape, attrs, x);
}

graft_onnx_operand graft_plan_constant(graft_onnx_plan *plan, float value, const int32_t *dims,
                                       uint32_t rank)
{
    int32_t attrs[GRAFT_MAX_ATTRS] = {0};
    memcpy(&attrs[GRAFT_ATTR_fill_value], &value, sizeof(value));
    for (uint32_t i = 0; i < rank && i < GRAFT_MAX_RANK; i++) {
        attrs[GRAFT_ATTR_fill_dim_0 + i] = dims[i];
    }
    return graft_plan_add(plan, GRAFT_OP_fill, attrs, NULL);
}

graft_onnx_operand graft_plan_scalar(graft_onnx_plan *plan, float value)
{
    return graft_plan_constant(plan, value, NULL, 0);
}

void graft_plan_output(graft_onnx_plan *plan, uint32_t k, graft_onnx_operand operand)
{
    if (k >= plan->node->n_output) {
        graft_plan_refuse(plan, "an output is missing");
        return;
    }
    plan->outputs[k] = operand;
}

/* onnx_plan.c - which planner handles which ONNX operator, and what planners are written with (see
 * onnx.h). */
#include "graph/onnx/onnx.h"

#include <string.h>

typedef struct {
    const char *op_type;
    graft_onnx_planner *plan;
    const char *attributes;
    uint8_t op;
    bool takes_outputs;
} plan_row;

static const plan_row plan_table[] = {
#define PLAN(op_type, planner, attributes, op, takes_outputs)                                      \
    {op_type, graft_plan_##planner, attributes, op, takes_outputs},
#include "graph/onnx/onnx_plan.def"
};

static void check_attributes(graft_onnx_plan *plan, const char *allowed)
{
    graft_plan_refuse_if(plan, !graft_onnx_has_only(plan->node, allowed),
                         "an attribute that is not known");
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

static void plan_by_table(graft_onnx_plan *plan)
{
    const char *op_type = plan->node->op_type == NULL ? "" : plan->node->op_type;
    for (size_t i = 0; i < sizeof(plan_table) / sizeof(plan_table[0]); i++) {
        const plan_row *row = &plan_table[i];
        if (strcmp(row->op_type, op_type) == 0) {
            check_attributes(plan, row->attributes);
            if (!row->takes_outputs) {
                graft_plan_outputs_at_most(plan, 1);
            }
            plan->op = row->op;
            graft_plan_output(plan, 0, row->plan(plan));
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
    graft_plan_output(plan, 0, graft_plan_function(plan));
}

static bool is_byte(uint32_t dtype) { return dtype == GRAFT_DTYPE_U8 || dtype == GRAFT_DTYPE_I8; }

/* The type of the first input that rules are about; else that of the graph's constants. */
static uint8_t find_type(const graft_onnx_reader *reader, const Onnx__NodeProto *node)
{
    for (size_t k = 0; k < node->n_input; k++) {
        const uint8_t dtype = graft_onnx_shape_of_input(reader, node, k).dtype;
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

graft_onnx_operand graft_plan_refuse(graft_onnx_plan *plan, const char *reason)
{
    graft_plan_refuse_if(plan, true, reason);
    return (graft_onnx_operand){.kind = GRAFT_ONNX_OPERAND_NONE};
}

void graft_plan_refuse_if(graft_onnx_plan *plan, bool refused, const char *reason)
{
    plan->refusal = refused && plan->refusal == NULL ? reason : plan->refusal;
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
        graft_plan_refuse_if(plan, graft_plan_is_read(plan, k), "an output that is not known");
    }
}

bool graft_plan_is_read(const graft_onnx_plan *plan, uint32_t k)
{
    const graft_onnx_entry *entry =
        k < plan->node->n_output ? graft_onnx_entry_named(plan->reader->onnx, plan->node->output[k])
                                 : NULL;
    return entry != NULL && entry->read_count > 0;
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
    GRAFT_RETURN_IF(entry == NULL, graft_plan_refuse(plan, "an input is missing"));
    graft_shape shape = graft_onnx_shape_of_entry(plan->reader, entry);
    GRAFT_RETURN_IF(shape.rank == GRAFT_RANK_UNKNOWN,
                    graft_plan_refuse(plan, "an input of unknown shape"));
    if (shape.dtype != plan->dtype && !plan->any_type) {
        return graft_plan_refuse(plan, graft_dtype_is_real(shape.dtype)
                                           ? "inputs of two element types"
                                           : "an input that is not binary32, float16 or bfloat16");
    }
    if (is_byte(shape.dtype) && !plan->any_type &&
        (plan->opset < OPSET_BYTES || entry_is_const(plan, k))) {
        return graft_plan_refuse(plan, "weights of 8 bits, or numbers of 8 bits before opset 13");
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

/* Weights of 8 bits, which stay so in the file, as the numbers that they stand for. */
static const float *dequantised(const graft_onnx_plan *plan, const graft_onnx_entry *entry,
                                uint64_t *count)
{
    graft_shape shape = {.rank = 0};
    const float *data = NULL;
    if (entry->kind == GRAFT_ONNX_COMPUTED && plan->dtype == GRAFT_DTYPE_F32) {
        data = graft_onnx_dequantised(plan->reader,
                                      plan->reader->onnx->proto->graph->node[entry->index], &shape);
    }
    *count = data == NULL ? 0 : graft_shape_elements(&shape);
    return data;
}

const float *graft_plan_const_floats(graft_onnx_plan *plan, uint32_t k, uint64_t *count)
{
    graft_onnx_entry *entry = graft_onnx_input(plan->reader->onnx, plan->node, k);
    *count = 0;
    if (entry != NULL && entry->weight == GRAFT_NONE && entry->known != NULL) {
        if (graft_onnx_know_weight(plan->reader, entry) != GRAFT_OK) {
            graft_env_clear(plan->reader->env);
        }
    } else if (entry != NULL && entry->weight == GRAFT_NONE) {
        know_fill(plan, entry);
    }
    if (entry == NULL || entry->weight == GRAFT_NONE) {
        const float *data = entry == NULL ? NULL : dequantised(plan, entry, count);
        graft_plan_refuse_if(plan, data == NULL, "an input that is not a weight");
        return data;
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
    graft_shape shape = graft_onnx_shape_of_input(plan->reader, plan->node, k);
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

graft_onnx_operand graft_plan_add(graft_onnx_plan *plan, uint32_t op, const int32_t *attrs,
                                  const graft_onnx_operand *inputs)
{
    GRAFT_RETURN_IF(plan->refusal != NULL, graft_plan_refuse(plan, plan->refusal));
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
        return graft_plan_refuse(plan, why == NULL ? "shapes that do not fit" : why);
    }
    if (info->input_count == 0) { /* In the graph it has the graph's type. */
        part.outputs[0].dtype = plan->dtype;
        if (plan->dtype != plan->reader->model->graph.dtype && !plan->any_type) {
            graft_plan_refuse(plan, "a constant of another type than most of the model");
        }
    }
    graft_onnx_operand result = {.kind = GRAFT_ONNX_OPERAND_PART, .index = plan->part_count};
    GRAFT_PUSH(plan->reader->env->scratch, plan->parts, plan->part_count, plan->part_capacity, 8) =
        part;
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
    GRAFT_RETURN_IF(plan->refusal != NULL || plan->weight_count == MOST || count > INT32_MAX,
                    graft_plan_refuse(plan, "too many weights"));
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

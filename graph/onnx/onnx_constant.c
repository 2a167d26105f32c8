/* onnx_constant.c - nodes of constants alone, carried out while a model is read (see onnx.h).
 *
 * Exporters compute the targets of Reshape and Expand, masks and tables of places in the graph:
 * Shape, Gather, Unsqueeze, Concat. Once the sizes of the inputs are bound all of these are known.
 * Values of binary32 come from the reference bodies. So does what only moves elements, of whatever
 * type: the bodies run on the places of the elements, which binary32 holds exactly below 2^24, and
 * say which element goes where. What is left runs by the loops that run it with a model (opaque.h),
 * where results that runtimes differ on are refused first. Lists without items, which the engine
 * has none of, are put together and cut here.
 *
 * Growth is bounded: a result larger than 1 MiB and than what it is made of stays a node, and so
 * does everything once results of 64 MiB are held. */
#include "graph/meaning/algebra.h"
#include "graph/meaning/algebra_float.h"
#include "graph/meaning/foreign.h"
#include "graph/meaning/quantised.h"
#include "graph/onnx/onnx.h"

#include <math.h>
#include <string.h>

enum { INPUTS_MOST = 64, RESULT_BYTES_MOST = 1 << 20, ALL_BYTES_MOST = 64 << 20 };

static const uint32_t places_most = 1U << 24;

typedef bool whole_function(int64_t a, int64_t b, int64_t *result);

typedef struct {
    graft_onnx_reader *reader;
    const Onnx__NodeProto *node;
    whole_function *function;                  /* As in the row. */
    const graft_model_weight *in[INPUTS_MOST]; /* NULL: not given. */
    uint32_t in_count;
    uint64_t in_bytes;
    uint64_t spare;  /* Of these what leaves the file when the result is stored. */
    bool is_planned; /* The node stays in the graph, and the writer says whether it is stored. */
    bool of_data;    /* In a later stage; what takes long has kernels. */
    graft_model_weight out;
    uint8_t *data; /* Of `out`, while it is being filled. */
} constant;

/* ------------------------------------------------------------------------ what is known */

/* The elements of an entry when they are known: of a weight, or what a node of constants computes;
 * NULL otherwise. */
static const graft_model_weight *find_known(graft_onnx_reader *reader, graft_onnx_entry *entry)
{
    static const int64_t nothing = 0;
    static const graft_model_weight no_items[] = {
        {.shape = {.rank = 1, .dtype = GRAFT_DTYPE_I32}, .data = &nothing},
        {.shape = {.rank = 1, .dtype = GRAFT_DTYPE_I64}, .data = &nothing}
    };
    if (entry->known != NULL || entry->weight == GRAFT_NONE) {
        return entry->known;
    }
    const graft_model_weight *weight = &reader->weights[entry->weight];
    if (weight->data != NULL && weight->shape.rank != GRAFT_RANK_UNKNOWN) {
        return weight;
    }
    const graft_onnx_ints *ints = graft_onnx_ints_of_entry(reader, entry);
    return ints != NULL && ints->count == 0 ? &no_items[ints->dtype == GRAFT_DTYPE_I64] : NULL;
}

static bool find_inputs(constant *c)
{
    c->in_count = (uint32_t)c->node->n_input;
    if (c->node->n_input > INPUTS_MOST || c->node->n_output != 1) {
        return false;
    }
    for (uint32_t k = 0; k < c->in_count; k++) {
        graft_onnx_entry *entry = graft_onnx_input(c->reader->onnx, c->node, k);
        c->in[k] = entry == NULL ? NULL : find_known(c->reader, entry);
        if (entry != NULL && c->in[k] == NULL) {
            return false;
        }
        c->in_bytes += entry == NULL ? 0 : c->in[k]->data_bytes;
        c->of_data = c->of_data || (entry != NULL && entry->of_data);
        c->spare += entry == NULL || entry->read_count > 1 ? 0 : entry->spare;
    }
    return true;
}

static bool is_list(const graft_shape *shape)
{
    return shape->rank == 1 && (shape->dtype == GRAFT_DTYPE_I64 || shape->dtype == GRAFT_DTYPE_I32);
}

bool graft_onnx_may_grow(uint64_t bytes, uint64_t spare, uint64_t *all)
{
    enum { NODE_BYTES = 128, RESULT_GROWTH_MOST = 1 << 10, ALL_GROWTH_MOST = 16 << 10 };
    const uint64_t growth = bytes > spare ? bytes - spare : 0;
    const uint64_t counted = growth > NODE_BYTES ? growth : 0; /* A node takes as much. */
    const bool may =
        growth <= RESULT_GROWTH_MOST && (all == NULL || *all + counted <= ALL_GROWTH_MOST);
    if (may && all != NULL) {
        *all += counted;
    }
    return may;
}

/* Makes room for the result. Only a list of whole numbers may have no items. */
static bool start_result(constant *c, const graft_shape *shape)
{
    uint64_t elements = graft_shape_elements(shape);
    uint64_t bytes = elements * graft_onnx_held_bytes(shape->dtype);
    const bool may = c->is_planned ? graft_onnx_may_grow(bytes, c->in_bytes, NULL)
                                   : graft_onnx_may_grow(bytes, c->spare, &c->reader->grown);
    if (elements > INT32_MAX || (bytes == 0 && (elements > 0 || !is_list(shape))) ||
        (bytes > RESULT_BYTES_MOST && bytes > c->in_bytes) ||
        bytes + c->reader->known_bytes > ALL_BYTES_MOST || (c->reader->tight && !may)) {
        return false;
    }
    c->reader->known_bytes += bytes;
    c->data = GRAFT_NEW(c->reader->arena, uint8_t, (size_t)bytes);
    c->out = (graft_model_weight){.shape = *shape, .data = c->data, .data_bytes = (size_t)bytes};
    return true;
}

/* ------------------------------------------------------------------- by reference bodies */

/* Runs the parts of a plan on tensors of binary32, one for each input of the node; the result is
 * that of its first output, in scratch. */
static const float *run_parts(graft_onnx_reader *reader, const graft_onnx_plan *plan,
                              const float *const *inputs)
{
    graft_arena *scratch = reader->env->scratch;
    float *(*outputs)[GRAFT_MAX_OUTPUTS] =
        graft_arena_alloc(scratch, plan->part_count * sizeof(*outputs));
    for (uint32_t p = 0; p < plan->part_count; p++) {
        const graft_onnx_part *part = &plan->parts[p];
        const graft_op_info *info = graft_op(part->op);
        graft_shape shapes[GRAFT_MAX_INPUTS];
        const float *in[GRAFT_MAX_INPUTS] = {NULL};
        for (uint32_t i = 0; i < info->input_count; i++) {
            graft_onnx_operand operand = part->inputs[i];
            shapes[i] = graft_plan_shape(plan, operand);
            in[i] = operand.kind == GRAFT_ONNX_OPERAND_INPUT  ? inputs[operand.index]
                    : operand.kind == GRAFT_ONNX_OPERAND_PART ? outputs[operand.index][operand.slot]
                                                              : plan->weights[operand.index].data;
        }
        for (uint32_t i = 0; i < info->output_count; i++) {
            outputs[p][i] =
                GRAFT_NEW(scratch, float, (size_t)graft_shape_elements(&part->outputs[i]));
        }
        const graft_call call = {.attrs = part->attrs, .in = shapes, .out = part->outputs};
        graft_float_run(part->op, &call, in, outputs[p]);
    }
    return outputs[plan->outputs[0].index][plan->outputs[0].slot];
}

static bool is_small_plan(const graft_onnx_plan *plan)
{
    bool small = plan->refusal == NULL && plan->part_count > 0 &&
                 plan->outputs[0].kind == GRAFT_ONNX_OPERAND_PART;
    for (uint32_t p = 0; p < plan->part_count && small; p++) {
        for (uint32_t i = 0; i < graft_op(plan->parts[p].op)->output_count; i++) {
            small = small && graft_shape_elements(&plan->parts[p].outputs[i]) < places_most;
        }
    }
    return small;
}

static bool has_products(const graft_onnx_plan *plan)
{
    bool has = false;
    for (uint32_t p = 0; p < plan->part_count && !has; p++) {
        const uint32_t op = plan->parts[p].op;
        has = op == GRAFT_OP_conv || op == GRAFT_OP_conv_bias || op == GRAFT_OP_matmul ||
              op == GRAFT_OP_matmul_bias || op == GRAFT_OP_conv_transpose;
    }
    return has;
}

/* A planned node; what it reads is known, its parts stay. */
static bool run_plan(constant *c, const graft_onnx_plan *plan)
{
    const float *inputs[INPUTS_MOST] = {NULL};
    graft_shape shape = graft_plan_shape(plan, plan->outputs[0]);
    for (uint32_t k = 0; k < c->in_count; k++) {
        inputs[k] = c->in[k] == NULL ? NULL : c->in[k]->data;
    }
    if (!is_small_plan(plan) || (c->of_data && has_products(plan)) || !start_result(c, &shape)) {
        return false;
    }
    memcpy(c->data, run_parts(c->reader, plan, inputs), c->out.data_bytes);
    return !graft_half_is(shape.dtype) || /* A node's result is one of its type. */
           graft_half_round_all(shape.dtype, (float *)(void *)c->data,
                                c->out.data_bytes / sizeof(float));
}

/* What moves elements of any type. */
static bool run_moves(constant *c)
{
    graft_arena *scratch = c->reader->env->scratch;
    const float *places[INPUTS_MOST] = {NULL};
    const uint8_t *bytes[INPUTS_MOST];
    uint32_t first[INPUTS_MOST + 1] = {0};
    graft_onnx_plan plan;
    graft_onnx_plan_moves(c->reader, c->node, &plan);
    if (!is_small_plan(&plan) || c->in[0] == NULL) {
        return false;
    }
    uint32_t dtype = c->in[0]->shape.dtype;
    size_t width = graft_onnx_held_bytes(dtype);
    for (uint32_t k = 0; k < c->in_count; k++) {
        const bool alike = c->in[k] != NULL && c->in[k]->shape.dtype == dtype;
        uint64_t count = alike ? c->in[k]->data_bytes / width : 0;
        if (count + first[k] >= places_most || (!alike && plan.parts[0].op == GRAFT_OP_concat)) {
            return false; /* Elsewhere the others are settings. */
        }
        float *numbers = GRAFT_NEW(scratch, float, (size_t)count);
        for (uint32_t i = 0; i < count; i++) {
            numbers[i] = (float)(first[k] + i);
        }
        places[k] = numbers;
        bytes[k] = c->in[k] == NULL ? NULL : c->in[k]->data;
        first[k + 1] = first[k] + (uint32_t)count;
    }
    graft_shape shape = graft_plan_shape(&plan, plan.outputs[0]);
    shape.dtype = (uint8_t)dtype;
    if (!start_result(c, &shape)) {
        return false;
    }
    const float *from = run_parts(c->reader, &plan, places);
    for (size_t i = 0; i < c->out.data_bytes / width; i++) {
        uint32_t place = (uint32_t)from[i];
        uint32_t k = 0;
        while (place >= first[k + 1]) {
            k++;
        }
        memcpy(c->data + i * width, bytes[k] + (place - first[k]) * width, width);
    }
    return true;
}

/* ------------------------------------------------------------------------ whole numbers */

static bool is_whole(uint32_t dtype)
{
    return dtype == GRAFT_DTYPE_I64 || dtype == GRAFT_DTYPE_I32 || dtype == GRAFT_DTYPE_BOOL;
}

static int64_t whole_at(const graft_model_weight *w, size_t i)
{
    return graft_whole_at(w->data, w->shape.dtype, i);
}

/* False when the number does not fit into the result's type. */
static bool set_whole(constant *c, size_t i, int64_t value)
{
    graft_whole_put(c->data, c->out.shape.dtype, i, value);
    return c->out.shape.dtype == GRAFT_DTYPE_I64 || (int32_t)value == value;
}

static bool add_whole(int64_t a, int64_t b, int64_t *r) { return !__builtin_add_overflow(a, b, r); }
static bool sub_whole(int64_t a, int64_t b, int64_t *r) { return !__builtin_sub_overflow(a, b, r); }
static bool mul_whole(int64_t a, int64_t b, int64_t *r) { return !__builtin_mul_overflow(a, b, r); }

/* Runtimes differ on how negative quotients are rounded, and remainders with them. */
static bool div_whole(int64_t a, int64_t b, int64_t *r)
{
    *r = a >= 0 && b > 0 ? a / b : 0;
    return a >= 0 && b > 0;
}

static bool mod_whole(int64_t a, int64_t b, int64_t *r)
{
    *r = a >= 0 && b > 0 ? a % b : 0;
    return a >= 0 && b > 0;
}

/* The shape to which two tensors are stretched; one of a single item goes with no items, too. */
static bool stretch(const graft_model_weight *const *in, graft_shape *shape)
{
    static const int32_t none[GRAFT_MAX_ATTRS] = {0};
    graft_shape sides[2] = {in[0]->shape, in[1]->shape};
    for (uint32_t k = 0; k < 2; k++) {
        if (in[k]->data_bytes == 0 && graft_shape_elements(&sides[1 - k]) <= 1) {
            *shape = sides[k];
            return sides[1 - k].rank <= 1;
        }
        sides[k].dtype = GRAFT_DTYPE_F32;
    }
    const bool fits = graft_infer_shapes(GRAFT_OP_add, none, sides, shape) == GRAFT_OK;
    shape->dtype = in[0]->shape.dtype;
    return fits;
}

static bool run_whole(constant *c)
{
    graft_shape shape;
    bool fine = c->in_count == 2 && c->in[0] != NULL && c->in[1] != NULL &&
                c->in[0]->shape.dtype == c->in[1]->shape.dtype && is_whole(c->in[0]->shape.dtype) &&
                c->in[0]->shape.dtype != GRAFT_DTYPE_BOOL &&
                graft_onnx_int(c->node, "fmod", 0) == 0 && stretch(c->in, &shape) &&
                (shape.rank <= 1 || graft_onnx_attribute(c->node, "axis") == NULL) &&
                start_result(c, &shape);
    if (!fine) {
        return false;
    }
    const graft_view a =
        graft_view_broadcast(&c->in[0]->shape, c->in[0]->shape.rank, &shape, shape.rank);
    const graft_view b =
        graft_view_broadcast(&c->in[1]->shape, c->in[1]->shape.rank, &shape, shape.rank);
    const size_t count = graft_count(&shape);
    for (size_t i = 0; i < count && fine; i++) {
        int64_t value = 0;
        fine = c->function(whole_at(c->in[0], graft_view_offset(&a, shape.rank, i)),
                           whole_at(c->in[1], graft_view_offset(&b, shape.rank, i)), &value) &&
               set_whole(c, i, value);
    }
    return fine;
}

/* ---------------------------------------------------------------- sizes, made of few, lists */

static bool input_shape(const constant *c, graft_shape *shape)
{
    *shape = graft_onnx_shape_of_input(c->reader, c->node, 0);
    return shape->rank != GRAFT_RANK_UNKNOWN && c->node->n_output == 1;
}

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

uint32_t graft_onnx_sizes(const Onnx__NodeProto *node, const graft_shape *of, int64_t *sizes)
{
    const int64_t rank = of->rank;
    int64_t start = graft_onnx_int(node, "start", 0);
    int64_t end = graft_onnx_int(node, "end", rank);
    start = clamp(start < 0 ? start + rank : start, 0, rank);
    end = clamp(end < 0 ? end + rank : end, start, rank);
    for (int64_t i = start; i < end; i++) {
        sizes[i - start] = of->dims[i];
    }
    return (uint32_t)(end - start);
}

static bool run_shape(constant *c)
{
    int64_t sizes[GRAFT_MAX_RANK];
    graft_shape of;
    graft_shape list = {.rank = 1, .dtype = GRAFT_DTYPE_I64};
    if (!input_shape(c, &of)) {
        return false;
    }
    list.dims[0] = (int32_t)graft_onnx_sizes(c->node, &of, sizes);
    if (!start_result(c, &list)) {
        return false;
    }
    memcpy(c->data, sizes, c->out.data_bytes);
    return true;
}

static bool run_size(constant *c)
{
    const graft_shape number = {.rank = 0, .dtype = GRAFT_DTYPE_I64};
    graft_shape of;
    return input_shape(c, &of) && graft_shape_elements(&of) > 0 && start_result(c, &number) &&
           set_whole(c, 0, (int64_t)graft_shape_elements(&of));
}

static bool run_constant_of_shape(constant *c)
{
    static const float zero = 0.0F;
    const Onnx__AttributeProto *attribute = graft_onnx_attribute(c->node, "value");
    graft_model_weight value = {.shape.dtype = GRAFT_DTYPE_F32, .data = &zero, .data_bytes = 4};
    graft_shape shape = {.rank = 0};
    if (c->in_count != 1 || c->in[0] == NULL || !is_list(&c->in[0]->shape) ||
        c->in[0]->shape.dims[0] > GRAFT_MAX_RANK) {
        return false;
    }
    if (attribute != NULL &&
        (attribute->t == NULL ||
         graft_onnx_weight_of_tensor(c->reader, attribute->t, "tensor", &value) != GRAFT_OK)) {
        graft_env_clear(c->reader->env);
        return false;
    }
    size_t width = graft_onnx_held_bytes(value.shape.dtype);
    shape.rank = (uint8_t)c->in[0]->shape.dims[0];
    shape.dtype = value.shape.dtype;
    for (uint32_t i = 0; i < shape.rank; i++) {
        int64_t size = whole_at(c->in[0], i);
        if (size < 0 || size > INT32_MAX) {
            return false;
        }
        shape.dims[i] = (int32_t)size;
    }
    if (value.data == NULL || width == 0 || value.data_bytes != width || !start_result(c, &shape)) {
        return false;
    }
    for (size_t i = 0; i < c->out.data_bytes; i += width) {
        memcpy(c->data + i, value.data, width);
    }
    return true;
}

/* Of lists, some of which may have no items. */
static bool run_concat(constant *c)
{
    graft_shape shape = {.rank = 1};
    const int64_t axis = graft_onnx_int(c->node, "axis", 0);
    size_t at = 0;
    if (run_moves(c)) {
        return true;
    }
    for (uint32_t k = 0; k < c->in_count; k++) {
        if (c->in[k] == NULL || !is_list(&c->in[k]->shape) ||
            (k > 0 && c->in[k]->shape.dtype != shape.dtype)) {
            return false;
        }
        shape.dtype = c->in[k]->shape.dtype;
        shape.dims[0] += c->in[k]->shape.dims[0];
    }
    if ((axis != 0 && axis != -1) || !start_result(c, &shape)) {
        return false;
    }
    for (uint32_t k = 0; k < c->in_count; k++) {
        memcpy(c->data + at, c->in[k]->data, c->in[k]->data_bytes);
        at += c->in[k]->data_bytes;
    }
    return true;
}

/* Number `k` of a slice of a list: an input, an attribute in older opsets, or `absent`. */
static bool slice_number(const constant *c, uint32_t k, const char *name, int64_t absent,
                         int64_t *number)
{
    const Onnx__AttributeProto *attribute = graft_onnx_attribute(c->node, name);
    *number = absent;
    if (k < c->in_count && c->in[k] != NULL) {
        const bool one =
            is_whole(c->in[k]->shape.dtype) && graft_shape_elements(&c->in[k]->shape) == 1;
        *number = one ? whole_at(c->in[k], 0) : 0;
        return one;
    }
    if (attribute != NULL && attribute->n_ints == 1) {
        *number = attribute->ints[0];
    }
    return attribute == NULL ? absent != INT64_MIN : attribute->n_ints == 1;
}

/* A slice that leaves nothing of a list. */
static bool run_slice_of_none(constant *c)
{
    graft_shape shape = {.rank = 1};
    int64_t start = 0;
    int64_t end = 0;
    int64_t axis = 0;
    int64_t step = 1;
    if (c->in_count == 0 || c->in[0] == NULL || !is_list(&c->in[0]->shape) ||
        !slice_number(c, 1, "starts", INT64_MIN, &start) ||
        !slice_number(c, 2, "ends", INT64_MIN, &end) || !slice_number(c, 3, "axes", 0, &axis) ||
        !slice_number(c, 4, "", 1, &step)) {
        return false;
    }
    const int64_t size = c->in[0]->shape.dims[0];
    const int64_t least = step > 0 ? 0 : -1;
    if (step < 0 && end >= INT32_MAX) {
        return false; /* Of the numbers that mean "to the end" some runtimes turn these around. */
    }
    start = clamp(start < 0 ? start + size : start, 0, step > 0 ? size : size - 1);
    end = clamp(end < 0 ? end + size : end, least, step > 0 ? size : size - 1);
    shape.dtype = c->in[0]->shape.dtype;
    return size > 0 && step != 0 && (axis == 0 || axis == -1) &&
           (step > 0 ? start >= end : start <= end) && start_result(c, &shape);
}

/* ------------------------------------------------- by the loops that run it with a model */

/* As an opaque node (opaque.h) whose inputs' elements are `data` as far as they are known. False
 * when it is none of those of foreign.h, or its shape depends on what is not known. */
static void describe_inputs(graft_onnx_reader *reader, const Onnx__NodeProto *node,
                            graft_opaque *opaque, const void **data)
{
    for (uint32_t k = 0; k < GRAFT_OPAQUE_INPUTS_MOST; k++) {
        graft_onnx_entry *entry = graft_onnx_input(reader->onnx, node, k);
        const graft_model_weight *known = entry == NULL ? NULL : find_known(reader, entry);
        opaque->in[k] = graft_onnx_shape_of_input(reader, node, k);
        data[k] = known == NULL ? NULL : known->data;
        if (known != NULL && graft_half_is(known->shape.dtype)) {
            opaque->in[k].dtype = GRAFT_DTYPE_F32; /* As they are held. */
        }
    }
}

static bool describe_foreign(graft_onnx_reader *reader, const Onnx__NodeProto *node,
                             graft_opaque *opaque, const void **data)
{
    const bool coarse = node->op_type != NULL && strcmp(node->op_type, "RoiAlign") == 0;
    if (node->op_type == NULL || node->n_input > GRAFT_OPAQUE_INPUTS_MOST ||
        (coarse && !graft_onnx_is_to_run(reader))) { /* ONNX's cases have four digits of it. */
        return false;
    }
    describe_inputs(reader, node, opaque, data);
    return graft_foreign_find(node, opaque) && graft_foreign_shape(opaque, data, &opaque->out);
}

/* Results of constants of 16 bits, which are held in binary32, are of their type. */
static graft_shape shape_of_result(graft_onnx_reader *reader, const Onnx__NodeProto *node,
                                   const graft_opaque *opaque)
{
    graft_shape shape = opaque->out;
    for (size_t k = 0; k < node->n_input && shape.dtype == GRAFT_DTYPE_F32; k++) {
        const uint8_t dtype = graft_onnx_shape_of_input(reader, node, k).dtype;
        shape.dtype = graft_half_is(dtype) ? dtype : shape.dtype;
    }
    return shape;
}

graft_shape graft_onnx_shape_of_foreign(graft_onnx_reader *reader, const Onnx__NodeProto *node,
                                        uint32_t k)
{
    const void *data[GRAFT_OPAQUE_INPUTS_MOST];
    graft_opaque opaque = {.which = k};
    bool known = describe_foreign(reader, node, &opaque, data);
    return known ? shape_of_result(reader, node, &opaque)
                 : (graft_shape){.rank = GRAFT_RANK_UNKNOWN};
}

/* Runtimes round a range of fractions in different orders. */
static bool is_fraction(const graft_opaque *opaque, const void *const *data)
{
    bool whole = true;
    for (uint32_t k = 0; k < 3 && opaque->in[k].dtype == GRAFT_DTYPE_F32; k++) {
        const float number = *(const float *)data[k];
        whole = whole && number == truncf(number) && fabsf(number) < 0x1p24F;
    }
    return !whole;
}

/* Carries out what is described but for its result. */
static bool run_opaque(constant *c, graft_opaque *opaque, const void *const *data,
                       const graft_shape *shape)
{
    graft_env *env = c->reader->env;
    if (!start_result(c, shape)) {
        return false;
    }
    void *const out[GRAFT_OPAQUE_OUTPUTS_MOST] = {c->data};
    opaque->outs[0] = opaque->out;
    opaque->out_count = 1;
    if (graft_opaque_run(env, opaque, data, out) != GRAFT_OK) {
        graft_env_clear(env);
        return false;
    }
    return !graft_half_is(shape->dtype) ||
           graft_half_round_all(shape->dtype, (float *)(void *)c->data,
                                c->out.data_bytes / sizeof(float));
}

static bool run_foreign(constant *c)
{
    const void *data[GRAFT_OPAQUE_INPUTS_MOST];
    graft_opaque opaque = {.read_count = 0};
    if (!describe_foreign(c->reader, c->node, &opaque, data) ||
        (strcmp(c->node->op_type, "Range") == 0 && is_fraction(&opaque, data))) {
        return false;
    }
    const graft_shape shape = shape_of_result(c->reader, c->node, &opaque);
    return run_opaque(c, &opaque, data, &shape);
}

/* What runtimes differ on is what the loops make of it where the model is run by them. */
static bool run_numbers(constant *c)
{
    return run_whole(c) || (graft_onnx_is_to_run(c->reader) && run_foreign(c));
}

static bool run_slice(constant *c)
{
    return run_moves(c) || run_foreign(c) || run_slice_of_none(c);
}

/* Of one tensor. */
static bool run_identity(constant *c)
{
    if (c->in_count != 1 || c->in[0] == NULL || !start_result(c, &c->in[0]->shape)) {
        return c->in_count > 1 && run_foreign(c);
    }
    memcpy(c->data, c->in[0]->data, c->out.data_bytes);
    return true;
}

/* Between whole numbers, truth values and binary32. A fraction is cut off; what does not fit into
 * the result stays a node, for runtimes differ on it. */
static bool run_cast(constant *c)
{
    const uint32_t to = (uint32_t)graft_onnx_int(c->node, "to", 0);
    if (c->in_count != 1 || c->in[0] == NULL || (to != GRAFT_DTYPE_F32 && !is_whole(to))) {
        return false;
    }
    graft_shape shape = c->in[0]->shape;
    const uint32_t from = shape.dtype;
    const size_t count = graft_count(&shape);
    bool fits = is_whole(from) || from == GRAFT_DTYPE_F32;
    for (size_t i = 0; i < count && fits && from != to; i++) {
        if (from == GRAFT_DTYPE_F32) {
            const float number = ((const float *)c->in[0]->data)[i];
            fits = number > -0x1p31F && number < 0x1p31F;
        } else if (to == GRAFT_DTYPE_I32) {
            const int64_t number = whole_at(c->in[0], i);
            fits = number == (int32_t)number;
        }
    }
    graft_opaque opaque = {.kind = GRAFT_OPAQUE_CAST, .in = {shape}};
    const void *const data[GRAFT_OPAQUE_INPUTS_MOST] = {c->in[0]->data};
    shape.dtype = (uint8_t)to;
    opaque.out = shape;
    return fits && run_opaque(c, &opaque, data, &shape);
}

/* A type whose elements are as wide as those that are only moved. */
static uint8_t moved_type(size_t width)
{
    return width == 1   ? GRAFT_DTYPE_U8
           : width == 2 ? GRAFT_DTYPE_F16
           : width == 4 ? GRAFT_DTYPE_F32
                        : GRAFT_DTYPE_F64;
}

/* Any places along an axis. */
static bool run_gather(constant *c)
{
    if (c->in_count != 2 || c->in[0] == NULL || c->in[1] == NULL || c->in[0]->data_bytes == 0 ||
        !is_whole(c->in[1]->shape.dtype) || c->in[1]->shape.dtype == GRAFT_DTYPE_BOOL) {
        return false;
    }
    const int64_t axis = graft_onnx_int(c->node, "axis", 0);
    const graft_shape shape = graft_onnx_gathered_shape(&c->in[0]->shape, &c->in[1]->shape, axis);
    const void *const data[GRAFT_OPAQUE_INPUTS_MOST] = {c->in[0]->data, c->in[1]->data};
    graft_opaque opaque = {
        .kind = GRAFT_OPAQUE_GATHER,
        .axis = (uint32_t)(axis + (axis < 0 ? c->in[0]->shape.rank : 0)),
        .in = {c->in[0]->shape, c->in[1]->shape},
        .out = shape
    };
    opaque.in[0].dtype = moved_type(graft_onnx_held_bytes(shape.dtype));
    return shape.rank != GRAFT_RANK_UNKNOWN && run_opaque(c, &opaque, data, &shape);
}

static const struct {
    const char *op_type;
    bool (*run)(constant *c);
    whole_function *function;
} rows[] = {
    {"Shape",           run_shape,             NULL     }, /* These two read sizes, not elements. */
    {"Size",            run_size,              NULL     },
    {"Identity",        run_identity,          NULL     },
    {"Max",             run_identity,          NULL     },
    {"Min",             run_identity,          NULL     },
    {"Sum",             run_identity,          NULL     },
    {"Cast",            run_cast,              NULL     },
    {"ConstantOfShape", run_constant_of_shape, NULL     },
    {"Concat",          run_concat,            NULL     },
    {"Gather",          run_gather,            NULL     },
    {"Slice",           run_slice,             NULL     },
    {"Add",             run_numbers,           add_whole},
    {"Sub",             run_numbers,           sub_whole},
    {"Mul",             run_numbers,           mul_whole},
    {"Div",             run_numbers,           div_whole},
    {"Mod",             run_numbers,           mod_whole},
};
enum { SIZE_ROWS = 2, ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

const graft_model_weight *graft_onnx_fold_constant(graft_onnx_reader *reader,
                                                   const Onnx__NodeProto *node,
                                                   const graft_onnx_plan *plan)
{
    constant c = {.reader = reader, .node = node, .is_planned = plan->refusal == NULL};
    graft_model_weight *known = NULL;
    uint32_t row = 0;
    while (row < ROW_COUNT &&
           (node->op_type == NULL || strcmp(rows[row].op_type, node->op_type) != 0)) {
        row++;
    }
    c.function = row < ROW_COUNT ? rows[row].function : NULL;
    const bool ready = row < SIZE_ROWS || find_inputs(&c);
    if (ready && (plan->refusal == NULL ? run_plan(&c, plan)
                  : row < ROW_COUNT     ? rows[row].run(&c)
                                        : run_moves(&c) || run_foreign(&c))) {
        known = GRAFT_COPY(reader->arena, &c.out, 1);
        known->name = node->output[0];
        graft_onnx_entry *entry = graft_onnx_entry_named(reader->onnx, known->name);
        if (entry != NULL) {
            entry->spare = c.spare;
        }
    }
    return known;
}

const float *graft_onnx_dequantised(graft_onnx_reader *reader, const Onnx__NodeProto *node,
                                    graft_shape *shape)
{
    const void *data[GRAFT_OPAQUE_INPUTS_MOST];
    graft_opaque opaque = {.read_count = 0};
    if (node->op_type == NULL || strcmp(node->op_type, "DequantizeLinear") != 0 ||
        node->n_input > GRAFT_OPAQUE_INPUTS_MOST) {
        return NULL;
    }
    describe_inputs(reader, node, &opaque, data);
    opaque.out = opaque.in[0];
    opaque.out.dtype = GRAFT_DTYPE_F32;
    if (opaque.in[0].rank == GRAFT_RANK_UNKNOWN || !graft_quantised_find(node, &opaque)) {
        return NULL;
    }
    for (size_t k = 0; k < node->n_input; k++) {
        if (data[k] == NULL && opaque.in[k].rank != GRAFT_RANK_UNKNOWN) {
            return NULL;
        }
    }
    *shape = opaque.out;
    float *numbers = GRAFT_NEW(reader->arena, float, graft_count(shape));
    graft_quantised_run(reader->env->scratch, &opaque, data, numbers);
    return numbers;
}

/* ------------------------------------------------------------- how much there is to store */

/* Whether a node is written: it runs, or it is of weights alone and nobody here computes it. */
static bool is_written(const graft_node *node)
{
    return node->op != GRAFT_OP_NONE && (!node->is_const || node->op == GRAFT_OP_OPAQUE);
}

/* By value: whether a node that is written reads it, or it is the model's output. */
static bool *find_read(graft_arena *scratch, const graft_graph *graph)
{
    bool *read = GRAFT_NEW(scratch, bool, graph->value_end);
    for (graft_index i = 0; i < graph->output_count; i++) {
        read[graph->outputs[i]] = true;
    }
    for (graft_index n = 0; n < graph->node_end; n++) {
        const bool written = is_written(&graph->nodes[n]);
        for (uint32_t k = 0; written && k < graph->nodes[n].input_count; k++) {
            const graft_index v = graft_node_input(graph, n, k);
            if (v != GRAFT_NONE) {
                read[v] = true;
            }
        }
    }
    return read;
}

/* Bytes of the nodes of the file that are written. */
static uint64_t node_bytes(graft_arena *scratch, const graft_model *model)
{
    const graft_graph *graph = &model->graph;
    bool *counted = GRAFT_NEW(scratch, bool, model->onnx->node_count);
    uint64_t bytes = 0;
    for (graft_index n = 0; n < graph->node_end; n++) {
        const graft_node *node = &graph->nodes[n];
        if (!is_written(node) || node->source >= model->record_count) {
            continue;
        }
        const uint32_t i = model->records[node->source].onnx_node;
        bytes +=
            counted[i]
                ? 0
                : protobuf_c_message_get_packed_size(&model->onnx->proto->graph->node[i]->base);
        counted[i] = true;
    }
    return bytes;
}

bool graft_onnx_swells(graft_env *env, const graft_model *model, uint64_t had)
{
    enum { PAGES_BYTES = 16 << 10, PART = 100 };
    const graft_graph *graph = &model->graph;
    GRAFT_SCOPED(env->scratch);
    const bool *read = find_read(env->scratch, graph);
    uint64_t bytes = node_bytes(env->scratch, model);
    for (graft_index v = 0; v < graph->value_end; v++) {
        const graft_value *value = &graph->values[v];
        const Onnx__TensorProto *tensor =
            value->kind == GRAFT_VALUE_WEIGHT ? model->weights[value->source].tensor : NULL;
        if (read[v] && tensor != NULL) {
            bytes += protobuf_c_message_get_packed_size(&tensor->base);
        } else if (read[v] && value->is_const && value->shape.rank != GRAFT_RANK_UNKNOWN &&
                   (value->node == GRAFT_NONE || !is_written(&graph->nodes[value->node]))) {
            bytes += graft_shape_bytes(&value->shape);
        }
    }
    return bytes > had + had / PART + PAGES_BYTES;
}

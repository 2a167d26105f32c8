/* onnx_constant.c - nodes of constants alone, carried out while a model is read (see onnx.h).
 *
 * Exporters compute masks, tables of places and targets of Expand in the graph. What onnx_fold.c
 * does for short lists of sizes is done here for tensors of any rank. Values of binary32 come from
 * the reference bodies. So does what only moves elements, of whatever type: the bodies run on the
 * places of the elements, which binary32 holds exactly below 2^24, and say which element goes
 * where. Arithmetic of whole numbers is done here, where results that runtimes differ on are refused;
 * what is left runs by the loops that run it with a model (foreign.h).
 *
 * Growth is bounded: a result larger than 1 MiB and than what it is made of stays a node, and so
 * does everything once results of 64 MiB are held. */
#include "graph/meaning/algebra_float.h"
#include "graph/meaning/foreign.h"
#include "graph/onnx/onnx.h"

#include <math.h>
#include <string.h>

enum { INPUTS_MOST = 64, RESULT_BYTES_MOST = 1 << 20, ALL_BYTES_MOST = 64 << 20 };
enum { TIGHT_BYTES_MOST = 1 << 10 };

static const uint32_t places_most = 1U << 24;

typedef struct {
    graft_onnx_reader *reader;
    const Onnx__NodeProto *node;
    const graft_model_weight *in[INPUTS_MOST]; /* NULL: not given. */
    uint32_t in_count;
    uint64_t in_bytes;
    graft_model_weight out;
    uint8_t *data; /* Of `out`, while it is being filled. */
} constant;

/* ------------------------------------------------------------------------ what is known */

static const graft_model_weight *known_of_numbers(graft_arena *arena, const graft_onnx_ints *ints)
{
    graft_model_weight *known = GRAFT_NEW(arena, graft_model_weight, 1);
    bool wide = ints->dtype == GRAFT_DTYPE_I64;
    known->shape = (graft_shape){.rank = ints->rank, .dtype = ints->dtype};
    known->shape.dims[0] = ints->rank == 0 ? 0 : (int32_t)ints->count;
    known->data_bytes = ints->count * (wide ? sizeof(int64_t) : sizeof(int32_t));
    known->data = ints->items;
    if (!wide) {
        int32_t *narrow = GRAFT_NEW(arena, int32_t, ints->count);
        for (uint32_t i = 0; i < ints->count; i++) {
            narrow[i] = (int32_t)ints->items[i];
        }
        known->data = narrow;
    }
    return known;
}

/* The elements of an entry when they are known: of a weight, numbers, or what a node of constants
 * computes; NULL otherwise. In the model's arena. */
static const graft_model_weight *find_known(graft_onnx_reader *reader,
                                            const graft_onnx_entry *entry)
{
    if (entry->known != NULL) {
        return entry->known;
    }
    if (entry->ints != NULL) {
        return known_of_numbers(reader->arena, entry->ints);
    }
    if (entry->weight == GRAFT_NONE) {
        return NULL;
    }
    const graft_model_weight *weight = &reader->weights[entry->weight];
    return weight->data != NULL && weight->shape.rank != GRAFT_RANK_UNKNOWN ? weight : NULL;
}

static bool find_inputs(constant *c)
{
    c->in_count = (uint32_t)c->node->n_input;
    if (c->node->n_input > INPUTS_MOST || c->node->n_output != 1) {
        return false;
    }
    for (uint32_t k = 0; k < c->in_count; k++) {
        const graft_onnx_entry *entry = graft_onnx_input(c->reader->onnx, c->node, k);
        c->in[k] = entry == NULL ? NULL : find_known(c->reader, entry);
        if (entry != NULL && c->in[k] == NULL) {
            return false;
        }
        c->in_bytes += entry == NULL ? 0 : c->in[k]->data_bytes;
    }
    return true;
}

/* Makes room for the result. */
static bool start_result(constant *c, const graft_shape *shape)
{
    uint64_t elements = graft_shape_elements(shape);
    uint64_t bytes = elements * graft_onnx_held_bytes(shape->dtype);
    const uint64_t growth = bytes > c->in_bytes ? bytes - c->in_bytes : 0;
    if (elements == 0 || elements > INT32_MAX || bytes == 0 ||
        (bytes > RESULT_BYTES_MOST && growth > 0) ||
        bytes + c->reader->known_bytes > ALL_BYTES_MOST ||
        (c->reader->tight && growth > TIGHT_BYTES_MOST)) {
        return false;
    }
    c->reader->known_bytes += bytes;
    c->data = GRAFT_NEW(c->reader->arena, uint8_t, (size_t)bytes);
    c->out = (graft_model_weight){.shape = *shape, .data = c->data, .data_bytes = (size_t)bytes};
    return true;
}

static const Onnx__AttributeProto *find_attribute(const constant *c, const char *name)
{
    for (size_t i = 0; i < c->node->n_attribute; i++) {
        const Onnx__AttributeProto *attribute = c->node->attribute[i];
        if (attribute->name != NULL && strcmp(attribute->name, name) == 0) {
            return attribute;
        }
    }
    return NULL;
}

static int64_t int_attribute(const constant *c, const char *name, int64_t absent)
{
    const Onnx__AttributeProto *attribute = find_attribute(c, name);
    return attribute != NULL && attribute->has_i ? attribute->i : absent;
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

/* A planned node; what it reads is known, its parts stay. */
static bool run_plan(constant *c, const graft_onnx_plan *plan)
{
    const float *inputs[INPUTS_MOST] = {NULL};
    graft_shape shape = graft_plan_shape(plan, plan->outputs[0]);
    for (uint32_t k = 0; k < c->in_count; k++) {
        inputs[k] = c->in[k] == NULL ? NULL : c->in[k]->data;
    }
    if (!is_small_plan(plan) || !start_result(c, &shape)) {
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
        uint64_t count =
            c->in[k] == NULL || c->in[k]->shape.dtype != dtype ? 0 : c->in[k]->data_bytes / width;
        if (count + first[k] >= places_most) {
            return false;
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

/* -------------------------------------------------------------------- element by element */

static bool is_whole(uint32_t dtype)
{
    return dtype == GRAFT_DTYPE_I64 || dtype == GRAFT_DTYPE_I32 || dtype == GRAFT_DTYPE_BOOL;
}

static int64_t whole_at(const graft_model_weight *w, size_t i)
{
    return w->shape.dtype == GRAFT_DTYPE_I64   ? ((const int64_t *)w->data)[i]
           : w->shape.dtype == GRAFT_DTYPE_I32 ? ((const int32_t *)w->data)[i]
                                               : ((const uint8_t *)w->data)[i] != 0;
}

/* False when the number does not fit into the result's type. */
static bool set_whole(constant *c, size_t i, int64_t value)
{
    if (c->out.shape.dtype == GRAFT_DTYPE_I64) {
        memcpy(c->data + i * sizeof(value), &value, sizeof(value));
    } else if (c->out.shape.dtype == GRAFT_DTYPE_I32) {
        int32_t narrow = (int32_t)value;
        memcpy(c->data + i * sizeof(narrow), &narrow, sizeof(narrow));
        return narrow == value;
    } else {
        c->data[i] = value != 0;
    }
    return true;
}

/* The shape to which the inputs that are given are stretched. */
static bool stretch_shapes(const constant *c, graft_shape *shape)
{
    *shape = (graft_shape){.rank = 0};
    for (uint32_t k = 0; k < c->in_count; k++) {
        if (c->in[k] == NULL || graft_shape_elements(&c->in[k]->shape) == 0) {
            return false;
        }
        shape->rank = c->in[k]->shape.rank > shape->rank ? c->in[k]->shape.rank : shape->rank;
    }
    for (uint32_t i = 0; i < shape->rank; i++) {
        shape->dims[i] = 1;
        for (uint32_t k = 0; k < c->in_count; k++) {
            const graft_shape *in = &c->in[k]->shape;
            uint32_t missing = (uint32_t)shape->rank - in->rank;
            int32_t size = i < missing ? 1 : in->dims[i - missing];
            if (size != 1 && shape->dims[i] != 1 && size != shape->dims[i]) {
                return false;
            }
            shape->dims[i] = size != 1 ? size : shape->dims[i];
        }
    }
    return true;
}

/* The element of input `k` that element `at` of the result is made of. */
static size_t stretched_place(const constant *c, uint32_t k, size_t at)
{
    const graft_shape *in = &c->in[k]->shape;
    uint32_t missing = (uint32_t)c->out.shape.rank - in->rank;
    size_t place = 0;
    size_t step = 1;
    for (uint32_t i = in->rank; i-- > 0;) {
        size_t size = (size_t)c->out.shape.dims[i + missing];
        place += in->dims[i] == 1 ? 0 : at % size * step;
        step *= (size_t)in->dims[i];
        at /= size;
    }
    return place;
}

typedef bool whole_function(int64_t a, int64_t b, int64_t *result);

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

typedef struct {
    const char *op_type;
    whole_function *function;
} whole_row;

static const whole_row whole_rows[] = {
    {"Add", add_whole},
    {"Sub", sub_whole},
    {"Mul", mul_whole},
    {"Div", div_whole},
    {"Mod", mod_whole},
};

static bool run_whole(constant *c, const whole_row *row)
{
    graft_shape shape;
    uint32_t dtype = c->in_count > 0 && c->in[0] != NULL ? c->in[0]->shape.dtype : 0;
    bool alike = c->in_count == 2 && c->in[1] != NULL && c->in[1]->shape.dtype == dtype;
    if (!alike || !is_whole(dtype) || dtype == GRAFT_DTYPE_BOOL || !stretch_shapes(c, &shape) ||
        find_attribute(c, "axis") != NULL || int_attribute(c, "fmod", 0) != 0) {
        return false;
    }
    shape.dtype = (uint8_t)dtype;
    if (!start_result(c, &shape)) {
        return false;
    }
    uint64_t count = graft_shape_elements(&shape);
    bool fine = true;
    for (size_t i = 0; i < count && fine; i++) {
        int64_t value = 0;
        fine = row->function(whole_at(c->in[0], stretched_place(c, 0, i)),
                             whole_at(c->in[1], stretched_place(c, 1, i)), &value) &&
               set_whole(c, i, value);
    }
    return fine;
}

/* Between whole numbers, truth values and binary32. A fraction is cut off; what does not fit into
 * the result stays a node, for runtimes differ on it. */
static bool cast_one(constant *c, size_t i, uint32_t from)
{
    float value = 0.0F;
    if (from == GRAFT_DTYPE_F32) {
        memcpy(&value, (const uint8_t *)c->in[0]->data + i * sizeof(value), sizeof(value));
        bool to_bool = c->out.shape.dtype == GRAFT_DTYPE_BOOL;
        return value > -0x1p31F && value < 0x1p31F &&
               set_whole(c, i, to_bool ? value != 0.0F : (int64_t)value);
    }
    int64_t whole = whole_at(c->in[0], i);
    if (c->out.shape.dtype != GRAFT_DTYPE_F32) {
        return set_whole(c, i, whole);
    }
    value = (float)whole;
    memcpy(c->data + i * sizeof(value), &value, sizeof(value));
    return true;
}

static bool run_cast(constant *c)
{
    int64_t to = int_attribute(c, "to", 0);
    uint32_t from = c->in_count == 1 && c->in[0] != NULL ? c->in[0]->shape.dtype : 0;
    bool known = (is_whole(from) || from == GRAFT_DTYPE_F32) && to > 0 &&
                 (to == GRAFT_DTYPE_F32 || is_whole((uint32_t)to));
    if (!known) {
        return false;
    }
    graft_shape shape = c->in[0]->shape;
    shape.dtype = (uint8_t)to;
    if (!start_result(c, &shape)) {
        return false;
    }
    bool fine = true;
    uint64_t count = graft_shape_elements(&shape);
    if (from == (uint32_t)to) {
        memcpy(c->data, c->in[0]->data, c->out.data_bytes);
        return true;
    }
    for (size_t i = 0; i < count && fine; i++) {
        fine = cast_one(c, i, from);
    }
    return fine;
}

/* ----------------------------------------------------------------- made of few, or picked */

static bool run_constant_of_shape(constant *c)
{
    static const float zero = 0.0F;
    const Onnx__AttributeProto *attribute = find_attribute(c, "value");
    graft_model_weight value = {.shape.dtype = GRAFT_DTYPE_F32, .data = &zero, .data_bytes = 4};
    graft_shape shape = {.rank = 0};
    if (c->in_count != 1 || c->in[0] == NULL || c->in[0]->shape.dtype != GRAFT_DTYPE_I64 ||
        c->in[0]->shape.rank != 1 || c->in[0]->shape.dims[0] > GRAFT_MAX_RANK) {
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
        if (size < 1 || size > INT32_MAX) {
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

/* Any places along an axis. */
static bool run_gather(constant *c)
{
    if (c->in_count != 2 || c->in[0] == NULL || c->in[1] == NULL ||
        !is_whole(c->in[1]->shape.dtype) || c->in[1]->shape.dtype == GRAFT_DTYPE_BOOL) {
        return false;
    }
    const graft_shape *data = &c->in[0]->shape;
    const graft_shape *places = &c->in[1]->shape;
    int64_t axis = int_attribute(c, "axis", 0);
    axis += axis < 0 ? data->rank : 0;
    if (axis < 0 || axis >= data->rank || data->rank + places->rank - 1 > GRAFT_MAX_RANK) {
        return false;
    }
    graft_shape shape = {.rank = (uint8_t)(data->rank + places->rank - 1), .dtype = data->dtype};
    uint32_t at = (uint32_t)axis;
    for (uint32_t i = 0; i < shape.rank; i++) {
        shape.dims[i] = i < at                  ? data->dims[i]
                        : i < at + places->rank ? places->dims[i - at]
                                                : data->dims[i + 1U - places->rank];
    }
    if (!start_result(c, &shape)) {
        return false;
    }
    size_t inner =
        (size_t)graft_axes_count(data, at + 1, data->rank) * graft_onnx_held_bytes(data->dtype);
    size_t outer = (size_t)graft_axes_count(data, 0, at);
    size_t count = (size_t)graft_shape_elements(places);
    for (size_t i = 0; i < outer * count; i++) {
        int64_t place = whole_at(c->in[1], i % count);
        place += place < 0 ? data->dims[at] : 0;
        if (place < 0 || place >= data->dims[at]) {
            return false;
        }
        size_t row = i / count * (size_t)data->dims[at] + (size_t)place;
        memcpy(c->data + i * inner, (const uint8_t *)c->in[0]->data + row * inner, inner);
    }
    return true;
}

/* What a slice takes of an axis. */
typedef struct {
    int64_t start;
    int64_t step;
    int32_t count;
} taken;

/* Number `i` of input `k`, or `absent`. */
static int64_t number_of(const constant *c, uint32_t k, uint32_t i, int64_t absent)
{
    return k < c->in_count && c->in[k] != NULL ? whole_at(c->in[k], i) : absent;
}

static bool take_of_axis(const constant *c, uint32_t i, int64_t size, taken *t)
{
    int64_t start = whole_at(c->in[1], i);
    int64_t end = whole_at(c->in[2], i);
    int64_t step = number_of(c, 4, i, 1);
    int64_t least = step > 0 ? 0 : -1;
    int64_t most = step > 0 ? size : size - 1;
    if (step == 0 || step > INT32_MAX || step < INT32_MIN) {
        return false;
    }
    start += start < 0 ? size : 0;
    end += end < 0 ? size : 0;
    start = start < 0 ? 0 : start > most ? most : start;
    end = end < least ? least : end > most ? most : end;
    int64_t way = step > 0 ? end - start : start - end;
    int64_t stride = step > 0 ? step : -step;
    *t = (taken){.start = start,
                 .step = step,
                 .count = (int32_t)(way <= 0 ? 0 : (way + stride - 1) / stride)};
    return t->count > 0;
}

/* Which of each axis; false when the bounds make no sense. */
static bool read_slice(const constant *c, taken *axes)
{
    const graft_shape *in = &c->in[0]->shape;
    uint64_t count = graft_shape_elements(&c->in[1]->shape);
    uint32_t seen = 0;
    for (uint32_t k = 1; k < c->in_count; k++) {
        if (c->in[k] != NULL &&
            (graft_shape_elements(&c->in[k]->shape) != count || !is_whole(c->in[k]->shape.dtype))) {
            return false;
        }
    }
    for (uint32_t i = 0; i < in->rank; i++) {
        axes[i] = (taken){.start = 0, .step = 1, .count = in->dims[i]};
    }
    for (uint32_t i = 0; i < count; i++) {
        int64_t axis = number_of(c, 3, i, i);
        axis += axis < 0 ? in->rank : 0;
        if (axis < 0 || axis >= in->rank || (seen & 1U << axis) != 0 ||
            !take_of_axis(c, i, in->dims[axis], &axes[axis])) {
            return false;
        }
        seen |= 1U << axis;
    }
    return true;
}

/* A slice with steps; one without is a move of the engine's. */
static bool run_slice(constant *c)
{
    taken axes[GRAFT_MAX_RANK];
    if (run_moves(c)) {
        return true;
    }
    if (c->in_count < 3 || c->in_count > 5 || c->in[0] == NULL || c->in[1] == NULL ||
        c->in[2] == NULL || !read_slice(c, axes)) {
        return false;
    }
    graft_shape shape = c->in[0]->shape;
    for (uint32_t i = 0; i < shape.rank; i++) {
        shape.dims[i] = axes[i].count;
    }
    if (!start_result(c, &shape)) {
        return false;
    }
    size_t width = graft_onnx_held_bytes(shape.dtype);
    for (size_t i = 0; i < c->out.data_bytes / width; i++) {
        size_t rest = i;
        size_t from = 0;
        size_t step = 1;
        for (uint32_t a = shape.rank; a-- > 0;) {
            int64_t place = axes[a].start + (int64_t)(rest % (size_t)axes[a].count) * axes[a].step;
            from += (size_t)place * step;
            step *= (size_t)c->in[0]->shape.dims[a];
            rest /= (size_t)axes[a].count;
        }
        memcpy(c->data + i * width, (const uint8_t *)c->in[0]->data + from * width, width);
    }
    return true;
}

static bool only_replaces(const constant *c)
{
    const Onnx__AttributeProto *reduction = find_attribute(c, "reduction");
    return reduction == NULL ||
           (reduction->s.len == 4 && memcmp(reduction->s.data, "none", 4) == 0);
}

/* Rows of the third input take the places that the second names. */
static bool run_scatter(constant *c)
{
    if (c->in_count != 3 || c->in[0] == NULL || c->in[1] == NULL || c->in[2] == NULL ||
        c->in[0]->shape.dtype != c->in[2]->shape.dtype || !only_replaces(c) ||
        c->in[1]->shape.dtype != GRAFT_DTYPE_I64 || c->in[1]->shape.rank == 0) {
        return false;
    }
    const graft_shape *data = &c->in[0]->shape;
    const graft_shape *places = &c->in[1]->shape;
    uint32_t depth = (uint32_t)places->dims[places->rank - 1];
    if (depth == 0 || depth > data->rank) {
        return false;
    }
    uint64_t count = graft_shape_elements(places) / depth;
    size_t row =
        (size_t)graft_axes_count(data, depth, data->rank) * graft_onnx_held_bytes(data->dtype);
    if (count * row != c->in[2]->data_bytes || !start_result(c, data)) {
        return false;
    }
    memcpy(c->data, c->in[0]->data, c->out.data_bytes);
    for (size_t i = 0; i < count; i++) {
        size_t to = 0;
        for (uint32_t d = 0; d < depth; d++) {
            int64_t place = whole_at(c->in[1], i * depth + d);
            place += place < 0 ? data->dims[d] : 0;
            if (place < 0 || place >= data->dims[d]) {
                return false;
            }
            to = to * (size_t)data->dims[d] + (size_t)place;
        }
        memcpy(c->data + to * row, (const uint8_t *)c->in[2]->data + i * row, row);
    }
    return true;
}

/* ------------------------------------------------- by the loops that run it with a model */

/* As an opaque node (opaque.h) whose inputs' elements are `data` as far as they are known. False
 * when it is none of those of foreign.h, or its shape depends on what is not known. */
static bool describe_foreign(graft_onnx_reader *reader, const Onnx__NodeProto *node,
                             graft_opaque *opaque, const void **data)
{
    if (node->op_type == NULL || node->n_input > GRAFT_OPAQUE_INPUTS_MOST) {
        return false;
    }
    for (uint32_t k = 0; k < GRAFT_OPAQUE_INPUTS_MOST; k++) {
        const graft_onnx_entry *entry = graft_onnx_input(reader->onnx, node, k);
        const graft_model_weight *known = entry == NULL ? NULL : find_known(reader, entry);
        opaque->in[k] = entry == NULL ? (graft_shape){.rank = GRAFT_RANK_UNKNOWN}
                                      : graft_onnx_shape_of_entry(reader, entry);
        data[k] = known == NULL ? NULL : known->data;
        if (known != NULL && graft_half_is(known->shape.dtype)) {
            opaque->in[k].dtype = GRAFT_DTYPE_F32; /* As they are held. */
        }
    }
    return graft_foreign_find(node, opaque) && graft_foreign_shape(opaque, data, &opaque->out);
}

/* Results of constants of 16 bits, which are held in binary32, are of their type. */
static graft_shape shape_of_result(graft_onnx_reader *reader, const Onnx__NodeProto *node,
                                   const graft_opaque *opaque)
{
    graft_shape shape = opaque->out;
    for (size_t k = 0; k < node->n_input && shape.dtype == GRAFT_DTYPE_F32; k++) {
        const graft_onnx_entry *entry = graft_onnx_input(reader->onnx, node, k);
        const uint8_t dtype = entry == NULL ? 0 : graft_onnx_shape_of_entry(reader, entry).dtype;
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

static bool run_foreign(constant *c)
{
    const void *data[GRAFT_OPAQUE_INPUTS_MOST];
    graft_opaque opaque = {.read_count = 0};
    graft_env *env = c->reader->env;
    if (!describe_foreign(c->reader, c->node, &opaque, data) ||
        (strcmp(c->node->op_type, "Range") == 0 && is_fraction(&opaque, data))) {
        return false;
    }
    const graft_shape shape = shape_of_result(c->reader, c->node, &opaque);
    if (!start_result(c, &shape)) {
        return false;
    }
    void *const out[GRAFT_OPAQUE_OUTPUTS_MOST] = {c->data};
    opaque.outs[0] = opaque.out;
    opaque.out_count = 1;
    if (graft_foreign_run(env, &opaque, data, out) != GRAFT_OK) {
        graft_env_clear(env);
        return false;
    }
    return !graft_half_is(shape.dtype) ||
           graft_half_round_all(shape.dtype, (float *)(void *)c->data,
                                c->out.data_bytes / sizeof(float));
}

static const struct {
    const char *op_type;
    bool (*run)(constant *c);
} rows[] = {
    {"Cast",            run_cast             },
    {"ConstantOfShape", run_constant_of_shape},
    {"Gather",          run_gather           },
    {"Slice",           run_slice            },
    {"ScatterND",       run_scatter          },
};

static bool run_operator(constant *c)
{
    const char *op_type = c->node->op_type == NULL ? "" : c->node->op_type;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].op_type, op_type) == 0) {
            return rows[i].run(c);
        }
    }
    for (size_t i = 0; i < sizeof(whole_rows) / sizeof(whole_rows[0]); i++) {
        if (strcmp(whole_rows[i].op_type, op_type) == 0) {
            return run_whole(c, &whole_rows[i]);
        }
    }
    return run_moves(c) || run_foreign(c);
}

const graft_model_weight *graft_onnx_fold_constant(graft_onnx_reader *reader,
                                                   const Onnx__NodeProto *node,
                                                   const graft_onnx_plan *plan)
{
    constant c = {.reader = reader, .node = node};
    graft_model_weight *known = NULL;
    if (find_inputs(&c) && (plan->refusal == NULL ? run_plan(&c, plan) : run_operator(&c))) {
        known = GRAFT_NEW(reader->arena, graft_model_weight, 1);
        *known = c.out;
        known->name = node->output[0];
    }
    return known;
}

/* onnx_fold.c - whole-number arithmetic on sizes, carried out while a model is read (see onnx.h).
 *
 * Frameworks compute the target of a Reshape in the graph: Shape, Gather, Unsqueeze, Concat. Once
 * the sizes of the inputs are bound all of these are known, so only scalars and lists of int64 or
 * int32 are followed here; whatever does not fit stays in the graph. */
#include "graph/onnx/onnx.h"

#include <string.h>

/* Longer lists are data, not sizes. */
enum { ITEMS_MOST = 1024, INPUTS_MOST = 64 };

typedef struct {
    graft_onnx_reader *reader;
    const Onnx__NodeProto *node;
    const graft_onnx_ints *in[INPUTS_MOST]; /* NULL: not given. */
    size_t in_count;
    int64_t *items;
    graft_onnx_ints out; /* `items`, while it is being filled. */
} fold;

typedef bool fold_function(fold *f);

/* Makes room for the result. */
static bool start_result(fold *f, uint32_t count, uint32_t rank, uint8_t dtype)
{
    if (count > ITEMS_MOST) {
        return false;
    }
    f->items = GRAFT_NEW(f->reader->arena, int64_t, count);
    f->out =
        (graft_onnx_ints){.items = f->items, .count = count, .rank = (uint8_t)rank, .dtype = dtype};
    return true;
}

static bool copy_result(fold *f, const graft_onnx_ints *from, uint32_t rank)
{
    if (!start_result(f, from->count, rank, from->dtype)) {
        return false;
    }
    for (uint32_t i = 0; i < from->count; i++) {
        f->items[i] = from->items[i];
    }
    return true;
}

static const Onnx__AttributeProto *find_attribute(const fold *f, const char *name)
{
    for (size_t i = 0; i < f->node->n_attribute; i++) {
        const Onnx__AttributeProto *attribute = f->node->attribute[i];
        if (attribute->name != NULL && strcmp(attribute->name, name) == 0) {
            return attribute;
        }
    }
    return NULL;
}

static int64_t int_attribute(const fold *f, const char *name, int64_t absent)
{
    const Onnx__AttributeProto *attribute = find_attribute(f, name);
    return attribute != NULL && attribute->has_i ? attribute->i : absent;
}

/* The numbers of input `k`, or of the attribute that held them in older opsets. */
static bool find_numbers(const fold *f, size_t k, const char *name, graft_onnx_ints *numbers)
{
    const Onnx__AttributeProto *attribute = find_attribute(f, name);
    if (k < f->in_count && f->in[k] != NULL) {
        *numbers = *f->in[k];
        return true;
    }
    if (attribute != NULL && attribute->n_ints <= ITEMS_MOST) {
        *numbers = (graft_onnx_ints){.items = attribute->ints,
                                     .count = (uint32_t)attribute->n_ints,
                                     .rank = 1,
                                     .dtype = GRAFT_DTYPE_I64};
        return true;
    }
    return false;
}

/* ------------------------------------------------------------------------------ operators */

static bool input_shape(const fold *f, graft_shape *shape)
{
    const graft_onnx_entry *entry = graft_onnx_input(f->reader->onnx, f->node, 0);
    if (entry == NULL) {
        return false;
    }
    *shape = graft_onnx_shape_of_entry(f->reader, entry);
    return shape->rank != GRAFT_RANK_UNKNOWN;
}

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

static bool fold_shape(fold *f)
{
    graft_shape shape;
    if (!input_shape(f, &shape)) {
        return false;
    }
    int64_t rank = shape.rank;
    int64_t start = int_attribute(f, "start", 0);
    int64_t end = int_attribute(f, "end", rank);
    start = clamp(start < 0 ? start + rank : start, 0, rank);
    end = clamp(end < 0 ? end + rank : end, start, rank);
    if (!start_result(f, (uint32_t)(end - start), 1, GRAFT_DTYPE_I64)) {
        return false;
    }
    for (int64_t i = start; i < end; i++) {
        f->items[i - start] = shape.dims[i];
    }
    return true;
}

static bool fold_size(fold *f)
{
    graft_shape shape;
    if (!input_shape(f, &shape) || !start_result(f, 1, 0, GRAFT_DTYPE_I64)) {
        return false;
    }
    f->items[0] = (int64_t)graft_shape_elements(&shape);
    return f->items[0] > 0;
}

static bool fold_identity(fold *f)
{
    return f->in_count == 1 && f->in[0] != NULL && copy_result(f, f->in[0], f->in[0]->rank);
}

static bool fits_type(int64_t value, uint8_t dtype)
{
    return dtype == GRAFT_DTYPE_I64 || (value >= INT32_MIN && value <= INT32_MAX);
}

static bool fold_cast(fold *f)
{
    int64_t to = int_attribute(f, "to", 0);
    if ((to != GRAFT_DTYPE_I64 && to != GRAFT_DTYPE_I32) || !fold_identity(f)) {
        return false;
    }
    f->out.dtype = (uint8_t)to;
    for (uint32_t i = 0; i < f->out.count; i++) {
        if (!fits_type(f->items[i], f->out.dtype)) {
            return false;
        }
    }
    return true;
}

static bool fold_gather(fold *f)
{
    int64_t axis = int_attribute(f, "axis", 0);
    const graft_onnx_ints *data = f->in[0];
    const graft_onnx_ints *indices = f->in[1];
    if (f->in_count != 2 || data == NULL || indices == NULL || data->rank != 1 ||
        (axis != 0 && axis != -1) || !start_result(f, indices->count, indices->rank, data->dtype)) {
        return false;
    }
    for (uint32_t i = 0; i < indices->count; i++) {
        int64_t index = indices->items[i];
        index = index < 0 ? index + data->count : index;
        if (index < 0 || index >= data->count) {
            return false;
        }
        f->items[i] = data->items[index];
    }
    return true;
}

static bool fold_concat(fold *f)
{
    int64_t axis = int_attribute(f, "axis", 0);
    uint32_t count = 0;
    for (size_t k = 0; k < f->in_count; k++) {
        if (f->in[k] == NULL || f->in[k]->rank != 1 || f->in[k]->dtype != f->in[0]->dtype) {
            return false;
        }
        count += f->in[k]->count;
    }
    if (f->in_count == 0 || (axis != 0 && axis != -1) ||
        !start_result(f, count, 1, f->in[0]->dtype)) {
        return false;
    }
    uint32_t at = 0;
    for (size_t k = 0; k < f->in_count; k++) {
        for (uint32_t i = 0; i < f->in[k]->count; i++) {
            f->items[at++] = f->in[k]->items[i];
        }
    }
    return true;
}

/* A scalar becomes a list of one. */
static bool fold_unsqueeze(fold *f)
{
    graft_onnx_ints axes;
    return f->in_count > 0 && f->in[0] != NULL && f->in[0]->rank == 0 &&
           find_numbers(f, 1, "axes", &axes) && axes.count == 1 &&
           (axes.items[0] == 0 || axes.items[0] == -1) && copy_result(f, f->in[0], 1);
}

/* A list of one becomes a scalar. */
static bool fold_squeeze(fold *f)
{
    graft_onnx_ints axes;
    if (f->in_count == 0 || f->in[0] == NULL || f->in[0]->rank != 1 || f->in[0]->count != 1) {
        return false;
    }
    if (find_numbers(f, 1, "axes", &axes) &&
        (axes.count != 1 || (axes.items[0] != 0 && axes.items[0] != -1))) {
        return false;
    }
    return copy_result(f, f->in[0], 0);
}

/* Of whole numbers: a list, which may be empty, or a scalar. */
static bool fold_constant_of_shape(fold *f)
{
    const Onnx__AttributeProto *attribute = find_attribute(f, "value");
    graft_model_weight value = {.data = NULL};
    if (f->in_count != 1 || f->in[0] == NULL || f->in[0]->count > 1 || attribute == NULL ||
        attribute->t == NULL) {
        return false;
    }
    if (graft_onnx_weight_of_tensor(f->reader, attribute->t, "tensor", &value) != GRAFT_OK) {
        graft_env_clear(f->reader->env);
        return false;
    }
    const bool wide = value.shape.dtype == GRAFT_DTYPE_I64;
    const int64_t size = f->in[0]->count == 0 ? 1 : f->in[0]->items[0];
    if ((!wide && value.shape.dtype != GRAFT_DTYPE_I32) || value.data == NULL ||
        value.data_bytes != graft_onnx_type_bytes(value.shape.dtype) || size < 0 ||
        size > ITEMS_MOST || !start_result(f, (uint32_t)size, f->in[0]->count, value.shape.dtype)) {
        return false;
    }
    for (uint32_t i = 0; i < f->out.count; i++) {
        f->items[i] = wide ? *(const int64_t *)value.data : *(const int32_t *)value.data;
    }
    return true;
}

/* To a list of all items; what other targets there are leave rank 1. */
static bool fold_reshape(fold *f)
{
    if (f->in_count != 2 || f->in[0] == NULL || f->in[1] == NULL || f->in[1]->count != 1) {
        return false;
    }
    int64_t size = f->in[1]->items[0];
    return (size == -1 || (size > 0 && size == f->in[0]->count)) && f->in[0]->count > 0 &&
           copy_result(f, f->in[0], 1);
}

/* One number of Slice: start, end, axis or step. */
static bool slice_number(const fold *f, size_t k, const char *name, int64_t absent, int64_t *number)
{
    graft_onnx_ints numbers;
    *number = absent;
    if (!find_numbers(f, k, name, &numbers)) {
        return absent != INT64_MIN;
    }
    if (numbers.count != 1) {
        return false;
    }
    *number = numbers.items[0];
    return true;
}

static bool fold_slice(fold *f)
{
    int64_t start = 0;
    int64_t end = 0;
    int64_t axis = 0;
    int64_t step = 1;
    if (f->in_count == 0 || f->in[0] == NULL || f->in[0]->rank != 1 ||
        !slice_number(f, 1, "starts", INT64_MIN, &start) ||
        !slice_number(f, 2, "ends", INT64_MIN, &end) || !slice_number(f, 3, "axes", 0, &axis) ||
        !slice_number(f, 4, "", 1, &step) || (axis != 0 && axis != -1) || step == 0 ||
        step == INT64_MIN || f->in[0]->count == 0) {
        return false;
    }
    int64_t size = f->in[0]->count;
    int64_t least = step > 0 ? 0 : -1;
    start = clamp(start < 0 ? start + size : start, 0, step > 0 ? size : size - 1);
    end = clamp(end < 0 ? end + size : end, least, step > 0 ? size : size - 1);
    uint32_t count = 0;
    if (!start_result(f, (uint32_t)size, 1, f->in[0]->dtype)) {
        return false;
    }
    step = clamp(step, -size - 1, size + 1);
    for (int64_t i = start; step > 0 ? i < end : i > end; i += step) {
        f->items[count++] = f->in[0]->items[i];
    }
    f->out.count = count;
    return true;
}

typedef bool arithmetic(int64_t a, int64_t b, int64_t *result);

static bool add_numbers(int64_t a, int64_t b, int64_t *result)
{
    return !__builtin_add_overflow(a, b, result);
}

static bool subtract_numbers(int64_t a, int64_t b, int64_t *result)
{
    return !__builtin_sub_overflow(a, b, result);
}

static bool multiply_numbers(int64_t a, int64_t b, int64_t *result)
{
    return !__builtin_mul_overflow(a, b, result);
}

/* Runtimes differ on how a negative quotient is rounded: left to them. */
static bool divide_numbers(int64_t a, int64_t b, int64_t *result)
{
    if (b <= 0 || a < 0) {
        return false;
    }
    *result = a / b;
    return true;
}

/* Equal lists, or a single item against a list. */
static bool fold_arithmetic(fold *f, arithmetic *function)
{
    const graft_onnx_ints *a = f->in[0];
    const graft_onnx_ints *b = f->in[1];
    if (f->in_count != 2 || a == NULL || b == NULL || a->dtype != b->dtype ||
        (a->count != b->count && a->count != 1 && b->count != 1)) {
        return false;
    }
    uint32_t count = a->count == 1 ? b->count : a->count;
    if (!start_result(f, count, a->rank > b->rank ? a->rank : b->rank, a->dtype)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!function(a->items[a->count == 1 ? 0 : i], b->items[b->count == 1 ? 0 : i],
                      &f->items[i]) ||
            !fits_type(f->items[i], a->dtype)) {
            return false;
        }
    }
    return true;
}

static bool fold_add(fold *f) { return fold_arithmetic(f, add_numbers); }
static bool fold_sub(fold *f) { return fold_arithmetic(f, subtract_numbers); }
static bool fold_mul(fold *f) { return fold_arithmetic(f, multiply_numbers); }
static bool fold_div(fold *f) { return fold_arithmetic(f, divide_numbers); }

static const struct {
    const char *op_type;
    fold_function *run;
} fold_table[] = {
    {"Shape",           fold_shape            },
    {"Size",            fold_size             },
    {"Identity",        fold_identity         },
    {"Max",             fold_identity         }, /* Of one tensor, as these are. */
    {"Min",             fold_identity         },
    {"Sum",             fold_identity         },
    {"Cast",            fold_cast             },
    {"Gather",          fold_gather           },
    {"Concat",          fold_concat           },
    {"ConstantOfShape", fold_constant_of_shape},
    {"Unsqueeze",       fold_unsqueeze        },
    {"Squeeze",         fold_squeeze          },
    {"Reshape",         fold_reshape          },
    {"Slice",           fold_slice            },
    {"Add",             fold_add              },
    {"Sub",             fold_sub              },
    {"Mul",             fold_mul              },
    {"Div",             fold_div              },
};

/* Looks the inputs up; Shape and Size read a shape, not numbers. */
static bool find_inputs(fold *f, bool reads_shape)
{
    if (f->node->n_input > INPUTS_MOST) {
        return false;
    }
    f->in_count = f->node->n_input;
    for (size_t k = 0; k < f->in_count && !reads_shape; k++) {
        graft_onnx_entry *entry = graft_onnx_input(f->reader->onnx, f->node, k);
        f->in[k] = entry == NULL ? NULL : graft_onnx_ints_of_entry(f->reader, entry);
        if (entry != NULL && f->in[k] == NULL) {
            return false;
        }
    }
    return true;
}

bool graft_onnx_fold_node(graft_onnx_reader *reader, const Onnx__NodeProto *node,
                          const graft_onnx_ints **result)
{
    const char *op_type = node->op_type == NULL ? "" : node->op_type;
    for (size_t i = 0; i < sizeof(fold_table) / sizeof(fold_table[0]); i++) {
        if (strcmp(fold_table[i].op_type, op_type) != 0) {
            continue;
        }
        fold f = {.reader = reader, .node = node};
        if (!find_inputs(&f, i < 2) || !fold_table[i].run(&f)) {
            return false;
        }
        graft_onnx_ints *made = GRAFT_NEW(reader->arena, graft_onnx_ints, 1);
        *made = f.out;
        *result = made;
        return true;
    }
    return false;
}

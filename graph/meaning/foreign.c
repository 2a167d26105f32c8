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
} foreign_row;

#define ONE(op_type, code)                                                                         \
    {                                                                                              \
        op_type, "", NULL, graft_foreign_one_shape, graft_foreign_one, code, 1, 1, false           \
    }
#define TWO(op_type, code)                                                                         \
    {                                                                                              \
        op_type, "", NULL, graft_foreign_two_shape, graft_foreign_two, code, 2, 2, false           \
    }

#define ROW(op_type, attributes, read, name, least, most, by_number)                               \
    {                                                                                              \
        op_type, attributes, read, graft_foreign_##name##_shape, graft_foreign_##name, 0, least,   \
            most, by_number                                                                        \
    }

#define RESIZE_ATTRIBUTES                                                                          \
    "coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value mode "       \
    "nearest_mode"
#define CONV_ATTRIBUTES "auto_pad dilations group kernel_shape pads strides"

static const foreign_row rows[] = {
    ONE("Abs", GRAFT_FOREIGN_ABS),
    ONE("Neg", GRAFT_FOREIGN_NEG),
    ONE("Sign", GRAFT_FOREIGN_SIGN),
    ONE("Ceil", GRAFT_FOREIGN_CEIL),
    ONE("Floor", GRAFT_FOREIGN_FLOOR),
    ONE("Round", GRAFT_FOREIGN_ROUND),
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
    TWO("Mod", GRAFT_FOREIGN_MOD),
    TWO("Min", GRAFT_FOREIGN_MIN),
    TWO("Max", GRAFT_FOREIGN_MAX),
    ROW("Where", "", NULL, where, 3, 3, false),
    ROW("Range", "", NULL, range, 3, 3, true),
    ROW("Expand", "", NULL, expand, 2, 2, true),
    ROW("Tile", "", NULL, tile, 2, 2, true),
    ROW("Pad", "mode pads value", graft_foreign_read_pad, pad, 1, 4, true),
    ROW("Slice", "axes ends starts", graft_foreign_read_slice, slice, 3, 5, true),
    ROW("Transpose", "perm", graft_foreign_read_transpose, transpose, 1, 1, false),
    ROW("Concat", "axis", graft_foreign_read_concat, concat, 1, GRAFT_OPAQUE_INPUTS_MOST, false),
    ROW("Resize", RESIZE_ATTRIBUTES, graft_foreign_read_resize, resize, 1, 4, true),
    ROW("Upsample", "mode", graft_foreign_read_upsample, resize, 2, 2, true),
    ROW("LRN", "alpha beta bias size", graft_foreign_read_lrn, lrn, 1, 1, false),
    ROW("Conv", CONV_ATTRIBUTES, graft_foreign_read_conv, conv, 2, 3, false),
};

/* ----------------------------------------------------------------------------- finding */

/* Whether `word` is one of the words of `list`, which are separated by blanks. */
static bool has_word(const char *list, const char *word)
{
    const size_t size = strlen(word);
    bool found = false;
    for (const char *at = strstr(list, word); size > 0 && at != NULL && !found;) {
        found = (at == list || at[-1] == ' ') && (at[size] == ' ' || at[size] == '\0');
        at = strstr(at + 1, word);
    }
    return found;
}

static bool has_known_attributes(const Onnx__NodeProto *node, const char *known)
{
    bool all = true;
    for (size_t i = 0; i < node->n_attribute && all; i++) {
        const Onnx__AttributeProto *attribute = node->attribute[i];
        all = attribute->name != NULL && has_word(known, attribute->name) &&
              attribute->ref_attr_name == NULL;
    }
    return all;
}

static uint32_t find_row(const char *op_type)
{
    uint32_t i = 0;
    while (i < sizeof(rows) / sizeof(rows[0]) && strcmp(rows[i].op_type, op_type) != 0) {
        i++;
    }
    return i;
}

bool graft_foreign_find(const Onnx__NodeProto *node, graft_opaque *opaque)
{
    const uint32_t place = find_row(node->op_type);
    if (place == sizeof(rows) / sizeof(rows[0]) || node->n_input < rows[place].least ||
        node->n_input > rows[place].most || node->n_output != 1) {
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
    return rows[opaque->row].shape(opaque, in, shape) && graft_shape_bytes(shape) > 0 &&
           graft_shape_elements(shape) <= INT32_MAX;
}

bool graft_foreign_fits(const graft_opaque *opaque)
{
    static const void *const unknown[GRAFT_OPAQUE_INPUTS_MOST] = {NULL};
    graft_shape shape;
    return rows[opaque->row].by_number || (graft_foreign_shape(opaque, unknown, &shape) &&
                                           graft_shape_equal(&shape, &opaque->out));
}

bool graft_foreign_is_pointwise(const graft_opaque *opaque)
{
    return rows[opaque->row].run == graft_foreign_one;
}

graft_status graft_foreign_run(graft_env *env, const graft_opaque *opaque, const void *const *in,
                               void *out)
{
    graft_shape shape;
    const foreign_row *row = &rows[opaque->row];
    if (row->by_number &&
        (!graft_foreign_shape(opaque, in, &shape) || !graft_shape_equal(&shape, &opaque->out))) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                          "the numbers that a node (%s) reads do not give the size of its result, "
                          "or are such as implementations differ on",
                          row->op_type);
    }
    return row->run(env, opaque, in, out);
}

/* ---------------------------------------------------------------- what rows are made of */

const Onnx__AttributeProto *graft_foreign_attribute(const Onnx__NodeProto *node, const char *name)
{
    for (size_t i = 0; i < node->n_attribute; i++) {
        if (node->attribute[i]->name != NULL && strcmp(node->attribute[i]->name, name) == 0) {
            return node->attribute[i];
        }
    }
    return NULL;
}

int64_t graft_foreign_int(const Onnx__NodeProto *node, const char *name, int64_t absent)
{
    const Onnx__AttributeProto *attribute = graft_foreign_attribute(node, name);
    return attribute == NULL ? absent : attribute->i;
}

int32_t graft_foreign_float(const Onnx__NodeProto *node, const char *name, float absent)
{
    const Onnx__AttributeProto *attribute = graft_foreign_attribute(node, name);
    const float number = attribute == NULL ? absent : attribute->f;
    int32_t bits = 0;
    memcpy(&bits, &number, sizeof(bits));
    return bits;
}

int32_t graft_foreign_choice(const Onnx__NodeProto *node, const char *name,
                             const char *const *choices, int32_t absent)
{
    const Onnx__AttributeProto *attribute = graft_foreign_attribute(node, name);
    if (attribute == NULL) {
        return absent;
    }
    for (int32_t i = 0; choices[i] != NULL; i++) {
        if (strlen(choices[i]) == attribute->s.len &&
            memcmp(choices[i], attribute->s.data, attribute->s.len) == 0) {
            return i;
        }
    }
    return -1;
}

float graft_foreign_number(int32_t bits)
{
    float number = 0.0F;
    memcpy(&number, &bits, sizeof(number));
    return number;
}

bool graft_foreign_has(const graft_opaque *opaque, uint32_t k)
{
    return k < GRAFT_OPAQUE_INPUTS_MOST && opaque->in[k].rank <= GRAFT_MAX_RANK &&
           graft_shape_bytes(&opaque->in[k]) > 0;
}

int64_t graft_foreign_whole(const graft_opaque *opaque, const void *const *in, uint32_t k,
                            uint32_t i)
{
    return opaque->in[k].dtype == GRAFT_DTYPE_I64 ? ((const int64_t *)in[k])[i]
                                                  : ((const int32_t *)in[k])[i];
}

uint32_t graft_foreign_list(const graft_opaque *opaque, const void *const *in, uint32_t k)
{
    const graft_shape *shape = &opaque->in[k];
    const bool whole = shape->dtype == GRAFT_DTYPE_I64 || shape->dtype == GRAFT_DTYPE_I32;
    return graft_foreign_has(opaque, k) && in[k] != NULL && shape->rank <= 1 && whole
               ? (uint32_t)graft_shape_elements(shape)
               : UINT32_MAX;
}

bool graft_foreign_size(graft_shape *shape, uint32_t axis, int64_t size)
{
    shape->dims[axis] = (int32_t)size;
    return size >= 1 && size <= INT32_MAX;
}

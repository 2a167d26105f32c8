/* foreign.c - the table of operators that only run (see foreign.h). */
#include "graph/meaning/foreign_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *op_type;
    const char *attributes;
    graft_foreign_reader *read;
    graft_foreign_shaper *shape;
    graft_foreign_runner *run;
    graft_foreign_keeper *keep;
    uint32_t kept;
    uint8_t code;
    uint8_t least;
    uint8_t most;
    uint8_t outputs;
    bool by_number;
    bool joint;
} foreign_row;

#define BRACED(...) {__VA_ARGS__},
#define FOREIGN(op_type, attributes, read, name, code, least, most, by_number, outputs, keep,      \
                kept, joint)                                                                       \
    BRACED(op_type, attributes, graft_foreign_read_##read, graft_foreign_##name##_shape,           \
           graft_foreign_##name, graft_foreign_keep_##keep, kept, code, least, most, outputs,      \
           by_number, joint)
static const foreign_row rows[] = {
#include "graph/meaning/foreign.def"
};

/* ----------------------------------------------------------------------------- finding */

static uint32_t find_row(const Onnx__NodeProto *node)
{
    uint32_t i = 0;
    while (i < sizeof(rows) / sizeof(rows[0]) && !graft_onnx_is_named(node, rows[i].op_type)) {
        i++;
    }
    return i;
}

/* The place of a text attribute among those that `words` has, each behind a '|'. */
static bool read_choice(const Onnx__AttributeProto *given, const char *words, int32_t *place)
{
    *place = -1;
    for (int32_t i = 0; *words == '|'; i++) {
        const bool usual = *++words == '*';
        words += usual ? 1 : 0;
        const size_t length = strcspn(words, " |");
        const bool is = given == NULL
                            ? usual
                            : given->s.len == length && memcmp(given->s.data, words, length) == 0;
        *place = is ? i : *place;
        words += length;
    }
    return *place >= 0;
}

/* An attribute as a row says (see foreign.def); false where it says what is not run. */
static bool read_attribute(const Onnx__NodeProto *node, const char *name, const char *how,
                           graft_opaque *opaque, int32_t *number)
{
    const int64_t absent = strtoll(how + 1, NULL, 10);
    switch (*how) {
    case '?':
        *number = graft_onnx_int(node, name, absent) != 0;
        return true;
    case '#':
        *number = (int32_t)graft_onnx_int(node, name, absent);
        return *number == graft_onnx_int(node, name, absent);
    case '~':
        *number = graft_foreign_float(node, name, strtof(how + 1, NULL));
        return true;
    case '@':
        return graft_foreign_read_axis(node, opaque, opaque->in[0].rank, absent);
    default:
        return read_choice(graft_onnx_attribute(node, name), how, number);
    }
}

static bool read_attributes(const Onnx__NodeProto *node, const char *words, graft_opaque *opaque)
{
    int32_t *number = &opaque->attrs[1];
    bool fits = true;
    for (const char *at = words; *at != '\0' && fits; at += strspn(at, " ")) {
        char name[40];
        const size_t length = strcspn(at, GRAFT_ONNX_MARKS);
        const char *how = at + length;
        (void)snprintf(name, sizeof(name), "%.*s", (int)length, at);
        if (*how != ' ' && *how != '\0') {
            fits = read_attribute(node, name, how, opaque, number);
            number += *how == '@' ? 0 : 1;
        }
        number += *at == '-' ? 1 : 0;
        at += strcspn(at, " ");
    }
    return fits;
}

bool graft_foreign_find(const Onnx__NodeProto *node, graft_opaque *opaque)
{
    const uint32_t place = find_row(node);
    if (place == sizeof(rows) / sizeof(rows[0]) || node->n_input < rows[place].least ||
        node->n_input > rows[place].most || node->n_output > rows[place].outputs) {
        return false;
    }
    const foreign_row *row = &rows[place];
    bool given = graft_onnx_has_only(node, row->attributes);
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
    return given && read_attributes(node, row->attributes, opaque) && row->read(node, opaque);
}

bool graft_foreign_find_plain(const char *op_type, uint32_t inputs, graft_opaque *opaque)
{
    static char given[] = "x";
    char type[16];
    char *names[GRAFT_MAX_INPUTS] = {given, given, given, given};
    Onnx__NodeProto node = ONNX__NODE_PROTO__INIT;
    (void)snprintf(type, sizeof(type), "%s", op_type);
    node.op_type = type;
    node.input = names;
    node.n_input = inputs;
    node.output = names;
    node.n_output = 1;
    return graft_foreign_find(&node, opaque);
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
    bool known = true;
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
    one.made = wanted;
    for (one.which = 0; one.which < opaque->out_count; one.which++) {
        one.out = opaque->outs[one.which];
        if (one.out.rank == GRAFT_RANK_UNKNOWN) {
            continue;
        }
        GRAFT_RETURN_IF(!fits_numbers(opaque, in, one.which),
                        GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                                   "the numbers that a node (%s) reads do not give the size of its "
                                   "result, or are such as implementations differ on",
                                   row->op_type));
        wanted[one.which] = out[one.which];
        if (!row->joint) {
            GRAFT_PASS(row->run(env, &one, out[one.which]));
        }
    }
    return row->joint ? row->run(env, &one, NULL) : GRAFT_OK;
}

/* ---------------------------------------------------------------- what rows are made of */

bool graft_foreign_read_nothing(const Onnx__NodeProto *node, graft_opaque *opaque)
{
    (void)node;
    (void)opaque;
    return true;
}

void *graft_foreign_keep_nothing(graft_arena *arena, const graft_opaque *opaque)
{
    (void)arena;
    (void)opaque;
    return NULL;
}

int32_t graft_foreign_float(const Onnx__NodeProto *node, const char *name, float absent)
{
    const Onnx__AttributeProto *attribute = graft_onnx_attribute(node, name);
    return graft_bits_of_float(attribute == NULL ? absent : attribute->f);
}

bool graft_foreign_has(const graft_opaque *opaque, uint32_t k)
{
    return k < GRAFT_OPAQUE_INPUTS_MOST && opaque->in[k].rank <= GRAFT_MAX_RANK &&
           graft_shape_bytes(&opaque->in[k]) > 0;
}

int64_t graft_foreign_whole(const graft_opaque *opaque, uint32_t k, uint32_t i)
{
    return graft_whole_at(opaque->data[k], opaque->in[k].dtype, i);
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

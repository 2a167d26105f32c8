/* signature.c - building, hashing, printing and reading signatures (see signature.h). */
#include "cost/database/signature.h"

#include "cost/plan/integers.h"
#include "graph/base/bits.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* No hidden bytes but the tail of graft_shape, which copy_shape leaves 0. */
_Static_assert(sizeof(graft_signature) ==
                   4 * GRAFT_MAX_ATTRS + GRAFT_MAX_INPUTS * sizeof(graft_shape) + 12,
               "a signature is compared as memory");

static uint8_t priced_dtype(const graft_shape *shape)
{
    return graft_dtype_is_real(shape->dtype) ? (uint8_t)GRAFT_DTYPE_F32 : shape->dtype;
}

uint64_t graft_cost_bytes(const graft_shape *shape)
{
    graft_shape priced = *shape;
    priced.dtype = priced_dtype(shape);
    return graft_shape_bytes(&priced);
}

/* ---------------------------------------------------------------- distance */

static const char *const distance_names[GRAFT_DISTANCE_COUNT] = {"",      " own",  " memory",
                                                                 " edge", " near", " far"};

static graft_distance distance_of_bytes(double bytes)
{
    return bytes <= GRAFT_DISTANCE_OWN_BYTES      ? GRAFT_DISTANCE_OWN
           : bytes <= GRAFT_DISTANCE_NEAR_BYTES   ? GRAFT_DISTANCE_NEAR
           : bytes <= GRAFT_DISTANCE_EDGE_BYTES   ? GRAFT_DISTANCE_EDGE
           : bytes <= GRAFT_DISTANCE_SHARED_BYTES ? GRAFT_DISTANCE_SHARED
           : bytes <= GRAFT_DISTANCE_FAR_BYTES    ? GRAFT_DISTANCE_FAR
                                                  : GRAFT_DISTANCE_MEMORY;
}

uint8_t graft_distance_place(uint32_t distance)
{
    static const uint8_t places[GRAFT_DISTANCE_COUNT] = {
        [GRAFT_DISTANCE_OWN] = 0,    [GRAFT_DISTANCE_NEAR] = 1, [GRAFT_DISTANCE_EDGE] = 2,
        [GRAFT_DISTANCE_SHARED] = 3, [GRAFT_DISTANCE_FAR] = 4,  [GRAFT_DISTANCE_MEMORY] = 5};
    return places[distance];
}

size_t graft_distance_copies_bytes(uint32_t distance)
{
    static const size_t bytes[GRAFT_DISTANCE_COUNT] = {
        [GRAFT_DISTANCE_OWN] = 0,
        [GRAFT_DISTANCE_NEAR] = (size_t)5 << 18,
        [GRAFT_DISTANCE_EDGE] = (size_t)9 << 18,
        [GRAFT_DISTANCE_SHARED] = (size_t)6 << 20,
        [GRAFT_DISTANCE_FAR] = (size_t)18 << 20,
        [GRAFT_DISTANCE_MEMORY] = (size_t)96 << 20,
    };
    return bytes[distance];
}

typedef struct {
    const graft_graph *graph;
    const graft_order *order;
    double *bytes;   /* By value: of one that is read; 0: it is not. */
    uint32_t *reads; /* By value. */
    uint32_t *last;  /* By value: when it was read last, from 1 on; 0: it was not. */
    double *sums;    /* By time: of the bytes of values that were read last then; as a Fenwick
                        tree, so that a sum over the past takes few steps. */
    uint32_t time_end;
    uint32_t time;
    double seen;    /* Bytes of all values that were read. */
    double working; /* Bytes of values that are not const. */
    uint8_t *nodes;
} distance_search;

/* What nodes read and write besides: memory is used again and again, so what the largest of them
 * needs at once passes through the caches between two reads of a weight, about. */
static double find_working_bytes(const graft_graph *graph, const graft_order *order)
{
    uint64_t most = 0;
    for (graft_index i = 0; i < order->count; i++) {
        graft_index node = order->order[i];
        const graft_node *n = &graph->nodes[node];
        uint64_t bytes = 0;
        for (uint32_t k = 0; k < (uint32_t)n->input_count + n->output_count; k++) {
            graft_index v = graph->edges[n->first_edge + k];
            bool moves = v != GRAFT_NONE && !graph->values[v].is_const;
            bytes += moves ? graft_cost_bytes(&graph->values[v].shape) : 0;
        }
        most = bytes > most ? bytes : most;
    }
    return (double)most;
}

/* Nodes that run, and of which somebody knows what they read. */
static bool is_reader(const graft_node *node)
{
    return !node->is_const && node->op != GRAFT_OP_OPAQUE;
}

static void count_reads(distance_search *s)
{
    for (graft_index i = 0; i < s->order->count; i++) {
        graft_index node = s->order->order[i];
        const graft_node *n = &s->graph->nodes[node];
        for (uint32_t k = 0; k < n->input_count && is_reader(n); k++) {
            graft_index v = graft_node_input(s->graph, node, k);
            if (s->graph->values[v].is_const) {
                s->reads[v]++;
                s->bytes[v] = (double)graft_cost_bytes(&s->graph->values[v].shape);
            }
        }
    }
}

static void add_bytes(distance_search *s, uint32_t time, double bytes)
{
    for (; time <= s->time_end; time += time & -time) {
        s->sums[time] += bytes;
    }
}

/* Of values that were read last at this time or before. */
static double sum_until(const distance_search *s, uint32_t time)
{
    double bytes = 0.0;
    for (; time > 0; time -= time & -time) {
        bytes += s->sums[time];
    }
    return bytes;
}

/* Reads a value: the bytes of what was read since it was read before, and of itself. All are whole
 * numbers, so the order of sums does not matter. */
static double read_value(distance_search *s, graft_index value)
{
    double own = s->bytes[value];
    double between = s->seen;
    if (s->last[value] > 0) {
        between -= sum_until(s, s->last[value]);
        add_bytes(s, s->last[value], -own);
    } else {
        s->seen += own;
    }
    s->last[value] = ++s->time;
    add_bytes(s, s->time, own);
    return between + own;
}

/* Of a weight that alone fills the caches of the core, a loop finds part again once their
 * replacement has settled; the few reads that follow one another in a cell do not. */
static graft_distance distance_of_read(const distance_search *s, graft_index value, double between)
{
    graft_distance distance = distance_of_bytes(between + s->working);
    return distance == GRAFT_DISTANCE_NEAR && s->bytes[value] > GRAFT_DISTANCE_OWN_BYTES
               ? GRAFT_DISTANCE_EDGE
               : distance;
}

static void read_nodes(distance_search *s)
{
    for (graft_index i = 0; i < s->order->count; i++) {
        graft_index node = s->order->order[i];
        const graft_node *n = &s->graph->nodes[node];
        double largest = 0.0;
        for (uint32_t k = 0; k < n->input_count && is_reader(n); k++) {
            graft_index v = graft_node_input(s->graph, node, k);
            double between = s->graph->values[v].is_const ? read_value(s, v) : 0.0;
            if (s->bytes[v] > largest) {
                largest = s->bytes[v];
                s->nodes[node] = (uint8_t)distance_of_read(s, v, between);
            }
        }
    }
}

void graft_distances_find(graft_arena *arena, const graft_graph *graph, const graft_order *order,
                          graft_distances *distances)
{
    distance_search s = {.graph = graph,
                         .order = order,
                         .bytes = GRAFT_NEW(arena, double, graph->value_end),
                         .reads = GRAFT_NEW(arena, uint32_t, graph->value_end),
                         .working = find_working_bytes(graph, order),
                         .nodes = GRAFT_NEW(arena, uint8_t, graph->node_end)};
    double held = 0.0;
    double read = 0.0;
    double mean = 0.0; /* Over all bytes that are read. */
    bool repeated = false;
    count_reads(&s);
    for (graft_index v = 0; v < graph->value_end; v++) {
        held += s.bytes[v];
        read += s.bytes[v] * s.reads[v];
        repeated = repeated || s.reads[v] > 1;
    }
    for (graft_index v = 0; v < graph->value_end; v++) {
        double between = s.reads[v] > 0 ? fmin(read / s.reads[v], held) : 0.0;
        mean += s.reads[v] > 0 ? s.bytes[v] * s.reads[v] / read * between : 0.0;
    }
    distances->others = (uint8_t)distance_of_bytes(mean + s.working);
    memset(s.nodes, distances->others, graph->node_end);
    if (repeated) {
        for (graft_index v = 0; v < graph->value_end; v++) {
            s.time_end += 2 * s.reads[v];
        }
        s.last = GRAFT_NEW(arena, uint32_t, graph->value_end);
        s.sums = GRAFT_NEW(arena, double, (size_t)s.time_end + 1);
        read_nodes(&s); /* The run before. */
        read_nodes(&s);
    }
    distances->nodes = s.nodes;
}

/* ---------------------------------------------------------------- building */

static void copy_shape(graft_shape *to, const graft_shape *from)
{
    memcpy(to->dims, from->dims, sizeof(to->dims));
    to->rank = from->rank;
    to->dtype = priced_dtype(from);
}

void graft_signature_set_input(graft_signature *signature, uint32_t k, const graft_shape *shape)
{
    copy_shape(&signature->inputs[k], shape);
}

void graft_signature_of_node(const graft_graph *graph, graft_index node,
                             const graft_layout_choice *choice, bool in_place,
                             graft_signature *signature)
{
    const graft_node *n = &graph->nodes[node];
    memset(signature, 0, sizeof(*signature));
    memcpy(signature->attrs, n->attrs, sizeof(n->attrs));
    signature->op = n->op;
    signature->input_count = (uint8_t)n->input_count;
    signature->output_count = (uint8_t)n->output_count;
    signature->in_place = in_place;
    for (uint32_t k = 0; k < n->input_count; k++) {
        const graft_value *value = &graph->values[graft_node_input(graph, node, k)];
        copy_shape(&signature->inputs[k], &value->shape);
        signature->const_mask = (uint8_t)(signature->const_mask | (uint32_t)value->is_const << k);
    }
    graft_signature_set_layouts(signature, choice);
}

void graft_signature_set_layouts(graft_signature *signature, const graft_layout_choice *choice)
{
    for (uint32_t k = 0; k < signature->input_count; k++) {
        signature->in_layouts[k] = choice->inputs[k];
    }
    for (uint32_t k = 0; k < signature->output_count; k++) {
        signature->out_layouts[k] = choice->outputs[k];
    }
}

void graft_signature_of_reorder(const graft_shape *shape, uint32_t from, uint32_t to,
                                graft_signature *signature)
{
    memset(signature, 0, sizeof(*signature));
    copy_shape(&signature->inputs[0], shape);
    signature->op = GRAFT_COST_REORDER;
    signature->input_count = 1;
    signature->output_count = 1;
    signature->in_layouts[0] = (uint8_t)graft_layout_canonical(shape, from);
    signature->out_layouts[0] = (uint8_t)graft_layout_canonical(shape, to);
}

void graft_signature_of_attention(const graft_graph *graph,
                                  const graft_index inputs[GRAFT_MAX_INPUTS], float scale,
                                  uint32_t turned, graft_signature *signature)
{
    memset(signature, 0, sizeof(*signature));
    signature->op = inputs[3] == GRAFT_NONE ? GRAFT_COST_ATTENTION : GRAFT_COST_MASKED_ATTENTION;
    signature->input_count = inputs[3] == GRAFT_NONE ? 3 : 4;
    signature->output_count = 1;
    signature->attrs[0] = graft_bits_of_float(scale);
    signature->attrs[1] = (int32_t)turned;
    for (uint32_t k = 0; k < signature->input_count; k++) {
        const graft_value *value = &graph->values[inputs[k]];
        copy_shape(&signature->inputs[k], &value->shape);
        signature->const_mask = (uint8_t)(signature->const_mask | (uint32_t)value->is_const << k);
    }
}

int graft_signature_compare(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(graft_signature)); /* Without hidden bytes: see above. */
}

bool graft_signature_is_quantised(const graft_signature *signature)
{
    return signature->op >= GRAFT_COST_QUANTISE && signature->op <= GRAFT_COST_QUANTISED_MATMUL;
}

/* What is no operator of graphs, from GRAFT_COST_INTEGER_ADD on. */
static const struct {
    const char *name; /* NULL: see factor_names. */
    uint8_t real_op;  /* The operator whose attributes and sizes it has; 0: none. */
    uint8_t input_count;
} others[] = {
    {"integer_add",      GRAFT_OP_add,      3},
    {"integer_conv",     GRAFT_OP_conv,     3},
    {"integer_matmul",   GRAFT_OP_matmul,   3},
    {"masked_attention", 0,                 4},
    {"attention",        0,                 3},
    {"quantise",         GRAFT_OP_identity, 1},
    {"dequantise",       GRAFT_OP_identity, 1},
    {"quantised_conv",   GRAFT_OP_conv,     2},
    {"quantised_matmul", GRAFT_OP_matmul,   2},
    {NULL,               0,                 0},
    {"reorder",          0,                 1},
};
enum { OTHER_FIRST = GRAFT_COST_INTEGER_ADD, OTHER_COUNT = sizeof(others) / sizeof(others[0]) };
_Static_assert((int)GRAFT_COST_REORDER == (int)OTHER_FIRST + OTHER_COUNT - 1, "a row for each");

static bool is_other(uint32_t op) { return op >= OTHER_FIRST && op < OTHER_FIRST + OTHER_COUNT; }

static uint32_t real_op(uint32_t op)
{
    return is_other(op) && others[op - OTHER_FIRST].real_op != 0 ? others[op - OTHER_FIRST].real_op
                                                                 : op;
}

static bool is_integer(uint32_t op)
{
    return op >= GRAFT_COST_INTEGER_ADD && op <= GRAFT_COST_INTEGER_MATMUL;
}

bool graft_signature_is_integer(const graft_signature *signature)
{
    return is_integer(signature->op);
}

static uint8_t count_inputs(uint32_t op)
{
    return is_other(op) ? others[op - OTHER_FIRST].input_count : graft_op(op)->input_count;
}

bool graft_signature_is_attention(const graft_signature *signature)
{
    return signature->op == GRAFT_COST_ATTENTION || signature->op == GRAFT_COST_MASKED_ATTENTION;
}

/* As graft_op_attr. */
static const graft_attr_info *attr_of(const graft_signature *s, uint32_t i)
{
    static const graft_attr_info own[] = {
        {.name = "scale",  .kind = GRAFT_ATTR_FLOAT},
        {.name = "turned", .kind = GRAFT_ATTR_INT  },
    };
    static const graft_attr_info behind[] = {
        {.name = "activation", .kind = GRAFT_ATTR_INT},
        {.name = "result",     .kind = GRAFT_ATTR_INT},
    };
    const uint32_t count = is_integer(s->op) ? graft_op(real_op(s->op))->attr_count : UINT32_MAX;
    return graft_signature_is_attention(s) ? (i < 2 ? &own[i] : NULL)
           : i >= count                    ? (i < count + 2 ? &behind[i - count] : NULL)
                                           : graft_op_attr(real_op(s->op), i);
}

int32_t graft_signature_activation(const graft_signature *signature)
{
    switch (signature->op) {
    case GRAFT_OP_conv_bias:
    case GRAFT_OP_conv_bias_add:
        return signature->attrs[GRAFT_ATTR_conv_bias_activation]; /* The same place in both. */
    case GRAFT_OP_matmul_bias:
        return signature->attrs[GRAFT_ATTR_matmul_bias_activation];
    default:
        return is_integer(signature->op)
                   ? signature->attrs[graft_op(real_op(signature->op))->attr_count]
                   : GRAFT_ACT_NONE;
    }
}

uint32_t graft_signature_result(const graft_signature *signature)
{
    return (uint32_t)signature->attrs[graft_op(real_op(signature->op))->attr_count + 1U];
}

void graft_signature_set_integer(graft_signature *signature, uint32_t op, int32_t activation,
                                 uint32_t result)
{
    const uint32_t count = graft_op(real_op(op))->attr_count;
    signature->op = (uint8_t)op;
    signature->attrs[count] = activation;
    signature->attrs[count + 1U] = (int32_t)result;
    signature->input_count = 3;
    signature->output_count = 1;
}

bool graft_signature_of_opaque(const graft_opaque *opaque, graft_signature *signature)
{
    if (opaque->kind < GRAFT_OPAQUE_QUANTISE) {
        return false;
    }
    memset(signature, 0, sizeof(*signature));
    if (opaque->op == 0) { /* Scales do not matter. */
        memcpy(signature->attrs, opaque->attrs, sizeof(signature->attrs));
    }
    signature->op = (uint8_t)(GRAFT_COST_QUANTISE + (opaque->kind - GRAFT_OPAQUE_QUANTISE));
    signature->input_count = count_inputs(signature->op);
    signature->output_count = 1;
    signature->distance = GRAFT_DISTANCE_OWN;
    for (uint32_t k = 0; k < signature->input_count; k++) {
        copy_shape(&signature->inputs[k], &opaque->in[3 * k]); /* Between scales, zero points. */
    }
    /* Forms that the real operator lacks, as a convolution over one axis, have no price. */
    return graft_signature_outputs(signature, (graft_shape[GRAFT_MAX_OUTPUTS]){0}) == GRAFT_OK;
}

bool graft_signature_equal(const graft_signature *a, const graft_signature *b)
{
    return graft_signature_compare(a, b) == 0;
}

uint64_t graft_signature_hash(const graft_signature *signature, uint64_t seed)
{
    return XXH3_64bits_withSeed(signature, sizeof(*signature), seed);
}

bool graft_signature_is_conv(const graft_signature *signature)
{
    return signature->op == GRAFT_OP_conv || signature->op == GRAFT_OP_conv_bias ||
           signature->op == GRAFT_OP_conv_bias_add;
}

bool graft_signature_is_matmul(const graft_signature *signature)
{
    return signature->op == GRAFT_OP_matmul || signature->op == GRAFT_OP_matmul_bias;
}

bool graft_signature_is_product(const graft_signature *signature)
{
    return graft_signature_is_conv(signature) || graft_signature_is_matmul(signature);
}

/* -------------------------------------------------------------- quantities */

static bool is_quantised_form(const graft_signature *s)
{
    const graft_shape *in = s->inputs;
    return s->op == GRAFT_COST_QUANTISE ? in[0].dtype == GRAFT_DTYPE_F32
           : s->op == GRAFT_COST_DEQUANTISE
               ? graft_shape_is_byte(&in[0]) || in[0].dtype == GRAFT_DTYPE_I32
               : graft_shape_is_byte(&in[0]) && graft_shape_is_byte(&in[1]);
}

/* Whether operands are what integers.h says, once they fit the real operator. */
static bool is_integer_form(const graft_signature *s, const graft_shape *output)
{
    const graft_shape *in = s->inputs;
    const uint32_t result = graft_signature_result(s);
    const int32_t activation = graft_signature_activation(s);
    const bool sums = s->op == GRAFT_COST_INTEGER_ADD;
    bool typed = graft_shape_is_byte(&in[0]) && graft_shape_is_byte(&in[1]) &&
                 in[2].dtype == GRAFT_DTYPE_F32 &&
                 (result == GRAFT_DTYPE_U8 || result == GRAFT_DTYPE_I8 ||
                  (result == GRAFT_DTYPE_F32 && !sums)) &&
                 activation >= GRAFT_ACT_NONE && activation <= GRAFT_ACT_RELU6;
    bool sized = sums ? memcmp(in[0].dims, output->dims, sizeof(in[0].dims)) == 0 &&
                            memcmp(in[1].dims, output->dims, sizeof(in[1].dims)) == 0
                      : in[1].dtype == GRAFT_DTYPE_I8 &&
                            (s->op == GRAFT_COST_INTEGER_CONV || in[1].rank == 2);
    return typed && sized && graft_shape_elements(&in[2]) == graft_integers_numbers(s);
}

/* Of what has a real operator: sizes are those of that one. */
static graft_status infer_real(const graft_signature *s, graft_shape *output)
{
    const bool integer = is_integer(s->op);
    graft_shape real[GRAFT_MAX_INPUTS];
    int32_t attrs[GRAFT_MAX_ATTRS] = {0};
    memcpy(real, s->inputs, sizeof(real));
    memcpy(attrs, s->attrs, graft_op(real_op(s->op))->attr_count * sizeof(attrs[0]));
    real[0].dtype = GRAFT_DTYPE_F32;
    real[1].dtype = GRAFT_DTYPE_F32;
    if ((!integer && !is_quantised_form(s)) ||
        graft_infer_shapes(real_op(s->op), attrs, real, output) != GRAFT_OK ||
        (integer && !is_integer_form(s, output))) {
        return GRAFT_BAD_INPUT;
    }
    if (s->op != GRAFT_COST_DEQUANTISE) {
        output->dtype = integer                        ? (uint8_t)graft_signature_result(s)
                        : s->op == GRAFT_COST_QUANTISE ? (uint8_t)GRAFT_DTYPE_I8
                                                       : s->inputs[0].dtype;
    }
    return GRAFT_OK;
}

static graft_status infer_attention(const graft_signature *s, graft_shape *output)
{
    const graft_shape *mask = &s->inputs[3];
    graft_shape in[3];
    memcpy(in, s->inputs, sizeof(in));
    for (uint32_t k = 0; k < 3; k++) {
        if (in[k].rank != 4) {
            return GRAFT_BAD_INPUT;
        }
        if (((uint32_t)s->attrs[1] >> k & 1U) != 0) {
            const int32_t *given = s->inputs[k].dims;
            in[k].dims[1] = given[2];
            in[k].dims[2] = given[k == 1 ? 3 : 1];
            in[k].dims[3] = given[k == 1 ? 1 : 3];
        }
    }
    graft_shape scores = in[0];
    scores.dims[3] = in[1].dims[3];
    bool fits = in[0].dims[3] == in[1].dims[2] && in[1].dims[3] == in[2].dims[2] && mask->rank <= 4;
    for (uint32_t i = 0; i < 2; i++) {
        fits = fits && in[0].dims[i] == in[1].dims[i] && in[0].dims[i] == in[2].dims[i];
    }
    for (uint32_t back = 1; back <= mask->rank && fits; back++) {
        int32_t size = mask->dims[mask->rank - back];
        fits = size == 1 || size == scores.dims[4 - back];
    }
    *output = in[0];
    output->dims[3] = in[2].dims[3];
    return fits ? GRAFT_OK : GRAFT_BAD_INPUT;
}

graft_status graft_signature_outputs(const graft_signature *signature,
                                     graft_shape outputs[GRAFT_MAX_OUTPUTS])
{
    if (graft_signature_is_attention(signature)) {
        return infer_attention(signature, &outputs[0]);
    }
    if (real_op(signature->op) != signature->op) {
        return infer_real(signature, &outputs[0]);
    }
    if (signature->op == GRAFT_COST_REORDER) {
        outputs[0] = signature->inputs[0];
        return GRAFT_OK;
    }
    if (signature->op == GRAFT_COST_FACTOR) {
        return GRAFT_OK; /* It has none. */
    }
    return graft_infer_shapes(signature->op, signature->attrs, signature->inputs, outputs);
}

uint64_t graft_signature_flops(const graft_signature *signature)
{
    graft_shape outputs[GRAFT_MAX_OUTPUTS];
    if (signature->op >= GRAFT_COST_FACTOR ||
        graft_signature_outputs(signature, outputs) != GRAFT_OK) {
        return 0;
    }
    if (graft_signature_is_attention(signature)) { /* Both products. */
        const graft_shape *k = &signature->inputs[1];
        uint64_t columns = (uint64_t)k->dims[(signature->attrs[1] & 2) != 0 ? 1 : 3];
        return 2 * columns *
               (graft_shape_elements(&signature->inputs[0]) + graft_shape_elements(&outputs[0]));
    }
    return graft_op_flops(real_op(signature->op), signature->attrs, signature->inputs, outputs);
}

uint64_t graft_signature_bytes(const graft_signature *signature)
{
    graft_shape outputs[GRAFT_MAX_OUTPUTS];
    if (graft_signature_outputs(signature, outputs) != GRAFT_OK) {
        return 0;
    }
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < signature->input_count; k++) {
        bytes += graft_shape_bytes(&signature->inputs[k]);
    }
    for (uint32_t k = 0; k < signature->output_count; k++) {
        bytes += graft_shape_bytes(&outputs[k]);
    }
    return bytes;
}

/* ------------------------------------------------------------------- print */

static const struct {
    uint32_t dtype;
    const char *opening; /* Of an operand. */
} types[] = {
    {GRAFT_DTYPE_F32, " f32["},
    {GRAFT_DTYPE_U8,  " u8[" },
    {GRAFT_DTYPE_I8,  " i8[" },
    {GRAFT_DTYPE_I32, " i32["},
};
enum { TYPE_COUNT = sizeof(types) / sizeof(types[0]) };

/* In the order of graft_factor, see calibration.h. */
static const char *const factor_names[GRAFT_COST_FACTORS] = {
    "products", "others", "conversions", "step", "blocked", "cold", "anchor"};

static void print_attrs(const graft_signature *s, graft_buffer *text)
{
    const graft_attr_info *info = attr_of(s, 0);
    for (uint32_t i = 0; info != NULL; info = attr_of(s, ++i)) {
        graft_buffer_printf(text, "%s%s=", i == 0 ? "" : ", ", info->name);
        if (info->kind == GRAFT_ATTR_FLOAT) {
            graft_buffer_printf(text, "0x%08x", (uint32_t)s->attrs[i]);
        } else {
            graft_buffer_printf(text, "%d", s->attrs[i]);
        }
    }
}

static void print_operand(const graft_signature *s, uint32_t k, graft_buffer *text)
{
    const graft_shape *shape = &s->inputs[k];
    uint32_t type = 0;
    while (type + 1 < TYPE_COUNT && types[type].dtype != shape->dtype) {
        type++;
    }
    graft_buffer_printf(text, "%s", types[type].opening);
    for (uint32_t i = 0; i < shape->rank; i++) {
        graft_buffer_printf(text, "%s%d", i == 0 ? "" : ",", shape->dims[i]);
    }
    bool is_const = (s->const_mask >> k & 1u) != 0;
    graft_buffer_printf(text, "]@%s", is_const ? "const" : graft_layout_name(s->in_layouts[k]));
}

const char *graft_signature_operator(const graft_signature *signature)
{
    const graft_op_info *info = graft_op(signature->op);
    const char *other = is_other(signature->op) ? others[signature->op - OTHER_FIRST].name : NULL;
    return info != NULL ? info->name : other != NULL ? other : "opaque";
}

void graft_signature_print(const graft_signature *signature, graft_buffer *text)
{
    if (signature->op == GRAFT_COST_FACTOR) {
        graft_buffer_printf(text, "factor(%s)", factor_names[signature->attrs[0]]);
        return;
    }
    graft_buffer_printf(text, "%s(", graft_signature_operator(signature));
    print_attrs(signature, text);
    graft_buffer_printf(text, ")");
    for (uint32_t k = 0; k < signature->input_count; k++) {
        print_operand(signature, k, text);
    }
    graft_buffer_printf(text, " ->");
    for (uint32_t k = 0; k < signature->output_count; k++) {
        graft_buffer_printf(text, " %s", graft_layout_name(signature->out_layouts[k]));
    }
    if (signature->in_place != 0) {
        graft_buffer_printf(text, " in-place");
    }
    graft_buffer_printf(text, "%s", distance_names[signature->distance]);
}

/* ------------------------------------------------------------------- parse */

typedef struct {
    graft_env *env;
    const char *text;
    const char *at;
} reader;

static graft_status fail_at(const reader *r, const char *expected)
{
    return GRAFT_FAIL(r->env, GRAFT_BAD_INPUT, "signature '%.200s': expected %s at place %d",
                      r->text, expected, (int)(r->at - r->text) + 1);
}

static bool take(reader *r, const char *token)
{
    size_t length = strlen(token);
    if (strncmp(r->at, token, length) != 0) {
        return false;
    }
    r->at += length;
    return true;
}

/* A word that is followed by no letter, so that "conv" is not found in "conv_bias". */
static bool take_word(reader *r, const char *word)
{
    size_t length = strlen(word);
    unsigned char after = strncmp(r->at, word, length) == 0 ? (unsigned char)r->at[length] : 'x';
    return isalnum(after) == 0 && after != '_' && take(r, word);
}

static graft_status read_number(reader *r, bool bits, int32_t *value)
{
    char *end = NULL;
    errno = 0;
    bool blank = isspace((unsigned char)*r->at) != 0 || *r->at == '+';
    long long number = strtoll(r->at, &end, bits ? 16 : 10);
    bool fits =
        bits ? number >= 0 && number <= UINT32_MAX : number >= INT32_MIN && number <= INT32_MAX;
    if (blank || errno != 0 || end == r->at || !fits) {
        return fail_at(r, "a number");
    }
    *value = (int32_t)(uint32_t)(uint64_t)number;
    r->at = end;
    return GRAFT_OK;
}

static graft_status read_op(reader *r, graft_signature *s)
{
    uint32_t op = GRAFT_OP_NONE;
    /* Before the rows of these names, which are lowered where costs are asked for (opaque.h). */
    for (uint32_t i = 0; i < OTHER_COUNT && op == GRAFT_OP_NONE; i++) {
        bool taken = others[i].name != NULL && take_word(r, others[i].name);
        op = taken ? OTHER_FIRST + i : GRAFT_OP_NONE;
    }
    for (uint32_t i = 1; i < GRAFT_OP_COUNT && op == GRAFT_OP_NONE; i++) {
        if (graft_op(i) != NULL && take_word(r, graft_op(i)->name)) {
            op = i;
        }
    }
    if (op == GRAFT_OP_NONE) {
        return fail_at(r, "the name of an operator");
    }
    s->op = (uint8_t)op;
    s->input_count = count_inputs(op);
    s->output_count = graft_op(op) == NULL ? 1 : graft_op(op)->output_count;
    return GRAFT_OK;
}

static graft_status read_attrs(reader *r, graft_signature *s)
{
    if (!take(r, "(")) {
        return fail_at(r, "'('");
    }
    const graft_attr_info *info = attr_of(s, 0);
    for (uint32_t i = 0; info != NULL; info = attr_of(s, ++i)) {
        if ((i > 0 && !take(r, ", ")) || !take_word(r, info->name) || !take(r, "=")) {
            return fail_at(r, info->name);
        }
        GRAFT_PASS(read_number(r, info->kind == GRAFT_ATTR_FLOAT, &s->attrs[i]));
    }
    if (!take(r, ")")) {
        return fail_at(r, "')'");
    }
    return GRAFT_OK;
}

static graft_status read_layout(reader *r, uint8_t *layout)
{
    for (uint32_t i = 0; i < GRAFT_LAYOUT_COUNT; i++) {
        if (take_word(r, graft_layout_name(i))) {
            *layout = (uint8_t)i;
            return GRAFT_OK;
        }
    }
    return fail_at(r, "a layout");
}

static graft_status read_operand(reader *r, graft_signature *s, uint32_t k)
{
    graft_shape *shape = &s->inputs[k];
    uint32_t type = 0;
    while (type < TYPE_COUNT && !take(r, types[type].opening)) {
        type++;
    }
    if (type == TYPE_COUNT) {
        return fail_at(r, "' f32['");
    }
    shape->dtype = (uint8_t)types[type].dtype;
    while (!take(r, "]")) {
        if (shape->rank == GRAFT_MAX_RANK || (shape->rank > 0 && !take(r, ","))) {
            return fail_at(r, "']'");
        }
        GRAFT_PASS(read_number(r, false, &shape->dims[shape->rank]));
        if (shape->dims[shape->rank++] < 1) {
            return fail_at(r, "a size of at least 1");
        }
    }
    if (take(r, "@const")) {
        s->const_mask = (uint8_t)(s->const_mask | 1u << k);
    } else if (take(r, "@")) {
        GRAFT_PASS(read_layout(r, &s->in_layouts[k]));
    } else {
        return fail_at(r, "'@'");
    }
    return GRAFT_OK;
}

static graft_status read_outputs(reader *r, graft_signature *s)
{
    if (!take(r, " ->")) {
        return fail_at(r, "' ->'");
    }
    for (uint32_t k = 0; k < s->output_count; k++) {
        if (!take(r, " ")) {
            return fail_at(r, "a layout");
        }
        GRAFT_PASS(read_layout(r, &s->out_layouts[k]));
    }
    s->in_place = take(r, " in-place");
    for (uint32_t i = GRAFT_DISTANCE_COUNT; i-- > 1 && s->distance == 0;) {
        s->distance = take(r, distance_names[i]) ? (uint8_t)i : 0;
    }
    if (*r->at != '\0') {
        return fail_at(r, "the end");
    }
    return GRAFT_OK;
}

/* Channels last is a layout of images only, and blocked ones have whole blocks. */
static bool layouts_fit(const graft_signature *s, const graft_shape *outputs)
{
    bool fit = true;
    for (uint32_t k = 0; k < s->input_count; k++) {
        fit = fit && graft_layout_fits(&s->inputs[k], s->in_layouts[k]);
    }
    for (uint32_t k = 0; k < s->output_count; k++) {
        fit = fit && graft_layout_fits(&outputs[k], s->out_layouts[k]);
    }
    return fit;
}

/* "factor(products)" and the like; false when it is something else. */
static bool read_factor(const char *text, graft_signature *s)
{
    char name[32];
    for (uint32_t i = 0; i < GRAFT_COST_FACTORS; i++) {
        (void)snprintf(name, sizeof(name), "factor(%s)", factor_names[i]);
        if (strcmp(text, name) == 0) {
            s->op = GRAFT_COST_FACTOR;
            s->attrs[0] = (int32_t)i;
            return true;
        }
    }
    return false;
}

graft_status graft_signature_parse(graft_env *env, const char *text, graft_signature *signature)
{
    reader r = {.env = env, .text = text, .at = text};
    graft_signature s;
    graft_shape outputs[GRAFT_MAX_OUTPUTS];
    memset(&s, 0, sizeof(s));
    if (read_factor(text, &s)) {
        memcpy(signature, &s, sizeof(s));
        return GRAFT_OK;
    }
    GRAFT_PASS(read_op(&r, &s));
    GRAFT_PASS(read_attrs(&r, &s));
    for (uint32_t k = 0; k < s.input_count; k++) {
        GRAFT_PASS(read_operand(&r, &s, k));
    }
    GRAFT_PASS(read_outputs(&r, &s));
    if (graft_signature_outputs(&s, outputs) != GRAFT_OK || !layouts_fit(&s, outputs)) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "signature '%.200s': its operands do not fit",
                          text);
    }
    memcpy(signature, &s, sizeof(s));
    return GRAFT_OK;
}

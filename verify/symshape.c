/* symshape.c - see symshape.h. One function per kind of operator mirrors its function in
 * engine/shapes.h; tests instantiate what comes out and compare it with graft_infer_shapes. */
#include "verify/symshape.h"

#include "graph/pattern.h"
#include "verify/instance.h"
#include "verify/symassume.h"
#include "verify/symcode.h"
#include "verify/symsolve.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS_MOST = 48, WINDOWS_MOST = 24 };

/* A window's count of positions is floor(room / stride) + 1. */
typedef struct {
    Z3_ast room;
    Z3_ast stride;
    Z3_ast count;
} window;

typedef struct {
    graft_sym *s;
    graft_sym_equations *e;
    graft_sym_instance *instance;
    graft_sym_inputs inputs;
    const graft_sym_extra *extra;
    window windows[WINDOWS_MOST];
    uint32_t window_count;
    const char *why; /* Something is not understood. */
    bool never;
} shaper;

const graft_pattern *graft_sym_pattern(const graft_rule *rule, uint32_t side)
{
    return side == GRAFT_SYM_SOURCE ? &rule->source : &rule->target;
}

const graft_sym_shape *graft_sym_shape_of(const graft_sym_instance *instance, uint32_t side,
                                          graft_operand x)
{
    return GRAFT_OPERAND_IS_NODE(x)
               ? &instance->nodes[side][GRAFT_OPERAND_NODE_OF(x)].shapes[GRAFT_OPERAND_SLOT_OF(x)]
               : &instance->vars[x];
}

/* ----------------------------------------------------------------- claiming */

static void claim_at_least(const shaper *p, Z3_ast term, int64_t least)
{
    if (least == 1) {
        graft_sym_claim_positive(p->e, term);
    } else {
        graft_sym_claim(p->e, Z3_mk_le(p->s->z3, graft_sym_int(p->s, least), term));
    }
}

static void claim_le(const shaper *p, Z3_ast a, Z3_ast b)
{
    graft_sym_claim(p->e, Z3_mk_le(p->s->z3, a, b));
}

/* Claims each part of a conjunction; solves equations. */
static void claim_parts(const shaper *p, Z3_ast condition)
{
    graft_sym *s = p->s;
    Z3_decl_kind kind = graft_sym_kind(s, condition);
    if (kind == Z3_OP_AND) {
        for (uint32_t i = 0; i < graft_sym_arity(s, condition); i++) {
            claim_parts(p, graft_sym_arg(s, condition, i));
        }
    } else if (kind == Z3_OP_EQ &&
               Z3_get_sort(s->z3, graft_sym_arg(s, condition, 0)) == s->integer) {
        graft_sym_equate(p->e, graft_sym_arg(s, condition, 0), graft_sym_arg(s, condition, 1));
    } else {
        graft_sym_claim(p->e, condition);
    }
}

/* ------------------------------------------------------ variables and slots */

static void make_vars(shaper *p)
{
    const graft_rule *rule = p->instance->rule;
    char name[24];
    for (uint32_t v = 0; v < rule->var_count; v++) {
        graft_sym_shape *shape = &p->instance->vars[v];
        shape->rank = p->instance->c->ranks[v];
        for (uint32_t i = 0; i < shape->rank; i++) {
            (void)snprintf(name, sizeof name, "d%" PRIu32 "_%" PRIu32, v, i);
            shape->dims[i] = graft_sym_solved(p->e, graft_sym_symbol(p->s, name));
            claim_at_least(p, shape->dims[i], 1);
        }
    }
}

/* The kind of attribute that a slot stands for. */
static bool is_float_slot(const graft_rule *rule, uint32_t slot)
{
    for (uint32_t n = 0; n < rule->source.node_count; n++) {
        const graft_pattern_node *node = &rule->source.nodes[n];
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
            if (node->attrs[i].kind == GRAFT_TERM_SLOT && node->attrs[i].value == (int32_t)slot) {
                return graft_op_attr(node->op, i)->kind == GRAFT_ATTR_FLOAT;
            }
        }
    }
    return false;
}

static void make_slots(shaper *p)
{
    const graft_sym_case *c = p->instance->c;
    char name[24];
    for (uint32_t i = 0; i < p->instance->rule->slot_count; i++) {
        graft_sym_value *slot = &p->inputs.slots[i];
        *slot = (graft_sym_value){.sort = GRAFT_SYM_INTEGER};
        (void)snprintf(name, sizeof name, "s%" PRIu32, i);
        if (c->chosen[i]) {
            slot->term = graft_sym_int(p->s, c->slots[i]);
        } else if (is_float_slot(p->instance->rule, i)) {
            slot->sort = GRAFT_SYM_FLOAT;
            slot->infinite = c->infinite[i];
            slot->term =
                Z3_mk_const(p->s->z3, Z3_mk_string_symbol(p->s->z3, name), p->s->term.real);
        } else {
            slot->term = graft_sym_solved(p->e, graft_sym_symbol(p->s, name));
        }
    }
}

/* -------------------------------------------------------------- attributes */

static bool fetch_attr(shaper *p, const graft_term *term, bool is_float, graft_sym_value *value)
{
    switch (term->kind) {
    case GRAFT_TERM_SLOT:
        *value = p->inputs.slots[term->value];
        return true;
    case GRAFT_TERM_CODE:
        if (graft_sym_code(&p->inputs, (uint32_t)term->value, value, &p->why)) {
            return true;
        }
        p->never = p->never || p->why == NULL;
        return false;
    default:
        *value = is_float ? graft_sym_float(p->s, term->value)
                          : (graft_sym_value){.term = graft_sym_int(p->s, term->value),
                                              .sort = GRAFT_SYM_INTEGER};
        return true;
    }
}

static bool make_attr(shaper *p, const graft_pattern_node *node, uint32_t i, graft_sym_attr *attr)
{
    const graft_attr_info *info = graft_op_attr(node->op, i);
    bool is_float = info->kind == GRAFT_ATTR_FLOAT;
    graft_sym_value value;
    int64_t number = 0;
    if (!fetch_attr(p, &node->attrs[i], is_float, &value)) {
        return false;
    }
    if (is_float) {
        if (!graft_sym_as_float(p->s, &value)) {
            p->why = "a float attribute is computed otherwise than by comparing";
            return false;
        }
        *attr = (graft_sym_attr){.term = value.term, .infinite = value.infinite};
        return true;
    }
    if (value.sort == GRAFT_SYM_FLOAT) {
        p->why = "a float's bits are used as an integer";
        return false;
    }
    attr->term = graft_sym_solved(p->e, graft_sym_integer(p->s, &value));
    claim_at_least(p, attr->term, info->least);
    if (graft_sym_is_choice(node->op, i)) {
        if (!Z3_is_numeral_ast(p->s->z3, attr->term) ||
            !Z3_get_numeral_int64(p->s->z3, attr->term, &number)) {
            p->why = "an attribute that chooses axes depends on sizes";
            return false;
        }
        p->never = p->never || number < info->least || number > info->most;
        attr->value = (int32_t)number;
    }
    return !p->never;
}

/* ------------------------------------------------------------ broadcasting */

static Z3_ast dim_from_end(const graft_sym *s, const graft_sym_shape *shape, uint32_t back)
{
    return back < shape->rank ? shape->dims[shape->rank - 1 - back] : graft_sym_int(s, 1);
}

static void claim_compatible(const shaper *p, Z3_ast a, Z3_ast b)
{
    Z3_context z3 = p->s->z3;
    Z3_ast one = graft_sym_int(p->s, 1);
    Z3_ast ways[3] = {Z3_mk_eq(z3, a, b), Z3_mk_eq(z3, a, one), Z3_mk_eq(z3, b, one)};
    bool a_wide = Z3_is_numeral_ast(z3, a) && a != one;
    bool b_wide = Z3_is_numeral_ast(z3, b) && b != one;
    if (a != b && a != one && b != one) {
        if (a_wide && b_wide) {
            p->e->impossible = true;
        }
        graft_sym_claim(p->e, Z3_mk_or(z3, 3, ways));
    }
}

static void broadcast_axes(const shaper *p, const graft_sym_shape *const in[], uint32_t kept,
                           graft_sym_shape *out)
{
    for (uint32_t back = kept; back < out->rank; back++) {
        Z3_ast a = dim_from_end(p->s, in[0], back);
        Z3_ast b = dim_from_end(p->s, in[1], back);
        claim_compatible(p, a, b);
        out->dims[out->rank - 1 - back] = graft_sym_wide(p->s, a, b);
    }
}

static uint32_t wider(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* ----------------------------------------------------------------- operators */

/* One operator: attributes, inputs, outputs. */
typedef struct {
    uint32_t op;
    const graft_sym_attr *attrs;
    const graft_sym_shape *in[GRAFT_MAX_INPUTS];
    graft_sym_shape *out;
    uint32_t made; /* The rank of what a reshape or fill makes. */
} application;

/* Of two windows with one stride, the one with more room has no fewer positions, and at most as
 * many more as it has more room. */
static void claim_monotone(const shaper *p, const window *a, const window *b)
{
    graft_sym *s = p->s;
    Z3_ast more = graft_sym_sub(s, b->count, a->count);
    Z3_ast parts[2] = {Z3_mk_le(s->z3, a->count, b->count),
                       Z3_mk_le(s->z3, more, graft_sym_sub(s, b->room, a->room))};
    graft_sym_claim(
        p->e, Z3_mk_implies(s->z3, Z3_mk_le(s->z3, a->room, b->room), Z3_mk_and(s->z3, 2, parts)));
}

static void note_window(shaper *p, window w)
{
    for (uint32_t i = 0; i < p->window_count; i++) {
        const window *other = &p->windows[i];
        if (other->count == w.count) {
            return;
        }
        if (other->stride == w.stride) {
            claim_monotone(p, other, &w);
            claim_monotone(p, &w, other);
        }
    }
    if (p->window_count < WINDOWS_MOST) {
        p->windows[p->window_count++] = w;
    }
}

static Z3_ast slide_window(shaper *p, Z3_ast room, Z3_ast stride)
{
    graft_sym *s = p->s;
    claim_at_least(p, room, 0);
    if (graft_sym_is_number(s, stride, 1)) {
        return graft_sym_add(s, room, graft_sym_int(s, 1));
    }
    Z3_ast count = Z3_mk_app(s->z3, s->window, 2, (Z3_ast[]){room, stride});
    Z3_ast last = graft_sym_mul(s, stride, graft_sym_sub(s, count, graft_sym_int(s, 1)));
    claim_at_least(p, count, 1);
    claim_le(p, last, room);
    graft_sym_claim(p->e, Z3_mk_lt(s->z3, room, graft_sym_mul(s, stride, count)));
    /* A product in which Z3 sees no more than a number: what it needs to know of it. */
    graft_sym_claim(p->e, Z3_mk_implies(s->z3, Z3_mk_eq(s->z3, room, graft_sym_int(s, 0)),
                                        Z3_mk_eq(s->z3, count, graft_sym_int(s, 1))));
    note_window(p, (window){room, stride, count});
    return count;
}

/* size + before + after - dilation (kernel - 1) - 1 */
static Z3_ast room_of(const graft_sym *s, Z3_ast size, const Z3_ast padding[2], Z3_ast reach)
{
    Z3_ast padded = graft_sym_add(s, size, graft_sym_add(s, padding[0], padding[1]));
    return graft_sym_sub(s, padded, graft_sym_add(s, reach, graft_sym_int(s, 1)));
}

static Z3_ast reach_of(const graft_sym *s, Z3_ast kernel, Z3_ast dilation)
{
    return graft_sym_mul(s, dilation, graft_sym_sub(s, kernel, graft_sym_int(s, 1)));
}

static void claim_vector(shaper *p, const graft_sym_shape *vector, Z3_ast size)
{
    p->never = p->never || vector->rank != 1;
    if (vector->rank == 1) {
        graft_sym_equate(p->e, vector->dims[0], size);
    }
}

static void claim_same(shaper *p, const graft_sym_shape *a, const graft_sym_shape *b)
{
    p->never = p->never || a->rank != b->rank;
    for (uint32_t i = 0; i < a->rank && !p->never; i++) {
        graft_sym_equate(p->e, a->dims[i], b->dims[i]);
    }
}

static void shape_conv(shaper *p, const application *a)
{
    graft_sym *s = p->s;
    const graft_sym_shape *x = a->in[0];
    const graft_sym_shape *w = a->in[1];
    Z3_ast groups = a->attrs[GRAFT_ATTR_conv_groups].term;
    graft_sym_equate(p->e, x->dims[1], graft_sym_mul(s, w->dims[1], groups));
    if (graft_sym_is_number(s, w->dims[0], 1)) {
        graft_sym_equate(p->e, groups, w->dims[0]);
    } else if (!graft_sym_is_number(s, groups, 1)) {
        graft_sym_claim(p->e,
                        Z3_mk_eq(s->z3, Z3_mk_mod(s->z3, w->dims[0], groups), graft_sym_int(s, 0)));
    }
    *a->out = (graft_sym_shape){
        .rank = 4, .dims = {x->dims[0], w->dims[0]}
    };
    for (uint32_t i = 0; i < 2; i++) {
        const Z3_ast padding[2] = {a->attrs[GRAFT_ATTR_conv_pad_top + i].term,
                                   a->attrs[GRAFT_ATTR_conv_pad_bottom + i].term};
        Z3_ast reach = reach_of(s, w->dims[2 + i], a->attrs[GRAFT_ATTR_conv_dilation_h + i].term);
        Z3_ast room = room_of(s, x->dims[2 + i], padding, reach);
        a->out->dims[2 + i] = slide_window(p, room, a->attrs[GRAFT_ATTR_conv_stride_h + i].term);
    }
    if (a->op != GRAFT_OP_conv) {
        claim_vector(p, a->in[2], a->out->dims[1]);
    }
    if (a->op == GRAFT_OP_conv_bias_add) {
        claim_same(p, a->in[3], a->out);
    }
}

static void shape_matmul(shaper *p, const application *a)
{
    graft_sym_equate(p->e, dim_from_end(p->s, a->in[0], 0), dim_from_end(p->s, a->in[1], 1));
    uint32_t rank = wider(a->in[0]->rank, a->in[1]->rank);
    a->out->rank = rank;
    a->out->dims[rank - 2] = dim_from_end(p->s, a->in[0], 1);
    a->out->dims[rank - 1] = dim_from_end(p->s, a->in[1], 0);
    broadcast_axes(p, a->in, 2, a->out);
    if (a->op == GRAFT_OP_matmul_bias) {
        claim_vector(p, a->in[2], a->out->dims[rank - 1]);
    }
}

static void shape_channels(shaper *p, const application *a)
{
    *a->out = *a->in[0];
    bool norm = a->op == GRAFT_OP_layer_norm;
    Z3_ast size = a->in[0]->dims[norm ? a->in[0]->rank - 1 : 1];
    claim_vector(p, a->in[1], size);
    claim_vector(p, a->in[2], size);
}

static void shape_concat(shaper *p, const application *a)
{
    uint32_t axis = (uint32_t)a->attrs[GRAFT_ATTR_concat_axis].value;
    *a->out = *a->in[0];
    for (uint32_t i = 0; i < a->in[0]->rank; i++) {
        if (i != axis) {
            graft_sym_equate(p->e, a->in[0]->dims[i], a->in[1]->dims[i]);
        }
    }
    a->out->dims[axis] = graft_sym_add(p->s, a->in[0]->dims[axis], a->in[1]->dims[axis]);
}

static void shape_split(shaper *p, const application *a)
{
    uint32_t axis = (uint32_t)a->attrs[GRAFT_ATTR_split_axis].value;
    Z3_ast at = a->attrs[GRAFT_ATTR_split_at].term;
    a->out[0] = *a->in[0];
    a->out[1] = *a->in[0];
    a->out[0].dims[axis] = at;
    a->out[1].dims[axis] = graft_sym_sub(p->s, a->in[0]->dims[axis], at);
    claim_at_least(p, a->out[1].dims[axis], 1);
}

static void shape_slice(shaper *p, const application *a)
{
    uint32_t axis = (uint32_t)a->attrs[GRAFT_ATTR_slice_axis].value;
    Z3_ast end = a->attrs[GRAFT_ATTR_slice_end].term;
    *a->out = *a->in[0];
    claim_le(p, end, a->in[0]->dims[axis]);
    a->out->dims[axis] = graft_sym_sub(p->s, end, a->attrs[GRAFT_ATTR_slice_start].term);
    claim_at_least(p, a->out->dims[axis], 1);
}

static void shape_pad(shaper *p, const application *a)
{
    uint32_t axis = (uint32_t)a->attrs[GRAFT_ATTR_pad_axis].value;
    Z3_ast both = graft_sym_add(p->s, a->attrs[GRAFT_ATTR_pad_before].term,
                                a->attrs[GRAFT_ATTR_pad_after].term);
    *a->out = *a->in[0];
    a->out->dims[axis] = graft_sym_add(p->s, a->in[0]->dims[axis], both);
    p->never = p->never || a->attrs[GRAFT_ATTR_pad_value].infinite != 0;
}

static void shape_transpose(shaper *p, const application *a)
{
    a->out->rank = a->in[0]->rank;
    for (uint32_t i = 0; i < GRAFT_MAX_RANK; i++) {
        uint32_t axis = (uint32_t)a->attrs[GRAFT_ATTR_transpose_axis_0 + i].value;
        if (i >= a->out->rank || axis >= a->out->rank) {
            p->never = p->never || axis != 0;
            continue;
        }
        for (uint32_t k = 0; k < i; k++) {
            p->never = p->never || (uint32_t)a->attrs[k].value == axis;
        }
        a->out->dims[i] = a->in[0]->dims[axis];
    }
}

/* A shape written as six attributes, `first` being the first. */
static void read_shape(const shaper *p, const application *a, uint32_t first)
{
    a->out->rank = a->made;
    for (uint32_t i = 0; i < GRAFT_MAX_RANK; i++) {
        Z3_ast size = a->attrs[first + i].term;
        if (i < a->made) {
            a->out->dims[i] = size;
            claim_at_least(p, size, 1);
        } else {
            graft_sym_equate(p->e, size, graft_sym_int(p->s, 0));
        }
    }
}

static void shape_pool(shaper *p, const application *a)
{
    graft_sym *s = p->s;
    bool dilated = a->op == GRAFT_OP_max_pool;
    *a->out = *a->in[0];
    for (uint32_t i = 0; i < 2; i++) {
        Z3_ast size = a->in[0]->dims[2 + i];
        const Z3_ast padding[2] = {a->attrs[GRAFT_ATTR_max_pool_pad_top + i].term,
                                   a->attrs[GRAFT_ATTR_max_pool_pad_bottom + i].term};
        Z3_ast dilation =
            dilated ? a->attrs[GRAFT_ATTR_max_pool_dilation_h + i].term : graft_sym_int(s, 1);
        Z3_ast reach = reach_of(s, a->attrs[GRAFT_ATTR_max_pool_kernel_h + i].term, dilation);
        claim_le(p, padding[0], reach);
        claim_le(p, padding[1], reach);
        if (dilated) {
            Z3_ast parts[2] = {Z3_mk_le(s->z3, dilation, size),
                               Z3_mk_le(s->z3, padding[0], graft_sym_int(s, 0))};
            graft_sym_claim(p->e, Z3_mk_or(s->z3, 2, parts));
        }
        Z3_ast room = room_of(s, size, padding, reach);
        a->out->dims[2 + i] =
            slide_window(p, room, a->attrs[GRAFT_ATTR_max_pool_stride_h + i].term);
    }
}

static void shape_reduce(const shaper *p, const application *a)
{
    uint32_t axes = (uint32_t)a->attrs[GRAFT_ATTR_reduce_mean_axes].value;
    bool keep = a->attrs[GRAFT_ATTR_reduce_mean_keep].value == 1;
    a->out->rank = 0;
    for (uint32_t i = 0; i < a->in[0]->rank; i++) {
        bool reduced = (axes >> i & 1u) != 0;
        if (!reduced || keep) {
            a->out->dims[a->out->rank++] = reduced ? graft_sym_int(p->s, 1) : a->in[0]->dims[i];
        }
    }
}

static void claim_positive(const shaper *p, Z3_ast number, bool strictly)
{
    Z3_context z3 = p->s->z3;
    graft_sym_claim(p->e, strictly ? Z3_mk_lt(z3, p->s->term.zero, number)
                                   : Z3_mk_le(z3, p->s->term.zero, number));
}

/* What is asked of float attributes. */
static void check_floats(shaper *p, const application *a)
{
    switch (a->op) {
    case GRAFT_OP_clip: {
        const graft_sym_attr *low = &a->attrs[GRAFT_ATTR_clip_low];
        const graft_sym_attr *high = &a->attrs[GRAFT_ATTR_clip_high];
        p->never = p->never || low->infinite > 0 || high->infinite < 0;
        if (low->infinite == 0 && high->infinite == 0) {
            graft_sym_claim(p->e, Z3_mk_le(p->s->z3, low->term, high->term));
        }
        break;
    }
    case GRAFT_OP_leaky_relu:
    case GRAFT_OP_layer_norm:
    case GRAFT_OP_fill:
        p->never = p->never || a->attrs[0].infinite != 0;
        if (!p->never && a->op != GRAFT_OP_fill) {
            claim_positive(p, a->attrs[0].term, a->op == GRAFT_OP_layer_norm);
        }
        break;
    default:
        break;
    }
}

static void shape_by_kind(shaper *p, const application *a)
{
    switch (a->op) {
    case GRAFT_OP_conv:
    case GRAFT_OP_conv_bias:
    case GRAFT_OP_conv_bias_add:
        shape_conv(p, a);
        break;
    case GRAFT_OP_matmul:
    case GRAFT_OP_matmul_bias:
        shape_matmul(p, a);
        break;
    case GRAFT_OP_max_pool:
    case GRAFT_OP_avg_pool:
        shape_pool(p, a);
        break;
    case GRAFT_OP_global_avg_pool:
        *a->out = *a->in[0];
        a->out->dims[2] = a->out->dims[3] = graft_sym_int(p->s, 1);
        break;
    case GRAFT_OP_scale_shift:
    case GRAFT_OP_layer_norm:
        shape_channels(p, a);
        break;
    case GRAFT_OP_concat:
        shape_concat(p, a);
        break;
    case GRAFT_OP_split:
        shape_split(p, a);
        break;
    case GRAFT_OP_slice:
        shape_slice(p, a);
        break;
    case GRAFT_OP_pad:
        shape_pad(p, a);
        break;
    case GRAFT_OP_transpose:
        shape_transpose(p, a);
        break;
    case GRAFT_OP_reshape:
        read_shape(p, a, 0);
        graft_sym_equate_products(p->e, a->in[0]->dims, a->in[0]->rank, a->out->dims, a->out->rank);
        break;
    case GRAFT_OP_reduce_mean:
    case GRAFT_OP_reduce_sum:
    case GRAFT_OP_reduce_max:
        shape_reduce(p, a);
        break;
    default: /* Elementwise, softmax. */
        if (graft_op(a->op)->input_count == 1) {
            *a->out = *a->in[0];
        } else {
            assert(a->in[1] != NULL);
            a->out->rank = wider(a->in[0]->rank, a->in[1]->rank);
            broadcast_axes(p, a->in, 0, a->out);
        }
        break;
    }
}

static void shape_node(shaper *p, uint32_t side, uint32_t n)
{
    graft_sym_instance *instance = p->instance;
    const graft_pattern_node *node = &graft_sym_pattern(instance->rule, side)->nodes[n];
    graft_sym_node *place = &instance->nodes[side][n];
    application a = {.op = node->op,
                     .attrs = place->attrs,
                     .out = place->shapes,
                     .made = instance->c->made[side][n]};
    bool number = node->op == GRAFT_OP_fill && instance->c->scalar;
    uint32_t attrs = number ? 1 : graft_op(node->op)->attr_count;
    for (uint32_t i = 0; i < attrs; i++) {
        if (!make_attr(p, node, i, &place->attrs[i])) {
            return;
        }
    }
    for (uint32_t i = 0; i < graft_op(node->op)->input_count; i++) {
        a.in[i] = graft_sym_shape_of(instance, side, node->inputs[i]);
    }
    check_floats(p, &a);
    if (number) {
        place->shapes[0].rank = 0;
    } else if (node->op == GRAFT_OP_fill) {
        read_shape(p, &a, GRAFT_ATTR_fill_dim_0);
    } else {
        assert(a.in[0] != NULL); /* Every other operator has an input. */
        shape_by_kind(p, &a);
    }
}

/* -------------------------------------------------------------- the whole rule */

/* In the scalar case a condition on shapes is left out: the claim is made without it. */
static void claim_condition(shaper *p)
{
    graft_sym_value value;
    const char *why = NULL;
    if (p->instance->rule->condition == 255) {
        return;
    }
    if (graft_sym_code(&p->inputs, p->instance->rule->condition, &value, &why)) {
        claim_parts(p, graft_sym_truth(p->s, &value));
    } else if (why == NULL) {
        p->never = true;
    } else if (!p->instance->c->scalar) {
        p->why = why;
    }
}

static void shape_side(shaper *p, uint32_t side)
{
    const graft_pattern *pattern = graft_sym_pattern(p->instance->rule, side);
    for (uint32_t k = 0; k < pattern->node_count && p->why == NULL && !p->never; k++) {
        shape_node(p, side, p->instance->order[side][k]);
    }
}

static void equate_outputs(shaper *p)
{
    const graft_rule *rule = p->instance->rule;
    for (uint32_t i = 0; i < rule->output_count; i++) {
        claim_same(p, graft_sym_shape_of(p->instance, GRAFT_SYM_SOURCE, rule->source.outputs[i]),
                   graft_sym_shape_of(p->instance, GRAFT_SYM_TARGET, rule->target.outputs[i]));
    }
}

/* Once through the rule, with what is known about its symbols. */
static void shape_rule(shaper *p)
{
    p->e->claim_count = 0;
    p->e->changed = false;
    p->window_count = 0;
    for (uint32_t i = 0; i < p->extra->count; i++) {
        claim_parts(p, p->extra->claims[i]);
    }
    make_vars(p);
    make_slots(p);
    shape_side(p, GRAFT_SYM_SOURCE);
    if (p->why == NULL && !p->never) {
        claim_condition(p);
        shape_side(p, GRAFT_SYM_TARGET);
    }
    if (p->why == NULL && !p->never) {
        equate_outputs(p);
    }
}

graft_sym_fit graft_sym_shapes(graft_sym *s, const graft_rule *rule, const graft_sym_case *c,
                               const graft_sym_extra *extra, graft_sym_instance *instance,
                               const char **why)
{
    graft_mark mark = graft_arena_mark(s->env->unit);
    graft_sym_equations *e = GRAFT_NEW(s->env->unit, graft_sym_equations, 1);
    shaper p = {.s = s, .e = e, .instance = instance, .extra = extra};
    e->s = s;
    memset(instance, 0, sizeof *instance);
    instance->rule = rule;
    instance->c = c;
    p.inputs.equations = e;
    p.inputs.rule = rule;
    p.inputs.scalar = c->scalar;
    p.inputs.vars = instance->vars;
    graft_pattern_order(&rule->source, instance->order[GRAFT_SYM_SOURCE]);
    graft_pattern_order(&rule->target, instance->order[GRAFT_SYM_TARGET]);
    graft_sym_assumed_reset(s);
    memset((void *)s->elements, 0, sizeof s->elements);
    e->changed = true;
    for (uint32_t round = 0; e->changed && !p.never && !e->impossible && p.why == NULL; round++) {
        shape_rule(&p);
        e->full = e->full || round == ROUNDS_MOST;
        if (e->full) {
            p.why = "too many sizes";
        }
    }
    *why = p.why;
    graft_sym_fit fit = p.never || e->impossible ? GRAFT_SYM_NEVER
                        : p.why != NULL          ? GRAFT_SYM_UNSUPPORTED
                                                 : GRAFT_SYM_FITS;
    for (uint32_t i = 0; i < e->claim_count && fit == GRAFT_SYM_FITS; i++) {
        graft_sym_assume(s, e->claims[i]);
    }
    graft_arena_release(s->env->unit, mark);
    return fit;
}

const graft_facts *graft_sym_within(const graft_sym *s, const graft_sym_shape *shape,
                                    graft_facts *room)
{
    const graft_facts *facts = NULL;
    for (uint32_t i = 0; i < shape->rank; i++) {
        room[i] = (graft_facts){.outer = facts,
                                .fact = graft_sym_in_range(s, s->formals[i], shape->dims[i])};
        facts = &room[i];
    }
    return facts;
}

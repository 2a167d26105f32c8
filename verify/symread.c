/* symread.c - see symread.h. */
#include "verify/symread.h"

#include "verify/guarded.h"
#include "verify/symassume.h"
#include "verify/symbits.h"
#include "verify/symfold.h"
#include "verify/symplain.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* One node being read. */
typedef struct {
    graft_sym *s;
    const graft_sym_instance *instance;
    graft_sym_side *read;
    const graft_pattern_node *node;
    const graft_sym_node *symbolic; /* Its attributes and shapes. */
    const graft_facts *facts;       /* Its formals lie in its output's shape. */
    graft_sym_conditions *conditions;
    uint32_t side;
} reader;

/* ------------------------------------------------------------------ operands */

static const graft_sym_shape *in_shape(const reader *r, uint32_t i)
{
    return graft_sym_shape_of(r->instance, r->side, r->node->inputs[i]);
}

static Z3_ast element_of(const graft_sym *s, uint32_t v, uint32_t rank, const Z3_ast *index)
{
    return Z3_mk_app(s->z3, s->elements[v], rank, index);
}

Z3_ast graft_sym_operand(const graft_sym *s, const graft_sym_instance *instance, uint32_t side,
                         const graft_sym_side *read, graft_operand x)
{
    (void)side;
    return GRAFT_OPERAND_IS_NODE(x)
               ? read->values[GRAFT_OPERAND_NODE_OF(x)][GRAFT_OPERAND_SLOT_OF(x)]
               : element_of(s, x, instance->vars[x].rank, s->formals);
}

graft_sym_conditions graft_sym_operand_conditions(const graft_sym_side *read, graft_operand x)
{
    return GRAFT_OPERAND_IS_NODE(x)
               ? read->conditions[GRAFT_OPERAND_NODE_OF(x)][GRAFT_OPERAND_SLOT_OF(x)]
               : (graft_sym_conditions){.count = 0};
}

/* ----------------------------------------------------------------- definedness */

static void add_condition(const reader *r, const graft_sym_condition *c)
{
    graft_sym_conditions *list = r->conditions;
    for (uint32_t i = 0; i < list->count; i++) {
        const graft_sym_condition *other = &list->items[i];
        if (other->holds == c->holds && other->where == c->where &&
            other->is_caught == c->is_caught) {
            return;
        }
    }
    if (list->count == GRAFT_LIMIT(CONDITIONS)) {
        (void)graft_sym_refuse(r->s, GRAFT_LIMIT_CONDITIONS);
        return;
    }
    list->items[list->count++] = *c;
}

static Z3_ast both(const graft_sym *s, Z3_ast a, Z3_ast b)
{
    return a == NULL ? b : b == NULL ? a : Z3_mk_and(s->z3, 2, (Z3_ast[]){a, b});
}

/* The activation of the node at hand, if it has one. */
static int32_t activation_of(const reader *r)
{
    for (uint32_t i = 0; i < graft_op(r->node->op)->attr_count; i++) {
        if (graft_op_attr(r->node->op, i)->kind == GRAFT_ATTR_ACTIVATION) {
            return r->symbolic->attrs[i].value;
        }
    }
    return GRAFT_ACT_NONE;
}

/* Places of an operand that an element is made of: an index, for all binders of a range. */
typedef struct {
    const Z3_ast *index;
    const graft_sym_range *range; /* NULL: there is none. */
    Z3_ast where; /* The element is made of it where this holds; NULL: everywhere. */
} places;

/* Binders of conditions are symbols of their own: those of ranges come up again in other nodes. */
static void rename_binders(graft_sym *s, const graft_sym_range *range, graft_sym_condition *c,
                           Z3_ast *to)
{
    for (uint32_t i = 0; i < range->count; i++) {
        char name[GRAFT_ROOM_NAME];
        (void)snprintf(name, sizeof name, "c%" PRIu32, s->bound++);
        to[i] = graft_sym_symbol(s, name);
        c->binders[c->binder_count++] = to[i];
    }
}

/* What a condition of input i comes to where the node reads it. */
static void pass_condition(const reader *r, uint32_t i, const graft_sym_condition *of,
                           const places *at)
{
    graft_sym *s = r->s;
    Z3_ast index[GRAFT_MAX_RANK];
    Z3_ast to[GRAFT_SYM_BINDERS];
    Z3_ast where = at->where;
    graft_sym_condition c = *of;
    uint32_t rank = in_shape(r, i)->rank;
    uint32_t bound = at->range != NULL ? at->range->count : 0;
    if (c.binder_count + bound > GRAFT_LIMIT(CONDITION_BINDERS)) {
        (void)graft_sym_refuse(s, GRAFT_LIMIT_CONDITION_BINDERS);
        return;
    }
    memcpy((void *)index, (const void *)at->index, rank * sizeof *index);
    if (bound > 0) {
        rename_binders(s, at->range, &c, to);
        where = both(s, where, graft_sym_range_formula(s, at->range));
        where = graft_sym_substitute(s, where, bound, at->range->binders, to);
        for (uint32_t k = 0; k < rank; k++) {
            index[k] = graft_sym_substitute(s, index[k], bound, at->range->binders, to);
        }
    }
    c.holds = graft_sym_read(s, c.holds, rank, index);
    c.where = both(s, c.where == NULL ? NULL : graft_sym_read(s, c.where, rank, index), where);
    c.is_caught =
        c.is_caught || (!c.is_root && graft_guarded_catches(r->node->op, activation_of(r)));
    add_condition(r, &c);
}

static void pass_conditions(const reader *r, uint32_t i, const places *at)
{
    graft_sym_conditions of = graft_sym_operand_conditions(r->read, r->node->inputs[i]);
    for (uint32_t k = 0; k < of.count; k++) {
        pass_condition(r, i, &of.items[k], at);
    }
}

/* ------------------------------------------------------------------- reading */

/* Input i at some places. */
static Z3_ast in_places(const reader *r, uint32_t i, const places *at)
{
    Z3_ast value = graft_sym_operand(r->s, r->instance, r->side, r->read, r->node->inputs[i]);
    pass_conditions(r, i, at);
    return graft_sym_read(r->s, value, in_shape(r, i)->rank, at->index);
}

/* Input i at an index. */
static Z3_ast in_at(const reader *r, uint32_t i, const Z3_ast *index)
{
    return in_places(r, i, &(places){.index = index});
}

/* Input i at the indices of a range. */
static Z3_ast in_folded(const reader *r, uint32_t i, const Z3_ast *index,
                        const graft_sym_range *range)
{
    return in_places(r, i, &(places){.index = index, .range = range});
}

static Z3_ast attr(const reader *r, uint32_t i) { return r->symbolic->attrs[i].term; }

static int32_t choice(const reader *r, uint32_t i) { return r->symbolic->attrs[i].value; }

static const Z3_ast *formals(const reader *r) { return r->s->formals; }

/* ----------------------------------------------------------------- arithmetic */

static Z3_ast compute(const reader *r, uint32_t op, Z3_ast a, Z3_ast b)
{
    return r->s->bits != NULL ? graft_sym_bits_scalar(r->s->bits, op, a, b)
                              : graft_term_scalar(&r->s->term, op, a, b);
}

static Z3_ast number(const reader *r, int value)
{
    return r->s->bits != NULL ? graft_sym_bits_size(r->s, graft_sym_int(r->s, value))
                              : Z3_mk_int(r->s->z3, value, r->s->term.real);
}

/* An attribute that is a float. */
static Z3_ast float_attr(const reader *r, uint32_t i)
{
    return r->s->bits != NULL ? graft_sym_bits_attr(r->s, &r->node->attrs[i], attr(r, i))
                              : attr(r, i);
}

static Z3_ast activate(const reader *r, int32_t activation, Z3_ast x)
{
    switch (activation) {
    case GRAFT_ACT_RELU:
        return compute(r, GRAFT_OP_relu, x, NULL);
    case GRAFT_ACT_RELU6:
        return compute(r, GRAFT_OP_min, compute(r, GRAFT_OP_relu, x, NULL), number(r, 6));
    case GRAFT_ACT_SIGMOID:
        return compute(r, GRAFT_OP_sigmoid, x, NULL);
    case GRAFT_ACT_TANH:
        return compute(r, GRAFT_OP_tanh, x, NULL);
    default:
        return x;
    }
}

static Z3_ast clamp(const reader *r, Z3_ast x)
{
    const graft_sym_attr *low = &r->symbolic->attrs[GRAFT_ATTR_clip_low];
    const graft_sym_attr *high = &r->symbolic->attrs[GRAFT_ATTR_clip_high];
    if (low->infinite == 0) {
        x = compute(r, GRAFT_OP_max, x, float_attr(r, GRAFT_ATTR_clip_low));
    }
    return high->infinite == 0 ? compute(r, GRAFT_OP_min, x, float_attr(r, GRAFT_ATTR_clip_high))
                               : x;
}

static Z3_ast leaky_relu(const reader *r, Z3_ast x)
{
    Z3_context z3 = r->s->z3;
    Z3_ast slope = float_attr(r, GRAFT_ATTR_leaky_relu_slope);
    if (r->s->bits != NULL) {
        return graft_sym_bits_apply(r->s->bits, GRAFT_SYM_BITS_LEAKY_RELU, x, slope);
    }
    Z3_ast scaled = compute(r, GRAFT_OP_mul, x, slope);
    Z3_ast above = compute(r, GRAFT_OP_max, x, scaled);
    Z3_ast below = compute(r, GRAFT_OP_min, x, scaled);
    Z3_ast small = Z3_simplify(z3, Z3_mk_le(z3, slope, r->s->term.one));
    Z3_lbool known = Z3_get_bool_value(z3, small);
    return known == Z3_L_TRUE    ? above
           : known == Z3_L_FALSE ? below
                                 : Z3_mk_ite(z3, small, above, below);
}

/* --------------------------------------------------------------- broadcasting */

/* Input i at the index that broadcasting assigns to the formals, `kept` last axes apart, whose
 * index is `last`, for all binders of a range. */
static Z3_ast in_broadcast(const reader *r, uint32_t i, uint32_t kept, const Z3_ast *last,
                           const graft_sym_range *range)
{
    const graft_sym_shape *in = in_shape(r, i);
    const graft_sym_shape *out = &r->symbolic->shapes[0];
    Z3_ast index[GRAFT_MAX_RANK];
    for (uint32_t axis = 0; axis < in->rank; axis++) {
        uint32_t to = axis + out->rank - in->rank;
        if (in->rank - axis <= kept) {
            index[axis] = last[kept - (in->rank - axis)];
        } else if (in->dims[axis] == out->dims[to] && r->s->plain == NULL) {
            index[axis] = formals(r)[to];
        } else {
            index[axis] = graft_sym_at(r->s, in->dims[axis], formals(r)[to]);
        }
    }
    return in_folded(r, i, index, range);
}

static Z3_ast read_elementwise(const reader *r)
{
    Z3_ast a = in_broadcast(r, 0, 0, NULL, NULL);
    switch (r->node->op) {
    case GRAFT_OP_clip:
        return clamp(r, a);
    case GRAFT_OP_leaky_relu:
        return leaky_relu(r, a);
    default:
        break;
    }
    bool binary = graft_op(r->node->op)->input_count == 2;
    return compute(r, r->node->op, a, binary ? in_broadcast(r, 1, 0, NULL, NULL) : NULL);
}

/* -------------------------------------------------------------- data movement */

/* Input i at the formals, but for one axis; it is read where `where` holds (NULL: everywhere). */
static Z3_ast in_shifted(const reader *r, uint32_t i, uint32_t axis, Z3_ast at, Z3_ast where)
{
    Z3_ast index[GRAFT_MAX_RANK];
    memcpy((void *)index, (const void *)formals(r), sizeof index);
    index[axis] = at;
    return in_places(r, i, &(places){.index = index, .where = where});
}

static Z3_ast read_concat(const reader *r)
{
    graft_sym *s = r->s;
    uint32_t axis = (uint32_t)choice(r, GRAFT_ATTR_concat_axis);
    Z3_ast q = formals(r)[axis];
    Z3_ast size = in_shape(r, 0)->dims[axis];
    Z3_ast first = Z3_mk_lt(s->z3, q, size);
    return Z3_mk_ite(s->z3, first, in_shifted(r, 0, axis, q, first),
                     in_shifted(r, 1, axis, graft_sym_sub(s, q, size), Z3_mk_not(s->z3, first)));
}

static Z3_ast read_moved(const reader *r, uint32_t axis, Z3_ast by)
{
    return in_shifted(r, 0, axis, graft_sym_add(r->s, formals(r)[axis], by), NULL);
}

static Z3_ast read_pad(const reader *r)
{
    graft_sym *s = r->s;
    uint32_t axis = (uint32_t)choice(r, GRAFT_ATTR_pad_axis);
    Z3_ast at = graft_sym_sub(s, formals(r)[axis], attr(r, GRAFT_ATTR_pad_before));
    Z3_ast value = float_attr(r, GRAFT_ATTR_pad_value);
    Z3_ast low = Z3_mk_le(s->z3, graft_sym_int(s, 0), at);
    Z3_ast high = Z3_mk_lt(s->z3, at, in_shape(r, 0)->dims[axis]);
    Z3_ast inside = in_shifted(r, 0, axis, at, both(s, low, high));
    return Z3_mk_ite(s->z3, low, Z3_mk_ite(s->z3, high, inside, value), value);
}

static Z3_ast read_transpose(const reader *r)
{
    Z3_ast index[GRAFT_MAX_RANK];
    for (uint32_t i = 0; i < r->symbolic->shapes[0].rank; i++) {
        index[choice(r, GRAFT_ATTR_transpose_axis_0 + i)] = formals(r)[i];
    }
    return in_at(r, 0, index);
}

/* The axes of a shape that are not of size 1. */
static uint32_t list_axes(const graft_sym *s, const graft_sym_shape *shape, uint32_t *axes)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (s->plain != NULL || !graft_sym_is_number(s, shape->dims[i], 1)) {
            axes[count++] = i;
        }
    }
    return count;
}

static Z3_ast place_of(const reader *r, const graft_sym_shape *shape, const uint32_t *axes,
                       uint32_t count)
{
    Z3_ast args[2 * GRAFT_MAX_RANK];
    for (uint32_t i = 0; i < count; i++) {
        args[i] = formals(r)[axes[i]];
        args[count + i] = shape->dims[axes[i]];
    }
    return count == 0   ? graft_sym_int(r->s, 0)
           : count == 1 ? args[0]
                        : Z3_mk_app(r->s->z3, r->s->place[count], 2 * count, args);
}

static Z3_ast part_of(const reader *r, Z3_ast place, const graft_sym_shape *shape,
                      const uint32_t *axes, uint32_t count, uint32_t part)
{
    Z3_ast args[GRAFT_MAX_RANK + 1] = {place};
    for (uint32_t i = 0; i < count; i++) {
        args[i + 1] = shape->dims[axes[i]];
    }
    return count == 1 ? place : Z3_mk_app(r->s->z3, r->s->part[count][part], count + 1, args);
}

static Z3_ast read_reshape(const reader *r)
{
    const graft_sym_shape *in = in_shape(r, 0);
    const graft_sym_shape *out = &r->symbolic->shapes[0];
    uint32_t from[GRAFT_MAX_RANK] = {0};
    uint32_t to[GRAFT_MAX_RANK] = {0};
    Z3_ast index[GRAFT_MAX_RANK];
    uint32_t from_end = list_axes(r->s, in, from);
    uint32_t to_end = list_axes(r->s, out, to);
    uint32_t first = 0;
    bool plain = r->s->plain != NULL; /* Then all axes are joined and taken apart. */
    for (uint32_t i = 0; i < in->rank; i++) {
        index[i] = graft_sym_int(r->s, 0);
    }
    for (; !plain && first < from_end && first < to_end &&
           in->dims[from[first]] == out->dims[to[first]];
         first++) {
        index[from[first]] = formals(r)[to[first]];
    }
    while (!plain && from_end > first && to_end > first &&
           in->dims[from[from_end - 1]] == out->dims[to[to_end - 1]]) {
        index[from[--from_end]] = formals(r)[to[--to_end]];
    }
    Z3_ast place = place_of(r, out, to + first, to_end - first);
    for (uint32_t i = first; i < from_end; i++) {
        index[from[i]] = part_of(r, place, in, from + first, from_end - first, i - first);
    }
    return in_at(r, 0, index);
}

/* ------------------------------------------------------- products, convolution */

static Z3_ast multiply(const reader *r, Z3_ast a, Z3_ast b)
{
    return compute(r, GRAFT_OP_mul, a, b);
}

static Z3_ast add(const reader *r, Z3_ast a, Z3_ast b) { return compute(r, GRAFT_OP_add, a, b); }

static Z3_ast sum_over(const reader *r, const graft_sym_range *range, Z3_ast body)
{
    return r->s->bits != NULL ? graft_sym_fold_close(r->s, GRAFT_SYM_ORDERED_SUM, range, body)
                              : graft_sym_sum(r->s, r->facts, range, body);
}

static Z3_ast max_over(const reader *r, const graft_sym_range *range, Z3_ast body)
{
    return r->s->bits != NULL ? graft_sym_fold_close(r->s, GRAFT_SYM_ORDERED_MAX, range, body)
                              : graft_sym_max(r->s, r->facts, range, body);
}

/* A quotient by a number that shape inference makes positive. */
static Z3_ast divide_by_count(const reader *r, Z3_ast total, Z3_ast count)
{
    uint32_t known = Z3_ast_vector_size(r->s->z3, r->s->term.domain);
    Z3_ast quotient = compute(r, GRAFT_OP_div, total, count);
    Z3_ast_vector_resize(r->s->z3, r->s->term.domain, known);
    return graft_sym_normal(r->s, quotient);
}

/* The mean over a range; of real numbers, one without guard. */
static Z3_ast mean_over(const reader *r, const graft_sym_range *range, Z3_ast body)
{
    if (r->s->bits != NULL) {
        return graft_sym_fold_close(r->s, GRAFT_SYM_ORDERED_MEAN, range, body);
    }
    Z3_ast total = sum_over(r, range, body);
    for (uint32_t i = 0; i < range->count; i++) {
        total = divide_by_count(r, total, graft_sym_real(r->s, range->sizes[i]));
    }
    return total;
}

/* act(x + bias [+ residual]); the bias belongs to an axis. */
static Z3_ast finish(const reader *r, Z3_ast x, uint32_t axis, int32_t activation)
{
    x = add(r, x, in_at(r, 2, &formals(r)[axis]));
    if (r->node->op == GRAFT_OP_conv_bias_add) {
        x = add(r, x, in_at(r, 3, formals(r)));
    }
    return activate(r, activation, x);
}

static Z3_ast read_matmul(const reader *r)
{
    uint32_t rank = r->symbolic->shapes[0].rank;
    graft_sym_range range = graft_sym_range_open(r->s);
    Z3_ast t = graft_sym_range_add(r->s, &range, in_shape(r, 0)->dims[in_shape(r, 0)->rank - 1]);
    const Z3_ast row[2] = {formals(r)[rank - 2], t};
    const Z3_ast column[2] = {t, formals(r)[rank - 1]};
    Z3_ast body =
        multiply(r, in_broadcast(r, 0, 2, row, &range), in_broadcast(r, 1, 2, column, &range));
    Z3_ast sum = sum_over(r, &range, body);
    return r->node->op == GRAFT_OP_matmul
               ? sum
               : finish(r, sum, rank - 1, choice(r, GRAFT_ATTR_matmul_bias_activation));
}

/* q stride + tap dilation - before */
static Z3_ast window_at(const graft_sym *s, Z3_ast q, Z3_ast stride, Z3_ast tap, Z3_ast dilation,
                        Z3_ast before)
{
    Z3_ast reached = graft_sym_add(s, graft_sym_mul(s, q, stride), graft_sym_mul(s, tap, dilation));
    return graft_sym_sub(s, reached, before);
}

/* One axis of a window: its tap and where that reads. */
typedef struct {
    Z3_ast position; /* In the output. */
    Z3_ast count;    /* Of positions. */
    Z3_ast stride;
    Z3_ast tap;
    Z3_ast kernel;
    Z3_ast dilation;
    Z3_ast before;
    Z3_ast size; /* Of the input's axis. */
} window_axis;

/* 0 <= x factor <= (most - 1) factor, which Z3 is told because it does not multiply. */
static Z3_ast product_bounds(const graft_sym *s, Z3_ast x, Z3_ast most, Z3_ast factor)
{
    Z3_ast product = graft_sym_mul(s, x, factor);
    Z3_ast last = graft_sym_mul(s, graft_sym_sub(s, most, graft_sym_int(s, 1)), factor);
    Z3_ast parts[2] = {Z3_mk_le(s->z3, graft_sym_int(s, 0), product),
                       Z3_mk_le(s->z3, product, last)};
    return Z3_mk_and(s->z3, 2, parts);
}

/* Where a tap reads; it is guarded, unless without padding every tap lies inside. */
static Z3_ast guard_window(const reader *r, graft_sym_range *range, const window_axis *w)
{
    graft_sym *s = r->s;
    Z3_ast at = window_at(s, w->position, w->stride, w->tap, w->dilation, w->before);
    Z3_ast inside = graft_sym_in_range(s, at, w->size);
    const graft_facts taps = {.outer = r->facts,
                              .fact = product_bounds(s, w->tap, w->kernel, w->dilation)};
    const graft_facts positions = {.outer = &taps,
                                   .fact = product_bounds(s, w->position, w->count, w->stride)};
    const graft_facts facts = {.outer = &positions,
                               .fact = graft_sym_in_range(s, w->tap, w->kernel)};
    if (!graft_sym_is_number(s, w->before, 0) || !graft_sym_holds(s, &facts, inside)) {
        graft_sym_range_guard(s, range, inside);
    }
    return graft_sym_is_number(s, w->size, 1) && s->plain == NULL ? graft_sym_int(s, 0) : at;
}

static Z3_ast channel_of_group(const reader *r, Z3_ast channel)
{
    graft_sym *s = r->s;
    Z3_ast groups = attr(r, GRAFT_ATTR_conv_groups);
    const graft_sym_shape *w = in_shape(r, 1);
    Z3_ast one = Z3_mk_eq(s->z3, groups, graft_sym_int(s, 1));
    if (graft_sym_holds(s, NULL, one)) {
        return channel;
    }
    Z3_ast group = graft_sym_group(s, formals(r)[1], w->dims[0], groups);
    return graft_sym_add(s, graft_sym_mul(s, group, w->dims[1]), channel);
}

static Z3_ast read_conv(const reader *r)
{
    graft_sym *s = r->s;
    const graft_sym_shape *x = in_shape(r, 0);
    const graft_sym_shape *w = in_shape(r, 1);
    graft_sym_range range = graft_sym_range_open(s);
    Z3_ast filter[4] = {formals(r)[1]};
    for (uint32_t i = 1; i < 4; i++) {
        filter[i] = graft_sym_range_add(s, &range, w->dims[i]);
    }
    Z3_ast image[4] = {formals(r)[0], channel_of_group(r, filter[1])};
    for (uint32_t i = 0; i < 2; i++) {
        const window_axis axis = {.position = formals(r)[2 + i],
                                  .count = r->symbolic->shapes[0].dims[2 + i],
                                  .stride = attr(r, GRAFT_ATTR_conv_stride_h + i),
                                  .tap = filter[2 + i],
                                  .kernel = w->dims[2 + i],
                                  .dilation = attr(r, GRAFT_ATTR_conv_dilation_h + i),
                                  .before = attr(r, GRAFT_ATTR_conv_pad_top + i),
                                  .size = x->dims[2 + i]};
        image[2 + i] = guard_window(r, &range, &axis);
    }
    Z3_ast body = multiply(r, in_folded(r, 0, image, &range), in_folded(r, 1, filter, &range));
    Z3_ast sum = sum_over(r, &range, body);
    return r->node->op == GRAFT_OP_conv
               ? sum
               : finish(r, sum, 1, choice(r, GRAFT_ATTR_conv_bias_activation));
}

static Z3_ast read_scale_shift(const reader *r)
{
    Z3_ast scaled = multiply(r, in_at(r, 0, formals(r)), in_at(r, 1, &formals(r)[1]));
    return add(r, scaled, in_at(r, 2, &formals(r)[1]));
}

/* --------------------------------------------------------- pooling, reduction */

static Z3_ast pool_window(const reader *r, graft_sym_range *range, uint32_t i)
{
    bool dilated = r->node->op == GRAFT_OP_max_pool;
    Z3_ast kernel = attr(r, GRAFT_ATTR_max_pool_kernel_h + i);
    const window_axis axis = {.position = formals(r)[2 + i],
                              .count = r->symbolic->shapes[0].dims[2 + i],
                              .stride = attr(r, GRAFT_ATTR_max_pool_stride_h + i),
                              .tap = graft_sym_range_add(r->s, range, kernel),
                              .kernel = kernel,
                              .dilation = dilated ? attr(r, GRAFT_ATTR_max_pool_dilation_h + i)
                                                  : graft_sym_int(r->s, 1),
                              .before = attr(r, GRAFT_ATTR_max_pool_pad_top + i),
                              .size = in_shape(r, 0)->dims[2 + i]};
    return guard_window(r, range, &axis);
}

/* The taps of a window that lie inside the input, along one axis. */
static Z3_ast count_taps(const reader *r, uint32_t i)
{
    Z3_ast kernel = attr(r, GRAFT_ATTR_max_pool_kernel_h + i);
    if (choice(r, GRAFT_ATTR_avg_pool_count_pad) == 1) {
        return graft_sym_real(r->s, kernel);
    }
    graft_sym_range range = graft_sym_range_open(r->s);
    (void)pool_window(r, &range, i);
    Z3_ast count = graft_sym_sum(r->s, r->facts, &range, r->s->term.one);
    if (r->read->fact_count < GRAFT_LIMIT(CONDITIONS) && r->s->plain == NULL) {
        r->read->facts[r->read->fact_count++] = (graft_sym_fact){
            .holds = Z3_mk_lt(r->s->z3, r->s->term.zero, count), .shape = r->symbolic->shapes[0]};
    }
    return count;
}

/* The mean of the bits in a window: they are divided once, by how many there are or, with
 * `count_pad`, by the kernel's size, which is the same where nothing is left out. */
static Z3_ast average_bits(const reader *r, const graft_sym_range *range, Z3_ast body)
{
    bool whole = Z3_get_bool_value(r->s->z3, range->guard) == Z3_L_TRUE;
    if (whole || choice(r, GRAFT_ATTR_avg_pool_count_pad) == 0) {
        return mean_over(r, range, body);
    }
    Z3_ast count = graft_sym_mul(r->s, range->sizes[0], range->sizes[1]);
    return compute(r, GRAFT_OP_div, sum_over(r, range, body), graft_sym_bits_size(r->s, count));
}

static Z3_ast read_pool(const reader *r)
{
    graft_sym *s = r->s;
    graft_sym_range range = graft_sym_range_open(s);
    Z3_ast index[4] = {formals(r)[0], formals(r)[1]};
    index[2] = pool_window(r, &range, 0);
    index[3] = pool_window(r, &range, 1);
    Z3_ast body = in_folded(r, 0, index, &range);
    if (r->node->op == GRAFT_OP_max_pool) {
        return max_over(r, &range, body);
    }
    if (s->bits != NULL) {
        return average_bits(r, &range, body);
    }
    Z3_ast total = sum_over(r, &range, body);
    return divide_by_count(r, divide_by_count(r, total, count_taps(r, 0)), count_taps(r, 1));
}

/* The range over the axes whose bit is set; `index` gets the index into the input. */
static graft_sym_range reduced_range(const reader *r, uint32_t axes, bool keep, Z3_ast *index)
{
    graft_sym_range range = graft_sym_range_open(r->s);
    uint32_t to = 0;
    for (uint32_t i = 0; i < in_shape(r, 0)->rank; i++) {
        bool reduced = (axes >> i & 1u) != 0;
        index[i] =
            reduced ? graft_sym_range_add(r->s, &range, in_shape(r, 0)->dims[i]) : formals(r)[to];
        to += !reduced || keep ? 1 : 0;
    }
    return range;
}

static Z3_ast read_reduction(const reader *r)
{
    bool global = r->node->op == GRAFT_OP_global_avg_pool;
    uint32_t axes = global ? 12 : (uint32_t)choice(r, GRAFT_ATTR_reduce_mean_axes);
    bool keep = global || choice(r, GRAFT_ATTR_reduce_mean_keep) == 1;
    Z3_ast index[GRAFT_MAX_RANK];
    graft_sym_range range = reduced_range(r, axes, keep, index);
    Z3_ast body = in_folded(r, 0, index, &range);
    switch (r->node->op) {
    case GRAFT_OP_reduce_max:
        return max_over(r, &range, body);
    case GRAFT_OP_reduce_sum:
        return sum_over(r, &range, body);
    default:
        return mean_over(r, &range, body);
    }
}

typedef Z3_ast (*folder)(const reader *r, const graft_sym_range *range, Z3_ast body);

/* The fold along an axis of a value that is made of input 0 at the formals. */
static Z3_ast fold_along(const reader *r, uint32_t axis, Z3_ast value, folder fold)
{
    graft_sym_range range = graft_sym_range_open(r->s);
    Z3_ast index[GRAFT_MAX_RANK];
    memcpy((void *)index, (const void *)formals(r), sizeof index);
    index[axis] = graft_sym_range_add(r->s, &range, r->symbolic->shapes[0].dims[axis]);
    pass_conditions(r, 0, &(places){.index = index, .range = &range});
    return fold(r, &range, graft_sym_read(r->s, value, r->symbolic->shapes[0].rank, index));
}

static Z3_ast read_softmax(const reader *r)
{
    uint32_t axis = (uint32_t)choice(r, GRAFT_ATTR_softmax_axis);
    Z3_ast x = in_at(r, 0, formals(r));
    if (r->s->bits != NULL) {
        Z3_ast largest = fold_along(r, axis, x, max_over);
        Z3_ast shift = graft_sym_bits_apply(r->s->bits, GRAFT_SYM_BITS_SHIFT, largest, NULL);
        x = compute(r, GRAFT_OP_sub, x, shift);
    }
    Z3_ast power = compute(r, GRAFT_OP_exp, x, NULL);
    Z3_ast total = fold_along(r, axis, power, sum_over);
    return compute(r, GRAFT_OP_div, power, total);
}

static Z3_ast read_layer_norm(const reader *r)
{
    uint32_t axis = r->symbolic->shapes[0].rank - 1;
    Z3_ast x = in_at(r, 0, formals(r));
    Z3_ast mean = fold_along(r, axis, x, mean_over);
    Z3_ast centred = graft_sym_normal(r->s, compute(r, GRAFT_OP_sub, x, mean));
    Z3_ast variance = fold_along(r, axis, multiply(r, centred, centred), mean_over);
    Z3_ast epsilon = float_attr(r, GRAFT_ATTR_layer_norm_epsilon);
    Z3_ast inner = graft_sym_normal(r->s, add(r, variance, epsilon));
    Z3_ast deviation = compute(r, GRAFT_OP_sqrt, inner, NULL);
    Z3_ast scaled =
        multiply(r, compute(r, GRAFT_OP_div, centred, deviation), in_at(r, 1, &formals(r)[axis]));
    return add(r, scaled, in_at(r, 2, &formals(r)[axis]));
}

/* ------------------------------------------------------------------- whole */

static Z3_ast read_node(const reader *r, uint32_t output)
{
    switch (r->node->op) {
    case GRAFT_OP_conv:
    case GRAFT_OP_conv_bias:
    case GRAFT_OP_conv_bias_add:
        return read_conv(r);
    case GRAFT_OP_matmul:
    case GRAFT_OP_matmul_bias:
        return read_matmul(r);
    case GRAFT_OP_scale_shift:
        return read_scale_shift(r);
    case GRAFT_OP_concat:
        return read_concat(r);
    case GRAFT_OP_split:
        return read_moved(r, (uint32_t)choice(r, GRAFT_ATTR_split_axis),
                          output == 0 ? graft_sym_int(r->s, 0) : attr(r, GRAFT_ATTR_split_at));
    case GRAFT_OP_slice:
        return read_moved(r, (uint32_t)choice(r, GRAFT_ATTR_slice_axis),
                          attr(r, GRAFT_ATTR_slice_start));
    case GRAFT_OP_pad:
        return read_pad(r);
    case GRAFT_OP_transpose:
        return read_transpose(r);
    case GRAFT_OP_reshape:
        return read_reshape(r);
    case GRAFT_OP_max_pool:
    case GRAFT_OP_avg_pool:
        return read_pool(r);
    case GRAFT_OP_global_avg_pool:
    case GRAFT_OP_reduce_mean:
    case GRAFT_OP_reduce_sum:
    case GRAFT_OP_reduce_max:
        return read_reduction(r);
    case GRAFT_OP_softmax:
        return read_softmax(r);
    case GRAFT_OP_layer_norm:
        return read_layer_norm(r);
    case GRAFT_OP_fill:
        return float_attr(r, GRAFT_ATTR_fill_value);
    default:
        return read_elementwise(r);
    }
}

typedef struct {
    const graft_sym *s;
    bool found;
} value_search;

static bool visit_value(void *context, Z3_ast term)
{
    value_search *v = context;
    v->found = v->found || graft_sym_is_element(v->s, term) ||
               graft_sym_fold_kind(v->s, term) != GRAFT_SYM_FOLD_COUNT;
    return !v->found;
}

/* Whether a condition is about elements, and not about sizes and attributes alone. */
static bool is_about_values(const graft_sym *s, Z3_ast condition)
{
    value_search v = {.s = s};
    graft_sym_walk(s, condition, visit_value, &v);
    return v.found;
}

/* Takes note of what the node's own divisions and roots ask, as far as that does not follow from
 * the sizes. */
static void note_conditions(const reader *r)
{
    graft_sym *s = r->s;
    uint32_t count = Z3_ast_vector_size(s->z3, s->term.domain);
    for (uint32_t i = 0; i < count; i++) {
        Z3_ast holds = Z3_ast_vector_get(s->z3, s->term.domain, i);
        const graft_sym_condition c = {.holds = holds,
                                       .is_root = graft_sym_kind(s, holds) != Z3_OP_NOT};
        if (is_about_values(s, holds) || !graft_sym_holds(s, r->facts, holds)) {
            add_condition(r, &c);
        }
    }
    graft_term_forget(&s->term);
}

static void declare_elements(graft_sym *s, const graft_sym_instance *instance)
{
    for (uint32_t v = 0; v < instance->rule->var_count; v++) {
        Z3_sort domain[GRAFT_MAX_RANK];
        char name[GRAFT_ROOM_NAME];
        (void)snprintf(name, sizeof name, "x%" PRIu32, v);
        for (uint32_t i = 0; i < instance->vars[v].rank; i++) {
            domain[i] = s->integer;
        }
        s->elements[v] = Z3_mk_func_decl(s->z3, Z3_mk_string_symbol(s->z3, name),
                                         instance->vars[v].rank, domain, s->term.real);
    }
}

bool graft_sym_read_side(graft_sym *s, const graft_sym_instance *instance, uint32_t side,
                         graft_sym_side *result)
{
    const graft_pattern *pattern = graft_sym_pattern(instance->rule, side);
    memset((void *)result, 0, sizeof *result);
    declare_elements(s, instance);
    graft_term_forget(&s->term);
    s->bound = 0;
    for (uint32_t k = 0; k < pattern->node_count; k++) {
        uint32_t n = instance->order[side][k];
        const graft_sym_node *symbolic = &instance->nodes[side][n];
        for (uint32_t o = 0; o < graft_op(pattern->nodes[n].op)->output_count; o++) {
            graft_facts room[GRAFT_MAX_RANK];
            const graft_facts *facts = graft_sym_within(s, &symbolic->shapes[o], room);
            graft_sym_conditions *conditions = &result->conditions[n][o];
            conditions->items = GRAFT_NEW(s->env->unit, graft_sym_condition, GRAFT_ROOM_CONDITIONS);
            const reader r = {.s = s,
                              .instance = instance,
                              .read = result,
                              .node = &pattern->nodes[n],
                              .symbolic = symbolic,
                              .facts = facts,
                              .conditions = conditions,
                              .side = side};
            s->splits = 0;
            s->fresh = 0; /* No symbol of the kind is in use between nodes. */
            result->values[n][o] = read_node(&r, o);
            if (s->plain != NULL) {
                result->values[n][o] = graft_sym_plain_value(
                    s, side, n, o, symbolic->shapes[o].rank, result->values[n][o]);
            }
            note_conditions(&r);
        }
    }
    return s->refusal == NULL;
}

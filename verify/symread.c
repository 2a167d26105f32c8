/* symread.c - see symread.h. */
#include "verify/symread.h"

#include "verify/symassume.h"
#include "verify/symfold.h"

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

/* Input i at an index. */
static Z3_ast in_at(const reader *r, uint32_t i, const Z3_ast *index)
{
    Z3_ast value = graft_sym_operand(r->s, r->instance, r->side, r->read, r->node->inputs[i]);
    return graft_sym_read(r->s, value, in_shape(r, i)->rank, index);
}

static Z3_ast attr(const reader *r, uint32_t i) { return r->symbolic->attrs[i].term; }

static int32_t choice(const reader *r, uint32_t i) { return r->symbolic->attrs[i].value; }

static const Z3_ast *formals(const reader *r) { return r->s->formals; }

/* ----------------------------------------------------------------- arithmetic */

/* An elementwise operator without attributes, on scalars. */
static Z3_ast compute(const reader *r, uint32_t op, Z3_ast a, Z3_ast b)
{
    static const int32_t attrs[GRAFT_MAX_ATTRS] = {0};
    const graft_shape scalars[3] = {
        {.dtype = GRAFT_DTYPE_F32}, {.dtype = GRAFT_DTYPE_F32}, {.dtype = GRAFT_DTYPE_F32}};
    const graft_call call = {attrs, scalars, &scalars[2]};
    const Z3_ast *in[2] = {&a, &b};
    Z3_ast result = NULL;
    Z3_ast *out[1] = {&result};
    graft_term_run(&r->s->term, op, &call, in, out);
    return result;
}

static Z3_ast number(const reader *r, int value)
{
    return Z3_mk_int(r->s->z3, value, r->s->term.real);
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
    x = low->infinite == 0 ? compute(r, GRAFT_OP_max, x, low->term) : x;
    return high->infinite == 0 ? compute(r, GRAFT_OP_min, x, high->term) : x;
}

static Z3_ast leaky_relu(const reader *r, Z3_ast x)
{
    Z3_context z3 = r->s->z3;
    Z3_ast slope = attr(r, GRAFT_ATTR_leaky_relu_slope);
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

/* Input i at the index that broadcasting assigns to `index` of the output, `kept` last axes apart,
 * whose index is `last`. */
static Z3_ast in_broadcast(const reader *r, uint32_t i, uint32_t kept, const Z3_ast *last)
{
    const graft_sym_shape *in = in_shape(r, i);
    const graft_sym_shape *out = &r->symbolic->shapes[0];
    Z3_ast index[GRAFT_MAX_RANK];
    for (uint32_t axis = 0; axis < in->rank; axis++) {
        uint32_t to = axis + out->rank - in->rank;
        if (in->rank - axis <= kept) {
            index[axis] = last[kept - (in->rank - axis)];
        } else if (in->dims[axis] == out->dims[to]) {
            index[axis] = formals(r)[to];
        } else {
            index[axis] = graft_sym_at(r->s, in->dims[axis], formals(r)[to]);
        }
    }
    return in_at(r, i, index);
}

static Z3_ast read_elementwise(const reader *r)
{
    Z3_ast a = in_broadcast(r, 0, 0, NULL);
    switch (r->node->op) {
    case GRAFT_OP_clip:
        return clamp(r, a);
    case GRAFT_OP_leaky_relu:
        return leaky_relu(r, a);
    default:
        break;
    }
    bool binary = graft_op(r->node->op)->input_count == 2;
    return compute(r, r->node->op, a, binary ? in_broadcast(r, 1, 0, NULL) : NULL);
}

/* -------------------------------------------------------------- data movement */

/* Input i at the formals, but for one axis. */
static Z3_ast in_shifted(const reader *r, uint32_t i, uint32_t axis, Z3_ast at)
{
    Z3_ast index[GRAFT_MAX_RANK];
    memcpy((void *)index, (const void *)formals(r), sizeof index);
    index[axis] = at;
    return in_at(r, i, index);
}

static Z3_ast read_concat(const reader *r)
{
    graft_sym *s = r->s;
    uint32_t axis = (uint32_t)choice(r, GRAFT_ATTR_concat_axis);
    Z3_ast q = formals(r)[axis];
    Z3_ast size = in_shape(r, 0)->dims[axis];
    return Z3_mk_ite(s->z3, Z3_mk_lt(s->z3, q, size), in_at(r, 0, formals(r)),
                     in_shifted(r, 1, axis, graft_sym_sub(s, q, size)));
}

static Z3_ast read_moved(const reader *r, uint32_t axis, Z3_ast by)
{
    return in_shifted(r, 0, axis, graft_sym_add(r->s, formals(r)[axis], by));
}

static Z3_ast read_pad(const reader *r)
{
    graft_sym *s = r->s;
    uint32_t axis = (uint32_t)choice(r, GRAFT_ATTR_pad_axis);
    Z3_ast at = graft_sym_sub(s, formals(r)[axis], attr(r, GRAFT_ATTR_pad_before));
    Z3_ast value = attr(r, GRAFT_ATTR_pad_value);
    Z3_ast inside = in_shifted(r, 0, axis, at);
    Z3_ast low = Z3_mk_le(s->z3, graft_sym_int(s, 0), at);
    Z3_ast high = Z3_mk_lt(s->z3, at, in_shape(r, 0)->dims[axis]);
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
        if (!graft_sym_is_number(s, shape->dims[i], 1)) {
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
    for (uint32_t i = 0; i < in->rank; i++) {
        index[i] = graft_sym_int(r->s, 0);
    }
    for (; first < from_end && first < to_end && in->dims[from[first]] == out->dims[to[first]];
         first++) {
        index[from[first]] = formals(r)[to[first]];
    }
    while (from_end > first && to_end > first &&
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
    Z3_ast body = multiply(r, in_broadcast(r, 0, 2, row), in_broadcast(r, 1, 2, column));
    Z3_ast sum = graft_sym_sum(r->s, r->facts, &range, body);
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
    return graft_sym_is_number(s, w->size, 1) ? graft_sym_int(s, 0) : at;
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
    Z3_ast body = multiply(r, in_at(r, 0, image), in_at(r, 1, filter));
    Z3_ast sum = graft_sym_sum(s, r->facts, &range, body);
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
    if (r->read->condition_count < GRAFT_SYM_CONDITIONS_MOST) {
        r->read->conditions[r->read->condition_count++] =
            (graft_sym_condition){.holds = Z3_mk_lt(r->s->z3, r->s->term.zero, count),
                                  .shape = r->symbolic->shapes[0],
                                  .is_fact = true};
    }
    return count;
}

/* A quotient by a number that shape inference makes positive. */
static Z3_ast divide_by_count(const reader *r, Z3_ast total, Z3_ast count)
{
    uint32_t known = Z3_ast_vector_size(r->s->z3, r->s->term.domain);
    Z3_ast quotient = compute(r, GRAFT_OP_div, total, count);
    Z3_ast_vector_resize(r->s->z3, r->s->term.domain, known);
    return graft_sym_normal(r->s, quotient);
}

static Z3_ast read_pool(const reader *r)
{
    graft_sym *s = r->s;
    graft_sym_range range = graft_sym_range_open(s);
    Z3_ast index[4] = {formals(r)[0], formals(r)[1]};
    index[2] = pool_window(r, &range, 0);
    index[3] = pool_window(r, &range, 1);
    Z3_ast body = in_at(r, 0, index);
    if (r->node->op == GRAFT_OP_max_pool) {
        return graft_sym_max(s, r->facts, &range, body);
    }
    Z3_ast total = graft_sym_sum(s, r->facts, &range, body);
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
    graft_sym *s = r->s;
    bool global = r->node->op == GRAFT_OP_global_avg_pool;
    uint32_t axes = global ? 12 : (uint32_t)choice(r, GRAFT_ATTR_reduce_mean_axes);
    bool keep = global || choice(r, GRAFT_ATTR_reduce_mean_keep) == 1;
    Z3_ast index[GRAFT_MAX_RANK];
    graft_sym_range range = reduced_range(r, axes, keep, index);
    Z3_ast body = in_at(r, 0, index);
    if (r->node->op == GRAFT_OP_reduce_max) {
        return graft_sym_max(s, r->facts, &range, body);
    }
    Z3_ast total = graft_sym_sum(s, r->facts, &range, body);
    for (uint32_t i = 0; i < range.count && r->node->op != GRAFT_OP_reduce_sum; i++) {
        total = divide_by_count(r, total, graft_sym_real(s, range.sizes[i]));
    }
    return total;
}

/* The sum of f(x) along an axis, f being exp or nothing. */
static Z3_ast sum_along(const reader *r, uint32_t axis, Z3_ast value)
{
    graft_sym_range range = graft_sym_range_open(r->s);
    Z3_ast index[GRAFT_MAX_RANK];
    memcpy((void *)index, (const void *)formals(r), sizeof index);
    index[axis] = graft_sym_range_add(r->s, &range, r->symbolic->shapes[0].dims[axis]);
    Z3_ast body = graft_sym_read(r->s, value, r->symbolic->shapes[0].rank, index);
    return graft_sym_sum(r->s, r->facts, &range, body);
}

static Z3_ast read_softmax(const reader *r)
{
    Z3_ast power = compute(r, GRAFT_OP_exp, in_at(r, 0, formals(r)), NULL);
    Z3_ast total = sum_along(r, (uint32_t)choice(r, GRAFT_ATTR_softmax_axis), power);
    return compute(r, GRAFT_OP_div, power, total);
}

static Z3_ast read_layer_norm(const reader *r)
{
    uint32_t axis = r->symbolic->shapes[0].rank - 1;
    Z3_ast size = graft_sym_real(r->s, r->symbolic->shapes[0].dims[axis]);
    Z3_ast x = in_at(r, 0, formals(r));
    Z3_ast mean = divide_by_count(r, sum_along(r, axis, x), size);
    Z3_ast centred = graft_sym_normal(r->s, compute(r, GRAFT_OP_sub, x, mean));
    Z3_ast squares = sum_along(r, axis, multiply(r, centred, centred));
    Z3_ast variance = divide_by_count(r, squares, size);
    Z3_ast inner = graft_sym_normal(r->s, add(r, variance, attr(r, GRAFT_ATTR_layer_norm_epsilon)));
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
        return attr(r, GRAFT_ATTR_fill_value);
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

/* Conditions that do not follow from the sizes. */
static bool note_conditions(graft_sym *s, const graft_sym_shape *shape, const graft_facts *facts,
                            graft_sym_side *side)
{
    uint32_t count = Z3_ast_vector_size(s->z3, s->term.domain);
    for (uint32_t i = 0; i < count; i++) {
        Z3_ast condition = Z3_ast_vector_get(s->z3, s->term.domain, i);
        if (!is_about_values(s, condition) && graft_sym_holds(s, facts, condition)) {
            continue;
        }
        if (side->condition_count == GRAFT_SYM_CONDITIONS_MOST) {
            return false;
        }
        side->conditions[side->condition_count++] =
            (graft_sym_condition){.holds = condition, .shape = *shape};
    }
    graft_term_forget(&s->term);
    return true;
}

static void declare_elements(graft_sym *s, const graft_sym_instance *instance)
{
    for (uint32_t v = 0; v < instance->rule->var_count; v++) {
        Z3_sort domain[GRAFT_MAX_RANK];
        char name[24];
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
    memset(result, 0, sizeof *result);
    declare_elements(s, instance);
    graft_term_forget(&s->term);
    for (uint32_t k = 0; k < pattern->node_count; k++) {
        uint32_t n = instance->order[side][k];
        const graft_sym_node *symbolic = &instance->nodes[side][n];
        for (uint32_t o = 0; o < graft_op(pattern->nodes[n].op)->output_count; o++) {
            graft_facts room[GRAFT_MAX_RANK];
            const graft_facts *facts = graft_sym_within(s, &symbolic->shapes[o], room);
            reader r = {s, instance, result, &pattern->nodes[n], symbolic, facts, side};
            s->splits = 0;
            s->fresh = 0; /* No symbol of the kind is in use between nodes. */
            result->values[n][o] = read_node(&r, o);
            if (!note_conditions(s, &symbolic->shapes[o], facts, result)) {
                return false;
            }
        }
    }
    return true;
}

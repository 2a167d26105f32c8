/* proposal.c - see proposal.h: one function per operator, shared where operators are alike. */
#include "tests/support/proposal.h"

#include "graph/base/bits.h"

#include <string.h>

int32_t proposal_between(graft_rng *rng, int32_t least, int32_t most)
{
    return most <= least ? least
                         : least + (int32_t)graft_rng_below(rng, (uint32_t)(most - least) + 1);
}

bool proposal_once_in(graft_rng *rng, uint32_t times) { return graft_rng_below(rng, times) == 0; }

static void shuffle(graft_rng *rng, int32_t *items, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t j = i + graft_rng_below(rng, count - i);
        int32_t kept = items[i];
        items[i] = items[j];
        items[j] = kept;
    }
}

/* ------------------------------------------------------------------ pieces */

static void put_attr(proposal *p, uint32_t attr, int32_t value)
{
    if (!p->attr_known[attr]) {
        p->attrs[attr] = value;
    }
}

static void put_float(proposal *p, uint32_t attr, float value)
{
    put_attr(p, attr, graft_bits_of_float(value));
}

/* An attribute, drawn or known; a rule's constants may be anything. */
static int32_t attr_within(const proposal *p, uint32_t attr, int32_t least, int32_t most)
{
    int32_t value = p->attrs[attr];
    return value < least ? least : value > most ? most : value;
}

static void put_shape(proposal *p, uint32_t operand, graft_shape shape)
{
    if (!p->in_known[operand]) {
        p->in[operand] = shape;
    }
}

static graft_shape draw_shape(graft_rng *rng, int32_t least_rank, int32_t most_rank)
{
    int32_t rank = proposal_between(rng, least_rank, most_rank);
    rank = rank < GRAFT_MAX_RANK ? rank : GRAFT_MAX_RANK;
    graft_shape shape = {.rank = (uint8_t)rank, .dtype = GRAFT_DTYPE_F32};
    int32_t room = PROPOSAL_ELEMENTS;
    bool square = proposal_once_in(rng, 4); /* Laws may hold for these alone. */
    for (int32_t i = 0; i < rank; i++) {
        int32_t most = room < 7 ? room : 7;
        shape.dims[i] = proposal_between(rng, 1, proposal_once_in(rng, 2) && most > 4 ? 4 : most);
        shape.dims[i] = square && shape.dims[0] <= most ? shape.dims[0] : shape.dims[i];
        room /= shape.dims[i];
    }
    return shape;
}

static graft_shape draw_any(graft_rng *rng)
{
    return proposal_once_in(rng, 8) ? draw_shape(rng, 0, 5) : draw_shape(rng, 1, 4);
}

static graft_shape vector_of(int32_t size)
{
    return (graft_shape){.dims = {size}, .rank = 1, .dtype = GRAFT_DTYPE_F32};
}

/* A multiple of 1/4 in -4..4; 0 and 1 often, because rules ask for them. */
static int32_t draw_float(graft_rng *rng)
{
    int32_t quarters = proposal_between(rng, -16, 16);
    uint32_t choice = graft_rng_below(rng, 4);
    return graft_bits_of_float(choice == 0 ? 0.0F : choice == 1 ? 1.0F : (float)quarters / 4.0F);
}

static int32_t draw_activation(graft_rng *rng)
{
    return proposal_once_in(rng, 2) ? GRAFT_ACT_NONE
                                    : proposal_between(rng, 0, GRAFT_ACT_COUNT - 1);
}

/* Operand 0 gets an axis `attr`: a known axis asks for rank enough, a known rank for an axis. */
static void put_axis(graft_rng *rng, proposal *p, uint32_t attr)
{
    if (p->attr_known[attr]) {
        int32_t rank = attr_within(p, attr, 0, GRAFT_MAX_RANK - 1) + 1;
        put_shape(p, 0, draw_shape(rng, rank, rank < 4 ? 4 : rank));
        return;
    }
    put_shape(p, 0, draw_shape(rng, 1, 4));
    put_attr(p, attr, proposal_between(rng, 0, (int32_t)p->in[0].rank - 1));
}

static int32_t size_at(const proposal *p, uint32_t operand, uint32_t axis)
{
    return axis < GRAFT_MAX_RANK ? p->in[operand].dims[axis] : 0;
}

/* ------------------------------------------------------------- elementwise */

static void propose_any(graft_rng *rng, proposal *p) { put_shape(p, 0, draw_any(rng)); }

static void propose_clip(graft_rng *rng, proposal *p)
{
    int32_t low = proposal_between(rng, -8, 4);
    int32_t high = proposal_between(rng, low, 12);
    bool no_low = proposal_once_in(rng, 4);
    bool no_high = proposal_once_in(rng, 4);
    propose_any(rng, p);
    put_float(p, GRAFT_ATTR_clip_low, no_low ? -__builtin_inff() : (float)low / 2.0F);
    put_float(p, GRAFT_ATTR_clip_high, no_high ? __builtin_inff() : (float)high / 2.0F);
}

static void propose_leaky_relu(graft_rng *rng, proposal *p)
{
    propose_any(rng, p);
    put_float(p, GRAFT_ATTR_leaky_relu_slope, (float)proposal_between(rng, 0, 8) / 4.0F);
}

/* Drops the first `count` axes. */
static void drop_axes(graft_shape *shape, uint32_t count)
{
    memmove(shape->dims, shape->dims + count, sizeof(int32_t) * (shape->rank - count));
    memset(shape->dims + shape->rank - count, 0, sizeof(int32_t) * count);
    shape->rank = (uint8_t)(shape->rank - count);
}

/* A shape that broadcasts with `shape` in all but the last `kept` axes, which it shares. */
static graft_shape loosen_shape(graft_rng *rng, graft_shape shape, uint32_t kept)
{
    if (proposal_once_in(rng, 2)) {
        return shape;
    }
    for (uint32_t i = 0; i + kept < shape.rank; i++) {
        if (shape.dims[i] == 1) {
            shape.dims[i] = proposal_between(rng, 1, 3);
        } else if (proposal_once_in(rng, 2)) {
            shape.dims[i] = 1;
        }
    }
    if (proposal_once_in(rng, 2)) {
        drop_axes(&shape, graft_rng_below(rng, shape.rank - kept + 1u));
    }
    return shape;
}

static void propose_pair(graft_rng *rng, proposal *p)
{
    if (p->in_known[1]) {
        put_shape(p, 0, loosen_shape(rng, p->in[1], 0));
        return;
    }
    propose_any(rng, p);
    put_shape(p, 1, loosen_shape(rng, p->in[0], 0));
}

/* ---------------------------------------------------- convolution, matmul */

/* A divisor of both, mostly 1. */
static int32_t draw_groups(graft_rng *rng, int32_t a, int32_t b)
{
    int32_t groups = proposal_once_in(rng, 2) ? 1 : proposal_between(rng, 1, 6);
    return a % groups == 0 && b % groups == 0 ? groups : 1;
}

/* The window along one axis. A third of the windows keep the size. */
static void put_window(graft_rng *rng, proposal *p, uint32_t i, int32_t *kernel)
{
    bool plain = proposal_once_in(rng, 2);
    if (*kernel == 0) {
        *kernel = proposal_between(rng, 1, 3);
    }
    bool same = plain && proposal_once_in(rng, 2);
    int32_t around = same ? (*kernel - 1) / 2 : 0;
    put_attr(p, GRAFT_ATTR_conv_stride_h + i, plain ? 1 : proposal_between(rng, 1, 3));
    put_attr(p, GRAFT_ATTR_conv_dilation_h + i, plain ? 1 : proposal_between(rng, 1, 3));
    put_attr(p, GRAFT_ATTR_conv_pad_top + i, plain ? around : proposal_between(rng, 0, 2));
    put_attr(p, GRAFT_ATTR_conv_pad_bottom + i, plain ? around : proposal_between(rng, 0, 2));
}

static graft_shape draw_image(graft_rng *rng)
{
    graft_shape shape = draw_shape(rng, 4, 4);
    shape.dims[0] = proposal_once_in(rng, 3) ? 2 : 1;
    for (int32_t i = 1; i < 4; i++) {
        shape.dims[i] = proposal_between(rng, 1, i == 1 ? 6 : 5);
    }
    return shape;
}

/* A filter that fits the image in[0], which is known or drawn. */
static graft_shape draw_filter(graft_rng *rng, proposal *p)
{
    graft_shape filter = {.rank = 4, .dtype = GRAFT_DTYPE_F32};
    int32_t channels = size_at(p, 0, 1);
    bool depthwise = proposal_once_in(rng, 6);
    filter.dims[0] = proposal_between(rng, 1, 4);
    if (p->in_known[2] && p->in[2].rank == 1) {
        filter.dims[0] = size_at(p, 2, 0);
    } else if (depthwise) {
        filter.dims[0] = channels;
    }
    int32_t groups = depthwise ? channels : draw_groups(rng, channels, filter.dims[0]);
    put_attr(p, GRAFT_ATTR_conv_groups, groups);
    groups = attr_within(p, GRAFT_ATTR_conv_groups, 1, PROPOSAL_ELEMENTS);
    filter.dims[1] = channels >= groups ? channels / groups : 1;
    if (!p->in_known[2] && filter.dims[0] % groups != 0) {
        filter.dims[0] = groups * proposal_between(rng, 1, 2);
    }
    return filter;
}

static void propose_conv(graft_rng *rng, proposal *p)
{
    int32_t kernels[2] = {0, 0};
    if (p->in_known[1] && p->in[1].rank == 4) {
        graft_shape image = draw_image(rng);
        int32_t groups = draw_groups(rng, 0, size_at(p, 1, 0));
        groups = p->in_known[0] ? size_at(p, 0, 1) / size_at(p, 1, 1) : groups;
        put_attr(p, GRAFT_ATTR_conv_groups, groups > 0 ? groups : 1);
        groups = attr_within(p, GRAFT_ATTR_conv_groups, 1, PROPOSAL_ELEMENTS);
        image.dims[1] = size_at(p, 1, 1) * groups;
        put_shape(p, 0, image);
        kernels[0] = size_at(p, 1, 2);
        kernels[1] = size_at(p, 1, 3);
    } else {
        put_shape(p, 0, draw_image(rng));
        put_shape(p, 1, draw_filter(rng, p));
    }
    for (uint32_t i = 0; i < 2; i++) {
        put_window(rng, p, i, &kernels[i]);
        if (!p->in_known[1]) {
            p->in[1].dims[2 + i] = kernels[i];
        }
    }
    put_shape(p, 2, vector_of(size_at(p, 1, 0)));
}

/* A residual that is known first: an image and a filter that give its shape. */
static void propose_backwards(graft_rng *rng, proposal *p)
{
    const graft_shape *residual = &p->in[3];
    graft_shape image = *residual;
    graft_shape filter = *residual;
    int32_t kernel = proposal_once_in(rng, 2) ? 1 : 3;
    for (uint32_t i = 0; i < 2; i++) {
        put_attr(p, GRAFT_ATTR_conv_stride_h + i, 1);
        put_attr(p, GRAFT_ATTR_conv_dilation_h + i, 1);
        put_attr(p, GRAFT_ATTR_conv_pad_top + i, kernel / 2);
        put_attr(p, GRAFT_ATTR_conv_pad_bottom + i, kernel / 2);
        filter.dims[2 + i] = kernel;
    }
    put_attr(p, GRAFT_ATTR_conv_groups, 1);
    image.dims[1] = proposal_between(rng, 1, 4);
    put_shape(p, 0, image);
    filter.dims[0] = residual->dims[1];
    filter.dims[1] = size_at(p, 0, 1);
    put_shape(p, 1, filter);
    put_shape(p, 2, vector_of(residual->dims[1]));
}

static void propose_conv_bias(graft_rng *rng, proposal *p)
{
    put_attr(p, GRAFT_ATTR_conv_bias_activation, draw_activation(rng));
    propose_conv(rng, p);
}

static void propose_conv_bias_add(graft_rng *rng, proposal *p)
{
    if (p->in_known[3] && !p->in_known[0] && !p->in_known[1] && p->in[3].rank == 4) {
        put_attr(p, GRAFT_ATTR_conv_bias_add_activation, draw_activation(rng));
        propose_backwards(rng, p);
        return;
    }
    propose_conv_bias(rng, p);
    int32_t attrs[GRAFT_MAX_ATTRS];
    graft_shape out[GRAFT_MAX_OUTPUTS];
    memcpy(attrs, p->attrs, sizeof attrs);
    if (graft_infer_shapes(GRAFT_OP_conv_bias, attrs, p->in, out) == GRAFT_OK) {
        put_shape(p, 3, out[0]);
    }
}

/* The other operand of a product: (..., m, n) for `shape` (..., n, p) when `first`, (..., n, p) for
 * `shape` (..., m, n) otherwise. */
static graft_shape draw_factor(graft_rng *rng, const graft_shape *shape, bool first)
{
    graft_shape factor = loosen_shape(rng, *shape, 2);
    int32_t inner = shape->dims[shape->rank - (first ? 2u : 1u)];
    int32_t size = proposal_once_in(rng, 3) ? inner : proposal_between(rng, 1, 5);
    factor.dims[factor.rank - 2u] = first ? size : inner;
    factor.dims[factor.rank - 1u] = first ? inner : size;
    return factor;
}

static void propose_matmul(graft_rng *rng, proposal *p)
{
    if (p->in_known[1] && p->in[1].rank >= 2) {
        put_shape(p, 0, draw_factor(rng, &p->in[1], true));
    } else {
        put_shape(p, 0, proposal_once_in(rng, 2) ? draw_shape(rng, 2, 2) : draw_shape(rng, 2, 4));
        if (p->in[0].rank >= 2) {
            put_shape(p, 1, draw_factor(rng, &p->in[0], false));
        }
        if (p->in_known[2] && !p->in_known[1] && p->in[1].rank >= 2 && p->in[2].rank == 1) {
            p->in[1].dims[p->in[1].rank - 1u] = size_at(p, 2, 0);
        }
    }
    put_shape(p, 2, vector_of(p->in[1].rank > 0 ? size_at(p, 1, p->in[1].rank - 1u) : 1));
}

static void propose_matmul_bias(graft_rng *rng, proposal *p)
{
    put_attr(p, GRAFT_ATTR_matmul_bias_activation, draw_activation(rng));
    propose_matmul(rng, p);
}

static void propose_scale_shift(graft_rng *rng, proposal *p)
{
    graft_shape shape = proposal_once_in(rng, 2) ? draw_image(rng) : draw_shape(rng, 2, 5);
    if (p->in_known[1] || p->in_known[2]) {
        shape.dims[1] = size_at(p, p->in_known[1] ? 1 : 2, 0);
    }
    put_shape(p, 0, shape);
    put_shape(p, 1, vector_of(size_at(p, 0, 1)));
    put_shape(p, 2, vector_of(size_at(p, 0, 1)));
}

/* ----------------------------------------------------------- data movement */

static void propose_concat(graft_rng *rng, proposal *p)
{
    uint32_t known = p->in_known[1] && !p->in_known[0] ? 1 : 0;
    if (known == 0) {
        put_axis(rng, p, GRAFT_ATTR_concat_axis);
    } else {
        put_attr(p, GRAFT_ATTR_concat_axis, proposal_between(rng, 0, (int32_t)p->in[1].rank - 1));
    }
    uint32_t axis = (uint32_t)p->attrs[GRAFT_ATTR_concat_axis];
    graft_shape other = p->in[known];
    if (axis < other.rank && proposal_once_in(rng, 2)) {
        other.dims[axis] = proposal_between(rng, 1, 4);
    }
    put_shape(p, 1 - known, other);
}

static void propose_split(graft_rng *rng, proposal *p)
{
    put_axis(rng, p, GRAFT_ATTR_split_axis);
    int32_t size = size_at(p, 0, (uint32_t)p->attrs[GRAFT_ATTR_split_axis]);
    put_attr(p, GRAFT_ATTR_split_at, proposal_between(rng, 1, size - 1));
}

static void propose_slice(graft_rng *rng, proposal *p)
{
    put_axis(rng, p, GRAFT_ATTR_slice_axis);
    int32_t size = size_at(p, 0, (uint32_t)p->attrs[GRAFT_ATTR_slice_axis]);
    int32_t start = proposal_once_in(rng, 3) ? 0 : proposal_between(rng, 0, size - 1);
    put_attr(p, GRAFT_ATTR_slice_start, start);
    start = attr_within(p, GRAFT_ATTR_slice_start, 0, size);
    put_attr(p, GRAFT_ATTR_slice_end,
             proposal_once_in(rng, 3) ? size : proposal_between(rng, start + 1, size));
}

static void propose_pad(graft_rng *rng, proposal *p)
{
    put_axis(rng, p, GRAFT_ATTR_pad_axis);
    put_attr(p, GRAFT_ATTR_pad_before, proposal_between(rng, 0, 2));
    put_attr(p, GRAFT_ATTR_pad_after, proposal_between(rng, 0, 2));
    put_attr(p, GRAFT_ATTR_pad_value, draw_float(rng));
}

static void propose_transpose(graft_rng *rng, proposal *p)
{
    int32_t axes[GRAFT_MAX_RANK] = {0};
    int32_t largest = 0; /* Of the axes that are known: they say the rank. */
    for (uint32_t i = 0; i < GRAFT_MAX_RANK; i++) {
        bool larger = p->attr_known[i] && p->attrs[i] > largest;
        largest = larger ? p->attrs[i] : largest;
    }
    put_shape(p, 0, largest > 0 ? draw_shape(rng, largest + 1, largest + 1) : draw_any(rng));
    for (int32_t i = 0; i < p->in[0].rank; i++) {
        axes[i] = i;
    }
    shuffle(rng, axes, p->in[0].rank);
    for (uint32_t i = 0; i < GRAFT_MAX_RANK; i++) {
        put_attr(p, i, axes[i]);
    }
}

enum { IMAGE_RANK = 4 };

/* The same sizes in another order, neighbours joined, axes of 1 added, as many as an image has or
 * one, or a flat tensor. */
static void propose_reshape(graft_rng *rng, proposal *p)
{
    propose_any(rng, p);
    int32_t dims[GRAFT_MAX_RANK] = {0};
    uint32_t rank = p->in[0].rank;
    memcpy(dims, p->in[0].dims, sizeof dims);
    switch (graft_rng_below(rng, 4)) {
    case 0:
        shuffle(rng, dims, rank);
        break;
    case 1:
        for (uint32_t i = 1; i < rank; i++) {
            dims[0] *= dims[i];
            dims[i] = 0;
        }
        break;
    case 2:
        if (rank < GRAFT_MAX_RANK) {
            bool fill = rank < IMAGE_RANK && proposal_once_in(rng, 2);
            for (uint32_t i = rank; i < (fill ? IMAGE_RANK : rank + 1); i++) {
                dims[i] = 1;
            }
            shuffle(rng, dims, fill ? IMAGE_RANK : rank + 1);
        }
        break;
    default:
        if (rank > 1) {
            dims[rank - 2] *= dims[rank - 1];
            dims[rank - 1] = 0;
        }
        break;
    }
    for (uint32_t i = 0; i < GRAFT_MAX_RANK; i++) {
        put_attr(p, i, dims[i]);
    }
}

/* ------------------------------------------------------- pools, reductions */

static void propose_pool(graft_rng *rng, proposal *p)
{
    put_shape(p, 0, draw_image(rng));
    for (uint32_t i = 0; i < 2; i++) {
        put_attr(p, GRAFT_ATTR_max_pool_kernel_h + i, proposal_between(rng, 1, 3));
        int32_t most = attr_within(p, GRAFT_ATTR_max_pool_kernel_h + i, 1, 7) - 1;
        put_attr(p, GRAFT_ATTR_max_pool_stride_h + i, proposal_between(rng, 1, 3));
        put_attr(p, GRAFT_ATTR_max_pool_pad_top + i, proposal_between(rng, 0, most));
        put_attr(p, GRAFT_ATTR_max_pool_pad_bottom + i, proposal_between(rng, 0, most));
    }
}

static void propose_max_pool(graft_rng *rng, proposal *p)
{
    for (uint32_t i = 0; i < 2; i++) {
        bool plain = proposal_once_in(rng, 2);
        put_attr(p, GRAFT_ATTR_max_pool_dilation_h + i, plain ? 1 : proposal_between(rng, 1, 3));
    }
    propose_pool(rng, p);
}

static void propose_avg_pool(graft_rng *rng, proposal *p)
{
    put_attr(p, GRAFT_ATTR_avg_pool_count_pad, proposal_between(rng, 0, 1));
    propose_pool(rng, p);
}

static void propose_global_avg_pool(graft_rng *rng, proposal *p)
{
    put_shape(p, 0, draw_image(rng));
}

static void propose_softmax(graft_rng *rng, proposal *p)
{
    put_axis(rng, p, GRAFT_ATTR_softmax_axis);
}

static void propose_reduce_mean(graft_rng *rng, proposal *p)
{
    int32_t rank = 1;
    while (p->attr_known[GRAFT_ATTR_reduce_mean_axes] &&
           (uint32_t)p->attrs[GRAFT_ATTR_reduce_mean_axes] >> rank > 0 && rank < GRAFT_MAX_RANK) {
        rank++;
    }
    put_shape(p, 0, draw_shape(rng, rank, rank > 4 ? rank : 4));
    put_attr(p, GRAFT_ATTR_reduce_mean_axes, proposal_between(rng, 1, (1 << p->in[0].rank) - 1));
    put_attr(p, GRAFT_ATTR_reduce_mean_keep, proposal_between(rng, 0, 1));
}

static void propose_fill(graft_rng *rng, proposal *p)
{
    graft_shape shape = draw_any(rng);
    put_attr(p, GRAFT_ATTR_fill_value, draw_float(rng));
    for (uint32_t i = 0; i < GRAFT_MAX_RANK; i++) {
        put_attr(p, GRAFT_ATTR_fill_dim_0 + i, shape.dims[i]);
    }
}

/* Operand 0 gets `shape` with a size at `axis` that the vectors after it share, whichever are known.
 * The only attribute is a positive number. */
static void put_norm(graft_rng *rng, proposal *p, graft_shape shape, uint32_t axis)
{
    int32_t size = proposal_between(rng, 1, 4);
    for (uint32_t i = 1; i < graft_op(p->op)->input_count; i++) {
        size = p->in_known[i] && p->in[i].rank == 1 ? p->in[i].dims[0] : size;
    }
    shape.dims[axis] = size;
    put_shape(p, 0, shape);
    axis = p->op == GRAFT_OP_instance_norm ? 1 : p->in[0].rank - 1u;
    for (uint32_t i = 1; i < graft_op(p->op)->input_count; i++) {
        put_shape(p, i, vector_of(size_at(p, 0, axis)));
    }
    put_float(p, 0, (float)proposal_between(rng, 1, 8) / 4.0F);
}

static void propose_layer_norm(graft_rng *rng, proposal *p)
{
    graft_shape shape = draw_shape(rng, 1, 4);
    put_norm(rng, p, shape, shape.rank - 1u);
}

static void propose_instance_norm(graft_rng *rng, proposal *p)
{
    put_norm(rng, p, draw_shape(rng, 3, 4), 1);
}

static void propose_cumsum(graft_rng *rng, proposal *p)
{
    put_axis(rng, p, GRAFT_ATTR_cumsum_axis);
    put_attr(p, GRAFT_ATTR_cumsum_exclusive, proposal_between(rng, 0, 1));
}

static void propose_repeat(graft_rng *rng, proposal *p)
{
    put_axis(rng, p, GRAFT_ATTR_repeat_axis);
    put_attr(p, GRAFT_ATTR_repeat_times, proposal_between(rng, 1, 3));
}

static void propose_pick(graft_rng *rng, proposal *p)
{
    propose_slice(rng, p); /* Its first attributes are the same. */
    put_attr(p, GRAFT_ATTR_pick_step, proposal_between(rng, 1, 3));
}

static void propose_conv_transpose(graft_rng *rng, proposal *p)
{
    graft_shape image = draw_image(rng);
    graft_shape filter = draw_image(rng);
    image.dims[1] = p->in_known[1] && p->in[1].rank == 4 ? p->in[1].dims[0] : image.dims[1];
    put_shape(p, 0, image);
    filter.dims[0] = size_at(p, 0, 1);
    put_shape(p, 1, filter);
    for (uint32_t i = 0; i < 2; i++) {
        put_attr(p, GRAFT_ATTR_conv_transpose_stride_h + i, proposal_between(rng, 1, 2));
        put_attr(p, GRAFT_ATTR_conv_transpose_pad_top + i, proposal_between(rng, 0, 1));
        put_attr(p, GRAFT_ATTR_conv_transpose_pad_bottom + i, proposal_between(rng, 0, 1));
        put_attr(p, GRAFT_ATTR_conv_transpose_extra_h + i, proposal_between(rng, 0, 1));
    }
}

/* Scales such that no quotient of eighths lies at a half. */
static void propose_quantise(graft_rng *rng, proposal *p)
{
    int32_t least = proposal_once_in(rng, 2) ? 0 : -128;
    propose_any(rng, p);
    put_float(p, GRAFT_ATTR_quantise_scale, 3.0F / (float)(8 << proposal_between(rng, 0, 7)));
    put_attr(p, GRAFT_ATTR_quantise_zero, proposal_between(rng, least, least + 255));
    put_attr(p, GRAFT_ATTR_quantise_least, least);
}

/* Its type is that of what it reads. */
static void propose_dequantise(graft_rng *rng, proposal *p)
{
    propose_quantise(rng, p);
    if (!p->in_known[0]) {
        bool sign = p->attrs[GRAFT_ATTR_quantise_least] != 0;
        p->in[0].dtype = sign ? GRAFT_DTYPE_I8 : GRAFT_DTYPE_U8;
    }
}

static void make_boolean(proposal *p)
{
    if (!p->in_known[0]) {
        p->in[0].dtype = GRAFT_DTYPE_BOOL;
    }
}

static void propose_logical_not(graft_rng *rng, proposal *p)
{
    propose_any(rng, p);
    make_boolean(p);
}

/* All of one shape, or two that are broadcast to the third's. */
static void propose_select(graft_rng *rng, proposal *p)
{
    propose_any(rng, p);
    for (uint32_t i = 0; i < 3; i++) {
        const graft_shape like = p->in[p->in_known[2] ? 2 : p->in_known[1] ? 1 : 0];
        graft_shape shape = i == 0 ? like : loosen_shape(rng, like, 0);
        shape.dtype = GRAFT_DTYPE_F32;
        put_shape(p, i, shape);
    }
    make_boolean(p);
}

static void propose_function(graft_rng *rng, proposal *p)
{
    propose_any(rng, p);
    for (uint32_t i = 0; i < graft_op(p->op)->attr_count; i++) {
        put_float(p, i, (float)proposal_between(rng, 1, 8) / 4.0F);
    }
}

/* --------------------------------------------------------------- the table */

#define propose_identity  propose_any
#define propose_relu      propose_any
#define propose_sigmoid   propose_any
#define propose_tanh      propose_any
#define propose_exp       propose_any
#define propose_sqrt      propose_any
#define propose_erf       propose_any
#define propose_gelu      propose_any
#define propose_add       propose_pair
#define propose_sub       propose_pair
#define propose_mul       propose_pair
#define propose_div       propose_pair
#define propose_max       propose_pair
#define propose_min       propose_pair
#define propose_less      propose_pair
#define propose_equal_to  propose_pair
#define propose_remainder propose_pair

#define propose_rms_norm    propose_layer_norm
#define propose_reduce_sum  propose_reduce_mean
#define propose_reduce_min  propose_reduce_mean
#define propose_log_softmax propose_softmax
#define propose_reverse     propose_softmax
#define propose_reduce_max  propose_reduce_mean

static void (*const proposals[GRAFT_OP_COUNT])(graft_rng *, proposal *) = {
#define OP(id, name, inputs, outputs, attributes, flags, onnx)         [GRAFT_OP_##name] = propose_##name,
#define FUNCTION(id, name, attributes, flags, work, since, onnx, body) [id] = propose_function,
#include "graft/operators.def"
};

void proposal_draw(graft_rng *rng, proposal *drawn) { proposals[drawn->op](rng, drawn); }

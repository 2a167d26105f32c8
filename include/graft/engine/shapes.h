/* shapes.h - which outputs an operator has: one function per row of operators.def.
 *
 * A shape function returns NULL and fills `out`, or returns the text of the check that failed.
 * Before it runs, every attribute is known to lie in its domain and every input to be a well-formed
 * binary32 tensor of at most INT32_MAX elements; sizes are computed in 64 bits, where nothing of
 * this can overflow. The number of operations is read from the same shapes. */
#ifndef GRAFT_ENGINE_SHAPES_H
#define GRAFT_ENGINE_SHAPES_H

static const char *const text_empty = "an output would be empty";
static const char *const text_large = "a tensor has more than INT32_MAX elements";
static const char *const text_axis = "the axis is not an axis of the input";
static const char *const text_image = "an input is not (batch, channel, height, width)";
static const char *const text_float = "a float attribute is not finite";

/* ------------------------------------------------------------------ shapes */

static uint64_t multiply_saturating(uint64_t a, uint64_t b)
{
    return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t graft_shape_elements(const graft_shape *shape)
{
    if (shape->rank > GRAFT_MAX_RANK) {
        return 0;
    }
    uint64_t count = 1;
    for (uint32_t i = 0; i < shape->rank; i++) {
        count = multiply_saturating(count, shape->dims[i] > 0 ? (uint64_t)shape->dims[i] : 0);
    }
    return count;
}

static uint64_t dtype_bytes(uint32_t dtype)
{
    switch (dtype) {
    case GRAFT_DTYPE_U8:
    case GRAFT_DTYPE_I8:
    case GRAFT_DTYPE_BOOL:
        return 1;
    case GRAFT_DTYPE_F16:
    case GRAFT_DTYPE_BF16:
        return 2;
    case GRAFT_DTYPE_F32:
    case GRAFT_DTYPE_I32:
        return 4;
    case GRAFT_DTYPE_I64:
    case GRAFT_DTYPE_F64:
        return 8;
    default:
        return 0;
    }
}

uint64_t graft_shape_bytes(const graft_shape *shape)
{
    return multiply_saturating(graft_shape_elements(shape), dtype_bytes(shape->dtype));
}

bool graft_shape_equal(const graft_shape *a, const graft_shape *b)
{
    bool equal = a->rank == b->rank && a->dtype == b->dtype;
    for (uint32_t i = 0; i < GRAFT_MAX_RANK; i++) {
        equal = equal && a->dims[i] == b->dims[i];
    }
    return equal;
}

static graft_shape empty_shape(uint32_t rank)
{
    graft_shape shape;
    for (uint32_t i = 0; i < GRAFT_MAX_RANK; i++) {
        shape.dims[i] = 0;
    }
    shape.rank = (uint8_t)rank;
    shape.dtype = GRAFT_DTYPE_F32;
    return shape;
}

static const char *put_dim(graft_shape *shape, uint32_t axis, int64_t size)
{
    if (size < 1) {
        return text_empty;
    }
    if (size > INT32_MAX) {
        return text_large;
    }
    shape->dims[axis] = (int32_t)size;
    return NULL;
}

/* The size of the axis that is `back` axes before the last one; 1 where the tensor has none. */
static int32_t dim_from_end(const graft_shape *shape, uint32_t back)
{
    return back < shape->rank ? shape->dims[shape->rank - 1u - back] : 1;
}

/* ----------------------------------------------------- several operators' */

static const char *shape_same(const int32_t *attrs, const graft_shape *in, graft_shape *out)
{
    (void)attrs;
    out[0] = in[0];
    return NULL;
}

/* Broadcasts all axes but the last `kept` ones, which `out` already has. */
static const char *broadcast_axes(const graft_shape *in, uint32_t kept, graft_shape *out)
{
    for (uint32_t back = kept; back < out->rank; back++) {
        int32_t a = dim_from_end(&in[0], back);
        int32_t b = dim_from_end(&in[1], back);
        if (a != b && a != 1 && b != 1) {
            return "the inputs' sizes do not broadcast";
        }
        out->dims[out->rank - 1u - back] = a == 1 ? b : a;
    }
    return NULL;
}

static const char *shape_broadcast(const int32_t *attrs, const graft_shape *in, graft_shape *out)
{
    (void)attrs;
    out[0] = empty_shape(in[0].rank > in[1].rank ? in[0].rank : in[1].rank);
    return broadcast_axes(in, 0, &out[0]);
}

/* A shape written as six attributes: sizes, then zeros. */
static const char *read_shape(const int32_t *dims, graft_shape *out)
{
    uint32_t rank = 0;
    while (rank < GRAFT_MAX_RANK && dims[rank] != 0) {
        rank++;
    }
    out[0] = empty_shape(rank);
    for (uint32_t i = 0; i < GRAFT_MAX_RANK; i++) {
        out[0].dims[i] = dims[i];
        if (i >= rank && dims[i] != 0) {
            return "a size follows a size of 0";
        }
    }
    return NULL;
}

/* Positions of a sliding window along an axis. */
static const char *slide_window(int64_t size, int64_t kernel, int64_t dilation, int64_t padding,
                                int64_t stride, int64_t *count)
{
    int64_t room = size + padding - (dilation * (kernel - 1) + 1);
    if (room < 0) {
        return "the window is larger than the padded input";
    }
    *count = room / stride + 1;
    return NULL;
}

/* Binary32 bits as an integer that compares as the number does; both zeros are 0. */
static int64_t order_float(int32_t bits)
{
    int64_t magnitude = bits & INT32_MAX;
    return bits < 0 ? -magnitude : magnitude;
}

static const int64_t float_infinity = 0x7f800000;

static bool is_finite_float(int32_t bits)
{
    int64_t key = order_float(bits);
    return -float_infinity < key && key < float_infinity;
}

/* ---------------------------------------------------- convolution, matmul */

static const char *shape_conv(const int32_t *attrs, const graft_shape *in, graft_shape *out)
{
    if (in[0].rank != 4 || in[1].rank != 4) {
        return text_image;
    }
    int32_t groups = attrs[GRAFT_ATTR_conv_groups];
    if ((int64_t)in[1].dims[1] * groups != in[0].dims[1]) {
        return "the input's channels are not groups times the filter's";
    }
    if (in[1].dims[0] % groups != 0) {
        return "the groups do not divide the filter's outputs";
    }
    out[0] = empty_shape(4);
    out[0].dims[0] = in[0].dims[0];
    out[0].dims[1] = in[1].dims[0];
    for (uint32_t i = 0; i < 2; i++) {
        int64_t padding =
            (int64_t)attrs[GRAFT_ATTR_conv_pad_top + i] + attrs[GRAFT_ATTR_conv_pad_bottom + i];
        int64_t count = 0;
        const char *why = slide_window(in[0].dims[2 + i], in[1].dims[2 + i],
                                       attrs[GRAFT_ATTR_conv_dilation_h + i], padding,
                                       attrs[GRAFT_ATTR_conv_stride_h + i], &count);
        why = why == NULL ? put_dim(&out[0], 2 + i, count) : why;
        if (why != NULL) {
            return why;
        }
    }
    return NULL;
}

static const char *check_vector(const graft_shape *vector, int32_t size)
{
    return vector->rank == 1 && vector->dims[0] == size
               ? NULL
               : "a vector does not have one element per channel";
}

/* The convolution's attributes come first, in the same order, in all its forms. */
static const char *shape_conv_bias(const int32_t *attrs, const graft_shape *in, graft_shape *out)
{
    const char *why = shape_conv(attrs, in, out);
    return why == NULL ? check_vector(&in[2], out[0].dims[1]) : why;
}

static const char *shape_conv_bias_add(const int32_t *attrs, const graft_shape *in,
                                       graft_shape *out)
{
    const char *why = shape_conv_bias(attrs, in, out);
    if (why == NULL && !graft_shape_equal(&in[3], &out[0])) {
        why = "the residual does not have the output's shape";
    }
    return why;
}

static const char *shape_matmul(const int32_t *attrs, const graft_shape *in, graft_shape *out)
{
    (void)attrs;
    if (in[0].rank < 2 || in[1].rank < 2) {
        return "an input has fewer than two axes";
    }
    if (dim_from_end(&in[0], 0) != dim_from_end(&in[1], 1)) {
        return "inner dimensions differ";
    }
    uint32_t rank = in[0].rank > in[1].rank ? in[0].rank : in[1].rank;
    out[0] = empty_shape(rank);
    out[0].dims[rank - 2] = dim_from_end(&in[0], 1);
    out[0].dims[rank - 1] = dim_from_end(&in[1], 0);
    return broadcast_axes(in, 2, &out[0]);
}

static const char *shape_matmul_bias(const int32_t *attrs, const graft_shape *in, graft_shape *out)
{
    const char *why = shape_matmul(attrs, in, out);
    return why == NULL ? check_vector(&in[2], dim_from_end(&out[0], 0)) : why;
}

static const char *shape_scale_shift(const int32_t *attrs, const graft_shape *in, graft_shape *out)
{
    (void)attrs;
    if (in[0].rank < 2) {
        return "the input has no channel axis";
    }
    const char *why = check_vector(&in[1], in[0].dims[1]);
    why = why == NULL ? check_vector(&in[2], in[0].dims[1]) : why;
    out[0] = in[0];
    return why;
}

/* ------------------------------------------------------------- elementwise */

/* Infinite bounds are no bounds. */
static const char *shape_clip(const int32_t *attrs, const graft_shape *in, graft_shape *out)
{
    int64_t low = order_float(attrs[GRAFT_ATTR_clip_low]);
    int64_t high = order_float(attrs[GRAFT_ATTR_clip_high]);
    if (low < -float_infinity || low >= float_infinity || high > float_infinity ||
        high <= -float_infinity) {
        return "a bound is not a number, or no number satisfies it";
    }
    if (low > high) {
        return "the lower bound is above the upper one";
    }
    return shape_same(attrs, in, out);
}

static const char *shape_leaky_relu(const int32_t *attrs, const graft_shape *in, graft_shape *out)
{
    int32_t slope = attrs[GRAFT_ATTR_leaky_relu_slope];
    if (!is_finite_float(slope)) {
        return text_float;
    }
    return order_float(slope) < 0 ? "the slope is negative" : shape_same(attrs, in, out);
}

/* ----------------------------------------------------------- data movement */

static const char *shape_concat(const int32_t *attrs, const graft_shape *in, graft_shape *out)
{
    uint32_t axis = (uint32_t)attrs[GRAFT_ATTR_concat_axis];
    if (axis >= in[0].rank || in[0].rank != in[1].rank) {
        return in[0].rank != in[1].rank ? "the inputs' ranks differ" : text_axis;
    }
    for (uint32_t i = 0; i < in[0].rank; i++) {
        if (i != axis && in[0].dims[i] != in[1].dims[i]) {
            return "the inputs differ in another axis";
        }
    }
    out[0] = in[0];
    return put_dim(&out[0], axis, (int64_t)in[0].dims[axis] + in[1].dims[axis]);
}

static const char *shape_split(const int32_t *attrs, const graft_shape *in, graft_shape *out)
{
    uint32_t axis = (uint32_t)attrs[GRAFT_ATTR_split_axis];
    int32_t at = attrs[GRAFT_ATTR_split_at];
    if (axis >= in[0].rank) {
        return text_axis;
    }
    if (at >= in[0].dims[axis]) {
        return "the split lies outside the axis";
    }
    out[0] = in[0];
    out[1] = in[0];
    out[0].dims[axis] = at;
    out[1].dims[axis] = in[0].dims[axis] - at;
    return NULL;
}

static const char *shape_slice(const int32_t *attrs, const graft_shape *in, graft_shape *out)
{
    uint32_t axis = (uint32_t)attrs[GRAFT_ATTR_slice_axis];
    int32_t start = attrs[GRAFT_ATTR_slice_start];
    int32_t end = attrs[GRAFT_ATTR_slice_end];
    if (axis >= in[0].rank) {
        return text_axis;
    }
    if (end > in[0].dims[axis]) {
        return "the slice ends outside the axis";
    }
    out[0] = in[0];
    return put_dim(&out[0], axis, (int64_t)end - start);
}

static const char *shape_pad(const int32_t *attrs, const graft_shape *in, graft_shape *out)
{
    uint32_t axis = (uint32_t)attrs[GRAFT_ATTR_pad_axis];
    if (axis >= in[0].rank) {
        return text_axis;
    }
    if (!is_finite_float(attrs[GRAFT_ATTR_pad_value])) {
        return text_float;
    }
    out[0] = in[0];
    return put_dim(&out[0], axis,
                   (int64_t)in[0].dims[axis] + attrs[GRAFT_ATTR_pad_before] +
                       attrs[GRAFT_ATTR_pad_after]);
}

static const char *shape_transpose(const int32_t *attrs, const graft_shape *in, graft_shape *out)
{
    uint32_t seen = 0;
    out[0] = empty_shape(in[0].rank);
    for (uint32_t i = 0; i < GRAFT_MAX_RANK; i++) {
        uint32_t axis = (uint32_t)attrs[GRAFT_ATTR_transpose_axis_0 + i];
        if (i >= in[0].rank) {
            if (axis != 0) {
                return "an axis past the rank is not 0";
            }
            continue;
        }
        if (axis >= in[0].rank || (seen & (1u << axis)) != 0) {
            return "the axes are not a permutation";
        }
        seen |= 1u << axis;
        out[0].dims[i] = in[0].dims[axis];
    }
    return NULL;
}

static const char *shape_reshape(const int32_t *attrs, const graft_shape *in, graft_shape *out)
{
    const char *why = read_shape(&attrs[GRAFT_ATTR_reshape_dim_0], out);
    if (why == NULL && graft_shape_elements(&in[0]) != graft_shape_elements(&out[0])) {
        why = "the numbers of elements differ";
    }
    return why;
}

static const char *shape_fill(const int32_t *attrs, const graft_shape *in, graft_shape *out)
{
    (void)in;
    if (!is_finite_float(attrs[GRAFT_ATTR_fill_value])) {
        return text_float;
    }
    return read_shape(&attrs[GRAFT_ATTR_fill_dim_0], out);
}

/* ------------------------------------------------------ pooling, reduction */

/* A pooling window along one axis. Every position must touch the input: padding is shorter than the
 * window, and where there is padding, taps are not so far apart that they jump over the input. */
static const char *shape_pool_axis(int64_t size, const int32_t *attrs, uint32_t i, int64_t dilation,
                                   graft_shape *out)
{
    int64_t kernel = attrs[GRAFT_ATTR_max_pool_kernel_h + i];
    int64_t before = attrs[GRAFT_ATTR_max_pool_pad_top + i];
    int64_t after = attrs[GRAFT_ATTR_max_pool_pad_bottom + i];
    int64_t reach = dilation * (kernel - 1);
    int64_t count = 0;
    if (before > reach || after > reach || (dilation > size && before > 0)) {
        return "a window may lie in the padding alone";
    }
    const char *why = slide_window(size, kernel, dilation, before + after,
                                   attrs[GRAFT_ATTR_max_pool_stride_h + i], &count);
    return why == NULL ? put_dim(out, 2 + i, count) : why;
}

/* Both pools have their first eight attributes in common. */
static const char *shape_pool(const int32_t *attrs, const graft_shape *in, int32_t dilation_h,
                              int32_t dilation_w, graft_shape *out)
{
    if (in[0].rank != 4) {
        return text_image;
    }
    out[0] = in[0];
    const char *why = shape_pool_axis(in[0].dims[2], attrs, 0, dilation_h, &out[0]);
    return why == NULL ? shape_pool_axis(in[0].dims[3], attrs, 1, dilation_w, &out[0]) : why;
}

static const char *shape_max_pool(const int32_t *attrs, const graft_shape *in, graft_shape *out)
{
    return shape_pool(attrs, in, attrs[GRAFT_ATTR_max_pool_dilation_h],
                      attrs[GRAFT_ATTR_max_pool_dilation_w], out);
}

static const char *shape_avg_pool(const int32_t *attrs, const graft_shape *in, graft_shape *out)
{
    return shape_pool(attrs, in, 1, 1, out);
}

static const char *shape_global_avg_pool(const int32_t *attrs, const graft_shape *in,
                                         graft_shape *out)
{
    (void)attrs;
    if (in[0].rank != 4) {
        return text_image;
    }
    out[0] = in[0];
    out[0].dims[2] = 1;
    out[0].dims[3] = 1;
    return NULL;
}

static const char *shape_softmax(const int32_t *attrs, const graft_shape *in, graft_shape *out)
{
    return attrs[GRAFT_ATTR_softmax_axis] < in[0].rank ? shape_same(attrs, in, out) : text_axis;
}

/* All reductions have the same attributes. */
static const char *shape_reduce(const int32_t *attrs, const graft_shape *in, graft_shape *out)
{
    uint32_t axes = (uint32_t)attrs[GRAFT_ATTR_reduce_mean_axes];
    if (axes >> in[0].rank != 0) {
        return text_axis;
    }
    uint32_t rank = 0;
    out[0] = empty_shape(0);
    for (uint32_t i = 0; i < in[0].rank; i++) {
        bool reduced = (axes & (1u << i)) != 0;
        if (!reduced || attrs[GRAFT_ATTR_reduce_mean_keep] == 1) {
            out[0].dims[rank++] = reduced ? 1 : in[0].dims[i];
        }
    }
    out[0].rank = (uint8_t)rank;
    return NULL;
}

static const char *shape_layer_norm(const int32_t *attrs, const graft_shape *in, graft_shape *out)
{
    int32_t epsilon = attrs[GRAFT_ATTR_layer_norm_epsilon];
    if (!is_finite_float(epsilon)) {
        return text_float;
    }
    if (order_float(epsilon) <= 0) {
        return "epsilon is not positive";
    }
    if (in[0].rank < 1) {
        return text_axis;
    }
    const char *why = check_vector(&in[1], dim_from_end(&in[0], 0));
    why = why == NULL ? check_vector(&in[2], dim_from_end(&in[0], 0)) : why;
    out[0] = in[0];
    return why;
}

/* --------------------------------------------------------------- the table */

/* Operators that share a function. */
#define shape_identity shape_same
#define shape_relu     shape_same
#define shape_sigmoid  shape_same
#define shape_tanh     shape_same
#define shape_exp      shape_same
#define shape_sqrt     shape_same
#define shape_erf      shape_same
#define shape_gelu     shape_same
#define shape_add      shape_broadcast
#define shape_sub      shape_broadcast
#define shape_mul      shape_broadcast
#define shape_div      shape_broadcast
#define shape_max      shape_broadcast
#define shape_min      shape_broadcast

#define shape_reduce_mean shape_reduce
#define shape_reduce_sum  shape_reduce
#define shape_reduce_max  shape_reduce

typedef const char *(*shape_function)(const int32_t *attrs, const graft_shape *in,
                                      graft_shape *out);

static const shape_function shape_table[GRAFT_OP_COUNT] = {
    NULL,
#define OP(id, name, inputs, outputs, attributes, flags, onnx) shape_##name,
#include "../operators.def"
};

static const char *check_attrs(uint32_t op, const int32_t *attrs)
{
    uint32_t count = op_table[op].attr_count;
    const graft_attr_info *info = graft_op_attr(op, 0); /* Those of an operator lie together. */
    for (uint32_t i = 0; i < count; i++) {
        if (info[i].kind != GRAFT_ATTR_FLOAT &&
            (attrs[i] < info[i].least || attrs[i] > info[i].most)) {
            return "an attribute is outside its domain";
        }
    }
    for (uint32_t i = count; i < GRAFT_MAX_ATTRS; i++) {
        if (attrs[i] != 0) {
            return "an unused attribute is not 0";
        }
    }
    return NULL;
}

static const char *check_shape(const graft_shape *shape)
{
    if (shape->rank > GRAFT_MAX_RANK) {
        return "an input's shape is unknown";
    }
    if (shape->dtype != GRAFT_DTYPE_F32) {
        return "an input is not binary32";
    }
    for (uint32_t i = 0; i < GRAFT_MAX_RANK; i++) {
        if (i < shape->rank ? shape->dims[i] < 1 : shape->dims[i] != 0) {
            return "an input's shape is malformed";
        }
    }
    return graft_shape_elements(shape) > INT32_MAX ? text_large : NULL;
}

static const char *infer_outputs(uint32_t op, const int32_t *attrs, const graft_shape *in,
                                 graft_shape *out)
{
    const graft_op_info *info = graft_op(op);
    if (info == NULL) {
        return "there is no such operator";
    }
    const char *why = check_attrs(op, attrs);
    for (uint32_t i = 0; why == NULL && i < info->input_count; i++) {
        why = check_shape(&in[i]);
    }
    if (why == NULL) {
        why = shape_table[op](attrs, in, out);
    }
    for (uint32_t i = 0; why == NULL && i < info->output_count; i++) {
        why = graft_shape_elements(&out[i]) > INT32_MAX ? text_large : NULL;
    }
    return why;
}

graft_status graft_infer_shapes(uint32_t op, const int32_t *attrs, const graft_shape *in,
                                graft_shape *out)
{
    graft_shape inferred[GRAFT_MAX_OUTPUTS];
    if (infer_outputs(op, attrs, in, inferred) != NULL) {
        return GRAFT_BAD_INPUT;
    }
    for (uint32_t i = 0; i < op_table[op].output_count; i++) {
        out[i] = inferred[i];
    }
    return GRAFT_OK;
}

const char *graft_infer_explain(uint32_t op, const int32_t *attrs, const graft_shape *in)
{
    graft_shape inferred[GRAFT_MAX_OUTPUTS];
    return infer_outputs(op, attrs, in, inferred);
}

/* -------------------------------------------------------------- operations */

/* Operations per element of the first output, apart from those of an activation. */
static uint64_t work_none(const int32_t *attrs, const graft_shape *in, const graft_shape *out)
{
    (void)attrs, (void)in, (void)out;
    return 0;
}

static uint64_t work_one(const int32_t *attrs, const graft_shape *in, const graft_shape *out)
{
    (void)attrs, (void)in, (void)out;
    return 1;
}

static uint64_t work_two(const int32_t *attrs, const graft_shape *in, const graft_shape *out)
{
    (void)attrs, (void)in, (void)out;
    return 2;
}

/* Taps that fall into the padding count as the others do. */
static uint64_t work_conv(const int32_t *attrs, const graft_shape *in, const graft_shape *out)
{
    (void)attrs, (void)out;
    uint64_t taps = multiply_saturating((uint64_t)in[1].dims[1], (uint64_t)in[1].dims[2]);
    return multiply_saturating(2, multiply_saturating(taps, (uint64_t)in[1].dims[3]));
}

static uint64_t work_conv_bias(const int32_t *attrs, const graft_shape *in, const graft_shape *out)
{
    return add_saturating(work_conv(attrs, in, out), 1);
}

static uint64_t work_conv_bias_add(const int32_t *attrs, const graft_shape *in,
                                   const graft_shape *out)
{
    return add_saturating(work_conv(attrs, in, out), 2);
}

static uint64_t work_matmul(const int32_t *attrs, const graft_shape *in, const graft_shape *out)
{
    (void)attrs, (void)out;
    return 2 * (uint64_t)dim_from_end(&in[0], 0);
}

static uint64_t work_matmul_bias(const int32_t *attrs, const graft_shape *in,
                                 const graft_shape *out)
{
    return work_matmul(attrs, in, out) + 1;
}

static uint64_t work_clip(const int32_t *attrs, const graft_shape *in, const graft_shape *out)
{
    (void)in, (void)out;
    return (uint64_t)is_finite_float(attrs[GRAFT_ATTR_clip_low]) +
           (uint64_t)is_finite_float(attrs[GRAFT_ATTR_clip_high]);
}

static uint64_t work_max_pool(const int32_t *attrs, const graft_shape *in, const graft_shape *out)
{
    (void)in, (void)out;
    return (uint64_t)attrs[GRAFT_ATTR_max_pool_kernel_h] *
           (uint64_t)attrs[GRAFT_ATTR_max_pool_kernel_w];
}

/* The sum, then one division. */
static uint64_t work_avg_pool(const int32_t *attrs, const graft_shape *in, const graft_shape *out)
{
    (void)in, (void)out;
    return (uint64_t)attrs[GRAFT_ATTR_avg_pool_kernel_h] *
               (uint64_t)attrs[GRAFT_ATTR_avg_pool_kernel_w] +
           1;
}

static uint64_t work_total(const int32_t *attrs, const graft_shape *in, const graft_shape *out)
{
    (void)attrs;
    return graft_shape_elements(&in[0]) / graft_shape_elements(&out[0]);
}

static uint64_t work_largest(const int32_t *attrs, const graft_shape *in, const graft_shape *out)
{
    return work_total(attrs, in, out) - 1;
}

static uint64_t work_mean(const int32_t *attrs, const graft_shape *in, const graft_shape *out)
{
    (void)attrs;
    return graft_shape_elements(&in[0]) / graft_shape_elements(&out[0]) + 1;
}

/* Maximum, difference, exponential, sum and quotient, as it is computed in floating point. */
static uint64_t work_softmax(const int32_t *attrs, const graft_shape *in, const graft_shape *out)
{
    (void)attrs, (void)in, (void)out;
    return 5;
}

/* Quotient, function, sum and two products. */
static uint64_t work_gelu(const int32_t *attrs, const graft_shape *in, const graft_shape *out)
{
    (void)attrs, (void)in, (void)out;
    return 5;
}

/* The sum, a difference, a square and their sum, the quotient, scale and shift; the rest is done
 * once per row. */
static uint64_t work_layer_norm(const int32_t *attrs, const graft_shape *in, const graft_shape *out)
{
    (void)attrs, (void)in, (void)out;
    return 7;
}

#define work_identity        work_none
#define work_concat          work_none
#define work_split           work_none
#define work_slice           work_none
#define work_pad             work_none
#define work_transpose       work_none
#define work_reshape         work_none
#define work_fill            work_none
#define work_relu            work_one
#define work_sigmoid         work_one
#define work_tanh            work_one
#define work_add             work_one
#define work_sub             work_one
#define work_mul             work_one
#define work_div             work_one
#define work_max             work_one
#define work_min             work_one
#define work_exp             work_one
#define work_sqrt            work_one
#define work_erf             work_one
#define work_scale_shift     work_two
#define work_leaky_relu      work_two
#define work_global_avg_pool work_mean
#define work_reduce_mean     work_mean
#define work_reduce_sum      work_total
#define work_reduce_max      work_largest

typedef uint64_t (*work_function)(const int32_t *attrs, const graft_shape *in,
                                  const graft_shape *out);

static const work_function work_table[GRAFT_OP_COUNT] = {
    NULL,
#define OP(id, name, inputs, outputs, attributes, flags, onnx) work_##name,
#include "../operators.def"
};

/* Operations per element of the activation inside a fused operator. */
static uint64_t activation_work(uint32_t op, const int32_t *attrs)
{
    uint64_t work = 0;
    for (uint32_t i = 0; i < op_table[op].attr_count; i++) {
        if (graft_op_attr(op, i)->kind == GRAFT_ATTR_ACTIVATION) {
            work = attrs[i] == GRAFT_ACT_NONE ? 0 : attrs[i] == GRAFT_ACT_RELU6 ? 2 : 1;
        }
    }
    return work;
}

/* Operations per row of the last axis: both means, epsilon and the root of a layer_norm. */
static uint64_t row_work(uint32_t op, const graft_shape *out)
{
    uint64_t per_row = op == GRAFT_OP_layer_norm ? 4 : 0;
    return per_row * (graft_shape_elements(out) / (uint64_t)dim_from_end(out, 0));
}

uint64_t graft_op_flops(uint32_t op, const int32_t *attrs, const graft_shape *in,
                        const graft_shape *out)
{
    if (graft_op(op) == NULL) {
        return 0;
    }
    uint64_t work = add_saturating(work_table[op](attrs, in, out), activation_work(op, attrs));
    return add_saturating(multiply_saturating(graft_shape_elements(&out[0]), work),
                          row_work(op, &out[0]));
}

#endif

/* shapes.h - which outputs an operator has: shapes.def over numbers. The number of operations is
 * read from the same shapes. */
#ifndef GRAFT_ENGINE_SHAPES_H
#define GRAFT_ENGINE_SHAPES_H

static const char *const graft_text_type = "the inputs are not all of binary32, float16, bfloat16, "
                                           "or the 8 bits or booleans that the operator "
                                           "takes";
static const char *const graft_text_large = "a tensor has more than INT32_MAX elements";

/* ------------------------------------------------------------------ shapes */

static GRAFT_APART uint64_t graft_add_saturating(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Nowhere does the engine divide numbers of 64 bits: a Cortex-M takes 0.9 KB of library for that. */
static uint64_t graft_multiply_saturating(uint64_t a, uint64_t b)
{
    const uint32_t a_high = (uint32_t)(a >> 32);
    const uint32_t b_high = (uint32_t)(b >> 32);
    const uint64_t low = (uint64_t)(uint32_t)a * (uint32_t)b;
    const uint64_t high = (uint64_t)a_high * (uint32_t)b + (uint64_t)b_high * (uint32_t)a;
    return (a_high != 0 && b_high != 0) || high >> 32 != 0 ? UINT64_MAX
                                                           : graft_add_saturating(high << 32, low);
}

/* Elements along the axes of a mask; the rank is known. */
static uint64_t graft_elements_along(const graft_shape *shape, uint32_t axes)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < shape->rank; i++) {
        if ((axes >> i & 1u) != 0) {
            count =
                graft_multiply_saturating(count, shape->dims[i] > 0 ? (uint64_t)shape->dims[i] : 0);
        }
    }
    return count;
}

uint64_t graft_shape_elements(const graft_shape *shape)
{
    return shape->rank > GRAFT_MAX_RANK ? 0 : graft_elements_along(shape, UINT32_MAX);
}

static uint64_t graft_dtype_bytes(uint32_t dtype)
{
    switch (dtype) {
    case GRAFT_DTYPE_U8:
    case GRAFT_DTYPE_I8:
    case GRAFT_DTYPE_BOOL:
        return 1;
    case GRAFT_DTYPE_U16:
    case GRAFT_DTYPE_I16:
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

static GRAFT_APART uint64_t graft_bytes_as(const graft_shape *shape, uint32_t dtype)
{
    return graft_multiply_saturating(graft_shape_elements(shape), graft_dtype_bytes(dtype));
}

uint64_t graft_shape_bytes(const graft_shape *shape) { return graft_bytes_as(shape, shape->dtype); }

/* Whatever their types are. */
static GRAFT_APART bool graft_sizes_equal(const graft_shape *a, const graft_shape *b)
{
    uint32_t apart = (uint32_t)(a->rank ^ b->rank);
    for (uint32_t i = 0; i < GRAFT_MAX_RANK; i++) {
        apart |= (uint32_t)(a->dims[i] ^ b->dims[i]);
    }
    return apart == 0;
}

bool graft_shape_equal(const graft_shape *a, const graft_shape *b)
{
    if (a->dtype != b->dtype) {
        return false;
    }
    return graft_sizes_equal(a, b);
}

/* --------------------------------------------------- shapes.def over numbers */

typedef graft_shape graft_op_shape;
typedef int64_t graft_op_size;

typedef struct graft_op_site {
    const int32_t *attrs;
    const graft_shape *const *in;
    graft_shape *out;
} graft_op_site;

static const graft_op_shape *graft_op_input(const graft_op_site *p, uint32_t i) { return p->in[i]; }

static graft_op_shape *graft_op_output(const graft_op_site *p, uint32_t i) { return &p->out[i]; }

static graft_op_size graft_op_attribute(const graft_op_site *p, uint32_t k) { return p->attrs[k]; }

static uint32_t graft_op_choice(const graft_op_site *p, uint32_t k)
{
    return (uint32_t)p->attrs[k];
}

/* Every choice is known. */
#define graft_op_is_open(p, k) false

static const char *graft_expect(bool so, const char *why)
{
    (void)why; /* As it may be without texts. */
    return so ? NULL : GRAFT_FAULT(why);
}

static graft_op_size graft_op_number(const graft_op_site *p, int32_t number)
{
    (void)p;
    return number;
}

static graft_op_size graft_op_add(const graft_op_site *p, graft_op_size a, graft_op_size b)
{
    (void)p;
    return a + b;
}

static GRAFT_APART graft_op_size graft_op_subtract(const graft_op_site *p, graft_op_size a,
                                                   graft_op_size b)
{
    (void)p;
    return a - b;
}

static graft_op_size graft_op_multiply(const graft_op_site *p, graft_op_size a, graft_op_size b)
{
    (void)p;
    return a * b;
}

static graft_op_size graft_op_wide(const graft_op_site *p, graft_op_size a, graft_op_size b)
{
    (void)p;
    return a == 1 ? b : a;
}

/* Padding is at most 1024 on each side, so that room is of 32 bits. */
static graft_op_size graft_op_windows(const graft_op_site *p, graft_op_size room,
                                      graft_op_size stride)
{
    (void)p;
    return (graft_op_size)((uint32_t)room / (uint32_t)stride) + 1;
}

static void graft_set_dim(const graft_op_site *p, graft_shape *shape, uint32_t axis,
                          graft_op_size size)
{
    (void)p;
    shape->dims[axis] = (int32_t)size;
}

static const char *graft_put_dim(const graft_op_site *p, graft_shape *shape, uint32_t axis,
                                 graft_op_size size)
{
    graft_set_dim(p, shape, axis, size);
    return graft_expect(size <= INT32_MAX, graft_text_large);
}

static graft_shape graft_empty_shape(uint32_t rank)
{
    graft_shape shape;
    for (uint32_t i = 0; i < GRAFT_MAX_RANK; i++) {
        shape.dims[i] = 0;
    }
    shape.rank = (uint8_t)rank;
    shape.dtype = GRAFT_DTYPE_F32;
    return shape;
}

static GRAFT_APART graft_shape graft_wider_shape(const graft_shape *a, const graft_shape *b)
{
    return graft_empty_shape(a->rank > b->rank ? a->rank : b->rank);
}

static graft_shape graft_made_shape(const graft_op_site *p, uint32_t first)
{
    uint32_t rank = 0;
    while (rank < GRAFT_MAX_RANK && p->attrs[first + rank] != 0) {
        rank++;
    }
    return graft_empty_shape(rank);
}

static void graft_set_rank(const graft_op_site *p, graft_shape *shape, uint32_t rank)
{
    (void)p;
    for (uint32_t i = rank; i < GRAFT_MAX_RANK; i++) {
        shape->dims[i] = 0;
    }
    shape->rank = (uint8_t)rank;
}

static const char *graft_expect_equal(const graft_op_site *p, graft_op_size a, graft_op_size b,
                                      const char *why)
{
    (void)p;
    return graft_expect(a == b, why);
}

static const char *graft_expect_le(const graft_op_site *p, graft_op_size a, graft_op_size b,
                                   const char *why)
{
    (void)p;
    return graft_expect(a <= b, why);
}

static const char *graft_expect_positive(const graft_op_site *p, graft_op_size size,
                                         const char *why)
{
    (void)p;
    return graft_expect(size >= 1, why);
}

static const char *graft_expect_divides(const graft_op_site *p, graft_op_size by,
                                        graft_op_size size, const char *why)
{
    (void)p; /* A size and an attribute. */
    return graft_expect((uint32_t)size % (uint32_t)by == 0, why);
}

/* A size among the attributes is 0. */
static const char *graft_expect_absent(const graft_op_site *p, uint32_t k, const char *why)
{
    return graft_expect(p->attrs[k] == 0, why);
}

/* a <= b, unless `size` is 0. */
static const char *graft_expect_le_or_none(const graft_op_site *p, graft_op_size a, graft_op_size b,
                                           graft_op_size size, const char *why)
{
    (void)p;
    return graft_expect(a <= b || size == 0, why);
}

static const char *graft_expect_broadcast(const graft_op_site *p, graft_op_size a, graft_op_size b,
                                          const char *why)
{
    (void)p;
    return graft_expect(a == b || a == 1 || b == 1, why);
}

static const char *graft_expect_same_elements(const graft_op_site *p, const graft_shape *a,
                                              const graft_shape *b, const char *why)
{
    (void)p;
    return graft_expect(graft_shape_elements(a) == graft_shape_elements(b), why);
}

/* Binary32 bits as an integer that compares as the number does; both zeros are 0. */
static GRAFT_APART int32_t graft_order_float(uint32_t bits)
{
    int32_t magnitude = (int32_t)(bits & INT32_MAX);
    return bits > INT32_MAX ? -magnitude : magnitude;
}

static const int32_t graft_float_infinity = 0x7f800000;

static bool graft_is_finite_float(int32_t bits)
{
    return ((uint32_t)bits & INT32_MAX) < (uint32_t)graft_float_infinity;
}

static const char *graft_expect_finite(const graft_op_site *p, uint32_t k, const char *why)
{
    return graft_expect(graft_is_finite_float(p->attrs[k]), why);
}

static const char *graft_expect_sign(const graft_op_site *p, uint32_t k, bool strictly,
                                     const char *why)
{
    return graft_expect(graft_order_float((uint32_t)p->attrs[k]) >= (strictly ? 1 : 0), why);
}

/* A number, or the infinity that is no bound from above or below. */
static const char *graft_expect_bound(const graft_op_site *p, uint32_t k, bool above,
                                      const char *why)
{
    int32_t key = graft_order_float((uint32_t)p->attrs[k]);
    return graft_expect(graft_is_finite_float(p->attrs[k]) ||
                            key == (above ? graft_float_infinity : -graft_float_infinity),
                        why);
}

static const char *graft_expect_order(const graft_op_site *p, uint32_t low, uint32_t high,
                                      const char *why)
{
    return graft_expect(graft_order_float((uint32_t)p->attrs[low]) <=
                            graft_order_float((uint32_t)p->attrs[high]),
                        why);
}

#define GRAFT_SHAPE_APART GRAFT_APART
#ifdef GRAFT_OPERATORS
#define GRAFT_SHAPE_OF(id, function) (GRAFT_HAS(id) ? (function) : NULL)
#endif
#include "../shapes.def"

static GRAFT_APART const char *graft_check_attrs(uint32_t op, const int32_t *attrs)
{
    uint32_t count = graft_op_rows[op].attr_count;
    const graft_attr_info *info = &graft_attr_table[graft_attr_first[op]];
    for (uint32_t i = 0; i < count; i++) {
        if (info[i].kind != GRAFT_ATTR_FLOAT &&
            (attrs[i] < info[i].least || attrs[i] > info[i].most)) {
            return GRAFT_FAULT("an attribute is outside its domain");
        }
    }
    for (uint32_t i = count; i < GRAFT_MAX_ATTRS; i++) {
        if (attrs[i] != 0) {
            return GRAFT_FAULT("an unused attribute is not 0");
        }
    }
    return NULL;
}

static bool graft_is_real(uint32_t dtype)
{
    return dtype == GRAFT_DTYPE_F32 || dtype == GRAFT_DTYPE_F16 || dtype == GRAFT_DTYPE_BF16;
}

bool graft_dtype_is_real(uint32_t dtype) { return graft_is_real(dtype); }

/* The type that a change to or from 8 bits is about; 0 for none. */
static GRAFT_APART uint8_t graft_byte_type(const int32_t *attrs)
{
    int32_t least = attrs[GRAFT_ATTR_quantise_least];
    return least == 0 ? GRAFT_DTYPE_U8 : least == -128 ? GRAFT_DTYPE_I8 : GRAFT_DTYPE_UNKNOWN;
}

/* Float16 and bfloat16 are priced as binary32: of nothing else costs are known. */
static uint32_t graft_priced_dtype(const graft_shape *shape)
{
    return graft_is_real(shape->dtype) ? (uint32_t)GRAFT_DTYPE_F32 : shape->dtype;
}

static GRAFT_APART uint64_t graft_priced_bytes(const graft_shape *shape)
{
    return graft_bytes_as(shape, graft_priced_dtype(shape));
}

/* Whether the product has booleans, and whether it has other numbers than real ones. */
#define GRAFT_HAS_BOOLEANS                                                                         \
    (GRAFT_HAS(GRAFT_OP_less) || GRAFT_HAS(GRAFT_OP_equal_to) ||                                   \
     GRAFT_HAS(GRAFT_OP_logical_not) || GRAFT_HAS(GRAFT_OP_select))
#define GRAFT_HAS_OTHERS                                                                           \
    (GRAFT_HAS_BOOLEANS || GRAFT_HAS(GRAFT_OP_quantise) || GRAFT_HAS(GRAFT_OP_dequantise))

/* The first of the inputs that have one type; before it are booleans. */
static uint32_t graft_typed_input(uint32_t op) { return GRAFT_IS(op, select) ? 1u : 0u; }

/* Numbers of 8 bits are moved, and the larger one of them is taken; booleans are moved, and the smaller or
 * larger one is taken. */
static bool graft_takes_type(uint32_t op, const int32_t *attrs, uint32_t dtype)
{
    const bool truth = GRAFT_HAS_BOOLEANS && dtype == GRAFT_DTYPE_BOOL;
    const bool byte = dtype == GRAFT_DTYPE_U8 || dtype == GRAFT_DTYPE_I8;
    const bool moves = (graft_op_rows[op].flags & GRAFT_FLAG_MOVES) != 0 && !GRAFT_IS(op, split);
    return GRAFT_IS(op, dequantise)    ? dtype == graft_byte_type(attrs)
           : GRAFT_IS(op, quantise)    ? dtype == GRAFT_DTYPE_F32 && graft_byte_type(attrs) != 0
           : GRAFT_IS(op, logical_not) ? truth
           : truth                     ? moves || GRAFT_IS(op, min) || GRAFT_IS(op, max)
           : byte                      ? moves || GRAFT_IS(op, max_pool)
                                       : graft_is_real(dtype);
}

static const char *graft_check_shape(const graft_shape *shape, uint32_t dtype)
{
    if (shape->rank > GRAFT_MAX_RANK) {
        return GRAFT_FAULT("an input's shape is unknown");
    }
    if (shape->dtype != dtype) {
        return GRAFT_FAULT(graft_text_type);
    }
    for (uint32_t i = 0; i < GRAFT_MAX_RANK; i++) {
        if (i < shape->rank ? shape->dims[i] < 1 : shape->dims[i] != 0) {
            return GRAFT_FAULT("an input's shape is malformed");
        }
    }
    return graft_shape_elements(shape) > INT32_MAX ? GRAFT_FAULT(graft_text_large) : NULL;
}

/* The type of the outputs. */
static uint8_t graft_made_type(uint32_t op, const int32_t *attrs, uint8_t dtype)
{
    return GRAFT_IS(op, quantise)                         ? graft_byte_type(attrs)
           : GRAFT_IS(op, dequantise)                     ? (uint8_t)GRAFT_DTYPE_F32
           : GRAFT_IS(op, less) || GRAFT_IS(op, equal_to) ? (uint8_t)GRAFT_DTYPE_BOOL
                                                          : dtype;
}

/* NULL, or the check that failed; `out` is then overwritten all the same. On entry out[0].dtype says
 * what type constants have. */
static GRAFT_APART const char *graft_infer_outputs(uint32_t op, const int32_t *attrs,
                                                   const graft_shape *const *in, graft_shape *out)
{
    const graft_op_row *info = graft_find_op(op);
    const graft_shape_function shape = info != NULL ? graft_shape_table[op] : NULL;
    if (shape == NULL) {
        return GRAFT_FAULT("there is no such operator");
    }
    const graft_op_site site = {attrs, in, out};
    const uint32_t typed = graft_typed_input(op);
    const uint8_t dtype = (info->input_count == 0 ? out : in[typed])->dtype;
    const char *why = graft_check_attrs(op, attrs);
    for (uint32_t i = 0; why == NULL && i < info->input_count; i++) {
        why = graft_check_shape(in[i], i < typed ? (uint8_t)GRAFT_DTYPE_BOOL : dtype);
    }
    if (why == NULL && !graft_takes_type(op, attrs, dtype)) {
        why = GRAFT_FAULT(graft_text_type);
    }
    if (why == NULL) {
        why = shape(&site);
    }
    for (uint32_t i = 0; why == NULL && i < graft_outputs_of(op); i++) {
        out[i].dtype = graft_made_type(op, attrs, dtype);
        why = graft_shape_elements(&out[i]) > INT32_MAX ? GRAFT_FAULT(graft_text_large) : NULL;
    }
    return why;
}

/* graft_infer_outputs of inputs that lie together; as many are there as an operator takes, if it is one. */
static const char *graft_infer_together(uint32_t op, const int32_t *attrs, const graft_shape *in,
                                        graft_shape *out)
{
    const graft_op_row *info = graft_find_op(op);
    const graft_shape *inputs[GRAFT_MAX_INPUTS] = {NULL};
    for (uint32_t i = 0; info != NULL && i < info->input_count; i++) {
        inputs[i] = &in[i];
    }
    out[0].dtype = GRAFT_DTYPE_F32;
    return graft_infer_outputs(op, attrs, inputs, out);
}

const char *graft_infer_explain(uint32_t op, const int32_t *attrs, const graft_shape *in)
{
    graft_shape inferred[GRAFT_MAX_OUTPUTS];
    return graft_tell_fault(graft_infer_together(op, attrs, in, inferred));
}

graft_status graft_infer_shapes(uint32_t op, const int32_t *attrs, const graft_shape *in,
                                graft_shape *out)
{
    graft_shape inferred[GRAFT_MAX_OUTPUTS];
    if (graft_infer_together(op, attrs, in, inferred) != NULL) {
        return GRAFT_BAD_INPUT;
    }
    for (uint32_t i = 0; i < graft_outputs_of(op); i++) {
        out[i] = inferred[i];
    }
    return GRAFT_OK;
}

/* -------------------------------------------------------------- operations */

/* Operations per element of the first output, apart from those of an activation: `times` a number that
 * depends on the form, and `plus`. */
typedef struct graft_work {
    uint8_t measure;
    uint8_t times;
    uint8_t plus;
} graft_work;

enum {
    GRAFT_WORK_ALIKE,
    GRAFT_WORK_TAPS,
    GRAFT_WORK_ROW,
    GRAFT_WORK_WINDOW,
    GRAFT_WORK_FOLDED,
    GRAFT_WORK_JOINED,
    GRAFT_WORK_BOUNDS
};

static uint64_t graft_measure_work(const graft_form *form, uint32_t measure)
{
    const graft_shape *in = form->inputs[0];
    uint64_t taps = 1;
    switch (measure) {
    case GRAFT_WORK_TAPS: /* Those that fall into the padding count as the others do. */
        for (uint32_t i = 1; i < 4; i++) {
            taps = graft_multiply_saturating(taps, (uint64_t)form->inputs[1]->dims[i]);
        }
        return taps;
    case GRAFT_WORK_ROW:
        return (uint64_t)in->dims[in->rank - 1u];
    case GRAFT_WORK_WINDOW: /* Both pools begin with its sizes. */
        return (uint64_t)form->attrs[GRAFT_ATTR_max_pool_kernel_h] *
               (uint64_t)form->attrs[GRAFT_ATTR_max_pool_kernel_w];
    case GRAFT_WORK_FOLDED: /* Elements that make one... */
    case GRAFT_WORK_JOINED: /* ...and what joins them. */
        return graft_elements_along(in, GRAFT_IS(form->op, global_avg_pool)
                                            ? 12u /* Height and width. */
                                            : (uint32_t)form->attrs[GRAFT_ATTR_reduce_mean_axes]) -
               (measure == GRAFT_WORK_JOINED ? 1u : 0u);
    case GRAFT_WORK_BOUNDS:
        return (uint64_t)graft_is_finite_float(form->attrs[GRAFT_ATTR_clip_low]) +
               (uint64_t)graft_is_finite_float(form->attrs[GRAFT_ATTR_clip_high]);
    default:
        return 0;
    }
}

/* clang-format off */
#define graft_work_none            {GRAFT_WORK_ALIKE, 0, 0}
#define graft_work_one             {GRAFT_WORK_ALIKE, 0, 1}
#define graft_work_two             {GRAFT_WORK_ALIKE, 0, 2}
#define graft_work_identity        graft_work_none
#define graft_work_concat          graft_work_none
#define graft_work_split           graft_work_none
#define graft_work_slice           graft_work_none
#define graft_work_pad             graft_work_none
#define graft_work_transpose       graft_work_none
#define graft_work_reshape         graft_work_none
#define graft_work_fill            graft_work_none
#define graft_work_relu            graft_work_one
#define graft_work_sigmoid         graft_work_one
#define graft_work_tanh            graft_work_one
#define graft_work_add             graft_work_one
#define graft_work_sub             graft_work_one
#define graft_work_mul             graft_work_one
#define graft_work_div             graft_work_one
#define graft_work_max             graft_work_one
#define graft_work_min             graft_work_one
#define graft_work_less            graft_work_one
#define graft_work_equal_to        graft_work_one
#define graft_work_remainder       graft_work_one
#define graft_work_logical_not     graft_work_one
#define graft_work_select          graft_work_one
#define graft_work_exp             graft_work_one
#define graft_work_sqrt            graft_work_one
#define graft_work_erf             graft_work_one
#define graft_work_scale_shift     graft_work_two
#define graft_work_leaky_relu      graft_work_two
#define graft_work_dequantise      graft_work_two
/* Rounded quotient, sum and two bounds. */
#define graft_work_quantise        {GRAFT_WORK_ALIKE, 0, 4}
#define graft_work_conv            {GRAFT_WORK_TAPS, 2, 0}
#define graft_work_conv_bias       {GRAFT_WORK_TAPS, 2, 1}
#define graft_work_conv_bias_add   {GRAFT_WORK_TAPS, 2, 2}
#define graft_work_matmul          {GRAFT_WORK_ROW, 2, 0}
#define graft_work_matmul_bias     {GRAFT_WORK_ROW, 2, 1}
#define graft_work_clip            {GRAFT_WORK_BOUNDS, 1, 0}
#define graft_work_max_pool        {GRAFT_WORK_WINDOW, 1, 0}
/* The sum, then one division. */
#define graft_work_avg_pool        {GRAFT_WORK_WINDOW, 1, 1}
#define graft_work_global_avg_pool {GRAFT_WORK_FOLDED, 1, 1}
#define graft_work_reduce_mean     {GRAFT_WORK_FOLDED, 1, 1}
#define graft_work_reduce_sum      {GRAFT_WORK_FOLDED, 1, 0}
#define graft_work_reduce_max      {GRAFT_WORK_JOINED, 1, 0}
/* Maximum, difference, exponential, sum and quotient, as it is computed in floating point. */
#define graft_work_softmax         {GRAFT_WORK_ALIKE, 0, 5}
/* Quotient, function, sum and two products. */
#define graft_work_gelu            {GRAFT_WORK_ALIKE, 0, 5}
/* The sum, a difference, a square and their sum, the quotient, scale and shift; the rest is done
 * once per row. */
#define graft_work_layer_norm      {GRAFT_WORK_ALIKE, 0, 7}
#define graft_work_instance_norm   {GRAFT_WORK_ALIKE, 0, 7}
/* A square and their sum, the quotient and the scale. */
#define graft_work_rms_norm        {GRAFT_WORK_ALIKE, 0, 4}
/* Maximum, difference, exponential, sum and difference; one logarithm a row. */
#define graft_work_log_softmax     {GRAFT_WORK_ALIKE, 0, 5}
#define graft_work_reduce_min      {GRAFT_WORK_JOINED, 1, 0}
#define graft_work_cumsum          graft_work_one
#define graft_work_repeat          graft_work_none
#define graft_work_pick            graft_work_none
#define graft_work_reverse         graft_work_none
#define graft_work_conv_transpose  graft_work_none /* Counted apart. */

static const graft_work graft_work_table[GRAFT_OP_COUNT] = {
    graft_work_none,
#define OP(id, name, inputs, outputs, attributes, flags, onnx)         graft_work_##name,
#define FUNCTION(id, name, attributes, flags, work, since, onnx, body) {GRAFT_WORK_ALIKE, 0, work},
#include "../operators.def"
};
/* clang-format on */

/* The activation inside a fused operator, its last attribute; GRAFT_ACT_COUNT where there can be none. */
static uint32_t graft_activation_of(uint32_t op, const int32_t *attrs)
{
    const uint32_t count = graft_op_rows[op].attr_count;
    return count > 0 &&
                   graft_attr_table[graft_attr_first[op] + count - 1u].kind == GRAFT_ATTR_ACTIVATION
               ? (uint32_t)attrs[count - 1u]
               : (uint32_t)GRAFT_ACT_COUNT;
}

/* Operations per element of an activation. */
static uint32_t graft_activation_work(uint32_t activation)
{
    return activation == GRAFT_ACT_NONE || activation == GRAFT_ACT_COUNT ? 0
           : activation == GRAFT_ACT_RELU6                               ? 2
                                                                         : 1;
}

/* Operations that are not of an element of the output: of a normalisation, per row or image, the
 * means, epsilon and the root; per row of a log_softmax the logarithm; of a transposed convolution a
 * product and a sum for each element of an image and of the filter that meet. */
static uint64_t graft_row_work(const graft_form *form)
{
    if (graft_op_rows[form->op].input_count == 0) {
        return 0; /* A fill: there is no first input. */
    }
    const graft_shape *in = form->inputs[0];
    if (GRAFT_IS(form->op, layer_norm) || GRAFT_IS(form->op, rms_norm)) {
        return (GRAFT_IS(form->op, layer_norm) ? 4u : 3u) *
               graft_elements_along(in, ~(1u << (in->rank - 1u)));
    }
    if (GRAFT_IS(form->op, instance_norm)) {
        return 4 * (uint64_t)in->dims[0] * (uint64_t)in->dims[1];
    }
    if (GRAFT_IS(form->op, log_softmax)) {
        return graft_elements_along(in, ~(1u << form->attrs[GRAFT_ATTR_log_softmax_axis]));
    }
    if (GRAFT_IS(form->op, conv_transpose)) {
        return graft_multiply_saturating(2 * graft_shape_elements(in),
                                         graft_elements_along(form->inputs[1], ~1u));
    }
    return 0;
}

static uint64_t graft_form_flops(const graft_form *form)
{
    const graft_shape *out = form->outputs[0];
    if (graft_find_op(form->op) == NULL) {
        return 0;
    }
    const graft_work *per = &graft_work_table[form->op];
    uint64_t work = graft_multiply_saturating(graft_measure_work(form, per->measure), per->times);
    work = graft_add_saturating(
        work, per->plus + graft_activation_work(graft_activation_of(form->op, form->attrs)));
    return graft_add_saturating(graft_multiply_saturating(graft_shape_elements(out), work),
                                graft_row_work(form));
}

uint64_t graft_op_flops(uint32_t op, const int32_t *attrs, const graft_shape *in,
                        const graft_shape *out)
{
    const graft_op_row *info = graft_find_op(op);
    graft_form form;
    if (info == NULL) {
        return 0;
    }
    form.op = (uint8_t)op;
    form.attrs = attrs;
    for (uint32_t i = 0; i < info->input_count; i++) {
        form.inputs[i] = &in[i];
    }
    form.outputs[0] = out;
    return graft_form_flops(&form);
}

#endif

/* foreign_numbers.c - functions of one or two numbers, choices and ranges (see foreign.h). */
#include "graph/meaning/foreign_rows.h"

#include "graph/base/share.h"
#include "graph/meaning/algebra.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum { OPERANDS_MOST = 3 };

/* A row of the result and where its operands begin; an operand's step is 0 when it is one element.
 */
typedef struct {
    const void *in[OPERANDS_MOST];
    size_t step[OPERANDS_MOST];
    void *out;
    size_t count;
    int32_t code;
    float by[2];        /* What the function says besides. */
    uint32_t dtypes[2]; /* Of the first operands, for powers. */
} span;

/* False when a whole number is divided by 0. */
typedef bool span_function(const span *s);

/* ---------------------------------------------------------------------------- of a type */

/* Before a loop no round of which reads what another writes; Clang has no word for it. */
#ifdef __clang__
#define INDEPENDENT
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* An operand may lie where the result goes. */
#define LOOP(type, result, expression, step_x, step_y)                                             \
    INDEPENDENT for (size_t i = 0; i < count; i++)                                                 \
    {                                                                                              \
        const type x = a[i * (step_x)];                                                            \
        const type y = b[i * (step_y)];                                                            \
        to[i] = (result)(expression);                                                              \
    }

/* The usual steps are constants, so that the compiler makes vectors. */
#define EACH(type, result, expression)                                                             \
    do {                                                                                           \
        const size_t count = s->count;                                                             \
        result *const to = s->out;                                                                 \
        if (p == 1 && q == 1) {                                                                    \
            LOOP(type, result, expression, 1, 1)                                                   \
        } else if (p == 1 && q == 0) {                                                             \
            LOOP(type, result, expression, 1, 0)                                                   \
        } else if (p == 0 && q == 1) {                                                             \
            LOOP(type, result, expression, 0, 1)                                                   \
        } else {                                                                                   \
            LOOP(type, result, expression, p, q)                                                   \
        }                                                                                          \
    } while (false);                                                                               \
    break

#define OPERANDS(type)                                                                             \
    const type *const a = s->in[0];                                                                \
    const type *const b = s->in[1];                                                                \
    const size_t p = s->step[0];                                                                   \
    const size_t q = s->step[1]

/* Comparisons of numbers of a type. */
#define COMPARISONS(name, type)                                                                    \
    static bool compare_##name(const span *s)                                                      \
    {                                                                                              \
        OPERANDS(type);                                                                            \
        switch (s->code) {                                                                         \
        case GRAFT_FOREIGN_EQUAL:                                                                  \
            EACH(type, uint8_t, x == y);                                                           \
        case GRAFT_FOREIGN_LESS:                                                                   \
            EACH(type, uint8_t, x < y);                                                            \
        case GRAFT_FOREIGN_GREATER:                                                                \
            EACH(type, uint8_t, x > y);                                                            \
        case GRAFT_FOREIGN_AT_MOST:                                                                \
            EACH(type, uint8_t, x <= y);                                                           \
        default:                                                                                   \
            EACH(type, uint8_t, x >= y);                                                           \
        }                                                                                          \
        return true;                                                                               \
    }

COMPARISONS(f32, float)
COMPARISONS(i64, int64_t)
COMPARISONS(i32, int32_t)
COMPARISONS(u8, uint8_t)
COMPARISONS(i8, int8_t)

/* Whole numbers wrap around, as those without a sign do; quotients are cut off, remainders have the
 * sign of the divisor. */
#define WHOLE_NUMBERS(name, element, type, unsigned_type)                                          \
    static bool divide_##name(const span *s)                                                       \
    {                                                                                              \
        OPERANDS(element);                                                                         \
        element *const out = s->out;                                                               \
        for (size_t i = 0; i < s->count; i++) {                                                    \
            const type x = a[i * p];                                                               \
            const type y = b[i * q];                                                               \
            if (y == 0) {                                                                          \
                return false;                                                                      \
            }                                                                                      \
            const type quotient = y == -1 ? (type)(0 - (unsigned_type)x) : (type)(x / y);          \
            const type rest = y == -1 ? 0 : (type)(x % y);                                         \
            const bool moves = s->code == GRAFT_FOREIGN_MOD && (rest < 0) != (y < 0);              \
            const type moved = rest != 0 && moves ? (type)(rest + y) : rest;                       \
            out[i] = (element)(s->code == GRAFT_FOREIGN_DIV ? quotient : moved);                   \
        }                                                                                          \
        return true;                                                                               \
    }                                                                                              \
    static bool combine_##name(const span *s)                                                      \
    {                                                                                              \
        OPERANDS(element);                                                                         \
        switch (s->code) {                                                                         \
        case GRAFT_FOREIGN_ADD:                                                                    \
            EACH(type, element, (unsigned_type)x + (unsigned_type)y);                              \
        case GRAFT_FOREIGN_SUB:                                                                    \
            EACH(type, element, (unsigned_type)x - (unsigned_type)y);                              \
        case GRAFT_FOREIGN_MUL:                                                                    \
            EACH(type, element, (unsigned_type)x *(unsigned_type)y);                               \
        case GRAFT_FOREIGN_MIN:                                                                    \
            EACH(type, element, x < y ? x : y);                                                    \
        case GRAFT_FOREIGN_MAX:                                                                    \
            EACH(type, element, x > y ? x : y);                                                    \
        case GRAFT_FOREIGN_BIT_AND:                                                                \
            EACH(type, element, (unsigned_type)x &(unsigned_type)y);                               \
        case GRAFT_FOREIGN_BIT_OR:                                                                 \
            EACH(type, element, (unsigned_type)x | (unsigned_type)y);                              \
        case GRAFT_FOREIGN_BIT_XOR:                                                                \
            EACH(type, element, (unsigned_type)x ^ (unsigned_type)y);                              \
        default:                                                                                   \
            return divide_##name(s);                                                               \
        }                                                                                          \
        return true;                                                                               \
    }                                                                                              \
    static bool map_##name(const span *s)                                                          \
    {                                                                                              \
        const element *const a = s->in[0];                                                         \
        const element *const b = a;                                                                \
        const size_t p = s->step[0];                                                               \
        const size_t q = 0;                                                                        \
        switch (s->code) {                                                                         \
        case GRAFT_FOREIGN_ABS:                                                                    \
            EACH(type, element, ((void)y, x < 0 ? 0 - (unsigned_type)x : (unsigned_type)x));       \
        case GRAFT_FOREIGN_NEG:                                                                    \
            EACH(type, element, ((void)y, 0 - (unsigned_type)x));                                  \
        case GRAFT_FOREIGN_BIT_NOT:                                                                \
            EACH(type, element, ((void)y, ~(unsigned_type)x));                                     \
        default:                                                                                   \
            EACH(type, element, ((void)y, (x > 0) - (x < 0)));                                     \
        }                                                                                          \
        return true;                                                                               \
    }

WHOLE_NUMBERS(i64, int64_t, int64_t, uint64_t)
WHOLE_NUMBERS(i32, int32_t, int32_t, uint32_t)
WHOLE_NUMBERS(i8, int8_t, int32_t, uint32_t)
WHOLE_NUMBERS(u8, uint8_t, int32_t, uint32_t)

/* Of the sign of y, 0 too. */
static float floored_rest(float x, float y)
{
    const float rest = fmodf(x, y);
    return rest == 0.0F ? copysignf(rest, y) : (rest < 0.0F) != (y < 0.0F) ? rest + y : rest;
}

static bool combine_f32(const span *s)
{
    OPERANDS(float);
    switch (s->code) {
    case GRAFT_FOREIGN_ADD:
        EACH(float, float, x + y);
    case GRAFT_FOREIGN_SUB:
        EACH(float, float, x - y);
    case GRAFT_FOREIGN_MUL:
        EACH(float, float, x *y);
    case GRAFT_FOREIGN_DIV:
        EACH(float, float, x / y);
    case GRAFT_FOREIGN_REST:
        EACH(float, float, fmodf(x, y));
    case GRAFT_FOREIGN_MOD:
        EACH(float, float, floored_rest(x, y));
    case GRAFT_FOREIGN_MIN: /* NaN stays. */
        EACH(float, float, x < y || x != x ? x : y);
    default:
        EACH(float, float, x > y || x != x ? x : y);
    }
    return true;
}

/* What does not fit has no certain result. */
static int64_t whole_of(double x) { return fabs(x) < 0x1p63 ? (int64_t)x : INT64_MIN; }

/* Elements are binary32, int32 or int64. */
static double number_at(const void *data, uint32_t dtype, size_t i)
{
    return dtype == GRAFT_DTYPE_F32   ? (double)((const float *)data)[i]
           : dtype == GRAFT_DTYPE_I32 ? (double)((const int32_t *)data)[i]
                                      : (double)((const int64_t *)data)[i];
}

static bool power(const span *s)
{
    for (size_t i = 0; i < s->count; i++) {
        const double x = pow(number_at(s->in[0], s->dtypes[0], i * s->step[0]),
                             number_at(s->in[1], s->dtypes[1], i * s->step[1]));
        if (s->dtypes[0] == GRAFT_DTYPE_F32) {
            ((float *)s->out)[i] = (float)x;
        } else {
            graft_whole_put(s->out, s->dtypes[0], i, whole_of(x));
        }
    }
    return true;
}

static bool map_angle(const span *s)
{
    static float (*const functions[])(float) = {
        [GRAFT_FOREIGN_TAN] = tanf,     [GRAFT_FOREIGN_ASIN] = asinf,
        [GRAFT_FOREIGN_ACOS] = acosf,   [GRAFT_FOREIGN_ATAN] = atanf,
        [GRAFT_FOREIGN_SINH] = sinhf,   [GRAFT_FOREIGN_ASINH] = asinhf,
        [GRAFT_FOREIGN_ACOSH] = acoshf, [GRAFT_FOREIGN_ATANH] = atanhf,
    };
    for (size_t i = 0; i < s->count; i++) {
        ((float *)s->out)[i] = functions[s->code](((const float *)s->in[0])[i * s->step[0]]);
    }
    return true;
}

static bool map_f32(const span *s)
{
    const float *const a = s->in[0];
    const float *const b = a;
    const size_t p = s->step[0];
    const size_t q = 0;
    switch (s->code) {
    case GRAFT_FOREIGN_ABS:
        EACH(float, float, ((void)y, fabsf(x)));
    case GRAFT_FOREIGN_NEG:
        EACH(float, float, ((void)y, -x));
    case GRAFT_FOREIGN_SIGN: /* NaN stays. */
        EACH(float, float, ((void)y, x > 0.0F ? 1.0F : x < 0.0F ? -1.0F : x != x ? x : 0.0F));
    case GRAFT_FOREIGN_CEIL:
        EACH(float, float, ((void)y, ceilf(x)));
    case GRAFT_FOREIGN_FLOOR:
        EACH(float, float, ((void)y, floorf(x)));
    case GRAFT_FOREIGN_ROUND:
        EACH(float, float, ((void)y, rintf(x)));
    case GRAFT_FOREIGN_SHRINK:
        EACH(float, float,
             ((void)y, x < -s->by[0]  ? x + s->by[1]
                       : x > s->by[0] ? x - s->by[1]
                                      : 0.0F));
    case GRAFT_FOREIGN_ABOVE:
        EACH(float, float, ((void)y, x > s->by[0] ? x : 0.0F));
    case GRAFT_FOREIGN_IS_NAN:
        EACH(float, uint8_t, ((void)y, x != x));
    case GRAFT_FOREIGN_IS_INF:
        EACH(float, uint8_t, ((void)y, fabsf(x) == INFINITY));
    case GRAFT_FOREIGN_IS_INF_ABOVE:
        EACH(float, uint8_t, ((void)y, x == INFINITY));
    case GRAFT_FOREIGN_IS_INF_BELOW:
        EACH(float, uint8_t, ((void)y, x == -INFINITY));
    default:
        return map_angle(s);
    }
    return true;
}

static bool map_bool(const span *s)
{
    const uint8_t *const a = s->in[0];
    for (size_t i = 0; i < s->count; i++) {
        ((uint8_t *)s->out)[i] = a[i * s->step[0]] == 0;
    }
    return true;
}

static bool combine_bool(const span *s)
{
    OPERANDS(uint8_t);
    switch (s->code) {
    case GRAFT_FOREIGN_AND:
        EACH(uint8_t, uint8_t, x != 0 && y != 0);
    case GRAFT_FOREIGN_OR:
        EACH(uint8_t, uint8_t, x != 0 || y != 0);
    default:
        EACH(uint8_t, uint8_t, (x != 0) != (y != 0));
    }
    return true;
}

/* Elements of a width. */
#define CHOICES(width, type)                                                                       \
    static bool choose_##width(const span *s)                                                      \
    {                                                                                              \
        const uint8_t *const c = s->in[0];                                                         \
        const type *const a = s->in[1];                                                            \
        const type *const b = s->in[2];                                                            \
        const size_t p = s->step[1];                                                               \
        const size_t q = s->step[2];                                                               \
        const size_t r = s->step[0];                                                               \
        const size_t count = s->count;                                                             \
        type *restrict const to = s->out;                                                          \
        for (size_t i = 0; i < count && r == 1 && p == 1 && q == 0; i++) {                         \
            to[i] = c[i] != 0 ? a[i] : b[0];                                                       \
        }                                                                                          \
        for (size_t i = 0; i < count && (r != 1 || p != 1 || q != 0); i++) {                       \
            const type x = a[i * p];                                                               \
            const type y = b[i * q];                                                               \
            to[i] = c[i * r] != 0 ? x : y;                                                         \
        }                                                                                          \
        return true;                                                                               \
    }

CHOICES(1, uint8_t)
CHOICES(4, uint32_t)
CHOICES(8, uint64_t)

/* --------------------------------------------------------------------------- which loop */

static bool is_comparison(int32_t code)
{
    return code >= GRAFT_FOREIGN_EQUAL && code <= GRAFT_FOREIGN_AT_LEAST;
}

static bool is_test(int32_t code)
{
    return code >= GRAFT_FOREIGN_IS_NAN && code <= GRAFT_FOREIGN_IS_INF_BELOW;
}

/* Loops over numbers of a type. */
static const struct {
    span_function *map;
    span_function *compare;
    span_function *combine;
} loops[] = {
    [GRAFT_DTYPE_F32] = {map_f32,  compare_f32, combine_f32 },
    [GRAFT_DTYPE_I64] = {map_i64,  compare_i64, combine_i64 },
    [GRAFT_DTYPE_I32] = {map_i32,  compare_i32, combine_i32 },
    [GRAFT_DTYPE_I8] = {map_i8,   compare_i8,  combine_i8  },
    [GRAFT_DTYPE_U8] = {map_u8,   compare_u8,  combine_u8  },
    [GRAFT_DTYPE_BOOL] = {map_bool, compare_u8,  combine_bool},
};

/* NULL: a type that the function is not of. */
static span_function *function_of_one(int32_t code, uint32_t dtype)
{
    const bool fits = dtype == GRAFT_DTYPE_F32
                          ? code != GRAFT_FOREIGN_NOT && code != GRAFT_FOREIGN_BIT_NOT
                      : dtype == GRAFT_DTYPE_BOOL ? code == GRAFT_FOREIGN_NOT
                                                  : code < GRAFT_FOREIGN_CEIL;
    return fits && dtype < sizeof loops / sizeof loops[0] ? loops[dtype].map : NULL;
}

static span_function *function_of_two(int32_t code, uint32_t dtype)
{
    const bool computes = code >= GRAFT_FOREIGN_ADD;
    const bool fits = dtype == GRAFT_DTYPE_F32 ? computes && code < GRAFT_FOREIGN_POW
                                               : computes != (dtype == GRAFT_DTYPE_BOOL);
    if (code == GRAFT_FOREIGN_POW || dtype >= sizeof loops / sizeof loops[0]) {
        return NULL; /* See function_of_operands. */
    }
    return is_comparison(code) ? loops[dtype].compare : fits ? loops[dtype].combine : NULL;
}

/* A type of powers and of exponents. */
static bool is_base(uint32_t dtype)
{
    return dtype == GRAFT_DTYPE_F32 || dtype == GRAFT_DTYPE_I32 || dtype == GRAFT_DTYPE_I64;
}

static span_function *function_of_operands(const graft_opaque *opaque)
{
    const uint32_t a = opaque->in[0].dtype;
    const uint32_t b = opaque->in[1].dtype;
    return opaque->attrs[0] == GRAFT_FOREIGN_POW ? (is_base(a) && is_base(b) ? power : NULL)
           : a == b                              ? function_of_two(opaque->attrs[0], a)
                                                 : NULL;
}

bool graft_foreign_can_merge(int32_t code, uint32_t dtype)
{
    return function_of_two(code, dtype) != NULL;
}

void graft_foreign_merge(int32_t code, uint32_t dtype, const void *from, size_t count, void *to)
{
    const span s = {
        .in = {to, from},
          .step = {1,  1   },
          .out = to, .count = count, .code = code
    };
    (void)function_of_two(code, dtype)(&s);
}

static span_function *function_of_width(uint64_t width)
{
    return width == 1 ? choose_1 : width == 4 ? choose_4 : width == 8 ? choose_8 : NULL;
}

/* -------------------------------------------------------------------------------- shapes */

bool graft_foreign_stretch(const graft_opaque *opaque, uint32_t end, uint32_t by,
                           graft_shape *shape)
{
    bool fits = true;
    for (uint32_t k = 0; k < end; k += by) {
        shape->rank = opaque->in[k].rank > shape->rank ? opaque->in[k].rank : shape->rank;
    }
    for (uint32_t i = 0; i < shape->rank; i++) {
        shape->dims[i] = 1;
        for (uint32_t k = 0; k < end; k += by) {
            const graft_shape *in = &opaque->in[k];
            const uint32_t missing = (uint32_t)shape->rank - in->rank;
            const int32_t size = i < missing ? 1 : in->dims[i - missing];
            fits = fits && (size == 1 || shape->dims[i] == 1 || size == shape->dims[i]);
            shape->dims[i] = size == 1 ? shape->dims[i] : size;
        }
    }
    return fits;
}

bool graft_foreign_one_shape(const graft_opaque *opaque, graft_shape *shape)
{
    *shape = opaque->in[0];
    shape->dtype = is_test(opaque->attrs[0]) ? (uint8_t)GRAFT_DTYPE_BOOL : shape->dtype;
    return function_of_one(opaque->attrs[0], opaque->in[0].dtype) != NULL;
}

bool graft_foreign_two_shape(const graft_opaque *opaque, graft_shape *shape)
{
    const uint8_t dtype = opaque->in[0].dtype;
    shape->dtype = is_comparison(opaque->attrs[0]) ? (uint8_t)GRAFT_DTYPE_BOOL : dtype;
    return function_of_operands(opaque) != NULL && graft_foreign_stretch(opaque, 2, 1, shape);
}

bool graft_foreign_where_shape(const graft_opaque *opaque, graft_shape *shape)
{
    shape->dtype = opaque->in[1].dtype;
    return opaque->in[0].dtype == GRAFT_DTYPE_BOOL && opaque->in[2].dtype == shape->dtype &&
           function_of_width(graft_type_width(shape->dtype)) != NULL &&
           graft_foreign_stretch(opaque, 3, 1, shape);
}

/* ------------------------------------------------------------------------------- running */

/* How a loop runs. */
typedef struct {
    span_function *function;
    uint32_t count; /* Operands. */
} loop;

/* A loop over all operands at once. */
typedef struct {
    const graft_opaque *opaque;
    loop l;
    graft_view views[OPERANDS_MOST];
    uint8_t *out;
    atomic_bool *failed;
} walk;

/* Some of the elements: by rows of the result, as long as may be. */
static void walk_some(const void *work, uint32_t part, uint32_t parts)
{
    const walk *w = work;
    const graft_opaque *opaque = w->opaque;
    const size_t columns = graft_view_columns(&w->views[0]);
    const size_t rows = graft_view_row_count(&w->views[0]);
    const graft_range own =
        graft_range_part((int64_t)(rows * columns), GRAFT_SHARE_LINE, part, parts);
    span s = {
        .code = opaque->attrs[0],
        .dtypes = {opaque->in[0].dtype,                   opaque->in[1].dtype                  },
        .by = {graft_float_of_bits(opaque->attrs[1]), graft_float_of_bits(opaque->attrs[2])}
    };
    bool fine = true;
    for (size_t from = (size_t)own.from; from < (size_t)own.to && fine; from += s.count) {
        const size_t column = from % columns;
        const size_t left = (size_t)own.to - from;
        s.count = columns - column < left ? columns - column : left;
        for (uint32_t k = 0; k < w->l.count; k++) {
            const graft_view *view = &w->views[k];
            s.step[k] = graft_view_step(view);
            s.in[k] = (const uint8_t *)opaque->data[k] +
                      (graft_view_row(view, from / columns) + column * s.step[k]) *
                          graft_type_width(opaque->in[k].dtype);
        }
        s.out = w->out + from * graft_type_width(opaque->out.dtype);
        fine = w->l.function(&s);
    }
    if (!fine) {
        atomic_store(w->failed, true);
    }
}

static graft_status run_spans(graft_env *env, const graft_opaque *opaque, void *out, loop l)
{
    atomic_bool failed = false;
    walk w = {.opaque = opaque, .l = l, .views = {{.rank = 1}}, .out = out, .failed = &failed};
    for (uint32_t k = 0; k < l.count; k++) {
        const graft_shape *shape = &opaque->in[k];
        w.views[k] = graft_view_broadcast(shape, shape->rank, &opaque->out, opaque->out.rank);
    }
    graft_views_join(w.views, l.count);
    assert(l.function != NULL); /* Of a type that was looked at. */
    graft_share(opaque->threads, walk_some, &w);
    return failed ? GRAFT_FAIL(env, GRAFT_BAD_INPUT, "a whole number is divided by 0") : GRAFT_OK;
}

GRAFT_FOREIGN_RUNNER(one)
{
    return run_spans(env, opaque, out,
                     (loop){function_of_one(opaque->attrs[0], opaque->in[0].dtype), 1});
}

GRAFT_FOREIGN_RUNNER(two)
{
    return run_spans(env, opaque, out, (loop){function_of_operands(opaque), 2});
}

bool graft_foreign_read_inf(const Onnx__NodeProto *node, graft_opaque *opaque)
{
    const bool above = graft_onnx_int(node, "detect_positive", 1) != 0;
    const bool below = graft_onnx_int(node, "detect_negative", 1) != 0;
    opaque->attrs[0] = above && below ? GRAFT_FOREIGN_IS_INF
                       : above        ? GRAFT_FOREIGN_IS_INF_ABOVE
                                      : GRAFT_FOREIGN_IS_INF_BELOW;
    return above || below;
}

bool graft_foreign_read_mod(const Onnx__NodeProto *node, graft_opaque *opaque)
{
    opaque->attrs[0] =
        graft_onnx_int(node, "fmod", 0) != 0 ? GRAFT_FOREIGN_REST : GRAFT_FOREIGN_MOD;
    return true;
}

/* ---------------------------------------------------------------------------------- Clip */

bool graft_foreign_clip_shape(const graft_opaque *opaque, graft_shape *shape)
{
    bool fits = function_of_two(GRAFT_FOREIGN_MAX, opaque->in[0].dtype) != NULL;
    *shape = opaque->in[0];
    for (uint32_t k = 1; k < 3; k++) {
        fits = fits &&
               (!graft_foreign_has(opaque, k) ||
                (opaque->in[k].dtype == shape->dtype && graft_shape_elements(&opaque->in[k]) == 1));
    }
    return fits;
}

/* The upper bound comes last, and holds where the lower one is above it. */
GRAFT_FOREIGN_RUNNER(clip)
{
    const void *from = opaque->data[0];
    span_function *const function = function_of_two(GRAFT_FOREIGN_MAX, opaque->in[0].dtype);
    for (uint32_t k = 1; k < 3; k++) {
        if (graft_foreign_has(opaque, k)) {
            const span s = {
                .in = {from, opaque->data[k]},
                .step = {1,    0              },
                .out = out,
                .count = graft_count(&opaque->out),
                .code = k == 1 ? GRAFT_FOREIGN_MAX : GRAFT_FOREIGN_MIN
            };
            (void)function(&s);
            from = out;
        }
    }
    if (from != out) {
        memcpy(out, from, (size_t)graft_shape_bytes(&opaque->out));
    }
    return GRAFT_OK;
}

GRAFT_FOREIGN_RUNNER(where)
{
    return run_spans(env, opaque, out,
                     (loop){function_of_width(graft_type_width(opaque->out.dtype)), 3});
}

/* -------------------------------------------------------------------------------- ranges */

/* Numbers of input `k`, one, of any type. */
static double bound_of(const graft_opaque *opaque, uint32_t k)
{
    float number = 0.0F;
    if (opaque->in[k].dtype != GRAFT_DTYPE_F32) {
        return (double)graft_foreign_whole(opaque, k, 0);
    }
    memcpy(&number, opaque->data[k], sizeof(number));
    return (double)number;
}

/* Between bounds that binary64 holds exactly. */
bool graft_foreign_range_shape(const graft_opaque *opaque, graft_shape *shape)
{
    static const double most = 0x1p52;
    const uint8_t dtype = opaque->in[0].dtype;
    bool fits = is_base(dtype);
    double bounds[3] = {0.0, 0.0, 0.0};
    for (uint32_t k = 0; k < 3 && fits; k++) {
        fits = opaque->in[k].dtype == dtype && graft_shape_elements(&opaque->in[k]) == 1 &&
               opaque->data[k] != NULL;
        bounds[k] = fits ? bound_of(opaque, k) : 0.0;
        fits = fits && bounds[k] >= -most && bounds[k] <= most;
    }
    if (!fits || bounds[2] == 0.0) {
        return false;
    }
    const double count = ceil((bounds[1] - bounds[0]) / bounds[2]);
    shape->rank = 1;
    shape->dtype = dtype;
    return count >= 1.0 && count <= (double)INT32_MAX &&
           graft_foreign_size(shape, 0, (int64_t)count);
}

GRAFT_FOREIGN_RUNNER(range)
{
    for (int32_t i = 0; i < opaque->out.dims[0]; i++) {
        if (opaque->out.dtype == GRAFT_DTYPE_F32) {
            ((float *)out)[i] = (float)bound_of(opaque, 0) + (float)i * (float)bound_of(opaque, 2);
            continue;
        }
        const int64_t number =
            graft_foreign_whole(opaque, 0, 0) + i * graft_foreign_whole(opaque, 2, 0);
        graft_whole_put(out, opaque->out.dtype, (size_t)i, number);
    }
    return GRAFT_OK;
}

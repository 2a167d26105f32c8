/* foreign_rows.h - what the rows of foreign.c are made of; private to graph/meaning/. */
#pragma once

#include "graph/base/bits.h"
#include "graph/meaning/foreign.h"

#include "graph/onnx/onnx_attribute.h"

#include <math.h>

/* Attributes: false for forms that are not run. */
typedef bool graft_foreign_reader(const Onnx__NodeProto *node, graft_opaque *opaque);
/* See graft_foreign_shape; the types of inputs are looked at as well. */
typedef bool graft_foreign_shaper(const graft_opaque *opaque, graft_shape *shape);
/* The result has the shape that the shaper gives; of a joint row all results are in
 * opaque->made. */
typedef graft_status graft_foreign_runner(graft_env *env, const graft_opaque *opaque, void *out);
/* What a runner finds in opaque->kept: made of the inputs that the row says, in `arena`. */
typedef void *graft_foreign_keeper(graft_arena *arena, const graft_opaque *opaque);

/* Functions of one or two numbers. */
typedef enum graft_foreign_code {
    GRAFT_FOREIGN_NONE,
    GRAFT_FOREIGN_ABS,
    GRAFT_FOREIGN_NEG,
    GRAFT_FOREIGN_SIGN,
    GRAFT_FOREIGN_BIT_NOT, /* Of whole numbers. */
    GRAFT_FOREIGN_CEIL,    /* From here on of binary32. */
    GRAFT_FOREIGN_FLOOR,
    GRAFT_FOREIGN_ROUND,
    GRAFT_FOREIGN_TAN,
    GRAFT_FOREIGN_ASIN,
    GRAFT_FOREIGN_ACOS,
    GRAFT_FOREIGN_ATAN,
    GRAFT_FOREIGN_SINH,
    GRAFT_FOREIGN_ASINH,
    GRAFT_FOREIGN_ACOSH,
    GRAFT_FOREIGN_ATANH,
    GRAFT_FOREIGN_SHRINK, /* By two numbers: nearer to 0 by one where farther than the other. */
    GRAFT_FOREIGN_ABOVE,  /* Itself where above a number, else 0. */
    GRAFT_FOREIGN_IS_NAN, /* From here on truth values. */
    GRAFT_FOREIGN_IS_INF,
    GRAFT_FOREIGN_IS_INF_ABOVE,
    GRAFT_FOREIGN_IS_INF_BELOW,
    GRAFT_FOREIGN_EQUAL,
    GRAFT_FOREIGN_LESS,
    GRAFT_FOREIGN_GREATER,
    GRAFT_FOREIGN_AT_MOST,
    GRAFT_FOREIGN_AT_LEAST,
    GRAFT_FOREIGN_AND,
    GRAFT_FOREIGN_OR,
    GRAFT_FOREIGN_XOR,
    GRAFT_FOREIGN_NOT,
    GRAFT_FOREIGN_ADD,
    GRAFT_FOREIGN_SUB,
    GRAFT_FOREIGN_MUL,
    GRAFT_FOREIGN_DIV,
    GRAFT_FOREIGN_MOD,
    GRAFT_FOREIGN_MIN,
    GRAFT_FOREIGN_MAX,
    GRAFT_FOREIGN_REST, /* Mod with the sign of the dividend. */
    GRAFT_FOREIGN_POW,
    GRAFT_FOREIGN_BIT_AND, /* From here on of whole numbers. */
    GRAFT_FOREIGN_BIT_OR,
    GRAFT_FOREIGN_BIT_XOR,
    GRAFT_FOREIGN_SUM, /* Along axes. */
    GRAFT_FOREIGN_SUM_MEAN,
    GRAFT_FOREIGN_SUM_PRODUCT,
    GRAFT_FOREIGN_SUM_MAX,
    GRAFT_FOREIGN_SUM_MIN,
    GRAFT_FOREIGN_SUM_ABS,
    GRAFT_FOREIGN_SUM_SQUARE,
    GRAFT_FOREIGN_SUM_ROOT, /* From here on of binary32: of the sum of squares; its logarithm;... */
    GRAFT_FOREIGN_SUM_LOG,
    GRAFT_FOREIGN_SUM_EXP /* ...the logarithm of the sum of exponentials. */
} graft_foreign_code;

/* Sets the axis that a node names of `rank`; false when there is none such. */
bool graft_foreign_read_axis(const Onnx__NodeProto *node, graft_opaque *opaque, int64_t rank,
                             int64_t absent);
/* The bits of a binary32 number. */
int32_t graft_foreign_float(const Onnx__NodeProto *node, const char *name, float absent);
/* Whether input `k` is given. */
bool graft_foreign_has(const graft_opaque *opaque, uint32_t k);
/* Number `i` of whole numbers or truth values. */
int64_t graft_foreign_whole(const graft_opaque *opaque, uint32_t k, uint32_t i);
/* Bytes of an element of a tensor. */
size_t graft_foreign_width(const graft_shape *shape);
/* uint8 or int8. */
bool graft_foreign_is_byte(uint32_t dtype);
/* How many numbers the list that is input `k` has; UINT32_MAX when it is none, or not known. */
uint32_t graft_foreign_list(const graft_opaque *opaque, uint32_t k);
/* The shape of inputs `first`, `first` + `by`... side by side along the axis. */
bool graft_foreign_beside(const graft_opaque *opaque, uint32_t first, uint32_t by,
                          graft_shape *shape);
/* Sets a size; false when a tensor cannot have it. */
bool graft_foreign_size(graft_shape *shape, uint32_t axis, int64_t size);

/* foreign_numbers.c: the shape to which inputs 0, `by`... before `end` are stretched, its rank 0 at
 * first; false when they do not fit. */
bool graft_foreign_stretch(const graft_opaque *opaque, uint32_t end, uint32_t by,
                           graft_shape *shape);
/* Numbers of a type that are added to others, or the like. */
bool graft_foreign_can_merge(int32_t code, uint32_t dtype);
void graft_foreign_merge(int32_t code, uint32_t dtype, const void *from, size_t count, void *to);

/* The least byte of a type. */
static inline float graft_foreign_least(uint32_t dtype)
{
    return dtype == GRAFT_DTYPE_I8 ? -128.0F : 0.0F;
}

/* Rounds, moves by the zero point, saturates; NaN gives the least number. The bits of the byte,
 * which are those of the number modulo 256. */
static inline uint8_t graft_foreign_round(float value, float zero, float least)
{
    value = rintf(value) + zero;
    value = value >= least ? value : least;
    value = value < least + 255.0F ? value : least + 255.0F;
    return (uint8_t)(int32_t)value;
}

/* foreign_bytes.c: numbers as DynamicQuantizeLinear makes them, rows of `columns` each `step`
 * apart, and their zero point; returns their scale. */
float graft_foreign_quantise(const float *x, size_t rows, size_t columns, size_t step, uint8_t *out,
                             int32_t *zero);
/* Elements from one zero point of input `k` to the next: 0 where there is one for all, or none. */
size_t graft_foreign_zero_step(const graft_opaque *opaque, uint32_t k);
/* Zero points, input 2, of rows of input 0, as those of graft_byte_rows; after `period` of them
 * they are repeated. */
int32_t *graft_foreign_row_zeros(graft_arena *scratch, const graft_opaque *opaque, size_t rows,
                                 size_t period);

/* foreign_windows.c: a sum of products. */
float graft_foreign_dot_real(const float *x, const float *w, int64_t count);

/* A runner's head: its arguments are `env`, `opaque` and `out`. */
#define GRAFT_FOREIGN_RUNNER(name)                                                                 \
    graft_status graft_foreign_##name(__attribute__((unused)) graft_env *env,                      \
                                      const graft_opaque *opaque,                                  \
                                      __attribute__((unused)) void *out)

/* What the rows name; `nothing` is without attributes, and keeps nothing. */
#define FOREIGN(op_type, attributes, read, name, code, least, most, by_number, outputs, keep,      \
                kept, joint)                                                                       \
    graft_foreign_reader graft_foreign_read_##read;                                                \
    graft_foreign_shaper graft_foreign_##name##_shape;                                             \
    graft_foreign_runner graft_foreign_##name;                                                     \
    graft_foreign_keeper graft_foreign_keep_##keep;
#include "graph/meaning/foreign.def"

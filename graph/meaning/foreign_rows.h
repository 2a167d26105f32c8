/* foreign_rows.h - what the rows of foreign.c are made of; private to graph/meaning/. */
#ifndef GRAFT_FOREIGN_ROWS_H
#define GRAFT_FOREIGN_ROWS_H

#include "graph/base/bits.h"
#include "graph/meaning/foreign.h"

#include "graph/onnx/onnx_attribute.h"

#include <math.h>

/* Attributes: false for forms that are not run. */
typedef bool graft_foreign_reader(const Onnx__NodeProto *node, graft_opaque *opaque);
/* See graft_foreign_shape; the types of inputs are looked at as well. */
typedef bool graft_foreign_shaper(const graft_opaque *opaque, graft_shape *shape);
/* The result has the shape that the shaper gives. */
typedef graft_status graft_foreign_runner(graft_env *env, const graft_opaque *opaque, void *out);
/* All results at once; NULL: not wanted. */
typedef void graft_foreign_joint_runner(graft_env *env, const graft_opaque *opaque,
                                        void *const *out);
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
/* The place of a text attribute in a list that ends with NULL; `absent` when it is not given, -1
 * when it is not in the list. */
int32_t graft_foreign_choice(const Onnx__NodeProto *node, const char *name,
                             const char *const *choices, int32_t absent);
/* Whether input `k` is given. */
bool graft_foreign_has(const graft_opaque *opaque, uint32_t k);
/* Number `i` of whole numbers or truth values. */
int64_t graft_foreign_whole(const graft_opaque *opaque, uint32_t k, uint32_t i);
/* Sets element `i` to a whole number, of which narrower types have the last bits. */
void graft_foreign_put(void *out, uint32_t dtype, size_t i, int64_t number);
/* Bytes of an element of a tensor. */
size_t graft_foreign_width(const graft_shape *shape);
/* uint8 or int8. */
bool graft_foreign_is_byte(uint32_t dtype);
/* How many numbers the list that is input `k` has; UINT32_MAX when it is none, or not known. */
uint32_t graft_foreign_list(const graft_opaque *opaque, uint32_t k);
/* Sets a size; false when a tensor cannot have it. */
bool graft_foreign_size(graft_shape *shape, uint32_t axis, int64_t size);

/* foreign_numbers.c: numbers of a type that are added to others, or the like. */
bool graft_foreign_can_merge(int32_t code, uint32_t dtype);
void graft_foreign_merge(int32_t code, uint32_t dtype, const void *from, size_t count, void *to);
graft_foreign_reader graft_foreign_read_inf, graft_foreign_read_mod, graft_foreign_read_shrink,
    graft_foreign_read_above;
graft_foreign_shaper graft_foreign_one_shape, graft_foreign_two_shape, graft_foreign_where_shape,
    graft_foreign_range_shape, graft_foreign_clip_shape;
graft_foreign_runner graft_foreign_one, graft_foreign_two, graft_foreign_where, graft_foreign_range,
    graft_foreign_clip;

/* foreign_places.c */
graft_foreign_reader graft_foreign_read_pad, graft_foreign_read_slice, graft_foreign_read_transpose,
    graft_foreign_read_concat, graft_foreign_read_split;
graft_foreign_shaper graft_foreign_expand_shape, graft_foreign_tile_shape, graft_foreign_pad_shape,
    graft_foreign_slice_shape, graft_foreign_transpose_shape, graft_foreign_concat_shape,
    graft_foreign_split_shape;
graft_foreign_runner graft_foreign_expand, graft_foreign_tile, graft_foreign_pad,
    graft_foreign_slice, graft_foreign_transpose, graft_foreign_concat, graft_foreign_split;

/* foreign_indices.c */
graft_foreign_reader graft_foreign_read_index, graft_foreign_read_one_hot, graft_foreign_read_trilu,
    graft_foreign_read_eye, graft_foreign_read_reverse;
graft_foreign_shaper graft_foreign_gather_elements_shape, graft_foreign_scatter_elements_shape,
    graft_foreign_gather_nd_shape, graft_foreign_scatter_nd_shape, graft_foreign_one_hot_shape,
    graft_foreign_trilu_shape, graft_foreign_eye_shape, graft_foreign_reverse_shape,
    graft_foreign_features_shape;
graft_foreign_runner graft_foreign_gather_elements, graft_foreign_scatter_elements,
    graft_foreign_gather_nd, graft_foreign_scatter_nd, graft_foreign_one_hot, graft_foreign_trilu,
    graft_foreign_eye, graft_foreign_reverse, graft_foreign_features;

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

/* foreign_bytes.c: numbers as DynamicQuantizeLinear makes them, rows of `columns` each `step` apart,
 * and their zero point; returns their scale. */
float graft_foreign_quantise(const float *x, size_t rows, size_t columns, size_t step, uint8_t *out,
                             int32_t *zero);
/* Elements from one zero point of input `k` to the next: 0 where there is one for all, or none. */
size_t graft_foreign_zero_step(const graft_opaque *opaque, uint32_t k);
/* Zero points, input 2, of rows of input 0, as those of graft_byte_rows; after `period` of them they
 * are repeated. */
int32_t *graft_foreign_row_zeros(graft_arena *scratch, const graft_opaque *opaque, size_t rows,
                                 size_t period);
graft_foreign_keeper graft_foreign_keep_matmul, graft_foreign_keep_gemm, graft_foreign_keep_bits;
graft_foreign_reader graft_foreign_read_gemm, graft_foreign_read_map, graft_foreign_read_mean,
    graft_foreign_read_join, graft_foreign_read_part, graft_foreign_read_bits;
graft_foreign_shaper graft_foreign_dynamic_shape, graft_foreign_matmul_shape,
    graft_foreign_gemm_shape, graft_foreign_bytes_shape, graft_foreign_map_shape,
    graft_foreign_mean_shape, graft_foreign_join_shape, graft_foreign_part_shape,
    graft_foreign_bits_shape;
graft_foreign_joint_runner graft_foreign_dynamic;
graft_foreign_runner graft_foreign_matmul, graft_foreign_gemm, graft_foreign_bytes,
    graft_foreign_map, graft_foreign_mean, graft_foreign_join, graft_foreign_part,
    graft_foreign_bits;

/* foreign_sums.c */
graft_foreign_reader graft_foreign_read_reduce, graft_foreign_read_arg, graft_foreign_read_top,
    graft_foreign_read_cumsum, graft_foreign_read_einsum;
graft_foreign_shaper graft_foreign_reduce_shape, graft_foreign_arg_shape, graft_foreign_top_shape,
    graft_foreign_cumsum_shape, graft_foreign_einsum_shape;
graft_foreign_joint_runner graft_foreign_top;
graft_foreign_runner graft_foreign_reduce, graft_foreign_arg, graft_foreign_cumsum,
    graft_foreign_einsum;

/* foreign_recurrent.c */
graft_foreign_reader graft_foreign_read_lstm;
graft_foreign_shaper graft_foreign_lstm_shape;
graft_foreign_keeper graft_foreign_keep_lstm;
graft_foreign_joint_runner graft_foreign_lstm;

/* foreign_images.c: a sum of products; those of `x` are `step` elements apart. */
float graft_foreign_dot_real(const float *x, const float *w, int64_t count, int64_t step);
graft_foreign_reader graft_foreign_read_resize, graft_foreign_read_upsample, graft_foreign_read_lrn,
    graft_foreign_read_conv, graft_foreign_read_grid, graft_foreign_read_transposed;
graft_foreign_shaper graft_foreign_resize_shape, graft_foreign_lrn_shape, graft_foreign_conv_shape,
    graft_foreign_conv_integer_shape, graft_foreign_grid_shape, graft_foreign_transposed_shape;
graft_foreign_keeper graft_foreign_keep_conv;
graft_foreign_runner graft_foreign_resize, graft_foreign_lrn, graft_foreign_conv,
    graft_foreign_conv_integer, graft_foreign_grid, graft_foreign_transposed;

#endif

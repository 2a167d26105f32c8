/* foreign_rows.h - what the rows of foreign.c are made of; private to graph/meaning/foreign*.c. */
#ifndef GRAFT_FOREIGN_ROWS_H
#define GRAFT_FOREIGN_ROWS_H

#include "graph/meaning/foreign.h"

/* Attributes: false for forms that are not run. */
typedef bool graft_foreign_reader(const Onnx__NodeProto *node, graft_opaque *opaque);
/* See graft_foreign_shape; the types of inputs are looked at as well. */
typedef bool graft_foreign_shaper(const graft_opaque *opaque, const void *const *in,
                                  graft_shape *shape);
/* The result has the shape that the shaper gives. */
typedef graft_status graft_foreign_runner(graft_env *env, const graft_opaque *opaque,
                                          const void *const *in, void *out);

/* Functions of one or two numbers. */
typedef enum graft_foreign_code {
    GRAFT_FOREIGN_NONE,
    GRAFT_FOREIGN_ABS,
    GRAFT_FOREIGN_NEG,
    GRAFT_FOREIGN_SIGN,
    GRAFT_FOREIGN_CEIL, /* From here on of binary32. */
    GRAFT_FOREIGN_FLOOR,
    GRAFT_FOREIGN_ROUND,
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
    GRAFT_FOREIGN_MAX
} graft_foreign_code;

/* NULL when it is not given. */
const Onnx__AttributeProto *graft_foreign_attribute(const Onnx__NodeProto *node, const char *name);
int64_t graft_foreign_int(const Onnx__NodeProto *node, const char *name, int64_t absent);
/* The bits of a binary32 number. */
int32_t graft_foreign_float(const Onnx__NodeProto *node, const char *name, float absent);
/* The place of a text attribute in a list that ends with NULL; `absent` when it is not given, -1
 * when it is not in the list. */
int32_t graft_foreign_choice(const Onnx__NodeProto *node, const char *name,
                             const char *const *choices, int32_t absent);
float graft_foreign_number(int32_t bits);
/* Whether input `k` is given. */
bool graft_foreign_has(const graft_opaque *opaque, uint32_t k);
/* Number `i` of a list of int32 or int64. */
int64_t graft_foreign_whole(const graft_opaque *opaque, const void *const *in, uint32_t k,
                            uint32_t i);
/* How many numbers the list that is input `k` has; UINT32_MAX when it is none, or not known. */
uint32_t graft_foreign_list(const graft_opaque *opaque, const void *const *in, uint32_t k);
/* Sets a size; false when a tensor cannot have it. */
bool graft_foreign_size(graft_shape *shape, uint32_t axis, int64_t size);

/* foreign_numbers.c */
graft_foreign_shaper graft_foreign_one_shape, graft_foreign_two_shape, graft_foreign_where_shape,
    graft_foreign_range_shape;
graft_foreign_runner graft_foreign_one, graft_foreign_two, graft_foreign_where, graft_foreign_range;

/* foreign_places.c */
graft_foreign_reader graft_foreign_read_pad, graft_foreign_read_slice, graft_foreign_read_transpose,
    graft_foreign_read_concat;
graft_foreign_shaper graft_foreign_expand_shape, graft_foreign_tile_shape, graft_foreign_pad_shape,
    graft_foreign_slice_shape, graft_foreign_transpose_shape, graft_foreign_concat_shape;
graft_foreign_runner graft_foreign_expand, graft_foreign_tile, graft_foreign_pad,
    graft_foreign_slice, graft_foreign_transpose, graft_foreign_concat;

/* foreign_images.c */
graft_foreign_reader graft_foreign_read_resize, graft_foreign_read_upsample, graft_foreign_read_lrn,
    graft_foreign_read_conv;
graft_foreign_shaper graft_foreign_resize_shape, graft_foreign_lrn_shape, graft_foreign_conv_shape;
graft_foreign_runner graft_foreign_resize, graft_foreign_lrn, graft_foreign_conv;

#endif

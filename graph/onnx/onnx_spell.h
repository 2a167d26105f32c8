/* onnx_spell.h - algorithms spelt out: the ONNX nodes of each (algorithms.h); private to
 * graph/onnx/. */
#pragma once

#include "graph/onnx/onnx.h"

/* Numbers of an LRN. */
enum { GRAFT_LRN_ALPHA, GRAFT_LRN_BETA, GRAFT_LRN_BIAS, GRAFT_SITE_NUMBERS };

/* What is known of a node. */
typedef struct graft_onnx_site {
    graft_shape x; /* Its first input and its output: images, any number of them. */
    graft_shape y;
    const graft_model_weight *filter; /* Of a Conv; the slopes of a PRelu; NULL: none. */
    const graft_model_weight *bias;   /* NULL: none. */
    int32_t taps[2];                  /* Along rows and columns; of an LRN the channels. */
    int32_t pads[2];                  /* Above and to the left. */
    uint32_t outputs[2];              /* Of a tile of Winograd's. */
    float numbers[GRAFT_SITE_NUMBERS];
    uint32_t others; /* As in graft_algorithm_class. */
} graft_onnx_site;

/* Nodes and initializers that are being written, in `arena`. */
typedef struct graft_onnx_spelling {
    graft_arena *arena;
    const graft_onnx *onnx; /* Whose names are taken. */
    graft_names *given;     /* New names. */
    Onnx__NodeProto **nodes;
    uint32_t node_count;
    uint32_t node_capacity;
    Onnx__TensorProto **tensors;
    uint32_t tensor_count;
    uint32_t tensor_capacity;
} graft_onnx_spelling;

void graft_onnx_spelling_open(graft_arena *arena, const graft_onnx *onnx, graft_onnx_spelling *s);
/* Writes the file with these nodes in place of its own. Initializers that they read no more are left
 * out. Fails as graft_model_write does. */
GRAFT_MUST_USE graft_status graft_onnx_spelling_write(graft_env *env, const graft_onnx_spelling *s,
                                                      const char *path);
/* Initializers that are no inputs came with IR version 4: of an older message they are no longer
 * listed as such. */
void graft_onnx_spell_free_weights(graft_arena *arena, const graft_onnx *onnx,
                                   Onnx__ModelProto *proto);
/* A new name within what makes `y`. */
const char *graft_onnx_spell_name(graft_onnx_spelling *s, const char *y, const char *part);
/* New initializers, likewise; their names. Floats are borrowed; whole numbers are a list (rank 1) or
 * a scalar (0). */
const char *graft_onnx_spell_floats(graft_onnx_spelling *s, const char *y, const char *part,
                                    const float *data, const int64_t *dims, size_t rank);
const char *graft_onnx_spell_ints(graft_onnx_spelling *s, const char *y, const char *part,
                                  const int64_t *items, size_t count, size_t rank);
/* A node of one input, or of two unless `b` is NULL; the name of its new output. */
const char *graft_onnx_spell_step(graft_onnx_spelling *s, const char *y, const char *op,
                                  const char *a, const char *b);
/* A node or an initializer as it is. */
void graft_onnx_spell_node(graft_onnx_spelling *s, Onnx__NodeProto *node);
void graft_onnx_spell_tensor(graft_onnx_spelling *s, Onnx__TensorProto *tensor);
/* A copy of a node between other values. */
void graft_onnx_spell_own(graft_onnx_spelling *s, const Onnx__NodeProto *node, const char *x,
                          const char *y);
/* y = `by` x for each channel, or `by` slopes(c) x: a convolution of one channel each. */
void graft_onnx_spell_scale(graft_onnx_spelling *s, int32_t channels, const float *slopes, float by,
                            const char *x, const char *y);
/* A convolution as Winograd's (onnx_winograd.h), in six steps: patches of each channel at its
 * points (a convolution with a table), points first, a product for each point (a convolution in
 * groups), outputs of each tile (a product with a table), tiles side by side, and what hangs over
 * cut off. */
void graft_onnx_spell_winograd(graft_onnx_spelling *s, const graft_onnx_site *site, const char *x,
                               const char *y);
/* LRN: x / (bias + alpha mean(x x))^beta, the mean over neighbouring channels by AveragePool. */
void graft_onnx_spell_pool(graft_onnx_spelling *s, const graft_onnx_site *site, const char *x,
                           const char *y);
/* PRelu: relu(x) - slope relu(-x). */
void graft_onnx_spell_two_sides(graft_onnx_spelling *s, const graft_onnx_site *site, const char *x,
                                const char *y);

/* onnx_apart.h - operators that come apart in others of ONNX where a model is read to be run:
 * attention, what runtimes fuse (com.microsoft), Fourier transforms. Rules never see these parts,
 * and nothing of them is written: graft_model_write refuses such a model. Private to graph/onnx/.
 *
 * A node comes apart while the graph is built, when the shapes of its inputs are known. Each part
 * is a node of the message that is read, behind those of the file, and is built as they are, at
 * once: what is known beforehand is worked out, and the shape of its result can be asked for. */
#pragma once

#include "graph/onnx/onnx.h"

/* The name of a tensor; NULL: an input that is not given, or what a refused node would have. */
typedef const char *graft_tensor;

typedef struct graft_apart {
    graft_onnx_reader *reader;
    const Onnx__NodeProto *node;
    const char *refusal;   /* Why the node stays whole, the first reason; NULL so far. */
    graft_tensor *results; /* By output of the node. */
    graft_status status;   /* Of building parts. */
    bool microsoft;        /* The node is one of com.microsoft. */
} graft_apart;

/* Whether the model is read to be run, and the operator is one of those here. */
bool graft_onnx_comes_apart(const graft_onnx_reader *reader, const Onnx__NodeProto *node);
/* Takes a node apart. *refusal says why it stays whole, or is NULL. */
GRAFT_MUST_USE graft_status graft_onnx_take_apart(graft_onnx_reader *reader,
                                                  const Onnx__NodeProto *node,
                                                  const char **refusal);
/* onnx_build.c: builds node `index` of the message, whose inputs were built. */
GRAFT_MUST_USE graft_status graft_onnx_build_node(graft_onnx_reader *reader, uint32_t index);

/* As graft_plan_refuse: a refused node may go on, its tensors are then NULL and shapes of no rank. */
void graft_apart_refuse(graft_apart *apart, const char *reason);
void graft_apart_refuse_if(graft_apart *apart, bool refused, const char *reason);
/* Input `k` of the node; NULL when it is not given or has no elements. */
graft_tensor graft_apart_input(const graft_apart *apart, uint32_t k);
graft_shape graft_apart_shape(const graft_apart *apart, graft_tensor x);
/* Whether it is a tensor of binary32 of so many axes. */
bool graft_apart_is_real(const graft_apart *apart, graft_tensor x, uint32_t rank);
/* Whether something reads output `k`. */
bool graft_apart_is_read(const graft_apart *apart, uint32_t k);
/* Says that output `k` of the node is the x. */
void graft_apart_result(graft_apart *apart, uint32_t k, graft_tensor x);
/* The whole number that input `k` is; `absent` where it is not given, and where it is not known the
 * node is refused. */
int64_t graft_apart_known(graft_apart *apart, uint32_t k, int64_t absent);
double graft_apart_known_real(graft_apart *apart, uint32_t k);
float graft_apart_float(const graft_apart *apart, const char *name, float absent);

/* A part: an operator of ONNX and its attributes, "Transpose perm=0,2,1,3", "Softmax axis=-1",
 * "LeakyRelu alpha=0x1p-3" (%a), "Gelu approximate=tanh"; a name alone, "Conv pads", is what the
 * node has by it. Gives the part's only output. */
#define GRAFT_APART(apart, part, ...)                                                              \
    graft_apart_add((apart), (part), (graft_tensor const[]){__VA_ARGS__},                          \
                    sizeof((graft_tensor const[]){__VA_ARGS__}) / sizeof(graft_tensor))
graft_tensor graft_apart_add(graft_apart *apart, const char *part, const graft_tensor *inputs,
                             size_t count);
/* Likewise of up to three outputs. */
void graft_apart_add_all(graft_apart *apart, const char *part, const graft_tensor *inputs,
                         size_t count, graft_tensor *outputs, size_t output_count);
/* The text of a part with numbers in it. */
const char *graft_apart_text(const graft_apart *apart, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Constants. A real tensor borrows its data. */
graft_tensor graft_apart_whole(graft_apart *apart, const int64_t *numbers, uint32_t count);
graft_tensor graft_apart_real(graft_apart *apart, const float *data, const int32_t *dims,
                              uint32_t rank);
graft_tensor graft_apart_number(graft_apart *apart, float number);
/* `count` numbers first + i step, as a tensor whose other sizes are 1. */
graft_tensor graft_apart_range(graft_apart *apart, float first, float step, int32_t count,
                               uint32_t axis, uint32_t rank);
/* One number again and again. */
graft_tensor graft_apart_filled(graft_apart *apart, const graft_shape *shape, float number);
/* Parts that are often needed. */
#define GRAFT_APART_VIEW(apart, x, ...)                                                            \
    graft_apart_view((apart), (x), (const int64_t[]){__VA_ARGS__},                                 \
                     sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
graft_tensor graft_apart_view(graft_apart *apart, graft_tensor x, const int64_t *dims, size_t rank);
graft_tensor graft_apart_slice(graft_apart *apart, graft_tensor x, int64_t axis, int64_t start,
                               int64_t end);
/* A reduction along one axis. */
graft_tensor graft_apart_reduced(graft_apart *apart, const char *part, graft_tensor x,
                                 int64_t axis);
/* With an axis of 1 more; of any type. */
graft_tensor graft_apart_unsqueezed(graft_apart *apart, graft_tensor x, int64_t axis);
/* A product by a number. */
graft_tensor graft_apart_scaled(graft_apart *apart, graft_tensor x, float factor);

/* Bytes, their zero point, which may be NULL, and their scale. */
typedef struct graft_apart_bytes {
    graft_tensor x;
    graft_tensor zero;
    graft_tensor scale;
} graft_apart_bytes;

/* onnx_apart_fused.c: the product of what bytes stand for. */
graft_tensor graft_apart_of_bytes(graft_apart *apart, graft_apart_bytes a, graft_apart_bytes b);

/* What takes operators apart: one per row. */
typedef void graft_apart_taker(graft_apart *apart);
#define APART(op_type, taker, attributes) graft_apart_taker graft_apart_##taker;
#include "graph/onnx/onnx_apart.def"

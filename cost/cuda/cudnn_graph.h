/* cudnn_graph.h - operation graphs of cuDNN's backend API, and the engines that run them.
 *
 * A graph is built by calls that do nothing once one of them failed; the first failure stays in
 * `status`. What cuDNN does not support is GRAFT_UNSUPPORTED without a message: there is no such
 * implementation then. Everything else carries cuDNN's own words. The API is that of cudnn_graph.h,
 * version 9; https://docs.nvidia.com/deeplearning/cudnn/backend has the meaning of attributes. */
#pragma once

#include "cost/cuda/real.h"
#include "graph/base/env.h"

#include <cudnn.h>

enum { CUDNN_OWNED = 96, CUDNN_OPS = 12, CUDNN_DIMS = 6, CUDNN_TAG_BYTES = 24 };

/* A tensor of a graph. Dimensions of images are (n, c, h, w) in every layout. */
typedef struct cudnn_tensor {
    uint32_t rank;
    int64_t dims[CUDNN_DIMS];
    int64_t strides[CUDNN_DIMS];
    cudnnDataType_t type;
    int64_t uid;
    bool is_virtual;  /* Between operations; never in memory. */
    bool is_by_value; /* A number of the host's. */
} cudnn_tensor;

typedef struct cudnn_graph {
    graft_env *env;
    const char *family;  /* Of implementations, for the log. */
    const char *subject; /* What is run by it: a signature, for the log. */
    graft_status status;
    cudnnBackendDescriptor_t owned[CUDNN_OWNED];
    cudnnBackendDescriptor_t ops[CUDNN_OPS];
    uint32_t owned_count;
    uint32_t op_count;
    bool multiplies; /* Matrices; else a convolution, or */
    bool pools;      /* a pool. */
    bool has_tanh;
    bool is_grouped;                /* The convolution is. */
    cudnnBackendDescriptor_t graph; /* After cudnn_graph_finish. */
} cudnn_graph;

/* What graphs are planned for: a handle of a GPU that is here, or the description of one. */
typedef struct cudnn_target {
    cudnnHandle_t handle;            /* NULL: */
    cudnnBackendDescriptor_t device; /* a device property descriptor. */
    cuda_type type;                  /* Which engines are allowed, see cudnn_graph_engines. */
} cudnn_target;

/* GRAFT_UNSUPPORTED without a message for what is not supported; GRAFT_NO_MEMORY or GRAFT_INTERNAL
 * with cuDNN's last words for `what`. */
graft_status cudnn_status(graft_env *env, cudnnStatus_t result, const char *what);

void cudnn_destroy(cudnnBackendDescriptor_t descriptor); /* NULL is allowed. */
void cudnn_graph_begin(graft_env *env, cudnn_graph *graph);
void cudnn_graph_close(cudnn_graph *graph);

cudnnBackendDescriptor_t cudnn_graph_tensor(cudnn_graph *graph, const cudnn_tensor *tensor);

typedef struct cudnn_window {
    int64_t kernel[2]; /* Pools only. */
    int64_t stride[2];
    int64_t before[2];
    int64_t after[2];
    int64_t dilation[2]; /* Convolutions only. */
    int32_t groups;      /* Likewise. */
} cudnn_window;

/* y = convolution of x by w, summed in binary32. */
void cudnn_graph_conv(cudnn_graph *graph, const cudnn_window *window, cudnnBackendDescriptor_t x,
                      cudnnBackendDescriptor_t w, cudnnBackendDescriptor_t y);
/* y = a b */
void cudnn_graph_matmul(cudnn_graph *graph, cudnnBackendDescriptor_t a, cudnnBackendDescriptor_t b,
                        cudnnBackendDescriptor_t y);
/* y = mode(x) or, when b is not NULL, mode(x, b). `clips`, unless NULL: lower, upper bound and
 * slope below the lower bound, of CUDNN_POINTWISE_RELU_FWD. */
void cudnn_graph_pointwise(cudnn_graph *graph, cudnnPointwiseMode_t mode,
                           cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b,
                           cudnnBackendDescriptor_t y, const double *clips);
/* y = the sum (CUDNN_REDUCE_TENSOR_ADD) or largest (_MAX) over the axes in which y has size 1. */
void cudnn_graph_reduce(cudnn_graph *graph, cudnnReduceTensorOp_t mode, cudnnBackendDescriptor_t x,
                        cudnnBackendDescriptor_t y);
void cudnn_graph_pool(cudnn_graph *graph, cudnnResampleMode_t mode, const cudnn_window *window,
                      cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t y);
/* y = layer normalisation of x by scale and bias, all of x's dimensions but the first */
void cudnn_graph_layer_norm(cudnn_graph *graph, cudnnBackendDescriptor_t x,
                            cudnnBackendDescriptor_t scale, cudnnBackendDescriptor_t bias,
                            cudnnBackendDescriptor_t epsilon, cudnnBackendDescriptor_t y);
/* Makes the graph of the operations so far. `target->handle` may be NULL. */
graft_status cudnn_graph_finish(cudnn_graph *graph, const cudnn_target *target);

/* An engine with its settings is known by a tag: its number, and a hash of its knobs. */
typedef struct cudnn_tag {
    char text[CUDNN_TAG_BYTES];
} cudnn_tag;

/* An engine configuration that cuDNN's heuristics propose for a graph, and the plan made of it. */
typedef struct cudnn_offer {
    cudnnBackendDescriptor_t config;
    cudnn_tag tag;
    bool is_fallback;
    bool is_tried;
    graft_status status; /* Of planning, once tried. */
    cudnnBackendDescriptor_t plan;
    size_t workspace_bytes;
} cudnn_offer;

/* Best first, each engine with its settings once; fallbacks are behind the others. Left out are
 * engines that round more than the type allows: for CUDA_F32 those that use tensor cores; always
 * those that convert inputs to smaller types or add up in less than binary32. Every engine that is
 * left out, and why, is logged at level 2. */
typedef struct cudnn_offers {
    cudnnBackendDescriptor_t heuristics[2];
    cudnn_offer *list; /* From malloc. */
    uint32_t count;
} cudnn_offers;

/* GRAFT_OK with an empty list when cuDNN has nothing to propose, which is logged with its words. */
graft_status cudnn_offers_ask(cudnn_graph *graph, const cudnn_target *target, cudnn_offers *offers);
void cudnn_offers_close(cudnn_offers *offers);
/* Makes the plan of an offer, once. GRAFT_UNSUPPORTED without a message when cuDNN cannot run it
 * after all: its words are logged at level 2. */
graft_status cudnn_offer_plan(const cudnn_graph *graph, const cudnn_target *target,
                              cudnn_offer *offer);

/* Pointers by unique id for one run; the caller destroys `*pack`. */
graft_status cudnn_variant_pack(graft_env *env, uint32_t count, const int64_t *uids,
                                void *const *pointers, void *workspace,
                                cudnnBackendDescriptor_t *pack);

/* A device that is not here, by its properties in cuDNN's JSON (the text of a file): graphs can be
 * planned for it, not run. GRAFT_BAD_INPUT when cuDNN does not take them. */
graft_status cudnn_describe_device(graft_env *env, const char *json,
                                   cudnnBackendDescriptor_t *device);

/* cudnn_graph.c - building operation graphs and choosing engines for them (see cudnn_graph.h). */
#include "cost/cuda/cudnn_graph.h"

#include "graph/base/log.h"

#include <stdlib.h>
#include <string.h>

#if CUDNN_VERSION < 90800
#error "cuDNN 9.8 or newer is needed: older ones know no device property descriptors"
#endif

enum { WORDS_BYTES = 512, ALIGNMENT = 16, CONFIGS_MOST = 64 };

graft_status cudnn_status(graft_env *env, cudnnStatus_t result, const char *what)
{
    char words[WORDS_BYTES] = "";
    if (result == CUDNN_STATUS_SUCCESS) {
        return GRAFT_OK;
    }
    if (CUDNN_STATUS_CATEGORY(result) == CUDNN_STATUS_NOT_SUPPORTED) {
        return GRAFT_UNSUPPORTED;
    }
    cudnnGetLastErrorString(words, sizeof(words));
    graft_status status = result == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
                                  result == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED
                              ? GRAFT_NO_MEMORY
                              : GRAFT_INTERNAL;
    return GRAFT_FAIL(env, status, "cuDNN: %s: %s%s%s", what, cudnnGetErrorString(result),
                      words[0] == '\0' ? "" : ": ", words);
}

void cudnn_destroy(cudnnBackendDescriptor_t descriptor)
{
    if (descriptor != NULL) {
        (void)cudnnBackendDestroyDescriptor(descriptor);
    }
}

/* ----------------------------------------------------------------- building */

void cudnn_graph_begin(graft_env *env, cudnn_graph *graph)
{
    memset(graph, 0, sizeof(*graph));
    graph->env = env;
}

void cudnn_graph_close(cudnn_graph *graph)
{
    cudnn_destroy(graph->graph);
    for (uint32_t i = graph->owned_count; i-- > 0;) {
        cudnn_destroy(graph->owned[i]);
    }
    memset(graph, 0, sizeof(*graph));
}

/* While a graph is built cuDNN answers BAD_PARAM to what it does not know how to combine, too. */
static void note(cudnn_graph *graph, cudnnStatus_t result, const char *what)
{
    if (graph->status == GRAFT_OK && result != CUDNN_STATUS_SUCCESS) {
        bool refused = CUDNN_STATUS_CATEGORY(result) == CUDNN_STATUS_BAD_PARAM;
        graph->status = refused ? GRAFT_UNSUPPORTED : cudnn_status(graph->env, result, what);
    }
}

static cudnnBackendDescriptor_t begin(cudnn_graph *graph, cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t descriptor = NULL;
    if (graph->status == GRAFT_OK && graph->owned_count == CUDNN_OWNED) {
        graph->status = GRAFT_FAIL(graph->env, GRAFT_INTERNAL, "too many descriptors in a graph");
    }
    if (graph->status == GRAFT_OK) {
        note(graph, cudnnBackendCreateDescriptor(type, &descriptor), "creating a descriptor");
    }
    if (graph->status == GRAFT_OK) {
        graph->owned[graph->owned_count++] = descriptor;
    }
    return descriptor;
}

static void set(cudnn_graph *graph, cudnnBackendDescriptor_t descriptor,
                cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                const void *values)
{
    if (graph->status == GRAFT_OK) {
        note(graph, cudnnBackendSetAttribute(descriptor, name, type, count, values),
             "setting an attribute");
    }
}

static void set_type(cudnn_graph *graph, cudnnBackendDescriptor_t descriptor,
                     cudnnBackendAttributeName_t name, cudnnDataType_t type)
{
    set(graph, descriptor, name, CUDNN_TYPE_DATA_TYPE, 1, &type);
}

static void set_child(cudnn_graph *graph, cudnnBackendDescriptor_t descriptor,
                      cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t child)
{
    set(graph, descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &child);
}

static void finish(cudnn_graph *graph, cudnnBackendDescriptor_t descriptor, const char *what)
{
    if (graph->status == GRAFT_OK) {
        note(graph, cudnnBackendFinalize(descriptor), what);
    }
}

static void finish_op(cudnn_graph *graph, cudnnBackendDescriptor_t op, const char *what)
{
    finish(graph, op, what);
    if (graph->status == GRAFT_OK) {
        graph->ops[graph->op_count++] = op;
    }
}

cudnnBackendDescriptor_t cudnn_graph_tensor(cudnn_graph *graph, const cudnn_tensor *tensor)
{
    const int64_t alignment = ALIGNMENT;
    const int64_t rank = tensor->rank;
    cudnnBackendDescriptor_t d = begin(graph, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set_type(graph, d, CUDNN_ATTR_TENSOR_DATA_TYPE, tensor->type);
    set(graph, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, rank, tensor->dims);
    set(graph, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, rank, tensor->strides);
    set(graph, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &tensor->uid);
    set(graph, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    if (tensor->is_virtual) {
        set(graph, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &tensor->is_virtual);
    }
    if (tensor->is_by_value) {
        set(graph, d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &tensor->is_by_value);
    }
    finish(graph, d, "a tensor");
    return d;
}

void cudnn_graph_conv(cudnn_graph *graph, const cudnn_window *window, cudnnBackendDescriptor_t x,
                      cudnnBackendDescriptor_t w, cudnnBackendDescriptor_t y)
{
    const int64_t dimensions = 2;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const float one = 1.0F;
    const float zero = 0.0F;
    cudnnBackendDescriptor_t d = begin(graph, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set_type(graph, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    set(graph, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(graph, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dimensions);
    set(graph, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, window->before);
    set(graph, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, window->after);
    set(graph, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, window->stride);
    set(graph, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, window->dilation);
    finish(graph, d, "a convolution");
    cudnnBackendDescriptor_t op =
        begin(graph, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    set_child(graph, op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, d);
    set_child(graph, op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x);
    set_child(graph, op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w);
    set_child(graph, op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y);
    set(graph, op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1, &one);
    set(graph, op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1, &zero);
    finish_op(graph, op, "a convolution");
    graph->is_grouped = window->groups > 1;
}

void cudnn_graph_matmul(cudnn_graph *graph, cudnnBackendDescriptor_t a, cudnnBackendDescriptor_t b,
                        cudnnBackendDescriptor_t y)
{
    cudnnBackendDescriptor_t d = begin(graph, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    set_type(graph, d, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
    finish(graph, d, "a matrix product");
    cudnnBackendDescriptor_t op = begin(graph, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    set_child(graph, op, CUDNN_ATTR_OPERATION_MATMUL_DESC, d);
    set_child(graph, op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    set_child(graph, op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    set_child(graph, op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, y);
    finish_op(graph, op, "a matrix product");
    graph->multiplies = true;
}

void cudnn_graph_pointwise(cudnn_graph *graph, cudnnPointwiseMode_t mode,
                           cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b,
                           cudnnBackendDescriptor_t y, const double *clips)
{
    static const cudnnBackendAttributeName_t names[3] = {
        CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP,
        CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE};
    cudnnBackendDescriptor_t d = begin(graph, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set(graph, d, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set_type(graph, d, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
    for (uint32_t i = 0; i < 3 && clips != NULL; i++) {
        set(graph, d, names[i], CUDNN_TYPE_DOUBLE, 1, &clips[i]);
    }
    finish(graph, d, "an elementwise function");
    cudnnBackendDescriptor_t op = begin(graph, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set_child(graph, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, d);
    set_child(graph, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b != NULL) {
        set_child(graph, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    }
    set_child(graph, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    finish_op(graph, op, "an elementwise operation");
    graph->has_tanh = graph->has_tanh || mode == CUDNN_POINTWISE_TANH_FWD;
}

void cudnn_graph_reduce(cudnn_graph *graph, cudnnReduceTensorOp_t mode, cudnnBackendDescriptor_t x,
                        cudnnBackendDescriptor_t y)
{
    cudnnBackendDescriptor_t d = begin(graph, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    set(graph, d, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &mode);
    set_type(graph, d, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    finish(graph, d, "a reduction");
    cudnnBackendDescriptor_t op = begin(graph, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    set_child(graph, op, CUDNN_ATTR_OPERATION_REDUCTION_DESC, d);
    set_child(graph, op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    set_child(graph, op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    finish_op(graph, op, "a reduction");
}

void cudnn_graph_pool(cudnn_graph *graph, cudnnResampleMode_t mode, const cudnn_window *window,
                      cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t y)
{
    const int64_t dimensions = 2;
    const cudnnPaddingMode_t padding =
        mode == CUDNN_RESAMPLE_MAXPOOL ? CUDNN_NEG_INF_PAD : CUDNN_ZERO_PAD;
    graph->pools = true;
    cudnnBackendDescriptor_t d = begin(graph, CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
    set(graph, d, CUDNN_ATTR_RESAMPLE_MODE, CUDNN_TYPE_RESAMPLE_MODE, 1, &mode);
    set_type(graph, d, CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_DATA_FLOAT);
    set(graph, d, CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_TYPE_PADDING_MODE, 1, &padding);
    set(graph, d, CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dimensions);
    set(graph, d, CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, CUDNN_TYPE_INT64, 2, window->kernel);
    set(graph, d, CUDNN_ATTR_RESAMPLE_STRIDES, CUDNN_TYPE_INT64, 2, window->stride);
    set(graph, d, CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, window->before);
    set(graph, d, CUDNN_ATTR_RESAMPLE_POST_PADDINGS, CUDNN_TYPE_INT64, 2, window->after);
    finish(graph, d, "a pool");
    cudnnBackendDescriptor_t op = begin(graph, CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR);
    set_child(graph, op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, d);
    set_child(graph, op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, x);
    set_child(graph, op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, y);
    finish_op(graph, op, "a pool");
}

void cudnn_graph_layer_norm(cudnn_graph *graph, cudnnBackendDescriptor_t x,
                            cudnnBackendDescriptor_t scale, cudnnBackendDescriptor_t bias,
                            cudnnBackendDescriptor_t epsilon, cudnnBackendDescriptor_t y)
{
    const cudnnBackendNormMode_t mode = CUDNN_LAYER_NORM;
    const cudnnBackendNormFwdPhase_t phase = CUDNN_NORM_FWD_INFERENCE;
    cudnnBackendDescriptor_t op = begin(graph, CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
    set(graph, op, CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, 1, &mode);
    set(graph, op, CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, 1, &phase);
    set_child(graph, op, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, x);
    set_child(graph, op, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, scale);
    set_child(graph, op, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, bias);
    set_child(graph, op, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, epsilon);
    set_child(graph, op, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, y);
    finish_op(graph, op, "a layer normalisation");
}

graft_status cudnn_graph_finish(cudnn_graph *graph, const cudnn_target *target)
{
    cudnnBackendDescriptor_t d = begin(graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (graph->status == GRAFT_OK) {
        graph->owned_count--; /* It is destroyed first. */
        graph->graph = d;
    }
    set(graph, d, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, graph->op_count,
        graph->ops);
    if (target->handle != NULL) {
        set(graph, d, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &target->handle);
    }
    finish(graph, d, "an operation graph");
    return graph->status;
}

/* ------------------------------------------------------------------ engines */

/* cuDNN's last words, for the log. */
static const char *last_words(char words[WORDS_BYTES])
{
    words[0] = '\0';
    cudnnGetLastErrorString(words, WORDS_BYTES);
    return words[0] == '\0' ? "cuDNN says nothing more" : words;
}

void cudnn_offers_close(cudnn_offers *offers)
{
    for (uint32_t i = 0; i < offers->count; i++) {
        cudnn_destroy(offers->list[i].plan);
        cudnn_destroy(offers->list[i].config);
    }
    for (uint32_t i = 0; i < 2; i++) {
        cudnn_destroy(offers->heuristics[i]);
    }
    free(offers->list);
    memset(offers, 0, sizeof(*offers));
}

typedef struct {
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t count;
    const void *values;
} attribute;

/* A descriptor of these attributes. What is left of one that cannot be is the caller's to destroy,
 * once it has read cuDNN's last words, which are those of the last call. */
static cudnnStatus_t make_descriptor(cudnnBackendDescriptorType_t type, const attribute *attributes,
                                     uint32_t count, cudnnBackendDescriptor_t *made)
{
    *made = NULL;
    cudnnStatus_t result = cudnnBackendCreateDescriptor(type, made);
    for (uint32_t i = 0; i < count && result == CUDNN_STATUS_SUCCESS; i++) {
        const attribute *a = &attributes[i];
        result = cudnnBackendSetAttribute(*made, a->name, a->type, a->count, a->values);
    }
    return result == CUDNN_STATUS_SUCCESS ? cudnnBackendFinalize(*made) : result;
}

static cudnnStatus_t ask_heuristic(const cudnn_graph *graph, const cudnn_target *target,
                                   cudnnBackendHeurMode_t mode, cudnnBackendDescriptor_t *heuristic)
{
    const attribute attributes[] = {
        {CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph->graph  },
        {CUDNN_ATTR_ENGINEHEUR_MODE,            CUDNN_TYPE_HEUR_MODE,          1, &mode          },
        {CUDNN_ATTR_ENGINEHEUR_DEVICEPROP,      CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &target->device},
    };
    return make_descriptor(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, attributes,
                           target->handle == NULL ? 3 : 2, heuristic);
}

/* What the heuristic proposes; `count` is 0 when that is nothing. */
static graft_status propose(cudnn_graph *graph, const cudnn_target *target,
                            cudnnBackendHeurMode_t mode, cudnnBackendDescriptor_t *heuristic,
                            cudnnBackendDescriptor_t configs[CONFIGS_MOST], int64_t *count)
{
    char words[WORDS_BYTES];
    *count = 0;
    cudnnStatus_t result = ask_heuristic(graph, target, mode, heuristic);
    for (uint32_t i = 0; i < CONFIGS_MOST && result == CUDNN_STATUS_SUCCESS; i++) {
        result = cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configs[i]);
    }
    if (result == CUDNN_STATUS_SUCCESS) {
        result =
            cudnnBackendGetAttribute(*heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, CONFIGS_MOST, count, configs);
    }
    *count = result != CUDNN_STATUS_SUCCESS ? 0 : *count > CONFIGS_MOST ? CONFIGS_MOST : *count;
    if (*count == 0) {
        graft_log(graph->env, 2, "%s: cuDNN's %s heuristic proposes nothing: %s; %s", graph->family,
                  mode == CUDNN_HEUR_MODE_FALLBACK ? "fallback" : "first",
                  result == CUDNN_STATUS_SUCCESS ? "no engine" : last_words(words), graph->subject);
    }
    if (result == CUDNN_STATUS_SUCCESS || CUDNN_STATUS_CATEGORY(result) == CUDNN_STATUS_BAD_PARAM) {
        return GRAFT_OK;
    }
    graft_status status = cudnn_status(graph->env, result, "asking for engines");
    return status == GRAFT_UNSUPPORTED ? GRAFT_OK : status;
}

/* Folds the knobs of a configuration into `hash` (FNV-1a). */
static uint32_t hash_knobs(cudnnBackendDescriptor_t config)
{
    cudnnBackendDescriptor_t knobs[CUDNN_KNOB_TYPE_COUNTS] = {NULL};
    int64_t count = 0;
    uint32_t hash = 2166136261U;
    bool made = true;
    for (uint32_t i = 0; i < CUDNN_KNOB_TYPE_COUNTS; i++) {
        made = made && cudnnBackendCreateDescriptor(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
                                                    &knobs[i]) == CUDNN_STATUS_SUCCESS;
    }
    if (!made || cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS,
                                          &count, knobs) != CUDNN_STATUS_SUCCESS) {
        count = 0;
    }
    for (int64_t i = 0; i < count && i < CUDNN_KNOB_TYPE_COUNTS; i++) {
        cudnnBackendKnobType_t type = CUDNN_KNOB_TYPE_COUNTS;
        int64_t value = 0;
        int64_t got = 0;
        (void)cudnnBackendGetAttribute(knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                                       CUDNN_TYPE_KNOB_TYPE, 1, &got, &type);
        (void)cudnnBackendGetAttribute(knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE,
                                       CUDNN_TYPE_INT64, 1, &got, &value);
        hash = (hash ^ (uint32_t)type) * 16777619U;
        hash = (hash ^ (uint32_t)value) * 16777619U;
    }
    for (uint32_t i = 0; i < CUDNN_KNOB_TYPE_COUNTS; i++) {
        cudnn_destroy(knobs[i]);
    }
    return hash;
}

/* Why the results of an engine are not exact enough for the type; NULL: they are. */
static const char *find_fault(cudnnBackendDescriptor_t engine, cuda_type type)
{
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    const char *fault = NULL;
    int64_t count = 0;
    if (cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                 CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count,
                                 notes) != CUDNN_STATUS_SUCCESS) {
        return "cuDNN tells no numerical notes of it";
    }
    for (int64_t i = 0; i < count && i < CUDNN_NUMERICAL_NOTE_TYPE_COUNT; i++) {
        if (notes[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) {
            fault = "note: it converts inputs to a smaller type";
        } else if (notes[i] == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION) {
            fault = "note: it adds up in less than binary32";
        } else if (notes[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && type == CUDA_F32) {
            fault = "note: it uses tensor cores, which fp32 leaves out";
        }
    }
    return fault;
}

/* What engines were seen to do that no note tells (cuDNN 9.19 on an H200; the arbiter sees what is
 * wrong in any engine, the tanh only where sums are large). Engine 1 never ended in four
 * convolutions of 576 channels by themselves in fp16, engine 28 was the last to begin in five
 * convolutions of two groups that took 6 to 26 seconds and one that was ended; neither is the
 * fastest of any that has groups. Without it engine 0 was the last in seventeen that took 5 to 17
 * seconds and in one that was ended, but it is the fastest of two others: how long it takes once
 * decides (measure_cuda.c). */
static const char *find_seen_fault(const cudnn_graph *graph, cuda_type type, int64_t engine)
{
    if (engine == 0 && graph->multiplies && type == CUDA_F32) {
        return "seen: cuBLASLt rounds factors to 10 bits";
    }
    if (engine == 0 && !graph->multiplies && graph->has_tanh) {
        return "seen: its tanh of numbers above 44 is not a number";
    }
    if (engine == 1 && graph->is_grouped) {
        return "seen: it never ends for some channels by themselves";
    }
    if (engine == 28 && graph->is_grouped) {
        return "seen: it takes half a minute for two groups";
    }
    if (engine == 3 && graph->pools && type == CUDA_BF16) {
        return "seen: it is wrong where padding is read";
    }
    return NULL;
}

/* Names the configuration; returns why it is not allowed, or NULL when it is. */
static const char *tag_config(const cudnn_graph *graph, cudnnBackendDescriptor_t config,
                              cuda_type type, cudnn_tag *tag)
{
    cudnnBackendDescriptor_t engine = NULL;
    int64_t count = 0;
    int64_t number = -1;
    const char *fault = NULL;
    bool known = cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) ==
                 CUDNN_STATUS_SUCCESS;
    known = known && cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE,
                                              CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                                              &engine) == CUDNN_STATUS_SUCCESS;
    known =
        known && cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64,
                                          1, &count, &number) == CUDNN_STATUS_SUCCESS;
    fault = known ? find_fault(engine, type) : "cuDNN does not tell its engine";
    fault = fault == NULL ? find_seen_fault(graph, type, number) : fault;
    cudnn_destroy(engine);
    (void)snprintf(tag->text, sizeof(tag->text), "e%lld:%08x", (long long)number,
                   known ? hash_knobs(config) : 0U);
    return fault;
}

static bool is_known(const cudnn_offers *offers, const cudnn_tag *tag)
{
    for (uint32_t i = 0; i < offers->count; i++) {
        if (strcmp(offers->list[i].tag.text, tag->text) == 0) {
            return true;
        }
    }
    return false;
}

/* Keeps what is allowed and new, and destroys the rest. */
static void collect(const cudnn_graph *graph, cuda_type type, bool is_fallback,
                    cudnnBackendDescriptor_t configs[CONFIGS_MOST], int64_t proposed,
                    cudnn_offers *offers)
{
    for (int64_t i = 0; i < CONFIGS_MOST; i++) {
        cudnn_offer offer = {.config = configs[i], .is_fallback = is_fallback};
        const char *fault = i < proposed ? tag_config(graph, configs[i], type, &offer.tag) : "";
        if (i < proposed && fault != NULL) {
            graft_log(graph->env, 2, "%s:%s is left out: %s; %s", graph->family, offer.tag.text,
                      fault, graph->subject);
        }
        if (fault == NULL && !is_known(offers, &offer.tag)) {
            offers->list[offers->count++] = offer;
        } else {
            cudnn_destroy(configs[i]);
        }
    }
}

static const cudnnBackendHeurMode_t modes[2] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};

graft_status cudnn_offers_ask(cudnn_graph *graph, const cudnn_target *target, cudnn_offers *offers)
{
    graft_status status = GRAFT_OK;
    memset(offers, 0, sizeof(*offers));
    offers->list = calloc(2 * CONFIGS_MOST, sizeof(*offers->list));
    if (offers->list == NULL) {
        return GRAFT_FAIL(graph->env, GRAFT_NO_MEMORY, "no memory left for engines");
    }
    for (uint32_t i = 0; i < 2 && status == GRAFT_OK; i++) {
        cudnnBackendDescriptor_t configs[CONFIGS_MOST] = {NULL};
        int64_t proposed = 0;
        status = propose(graph, target, modes[i], &offers->heuristics[i], configs, &proposed);
        collect(graph, target->type, i == 1, configs, proposed, offers);
    }
    if (status != GRAFT_OK) {
        cudnn_offers_close(offers);
    }
    return status;
}

static cudnnStatus_t make_plan(const cudnn_target *target, cudnnBackendDescriptor_t config,
                               cudnnBackendDescriptor_t *plan)
{
    const attribute described = {CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &target->device};
    const attribute there = {CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1,
                             &target->handle};
    const attribute attributes[] = {
        {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config},
        target->handle != NULL ? there : described,
    };
    return make_descriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, attributes, 2, plan);
}

/* Whatever cuDNN says about an engine that it proposed itself: the engine is not a candidate,
 * unless there is no memory left. */
static graft_status judge_plan(const cudnn_graph *graph, cudnnStatus_t result,
                               const cudnn_offer *offer)
{
    char words[WORDS_BYTES];
    if (result == CUDNN_STATUS_SUCCESS) {
        return GRAFT_OK;
    }
    if (result == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
        result == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED) {
        return cudnn_status(graph->env, result, "planning");
    }
    graft_log(graph->env, 2, "%s:%s is refused: %s: %s; %s", graph->family, offer->tag.text,
              cudnnGetErrorString(result), last_words(words), graph->subject);
    return GRAFT_UNSUPPORTED;
}

graft_status cudnn_offer_plan(const cudnn_graph *graph, const cudnn_target *target,
                              cudnn_offer *offer)
{
    int64_t bytes = 0;
    int64_t count = 0;
    if (offer->is_tried) {
        return offer->status;
    }
    cudnnStatus_t result = make_plan(target, offer->config, &offer->plan);
    if (result == CUDNN_STATUS_SUCCESS) {
        result = cudnnBackendGetAttribute(offer->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                          CUDNN_TYPE_INT64, 1, &count, &bytes);
    }
    offer->status = judge_plan(graph, result, offer);
    /* Memory may be there again later. */
    offer->is_tried = offer->status == GRAFT_OK || offer->status == GRAFT_UNSUPPORTED;
    offer->workspace_bytes = bytes > 0 ? (size_t)bytes : 0;
    if (offer->status != GRAFT_OK) {
        cudnn_destroy(offer->plan);
        offer->plan = NULL;
    }
    return offer->status;
}

graft_status cudnn_variant_pack(graft_env *env, uint32_t count, const int64_t *uids,
                                void *const *pointers, void *workspace,
                                cudnnBackendDescriptor_t *pack)
{
    const attribute attributes[] = {
        {CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,    CUDNN_TYPE_INT64,    count, uids      },
        {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointers  },
        {CUDNN_ATTR_VARIANT_PACK_WORKSPACE,     CUDNN_TYPE_VOID_PTR, 1,     &workspace},
    };
    cudnnStatus_t result =
        make_descriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, attributes, 3, pack);
    if (result == CUDNN_STATUS_SUCCESS) {
        return GRAFT_OK;
    }
    cudnn_destroy(*pack);
    *pack = NULL;
    return GRAFT_FAIL(env, GRAFT_INTERNAL, "cuDNN: binding: %s", cudnnGetErrorString(result));
}

graft_status cudnn_describe_device(graft_env *env, const char *json,
                                   cudnnBackendDescriptor_t *device)
{
    char words[WORDS_BYTES] = "";
    const attribute properties = {CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                  (int64_t)strlen(json) + 1, json};
    cudnnStatus_t result =
        make_descriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &properties, 1, device);
    if (result == CUDNN_STATUS_SUCCESS) {
        return GRAFT_OK;
    }
    cudnnGetLastErrorString(words, sizeof(words));
    cudnn_destroy(*device);
    *device = NULL;
    return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "cuDNN does not take these device properties: %s: %s",
                      cudnnGetErrorString(result), words);
}

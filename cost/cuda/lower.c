/* lower.c - from signatures to kernels: which operation graphs of cuDNN and which jobs of our own
 * kernels run an operator (see device_cuda.h).
 *
 *      cudnn    one operation graph in the signature's layout, with bias, residual and activation
 *      split    convolution or product alone by cuDNN, the rest by a kernel of ours
 *      nchw     a convolution channels last, run row-major between two conversions (binary32)
 *      conv     a product as a convolution of one tap (binary32)
 *      thin     our own kernel for products of few rows
 *      softmax  cuDNN's softmax, which is not an operation of graphs
 *      graft    our own kernels
 *
 * Operation graphs name tensors by unique ids: here the number of the kernel's operand plus 1. */
#include "cost/cuda/device_cuda.h"

#include <string.h>

enum { ALIGNMENT = 256, FIRST_VIRTUAL = 100, ENGINES_FUSED = 6, ENGINES_SPLIT = 2 };

static size_t round_up(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static size_t bytes_of(const graft_kernel *k, const graft_shape *shape)
{
    return (size_t)graft_shape_elements(shape) * cuda_type_bytes(k->device->target.type);
}

/* ----------------------------------------------------------------- operands */

static uint32_t add_operand(graft_kernel *k, operand_role role, uint32_t slot, size_t bytes)
{
    kernel_operand *o = &k->operands[k->operand_count];
    o->role = (uint8_t)role;
    o->slot = (uint8_t)slot;
    o->bytes = bytes;
    if (role == ROLE_WORKSPACE) {
        o->offset = k->workspace_bytes;
        k->workspace_bytes += round_up(bytes);
    }
    return k->operand_count++;
}

static bool is_const(const graft_kernel *k, uint32_t slot)
{
    return (k->signature.const_mask >> slot & 1U) != 0;
}

/* A const operand as it is or, for a filter, channels last. */
static graft_status add_fixed(graft_env *env, graft_kernel *k, uint32_t slot, bool nhwc,
                              uint32_t *operand)
{
    const graft_shape *shape = &k->signature.inputs[slot];
    *operand = add_operand(k, ROLE_FIXED, slot, bytes_of(k, shape));
    if (!k->dry) {
        GRAFT_PASS(cuda_pack_obtain(env, k->device, k->constants[slot],
                                    (size_t)graft_shape_elements(shape), nhwc ? shape : NULL,
                                    &k->operands[*operand].pack));
        k->facts.packed_bytes += k->operands[*operand].bytes;
    }
    return GRAFT_OK;
}

static graft_status add_input(graft_env *env, graft_kernel *k, uint32_t slot, uint32_t *operand)
{
    if (is_const(k, slot)) {
        return add_fixed(env, k, slot, false, operand);
    }
    *operand = add_operand(k, ROLE_INPUT, slot, bytes_of(k, &k->signature.inputs[slot]));
    return GRAFT_OK;
}

static uint32_t add_output(graft_kernel *k, uint32_t slot)
{
    return add_operand(k, ROLE_OUTPUT, slot, bytes_of(k, &k->outputs[slot]));
}

static kernel_stage *add_job(graft_kernel *k, const cuda_job *job)
{
    kernel_stage *stage = &k->stages[k->stage_count++];
    stage->kind = STAGE_JOB;
    stage->job = *job;
    memset(stage->operands, 0xff, sizeof(stage->operands));
    return stage;
}

/* A job of one input and one output. */
static void add_simple_job(graft_kernel *k, const cuda_job *job, uint32_t from, uint32_t to)
{
    kernel_stage *stage = add_job(k, job);
    stage->operands[0] = from;
    stage->operands[3] = to;
}

/* The operation graph is built as the next stage; its operands are those that exist when it is
 * finished. */
static cudnn_graph *begin_plan(graft_env *env, graft_kernel *k)
{
    cudnn_graph_begin(env, &k->graph);
    k->has_graph = true;
    k->stages[k->stage_count++].kind = STAGE_PLAN;
    return &k->graph;
}

static graft_status finish_plan(graft_kernel *k)
{
    return cudnn_graph_finish(&k->graph, k->target);
}

/* Marks operands that the graph reads or writes: all that were described to it. */
static void use_operand(graft_kernel *k, uint32_t operand)
{
    for (uint32_t i = 0; i < k->stage_count; i++) {
        kernel_stage *stage = &k->stages[i];
        if (stage->kind == STAGE_PLAN) {
            stage->operands[stage->operand_count++] = operand;
        }
    }
}

/* ------------------------------------------------------------------ tensors */

/* `shape` with axes of size 1 in front until there are `rank`. */
static cudnn_tensor describe(const graft_shape *shape, uint32_t layout, uint32_t rank)
{
    cudnn_tensor t = {.rank = rank > shape->rank ? rank : shape->rank};
    int64_t strides[GRAFT_MAX_RANK] = {0};
    graft_layout_strides(shape, layout, strides);
    uint32_t lead = t.rank - shape->rank;
    int64_t whole = (int64_t)graft_shape_elements(shape);
    for (uint32_t i = 0; i < t.rank; i++) {
        t.dims[i] = i < lead ? 1 : shape->dims[i - lead];
        t.strides[i] = i < lead ? whole : strides[i - lead];
    }
    return t;
}

/* A tensor in memory: operand `operand`. */
static cudnnBackendDescriptor_t real_tensor(graft_kernel *k, cudnn_tensor tensor, uint32_t operand)
{
    tensor.type = cuda_data_type(k->device);
    tensor.uid = operand + 1;
    use_operand(k, operand);
    return cudnn_graph_tensor(&k->graph, &tensor);
}

/* Between two operations, wherever cuDNN keeps it: binary32, but in the type of the output behind
 * matrix products, where cuBLASLt's engines know nothing else (and compute in binary32 anyway). */
static cudnnBackendDescriptor_t virtual_tensor(graft_kernel *k, cudnn_tensor tensor,
                                               uint32_t number)
{
    tensor.type =
        graft_signature_is_matmul(&k->signature) ? cuda_data_type(k->device) : CUDNN_DATA_FLOAT;
    tensor.uid = FIRST_VIRTUAL + number;
    tensor.is_virtual = true;
    return cudnn_graph_tensor(&k->graph, &tensor);
}

static graft_shape vector_shape(uint32_t rank, uint32_t axis, int32_t size)
{
    graft_shape shape = {.rank = (uint8_t)rank, .dtype = GRAFT_DTYPE_F32};
    for (uint32_t i = 0; i < rank; i++) {
        shape.dims[i] = i == axis ? size : 1;
    }
    return shape;
}

/* ----------------------------------------------------------- fused epilogues */

typedef struct {
    uint32_t bias; /* Operands; UINT32_MAX: there is none. */
    uint32_t residual;
    int32_t activation;
    uint32_t axis;   /* Along which the bias lies. */
    uint32_t layout; /* Of the output. */
} epilogue;

static bool is_fused(const graft_signature *s)
{
    return s->op == GRAFT_OP_conv_bias || s->op == GRAFT_OP_conv_bias_add ||
           s->op == GRAFT_OP_matmul_bias;
}

static graft_status find_epilogue(graft_env *env, graft_kernel *k, epilogue *e)
{
    const graft_signature *s = &k->signature;
    *e = (epilogue){.bias = UINT32_MAX,
                    .residual = UINT32_MAX,
                    .axis = graft_signature_is_matmul(s) ? k->outputs[0].rank - 1U : 1U,
                    .layout = s->out_layouts[0]};
    if (!is_fused(s)) {
        return GRAFT_OK;
    }
    e->activation = graft_signature_activation(s);
    GRAFT_PASS(add_input(env, k, 2, &e->bias));
    if (s->op == GRAFT_OP_conv_bias_add) {
        GRAFT_PASS(add_input(env, k, 3, &e->residual));
    }
    return GRAFT_OK;
}

static void add_activation(graft_kernel *k, int32_t activation, cudnnBackendDescriptor_t x,
                           cudnnBackendDescriptor_t y)
{
    static const double six[3] = {0.0, 6.0, 0.0};
    cudnnPointwiseMode_t mode = activation == GRAFT_ACT_SIGMOID ? CUDNN_POINTWISE_SIGMOID_FWD
                                : activation == GRAFT_ACT_TANH  ? CUDNN_POINTWISE_TANH_FWD
                                                                : CUDNN_POINTWISE_RELU_FWD;
    cudnn_graph_pointwise(&k->graph, mode, x, NULL, y, activation == GRAFT_ACT_RELU6 ? six : NULL);
}

/* The tensor that the product itself writes: the output, or the first of those between. */
static cudnnBackendDescriptor_t product_result(graft_kernel *k, const epilogue *e,
                                               const cudnn_tensor *shape, uint32_t output)
{
    return e->bias == UINT32_MAX ? real_tensor(k, *shape, output) : virtual_tensor(k, *shape, 0);
}

/* y = activation(x + residual + bias), in the order in which cuDNN's convolutions fuse. */
static void add_epilogue(graft_kernel *k, const epilogue *e, const cudnn_tensor *shape,
                         cudnnBackendDescriptor_t x, uint32_t output)
{
    bool acts = e->activation != GRAFT_ACT_NONE;
    const graft_shape vector = vector_shape(
        shape->rank, shape->rank - (k->outputs[0].rank - e->axis), k->outputs[0].dims[e->axis]);
    if (e->bias == UINT32_MAX) {
        return;
    }
    if (e->residual != UINT32_MAX) {
        cudnnBackendDescriptor_t r = real_tensor(k, *shape, e->residual);
        cudnnBackendDescriptor_t sum = virtual_tensor(k, *shape, 1);
        cudnn_graph_pointwise(&k->graph, CUDNN_POINTWISE_ADD, x, r, sum, NULL);
        x = sum;
    }
    cudnnBackendDescriptor_t b = real_tensor(k, describe(&vector, e->layout, shape->rank), e->bias);
    cudnnBackendDescriptor_t y =
        acts ? virtual_tensor(k, *shape, 2) : real_tensor(k, *shape, output);
    cudnn_graph_pointwise(&k->graph, CUDNN_POINTWISE_ADD, x, b, y, NULL);
    if (acts) {
        add_activation(k, e->activation, y, real_tensor(k, *shape, output));
    }
}

/* The same by our own kernel: from -> to. */
static void add_finish(graft_kernel *k, const epilogue *e, uint32_t from, uint32_t to)
{
    cuda_job job;
    cuda_job_of_finish(&k->signature, &k->outputs[0], k->device->target.type, &job);
    kernel_stage *stage = add_job(k, &job);
    stage->operands[0] = from;
    stage->operands[1] = e->bias;
    stage->operands[2] = e->residual;
    stage->operands[3] = to;
}

/* ------------------------------------------------------------- convolutions */

static cudnn_window conv_window(const graft_signature *s)
{
    cudnn_window w = {.groups = s->attrs[GRAFT_ATTR_conv_groups]};
    for (uint32_t i = 0; i < 2; i++) {
        w.stride[i] = s->attrs[GRAFT_ATTR_conv_stride_h + i];
        w.before[i] = s->attrs[GRAFT_ATTR_conv_pad_top + i];
        w.after[i] = s->attrs[GRAFT_ATTR_conv_pad_bottom + i];
        w.dilation[i] = s->attrs[GRAFT_ATTR_conv_dilation_h + i];
    }
    return w;
}

/* The filter in the layout that the convolution wants: const ones are packed so, others converted
 * at each run. Given row-major, as graft_layout_alternatives says. */
static graft_status add_filter(graft_env *env, graft_kernel *k, uint32_t layout, uint32_t *operand)
{
    const graft_shape *shape = &k->signature.inputs[1];
    bool turned = !graft_layout_same(shape, GRAFT_LAYOUT_ROW, layout);
    cuda_job job;
    if (is_const(k, 1)) {
        return add_fixed(env, k, 1, turned, operand);
    }
    uint32_t given = add_operand(k, ROLE_INPUT, 1, bytes_of(k, shape));
    *operand = given;
    if (turned) {
        *operand = add_operand(k, ROLE_WORKSPACE, 0, bytes_of(k, shape));
        cuda_job_of_filter(shape, k->device->target.type, &job);
        add_simple_job(k, &job, given, *operand);
    }
    return GRAFT_OK;
}

/* The operation graph of a convolution from operand `x` to `output`, both in `layout`; the epilogue
 * goes into it unless there is none. */
static graft_status plan_conv(graft_env *env, graft_kernel *k, uint32_t layout, const epilogue *e,
                              const uint32_t operands[3])
{
    const graft_signature *s = &k->signature;
    const cudnn_tensor out = describe(&k->outputs[0], layout, 4);
    const cudnn_window window = conv_window(s);
    cudnn_graph *g = begin_plan(env, k);
    cudnnBackendDescriptor_t x = real_tensor(k, describe(&s->inputs[0], layout, 4), operands[0]);
    cudnnBackendDescriptor_t w = real_tensor(k, describe(&s->inputs[1], layout, 4), operands[1]);
    cudnnBackendDescriptor_t y = product_result(k, e, &out, operands[2]);
    cudnn_graph_conv(g, &window, x, w, y);
    add_epilogue(k, e, &out, y, operands[2]);
    return finish_plan(k);
}

/* Whether input and output lie in one layout that cuDNN knows. */
static bool has_one_layout(const graft_kernel *k)
{
    const graft_signature *s = &k->signature;
    return s->in_layouts[0] != GRAFT_LAYOUT_BLOCKED && s->out_layouts[0] != GRAFT_LAYOUT_BLOCKED &&
           (graft_layout_same(&s->inputs[0], s->in_layouts[0], s->out_layouts[0]) ||
            graft_layout_same(&k->outputs[0], s->in_layouts[0], s->out_layouts[0]));
}

/* The layout that says most: a tensor of one pixel or channel lies the same way in both. */
static uint32_t conv_layout(const graft_kernel *k)
{
    const graft_signature *s = &k->signature;
    bool image = !graft_layout_same(&s->inputs[0], GRAFT_LAYOUT_ROW, GRAFT_LAYOUT_NHWC);
    return image ? s->in_layouts[0] : s->out_layouts[0];
}

static const epilogue no_epilogue = {.bias = UINT32_MAX, .residual = UINT32_MAX};

/* Where a bare product goes: the output, unless that is where the residual still lies. */
static uint32_t add_product_place(graft_kernel *k, uint32_t output)
{
    return k->signature.in_place == 0
               ? output
               : add_operand(k, ROLE_WORKSPACE, 0, bytes_of(k, &k->outputs[0]));
}

static graft_status lower_conv(graft_env *env, graft_kernel *k)
{
    bool split = k->way == CUDA_SPLIT;
    epilogue e;
    uint32_t operands[3];
    if (!graft_signature_is_conv(&k->signature) || (split && !is_fused(&k->signature)) ||
        !has_one_layout(k)) {
        return GRAFT_UNSUPPORTED;
    }
    uint32_t layout = conv_layout(k);
    GRAFT_PASS(add_input(env, k, 0, &operands[0]));
    GRAFT_PASS(add_filter(env, k, layout, &operands[1]));
    GRAFT_PASS(find_epilogue(env, k, &e));
    e.layout = layout;
    uint32_t output = add_output(k, 0);
    operands[2] = split ? add_product_place(k, output) : output;
    GRAFT_PASS(plan_conv(env, k, layout, split ? &no_epilogue : &e, operands));
    if (split) {
        add_finish(k, &e, operands[2], output);
    }
    return GRAFT_OK;
}

static void add_reorder(graft_kernel *k, const graft_shape *shape, uint32_t from_layout,
                        uint32_t from, uint32_t to)
{
    graft_signature s;
    cuda_job job;
    graft_signature_of_reorder(
        shape, from_layout, from_layout == GRAFT_LAYOUT_ROW ? GRAFT_LAYOUT_NHWC : GRAFT_LAYOUT_ROW,
        &s);
    (void)cuda_job_of(&s, shape, k->device->target.type, &job); /* Neither layout is blocked. */
    add_simple_job(k, &job, from, to);
}

/* Winograd's and other kernels of binary32 want channels first. */
static graft_status lower_conv_nchw(graft_env *env, graft_kernel *k)
{
    const graft_signature *s = &k->signature;
    epilogue e;
    uint32_t operands[3];
    uint32_t given = 0;
    if (!graft_signature_is_conv(s) || s->in_place != 0 || s->op == GRAFT_OP_conv_bias_add ||
        k->device->target.type > CUDA_TF32 || s->in_layouts[0] != GRAFT_LAYOUT_NHWC ||
        s->out_layouts[0] != GRAFT_LAYOUT_NHWC ||
        graft_layout_same(&s->inputs[0], GRAFT_LAYOUT_ROW, GRAFT_LAYOUT_NHWC) ||
        graft_layout_same(&k->outputs[0], GRAFT_LAYOUT_ROW, GRAFT_LAYOUT_NHWC)) {
        return GRAFT_UNSUPPORTED;
    }
    GRAFT_PASS(add_input(env, k, 0, &given));
    GRAFT_PASS(add_filter(env, k, GRAFT_LAYOUT_ROW, &operands[1]));
    GRAFT_PASS(find_epilogue(env, k, &e));
    e.layout = GRAFT_LAYOUT_ROW;
    uint32_t output = add_output(k, 0);
    operands[0] = add_operand(k, ROLE_WORKSPACE, 0, bytes_of(k, &s->inputs[0]));
    operands[2] = add_operand(k, ROLE_WORKSPACE, 0, bytes_of(k, &k->outputs[0]));
    add_reorder(k, &s->inputs[0], GRAFT_LAYOUT_NHWC, given, operands[0]);
    GRAFT_PASS(plan_conv(env, k, GRAFT_LAYOUT_ROW, &e, operands));
    add_reorder(k, &k->outputs[0], GRAFT_LAYOUT_ROW, operands[2], output);
    return GRAFT_OK;
}

/* ------------------------------------------------------------------ products */

/* Products as cuDNN takes them: (boxes, rows, columns), of rank 3 exactly. */
typedef struct {
    graft_shape shapes[3]; /* Left and right factor, product. */
    uint32_t operands[3];
} product;

static int32_t count_boxes(const graft_shape *shape)
{
    int32_t boxes = 1;
    for (uint32_t i = 0; i + 2 < shape->rank; i++) {
        boxes *= shape->dims[i];
    }
    return boxes;
}

/* The same numbers as `boxes` matrices. */
static graft_shape fold(const graft_shape *shape, int32_t boxes)
{
    graft_shape flat = {.rank = 3, .dtype = shape->dtype};
    flat.dims[0] = boxes;
    flat.dims[2] = shape->dims[shape->rank - 1];
    flat.dims[1] =
        (int32_t)(graft_shape_elements(shape) / ((uint64_t)flat.dims[2] * (uint64_t)boxes));
    return flat;
}

/* A factor whose matrices are repeated over some of the product's boxes is copied, so that there is
 * one for each. */
static void repeat_factor(graft_kernel *k, uint32_t i, product *p)
{
    const graft_shape *shape = &k->signature.inputs[i];
    graft_shape whole = k->outputs[0];
    cuda_job job;
    whole.dims[whole.rank - 2] = shape->dims[shape->rank - 2];
    whole.dims[whole.rank - 1] = shape->dims[shape->rank - 1];
    uint32_t copy = add_operand(k, ROLE_WORKSPACE, 0, bytes_of(k, &whole));
    cuda_job_of_repeat(shape, &whole, k->device->target.type, &job);
    add_simple_job(k, &job, p->operands[i], copy);
    p->operands[i] = copy;
    p->shapes[i] = fold(&whole, count_boxes(&whole));
}

/* One right factor for all: the rows of all left factors are one factor. Otherwise boxes are
 * counted through; one single matrix for all boxes is repeated by cuDNN itself where `repeats`. */
static void fold_product(graft_kernel *k, bool repeats, product *p)
{
    const graft_signature *s = &k->signature;
    bool single = count_boxes(&s->inputs[1]) == 1;
    int32_t boxes = single ? 1 : count_boxes(&k->outputs[0]);
    p->shapes[2] = fold(&k->outputs[0], boxes);
    for (uint32_t i = 0; i < 2; i++) {
        int32_t own = single ? 1 : count_boxes(&s->inputs[i]);
        p->shapes[i] = fold(&s->inputs[i], own);
        if (own != boxes && !(own == 1 && repeats)) {
            repeat_factor(k, i, p);
        }
    }
}

static graft_status plan_matmul(graft_env *env, graft_kernel *k, const epilogue *e,
                                const product *p)
{
    const cudnn_tensor result = describe(&p->shapes[2], GRAFT_LAYOUT_ROW, 3);
    cudnn_graph *g = begin_plan(env, k);
    cudnnBackendDescriptor_t x =
        real_tensor(k, describe(&p->shapes[0], GRAFT_LAYOUT_ROW, 3), p->operands[0]);
    cudnnBackendDescriptor_t w =
        real_tensor(k, describe(&p->shapes[1], GRAFT_LAYOUT_ROW, 3), p->operands[1]);
    cudnnBackendDescriptor_t y = product_result(k, e, &result, p->operands[2]);
    cudnn_graph_matmul(g, x, w, y);
    add_epilogue(k, e, &result, y, p->operands[2]);
    return finish_plan(k);
}

static bool is_row(const graft_shape *shape, uint32_t layout)
{
    return graft_layout_same(shape, layout, GRAFT_LAYOUT_ROW);
}

static cudnn_tensor describe_box(int32_t n, int32_t c, int32_t w)
{
    const graft_shape shape = {
        .rank = 4, .dtype = GRAFT_DTYPE_F32, .dims = {n, c, 1, w}
    };
    return describe(&shape, GRAFT_LAYOUT_ROW, 4);
}

/* cuDNN's products round factors for tensor cores, its convolutions need not: the right factor is
 * an image of n channels and p pixels, the left one the filter of m outputs, and the result has m
 * channels of p pixels, all three row-major as they are. Pairs of matrices are groups. */
static graft_status plan_matmul_conv(graft_env *env, graft_kernel *k, const product *p)
{
    const graft_shape *a = &p->shapes[0];
    const graft_shape *b = &p->shapes[1];
    const cudnn_window window = {
        .stride = {1, 1},
          .dilation = {1, 1}
    };
    int32_t rows = a->dims[0] * a->dims[1];
    cudnn_graph *g = begin_plan(env, k);
    cudnnBackendDescriptor_t x =
        real_tensor(k, describe_box(1, b->dims[0] * b->dims[1], b->dims[2]), p->operands[1]);
    cudnnBackendDescriptor_t w = real_tensor(k, describe_box(rows, a->dims[2], 1), p->operands[0]);
    cudnn_graph_conv(g, &window, x, w,
                     real_tensor(k, describe_box(1, rows, b->dims[2]), p->operands[2]));
    return finish_plan(k);
}

static bool can_multiply(const graft_kernel *k)
{
    const graft_signature *s = &k->signature;
    bool rows = graft_signature_is_matmul(s) && is_row(&s->inputs[0], s->in_layouts[0]) &&
                is_row(&s->inputs[1], s->in_layouts[1]) &&
                is_row(&k->outputs[0], s->out_layouts[0]);
    return rows && (k->way != CUDA_SPLIT || is_fused(s)) &&
           (k->way != CUDA_CONV || k->device->target.type == CUDA_F32);
}

static graft_status lower_matmul(graft_env *env, graft_kernel *k)
{
    epilogue e;
    product p;
    if (!can_multiply(k)) {
        return GRAFT_UNSUPPORTED;
    }
    GRAFT_PASS(add_input(env, k, 0, &p.operands[0]));
    GRAFT_PASS(add_input(env, k, 1, &p.operands[1]));
    GRAFT_PASS(find_epilogue(env, k, &e));
    e.layout = GRAFT_LAYOUT_ROW;
    p.operands[2] = add_output(k, 0);
    fold_product(k, k->way != CUDA_CONV, &p);
    GRAFT_PASS(k->way == CUDA_CONV
                   ? plan_matmul_conv(env, k, &p)
                   : plan_matmul(env, k, k->way == CUDA_SPLIT ? &no_epilogue : &e, &p));
    if (k->way != CUDA_FUSED && is_fused(&k->signature)) {
        add_finish(k, &e, p.operands[2], p.operands[2]);
    }
    return GRAFT_OK;
}

/* Few rows: bias and activation in the same launch. */
static graft_status lower_matmul_thin(graft_env *env, graft_kernel *k)
{
    uint32_t operands[2] = {0};
    epilogue e;
    cuda_job job;
    if (!cuda_job_of_thin(&k->signature, &k->outputs[0], k->device->target.type, &job)) {
        return GRAFT_UNSUPPORTED;
    }
    GRAFT_PASS(add_input(env, k, 0, &operands[0]));
    GRAFT_PASS(add_input(env, k, 1, &operands[1]));
    GRAFT_PASS(find_epilogue(env, k, &e));
    kernel_stage *stage = add_job(k, &job);
    stage->operands[0] = operands[0];
    stage->operands[1] = operands[1];
    stage->operands[2] = e.bias;
    stage->operands[3] = add_output(k, 0);
    return GRAFT_OK;
}

/* ---------------------------------------------------- pools, rows, softmax */

static bool has_blocked(const graft_kernel *k)
{
    const graft_signature *s = &k->signature;
    return memchr(s->in_layouts, GRAFT_LAYOUT_BLOCKED, s->input_count) != NULL ||
           memchr(s->out_layouts, GRAFT_LAYOUT_BLOCKED, s->output_count) != NULL;
}

static graft_status lower_pool(graft_env *env, graft_kernel *k)
{
    const graft_signature *s = &k->signature;
    bool largest = s->op == GRAFT_OP_max_pool;
    uint32_t operands[2] = {0};
    cudnn_window w = {.kernel = {0}};
    if ((!largest && s->op != GRAFT_OP_avg_pool) || has_blocked(k) ||
        (largest && (s->attrs[GRAFT_ATTR_max_pool_dilation_h] != 1 ||
                     s->attrs[GRAFT_ATTR_max_pool_dilation_w] != 1))) {
        return GRAFT_UNSUPPORTED;
    }
    for (uint32_t i = 0; i < 2; i++) { /* The same places in both pools. */
        w.kernel[i] = s->attrs[GRAFT_ATTR_max_pool_kernel_h + i];
        w.stride[i] = s->attrs[GRAFT_ATTR_max_pool_stride_h + i];
        w.before[i] = s->attrs[GRAFT_ATTR_max_pool_pad_top + i];
        w.after[i] = s->attrs[GRAFT_ATTR_max_pool_pad_bottom + i];
        if (s->in_layouts[0] == GRAFT_LAYOUT_ROW && w.before[i] != w.after[i]) {
            return GRAFT_UNSUPPORTED; /* Channels first cuDNN pads all sides as it pads the first.
                                       */
        }
    }
    cudnnResampleMode_t mode = largest ? CUDNN_RESAMPLE_MAXPOOL
                               : s->attrs[GRAFT_ATTR_avg_pool_count_pad] == 1
                                   ? CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING
                                   : CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING;
    GRAFT_PASS(add_input(env, k, 0, &operands[0]));
    operands[1] = add_output(k, 0);
    cudnn_graph *g = begin_plan(env, k);
    cudnnBackendDescriptor_t x =
        real_tensor(k, describe(&s->inputs[0], s->in_layouts[0], 4), operands[0]);
    cudnn_graph_pool(g, mode, &w, x,
                     real_tensor(k, describe(&k->outputs[0], s->out_layouts[0], 4), operands[1]));
    return finish_plan(k);
}

/* A number of the host's in binary32. */
static cudnnBackendDescriptor_t number_tensor(graft_kernel *k, float value, uint32_t rank)
{
    uint32_t operand = add_operand(k, ROLE_NUMBER, 0, sizeof(float));
    cudnn_tensor number = {.rank = rank, .type = CUDNN_DATA_FLOAT, .uid = operand + 1};
    number.is_by_value = true;
    for (uint32_t i = 0; i < rank; i++) {
        number.dims[i] = 1;
        number.strides[i] = 1;
    }
    k->scalars[0] = value;
    use_operand(k, operand);
    return cudnn_graph_tensor(&k->graph, &number);
}

/* Rows as images of one pixel: (rows, columns, 1, 1), the columns side by side. */
static cudnn_tensor describe_rows(int64_t rows, int64_t columns)
{
    return (cudnn_tensor){
        .rank = 4, .dims = {rows,    columns, 1,       1      },
             .strides = {columns, 1,       columns, columns}
    };
}

static graft_status lower_layer_norm(graft_env *env, graft_kernel *k)
{
    const graft_signature *s = &k->signature;
    uint32_t operands[4] = {0};
    if (s->op != GRAFT_OP_layer_norm || !is_row(&s->inputs[0], s->in_layouts[0]) ||
        !is_row(&k->outputs[0], s->out_layouts[0])) {
        return GRAFT_UNSUPPORTED;
    }
    for (uint32_t i = 0; i < 3; i++) {
        GRAFT_PASS(add_input(env, k, i, &operands[i]));
    }
    operands[3] = add_output(k, 0);
    int64_t columns = s->inputs[1].dims[0];
    int64_t rows = (int64_t)graft_shape_elements(&k->outputs[0]) / columns;
    cudnn_graph *g = begin_plan(env, k);
    cudnnBackendDescriptor_t x = real_tensor(k, describe_rows(rows, columns), operands[0]);
    cudnnBackendDescriptor_t scale = real_tensor(k, describe_rows(1, columns), operands[1]);
    cudnnBackendDescriptor_t bias = real_tensor(k, describe_rows(1, columns), operands[2]);
    float epsilon = graft_float_of_bits(s->attrs[GRAFT_ATTR_layer_norm_epsilon]);
    cudnn_graph_layer_norm(g, x, scale, bias, number_tensor(k, epsilon, 4),
                           real_tensor(k, describe_rows(rows, columns), operands[3]));
    return finish_plan(k);
}

static graft_status lower_softmax(graft_env *env, graft_kernel *k)
{
    const graft_signature *s = &k->signature;
    uint32_t in = 0;
    if (s->op != GRAFT_OP_softmax || !is_row(&s->inputs[0], s->in_layouts[0]) ||
        !is_row(&k->outputs[0], s->out_layouts[0])) {
        return GRAFT_UNSUPPORTED;
    }
    uint32_t axis = (uint32_t)s->attrs[GRAFT_ATTR_softmax_axis];
    GRAFT_PASS(add_input(env, k, 0, &in));
    kernel_stage *stage = &k->stages[k->stage_count++];
    stage->kind = STAGE_SOFTMAX;
    stage->operands[0] = in;
    stage->operands[1] = add_output(k, 0);
    for (uint32_t i = 0; i < 3; i++) {
        stage->softmax[i] = 1;
    }
    for (uint32_t i = 0; i < s->inputs[0].rank; i++) {
        stage->softmax[i < axis ? 0 : i == axis ? 1 : 2] *= s->inputs[0].dims[i];
    }
    return GRAFT_OK;
}

/* ---------------------------------------------------------------- attention */

/* A matrix for each batch and head, (batch, heads, rows, columns), of a row-major tensor whose axes
 * these are in the order of `axes`. */
static cudnn_tensor describe_heads(const graft_shape *shape, const uint8_t axes[4])
{
    const cudnn_tensor given = describe(shape, GRAFT_LAYOUT_ROW, 4);
    cudnn_tensor t = given;
    for (uint32_t i = 0; i < 4; i++) {
        t.dims[i] = given.dims[axes[i]];
        t.strides[i] = given.strides[axes[i]];
    }
    return t;
}

/* Input `slot` of an attention, as cuDNN wants it: elements of a head side by side. K that lies
 * otherwise is turned first. */
static graft_status add_heads(graft_env *env, graft_kernel *k, uint32_t slot, uint32_t *operand,
                              cudnn_tensor *tensor)
{
    static const uint8_t axes[2][3][4] = {
        {{0, 1, 2, 3}, {0, 1, 3, 2}, {0, 1, 2, 3}},
        {{0, 2, 1, 3}, {0, 2, 3, 1}, {0, 2, 1, 3}}
    };
    uint32_t given = (uint32_t)k->signature.attrs[1] >> slot & 1U;
    graft_shape shape = k->signature.inputs[slot];
    GRAFT_PASS(add_input(env, k, slot, operand));
    if (slot == 1 && given == 0) {
        graft_signature s = {.op = GRAFT_OP_transpose, .input_count = 1, .output_count = 1};
        cuda_job job;
        s.inputs[0] = shape;
        for (uint32_t i = 0; i < 4; i++) {
            s.attrs[GRAFT_ATTR_transpose_axis_0 + i] = axes[0][1][i];
            shape.dims[i] = s.inputs[0].dims[axes[0][1][i]];
        }
        (void)cuda_job_of(&s, &shape, k->device->target.type, &job); /* Both are row-major. */
        uint32_t copy = add_operand(k, ROLE_WORKSPACE, 0, bytes_of(k, &shape));
        add_simple_job(k, &job, *operand, copy);
        *operand = copy;
    }
    *tensor = describe_heads(&shape, axes[given][slot]);
    return GRAFT_OK;
}

/* One operation of the graph of an attention, to a tensor between operations. */
static cudnnBackendDescriptor_t add_between(graft_kernel *k, cudnnPointwiseMode_t mode,
                                            cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b,
                                            const cudnn_tensor *shape, uint32_t number)
{
    cudnnBackendDescriptor_t y = virtual_tensor(k, *shape, number);
    cudnn_graph_pointwise(&k->graph, mode, x, b, y, NULL);
    return y;
}

/* cuDNN's engines for attention know it by its parts: softmax in its own, the logarithm of the sum
 * among them though nobody reads it, and weights in the type of the factors. */
static cudnnBackendDescriptor_t add_weights(graft_kernel *k, cudnnBackendDescriptor_t x,
                                            const cudnn_tensor *scores)
{
    cudnn_graph *g = &k->graph;
    cudnn_tensor row = *scores;
    cudnn_tensor weights = *scores;
    row.dims[3] = 1;
    for (uint32_t i = 0; i < 3; i++) {
        row.strides[i] /= scores->dims[3];
    }
    cudnnBackendDescriptor_t most = virtual_tensor(k, row, 3);
    cudnn_graph_reduce(g, CUDNN_REDUCE_TENSOR_MAX, x, most);
    x = add_between(k, CUDNN_POINTWISE_SUB, x, most, scores, 4);
    x = add_between(k, CUDNN_POINTWISE_EXP, x, NULL, scores, 5);
    cudnnBackendDescriptor_t sum = virtual_tensor(k, row, 6);
    cudnn_graph_reduce(g, CUDNN_REDUCE_TENSOR_ADD, x, sum);
    cudnnBackendDescriptor_t logs = add_between(k, CUDNN_POINTWISE_LOG, sum, NULL, &row, 7);
    (void)add_between(k, CUDNN_POINTWISE_ADD, most, logs, &row, 8);
    weights.type = cuda_data_type(k->device);
    weights.uid = FIRST_VIRTUAL + 9;
    weights.is_virtual = true;
    cudnnBackendDescriptor_t y = cudnn_graph_tensor(g, &weights);
    cudnn_graph_pointwise(g, CUDNN_POINTWISE_DIV, x, sum, y, NULL);
    return y;
}

static graft_status lower_attention(graft_env *env, graft_kernel *k)
{
    const graft_signature *s = &k->signature;
    const graft_shape *out = &k->outputs[0];
    uint32_t operands[5] = {0};
    cudnn_tensor heads[3];
    if (!graft_signature_is_attention(s) || k->device->target.type < CUDA_F16) {
        return GRAFT_UNSUPPORTED;
    }
    for (uint32_t i = 0; i < 3; i++) {
        GRAFT_PASS(add_heads(env, k, i, &operands[i], &heads[i]));
    }
    if (s->input_count == 4) {
        GRAFT_PASS(add_input(env, k, 3, &operands[3]));
    }
    operands[4] = add_output(k, 0);
    graft_shape square = *out;
    square.dims[3] = (int32_t)heads[1].dims[3];
    const cudnn_tensor scores = describe(&square, GRAFT_LAYOUT_ROW, 4);
    cudnn_graph *g = begin_plan(env, k);
    cudnnBackendDescriptor_t x = virtual_tensor(k, scores, 0);
    cudnnBackendDescriptor_t q = real_tensor(k, heads[0], operands[0]);
    cudnn_graph_matmul(g, q, real_tensor(k, heads[1], operands[1]), x);
    x = add_between(k, CUDNN_POINTWISE_MUL, x,
                    number_tensor(k, graft_float_of_bits(s->attrs[0]), 4), &scores, 1);
    if (s->input_count == 4) {
        const cudnn_tensor mask = describe(&s->inputs[3], GRAFT_LAYOUT_ROW, 4);
        x = add_between(k, CUDNN_POINTWISE_ADD, x, real_tensor(k, mask, operands[3]), &scores, 2);
    }
    x = add_weights(k, x, &scores);
    cudnnBackendDescriptor_t v = real_tensor(k, heads[2], operands[2]);
    cudnn_graph_matmul(g, x, v, real_tensor(k, describe(out, GRAFT_LAYOUT_ROW, 4), operands[4]));
    return finish_plan(k);
}

/* ------------------------------------------------------------ our own kernels */

static graft_status lower_own(graft_env *env, graft_kernel *k)
{
    const graft_signature *s = &k->signature;
    uint32_t operands[GRAFT_MAX_INPUTS] = {0};
    epilogue e;
    cuda_job job;
    if (!cuda_job_of(s, k->outputs, k->device->target.type, &job)) {
        return GRAFT_UNSUPPORTED;
    }
    uint32_t inputs = is_fused(s) ? 2 : s->input_count;
    for (uint32_t i = 0; i < inputs; i++) {
        GRAFT_PASS(add_input(env, k, i, &operands[i]));
    }
    GRAFT_PASS(find_epilogue(env, k, &e));
    uint32_t output = add_output(k, 0);
    uint32_t place = is_fused(s) ? add_product_place(k, output) : output;
    kernel_stage *stage = add_job(k, &job);
    for (uint32_t i = 0; i < inputs; i++) {
        stage->operands[i] = operands[i];
    }
    stage->operands[3] = place;
    if (s->output_count == 2) {
        stage->operands[4] = add_output(k, 1);
    }
    if (is_fused(s)) {
        add_finish(k, &e, place, output);
    }
    return GRAFT_OK;
}

/* ------------------------------------------------------------------ families */

static const cuda_family families[] = {
    {"cudnn",   ENGINES_FUSED, CUDA_FUSED, lower_conv       },
    {"split",   ENGINES_SPLIT, CUDA_SPLIT, lower_conv       },
    {"nchw",    ENGINES_SPLIT, CUDA_FUSED, lower_conv_nchw  },
    {"cudnn",   ENGINES_FUSED, CUDA_FUSED, lower_matmul     },
    {"split",   ENGINES_SPLIT, CUDA_SPLIT, lower_matmul     },
    {"conv",    ENGINES_FUSED, CUDA_CONV,  lower_matmul     },
    {"thin",    0,             CUDA_FUSED, lower_matmul_thin},
    {"graft",   0,             CUDA_FUSED, lower_own        },
    {"cudnn",   ENGINES_SPLIT, CUDA_FUSED, lower_pool       },
    {"cudnn",   ENGINES_SPLIT, CUDA_FUSED, lower_layer_norm },
    {"softmax", 0,             CUDA_FUSED, lower_softmax    },
    {"cudnn",   ENGINES_FUSED, CUDA_FUSED, lower_attention  },
};

uint32_t cuda_family_count(void) { return sizeof(families) / sizeof(families[0]); }

const cuda_family *cuda_family_at(uint32_t i) { return &families[i]; }

/* Depthwise convolutions are few operations per byte: a plain loop may win. */
bool cuda_family_is_last_resort(const graft_signature *signature, const char *name)
{
    bool depthwise = graft_signature_is_conv(signature) && signature->inputs[1].dims[1] == 1;
    return strcmp(name, "graft") == 0 && !depthwise &&
           (graft_signature_is_conv(signature) || graft_signature_is_matmul(signature));
}

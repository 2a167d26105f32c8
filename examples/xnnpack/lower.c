/* lower.c - see lower.h. */
#include "examples/xnnpack/lower.h"

#include <math.h>
#include <string.h>

/* The first failure is kept in `status`; what follows it is not run. */
typedef struct {
    graft_env *env;
    graft_status status;
    const graft_model *model;
    const graft_graph *graph;
    graft_weights weights;
    xnn_subgraph_t subgraph;
    lowered *net;
    uint32_t *ids; /* By value of the graph; XNN_INVALID_VALUE_ID: not defined yet. */
    uint32_t node_count;
    graft_index at; /* The node that is lowered. */
} lowering;

static void refuse(lowering *l, const char *what)
{
    const graft_node *node = &l->graph->nodes[l->at];
    l->status = GRAFT_FAIL(l->env, GRAFT_UNSUPPORTED, "%s: node '%s' (%s): %s", l->model->file,
                           graft_model_node_name(l->model, node),
                           graft_model_node_type(l->model, node), what);
}

/* What XNNPACK said of the node that is lowered. */
static void check_node(lowering *l, enum xnn_status said)
{
    l->node_count++;
    if (said != xnn_status_success) {
        refuse(l, "XNNPACK refuses it");
    }
}

/* Sizes in XNNPACK's order. */
static size_t turn_sizes(const graft_shape *shape, size_t sizes[GRAFT_MAX_RANK])
{
    static const uint8_t last[4] = {0, 2, 3, 1};
    for (uint32_t i = 0; i < shape->rank; i++) {
        sizes[i] = (size_t)shape->dims[shape->rank == 4 ? last[i] : i];
    }
    return shape->rank;
}

static uint32_t define_value(lowering *l, const graft_shape *shape, const void *data,
                             uint32_t external, uint32_t flags)
{
    size_t sizes[GRAFT_MAX_RANK];
    uint32_t id = XNN_INVALID_VALUE_ID;
    size_t rank = turn_sizes(shape, sizes);
    if (xnn_define_tensor_value(l->subgraph, xnn_datatype_fp32, rank, sizes, data, external, flags,
                                &id) != xnn_status_success) {
        refuse(l, "XNNPACK refuses a value");
    }
    return id;
}

/* A constant with its elements in XNNPACK's order. */
static uint32_t define_constant(lowering *l, const graft_shape *shape, const float *from)
{
    const size_t count = (size_t)graft_shape_elements(shape);
    float *to = GRAFT_NEW(l->env->unit, float, count + XNN_EXTRA_BYTES);
    const size_t channels = shape->rank == 4 ? (size_t)shape->dims[1] : 1;
    const size_t images = shape->rank == 4 ? (size_t)shape->dims[0] : 1;
    const size_t pixels = count / channels / images;
    for (size_t i = 0; from != NULL && i < count; i++) {
        size_t image = i / pixels / channels;
        to[(image * pixels + i % pixels) * channels + i / pixels % channels] = from[i];
    }
    return define_value(l, shape, to, XNN_INVALID_VALUE_ID, 0);
}

static const graft_value *operand(const lowering *l, uint32_t k)
{
    return &l->graph->values[graft_node_input(l->graph, l->at, k)];
}

static const float *operand_data(const lowering *l, uint32_t k)
{
    return graft_weights_data(&l->weights, graft_node_input(l->graph, l->at, k));
}

/* The value that an operand is; a weight beside images gets as many axes, counted from the last. */
static uint32_t read_operand(lowering *l, uint32_t k, uint32_t rank)
{
    graft_shape shape = operand(l, k)->shape;
    if (!operand(l, k)->is_const && rank == 4 && shape.rank != 4) {
        refuse(l, "an image beside a tensor that is none");
    }
    if (!operand(l, k)->is_const) {
        return l->ids[graft_node_input(l->graph, l->at, k)];
    }
    while (rank == 4 && shape.rank < 4) {
        memmove(&shape.dims[1], &shape.dims[0], shape.rank * sizeof(shape.dims[0]));
        shape.dims[0] = 1;
        shape.rank++;
    }
    return define_constant(l, &shape, operand_data(l, k));
}

static const graft_shape *result_shape(const lowering *l)
{
    return &l->graph->values[graft_node_output(l->graph, l->at, 0)].shape;
}

/* A value between the two nodes that one of the graph becomes. */
static uint32_t define_between(lowering *l)
{
    return define_value(l, result_shape(l), NULL, XNN_INVALID_VALUE_ID, 0);
}

/* The bounds that an activation sets. */
static void read_activation(lowering *l, int32_t activation, float *low, float *high)
{
    *low = activation == GRAFT_ACT_NONE ? -INFINITY : 0.0F;
    *high = activation == GRAFT_ACT_RELU6 ? 6.0F : INFINITY;
    if (activation > GRAFT_ACT_RELU6) {
        refuse(l, "an activation that it cannot fuse");
    }
}

/* The bias, or zeros: the version of 2022 asks for one. */
static uint32_t define_bias(lowering *l, int32_t channels)
{
    const graft_shape shape = {.rank = 1, .dims = {channels}, .dtype = GRAFT_DTYPE_F32};
    bool has = l->graph->nodes[l->at].input_count > 2;
    return define_constant(l, &shape, has ? operand_data(l, 2) : NULL);
}

/* NOLINTNEXTLINE(readability-function-size): parameters of XNNPACK's node. */
static void add_convolution(lowering *l, const int32_t *a, float low, float high, uint32_t in,
                            uint32_t out)
{
    graft_shape filter = operand(l, 1)->shape;
    const uint32_t groups = (uint32_t)a[8];
    const bool depthwise = groups == (uint32_t)operand(l, 0)->shape.dims[1] && filter.dims[1] == 1;
    const uint32_t channels = (uint32_t)filter.dims[0];
    if (depthwise) {
        filter.dims[1] = filter.dims[0];
        filter.dims[0] = 1;
    }
    const uint32_t w = define_constant(l, &filter, operand_data(l, 1));
    const uint32_t bias = define_bias(l, (int32_t)channels);
#define GEOMETRY                                                                                   \
    l->subgraph, (uint32_t)a[2], (uint32_t)a[5], (uint32_t)a[4], (uint32_t)a[3],                   \
        (uint32_t)filter.dims[2], (uint32_t)filter.dims[3], (uint32_t)a[0], (uint32_t)a[1],        \
        (uint32_t)a[6], (uint32_t)a[7]
    check_node(l,
               depthwise
                   ? xnn_define_depthwise_convolution_2d(GEOMETRY, channels / groups, groups, low,
                                                         high, in, w, bias, out, 0)
                   : xnn_define_convolution_2d(GEOMETRY, groups, (size_t)filter.dims[1],
                                               channels / groups, low, high, in, w, bias, out, 0));
#undef GEOMETRY
}

/* A sum behind a convolution is a node of its own, and takes the activation along. */
static void lower_convolution(lowering *l, const graft_node *node, uint32_t in, uint32_t out)
{
    float low = -INFINITY, high = INFINITY;
    if (node->op != GRAFT_OP_conv) {
        read_activation(l, node->attrs[GRAFT_ATTR_conv_bias_activation], &low, &high);
    }
    if (node->op != GRAFT_OP_conv_bias_add) {
        add_convolution(l, node->attrs, low, high, in, out);
        return;
    }
    const uint32_t sum = define_between(l);
    add_convolution(l, node->attrs, -INFINITY, INFINITY, in, sum);
    check_node(l, xnn_define_add2(l->subgraph, low, high, sum, read_operand(l, 3, 4), out, 0));
}

static void lower_product(lowering *l, const graft_node *node, uint32_t in, uint32_t out)
{
    const graft_shape *w = &operand(l, 1)->shape;
    float low = -INFINITY, high = INFINITY;
    if (!operand(l, 1)->is_const || w->rank != 2 || operand(l, 0)->shape.rank != 2) {
        refuse(l, "only products of a matrix with a constant one");
        return;
    }
    if (node->op == GRAFT_OP_matmul_bias) {
        read_activation(l, node->attrs[GRAFT_ATTR_matmul_bias_activation], &low, &high);
    }
    const uint32_t filter = define_constant(l, w, operand_data(l, 1));
    const uint32_t bias = define_bias(l, w->dims[1]);
    check_node(l, xnn_define_fully_connected(l->subgraph, low, high, in, filter, bias, out,
                                             XNN_FLAG_TRANSPOSE_WEIGHTS));
}

/* x s + t with one number of each a channel. */
static void lower_scale_shift(lowering *l, const graft_node *node, uint32_t in, uint32_t out)
{
    (void)node;
    const uint32_t scaled = define_between(l);
    check_node(l, xnn_define_multiply2(l->subgraph, -INFINITY, INFINITY, in, read_operand(l, 1, 1),
                                       scaled, 0));
    check_node(l, xnn_define_add2(l->subgraph, -INFINITY, INFINITY, scaled, read_operand(l, 2, 1),
                                  out, 0));
}

static void lower_binary(lowering *l, const graft_node *node, uint32_t in, uint32_t out)
{
    xnn_subgraph_t s = l->subgraph;
    const float most = INFINITY;
    const uint32_t a = read_operand(l, 0, result_shape(l)->rank);
    const uint32_t b = read_operand(l, 1, result_shape(l)->rank);
    (void)in;
    check_node(l, node->op == GRAFT_OP_add   ? xnn_define_add2(s, -most, most, a, b, out, 0)
                  : node->op == GRAFT_OP_mul ? xnn_define_multiply2(s, -most, most, a, b, out, 0)
                  : node->op == GRAFT_OP_sub ? xnn_define_subtract(s, -most, most, a, b, out, 0)
                  : node->op == GRAFT_OP_div ? xnn_define_divide(s, -most, most, a, b, out, 0)
                  : node->op == GRAFT_OP_max ? xnn_define_maximum2(s, a, b, out, 0)
                                             : xnn_define_minimum2(s, a, b, out, 0));
}

static void lower_pool(lowering *l, const graft_node *node, uint32_t in, uint32_t out)
{
    const int32_t *a = node->attrs;
    if (node->op == GRAFT_OP_avg_pool && a[8] != 0 && a[4] + a[5] + a[6] + a[7] > 0) {
        refuse(l, "padding is not counted in means");
    }
#define WINDOW                                                                                     \
    l->subgraph, (uint32_t)a[4], (uint32_t)a[7], (uint32_t)a[6], (uint32_t)a[5], (uint32_t)a[0],   \
        (uint32_t)a[1], (uint32_t)a[2], (uint32_t)a[3]
    check_node(l, node->op == GRAFT_OP_max_pool
                      ? xnn_define_max_pooling_2d(WINDOW, (uint32_t)a[8], (uint32_t)a[9], -INFINITY,
                                                  INFINITY, in, out, 0)
                      : xnn_define_average_pooling_2d(WINDOW, -INFINITY, INFINITY, in, out, 0));
#undef WINDOW
}

/* Where images have several channels and pixels, their elements would change places. */
static void lower_reshape(lowering *l, const graft_node *node, uint32_t in, uint32_t out)
{
    const graft_shape *ends[2] = {&operand(l, 0)->shape, result_shape(l)};
    size_t sizes[GRAFT_MAX_RANK];
    size_t rank = turn_sizes(ends[1], sizes);
    (void)node;
    for (uint32_t i = 0; i < 2; i++) {
        const int32_t *dims = ends[i]->dims;
        if (ends[i]->rank == 4 && dims[1] > 1 && dims[2] * dims[3] > 1) {
            refuse(l, "channels that lie last would change their order");
        }
    }
    check_node(l, xnn_define_static_reshape(l->subgraph, rank, sizes, in, out, 0));
}

static void lower_function(lowering *l, const graft_node *node, uint32_t in, uint32_t out)
{
    xnn_subgraph_t s = l->subgraph;
    float limits[2] = {0.0F, INFINITY}; /* Of relu. */
    if (node->op == GRAFT_OP_clip) {
        memcpy(limits, node->attrs, sizeof limits);
    }
    if (node->op == GRAFT_OP_softmax && (result_shape(l)->rank != 2 || node->attrs[0] != 1)) {
        refuse(l, "a softmax along another axis than the channels");
    }
    check_node(l, node->op == GRAFT_OP_sigmoid   ? xnn_define_sigmoid(s, in, out, 0)
                  : node->op == GRAFT_OP_softmax ? xnn_define_softmax(s, in, out, 0)
                  : node->op == GRAFT_OP_global_avg_pool
                      ? xnn_define_global_average_pooling_2d(s, -INFINITY, INFINITY, in, out, 0)
                      : xnn_define_clamp(s, limits[0], limits[1], in, out, 0));
}

/* What XNNPACK can run; `fill` is a constant, of the weight program. */
static const struct {
    uint8_t op;
    void (*lower)(lowering *l, const graft_node *node, uint32_t in, uint32_t out);
} known[] = {
  /* clang-format off */
    {GRAFT_OP_conv, lower_convolution}, {GRAFT_OP_conv_bias, lower_convolution},
    {GRAFT_OP_conv_bias_add, lower_convolution}, {GRAFT_OP_matmul, lower_product},
    {GRAFT_OP_matmul_bias, lower_product}, {GRAFT_OP_scale_shift, lower_scale_shift},
    {GRAFT_OP_add, lower_binary}, {GRAFT_OP_mul, lower_binary},
    {GRAFT_OP_sub, lower_binary}, {GRAFT_OP_div, lower_binary}, {GRAFT_OP_max, lower_binary},
    {GRAFT_OP_min, lower_binary}, {GRAFT_OP_max_pool, lower_pool},
    {GRAFT_OP_avg_pool, lower_pool}, {GRAFT_OP_reshape, lower_reshape},
    {GRAFT_OP_relu, lower_function}, {GRAFT_OP_clip, lower_function},
    {GRAFT_OP_sigmoid, lower_function}, {GRAFT_OP_softmax, lower_function},
    {GRAFT_OP_global_avg_pool, lower_function}, {GRAFT_OP_fill, NULL},
  /* clang-format on */
};

static void lower_node(lowering *l)
{
    const graft_node *node = &l->graph->nodes[l->at];
    const graft_index value = graft_node_output(l->graph, l->at, 0);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].op == node->op && known[i].lower != NULL) {
            l->ids[value] =
                l->ids[value] == XNN_INVALID_VALUE_ID ? define_between(l) : l->ids[value];
            known[i].lower(l, node, l->ids[graft_node_input(l->graph, l->at, 0)], l->ids[value]);
            return;
        }
    }
    refuse(l, "there is no such node in a subgraph of XNNPACK");
}

/* Of all copies: inputs come first. */
static void define_port(lowering *l, graft_index value, uint32_t number, uint32_t flags)
{
    const graft_shape *shape = &l->graph->values[value].shape;
    lowered_port *port = &l->net->ports[number];
    port->count = (size_t)graft_shape_elements(shape);
    port->data = GRAFT_NEW(l->env->unit, float, port->count + XNN_EXTRA_BYTES);
    l->ids[value] = define_value(l, shape, NULL, number, flags);
}

static void define_inputs(lowering *l)
{
    for (graft_index v = 0; v < l->graph->value_end; v++) {
        const graft_value *value = &l->graph->values[v];
        l->ids[v] = XNN_INVALID_VALUE_ID;
        if (value->kind == GRAFT_VALUE_INPUT) {
            define_port(l, v, value->source, XNN_VALUE_FLAG_EXTERNAL_INPUT);
        }
    }
}

static void define_outputs(lowering *l, uint32_t copy)
{
    for (graft_index v = 0; v < l->graph->value_end; v++) {
        if (l->graph->values[v].kind == GRAFT_VALUE_COMPUTED) {
            l->ids[v] = XNN_INVALID_VALUE_ID; /* Of the copy before. */
        }
    }
    for (uint32_t k = 0; k < l->graph->output_count && l->status == GRAFT_OK; k++) {
        const graft_index v = l->graph->outputs[k];
        if (l->graph->values[v].is_const || l->ids[v] != XNN_INVALID_VALUE_ID) {
            l->status = GRAFT_FAIL(l->env, GRAFT_UNSUPPORTED,
                                   "%s: output %u is no result of its own", l->model->file, k);
            return;
        }
        define_port(l, v, l->net->input_count + copy * l->graph->output_count + k,
                    XNN_VALUE_FLAG_EXTERNAL_OUTPUT);
    }
}

/* Where the ports lie does not change. */
static graft_status set_up(graft_env *env, const lowered *net)
{
    graft_mark mark = graft_arena_mark(env->scratch);
    struct xnn_external_value *values =
        GRAFT_NEW(env->scratch, struct xnn_external_value, net->port_count);
    for (uint32_t i = 0; i < net->port_count; i++) {
        values[i] = (struct xnn_external_value){i, net->ports[i].data};
    }
    const enum xnn_status said = xnn_setup_runtime(net->runtime, net->port_count, values);
    graft_arena_release(env->scratch, mark);
    return said == xnn_status_success
               ? GRAFT_OK
               : GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "XNNPACK does not set the graph up");
}

static graft_status check_inputs(graft_env *env, const graft_model *model, const graft_graph *graph)
{
    for (graft_index v = 0; v < graph->value_end; v++) {
        if (graph->values[v].kind == GRAFT_VALUE_INPUT &&
            graph->values[v].shape.dtype != GRAFT_DTYPE_F32) {
            return GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "%s: input '%s' is not of binary32",
                              model->file, model->inputs[graph->values[v].source].name);
        }
    }
    return GRAFT_OK;
}

static void lower_copies(lowering *l, const graft_order *order, uint32_t copy_count)
{
    define_inputs(l);
    for (uint32_t copy = 0; copy < copy_count && l->status == GRAFT_OK; copy++) {
        define_outputs(l, copy);
        for (graft_index i = 0; l->status == GRAFT_OK && i < order->count; i++) {
            l->at = order->order[i];
            if (!l->graph->nodes[l->at].is_const) {
                lower_node(l);
            }
        }
    }
}

graft_status lower_graph(graft_env *env, const graft_model *model, const graft_graph *graph,
                         const lowering_options *options, lowered *net)
{
    graft_status status = GRAFT_OK;
    graft_order order;
    lowering l = {.env = env, .model = model, .graph = graph, .net = net};
    const size_t bytes = graft_order_bytes(&graph->limits);
    *net = (lowered){.input_count = model->input_count,
                     .port_count =
                         model->input_count + options->copy_count * (uint32_t)graph->output_count};
    net->ports = GRAFT_NEW(env->unit, lowered_port, net->port_count);
    GRAFT_CHECK(check_inputs(env, model, graph));
    GRAFT_CHECK(graft_order_build(&order, graph, graft_arena_alloc(env->unit, bytes), bytes));
    l.ids = GRAFT_NEW(env->unit, uint32_t, graph->limits.values);
    GRAFT_CHECK(graft_model_fold_weights(env, env->unit, model, graph, &l.weights));
    if (xnn_create_subgraph(net->port_count, 0, &l.subgraph) != xnn_status_success) {
        return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "XNNPACK makes no subgraph");
    }
    lower_copies(&l, &order, options->copy_count);
    net->node_count = l.node_count;
    if (l.status == GRAFT_OK && xnn_create_runtime_v2(l.subgraph, options->threads, 0,
                                                      &net->runtime) != xnn_status_success) {
        refuse(&l, "XNNPACK makes no runtime of the graph that ends here");
    }
    (void)xnn_delete_subgraph(l.subgraph);
    GRAFT_CHECK(l.status);
    GRAFT_CHECK(set_up(env, net));
done:
    return status;
}

graft_status lowered_run(graft_env *env, const lowered *net)
{
    return xnn_invoke_runtime(net->runtime) == xnn_status_success
               ? GRAFT_OK
               : GRAFT_FAIL(env, GRAFT_INTERNAL, "XNNPACK does not run the graph");
}

void lowered_close(lowered *net)
{
    if (net->runtime != NULL) {
        (void)xnn_delete_runtime(net->runtime);
    }
    net->runtime = NULL;
}

void lowering_operators(uint8_t operators[LOWERING_OPERATOR_BYTES])
{
    memset(operators, 0, LOWERING_OPERATOR_BYTES);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        operators[known[i].op / 8] |= (uint8_t)(1U << known[i].op % 8);
    }
}

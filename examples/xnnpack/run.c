/* run.c - a small runtime for convolutional nets: reads an ONNX file, lets Graft's policy rewrite the
 * graph when it is loaded, and runs both graphs with XNNPACK (the C API of 2022, Debian's package).
 *
 *      run MODEL.onnx
 *
 * Prints what the policy did and what it took, how long each graph takes (medians of runs in turns),
 * and how far outputs are apart; exit status 1 when that is more than rounding. The policy was made
 * for oneDNN on another processor, so its estimates are not XNNPACK's times. Rules that make
 * operators which XNNPACK does not have are switched off.
 *
 * What a subgraph of 2022 cannot say (concatenation, split, batched products, most moves of elements)
 * is refused with the node's name. */
#include "cost/clock.h"
#include "graph/model.h"
#include "graph/rng.h"

#include <math.h>
#include <string.h>
#include <xnnpack.h>

/* The engine is compiled in Graft's own library: here only the tables of the policy are. */
#define GRAFT_IMPLEMENTATION
#include "graft_policy.h"

enum { ROUNDS = 15, STEPS_MOST = 4096, OPERATOR_BYTES = 32 };
static const double difference_most = 1e-3; /* Of the largest output. */

/* A graph that is ready to run: one input, one output, binary32. */
typedef struct {
    xnn_runtime_t runtime;
    uint32_t node_count; /* Of XNNPACK's. */
    size_t input_count;  /* Elements. */
    size_t output_count;
    float *out;
} lowered;

/* The first failure is kept in `status`; what follows it is not run. */
typedef struct {
    graft_env *env;
    graft_status status;
    const graft_model *model;
    const graft_graph *graph;
    graft_weights weights;
    xnn_subgraph_t subgraph;
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
    float *to = GRAFT_NEW(l->env->life, float, count + XNN_EXTRA_BYTES);
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
    const uint32_t a = read_operand(l, 0, result_shape(l)->rank);
    const uint32_t b = read_operand(l, 1, result_shape(l)->rank);
    (void)in;
    check_node(l, node->op == GRAFT_OP_add
                      ? xnn_define_add2(s, -INFINITY, INFINITY, a, b, out, 0)
                      : xnn_define_multiply2(s, -INFINITY, INFINITY, a, b, out, 0));
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
    {GRAFT_OP_add, lower_binary}, {GRAFT_OP_mul, lower_binary}, {GRAFT_OP_max_pool, lower_pool},
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

/* The model's one input is XNNPACK's value 0, its one output value 1. */
static void define_ports(lowering *l, lowered *out)
{
    const graft_graph *graph = l->graph;
    const graft_index result = graph->outputs[0];
    for (graft_index v = 0; v < graph->value_end; v++) {
        l->ids[v] = XNN_INVALID_VALUE_ID;
        if (graph->values[v].kind == GRAFT_VALUE_INPUT) {
            const graft_shape *shape = &graph->values[v].shape;
            l->ids[v] = define_value(l, shape, NULL, 0, XNN_VALUE_FLAG_EXTERNAL_INPUT);
            out->input_count = (size_t)graft_shape_elements(shape);
        }
    }
    const graft_shape *shape = &graph->values[result].shape;
    l->ids[result] = define_value(l, shape, NULL, 1, XNN_VALUE_FLAG_EXTERNAL_OUTPUT);
    out->output_count = (size_t)graft_shape_elements(shape);
    out->out = GRAFT_NEW(l->env->life, float, out->output_count + XNN_EXTRA_BYTES);
}

/* Lowers `graph`, which is model->graph or a rewritten copy. */
static graft_status lower_graph(graft_env *env, const graft_model *model, const graft_graph *graph,
                                lowered *out)
{
    graft_status status = GRAFT_OK;
    graft_order order;
    lowering l = {.env = env, .model = model, .graph = graph};
    size_t bytes = graft_order_bytes(&graph->limits);
    GRAFT_CHECK(graft_order_build(&order, graph, graft_arena_alloc(env->life, bytes), bytes));
    l.ids = GRAFT_NEW(env->life, uint32_t, graph->limits.values);
    GRAFT_CHECK(graft_model_fold_weights(env, env->life, model, graph, &l.weights));
    if (model->input_count != 1 || model->output_count != 1 ||
        xnn_create_subgraph(2, 0, &l.subgraph) != xnn_status_success) {
        return GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "%s: not one input and one output", model->file);
    }
    define_ports(&l, out);
    for (graft_index i = 0; l.status == GRAFT_OK && i < order.count; i++) {
        l.at = order.order[i];
        if (!graph->nodes[l.at].is_const) {
            lower_node(&l);
        }
    }
    out->node_count = l.node_count;
    if (l.status == GRAFT_OK &&
        xnn_create_runtime(l.subgraph, &out->runtime) != xnn_status_success) {
        refuse(&l, "XNNPACK makes no runtime of the graph that ends here");
    }
    (void)xnn_delete_subgraph(l.subgraph);
    status = l.status;
done:
    return status;
}

/* Rewrites a copy of the model's graph. */
static graft_status rewrite(graft_env *env, const graft_model *model, graft_graph **result)
{
    graft_status status = GRAFT_OK;
    uint8_t operators[OPERATOR_BYTES] = {0};
    graft_graph *graph = graft_model_graph_copy(env->life, &model->graph);
    graft_optimize_options options = graft_optimize_options_default();
    uint8_t *skipped = GRAFT_NEW(env->life, uint8_t, (size_t)GRAFT_POLICY.rule_count / 8 + 1);
    graft_report report = {.decisions = NULL};
    size_t bytes = graft_optimize_workspace_bytes(&GRAFT_POLICY, &graph->limits, STEPS_MOST);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        operators[known[i].op / 8] |= (uint8_t)(1U << known[i].op % 8);
    }
    GRAFT_CHECK(graft_policy_skip_unrunnable(&GRAFT_POLICY, operators, skipped));
    options.skipped_rules = skipped;
    options.weight_bytes_limit = UINT64_MAX; /* lower.c runs the weight program. */
    options.step_limit = STEPS_MOST;
    uint64_t start_ns = graft_cost_clock_ns(1);
    GRAFT_TRY(env,
              graft_optimize(graph, &GRAFT_POLICY, &options, graft_arena_alloc(env->life, bytes),
                             bytes, &report),
              "while rewriting %s", model->file);
    double ms = (double)(graft_cost_clock_ns(1) - start_ns) / 1e6;
    (void)printf("graft: %u rewrites in %.1f ms, %u operators -> %u\n", report.step_count, ms,
                 report.active_before, report.active_after);
    *result = graph;
done:
    return status;
}

static graft_status run_once(graft_env *env, const lowered *net, float *in, double *ms)
{
    const struct xnn_external_value values[] = {
        {0, in      },
        {1, net->out}
    };
    uint64_t start_ns = graft_cost_clock_ns(1);
    if (xnn_setup_runtime(net->runtime, 2, values) != xnn_status_success ||
        xnn_invoke_runtime(net->runtime) != xnn_status_success) {
        return GRAFT_FAIL(env, GRAFT_INTERNAL, "XNNPACK does not run the graph");
    }
    *ms = (double)(graft_cost_clock_ns(1) - start_ns) / 1e6;
    return GRAFT_OK;
}

/* The largest distance of both outputs, in parts of the largest element. */
static double compare(const lowered nets[2])
{
    double apart = 0.0;
    double most = 0.0;
    for (size_t i = 0; i < nets[0].output_count; i++) {
        double distance = fabs((double)nets[0].out[i] - (double)nets[1].out[i]);
        apart = distance <= apart ? apart : distance; /* NaN stays. */
        most = fmax(most, fabs((double)nets[0].out[i]));
    }
    return apart / most;
}

static graft_status run_in_turns(graft_env *env, const lowered nets[2])
{
    graft_status status = GRAFT_OK;
    float *in = GRAFT_NEW(env->life, float, nets[0].input_count + XNN_EXTRA_BYTES);
    double times[2][ROUNDS];
    double median[2];
    double spread[2];
    graft_rng rng;
    graft_rng_seed(&rng, 1);
    for (size_t i = 0; i < nets[0].input_count; i++) {
        in[i] = (float)(graft_rng_uniform(&rng) * 2.0 - 1.0); /* No order of axes to keep to. */
    }
    for (uint32_t r = 0; r < 2 * ROUNDS + 2; r++) { /* The first two warm up. */
        uint32_t k = (r ^ r >> 1) & 1U;             /* Each is first in half of the turns. */
        GRAFT_CHECK(run_once(env, &nets[k], in, &times[k][r < 2 ? 0 : r / 2 - 1]));
    }
    for (uint32_t k = 0; k < 2; k++) {
        graft_cost_median(times[k], ROUNDS, &median[k], &spread[k]);
        (void)printf("xnnpack %s: %u nodes, %.3f ms (quartiles %.3f apart)\n",
                     k == 0 ? "before" : "after ", nets[k].node_count, median[k], spread[k]);
    }
    double apart = compare(nets);
    (void)printf("speed %.3f, outputs apart by %.1e of the largest\n", median[0] / median[1],
                 apart);
    if (!(apart <= difference_most)) {
        status = GRAFT_FAIL(env, GRAFT_REFUTED, "the outputs are not the same");
    }
done:
    return status;
}

static graft_status run(graft_env *env, const char *path)
{
    graft_status status = GRAFT_OK;
    graft_model *model = NULL;
    graft_graph *rewritten = NULL;
    lowered nets[2];
    GRAFT_CHECK(graft_model_read(env, env->life, path, NULL, &model));
    if (xnn_initialize(NULL) != xnn_status_success) {
        return GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "XNNPACK does not know this processor");
    }
    GRAFT_CHECK(lower_graph(env, model, &model->graph, &nets[0]));
    GRAFT_CHECK(rewrite(env, model, &rewritten));
    GRAFT_CHECK(lower_graph(env, model, rewritten, &nets[1]));
    GRAFT_CHECK(run_in_turns(env, nets));
done:
    (void)xnn_deinitialize();
    return status;
}

int main(int argc, char **argv)
{
    graft_env env;
    if (argc != 2) {
        (void)fprintf(stderr, "usage: run MODEL.onnx\n");
        return 2;
    }
    graft_status status = graft_env_open(&env);
    status = status == GRAFT_OK ? run(&env, argv[1]) : status;
    if (status != GRAFT_OK) {
        (void)fprintf(stderr, "run: %s\n", env.message);
    }
    graft_env_close(&env);
    return status == GRAFT_OK ? 0 : status == GRAFT_REFUTED ? 1 : 2;
}

/* operator.c - see operator.h. A model of one unknown node declares inputs, weights and outputs; in
 * its graph the operator takes that node's place, and the writer does the rest. */
#include "models/operator.h"

#include "graph/base/rng.h"
#include "models/builder.h"

#include <math.h>

enum { OPSET = 17 };

/* Around +-1 / sqrt(elements per output), and away from 0: results neither vanish nor overflow, and
 * no number is denormal. */
static const float *draw_weight(graft_arena *arena, const graft_shape *shape, graft_rng *rng)
{
    const size_t count = (size_t)graft_shape_elements(shape);
    const double rows = shape->rank > 0 && shape->dims[0] > 0 ? shape->dims[0] : 1.0;
    const double scale = 1.0 / sqrt(fmax(1.0, (double)count / rows));
    float *data = GRAFT_NEW(arena, float, count);
    for (size_t i = 0; i < count; i++) {
        double size = scale * (0.5 + graft_rng_uniform(rng));
        data[i] = (float)(graft_rng_below(rng, 2) == 0 ? size : -size);
    }
    return data;
}

static void widen(const graft_shape *shape, int64_t dims[GRAFT_MAX_RANK])
{
    for (uint32_t i = 0; i < shape->rank; i++) {
        dims[i] = shape->dims[i];
    }
}

/* The declarations around a node that stands for the operator. */
static Onnx__ModelProto *declare(graft_arena *arena, const graft_operator *of, uint32_t input_count,
                                 const graft_shape *outputs, uint32_t output_count)
{
    int64_t dims[GRAFT_MAX_RANK];
    const char *names[GRAFT_MAX_INPUTS + GRAFT_MAX_OUTPUTS];
    graft_rng rng;
    Onnx__ModelProto *model = graft_builder_new(arena, "operator", OPSET, 0)->model;
    Onnx__GraphProto *graph = model->graph;
    graph->input = GRAFT_NEW(arena, Onnx__ValueInfoProto *, input_count);
    graph->initializer = GRAFT_NEW(arena, Onnx__TensorProto *, input_count);
    graph->output = GRAFT_NEW(arena, Onnx__ValueInfoProto *, output_count);
    graft_rng_seed(&rng, of->op);
    for (uint32_t k = 0; k < input_count; k++) {
        const graft_shape *shape = &of->inputs[k];
        bool is_const = (of->const_mask >> k & 1U) != 0;
        widen(shape, dims);
        names[k] = graft_arena_printf(arena, "%c%u", is_const ? 'w' : 'x', k);
        if (is_const) {
            graph->initializer[graph->n_initializer++] =
                graft_onnx_make_tensor(arena, names[k], GRAFT_DTYPE_F32, dims, shape->rank,
                                       draw_weight(arena, shape, &rng));
        } else {
            graph->input[graph->n_input++] =
                graft_onnx_make_port(arena, names[k], GRAFT_DTYPE_F32, dims, shape->rank);
        }
    }
    for (uint32_t k = 0; k < output_count; k++) {
        widen(&outputs[k], dims);
        names[input_count + k] = graft_arena_printf(arena, "y%u", k);
        graph->output[graph->n_output++] = graft_onnx_make_port(
            arena, names[input_count + k], GRAFT_DTYPE_F32, dims, outputs[k].rank);
    }
    graph->n_node = 1;
    graph->node = GRAFT_NEW(arena, Onnx__NodeProto *, 1);
    graph->node[0] = graft_onnx_make_node(arena, "GraftOperator", names, input_count,
                                          names + input_count, output_count);
    return model;
}

/* Puts the operator in the place of the node that stands for it. */
static graft_status replace(graft_env *env, const graft_operator *of, graft_graph *graph)
{
    graft_status status = GRAFT_OK;
    graft_index node = GRAFT_NONE;
    graft_index made = GRAFT_NONE;
    graft_index inputs[GRAFT_MAX_INPUTS];
    for (graft_index n = 0; n < graph->node_end; n++) {
        node = graph->nodes[n].op == GRAFT_OP_OPAQUE ? n : node;
    }
    for (uint32_t k = 0; k < graft_op(of->op)->input_count; k++) {
        inputs[k] = graft_node_input(graph, node, k);
    }
    status = graft_graph_add_node(graph, of->op, of->attrs, inputs, GRAFT_NONE, &made);
    if (status != GRAFT_OK) {
        return GRAFT_FAIL(env, status, "%s cannot be put into a model", graft_op(of->op)->name);
    }
    for (uint32_t k = 0; k < graph->output_count; k++) {
        graph->outputs[k] = graft_node_output(graph, made, k);
    }
    return GRAFT_OK;
}

graft_status graft_operator_pack(graft_env *env, graft_arena *arena, const graft_operator *of,
                                 uint8_t **data, size_t *size)
{
    graft_status status = GRAFT_OK;
    const graft_op_info *info = graft_op(of->op);
    const int verbosity = env->verbosity;
    graft_shape outputs[GRAFT_MAX_OUTPUTS];
    graft_model *model = NULL;
    for (uint32_t k = 0; info != NULL && k < info->input_count; k++) {
        info = of->inputs[k].dtype == GRAFT_DTYPE_F32 ? info : NULL;
    }
    if (info == NULL) {
        return GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "not an operator on binary32 tensors");
    }
    status = graft_infer_shapes(of->op, of->attrs, of->inputs, outputs);
    if (status != GRAFT_OK) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s does not take these shapes", info->name);
    }
    const graft_onnx_source source = {
        .proto = declare(arena, of, info->input_count, outputs, info->output_count),
        .file = info->name};
    env->verbosity = 0; /* Nobody wants to hear of the node that stands for the operator. */
    GRAFT_CHECK(graft_onnx_read_message(env, arena, &source, NULL, &model));
    graft_graph *graph = graft_model_graph_copy(arena, &model->graph);
    GRAFT_CHECK(replace(env, of, graph));
    GRAFT_CHECK(graft_model_pack(env, arena, model, graph, data, size));
done:
    env->verbosity = verbosity;
    return status;
}

/* stages.c - see stages.h. A stage is cheap to read, for what is small was worked out by then, so
 * none is kept: sizes are seldom the same for other data. */
#include "emit/run/stages.h"

#include "emit/report/outputs.h"
#include "graph/base/half.h"
#include "graph/flow.h"

#include <string.h>

enum { STAGES_MOST = 1 << 12, STAGE_BYTES = 1 << 20 };

/* Does what runtimes do by themselves, in bodies too. */
static graft_status fuse(graft_env *env, graft_arena *arena, const graft_runtime *runtime,
                         const graft_model *model, const graft_graph **graph)
{
    graft_order *order = GRAFT_NEW(arena, graft_order, 1);
    const graft_order *ordered = order;
    const size_t bytes = graft_order_bytes(&(*graph)->limits);
    for (graft_index n = 0; n < model->graph.node_end; n++) {
        graft_flow *flow = model->graph.nodes[n].op == GRAFT_OP_OPAQUE
                               ? graft_flow_of(model, &model->graph.nodes[n])
                               : NULL;
        for (uint32_t b = 0; flow != NULL && flow->refusal == NULL && b < flow->body_count; b++) {
            graft_flow_body *body = &flow->bodies[b];
            GRAFT_PASS(fuse(env, arena, runtime, body->model, &body->graph));
        }
    }
    GRAFT_PASS(graft_order_build(order, *graph, graft_arena_alloc(arena, bytes), bytes));
    return graft_runtime_fuse_own(env, arena, runtime, graph, &ordered);
}

graft_status graft_stage_open(graft_env *env, graft_arena *arena, const graft_stages *stages,
                              const graft_model *model, const graft_graph **graph,
                              graft_executor **executor)
{
    GRAFT_PASS(fuse(env, arena, stages->runtime, model, graph));
    graft_cost_set_model(stages->cost, model);
    return graft_executor_open_folded(env, arena, stages->cost, model, *graph, executor);
}

/* What is known when a stage begins. */
typedef struct {
    graft_model_told *items;
    uint32_t count;
} told_list;

/* What a stage of a model made: results of its graph, and what was worked out while it was read. */
static told_list list_told(graft_arena *arena, const graft_model *model, float *const *results)
{
    told_list told = {
        .items = GRAFT_NEW(arena, graft_model_told, model->output_count + model->told_count)};
    for (uint32_t k = 0; k < model->output_count; k++) {
        told.items[told.count++] =
            (graft_model_told){model->outputs[k].name, model->outputs[k].shape, results[k]};
    }
    if (model->told_count > 0) {
        memcpy(&told.items[told.count], model->told, model->told_count * sizeof(told.items[0]));
    }
    told.count += model->told_count;
    return told;
}

/* Outputs of the model are of the types that it declares. */
static void take_outputs(graft_arena *arena, const graft_model *first, const told_list *told,
                         graft_run_tensor *outputs)
{
    for (uint32_t k = 0; k < first->promised_count; k++) {
        for (uint32_t i = 0; i < told->count; i++) {
            const graft_model_told *made = &told->items[i];
            if (strcmp(made->name, first->promised[k].name) != 0) {
                continue;
            }
            outputs[k].shape = made->shape;
            outputs[k].data = graft_borrow(made->data);
            const uint8_t dtype = first->promised[k].dtype;
            if (graft_half_is(dtype) && made->shape.dtype != dtype) {
                const size_t count = (size_t)graft_shape_elements(&made->shape);
                outputs[k].shape.dtype = dtype;
                outputs[k].data = GRAFT_NEW(arena, uint16_t, count);
                (void)graft_half_narrow(dtype, made->data, count, outputs[k].data);
            }
        }
    }
}

/* Runs the graph of a stage; `results` gets what it makes. */
static graft_status run_stage(graft_env *env, const graft_stages *stages, const graft_model *model,
                              float ***results)
{
    graft_status status = GRAFT_OK;
    graft_executor *executor = NULL;
    const graft_graph *graph = &model->graph;
    if (model->output_count == 0) {
        return GRAFT_OK;
    }
    GRAFT_CHECK(graft_stage_open(env, stages->arena, stages, model, &graph, &executor));
    const uint32_t count = graft_executor_input_count(executor);
    const float **inputs = GRAFT_NEW(stages->arena, const float *, count);
    for (uint32_t k = 0; k < count; k++) {
        inputs[k] = model->inputs[graph->values[graft_executor_input(executor, k)].source].data;
    }
    *results = graft_outputs_new(stages->arena, executor, graph);
    GRAFT_CHECK(graft_executor_run(env, executor, inputs, *results));
done:
    graft_executor_close(executor);
    return status;
}

graft_status graft_stages_run(graft_env *env, graft_stages *stages, float *const *results,
                              graft_run_tensor *outputs)
{
    graft_status status = GRAFT_OK;
    const graft_model *model = stages->first;
    graft_model_options options = *stages->options;
    graft_arena_free(stages->arena);
    stages->arena = graft_arena_new(STAGE_BYTES);
    told_list told = list_told(stages->arena, model, results);
    take_outputs(stages->arena, stages->first, &told, outputs);
    options.size_count = 0; /* These and what was given were for the first. */
    options.given_count = 0;
    for (uint32_t i = 0; model->rest != NULL; i++) {
        graft_model *next = NULL;
        float **made = NULL;
        if (i == STAGES_MOST) {
            status = GRAFT_FAIL(env, GRAFT_CAPACITY, "%s: it runs in more than %d stages",
                                model->file, STAGES_MOST);
            break;
        }
        options.told = told.items;
        options.told_count = told.count;
        GRAFT_CHECK(graft_model_read_rest(env, stages->arena, model, &options, &next));
        GRAFT_CHECK(run_stage(env, stages, next, &made));
        told = list_told(stages->arena, next, made);
        take_outputs(stages->arena, stages->first, &told, outputs);
        model = next;
    }
done:
    graft_cost_set_model(stages->cost, stages->first);
    return status;
}

void graft_stages_close(graft_stages *stages)
{
    if (stages != NULL) {
        graft_arena_free(stages->arena);
    }
}

/* stages.c - see stages.h. A stage is cheap to read, for what is small was worked out by then, so
 * each run reads it: then what it became is compared with what is kept, and no one has to know which
 * of the data sizes were told by. */
#include "emit/run/stages.h"

#include "emit/report/outputs.h"
#include "graph/base/half.h"
#include "graph/flow.h"

#include <string.h>

enum { STAGES_MOST = 1 << 12, STAGE_BYTES = 1 << 18, KEPT_MOST = 64, KEPT_BYTES = 1 << 28 };

/* A stage as it was read, and what runs it. */
typedef struct stage_reading {
    graft_arena *arena; /* All of this but what the data of the run became. */
    struct stage_reading
        *before;         /* The stage before, whose arena weights may lie in; NULL: none. */
    uint32_t user_count; /* The run, those who keep it, and the stages behind it. */
    graft_model *model;
    const graft_graph *graph;
    graft_executor *executor;   /* NULL: another's was taken, or there is nothing to run. */
    float **results;            /* Of the executor, in the last run that it had a part in. */
    uint64_t run;               /* That run... */
    uint64_t born;              /* ...and the one that this was read in; the first is 1. */
    struct stage_reading *next; /* Of those that are kept. */
} stage_reading;

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

/* ------------------------------------------------------------------------- what is kept */

static void release(stage_reading *reading)
{
    while (reading != NULL && --reading->user_count == 0) {
        stage_reading *before = reading->before;
        graft_executor_close(reading->executor);
        graft_arena_free(reading->arena);
        reading = before;
    }
}

/* With one user, and one more of the stage before. */
static stage_reading *new_reading(stage_reading *before, uint64_t run)
{
    graft_arena *arena = graft_arena_new(STAGE_BYTES);
    stage_reading *reading = GRAFT_NEW(arena, stage_reading, 1);
    *reading = (stage_reading){.arena = arena, .before = before, .user_count = 1, .born = run};
    if (before != NULL) {
        before->user_count++;
    }
    return reading;
}

static void keep(graft_stages *stages, stage_reading *reading)
{
    reading->next = stages->kept;
    stages->kept = reading;
}

/* What runs the graph of a stage; it comes first of those that are kept. NULL: none does. */
static stage_reading *find_kept(graft_arena *scratch, graft_stages *stages,
                                const graft_model *model)
{
    for (stage_reading **link = &stages->kept; *link != NULL; link = &(*link)->next) {
        stage_reading *reading = *link;
        if (graft_model_is_alike(scratch, reading->model, model)) {
            *link = reading->next;
            keep(stages, reading);
            return reading;
        }
    }
    return NULL;
}

/* All but those that ran last, the first, and those of other runs that have results of this one. */
static void drop_old(graft_stages *stages)
{
    uint32_t count = 0;
    uint64_t bytes = 0;
    for (stage_reading **link = &stages->kept; *link != NULL;) {
        stage_reading *reading = *link;
        graft_executor_memory memory;
        const bool lends = reading->run == stages->run && reading->born < stages->run;
        graft_executor_memory_of(reading->executor, &memory);
        bytes += memory.peak_bytes;
        if (count++ > 0 && !lends && (count > KEPT_MOST || bytes > KEPT_BYTES)) {
            *link = reading->next;
            graft_executor_close(reading->executor);
            reading->executor = NULL;
            release(reading);
        } else {
            link = &reading->next;
        }
    }
}

/* ------------------------------------------------------------------------------- running */

/* What runs a stage that was read: what is kept, or else it is planned. */
static graft_status obtain_kept(graft_env *env, graft_stages *stages, stage_reading *reading,
                                stage_reading **kept)
{
    *kept = find_kept(env->scratch, stages, reading->model);
    if (*kept == NULL) {
        reading->graph = &reading->model->graph;
        GRAFT_PASS(graft_stage_open(env, reading->arena, stages, reading->model, &reading->graph,
                                    &reading->executor));
        reading->results = graft_outputs_new(reading->arena, reading->executor, reading->graph);
        reading->user_count++;
        keep(stages, reading);
        stages->planned_count++;
        *kept = reading;
    }
    drop_old(stages);
    return GRAFT_OK;
}

/* Runs the graph of a stage; `results` gets what it makes. */
static graft_status run_stage(graft_env *env, graft_stages *stages, stage_reading *reading,
                              float ***results)
{
    stage_reading *kept = NULL;
    if (reading->model->output_count == 0) {
        return GRAFT_OK;
    }
    GRAFT_PASS(obtain_kept(env, stages, reading, &kept));
    const uint32_t count = graft_executor_input_count(kept->executor);
    const float **inputs = GRAFT_NEW(stages->arena, const float *, count);
    for (uint32_t k = 0; k < count; k++) {
        const graft_value *value = &kept->graph->values[graft_executor_input(kept->executor, k)];
        inputs[k] = reading->model->inputs[value->source].data;
    }
    *results = kept->results;
    if (kept->run == stages->run) { /* It ran an earlier round, whose results are still read. */
        *results = graft_outputs_new(stages->arena, kept->executor, kept->graph);
    }
    kept->run = stages->run;
    return graft_executor_run(env, kept->executor, inputs, *results);
}

/* Of the run before. */
static void forget_run(graft_stages *stages)
{
    release(stages->last);
    graft_arena_free(stages->arena);
    stages->last = NULL;
    stages->arena = NULL;
}

graft_status graft_stages_run(graft_env *env, graft_stages *stages, float *const *results,
                              graft_run_tensor *outputs)
{
    graft_status status = GRAFT_OK;
    const graft_model *model = stages->first;
    graft_model_options options = *stages->options;
    forget_run(stages);
    stages->run++;
    stages->arena = graft_arena_new(STAGE_BYTES);
    told_list told = list_told(stages->arena, model, results);
    take_outputs(stages->arena, stages->first, &told, outputs);
    options.size_count = 0; /* These and what was given were for the first. */
    options.given_count = 0;
    for (uint32_t i = 0; model->rest != NULL; i++) {
        float **made = NULL;
        if (i == STAGES_MOST) {
            status = GRAFT_FAIL(env, GRAFT_CAPACITY, "%s: it runs in more than %d stages",
                                model->file, STAGES_MOST);
            break;
        }
        stage_reading *reading = new_reading(stages->last, stages->run);
        release(stages->last);
        stages->last = reading;
        options.told = told.items;
        options.told_count = told.count;
        GRAFT_CHECK(graft_model_read_rest(env, reading->arena, model, &options, &reading->model));
        model = reading->model;
        GRAFT_CHECK(run_stage(env, stages, reading, &made));
        told = list_told(stages->arena, model, made);
        take_outputs(stages->arena, stages->first, &told, outputs);
    }
done:
    graft_cost_set_model(stages->cost, stages->first);
    return status;
}

void graft_stages_close(graft_stages *stages)
{
    if (stages != NULL) {
        forget_run(stages);
        while (stages->kept != NULL) {
            stage_reading *next = stages->kept->next;
            release(stages->kept);
            stages->kept = next;
        }
    }
}

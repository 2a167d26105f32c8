/* planned.c - see planned.h. */
#include "emit/run/planned.h"

#include "emit/report/outputs.h"
#include "graph/base/half.h"
#include "graph/base/options.h"
#include "graph/rule/policyfile.h"
#include "models/zoo.h"

#include <stdlib.h>
#include <string.h>

/* Plans that are kept, and their tensors' bytes. */
enum { STEPS_MOST = 4096, PLAN_BYTES = 1 << 18, KEPT_MOST = 128, KEPT_BYTES_MOST = 1 << 28 };

/* ------------------------------------------------------------------ making one */

graft_status graft_planned_check(graft_env *env, const char *kind, const graft_run_tensor *given,
                                 uint32_t i)
{
    return given[i].name != NULL
               ? GRAFT_OK
               : GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s %u of those given has no name", kind, i);
}

/* By the rules of a policy, in a copy. */
static graft_status rewrite(graft_run *run)
{
    graft_env *env = &run->env;
    const char *path = run->policy;
    graft_policy policy;
    graft_graph *graph = graft_model_graph_copy(run->plan.arena, run->plan.graph);
    graft_optimize_options options = graft_optimize_options_default();
    options.weight_bytes_limit = UINT64_MAX;
    options.step_limit = STEPS_MOST;
    GRAFT_PASS(graft_policyfile_read(env, run->plan.arena, path, &policy, NULL));
    const size_t bytes =
        graft_optimize_workspace_most_bytes(&policy, &graph->limits, options.step_limit);
    GRAFT_SCOPED(env->scratch);
    graft_status status = graft_optimize(graph, &policy, &options,
                                         graft_arena_alloc(env->scratch, bytes), bytes, NULL);
    if (status != GRAFT_OK) {
        return GRAFT_FAIL(env, status, "%s: the policy failed on %s: %s", path,
                          run->plan.model->file, graft_status_name(status));
    }
    run->plan.graph = graph;
    return status;
}

/* Sizes that the model leaves open are those of these inputs. In the plan's arena. */
static graft_status note_inputs(graft_run *run, const graft_run_tensor *inputs, uint32_t count)
{
    graft_model_given *given = GRAFT_NEW(run->plan.arena, graft_model_given, count);
    for (uint32_t i = 0; i < count; i++) {
        GRAFT_PASS(graft_planned_check(&run->env, "input", inputs, i));
        given[i] = (graft_model_given){inputs[i].name, inputs[i].shape};
    }
    run->reading.given = given;
    run->reading.given_count = count;
    return GRAFT_OK;
}

static graft_status open_plan(graft_run *run, graft_model *model)
{
    graft_arena *arena = run->plan.arena;
    graft_stages *stages = GRAFT_NEW(arena, graft_stages, 1);
    graft_model_options *reading = GRAFT_NEW(arena, graft_model_options, 1);
    run->plan.model = model;
    run->plan.graph = &model->graph;
    if (run->policy != NULL) {
        GRAFT_PASS(rewrite(run));
    }
    *reading = run->reading;
    *stages = (graft_stages){
        .first = model, .options = reading, .runtime = &run->runtime, .cost = run->cost};
    run->plan.stages = model->rest == NULL && model->told_count == 0 ? NULL : stages;
    return graft_stage_open(&run->env, arena, stages, model, &run->plan.graph, &run->plan.executor);
}

graft_status graft_planned_read(graft_run *run, const char *path, const graft_run_options *options)
{
    graft_env *env = &run->env;
    graft_model *model = NULL;
    const graft_option_list sizes = {GRAFT_NEW(env->life, const char *, options->size_count),
                                     options->size_count};
    for (uint32_t i = 0; i < sizes.count; i++) {
        sizes.items[i] = options->sizes[i];
    }
    run->policy = options->policy == NULL ? NULL : graft_arena_strdup(env->life, options->policy);
    run->reading = (graft_model_options){.unroll = GRAFT_UNROLL_MOST, /* It has no kernel for a */
                                         .as_binary32 = true,         /* whole, nor for 16 bits. */
                                         .flows = true,
                                         .staged = true,
                                         .again = true};
    GRAFT_PASS(
        graft_options_sizes(env, "size", 0, &sizes, &run->reading.sizes, &run->reading.size_count));
    GRAFT_PASS(note_inputs(run, options->inputs, options->input_count));
    GRAFT_PASS(graft_runtime_open(env, env->life, NULL, 0, &run->runtime));
    GRAFT_PASS(graft_model_open(env, env->life, path, &run->reading, &model));
    run->first = model;
    run->reading.again = false;
    run->reading.folds = graft_folds_new(env->life, model);
    return open_plan(run, model);
}

/* A tensor of the session; `port` has its name in the model. */
static graft_status list_tensor(graft_run *run, graft_run_tensor *tensor, const graft_shape *shape,
                                const graft_model_port *port, const char *made)
{
    *tensor = (graft_run_tensor){.name = port == NULL ? made : port->name, .shape = *shape};
    if (port != NULL && graft_half_is(port->dtype)) {
        tensor->shape.dtype = port->dtype;
    }
    if (graft_shape_bytes(shape) == 0) {
        return GRAFT_FAIL(&run->env, GRAFT_UNSUPPORTED,
                          "'%s' has a type or sizes that Graft does not know", tensor->name);
    }
    return GRAFT_OK;
}

/* Those of the executor, then what else the model has: inputs without elements. */
static graft_status list_inputs(graft_run *run)
{
    graft_arena *arena = run->plan.arena;
    const graft_model *model = run->plan.model;
    const uint32_t count = graft_executor_input_count(run->plan.executor);
    run->plan.inputs =
        GRAFT_NEW(arena, graft_run_tensor, count + (model == NULL ? 0 : model->input_count));
    for (run->plan.input_count = 0; run->plan.input_count < count; run->plan.input_count++) {
        const uint32_t k = run->plan.input_count;
        const graft_value *value =
            &run->plan.graph->values[graft_executor_input(run->plan.executor, k)];
        GRAFT_PASS(list_tensor(run, &run->plan.inputs[k], &value->shape,
                               model == NULL ? NULL : &model->inputs[value->source],
                               graft_arena_printf(arena, "x%u", k)));
    }
    for (uint32_t i = 0; model != NULL && i < model->input_count; i++) {
        const graft_model_port *port = &model->inputs[i];
        if (port->shape.rank <= GRAFT_MAX_RANK && graft_shape_elements(&port->shape) == 0) {
            graft_run_tensor *tensor = &run->plan.inputs[run->plan.input_count++];
            *tensor = (graft_run_tensor){.name = port->name, .shape = port->shape};
            tensor->shape.dtype = port->dtype;
        }
    }
    return GRAFT_OK;
}

graft_status graft_planned_list(graft_run *run)
{
    graft_arena *arena = run->plan.arena;
    const graft_model *model = run->plan.model;
    const uint32_t output_count = graft_run_output_count(run);
    GRAFT_PASS(list_inputs(run));
    run->plan.results = graft_outputs_new(arena, run->plan.executor, run->plan.graph);
    run->plan.outputs = GRAFT_NEW(arena, graft_run_tensor, output_count);
    for (uint32_t k = 0; k < output_count && run->plan.stages != NULL; k++) {
        const graft_model_port *port = &run->plan.stages->first->promised[k];
        run->plan.outputs[k] = (graft_run_tensor){.name = port->name, .shape = port->shape};
    }
    for (uint32_t k = 0; k < output_count && run->plan.stages == NULL; k++) {
        const graft_index value = graft_executor_output(run->plan.executor, k);
        GRAFT_PASS(list_tensor(run, &run->plan.outputs[k], &run->plan.graph->values[value].shape,
                               model == NULL ? NULL : &model->outputs[k],
                               graft_arena_printf(arena, "y%u", k)));
    }
    return GRAFT_OK;
}

graft_status graft_planned_again(graft_run *run, const graft_run_tensor *inputs, uint32_t count)
{
    graft_model *model = NULL;
    run->plan = (graft_run_plan){.arena = graft_arena_new(PLAN_BYTES)};
    GRAFT_PASS(note_inputs(run, inputs, count));
    GRAFT_PASS(
        graft_model_read_again(&run->env, run->plan.arena, run->first, &run->reading, &model));
    GRAFT_PASS(open_plan(run, model));
    return graft_planned_list(run);
}

void graft_planned_close(graft_run *run, const graft_run_plan *plan)
{
    graft_executor_close(plan->executor);
    graft_stages_close(plan->stages);
    if (plan->arena != run->env.life) {
        graft_arena_free(plan->arena);
    }
}

/* ------------------------------------------------------------------ keeping them */

/* Whether all that a plan reads is given, of its sizes. */
static bool takes(const graft_run_plan *plan, const graft_run_tensor *inputs, uint32_t count)
{
    bool all = true;
    for (uint32_t k = 0; k < plan->input_count && all; k++) {
        uint32_t i = 0;
        while (i < count &&
               (inputs[i].name == NULL || strcmp(inputs[i].name, plan->inputs[k].name) != 0)) {
            i++;
        }
        all = i < count && graft_shape_equal(&inputs[i].shape, &plan->inputs[k].shape);
    }
    return all;
}

static size_t bytes_of(const graft_run_plan *plan)
{
    graft_executor_memory memory;
    graft_executor_memory_of(plan->executor, &memory);
    return (size_t)memory.peak_bytes + graft_arena_used_bytes(plan->arena);
}

bool graft_planned_take(graft_run *run, const graft_run_tensor *inputs, uint32_t count)
{
    kept_plan **link = &run->kept;
    while (*link != NULL && !takes(&(*link)->plan, inputs, count)) {
        link = &(*link)->next;
    }
    kept_plan *found = *link;
    if (found != NULL) {
        const graft_run_plan plan = found->plan;
        *link = found->next;
        found->plan = run->plan; /* Which ran last of those that are kept. */
        found->next = run->kept;
        run->kept = found;
        run->plan = plan;
        graft_cost_set_model(run->cost, plan.model);
    }
    return found != NULL;
}

void graft_planned_keep(graft_run *run, const graft_run_plan *plan)
{
    kept_plan *kept = calloc(1, sizeof *kept);
    size_t bytes = 0;
    uint32_t count = 0;
    if (kept == NULL) {
        graft_planned_close(run, plan);
        return;
    }
    *kept = (kept_plan){run->kept, *plan};
    run->kept = kept;
    for (kept_plan **link = &run->kept; *link != NULL;) {
        kept = *link;
        bytes += bytes_of(&kept->plan);
        if (++count <= KEPT_MOST && bytes <= KEPT_BYTES_MOST) {
            link = &kept->next;
            continue;
        }
        *link = kept->next;
        graft_planned_close(run, &kept->plan);
        free(kept);
    }
}

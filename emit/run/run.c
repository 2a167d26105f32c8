/* run.c - see include/graft/run.h: a model or graph, rewritten, planned by costs, and run. */
#include "emit/run/run.h"

#include "cost/measure/clock.h"

#include "emit/report/outputs.h"
#include "emit/run/runtime.h"
#include "graph/base/half.h"
#include "graph/base/log.h"
#include "graph/base/options.h"
#include "graph/flow.h"
#include "graph/rule/policyfile.h"
#include "models/zoo.h"

#include <locale.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS_MOST = 4096 };

/* ------------------------------------------------------------------ opening */

/* OpenMP keeps a number for each thread, and a session may be used by others than opened it. */
static int take_threads(int count)
{
    const int before = omp_get_max_threads();
    omp_set_num_threads(count);
    return before;
}

static graft_status check_named(graft_env *env, const char *kind, const graft_run_tensor *given,
                                uint32_t i)
{
    return given[i].name != NULL
               ? GRAFT_OK
               : GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s %u of those given has no name", kind, i);
}

static graft_status open_costs(graft_run *run, const graft_run_options *options)
{
    graft_env *env = &run->env;
    const char *database = options->database;
    database = database == NULL ? graft_device_database(env, "cpu") : database;
    GRAFT_PASS(graft_device_open(env, "cpu", env->thread_count, &run->device));
    GRAFT_PASS(graft_cost_open(env, run->device, options->tune ? database : NULL, &run->cost));
    if (!options->tune) {
        GRAFT_PASS(graft_cost_borrow(env, run->cost, database));
    }
    return GRAFT_OK;
}

/* By the rules of a policy, in a copy. */
static graft_status rewrite(graft_run *run, const char *path, const graft_model *model)
{
    graft_env *env = &run->env;
    graft_policy policy;
    graft_graph *graph = graft_model_graph_copy(env->life, run->graph);
    graft_optimize_options options = graft_optimize_options_default();
    options.weight_bytes_limit = UINT64_MAX;
    options.step_limit = STEPS_MOST;
    GRAFT_PASS(graft_policyfile_read(env, env->life, path, &policy, NULL));
    const size_t bytes =
        graft_optimize_workspace_most_bytes(&policy, &graph->limits, options.step_limit);
    graft_mark mark = graft_arena_mark(env->scratch);
    graft_status status = graft_optimize(graph, &policy, &options,
                                         graft_arena_alloc(env->scratch, bytes), bytes, NULL);
    graft_arena_release(env->scratch, mark);
    if (status != GRAFT_OK) {
        return GRAFT_FAIL(env, status, "%s: the policy failed on %s: %s", path, model->file,
                          graft_status_name(status));
    }
    run->graph = graph;
    return status;
}

static graft_status open_model(graft_run *run, const char *path, const graft_run_options *options,
                               graft_model **model)
{
    graft_env *env = &run->env;
    graft_runtime *runtime = GRAFT_NEW(env->life, graft_runtime, 1);
    graft_model_options *kept = GRAFT_NEW(env->life, graft_model_options, 1);
    graft_stages *stages = GRAFT_NEW(env->life, graft_stages, 1);
    graft_model_options reading = {.unroll = GRAFT_UNROLL_MOST, /* It has no kernel for a whole, */
                                   .as_binary32 = true,         /* nor for 16 bits. */
                                   .flows = true,
                                   .staged = true};
    const graft_option_list sizes = {GRAFT_NEW(env->life, const char *, options->size_count),
                                     options->size_count};
    for (uint32_t i = 0; i < sizes.count; i++) {
        sizes.items[i] = options->sizes[i];
    }
    GRAFT_PASS(graft_options_sizes(env, "size", &sizes, &reading.sizes, &reading.size_count));
    graft_model_given *given = GRAFT_NEW(env->life, graft_model_given, options->input_count);
    for (uint32_t i = 0; i < options->input_count; i++) {
        GRAFT_PASS(check_named(env, "input", options->inputs, i));
        given[i] = (graft_model_given){options->inputs[i].name, options->inputs[i].shape};
    }
    reading.given = given;
    reading.given_count = options->input_count;
    GRAFT_PASS(graft_model_open(env, env->life, path, &reading, model));
    run->graph = &(*model)->graph;
    if (options->policy != NULL) {
        GRAFT_PASS(rewrite(run, options->policy, *model));
    }
    GRAFT_PASS(graft_runtime_open(env, env->life, NULL, 0, runtime));
    *kept = reading;
    kept->folds = graft_folds_new(env->life, *model);
    *stages =
        (graft_stages){.first = *model, .options = kept, .runtime = runtime, .cost = run->cost};
    run->stages = (*model)->rest == NULL ? NULL : stages;
    return graft_stage_open(env, env->life, stages, *model, &run->graph, &run->executor);
}

/* A tensor of the session; `port` has its name in the model. */
static graft_status list_tensor(graft_run *run, graft_run_tensor *tensor, graft_index value,
                                const graft_model_port *port, const char *made)
{
    const graft_shape *shape = &run->graph->values[value].shape;
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

static graft_status list_tensors(graft_run *run, const graft_model *model)
{
    graft_arena *arena = run->env.life;
    const uint32_t input_count = graft_run_input_count(run);
    const uint32_t output_count = graft_run_output_count(run);
    run->results = graft_outputs_new(arena, run->executor, run->graph);
    run->inputs = GRAFT_NEW(arena, graft_run_tensor, input_count);
    run->outputs = GRAFT_NEW(arena, graft_run_tensor, output_count);
    for (uint32_t k = 0; k < input_count; k++) {
        const graft_index value = graft_executor_input(run->executor, k);
        GRAFT_PASS(
            list_tensor(run, &run->inputs[k], value,
                        model == NULL ? NULL : &model->inputs[run->graph->values[value].source],
                        graft_arena_printf(arena, "x%u", k)));
    }
    for (uint32_t k = 0; k < output_count && run->stages != NULL; k++) {
        const graft_model_port *port = &run->stages->first->promised[k];
        run->outputs[k] = (graft_run_tensor){.name = port->name, .shape = port->shape};
    }
    for (uint32_t k = 0; k < output_count && run->stages == NULL; k++) {
        GRAFT_PASS(list_tensor(run, &run->outputs[k], graft_executor_output(run->executor, k),
                               model == NULL ? NULL : &model->outputs[k],
                               graft_arena_printf(arena, "y%u", k)));
    }
    return GRAFT_OK;
}

/* What a session is opened for: a model, or a graph. */
typedef struct {
    const char *path; /* NULL: the graph. */
    const graft_graph *graph;
    graft_run_weights weights;
    void *context;
} run_source;

static graft_status open_source(graft_run *run, const run_source *source,
                                const graft_run_options *options)
{
    graft_model *model = NULL;
    if (options->thread_count > GRAFT_THREADS_MOST) {
        return GRAFT_FAIL(&run->env, GRAFT_BAD_INPUT, "%u threads are more than %d",
                          options->thread_count, GRAFT_THREADS_MOST);
    }
    GRAFT_PASS(open_costs(run, options));
    if (source->path != NULL) {
        GRAFT_PASS(open_model(run, source->path, options, &model));
    } else {
        run->graph = source->graph;
        GRAFT_PASS(graft_executor_open(&run->env, run->cost, source->graph, source->weights,
                                       source->context, &run->executor));
    }
    GRAFT_PASS(graft_cost_save(&run->env, run->cost));
    return list_tensors(run, model);
}

/* The thread's locale from here on: files have a point in their numbers, and the product's language
 * may have a comma. Gives the one before, for uselocale. */
static locale_t take_plain_locale(void)
{
    return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0)); /* "C" is static: not to free. */
}

static graft_status open_run(const run_source *source, const graft_run_options *options,
                             graft_run **run)
{
    static const graft_run_options defaults = {.thread_count = 0};
    graft_run *r = calloc(1, sizeof *r);
    options = options == NULL ? &defaults : options;
    *run = NULL;
    if (r == NULL || graft_env_open(&r->env) != GRAFT_OK) {
        free(r);
        return GRAFT_NO_MEMORY;
    }
    *run = r;
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    r->env.verbosity = 0;
    r->env.thread_count = options->thread_count > 0 ? options->thread_count
                          : processors > 0          ? (uint32_t)processors
                                                    : 1;
    const int before = take_threads((int)r->env.thread_count);
    const locale_t language = take_plain_locale();
    graft_status status = open_source(r, source, options);
    (void)uselocale(language);
    (void)take_threads(before);
    return status;
}

graft_status graft_run_open(const char *model, const graft_run_options *options, graft_run **run)
{
    const run_source source = {.path = model};
    return open_run(&source, options, run);
}

graft_status graft_run_open_graph(const graft_graph *graph, graft_run_weights weights,
                                  void *context, const graft_run_options *options, graft_run **run)
{
    const run_source source = {.graph = graph, .weights = weights, .context = context};
    return open_run(&source, options, run);
}

void graft_run_close(graft_run *run)
{
    if (run != NULL) {
        graft_executor_close(run->executor);
        graft_stages_close(run->stages);
        const locale_t language = take_plain_locale();
        (void)!graft_cost_close(&run->env, run->cost); /* It was saved. */
        (void)uselocale(language);
        graft_device_close(run->device);
        graft_env_close(&run->env);
        free(run);
    }
}

const char *graft_run_message(const graft_run *run)
{
    return run == NULL ? "no memory left" : run->env.message;
}

/* ------------------------------------------------------------------ running */

uint32_t graft_run_input_count(const graft_run *run)
{
    return run->executor == NULL ? 0 : graft_executor_input_count(run->executor);
}

uint32_t graft_run_output_count(const graft_run *run)
{
    return run->executor == NULL ? 0
           : run->stages != NULL ? run->stages->first->promised_count
                                 : graft_executor_output_count(run->executor);
}

const graft_run_tensor *graft_run_input(const graft_run *run, uint32_t k)
{
    return &run->inputs[k];
}

const graft_run_tensor *graft_run_output(const graft_run *run, uint32_t k)
{
    return &run->outputs[k];
}

const char *graft_shape_text(graft_arena *arena, const graft_shape *shape)
{
    static const char *const names[] = {
        [GRAFT_DTYPE_F32] = "f32", [GRAFT_DTYPE_U8] = "u8",     [GRAFT_DTYPE_I8] = "i8",
        [GRAFT_DTYPE_U16] = "u16", [GRAFT_DTYPE_I16] = "i16",   [GRAFT_DTYPE_I32] = "i32",
        [GRAFT_DTYPE_I64] = "i64", [GRAFT_DTYPE_BOOL] = "bool", [GRAFT_DTYPE_F16] = "f16",
        [GRAFT_DTYPE_F64] = "f64", [GRAFT_DTYPE_BF16] = "bf16"};
    const bool named = shape->dtype < sizeof names / sizeof names[0] && names[shape->dtype] != NULL;
    const char *text = graft_arena_printf(arena, "%s[", named ? names[shape->dtype] : "?");
    for (uint32_t i = 0; i < shape->rank && shape->rank <= GRAFT_MAX_RANK; i++) {
        text = graft_arena_printf(arena, "%s%s%d", text, i > 0 ? "," : "", shape->dims[i]);
    }
    return graft_arena_printf(arena, "%s]", text);
}

/* One side of a run: what the session has, and where what was given for it lies. */
typedef struct {
    const char *kind; /* "input" */
    const graft_run_tensor *own;
    uint32_t count;
    void **data; /* NULL: not given. */
} run_side;

static graft_status take_given(graft_env *env, const run_side *side, const graft_run_tensor *given,
                               uint32_t given_count)
{
    for (uint32_t i = 0; i < given_count; i++) {
        uint32_t k = 0;
        GRAFT_PASS(check_named(env, side->kind, given, i));
        bool met = false; /* A model can have an output twice, each with data of its own. */
        while (k < side->count &&
               (strcmp(side->own[k].name, given[i].name) != 0 || side->data[k] != NULL)) {
            met = met || strcmp(side->own[k].name, given[i].name) == 0;
            k++;
        }
        if (k == side->count || given[i].data == NULL) {
            return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s '%s': %s", side->kind, given[i].name,
                              met                ? "it comes twice"
                              : k == side->count ? "the model has none of this name"
                                                 : "it has no data");
        }
        if (!graft_shape_equal(&side->own[k].shape, &given[i].shape)) {
            return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s '%s' is %s, not the model's %s", side->kind,
                              given[i].name, graft_shape_text(env->scratch, &given[i].shape),
                              graft_shape_text(env->scratch, &side->own[k].shape));
        }
        side->data[k] = given[i].data;
    }
    return GRAFT_OK;
}

static graft_status refuse_missing(graft_env *env, const run_side *side)
{
    const char *missing = NULL;
    for (uint32_t k = 0; k < side->count; k++) {
        if (side->data[k] == NULL) {
            missing = graft_arena_printf(env->scratch, "%s%s'%s' %s", missing ? missing : "",
                                         missing ? ", " : "", side->own[k].name,
                                         graft_shape_text(env->scratch, &side->own[k].shape));
        }
    }
    return missing == NULL
               ? GRAFT_OK
               : GRAFT_FAIL(env, GRAFT_BAD_INPUT, "missing: %s %s", side->kind, missing);
}

/* The executor's input: what was given, or in binary32 what it has in 16 bits. */
static const float *widen_given(graft_env *env, const run_side *side, uint32_t k)
{
    const graft_shape *shape = &side->own[k].shape;
    if (!graft_half_is(shape->dtype)) {
        return side->data[k];
    }
    const size_t count = (size_t)graft_shape_elements(shape);
    float *wide = GRAFT_NEW(env->scratch, float, count);
    graft_half_widen(shape->dtype, side->data[k], count, wide);
    return wide;
}

/* Where the executor writes output `k` to; 16 bits are rounded from our own tensor. */
static float *place_output(const graft_run *run, const run_side *side, uint32_t k)
{
    const bool ours = side->data[k] == NULL || graft_half_is(side->own[k].shape.dtype);
    return ours ? run->results[k] : side->data[k];
}

/* A number that does not fit becomes an infinity, as in any computation. */
static void round_outputs(const graft_run *run, const run_side *side)
{
    for (uint32_t k = 0; k < side->count; k++) {
        const graft_shape *shape = &side->own[k].shape;
        if (graft_half_is(shape->dtype) && side->data[k] != NULL) {
            (void)graft_half_narrow(shape->dtype, run->results[k],
                                    (size_t)graft_shape_elements(shape), side->data[k]);
        }
    }
}

/* What follows the first stage, and what was made to where it is wanted. */
static graft_status run_stages(graft_run *run, const run_side *out, const graft_run_tensor *given,
                               uint32_t given_count)
{
    const locale_t language = take_plain_locale();
    const graft_status status =
        graft_stages_run(&run->env, run->stages, run->results, run->outputs);
    (void)uselocale(language);
    GRAFT_PASS(status);
    GRAFT_PASS(take_given(&run->env, out, given, given_count));
    for (uint32_t k = 0; k < out->count; k++) {
        if (out->data[k] != NULL) {
            memcpy(out->data[k], run->outputs[k].data,
                   (size_t)graft_shape_bytes(&run->outputs[k].shape));
        }
    }
    return GRAFT_OK;
}

graft_status graft_run_once(graft_run *run, const graft_run_tensor *inputs, uint32_t input_count,
                            const graft_run_tensor *outputs, uint32_t output_count)
{
    graft_status status = GRAFT_OK;
    graft_env *env = &run->env;
    if (run->results == NULL) {
        return GRAFT_BAD_INPUT; /* It was not opened, and the message says why. */
    }
    graft_env_clear(env);
    graft_mark mark = graft_arena_mark(env->scratch);
    const uint32_t counts[2] = {graft_run_input_count(run), graft_run_output_count(run)};
    const run_side in = {"input", run->inputs, counts[0],
                         GRAFT_NEW(env->scratch, void *, counts[0])};
    const run_side out = {"output", run->outputs, counts[1],
                          GRAFT_NEW(env->scratch, void *, counts[1])};
    const int before = take_threads((int)env->thread_count);
    GRAFT_CHECK(take_given(env, &in, inputs, input_count));
    GRAFT_CHECK(refuse_missing(env, &in));
    const float **from = GRAFT_NEW(env->scratch, const float *, in.count);
    float **to = GRAFT_NEW(env->scratch, float *, out.count);
    for (uint32_t k = 0; k < in.count; k++) {
        from[k] = widen_given(env, &in, k);
    }
    if (run->stages != NULL) {
        GRAFT_CHECK(graft_executor_run(env, run->executor, from, run->results));
        GRAFT_CHECK(run_stages(run, &out, outputs, output_count));
        goto done;
    }
    GRAFT_CHECK(take_given(env, &out, outputs, output_count));
    for (uint32_t k = 0; k < out.count; k++) {
        to[k] = place_output(run, &out, k);
    }
    GRAFT_CHECK(graft_executor_run(env, run->executor, from, to));
    round_outputs(run, &out);
done:
    (void)take_threads(before);
    graft_arena_release(env->scratch, mark);
    return status;
}

/* Whole runs, for each has stages of its own. */
static graft_status time_stages(graft_env *env, graft_run *run, const graft_run_tensor *inputs,
                                uint32_t input_count, graft_timing *timing)
{
    GRAFT_SCOPED(env->scratch);
    double *samples = GRAFT_NEW(env->scratch, double, timing->rounds);
    for (uint32_t i = 0; i < timing->rounds; i++) {
        const uint64_t start_ns = graft_cost_clock_ns(run->env.thread_count);
        GRAFT_PASS(graft_run_once(run, inputs, input_count, NULL, 0));
        samples[i] = (double)(graft_cost_clock_ns(run->env.thread_count) - start_ns);
        GRAFT_PASS(graft_interrupted_while(env, "measuring"));
    }
    graft_cost_median(samples, timing->rounds, &timing->median_ns, &timing->spread_ns);
    return GRAFT_OK;
}

graft_status graft_run_time(graft_env *env, graft_run *run, const graft_run_tensor *inputs,
                            uint32_t input_count, uint32_t rounds, graft_timing *timing)
{
    if (run->stages != NULL) {
        timing->rounds = rounds;
        return time_stages(env, run, inputs, input_count, timing);
    }
    const int before = take_threads((int)run->env.thread_count);
    graft_status status = graft_executor_time(env, run->executor, rounds, timing);
    (void)take_threads(before);
    return status;
}

graft_status graft_run_time_steps(graft_env *env, graft_run *run, uint32_t rounds, double *step_ns)
{
    graft_status status = GRAFT_OK;
    GRAFT_SCOPED(env->scratch);
    const uint32_t count = graft_executor_schedule(run->executor)->step_count;
    double *samples = GRAFT_NEW(env->scratch, double, (size_t)count *rounds);
    const int before = take_threads((int)run->env.thread_count);
    for (uint32_t round = 0; round < rounds; round++) {
        for (uint32_t step = 0; step < count; step++) {
            GRAFT_CHECK(graft_executor_time_steps(env, run->executor, step, step + 1, 1,
                                                  &samples[(size_t)step * rounds + round]));
        }
        GRAFT_CHECK(graft_interrupted_while(env, "measuring"));
    }
    for (uint32_t step = 0; step < count; step++) {
        double spread_ns = 0.0;
        graft_cost_median(&samples[(size_t)step * rounds], rounds, &step_ns[step], &spread_ns);
    }
done:
    (void)take_threads(before);
    return status;
}

/* run.c - see include/graft/run.h: a model or graph, rewritten, planned by costs, and run. */
#include "emit/run/planned.h"

#include "cost/measure/clock.h"

#include "graph/base/half.h"
#include "graph/base/log.h"

#include <locale.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ------------------------------------------------------------------ opening */

/* OpenMP keeps a number for each thread, and a session may be used by others than opened it. */
static int take_threads(int count)
{
    const int before = omp_get_max_threads();
    omp_set_num_threads(count);
    return before;
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
    if (options->thread_count > GRAFT_THREADS_MOST) {
        return GRAFT_FAIL(&run->env, GRAFT_BAD_INPUT, "%u threads are more than %d",
                          options->thread_count, GRAFT_THREADS_MOST);
    }
    GRAFT_PASS(open_costs(run, options));
    if (source->path != NULL) {
        GRAFT_PASS(graft_planned_read(run, source->path, options));
    } else {
        run->plan.graph = source->graph;
        GRAFT_PASS(graft_executor_open(&run->env, run->cost, source->graph, source->weights,
                                       source->context, &run->plan.executor));
    }
    GRAFT_PASS(graft_cost_save(&run->env, run->cost));
    return graft_planned_list(run);
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
    r->plan.arena = r->env.life;
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

/* The plan before lives until there is another one, which takes the weights that it has packed. */
graft_status graft_run_resize(graft_run *run, const graft_run_tensor *inputs, uint32_t count)
{
    const graft_run_plan before = run->plan;
    const graft_model_options reading = run->reading;
    if (before.results == NULL) {
        return GRAFT_BAD_INPUT; /* It was not opened, and the message says why. */
    }
    graft_env_clear(&run->env);
    if (run->first == NULL) {
        return GRAFT_FAIL(&run->env, GRAFT_UNSUPPORTED, "a graph has no open sizes");
    }
    if (graft_planned_take(run, inputs, count)) {
        return GRAFT_OK;
    }
    GRAFT_SCOPED(run->env.scratch);
    const int threads = take_threads((int)run->env.thread_count);
    const locale_t language = take_plain_locale();
    const graft_status status = graft_planned_again(run, inputs, count);
    (void)uselocale(language);
    (void)take_threads(threads);
    if (status == GRAFT_OK) {
        graft_planned_keep(run, &before);
    } else {
        graft_planned_close(run, &run->plan);
        run->plan = before;
        run->reading = reading;
        graft_cost_set_model(run->cost, before.model);
    }
    return status;
}

void graft_run_close(graft_run *run)
{
    if (run != NULL) {
        graft_planned_close(run, &run->plan);
        while (run->kept != NULL) {
            kept_plan *next = run->kept->next;
            graft_planned_close(run, &run->kept->plan);
            free(run->kept);
            run->kept = next;
        }
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

uint32_t graft_run_input_count(const graft_run *run) { return run->plan.input_count; }

uint32_t graft_run_output_count(const graft_run *run)
{
    return run->plan.executor == NULL ? 0
           : run->plan.stages != NULL ? run->plan.stages->first->promised_count
                                      : graft_executor_output_count(run->plan.executor);
}

const graft_run_tensor *graft_run_input(const graft_run *run, uint32_t k)
{
    return &run->plan.inputs[k];
}

const graft_run_tensor *graft_run_output(const graft_run *run, uint32_t k)
{
    return &run->plan.outputs[k];
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

/* What is given for a tensor of the session: data, which one without elements may lack. */
static void *data_of(const graft_run_tensor *own, const graft_run_tensor *given)
{
    static uint64_t nothing;
    return given->data == NULL && graft_shape_elements(&own->shape) == 0 ? &nothing : given->data;
}

static graft_status take_given(graft_env *env, const run_side *side, const graft_run_tensor *given,
                               uint32_t given_count)
{
    for (uint32_t i = 0; i < given_count; i++) {
        uint32_t k = 0;
        GRAFT_PASS(graft_planned_check(env, side->kind, given, i));
        bool met = false; /* A model can have an output twice, each with data of its own. */
        while (k < side->count &&
               (strcmp(side->own[k].name, given[i].name) != 0 || side->data[k] != NULL)) {
            met = met || strcmp(side->own[k].name, given[i].name) == 0;
            k++;
        }
        if (k == side->count || data_of(&side->own[k], &given[i]) == NULL) {
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
        side->data[k] = data_of(&side->own[k], &given[i]);
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
    return ours ? run->plan.results[k] : side->data[k];
}

/* A number that does not fit becomes an infinity, as in any computation. */
static void round_outputs(const graft_run *run, const run_side *side)
{
    for (uint32_t k = 0; k < side->count; k++) {
        const graft_shape *shape = &side->own[k].shape;
        if (graft_half_is(shape->dtype) && side->data[k] != NULL) {
            (void)graft_half_narrow(shape->dtype, run->plan.results[k],
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
        graft_stages_run(&run->env, run->plan.stages, run->plan.results, run->plan.outputs);
    (void)uselocale(language);
    GRAFT_PASS(status);
    GRAFT_PASS(take_given(&run->env, out, given, given_count));
    for (uint32_t k = 0; k < out->count; k++) {
        if (out->data[k] != NULL) {
            memcpy(out->data[k], run->plan.outputs[k].data,
                   (size_t)graft_shape_bytes(&run->plan.outputs[k].shape));
        }
    }
    return GRAFT_OK;
}

graft_status graft_run_once(graft_run *run, const graft_run_tensor *inputs, uint32_t input_count,
                            const graft_run_tensor *outputs, uint32_t output_count)
{
    graft_status status = GRAFT_OK;
    graft_env *env = &run->env;
    if (run->plan.results == NULL) {
        return GRAFT_BAD_INPUT; /* It was not opened, and the message says why. */
    }
    graft_env_clear(env);
    graft_mark mark = graft_arena_mark(env->scratch);
    const uint32_t counts[2] = {graft_run_input_count(run), graft_run_output_count(run)};
    const run_side in = {"input", run->plan.inputs, counts[0],
                         GRAFT_NEW(env->scratch, void *, counts[0])};
    const run_side out = {"output", run->plan.outputs, counts[1],
                          GRAFT_NEW(env->scratch, void *, counts[1])};
    const int before = take_threads((int)env->thread_count);
    GRAFT_CHECK(take_given(env, &in, inputs, input_count));
    GRAFT_CHECK(refuse_missing(env, &in));
    const uint32_t read_count = graft_executor_input_count(run->plan.executor);
    const float **from = GRAFT_NEW(env->scratch, const float *, read_count);
    float **to = GRAFT_NEW(env->scratch, float *, out.count);
    for (uint32_t k = 0; k < read_count; k++) {
        from[k] = widen_given(env, &in, k);
    }
    if (run->plan.stages != NULL) {
        GRAFT_CHECK(graft_executor_run(env, run->plan.executor, from, run->plan.results));
        GRAFT_CHECK(run_stages(run, &out, outputs, output_count));
        goto done;
    }
    GRAFT_CHECK(take_given(env, &out, outputs, output_count));
    for (uint32_t k = 0; k < out.count; k++) {
        to[k] = place_output(run, &out, k);
    }
    GRAFT_CHECK(graft_executor_run(env, run->plan.executor, from, to));
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
    if (run->plan.stages != NULL) {
        timing->rounds = rounds;
        return time_stages(env, run, inputs, input_count, timing);
    }
    const int before = take_threads((int)run->env.thread_count);
    graft_status status = graft_executor_time(env, run->plan.executor, rounds, timing);
    (void)take_threads(before);
    return status;
}

graft_status graft_run_time_steps(graft_env *env, graft_run *run, uint32_t rounds, double *step_ns)
{
    graft_status status = GRAFT_OK;
    GRAFT_SCOPED(env->scratch);
    const uint32_t count = graft_executor_schedule(run->plan.executor)->step_count;
    double *samples = GRAFT_NEW(env->scratch, double, (size_t)count *rounds);
    const int before = take_threads((int)run->env.thread_count);
    for (uint32_t round = 0; round < rounds; round++) {
        for (uint32_t step = 0; step < count; step++) {
            GRAFT_CHECK(graft_executor_time_steps(env, run->plan.executor, step, step + 1, 1,
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

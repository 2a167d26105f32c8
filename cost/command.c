/* command.c - `graft measure` (see command.h). */
#include "cost/command.h"

#include "cost/device/device_program.h"
#include "cost/measure/calibrate.h"
#include "cost/measure/clock.h"
#include "cost/measure/plot.h"
#include "models/zoo.h"

enum { ROUNDS_MOST = 100000, ROUNDS_LEAST = 3 };

/* ---------------------------------------------------------------- measure */

typedef struct {
    const char *model;
    const char *device;
    const char *database;
    const char *plot; /* Where to write an SVG; NULL: nowhere. */
    uint32_t rounds;
} measure_options;

typedef struct {
    const measure_options *options;
    graft_model *model;
    graft_weights weights;
    graft_schedule schedule;
    graft_device *device;
    graft_cost *cost;
} measure_run;

static const graft_option options_taken[] = {
    GRAFT_WORD(measure_options, model, "MODEL", "a name of the zoo or an ONNX file"),
    GRAFT_TEXT(measure_options, device, "--device", "NAME", "cpu", "where to measure"),
    GRAFT_TEXT(measure_options, database, "--database", "FILE", NULL,
               "where costs are kept (default: the device's, in out/ or ~/.cache/graft)"),
    GRAFT_NUMBER(measure_options, rounds, "--rounds", "N", NULL, ROUNDS_LEAST, ROUNDS_MOST,
                 "of each measurement"),
    GRAFT_OUTPUT(measure_options, plot, "--plot", "FILE.svg", "draw the roofline"),
};

static void complete_options(graft_env *env, measure_options *options)
{
    if (options->database == NULL) {
        options->database = graft_device_database(env, options->device);
    }
    if (options->rounds == 0) {
        options->rounds = graft_measure_options_default().rounds;
    }
}

static graft_status schedule_model(graft_env *env, measure_run *run)
{
    GRAFT_SCOPED(env->scratch);
    graft_order order;
    const graft_graph *graph = &run->model->graph;
    size_t bytes = graft_order_bytes(&graph->limits);
    void *memory = graft_arena_alloc(env->scratch, bytes);
    GRAFT_PASS_IN(env, graft_order_build(&order, graph, memory, bytes), "while ordering %s",
                  run->model->file);
    return graft_cost_plan(env, run->cost, env->life, graph, &order, &run->schedule);
}

static graft_status open_run(graft_env *env, measure_run *run)
{
    graft_measure_options measuring = graft_measure_options_default();
    measuring.rounds = run->options->rounds;
    GRAFT_PASS(graft_model_open(env, env->life, run->options->model, NULL, &run->model));
    GRAFT_PASS(graft_device_open(env, run->options->device, env->asked_threads, &run->device));
    GRAFT_PASS(graft_cost_open(env, run->device, run->options->database, &run->cost));
    graft_cost_set_model(run->cost, run->model);
    graft_cost_set_measuring(run->cost, &measuring);
    return schedule_model(env, run);
}

/* Has a program time the model; `reason` says why it did not. */
static graft_status ask_whole(graft_env *env, measure_run *run, graft_cost_summary *summary)
{
    GRAFT_SCOPED(env->scratch);
    const uint32_t rounds = run->options->rounds;
    const char *path = NULL; /* The model as it was read. */
    const char *refusal = "the device does not time whole models";
    double *times = GRAFT_NEW(env->scratch, double, rounds);
    if (graft_device_times_models(run->device)) {
        const graft_device_turns turns = {run->model, &path, 1, rounds, &times};
        GRAFT_PASS(graft_device_time_models(env, run->device, &turns, &refusal));
    }
    if (refusal == NULL) {
        graft_cost_median(times, rounds, &summary->timing.median_ns, &summary->timing.spread_ns);
        summary->timing.rounds = rounds;
    } else {
        summary->reason = graft_arena_strdup(env->life, refusal);
    }
    return GRAFT_OK;
}

/* Runs the whole graph, where it can be run. */
static graft_status time_whole(graft_env *env, measure_run *run, graft_cost_summary *summary)
{
    graft_status status = GRAFT_OK;
    graft_executor *executor = NULL;
    const graft_graph *graph = &run->model->graph;
    if (!graft_device_present(run->device)) {
        summary->reason = "the device is not here";
        return GRAFT_OK;
    }
    if (graft_device_is_program(run->device)) {
        return ask_whole(env, run, summary);
    }
    GRAFT_CHECK(graft_model_fold_weights(env, env->life, run->model, graph, &run->weights));
    GRAFT_CHECK(
        graft_executor_open_model(env, run->cost, run->model, graph, &run->weights, &executor));
    GRAFT_CHECK(graft_whole_time(env, run->cost, executor, run->options->rounds, &summary->timing));
    graft_executor_memory_of(executor, &summary->memory);
done:
    if (status == GRAFT_UNSUPPORTED) {
        summary->reason = graft_arena_strdup(env->life, env->message);
    }
    graft_executor_close(executor);
    return status;
}

static graft_status plot_rows(graft_env *env, const measure_run *run, const graft_ceiling *ceiling,
                              const graft_cost_row *rows, uint32_t count, double total_ns)
{
    if (run->options->plot == NULL) {
        return GRAFT_OK;
    }
    const graft_plot plot = {.title = graft_arena_printf(env->life, "%s on %s", run->options->model,
                                                         graft_device_name(run->device)),
                             .ceiling = ceiling,
                             .rows = rows,
                             .count = count,
                             .total_ns = total_ns};
    return graft_plot_write(env, run->options->plot, &plot);
}

static graft_status measure_model(graft_env *env, measure_run *run)
{
    graft_cost_summary summary = {.model = run->options->model};
    graft_cost_row *rows = NULL;
    uint32_t count = 0;
    const graft_graph *graph = &run->model->graph;
    GRAFT_PASS(graft_cost_schedule(env, run->cost, graph, &run->schedule, &summary.total));
    GRAFT_PASS(graft_cost_rows(env, run->cost, graph, &run->schedule, &rows, &count));
    const graft_ceiling ceiling = graft_ceiling_of(graft_cost_database(run->cost));
    graft_status status = time_whole(env, run, &summary);
    if (status == GRAFT_OK || status == GRAFT_UNSUPPORTED) {
        graft_cost_print_rows(env, rows, count, summary.total.ns, &ceiling);
        graft_cost_print_summary(env, run->cost, &summary);
    }
    GRAFT_PASS(status);
    GRAFT_PASS(plot_rows(env, run, &ceiling, rows, count, summary.total.ns));
    return status;
}

static graft_status measure(graft_env *env, void *choices)
{
    graft_status status = GRAFT_OK;
    measure_options *options = choices;
    measure_run run = {.options = options};
    complete_options(env, options);
    GRAFT_CHECK(open_run(env, &run));
    GRAFT_CHECK(measure_model(env, &run));
done:
    return graft_cost_finish(env, run.cost, run.device, status);
}

const graft_command graft_command_measure = {
    .name = "measure",
    .summary = "time the operators of a model on this machine",
    GRAFT_TAKES(measure_options, options_taken),
    .run = measure,
};

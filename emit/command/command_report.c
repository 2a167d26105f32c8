/* command_report.c - `graft report`: the truth about what `graft policy` found. Replays the
 * decisions that the compiled policy took, writes the optimised model, checks that it computes the
 * same, and measures every method's graph end to end. */
#include "cost/plan/executor.h"
#include "emit/command/command.h"
#include "emit/command/session_options.h"
#include "emit/report/decisions.h"
#include "emit/report/outputs.h"
#include "emit/report/results.h"
#include "graph/base/log.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct report_run {
    graft_env *env;
    graft_session_options options;
    const char *out;
    uint64_t rounds;
    graft_session session;
    graft_results results;
    graft_executor *before;
    const float **inputs;
    float **outputs_before;
    float **outputs_after;
    double difference;  /* Worst relative difference seen. */
    const char *reason; /* Why nothing was run; NULL: it was. */
} report_run;

static const char *path_in(const report_run *run, const char *name)
{
    return graft_arena_printf(run->env->life, "%s/%s", run->out, name);
}

/* -------------------------------------------------------------- decisions */

/* The host takes the decisions of the compiled policy and must arrive at the same graph. */
static graft_status replay_decisions(report_run *run)
{
    graft_env *env = run->env;
    graft_environment *environment = &run->session.environment;
    graft_decisions made;
    GRAFT_PASS(graft_decisions_read(env, env->life, path_in(run, "decisions.txt"), &made));
    GRAFT_PASS_IN(env, graft_plan_replay(env, environment, made.steps, made.step_count),
                  "while replaying the compiled policy");
    if (graft_state_hash(&environment->state) != made.hash) {
        return GRAFT_FAIL(env, GRAFT_INTERNAL,
                          "the compiled policy and the host disagree on the graph after %u steps",
                          made.step_count);
    }
    graft_log(env, 1, "the compiled policy took %u steps; the host agrees with its graph",
              made.step_count);
    return GRAFT_OK;
}

/* -------------------------------------------------------------- executing */

/* Prepares a graph whose weights live in `arena`. */
static graft_status open_executor(report_run *run, graft_arena *arena, const graft_graph *graph,
                                  graft_executor **executor)
{
    return graft_executor_open_folded(run->env, arena, run->session.cost, run->session.model, graph,
                                      executor);
}

/* Inputs, and room for the outputs of both graphs. */
static void make_tensors(report_run *run)
{
    const graft_graph *graph = &run->session.environment.first.graph;
    run->inputs = graft_outputs_draw(run->env->life, run->before, run->session.model, graph, 1);
    run->outputs_before = graft_outputs_new(run->env->life, run->before, graph);
    run->outputs_after = graft_outputs_new(run->env->life, run->before, graph);
}

/* Replays a row, checks its outputs and times it against the model as it was given. */
static graft_status measure_row(report_run *run, graft_result *row)
{
    graft_status status = GRAFT_OK;
    graft_env *env = run->env;
    graft_environment *environment = &run->session.environment;
    GRAFT_SCOPED(env->unit);
    graft_executor *after = NULL;
    graft_comparison comparison;
    GRAFT_TRY(env, graft_plan_replay(env, environment, row->steps, row->step_count),
              "while replaying the plan of %s", row->method);
    GRAFT_CHECK(open_executor(run, env->unit, &environment->state.graph, &after));
    GRAFT_CHECK(graft_executor_run(env, after, run->inputs, run->outputs_after));
    double difference = graft_outputs_difference(run->before, &environment->first.graph,
                                                 run->outputs_before, run->outputs_after);
    run->difference = fmax(run->difference, difference);
    if (difference > GRAFT_OUTPUTS_DIFFERENCE_MOST) {
        status = GRAFT_FAIL(env, GRAFT_INTERNAL,
                            "%s: the outputs differ by %.3g of their largest magnitude",
                            row->method, difference);
        goto done;
    }
    GRAFT_CHECK(
        graft_executor_compare(env, run->before, after, (uint32_t)run->rounds, &comparison));
    row->measured_ns = comparison.b.median_ns;
    row->spread_ns = comparison.b.spread_ns;
    row->measured_ratio = comparison.ratio;
    if (run->results.rows[0].measured_ns == 0) {
        run->results.rows[0].measured_ns = comparison.a.median_ns;
        run->results.rows[0].spread_ns = comparison.a.spread_ns;
        run->results.rows[0].measured_ratio = comparison.control;
    }
done:
    graft_executor_close(after);
    return status;
}

/* An earlier row with the same plan, or NULL. */
static const graft_result *find_same_plan(const graft_results *results, uint32_t i)
{
    const graft_result *row = &results->rows[i];
    for (uint32_t j = 1; j < i; j++) {
        const graft_result *other = &results->rows[j];
        if (other->step_count == row->step_count &&
            memcmp(other->steps, row->steps, row->step_count * sizeof *row->steps) == 0) {
            return other;
        }
    }
    return NULL;
}

/* A model with operators that cannot be run is reported without whole graphs; the reason is kept.
 */
static graft_status open_before(report_run *run)
{
    graft_env *env = run->env;
    graft_status status =
        open_executor(run, env->life, &run->session.environment.first.graph, &run->before);
    if (status == GRAFT_UNSUPPORTED) {
        run->reason = graft_arena_strdup(env->life, env->message);
        graft_env_clear(env);
        return GRAFT_OK;
    }
    return status;
}

static graft_status measure_rows(report_run *run)
{
    graft_progress progress;
    make_tensors(run);
    GRAFT_PASS(graft_executor_run(run->env, run->before, run->inputs, run->outputs_before));
    graft_progress_start(&progress, run->env, "measure whole graphs", "methods",
                         run->results.count);
    for (uint32_t i = 1; i < run->results.count; i++) {
        graft_result *row = &run->results.rows[i];
        const graft_result *same = find_same_plan(&run->results, i);
        if (same != NULL) {
            row->measured_ns = same->measured_ns;
            row->spread_ns = same->spread_ns;
            row->measured_ratio = same->measured_ratio;
        } else {
            GRAFT_PASS(measure_row(run, row));
        }
        graft_progress_update(&progress, i + 1, row->method);
    }
    graft_progress_finish(&progress);
    return GRAFT_OK;
}

/* ---------------------------------------------------------------- writing */

/* The model's name without folder and ending. */
static const char *base_name(graft_arena *arena, const char *model)
{
    const char *slash = strrchr(model, '/');
    char *name = graft_arena_strdup(arena, slash != NULL ? slash + 1 : model);
    size_t length = strlen(name);
    if (length > 5 && strcmp(name + length - 5, ".onnx") == 0) {
        name[length - 5] = '\0';
    }
    return name;
}

static graft_status write_model(report_run *run)
{
    graft_env *env = run->env;
    const char *name =
        graft_arena_printf(env->life, "%s.opt.onnx", base_name(env->life, run->options.model));
    const char *path = path_in(run, name);
    const graft_graph *found = &run->session.environment.state.graph;
    const graft_model_write_options options = {.simplify = true};
    GRAFT_PASS(graft_model_write(env, run->session.model, found, path, &options));
    graft_log(env, 1, "wrote %s", path);
    return GRAFT_OK;
}

static void print_verdict(const report_run *run)
{
    if (run->before == NULL) {
        (void)printf("not run, so outputs were not compared and whole graphs were not timed: %s\n",
                     run->reason);
    } else {
        (void)printf("outputs agree: largest difference %.2g of the largest magnitude\n",
                     run->difference);
    }
}

static graft_status run_report(graft_env *env, void *choices)
{
    graft_status status = GRAFT_OK;
    report_run *run = choices;
    run->env = env;
    run->options.survey = true; /* As `graft policy` did: plans name rules by their places. */
    graft_session_complete(env, &run->options);
    GRAFT_CHECK(graft_session_open(env, &run->options, &run->session));
    GRAFT_CHECK(graft_results_read(env, env->life, path_in(run, "results.json"), &run->results));
    GRAFT_CHECK(replay_decisions(run));
    GRAFT_CHECK(write_model(run));
    GRAFT_CHECK(open_before(run));
    if (run->before != NULL) {
        GRAFT_CHECK(measure_rows(run));
    }
    GRAFT_CHECK(graft_results_write(env, &run->results, path_in(run, "report.json")));
    graft_results_print(&run->results, stdout);
    (void)printf("costs of %s; est.: how many of a row's costs its database lacks\n",
                 graft_device_name(run->session.device));
    print_verdict(run);
done:
    graft_executor_close(run->before);
    return graft_session_finish(env, &run->session, status);
}

static const graft_option options[] = {
    GRAFT_SESSION_OPTIONS(report_run, options.),
    GRAFT_NEEDED(report_run, out, "--out", "FOLDER", "what `graft policy` wrote"),
    GRAFT_NUMBER(report_run, rounds, "--rounds", "N", "21", 3, 10000, "of end-to-end measurements"),
};

const graft_command graft_command_report = {
    .name = "report",
    .summary = "check and measure what a policy found",
    .failed = "the compiled policy and the host disagree, or the outputs differ",
    GRAFT_TAKES(report_run, options),
    .run = run_report,
};

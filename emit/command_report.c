/* command_report.c - `graft report`: the truth about what `graft policy` found. Replays the
 * decisions that the compiled policy took, writes the optimised model, checks that it computes the
 * same, and measures every method's graph end to end. */
#include "cost/executor.h"
#include "emit/command.h"
#include "emit/decisions.h"
#include "emit/results.h"
#include "emit/session_options.h"
#include "graph/equal.h"
#include "graph/log.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Largest difference of an output, relative to the output's largest magnitude. Rules reassociate
 * sums and fold factors into weights: over the 50 layers of a network rounding grows to about 1e-5.
 */
static const double difference_most = 1e-3;

typedef struct report_run {
    graft_env *env;
    graft_session_options options;
    const char *out;
    const char *rounds_text;
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
    graft_status status = GRAFT_OK;
    graft_env *env = run->env;
    graft_environment *environment = &run->session.environment;
    graft_decisions made;
    GRAFT_CHECK(graft_decisions_read(env, env->life, path_in(run, "decisions.txt"), &made));
    GRAFT_TRY(env, graft_plan_replay(env, environment, made.steps, made.step_count, NULL),
              "while replaying the compiled policy");
    if (graft_state_hash(&environment->state) != made.hash) {
        return GRAFT_FAIL(env, GRAFT_INTERNAL,
                          "the compiled policy and the host disagree on the graph after %u steps",
                          made.step_count);
    }
    graft_log(env, 1, "the compiled policy took %u steps; the host agrees with its graph",
              made.step_count);
done:
    return status;
}

/* -------------------------------------------------------------- executing */

/* Prepares a graph whose weights live in `arena`. */
static graft_status open_executor(report_run *run, graft_arena *arena, const graft_graph *graph,
                                  graft_executor **executor)
{
    graft_status status = GRAFT_OK;
    graft_weights *weights = GRAFT_NEW(arena, graft_weights, 1);
    GRAFT_CHECK(graft_model_fold_weights(run->env, arena, run->session.model, graph, weights));
    GRAFT_CHECK(graft_executor_open_model(run->env, run->session.cost, run->session.model, graph,
                                          weights, executor));
done:
    return status;
}

/* Normal numbers; places and masks are 0 and 1, which lie in every table. */
static float *draw_input(graft_arena *arena, const graft_shape *shape, graft_rng *rng)
{
    size_t count = (size_t)graft_shape_elements(shape);
    float *data = graft_arena_alloc(arena, (size_t)graft_shape_bytes(shape));
    for (size_t i = 0; i < count; i++) {
        if (shape->dtype == GRAFT_DTYPE_I64) {
            ((int64_t *)(void *)data)[i] = (int64_t)(i & 1);
        } else if (shape->dtype == GRAFT_DTYPE_I32) {
            ((int32_t *)(void *)data)[i] = (int32_t)(i & 1);
        } else if (shape->dtype == GRAFT_DTYPE_F32) {
            data[i] = (float)graft_rng_normal(rng);
        }
    }
    return data;
}

/* Inputs, and room for the outputs of both graphs. */
static void make_tensors(report_run *run)
{
    graft_arena *arena = run->env->life;
    const graft_graph *graph = &run->session.environment.first.graph;
    uint32_t inputs = graft_executor_input_count(run->before);
    uint32_t outputs = graft_executor_output_count(run->before);
    graft_rng rng;
    graft_rng_seed(&rng, 1);
    run->inputs = GRAFT_NEW(arena, const float *, inputs);
    for (uint32_t k = 0; k < inputs; k++) {
        graft_index value = graft_executor_input(run->before, k);
        run->inputs[k] = draw_input(arena, &graph->values[value].shape, &rng);
    }
    run->outputs_before = GRAFT_NEW(arena, float *, outputs);
    run->outputs_after = GRAFT_NEW(arena, float *, outputs);
    for (uint32_t k = 0; k < outputs; k++) {
        const graft_shape *shape = &graph->values[graft_executor_output(run->before, k)].shape;
        run->outputs_before[k] = graft_arena_alloc(arena, (size_t)graft_shape_bytes(shape));
        run->outputs_after[k] = graft_arena_alloc(arena, (size_t)graft_shape_bytes(shape));
    }
}

/* Largest difference of the outputs, relative to each output's largest magnitude. NaN on either
 * side alone counts as infinite. */
static double compare_outputs(const report_run *run)
{
    const graft_graph *graph = &run->session.environment.first.graph;
    double worst = 0;
    for (uint32_t k = 0; k < graft_executor_output_count(run->before); k++) {
        const graft_shape *shape = &graph->values[graft_executor_output(run->before, k)].shape;
        double largest = 1e-30;
        double difference = 0;
        if (shape->dtype != GRAFT_DTYPE_F32) { /* Whole numbers, which rules leave alone. */
            size_t bytes = (size_t)graft_shape_bytes(shape);
            bool same = memcmp(run->outputs_before[k], run->outputs_after[k], bytes) == 0;
            worst = same ? worst : (double)INFINITY;
            continue;
        }
        for (size_t i = 0; i < graft_shape_elements(shape); i++) {
            double a = (double)run->outputs_before[k][i];
            double b = (double)run->outputs_after[k][i];
            double apart = isnan(a) && isnan(b) ? 0 : fabs(a - b);
            difference = isnan(apart) ? (double)INFINITY : fmax(difference, apart);
            largest = fmax(largest, fabs(a));
        }
        worst = fmax(worst, difference / largest);
    }
    return worst;
}

/* Replays a row, checks its outputs and times it against the model as it was given. */
static graft_status measure_row(report_run *run, graft_result *row)
{
    graft_status status = GRAFT_OK;
    graft_env *env = run->env;
    graft_environment *environment = &run->session.environment;
    graft_mark mark = graft_arena_mark(env->unit);
    graft_executor *after = NULL;
    graft_comparison comparison;
    GRAFT_TRY(env, graft_plan_replay(env, environment, row->steps, row->step_count, NULL),
              "while replaying the plan of %s", row->method);
    GRAFT_CHECK(open_executor(run, env->unit, &environment->state.graph, &after));
    GRAFT_CHECK(graft_executor_run(env, after, run->inputs, run->outputs_after));
    double difference = compare_outputs(run);
    run->difference = fmax(run->difference, difference);
    if (difference > difference_most) {
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
    graft_arena_release(env->unit, mark);
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
    graft_status status = GRAFT_OK;
    graft_progress progress;
    make_tensors(run);
    GRAFT_CHECK(graft_executor_run(run->env, run->before, run->inputs, run->outputs_before));
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
            GRAFT_CHECK(measure_row(run, row));
        }
        graft_progress_update(&progress, i + 1, row->method);
    }
    graft_progress_finish(&progress);
done:
    return status;
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
    const graft_order *order = &run->session.environment.state.order;
    graft_equal_merge(env->life, &found, &order);
    graft_status status = graft_model_write(env, run->session.model, found, path, NULL);
    if (status == GRAFT_OK) {
        graft_log(env, 1, "wrote %s", path);
    }
    return status;
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

graft_status graft_command_report(graft_env *env, int argc, char **argv)
{
    graft_status status = GRAFT_OK;
    report_run *run = GRAFT_NEW(env->life, report_run, 1);
    *run = (report_run){.env = env, .options = graft_session_defaults(env), .rounds = 21};
    const graft_option own[] = {
        {.name = "--out", .value = &run->out, .required = true},
        {.name = "--rounds",               .value = &run->rounds_text               },
    };
    GRAFT_CHECK(graft_session_parse(env, argc, argv, &run->options, own, 2));
    if (run->rounds_text != NULL) {
        GRAFT_CHECK(
            graft_options_number(env, "--rounds", run->rounds_text, 3, 10000, &run->rounds));
    }
    run->options.survey = true; /* As `graft policy` did: plans name rules by their places. */
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
    print_verdict(run);
done:
    graft_executor_close(run->before);
    return graft_session_finish(env, &run->session, status);
}

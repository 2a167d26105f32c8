/* calibrate.c - whole graphs against the sums of their parts (see calibrate.h). */
#include "cost/measure/calibrate.h"

#include "graph/base/json.h"
#include "graph/base/log.h"
#include "models/zoo.h"

enum { ROUNDS = 9, WAYS = 2, PASSES = 3 };

/* ------------------------------------------------------------------- models */

typedef struct {
    graft_env *env;
    graft_cost *cost;
    graft_calibrated_graph *graphs;
    uint32_t count;
    uint32_t pass;
} calibration_run;

/* What was measured of it in an earlier pass, or NULL. */
static graft_calibrated_graph *find_graph(const calibration_run *run, uint32_t model,
                                          bool convention)
{
    for (uint32_t i = 0; i < run->count; i++) {
        graft_calibrated_graph *graph = &run->graphs[i];
        if (graph->sample.model == model && graph->convention == convention) {
            return graph;
        }
    }
    return NULL;
}

/* Of several passes the fastest counts: what else a machine does slows a graph down for seconds,
 * and never makes it faster. Parts are those of the last pass, when they are best known. */
static void keep_graph(calibration_run *run, const graft_calibrated_graph *graph)
{
    graft_calibrated_graph *known = find_graph(run, graph->sample.model, graph->convention);
    if (known == NULL) {
        run->graphs[run->count++] = *graph;
        return;
    }
    double whole_ns = known->sample.whole_ns;
    known->sample = graph->sample;
    if (whole_ns < graph->sample.whole_ns) {
        known->sample.whole_ns = whole_ns;
    } else {
        known->spread_ns = graph->spread_ns;
    }
}

/* The same for its operators: they and the whole are then what the machine gives at its best. */
static graft_status measure_again(calibration_run *run, const graft_schedule *schedule)
{
    GRAFT_SCOPED(run->env->scratch);
    graft_measure_options options = graft_measure_options_default();
    uint32_t count = 0;
    const graft_signature *signatures =
        graft_schedule_signatures(run->env->scratch, schedule, &count);
    options.quiet = true;
    return graft_cost_measure_again(run->env, run->cost, signatures, count, &options);
}

static graft_status measure_graph(calibration_run *run, const graft_model *model,
                                  const graft_weights *weights, graft_calibrated_graph *graph)
{
    graft_status status = GRAFT_OK;
    graft_env *env = run->env;
    graft_executor *executor = NULL;
    graft_timing timing;
    graft_cost_set_convention(run->cost, graph->convention);
    GRAFT_CHECK(
        graft_executor_open_model(env, run->cost, model, &model->graph, weights, &executor));
    if (run->pass > 0) {
        GRAFT_CHECK(measure_again(run, graft_executor_schedule(executor)));
    }
    GRAFT_CHECK(graft_whole_parts(env, run->cost, &model->graph, executor, &graph->sample));
    GRAFT_CHECK(graft_whole_time(env, run->cost, executor, ROUNDS, &timing));
    graph->sample.whole_ns = timing.median_ns;
    graph->spread_ns = timing.spread_ns;
done:
    graft_executor_close(executor);
    graft_cost_set_convention(run->cost, false);
    return status;
}

static bool differ(const double *a, const double *b)
{
    bool differs = false;
    for (uint32_t i = 0; i < GRAFT_FACTOR_COUNT; i++) {
        differs = differs || a[i] != b[i];
    }
    return differs;
}

static graft_status measure_model(calibration_run *run, const char *name, uint32_t number)
{
    graft_status status = GRAFT_OK;
    graft_env *env = run->env;
    graft_model *model = NULL;
    graft_weights weights;
    graft_calibrated_graph graphs[WAYS];
    GRAFT_CHECK(graft_model_open(env, env->unit, name, NULL, &model));
    graft_cost_set_model(run->cost, model);
    GRAFT_CHECK(graft_model_fold_weights(env, env->unit, model, &model->graph, &weights));
    for (uint32_t way = 0; way < WAYS; way++) {
        graphs[way] = (graft_calibrated_graph){.model = name, .convention = way == 1};
        graphs[way].sample.model = number;
        GRAFT_CHECK(measure_graph(run, model, &weights, &graphs[way]));
        bool again = find_graph(run, number, way == 1) != NULL;
        if (way == 0 || again ||
            (run->pass == 0 && differ(graphs[0].sample.parts, graphs[way].sample.parts))) {
            keep_graph(run, &graphs[way]);
        }
    }
    GRAFT_CHECK(graft_cost_save(env, run->cost));
done:
    graft_cost_set_model(run->cost, NULL);
    graft_arena_reset(env->unit);
    return status;
}

/* What Graft cannot run yet is passed over, with a message in the first pass. */
static graft_status measure_models(calibration_run *run, const char *const *models,
                                   uint32_t model_count)
{
    graft_status status = GRAFT_OK;
    graft_env *env = run->env;
    for (uint32_t i = 0; i < model_count; i++) {
        status = measure_model(run, models[i], i);
        if (status == GRAFT_UNSUPPORTED) {
            if (run->pass == 0) {
                graft_log(env, 1, "%s is left out: %s", models[i], env->message);
            }
            graft_env_clear(env);
            status = GRAFT_OK;
        }
        GRAFT_PASS(status);
    }
    return status;
}

static const char *const *list_zoo(graft_arena *arena, uint32_t *count)
{
    const graft_zoo_entry *zoo = graft_zoo(count);
    const char **names = GRAFT_NEW(arena, const char *, *count);
    for (uint32_t i = 0; i < *count; i++) {
        names[i] = zoo[i].name;
    }
    return names;
}

/* Measured uncorrected, whatever the database holds; what was stored before is replaced only when
 * all is measured. */
graft_status graft_calibrate(graft_env *env, graft_cost *cost, const char *const *models,
                             uint32_t model_count, const char *date, graft_calibrated *measured)
{
    graft_status status = GRAFT_OK;
    calibration_run run = {.env = env, .cost = cost};
    const graft_calibration before = graft_cost_calibration(cost);
    const graft_calibration none = graft_calibration_none();
    if (models == NULL) {
        models = list_zoo(env->life, &model_count);
    }
    run.graphs = GRAFT_NEW(env->life, graft_calibrated_graph, (size_t)model_count * WAYS + 1);
    GRAFT_PASS(graft_cost_set_calibration(env, cost, &none));
    for (; run.pass < PASSES && status == GRAFT_OK; run.pass++) {
        status = measure_models(&run, models, model_count);
    }
    if (status != GRAFT_OK) {
        if (graft_cost_set_calibration(env, cost, &before) != GRAFT_OK) {
            graft_log(env, 0, "costs stay uncorrected");
        }
        return status;
    }
    graft_calibration_sample *samples =
        GRAFT_NEW(env->scratch, graft_calibration_sample, run.count + 1);
    for (uint32_t i = 0; i < run.count; i++) {
        samples[i] = run.graphs[i].sample;
    }
    for (uint32_t i = 0; i < run.count; i++) {
        const graft_calibration others =
            graft_calibration_fit(env, samples, run.count, samples[i].model);
        run.graphs[i].left_out_ns = graft_calibration_predict(&others, &samples[i]);
    }
    const graft_calibration all = graft_calibration_fit(env, samples, run.count, UINT32_MAX);
    if (all.graphs == 0) {
        GRAFT_PASS(graft_cost_set_calibration(env, cost, &before));
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                          "no graph to fit to: every model that was measured rests on estimates");
    }
    GRAFT_PASS(graft_cost_store_calibration(
        env, cost, &all, graft_arena_printf(env->scratch, "fitted to the zoo %s", date)));
    *measured = (graft_calibrated){.graphs = run.graphs, .count = run.count};
    return GRAFT_OK;
}

/* ----------------------------------------------------------------- printing */

static void print_json_graph(graft_env *env, const graft_calibrated_graph *g, double sum_ns,
                             double fitted_ns, FILE *out)
{
    GRAFT_SCOPED(env->scratch);
    graft_json json;
    graft_json_begin(&json, env->scratch);
    graft_json_string(&json, "model", g->model);
    graft_json_string(&json, "layouts", g->convention ? "convention" : "joint");
    graft_json_number(&json, "sum_ns", sum_ns);
    graft_json_number(&json, "estimated_ns", g->sample.estimated_ns);
    graft_json_bool(&json, "used", !graft_calibration_unsure(&g->sample));
    graft_json_number(&json, "fitted_ns", fitted_ns);
    graft_json_number(&json, "left_out_ns", g->left_out_ns);
    graft_json_number(&json, "whole_ns", g->sample.whole_ns);
    graft_json_number(&json, "spread_ns", g->spread_ns);
    graft_json_end(&json, out);
}

/* In scratch, which the caller releases. */
static const char *describe_use(graft_env *env, const graft_calibration_sample *sample,
                                double sum_ns)
{
    return !graft_calibration_unsure(sample)
               ? ""
               : graft_arena_printf(env->scratch,
                                    "; not fitted to: %.0f %% of the sum is estimates",
                                    100.0 * sample->estimated_ns / sum_ns);
}

void graft_calibrated_print(graft_env *env, const graft_calibrated *measured,
                            const graft_calibration *calibration, FILE *out)
{
    const graft_calibration none = graft_calibration_none();
    GRAFT_SCOPED(env->scratch);
    for (uint32_t i = 0; i < measured->count; i++) {
        const graft_calibrated_graph *g = &measured->graphs[i];
        double sum_ns = graft_calibration_predict(&none, &g->sample);
        double fitted_ns = graft_calibration_predict(calibration, &g->sample);
        if (env->json) {
            print_json_graph(env, g, sum_ns, fitted_ns, out);
            continue;
        }
        (void)fprintf(out,
                      "%-12s %-10s whole %10.1f us +- %8.1f; sum %.3f of it, fitted %.3f, fitted "
                      "without the model %.3f%s\n",
                      g->model, g->convention ? "convention" : "joint", g->sample.whole_ns / 1e3,
                      g->spread_ns / 1e3, sum_ns / g->sample.whole_ns,
                      fitted_ns / g->sample.whole_ns, g->left_out_ns / g->sample.whole_ns,
                      describe_use(env, &g->sample, sum_ns));
    }
    if (!env->json) {
        const double *v = calibration->values;
        (void)fprintf(out,
                      "factors: products %.3f, blocked products %.3f, others %.3f, cold "
                      "others %.3f, conversions %.3f, %.0f ns per step; median error %.1f %% over "
                      "%u graphs\n",
                      v[GRAFT_FACTOR_PRODUCTS], v[GRAFT_FACTOR_BLOCKED], v[GRAFT_FACTOR_OTHERS],
                      v[GRAFT_FACTOR_COLD], v[GRAFT_FACTOR_CONVERSIONS], v[GRAFT_FACTOR_STEP],
                      100.0 * calibration->error, calibration->graphs);
    }
}

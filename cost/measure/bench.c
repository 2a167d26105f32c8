/* bench.c - the figures of this stage (see bench.h). */
#include "cost/measure/bench.h"

#include "cost/measure/calibrate.h"
#include "cost/measure/clock.h"
#include "graph/base/log.h"
#include "models/zoo.h"

enum { ROUNDS = 31, PRICINGS = 200, LOOKUPS = 2000, REPEATS = 15 };

static void print_model_figure(graft_env *env, FILE *out, const char *model, const char *what,
                               const char *unit, graft_timing value)
{
    GRAFT_SCOPED(env->scratch);
    const graft_figure figure = {.name =
                                     graft_arena_printf(env->scratch, "cost.%s.%s", model, what),
                                 .unit = unit,
                                 .median = value.median_ns,
                                 .spread = value.spread_ns,
                                 .rounds = value.rounds};
    graft_figure_print(env, out, &figure);
}

static graft_timing single(double value) { return (graft_timing){.median_ns = value, .rounds = 1}; }

static graft_timing scale(graft_timing timing, double factor)
{
    timing.median_ns *= factor;
    timing.spread_ns *= factor;
    return timing;
}

/* ------------------------------------------------------------------- looking up */

static graft_status bench_pricing(graft_env *env, graft_cost *cost, const graft_graph *graph,
                                  const graft_order *order, graft_timing *timing)
{
    double samples[REPEATS];
    double total_ns = 0.0;
    for (uint32_t r = 0; r < REPEATS; r++) {
        uint64_t start_ns = graft_cost_clock_ns(1);
        for (uint32_t i = 0; i < PRICINGS; i++) {
            GRAFT_PASS(graft_cost_price(env, cost, graph, order, &total_ns));
        }
        samples[r] = (double)(graft_cost_clock_ns(1) - start_ns) / PRICINGS;
    }
    timing->rounds = REPEATS;
    graft_cost_median(samples, REPEATS, &timing->median_ns, &timing->spread_ns);
    return GRAFT_OK;
}

static graft_status bench_lookup(graft_env *env, const graft_cost *cost,
                                 const graft_schedule *schedule, graft_timing *timing)
{
    double samples[REPEATS];
    double found_ns = 0.0;
    for (uint32_t r = 0; r < REPEATS; r++) {
        uint64_t start_ns = graft_cost_clock_ns(1);
        for (uint32_t i = 0; i < LOOKUPS; i++) {
            const graft_cost_entry *entry = graft_database_find(
                graft_cost_database(cost), &schedule->steps[i % schedule->step_count].signature);
            found_ns += entry == NULL ? 0.0 : entry->median_ns;
        }
        samples[r] = (double)(graft_cost_clock_ns(1) - start_ns) / LOOKUPS;
    }
    timing->rounds = REPEATS;
    graft_cost_median(samples, REPEATS, &timing->median_ns, &timing->spread_ns);
    return found_ns > 0.0 ? GRAFT_OK
                          : GRAFT_FAIL(env, GRAFT_INTERNAL, "the benchmark found no entry");
}

/* ------------------------------------------------------------------- models */

typedef struct {
    const char *name;
    graft_model *model;
    graft_weights weights;
    graft_order order;
    graft_schedule schedule;
    graft_executor *executor;
} bench_model;

static graft_status open_model(graft_env *env, bench_model *m)
{
    GRAFT_PASS(graft_model_open(env, env->unit, m->name, NULL, &m->model));
    const graft_graph *graph = &m->model->graph;
    size_t bytes = graft_order_bytes(&graph->limits);
    GRAFT_PASS(graft_order_build(&m->order, graph, graft_arena_alloc(env->unit, bytes), bytes));
    graft_schedule_build(env->unit, graph, &m->order, true, &m->schedule);
    return graft_model_fold_weights(env, env->unit, m->model, graph, &m->weights);
}

static graft_status bench_costs(graft_env *env, FILE *out, graft_cost *cost, const bench_model *m)
{
    graft_cost_total total;
    graft_timing timing;
    uint64_t start_ns = graft_clock_ns();
    GRAFT_PASS(graft_cost_schedule(env, cost, &m->model->graph, &m->schedule, &total));
    double seconds = (double)(graft_clock_ns() - start_ns) / 1e9;
    print_model_figure(env, out, m->name, "measuring", "s", single(seconds));
    print_model_figure(env, out, m->name, "sum", "ms", single(total.ns / 1e6));
    GRAFT_PASS(bench_pricing(env, cost, &m->model->graph, &m->order, &timing));
    print_model_figure(env, out, m->name, "graph", "us", scale(timing, 1e-3));
    return GRAFT_OK;
}

static graft_status bench_runs(graft_env *env, FILE *out, graft_cost *cost, bench_model *m)
{
    graft_status status = GRAFT_OK;
    graft_comparison c;
    graft_executor_memory memory;
    GRAFT_CHECK(graft_executor_open_model(env, cost, m->model, &m->model->graph, &m->weights,
                                          &m->executor));
    GRAFT_CHECK(graft_executor_compare(env, m->executor, m->executor, ROUNDS, &c));
    graft_executor_memory_of(m->executor, &memory);
    print_model_figure(env, out, m->name, "whole", "ms", scale(c.a, 1e-6));
    graft_timing control = {
        .median_ns = c.control, .spread_ns = c.control_spread, .rounds = ROUNDS};
    print_model_figure(env, out, m->name, "control", "1", control);
    print_model_figure(env, out, m->name, "peak", "MB", single((double)memory.peak_bytes / 1e6));
done:
    graft_executor_close(m->executor);
    m->executor = NULL;
    return status;
}

static graft_status measure_one(graft_env *env, FILE *out, graft_device *device, bench_model *m)
{
    graft_status status = GRAFT_OK;
    graft_cost *cost = NULL;
    graft_timing lookup;
    GRAFT_CHECK(open_model(env, m));
    GRAFT_CHECK(graft_cost_open(env, device, NULL, &cost));
    graft_cost_set_model(cost, m->model);
    GRAFT_CHECK(bench_costs(env, out, cost, m));
    GRAFT_CHECK(bench_runs(env, out, cost, m));
    GRAFT_CHECK(bench_lookup(env, cost, &m->schedule, &lookup));
    print_model_figure(env, out, m->name, "lookup", "ns", lookup);
done:
    if (graft_cost_close(env, cost) != GRAFT_OK && status == GRAFT_OK) {
        status = GRAFT_INTERNAL; /* It has no file to fail with. */
    }
    graft_arena_reset(env->unit);
    return status;
}

static graft_status bench_one(graft_env *env, FILE *out, const char *model)
{
    graft_device *device = NULL;
    bench_model m = {.name = model};
    graft_status status = graft_device_open(env, "cpu", 1, &device);
    if (status == GRAFT_OK) {
        status = measure_one(env, out, device, &m);
    }
    if (status == GRAFT_UNSUPPORTED) {
        graft_log(env, 1, "%s is left out: %s", model, env->message);
        graft_env_clear(env);
        status = GRAFT_OK;
    }
    graft_device_close(device);
    return status;
}

/* Sums of parts against whole graphs, each with factors that were fitted to all other models. */
static graft_status bench_calibration(graft_env *env, FILE *out, graft_device *device)
{
    graft_status status = GRAFT_OK;
    graft_cost *cost = NULL;
    graft_calibrated measured = {.count = 0};
    const graft_calibration none = graft_calibration_none();
    GRAFT_CHECK(graft_cost_open(env, device, NULL, &cost));
    GRAFT_CHECK(graft_calibrate(env, cost, NULL, 0, "", &measured));
    for (uint32_t i = 0; i < measured.count; i++) {
        const graft_calibrated_graph *g = &measured.graphs[i];
        const char *way = g->convention ? "convention" : "joint";
        double whole_ns = g->sample.whole_ns;
        print_model_figure(env, out, g->model, graft_arena_printf(env->life, "%s.sum", way), "1",
                           single(graft_calibration_predict(&none, &g->sample) / whole_ns));
        print_model_figure(env, out, g->model, graft_arena_printf(env->life, "%s.left_out", way),
                           "1", single(g->left_out_ns / whole_ns));
    }
done:
    if (graft_cost_close(env, cost) != GRAFT_OK && status == GRAFT_OK) {
        status = GRAFT_INTERNAL; /* It has no file to fail with. */
    }
    return status;
}

graft_status graft_cost_bench(graft_env *env, const graft_bench *bench)
{
    graft_status status = GRAFT_OK;
    graft_device *device = NULL;
    uint32_t count = 0;
    const graft_zoo_entry *zoo = graft_zoo(&count);
    const char **names = GRAFT_NEW(env->life, const char *, count);
    for (uint32_t i = 0; i < count; i++) {
        names[i] = zoo[i].name;
    }
    GRAFT_CHECK(graft_bench_each(env, bench, names, count, bench_one));
    if (bench->model_count == 0) {
        GRAFT_CHECK(graft_device_open(env, "cpu", 1, &device));
        GRAFT_CHECK(bench_calibration(env, bench->out, device));
    }
done:
    graft_device_close(device);
    return status;
}

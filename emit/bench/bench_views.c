/* bench_views.c - see bench_views.h. */
#include "emit/bench/bench_views.h"

#include "cost/plan/executor.h"
#include "emit/command/session.h"
#include "emit/command/session_options.h"
#include "train/search/search.h"

enum { ROUNDS = 31, COPIES = 0, VIEWS = 1, WAYS = 2 };

static const char database_path[] = "out/bench/search.costs";

static const char *const bench_models[] = {"squeezenet", "inceptionv3", "lstm", "lstm512",
                                           "nasrnn"};

typedef struct {
    graft_env *env;
    FILE *out;
    const char *model;
    const char *what;
    graft_session session;
} bench_run;

static void print_figure(const bench_run *run, const char *what, const char *unit, double median,
                         double spread)
{
    graft_mark mark = graft_arena_mark(run->env->scratch);
    const char *name =
        graft_arena_printf(run->env->scratch, "views.%s.%s.%s", run->model, run->what, what);
    const graft_figure figure = {name, unit, median, spread, spread > 0.0 ? ROUNDS : 1};
    graft_figure_print(run->env, run->out, &figure);
    (void)fflush(run->out);
    graft_arena_release(run->env->scratch, mark);
}

/* A graph to be run one way: ready, and what it costs. */
typedef struct {
    graft_executor *executor;
    double cost_ns;
} contender;

static graft_status open_contender(bench_run *run, const graft_graph *graph,
                                   const graft_order *order, contender *c)
{
    graft_status status = GRAFT_OK;
    graft_env *env = run->env;
    GRAFT_CHECK(graft_cost_price(env, run->session.cost, graph, order, &c->cost_ns));
    GRAFT_CHECK(graft_executor_open_folded(env, env->unit, run->session.cost, run->session.model,
                                           graph, &c->executor));
done:
    return status;
}

static uint32_t count_moves(const graft_executor *executor)
{
    const graft_schedule *s = graft_executor_schedule(executor);
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->step_count; i++) {
        uint32_t op = s->steps[i].signature.op;
        count += op == GRAFT_OP_concat || op == GRAFT_OP_split || op == GRAFT_OP_slice;
    }
    return count;
}

static graft_status compare(bench_run *run, const contender ways[WAYS])
{
    graft_comparison c;
    graft_executor *copies = ways[COPIES].executor;
    graft_executor *views = ways[VIEWS].executor;
    graft_status status = graft_executor_compare(run->env, copies, views, ROUNDS, &c);
    if (status == GRAFT_OK) {
        uint64_t peaks[WAYS] = {graft_executor_schedule(copies)->peak_bytes,
                                graft_executor_schedule(views)->peak_bytes};
        print_figure(run, "measured", "1", c.ratio, c.ratio_spread);
        print_figure(run, "control", "1", c.control, c.control_spread);
        print_figure(run, "copies", "ms", c.a.median_ns / 1e6, c.a.spread_ns / 1e6);
        print_figure(run, "predicted", "1", ways[VIEWS].cost_ns / ways[COPIES].cost_ns, 0.0);
        print_figure(run, "moves", "1", count_moves(copies), 0.0);
        print_figure(run, "left", "1", count_moves(views), 0.0);
        print_figure(run, "peak", "1", (double)peaks[VIEWS] / (double)peaks[COPIES], 0.0);
    }
    return status;
}

/* The graph as given, and the one that greedy search finds when costs are with or without views. */
static graft_status open_way(bench_run *run, uint32_t way, contender *given, contender *found)
{
    graft_status status = GRAFT_OK;
    graft_environment *e = &run->session.environment;
    graft_plan_found plan;
    graft_cost_set_copies(run->session.cost, way == COPIES);
    GRAFT_CHECK(open_contender(run, &e->first.graph, &e->first.order, given));
    e->first_ns = given->cost_ns;
    GRAFT_CHECK(graft_environment_reset(run->env, e));
    GRAFT_CHECK(graft_search_greedy(run->env, run->env->life, e, &plan));
    GRAFT_CHECK(graft_plan_replay(run->env, e, plan.steps, plan.step_count, NULL));
    GRAFT_CHECK(open_contender(run, &e->state.graph, &e->state.order, found));
done:
    return status;
}

static graft_status bench_ways(bench_run *run)
{
    graft_status status = GRAFT_OK;
    contender given[WAYS] = {{.executor = NULL}};
    contender found[WAYS] = {{.executor = NULL}};
    for (uint32_t way = 0; way < WAYS; way++) {
        GRAFT_CHECK(open_way(run, way, &given[way], &found[way]));
    }
    run->what = "given";
    GRAFT_CHECK(compare(run, given));
    run->what = "found";
    GRAFT_CHECK(compare(run, found));
done:
    for (uint32_t way = 0; way < WAYS; way++) {
        graft_executor_close(given[way].executor);
        graft_executor_close(found[way].executor);
    }
    return status;
}

static graft_status bench_model(graft_env *env, FILE *out, const char *model)
{
    graft_status status = GRAFT_OK;
    bench_run *run = GRAFT_NEW(env->life, bench_run, 1);
    graft_session_options options = graft_session_defaults(env);
    *run = (bench_run){.env = env, .out = out, .model = model};
    options.model = model;
    options.database = database_path;
    GRAFT_CHECK(graft_session_open(env, &options, &run->session));
    GRAFT_CHECK(bench_ways(run));
done:
    status = graft_session_finish(env, &run->session, status);
    graft_arena_reset(env->unit);
    return status;
}

graft_status graft_views_bench(graft_env *env, const graft_bench *bench)
{
    return graft_bench_each(env, bench, bench_models,
                            sizeof(bench_models) / sizeof(bench_models[0]), bench_model);
}

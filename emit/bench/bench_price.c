/* bench_price.c - see bench_price.h. */
#include "emit/bench/bench_price.h"

#include "cost/measure/clock.h"
#include "emit/command/session.h"
#include "emit/command/session_options.h"
#include "graph/base/log.h"

enum { REPEATS = 15, LOOKUPS = 2000 };

static const char database_path[] = "out/bench/search.costs";
static const char *const bench_models[] = {"resnet50", "squeezenet"};

typedef struct {
    graft_env *env;
    FILE *out;
    const char *model;
    graft_session session;
} bench_run;

static void print_figure(const bench_run *run, const char *what, const char *unit, double median,
                         double spread, uint32_t rounds)
{
    GRAFT_SCOPED(run->env->scratch);
    const char *name = graft_arena_printf(run->env->scratch, "cost.%s.%s", run->model, what);
    const graft_figure figure = {name, unit, median, spread, rounds};
    graft_figure_print(run->env, run->out, &figure);
    (void)fflush(run->out);
}

/* The median time to price a state just after the first graph, which it differs from. */
static graft_status time_price(bench_run *run, const graft_state *state, double *median_ns,
                               double *spread_ns)
{
    const graft_state *first = &run->session.environment.first;
    double samples[REPEATS];
    double ns = 0.0;
    GRAFT_PASS(graft_cost_price(run->env, run->session.cost, &state->graph, &state->order, &ns));
    for (uint32_t i = 0; i < REPEATS; i++) {
        GRAFT_PASS(
            graft_cost_price(run->env, run->session.cost, &first->graph, &first->order, &ns));
        uint64_t start_ns = graft_cost_clock_ns(1);
        GRAFT_PASS(
            graft_cost_price(run->env, run->session.cost, &state->graph, &state->order, &ns));
        samples[i] = (double)(graft_cost_clock_ns(1) - start_ns);
    }
    graft_cost_median(samples, REPEATS, median_ns, spread_ns);
    return GRAFT_OK;
}

static graft_status time_rewrites(bench_run *run)
{
    graft_env *env = run->env;
    graft_environment *environment = &run->session.environment;
    graft_matches *matches = &environment->matches;
    uint32_t count = 0;
    double spread_ns = 0.0;
    double median_ns = 0.0;
    graft_state state;
    graft_state_open(env->unit, &environment->first.graph.limits, &state);
    double *times_ns = GRAFT_NEW(env->unit, double, matches->count);
    for (uint32_t x = 0; x < run->session.xfers.count; x++) {
        for (uint32_t l = 0; l < graft_matches_count(matches, x); l++) {
            GRAFT_PASS(graft_state_set(env, &state, &environment->first.graph));
            GRAFT_PASS(graft_state_apply(env, &state, &run->session.xfers.rules[x],
                                         graft_matches_get(matches, x, l),
                                         &environment->options.apply));
            GRAFT_PASS(time_price(run, &state, &times_ns[count++], &spread_ns));
        }
        if (graft_interrupted()) {
            return GRAFT_FAIL(env, GRAFT_INTERRUPTED, "interrupted while pricing");
        }
    }
    graft_cost_median(times_ns, count, &median_ns, &spread_ns);
    print_figure(run, "rewrite", "us", median_ns / 1e3, spread_ns / 1e3, count);
    print_figure(run, "rewrite_most", "us", graft_cost_quantile(times_ns, count, 0.9) / 1e3, 0.0,
                 count);
    return GRAFT_OK;
}

/* What the price of the graph as given rests on, one entry after the other. */
static graft_status time_lookups(bench_run *run)
{
    graft_session *session = &run->session;
    const graft_state *first = &session->environment.first;
    graft_schedule schedule;
    double samples[REPEATS];
    double found_ns = 0.0;
    double median_ns = 0.0;
    double spread_ns = 0.0;
    GRAFT_PASS(graft_session_plan(run->env, session, run->env->unit, &first->graph, &first->order,
                                  &schedule));
    for (uint32_t r = 0; r < REPEATS; r++) {
        uint64_t start_ns = graft_cost_clock_ns(1);
        for (uint32_t i = 0; i < LOOKUPS; i++) {
            const graft_cost_entry *entry =
                graft_database_find(graft_cost_database(session->cost),
                                    &schedule.steps[i % schedule.step_count].signature);
            found_ns += entry == NULL ? 0.0 : entry->median_ns;
        }
        samples[r] = (double)(graft_cost_clock_ns(1) - start_ns) / LOOKUPS;
    }
    if (!(found_ns > 0.0)) {
        return GRAFT_FAIL(run->env, GRAFT_INTERNAL, "the benchmark found no entry");
    }
    graft_cost_median(samples, REPEATS, &median_ns, &spread_ns);
    print_figure(run, "lookup", "ns", median_ns, spread_ns, REPEATS);
    return GRAFT_OK;
}

static graft_status bench_model(graft_env *env, FILE *out, const char *model)
{
    graft_status status = GRAFT_OK;
    double median_ns = 0.0;
    double spread_ns = 0.0;
    bench_run *run = GRAFT_NEW(env->life, bench_run, 1);
    graft_session_options options = graft_session_defaults(env);
    *run = (bench_run){.env = env, .out = out, .model = model};
    options.model = model;
    options.database = database_path;
    GRAFT_CHECK(graft_session_open(env, &options, &run->session));
    GRAFT_CHECK(time_price(run, &run->session.environment.first, &median_ns, &spread_ns));
    print_figure(run, "same", "us", median_ns / 1e3, spread_ns / 1e3, REPEATS);
    GRAFT_CHECK(time_rewrites(run));
    GRAFT_CHECK(time_lookups(run));
done:
    status = graft_session_finish(env, &run->session, status);
    graft_arena_reset(env->unit);
    return status;
}

graft_status graft_price_bench(graft_env *env, const graft_bench *bench)
{
    return graft_bench_each(env, bench, bench_models,
                            sizeof(bench_models) / sizeof(bench_models[0]), bench_model);
}

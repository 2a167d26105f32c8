/* bench_speed.c - see bench_speed.h. */
#include "emit/bench/bench_speed.h"

#include "cost/measure/clock.h"
#include "cost/measure/rival.h"
#include "cost/plan/executor.h"
#include "emit/command/session.h"
#include "emit/command/session_options.h"
#include "graph/base/log.h"
#include "models/zoo.h"
#include "train/search/search.h"

#include <string.h>
#include <unistd.h>

enum { ROUNDS = 15, CONTENDERS = 4, LEAST_BATCH_NS = 20000000 };

typedef enum contender { BEFORE, AFTER, OFF, ALL } contender;

static const char *const contender_names[CONTENDERS] = {"before", "after", "off", "all"};

/* Greedy search of the larger ones takes minutes. */
static const char *const models[] = {"resnet18", "resnet50", "squeezenet",  "mobilenetv2",
                                     "lstm",     "lstm512",  "nasrnn",      "dscnn",
                                     "resnet8",  "bert",     "mobilenetv1", "autoencoder"};

static const struct {
    contender above;
    contender below;
} ratios[] = {
    {BEFORE, OFF   },
    {AFTER,  ALL   },
    {AFTER,  BEFORE},
};

typedef struct {
    const char *name;
    const char *file; /* Of the model, for the other runtime. */
    graft_session session;
    graft_executor *executors[2];
    graft_rival *rivals[2];
    uint32_t rival_runs[2]; /* That make a batch. */
    double times[CONTENDERS][ROUNDS];
} speed_run;

/* ------------------------------------------------------------------------------- printing */

static void print_figure(graft_env *env, FILE *out, const char *name, const char *unit,
                         double *samples)
{
    graft_figure figure = {.name = name, .unit = unit, .rounds = ROUNDS};
    graft_cost_median(samples, ROUNDS, &figure.median, &figure.spread);
    graft_figure_print(env, out, &figure);
}

static bool took_part(const speed_run *run, contender c)
{
    return c < OFF || run->rivals[c - OFF] != NULL;
}

static void print_run(graft_env *env, FILE *out, speed_run *run)
{
    double samples[ROUNDS];
    for (size_t i = 0; i < sizeof(ratios) / sizeof(ratios[0]); i++) {
        contender a = ratios[i].above;
        contender b = ratios[i].below;
        for (uint32_t r = 0; r < ROUNDS; r++) {
            samples[r] = run->times[a][r] / run->times[b][r];
        }
        if (took_part(run, a) && took_part(run, b)) {
            print_figure(env, out,
                         graft_arena_printf(env->life, "speed.%s.%s/%s", run->name,
                                            contender_names[a], contender_names[b]),
                         "1", samples);
        }
    }
    for (contender c = BEFORE; c <= ALL; c++) {
        for (uint32_t r = 0; r < ROUNDS; r++) {
            samples[r] = run->times[c][r] / 1e6;
        }
        if (took_part(run, c)) {
            print_figure(
                env, out,
                graft_arena_printf(env->life, "speed.%s.%s", run->name, contender_names[c]), "ms",
                samples);
        }
    }
}

/* ------------------------------------------------------------------------------ preparing */

static graft_status open_executor(graft_env *env, speed_run *run, const graft_graph *graph,
                                  graft_executor **executor)
{
    return graft_executor_open_folded(env, env->unit, run->session.cost, run->session.model, graph,
                                      executor);
}

static graft_status open_ours(graft_env *env, speed_run *run)
{
    graft_session_options options = graft_session_defaults(env);
    graft_plan_found found;
    options.model = run->name;
    GRAFT_PASS(graft_session_open(env, &options, &run->session));
    graft_environment *environment = &run->session.environment;
    GRAFT_PASS(graft_search_greedy(env, env->life, environment, &found));
    GRAFT_PASS(graft_plan_replay(env, environment, found.steps, found.step_count, NULL));
    GRAFT_PASS(open_executor(env, run, &environment->first.graph, &run->executors[BEFORE]));
    return open_executor(env, run, &environment->state.graph, &run->executors[AFTER]);
}

/* Without the other runtime there are only our own figures. */
static graft_status open_rivals(graft_env *env, speed_run *run)
{
    graft_status status = GRAFT_OK;
    for (uint32_t i = 0; i < 2; i++) {
        double run_ns = 0.0;
        status = graft_rival_open(env, run->file, i == 1, &run->rivals[i]);
        if (status == GRAFT_UNSUPPORTED) {
            graft_log(env, 1, "%s", env->message);
            graft_env_clear(env);
            return GRAFT_OK;
        }
        GRAFT_CHECK(status);
        GRAFT_CHECK(graft_rival_time(env, run->rivals[i], 3, &run_ns));
        run->rival_runs[i] = (uint32_t)(LEAST_BATCH_NS / run_ns) + 1;
    }
done:
    return status;
}

/* ------------------------------------------------------------------------------- running */

/* Runs some and throws them away, then times a batch. */
static graft_status time_contender(graft_env *env, speed_run *run, contender c, double *run_ns)
{
    graft_status status = GRAFT_OK;
    if (!took_part(run, c)) {
        return GRAFT_OK;
    }
    if (c < OFF) {
        graft_timing timing;
        GRAFT_CHECK(graft_executor_time(env, run->executors[c], 1, &timing));
        *run_ns = timing.median_ns;
        goto done;
    }
    uint32_t runs = run->rival_runs[c - OFF];
    GRAFT_CHECK(graft_rival_time(env, run->rivals[c - OFF], runs > 3 ? 3 : runs, run_ns));
    GRAFT_CHECK(graft_rival_time(env, run->rivals[c - OFF], runs, run_ns));
done:
    return status;
}

static graft_status run_rounds(graft_env *env, speed_run *run)
{
    for (uint32_t r = 0; r < ROUNDS; r++) {
        for (uint32_t i = 0; i < CONTENDERS; i++) {
            contender c = (contender)((r + i) % CONTENDERS);
            GRAFT_PASS(time_contender(env, run, c, &run->times[c][r]));
        }
        GRAFT_PASS(graft_search_go_on(env));
    }
    return GRAFT_OK;
}

static graft_status bench_model(graft_env *env, FILE *out, const char *name)
{
    graft_status status = GRAFT_OK;
    speed_run *run = GRAFT_NEW(env->unit, speed_run, 1);
    run->name = name;
    run->file = graft_arena_printf(env->unit, "out/bench/%s.onnx", name);
    GRAFT_CHECK(graft_zoo_build(env, name, GRAFT_ZOO_SEED, run->file));
    GRAFT_CHECK(open_ours(env, run));
    GRAFT_CHECK(open_rivals(env, run));
    GRAFT_CHECK(run_rounds(env, run));
    print_run(env, out, run);
done:
    for (uint32_t i = 0; i < 2; i++) {
        graft_executor_close(run->executors[i]);
        graft_rival_close(run->rivals[i]);
    }
    (void)unlink(run->file);
    status = graft_session_finish(env, &run->session, status);
    graft_arena_reset(env->unit);
    return status;
}

graft_status graft_speed_bench(graft_env *env, const graft_bench *bench)
{
    return graft_bench_each(env, bench, models, sizeof(models) / sizeof(models[0]), bench_model);
}

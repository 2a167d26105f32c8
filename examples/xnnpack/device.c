/* device.c - XNNPACK as a device of Graft (docs/devices.md).
 *
 * An operator is timed as the difference of 2k and k copies of it in one graph, side by side on the
 * same inputs: what a run takes besides is in both, and channels come last everywhere, so that no
 * layout changes. Whole models are lowered with the fusions that who brings a model to XNNPACK does
 * (emit/run/runtime.h), and timed in turns. */
#include "cost/device/device.h"
#include "cost/measure/clock.h"
#include "emit/run/runtime.h"
#include "examples/xnnpack/lower.h"
#include "graph/base/json.h"
#include "graph/base/rng.h"
#include "graph/base/settings.h"

#include <pthreadpool.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 15, COPIES_MOST = 32, THREADS_MOST = 1024, MODELS_MOST = 64, ROUNDS_MOST = 10000 };
enum { SAMPLE_NS = 1000000, MODEL_SAMPLE_NS = 5000000 };
enum { COPIES_NS = 20000, COPIES_MOST_NS = 5000000 }; /* What k copies take. */

typedef struct {
    graft_env *env;
    pthreadpool_t threads;
    uint32_t thread_count;
    graft_runtime fusions;
} device;

/* ------------------------------------------------------------------ timing */

static graft_status time_runs(const device *d, const lowered *net, uint32_t runs, double *ns)
{
    graft_status status = GRAFT_OK;
    const uint64_t start_ns = graft_cost_clock_ns(d->thread_count);
    for (uint32_t i = 0; i < runs; i++) {
        GRAFT_CHECK(lowered_run(d->env, net));
    }
    *ns = (double)(graft_cost_clock_ns(d->thread_count) - start_ns) / runs;
done:
    return status;
}

/* Around +-1 and away from 0: no denormal numbers, whose sums are slow. Then how many runs take
 * `sample_ns`. */
static graft_status warm_up(const device *d, const lowered *net, double sample_ns, uint32_t *runs)
{
    graft_status status = GRAFT_OK;
    graft_rng rng;
    double ns = 0.0;
    graft_rng_seed(&rng, 7);
    for (uint32_t i = 0; i < net->input_count; i++) {
        for (size_t k = 0; k < net->ports[i].count; k++) {
            const double size = 0.5 + graft_rng_uniform(&rng);
            net->ports[i].data[k] = (float)((graft_rng_next(&rng) >> 63) != 0 ? -size : size);
        }
    }
    GRAFT_CHECK(lowered_run(d->env, net));
    GRAFT_CHECK(time_runs(d, net, 2, &ns));
    *runs = (uint32_t)(sample_ns / (ns + 1.0)) + 1;
done:
    return status;
}

static graft_status read_model(const device *d, const char *path, graft_model **model)
{
    graft_status status = GRAFT_OK;
    GRAFT_CHECK(graft_model_read(d->env, d->env->unit, path, NULL, model));
    if ((*model)->size_count > 0) {
        return GRAFT_FAIL(d->env, GRAFT_UNSUPPORTED, "the size '%s' is open",
                          (*model)->sizes[0].name);
    }
done:
    return status;
}

/* ------------------------------------------------------------------ operators */

/* How many copies k are: enough to take COPIES_NS, and to have their weights `apart` bytes. */
static uint32_t count_copies(const graft_model *model, double run_ns, double apart)
{
    double weight_bytes = 0.0;
    for (uint32_t w = 0; w < model->weight_count; w++) {
        weight_bytes += (double)model->weights[w].data_bytes;
    }
    double count = COPIES_NS / run_ns;
    if (weight_bytes > 0.0 && apart / weight_bytes > count) {
        count = apart / weight_bytes;
    }
    count = count > COPIES_MOST_NS / run_ns ? COPIES_MOST_NS / run_ns : count;
    return count > COPIES_MOST ? COPIES_MOST : count < 1.0 ? 1 : (uint32_t)count;
}

static graft_status time_copies(const device *d, const lowered nets[2], uint32_t count,
                                graft_json *answer)
{
    graft_status status = GRAFT_OK;
    double times[2][ROUNDS], differences[ROUNDS], middle = 0.0, spread = 0.0;
    uint32_t runs[2] = {1, 1};
    for (uint32_t k = 0; k < 2; k++) {
        GRAFT_CHECK(warm_up(d, &nets[k], SAMPLE_NS, &runs[k]));
    }
    for (uint32_t r = 0; r < ROUNDS; r++) {
        for (uint32_t i = 0; i < 2; i++) {
            const uint32_t k = (i + r) % 2;
            GRAFT_CHECK(time_runs(d, &nets[k], runs[k], &times[k][r]));
        }
        differences[r] = (times[1][r] - times[0][r]) / count;
    }
    graft_cost_median(differences, ROUNDS, &middle, &spread);
    /* The faster rounds are those that other programs disturbed least. */
    const double taken = (graft_cost_quantile(times[1], ROUNDS, 0.25) -
                          graft_cost_quantile(times[0], ROUNDS, 0.25)) /
                         count;
    graft_json_number(answer, "median_ns", taken < 1.0 ? 1.0 : taken);
    graft_json_number(answer, "spread_ns", spread);
    graft_json_integer(answer, "rounds", ROUNDS);
done:
    return status;
}

static graft_status answer_time(device *d, const graft_yaml *question, graft_json *answer)
{
    graft_status status = GRAFT_OK;
    const char *path = NULL;
    graft_model *model = NULL;
    double ns = 0.0;
    int64_t apart = 0;
    lowering_options options = {.copy_count = 1, .threads = d->threads};
    lowered nets[2] = {{.runtime = NULL}, {.runtime = NULL}};
    uint32_t runs = 1;
    GRAFT_CHECK(graft_yaml_text(d->env, question, "model", &path));
    GRAFT_CHECK(graft_yaml_integer(d->env, question, "apart_bytes", 0, INT64_MAX, &apart));
    GRAFT_CHECK(read_model(d, path, &model));
    GRAFT_CHECK(lower_graph(d->env, model, &model->graph, &options, &nets[0]));
    GRAFT_CHECK(warm_up(d, &nets[0], SAMPLE_NS / 4, &runs));
    GRAFT_CHECK(time_runs(d, &nets[0], runs, &ns));
    lowered_close(&nets[0]);
    const uint32_t count = count_copies(model, ns, (double)apart);
    for (uint32_t k = 0; k < 2; k++) {
        options.copy_count = count << k;
        GRAFT_CHECK(lower_graph(d->env, model, &model->graph, &options, &nets[k]));
    }
    GRAFT_CHECK(time_copies(d, nets, count, answer));
done:
    lowered_close(&nets[0]);
    lowered_close(&nets[1]);
    return status;
}

/* ------------------------------------------------------------------ whole models */

static graft_status open_model(const device *d, const char *path, lowered *net)
{
    graft_status status = GRAFT_OK;
    graft_model *model = NULL;
    graft_order order;
    const graft_order *ordered = &order;
    const lowering_options options = {.copy_count = 1, .threads = d->threads};
    GRAFT_CHECK(read_model(d, path, &model));
    const graft_graph *graph = &model->graph;
    const size_t bytes = graft_order_bytes(&graph->limits);
    GRAFT_CHECK(graft_order_build(&order, graph, graft_arena_alloc(d->env->unit, bytes), bytes));
    GRAFT_CHECK(graft_runtime_fuse(d->env, d->env->unit, &d->fusions.run, &graph, &ordered));
    GRAFT_CHECK(lower_graph(d->env, model, graph, &options, net));
done:
    return status;
}

static graft_status time_in_turns(const device *d, const lowered *nets, uint32_t count,
                                  uint32_t rounds, graft_json *answer)
{
    graft_status status = GRAFT_OK;
    double *times = GRAFT_NEW(d->env->unit, double, count *rounds);
    uint32_t *runs = GRAFT_NEW(d->env->unit, uint32_t, count);
    graft_buffer text = {.arena = d->env->unit};
    for (uint32_t k = 0; k < count; k++) {
        GRAFT_CHECK(warm_up(d, &nets[k], MODEL_SAMPLE_NS, &runs[k]));
    }
    for (uint32_t r = 0; r < rounds; r++) {
        for (uint32_t i = 0; i < count; i++) {
            const uint32_t k = (i + r) % count;
            GRAFT_CHECK(time_runs(d, &nets[k], runs[k], &times[k * rounds + r]));
        }
    }
    for (uint32_t i = 0; i < count * rounds; i++) {
        graft_buffer_printf(&text, "%s%.1f",
                            i == 0            ? "[["
                            : i % rounds == 0 ? "], ["
                                              : ", ",
                            times[i]);
    }
    graft_buffer_printf(&text, "]]");
    graft_json_raw(answer, "rounds_ns", text.data);
done:
    return status;
}

static graft_status answer_models(device *d, const graft_yaml *question, graft_json *answer)
{
    graft_status status = GRAFT_OK;
    int64_t rounds = 0;
    const graft_yaml *paths = graft_yaml_find(question, "models");
    const uint32_t count = paths == NULL ? 0 : paths->count;
    lowered nets[MODELS_MOST] = {{.runtime = NULL}};
    GRAFT_CHECK(graft_yaml_integer(d->env, question, "rounds", 1, ROUNDS_MOST, &rounds));
    if (count == 0 || count > MODELS_MOST) {
        return GRAFT_FAIL(d->env, GRAFT_BAD_INPUT, "'models' is no list of up to 64");
    }
    for (uint32_t k = 0; k < count; k++) {
        GRAFT_CHECK(open_model(d, paths->items[k].text, &nets[k]));
    }
    GRAFT_CHECK(time_in_turns(d, nets, count, (uint32_t)rounds, answer));
done:
    for (uint32_t k = 0; k < count && k < MODELS_MOST; k++) {
        lowered_close(&nets[k]);
    }
    return status;
}

/* ------------------------------------------------------------------ talking */

/* The processor as Graft names it, without its threads. */
static graft_status answer_hello(device *d, const graft_yaml *question, graft_json *answer)
{
    graft_status status = GRAFT_OK;
    graft_device *processor = NULL;
    const char *names[GRAFT_OP_COUNT];
    uint32_t count = 0;
    uint8_t has[LOWERING_OPERATOR_BYTES];
    (void)question;
    GRAFT_CHECK(graft_device_open(d->env, "cpu", 1, &processor));
    char *name = graft_arena_strdup(d->env->unit, graft_device_name(processor));
    char *comma = strrchr(name, ',');
    *(comma == NULL ? name + strlen(name) : comma) = '\0';
    graft_json_integer(answer, "protocol", 1);
    graft_json_string(answer, "name", "xnnpack");
    graft_json_string(answer, "version", XNNPACK_VERSION);
    graft_json_string(answer, "hardware", name);
    graft_json_integer(answer, "threads", d->thread_count);
    graft_json_bool(answer, "times_models", true);
    lowering_operators(has);
    for (uint32_t op = 0; op < GRAFT_OP_COUNT; op++) {
        if (((uint32_t)has[op / 8] >> op % 8 & 1U) != 0) {
            names[count++] = graft_op(op)->name;
        }
    }
    graft_json_strings(answer, "operators", names, count);
done:
    graft_device_close(processor);
    return status;
}

static graft_status answer(device *d, const graft_yaml *question, graft_json *json)
{
    static const struct {
        const char *ask;
        graft_status (*answer)(device *d, const graft_yaml *question, graft_json *answer);
    } answers[] = {
        {"hello",       answer_hello },
        {"time",        answer_time  },
        {"time_models", answer_models},
    };
    graft_status status = GRAFT_OK;
    const char *ask = NULL;
    GRAFT_CHECK(graft_yaml_text(d->env, question, "ask", &ask));
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        if (strcmp(ask, answers[i].ask) == 0) {
            return answers[i].answer(d, question, json);
        }
    }
    status = GRAFT_FAIL(d->env, GRAFT_UNSUPPORTED, "there is no such question");
done:
    return status;
}

/* Everything that one question takes is given back with its answer. `refusal`: the one to all. */
static graft_status answer_line(device *d, const char *line, const char *refusal)
{
    graft_status status = GRAFT_OK;
    graft_env *env = d->env;
    const graft_yaml *question = NULL;
    graft_json json;
    int64_t id = 0;
    GRAFT_CHECK(graft_yaml_parse(env, env->unit, "question", line, strlen(line), &question));
    GRAFT_CHECK(graft_yaml_integer(env, question, "id", 0, UINT32_MAX, &id));
    graft_json_begin(&json, env->unit);
    graft_json_integer(&json, "id", id);
    if (refusal == NULL && answer(d, question, &json) != GRAFT_OK) {
        enum { WORDS = 200 };
        refusal = graft_arena_printf(env->unit, "%.*s", WORDS, env->message);
        graft_env_clear(env);
    }
    if (refusal != NULL) {
        graft_json_begin(&json, env->unit);
        graft_json_integer(&json, "id", id);
        graft_json_string(&json, "unsupported", refusal);
    }
    graft_json_end(&json, stdout);
    (void)fflush(stdout);
    graft_arena_reset(env->unit);
done:
    return status;
}

static const char *open_device(device *d, const char *options)
{
    if (options != NULL) {
        char *end = NULL;
        const bool named = strncmp(options, "threads=", 8) == 0;
        const unsigned long count = named ? strtoul(options + 8, &end, 10) : 0;
        if (count < 1 || count > THREADS_MOST || *end != '\0') {
            return "the option is threads=N";
        }
        d->thread_count = (uint32_t)count;
    }
    if (graft_runtime_open(d->env, d->env->life, NULL, 0, &d->fusions) != GRAFT_OK ||
        xnn_initialize(NULL) != xnn_status_success) {
        return "XNNPACK does not know this processor";
    }
    d->threads = d->thread_count > 1 ? pthreadpool_create(d->thread_count) : NULL;
    return NULL;
}

int main(int argc, char **argv)
{
    graft_env env;
    device d = {.env = &env, .thread_count = 1};
    char *line = NULL;
    size_t room = 0;
    if (graft_env_open(&env) != GRAFT_OK) {
        return GRAFT_EXIT_NO_MEMORY;
    }
    env.verbosity = 0;
    graft_status status = GRAFT_OK;
    const char *refusal = open_device(&d, argc > 1 ? argv[1] : NULL);
    while (status == GRAFT_OK && getline(&line, &room, stdin) >= 0) {
        status = answer_line(&d, line, refusal);
    }
    if (status != GRAFT_OK) {
        (void)fprintf(stderr, "xnnpack: %s\n", env.message);
    }
    free(line);
    pthreadpool_destroy(d.threads);
    (void)xnn_deinitialize();
    graft_env_close(&env);
    return status == GRAFT_OK ? 0 : 2;
}

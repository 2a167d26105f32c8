/* bench_agents.c - agents side by side: what each makes of some models, and what it asked for.
 * bench_agents lists the stages.
 *
 * `graft bench agents MODEL,...`: makes the table of node costs of the models, trains the agent
 * that scores candidates (train/agent/candidates.h) on all of them together, and prints what part
 * of the cost each method leaves, by prices, with the steps taken in the environment and the
 * seconds. Training asks for prices, or for the tariff's estimates alone. `--metrics FILE` gets a
 * JSON line for each update, result, gate, and step that the world model was held against. With
 * `--dreams` one more is trained in the dreams of a world model (train/agent/dreamer.h), which is
 * held against episodes that it has not seen, of all models together and of each; GRAFT_REFUTED
 * when those of all fail. */
#include "emit/command/command.h"
#include "emit/command/command_table.h"
#include "emit/command/session_options.h"
#include "emit/policy/dreamt.h"
#include "graph/base/json.h"
#include "graph/base/log.h"

#include <string.h>

enum { SAMPLES = 8, SEEDS_MOST = 1000000, NAME_BYTES = 40 };

typedef struct {
    graft_session session;
    graft_ground ground;
    graft_plan_found greedy;
} played;

typedef struct {
    graft_env *env;
    graft_session_options options;
    const char *learn_from;
    const char *metrics_path;
    FILE *metrics;
    uint64_t seed;
    graft_table_model *models;
    uint32_t count;
    played *grounds;
    graft_book book;
    graft_tariff tariff;
    graft_candidates agent;
    bool by_price;
    bool dreams;
    bool faithful; /* All gates of the world model hold. */
} bench;

/* ------------------------------------------------------------------- models */

static graft_status open_ground(bench *b, uint32_t m)
{
    graft_env *env = b->env;
    played *g = &b->grounds[m];
    b->options.model = b->models[m].name;
    GRAFT_PASS(graft_session_open(env, &b->options, &g->session));
    GRAFT_PASS(graft_search_greedy(env, env->life, &g->session.environment, NULL, &g->greedy));
    return graft_table_teach(env, &g->session, &b->book, m, &g->greedy);
}

static graft_status open_models(bench *b)
{
    const graft_tariff_options options = {
        .models = UINT64_MAX, .rows = true, .trees = GRAFT_TARIFF_TREES};
    GRAFT_PASS(graft_table_models(b->env, b->options.model, &b->models, &b->count));
    b->grounds = GRAFT_NEW(b->env->life, played, b->count);
    graft_book_open(b->env->life, &b->book);
    for (uint32_t m = 0; m < b->count; m++) {
        GRAFT_PASS(open_ground(b, m));
        graft_log(b->env, 1, "%s: walked through, %llu graphs priced", b->models[m].name,
                  (unsigned long long)b->book.priced);
    }
    GRAFT_PASS(graft_tariff_make(b->env, b->env->life, &b->book, &options, &b->tariff));
    for (uint32_t m = 0; m < b->count; m++) {
        GRAFT_PASS(
            graft_ground_open(b->env, &b->grounds[m].session, &b->tariff, &b->grounds[m].ground));
    }
    return GRAFT_OK;
}

/* ------------------------------------------------------------------- results */

static void begin_line(const bench *b, graft_json *json, const char *kind)
{
    graft_json_begin(json, b->env->scratch);
    graft_json_string(json, "kind", kind);
}

/* Into the file of metrics, if there is one, and on stdout if that is to be told as JSON. */
static void end_line(const bench *b, graft_json *json, bool told)
{
    const char *line = graft_json_line(json);
    if (told && b->env->json) {
        (void)fputs(line, stdout);
    }
    if (b->metrics != NULL) {
        (void)fputs(line, b->metrics);
        (void)fflush(b->metrics);
    }
}

static graft_status print_result(bench *b, const char *method, uint32_t m,
                                 const graft_plan_found *found, uint64_t interactions)
{
    graft_env *env = b->env;
    graft_session *session = &b->grounds[m].session;
    graft_environment *e = &session->environment;
    graft_cost_total total;
    GRAFT_PASS(graft_plan_replay(env, e, found->steps, found->step_count));
    GRAFT_PASS(graft_cost_graph(env, session->cost, &e->state.graph, &e->state.order, &total));
    graft_json json;
    begin_line(b, &json, "result");
    graft_json_add(
        &json, "method=%s model=%s cost_part=%g estimates=%u steps=%u interactions=%lld seconds=%g",
        method, b->models[m].name, total.ns / e->first_ns, total.estimated_count, found->step_count,
        (long long)interactions, found->seconds);
    end_line(b, &json, true);
    if (!env->json) {
        (void)printf("%-24s %-14s %7.2f %% [%2u] %5u %9llu %9.2f s\n", method, b->models[m].name,
                     100.0 * total.ns / e->first_ns, total.estimated_count, found->step_count,
                     (unsigned long long)interactions, found->seconds);
    }
    (void)fflush(stdout);
    return GRAFT_OK;
}

static graft_status try_baselines(bench *b)
{
    for (uint32_t m = 0; m < b->count; m++) {
        graft_tariff_plan plan;
        played *g = &b->grounds[m];
        GRAFT_PASS(print_result(b, "greedy over prices", m, &g->greedy, g->greedy.evaluations));
        GRAFT_PASS(graft_search_tariff(b->env, b->env->life, &g->ground.engine, &b->tariff, &plan));
        GRAFT_PASS(print_result(b, "greedy over the tariff", m, &plan.found, 0));
    }
    return GRAFT_OK;
}

/* The most likely actions alone, and the cheapest by prices of some drawn episodes. */
static graft_status try_agent(bench *b, const char *method)
{
    graft_env *env = b->env;
    const uint64_t interactions = b->agent.interactions;
    for (uint32_t m = 0; m < b->count; m++) {
        char name[NAME_BYTES];
        graft_plan_found found;
        graft_plan_found best = {.cost_ns = b->grounds[m].session.environment.first_ns};
        double seconds = 0.0;
        GRAFT_PASS(graft_candidates_play(env, env->life, &b->agent,
                                         &b->grounds[m].ground.by_estimate, NULL, &found));
        GRAFT_PASS(print_result(b, method, m, &found, interactions));
        for (uint32_t i = 0; i < SAMPLES; i++) {
            graft_rng rng;
            graft_rng_derive(&rng, b->seed, UINT32_MAX + (uint64_t)i);
            GRAFT_PASS(graft_candidates_play(env, env->life, &b->agent,
                                             &b->grounds[m].ground.by_price, &rng, &found));
            seconds += found.seconds;
            best = found.cost_ns < best.cost_ns ? found : best;
        }
        best.seconds = seconds;
        (void)snprintf(name, sizeof name, "%s, best of %d", method, SAMPLES);
        GRAFT_PASS(print_result(b, name, m, &best, interactions));
    }
    b->agent.interactions = interactions;
    return GRAFT_OK;
}

static void write_metrics(const bench *b, const graft_candidates_report *r)
{
    graft_json json;
    begin_line(b, &json, "update");
    graft_json_add(&json, "update=%lld interactions=%lld saved=%g", (long long)b->agent.updates,
                   (long long)b->agent.interactions, r->saved);
    for (uint32_t m = 0; m < b->count; m++) {
        graft_json_number(&json, graft_arena_printf(b->env->scratch, "saved.%s", b->models[m].name),
                          r->saved_each[m]);
    }
    graft_json_add(&json,
                   "length=%g transitions=%u policy_loss=%g value_loss=%g entropy=%g kl=%g "
                   "explained=%g play_seconds=%g learn_seconds=%g",
                   r->length, r->transitions, r->policy_loss, r->value_loss, r->entropy, r->kl,
                   r->explained, r->play_seconds, r->learn_seconds);
    end_line(b, &json, false);
}

static graft_observer **list_observers(const bench *b)
{
    graft_observer **observers = GRAFT_NEW(b->env->life, graft_observer *, b->count);
    for (uint32_t m = 0; m < b->count; m++) {
        observers[m] =
            b->by_price ? &b->grounds[m].ground.by_price : &b->grounds[m].ground.by_estimate;
    }
    return observers;
}

static graft_status train(bench *b)
{
    graft_env *env = b->env;
    const graft_agent_settings *settings = &b->grounds[0].session.settings;
    graft_observer **observers = list_observers(b);
    graft_progress progress;
    graft_progress_start(&progress, env, "training", "updates",
                         (uint64_t)settings->candidates_updates);
    for (int64_t u = 0; u < settings->candidates_updates; u++) {
        graft_candidates_report report;
        char note[NAME_BYTES];
        GRAFT_PASS(graft_candidates_update(env, &b->agent, observers, b->count, &report));
        write_metrics(b, &report);
        (void)snprintf(note, sizeof note, "%.2f %% saved", report.saved);
        graft_progress_update(&progress, (uint64_t)u + 1, note);
    }
    graft_progress_finish(&progress);
    return GRAFT_OK;
}

/* Whether all of them hold on the stories of a model, or of all. */
static bool print_gates(const bench *b, const graft_foresight_report *r, const char *model)
{
    graft_json json;
    begin_line(b, &json, "gates");
    graft_json_string(&json, "model", model);
    graft_foresight_write(r, b->env->scratch, &json);
    graft_json_bool(&json, "hold", graft_foresight_holds(r));
    end_line(b, &json, true);
    if (!b->env->json) {
        (void)printf("%s, ", model);
        (void)graft_foresight_print(r, stdout);
    }
    return graft_foresight_holds(r);
}

/* Step by step, what the world model said a rewrite would bring. */
static void write_rewards(const bench *b, const graft_foresight_report *r)
{
    for (uint32_t t = 0; t < r->steps; t++) {
        graft_json json;
        begin_line(b, &json, "reward");
        graft_json_add(&json, "said=%g real=%g", r->rewards[t].said, r->rewards[t].real);
        end_line(b, &json, false);
    }
}

static void write_dream(void *context, const graft_dreamer *dreamer)
{
    const bench *b = context;
    graft_json json;
    begin_line(b, &json, "dream");
    graft_json_add(&json, "update=%lld dreamed=%g lived=%g",
                   (long long)dreamer->progress.dream_updates, dreamer->dreamed, dreamer->lived);
    end_line(b, &json, false);
}

/* The same agent from the start, by the world model's dreams. */
static graft_status train_in_dreams(bench *b)
{
    graft_status status = GRAFT_OK;
    graft_env *env = b->env;
    graft_dreamer dreamer;
    graft_observer **observers = list_observers(b);
    graft_candidates_close(&b->agent);
    graft_candidates_open(env->life, &b->grounds[0].session.settings, b->seed, env->thread_count,
                          &b->agent);
    graft_dreamer_open(env, &b->agent, observers, b->count, &dreamer);
    dreamer.told = write_dream;
    dreamer.told_context = b;
    GRAFT_CHECK(graft_dreamer_run(&dreamer, NULL, 0));
    write_rewards(b, &dreamer.report);
    b->faithful = print_gates(b, &dreamer.report, "all");
    for (uint32_t m = 0; m < b->count && b->count > 1; m++) {
        (void)print_gates(b, &dreamer.reports[m], b->models[m].name);
    }
    GRAFT_CHECK(try_agent(b, "candidates, dreams"));
done:
    graft_dreamer_close(&dreamer);
    return status;
}

static graft_status compare(bench *b)
{
    graft_status status = GRAFT_OK;
    const graft_agent_settings *settings = &b->grounds[0].session.settings;
    if (!b->env->json) {
        (void)printf(
            "cost by the database of '%s', in percent of the graph as given [estimates]\n\n"
            "%-24s %-14s %14s %5s %9s %11s\n",
            b->options.device, "method", "model", "cost", "steps", "real steps", "time");
    }
    GRAFT_CHECK(try_baselines(b));
    graft_candidates_open(b->env->life, settings, b->seed, b->env->thread_count, &b->agent);
    GRAFT_CHECK(try_agent(b, "candidates, untrained"));
    GRAFT_CHECK(train(b));
    GRAFT_CHECK(try_agent(b, "candidates"));
    if (b->dreams) {
        GRAFT_CHECK(train_in_dreams(b));
    }
done:
    if (b->agent.settings != NULL) {
        graft_candidates_close(&b->agent);
    }
    return status;
}

static graft_status bench_agents(graft_env *env, void *choices)
{
    graft_status status = GRAFT_OK;
    bench *b = choices;
    b->env = env;
    b->by_price = strcmp(b->learn_from, "prices") == 0;
    graft_session_complete(env, &b->options);
    if (b->metrics_path != NULL) {
        b->metrics = fopen(b->metrics_path, "w");
        if (b->metrics == NULL) {
            return GRAFT_FAIL(env, GRAFT_IO, "%s: cannot be written", b->metrics_path);
        }
    }
    GRAFT_CHECK(open_models(b));
    GRAFT_CHECK(compare(b));
    if (b->dreams && !b->faithful) {
        status = GRAFT_FAIL(env, GRAFT_REFUTED, "the world model does not pass its gates");
        goto done;
    }
done:
    for (uint32_t m = 0; b->grounds != NULL && m < b->count; m++) {
        status = graft_session_finish(env, &b->grounds[m].session, status);
    }
    if (b->metrics != NULL && fclose(b->metrics) != 0 && status == GRAFT_OK) {
        status = GRAFT_FAIL(env, GRAFT_IO, "%s: cannot be written", b->metrics_path);
    }
    return status;
}

static const graft_option options[] = {
    GRAFT_SESSION_OPTIONS(bench, options.),
    GRAFT_CHOICE(bench, learn_from, "--learn-from", "WHAT", "prices|estimates", "prices",
                 "what rewards are of"),
    GRAFT_NUMBER(bench, seed, "--seed", "N", "1", 0, SEEDS_MOST, "of weights and episodes"),
    GRAFT_FLAG(bench, dreams, "--dreams", "train one in the dreams of a world model too"),
    GRAFT_TEXT(bench, metrics_path, "--metrics", "FILE", NULL,
               "JSON lines: updates, results, what dreams said"),
};

const graft_command graft_command_bench_agents = {
    .name = "bench agents",
    .summary = "train the agent that scores candidates, and compare",
    .forms = "graft bench agents MODEL,...|zoo",
    .failed = "with --dreams: the world model does not pass its gates",
    GRAFT_TAKES(bench, options),
    .run = bench_agents,
};

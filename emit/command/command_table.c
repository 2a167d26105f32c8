/* command_table.c - `graft cost table` (see command_table.h). */
#include "emit/command/command_table.h"

#include "emit/command/command.h"
#include "emit/command/session_options.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "graph/base/log.h"
#include "graph/rule/policyfile.h"
#include "train/tariff/tariff_search.h"

enum {
    PASSES = 3, /* Of tables that walks are made by, each better than the one before. */
    WALK_STEPS = 60,
    RANDOM_WALKS = 2,
    CONTEXTS = 1000,
    BESIDE = 12,
    BYTES_MOST = 1 << 24
};

/* A graph that some search found. */
typedef struct {
    double ns;
    uint32_t steps;
    uint32_t estimated; /* Estimates in its price. */
    uint32_t guessed;   /* Steps on the fallback. */
    uint64_t priced;    /* Graphs that the search asked the price of. */
    double seconds;
} result;

enum { GIVEN, GREEDY, TABLE, RESULTS };
static const char *const result_names[RESULTS] = {"given", "greedy", "table"};

typedef struct {
    graft_session_options session;
    const char *measured; /* A database that the fallback learns from besides, or NULL. */
    const char *out;      /* Where to write the table; NULL: nowhere. */
    uint64_t bytes_most;
    graft_env *env; /* Where what follows lives. */
    graft_table_model *models;
    uint32_t count;
    graft_book book;
    graft_progress progress;
    graft_tariff tariff;
    result results[GRAFT_TABLE_MODELS][RESULTS];
} table_run;

/* ------------------------------------------------------------------ the book */

/* A session's walks. */
typedef struct {
    graft_session *session;
    graft_book *book;
} teaching;

static graft_status walk_once(graft_env *env, const teaching *t, const graft_walk *walk)
{
    return graft_tariff_walk(env, &t->session->environment, t->session->cost, t->book, walk);
}

/* Walks by tables of what the book has of the model so far. */
static graft_status walk_by_tables(graft_env *env, const teaching *t, graft_walk walk)
{
    const graft_tariff_options options = {.models = UINT64_C(1) << walk.model, .rows = true};
    for (uint32_t pass = 0; pass < PASSES; pass++) {
        GRAFT_SCOPED(env->unit);
        graft_tariff tariff;
        GRAFT_PASS(graft_tariff_make(env, env->unit, t->book, &options, &tariff));
        walk.tariff = &tariff;
        walk.seed = pass;
        walk.kind = GRAFT_WALK_TARIFF;
        walk.steps_most = t->session->environment.options.step_limit;
        GRAFT_PASS(walk_once(env, t, &walk));
        walk.kind = GRAFT_WALK_ANNEALED;
        walk.steps_most = WALK_STEPS;
        GRAFT_PASS(walk_once(env, t, &walk));
    }
    return GRAFT_OK;
}

static graft_status count_estimates(graft_env *env, graft_session *session,
                                    const graft_state *state, result *r)
{
    graft_cost_total total;
    graft_status status =
        graft_session_total(env, session, session->model, &state->graph, &state->order, &total);
    r->estimated = status == GRAFT_OK ? total.estimated_count : 0;
    return status;
}

static graft_status search_greedy(graft_env *env, table_run *run, graft_session *session,
                                  uint32_t model, graft_plan_found *found)
{
    graft_environment *environment = &session->environment;
    result *r = run->results[model];
    r[GIVEN] = (result){.ns = environment->first_ns};
    GRAFT_PASS(count_estimates(env, session, &environment->first, &r[GIVEN]));
    GRAFT_PASS(graft_search_greedy(env, env->life, environment, NULL, found));
    r[GREEDY] = (result){.ns = found->cost_ns,
                         .steps = found->step_count,
                         .priced = found->evaluations,
                         .seconds = found->seconds};
    return count_estimates(env, session, &environment->state, &r[GREEDY]);
}

graft_status graft_table_teach(graft_env *env, graft_session *session, graft_book *book,
                               uint32_t model, const graft_plan_found *greedy)
{
    const teaching t = {session, book};
    graft_walk walk = {.kind = GRAFT_WALK_PLAN,
                       .actions = greedy,
                       .steps_most = greedy->step_count,
                       .model = model,
                       .contexts_most = CONTEXTS,
                       .beside_most = BESIDE};
    GRAFT_PASS(walk_once(env, &t, &walk));
    walk.kind = GRAFT_WALK_RANDOM;
    walk.steps_most = WALK_STEPS;
    for (uint32_t i = 0; i < RANDOM_WALKS; i++) {
        walk.seed = i;
        GRAFT_PASS(walk_once(env, &t, &walk));
    }
    return walk_by_tables(env, &t, walk);
}

static graft_status note_model(graft_env *env, void *context, graft_session *session,
                               uint32_t model)
{
    table_run *run = context;
    graft_plan_found found;
    GRAFT_PASS(search_greedy(env, run, session, model, &found));
    GRAFT_PASS(graft_table_teach(env, session, &run->book, model, &found));
    graft_progress_update(&run->progress, model + 1, NULL);
    return GRAFT_OK;
}

/* ------------------------------------------------------------------ the table */

static graft_status make_table(graft_env *env, table_run *run)
{
    graft_status status = GRAFT_OK;
    graft_database *database = NULL;
    if (run->measured != NULL) {
        GRAFT_CHECK(graft_table_open_measured(env, &run->session, run->measured, &database));
    }
    const graft_tariff_options options = {.models = UINT64_MAX,
                                          .bytes_most = (uint32_t)run->bytes_most,
                                          .rows = true,
                                          .database = database,
                                          .trees = GRAFT_TARIFF_TREES};
    GRAFT_CHECK(graft_tariff_make(env, env->life, &run->book, &options, &run->tariff));
done:
    graft_database_close(database);
    return status;
}

static graft_status search_model(graft_env *env, void *context, graft_session *session,
                                 uint32_t model)
{
    table_run *run = context;
    graft_tariff_plan plan;
    result *r = &run->results[model][TABLE];
    GRAFT_PASS(graft_search_tariff(env, env->life, &session->environment, &run->tariff, &plan));
    *r = (result){.ns = plan.found.cost_ns,
                  .steps = plan.found.step_count,
                  .guessed = plan.guessed_steps,
                  .seconds = plan.found.seconds};
    GRAFT_PASS(count_estimates(env, session, &session->environment.state, r));
    graft_progress_update(&run->progress, model + 1, NULL);
    return GRAFT_OK;
}

/* -------------------------------------------------------------------- report */

static void print_json(graft_env *env, const table_run *run, uint32_t model)
{
    graft_json json;
    GRAFT_SCOPED(env->scratch);
    graft_json_begin(&json, env->scratch);
    graft_json_add(&json, "model=%s family=%s", run->models[model].name, run->models[model].family);
    for (uint32_t i = 0; i < RESULTS; i++) {
        const result *r = &run->results[model][i];
        const char *name = result_names[i];
        graft_json_number(&json, graft_arena_printf(env->scratch, "%s_ns", name), r->ns);
        graft_json_integer(&json, graft_arena_printf(env->scratch, "%s_steps", name), r->steps);
        graft_json_integer(&json, graft_arena_printf(env->scratch, "%s_estimates", name),
                           r->estimated);
        graft_json_integer(&json, graft_arena_printf(env->scratch, "%s_guessed", name), r->guessed);
        graft_json_number(&json, graft_arena_printf(env->scratch, "%s_seconds", name), r->seconds);
    }
    graft_json_integer(&json, "greedy_priced", (int64_t)run->results[model][GREEDY].priced);
    graft_json_end(&json, stdout);
}

static void print_report(graft_env *env, const table_run *run)
{
    for (uint32_t m = 0; m < run->count && env->json; m++) {
        print_json(env, run, m);
    }
    if (env->json) {
        return;
    }
    (void)printf("cost by the database of '%s', in percent of the graph as given [estimates\n"
                 "among the costs that add up to it]\n\n%-12s %14s %14s %10s %10s\n",
                 run->session.device, "model", "greedy", "table", "greedy", "table");
    for (uint32_t m = 0; m < run->count; m++) {
        const result *r = run->results[m];
        (void)printf("%-12s %7.2f %% [%2u] %7.2f %% [%2u] %8.2f s %8.2f s\n", run->models[m].name,
                     100.0 * r[GREEDY].ns / r[GIVEN].ns, r[GREEDY].estimated,
                     100.0 * r[TABLE].ns / r[GIVEN].ns, r[TABLE].estimated, r[GREEDY].seconds,
                     r[TABLE].seconds);
    }
    (void)printf("\n%u rows and a fallback, %u bytes, of %llu priced graphs\n",
                 run->tariff.row_count, graft_tariff_bytes(&run->tariff),
                 (unsigned long long)run->book.priced);
}

/* What the table claims, and on what. */
static graft_status write_table(graft_env *env, const table_run *run)
{
    graft_buffer text = {.arena = env->scratch};
    uint32_t given = 0;
    if (run->out == NULL) {
        return GRAFT_OK;
    }
    graft_buffer_printf(&text, "{\"device\": \"%s\", \"models\": [", run->session.device);
    for (uint32_t m = 0; m < run->count; m++) {
        graft_buffer_printf(&text, "%s\"%s\"", m > 0 ? ", " : "", run->models[m].name);
        given += run->results[m][GIVEN].estimated;
    }
    graft_buffer_printf(&text, "], \"priced\": %llu, \"estimates_in_models\": %u}",
                        (unsigned long long)run->book.priced, given);
    return graft_tarifffile_write(env, &run->tariff, text.data, run->out);
}

graft_status graft_table_open_measured(graft_env *env, const graft_session_options *options,
                                       const char *path, graft_database **database)
{
    graft_status status = GRAFT_OK;
    graft_device *device = NULL;
    graft_cost *cost = NULL;
    GRAFT_CHECK(graft_device_open(env, options->device, 0, &device));
    GRAFT_CHECK(graft_cost_open(env, device, options->database, &cost));
    GRAFT_CHECK(graft_database_open(env, NULL, database));
    GRAFT_CHECK(graft_database_merge(env, *database, path));
    graft_database_select(*database, graft_arena_strdup(env->life, graft_device_name(device)),
                          graft_arena_strdup(env->life, graft_device_library(device)));
done:
    return graft_cost_finish(env, cost, device, status);
}

static graft_status make_and_search(graft_env *env, table_run *run)
{
    graft_book_open(env->life, &run->book);
    graft_progress_start(&run->progress, env, "walking", "models", run->count);
    GRAFT_PASS(graft_table_each(env, &run->session, run->models, run->count, note_model, run));
    graft_progress_finish(&run->progress);
    GRAFT_PASS(make_table(env, run));
    graft_progress_start(&run->progress, env, "searching", "models", run->count);
    GRAFT_PASS(graft_table_each(env, &run->session, run->models, run->count, search_model, run));
    graft_progress_finish(&run->progress);
    print_report(env, run);
    return write_table(env, run);
}

static graft_status run_table(graft_env *env, void *choices)
{
    table_run *run = choices;
    graft_session_complete(env, &run->session);
    GRAFT_PASS(graft_table_models(env, run->session.model, &run->models, &run->count));
    return make_and_search(env, run);
}

static const graft_option options[] = {
    GRAFT_SESSION_OPTIONS(table_run, session.),
    GRAFT_NUMBER(table_run, bytes_most, "--bytes", "N", NULL, 1, BYTES_MOST,
                 "of the table: what is worth most comes first"),
    GRAFT_TEXT(table_run, measured, "--measured", "FILE", NULL,
               "a database that the fallback learns from besides"),
    GRAFT_OUTPUT(table_run, out, "--out", "FILE", "where to write the table of all models"),
};

const graft_command graft_command_cost_table = {
    .name = "cost table",
    .summary = "make a table of what nodes cost, and search by it alone",
    .forms = "graft cost table MODEL,...|zoo",
    GRAFT_TAKES(table_run, options),
    .run = run_table,
};

/* command_close.c - `graft cost close` (see command_table.h). */
#include "emit/command/command_table.h"

#include "cost/plan/supply.h"
#include "emit/command/command.h"
#include "emit/command/known_policy.h"
#include "emit/command/session_options.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "graph/base/log.h"
#include "train/tariff/tariff_search.h"

#include <stdlib.h>

enum {
    PASSES_MOST = 20, /* Over a model, in each of its ways to walk. */
    PASSES_LEAST = 2,
    WALK_STEPS = 60,
    CONTEXTS = 64,
    BESIDE = 2,
    ROUNDS_MOST = 4, /* Of walking and measuring: measured costs lead elsewhere. */
    SECONDS_MOST = 1000000,
    SIGNATURES_MOST = 10000000
};

typedef struct {
    graft_session_options session;
    uint64_t seconds_most;
    uint64_t signatures_most;
    const char *list;   /* Where to write what is lacking instead of measuring it; NULL: nowhere. */
    const char *policy; /* Whose costs lead walks, too; NULL: the device's, in rules/policies. */
    graft_env *env;     /* Where the list lives. */
    graft_table_model *models;
    uint32_t count;
    graft_signature *lacking; /* What the database lacks, with duplicates until they are sorted. */
    uint32_t lacking_count;
    uint32_t capacity;
    uint64_t end_ns; /* Of walking. */
    uint64_t priced;
    bool cut_short; /* By the budget: there may be more. */
    graft_progress progress;
} close_run;

static void sort_lacking(close_run *run)
{
    uint32_t kept = 0;
    if (run->lacking_count > 0) {
        qsort(run->lacking, run->lacking_count, sizeof *run->lacking, graft_signature_compare);
    }
    for (uint32_t i = 0; i < run->lacking_count; i++) {
        if (kept == 0 || !graft_signature_equal(&run->lacking[kept - 1], &run->lacking[i])) {
            run->lacking[kept++] = run->lacking[i];
        }
    }
    run->lacking_count = kept;
}

/* ------------------------------------------------------------------- walking */

static bool is_over(close_run *run, const graft_session *session)
{
    bool late = graft_clock_ns() >= run->end_ns;
    bool full = run->lacking_count + graft_database_count(graft_cost_estimates(session->cost)) >=
                run->signatures_most;
    run->cut_short = run->cut_short || late || full;
    return late || full;
}

/* One walk of each kind; the table is what the book has by then. */
static graft_status walk_all_ways(graft_env *env, close_run *run, graft_session *session,
                                  graft_book *book, graft_walk walk)
{
    static const graft_walk_kind kinds[] = {GRAFT_WALK_RANDOM, GRAFT_WALK_TARIFF,
                                            GRAFT_WALK_ANNEALED};
    GRAFT_SCOPED(env->unit);
    const graft_tariff_options options = {.models = 1, .rows = true};
    graft_tariff tariff = {.row_count = 0};
    walk.tariff = &tariff;
    for (uint32_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]) && !is_over(run, session); k++) {
        walk.kind = kinds[k];
        walk.steps_most =
            walk.kind == GRAFT_WALK_TARIFF ? session->environment.options.step_limit : WALK_STEPS;
        GRAFT_PASS(graft_tariff_make(env, env->unit, book, &options, &tariff));
        GRAFT_PASS(graft_tariff_walk(env, &session->environment, session->cost, book, &walk));
    }
    return GRAFT_OK;
}

static graft_status walk_greedily(graft_env *env, graft_session *session, graft_book *book,
                                  graft_walk walk)
{
    graft_plan_found found;
    GRAFT_PASS(graft_search_greedy(env, env->life, &session->environment, NULL, &found));
    walk.kind = GRAFT_WALK_PLAN;
    walk.actions = &found;
    walk.steps_most = found.step_count;
    return graft_tariff_walk(env, &session->environment, session->cost, book, &walk);
}

/* Where a policy for many models goes. */
static graft_status walk_by_policy(graft_env *env, const close_run *run, graft_session *session,
                                   graft_book *book, graft_walk walk)
{
    const char *path = run->policy;
    graft_tariff tariff;
    GRAFT_PASS(graft_known_policy_tariff(env, graft_device_name(session->device), &path, &tariff));
    if (path != NULL) {
        walk.kind = GRAFT_WALK_TARIFF;
        walk.tariff = &tariff;
        walk.steps_most = session->environment.options.step_limit;
        GRAFT_PASS(graft_tariff_walk(env, &session->environment, session->cost, book, &walk));
    }
    return GRAFT_OK;
}

/* Walks until a pass meets nothing new. */
static graft_status walk_model(graft_env *env, void *context, graft_session *session,
                               uint32_t model)
{
    close_run *run = context;
    const graft_database *estimates = graft_cost_estimates(session->cost);
    graft_book book;
    graft_walk walk = {.contexts_most = CONTEXTS, .beside_most = BESIDE, .end_ns = run->end_ns};
    graft_book_open(env->life, &book);
    if (!is_over(run, session)) {
        GRAFT_PASS(walk_greedily(env, session, &book, walk));
        GRAFT_PASS(walk_by_policy(env, run, session, &book, walk));
    }
    for (uint32_t pass = 0; pass < PASSES_MOST && !is_over(run, session); pass++) {
        uint32_t before = graft_database_count(estimates);
        walk.seed = pass;
        GRAFT_PASS(walk_all_ways(env, run, session, &book, walk));
        if (pass + 1 >= PASSES_LEAST && graft_database_count(estimates) == before) {
            break;
        }
    }
    run->priced += book.priced;
    for (uint32_t i = 0; i < graft_database_count(estimates); i++) {
        GRAFT_PUSH(run->env->life, run->lacking, run->lacking_count, run->capacity, 1024) =
            graft_database_at(estimates, i)->signature;
    }
    graft_progress_update(&run->progress, model + 1, NULL);
    return GRAFT_OK;
}

static graft_status find_lacking(graft_env *env, close_run *run)
{
    run->lacking_count = 0;
    run->cut_short = false;
    graft_progress_start(&run->progress, env, "walking", "models", run->count);
    GRAFT_PASS(graft_table_each(env, &run->session, run->models, run->count, walk_model, run));
    graft_progress_finish(&run->progress);
    sort_lacking(run);
    return GRAFT_OK;
}

/* ----------------------------------------------------------------- outcome */

static uint32_t count_left(const close_run *run, const graft_cost *cost)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < run->lacking_count; i++) {
        left += graft_database_find(graft_cost_database(cost), &run->lacking[i]) == NULL;
    }
    return left;
}

static void print_state(graft_env *env, const close_run *run, const graft_cost *cost)
{
    graft_cost_statistics statistics;
    graft_cost_statistics_of(cost, &statistics);
    uint32_t left = count_left(run, cost);
    const char *device = graft_device_name(graft_cost_device(cost));
    if (env->json) {
        graft_json_print(env->scratch, stdout,
                         "device=%s entries=%u reached=%u measured=%u estimates=%u cut_short=%c",
                         device, statistics.entries, run->lacking_count, run->lacking_count - left,
                         left, run->cut_short);
        return;
    }
    (void)printf("%s: %u entries; rewriting reached %u more signatures in %llu priced graphs, "
                 "%u of them are measured now, %u are estimates%s\n",
                 device, statistics.entries, run->lacking_count, (unsigned long long)run->priced,
                 run->lacking_count - left, left,
                 run->cut_short ? "; the budget ended before nothing new was met" : "");
}

/* A signature a line, for a machine that has the device. */
static graft_status write_list(graft_env *env, const close_run *run)
{
    graft_buffer text = {.arena = env->unit};
    for (uint32_t i = 0; i < run->lacking_count; i++) {
        graft_signature_print(&run->lacking[i], &text);
        graft_buffer_append(&text, "\n", 1);
    }
    return graft_file_write(env, run->list, text.size == 0 ? "" : text.data, text.size);
}

/* One round; *closed when there is nothing left to measure. */
static graft_status close_once(graft_env *env, close_run *run, bool *closed)
{
    graft_status status = GRAFT_OK;
    graft_device *device = NULL;
    graft_cost *cost = NULL;
    GRAFT_CHECK(find_lacking(env, run));
    GRAFT_CHECK(graft_device_open(env, run->session.device, 0, &device));
    GRAFT_CHECK(graft_cost_open(env, device, run->session.database, &cost));
    *closed = run->lacking_count == 0 || run->list != NULL || !graft_device_present(device);
    if (run->list != NULL) {
        GRAFT_CHECK(write_list(env, run));
    } else if (!*closed) {
        status = graft_cost_supply(env, cost, run->lacking, run->lacking_count);
    }
    print_state(env, run, cost);
done:
    return graft_cost_finish(env, cost, device, status);
}

static graft_status run_close(graft_env *env, void *choices)
{
    close_run *run = choices;
    bool closed = false;
    run->env = env;
    run->session.estimating = true;
    graft_session_complete(env, &run->session);
    GRAFT_PASS(graft_table_models(env, run->session.model, &run->models, &run->count));
    run->end_ns = graft_clock_ns() + run->seconds_most * UINT64_C(1000000000);
    for (uint32_t round = 0; round < ROUNDS_MOST && !closed; round++) {
        GRAFT_PASS(close_once(env, run, &closed));
        closed = closed || run->cut_short;
    }
    return GRAFT_OK;
}

static const graft_option options[] = {
    GRAFT_SESSION_OPTIONS(close_run, session.),
    GRAFT_TEXT(close_run, policy, "--policy", "FILE", NULL,
               "a policy whose costs lead a walk, too (default: the device's in rules/policies)"),
    GRAFT_OUTPUT(close_run, list, "--list", "FILE",
                 "write what is lacking there, a signature a line, and measure nothing"),
    GRAFT_NUMBER(close_run, seconds_most, "--seconds", "N", "1000000", 1, SECONDS_MOST,
                 "for walking; then what was met is measured"),
    GRAFT_NUMBER(close_run, signatures_most, "--signatures", "N", "10000000", 1, SIGNATURES_MOST,
                 "to be measured"),
};

const graft_command graft_command_cost_close = {
    .name = "cost close",
    .summary = "walk through rewrites until nothing new is met, and measure what is lacking",
    .forms = "graft cost close MODEL,...|zoo",
    GRAFT_TAKES(close_run, options),
    .run = run_close,
};

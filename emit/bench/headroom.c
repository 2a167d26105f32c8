/* headroom.c - see headroom.h. */
#include "emit/bench/headroom.h"

#include "emit/command/command_table.h"
#include "emit/command/known_policy.h"
#include "emit/command/known_price.h"
#include "emit/command/plans.h"
#include "emit/command/searches.h"
#include "emit/command/session_options.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "graph/base/log.h"
#include "graph/base/ranks.h"

#include <math.h>
#include <string.h>

enum { SECONDS_MOST = 1000000, NAME_BYTES = 32 };

/* After these comes backtracking for as long as the slowest of those that are none. */
static const graft_search_choice rows[] = {
    {.name = "greedy"},
    {                   .name = "escape"               },
    { .name = "annealing",                .seed = 1},
    {                .name = "annealing",                .seed = 2},
    {                .name = "annealing",                .seed = 3},
    {                 .name = "iterated",                .seed = 1},
    {                 .name = "iterated",                .seed = 2},
    {                 .name = "iterated",                .seed = 3},
    {                     .name = "beam",                .width = 8},
    {                     .name = "beam",                .width = 64},
    {                   .name = "guided",                .seed = 1},
    {                   .name = "guided",                .seed = 2},
    {                   .name = "guided",                .seed = 3},
    {             .name = "backtracking",                .dequeues = 1000},
    {             .name = "backtracking",                .dequeues = 50000},
};

enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

typedef struct {
    graft_env *env;
    graft_session_options options;
    const char *path; /* Of the plans. */
    const char *check;
    uint64_t seconds;
    bool estimates;
    graft_table_model *models;
    uint32_t count;
    graft_plans plans;
} headroom_run;

/* ------------------------------------------------------------------- a model */

/* A model that is searched or checked: `session` is of it. */
typedef struct {
    graft_env *env;
    const headroom_run *run;
    graft_session *session;
    graft_known_price price;
    graft_tariff tariff; /* That guided search begins with. */
} ground;

static graft_status open_ground(graft_env *env, const headroom_run *run, graft_session *session,
                                ground *g)
{
    graft_environment *environment = &session->environment;
    const char *policy = NULL;
    *g = (ground){.env = env, .run = run, .session = session};
    GRAFT_PASS(
        graft_known_policy_tariff(env, graft_device_name(session->device), &policy, &g->tariff));
    const graft_price any = environment->options.price;
    GRAFT_PASS(graft_known_price_set(env, session, &g->price));
    if (run->estimates) {
        environment->options.price = any;
        GRAFT_PASS(graft_environment_reprice(env, environment));
    }
    return GRAFT_OK;
}

/* ------------------------------------------------------------------ searching */

static const char *name_row(graft_env *env, const graft_search_choice *choice)
{
    const char *name = choice->name;
    return choice->seed > 0
               ? graft_arena_printf(env->life, "%s, seed %u", name, (unsigned)choice->seed)
           : choice->width > 0
               ? graft_arena_printf(env->life, "%s %u", name, (unsigned)choice->width)
           : choice->dequeues > 0
               ? graft_arena_printf(env->life, "%s %u", name, (unsigned)choice->dequeues)
               : name;
}

/* What is found in a row, and where another process is to find the rest: steps, then the name of the
 * device. */
typedef struct {
    graft_known_plan plan;
    uint32_t row; /* ROW_COUNT: backtracking for equal time. */
    bool cut;
} found_row;

static void print_plan(const headroom_run *run, const graft_known_plan *plan, bool cut)
{
    bool result = plan->estimates <= plan->first_estimates;
    if (run->env->json) {
        graft_json json;
        graft_json_begin(&json, run->env->scratch);
        graft_json_string(&json, "model", plan->model);
        graft_json_string(&json, "search", plan->search);
        graft_json_number(&json, "cost_ns_before", plan->first_ns);
        graft_json_number(&json, "cost_ns_after", plan->cost_ns);
        graft_json_integer(&json, "rules_applied", plan->step_count);
        graft_json_integer(&json, "graphs", (int64_t)plan->graphs);
        graft_json_number(&json, "seconds", plan->seconds);
        graft_json_bool(&json, "out_of_time", cut);
        graft_json_integer(&json, "estimates_before", plan->first_estimates);
        graft_json_integer(&json, "estimates_after", plan->estimates);
        graft_json_bool(&json, "result", result);
        graft_json_end(&json, stdout);
        return;
    }
    (void)printf("%-12s %-24s %7.2f%% %6u %9llu %8.1f%s %5u %5u%s\n", plan->model, plan->search,
                 100.0 * plan->cost_ns / plan->first_ns, plan->step_count,
                 (unsigned long long)plan->graphs, plan->seconds, cut ? "+" : " ",
                 plan->first_estimates, plan->estimates,
                 result ? "" : "  no result: more estimates than before");
    (void)fflush(stdout);
}

/* Runs a search for so many seconds and says what it found. */
static graft_status run_row(ground *g, const graft_search_choice *choice, double seconds,
                            found_row *row, graft_share *share)
{
    graft_status status = GRAFT_OK;
    graft_env *env = g->env;
    graft_session *session = g->session;
    graft_environment *environment = &session->environment;
    graft_plan_found found = {.cost_ns = 0.0};
    graft_buffer piece = {.arena = env->life};
    graft_known_plan *plan = &row->plan;
    const char *device = graft_device_name(session->device);
    graft_search_choice complete = *choice;
    complete.tariff = &g->tariff;
    complete.cost = session->cost;
    environment->options.deadline_ns = graft_clock_ns() + (uint64_t)(seconds * 1e9);
    status = graft_search_run(env, env->life, environment, &session->settings, &complete, &found);
    environment->options.deadline_ns = 0;
    GRAFT_CHECK(status);
    GRAFT_CHECK(graft_plan_replay(env, environment, found.steps, found.step_count, NULL));
    *plan = (graft_known_plan){.rules = graft_plans_rules(session),
                               .first_ns = environment->first_ns,
                               .first_estimates = g->price.first_estimates,
                               .graphs = found.evaluations,
                               .seconds = found.seconds,
                               .step_count = found.step_count};
    GRAFT_CHECK(graft_known_price_count(env, session, &environment->state, &plan->cost_ns,
                                        &plan->estimates));
    plan->costs = graft_plans_costs(session); /* Now all of them are there. */
    row->cut = found.cut;
    graft_buffer_append(&piece, row, sizeof *row);
    graft_buffer_append(&piece, found.steps, found.step_count * sizeof found.steps[0]);
    graft_buffer_append(&piece, device, strlen(device) + 1);
    GRAFT_CHECK(graft_share_say(share, piece.data, piece.size));
done:
    return status;
}

static graft_status search_model(graft_env *env, void *context, graft_session *session,
                                 uint32_t model, graft_share *share)
{
    const headroom_run *run = context;
    const graft_search_choice endless = {.name = "backtracking", .dequeues = UINT32_MAX};
    found_row row;
    ground g;
    double longest = 0.0;
    (void)model;
    memset(&row, 0, sizeof row);
    GRAFT_PASS(open_ground(env, run, session, &g));
    for (row.row = 0; row.row < ROW_COUNT; row.row++) {
        const graft_search_choice *choice = &rows[row.row];
        GRAFT_PASS(run_row(&g, choice, (double)run->seconds, &row, share));
        bool other = strcmp(choice->name, "backtracking") != 0;
        longest = other ? fmax(longest, row.plan.seconds) : longest;
    }
    return run_row(&g, &endless, longest, &row, share);
}

/* Prints a row and keeps its plan; behind a model's last one, the best that is known. */
static graft_status take_row(graft_env *env, void *context, uint32_t model, const void *piece,
                             size_t bytes)
{
    headroom_run *run = context;
    found_row row;
    graft_known_plan *plan = &row.plan;
    const uint8_t *at = (const uint8_t *)piece + sizeof row;
    (void)bytes;
    if (graft_ranks_own(env) > 0) {
        return GRAFT_OK;
    }
    memcpy(&row, piece, sizeof row);
    plan->model = run->models[model].name;
    plan->search = row.row < ROW_COUNT ? name_row(env, &rows[row.row]) : "backtracking, equal time";
    plan->steps = GRAFT_NEW(env->life, graft_action, plan->step_count + 1);
    memcpy(plan->steps, at, plan->step_count * sizeof plan->steps[0]);
    plan->device =
        graft_arena_strdup(env->life, (const char *)at + plan->step_count * sizeof plan->steps[0]);
    print_plan(run, plan, row.cut);
    GRAFT_PASS(graft_plans_keep(env, env->life, &run->plans, plan, run->path));
    const graft_known_plan *best = graft_plans_find(&run->plans, plan->model, plan->device);
    if (row.row == ROW_COUNT && best != NULL && !env->json) {
        (void)printf("%-12s best known: %.2f%% by %s\n", plan->model,
                     100.0 * best->cost_ns / best->first_ns, best->search);
    }
    return GRAFT_OK;
}

/* ------------------------------------------------------------------- checking */

static graft_status check_plan(graft_env *env, void *context, graft_session *session,
                               uint32_t number)
{
    const headroom_run *run = context;
    const graft_known_plan *plan = &run->plans.items[number];
    const graft_environment *environment = &session->environment;
    double ns = 0.0;
    uint32_t estimates = 0;
    ground g;
    GRAFT_PASS(open_ground(env, run, session, &g));
    if (plan->rules != graft_plans_rules(session) || plan->costs != graft_plans_costs(session)) {
        return GRAFT_FAIL(env, GRAFT_REFUTED, "the plan is of other rules or costs");
    }
    GRAFT_PASS(graft_plan_replay(env, &session->environment, plan->steps, plan->step_count, NULL));
    GRAFT_PASS(graft_known_price_count(env, session, &environment->state, &ns, &estimates));
    if (ns != plan->cost_ns || environment->first_ns != plan->first_ns ||
        estimates != plan->estimates || g.price.first_estimates != plan->first_estimates) {
        return GRAFT_FAIL(env, GRAFT_REFUTED,
                          "%.4f of %.4f ns with %u estimates, the file says %.4f of %.4f ns with "
                          "%u",
                          ns, environment->first_ns, estimates, plan->cost_ns, plan->first_ns,
                          plan->estimates);
    }
    (void)printf("%-12s %7.2f%% in %u steps, as found by %s\n", plan->model,
                 100.0 * ns / plan->first_ns, plan->step_count, plan->search);
    return GRAFT_OK;
}

static graft_status check_plans(headroom_run *run)
{
    graft_status status = GRAFT_OK;
    if (!graft_file_exists(run->check)) {
        return GRAFT_FAIL(run->env, GRAFT_IO, "%s: there is no such file", run->check);
    }
    GRAFT_CHECK(graft_plans_read(run->env, run->env->life, run->check, &run->plans));
    run->models = GRAFT_NEW(run->env->life, graft_table_model, run->plans.count);
    for (uint32_t i = 0; i < run->plans.count; i++) {
        run->models[i].name = run->plans.items[i].model;
    }
    GRAFT_TRY(
        run->env,
        graft_table_each(run->env, &run->options, run->models, run->plans.count, check_plan, run),
        "%s", run->check);
done:
    return status;
}

/* --------------------------------------------------------------------- command */

static graft_status search_models(headroom_run *run)
{
    const graft_table_work work = {"searching", search_model, take_row, run};
    GRAFT_PASS(graft_table_models(run->env, run->options.model, &run->models, &run->count));
    GRAFT_PASS(graft_plans_read(run->env, run->env->life, run->path, &run->plans));
    if (!run->env->json) {
        (void)printf("%-12s %-24s %8s %6s %9s %8s  %5s %5s\n", "model", "search", "cost", "steps",
                     "graphs", "seconds", "est.", "after");
    }
    return graft_table_share(run->env, &run->options, run->models, run->count, &work);
}

static graft_status run_headroom(graft_env *env, void *choices)
{
    graft_status status = GRAFT_OK;
    headroom_run *run = choices;
    run->env = env;
    graft_session_complete(env, &run->options);
    run->options.level = true;
    GRAFT_CHECK(graft_session_open_ranks(env, &run->options));
    status = run->check != NULL ? check_plans(run) : search_models(run);
done:
    return status;
}

static const graft_option options[] = {
    GRAFT_SESSION_OPTIONS(headroom_run, options.),
    GRAFT_NUMBER(headroom_run, seconds, "--seconds", "N", "60", 1, SECONDS_MOST, "for each search"),
    GRAFT_TEXT(headroom_run, path, "--plans", "FILE", "out/bench/headroom.plans",
               "where the best are kept"),
    GRAFT_TEXT(headroom_run, check, "--check", "FILE", NULL, "replay the plans of a file instead"),
    GRAFT_FLAG(headroom_run, estimates, "--estimates",
               "also graphs with more estimated costs than the one given"),
};

const graft_command graft_command_headroom = {
    .name = "bench headroom",
    .summary = "the best plan of all searches, for each of some models or for the zoo",
    .forms = "graft bench headroom MODEL,...|zoo",
    .failed = "with --check: a plan does not cost what the file says",
    GRAFT_TAKES(headroom_run, options),
    .run = run_headroom,
    .shares = true,
};

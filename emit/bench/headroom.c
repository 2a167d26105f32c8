/* headroom.c - see headroom.h. */
#include "emit/bench/headroom.h"

#include "emit/command/known_policy.h"
#include "emit/command/known_price.h"
#include "emit/command/plans.h"
#include "emit/command/searches.h"
#include "emit/command/session_options.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "graph/base/log.h"
#include "models/zoo.h"

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

typedef struct {
    graft_env *env;
    graft_session_options options;
    const char *path; /* Of the plans. */
    const char *check;
    uint64_t seconds;
    bool estimates;
    graft_plans plans;
    graft_session session;
    graft_known_price price;
    graft_tariff tariff; /* That guided search begins with. */
    const char *policy;  /* Which it is of. */
} headroom_run;

/* ------------------------------------------------------------------- a model */

static graft_status open_model(headroom_run *run, const char *model)
{
    graft_status status = GRAFT_OK;
    graft_environment *environment = &run->session.environment;
    run->options.model = model;
    run->options.level = true;
    GRAFT_CHECK(graft_session_open(run->env, &run->options, &run->session));
    GRAFT_CHECK(graft_known_policy_tariff(run->env, graft_device_name(run->session.device),
                                          &run->policy, &run->tariff));
    const graft_price any = environment->options.price;
    GRAFT_CHECK(graft_known_price_set(run->env, &run->session, &run->price));
    if (run->estimates) {
        environment->options.price = any;
        GRAFT_CHECK(graft_environment_reprice(run->env, environment));
    }
done:
    return status;
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

/* Runs a search for so many seconds and prints what it found. */
static graft_status run_row(headroom_run *run, const graft_search_choice *choice, double seconds,
                            const char *name, graft_known_plan *plan)
{
    graft_status status = GRAFT_OK;
    graft_env *env = run->env;
    graft_environment *environment = &run->session.environment;
    graft_plan_found found = {.cost_ns = 0.0};
    double ns = 0.0;
    graft_search_choice complete = *choice;
    complete.tariff = &run->tariff;
    complete.cost = run->session.cost;
    environment->options.deadline_ns = graft_clock_ns() + (uint64_t)(seconds * 1e9);
    status =
        graft_search_run(env, env->life, environment, &run->session.settings, &complete, &found);
    environment->options.deadline_ns = 0;
    GRAFT_CHECK(status);
    GRAFT_CHECK(graft_plan_replay(env, environment, found.steps, found.step_count, NULL));
    *plan = (graft_known_plan){.model = run->options.model,
                               .device = graft_device_name(run->session.device),
                               .rules = graft_plans_rules(&run->session),
                               .search = name,
                               .first_ns = environment->first_ns,
                               .first_estimates = run->price.first_estimates,
                               .graphs = found.evaluations,
                               .seconds = found.seconds,
                               .step_count = found.step_count,
                               .steps = found.steps};
    GRAFT_CHECK(graft_known_price_count(run->env, &run->session, &environment->state, &ns,
                                        &plan->estimates));
    plan->cost_ns = ns;
    plan->costs = graft_plans_costs(&run->session); /* Now all of them are there. */
    print_plan(run, plan, found.cut);
done:
    return status;
}

static graft_status search_model(headroom_run *run, const char *model)
{
    graft_status status = GRAFT_OK;
    const graft_search_choice endless = {.name = "backtracking", .dequeues = UINT32_MAX};
    graft_known_plan plan;
    double longest = 0.0;
    GRAFT_CHECK(open_model(run, model));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        GRAFT_CHECK(
            run_row(run, &rows[i], (double)run->seconds, name_row(run->env, &rows[i]), &plan));
        GRAFT_CHECK(graft_plans_keep(run->env, run->env->life, &run->plans, &plan, run->path));
        bool other = strcmp(rows[i].name, "backtracking") != 0;
        longest = other ? fmax(longest, plan.seconds) : longest;
    }
    GRAFT_CHECK(run_row(run, &endless, longest, "backtracking, equal time", &plan));
    GRAFT_CHECK(graft_plans_keep(run->env, run->env->life, &run->plans, &plan, run->path));
    const graft_known_plan *best = graft_plans_find(&run->plans, plan.model, plan.device);
    if (best != NULL && !run->env->json) {
        (void)printf("%-12s best known: %.2f%% by %s\n", model,
                     100.0 * best->cost_ns / best->first_ns, best->search);
    }
done:
    return graft_session_finish(run->env, &run->session, status);
}

/* ------------------------------------------------------------------- checking */

static graft_status check_plan(headroom_run *run, const graft_known_plan *plan)
{
    graft_status status = GRAFT_OK;
    graft_env *env = run->env;
    graft_environment *environment = &run->session.environment;
    double ns = 0.0;
    uint32_t estimates = 0;
    GRAFT_CHECK(open_model(run, plan->model));
    if (plan->rules != graft_plans_rules(&run->session) ||
        plan->costs != graft_plans_costs(&run->session)) {
        status = GRAFT_FAIL(env, GRAFT_REFUTED, "the plan is of other rules or costs");
        goto done;
    }
    GRAFT_CHECK(graft_plan_replay(env, environment, plan->steps, plan->step_count, NULL));
    GRAFT_CHECK(
        graft_known_price_count(run->env, &run->session, &environment->state, &ns, &estimates));
    if (ns != plan->cost_ns || environment->first_ns != plan->first_ns ||
        estimates != plan->estimates || run->price.first_estimates != plan->first_estimates) {
        status = GRAFT_FAIL(env, GRAFT_REFUTED,
                            "%.4f of %.4f ns with %u estimates, the file says %.4f of %.4f ns with "
                            "%u",
                            ns, environment->first_ns, estimates, plan->cost_ns, plan->first_ns,
                            plan->estimates);
        goto done;
    }
    (void)printf("%-12s %7.2f%% in %u steps, as found by %s\n", plan->model,
                 100.0 * ns / plan->first_ns, plan->step_count, plan->search);
done:
    return graft_session_finish(env, &run->session, status);
}

static graft_status check_plans(headroom_run *run)
{
    graft_status status = GRAFT_OK;
    if (!graft_file_exists(run->check)) {
        return GRAFT_FAIL(run->env, GRAFT_IO, "%s: there is no such file", run->check);
    }
    GRAFT_CHECK(graft_plans_read(run->env, run->env->life, run->check, &run->plans));
    for (uint32_t i = 0; i < run->plans.count; i++) {
        GRAFT_TRY(run->env, check_plan(run, &run->plans.items[i]), "%s: the plan of %s", run->check,
                  run->plans.items[i].model);
    }
done:
    return status;
}

/* --------------------------------------------------------------------- command */

static graft_status search_models(headroom_run *run, const char *model)
{
    graft_status status = GRAFT_OK;
    uint32_t count = 0;
    const graft_zoo_entry *zoo = graft_zoo(&count);
    GRAFT_CHECK(graft_plans_read(run->env, run->env->life, run->path, &run->plans));
    if (!run->env->json) {
        (void)printf("%-12s %-24s %8s %6s %9s %8s  %5s %5s\n", "model", "search", "cost", "steps",
                     "graphs", "seconds", "est.", "after");
    }
    if (strcmp(model, "zoo") != 0) {
        return search_model(run, model);
    }
    for (uint32_t i = 0; i < count; i++) {
        GRAFT_CHECK(search_model(run, zoo[i].name));
    }
done:
    return status;
}

static graft_status run_headroom(graft_env *env, void *choices)
{
    headroom_run *run = choices;
    run->env = env;
    graft_session_complete(env, &run->options);
    return run->check != NULL ? check_plans(run) : search_models(run, run->options.model);
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
    .summary = "the best plan of all searches, for one model or for the zoo",
    .forms = "graft bench headroom MODEL|zoo",
    .failed = "with --check: a plan does not cost what the file says",
    GRAFT_TAKES(headroom_run, options),
    .run = run_headroom,
};

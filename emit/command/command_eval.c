/* command_eval.c - `graft eval`: every method on every model, and a page of what came out (see
 * evaluation.h). */
#include "emit/bench/evaluation.h"
#include "emit/command/command.h"
#include "emit/command/known_policy.h"
#include "emit/command/known_price.h"
#include "emit/command/plans.h"
#include "emit/command/session_options.h"
#include "emit/header/compile.h"
#include "emit/policy/refined.h"
#include "graph/base/file.h"
#include "graph/base/log.h"
#include "graph/base/ranks.h"
#include "graph/rule/policyfile.h"

#include <string.h>
#include <xxhash.h>

enum { SEEDS_MOST = 100, SECONDS_MOST = 100000 };

#define PLAIN(shown, what, is_drawn)                                                               \
    {                                                                                              \
        .name = (shown), .kind = (what), .drawn = (is_drawn)                                       \
    }
#define SEARCH(shown, is_drawn, ...)                                                               \
    {                                                                                              \
        .name = (shown), .kind = GRAFT_METHOD_SEARCH, .drawn = (is_drawn), .choice = {             \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define SAMPLED(shown, degrees)                                                                    \
    {                                                                                              \
        .name = (shown), .kind = GRAFT_METHOD_SAMPLED, .drawn = true, .choice = {                  \
            .temperature = (degrees)                                                               \
        }                                                                                          \
    }
static const graft_method methods[] = {
    PLAIN("as given", GRAFT_METHOD_GIVEN, false),
    PLAIN("policy", GRAFT_METHOD_POLICY, false),
    PLAIN("table", GRAFT_METHOD_TABLE, false),
    PLAIN("refined", GRAFT_METHOD_REFINED, true),
    SEARCH("guided", true, .name = "guided"),
    SEARCH("greedy", false, .name = "greedy"),
    SEARCH("escape", false, .name = "escape"),
    SEARCH("beam 8", false, .name = "beam", .width = 8),
    SEARCH("beam 64", false, .name = "beam", .width = 64),
    SEARCH("annealing", true, .name = "annealing"),
    SEARCH("iterated", true, .name = "iterated"),
    SEARCH("backtracking 1000", false, .name = "backtracking", .dequeues = 1000),
    SEARCH("backtracking 50000", false, .name = "backtracking", .dequeues = 50000),
    SEARCH("backtracking equal time", false, .name = "backtracking", .dequeues = UINT32_MAX),
    SAMPLED("sampled 0.1", 0.1),
    SAMPLED("sampled 0.3", 0.3),
    SAMPLED("sampled 1", 1.0),
    SAMPLED("sampled 3", 3.0),
};
#undef PLAIN
#undef SEARCH
#undef SAMPLED

const graft_method *graft_methods(uint32_t *count)
{
    *count = sizeof methods / sizeof methods[0];
    return methods;
}

/* All that their rewrites reach is recorded of one device, see rules/costs/README.md. */
static const char closed_models[] = "autoencoder,dscnn,resnet8,squeezenet,resnet18,mobilenetv1,"
                                    "mobilenetv2,resnet50,nasrnn,lstm";

typedef struct {
    graft_session_options session;
    const char *only; /* Methods, commas between; NULL: all. */
    const char *folder;
    const char *page;
    const char *policy_path; /* NULL: the device's, in rules/policies. */
    uint64_t seeds;
    uint64_t seconds; /* For each cell. */
    bool again;
    bool report_only;
    graft_env *env;
    graft_table_model *models;
    uint32_t count;
    graft_cells cells;
    graft_policy policy;
    graft_tariff tariff;
    uint64_t policy_hash;
    const char *path; /* Of the cells. */
    graft_plans plans;
    const char *plans_path;
} eval_run;

/* ------------------------------------------------------------------- one cell */

typedef struct {
    graft_env *env;
    eval_run *run;
    graft_session *session;
    const graft_method *method;
    graft_cell cell;
    graft_plan_found found;
    bool has_plan;
} cell_run;

/* A cell on its way to the first rank: behind it are the text of its rules, the device's name and
 * the steps of the plan. */
typedef struct {
    graft_cell cell;
    graft_known_plan plan; /* If it has one. */
    uint32_t method;
    bool has_plan;
    bool is_known; /* By an earlier run. */
} found_cell;

/* How often the plan applies each rule. */
static const char *list_rules(const cell_run *c, const graft_plan_found *found)
{
    const graft_xfers *xfers = &c->session->xfers;
    graft_buffer text = {.arena = c->run->env->life};
    uint32_t *uses = GRAFT_NEW(c->env->unit, uint32_t, xfers->count);
    bool first = true;
    memset(uses, 0, xfers->count * sizeof uses[0]);
    for (uint32_t i = 0; i < found->step_count; i++) {
        uses[found->steps[i].xfer]++;
    }
    graft_buffer_printf(&text, "{");
    for (uint32_t x = 0; x < xfers->count; x++) {
        if (uses[x] > 0) {
            graft_buffer_printf(&text, "%s\"%s\": %u", first ? "" : ", ", xfers->names[x], uses[x]);
            first = false;
        }
    }
    graft_buffer_printf(&text, "}");
    return text.data;
}

static graft_status take_plan(cell_run *c, const graft_plan_found *found)
{
    graft_status status = GRAFT_OK;
    graft_environment *environment = &c->session->environment;
    GRAFT_CHECK(graft_plan_replay(c->env, environment, found->steps, found->step_count, NULL));
    GRAFT_CHECK(graft_known_price_count(c->env, c->session, &environment->state, &c->cell.cost_ns,
                                        &c->cell.estimates));
    c->cell.steps = found->step_count;
    c->cell.graphs = found->evaluations;
    c->cell.seconds = found->seconds;
    c->cell.cut = found->cut;
    c->cell.rules = list_rules(c, found);
    c->found = *found;
    c->has_plan = true;
done:
    return status;
}

/* Seconds that a cell may take: backtracking without an end as many as guided search took. */
static double limit_of(const cell_run *c)
{
    const graft_cell *guided = graft_cells_find(&c->run->cells, c->cell.model, "guided", 1);
    const bool endless = c->method->choice.dequeues == UINT32_MAX;
    return endless && guided != NULL ? guided->seconds : (double)c->run->seconds;
}

static graft_status run_search(cell_run *c)
{
    graft_status status = GRAFT_OK;
    graft_env *env = c->env;
    graft_environment *environment = &c->session->environment;
    graft_search_choice choice = c->method->choice;
    graft_plan_found found = {.cost_ns = 0.0};
    choice.seed = c->cell.seed;
    choice.tariff = &c->run->tariff;
    choice.cost = c->session->cost;
    environment->options.deadline_ns = graft_clock_ns() + (uint64_t)(limit_of(c) * 1e9);
    status = graft_search_run(env, env->unit, environment, &c->session->settings, &choice, &found);
    environment->options.deadline_ns = 0;
    GRAFT_CHECK(status);
    GRAFT_CHECK(take_plan(c, &found));
done:
    return status;
}

static graft_status run_policy(cell_run *c)
{
    graft_status status = GRAFT_OK;
    graft_results *results = GRAFT_NEW(c->env->unit, graft_results, 1);
    const graft_policy_run alone = {.method = "policy", .how = "alone"};
    results->count = 0;
    GRAFT_CHECK(graft_policy_evaluate(c->env, c->session, &c->run->policy, &alone, results));
    const graft_result *row = &results->rows[0];
    c->cell.cost_ns = row->cost_ns;
    c->cell.estimates = (uint32_t)row->estimated;
    c->cell.steps = row->step_count;
    c->cell.seconds = row->seconds;
done:
    return status;
}

/* Greedy over a table of rows that walks through the model's own rewrites met, as they were
 * measured: what greedy's plan and the walks asked for is counted. */
static graft_status run_table(cell_run *c)
{
    graft_status status = GRAFT_OK;
    graft_env *env = c->env;
    const graft_tariff_options options = {.models = 1, .rows = true};
    graft_plan_found greedy;
    graft_tariff tariff;
    graft_tariff_plan plan;
    graft_book book;
    graft_book_open(env->unit, &book);
    GRAFT_CHECK(graft_search_greedy(env, env->unit, &c->session->environment, &greedy));
    GRAFT_CHECK(graft_table_teach(env, c->session, &book, 0, &greedy));
    GRAFT_CHECK(graft_tariff_make(env, env->unit, &book, &options, &tariff, NULL));
    GRAFT_CHECK(
        graft_search_tariff(env, env->unit, &c->session->environment, &tariff, false, &plan));
    plan.found.evaluations = greedy.evaluations + book.priced;
    GRAFT_CHECK(take_plan(c, &plan.found));
done:
    return status;
}

static graft_status run_sampled(cell_run *c)
{
    graft_status status = GRAFT_OK;
    graft_plan_found found;
    const graft_guided_options options = {.tariff = &c->run->tariff,
                                          .cost = c->session->cost,
                                          .graphs = 1,
                                          .temperature = c->method->choice.temperature,
                                          .seed = c->cell.seed};
    GRAFT_CHECK(
        graft_guided_sample(c->env, c->env->unit, &c->session->environment, &options, &found));
    GRAFT_CHECK(take_plan(c, &found));
done:
    return status;
}

/* The better of the policy for many models and the refined one; its seconds are those of refining.
 */
static graft_status run_refined(cell_run *c)
{
    graft_status status = GRAFT_OK;
    graft_results *results = GRAFT_NEW(c->env->unit, graft_results, 1);
    graft_refined refined;
    const uint64_t start_ns = graft_clock_ns();
    results->count = 0;
    const graft_refined_start start = {.tariff = &c->run->tariff, .seed = c->cell.seed};
    GRAFT_CHECK(graft_refined_make(c->env, c->session, &start, &refined, results));
    c->cell.seconds = (double)(graft_clock_ns() - start_ns) / 1e9;
    c->cell.graphs = refined.graphs;
    for (uint32_t i = 1; i < results->count; i++) { /* The first is the random table. */
        const graft_result *row = &results->rows[i];
        if (i == 1 || row->cost_ns < c->cell.cost_ns) {
            c->cell.cost_ns = row->cost_ns;
            c->cell.estimates = (uint32_t)row->estimated;
            c->cell.steps = row->step_count;
        }
    }
done:
    return status;
}

static graft_status run_method(cell_run *c)
{
    switch (c->method->kind) {
    case GRAFT_METHOD_GIVEN:
        return GRAFT_OK;
    case GRAFT_METHOD_POLICY:
        return run_policy(c);
    case GRAFT_METHOD_REFINED:
        return run_refined(c);
    case GRAFT_METHOD_TABLE:
        return run_table(c);
    case GRAFT_METHOD_SAMPLED:
        return run_sampled(c);
    case GRAFT_METHOD_SEARCH:
        break;
    }
    return run_search(c);
}

/* What the cell's result rests on. */
static uint64_t hash_inputs(const cell_run *c)
{
    const graft_search_choice *choice = &c->method->choice;
    uint64_t numbers[] = {graft_state_hash(&c->session->environment.first),
                          graft_plans_rules(c->session),
                          graft_plans_costs(c->session),
                          c->run->policy_hash,
                          choice->dequeues,
                          choice->width,
                          choice->graphs,
                          (uint64_t)(1000.0 * choice->temperature),
                          XXH3_64bits(&c->session->settings, sizeof c->session->settings)};
    return XXH3_64bits(numbers, sizeof numbers);
}

/* Says the cell, or what an earlier run knows of it. */
static graft_status say_cell(const cell_run *c, const graft_cell *known, graft_share *share)
{
    const graft_cell *cell = known != NULL ? known : &c->cell;
    const char *device = graft_device_name(c->session->device);
    graft_buffer piece = {.arena = c->env->unit};
    found_cell found;
    memset(&found, 0, sizeof found);
    found.cell = *cell;
    found.method = (uint32_t)(c->method - methods);
    found.is_known = known != NULL;
    found.has_plan = c->has_plan;
    found.plan = (graft_known_plan){.rules = graft_plans_rules(c->session),
                                    .costs = graft_plans_costs(c->session),
                                    .first_ns = cell->first_ns,
                                    .cost_ns = cell->cost_ns,
                                    .first_estimates = cell->first_estimates,
                                    .estimates = cell->estimates,
                                    .graphs = c->found.evaluations,
                                    .seconds = c->found.seconds,
                                    .step_count = c->found.step_count};
    graft_buffer_append(&piece, &found, sizeof found);
    graft_buffer_append(&piece, cell->rules, strlen(cell->rules) + 1);
    graft_buffer_append(&piece, device, strlen(device) + 1);
    graft_buffer_append(&piece, c->found.steps, c->found.step_count * sizeof c->found.steps[0]);
    return graft_share_say(share, piece.data, piece.size);
}

/* Keeps a plan when none is known that is as good. */
static graft_status keep_plan(eval_run *run, const found_cell *found, const char *device,
                              const void *steps)
{
    graft_known_plan plan = found->plan;
    plan.model = found->cell.model;
    plan.device = device;
    plan.search = found->cell.method;
    plan.steps = GRAFT_NEW(run->env->life, graft_action, plan.step_count + 1);
    memcpy(plan.steps, steps, plan.step_count * sizeof plan.steps[0]);
    return graft_plans_keep(run->env, run->env->life, &run->plans, &plan, run->plans_path);
}

/* Puts a cell into the files, and prints it. */
static graft_status take_cell(graft_env *env, void *context, uint32_t model, const void *piece,
                              size_t bytes)
{
    graft_status status = GRAFT_OK;
    eval_run *run = context;
    found_cell found;
    const char *rules = (const char *)piece + sizeof found;
    const char *device = rules + strlen(rules) + 1;
    (void)bytes;
    memcpy(&found, piece, sizeof found);
    graft_cell *cell = &found.cell;
    cell->model = run->models[model].name;
    cell->family = run->models[model].family;
    cell->method = methods[found.method].name;
    cell->rules = graft_arena_strdup(env->life, rules);
    graft_cells_put(env->life, &run->cells, cell);
    if (graft_ranks_own(env) > 0) {
        return GRAFT_OK;
    }
    if (env->json) {
        graft_buffer text = {.arena = env->life};
        graft_cell_print(&text, cell);
        (void)fputs(text.data, stdout);
    }
    if (found.is_known) {
        return GRAFT_OK;
    }
    if (found.has_plan) {
        GRAFT_CHECK(keep_plan(run, &found, device, device + strlen(device) + 1));
    }
    GRAFT_CHECK(graft_cells_write(env, &run->cells, run->path));
    graft_log(env, 1, "%s, %s, seed %u: %.2f %%, %llu graphs, %.1f s", cell->model, cell->method,
              cell->seed, 100.0 * cell->cost_ns / cell->first_ns, (unsigned long long)cell->graphs,
              cell->seconds);
done:
    return status;
}

/* Does a cell, unless its result is known and was not cut earlier than it would be now. */
static graft_status do_cell(cell_run *c, graft_share *share)
{
    graft_status status = GRAFT_OK;
    eval_run *run = c->run;
    const graft_cell *known =
        graft_cells_find(&run->cells, c->cell.model, c->method->name, c->cell.seed);
    graft_mark mark = graft_arena_mark(c->env->unit);
    c->cell.inputs = hash_inputs(c);
    c->cell.method = c->method->name;
    c->cell.rules = "{}";
    if (known != NULL && known->inputs == c->cell.inputs && !run->again &&
        (!known->cut || known->seconds + 1.0 >= limit_of(c))) {
        return say_cell(c, known, share);
    }
    GRAFT_CHECK(graft_known_price_count(c->env, c->session, &c->session->environment.first,
                                        &c->cell.first_ns, &c->cell.first_estimates));
    c->cell.cost_ns = c->cell.first_ns;
    c->cell.estimates = c->cell.first_estimates;
    GRAFT_CHECK(run_method(c));
    graft_cells_put(run->env->life, &run->cells, &c->cell); /* Later cells look for it. */
    GRAFT_CHECK(say_cell(c, NULL, share));
done:
    graft_arena_release(c->env->unit, mark);
    return status;
}

static bool is_wanted(eval_run *run, const graft_method *method)
{
    bool wanted = run->only == NULL;
    uint32_t count = 0;
    const char **names = wanted ? NULL : graft_options_names(run->env->life, run->only, &count);
    for (uint32_t i = 0; i < count; i++) {
        wanted = wanted || strcmp(names[i], method->name) == 0;
    }
    return wanted;
}

static graft_status do_model(graft_env *env, void *context, graft_session *session, uint32_t model,
                             graft_share *share)
{
    graft_status status = GRAFT_OK;
    eval_run *run = context;
    graft_known_price price;
    GRAFT_CHECK(graft_known_price_set(env, session, &price));
    for (size_t m = 0; m < sizeof methods / sizeof methods[0]; m++) {
        const uint32_t seeds = methods[m].drawn ? (uint32_t)run->seeds : 1;
        for (uint32_t seed = 1; seed <= seeds && is_wanted(run, &methods[m]); seed++) {
            cell_run c = {.env = env, .run = run, .session = session, .method = &methods[m]};
            c.cell.model = run->models[model].name;
            c.cell.family = run->models[model].family;
            c.cell.seed = methods[m].drawn ? seed : 0;
            GRAFT_CHECK(do_cell(&c, share));
        }
    }
done:
    return status;
}

/* ------------------------------------------------------------------- command */

static graft_status read_policy(graft_env *env, eval_run *run)
{
    graft_status status = GRAFT_OK;
    uint8_t *data = NULL;
    size_t size = 0;
    GRAFT_CHECK(
        graft_known_policy_tariff(env, run->session.device, &run->policy_path, &run->tariff));
    if (run->policy_path == NULL) {
        status = GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                            "rules/policies has no policy of '%s'; --policy names one",
                            run->session.device);
        goto done;
    }
    GRAFT_CHECK(graft_policyfile_read(env, env->life, run->policy_path, &run->policy, NULL));
    GRAFT_CHECK(graft_file_read(env, env->life, run->policy_path, &data, &size));
    run->policy_hash = XXH3_64bits(data, size);
done:
    return status;
}

static graft_status run_eval(graft_env *env, void *choices)
{
    graft_status status = GRAFT_OK;
    eval_run *run = choices;
    const graft_table_work work = {"evaluating", do_model, take_cell, run};
    run->env = env;
    graft_session_complete(env, &run->session);
    GRAFT_CHECK(graft_session_open_ranks(env, &run->session));
    run->session.model = run->session.model == NULL ? closed_models : run->session.model;
    run->path = graft_arena_printf(env->life, "%s/cells.jsonl", run->folder);
    GRAFT_CHECK(graft_table_models(env, run->session.model, &run->models, &run->count));
    GRAFT_CHECK(read_policy(env, run));
    run->plans_path = graft_arena_printf(env->life, "%s/best.plans", run->folder);
    GRAFT_CHECK(graft_cells_read(env, env->life, run->path, &run->cells));
    GRAFT_CHECK(graft_plans_read(env, env->life, run->plans_path, &run->plans));
    if (!run->report_only) {
        GRAFT_CHECK(graft_table_share(env, &run->session, run->models, run->count, &work));
    }
    if (run->page != NULL && graft_ranks_own(env) == 0) {
        GRAFT_CHECK(
            graft_evaluation_report(env, &run->cells, run->session.device, run->page, run->folder));
    }
done:
    return status;
}

static const graft_option options[] = {
    GRAFT_TEXT(eval_run, session.model, "--models", "NAME,...|zoo", NULL,
               "(default: those whose rewrites the costs of intel-xeon-6-167 hold)"),
    GRAFT_SESSION_REST(eval_run, session.),
    GRAFT_TEXT(eval_run, only, "--methods", "NAME,...", NULL, "only these (default: all)"),
    GRAFT_TEXT(eval_run, policy_path, "--policy", "FILE", NULL,
               "the policy for many models (default: the device's in rules/policies)"),
    GRAFT_NUMBER(eval_run, seeds, "--seeds", "N", "5", 1, SEEDS_MOST, "of what is drawn"),
    GRAFT_NUMBER(eval_run, seconds, "--seconds", "N", "60", 1, SECONDS_MOST, "for each search"),
    GRAFT_TEXT(eval_run, folder, "--out", "FOLDER", "out/eval", "where results are kept"),
    GRAFT_TEXT(eval_run, page, "--page", "FILE", NULL,
               "write a page of tables, and the data of its plots into the folder"),
    GRAFT_FLAG(eval_run, report_only, "--report-only",
               "run nothing, write the page of what is there"),
    GRAFT_FLAG(eval_run, again, "--again", "also what has been done"),
};

const graft_command graft_command_eval = {
    .name = "eval",
    .summary = "compare policies and searches on models, and write a page of it",
    .forms = "graft eval [options]",
    GRAFT_TAKES(eval_run, options),
    .run = run_eval,
    .shares = true,
};

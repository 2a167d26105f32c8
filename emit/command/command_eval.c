/* command_eval.c - `graft eval`: every method on every model (see evaluation.h). What came out is
 * made into a page by evaluation.py. */
#include "emit/bench/evaluation.h"
#include "emit/command/command.h"
#include "emit/command/known_policy.h"
#include "emit/command/session_options.h"
#include "graph/base/file.h"
#include "graph/base/log.h"
#include "graph/base/ranks.h"
#include "graph/rule/policyfile.h"

#include <string.h>
#include <xxhash.h>

enum { SEEDS_MOST = 100, SECONDS_MOST = 100000, ROUNDS_MOST = 10000 };

/* All that their rewrites reach is recorded of one device, see rules/costs/README.md. */
static const char closed_models[] =
    "autoencoder,dscnn,resnet8,squeezenet,resnet18,mobilenetv1,mobilenetv2,resnet50,resnext50,"
    "inceptionv3,nasnet,bert,vit,nasrnn,lstm";

typedef struct {
    graft_session_options session;
    const char *only; /* Methods, commas between; NULL: all. */
    bool wanted[GRAFT_METHODS];
    const char *folder;
    const char *policy_path; /* NULL: the device's, in rules/policies. */
    const char *folds; /* A folder of policies, FAMILY/policy.graft without that family; or NULL. */
    const char *check; /* Plans that are replayed instead. */
    uint64_t seeds;
    graft_table_model *models;
    uint32_t count;
    graft_evaluation all;
} eval_run;

/* A cell on its way to the first rank: behind it are the text of its rules, the device's name and
 * the steps of the plan. */
typedef struct {
    graft_cell cell;
    graft_known_plan plan; /* If it has one. */
    uint32_t method;
    bool has_plan;
    bool is_known; /* By an earlier run. */
} found_cell;

static graft_status say_cell(const graft_cell_run *c, graft_share *share)
{
    const graft_cell *cell = &c->cell;
    const char *device = graft_device_name(c->session->device);
    graft_buffer piece = {.arena = c->env->unit};
    found_cell found;
    memset(&found, 0, sizeof found);
    found.cell = *cell;
    found.method = (uint32_t)(c->method - graft_methods);
    found.is_known = c->is_known;
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
    plan.steps = GRAFT_COPY(run->all.env->life, (const graft_action *)steps, plan.step_count);
    return graft_plans_keep(run->all.env, run->all.env->life, &run->all.plans, &plan,
                            run->all.plans_path);
}

/* Puts a cell into the files, and prints it. */
static graft_status take_cell(graft_env *env, void *context, uint32_t model, const void *piece,
                              size_t bytes)
{
    eval_run *run = context;
    found_cell found;
    const char *rules = (const char *)piece + sizeof found;
    const char *device = rules + strlen(rules) + 1;
    (void)bytes;
    memcpy(&found, piece, sizeof found);
    graft_cell *cell = &found.cell;
    cell->model = run->models[model].name;
    cell->family = run->models[model].family;
    cell->method = graft_methods[found.method].name;
    cell->rules = graft_arena_strdup(env->life, rules);
    graft_cells_put(env->life, &run->all.cells, cell);
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
        GRAFT_PASS(keep_plan(run, &found, device, device + strlen(device) + 1));
    }
    GRAFT_PASS(graft_cells_write(env, &run->all.cells, run->all.path));
    graft_log(env, 1, "%s, %s, seed %u: %.2f %%, %llu graphs, %.1f s", cell->model, cell->method,
              cell->seed, 100.0 * cell->cost_ns / cell->first_ns, (unsigned long long)cell->graphs,
              cell->seconds);
    return GRAFT_OK;
}

/* Which methods are asked for: all, when none is named. */
static graft_status choose_methods(graft_env *env, eval_run *run)
{
    uint32_t named = 0;
    const char **names =
        run->only == NULL ? NULL : graft_options_names(env->life, run->only, &named);
    memset(run->wanted, run->only == NULL, sizeof run->wanted);
    for (uint32_t i = 0; i < named; i++) {
        uint32_t m = 0;
        while (m < GRAFT_METHODS && strcmp(graft_methods[m].name, names[i]) != 0) {
            m++;
        }
        if (m == GRAFT_METHODS) {
            graft_buffer known = {.arena = env->scratch};
            for (m = 0; m < GRAFT_METHODS; m++) {
                graft_buffer_printf(&known, "%s%s", m == 0 ? "" : ", ", graft_methods[m].name);
            }
            return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "--methods: no method '%s': it is none of %s",
                              names[i], known.data);
        }
        run->wanted[m] = true;
    }
    return GRAFT_OK;
}

static graft_status read_policy(graft_env *env, const char *path, graft_policy *policy,
                                uint64_t *hash)
{
    uint8_t *data = NULL;
    size_t size = 0;
    GRAFT_PASS(graft_policyfile_read(env, env->life, path, policy, NULL));
    GRAFT_PASS(graft_file_read(env, env->life, path, &data, &size));
    *hash = XXH3_64bits(data, size);
    return GRAFT_OK;
}

static graft_status set_price(graft_env *env, const eval_run *run, graft_session *session,
                              graft_known_price *known)
{
    const graft_price any = session->environment.options.price;
    GRAFT_PASS(graft_known_price_set(env, session, known));
    if (run->all.estimates) {
        session->environment.options.price = any;
        GRAFT_PASS(graft_environment_reprice(env, &session->environment));
    }
    return GRAFT_OK;
}

static graft_status do_model(graft_env *env, void *context, graft_session *session, uint32_t model,
                             graft_share *share)
{
    eval_run *run = context;
    graft_known_price price;
    GRAFT_PASS(set_price(env, run, session, &price));
    if (run->folds != NULL) {
        const char *fold = graft_arena_printf(env->life, "%s/%s/policy.graft", run->folds,
                                              run->models[model].family);
        GRAFT_PASS(read_policy(env, fold, &run->all.unseen, &run->all.unseen_hash));
    }
    for (uint32_t m = 0; m < GRAFT_METHODS; m++) {
        const graft_method *method = &graft_methods[m];
        const uint32_t seeds = method->drawn ? (uint32_t)run->seeds : 1;
        if (method->kind == GRAFT_METHOD_UNSEEN && run->folds == NULL) {
            continue;
        }
        for (uint32_t seed = 1; seed <= seeds && run->wanted[m]; seed++) {
            GRAFT_SCOPED(env->unit);
            graft_cell_run c = {
                .env = env, .evaluation = &run->all, .session = session, .method = method};
            c.cell.model = run->models[model].name;
            c.cell.family = run->models[model].family;
            c.cell.seed = method->drawn ? seed : 0;
            GRAFT_PASS(graft_evaluation_cell(&c));
            GRAFT_PASS(say_cell(&c, share));
        }
    }
    return GRAFT_OK;
}

/* ------------------------------------------------------------------- checking */

static graft_status check_plan(graft_env *env, void *context, graft_session *session,
                               uint32_t number)
{
    const eval_run *run = context;
    const graft_known_plan *plan = &run->all.plans.items[number];
    const graft_environment *environment = &session->environment;
    double ns = 0.0;
    uint32_t estimates = 0;
    graft_known_price price;
    GRAFT_PASS(set_price(env, run, session, &price));
    if (plan->rules != graft_plans_rules(session) || plan->costs != graft_plans_costs(session)) {
        return GRAFT_FAIL(env, GRAFT_REFUTED, "the plan is of other rules or costs");
    }
    GRAFT_PASS(graft_plan_replay(env, &session->environment, plan->steps, plan->step_count));
    GRAFT_PASS(graft_known_price_count(env, session, &environment->state, &ns, &estimates));
    if (ns != plan->cost_ns || environment->first_ns != plan->first_ns ||
        estimates != plan->estimates || price.first_estimates != plan->first_estimates) {
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

static graft_status check_plans(graft_env *env, eval_run *run)
{
    GRAFT_PASS(graft_file_check_readable(env, run->check));
    GRAFT_PASS(graft_plans_read(env, env->life, run->check, &run->all.plans));
    run->count = run->all.plans.count;
    run->models = GRAFT_NEW(env->life, graft_table_model, run->count);
    for (uint32_t i = 0; i < run->count; i++) {
        run->models[i].name = run->all.plans.items[i].model;
    }
    GRAFT_PASS_IN(env,
                  graft_table_each(env, &run->session, run->models, run->count, check_plan, run),
                  "%s", run->check);
    return GRAFT_OK;
}

/* ------------------------------------------------------------------- command */

/* Whether a method that is asked for begins with the policy. */
static bool needs_policy(const eval_run *run)
{
    bool needs = false;
    for (uint32_t m = 0; m < GRAFT_METHODS; m++) {
        const graft_method_kind kind = graft_methods[m].kind;
        needs = needs ||
                (run->wanted[m] && (kind == GRAFT_METHOD_POLICY || kind == GRAFT_METHOD_REFINED ||
                                    kind == GRAFT_METHOD_SAMPLED));
    }
    return needs;
}

static graft_status find_policy(graft_env *env, eval_run *run)
{
    GRAFT_PASS(
        graft_known_policy_tariff(env, run->session.device, &run->policy_path, &run->all.tariff));
    if (run->policy_path != NULL) {
        return read_policy(env, run->policy_path, &run->all.policy, &run->all.policy_hash);
    }
    return needs_policy(run)
               ? GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                            "rules/policies has no policy of '%s'; --policy names one",
                            run->session.device)
               : GRAFT_OK;
}

static graft_status run_eval(graft_env *env, void *choices)
{
    eval_run *run = choices;
    const graft_table_work work = {"evaluating", do_model, take_cell, run};
    run->all.env = env;
    graft_session_complete(env, &run->session);
    GRAFT_PASS(graft_session_open_ranks(env, &run->session));
    run->session.level = true;
    run->session.estimating = true; /* Costs are those that are recorded, also where one could. */
    if (run->check != NULL) {
        return check_plans(env, run);
    }
    run->session.model = run->session.model == NULL ? closed_models : run->session.model;
    run->all.path = graft_arena_printf(env->life, "%s/cells.jsonl", run->folder);
    GRAFT_PASS(graft_table_models(env, run->session.model, &run->models, &run->count));
    GRAFT_PASS(choose_methods(env, run));
    GRAFT_PASS(find_policy(env, run));
    run->all.plans_path = run->all.plans_path != NULL
                              ? run->all.plans_path
                              : graft_arena_printf(env->life, "%s/best.plans", run->folder);
    GRAFT_PASS(graft_cells_read(env, env->life, run->all.path, &run->all.cells));
    GRAFT_PASS(graft_plans_read(env, env->life, run->all.plans_path, &run->all.plans));
    return graft_table_share(env, &run->session, run->models, run->count, &work);
}

static const graft_option options[] = {
    GRAFT_TEXT(eval_run, session.model, "--models", "NAME,...|zoo", NULL,
               "(default: those whose rewrites recorded costs hold)"),
    GRAFT_SESSION_REST(eval_run, session.),
    GRAFT_TEXT(eval_run, only, "--methods", "NAME,...", NULL, "only these (default: all)"),
    GRAFT_TEXT(eval_run, policy_path, "--policy", "FILE", NULL,
               "the policy for many models (default: the device's in rules/policies)"),
    GRAFT_TEXT(eval_run, folds, "--folds", "FOLDER", NULL,
               "of policies that were made without a family each (graft policy --hold-out each)"),
    GRAFT_NUMBER(eval_run, all.rounds, "--rounds", "N", "0", 0, ROUNDS_MOST,
                 "in which graphs take turns with the one as given, on a device that is here"),
    GRAFT_NUMBER(eval_run, seeds, "--seeds", "N", "5", 1, SEEDS_MOST, "of what is drawn"),
    GRAFT_NUMBER(eval_run, all.seconds, "--seconds", "N", "60", 1, SECONDS_MOST, "for each search"),
    GRAFT_TEXT(eval_run, folder, "--out", "FOLDER", "out/eval", "where results are kept"),
    GRAFT_TEXT(eval_run, all.plans_path, "--plans", "FILE", NULL,
               "where the best plans are kept (default: best.plans in the folder)"),
    GRAFT_TEXT(eval_run, check, "--check", "FILE", NULL, "replay the plans of a file instead"),
    GRAFT_FLAG(eval_run, all.estimates, "--estimates",
               "also graphs with more estimated costs than the one given"),
    GRAFT_FLAG(eval_run, all.again, "--again", "also what has been done"),
};

const graft_command graft_command_eval = {
    .name = "eval",
    .summary = "compare policies and searches on models",
    .forms = "graft eval [options]",
    .failed = "with --check: a plan does not cost what the file says",
    GRAFT_TAKES(eval_run, options),
    .run = run_eval,
    .shares = true,
};

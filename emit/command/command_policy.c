/* command_policy.c - `graft policy`: from a model to its policy header. graft_command_policy lists
 * the stages. */
#include "emit/command/command.h"
#include "emit/command/contents.h"
#include "emit/command/known_policy.h"
#include "emit/command/plans.h"
#include "emit/command/searches.h"
#include "emit/command/session_options.h"
#include "emit/command/share.h"
#include "emit/command/shown_policy.h"
#include "emit/header/compile.h"
#include "emit/header/fit.h"
#include "emit/header/graphtable.h"
#include "emit/header/header.h"
#include "emit/header/identifier.h"
#include "emit/policy/dreamt.h"
#include "emit/policy/generalist.h"
#include "emit/policy/refined.h"
#include "graph/base/file.h"
#include "graph/base/log.h"
#include "graph/base/ranks.h"
#include "graph/rule/policyfile.h"

#include <stdio.h>
#include <string.h>

/* Of --max-flash: what a few rules and costs take, and what no firmware has. */
enum { FLASH_LEAST = 4 << 10, FLASH_MOST = 16 << 20 };

/* One run of the command. */
typedef struct policy_run {
    graft_env *env;
    graft_session_options options;
    const char *out;
    const char *name; /* Of policy and graph in C, or NULL. */
    bool amalgamate;
    uint32_t flash;         /* 0: not given. */
    uint64_t ram;           /* Likewise. */
    const char *pointers;   /* Their bits, of the processor that it is for. */
    const char *held_out;   /* A family of models, or NULL. */
    const char *measured;   /* A database, or NULL. */
    const char *agent_name; /* What one model's policy is made by. */
    graft_session session;
    graft_policy policy;
    graft_known_price known; /* On a device that is not here. */
    graft_results results;
    const char *dreams; /* How faithful they are, as JSON; NULL: there are none. */
} policy_run;

static const char *path_in(const policy_run *run, const char *name)
{
    return graft_arena_printf(run->env->life, "%s/%s", run->out, name);
}

/* ---------------------------------------------------------------- stages */

/* Adds a row, and counts the estimates that its graph's cost rests on. */
static graft_status add_search(policy_run *run, const char *method, const graft_plan_found *found)
{
    graft_env *env = run->env;
    graft_session *session = &run->session;
    const graft_state *state = &session->environment.state;
    double ns = 0.0; /* The plan says it. */
    uint32_t estimates = 0;
    GRAFT_PASS_IN(env,
                  graft_plan_replay(env, &session->environment, found->steps, found->step_count),
                  "while replaying the plan of %s", method);
    GRAFT_PASS(graft_known_price_count(env, session, state, &ns, &estimates));
    graft_result *row = graft_results_add(&run->results, method, "search");
    row->cost_ns = found->cost_ns;
    row->interactions = found->evaluations;
    row->seconds = found->seconds;
    row->step_count = found->step_count;
    row->steps = found->steps;
    row->estimated = estimates;
    return GRAFT_OK;
}

/* The searches that a policy is compared with: independent of each other, so that ranks share them.
 */
typedef struct {
    policy_run *run;
    graft_search_choice choices[4];
    uint32_t count;
} baselines;

static void add_baseline(baselines *b, bool wanted, const char *name)
{
    if (wanted) {
        b->choices[b->count++] = (graft_search_choice){.name = name};
    }
}

static graft_status find_baseline(graft_env *env, void *context, uint32_t item, graft_share *share)
{
    const baselines *b = context;
    graft_session *session = &b->run->session;
    graft_plan_found found;
    graft_buffer piece = {.arena = env->life};
    GRAFT_PASS(graft_search_run(env, env->life, &session->environment, &session->settings,
                                &b->choices[item], &found));
    graft_plan_pack(&found, &piece);
    return graft_share_say(share, piece.data, piece.size);
}

static graft_status take_baseline(graft_env *env, void *context, uint32_t item, const void *piece,
                                  size_t bytes)
{
    const baselines *b = context;
    const graft_agent_settings *settings = &b->run->session.settings;
    const char *name = b->choices[item].name;
    const int64_t size = strcmp(name, "backtracking") == 0 ? settings->search_dequeues
                         : strcmp(name, "beam") == 0       ? settings->search_beam_width
                                                           : 0;
    graft_plan_found found;
    (void)bytes;
    graft_plan_unpack(env->life, piece, &found);
    return add_search(
        b->run, size > 0 ? graft_arena_printf(env->life, "%s %u", name, (uint32_t)size) : name,
        &found);
}

static graft_status run_baselines(policy_run *run)
{
    baselines b = {.run = run};
    const graft_share_work work = {"baselines", "searches", find_baseline, take_baseline, &b};
    const graft_plan_found nothing = {.cost_ns = run->session.environment.first_ns};
    GRAFT_PASS(add_search(run, "before", &nothing));
    run->results.rows[0].how = "as given";
    add_baseline(&b, true, "random");
    add_baseline(&b, true, "greedy");
    add_baseline(&b, run->session.settings.search_dequeues > 0, "backtracking");
    add_baseline(&b, run->session.settings.search_beam_width > 0, "beam");
    return graft_share_run(run->env, b.count, &work);
}

/* The cheapest plan of the table becomes the recorded plan for this graph. */
static graft_status record_plan(policy_run *run)
{
    graft_env *env = run->env;
    const graft_result *best = &run->results.rows[0];
    for (uint32_t i = 1; i < run->results.count; i++) {
        if (run->results.rows[i].cost_ns < best->cost_ns) {
            best = &run->results.rows[i];
        }
    }
    if (best->step_count == 0) {
        return GRAFT_OK;
    }
    graft_plan_step *steps = GRAFT_NEW(env->unit, graft_plan_step, best->step_count);
    graft_recorded_plan plan = {.steps = steps, .step_count = (uint16_t)best->step_count};
    for (uint32_t i = 0; i < best->step_count; i++) {
        steps[i] = (graft_plan_step){best->steps[i].xfer, best->steps[i].location};
    }
    GRAFT_PASS_IN(env,
                  graft_plan_record(env, env->life, &run->policy,
                                    &run->session.environment.first.graph, &plan),
                  "while recording the plan of %s", best->method);
    GRAFT_PASS(graft_policy_set_plans(env, env->life, &plan, 1, &run->policy));
    graft_log(env, 1, "recorded plan: %u steps, found by %s", best->step_count, best->method);
    return GRAFT_OK;
}

/* The policy that ships with every aid, its plan recorded. */
static graft_status evaluate_shipped(policy_run *run)
{
    const graft_policy_run shipped = {.method = "policy",
                                      .how = "all, recorded plan",
                                      .use_plans = true,
                                      .simplify = true,
                                      .guard = true};
    GRAFT_PASS(record_plan(run));
    return graft_policy_evaluate(run->env, &run->session, &run->policy, &shipped, &run->results);
}

/* The policy with everything else switched off, then with each aid. */
static graft_status evaluate_alone(policy_run *run, uint64_t interactions)
{
    const graft_policy_run alone[] = {
        {.method = "policy",      .how = "alone"  },
        { .method = "policy",    .how = "with guard",    .guard = true},
        { .method = "policy", .how = "with simplify", .simplify = true},
    };
    for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++) {
        GRAFT_PASS(
            graft_policy_evaluate(run->env, &run->session, &run->policy, &alone[i], &run->results));
        run->results.rows[run->results.count - 1].interactions = interactions;
    }
    return GRAFT_OK;
}

/* Of the model, whatever the policy: `rule_count` may be all that is known of it. */
static graft_fit_options fit_options(const policy_run *run, const graft_policy *policy)
{
    return (graft_fit_options){.model = run->options.model,
                               .policy = policy,
                               .budget = run->ram,
                               .pointer_bytes = strcmp(run->pointers, "64") == 0 ? 8 : 4};
}

static graft_status write_files(policy_run *run)
{
    graft_env *env = run->env;
    const graft_graph *graph = &run->session.environment.first.graph;
    const graft_fit_options fit_given = fit_options(run, &run->policy);
    graft_fit fit;
    graft_header_sizes sizes;
    const char *name = run->name != NULL ? run->name : "model";
    GRAFT_PASS(graft_fit_make(env, graph, &fit_given, &fit));
    const graft_header_options header = {.name = name,
                                         .generator = "graft",
                                         .rule_names = run->session.xfers.names,
                                         .amalgamate = run->amalgamate,
                                         .small = fit.small};
    GRAFT_PASS(
        graft_header_write(env, &run->policy, &header, path_in(run, "graft_policy.h"), &sizes));
    GRAFT_PASS(graft_policyfile_write(env, &run->policy, run->session.xfers.names,
                                      path_in(run, "policy.graft")));
    GRAFT_PASS(graft_graphtable_write(env, graph, name, &fit, path_in(run, "graft_graph.h")));
    GRAFT_PASS(graft_results_write(env, &run->results, path_in(run, "results.json")));
    (void)printf("%s: %zu bytes of rules, %zu of network, %zu of plans\n",
                 path_in(run, "graft_policy.h"), sizes.rules, sizes.network, sizes.plans);
    (void)printf("%s: %zu bytes of RAM with pointers of %s bits\n", path_in(run, "graft_graph.h"),
                 fit.ram.total, run->pointers);
    graft_results_print(&run->results, stdout);
    return GRAFT_OK;
}

/* The table that refining starts with: of the device's policy for many models, else of one that is
 * made of this model alone. */
static graft_status find_start(policy_run *run, graft_tariff *start, const char **from,
                               uint64_t *priced)
{
    graft_env *env = run->env;
    const char *device = graft_device_name(run->session.device);
    *priced = 0;
    *from = graft_known_policy_path(env, device);
    if (*from == NULL) {
        graft_session_options of_all = run->options;
        of_all.survey = false;
        const graft_generalist_options options = {.session = of_all,
                                                  .out = path_in(run, "start"),
                                                  .flash = GRAFT_GENERALIST_FLASH,
                                                  .priced = priced};
        graft_log(env, 1, "rules/policies has none of '%s': one is made of the model itself",
                  device);
        GRAFT_PASS(graft_cost_save(env, run->session.cost));
        GRAFT_PASS(graft_generalist_make(env, &options));
        *from = path_in(run, "start/policy.graft");
    }
    if (graft_ranks_own(env) == 0) {
        GRAFT_PASS(graft_known_policy_tariff(env, device, from, start));
    }
    return GRAFT_OK;
}

static double last_ns(const policy_run *run)
{
    return run->results.rows[run->results.count - 1].cost_ns;
}

/* Trains the agent that dreams on top of the table; what is cheaper on the model ships. */
static graft_status dream(policy_run *run, const char **shipped)
{
    graft_env *env = run->env;
    graft_dreamt_policy dreamt;
    const graft_policy_run alone = {.method = "dreamt", .how = "alone", .guard = true};
    GRAFT_PASS(graft_dreamt_make(env, &run->session, run->policy.tariff,
                                 path_in(run, "checkpoint.bin"), &dreamt));
    (void)graft_foresight_print(&dreamt.report, stdout);
    run->dreams =
        graft_dreamt_line(env, &dreamt); /* How it was trained, how faithful dreams are. */
    GRAFT_PASS(graft_file_write(env, path_in(run, "agent.json"), run->dreams, strlen(run->dreams)));
    GRAFT_PASS(graft_policy_evaluate(env, &run->session, &run->policy, &alone, &run->results));
    run->results.rows[run->results.count - 1].method = "table";
    const double table_ns = last_ns(run);
    GRAFT_PASS(graft_policy_evaluate(env, &run->session, &dreamt.policy, &alone, &run->results));
    run->results.rows[run->results.count - 1].interactions = dreamt.interactions;
    if (last_ns(run) < table_ns) {
        const char *metadata = run->policy.metadata;
        run->policy = dreamt.policy;
        run->policy.metadata = metadata;
        *shipped = "dreamt";
    }
    return GRAFT_OK;
}

/* One model's policy: a table of costs that is refined, and, if asked for, an agent on top of
 * it. */
static graft_status make_policy(policy_run *run)
{
    graft_env *env = run->env;
    graft_tariff start;
    graft_refined refined;
    const char *from = NULL;
    const char *shipped = NULL;
    uint64_t priced = 0;
    uint32_t exact_count = 0;
    GRAFT_PASS(run_baselines(run));
    GRAFT_PASS(find_start(run, &start, &from, &priced));
    if (graft_ranks_own(env) > 0) {
        return GRAFT_OK; /* What follows goes step by step: it is the first rank's. */
    }
    const graft_refined_start begin = {&start, priced,
                                       (uint64_t)run->session.settings.environment_seed};
    GRAFT_PASS(graft_refined_make(env, &run->session, &begin, &refined, &run->results));
    run->policy = *refined.best;
    shipped = refined.best == &refined.refined ? "refined" : "general";
    if (strcmp(run->agent_name, "dream") == 0) {
        GRAFT_PASS(dream(run, &shipped));
    }
    run->policy.metadata = graft_arena_printf(
        env->life,
        "{\"model\": \"%s\", \"device\": \"%s\", \"from\": \"%s\", \"graphs\": %llu, "
        "\"policy\": \"%s\", \"rules\": %u}",
        run->options.model, graft_device_name(run->session.device), from,
        (unsigned long long)refined.graphs, shipped, run->session.xfers.count);
    const uint64_t *exact = graft_ruleset_exact(&run->session.rules, env->life, &exact_count);
    graft_policy_mark_exact(env->life, exact, exact_count, &run->policy);
    graft_log(env, 1, "what ships is the %s one", shipped);
    GRAFT_PASS(evaluate_alone(run, refined.graphs));
    GRAFT_PASS(evaluate_shipped(run));
    return write_files(run);
}

/* Shows what the policy that was written makes of the model. */
static graft_status show_policy(policy_run *run)
{
    graft_env *env = run->env;
    const graft_shown_policy shown = {.options = &run->options,
                                      .policy = path_in(run, "policy.graft"),
                                      .out = path_in(run, "report.onnx"),
                                      .page = path_in(run, "report.html"),
                                      .methods = &run->results,
                                      .dreams = run->dreams};
    graft_status status = graft_shown_policy_write(env, &shown);
    if (status == GRAFT_UNSUPPORTED) {
        graft_log(env, 1, "no page is written: %s", env->message);
        graft_env_clear(env);
        status = GRAFT_OK;
    }
    return status;
}

static graft_status make_one(policy_run *run)
{
    graft_status status = GRAFT_OK;
    run->options.survey = true;
    run->options.level = true; /* What is known; what is measured on the way stays as it is. */
    GRAFT_CHECK(graft_session_open(run->env, &run->options, &run->session));
    if (run->session.model->has_halves) { /* Its header of the graph would be refused at the end. */
        status = GRAFT_FAIL(run->env, GRAFT_UNSUPPORTED,
                            "%s: has float16 or bfloat16: train on the model in binary32, whose "
                            "policy decides alike on this one",
                            run->options.model);
        goto done;
    }
    /* What no policy with these rules could fit into is refused before one is trained. */
    const graft_policy least = {.rule_count = (uint16_t)run->session.xfers.count};
    const graft_fit_options options = fit_options(run, &least);
    GRAFT_CHECK(graft_fit_foresee(run->env, &run->session.environment.first.graph, &options));
    if (!graft_device_present(run->session.device)) { /* What is estimated stays so: no gain. */
        GRAFT_CHECK(graft_known_price_set(run->env, &run->session, &run->known));
    }
    GRAFT_CHECK(make_policy(run));
done:
    status = graft_session_finish(run->env, &run->session, status);
    return status == GRAFT_OK && graft_ranks_own(run->env) == 0 ? show_policy(run) : status;
}

static graft_status run_policy(graft_env *env, void *choices)
{
    policy_run *run = choices;
    run->env = env;
    graft_identifier name;
    graft_session_complete(env, &run->options);
    GRAFT_PASS(graft_identifier_make(env, run->name != NULL ? run->name : "model", &name));
    GRAFT_PASS(graft_file_check(env, path_in(run, "graft_policy.h")));
    GRAFT_PASS(graft_session_open_ranks(env, &run->options));
    if (graft_generalist_means(run->options.model)) {
        if (run->ram > 0 || strcmp(run->pointers, "32") != 0) {
            return GRAFT_FAIL(
                env, GRAFT_BAD_INPUT,
                "%s is for a policy of one model: of several, graft emit-graph takes it for each",
                run->ram > 0 ? "--max-ram" : "--pointers");
        }
        if (strcmp(run->agent_name, "table") != 0) {
            return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "--agent %s is for a policy of one model",
                              run->agent_name);
        }
        const graft_generalist_options options = {.session = run->options,
                                                  .out = run->out,
                                                  .name = run->name,
                                                  .held_out = run->held_out,
                                                  .measured = run->measured,
                                                  .flash = run->flash > 0 ? run->flash
                                                                          : GRAFT_GENERALIST_FLASH,
                                                  .amalgamate = run->amalgamate};
        return graft_generalist_make(env, &options);
    }
    if (run->flash > 0 || run->held_out != NULL || run->measured != NULL) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                          "--max-flash, --hold-out and --measured are for a policy of several "
                          "models");
    }
    return make_one(run);
}

static const graft_option options[] = {
    GRAFT_SESSION_OPTIONS(policy_run, options.),
    GRAFT_NEEDED(policy_run, out, "--out", "FOLDER", "for the header and all that belongs to it"),
    GRAFT_TEXT(policy_run, name, "--name", "NAME", NULL,
               "in C: graft_policy_NAME (default: model, or generalist, of several)"),
    GRAFT_FLAG(policy_run, amalgamate, "--amalgamate", "one header that holds the engine too"),
    GRAFT_NUMBER(policy_run, flash, "--max-flash", "BYTES", NULL, FLASH_LEAST, FLASH_MOST,
                 "of rules and costs, of several models"),
    GRAFT_NUMBER(
        policy_run, ram, "--max-ram", "BYTES", NULL, GRAFT_FIT_LEAST, GRAFT_FIT_MOST,
        "of graph and workspace, of one model: what loses nothing is lowered to fit, else it "
        "is refused"),
    GRAFT_CHOICE(policy_run, pointers, "--pointers", "BITS", "32|64", "32",
                 "of the processor that --max-ram is for"),
    GRAFT_CHOICE(policy_run, agent_name, "--agent", "NAME", "table|dream", "table",
                 "of one model: a refined table of costs, or an agent that dreams on top of it"),
    GRAFT_TEXT(
        policy_run, held_out, "--hold-out", "FAMILY", NULL,
        "learn nothing from these of several models: recurrent, transformer...; each: a policy "
        "of all, then one without each family"),
    GRAFT_TEXT(
        policy_run, measured, "--measured", "FILE", NULL,
        "of several models: operators at random sizes, from which what has no row is guessed "
        "(default: the device's in rules/samples)"),
};

const graft_command graft_command_policy = {
    .name = "policy",
    .summary = "train a policy for a model, or one for many, and write its header",
    .forms = "graft policy MODEL --out FOLDER\ngraft policy zoo|MODEL,MODEL... --out FOLDER",
    GRAFT_TAKES(policy_run, options),
    .run = run_policy,
    .shares = true,
};

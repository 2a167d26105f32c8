/* command_optimize.c - `graft optimize`: a model in, a rewritten model out. */
#include "emit/command.h"
#include "emit/refine.h"
#include "emit/session_options.h"
#include "graph/equal.h"
#include "graph/json.h"
#include "graph/log.h"
#include "graph/policyfile.h"
#include "train/search.h"

#include <string.h>

typedef struct optimize_run {
    graft_session_options options;
    const char *out;
    const char *search;
    const char *dequeues;
    const char *width;
    const char *passes; /* Searches, each with costs that the one before has corrected. */
    const char *policy; /* Instead of a search. */
    bool steps;         /* Print each rewrite. */
    graft_session session;
    graft_plan_found found;
} optimize_run;

/* A number that the command line may give instead of the settings. */
static graft_status read_limit(graft_env *env, const char *option, const char *text, double setting,
                               uint32_t *limit)
{
    enum { LIMIT_MOST = 10000000 };
    uint64_t number = (uint64_t)setting;
    graft_status status = GRAFT_OK;
    if (text != NULL) {
        status = graft_options_number(env, option, text, 1, LIMIT_MOST, &number);
    }
    *limit = (uint32_t)number;
    return status;
}

static graft_status search_random(graft_env *env, optimize_run *run)
{
    const graft_agent_settings *settings = &run->session.settings;
    return graft_search_random(env, env->life, &run->session.environment,
                               (uint32_t)settings->search_random_episodes,
                               (uint64_t)settings->environment_seed, &run->found);
}

static graft_status search_greedy(graft_env *env, optimize_run *run)
{
    return graft_search_greedy(env, env->life, &run->session.environment, &run->found);
}

static graft_status search_backtracking(graft_env *env, optimize_run *run)
{
    const graft_agent_settings *settings = &run->session.settings;
    graft_backtracking_options options = {.alpha = settings->search_alpha};
    graft_status status = read_limit(env, "--dequeues", run->dequeues,
                                     (double)settings->search_dequeues, &options.dequeue_limit);
    return status != GRAFT_OK ? status
                              : graft_search_backtracking(env, env->life, &run->session.environment,
                                                          &options, &run->found);
}

static graft_status search_beam(graft_env *env, optimize_run *run)
{
    const graft_agent_settings *settings = &run->session.settings;
    graft_beam_options options = {.patience = (uint32_t)settings->search_beam_patience};
    graft_status status =
        read_limit(env, "--width", run->width, (double)settings->search_beam_width, &options.width);
    return status != GRAFT_OK ? status
                              : graft_search_beam(env, env->life, &run->session.environment,
                                                  &options, &run->found);
}

static graft_status search(graft_env *env, optimize_run *run)
{
    static const struct {
        const char *name;
        graft_status (*search)(graft_env *env, optimize_run *run);
    } searches[] = {
        {"greedy",       search_greedy      },
        {"backtracking", search_backtracking},
        {"beam",         search_beam        },
        {"random",       search_random      },
    };
    for (size_t i = 0; i < sizeof(searches) / sizeof(searches[0]); i++) {
        if (strcmp(run->search, searches[i].name) == 0) {
            return searches[i].search(env, run);
        }
    }
    return GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                      "--search is greedy, backtracking, beam or random, not '%s'", run->search);
}

static graft_status search_once(graft_env *env, void *context, graft_plan_found *found)
{
    optimize_run *run = context;
    graft_status status = search(env, run);
    if (status == GRAFT_OK) {
        *found = run->found;
    }
    return status;
}

/* Searches as often as the command line says. */
static graft_status search_passes(graft_env *env, optimize_run *run)
{
    enum { ROUNDS = 21 };
    graft_status status = GRAFT_OK;
    uint64_t passes = 1;
    graft_refine_report report;
    if (run->passes == NULL) {
        return search(env, run);
    }
    GRAFT_CHECK(
        graft_options_number(env, "--passes", run->passes, 1, GRAFT_REFINE_PASSES_MOST, &passes));
    const graft_refine_options options = {
        .search = search_once, .context = run, .passes = (uint32_t)passes, .rounds = ROUNDS};
    GRAFT_CHECK(graft_refine(env, &run->session, &options, &run->found, &report));
done:
    return status;
}

/* Lets a trained policy rewrite the model: guarded, simplified first, without a plan. */
static graft_status follow_policy(graft_env *env, optimize_run *run)
{
    graft_status status = GRAFT_OK;
    graft_environment *environment = &run->session.environment;
    const graft_graph *first = &environment->first.graph;
    uint32_t step_limit = environment->options.step_limit;
    const graft_optimize_options options = {.weight_bytes_limit =
                                                environment->options.apply.weight_bytes_limit,
                                            .step_limit = step_limit,
                                            .simplify = true,
                                            .guard = true};
    graft_policy policy;
    graft_state state;
    graft_report report = {.decisions = GRAFT_NEW(env->life, graft_decision, step_limit),
                           .decision_limit = step_limit};
    GRAFT_CHECK(graft_policyfile_read(env, env->life, run->policy, &policy));
    graft_state_open(env->life, &first->limits, &state);
    GRAFT_CHECK(graft_state_set(env, &state, first));
    size_t bytes = graft_optimize_workspace_bytes(&policy, &first->limits, step_limit);
    uint64_t start_ns = graft_clock_ns();
    status = graft_optimize(&state.graph, &policy, &options, graft_arena_alloc(env->life, bytes),
                            bytes, &report);
    if (status != GRAFT_OK) {
        status = GRAFT_FAIL(env, status, "%s: the policy failed on the model: %s", run->policy,
                            graft_status_name(status));
        goto done;
    }
    run->found.seconds = (double)(graft_clock_ns() - start_ns) / 1e9;
    run->found.step_count = report.step_count;
    GRAFT_CHECK(graft_state_set(env, &environment->state, &state.graph));
    GRAFT_CHECK(environment->options.price.cost_ns(env, environment->options.price.context,
                                                   &environment->state.graph,
                                                   &environment->state.order, &run->found.cost_ns));
done:
    return status;
}

/* A rewrite a line: the rule, and what it is worth where it stands. */
static void print_steps(graft_env *env, const optimize_run *run, const double *costs_ns)
{
    const graft_environment *environment = &run->session.environment;
    double before_ns = environment->first_ns;
    for (uint32_t i = 0; i < run->found.step_count; i++) {
        const char *rule = environment->xfers->names[run->found.steps[i].xfer];
        if (env->json) {
            graft_json json;
            graft_json_begin(&json, env->scratch);
            graft_json_integer(&json, "step", i);
            graft_json_string(&json, "rule", rule);
            graft_json_number(&json, "cost_ns_after", costs_ns[i]);
            graft_json_end(&json, stdout);
        } else {
            (void)printf("%4u  %9.3f us  %+9.3f us  %s\n", i + 1, costs_ns[i] / 1e3,
                         (costs_ns[i] - before_ns) / 1e3, rule);
        }
        before_ns = costs_ns[i];
    }
}

/* Leaves the rewritten graph as the environment's state. */
static graft_status rewrite(graft_env *env, optimize_run *run)
{
    graft_status status = GRAFT_OK;
    if (run->policy != NULL && run->steps) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "--steps needs a search, not a policy");
    }
    if (run->policy != NULL && run->passes != NULL) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "--passes needs a search, not a policy");
    }
    if (run->policy != NULL) {
        return follow_policy(env, run);
    }
    GRAFT_CHECK(search_passes(env, run));
    double *costs_ns = GRAFT_NEW(env->life, double, run->found.step_count + 1);
    GRAFT_CHECK(graft_plan_replay(env, &run->session.environment, run->found.steps,
                                  run->found.step_count, costs_ns));
    if (run->steps) {
        print_steps(env, run, costs_ns);
    }
done:
    return status;
}

static void print_outcome(graft_env *env, const optimize_run *run, graft_index before,
                          graft_index after)
{
    const graft_environment *environment = &run->session.environment;
    if (env->json) {
        graft_json json;
        graft_json_begin(&json, env->scratch);
        graft_json_string(&json, "model", run->options.model);
        graft_json_string(&json, run->policy != NULL ? "policy" : "search",
                          run->policy != NULL ? run->policy : run->search);
        graft_json_integer(&json, "operators_before", before);
        graft_json_integer(&json, "operators_after", after);
        graft_json_number(&json, "cost_ns_before", environment->first_ns);
        graft_json_number(&json, "cost_ns_after", run->found.cost_ns);
        graft_json_integer(&json, "rules_applied", run->found.step_count);
        graft_json_integer(&json, "graphs", (int64_t)run->found.evaluations);
        graft_json_number(&json, "seconds", run->found.seconds);
        graft_json_end(&json, stdout);
        return;
    }
    (void)printf("%s: %u operators, %.3f ms -> %u operators, %.3f ms (%.1f %%) by %u rewrites\n",
                 run->options.model, before, environment->first_ns / 1e6, after,
                 run->found.cost_ns / 1e6, 100.0 * run->found.cost_ns / environment->first_ns,
                 run->found.step_count);
}

graft_status graft_command_optimize(graft_env *env, int argc, char **argv)
{
    graft_status status = GRAFT_OK;
    optimize_run *run = GRAFT_NEW(env->life, optimize_run, 1);
    *run = (optimize_run){.options = graft_session_defaults(env), .search = "greedy"};
    const graft_option own[] = {
        {.name = "OUT.onnx", .value = &run->out, .required = true},
        {.name = "--search",                  .value = &run->search                  },
        {.name = "--dequeues",                  .value = &run->dequeues},
        {.name = "--width",                  .value = &run->width                     },
        {.name = "--policy",                  .value = &run->policy},
        {.name = "--passes",                  .value = &run->passes                     },
        {.name = "--steps",                  .flag = &run->steps},
    };
    GRAFT_CHECK(graft_session_parse(env, argc, argv, &run->options, own, 7));
    GRAFT_CHECK(graft_session_open(env, &run->options, &run->session));
    GRAFT_CHECK(rewrite(env, run));
    const graft_environment *environment = &run->session.environment;
    const graft_graph *found = &environment->state.graph;
    const graft_order *order = &environment->state.order;
    graft_equal_merge(env->life, &found, &order);
    GRAFT_CHECK(graft_model_write(env, run->session.model, found, run->out, NULL));
    print_outcome(env, run, graft_graph_active_count(&environment->first.graph),
                  graft_graph_active_count(found));
done:
    return graft_session_finish(env, &run->session, status);
}

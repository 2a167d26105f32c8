/* command_optimize.c - `graft optimize`: a model in, a rewritten model out. */
#include "emit/command.h"
#include "emit/session_options.h"
#include "graph/json.h"
#include "train/search.h"

#include <string.h>

typedef struct optimize_run {
    graft_session_options options;
    const char *out;
    const char *search;
    const char *dequeues;
    graft_session session;
    graft_plan_found found;
} optimize_run;

static graft_status search(graft_env *env, optimize_run *run)
{
    graft_environment *environment = &run->session.environment;
    const graft_agent_settings *settings = &run->session.settings;
    graft_backtracking_options backtracking = {
        .alpha = settings->search_alpha, .dequeue_limit = (uint32_t)settings->search_dequeues};
    if (strcmp(run->search, "greedy") == 0) {
        return graft_search_greedy(env, env->life, environment, &run->found);
    }
    if (strcmp(run->search, "random") == 0) {
        return graft_search_random(env, env->life, environment,
                                   (uint32_t)settings->search_random_episodes,
                                   (uint64_t)settings->environment_seed, &run->found);
    }
    if (strcmp(run->search, "backtracking") != 0) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                          "--search is greedy, backtracking or random, not '%s'", run->search);
    }
    if (run->dequeues != NULL) {
        uint64_t limit = 0;
        graft_status status =
            graft_options_number(env, "--dequeues", run->dequeues, 1, 10000000, &limit);
        if (status != GRAFT_OK) {
            return status;
        }
        backtracking.dequeue_limit = (uint32_t)limit;
    }
    return graft_search_backtracking(env, env->life, environment, &backtracking, &run->found);
}

static void print_outcome(graft_env *env, const optimize_run *run, graft_index before,
                          graft_index after)
{
    const graft_environment *environment = &run->session.environment;
    if (env->json) {
        graft_json json;
        graft_json_begin(&json, env->scratch);
        graft_json_string(&json, "model", run->options.model);
        graft_json_string(&json, "search", run->search);
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
    };
    GRAFT_CHECK(graft_session_parse(env, argc, argv, &run->options, own, 3));
    GRAFT_CHECK(graft_session_open(env, &run->options, &run->session));
    GRAFT_CHECK(search(env, run));
    graft_environment *environment = &run->session.environment;
    GRAFT_CHECK(graft_plan_replay(env, environment, run->found.steps, run->found.step_count));
    GRAFT_CHECK(
        graft_model_write(env, run->session.model, &environment->state.graph, run->out, NULL));
    print_outcome(env, run, graft_graph_active_count(&environment->first.graph),
                  graft_graph_active_count(&environment->state.graph));
done:
    return graft_session_finish(env, &run->session, status);
}

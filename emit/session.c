/* session.c - see session.h. */
#include "emit/session.h"

#include "emit/graphtable.h"
#include "graph/log.h"
#include "models/zoo.h"
#include "train/survey.h"

static graft_status price_graph(graft_env *env, void *context, const graft_graph *graph,
                                const graft_order *order, double *ns)
{
    return graft_cost_price(env, context, graph, order, ns);
}

static void choose_rules(graft_env *env, const graft_session_options *options,
                         graft_session *session)
{
    graft_rule *rules = GRAFT_NEW(env->life, graft_rule, session->rules.count);
    const char **names = GRAFT_NEW(env->life, const char *, session->rules.count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < session->rules.count; i++) {
        const graft_rule_entry *entry = &session->rules.entries[i];
        if (options->exact && entry->numeric != GRAFT_NUMERIC_EXACT &&
            entry->numeric != GRAFT_NUMERIC_EXACT_INTEGER) {
            continue;
        }
        if (graft_survey_suits(session->device, &entry->rule)) {
            rules[count] = entry->rule;
            names[count++] = entry->name;
        }
    }
    session->refused = session->rules.count - count;
    graft_xfers_index(env->life, rules, names, count, &session->xfers);
}

/* Keeps the rules that the survey meets. */
static graft_status survey_rules(graft_env *env, graft_session *session, const graft_graph *graph,
                                 const graft_environment_options *options)
{
    graft_status status = GRAFT_OK;
    const graft_survey survey = {.episodes = (uint32_t)session->settings.data_survey_episodes,
                                 .preference = session->settings.data_preference,
                                 .seed = (uint64_t)session->settings.environment_seed};
    const graft_xfers all = session->xfers;
    graft_survey_result found = {.met = GRAFT_NEW(env->life, bool, all.count)};
    graft_rule *rules = GRAFT_NEW(env->life, graft_rule, all.count);
    const char **names = GRAFT_NEW(env->life, const char *, all.count);
    uint32_t count = 0;
    GRAFT_CHECK(graft_survey_run(env, graph, &all, options, &survey, &found));
    for (uint32_t x = 0; x < all.count; x++) {
        if (found.met[x]) {
            rules[count] = all.rules[x];
            names[count++] = all.names[x];
        }
    }
    if (count == 0) {
        status =
            GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: none of the %u rules finds a place in this model",
                       session->model->file, all.count);
        goto done;
    }
    session->unmet = all.count - count;
    graft_xfers_index(env->life, rules, names, count, &session->xfers);
done:
    return status;
}

/* Signatures that rewriting meets are measured when they come up: shorter than the model's own. */
static const graft_measure_options on_demand = {.rounds = 9, .batch_ns = 300000, .quiet = true};

/* Measures the operators of the model in one go. */
static graft_status measure_model(graft_env *env, graft_session *session, const graft_graph *graph)
{
    graft_status status = GRAFT_OK;
    graft_mark mark = graft_arena_mark(env->unit);
    graft_limits limits = graft_state_limits(graph);
    graft_state state;
    graft_schedule schedule;
    graft_measure_options options = graft_measure_options_default();
    options.quiet = env->verbosity == 0;
    graft_state_open(env->unit, &limits, &state);
    GRAFT_CHECK(graft_state_set(env, &state, graph));
    graft_cost_set_measuring(session->cost, &options);
    GRAFT_CHECK(
        graft_cost_plan(env, session->cost, env->unit, &state.graph, &state.order, &schedule));
    graft_signature *signatures = GRAFT_NEW(env->unit, graft_signature, schedule.step_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < schedule.step_count; i++) {
        if (schedule.steps[i].signature.op != GRAFT_OP_OPAQUE) {
            signatures[count++] = schedule.steps[i].signature;
        }
    }
    if (graft_device_present(session->device)) {
        GRAFT_CHECK(graft_cost_measure(env, session->cost, signatures, count, &options));
        GRAFT_CHECK(graft_cost_save(env, session->cost));
    }
    graft_cost_set_measuring(session->cost, &on_demand);
done:
    graft_arena_release(env->unit, mark);
    return status;
}

static graft_status open_environment(graft_env *env, const graft_session_options *choice,
                                     graft_session *session)
{
    graft_status status = GRAFT_OK;
    graft_graph *graph = NULL;
    const graft_environment_options options = {
        .price = {price_graph, session->cost},
        .location_limit = (uint32_t)session->settings.environment_location_limit,
        .step_limit = (uint32_t)session->settings.environment_step_limit,
        .cost_limit = session->settings.environment_cost_limit,
        .apply.weight_bytes_limit = (uint64_t)session->settings.environment_weight_megabytes << 20,
    };
    GRAFT_CHECK(graft_graph_renumber(env, env->life, &session->model->graph, &graph));
    if (choice->survey) {
        GRAFT_CHECK(survey_rules(env, session, graph, &options));
    }
    graft_log(env, 1, "%u rules; not for this device or numeric class: %u, no place found: %u",
              session->rules.count, session->refused, session->unmet);
    GRAFT_CHECK(measure_model(env, session, graph));
    GRAFT_CHECK(graft_environment_open(env, env->life, graph, &session->xfers, &options,
                                       &session->environment));
done:
    return status;
}

graft_status graft_session_open(graft_env *env, const graft_session_options *options,
                                graft_session *session)
{
    graft_status status = GRAFT_OK;
    *session = (graft_session){.device = NULL};
    GRAFT_CHECK(graft_agent_settings_read(env, options->settings, &session->settings));
    GRAFT_CHECK(graft_model_open(env, env->life, options->model, NULL, &session->model));
    GRAFT_TRY(env, graft_rulefile_read(env, env->life, options->rules, &session->rules),
              "while reading the rule set; `make rules` makes it anew");
    GRAFT_CHECK(graft_device_open(env, options->device, 1, &session->device));
    GRAFT_CHECK(graft_cost_open(env, session->device, options->database, &session->cost));
    graft_cost_set_model(session->cost, session->model);
    choose_rules(env, options, session);
    GRAFT_CHECK(open_environment(env, options, session));
done:
    return status;
}

graft_status graft_session_close(graft_env *env, graft_session *session)
{
    graft_status status = graft_cost_close(env, session->cost);
    graft_device_close(session->device);
    return status;
}

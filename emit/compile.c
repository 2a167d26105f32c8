/* compile.c - see compile.h. */
#include "emit/compile.h"

#include "emit/calibrate.h"
#include "emit/contents.h"
#include "emit/states.h"
#include "emit/trained.h"
#include "graph/log.h"

/* States that the integer network is calibrated on. */
enum { CALIBRATION_STATES = 256 };

static graft_status collect_states(graft_env *env, const graft_session *session,
                                   const graft_agent *agent, graft_states *states)
{
    const graft_environment *environment = &session->environment;
    const graft_states_source source = {
        .graph = &environment->first.graph,
        .xfers = &session->xfers,
        .location_limit = environment->options.location_limit,
        .apply = environment->options.apply,
        .most = CALIBRATION_STATES,
    };
    return graft_states_collect(env, env->life, &source, agent->episodes, agent->episode_count,
                                states);
}

static graft_status compile(graft_env *env, const graft_session *session,
                            const graft_float_policy *network, const graft_states *states,
                            graft_policy *policy)
{
    graft_status status = GRAFT_OK;
    *policy = (graft_policy){.abi = GRAFT_ABI};
    policy->location_limit = (uint16_t)session->settings.environment_location_limit;
    GRAFT_CHECK(graft_policy_pack_rules(env, env->life, session->xfers.rules, session->xfers.count,
                                        policy));
    GRAFT_CHECK(graft_policy_calibrate(env, env->life, network, states, policy));
done:
    return status;
}

graft_status graft_policy_compile(graft_env *env, const graft_session *session,
                                  const graft_agent *agent, graft_policy *policy)
{
    graft_status status = GRAFT_OK;
    graft_states states;
    graft_float_policy network =
        graft_float_policy_of(&agent->encoder, &agent->standardiser, &agent->best);
    GRAFT_CHECK(collect_states(env, session, agent, &states));
    GRAFT_CHECK(compile(env, session, &network, &states, policy));
done:
    return status;
}

graft_status graft_policy_random(graft_env *env, const graft_session *session,
                                 const graft_agent *agent, uint64_t seed, graft_policy *policy)
{
    graft_status status = GRAFT_OK;
    graft_states states;
    graft_agent_settings *settings = GRAFT_NEW(env->life, graft_agent_settings, 1);
    graft_agent *blank = GRAFT_NEW(env->life, graft_agent, 1);
    *settings = session->settings;
    settings->environment_seed = (int64_t)(seed & INT32_MAX);
    graft_agent_open(env->life, settings, agent->xfers, 1, 0, blank);
    GRAFT_CHECK(collect_states(env, session, agent, &states));
    uint32_t latent = blank->encoder.size.latent;
    float *z = GRAFT_NEW(env->life, float, (size_t)states.count *latent);
    for (uint32_t i = 0; i < states.count; i++) {
        graft_encoder_run(&blank->encoder, env->scratch, &states.items[i].arrays, 1,
                          &z[(size_t)i * latent]);
    }
    blank->standardiser = graft_standardiser_fit(env->life, z, states.count, latent);
    graft_float_policy network =
        graft_float_policy_of(&blank->encoder, &blank->standardiser, &blank->best);
    GRAFT_CHECK(compile(env, session, &network, &states, policy));
done:
    return status;
}

/* ------------------------------------------------------------- evaluation */

static graft_status price_result(graft_env *env, const graft_session *session, graft_state *state,
                                 const graft_graph *graph, graft_result *row)
{
    graft_status status = GRAFT_OK;
    graft_cost_total total;
    GRAFT_CHECK(graft_state_set(env, state, graph));
    GRAFT_CHECK(graft_cost_graph(env, session->cost, &state->graph, &state->order, &total));
    row->cost_ns = total.ns;
    row->estimated = total.estimated_count;
done:
    return status;
}

static void take_steps(graft_arena *arena, const graft_report *report, graft_result *row)
{
    row->step_count = report->step_count;
    row->steps = GRAFT_NEW(arena, graft_action, report->step_count);
    for (uint32_t i = 0; i < report->step_count; i++) {
        row->steps[i] = (graft_action){.xfer = report->decisions[i].rule,
                                       .location = report->decisions[i].location};
    }
}

graft_status graft_policy_evaluate(graft_env *env, graft_session *session,
                                   const graft_policy *policy, const graft_policy_run *run,
                                   graft_results *results)
{
    graft_status status = GRAFT_OK;
    graft_mark mark = graft_arena_mark(env->unit);
    const graft_state *first = &session->environment.first;
    uint32_t step_limit = session->environment.options.step_limit;
    graft_state state;
    graft_state_open(env->unit, &first->graph.limits, &state);
    const graft_optimize_options options = {
        .weight_bytes_limit = session->environment.options.apply.weight_bytes_limit,
        .step_limit = step_limit,
        .use_plans = run->use_plans,
        .simplify = run->simplify,
        .guard = run->guard,
    };
    size_t bytes = graft_optimize_workspace_bytes(policy, &first->graph.limits, step_limit);
    void *workspace = graft_arena_alloc(env->unit, bytes);
    graft_report report = {.decisions = GRAFT_NEW(env->unit, graft_decision, step_limit),
                           .decision_limit = step_limit};
    GRAFT_CHECK(graft_state_set(env, &state, &first->graph));
    uint64_t start_ns = graft_clock_ns();
    status = graft_optimize(&state.graph, policy, &options, workspace, bytes, &report);
    if (status != GRAFT_OK) {
        status = GRAFT_FAIL(env, status, "the policy failed on the model: %s",
                            graft_status_name(status));
        goto done;
    }
    graft_result *row = graft_results_add(results, run->method, run->how);
    row->seconds = (double)(graft_clock_ns() - start_ns) / 1e9;
    take_steps(env->life, &report, row);
    graft_state priced;
    graft_state_open(env->unit, &first->graph.limits, &priced);
    GRAFT_CHECK(price_result(env, session, &priced, &state.graph, row));
done:
    graft_arena_release(env->unit, mark);
    return status;
}

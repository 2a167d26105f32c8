/* compile.c - see compile.h. */
#include "emit/header/compile.h"

#include "emit/command/contents.h"
#include "emit/header/quantise.h"
#include "graph/base/log.h"
#include "train/agent/candidates.h"

#include <math.h>
#include <string.h>

/* Played with each observer to see how large activations become, and most scenes looked at of
 * all. */
enum { CALIBRATION_EPISODES = 3, CALIBRATION_SCENES = 256, LOCATIONS_MOST = UINT16_MAX };

/* Logits that are as good as equal. */
static const float same_logit = 1e-3F;

/* Looks at a scene; what it found lies in `tape`, which is opened in `arena`. */
static graft_scored look(const graft_scorer *scorer, graft_arena *arena, const graft_scene *scene,
                         graft_tape *tape)
{
    const uint32_t *first = NULL;
    const uint32_t *row_scene = NULL;
    graft_tape_init(tape, arena, false);
    graft_tape_bind(tape, &scorer->encoder.parameters, NULL);
    graft_tape_bind(tape, &scorer->parameters, NULL);
    return graft_scorer_look(scorer, tape, &scene, 1, &first, &row_scene);
}

static void widen_by_scene(graft_env *env, const graft_scorer *scorer, const graft_scene *scene,
                           graft_ranges *ranges)
{
    GRAFT_SCOPED(env->scratch);
    graft_tape tape;
    const graft_scored scored = look(scorer, env->scratch, scene, &tape);
    graft_ranges_widen(ranges, scorer, &scored);
}

static graft_status find_ranges(graft_env *env, graft_candidates *agent,
                                graft_observer *const observers[], uint32_t count,
                                graft_ranges *ranges)
{
    const uint64_t interactions = agent->interactions;
    const uint32_t most = CALIBRATION_SCENES / count + 1;
    *ranges = (graft_ranges){.first = 0.0F};
    for (uint32_t e = 0; e < CALIBRATION_EPISODES * count; e++) {
        GRAFT_SCOPED(env->unit);
        graft_episode_kept kept;
        GRAFT_PASS(
            graft_candidates_episode(env, env->unit, agent, observers[e % count], NULL, &kept));
        for (uint32_t t = 0; t <= kept.count && t < most / CALIBRATION_EPISODES + 1; t++) {
            widen_by_scene(env, &agent->scorer, &kept.steps[t].scene, ranges);
        }
    }
    agent->interactions = interactions; /* Nothing is learnt of them. */
    return GRAFT_OK;
}

/* What each rule, and NO-OP, adds to a place: a scene of nothing that offers all of them. */
static float *find_rows(graft_env *env, const graft_scorer *scorer, const graft_observer *observer)
{
    const uint32_t count = observer->environment->xfers->count + 1;
    float *rows = GRAFT_NEW(env->life, float, (size_t)count * scorer->size.width);
    GRAFT_SCOPED(env->scratch);
    graft_arena *arena = env->scratch;
    graft_scene scene = {.graph = observer->sheets[count - 1].source, .count = count};
    graft_tape tape;
    const graft_sheet **sheets = GRAFT_NEW(arena, const graft_sheet *, count);
    for (uint32_t r = 0; r < count; r++) {
        sheets[r] = &observer->sheets[r];
    }
    scene.sheets = sheets;
    scene.facts = GRAFT_NEW(arena, float, (size_t)count *GRAFT_FACT_COUNT);
    scene.priors = GRAFT_NEW(arena, float, count);
    const graft_scored scored = look(scorer, arena, &scene, &tape);
    memcpy(rows, scored.added->value, graft_matrix_size(scored.added) * sizeof *rows);
    return rows;
}

graft_status graft_policy_compile(graft_env *env, graft_candidates *agent,
                                  graft_observer *const observers[], uint32_t count,
                                  graft_policy *policy)
{
    const graft_xfers *xfers = observers[0]->environment->xfers;
    const graft_scene_options *scenes = &observers[0]->options;
    graft_ranges ranges;
    *policy = (graft_policy){.abi = GRAFT_ABI,
                             .feature_hash = GRAFT_FEATURE_HASH,
                             .metadata = "",
                             .location_limit = LOCATIONS_MOST,
                             .tariff = observers[0]->estimator.tariff,
                             .decider = GRAFT_DECIDER_NETWORK,
                             .prior_slope = graft_prior_slope(scenes),
                             .prior_reserve = graft_prior_reserve(scenes)};
    GRAFT_PASS(graft_policy_pack_rules(env, env->life, xfers->rules, xfers->count, policy));
    GRAFT_PASS(find_ranges(env, agent, observers, count, &ranges));
    return graft_quantise(env, env->life, &agent->scorer, &ranges,
                          find_rows(env, &agent->scorer, observers[0]), policy);
}

/* --------------------------------------------------------------- agreement */

/* The candidate of a scene that is this action; UINT32_MAX: not on offer. */
static uint32_t find_action(const graft_scene *scene, graft_action action)
{
    for (uint32_t i = 0; i < scene->count; i++) {
        if (scene->actions[i].xfer == action.xfer &&
            scene->actions[i].location == action.location) {
            return i;
        }
    }
    return UINT32_MAX;
}

/* Both choices in the environment's state: *choice is the float network's. */
static graft_status compare_choices(graft_env *env, const graft_candidates *agent,
                                    graft_observer *o, const graft_policy *policy,
                                    graft_agreement *agreement, graft_action *choice)
{
    GRAFT_SCOPED(env->unit);
    const graft_environment *e = o->environment;
    const graft_optimize_options options = {
        .weight_bytes_limit = e->options.apply.weight_bytes_limit, .first_cost = o->first.cost};
    const size_t bytes = graft_optimize_workspace_bytes(policy, &e->state.graph.limits, 0);
    graft_scores scores;
    graft_scene scene;
    graft_tape tape;
    GRAFT_PASS(graft_scene_take(env, env->unit, o, false, &scene));
    graft_status status = graft_policy_scores(&e->state.graph, policy, &options,
                                              graft_arena_alloc(env->unit, bytes), bytes, &scores);
    if (status != GRAFT_OK) {
        return GRAFT_FAIL(env, status, "the policy does not decide");
    }
    const graft_action shipped = {scores.rule, scores.location};
    const uint32_t own = find_action(&scene, shipped);
    const float *logits = look(&agent->scorer, env->unit, &scene, &tape).logits->value;
    uint32_t best = 0;
    for (uint32_t i = 1; i < scene.count; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    *choice = scene.actions[best];
    agreement->decisions++;
    if (own < scene.count) {
        agreement->same += logits[own] >= logits[best] - same_logit;
        agreement->margin_lost = fmax(agreement->margin_lost, (double)(logits[best] - logits[own]));
    }
    return status;
}

graft_status graft_agreement_measure(graft_env *env, graft_candidates *agent,
                                     graft_observer *observer, const graft_policy *policy,
                                     graft_agreement *agreement)
{
    graft_environment *e = observer->environment;
    graft_observer wide = *observer; /* That offers everything. */
    graft_outcome outcome = {.terminal = false};
    wide.options.limit = UINT32_MAX;
    wide.options.alike = UINT32_MAX;
    GRAFT_PASS(graft_environment_reset(env, e));
    outcome.terminal = e->terminal;
    while (!outcome.terminal) {
        graft_action choice;
        GRAFT_PASS(compare_choices(env, agent, &wide, policy, agreement, &choice));
        GRAFT_PASS(graft_environment_step(env, e, choice.xfer, choice.location, &outcome));
    }
    return GRAFT_OK;
}

/* ------------------------------------------------------------- evaluation */

static graft_status price_result(graft_env *env, const graft_session *session, graft_state *state,
                                 const graft_graph *graph, graft_result *row)
{
    graft_cost_total total;
    GRAFT_PASS(graft_state_set(env, state, graph));
    GRAFT_PASS(graft_cost_graph(env, session->cost, &state->graph, &state->order, &total));
    row->cost_ns = total.ns;
    row->estimated = total.estimated_count;
    return GRAFT_OK;
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
    GRAFT_SCOPED(env->unit);
    const graft_state *first = &session->environment.first;
    uint32_t step_limit = graft_session_steps_most(session);
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
    GRAFT_PASS(graft_state_set(env, &state, &first->graph));
    uint64_t start_ns = graft_clock_ns();
    graft_status status = graft_optimize(&state.graph, policy, &options, workspace, bytes, &report);
    if (status != GRAFT_OK) {
        return GRAFT_FAIL(env, status, "the policy failed on the model: %s",
                          graft_status_name(status));
    }
    graft_result *row = graft_results_add(results, run->method, run->how);
    row->seconds = (double)(graft_clock_ns() - start_ns) / 1e9;
    take_steps(env->life, &report, row);
    return price_result(env, session, &session->environment.state, &state.graph, row);
}

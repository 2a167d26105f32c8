/* refine.c - see refine.h. */
#include "emit/policy/refine.h"

#include "cost/measure/confirm.h"
#include "cost/plan/executor.h"
#include "graph/base/log.h"

#include <assert.h>
#include <string.h>

typedef struct {
    graft_env *env;
    graft_session *session;
    const graft_refine_options *options;
    graft_plan_found plans[GRAFT_REFINE_PASSES_MOST];
    graft_refine_report *report;
} refinement;

/* A graph of the model ready to run, as a runtime would run the file; memory of env->unit. */
static graft_status open_graph(refinement *r, const graft_state *state, graft_executor **executor)
{
    const graft_graph *graph = &state->graph;
    const graft_order *order = &state->order;
    if (r->session->runtime != NULL) {
        GRAFT_PASS(
            graft_runtime_fuse(r->env, r->env->unit, &r->session->runtime->run, &graph, &order));
    }
    return graft_executor_open_folded(r->env, r->env->unit, r->session->cost, r->session->model,
                                      graph, executor);
}

/* Measures again what the cost of the environment's state rests on. */
static graft_status confirm(refinement *r, uint32_t *count)
{
    GRAFT_SCOPED(r->env->unit);
    const graft_state *state = &r->session->environment.state;
    graft_schedule schedule;
    uint32_t signature_count = 0;
    GRAFT_PASS(graft_session_plan(r->env, r->session, r->env->unit, &state->graph, &state->order,
                                  &schedule));
    graft_signature *signatures = GRAFT_NEW(r->env->unit, graft_signature, schedule.step_count);
    for (uint32_t i = 0; i < schedule.step_count; i++) {
        if (schedule.steps[i].signature.op != GRAFT_OP_OPAQUE) {
            signatures[signature_count++] = schedule.steps[i].signature;
        }
    }
    return graft_cost_confirm(r->env, r->session->cost, signatures, signature_count, NULL, count);
}

static bool is_same(const graft_plan_found *a, const graft_plan_found *b)
{
    bool same = a->step_count == b->step_count;
    for (uint32_t i = 0; same && i < a->step_count; i++) {
        same = a->steps[i].xfer == b->steps[i].xfer && a->steps[i].location == b->steps[i].location;
    }
    return same;
}

static bool is_known(const refinement *r, const graft_plan_found *plan)
{
    bool known = false;
    for (uint32_t i = 0; i < r->report->count; i++) {
        known = known || is_same(&r->plans[i], plan);
    }
    return known;
}

/* One search, and what its graph takes. `*again` when it is a graph that there was before. */
static graft_status run_pass(refinement *r, bool *again)
{
    graft_environment *environment = &r->session->environment;
    graft_plan_found found;
    GRAFT_PASS(graft_environment_reprice(r->env, environment));
    GRAFT_PASS(r->options->search(r->env, r->options->context, &found));
    *again = is_known(r, &found);
    if (!*again) {
        graft_refine_pass *pass = &r->report->passes[r->report->count];
        pass->predicted = found.cost_ns / environment->first_ns;
        GRAFT_PASS(graft_plan_replay(r->env, environment, found.steps, found.step_count));
        r->plans[r->report->count++] = found;
        GRAFT_PASS(confirm(r, &pass->confirmed));
        graft_log(r->env, 1, "pass %u: predicted %.3f of the graph as given; %u costs confirmed",
                  r->report->count, pass->predicted, pass->confirmed);
    }
    return GRAFT_OK;
}

/* ---------------------------------------------------------------- choosing */

/* The graph of a pass, or as given for number `count`, ready to run in a state of its own. */
static graft_status open_pass(refinement *r, uint32_t number, graft_executor **executor)
{
    graft_environment *environment = &r->session->environment;
    if (number == r->report->count) {
        return open_graph(r, &environment->first, executor);
    }
    const graft_plan_found *plan = &r->plans[number];
    graft_state *state = GRAFT_NEW(r->env->unit, graft_state, 1);
    graft_state_open(r->env->unit, &environment->first.graph.limits, state);
    GRAFT_PASS(graft_plan_replay(r->env, environment, plan->steps, plan->step_count));
    GRAFT_PASS(graft_state_set(r->env, state, &environment->state.graph));
    return open_graph(r, state, executor);
}

/* Times the graph of a pass against the best so far, which it replaces when it is faster beyond
 * noise. */
static graft_status challenge(refinement *r, uint32_t number)
{
    graft_status status = GRAFT_OK;
    GRAFT_SCOPED(r->env->unit);
    graft_executor *champion = NULL;
    graft_executor *challenger = NULL;
    graft_refine_pass *pass = &r->report->passes[number];
    graft_comparison c;
    GRAFT_CHECK(open_pass(r, r->report->best, &champion));
    GRAFT_CHECK(open_pass(r, number, &challenger));
    GRAFT_CHECK(graft_executor_compare(r->env, champion, challenger, r->options->rounds, &c));
    pass->measured = c.ratio;
    pass->spread = c.ratio_spread;
    pass->better = graft_comparison_is_gain(&c);
    graft_log(r->env, 1, "pass %u: its graph takes %.3f +- %.3f of the best before%s", number + 1,
              c.ratio, c.ratio_spread, pass->better ? "" : ", which is no gain beyond noise");
    if (pass->better) {
        r->report->best = number;
    }
done:
    graft_executor_close(champion);
    graft_executor_close(challenger);
    return status;
}

/* Graphs with operators that cannot be run are not timed: the one that costs least, by what is
 * known after all passes, is the best when it gains more than noise. */
static graft_status choose_by_price(refinement *r)
{
    graft_environment *environment = &r->session->environment;
    GRAFT_PASS(graft_environment_reprice(r->env, environment));
    double least_ns = environment->first_ns;
    for (uint32_t i = 0; i < r->report->count; i++) {
        const graft_plan_found *plan = &r->plans[i];
        double noise_ns = 0.0;
        GRAFT_PASS(graft_plan_replay(r->env, environment, plan->steps, plan->step_count));
        GRAFT_PASS(graft_session_noise(r->env, r->session, &environment->first, &environment->state,
                                       &noise_ns));
        if (environment->cost_ns < least_ns - noise_ns) {
            least_ns = environment->cost_ns;
            r->report->best = i;
            r->report->passes[i].better = true;
        }
    }
    return GRAFT_OK;
}

/* Whether the graph as given can be run as a whole; why not is said. */
static graft_status is_runnable(refinement *r, bool *runnable)
{
    GRAFT_SCOPED(r->env->unit);
    graft_executor *executor = NULL;
    graft_status status = open_graph(r, &r->session->environment.first, &executor);
    *runnable = status == GRAFT_OK;
    if (status == GRAFT_UNSUPPORTED) {
        graft_log(r->env, 1,
                  "whole graphs cannot be timed, the passes are held against each other "
                  "by their predicted costs: %s",
                  r->env->message);
        graft_env_clear(r->env);
        status = GRAFT_OK;
    }
    graft_executor_close(executor);
    return status;
}

/* Leaves the best graph as the environment's state. */
static graft_status take_best(refinement *r, graft_plan_found *best)
{
    graft_environment *environment = &r->session->environment;
    bool given = r->report->best == r->report->count;
    *best = r->plans[given ? 0 : r->report->best];
    best->step_count = given ? 0 : best->step_count;
    best->evaluations = 0;
    best->dequeues = 0;
    best->seconds = 0.0;
    for (uint32_t i = 0; i < r->report->count; i++) {
        best->evaluations += r->plans[i].evaluations;
        best->dequeues += r->plans[i].dequeues;
        best->seconds += r->plans[i].seconds;
    }
    GRAFT_PASS(graft_environment_reprice(r->env, environment));
    return graft_search_tidy(r->env, r->env->life, environment, best);
}

graft_status graft_refine(graft_env *env, graft_session *session,
                          const graft_refine_options *options, graft_plan_found *best,
                          graft_refine_report *report)
{
    refinement *r = GRAFT_NEW(env->life, refinement, 1);
    bool again = false;
    bool runnable = false;
    *r = (refinement){.env = env, .session = session, .options = options, .report = report};
    assert(options->passes >= 1 && options->passes <= GRAFT_REFINE_PASSES_MOST);
    memset(report, 0, sizeof(*report));
    if (!graft_device_present(session->device)) {
        return GRAFT_FAIL(env, GRAFT_UNSUPPORTED,
                          "device '%s' is not here: no pass can measure on it",
                          graft_device_name(session->device));
    }
    for (uint32_t i = 0; i < options->passes && !again; i++) {
        GRAFT_PASS(run_pass(r, &again));
    }
    report->best = report->count;
    GRAFT_PASS(is_runnable(r, &runnable));
    for (uint32_t i = 0; i < report->count && runnable; i++) {
        GRAFT_PASS(challenge(r, i));
    }
    if (!runnable) {
        GRAFT_PASS(choose_by_price(r));
    }
    return take_best(r, best);
}

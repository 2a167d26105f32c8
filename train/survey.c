/* survey.c - see survey.h. */
#include "train/survey.h"

#include "graph/log.h"
#include "train/recording.h"

/* Walks are told apart from every other use of the seed. */
#define STREAM_SURVEY (UINT64_C(9) << 32)

/* A survey has no use for costs. */
static graft_status price_nothing(graft_env *env, void *context, const graft_graph *graph,
                                  const graft_order *order, double *ns)
{
    (void)env;
    (void)context;
    (void)graph;
    (void)order;
    *ns = 1.0;
    return GRAFT_OK;
}

typedef struct walker {
    graft_environment environment;
    graft_data_agent agent;
    uint16_t *counts; /* (xfers): of the present state */
    bool *met;
} walker;

static void note_counts(walker *w)
{
    for (uint32_t x = 0; x < w->environment.xfers->count; x++) {
        w->counts[x] = (uint16_t)graft_matches_count(&w->environment.matches, x);
        w->met[x] = w->met[x] || w->counts[x] > 0;
    }
}

static graft_status walk(graft_env *env, walker *w, graft_rng *rng)
{
    graft_status status = GRAFT_OK;
    const graft_chooser chooser = graft_data_agent_chooser(&w->agent);
    const graft_snapshot snapshot = {.location_counts = w->counts};
    graft_data_agent_draw(&w->agent, rng);
    GRAFT_CHECK(graft_environment_reset(env, &w->environment));
    note_counts(w);
    while (!w->environment.terminal) {
        graft_action action = {0, 0};
        graft_outcome outcome;
        GRAFT_CHECK(chooser.choose(env, chooser.context, &w->environment, &snapshot, rng, &action));
        GRAFT_CHECK(
            graft_environment_step(env, &w->environment, action.xfer, action.location, &outcome));
        note_counts(w);
    }
done:
    return status;
}

graft_status graft_survey_run(graft_env *env, const graft_graph *graph, const graft_xfers *xfers,
                              const graft_environment_options *options, const graft_survey *survey,
                              graft_survey_result *result)
{
    graft_status status = GRAFT_OK;
    graft_mark mark = graft_arena_mark(env->unit);
    graft_progress progress;
    walker w = {.met = result->met, .counts = GRAFT_NEW(env->unit, uint16_t, xfers->count)};
    graft_environment_options free_of_cost = *options;
    free_of_cost.cost_limit = 0;
    free_of_cost.price = (graft_price){.cost_ns = price_nothing};
    GRAFT_CHECK(
        graft_environment_open(env, env->unit, graph, xfers, &free_of_cost, &w.environment));
    graft_data_agent_open(env->unit, xfers->count, 0, 0, &w.agent);
    graft_progress_start(&progress, env, "survey the rules", "walks", survey->episodes);
    for (uint32_t e = 0; e < survey->episodes; e++) {
        graft_rng rng;
        graft_rng_derive(&rng, survey->seed, STREAM_SURVEY + e);
        w.agent.preference = e % 2 == 0 ? 0 : survey->preference;
        GRAFT_CHECK(walk(env, &w, &rng));
        graft_progress_update(&progress, e + 1, NULL);
        if (graft_interrupted()) {
            status = GRAFT_FAIL(env, GRAFT_INTERRUPTED, "interrupted while surveying the rules");
            goto done;
        }
    }
    graft_progress_finish(&progress);
    result->step_count = w.environment.interactions;
done:
    graft_arena_release(env->unit, mark);
    return status;
}

bool graft_survey_suits(const graft_device *device, const graft_rule *rule)
{
    for (uint32_t n = 0; n < rule->target.node_count; n++) {
        const graft_pattern_node *node = &rule->target.nodes[n];
        int32_t attrs[GRAFT_MAX_ATTRS] = {0};
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
            attrs[i] = node->attrs[i].kind == GRAFT_TERM_CONST ? node->attrs[i].value : 0;
        }
        if (!graft_device_has(device, node->op, attrs)) {
            return false;
        }
    }
    return true;
}

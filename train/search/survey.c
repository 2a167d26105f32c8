/* survey.c - see survey.h. */
#include "train/search/survey.h"

#include "graph/base/log.h"
#include "graph/base/rng.h"
#include "train/nn/numeric.h"

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
    double *weights; /* (xfers): of rules, for one walk */
    bool *met;       /* (xfers) */
} walker;

/* Draws the taste of a walk: weights of rules, exp(preference n) with standard normal n. Without
 * taste all are alike; but then a rule and its reverse undo one another, and what lies behind a
 * hundred rewrites is never seen. */
static void draw_taste(walker *w, double preference, graft_rng *rng)
{
    for (uint32_t x = 0; x < w->environment.xfers->count; x++) {
        w->weights[x] = (double)graft_exp((float)(preference * graft_rng_normal(rng)));
    }
}

static uint32_t count_at(const walker *w, uint32_t x)
{
    return graft_matches_count(&w->environment.matches, x);
}

static void note_rules(walker *w)
{
    for (uint32_t x = 0; x < w->environment.xfers->count; x++) {
        w->met[x] = w->met[x] || count_at(w, x) > 0;
    }
}

static uint32_t choose_rule(const walker *w, graft_rng *rng)
{
    double total = 0;
    uint32_t chosen = 0;
    for (uint32_t x = 0; x < w->environment.xfers->count; x++) {
        total += count_at(w, x) > 0 ? w->weights[x] : 0;
    }
    double pick = graft_rng_uniform(rng) * total;
    for (uint32_t x = 0; x < w->environment.xfers->count && pick >= 0; x++) {
        if (count_at(w, x) > 0) {
            chosen = x; /* The last one takes what rounding leaves over. */
            pick -= w->weights[x];
        }
    }
    return chosen;
}

static graft_status walk(graft_env *env, walker *w, double preference, graft_rng *rng)
{
    draw_taste(w, preference, rng);
    GRAFT_PASS(graft_environment_reset(env, &w->environment));
    note_rules(w);
    while (!w->environment.terminal) {
        graft_outcome outcome;
        const uint32_t rule = choose_rule(w, rng);
        const uint32_t location = graft_rng_below(rng, count_at(w, rule));
        GRAFT_PASS(graft_environment_step(env, &w->environment, rule, location, &outcome));
        note_rules(w);
    }
    return GRAFT_OK;
}

graft_status graft_survey_run(graft_env *env, const graft_graph *graph, const graft_xfers *xfers,
                              const graft_environment_options *options, const graft_survey *survey,
                              graft_survey_result *result)
{
    GRAFT_SCOPED(env->unit);
    graft_progress progress;
    walker w = {.met = result->met, .weights = GRAFT_NEW(env->unit, double, xfers->count)};
    graft_environment_options free_of_cost = *options;
    free_of_cost.cost_limit = 0;
    free_of_cost.price = (graft_price){.cost_ns = price_nothing};
    GRAFT_PASS(graft_environment_open(env, env->unit, graph, xfers, &free_of_cost, &w.environment));
    graft_progress_start(&progress, env, "survey the rules", "walks", survey->episodes);
    for (uint32_t e = 0; e < survey->episodes; e++) {
        graft_rng rng;
        graft_rng_derive(&rng, survey->seed, STREAM_SURVEY + e);
        GRAFT_PASS(walk(env, &w, e % 2 == 0 ? 0 : survey->preference, &rng));
        graft_progress_update(&progress, e + 1, NULL);
        if (graft_interrupted()) {
            return GRAFT_FAIL(env, GRAFT_INTERRUPTED, "interrupted while surveying the rules");
        }
    }
    graft_progress_finish(&progress);
    result->step_count = w.environment.interactions;
    return GRAFT_OK;
}

bool graft_survey_suits(const graft_device *device, const graft_rule *rule)
{
    for (uint32_t n = 0; n < rule->target.node_count; n++) {
        if (!graft_device_has(device, rule->target.nodes[n].op)) {
            return false;
        }
    }
    return true;
}

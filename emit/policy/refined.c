/* refined.c - see refined.h. */
#include "emit/policy/refined.h"

#include "emit/command/contents.h"
#include "emit/header/compile.h"
#include "graph/base/rng.h"
#include "train/search/guided.h"

#include <string.h>

/* The session's rules, decided by a table, which is kept. */
static graft_status open_policy(graft_env *env, const graft_session *session,
                                const graft_tariff *tariff, graft_policy *policy)
{
    graft_tariff *own = GRAFT_NEW(env->life, graft_tariff, 1);
    *own = *tariff;
    return graft_policy_of_tariff(env, own, session->xfers.rules, session->xfers.count, policy);
}

/* A table whose rows have each other's costs. */
static graft_tariff shuffle(graft_env *env, const graft_tariff *tariff, uint64_t seed)
{
    graft_tariff shuffled = *tariff;
    uint16_t *values = GRAFT_COPY(env->life, tariff->values, tariff->row_count);
    graft_rng rng;
    graft_rng_seed(&rng, seed);
    for (uint32_t i = tariff->row_count; i > 1; i--) {
        const uint32_t other = graft_rng_below(&rng, i);
        const uint16_t value = values[i - 1];
        values[i - 1] = values[other];
        values[other] = value;
    }
    shuffled.values = values;
    return shuffled;
}

static graft_status add_row(graft_env *env, graft_session *session, const graft_policy *policy,
                            const char *method, uint64_t graphs, graft_results *results)
{
    const graft_policy_run alone = {.method = method, .how = "alone"};
    GRAFT_PASS(graft_policy_evaluate(env, session, policy, &alone, results));
    results->rows[results->count - 1].interactions = graphs;
    return GRAFT_OK;
}

graft_status graft_refined_make(graft_env *env, graft_session *session,
                                const graft_refined_start *start, graft_refined *refined,
                                graft_results *results)
{
    const graft_tariff random = shuffle(env, start->tariff, start->seed);
    graft_tariff better;
    graft_plan_found found;
    const graft_search_choice options = {.tariff = start->tariff,
                                         .cost = session->cost,
                                         .graphs = GRAFT_REFINED_GRAPHS - 1,
                                         .seed = start->seed};
    GRAFT_PASS(
        graft_guided_refine(env, env->life, &session->environment, &options, &better, &found));
    *refined = (graft_refined){.graphs = start->graphs + found.evaluations + 1};
    GRAFT_PASS(open_policy(env, session, &random, &refined->random));
    GRAFT_PASS(open_policy(env, session, start->tariff, &refined->generalist));
    GRAFT_PASS(open_policy(env, session, &better, &refined->refined));
    GRAFT_PASS(add_row(env, session, &refined->random, "random table", 0, results));
    GRAFT_PASS(add_row(env, session, &refined->generalist, "generalist", start->graphs, results));
    const double generalist_ns = results->rows[results->count - 1].cost_ns;
    GRAFT_PASS(add_row(env, session, &refined->refined, "refined", refined->graphs, results));
    const double refined_ns = results->rows[results->count - 1].cost_ns;
    refined->best = refined_ns < generalist_ns ? &refined->refined : &refined->generalist;
    return GRAFT_OK;
}

/* generalist_rows.c - the rows that ship: where a tariff leads, leaning and tuning (see
 * generalist_internal.h). */
#include "emit/policy/generalist_internal.h"

#include "emit/command/contents.h"
#include "graph/base/log.h"
#include "graph/base/ranks.h"
#include "train/search/appraisal.h"

#include <math.h>
#include <string.h>

enum { TUNING_BLURS = 64, TUNING_BLURS_MOST = 512 };

/* Of the mean cost of the graphs that the policy ends at: what leaning has to bring. */
static const double leaning_least = 1e-5;
/* Of a model's cost: what tuned rows have to bring. Less is noise, and moves activations apart that
 * other runtimes fuse. */
static const double tuning_least = 1e-3;
/* How far the policy may be behind greedy search over prices before more is tried. */
static const double tuning_behind = 3e-3;
/* The cheapest of many graphs by guesses is one that is guessed too low. */
static const double guessed_more = 0.25;

/* ---------------------------------------------------------------- where a tariff leads */

graft_status graft_generalist_open_policy(graft_generalist *g, const graft_rule *rules,
                                          uint32_t count)
{
    return graft_policy_of_tariff(g->env, &g->tariff, rules, count, &g->policy);
}

graft_status graft_generalist_follow(graft_env *env, const graft_generalist *g,
                                     const graft_policy *policy, uint32_t model, graft_state *state,
                                     graft_report *report)
{
    const graft_optimize_options options = {.weight_bytes_limit = g->apply.weight_bytes_limit,
                                            .step_limit = g->step_limit};
    GRAFT_PASS(graft_state_make(env, env->unit, g->graphs[model], state));
    size_t bytes =
        graft_optimize_workspace_most_bytes(policy, &state->graph.limits, options.step_limit);
    *report = (graft_report){.decisions = GRAFT_NEW(env->unit, graft_decision, options.step_limit),
                             .decision_limit = options.step_limit};
    graft_status status = graft_optimize(&state->graph, policy, &options,
                                         graft_arena_alloc(env->unit, bytes), bytes, report);
    if (status != GRAFT_OK) {
        return GRAFT_FAIL(env, status, "the policy failed on %s: %s", g->models[model].name,
                          graft_status_name(status));
    }
    return status;
}

/* Notes what each rule brings on the models when a tariff decides. */
static graft_status count_uses(graft_generalist *g, const graft_tariff *tariff)
{
    graft_env *env = g->env;
    graft_policy policy = g->policy;
    policy.tariff = tariff;
    for (uint32_t m = 0; m < g->count; m++) {
        GRAFT_SCOPED(env->unit);
        graft_state state;
        graft_report report;
        if (!graft_generalist_learns(g, m)) {
            continue;
        }
        GRAFT_PASS(graft_generalist_follow(env, g, &policy, m, &state, &report));
        const double whole = (double)report.estimated_before.cost;
        for (uint32_t i = 0; i < report.step_count; i++) {
            const graft_decision *decision = &report.decisions[i];
            g->uses[decision->rule].uses++;
            g->uses[decision->rule].gain +=
                (uint64_t)(-(double)decision->cost_change / whole * 4294967296.0);
        }
    }
    return GRAFT_OK;
}

/* ---------------------------------------------------------------- leaning */

/* What a graph costs in parts of the model as given. */
typedef struct {
    double priced;
    double part; /* The same; where a cost was not measured, by the rows as measured, and a quarter
                    more where no row is. */
    uint32_t estimated_more; /* Costs that were not measured, beyond those of the graph as given. */
} judgement;

static graft_status judge_state(graft_env *env, const graft_generalist *g, uint32_t model,
                                graft_state *found, judgement *judged)
{
    graft_cost_total totals[2];
    graft_estimated estimated[2];
    graft_estimator estimator;
    graft_state first;
    const graft_limits *limits = &found->graph.limits;
    graft_state_open(env->unit, limits, &first);
    GRAFT_PASS(graft_state_set(env, &first, g->graphs[model]));
    GRAFT_PASS(graft_state_refresh(env, &first));
    GRAFT_PASS(graft_state_refresh(env, found));
    GRAFT_PASS(graft_cost_graph(env, g->prices, &first.graph, &first.order, &totals[0]));
    GRAFT_PASS(graft_cost_graph(env, g->prices, &found->graph, &found->order, &totals[1]));
    judged->estimated_more = totals[1].estimated_count > totals[0].estimated_count
                                 ? totals[1].estimated_count - totals[0].estimated_count
                                 : 0;
    judged->priced = totals[0].ns > 0.0 ? totals[1].ns / totals[0].ns : 1.0;
    judged->part = judged->priced;
    if (totals[0].estimated_count + totals[1].estimated_count == 0) {
        return GRAFT_OK;
    }
    GRAFT_PASS(graft_estimator_make(env, env->unit, &g->measured, limits, &estimator));
    GRAFT_PASS(graft_estimate(&estimator, &first.graph, &first.order, &estimated[0]));
    GRAFT_PASS(graft_estimate(&estimator, &found->graph, &found->order, &estimated[1]));
    double found_cost =
        (double)estimated[1].cost + guessed_more * (double)estimated[1].fallback_cost;
    judged->part = estimated[0].cost > 0 ? found_cost / (double)estimated[0].cost : 1.0;
    return GRAFT_OK;
}

/* Of the graph that a tariff leads to. */
static graft_status judge_model(graft_env *env, const graft_generalist *g,
                                const graft_tariff *tariff, uint32_t model, judgement *judged)
{
    graft_policy policy = g->policy;
    graft_state found;
    graft_report report;
    GRAFT_SCOPED(env->unit);
    policy.tariff = tariff;
    GRAFT_PASS(graft_generalist_follow(env, g, &policy, model, &found, &report));
    return judge_state(env, g, model, &found, judged);
}

/* The mean over the models. */
static graft_status judge_tariff(graft_env *env, void *context, const graft_tariff *tariff,
                                 double *loss)
{
    const graft_generalist *g = context;
    uint64_t parts[GRAFT_TABLE_MODELS] = {0}; /* By model: a double's bits, 0 from other ranks. */
    uint32_t count = 0;
    double sum = 0.0;
    for (uint32_t m = graft_ranks_own(env); m < g->count; m += graft_ranks_count(env)) {
        judgement judged = {0};
        if (graft_generalist_learns(g, m)) {
            GRAFT_PASS(judge_model(env, g, tariff, m, &judged));
        }
        memcpy(&parts[m], &judged.part, sizeof judged.part);
    }
    graft_ranks_add(env, parts, g->count);
    for (uint32_t m = 0; m < g->count; m++) {
        double part;
        memcpy(&part, &parts[m], sizeof part);
        sum += part;
        count += graft_generalist_learns(g, m) ? 1 : 0;
    }
    *loss = sum / count;
    return GRAFT_OK;
}

/* Keeps of the rules those that some leaning uses, so that judging is quick, and chooses. */
graft_status graft_generalist_lean(graft_generalist *g)
{
    const uint32_t most = g->held_out == NULL ? 100 : 0;
    graft_env *env = g->env;
    graft_rule *used = GRAFT_NEW(env->life, graft_rule, g->rule_count);
    uint32_t used_count = 0;
    const graft_leaning_judge judge = {judge_tariff, g};
    for (uint32_t r = 0; r < g->rule_count; r++) {
        g->uses[r] =
            (graft_generalist_use){.rule = r, .always = graft_rule_is_always(&g->rules[r])};
    }
    uint16_t *values = GRAFT_NEW(env->life, uint16_t, g->measured.row_count);
    graft_leaning_open(env->life, &g->book, &g->measured, &g->leaning_rows);
    GRAFT_PASS(graft_generalist_open_policy(g, g->rules, g->rule_count));
    for (uint32_t part = 0; part <= most; part += 50) {
        memset(g->leaning.parts, (int)part, sizeof g->leaning.parts);
        g->tariff = graft_leaning_apply(&g->leaning_rows, &g->leaning, values);
        GRAFT_PASS(count_uses(g, &g->tariff));
    }
    for (uint32_t r = 0; r < g->rule_count; r++) {
        if (g->uses[r].uses > 0) {
            used[used_count++] = g->rules[r];
        }
        g->uses[r].uses = 0;
        g->uses[r].gain = 0;
    }
    GRAFT_PASS(graft_generalist_open_policy(g, used, used_count));
    if (g->held_out == NULL) {
        GRAFT_PASS(graft_leaning_search(env, &g->leaning_rows, &judge, leaning_least, &g->leaning));
    }
    g->tariff = graft_leaning_apply(&g->leaning_rows, &g->leaning, values);
    GRAFT_PASS(graft_generalist_open_policy(g, g->rules, g->rule_count));
    return count_uses(g, &g->tariff);
}

/* ---------------------------------------------------------------- tuning */

/* By prices and by rows, whichever says more. A graph counts for nothing that rests on more
 * estimates than the one that untuned rows lead to: the cheapest of many would be estimated too
 * low. */
static graft_status judge_tuned(graft_env *env, void *context, const graft_tariff *tariff,
                                uint32_t model, double *part)
{
    const graft_generalist *g = context;
    judgement judged;
    GRAFT_PASS(judge_model(env, g, tariff, model, &judged));
    *part = judged.estimated_more <= g->estimates_most[model] ? fmax(judged.part, judged.priced)
                                                              : HUGE_VAL;
    return GRAFT_OK;
}

graft_status graft_generalist_tune(graft_generalist *g)
{
    const graft_tuning_judge judge = {judge_tuned, g};
    double aims[GRAFT_TABLE_MODELS] = {0.0};
    const graft_tuning_options options = {.models = g->learnt,
                                          .blurs = TUNING_BLURS,
                                          .aims = aims,
                                          .blurs_most = TUNING_BLURS_MOST,
                                          .least = tuning_least,
                                          .seed = 1};
    uint32_t tuned = 0;
    for (uint32_t m = 0; m < g->count && g->held_out == NULL; m++) {
        judgement judged = {0};
        if (graft_generalist_learns(g, m)) {
            GRAFT_PASS(judge_model(g->env, g, &g->tariff, m, &judged));
        }
        g->estimates_most[m] = judged.estimated_more;
        aims[m] = g->rows[m].greedy.part + tuning_behind;
    }
    if (g->held_out == NULL) {
        GRAFT_PASS(
            graft_tuning_search(g->env, &g->leaning_rows, &judge, &options, &g->tariff, &tuned));
        graft_log(g->env, 1, "%u of %u costs of nodes were tuned", tuned, g->tariff.row_count);
    }
    return GRAFT_OK;
}

/* guided.c - the phases of guided search (see guided.h). */
#include "train/search/guided_internal.h"

#include "graph/rule/rulefile.h"

#include <math.h>
#include <stdlib.h>

/* Of all graphs: those spent on rows of unknown forms, on rollouts, and on looking at every rewrite
 * of the best graph. */
enum { TEACH_PART = 4, ROLLOUT_PART = 4, SWEEP_PART = 4 };
/* Descents in a row, and graphs that refining prices for rows of what is nearly taken. */
enum { DESCENTS_MOST = 8, LABELS = 16 };

/* Prices, at `now`, graphs with forms that there is no row for; and rows learn their operators. */
static graft_status teach(graft_env *env, graft_guided *g, uint64_t most)
{
    const graft_place place = {&g->now.state, &g->now.matches, &g->environment->options.apply};
    const uint64_t end = g->found->evaluations + most;
    GRAFT_EACH_ACTION(&g->now.matches, action)
    {
        graft_made made;
        double ns = 0.0;
        GRAFT_PASS(graft_appraisal_plan(env, &place, action, &made));
        const bool knows = graft_ledger_knows(&g->ledger, &g->now.state.graph,
                                              graft_place_rule(&place, action), &made);
        if (knows || graft_guided_is_over(g) || g->found->evaluations >= end) {
            continue;
        }
        GRAFT_PASS(graft_walker_price(env, &g->now, action, &ns));
        GRAFT_PASS(graft_guided_learn(env, g, &g->now.trial));
    }
    return GRAFT_OK;
}

/* By the rows as they were given, before any price; then they learn from the first graph. */
static graft_status follow_given(graft_env *env, graft_guided *g)
{
    bool better = false;
    if (g->ledger.row_count > 0 && g->choice->graphs > 1) {
        GRAFT_PASS(graft_guided_roll_out(env, g, NULL, 0, 0.0, &better));
        GRAFT_PASS(graft_walker_join(env, &g->now, &g->first));
    }
    GRAFT_PASS(graft_guided_price(env, g));
    GRAFT_PASS(graft_guided_learn(env, g, &g->now.state));
    GRAFT_PASS(graft_guided_reopen(env, g, NULL, 0));
    g->first_cost = fmax((double)g->appraisal.estimated.cost, 1.0);
    return GRAFT_OK;
}

/* By the rows as they are; prices correct them, so again, until the same graph comes out. */
static graft_status descend(graft_env *env, graft_guided *g)
{
    for (uint32_t i = 0; i < DESCENTS_MOST && !graft_guided_is_over(g); i++) {
        bool better = false;
        const uint64_t before = g->last_hash;
        GRAFT_PASS(graft_walker_join(env, &g->now, &g->first));
        GRAFT_PASS(graft_guided_roll_out(env, g, NULL, 0, 0.0, &better));
        if (g->last_hash == before) {
            break;
        }
    }
    return GRAFT_OK;
}

/* Descents, and between them rows for what could be done where the last one has led. */
static graft_status teach_and_descend(graft_env *env, graft_guided *g)
{
    const uint64_t end = g->found->evaluations + g->choice->graphs / TEACH_PART;
    double before_ns = 0.0;
    do {
        before_ns = g->best.cost_ns;
        const uint64_t spent = g->found->evaluations;
        GRAFT_PASS(teach(env, g, end > spent ? end - spent : 0));
        GRAFT_PASS(descend(env, g));
        GRAFT_PASS(graft_walker_join(env, &g->now, &g->best));
    } while (g->best.cost_ns < before_ns && g->found->evaluations < end &&
             !graft_guided_is_over(g));
    return GRAFT_OK;
}

/* Rollouts from the first graph: by blurred rows, of which those that lead to a better graph stay
 * blurred, and sampled. */
static graft_status explore(graft_env *env, graft_guided *g)
{
    static const double sigmas[] = {0.01, 0.03, 0.1, 0.3};
    const bool refining = g->kept != NULL;
    const uint64_t end =
        g->found->evaluations + (refining ? UINT32_MAX : g->choice->graphs / ROLLOUT_PART);
    for (uint64_t i = 0;
         g->found->evaluations < end && !graft_guided_is_over(g) && i < 2 * g->choice->graphs;
         i++) {
        bool better = false;
        const bool sampled = i % 5 == 4 && !refining;
        GRAFT_PASS(graft_walker_join(env, &g->now, &g->first));
        g->blurs[g->blur_count] =
            (graft_blur){graft_rng_next(&g->rng), sigmas[i % 4], i / 4 % 2 == 1};
        GRAFT_PASS(graft_guided_roll_out(env, g, g->blurs, g->blur_count + (sampled ? 0 : 1),
                                         sampled ? 1e-3 * g->choice->temperature : 0.0, &better));
        g->blur_count += better && !sampled && g->blur_count < GRAFT_GUIDED_BLURS ? 1 : 0;
    }
    return GRAFT_OK;
}

/* ------------------------------------------------------------------ all of it */

static graft_status open_guided(graft_env *env, graft_arena *arena, graft_environment *environment,
                                const graft_search_choice *choice, graft_plan_found *found,
                                graft_guided *g)
{
    *g = (graft_guided){.choice = choice, .environment = environment, .found = found};
    *found = (graft_plan_found){.cost_ns = environment->first_ns};
    graft_progress_start(&g->progress, env, "guided search", "graphs", choice->graphs);
    graft_rng_seed(&g->rng, choice->seed);
    graft_ledger_open(arena, choice->tariff, &g->ledger);
    g->rows_only = choice->tariff->tree_count == 0;
    g->is_always = GRAFT_NEW(arena, bool, environment->xfers->count);
    for (uint32_t x = 0; x < environment->xfers->count; x++) {
        g->is_always[x] = graft_rule_is_always(&environment->xfers->rules[x]);
    }
    GRAFT_PASS(graft_walker_open(env, arena, environment, found, &g->first));
    GRAFT_PASS(graft_walker_open(env, arena, environment, found, &g->best));
    GRAFT_PASS(graft_walker_open(env, arena, environment, found, &g->now));
    GRAFT_PASS(graft_guided_reopen(env, g, NULL, 0));
    g->first_cost = fmax((double)g->appraisal.estimated.cost, 1.0);
    return GRAFT_OK;
}

static void tell(graft_env *env, const graft_guided *g, const char *what)
{
    graft_log(env, 2, "%s: %.3f %% after %llu graphs", what,
              100.0 * g->best.cost_ns / g->environment->first_ns,
              (unsigned long long)g->found->evaluations);
}

/* Prices the rewrites of the best graph that the table nearly takes, for rows of what they make. */
static graft_status label(graft_env *env, graft_guided *g, uint32_t most)
{
    GRAFT_SCOPED(env->scratch);
    graft_guided_option *list = NULL;
    uint32_t count = 0;
    GRAFT_PASS(graft_walker_join(env, &g->now, &g->best));
    GRAFT_PASS(graft_guided_reopen(env, g, NULL, 0));
    GRAFT_PASS(graft_guided_list(env, g, 0, &list, &count));
    GRAFT_PASS(teach(env, g, 0));
    qsort(list, count, sizeof *list, graft_guided_compare);
    double last = -1.0;
    for (uint32_t i = 0; i < count && most > 0 && !graft_guided_is_over(g); i++) {
        double ns = 0.0;
        if (list[i].change == last || list[i].change == 0.0) {
            continue; /* The same elsewhere, or nothing. */
        }
        last = list[i].change;
        GRAFT_PASS(graft_walker_price(env, &g->now, list[i].action, &ns));
        GRAFT_PASS(graft_guided_learn(env, g, &g->now.trial));
        most--;
    }
    return GRAFT_OK;
}

typedef struct {
    graft_status (*run)(graft_env *env, graft_guided *g);
    graft_tariff *refined; /* Where the table goes that led to the best graph; NULL: nowhere. */
} phases;

/* Opens a search, runs its phases, and keeps what they found. */
static graft_status run_phases(graft_env *env, graft_arena *arena, graft_environment *environment,
                               const graft_search_choice *choice, const phases *p,
                               graft_plan_found *found)
{
    uint64_t start_ns = graft_clock_ns();
    GRAFT_ARENA(own, (size_t)1 << 20);
    GRAFT_SCOPED(env->scratch);
    if (own == NULL) {
        return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory for the search");
    }
    graft_guided *g = GRAFT_NEW(own, graft_guided, 1);
    GRAFT_PASS(open_guided(env, own, environment, choice, found, g));
    g->kept = p->refined != NULL ? arena : NULL;
    g->refined = *choice->tariff;
    GRAFT_PASS(p->run(env, g));
    graft_progress_finish(&g->progress);
    if (p->refined != NULL) {
        *p->refined = g->refined;
    }
    graft_walker_keep(&g->best, arena, found);
    found->seconds = (double)(graft_clock_ns() - start_ns) / 1e9;
    return GRAFT_OK;
}

static graft_status search_all(graft_env *env, graft_guided *g)
{
    GRAFT_PASS(follow_given(env, g));
    GRAFT_PASS(teach_and_descend(env, g));
    tell(env, g, "descents");
    GRAFT_PASS(explore(env, g));
    tell(env, g, "rollouts");
    GRAFT_PASS(graft_walker_join(env, &g->now, &g->best));
    GRAFT_PASS(graft_guided_sweep(env, g, g->choice->graphs / SWEEP_PART));
    tell(env, g, "single rewrites");
    GRAFT_PASS(graft_guided_iterate(env, g));
    tell(env, g, "iterated search");
    return GRAFT_OK;
}

static graft_status refine(graft_env *env, graft_guided *g)
{
    GRAFT_PASS(follow_given(env, g));
    GRAFT_PASS(teach(env, g, 0));
    GRAFT_PASS(descend(env, g));
    tell(env, g, "descents");
    GRAFT_PASS(label(env, g, LABELS));
    GRAFT_PASS(descend(env, g));
    tell(env, g, "descents after labels");
    GRAFT_PASS(explore(env, g));
    tell(env, g, "rollouts");
    return GRAFT_OK;
}

static graft_status sample(graft_env *env, graft_guided *g)
{
    GRAFT_PASS(graft_guided_roll(env, g, 0, 1e-3 * g->choice->temperature));
    GRAFT_PASS(graft_guided_price(env, g));
    GRAFT_PASS(graft_walker_join(env, &g->best, &g->now));
    g->found->cost_ns = HUGE_VAL; /* Whatever it costs. */
    return GRAFT_OK;
}

graft_status graft_search_guided(graft_env *env, graft_arena *arena, graft_environment *environment,
                                 const graft_search_choice *choice, graft_plan_found *found)
{
    const phases p = {search_all, NULL};
    return run_phases(env, arena, environment, choice, &p, found);
}

graft_status graft_guided_refine(graft_env *env, graft_arena *arena, graft_environment *environment,
                                 const graft_search_choice *choice, graft_tariff *refined,
                                 graft_plan_found *found)
{
    const phases p = {refine, refined};
    return run_phases(env, arena, environment, choice, &p, found);
}

graft_status graft_guided_sample(graft_env *env, graft_arena *arena, graft_environment *environment,
                                 const graft_search_choice *choice, graft_plan_found *found)
{
    const phases p = {sample, NULL};
    return run_phases(env, arena, environment, choice, &p, found);
}

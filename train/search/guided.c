/* guided.c - see guided.h: estimates, prices and rollouts, then the search around the best graph,
 * then the phases. */
#include "train/search/guided.h"

#include "graph/base/log.h"
#include "graph/rule/rulefile.h"
#include "train/search/appraisal.h"
#include "train/search/ledger.h"
#include "train/search/walker.h"

#include <math.h>
#include <stdlib.h>

enum { BLURS_KEPT = 16 };

/* An action with what it is believed to change, in parts of the first graph's cost. */
typedef struct guided_option {
    graft_action action;
    double change;
} guided_option;

typedef struct guided_search {
    const graft_search_choice *choice;
    const graft_environment *environment;
    graft_plan_found *found;
    graft_walker first; /* Stays at the first graph. */
    graft_walker best;
    graft_walker now;
    graft_ledger ledger;
    graft_appraisal appraisal; /* Of `now`. */
    graft_rng rng;
    double first_cost; /* By the ledger, in its units. */
    bool rows_only;    /* There is no fallback. */
    bool *is_always;   /* By rule: it is taken where it costs nothing, too (rulefile.h). */
    graft_blur blurs[BLURS_KEPT + 1]; /* Those that led to better graphs, and one that is tried. */
    uint32_t blur_count;
    graft_tried tried; /* Priced at the best graph. */
    double *changes;   /* By index of now's matches: what was estimated, ... */
    uint32_t *looked;  /* ...at which call, and by which rows: */
    uint32_t *looked_by;
    uint32_t looked_count;
    uint32_t rows_number; /* Goes up when rows change. */
    uint64_t last_hash;   /* Of the graph priced last. */
    graft_arena *kept;    /* Where `refined` goes; NULL: it is not wanted. */
    graft_tariff refined; /* What led to the best graph. */
    graft_progress progress;
} guided_search;

/* As the engine's policy: what a step has to gain. */
static const double least_gain = 1.0 / (1 << GRAFT_GAIN_SHIFT);
/* What a rewrite is believed to cost where there is no row and no fallback: not gain, but
 * little. */
static const double unknown = 1e-3;

/* No graph may be priced any more, or the time is over. */
static bool is_over(guided_search *g)
{
    return g->found->evaluations >= g->choice->graphs ||
           graft_search_is_over(g->environment, g->found);
}

/* ------------------------------------------------------------------- prices */

/* Prices `now`. */
static graft_status price_now(graft_env *env, guided_search *g)
{
    const graft_price *price = &g->environment->options.price;
    g->found->evaluations++;
    graft_progress_update(&g->progress, g->found->evaluations, NULL);
    return price->cost_ns(env, price->context, &g->now.state.graph, &g->now.state.order,
                          &g->now.cost_ns);
}

/* Rows learn from a graph that has been priced. */
static graft_status learn_from(graft_env *env, guided_search *g, const graft_state *state)
{
    return graft_ledger_note(env, &g->ledger, g->choice->cost, state);
}

/* Estimates are made anew, in scratch: rows, or how they are blurred, have changed. */
static graft_status reopen(graft_env *env, guided_search *g, const graft_blur *blurs,
                           uint32_t count)
{
    const graft_place place = {&g->now.state, &g->now.matches, &g->environment->options.apply};
    graft_ledger_blur(&g->ledger, blurs, count);
    g->rows_number++;
    GRAFT_PASS(graft_appraisal_open(env, env->scratch, &g->ledger.tariff, &place, &g->appraisal));
    return graft_appraisal_refresh(env, &g->appraisal);
}

/* ----------------------------------------------------------------- estimates */

/* Room for what is remembered of each match of `now`. */
static void grow_looks(guided_search *g)
{
    const uint32_t count = g->now.matches.item_count;
    if (g->looked_count < count) {
        const size_t room = 2 * (size_t)count;
        g->changes = GRAFT_NEW(g->now.arena, double, room);
        g->looked = GRAFT_NEW(g->now.arena, uint32_t, room);
        g->looked_by = GRAFT_NEW(g->now.arena, uint32_t, room);
        g->looked_count = 2 * count;
    }
}

/* What an action is believed to change, looked at anew. */
static graft_status look(graft_env *env, guided_search *g, graft_action action, double *believed)
{
    const uint32_t item = graft_matches_index(&g->now.matches, action.xfer, action.location);
    graft_change change;
    GRAFT_PASS(graft_appraisal_look(env, &g->appraisal, action, &change));
    const double cost = (double)graft_change_doubted(&change);
    const bool guessed = change.added.fallback_nodes + change.removed.fallback_nodes > 0;
    *believed = g->rows_only && guessed ? unknown : cost / g->first_cost;
    g->changes[item] = *believed;
    g->looked[item] = g->now.matches.call;
    g->looked_by[item] = g->rows_number;
    return GRAFT_OK;
}

/* Lists the actions of `now`, those that `since` gives (see graft_walker_list), with estimates, in
 * scratch. An estimate is made anew only where something has changed beside its match: what a
 * rewrite changes elsewhere, by nodes becoming equal, is seen when the action is about to be taken
 * in a rollout. */
static graft_status list_options(graft_env *env, guided_search *g, uint32_t since,
                                 guided_option **list, uint32_t *count)
{
    const graft_matches *matches = &g->now.matches;
    GRAFT_PASS(graft_appraisal_renew(env, &g->appraisal));
    const graft_action *actions = graft_walker_list(&g->now, env->scratch, since, count);
    *list = GRAFT_NEW(env->scratch, guided_option, *count);
    grow_looks(g);
    for (uint32_t i = 0; i < *count; i++) {
        const uint32_t item = graft_matches_index(matches, actions[i].xfer, actions[i].location);
        (*list)[i] = (guided_option){actions[i], g->changes[item]};
        if (g->looked_by[item] != g->rows_number || g->looked[item] < matches->items[item].moved) {
            GRAFT_PASS(look(env, g, actions[i], &(*list)[i].change));
        }
    }
    return GRAFT_OK;
}

/* Draws one of at least one with a probability of about exp(-change / temperature), all that gain
 * alike when `level`. */
static guided_option *draw_option(guided_search *g, guided_option *list, uint32_t count,
                                  double temperature, bool level)
{
    double lowest = 0.0;
    double sum = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        lowest = fmin(lowest, list[i].change);
    }
    for (uint32_t pass = 0; pass < 2; pass++) {
        double left = pass == 0 ? HUGE_VAL : graft_rng_uniform(&g->rng) * sum;
        for (uint32_t i = 0; i < count; i++) {
            double over = level ? fmax(list[i].change, 0.0) : list[i].change - lowest;
            double weight = exp(-over / temperature);
            sum += pass == 0 ? weight : 0.0;
            left -= weight;
            if (left < 0.0) {
                return &list[i];
            }
        }
    }
    return &list[count - 1];
}

/* ----------------------------------------------------------------- rollouts */

/* Whether a rollout takes it: it gains, or it leaves less at no cost, as the engine simplifies. */
static bool is_wanted(const guided_search *g, const guided_option *option)
{
    return option->change < -least_gain ||
           (option->change <= 0.0 && g->is_always[option->action.xfer]);
}

static uint32_t keep_wanted(const guided_search *g, guided_option *list, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (is_wanted(g, &list[i])) {
            list[kept++] = list[i];
        }
    }
    return kept;
}

static guided_option *lowest_option(guided_option *list, uint32_t count)
{
    guided_option *best = list;
    for (uint32_t i = 1; i < count; i++) {
        best = list[i].change < best->change ? &list[i] : best;
    }
    return best;
}

/* One step of a rollout; *taken: there was one. */
static graft_status roll_on(graft_env *env, guided_search *g, uint32_t since, double temperature,
                            bool *taken)
{
    GRAFT_SCOPED(env->scratch);
    guided_option *list = NULL;
    uint32_t count = 0;
    *taken = false;
    GRAFT_PASS(list_options(env, g, since, &list, &count));
    count = keep_wanted(g, list, count);
    while (count > 0 && !*taken) {
        guided_option *next = temperature > 0.0 ? draw_option(g, list, count, temperature, false)
                                                : lowest_option(list, count);
        GRAFT_PASS(look(env, g, next->action, &next->change));
        *taken = is_wanted(g, next);
        if (*taken) {
            GRAFT_PASS(graft_walker_take(env, &g->now, next->action, 0.0));
        } else {
            *next = list[--count];
        }
    }
    return GRAFT_OK;
}

/* Goes on from `now`, through what `since` gives, until the table knows of no gain: by the greatest
 * (temperature 0), or drawn. */
static graft_status roll(graft_env *env, guided_search *g, uint32_t since, double temperature)
{
    bool taken = true;
    for (uint32_t n = 0; n < g->environment->options.step_limit && taken; n++) {
        GRAFT_PASS(roll_on(env, g, since, temperature, &taken));
        GRAFT_PASS(graft_search_go_on(env));
    }
    return GRAFT_OK;
}

/* Prices `now`, unless it is the graph that was priced last, and takes it when it is the best.
 * Rows learn from it. */
static graft_status judge_rollout(graft_env *env, guided_search *g, bool *better)
{
    uint64_t hash = graft_state_hash(&g->now.state);
    *better = false;
    if (hash == g->last_hash) {
        return GRAFT_OK;
    }
    g->last_hash = hash;
    GRAFT_PASS(price_now(env, g));
    *better = g->now.cost_ns < g->best.cost_ns;
    if (*better && g->kept != NULL) {
        g->refined = graft_ledger_copy(g->kept, &g->ledger);
    }
    GRAFT_PASS(learn_from(env, g, &g->now.state));
    if (*better) {
        GRAFT_PASS(graft_walker_join(env, &g->best, &g->now));
    }
    return GRAFT_OK;
}

/* A rollout from `now`, priced unless it ends at the graph that was priced last; the best graph
 * when it is. Rows learn from it. */
static graft_status roll_out(graft_env *env, guided_search *g, const graft_blur *blurs,
                             uint32_t count, double temperature, bool *better)
{
    GRAFT_SCOPED(env->scratch);
    GRAFT_PASS(reopen(env, g, blurs, count));
    GRAFT_PASS(roll(env, g, 0, temperature));
    return judge_rollout(env, g, better);
}

/* For qsort: the lowest first. */
static int compare_options(const void *a, const void *b)
{
    const guided_option *x = a;
    const guided_option *y = b;
    return (x->change > y->change) - (x->change < y->change);
}

/* Rewrites of a kick; limits of steps that a way may have; rewrites by one rule. */
enum { KICKS_MOST = 4, LONG_WAYS = 2, EVERYWHERE_MOST = 64 };

/* Prices single rewrites of `now`, the best graph, most promising first, and takes each that
 * gains. */
static graft_status sweep(graft_env *env, guided_search *g, uint64_t most)
{
    const uint64_t end = g->found->evaluations + most;
    bool found = true;
    while (found && !is_over(g) && g->found->evaluations < end) {
        GRAFT_SCOPED(env->scratch);
        guided_option *list = NULL;
        uint32_t count = 0;
        found = false;
        GRAFT_PASS(reopen(env, g, NULL, 0));
        GRAFT_PASS(list_options(env, g, 0, &list, &count));
        qsort(list, count, sizeof *list, compare_options);
        for (uint32_t i = 0; i < count && !found; i++) {
            double ns = 0.0;
            if (is_over(g) || g->found->evaluations >= end) {
                break;
            }
            if (graft_walker_was_tried(&g->now, &g->tried, list[i].action)) {
                continue;
            }
            GRAFT_PASS(graft_walker_price(env, &g->now, list[i].action, &ns));
            if (ns < g->now.cost_ns) {
                found = true;
                GRAFT_PASS(graft_walker_take(env, &g->now, list[i].action, ns));
            }
        }
        GRAFT_PASS(graft_search_go_on(env));
    }
    if (g->now.cost_ns < g->best.cost_ns) {
        GRAFT_PASS(graft_walker_join(env, &g->best, &g->now));
        GRAFT_PASS(learn_from(env, g, &g->best.state));
    }
    return GRAFT_OK;
}

/* A few rewrites in one place, drawn by their estimates. */
static graft_status kick(graft_env *env, guided_search *g, uint32_t *since)
{
    static const double temperatures[] = {3e-4, 3e-3, 3e-2};
    const uint32_t kicks = 1 + graft_rng_below(&g->rng, KICKS_MOST);
    const double temperature = temperatures[graft_rng_below(&g->rng, 3)];
    *since = g->now.matches.call + 1;
    for (uint32_t i = 0; i < kicks; i++) {
        GRAFT_SCOPED(env->scratch);
        guided_option *list = NULL;
        uint32_t count = 0;
        GRAFT_PASS(list_options(env, g, i == 0 ? 0 : *since, &list, &count));
        if (count == 0) {
            break;
        }
        const guided_option *next = draw_option(g, list, count, temperature, true);
        GRAFT_PASS(graft_walker_take(env, &g->now, next->action, 0.0));
    }
    return GRAFT_OK;
}

/* The same rule wherever it fits, beginning with one drawn by the estimates. */
static graft_status kick_everywhere(graft_env *env, guided_search *g)
{
    uint32_t xfer = 0;
    uint32_t taken = 0;
    bool more = true;
    for (; more && taken < EVERYWHERE_MOST; taken++) {
        GRAFT_SCOPED(env->scratch);
        guided_option *list = NULL;
        uint32_t count = 0;
        GRAFT_PASS(list_options(env, g, 0, &list, &count));
        if (taken > 0) {
            uint32_t kept = 0;
            for (uint32_t i = 0; i < count; i++) {
                if (list[i].action.xfer == xfer) {
                    list[kept++] = list[i];
                }
            }
            count = kept;
        }
        more = count > 0;
        if (more) {
            const guided_option *next =
                taken > 0 ? lowest_option(list, count) : draw_option(g, list, count, 3e-3, true);
            xfer = next->action.xfer;
            GRAFT_PASS(graft_walker_take(env, &g->now, next->action, 0.0));
        }
    }
    return GRAFT_OK;
}

/* Leaves `now` somewhere near: a few rewrites in one place, as they are or with what gains there
 * after them; or further away, a rule everywhere, or what gains by rows that are much blurred, and
 * then what gains by the rows. */
static graft_status leave(graft_env *env, guided_search *g)
{
    enum { BARE, BLURRED, SETTLED, EVERYWHERE, FAR, WAYS };
    const uint32_t way = graft_rng_below(&g->rng, WAYS);
    const graft_blur blur = {graft_rng_next(&g->rng), way == FAR ? 0.2 : 0.05, false};
    uint32_t since = 0;
    GRAFT_PASS(reopen(env, g, &blur, way == BLURRED || way == FAR ? 1 : 0));
    if (way == FAR) {
        GRAFT_PASS(roll(env, g, 0, 0.0));
        GRAFT_PASS(reopen(env, g, NULL, 0));
    } else if (way == EVERYWHERE) {
        GRAFT_PASS(kick_everywhere(env, g));
    } else {
        GRAFT_PASS(kick(env, g, &since));
    }
    if (way != BARE) {
        GRAFT_PASS(roll(env, g, since, 0.0));
    }
    return GRAFT_OK;
}

/* One round of iterated local search from `now`, which is the best graph or as good. */
static graft_status try_kick(graft_env *env, guided_search *g, bool *better)
{
    GRAFT_SCOPED(env->scratch);
    const uint64_t before = graft_state_hash(&g->now.state);
    const double before_ns = g->now.cost_ns;
    *better = false;
    GRAFT_PASS(leave(env, g));
    const uint64_t hash = graft_state_hash(&g->now.state);
    if (hash == before || hash == g->last_hash) {
        g->now.cost_ns = before_ns;
        if (hash != before) {
            GRAFT_PASS(graft_walker_join(env, &g->now, &g->best));
        }
        return GRAFT_OK;
    }
    g->last_hash = hash;
    GRAFT_PASS(price_now(env, g));
    *better = g->now.cost_ns < g->best.cost_ns;
    const uint32_t longest = g->best.step_count + LONG_WAYS * g->environment->options.step_limit;
    if (*better) {
        GRAFT_PASS(learn_from(env, g, &g->now.state));
        GRAFT_PASS(graft_walker_join(env, &g->best, &g->now));
    } else if (g->now.cost_ns > g->best.cost_ns || g->now.step_count > longest) {
        GRAFT_PASS(graft_walker_join(env, &g->now, &g->best));
    }
    return GRAFT_OK;
}

/* Iterated local search from the best graph, until it is over. */
static graft_status iterate(graft_env *env, guided_search *g)
{
    const uint64_t attempts_most = 16 * g->choice->graphs;
    GRAFT_PASS(graft_walker_join(env, &g->now, &g->best));
    for (uint64_t i = 0; i < attempts_most && g->now.matches.count > 0 && !is_over(g); i++) {
        bool better = false;
        GRAFT_PASS(try_kick(env, g, &better));
        if (better && !is_over(g)) {
            /* After a gain the same may pay elsewhere: rows have learnt of it. */
            GRAFT_PASS(roll_out(env, g, NULL, 0, 0.0, &better));
            GRAFT_PASS(graft_walker_join(env, &g->now, &g->best));
        }
        GRAFT_PASS(graft_search_go_on(env));
    }
    return GRAFT_OK;
}

/* Of all graphs: those spent on rows of unknown forms, on rollouts, and on looking at every rewrite
 * of the best graph. */
enum { TEACH_PART = 4, ROLLOUT_PART = 4, SWEEP_PART = 4 };
/* Descents in a row, and graphs that refining prices for rows of what is nearly taken. */
enum { DESCENTS_MOST = 8, LABELS = 16 };

/* Prices, at `now`, graphs with forms that there is no row for; and rows learn their operators. */
static graft_status teach(graft_env *env, guided_search *g, uint64_t most)
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
        if (knows || is_over(g) || g->found->evaluations >= end) {
            continue;
        }
        GRAFT_PASS(graft_walker_price(env, &g->now, action, &ns));
        GRAFT_PASS(learn_from(env, g, &g->now.trial));
    }
    return GRAFT_OK;
}

/* By the rows as they were given, before any price; then they learn from the first graph. */
static graft_status follow_given(graft_env *env, guided_search *g)
{
    bool better = false;
    if (g->ledger.row_count > 0 && g->choice->graphs > 1) {
        GRAFT_PASS(roll_out(env, g, NULL, 0, 0.0, &better));
        GRAFT_PASS(graft_walker_join(env, &g->now, &g->first));
    }
    GRAFT_PASS(price_now(env, g));
    GRAFT_PASS(learn_from(env, g, &g->now.state));
    GRAFT_PASS(reopen(env, g, NULL, 0));
    g->first_cost = fmax((double)g->appraisal.estimated.cost, 1.0);
    return GRAFT_OK;
}

/* By the rows as they are; prices correct them, so again, until the same graph comes out. */
static graft_status descend(graft_env *env, guided_search *g)
{
    for (uint32_t i = 0; i < DESCENTS_MOST && !is_over(g); i++) {
        bool better = false;
        const uint64_t before = g->last_hash;
        GRAFT_PASS(graft_walker_join(env, &g->now, &g->first));
        GRAFT_PASS(roll_out(env, g, NULL, 0, 0.0, &better));
        if (g->last_hash == before) {
            break;
        }
    }
    return GRAFT_OK;
}

/* Descents, and between them rows for what could be done where the last one has led. */
static graft_status teach_and_descend(graft_env *env, guided_search *g)
{
    const uint64_t end = g->found->evaluations + g->choice->graphs / TEACH_PART;
    double before_ns = 0.0;
    do {
        before_ns = g->best.cost_ns;
        const uint64_t spent = g->found->evaluations;
        GRAFT_PASS(teach(env, g, end > spent ? end - spent : 0));
        GRAFT_PASS(descend(env, g));
        GRAFT_PASS(graft_walker_join(env, &g->now, &g->best));
    } while (g->best.cost_ns < before_ns && g->found->evaluations < end && !is_over(g));
    return GRAFT_OK;
}

/* Rollouts from the first graph: by blurred rows, of which those that lead to a better graph stay
 * blurred, and sampled. */
static graft_status explore(graft_env *env, guided_search *g)
{
    static const double sigmas[] = {0.01, 0.03, 0.1, 0.3};
    const bool refining = g->kept != NULL;
    const uint64_t end =
        g->found->evaluations + (refining ? UINT32_MAX : g->choice->graphs / ROLLOUT_PART);
    for (uint64_t i = 0; g->found->evaluations < end && !is_over(g) && i < 2 * g->choice->graphs;
         i++) {
        bool better = false;
        const bool sampled = i % 5 == 4 && !refining;
        GRAFT_PASS(graft_walker_join(env, &g->now, &g->first));
        g->blurs[g->blur_count] =
            (graft_blur){graft_rng_next(&g->rng), sigmas[i % 4], i / 4 % 2 == 1};
        GRAFT_PASS(roll_out(env, g, g->blurs, g->blur_count + (sampled ? 0 : 1),
                            sampled ? 1e-3 * g->choice->temperature : 0.0, &better));
        g->blur_count += better && !sampled && g->blur_count < BLURS_KEPT ? 1 : 0;
    }
    return GRAFT_OK;
}

/* ------------------------------------------------------------------ all of it */

static graft_status open_guided(graft_env *env, graft_arena *arena, graft_environment *environment,
                                const graft_search_choice *choice, graft_plan_found *found,
                                guided_search *g)
{
    *g = (guided_search){.choice = choice, .environment = environment, .found = found};
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
    GRAFT_PASS(reopen(env, g, NULL, 0));
    g->first_cost = fmax((double)g->appraisal.estimated.cost, 1.0);
    return GRAFT_OK;
}

static void tell(graft_env *env, const guided_search *g, const char *what)
{
    graft_log(env, 2, "%s: %.3f %% after %llu graphs", what,
              100.0 * g->best.cost_ns / g->environment->first_ns,
              (unsigned long long)g->found->evaluations);
}

/* Prices the rewrites of the best graph that the table nearly takes, for rows of what they make. */
static graft_status label(graft_env *env, guided_search *g, uint32_t most)
{
    GRAFT_SCOPED(env->scratch);
    guided_option *list = NULL;
    uint32_t count = 0;
    GRAFT_PASS(graft_walker_join(env, &g->now, &g->best));
    GRAFT_PASS(reopen(env, g, NULL, 0));
    GRAFT_PASS(list_options(env, g, 0, &list, &count));
    GRAFT_PASS(teach(env, g, 0));
    qsort(list, count, sizeof *list, compare_options);
    double last = -1.0;
    for (uint32_t i = 0; i < count && most > 0 && !is_over(g); i++) {
        double ns = 0.0;
        if (list[i].change == last || list[i].change == 0.0) {
            continue; /* The same elsewhere, or nothing. */
        }
        last = list[i].change;
        GRAFT_PASS(graft_walker_price(env, &g->now, list[i].action, &ns));
        GRAFT_PASS(learn_from(env, g, &g->now.trial));
        most--;
    }
    return GRAFT_OK;
}

typedef struct {
    graft_status (*run)(graft_env *env, guided_search *g);
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
    guided_search *g = GRAFT_NEW(own, guided_search, 1);
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

static graft_status search_all(graft_env *env, guided_search *g)
{
    GRAFT_PASS(follow_given(env, g));
    GRAFT_PASS(teach_and_descend(env, g));
    tell(env, g, "descents");
    GRAFT_PASS(explore(env, g));
    tell(env, g, "rollouts");
    GRAFT_PASS(graft_walker_join(env, &g->now, &g->best));
    GRAFT_PASS(sweep(env, g, g->choice->graphs / SWEEP_PART));
    tell(env, g, "single rewrites");
    GRAFT_PASS(iterate(env, g));
    tell(env, g, "iterated search");
    return GRAFT_OK;
}

static graft_status refine(graft_env *env, guided_search *g)
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

static graft_status sample(graft_env *env, guided_search *g)
{
    GRAFT_PASS(roll(env, g, 0, 1e-3 * g->choice->temperature));
    GRAFT_PASS(price_now(env, g));
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

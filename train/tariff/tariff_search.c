/* tariff_search.c - see tariff_search.h. */
#include "train/tariff/tariff_search.h"

#include "graph/base/log.h"
#include "train/search/appraisal.h"

#include <math.h>

/* Of the graph's cost, at the begin of an annealed walk; the findings of searches on recurrent
 * networks. */
static const double first_temperature = 1e-3;

/* The environment's state with the estimates of its rewrites. */
typedef struct {
    graft_env *env;
    graft_environment *environment;
    graft_appraisal appraisal;
} estimating;

static graft_status open_estimating(graft_env *env, graft_environment *environment,
                                    const graft_tariff *tariff, estimating *e)
{
    const graft_place place = {&environment->state, &environment->matches,
                               &environment->options.apply};
    *e = (estimating){.env = env, .environment = environment};
    return graft_appraisal_open(env, env->scratch, tariff, &place, &e->appraisal);
}

static bool is_guessed(const graft_change *change)
{
    return change->added.fallback_nodes + change->removed.fallback_nodes > 0;
}

/* The action whose estimated change is the lowest, if one is below 0. */
static graft_status find_best(estimating *e, graft_action *best, graft_change *lowest)
{
    lowest->cost = 0;
    GRAFT_PASS(graft_appraisal_refresh(e->env, &e->appraisal));
    GRAFT_EACH_ACTION(&e->environment->matches, action)
    {
        graft_change change;
        GRAFT_PASS(graft_appraisal_look(e->env, &e->appraisal, action, &change));
        if (change.cost < lowest->cost) {
            *lowest = change;
            *best = action;
        }
    }
    return graft_search_go_on(e->env);
}

graft_status graft_search_tariff(graft_env *env, graft_arena *arena, graft_environment *environment,
                                 const graft_tariff *tariff, graft_tariff_plan *plan)
{
    uint64_t start_ns = graft_clock_ns();
    GRAFT_SCOPED(env->scratch);
    estimating e;
    *plan = (graft_tariff_plan){.estimates = 0};
    plan->found.steps = GRAFT_NEW(arena, graft_action, environment->options.step_limit);
    GRAFT_PASS(graft_environment_reset(env, environment));
    GRAFT_PASS(open_estimating(env, environment, tariff, &e));
    GRAFT_PASS(graft_appraisal_refresh(env, &e.appraisal));
    plan->first = e.appraisal.estimated;
    plan->last = e.appraisal.estimated;
    while (!environment->terminal) {
        graft_action best = {0, 0};
        graft_change change = {.cost = 0};
        graft_outcome outcome;
        GRAFT_PASS(find_best(&e, &best, &change));
        plan->last = e.appraisal.estimated;
        if (change.cost >= 0) {
            break;
        }
        GRAFT_PASS(graft_environment_step(env, environment, best.xfer, best.location, &outcome));
        plan->found.steps[plan->found.step_count++] = best;
        plan->guessed_steps += is_guessed(&change);
    }
    plan->found.cost_ns = environment->cost_ns;
    plan->estimates = e.appraisal.count;
    plan->found.seconds = (double)(graft_clock_ns() - start_ns) / 1e9;
    return GRAFT_OK;
}

/* ------------------------------------------------------------------- walks */

typedef struct {
    graft_env *env;
    graft_environment *environment;
    graft_cost *cost;
    graft_book *book;
    const graft_walk *walk;
    estimating estimating;
    graft_state trial;
    graft_rng rng;
    uint32_t steps;
} walker;

static bool is_late(const walker *w)
{
    return w->walk->end_ns != 0 && graft_clock_ns() >= w->walk->end_ns;
}

static graft_status note(walker *w, const graft_state *state, uint32_t contexts)
{
    return graft_book_note(w->env, w->book, w->cost, state, w->walk->model, contexts);
}

/* Notes the graph behind an action when it would make forms that were met in few contexts. */
static graft_status note_beside(walker *w, graft_action action)
{
    const graft_environment *environment = w->environment;
    graft_made made;
    const graft_place place = {&environment->state, &environment->matches,
                               &environment->options.apply};
    const graft_rule *rule = graft_place_rule(&place, action);
    GRAFT_PASS(graft_appraisal_plan(w->env, &place, action, &made));
    if (graft_book_wants(w->book, &environment->state.graph, rule, &made, w->walk->model,
                         w->walk->beside_most)) {
        GRAFT_PASS(graft_matches_follow(w->env, &environment->matches, &environment->state, action,
                                        &w->trial));
        GRAFT_PASS(note(w, &w->trial, w->walk->beside_most));
    }
    return GRAFT_OK;
}

static graft_status note_state(walker *w)
{
    GRAFT_PASS(note(w, &w->environment->state, w->walk->contexts_most));
    GRAFT_EACH_ACTION(&w->environment->matches, action)
    {
        GRAFT_PASS(note_beside(w, action));
        GRAFT_PASS(graft_search_go_on(w->env));
        if (is_late(w)) {
            return GRAFT_OK;
        }
    }
    return GRAFT_OK;
}

/* Metropolis: what costs more is taken with a probability that falls with the steps. */
static graft_status draw_annealed(walker *w, graft_action *action, bool *found)
{
    enum { DRAWS_MOST = 400 };
    double left = 1.0 - (double)w->steps / (double)w->walk->steps_most;
    *found = false;
    GRAFT_PASS(graft_appraisal_refresh(w->env, &w->estimating.appraisal));
    double temperature = first_temperature * left * (double)w->estimating.appraisal.estimated.cost;
    for (uint32_t i = 0; i < DRAWS_MOST && !*found; i++) {
        graft_change change;
        *action = graft_matches_draw(&w->environment->matches, &w->rng);
        GRAFT_PASS(graft_appraisal_look(w->env, &w->estimating.appraisal, *action, &change));
        *found = change.cost <= 0 ||
                 graft_rng_uniform(&w->rng) < exp(-(double)change.cost / (temperature + 1.0));
    }
    return GRAFT_OK;
}

static graft_status choose_action(walker *w, graft_action *action, bool *found)
{
    graft_change change = {.cost = 0};
    *found = true;
    switch (w->walk->kind) {
    case GRAFT_WALK_RANDOM:
        *action = graft_matches_draw(&w->environment->matches, &w->rng);
        break;
    case GRAFT_WALK_TARIFF:
        GRAFT_PASS(find_best(&w->estimating, action, &change));
        *found = change.cost < 0;
        break;
    case GRAFT_WALK_ANNEALED:
        GRAFT_PASS(draw_annealed(w, action, found));
        break;
    case GRAFT_WALK_PLAN:
        *found = w->steps < w->walk->actions->step_count;
        *action = *found ? w->walk->actions->steps[w->steps] : *action;
        break;
    }
    return GRAFT_OK;
}

graft_status graft_tariff_walk(graft_env *env, graft_environment *environment, graft_cost *cost,
                               graft_book *book, const graft_walk *walk)
{
    GRAFT_SCOPED(env->scratch);
    walker w = {.env = env, .environment = environment, .cost = cost, .book = book, .walk = walk};
    graft_rng_seed(&w.rng, walk->seed);
    graft_state_open(env->scratch, &environment->state.graph.limits, &w.trial);
    if (walk->tariff != NULL) {
        GRAFT_PASS(open_estimating(env, environment, walk->tariff, &w.estimating));
    }
    GRAFT_PASS(graft_environment_reset(env, environment));
    GRAFT_PASS(note_state(&w));
    while (!environment->terminal && w.steps < walk->steps_most && !is_late(&w)) {
        graft_action action = {0, 0};
        graft_outcome outcome;
        bool found = false;
        GRAFT_PASS(choose_action(&w, &action, &found));
        if (!found) {
            break;
        }
        GRAFT_PASS(
            graft_environment_step(env, environment, action.xfer, action.location, &outcome));
        w.steps++;
        GRAFT_PASS(note_state(&w));
    }
    return GRAFT_OK;
}

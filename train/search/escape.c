/* escape.c - greedy search that goes over low hills: at a graph where no rewrite gains, it tries
 * each one that costs little, then those beside it, then, after the cheapest few of these, once
 * more those beside them. The first of such ways that pays is gone, what gains around its end is
 * taken, and so on. A rewrite that led nowhere is tried again when something has changed beside it.
 *
 * In a recurrent cell the first merge of two products costs, and the second pays for both. */
#include "train/search/walker.h"

#include "graph/base/log.h"

enum { LEVELS = 3, CHEAPEST = 4 };
static const double hill = 0.1; /* Highest, as a part of the first graph's cost. */

typedef struct {
    graft_walker at[LEVELS]; /* After so many rewrites of a way. */
    graft_tried tried;       /* At at[0]. */
    bool found;              /* A way: to at[level], and what comes next. */
    uint32_t level;
    graft_action last;
    double last_ns;
} escape;

/* The cheapest of the actions that were looked at, cheapest first. */
typedef struct {
    graft_action actions[CHEAPEST];
    double ns[CHEAPEST];
    uint32_t count;
} cheapest;

static void note_cheap(cheapest *c, graft_action action, double ns)
{
    uint32_t place = c->count;
    while (place > 0 && ns < c->ns[place - 1]) {
        place--;
    }
    if (place == CHEAPEST) {
        return;
    }
    c->count += c->count < CHEAPEST ? 1 : 0;
    for (uint32_t i = c->count - 1; i > place; i--) {
        c->actions[i] = c->actions[i - 1];
        c->ns[i] = c->ns[i - 1];
    }
    c->actions[place] = action;
    c->ns[place] = ns;
}

/* Looks at what can be done at at[level] beside what has changed since a call. */
static graft_status look(graft_env *env, escape *e, uint32_t level, uint32_t since, cheapest *c)
{
    GRAFT_SCOPED(env->scratch);
    graft_walker *walker = &e->at[level];
    uint32_t count = 0;
    const graft_action *actions = graft_walker_list(walker, env->scratch, since, &count);
    for (uint32_t i = 0; i < count && !e->found; i++) {
        double ns = 0.0;
        GRAFT_PASS(graft_walker_price(env, walker, actions[i], &ns));
        GRAFT_PASS(graft_search_pays(env, walker->environment, &e->at[0].state, &walker->trial,
                                     e->at[0].cost_ns - ns, &e->found));
        if (e->found) {
            e->level = level;
            e->last = actions[i];
            e->last_ns = ns;
        }
        note_cheap(c, actions[i], ns);
    }
    return GRAFT_OK;
}

/* Goes to at[level] and from there one action on, to at[level + 1]; sets *since to the call that
 * this made. */
static graft_status go_up(graft_env *env, escape *e, uint32_t level, graft_action action, double ns,
                          uint32_t *since)
{
    GRAFT_PASS(graft_walker_join(env, &e->at[level + 1], &e->at[level]));
    *since = e->at[level + 1].matches.call + 1;
    return graft_walker_take(env, &e->at[level + 1], action, ns);
}

/* Looks for ways that begin with an action. */
static graft_status try_first(graft_env *env, escape *e, graft_action action)
{
    cheapest second = {.count = 0};
    double ns = 0.0;
    uint32_t since = 0;
    GRAFT_PASS(graft_walker_price(env, &e->at[0], action, &ns));
    GRAFT_PASS(graft_search_pays(env, e->at[0].environment, &e->at[0].state, &e->at[0].trial,
                                 e->at[0].cost_ns - ns, &e->found));
    e->level = 0;
    e->last = action;
    e->last_ns = ns;
    if (e->found || ns - e->at[0].cost_ns > hill * e->at[0].environment->first_ns) {
        return GRAFT_OK;
    }
    GRAFT_PASS(go_up(env, e, 0, action, ns, &since));
    GRAFT_PASS(look(env, e, 1, since, &second));
    for (uint32_t i = 0; i < second.count && !e->found; i++) {
        cheapest third = {.count = 0};
        GRAFT_PASS(go_up(env, e, 1, second.actions[i], second.ns[i], &since));
        GRAFT_PASS(look(env, e, 2, since, &third));
    }
    return GRAFT_OK;
}

/* Looks for a way from at[0]. */
static graft_status find_way(graft_env *env, escape *e, graft_plan_found *found)
{
    GRAFT_SCOPED(env->scratch);
    uint32_t count = 0;
    const graft_action *actions = graft_walker_list(&e->at[0], env->scratch, 0, &count);
    e->found = false;
    for (uint32_t i = 0; i < count && !e->found; i++) {
        GRAFT_PASS(graft_search_go_on(env));
        if (graft_search_is_over(e->at[0].environment, found)) {
            break;
        }
        if (!graft_walker_was_tried(&e->at[0], &e->tried, actions[i])) {
            GRAFT_PASS(try_first(env, e, actions[i]));
        }
    }
    return GRAFT_OK;
}

/* Goes the way that was found, and takes what gains around its end. */
static graft_status go_way(graft_env *env, escape *e)
{
    graft_walker *walker = &e->at[0];
    uint32_t since = walker->matches.call + 1;
    if (e->level > 0) {
        GRAFT_PASS(graft_walker_join(env, walker, &e->at[e->level]));
    }
    GRAFT_PASS(graft_walker_take(env, walker, e->last, e->last_ns));
    return graft_walker_settle(env, walker, since);
}

static graft_status go_on(graft_env *env, escape *e, graft_plan_found *found)
{
    graft_progress progress;
    uint64_t ways = 0;
    graft_progress_start(&progress, env, "escape", "ways",
                         e->at[0].environment->options.step_limit);
    do {
        GRAFT_PASS(find_way(env, e, found));
        if (e->found) {
            GRAFT_PASS(go_way(env, e));
            graft_progress_update(&progress, ++ways, NULL);
        }
    } while (e->found);
    graft_progress_finish(&progress);
    return GRAFT_OK;
}

graft_status graft_search_escape(graft_env *env, graft_arena *arena, graft_environment *environment,
                                 const graft_search_choice *choice, graft_plan_found *found)
{
    (void)choice;
    uint64_t start_ns = graft_clock_ns();
    GRAFT_ARENA(own, (size_t)1 << 20);
    escape *e = GRAFT_NEW(own, escape, 1);
    GRAFT_PASS(graft_search_greedy(env, arena, environment, NULL, found));
    for (uint32_t i = 0; i < LEVELS; i++) {
        GRAFT_PASS(graft_walker_open(env, own, environment, found, &e->at[i]));
    }
    GRAFT_PASS(graft_walker_follow(env, &e->at[0], found->steps, found->step_count));
    GRAFT_PASS(go_on(env, e, found));
    graft_walker_keep(&e->at[0], arena, found);
    found->seconds = (double)(graft_clock_ns() - start_ns) / 1e9;
    return GRAFT_OK;
}

/* explored.c - see explored.h. */
#include "train/search/explored.h"

#include "graph/base/table.h"

enum { FIRST_EXPANDED = 256, FIRST_SEEN = 1024 };

typedef struct expanded {
    graft_graph graph;
    uint32_t parent;
    uint32_t depth; /* Rewrites since the first graph. */
    graft_action action;
} expanded;

struct graft_explored {
    const graft_environment *environment;
    graft_arena *arena; /* Everything below. */
    uint64_t *seen;     /* Hashes of graphs. */
    uint32_t seen_count;
    uint32_t seen_capacity;
    graft_table seen_table;
    expanded *expanded;
    uint32_t expanded_count;
    uint32_t expanded_capacity;
    graft_state state; /* Being expanded. */
    graft_state trial;
    graft_matches matches;
    uint64_t serial;
    graft_successor best;
    graft_plan_found *found;
};

bool graft_successor_before(const graft_successor *a, const graft_successor *b)
{
    return a->cost_ns < b->cost_ns || (a->cost_ns == b->cost_ns && a->serial < b->serial);
}

graft_explored *graft_explored_open(graft_arena *arena, const graft_environment *environment,
                                    graft_plan_found *found)
{
    graft_explored *e = GRAFT_NEW(arena, graft_explored, 1);
    *e = (graft_explored){.environment = environment,
                          .arena = arena,
                          .best = {.parent = GRAFT_EXPLORED_NONE},
                          .found = found};
    *found = (graft_plan_found){.cost_ns = environment->first_ns};
    graft_state_open(arena, &environment->first.graph.limits, &e->state);
    graft_state_open(arena, &environment->first.graph.limits, &e->trial);
    graft_matches_open(arena, environment->xfers, environment->options.location_limit, &e->matches);
    return e;
}

/* ------------------------------------------------------------------ seen before */

static uint64_t hash_seen(const void *explored, uint32_t i)
{
    return ((const graft_explored *)explored)->seen[i];
}

/* Notes a graph; false when it was there already. */
static bool add_seen(graft_explored *e, uint64_t hash)
{
    GRAFT_EACH_ALIKE(&e->seen_table, hash, i)
    {
        if (e->seen[i] == hash) {
            return false;
        }
    }
    graft_table_reserve(e->arena, &e->seen_table, e, hash_seen);
    graft_table_insert(&e->seen_table, hash, e->seen_count);
    GRAFT_PUSH(e->arena, e->seen, e->seen_count, e->seen_capacity, FIRST_SEEN) = hash;
    return true;
}

/* ------------------------------------------------------------------ expanding */

/* Stores the graph of e->state, without slack. */
static graft_status store(graft_env *env, graft_explored *e, const graft_successor *successor)
{
    const graft_graph *graph = &e->state.graph;
    expanded *stored =
        &GRAFT_PUSH(e->arena, e->expanded, e->expanded_count, e->expanded_capacity, FIRST_EXPANDED);
    graft_limits limits = {.nodes = graph->node_end,
                           .values = graph->value_end,
                           .edges = graph->edge_end,
                           .outputs = graph->output_count};
    size_t bytes = graft_graph_bytes(&limits);
    stored->parent = successor == NULL ? GRAFT_EXPLORED_NONE : successor->parent;
    stored->action = successor == NULL ? (graft_action){0, 0} : successor->action;
    stored->depth = successor == NULL ? 0 : e->expanded[successor->parent].depth + 1;
    if (graft_graph_init(&stored->graph, &limits, graft_arena_alloc(e->arena, bytes), bytes) !=
            GRAFT_OK ||
        graft_graph_copy(&stored->graph, graph) != GRAFT_OK) {
        return GRAFT_FAIL(env, GRAFT_INTERNAL, "a stored graph does not fit its own limits");
    }
    return GRAFT_OK;
}

/* Makes the graph that is to be expanded, and finds its matches. */
static graft_status restore(graft_env *env, graft_explored *e, const graft_successor *successor)
{
    const graft_apply_options *options = &e->environment->options.apply;
    if (successor == NULL) {
        GRAFT_PASS(graft_state_set(env, &e->state, &e->environment->first.graph));
        (void)add_seen(e, graft_state_hash(&e->state));
    } else {
        GRAFT_PASS(graft_state_set(env, &e->state, &e->expanded[successor->parent].graph));
        graft_matches_find(&e->matches, &e->state, options);
        GRAFT_PASS(graft_matches_apply(env, &e->matches, successor->action, &e->state));
    }
    GRAFT_PASS(store(env, e, successor));
    graft_matches_find(&e->matches, &e->state, options);
    return GRAFT_OK;
}

/* What the rewrites up to a successor of the graph expanded last have to bring. */
static double charge_ns(const graft_explored *e)
{
    return e->environment->options.least_gain * e->environment->first_ns *
           (e->expanded[e->expanded_count - 1].depth + 1.0);
}

static graft_status try_action(graft_env *env, graft_explored *e, graft_action action,
                               graft_successor *successor, bool *is_new)
{
    const graft_price *price = &e->environment->options.price;
    double ns = 0;
    GRAFT_PASS(graft_matches_follow(env, &e->matches, &e->state, action, &e->trial));
    *is_new = add_seen(e, graft_state_hash(&e->trial));
    if (*is_new) {
        GRAFT_PASS(price->cost_ns(env, price->context, &e->trial.graph, &e->trial.order, &ns));
        e->found->evaluations++;
        ns += charge_ns(e);
        *successor = (graft_successor){ns, e->serial++, e->expanded_count - 1, action};
        if (ns < e->found->cost_ns) {
            e->found->cost_ns = ns;
            e->best = *successor;
        }
    }
    return GRAFT_OK;
}

graft_status graft_explored_expand(graft_env *env, graft_explored *explored,
                                   const graft_successor *successor, graft_explored_visit visit,
                                   void *search)
{
    GRAFT_PASS(graft_search_go_on(env));
    GRAFT_PASS(restore(env, explored, successor));
    explored->found->dequeues++;
    GRAFT_EACH_ACTION(&explored->matches, action)
    {
        if (graft_search_is_over(explored->environment, explored->found)) {
            return GRAFT_OK;
        }
        graft_successor next;
        bool is_new = false;
        GRAFT_PASS(try_action(env, explored, action, &next, &is_new));
        if (is_new) {
            visit(search, &next);
        }
    }
    return GRAFT_OK;
}

void graft_explored_trace(graft_arena *arena, const graft_explored *explored)
{
    graft_plan_found *found = explored->found;
    const graft_successor *best = &explored->best;
    uint32_t count = 0;
    for (uint32_t p = best->parent; p != GRAFT_EXPLORED_NONE; p = explored->expanded[p].parent) {
        count++;
    }
    found->steps = GRAFT_NEW(arena, graft_action, count);
    found->step_count = count;
    found->cost_ns -=
        explored->environment->options.least_gain * explored->environment->first_ns * (double)count;
    uint32_t parent = best->parent;
    graft_action action = best->action;
    while (count > 0) {
        found->steps[--count] = action;
        action = explored->expanded[parent].action;
        parent = explored->expanded[parent].parent;
    }
}

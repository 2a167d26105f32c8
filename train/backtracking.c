/* backtracking.c - TASO's cost-based backtracking search (Jia et al., SOSP 2019, section 5; the
 * dissertation's Algorithm 2): a queue of graphs, cheapest first; every successor dearer than alpha
 * times the best is dropped.
 *
 * A queued graph is (parent, action, cost): its bytes are made only when it is taken from the
 * queue, by applying the action to the parent's stored graph. Graphs are told apart by the engine's
 * hash. */
#include "graph/log.h"
#include "train/search.h"

#include <string.h>

#define NO_PARENT UINT32_MAX

/* A graph that was taken from the queue. */
typedef struct expanded {
    graft_graph graph;
    uint32_t parent;
    graft_action action;
} expanded;

typedef struct queued {
    double cost_ns;
    uint64_t serial; /* Breaks ties: first in, first out. */
    uint32_t parent;
    graft_action action;
} queued;

typedef struct search {
    graft_environment *environment;
    const graft_backtracking_options *options;
    graft_arena *arena; /* Everything below; freed when the search ends. */
    queued *heap;
    size_t heap_count;
    size_t heap_capacity;
    uint64_t *seen; /* Open addressing; 0 is empty. */
    size_t seen_count;
    size_t seen_capacity;
    expanded *expanded;
    uint32_t expanded_count;
    graft_state state; /* Being expanded. */
    graft_state trial;
    graft_matches matches;
    uint64_t serial;
    uint32_t best_parent;
    graft_action best_action;
    graft_plan_found *found;
} search;

/* ------------------------------------------------------------------ tables */

static bool queued_before(const queued *a, const queued *b)
{
    return a->cost_ns < b->cost_ns || (a->cost_ns == b->cost_ns && a->serial < b->serial);
}

static void queue_push(search *s, queued item)
{
    if (s->heap_count == s->heap_capacity) {
        size_t capacity = s->heap_capacity * 2 + 1024;
        queued *heap = GRAFT_NEW(s->arena, queued, capacity);
        if (s->heap_count > 0) {
            memcpy(heap, s->heap, s->heap_count * sizeof *heap);
        }
        s->heap = heap;
        s->heap_capacity = capacity;
    }
    size_t i = s->heap_count++;
    while (i > 0 && queued_before(&item, &s->heap[(i - 1) / 2])) {
        s->heap[i] = s->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    s->heap[i] = item;
}

static queued queue_pop(search *s)
{
    queued top = s->heap[0];
    queued item = s->heap[--s->heap_count];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= s->heap_count) {
            break;
        }
        if (child + 1 < s->heap_count && queued_before(&s->heap[child + 1], &s->heap[child])) {
            child++;
        }
        if (!queued_before(&s->heap[child], &item)) {
            break;
        }
        s->heap[i] = s->heap[child];
        i = child;
    }
    s->heap[i] = item;
    return top;
}

static size_t find_seen(const search *s, uint64_t hash)
{
    size_t i = (size_t)(hash & (s->seen_capacity - 1));
    while (s->seen[i] != 0 && s->seen[i] != hash) {
        i = (i + 1) & (s->seen_capacity - 1);
    }
    return i;
}

/* Notes a graph; false when it was there already. */
static bool add_seen(search *s, uint64_t hash)
{
    hash += hash == 0;
    if (s->seen_count * 2 >= s->seen_capacity) {
        uint64_t *old = s->seen;
        size_t old_capacity = s->seen_capacity;
        s->seen_capacity = old_capacity == 0 ? 4096 : old_capacity * 2;
        s->seen = GRAFT_NEW(s->arena, uint64_t, s->seen_capacity);
        for (size_t i = 0; i < old_capacity; i++) {
            if (old[i] != 0) {
                s->seen[find_seen(s, old[i])] = old[i];
            }
        }
    }
    size_t i = find_seen(s, hash);
    if (s->seen[i] == hash) {
        return false;
    }
    s->seen[i] = hash;
    s->seen_count++;
    return true;
}

/* ------------------------------------------------------------------ search */

/* Stores the graph of s->state, without slack. */
static graft_status store_expanded(graft_env *env, search *s, uint32_t parent, graft_action action)
{
    const graft_graph *graph = &s->state.graph;
    expanded *e = &s->expanded[s->expanded_count];
    graft_limits limits = {.nodes = graph->node_end,
                           .values = graph->value_end,
                           .edges = graph->edge_end,
                           .outputs = graph->output_count};
    size_t bytes = graft_graph_bytes(&limits);
    e->parent = parent;
    e->action = action;
    if (graft_graph_init(&e->graph, &limits, graft_arena_alloc(s->arena, bytes), bytes) !=
            GRAFT_OK ||
        graft_graph_copy(&e->graph, graph) != GRAFT_OK) {
        return GRAFT_FAIL(env, GRAFT_INTERNAL, "a stored graph does not fit its own limits");
    }
    s->expanded_count++;
    return GRAFT_OK;
}

/* Tries one successor of s->state: keeps it when it is the best, queues it when it is near. */
static graft_status try_successor(graft_env *env, search *s, graft_action action)
{
    graft_status status = GRAFT_OK;
    const graft_environment *environment = s->environment;
    double ns = 0;
    GRAFT_CHECK(graft_state_set(env, &s->trial, &s->state.graph));
    GRAFT_CHECK(graft_state_apply(env, &s->trial, &s->matches.xfers->rules[action.xfer],
                                  graft_matches_get(&s->matches, action.xfer, action.location),
                                  &environment->options.apply));
    if (!add_seen(s, graft_state_hash(&s->trial))) {
        goto done;
    }
    GRAFT_CHECK(environment->options.price.cost_ns(env, environment->options.price.context,
                                                   &s->trial.graph, &s->trial.order, &ns));
    s->found->evaluations++;
    if (ns < s->found->cost_ns) {
        s->found->cost_ns = ns;
        s->best_parent = s->expanded_count - 1;
        s->best_action = action;
    }
    if (ns < s->options->alpha * s->found->cost_ns) {
        queue_push(s, (queued){.cost_ns = ns,
                               .serial = s->serial++,
                               .parent = s->expanded_count - 1,
                               .action = action});
    }
done:
    return status;
}

/* Queues the successors of s->state, which has just been stored. */
static graft_status expand(graft_env *env, search *s)
{
    graft_status status = GRAFT_OK;
    graft_matches_find(&s->matches, &s->state, &s->environment->options.apply);
    for (uint32_t x = 0; x < s->matches.xfers->count; x++) {
        for (uint32_t l = 0; l < graft_matches_count(&s->matches, x); l++) {
            graft_action action = {.xfer = (uint16_t)x, .location = (uint16_t)l};
            GRAFT_CHECK(try_successor(env, s, action));
        }
    }
done:
    return status;
}

/* Makes the graph of a queue entry in s->state: its parent's, with the action applied. */
static graft_status restore(graft_env *env, search *s, const queued *item)
{
    graft_status status = GRAFT_OK;
    GRAFT_CHECK(graft_state_set(env, &s->state, &s->expanded[item->parent].graph));
    graft_matches_find(&s->matches, &s->state, &s->environment->options.apply);
    GRAFT_CHECK(
        graft_state_apply(env, &s->state, &s->matches.xfers->rules[item->action.xfer],
                          graft_matches_get(&s->matches, item->action.xfer, item->action.location),
                          &s->environment->options.apply));
done:
    return status;
}

/* Writes the actions from the first graph to the best one. */
static void trace_plan(graft_arena *arena, const search *s)
{
    graft_plan_found *found = s->found;
    uint32_t count = 0;
    if (s->best_parent != NO_PARENT) {
        count = 1;
        for (uint32_t p = s->best_parent; s->expanded[p].parent != NO_PARENT;
             p = s->expanded[p].parent) {
            count++;
        }
    }
    found->steps = GRAFT_NEW(arena, graft_action, count);
    found->step_count = count;
    uint32_t parent = s->best_parent;
    graft_action action = s->best_action;
    while (count > 0) {
        found->steps[--count] = action;
        action = s->expanded[parent].action;
        parent = s->expanded[parent].parent;
    }
}

static graft_status run_search(graft_env *env, search *s, uint64_t start_ns)
{
    graft_status status = GRAFT_OK;
    graft_progress progress;
    graft_progress_start(&progress, env, "backtracking", "graphs", s->options->dequeue_limit);
    GRAFT_CHECK(graft_state_set(env, &s->state, &s->environment->first.graph));
    add_seen(s, graft_state_hash(&s->state));
    GRAFT_CHECK(store_expanded(env, s, NO_PARENT, (graft_action){0, 0}));
    GRAFT_CHECK(expand(env, s));
    while (s->heap_count > 0 && s->found->dequeues + 1 < s->options->dequeue_limit) {
        GRAFT_CHECK(graft_search_go_on(env));
        queued item = queue_pop(s);
        double seconds = (double)(graft_clock_ns() - start_ns) / 1e9;
        if (s->options->seconds_limit > 0 && seconds > s->options->seconds_limit) {
            break;
        }
        s->found->dequeues++;
        GRAFT_CHECK(restore(env, s, &item));
        GRAFT_CHECK(store_expanded(env, s, item.parent, item.action));
        GRAFT_CHECK(expand(env, s));
        graft_progress_update(&progress, s->found->dequeues, NULL);
    }
    graft_progress_finish(&progress);
    s->found->dequeues++; /* The first graph. */
done:
    return status;
}

graft_status graft_search_backtracking(graft_env *env, graft_arena *arena,
                                       graft_environment *environment,
                                       const graft_backtracking_options *options,
                                       graft_plan_found *found)
{
    graft_status status = GRAFT_OK;
    uint64_t start_ns = graft_clock_ns();
    search s = {.environment = environment,
                .options = options,
                .arena = graft_arena_new((size_t)1 << 20),
                .best_parent = NO_PARENT,
                .found = found};
    if (s.arena == NULL) {
        return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory for the search");
    }
    *found = (graft_plan_found){.cost_ns = environment->first_ns};
    s.expanded = GRAFT_NEW(s.arena, expanded, options->dequeue_limit + 1);
    graft_state_open(s.arena, &environment->first.graph.limits, &s.state);
    graft_state_open(s.arena, &environment->first.graph.limits, &s.trial);
    graft_matches_open(s.arena, environment->xfers, environment->options.location_limit,
                       &s.matches);
    GRAFT_CHECK(run_search(env, &s, start_ns));
    trace_plan(arena, &s);
    found->seconds = (double)(graft_clock_ns() - start_ns) / 1e9;
done:
    graft_arena_free(s.arena);
    return status;
}

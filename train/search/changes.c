/* changes.c - see changes.h. */
#include "train/search/changes.h"

#include <assert.h>
#include <string.h>

enum { NATURE = 1, USES = 2 }; /* Of a value: what it is; how often it is read. */

void graft_changes_forget(graft_changes *changes) { changes->known = false; }

static void open_changes(graft_changes *c, graft_arena *arena, const graft_limits *limits,
                         bool paths)
{
    size_t bytes = graft_graph_bytes(limits);
    graft_status status =
        graft_graph_init(&c->before, limits, graft_arena_alloc(arena, bytes), bytes);
    assert(status == GRAFT_OK); /* The buffer has the size that was asked for. */
    (void)status;
    c->use_count = GRAFT_NEW(arena, graft_index, limits->values);
    c->of_value = GRAFT_NEW(arena, uint8_t, limits->values);
    c->touched = GRAFT_NEW(arena, bool, limits->nodes);
    c->near = GRAFT_NEW(arena, bool, limits->nodes);
    c->words = (limits->nodes + 63) / 64;
    c->touched_bits = GRAFT_NEW(arena, uint64_t, c->words);
    c->sources = paths ? GRAFT_NEW(arena, uint64_t, limits->nodes * c->words) : NULL;
    c->sources_before = paths ? GRAFT_NEW(arena, uint64_t, limits->nodes * c->words) : NULL;
}

static graft_index larger(graft_index a, graft_index b) { return a > b ? a : b; }

static void compare_values(graft_changes *c, const graft_state *state)
{
    const graft_graph *graph = &state->graph;
    graft_index end = larger(graph->value_end, c->before.value_end);
    for (graft_index v = 0; v < end; v++) {
        bool both = v < graph->value_end && v < c->before.value_end;
        const graft_value *now = &graph->values[v];
        const graft_value *old = &c->before.values[v];
        c->of_value[v] = NATURE | USES;
        if (both) {
            bool same =
                now->is_const == old->is_const && graft_shape_equal(&now->shape, &old->shape);
            bool read = state->order.use_count[v] == c->use_count[v];
            c->of_value[v] = (uint8_t)((same ? 0 : NATURE) | (read ? 0 : USES));
        }
    }
}

static bool same_node(const graft_changes *c, const graft_graph *graph, graft_index n)
{
    const graft_node *now = &graph->nodes[n];
    const graft_node *old = &c->before.nodes[n];
    uint32_t edges = (uint32_t)now->input_count + now->output_count;
    bool same = now->op == old->op && now->is_const == old->is_const &&
                now->input_count == old->input_count && now->output_count == old->output_count &&
                memcmp(now->attrs, old->attrs, sizeof now->attrs) == 0;
    for (uint32_t i = 0; same && now->op != GRAFT_OP_NONE && i < edges; i++) {
        graft_index v = graph->edges[now->first_edge + i];
        uint32_t counts = i < now->input_count ? NATURE : NATURE | USES;
        same = v == c->before.edges[old->first_edge + i] &&
               (v == GRAFT_NONE || (c->of_value[v] & counts) == 0);
    }
    return same;
}

static void compare_nodes(graft_changes *c, const graft_graph *graph)
{
    c->node_end = larger(graph->node_end, c->before.node_end);
    for (graft_index n = 0; n < c->node_end; n++) {
        c->touched[n] = n >= graph->node_end || n >= c->before.node_end || !same_node(c, graph, n);
        c->near[n] = c->touched[n];
    }
}

static void spread_nearness(graft_changes *c, const graft_graph *graph)
{
    for (graft_index n = 0; n < graph->node_end; n++) {
        for (uint32_t i = 0; graph->nodes[n].op != GRAFT_OP_NONE && i < graph->nodes[n].input_count;
             i++) {
            graft_index v = graft_node_input(graph, n, i);
            if (v != GRAFT_NONE && graph->values[v].kind == GRAFT_VALUE_COMPUTED) {
                graft_index producer = graph->values[v].node;
                c->near[n] = c->near[n] || c->touched[producer];
                c->near[producer] = c->near[producer] || c->touched[n];
            }
        }
    }
}

/* ------------------------------------------------------------------- paths */

static void find_sources(graft_changes *c, const graft_state *state)
{
    const graft_graph *graph = &state->graph;
    uint64_t *swap = c->sources_before;
    c->sources_before = c->sources;
    c->sources = swap;
    for (graft_index i = 0; i < state->order.count; i++) {
        graft_index n = state->order.order[i];
        uint64_t *own = &c->sources[n * c->words];
        memset(own, 0, c->words * sizeof own[0]);
        for (uint32_t k = 0; k < graph->nodes[n].input_count; k++) {
            graft_index v = graft_node_input(graph, n, k);
            if (v == GRAFT_NONE || graph->values[v].kind != GRAFT_VALUE_COMPUTED) {
                continue;
            }
            const uint64_t *from = &c->sources[graph->values[v].node * c->words];
            for (size_t w = 0; w < c->words; w++) {
                own[w] |= from[w];
            }
        }
        own[n / 64] |= UINT64_C(1) << n % 64;
    }
}

/* Whether a value has its producer still, which has not changed: what it lost, that node's inputs
 * did. */
static bool comes_alike(const graft_changes *c, const graft_graph *graph, graft_index v)
{
    const graft_value *now = &graph->values[v];
    const graft_value *old = &c->before.values[v];
    return now->kind == GRAFT_VALUE_COMPUTED && old->kind == GRAFT_VALUE_COMPUTED &&
           now->node == old->node && !c->touched[now->node];
}

/* Whether value `v` depended on a node that has not changed and does not any more. */
static bool has_lost(const graft_changes *c, const graft_graph *graph, graft_index v)
{
    const graft_value *now = &graph->values[v];
    const graft_value *old = &c->before.values[v];
    bool lost = false;
    if (old->kind != GRAFT_VALUE_COMPUTED) {
        return false;
    }
    const uint64_t *former = &c->sources_before[old->node * c->words];
    const uint64_t *left =
        now->kind == GRAFT_VALUE_COMPUTED ? &c->sources[now->node * c->words] : NULL;
    for (size_t w = 0; w < c->words && !lost; w++) {
        lost = (former[w] & ~(left == NULL ? 0 : left[w]) & ~c->touched_bits[w]) != 0;
    }
    return lost;
}

static void find_lost(graft_changes *c, const graft_graph *graph)
{
    memset(c->touched_bits, 0, c->words * sizeof c->touched_bits[0]);
    for (graft_index n = 0; n < c->node_end; n++) {
        c->touched_bits[n / 64] |= (uint64_t)c->touched[n] << n % 64;
    }
    c->lost = false;
    for (graft_index n = 0; n < graph->node_end && !c->lost; n++) {
        bool same = graph->nodes[n].op != GRAFT_OP_NONE && !c->touched[n];
        for (uint32_t k = 0; same && k < graph->nodes[n].input_count && !c->lost; k++) {
            graft_index v = graft_node_input(graph, n, k);
            c->lost = v != GRAFT_NONE && !comes_alike(c, graph, v) && has_lost(c, graph, v);
        }
    }
}

/* -------------------------------------------------------------------- all of it */

static bool same_limits(const graft_limits *a, const graft_limits *b)
{
    return a->nodes == b->nodes && a->values == b->values && a->edges == b->edges &&
           a->outputs == b->outputs;
}

bool graft_changes_find(graft_changes *changes, graft_arena *arena, const graft_state *state,
                        bool paths)
{
    const graft_graph *graph = &state->graph;
    bool fits = same_limits(&changes->before.limits, &graph->limits);
    bool known = changes->known && fits;
    changes->known = true;
    if (!fits) {
        open_changes(changes, arena, &graph->limits, paths);
    }
    if (paths) {
        find_sources(changes, state);
    }
    if (known) {
        compare_values(changes, state);
        compare_nodes(changes, graph);
        spread_nearness(changes, graph);
    }
    if (known && paths) {
        find_lost(changes, graph);
    }
    graft_status status = graft_graph_copy(&changes->before, graph);
    assert(status == GRAFT_OK); /* The limits are the same. */
    (void)status;
    memcpy(changes->use_count, state->order.use_count, graph->value_end * sizeof(graft_index));
    return known;
}

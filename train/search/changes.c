/* changes.c - see changes.h. */
#include "train/search/changes.h"

#include <assert.h>
#include <string.h>

/* Of a value: what it is; how often it is read; which node makes it. */
enum { NATURE = 1, USES = 2, MAKER = 4 };
/* Parts of a node's words that `stirred` tells apart. */
enum { PARTS = 64 };

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
    c->moved = GRAFT_NEW(arena, uint32_t, limits->nodes);
    c->block_shift = 0;
    while ((limits->nodes >> c->block_shift) >= 64) {
        c->block_shift++;
    }
    c->words = (limits->nodes + 63) / 64;
    c->part_words = (c->words + PARTS - 1) / PARTS;
    c->touched_bits = GRAFT_NEW(arena, uint64_t, c->words);
    c->stirred = paths ? GRAFT_NEW(arena, uint64_t, limits->nodes) : NULL;
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
        c->of_value[v] = NATURE | USES | MAKER;
        if (both) {
            bool same = now->kind == old->kind && now->is_const == old->is_const &&
                        graft_shape_equal(&now->shape, &old->shape);
            bool read = state->order.use_count[v] == c->use_count[v];
            bool made = now->kind == old->kind && now->node == old->node;
            c->of_value[v] =
                (uint8_t)((same ? 0 : NATURE) | (read ? 0 : USES) | (made ? 0 : MAKER));
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
        c->moved[n] = c->touched[n] ? c->call : c->moved[n];
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
    c->near_blocks = 0;
    for (graft_index n = 0; n < c->node_end; n++) {
        c->near_blocks |= c->near[n] ? graft_changes_block(c, n) : 0;
    }
}

/* ------------------------------------------------------------------- paths */

/* Whether a value comes from where it did: it has no producer, or has it still, and that has not
 * changed; what the value lost, or gained, that node's inputs did. */
static bool comes_alike(const graft_changes *c, const graft_graph *graph, graft_index v)
{
    const graft_value *now = &graph->values[v];
    return (c->of_value[v] & MAKER) == 0 &&
           (now->kind != GRAFT_VALUE_COMPUTED || !c->touched[now->node]);
}

/* Words `from` to `to` of what a node depends on, from those of its operands; false when they are
 * as they were. */
static bool join_words(graft_changes *c, const graft_graph *graph, graft_index n, size_t from,
                       size_t to)
{
    bool changed = false;
    for (size_t w = from; w < to; w++) {
        uint64_t *column = graft_changes_column(c, c->sources, w);
        uint64_t bits = n / 64 == w ? UINT64_C(1) << n % 64 : 0;
        for (uint32_t k = 0; k < graph->nodes[n].input_count; k++) {
            graft_index v = graft_node_input(graph, n, k);
            if (v != GRAFT_NONE && graph->values[v].kind == GRAFT_VALUE_COMPUTED) {
                bits |= column[graph->values[v].node];
            }
        }
        changed = changed || bits != column[n];
        column[n] = bits;
    }
    return changed;
}

/* The parts of its words that a node has to look at, as its operands' have changed. */
static uint64_t find_stirred(const graft_changes *c, const graft_graph *graph, graft_index n)
{
    uint64_t parts = c->touched[n] ? UINT64_MAX : 0;
    for (uint32_t k = 0; parts != UINT64_MAX && k < graph->nodes[n].input_count; k++) {
        graft_index v = graft_node_input(graph, n, k);
        if (v != GRAFT_NONE && !comes_alike(c, graph, v)) {
            parts = UINT64_MAX;
        } else if (v != GRAFT_NONE && graph->values[v].kind == GRAFT_VALUE_COMPUTED) {
            parts |= c->stirred[graph->values[v].node];
        }
    }
    return parts;
}

/* The place in the order of the first node that is touched. */
static graft_index first_touched(const graft_changes *c, const graft_state *state)
{
    graft_index first = state->order.count;
    for (graft_index n = 0; n < state->graph.node_end; n++) {
        if (c->touched[n] && state->graph.nodes[n].op != GRAFT_OP_NONE &&
            state->order.position[n] < first) {
            first = state->order.position[n];
        }
    }
    return first;
}

static void keep_touched(graft_changes *c)
{
    for (graft_index n = 0; n < c->node_end; n++) {
        for (size_t w = 0; c->touched[n] && w < c->words; w++) {
            graft_changes_column(c, c->sources_before, w)[n] =
                graft_changes_column(c, c->sources, w)[n];
        }
    }
}

/* A rewrite changes few words, the same ones of all nodes behind it. */
static void find_sources(graft_changes *c, const graft_state *state, bool known)
{
    memset(c->stirred, 0, c->before.limits.nodes * sizeof c->stirred[0]);
    if (known) {
        keep_touched(c);
    }
    for (graft_index i = known ? first_touched(c, state) : 0; i < state->order.count; i++) {
        graft_index n = state->order.order[i];
        uint64_t parts = known ? find_stirred(c, &state->graph, n) : UINT64_MAX;
        for (uint32_t p = 0; p * c->part_words < c->words && parts >> p != 0; p++) {
            const size_t end = (p + 1) * c->part_words;
            if ((parts >> p & 1U) != 0 && join_words(c, &state->graph, n, p * c->part_words,
                                                     end < c->words ? end : c->words)) {
                c->stirred[n] |= UINT64_C(1) << p;
            }
        }
    }
}

/* Whether a node that has not changed reads value `v`. */
static bool is_read_as_before(const graft_changes *c, const graft_order *order, graft_index v)
{
    bool read = false;
    for (graft_index u = order->use_first[v]; u < order->use_first[v + 1] && !read; u++) {
        read = !c->touched[order->uses[u]];
    }
    return read;
}

/* Compares what value `v` depends on with what it did, nodes that have not changed alone. It comes
 * otherwise than it did, so the node that made it is touched. */
static void compare_paths(graft_changes *c, const graft_graph *graph, graft_index v)
{
    const graft_value *now = &graph->values[v];
    const graft_value *old = &c->before.values[v];
    for (size_t w = 0; w < c->words; w++) {
        const uint64_t other = ~c->touched_bits[w];
        const uint64_t was = old->kind == GRAFT_VALUE_COMPUTED
                                 ? graft_changes_column(c, c->sources_before, w)[old->node] & other
                                 : 0;
        const uint64_t is = now->kind == GRAFT_VALUE_COMPUTED
                                ? graft_changes_column(c, c->sources, w)[now->node] & other
                                : 0;
        c->lost = c->lost || (was & ~is) != 0;
        c->gained = c->gained || (is & ~was) != 0;
    }
}

static void find_lost(graft_changes *c, const graft_graph *graph, const graft_order *order)
{
    memset(c->touched_bits, 0, c->words * sizeof c->touched_bits[0]);
    for (graft_index n = 0; n < c->node_end; n++) {
        c->touched_bits[n / 64] |= (uint64_t)c->touched[n] << n % 64;
    }
    c->lost = false;
    c->gained = false;
    for (graft_index v = 0; v < graph->value_end; v++) {
        if (graph->values[v].kind != GRAFT_VALUE_FREE && !comes_alike(c, graph, v) &&
            is_read_as_before(c, order, v)) {
            compare_paths(c, graph, v);
        }
    }
}

/* -------------------------------------------------------------------- all of it */

bool graft_changes_find(graft_changes *changes, graft_arena *arena, const graft_state *state,
                        bool paths)
{
    const graft_graph *graph = &state->graph;
    const graft_limits *a = &changes->before.limits;
    bool fits = a->nodes == graph->limits.nodes && a->values == graph->limits.values &&
                a->edges == graph->limits.edges && a->outputs == graph->limits.outputs;
    bool known = changes->known && fits;
    changes->known = true;
    changes->call++;
    if (!fits) {
        open_changes(changes, arena, &graph->limits, paths);
    }
    if (known) {
        compare_values(changes, state);
        compare_nodes(changes, graph);
        spread_nearness(changes, graph);
    } else {
        for (graft_index n = 0; n < changes->before.limits.nodes; n++) {
            changes->moved[n] = changes->call;
        }
    }
    if (paths) {
        find_sources(changes, state, known);
    }
    if (known && paths) {
        find_lost(changes, graph, &state->order);
    }
    graft_status status = graft_graph_copy(&changes->before, graph);
    assert(status == GRAFT_OK); /* The limits are the same. */
    (void)status;
    memcpy(changes->use_count, state->order.use_count, graph->value_end * sizeof(graft_index));
    return known;
}

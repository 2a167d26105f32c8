/* equal.c - see equal.h. */
#include "graph/equal.h"

#include "graph/model.h"

#include <assert.h>
#include <string.h>

/* Nodes are met in order, so those of their operands have been: a table by hash, probed linearly,
 * has the first of each set. */
typedef struct {
    const graft_graph *graph;
    graft_index *same;  /* By value: the one to read instead; NULL until two nodes are equal. */
    graft_index *table; /* Node + 1; 0: free. */
    uint32_t mask;
} equal_search;

static graft_index operand(const equal_search *s, graft_index node, uint32_t k)
{
    graft_index value = graft_node_input(s->graph, node, k);
    return s->same == NULL || value == GRAFT_NONE ? value : s->same[value];
}

static uint32_t hash_node(const equal_search *s, graft_index node)
{
    const graft_node *n = &s->graph->nodes[node];
    uint64_t hash = n->op;
    for (uint32_t k = 0; k < n->input_count; k++) {
        hash = (hash ^ operand(s, node, k)) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return (uint32_t)hash & s->mask;
}

static bool is_equal(const equal_search *s, graft_index a, graft_index b)
{
    const graft_node *x = &s->graph->nodes[a];
    const graft_node *y = &s->graph->nodes[b];
    bool equal = x->op == y->op && memcmp(x->attrs, y->attrs, sizeof(x->attrs)) == 0;
    for (uint32_t k = 0; k < x->input_count && equal; k++) {
        equal = operand(s, a, k) == operand(s, b, k);
    }
    return equal;
}

/* The first node that is equal to this one: itself, unless one was met before. */
static graft_index find_first(const equal_search *s, graft_index node)
{
    uint32_t at = hash_node(s, node);
    while (s->table[at] != 0) {
        if (is_equal(s, s->table[at] - 1, node)) {
            return s->table[at] - 1;
        }
        at = (at + 1) & s->mask;
    }
    s->table[at] = node + 1;
    return node;
}

static void note_same(equal_search *s, graft_arena *arena, graft_index node, graft_index first)
{
    if (s->same == NULL) {
        s->same = GRAFT_NEW(arena, graft_index, s->graph->value_end);
        for (graft_index v = 0; v < s->graph->value_end; v++) {
            s->same[v] = v;
        }
    }
    for (uint32_t k = 0; k < s->graph->nodes[node].output_count; k++) {
        s->same[graft_node_output(s->graph, node, k)] = graft_node_output(s->graph, first, k);
    }
}

const graft_index *graft_equal_find(graft_arena *arena, const graft_graph *graph,
                                    const graft_order *order)
{
    equal_search s = {.graph = graph, .mask = 1};
    while (s.mask < 2 * order->count) {
        s.mask = 2 * s.mask + 1;
    }
    s.table = GRAFT_NEW(arena, graft_index, (size_t)s.mask + 1);
    for (graft_index i = 0; i < order->count; i++) {
        graft_index node = order->order[i];
        graft_index first = graph->nodes[node].op == GRAFT_OP_OPAQUE ? node : find_first(&s, node);
        if (first != node) {
            note_same(&s, arena, node, first);
        }
    }
    return s.same;
}

/* Nothing reads a node any more once its results have others for them. */
static void remove_equal(graft_graph *graph, const graft_index *same)
{
    for (graft_index n = 0; n < graph->node_end; n++) {
        graft_node *node = &graph->nodes[n];
        if (node->op == GRAFT_OP_NONE) {
            continue;
        }
        for (uint32_t k = 0; k < node->input_count; k++) {
            graft_index *read = &graph->edges[node->first_edge + k];
            *read = *read == GRAFT_NONE ? GRAFT_NONE : same[*read];
        }
        bool merged = false;
        for (uint32_t k = 0; k < node->output_count; k++) {
            graft_index value = graft_node_output(graph, n, k);
            merged = same[value] != value;
            graph->values[value].kind = merged ? GRAFT_VALUE_FREE : graph->values[value].kind;
        }
        node->op = merged ? GRAFT_OP_NONE : node->op;
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        graph->outputs[i] = same[graph->outputs[i]];
    }
}

void graft_equal_merge(graft_arena *arena, const graft_graph **graph, const graft_order **order)
{
    const graft_index *same = graft_equal_find(arena, *graph, *order);
    if (same == NULL) {
        return;
    }
    graft_graph *merged = graft_model_graph_copy(arena, *graph);
    graft_order *placed = GRAFT_NEW(arena, graft_order, 1);
    size_t bytes = graft_order_bytes(&merged->limits);
    remove_equal(merged, same);
    graft_status status = graft_order_build(placed, merged, graft_arena_alloc(arena, bytes), bytes);
    assert(status == GRAFT_OK); /* Merging closes no cycle: who reads follows the first. */
    (void)status;
    *graph = merged;
    *order = placed;
}

/* recency.c - see recency.h. */
#include "cost/plan/recency.h"

/* Results that wait for their readers are at most this part of the weight. */
enum { LARGE_BYTES = 1 << 16, WAITING_PART = 4 };

typedef struct {
    const graft_graph *graph;
    const graft_order *given;
    graft_index *weights; /* By node: the large weight that it multiplies by, or GRAFT_NONE. */
    graft_index *read;    /* By value: when it was read last; 0: never. */
    graft_index *waiting; /* By node: computed inputs that are not there yet. */
    graft_index *ready;
    graft_index ready_count;
    graft_order *order;
} recency;

/* The second operand of a product, if it is a large weight. */
static graft_index find_weight(const graft_graph *graph, graft_index node)
{
    const graft_node *n = &graph->nodes[node];
    if ((n->op != GRAFT_OP_matmul && n->op != GRAFT_OP_matmul_bias) || n->is_const ||
        graph->values[graft_node_input(graph, node, 0)].is_const) {
        return GRAFT_NONE;
    }
    graft_index weight = graft_node_input(graph, node, 1);
    const graft_value *value = &graph->values[weight];
    return value->is_const && graft_cost_bytes(&value->shape) >= LARGE_BYTES ? weight : GRAFT_NONE;
}

/* Whether any weight is read by several. */
static bool find_weights(recency *r, graft_arena *arena)
{
    const graft_graph *graph = r->graph;
    graft_index *readers = NULL;
    bool repeated = false;
    for (graft_index i = 0; i < r->given->count; i++) {
        graft_index node = r->given->order[i];
        graft_index weight = find_weight(graph, node);
        if (weight != GRAFT_NONE && readers == NULL) { /* Most convolutional nets have none. */
            readers = GRAFT_NEW(arena, graft_index, graph->value_end);
        }
        repeated = repeated || (weight != GRAFT_NONE && readers[weight]++ > 0);
    }
    return repeated;
}

static void count_waiting(recency *r)
{
    const graft_graph *graph = r->graph;
    for (graft_index i = 0; i < r->given->count; i++) {
        graft_index node = r->given->order[i];
        r->weights[node] = find_weight(graph, node);
        for (uint32_t k = 0; k < graph->nodes[node].input_count; k++) {
            graft_index v = graft_node_input(graph, node, k);
            r->waiting[node] += v != GRAFT_NONE && graph->values[v].kind == GRAFT_VALUE_COMPUTED;
        }
        if (r->waiting[node] == 0) {
            r->ready[r->ready_count++] = node;
        }
    }
}

/* Whether a product may come before its turn: it reads what the other one reads, or its result is
 * small enough to wait for those that do. */
static bool may_come_first(const recency *r, graft_index product, graft_index other)
{
    const graft_graph *graph = r->graph;
    const graft_shape *weight = &graph->values[r->weights[product]].shape;
    const graft_shape *result = &graph->values[graft_node_output(graph, product, 0)].shape;
    return graft_node_input(graph, product, 0) == graft_node_input(graph, other, 0) ||
           WAITING_PART * graft_cost_bytes(result) <= graft_cost_bytes(weight);
}

/* Takes values apart: what that costs is nothing or little, and products wait for it. */
static bool takes_apart(uint32_t op)
{
    return op == GRAFT_OP_slice || op == GRAFT_OP_split || op == GRAFT_OP_reshape ||
           op == GRAFT_OP_identity;
}

/* Whether ready node `a` has its turn before `b`. */
static bool comes_before(const recency *r, graft_index a, graft_index b)
{
    bool first = takes_apart(r->graph->nodes[a].op);
    bool second = takes_apart(r->graph->nodes[b].op);
    return first != second ? first : a < b;
}

/* The ready node whose turn it is; when that is a product, the one whose weight was read last. */
static graft_index choose_place(const recency *r)
{
    graft_index first = 0;
    for (graft_index i = 1; i < r->ready_count; i++) {
        first = comes_before(r, r->ready[i], r->ready[first]) ? i : first;
    }
    graft_index best = first;
    for (graft_index i = 0; i < r->ready_count && r->weights[r->ready[first]] != GRAFT_NONE; i++) {
        graft_index weight = r->weights[r->ready[i]];
        graft_index known = r->weights[r->ready[best]];
        bool later = weight != GRAFT_NONE && (r->read[weight] > r->read[known] ||
                                              (weight == known && r->ready[i] < r->ready[best]));
        if (later && may_come_first(r, r->ready[i], r->ready[first])) {
            best = i;
        }
    }
    return best;
}

static void place_node(recency *r, graft_index place)
{
    const graft_graph *graph = r->graph;
    const graft_order *given = r->given;
    graft_index node = r->ready[place];
    r->ready[place] = r->ready[--r->ready_count];
    if (r->weights[node] != GRAFT_NONE) {
        r->read[r->weights[node]] = r->order->count + 1;
    }
    r->order->position[node] = r->order->count;
    r->order->order[r->order->count++] = node;
    for (uint32_t k = 0; k < graph->nodes[node].output_count; k++) {
        graft_index v = graft_node_output(graph, node, k);
        for (graft_index u = given->use_first[v]; u < given->use_first[v + 1]; u++) {
            if (--r->waiting[given->uses[u]] == 0) {
                r->ready[r->ready_count++] = given->uses[u];
            }
        }
    }
}

void graft_recency_order(graft_arena *arena, const graft_graph *graph, const graft_order **order)
{
    recency r = {.graph = graph, .given = *order};
    if (!find_weights(&r, arena)) {
        return;
    }
    r.weights = GRAFT_NEW(arena, graft_index, graph->node_end);
    r.read = GRAFT_NEW(arena, graft_index, graph->value_end);
    r.waiting = GRAFT_NEW(arena, graft_index, graph->node_end);
    r.ready = GRAFT_NEW(arena, graft_index, r.given->count);
    r.order = GRAFT_NEW(arena, graft_order, 1);
    *r.order = *r.given;
    r.order->order = GRAFT_NEW(arena, graft_index, r.given->count);
    r.order->position = GRAFT_NEW(arena, graft_index, graph->node_end);
    r.order->count = 0;
    count_waiting(&r);
    while (r.ready_count > 0) {
        place_node(&r, choose_place(&r));
    }
    *order = r.order;
}

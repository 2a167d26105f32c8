/* order.h - topological order, uses and the graph's hash: derived, never stored in the graph. */
#ifndef GRAFT_ENGINE_ORDER_H
#define GRAFT_ENGINE_ORDER_H

/* A binary heap of node ids, smallest first: nodes whose producers are all placed. */
typedef struct graft_heap {
    graft_index *items;
    uint32_t count;
} graft_heap;

static void graft_heap_push(graft_heap *heap, uint32_t item)
{
    uint32_t i = heap->count++;
    while (i > 0 && heap->items[(i - 1) / 2] > item) {
        heap->items[i] = heap->items[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap->items[i] = item;
}

static uint32_t graft_heap_pop(graft_heap *heap)
{
    uint32_t top = heap->items[0];
    uint32_t item = heap->items[--heap->count];
    uint32_t i = 0;
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= heap->count) {
            break;
        }
        if (child + 1 < heap->count && heap->items[child + 1] < heap->items[child]) {
            child++;
        }
        if (heap->items[child] >= item) {
            break;
        }
        heap->items[i] = heap->items[child];
        i = child;
    }
    heap->items[i] = item;
    return top;
}

static void graft_carve_order(graft_carver *carver, const graft_limits *limits, graft_order *order)
{
    size_t heap = limits->values > limits->nodes ? limits->values : limits->nodes;
    order->order = graft_carve_ids(carver, limits->nodes);
    order->position = graft_carve_ids(carver, limits->nodes);
    order->use_first = graft_carve_ids(carver, (size_t)limits->values + 1);
    order->uses = graft_carve_ids(carver, limits->edges);
    order->use_count = graft_carve_ids(carver, heap);
}

size_t graft_order_bytes(const graft_limits *limits)
{
    graft_carver carver = {NULL, 0};
    graft_order order;
    graft_carve_order(&carver, limits, &order);
    return carver.used + 7u;
}

/* Goes through the readings by nodes, the last one first: counts those of value v in use_count[v], or
 * writes the readers into `uses` below use_first[v], which moves before them. */
static void graft_visit_uses(graft_order *order, const graft_graph *graph, bool listing)
{
    for (uint32_t n = graph->node_end; n-- > 0;) {
        const graft_node *node = &graph->nodes[n];
        for (uint32_t i = node->op != GRAFT_OP_NONE ? node->input_count : 0; i-- > 0;) {
            const graft_index v = graft_inputs_of(graph, node)[i];
            if (v != GRAFT_NONE && listing) {
                order->uses[--order->use_first[v]] = (graft_index)n;
            } else if (v != GRAFT_NONE) {
                order->use_count[v]++;
            }
        }
    }
}

/* Fills `uses` and `use_first`. */
static void graft_list_uses(graft_order *order, const graft_graph *graph)
{
    graft_zero_bytes(order->use_count, graph->value_end * sizeof(graft_index));
    graft_visit_uses(order, graph, false);
    uint32_t end = 0;
    for (uint32_t v = 0; v < graph->value_end; v++) {
        end += order->use_count[v];
        order->use_first[v] = (graft_index)end;
    }
    order->use_first[graph->value_end] = (graft_index)end;
    graft_visit_uses(order, graph, true);
}

/* Adds what the graph gives out to the readings by nodes. */
static void graft_total_uses(graft_order *order, const graft_graph *graph)
{
    for (uint32_t v = 0; v < graph->value_end; v++) {
        order->use_count[v] = order->use_first[v + 1] - order->use_first[v];
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        order->use_count[graph->outputs[i]]++;
    }
}

/* Readings of node `n` that wait for a producer: its computed inputs. */
static uint32_t graft_count_waiting(const graft_graph *graph, uint32_t n)
{
    const graft_node *node = &graph->nodes[n];
    uint32_t waiting = 0;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const graft_index v = graft_inputs_of(graph, node)[i];
        waiting += v != GRAFT_NONE && graph->values[v].kind == GRAFT_VALUE_COMPUTED;
    }
    return waiting;
}

/* Kahn's algorithm; until a node is placed its `position` counts the readings it waits for. */
static void graft_place_nodes(graft_order *order, const graft_graph *graph, graft_heap *ready)
{
    for (uint32_t n = 0; n < graph->node_end; n++) {
        order->position[n] = GRAFT_NONE;
        if (graph->nodes[n].op != GRAFT_OP_NONE) {
            order->position[n] = graft_count_waiting(graph, n);
            if (order->position[n] == 0) {
                graft_heap_push(ready, n);
            }
        }
    }
    order->count = 0;
    while (ready->count > 0) {
        uint32_t n = graft_heap_pop(ready);
        const graft_node *node = &graph->nodes[n];
        order->position[n] = order->count;
        order->order[order->count++] = n;
        for (uint32_t i = 0; i < node->output_count; i++) {
            const graft_index v = graft_results_of(graph, node)[i];
            for (uint32_t u = order->use_first[v]; u < order->use_first[v + 1]; u++) {
                if (--order->position[order->uses[u]] == 0) {
                    graft_heap_push(ready, order->uses[u]);
                }
            }
        }
    }
}

/* graft_order_build once the tables are laid out. */
static graft_status graft_build_order(graft_order *order, const graft_graph *graph)
{
    graft_heap ready = {order->use_count, 0}; /* Its place until the readings are counted again. */
    graft_list_uses(order, graph);
    graft_place_nodes(order, graph, &ready);
    graft_total_uses(order, graph);
    return order->count == graft_graph_node_count(graph) ? GRAFT_OK : GRAFT_BAD_INPUT;
}

graft_status graft_order_build(graft_order *order, const graft_graph *graph, void *memory,
                               size_t memory_bytes)
{
    if (memory == NULL || memory_bytes < graft_order_bytes(&graph->limits)) {
        return GRAFT_NO_MEMORY;
    }
    graft_carver carver = {graft_align_buffer(memory), 0};
    graft_carve_order(&carver, &graph->limits, order);
    return graft_build_order(order, graph);
}

/* ------------------------------------------------------------------- hash */

/* The finaliser of SplitMix64 over a running state. */
static uint64_t graft_mix_hash(uint64_t hash, uint64_t word)
{
    uint64_t z = (hash ^ word) + UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t graft_hash_shape(uint64_t hash, const graft_shape *shape)
{
    hash = graft_mix_hash(hash, (uint64_t)shape->rank << 8 | graft_priced_dtype(shape));
    for (uint32_t i = 0; i < GRAFT_MAX_RANK; i++) {
        hash = graft_mix_hash(hash, (uint64_t)(uint32_t)shape->dims[i]);
    }
    return hash;
}

/* What a hash begins with: a node, or else the kind of a source. */
#define GRAFT_HASH_NODE ((uint64_t)GRAFT_VALUE_COMPUTED)

/* A caller's number, whatever the width of ids. */
static GRAFT_APART uint64_t graft_hash_source(uint64_t hash, uint32_t source)
{
    return graft_mix_hash(hash, source != GRAFT_NONE ? source : UINT32_MAX);
}

static uint64_t graft_hash_node(const graft_graph *graph, const graft_node *node,
                                const uint64_t *value_hash)
{
    uint64_t hash = graft_mix_hash(graft_mix_hash(0, GRAFT_HASH_NODE), node->op);
    if (node->op == GRAFT_OP_OPAQUE) {
        hash = graft_hash_source(hash, node->source);
    }
    for (uint32_t i = 0; i < GRAFT_MAX_ATTRS; i++) {
        hash = graft_mix_hash(hash, (uint64_t)(uint32_t)node->attrs[i]);
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        const graft_index v = graft_inputs_of(graph, node)[i];
        hash = graft_mix_hash(hash, v == GRAFT_NONE ? 0 : value_hash[v]);
    }
    return hash;
}

uint64_t graft_graph_hash(const graft_graph *graph, const graft_order *order, uint64_t *scratch)
{
    for (uint32_t v = 0; v < graph->value_end; v++) {
        const graft_value *value = &graph->values[v];
        if (value->kind == GRAFT_VALUE_INPUT || value->kind == GRAFT_VALUE_WEIGHT) {
            uint64_t hash = graft_hash_source(graft_mix_hash(0, value->kind), value->source);
            scratch[v] = graft_hash_shape(hash, &value->shape);
        }
    }
    for (uint32_t i = 0; i < order->count; i++) {
        const graft_node *node = &graph->nodes[order->order[i]];
        uint64_t hash = graft_hash_node(graph, node, scratch);
        for (uint32_t k = 0; k < node->output_count; k++) {
            scratch[graft_results_of(graph, node)[k]] = graft_mix_hash(hash, k);
        }
    }
    uint64_t hash = 0;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        hash = graft_mix_hash(hash, scratch[graph->outputs[i]]);
    }
    return hash;
}

/* ------------------------------------------------------------------ check */

static const char *graft_check_wiring(const graft_graph *graph, graft_index n)
{
    const graft_node *node = &graph->nodes[n];
    graft_index size = (graft_index)node->input_count + node->output_count;
    bool is_const = node->op != GRAFT_OP_OPAQUE || node->is_const; /* Else nobody knows. */
    if (node->first_edge > graph->edge_end || size > graph->edge_end - node->first_edge) {
        return GRAFT_FAULT("a node's edges lie outside the table");
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        graft_index v = graft_node_input(graph, n, i);
        if (v == GRAFT_NONE ? node->op != GRAFT_OP_OPAQUE : !graft_value_exists(graph, v)) {
            return GRAFT_FAULT("a node reads a value that does not exist");
        }
        is_const = is_const && (v == GRAFT_NONE || graph->values[v].is_const);
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        graft_index v = graft_node_output(graph, n, i);
        if (!graft_value_exists(graph, v) || graph->values[v].node != n ||
            graph->values[v].slot != i) {
            return GRAFT_FAULT("a node and its output value disagree");
        }
    }
    return node->is_const == is_const
               ? NULL
               : GRAFT_FAULT("a node's const flag is not that of its inputs");
}

static const char *graft_check_node(const graft_graph *graph, graft_index n)
{
    const graft_node *node = &graph->nodes[n];
    const graft_op_row *info = graft_find_op(node->op);
    const graft_shape *in[GRAFT_MAX_INPUTS];
    graft_shape out[GRAFT_MAX_OUTPUTS];
    const char *fault = graft_check_wiring(graph, n);
    if (fault != NULL || node->op == GRAFT_OP_OPAQUE) {
        return fault;
    }
    if (info == NULL) {
        return GRAFT_FAULT("unknown operator");
    }
    if (node->input_count != info->input_count || node->output_count != info->output_count) {
        return GRAFT_FAULT("a node has another number of inputs or outputs than its operator");
    }
    for (uint32_t i = 0; i < info->input_count; i++) {
        in[i] = &graph->values[graft_node_input(graph, n, i)].shape;
    }
    out[0].dtype = graph->dtype;
    if (graft_infer_outputs(node->op, node->attrs, in, out) != NULL) {
        return GRAFT_FAULT("a node's shapes do not infer");
    }
    for (uint32_t i = 0; i < info->output_count; i++) {
        if (!graft_shape_equal(&out[i], &graph->values[graft_node_output(graph, n, i)].shape)) {
            return GRAFT_FAULT("a value's shape is not the one inferred");
        }
    }
    return NULL;
}

static const char *graft_check_value(const graft_graph *graph, graft_index v)
{
    const graft_value *value = &graph->values[v];
    bool is_const = value->kind == GRAFT_VALUE_WEIGHT;
    if (value->kind == GRAFT_VALUE_COMPUTED) {
        if (value->node >= graph->node_end || graph->nodes[value->node].op == GRAFT_OP_NONE ||
            value->slot >= graph->nodes[value->node].output_count ||
            graft_node_output(graph, value->node, value->slot) != v) {
            return GRAFT_FAULT("a value and its producer disagree");
        }
        is_const = graph->nodes[value->node].is_const;
    }
    return value->is_const == is_const
               ? NULL
               : GRAFT_FAULT("a value's const flag is not that of its producer");
}

const char *graft_graph_check(const graft_graph *graph, void *workspace, size_t workspace_bytes)
{
    graft_order order;
    if (graph->node_end > graph->limits.nodes || graph->value_end > graph->limits.values ||
        graph->edge_end > graph->limits.edges || graph->output_count > graph->limits.outputs) {
        return graft_tell_fault(GRAFT_FAULT("a table ends behind its limit"));
    }
    for (uint32_t n = 0; n < graph->node_end; n++) {
        const char *fault = graph->nodes[n].op != GRAFT_OP_NONE ? graft_check_node(graph, n) : NULL;
        if (fault != NULL) {
            return graft_tell_fault(fault);
        }
    }
    for (uint32_t v = 0; v < graph->value_end; v++) {
        const char *fault =
            graph->values[v].kind != GRAFT_VALUE_FREE ? graft_check_value(graph, v) : NULL;
        if (fault != NULL) {
            return graft_tell_fault(fault);
        }
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        if (!graft_value_exists(graph, graph->outputs[i])) {
            return graft_tell_fault(GRAFT_FAULT("an output names a value that does not exist"));
        }
    }
    graft_status status = graft_order_build(&order, graph, workspace, workspace_bytes);
    if (status != GRAFT_OK) {
        return status == GRAFT_NO_MEMORY ? "the workspace is too small" : "the graph has a cycle";
    }
    return NULL;
}

#endif

/* graph.h - the graph in caller-owned memory: building, editing, dead code.
 *
 * Three tables (nodes, values, edges) and the list of outputs lie behind one another in the
 * caller's buffer. A node's inputs and outputs are value ids in one run of `edges`, inputs first;
 * what lies behind the run of a node that is removed moves up. */
#ifndef GRAFT_ENGINE_GRAPH_H
#define GRAFT_ENGINE_GRAPH_H

const char *graft_status_name(graft_status status)
{
    switch (status) {
    case GRAFT_OK:
        return "ok";
    case GRAFT_BAD_INPUT:
        return "bad input";
    case GRAFT_IO:
        return "input/output error";
    case GRAFT_NO_MEMORY:
        return "out of memory";
    case GRAFT_CAPACITY:
        return "capacity exceeded";
    case GRAFT_UNSUPPORTED:
        return "unsupported";
    case GRAFT_UNDECIDED:
        return "undecided";
    case GRAFT_INTERRUPTED:
        return "interrupted";
    case GRAFT_NO_MATCH:
        return "no match";
    case GRAFT_INTERNAL:
        return "internal error";
    case GRAFT_REFUTED:
        return "refuted";
    }
    return "unknown status";
}

/* Carves aligned arrays from a caller's buffer; `base` NULL only counts. */
typedef struct graft_carver {
    unsigned char *base;
    size_t used;
} graft_carver;

static void *graft_carve(graft_carver *carver, size_t count, size_t element_bytes)
{
    size_t start = (carver->used + 7u) & ~(size_t)7u;
    uint64_t end =
        start + (uint64_t)count * element_bytes; /* More than half is more than there is. */
    carver->used = end < SIZE_MAX / 2 ? (size_t)end : SIZE_MAX / 2;
    return carver->base != NULL ? carver->base + start : NULL;
}

static GRAFT_APART graft_index *graft_carve_ids(graft_carver *carver, size_t count)
{
    return (graft_index *)graft_carve(carver, count, sizeof(graft_index));
}

/* Where an 8-byte boundary lies in a buffer of any alignment; as a number, since NULL, for which
 * callers have a status, may not be added to. */
static GRAFT_APART unsigned char *graft_align_buffer(void *memory)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
    return (unsigned char *)(((uintptr_t)memory + 7u) & ~(uintptr_t)7u);
}

static void graft_copy_bytes(void *to, const void *from, size_t bytes)
{
    unsigned char *t = (unsigned char *)to;
    const unsigned char *f = (const unsigned char *)from;
    for (size_t i = 0; i < bytes; i++) {
        t[i] = f[i];
    }
}

static void graft_zero_bytes(void *to, size_t bytes)
{
    unsigned char *t = (unsigned char *)to;
    for (size_t i = 0; i < bytes; i++) {
        t[i] = 0;
    }
}

static void graft_carve_graph(graft_carver *carver, const graft_limits *limits, graft_graph *graph)
{
    graph->nodes = (graft_node *)graft_carve(carver, limits->nodes, sizeof(graft_node));
    graph->values = (graft_value *)graft_carve(carver, limits->values, sizeof(graft_value));
    graph->edges = graft_carve_ids(carver, limits->edges);
    graph->outputs = graft_carve_ids(carver, limits->outputs);
}

size_t graft_graph_bytes(const graft_limits *limits)
{
    graft_carver carver = {NULL, 0};
    graft_graph graph;
    graft_carve_graph(&carver, limits, &graph);
    return carver.used + 7u;
}

graft_status graft_graph_init(graft_graph *graph, const graft_limits *limits, void *memory,
                              size_t memory_bytes)
{
    if (memory == NULL || memory_bytes < graft_graph_bytes(limits)) {
        return GRAFT_NO_MEMORY;
    }
    graft_carver carver = {graft_align_buffer(memory), 0};
    graft_zero_bytes(graph, sizeof *graph);
    graph->limits = *limits;
    graph->dtype = GRAFT_DTYPE_F32;
    graft_carve_graph(&carver, limits, graph);
    return GRAFT_OK;
}

/* Keeping count of used slots, and gaps between edges until the table is full: text that firmware,
 * whose graphs are small, does without. */
#ifdef GRAFT_LARGE_GRAPHS
#define GRAFT_SLOTS_FROM(floor)     (floor)
#define GRAFT_USED_BELOW(floor, id) ((floor) = (graft_index)(id))
#define GRAFT_FREE_AT(floor, id)    ((floor) = (id) < (floor) ? (graft_index)(id) : (floor))
#define GRAFT_FREE_EDGES(graph, n)  ((void)0)
#define GRAFT_EDGES_IN_GAPS(graph)  count_free_edges(graph)
#define GRAFT_CLOSE_GAPS_FOR(graph, count)                                                         \
    do {                                                                                           \
        if ((count) > (uint32_t)((graph)->limits.edges - (graph)->edge_end)) {                     \
            close_gaps(graph);                                                                     \
        }                                                                                          \
    } while (0)
#else
#define GRAFT_SLOTS_FROM(floor)     0
#define GRAFT_USED_BELOW(floor, id) ((void)0)
#define GRAFT_FREE_AT(floor, id)    ((void)0)
#define GRAFT_FREE_EDGES(graph, n)                                                                 \
    graft_close_gap(graph, (n)->first_edge, (uint32_t)(n)->input_count + (n)->output_count)
#define GRAFT_EDGES_IN_GAPS(graph)         0U
#define GRAFT_CLOSE_GAPS_FOR(graph, count) ((void)0)
#endif

void graft_graph_clear(graft_graph *graph)
{
    graph->node_end = 0;
    graph->value_end = 0;
    graph->edge_end = 0;
    graph->output_count = 0;
    GRAFT_USED_BELOW(graph->node_floor, 0);
    GRAFT_USED_BELOW(graph->value_floor, 0);
}

graft_status graft_graph_copy(graft_graph *to, const graft_graph *from)
{
    if (to->limits.nodes < from->node_end || to->limits.values < from->value_end ||
        to->limits.edges < from->edge_end || to->limits.outputs < from->output_count) {
        return GRAFT_CAPACITY;
    }
    graft_copy_bytes(to->nodes, from->nodes, from->node_end * sizeof(graft_node));
    graft_copy_bytes(to->values, from->values, from->value_end * sizeof(graft_value));
    graft_copy_bytes(to->edges, from->edges, from->edge_end * sizeof(graft_index));
    graft_copy_bytes(to->outputs, from->outputs, from->output_count * sizeof(graft_index));
    to->node_end = from->node_end;
    to->value_end = from->value_end;
    to->edge_end = from->edge_end;
    to->output_count = from->output_count;
    to->dtype = from->dtype;
    GRAFT_USED_BELOW(to->node_floor, 0);
    GRAFT_USED_BELOW(to->value_floor, 0);
    return GRAFT_OK;
}

/* ---------------------------------------------------------------- reading */

/* The values that a node reads, and those that it makes. */
static const graft_index *graft_inputs_of(const graft_graph *graph, const graft_node *node)
{
    return &graph->edges[node->first_edge];
}

static const graft_index *graft_results_of(const graft_graph *graph, const graft_node *node)
{
    return graft_inputs_of(graph, node) + node->input_count;
}

graft_index graft_node_input(const graft_graph *graph, graft_index node, uint32_t k)
{
    return graft_inputs_of(graph, &graph->nodes[node])[k];
}

graft_index graft_node_output(const graft_graph *graph, graft_index node, uint32_t k)
{
    return graft_results_of(graph, &graph->nodes[node])[k];
}

static GRAFT_APART graft_index graft_count_nodes(const graft_graph *graph, bool with_const)
{
    graft_index count = 0;
    for (uint32_t n = 0; n < graph->node_end; n++) {
        const graft_node *node = &graph->nodes[n];
        count += node->op != GRAFT_OP_NONE && (with_const || !node->is_const);
    }
    return count;
}

graft_index graft_graph_node_count(const graft_graph *graph)
{
    return graft_count_nodes(graph, true);
}

graft_index graft_graph_active_count(const graft_graph *graph)
{
    return graft_count_nodes(graph, false);
}

/* ------------------------------------------------------------- free slots */

/* The first free node slot. There is one: graft_has_places counted. The table's end moves in graft_place_node. */
static uint32_t graft_find_free_node(graft_graph *graph)
{
    uint32_t n = GRAFT_SLOTS_FROM(graph->node_floor);
    while (n < graph->node_end && graph->nodes[n].op != GRAFT_OP_NONE) {
        n++;
    }
    GRAFT_USED_BELOW(graph->node_floor, n);
    return n;
}

static uint32_t graft_find_free_value(graft_graph *graph)
{
    for (uint32_t v = GRAFT_SLOTS_FROM(graph->value_floor); v < graph->value_end; v++) {
        if (graph->values[v].kind == GRAFT_VALUE_FREE) {
            GRAFT_USED_BELOW(graph->value_floor, v);
            return v;
        }
    }
    GRAFT_USED_BELOW(graph->value_floor, graph->value_end);
    return graph->value_end < graph->limits.values ? graph->value_end : GRAFT_NONE;
}

static uint32_t graft_count_free_nodes(const graft_graph *graph)
{
    return graph->limits.nodes - graft_graph_node_count(graph);
}

static uint32_t graft_count_free_values(const graft_graph *graph)
{
    uint32_t used = 0;
    for (uint32_t v = 0; v < graph->value_end; v++) {
        used += graph->values[v].kind != GRAFT_VALUE_FREE;
    }
    return graph->limits.values - used;
}

#ifdef GRAFT_LARGE_GRAPHS
static uint32_t count_free_edges(const graft_graph *graph)
{
    uint32_t used = 0;
    for (uint32_t n = 0; n < graph->node_end; n++) {
        const graft_node *node = &graph->nodes[n];
        used += node->op == GRAFT_OP_NONE ? 0 : (uint32_t)node->input_count + node->output_count;
    }
    return graph->limits.edges - used;
}

/* Closes the gaps that removed nodes left: moves the run of edges with the smallest start past the
 * end of what is packed, again and again. Quadratic in nodes, but only done when the table is full. */
static void close_gaps(graft_graph *graph)
{
    uint32_t floor = 0;
    graft_node *next = NULL;
    graph->edge_end = 0;
    do {
        next = NULL;
        for (uint32_t n = 0; n < graph->node_end; n++) {
            graft_node *node = &graph->nodes[n];
            if (node->op != GRAFT_OP_NONE && node->input_count + node->output_count > 0 &&
                node->first_edge >= floor &&
                (next == NULL || node->first_edge < next->first_edge)) {
                next = node;
            }
        }
        if (next != NULL) {
            const uint32_t first = next->first_edge;
            floor = first + next->input_count + next->output_count;
            next->first_edge = graph->edge_end;
            for (uint32_t i = first; i < floor; i++) {
                graph->edges[graph->edge_end++] = graph->edges[i];
            }
        }
    } while (next != NULL);
}
#else
/* Takes `size` edges from place `first` on out of the table. */
static void graft_close_gap(graft_graph *graph, uint32_t first, uint32_t size)
{
    graph->edge_end = (graft_index)(graph->edge_end - size);
    for (uint32_t i = first; i < graph->edge_end; i++) {
        graph->edges[i] = graph->edges[i + size];
    }
    for (uint32_t n = 0; n < graph->node_end; n++) {
        graft_node *node = &graph->nodes[n];
        node->first_edge = (graft_index)(node->first_edge - (node->first_edge > first ? size : 0));
    }
}
#endif

/* ---------------------------------------------------------------- building */

static graft_status graft_add_source_value(graft_graph *graph, const graft_shape *shape,
                                           uint32_t source, graft_value_kind kind,
                                           graft_index *value)
{
    uint32_t v = graft_find_free_value(graph);
    if (v == GRAFT_NONE) {
        return GRAFT_CAPACITY;
    }
    graft_value *slot = &graph->values[v];
    slot->shape = *shape;
    slot->node = GRAFT_NONE;
    slot->source = source;
    slot->slot = 0;
    slot->kind = (uint8_t)kind;
    slot->is_const = kind == GRAFT_VALUE_WEIGHT;
    if (v == graph->value_end) {
        graph->value_end++;
    }
    *value = v;
    return GRAFT_OK;
}

graft_status graft_graph_add_input(graft_graph *graph, const graft_shape *shape, graft_index source,
                                   graft_index *value)
{
    return graft_add_source_value(graph, shape, source, GRAFT_VALUE_INPUT, value);
}

graft_status graft_graph_add_weight(graft_graph *graph, const graft_shape *shape,
                                    graft_index source, graft_index *value)
{
    return graft_add_source_value(graph, shape, source, GRAFT_VALUE_WEIGHT, value);
}

static bool graft_value_exists(const graft_graph *graph, uint32_t value)
{
    return value < graph->value_end && graph->values[value].kind != GRAFT_VALUE_FREE;
}

/* Whether there is room; behind what was ever used it needs no counting. */
static bool graft_has_places(const graft_graph *graph, uint32_t nodes, uint32_t values,
                             uint32_t edges)
{
    const graft_limits *limits = &graph->limits;
    return (edges <= (uint32_t)(limits->edges - graph->edge_end) ||
            edges <= GRAFT_EDGES_IN_GAPS(graph)) &&
           (nodes <= (uint32_t)(limits->nodes - graph->node_end) ||
            nodes <= graft_count_free_nodes(graph)) &&
           (values <= (uint32_t)(limits->values - graph->value_end) ||
            values <= graft_count_free_values(graph));
}

/* A node that is to be placed, without attributes yet. */
static GRAFT_APART void graft_begin_node(graft_node *node, uint32_t op, uint32_t input_count,
                                         uint32_t output_count)
{
    graft_zero_bytes(node, sizeof *node);
    node->op = (uint8_t)op;
    node->input_count = (uint16_t)input_count;
    node->output_count = (uint16_t)output_count;
    node->source = GRAFT_NONE;
}

/* Places a node for which there is room (graft_has_places); creates its output values. */
static uint32_t graft_place_node(graft_graph *graph, const graft_node *like,
                                 const graft_index *inputs, const graft_shape *shapes)
{
    GRAFT_CLOSE_GAPS_FOR(graph, (uint32_t)like->input_count + like->output_count);
    uint32_t n = graft_find_free_node(graph);
    graft_node *node = &graph->nodes[n];
    *node = *like;
    node->first_edge = graph->edge_end;
    if (n == graph->node_end) {
        graph->node_end++;
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        graph->edges[graph->edge_end++] = inputs[i];
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        graft_index v = GRAFT_NONE;
        /* Cannot fail: graft_has_places counted the free values. */
        (void)graft_add_source_value(graph, &shapes[i], GRAFT_NONE, GRAFT_VALUE_COMPUTED, &v);
        graph->values[v].node = (graft_index)n;
        graph->values[v].slot = (uint16_t)i;
        graph->edges[graph->edge_end++] = v;
    }
    if (node->op != GRAFT_OP_OPAQUE) {
        graft_graph_set_repeatable(graph, (graft_index)n);
    }
    return n;
}

static graft_status graft_add_node(graft_graph *graph, const graft_node *like,
                                   const graft_index *inputs, const graft_shape *shapes,
                                   graft_index *node)
{
    const uint32_t edges = (uint32_t)like->input_count + like->output_count;
    if (!graft_has_places(graph, 1, like->output_count, edges)) {
        return GRAFT_CAPACITY;
    }
    *node = (graft_index)graft_place_node(graph, like, inputs, shapes);
    return GRAFT_OK;
}

graft_status graft_graph_add_node(graft_graph *graph, uint32_t op, const int32_t *attrs,
                                  const graft_index *inputs, graft_index source, graft_index *node)
{
    const graft_op_row *info = graft_find_op(op);
    if (info == NULL) {
        return GRAFT_BAD_INPUT;
    }
    const graft_shape *in[GRAFT_MAX_INPUTS];
    graft_shape out[GRAFT_MAX_OUTPUTS];
    graft_node like;
    graft_begin_node(&like, op, info->input_count, info->output_count);
    like.source = source;
    out[0].dtype = graph->dtype; /* There may be no inputs. */
    for (uint32_t i = 0; i < info->attr_count; i++) {
        like.attrs[i] = attrs[i];
    }
    for (uint32_t i = 0; i < info->input_count; i++) {
        if (!graft_value_exists(graph, inputs[i])) {
            return GRAFT_BAD_INPUT;
        }
        in[i] = &graph->values[inputs[i]].shape;
    }
    if (graft_infer_outputs(op, like.attrs, in, out) != NULL) {
        return GRAFT_BAD_INPUT;
    }
    return graft_add_node(graph, &like, inputs, out, node);
}

/* NOLINTNEXTLINE(readability-function-size): the interface. */
graft_status graft_graph_add_opaque(graft_graph *graph, graft_index source,
                                    const graft_index *inputs, uint16_t input_count,
                                    const graft_shape *output_shapes, uint16_t output_count,
                                    graft_index *node)
{
    for (uint32_t i = 0; i < input_count; i++) {
        if (inputs[i] != GRAFT_NONE && !graft_value_exists(graph, inputs[i])) {
            return GRAFT_BAD_INPUT;
        }
    }
    graft_node like;
    graft_begin_node(&like, GRAFT_OP_OPAQUE, input_count, output_count);
    like.source = source;
    return graft_add_node(graph, &like, inputs, output_shapes, node);
}

/* Makes a node const, and its outputs, if its inputs are. */
void graft_graph_set_repeatable(graft_graph *graph, graft_index node)
{
    graft_node *n = &graph->nodes[node];
    const graft_index *edges = graft_inputs_of(graph, n);
    const graft_index *const results = graft_results_of(graph, n);
    n->is_const = true;
    for (; edges < results; edges++) {
        if (*edges != GRAFT_NONE && !graph->values[*edges].is_const) {
            n->is_const = false;
        }
    }
    for (uint32_t i = 0; n->is_const && i < n->output_count; i++) {
        graph->values[results[i]].is_const = true;
    }
}

graft_status graft_graph_add_output(graft_graph *graph, graft_index value)
{
    if (!graft_value_exists(graph, value)) {
        return GRAFT_BAD_INPUT;
    }
    if (graph->output_count == graph->limits.outputs) {
        return GRAFT_CAPACITY;
    }
    graph->outputs[graph->output_count++] = value;
    return GRAFT_OK;
}

/* ----------------------------------------------------------------- editing */

void graft_graph_redirect(graft_graph *graph, graft_index from, graft_index to)
{
    for (uint32_t n = 0; n < graph->node_end; n++) {
        const graft_node *node = &graph->nodes[n];
        for (uint32_t i = 0; node->op != GRAFT_OP_NONE && i < node->input_count; i++) {
            if (graph->edges[node->first_edge + i] == from) {
                graph->edges[node->first_edge + i] = to;
            }
        }
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        if (graph->outputs[i] == from) {
            graph->outputs[i] = to;
        }
    }
}

static bool graft_value_used(const graft_graph *graph, uint32_t value)
{
    for (uint32_t n = 0; n < graph->node_end; n++) {
        const graft_node *node = &graph->nodes[n];
        for (uint32_t i = 0; node->op != GRAFT_OP_NONE && i < node->input_count; i++) {
            if (graph->edges[node->first_edge + i] == value) {
                return true;
            }
        }
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        if (graph->outputs[i] == value) {
            return true;
        }
    }
    return false;
}

static bool graft_node_used(const graft_graph *graph, uint32_t node)
{
    for (uint32_t i = 0; i < graph->nodes[node].output_count; i++) {
        if (graft_value_used(graph, graft_node_output(graph, node, i))) {
            return true;
        }
    }
    return false;
}

static void graft_free_node(graft_graph *graph, uint32_t node)
{
    graft_node *n = &graph->nodes[node];
    for (uint32_t i = 0; i < n->output_count; i++) {
        const graft_index v = graft_results_of(graph, n)[i];
        graph->values[v].kind = GRAFT_VALUE_FREE;
        GRAFT_FREE_AT(graph->value_floor, v);
    }
    GRAFT_FREE_EDGES(graph, n);
    n->op = GRAFT_OP_NONE;
    GRAFT_FREE_AT(graph->node_floor, node);
}

/* Lowers the ends of the tables past free slots, so that loops stay short. */
static void graft_trim_tables(graft_graph *graph)
{
    while (graph->node_end > 0 && graph->nodes[graph->node_end - 1].op == GRAFT_OP_NONE) {
        graph->node_end--;
    }
    while (graph->value_end > 0 && graph->values[graph->value_end - 1].kind == GRAFT_VALUE_FREE) {
        graph->value_end--;
    }
}

/* Takes one use from each input of a node that is being removed; values that nothing reads any more
 * go onto the stack `pending`. A value gets there once, so one entry per value is enough room. */
static uint32_t graft_drop_inputs(const graft_graph *graph, const graft_node *node,
                                  graft_index *use_count, graft_index *pending, uint32_t depth)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        const graft_index v = graft_inputs_of(graph, node)[i];
        if (v != GRAFT_NONE && --use_count[v] == 0) {
            pending[depth++] = v;
        }
    }
    return depth;
}

static bool graft_outputs_unused(const graft_graph *graph, const graft_node *node,
                                 const graft_index *use_count)
{
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (use_count[graft_results_of(graph, node)[i]] != 0) {
            return false;
        }
    }
    return true;
}

/* Removes what kept alive the `depth` values on the stack, none of which is read any more. */
static void graft_remove_unused_values(graft_graph *graph, graft_index *use_count,
                                       graft_index *pending, uint32_t depth)
{
    while (depth > 0) {
        graft_value *value = &graph->values[pending[--depth]];
        if (value->kind == GRAFT_VALUE_WEIGHT) {
            value->kind = GRAFT_VALUE_FREE;
            GRAFT_FREE_AT(graph->value_floor, pending[depth]);
        } else if (value->kind == GRAFT_VALUE_COMPUTED) {
            const graft_node *node = &graph->nodes[value->node];
            if (graft_outputs_unused(graph, node, use_count)) {
                depth = graft_drop_inputs(graph, node, use_count, pending, depth);
                graft_free_node(graph, value->node);
            }
        }
    }
    graft_trim_tables(graph);
}

void graft_graph_remove_dead(graft_graph *graph)
{
    bool changed = true;
    while (changed) {
        changed = false;
        for (uint32_t n = 0; n < graph->node_end; n++) {
            if (graph->nodes[n].op != GRAFT_OP_NONE && !graft_node_used(graph, n)) {
                graft_free_node(graph, n);
                changed = true;
            }
        }
    }
    for (uint32_t v = 0; v < graph->value_end; v++) {
        if (graph->values[v].kind == GRAFT_VALUE_WEIGHT && !graft_value_used(graph, v)) {
            graph->values[v].kind = GRAFT_VALUE_FREE;
            GRAFT_FREE_AT(graph->value_floor, v);
        }
    }
    graft_trim_tables(graph);
}

#endif
